/* Models of whole graphs against a dense oracle in f64 that shares no code with them: matrices V x V, loops
 * over
 * all pairs, gradients by central differences. Directed and undirected graphs, vertices without edges. And
 * laws of
 * their ops: <A x, y> = <x, A^T y>, weights of a target that add up to 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/op.h"
#include "graph/verify.h"
#include "device/single.h"
#include "device/testing.h"

enum { V = 23, SLOTS = 7, E = V * SLOTS, IN = 6, MAX = 40 };

struct a_graph { bool edge[V][V]; int32_t from[E], to[E], number[E]; float degrees[V][2]; };

/* Vertices 4 and V - 1 have no edges; 0 has many. Edges by target, then source, with loops. */
static void draw_graph(struct a_graph *g, bool directed, uint64_t seed)
{
	uint32_t n = 0;

	memset(g, 0, sizeof *g);
	for (uint32_t i = 0; i < V; i++)
		for (uint32_t j = 0; j < V; j++) {
			bool alone = i == 4 || j == 4 || i == V - 1 || j == V - 1;
			if (i == j || (!alone && (hd_stage_number(seed, 9, i * V + j) > 0.8f || (i == 0 &&
				j % 2))))
				g->edge[i][j] = true;
		}
	for (uint32_t i = 0; i < V && !directed; i++)
		for (uint32_t j = 0; j < i; j++)
			g->edge[i][j] = g->edge[j][i];
	memset(g->from, 0xff, sizeof g->from), memset(g->to, 0xff, sizeof g->to);
	memset(g->number, 0xff, sizeof g->number);
	for (uint32_t i = 0; i < V; i++)
		for (uint32_t j = 0; j < V; j++)
			if (g->edge[i][j]) {              /* j -> i */
				CHECK(n < E, "%u edges", n);
				g->from[n] = (int32_t)j, g->to[n] = (int32_t)i, g->number[n] = (int32_t)n;
				g->degrees[i][0]++, g->degrees[j][1]++, n++;
			}
}

/* ---- the oracle */

struct dense {
	const struct a_graph *g;
	const struct hd_stage *stage;
	double *param;                    /* flat */
	double h[V][MAX];
	int width;
};

static const double *param_of(const struct dense *d, int layer, const char *name)
{
	char text[32];

	snprintf(text, sizeof text, "layers.%d.%s", layer, name);
	uint32_t p = hd_graph_find_param(&d->stage->graph, text);
	return p == HD_NONE ? NULL : d->param + d->stage->layout.at[p];
}

static void times(const double (*x)[MAX], int in, const double *w, int out, double (*y)[MAX])
{
	for (int i = 0; i < V; i++)
		for (int c = 0; c < out; c++) {
			y[i][c] = 0;
			for (int k = 0; k < in; k++)
				y[i][c] += x[i][k] * w[k * out + c];
		}
}

static double coefficient(const struct dense *d, const char *norm, int i, int j)
{
	double to = 0, from = 0;

	for (int k = 0; k < V; k++)
		to += d->g->edge[i][k], from += d->g->edge[k][j];
	return !d->g->edge[i][j] ? 0 : !strcmp(norm, "none") ? 1 : !strcmp(norm, "row") ? 1 / to :
		1 / sqrt(to * from);
}

static void gcn_layer(struct dense *d, int layer, const char *norm, int out)
{
	static double z[V][MAX];

	times((const double (*)[MAX])d->h, d->width, param_of(d, layer, "weight"), out, z);
	for (int i = 0; i < V; i++)
		for (int c = 0; c < out; c++) {
			d->h[i][c] = param_of(d, layer, "bias") ? param_of(d, layer, "bias")[c] : 0;
			for (int j = 0; j < V; j++)
				d->h[i][c] += coefficient(d, norm, i, j) * z[j][c];
		}
	d->width = out;
}

static void sage_layer(struct dense *d, int layer, int out)
{
	static double own[V][MAX], near[V][MAX];

	times((const double (*)[MAX])d->h, d->width, param_of(d, layer, "own"), out, own);
	times((const double (*)[MAX])d->h, d->width, param_of(d, layer, "near"), out, near);
	for (int i = 0; i < V; i++)
		for (int c = 0; c < out; c++) {
			double sum = 0, n = 0;
			for (int j = 0; j < V; j++)
				if (j != i && d->g->edge[i][j])
					sum += near[j][c], n++;
			d->h[i][c] = own[i][c] + (n > 0 ? sum / n : 0) + param_of(d, layer, "bias")[c];
		}
	d->width = out;
}

static void gat_layer(struct dense *d, int layer, int heads, int width, bool last)
{
	static double z[V][MAX], out[V][MAX];
	const double *a_s = param_of(d, layer, "source"), *a_t = param_of(d, layer, "target");

	times((const double (*)[MAX])d->h, d->width, param_of(d, layer, "weight"), heads * width, z);
	memset(out, 0, sizeof out);
	for (int i = 0; i < V; i++)
		for (int k = 0; k < heads; k++) {
			double weight[V], sum = 0;
			for (int j = 0; j < V; j++) {
				double score = 0;
				for (int c = k * width; c < (k + 1) * width; c++)
					score += a_s[c] * z[j][c] + a_t[c] * z[i][c];
				weight[j] = d->g->edge[i][j] ? exp(score > 0 ? score : 0.2 * score) : 0;
				sum += weight[j];
			}
			for (int j = 0; j < V; j++)
				for (int c = 0; c < width; c++)
					out[i][last ? c : k * width + c] += weight[j] / sum * z[j][k *
						width + c] /
						(last ? heads : 1);
		}
	d->width = last ? width : heads * width;
	for (int i = 0; i < V; i++)
		for (int c = 0; c < d->width; c++)
			d->h[i][c] = out[i][c] + (param_of(d, layer, "bias") ? param_of(d, layer,
				"bias")[c] : 0);
}

struct graph_case {
	const char *model, *norm, *act;
	int layers, hidden, classes, heads, out_heads;
	struct hd_model_arg arg[9]; uint32_t nargs;
};

static double activated(const char *act, double x)
{
	return !strcmp(act, "relu") ? fmax(x, 0) : !strcmp(act, "tanh") ? tanh(x) : x > 0 ? x : expm1(x);
}

static bool has_arg(const struct graph_case *c, const char *name)
{
	for (uint32_t i = 0; i < c->nargs; i++)
		if (!strcmp(c->arg[i].name, name))
			return true;
	return false;
}

/* Logits in d->h; the sum of the losses. */
static double dense_loss(struct dense *d, const struct graph_case *c, const float *x, const int32_t *y)
{
	double loss = 0;

	d->width = IN;
	for (int i = 0; i < V; i++) {
		double sum = 0;
		for (int k = 0; k < IN; k++)
			sum += fabs((double)x[i * IN + k]);
		for (int k = 0; k < IN; k++)
			d->h[i][k] = (double)x[i * IN + k] / (has_arg(c, "rows") ? sum : 1);
	}
	for (int l = 0; l < c->layers; l++) {
		bool last = l + 1 == c->layers;
		int out = last ? c->classes : c->hidden;
		if (!strcmp(c->model, "gat"))
			gat_layer(d, l, last ? c->out_heads : c->heads, out, last);
		else if (!strcmp(c->model, "gcn"))
			gcn_layer(d, l, c->norm, out);
		else
			sage_layer(d, l, out);
		for (int i = 0; i < V && !last; i++)
			for (int k = 0; k < d->width; k++)
				d->h[i][k] = activated(c->act, d->h[i][k]);
	}
	for (int i = 0; i < V; i++) {
		double sum = 0;
		for (int k = 0; k < d->width; k++)
			sum += exp(d->h[i][k]);
		loss += y[i] < 0 ? 0 : log(sum) - d->h[i][y[i]];
	}
	return loss;
}

/* ---- */

#define BASE { "input", "6" }, { "slots", "7" }, { "dropout", "0" }
static const struct graph_case graph_cases[] = {
	{ "gcn", "sym", "relu", 2, 5, 3, 0, 0, { BASE, { "hidden", "5" }, { "classes", "3" }, { "bias", "false" } }, 6 },
	{ "gcn", "sym", "tanh", 2, 9, 9, 0, 0, { BASE, { "hidden", "9" }, { "classes", "9" }, { "act", "tanh" } }, 6 },
	{ "gcn", "row", "tanh", 3, 4, 5, 0, 0, { BASE, { "hidden", "4" }, { "classes", "5" }, { "layers", "3" }, { "norm", "row" },
	  { "act", "tanh" }, { "order", "gather" } }, 9 },
	{ "gcn", "none", "tanh", 1, 0, 4, 0, 0, { BASE, { "classes", "4" }, { "layers", "1" }, { "norm", "none" },
	  { "act", "tanh" }, { "order", "product" } }, 8 },
	{ "gat", "", "elu", 2, 4, 3, 3, 1, { BASE, { "hidden", "4" }, { "classes", "3" }, { "heads", "3" } }, 6 },
	{ "gat", "", "tanh", 3, 2, 4, 2, 3, { BASE, { "hidden", "2" }, { "classes", "4" }, { "heads", "2" }, { "out_heads", "3" },
	  { "layers", "3" }, { "act", "tanh" } }, 9 },
	{ "sage-mean", "", "relu", 2, 4, 3, 0, 0, { BASE, { "hidden", "4" }, { "classes", "3" } }, 5 },
	{ "gcn", "sym", "relu", 2, 5, 3, 0, 0, { BASE, { "hidden", "5" }, { "classes", "3" }, { "rows", "sum1" } }, 6 },
	{ "sage-mean", "", "tanh", 3, 9, 4, 0, 0, { BASE, { "hidden", "9" }, { "classes", "4" }, { "layers", "3" }, { "act", "tanh" } }, 7 },
};

static void give(struct hd_stage *stage, const char *name, const void *at, size_t bytes)
{
	uint32_t i = hd_graph_find_input(&stage->graph, name);

	if (i != HD_NONE)
		memcpy(stage->input[i], at, bytes);
}

static void agree(const struct hd_stage *stage, const struct graph_case *c, const struct a_graph *g,
	const char *name)
{
	const float *x = stage->input[hd_graph_find_input(&stage->graph, "x")],
		*logits = hd_program_value(&stage->program, &stage->bind,
			hd_graph_find_output(&stage->graph, "logits"));
	const int32_t *y = stage->input[hd_graph_find_input(&stage->graph, "y")];
	static struct dense d;
	double peak = 1;

	d = (struct dense){ .g = g, .stage = stage, .param = calloc(stage->layout.held_elems,
		sizeof(double)) };
	for (uint64_t i = 0; i < stage->layout.held_elems; i++)
		d.param[i] = (double)stage->params[i];
	(void)dense_loss(&d, c, x, y);
	for (int i = 0; i < V * c->classes; i++)
		peak = fmax(peak, fabs(d.h[i / c->classes][i % c->classes]));
	for (int i = 0; i < V * c->classes; i++)
		CHECK(fabs((double)logits[i] - d.h[i / c->classes][i % c->classes]) <= 1e-5 * peak,
			"%s: logit %d is %.9g, not %.9g",
			name, i, (double)logits[i], d.h[i / c->classes][i % c->classes]);
	for (uint32_t p = 0; p < stage->graph.nparams; p++) {
		const float *grad = stage->grad + stage->layout.at[p];
		double *at = d.param + stage->layout.at[p];
		for (uint64_t i = 0; i < stage->layout.len[p]; i++)
			peak = fmax(peak, fabs((double)grad[i]));
		for (uint64_t i = 0; i < stage->layout.len[p]; i++) {
			double middle = at[i];
			at[i] = middle + 1e-6;
			double above = dense_loss(&d, c, x, y);
			at[i] = middle - 1e-6;
			double want = (above - dense_loss(&d, c, x, y)) / 2e-6;
			at[i] = middle;
			CHECK(fabs((double)grad[i] - want) <= 1e-4 * peak,
				"%s: gradient %u, element %llu is %.9g, not %.9g", name,
				p, (unsigned long long)i, (double)grad[i], want);
		}
	}
	free(d.param);
}

static void models_agree_with_a_dense_oracle(void **state)
{
	static const char *const devices[] = { "reference", "cpu" };

	(void)state;
	for (uint32_t i = 0; i < 4 * sizeof graph_cases / sizeof *graph_cases; i++) {
		const struct graph_case *c = &graph_cases[i / 4];
		struct hd_stage_model model = { .name = c->model, .nargs = c->nargs, .optimize = true };
		struct hd_device *device = hd_stage_device(devices[i % 2], 2);
		struct hd_stage stage;
		struct a_graph g;
		struct hd_diag diag = { "" };
		char name[96];

		snprintf(name, sizeof name, "case %u (%s), %s, %s", i / 4, c->model, i / 2 % 2 ?
			"directed" : "undirected",
			devices[i % 2]);
		draw_graph(&g, i / 2 % 2, i);
		memset(&stage, 0, sizeof stage);
		hd_arena_init(&stage.arena, 0);
		hd_graph_init(&stage.graph, &stage.arena);
		CHECK(hd_model_build(&stage.graph, model.name, c->arg, c->nargs, &model.opts, &diag) ==
			HD_OK, "%s: %s", name,
			diag.text);
		CHECK(hd_graph_optimize(&stage.graph, V, &diag) == HD_OK && hd_graph_autodiff(&stage.graph,
			&diag) == HD_OK &&
			hd_graph_verify(&stage.graph, V, &diag) == HD_OK, "%s: %s", name, diag.text);
		hd_stage_set(&stage, &(uint64_t){ V }, 1, i / 4);
		give(&stage, "from", g.from, sizeof g.from);
		give(&stage, "to", g.to, sizeof g.to);
		give(&stage, "number", g.number, sizeof g.number);
		give(&stage, "degrees", g.degrees, sizeof g.degrees);
		hd_stage_load(&stage, device);
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		hd_stage_join(&stage);
		agree(&stage, c, &g, name);
		hd_device_destroy(device);
		hd_stage_finish(&stage);
	}
}

/* One op alone, on a device. */
static void run_op(struct hd_device *device, uint16_t op, uint8_t nin, const struct hd_value *in,
	const void *const *at,
	void *out)
{
	struct hd_single single;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint64_t rows = 1, token = 0;

	(void)token;
	hd_arena_init(&arena, 0);
	CHECK(hd_single_make(&single, op, nin, in, &(struct hd_attr){ .i = { 0 } }, &rows, 1, &arena,
		&diag) == HD_OK, "%s",
		diag.text);
	CHECK(device->ops->load(device, &single.program, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_single_run(device, &single, 1, &(struct hd_draw){ 0 }, at, (void *const[]){ out },
		&diag) == HD_OK, "%s",
		diag.text);
	device->ops->unload(device, &single.program);
	hd_arena_finish(&arena);
}

static void sums_over_edges_are_a_matrix_and_its_transpose(void **state)
{
	const struct hd_value list = { .dim = { E }, .rank = 1, .dtype = HD_I32 },
		rows = { .dim = { V, IN }, .rank = 2, .dtype = HD_F32 };
	const struct hd_value in[4] = { list, list, rows, rows };
	struct hd_device *device = hd_stage_device("cpu", 1);
	float x[V * IN], y[V * IN], ax[V * IN], aty[V * IN];
	struct a_graph g;
	double left = 0, right = 0, size = 0;

	(void)state;
	draw_graph(&g, true, 77);
	for (uint32_t i = 0; i < V * IN; i++)
		x[i] = hd_stage_number(1, 1, i), y[i] = hd_stage_number(1, 2, i);
	run_op(device, HD_OP_SPMM, 4, in, (const void *const[]){ g.from, g.to, x, x }, ax);
	run_op(device, HD_OP_SPMM, 4, in, (const void *const[]){ g.to, g.from, y, y }, aty);
	for (uint32_t i = 0; i < V * IN; i++) {
		left += (double)ax[i] * (double)y[i], right += (double)x[i] * (double)aty[i];
		size += fabs((double)ax[i] * (double)y[i]);
	}
	CHECK(fabs(left - right) <= 1e-5 * size && size > 1, "%.9g, %.9g", left, right);
	hd_device_destroy(device);
}

static void weights_of_a_target_add_up_to_one_at_either_end(void **state)
{
	const struct hd_value list = { .dim = { E }, .rank = 1, .dtype = HD_I32 },
		edges = { .dim = { E, 2 }, .rank = 2, .dtype = HD_F32 }, rows = { .dim = { V, 4 }, .rank =
			2, .dtype = HD_F32 };
	struct hd_device *device = hd_stage_device("cpu", 1);
	float e[E * 2], a[E * 2], again[E * 2];
	float peaks[V * 4] = { 0 }, total[V * 4] = { 0 };         /* read as `rows` */
	struct a_graph g;

	(void)state;
	draw_graph(&g, true, 5);
	for (uint32_t i = 0; i < 2 * E; i++)
		e[i] = 9 * hd_stage_number(1, 3, i);
	run_op(device, HD_OP_EDGE_SOFTMAX, 2, (struct hd_value[]){ list, edges },
		(const void *const[]){ g.to, e }, a);
	run_op(device, HD_OP_EDGE_TOTAL, 3, (struct hd_value[]){ list, edges, rows },
		(const void *const[]){ g.to, a, peaks }, total);
	for (uint32_t i = 0; i < 2 * V; i++)
		CHECK(fabs((double)total[i] - 1) <= 1e-5, "vertex %u: %.9g", i / 2, (double)total[i]);
	/* what the sources' end makes of what is kept a target has the same bits */
	run_op(device, HD_OP_EDGE_PEAKS, 3, (struct hd_value[]){ list, edges, rows },
		(const void *const[]){ g.to, e, total }, peaks);
	run_op(device, HD_OP_EDGE_SOFTMAX_AT, 3, (struct hd_value[]){ list, edges, rows },
		(const void *const[]){ g.to, e, peaks }, again);
	for (uint32_t i = 0; i < 2 * E && g.to[i / 2] >= 0; i++)
		CHECK(memcmp(&a[i], &again[i], sizeof *a) == 0, "edge %u: %.9g, %.9g", i / 2, (double)a[i],
			(double)again[i]);
	hd_device_destroy(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_agree_with_a_dense_oracle),
		cmocka_unit_test(sums_over_edges_are_a_matrix_and_its_transpose),
		cmocka_unit_test(weights_of_a_target_add_up_to_one_at_either_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
