/* What runs do alike in all their steps: rates and delays (reorder_int.h). */
#include <stdlib.h>

#include "plan/xfer.h"
#include "timeline/analyze/reorder_int.h"

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof *v, by_size);
	return v[(n - 1) / 2];
}

/* ---- the rate of a port ---- */

static int by_begin(const void *a, const void *b)
{
	const struct hd_tl_moved *x = *(const struct hd_tl_moved *const *)a,
		*y = *(const struct hd_tl_moved *const *)b;

	return (x->enqueued > y->enqueued) - (x->enqueued < y->enqueued);
}

/* Bytes over the time in which something was on its way at one side of one worker. */
static void measure_rate(struct hd_tl_endings *e, const struct hd_tl_moved **list)
{
	for (uint32_t port = 0; port < 2 * e->n; port++) {
		double bytes = 0, ns = 0;
		for (uint32_t k = 0; k < e->nsteps; k++) {
			uint32_t n = 0;
			for (uint32_t i = 0; i < e->step[k].nmoved; i++) {
				const struct hd_tl_moved *m = &e->step[k].moved[i];
				if ((port % 2 ? m->to : m->from) == port / 2)
					list[n++] = m;
			}
			if (n)
				qsort(list, n, sizeof *list, by_begin);
			double until = -1;
			for (uint32_t i = 0; i < n; i++) {
				const double from = list[i]->enqueued > until ? list[i]->enqueued : until;
				bytes += list[i]->bytes;
				ns += list[i]->came > from ? list[i]->came - from : 0;
				until = list[i]->came > until ? list[i]->came : until;
			}
		}
		e->rate = ns > 0 && bytes / ns > e->rate ? bytes / ns : e->rate;
	}
}

/* How many bytes between two workers the transport takes: what a message takes from its last byte handed over
 * until it came, at the rate at which these two carry. That is as much where the transport is full alone:
 * so of all messages the upper quarter. */
static void measure_depth(struct hd_tl_endings *e, const struct hd_tl_moved **list, double *v)
{
	double bytes = 0, ns = 0;
	size_t nlags = 0;

	for (uint32_t pair = 0; pair < e->n * e->n; pair++)
		for (uint32_t k = 0; k < e->nsteps; k++) {
			uint32_t n = 0;
			double until = -1;
			for (uint32_t i = 0; i < e->step[k].nmoved; i++) {
				const struct hd_tl_moved *m = &e->step[k].moved[i];
				if (m->from == pair / e->n && m->to == pair % e->n)
					list[n++] = m;
			}
			if (n)
				qsort(list, n, sizeof *list, by_begin);
			for (uint32_t i = 0; i < n; i++) {
				const struct hd_tl_moved *m = list[i];
				const double from = m->enqueued > until ? m->enqueued : until;
				bytes += m->bytes;
				ns += m->came > from ? m->came - from : 0;
				until = m->came > until ? m->came : until;
				if (m->bytes >= HD_TL_REORDER_CHUNK / 4)
					v[nlags++] = m->came - m->handed - e->late;
			}
		}
	if (nlags)
		qsort(v, nlags, sizeof *v, by_size);
	const double lag = nlags ? v[(nlags - 1) * 3 / 4] : 0;
	e->depth = ns > 0 && lag > 0 ? lag * bytes / ns : 0;
}

/* ---- delays ---- */

/* Not below 0. */
static double low(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof *v, by_size);
	return n && v[(n - 1) / 10] > 0 ? v[(n - 1) / 10] : 0;
}

struct ends_reading {
	struct hd_tl_endings *e;
	/* [nbuckets * n], of the step at hand: when the last part, when the sum came; below 0: none did */
	double *parts, *sum;
	double *off;                      /* [nbuckets] before the end of a pass, when its parts were sent */
	double table[HD_TL_MEMBERS], all; /* when the metrics of all were there; the last sum or part */
};

static void read_step(struct ends_reading *r, const struct hd_tl_ending *step)
{
	const struct hd_tl_endings *e = r->e;
	const uint32_t nb = e->order->nbuckets;

	for (uint32_t i = 0; i < nb * e->n; i++)
		r->parts[i] = r->sum[i] = -1;
	for (uint32_t b = 0; b < nb; b++)
		r->off[b] = -1;
	r->all = 0;
	for (uint32_t m = 0; m < e->n; m++)
		r->table[m] = step->turn[m].pass;
	for (uint32_t i = 0; i < step->nmoved; i++) {
		const struct hd_tl_moved *m = &step->moved[i];
		const uint32_t at = m->bucket * e->n + m->to;
		const double before = step->turn[m->from].pass - m->enqueued;
		double *came = m->kind == HD_XFER_PARTIAL ? &r->parts[at] : m->kind == HD_XFER_SUM ?
			&r->sum[at] : m->kind == HD_XFER_METRICS ? &r->table[m->to] : NULL;
		if (came)
			*came = m->came > *came ? m->came : *came;
		if (m->kind == HD_XFER_PARTIAL && (r->off[m->bucket] < 0 || before < r->off[m->bucket]))
			r->off[m->bucket] = before > 0 ? before : 0;
		if (m->kind == HD_XFER_PARTIAL || m->kind == HD_XFER_SUM)
			r->all = m->came > r->all ? m->came : r->all;
	}
}

/* From when on a sum could go. */
static double due_at(const struct ends_reading *r, const struct hd_tl_ending *step,
	const struct hd_tl_moved *m)
{
	const struct hd_tl_endings *e = r->e;
	const uint32_t at = m->bucket * e->n + m->from;
	const double off = r->off[m->bucket] > 0 ? r->off[m->bucket] : 0,
		own = step->turn[m->from].pass - (e->within ? off : 0);
	double t = r->sum[at] >= 0 ? r->sum[at] : r->parts[at] > own ? r->parts[at] : own;

	if (m->kind == HD_XFER_PARAMETERS && r->table[m->from] > t)
		t = r->table[m->from];
	return m->kind == HD_XFER_PARAMETERS && e->norms && r->all > t ? r->all : t;
}

/* Sums from within passes; parameters behind all sums. */
static void read_habits(struct ends_reading *r)
{
	struct hd_tl_endings *e = r->e;
	uint64_t nsums = 0, within = 0, nparms = 0, behind = 0;

	for (uint32_t k = 0; k < e->nsteps; k++) {
		read_step(r, &e->step[k]);
		for (uint32_t i = 0; i < e->step[k].nmoved; i++) {
			const struct hd_tl_moved *m = &e->step[k].moved[i];
			const bool parm = m->kind == HD_XFER_PARAMETERS;
			nsums += parm || m->kind == HD_XFER_SUM;
			within += (parm || m->kind == HD_XFER_SUM) &&
				m->enqueued < e->step[k].turn[m->from].pass;
			nparms += parm;
			behind += parm && m->enqueued >= r->all;
		}
	}
	e->within = within * 20 > nsums;
	e->norms = nparms && behind * 10 > nparms * 9;
}

/* From when all was everywhere on. */
static double over_at(const struct hd_tl_endings *e, const struct hd_tl_ending *step)
{
	double over = 0;

	for (uint32_t w = 0; w < e->n; w++)
		over = step->turn[w].pass > over ? step->turn[w].pass : over;
	for (uint32_t i = 0; i < step->nmoved; i++)
		over = step->moved[i].came > over ? step->moved[i].came : over;
	return over;
}

/* A node that a worker runs meanwhile makes it longer: the lower tenth has none. */
static void read_pauses(struct hd_tl_endings *e, double *v)
{
	for (uint32_t m = 0; m < e->n; m++) {
		size_t n = 0;
		for (uint32_t k = 0; k < e->nsteps; k++)
			v[n++] = e->step[k].turn[m].end - over_at(e, &e->step[k]);
		e->last[m] = low(v, n);
		n = 0;
		for (uint32_t k = 1; k < e->nsteps; k++) {
			double all = 0;
			for (uint32_t w = 0; w < e->n; w++)
				all = e->step[k].turn[w].begin > all ? e->step[k].turn[w].begin : all;
			v[n++] = e->step[k].turn[m].open - all;
		}
		e->pause[m] = low(v, n);
	}
}

static void read_delays(struct ends_reading *r, double *v)
{
	struct hd_tl_endings *e = r->e;

	for (uint32_t at = 0; at < e->n * HD_TL_WHYS; at++) {
		size_t n = 0;
		const uint32_t member = at / HD_TL_WHYS, why = at % HD_TL_WHYS;
		for (uint32_t k = 0; k < e->nsteps; k++) {
			const struct hd_tl_ending *step = &e->step[k];
			read_step(r, step);
			for (uint32_t i = 0; i < step->nmoved; i++) {
				const struct hd_tl_moved *m = &step->moved[i];
				if (m->from != member || (m->kind != HD_XFER_SUM && m->kind !=
					HD_XFER_PARAMETERS) || (r->sum[m->bucket * e->n + m->from] >= 0) !=
					(why == HD_TL_PASSED))
					continue;
				const double d = m->enqueued - due_at(r, step, m);
				v[n++] = d > 0 ? d : 0;
			}
		}
		e->delay[member][why] = middle(v, n);
	}
}

/* Of sharded state an owner makes the parameters of its buckets; else each worker of all. */
static void read_bring(struct hd_tl_endings *e, bool sharded, double *bytes)
{
	double ns = 0, all = 0;

	for (uint32_t k = 0; k < e->nsteps; k++) {
		for (uint32_t m = 0; m < e->n; m++)
			ns += e->step[k].turn[m].brought;
		for (uint32_t b = 0; b < e->order->nbuckets; b++)
			bytes[b] = 0;
		for (uint32_t i = 0; i < e->step[k].nmoved; i++)
			if (e->step[k].moved[i].kind != HD_XFER_METRICS)
				bytes[e->step[k].moved[i].bucket] = e->step[k].moved[i].bytes;
		for (uint32_t b = 0; b < e->order->nbuckets; b++)
			all += bytes[b] * (sharded ? 1 : e->n);
	}
	e->bring = all > 0 ? ns / all : 0;
}

enum hd_err hd_tl_endings_habits(struct hd_tl_endings *e, struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t nb = e->order->nbuckets;
	struct ends_reading r = { .e = e, .parts = hd_arena_take(arena, nb * e->n + 1, sizeof *r.parts),
		.sum = hd_arena_take(arena, nb * e->n + 1, sizeof *r.sum),
		.off = hd_arena_take(arena, nb + 1, sizeof *r.off) };
	size_t all = 0;
	bool sharded = false;

	for (uint32_t k = 0; k < e->nsteps; k++) {
		all += e->step[k].nmoved;
		for (uint32_t i = 0; i < e->step[k].nmoved; i++)
			sharded |= e->step[k].moved[i].kind == HD_XFER_PARAMETERS;
	}
	if (!all)
		return hd_fail(diag, HD_E_REFUSED, "nothing was sent in the recorded steps: with one worker "
			"there is no order to change");
	double *v = hd_arena_take(arena, all, sizeof *v);
	double *last = hd_arena_take(arena, e->nsteps, sizeof *last);
	const struct hd_tl_moved **list = hd_arena_take(arena, all, sizeof *list);
	if (!r.parts || !r.sum || !r.off || !v || !last || !list)
		return hd_fail(diag, HD_E_NOMEM,
			"no memory to replay the transfers of a recording");
	measure_rate(e, list);
	measure_depth(e, list, v);
	read_habits(&r);
	read_delays(&r, v);
	read_pauses(e, last);
	read_bring(e, sharded, r.off);
	return HD_OK;
}
