/* Decoders after Touvron et al., "LLaMA: open and efficient foundation language models" (2023):
 * root-mean-square
 * norms before each block, rotary positions (rope.h), gated mlp; heads of keys may be shared by several
 * heads of
 * queries. Names and storage ([out, in]) of Hugging Face's ...ForCausalLM. What published families do
 * otherwise
 * is a row of `dialects`, what a model may choose an argument of its own:
 *
 *   mistral  Jiang et al., "Mistral 7B" (2023): queries see a window of what came before
 *   qwen2    Qwen2 and 2.5 (2024): biases of q, k and v; windows from a layer on
 *   qwen3    Qwen3 (2025): each head's queries and keys are normed before they turn
 *   gemma2   Gemma 2 (2024): norms of 1 + weight, before and after each block; the tokens' table times
 *            sqrt(width); every other layer has a window; scores and logits are capped by tanh
 *   phi3     Phi-3 (2024): q, k, v are one product, so are gate and up
 *   mixtral  Jiang et al., "Mixtral of experts" (2024): mlps are mixtures (moe.h)
 *   qwen2-moe, qwen3-moe  Qwen's mixtures: some layers may be dense; that of 2 has an expert more, which each
 *            token goes through, times a gate */
#include "graph/models/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/models/moe.h"

enum { LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, CONTEXT, VOCAB, ROPE, EPS, TIE, HEAD_DIM, HD_ROPE_ARGS, BIAS,
	MLP_BIAS, ACT, WINDOW, WINDOW_FROM, WINDOW_EVERY, CAP, FINAL_CAP, QUERY, INPUTS, HD_MOE_ARGS };
/* bits of INPUTS */
enum { MASKED = 1, DOCUMENTS = 2 };

#define COMMON \
	[LAYERS]   = { "layers",   HD_ARG_INT,  "4",     1, 1000,    .about = "transformer blocks" }, \
	[WIDTH]    = { "width",    HD_ARG_INT,  "128",   2, 1 << 16, \
	.about = "channels; an even number for each head, or head_dim says how many" }, \
	[HEADS]    = { "heads",    HD_ARG_INT,  "4",     1, 1024,    .about = "heads of queries" }, \
	[KV_HEADS] = { "kv_heads", HD_ARG_INT,  "0",     0, 1024, \
	.about = "heads of keys and values, a divisor of heads; 0: as many" }, \
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "0",     0, 1 << 18, \
	.about = "channels inside the mlp; 0: 8/3 of width, rounded up to a multiple of 32" }, \
	[CONTEXT]  = { "context",  HD_ARG_INT,  "128",   2, 1 << 18, .about = "positions of a sample" }, \
	[VOCAB]    = { "vocab",    HD_ARG_INT,  "256",   2, 1 << 20, .about = "tokens; 256: bytes" }, \
	[ROPE]     = { "rope",     HD_ARG_REAL, "10000", 1.5, 1e9, \
	.about = "base of the rotary frequencies" }, \
	[EPS]      = { "eps",      HD_ARG_REAL, "1e-5",  1e-12, 1, \
	.about = "added to the mean square before the root" }, \
	[HEAD_DIM] = { "head_dim", HD_ARG_INT,  "0",     0, 1 << 14, \
	.about = "channels of each head, an even number; 0: width / heads", .late = true }, \
	HD_ROPE_PARAMS("1"), \
	[MLP_BIAS] = { "mlp_bias", HD_ARG_WORD, "false", 0, 0, \
	.about = "true: the mlp has biases", .late = true }, \
	[WINDOW]   = { "window",   HD_ARG_INT,  "0",     0, 1 << 30, \
	.about = "positions that a query sees, its own the last; 0: all before", .late = true }, \
	[WINDOW_FROM] = { "window_from", HD_ARG_INT, "0", 0, 1000, \
	.about = "the first layer that has the window", .late = true }
#define CHOICES(tie, bias, act, every, cap, final) \
	[TIE]      = { "tie",      HD_ARG_WORD, tie, 0, 0, .about = "true: the head is the token table" }, \
	[BIAS]     = { "bias",     HD_ARG_WORD, bias, 0, 0, \
	.about = "none; qkv: of queries, keys and values; attention: of the output too", .late = true }, \
	[ACT]      = { "act",      HD_ARG_WORD, act, 0, 0, \
	.about = "of the gate: silu, gelu_tanh, gelu, relu", .late = true }, \
	[WINDOW_EVERY] = { "window_every", HD_ARG_INT, every, 1, 1000, \
	.about = "of so many layers one has the window", .late = true }, \
	[CAP]      = { "cap",      HD_ARG_REAL, cap, 0, 1e6, \
	.about = "scores become cap tanh(score / cap); 0: they stay", .late = true }, \
	[FINAL_CAP] = { "final_cap", HD_ARG_REAL, final, 0, 1e6, \
	.about = "the same of the logits", .late = true }, \
	[QUERY]    = { "query",    HD_ARG_REAL, "0", 0, 1e6, \
	.about = "scores are divided by its root; 0: the channels of a head", .late = true }, \
	[INPUTS]   = { "inputs",   HD_ARG_SET,  "[]",    0, 0, \
	.about = "what is read beside x: attention_mask; document_ids: a token sees its document alone", \
	.words = "attention_mask|document_ids", .late = true }

const struct hd_model_param hd_llama_params[] = { COMMON, CHOICES("false", "none", "silu", "1", "0", "0"),
	{ 0 } };
const struct hd_model_param hd_qwen2_params[] = { COMMON, CHOICES("false", "qkv", "silu", "1", "0", "0"),
	{ 0 } };
const struct hd_model_param hd_gemma2_params[] = { COMMON,
	CHOICES("true", "none", "gelu_tanh", "2", "50", "30"), { 0 } };
const struct hd_model_param hd_mixtral_params[] = { COMMON, CHOICES("false", "none", "silu", "1", "0", "0"),
	HD_MOE_PARAMS("8", "2"), { 0 } };
const struct hd_model_param hd_qwen2_moe_params[] = { COMMON, CHOICES("false", "qkv", "silu", "1", "0", "0"),
	HD_MOE_PARAMS("8", "2"), HD_MOE_MORE("96", "352"), { 0 } };
const struct hd_model_param hd_qwen3_moe_params[] = { COMMON, CHOICES("false", "none", "silu", "1", "0", "0"),
	HD_MOE_PARAMS("8", "2"), HD_MOE_MORE("96", "0"), { 0 } };

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } };

static const struct hd_moe_names mixtral_names = { "block_sparse_moe.gate", "block_sparse_moe.experts.w1",
	"block_sparse_moe.experts.w3", "block_sparse_moe.experts.w2" };
static const struct hd_moe_names qwen_names = { "mlp.gate", "mlp.experts.gate_proj", "mlp.experts.up_proj",
	"mlp.experts.down_proj" };

/* mixed: has the arguments of HD_MOE_MORE. */
static const struct dialect { const char *model; bool head_norms, fused, gemma, mixed;
	const struct hd_moe_names *experts; } dialects[] = {
	{ .model = "llama" }, { .model = "mistral" }, { .model = "qwen2" },
	{ .model = "qwen3", .head_norms = true },
	{ .model = "phi3", .fused = true },
	{ .model = "gemma2", .gemma = true },
	{ .model = "mixtral", .experts = &mixtral_names },
	{ .model = "qwen2-moe", .experts = &qwen_names, .mixed = true },
	{ .model = "qwen3-moe", .experts = &qwen_names, .mixed = true, .head_norms = true },
};

struct decoder {
	struct hd_maker m;
	const struct dialect *is;
	int64_t width, hidden, each, context;
	int32_t heads, kv, window, window_from, window_every;
	enum hd_act act;
	bool bias, out_bias, mlp_bias;
	float eps, cap, scale, rope_scale;
	struct hd_rope rope;
	/* HD_NONE: all tokens are seen; are of one document */
	uint32_t frequencies, mask, documents;
	struct hd_moe moe;
	int64_t shared, sparse_every;
	const struct hd_model_value *dense;       /* NULL: no layer */
};

static uint32_t norm(struct decoder *l, const char *prefix, const char *name, uint32_t x, int64_t width)
{
	static const float one = 1;
	char full[HD_MAX_NAME];
	uint32_t ones = 0;

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&l->m, full, ".weight", l->is->gemma ? HD_INIT_ZEROS : HD_INIT_ONES, 0,
		HD_DIMS(width));
	if (l->is->gemma && l->m.err == HD_OK)
		l->m.err = hd_graph_const(l->m.graph, HD_F32, 1, (int64_t[]){ 1 }, &one, &ones, l->m.diag);
	if (l->is->gemma)
		gamma = hd_make2(&l->m, HD_OP_ADD, gamma, ones, none);
	return hd_make2(&l->m, HD_OP_RMSNORM, x, gamma, (struct hd_attr){ .f = { l->eps } });
}

static uint32_t linear(struct decoder *l, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out, bool bias)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	x = hd_make2(&l->m, HD_OP_MATMUL, x, hd_make_param(&l->m, full, ".weight", HD_INIT_NORMAL,
		init_scale, HD_DIMS(out, in)), turned);
	return !bias ? x : hd_make2(&l->m, HD_OP_BIAS, x, hd_make_param(&l->m, full, ".bias", HD_INIT_ZEROS,
		0,
		HD_DIMS(out)), (struct hd_attr){ .i = { -1 } });
}

static uint32_t columns(struct decoder *l, uint32_t x, int64_t from, int64_t count)
{
	return hd_make1(&l->m, HD_OP_SLICE, x, (struct hd_attr){ .i = { 2, (int32_t)from, 1,
		(int32_t)count } });
}

/* Of each head by itself. */
static uint32_t head_norm(struct decoder *l, const char *prefix, const char *name, uint32_t x, int32_t heads)
{
	const int32_t t = (int32_t)l->context, d = (int32_t)l->each;

	x = hd_make1(&l->m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { -1, t * heads, d } });
	return hd_make1(&l->m, HD_OP_RESHAPE, norm(l, prefix, name, x, d),
		(struct hd_attr){ .i = { -1, t, heads * d } });
}

static void project(struct decoder *l, const char *prefix, uint32_t h, uint32_t qkv[3])
{
	const int64_t all = l->each * l->heads, kv = l->each * l->kv;

	if (l->is->fused) {
		h = linear(l, prefix, "self_attn.qkv_proj", h, l->width, all + 2 * kv, l->bias);
		qkv[0] = columns(l, h, 0, all);
		qkv[1] = columns(l, h, all, kv);
		qkv[2] = columns(l, h, all + kv, kv);
		return;
	}
	qkv[0] = linear(l, prefix, "self_attn.q_proj", h, l->width, all, l->bias);
	if (l->is->head_norms)
		qkv[0] = head_norm(l, prefix, "self_attn.q_norm", qkv[0], l->heads);
	qkv[0] = hd_make_rotary(&l->m, qkv[0], l->heads, &l->rope, l->frequencies, l->rope_scale);
	qkv[1] = linear(l, prefix, "self_attn.k_proj", h, l->width, kv, l->bias);
	if (l->is->head_norms)
		qkv[1] = head_norm(l, prefix, "self_attn.k_norm", qkv[1], l->kv);
	qkv[1] = hd_make_rotary(&l->m, qkv[1], l->kv, &l->rope, l->frequencies, l->rope_scale);
	qkv[2] = linear(l, prefix, "self_attn.v_proj", h, l->width, kv, l->bias);
}

static uint32_t attend(struct decoder *l, const uint32_t qkv[3], int32_t window)
{
	if (l->documents != HD_NONE)
		return hd_make4(&l->m, HD_OP_ATTEND_PAD, qkv[0], qkv[1], qkv[2], l->documents,
			(struct hd_attr){ .i = { l->heads, l->kv, 1, HD_PAD_OTHERS, window },
			.f = { l->scale, l->cap } });
	if (l->mask == HD_NONE)
		return hd_make3(&l->m, HD_OP_ATTEND, qkv[0], qkv[1], qkv[2],
			(struct hd_attr){ .i = { l->heads, l->kv, 1, window }, .f = { l->scale, l->cap } });
	return hd_make4(&l->m, HD_OP_ATTEND_PAD, qkv[0], qkv[1], qkv[2], l->mask,
		(struct hd_attr){ .i = { l->heads, l->kv, 1, 0, window }, .f = { l->scale, l->cap } });
}

static uint32_t attention(struct decoder *l, const char *prefix, int64_t i, uint32_t h)
{
	const bool windowed = i >= l->window_from && (i - l->window_from) % l->window_every == 0;
	uint32_t qkv[3];

	project(l, prefix, h, qkv);
	if (l->is->fused)
		for (int k = 0; k < 2; k++)
			qkv[k] = hd_make_rotary(&l->m, qkv[k], k ? l->kv : l->heads, &l->rope, l->frequencies,
				l->rope_scale);
	h = attend(l, qkv, windowed ? l->window : 0);
	return linear(l, prefix, "self_attn.o_proj", h, l->each * l->heads, l->width, l->out_bias);
}

/* The prefix is all but gate_proj, up_proj, down_proj. */
static uint32_t mlp(struct decoder *l, const char *prefix, uint32_t h, int64_t hidden)
{
	uint32_t gate, up;

	if (l->is->fused) {
		h = linear(l, prefix, "gate_up_proj", h, l->width, 2 * hidden, l->mlp_bias);
		gate = columns(l, h, 0, hidden);
		up = columns(l, h, hidden, hidden);
	} else {
		gate = linear(l, prefix, "gate_proj", h, l->width, hidden, l->mlp_bias);
		up = linear(l, prefix, "up_proj", h, l->width, hidden, l->mlp_bias);
	}
	h = l->act == HD_ACT_SILU ? hd_make2(&l->m, HD_OP_SWIGLU, gate, up, none) : hd_make2(&l->m, HD_OP_MUL,
		hd_make1(&l->m, HD_OP_ACT, gate, (struct hd_attr){ .i = { (int32_t)l->act } }), up, none);
	return linear(l, prefix, "down_proj", h, hidden, l->width, l->mlp_bias);
}

static bool is_sparse(const struct decoder *l, int64_t i)
{
	for (uint32_t k = 0; l->dense && k < l->dense->nlist; k++)
		if (l->dense->list[k] == i)
			return false;
	return l->is->experts && (i + 1) % l->sparse_every == 0;
}

static uint32_t mixture(struct decoder *l, const char *prefix, uint32_t h)
{
	char inside[64];
	uint32_t y = hd_make_moe(&l->m, &l->moe, prefix, h);

	if (l->shared == 0)
		return y;
	snprintf(inside, sizeof inside, "%smlp.shared_expert.", prefix);
	uint32_t all = mlp(l, inside, h, l->shared);
	uint32_t by = hd_make1(&l->m, HD_OP_ACT, linear(l, prefix, "mlp.shared_expert_gate", h, l->width, 1,
		false), (struct hd_attr){ .i = { HD_ACT_SIGMOID } });
	return hd_make2(&l->m, HD_OP_ADD, y, hd_make2(&l->m, HD_OP_MUL, all, by, none), none);
}

static uint32_t block(struct decoder *l, int64_t i, uint32_t x)
{
	char prefix[40], inside[48];

	snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)i);
	snprintf(inside, sizeof inside, "%smlp.", prefix);
	uint32_t h = attention(l, prefix, i, norm(l, prefix, "input_layernorm", x, l->width));
	if (l->is->gemma)
		h = norm(l, prefix, "post_attention_layernorm", h, l->width);
	x = hd_make2(&l->m, HD_OP_ADD, x, h, none);
	h = norm(l, prefix, l->is->gemma ? "pre_feedforward_layernorm" : "post_attention_layernorm", x,
		l->width);
	h = is_sparse(l, i) ? mixture(l, prefix, h) : mlp(l, inside, h, l->hidden);
	if (l->is->gemma)
		h = norm(l, prefix, "post_feedforward_layernorm", h, l->width);
	return hd_make2(&l->m, HD_OP_ADD, x, h, none);
}

/* ---- arguments */

static enum hd_err bias_of(struct decoder *l, const char *word, struct hd_diag *diag)
{
	l->out_bias = !strcmp(word, "attention");
	l->bias = l->out_bias || !strcmp(word, "qkv");
	if (!l->bias && strcmp(word, "none") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'bias' is '%s': it is none, qkv or attention",
			word);
	return HD_OK;
}

static enum hd_err words(struct decoder *l, const struct hd_model_value *value, bool *tie,
	struct hd_diag *diag)
{
	const struct hd_model_param *param = hd_llama_params;
	enum hd_err err = hd_model_truth(&param[TIE], &value[TIE], tie, diag);

	err = err ? err : hd_model_truth(&param[MLP_BIAS], &value[MLP_BIAS], &l->mlp_bias, diag);
	err = err ? err : hd_model_truth(&param[ROPE_WHOLE], &value[ROPE_WHOLE], &l->rope.whole, diag);
	err = err ? err : bias_of(l, value[BIAS].word, diag);
	return err ? err : hd_model_act(&value[ACT], &l->act, diag);
}

static enum hd_err check(const struct hd_model_value *value, int64_t kv, const struct hd_model_opts *opts,
	const char *model, struct hd_diag *diag)
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
	if (value[INPUTS].n & MASKED && value[INPUTS].n & DOCUMENTS)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'inputs': document_ids goes without attention_mask: what "
			"fills a sample up is a document of its own");
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model '%s' predicts tokens: its loss is cross-entropy",
			model);
	return HD_OK;
}

static struct decoder decoder_of(const struct hd_model_value *value, const struct dialect *is, int64_t kv,
	struct hd_maker m)
{
	int64_t width = value[WIDTH].n, hidden = value[HIDDEN].n,
		each = value[HEAD_DIM].n ? value[HEAD_DIM].n : width / value[HEADS].n;

	return (struct decoder){ .m = m, .is = is, .width = width, .context = value[CONTEXT].n, .each = each,
		.hidden = hidden ? hidden : (8 * width / 3 + 31) / 32 * 32,
		.heads = (int32_t)value[HEADS].n, .kv = (int32_t)kv, .window = (int32_t)value[WINDOW].n,
		.window_from = (int32_t)value[WINDOW_FROM].n, .window_every = (int32_t)value[WINDOW_EVERY].n,
		.eps = (float)value[EPS].real, .cap = (float)value[CAP].real,
		.scale = value[QUERY].real > 0 ? (float)(1 / sqrt(value[QUERY].real)) : 0,
		.rope = HD_ROPE_OF(value, value[ROPE].real) };
}

static enum hd_err moe_of(struct decoder *l, const struct hd_model_value *value, struct hd_diag *diag)
{
	const bool mixed = l->is->mixed;
	enum hd_err err = HD_OK;

	if (!l->is->experts)
		return HD_OK;
	l->moe = (struct hd_moe){ .names = l->is->experts, .experts = value[EXPERTS].n,
		.chosen = value[CHOSEN].n, .width = l->width, .positions = l->context,
		.hidden = mixed ? value[EXPERT_HIDDEN].n : l->hidden, .renormalize = true,
		.capacity = value[CAPACITY].real, .balance = value[BALANCE].real, .act = l->act,
		.mask = HD_NONE };
	l->sparse_every = mixed ? value[SPARSE_EVERY].n : 1;
	l->shared = mixed ? value[SHARED_HIDDEN].n : 0;
	l->dense = mixed ? &value[DENSE] : NULL;
	if (mixed)
		err = hd_model_truth(&hd_qwen2_moe_params[RENORMALIZE], &value[RENORMALIZE],
			&l->moe.renormalize, diag);
	return err ? err : hd_moe_check(&l->moe, diag);
}

static uint32_t scaled(struct decoder *l, uint32_t x, float by)
{
	return hd_make1(&l->m, HD_OP_SCALE, x, (struct hd_attr){ .f = { by } });
}

static uint32_t capped(struct decoder *l, uint32_t x, float cap)
{
	x = hd_make1(&l->m, HD_OP_ACT, scaled(l, x, 1 / cap), (struct hd_attr){ .i = { HD_ACT_TANH } });
	return scaled(l, x, cap);
}

/* Which tokens go to experts; HD_NONE: all. What fills a sample of documents up goes to none. */
static uint32_t routed(struct decoder *l)
{
	if (!l->is->experts || l->documents == HD_NONE)
		return l->mask;
	return hd_make1(&l->m, HD_OP_CAST, hd_make2(&l->m, HD_OP_LESS_EQ, hd_make_ids(&l->m, 1, HD_DIMS(1)),
		l->documents, none), (struct hd_attr){ .i = { HD_I32 } });
}

static void whole(struct decoder *l, const struct hd_model_value *value, const struct hd_model_opts *opts,
	bool tie)
{
	int64_t width = l->width, context = l->context, vocab = value[VOCAB].n;
	uint32_t x = hd_make_input(&l->m, "x", HD_I32, HD_DIMS(-1, context));
	l->mask = value[INPUTS].n & MASKED ? hd_make_input(&l->m, "attention_mask", HD_I32,
		HD_DIMS(-1, context)) : HD_NONE;
	l->documents = value[INPUTS].n & DOCUMENTS ? hd_make_input(&l->m, "document_ids", HD_I32,
		HD_DIMS(-1, context)) : HD_NONE;
	l->moe.mask = routed(l);
	uint32_t table = hd_make_param(&l->m, "model.embed_tokens", ".weight", HD_INIT_NORMAL, init_scale,
		HD_DIMS(vocab, width));

	l->frequencies = hd_make_frequencies(&l->m, &l->rope, l->each, context, &l->rope_scale);
	uint32_t h = hd_make2(&l->m, HD_OP_EMBED, x, table, none);
	if (l->is->gemma)
		h = scaled(l, h, sqrtf((float)width));
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(l, i, h);
	h = norm(l, "", "model.norm", h, width);
	uint32_t logits = tie ? hd_make2(&l->m, HD_OP_MATMUL, h, table, turned) :
		linear(l, "", "lm_head", h, width, vocab, false);
	if (value[FINAL_CAP].real > 0)
		logits = capped(l, logits, (float)value[FINAL_CAP].real);
	hd_make_ends_with(&l->m, opts, logits, logits, context, hd_make_balance(&l->m, &l->moe));
}

enum hd_err hd_decoder_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	const struct dialect *is = dialects;
	int64_t kv = value[KV_HEADS].n ? value[KV_HEADS].n : value[HEADS].n;
	bool tie = false;

	while (strcmp(is->model, hd_graph_text_of(graph, graph->name)) != 0)
		is++;                             /* the table of models knows no other */
	enum hd_err err = check(value, kv, opts, is->model, diag);
	if (err != HD_OK)
		return err;
	struct decoder l = decoder_of(value, is, kv, (struct hd_maker){ graph, diag, HD_OK });
	err = words(&l, value, &tie, diag);
	if (err == HD_OK)
		err = moe_of(&l, value, diag);
	if (err == HD_OK)
		err = hd_rope_check(&l.rope, l.each, diag);
	if (err != HD_OK)
		return err;
	whole(&l, value, opts, tie);
	return l.m.err;
}
