/* testing_peer.h -- one connection (peer.h) over a transport that does what a test tells it, in simulated
 * time. */
#ifndef HD_WIRE_TESTING_PEER_H
#define HD_WIRE_TESTING_PEER_H

#include "base/le.h"
#include "base/timeouts.h"
#include "wire/peer.h"
#include "wire/testing.h"

enum { T_MS = 1000, SOCK = 7, SECOND = 9, OTHER = 5, BYTES = 1 << 18 };
#define T (T_MS * HD_NS_PER_MS)
#define BEGAN (100 * HD_NS_PER_S)

struct peer_world {
	struct hd_net net;                /* first: a socket leads back here */
	struct hd_clock_sim clock;
	struct hd_loop loop;
	struct hd_loop_ops loop_ops;
	const struct hd_loop_ops *sim_ops;
	struct hd_transport row;
	struct hd_peers peers;
	struct hd_peer peer;
	struct wire_heard heard;
	struct hd_stream *far;            /* the other end, from up() on */
	struct wire_heard far_heard;
	/* script of transport, net, loop and hub */
	enum hd_err ready, reads, writes, connects;
	enum hd_close admits;
	size_t piece, space;               /* bytes a read gives at most; bytes that can be written yet */
	bool ended, deaf;                 /* the other end is gone; no interest in anything */
	bool crowded;                     /* two chunks wait in the transport */
	/* ids: of the socket, of a second one, of the one that the loop does not take (-1: none) */
	int sock, second, refused;
	uint32_t proven;
	uint8_t in[BYTES], out[BYTES];
	size_t in_at, in_len, out_len, far_at;
	/* what they were asked */
	uint32_t n_asks, n_admits, n_connects, n_closes, n_chunks, chunk, unacked_ms;
	bool seen, closed;
	struct hd_diag diag;
};

static inline struct peer_world *world_of(struct hd_conn *conn)
{
	struct peer_world *w = (struct peer_world *)conn->sock.net;

	assert_non_null(w);
	return w;
}

/* ---- the transport ---- */

static inline enum hd_err row_ready(struct hd_conn *conn, struct hd_diag *diag)
{
	struct peer_world *w = world_of(conn);

	assert_true(w->seen);
	if (w->ready)
		return w->ready == HD_E_AGAIN ? HD_E_AGAIN : hd_fail(diag, w->ready, "not ready");
	conn->second_id = w->second;
	conn->ids.peer = w->proven;
	return HD_OK;
}

/* What is in *got when it fails means nothing: it is a number here, so that its use shows. */
static inline enum hd_err row_read(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag)
{
	struct peer_world *w = world_of(conn);
	size_t most = w->in_len - w->in_at < w->piece ? w->in_len - w->in_at : w->piece;

	assert_true(w->seen && !w->closed && n >= 1 && vec[0].len);
	*got = 1;
	if (w->reads)
		return w->reads == HD_E_AGAIN ? HD_E_AGAIN : hd_fail(diag, w->reads, "not read");
	if (!most && !w->ended)
		return HD_E_AGAIN;
	*got = 0;
	for (size_t i = 0; i < n && *got < most; i++) {
		size_t k = vec[i].len < most - *got ? vec[i].len : most - *got;
		memcpy(vec[i].at, w->in + w->in_at, k);
		w->in_at += k;
		*got += k;
	}
	return HD_OK;
}

static inline enum hd_err row_write(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag)
{
	struct peer_world *w = world_of(conn);

	assert_true(w->seen && !w->closed && n >= 1 && vec[0].len);
	*put = 1;
	if (w->writes)
		return w->writes == HD_E_AGAIN ? HD_E_AGAIN : hd_fail(diag, w->writes, "not written");
	if (!w->space)
		return HD_E_AGAIN;
	*put = 0;
	for (size_t i = 0; i < n && w->space; i++) {
		size_t k = vec[i].len < w->space ? vec[i].len : w->space;
		assert_true(w->out_len + k <= BYTES);
		memcpy(w->out + w->out_len, vec[i].at, k);
		w->out_len += k;
		w->space -= k;
		*put += k;
	}
	return HD_OK;
}

static inline unsigned row_wants(struct hd_conn *conn, unsigned wanted)
{
	struct peer_world *w = world_of(conn);

	assert_false(w->closed);
	return w->deaf ? 0 : wanted;
}

static inline void row_seen(struct hd_conn *conn) { world_of(conn)->seen = true; }
static inline void row_chunk(struct hd_conn *conn, uint32_t bytes)
{
	struct peer_world *w = world_of(conn);

	w->n_chunks++;
	w->chunk = bytes;
}
static inline bool row_room(struct hd_conn *conn) { return !world_of(conn)->crowded; }
static inline void row_close(struct hd_conn *conn)
{
	struct peer_world *w = world_of(conn);

	assert_false(w->closed);
	w->closed = true;
	hd_sock_close(&conn->sock);
}

/* ---- net, loop, hub ---- */

static inline enum hd_err net_connect(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct peer_world *w = (struct peer_world *)net;

	w->n_connects++;
	sock->id = w->sock;
	return w->connects ? hd_fail(diag, w->connects, "not connected") : HD_OK;
}

static inline void net_tune(struct hd_net *net, struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value)
{
	(void)sock;
	if (knob == HD_SOCK_UNACKED_MS)
		((struct peer_world *)net)->unacked_ms = value;
}

static inline void net_close(struct hd_net *net, struct hd_sock *sock)
{
	(void)sock;
	((struct peer_world *)net)->n_closes++;
}

static inline enum hd_err loop_watch(struct hd_loop *loop, int id, unsigned interest, struct hd_diag *diag)
{
	struct peer_world *w = (struct peer_world *)((char *)loop - offsetof(struct peer_world, loop));

	w->n_asks++;
	return interest && id == w->refused ? hd_fail(diag, HD_E_NOSPACE,
		"not watched") : w->sim_ops->watch(loop, id, interest, diag);
}

static inline enum hd_close hub_admit(struct hd_peers *peers, uint32_t *worker)
{
	struct peer_world *w = (struct peer_world *)((char *)peers - offsetof(struct peer_world, peers));

	w->n_admits++;
	if (*worker == HD_WORKER_NONE)
		*worker = HD_WORKER_GUEST;
	return w->admits;
}

static inline uint64_t hub_stamp(void *self) { (void)self; return 1; }

static inline struct peer_world *enter(unsigned powers)
{
	static const struct hd_net_ops net_ops = { .name = "scripted", .connect = net_connect,
		.tune = net_tune, .close = net_close };
	struct peer_world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->net.ops = &net_ops;
	w->row = (struct hd_transport){ "scripted", powers, NULL, row_ready, row_read, row_write, row_wants,
		row_seen, row_chunk, row_room, row_close };
	hd_clock_sim(&w->clock, BEGAN, 0);
	assert_int_equal(hd_loop_sim_init(&w->loop, &w->clock, &w->diag), HD_OK);
	w->sim_ops = w->loop.ops;
	w->loop_ops = *w->loop.ops;
	w->loop_ops.watch = loop_watch;
	w->loop.ops = &w->loop_ops;
	w->heard.clock = &w->clock.clock;
	w->sock = SOCK;
	w->second = w->refused = -1;
	w->proven = OTHER;
	w->piece = w->space = BYTES;
	w->peers = (struct hd_peers){ .events = hear_with(&w->heard), .loop = &w->loop, .net = &w->net,
		.admit = hub_admit, .stamp = hub_stamp,
		.config = { .job = { { 1 } }, .job_hash = { { 2 } }, .kernels = { { 3 } },
			.role = HD_ROLE_WORKER, .detect_ms = T_MS, .peers_cap = 8,
			.streams_cap = 16 } };
	w->peer.peers = &w->peers;
	return w;
}

static inline void leave(struct peer_world *w)
{
	if (w->peer.state != HD_PEER_DOWN)
		hd_peer_close(&w->peer, HD_CLOSE_DROPPED, "", false);
	assert_int_equal(w->loop.watched[SOCK].interest, 0);
	assert_int_equal(w->loop.watched[SECOND].interest, 0);
	hd_stream_destroy(w->far);
	hd_loop_finish(&w->loop);
	free(w);
}

/* ---- what tests do ---- */

static inline void move(struct peer_world *w)
{
	w->seen = false;
	hd_peer_move(&w->peer);
}

static inline void later(struct peer_world *w, int64_t ns) { hd_clock_sim_advance(&w->clock, ns); }

static inline void say(struct peer_world *w, struct hd_frame frame, const void *payload)
{
	assert_true(w->in_len + HD_FRAME_HEADER + frame.len <= BYTES);
	hd_frame_put(&frame, w->in + w->in_len);
	memcpy(w->in + w->in_len + HD_FRAME_HEADER, payload, frame.len);
	w->in_len += HD_FRAME_HEADER + frame.len;
}

/* With a checksum where the way is open. */
static inline void say_checked(struct peer_world *w, enum hd_frame_type type, const void *payload,
	uint32_t len)
{
	bool open = w->row.powers & HD_WIRE_OPEN;

	say(w, (struct hd_frame){ .type = type, .len = len, .flags = open ? HD_FRAME_CRC : 0,
		.payload_crc = open ? hd_crc32c(0, payload, len) : 0 }, payload);
}

static inline struct hd_greeting_payload proper(void)
{
	return (struct hd_greeting_payload){ HD_WIRE_VERSION, HD_WIRE_VERSION, OTHER, HD_ROLE_WORKER, T_MS,
		{ { 1 } }, { { 2 } },
		{ { 3 } }, { { 5 } } };
}

static inline void greet(struct peer_world *w, enum hd_frame_type type,
	const struct hd_greeting_payload *greeting)
{
	uint8_t bytes[hd_greeting_len];

	hd_greeting_put(greeting, bytes);
	say_checked(w, type, bytes, sizeof bytes);
}

static inline void accepted(struct peer_world *w)
{
	struct hd_sock sock = { .net = &w->net, .id = w->sock };
	hd_peer_accept(&w->peer, &w->row, &sock);
}

static inline void called(struct peer_world *w)
{
	CHECK(!hd_peer_connect(&w->peer, OTHER, &w->row, "unix:/there", &w->diag), "%s", w->diag.text);
}

/* The one frame that lies in `out` from `at` on; its payload. */
static inline const uint8_t *said(const struct peer_world *w, size_t at, struct hd_frame *frame)
{
	struct hd_diag diag = { "" };

	CHECK(w->out_len >= at + HD_FRAME_HEADER, "%zu bytes went out", w->out_len);
	CHECK(!hd_frame_get(w->out + at, frame, &diag), "%s", diag.text);
	CHECK(w->out_len == at + HD_FRAME_HEADER + frame->len, "%zu bytes went out, not a frame of %u",
		w->out_len, frame->len);
	return w->out + at + HD_FRAME_HEADER;
}

/* Greeted, as the called or the caller; the other end is a stream. */
static inline void greeted(struct peer_world *w, const struct hd_greeting_payload *hello)
{
	accepted(w);
	greet(w, HD_FRAME_HELLO, hello);
	move(w);
	CHECK(w->peer.state == HD_PEER_UP && w->heard.n_ups == 1, "closed: %s",
		w->heard.n_losts ? w->heard.losts[0].text : "without a word");
	w->far_at = w->out_len;
	struct hd_stream_config config = { .self = hello->worker, .peer = w->peers.config.worker,
		.payload_crc = w->row.powers & HD_WIRE_OPEN,
		.fenced = hello->role != HD_ROLE_COORDINATOR && w->peers.config.role != HD_ROLE_COORDINATOR,
			.streams_cap = 16, .stamp = hub_stamp };
	struct hd_wire_events events = hear_with(&w->far_heard);
	assert_int_equal(hd_stream_create(&config, &events, &w->far, &w->diag), HD_OK);
}

static inline void up(struct peer_world *w)
{
	struct hd_greeting_payload hello = proper();
	greeted(w, &hello);
}

/* What the far end has to say lies in `in`. */
static inline size_t far_speaks(struct peer_world *w)
{
	struct hd_vec vec[HD_STREAM_VECS];
	int64_t now = hd_clock_now_ns(&w->clock.clock);
	size_t n, all = 0;

	assert_int_equal(hd_stream_turn(w->far, now, &w->diag), HD_CLOSE_NONE);
	while ((n = hd_stream_out(w->far, now, vec)) > 0) {
		size_t put = 0;
		for (size_t i = 0; i < n; i++) {
			assert_true(w->in_len + vec[i].len <= BYTES);
			memcpy(w->in + w->in_len, vec[i].at, vec[i].len);
			w->in_len += vec[i].len;
			put += vec[i].len;
		}
		hd_stream_wrote(w->far, put, now);
		all += put;
	}
	return all;
}

static inline size_t far_hears(struct peer_world *w)
{
	struct hd_vec vec[2];
	size_t all = 0, n;

	while (w->far_at < w->out_len && (n = hd_stream_in(w->far, vec)) > 0) {
		size_t got = 0;
		for (size_t i = 0; i < n; i++) {
			size_t k = w->out_len - w->far_at < vec[i].len ? w->out_len - w->far_at : vec[i].len;
			memcpy(vec[i].at, w->out + w->far_at, k);
			w->far_at += k;
			got += k;
		}
		enum hd_close why = hd_stream_read(w->far, got, hd_clock_now_ns(&w->clock.clock), &w->diag);
		CHECK(!why, "the other end closes: %s", w->diag.text);
		all += got;
	}
	return all;
}

static inline void talk(struct peer_world *w)
{
	for (bool more = true; more && w->peer.state != HD_PEER_DOWN;) {
		more = far_speaks(w) > 0;
		move(w);
		more |= far_hears(w) > 0 || w->peer.more;
	}
}

static inline void check_losts(const struct peer_world *w, const char *name, uint32_t n, enum hd_close why)
{
	CHECK(w->heard.n_losts == n && (!n || w->heard.losts[0].why == why), "%s: %u losts, for %s", name,
		w->heard.n_losts,
		w->heard.n_losts ? hd_close_name(w->heard.losts[0].why) : "nothing");
}

static inline void a_ping(struct peer_world *w) { say_checked(w, HD_FRAME_PING, "12345678", 8); }
static inline void a_hello(struct peer_world *w)
{
	struct hd_greeting_payload g = proper();
	greet(w, HD_FRAME_HELLO, &g);
}

#endif
