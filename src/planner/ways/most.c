#include "planner/ways/ways_int.h"

#include <math.h>
#include <string.h>

#include "planner/search/shape.h"

uint32_t ways_lies_of(const char *schedule, uint32_t v)
{
	const struct hd_auto_row *row = hd_auto_rows;

	while (row->schedule && strcmp(row->schedule, schedule) != 0)
		row++;
	if (!row->schedule || row->update != HD_UPDATE_FLUSH || v > HD_AUTO_CHUNKS)
		return WAYS_UNKNOWN;
	if (v == 1)
		return row->whole_back ? WAYS_WHOLE : WAYS_SPLIT;
	return row->v_placed ? (v == 2 && !row->whole_back ? WAYS_VEE : WAYS_UNKNOWN) :
		row->whole_back ? WAYS_CYCLE + v : WAYS_UNKNOWN;
}

static uint32_t chunks_of(uint32_t lies)
{
	return lies > WAYS_CYCLE ? lies - WAYS_CYCLE : lies == WAYS_VEE ? 2 : 1;
}

static uint32_t rank_at(uint32_t lies, uint32_t p, uint32_t stage)
{
	return lies == WAYS_VEE && stage >= p ? 2 * p - 1 - stage : stage % p;
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

	if (lies == WAYS_UNKNOWN || m <= way)
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

uint32_t ways_most_spares(enum hd_spot_strategy strategy, uint32_t d, uint32_t p)
{
	if (strategy != HD_SPOT_REPLICA)
		return 1;
	return p == 1 ? 0 : d - 1 < HD_WAYS_SPARES ? d - 1 : HD_WAYS_SPARES;
}

struct hd_spot_grid ways_with_spares(struct hd_spot_grid grid, enum hd_spot_strategy strategy, uint32_t f)
{
	grid.spares_work = strategy == HD_SPOT_REPLICA;
	grid.pipelines -= grid.spares_work ? f : 0;
	return grid;
}

double ways_least_forward(const struct hd_cut_sums *sums)
{
	double least = 1;

	for (uint32_t k = 0; k < sums->cuts->n; k++) {
		const struct hd_stage_cost *x = &sums->upto[k];
		const double work = (double)(x->f + x->i + x->w);
		least = work > 0 ? fmin(least, (double)x->f / work) : least;
	}
	return least;
}

struct hd_spot_grid ways_fastest(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies)
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
	if (lies == WAYS_WHOLE || lies > WAYS_CYCLE)
		step = fmax(step, whole * least_filled(lies, p, turns, 1));
	else if (lies != WAYS_UNKNOWN)
		step = fmax(step, whole * least_filled(lies, p, turns, s->forward));
	return (struct hd_spot_grid){ .pipelines = d, .stages = p, .batch = s->ask->batch,
		.machines = c->ndevices, .step_s = step * 1e-12 / speed };
}

static double most_by(const struct ways_search *s, const struct hd_spot_grid *grid,
	enum hd_spot_strategy strategy, uint32_t f)
{
	const struct hd_spot_grid of = ways_with_spares(*grid, strategy, f);

	return !(grid->step_s > 0) ? INFINITY :
		hd_spot_value(s->ask->market, &of, strategy, f, 0).value;
}

double ways_most_of(const struct ways_search *s, const struct hd_spot_grid *grid)
{
	double most = 0;

	for (int i = 0; i < HD_NSPOT_STRATEGIES; i++)
		for (uint32_t f = !s->ask->runs[i] ? 0 : ways_most_spares((enum hd_spot_strategy)i,
			grid->pipelines, grid->stages); f; f--)
			most = fmax(most, most_by(s, grid, (enum hd_spot_strategy)i, f));
	return most;
}

double ways_bound_of(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies)
{
	const struct hd_spot_grid grid = ways_fastest(s, d, p, lies);

	return ways_most_of(s, &grid);
}

/* Copies of one stage lie in no way, and are what peers go on with. */
static double most_after(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies, uint32_t least)
{
	const struct hd_spot_grid grid = ways_fastest(s, d, p, p == 1 ? WAYS_UNKNOWN : lies);
	double most = 0;

	for (int i = 0; i < HD_NSPOT_STRATEGIES; i++) {
		const enum hd_spot_strategy strategy = (enum hd_spot_strategy)i;
		if (ways_least_of(strategy, least - 1) != least || !s->ask->runs[strategy])
			continue;
		most = fmax(most, most_by(s, &grid, ways_runs_as(strategy, p), p == 1 ? 1 : least - 1));
	}
	return most;
}

void ways_bound_fewer(struct ways_search *s, uint32_t p)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;

	for (uint32_t least = 1; least <= WAYS_LEASTS; least++)
		for (uint32_t lies = 0; lies < WAYS_NLIES; lies++) {
			double most = 0;
			for (uint32_t d = least; d <= (least * (p + 1) - 1) / p && d * p <= n; d++)
				most = fmax(most, most_after(s, d, p, lies, least));
			s->fewer[lies][p * WAYS_LEASTS + least - 1] = most;
		}
}

double ways_most_of_fewer(const struct ways_search *s, uint32_t k, uint32_t p, uint32_t lies)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double most = 0;

	for (uint32_t least = k + 1; least <= WAYS_LEASTS; least++)
		for (uint32_t m = k * p; m < (k + 1) * p && m <= n && ways_comes_and_goes(s->ask); m++)
			if (m / least >= 1 && s->here[m].share > 0)
				most = fmax(most, s->fewer[lies][m / least * WAYS_LEASTS + least - 1]);
	return most;
}
