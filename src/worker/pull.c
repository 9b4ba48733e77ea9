#include "worker/pull_int.h"

#include <stdlib.h>

/* ---- figures ---- */

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, uint32_t n)
{
	qsort(x, n, sizeof *x, rising);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Of the rounds of order i, what lies `offset` bytes into their figures. */
static double middle(const struct pull *p, uint32_t i, size_t offset)
{
	double x[HD_PULL_ROUNDS];

	for (uint32_t r = 0; r < p->spec->rounds; r++)
		x[r] = *(const double *)((const char *)&p->figures[r * p->spec->norders + i] + offset);
	return median(x, p->spec->rounds);
}

static double over_random(const struct pull *p, uint32_t i)
{
	const struct hd_pull_spec *s = p->spec;
	double x[HD_PULL_ROUNDS];
	uint32_t random = 0;

	while (random < s->norders && s->order[random] != HD_ORDER_RANDOM)
		random++;
	if (random == s->norders)
		return 0;
	for (uint32_t r = 0; r < s->rounds; r++)
		x[r] = p->figures[r * s->norders + random].time / p->figures[r * s->norders + i].time;
	return median(x, s->rounds);
}

static void take_row(const struct pull *p, uint32_t i, struct hd_pull_row *row)
{
	row->time = middle(p, i, offsetof(struct pull_figures, time));
	row->predicted = middle(p, i, offsetof(struct pull_figures, predicted));
	row->computing = middle(p, i, offsetof(struct pull_figures, computing));
	row->transfers = middle(p, i, offsetof(struct pull_figures, transfers));
	const double c = row->computing, n = row->transfers, lower = c > n ? c : n, both = c + n - lower;
	row->efficiency = both > 0.01 * (c + n) ? (c + n - row->time) / both : 1;
	row->gain = lower > 0 ? both / lower : 0;
	row->over_random = over_random(p, i);
}

/* ---- the whole ---- */

static enum hd_err take_room(struct pull *p, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = p->spec->graph->nrecvs;
	uint64_t sum = 0;

	p->at = hd_arena_take(arena, n, sizeof *p->at);
	p->order = hd_arena_take(arena, pull_count(p), sizeof *p->order);
	p->figures = hd_arena_take(arena, pull_count(p), sizeof *p->figures);
	if (!p->at || !p->order || !p->figures)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u pulls", pull_count(p));
	for (uint32_t r = 0; r < n; r++) {
		p->at[r] = sum;
		sum += p->spec->bytes[r];
	}
	for (uint32_t i = 0; i < p->spec->norders; i++) {
		p->row[i] = (struct hd_pull_row){ .arrival = hd_arena_take(arena, n,
			sizeof *p->row[i].arrival) };
		if (!p->row[i].arrival)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u receives", n);
	}
	if (p->spec->link.rate_mbit)
		p->ends.patience_ns += (int64_t)(sum * 80000 / p->spec->link.rate_mbit);
	return HD_OK;
}

/* Ops take `compute` times as long here as in the graph: orders are made for that. */
static enum hd_err make_orders(struct pull *p, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_pull_spec *s = p->spec;
	struct hd_order_graph paced = *s->graph;
	enum hd_err err = HD_OK;

	paced.op = hd_arena_take(arena, paced.nops, sizeof *paced.op);
	if (!paced.op)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u ops", paced.nops);
	for (uint32_t o = 0; o < paced.nops; o++) {
		paced.op[o] = s->graph->op[o];
		paced.op[o].time = (int64_t)((double)paced.op[o].time * s->compute);
	}
	for (uint32_t i = 0; i < pull_count(p) && !err; i++) {
		const enum hd_order_mode mode = s->order[i % s->norders];
		if (i < s->norders || mode == HD_ORDER_RANDOM)
			err = hd_order_make(&p->order[i], &paced, mode, s->seed + i / s->norders, arena,
				diag);
		else
			p->order[i] = p->order[i - s->norders];
		p->figures[i].predicted = err ? 0 : (double)p->order[i].makespan * s->tick_ns * 1e-6;
	}
	return err;
}

enum hd_err hd_pull_run(const struct hd_pull_spec *spec, struct hd_pull_row *row, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct pull *p = hd_arena_take(arena, 1, sizeof *p);

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a pull");
	*p = (struct pull){ .spec = spec, .row = row, .ends = { .transport = spec->transport,
		.folder = spec->folder, .name = "heddle pull", .streams_cap = HD_PULL_RECVS,
		.patience_ns = 60 * HD_NS_PER_S } };
	enum hd_err err = take_room(p, arena, diag);
	if (!err)
		err = make_orders(p, arena, diag);
	if (!err)
		err = hd_ends_run(&p->ends, &spec->link, pull_near, pull_far, p, diag);
	for (uint32_t i = 0; i < spec->norders && !err; i++)
		take_row(p, i, &row[i]);
	hd_memory_give(&p->bytes[0]);
	hd_memory_give(&p->bytes[1]);
	return err;
}
