/* GPT-NeoX of Black et al., "GPT-NeoX-20B: an open-source autoregressive language model" (2022), also Pythia:
 * norms with mean and bias, a part of each head turns (rope.h), attention and mlp read the same values
 * side by
 * side. Names and storage ([out, in], q, k and v of each head together) of Hugging Face's
 * GPTNeoXForCausalLM. */
#include "graph/models/rope.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT, VOCAB, ROPE, EPS, TIE, DROPOUT, PARALLEL, BIAS, ACT,
	HD_ROPE_ARGS };

const struct hd_model_param hd_neox_params[] = {
	[LAYERS]   = { "layers",   HD_ARG_INT,  "4",     1, 1000,    .about = "transformer blocks" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "128",   2, 1 << 16,
	.about = "channels; a multiple of heads" },
	[HEADS]    = { "heads",    HD_ARG_INT,  "4",     1, 1024,    .about = "attention heads" },
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "0",     0, 1 << 18,
	.about = "channels inside the mlp; 0: four times width" },
	[CONTEXT]  = { "context",  HD_ARG_INT,  "128",   2, 1 << 18, .about = "positions of a sample" },
	[VOCAB]    = { "vocab",    HD_ARG_INT,  "256",   2, 1 << 20, .about = "tokens; 256: bytes" },
	[ROPE]     = { "rope",     HD_ARG_REAL, "10000", 1.5, 1e9,
	.about = "base of the rotary frequencies" },
	[EPS]      = { "eps",      HD_ARG_REAL, "1e-05", 1e-12, 1,
	.about = "added to the variance of norms" },
	[TIE]      = { "tie",      HD_ARG_WORD, "false", 0, 0,
	.about = "true: the head is the token table" },
	[DROPOUT]  = { "dropout",  HD_ARG_REAL, "0",     0, 0.95,
	.about = "share of elements dropped after embedding, attention and mlp" },
	[PARALLEL] = { "parallel", HD_ARG_WORD, "true",  0, 0,
	.about = "true: attention and mlp side by side; false: one after the other" },
	[BIAS]     = { "bias",     HD_ARG_WORD, "true",  0, 0,       .about = "true: attention has biases" },
	[ACT]      = { "act",      HD_ARG_WORD, "gelu",  0, 0,
		      .about = "of the mlp: gelu, gelu_tanh, relu, silu" },
	HD_ROPE_PARAMS("0.25"),
	{ 0 },
};

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } };

struct neox {
	struct hd_maker m;
	int64_t width, hidden, each, context;
	int32_t heads;
	bool bias, parallel;
	enum hd_act act;
	float eps, dropout, rope_scale;
	struct hd_rope rope;
	uint32_t frequencies;
};

static uint32_t norm(struct neox *n, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&n->m, full, ".weight", HD_INIT_ONES, 0, HD_DIMS(n->width));
	uint32_t beta = hd_make_param(&n->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(n->width));
	return hd_make3(&n->m, HD_OP_LAYERNORM, x, gamma, beta, (struct hd_attr){ .f = { n->eps } });
}

static uint32_t linear(struct neox *n, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out,
	bool bias)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	x = hd_make2(&n->m, HD_OP_MATMUL, x, hd_make_param(&n->m, full, ".weight", HD_INIT_NORMAL,
		init_scale, HD_DIMS(out, in)), turned);
	return !bias ? x : hd_make2(&n->m, HD_OP_BIAS, x, hd_make_param(&n->m, full, ".bias", HD_INIT_ZEROS,
		0,
		HD_DIMS(out)), (struct hd_attr){ .i = { -1 } });
}

static uint32_t drop(struct neox *n, uint32_t x)
{
	return n->dropout > 0 ? hd_make1(&n->m, HD_OP_DROPOUT, x,
		(struct hd_attr){ .f = { n->dropout } }) : x;
}

static uint32_t attention(struct neox *n, const char *prefix, uint32_t h)
{
	const int32_t t = (int32_t)n->context, d = (int32_t)n->each, heads = n->heads;
	uint32_t qkv[3];

	h = linear(n, prefix, "attention.query_key_value", h, n->width, 3 * n->width, n->bias);
	h = hd_make1(&n->m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, t, heads, 3 * d } });
	for (int k = 0; k < 3; k++) {
		qkv[k] = hd_make1(&n->m, HD_OP_SLICE, h, (struct hd_attr){ .i = { 3, k * d, 1, d } });
		qkv[k] = hd_make1(&n->m, HD_OP_RESHAPE, qkv[k], (struct hd_attr){ .i = { -1, t,
			heads * d } });
		if (k < 2)
			qkv[k] = hd_make_rotary(&n->m, qkv[k], heads, &n->rope, n->frequencies,
				n->rope_scale);
	}
	h = hd_make3(&n->m, HD_OP_ATTEND, qkv[0], qkv[1], qkv[2], (struct hd_attr){ .i = { heads, heads,
		1 } });
	return drop(n, linear(n, prefix, "attention.dense", h, n->width, n->width, n->bias));
}

static uint32_t mlp(struct neox *n, const char *prefix, uint32_t h)
{
	h = linear(n, prefix, "mlp.dense_h_to_4h", h, n->width, n->hidden, true);
	h = hd_make1(&n->m, HD_OP_ACT, h, (struct hd_attr){ .i = { (int32_t)n->act } });
	return drop(n, linear(n, prefix, "mlp.dense_4h_to_h", h, n->hidden, n->width, true));
}

static uint32_t block(struct neox *n, int64_t i, uint32_t x)
{
	char prefix[48];

	snprintf(prefix, sizeof prefix, "gpt_neox.layers.%lld.", (long long)i);
	uint32_t a = attention(n, prefix, norm(n, prefix, "input_layernorm", x));
	uint32_t between = n->parallel ? x : hd_make2(&n->m, HD_OP_ADD, a, x, none);
	uint32_t h = mlp(n, prefix, norm(n, prefix, "post_attention_layernorm", between));

	if (!n->parallel)
		return hd_make2(&n->m, HD_OP_ADD, h, between, none);
	return hd_make2(&n->m, HD_OP_ADD, hd_make2(&n->m, HD_OP_ADD, h, a, none), x, none);
}

static enum hd_err check(const struct hd_model_value *value, const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	if (value[WIDTH].n % value[HEADS].n != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'width' and 'heads': %lld is no multiple of %lld",
			(long long)value[WIDTH].n, (long long)value[HEADS].n);
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model 'neox' predicts tokens: its loss is cross-entropy");
	return HD_OK;
}

enum hd_err hd_neox_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	int64_t width = value[WIDTH].n, context = value[CONTEXT].n, vocab = value[VOCAB].n;
	struct neox n = { .m = { graph, diag, HD_OK }, .width = width, .context = context,
		.hidden = value[HIDDEN].n ? value[HIDDEN].n : 4 * width, .each = width / value[HEADS].n,
		.heads = (int32_t)value[HEADS].n, .eps = (float)value[EPS].real,
		.dropout = (float)value[DROPOUT].real, .rope = HD_ROPE_OF(value, value[ROPE].real) };
	bool tie = false;
	enum hd_err err = check(value, opts, diag);

	err = err ? err : hd_model_truth(&hd_neox_params[TIE], &value[TIE], &tie, diag);
	err = err ? err : hd_model_truth(&hd_neox_params[BIAS], &value[BIAS], &n.bias, diag);
	err = err ? err : hd_model_truth(&hd_neox_params[PARALLEL], &value[PARALLEL], &n.parallel, diag);
	err = err ? err : hd_model_act(&value[ACT], &n.act, diag);
	err = err ? err : hd_rope_check(&n.rope, n.each, diag);
	if (err != HD_OK)
		return err;
	n.frequencies = hd_make_frequencies(&n.m, &n.rope, n.each, context, &n.rope_scale);
	uint32_t x = hd_make_input(&n.m, "x", HD_I32, HD_DIMS(-1, context));
	uint32_t table = hd_make_param(&n.m, "gpt_neox.embed_in", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(vocab, width));
	uint32_t h = drop(&n, hd_make2(&n.m, HD_OP_EMBED, x, table, none));
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(&n, i, h);
	h = norm(&n, "", "gpt_neox.final_layer_norm", h);
	uint32_t logits = tie ? hd_make2(&n.m, HD_OP_MATMUL, h, table, turned) :
		linear(&n, "", "lm_head", h, width, vocab, false);
	hd_make_ends(&n.m, opts, logits, logits, context, vocab);
	return n.m.err;
}
