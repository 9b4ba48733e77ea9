#include "pipeline/sim_window.h"

#include "pipeline/sim/int.h"
#include "pipeline/window.h"

/* One fills, one is drained; that before the last is cut out. */
enum { STEPS = 5, CUT_OUT = STEPS - 2 };

struct cutting {
	const struct hd_sim_plan *all;
	struct hd_sim_plan *out;
	uint32_t nvns;
	int64_t from, until;
	uint32_t *meeting;                /* of all: which one of the step, or HD_NO_MEETING */
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to simulate steps that overlap");
}

/* ---- steps in a row */

/* Where stages share weights their gradients are summed before the norm. */
static void put_ties(struct hd_ilist *all, const struct hd_stage_costs *costs, uint32_t r)
{
	for (uint32_t g = 0; g < costs->ntied; g++)
		if (costs->tied[g].holds[r])
			all->at[all->len++] = (struct hd_ins){ .op = HD_INS_TIE, .stage = (uint16_t)g };
}

static enum hd_err join_steps(struct hd_ilist *all, const struct hd_sim_windowed *ask, uint32_t r,
	const struct hd_stage_costs *costs, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t most = STEPS * (7 * (ask->nvns + 2 * ask->p) + 3 + costs->ntied);
	struct hd_ilist one;
	enum hd_err err = HD_OK;

	*all = (struct hd_ilist){ hd_arena_take(arena, most, sizeof *all->at), 0, most };
	if (!all->at)
		return no_memory(diag);
	for (uint32_t t = 0; t < STEPS && !err; t++) {
		const struct hd_window window = { .p = ask->p, .nvns = ask->nvns, .ahead = t > 0,
			.goes_on = t + 1 < STEPS, .again = ask->again && ask->again[r] };
		err = hd_window_list(&one, &window, r, arena, diag);
		for (uint32_t i = 0; i < one.len && !err; i++) {
			if (one.at[i].op == HD_INS_NORM)
				put_ties(all, costs, r);
			struct hd_ins *ins = &all->at[all->len++];
			*ins = one.at[i];
			ins->vn += hd_ins_uses(ins->op, 'v') ? t * ask->nvns : 0;
		}
	}
	return err;
}

/* ---- one of them */

/* The instruction behind the norm of step t. */
static uint32_t behind_norm(const struct hd_ilist *list, uint32_t t)
{
	uint32_t i = 0;

	for (uint32_t n = 0; n <= t; i++)
		n += list->at[i].op == HD_INS_NORM;
	return i;
}

/* Which of its kind it is: each step has one. */
static uint32_t step_of(const struct hd_sim_plan *all, uint32_t meeting)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < meeting; i++)
		n += all->meeting[i].op == all->meeting[meeting].op &&
			all->meeting[i].stage == all->meeting[meeting].stage;
	return n;
}

/* When the norm of step t is there. */
static int64_t end_of(const struct hd_sim_plan *all, uint32_t t)
{
	uint32_t i = 0;

	while (all->meeting[i].op != HD_INS_NORM || step_of(all, i) != t)
		i++;
	return all->meeting[i].end;
}

static int64_t in_step(const struct cutting *c, int64_t time)
{
	return time < c->from ? 0 : time > c->until ? c->until - c->from : time - c->from;
}

static bool cut_waits(const struct cutting *c, uint32_t r, uint32_t first, uint32_t end)
{
	const struct hd_sim_waits *all = &c->all->wait[r];
	struct hd_sim_waits *to = &c->out->wait[r];
	struct hd_sim_share *rank = &c->out->rank[r];

	*to = (struct hd_sim_waits){ hd_arena_take(c->arena, (size_t)all->n + 1, sizeof *to->at), 0, all->n };
	for (uint32_t i = 0; i < all->n && to->at; i++) {
		struct hd_sim_wait wait = all->at[i];
		if (wait.at < first || wait.at >= end)
			continue;
		wait.at -= first;
		wait.start = in_step(c, wait.start);
		wait.end = in_step(c, wait.end);
		wait.since = in_step(c, wait.since);
		wait.meeting = wait.meeting == HD_NO_MEETING ? HD_NO_MEETING : c->meeting[wait.meeting];
		wait.why = wait.why == HD_IDLE_WARM_UP ? HD_IDLE_DEPENDENCY : wait.why;
		rank->idle[wait.why] += wait.end - wait.start;
		to->at[to->n++] = wait;
	}
	return to->at != NULL;
}

static bool cut_rank(const struct cutting *c, uint32_t r)
{
	const struct hd_ilist *all = &c->all->ran.list[r];
	const uint32_t first = behind_norm(all, CUT_OUT - 1), end = behind_norm(all, CUT_OUT);
	struct hd_ilist *list = &c->out->ran.list[r];
	struct hd_sim_span *span = hd_arena_take(c->arena, end - first, sizeof *span);
	struct hd_sim_share *rank = &c->out->rank[r];

	*list = (struct hd_ilist){ hd_arena_take(c->arena, end - first, sizeof *list->at), end - first,
		end - first };
	c->out->span[r] = span;
	*rank = c->all->rank[r];
	rank->busy = rank->first = 0;
	rank->last = c->out->makespan;
	for (int why = 0; why < HD_NIDLES; why++)
		rank->idle[why] = 0;
	if (!list->at || !span || !cut_waits(c, r, first, end))
		return false;
	for (uint32_t i = first; i < end; i++) {
		struct hd_ins *ins = &list->at[i - first];
		*ins = all->at[i];
		ins->vn -= hd_ins_uses(ins->op, 'v') ? CUT_OUT * c->nvns : 0;
		span[i - first] = (struct hd_sim_span){ in_step(c, c->all->span[r][i].start),
			in_step(c, c->all->span[r][i].end) };
		if (!sim_is_transfer(ins->op) && !sim_is_collective(ins->op))
			rank->busy += span[i - first].end - span[i - first].start;
	}
	c->out->nins += list->len;
	c->out->busiest = rank->busy > c->out->busiest ? rank->busy : c->out->busiest;
	c->out->span_idle = c->out->makespan - rank->busy > c->out->span_idle ?
		c->out->makespan - rank->busy : c->out->span_idle;
	return true;
}

static bool cut_meetings(struct cutting *c)
{
	const struct hd_sim_plan *all = c->all;
	struct hd_sim_plan *o = c->out;

	c->meeting = hd_arena_take(c->arena, all->nmeetings, sizeof *c->meeting);
	o->meeting = hd_arena_take(c->arena, all->nmeetings, sizeof *o->meeting);
	for (uint32_t i = 0; c->meeting && o->meeting && i < all->nmeetings; i++) {
		c->meeting[i] = HD_NO_MEETING;
		if (step_of(all, i) != CUT_OUT)
			continue;
		struct hd_sim_meeting *m = &o->meeting[o->nmeetings];
		*m = all->meeting[i];
		m->start = in_step(c, m->start);
		m->end = in_step(c, m->end);
		m->after = m->after == HD_NO_MEETING ? HD_NO_MEETING : c->meeting[m->after];
		c->meeting[i] = o->nmeetings++;
	}
	return c->meeting && o->meeting;
}

static enum hd_err cut_out(struct cutting *c)
{
	const struct hd_sim_plan *all = c->all;
	struct hd_sim_plan *o = c->out;
	const uint32_t n = all->ran.nranks;

	*o = (struct hd_sim_plan){ .ran = all->ran, .per_ps = all->per_ps, .steps = 1,
		.makespan = c->until - c->from, .nlinks = all->nlinks,
		.rank = hd_arena_take(c->arena, n, sizeof *o->rank),
		.link = hd_arena_take(c->arena, (size_t)all->nlinks + 1, sizeof *o->link),
		.step_end = hd_arena_take(c->arena, 1, sizeof *o->step_end),
		.span = hd_arena_take(c->arena, n, sizeof *o->span),
		.wait = hd_arena_take(c->arena, n, sizeof *o->wait) };
	o->ran.nvns = c->nvns;
	o->ran.list = hd_arena_take(c->arena, n, sizeof *o->ran.list);
	if (!o->rank || !o->link || !o->step_end || !o->span || !o->wait || !o->ran.list || !cut_meetings(c))
		return no_memory(c->diag);
	*o->step_end = o->makespan;
	for (uint32_t i = 0; i < all->nlinks; i++) {
		o->link[i] = all->link[i];
		o->link[i].bytes /= STEPS;
		o->link[i].busy /= STEPS;
	}
	for (uint32_t r = 0; r < n; r++)
		if (!cut_rank(c, r))
			return no_memory(c->diag);
	return HD_OK;
}

enum hd_err hd_sim_window(struct hd_sim_plan *out, const struct hd_sim_windowed *ask,
	const struct hd_sim_setting *set, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t p = ask->p;
	struct hd_schedule s = { .heading = "", .nranks = p, .nvns = STEPS * ask->nvns, .nstages = p,
		.update = HD_UPDATE_2BW, .list = hd_arena_take(arena, p, sizeof *s.list),
		.place = hd_arena_take(arena, p, sizeof *s.place) };
	struct hd_stage_rule *rule = hd_arena_take(arena, p, sizeof *rule);
	const struct hd_schedule_job job = { .rule = rule };
	struct hd_sim_setting with = *set;
	struct hd_sim_plan all;
	enum hd_err err = HD_OK;

	if (!hd_window_fits(p, ask->nvns))
		return hd_fail(diag, HD_E_INVAL,
			"steps overlap from 2 (p - 1) virtual nodes on, and not for p = %u, m = %u", p,
			ask->nvns);
	if (!s.list || !s.place || !rule)
		return no_memory(diag);
	with.steps = 0;
	with.spans = true;
	with.job = &job;
	for (uint32_t r = 0; r < p && !err; r++) {
		s.place[r] = r;
		rule[r] = (struct hd_stage_rule){ ask->nvns, r + 1 < p || !ask->last_reads_newest };
		err = join_steps(&s.list[r], ask, r, set->costs, arena, diag);
	}
	err = err ? err : hd_sim_plan(&all, &s, &with, arena, diag);
	if (err)
		return err;
	struct cutting c = { .all = &all, .out = out, .nvns = ask->nvns, .from = end_of(&all, CUT_OUT - 1),
		.until = end_of(&all, CUT_OUT), .arena = arena, .diag = diag };
	return cut_out(&c);
}
