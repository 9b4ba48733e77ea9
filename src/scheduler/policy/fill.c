/* Lexicographic max-min, level by level (water filling), for single jobs and for entities that hold jobs.
 *
 * A level raises the z of all active jobs at speeds g_i = w_i / s_i as far as all can follow. A job whose
 * promise has a price (dual above 0) is tight in every optimal solution: it is final. The prices times speeds
 * sum to 1, so that at least one job becomes final a level; a bottleneck that a degenerate dual hides becomes
 * final in a later level with c = 0. Jobs at the most that any shape of theirs gives are final too: without
 * that rule n equal jobs on idle devices take n levels.
 *
 * The published method asks a mixed program which jobs can still rise and stops early when that fails;
 * nothing here can fail so. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

#define HD_PRICED 1e-9

struct fill {
	struct hd_policy_lp *pg;
	bool entities, *final;
	double *w, *g, *top, *so;                 /* weight now, speed, most that z can be, level reached */
	/* [nentities]; weights of what is within and not final, jobs and entities; its own part of all */
	double *sums, *part;
	uint32_t *heads;                          /* [nentities] first job within that is not final */
	uint32_t *level, deepest;                 /* [nentities] 0: within none */
};

static enum hd_entity_kind kind_of(const struct fill *f, uint32_t entity)
{
	int forced = f->pg->seen->set->entity_kind;

	return forced ? (enum hd_entity_kind)(forced - 1) : f->pg->seen->state->entities[entity].kind;
}

static void find_levels(struct fill *f)
{
	const struct hd_sched_state *s = f->pg->seen->state;

	for (uint32_t e = 0; e < s->nentities; e++) {
		f->level[e] = 0;
		for (uint32_t at = s->entities[e].within; at; at = s->entities[at - 1].within)
			f->level[e]++;
		f->deepest = f->level[e] > f->deepest ? f->level[e] : f->deepest;
	}
}

/* What an entity weighs where all do, from the outermost inward: its part of the one that it is within. One
 * without a job that is not final weighs nothing there, and the others share what it had. */
static void weigh_entities(struct fill *f)
{
	const struct hd_sched_entity *of = f->pg->seen->state->entities;
	const uint32_t n = f->pg->seen->state->nentities;

	for (uint32_t l = f->deepest; l > 0; l--)
		for (uint32_t e = 0; e < n; e++) {
			if (f->level[e] != l || f->heads[e] == HD_SCHED_NONE)
				continue;
			uint32_t in = of[e].within - 1;
			f->sums[in] += of[e].weight;
			f->heads[in] = f->heads[e] < f->heads[in] ? f->heads[e] : f->heads[in];
		}
	for (uint32_t l = 0; l <= f->deepest; l++)
		for (uint32_t e = 0; e < n; e++) {
			if (f->level[e] != l || f->heads[e] == HD_SCHED_NONE)
				continue;
			uint32_t in = of[e].within - 1;
			if (!l)
				f->part[e] = of[e].weight;
			else if (kind_of(f, in) == HD_ENTITY_FIFO)
				f->part[e] = f->heads[in] == f->heads[e] ? f->part[in] : 0;
			else
				f->part[e] = f->part[in] * of[e].weight / f->sums[in];
		}
}

/* Jobs of no entity stand for themselves. */
static void weigh(struct fill *f)
{
	const struct hd_sched_state *s = f->pg->seen->state;

	for (uint32_t e = 0; e < s->nentities; e++) {
		f->sums[e] = 0;
		f->heads[e] = HD_SCHED_NONE;
	}
	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t e = s->jobs[i].entity;
		if (f->final[i] || e == HD_SCHED_NONE)
			continue;
		f->sums[e] += s->jobs[i].weight;
		f->heads[e] = f->heads[e] == HD_SCHED_NONE ? i : f->heads[e];
	}
	weigh_entities(f);
	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t e = s->jobs[i].entity;
		if (f->final[i])
			f->w[i] = 0;
		else if (!f->entities || e == HD_SCHED_NONE)
			f->w[i] = s->jobs[i].weight;
		else if (kind_of(f, e) == HD_ENTITY_FIFO)
			f->w[i] = f->heads[e] == i ? f->part[e] : 0;
		else
			f->w[i] = f->part[e] * s->jobs[i].weight / f->sums[e];
	}
}

static bool speeds(struct fill *f)
{
	const struct hd_sched_state *s = f->pg->seen->state;
	double most = 0;

	for (uint32_t i = 0; i < s->njobs; i++) {
		f->g[i] = f->w[i] / s->jobs[i].scale;
		most = fmax(most, f->g[i]);
	}
	for (uint32_t i = 0; i < s->njobs && most > 0; i++)
		f->g[i] /= most;
	return most > 0;
}

static enum hd_err level(struct fill *f)
{
	struct hd_policy_lp *pg = f->pg;

	enum hd_err err = hd_program_level(pg, f->g);

	/* What the last level reached holds to the tolerance of the solver, and its errors add up. */
	for (double slack = 1e-11; !err && slack < 1e-7; slack *= 10) {
		for (uint32_t i = 0; i < pg->seen->state->njobs; i++)
			hd_program_promise(pg, i, f->so[i] * (1 - slack));
		err = hd_program_solve(pg);
		if (err == HD_E_AGAIN && pg->last.status == HD_LP_NUMERIC)
			err = HD_OK;
		if (pg->last.status == HD_LP_OPTIMAL)
			break;
	}
	if (!err && pg->last.status != HD_LP_OPTIMAL)
		err = hd_fail(pg->diag, HD_E_AGAIN, "a level of the filling: %s",
			hd_lp_status_text(pg->last.status));
	return err;
}

/* The level that each job has now: no more than the solution found gives it, scaled to keep to time and
 * devices. What the tolerances of the solver promise beyond that, nothing can keep, and prices of
 * thousands make much of it in the levels to come. */
static void reach(struct fill *f, double c)
{
	const struct hd_policy_lp *pg = f->pg;
	const struct hd_sched_state *s = pg->seen->state;
	double over = 1;

	for (uint32_t i = 0; i < s->njobs; i++)
		if (pg->time_row[i] != HD_SCHED_NONE)
			over = fmax(over, pg->last.activity[pg->time_row[i]]);
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (pg->cap_row[j] != HD_SCHED_NONE)
			over = fmax(over, pg->last.activity[pg->cap_row[j]] / s->types[j].n);
	for (uint32_t i = 0; i < s->njobs; i++)
		if (pg->promise_row[i] != HD_SCHED_NONE)
			f->so[i] = fmin(f->so[i] + c * f->g[i],
				(pg->last.activity[pg->promise_row[i]] + c * f->g[i]) / over);
}

static void freeze(struct fill *f)
{
	const struct hd_policy_lp *pg = f->pg;
	uint32_t n = pg->seen->state->njobs, dearest = HD_SCHED_NONE, frozen = 0;
	double c = hd_program_c(pg), most = -1;

	reach(f, c);
	for (uint32_t i = 0; i < n; i++) {
		if (f->g[i] <= 0)
			continue;
		double price = hd_program_l(pg, i) * f->g[i];
		if (price > most) {
			most = price;
			dearest = i;
		}
		f->final[i] = price > HD_PRICED || (!pg->generate && !pg->mixed &&
			f->so[i] >= f->top[i] * (1 - 1e-12));
		frozen += f->final[i];
	}
	/* prices below what counts: the largest of them does */
	if (!frozen)
		f->final[dearest] = true;
}

static enum hd_err memory_of(struct fill *f, struct hd_arena *arena)
{
	const struct hd_sched_state *s = f->pg->seen->state;

	f->final = hd_arena_take(arena, s->njobs, sizeof *f->final);
	f->w = hd_arena_take(arena, s->njobs, sizeof *f->w);
	f->g = hd_arena_take(arena, s->njobs, sizeof *f->g);
	f->top = hd_arena_take(arena, s->njobs, sizeof *f->top);
	f->sums = hd_arena_take(arena, s->nentities, sizeof *f->sums);
	f->part = hd_arena_take(arena, s->nentities, sizeof *f->part);
	f->heads = hd_arena_take(arena, s->nentities, sizeof *f->heads);
	f->level = hd_arena_take(arena, s->nentities, sizeof *f->level);
	if (!f->final || !f->w || !f->g || !f->top || !f->sums || !f->part || !f->heads || !f->level)
		return hd_fail(f->pg->diag, HD_E_NOMEM, "no memory to fill %u jobs", s->njobs);
	return HD_OK;
}

enum hd_err hd_fill(struct hd_policy_lp *pg, bool entities, struct hd_shares *out, double *so)
{
	struct fill f = { .pg = pg, .entities = entities, .so = so };
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = memory_of(&f, pg->arena);
	bool first = true;

	if (!err)
		find_levels(&f);
	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		so[i] = 0;
		f.final[i] = pg->seen->absent[i];
	}
	for (uint32_t k = 0; !err && k < pg->nshapes; k++)
		for (int m = 0; m < pg->shape[k].nmembers; m++)
			f.top[pg->shape[k].member[m]] = fmax(f.top[pg->shape[k].member[m]], pg->gain[k][m]);
	for (; !err; first = false) {
		weigh(&f);
		if (!speeds(&f))
			break;
		err = level(&f);
		if (!err && first)
			err = hd_program_prices(pg, out);
		if (!err)
			freeze(&f);
	}
	for (uint32_t i = 0; !err && i < s->njobs; i++)
		hd_program_promise(pg, i, so[i] * (1 - 1e-9));
	return err;
}
