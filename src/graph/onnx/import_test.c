#include <stdio.h>
#include <string.h>

#include "graph/onnx/wire.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "graph/onnx/testing_files.h"

#define LAYERNORM "eps: 0.00001\ntwo: 2.0\ngamma [6]\nbeta [6]\nReduceMean x -> m axes=-1\nSub x,m -> d\n" \
	"Pow d,two -> p\nReduceMean p -> v axes=-1\n" \
	"Add v,eps -> e\nSqrt e -> s\nDiv d,s -> q\nMul gamma,q -> g\nAdd g,beta -> n\n"

static void a_layer_norm_taken_apart_is_one_op(void **state)
{
	static struct model m;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	write_model(&m, LAYERNORM "Relu n -> out\n", 2);
	CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(count(&g, HD_OP_LAYERNORM), 1);
	assert_int_equal(count(&g, HD_OP_REDUCE_MEAN), 0);
	hd_arena_finish(&arena);
	/* What lies inside is read outside: all of it stays. */
	write_model(&m, LAYERNORM "Add n,s -> out\n", 2);
	diag.text[0] = '\0';
	CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(count(&g, HD_OP_LAYERNORM), 0);
	assert_int_equal(count(&g, HD_OP_REDUCE_MEAN), 2);
	hd_arena_finish(&arena);
}

static void gelu_is_known_by_its_constants(void **state)
{
	static const struct { const char *root, *half; int gelus; } cases[] = {
		{ "1.4142135", "0.5", 1 }, { "1.4142", "0.5", 0 }, { "1.4142135", "0.25", 0 },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	char text[400];
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		struct hd_diag diag = { "" };
		int n = 0;
		snprintf(text, sizeof text,
			"r: %s\none: 1.0\nh: %s\nDiv x,r -> a\nErf a -> b\nAdd b,one -> c\nMul x,c -> "
			"d\nMul d,h -> out\n", cases[i].root,
			cases[i].half);
		write_model(&m, text, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "%s", diag.text);
		for (uint32_t k = 0; k < g.nnodes; k++)
			n += g.node[k].op == HD_OP_ACT && g.node[k].attr.i[0] == HD_ACT_GELU_ERF;
		CHECK(n == cases[i].gelus, "case %zu: %d", i, n);
		hd_arena_finish(&arena);
	}
}

/* Shape, Gather, Mul, Concat, Reshape, as an exporter writes view(x.size(0), -1); and the traced number in
 * their place. */
static void the_batch_is_free_whatever_was_traced(void **state)
{
	static const char *const text[] = {
		"zero: 0\nrest: -1\nShape x -> s\nGather s,zero -> n axis=0\nConcat n,rest -> to "
			"axis=0\nReshape x,to -> f\nRelu f -> out\n",
		"to: 3,24\nReshape x,to -> f\nRelu f -> out\n",
		"to: 3,-1\nReshape x,to -> f\nRelu f -> out\n",
		"Flatten x -> f\nRelu f -> out\n",
		("one: 1\nthree: 3\nShape x -> s\nSlice s,one,three -> t\nReduceProd t -> c\nunused: "
		"0\nzero: 0\nGather s,zero -> n axis=0\n"
		 "Concat n,c -> to axis=0\nReshape x,to -> f\nRelu f -> out\n"),
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		struct hd_diag diag = { "" };
		write_model(&m, text[i], 3);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		const struct hd_value *v = &g.value[hd_graph_find_output(&g, "logits")];
		CHECK(v->rank == 2 && v->dim[0] == -1 && v->dim[1] == 24, "case %zu: %s", i,
			hd_value_shape(v).at);
		hd_arena_finish(&arena);
	}
}

static void what_cannot_be_had_is_told_at_once(void **state)
{
	static struct model m;
	struct hd_diag diag = { "" };
	struct hd_text report;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	write_model(&m,
		"STFT x -> a\nRelu a -> b\nDet b -> c\nto: 2,5\nReshape x,to -> d\nDFT x -> e\nAdd c,e -> "
		"out\n", 2);
	assert_int_equal(import(&m, &arena, &g, &report, &diag), HD_E_INPUT);
	assert_string_equal(diag.text,
		"test.onnx: 4 nodes cannot be had: STFT 'a'; Det 'c'; Reshape 'd': reshape: the new extents "
		"hold another number of "
		"elements; operands are f32 [*,4,6]; DFT 'e'");
	assert_non_null(strstr(report.at, "Det 'c': no such op in Heddle\n"));
	assert_null(strstr(report.at, "Relu"));
	hd_arena_finish(&arena);
}

static void refusals_name_the_place(void **state)
{
	static const struct { const char *text, *why; } cases[] = {
		{ "Relu gone -> out\n", "its input 'gone' is made by nothing before it" },
		{ "Relu x -> a\nRelu x -> a\nRelu a -> out\n", "'a' is made twice" },
		{ "w [2,2]\nw [2,2]\nRelu x -> out\n", "two initializers are called 'w'" },
		{ "w [24,3]\nMatMul x,w -> out\n", "MatMul 'out': the extents summed over, 6 and 24, differ" },
		{ "Relu x -> a\n", "the graph has no output that depends on its input" },
		{ "ReduceMean x -> out keepdims=0\n", "write model.loss: none" },
		{ "ReduceMean x -> out axes=0\n", "reduces over the rows of the batch" },
		{ "ReduceProd x -> out axes=0\n", "reduces over the rows of the batch" },
		{ "i: 0,1\nScatterND x,i,x -> out\n", "it addresses by more than one index" },
		{ "i: 0\nScatterElements x,i,i -> out\n", "an input is missing, or its axis" },
		{ "Einsum x -> out equation='bij->..bij'\n", "\"bij->..bij\" is no equation of 1 operands" },
		{ "Einsum x,x -> out equation='bij->bij'\n", "is no equation of 2 operands" },
		{ "u [6,3]\nEinsum x,u -> out equation='...j,jk->k'\n", "the result leaves out what \"...\" stands for" },
		{ "u [6]\nEinsum x,u -> out equation='bij,jk->bik'\n", "operand 1 has another number of extents than letters" },
		{ "u [3]\nEinsum u,u,x -> out equation='i,i,bjk->bjk'\n", "operands 0 to 1 have nothing in common" },
		{ "Shape x -> s\nCast s -> f to=1\nMul x,f -> out\n", "Cast 'f': the result depends on the number of rows" },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		write_model(&m, cases[i].text, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_E_INPUT, "case %zu was taken", i);
		CHECK(strstr(diag.text, cases[i].why), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
}

/* Ops whose nodes are several of ours: what their results have, and how many of which op there are. */
static void what_is_written_with_several_ops_has_the_extents_of_onnx(void **state)
{
	static const struct { const char *text, *shape; enum hd_op op; uint32_t n; int64_t opset;
		} cases[] = {
		{ "p: 1,-2\na: 2\none: 0.5\nPad x,p,one,a -> out\n", "f32 [*,4,5]", HD_OP_PAD, 1, 18 },
		{ "p: 0,0,-1,0,0,2\nPad x,p -> out\n", "f32 [*,4,7]", HD_OP_SLICE, 1, 13 },
		{ "w [4,2,3]\nConvTranspose x,w -> out strides=2 pads=1,1 output_padding=1", "f32 [*,2,12]", HD_OP_CONV2D_DX, 1, 11 },
		{ "w [4,2,3]\nConvTranspose x,w -> out strides=2 pads=0,2", "f32 [*,2,11]", HD_OP_SLICE, 1, 22 },
		{ "to: 0,1,4,2,3\nReshape x,to -> v\nw [5,1,3,2,2]\nConv v,w -> out pads=1,0,0,1,0,0\n", "f32 [*,5,4,1,2]", HD_OP_CONV2D, 3, 22 },
		{ "to: 0,1,4,2,3\nReshape x,to -> v\nw [1,2,2,2,2]\nConvTranspose v,w -> out strides=2,2,2\n", "f32 [*,2,8,4,6]", HD_OP_CONV2D_DX, 2, 22 },
		{ "to: 0,1,4,2,3\nReshape x,to -> v\nMaxPool v -> out kernel_shape=2,2,2\n", "f32 [*,1,3,1,2]", HD_OP_MAXPOOL2D, 2, 22 },
		{ "MaxPool x -> out kernel_shape=2 dilations=3\n", "f32 [*,4,3]", HD_OP_MAXIMUM, 1, 22 },
		{ "s: 0,4,9\nShape x -> d\nn: 0\nGather d,n -> r axis=0\nh: 4,9\nConcat r,h -> t axis=0\nResize x,,,t -> out\n", "f32 [*,4,9]", HD_OP_GATHER, 1, 22 },
		{ "k: 2\nTopK x,k -> v,i axis=1\nRelu v -> out\n", "f32 [*,2,6]", HD_OP_TOPK, 1, 22 },
		{ "g [2]\nGroupNormalization x,g,g -> out num_groups=2\n", "f32 [*,4,6]", HD_OP_EXPAND, 2, 18 },
		{ "g [4]\nGroupNormalization x,g,g -> out num_groups=2\n", "f32 [*,4,6]", HD_OP_GROUPNORM, 1, 21 },
		{ "Gelu x -> out\n", "f32 [*,4,6]", HD_OP_ACT, 1, 20 },
		{ "u [6,3]\nv [3,5]\nEinsum x,u,v -> out equation='bij,jk,kl->bil'\n", "f32 [*,4,5]", HD_OP_CONTRACT, 2, 13 },
		{ "u [6,3]\nEinsum x,u -> out equation='...j,jk->...k'\n", "f32 [*,4,3]", HD_OP_CONTRACT, 1, 13 },
		{ "u [6,3]\nEinsum u,x -> out equation='jA,b...j'\n", "f32 [4,3,*]", HD_OP_CONTRACT, 1, 13 },
		{ "u [4]\nEinsum x,x,u,x -> out equation='bij,bik,i,bil->bjl'\n", "f32 [*,6,6]", HD_OP_CONTRACT, 3, 13 },
		{ "Tan x -> a\nSinh a -> b\nAtanh b -> c\nLRN c -> out size=3\n", "f32 [*,4,6]", HD_OP_AVGPOOL2D, 1, 22 },
		{ "w [2,5,6]\nr [2,5,5]\nRNN x,w,r -> y,h\nRelu y -> out\n", NULL, HD_OP_CONCAT, 0, 22 },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		write_opset(&m, cases[i].text, 2, cases[i].opset);
		enum hd_err err = import(&m, &arena, &g, NULL, &diag);
		const char *logits = strstr(diag.text, "a loss needs");
		CHECK(cases[i].shape ? err == HD_OK || logits : err == HD_E_INPUT, "case %zu: %s", i,
			diag.text);
		if (cases[i].shape) {
			CHECK(count(&g, cases[i].op) == cases[i].n, "case %zu: %u of %s", i,
				count(&g, cases[i].op), hd_ops[cases[i].op].name);
			bool found = false;
			for (uint32_t v = 0; v < g.nvalues; v++)
				found = found || !strcmp(hd_value_shape(&g.value[v]).at, cases[i].shape);
			CHECK(found, "case %zu: no value has %s", i, cases[i].shape);
		}
		hd_arena_finish(&arena);
	}
}

/* Of several operands, or with dots: the graph of the same sums written out, two operands each. */
static void an_equation_of_many_is_sums_of_two(void **state)
{
	static const char *const cases[][2] = {
		{ "u [6,3]\nv [3,5]\nEinsum x,u,v -> out equation='bij,jk,kl->bil'\n",
			"u [6,3]\nv [3,5]\nEinsum x,u -> t equation='bij,jk->bik'\n"
			"Einsum t,v -> out equation='bik,kl->bil'\n" },
		{ "u [4]\nEinsum x,x,u,x -> out equation='bij,bik,i,bil->bjl'\n",
			"u [4]\nEinsum x,x -> s equation='bij,bik->bij'\n"
			"Einsum s,u -> t equation='bij,i->bij'\n"
			"Einsum t,x -> out equation='bij,bil->bjl'\n" },
		{ "u [6,3]\nEinsum x,u -> out equation='...j,jk->...k'\n",
			"u [6,3]\nEinsum x,u -> out equation='bij,jk->bik'\n" },
		{ "u [6,3]\nEinsum x,u -> out equation='...j,jk'\n",
			"u [6,3]\nEinsum x,u -> out equation='bij,jk->bik'\n" },
	};
	static struct model m;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_arena arena[2];
		struct hd_text text[2];
		for (int k = 0; k < 2; k++) {
			struct hd_diag diag = { "" };
			struct hd_graph g;
			write_model(&m, cases[i][k], 2);
			CHECK(import(&m, &arena[k], &g, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
			hd_text_init(&text[k], &arena[k]);
			CHECK(hd_graph_print(&g, &text[k], &diag) == HD_OK, "%s", diag.text);
		}
		assert_string_equal(text[0].at, text[1].at);
		hd_arena_finish(&arena[0]);
		hd_arena_finish(&arena[1]);
	}
}

static void what_has_no_gradient_of_its_kind_is_refused_by_name(void **state)
{
	static const struct { const char *text, *why; } cases[] = {
		{ "k: 7\nTopK x,k -> v,i\nRelu v -> out\n", "TopK 'v': how many is not known before the graph runs, or not among the 6" },
		{ "k: 1\nTopK x,k -> v,i axis=0\nRelu v -> out\n", "TopK 'v': there is no such axis, it is the rows" },
		{ "p: 0,9\na: 0\nz: 0.5\nPad x,p,z,a -> out\n", "Pad 'out': nothing is left of axis 0, or it is the rows" },
		{ "p: 1,1\na: 5\nz: 0.5\nPad x,p,z,a -> out\n", "Pad 'out': an axis does not exist" },
		{ "p: 0,-3\na: 1\nq: 0,-3\nz: 0.5\nPad x,p,z,a -> b\nPad b,q,z,a -> out\n", "Pad 'out': nothing is left of axis 1" },
		{ "s: 4,4,6\nResize x,,,s -> out\n", "Resize 'out': axis 0 is the rows" },
		{ "Resize x -> out\n", "neither its scales nor its sizes are known" },
		{ "w [4,2,3]\nConvTranspose x,w -> out output_padding=1\n", "output_padding is not below the stride" },
		{ "w [3,2,3]\nConvTranspose x,w -> out\n", "x and the kernel have different channels" },
		{ "w [4,2,3]\nConvTranspose x,w -> out pads=9,9\n", "nothing is left between them" },
		{ "AveragePool x -> out kernel_shape=2 dilations=2\n", "means of elements that lie apart" },
		{ "g [3]\nGroupNormalization x,g,g -> out num_groups=2\n", "its gains and biases are not one a channel" },
		{ "w [1,8,6]\nr [1,8,2]\nh [1,4,2]=1\nLSTM x,w,r,,,h -> y\nRelu y -> out\n", "LSTM 'y': its time is the rows" },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		write_opset(&m, cases[i].text, 2, 22);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_E_INPUT, "case %zu was taken", i);
		CHECK(strstr(diag.text, cases[i].why), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
}

static Onnx__AttributeProto *branch_of(const char *name, const char *line, const char *out)
{
	Onnx__AttributeProto *a = made(1, sizeof *a);
	Onnx__GraphProto *g = made(1, sizeof *g);

	onnx__attribute_proto__init(a);
	onnx__graph_proto__init(g);
	a->name = copied(name);
	a->g = g;
	g->node = made(1, sizeof *g->node);
	g->node[g->n_node++] = node_of(copied(line));
	g->output = made(1, sizeof *g->output);
	g->output[g->n_output++] = info(out, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, NULL, 0);
	return a;
}

/* cond -> [Det x, which cannot be had | Neg x] -> out */
static void write_if(struct model *m, const char *condition)
{
	Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
	Onnx__NodeProto *node[2] = { node_of(copied("Abs x -> a")), node_of(copied("If c -> out")) };
	Onnx__TensorProto *init = tensor_of("c", condition);
	Onnx__ValueInfoProto *x = info("x", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ 2, 6 }, 2),
		*out = info("out", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, NULL, 0);

	if (!condition[0])
		node[1]->input[0] = copied("a");
	node[1]->attribute[node[1]->n_attribute++] = branch_of("then_branch", "Det a -> t", "t");
	node[1]->attribute[node[1]->n_attribute++] = branch_of("else_branch", "Neg a -> e", "e");
	g.node = node;
	g.n_node = 2;
	g.initializer = &init;
	g.n_initializer = condition[0] != '\0';
	g.n_input = g.n_output = 1;
	g.input = &x;
	g.output = &out;
	pack(m, &g);
}

static void the_branch_that_is_taken_is_all_that_counts(void **state)
{
	static const struct { const char *condition, *why; } cases[] = {
		{ "0", NULL }, { "1", "Det 't'" }, { "", "If 'out': which branch it takes is not known" },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		write_if(&m, cases[i].condition);
		enum hd_err err = import(&m, &arena, &g, NULL, &diag);
		CHECK(err == (cases[i].why ? HD_E_INPUT : HD_OK), "case %zu: %s", i, diag.text);
		CHECK(!cases[i].why || strstr(diag.text, cases[i].why), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
}

#define ROWS "zero: 0\nShape x -> sh\nGather sh,zero -> n axis=0\n"
#define KEEP "Relu x -> out\n"

/* Each was an access outside, a trap, or another number than the file means. */
static void hostile_and_lossy_constants_are_refused(void **state)
{
	static const struct { const char *text, *why; } cases[] = {
		{ "d: 1,2,3,4\ns: 3,3\ne: 4,4\na: 0,0\nSlice d,s,e,a -> t\n" KEEP, "Slice 't': an axis is given twice" },
		{ "s: 1,1\ne: 3,3\na: 1,-2\nSlice x,s,e,a -> out\n", "Slice 'out': an axis is given twice" },
		{ "a: 1\nAdd a,a -> b,c\nAdd c,a -> d\n" KEEP, "Add 'b': has one output" },
		{ ROWS "low: -9223372036854775808\nminus: -1\nMul n,low -> a\nMul n,minus -> b\nDiv a,b -> c\n" KEEP, "Div 'c': integer arithmetic overflows" },
		{ "low: -9223372036854775808\nminus: -1\nDiv low,minus -> c\n" KEEP, "Div 'c': integer arithmetic overflows" },
		{ "w [0,4611686018427387904,8]\n" KEEP, "or there are more than 2^40 elements" },
		{ "d: 0,4611686018427387904,8\nConstantOfShape d -> c\n" KEEP, "ConstantOfShape 'c': a constant of more than" },
		{ "big: 4294967298\nCast x -> i to=7\nAdd i,big -> j\nCast j -> out to=1\n", "Add 'j': 4294967298 does not fit 32 bits" },
		{ "a: 300\nCast a -> b to=2\n" KEEP, "Cast 'b': 300 does not fit the integer type" },
		{ "a: 128\nCast a -> b to=3\n" KEEP, "Cast 'b': 128 does not fit the integer type" },
		{ "a: 2147483648\nCast a -> b to=6\n" KEEP, "Cast 'b': 2147483648 does not fit the integer type" },
		{ "a: -1.0\nCast a -> b to=12\n" KEEP, "Cast 'b': a float does not fit the integer type" },
		{ "a: 100\nCast a -> b to=3\nAdd b,b -> c\n" KEEP, "Add 'c': integer arithmetic overflows" },
		{ "low: -9223372036854775808\nNeg low -> b\n" KEEP, "Neg 'b': integer arithmetic overflows" },
		{ "low: -9223372036854775808\nAbs low -> b\n" KEEP, "Abs 'b': integer arithmetic overflows" },
		{ "s: 1,2\nSplit x,s -> a,b axis=1\nAdd a,a -> out\n", "Split 'a': the sizes add up to 3, and the axis has 4" },
		{ ROWS "one: 1\nthree: 3\nAdd n,one -> m\nConcat m,three -> s axis=0\nSplit x,s -> a,b axis=1\nAdd a,a -> out\n",
			"Split 'a': a size depends on the number of rows" },
		{ "d: 1,2,3\ns: 1,1\nSplit d,s -> a,b axis=0\n" KEEP, "Split 'a': the sizes add up to 2, and the axis has 3" },
		{ "w [1,6]\nto: 4294967298,6\nExpand w,to -> e\nAdd x,e -> out\n", "Expand 'e': extent 4294967298 is too large" },
		{ "w [5,6]\nids: 7\nGather w,ids -> e axis=0\nAdd x,e -> out\n", "Gather 'e': index 7 does not exist: the axis has 5" },
		{ "w [5,6]\nids: 0,-6\nGather w,ids -> e axis=0\nAdd x,e -> out\n", "Gather 'e': index -6 does not exist: the axis has 5" },
		{ "ids: 4\nGather x,ids -> out axis=1\n", "Gather 'out': index 4 does not exist: the axis has 4" },
		{ "ids: -9223372036854775808\nGather x,ids -> out axis=0\n", "Gather 'out': an index from the end of the rows" },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		write_model(&m, cases[i].text, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_E_INPUT, "case %zu was taken", i);
		CHECK(strstr(diag.text, cases[i].why), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
}

/* Integers of 64 bits stay exact: what comes out is an extent, and a wrong one does not hold the elements. */
static void whole_numbers_are_exact(void **state)
{
	static const char *const text[] = {
		"a: -9007199254740993\nb: 9007199254740996\nNeg a -> c\nSub b,c -> d\n",
		"a: -9007199254740993\nb: 9007199254740996\nAbs a -> c\nSub b,c -> d\n",
		"a: 9223372036854775806\nb: 9223372036854775807\ns: 1\nc: 9223372036854775803\nRange a,b,s "
		"-> r\nSub r,c -> d\n",
		("a: 9223372036854775806\nb: -9223372036854775806\ns: -9223372036854775807\nRange a,b,s -> "
		"r\nReduceSum r -> t\nc: 9223372036854775802\n"
		 "Sub t,c -> d\n"),
		"a: 9223372036854775806\nb: 9223372036854775807\nc: 9223372036854775803\nMod a,b -> r\nSub "
		"r,c -> d\n",
		"a: -5\nb: 4\nMod a,b -> d\n",
		"a: 5\nb: -4\nc: 6\nMod a,b -> r\nAdd r,c -> d\n",
		"a: -5\nb: 4\nc: 4\nMod a,b -> r fmod=1\nAdd r,c -> d\n",
		"a: -9223372036854775808\nb: -1\nc: 3\nMod a,b -> r\nAdd r,c -> d\n",
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	char all[400];
	(void)state;

	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		struct hd_diag diag = { "" };
		snprintf(all, sizeof all,
			"zero: 0\neight: 8\n%sConcat zero,d,eight -> to axis=0\nReshape x,to -> f\nRelu f "
			"-> out\n", text[i]);
		write_model(&m, all, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		const struct hd_value *v = &g.value[hd_graph_find_output(&g, "logits")];
		CHECK(v->rank == 3 && v->dim[1] == 3 && v->dim[2] == 8, "case %zu: %s", i,
			hd_value_shape(v).at);
		hd_arena_finish(&arena);
	}
}

static void a_file_without_an_opset_is_refused(void **state)
{
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (int64_t opset = -1; opset <= 0; opset++) {
		struct hd_diag diag = { "" };
		write_opset(&m, KEEP, 2, opset);
		assert_int_equal(import(&m, &arena, &g, NULL, &diag), HD_E_INPUT);
		CHECK(strstr(diag.text, "test.onnx: names no opset of ai.onnx"), "opset %d: %s", (int)opset,
			diag.text);
		hd_arena_finish(&arena);
	}
}

static enum hd_err eight_bytes(void *user, const char *name, struct hd_onnx_bytes *bytes,
	struct hd_diag *diag)
{
	static const uint8_t data[32] = { 0, 0, 0x80, 0x3f };
	(void)user, (void)diag;

	assert_string_equal(name, "weights.bin");
	*bytes = (struct hd_onnx_bytes){ data, sizeof data };
	return HD_OK;
}

static void external_data_lie_in_the_same_folder(void **state)
{
	static const struct { const char *location, *offset, *why; } cases[] = {
		{ "weights.bin", "8", NULL }, { "../weights.bin", "0", "only a bare name" }, { "/etc/passwd", "0", "only a bare name" },
		{ "weights.bin", "9", "lie outside" }, { "weights.bin", "-1", "are not both numbers" },
	};
	static struct model m;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
		Onnx__TensorProto *w = tensor_of("w", "[6]");
		Onnx__StringStringEntryProto e[3], *list[3] = { &e[0], &e[1], &e[2] };
		Onnx__NodeProto *n = node_of(copied("Add x,w -> out"));
		Onnx__ValueInfoProto *x = info("x", 1, (int64_t[]){ 2, 4, 6 }, 3),
			*y = info("out", 1, NULL, 0);
		struct hd_onnx_opts opts = { .loss = &loss, .data = eight_bytes };
		struct hd_onnx_values values;
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_graph graph;
		const char *pair[3][2] = { { "location", cases[i].location }, { "offset", cases[i].offset },
			{ "length", "24" } };
		for (int k = 0; k < 3; k++) {
			onnx__string_string_entry_proto__init(&e[k]);
			e[k].key = copied(pair[k][0]);
			e[k].value = copied(pair[k][1]);
		}
		w->n_float_data = 0;
		w->has_data_location = true;
		w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
		w->n_external_data = 3;
		w->external_data = list;
		g.n_node = g.n_initializer = g.n_input = g.n_output = 1;
		g.node = &n;
		g.initializer = &w;
		g.input = &x;
		g.output = &y;
		pack(&m, &g);
		hd_arena_init(&arena, 0);
		hd_graph_init(&graph, &arena);
		enum hd_err err = hd_onnx_import(&graph, "test.onnx", m.bytes, m.len, &opts, &values, &diag);
		CHECK((err == HD_OK) == !cases[i].why, "case %zu: %s", i, diag.text);
		CHECK(err == HD_OK || strstr(diag.text, cases[i].why), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
}

/* Each length is one more than what it holds; the innermost is empty. */
static void messages_are_walked_to_a_bounded_depth(void **state)
{
	uint8_t bytes[512];
	struct hd_diag diag = { "" };
	(void)state;

	for (uint32_t depth = 1; depth < 60; depth++) {
		size_t len = 0;
		/* TypeProto.sequence_type (4) and its elem_type (1), in turn */
		for (uint32_t k = depth; k-- > 0;) {
			bytes[len++] = (depth - 1 - k) % 2 ? 0x0a : 0x22;
			bytes[len++] = (uint8_t)(2 * k);
		}
		diag.text[0] = '\0';
		enum hd_err err = hd_wire_walk(&onnx__type_proto__descriptor, "t", bytes, len, &diag);
		CHECK((err == HD_OK) == (depth < HD_WIRE_DEPTH), "depth %u: %s", depth, diag.text);
	}
	assert_non_null(strstr(diag.text, "nested deeper than 32"));
	/* A length that leaves its message, a tag of nothing, a group. */
	assert_int_equal(hd_wire_walk(&onnx__model_proto__descriptor, "t", (uint8_t[]){ 0x3a, 2, 0x0a }, 3,
		NULL), HD_E_INPUT);
	assert_int_equal(hd_wire_walk(&onnx__model_proto__descriptor, "t", (uint8_t[]){ 0x3a, 2, 0x0a, 1 }, 4,
		NULL), HD_E_INPUT);
	assert_int_equal(hd_wire_walk(&onnx__model_proto__descriptor, "t", (uint8_t[]){ 0, 0 }, 2, NULL),
		HD_E_INPUT);
	assert_int_equal(hd_wire_walk(&onnx__model_proto__descriptor, "t", (uint8_t[]){ 0x3b }, 1, NULL),
		HD_E_INPUT);
}

#define SCORES "Transpose x -> k perm=0,2,1\nMatMul x,k -> s\n"
#define LATER "four: 4,4\nnull: 0.0\nfill: 1.0\nExpand fill,four -> ones\nTrilu ones -> low upper=0\n" \
	"Equal low,null -> late\n"

/* One head over [rows,4,6]; x is queries, keys and values. `by` is the factor of q that is left of the
 * scale, 0: none. */
static void attention_is_known_by_its_mask_and_its_shape(void **state)
{
	static const struct { const char *text; int attends, causal, softmaxes; float by; } cases[] = {
		{ SCORES "Softmax s -> p\nMatMul p,x -> out\n", 1, 0, 0, 2.4494898f },
		{ SCORES "h: 0.40824829\nMul s,h -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 0, 0, 0 },
		{ SCORES "h: 2.4494898\nDiv s,h -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 0, 0, 0 },
		{ "Transpose x -> k perm=0,2,1\nh: 0.5\nMul x,h -> q\nMul k,h -> l\nMatMul q,l -> s\nSoftmax s -> p\nMatMul p,x -> out\n", 1, 0, 0, 0.61237244f },
		{ SCORES LATER "far: -1000000000000.0\nWhere late,far,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 1, 0, 2.4494898f },
		{ SCORES LATER "far: -1000000000000.0\nNot late -> seen\nWhere seen,s,far -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 1, 0, 2.4494898f },
		{ SCORES LATER "far: -1000000000000.0\nWhere late,far,null -> m\nAdd m,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 1, 0, 2.4494898f },
		/* what is earlier is hidden; too near to hide; no mask but a bias; zeros hide nothing */
		{ SCORES LATER "far: -1000000000000.0\nNot late -> seen\nWhere seen,far,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 0, 0, 1, 0 },
		{ SCORES LATER "near: -1000.0\nWhere late,near,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 0, 0, 1, 0 },
		{ SCORES LATER "near: -1000.0\nWhere late,near,null -> m\nAdd m,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 0, 0, 1, 0 },
		{ SCORES LATER "Where late,null,null -> m\nAdd m,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 1, 0, 0, 2.4494898f },
		/* the last query does not see itself either */
		{ SCORES LATER "from: 0\nto: 16\none: 1\nlast: 14\nfar: -1000000000000.0\nRange from,to,one -> r\nReshape r,four -> sq\nGreater sq,last -> end\n"
			"Or late,end -> more\nWhere more,far,s -> t\nSoftmax t -> p\nMatMul p,x -> out\n", 0,
			0, 1, 0 },
		/* weights that something else reads stay, and a product of other shapes is none */
		{ SCORES "Softmax s -> p\nMatMul p,x -> y\nReduceSum p -> z axes=-1\nAdd y,z -> out\n", 1, 0, 1, 2.4494898f },
		{ SCORES "w [4,4]\nSoftmax s -> p\nMatMul p,w -> out\n", 0, 0, 1, 0 },
		{ "w [6,4]\nMatMul x,w -> s\nSoftmax s -> p\nMatMul p,x -> out\n", 0, 0, 1, 0 },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		float by = 0;
		write_model(&m, cases[i].text, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK && hd_graph_prune(&g, &diag) == HD_OK,
			"case %zu: %s", i, diag.text);
		int attends = (int)count(&g, HD_OP_ATTEND), softmaxes = (int)count(&g, HD_OP_SOFTMAX);
		CHECK(attends == cases[i].attends && softmaxes == cases[i].softmaxes, "case %zu: %d, %d", i,
			attends, softmaxes);
		for (uint32_t k = 0; k < g.nnodes; k++) {
			if (g.node[k].op != HD_OP_ATTEND)
				continue;
			CHECK(g.node[k].attr.i[2] == cases[i].causal && g.node[k].attr.i[0] == 1,
				"case %zu: causal %d", i, g.node[k].attr.i[2]);
			const struct hd_value *q = &g.value[g.node[k].in[0]];
			by = q->kind == HD_TEMP && g.node[q->node].op == HD_OP_SCALE ?
				g.node[q->node].attr.f[0] : 0;
		}
		CHECK(by - cases[i].by < 1e-6f && cases[i].by - by < 1e-6f, "case %zu: q times %.9g", i,
			(double)by);
		hd_arena_finish(&arena);
	}
}

/* Six elements, windows of 4, 3 apart: the last begins at 5 (pads 1) and reaches past the end. */
static void a_last_window_counts_what_it_sees(void **state)
{
	static const struct { const char *attrs; int windows; float factor[3]; } cases[] = {
		{ "pads=1,1 ceil_mode=1 count_include_pad=1", 3, { 1, 1, 2 } },
		{ "pads=1,1 ceil_mode=1", 3, { 4.0f / 3, 1, 4 } },
		{ "pads=1,0 ceil_mode=1", 2, { 4.0f / 3, 1 } },
		{ "pads=2,1 ceil_mode=0", 2, { 2, 1 } },
		{ "pads=1,1 ceil_mode=0", 2, { 0 } },
		{ "pads=0,0 ceil_mode=1", 2, { 1, 4.0f / 3 } },
	};
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	char text[200];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		snprintf(text, sizeof text, "AveragePool x -> out kernel_shape=4 strides=3 %s\n",
			cases[i].attrs);
		write_model(&m, text, 2);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		const struct hd_value *v = &g.value[hd_graph_find_output(&g, "logits")];
		CHECK(v->dim[2] == cases[i].windows, "case %zu: %s", i, hd_value_shape(v).at);
		assert_int_equal(count(&g, HD_OP_MUL), cases[i].factor[0] > 0);
		for (uint32_t k = 0; k < g.nvalues; k++)
			if (g.value[k].kind == HD_CONST)
				assert_memory_equal(g.consts + g.value[k].data, cases[i].factor,
					(size_t)cases[i].windows * sizeof(float));
		hd_arena_finish(&arena);
	}
}

static void an_old_opset_is_read_where_nothing_changed(void **state)
{
	struct hd_diag diag = { "" };
	static struct model m;
	struct hd_arena arena;
	struct hd_graph g;
	(void)state;

	write_opset(&m, "Softplus x -> a\nElu a -> out\n", 2, 6);
	CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
	write_opset(&m, "w [6]\nAdd x,w -> out\n", 2, 6);
	assert_int_equal(import(&m, &arena, &g, NULL, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "Add 'out': has changed since opset 6"), "%s", diag.text);
	hd_arena_finish(&arena);
	diag.text[0] = '\0';
	write_opset(&m, KEEP, 2, 5);
	assert_int_equal(import(&m, &arena, &g, NULL, &diag), HD_E_INPUT);
	hd_arena_finish(&arena);
}

/* What we write, we read; and it is the same forward graph: as many nodes of each op. */
static void an_exported_graph_comes_back(void **state)
{
	static const struct hd_model_arg arg[] = { { "height", "12" }, { "width", "12" } };
	struct hd_diag diag = { "" };
	struct hd_onnx_opts opts = { .loss = &loss };
	struct hd_onnx_weight weight[16];
	struct hd_onnx_values values = { weight, NULL }, read;
	static float zeros[1 << 16];
	struct hd_graph graph, again;
	struct hd_arena arena;
	uint8_t *bytes;
	uint64_t len;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_graph_init(&graph, &arena);
	CHECK(hd_model_build(&graph, "lenet", arg, 2, &loss, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t p = 0; p < graph.nparams; p++)
		weight[p] = (struct hd_onnx_weight){ zeros,
			hd_value_bytes(&graph.value[graph.param[p].value], 1) };
	CHECK(hd_onnx_export(&graph, &values, &arena, &bytes, &len, &diag) == HD_OK, "%s", diag.text);
	hd_graph_init(&again, &arena);
	CHECK(hd_onnx_import(&again, "back.onnx", bytes, len, &opts, &read, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_prune(&again, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(again.nparams, graph.nparams);
	for (uint32_t p = 0; p < graph.nparams; p++)
		CHECK(hd_graph_find_param(&again, hd_graph_text_of(&graph,
			graph.value[graph.param[p].value].name)) != HD_NONE, "parameter %u", p);
	for (int op = 0; op < HD_NOPS; op++)
		if (op != HD_OP_RESHAPE)
			CHECK(count(&again, (enum hd_op)op) == count(&graph, (enum hd_op)op), "%s: %u and %u",
				hd_ops[op].name, count(&again, (enum hd_op)op),
				count(&graph, (enum hd_op)op));
	hd_arena_finish(&arena);
}

/* By the rows of acts.def; before the opset in which the op means that it is refused. */
static void an_op_that_is_an_activation_becomes_it(void **state)
{
	static struct model m;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_graph g;
	char text[60];
	(void)state;

	for (int act = 0; act < HD_NACTS; act++) {
		const struct hd_act_onnx *onnx = &hd_acts[act].onnx;
		if (!onnx->read)
			continue;
		snprintf(text, sizeof text, "%s x -> out\n", onnx->read);
		write_opset(&m, text, 2, onnx->since > 17 ? onnx->since : 17);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_OK, "%s: %s", onnx->read, diag.text);
		CHECK(g.node[0].op == HD_OP_ACT && g.node[0].attr.i[0] == act, "%s", onnx->read);
		CHECK(g.node[0].attr.f[0] == (float)onnx->alpha, "%s", onnx->read);
		hd_arena_finish(&arena);
		write_opset(&m, text, 2, onnx->since ? onnx->since - 1 : 6);
		CHECK(import(&m, &arena, &g, NULL, &diag) == HD_E_INPUT, "%s before its opset", onnx->read);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_norm_taken_apart_is_one_op),
		cmocka_unit_test(gelu_is_known_by_its_constants),
		cmocka_unit_test(the_batch_is_free_whatever_was_traced),
		cmocka_unit_test(what_cannot_be_had_is_told_at_once),
		cmocka_unit_test(refusals_name_the_place),
		cmocka_unit_test(what_is_written_with_several_ops_has_the_extents_of_onnx),
		cmocka_unit_test(an_equation_of_many_is_sums_of_two),
		cmocka_unit_test(what_has_no_gradient_of_its_kind_is_refused_by_name),
		cmocka_unit_test(the_branch_that_is_taken_is_all_that_counts),
		cmocka_unit_test(hostile_and_lossy_constants_are_refused),
		cmocka_unit_test(whole_numbers_are_exact),
		cmocka_unit_test(a_file_without_an_opset_is_refused),
		cmocka_unit_test(external_data_lie_in_the_same_folder),
		cmocka_unit_test(messages_are_walked_to_a_bounded_depth),
		cmocka_unit_test(attention_is_known_by_its_mask_and_its_shape),
		cmocka_unit_test(a_last_window_counts_what_it_sees),
		cmocka_unit_test(an_old_opset_is_read_where_nothing_changed),
		cmocka_unit_test(an_exported_graph_comes_back),
		cmocka_unit_test(an_op_that_is_an_activation_becomes_it),
	};
	hd_arena_init(&messages, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&messages);
	return failed;
}
