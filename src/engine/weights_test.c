#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/half.h"
#include "graph/model.h"
#include "checkpoint/weights.h"
#include "checkpoint/ckpt.h"
#include "engine/testing.h"

enum { STEPS = 3 };

static char folder[64];
static struct hd_fs fs;

static int make_folder(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	snprintf(folder, sizeof folder, "/tmp/hd_weights_XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, folder, NULL) ? -1 : 0;
}

static const char *at(const char *name)
{
	static char path[2][160];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static enum hd_err into_text(void *text, const void *bytes, uint64_t len, struct hd_diag *diag)
{
	(void)diag;
	hd_text_put(text, bytes, len);
	return HD_OK;
}

static void write_file(const char *name, const struct hd_st_tensor *tensor, uint32_t n)
{
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	CHECK(hd_safetensors_write(tensor, n, NULL, 0, &arena, into_text, &text, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_file_write_atomic(&fs, at(name), text.at, text.len, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
}

/* The parameters of a worker, under the public names that `prefix` makes of ours. */
static void write_params(const char *name, struct hd_rig *rig, const char *prefix)
{
	const struct hd_state *s = hd_worker_state(rig->worker);
	struct hd_st_tensor tensor[64];
	static char names[64][160];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nentries; i++)
		if (s->entry[i].group == HD_STATE_MODEL) {
			const struct hd_state_entry *e = &s->entry[i];
			snprintf(names[n], sizeof names[n], "%s%s", prefix, e->name);
			tensor[n] = (struct hd_st_tensor){ .name = names[n], .dtype = HD_ST_F32,
				.rank = e->rank, .at = e->at, .len_bytes = e->len_bytes };
			for (int k = 0; k < e->rank; k++)
				tensor[n].dim[k] = (uint64_t)e->dim[k];
			n++;
		}
	write_file(name, tensor, n);
}

/* A model's lines of a job with weights from `name`. */
static const char *with_weights(const char *model, const char *name, const char *more)
{
	static char text[1024];
	const char *brace = strstr(model, "args");

	snprintf(text, sizeof text, "%.*sweights: '%s', %s%s", (int)(brace - model), model, at(name), more,
		brace);
	return text;
}

static struct hd_diag refused(const char *model)
{
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_task *task;

	hd_arena_init(&arena, 0);
	struct hd_job *job = hd_rig_job(model, 8, 4, NULL, &arena);
	CHECK(hd_task_create(&task, job, &fs, &diag) == HD_E_INPUT, "%s", diag.text);
	hd_arena_finish(&arena);
	return diag;
}

static void a_run_begins_with_the_weights_bit_for_bit_and_with_their_loss(void **state)
{
	struct hd_rig a, b;
	struct hd_metrics before, after;
	struct hd_diag diag = { "" };

	(void)state;
	hd_rig_open(&a, hd_rig_gpt, 8, 4, NULL, 1);
	for (int i = 0; i < STEPS; i++)
		(void)hd_rig_step(&a);
	write_params("gpt.safetensors", &a, "transformer.");
	hd_rig_open(&b, with_weights(hd_rig_gpt, "gpt.safetensors", ""), 8, 4, NULL, 1);
	for (uint32_t p = 0; p < a.task->train.nparams; p++)
		CHECK(!memcmp(hd_rig_params(&a) + a.task->layout.at[p],
			hd_rig_params(&b) + a.task->layout.at[p],
			a.task->layout.len[p] * sizeof(float)), "parameter %u", p);
	struct hd_forward_job job = { .split = 1, .count = a.task->data->split[1].count };
	CHECK(hd_worker_forward(a.worker, &job, &before, &diag) == HD_OK &&
		hd_worker_forward(b.worker, &job, &after, &diag) == HD_OK, "%s", diag.text);
	CHECK(before.loss_sum == after.loss_sum && before.loss_sum > 0, "%g and %g", before.loss_sum,
		after.loss_sum);
	hd_rig_close(&a);
	hd_rig_close(&b);
}

static void what_is_trained_from_weights_has_the_same_bits_on_any_devices(void **state)
{
	struct hd_hash want = { { 0 } };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 13, 13, NULL, 1);
	(void)hd_rig_step(&rig);
	write_params("mlp.safetensors", &rig, "");
	hd_rig_close(&rig);
	for (uint32_t d = 1; d <= 5; d += d == 3 ? 2 : 1) {
		struct hd_step_record record = { .step = 0 };
		hd_rig_open(&rig, with_weights(hd_rig_mlp, "mlp.safetensors", ""), 13, 13, NULL, d);
		hd_task_drop_weights(rig.task);
		for (int i = 0; i < STEPS; i++)
			record = hd_rig_step(&rig);
		if (d == 1)
			want = record.digest;
		CHECK(hd_hash_same(want, record.digest), "%u devices", d);
		hd_rig_close(&rig);
	}
}

static void another_content_is_another_job_and_another_place_is_not(void **state)
{
	struct hd_hash hash[4];
	struct hd_rig rig;
	struct hd_diag diag = { "" };
	const char *where[4] = { "one.safetensors", "two.safetensors", "three.safetensors", NULL };

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 8, 4, NULL, 1);
	write_params(where[0], &rig, "");
	write_params(where[1], &rig, "");
	hd_rig_params(&rig)[3] = nextafterf(hd_rig_params(&rig)[3], 1);
	write_params(where[2], &rig, "");
	hd_rig_close(&rig);
	for (int i = 0; i < 4; i++) {
		struct hd_arena arena;
		struct hd_task *task;
		hd_arena_init(&arena, 0);
		struct hd_job *job = hd_rig_job(where[i] ? with_weights(hd_rig_mlp, where[i], "") :
			hd_rig_mlp, 8, 4, NULL, &arena);
		CHECK(hd_task_create(&task, job, &fs, &diag) == HD_OK, "%s", diag.text);
		hash[i] = task->job_hash;
		hd_task_destroy(task);
		hd_arena_finish(&arena);
	}
	CHECK(hd_hash_same(hash[0], hash[1]), "another place");
	CHECK(!hd_hash_same(hash[0], hash[2]), "another last bit");
	CHECK(!hd_hash_same(hash[0], hash[3]), "no weights");
}

static const float row4[4] = { 1, 2, 3, 4 };
static const struct hd_st_tensor tiny[] = {
	{ .name = "fc1.weight", .dtype = HD_ST_F32, .rank = 2, .dim = { 2, 2 }, .at = row4, .len_bytes = 16 },
	{ .name = "fc1.bias",   .dtype = HD_ST_F32, .rank = 1, .dim = { 2 },    .at = row4, .len_bytes = 8 },
	{ .name = "fc2.weight", .dtype = HD_ST_F32, .rank = 2, .dim = { 2, 2 }, .at = row4, .len_bytes = 16 },
	{ .name = "fc2.bias",   .dtype = HD_ST_F32, .rank = 1, .dim = { 2 },    .at = row4, .len_bytes = 8 },
};
static const char tiny_mlp[] =
	"model: {use: builtin:mlp, args: {input: [2], hidden: [2], classes: 2}}\ndata: {kind: synthetic, "
	"count: 61}\n";

static void one_message_lists_everything_that_does_not_fit(void **state)
{
	struct hd_st_tensor t[5];

	(void)state;
	memcpy(t, tiny, sizeof tiny);
	t[0].dim[0] = 4;
	t[0].dim[1] = 1;
	t[1].name = "fc9.bias";
	t[3].dtype = HD_ST_I32;
	t[4] = (struct hd_st_tensor){ .name = "extra", .dtype = HD_ST_F16, .rank = 2, .dim = { 1, 2 },
		.at = row4, .len_bytes = 4 };
	write_file("wrong.safetensors", t, 5);
	struct hd_diag diag = refused(with_weights(tiny_mlp, "wrong.safetensors", ""));
	static const char *const says[] = { "1 missing: fc1.bias f32 [2]",
		"2 not of this model: extra F16 [1,2], fc9.bias F32 [2]",
		"1 of another shape: fc1.weight F32 [4,1] for f32 [2,2]",
		"1 not to be taken as f32: fc2.bias I32 [2] (no floating numbers)" };
	for (size_t i = 0; i < sizeof says / sizeof *says; i++)
		CHECK(strstr(diag.text, says[i]), "\"%s\" is not in: %s", says[i], diag.text);
}

static void what_is_skipped_gets_its_initial_value_and_nothing_else_does(void **state)
{
	struct hd_st_tensor t[4];
	struct hd_rig plain, rig;

	(void)state;
	memcpy(t, tiny, sizeof tiny);
	t[2].dim[0] = 1;                  /* a head of another width, and its bias is not there at all */
	t[2].len_bytes = 8;
	write_file("head.safetensors", t, 3);
	(void)refused(with_weights(tiny_mlp, "head.safetensors", ""));
	hd_rig_open(&plain, tiny_mlp, 8, 4, NULL, 1);
	hd_rig_open(&rig, with_weights(tiny_mlp, "head.safetensors", "weights_skip: [fc2.*], "), 8, 4, NULL,
		1);
	const struct hd_layout *l = &rig.task->layout;
	for (uint32_t p = 0; p < l->nparams; p++) {
		const float *want = p < 2 ? row4 : hd_rig_params(&plain) + l->at[p];
		CHECK(!memcmp(hd_rig_params(&rig) + l->at[p], want, l->len[p] * sizeof *want), "parameter %u",
			p);
	}
	hd_rig_close(&plain);
	hd_rig_close(&rig);
}

static void other_floating_types_become_f32_by_stated_rules(void **state)
{
	/* a tie, above it, to zero, exact */
	static const double wide[4] = { 1.0 + 0x1p-24, 1.0 + 3 * 0x1p-25, 1e-60, -2.5 };
	static const float from_wide[4] = { 1.0f, 1.0f + 0x1p-23f, 0.0f, -2.5f };
	static const uint16_t f16[2] = { 0x3c01, 0x8001 }, bf16[2] = { 0x3f81, 0xff80 };
	static const float from_f16[2] = { 1.0f + 0x1p-10f, -0x1p-24f },
		from_bf16[2] = { 1.0f + 0x1p-7f, -INFINITY };
	struct hd_st_tensor t[4];
	struct hd_rig rig;

	(void)state;
	memcpy(t, tiny, sizeof tiny);
	t[0] = (struct hd_st_tensor){ .name = "fc1.weight", .dtype = HD_ST_F64, .rank = 2, .dim = { 2, 2 },
		.at = wide, .len_bytes = sizeof wide };
	t[1] = (struct hd_st_tensor){ .name = "fc1.bias", .dtype = HD_ST_F16, .rank = 1, .dim = { 2 },
		.at = f16, .len_bytes = sizeof f16 };
	t[3] = (struct hd_st_tensor){ .name = "fc2.bias", .dtype = HD_ST_BF16, .rank = 1, .dim = { 2 },
		.at = bf16, .len_bytes = sizeof bf16 };
	write_file("types.safetensors", t, 4);
	hd_rig_open(&rig, with_weights(tiny_mlp, "types.safetensors", ""), 8, 4, NULL, 1);
	const float *want[4] = { from_wide, from_f16, row4, from_bf16 };
	for (uint32_t p = 0; p < 4; p++)
		CHECK(!memcmp(hd_rig_params(&rig) + rig.task->layout.at[p], want[p],
			rig.task->layout.len[p] * sizeof(float)), "parameter %u", p);
	hd_rig_close(&rig);

	static const double huge[4] = { 1, 2, 1e39, 3 };
	t[0].at = huge;
	write_file("huge.safetensors", t, 4);
	struct hd_diag diag = refused(with_weights(tiny_mlp, "huge.safetensors", ""));
	CHECK(strstr(diag.text, "fc1.weight F64 [2,2] (a number beyond f32)"), "%s", diag.text);
}

static void write_text(const char *name, const char *text)
{
	struct hd_diag diag = { "" };

	CHECK(hd_file_write_atomic(&fs, at(name), text, strlen(text), &diag) == HD_OK, "%s", diag.text);
}

static struct hd_hash digest_of(const char *name)
{
	struct hd_weights *w = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_weights_open(&w, &fs, *name ? at(name) : folder, &diag) == HD_OK, "%s", diag.text);
	struct hd_hash digest = w->digest;
	hd_weights_close(w);
	return digest;
}

static void shards_are_one_source_and_the_index_must_be_true(void **state)
{
	static const struct { const char *index, *says; } bad[] = {
		{ "{\"weight_map\":{\"fc1.weight\":\"../a.safetensors\"}}", "is no name of a file beside it" },
		{ "{\"weight_map\":{\"fc1.weight\":\"a-1.safetensors\",\"fc1.bias\":\"a-1.safetensors\",\"fc2.bias\":\"a-1.safetensors\"}}",
		  "tensor 'fc2.bias' is not in a-1" },
		{ "{\"weight_map\":{\"fc1.weight\":\"a-1.safetensors\"}}", "lists 1 tensors, its files hold 2" },
		{ "{\"weight_map\":{\"fc1.weight\":\"a-9.safetensors\"}}", "a-9.safetensors" },
		{ "{\"weight_map\":{\"fc1.weight\":3}}", "weight_map" },
		{ "{}", "weight_map" },
	};
	struct hd_weights *w;

	(void)state;
	write_file("whole.safetensors", tiny, 4);
	write_file("a-1.safetensors", tiny, 2);
	write_file("a-2.safetensors", tiny + 2, 2);
	write_text("a.safetensors.index.json",
		"{\"metadata\":{\"total_size\":48},\"weight_map\":{\"fc1.weight\":\"a-1.safetensors\","
		"\"fc1.bias\":\"a-1.safetensors\",\"fc2.weight\":\"a-2.safetensors\","
		"\"fc2.bias\":\"a-2.safetensors\"}}");
	assert_true(hd_hash_same(digest_of("a.safetensors.index.json"), digest_of("whole.safetensors")));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		write_text("b.safetensors.index.json", bad[i].index);
		enum hd_err err = hd_weights_open(&w, &fs, at("b.safetensors.index.json"), &diag);
		CHECK((err == HD_E_INPUT || err == HD_E_NOTFOUND) && strstr(diag.text, bad[i].says), "%s: %s",
			bad[i].index, diag.text);
	}
}

static void a_checkpoint_and_a_folder_of_a_file_are_sources_too(void **state)
{
	struct hd_ckpt_info info = { .step = 4 };
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 8, 4, NULL, 1);
	(void)hd_rig_step(&rig);
	write_params("model.safetensors", &rig, "");
	CHECK(hd_ckpt_write(&fs, at("run"), hd_worker_state(rig.worker), &info, 1, false, &diag) == HD_OK,
		"%s", diag.text);
	hd_rig_close(&rig);
	struct hd_hash want = digest_of("model.safetensors");
	assert_true(hd_hash_same(want, digest_of("run")));
	assert_true(hd_hash_same(want, digest_of("run/step-000000004")));
	assert_true(hd_hash_same(want, digest_of("")));
	struct hd_weights *w;
	assert_int_equal(hd_weights_open(&w, &fs, at("nowhere"), &diag), HD_E_NOTFOUND);
}

/* An untied head is another model; a tied one may stand twice. */
static void a_second_name_must_hold_the_same_numbers(void **state)
{
	static const char model[] =
		"model: {use: builtin:gpt, args: {layers: 1, width: 2, heads: 1, context: 2, vocab: "
		"2}}\ndata: {kind: synthetic, count: 61}\n";
	struct hd_st_tensor t[32];
	struct hd_rig rig;
	uint32_t n = 0;

	(void)state;
	hd_rig_open(&rig, model, 8, 4, NULL, 1);
	const struct hd_graph *g = &rig.task->train;
	for (uint32_t p = 0; p < g->nparams; p++) {
		const struct hd_value *v = &g->value[g->param[p].value];
		t[n] = (struct hd_st_tensor){ .name = hd_graph_text_of(g, v->name), .dtype = HD_ST_F32,
			.rank = v->rank,
			.at = hd_rig_params(&rig) + rig.task->layout.at[p],
			.len_bytes = rig.task->layout.len[p] * sizeof(float) };
		for (int k = 0; k < v->rank; k++)
			t[n].dim[k] = (uint64_t)v->dim[k];
		n++;
	}
	t[n] = t[0];
	t[n].name = "lm_head.weight";
	write_file("tied.safetensors", t, n + 1);
	struct hd_rig again;
	hd_rig_open(&again, with_weights(model, "tied.safetensors", ""), 8, 4, NULL, 1);
	hd_rig_close(&again);
	write_file("head_only.safetensors", t + 1, n);
	hd_rig_open(&again, with_weights(model, "head_only.safetensors", ""), 8, 4, NULL, 1);
	assert_memory_equal(hd_rig_params(&again), hd_rig_params(&rig), 4 * sizeof(float));
	hd_rig_close(&again);
	t[n].at = row4;
	write_file("untied.safetensors", t, n + 1);
	struct hd_diag diag = refused(with_weights(model, "untied.safetensors", ""));
	CHECK(strstr(diag.text, "lm_head.weight F32 [2,2] (not equal to wte.weight)"), "%s", diag.text);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_begins_with_the_weights_bit_for_bit_and_with_their_loss),
		cmocka_unit_test(what_is_trained_from_weights_has_the_same_bits_on_any_devices),
		cmocka_unit_test(another_content_is_another_job_and_another_place_is_not),
		cmocka_unit_test(one_message_lists_everything_that_does_not_fit),
		cmocka_unit_test(what_is_skipped_gets_its_initial_value_and_nothing_else_does),
		cmocka_unit_test(other_floating_types_become_f32_by_stated_rules),
		cmocka_unit_test(shards_are_one_source_and_the_index_must_be_true),
		cmocka_unit_test(a_checkpoint_and_a_folder_of_a_file_are_sources_too),
		cmocka_unit_test(a_second_name_must_hold_the_same_numbers),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
