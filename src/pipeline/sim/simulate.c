#include "pipeline/simulate.h"

#include <string.h>

#include "pipeline/redundancy.h"

/* No queue of events: with fixed hops the start of an instruction depends only on the ends of what it
 * needs, so any order that respects needs computes the same times. A rank runs until something is
 * missing, leaves its number there, and is continued by the producer: each instruction is looked
 * at once, plus once for each wait. */

struct ready_token { int64_t end; uint16_t rank, waiter; uint32_t unused; };       /* waiter: rank + 1 */
#define NOT_YET INT64_MIN

struct ready_rank {
	const struct hd_ilist *list;
	struct hd_sim_rank *out;
	struct hd_sim_span *span;                 /* NULL: not asked for */
	int64_t now;
	uint32_t at, live, number;
	struct ready_token *waits;                      /* for, or NULL */
};

struct schedule_sim {
	const struct hd_schedule *s;
	/* [stages * vns]: output of F; input gradient of B or I */
	struct ready_token *act, *grad;
	struct ready_rank *rank;
	uint32_t *ready, nready;                  /* ranks that can go on */
	int64_t cost[HD_INS_END], hop;
	int64_t *step_end;
	uint32_t step_vns;
	bool crowded;                             /* two ranks wait for one tensor */
};

static size_t index_of(const struct schedule_sim *sim, const struct hd_ins *ins) { return (size_t)ins->stage *
	sim->s->nvns + ins->vn; }

/* When a token is there for the rank; false: not made yet, and the rank is noted. */
static bool fetch(struct schedule_sim *sim, struct ready_rank *r, struct ready_token *t, int64_t *start)
{
	if (t->end == NOT_YET) {
		sim->crowded |= t->waiter && t->waiter != r->number + 1;
		t->waiter = (uint16_t)(r->number + 1);
		r->waits = t;
		return false;
	}
	int64_t there = t->rank == r->number ? t->end : t->end + sim->hop;
	*start = there > *start ? there : *start;
	return true;
}

static bool needs(struct schedule_sim *sim, struct ready_rank *r, const struct hd_ins *ins, int64_t *start)
{
	size_t i = index_of(sim, ins);

	switch (ins->op) {
	case HD_INS_F:
		return ins->stage == 0 || fetch(sim, r, &sim->act[i - sim->s->nvns], start);
	case HD_INS_B: case HD_INS_I:
		return fetch(sim, r, &sim->act[i], start) &&
			(ins->stage + 1u == sim->s->nstages ||
			fetch(sim, r, &sim->grad[i + sim->s->nvns], start));
	case HD_INS_W:
		return fetch(sim, r, &sim->grad[i], start);
	default:
		return true;
	}
}

static void make(struct schedule_sim *sim, const struct ready_rank *r, struct ready_token *t, int64_t end)
{
	t->end = end;
	t->rank = (uint16_t)r->number;
	if (t->waiter) {
		struct ready_rank *other = &sim->rank[t->waiter - 1u];
		t->waiter = 0;
		if (other->waits == t) {
			other->waits = NULL;
			sim->ready[sim->nready++] = other->number;
		}
	}
}

static void finish_one(struct schedule_sim *sim, struct ready_rank *r, const struct hd_ins *ins, int64_t end)
{
	if (ins->op == HD_INS_F)
		make(sim, r, &sim->act[index_of(sim, ins)], end);
	else if (ins->op == HD_INS_B || ins->op == HD_INS_I)
		make(sim, r, &sim->grad[index_of(sim, ins)], end);
	r->live -= r->live && (ins->op == HD_INS_B || ins->op == HD_INS_W);
	if (sim->step_end && sim->step_end[ins->vn / sim->step_vns] < end)
		sim->step_end[ins->vn / sim->step_vns] = end;
}

/* One instruction, or a pair. False: it has to wait. */
static bool execute(struct schedule_sim *sim, struct ready_rank *r)
{
	const struct hd_ins *ins = &r->list->at[r->at];
	uint32_t n = ins->flags & HD_INS_PAIR_BEGIN && r->at + 1 < r->list->len ? 2 : 1;
	int64_t start = r->now, cost = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (!needs(sim, r, &ins[k], &start))
			return false;
		cost += sim->cost[ins[k].op];
	}
	for (uint32_t k = 0; k < n; k++)
		r->live += ins[k].op == HD_INS_F;
	if (r->live > r->out->peak)
		r->out->peak = r->live;
	r->now = start + cost;
	if (cost && r->out->busy == 0)
		r->out->first = start;
	if (cost)
		r->out->last = r->now;
	r->out->busy += cost;
	for (uint32_t k = 0; k < n; k++) {
		if (r->span)
			r->span[r->at + k] = (struct hd_sim_span){ start, r->now };
		finish_one(sim, r, &ins[k], r->now);
	}
	r->at += n;
	return true;
}

static void run(struct schedule_sim *sim)
{
	for (uint32_t r = sim->s->nranks; r-- > 0;)
		sim->ready[sim->nready++] = r;
	while (sim->nready) {
		struct ready_rank *r = &sim->rank[sim->ready[--sim->nready]];
		while (r->at < r->list->len && execute(sim, r))
			;
	}
}

static enum hd_err check_done(const struct schedule_sim *sim, struct hd_diag *diag)
{
	char word[2][48];
	uint32_t stuck[2] = { 0 }, n = 0;

	for (uint32_t r = 0; r < sim->s->nranks; r++) {
		const struct ready_rank *rank = &sim->rank[r];
		if (rank->at == rank->list->len)
			continue;
		struct hd_text text;
		hd_text_fixed(&text, word[n], sizeof word[n]);
		hd_ins_print(&rank->list->at[rank->at], &text);
		stuck[n++] = r;
		if (n == 2)
			break;
	}
	if (n == 2)
		return hd_fail(diag, HD_E_BADPLAN,
			"it never ends: rank %u waits at #%u %s, rank %u at #%u %s", stuck[0],
			sim->rank[stuck[0]].at, word[0],
			stuck[1], sim->rank[stuck[1]].at, word[1]);
	if (n)
		return hd_fail(diag, HD_E_BADPLAN,
			"it never ends: rank %u waits at #%u %s for what no rank makes", stuck[0],
			sim->rank[stuck[0]].at, word[0]);
	return sim->crowded ? hd_fail(diag, HD_E_BADPLAN, "two ranks wait for the same tensor") : HD_OK;
}

/* Costs in ticks of 1/v ps: a chunk's share of the rank's cost is the cost itself. */
static enum hd_err set_costs(struct schedule_sim *sim, const struct hd_rank_costs *c, uint32_t v,
	uint64_t nins,
	struct hd_diag *diag)
{
	if (c->f < 0 || c->i < 0 || c->w < 0 || c->hop < 0)
		return hd_fail(diag, HD_E_INVAL, "costs are 0 or more");
	if (c->f > INT64_MAX / 8 || c->i > INT64_MAX / 8 || c->w > INT64_MAX / 8 ||
		c->hop > INT64_MAX / 8 / v ||
	    ((double)c->f + (double)c->i + (double)c->w + (double)c->hop * v) * (double)(nins + 1) > 0x1p62)
		return hd_fail(diag, HD_E_INVAL, "%llu instructions of such costs pass 2^62 ps",
			(unsigned long long)nins);
	sim->cost[HD_INS_F] = c->f;
	sim->cost[HD_INS_I] = c->i;
	sim->cost[HD_INS_W] = c->w;
	sim->cost[HD_INS_B] = c->i + c->w;
	sim->hop = c->hop * v;
	return HD_OK;
}

/* Every index that the lists hold is one of the tokens, which are no more than the instructions allow. */
static enum hd_err check_bounds(const struct hd_schedule *s, uint64_t *nins, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (hd_ins_uses(ins->op, 'v') && (ins->vn >= s->nvns || ins->stage >= s->nstages))
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: virtual node %d of stage %u does not exist in this "
					"step (m = %u)", r, i,
					(int32_t)ins->vn, ins->stage, s->nvns);
		}
	*nins = 0;
	for (uint32_t r = 0; r < s->nranks; r++)
		*nins += s->list[r].len;
	if ((uint64_t)s->nstages * s->nvns > *nins)
		return hd_fail(diag, HD_E_BADPLAN,
			"%u stages of %u virtual nodes need more than its %llu instructions", s->nstages,
			s->nvns,
			(unsigned long long)*nins);
	return HD_OK;
}

static struct ready_token *take_tokens(const struct hd_schedule *s, struct hd_arena *arena)
{
	size_t n = (size_t)s->nstages * s->nvns;
	struct ready_token *t = hd_arena_take(arena, n + 1, sizeof *t);

	for (size_t i = 0; t && i < n; i++)
		t[i].end = NOT_YET;
	return t;
}

static bool take(struct schedule_sim *sim, struct hd_sim *out, bool spans, struct hd_arena *arena)
{
	const struct hd_schedule *s = sim->s;

	sim->act = take_tokens(s, arena);
	sim->grad = take_tokens(s, arena);
	sim->rank = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *sim->rank);
	sim->ready = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *sim->ready);
	out->rank = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *out->rank);
	out->step_end = hd_arena_take(arena, out->steps, sizeof *out->step_end);
	out->span = spans ? hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *out->span) : NULL;
	if (!sim->act || !sim->grad || !sim->rank || !sim->ready || !out->rank || !out->step_end ||
		(spans && !out->span))
		return false;
	for (uint32_t r = 0; r < s->nranks; r++) {
		sim->rank[r] = (struct ready_rank){ .list = &s->list[r], .out = &out->rank[r], .number = r };
		if (spans && !(sim->rank[r].span = out->span[r] = hd_arena_take(arena,
			(size_t)s->list[r].len + 1, sizeof **out->span)))
			return false;
	}
	return true;
}

static void sum_up(struct hd_sim *out)
{
	for (uint32_t r = 0; r < out->ran.nranks; r++) {
		const struct hd_sim_rank *rank = &out->rank[r];
		int64_t idle = rank->last - rank->first - rank->busy;
		out->makespan = rank->last > out->makespan ? rank->last : out->makespan;
		out->busiest = rank->busy > out->busiest ? rank->busy : out->busiest;
		out->span_idle = idle > out->span_idle ? idle : out->span_idle;
	}
}

enum hd_err hd_simulate(struct hd_sim *out, const struct hd_schedule *schedule, const struct hd_sim_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_sim o = { .ran = *schedule, .steps = 1 };
	struct schedule_sim sim = { .s = &o.ran };
	enum hd_err err = HD_OK;

	if (schedule->nvns == 0)
		return hd_fail(diag, HD_E_BADPLAN, "it has no instruction");
	if (hd_redundancy_in(schedule))
		return hd_fail(diag, HD_E_INVAL, "it has shadow stages, which only the full simulator knows");
	if (schedule->prologue) {
		o.steps = ask->steps ? ask->steps : 4 + (schedule->nranks + schedule->nvns -
			1) / schedule->nvns;
		err = hd_schedule_unroll(&o.ran, schedule, o.steps, arena, diag);
	}
	o.per_ps = o.per_rank = o.ran.nranks ? (o.ran.nstages + o.ran.nranks - 1) / o.ran.nranks : 1;
	err = err ? err : check_bounds(&o.ran, &o.nins, diag);
	err = err ? err : set_costs(&sim, &ask->costs, o.per_ps, o.nins, diag);
	if (!err && !take(&sim, &o, ask->spans, arena))
		err = hd_fail(diag, HD_E_NOMEM, "no memory to simulate %llu instructions",
			(unsigned long long)o.nins);
	if (err)
		return err;
	sim.step_end = o.steps > 1 ? o.step_end : NULL;
	sim.step_vns = o.ran.nvns / o.steps;
	run(&sim);
	err = check_done(&sim, diag);
	sum_up(&o);
	if (!err)
		*out = o;
	return err;
}

double hd_sim_steady_bubble(const struct hd_sim *sim, const struct hd_rank_costs *costs)
{
	int64_t took = sim->step_end[sim->steps - 1] - sim->step_end[1];
	int64_t ideal = (int64_t)(sim->ran.nvns / sim->steps) * (sim->steps - 2) *
		(costs->f + costs->i + costs->w);

	return (double)(took - ideal) / (double)ideal;
}

/* ---- steps of delayed updates one after the other */

/* Of a rank: how many versions of each stage a period makes (or, before updates are added, pins). */
struct pace { uint32_t *made, *pinned, most; };

static void find_pace(struct pace *pace, const struct hd_ilist *period, uint32_t nstages)
{
	memset(pace->made, 0, nstages * sizeof *pace->made);
	memset(pace->pinned, 0, nstages * sizeof *pace->pinned);
	pace->most = 0;
	for (uint32_t i = 0; i < period->len; i++) {
		const struct hd_ins *ins = &period->at[i];
		if ((ins->op != HD_INS_STEP && ins->op != HD_INS_PIN) || ins->stage >= nstages)
			continue;
		uint32_t n = ++(ins->op == HD_INS_STEP ? pace->made : pace->pinned)[ins->stage];
		pace->most = n > pace->most ? n : pace->most;
	}
}

/* Virtual nodes and versions of a section that begins `step` steps after the first. Versions before 0 are
 * the initial weights. */
static void copy(struct hd_ilist *to, const struct hd_ilist *from, uint32_t step, uint32_t m,
	const struct pace *pace, uint32_t nstages)
{
	for (uint32_t i = 0; i < from->len; i++) {
		struct hd_ins *ins = &to->at[to->len++];
		*ins = from->at[i];
		if (hd_ins_uses(ins->op, 'v'))
			ins->vn += step * m;
		if (!hd_ins_versioned(ins))
			continue;
		uint32_t s = ins->stage, n = !hd_ins_uses(ins->op, 's') ||
			s >= nstages ? pace->most : pace->made[s] ? pace->made[s] : pace->pinned[s];
		int64_t version = hd_ver_value(ins->ver) + (int64_t)n * step;
		ins->ver = version < 0 ? 0 : version > INT32_MAX ? INT32_MAX : (uint32_t)version;
	}
}

/* F of rank 0 says it. */
uint32_t hd_schedule_prologue_steps(const struct hd_schedule *s)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < s->prologue[0].len; i++)
		if (s->prologue[0].at[i].op == HD_INS_F && s->prologue[0].at[i].vn / s->nvns >= first)
			first = s->prologue[0].at[i].vn / s->nvns + 1;
	return first;
}

enum hd_err hd_schedule_unroll(struct hd_schedule *out, const struct hd_schedule *s, uint32_t steps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o = { .heading = s->heading, .nranks = s->nranks };
	uint32_t m = s->nvns, first = hd_schedule_prologue_steps(s);
	struct pace pace = { .made = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *pace.made) };
	uint64_t nins = 0;

	pace.pinned = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *pace.pinned);
	if (steps < first || steps == 0)
		return hd_fail(diag, HD_E_INVAL, "the prologue takes %u steps, %u are asked for", first,
			steps);
	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->prologue[r].len + (uint64_t)s->list[r].len * (steps - first) + s->epilogue[r].len;
	if (nins > HD_MAX_INS || (uint64_t)steps * m > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "%u steps make %llu instructions; %d are the most", steps,
			(unsigned long long)nins, HD_MAX_INS);
	o.list = pace.made && pace.pinned ? hd_arena_take(arena, s->nranks, sizeof *o.list) : NULL;
	for (uint32_t r = 0; o.list && r < s->nranks; r++) {
		struct hd_ilist *l = &o.list[r];
		l->cap = s->prologue[r].len + s->list[r].len * (steps - first) + s->epilogue[r].len;
		if (!(l->at = hd_arena_take(arena, (size_t)l->cap + 1, sizeof *l->at)))
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps", steps);
		find_pace(&pace, &s->list[r], s->nstages);
		copy(l, &s->prologue[r], 0, m, &pace, s->nstages);
		for (uint32_t k = first; k < steps; k++)
			copy(l, &s->list[r], k, m, &pace, s->nstages);
		copy(l, &s->epilogue[r], steps, m, &pace, s->nstages);
	}
	if (!o.list)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps", steps);
	enum hd_err err = hd_schedule_infer(&o, arena, diag);
	if (!err && o.nvns != steps * m)
		err = hd_fail(diag, HD_E_BADPLAN, "%u steps of %u virtual nodes make %u, not %u", steps, m,
			o.nvns, steps * m);
	if (!err)
		*out = o;
	return err;
}
