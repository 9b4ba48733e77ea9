/* The decoder of Touvron et al., "LLaMA: open and efficient foundation language models" (2023):
 * root-mean-square norms before each block, rotary positions, gated mlp, no biases; heads of keys may be
 * shared by several heads of queries. Names and storage ([out, in]) of Hugging Face's LlamaForCausalLM. */
#include "graph/models/rows.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, CONTEXT, VOCAB, ROPE, EPS, TIE, HEAD_DIM, INPUTS };
/* bits of INPUTS */
enum { MASKED = 1 };

const struct hd_model_param hd_llama_params[] = {
	[LAYERS]   = { "layers",   HD_ARG_INT,  "4",     1, 1000,    .about = "transformer blocks" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "128",   2, 1 << 16,
	.about = "channels; an even number for each head, or head_dim says how many" },
	[HEADS]    = { "heads",    HD_ARG_INT,  "4",     1, 1024,    .about = "heads of queries" },
	[KV_HEADS] = { "kv_heads", HD_ARG_INT,  "0",     0, 1024,
	.about = "heads of keys and values, a divisor of heads; 0: as many" },
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "0",     0, 1 << 18,
	.about = "channels inside the mlp; 0: 8/3 of width, rounded up to a multiple of 32" },
	[CONTEXT]  = { "context",  HD_ARG_INT,  "128",   2, 1 << 16, .about = "positions of a sample" },
	[VOCAB]    = { "vocab",    HD_ARG_INT,  "256",   2, 1 << 20, .about = "tokens; 256: bytes" },
	[ROPE]     = { "rope",     HD_ARG_REAL, "10000", 1.5, 1e9,   .about =
		"base of the rotary frequencies" },
	[EPS]      = { "eps",      HD_ARG_REAL, "1e-5",  1e-12, 1,
	.about = "added to the mean square before the root" },
	[TIE]      = { "tie",      HD_ARG_WORD, "false", 0, 0,       .about =
		"true: the head is the token table" },
	[HEAD_DIM] = { "head_dim", HD_ARG_INT,  "0",     0, 1 << 14,
	.about = "channels of each head, an even number; 0: width / heads", .late = true },
	[INPUTS]   = { "inputs",   HD_ARG_SET,  "[]",  0, 0,         .about =
		"what is read beside x: attention_mask",
	.words = "attention_mask", .late = true },
	{ 0 },
};

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } };

struct llama { struct hd_maker m; int64_t width, hidden, head_dim; int32_t heads, kv; float base, eps;
	uint32_t mask;                            /* HD_NONE: all tokens are seen */
};

static uint32_t norm(struct llama *l, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&l->m, full, ".weight", HD_INIT_ONES, 0, HD_DIMS(l->width));
	return hd_make2(&l->m, HD_OP_RMSNORM, x, gamma, (struct hd_attr){ .f = { l->eps } });
}

static uint32_t linear(struct llama *l, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	return hd_make2(&l->m, HD_OP_MATMUL, x, hd_make_param(&l->m, full, ".weight", HD_INIT_NORMAL,
		init_scale, HD_DIMS(out, in)), turned);
}

static uint32_t rotated(struct llama *l, uint32_t x, int32_t heads)
{
	return hd_make1(&l->m, HD_OP_ROTARY, x, (struct hd_attr){ .i = { heads, 0 }, .f = { l->base } });
}

static uint32_t attention(struct llama *l, uint32_t q, uint32_t k, uint32_t v)
{
	if (l->mask == HD_NONE)
		return hd_make3(&l->m, HD_OP_ATTEND, q, k, v, (struct hd_attr){ .i = { l->heads, l->kv,
			1 } });
	return hd_make4(&l->m, HD_OP_ATTEND_PAD, q, k, v, l->mask,
		(struct hd_attr){ .i = { l->heads, l->kv, 1, 0 } });
}

static uint32_t block(struct llama *l, int64_t i, uint32_t x)
{
	int64_t c = l->width, all = l->head_dim * l->heads, kv = l->head_dim * l->kv;
	char prefix[40];

	snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)i);
	uint32_t h = norm(l, prefix, "input_layernorm", x);
	uint32_t q = rotated(l, linear(l, prefix, "self_attn.q_proj", h, c, all), l->heads);
	uint32_t k = rotated(l, linear(l, prefix, "self_attn.k_proj", h, c, kv), l->kv);
	uint32_t v = linear(l, prefix, "self_attn.v_proj", h, c, kv);
	h = attention(l, q, k, v);
	x = hd_make2(&l->m, HD_OP_ADD, x, linear(l, prefix, "self_attn.o_proj", h, all, c), none);
	h = norm(l, prefix, "post_attention_layernorm", x);
	uint32_t gate = linear(l, prefix, "mlp.gate_proj", h, c, l->hidden),
		up = linear(l, prefix, "mlp.up_proj", h, c, l->hidden);
	h = hd_make2(&l->m, HD_OP_SWIGLU, gate, up, none);
	return hd_make2(&l->m, HD_OP_ADD, x, linear(l, prefix, "mlp.down_proj", h, l->hidden, c), none);
}

static enum hd_err check(const struct hd_model_value *value, int64_t kv, const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	long long width = value[WIDTH].n, heads = value[HEADS].n;

	if (value[HEAD_DIM].n ? value[HEAD_DIM].n % 2 != 0 : width % heads != 0 || width / heads % 2 != 0)
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'width', 'heads' and 'head_dim': %lld channels and head_dim %lld are not "
			"an even number for each of %lld heads", width, (long long)value[HEAD_DIM].n, heads);
	if (heads % kv != 0)
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'heads' and 'kv_heads': %lld is no multiple of %lld", heads,
			(long long)kv);
	if (strcmp(value[TIE].word, "true") != 0 && strcmp(value[TIE].word, "false") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'tie' is '%s': it is true or false",
			value[TIE].word);
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model 'llama' predicts tokens: its loss is cross-entropy");
	return HD_OK;
}

enum hd_err hd_llama_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	int64_t width = value[WIDTH].n, context = value[CONTEXT].n, vocab = value[VOCAB].n,
		hidden = value[HIDDEN].n;
	int64_t kv = value[KV_HEADS].n ? value[KV_HEADS].n : value[HEADS].n;
	struct llama l = { .m = { graph, diag, HD_OK }, .width = width,
		.hidden = hidden ? hidden : (8 * width / 3 + 31) / 32 * 32,
		.head_dim = value[HEAD_DIM].n ? value[HEAD_DIM].n : width / value[HEADS].n,
		.heads = (int32_t)value[HEADS].n, .kv = (int32_t)kv,
		.base = (float)value[ROPE].real, .eps = (float)value[EPS].real };
	enum hd_err err = check(value, kv, opts, diag);

	if (err != HD_OK)
		return err;
	uint32_t x = hd_make_input(&l.m, "x", HD_I32, HD_DIMS(-1, context));
	l.mask = value[INPUTS].n & MASKED ? hd_make_input(&l.m, "attention_mask", HD_I32, HD_DIMS(-1,
		context)) :
		HD_NONE;
	uint32_t table = hd_make_param(&l.m, "model.embed_tokens", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(vocab, width));
	uint32_t h = hd_make2(&l.m, HD_OP_EMBED, x, table, none);
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(&l, i, h);
	h = norm(&l, "", "model.norm", h);
	uint32_t logits = !strcmp(value[TIE].word, "true") ? hd_make2(&l.m, HD_OP_MATMUL, h, table, turned) :
		linear(&l, "", "lm_head", h, width, vocab);
	hd_make_ends(&l.m, opts, logits, logits, context, vocab);
	return l.m.err;
}
