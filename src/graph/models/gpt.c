/* The decoder of Radford et al., "Language models are unsupervised multitask learners" (2019):
 * norms before each block, learned positions, gelu in its tanh form, head tied to the token
 * table; arguments choose otherwise. Names and storage ([in, out]) of the published weights. */
#include "graph/models/rows.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS, WIDTH, HEADS, CONTEXT, VOCAB, DROPOUT, HIDDEN, EPS, INPUTS, POSITIONS, ACT, TIE, SCALED,
	BY_LAYER };
/* bits of INPUTS */
enum { MASKED = 1, PLACED = 2, DOCUMENTS = 4 };

const struct hd_model_param hd_gpt_params[] = {
	[LAYERS]  = { "layers",  HD_ARG_INT,  "4",   1, 1000,    .about = "transformer blocks" },
	[WIDTH]   = { "width",   HD_ARG_INT,  "128", 2, 1 << 16, .about = "channels; a multiple of heads" },
	[HEADS]   = { "heads",   HD_ARG_INT,  "4",   1, 1024,    .about = "attention heads" },
	[CONTEXT] = { "context", HD_ARG_INT,  "128", 2, 1 << 16, .about = "positions of a sample" },
	[VOCAB]   = { "vocab",   HD_ARG_INT,  "256", 2, 1 << 20, .about = "tokens; 256: bytes" },
	[DROPOUT] = { "dropout", HD_ARG_REAL, "0",   0, 0.95,
	.about = "share of elements dropped after embedding, attention and mlp" },
	[HIDDEN]  = { "hidden",  HD_ARG_INT,  "0",   0, 1 << 18,
	.about = "channels inside the mlp; 0: four times width", .late = true },
	[EPS]     = { "eps",     HD_ARG_REAL, "1e-05", 1e-12, 1, .about = "added to the variance of norms",
	.late = true },
	[INPUTS]  = { "inputs",  HD_ARG_SET,  "[]",  0, 0,
	.about = "what is read beside x: attention_mask, position_ids; document_ids: a token sees its "
		"document alone", .words = "attention_mask|position_ids|document_ids",
	.late = true },
	[POSITIONS] = { "positions", HD_ARG_INT, "0", 0, 1 << 16,
	.about = "positions in the table; 0: as many as context", .late = true },
	[ACT]     = { "act",     HD_ARG_WORD, "gelu_tanh", 0, 0,
	.about = "of the mlp: gelu_tanh, gelu, relu, silu, tanh", .late = true },
	[TIE]     = { "tie",     HD_ARG_WORD, "true", 0, 0,
	.about = "true: the head is the token table; false: lm_head.weight", .late = true },
	[SCALED]  = { "scale",   HD_ARG_WORD, "true", 0, 0,
	.about = "true: scores of attention are divided by the root of a head's channels", .late = true },
	[BY_LAYER] = { "scale_by_layer", HD_ARG_WORD, "false", 0, 0,
	.about = "true: scores of block i, from 1 on, are divided by i, too", .late = true },
	{ 0 },
};

static const float init_scale = 0.02f;

struct gpt { struct hd_maker m; int64_t width, hidden; int32_t heads; float dropout, residual_scale, eps;
	uint32_t mask, documents;                 /* HD_NONE: all tokens are seen; of one document */
	enum hd_act act;
	bool tie, scaled, by_layer;
};

static uint32_t layernorm(struct gpt *g, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&g->m, full, ".weight", HD_INIT_ONES, 0, HD_DIMS(g->width));
	uint32_t beta = hd_make_param(&g->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(g->width));
	return hd_make3(&g->m, HD_OP_LAYERNORM, x, gamma, beta, (struct hd_attr){ .f = { g->eps } });
}

static uint32_t linear(struct gpt *g, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out, float scale)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t w = hd_make_param(&g->m, full, ".weight", HD_INIT_NORMAL, scale, HD_DIMS(in, out));
	uint32_t b = hd_make_param(&g->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(out));
	x = hd_make2(&g->m, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { 0, 0 } });
	return hd_make2(&g->m, HD_OP_BIAS, x, b, (struct hd_attr){ .i = { -1 } });
}

static uint32_t drop(struct gpt *g, uint32_t x)
{
	return g->dropout > 0 ? hd_make1(&g->m, HD_OP_DROPOUT, x, (struct hd_attr){ .f = { g->dropout } }) :
		x;
}

/* What scores are multiplied with; 0: as usual. In f64, as the library has it. */
static float scale_of(const struct gpt *g, int64_t layer)
{
	double scale = g->scaled ? 1 / sqrt((double)(g->width / g->heads)) : 1;

	return g->scaled && !g->by_layer ? 0 : (float)(g->by_layer ? scale / (double)(layer + 1) : scale);
}

/* With a mask or a scale of their own q, k and v are operands of their own: that form knows one. */
static uint32_t attention(struct gpt *g, int64_t layer, uint32_t qkv)
{
	const float scale = scale_of(g, layer);
	uint32_t part[3];

	if (g->mask == HD_NONE && g->documents == HD_NONE && scale == 0)
		return hd_make1(&g->m, HD_OP_ATTENTION, qkv, (struct hd_attr){ .i = { g->heads, 1 } });
	for (int32_t i = 0; i < 3; i++)
		part[i] = hd_make1(&g->m, HD_OP_SLICE, qkv,
			(struct hd_attr){ .i = { 2, i * (int32_t)g->width, 1, (int32_t)g->width } });
	if (g->documents != HD_NONE)
		return hd_make4(&g->m, HD_OP_ATTEND_PAD, part[0], part[1], part[2], g->documents,
			(struct hd_attr){ .i = { g->heads, g->heads, 1, HD_PAD_OTHERS }, .f = { scale } });
	if (g->mask == HD_NONE)
		return hd_make3(&g->m, HD_OP_ATTEND, part[0], part[1], part[2],
			(struct hd_attr){ .i = { g->heads, g->heads, 1 }, .f = { scale } });
	return hd_make4(&g->m, HD_OP_ATTEND_PAD, part[0], part[1], part[2], g->mask,
		(struct hd_attr){ .i = { g->heads, g->heads, 1, 0 }, .f = { scale } });
}

static uint32_t block(struct gpt *g, int64_t i, uint32_t x)
{
	char prefix[32];

	snprintf(prefix, sizeof prefix, "h.%lld.", (long long)i);
	uint32_t h = layernorm(g, prefix, "ln_1", x);
	h = linear(g, prefix, "attn.c_attn", h, g->width, 3 * g->width, init_scale);
	h = attention(g, i, h);
	h = drop(g, linear(g, prefix, "attn.c_proj", h, g->width, g->width, g->residual_scale));
	x = hd_make2(&g->m, HD_OP_ADD, x, h, (struct hd_attr){ 0 });
	h = layernorm(g, prefix, "ln_2", x);
	h = hd_make1(&g->m, HD_OP_ACT, linear(g, prefix, "mlp.c_fc", h, g->width, g->hidden, init_scale),
		(struct hd_attr){ .i = { (int32_t)g->act } });
	h = drop(g, linear(g, prefix, "mlp.c_proj", h, g->hidden, g->width, g->residual_scale));
	return hd_make2(&g->m, HD_OP_ADD, x, h, (struct hd_attr){ 0 });
}

static enum hd_err check(struct gpt *g, const struct hd_model_value *value, const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	long long width = value[WIDTH].n, heads = value[HEADS].n, context = value[CONTEXT].n,
		positions = value[POSITIONS].n ? value[POSITIONS].n : context;

	if (width % heads != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'width' and 'heads': %lld is no multiple of %lld",
			width, heads);
	if (positions < context && !(value[INPUTS].n & PLACED))
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'positions' and 'context': a table of %lld positions "
			"is too short for samples of %lld", positions, context);
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model 'gpt' predicts tokens: its loss is cross-entropy");
	enum hd_err err = hd_model_act(&value[ACT], &g->act, diag);
	if (!err)
		err = hd_model_truth(&hd_gpt_params[TIE], &value[TIE], &g->tie, diag);
	if (!err)
		err = hd_model_truth(&hd_gpt_params[SCALED], &value[SCALED], &g->scaled, diag);
	return err ? err : hd_model_truth(&hd_gpt_params[BY_LAYER], &value[BY_LAYER], &g->by_layer, diag);
}

enum hd_err hd_gpt_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	int64_t width = value[WIDTH].n, heads = value[HEADS].n, context = value[CONTEXT].n,
		vocab = value[VOCAB].n, inputs = value[INPUTS].n,
		positions = value[POSITIONS].n ? value[POSITIONS].n : context;
	struct gpt g = { .m = { graph, diag, HD_OK }, .width = width,
		.hidden = value[HIDDEN].n ? value[HIDDEN].n : 4 * width, .eps = (float)value[EPS].real,
		.heads = (int32_t)heads, .dropout = (float)value[DROPOUT].real,
		.residual_scale = init_scale / sqrtf(2.0f * (float)value[LAYERS].n) };

	enum hd_err err = check(&g, value, opts, diag);
	if (err)
		return err;
	if (inputs & DOCUMENTS && (inputs & MASKED || !(inputs & PLACED)))
		return hd_fail(diag, HD_E_INVAL,
			"argument 'inputs': document_ids goes with position_ids, since positions begin again "
			"in each document, and without attention_mask: what fills a sample "
			"up is a document of its own");
	uint32_t x = hd_make_input(&g.m, "x", HD_I32, HD_DIMS(-1, context));
	g.mask = inputs & MASKED ? hd_make_input(&g.m, "attention_mask", HD_I32, HD_DIMS(-1, context)) :
		HD_NONE;
	g.documents = inputs & DOCUMENTS ? hd_make_input(&g.m, "document_ids", HD_I32, HD_DIMS(-1, context)) :
		HD_NONE;
	uint32_t wte = hd_make_param(&g.m, "wte", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(vocab, width));
	uint32_t wpe = hd_make_param(&g.m, "wpe", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(positions, width));
	if (inputs & PLACED)
		wpe = hd_make2(&g.m, HD_OP_EMBED, hd_make_input(&g.m, "position_ids", HD_I32,
			HD_DIMS(-1, context)), wpe, (struct hd_attr){ 0 });
	else if (positions > context)
		wpe = hd_make1(&g.m, HD_OP_SLICE, wpe, (struct hd_attr){ .i = { 0, 0, 1,
			(int32_t)context } });
	uint32_t h = hd_make2(&g.m, HD_OP_EMBED, x, wte, (struct hd_attr){ 0 });
	h = drop(&g, hd_make2(&g.m, HD_OP_ADD, h, wpe, (struct hd_attr){ 0 }));
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(&g, i, h);
	h = layernorm(&g, "", "ln_f", h);
	uint32_t head = g.tie ? wte : hd_make_param(&g.m, "lm_head", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(vocab, width));
	uint32_t logits = hd_make2(&g.m, HD_OP_MATMUL, h, head, (struct hd_attr){ .i = { 0, 1 } });
	hd_make_ends(&g.m, opts, logits, logits, context, vocab);
	return g.m.err;
}
