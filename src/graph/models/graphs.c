/* Models of whole graphs: gcn, gat, sage-mean. Rows are vertices. Edges are two lists (ops/edge_pair.inc.h)
 * of
 * `slots` places a vertex, sorted by target, then source, each vertex with an edge to itself; places that are
 * left over hold -1. Degrees are those of the whole graph, the edge of a vertex to itself counted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/models/rows.h"

enum { INPUT, CLASSES, SLOTS, LAYERS, HIDDEN, DROPOUT, FUNCTION, BIAS, ROWS, THE_REST };
enum { NORM = THE_REST, ORDER };
enum { HEADS = THE_REST, OUT_HEADS, SLOPE };

#define COMMON(act) \
	[INPUT]    = { "input",   HD_ARG_INT,  "1433", 1, 1 << 20, .about = "features of a vertex" }, \
	[CLASSES]  = { "classes", HD_ARG_INT,  "7",    1, 1 << 20, .about = "classes of vertices" }, \
	[SLOTS]    = { "slots",   HD_ARG_INT,  "5",    1, 1 << 16, \
		.about = "places for edges, for each vertex" }, \
	[LAYERS]   = { "layers",  HD_ARG_INT,  "2",    1, 64, \
		.about = "layers, each of which reaches one edge further" }, \
	[HIDDEN]   = { "hidden",  HD_ARG_INT,  "16",   1, 1 << 20, \
		.about = "width between layers (gat: of each head)" }, \
	[DROPOUT]  = { "dropout", HD_ARG_REAL, "0.5",  0, 0.99, \
		.about = "of what goes into each layer (gat: of attention too)" }, \
	[FUNCTION] = { "act",     HD_ARG_WORD, act,    0, 0, \
		.about = "after each layer but the last: relu, elu, tanh, gelu .." }, \
	[BIAS]     = { "bias",    HD_ARG_WORD, "true", 0, 0, .about = "true or false" }, \
	[ROWS]     = { "rows",    HD_ARG_WORD, "raw",  0, 0, \
		.about = "features of a vertex: raw, or sum1: divided by the sum of their sizes" }

const struct hd_model_param hd_gcn_params[] = {
	COMMON("relu"),
	[NORM]  = { "norm",  HD_ARG_WORD, "sym",  0, 0, .about = "of sums: sym, row (means) or none" },
	[ORDER] = { "order", HD_ARG_WORD, "auto", 0, 0,
		.about = "product (by weights, then sums), gather (the other way), auto: product where it "
		"makes rows narrower" },
	{ 0 },
};

const struct hd_model_param hd_gat_params[] = {
	COMMON("elu"),
	[HEADS]     = { "heads",     HD_ARG_INT,  "8",   1, 1024, .about = "of attention, joined" },
	[OUT_HEADS] = { "out_heads", HD_ARG_INT,  "1",   1, 1024,
		.about = "of the last layer, whose mean is taken" },
	[SLOPE]     = { "slope",     HD_ARG_REAL, "0.2", 0, 1, .about = "of scores below 0" },
	{ 0 },
};

const struct hd_model_param hd_sage_params[] = { COMMON("relu"), { 0 } };

struct graphs {
	struct hd_maker m;
	const struct hd_model_value *value;
	uint32_t from, to, number, degrees;
	int act;
	bool bias;
	char layer[HD_MAX_NAME];
};

static const struct hd_attr none;

static enum hd_err word_of(const char *name, const char *text, const char *const *words, int n, int *at,
	struct hd_diag *diag)
{
	for (int i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0) {
			*at = i;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "argument '%s': '%s' is none of %s, %s%s%s", name, text, words[0],
		words[1],
		n > 2 ? ", " : "", n > 2 ? words[2] : "");
}

static uint32_t list_of(struct graphs *g, const char *name)
{
	int64_t slots = g->value[SLOTS].n;

	return hd_make1(&g->m, HD_OP_RESHAPE, hd_make_input(&g->m, name, HD_I32, HD_DIMS(-1, slots)),
		(struct hd_attr){ .i = { (int32_t)-slots } });
}

static uint32_t number_of(struct graphs *g, float at)
{
	uint32_t value = 0;

	if (g->m.err == HD_OK)
		g->m.err = hd_graph_const(g->m.graph, HD_F32, 1, (int64_t[]){ 1 }, &at, &value, g->m.diag);
	return value;
}

static enum hd_err begin(struct graphs *g, struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag, bool numbers, uint32_t *x)
{
	static const char *const truth[] = { "false", "true" }, *const forms[] = { "raw", "sum1" };
	int bias = 0, form = 0;

	*g = (struct graphs){ .m = { graph, diag, HD_OK }, .value = value };
	if (opts->loss != HD_LOSS_CROSS_ENTROPY)
		return hd_fail(diag, HD_E_INVAL, "model.loss: models of graphs tell classes of vertices: use "
			"cross-entropy");
	if (!hd_act_parse(value[FUNCTION].word, &g->act) || (hd_acts[g->act].nf && g->act != HD_ACT_ELU))
		return hd_fail(diag, HD_E_INVAL,
			"argument 'act': '%s' is no activation without numbers, nor elu",
				value[FUNCTION].word);
	enum hd_err err = word_of("bias", value[BIAS].word, truth, 2, &bias, diag);
	err = err ? err : word_of("rows", value[ROWS].word, forms, 2, &form, diag);
	g->bias = bias;
	*x = hd_make_input(&g->m, "x", HD_F32, HD_DIMS(-1, value[INPUT].n));
	g->from = list_of(g, "from");
	g->to = list_of(g, "to");
	if (form == 1) {
		uint32_t size = hd_make1(&g->m, HD_OP_ACT, *x, (struct hd_attr){ .i = { HD_ACT_ABS } });
		uint32_t sum = hd_make1(&g->m, HD_OP_REDUCE_SUM, size, (struct hd_attr){ .i = { 2, 2 } });
		/* of a row of zeros too */
		*x = hd_make2(&g->m, HD_OP_DIV, *x, hd_make2(&g->m, HD_OP_MAXIMUM, sum, number_of(g,
			1e-12f), none),
			none);
	}
	if (numbers)
		g->number = list_of(g, "number");
	else
		g->degrees = hd_make_input(&g->m, "degrees", HD_F32, HD_DIMS(-1, 2));
	return err ? err : g->m.err;
}

/* "layers.1." and what follows */
static uint32_t param_of(struct graphs *g, const char *suffix, float bound, uint8_t rank, const int64_t *dim)
{
	return hd_make_param(&g->m, g->layer, suffix, bound > 0 ? HD_INIT_UNIFORM : HD_INIT_ZEROS, bound,
		rank, dim);
}

/* Bounds of Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
 * (2010). */
static float glorot(int64_t in, int64_t out) { return sqrtf(6.0f / (float)(in + out)); }

static uint32_t product(struct graphs *g, uint32_t h, const char *suffix, int64_t in, int64_t out)
{
	return hd_make2(&g->m, HD_OP_MATMUL, h, param_of(g, suffix, glorot(in, out), HD_DIMS(in, out)), none);
}

/* degree^by of each vertex, [V,1]; column 0: of edges that end there, 1: of those that begin there. */
static uint32_t degree(struct graphs *g, int column, float by)
{
	uint32_t d = hd_make1(&g->m, HD_OP_SLICE, g->degrees, (struct hd_attr){ .i = { 1, column, 1, 1 } });

	return hd_make2(&g->m, HD_OP_POWER, d, number_of(g, by), none);
}

static uint32_t dropped(struct graphs *g, uint32_t h)
{
	float p = (float)g->value[DROPOUT].real;

	return p > 0 ? hd_make1(&g->m, HD_OP_DROPOUT, h, (struct hd_attr){ .f = { p } }) : h;
}

static uint32_t ended(struct graphs *g, uint32_t z, bool last)
{
	return last ? z : hd_make1(&g->m, HD_OP_ACT, z,
		(struct hd_attr){ .i = { g->act }, .f = { g->act == HD_ACT_ELU ? 1.0f : 0.0f } });
}

static uint32_t biased(struct graphs *g, uint32_t z, int64_t width)
{
	return g->bias ? hd_make2(&g->m, HD_OP_BIAS, z, param_of(g, "bias", 0, HD_DIMS(width)),
		(struct hd_attr){ .i = { -1 } }) : z;
}

static enum hd_err finish(struct graphs *g, const struct hd_model_opts *opts, uint32_t x, uint32_t logits)
{
	uint32_t y = hd_make_input(&g->m, "y", HD_I32, HD_DIMS(-1));

	/* vertices without a label weigh nothing */
	struct hd_model_opts by_labels = *opts;
	by_labels.normalize = HD_NORMALIZE_TOKEN;
	hd_make_losses(&g->m, &by_labels, x, y, logits, 1);
	return g->m.err;
}

enum norm { NORM_SYM, NORM_ROW, NORM_NONE };

/* Sums over the edges, scaled: what sources are multiplied by before, and targets after. */
static uint32_t gathered(struct graphs *g, uint32_t h, enum norm norm, uint32_t source, uint32_t target)
{
	uint32_t z = norm == NORM_SYM ? hd_make2(&g->m, HD_OP_MUL, h, source, none) : h;
	uint32_t y = hd_make4(&g->m, HD_OP_SPMM, g->from, g->to, z, z, none);

	return norm == NORM_NONE ? y : hd_make2(&g->m, HD_OP_MUL, y, target, none);
}

enum hd_err hd_gcn_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	static const char *const norms[] = { "sym", "row", "none" }, *const orders[] = { "auto", "product",
		"gather" };
	struct graphs g;
	uint32_t x = 0, source = 0, target = 0;
	int norm = 0, order = 0;
	enum hd_err err = begin(&g, graph, value, opts, diag, false, &x);

	err = err ? err : word_of("norm", value[NORM].word, norms, 3, &norm, diag);
	err = err ? err : word_of("order", value[ORDER].word, orders, 3, &order, diag);
	if (err)
		return err;
	if (norm != NORM_NONE)
		target = degree(&g, 0, norm == NORM_ROW ? -1.0f : -0.5f);
	if (norm == NORM_SYM)
		source = degree(&g, 1, -0.5f);
	uint32_t h = x;
	int64_t in = value[INPUT].n;
	for (int64_t i = 0; i < value[LAYERS].n; i++) {
		bool last = i + 1 == value[LAYERS].n;
		int64_t out = last ? value[CLASSES].n : value[HIDDEN].n;
		bool before = order == 1 || (order == 0 && out < in);
		snprintf(g.layer, sizeof g.layer, "layers.%lld.", (long long)i);
		h = dropped(&g, h);
		if (!before)
			h = gathered(&g, h, (enum norm)norm, source, target);
		h = product(&g, h, "weight", in, out);
		if (before)
			h = gathered(&g, h, (enum norm)norm, source, target);
		h = ended(&g, biased(&g, h, out), last);
		in = out;
	}
	return finish(&g, opts, x, h);
}

/* [V, heads * width] -> [V, heads], a row's product with a vector of its head. */
static uint32_t scores(struct graphs *g, uint32_t h, const char *suffix, int64_t heads, int64_t width)
{
	uint32_t a = param_of(g, suffix, glorot(1, width), HD_DIMS(heads * width));
	uint32_t p = hd_make2(&g->m, HD_OP_MUL, h, a, none);

	p = hd_make1(&g->m, HD_OP_RESHAPE, p, (struct hd_attr){ .i = { -1, (int32_t)heads,
		(int32_t)width } });
	return hd_make1(&g->m, HD_OP_REDUCE_SUM, p, (struct hd_attr){ .i = { 4 } });
}

static uint32_t attended(struct graphs *g, uint32_t h, int64_t heads, int64_t width)
{
	float p = (float)g->value[DROPOUT].real;
	uint32_t s = scores(g, h, "source", heads, width), d = scores(g, h, "target", heads, width);
	uint32_t e = hd_make4(&g->m, HD_OP_EDGE_PAIR, g->from, g->to, s, d, none), out = 0;

	e = hd_make1(&g->m, HD_OP_ACT, e, (struct hd_attr){ .i = { HD_ACT_LEAKY },
		.f = { (float)g->value[SLOPE].real } });
	e = hd_make2(&g->m, HD_OP_EDGE_SOFTMAX, g->to, e, none);
	if (p > 0)
		e = hd_make2(&g->m, HD_OP_EDGE_DROPOUT, g->number, e, (struct hd_attr){ .f = { p } });
	if (g->m.err == HD_OK)
		g->m.err = hd_graph_node(g->m.graph, HD_OP_EDGE_SUM, 5, (uint32_t[]){ g->from, g->to, e, h,
			h }, &none,
			0, &out, g->m.diag);
	return out;
}

enum hd_err hd_gat_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct graphs g;
	uint32_t x = 0;
	enum hd_err err = begin(&g, graph, value, opts, diag, true, &x);

	if (err)
		return err;
	uint32_t h = x;
	int64_t in = value[INPUT].n;
	for (int64_t i = 0; i < value[LAYERS].n; i++) {
		bool last = i + 1 == value[LAYERS].n;
		int64_t width = last ? value[CLASSES].n : value[HIDDEN].n,
			heads = last ? value[OUT_HEADS].n : value[HEADS].n;
		snprintf(g.layer, sizeof g.layer, "layers.%lld.", (long long)i);
		h = product(&g, dropped(&g, h), "weight", in, heads * width);
		h = attended(&g, h, heads, width);
		if (last && heads > 1) {
			h = hd_make1(&g.m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)heads,
				(int32_t)width } });
			h = hd_make1(&g.m, HD_OP_REDUCE_MEAN, h, (struct hd_attr){ .i = { 2 } });
		}
		in = last ? width : heads * width;
		h = ended(&g, biased(&g, h, in), last);
	}
	return finish(&g, opts, x, h);
}

/* A vertex by one matrix, the mean of its neighbours by another. The lists have it among them: it is taken
 * out of the sum; where it has no other the mean is 0. */
enum hd_err hd_sage_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct graphs g;
	uint32_t x = 0;
	enum hd_err err = begin(&g, graph, value, opts, diag, false, &x);

	if (err)
		return err;
	uint32_t one = number_of(&g, 1.0f), d = hd_make1(&g.m, HD_OP_SLICE, g.degrees,
		(struct hd_attr){ .i = { 1, 0, 1, 1 } });
	uint32_t n = hd_make2(&g.m, HD_OP_MAXIMUM, hd_make2(&g.m, HD_OP_SUB, d, one, none), one, none), h = x;
	int64_t in = value[INPUT].n;
	for (int64_t i = 0; i < value[LAYERS].n; i++) {
		bool last = i + 1 == value[LAYERS].n;
		int64_t out = last ? value[CLASSES].n : value[HIDDEN].n;
		snprintf(g.layer, sizeof g.layer, "layers.%lld.", (long long)i);
		h = dropped(&g, h);
		uint32_t own = product(&g, h, "own", in, out);
		/* narrower rows are what is gathered */
		uint32_t z = out < in ? product(&g, h, "near", in, out) : h;
		uint32_t sum = hd_make4(&g.m, HD_OP_SPMM, g.from, g.to, z, z, none);
		sum = hd_make2(&g.m, HD_OP_DIV, hd_make2(&g.m, HD_OP_SUB, sum, z, none), n, none);
		if (out >= in)
			sum = product(&g, sum, "near", in, out);
		h = ended(&g, biased(&g, hd_make2(&g.m, HD_OP_ADD, own, sum, none), out), last);
		in = out;
	}
	return finish(&g, opts, x, h);
}
