#include "wire/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "base/timeouts.h"
#include "sys/crypto.h"
#include "sys/failpoint.h"

enum {
	MOVES = 64,                       /* reads and writes before others have a turn */
	/* What came with HD_WIRE_VERSION 2: ids of transfers are rows of the table (ADR 3, 93). 3: norms come
	 * from the last of a line (ADR 106). 4: parts of tied parameters' gradients (ADR 97). 5: VIEW and
	 * SEAL have other numbers and fields, messages that ask for bulk begin at 128 (ADR 166). 6: JOIN
	 * names a zone (ADR 164). 7: PRIO names a transfer that has not begun (ADR 205). 8: owners are dealt
	 * by bytes (ADR 233). 9: SEAL says each of several losses (ADR 267). 10: the least owns where all
	 * have the slots (ADR 270). Builds of different versions must not meet */
	VERSION_LEAST = HD_WIRE_VERSION, VERSION_GREATEST = HD_WIRE_VERSION,
};

static int64_t now_ns(const struct hd_peer *peer) { return hd_clock_now_ns(peer->peers->loop->clock); }
static bool is_open_path(const struct hd_peer *peer) { return peer->conn.ops->powers & HD_WIRE_OPEN; }

static void set_state(struct hd_peer *peer, enum hd_peer_state state)
{
	static const uint8_t may[] = {
		[HD_PEER_DOWN] = 1u << HD_PEER_CONNECTING,
		[HD_PEER_CONNECTING] = 1u << HD_PEER_GREETING | 1u << HD_PEER_DOWN,
		[HD_PEER_GREETING] = 1u << HD_PEER_UP | 1u << HD_PEER_CLOSING | 1u << HD_PEER_DOWN,
		[HD_PEER_UP] = 1u << HD_PEER_CLOSING | 1u << HD_PEER_DOWN,
		[HD_PEER_CLOSING] = 1u << HD_PEER_DOWN,
	};

	assert(may[peer->state] >> state & 1);
	(void)may;
	peer->state = state;
}

static uint64_t tag_of(const struct hd_peer *peer) { return HD_HUB_TAG | (uint64_t)peer->generation << 16 |
	peer->index; }

/* The loop is asked for what the row wants; a loop that cannot is a connection that cannot. A second id
 * goes with the first. */
static void watch(struct hd_peer *peer, unsigned wanted)
{
	unsigned interest = peer->conn.ops->wants(&peer->conn, wanted);
	struct hd_loop *loop = peer->peers->loop;
	int second = peer->conn.second_id;
	enum hd_err err = HD_OK;

	if (interest == peer->interest && (second < 0 || peer->second_watched == (interest != 0)))
		return;
	peer->interest = interest;
	if (interest)
		err = hd_loop_watch(loop, peer->conn.sock.id, interest, tag_of(peer), NULL);
	else
		hd_loop_unwatch(loop, peer->conn.sock.id);
	if (second >= 0 && !err) {
		peer->second_watched = interest != 0;
		if (interest)
			err = hd_loop_watch(loop, second, HD_LOOP_READ, tag_of(peer), NULL);
		else
			hd_loop_unwatch(loop, second);
	}
	if (err)
		hd_peer_close(peer, HD_CLOSE_GONE, "the loop watches as many descriptors as it can", true);
}

/* ---- ends ---- */

void hd_peer_close(struct hd_peer *peer, enum hd_close why, const char *text, bool tell)
{
	struct hd_peers *peers = peer->peers;
	bool known = peer->stream || peer->outgoing;
	struct hd_stream *stream = peer->stream;
	uint32_t worker = peer->worker;
	char copy[HD_BYE_TEXT + 200];

	snprintf(copy, sizeof copy, "%s", text);          /* it may lie in what is freed here */
	peers->closed[why]++;
	hd_loop_unwatch(peers->loop, peer->conn.sock.id);
	if (peer->conn.second_id >= 0)
		hd_loop_unwatch(peers->loop, peer->conn.second_id);
	peer->conn.ops->close(&peer->conn);
	set_state(peer, HD_PEER_DOWN);
	peer->generation = (peer->generation + 1) & 0xffffff;
	peer->stream = NULL;
	if (stream) {
		hd_stream_stats(stream, &peers->gone);
		if (tell)
			hd_stream_lost(stream);
		hd_stream_destroy(stream);
	}
	if (known && tell)
		peers->events.lost(peers->events.self, worker, why, copy);
}

static void fail(struct hd_peer *peer, enum hd_close why, const struct hd_diag *diag)
{
	hd_peer_close(peer, why, diag && diag->text[0] ? diag->text : hd_close_text(why), true);
}

/* An error of the transport, as a reason. */
static enum hd_close reason_of(enum hd_err err)
{
	return err == HD_E_REFUSED ? HD_CLOSE_KEY : err == HD_E_PROTOCOL ? HD_CLOSE_FRAME : HD_CLOSE_GONE;
}

void hd_peer_bye(struct hd_peer *peer, enum hd_close why, const char *text)
{
	assert(peer->state == HD_PEER_UP);
	hd_stream_bye(peer->stream, why, text);
	peer->bye = why;
	set_state(peer, HD_PEER_CLOSING);
	peer->deadline_ns = now_ns(peer) + hd_peer_t_ns(peer);
}

/* ---- greeting ---- */

static void put_greeting(struct hd_peer *peer, enum hd_frame_type type, uint16_t least, uint16_t greatest)
{
	const struct hd_hub_config *c = &peer->peers->config;
	struct hd_greeting_payload greeting = { least, greatest, c->worker, (uint32_t)c->role, c->detect_ms,
		c->job, c->job_hash, c->kernels, peer->nonce };
	struct hd_frame frame = { .type = type, .epoch = peer->peers->epoch, .len = hd_greeting_len };

	hd_greeting_put(&greeting, peer->out + HD_FRAME_HEADER);
	if (is_open_path(peer)) {
		frame.flags = HD_FRAME_CRC;
		frame.payload_crc = hd_crc32c(0, peer->out + HD_FRAME_HEADER, hd_greeting_len);
	}
	hd_frame_put(&frame, peer->out);
	peer->out_len = HD_FRAME_HEADER + hd_greeting_len;
	peer->out_at = 0;
}

/* A refused greeting is answered with the reason if the peer may know it: it uses a private transport, or
 * names the job. */
static void refuse(struct hd_peer *peer, enum hd_close why, bool may_know, const struct hd_diag *diag)
{
	const char *text = hd_close_text(why);
	size_t len = strlen(text) < HD_BYE_TEXT ? strlen(text) : HD_BYE_TEXT;
	struct hd_frame frame = { .type = HD_FRAME_BYE, .epoch = peer->peers->epoch,
		.len = (uint32_t)(4 + len) };

	if (peer->outgoing || !may_know) {
		fail(peer, why, diag);
		return;
	}
	hd_put32(peer->out + HD_FRAME_HEADER, (uint32_t)why);
	memcpy(peer->out + HD_FRAME_HEADER + 4, text, len);
	if (is_open_path(peer)) {
		frame.flags = HD_FRAME_CRC;
		frame.payload_crc = hd_crc32c(0, peer->out + HD_FRAME_HEADER, frame.len);
	}
	hd_frame_put(&frame, peer->out);
	peer->out_len = HD_FRAME_HEADER + frame.len;
	peer->out_at = 0;
	peer->bye = why;
	set_state(peer, HD_PEER_CLOSING);
	peer->deadline_ns = now_ns(peer) + hd_peer_t_ns(peer);
}

/* A remote joiner gets the job from the coordinator: until then its job hash is zero, and it has no id. */
static bool may_ask(const struct hd_greeting_payload *hello, const struct hd_hub_config *c, bool outgoing)
{
	static const struct hd_hash unknown = { { 0 } };

	return outgoing ? hello->role == HD_ROLE_COORDINATOR && hd_hash_same(c->job_hash, unknown)
		: c->role == HD_ROLE_COORDINATOR && hello->worker == HD_WORKER_NONE &&
			hd_hash_same(hello->job_hash, unknown);
}

static enum hd_close judge_greeting(struct hd_peer *peer, const struct hd_greeting_payload *hello)
{
	const struct hd_hub_config *c = &peer->peers->config;
	bool proves = peer->conn.ops->powers & HD_WIRE_PROVES;

	if (!hd_hash_same(hello->job, c->job) || (!hd_hash_same(hello->job_hash, c->job_hash) &&
		!may_ask(hello, c, peer->outgoing)))
		return HD_CLOSE_JOB;
	if (hello->least > VERSION_GREATEST || hello->greatest < VERSION_LEAST ||
		hello->least > hello->greatest)
		return HD_CLOSE_VERSION;
	if (peer->outgoing && (hello->least != hello->greatest || !hd_hash_same(hello->nonce, peer->nonce)))
		return HD_CLOSE_ORDER;
	bool computes = hello->role != HD_ROLE_COORDINATOR && c->role != HD_ROLE_COORDINATOR;
	if (computes && !hd_hash_same(hello->kernels, c->kernels))
		return HD_CLOSE_KERNELS;
	if ((hello->worker == c->worker && hello->worker != HD_WORKER_NONE) ||
		(peer->outgoing && hello->worker != peer->worker) ||
	    (proves && hello->worker != peer->conn.ids.peer) ||
	    (hello->worker >= HD_WORKER_GUEST && hello->worker != HD_WORKER_NONE))
		return HD_CLOSE_IDENTITY;
	return HD_CLOSE_NONE;
}

static void come_up(struct hd_peer *peer, const struct hd_greeting_payload *hello)
{
	struct hd_peers *peers = peer->peers;
	struct hd_diag diag = { "" };
	struct hd_stream_config config = { .self = peers->config.worker, .peer = peer->worker,
		.payload_crc = is_open_path(peer),
		.fenced = hello->role != HD_ROLE_COORDINATOR && peers->config.role != HD_ROLE_COORDINATOR,
		.streams_cap = peers->config.streams_cap, .stamp = peers->stamp,
		.stamp_self = peers->stamp_self };

	if (hd_stream_create(&config, &peers->events, &peer->stream, &diag)) {
		fail(peer, HD_CLOSE_DROPPED, &diag);
		return;
	}
	hd_stream_decided(peer->stream, peers->next);
	if (peers->epoch)
		hd_stream_epoch(peer->stream, peers->epoch, peers->plan);
	peer->role = (enum hd_role)hello->role;
	uint32_t mine = peers->config.detect_ms, longest = HD_TIMEOUT_NS(OTHERS_T, mine),
		larger = hello->detect_ms > mine ? hello->detect_ms : mine;
	peer->detect_ms = larger < longest ? larger : longest;
	peer->heard_ns = peer->sent_ns = now_ns(peer);
	set_state(peer, HD_PEER_UP);
	hd_sock_tune(&peer->conn.sock, HD_SOCK_UNACKED_MS, peer->detect_ms);
	if (peers->config.kept_bytes && (peer->conn.ops->powers & HD_WIRE_WORLD))
		hd_sock_tune(&peer->conn.sock, HD_SOCK_KEPT_BYTES, peers->config.kept_bytes);
	struct hd_peer_info info = { peer->worker, peer->role, hello->detect_ms, peer->conn.ops->name,
		peer->outgoing };
	peers->events.up(peers->events.self, &info);
}

static void got_greeting(struct hd_peer *peer, struct hd_diag *diag)
{
	struct hd_greeting_payload hello;

	if (hd_greeting_get(peer->in + HD_FRAME_HEADER, &hello, diag)) {
		fail(peer, HD_CLOSE_FRAME, diag);
		return;
	}
	enum hd_close why = judge_greeting(peer, &hello);
	uint32_t worker = hello.worker;
	if (!why && !peer->outgoing)
		why = peer->peers->admit(peer->peers, &worker);
	if (why) {
		refuse(peer, why, !is_open_path(peer) || hd_hash_same(hello.job, peer->peers->config.job),
			diag);
		return;
	}
	if (!peer->outgoing) {
		peer->worker = worker;
		peer->nonce = hello.nonce;
		put_greeting(peer, HD_FRAME_WELCOME, VERSION_GREATEST, VERSION_GREATEST);
	}
	come_up(peer, &hello);
}

/* The other side refuses: its reason is ours. */
static void got_refusal(struct hd_peer *peer, const struct hd_frame *frame)
{
	enum hd_close why = hd_close_from(hd_get32(peer->in + HD_FRAME_HEADER));
	struct hd_diag diag = { "" };

	(void)frame;
	(void)!hd_fail(&diag, HD_E_PEERLOST, "worker %u refuses: %s", peer->worker, hd_close_text(why));
	fail(peer, why, &diag);
}

/* Reads the one frame that may come, and not a byte more. */
static void read_greeting(struct hd_peer *peer)
{
	struct hd_diag diag = { "" };
	struct hd_frame frame = { .len = 0 };
	size_t got;

	for (;;) {
		if (peer->in_len >= HD_FRAME_HEADER) {
			if (hd_frame_get(peer->in, &frame, &diag)) {
				fail(peer, HD_CLOSE_FRAME, &diag);
				return;
			}
			enum hd_frame_type due = peer->outgoing ? HD_FRAME_WELCOME : HD_FRAME_HELLO;
			if (frame.type != due && !(peer->outgoing && frame.type == HD_FRAME_BYE)) {
				fail(peer, HD_CLOSE_ORDER, NULL);
				return;
			}
			if (is_open_path(peer) != !!(frame.flags & HD_FRAME_CRC)) {
				fail(peer, HD_CLOSE_FRAME, NULL);
				return;
			}
		}
		size_t want = HD_FRAME_HEADER + frame.len;
		if (peer->in_len == want)
			break;
		enum hd_err err = peer->conn.ops->read(&peer->conn,
			&(struct hd_vec){ peer->in + peer->in_len, want - peer->in_len }, 1, &got, &diag);
		if (err == HD_E_AGAIN)
			return;
		if (err || !got) {
			fail(peer, reason_of(err), &diag);
			return;
		}
		peer->in_len += got;
	}
	if (frame.flags & HD_FRAME_CRC && hd_crc32c(0, peer->in + HD_FRAME_HEADER,
		frame.len) != frame.payload_crc)
		fail(peer, HD_CLOSE_CHECKSUM, NULL);
	else if (frame.type == HD_FRAME_BYE)
		got_refusal(peer, &frame);
	else
		got_greeting(peer, &diag);
}

/* ---- bytes ---- */

/* A failpoint's error, as the transport would say it: nothing now, or gone. */
static enum hd_err struck(int error, struct hd_diag *diag)
{
	return !error ? HD_OK : error == EAGAIN ? HD_E_AGAIN : hd_fail(diag, HD_E_PEERLOST, "%s",
		strerror(error));
}

/* What lies in `out`: a greeting or a refusal. True: it is gone. */
static bool write_out(struct hd_peer *peer)
{
	struct hd_diag diag = { "" };
	size_t put;

	while (peer->out_at < peer->out_len) {
		enum hd_err err = peer->conn.ops->write(&peer->conn,
			&(struct hd_vec){ peer->out + peer->out_at, peer->out_len - peer->out_at }, 1,
			&put, &diag);
		if (err == HD_E_AGAIN) {
			peer->blocked = true;
			return false;
		}
		if (err) {
			fail(peer, reason_of(err), &diag);
			return false;
		}
		peer->out_at += put;
		peer->sent_ns = now_ns(peer);
	}
	return true;
}

/* One write of the stream's; false: nothing to write, or not now. */
static bool write_some(struct hd_peer *peer)
{
	struct hd_vec vec[HD_STREAM_VECS];
	struct hd_diag diag = { "" };
	size_t put;

	if (!write_out(peer) || !peer->stream)
		return false;
	if (hd_stream_has_out(peer->stream) && !hd_stream_is_committed(peer->stream) &&
		!peer->conn.ops->room(&peer->conn)) {
		peer->blocked = true;
		return false;
	}
	size_t n = hd_stream_out(peer->stream, now_ns(peer), vec);
	if (!n)
		return false;
	enum hd_err err = struck(HD_FAILPOINT_KEY(WIRE_WRITE, peer->worker), &diag);
	if (!err)
		err = peer->conn.ops->write(&peer->conn, vec, n, &put, &diag);
	if (err == HD_E_AGAIN) {
		peer->blocked = true;
		return false;
	}
	if (err) {
		fail(peer, reason_of(err), &diag);
		return false;
	}
	peer->sent_ns = now_ns(peer);
	hd_stream_wrote(peer->stream, put, peer->sent_ns);
	assert(peer->state >= HD_PEER_UP);
	if (hd_stream_chunk(peer->stream) != peer->chunk) {
		peer->chunk = hd_stream_chunk(peer->stream);
		peer->conn.ops->chunk(&peer->conn, peer->chunk);
	}
	return true;
}

static void heard(struct hd_peer *peer)
{
	peer->heard_ns = now_ns(peer);
	if (peer->suspected) {
		peer->suspected = false;
		peer->peers->events.suspect(peer->peers->events.self, peer->worker, 0);
	}
}

/* After our BYE, whatever still comes is dropped until the other side ends. */
static bool read_away(struct hd_peer *peer)
{
	uint8_t bytes[4096];
	size_t got;

	enum hd_err err = peer->conn.ops->read(&peer->conn, &(struct hd_vec){ bytes, sizeof bytes }, 1, &got,
		NULL);
	if (err == HD_E_AGAIN || (!err && got))
		return !err;
	hd_peer_close(peer, peer->bye, hd_close_text(peer->bye), true);
	return false;
}

/* One read; false: nothing came, or it is closed. */
static bool read_some(struct hd_peer *peer)
{
	struct hd_vec vec[2];
	struct hd_diag diag = { "" };
	size_t got;

	if (!peer->stream || hd_stream_said_bye(peer->stream)) {
		assert(peer->state == HD_PEER_CLOSING);
		return peer->out_at == peer->out_len && read_away(peer);
	}
	size_t n = hd_stream_in(peer->stream, vec);
	if (!n)
		return false;
	enum hd_err err = struck(HD_FAILPOINT_KEY(WIRE_READ, peer->worker), &diag);
	if (!err)
		err = peer->conn.ops->read(&peer->conn, vec, n, &got, &diag);
	if (err == HD_E_AGAIN)
		return false;
	if (err || !got) {
		fail(peer, peer->state == HD_PEER_CLOSING ? peer->bye : reason_of(err), &diag);
		return false;
	}
	heard(peer);
	enum hd_close why = hd_stream_read(peer->stream, got, peer->heard_ns, &diag);
	assert(peer->state >= HD_PEER_UP);
	if (why)
		fail(peer, why, &diag);
	return !why;
}

static bool turn(struct hd_peer *peer)
{
	struct hd_diag diag = { "" };

	enum hd_close why = hd_stream_turn(peer->stream, now_ns(peer), &diag);
	assert(peer->state >= HD_PEER_UP);
	if (why)
		fail(peer, why, &diag);
	return !why;
}

static void go_on(struct hd_peer *peer)
{
	struct hd_diag diag = { "" };

	if (peer->state == HD_PEER_CONNECTING) {
		enum hd_err err = peer->conn.ops->ready(&peer->conn, &diag);
		if (err == HD_E_AGAIN)
			return;
		if (err) {
			fail(peer, reason_of(err), &diag);
			return;
		}
		set_state(peer, HD_PEER_GREETING);
		peer->deadline_ns = peer->began_ns + HD_TIMEOUT_NS(GREETING, hd_peer_t_ns(peer));
		if (peer->outgoing)
			put_greeting(peer, HD_FRAME_HELLO, VERSION_LEAST, VERSION_GREATEST);
	}
	if (peer->state == HD_PEER_GREETING && write_out(peer))
		read_greeting(peer);
}

void hd_peer_move(struct hd_peer *peer)
{
	uint32_t generation = peer->generation;
	int moves = 0;

	peer->blocked = peer->more = false;
	peer->conn.ops->seen(&peer->conn);
	go_on(peer);
	if (peer->state >= HD_PEER_UP && (!peer->stream || turn(peer)))
		for (bool moved = true; moved && peer->generation == generation && moves < MOVES; moves++) {
			moved = read_some(peer);
			if (peer->generation == generation)
				moved |= write_some(peer);
		}
	if (peer->generation != generation)
		return;
	peer->more = moves == MOVES;
	uint32_t epoch;
	bool reads = !peer->stream || hd_stream_held(peer->stream, &epoch) == HD_HELD_NOT;
	watch(peer, (reads ? HD_LOOP_READ : 0u) | (peer->blocked ? HD_LOOP_WRITE : 0u));
}

/* ---- time ---- */

static void tick_up(struct hd_peer *peer, int64_t now)
{
	struct hd_peers *peers = peer->peers;
	int64_t t = hd_peer_t_ns(peer);
	uint32_t epoch;
	enum hd_held held = hd_stream_held(peer->stream, &epoch);

	if (now - peer->sent_ns >= HD_TIMEOUT_NS(HEARTBEAT, t)) {
		hd_stream_ping(peer->stream);
		/* asked for: the next one in T/4, whether the path takes it or not */
		peer->sent_ns = now;
	}
	if (held) {
		peer->heard_ns = now;             /* this end did not poll */
		peer->held_ns = peer->held_ns ? peer->held_ns : now;
	} else {
		peer->held_ns = 0;
		peer->asked = false;
	}
	if (held == HD_HELD_AHEAD && !peer->asked && now - peer->held_ns >= HD_TIMEOUT_NS(HEARTBEAT, t)) {
		peer->asked = true;
		peers->events.ahead(peers->events.self, peer->worker, epoch);
		assert(peer->state >= HD_PEER_UP);
	}
	if (held == HD_HELD_AHEAD && now - peer->held_ns >= t + HD_TIMEOUT_NS(HEARTBEAT, t))
		fail(peer, HD_CLOSE_EPOCH, NULL);
	else if (held == HD_HELD_POST && now - peer->held_ns >= HD_TIMEOUT_NS(ABANDONED, t))
		fail(peer, HD_CLOSE_DROPPED,
			&(struct hd_diag){ "a grant was promised, and no buffer posted for it" });
	else if (now - peer->heard_ns >= t && hd_stream_inside(peer->stream))
		fail(peer, HD_CLOSE_STALLED, NULL);
	else if (now - peer->heard_ns >= HD_TIMEOUT_NS(ABANDONED, t))
		fail(peer, HD_CLOSE_SILENT, NULL);
	else if (now - peer->heard_ns >= t && !peer->suspected) {
		peer->suspected = true;
		peers->events.suspect(peers->events.self, peer->worker,
			(now - peer->heard_ns) / HD_NS_PER_MS);
	}
}

void hd_peer_tick(struct hd_peer *peer)
{
	int64_t now = now_ns(peer);

	if (peer->state == HD_PEER_UP)
		tick_up(peer, now);
	else if (peer->state == HD_PEER_CLOSING && now >= peer->deadline_ns)
		hd_peer_close(peer, peer->bye, hd_close_text(peer->bye), true);
	else if (peer->state != HD_PEER_DOWN && now >= peer->deadline_ns)
		fail(peer, peer->bye ? peer->bye : peer->outgoing ? HD_CLOSE_GONE : HD_CLOSE_LATE, NULL);
}

static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t hd_peer_due_ns(const struct hd_peer *peer)
{
	int64_t t = hd_peer_t_ns(peer), beat = HD_TIMEOUT_NS(HEARTBEAT, t);
	uint32_t epoch;

	if (peer->state == HD_PEER_DOWN)
		return INT64_MAX;
	if (peer->state != HD_PEER_UP)
		return peer->deadline_ns;
	int64_t due = peer->sent_ns + beat;
	enum hd_held held = hd_stream_held(peer->stream, &epoch);
	if (held && !peer->held_ns)
		return peer->heard_ns;            /* at once: to note since when */
	if (held)
		return sooner(due, peer->held_ns + (held == HD_HELD_POST ? HD_TIMEOUT_NS(ABANDONED, t) :
			peer->asked ? t + beat : beat));
	if (peer->suspected)
		return sooner(due, peer->heard_ns + HD_TIMEOUT_NS(ABANDONED, t));
	return sooner(due, peer->heard_ns + t);
}

/* ---- beginnings ---- */

static void begin(struct hd_peer *peer, const struct hd_transport *transport, struct hd_sock *sock,
	bool outgoing, uint32_t worker)
{
	struct hd_peer made = { .index = peer->index, .generation = peer->generation, .peers = peer->peers,
		.outgoing = outgoing, .worker = worker,
		.detect_ms = peer->peers->config.detect_ms, .role = HD_ROLE_WORKER };

	made.conn = (struct hd_conn){ .ops = transport, .sock = *sock, .second_id = -1,
		.ids = { .job = peer->peers->config.job,
		.self = peer->peers->config.worker, .peer = worker, .outgoing = outgoing,
		.key = peer->peers->config.key,
		.key_len = peer->peers->config.key_len, .realm = &peer->peers->realm } };
	made.began_ns = now_ns(peer);
	/* A connect takes T at most; an accepted connection has 5 T for its greeting. */
	made.deadline_ns = made.began_ns + (outgoing ? hd_peer_t_ns(&made) : HD_TIMEOUT_NS(GREETING,
		hd_peer_t_ns(&made)));
	*peer = made;
	set_state(peer, HD_PEER_CONNECTING);
}

enum hd_err hd_peer_connect(struct hd_peer *peer, uint32_t worker, const struct hd_transport *transport,
	const char *addr, struct hd_diag *diag)
{
	struct hd_sock sock;
	struct hd_hash nonce;

	enum hd_err err = struck(HD_FAILPOINT_KEY(WIRE_CONNECT, worker), diag);
	if (!err)
		err = hd_random_bytes(nonce.byte, sizeof nonce.byte, diag);
	if (!err)
		err = hd_sock_connect(peer->peers->net, addr, &sock, diag);
	if (err)
		return err;
	if (sock.id >= HD_LOOP_WATCHED) {
		hd_sock_close(&sock);
		return hd_fail(diag, HD_E_NOSPACE, "the loop watches descriptors below %d; open fewer files",
			HD_LOOP_WATCHED);
	}
	begin(peer, transport, &sock, true, worker);
	peer->nonce = nonce;
	watch(peer, HD_LOOP_READ | HD_LOOP_WRITE);
	return HD_OK;
}

void hd_peer_accept(struct hd_peer *peer, const struct hd_transport *transport, struct hd_sock *sock)
{
	begin(peer, transport, sock, false, HD_WORKER_NONE);
	watch(peer, HD_LOOP_READ | HD_LOOP_WRITE);
}
