#include "graph/op_doc.h"

#include <string.h>

#include "graph/text.h"

const char hd_op_leaves[] =
	"input x f32 [*,4]\n"
	"input seq f32 [*,5,6]\n"
	"input qkv f32 [*,5,12]\n"
	"input img f32 [*,3,8,8]\n"
	"input up f32 [*,7,6,6]\n"
	"input y i32 [*]\n"
	"input ids i32 [*,5]\n"
	"param w f32 [4,2] uniform 0.5\n"
	"input class f32 [4]\n"
	"param k f32 [7,3,3,3] uniform 0.3\n"
	"param g3 f32 [3] ones\n"
	"param b3 f32 [3] zeros\n"
	"param g6 f32 [6] ones\n"
	"param b6 f32 [6] zeros\n"
	"param b2 f32 [2] zeros\n"
	"param table f32 [9,6] normal 0.02\n"
	"param pos f32 [5,6] normal 0.02\n"
	"param w12 f32 [12,3] uniform 0.5\n"
	"param b12 f32 [12] zeros\n"
	"param w6 f32 [6,2] uniform 0.5\n"
	"buffer mean f32 [3] zeros\n"
	"buffer var f32 [3] ones\n"
	"input from i32 [9]\n"
	"input to i32 [9]\n"
	"input edges f32 [9,3]\n"
	"input nodes f32 [5,15]\n"
	"param experts f32 [3,2,6] uniform 0.5\n";

static const struct { uint16_t op; const char *line; } examples[] = {
	{ HD_OP_MATMUL, "%0 = matmul x w" },
	{ HD_OP_CONTRACT, "%0 = contract seq pos tb=1" },
	{ HD_OP_EXPERT_MATMUL, "%0 = expert_matmul seq ids experts tb=1" },
	{ HD_OP_CONV2D, "%0 = conv2d img k sh=1 sw=1 ph=1 pw=1" },
	{ HD_OP_CONV2D_DX, "%0 = conv2d_dx up k img sh=1 sw=1" },
	{ HD_OP_ATTENTION, "%0,%1 = attention qkv heads=2 causal=1" },
	{ HD_OP_ATTEND, "%0,%1 = attend qkv seq seq heads=4 kv=2 causal=1" },
	{ HD_OP_ATTEND_PAD, "%0,%1 = attend_pad qkv seq seq ids heads=4 kv=2 pad=0" },
	{ HD_OP_LSTM, "%0,%1,%2 = lstm qkv w12 b12" },
	{ HD_OP_GRU, "%0,%1,%2 = gru seq w6 b6" },
	{ HD_OP_RESHAPE, "%0 = reshape seq d0=-1 d1=30" },
	{ HD_OP_ADD, "%0 = add seq pos" },
	{ HD_OP_SUB, "%0 = sub seq pos" },
	{ HD_OP_MUL, "%0 = mul seq g6" },
	{ HD_OP_DIV, "%0 = div seq g6" },
	{ HD_OP_POWER, "%0 = power seq g6" },
	{ HD_OP_MAXIMUM, "%0 = maximum seq pos" },
	{ HD_OP_MINIMUM, "%0 = minimum seq pos" },
	{ HD_OP_LESS, "%0 = less seq pos" },
	{ HD_OP_LESS_EQ, "%0 = less_eq seq pos" },
	{ HD_OP_EQUAL, "%0 = equal ids ids" },
	{ HD_OP_WHERE, "%0 = where seq seq pos" },
	{ HD_OP_SCALE, "%0 = scale x by=0.5" },
	{ HD_OP_BIAS, "%0 = bias img b3 axis=1" },
	{ HD_OP_BIAS_ACT, "%0,%1 = bias_act img b3 axis=1 act=relu" },
	{ HD_OP_ACT, "%0 = act x act=leaky alpha=0.1" },
	{ HD_OP_SWIGLU, "%0 = swiglu seq seq" },
	{ HD_OP_ROTARY, "%0 = rotary qkv heads=2 base=10000" },
	{ HD_OP_ROTARY_BY, "%0 = rotary_by qkv g3 heads=2" },
	{ HD_OP_EXPAND, "%0 = expand g3 d0=-1 d1=3" },
	{ HD_OP_EMBED, "%0 = embed ids table" },
	{ HD_OP_GATHER, "%0 = gather pos ids axis=0" },
	{ HD_OP_SCATTER_ADD, "%0 = scatter_add seq ids pos axis=0" },
	{ HD_OP_ONE_HOT, "%0 = one_hot y depth=10" },
	{ HD_OP_CAST, "%0 = cast y to=1" },
	{ HD_OP_PERMUTE, "%0 = permute seq p0=0 p1=2 p2=1" },
	{ HD_OP_SLICE, "%0 = slice seq axis=1 from=4 step=-2 count=3" },
	{ HD_OP_CONCAT, "%0 = concat seq seq axis=1" },
	{ HD_OP_PAD, "%0 = pad seq axis=1 before=2 after=1" },
	{ HD_OP_MAXPOOL2D, "%0 = maxpool2d img kh=2 kw=2 sh=2 sw=2" },
	{ HD_OP_AVGPOOL2D, "%0 = avgpool2d img kh=8 kw=8 sh=1 sw=1" },
	{ HD_OP_REDUCE_SUM, "%0 = reduce_sum seq axes=6 keep=4" },
	{ HD_OP_REDUCE_MEAN, "%0 = reduce_mean seq axes=2" },
	{ HD_OP_REDUCE_MAX, "%0 = reduce_max seq axes=4" },
	{ HD_OP_REDUCE_MIN, "%0 = reduce_min seq axes=4" },
	{ HD_OP_REDUCE_PROD, "%0 = reduce_prod seq axes=4" },
	{ HD_OP_SUM_ROWS, "%0 = sum_rows seq keep=1" },
	{ HD_OP_CUMSUM, "%0 = cumsum seq axis=1" },
	{ HD_OP_ARGMAX, "%0 = argmax seq axis=2" },
	{ HD_OP_TOPK, "%0 = topk seq axis=2 k=3" },
	{ HD_OP_SOFTMAX, "%0 = softmax seq" },
	{ HD_OP_LOG_SOFTMAX, "%0 = log_softmax seq" },
	{ HD_OP_LAYERNORM, "%0,%1 = layernorm seq g6 b6 eps=1e-5" },
	{ HD_OP_ADD_LAYERNORM, "%0,%1,%2 = add_layernorm seq seq g6 b6 eps=1e-5" },
	{ HD_OP_RMSNORM, "%0,%1 = rmsnorm seq g6 eps=1e-6" },
	{ HD_OP_ADD_RMSNORM, "%0,%1,%2 = add_rmsnorm seq seq g6 eps=1e-6" },
	{ HD_OP_GROUPNORM, "%0,%1 = groupnorm img g3 b3 groups=3 eps=1e-5" },
	{ HD_OP_BATCHNORM, "%0,%1,%2 = batchnorm img g3 b3 mean var axis=1 eps=1e-5" },
	{ HD_OP_SOFTMAX_XENT, "%0,%1,%2 = softmax_xent x y" },
	{ HD_OP_CLASS_XENT, "%0,%1,%2 = class_xent x y class smooth=0.1" },
	{ HD_OP_MSE, "%0 = mse x x" },
	{ HD_OP_SUM64, "%0 = sum64 x" },
	{ HD_OP_COUNT64, "%0 = count64 y" },
	{ HD_OP_DROPOUT, "%0 = dropout x p=0.1" },
	{ HD_OP_MASK_TOKENS, "%0,%1 = mask_tokens ids mask=8 vocab=9 share=0.15" },
	{ HD_OP_SPMM, "%0 = spmm from to nodes nodes" },
	{ HD_OP_EDGE_PAIR, "%0 = edge_pair from to nodes nodes" },
	{ HD_OP_EDGE_TOTAL, "%0 = edge_total to edges nodes" },
	{ HD_OP_EDGE_SOFTMAX, "%0 = edge_softmax to edges" },
	{ HD_OP_EDGE_SUM, "%0 = edge_sum from to edges nodes nodes" },
	{ HD_OP_EDGE_DOT, "%0 = edge_dot from to nodes nodes edges" },
	{ HD_OP_EDGE_DROPOUT, "%0 = edge_dropout from edges p=0.1" },
};

/* In the order in which people look for them. */
static const struct { enum hd_op_class class; const char *title; } classes[] = {
	{ HD_OP_DENSE, "Products, convolutions, attention, cells" }, { HD_OP_VIEW, "Views" },
	{ HD_OP_MAP, "Element by element, and what moves elements" }, { HD_OP_REDUCTION, "Sums, norms, losses" },
	{ HD_OP_RANDOM, "Random, keyed by seed and step" }, { HD_OP_GRAPH, "Edges and vertices" },
};
enum { NEXAMPLES = sizeof examples / sizeof examples[0], NCLASSES = sizeof classes / sizeof classes[0] };

const char *hd_op_example(uint16_t op)
{
	for (size_t k = 0; k < NEXAMPLES; k++)
		if (examples[k].op == op)
			return examples[k].line;
	return NULL;
}

enum hd_err hd_op_example_results(uint16_t op, struct hd_arena *arena, struct hd_text *results,
	struct hd_diag *diag)
{
	struct hd_graph graph;
	struct hd_text source;

	hd_text_init(&source, arena);
	hd_text_addf(&source, "%s%s\n", hd_op_leaves, hd_op_example(op));
	hd_graph_init(&graph, arena);
	if (source.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an example");
	enum hd_err err = hd_graph_parse(&graph, "example", source.at, source.len, diag);
	for (uint32_t k = 0; !err && k < graph.node[0].nout; k++)
		hd_text_addf(results, "%s%s", k ? ", " : "",
			hd_value_shape(&graph.value[graph.node[0].out + k]).at);
	return err;
}

/* A bar would end the cell of a table, and [U,K](shape only) would be a link. */
static void add_cell(struct hd_text *text, const char *words)
{
	for (const char *p = words; *p; p++) {
		if (*p == '|')
			hd_text_add(text, "\\");
		hd_text_addf(text, p > words && *p == '(' && p[-1] == ']' ? " %c" : "%c", *p);
	}
}

static enum hd_err add_row(uint16_t op, struct hd_arena *arena, struct hd_text *text, struct hd_diag *diag)
{
	struct hd_text results;

	hd_text_init(&results, arena);
	enum hd_err err = hd_op_example_results(op, arena, &results, diag);
	if (err)
		return err;
	hd_text_addf(text, "| `%s` | `%s` | %s | ", hd_ops[op].name, hd_op_example(op), results.at);
	add_cell(text, hd_ops[op].about);
	hd_text_addf(text, " | %s |\n", hd_ops[op].grad ? "yes" : "no");
	return HD_OK;
}

static void add_acts(struct hd_text *text)
{
	static const char *const numbers[] = { "", "alpha", "alpha beta" };

	hd_text_add(text, "\n## Words of `act=`\n\n| act | numbers | y |\n|---|---|---|\n");
	for (int act = 0; act < HD_NACTS; act++) {
		hd_text_addf(text, "| `%s` | %s | ", hd_acts[act].text, numbers[hd_acts[act].nf]);
		add_cell(text, hd_acts[act].about);
		hd_text_add(text, " |\n");
	}
}

enum hd_err hd_op_document(struct hd_arena *arena, struct hd_text *text, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	hd_text_addf(text, "## What the examples read\n\n```\n%s```\n", hd_op_leaves);
	for (size_t c = 0; c < NCLASSES && !err; c++) {
		hd_text_addf(text,
			"\n## %s\n\n| op | example | gives | meaning | gradient |\n|---|---|---|---|---|\n",
			classes[c].title);
		for (size_t k = 0; k < NEXAMPLES && !err; k++)
			if (hd_ops[examples[k].op].class == classes[c].class)
				err = add_row(examples[k].op, arena, text, diag);
	}
	add_acts(text);
	hd_text_add(text, "\n## Made by autodiff and passes alone\n\n");
	for (uint16_t op = 0, n = 0; op < HD_NOPS; op++)
		if (!hd_op_example(op))
			hd_text_addf(text, "%s`%s`", n++ ? n % 5 == 1 ? ",\n" : ", " : "", hd_ops[op].name);
	hd_text_add(text, "\n");
	return err || !text->full ? err : hd_fail(diag, HD_E_NOMEM, "no memory for the list of ops");
}

enum hd_err hd_op_list(struct hd_arena *arena, struct hd_text *text, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	hd_text_addf(text, "# the examples read\n%s", hd_op_leaves);
	for (size_t c = 0; c < NCLASSES && !err; c++) {
		hd_text_addf(text, "\n# %s\n", classes[c].title);
		for (size_t k = 0; k < NEXAMPLES && !err; k++) {
			uint16_t op = examples[k].op;
			if (hd_ops[op].class != classes[c].class)
				continue;
			hd_text_addf(text, "%s : ", examples[k].line);
			err = hd_op_example_results(op, arena, text, diag);
			hd_text_addf(text, "\n    %s%s\n", hd_ops[op].about,
				hd_ops[op].grad ? "" : " (no gradient)");
		}
	}
	hd_text_add(text, "\n# act=\n");
	for (int act = 0; act < HD_NACTS; act++)
		hd_text_addf(text, "%-9s %s\n", hd_acts[act].text, hd_acts[act].about);
	return err || !text->full ? err : hd_fail(diag, HD_E_NOMEM, "no memory for the list of ops");
}
