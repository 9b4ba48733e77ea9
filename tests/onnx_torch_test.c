/* Models that PyTorch exported for training (tests/onnx/make_fixtures.py): the logits before the first step
 * and the losses of ten SGD steps are PyTorch's. The step is taken here, by hand: parameter - rate x
 * gradient / weight. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file.h"
#include "graph/autodiff.h"
#include "graph/onnx.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/safetensors.h"
#include "device/program.h"
#include "tests/check.h"

enum { STEPS = 10, BATCH = 8, COUNT = 16 };

struct run {
	struct hd_arena arena;
	struct hd_graph graph;
	struct hd_onnx_values values;
	struct hd_layout layout;
	struct hd_program program;
	struct hd_safetensors expect;
	struct hd_device *device;
	struct hd_bind bind;
	struct hd_fold leaf;
	const void *input[2];
	float *params, *grad, *buffers;
	uint8_t *memory;
};

static void read_file(struct run *r, const char *model, const char *name, uint8_t **bytes, size_t *len)
{
	char path[700];
	const char *source = getenv("SOURCE_DIR");
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/tests/onnx/%s/%s", source ? source : ".", model, name);
	CHECK(hd_file_read_all(&fs, path, &r->arena, 1 << 24, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static void import(struct run *r, const char *model, const char *file, bool token_if_rows)
{
	static const struct hd_model_opts loss = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	struct hd_onnx_opts opts = { .loss = &loss, .token_if_rows = token_if_rows };
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&r->arena, 0);
	read_file(r, model, file, &bytes, &len);
	hd_graph_init(&r->graph, &r->arena);
	CHECK(hd_onnx_import(&r->graph, file, bytes, len, &opts, &r->values, &diag) == HD_OK, "%s: %s", model,
		diag.text);
	CHECK(hd_graph_optimize(&r->graph, BATCH, &diag) == HD_OK, "%s: %s", model, diag.text);
	CHECK(hd_graph_autodiff(&r->graph, &diag) == HD_OK, "%s: %s", model, diag.text);
	read_file(r, model, "expect.safetensors", &bytes, &len);
	CHECK(hd_safetensors_read(&r->expect, &r->arena, "expect", bytes, len, &diag) == HD_OK, "%s",
		diag.text);
}

static void set_up(struct run *r, enum hd_kernels kernels)
{
	struct hd_device_spec spec = { .nthreads = 1, .kernels = kernels };
	struct hd_diag diag = { "" };

	CHECK(hd_layout_make(&r->layout, &r->graph, &r->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_program_make(&r->program, &r->graph, &r->layout, true, &(uint64_t){ BATCH }, 1, &r->arena,
		&diag) == HD_OK, "%s", diag.text);
	CHECK(hd_device_create(&r->device, "cpu", &spec, &diag) == HD_OK, "%s", diag.text);
	CHECK(r->device->ops->load(r->device, &r->program, &diag) == HD_OK, "%s", diag.text);
	r->params = calloc(r->layout.elems + 16, sizeof(float));
	r->grad = calloc(r->layout.grad_elems + 16, sizeof(float));
	r->buffers = calloc(1 << 16, sizeof(float));
	r->memory = aligned_alloc(64, r->program.memory.len_bytes + 64);
	memset(r->memory, 0xff, r->program.memory.len_bytes + 64);
	for (uint32_t p = 0; p < r->graph.nparams; p++)
		memcpy(r->params + r->layout.at[p], r->values.param[p].at, r->values.param[p].len_bytes);
	r->leaf = (struct hd_fold){ .dst = r->grad };
	r->bind = (struct hd_bind){ .rows = BATCH, .params = r->params, .buffers = r->buffers,
		.input = r->input, .arena = r->memory, .fold = &r->leaf,
		.nfolds = 1 };
}

static const void *output(const struct run *r, const char *name)
{
	uint32_t v = hd_graph_find_output(&r->graph, name);

	CHECK(v != HD_NONE, "no output %s", name);
	return hd_program_value(&r->program, &r->bind, v);
}

static void phase(struct run *r, enum hd_run_phase which)
{
	struct hd_diag diag = { "" };
	uint64_t token = 0;

	CHECK(r->device->ops->run(r->device, &r->program, which, &r->bind, &token, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(r->device->ops->wait(r->device, token, &diag) == HD_OK, "%s", diag.text);
}

static void feed(struct run *r, uint32_t step)
{
	static const char *const field[2] = { "x", "y" };

	for (int k = 0; k < 2; k++) {
		const struct hd_st_tensor *t = hd_safetensors_find(&r->expect, field[k]);
		uint32_t at = hd_graph_find_input(&r->graph, field[k]);
		CHECK(t && at != HD_NONE, "no input %s", field[k]);
		r->input[at] = (const uint8_t *)t->at + t->len_bytes / COUNT * BATCH *
			(step % (COUNT / BATCH));
	}
}

static void check_logits(const struct run *r, const char *model)
{
	const struct hd_st_tensor *t = hd_safetensors_find(&r->expect, "logits");
	const float *ours = output(r, "logits"), *theirs = t->at;
	double most = 0;

	for (uint64_t k = 0; k < t->len_bytes / sizeof(float); k++)
		most = fmax(most, fabs((double)theirs[k]));
	for (uint64_t k = 0; k < t->len_bytes / sizeof(float); k++)
		CHECK(fabs((double)ours[k] - (double)theirs[k]) <= 1e-5 * most,
			"%s: logit %llu is %.9g, PyTorch has %.9g", model, (unsigned long long)k,
			(double)ours[k], (double)theirs[k]);
}

/* A weight that several places read has a gradient part for each (graph/layout.h). */
static void add_parts(struct run *r)
{
	const struct hd_layout *l = &r->layout;

	for (uint32_t g = l->nparams; g < l->ngrads; g++)
		for (uint64_t k = 0; k < l->len[g]; k++)
			r->grad[l->at[l->grad_param[g]] + k] += r->grad[l->at[g] + k];
}

static void agrees(const char *model, const char *file, enum hd_kernels kernels, bool token_if_rows)
{
	struct run *r = calloc(1, sizeof *r);

	import(r, model, file, token_if_rows);
	set_up(r, kernels);
	const double *losses = hd_safetensors_find(&r->expect, "losses")->at;
	const float rate = *(const float *)hd_safetensors_find(&r->expect, "rate")->at;
	for (uint32_t s = 0; s < STEPS; s++) {
		feed(r, s);
		phase(r, HD_RUN_F);
		if (s == 0)
			check_logits(r, model);
		double weight = *(const double *)output(r, "weight"),
			loss = *(const double *)output(r, "loss") / weight;
		CHECK(fabs(loss - losses[s]) <= 1e-4 * fabs(losses[s]),
			"%s/%s: loss of step %u is %.9g, PyTorch has %.9g", model, file, s, loss, losses[s]);
		phase(r, HD_RUN_B);
		add_parts(r);
		for (uint64_t k = 0; k < r->layout.elems; k++)
			r->params[k] -= rate * (float)((double)r->grad[k] / weight);
	}
	hd_device_destroy(r->device);
	free(r->params);
	free(r->grad);
	free(r->buffers);
	free(r->memory);
	hd_arena_finish(&r->arena);
	free(r);
}

/* Traced with a batch of 2 (opset 15: LayerNorm taken apart), and with a free one (opset 17). */
static void agrees_in_every_form(const char *model)
{
	static const char *const file[] = { "model.onnx", "free.onnx" };

	for (int k = 0; k < 2; k++) {
		agrees(model, file[k], HD_KERNELS_PORTABLE, true);
		if (hd_device_has_library())
			agrees(model, file[k], HD_KERNELS_LIBRARY, true);
	}
}

static void an_exported_mlp_trains_as_in_pytorch(void **state)    { (void)state; agrees_in_every_form("mlp");
	}
static void an_exported_lenet_trains_as_in_pytorch(void **state)  { (void)state;
	agrees_in_every_form("lenet"); }
static void an_exported_resnet_trains_as_in_pytorch(void **state) { (void)state;
	agrees_in_every_form("resnet"); }
static void an_exported_lstm_trains_as_in_pytorch(void **state)   { (void)state; agrees_in_every_form("lstm");
	}
static void an_exported_gru_trains_as_in_pytorch(void **state)    { (void)state; agrees_in_every_form("gru");
	}
static void tokens_with_one_label_train_as_in_pytorch(void **state) { (void)state;
	agrees_in_every_form("label"); }
static void an_exported_gpt_trains_as_in_pytorch(void **state)    { (void)state; agrees_in_every_form("gpt");
	}

static uint32_t count_of(const struct hd_graph *g, enum hd_op op)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nnodes; i++)
		n += g->node[i].op == op;
	return n;
}

/* Each of its blocks attends by one op, forward and back, and no scores of [N,H,T,T] are left. */
static void attends_by_one_op(const char *model, const char *file, enum hd_op op, enum hd_op back,
	uint32_t blocks)
{
	struct run *r = calloc(1, sizeof *r);

	import(r, model, file, true);
	CHECK(count_of(&r->graph, op) == blocks && count_of(&r->graph, back) == blocks, "%s/%s: %u of %u",
		model, file, count_of(&r->graph, op), blocks);
	for (uint32_t i = 0; i < r->graph.nnodes; i++)
		CHECK(r->graph.node[i].op != HD_OP_SOFTMAX && r->graph.node[i].op != HD_OP_CONTRACT,
			"%s/%s: node %u", model, file, i);
	hd_arena_finish(&r->arena);
	free(r);
}

static void attention_written_out_becomes_one_op(void **state)
{
	static const char *const file[] = { "model.onnx", "free.onnx" };
	(void)state;

	for (int k = 0; k < 2; k++) {
		attends_by_one_op("gpt", file[k], HD_OP_ATTENTION, HD_OP_ATTENTION_DX, 2);
		attends_by_one_op("sdpa", file[k], HD_OP_ATTENTION, HD_OP_ATTENTION_DX, 2);
		attends_by_one_op("encoder", file[k], HD_OP_ATTEND, HD_OP_ATTEND_DX, 1);
	}
	agrees_in_every_form("sdpa");
	agrees_in_every_form("encoder");
}

/* Exported for evaluation before any training, by both exporters: equal tensors became one, constants lie
 * beside parameters. */
static void models_exported_fresh_train_as_in_pytorch(void **state)
{
	static const char *const model[] = { "norms", "fresh" }, *const file[] = { "eval.onnx", "new.onnx" };

	(void)state;
	for (int m = 0; m < 2; m++)
		for (int k = m; k < 2; k++)               /* the older one writes a buffer like a parameter */
			agrees(model[m], file[k], HD_KERNELS_PORTABLE, true);
}

/* By both exporters, opsets 20 and 22. */
static void windows_and_ways_in_time_train_as_in_pytorch(void **state)
{
	static const char *const model[] = { "windows", "ways" }, *const file[] = { "free.onnx", "new.onnx" };

	(void)state;
	for (int m = 0; m < 2; m++)
		for (int k = 0; k < 2; k++)
			agrees(model[m], file[k], HD_KERNELS_PORTABLE, true);
}

static void a_mean_over_samples_is_one_over_tokens_where_all_count(void **state)
{
	(void)state;
	agrees("gpt", "free.onnx", HD_KERNELS_PORTABLE, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exported_mlp_trains_as_in_pytorch),
		cmocka_unit_test(an_exported_lenet_trains_as_in_pytorch),
		cmocka_unit_test(an_exported_resnet_trains_as_in_pytorch),
		cmocka_unit_test(an_exported_gpt_trains_as_in_pytorch),
		cmocka_unit_test(attention_written_out_becomes_one_op),
		cmocka_unit_test(an_exported_lstm_trains_as_in_pytorch),
		cmocka_unit_test(an_exported_gru_trains_as_in_pytorch),
		cmocka_unit_test(tokens_with_one_label_train_as_in_pytorch),
		cmocka_unit_test(models_exported_fresh_train_as_in_pytorch),
		cmocka_unit_test(windows_and_ways_in_time_train_as_in_pytorch),
		cmocka_unit_test(a_mean_over_samples_is_one_over_tokens_where_all_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
