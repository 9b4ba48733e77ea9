#include "planner/search/search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/search/bound.h"

enum { RANK_INS = 64, POLISHED = 5 };
/* How often a shape that does not fit as it was cut is cut again; widths of copies that are simulated for
 * their own sake. */
enum { RETRIES = 8, WIDTHS = 8 };

/* ---- order */

static uint32_t devices_of(const struct hd_auto_plan *p) { return p->nranks * p->shape.t; }

static bool is_better(const struct hd_auto_plan *a, const struct hd_auto_plan *b)
{
	if (a->makespan_ps != b->makespan_ps)
		return a->makespan_ps < b->makespan_ps;
	if (devices_of(a) != devices_of(b))
		return devices_of(a) < devices_of(b);
	return a->peak != b->peak ? a->peak < b->peak : a->order < b->order;
}

static uint64_t cost_of(const struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	uint32_t ranks = c->row ? c->shape.p * c->shape.d : s->space.cluster->ndevices;

	return hd_auto_nins(c, s->space.ask->vns) + (uint64_t)RANK_INS * ranks;
}

/* ---- one candidate */

/* What the plan lacks most, for a refusal. */
static void remember(struct hd_auto_search *s, const struct hd_auto_plan *plan)
{
	struct hd_auto_need worst = { 0 };

	for (uint32_t r = 0; r < plan->nranks; r++) {
		const struct hd_auto_rank *rank = &plan->rank[r];
		if (rank->memory && rank->peak > rank->memory &&
			rank->peak - rank->memory > worst.bytes - worst.has)
			worst = (struct hd_auto_need){ rank->peak, rank->memory, plan->shape };
	}
	if (worst.bytes && worst.bytes < s->least.bytes)
		s->least = worst;
}

/* The candidate, cut as it is, surely takes longer than `ps`. Resets the scratch memory. */
static enum hd_err surely_above(struct hd_auto_search *s, const struct hd_auto_cand *c, int64_t ps,
	bool *above)
{
	double bound_ps;

	hd_arena_reset(s->space.scratch);
	enum hd_err err = hd_auto_bound(&s->space, c, s->space.scratch, &bound_ps);
	*above = !err && bound_ps > (double)ps;
	return err;
}

/* For asserts: what was simulated does not fall below its bound. */
static bool below(const struct hd_auto_search *s, const struct hd_auto_cand *c, int64_t ps)
{
	double bound_ps;

	return hd_auto_bound(&s->space, c, s->space.scratch, &bound_ps) || bound_ps <= (double)ps;
}

/* Simulated in scratch memory. */
static enum hd_err try_out(struct hd_auto_search *s, const struct hd_auto_cand *c, enum hd_auto_proof how,
	struct hd_auto_plan *plan)
{
	bool late = false;

	hd_arena_reset(s->space.scratch);
	enum hd_err err = hd_auto_build(plan, &s->space, c, s->space.scratch, s->space.diag);

	s->out.nsimulated++;
	if (!err)
		err = hd_auto_judge(plan, &s->space, how, &late, s->space.scratch, s->space.diag);
	if (err == HD_E_NOTFOUND)
		remember(s, plan);
	s->out.nlate += late;
	assert(err || below(s, c, plan->makespan_ps));
	return err;
}

/* The sharded ranges at hand are those of the candidate's t. */
static enum hd_err shard_as(struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	return s->space.t == c->shape.t ? HD_OK : hd_auto_shard(&s->space, c->shape.t);
}

/* The estimate does not know all that is kept: what does not fit is cut again. */
static enum hd_err try_to_fit(struct hd_auto_search *s, struct hd_auto_cand *c, struct hd_auto_plan *plan)
{
	enum hd_err err = try_out(s, c, HD_AUTO_TO_PROVE, plan);

	for (int tries = 0; err == HD_E_NOTFOUND && tries < RETRIES; tries++) {
		struct hd_auto_rank *rank = hd_arena_take(s->space.work, plan->nranks, sizeof *rank);
		struct hd_auto_plan judged = { .rank = rank, .nranks = plan->nranks };
		if (!rank)
			return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u ranks", plan->nranks);
		memcpy(rank, plan->rank, plan->nranks * sizeof *rank);
		err = shard_as(s, c);
		err = err ? err : hd_auto_tighten(&s->space, c, &judged);
		if (err)
			return err;
		err = try_out(s, c, HD_AUTO_TO_PROVE, plan);
	}
	return err;
}

static enum hd_err make_room(struct hd_auto_search *s)
{
	uint32_t cap = s->cap ? 2 * s->cap : 128;
	struct hd_auto_judged *list;

	if (s->n < s->cap)
		return HD_OK;
	if (!(list = hd_arena_take(s->space.work, cap, sizeof *list)))
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u plans", cap);
	if (s->n)
		memcpy(list, s->list, s->n * sizeof *list);
	s->list = list;
	s->cap = cap;
	return HD_OK;
}

/* At its place in the order; *at says which. */
static enum hd_err put(struct hd_auto_search *s, const struct hd_auto_plan *plan,
	const struct hd_auto_cand *c, uint32_t *at)
{
	enum hd_err err = make_room(s);

	if (err)
		return err;
	for (*at = s->n; *at > 0 && is_better(plan, &s->list[*at - 1].plan); --*at)
		;
	memmove(&s->list[*at + 1], &s->list[*at], (s->n++ - *at) * sizeof *s->list);
	s->list[*at] = (struct hd_auto_judged){ *plan, c };
	s->best_made_ps = s->list[0].plan.makespan_ps;
	return HD_OK;
}

static void take_out(struct hd_auto_search *s, uint32_t at) { memmove(&s->list[at], &s->list[at + 1],
	(--s->n - at) * sizeof *s->list); }

/* Simulates one, and puts it in order: *at; UINT32_MAX: it does not work, or is only to compare with. */
static enum hd_err judge(struct hd_auto_search *s, const struct hd_auto_cand *given, uint32_t *at,
	int64_t *took)
{
	struct hd_auto_cand *c = hd_arena_take(s->space.work, 1, sizeof *c);
	struct hd_auto_plan plan;

	*took = HD_AUTO_UNFIT;
	*at = UINT32_MAX;
	if (given->estimate_ps < 0)
		return HD_OK;
	if (!c)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for a plan");
	*c = *given;
	uint64_t nlate = s->out.nlate;
	enum hd_err err = try_to_fit(s, c, &plan);
	bool late = s->out.nlate > nlate;
	s->out.nunfit += err == HD_E_NOTFOUND && !late && !s->second;
	s->unfit |= err == HD_E_NOTFOUND && !late;
	if (late)
		*took = HD_AUTO_TOO_LONG;
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	*took = plan.makespan_ps;
	if (c->reference && !hd_auto_may_be_chosen(s->space.ask, &c->shape))
		return HD_OK;
	return put(s, &plan, c, at);
}

/* ---- references */

static void compare_with(struct hd_auto_search *s, const struct hd_auto_cand *c, int64_t took)
{
	bool known = s->out.data_ps >= 0;

	if (took < 0 ? known || c != &s->data[0] : known && took >= s->out.data_ps)
		return;
	s->out.data_ps = took;
	s->out.data_d = c->shape.d;
}

static int by_estimate(const void *a, const void *b)
{
	const struct hd_auto_cand *x = *(const struct hd_auto_cand *const *)a,
		*y = *(const struct hd_auto_cand *const *)b;

	return x->estimate_ps != y->estimate_ps ? (x->estimate_ps > y->estimate_ps) -
		(x->estimate_ps < y->estimate_ps) :
		(x->order > y->order) - (x->order < y->order);
}

/* The widest, and of the others the best by their estimates while one may be better, and the width that is
 * asked for, whatever it takes. */
static enum hd_err judge_copies(struct hd_auto_search *s)
{
	const struct hd_auto_cand **list = hd_arena_take(s->space.work, (size_t)s->ndata + 1, sizeof *list);
	uint32_t n = 0, at;
	int64_t took;

	if (!list)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u copies", s->ndata);
	enum hd_err err = judge(s, &s->data[0], &at, &took);
	compare_with(s, &s->data[0], took);
	for (uint32_t i = 1; i < s->ndata; i++)
		if (s->data[i].estimate_ps >= 0)
			list[n++] = &s->data[i];
	qsort(list, n, sizeof *list, by_estimate);
	for (uint32_t i = 0; i < n && !err; i++) {
		const bool asked = s->space.ask->d == list[i]->shape.d;
		bool above = !asked && i >= WIDTHS;
		if (!asked && !above && s->out.data_ps >= 0)
			err = surely_above(s, list[i], s->out.data_ps, &above);
		if (err || above)
			continue;
		err = judge(s, list[i], &at, &took);
		compare_with(s, list[i], took);
	}
	return err;
}

enum hd_err hd_auto_judge_references(struct hd_auto_search *s)
{
	uint32_t at;
	enum hd_err err = judge(s, &s->one, &at, &s->out.one_ps);

	s->out.data_ps = HD_AUTO_UNFIT;
	if (!err && s->ndata && !hd_auto_same_shape(&s->one, &s->data[0]))
		return judge_copies(s);
	s->out.data_ps = hd_auto_of_each(s->space.ask->update) ? HD_AUTO_NO_SUCH : s->out.one_ps;
	s->out.data_d = 1;
	return err;
}

/* ---- the first round */

enum hd_err hd_auto_judge_kept(struct hd_auto_search *s)
{
	uint64_t nins = 0;
	uint32_t at;
	int64_t took;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < s->nkept && !err; i++) {
		nins += cost_of(s, &s->kept[i]);
		if (i < HD_AUTO_SURE || nins <= HD_AUTO_ALL_INS)
			err = judge(s, &s->kept[i], &at, &took);
	}
	return err;
}

/* ---- the estimate is not the simulation: boundaries of the best plans are moved while that helps */

static uint32_t end_of(const struct hd_auto_search *s, const struct hd_steady *a, uint32_t stage)
{
	return stage + 1 < a->nstages ? a->stage[stage + 1].first : s->space.sums->cuts->n;
}

/* Stage `stage` begins `by` cuts later (or earlier); false: that is no partition. */
static bool move(const struct hd_auto_search *s, struct hd_steady *a, uint32_t stage, int64_t by)
{
	int64_t to = (int64_t)a->stage[stage].first + by;
	uint32_t before = a->stage[stage - 1].first, end = end_of(s, a, stage);

	if (to <= before || to >= end || !hd_cut_sums_is_stage(s->space.sums, before, (uint32_t)to) ||
		!hd_cut_sums_is_stage(s->space.sums, (uint32_t)to, end))
		return false;
	a->stage[stage].first = (uint32_t)to;
	a->stage[stage - 1].last = (uint32_t)to - 1;
	return true;
}

/* *ended: no move of a boundary makes it better; false: `left` did not suffice. */
static enum hd_err polish(struct hd_auto_search *s, struct hd_auto_judged *j, uint64_t *left, bool *ended)
{
	static const int64_t steps[] = { 4, -4, 2, -2, 1, -1 };
	struct hd_auto_cand *c = hd_arena_take(s->space.work, 1, sizeof *c);
	struct hd_steady_stage *own = hd_arena_take(s->space.work, j->cand->stages.nstages, sizeof *own);
	uint64_t nins = cost_of(s, j->cand);
	bool again = true;

	if (!c || !own)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u stages", j->cand->stages.nstages);
	*c = *j->cand;
	memcpy(own, c->stages.stage, c->stages.nstages * sizeof *own);
	c->stages.stage = own;
	while (again) {
		again = false;
		for (uint32_t stage = 1; stage < c->stages.nstages; stage++)
			for (size_t k = 0; k < sizeof steps / sizeof steps[0] && *left >= nins; k++) {
				struct hd_auto_plan plan = { 0 };
				if (!move(s, &c->stages, stage, steps[k]))
					continue;
				bool above;
				enum hd_err err = surely_above(s, c, j->plan.makespan_ps, &above);
				if (!err && !above) {
					err = try_out(s, c, HD_AUTO_PROVED, &plan);
					*left -= nins;
				} else if (!err)
					err = HD_E_NOTFOUND;
				if (err && err != HD_E_NOTFOUND)
					return err;
				if (!err && is_better(&plan, &j->plan)) {
					j->plan = plan;
					again = true;
				} else if (!move(s, &c->stages, stage, -steps[k]))
					return hd_fail(s->space.diag, HD_E_BUG,
						"a boundary that was moved cannot be moved back");
			}
	}
	*ended = c->polished = *left >= nins;
	j->cand = c;
	return HD_OK;
}

/* What was made of a candidate as it was offered; false: nothing, or it did not work. */
static bool find(const struct hd_auto_search *s, const struct hd_auto_cand *c, uint32_t *at)
{
	for (*at = 0; *at < s->n; ++*at) {
		const struct hd_auto_cand *x = s->list[*at].cand;
		if (x->variant == c->variant && x->paper == c->paper &&
			(c->row ? hd_auto_same_shape(x, c) : !x->row))
			return true;
	}
	return false;
}

/* The plan at `at` with its boundaries moved, at its new place. */
static enum hd_err polish_at(struct hd_auto_search *s, uint32_t at, uint64_t *left, bool *ended)
{
	struct hd_auto_judged j = s->list[at];
	enum hd_err err = polish(s, &j, left, ended);

	if (err)
		return err;
	take_out(s, at);
	return put(s, &j.plan, j.cand, &at);
}

enum hd_err hd_auto_polish_best(struct hd_auto_search *s)
{
	uint64_t left = HD_AUTO_ALL_INS;
	struct hd_auto_cand best[POLISHED];
	uint32_t n = s->n < POLISHED ? s->n : POLISHED, at;
	enum hd_err err = HD_OK;
	bool ended;                               /* or else the second round goes on with it */

	for (uint32_t i = 0; i < n; i++)
		best[i] = *s->list[i].cand;
	for (uint32_t i = 0; i < n && !err; i++)
		if (best[i].stages.nstages > 1 && find(s, &best[i], &at))
			err = polish_at(s, at, &left, &ended);
	return err;
}

/* ---- the second round */

void hd_auto_leave(struct hd_auto_search *s, const struct hd_auto_cand *c, bool begun)
{
	if (s->out.nleft < HD_AUTO_LEFT)
		s->out.left[s->out.nleft] = (struct hd_auto_left){ c->shape, begun };
	s->out.nleft++;
}

/* Equal devices, however the stages are cut: all its work at the speed of all of them. */
static double bound_ps(const struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	struct hd_stage_cost all = hd_cut_sums_range(s->space.sums, 0, s->space.sums->cuts->n);
	double most = 0;

	if (s->space.ask->update != HD_UPDATE_FLUSH || !c->row || c->shape.t > 1)
		return 0;
	for (uint32_t q = 0; q < c->shape.d; q++) {
		double speed = 0;
		for (uint32_t r = 0; r < c->shape.p; r++)
			speed += hd_cluster_kind_of(s->space.cluster, hd_auto_device(c, q, r))->speed;
		most = fmax(most, (double)(all.f + all.i + all.w) * c->share[q] / speed);
	}
	return most * (1 - 1e-6);
}

enum hd_err hd_auto_sweep(struct hd_auto_search *s)
{
	uint64_t left = HD_AUTO_SWEEP_INS;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < s->nkept && !err; i++) {
		const struct hd_auto_cand *c = &s->kept[i];
		uint64_t nins = cost_of(s, c);
		uint32_t at;
		int64_t took;
		bool may = bound_ps(s, c) <= (double)s->best_made_ps;
		hd_arena_reset(s->space.scratch);
		if (may)
			err = hd_auto_may_take(&s->space, c, s->best_made_ps, s->space.scratch, &may);
		if (err || !may)
			continue;
		if (nins > left) {
			hd_auto_leave(s, c, false);
			continue;
		}
		if (!find(s, c, &at)) {
			left -= nins;
			err = judge(s, c, &at, &took);
		}
		bool ended = true;
		if (!err && at != UINT32_MAX && !s->list[at].cand->polished &&
			s->list[at].cand->stages.nstages > 1)
			err = polish_at(s, at, &left, &ended);
		if (!err && !ended)
			hd_auto_leave(s, c, true);
	}
	return err;
}
