/* The encoder of Devlin et al., "BERT: pre-training of deep bidirectional transformers" (2018): norms after
 * each block, learned positions and kinds of tokens, gelu in its exact form. Its head guesses masked tokens
 * (`mlm`) or tells the class of the whole sample from its first position (`cls`). Names and storage ([out,
 * in]) of Hugging Face's BertForMaskedLM and BertForSequenceClassification. Without the input
 * token_type_ids every token is of kind 0.
 *
 * Liu et al., "RoBERTa: a robustly optimized BERT pretraining approach" (2019) is the same encoder with other
 * names and other heads (the table of dialects). Its positions begin at row `offset` of their table, the row
 * behind that of the token `pad`; a pad has the row before, and those behind it count on without it. */
#include "graph/models/rows.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT, VOCAB, TYPES, MASK, SHARE, PAD, DROPOUT, EPS, HEAD, CLASSES,
	INPUTS, POSITIONS, ACT, OFFSET };
/* bits of INPUTS */
enum { MASKED = 1, TYPED = 2, PLACED = 4 };

const struct hd_model_param hd_bert_params[] = {
	[LAYERS]  = { "layers",  HD_ARG_INT,  "4",     1, 1000,    .about = "transformer blocks" },
	[WIDTH]   = { "width",   HD_ARG_INT,  "128",   2, 1 << 16, .about = "channels; a multiple of heads" },
	[HEADS]   = { "heads",   HD_ARG_INT,  "4",     1, 1024,    .about = "attention heads" },
	[HIDDEN]  = { "hidden",  HD_ARG_INT,  "0",     0, 1 << 18,
	.about = "channels inside the mlp; 0: four times width" },
	[CONTEXT] = { "context", HD_ARG_INT,  "128",   2, 1 << 16, .about = "positions of a sample" },
	[VOCAB]   = { "vocab",   HD_ARG_INT,  "257",   2, 1 << 20, .about =
		"tokens; 257: bytes and the mask" },
	[TYPES]   = { "types",   HD_ARG_INT,  "2",     1, 16,
	.about = "kinds of tokens in the table; 0 is used" },
	[MASK]    = { "mask",    HD_ARG_INT,  "-1",    -1, 1 << 20,
	.about = "token that stands for a masked one; -1: the last of the vocabulary" },
	[SHARE]   = { "share",   HD_ARG_REAL, "0.15",  0, 1,
	.about = "share of tokens to guess; 0: y says which, -1 elsewhere" },
	[PAD]     = { "pad",     HD_ARG_INT,  "-1",    -1, 1 << 20,
	.about = "token that nothing attends to; -1: none" },
	[DROPOUT] = { "dropout", HD_ARG_REAL, "0",     0, 0.95,
	.about = "share of elements dropped after embedding, attention and mlp" },
	[EPS]     = { "eps",     HD_ARG_REAL, "1e-12", 1e-30, 1,   .about =
		"added to the variance of norms" },
	[HEAD]    = { "head",    HD_ARG_WORD, "mlm",   0, 0,
	.about = "mlm: guesses masked tokens; cls: one of `classes` for the sample, nothing is masked" },
	[CLASSES] = { "classes", HD_ARG_INT,  "2",     1, 1 << 20, .about = "classes with head: cls" },
	[INPUTS]  = { "inputs",  HD_ARG_SET,  "[]",    0, 0,
	.about = "what is read beside x: attention_mask, token_type_ids, position_ids",
	.words = "attention_mask|token_type_ids|position_ids", .late = true },
	[POSITIONS] = { "positions", HD_ARG_INT, "0",  0, 1 << 16,
	.about = "positions in the table; 0: as many as context", .late = true },
	[ACT]     = { "act",     HD_ARG_WORD, "gelu", 0, 0,
	.about = "of the mlp and the pooled head: gelu, gelu_tanh, relu, silu, tanh", .late = true },
	[OFFSET]  = { "offset",  HD_ARG_INT,  "0",     0, 1 << 16,
	.about = "row of the table that the first position has; RoBERTa: one behind the token pad",
	.late = true },
	{ 0 },
};

/* What the two call their parts, and where they differ. */
static const struct bert_dialect {
	const char *model, *body, *dense, *norm, *bias;       /* of the head mlm: its parts */
	const char *pool, *out;           /* of the head cls: what reads the first position, the classes */
	bool gelu_head;                   /* the head mlm has gelu whatever `act` is */
	bool drops_first;                 /* the head cls drops elements of the first position, too */
} dialects[] = {
	{ "bert", "bert", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
	  "cls.predictions", "bert.pooler.dense", "classifier", false, false },
	{ "roberta", "roberta", "lm_head.dense", "lm_head.layer_norm", "lm_head", "classifier.dense",
	  "classifier.out_proj", true, true },
};

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } }, last = { .i = { -1 } };

struct bert { struct hd_maker m; int64_t width, hidden; int32_t heads, pad; float dropout, eps;
	/* what attention asks whether a token is seen: x or the mask, by `pad`; HD_NONE: all are */
	uint32_t x, seen;
	enum hd_act act;
	const struct bert_dialect *dialect; };

static uint32_t norm(struct bert *b, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&b->m, full, ".weight", HD_INIT_ONES, 0, HD_DIMS(b->width));
	uint32_t beta = hd_make_param(&b->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(b->width));
	return hd_make3(&b->m, HD_OP_LAYERNORM, x, gamma, beta, (struct hd_attr){ .f = { b->eps } });
}

static uint32_t linear(struct bert *b, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t w = hd_make_param(&b->m, full, ".weight", HD_INIT_NORMAL, init_scale, HD_DIMS(out, in));
	uint32_t bias = hd_make_param(&b->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(out));
	return hd_make2(&b->m, HD_OP_BIAS, hd_make2(&b->m, HD_OP_MATMUL, x, w, turned), bias, last);
}

static uint32_t act(struct bert *b, enum hd_act which, uint32_t x) { return hd_make1(&b->m, HD_OP_ACT, x,
	(struct hd_attr){ .i = { (int32_t)which } }); }

static uint32_t drop(struct bert *b, uint32_t x)
{
	return b->dropout > 0 ? hd_make1(&b->m, HD_OP_DROPOUT, x, (struct hd_attr){ .f = { b->dropout } }) :
		x;
}

static uint32_t attention(struct bert *b, const char *prefix, uint32_t x)
{
	uint32_t q = linear(b, prefix, "attention.self.query", x, b->width, b->width);
	uint32_t k = linear(b, prefix, "attention.self.key", x, b->width, b->width);
	uint32_t v = linear(b, prefix, "attention.self.value", x, b->width, b->width);

	if (b->seen == HD_NONE)
		return hd_make3(&b->m, HD_OP_ATTEND, q, k, v,
			(struct hd_attr){ .i = { b->heads, b->heads, 0 } });
	return hd_make4(&b->m, HD_OP_ATTEND_PAD, q, k, v, b->seen,
		(struct hd_attr){ .i = { b->heads, b->heads, 0, b->pad } });
}

static uint32_t block(struct bert *b, int64_t i, uint32_t x)
{
	char prefix[64];

	snprintf(prefix, sizeof prefix, "%s.encoder.layer.%lld.", b->dialect->body, (long long)i);
	uint32_t h = drop(b, linear(b, prefix, "attention.output.dense", attention(b, prefix, x), b->width,
		b->width));
	x = norm(b, prefix, "attention.output.LayerNorm", hd_make2(&b->m, HD_OP_ADD, h, x, none));
	h = act(b, b->act, linear(b, prefix, "intermediate.dense", x, b->width, b->hidden));
	h = drop(b, linear(b, prefix, "output.dense", h, b->hidden, b->width));
	return norm(b, prefix, "output.LayerNorm", hd_make2(&b->m, HD_OP_ADD, h, x, none));
}

static uint32_t input(struct bert *b, const char *name, const struct hd_model_value *value)
{
	return hd_make_input(&b->m, name, HD_I32, HD_DIMS(-1, value[CONTEXT].n));
}

static uint32_t embedding(struct bert *b, const char *name, int64_t rows)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s.embeddings.%s_embeddings", b->dialect->body, name);
	return hd_make_param(&b->m, full, ".weight", HD_INIT_NORMAL, init_scale, HD_DIMS(rows, b->width));
}

/* Row offset + t of the table less the pads up to t; of a pad the row before the first. */
static uint32_t places_of(struct bert *b, const struct hd_model_value *value, int32_t pad)
{
	const int64_t context = value[CONTEXT].n;
	const int32_t offset = (int32_t)value[OFFSET].n;
	uint32_t is_pad = hd_make2(&b->m, HD_OP_EQUAL, b->x, hd_make_ids(&b->m, pad, HD_DIMS(1)), none);
	uint32_t pads = hd_make1(&b->m, HD_OP_CUMSUM, is_pad, (struct hd_attr){ .i = { 1, 0 } });
	uint32_t row = hd_make2(&b->m, HD_OP_SUB, hd_make_counts(&b->m, offset, context),
		hd_make1(&b->m, HD_OP_CAST, pads, (struct hd_attr){ .i = { HD_I32 } }), none);

	return hd_make3(&b->m, HD_OP_WHERE, is_pad, hd_make_ids(&b->m, offset - 1, HD_DIMS(1)), row, none);
}

/* What is added for each position. */
static uint32_t positions(struct bert *b, const struct hd_model_value *value, uint32_t table)
{
	const int64_t context = value[CONTEXT].n, offset = value[OFFSET].n;
	const int32_t pad = (int32_t)value[PAD].n;

	if (value[INPUTS].n & PLACED)
		return hd_make2(&b->m, HD_OP_EMBED, input(b, "position_ids", value), table, none);
	if (offset > 0 && pad >= 0)
		return hd_make2(&b->m, HD_OP_EMBED, places_of(b, value, pad), table, none);
	if (offset > 0 || value[POSITIONS].n > context)
		return hd_make1(&b->m, HD_OP_SLICE, table,
			(struct hd_attr){ .i = { 0, (int32_t)offset, 1, (int32_t)context } });
	return table;
}

/* ids: the tokens as the encoder sees them. *table: theirs. */
static uint32_t encoder(struct bert *b, const struct hd_model_value *value, uint32_t ids, uint32_t *table)
{
	int64_t context = value[CONTEXT].n, inputs = value[INPUTS].n;
	uint32_t tokens = embedding(b, "word", value[VOCAB].n);
	uint32_t places = embedding(b, "position", value[POSITIONS].n ? value[POSITIONS].n :
		context + value[OFFSET].n);
	uint32_t types = embedding(b, "token_type", value[TYPES].n);
	uint32_t kinds = inputs & TYPED ? input(b, "token_type_ids", value) :
		hd_make_zeros(&b->m, HD_I32, HD_DIMS(context));
	uint32_t type = hd_make2(&b->m, HD_OP_EMBED, kinds, types, none);

	const bool sampled = inputs & PLACED || (value[OFFSET].n > 0 && value[PAD].n >= 0);
	char prefix[32];
	places = positions(b, value, places);
	uint32_t h = hd_make2(&b->m, HD_OP_EMBED, ids, tokens, none);
	/* one position of a sample has more extents than of a table */
	uint32_t both = inputs & TYPED && !sampled ? hd_make2(&b->m, HD_OP_ADD, type, places,
		none) :
		hd_make2(&b->m, HD_OP_ADD, places, type, none);
	h = hd_make2(&b->m, HD_OP_ADD, h, both, none);
	snprintf(prefix, sizeof prefix, "%s.embeddings.", b->dialect->body);
	h = drop(b, norm(b, prefix, "LayerNorm", h));
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(b, i, h);
	*table = tokens;
	return h;
}

/* The inputs are masked here unless y marks the masked tokens already. */
static void masked(struct bert *b, const struct hd_model_value *value, const struct hd_model_opts *opts)
{
	int64_t context = value[CONTEXT].n, vocab = value[VOCAB].n,
		mask = value[MASK].n < 0 ? vocab - 1 : value[MASK].n;
	uint32_t y = hd_make_input(&b->m, "y", HD_I32, HD_DIMS(-1, context)), ids = b->x, table;

	if (value[SHARE].real > 0) {
		ids = hd_make1(&b->m, HD_OP_MASK_TOKENS, b->x,
			(struct hd_attr){ .i = { (int32_t)mask, (int32_t)vocab },
			.f = { (float)value[SHARE].real } });
		y = ids + 1;
		if (value[INPUTS].n & MASKED)
			y = hd_make3(&b->m, HD_OP_WHERE, b->seen, y, hd_make_ids(&b->m, -1, HD_DIMS(1)),
				none);
	}
	uint32_t h = encoder(b, value, ids, &table);
	h = act(b, b->dialect->gelu_head ? HD_ACT_GELU_ERF : b->act,
		linear(b, "", b->dialect->dense, h, b->width, b->width));
	h = norm(b, "", b->dialect->norm, h);
	uint32_t bias = hd_make_param(&b->m, b->dialect->bias, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(vocab));
	uint32_t logits = hd_make2(&b->m, HD_OP_BIAS, hd_make2(&b->m, HD_OP_MATMUL, h, table, turned), bias,
		last);
	hd_make_losses(&b->m, opts, logits, y, logits, context);
}

/* From the first position, through the pooler of BERT's release: a layer with tanh. */
static void classified(struct bert *b, const struct hd_model_value *value, const struct hd_model_opts *opts)
{
	uint32_t table, h = encoder(b, value, b->x, &table);

	h = hd_make1(&b->m, HD_OP_SLICE, h, (struct hd_attr){ .i = { 1, 0, 1, 1 } });
	h = hd_make1(&b->m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)b->width } });
	if (b->dialect->drops_first)
		h = drop(b, h);
	h = drop(b, act(b, HD_ACT_TANH, linear(b, "", b->dialect->pool, h, b->width, b->width)));
	uint32_t logits = linear(b, "", b->dialect->out, h, b->width, value[CLASSES].n);
	hd_make_ends(&b->m, opts, logits, logits, 1, value[CLASSES].n);
}

static const struct bert_head { const char *name; void (*build)(struct bert *b,
	const struct hd_model_value *value,
	const struct hd_model_opts *opts); } ends[] = {
	{ "mlm", masked },
	{ "cls", classified },
};

static enum hd_err head_find(const char *name, const struct bert_head **head, struct hd_diag *diag)
{
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (strcmp(ends[i].name, name) == 0) {
			*head = &ends[i];
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "argument 'head': '%s' is none of mlm, cls", name);
}

static enum hd_err check(const struct hd_model_value *value, const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	long long width = value[WIDTH].n, heads = value[HEADS].n, vocab = value[VOCAB].n;

	if (width % heads != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'width' and 'heads': %lld is no multiple of %lld",
			width, heads);
	if (value[MASK].n >= vocab || value[PAD].n >= vocab)
		return hd_fail(diag, HD_E_INVAL, "arguments 'mask' and 'pad' are tokens below 'vocab', %lld",
			vocab);
	if (value[PAD].n >= 0 && value[INPUTS].n & MASKED)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'pad' names tokens that are not seen, attention_mask too: leave one out");
	if (value[POSITIONS].n && value[POSITIONS].n < value[CONTEXT].n + value[OFFSET].n &&
		!(value[INPUTS].n & PLACED))
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'positions' and 'context': a table of %lld positions "
			"is too short for samples of %lld%s", (long long)value[POSITIONS].n,
			(long long)value[CONTEXT].n, value[OFFSET].n ? " behind row 'offset'" : "");
	if (opts->loss != HD_LOSS_CROSS_ENTROPY && !strcmp(value[HEAD].word, "mlm"))
		return hd_fail(diag, HD_E_INVAL,
			"a model with head 'mlm' predicts tokens: its loss is cross-entropy");
	return HD_OK;
}

enum hd_err hd_bert_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	struct bert b = { .m = { graph, diag, HD_OK }, .width = value[WIDTH].n,
		.hidden = value[HIDDEN].n ? value[HIDDEN].n : 4 * value[WIDTH].n,
		.heads = (int32_t)value[HEADS].n, .pad = (int32_t)value[PAD].n,
		.dropout = (float)value[DROPOUT].real, .eps = (float)value[EPS].real, .dialect = dialects };
	const struct bert_head *head = NULL;
	enum hd_err err = check(value, opts, diag);

	if (err == HD_OK)
		err = head_find(value[HEAD].word, &head, diag);
	if (err == HD_OK)
		err = hd_model_act(&value[ACT], &b.act, diag);
	if (!strcmp(hd_graph_text_of(graph, graph->name), dialects[1].model))
		b.dialect = &dialects[1];
	if (err != HD_OK)
		return err;
	b.x = input(&b, "x", value);
	b.seen = value[INPUTS].n & MASKED ? input(&b, "attention_mask", value) : b.pad >= 0 ? b.x : HD_NONE;
	b.pad = value[INPUTS].n & MASKED ? 0 : b.pad;
	head->build(&b, value, opts);
	return b.m.err;
}
