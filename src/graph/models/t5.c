/* The encoder-decoder of Raffel et al., "Exploring the limits of transfer learning with a unified
 * text-to-text
 * transformer" (2020): norms without mean and bias before each block, positions by a bias of the scores that
 * all layers share, scores that are not scaled. With names and storage ([out, in]) of Hugging Face's
 * T5ForConditionalGeneration, and the shapes of T5 1.1 and Flan-T5 (gated mlp, a head of its own).
 *
 * x is what the encoder reads, y what the decoder shall say: it reads y moved on by one, with `start` first
 * and `pad` where y has no label (-1). Tokens that attention_mask hides are seen by neither.
 *
 * Scores are values here ([N, heads, Tq, Tk]), since a bias of them has a gradient. */
#include "graph/models/rows.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS, DECODER_LAYERS, WIDTH, HEADS, HEAD_DIM, HIDDEN, CONTEXT, TARGET, VOCAB, BUCKETS,
	DISTANCE, EPS, FF,
	TIE, SCALE, START, PAD, INPUTS };
/* bits of INPUTS */
enum { MASKED = 1 };

const struct hd_model_param hd_t5_params[] = {
	[LAYERS]   = { "layers",   HD_ARG_INT,  "4",     1, 1000,    .about = "blocks of the encoder" },
	[DECODER_LAYERS] = { "decoder_layers", HD_ARG_INT, "0", 0, 1000,
	.about = "blocks of the decoder; 0: as many" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "128",   1, 1 << 16, .about = "channels" },
	[HEADS]    = { "heads",    HD_ARG_INT,  "4",     1, 1024,    .about = "attention heads" },
	[HEAD_DIM] = { "head_dim", HD_ARG_INT,  "0",     0, 1 << 14,
	.about = "channels of each head; 0: width / heads" },
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "0",     0, 1 << 18,
	.about = "channels inside the mlp; 0: four times width" },
	[CONTEXT]  = { "context",  HD_ARG_INT,  "128",   2, 2048,    .about = "tokens of x" },
	[TARGET]   = { "target",   HD_ARG_INT,  "0",     0, 2048,
		   .about = "tokens of y; 0: as many as of x" },
	[VOCAB]    = { "vocab",    HD_ARG_INT,  "256",   2, 1 << 20, .about = "tokens; 256: bytes" },
	[BUCKETS]  = { "buckets",  HD_ARG_INT,  "32",    4, 4096,
	.about = "distances that have a bias of their own" },
	[DISTANCE] = { "distance", HD_ARG_INT,  "128",   2, 1 << 20,
		.about = "from here on all are one bucket" },
	[EPS]      = { "eps",      HD_ARG_REAL, "1e-6",  1e-30, 1,
	.about = "added to the mean square before the root" },
	[FF]       = { "ff",       HD_ARG_WORD, "relu",  0, 0,
	.about = "the mlp: relu, gelu, gelu_tanh, silu, or gated-... with one of these" },
	[TIE]      = { "tie",      HD_ARG_WORD, "true",  0, 0,
		      .about = "true: the head is the token table" },
	[SCALE]    = { "scale",    HD_ARG_WORD, "auto",  0, 0,
	.about = "true: what the head reads is divided by the root of width; auto: as tie" },
	[START]    = { "start",    HD_ARG_INT,  "0",     0, 1 << 20,
		.about = "what the decoder reads first" },
	[PAD]      = { "pad",      HD_ARG_INT,  "0",     0, 1 << 20,
	.about = "what it reads where y has no label" },
	[INPUTS]   = { "inputs",   HD_ARG_SET,  "[]",    0, 0,
	.about = "what is read beside x and y: attention_mask", .words = "attention_mask" },
	{ 0 },
};

static const struct hd_attr none, turned = { .i = { 0, 1 } };

struct t5 {
	struct hd_maker m;
	int64_t width, hidden, each, context, target, buckets, distance;
	int32_t heads;
	enum hd_act act;
	bool gated, tie, scale;
	float eps;
	uint32_t mask;                    /* f32 [N,1,1,T], 1 where a token of x is seen; HD_NONE: all are */
};

/* One stack: its queries' positions, the bias [heads,Tq,Tk], and which keys are seen. */
struct t5_side { const char *name; int64_t positions; uint32_t bias, seen, encoded, seen_encoded; };

static uint32_t norm(struct t5 *t, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	return hd_make2(&t->m, HD_OP_RMSNORM, x, hd_make_param(&t->m, full, ".weight", HD_INIT_ONES, 0,
		HD_DIMS(t->width)), (struct hd_attr){ .f = { t->eps } });
}

/* Initial deviations are Mesh TensorFlow's, from what comes in. */
static uint32_t linear(struct t5 *t, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out,
	double deviation)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	return hd_make2(&t->m, HD_OP_MATMUL, x, hd_make_param(&t->m, full, ".weight", HD_INIT_NORMAL,
		(float)deviation, HD_DIMS(out, in)), turned);
}

static uint32_t number(struct t5 *t, float x)
{
	uint32_t value = 0;

	if (t->m.err == HD_OK)
		t->m.err = hd_graph_const(t->m.graph, HD_F32, 1, &(int64_t){ 1 }, &x, &value, t->m.diag);
	return value;
}

/* ---- positions */

/* Of a key so far behind (below 0) or ahead of the query: half of the buckets are exact, the others grow by
 * the logarithm, as transformers counts them (f32). */
static int32_t bucket_of(const struct t5 *t, int64_t ahead, bool both)
{
	const int64_t n = both ? t->buckets / 2 : t->buckets, exact = n / 2,
		far = ahead < 0 ? -ahead : both ? ahead : 0;
	int64_t at = far;

	if (far >= exact) {
		const float log_far = logf((float)far / (float)exact) /
			(float)log((double)t->distance / (double)exact) * (float)(n - exact);
		at = exact + (int64_t)log_far;
		at = at < n ? at : n - 1;
	}
	return (int32_t)(at + (both && ahead > 0 ? n : 0));
}

/* A constant [positions, positions]: buckets, or 1 where a query sees a key that is not ahead. */
static uint32_t square(struct t5 *t, int64_t positions, bool both, bool causal)
{
	const size_t n = (size_t)(positions * positions);
	int32_t *at = t->m.err ? NULL : hd_arena_take(t->m.graph->arena, n, sizeof *at);
	uint32_t value = 0;

	if (!t->m.err && !at)
		t->m.err = hd_fail(t->m.diag, HD_E_NOMEM, "no memory for %lld positions",
			(long long)positions);
	for (size_t i = 0; at && i < n; i++) {
		const int64_t ahead = (int64_t)i % positions - (int64_t)i / positions;
		at[i] = causal ? ahead <= 0 : bucket_of(t, ahead, both);
	}
	if (!t->m.err)
		t->m.err = hd_graph_const(t->m.graph, HD_I32, 2, (int64_t[]){ positions, positions }, at,
			&value, t->m.diag);
	return value;
}

static uint32_t bias(struct t5 *t, const char *side, int64_t positions, bool both)
{
	char name[HD_MAX_NAME];

	snprintf(name, sizeof name, "%s.block.0.layer.0.SelfAttention.relative_attention_bias", side);
	uint32_t table = hd_make_param(&t->m, name, ".weight", HD_INIT_NORMAL,
		(float)(1 / sqrt((double)t->width)), HD_DIMS(t->buckets, t->heads));
	uint32_t each = hd_make2(&t->m, HD_OP_GATHER, table, square(t, positions, both, false), none);
	return hd_make1(&t->m, HD_OP_PERMUTE, each, (struct hd_attr){ .i = { 2, 0, 1 } });
}

/* ---- attention */

/* [N,T,heads each] -> [N,heads,T,each] */
static uint32_t by_head(struct t5 *t, uint32_t x, int64_t positions)
{
	x = hd_make1(&t->m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { -1, (int32_t)positions, t->heads,
		(int32_t)t->each } });
	return hd_make1(&t->m, HD_OP_PERMUTE, x, (struct hd_attr){ .i = { 0, 2, 1, 3 } });
}

/* What is hidden weighs exp of the least number: 0. bias, seen: HD_NONE, none. */
static uint32_t attention(struct t5 *t, const char *prefix, uint32_t x, uint32_t keys, int64_t nkeys,
	int64_t positions, uint32_t bias, uint32_t seen)
{
	const int64_t all = t->each * t->heads;
	const double in = 1 / sqrt((double)t->width);
	uint32_t q = by_head(t, linear(t, prefix, ".q", x, t->width, all, in / sqrt((double)t->each)),
		positions);
	uint32_t k = by_head(t, linear(t, prefix, ".k", keys, t->width, all, in), nkeys);
	uint32_t v = by_head(t, linear(t, prefix, ".v", keys, t->width, all, in), nkeys);
	uint32_t scores = hd_make2(&t->m, HD_OP_CONTRACT, q, k, turned);

	if (bias != HD_NONE)
		scores = hd_make2(&t->m, HD_OP_ADD, scores, bias, none);
	if (seen != HD_NONE)
		scores = hd_make3(&t->m, HD_OP_WHERE, seen, scores, number(t, -FLT_MAX), none);
	uint32_t y = hd_make2(&t->m, HD_OP_CONTRACT, hd_make1(&t->m, HD_OP_SOFTMAX, scores, none), v, none);
	y = hd_make1(&t->m, HD_OP_PERMUTE, y, (struct hd_attr){ .i = { 0, 2, 1, 3 } });
	y = hd_make1(&t->m, HD_OP_RESHAPE, y, (struct hd_attr){ .i = { -1, (int32_t)positions,
		(int32_t)all } });
	return linear(t, prefix, ".o", y, all, t->width, 1 / sqrt((double)all));
}

/* ---- blocks */

static uint32_t mlp(struct t5 *t, const char *prefix, uint32_t x)
{
	const double in = 1 / sqrt((double)t->width);
	uint32_t h = linear(t, prefix, t->gated ? ".wi_0" : ".wi", x, t->width, t->hidden, in);

	h = hd_make1(&t->m, HD_OP_ACT, h, (struct hd_attr){ .i = { (int32_t)t->act } });
	if (t->gated)
		h = hd_make2(&t->m, HD_OP_MUL, h, linear(t, prefix, ".wi_1", x, t->width, t->hidden, in),
			none);
	return linear(t, prefix, ".wo", h, t->hidden, t->width, 1 / sqrt((double)t->hidden));
}

enum part { SELF, CROSS, MLP };

/* x plus what part `layer` of block `block` makes of it. */
static uint32_t part(struct t5 *t, const struct t5_side *side, int64_t block, int layer, enum part is,
	uint32_t x)
{
	static const char *const names[] = { "SelfAttention", "EncDecAttention", "DenseReluDense" };
	char prefix[48], inside[80];

	snprintf(prefix, sizeof prefix, "%s.block.%lld.layer.%d.", side->name, (long long)block, layer);
	snprintf(inside, sizeof inside, "%s%s", prefix, names[is]);
	uint32_t h = norm(t, prefix, "layer_norm", x);
	switch (is) {
	case SELF:
		h = attention(t, inside, h, h, side->positions, side->positions, side->bias, side->seen);
		break;
	case CROSS:
		h = attention(t, inside, h, side->encoded, t->context, side->positions, HD_NONE,
			side->seen_encoded);
		break;
	case MLP:
		h = mlp(t, inside, h);
		break;
	}
	return hd_make2(&t->m, HD_OP_ADD, x, h, none);
}

static uint32_t stack(struct t5 *t, const struct t5_side *side, int64_t blocks, uint32_t x)
{
	const bool cross = side->encoded != HD_NONE;
	char last[32];

	for (int64_t i = 0; i < blocks; i++) {
		x = part(t, side, i, 0, SELF, x);
		if (cross)
			x = part(t, side, i, 1, CROSS, x);
		x = part(t, side, i, cross ? 2 : 1, MLP, x);
	}
	snprintf(last, sizeof last, "%s.final_layer_norm", side->name);
	return norm(t, "", last, x);
}

/* y moved on by one: what the decoder reads. */
static uint32_t moved_on(struct t5 *t, uint32_t y, int32_t start, int32_t pad)
{
	const uint32_t first = hd_make1(&t->m, HD_OP_SLICE, y, (struct hd_attr){ .i = { 1, 0, 1, 1 } });
	uint32_t before = hd_make1(&t->m, HD_OP_SLICE, y, (struct hd_attr){ .i = { 1, 0, 1,
		(int32_t)t->target - 1 } });
	const uint32_t nought = hd_make_ids(&t->m, 0, HD_DIMS(1));

	before = hd_make3(&t->m, HD_OP_WHERE, hd_make2(&t->m, HD_OP_LESS, before, nought, none),
		hd_make_ids(&t->m, pad, HD_DIMS(1)), before, none);
	return hd_make2(&t->m, HD_OP_CONCAT, hd_make2(&t->m, HD_OP_ADD, hd_make2(&t->m, HD_OP_MUL, first,
		nought, none), hd_make_ids(&t->m, start, HD_DIMS(1)), none), before,
		(struct hd_attr){ .i = { 1 } });
}

/* ---- arguments */

static enum hd_err check(const struct hd_model_value *value, const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	const long long vocab = value[VOCAB].n;

	if (!value[HEAD_DIM].n && value[WIDTH].n % value[HEADS].n != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'width' and 'heads': %lld channels do not divide "
			"into %lld heads; give head_dim", (long long)value[WIDTH].n,
				(long long)value[HEADS].n);
	if (value[DISTANCE].n <= value[BUCKETS].n / 2)
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'buckets' and 'distance': half of %lld buckets, one "
			"a position, reach to the distance %lld; give fewer, or a longer distance",
			(long long)value[BUCKETS].n, (long long)value[DISTANCE].n);
	if (value[START].n >= vocab || value[PAD].n >= vocab)
		return hd_fail(diag, HD_E_INVAL, "arguments 'start' and 'pad': %lld and %lld are not both "
			"tokens below %lld", (long long)value[START].n, (long long)value[PAD].n, vocab);
	if (value[TARGET].n == 1)
		return hd_fail(diag, HD_E_INVAL, "argument 'target' is 1: y has two tokens at least");
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model 't5' predicts tokens: its loss is cross-entropy");
	return HD_OK;
}

static enum hd_err words(struct t5 *t, const struct hd_model_value *value, struct hd_diag *diag)
{
	const char *const gated = "gated-";
	struct hd_model_value act = value[FF];
	enum hd_err err = hd_model_truth(&hd_t5_params[TIE], &value[TIE], &t->tie, diag);

	t->scale = t->tie;
	if (!err && strcmp(value[SCALE].word, "auto") != 0)
		err = hd_model_truth(&hd_t5_params[SCALE], &value[SCALE], &t->scale, diag);
	t->gated = !strncmp(act.word, gated, strlen(gated));
	if (t->gated)
		memmove(act.word, act.word + strlen(gated), strlen(act.word) - strlen(gated) + 1);
	if (!err && hd_model_act(&act, &t->act, NULL))
		err = hd_fail(diag, HD_E_INVAL, "argument 'ff' is '%s': it is relu, gelu, gelu_tanh or silu, "
			"or gated- and one of these", value[FF].word);
	return err;
}

static void whole(struct t5 *t, const struct hd_model_value *value, const struct hd_model_opts *opts)
{
	const int64_t vocab = value[VOCAB].n, width = t->width,
		blocks = value[DECODER_LAYERS].n ? value[DECODER_LAYERS].n : value[LAYERS].n;
	uint32_t x = hd_make_input(&t->m, "x", HD_I32, HD_DIMS(-1, t->context));
	uint32_t mask = value[INPUTS].n & MASKED ? hd_make_input(&t->m, "attention_mask", HD_I32,
		HD_DIMS(-1, t->context)) : HD_NONE;
	uint32_t y = hd_make_input(&t->m, "y", HD_I32, HD_DIMS(-1, t->target));
	uint32_t table = hd_make_param(&t->m, "shared", ".weight", HD_INIT_NORMAL, 1, HD_DIMS(vocab, width));

	if (mask != HD_NONE)
		mask = hd_make1(&t->m, HD_OP_RESHAPE, mask, (struct hd_attr){ .i = { -1, 1, 1,
			(int32_t)t->context } });
	const struct t5_side encoder = { "encoder", t->context, bias(t, "encoder", t->context, true), mask,
		HD_NONE, HD_NONE };
	uint32_t encoded = stack(t, &encoder, value[LAYERS].n, hd_make2(&t->m, HD_OP_EMBED, x, table, none));
	const struct t5_side decoder = { "decoder", t->target, bias(t, "decoder", t->target, false),
		square(t, t->target, false, true), encoded, mask };
	uint32_t h = stack(t, &decoder, blocks, hd_make2(&t->m, HD_OP_EMBED, moved_on(t, y,
		(int32_t)value[START].n, (int32_t)value[PAD].n), table, none));
	if (t->scale)
		h = hd_make1(&t->m, HD_OP_SCALE, h, (struct hd_attr){ .f = { (float)(1 /
			sqrt((double)width)) } });
	uint32_t logits = t->tie ? hd_make2(&t->m, HD_OP_MATMUL, h, table, turned) :
		linear(t, "", "lm_head", h, width, vocab, 1);
	hd_make_losses(&t->m, opts, x, y, logits, t->target);
}

enum hd_err hd_t5_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct t5 t = { .m = { graph, diag, HD_OK }, .width = value[WIDTH].n,
		.heads = (int32_t)value[HEADS].n,
		.hidden = value[HIDDEN].n ? value[HIDDEN].n : 4 * value[WIDTH].n,
		.each = value[HEAD_DIM].n ? value[HEAD_DIM].n : value[WIDTH].n / value[HEADS].n,
		.context = value[CONTEXT].n, .target = value[TARGET].n ? value[TARGET].n : value[CONTEXT].n,
		.buckets = value[BUCKETS].n, .distance = value[DISTANCE].n, .eps = (float)value[EPS].real };
	enum hd_err err = check(value, opts, diag);

	if (!err)
		err = words(&t, value, diag);
	if (err)
		return err;
	whole(&t, value, opts);
	return t.m.err;
}
