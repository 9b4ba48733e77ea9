#define _GNU_SOURCE        /* qsort_r */
#include "planner/ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/redundancy.h"
#include "planner/planner.h"
#include "planner/search/shape.h"

const char *const hd_way_fate_texts[HD_NWAY_FATES] = {
#define X(id, text) [HD_WAY_##id] = text,
	HD_WAY_FATES(X)
#undef X
};

enum { WAYS_A_SHAPE = HD_NSPOT_STRATEGIES - 1 + HD_WAYS_SPARES };

/* next: of the list; below: index of that with one pipeline less, or NONE */
struct ways_shape {
	const char *schedule;
	uint32_t d, p, v, row, below, first, nways;
	double bound;
	bool helper, judged;                      /* helper: of no ask, only for those with more pipelines */
};

#define NONE UINT32_MAX

/* Stages that lie alike and whose ranks wait for the same: of a row of hd_auto_rows in v chunks. The first is
 * of rows that are not known. */
enum { UNKNOWN, WHOLE, SPLIT, VEE, CYCLE, NLIES = CYCLE + HD_AUTO_CHUNKS + 1 };

struct ways_search {
	const struct hd_ways_ask *ask;
	struct hd_arena *arena, *work;
	struct ways_shape *shape;
	uint32_t nlisted, *order;                 /* with helpers; best bound first */
	struct hd_spot_there *here, *there;       /* by machines; by pipelines of this depth; rule 5 */
	uint32_t depth;
	uint32_t *first, *rows;                   /* of each depth: where its shapes begin; of each width */
	double *fewer[NLIES];                     /* bounds, by depth and least pipelines */
	double forward;                           /* least_forward() */
	bool alike;                               /* all devices */
	/* of each way, with machines for just so many pipelines; of one more, by its number of them */
	struct hd_spot_value *exact, *of;
	double *share;
	double paid;                              /* machines that are there on average, as a share */
	struct hd_ways out;
	double best, best_of[HD_NSPOT_STRATEGIES];        /* of what is allowed; of all */
};

/* ---- presence */

static bool comes_and_goes(const struct hd_ways_ask *ask) { return ask->trace && !ask->plan.meetings; }

static void add_there(struct hd_spot_there *sum, const struct hd_spot_there *more)
{
	const double share = sum->share + more->share;

	if (!(more->share > 0))
		return;
	sum->machines = (sum->share * sum->machines + more->share * more->machines) / share;
	sum->share = share;
}

/* Shares of the time with machines for 0, 1, ... pipelines of p stages. */
static void see_depth(struct ways_search *s, uint32_t p)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;

	if (!comes_and_goes(s->ask) || s->depth == p)
		return;
	for (uint32_t d = 0; d <= n / p; d++)
		s->there[d] = (struct hd_spot_there){ .share = 0 };
	for (uint32_t m = 0; m <= n; m++)
		add_there(&s->there[m / p], &s->here[m]);
	s->depth = p;
}

/* With machines for exactly d of n pipelines, or for at least n. */
static struct hd_spot_there there_with(const struct ways_search *s, uint32_t p, uint32_t d, uint32_t n)
{
	struct hd_spot_there sum = { .share = 0 };

	if (!comes_and_goes(s->ask))
		return (struct hd_spot_there){ d == n, s->ask->plan.cluster->ndevices };
	if (d < n)
		return s->there[d];
	for (uint32_t k = d; k <= s->ask->plan.cluster->ndevices / p; k++)
		add_there(&sum, &s->there[k]);
	return sum;
}

/* Pipelines that a run keeps, by fewer stages where machines are too few for that; 0: it keeps its stages. */
static uint32_t least_of(enum hd_spot_strategy strategy, uint32_t spares)
{
	return strategy == HD_SPOT_REPLICA ? spares + 1 : strategy == HD_SPOT_CHECKPOINT ||
		strategy == HD_SPOT_REROUTE ? 0 : 1;
}

/* With m machines that are too few: the stages that so many pipelines have, and the pipelines of that. */
struct fewer { uint32_t m, d, p; struct hd_spot_there there; };

/* The next of them that there is time with, of grids of p ranks; m: begins at 0. */
static bool next_fewer(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t least, struct fewer *f)
{
	f->m = f->m ? f->m : 2 * least;
	f->there = (struct hd_spot_there){ .share = 0 };
	while (comes_and_goes(s->ask) && least && f->m < least * p) {
		const uint32_t to = f->m / least, of = f->m / to < d ? f->m / to : d;
		if (f->there.share > 0 && (to != f->p || of != f->d))
			return true;
		f->p = to;
		f->d = of;
		add_there(&f->there, &s->here[f->m++]);
	}
	return f->there.share > 0;
}

static void see_machines(struct ways_search *s)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double mean = 0;

	s->paid = 1;
	if (!comes_and_goes(s->ask))
		return;
	hd_spot_presence(s->here, s->ask->trace, &(struct hd_spot_grid){ .pipelines = n, .stages = 1 });
	for (uint32_t m = 1; m <= n; m++)
		mean += m * s->here[m].share;
	s->paid = mean > 0 ? mean / n : 1;
}

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

/* ---- the least that a step takes, wherever its boundaries are */

static uint32_t lies_of(const char *schedule, uint32_t v)
{
	const struct hd_auto_row *row = hd_auto_rows;

	while (row->schedule && strcmp(row->schedule, schedule) != 0)
		row++;
	if (!row->schedule || row->update != HD_UPDATE_FLUSH || v > HD_AUTO_CHUNKS)
		return UNKNOWN;
	if (v == 1)
		return row->whole_back ? WHOLE : SPLIT;
	return row->v_placed ? (v == 2 && !row->whole_back ? VEE : UNKNOWN) : row->whole_back ? CYCLE + v :
		UNKNOWN;
}

static uint32_t chunks_of(uint32_t lies) { return lies > CYCLE ? lies - CYCLE : lies == VEE ? 2 : 1; }

static uint32_t rank_at(uint32_t lies, uint32_t p, uint32_t stage)
{
	return lies == VEE && stage >= p ? 2 * p - 1 - stage : stage % p;
}

/* No less than this, of one virtual node's work, takes a step of m of them on p ranks. Of a rank's stages
 * from s on nothing begins before the first virtual node has come through all stages before s, nor is a step
 * over before the last one has come back through them, which takes `way` of their work. So a step takes
 *
 *	way x (the work before s) + m x (the work of that rank's stages from s on)
 *
 * for each s, and of these inequalities any mean: weighed so that stages of whatever size make it the same,
 * if weights can do that. */
static double least_filled(uint32_t lies, uint32_t p, double m, double way)
{
	double weight[HD_AUTO_RANKS * HD_AUTO_CHUNKS], of_rank[HD_AUTO_RANKS] = { 0 }, sum = 0, last = 0;
	const uint32_t n = p * chunks_of(lies);
	double least = INFINITY;

	if (lies == UNKNOWN || m <= way)
		return way;
	for (uint32_t s = 0; s < n; s++) {
		const uint32_t r = rank_at(lies, p, s);
		weight[s] = s ? fmax(0, m * (last - of_rank[r]) / (m - way)) : 1;
		last = of_rank[r] += weight[s];
		sum += weight[s];
	}
	if (!(sum < 1e300))
		return way;
	memset(of_rank, 0, sizeof of_rank);
	double upto = 0;
	for (uint32_t s = 0; s < n; s++) {
		const uint32_t r = rank_at(lies, p, s);
		upto += weight[s];
		of_rank[r] += weight[s];
		least = fmin(least, (way * fmax(0, sum - upto) + m * of_rank[r]) / sum);
	}
	return fmax(least, way);
}

/* Of d pipelines of p ranks as many may be spare; 1 for strategies that have none. Copies of one stage are no
 * pipelines: a run has no word for their number. */
static uint32_t most_spares(enum hd_spot_strategy strategy, uint32_t d, uint32_t p)
{
	if (strategy != HD_SPOT_REPLICA)
		return 1;
	return p == 1 ? 0 : d - 1 < HD_WAYS_SPARES ? d - 1 : HD_WAYS_SPARES;
}

/* Rule 2: `f` of the grid's pipelines are spare, and work. */
static struct hd_spot_grid with_spares(struct hd_spot_grid grid, enum hd_spot_strategy strategy, uint32_t f)
{
	grid.spares_work = strategy == HD_SPOT_REPLICA;
	grid.pipelines -= grid.spares_work ? f : 0;
	return grid;
}

/* What of the work is forward, in whatever comes first: at least. */
static double least_forward(const struct hd_cut_sums *sums)
{
	double least = 1;

	for (uint32_t k = 0; k < sums->cuts->n; k++) {
		const struct hd_stage_cost *x = &sums->upto[k];
		const double work = (double)(x->f + x->i + x->w);
		least = work > 0 ? fmin(least, (double)x->f / work) : least;
	}
	return least;
}

/* d pipelines of p ranks, as fast as they can be: no device waits but for what has to be before and behind,
 * and nothing is computed twice. A rank has the largest node or more, and a virtual node goes through all.
 * Where backward passes are split the weights' gradients are not waited for on the way back. */
static struct hd_spot_grid fastest(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies)
{
	const struct hd_cluster *c = s->ask->plan.cluster;
	const struct hd_cut_sums *sums = s->ask->plan.sums;
	const struct hd_stage_cost *all = &sums->upto[sums->cuts->n - 1];
	const double turns = (s->ask->plan.vns + d - 1) / d, whole = (double)(all->f + all->i + all->w),
		way = (double)(all->f + all->i);
	double speed = 0, node = 0;

	for (uint32_t k = 0; k < c->nkinds; k++)
		speed = fmax(speed, c->kind[k].speed);
	for (uint32_t k = 0; k < sums->cuts->n; k++) {
		const struct hd_stage_cost *x = &sums->upto[k], zero = { 0 }, *b = k ? x - 1 : &zero;
		node = fmax(node, (double)(x->f - b->f + x->i - b->i + x->w - b->w));
	}
	double step = fmax(turns * fmax(whole / p, node), way * least_filled(lies, p, turns, 1));
	if (lies == WHOLE || lies > CYCLE)
		step = fmax(step, whole * least_filled(lies, p, turns, 1));
	else if (lies != UNKNOWN)
		step = fmax(step, whole * least_filled(lies, p, turns, s->forward));
	return (struct hd_spot_grid){ .pipelines = d, .stages = p, .batch = s->ask->batch,
		.machines = c->ndevices, .step_s = step * 1e-12 / speed };
}

static double most_by(const struct ways_search *s, const struct hd_spot_grid *grid,
	enum hd_spot_strategy strategy, uint32_t f)
{
	const struct hd_spot_grid of = with_spares(*grid, strategy, f);

	return !s->ask->runs[strategy] ? 0 : !(grid->step_s > 0) ? INFINITY :
		hd_spot_value(s->ask->market, &of, strategy, f, 0).value;
}

/* The most that a grid can be worth with such a step. */
static double most_of(const struct ways_search *s, const struct hd_spot_grid *grid)
{
	double most = 0;

	for (int i = 0; i < HD_NSPOT_STRATEGIES; i++)
		for (uint32_t f = most_spares((enum hd_spot_strategy)i, grid->pipelines, grid->stages); f;
			f--)
			most = fmax(most, most_by(s, grid, (enum hd_spot_strategy)i, f));
	return most;
}

static double bound_of(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies)
{
	const struct hd_spot_grid grid = fastest(s, d, p, lies);

	return most_of(s, &grid);
}

enum { LEASTS = HD_WAYS_SPARES + 1 };

/* The same of runs that have come to p ranks by keeping so many pipelines; rule 5. */
static void bound_fewer(struct ways_search *s, uint32_t p)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;

	for (uint32_t least = 1; least <= LEASTS; least++)
		for (uint32_t lies = 0; lies < NLIES; lies++) {
			double most = 0;
			for (uint32_t d = least; d <= (least * (p + 1) - 1) / p && d * p <= n; d++) {
				const struct hd_spot_grid grid = fastest(s, d, p, lies);
				for (int i = 0; i < HD_NSPOT_STRATEGIES; i++)
					if (least_of((enum hd_spot_strategy)i, least - 1) == least)
						most = fmax(most, most_by(s, &grid, (enum hd_spot_strategy)i,
							least - 1));
			}
			s->fewer[lies][p * LEASTS + least - 1] = most;
		}
}

/* What a grid of p ranks can be worth by fewer stages, while there are machines for k pipelines of it. */
static double most_of_fewer(const struct ways_search *s, uint32_t k, uint32_t p, uint32_t lies)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double most = 0;

	for (uint32_t least = k + 1; least <= LEASTS; least++)
		for (uint32_t m = k * p; m < (k + 1) * p && m <= n && comes_and_goes(s->ask); m++)
			if (m / least >= 2 && s->here[m].share > 0)
				most = fmax(most, s->fewer[lies][m / least * LEASTS + least - 1]);
	return most;
}

/* bound: of 0 to n pipelines, of each way that stages lie */
struct ways_adding { struct ways_shape *to; const double *bound; uint32_t n, combos; bool helper, absent; };

static void add_shape(struct ways_search *s, const struct ways_adding *a, uint32_t d, uint32_t p, uint32_t v,
	uint32_t row, bool helper)
{
	double most = 0;

	s->out.nshapes += !helper;
	s->out.nhopeless += a->absent && !helper;
	if (a->absent)
		return;
	if (a->to) {
		for (uint32_t k = 0; k <= d; k++)
			most += there_with(s, p, k, d).share * a->bound[k +
				lies_of(hd_schedule_kinds[row].name, v) * (a->n + 1)];
		a->to[s->nlisted] = (struct ways_shape){ hd_schedule_kinds[row].name, .d = d, .p = p, .v = v,
			.row = row, .below = comes_and_goes(s->ask) && d > 1 ? s->nlisted - a->combos : NONE,
			.bound = most / s->paid, .helper = helper };
	}
	s->nlisted++;
}

/* More stages are asked for, in as many chunks: by rule 5 these are some that they become. */
static bool may_become(const struct ways_search *s, uint32_t p, uint32_t v)
{
	return comes_and_goes(s->ask) && p * v < s->ask->plan.stages && s->ask->plan.stages % v == 0;
}

/* Counts, and writes where there is room. Of one depth the same rows for each d. */
static void add_shapes(struct ways_search *s, uint32_t d, uint32_t p, const struct ways_adding *a)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const struct hd_schedule_kind *data = &hd_schedule_kinds[0];

	if (p == 1) {
		if (is_open(ask->stages, 1) && is_open(ask->chunks, 1) && !ask->deep &&
			named(data, ask->schedule))
			add_shape(s, a, d, 1, 1, 0, a->helper);
		return;
	}
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t v = k->vmin; makes_grids(k) && v <= k->vmax && v <= HD_AUTO_CHUNKS; v++) {
			const bool asked = is_open(ask->stages, p * v);
			if (named(k, ask->schedule) && (asked || may_become(s, p, v)) &&
				is_open(ask->chunks, v) && p * v <= ask->sums->cuts->n)
				add_shape(s, a, d, p, v, (uint32_t)(k - hd_schedule_kinds),
					a->helper || !asked);
		}
}

/* Depth p. With machines that come and go all smaller numbers of pipelines, too. */
static void go_deep(struct ways_search *s, uint32_t p, struct ways_shape *to, double *bound)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const uint32_t n = ask->cluster->ndevices;
	struct ways_adding a = { .to = to, .bound = bound, .n = n };

	see_depth(s, p);
	s->first[p] = s->nlisted;
	s->rows[p] = 0;
	if (to)
		bound_fewer(s, p);
	for (uint32_t lies = 0; lies < NLIES && to; lies++)
		bound[lies * (n + 1)] = most_of_fewer(s, 0, p, lies);
	for (uint32_t d = 1; d <= n / p && d <= ask->vns; d++) {
		const uint32_t before = s->nlisted;
		a.helper = !is_open(ask->replicas, d) || (ask->meetings && d != n && d != ask->vns);
		if (a.helper && (!comes_and_goes(s->ask) || d > ask->replicas))
			continue;
		/* one pipeline less is the same run, or one with fewer stages, if those may be others */
		a.absent = d > 1 && !s->ask->all && !ask->replicas && comes_and_goes(s->ask) &&
			(!ask->stages || d > LEASTS || p <= 2) && !(there_with(s, p, d, d).share > 0);
		if (to && !a.absent)
			for (uint32_t lies = 0; lies < NLIES; lies++)
				bound[lies * (n + 1) + d] = fmax(bound_of(s, d, p, lies),
					most_of_fewer(s, d, p, lies));
		add_shapes(s, d, p, &a);
		a.combos = s->nlisted - before;
		s->rows[p] = s->rows[p] ? s->rows[p] : a.combos;
	}
}

static void go_through(struct ways_search *s, struct ways_shape *to, double *bound)
{
	const uint32_t n = s->ask->plan.cluster->ndevices, deepest = n < HD_AUTO_RANKS ? n : HD_AUTO_RANKS;

	s->out.nshapes = s->out.nhopeless = s->nlisted = 0;
	for (uint32_t p = 1; p <= deepest && (p == 1 || !s->ask->plan.meetings); p++)
		go_deep(s, p, to, bound);
}

static int best_bound_first(const void *x, const void *y, void *search)
{
	const struct ways_shape *all = ((struct ways_search *)search)->shape, *a = &all[*(const uint32_t *)x],
		*b = &all[*(const uint32_t *)y];

	if (a->bound < b->bound || a->bound > b->bound)
		return a->bound > b->bound ? -1 : 1;
	if (a->d * a->p != b->d * b->p)
		return a->d * a->p > b->d * b->p ? -1 : 1;
	if (a->p != b->p)
		return a->p > b->p ? -1 : 1;
	return a->row != b->row ? (a->row < b->row ? -1 : 1) : a->v < b->v ? -1 : a->v > b->v;
}

static enum hd_err list_shapes(struct ways_search *s, struct hd_diag *diag)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double *bound = hd_arena_take(s->arena, ((size_t)n + 1) * NLIES, sizeof *bound);
	bool any = true;

	s->here = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->here);
	s->there = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->there);
	s->first = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->first);
	s->rows = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->rows);
	for (uint32_t lies = 0; lies < NLIES; lies++)
		any &= (s->fewer[lies] = hd_arena_take(s->arena, ((size_t)n + 1) * LEASTS,
			sizeof **s->fewer)) != NULL;
	s->forward = least_forward(s->ask->plan.sums);
	s->alike = s->ask->plan.cluster->nkinds == 1;
	s->share = hd_arena_take(s->arena, 2 * (size_t)n + 2, sizeof *s->share);
	s->of = hd_arena_take(s->arena, 2 * (size_t)n + 2, sizeof *s->of);
	if (!bound || !s->here || !s->there || !s->first || !s->rows || !any ||
		!s->share || !s->of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for grids of %u devices", n);
	see_machines(s);
	go_through(s, NULL, NULL);
	s->shape = hd_arena_take(s->arena, (size_t)s->nlisted + 1, sizeof *s->shape);
	s->order = hd_arena_take(s->arena, (size_t)s->nlisted + 1, sizeof *s->order);
	s->out.way = hd_arena_take(s->arena, (size_t)s->nlisted * WAYS_A_SHAPE + 1, sizeof *s->out.way);
	s->exact = hd_arena_take(s->arena, (size_t)s->nlisted * WAYS_A_SHAPE + 1, sizeof *s->exact);
	if (!s->shape || !s->order || !s->out.way || !s->exact)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u shapes of pipelines", s->nlisted);
	go_through(s, s->shape, bound);
	for (uint32_t i = 0; i < s->nlisted; i++)
		s->order[i] = i;
	qsort_r(s->order, s->nlisted, sizeof *s->order, best_bound_first, s);
	return HD_OK;
}

/* ---- what one is worth */

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

	for (uint32_t i = x->first; i < x->first + x->nways; i++)
		if (s->exact[i].strategy == strategy && s->exact[i].spares == spares)
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

/* The same with fewer stages; NONE: none has a plan. */
static uint32_t with_fewer(const struct ways_search *s, const struct ways_shape *x, const struct fewer *f)
{
	const uint32_t first = s->first[f->p] + (f->d - 1) * s->rows[f->p];

	for (uint32_t i = first; i < first + s->rows[f->p] && i < s->nlisted; i++) {
		const struct ways_shape *y = &s->shape[i];
		if (y->p == f->p && y->d == f->d && y->v == x->v && y->row == x->row)
			return i;
	}
	return NONE;
}

/* What it is worth on this grid, among other machines than it was judged with. */
static struct hd_spot_value judged_among(const struct ways_search *s, const struct hd_spot_value *v,
	const struct fewer *f)
{
	const struct hd_spot_grid grid = { .pipelines = f->d, .stages = f->p, .batch = s->ask->batch,
		.step_s = v->step_s, .machines = s->ask->plan.cluster->ndevices,
		.redo_s = v->takes[0].s - s->ask->market->pause_s };

	return value_among(s, with_spares(grid, v->strategy, v->spares), f->there, v->strategy, v->spares,
		v->overhead - v->saving);
}

/* Rule 5: w's value by how many pipelines there are machines for, or which stages. */
static void see_presence(const struct ways_search *s, const struct ways_shape *x, struct hd_way *w)
{
	const uint32_t n = x->d, least = least_of(w->value.strategy, w->value.spares);
	struct fewer f = { .m = 0 };
	uint32_t at = (uint32_t)(x - s->shape), k = 0;

	w->alone = w->value.value;
	w->there = there_with(s, x->p, n, n).share;
	if (!comes_and_goes(s->ask))
		return;
	while (next_fewer(s, n, x->p, least, &f)) {
		const uint32_t i = with_fewer(s, x, &f);
		const struct hd_spot_value *less = i == NONE ? NULL : exactly(s, i, w->value.strategy,
			w->value.spares);
		s->of[k] = less ? judged_among(s, less, &f) : (struct hd_spot_value){ .value = 0 };
		s->share[++k] = f.there.share;
	}
	for (uint32_t d = n - 1; d >= 1 && d >= least; d--) {
		const struct hd_spot_value *less = NULL;
		at = at != NONE ? s->shape[at].below : at;
		if (at != NONE)
			less = exactly(s, at, w->value.strategy, w->value.spares);
		s->of[k] = less ? *less : (struct hd_spot_value){ .value = 0 };
		s->share[++k] = there_with(s, x->p, d, n).share;
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
		.value = value_among(s, *grid, there_with(s, x->p, x->d, x->d), strategy, spares, overhead) };
	s->exact[s->out.n++] = value_among(s, *grid, there_with(s, x->p, x->d, x->d + 1), strategy,
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
	const double most = s->ask->all || comes_and_goes(s->ask) ? INFINITY :
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
		for (uint32_t f = 1; f <= most_spares(strategy, x->d, x->p); f++) {
			const struct hd_spot_grid grid = with_spares(j->grid, strategy, f);
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
	how.deep = false;
	how.spans = false;
	return how;
}

/* The longest step with which it could be the choice: of twice as long ones, then halves between. */
static double longest_step(const struct ways_search *s, const struct ways_shape *x)
{
	struct hd_spot_grid grid = fastest(s, x->d, x->p, UNKNOWN);
	double low = 0, high = fmax(grid.step_s, 1e-12);

	for (grid.step_s = high; most_of(s, &grid) >= 0.99 * s->best && high < 1e6; grid.step_s = high) {
		low = high;
		high *= 2;
	}
	for (int i = 0; i < 40; i++) {
		grid.step_s = (low + high) / 2;
		if (most_of(s, &grid) >= 0.99 * s->best)
			low = grid.step_s;
		else
			high = grid.step_s;
	}
	return high;
}

/* Where machines come and go, a grid's value has parts that are not its own step's. */
static enum hd_err may_be_the_choice(const struct ways_search *s, const struct ways_shape *x, bool *may,
	struct hd_diag *diag)
{
	const struct hd_job_plan_ask how = ask_of(s, x);
	struct hd_diag why = { "" };

	*may = true;
	if (s->ask->all || comes_and_goes(s->ask) || how.meetings || x->p < 2 || !s->alike || !(s->best > 0))
		return HD_OK;
	enum hd_err err = hd_job_plan_may(may, &how, longest_step(s, x), &why);
	/* what is asked for cannot be: the search says why */
	*may |= err != HD_OK;
	return err && err != HD_E_INVAL ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

static enum hd_err judge_shape(struct ways_search *s, struct ways_shape *x,
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

/* ---- all of them */

static enum hd_err judge_family(struct ways_search *s, uint32_t of, const struct hd_job_planner *planner,
	struct hd_diag *diag);

/* What it becomes with fewer stages. Grids have fewer ranks each time, so this ends. */
static enum hd_err judge_fewer(struct ways_search *s, const struct ways_shape *x,
	const struct hd_job_planner *planner, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t least = 1; least <= LEASTS && least <= x->d && !err; least++) {
		struct fewer f = { .m = 0 };
		while (!err && next_fewer(s, x->d, x->p, least, &f)) {
			const uint32_t i = with_fewer(s, x, &f);
			if (i != NONE && !s->shape[i].judged)
				err = judge_family(s, i, planner, diag);
		}
	}
	return err;
}

/* Those with fewer pipelines first. */
static enum hd_err judge_family(struct ways_search *s, uint32_t of, const struct hd_job_planner *planner,
	struct hd_diag *diag)
{
	uint32_t at = of;
	enum hd_err err = HD_OK;

	for (uint32_t d = 1; d <= s->shape[of].d && !err; d++) {
		for (at = of; s->shape[at].d > d && s->shape[at].below != NONE;)
			at = s->shape[at].below;
		if (s->shape[at].judged)
			continue;
		s->shape[at].judged = true;
		err = judge_fewer(s, &s->shape[at], planner, diag);
		see_depth(s, s->shape[of].p);
		bool may = true;
		err = err ? err : may_be_the_choice(s, &s->shape[at], &may, diag);
		s->out.nhopeless += !may;
		if (!err && may)
			err = judge_shape(s, &s->shape[at], planner, diag);
		hd_arena_reset(s->work);
	}
	return err;
}

static void drop_helpers(struct ways_search *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nlisted; i++)
		for (uint32_t k = 0; s->shape[i].helper && k < s->shape[i].nways; k++)
			s->out.way[s->shape[i].first + k].schedule = NULL;
	for (uint32_t i = 0; i < s->out.n; i++)
		if (s->out.way[i].schedule)
			s->out.way[n++] = s->out.way[i];
	s->out.n = n;
}

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
static enum hd_way_fate why_it_lost(const struct hd_way *choice, const struct hd_way *w)
{
	const struct hd_spot_value *c = &choice->value, *v = &w->value;
	const double away = (c->value / choice->alone) / (v->value / w->alone);
	const double step = v->step_s / c->step_s, over = (1 + v->overhead) / (1 + c->overhead),
		losses = (1 + v->losses_h / 3600 * v->stall_s) / (1 + c->losses_h / 3600 * c->stall_s);

	if (v->value >= 0.99 * c->value)
		return v->strategy == c->strategy && v->spares == c->spares ? HD_WAY_NEAR : HD_WAY_EQUAL;
	if (away > step && away > over && away > losses)
		return HD_WAY_ABSENT;
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
				why_it_lost(&out->way[out->chosen], &out->way[i]);
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
	for (uint32_t i = 0; i < s.nlisted && !err; i++) {
		if (s.shape[s.order[i]].helper)
			continue;
		if (ask->said)
			ask->said(ask->user, i, s.nlisted);
		if (!ask->all && s.shape[s.order[i]].bound < 0.99 * s.best)
			s.out.nhopeless += !s.shape[s.order[i]].judged;
		else
			err = judge_family(&s, s.order[i], planner, diag);
	}
	drop_helpers(&s);
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
