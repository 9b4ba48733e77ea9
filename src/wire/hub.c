#include "wire/hub.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/peer.h"

enum {
	/* strangers of other machines take none of those of this one */
	PLACES = HD_HUB_PEERS + 2 * HD_HUB_GREETING,
	LISTENER_TAG = 1 << 15,           /* in the low 16 bits: a listener, not a peer */
	EVENTS = 64,
	ACCEPTS = 64,                     /* at one event; the loop tells of the rest again */
	SPIN_NS = 50000,
};

struct listener { struct hd_sock sock; const struct hd_transport *transport; };

struct hd_hub_impl {
	struct hd_peers peers;            /* first: admit() gets it */
	struct hd_wire_events owner;
	struct listener listeners[HD_HUB_LISTENERS];
	uint32_t n_listeners, guests;
	uint64_t calls;                   /* callbacks made: has anything been done? */
	struct hd_loop_event events[EVENTS];
	/* places from here on were never taken: a poll that walks all of them costs more than a small
	 * step's work */
	uint32_t used;
	struct hd_peer places[PLACES];
};

/* ---- callbacks: counted on their way to the owner ---- */

static const struct hd_wire_events *owner_of(void *self)
{
	struct hd_hub_impl *h = self;

	h->calls++;
	return &h->owner;
}

static void pass_up(void *self, const struct hd_peer_info *peer) { const struct hd_wire_events *o =
	owner_of(self); o->up(o->self, peer); }
static void pass_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	const struct hd_wire_events *o = owner_of(self);
	o->lost(o->self, worker, why, text);
}
static void pass_suspect(void *self, uint32_t worker, int64_t silent_ms)
{
	const struct hd_wire_events *o = owner_of(self);
	o->suspect(o->self, worker, silent_ms);
}
static void pass_message(void *self, const struct hd_message *message) { const struct hd_wire_events *o =
	owner_of(self); o->message(o->self, message); }
static void pass_arrived(void *self, const struct hd_arrival *arrival) { const struct hd_wire_events *o =
	owner_of(self); o->arrived(o->self, arrival); }
static void pass_sent(void *self, const struct hd_sent *sent) { const struct hd_wire_events *o =
	owner_of(self); o->sent(o->self, sent); }
static void pass_stale(void *self, uint32_t worker, uint32_t epoch) { const struct hd_wire_events *o =
	owner_of(self); o->stale(o->self, worker, epoch); }
static void pass_ahead(void *self, uint32_t worker, uint32_t epoch) { const struct hd_wire_events *o =
	owner_of(self); o->ahead(o->self, worker, epoch); }
static void pass_probed(void *self, const struct hd_probe *probe) { const struct hd_wire_events *o =
	owner_of(self); o->probed(o->self, probe); }

/* ---- places ---- */

static bool is_up(const struct hd_peer *peer) { return peer->state == HD_PEER_UP; }
static bool is_greeting(const struct hd_peer *peer) { return peer->state != HD_PEER_DOWN && !peer->stream; }

/* The connection of a worker: up, closing, or (outgoing) on the way. */
static struct hd_peer *find(const struct hd_hub *hub, uint32_t worker)
{
	for (uint32_t i = 0; i < hub->impl->used; i++) {
		struct hd_peer *peer = &hub->impl->places[i];
		if (peer->state != HD_PEER_DOWN && peer->worker == worker && (peer->stream || peer->outgoing))
			return peer;
	}
	return NULL;
}

static struct hd_peer *up(const struct hd_hub *hub, uint32_t worker, enum hd_err *err, struct hd_diag *diag)
{
	struct hd_peer *peer = find(hub, worker);

	*err = HD_OK;
	if (peer && is_up(peer))
		return peer;
	*err = hd_fail(diag, HD_E_PEERLOST, "worker %u is not connected", worker);
	return NULL;
}

static uint32_t count(const struct hd_hub_impl *h, bool (*is)(const struct hd_peer *peer))
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->used; i++)
		n += is(&h->places[i]);
	return n;
}

static struct hd_peer *free_place(struct hd_hub_impl *h)
{
	for (uint32_t i = 0; i < PLACES; i++)
		if (h->places[i].state == HD_PEER_DOWN) {
			h->used = i < h->used ? h->used : i + 1;
			return &h->places[i];
		}
	return NULL;
}

static bool is_incoming_greeting(const struct hd_peer *peer) { return is_greeting(peer) && !peer->outgoing; }

/* By a way that other machines can come by, or by one of this machine's: either has places of its own. */
static uint32_t greeting_by(const struct hd_hub_impl *h, const struct hd_transport *way)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->used; i++)
		n += is_incoming_greeting(&h->places[i]) &&
			!((h->places[i].conn.ops->powers ^ way->powers) & HD_WIRE_WORLD);
	return n;
}

static bool is_stranger(const struct hd_peer *peer) { return is_incoming_greeting(peer) &&
	peer->conn.ops->powers & HD_WIRE_WORLD; }

/* Ungreeted connections of the address of `peer`, the new one counted with its own address; ties go against
 * the address of the new one. */
static uint32_t crowding(const struct hd_hub_impl *h, const struct hd_peer *peer, uint64_t now_from)
{
	uint64_t from = peer->conn.sock.from;
	uint32_t n = from == now_from;

	for (uint32_t i = 0; i < h->used; i++)
		n += is_stranger(&h->places[i]) && h->places[i].conn.sock.from == from;
	return 2 * n + (from == now_from);
}

/* All places for ungreeted connections are taken: close the oldest one of the address that has most. A silent
 * client thus blocks only silent clients of its own address; no address pays for another. */
static void make_way(struct hd_hub_impl *h, const struct hd_transport *way, uint64_t from)
{
	struct hd_peer *goes = NULL;
	uint32_t most = 0;

	if (!(way->powers & HD_WIRE_WORLD) || greeting_by(h, way) < HD_HUB_GREETING)
		return;
	for (uint32_t i = 0; i < h->used; i++) {
		struct hd_peer *peer = &h->places[i];
		uint32_t n = is_stranger(peer) ? crowding(h, peer, from) : 0;
		if (n > most || (n && n == most && peer->began_ns < goes->began_ns)) {
			most = n;
			goes = peer;
		}
	}
	assert(goes);
	hd_peer_close(goes, HD_CLOSE_CROWDED, "", false);
}

/* a peer that is down has none */
static bool has_stream(const struct hd_peer *peer) { return peer->stream; }

/* Of two crossing connects the one of the lower id stays. A later connect of the same peer replaces the old
 * connection once that is suspected. */
static bool gives_way(struct hd_peer *old, uint32_t self)
{
	if (!old->stream && old->worker < self) {
		hd_peer_close(old, HD_CLOSE_LIVE, "", false);        /* ours; `up` comes from theirs */
		return true;
	}
	if (is_up(old) && old->suspected) {
		hd_peer_close(old, HD_CLOSE_SILENT, "it called again after a silence", true);
		return true;
	}
	return false;
}

/* The greeting of an incoming connection is in order; may it be this worker? */
static enum hd_close admit(struct hd_peers *peers, uint32_t *worker)
{
	struct hd_hub_impl *h = (struct hd_hub_impl *)peers;
	struct hd_hub hub = { h };
	struct hd_peer *old = *worker == HD_WORKER_NONE ? NULL : find(&hub, *worker);

	/* Looked up again: in `lost` of the old one the owner may have connected already. */
	if (old && (!gives_way(old, peers->config.worker) || find(&hub, *worker)))
		return HD_CLOSE_LIVE;
	if (count(h, has_stream) >= peers->config.peers_cap)
		return HD_CLOSE_CROWDED;
	if (*worker == HD_WORKER_NONE)
		*worker = HD_WORKER_GUEST + h->guests++ % HD_WORKER_GUEST;
	return HD_CLOSE_NONE;
}

/* ---- life ---- */

static uint64_t loop_stamp(void *self)
{
	struct hd_hub_impl *h = self;

	return (uint64_t)hd_clock_now_ns(h->peers.loop->clock);
}

enum hd_err hd_hub_init(struct hd_hub *hub, const struct hd_hub_config *config,
	const struct hd_wire_events *events, struct hd_loop *loop,
			struct hd_net *net, struct hd_diag *diag)
{
	if (config->peers_cap < 1 || config->peers_cap > HD_HUB_PEERS || config->streams_cap < 1 ||
		config->streams_cap > 65536 ||
	    config->detect_ms < 10 || config->detect_ms > 600000 || config->role < HD_ROLE_WORKER ||
	    config->role > HD_ROLE_FUNCTION ||
	    (config->worker >= HD_WORKER_GUEST && config->worker != HD_WORKER_NONE))
		return hd_fail(diag, HD_E_INVAL,
			"a hub of worker %u for %u peers with %u streams each, T %u ms: out of range",
			config->worker,
			config->peers_cap, config->streams_cap, config->detect_ms);
	struct hd_hub_impl *h = hd_alloc(sizeof *h);
	if (!h)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a hub");
	memset(h, 0, sizeof *h);
	h->owner = *events;
	h->peers = (struct hd_peers){ .config = *config, .loop = loop, .net = net, .admit = admit,
		.events = { h, pass_up, pass_lost, pass_suspect, pass_message, pass_arrived, pass_sent,
		pass_stale, pass_ahead, pass_probed },
		.stamp = config->stamp ? config->stamp : loop_stamp,
		.stamp_self = config->stamp ? events->self : h };
	for (uint32_t i = 0; i < PLACES; i++) {
		h->places[i].index = i;
		h->places[i].peers = &h->peers;
	}
	enum hd_err err = config->key ? hd_tls_realm_make(&h->peers.realm, diag) : HD_OK;
	if (err) {
		hd_free(h);
		return err;
	}
	hub->impl = h;
	return HD_OK;
}

/* By a good-bye; a connection without a stream ends at its next tick, so that `lost` comes from a poll. */
static void end_soon(struct hd_peer *peer, enum hd_close why, const char *text)
{
	if (is_up(peer))
		hd_peer_bye(peer, why, text);
	else if (peer->state != HD_PEER_DOWN && peer->state != HD_PEER_CLOSING) {
		peer->deadline_ns = INT64_MIN;
		peer->bye = why;
	}
}

static void close_listeners(struct hd_hub_impl *h)
{
	for (uint32_t i = 0; i < h->n_listeners; i++) {
		hd_loop_unwatch(h->peers.loop, h->listeners[i].sock.id);
		hd_sock_close(&h->listeners[i].sock);
	}
	h->n_listeners = 0;
}

void hd_hub_finish(struct hd_hub *hub)
{
	struct hd_hub_impl *h = hub->impl;

	if (!h)
		return;
	for (uint32_t i = 0; i < h->used; i++)
		if (h->places[i].state != HD_PEER_DOWN)
			hd_peer_close(&h->places[i], HD_CLOSE_DROPPED, "", false);
	close_listeners(h);
	hd_tls_realm_finish(&h->peers.realm);
	hd_free(h);
	hub->impl = NULL;
}

void hd_hub_close(struct hd_hub *hub, enum hd_close why, const char *text)
{
	close_listeners(hub->impl);
	for (uint32_t i = 0; i < hub->impl->used; i++)
		end_soon(&hub->impl->places[i], why, text);
}

bool hd_hub_is_closed(const struct hd_hub *hub)
{
	for (uint32_t i = 0; i < hub->impl->used; i++)
		if (hub->impl->places[i].state != HD_PEER_DOWN)
			return false;
	return true;
}

/* ---- connections ---- */

static enum hd_err transport_of(const struct hd_hub_impl *h, const char *name,
	const struct hd_transport **transport, struct hd_diag *diag)
{
	const struct hd_hub_config *c = &h->peers.config;

	*transport = hd_transport_find(name);
	if (!*transport)
		return hd_fail(diag, HD_E_INVAL, "no transport is called %s", name);
	if ((*transport)->powers & HD_WIRE_OPEN && !c->plaintext)
		return hd_fail(diag, HD_E_REFUSED,
			"transport %s is open to others; use tls with a key, or allow plaintext", name);
	if ((*transport)->powers & HD_WIRE_PROVES && !c->key)
		return hd_fail(diag, HD_E_REFUSED, "transport %s needs the job's key", name);
	return HD_OK;
}

bool hd_hub_names_hosts(const char *transport)
{
	const struct hd_transport *row = hd_transport_find(transport);

	return row && row->powers & HD_WIRE_WORLD;
}

enum hd_err hd_hub_listen(struct hd_hub *hub, const char *transport, char addr[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	struct hd_hub_impl *h = hub->impl;
	struct listener made = { .transport = NULL };

	enum hd_err err = transport_of(h, transport, &made.transport, diag);
	if (err)
		return err;
	if (h->n_listeners == HD_HUB_LISTENERS)
		return hd_fail(diag, HD_E_NOSPACE, "a hub listens at %d places at most", HD_HUB_LISTENERS);
	err = made.transport->listen(h->peers.net, &made.sock, addr, diag);
	if (err)
		return err;
	err = hd_loop_watch(h->peers.loop, made.sock.id, HD_LOOP_READ,
		HD_HUB_TAG | LISTENER_TAG | h->n_listeners, diag);
	if (err) {
		hd_sock_close(&made.sock);
		return err;
	}
	memcpy(addr, made.sock.addr, HD_ADDR_CAP);
	h->listeners[h->n_listeners++] = made;
	return HD_OK;
}

enum hd_err hd_hub_connect(struct hd_hub *hub, uint32_t worker, const char *transport, const char *addr,
	struct hd_diag *diag)
{
	struct hd_hub_impl *h = hub->impl;
	const struct hd_transport *row;
	struct hd_peer *place = free_place(h);

	if (worker == h->peers.config.worker || worker >= HD_WORKER_GUEST)
		return hd_fail(diag, HD_E_INVAL, "worker %u is not one to connect to", worker);
	if (find(hub, worker))
		return hd_fail(diag, HD_E_EXISTS, "worker %u is connected, or being connected", worker);
	if (!place)
		return hd_fail(diag, HD_E_AGAIN, "all %d places for connections are taken", PLACES);
	enum hd_err err = transport_of(h, transport, &row, diag);
	return err ? err : hd_peer_connect(place, worker, row, addr, diag);
}

void hd_hub_drop(struct hd_hub *hub, uint32_t worker, enum hd_close why, const char *text)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer)
		end_soon(peer, why, text);
}

bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker)
{
	struct hd_peer *peer = find(hub, worker);
	return peer && is_up(peer);
}

bool hd_hub_is_away(const struct hd_hub *hub, uint32_t worker)
{
	struct hd_peer *peer = find(hub, worker);
	return peer && is_up(peer) && peer->conn.ops->powers & HD_WIRE_WORLD;
}

void hd_hub_call_me(struct hd_hub *hub, uint32_t worker)
{
	assert(worker < HD_WORKER_GUEST);
	/* a peer that calls already would meet a worker without an id */
	for (uint32_t i = 0; i < hub->impl->used; i++)
		end_soon(&hub->impl->places[i], HD_CLOSE_DONE, "called by another id from now on");
	hub->impl->peers.config.worker = worker;
}

/* ---- epochs ---- */

void hd_hub_decided(struct hd_hub *hub, uint32_t next)
{
	hub->impl->peers.next = next;
	for (uint32_t i = 0; i < hub->impl->used; i++)
		if (has_stream(&hub->impl->places[i]))
			hd_stream_decided(hub->impl->places[i].stream, next);
}

void hd_hub_epoch(struct hd_hub *hub, uint32_t epoch, struct hd_hash plan)
{
	struct hd_peers *peers = &hub->impl->peers;

	assert(epoch > peers->epoch);
	peers->epoch = epoch;
	peers->next = peers->next > epoch ? peers->next : epoch;
	peers->plan = plan;
	for (uint32_t i = 0; i < hub->impl->used; i++)
		if (has_stream(&hub->impl->places[i]))
			hd_stream_epoch(hub->impl->places[i].stream, epoch, plan);
}

enum hd_err hd_hub_channel(struct hd_hub *hub, uint32_t worker, const struct hd_transfer *in, size_t n_in,
	const struct hd_transfer *out, size_t n_out,
			   struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_channel(peer->stream, in, n_in, out, n_out, diag) : err;
}

/* ---- what is said ---- */

static int64_t now_ns(const struct hd_hub *hub) { return hd_clock_now_ns(hub->impl->peers.loop->clock); }

enum hd_err hd_hub_tell(struct hd_hub *hub, uint32_t worker, uint32_t id, uint64_t step, const void *bytes,
	size_t len, struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_tell(peer->stream, id, step, bytes, len, diag) : err;
}

enum hd_err hd_hub_send(struct hd_hub *hub, uint32_t worker, const struct hd_send *send, struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_send(peer->stream, send, now_ns(hub), diag) : err;
}

enum hd_err hd_hub_answer(struct hd_hub *hub, uint32_t worker, const struct hd_answer *answer,
	struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_answer(peer->stream, answer, now_ns(hub), diag) : err;
}

void hd_hub_cancel(struct hd_hub *hub, uint32_t worker, uint64_t token)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer && peer->stream)
		hd_stream_cancel(peer->stream, token);
}

void hd_hub_rank(struct hd_hub *hub, uint32_t worker, uint64_t token, int32_t priority)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer && peer->stream)
		hd_stream_rank(peer->stream, token, priority);
}

void hd_hub_refuse(struct hd_hub *hub, uint32_t worker, uint64_t request)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer && peer->stream)
		hd_stream_refuse(peer->stream, request);
}

enum hd_err hd_hub_post(struct hd_hub *hub, uint32_t worker, uint32_t transfer, void *buffer,
	struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_post(peer->stream, transfer, buffer, now_ns(hub), diag) : err;
}

enum hd_err hd_hub_expect(struct hd_hub *hub, uint32_t worker, uint64_t request, void *buffer, uint64_t cap,
	struct hd_diag *diag)
{
	enum hd_err err;
	struct hd_peer *peer = up(hub, worker, &err, diag);
	return peer ? hd_stream_expect(peer->stream, request, buffer, cap, now_ns(hub), diag) : err;
}

void hd_hub_want(struct hd_hub *hub, uint32_t worker, uint32_t transfer)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer && is_up(peer))
		hd_stream_want(peer->stream, transfer);
}

void hd_hub_probe(struct hd_hub *hub, uint32_t worker)
{
	struct hd_peer *peer = find(hub, worker);

	if (peer && is_up(peer))
		hd_stream_ping(peer->stream);
}

/* ---- turning ---- */

static void accept_some(struct hd_hub_impl *h, struct listener *listener)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct hd_sock sock;
		/* Out of descriptors is the machine's trouble, not this connection's: it waits in the
		 * queue, and the next event tries again. */
		if (hd_sock_accept(&listener->sock, &sock, NULL))
			return;
		bool watched = sock.id < HD_LOOP_WATCHED;
		if (watched)
			make_way(h, listener->transport, sock.from);
		struct hd_peer *place = free_place(h);
		if (!place || !watched || greeting_by(h, listener->transport) >= HD_HUB_GREETING) {
			h->peers.closed[HD_CLOSE_CROWDED]++;
			hd_sock_close(&sock);
			continue;
		}
		hd_peer_accept(place, listener->transport, &sock);
		hd_peer_move(place);
	}
}

static void step_event(struct hd_hub_impl *h, struct hd_loop_event event)
{
	uint32_t low = event.tag & 0xffff, index = low & (LISTENER_TAG - 1);

	if (low & LISTENER_TAG) {
		accept_some(h, &h->listeners[index]);
		return;
	}
	struct hd_peer *peer = &h->places[index];
	if (peer->generation != (event.tag >> 16 & 0xffffff))
		return;                   /* closed by an earlier event of this batch */
	assert(peer->state != HD_PEER_DOWN);
	hd_peer_move(peer);
}

/* Whether there is something to do that no event will tell of. */
static bool is_due(const struct hd_peer *peer)
{
	return peer->state != HD_PEER_DOWN && (peer->more ||
		(peer->stream && (hd_stream_is_due(peer->stream) ||
		(!peer->blocked && hd_stream_has_out(peer->stream)))));
}

static void step_peers(struct hd_hub_impl *h)
{
	int64_t now = hd_clock_now_ns(h->peers.loop->clock);

	for (uint32_t i = 0; i < h->used; i++) {
		struct hd_peer *peer = &h->places[i];
		if (hd_peer_due_ns(peer) <= now)
			hd_peer_tick(peer);
		if (is_due(peer))
			hd_peer_move(peer);
	}
}

int64_t hd_hub_due_ns(const struct hd_hub *hub)
{
	int64_t due = INT64_MAX, now = hd_clock_now_ns(hub->impl->peers.loop->clock);

	for (uint32_t i = 0; i < hub->impl->used; i++) {
		const struct hd_peer *peer = &hub->impl->places[i];
		int64_t at = is_due(peer) ? now : hd_peer_due_ns(peer);
		due = at < due ? at : due;
	}
	return due;
}

static enum hd_err poll_events(struct hd_hub_impl *h, int64_t until_ns, size_t cap, size_t *n,
	struct hd_diag *diag)
{
	struct hd_loop *loop = h->peers.loop;
	int64_t now = hd_clock_now_ns(loop->clock), spin_ns = now + SPIN_NS < until_ns ? now + SPIN_NS :
		until_ns;
	enum hd_err err = HD_OK;

	*n = 0;
	if (h->peers.config.spin && !loop->sim)
		do
			err = hd_loop_poll(loop, now, h->events, cap, n, diag);
		while (!err && !*n && (now = hd_clock_now_ns(loop->clock)) < spin_ns);
	return err || *n ? err : hd_loop_poll(loop, until_ns, h->events, cap, n, diag);
}

enum hd_err hd_hub_poll(struct hd_hub *hub, int64_t until_ns, struct hd_loop_event *other, size_t cap,
	size_t *n, struct hd_diag *diag)
{
	struct hd_hub_impl *h = hub->impl;
	uint64_t calls = h->calls;
	size_t n_events, n_other = 0;

	assert(cap >= 1);
	step_peers(h);
	int64_t due = h->calls != calls ? hd_clock_now_ns(h->peers.loop->clock) : hd_hub_due_ns(hub);
	/* No more at once than the owner has space for: all of them may be its own. */
	enum hd_err err = poll_events(h, due < until_ns ? due : until_ns, cap < EVENTS ? cap : EVENTS,
		&n_events, diag);
	if (err)
		return err;
	for (size_t i = 0; i < n_events; i++)
		if (h->events[i].tag >= HD_HUB_TAG)
			step_event(h, h->events[i]);
		else
			other[n_other++] = h->events[i];
	if (n_events)
		step_peers(h);
	*n = n_other;
	return HD_OK;
}

void hd_hub_wake(struct hd_hub *hub) { hd_loop_wake(hub->impl->peers.loop); }

uint32_t hd_hub_protocol(void) { return HD_WIRE_VERSION; }

void hd_hub_stats(const struct hd_hub *hub, struct hd_hub_stats *stats)
{
	const struct hd_hub_impl *h = hub->impl;

	*stats = h->peers.gone;
	memcpy(stats->closed, h->peers.closed, sizeof stats->closed);
	stats->up = count(h, is_up);
	stats->greeting = count(h, is_greeting);
	for (uint32_t i = 0; i < h->used; i++)
		if (has_stream(&h->places[i]))
			hd_stream_stats(h->places[i].stream, stats);
}
