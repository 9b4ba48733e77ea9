#include "planner/ways/ways_int.h"

bool ways_comes_and_goes(const struct hd_ways_ask *ask) { return ask->trace && !ask->plan.meetings; }

static void add_there(struct hd_spot_there *sum, const struct hd_spot_there *more)
{
	const double share = sum->share + more->share;

	if (!(more->share > 0))
		return;
	sum->machines = (sum->share * sum->machines + more->share * more->machines) / share;
	sum->share = share;
}

void ways_see_depth(struct ways_search *s, uint32_t p)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;

	if (!ways_comes_and_goes(s->ask) || s->depth == p)
		return;
	for (uint32_t d = 0; d <= n / p; d++)
		s->there[d] = (struct hd_spot_there){ .share = 0 };
	for (uint32_t m = 0; m <= n; m++)
		add_there(&s->there[m / p], &s->here[m]);
	s->depth = p;
}

struct hd_spot_there ways_there_with(const struct ways_search *s, uint32_t p, uint32_t d, uint32_t n)
{
	struct hd_spot_there sum = { .share = 0 };

	if (!ways_comes_and_goes(s->ask))
		return (struct hd_spot_there){ d == n, s->ask->plan.cluster->ndevices };
	if (d < n)
		return s->there[d];
	for (uint32_t k = d; k <= s->ask->plan.cluster->ndevices / p; k++)
		add_there(&sum, &s->there[k]);
	return sum;
}

uint32_t ways_least_of(enum hd_spot_strategy strategy, uint32_t spares)
{
	return strategy == HD_SPOT_REPLICA ? spares + 1 : strategy == HD_SPOT_CHECKPOINT ||
		strategy == HD_SPOT_REROUTE ? 0 : 1;
}

enum hd_spot_strategy ways_runs_as(enum hd_spot_strategy strategy, uint32_t p)
{
	return p > 1 || strategy == HD_SPOT_CHECKPOINT ? strategy : HD_SPOT_REROUTE;
}

bool ways_next_fewer(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t least,
	struct ways_fewer *f)
{
	f->m = f->m ? f->m : least;
	f->there = (struct hd_spot_there){ .share = 0 };
	while (ways_comes_and_goes(s->ask) && least && f->m < least * p) {
		const uint32_t to = f->m / least, of = f->m / to < d ? f->m / to : d;
		if (f->there.share > 0 && (to != f->p || of != f->d))
			return true;
		f->p = to;
		f->d = of;
		add_there(&f->there, &s->here[f->m++]);
	}
	return f->there.share > 0;
}

void ways_see_machines(struct ways_search *s)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double mean = 0;

	s->paid = 1;
	if (!ways_comes_and_goes(s->ask))
		return;
	hd_spot_presence(s->here, s->ask->trace, &(struct hd_spot_grid){ .pipelines = n, .stages = 1 });
	for (uint32_t m = 1; m <= n; m++)
		mean += m * s->here[m].share;
	s->paid = mean > 0 ? mean / n : 1;
}
