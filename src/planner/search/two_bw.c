#include "planner/two_bw.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

#define PS 1e12

uint32_t hd_2bw_thin_cuts(uint32_t *thin, const struct hd_cuts *cuts)
{
	uint32_t n = 0;

	for (uint32_t j = 0; j < cuts->n; j++) {
		uint32_t comparable = 0;
		for (uint32_t k = 0; k < cuts->n; k++)
			comparable += k < j ? hd_cuts_precede(cuts, k, j) : k > j &&
				hd_cuts_precede(cuts, j, k);
		if (comparable == cuts->n - 1)
			thin[n++] = j;
	}
	return n;
}

/* A boundary lies behind a thin cut; the last one is the end of the model, not a boundary. */
bool hd_2bw_cut(uint32_t *first, uint32_t p, const struct hd_cut_sums *sums, const uint32_t *thin,
	uint32_t nthin)
{
	const struct hd_cuts *cuts = sums->cuts;
	double total = (double)cuts->time_ns[cuts->n - 1];
	uint32_t at = 0, k = 0, ends = nthin && thin[nthin - 1] == cuts->n - 1 ? nthin - 1 : nthin;

	if (p - 1 > ends)
		return false;
	first[0] = 0;
	for (uint32_t s = 1; s < p; s++) {
		uint32_t last = ends - (p - s), best = at;        /* those behind need one each */
		double share = total * s / p;
		/* times rise: the nearest is the first to reach the share or the first of those just below
		 * it */
		for (k = k < at ? at : k; k <= last && (double)cuts->time_ns[thin[k]] < share; k++)
			if (cuts->time_ns[thin[k]] > cuts->time_ns[thin[best]])
				best = k;
		if (k <= last && (double)cuts->time_ns[thin[k]] - share <
			fabs((double)cuts->time_ns[thin[best]] - share))
			best = k;
		first[s] = thin[best] + 1;
		at = best + 1;
	}
	return true;
}

struct planner {
	const struct hd_cut_sums *sums;
	const struct hd_cluster *cluster;
	uint32_t vns, *first, *best_first;
	struct hd_stage_cost *stage;
	int64_t limit;
	double speed;                             /* of the slowest device */
	struct hd_2bw_plan best, data;            /* of all; of p = 1. p 0: none */
	uint64_t ntried, nfit, nlate;
	int64_t least; uint32_t least_p, least_d; /* smallest need, with recomputation */
	struct { uint32_t p, d; double s; } late; /* the last that rule 6 leaves out. s 0: memory */
};

static const struct hd_cluster_level *level_for(const struct hd_cluster *cluster, uint64_t devices)
{
	return &cluster->level[devices <= cluster->level[0].components ? 0 : cluster->nlevels - 1];
}

static double compute_s(const struct planner *x, const struct hd_stage_cost *c, bool recompute)
{
	double ps = (double)(c->f + c->i + c->w) / x->speed;

	return (recompute ? ps * 4 / 3 : ps) / PS;
}

static double sum_s(const struct planner *x, int64_t param, uint32_t d)
{
	return d == 1 ? 0 : 2. * (d - 1) / d * (double)param / level_for(x->cluster, d)->bytes_per_s;
}

static double max(double a, double b) { return a > b ? a : b; }

/* Rule 4 */
static double vn_s(const struct planner *x, uint32_t p, uint32_t d, bool recompute)
{
	double m = x->vns / d, link = level_for(x->cluster, (uint64_t)p * d)->bytes_per_s, slowest = 0,
		all = 0;

	for (uint32_t s = 0; s < p && p > 1; s++) {
		const struct hd_stage_cost *c = &x->stage[s];
		slowest = max(slowest, max(compute_s(x, c, recompute) + 2. * (double)(c->in + c->out) / link,
			sum_s(x, c->param, d) / m));
	}
	for (uint32_t v = 0; v < x->sums->profile->nnodes && p == 1; v++) {
		const struct hd_stage_cost layer = hd_cut_sums_node(x->sums, v);
		all += max(compute_s(x, &layer, recompute), sum_s(x, layer.param, d) / m);
	}
	return p > 1 ? slowest : all;
}

/* What the fullest device holds: `versions` of the weights, activations of `whole` virtual nodes, the
 * inputs of `inputs`. */
static bool need(const struct planner *x, uint32_t p, int64_t versions, int64_t whole, int64_t inputs,
	int64_t *out)
{
	int64_t most = 0, weights, kept, in, bytes;

	for (uint32_t s = 0; s < p; s++) {
		const struct hd_stage_cost *c = &x->stage[s];
		if (!hd_mul_i64(versions, c->param, &weights) || !hd_mul_i64(whole, c->saved, &kept) ||
			!hd_mul_i64(inputs, c->in, &in)
			|| !hd_add_i64(weights, kept, &bytes) || !hd_add_i64(bytes, in, &bytes))
			return false;
		most = bytes > most ? bytes : most;
	}
	*out = most;
	return true;
}

static bool better(const struct hd_2bw_plan *a, const struct hd_2bw_plan *b)
{
	double x = (double)a->vn_ps / a->d, y = (double)b->vn_ps / b->d;

	if (x != y)
		return x < y;
	if (a->recompute != b->recompute)
		return b->recompute;
	return a->p != b->p ? a->p < b->p : a->d < b->d;
}

static void leave_out(struct planner *x, uint32_t p, uint32_t d, double takes)
{
	x->nlate++;
	x->late.p = p;
	x->late.d = d;
	x->late.s = takes;
}

static void try_plan(struct planner *x, uint32_t p, uint32_t d, bool recompute)
{
	struct hd_2bw_plan one = { .p = p, .d = d, .m = x->vns / d, .recompute = recompute,
		.limit = x->limit };

	x->ntried++;
	if (!need(x, p, 2, recompute ? 1 : p, p, &one.need) ||
		!need(x, p, 1, recompute ? 1 : p, p, &one.flush)) {
		leave_out(x, p, d, 0);
		return;
	}
	if (!need(x, p, 1, 1, one.m, &one.gpipe))
		one.gpipe = -1;
	if (one.need < x->least) {
		x->least = one.need;
		x->least_p = p;
		x->least_d = d;
	}
	if (x->limit && one.need > x->limit)
		return;
	x->nfit++;
	double takes = vn_s(x, p, d, recompute);
	if (!hd_i64_from_f64(ceil(takes * PS), &one.vn_ps)) {
		leave_out(x, p, d, takes);
		return;
	}
	if (p == 1 && (!x->data.p || better(&one, &x->data)))
		x->data = one;
	if (x->best.p && !better(&one, &x->best))
		return;
	x->best = one;
	memcpy(x->best_first, x->first, p * sizeof *x->first);
}

static void try_depth(struct planner *x, uint32_t p)
{
	for (uint32_t s = 0; s < p; s++)
		x->stage[s] = hd_cut_sums_range(x->sums, x->first[s],
			s + 1 < p ? x->first[s + 1] : x->sums->cuts->n);
	for (uint32_t d = 1; (uint64_t)p * d <= x->cluster->ndevices && x->vns / d >= p; d++) {
		if (x->vns % d)
			continue;
		try_plan(x, p, d, false);
		try_plan(x, p, d, true);
	}
}

static enum hd_err refuse(const struct planner *x, const struct hd_2bw_ask *ask, struct hd_diag *diag)
{
	if (ask->p > x->vns)
		return hd_fail(diag, HD_E_INVAL,
			"2bw needs m >= p; m = %u, p = %u: the deepest pipeline for %u virtual nodes is p = "
			"%u", x->vns,
			ask->p, x->vns, x->vns);
	if (ask->p > x->cluster->ndevices)
		return hd_fail(diag, HD_E_INVAL, "a pipeline of %u ranks needs as many devices; there are %u",
			ask->p, x->cluster->ndevices);
	if (!x->least_p)
		return hd_fail(diag, HD_E_INVAL,
			"the model cannot be cut in %u stages: it has too few "
			"places where all before is done before all behind; try fewer", ask->p);
	return hd_fail(diag, HD_E_INVAL,
		"no (p,d) fits: the smallest need is %lld bytes at p=%u, d=%u, recompute on; a device has "
		"%lld", (long long)x->least,
		x->least_p, x->least_d, (long long)x->limit);
}

static enum hd_err refuse_late(const struct planner *x, struct hd_diag *diag)
{
	if (x->late.s > 0)
		return hd_fail(diag, HD_E_INVAL,
			"at p=%u, d=%u a virtual node takes %.3g s, and times are counted up to 2^62 ps (53 "
			"days): is a bandwidth, a "
			"speed or a time of the profile wrong?", x->late.p, x->late.d, x->late.s);
	return hd_fail(diag, HD_E_INVAL,
		"at p=%u, d=%u a device holds more than 2^63 bytes: is a size of the profile wrong?",
		x->late.p, x->late.d);
}

enum hd_err hd_2bw_plan(struct hd_2bw_plan *plan, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster,
	const struct hd_2bw_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t most = cluster->ndevices < ask->vns ? cluster->ndevices : ask->vns;
	struct planner x = { .sums = sums, .cluster = cluster, .vns = ask->vns, .limit = ask->memory,
		.least = INT64_MAX, .speed = INFINITY };

	if (most > sums->cuts->n)
		most = sums->cuts->n;
	for (uint32_t k = 0; k < cluster->nkinds; k++) {
		const struct hd_cluster_kind *kind = &cluster->kind[k];
		x.speed = kind->speed < x.speed ? kind->speed : x.speed;
		if (!ask->memory && kind->memory && (!x.limit || kind->memory < x.limit))
			x.limit = kind->memory;
	}
	uint32_t *thin = hd_arena_take(arena, sums->cuts->n, sizeof *thin);
	x.first = hd_arena_take(arena, most, sizeof *x.first);
	x.best_first = hd_arena_take(arena, most, sizeof *x.best_first);
	x.stage = hd_arena_take(arena, most, sizeof *x.stage);
	if (!thin || !x.first || !x.best_first || !x.stage)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the stages of %u cuts", sums->cuts->n);
	uint32_t nthin = hd_2bw_thin_cuts(thin, sums->cuts);
	for (uint32_t p = 1; p <= most; p++)
		if ((!ask->p || p == ask->p) && hd_2bw_cut(x.first, p, sums, thin, nthin))
			try_depth(&x, p);
	if (!x.best.p)
		return x.nlate ? refuse_late(&x, diag) : refuse(&x, ask, diag);
	*plan = x.best;
	plan->first = x.best_first;
	plan->ntried = x.ntried;
	plan->nfit = x.nfit;
	plan->nlate = x.nlate;
	plan->data_d = x.data.d;
	plan->data_ps = x.data.vn_ps;
	return HD_OK;
}
