/* What must hold of every row of acts.def, whatever it computes. The oracle is its column `oracle`, another
 * formula in f64 (tests/eval64.inc.h), and its central differences. Kernels are judged by the conformance
 * suite, bits by cpu/kernels_test.c; both take their cases from the same rows. */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "graph/model.h"
#include "graph/onnx.h"
#include "graph/pass.h"
#include "device/single.h"
#include "tests/check.h"
#include "tests/eval64.inc.h"

enum { ANY, POSITIVE };
#define ACT_UNPACK(...) __VA_ARGS__
#define ACT_CALL(macro, ...) macro(__VA_ARGS__)
#define ACT_TRIED(id, alpha, beta, domain, c, gain, ...) { { alpha, beta }, domain == POSITIVE, gain },
static const struct { float f[2]; bool positive; double gain; } tried[HD_NACTS] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	ACT_CALL(ACT_TRIED, id, ACT_UNPACK tests)
#include "graph/acts.def"
};

enum { NPOINTS = 400 };

/* Over the range of its cases, no point at 0 or at a kink; from above 0 where the row says so. */
static double point(int act, int i)
{
	double share = (i + 0.3712) / NPOINTS, gain = tried[act].gain;

	return tried[act].positive ? gain * share : gain * (2 * share - 1);
}

static bool reads(int act, const char *name)
{
	return name && hd_acts[act].onnx.read && strcmp(hd_acts[act].onnx.read, name) == 0;
}

static void words_are_words_and_no_two_rows_share_one(void **state)
{
	(void)state;
	for (int act = 0; act < HD_NACTS; act++) {
		int found;
		CHECK(hd_act_parse(hd_acts[act].text, &found) && found == act, "%s", hd_acts[act].text);
		for (const char *c = hd_acts[act].text; *c; c++)
			CHECK(islower(*c) || isdigit(*c) || *c == '_', "%s", hd_acts[act].text);
		for (int k = 0; k < act; k++)
			CHECK(!reads(k, hd_acts[act].onnx.read), "%s and %s", hd_acts[k].text,
				hd_acts[act].text);
		for (int k = hd_acts[act].nf; k < 2; k++)
			CHECK(tried[act].f[k] == 0, "%s is tried with a number that it does not read",
				hd_acts[act].text);
	}
}

static void the_reference_has_the_values_of_the_oracle(void **state)
{
	(void)state;
	for (int act = 0; act < HD_NACTS; act++)
		for (int i = 0; i < NPOINTS; i++) {
			double x = point(act, i), y = hd_act_value(act, tried[act].f, x),
				want = act64(act, tried[act].f, x);
			CHECK(fabs(y - want) <= 1e-12 * fmax(1, fabs(want)), "%s of %.17g: %.17g, not %.17g",
				hd_acts[act].text, x, y, want);
		}
}

/* Of fourth order: h = 1e-3 of the distance to what is not smooth; its own error is near 1e-12 / h. */
static double difference(int act, double x, double h)
{
	const float *f = tried[act].f;

	return (8 * (act64(act, f, x + h) - act64(act, f, x - h)) -
		(act64(act, f, x + 2 * h) - act64(act, f, x - 2 * h))) / (12 * h);
}

static void the_slope_is_that_of_the_value(void **state)
{
	(void)state;
	for (int act = 0; act < HD_NACTS; act++) {
		double h = tried[act].gain * 1e-5;
		for (int i = 0; i < NPOINTS; i++) {
			double x = point(act, i), y = hd_act_slope(act, tried[act].f, x),
				want = difference(act, x, fmin(h, fabs(x) / 100));
			CHECK(fabs(y - want) <= 2e-7 * fmax(1, fabs(want)),
				"%s at %.17g: slope %.17g, not %.17g", hd_acts[act].text, x, y, want);
		}
	}
}

static struct hd_attr attr_of(int act) { return (struct hd_attr){ .i = { act },
	.f = { tried[act].f[0], tried[act].f[1] } }; }

/* x -> act -> logits, x of NPOINTS numbers a row, or these constants. */
static void build(struct hd_graph *graph, struct hd_arena *arena, int act, const float *constant)
{
	const int64_t dim[] = { constant ? NPOINTS : -1, NPOINTS };
	const struct hd_attr attr = attr_of(act);
	struct hd_diag diag = { "" };
	uint32_t x, y;

	hd_arena_init(arena, 0);
	hd_graph_init(graph, arena);
	enum hd_err err = constant ? hd_graph_const(graph, HD_F32, 1, dim, constant, &x, &diag) :
		hd_graph_input(graph, "x", HD_F32, 2, dim, &x, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	CHECK(hd_graph_node(graph, HD_OP_ACT, 1, &x, &attr, 0, &y, &diag) == HD_OK,
		"%s", diag.text);
	CHECK(hd_graph_output(graph, "logits", y, &diag) == HD_OK, "%s", diag.text);
}

static const float *constant_of(const struct hd_graph *graph, uint32_t value)
{
	return (const float *)(const void *)(graph->consts + graph->value[value].data);
}

static void by_the_kernels(int act, const float in[NPOINTS], float out[NPOINTS], struct hd_arena *arena)
{
	const struct hd_value x = { .dim = { NPOINTS }, .rank = 1, .dtype = HD_F32 };
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE };
	const struct hd_attr attr = attr_of(act);
	const struct hd_draw none = { 0 };
	struct hd_diag diag = { "" };
	struct hd_single single;
	struct hd_device *device;

	CHECK(hd_device_create(&device, "cpu", &spec, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_single_make(&single, HD_OP_ACT, 1, &x, &attr, &(uint64_t){ 1 }, 1, arena, &diag) == HD_OK,
		"%s", diag.text);
	CHECK(hd_single_run(device, &single, 1, &none, (const void *[]){ in }, (void *[]){ out },
		&diag) == HD_OK, "%s", diag.text);
	hd_device_destroy(device);
}

/* Numbers at which rounding, signs and the ends of the range show; a graph with a result that is not finite
 * is not folded, so these are left out. */
static void numbers_for(int act, float in[NPOINTS])
{
	static const float ends[] = {
		0.0f, -0.0f, FLT_MIN, -FLT_MIN, 0x1p-149f, 0x1.fffffep-127f, 1.0f, -1.0f, 0x1.000002p+0f,
		0x1p+63f, -0x1.234566p+20f, 3.4e38f, -3.4e38f,
	};
	const int nends = sizeof ends / sizeof ends[0];

	for (int i = 0; i < NPOINTS; i++) {
		in[i] = i < nends ? ends[i] : (float)point(act, i);
		if (!isfinite((float)hd_act_value(act, tried[act].f, (double)in[i])))
			in[i] = 1.0f;
	}
}

static void what_is_folded_has_the_bits_of_the_kernels(void **state)
{
	(void)state;
	for (int act = 0; act < HD_NACTS; act++) {
		struct hd_arena arena;
		struct hd_graph graph;
		struct hd_diag diag = { "" };
		float in[NPOINTS], out[NPOINTS];
		numbers_for(act, in);
		build(&graph, &arena, act, in);
		CHECK(hd_graph_fold(&graph, &diag) == HD_OK, "%s", diag.text);
		CHECK((graph.nnodes == 0) == hd_acts[act].folds, "%s", hd_acts[act].text);
		if (hd_acts[act].folds) {
			const float *folded = constant_of(&graph, hd_graph_find_output(&graph, "logits"));
			by_the_kernels(act, in, out, &arena);
			for (int i = 0; i < NPOINTS; i++)
				CHECK(memcmp(&folded[i], &out[i], sizeof out[i]) == 0,
					"%s of %a: folded %a, not %a", hd_acts[act].text, (double)in[i],
					(double)folded[i], (double)out[i]);
		}
		hd_arena_finish(&arena);
	}
}

static void there_and_back(int act, const struct hd_graph *graph, struct hd_graph *back,
	struct hd_arena *arena)
{
	static const struct hd_model_opts loss = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	const struct hd_onnx_opts opts = { .loss = &loss };
	const struct hd_onnx_values none = { 0 };
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	uint64_t len;

	CHECK(hd_onnx_export(graph, &none, arena, &bytes, &len, &diag) == HD_OK, "%s: %s", hd_acts[act].text,
		diag.text);
	hd_graph_init(back, arena);
	CHECK(hd_onnx_import(back, "back.onnx", bytes, len, &opts, NULL, &diag) == HD_OK, "%s: %s",
		hd_acts[act].text, diag.text);
}

/* Numbers go into a file as f32, so what comes back differs by the rounding of those. */
static void what_is_written_as_onnx_comes_back_as_the_same_function(void **state)
{
	(void)state;
	for (int act = 0; act < HD_NACTS; act++) {
		const struct hd_act_onnx *onnx = &hd_acts[act].onnx;
		struct hd_arena arena;
		struct hd_graph graph, back;
		struct eval64 ev;
		build(&graph, &arena, act, NULL);
		there_and_back(act, &graph, &back, &arena);
		uint32_t x = hd_graph_find_input(&back, "x"), y = hd_graph_find_output(&back, "logits");
		eval64_make(&ev, &back, 1);
		for (uint32_t v = 0; v < back.nvalues; v++)
			for (uint64_t e = 0; e < hd_value_elems(&back.value[v], 1) &&
				back.value[v].kind == HD_CONST; e++)
				ev.at[v][e] = (double)constant_of(&back, v)[e];
		for (int i = 0; i < NPOINTS; i++)
			ev.at[x][i] = point(act, i);
		eval64_run(&ev);
		for (int i = 0; i < NPOINTS; i++) {
			double want = act64(act, tried[act].f, point(act, i));
			CHECK(fabs(ev.at[y][i] - want) <= 1e-6 * fmax(1, fabs(want)),
				"%s of %g: %.9g, not %.9g", hd_acts[act].text, point(act, i),
				ev.at[y][i], want);
		}
		eval64_finish(&ev);
		if (onnx->read && strncmp(onnx->write, onnx->read, strlen(onnx->read)) == 0)
			CHECK(back.node[0].out == y && back.node[0].op == HD_OP_ACT &&
				back.node[0].attr.i[0] == act, "%s comes back as something else",
				hd_acts[act].text);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_words_and_no_two_rows_share_one),
		cmocka_unit_test(the_reference_has_the_values_of_the_oracle),
		cmocka_unit_test(the_slope_is_that_of_the_value),
		cmocka_unit_test(what_is_folded_has_the_bits_of_the_kernels),
		cmocka_unit_test(what_is_written_as_onnx_comes_back_as_the_same_function),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
