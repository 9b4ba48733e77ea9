/* Recurrent language models: a token table, layers of one cell, a linear head. Cells, names and storage of
 * PyTorch's nn.LSTM (Hochreiter and Schmidhuber, 1997; forget gate of Gers et al., 2000) and nn.GRU (Cho et
 * al., 2014, with the reset gate after the product). One direction; the state starts from zeros with every
 * sample. */
#include "graph/models/rows.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS, WIDTH, HIDDEN, CONTEXT, VOCAB, DROPOUT };

const struct hd_model_param hd_recurrent_params[] = {
	[LAYERS]  = { "layers",  HD_ARG_INT,  "2",   1, 100,     "recurrent layers" },
	[WIDTH]   = { "width",   HD_ARG_INT,  "128", 1, 1 << 16, "channels of the token table" },
	[HIDDEN]  = { "hidden",  HD_ARG_INT,  "256", 1, 1 << 14, "channels of the state" },
	[CONTEXT] = { "context", HD_ARG_INT,  "128", 2, 1 << 16, "positions of a sample" },
	[VOCAB]   = { "vocab",   HD_ARG_INT,  "256", 2, 1 << 20, "tokens; 256: bytes" },
	[DROPOUT] = { "dropout", HD_ARG_REAL, "0",   0, 0.95,    "share of elements dropped between layers" },
	{ 0 },
};

/* What a cell is: its op, its gates and the name of PyTorch's module. */
struct cell_kind { const char *name; enum hd_op op; int64_t gates; };

static uint32_t weight(struct hd_maker *m, const struct cell_kind *kind, const char *name, int64_t layer,
	float bound, uint8_t rank, const int64_t *dim)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s.%s_l%lld", kind->name, name, (long long)layer);
	return hd_make_param(m, full, "", HD_INIT_UNIFORM, bound, rank, dim);
}

static uint32_t recurrent(struct hd_maker *m, const struct cell_kind *kind, int64_t layer, uint32_t x,
	int64_t in,
	int64_t hidden)
{
	int64_t g = kind->gates * hidden;
	float bound = 1.0f / sqrtf((float)hidden);
	uint32_t wi = weight(m, kind, "weight_ih", layer, bound, HD_DIMS(g, in)),
		wh = weight(m, kind, "weight_hh", layer, bound, HD_DIMS(g, hidden));
	uint32_t bi = weight(m, kind, "bias_ih", layer, bound, HD_DIMS(g)),
		bh = weight(m, kind, "bias_hh", layer, bound, HD_DIMS(g));
	uint32_t z = hd_make2(m, HD_OP_MATMUL, x, wi, (struct hd_attr){ .i = { 0, 1 } });

	z = hd_make2(m, HD_OP_BIAS, z, bi, (struct hd_attr){ .i = { -1 } });
	return hd_make3(m, kind->op, z, wh, bh, (struct hd_attr){ 0 });
}

static enum hd_err build(struct hd_graph *graph, const struct cell_kind *kind,
	const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	struct hd_maker m = { graph, diag, HD_OK };
	int64_t width = value[WIDTH].n, hidden = value[HIDDEN].n, context = value[CONTEXT].n,
		vocab = value[VOCAB].n;
	float dropout = (float)value[DROPOUT].real;

	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model '%s' predicts tokens: its loss is cross-entropy",
			kind->name);
	uint32_t x = hd_make_input(&m, "x", HD_I32, HD_DIMS(-1, context));
	uint32_t table = hd_make_param(&m, "embed", ".weight", HD_INIT_NORMAL, 1, HD_DIMS(vocab, width));
	uint32_t h = hd_make2(&m, HD_OP_EMBED, x, table, (struct hd_attr){ 0 });
	for (int64_t i = 0; i < value[LAYERS].n; i++) {
		if (i && dropout > 0)
			h = hd_make1(&m, HD_OP_DROPOUT, h, (struct hd_attr){ .f = { dropout } });
		h = recurrent(&m, kind, i, h, i ? hidden : width, hidden);
	}
	uint32_t logits = hd_make_linear(&m, "head", h, hidden, vocab);
	hd_make_ends(&m, opts, logits, logits, context, vocab);
	return m.err;
}

enum hd_err hd_lstm_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return build(graph, &(struct cell_kind){ "lstm", HD_OP_LSTM, 4 }, value, opts, diag);
}

enum hd_err hd_gru_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return build(graph, &(struct cell_kind){ "gru", HD_OP_GRU, 3 }, value, opts, diag);
}
