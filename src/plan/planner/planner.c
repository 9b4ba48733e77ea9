#include "plan/planner.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/generate.h"
#include "plan/partition.h"
#include "plan/planner/build.h"
#include "plan/planner/refuse.h"

/* What all simulations together may take: instructions, and RANK_INS for a rank's sums and updates. The first SURE are simulated
 * however long they are. */
enum { ALL_INS = 6000000, RANK_INS = 64, SURE = 4, POLISHED = 5 };
/* How often a shape that does not fit as it was cut is cut again; fewer devices that stages with copies are tried on. */
enum { RETRIES = 8, FEWER = 16 };
/* Where PipeDream's recurrence is a source of candidates. */
enum { PAPER_MACHINES = 48, PAPER_CUTS = 256 };

struct search {
	struct hd_auto_space space;
	struct hd_auto_cand kept[HD_AUTO_KEEP + 2]; uint32_t nkept;      /* by estimate; + 2: references */
	struct hd_auto_cand one, data;
	double best_ps;                           /* least estimate so far */
	uint32_t order;
	bool alike;                               /* all devices */
	bool again;                               /* the second time: all stages compute again */
	struct hd_auto_need least;                /* of what was simulated and did not fit */
	double *speeds;                           /* [ndevices + 1] sums of the first */
	struct hd_auto out;
};

/* ---- what is kept */

static bool before(const struct hd_auto_cand *a, const struct hd_auto_cand *b)
{
	return a->estimate_ps != b->estimate_ps ? a->estimate_ps < b->estimate_ps : a->order < b->order;
}

static void keep(struct search *s, const struct hd_auto_cand *c)
{
	uint32_t at = s->nkept;

	s->out.nestimated++;
	s->best_ps = c->estimate_ps < s->best_ps ? c->estimate_ps : s->best_ps;
	while (at > 0 && before(c, &s->kept[at - 1]))
		at--;
	if (at == HD_AUTO_KEEP)
		return;
	s->nkept += s->nkept < HD_AUTO_KEEP;
	memmove(&s->kept[at + 1], &s->kept[at], (s->nkept - 1 - at) * sizeof *s->kept);
	s->kept[at] = *c;
}

/* ---- the enumeration */

static bool same_shape(const struct hd_auto_cand *a, const struct hd_auto_cand *b)
{
	return a->row == b->row && a->base == b->base && a->shape.t == b->shape.t && a->shape.p == b->shape.p && a->shape.d == b->shape.d &&
		a->shape.v == b->shape.v && (a->shape.d == 1 || a->shape.p == 1 || a->shape.place == b->shape.place);
}

static enum hd_err offer(struct search *s, struct hd_auto_cand c)
{
	bool unfit;

	c.order = s->order++;
	s->out.nshapes++;
	if (3 * (uint64_t)c.shape.p * c.shape.v * s->space.ask->vns > HD_MAX_INS)
		return HD_OK;
	c.again = s->again;
	if (!s->again && (same_shape(&c, &s->one) || same_shape(&c, &s->data)))
		return HD_OK;
	enum hd_err err = hd_auto_estimate(&s->space, &c, &unfit);
	s->out.nunfit += unfit;
	if (!err)
		keep(s, &c);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

/* What no order of work can beat, from the virtual nodes and the speeds alone. */
static double bound(const struct search *s, uint32_t t, uint32_t p, uint32_t d)
{
	const struct hd_steady_table *table = &s->space.sharded;
	struct hd_stage_cost all = table->range[hd_steady_at(0, table->n - 1)];
	double work = (double)(all.f + all.i + all.w) * t, vns = s->space.ask->vns, used = s->speeds[t * p * d];

	if (s->alike)
		return ceil(vns / d) * work / (used / d);
	return vns * work / used;
}

static enum hd_err offer_all(struct search *s, uint32_t t, uint32_t p, uint32_t d)
{
	const struct hd_auto_ask *ask = s->space.ask;
	enum hd_err err = HD_OK;

	for (uint32_t v = 1; v <= HD_AUTO_CHUNKS; v++)
		for (const struct hd_auto_row *row = hd_auto_rows; row->schedule; row++)
			for (int place = 0; place < (p > 1 && d > 1 ? HD_AUTO_NPLACES : 1); place++)
				if (hd_auto_wanted(ask->v, v) && hd_auto_row_may(row, ask, p, v) && p * v <= s->space.whole.n && !err)
					err = offer(s, (struct hd_auto_cand){ .shape = { row->schedule, t, p, d, v, (enum hd_auto_place)place },
						.row = row });
	return err;
}

/* More pipelines than the update knows, or the busiest has no less to do. */
static bool no_use(const struct search *s, uint32_t d)
{
	uint32_t vns = s->space.ask->vns;

	if (d > 1 && hd_auto_of_each(s->space.ask->update))
		return true;
	return s->alike && d > 1 && !s->space.ask->d && (vns + d - 1) / d == (vns + d - 2) / (d - 1);
}

static enum hd_err enumerate(struct search *s)
{
	const struct hd_auto_ask *ask = s->space.ask;
	uint32_t n = s->space.cluster->ndevices, shards = ask->tensor_shards ? ask->tensor_shards : 1, inner = s->space.cluster->level[0].components;
	enum hd_err err = HD_OK;

	for (uint32_t t = 1; t <= shards && t <= inner && !err; t++) {
		if (shards % t || inner % t || !hd_auto_wanted(ask->t, t))
			continue;
		err = hd_auto_shard(&s->space, t);
		if (err == HD_E_NOTFOUND) {
			s->out.nlate++;
			err = HD_OK;
			continue;
		}
		for (uint32_t p = 1; p <= n / t && p <= HD_AUTO_RANKS && p <= s->space.whole.n && !err; p++)
			for (uint32_t d = 1; d <= n / t / p && d <= ask->vns && !err; d++) {
				if (!hd_auto_wanted(ask->p, p) || !hd_auto_wanted(ask->d, d) || no_use(s, d))
					continue;
				if (bound(s, t, p, d) > s->best_ps * HD_AUTO_SLACK)
					s->out.nskipped++;
				else
					err = offer_all(s, t, p, d);
			}
	}
	return err;
}

/* ---- stages with copies in different numbers */

/* The generator takes no more. */
static bool too_long(const struct search *s, uint32_t ranks) { return 2 * (uint64_t)ranks * s->space.ask->vns > HD_MAX_INS; }

static struct hd_auto_cand replicated(const struct search *s)
{
	return (struct hd_auto_cand){ .shape = { "1f1b-rr", 1, 0, 0, 1, HD_AUTO_WIDE }, .order = s->order, .again = s->again };
}

static enum hd_err offer_ours(struct search *s)
{
	struct hd_auto_cand c = replicated(s);
	enum hd_err err = hd_auto_replicate(&s->space, &c);

	s->out.nshapes++;
	s->out.nunfit += err == HD_E_NOTFOUND;
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	s->order++;
	keep(s, &c);
	return HD_OK;
}

static double least_speed(const struct hd_cluster *cluster)
{
	double least = INFINITY;

	for (uint32_t x = 0; x < cluster->ndevices; x++)
		least = fmin(least, hd_cluster_kind_of(cluster, x)->speed);
	return least;
}

/* PipeDream's recurrence over the first n devices as one level, its slowest link: the steady state alone. It knows devices of speed 1:
 * for others the link is slower by as much, and the time that comes out is divided. */
static enum hd_err offer_paper(struct search *s, uint32_t n)
{
	const struct hd_cluster *cluster = s->space.cluster;
	const struct hd_cuts *cuts = s->space.sums->cuts;
	struct hd_part_how how = { .variant = HD_PART_PAPER, .level = { { n, INFINITY } }, .nlevels = 1 };
	struct hd_part part;
	struct hd_diag why = { "" };
	double speed = least_speed(cluster);

	if (cluster->ndevices > PAPER_MACHINES || cuts->n > PAPER_CUTS)
		return HD_OK;
	for (uint32_t l = 0; l < cluster->nlevels; l++)
		how.level[0].bytes_per_s = fmin(how.level[0].bytes_per_s, cluster->level[l].bytes_per_s / speed);
	s->out.nshapes++;
	if (hd_part_solve(&part, cuts, &how, s->space.work, &why))
		return HD_OK;
	struct hd_steady stages = { .nstages = part.top.nstages, .nsites = n,
		.stage = hd_arena_take(s->space.work, part.top.nstages, sizeof *stages.stage) };
	if (!stages.stage)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u stages", stages.nstages);
	for (uint32_t i = 0; i < stages.nstages; i++)
		stages.stage[i] = (struct hd_steady_stage){ part.top.stage[i].first, part.top.stage[i].last, part.top.stage[i].replicas,
			s->again || s->space.ask->recompute == HD_AUTO_ALWAYS, 0 };
	stages.steady_ps = part.time_s * 1e12 / speed * s->space.ask->vns;
	struct hd_auto_cand c = replicated(s);
	c.shape.p = stages.nstages;
	c.stages = stages;
	c.estimate_ps = hd_steady_ps(&stages);
	s->order++;
	keep(s, &c);
	return HD_OK;
}

static enum hd_err enumerate_replicas(struct search *s)
{
	const struct hd_auto_ask *ask = s->space.ask;

	if (ask->update != HD_UPDATE_FLUSH || ask->p || ask->d || !hd_auto_wanted(ask->t, 1) || !hd_auto_wanted(ask->v, 1) || s->space.cluster->ndevices == 1)
		return HD_OK;
	if (too_long(s, s->space.cluster->ndevices) || (ask->schedule && strcmp(ask->schedule, "1f1b-rr") != 0))
		return HD_OK;
	enum hd_err err = offer_ours(s);
	for (uint32_t n = s->space.cluster->ndevices, most = n; n > 1 && n + FEWER > most && !err; n--)
		err = offer_paper(s, n);
	return err;
}

/* ---- one device, and all of them alike */

static const struct hd_auto_row *row_of(enum hd_update update)
{
	const struct hd_auto_row *row = hd_auto_rows;

	while (row->schedule && row->update != update)
		row++;
	return row;
}

static bool may_be_chosen(const struct hd_auto_ask *ask, const struct hd_auto_shape *shape)
{
	return hd_auto_wanted(ask->t, 1) && hd_auto_wanted(ask->p, 1) && hd_auto_wanted(ask->d, shape->d) && hd_auto_wanted(ask->v, 1) &&
		(!ask->schedule || !strcmp(ask->schedule, shape->schedule));
}

static enum hd_err refer(struct search *s, struct hd_auto_cand *c, uint32_t d, uint32_t base)
{
	bool unfit;

	*c = (struct hd_auto_cand){ .row = row_of(s->space.ask->update), .reference = true, .base = base, .order = s->order++ };
	c->shape = (struct hd_auto_shape){ c->row->schedule, 1, 1, d, 1, HD_AUTO_DEEP };
	s->out.nshapes++;
	enum hd_err err = hd_auto_estimate(&s->space, c, &unfit);
	s->out.nunfit += unfit;
	if (err)
		c->estimate_ps = -1;
	else if (may_be_chosen(s->space.ask, &c->shape))
		s->best_ps = fmin(s->best_ps, c->estimate_ps);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

static enum hd_err refer_both(struct search *s)
{
	const struct hd_cluster *cluster = s->space.cluster;
	uint32_t fastest = 0, d = cluster->ndevices < s->space.ask->vns ? cluster->ndevices : s->space.ask->vns;

	d = hd_auto_of_each(s->space.ask->update) ? 1 : d;
	for (uint32_t x = 1; x < cluster->ndevices; x++)
		if (hd_cluster_kind_of(cluster, x)->speed > hd_cluster_kind_of(cluster, fastest)->speed)
			fastest = x;
	enum hd_err err = refer(s, &s->one, 1, fastest);
	return err ? err : refer(s, &s->data, d, d > 1 ? 0 : fastest);
}

/* ---- judgement */

static uint32_t devices_of(const struct hd_auto_plan *p) { return p->nranks * p->shape.t; }

static bool better(const struct hd_auto_plan *a, const struct hd_auto_plan *b)
{
	if (a->makespan_ps != b->makespan_ps)
		return a->makespan_ps < b->makespan_ps;
	if (devices_of(a) != devices_of(b))
		return devices_of(a) < devices_of(b);
	return a->peak != b->peak ? a->peak < b->peak : a->order < b->order;
}

static uint64_t cost_of(const struct search *s, const struct hd_auto_cand *c)
{
	uint32_t ranks = c->row ? c->shape.p * c->shape.d : s->space.cluster->ndevices;

	return hd_auto_nins(c, s->space.ask->vns) + (uint64_t)RANK_INS * ranks;
}

struct judged { struct hd_auto_plan plan; const struct hd_auto_cand *cand; };

/* What the plan lacks most, for a refusal. */
static void remember(struct search *s, const struct hd_auto_plan *plan)
{
	struct hd_auto_need worst = { 0 };

	for (uint32_t r = 0; r < plan->nranks; r++) {
		const struct hd_auto_rank *rank = &plan->rank[r];
		if (rank->memory && rank->peak > rank->memory && rank->peak - rank->memory > worst.bytes - worst.has)
			worst = (struct hd_auto_need){ rank->peak, rank->memory, plan->shape };
	}
	if (worst.bytes && worst.bytes < s->least.bytes)
		s->least = worst;
}

/* Simulated in scratch memory. */
static enum hd_err try_out(struct search *s, const struct hd_auto_cand *c, enum hd_auto_proof how, struct hd_auto_plan *plan)
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
	assert(err || hd_auto_busiest_ps(&s->space, c) <= (double)plan->makespan_ps);
	return err;
}

/* The sharded ranges at hand are those of the candidate's t. */
static enum hd_err shard_as(struct search *s, const struct hd_auto_cand *c)
{
	return s->space.t == c->shape.t ? HD_OK : hd_auto_shard(&s->space, c->shape.t);
}

/* The estimate does not know all that is kept: what does not fit is cut again. */
static enum hd_err try_to_fit(struct search *s, struct hd_auto_cand *c, struct hd_auto_plan *plan)
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

/* Simulates one, and puts it in order. */
static enum hd_err judge(struct search *s, const struct hd_auto_cand *given, struct judged *list, uint32_t *n, int64_t *took)
{
	struct hd_auto_cand *c = hd_arena_take(s->space.work, 1, sizeof *c);
	struct hd_auto_plan plan;

	*took = HD_AUTO_UNFIT;
	if (given->estimate_ps < 0)
		return HD_OK;
	if (!c)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for a plan");
	*c = *given;
	uint64_t nlate = s->out.nlate;
	enum hd_err err = try_to_fit(s, c, &plan);
	bool late = s->out.nlate > nlate;
	s->out.nunfit += err == HD_E_NOTFOUND && !late;
	if (late)
		*took = HD_AUTO_TOO_LONG;
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	*took = plan.makespan_ps;
	if (c->reference && !may_be_chosen(s->space.ask, &c->shape))
		return HD_OK;
	uint32_t at = *n;
	while (at > 0 && better(&plan, &list[at - 1].plan))
		at--;
	memmove(&list[at + 1], &list[at], (*n - at) * sizeof *list);
	list[at] = (struct judged){ plan, c };
	++*n;
	return HD_OK;
}

static enum hd_err judge_references(struct search *s, struct judged *list, uint32_t *n)
{
	enum hd_err err = judge(s, &s->one, list, n, &s->out.one_ps);

	if (!err && !same_shape(&s->one, &s->data))
		return judge(s, &s->data, list, n, &s->out.data_ps);
	s->out.data_ps = hd_auto_of_each(s->space.ask->update) ? HD_AUTO_NO_SUCH : s->out.one_ps;
	return err;
}

static enum hd_err judge_all(struct search *s, struct judged *list, uint32_t *n)
{
	uint64_t nins = 0;
	int64_t took;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < s->nkept && !err; i++) {
		nins += cost_of(s, &s->kept[i]);
		if (i < SURE || nins <= ALL_INS)
			err = judge(s, &s->kept[i], list, n, &took);
	}
	return err;
}

/* ---- the estimate is not the simulation: boundaries of the best plans are moved while that helps */

static uint32_t end_of(const struct search *s, const struct hd_steady *a, uint32_t stage)
{
	return stage + 1 < a->nstages ? a->stage[stage + 1].first : s->space.sums->cuts->n;
}

/* Stage `stage` begins `by` cuts later (or earlier); false: that is no partition. */
static bool move(const struct search *s, struct hd_steady *a, uint32_t stage, int64_t by)
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

static enum hd_err polish(struct search *s, struct judged *j, uint64_t *left)
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
				enum hd_err err = HD_E_NOTFOUND;
				if (hd_auto_busiest_ps(&s->space, c) <= (double)j->plan.makespan_ps) {
					err = try_out(s, c, HD_AUTO_PROVED, &plan);
					*left -= nins;
				}
				if (err && err != HD_E_NOTFOUND)
					return err;
				if (!err && better(&plan, &j->plan)) {
					j->plan = plan;
					again = true;
				} else if (!move(s, &c->stages, stage, -steps[k]))
					return hd_fail(s->space.diag, HD_E_BUG, "a boundary that was moved cannot be moved back");
			}
	}
	j->cand = c;
	return HD_OK;
}

static enum hd_err polish_best(struct search *s, struct judged *list, uint32_t n)
{
	uint64_t left = ALL_INS;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && i < POLISHED && !err; i++)
		if (list[i].cand->stages.nstages > 1)
			err = polish(s, &list[i], &left);
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t at = i; at > 0 && better(&list[at].plan, &list[at - 1].plan); at--) {
			struct judged keep = list[at];
			list[at] = list[at - 1];
			list[at - 1] = keep;
		}
	return err;
}

/* The plans in order; the first three whole, in the caller's arena. */
static enum hd_err hand_out(struct search *s, const struct judged *list, uint32_t n, struct hd_auto *out, struct hd_arena *arena)
{
	enum hd_err err = HD_OK;
	bool late;

	s->out.nplans = n;
	s->out.plan = hd_arena_take(arena, n, sizeof *s->out.plan);
	if (!s->out.plan)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u plans", n);
	for (uint32_t i = 0; i < n && !err; i++) {
		struct hd_auto_plan *to = &s->out.plan[i];
		hd_arena_reset(s->space.scratch);
		err = hd_auto_build(to, &s->space, list[i].cand, i < 3 ? arena : s->space.scratch, s->space.diag);
		if (!err && i < 3)
			err = hd_auto_judge(to, &s->space, HD_AUTO_TO_PROVE, &late, s->space.scratch, s->space.diag);
		if (!err && i >= 3) {
			*to = (struct hd_auto_plan){ .shape = list[i].plan.shape, .order = list[i].plan.order, .nstages = list[i].plan.nstages,
				.nranks = list[i].plan.nranks, .estimate_ps = list[i].plan.estimate_ps, .makespan_ps = list[i].plan.makespan_ps,
				.peak = list[i].plan.peak, .low_ps = list[i].plan.low_ps, .high_ps = list[i].plan.high_ps };
		}
	}
	if (!err)
		*out = s->out;
	return err;
}

/* ---- the whole */

static enum hd_err check_ask(const struct hd_auto_ask *ask, const struct hd_profile *profile, const struct hd_cluster *cluster, struct hd_diag *diag)
{
	const struct hd_schedule_kind *kind;
	uint32_t shards = ask->tensor_shards ? ask->tensor_shards : 1;

	if (shards > 1 && (profile->tensor_shards <= 1 || profile->tensor_shards % shards))
		return hd_fail(diag, HD_E_INVAL, "%u tensor shards: the profile is of a job with %u, so its nodes are not divided that way; profile the job "
			"with tensor_shards = %u, or leave the shards out", shards, profile->tensor_shards ? profile->tensor_shards : 1, shards);

	if (ask->vns == 0 || ask->vns > HD_MAX_VNS)
		return hd_fail(diag, HD_E_INVAL, "%u virtual nodes a step: 1 to %u can be planned for", ask->vns, (unsigned)HD_MAX_VNS);
	if (cluster->ndevices > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_INVAL, "the cluster has %u devices; plans are made for at most %d", cluster->ndevices, HD_MAX_RANKS);
	if (hd_auto_of_each(ask->update) && ask->d > 1)
		return hd_fail(diag, HD_E_INVAL, "d = %u: every virtual node of update %s updates the weights by itself, so there is one pipeline", ask->d,
			hd_update_names[ask->update]);
	if (ask->t && (shards % ask->t || cluster->level[0].components % ask->t))
		return hd_fail(diag, HD_E_INVAL, "t = %u: tensor groups divide the job's %u shards and the %u devices of a %s", ask->t, shards,
			cluster->level[0].components, cluster->level[0].name);
	if ((uint64_t)(ask->t ? ask->t : 1) * (ask->p ? ask->p : 1) * (ask->d ? ask->d : 1) > cluster->ndevices)
		return hd_fail(diag, HD_E_INVAL, "t = %u, p = %u, d = %u are more than the %u devices of the cluster", ask->t ? ask->t : 1,
			ask->p ? ask->p : 1,
			ask->d ? ask->d : 1, cluster->ndevices);
	if (ask->p > HD_AUTO_RANKS || ask->v > HD_AUTO_CHUNKS)
		return hd_fail(diag, HD_E_INVAL, "the planner makes pipelines of at most %d ranks and %d chunks a rank", HD_AUTO_RANKS, HD_AUTO_CHUNKS);
	return ask->schedule ? hd_schedule_kind_find(&kind, ask->schedule, diag) : HD_OK;
}

static enum hd_err prepare(struct search *s, struct hd_diag *diag)
{
	const struct hd_cluster *c = s->space.cluster;
	enum hd_err err = hd_steady_table_make(&s->space.whole, s->space.sums, HD_AUTO_CUTS, s->space.work, diag);

	s->space.memo = hd_arena_take(s->space.work, HD_AUTO_MEMO, sizeof *s->space.memo);
	s->speeds = hd_arena_take(s->space.work, (size_t)c->ndevices + 1, sizeof *s->speeds);
	if (!err && (!s->space.memo || !s->speeds))
		err = hd_fail(diag, HD_E_NOMEM, "no memory to plan for %u devices", c->ndevices);
	s->alike = true;
	for (uint32_t x = 0; x < c->ndevices && !err; x++) {
		s->speeds[x + 1] = s->speeds[x] + hd_cluster_kind_of(c, x)->speed;
		s->alike &= hd_cluster_kind_of(c, x)->speed == hd_cluster_kind_of(c, 0)->speed;
	}
	return err ? err : hd_auto_shard(&s->space, 1);
}

/* Once through all shapes. */
static enum hd_err look(struct search *s, struct judged *list, uint32_t *n)
{
	enum hd_err err = HD_OK;

	s->nkept = 0;
	s->best_ps = s->again ? INFINITY : s->best_ps;      /* the first time the references count */
	err = hd_auto_shard(&s->space, 1);
	err = err ? err : enumerate(s);
	err = err ? err : hd_auto_shard(&s->space, 1);
	err = err ? err : enumerate_replicas(s);
	return err ? err : judge_all(s, list, n);
}

static enum hd_err run(struct search *s, struct hd_auto *out, struct hd_arena *arena, struct hd_diag *diag)
{
	struct judged *list;
	uint32_t n = 0;
	enum hd_err err = prepare(s, diag);

	if (err)
		return err;
	list = hd_arena_take(s->space.work, 2 * HD_AUTO_KEEP + 3, sizeof *list);
	if (!list)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %d plans", 2 * HD_AUTO_KEEP);
	err = refer_both(s);
	err = err ? err : judge_references(s, list, &n);
	err = err ? err : look(s, list, &n);
	if (!err && s->out.nunfit && s->space.ask->recompute == HD_AUTO_IF_NEEDED) {
		s->again = true;
		err = look(s, list, &n);
	}
	if (!err && !n)
		err = hd_auto_refuse(&s->space, &s->least, s->out.nlate);
	err = err ? err : polish_best(s, list, n);
	return err ? err : hand_out(s, list, n, out, arena);
}

enum hd_err hd_plan_auto(struct hd_auto *out, const struct hd_cut_sums *sums, const struct hd_cluster *cluster, const struct hd_auto_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_arena work, scratch;
	struct search *s;
	enum hd_err err = check_ask(ask, sums->profile, cluster, diag);

	if (err)
		return err;
	hd_arena_init(&work, 0);
	hd_arena_init(&scratch, 0);
	s = hd_arena_take(&work, 1, sizeof *s);
	if (!s)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to plan for %u devices", cluster->ndevices);
	else {
		*s = (struct search){ .space = { .cluster = cluster, .ask = ask, .sums = sums, .work = &work, .scratch = &scratch, .diag = diag },
			.best_ps = INFINITY, .least = { .bytes = INT64_MAX } };
		err = run(s, out, arena, diag);
	}
	hd_arena_finish(&scratch);
	hd_arena_finish(&work);
	return err;
}
