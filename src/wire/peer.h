/* peer.h -- one connection from its first byte to its last: transport, greeting, stream, heartbeats (private
 * to the room).
 *
 * The hub owns an array of these and drives them; no other file sees them.
 *
 *   CONNECTING ─> GREETING ─> UP ─> CLOSING ─> DOWN       (every state ─> DOWN)
 *
 * 1. Before UP nothing is believed and the memory is this struct: one frame in, one out.
 * 2. The connecting side says HELLO, the other WELCOME or, if it may know the reason, BYE.
 * 3. T is the larger of both ends' workers.detect, but four times our own at most. A PING goes when nothing
 *    else went for T/4.
 * 4. hd_peer_close() is the only way down; it counts and reports once.
 * 5. No callback closes the connection that it comes from: it may say good-bye (hd_peer_bye), and the
 *    connection closes later.
 *
 * Ownership: the hub's array; conn and stream are the peer's. Threads: the hub's. */
#ifndef HD_WIRE_PEER_H
#define HD_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/crypto_tls.h"
#include "wire/frame.h"
#include "wire/hub.h"
#include "wire/stream.h"
#include "wire/transport.h"

enum { HD_WIRE_VERSION = 10 };            /* of greetings; peer.c says what each changed */

enum hd_peer_state {
	HD_PEER_DOWN,             /* the place is free */
	/* connect or the row's proof is under way; deadline: T to connect, 5 T in all */
	HD_PEER_CONNECTING,
	HD_PEER_GREETING,         /* HELLO is awaited, or WELCOME; deadline 5 T */
	HD_PEER_UP,               /* the stream lives */
	/* BYE was asked for: queued messages go first; then the other side's end is awaited; deadline T */
	HD_PEER_CLOSING,
};

/* What the peers of a hub share. */
struct hd_peers {
	struct hd_hub_config config;
	struct hd_wire_events events;
	struct hd_loop *loop;             /* borrowed */
	struct hd_net *net;               /* borrowed */
	uint32_t epoch, next;
	struct hd_hash plan;
	struct hd_tls_realm realm;        /* owned, where there is a key */
	uint64_t closed[HD_CLOSE_COUNT];
	/* A greeting that is in order: may it be this worker? Sets *worker, for guests a new number. */
	enum hd_close (*admit)(struct hd_peers *peers, uint32_t *worker);
	uint64_t (*stamp)(void *self);
	void *stamp_self;
	struct hd_hub_stats gone;         /* of streams that are destroyed */
};

struct hd_peer {
	enum hd_peer_state state;
	uint32_t index, generation;       /* of the place; in the loop's tag */
	struct hd_peers *peers;           /* borrowed */
	struct hd_conn conn;
	struct hd_stream *stream;         /* owned; from UP on */
	bool outgoing, suspected, asked, more, blocked, second_watched;
	uint32_t worker;                  /* the peer we call, or its id by its greeting */
	uint32_t detect_ms;
	enum hd_role role;
	unsigned interest;                /* what the loop watches for */
	int64_t deadline_ns;              /* of the state, but UP */
	int64_t began_ns, heard_ns, sent_ns, held_ns;
	uint32_t chunk;                   /* as given to the transport */
	struct hd_hash nonce;
	enum hd_close bye;                /* why we close */
	size_t in_len, out_len, out_at;
	uint8_t in[HD_FRAME_HEADER + 4 + HD_BYE_TEXT];
	uint8_t out[HD_FRAME_HEADER + 4 + HD_BYE_TEXT];
};

/* Both begin a peer in a free place. On failure the place stays free. */
HD_MUST_USE enum hd_err hd_peer_connect(struct hd_peer *peer, uint32_t worker,
	const struct hd_transport *transport, const char *addr, struct hd_diag *diag);
/* takes the socket */
void hd_peer_accept(struct hd_peer *peer, const struct hd_transport *transport, struct hd_sock *sock);

/* reads, writes and calls back until nothing moves, or enough has */
void hd_peer_move(struct hd_peer *peer);
void hd_peer_tick(struct hd_peer *peer);          /* deadlines and heartbeats that are due */
int64_t hd_peer_due_ns(const struct hd_peer *peer);       /* when to tick next */
void hd_peer_bye(struct hd_peer *peer, enum hd_close why, const char *text);      /* of one that is UP */
/* tell: call `lost` and `sent` */
void hd_peer_close(struct hd_peer *peer, enum hd_close why, const char *text, bool tell);

static inline int64_t hd_peer_t_ns(const struct hd_peer *peer) { return (int64_t)peer->detect_ms *
	HD_NS_PER_MS; }

#endif
