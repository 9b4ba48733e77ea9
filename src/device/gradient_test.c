/* Gradients of every op that has one, and of every model, against central differences of
 * an evaluator in f64: step 1e-6, so that its own error (1e-12 of truncation, 1e-10 of
 * rounding) is far below that of f32. The reference device may differ by
 * eps * 16 * (nodes of the graph) * (largest gradient of the tensor), eps = 2^-24: each
 * node rounds what it stores once. */
#include <math.h>
#include <stdio.h>

#include "graph/lora.h"
#include "graph/verify.h"
#include "device/testing.h"
#include "tests/eval64.inc.h"

struct grad_case {
	uint16_t op;
	struct hd_attr attr;
	uint8_t outs;                     /* bits: which outputs go into the loss */
	struct hd_value in[5];
};
/* in `outs`: operands pass through exp first, for ops that want numbers above 0 */
enum { ANY = 0, POSITIVE = 0x80 };

#define RANK(...) (uint8_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define F(...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = HD_F32 }
#define I(...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = HD_I32 }
/* no parameter though f32 */
#define X(...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = HD_F32, .kind = HD_INPUT }
#define A(...) { .i = { __VA_ARGS__ } }

/* a column of several cells of acts.def, behind the id */
#define ACT_UNPACK(...) __VA_ARGS__
#define ACT_CALL(macro, ...) macro(__VA_ARGS__)

static const struct grad_case cases[] = {
	{ HD_OP_MATMUL, A(0, 0), 1, { F(3, 5), F(5, 4) } },
	{ HD_OP_MATMUL, A(0, 1), 1, { F(3, 5), F(4, 5) } },
	{ HD_OP_MATMUL, A(1, 0), 1, { F(5, 3), F(5, 4) } },
	{ HD_OP_MATMUL, A(1, 1), 1, { F(5, 3), F(4, 5) } },
	{ HD_OP_CONV2D, A(1, 1, 1, 1), 1, { F(2, 2, 5, 4), F(3, 2, 3, 3) } },
	{ HD_OP_CONV2D, A(1, 1, 0, 1), 1, { F(2, 2, 3, 11), F(3, 2, 2, 3) } },
	{ HD_OP_CONV2D, A(2, 3, 1, 0), 1, { F(2, 2, 6, 7), F(3, 2, 3, 2) } },
	{ HD_OP_CONV2D_DX, A(2, 1, 1, 0), 1, { F(2, 3, 3, 4), F(3, 2, 3, 2), X(2, 2, 6, 5) } },
	{ HD_OP_CONV2D_DX, A(2, 2, 0, 0, 2, 2), 1, { F(2, 4, 2, 2), F(4, 1, 2, 2), X(2, 2, 5, 5) } },
	{ HD_OP_BLOCK, A(0), 1, { F(2, 18, 2, 3) } },
	{ HD_OP_UNBLOCK, A(18), 1, { F(2, 2, 2, 3, 16) } },
	{ HD_OP_CONV2D_B, A(1, 1, 1, 1), 1, { F(2, 2, 4, 5, 16), F(17, 18, 3, 3) } },
	{ HD_OP_CONV2D_B, A(1, 1, 0, 2), 1, { F(2, 2, 7, 4, 16), F(24, 32, 3, 3) } },
	{ HD_OP_CONV2D_B, A(2, 3, 1, 0), 1, { F(1, 1, 6, 7, 16), F(3, 5, 3, 2) } },
	{ HD_OP_CONV2D_B, A(2, 2, 0, 0), 1, { F(1, 1, 5, 4, 16), F(3, 16, 1, 1) } },
	{ HD_OP_ATTENTION, A(2, 1), 1, { F(2, 4, 18) } },
	{ HD_OP_ATTENTION, A(1, 0), 1, { F(1, 5, 9) } },
	{ HD_OP_RESHAPE, A(4, 3), 1, { F(2, 6) } },
	{ HD_OP_ADD, A(0), 1, { F(3, 4), F(3, 4) } },
	{ HD_OP_ADD, A(0), 1, { F(3, 2, 4), F(2, 4) } },
	{ HD_OP_SUB, A(0), 1, { F(3, 4), F(3, 4) } },
	{ HD_OP_MUL, A(0), 1, { F(3, 4), F(3, 4) } },
	{ HD_OP_SCALE, { .f = { -1.7f } }, 1, { F(3, 4) } },
	{ HD_OP_BIAS, A(-1), 1, { F(3, 4), F(4) } },
	{ HD_OP_BIAS, A(1), 1, { F(2, 3, 2, 2), F(3) } },
	{ HD_OP_BIAS_ACT, A(-1, HD_ACT_GELU), 2, { F(3, 4), F(4) } },
	{ HD_OP_BIAS_ACT, A(1, HD_ACT_TANH), 3, { F(2, 3, 2, 2), F(3) } },
#define ACT_CASE(id, alpha, beta, domain, ...) \
	{ HD_OP_ACT, { .i = { HD_ACT_##id }, .f = { alpha, beta } }, 1 | domain, { F(5, 7) } },
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	ACT_CALL(ACT_CASE, id, ACT_UNPACK tests)
#include "graph/acts.def"
	{ HD_OP_MAXPOOL2D, A(2, 2, 2, 2), 1, { F(2, 2, 4, 6) } },
	{ HD_OP_MAXPOOL2D, A(3, 2, 1, 1), 1, { F(1, 2, 5, 4) } },
	{ HD_OP_CONV2D, A(1, 1, 1, 1, 2), 1, { F(2, 4, 5, 4), F(6, 2, 3, 3) } },
	{ HD_OP_CONV2D, A(2, 1, 1, 2, 3, 2, 3), 1, { F(2, 3, 6, 7), F(6, 1, 2, 2) } },
	{ HD_OP_MAXPOOL2D, A(3, 3, 2, 2, 1, 1), 1, { F(2, 2, 5, 6) } },
	{ HD_OP_AVGPOOL2D, A(3, 2, 2, 1, 1, 1, 0), 1, { F(2, 2, 5, 4) } },
	{ HD_OP_AVGPOOL2D, A(3, 2, 2, 1, 1, 1, 1), 1, { F(2, 2, 5, 4) } },
	{ HD_OP_AVGPOOL2D, A(5, 4, 1, 1), 1, { F(2, 2, 5, 4) } },
	{ HD_OP_GROUPNORM, { .i = { 2 }, .f = { 1e-3f } }, 1, { F(2, 4, 3, 2), F(4), F(4) } },
	{ HD_OP_GROUPNORM, { .i = { 3 }, .f = { 1e-3f } }, 1, { F(2, 3, 5), F(3), F(3) } },
	{ HD_OP_EMBED, A(0), 1, { I(3, 4), F(5, 6) } },
	{ HD_OP_LAYERNORM, { .f = { 1e-3f } }, 1, { F(3, 6), F(6), F(6) } },
	{ HD_OP_ADD_LAYERNORM, { .f = { 1e-3f } }, 1, { F(3, 6), F(3, 6), F(6), F(6) } },
	{ HD_OP_ADD_LAYERNORM, { .f = { 1e-3f } }, 3, { F(3, 6), F(3, 6), F(6), F(6) } },
	{ HD_OP_SOFTMAX_XENT, A(0), 1, { F(7, 5), I(7) } },
	{ HD_OP_SOFTMAX_XENT, A(0), 2, { F(7, 5), I(7) } },
	{ HD_OP_SOFTMAX_XENT, A(0), 3, { F(2, 3, 5), I(2, 3) } },
	{ HD_OP_MSE, A(0), 1, { F(3, 4), F(3, 4) } },
	{ HD_OP_DROPOUT, { .f = { 0.4f } }, 1, { F(5, 7) } },
	{ HD_OP_DROPOUT, { .i = { 2, 9 }, .f = { 0.4f } }, 1, { F(3, 4, 5) } },
#include "tests/gradient_batch.inc.h"
#include "tests/gradient_sequences.inc.h"
#include "tests/gradient_tensors.inc.h"
#define OP_SLOPES
#include "graph/ops.def"
};
enum { NCASES = sizeof cases / sizeof cases[0] };

static uint32_t node(struct hd_graph *graph, uint16_t op, uint8_t nin, const uint32_t *in,
	const struct hd_attr *attr)
{
	struct hd_diag diag = { "" };
	uint32_t out;

	CHECK(hd_graph_node(graph, op, nin, in, attr, 0, &out, &diag) == HD_OK, "%s", diag.text);
	return out;
}

/* Parameters -> op -> mean square distance from a target, which every element moves -> sum. */
static void build(struct hd_graph *graph, const struct grad_case *c)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	static const struct hd_attr none;
	uint8_t nin = hd_ops[c->op].nin;
	struct hd_diag diag = { "" };
	uint32_t in[6], y = HD_NONE;
	enum hd_err err = HD_OK;

	for (uint8_t i = 0; i < nin && i < 5 && !err; i++)
		err = c->in[i].dtype == HD_F32 && c->in[i].kind != HD_INPUT ?
			hd_graph_param(graph, names[i], c->in[i].rank, c->in[i].dim, HD_INIT_UNIFORM, 1,
			&in[i], &diag) :
			hd_graph_input(graph, names[i], (enum hd_dtype)c->in[i].dtype, c->in[i].rank,
			c->in[i].dim, &in[i], &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	for (uint8_t i = 0; i < nin && (c->outs & POSITIVE); i++)
		in[i] = node(graph, HD_OP_ACT, 1, &in[i], &(struct hd_attr)A(HD_ACT_EXP));
	if (c->op == HD_OP_BATCHNORM_APPLY) {
		in[5] = node(graph, HD_OP_BATCHNORM_MOMENTS, 1, in, &(struct hd_attr)A(c->attr.i[0]));
		in[5] = node(graph, HD_OP_BATCHNORM_SYNC, 1, &in[5], &(struct hd_attr)A(1));
	}
	uint32_t out = node(graph, c->op, nin, in, &c->attr);
	for (uint32_t k = 0; k < hd_ops[c->op].nout; k++)
		if (c->outs >> k & 1)
			y = y == HD_NONE ? out + k : node(graph, HD_OP_ADD, 2, (uint32_t[]){ y, out + k },
				&none);
	if (c->op != HD_OP_SOFTMAX_XENT && c->op != HD_OP_CLASS_XENT && c->op != HD_OP_MSE) {
		const struct hd_value *v = &graph->value[y];
		uint32_t target;
		if (v->rank == 1)
			y = node(graph, HD_OP_RESHAPE, 1, &y, &(struct hd_attr)A(1, (int32_t)v->dim[0]));
		CHECK(hd_graph_input(graph, "target", HD_F32, graph->value[y].rank, graph->value[y].dim,
			&target, &diag) == HD_OK, "%s", diag.text);
		y = node(graph, HD_OP_MSE, 2, (uint32_t[]){ y, target }, &none);
	}
	CHECK(hd_graph_output(graph, "loss", node(graph, HD_OP_SUM64, 1, &y, &none), &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_graph_autodiff(graph, &diag) == HD_OK, "%s: %s", hd_ops[c->op].name, diag.text);
}

static double loss_at(const struct eval64 *ev)
{
	eval64_run(ev);
	return ev->at[hd_graph_find_output(ev->graph, "loss")][0];
}

static void load(struct eval64 *ev, const struct hd_stage *stage)
{
	const struct hd_graph *graph = &stage->graph;

	eval64_make(ev, graph, stage->rows);
	ev->draw = stage->bind.draw;
	for (uint32_t p = 0; p < graph->nparams; p++)
		for (uint64_t e = 0; e < stage->layout.len[p]; e++)
			ev->at[graph->param[p].value][e] = (double)stage->params[stage->layout.at[p] + e];
	for (uint32_t i = 0; i < graph->ninputs; i++)
		for (uint64_t e = 0; e < hd_value_elems(&graph->value[graph->input[i]], stage->rows); e++)
			ev->at[graph->input[i]][e] = graph->value[graph->input[i]].dtype == HD_I32 ?
				(double)((int32_t *)stage->input[i])[e] :
				(double)((float *)stage->input[i])[e];
	for (uint32_t v = 0; v < graph->nvalues; v++)
		for (uint64_t e = 0; graph->value[v].kind == HD_CONST &&
			e < hd_value_elems(&graph->value[v], stage->rows); e++) {
			const void *at = graph->consts + graph->value[v].data;
			ev->at[v][e] = graph->value[v].dtype == HD_I32 ? (double)((const int32_t *)at)[e] :
				(double)((const float *)at)[e];
		}
}

/* Some elements of every parameter, spread over it. */
static void differentiate(const struct hd_stage *stage, const char *name)
{
	enum { SAMPLES = SANITIZED ? 2 : 12 };
	const struct hd_graph *graph = &stage->graph;
	const double step = 1e-6;
	struct eval64 ev;

	load(&ev, stage);
	for (uint32_t p = 0; p < graph->nparams; p++) {
		const uint64_t len = stage->layout.len[p], stride = len / SAMPLES + 1;
		if (graph->param[p].frozen)
			continue;
		const float *grad = stage->grad + stage->layout.at[p];
		double *at = ev.at[graph->param[p].value], peak = 0;
		for (uint64_t e = 0; e < len; e++)
			peak = fmax(peak, fabs((double)grad[e]));
		for (uint64_t e = p % stride; e < len; e += stride) {
			double middle = at[e], tolerance = 0x1p-24 * 16 * graph->nnodes * peak + 1e-8;
			at[e] = middle + step;
			double above = loss_at(&ev);
			at[e] = middle - step;
			double below = loss_at(&ev);
			at[e] = middle;
			double want = (above - below) / (2 * step);
			CHECK(fabs(want - (double)grad[e]) <= tolerance,
				"%s, parameter %s, element %llu: %.9g, differences say %.9g (tolerance %.3g)",
				name,
				hd_graph_text_of(graph, graph->value[graph->param[p].value].name),
				(unsigned long long)e, (double)grad[e], want, tolerance);
		}
	}
	eval64_finish(&ev);
}

/* Products stored both ways (gpt [in, out], mlp [out, in]), a scale that is not 1, and one frozen
 * parameter left to learn. */
static void adapters_agree_with_differences_and_frozen_parameters_have_no_gradient(void **state)
{
	static const struct { const char *model, *target[2], *train; struct hd_model_arg arg[5];
		uint32_t nargs; } models[] = {
		{ "gpt", { "h.*.attn.c_attn.weight", "h.{i}.mlp.c_proj.weight" }, "ln_f.weight",
		  { { "layers", "2" }, { "width", "8" }, { "heads", "2" }, { "context", "5" }, { "vocab", "7" } }, 5 },
		{ "mlp", { "fc1.weight", "fc3.*t" }, "fc2.bias", { { "input", "[6]" }, { "hidden", "[5,4]" }, { "classes", "3" }, { "act", "tanh" } }, 4 },
	};
	const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
		struct hd_lora lora = { .rank = 3, .alpha = 5, .target = models[m].target, .ntargets = 2,
			.train = &models[m].train, .ntrain = 1 };
		struct hd_device *device = hd_stage_device("reference", 1);
		struct hd_diag diag = { "" };
		struct hd_stage stage;
		memset(&stage, 0, sizeof stage);
		hd_arena_init(&stage.arena, 0);
		hd_graph_init(&stage.graph, &stage.arena);
		CHECK(hd_model_build(&stage.graph, models[m].model, models[m].arg, models[m].nargs, &opts,
			&diag) == HD_OK, "%s", diag.text);
		CHECK(hd_graph_lora(&stage.graph, &lora, &diag) == HD_OK &&
			hd_graph_optimize(&stage.graph, 2, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_graph_autodiff(&stage.graph, &diag) == HD_OK &&
			hd_graph_verify(&stage.graph, 2, &diag) == HD_OK, "%s", diag.text);
		uint32_t learned = 0;
		for (uint32_t p = 0; p < stage.graph.nparams; p++) {
			learned += !stage.graph.param[p].frozen;
			CHECK((stage.graph.value[stage.graph.param[p].value].grad == HD_NONE) ==
				stage.graph.param[p].frozen, "%s: parameter %u",
				models[m].model, p);
		}
		CHECK(learned == (m == 0 ? 9 : 5), "%s: %u are learned", models[m].model, learned);
		hd_stage_set(&stage, &(uint64_t){ 2 }, 1, 7);
		hd_stage_load(&stage, device);
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		hd_stage_join(&stage);
		differentiate(&stage, models[m].model);
		hd_device_destroy(device);
		hd_stage_finish(&stage);
	}
}

static void every_op_with_a_gradient_agrees_with_differences(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NCASES; i++) {
		struct hd_device *device = hd_stage_device("reference", 1);
		struct hd_stage stage;
		char name[64];

		snprintf(name, sizeof name, "case %u (%s)", i, hd_ops[cases[i].op].name);
		memset(&stage, 0, sizeof stage);
		hd_arena_init(&stage.arena, 0);
		hd_graph_init(&stage.graph, &stage.arena);
		build(&stage.graph, &cases[i]);
		hd_stage_set(&stage, &(uint64_t){ 1 }, 1, 7);
		hd_stage_load(&stage, device);
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		hd_stage_join(&stage);
		differentiate(&stage, name);
		hd_device_destroy(device);
		hd_stage_finish(&stage);
	}
}

/* No zero, one, two, and nothing else. */
static void a_product_with_zeros_has_the_gradient_of_its_other_factors(void **state)
{
	static const float rows[4][3] = { { 1.5f, -2, 0.5f }, { 3, 0, -1.25f }, { 0, 2, 0 }, { 0, 0, 0 } };
	static const struct grad_case product = { HD_OP_REDUCE_PROD, A(2), 1, { F(4, 3) } };
	struct hd_device *device = hd_stage_device("reference", 1);
	struct hd_stage stage;

	(void)state;
	memset(&stage, 0, sizeof stage);
	hd_arena_init(&stage.arena, 0);
	hd_graph_init(&stage.graph, &stage.arena);
	build(&stage.graph, &product);
	hd_stage_set(&stage, &(uint64_t){ 1 }, 1, 7);
	memcpy(stage.params + stage.layout.at[0], rows, sizeof rows);
	hd_stage_load(&stage, device);
	hd_stage_run(&stage, device, HD_RUN_F);
	hd_stage_run(&stage, device, HD_RUN_B);
	hd_stage_join(&stage);
	assert_true(stage.grad[stage.layout.at[0] + 4] != 0);      /* of the zero that is alone */
	differentiate(&stage, "reduce_prod with zeros");
	hd_device_destroy(device);
	hd_stage_finish(&stage);
}

static void every_model_agrees_with_differences(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_STAGE_NMODELS; i++) {
		struct hd_device *device = hd_stage_device("reference", 2);
		struct hd_stage stage;

		hd_stage_make(&stage, &hd_stage_models[i], &(uint64_t){ 3 }, 1);
		hd_stage_load(&stage, device);
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		hd_stage_join(&stage);
		differentiate(&stage, hd_stage_models[i].name);
		hd_device_destroy(device);
		hd_stage_finish(&stage);
	}
}

static void every_op_with_a_gradient_has_a_case(void **state)
{
	(void)state;
	for (uint16_t op = 0; op < HD_NOPS; op++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < NCASES; i++)
			n += cases[i].op == op;
		n += op == HD_OP_SUM64;                            /* the end of every graph here */
		CHECK(!hd_ops[op].grad || n > 0,
			"op %s has a gradient and no case: add one to the table of this file",
			hd_ops[op].name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_with_a_gradient_has_a_case),
		cmocka_unit_test(every_op_with_a_gradient_agrees_with_differences),
		cmocka_unit_test(adapters_agree_with_differences_and_frozen_parameters_have_no_gradient),
		cmocka_unit_test(a_product_with_zeros_has_the_gradient_of_its_other_factors),
		cmocka_unit_test(every_model_agrees_with_differences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
