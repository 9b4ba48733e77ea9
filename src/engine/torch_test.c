#include "engine/worker_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/safetensors.h"
#include "engine/part_int.h"
#include "tests/check.h"

/* PyTorch as the oracle: parameters, data, first gradient and ten losses were written by
 * tests/torch/make_fixtures.py (HD_TORCH_FIXTURES: a folder it has just filled). Sums of K
 * products in f32 in two orders differ by about eps * sqrt(K) of their size; a gradient is
 * judged by the norm of its difference, a loss relatively. */

enum { STEPS = 10 };
/* biases of keys: 0 but for rounding */
static const double grad_tolerance = 2e-5, loss_tolerance = 1e-5, buffer_tolerance = 1e-4, nothing = 1e-8;
/* Through twenty norms and more, each of which takes differences of what came before, errors grow. */
enum { MANY_PARAMS = 60 };
static const double deep_grad_tolerance = 2e-4;

static const char *folder(void)
{
	static char path[512];
	const char *given = getenv("HD_TORCH_FIXTURES"), *source = getenv("SOURCE_DIR");

	snprintf(path, sizeof path, "%s%s", given ? given : source ? source : ".",
		given ? "" : "/tests/torch/fixtures");
	return path;
}

static void read_file(const char *name, const char *file, struct hd_arena *arena, uint8_t **bytes,
	size_t *len)
{
	char path[700];
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/%s/%s", folder(), name, file);
	CHECK(hd_file_read_all(&fs, path, arena, 1 << 24, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static void read_tensors(const char *name, const char *file, struct hd_arena *arena,
	struct hd_safetensors *st)
{
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	read_file(name, file, arena, &bytes, &len);
	CHECK(hd_safetensors_read(st, arena, file, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static struct hd_job *job_of(const char *name, uint32_t vns, uint32_t shards, struct hd_arena *arena)
{
	char count[16], split[16];
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	char *path = hd_arena_take(arena, 700, 1), *graph = hd_arena_take(arena, 800, 1);
	struct hd_job_set set[] = { { "model.shards", split, HD_FROM_SET },
		{ "data.path", path, HD_FROM_SET },
		{ "model.use", graph, HD_FROM_SET }, { "model.bn", "global", HD_FROM_SET }, { "batch.virtual_nodes", count, HD_FROM_SET } };
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	snprintf(path, 700, "%s/%s", folder(), name);
	snprintf(count, sizeof count, "%u", vns);
	snprintf(split, sizeof split, "%u", shards);
	snprintf(graph, 800, "graph:%s/model.graph", path);
	read_file(name, "job.yaml", arena, &bytes, &len);
	CHECK(hd_job_parse(job, "job.yaml", (const char *)bytes, len, set,
		vns ? 5 : strstr((const char *)bytes, "graph:") ? 3 : 2,
		arena, &diag, NULL) == HD_OK,
		"%s", diag.text);
	return job;
}

static void check_gradients(const char *name, const struct hd_worker *w, const struct hd_wholes *wholes,
	const struct hd_safetensors *expect, struct hd_arena *arena)
{
	const struct hd_graph *g = &w->task->train;
	const double tolerance = g->nparams > MANY_PARAMS ? deep_grad_tolerance : grad_tolerance;

	for (uint32_t k = 0; k < wholes->n; k++) {
		const uint32_t *param = wholes->param + wholes->first[k], n = hd_whole_slices(wholes, k);
		const struct hd_sliced shape = hd_whole_shape(g, *param);
		const uint64_t len = hd_sliced_elems(&shape);
		float *slice[HD_MAX_SHARDS], *ours = hd_arena_take(arena, len, sizeof *ours);
		char want[HD_MAX_NAME + 8];
		double diff = 0, size = 0, scale = 1.0 / w->step->record.weight;
		for (uint32_t s = 0; s < n; s++)
			slice[s] = w->parts->part->sum + w->task->layout.at[param[s]];
		hd_slices_get(&shape, slice, 0, len, ours);
		snprintf(want, sizeof want, "grad.%s", hd_whole_name(g, *param));
		const struct hd_st_tensor *t = hd_safetensors_find(expect, want);
		CHECK(t && t->len_bytes == 4 * len, "%s: PyTorch has no %s of this size", name, want);
		const float *theirs = t->at;
		for (uint64_t i = 0; i < len; i++) {
			double d = (double)ours[i] * scale - (double)theirs[i];
			diff += d * d;
			size += (double)theirs[i] * (double)theirs[i];
		}
		CHECK(sqrt(diff) <= tolerance * sqrt(size) + nothing,
			"%s: %s is off by %.3g of its norm %.3g", name, want, sqrt(diff), sqrt(size));
	}
}

/* After ten steps: f32 that ten times took a tenth of sums in another order, behind parameters that differ
 * by as much. */
static void check_buffers(const char *name, const struct hd_worker *w, const struct hd_safetensors *expect)
{
	const struct hd_graph *g = &w->task->train;

	for (uint32_t b = 0; b < g->nbuffers; b++) {
		const char *want = hd_graph_text_of(g, g->value[g->buffer[b].value].name);
		const struct hd_st_tensor *t = hd_safetensors_find(expect, want);
		CHECK(t && t->len_bytes == 4 * w->task->layout.buffer_len[b],
			"%s: PyTorch has no %s of this size", name, want);
		const float *ours = hd_param_store_at(w->store, HD_VEC_BUFFERS,
			w->task->layout.buffer_at[b], 1);
		const float *theirs = t->at;
		double size = 0;
		for (uint64_t i = 0; i < w->task->layout.buffer_len[b]; i++)
			size = fmax(size, fabs((double)theirs[i]));
		for (uint64_t i = 0; i < w->task->layout.buffer_len[b]; i++)
			CHECK(fabs((double)ours[i] - (double)theirs[i]) <= buffer_tolerance * size,
				"%s: %s[%u] is %.9g, PyTorch has %.9g", name, want,
				(unsigned)i, (double)ours[i], (double)theirs[i]);
	}
}

/* vns: another number of virtual nodes than the job's, with norms over the global batch; 0: the job's. */
static void agrees(const char *name, enum hd_kernels kernels, uint32_t vns, uint32_t shards)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1, .kernels = kernels };
	struct hd_safetensors params, expect;
	struct hd_diag diag = { "" };
	struct hd_worker *w = NULL;
	struct hd_task *task = NULL;
	struct hd_wholes wholes;
	struct hd_arena arena;
	struct hd_plan plan;
	struct hd_fs fs;

	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	read_tensors(name, "params.safetensors", &arena, &params);
	read_tensors(name, "expect.safetensors", &arena, &expect);
	struct hd_job *job = job_of(name, vns, shards, &arena);
	CHECK(hd_task_create(&task, job, &fs, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_create(&w, task, &spec, &diag) == HD_OK, "%s", diag.text);
	struct hd_plan_job pj = hd_plan_job_whole(job->nvns, task->layout.nchunks);
	pj.lockstep = hd_worker_lockstep(w);
	CHECK(hd_plan_data(&plan, &pj, 2, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(w, &plan, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_wholes_make(&wholes, &task->train, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(params.ntensors == wholes.n, "%s: %u tensors, PyTorch has %u", name, wholes.n, params.ntensors);
	for (uint32_t i = 0; i < params.ntensors; i++) {
		struct hd_state_entry *e = hd_state_find(hd_worker_state(w), params.tensor[i].name);
		CHECK(e && e->len_bytes == params.tensor[i].len_bytes, "%s: %s", name, params.tensor[i].name);
		hd_state_put(e, 0, e->len_bytes / 4, params.tensor[i].at);
	}
	const double *loss = hd_safetensors_find(&expect, "loss")->at;
	for (uint32_t s = 0; s < STEPS; s++) {
		struct hd_step_record r;
		CHECK(hd_worker_step(w, false, &r, &diag) == HD_OK, "%s", diag.text);
		double ours = r.loss_sum / r.weight;
		CHECK(fabs(ours - loss[s]) <= loss_tolerance * fabs(loss[s]),
			"%s: loss of step %u is %.9g, PyTorch has %.9g", name, s, ours, loss[s]);
		if (s == 0)
			check_gradients(name, w, &wholes, &expect, &arena);
	}
	check_buffers(name, w, &expect);
	hd_worker_destroy(w);
	hd_task_destroy(task);
	hd_arena_finish(&arena);
}

static void agrees_on_all_kernels(const char *name)
{
	agrees(name, HD_KERNELS_PORTABLE, 0, 1);
	if (hd_device_has_library())
		agrees(name, HD_KERNELS_LIBRARY, 0, 1);
}

static void mlp_agrees_with_pytorch(void **state)   { (void)state; agrees_on_all_kernels("mlp"); }
static void lenet_agrees_with_pytorch(void **state) { (void)state; agrees_on_all_kernels("lenet"); }
static void gpt_agrees_with_pytorch(void **state)   { (void)state; agrees_on_all_kernels("gpt"); }
static void bn_agrees_with_pytorch(void **state)    { (void)state; agrees_on_all_kernels("bn"); }
static void llama_agrees_with_hugging_face(void **state) { (void)state; agrees_on_all_kernels("llama"); }
/* Windows, caps, stretched positions, fused products, patches. */
static void other_published_kinds_agree_with_hugging_face(void **state)
{
	static const char *const kinds[] = { "mistral", "gemma2", "phi3", "qwen3", "neox", "vit" };

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		agrees(kinds[i], HD_KERNELS_PORTABLE, 0, 1);
}
/* Experts, all of their tokens or as many as have room, balance in the loss, layers without; encoders with a
 * decoder, of both shapes (tests/torch/make_mixtures.py). */
static void mixtures_and_encoder_decoders_agree_with_hugging_face(void **state)
{
	static const char *const kinds[] = { "mixtral", "mixtral_drop", "qwen2_moe", "t5", "flan" };

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		agrees(kinds[i], HD_KERNELS_PORTABLE, 0, 1);
	agrees("mixtral", HD_KERNELS_PORTABLE, 0, 2);
}
static void bert_agrees_with_hugging_face(void **state) { (void)state; agrees_on_all_kernels("bert"); }
static void bert_with_a_head_for_classes_agrees_with_hugging_face(void **state) { (void)state;
	agrees_on_all_kernels("bert_cls"); }
/* Masks with padding behind, before and with holes; kinds and positions of tokens; labels of -100. */
static void named_inputs_agree_with_hugging_face(void **state)
{
	(void)state;
	agrees_on_all_kernels("bert_inputs");
	agrees_on_all_kernels("gpt_inputs");
	agrees_on_all_kernels("llama_inputs");
	agrees("bert_inputs", HD_KERNELS_PORTABLE, 0, 3);
	agrees("gpt_inputs", HD_KERNELS_PORTABLE, 0, 3);
}

static void options_of_gpt2_agree_with_hugging_face(void **state) { (void)state;
	agrees_on_all_kernels("gpt_options"); }
/* Positions that each sample's pads decide, before, behind and between. */
static void roberta_agrees_with_hugging_face(void **state)
{
	(void)state;
	agrees_on_all_kernels("roberta");
	agrees("roberta_cls", HD_KERNELS_PORTABLE, 0, 1);
	agrees("roberta_cls", HD_KERNELS_PORTABLE, 0, 3);
}

static void lstm_agrees_with_pytorch(void **state)  { (void)state; agrees_on_all_kernels("lstm"); }
static void gru_agrees_with_pytorch(void **state)   { (void)state; agrees_on_all_kernels("gru"); }
static void resnet18_agrees_with_pytorch(void **state) { (void)state; agrees_on_all_kernels("resnet18"); }
static void resnet50_agrees_with_pytorch(void **state) { (void)state; agrees_on_all_kernels("resnet50"); }
static void paths_and_wide_windows_agree_with_pytorch(void **state) { (void)state;
	agrees_on_all_kernels("resnext"); }
static void vgg16_agrees_with_pytorch(void **state) { (void)state; agrees_on_all_kernels("vgg16"); }
static void inception_agrees_with_pytorch(void **state) { (void)state; agrees_on_all_kernels("inception"); }
/* 24 rows on 5 and 24 virtual nodes: some have one row, whose variance none of them knows. */
static void norms_over_the_global_batch_agree_with_pytorch_for_any_virtual_nodes(void **state)
{
	static const uint32_t vns[] = { 1, 5, 24 };

	(void)state;
	for (int i = 0; i < 3; i++)
		agrees("bn", HD_KERNELS_PORTABLE, vns[i], 1);
}

/* Sums in shards: pairs of products, heads, tables and logits; three shards make a tree with a missing
 * child. */
static void models_in_shards_agree_too(void **state)
{
	static const struct { const char *name; uint32_t shards; } cases[] = {
		{ "mlp", 2 }, { "mlp", 4 }, { "mlp", 5 }, { "gpt", 2 }, { "llama", 2 }, { "mistral", 2 }, { "gemma2", 2 }, { "bert", 3 }, { "bert_cls", 3 }, { "lstm", 3 }, { "gru", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		agrees(cases[i].name, HD_KERNELS_PORTABLE, 0, cases[i].shards);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlp_agrees_with_pytorch),
		cmocka_unit_test(lenet_agrees_with_pytorch),
		cmocka_unit_test(gpt_agrees_with_pytorch),
		cmocka_unit_test(bn_agrees_with_pytorch),
		cmocka_unit_test(llama_agrees_with_hugging_face),
		cmocka_unit_test(other_published_kinds_agree_with_hugging_face),
		cmocka_unit_test(mixtures_and_encoder_decoders_agree_with_hugging_face),
		cmocka_unit_test(bert_agrees_with_hugging_face),
		cmocka_unit_test(bert_with_a_head_for_classes_agrees_with_hugging_face),
		cmocka_unit_test(named_inputs_agree_with_hugging_face),
		cmocka_unit_test(lstm_agrees_with_pytorch),
		cmocka_unit_test(gru_agrees_with_pytorch),
		cmocka_unit_test(resnet18_agrees_with_pytorch),
		cmocka_unit_test(resnet50_agrees_with_pytorch),
		cmocka_unit_test(options_of_gpt2_agree_with_hugging_face),
		cmocka_unit_test(roberta_agrees_with_hugging_face),
		cmocka_unit_test(paths_and_wide_windows_agree_with_pytorch),
		cmocka_unit_test(vgg16_agrees_with_pytorch),
		cmocka_unit_test(inception_agrees_with_pytorch),
		cmocka_unit_test(models_in_shards_agree_too),
		cmocka_unit_test(norms_over_the_global_batch_agree_with_pytorch_for_any_virtual_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
