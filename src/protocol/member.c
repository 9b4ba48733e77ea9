#include "protocol/member_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timeouts.h"

const char *hd_member_event_name(enum hd_member_event_kind kind)
{
	static const char *const names[] = {
#define X(id, payload, text) #id,
		HD_MEMBER_EVENTS(X)
#undef X
	};
	return names[kind];
}

const char *hd_member_action_name(enum hd_member_action_kind kind)
{
	static const char *const names[] = {
#define X(id, payload, text) #id,
		HD_MEMBER_ACTIONS(X)
#undef X
	};
	return names[kind];
}

const char *hd_suspicion_name(enum hd_suspicion why)
{
	static const char *const names[] = { "heard", "silent", "closed", "exited", "hung", "corrupt" };

	return why < HD_NSUSPICIONS ? names[why] : "unknown";
}

static enum hd_err take(struct hd_member *m, struct hd_diag *diag)
{
	const struct { uint64_t **at; size_t n; } rows[] = {
		{ &m->own.final, (size_t)HD_MAX_PASSES * m->own.words }, { &m->slots, m->config.nbuckets }, { &m->mine, m->own.words },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		*rows[i].at = hd_alloc(rows[i].n * sizeof **rows[i].at);
		if (!*rows[i].at)
			return hd_fail(diag, HD_E_NOMEM, "no memory for a member of %u buckets",
				m->config.nbuckets);
		memset(*rows[i].at, 0, rows[i].n * sizeof **rows[i].at);
	}
	return HD_OK;
}

enum hd_err hd_member_create(struct hd_member **member, const struct hd_member_config *config,
	struct hd_diag *diag)
{
	struct hd_member *m;

	if (config->buckets && config->buckets->nstages > 1 && config->copies)
		return hd_fail(diag, HD_E_REFUSED, HD_NO_SHARDED_STAGES);
	m = hd_alloc(sizeof *m);
	if (!m)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a member");
	memset(m, 0, sizeof *m);
	m->config = *config;
	m->worker = HD_NOBODY;
	m->switch_step = m->halt_step = m->reached = HD_NO_STEP;
	hd_arena_init(&m->out, 0);
	enum hd_err err = hd_exchange_init(&m->x, config->nvns, config->nbuckets, config->copies, diag);
	m->x.servers = config->servers;
	if (!err)
		hd_exchange_stages(&m->x, config->buckets);
	m->x.pairs = config->pairs;
	m->x.held.bytes = config->bytes;
	err = err ? err : hd_holding_init(&m->before, config->nbuckets, diag);
	m->before.bytes = config->bytes;
	m->own.words = (config->nbuckets + 63) / 64;
	if (!err)
		err = take(m, diag);
	if (err) {
		hd_member_destroy(m);
		return err;
	}
	*member = m;
	return HD_OK;
}

void hd_member_destroy(struct hd_member *m)
{
	if (!m)
		return;
	hd_exchange_finish(&m->x);
	hd_holding_finish(&m->before);
	hd_free(m->own.final);
	hd_free(m->slots);
	hd_free(m->mine);
	hd_free(m->stop.arrived);
	hd_arena_finish(&m->out);
	hd_free(m);
}

/* ---- what goes out ---- */

struct hd_member_action *hd_member_act(struct hd_member *m, enum hd_member_action_kind kind)
{
	assert(kind < HD_DO_NKINDS && m->nact <= m->act_cap);
	if (m->nact == m->act_cap) {
		size_t cap = m->act_cap ? 2 * m->act_cap : 64;
		struct hd_member_action *more = hd_arena_take(&m->out, cap, sizeof *more);
		if (!more) {
			hd_member_break(m, 11, "no memory for what a step asks for");
			return &m->no_action;
		}
		for (size_t i = 0; i < m->nact; i++)
			more[i] = m->act[i];
		m->act = more;
		m->act_cap = cap;
	}
	m->act[m->nact] = (struct hd_member_action){ .kind = kind, .worker = HD_NOBODY, .step = m->at,
		.epoch = m->epoch };
	return &m->act[m->nact++];
}

struct hd_msg *hd_member_msg(struct hd_member *m, enum hd_msg_kind kind)
{
	struct hd_msg *msg = hd_arena_take(&m->out, 1, sizeof *msg);

	assert(hd_msg_name(kind));
	if (!msg) {
		hd_member_break(m, 11, "no memory for a message");
		msg = &m->no_msg;
	}
	msg->kind = kind;
	msg->term = m->term;
	msg->epoch = m->epoch;
	return msg;
}

void hd_member_send(struct hd_member *m, uint32_t to, const struct hd_msg *msg)
{
	if (to != HD_COORDINATOR && !hd_member_is_up(m, to))
		hd_member_end_wait(m);            /* it is lost */
	struct hd_member_action *a = hd_member_act(m, HD_DO_SEND);

	assert(to != HD_NOBODY && to != m->worker);
	a->worker = to;
	a->msg = msg;
}

void hd_member_say(struct hd_member *m, const struct hd_msg *msg)
{
	if (m->co_up)
		hd_member_send(m, HD_COORDINATOR, msg);
}

/* Without a view there are no members. */
bool hd_member_is_in(const struct hd_member *m, uint32_t worker) { return hd_view_has(&m->view, worker); }

void hd_member_send_all(struct hd_member *m, const struct hd_msg *msg)
{
	for (uint32_t i = 0; i < m->view.nmembers; i++)
		if (m->view.member[i] != m->worker)
			hd_member_send(m, m->view.member[i], msg);
	for (uint32_t i = 0; m->next.open && i < m->next.view.nmembers; i++)
		if (!hd_member_is_in(m, m->next.view.member[i]))
			hd_member_send(m, m->next.view.member[i], msg);
}

void hd_member_break(struct hd_member *m, uint32_t code, const char *why)
{
	assert(code && why);
	if (m->broken)
		return;
	m->broken = true;
	m->broken_code = code;
	size_t n = strlen(why) < HD_MSG_TEXT ? strlen(why) : HD_MSG_TEXT;
	memcpy(m->broken_why, why, n);
	m->broken_why[n] = '\0';
}

void hd_member_exit(struct hd_member *m, uint32_t code, const char *why)
{
	struct hd_member_action *a = hd_member_act(m, HD_DO_EXIT);

	assert(m->state != HD_GONE && why);
	a->code = code;
	a->text = why;
	m->state = HD_GONE;
}

void hd_member_fenced(struct hd_member *m, const char *why)
{
	assert(m->state != HD_GONE && why);
	hd_member_act(m, HD_DO_FENCED)->text = why;
	m->state = HD_GONE;
}

/* ---- messages of the coordinator ---- */

static void on_admit(struct hd_member *m, const struct hd_msg_admit *msg)
{
	if (m->state != HD_OUTSIDE || msg->nonce != m->config.nonce)
		return;
	assert(m->worker == HD_NOBODY && !m->has_view);
	m->worker = msg->worker;
	m->state = HD_ADMITTED;
	hd_member_act(m, HD_DO_ADMITTED)->worker = msg->worker;
	hd_member_act(m, HD_DO_WARM_UP);
}

static void on_sync(struct hd_member *m, const struct hd_msg_sync *msg)
{
	if (m->state != HD_ADMITTED && m->state != HD_SYNCING)
		return;
	if (m->syncing && m->from.source == msg->source && m->from.transfer == msg->transfer) {
		if (m->synced)
			hd_member_say_synced(m);
		return;
	}
	assert(!m->has_view && !m->begun);
	m->state = HD_SYNCING;
	m->syncing = true;
	m->synced = m->held = m->next.open = m->joined_step = m->cut = false;
	m->diverged = 0;
	m->seals = (struct hd_seals){ 0 };                        /* of steps that may be run again */
	for (uint32_t i = 0; i < m->npeers; i++)
		m->peer[i].reported = m->peer[i].corrupt = 0;
	memset(m->said_held, 0, sizeof m->said_held);
	m->switch_step = HD_NO_STEP;
	m->asked = 0;
	m->from = *msg;
	struct hd_member_action *a = hd_member_act(m, HD_DO_SYNC);
	a->worker = msg->source;
	a->step = msg->transfer;
}

static void on_send_state(struct hd_member *m, const struct hd_msg_send_state *msg)
{
	struct hd_member_peer *peer = msg->on ? hd_member_peer_add(m, msg->joiner) :
		hd_member_peer_of(m, msg->joiner);
	struct hd_member_action *a = hd_member_act(m, HD_DO_SEND_STATE);

	if (peer)
		peer->is_joiner = msg->on;
	a->worker = msg->joiner;
	a->flag = msg->on;
}

void hd_member_entered(struct hd_member *m, uint32_t epoch)
{
	if (m->state == HD_MEMBER && m->next.open && m->next.view.epoch == epoch &&
		!hd_view_has(&m->next.view, m->worker)) {
		hd_member_left(m);
		return;
	}
	if (m->state == HD_MEMBER || m->state == HD_HALTED || epoch <= m->epoch ||
		(m->next.open && m->next.view.epoch > epoch))
		return;
	assert(!m->begun);                                /* only members compute */
	m->next.open = false;                             /* an earlier one, that came to nothing */
	m->switch_step = HD_NO_STEP;
	m->epoch = epoch;
	hd_member_act(m, HD_DO_EPOCH);
	if (m->cut)
		hd_member_sync_lost(m);
}

static const char *keep_text(struct hd_member *m, const char *text, uint32_t len)
{
	const char *copy = hd_arena_text(&m->out, text, len);

	return copy ? copy : "";
}

static void on_stop(struct hd_member *m, const struct hd_msg_stop *msg)
{
	m->stopping = true;
	m->stop_code = msg->code;
}

/* Only the previous coordinator knew this joiner's source, and whether the source was notified. */
static void on_other_coordinator(struct hd_member *m)
{
	if (m->synced || !m->syncing || m->from.source == HD_NOBODY)
		return;
	m->syncing = false;
	hd_member_say_ready_to_sync(m);
}

static void on_coordinator_message(struct hd_member *m, const struct hd_msg *msg)
{
	if (msg->term < m->term)
		return;
	bool other = msg->term > m->term;
	m->term = msg->term;
	if (other)
		on_other_coordinator(m);
	switch ((int)msg->kind) {
	case HD_MSG_ADMIT:   on_admit(m, &msg->admit); break;
	case HD_MSG_REFUSE:  hd_member_exit(m, msg->refuse.code,
		keep_text(m, msg->refuse.why, msg->refuse.nwhy)); break;
	case HD_MSG_PEER:    hd_member_on_peer(m, &msg->peer); break;
	case HD_MSG_SYNC:   on_sync(m, &msg->sync); break;
	case HD_MSG_SEND_STATE:  on_send_state(m, &msg->send_state); break;
	case HD_MSG_PREPARE: hd_member_on_prepare(m, msg); break;
	case HD_MSG_DECIDE:  hd_member_on_decide(m, msg); break;
	case HD_MSG_FENCE:   hd_member_on_fence(m, msg); break;
	case HD_MSG_VIEW:    hd_member_on_view(m, msg); break;
	case HD_MSG_STALE:   hd_member_fenced(m, "the job went on without this worker"); break;
	case HD_MSG_RELEASE: hd_member_exit(m, msg->release.code,
		keep_text(m, msg->release.why, msg->release.nwhy)); break;
	case HD_MSG_STOP:    on_stop(m, &msg->stop); break;
	case HD_MSG_ENTERED: hd_member_entered(m, msg->epoch); break;
	default: break;
	}
}

static void on_halt(struct hd_member *m, const struct hd_msg *msg)
{
	if (msg->epoch != m->epoch || !m->has_view || msg->halt.step < m->at)
		return;
	m->halt_step = msg->halt.step;
}

/* It may be ahead of this one, in an epoch that is yet to come here. */
static void on_slotted(struct hd_member *m, uint32_t from, const struct hd_msg *msg)
{
	struct hd_member_peer *peer = hd_member_peer_of(m, from);

	if (!peer || msg->epoch < peer->slotted_epoch)
		return;
	peer->slotted_epoch = msg->epoch;
	peer->slotted = msg->halt.step + 1;
}

bool hd_member_all_slotted(const struct hd_member *m)
{
	for (uint32_t i = 0; i < m->x.nmembers; i++) {
		if (!(m->x.fetchers >> i & 1) || (i == m->x.me && m->fetched))
			continue;
		const struct hd_member_peer *peer = i == m->x.me ? NULL :
			hd_member_peer_of((struct hd_member *)(uintptr_t)m, m->view.member[i]);
		if (!peer || peer->slotted_epoch != m->epoch || peer->slotted != m->at + 1)
			return false;
	}
	return true;
}

static void on_message(struct hd_member *m, uint32_t from, const struct hd_msg *msg)
{
	if (from == HD_COORDINATOR)
		on_coordinator_message(m, msg);
	else if (msg->kind == HD_MSG_SEAL)
		hd_member_on_seal(m, from, msg);
	else if (msg->kind == HD_MSG_HALT)
		on_halt(m, msg);
	else if (msg->kind == HD_MSG_SLOTTED)
		on_slotted(m, from, msg);
	else if (msg->kind == HD_MSG_ENDED)
		hd_member_on_ended(m, &msg->ended);
}

/* ---- time ---- */

static void on_tick(struct hd_member *m, const struct hd_member_event *event)
{
	if (m->now_ns >= m->links_ns)
		hd_member_end_wait(m);
	if (!m->co_up || m->co_silent)
		hd_member_alone(m);
	if (m->co_up && m->now_ns >= m->progress_ns && (m->state == HD_MEMBER || m->state == HD_HALTED)) {
		struct hd_msg *msg = hd_member_msg(m, HD_MSG_PROGRESS);
		msg->progress = (struct hd_msg_progress){ m->at, event->done, event->longest_ns,
			event->busy };
		hd_member_say(m, msg);
		m->progress_ns = m->now_ns + HD_TIMEOUT_NS(HEARTBEAT, m->config.detect_ns);
	}
	for (uint32_t i = 0; i < m->npeers; i++)
		if (!m->has_view || m->peer[i].is_joiner || hd_member_is_in(m, m->peer[i].worker) ||
		    (m->next.open && hd_view_has(&m->next.view, m->peer[i].worker)))
			hd_member_connect(m, &m->peer[i]);
}

/* ---- requests of this process ---- */

static void on_drain(struct hd_member *m, const struct hd_member_event *event)
{
	if (!m->draining) {
		size_t n = event->text ? strnlen(event->text, HD_MSG_TEXT) : 0;
		memcpy(m->drain_why, event->text ? event->text : "", n);
		m->drain_why[n] = '\0';
		m->drain_code = event->code;
		m->draining = true;
	}
	if (event->left_ns > 0 && (!m->goes_ns || m->now_ns + event->left_ns < m->goes_ns))
		m->goes_ns = m->now_ns + event->left_ns;
	bool free = m->state == HD_OUTSIDE || m->state == HD_ADMITTED ||
		(m->state == HD_SYNCING && !m->next.open && !m->held);
	hd_member_leave(m, free);
	if (free)
		hd_member_exit(m, m->drain_code, m->drain_why);
}

static void on_failed(struct hd_member *m, const struct hd_member_event *event)
{
	size_t n = event->text ? strnlen(event->text, HD_MSG_TEXT) : 0;

	memcpy(m->done_why, event->text ? event->text : "", n);
	m->done_why[n] = '\0';
	m->done_code = event->code;
	m->state = HD_HALTED;
	m->halt_step = m->at;
	m->finishing = m->updating = false;
	hd_member_done(m);
	if (m->held && !m->status_said && !m->folding)
		hd_member_status(m);
	if (!m->co_up)
		hd_member_exit(m, m->done_code, m->done_why);
}

static void on_note(struct hd_member *m, const struct hd_member_event *event)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_EVENT);

	msg->event.nkind = (uint32_t)strnlen(event->name, HD_MSG_KIND_NAME);
	msg->event.kind = event->name;
	msg->event.njson = (uint32_t)strnlen(event->text, HD_MSG_JSON);
	msg->event.json = event->text;
	hd_member_say(m, msg);
}

static void on_spent(struct hd_member *m, const struct hd_member_event *event)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SPENT);

	msg->spent = (struct hd_msg_spent){ event->step, event->n, event->spent };
	hd_member_say(m, msg);
}

static void on_warmed_up(struct hd_member *m)
{
	assert(m->worker != HD_NOBODY);
	m->warmed_up = true;
	hd_member_say_ready_to_sync(m);
}

void hd_member_sync_lost(struct hd_member *m)
{
	assert(m->state == HD_SYNCING && !m->begun);
	m->syncing = m->synced = m->held = m->next.open = m->cut = false;
	m->switch_step = HD_NO_STEP;
	hd_member_say_ready_to_sync(m);         /* ready to sync from another source */
}

/* Others count on what was announced: rule 2. */
static void on_sync_lost(struct hd_member *m, const struct hd_member_event *event)
{
	if (m->state != HD_SYNCING)
		return;
	m->given_up = event->slow ? m->from.transfer : 0;
	m->cut = event->whole && m->switch_step == m->at;
	if (!m->cut)
		hd_member_sync_lost(m);
}

static void on_ready(struct hd_member *m, const struct hd_member_event *event)
{
	if (event->step != m->at || !m->asked)
		return;
	assert(!m->ready);                /* READY answers a BOUNDARY that is open */
	m->ready = --m->asked == 0;
	if (!event->halt || !m->was_writer)
		return;
	m->reached = m->at;
	if (m->halt_step == HD_NO_STEP)
		m->halt_step = m->at;
}

/* What member_int.h promises of the fields, between two events. */
static void check(const struct hd_member *m)
{
	bool member = m->state == HD_MEMBER || m->state == HD_HALTED;

	assert((m->worker == HD_NOBODY) == (m->state == HD_OUTSIDE));
	assert(member == m->has_view && (!member || hd_member_is_in(m, m->worker)));
	assert(!m->has_view || m->view.epoch <= m->epoch);
	assert(!m->next.open || m->next.view.epoch > m->epoch);
	assert(m->switch_step == HD_NO_STEP || (m->next.open && m->next.decided));
	assert(!m->held || m->synced);
	assert(!m->synced || m->syncing);
	assert(!m->begun || (member && m->x.step == m->at));
	assert(!m->finishing || m->begun);
	assert(!m->folding || m->begun);
	assert(!m->ready || (!m->asked && !m->boundary_due));
	assert(!m->boundary_due || (m->next.open && !m->held && !m->begun));
	assert(!m->cut || m->state == HD_SYNCING);
}

static void dispatch(struct hd_member *m, const struct hd_member_event *event)
{
	switch (event->kind) {
	case HD_IN_MESSAGE:   on_message(m, event->worker, event->msg); break;
	case HD_IN_UP:        hd_member_on_up(m, event->worker); break;
	case HD_IN_LOST:      hd_member_on_lost(m, event->worker, event->why); break;
	case HD_IN_WARMED_UP:    on_warmed_up(m); break;
	case HD_IN_SYNCED:   hd_member_synced(m, event->step); break;
	case HD_IN_SYNC_LOST: on_sync_lost(m, event); break;
	case HD_IN_FINAL:
	case HD_IN_COMPUTED:
	case HD_IN_ROOT:
	case HD_IN_SUM:
	case HD_IN_LEAVES:
	case HD_IN_TABLE:
	case HD_IN_FOLDED:
	case HD_IN_SQUARED:
	case HD_IN_EARLY:
	case HD_IN_NORM:
	case HD_IN_PARM:
	case HD_IN_RATIO:
	case HD_IN_FETCHED:
	case HD_IN_UPDATED_OWN: hd_member_stepwork(m, event); break;
	case HD_IN_STOPPED:   hd_member_stopped(m, event); break;
	case HD_IN_STUCK:     hd_member_suspect(m, m->worker, HD_CLOSED); break;
	case HD_IN_UPDATED:   hd_member_seal(m, event); break;
	case HD_IN_READY:     on_ready(m, event); break;
	case HD_IN_PREPARED:  hd_member_prepared(m, event->epoch); break;
	case HD_IN_UNFIT:     hd_member_unfit(m, event); break;
	case HD_IN_FAILED:    on_failed(m, event); break;
	case HD_IN_ENDED:     hd_member_ended(m, event->code, event->text); break;
	case HD_IN_DRAIN:     on_drain(m, event); break;
	case HD_IN_NOTE:      on_note(m, event); break;
	case HD_IN_SPENT:     on_spent(m, event); break;
	case HD_IN_TICK:      on_tick(m, event); break;
	case HD_IN_NKINDS:    break;
	}
}

struct hd_member_actions hd_member_step(struct hd_member *m, const struct hd_member_event *event,
	int64_t now_ns)
{
	static const struct hd_member_action out_of_memory = { .kind = HD_DO_EXIT, .worker = HD_NOBODY,
		.code = 11, .text = "out of memory" };

	assert(now_ns >= m->now_ns);
	m->now_ns = now_ns;
	if (!m->awake) {
		m->co_lost_ns = m->call_ns = now_ns;
		m->take_over_ns = hd_member_take_over_at(m);
	}
	m->awake = true;
	hd_arena_reset(&m->out);
	m->act = NULL;
	m->nact = m->act_cap = 0;
	if (m->state == HD_GONE)
		return (struct hd_member_actions){ NULL, 0 };
	dispatch(m, event);
	if (m->state != HD_GONE && !m->broken)
		hd_member_progress(m);
	if (m->state != HD_GONE && !m->broken)
		check(m);
	if (m->broken) {
		m->nact = 0;
		hd_member_exit(m, m->broken_code, m->broken_why);
		if (!m->nact)
			return (struct hd_member_actions){ &out_of_memory, 1 };
	}
	return (struct hd_member_actions){ m->act, m->nact };
}

enum hd_member_state hd_member_state(const struct hd_member *m) { return m->state; }
uint32_t hd_member_worker(const struct hd_member *m) { return m->worker; }
uint32_t hd_member_epoch(const struct hd_member *m) { return m->epoch; }
uint64_t hd_member_at(const struct hd_member *m) { return m->at; }
bool hd_member_is_writer(const struct hd_member *m) { return m->has_view &&
	hd_view_writer(&m->view) == m->worker; }
bool hd_member_saves(const struct hd_member *m) { return m->was_writer; }
bool hd_member_holds(const struct hd_member *m) { return m->hold && m->ready && !m->begun; }
const struct hd_view *hd_member_view(const struct hd_member *m) { return m->has_view ? &m->view : NULL; }
const struct hd_exchange *hd_member_exchange(const struct hd_member *m) { return &m->x; }

uint32_t hd_member_holders(const struct hd_member *m, uint32_t bucket, uint32_t worker[HD_MAX_MEMBERS])
{
	const struct hd_view *view = m->has_view ? &m->view : &m->next.view;
	uint32_t n = 0;

	for (uint32_t i = 0; i < view->nmembers; i++)
		if (m->slots[bucket] >> i & 1)
			worker[n++] = view->member[i];
	return n;
}

/* FINISH of state in stages changes slots, too. */
bool hd_member_has_slots(const struct hd_member *m, uint32_t bucket)
{
	bool changes = (m->config.copies && (m->updating || m->updated)) ||
		(m->finishing && hd_member_is_partial(m));

	return m->mine[bucket / 64] >> bucket % 64 & 1 && !changes;
}
