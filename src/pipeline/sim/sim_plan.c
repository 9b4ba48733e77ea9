#include "pipeline/sim_plan.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/sim/int.h"

const char *const hd_idle_names[HD_NIDLES] = {
#define X(id, name, about) name,
	HD_IDLES(X)
#undef X
};

const char *const hd_memory_names[HD_NMEMORIES] = {
#define X(id, name) name,
	HD_MEMORIES(X)
#undef X
};

enum hd_err hd_stage_costs_even(struct hd_stage_costs *costs, const struct hd_rank_costs *full,
	uint32_t nstages, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_stage_costs c = { .nstages = nstages, .ovl = 1, .comm_tax = 1,
		.stage = hd_arena_take(arena, nstages, sizeof *c.stage) };

	if (full->f < 0 || full->i < 0 || full->w < 0)
		return hd_fail(diag, HD_E_INVAL, "costs are 0 or more");
	if (!c.stage)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %u stages", nstages);
	for (uint32_t s = 0; s < nstages; s++)
		c.stage[s] = (struct hd_stage_cost){ .f = full->f, .i = full->i, .w = full->w, .r = full->f };
	*costs = c;
	return HD_OK;
}

/* A schedule without delays, `steps` times over; virtual nodes count on, versions too. */
static enum hd_err repeat(struct hd_schedule *out, const struct hd_schedule *s, uint32_t steps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o = *s;
	uint64_t nins = 0;
	bool stepped = false;

	for (uint32_t r = 0; r < s->nranks; r++) {
		nins += (uint64_t)s->list[r].len * steps;
		for (uint32_t i = 0; i < s->list[r].len; i++)
			stepped |= s->list[r].at[i].op == HD_INS_STEP;
	}
	if (s->prologue || steps == 0)
		return hd_fail(diag, HD_E_INVAL, "only whole steps are repeated, once or more");
	if (nins > HD_MAX_INS || (uint64_t)steps * s->nvns > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "%u steps make %llu instructions; %d are the most", steps,
			(unsigned long long)nins, HD_MAX_INS);
	o.nvns = s->nvns * steps;
	if (!(o.list = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *o.list)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps", steps);
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct hd_ilist *l = &o.list[r];
		l->cap = s->list[r].len * steps;
		if (!(l->at = hd_arena_take(arena, (size_t)l->cap + 1, sizeof *l->at)))
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps", steps);
		for (uint32_t k = 0; k < steps; k++)
			for (uint32_t i = 0; i < s->list[r].len; i++) {
				struct hd_ins *ins = &l->at[l->len++];
				*ins = s->list[r].at[i];
				ins->vn += hd_ins_uses(ins->op, 'v') ? k * s->nvns : 0;
				ins->ver += stepped && hd_ins_versioned(ins) ? k : 0;
			}
	}
	*out = o;
	return HD_OK;
}

/* All steps in one list a rank, with the transfers that the transport needs. */
static enum hd_err lay_out(struct hd_sim_plan *o, const struct hd_schedule *s,
	const struct hd_sim_setting *set, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool transfers = false;

	if (s->nvns == 0 || s->nstages == 0)
		return hd_fail(diag, HD_E_BADPLAN, "it has no instruction");
	o->steps = set->steps ? set->steps : s->prologue ? 4 + (s->nranks + s->nvns - 1) / s->nvns : 1;
	o->ran = *s;
	if (s->prologue)
		err = hd_schedule_unroll(&o->ran, s, o->steps, arena, diag);
	else if (o->steps > 1)
		err = repeat(&o->ran, s, o->steps, arena, diag);
	for (uint32_t r = 0; r < o->ran.nranks && !err; r++)
		for (uint32_t i = 0; i < o->ran.list[r].len; i++)
			transfers |= sim_is_transfer(o->ran.list[r].at[i].op);
	const struct hd_schedule bare = o->ran;
	if (!err && !transfers && set->transport != HD_TRANSPORT_EAGER)
		err = hd_schedule_comms(&o->ran, &bare, arena, diag);
	o->ran.update = s->update;
	return err;
}

/* Members come to collectives in different orders: no rank stands still, and nothing is summed. */
static enum hd_err check_collectives(const struct plan_sim *x, struct hd_diag *diag)
{
	for (uint32_t c = 0; c < x->ncollectives; c++) {
		const struct sim_collective *k = &x->collective[c];
		for (uint32_t m = 0; !k->done && m < k->nmembers; m++) {
			const struct sim_rank *r = &x->rank[x->member[k->first + m]];
			if (r->at_lane < r->nlane && r->lane[r->at_lane] != c)
				return hd_fail(diag, HD_E_BADPLAN,
					"%s%u never begins: it stands behind another on rank %u",
					hd_ins_row(k->op)->text,
					k->stage, r->number);
		}
	}
	return HD_OK;
}

static enum hd_err check_ended(const struct plan_sim *x, struct hd_diag *diag)
{
	char word[2][48];
	uint32_t stuck[2] = { 0 }, n = 0;

	for (uint32_t r = 0; r < x->s->nranks && n < 2; r++) {
		const struct sim_rank *rank = &x->rank[r];
		if (rank->ended)
			continue;
		struct hd_text text;
		hd_text_fixed(&text, word[n], sizeof word[n]);
		hd_ins_print(&rank->list->at[rank->at], &text);
		stuck[n++] = r;
	}
	if (n == 2)
		return hd_fail(diag, HD_E_BADPLAN,
			"it never ends: rank %u waits at #%u %s, rank %u at #%u %s", stuck[0],
			x->rank[stuck[0]].at, word[0], stuck[1],
			x->rank[stuck[1]].at, word[1]);
	return n ? hd_fail(diag, HD_E_BADPLAN,
		"it never ends: rank %u waits at #%u %s for what no rank makes",
		stuck[0], x->rank[stuck[0]].at, word[0]) :
		check_collectives(x, diag);
}

static void sum_up(struct hd_sim_plan *o, const struct plan_sim *x)
{
	for (uint32_t r = 0; r < x->s->nranks; r++) {
		const struct hd_sim_share *rank = &o->rank[r];
		int64_t idle = rank->last - rank->first - rank->busy;
		o->makespan = x->rank[r].free > o->makespan ? x->rank[r].free : o->makespan;
		o->busiest = rank->busy > o->busiest ? rank->busy : o->busiest;
		o->span_idle = idle > o->span_idle ? idle : o->span_idle;
	}
	for (uint32_t c = 0; c < x->ncollectives; c++)
		o->makespan = x->collective[c].end > o->makespan ? x->collective[c].end : o->makespan;
	for (uint32_t r = 0; r < x->s->nranks; r++)
		o->rank[r].idle[HD_IDLE_DRAIN] = o->makespan - x->rank[r].free;
}

/* Transfers and collectives show when they were under way, not when the rank stood at them. */
static void show_lanes(const struct plan_sim *x)
{
	for (uint32_t r = 0; r < x->s->nranks; r++)
		for (uint32_t i = 0, k = 0, sent = 0, taken = 0; i < x->s->list[r].len; i++) {
			const struct hd_ins *ins = &x->s->list[r].at[i];
			const struct sim_shadow *h = &x->rank[r].shadow;
			if (sim_is_shadow_send(ins) || sim_is_shadow_take(ins)) {
				const struct sim_token *t = &x->act[sim_is_shadow_send(ins) ?
					h->first_sent + sent++ : h->taken[taken++]];
				x->rank[r].span[i] = (struct hd_sim_span){ t->handed, t->there };
			} else if (sim_is_collective(ins->op)) {
				const struct sim_collective *c = &x->collective[x->rank[r].collective[k++]];
				x->rank[r].span[i] = (struct hd_sim_span){ c->start, c->end };
			} else if (sim_is_transfer(ins->op) && sim_moved(x, ins)->channel != SIM_NONE) {
				x->rank[r].span[i] = (struct hd_sim_span){ sim_moved(x, ins)->handed,
					sim_moved(x, ins)->there };
			}
		}
}

static bool list_meetings(struct hd_sim_plan *o, const struct plan_sim *x, struct hd_arena *arena)
{
	o->meeting = hd_arena_take(arena, (size_t)x->ncollectives + 1, sizeof *o->meeting);
	for (uint32_t i = 0; o->meeting && i < x->ncollectives; i++) {
		const struct sim_collective *c = &x->collective[i];
		o->meeting[o->nmeetings++] = (struct hd_sim_meeting){ .op = c->op, .stage = c->stage,
			.bucket = c->bucket, .nmembers = c->nmembers, .last = c->last, .after = c->after,
			.member = x->member + c->first, .start = c->start, .end = c->end,
			.bytes = c->bytes };
	}
	return o->meeting != NULL;
}

static bool list_links(struct hd_sim_plan *o, const struct plan_sim *x, struct hd_arena *arena)
{
	const struct hd_cluster *cluster = x->set->cluster;

	o->link = hd_arena_take(arena, (size_t)x->links.nports / 2 + 1, sizeof *o->link);
	for (uint32_t l = 0; o->link && cluster && l < cluster->nlevels; l++)
		for (uint32_t c = 0; c < cluster->ndevices / x->links.size[l]; c++) {
			const struct sim_port *p = &x->links.port[x->links.first[l] + 2 * c];
			if (p->bytes)
				o->link[o->nlinks++] = (struct hd_sim_link){ l, c, p->bytes, p->busy };
		}
	return o->link != NULL;
}

static bool take(struct hd_sim_plan *o, const struct hd_sim_setting *set, struct hd_arena *arena)
{
	o->rank = hd_arena_take(arena, (size_t)o->ran.nranks + 1, sizeof *o->rank);
	o->step_end = hd_arena_take(arena, o->steps, sizeof *o->step_end);
	o->span = set->spans ? hd_arena_take(arena, (size_t)o->ran.nranks + 1, sizeof *o->span) : NULL;
	o->wait = set->spans ? hd_arena_take(arena, (size_t)o->ran.nranks + 1, sizeof *o->wait) : NULL;
	for (uint32_t r = 0; o->span && r < o->ran.nranks; r++)
		if (!(o->span[r] = hd_arena_take(arena, (size_t)o->ran.list[r].len + 1, sizeof **o->span)))
			return false;
	return o->rank && o->step_end && ((o->span && o->wait) || !set->spans);
}

enum hd_err hd_sim_plan(struct hd_sim_plan *out, const struct hd_schedule *schedule,
	const struct hd_sim_setting *set, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_sim_plan o = { .per_ps = set->per_ps ? set->per_ps : 1 };
	struct plan_sim x = { .s = &o.ran, .set = set, .cost = set->costs->stage, .transport = set->transport,
		.arena = arena, .hop = set->hop,
		.credits = set->credits ? set->credits : HD_CREDITS,
		.links = { .per_ps = o.per_ps, .queue = &x.queue }, .queue = { .arena = arena } };
	enum hd_err err = lay_out(&o, schedule, set, arena, diag);

	if (!err && set->costs->nstages != o.ran.nstages)
		err = hd_fail(diag, HD_E_INVAL, "costs of %u stages for a schedule of %u",
			set->costs->nstages, o.ran.nstages);
	if (err)
		return err;
	struct hd_stage_rule *rule = hd_arena_take(arena, o.ran.nstages, sizeof *rule);
	if (!rule)
		return hd_fail(diag, HD_E_NOMEM, "no memory to simulate %u stages", o.ran.nstages);
	err = hd_stage_rules(rule, schedule, set->job, diag);
	if (err)
		return err;
	x.rule = rule;
	x.nsteps = o.steps;
	x.step_vns = o.ran.nvns / o.steps;
	err = hd_sim_build(&x, diag);
	if (err)
		return err;
	if (!take(&o, set, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to simulate %llu instructions",
			(unsigned long long)x.nins);
	x.step_end = o.step_end;
	for (uint32_t r = 0; r < o.ran.nranks; r++) {
		x.rank[r].out = &o.rank[r];
		o.rank[r].host = x.rank[r].shadow.host;
		x.rank[r].span = o.span ? o.span[r] : NULL;
		x.rank[r].wait = o.wait ? &o.wait[r] : NULL;
	}
	hd_sim_run(&x);
	if (x.queue.full || x.links.full || !list_links(&o, &x, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to simulate %llu instructions",
			(unsigned long long)x.nins);
	if (x.beyond)
		return hd_fail(diag, HD_E_INVAL,
			"it takes more than %.3g s (2^62 ticks), the most that is simulated: %s",
			hd_sim_plan_s(&o, SIM_LONGEST), x.beyond);
	err = check_ended(&x, diag);
	if (err)
		return err;
	sum_up(&o, &x);
	if (o.span)
		show_lanes(&x);
	if (o.span && !list_meetings(&o, &x, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u meetings", x.ncollectives);
	o.nins = x.nins;
	*out = o;
	return HD_OK;
}

double hd_sim_plan_rate(const struct hd_sim_plan *sim)
{
	uint32_t first = sim->steps < 4 ? 0 : 2;
	int64_t took = sim->step_end[sim->steps - 1] - (first ? sim->step_end[first - 1] : 0);

	return took ? (double)(sim->ran.nvns / sim->steps * (sim->steps - first)) / hd_sim_plan_s(sim, took) :
		0;
}

/* ---- warnings */

#define SAY(...) ((void)(n < cap && snprintf(out[n++].text, sizeof out->text, __VA_ARGS__)))

/* The busiest rank against the mean of those that work. */
static double imbalance(const struct hd_sim_plan *sim)
{
	double sum = 0;
	uint32_t working = 0;

	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		sum += (double)sim->rank[r].busy;
		working += sim->rank[r].busy > 0;
	}
	return sum > 0 ? (double)sim->busiest * working / sum - 1 : 0;
}

uint32_t hd_sim_plan_warnings(const struct hd_sim_plan *sim, struct hd_sim_warning *out, uint32_t cap)
{
	double bubble = hd_sim_plan_bubble(sim), uneven = imbalance(sim);
	uint32_t n = 0;

	if (bubble > 0.5)
		SAY("the bubble is %.0f %% of the busiest rank's work: more virtual nodes a step, or fewer "
			"ranks, make it smaller", 100 * bubble);
	if (uneven > 0.25)
		SAY("the slowest rank works %.0f %% longer than the mean of all: other cuts would balance "
			"the stages", 100 * uneven);
	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		if (sim->rank[r].busy == 0)
			SAY("rank %u has no work", r);
	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		if (2 * sim->rank[r].at_peak[HD_MEMORY_VERSIONS] > sim->rank[r].peak)
			SAY("rank %u: older versions of weights are %lld of its %lld bytes at most", r,
				(long long)sim->rank[r].at_peak[HD_MEMORY_VERSIONS],
				(long long)sim->rank[r].peak);
	return n;
}
