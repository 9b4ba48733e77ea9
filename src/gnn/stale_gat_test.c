#include <math.h>

#include "gnn/testing_stale.h"

/* Attention with rows of earlier epochs: the recursion in f64 on the matrix that the graph was made of, by
 * vertices of the input. It shares no code with the worker, and follows from the rule alone: what a vertex
 * takes of one in another cell is k epochs old, at both ends of an edge, and at a source a score above the
 * maximum that was taken counts as that maximum and has no gradient. */

enum { LAYERS = 2, HEADS = 2, WIDEST = 6 };

static const char rate[] = "optim: {kind: sgd, lr: 0.1, clip: 0, schedule: {kind: constant, warmup: 0}}\n";
/* Of a layer: its heads and their width. */
static const struct { uint32_t in, heads, width; } shape[LAYERS] = { { TG_WIDTH, HEADS, 3 },
	{ HEADS * 3, 1, CLASSES } };

/* What a vertex has in an epoch, that others take: h, s; dO, t, the softmax's maximum and sum, the sum of its
 * products. */
struct row { double h[WIDEST], s[HEADS], d[WIDEST], t[HEADS], most[HEADS], sum[HEADS], dot[HEADS]; };
struct oracle {
	const struct known *graph;
	const struct hd_task *task;
	uint32_t cell[VERTICES], k, e;
	bool capped;              /* a score above the maximum that was taken counts as it */
	uint64_t above;           /* how many were */
	double *param, *grad;
	struct row row[EPOCHS][LAYERS][VERTICES];
	double x[LAYERS + 1][VERTICES][TG_WIDTH], y[LAYERS][VERTICES][WIDEST];    /* inputs, before the act */
};

static uint64_t param_of(const struct oracle *o, uint32_t l, const char *name)
{
	char text[32];

	snprintf(text, sizeof text, "layers.%u.%s", l, name);
	return o->task->layout.at[hd_graph_find_param(&o->task->train, text)];
}

/* u as v takes it. */
static const struct row *taken(const struct oracle *o, uint32_t l, uint32_t v, uint32_t u)
{
	const uint32_t late = o->cell[u] == o->cell[v] ? 0 : o->k;

	return &o->row[o->e > late ? o->e - late : 0][l][u];
}

static bool is_edge(const struct oracle *o, uint32_t from, uint32_t to)
{
	return from == to || o->graph->edge[from][to];
}

static double leaky(double x) { return x > 0 ? x : 0.2 * x; }
static double leaky_slope(double x) { return x > 0 ? 1 : 0.2; }

static double dot(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Rows of a layer that sources and targets bring. */
static void project(struct oracle *o, uint32_t l)
{
	const uint32_t n = shape[l].heads * shape[l].width;
	const double *w = o->param + param_of(o, l, "weight");

	for (uint32_t v = 0; v < VERTICES; v++) {
		struct row *r = &o->row[o->e][l][v];
		memset(r, 0, sizeof *r);
		for (uint32_t i = 0; i < shape[l].in; i++)
			for (uint32_t c = 0; c < n; c++)
				r->h[c] += o->x[l][v][i] * w[i * n + c];
		for (uint32_t j = 0; j < shape[l].heads; j++) {
			const uint32_t at = j * shape[l].width;
			r->s[j] = dot(r->h + at, o->param + param_of(o, l, "source") + at, shape[l].width);
			r->t[j] = dot(r->h + at, o->param + param_of(o, l, "target") + at, shape[l].width);
		}
	}
}

static void attend(struct oracle *o, uint32_t l)
{
	const uint32_t width = shape[l].width;

	for (uint32_t v = 0; v < VERTICES; v++)
		for (uint32_t j = 0; j < shape[l].heads; j++) {
			struct row *r = &o->row[o->e][l][v];
			double *y = o->y[l][v] + j * width;
			memset(y, 0, width * sizeof *y);
			r->most[j] = -INFINITY;
			for (uint32_t u = 0; u < VERTICES; u++) {
				const struct row *f = taken(o, l, v, u);
				if (is_edge(o, u, v))
					r->most[j] = fmax(r->most[j], leaky(f->s[j] + r->t[j]));
				const double w = is_edge(o, u, v) ? exp(leaky(f->s[j] + r->t[j])) : 0;
				r->sum[j] += w;
				for (uint32_t c = 0; c < width; c++)
					y[c] += w * f->h[j * width + c];
			}
			for (uint32_t c = 0; c < width; c++)
				y[c] = y[c] / r->sum[j] + o->param[param_of(o, l, "bias") + j * width + c];
		}
}

/* The edges that end in a vertex: the gradient of t, and what its sources take. `dt`: of all vertices. */
static void back_at_targets(struct oracle *o, uint32_t l, double (*dt)[HEADS])
{
	const uint32_t width = shape[l].width;

	for (uint32_t v = 0; v < VERTICES; v++)
		for (uint32_t j = 0; j < shape[l].heads; j++) {
			struct row *r = &o->row[o->e][l][v];
			const double *d = r->d + j * width;
			dt[v][j] = 0;
			for (int pass = 0; pass < 2; pass++)
				for (uint32_t u = 0; u < VERTICES; u++) {
					const struct row *f = taken(o, l, v, u);
					const double score = f->s[j] + r->t[j], a = exp(leaky(score)) /
						r->sum[j], g = dot(d, f->h + j * width, width);
					if (is_edge(o, u, v) && pass == 0)
						r->dot[j] += a * g;
					else if (is_edge(o, u, v))
						dt[v][j] += leaky_slope(score) * a * (g - r->dot[j]);
				}
		}
}

/* The edges that begin in a vertex, made there of what their targets brought. */
static void back_at_sources(struct oracle *o, uint32_t l, double (*dh)[WIDEST], double (*ds)[HEADS])
{
	const uint32_t width = shape[l].width;

	for (uint32_t u = 0; u < VERTICES; u++)
		for (uint32_t j = 0; j < shape[l].heads; j++) {
			const struct row *r = &o->row[o->e][l][u];
			ds[u][j] = 0;
			memset(dh[u] + j * width, 0, width * sizeof **dh);
			for (uint32_t v = 0; v < VERTICES; v++) {
				const struct row *f = taken(o, l, u, v);
				const double *d = f->d + j * width, score = r->s[j] + f->t[j], g = dot(d,
					r->h + j * width, width);
				const bool above = leaky(score) > f->most[j];
				const double a = exp(above && o->capped ? f->most[j] : leaky(score)) /
					f->sum[j];
				if (!is_edge(o, u, v))
					continue;
				o->above += above;
				ds[u][j] += above && o->capped ? 0 : leaky_slope(score) * a * (g - f->dot[j]);
				for (uint32_t c = 0; c < width; c++)
					dh[u][j * width + c] += a * d[c];
			}
		}
}

/* d of the rows is there. dx: of the layer's inputs. */
static void back(struct oracle *o, uint32_t l, double (*dx)[TG_WIDTH])
{
	static double dt[VERTICES][HEADS], ds[VERTICES][HEADS], dh[VERTICES][WIDEST];
	const uint32_t width = shape[l].width, n = shape[l].heads * width;
	const uint64_t w = param_of(o, l, "weight"), s = param_of(o, l, "source"), t = param_of(o, l,
		"target"), b = param_of(o, l, "bias");

	back_at_targets(o, l, dt);
	back_at_sources(o, l, dh, ds);
	for (uint32_t v = 0; v < VERTICES; v++) {
		const struct row *r = &o->row[o->e][l][v];
		for (uint32_t c = 0; c < n; c++) {
			const uint32_t j = c / width;
			o->grad[s + c] += ds[v][j] * r->h[c];
			o->grad[t + c] += dt[v][j] * r->h[c];
			o->grad[b + c] += r->d[c];
			dh[v][c] += ds[v][j] * o->param[s + c] + dt[v][j] * o->param[t + c];
		}
		for (uint32_t i = 0; i < shape[l].in; i++) {
			dx[v][i] = dot(dh[v], o->param + w + i * n, n);
			for (uint32_t c = 0; c < n; c++)
				o->grad[w + i * n + c] += o->x[l][v][i] * dh[v][c];
		}
	}
}

/* d of the logits of v: the mean over the labelled vertices of the training set. */
static void slopes(const struct oracle *o, uint32_t v, double weight, const double *logit, double *d)
{
	double sum = 0;

	if (o->graph->set[v] != 1 || o->graph->label[v] < 0)
		return;
	for (int c = 0; c < CLASSES; c++)
		sum += exp(logit[c]);
	for (int c = 0; c < CLASSES; c++)
		d[c] = (exp(logit[c]) / sum - (c == o->graph->label[v])) / weight;
}

static void oracle_step(struct oracle *o, double lr)
{
	static double dx[VERTICES][TG_WIDTH];
	const uint64_t n = o->task->layout.elems;
	double weight = 0;

	memset(o->grad, 0, n * sizeof *o->grad);
	for (uint32_t l = 0; l < LAYERS; l++) {
		project(o, l);
		attend(o, l);
		for (uint32_t v = 0; v < VERTICES; v++)
			for (uint32_t c = 0; c < WIDEST; c++)
				o->x[l + 1][v][c] = o->y[l][v][c] > 0 ? o->y[l][v][c] : expm1(o->y[l][v][c]);
	}
	for (uint32_t v = 0; v < VERTICES; v++)
		weight += o->graph->set[v] == 1 && o->graph->label[v] >= 0;
	for (uint32_t v = 0; v < VERTICES; v++)
		slopes(o, v, weight, o->y[LAYERS - 1][v], o->row[o->e][LAYERS - 1][v].d);
	back(o, 1, dx);
	for (uint32_t v = 0; v < VERTICES; v++)
		for (uint32_t c = 0; c < WIDEST; c++)
			o->row[o->e][0][v].d[c] = dx[v][c] * (o->y[0][v][c] > 0 ? 1 : exp(o->y[0][v][c]));
	back(o, 0, dx);
	for (uint64_t i = 0; i < n; i++)
		o->param[i] -= lr * o->grad[i];
	o->e++;
}

static struct oracle *open_oracle(struct graphs *g, const struct hd_rig *rig, const struct how *how)
{
	const uint64_t n = rig->task->layout.elems, rows = rows_of(g, how->kind, how->n);
	struct oracle *o = calloc(1, sizeof *o);
	int id[INTERVALS * VERTICES];

	assert_non_null(o);
	o->graph = g->known[how->kind];
	o->task = rig->task;
	o->k = how->k;
	o->param = calloc(n, sizeof *o->param);
	o->grad = calloc(n, sizeof *o->grad);
	ids_of_rows(g, how->kind, how->n, rows, id);
	for (uint64_t r = 0; r < how->n * rows; r++)
		if (id[r] >= 0)
			o->cell[id[r]] = (uint32_t)(r / rows) / (how->n / how->cells);
	for (uint64_t i = 0; i < n; i++)
		o->param[i] = (double)hd_rig_params(rig)[i];
	for (uint32_t v = 0; v < VERTICES; v++)
		for (uint32_t i = 0; i < TG_WIDTH; i++)
			o->x[0][v][i] = (double)o->graph->feature[v][i];
	return o;
}

static void close_oracle(struct oracle *o)
{
	free(o->param);
	free(o->grad);
	free(o);
}

/* The furthest that a parameter is off, of how far it has gone. `k`, `capped`: the oracle's. *above: its. */
static double off(struct graphs *g, const struct how *how, uint32_t k, bool capped, uint64_t *above)
{
	struct how as = *how;
	double worst = 0;
	struct hd_rig rig;

	open_stale(g, &rig, how, 1);
	as.k = k;
	struct oracle *o = open_oracle(g, &rig, &as);
	o->capped = capped;
	const struct hd_layout *layout = &rig.task->layout;
	double *before = calloc(layout->elems, sizeof *before);
	memcpy(before, o->param, layout->elems * sizeof *before);
	for (uint32_t e = 0; e < EPOCHS; e++) {
		hd_rig_step(&rig);
		oracle_step(o, 0.1);
	}
	for (uint32_t p = 0; p < rig.task->train.nparams; p++) {
		double gone = 0, apart = 0;
		for (uint64_t i = layout->at[p]; i < layout->at[p] + layout->len[p]; i++) {
			gone = fmax(gone, fabs((double)hd_rig_params(&rig)[i] - before[i]));
			apart = fmax(apart, fabs((double)hd_rig_params(&rig)[i] - o->param[i]));
		}
		assert_true(gone > 0);
		worst = fmax(worst, apart / gone);
	}
	free(before);
	*above = o->above;
	close_oracle(o);
	hd_rig_close(&rig);
	return worst;
}

static void weights_are_those_of_the_recursion(void **state)
{
	static const struct { uint32_t n, cells, k; } kinds[] = { { 8, 8, 1 }, { 8, 2, 2 }, { 4, 4, 3 },
		{ 2, 2, 0 } };
	struct graphs g;
	uint64_t above, any;

	(void)state;
	make_graphs(&g);
	for (int x = 0; x < 4; x++) {
		const struct how how = { ATTENTION, x % 2, kinds[x].n, kinds[x].cells, kinds[x].k,
			HD_MODE_EXACT, "0", rate };
		const double same = off(&g, &how, how.k, true, &above), other = off(&g, &how,
			how.k ? how.k - 1 : 1, true, &any), free_of = off(&g, &how, how.k, false, &any);
		if (getenv("GATDBG")) fprintf(stderr, "%g %g %g %lu\n", same, other, free_of, above);
		CHECK(same < 2e-4 && other > 1e-3, "%u intervals, %u cells, k %u: off by %g, from another "
			"k by %g", how.n, how.cells, how.k, same, other);
		/* in step no score is above the maximum, else weights above 1 would be seen */
		CHECK(how.k ? above > 0 && free_of > 1e-3 : above == 0 && free_of < 1e-4,
			"%u intervals, k %u: %lu above, off by %g without a cap", how.n, how.k,
			(unsigned long)above, free_of);
	}
	drop_graphs(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_those_of_the_recursion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
