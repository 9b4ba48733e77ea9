#include "engine/moments.h"

#include <math.h>
#include <string.h>

#include "engine/stamps.h"
#include "engine/worker_int.h"

enum { KINDS = 3 };                       /* n, mean, M */

void hd_moments_merge(double *a, const double *b, uint64_t c)
{
	for (uint64_t i = 0; i < c; i++) {
		double na = a[i], nb = b[i], n = na + nb, d = b[c + i] - a[c + i];
		if (nb == 0)
			continue;
		if (na == 0) {
			a[c + i] = b[c + i];
			a[2 * c + i] = b[2 * c + i];
		} else {
			a[c + i] = a[c + i] + d * nb / n;
			a[2 * c + i] = a[2 * c + i] + b[2 * c + i] + d * d * (na * nb / n);
		}
		a[i] = n;
	}
}

/* Pairs at distance 1, 2, 4, ...: node (h, i) stands where its first leaf stood. */
void hd_moments_tree(double *leaf, uint32_t nvns, uint64_t step, uint64_t c)
{
	for (uint64_t half = 1; half < nvns; half *= 2)
		for (uint64_t v = 0; v + half < nvns; v += 2 * half)
			hd_moments_merge(leaf + v * step, leaf + (v + half) * step, c);
}

void hd_moments_next(double n, double mean, double spread, double momentum, float *running_mean,
	float *running_var)
{
	if (n < 2)
		return;
	*running_mean = (float)((1 - momentum) * (double)*running_mean + momentum * mean);
	*running_var = (float)((1 - momentum) * (double)*running_var + momentum * (spread / (n - 1)));
}

static uint64_t channels_of(const struct hd_graph *graph, uint32_t record)
{
	return (uint64_t)graph->value[graph->running[record].mean].dim[0];
}

static uint64_t leaf_elems(const struct hd_graph *graph)
{
	uint64_t elems = 0;

	for (uint32_t k = 0; k < graph->nrunning; k++)
		elems += KINDS * channels_of(graph, k);
	return elems;
}

/* Behind the moments a leaf says which rows it read were late. */
static uint64_t said_elems(const struct hd_task *task)
{
	return leaf_elems(&task->train) + hd_stamps_said(&task->train, task->job);
}

uint64_t hd_moments_bytes(const struct hd_task *task)
{
	return said_elems(task) * task->job->nvns * sizeof(double);
}

enum hd_err hd_moments_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_graph *graph = &w->task->train;
	struct hd_moments m = { .elems = said_elems(w->task), .nvns = w->task->job->nvns };

	m.at = hd_arena_take(&w->arena, graph->nrunning + 1, sizeof *m.at);
	m.leaf = hd_arena_take(&w->arena, m.elems * m.nvns + 1, sizeof *m.leaf);
	if (!m.at || !m.leaf)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the moments of %u virtual nodes", m.nvns);
	for (uint32_t k = 0; k < graph->nrunning; k++)
		m.at[k + 1] = m.at[k] + KINDS * channels_of(graph, k);
	m.sum = m.leaf;
	w->step->moments = m;
	if (w->stage->lockstep.stamps)
		w->stage->lockstep.stamps->said_at = leaf_elems(graph);
	return HD_OK;
}

enum hd_err hd_moments_apart(struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_moments *m = &w->step->moments;

	if (m->elems == 0 || m->sum != m->leaf)
		return HD_OK;
	double *sum = hd_arena_take(&w->arena, m->elems * m->nvns, sizeof *sum);
	if (!sum)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the moments of %u virtual nodes", m->nvns);
	m->sum = sum;
	return HD_OK;
}

static double *leaf_of(const struct hd_worker *w, uint32_t vn) { return w->step->moments.leaf + vn *
	w->step->moments.elems; }

void hd_moments_clear(struct hd_worker *w, uint32_t vn) { memset(leaf_of(w, vn), 0,
	w->step->moments.elems * sizeof(double)); }

void hd_moments_take(struct hd_rank *rank, uint32_t vn, uint32_t ipart, const struct hd_bind *bind)
{
	struct hd_worker *w = rank->worker;
	const struct hd_graph *graph = w->stage->train.graph;

	for (uint32_t k = 0; k < graph->nrunning; k++)
		hd_moments_merge(leaf_of(w, vn) + w->step->moments.at[k],
			hd_program_part(&w->stage->train, bind, graph->running[k].moments, ipart),
			channels_of(graph, k));
}

void hd_moments_join(struct hd_worker *w, uint32_t vn, uint32_t record, const double *moments)
{
	hd_moments_merge(leaf_of(w, vn) + w->step->moments.at[record], moments,
		channels_of(w->stage->train.graph, record));
}

static bool mine(const struct hd_rank *rank, uint32_t record) { return record % rank->worker->spec.ndevices ==
	rank->id; }

static void set_apart(const struct hd_moments *m, uint32_t record)
{
	uint64_t at = m->at[record], n = m->at[record + 1] - at;

	for (uint64_t v = 0; v < m->nvns && m->sum != m->leaf; v++)
		memcpy(m->sum + v * m->elems + at, m->leaf + v * m->elems + at, n * sizeof *m->sum);
}

void hd_moments_fold(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_graph *graph = w->stage->train.graph;

	for (uint32_t k = 0; k < graph->nrunning; k++)
		if (mine(rank, k)) {
			set_apart(&w->step->moments, k);
			hd_moments_tree(w->step->moments.sum + w->step->moments.at[k],
				w->step->moments.nvns, w->step->moments.elems,
				channels_of(graph, k));
		}
}

/* The pair of buffers that a record moves. */
static uint64_t buffer_of(const struct hd_worker *w, uint32_t value)
{
	return w->task->layout.buffer_at[w->stage->train.graph->value[value].data];
}

/* One channel of the pair after this step. */
static void next(const struct hd_worker *w, uint32_t record, uint64_t channel, float *mean, float *var)
{
	const struct hd_running *r = &w->stage->train.graph->running[record];
	const double *sum = w->step->moments.sum + w->step->moments.at[record];
	uint64_t c = channels_of(w->stage->train.graph, record);

	hd_param_store_read(w->store, HD_VEC_BUFFERS, buffer_of(w, r->mean) + channel, 1, mean);
	hd_param_store_read(w->store, HD_VEC_BUFFERS, buffer_of(w, r->variance) + channel, 1, var);
	hd_moments_next(sum[channel], sum[c + channel], sum[2 * c + channel], (double)r->momentum, mean, var);
}

bool hd_moments_finite(const struct hd_worker *w)
{
	const struct hd_graph *graph = w->stage->train.graph;
	bool finite = true;

	for (uint32_t k = 0; k < graph->nrunning; k++) {
		uint64_t c = channels_of(graph, k);
		for (uint64_t i = 0; i < c; i++) {
			float mean, var;
			next(w, k, i, &mean, &var);
			finite &= isfinite(mean) && isfinite(var);
		}
	}
	return finite;
}

void hd_moments_move(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_graph *graph = w->stage->train.graph;

	for (uint32_t k = 0; k < graph->nrunning; k++) {
		const struct hd_running *r = &graph->running[k];
		uint64_t c = channels_of(graph, k);
		for (uint64_t i = 0; mine(rank, k) && i < c; i++) {
			float mean, var;
			next(w, k, i, &mean, &var);
			hd_param_store_write(w->store, HD_VEC_BUFFERS, buffer_of(w, r->mean) + i, 1, &mean);
			hd_param_store_write(w->store, HD_VEC_BUFFERS, buffer_of(w, r->variance) + i, 1,
				&var);
		}
	}
}
