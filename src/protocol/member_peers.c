#include "protocol/member_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"

/* The peers that a member knows, its links to them and to the coordinator, and what it says when one comes up
 * or is lost. */

bool hd_member_is_up(const struct hd_member *m, uint32_t worker)
{
	for (uint32_t i = 0; i < m->npeers; i++)
		if (m->peer[i].worker == worker)
			return m->peer[i].up;
	return worker == m->worker;
}

struct hd_member_peer *hd_member_peer_of(struct hd_member *m, uint32_t worker)
{
	for (uint32_t i = 0; i < m->npeers; i++)
		if (m->peer[i].worker == worker)
			return &m->peer[i];
	return NULL;
}

/* The later worker connects: the one with the higher id. */
void hd_member_connect(struct hd_member *m, const struct hd_member_peer *peer)
{
	if (peer->up || peer->worker > m->worker || !*peer->address)
		return;
	assert(peer->worker != m->worker);
	struct hd_member_action *a = hd_member_act(m, HD_DO_CONNECT);
	a->worker = peer->worker;
	a->text = peer->address;
}

/* Room is made by forgetting one that is down and takes no part. */
struct hd_member_peer *hd_member_peer_add(struct hd_member *m, uint32_t worker)
{
	struct hd_member_peer *peer = hd_member_peer_of(m, worker);

	assert(m->npeers <= HD_MEMBER_PEERS);
	for (uint32_t i = 0; !peer && m->npeers == HD_MEMBER_PEERS && i < m->npeers; i++)
		if (!m->peer[i].up && !hd_member_is_in(m, m->peer[i].worker))
			peer = &m->peer[i];
	if (!peer && m->npeers < HD_MEMBER_PEERS)
		peer = &m->peer[m->npeers++];
	if (peer && peer->worker != worker)
		*peer = (struct hd_member_peer){ .worker = worker };
	return peer;
}

void hd_member_on_peer(struct hd_member *m, const struct hd_msg_peer *msg)
{
	struct hd_member_peer *peer = msg->worker == m->worker ? NULL : hd_member_peer_add(m, msg->worker);

	if (!peer)
		return;
	snprintf(peer->address, sizeof peer->address, "%.*s", (int)msg->naddress, msg->address);
	hd_member_connect(m, peer);
}

void hd_member_suspect(struct hd_member *m, uint32_t worker, enum hd_suspicion why)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SUSPECT);

	msg->suspect.worker = worker;
	msg->suspect.why = (uint8_t)why;
	hd_member_say(m, msg);
}

void hd_member_diverged(struct hd_member *m, uint64_t next)
{
	assert(next > 0);                 /* it names step next - 1 */
	m->diverged = m->diverged && m->diverged < next ? m->diverged : next;
}

static bool differ(const struct hd_member_news *own, const struct hd_member_peer *peer)
{
	return (own->seal.sum_digest || own->seal.state_digest) &&
		(peer->reported_sum || peer->reported_state) &&
		(own->seal.sum_digest != peer->reported_sum ||
		own->seal.state_digest != peer->reported_state);
}

static bool held_differ(const struct hd_member *m, const struct hd_member_peer *peer)
{
	const struct hd_member_held *own = &m->said_held[(peer->reported - 1) & 1];

	return own->next == peer->reported && hd_held_differ(own->at, own->n, peer->held, peer->nheld);
}

static void compare(struct hd_member *m, struct hd_member_peer *peer)
{
	const struct hd_member_news *own = peer->reported ?
		&m->news[(peer->reported - 1) % HD_MEMBER_NEWS] : NULL;

	/* what one that is gone said may be of a step that was run again since, with other bits */
	if (m->config.varies && !hd_member_is_in(m, peer->worker))
		return;
	if (!own || own->step != peer->reported || peer->corrupt || (!differ(own, peer) &&
		!held_differ(m, peer)))
		return;
	hd_member_diverged(m, peer->reported);
	peer->corrupt = true;
	hd_member_suspect(m, peer->worker, HD_CORRUPT);
}

void hd_member_compare(struct hd_member *m)
{
	for (uint32_t i = 0; i < m->npeers; i++)
		compare(m, &m->peer[i]);
}

void hd_member_on_digests(struct hd_member *m, uint32_t from, const struct hd_msg_seal *seal)
{
	const bool says = seal->ran && (seal->sum_digest || seal->state_digest || seal->nheld);
	struct hd_member_peer *peer = says ? hd_member_peer_add(m, from) : NULL;

	if (!peer || seal->step + 1 <= peer->reported)
		return;
	peer->reported = seal->step + 1;
	peer->reported_sum = seal->sum_digest;
	peer->reported_state = seal->state_digest;
	peer->nheld = seal->nheld;
	for (uint32_t i = 0; i < seal->nheld; i++)
		peer->held[i] = seal->held[i];
	compare(m, peer);
}

void hd_member_watch(struct hd_member *m)
{
	for (uint32_t i = 0; i < m->view.nmembers; i++) {
		struct hd_member_peer *peer = m->view.member[i] == m->worker ? NULL : hd_member_peer_add(m,
			m->view.member[i]);
		/* repeated: reports of a joiner are not kept */
		if (peer && !peer->up) {
			peer->suspicion = HD_CLOSED;
			m->peer_lost = true;
			hd_member_suspect(m, peer->worker, HD_CLOSED);
		}
	}
}

bool hd_member_all_up(const struct hd_member *m)
{
	for (uint32_t i = 0; i < m->view.nmembers; i++)
		if (!hd_member_is_up(m, m->view.member[i]))
			return false;
	return true;
}

bool hd_member_lost_any(const struct hd_member *m)
{
	for (uint32_t i = 0; i < m->npeers; i++)
		if (m->peer[i].met && !m->peer[i].up && hd_member_is_in(m, m->peer[i].worker))
			return true;
	return false;
}

void hd_member_end_wait(struct hd_member *m)
{
	if (!m->links_ns)
		return;
	m->links_ns = 0;
	hd_member_watch(m);
}

static void say_join(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_JOIN);

	msg->join = (struct hd_msg_join){
		.worker = m->worker, .member = m->state == HD_MEMBER || m->state == HD_HALTED,
			.ndevices = m->config.ndevices, .at = m->at,
		.memory = m->config.memory, .vn_ps = m->config.vn_ps, .nonce = m->config.nonce,
		.job = m->config.job, .kernels = m->config.kernels,
		.naddress = (uint32_t)strlen(m->config.address), .address = m->config.address,
		.nhost = (uint32_t)strlen(m->config.host), .host = m->config.host,
		.nzone = (uint32_t)strlen(m->config.zone), .zone = m->config.zone,
	};
	hd_member_say(m, msg);
}

void hd_member_say_synced(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SYNCED);

	assert(m->syncing && m->synced);
	msg->synced.source = m->from.source;
	msg->synced.transfer = m->from.transfer;
	hd_member_say(m, msg);
}

/* What is left now, also to a coordinator that hears of it later. */
static uint64_t left_ns(const struct hd_member *m)
{
	return !m->goes_ns ? 0 : m->goes_ns > m->now_ns ? (uint64_t)(m->goes_ns - m->now_ns) : 1;
}

void hd_member_leave(struct hd_member *m, bool gone)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_LEAVE);

	assert(m->state != HD_GONE);
	msg->leave.code = m->drain_code;
	msg->leave.gone = gone;
	msg->leave.left_ns = left_ns(m);
	msg->leave.nwhy = (uint32_t)strlen(m->drain_why);
	msg->leave.why = m->drain_why;
	hd_member_say(m, msg);
}

void hd_member_left(struct hd_member *m)
{
	hd_member_leave(m, true);
	hd_member_exit(m, m->draining ? m->drain_code : 0, "this worker left the job");
}

void hd_member_say_ready_to_sync(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_READY_TO_SYNC);

	msg->ready_to_sync.given_up = m->given_up;
	hd_member_say(m, msg);
}

/* A link that closed lost what was on it: everything that awaits an answer is said again. */
static void on_coordinator(struct hd_member *m)
{
	m->co_up = true;
	m->co_silent = m->peer_lost = false;
	say_join(m);
	if (m->warmed_up && !m->syncing)
		hd_member_say_ready_to_sync(m);
	if (m->state == HD_SYNCING && m->synced)
		hd_member_say_synced(m);
	m->next.said = false;
	hd_member_say_prepared(m);
	for (uint32_t i = 0; i < m->npeers; i++)
		if (m->peer[i].suspicion != HD_HEARD)
			hd_member_suspect(m, m->peer[i].worker, m->peer[i].suspicion);
	hd_member_resay_seals(m);
	for (uint32_t i = 0; i < m->npeers; i++)                  /* of the step that was just named */
		if (m->peer[i].corrupt)
			hd_member_suspect(m, m->peer[i].worker, HD_CORRUPT);
	hd_member_say_vain(m);
	if (m->held && m->status_said)
		hd_member_status(m);
	if (m->done)
		hd_member_done(m);
	if (m->draining)
		hd_member_leave(m, false);
}

void hd_member_on_up(struct hd_member *m, uint32_t worker)
{
	if (worker == HD_COORDINATOR) {
		on_coordinator(m);
		return;
	}
	struct hd_member_peer *peer = hd_member_peer_add(m, worker);
	if (!peer)
		return;
	peer->up = peer->met = true;
	if (m->links_ns && hd_member_all_up(m))
		m->links_ns = 0;
	if (peer->suspicion != HD_HEARD) {
		peer->suspicion = HD_HEARD;
		hd_member_suspect(m, worker, HD_HEARD);
	}
	hd_member_say_prepared(m);
}

/* Members in their order, then the others: there may be none yet. A worker without an id never heard of
 * any, and the run may not have begun. */
int64_t hd_member_take_over_at(const struct hd_member *m)
{
	uint32_t place = hd_member_is_in(m, m->worker) ? hd_view_index(&m->view, m->worker)
		: m->worker == HD_NOBODY ? (uint32_t)(m->config.nonce % 16) :
			HD_MAX_MEMBERS / 4 + m->worker % 16;

	return m->now_ns + HD_TIMEOUT_NS(TAKE_OVER, m->config.detect_ns) + (int64_t)place *
		HD_TIMEOUT_NS(STAGGER, m->config.detect_ns);
}

static void on_coordinator_lost(struct hd_member *m, enum hd_suspicion why)
{
	bool gone = !m->co_up || m->co_silent;

	m->co_silent = why == HD_SILENT;
	m->co_up = m->co_up && (why == HD_SILENT || why == HD_HEARD);
	if (gone)
		return;
	m->co_lost_ns = m->call_ns = m->now_ns;
	m->take_over_ns = hd_member_take_over_at(m);
}

/* A joiner needs the messages of all members until it switches, and those of leavers no longer after. */
static bool is_awaited(const struct hd_member *m, uint32_t worker)
{
	/* no member has sealed all below HD_NO_STEP */
	bool known = hd_seals_has(&m->seals, worker, m->switch_step);

	for (uint32_t i = 0; m->next.open && !known && i < m->seals.nmembers; i++)
		if (m->seals.by[i].worker == worker)
			return true;
	return false;
}

void hd_member_on_lost(struct hd_member *m, uint32_t worker, enum hd_suspicion why)
{
	if (worker == HD_COORDINATOR) {
		on_coordinator_lost(m, why);
		return;
	}
	struct hd_member_peer *peer = hd_member_peer_of(m, worker);
	bool matters = hd_member_is_in(m, worker) || (m->next.open && hd_view_has(&m->next.view, worker)) ||
		is_awaited(m, worker);
	if (!peer)
		return;
	if (why == HD_CLOSED || why == HD_EXITED)
		peer->up = false;
	if (why != HD_HEARD && !matters)
		return;
	if (why == HD_HEARD && peer->suspicion != HD_SILENT)
		return;                                   /* a link that closed is heard again by UP alone */
	if (m->links_ns && !peer->met && why == HD_CLOSED && hd_member_is_in(m, worker))
		return;                                   /* rule 11: it never came up, and is called again */
	peer->suspicion = why;
	m->peer_lost |= why != HD_HEARD;
	hd_member_suspect(m, worker, why);
}
