#include "protocol/member_int.h"

#include <assert.h>
#include <string.h>

#include "base/timeouts.h"

/* ---- a planned change: PREPARE, DECIDE, the switch ---- */

/* A worker is prepared when it is connected with all members, old and new: none may miss a seal. */
void hd_member_say_prepared(struct hd_member *m)
{
	bool up = m->next.open && m->next.prepared && !m->next.said;

	for (uint32_t i = 0; up && i < m->seals.nmembers; i++)
		up = hd_member_is_up(m, m->seals.by[i].worker);
	for (uint32_t i = 0; up && i < m->next.view.nmembers; i++)
		up = hd_member_is_up(m, m->next.view.member[i]);
	if (!up)
		return;
	assert(m->next.view.epoch > m->epoch);
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_PREPARED);
	msg->decided.next = m->next.view.epoch;
	hd_member_say(m, msg);
	m->next.said = true;
}

void hd_member_prepared(struct hd_member *m, uint32_t epoch)
{
	if (m->next.view.epoch != epoch)
		return;
	m->next.prepared = true;
	hd_member_say_prepared(m);
}

/* Of a step that it cannot begin it computes nothing: its ranks come to stand nowhere. Where they were asked
 * to already, the answer that says so is on its way. */
void hd_member_unfit(struct hd_member *m, const struct hd_member_event *event)
{
	const bool now = m->begun && event->epoch == m->view.epoch,
		next = m->next.open && !m->next.prepared && event->epoch == m->next.view.epoch;
	struct hd_msg *msg = now || next ? hd_member_msg(m, HD_MSG_UNFIT) : NULL;
	char *why = msg ? hd_arena_text(&m->out, event->text, strnlen(event->text, HD_MSG_TEXT)) : NULL;

	if (!msg)
		return;
	if (now && m->stop.state != HD_RANKS_STOP)
		m->stop.state = HD_RANKS_CANNOT;
	msg->unfit = (struct hd_msg_unfit){ .view = event->epoch, .nwhy = why ? (uint32_t)strlen(why) : 0,
		.why = why };
	hd_member_say(m, msg);
}

static void fill_view(struct hd_view *view, uint32_t epoch, const uint32_t *member, uint32_t nmembers,
	const struct hd_vrank *rank, uint32_t nranks)
{
	*view = (struct hd_view){ .epoch = epoch, .nmembers = nmembers };
	for (uint32_t i = 0; i < nmembers; i++)
		view->member[i] = member[i];
	hd_view_take_ranks(view, rank, nranks);
}

const struct hd_stage_buckets *hd_member_buckets(const struct hd_member *m,
	const struct hd_view_shape *shape)
{
	const struct hd_stage_buckets *first = m->config.buckets, *of;

	if (!first || !shape->nstages)
		return first;
	of = m->config.of_shape ? m->config.of_shape(m->config.of_shape_self, shape) : first;
	return of && of->nstages == shape->nstages ? of : NULL;
}

/* A step that is finished in a view without a shape, for want of devices, has the tables that it had. */
void hd_member_shape_exchange(struct hd_member *m)
{
	if (!m->view.shape.nstages && m->x.buckets)
		return;
	hd_exchange_stages(&m->x, hd_member_buckets(m, &m->view.shape));
	m->x_shape = m->view.shape;
}

/* A view of this job: without stages, or in a shape that the job can have. */
static bool is_view_of(const struct hd_member *m, const struct hd_view *view)
{
	return !hd_view_verify(view, m->config.nvns, NULL) &&
		(!view->shape.nstages || hd_member_buckets(m, &view->shape));
}

/* Without stages its members are enough. */
static bool is_old_view(const struct hd_member *m, const struct hd_view *view)
{
	return !view->shape.nstages || is_view_of(m, view);
}

void hd_member_on_prepare(struct hd_member *m, const struct hd_msg *msg)
{
	const struct hd_msg_prepare *p = &msg->prepare;
	bool pending = m->next.open && m->next.decided && p->next != m->next.view.epoch;

	if (pending || p->next <= m->epoch || m->held || !m->synced)
		return;
	hd_member_entered(m, msg->epoch);
	if (m->next.open && m->next.view.epoch >= p->next) {
		m->next.said = false;
		hd_member_say_prepared(m);
		return;
	}
	struct hd_view *view = &m->next.view;
	m->next.open = false;                             /* an earlier one is void, whatever this one is */
	m->switch_step = HD_NO_STEP;
	fill_view(&m->next.old, 0, p->old, p->nold, p->old_rank, p->nold_rank);
	hd_view_shape_read(&m->next.old.shape, p->old_width, p->old_schedule, p->old_way, p->old_place,
		p->nold_place, p->old_first, p->nold_first);
	fill_view(view, p->next, p->member, p->nmember, p->rank, p->nrank);
	hd_view_shape_read(&view->shape, p->width, p->schedule, p->way, p->place, p->nplace, p->first,
		p->nfirst);
	if (!is_view_of(m, view) || !p->nold || !is_old_view(m, &m->next.old))
		/* the coordinator gets no answer: T later it plans without this worker */
		return;
	m->next.prepared = m->next.said = m->next.decided = false;
	if (m->state == HD_SYNCING) {
		uint64_t unknown[HD_MAX_MEMBERS];
		for (uint32_t i = 0; i < p->nold; i++)
			unknown[i] = HD_SEAL_UNKNOWN;
		hd_seals_of(&m->seals, msg->epoch, p->old, unknown, 0, p->nold);
		m->seals.observes = true;
		m->joined_step = false;
	}
	hd_seals_expect(&m->seals, view->epoch, view->member, view->nmembers);
	m->next.open = true;
	hd_member_act(m, HD_DO_PREPARE)->view = view;
}

void hd_member_on_decide(struct hd_member *m, const struct hd_msg *msg)
{
	if (msg->decided.next <= m->epoch || m->held)
		return;
	if (m->next.prepared && m->next.view.epoch == msg->decided.next)
		m->next.decided = true;
	hd_member_act(m, HD_DO_DECIDED)->epoch = msg->decided.next;
}

static void adopt(struct hd_member *m, const struct hd_view *view)
{
	const bool first = m->state == HD_SYNCING || m->links_ns;

	assert(view->epoch == m->epoch && hd_view_has(view, m->worker) && !m->folding);
	m->view = *view;
	m->has_view = true;
	m->next.open = false;
	m->switch_step = HD_NO_STEP;
	m->hold = m->cut = m->fewer = m->vain = false;
	m->state = HD_MEMBER;
	hd_member_act(m, HD_DO_ADOPT)->view = &m->view;
	m->links_ns = first && !hd_member_all_up(m) && !hd_member_lost_any(m) ?
		m->now_ns + HD_TIMEOUT_NS(LINKS, m->config.detect_ns) : 0;
	if (!m->links_ns)
		hd_member_watch(m);
}

/* The last step before was run by the old view, begun under it: its chains hold the slots. */
static void carry_slots(struct hd_member *m)
{
	const struct hd_view *old = &m->next.old;
	uint32_t at[HD_MAX_MEMBERS];

	assert(m->next.open && old->nmembers >= 1);
	hd_view_holding(&m->before, old, hd_member_buckets(m, &old->shape), m->config.copies,
		m->config.servers);
	for (uint32_t i = 0; i < old->nmembers; i++)
		at[i] = hd_view_index(&m->next.view, old->member[i]);
	for (uint32_t b = 0; b < m->x.nbuckets; b++) {
		m->slots[b] = 0;
		for (uint32_t i = 0; i < old->nmembers; i++)
			if (m->before.slot[b] >> i & 1 && at[i] != HD_NOBODY)
				m->slots[b] |= UINT64_C(1) << at[i];
	}
}

/* What a member said of step `s`; one of no samples: nothing was heard. */
static struct hd_step_news heard(const struct hd_member *m, uint64_t s)
{
	const struct hd_member_news *news = &m->heard[s % HD_MEMBER_NEWS];

	return news->step == s + 1 ? news->seal.news : (struct hd_step_news){ 0 };
}

static struct hd_msg *joiner_seal(struct hd_member *m, uint64_t step)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SEAL);

	msg->epoch = m->next.view.epoch;
	msg->seal = (struct hd_msg_seal){ .step = step, .knows = m->next.view.epoch, .news = heard(m, step) };
	return msg;
}

/* Records of the steps before `at`: what their members said to the coordinator may come after the seal of
 * this joiner, which lets it commit those steps. */
static void hand_records_on(struct hd_member *m)
{
	for (uint64_t s = m->at > HD_MEMBER_NEWS ? m->at - HD_MEMBER_NEWS : 0; s + 1 < m->at; s++)
		if (heard(m, s).samples)
			hd_member_say(m, joiner_seal(m, s));
}

/* A joiner has no part in earlier steps; its seal says that it holds X_{s0+1}. */
static void seal_as_joiner(struct hd_member *m)
{
	uint32_t committed = 0;

	assert(m->state == HD_SYNCING && m->at == m->switch_step && m->at > 0);
	m->joined_step = true;
	carry_slots(m);                                   /* it may have to save all of them */
	hand_records_on(m);
	struct hd_msg *msg = joiner_seal(m, m->at - 1);
	for (uint32_t i = 0; i < m->seals.n; i++)
		if (m->seals.by[i].worker != m->worker)
			hd_member_send(m, m->seals.by[i].worker, msg);
	hd_member_say(m, msg);
	(void)!hd_seals_add(&m->seals, &(struct hd_seal){ msg->epoch, m->worker, m->at - 1, 0, 0, 0 },
		&committed, NULL);
	hd_member_boundary(m);
}

/* At switch_step. The checkpoint writer of the boundary before is that of the new view: it may be a
 * joiner. */
bool hd_member_switch(struct hd_member *m)
{
	assert(m->next.open && m->at == m->switch_step && !m->begun && !m->held);
	assert(m->state == HD_SYNCING || m->state == HD_MEMBER);
	if (m->state == HD_SYNCING && !m->joined_step)
		seal_as_joiner(m);
	if (!m->ready || !hd_seals_gate(&m->seals, m->at))
		return false;
	for (uint32_t i = 0; i < m->next.view.nmembers; i++)
		if (!hd_seals_has(&m->seals, m->next.view.member[i], m->at))
			return false;
	if (!hd_view_has(&m->next.view, m->worker)) {
		hd_member_left(m);
		return true;
	}
	carry_slots(m);
	m->epoch = m->next.view.epoch;
	hd_member_act(m, HD_DO_EPOCH);
	adopt(m, &m->next.view);
	hd_seals_of(&m->seals, m->epoch, m->view.member, NULL, m->at, m->view.nmembers);
	return true;
}

void hd_member_synced(struct hd_member *m, uint64_t step)
{
	if (m->state != HD_SYNCING || !m->syncing)
		return;
	bool first = !m->synced;
	m->synced = true;
	memset(m->mine, m->from.source == HD_NOBODY ? 0xff : 0, m->own.words * sizeof *m->mine);
	/* the members went on without this worker: the view it prepared for is void */
	if (m->joined_step && step > m->at) {
		m->joined_step = m->next.open = false;
		m->switch_step = HD_NO_STEP;
	}
	if (step > m->at)
		m->asked = 0;                             /* the boundary of a view that is void */
	m->at = step;
	if (first)
		hd_member_say_synced(m);
}

/* ---- an unplanned change: FENCE, STATUS, VIEW ---- */

static const uint32_t *places_of(struct hd_member *m, const struct hd_view_shape *s, uint32_t *n)
{
	uint32_t *place = s->nstages ? hd_arena_take(&m->out, s->nstages, sizeof *place) : NULL;

	if (s->nstages && !place)
		hd_member_break(m, 11, "no memory for a message");
	*n = place ? s->nstages : 0;
	for (uint32_t i = 0; i < *n; i++)
		place[i] = s->place[i];
	return place;
}

void hd_member_status(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_STATUS);
	/* a member, and its step is not begun */
	bool prev = m->at == m->x.step + 1 && hd_exchange_complete(&m->x);

	assert(m->held && !m->folding && !hd_member_in_update(m));
	m->status_said = true;
	msg->status = (struct hd_msg_status){ .at = m->at, .member = m->state == HD_MEMBER ||
		m->state == HD_HALTED, .begun = m->begun,
		.halted = m->halt_step == m->at, .prev = prev };
	if (hd_member_is_partial(m)) {
		msg->status.updated = m->updated && m->config.copies;
		msg->status.nslot = m->own.words;
		msg->status.slot = m->mine;
	}
	if (m->config.copies && (m->begun || prev)) {
		msg->status.nparm = m->own.words;
		msg->status.parm = m->x.parm;
	}
	if (hd_member_is_partial(m) && prev) {
		msg->status.nsum = m->own.words;
		msg->status.sum = m->x.sum;
	}
	if (m->begun) {
		msg->status.table = m->x.table;
		msg->status.npass = m->own.passes.npasses;
		msg->status.pass = m->own.passes.pass;
		msg->status.nrange = m->own.passes.nranges;
		msg->status.range = m->own.passes.range;
		msg->status.nsum = m->own.words;
		msg->status.sum = m->x.sum;
	}
	if (m->begun || prev) {
		msg->status.width = m->x_shape.width;
		msg->status.schedule = m->x_shape.schedule;
		msg->status.way = hd_view_way(&m->x_shape);
		msg->status.place = places_of(m, &m->x_shape, &msg->status.nplace);
		msg->status.first = m->x_shape.first;
		msg->status.nfirst = hd_view_nfirst(&m->x_shape);
	}
	msg->status.stops = hd_member_may_stop(m);
	hd_member_say(m, msg);
	hd_member_stop(m);
}

void hd_member_on_fence(struct hd_member *m, const struct hd_msg *msg)
{
	if (msg->epoch < m->epoch || m->state == HD_OUTSIDE)
		return;
	if (msg->epoch > m->epoch) {
		m->epoch = msg->epoch;
		m->next.open = false;
		m->switch_step = HD_NO_STEP;
		m->seals.epoch = msg->epoch;
		/* a member may enter a view, and seal, before its VIEW comes here */
		m->seals.also = msg->epoch;
		m->held = m->synced;
		m->status_said = false;
		hd_member_act(m, HD_DO_EPOCH);
		if (m->boundary_due)
			hd_member_boundary(m);
	}
	if (m->held && !m->folding && !hd_member_in_update(m))
		hd_member_status(m);
}

/* Passes of this worker that VIEW adds to those it has. */
static void take_passes(struct hd_member *m, const struct hd_passes *all)
{
	uint32_t had = m->own.passes.npasses;

	assert(m->begun && m->x.step == m->at);
	for (uint32_t i = 0; i < all->npasses; i++) {
		const struct hd_pass *p = &all->pass[i];
		if (p->worker == m->worker && p->pass >= had &&
			hd_passes_add_stage(&m->own.passes, m->worker, p->pass, p->stage,
			all->range + p->first_range, p->nranges))
			hd_member_break(m, 1, "a view gives this worker too many ranges");
	}
	hd_member_compute(m, m->stop.went_on ? 0 : had);
}

/* Of whole tensors by stages, a chain may have this member now that did not when it measured its own buckets:
 * it measures them once more. */
static void measure_again(struct hd_member *m)
{
	bool all = true;

	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		all &= !hd_exchange_chained(&m->x, b) || hd_exchange_is_measured(&m->x, b);
	assert(m->updating == m->updated);                /* the status waited for it */
	if (!all)
		m->updating = m->updated = false;
}

/* The open step is resumed: by members that have not sealed it, and by those that have, as publishers. */
static void again(struct hd_member *m, const struct hd_msg_view *v)
{
	struct hd_passes passes = { .npasses = v->npass, .nranges = v->nrange,
		.nstages = m->view.shape.nstages };
	struct hd_diag diag = { "" };
	bool fresh = m->at == v->step && !m->begun;

	assert(!m->held && m->view.epoch == m->epoch);
	hd_member_end_wait(m);                            /* what it sends is of the open step */
	/* none where every sum is there: then there may be no array either */
	for (uint32_t i = 0; i < v->npass; i++)
		passes.pass[i] = v->pass[i];
	for (uint32_t i = 0; i < v->nrange; i++)
		passes.range[i] = v->range[i];
	if (fresh)
		m->own.passes.npasses = m->own.passes.nranges = 0;
	struct hd_exchange_past past = { .have = v->have, .parm = v->parm, .chain = v->chain,
		.nhave = v->nhave, .nparm = v->nparm, .nchain = v->nchain,
		.table = v->table, .afresh = fresh };
	for (uint32_t i = 0; i < v->nmember; i++)
		past.done |= (uint64_t)(v->at[i] == v->step + 1) << i;
	if (fresh)
		m->updating = m->updated = m->fetched = false;
	hd_member_shape_exchange(m);
	if (hd_exchange_again(&m->x, &m->view, m->worker, v->step, &passes, &past, &diag)) {
		hd_member_break(m, 1, diag.text);
		return;
	}
	assert(!m->folding);                              /* the status was sent */
	/* slots that came after it count for none: their holder gets parameters over its own roots */
	if (m->config.copies && m->at == v->step)
		hd_member_keep_own(m);
	if (!m->config.copies && m->at == v->step && m->updated)
		measure_again(m);
	if (v->ndoubled && !hd_member_go_on(m, v)) {
		hd_member_break(m, 1, "a view goes on with a step in which this worker does not stand");
		return;
	}
	if (fresh)
		hd_member_runs(m);
	struct hd_member_action *a = hd_member_act(m, fresh ? HD_DO_BEGIN : HD_DO_AGAIN);
	a->step = v->step;
	a->fewer = fresh && hd_member_may_refuse(m);
	if (m->at == v->step) {
		m->begun = true;
		take_passes(m, &passes);
	}
	hd_member_offer_all(m);
}

static void reseal(struct hd_member *m, uint64_t step)
{
	const struct hd_member_news *news = &m->news[step % HD_MEMBER_NEWS];
	uint32_t committed = 0;

	if (news->step != step + 1)
		return;
	struct hd_msg *msg = hd_member_seal_msg(m, &news->seal);
	msg->seal.knows = m->epoch;
	hd_member_send_all(m, msg);
	hd_member_say(m, msg);
	(void)!hd_seals_add(&m->seals, &(struct hd_seal){ m->epoch, m->worker, step, msg->seal.sum_digest,
		msg->seal.state_digest, m->epoch },
		&committed, NULL);
}

/* What each has sealed: as it reported to the coordinator, or since, to us. */
static void count_from(struct hd_member *m, const struct hd_msg_view *v)
{
	uint64_t next[HD_MAX_MEMBERS];

	for (uint32_t i = 0; i < v->nmember; i++)
		next[i] = hd_seals_has(&m->seals, v->member[i], v->step + 1) ? v->step + 1 : v->at[i];
	hd_seals_of(&m->seals, m->epoch, v->member, next, 0, v->nmember);
}

static bool read_view(struct hd_member *m, const struct hd_msg *msg, struct hd_view *view)
{
	const struct hd_msg_view *v = &msg->view;

	fill_view(view, msg->epoch, v->member, v->nmember, v->rank, v->nrank);
	hd_view_shape_read(&view->shape, v->width, v->schedule, v->way, v->place, v->nplace, v->first,
		v->nfirst);
	for (uint32_t i = 0; i < v->ndoubled; i++) {
		if (v->doubled[i] >= HD_VIEW_RANKS)
			return false;
		view->doubled[v->doubled[i] / 64] |= UINT64_C(1) << v->doubled[i] % 64;
	}
	return is_view_of(m, view) && v->nat == v->nmember;
}

/* Has a member sealed the open step? */
static bool is_finished(const struct hd_msg_view *v)
{
	for (uint32_t i = 0; i < v->nat; i++)
		if (v->at[i] > v->step)
			return true;
	return false;
}

void hd_member_on_view(struct hd_member *m, const struct hd_msg *msg)
{
	const struct hd_msg_view *v = &msg->view;
	struct hd_view view;
	bool member = m->state == HD_MEMBER || m->state == HD_HALTED;

	if (!m->held)
		hd_member_entered(m, msg->epoch);
	if (!m->held || msg->epoch != m->epoch || !m->status_said || !read_view(m, msg, &view))
		return;
	m->held = false;
	if (!hd_view_has(&view, m->worker)) {
		if (member)
			hd_member_fenced(m, "the job went on without this worker");
		else if (m->cut)
			hd_member_sync_lost(m);
		return;
	}
	bool was_writer = m->was_writer;
	if (m->at != v->step && m->at != v->step + 1) {
		hd_member_fenced(m, "the job is at another step");
		return;
	}
	assert(!m->next.open && m->switch_step == HD_NO_STEP);
	adopt(m, &view);
	/* DONE is sent again, to the coordinator of this view */
	m->done = false;
	m->hold = v->hold;
	m->fewer = v->fewer;
	hd_have_spread(m->slots, m->x.nbuckets, v->chain, v->nchain);
	m->joined_step = false;
	count_from(m, v);
	if (v->halt != HD_NO_STEP || (m->halt_step == v->step && is_finished(v)))
		m->halt_step = v->halt;
	if (v->afresh && m->begun && m->at == v->step) {
		hd_member_cancel(m);
		m->updating = m->updated = false;
	}
	/* a member that knows that all have sealed it has nothing more to give, and may begin the next
	 * step in this very call */
	bool over = m->at == v->step + 1 && hd_seals_gate(&m->seals, m->at);
	/* the step is open: `have` has runs, if only of no holder */
	if (v->nhave && !over)
		again(m, v);
	reseal(m, v->step);
	/* if the table has a holder the former writer had contributed, so its boundary was done */
	bool due = m->at == v->step + 1 || (!m->finishing && !v->table);
	if (!member || (hd_member_is_writer(m) && !was_writer && due)) {
		m->asked = member ? m->asked : 0;
		hd_member_boundary(m);
	} else if (was_writer && !hd_member_is_writer(m) && m->asked) {
		/* it saves nothing any more: the others may go on without what it waits for */
		hd_member_boundary(m);
	}
}
