#include "planner/ways/ways_int.h"

#include <math.h>
#include <string.h>

#include "pipeline/redundancy.h"

static enum hd_err refuse(struct ways_search *s, const struct ways_shape *x, enum hd_spot_strategy strategy,
	const char *why, struct hd_diag *diag)
{
	struct hd_ways *out = &s->out;

	for (uint32_t i = 0; i < out->nrefused && !x->helper; i++)
		if (out->refused[i].strategy == strategy && !strcmp(out->refused[i].why, why)) {
			out->refused[i].times++;
			return HD_OK;
		}
	if (x->helper)
		return HD_OK;
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

/* With machines for just so many pipelines; NULL: such a way has no plan. */
static const struct hd_spot_value *exactly(const struct ways_search *s, uint32_t shape,
	enum hd_spot_strategy strategy, uint32_t spares)
{
	const struct ways_shape *x = &s->shape[shape];
	const enum hd_spot_strategy as = ways_runs_as(strategy, x->p);

	for (uint32_t i = x->first; i < x->first + x->nways; i++)
		if (s->exact[i].strategy == as && (s->exact[i].spares == spares || as != strategy))
			return &s->exact[i];
	return NULL;
}

/* Losses strike among the machines that are there then. */
static struct hd_spot_value value_among(const struct ways_search *s, struct hd_spot_grid grid,
	struct hd_spot_there there, enum hd_spot_strategy strategy, uint32_t spares, double overhead)
{
	const uint32_t used = (grid.pipelines + (strategy == HD_SPOT_REPLICA ? spares : 0)) * grid.stages;

	grid.present = (uint32_t)(there.machines + 0.5);
	grid.present = grid.present > used ? grid.present : used;
	return hd_spot_value(s->ask->market, &grid, strategy, spares, overhead);
}

uint32_t ways_with_fewer(const struct ways_search *s, const struct ways_shape *x, const struct ways_fewer *f)
{
	const uint32_t first = s->first[f->p] + (f->d - 1) * s->rows[f->p];

	for (uint32_t i = first; i < first + s->rows[f->p] && i < s->nlisted; i++) {
		const struct ways_shape *y = &s->shape[i];
		if (y->p == f->p && y->d == f->d && (f->p == 1 || (y->v == x->v && y->row == x->row)))
			return i;
	}
	return WAYS_NONE;
}

/* What it is worth on this grid, among other machines than it was judged with. */
static struct hd_spot_value judged_among(const struct ways_search *s, const struct hd_spot_value *v,
	const struct ways_fewer *f)
{
	const struct hd_spot_grid grid = { .pipelines = f->d, .stages = f->p, .batch = s->ask->batch,
		.step_s = v->step_s, .machines = s->ask->plan.cluster->ndevices,
		.redo_s = v->takes[0].s - s->ask->market->pause_s };

	return value_among(s, ways_with_spares(grid, v->strategy, v->spares), f->there, v->strategy,
		v->spares, v->overhead - v->saving);
}

/* Rule 5: w's value by how many pipelines there are machines for, or which stages. */
static void see_presence(const struct ways_search *s, const struct ways_shape *x, struct hd_way *w)
{
	const uint32_t n = x->d, least = ways_least_of(w->value.strategy, w->value.spares);
	struct ways_fewer f = { .m = 0 };
	uint32_t at = (uint32_t)(x - s->shape), k = 0;

	w->alone = w->value.value;
	w->there = ways_there_with(s, x->p, n, n).share;
	if (!ways_comes_and_goes(s->ask))
		return;
	while (ways_next_fewer(s, n, x->p, least, &f)) {
		const uint32_t i = ways_with_fewer(s, x, &f);
		const struct hd_spot_value *less = i == WAYS_NONE ? NULL : exactly(s, i, w->value.strategy,
			w->value.spares);
		s->of[k] = less ? judged_among(s, less, &f) : (struct hd_spot_value){ .value = 0 };
		s->share[++k] = f.there.share;
	}
	for (uint32_t d = n - 1; d >= 1 && d >= least; d--) {
		const struct hd_spot_value *less = NULL;
		at = at != WAYS_NONE ? s->shape[at].below : at;
		if (at != WAYS_NONE)
			less = exactly(s, at, w->value.strategy, w->value.spares);
		s->of[k] = less ? *less : (struct hd_spot_value){ .value = 0 };
		s->share[++k] = ways_there_with(s, x->p, d, n).share;
	}
	s->of[k] = w->value;
	s->share[++k] = w->there;
	w->value = hd_spot_value_present(s->ask->market, s->of, s->share, k);
	w->value.usd_h *= s->paid;
	w->value.value /= s->paid;
}

static void take(struct ways_search *s, struct ways_shape *x, const struct hd_spot_grid *grid,
	enum hd_spot_strategy strategy, uint32_t spares, const struct hd_way *how)
{
	const struct hd_spot_market *m = s->ask->market;
	const double overhead = how->value.overhead;
	struct hd_way *w = &s->out.way[s->out.n];

	*w = (struct hd_way){ .schedule = x->schedule, .pipelines = x->d, .ranks = x->p, .chunks = x->v,
		.peak = how->peak, .needs = how->needs, .goes_on = how->goes_on,
		.value = value_among(s, *grid, ways_there_with(s, x->p, x->d, x->d), strategy, spares,
			overhead) };
	s->exact[s->out.n++] = value_among(s, *grid, ways_there_with(s, x->p, x->d, x->d + 1), strategy,
		spares, overhead);
	see_presence(s, x, w);
	x->nways++;
	const double samples_h = w->value.value * w->value.usd_h,
		samples = (double)s->ask->steps * grid->batch;
	w->hours = samples_h > 0 ? samples / samples_h : samples > 0 ? INFINITY : 0;
	w->usd = w->hours * w->value.usd_h;
	w->fate = !s->ask->runs[strategy] ? HD_WAY_NO_RUN : !(w->value.value > 0) ?
		HD_WAY_ABSENT : !w->value.allowed ? HD_WAY_PAUSES :
		m->deadline_s > 0 && w->hours * 3600 > m->deadline_s ? HD_WAY_LATE :
		m->budget_usd > 0 && w->usd > m->budget_usd ? HD_WAY_DEAR : HD_WAY_EQUAL;
	w->value.allowed = w->fate == HD_WAY_EQUAL && !x->helper;
	s->best_of[strategy] = fmax(s->best_of[strategy], w->value.value);
	if (w->value.allowed && w->value.value > s->best)
		s->best = w->value.value;
}

struct judged {
	const struct hd_job_plan *plan;
	struct hd_spot_grid grid;
	uint32_t chunks;
	int64_t busiest;
	struct hd_way how;                        /* its memory and overhead */
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

/* Rule 3. Of what a rank does in a step, the share that the heir of a lost one does once more. */
static double redo_s(const struct judged *j, enum hd_spot_strategy strategy, const struct hd_way *how)
{
	const double half = hd_sim_plan_s(&j->plan->sim, j->busiest) / 2, goes_on = how->goes_on;
	const double step_s = j->grid.step_s * (1 + how->value.overhead),
		begun_again = (1 - goes_on) * step_s * (1 + goes_on) / 2;

	switch (strategy) {
	case HD_SPOT_REROUTE:
	case HD_SPOT_REPLICA: return half / (j->grid.pipelines > 1 ? j->grid.pipelines - 1 : 1);
	case HD_SPOT_LAZY: return goes_on * goes_on * half + begun_again;
	case HD_SPOT_EAGER: return goes_on * goes_on * half * j->back + begun_again;
	case HD_SPOT_FULL: return begun_again;
	case HD_SPOT_CHECKPOINT:
	case HD_NSPOT_STRATEGIES: break;
	}
	return 0;
}

/* Of a step: until the first rank has its last gradient. From then on a sum may be complete (ADR 140). */
static double share_without_sums(const struct hd_sim_plan *sim)
{
	int64_t first = sim->makespan;

	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		int64_t last = 0;
		for (uint32_t i = 0; i < sim->ran.list[r].len; i++) {
			const struct hd_ins *ins = &sim->ran.list[r].at[i];
			if (!(ins->flags & HD_INS_SHADOW) && (ins->op == HD_INS_B || ins->op == HD_INS_W))
				last = sim->span[r][i].end;
		}
		first = last < first ? last : first;
	}
	return sim->makespan ? (double)first / (double)sim->makespan : 0;
}

/* What shadows in this mode take beside the plan's step, as a share of it: both simulated alike. */
static enum hd_err add_mode(struct ways_search *s, const struct judged *j, enum hd_redundancy mode,
	struct hd_way *how, struct hd_diag *why)
{
	const struct hd_job_plan *plan = j->plan;
	const struct hd_cluster *cluster = s->ask->plan.cluster;
	const struct hd_sim_setting set = { .costs = &plan->costs, .per_ps = 1, .cluster = cluster,
		.device = plan->device, .transport = HD_TRANSPORT_BUFFERED, .spans = true };
	const struct hd_redundancy_ask ask = { .mode = mode, .setting = &set };
	struct hd_schedule with;
	struct hd_sim_plan after;
	enum hd_err err = j->chunks > 1 ? hd_fail(why, HD_E_INVAL,
		"a rank runs several stages; with shadows it "
		"has one, as in gpipe, 1f1b, zb-h1, zb-h2") :
		hd_redundancy_add(&with, &plan->schedule, &ask, s->work, why);

	err = err ? err : hd_sim_plan(&after, &with, &set, s->work, why);
	how->peak = how->needs = 0;
	for (uint32_t r = 0; !err && r < with.nranks; r++) {
		const int64_t has = hd_cluster_kind_of(cluster, plan->device[r])->memory,
			needs = after.rank[r].peak + after.rank[r].host;
		how->peak = after.rank[r].peak > how->peak ? after.rank[r].peak : how->peak;
		how->needs = needs > how->needs ? needs : how->needs;
		if (has && needs > has)
			err = hd_fail(why, HD_E_INVAL,
			"does not fit: with its shadow rank %u needs %.1f MiB, "
				"device %u has %.1f MiB", r, (double)needs * 0x1p-20, plan->device[r],
				(double)has * 0x1p-20);
	}
	if (!err) {
		how->value.overhead = (double)after.makespan / (double)plan->sim.makespan - 1;
		how->goes_on = share_without_sums(&after);
	}
	return err;
}

/* Could it be the choice with the step of its plan and nothing on top? Of what no run takes: the best of its
 * strategy, to be shown. */
static bool may_win(const struct ways_search *s, const struct judged *j, enum hd_spot_strategy strategy)
{
	const double most = s->ask->all || ways_comes_and_goes(s->ask) ? INFINITY :
		hd_spot_value(s->ask->market, &j->grid, strategy, 1, 0).value;

	return s->ask->runs[strategy] ? most >= 0.99 * s->best : most >= s->best_of[strategy];
}

static enum hd_err judge_plan(struct ways_search *s, struct ways_shape *x, struct judged *j,
	struct hd_diag *diag)
{
	static const enum hd_redundancy mode_of[HD_NSPOT_STRATEGIES] = { [HD_SPOT_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_SPOT_EAGER] = HD_REDUNDANCY_EAGER, [HD_SPOT_FULL] = HD_REDUNDANCY_FULL };
	enum hd_err err = HD_OK;

	for (int i = 0; i < HD_NSPOT_STRATEGIES && !err; i++) {
		const enum hd_spot_strategy strategy = (enum hd_spot_strategy)i;
		struct hd_diag why = { "" };
		struct hd_way how = j->how;
		j->grid.redo_s = 0;
		if (mode_of[i] && !may_win(s, j, strategy))
			continue;
		if (mode_of[i] && (err = add_mode(s, j, mode_of[i], &how, &why))) {
			if (hd_err_radius(err) > HD_HURT_JOB)
				return hd_fail(diag, err, "%s", why.text);
			err = refuse(s, x, strategy, why.text, diag);
			continue;
		}
		j->grid.redo_s = redo_s(j, strategy, &how);
		for (uint32_t f = 1; f <= ways_most_spares(strategy, x->d, x->p); f++) {
			const struct hd_spot_grid grid = ways_with_spares(j->grid, strategy, f);
			take(s, x, &grid, strategy, f, &how);
		}
	}
	return err;
}

/* In lockstep the planner data decides itself. */
static struct hd_job_plan_ask ask_of(const struct ways_search *s, const struct ways_shape *x)
{
	struct hd_job_plan_ask how = s->ask->plan;

	how.stages = how.meetings ? 0 : x->p * x->v;
	how.chunks = how.meetings ? 0 : x->v;
	how.replicas = how.meetings ? 0 : x->d;
	how.tensor = how.meetings ? 0 : 1;
	how.schedule = x->p > 1 ? x->schedule : NULL;
	how.update = HD_UPDATE_FLUSH;     /* what a loss costs is judged on steps that are drained */
	how.deep = false;
	how.spans = false;
	return how;
}

/* The longest step with which it could be the choice: of twice as long ones, then halves between. */
static double longest_step(const struct ways_search *s, const struct ways_shape *x)
{
	struct hd_spot_grid grid = ways_fastest(s, x->d, x->p, WAYS_UNKNOWN);
	double low = 0, high = fmax(grid.step_s, 1e-12);

	for (grid.step_s = high; ways_most_of(s, &grid) >= 0.99 * s->best && high < 1e6; grid.step_s = high) {
		low = high;
		high *= 2;
	}
	for (int i = 0; i < 40; i++) {
		grid.step_s = (low + high) / 2;
		if (ways_most_of(s, &grid) >= 0.99 * s->best)
			low = grid.step_s;
		else
			high = grid.step_s;
	}
	return high;
}

enum hd_err ways_may_be_the_choice(const struct ways_search *s, const struct ways_shape *x, bool *may,
	struct hd_diag *diag)
{
	const struct hd_job_plan_ask how = ask_of(s, x);
	struct hd_diag why = { "" };

	*may = true;
	if (s->ask->all || ways_comes_and_goes(s->ask) || how.meetings || x->p < 2 || !s->alike ||
		!(s->best > 0))
		return HD_OK;
	enum hd_err err = hd_job_plan_may(may, &how, longest_step(s, x), &why);
	/* what is asked for cannot be: the search says why */
	*may |= err != HD_OK;
	return err && err != HD_E_INVAL ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

enum hd_err ways_judge(struct ways_search *s, struct ways_shape *x,
	const struct hd_job_planner *planner,
	struct hd_diag *diag)
{
	struct hd_job_plan_ask how = ask_of(s, x);
	struct hd_job_plan plan;
	struct hd_diag why = { "" };
	struct judged j = { .plan = &plan, .chunks = x->v, .grid = { .pipelines = x->d, .stages = x->p,
		.batch = s->ask->batch,
		.machines = how.cluster->ndevices } };

	enum hd_err err = hd_job_plan_make(&plan, planner, &how, s->work, &why);
	/* devices that differ may have got other counts than were asked for */
	if (!err && (plan.schedule.nranks != x->d * x->p || plan.nstages != x->p * x->v))
		err = hd_fail(&why, HD_E_INVAL, "its best plan has other stages or copies");
	if (err)
		return err == HD_E_INVAL ? refuse(s, x, HD_NSPOT_STRATEGIES, why.text, diag) :
			hd_fail(diag, err, "%s", why.text);
	s->out.nplans += !x->helper;
	x->first = s->out.n;
	j.grid.step_s = hd_job_plan_step_s(&plan);
	j.back = share_back(&plan.costs);
	for (uint32_t r = 0; r < plan.schedule.nranks; r++) {
		j.busiest = plan.sim.rank[r].busy > j.busiest ? plan.sim.rank[r].busy : j.busiest;
		const int64_t peak = plan.sim.rank[r].peak, needs = peak + plan.sim.rank[r].host;
		j.how.peak = peak > j.how.peak ? peak : j.how.peak;
		j.how.needs = needs > j.how.needs ? needs : j.how.needs;
	}
	return judge_plan(s, x, &j, diag);
}
