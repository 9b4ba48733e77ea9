#include "planner/ways.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/redundancy.h"
#include "planner/planner.h"

const char *const hd_way_fate_texts[HD_NWAY_FATES] = {
#define X(id, text) [HD_WAY_##id] = text,
	HD_WAY_FATES(X)
#undef X
};

enum { WAYS_A_SHAPE = HD_NSPOT_STRATEGIES - 1 + HD_WAYS_SPARES };

struct ways_shape { const char *schedule; uint32_t d, p, v, row; };

struct ways_search {
	const struct hd_ways_ask *ask;
	struct hd_arena *arena, *work;
	struct ways_shape *shape;
	struct hd_ways out;
	double best;                              /* of what is allowed */
};

/* ---- shapes */

/* Not data parallelism, which has no stages; copies in different numbers, which make no grid; and what the
 * planner does not search. */
static bool makes_grids(const struct hd_schedule_kind *k)
{
	static const char *const none[] = { "data-parallel", "1f1b-rr", "zb-auto" };

	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (!strcmp(k->name, none[i]))
			return false;
	return k->update == HD_UPDATE_FLUSH;
}

static bool named(const struct hd_schedule_kind *k, const char *name)
{
	return !name || !strcmp(k->name, name) || (k->other && !strcmp(k->other, name));
}

static bool is_open(uint32_t asked, uint32_t is) { return !asked || asked == is; }

/* Counts, and writes where there is room. */
static void add_shapes(struct ways_search *s, uint32_t d, uint32_t p, struct ways_shape *to)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const struct hd_schedule_kind *data = &hd_schedule_kinds[0];

	if (p == 1) {
		if (is_open(ask->stages, 1) && is_open(ask->chunks, 1) && !ask->deep &&
			named(data, ask->schedule)) {
			if (to)
				to[s->out.nshapes] = (struct ways_shape){ data->name, d, 1, 1, 0 };
			s->out.nshapes++;
		}
		return;
	}
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t v = k->vmin; makes_grids(k) && v <= k->vmax && v <= HD_AUTO_CHUNKS; v++) {
			if (!named(k, ask->schedule) || !is_open(ask->stages, p * v) ||
				!is_open(ask->chunks, v) || p * v > ask->sums->cuts->n)
				continue;
			if (to)
				to[s->out.nshapes] = (struct ways_shape){ k->name, d, p, v,
					(uint32_t)(k - hd_schedule_kinds) };
			s->out.nshapes++;
		}
}

static void go_through(struct ways_search *s, struct ways_shape *to)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const uint32_t n = ask->cluster->ndevices,
		deepest = n < HD_AUTO_RANKS ? n : HD_AUTO_RANKS;

	s->out.nshapes = 0;
	for (uint32_t p = 1; p <= deepest && (p == 1 || !ask->meetings); p++)
		for (uint32_t d = 1; d <= n / p && d <= ask->vns; d++)
			if (is_open(ask->replicas, d) && (!ask->meetings || d == n || d == ask->vns))
				add_shapes(s, d, p, to);
}

static int wider_first(const void *x, const void *y)
{
	const struct ways_shape *a = x, *b = y;

	if (a->d * a->p != b->d * b->p)
		return a->d * a->p > b->d * b->p ? -1 : 1;
	if (a->p != b->p)
		return a->p > b->p ? -1 : 1;
	return a->row != b->row ? (a->row < b->row ? -1 : 1) : a->v < b->v ? -1 : a->v > b->v;
}

static enum hd_err list_shapes(struct ways_search *s, struct hd_diag *diag)
{
	go_through(s, NULL);
	s->shape = hd_arena_take(s->arena, (size_t)s->out.nshapes + 1, sizeof *s->shape);
	s->out.way = hd_arena_take(s->arena, (size_t)s->out.nshapes * WAYS_A_SHAPE + 1, sizeof *s->out.way);
	if (!s->shape || !s->out.way)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u shapes of pipelines", s->out.nshapes);
	go_through(s, s->shape);
	qsort(s->shape, s->out.nshapes, sizeof *s->shape, wider_first);
	return HD_OK;
}

/* ---- what one is worth */

static enum hd_err refuse(struct ways_search *s, const struct ways_shape *x, enum hd_spot_strategy strategy,
	const char *why, struct hd_diag *diag)
{
	struct hd_ways *out = &s->out;

	for (uint32_t i = 0; i < out->nrefused; i++)
		if (out->refused[i].strategy == strategy && !strcmp(out->refused[i].why, why)) {
			out->refused[i].times++;
			return HD_OK;
		}
	if (out->nrefused == HD_WAYS_REFUSED) {
		out->nmore++;
		return HD_OK;
	}
	const char *text = hd_arena_text(s->arena, why, strlen(why));
	if (!text)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the reasons of refused plans");
	out->refused[out->nrefused++] = (struct hd_way_refused){ .strategy = strategy, .why = text,
		.schedule = x->schedule, .pipelines = x->d, .ranks = x->p, .chunks = x->v, .times = 1 };
	return HD_OK;
}

/* The most that a grid may be worth: no loss, and no device ever stands still. */
static bool is_hopeless(const struct ways_search *s, const struct ways_shape *x)
{
	const struct hd_cluster *c = s->ask->plan.cluster;
	const struct hd_cut_sums *sums = s->ask->plan.sums;
	const struct hd_stage_cost *all = &sums->upto[sums->cuts->n - 1];
	double speed = 0;

	for (uint32_t k = 0; k < c->nkinds; k++)
		speed = c->kind[k].speed > speed ? c->kind[k].speed : speed;
	const double step_s = (double)(all->f + all->i + all->w) * 1e-12 * s->ask->plan.vns /
		(speed * x->d * x->p);
	const struct hd_spot_market calm = { .usd_h = s->ask->market->usd_h, .ntogether = 1, .together =
		{ 1 },
		.doubled = 1, .checkpoint_s = 0 };
	const struct hd_spot_grid grid = { .pipelines = x->d, .stages = x->p, .batch = s->ask->batch,
		.step_s = step_s, .machines = c->ndevices };

	return step_s > 0 && hd_spot_value(&calm, &grid, HD_SPOT_CHECKPOINT, 0, 0).value < 0.99 * s->best;
}

static void take(struct ways_search *s, const struct ways_shape *x, const struct hd_spot_grid *grid,
	enum hd_spot_strategy strategy, uint32_t spares, double overhead, int64_t peak)
{
	const struct hd_spot_market *m = s->ask->market;
	struct hd_way *w = &s->out.way[s->out.n++];

	*w = (struct hd_way){ .schedule = x->schedule, .pipelines = x->d, .ranks = x->p, .chunks = x->v,
		.peak = peak, .value = hd_spot_value(m, grid, strategy, spares, overhead) };
	w->hours = (double)s->ask->steps * grid->step_s / w->value.useful / 3600;
	w->usd = w->hours * w->value.usd_h;
	w->fate = !s->ask->runs[strategy] ? HD_WAY_NO_RUN : !w->value.allowed ? HD_WAY_PAUSES :
		m->deadline_s > 0 && w->hours * 3600 > m->deadline_s ? HD_WAY_LATE :
		m->budget_usd > 0 && w->usd > m->budget_usd ? HD_WAY_DEAR : HD_WAY_EQUAL;
	w->value.allowed = w->fate == HD_WAY_EQUAL;
	if (w->value.allowed && w->value.value > s->best)
		s->best = w->value.value;
}

struct judged {
	const struct hd_job_plan *plan;
	struct hd_spot_grid grid;
	uint32_t chunks;
	int64_t busiest, peak;
	double back;
};

/* Of a rank's work: the gradients' share. */
static double share_back(const struct hd_stage_costs *costs)
{
	double f = 0, b = 0;

	for (uint32_t k = 0; k < costs->nstages; k++) {
		f += (double)costs->stage[k].f;
		b += (double)(costs->stage[k].i + costs->stage[k].w);
	}
	return f + b > 0 ? b / (f + b) : 0;
}

/* Rule 3. */
static double redo_s(const struct judged *j, enum hd_spot_strategy strategy)
{
	const double half = hd_sim_plan_s(&j->plan->sim, j->busiest) / 2;

	switch (strategy) {
	case HD_SPOT_REROUTE: return half / (j->grid.pipelines > 1 ? j->grid.pipelines - 1 : 1);
	case HD_SPOT_LAZY: return half;
	case HD_SPOT_EAGER: return half * j->back;
	case HD_SPOT_REPLICA: return j->grid.step_s / 2;
	case HD_SPOT_FULL:
	case HD_SPOT_CHECKPOINT:
	case HD_NSPOT_STRATEGIES: break;
	}
	return 0;
}

/* What shadows in this mode take beside the plan's step, as a share of it: both simulated alike. */
static enum hd_err add_mode(struct ways_search *s, const struct judged *j, enum hd_redundancy mode,
	double *overhead, int64_t *peak, struct hd_diag *why)
{
	const struct hd_job_plan *plan = j->plan;
	const struct hd_cluster *cluster = s->ask->plan.cluster;
	const struct hd_sim_setting set = { .costs = &plan->costs, .per_ps = 1, .cluster = cluster,
		.device = plan->device, .transport = HD_TRANSPORT_BUFFERED };
	const struct hd_redundancy_ask ask = { .mode = mode, .setting = &set };
	struct hd_schedule with;
	struct hd_sim_plan after;
	enum hd_err err = j->chunks > 1 ? hd_fail(why, HD_E_INVAL,
		"a rank runs several stages; with shadows it "
		"has one, as in gpipe, 1f1b, zb-h1, zb-h2") :
		hd_redundancy_add(&with, &plan->schedule, &ask, s->work, why);

	err = err ? err : hd_sim_plan(&after, &with, &set, s->work, why);
	*peak = 0;
	for (uint32_t r = 0; !err && r < with.nranks; r++) {
		const int64_t has = hd_cluster_kind_of(cluster, plan->device[r])->memory,
			needs = after.rank[r].peak + after.rank[r].host;
		*peak = needs > *peak ? needs : *peak;
		if (has && needs > has)
			err = hd_fail(why, HD_E_INVAL,
			"does not fit: with its shadow rank %u needs %.1f MiB, "
				"device %u has %.1f MiB", r, (double)needs * 0x1p-20, plan->device[r],
				(double)has * 0x1p-20);
	}
	if (!err)
		*overhead = (double)after.makespan / (double)plan->sim.makespan - 1;
	return err;
}

static enum hd_err judge_plan(struct ways_search *s, const struct ways_shape *x, struct judged *j,
	struct hd_diag *diag)
{
	static const enum hd_redundancy mode_of[HD_NSPOT_STRATEGIES] = { [HD_SPOT_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_SPOT_EAGER] = HD_REDUNDANCY_EAGER, [HD_SPOT_FULL] = HD_REDUNDANCY_FULL };
	enum hd_err err = HD_OK;

	for (int i = 0; i < HD_NSPOT_STRATEGIES && !err; i++) {
		const enum hd_spot_strategy strategy = (enum hd_spot_strategy)i;
		struct hd_diag why = { "" };
		double overhead = 0;
		int64_t peak = j->peak;
		j->grid.redo_s = redo_s(j, strategy);
		if (mode_of[i] && (err = add_mode(s, j, mode_of[i], &overhead, &peak, &why))) {
			if (hd_err_radius(err) > HD_HURT_JOB)
				return hd_fail(diag, err, "%s", why.text);
			err = refuse(s, x, strategy, why.text, diag);
			continue;
		}
		for (uint32_t f = 1; f <= (strategy == HD_SPOT_REPLICA ? HD_WAYS_SPARES : 1); f++)
			if (strategy != HD_SPOT_REPLICA || (x->d + f) * x->p <= j->grid.machines)
				take(s, x, &j->grid, strategy, f, overhead, peak);
	}
	return err;
}

static enum hd_err judge_shape(struct ways_search *s, const struct ways_shape *x,
	const struct hd_job_planner *planner,
	struct hd_diag *diag)
{
	struct hd_job_plan_ask how = s->ask->plan;
	struct hd_job_plan plan;
	struct hd_diag why = { "" };
	struct judged j = { .plan = &plan, .chunks = x->v, .grid = { .pipelines = x->d, .stages = x->p,
		.batch = s->ask->batch,
		.machines = how.cluster->ndevices } };

	/* in lockstep: the planner data decides itself */
	how.stages = how.meetings ? 0 : x->p * x->v;
	how.chunks = how.meetings ? 0 : x->v;
	how.replicas = how.meetings ? 0 : x->d;
	how.tensor = how.meetings ? 0 : 1;
	how.schedule = x->p > 1 ? x->schedule : NULL;
	how.deep = false;
	how.spans = false;
	enum hd_err err = hd_job_plan_make(&plan, planner, &how, s->work, &why);
	/* devices that differ may have got other counts than were asked for */
	if (!err && (plan.schedule.nranks != x->d * x->p || plan.nstages != x->p * x->v))
		err = hd_fail(&why, HD_E_INVAL, "its best plan has other stages or copies");
	if (err)
		return err == HD_E_INVAL ? refuse(s, x, HD_NSPOT_STRATEGIES, why.text, diag) :
			hd_fail(diag, err, "%s", why.text);
	s->out.nplans++;
	j.grid.step_s = hd_job_plan_step_s(&plan);
	j.back = share_back(&plan.costs);
	for (uint32_t r = 0; r < plan.schedule.nranks; r++) {
		j.busiest = plan.sim.rank[r].busy > j.busiest ? plan.sim.rank[r].busy : j.busiest;
		j.peak = plan.sim.rank[r].peak > j.peak ? plan.sim.rank[r].peak : j.peak;
	}
	return judge_plan(s, x, &j, diag);
}

/* ---- all of them */

static int best_first(const void *x, const void *y)
{
	const struct hd_way *a = x, *b = y;

	if (a->value.allowed != b->value.allowed)
		return a->value.allowed ? -1 : 1;
	if (a->value.value < b->value.value || a->value.value > b->value.value)
		return a->value.value > b->value.value ? -1 : 1;
	if (a->value.strategy != b->value.strategy)
		return a->value.strategy < b->value.strategy ? -1 : 1;
	if (a->value.spares != b->value.spares)
		return a->value.spares < b->value.spares ? -1 : 1;
	if (a->ranks != b->ranks || a->pipelines != b->pipelines)
		return a->ranks != b->ranks ? (a->ranks < b->ranks ? -1 : 1) : a->pipelines < b->pipelines ?
		-1 : 1;
	return a->chunks != b->chunks ? (a->chunks < b->chunks ? -1 : 1) : strcmp(a->schedule, b->schedule);
}

/* Which of the factors of a value is worst beside the choice's. */
static enum hd_way_fate why_it_lost(const struct hd_spot_value *c, const struct hd_spot_value *v)
{
	const double step = v->step_s / c->step_s, over = (1 + v->overhead) / (1 + c->overhead),
		losses = (1 + v->losses_h / 3600 * v->stall_s) / (1 + c->losses_h / 3600 * c->stall_s);

	if (v->value >= 0.99 * c->value)
		return HD_WAY_EQUAL;
	return step >= over && step >= losses ? HD_WAY_STEP : over >= losses ? HD_WAY_OVERHEAD :
		HD_WAY_LOSSES;
}

static enum hd_err choose(struct ways_search *s, struct hd_diag *diag)
{
	struct hd_ways *out = &s->out;
	struct hd_spot_value *value = hd_arena_take(s->work, (size_t)out->n + 1, sizeof *value);

	if (!value)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u ways through losses", out->n);
	qsort(out->way, out->n, sizeof *out->way, best_first);
	for (uint32_t i = 0; i < out->n; i++)
		value[i] = out->way[i].value;
	out->chosen = hd_spot_choose(out->n, value);
	for (uint32_t i = 0; i < out->n && out->chosen < out->n; i++)
		if (out->way[i].value.allowed)
			out->way[i].fate = i == out->chosen ? HD_WAY_CHOSEN :
				why_it_lost(&out->way[out->chosen].value, &out->way[i].value);
	return HD_OK;
}

enum hd_err hd_ways_find(struct hd_ways *ways, const struct hd_ways_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_arena work;
	struct ways_search s = { .ask = ask, .arena = arena, .work = &work };
	const struct hd_job_planner *planner = NULL;
	enum hd_err err = hd_job_planner_find(&planner, ask->plan.meetings ? "data" : "auto", diag);

	if (!err && ask->plan.tensor > 1)
		return hd_fail(diag, HD_E_INVAL, "ways through losses are judged for D pipelines of P "
		"stages, each "
			"on a device, not for tensor groups of %u: leave parallel.tensor out",
			ask->plan.tensor);
	if (!err && !ask->steps && (ask->market->deadline_s > 0 || ask->market->budget_usd > 0))
		return hd_fail(diag, HD_E_INVAL, "a bound on time or money needs the job's length: say "
		"job.steps");
	err = err ? err : list_shapes(&s, diag);
	if (err)
		return err;
	hd_arena_init(&work, 0);
	for (uint32_t i = 0; i < s.out.nshapes && !err; i++) {
		if (!ask->all && is_hopeless(&s, &s.shape[i])) {
			s.out.nhopeless++;
			continue;
		}
		err = judge_shape(&s, &s.shape[i], planner, diag);
		hd_arena_reset(&work);
	}
	if (!err && !s.out.nplans)
		err = s.out.nrefused ? hd_fail(diag, HD_E_INVAL, "%s", s.out.refused[0].why) :
			hd_fail(diag, HD_E_INVAL, "no grid of %u devices is what the job asks for: "
				"parallel.stages, "
				"chunks, replicas and schedule leave none", ask->plan.cluster->ndevices);
	err = err ? err : choose(&s, diag);
	hd_arena_finish(&work);
	if (!err)
		*ways = s.out;
	return err;
}
