#define _GNU_SOURCE        /* qsort_r */
#include "planner/ways/ways_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/generate.h"

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
			most += ways_there_with(s, p, k, d).share * a->bound[k +
				ways_lies_of(hd_schedule_kinds[row].name, v) * (a->n + 1)];
		a->to[s->nlisted] = (struct ways_shape){ hd_schedule_kinds[row].name, .d = d, .p = p, .v = v,
			.row = row, .below = ways_comes_and_goes(s->ask) && d > 1 ? s->nlisted - a->combos :
			WAYS_NONE,
			.bound = most / s->paid, .helper = helper };
	}
	s->nlisted++;
}

/* More stages are asked for, in as many chunks: by rule 5 these are some that they become. */
static bool may_become(const struct ways_search *s, uint32_t p, uint32_t v)
{
	return ways_comes_and_goes(s->ask) && p * v < s->ask->plan.stages && s->ask->plan.stages % v == 0;
}

/* Counts, and writes where there is room. Of one depth the same rows for each d. */
static void add_shapes(struct ways_search *s, uint32_t d, uint32_t p, const struct ways_adding *a)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const struct hd_schedule_kind *data = &hd_schedule_kinds[0];

	if (p == 1) {
		const bool asked = is_open(ask->stages, 1) && is_open(ask->chunks, 1) && !ask->deep &&
			named(data, ask->schedule);
		if (asked || ways_comes_and_goes(s->ask))       /* any may come to one stage */
			add_shape(s, a, d, 1, 1, 0, a->helper || !asked);
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

/* Of d pipelines that there are never machines for, one is more than of d - 1 with fewer stages. */
static bool more_by_fewer(const struct ways_search *s, uint32_t d, uint32_t p)
{
	for (uint32_t least = 1; least <= WAYS_LEASTS && least < d; least++)
		for (uint32_t m = least; m < least * p && m <= s->ask->plan.cluster->ndevices; m++)
			if (m / (m / least) >= d && s->here[m].share > 0)
				return true;
	return false;
}

/* Depth p. With machines that come and go all smaller numbers of pipelines, too. */
static void go_deep(struct ways_search *s, uint32_t p, struct ways_shape *to, double *bound)
{
	const struct hd_job_plan_ask *ask = &s->ask->plan;
	const uint32_t n = ask->cluster->ndevices;
	struct ways_adding a = { .to = to, .bound = bound, .n = n };

	ways_see_depth(s, p);
	s->first[p] = s->nlisted;
	s->rows[p] = 0;
	if (to)
		ways_bound_fewer(s, p);
	for (uint32_t lies = 0; lies < WAYS_NLIES && to; lies++)
		bound[lies * (n + 1)] = ways_most_of_fewer(s, 0, p, lies);
	for (uint32_t d = 1; d <= n / p && d <= ask->vns; d++) {
		const uint32_t before = s->nlisted;
		a.helper = !is_open(ask->replicas, d) || (ask->meetings && d != n && d != ask->vns);
		if (a.helper && (!ways_comes_and_goes(s->ask) || d > ask->replicas))
			continue;
		/* one pipeline less is the same run, or one with fewer stages, if those may be others */
		a.absent = d > 1 && !s->ask->all && !ask->replicas && ways_comes_and_goes(s->ask) &&
			(!ask->stages || d > WAYS_LEASTS || p == 1) &&
			!(ways_there_with(s, p, d, d).share > 0) && !more_by_fewer(s, d, p);
		if (to && !a.absent)
			for (uint32_t lies = 0; lies < WAYS_NLIES; lies++)
				bound[lies * (n + 1) + d] = fmax(ways_bound_of(s, d, p, lies),
					ways_most_of_fewer(s, d, p, lies));
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

enum hd_err ways_list(struct ways_search *s, struct hd_diag *diag)
{
	const uint32_t n = s->ask->plan.cluster->ndevices;
	double *bound = hd_arena_take(s->arena, ((size_t)n + 1) * WAYS_NLIES, sizeof *bound);
	bool any = true;

	s->here = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->here);
	s->there = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->there);
	s->first = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->first);
	s->rows = hd_arena_take(s->arena, (size_t)n + 1, sizeof *s->rows);
	for (uint32_t lies = 0; lies < WAYS_NLIES; lies++)
		any &= (s->fewer[lies] = hd_arena_take(s->arena, ((size_t)n + 1) * WAYS_LEASTS,
			sizeof **s->fewer)) != NULL;
	s->forward = ways_least_forward(s->ask->plan.sums);
	s->alike = s->ask->plan.cluster->nkinds == 1;
	s->share = hd_arena_take(s->arena, 2 * (size_t)n + 2, sizeof *s->share);
	s->of = hd_arena_take(s->arena, 2 * (size_t)n + 2, sizeof *s->of);
	if (!bound || !s->here || !s->there || !s->first || !s->rows || !any ||
		!s->share || !s->of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for grids of %u devices", n);
	ways_see_machines(s);
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
