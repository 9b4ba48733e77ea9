/* testing_recursion.h -- a GCN of two layers whose rows are late, in f64 on the matrix that a graph was made
 * of, by vertices of the input: included by *_test.c only. Needs testing_stale.h. */
#ifndef HD_GNN_TESTING_RECURSION_H
#define HD_GNN_TESTING_RECURSION_H

#include <math.h>

#include "gnn/testing_stale.h"

enum { HIDDEN = 6, NSYNCS = 4 };

/* What vertices have at one sync, by epoch; parameters after so many updates. */
struct met { double at[EPOCHS][VERTICES][HIDDEN]; };
struct weights { double w0[TG_WIDTH][HIDDEN], b0[HIDDEN], w1[HIDDEN][CLASSES], b1[CLASSES]; };
struct oracle {
	const struct known *graph;
	uint32_t cell[VERTICES], vn[VERTICES], n, k;
	/* [EPOCHS][rows][n] words: at each sync an age for each virtual node that is read, one bit, or two
	 * where `ahead`, and then one row more: ages of weights; NULL: by cells */
	const uint32_t *late; bool ahead;
	double from[VERTICES], to[VERTICES];      /* 1/sqrt of degrees, by edges that begin and that end */
	struct weights w[EPOCHS + 1];
	struct met z[2], d[2];                    /* forwards, backwards, by layer */
};

static inline uint32_t age_at(const struct oracle *o, uint32_t e, uint32_t row, uint32_t reader, uint32_t of)
{
	const uint32_t word = o->late[(e * (NSYNCS + o->ahead) + row) * o->n + reader];

	return o->ahead ? word >> 2 * of & 3 : word >> of & 1;
}

/* The epoch that v reads u of, at one of the syncs. */
static inline uint32_t epoch_of(const struct oracle *o, const struct met *met, uint32_t e, uint32_t v,
	uint32_t u)
{
	const uint32_t sync = met == &o->z[0] ? 0 : met == &o->z[1] ? 1 : met == &o->d[1] ? 2 : 3;

	if (!o->late)
		return o->cell[u] == o->cell[v] ? e : e > o->k ? e - o->k : 0;
	return e ? e - age_at(o, e, sync, o->vn[v], o->vn[u]) : 0;
}

static inline const struct weights *weights_of(const struct oracle *o, uint32_t e, uint32_t v)
{
	return &o->w[o->ahead ? e - age_at(o, e, NSYNCS, o->vn[v], 0) : e];
}

/* The sum over the edges that end in v, or begin there, of what the far ends had when v reads it. */
static inline void gather(const struct oracle *o, const struct met *met, uint32_t e, uint32_t v, bool back,
	uint32_t width, double *sum)
{
	memset(sum, 0, width * sizeof *sum);
	for (uint32_t u = 0; u < VERTICES; u++) {
		if (u != v && !(back ? o->graph->edge[v][u] : o->graph->edge[u][v]))
			continue;
		for (uint32_t c = 0; c < width; c++)
			sum[c] += met->at[epoch_of(o, met, e, v, u)][u][c];
	}
}

static inline void oracle_begin(struct oracle *o, const struct known *graph, const int *id, uint64_t rows,
	const struct how *how)
{
	const uint32_t n = how->n;

	memset(o, 0, sizeof *o);
	o->graph = graph;
	o->k = how->k;
	o->n = n;
	for (uint64_t r = 0; r < n * rows; r++)
		if (id[r] >= 0) {
			o->vn[id[r]] = (uint32_t)(r / rows);
			o->cell[id[r]] = (uint32_t)(r / rows) / (n / how->cells);
		}
	for (uint32_t v = 0; v < VERTICES; v++) {
		double in = 1, out = 1;
		for (uint32_t u = 0; u < VERTICES; u++) {
			in += u != v && graph->edge[u][v];
			out += u != v && graph->edge[v][u];
		}
		o->to[v] = 1 / sqrt(in);
		o->from[v] = 1 / sqrt(out);
	}
}

/* The parameters of the worker, by name. */
static const char *const names[] = { "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias" };
enum { NNAMES = 4, MOST_ELEMS = TG_WIDTH * HIDDEN };

static inline uint64_t read_param(const struct hd_rig *rig, int i, double to[MOST_ELEMS])
{
	const struct hd_state_entry *e = hd_state_find(hd_worker_state(rig->worker), names[i]);
	const uint64_t n = e->len_bytes / sizeof(float);

	assert_true(n <= MOST_ELEMS);
	for (uint64_t k = 0; k < n; k++) {
		float x;
		hd_state_get(e, k, 1, &x);
		to[k] = (double)x;
	}
	return n;
}

static inline double *param_of(struct oracle *o, uint32_t epoch, int i)
{
	double *const at[] = { &o->w[epoch].w0[0][0], o->w[epoch].b0, &o->w[epoch].w1[0][0], o->w[epoch].b1 };

	return at[i];
}

/* d of the logits, for vertices that have a label to learn. */
static inline void slopes(const struct oracle *o, uint32_t v, const double *logit, double weight, double *d)
{
	double most = logit[0], sum = 0;

	memset(d, 0, CLASSES * sizeof *d);
	if (o->graph->set[v] != 1 || o->graph->label[v] < 0)
		return;
	for (int c = 1; c < CLASSES; c++)
		most = fmax(most, logit[c]);
	for (int c = 0; c < CLASSES; c++)
		sum += exp(logit[c] - most);
	for (int c = 0; c < CLASSES; c++)
		d[c] = (exp(logit[c] - most) / sum - (c == o->graph->label[v])) / weight;
}

static inline void oracle_step(struct oracle *o, uint32_t e, double lr)
{
	static double h[VERTICES][HIDDEN], dy[VERTICES][CLASSES], dh[VERTICES][HIDDEN];
	struct weights *next = &o->w[e + 1];
	double sum[HIDDEN], weight = 0;

	*next = o->w[e];
	for (uint32_t v = 0; v < VERTICES; v++) {
		weight += o->graph->set[v] == 1 && o->graph->label[v] >= 0;
		for (int c = 0; c < HIDDEN; c++)
			for (int x = 0; x < TG_WIDTH; x++)
				o->z[0].at[e][v][c] += (double)o->graph->feature[v][x] *
					weights_of(o, e, v)->w0[x][c] * o->from[v];
	}
	for (uint32_t v = 0; v < VERTICES; v++) {
		gather(o, &o->z[0], e, v, false, HIDDEN, sum);
		for (int c = 0; c < HIDDEN; c++)
			h[v][c] = tanh(sum[c] * o->to[v] + weights_of(o, e, v)->b0[c]);
		for (int c = 0; c < CLASSES; c++)
			for (int x = 0; x < HIDDEN; x++)
				o->z[1].at[e][v][c] += h[v][x] * weights_of(o, e, v)->w1[x][c] * o->from[v];
	}
	for (uint32_t v = 0; v < VERTICES; v++) {
		double logit[CLASSES];
		gather(o, &o->z[1], e, v, false, CLASSES, sum);
		for (int c = 0; c < CLASSES; c++)
			logit[c] = sum[c] * o->to[v] + weights_of(o, e, v)->b1[c];
		slopes(o, v, logit, weight, dy[v]);
		for (int c = 0; c < CLASSES; c++)
			o->d[1].at[e][v][c] = dy[v][c] * o->to[v];
	}
	for (uint32_t v = 0; v < VERTICES; v++) {
		gather(o, &o->d[1], e, v, true, CLASSES, sum);
		for (int x = 0; x < HIDDEN; x++) {
			dh[v][x] = 0;
			for (int c = 0; c < CLASSES; c++) {
				dh[v][x] += sum[c] * o->from[v] * weights_of(o, e, v)->w1[x][c];
				next->w1[x][c] -= lr * h[v][x] * sum[c] * o->from[v];
			}
			dh[v][x] *= 1 - h[v][x] * h[v][x];
			o->d[0].at[e][v][x] = dh[v][x] * o->to[v];
			next->b0[x] -= lr * dh[v][x];
		}
		for (int c = 0; c < CLASSES; c++)
			next->b1[c] -= lr * dy[v][c];
	}
	for (uint32_t v = 0; v < VERTICES; v++) {
		gather(o, &o->d[0], e, v, true, HIDDEN, sum);
		for (int x = 0; x < TG_WIDTH; x++)
			for (int c = 0; c < HIDDEN; c++)
				next->w0[x][c] -= lr * (double)o->graph->feature[v][x] * sum[c] * o->from[v];
	}
}

/* How far apart after all epochs, of how far both have gone. */
static inline double apart(struct oracle *a, const struct hd_rig *rig, double before[NNAMES][MOST_ELEMS],
	int i)
{
	double now[MOST_ELEMS], most = 0, off = 0;
	const uint64_t n = read_param(rig, i, now);

	for (uint64_t k = 0; k < n; k++) {
		most = fmax(most, fabs(now[k] - before[i][k]));
		off = fmax(off, fabs(now[k] - param_of(a, EPOCHS, i)[k]));
	}
	assert_true(most > 0);
	return off / most;
}

#endif
