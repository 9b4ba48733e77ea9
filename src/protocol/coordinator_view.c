#include "protocol/coordinator_int.h"

#include <assert.h>
#include <string.h>

/* An unplanned change: FENCE, then STATUS of all that may have part in the open step, then VIEW. The answers:
 *
 *	k = least `at` of the members. Members at k have not sealed k; those at k + 1 have, and hold all its
 *	sums. If no member began k or is beyond it, the new view begins with k.
 *	Else step k is finished: holders publish each sum and the table. If a bucket or the table has no
 *	holder, what no survivor computed is dealt out as further passes; of stages, and in lockstep, k begins
 *	again.
 *
 * What ranks send one another is in lists (docs/adr/0107), and a step that is finished is finished with those
 * in which it was begun, while its view has others: that view is of this step alone (ADR 141).
 *
 * A member behind a step that its whole view must have finished is of no view any more: it was to leave, and
 * lacks a last message. Passes of survivors never overlap: they come from one view, or from one VIEW that
 * covered what was missing then. */

static void ask(struct hd_coordinator *co, const struct hd_co_worker *w, uint32_t epoch)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_FENCE);
	uint32_t *dead = msg ? hd_arena_take(&co->out, HD_MAX_MEMBERS, sizeof *dead) : NULL;

	if (!dead) {
		co->broken = true;
		return;
	}
	assert(epoch && epoch <= co->record.epoch);
	msg->epoch = epoch;
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (co->worker[i].state == HD_W_OUT && co->has_view &&
			hd_view_has(&co->view, co->worker[i].worker))
			dead[msg->fence.ndead++] = co->worker[i].worker;
	msg->fence.dead = dead;
	hd_co_send(co, w, msg);
}

static bool takes_part(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	if (w->state == HD_W_MEMBER)
		return true;
	return w->state == HD_W_READY && (w->up || w->decided) && (!co->record.started || co->has_view);
}

void hd_co_fence(struct hd_coordinator *co, int64_t patience_ns)
{
	assert(co->phase != HD_CO_OVER);
	if (co->phase == HD_CO_ENDING || co->phase == HD_CO_RESTORING)
		return;
	hd_co_void(co);
	co->mend = false;
	co->fence_for_ns = patience_ns;
	co->record.epoch++;
	co->phase = HD_CO_FENCING;
	co->phase_serial = hd_co_store(co);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		co->worker[i].asked = false;
		co->worker[i].answer.said = false;
	}
}

const uint32_t *hd_co_places(struct hd_coordinator *co, const struct hd_view *view, uint32_t *n)
{
	const struct hd_view_shape *s = &view->shape;
	uint32_t *place = s->nstages ? hd_arena_take(&co->out, s->nstages, sizeof *place) : NULL;

	*n = place ? s->nstages : 0;
	co->broken |= s->nstages && !place;
	for (uint32_t i = 0; i < *n; i++)
		place[i] = s->place[i];
	return place;
}

static void view_say(struct hd_coordinator *co, struct hd_co_worker *w)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_VIEW);

	if (!msg)
		return;
	assert(co->has_view);
	msg->epoch = co->view_epoch;
	msg->view = co->open;
	msg->view.width = co->view.shape.width;
	msg->view.schedule = co->view.shape.schedule;
	msg->view.way = hd_view_way(&co->view.shape);
	msg->view.place = hd_co_places(co, &co->view, &msg->view.nplace);
	msg->view.first = co->view.shape.first;
	msg->view.nfirst = hd_view_nfirst(&co->view.shape);
	hd_co_send(co, w, msg);
}

/* A view to repeat; after a planned change there is none, and `view_epoch` is 0. */
static bool may_repeat(const struct hd_coordinator *co, uint32_t worker)
{
	return co->phase == HD_CO_IDLE && co->view_epoch && co->view_epoch == co->view.epoch &&
		hd_view_has(&co->view, worker);
}

void hd_co_ask(struct hd_coordinator *co, struct hd_co_worker *w)
{
	if (co->phase == HD_CO_ASKING) {
		ask(co, w, co->record.epoch);
	} else if (may_repeat(co, w->worker)) {
		/* a member that did not receive it is held: it answers, and gets the view. A planned
		 * change that was void has taken a later number */
		ask(co, w, co->view_epoch);
		view_say(co, w);
	}
}

/* ---- from the answers to a view ---- */

struct view_verdict {
	struct hd_co_worker *member[HD_MAX_MEMBERS];
	uint32_t n;
	uint64_t step, halt;
	bool open;                                        /* a member began the step, or sealed it */
};

static void sort_in(struct view_verdict *v, struct hd_co_worker *w)
{
	uint32_t i = v->n;

	if (v->n == HD_MAX_MEMBERS)
		return;
	for (; i && v->member[i - 1]->worker > w->worker; i--)
		v->member[i] = v->member[i - 1];
	assert(!i || v->member[i - 1]->worker < w->worker);
	v->member[i] = w;
	v->n++;
}

static bool answers_as_member(const struct hd_co_worker *w)
{
	return hd_co_is_here(w) && w->answer.said && w->answer.member;
}

/* A member that begins s knows that its whole view sealed s - 1; so does one that sealed s, which it
 * began. */
static void let_go(struct hd_coordinator *co)
{
	uint64_t least = 0;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		uint64_t began = w->answer.begun || !w->answer.at ? w->answer.at : w->answer.at - 1;
		if (answers_as_member(w) && began > least)
			least = began;
	}
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (!answers_as_member(w) || w->answer.at >= least)
			continue;
		hd_co_release(co, w, w->draining ? 75 : 0, "this worker left the job");
		hd_co_left(co, w);
	}
}

static void judge(struct hd_coordinator *co, struct view_verdict *v)
{
	uint64_t most = 0;

	*v = (struct view_verdict){ .step = UINT64_MAX, .halt = HD_NO_STEP };
	let_go(co);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (!answers_as_member(w))
			continue;
		sort_in(v, w);
		v->step = w->answer.at < v->step ? w->answer.at : v->step;
		most = w->answer.at > most ? w->answer.at : most;
	}
	/* one that halted before a step that another has finished was of a view without that other */
	for (uint32_t i = 0; i < v->n; i++)
		if (v->member[i]->answer.halted && v->member[i]->answer.at == most)
			v->halt = most;
	for (uint32_t i = 0; i < v->n; i++)
		v->open |= v->member[i]->answer.at > v->step || v->member[i]->answer.begun;
}

static bool bit(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> i % 64 & 1; }

/* A member that sealed the step has all sums; with sharded state those of its chains, and all new
 * parameters. */
static bool has_sum(const struct hd_coordinator *co, const struct hd_co_worker *w, uint64_t step,
	uint32_t bucket)
{
	if (w->answer.at > step)
		return w->answer.prev && (!hd_co_is_partial(co) || bit(w->answer.sum, bucket));
	return w->answer.begun && bit(w->answer.sum, bucket);
}

static bool has_parm(const struct hd_coordinator *co, const struct hd_co_worker *w, uint64_t step,
	uint32_t bucket)
{
	(void)co;
	return w->answer.at > step ? w->answer.prev : w->answer.begun && bit(w->answer.parm, bucket);
}

static bool has_slot(const struct hd_coordinator *co, const struct hd_co_worker *w, uint64_t step,
	uint32_t bucket)
{
	(void)co;
	(void)step;
	return bit(w->answer.slot, bucket);
}

typedef bool holds(const struct hd_coordinator *co, const struct hd_co_worker *w, uint64_t step,
	uint32_t bucket);

/* Holders of each bucket in runs; false: a bucket has no holder. */
static bool find_runs(struct hd_coordinator *co, const struct view_verdict *v, holds *has,
	struct hd_have *run,
	uint32_t *n)
{
	bool whole = true;

	assert(v->n && v->n <= HD_MAX_MEMBERS);
	*n = 0;
	for (uint32_t b = 0; b < co->config.nbuckets; b++) {
		uint64_t members = 0;
		for (uint32_t i = 0; i < v->n; i++)
			members |= (uint64_t)has(co, v->member[i], v->step, b) << i;
		whole &= members != 0;
		if (!*n || run[*n - 1].members != members)
			run[(*n)++] = (struct hd_have){ b, members };
	}
	return whole;
}

/* False: the sum of a bucket, or the table, has no holder. */
static bool find_holders(struct hd_coordinator *co, const struct view_verdict *v)
{
	bool whole = find_runs(co, v, has_sum, co->have, &co->open.nhave);

	co->open.have = co->have;
	co->open.table = 0;
	if (co->config.copies) {
		find_runs(co, v, has_parm, co->parm, &co->open.nparm);
		co->open.parm = co->parm;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		const struct hd_co_worker_answer *a = &v->member[i]->answer;
		co->open.table |= (uint64_t)(a->at > v->step ? a->prev : a->begun && a->table) << i;
	}
	return whole && co->open.table;
}

static uint32_t leaves_in(const struct hd_passes *passes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < passes->nranges; i++)
		n += passes->range[i].n;
	return n;
}

/* Ascending runs out of the missing ranges, `n` virtual nodes from where the last member's ended. */
static uint32_t cut(struct hd_vrange *from, uint32_t nfrom, uint32_t *at, uint32_t n, struct hd_vrange *out)
{
	uint32_t k = 0;

	while (n) {
		assert(*at < nfrom);
		uint32_t take = from[*at].n < n ? from[*at].n : n;
		out[k++] = (struct hd_vrange){ from[*at].first, take };
		from[*at].first += take;
		from[*at].n -= take;
		n -= take;
		*at += from[*at].n == 0;
	}
	return k;
}

/* Deals what is missing to members that still have X_k. false: it does not fit; the step is begun
 * afresh. */
static bool deal(struct hd_coordinator *co, const struct view_verdict *v)
{
	struct hd_vrange missing[HD_VIEW_RANGES], run[HD_VIEW_RANGES];
	uint32_t n = 0, at = 0, total = 0, nhelpers = 0, load[HD_MAX_MEMBERS], extra[HD_MAX_MEMBERS];
	struct hd_co_worker *helper[HD_MAX_MEMBERS];
	uint64_t ps[HD_MAX_MEMBERS];

	if (hd_passes_missing(&co->open_passes, co->config.nvns, missing, HD_VIEW_RANGES, &n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		total += missing[i].n;
	for (uint32_t i = 0; i < v->n; i++) {
		struct hd_co_worker *w = v->member[i];
		if (w->answer.at != v->step)
			continue;
		helper[nhelpers] = w;
		load[nhelpers] = leaves_in(&w->answer.passes);
		ps[nhelpers++] = w->vn_ps;
	}
	assert(nhelpers);                 /* `step` is the least of theirs */
	hd_view_deal(load, ps, nhelpers, total, extra);
	for (uint32_t i = 0; i < nhelpers; i++) {
		uint32_t k = cut(missing, n, &at, extra[i], run), pass = helper[i]->answer.passes.npasses;
		if (k && (pass == HD_MAX_PASSES ||
			hd_passes_add(&co->open_passes, helper[i]->worker, pass, run,
			k)))
			return false;
	}
	if (total)
		hd_co_note(co, "redo", HD_NOBODY, "%u virtual nodes of step %llu are computed again", total,
			(unsigned long long)v->step);
	return true;
}

/* Not so if a member that did not know that the step is begun afresh still holds earlier passes. */
static bool computed_once(const struct hd_coordinator *co)
{
	uint32_t vn = 0;

	return hd_passes_tile(&co->open_passes, co->config.nvns, &vn);
}

/* Roots of one worker must fit their ordinals. */
static bool fits(const struct hd_coordinator *co, const struct view_verdict *v)
{
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint32_t first[HD_MAX_PASSES + 1], n;

	for (uint32_t i = 0; i < v->n; i++)
		if (hd_passes_roots(&co->open_passes, co->config.nvns, v->member[i]->worker, root,
			HD_VIEW_ROOTS, first, &n))
			return false;
	return true;
}

/* Of stages nothing that was computed is taken over: rule 15. */
static bool collect(struct hd_coordinator *co, const struct view_verdict *v)
{
	co->open_passes.npasses = co->open_passes.nranges = 0;
	if (co->config.shape.nstages)
		return true;
	for (uint32_t i = 0; i < v->n; i++) {
		const struct hd_passes *had = &v->member[i]->answer.passes;
		for (uint32_t p = 0; v->member[i]->answer.at == v->step && p < had->npasses; p++)
			if (hd_passes_add(&co->open_passes, v->member[i]->worker, p,
				had->range + had->pass[p].first_range, had->pass[p].nranges))
				return false;
	}
	return true;
}

/* Sharded state. The last of a bucket's chain hands new parameters out only if all of the chain have its sum
 * (exchange.h, rule 7). They are written over roots from their first bytes on, which no member reports. Where
 * none of the chain is left, neither are its sum and, in most steps, slots. But in the first step of a view,
 * and in one that is restarted, others than the chain may have slots: former holders, and those that fetched
 * them in vain. Then the roots that are reported may be spoiled. */
static bool roots_may_be_gone(struct hd_coordinator *co, const struct view_verdict *v)
{
	if (!co->config.copies ||
		(co->has_view && co->view_first != v->step && co->held_step != v->step))
		return false;
	if (!co->has_view)
		return true;
	hd_view_holding(&co->of_view, &co->view, NULL, co->config.copies, co->config.servers);
	for (uint32_t b = 0; b < co->config.nbuckets; b++) {
		const uint64_t had = co->held_step == v->step ? co->held[b] : ~UINT64_C(0);
		const uint64_t chain = co->of_view.slot[b] & had;
		bool sure = false;
		for (uint32_t i = 0; i < v->n && !sure; i++) {
			const uint32_t at = hd_view_index(&co->view, v->member[i]->worker);
			sure = has_sum(co, v->member[i], v->step, b) ||
				(at != HD_NOBODY && chain >> at & 1);
		}
		if (!sure)
			return true;
	}
	return false;
}

/* A holder of the table heard from the checkpoint writer that it did not halt. Else the next writer says
 * so, and remote workers cannot be it. */
static bool may_be_run(const struct hd_coordinator *co, const struct view_verdict *v)
{
	return co->open.table || !hd_is_remote(v->member[0]->worker);
}

static void finish_open(struct hd_coordinator *co, const struct view_verdict *v)
{
	const bool together = hd_co_computes_together(co);
	bool whole = find_holders(co, v), halts = !may_be_run(co, v), ok = collect(co, v) && !halts;

	co->goes_on = !whole && ok && hd_co_find_rest(co, v->member, v->n, v->step);
	const bool spoiled = ok && !whole && !co->goes_on && roots_may_be_gone(co, v);
	if (!whole && !co->goes_on)
		ok = ok && !spoiled && !together && deal(co, v) && computed_once(co) && fits(co, v);
	if (!ok) {
		co->open.afresh = true;
		co->open.nhave = co->open.nparm = 0;
		co->open.table = 0;
		co->open_passes.npasses = co->open_passes.nranges = 0;
		hd_co_note(co, "afresh", HD_NOBODY, "step %llu is begun again by all: %s",
			(unsigned long long)v->step,
			halts ? "whoever could have halted before it is gone" : spoiled ?
			"new parameters may have come over what was computed" : together ?
			"a sum of it has no holder any more, and its workers compute together" :
			"too many losses within it");
	}
}

/* At a boundary workers that have synced may come in at once. */
static void let_in(struct hd_coordinator *co, struct view_verdict *v)
{
	uint32_t n[2] = { 0 };                            /* local, remote */

	for (uint32_t i = 0; i < v->n; i++)
		n[hd_is_remote(v->member[i]->worker)]++;
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w->state == HD_W_READY && w->answer.said && !w->answer.member &&
			w->answer.at == v->step && !w->draining &&
		    hd_co_has_room(co, w->worker, n[0], n[1])) {
			sort_in(v, w);
			n[hd_is_remote(w->worker)]++;
		}
	}
}

static void start_over(struct hd_coordinator *co)
{
	co->has_view = false;
	co->holding = false;
	hd_co_end_backoff(co);
	if (!co->record.started) {
		co->phase = HD_CO_START;
		for (uint32_t i = 0; i < co->nplaces; i++)     /* holders of another step load this one */
			if (co->worker[i].answer.said && co->worker[i].answer.at != co->config.step)
				hd_co_sync_lost(co, &co->worker[i]);
		return;
	}
	co->record.started = false;
	co->record.nmembers = 0;
	co->phase = HD_CO_RESTORING;
	for (uint32_t i = 0; i < co->nplaces; i++) {
		co->worker[i].sealed = co->worker[i].counted = 0;         /* of steps that are run again */
		/* chosen as members, but never notified */
		if (co->worker[i].state == HD_W_MEMBER) {
			co->worker[i].state = HD_W_STANDBY;
			co->worker[i].ready_to_sync = true;
		}
	}
	hd_co_store(co);
	hd_co_note(co, "restore", HD_NOBODY, "no worker holds the state");
	hd_co_invalidate(co);
	hd_co_act(co, HD_CO_DO_RESTORE);
}

/* Sharded state. Are the slots of a bucket lost? No member has them; or one has new parameters, so that
 * others may have updated their slots, while no holder of slots can get the sum; or the step is begun
 * again and some cannot go back. */
static bool slots_are_lost(struct hd_coordinator *co, const struct view_verdict *v)
{
	bool lost = !find_runs(co, v, has_slot, co->chain, &co->open.nchain);

	co->open.chain = co->chain;
	for (uint32_t b = 0; b < co->config.nbuckets; b++) {
		bool sum = false, parm = false;
		for (uint32_t i = 0; i < v->n; i++) {
			sum |= has_sum(co, v->member[i], v->step, b);
			parm |= has_parm(co, v->member[i], v->step, b);
		}
		lost |= parm && !sum;
	}
	for (uint32_t i = 0; i < v->n && co->open.afresh; i++)
		lost |= v->member[i]->answer.updated || v->member[i]->answer.at > v->step;
	return lost;
}

/* What they hold is not a state. Their processes stay: if the coordinator is gone next, they go on without
 * it. Those that are to leave do so now. */
static void give_up(struct hd_coordinator *co, struct view_verdict *v)
{
	hd_co_note(co, "rejoin", HD_NOBODY,
		"all holders of some of the state are gone: the workers that are left join again, each in "
		"its process");
	for (uint32_t i = 0; i < v->n; i++) {
		struct hd_co_worker *w = v->member[i];
		if (!w->draining) {
			hd_co_rejoin(co, w);
			continue;
		}
		hd_co_release(co, w, 75, "this worker left the job");
		hd_co_left(co, w);
	}
	start_over(co);
}

/* In a shape that none of them refused. */
static bool fill_in(struct hd_coordinator *co, const struct hd_view_shape *shape)
{
	return !hd_co_is_refused(co, shape, co->next.member, co->next.nmembers) &&
		hd_co_fill_map(co, &co->next, shape, 0, hd_co_least(co));
}

/* What a coordinator that took over has from its members; NULL: none says it. */
static const struct hd_view_shape *running(const struct hd_coordinator *co, const struct view_verdict *v)
{
	for (uint32_t i = 0; i < v->n && !co->has_view && co->config.of_shape; i++) {
		const struct hd_view_shape *had = &v->member[i]->answer.shape;
		if (had->nstages && co->config.of_shape(co->config.of_shape_self, had))
			return had;
	}
	return NULL;
}

/* The shape in force. */
static bool fill_as_before(struct hd_coordinator *co, const struct view_verdict *v)
{
	const struct hd_view_shape *had = co->view.shape.nstages ? &co->view.shape : running(co, v);

	return had && fill_in(co, had);
}

/* Rule 15: a step that is finished keeps its shape; a step that is begun has the shape that is wanted, or
 * that in force while there are no devices for it. Where nothing else is left it has the wanted one although
 * a member refused it, which may end then. */
static bool fill_map(struct hd_coordinator *co, const struct view_verdict *v)
{
	const struct hd_view_shape *shape = &co->config.shape;

	for (uint32_t i = 0; i < v->n && v->open && !co->open.afresh; i++)
		if (v->member[i]->answer.shape.nstages)
			return hd_co_fill_map(co, &co->next, &v->member[i]->answer.shape, 0, 1);
	co->fewer_tried = 0;
	return fill_in(co, shape) || fill_as_before(co, v) ||
		hd_co_fill_fewer(co, &co->next, running(co, v)) ||
		hd_co_fill_map(co, &co->next, shape, 0, hd_co_least(co));
}

/* Its members, and which virtual nodes each computes; without a map it is on hold. */
static void make_next(struct hd_coordinator *co, struct view_verdict *v)
{
	co->next = (struct hd_view){ .epoch = co->record.epoch, .nmembers = v->n };
	for (uint32_t i = 0; i < v->n; i++) {
		co->next.member[i] = v->member[i]->worker;
		co->open_at[i] = v->member[i]->answer.at;
	}
	if (co->config.of_shape && co->config.shape.nstages)
		hd_have_spread(co->held, co->config.nbuckets, co->chain, co->open.nchain);
	co->open.hold = v->n < co->config.min || hd_view_writer(&co->next) == HD_NOBODY;
	if (co->goes_on) {
		co->next = co->rest;
		co->next.epoch = co->record.epoch;
	} else if (!fill_map(co, v)) {
		co->open.hold = true;
		hd_co_note(co, "hold", HD_NOBODY,
			"%u pipeline%s of the job's %u stages %s %u ranks, and there are fewer devices: more "
			"workers are waited for", hd_co_least(co), hd_co_least(co) > 1 ? "s" : "",
			co->config.shape.nstages, hd_co_least(co) > 1 ? "have" : "has",
			co->config.shape.width * hd_co_least(co));
	}
	co->open.fewer = co->next.shape.nstages && co->next.shape.width < co->config.shape.width;
	co->open_alone = v->open && !co->open.afresh && hd_co_computes_together(co);
	co->open.hold |= co->open_alone;          /* after the step */
	if (co->open_alone)
		co->moves = co->movers = 0;       /* nothing does before the next one */
}

static void in_force(struct hd_coordinator *co);

/* The record names its members: stored, where they are news, before any worker runs a step under it. */
static void put_in_force(struct hd_coordinator *co, const struct view_verdict *v)
{
	bool news = !co->record.started, fewer = v->n < co->record.nmembers;

	for (uint32_t i = 0; i < v->n; i++)
		news |= v->member[i]->state != HD_W_MEMBER;
	co->record.started = true;
	co->record.nmembers = v->n;
	memcpy(co->record.member, co->next.member, v->n * sizeof *co->next.member);
	co->phase = HD_CO_VIEWING;
	if (news)
		co->phase_serial = hd_co_store(co);
	else
		in_force(co);
	/* what is stored is more than enough; but another coordinator would wait for all of it */
	if (!news && fewer)
		hd_co_store(co);
}

static void decide(struct hd_coordinator *co)
{
	struct view_verdict v;
	bool fresh;

	assert(co->phase == HD_CO_ASKING);
	judge(co, &v);
	fresh = v.n == 0;
	if (fresh && co->record.started) {
		start_over(co);
		return;
	}
	if (fresh)
		v.step = co->config.step;
	co->open = (struct hd_msg_view){ .step = v.step, .halt = v.halt };
	co->goes_on = false;
	co->open_passes.npasses = co->open_passes.nranges = 0;
	if (v.open)
		finish_open(co, &v);
	else
		let_in(co, &v);
	if (!v.n) {
		start_over(co);
		return;
	}
	if (hd_co_is_partial(co) && slots_are_lost(co, &v)) {
		give_up(co, &v);
		return;
	}
	make_next(co, &v);
	put_in_force(co, &v);
}

/* What each has sealed: by its status, or since. */
static void count_from(struct hd_coordinator *co)
{
	uint64_t next[HD_MAX_MEMBERS];

	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		assert(w && hd_co_is_here(w));            /* else all were asked again */
		next[i] = co->open_at[i];
		if (w->sealed == co->open.step + 1 && next[i] == co->open.step)
			next[i]++;
		w->sealed = next[i];
	}
	hd_seals_of(&co->seals, co->view.epoch, co->view.member, next, 0, co->view.nmembers);
	co->seals.observes = true;
}

/* What the view says to the workers: its members, its map, the passes of a step that it finishes. */
static void name_view(struct hd_coordinator *co)
{
	struct hd_msg_view *o = &co->open;

	o->nmember = o->nat = co->view.nmembers;
	o->member = co->view.member;
	o->at = co->open_at;
	o->nrank = hd_view_named(&co->view);
	o->rank = co->view.rank;
	o->npass = co->open_passes.npasses;
	o->pass = co->open_passes.pass;
	o->nrange = co->open_passes.nranges;
	o->range = co->open_passes.range;
}

/* To one that is here: it is a member now, or its state transfer starts over where the view ends it. */
static void say_in_force(struct hd_coordinator *co, struct hd_co_worker *w)
{
	const uint32_t m = hd_view_index(&co->view, w->worker);

	if (m != HD_NOBODY) {
		w->source = HD_NOBODY;
		w->state = HD_W_MEMBER;
		w->done_ns = co->now_ns;
	}
	if (m == HD_NOBODY && w->answer.said && !w->answer.member) {
		/* chosen before a takeover, it never knew: it has what is on disk */
		w->state = HD_W_READY;
		w->ready_to_sync = true;
	}
	bool skipped = w->state == HD_W_READY && w->decided;
	w->asked = w->decided = false;
	view_say(co, w);
	if (skipped)
		/* its source may have taken it for a member, and sent no step since */
		hd_co_sync_lost(co, w);
	if (!hd_view_has(&co->view, w->source) && (w->state == HD_W_SYNCING || w->state == HD_W_READY))
		/* what came from disk, or from a worker that is no member and has no boundaries, is not
		 * followed by anything */
		hd_co_sync_lost(co, w);
	if (co->halting)
		hd_co_change_again(co, w);        /* STOP, to new members */
}

static void in_force(struct hd_coordinator *co)
{
	const struct hd_msg_view *o = &co->open;

	assert(co->phase == HD_CO_VIEWING && co->record.started && co->next.nmembers);
	const struct hd_co_standing in = co->has_view ? hd_co_standing_in(&co->view, &co->next) :
		(struct hd_co_standing){ "" };
	co->view = co->next;
	co->has_view = true;
	co->refused = false;
	co->view_epoch = co->view.epoch;
	co->view_alone = co->open_alone;
	co->view_first = o->step + (o->nhave > 0);        /* an open step is finished as it was begun */
	if (co->config.copies)
		hd_have_spread(co->held, co->config.nbuckets, co->chain, o->nchain);
	co->held_step = o->step;
	name_view(co);
	count_from(co);
	if (!co->holding)
		co->hold_ns = co->now_ns;
	co->holding = o->hold;
	co->phase = HD_CO_IDLE;
	hd_co_end_backoff(co);
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (hd_co_is_here(&co->worker[i]))
			say_in_force(co, &co->worker[i]);
	hd_co_note(co, "view", HD_NOBODY, "%u members from step %llu on%s", co->view.nmembers,
		(unsigned long long)o->step,
		co->view_alone ? ", and none after it" :
		o->hold ? ", too few: they wait" : "");
	hd_co_note_moves(co);
	hd_co_note_standing(co);
	if (*in.text)
		hd_co_note(co, "stands_in", HD_NOBODY, "%s", in.text);
	hd_co_commit(co);
}

/* ---- events ---- */

static void decide_if_all_said(struct hd_coordinator *co)
{
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (co->worker[i].asked && !co->worker[i].answer.said)
			return;
	if (!hd_co_awaits_stops(co))
		decide(co);
}

void hd_co_on_stopped(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg)
{
	if (co->phase == HD_CO_ASKING && hd_co_take_stopped(co, w, msg))
		decide_if_all_said(co);
}

void hd_co_unasked(struct hd_coordinator *co, struct hd_co_worker *w)
{
	assert(!w->answer.said);
	if (co->phase != HD_CO_ASKING)
		return;
	w->asked = false;
	decide_if_all_said(co);
}

static void take_bits(const struct hd_coordinator *co, uint64_t *to, const uint64_t *from, uint32_t n)
{
	memset(to, 0, co->words * sizeof *to);
	if (n > 0)      /* else `from` may be NULL */
		memcpy(to, from, (n < co->words ? n : co->words) * sizeof *to);
}

/* What is no shape of this job is none: then the one that is wanted is taken. */
static void take_shape(const struct hd_coordinator *co, struct hd_view_shape *shape,
	const struct hd_msg_status *s)
{
	struct hd_view_shape made;

	hd_view_shape_read(&made, s->width, s->schedule, s->way, s->place, s->nplace, s->first, s->nfirst);
	bool known = co->config.of_shape ? s->nplace && co->config.of_shape(co->config.of_shape_self, &made) :
		hd_view_same_shape(&made, &co->config.shape);
	*shape = known ? made : (struct hd_view_shape){ .nstages = 0 };
}

void hd_co_on_status(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg)
{
	const struct hd_msg_status *s = &msg->status;
	struct hd_co_worker_answer *a = &w->answer;

	if (may_repeat(co, w->worker) && msg->epoch == co->view_epoch) {
		view_say(co, w);
		return;
	}
	if (co->phase != HD_CO_ASKING || msg->epoch != co->record.epoch || !w->asked)
		return;
	uint64_t *sum = a->sum, *parm = a->parm, *slot = a->slot;
	*a = (struct hd_co_worker_answer){ .said = true, .member = s->member, .begun = s->begun,
		.halted = s->halted, .prev = s->prev, .table = s->table, .stops = s->stops,
					   .updated = s->updated, .at = s->at, .sum = sum, .parm = parm,
					   .slot = slot };
	take_shape(co, &a->shape, s);
	take_bits(co, sum, s->sum, s->nsum);
	take_bits(co, parm, s->parm, s->nparm);
	take_bits(co, slot, s->slot, s->nslot);
	for (uint32_t p = 0; p < s->npass; p++)
		if (hd_passes_add(&a->passes, w->worker, p, s->range + s->pass[p].first_range,
			s->pass[p].nranges))
			return;
	decide_if_all_said(co);
}

void hd_co_view_stored(struct hd_coordinator *co)
{
	if (co->phase == HD_CO_VIEWING) {
		in_force(co);
	} else if (co->phase == HD_CO_FENCING) {
		co->phase = HD_CO_ASKING;
		co->fence_ns = co->now_ns;
		hd_co_forget_stops(co);
		for (uint32_t i = 0; i < co->nplaces; i++) {
			struct hd_co_worker *w = &co->worker[i];
			w->asked = takes_part(co, w);
			if (hd_co_is_here(w))
				ask(co, w, co->record.epoch);
		}
		decide_if_all_said(co);
	}
}

void hd_co_view_tick(struct hd_coordinator *co)
{
	if (co->phase != HD_CO_ASKING || co->now_ns - co->fence_ns < co->fence_for_ns)
		return;
	bool silent[HD_MAX_WORKERS];                      /* the first death asks all again */
	for (uint32_t i = 0; i < co->nplaces; i++)
		silent[i] = co->worker[i].asked && !co->worker[i].answer.said;
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (silent[i])
			hd_co_dead(co, &co->worker[i], "it did not tell its status");
	if (co->phase == HD_CO_ASKING)
		decide(co);                       /* a rank does not come to stand */
}
