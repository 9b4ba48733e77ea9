#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "sys/file_sim.h"
#include "graph/lora.h"
#include "checkpoint/ckpt.h"
#include "engine/testing.h"

/* Adapters, frozen parameters and bf16 as a run sees them. */

enum { STEPS = 3, MAX_LOGITS = 1 << 16 };

static const char base_gpt[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24}}\ndata: {kind: "
	"synthetic, count: 61}\n";
static const char lora_gpt[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24},\n"
	"  lora: {rank: 4, alpha: 8, targets: ['h.*.attn.*.weight', h.1.mlp.c_fc.weight]}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char lora_mlp[] =
	"model: {use: builtin:mlp, args: {hidden: [33, 17]}, lora: {rank: 2, targets: [fc*.weight], train: "
	"[fc3.bias]}, freeze: [fc3.bias]}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char half_mlp[] =
	"model: {use: builtin:mlp, args: {hidden: [33, 17]}, precision: bf16-storage}\ndata: {kind: "
	"synthetic, count: 61}\n";

/* Ranks and alphas by patterns, counted by the root, with dropout. */
static const char lora_many[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24},\n"
	"  lora: {rank: 4, alpha: 6, scale: root, dropout: 0.25, targets: ['h.*.attn.*.weight', "
	"h.1.mlp.c_fc.weight], train: ['h.*.attn.c_attn.bias'],\n"
	"  ranks: ['h.1.attn.*=2', h.1.mlp.c_fc.weight=9], alphas: ['h.{i}.attn.c_proj.weight=3.5']}}\n"
	"data: {kind: synthetic, count: 61}\n";

struct logits { float at[MAX_LOGITS]; uint64_t per_row; };

static void keep(void *user, uint64_t first, uint64_t n, const float *at)
{
	struct logits *l = user;

	assert_true((first + n) * l->per_row <= MAX_LOGITS);
	memcpy(l->at + first * l->per_row, at, n * l->per_row * sizeof *at);
}

static void outputs_of(struct hd_rig *rig, struct logits *l)
{
	const struct hd_graph *g = &rig->task->infer;
	struct hd_forward_job job = { .split = 1, .count = rig->task->data->split[1].count, .logits = keep,
		.user = l };
	struct hd_metrics metrics;
	struct hd_diag diag = { "" };

	memset(l, 0, sizeof *l);
	l->per_row = hd_value_elems(&g->value[hd_graph_find_output(g, "logits")], 1);
	CHECK(hd_worker_forward(rig->worker, &job, &metrics, &diag) == HD_OK, "%s", diag.text);
}

static float *param_of(struct hd_rig *rig, const char *name)
{
	return hd_rig_params(rig) + rig->task->layout.at[hd_graph_find_param(&rig->task->train, name)];
}

static void a_model_begins_as_what_it_was_bit_for_bit(void **state)
{
	static struct logits want, got;
	struct hd_rig base, lora;

	(void)state;
	hd_rig_open(&base, base_gpt, 8, 4, NULL, 1);
	hd_rig_open(&lora, lora_gpt, 8, 4, NULL, 1);
	for (uint32_t p = 0; p < base.task->train.nparams; p++)
		CHECK(!memcmp(hd_rig_params(&base) + base.task->layout.at[p],
			hd_rig_params(&lora) + lora.task->layout.at[p],
			base.task->layout.len[p] * sizeof(float)), "parameter %u begins elsewhere", p);
	outputs_of(&base, &want);
	outputs_of(&lora, &got);
	assert_memory_equal(want.at, got.at, sizeof want.at);
	hd_rig_close(&base);
	hd_rig_close(&lora);
}

static void only_adapters_are_learned_and_only_they_have_slots_and_gradients(void **state)
{
	struct hd_rig rig;
	struct hd_rig_bytes before;

	(void)state;
	hd_rig_open(&rig, lora_gpt, 8, 4, NULL, 2);
	const struct hd_state *s = hd_worker_state(rig.worker);
	hd_rig_copy(&rig, &before, &rig.arena);
	struct hd_step_record record = { .step = 0 };
	for (int i = 0; i < STEPS; i++)
		record = hd_rig_step(&rig);
	uint32_t nadapters = 0, nslots = 0;
	for (uint32_t i = 0; i < s->nentries; i++) {
		const struct hd_state_entry *e = &s->entry[i];
		bool adapter = hd_lora_is_adapter(e->name), same = !memcmp(before.at[i], e->at, e->len_bytes);
		if (e->group == HD_STATE_MODEL)
			CHECK(same != adapter, "%s %s", e->name, same ? "did not change" : "changed");
		nadapters += e->group == HD_STATE_MODEL && adapter;
		nslots += e->group == HD_STATE_OPTIM;
		CHECK(e->group != HD_STATE_OPTIM || strstr(e->name, ".lora_"), "slot %s", e->name);
	}
	assert_int_equal(nadapters, 10);
	assert_int_equal(nslots, 2 * nadapters);
	const struct hd_layout *l = &rig.task->layout;
	assert_int_equal(l->elems, 4 * (32 + 96) * 2 + 4 * (32 + 32) * 2 + 4 * (32 + 128));
	assert_true(l->held_elems > l->elems && l->chunk[l->nchunks - 1].at + l->chunk[l->nchunks - 1].len ==
		l->elems);
	CHECK(hd_hash_same(record.digest, hd_state_digest(s)),
		"the digest of a step is not that of the state");
	hd_rig_close(&rig);
}

static void adapters_have_the_same_bits_on_any_devices(void **state)
{
	static const char *const models[] = { lora_gpt, lora_mlp, half_mlp, lora_many };

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		struct hd_hash want = { { 0 } };
		for (uint32_t d = 1; d <= 5; d += d == 3 ? 2 : 1) {
			struct hd_step_record record = { .step = 0 };
			struct hd_rig rig;
			hd_rig_open(&rig, models[m], 13, 13, NULL, d);
			for (int i = 0; i < STEPS; i++)
				record = hd_rig_step(&rig);
			want = d == 1 ? record.digest : want;
			CHECK(hd_hash_same(want, record.digest), "model %zu on %u devices", m, d);
			hd_rig_close(&rig);
		}
	}
}

/* A checkpoint after one step, taken up by a fresh worker, leads to the state that went on. */
static void a_checkpoint_is_exact(void **state)
{
	static const char *const models[] = { lora_gpt, half_mlp };

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		struct hd_ckpt_info info = { .step = 1 };
		struct hd_diag diag = { "" };
		struct hd_rig a, b;
		struct hd_fs_sim sim;
		hd_fs_sim_init(&sim);
		hd_rig_open(&a, models[m], 8, 4, NULL, 1);
		(void)hd_rig_step(&a);
		CHECK(hd_ckpt_write(&sim.fs, "c", hd_worker_state(a.worker), &info, 1, true, &diag) == HD_OK,
			"%s", diag.text);
		struct hd_step_record want = hd_rig_step(&a);
		hd_rig_open(&b, models[m], 8, 4, NULL, 1);
		float *frozen = m ? NULL : param_of(&b, "wte.weight");
		if (frozen)
			frozen[0] += 1;           /* what is overwritten must not be remembered by a digest */
		CHECK(hd_ckpt_read(&sim.fs, info.folder, hd_worker_state(b.worker), &info, &diag) == HD_OK,
			"%s", diag.text);
		CHECK(hd_worker_rewind(b.worker, &diag) == HD_OK, "%s", diag.text);
		struct hd_step_record got = hd_rig_step(&b);
		CHECK(hd_hash_same(want.digest, got.digest), "model %zu", m);
		hd_rig_close(&a);
		hd_rig_close(&b);
		hd_fs_sim_finish(&sim);
	}
}

/* alpha / sqrt(rank): counted by hand. */
static void each_matrix_has_the_rank_and_the_alpha_of_its_pattern(void **state)
{
	static const struct { const char *name; int64_t rank, in, out; double scale; } cases[] = {
		{ "h.0.attn.c_attn.weight", 4, 32, 96, 6.0 / 2 }, { "h.0.attn.c_proj.weight", 4, 32, 32, 3.5 / 2 },
		{ "h.1.attn.c_attn.weight", 2, 32, 96, 6 / 1.4142135623730951 },
		{ "h.1.attn.c_proj.weight", 2, 32, 32, 3.5 / 1.4142135623730951 },
		{ "h.1.mlp.c_fc.weight", 9, 32, 128, 6.0 / 3 },
	};
	struct hd_patterns pattern;
	struct hd_lora lora;
	char name[HD_MAX_NAME + 8];
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, lora_many, 8, 4, NULL, 1);
	assert_true(hd_task_lora(rig.job, &pattern, &lora));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_lora_of of = hd_lora_of(&lora, cases[i].name);
		CHECK(of.rank == cases[i].rank && of.scale == (float)cases[i].scale, "%s: rank %u, %g",
			cases[i].name, of.rank, (double)of.scale);
		snprintf(name, sizeof name, "%s.lora_A", cases[i].name);
		const struct hd_state_entry *a = hd_state_find(hd_worker_state(rig.worker), name);
		snprintf(name, sizeof name, "%s.lora_B", cases[i].name);
		const struct hd_state_entry *b = hd_state_find(hd_worker_state(rig.worker), name);
		CHECK(a && a->dim[0] == cases[i].rank && a->dim[1] == cases[i].in && b &&
			b->dim[0] == cases[i].out && b->dim[1] == cases[i].rank, "%s", cases[i].name);
	}
	hd_rig_close(&rig);
}

static void merge_of(const char *model)
{
	static struct logits want, got;
	struct hd_patterns pattern;
	struct hd_diag diag = { "" };
	struct hd_lora lora;
	struct hd_rig rig, plain;

	hd_rig_open(&rig, model, 8, 4, "optim: {lr: 0.05, schedule: {warmup: 0}}", 1);
	for (int i = 0; i < STEPS; i++)
		(void)hd_rig_step(&rig);
	outputs_of(&rig, &want);
	hd_rig_open(&plain, base_gpt, 8, 4, NULL, 1);
	outputs_of(&plain, &got);
	double peak = 0, before = 0, after = 0;
	for (uint32_t i = 0; i < MAX_LOGITS; i++) {
		peak = fmax(peak, fabs((double)want.at[i]));
		before = fmax(before, fabs((double)want.at[i] - (double)got.at[i]));
	}
	assert_true(hd_task_lora(rig.job, &pattern, &lora));
	struct hd_state *s = hd_worker_state(rig.worker);
	CHECK(hd_lora_merge(s, &rig.task->train, &lora, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t i = 0; i < s->nentries; i++) {
		assert_false(hd_lora_is_adapter(s->entry[i].name));
		struct hd_state_entry *e = hd_state_find(hd_worker_state(plain.worker), s->entry[i].name);
		if (e && e->group == HD_STATE_MODEL)
			memcpy(e->at, s->entry[i].at, e->len_bytes);
	}
	outputs_of(&plain, &got);
	for (uint32_t i = 0; i < MAX_LOGITS; i++)
		after = fmax(after, fabs((double)want.at[i] - (double)got.at[i]));
	CHECK(after <= 1e-5 * peak && before > 1e-2 * peak,
		"differ by %g (before merging %g), the largest is %g", after, before, peak);
	hd_rig_close(&rig);
	hd_rig_close(&plain);
}

static void merged_adapters_compute_what_they_computed_apart(void **state)
{
	(void)state;
	merge_of(lora_gpt);
	merge_of(lora_many);
}

/* By the job alone: what an export does. */
static void a_state_is_merged_by_the_job_that_made_it(void **state)
{
	struct hd_rig rig, twin, plain;
	struct hd_patterns pattern;
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	struct hd_arena arena;
	struct hd_lora lora;

	(void)state;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	hd_rig_open(&rig, lora_gpt, 8, 4, NULL, 1);
	hd_rig_open(&twin, lora_gpt, 8, 4, NULL, 1);
	hd_rig_open(&plain, base_gpt, 8, 4, NULL, 1);
	(void)hd_rig_step(&rig);
	(void)hd_rig_step(&twin);
	struct hd_state *a = hd_worker_state(rig.worker), *b = hd_worker_state(twin.worker),
		*none = hd_worker_state(plain.worker);
	const uint32_t with = a->nentries, without = none->nentries;

	assert_true(hd_lora_any(a) && !hd_lora_any(none));
	assert_int_equal(hd_task_merge(plain.job, &sim.fs, &arena, a, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "its job has none"));
	assert_int_equal(a->nentries, with);
	CHECK(hd_task_merge(rig.job, &sim.fs, &arena, a, &diag) == HD_OK, "%s", diag.text);
	assert_false(hd_lora_any(a));
	assert_true(hd_task_lora(twin.job, &pattern, &lora));
	CHECK(hd_lora_merge(b, &twin.task->train, &lora, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(a->nentries, b->nentries);
	for (uint32_t i = 0; i < a->nentries; i++)
		assert_memory_equal(a->entry[i].at, b->entry[i].at, a->entry[i].len_bytes);
	CHECK(hd_task_merge(plain.job, &sim.fs, &arena, none, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(none->nentries, without);
	hd_rig_close(&rig);
	hd_rig_close(&twin);
	hd_rig_close(&plain);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static void what_cannot_be_adapted_is_refused_by_name(void **state)
{
	static const struct { const char *lora, *says; } cases[] = {
		{ "lora: {rank: 2, targets: [wte.weight]}", "wte.weight is read by embed too" },
		{ "lora: {rank: 2, targets: [h.0.ln_1.weight]}", "h.0.ln_1.weight is read by layernorm too" },
		{ "lora: {rank: 2, targets: [h.9.attn.c_attn.weight]}", "\"h.9.attn.c_attn.weight\" names no parameter" },
		{ "lora: {rank: 2, targets: [h.*.c_attn.weight], train: [nothing]}", "model.lora.train: \"nothing\" names no parameter" },
		{ "lora: {rank: 2, targets: ['h.*.c_attn.weight'], ranks: [wte.weight=3]}", "model.lora.ranks: \"wte.weight\" names none" },
		{ "lora: {rank: 2, targets: ['h.*.c_attn.weight'], alphas: [h.7.*=3]}", "model.lora.alphas: \"h.7.*\" names none" },
		{ "freeze: [nothing]", "model.freeze: \"nothing\" names no parameter" },
		{ "freeze: ['*']", "parameters are frozen: there is nothing to train" },
	};
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_task *task;
		char model[512];
		hd_arena_init(&arena, 0);
		snprintf(model, sizeof model,
			"model: {use: builtin:gpt, args: {layers: 1}, %s}\ndata: {kind: synthetic, count: "
			"61}\n", cases[i].lora);
		CHECK(hd_task_create(&task, hd_rig_job(model, 8, 4, NULL, &arena), &fs,
			&diag) == HD_E_INVAL && strstr(diag.text, cases[i].says), "%s: %s",
			cases[i].lora, diag.text);
		hd_arena_finish(&arena);
	}
}

/* Parameters hold numbers of bf16 from the first step on; slots do not; the file holds two bytes a number. */
static void bf16_storage_rounds_parameters_and_nothing_else(void **state)
{
	struct hd_rig half, full;
	uint64_t others = 0;

	(void)state;
	hd_rig_open(&half, half_mlp, 8, 4,
		"optim: {kind: sgd, lr: 0.25, clip: 0, schedule: {kind: constant, warmup: 0}}", 1);
	hd_rig_open(&full, hd_rig_mlp, 8, 4,
		"optim: {kind: sgd, lr: 0.25, clip: 0, schedule: {kind: constant, warmup: 0}}", 1);
	uint64_t n = half.task->layout.held_elems;
	for (uint64_t i = 0; i < n; i++)
		CHECK(hd_rig_params(&half)[i] == hd_bf16_round(hd_rig_params(&full)[i]),
			"element %llu begins as %g", (unsigned long long)i,
			(double)hd_rig_params(&half)[i]);
	memcpy(hd_rig_params(&full), hd_rig_params(&half), n * sizeof(float));
	(void)hd_rig_step(&half);
	(void)hd_rig_step(&full);
	/* from the same numbers, the same step: f32 arithmetic, rounded once */
	for (uint64_t i = 0; i < n; i++) {
		CHECK(hd_rig_params(&half)[i] == hd_bf16_round(hd_rig_params(&full)[i]), "element %llu",
			(unsigned long long)i);
		others += hd_rig_params(&half)[i] != hd_rig_params(&full)[i];
	}
	assert_true(others > n / 4);
	hd_rig_close(&half);
	hd_rig_close(&full);
	hd_rig_open(&half, half_mlp, 8, 4, NULL, 1);
	(void)hd_rig_step(&half);
	others = 0;
	const float *slot = hd_param_store_at(half.worker->store, HD_VEC_SLOT0, 0, half.task->layout.elems);
	for (uint64_t i = 0; i < half.task->layout.elems; i++)
		others += slot[i] != hd_bf16_round(slot[i]);
	assert_true(others > 0);
	hd_rig_close(&half);
}

static void a_checkpoint_of_bf16_holds_two_bytes_a_number(void **state)
{
	struct hd_ckpt_info info = { .step = 1 };
	struct hd_diag diag = { "" };
	struct hd_stat stat;
	struct hd_fs_sim sim;
	struct hd_rig rig;

	(void)state;
	hd_fs_sim_init(&sim);
	hd_rig_open(&rig, half_mlp, 8, 4, NULL, 1);
	CHECK(hd_ckpt_write(&sim.fs, "c", hd_worker_state(rig.worker), &info, 1, true, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_fs_stat(&sim.fs, "c/step-000000001/model.safetensors", &stat, &diag) == HD_OK, "%s",
		diag.text);
	uint64_t numbers = rig.task->layout.params_elems;
	CHECK((uint64_t)stat.size_bytes > 2 * numbers && (uint64_t)stat.size_bytes < 2 * numbers + 2048,
		"%lld bytes for %llu numbers",
		(long long)stat.size_bytes, (unsigned long long)numbers);
	hd_rig_close(&rig);
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_begins_as_what_it_was_bit_for_bit),
		cmocka_unit_test(only_adapters_are_learned_and_only_they_have_slots_and_gradients),
		cmocka_unit_test(adapters_have_the_same_bits_on_any_devices),
		cmocka_unit_test(a_checkpoint_is_exact),
		cmocka_unit_test(each_matrix_has_the_rank_and_the_alpha_of_its_pattern),
		cmocka_unit_test(merged_adapters_compute_what_they_computed_apart),
		cmocka_unit_test(a_state_is_merged_by_the_job_that_made_it),
		cmocka_unit_test(what_cannot_be_adapted_is_refused_by_name),
		cmocka_unit_test(bf16_storage_rounds_parameters_and_nothing_else),
		cmocka_unit_test(a_checkpoint_of_bf16_holds_two_bytes_a_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
