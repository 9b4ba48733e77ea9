/* testing.h -- a model on a device with everything that engine would hand it, for tests of
 * this room: included by *_test.c only.
 *
 * Parameters and inputs are drawn from Philox; labels and tokens lie in their range and
 * every seventh label is masked. Failures end the test. */
#ifndef HD_DEVICE_TESTING_H
#define HD_DEVICE_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/model.h"
#include "graph/pass.h"
#include "graph/shard.h"
#include "graph/slices.h"
#include "device/program.h"
#include "tests/check.h"

struct hd_stage {
	struct hd_arena arena;
	struct hd_graph graph;
	struct hd_wholes wholes;
	struct hd_layout layout;
	struct hd_program program;
	uint64_t rows;                    /* the largest */
	float *params, *grad;             /* flat */
	void *input[HD_MAX_ENDS];
	/* how many values an integer input may take; 0: what its reader says */
	int64_t bound[HD_MAX_ENDS];
	uint8_t *memory;
	struct hd_fold leaf;              /* copies every gradient into `grad` */
	struct hd_bind bind;
};

struct hd_stage_model {
	const char *name;
	struct hd_model_arg arg[16]; uint32_t nargs;
	struct hd_model_opts opts;
	bool optimize;
	uint32_t shards; bool sequence;           /* of shard.h */
};

static const float hd_stage_weights[] = { 0.5f, 2, 1.25f };

/* Small forms of every model and loss: each op that a model uses, in seconds under valgrind. */
static const struct hd_stage_model hd_stage_models[] = {
	{ "mlp", { { "input", "[3, 5]" }, { "hidden", "[7, 6]" }, { "classes", "4" }, { "act", "gelu" } }, 4, { 0 }, false, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_MSE, .normalize = 0 }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_CROSS_ENTROPY, .smoothing = 0.3f, .nclass_weights = 3, .class_weights = hd_stage_weights, .ignores = true, .ignore = 1 }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_SOFT, .smoothing = 0.3f, .nclass_weights = 3, .class_weights = hd_stage_weights }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_KL }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_BCE, .npos_weights = 3, .pos_weights = hd_stage_weights }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_L1 }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_SMOOTH_L1, .delta = 0.5f }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "3" }, { "act", "tanh" } }, 4, { .loss = HD_LOSS_HUBER, .delta = 0.5f }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[5]" }, { "classes", "4" }, { "act", "tanh" } }, 4, { .smoothing = 0.3f }, true, 2, false },
	{ "lenet", { { "height", "12" }, { "width", "12" } }, 2, { 0 }, true, 1, false },
	{ "resnet18", { { "stem", "small" }, { "height", "16" }, { "width", "14" }, { "base", "2" }, { "classes", "3" }, { "norm", "group" }, { "groups", "2" } },
	  7, { 0 }, true, 1, false },
	{ "vgg16", { { "channels", "1" }, { "height", "32" }, { "width", "32" }, { "base", "1" }, { "classes", "3" }, { "hidden", "7" }, { "dropout", "0.2" } },
	  7, { 0 }, true, 1, false },
	{ "gpt", { { "layers", "2" }, { "width", "12" }, { "heads", "3" }, { "context", "5" }, { "vocab", "11" } }, 5, { 0 }, false, 1, false },
	{ "gpt", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "context", "6" }, { "vocab", "13" }, { "dropout", "0.2" } }, 6,
	  { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 1, false },
	{ "llama", { { "layers", "2" }, { "width", "12" }, { "heads", "3" }, { "kv_heads", "1" }, { "hidden", "10" }, { "context", "5" }, { "vocab", "11" } }, 7,
	  { 0 }, true, 1, false },
	{ "llama", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "context", "4" }, { "vocab", "7" }, { "tie", "true" } }, 7,
	  { 0 }, false, 1, false },
	{ "bert", { { "layers", "2" }, { "width", "12" }, { "heads", "3" }, { "hidden", "10" }, { "context", "5" }, { "vocab", "11" }, { "share", "0.5" } }, 7,
	  { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 1, false },
	{ "bert", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "context", "4" }, { "vocab", "7" }, { "share", "0" }, { "pad", "3" } }, 7,
	  { 0 }, true, 1, false },
	{ "bert", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "context", "4" }, { "vocab", "9" }, { "head", "cls" }, { "classes", "3" } }, 7,
	  { 0 }, true, 1, false },
	{ "inception", { { "stem", "cifar" }, { "height", "6" }, { "width", "6" }, { "base", "8" }, { "blocks", "[1]" }, { "norm", "group" }, { "groups", "2" } },
	  7, { 0 }, true, 1, false },
	{ "gemma2", { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "kv_heads", "1" }, { "hidden", "6" }, { "context", "5" }, { "vocab", "7" }, { "window", "2" }, { "cap", "0.6" },
	  { "final_cap", "2" } }, 10, { 0 }, true, 1, false },
	{ "phi3", { { "layers", "1" }, { "width", "12" }, { "heads", "3" }, { "kv_heads", "1" }, { "hidden", "6" }, { "context", "5" }, { "vocab", "7" }, { "rope_part", "0.5" }, { "window", "3" } },
	  9, { 0 }, true, 1, false },
	{ "qwen3", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "kv_heads", "1" }, { "hidden", "6" }, { "context", "4" }, { "vocab", "7" }, { "rope_kind", "yarn" },
	  { "rope_factor", "3" }, { "bias", "attention" } }, 10, { 0 }, true, 1, false },
	{ "neox", { { "layers", "2" }, { "width", "16" }, { "heads", "2" }, { "hidden", "6" }, { "context", "4" }, { "vocab", "7" } }, 6, { 0 }, true, 1, false },
	{ "vit", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "channels", "2" }, { "image", "4" }, { "patch", "2" }, { "classes", "3" } }, 8, { 0 }, true, 1, false },
	{ "mixtral", { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "context", "5" }, { "vocab", "7" }, { "experts", "3" }, { "balance", "0.3" } }, 8, { 0 }, true, 1, false },
	{ "mixtral", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "context", "6" }, { "vocab", "7" }, { "experts", "4" }, { "capacity", "0.7" }, { "balance", "0.5" },
	  { "inputs", "[attention_mask]" } }, 10, { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 1, false },
	{ "qwen2-moe", { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "context", "4" }, { "vocab", "7" }, { "experts", "5" }, { "chosen", "3" }, { "expert_hidden", "5" },
	  { "shared_hidden", "4" }, { "sparse_every", "2" } }, 11, { 0 }, true, 1, false },
	{ "qwen3-moe", { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "context", "4" }, { "vocab", "7" }, { "hidden", "6" }, { "experts", "3" }, { "chosen", "1" }, { "expert_hidden", "5" },
	  { "dense", "[0]" }, { "renormalize", "true" }, { "act", "gelu" } }, 12, { 0 }, true, 1, false },
	{ "t5", { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "hidden", "6" }, { "context", "6" }, { "target", "4" }, { "vocab", "7" }, { "buckets", "8" }, { "distance", "5" } }, 9, { 0 }, true, 1, false },
	{ "t5", { { "layers", "1" }, { "decoder_layers", "2" }, { "width", "6" }, { "heads", "2" }, { "head_dim", "4" }, { "hidden", "6" }, { "context", "4" }, { "target", "5" }, { "vocab", "7" },
	  { "ff", "gated-gelu_tanh" }, { "tie", "false" }, { "inputs", "[attention_mask]" } }, 12, { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 1, false },
	{ "lstm", { { "layers", "2" }, { "width", "5" }, { "hidden", "4" }, { "context", "5" }, { "vocab", "9" } }, 5, { 0 }, true, 1, false },
	{ "gru", { { "layers", "2" }, { "width", "3" }, { "hidden", "5" }, { "context", "4" }, { "vocab", "8" } }, 5, { 0 }, true, 1, false },
	{ "gcn", { { "input", "6" }, { "hidden", "4" }, { "classes", "3" }, { "slots", "3" }, { "norm", "none" }, { "act", "tanh" }, { "layers", "3" } },
	  7, { 0 }, true, 1, false },
	{ "gat", { { "input", "6" }, { "hidden", "4" }, { "classes", "3" }, { "slots", "3" }, { "heads", "2" }, { "out_heads", "3" }, { "dropout", "0.2" } },
	  7, { 0 }, false, 1, false },
	{ "sage-mean", { { "input", "6" }, { "hidden", "7" }, { "classes", "3" }, { "slots", "3" }, { "act", "gelu" } }, 5, { 0 }, true, 1, false },
	{ "mlp", { { "input", "[9]" }, { "hidden", "[7, 6]" }, { "classes", "4" }, { "act", "gelu" } }, 4, { 0 }, true, 2, false },
	{ "gpt", { { "layers", "1" }, { "width", "12" }, { "heads", "3" }, { "context", "5" }, { "vocab", "11" } }, 5,
	  { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 3, false },
	{ "llama", { { "layers", "1" }, { "width", "16" }, { "heads", "4" }, { "kv_heads", "2" }, { "hidden", "10" }, { "context", "4" }, { "vocab", "7" } }, 7,
	  { 0 }, false, 2, false },
	{ "bert", { { "layers", "1" }, { "width", "8" }, { "heads", "4" }, { "context", "4" }, { "vocab", "9" }, { "share", "0" }, { "pad", "3" } }, 7,
	  { 0 }, true, 4, false },
	{ "mistral", { { "layers", "1" }, { "width", "16" }, { "heads", "4" }, { "kv_heads", "2" }, { "hidden", "10" }, { "context", "5" }, { "vocab", "7" }, { "window", "2" }, { "rope_kind", "linear" },
	  { "rope_factor", "2" } }, 10, { 0 }, true, 2, false },
	{ "gemma2", { { "layers", "1" }, { "width", "16" }, { "heads", "4" }, { "kv_heads", "2" }, { "hidden", "10" }, { "context", "5" }, { "vocab", "7" }, { "window", "2" }, { "cap", "0.6" } },
	  9, { 0 }, true, 2, false },
	{ "neox", { { "layers", "1" }, { "width", "16" }, { "heads", "2" }, { "hidden", "6" }, { "context", "4" }, { "vocab", "7" } }, 6, { 0 }, true, 2, false },
	{ "gpt", { { "layers", "1" }, { "width", "12" }, { "heads", "3" }, { "context", "6" }, { "vocab", "11" }, { "dropout", "0.2" } }, 6,
	  { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN }, true, 3, true },
	{ "llama", { { "layers", "1" }, { "width", "16" }, { "heads", "4" }, { "kv_heads", "2" }, { "hidden", "10" }, { "context", "4" }, { "vocab", "7" } }, 7,
	  { 0 }, true, 2, true },
};
enum { HD_STAGE_NMODELS = sizeof hd_stage_models / sizeof hd_stage_models[0] };

/* The first of that name. */
static inline const struct hd_stage_model *hd_stage_model_of(const char *name)
{
	const struct hd_stage_model *model = hd_stage_models;

	while (strcmp(model->name, name) != 0)
		model++;
	return model;
}

static inline float hd_stage_number(uint64_t seed, uint32_t stream, uint64_t i)
{
	const uint32_t counter[4] = { (uint32_t)(i / 4), stream, 0, 0 };

	return 2.0f * hd_uniform(hd_philox(counter, seed).word[i % 4]) - 1.0f;
}

/* How many values an integer input may take: by the first op that reads it. */
static inline int64_t hd_stage_bound(const struct hd_graph *graph, uint32_t value)
{
	for (uint32_t i = 0; i < graph->nnodes; i++)
		for (uint8_t k = 0; k < graph->node[i].nin; k++)
			if (graph->node[i].in[k] == value && graph->node[i].op == HD_OP_MASK_TOKENS) {
				return graph->node[i].attr.i[1];
			} else if (graph->node[i].in[k] == value && graph->node[i].op == HD_OP_GATHER) {
				return graph->value[graph->node[i].in[0]].dim[graph->node[i].attr.i[0]];
			} else if (graph->node[i].in[k] == value && (graph->node[i].op == HD_OP_SCATTER_ADD ||
				graph->node[i].op == HD_OP_EXPERT_MATMUL)) {
				return graph->value[graph->node[i].in[2]].dim[graph->node[i].op ==
					HD_OP_SCATTER_ADD ? graph->node[i].attr.i[0] : 0];
			} else if (graph->node[i].in[k] == value && (graph->node[i].op == HD_OP_WHERE ||
				graph->node[i].op == HD_OP_EDGE_SOFTMAX)) {        /* runs of equal ends */
				return 2;
			} else if (graph->node[i].in[k] == value) {
				const struct hd_value *other =
					&graph->value[graph->node[i].in[graph->node[i].op == HD_OP_EMBED ? 1 :
					0]];
				return graph->node[i].op == HD_OP_EMBED ? other->dim[0] :
					other->dim[other->rank - 1];
			}
	return 1;
}

static inline bool hd_stage_embeds(const struct hd_graph *graph, uint32_t value)
{
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (graph->node[i].op == HD_OP_EMBED && graph->node[i].in[0] == value)
			return true;
	return false;
}

/* -1 masks a label; an embedding has no such row. */
static inline void hd_stage_fill_input(struct hd_stage *stage, uint32_t i, uint64_t seed)
{
	const struct hd_value *value = &stage->graph.value[stage->graph.input[i]];
	uint64_t elems = hd_value_elems(value, stage->rows);
	int64_t bound = stage->bound[i] ? stage->bound[i] : hd_stage_bound(&stage->graph,
		stage->graph.input[i]);
	bool tokens = i == 0 || hd_stage_embeds(&stage->graph, stage->graph.input[i]);
	bool mask = strcmp(hd_graph_text_of(&stage->graph, value->name), "attention_mask") == 0;

	stage->input[i] = calloc(elems + 1, hd_dtype_bytes((enum hd_dtype)value->dtype));
	for (uint64_t e = 0; e < elems; e++) {
		float x = hd_stage_number(seed, 100 + i, e);
		if (value->dtype == HD_F32)
			((float *)stage->input[i])[e] = x;
		else if (mask)
			((int32_t *)stage->input[i])[e] = e % 4 != 3;
		else
			((int32_t *)stage->input[i])[e] = !tokens &&
				e % 7 == 6 ? -1 : (int32_t)((x + 1.0f) * 0.5f * (float)bound);
	}
}

/* Where the slices of a tensor lie in a flat vector. */
static inline struct hd_sliced hd_stage_slices(const struct hd_stage *stage, uint32_t tensor, float *flat,
	float **slice)
{
	const uint32_t *param = stage->wholes.param + stage->wholes.first[tensor];

	for (uint32_t s = 0; s < hd_whole_slices(&stage->wholes, tensor); s++)
		slice[s] = flat + stage->layout.at[param[s]];
	return hd_whole_shape(&stage->graph, param[0]);
}

/* A tensor in its natural order; the caller frees it. */
static inline float *hd_stage_tensor(const struct hd_stage *stage, uint32_t tensor, float *flat, uint64_t *n)
{
	float *slice[HD_MAX_SHARDS];
	const struct hd_sliced shape = hd_stage_slices(stage, tensor, flat, slice);
	float *whole = calloc(hd_sliced_elems(&shape) + 1, sizeof *whole);

	*n = hd_sliced_elems(&shape);
	hd_slices_get(&shape, slice, 0, *n, whole);
	return whole;
}

/* The graph is there, differentiated or not; everything else follows. rows[0] is the largest. */
static inline void hd_stage_set(struct hd_stage *stage, const uint64_t *rows, uint32_t nrows, uint64_t seed)
{
	struct hd_diag diag = { "" };

	stage->rows = rows[0];
	CHECK(hd_layout_make(&stage->layout, &stage->graph, &stage->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_program_make(&stage->program, &stage->graph, &stage->layout, true, rows, nrows,
		&stage->arena, &diag) == HD_OK, "%s", diag.text);
	stage->params = calloc(stage->layout.held_elems, sizeof(float));
	stage->grad = calloc(stage->layout.grad_elems, sizeof(float));
	stage->memory = aligned_alloc(64, stage->program.memory.len_bytes + 64);
	/* not numbers: what is read too early shows */
	memset(stage->memory, 0xFF, stage->program.memory.len_bytes + 64);
	CHECK(hd_wholes_make(&stage->wholes, &stage->graph, &stage->arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t t = 0; t < stage->wholes.n; t++) {
		float *slice[HD_MAX_SHARDS];
		const struct hd_sliced shape = hd_stage_slices(stage, t, stage->params, slice);
		for (uint64_t e = 0; e < hd_sliced_elems(&shape); e++) {
			const float x = 0.4f * hd_stage_number(seed, t, e);
			hd_slices_put(&shape, slice, e, 1, &x);
		}
	}
	for (uint32_t i = 0; i < stage->graph.ninputs; i++)
		hd_stage_fill_input(stage, i, seed);
	stage->leaf = (struct hd_fold){ .dst = stage->grad };
	stage->bind = (struct hd_bind){ .rows = stage->rows, .draw = { .seed = seed, .step = 2, .vn = 1 },
		.params = stage->params,
		.input = (const void *const *)stage->input, .arena = stage->memory, .fold = &stage->leaf,
		.nfolds = 1 };
}

static inline void hd_stage_make(struct hd_stage *stage, const struct hd_stage_model *model,
	const uint64_t *rows, uint32_t nrows)
{
	struct hd_diag diag = { "" };

	memset(stage, 0, sizeof *stage);
	hd_arena_init(&stage->arena, 0);
	hd_graph_init(&stage->graph, &stage->arena);
	CHECK(hd_model_build(&stage->graph, model->name, model->arg, model->nargs, &model->opts,
		&diag) == HD_OK, "%s", diag.text);
	for (uint32_t i = 0; i < stage->graph.ninputs; i++)
		stage->bound[i] = hd_stage_bound(&stage->graph, stage->graph.input[i]);
	CHECK(hd_graph_shard(&stage->graph, model->shards, model->sequence, &diag) == HD_OK, "%s", diag.text);
	if (model->optimize)
		CHECK(hd_graph_optimize(&stage->graph, rows[0], &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_autodiff(&stage->graph, &diag) == HD_OK, "%s", diag.text);
	hd_stage_set(stage, rows, nrows, 3);
}

static inline void hd_stage_run(struct hd_stage *stage, struct hd_device *device, enum hd_run_phase phase)
{
	struct hd_diag diag = { "" };
	uint64_t token = 0;

	CHECK(device->ops->run(device, &stage->program, phase, &stage->bind, &token, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(device->ops->wait(device, token, &diag) == HD_OK, "%s", diag.text);
}

/* Whole gradients: the parts of tied parameters are added, each to its parameter's. */
static inline void hd_stage_join(struct hd_stage *stage)
{
	const struct hd_layout *l = &stage->layout;

	for (uint32_t g = l->nparams; g < l->ngrads; g++)
		for (uint64_t i = 0; i < l->len[g]; i++)
			stage->grad[l->at[l->grad_param[g]] + i] += stage->grad[l->at[g] + i];
}

static inline void hd_stage_load(struct hd_stage *stage, struct hd_device *device)
{
	struct hd_diag diag = { "" };

	CHECK(device->ops->load(device, &stage->program, &diag) == HD_OK, "%s", diag.text);
}

static inline void hd_stage_finish(struct hd_stage *stage)
{
	for (uint32_t i = 0; i < stage->graph.ninputs; i++)
		free(stage->input[i]);
	free(stage->params);
	free(stage->grad);
	free(stage->memory);
	hd_arena_finish(&stage->arena);
}

static inline struct hd_device *hd_stage_device(const char *kind, uint32_t nthreads)
{
	struct hd_device_spec spec = { .nthreads = nthreads, .kernels = HD_KERNELS_PORTABLE };
	struct hd_device *device = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_device_create(&device, kind, &spec, &diag) == HD_OK, "%s", diag.text);
	return device;
}

#endif
