/* hub.h -- all connections of one process: its listeners and one connection per peer, by worker id, on one
 * loop, driven by one thread.
 *
 * Workers and the coordinator use this header (and events.h, close.h) and nothing else of the room. Three
 * kinds of traffic:
 *
 *   tell     control messages, whole, copied, at most HD_TELL_MAX, in order; class 0: before all else
 *   send     transfers that the plan names: from the sender's memory into the buffer that the receiver
 *            posted; class 1, by priority, pre-empted at chunk boundaries
 *   answer   bulk: what the other side asked for by a message (checkpoints, state for joiners), into the
 *            buffer with which it expects it; class 2: goes when nothing else does, and at least 5 %
 *
 *  1. One thread uses a hub; hd_hub_wake() alone may be called by any. Only hd_hub_poll() blocks.
 *  2. Bytes given to send and answer are borrowed until `sent`; buffers given to post and expect until
 *     `arrived`, hd_hub_epoch() or `lost`. tell copies.
 *  3. A peer may be sent to from `up` to `lost`; between them no call says HD_E_PEERLOST. Before and after,
 *     all do, and nothing is queued. One connection per peer, whichever end opened it; of two crossing
 *     connects the lower id's stays. A later connect of the same peer replaces its connection if that is
 *     suspected, else it is refused.
 *  4. Transfers belong to a membership epoch. hd_hub_epoch() ends all of the old one (their `sent` says
 *     HD_E_STALE, their posts are void) and nothing of an earlier epoch is delivered after it. A transfer
 *     goes out when both ends are in the epoch with the same plan, so the ends need not change at one
 *     instant.
 *  5. What a sender may send is what the receiver granted: a transfer's row names its bytes and how many
 *     buffers are granted from the start (`slots`); each further post grants one more. A transfer
 *     that finds no grant waits and holds up nothing.
 *  6. Control messages and bulk do not end with an epoch, but what arrives from an epoch that is over here is
 *     dropped, and the sender hears `stale`. Bulk, and messages that ask for it, go out in the decided epoch
 *     when the other end is in that already: what they say holds in both. Links with a coordinator are not
 *     fenced: their messages say the epoch and the receiver judges.
 *  7. Memory is taken in hd_hub_init(), for a connection when it is opened, and in hd_hub_channel(); else
 *     nothing is allocated.
 *  8. Everything is bounded, and every wait has a deadline made of T (`workers.detect`):
 *     connect T; greeting 5 T; a frame that stands still T; silence T: `suspect`, 8 T: closed.
 *  9. Connections that are closed, and frames that are dropped, are counted by reason. A peer that breaks a
 *     rule loses its connection and changes nothing else.
 * 10. Nothing listens but what hd_hub_listen() was called for. TCP without a key asks for `plaintext`.
 *
 * Ownership: init/finish in the caller's memory, which does not move; loop and net are borrowed; no
 * callback comes after finish, and borrowed buffers are the owner's again. */
#ifndef HD_WIRE_HUB_H
#define HD_WIRE_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "sys/loop.h"
#include "sys/socket.h"
#include "wire/close.h"
#include "wire/events.h"

enum {
	HD_TELL_MAX = 1 << 20,            /* bytes of a control message */
	HD_TELL_FIRST_ID = 16,            /* control ids below are the room's own */
	HD_TELL_ASKS = 64,                /* from here on: messages that ask for bulk (6) */
	/* greatest peers_cap: larger jobs spread messages along a tree */
	HD_HUB_PEERS = 64,
	/* connections not greeted yet, of other machines, and as many of this one. Beyond: of this machine
	 * the newest is refused; of others the oldest one of the address that has most is closed */
	HD_HUB_GREETING = 64,
	HD_HUB_LISTENERS = 4,
	HD_SLOTS_MAX = 4,                 /* buffers posted for one transfer at a time */
	HD_EXPECT_MAX = 64,               /* bulk answers expected of one peer at a time */
};

struct hd_hub_config {
	/* equal at both ends. kernels: the fingerprint, not checked for a coordinator. job_hash of zeros: not
	 * known yet; only a coordinator accepts that */
	struct hd_hash job, job_hash, kernels;
	uint32_t worker;                          /* own id; HD_WORKER_NONE: none yet */
	enum hd_role role;
	uint32_t detect_ms;                       /* T: 10..600000 */
	uint32_t peers_cap;                       /* 1..HD_HUB_PEERS */
	/* sends and answers queued for one peer, 1..65536; then HD_E_AGAIN */
	uint32_t streams_cap;
	/* look for 50 us before sleeping: only where a core is free for it */
	bool spin;
	bool plaintext;                           /* TCP without a key: the owner has warned its user */
	/* borrowed, until finish: the job's key, for tls; NULL: none */
	const void *key;
	size_t key_len;
	uint64_t (*stamp)(void *self);            /* clock of the trace, for probes; NULL: the loop's */
};

/* One transfer of a channel, in an epoch. Ids are the plan's; rows rise by id. */
struct hd_transfer { uint32_t id, slots; uint64_t bytes; };       /* slots 0..HD_SLOTS_MAX; bytes >= 1 */

struct hd_hub_stats {
	uint64_t bytes_sent, bytes_received;      /* of payload */
	uint64_t frames_sent, frames_received;
	uint64_t dropped_stale, dropped_cancelled;        /* frames */
	uint64_t aged;                            /* class 2 chunks that went before class 1 */
	uint64_t closed[HD_CLOSE_COUNT];          /* connections, greeted or not, by reason */
	uint32_t up, greeting;                    /* now */
};

struct hd_hub_impl;
struct hd_hub { struct hd_hub_impl *impl; };      /* owned; { 0 } before init */

/* `net` is hd_net_real()'s or a simulated one, of the loop's sort. HD_E_INVAL: a value of `config` is out
 * of range. */
HD_MUST_USE enum hd_err hd_hub_init(struct hd_hub *hub, const struct hd_hub_config *config,
	const struct hd_wire_events *events, struct hd_loop *loop,
				    struct hd_net *net, struct hd_diag *diag);
/* closes without good-byes; takes zeroed and finished ones */
void hd_hub_finish(struct hd_hub *hub);

/* ---- connections ---- */

/* `transport` is a row of wire/transport.h ("unix", "tcp", "shm", "tls", "sim"); addr in and out: a port 0
 * becomes the one chosen. */
HD_MUST_USE enum hd_err hd_hub_listen(struct hd_hub *hub, const char *transport, char addr[HD_ADDR_CAP],
	struct hd_diag *diag);
/* Begins; ends in `up` or `lost` of that worker within 6 T. HD_E_EXISTS: it is connected, or being
 * connected. */
HD_MUST_USE enum hd_err hd_hub_connect(struct hd_hub *hub, uint32_t worker, const char *transport,
	const char *addr, struct hd_diag *diag);
/* Says good-bye with `why` and closes, when all earlier messages are out or T is over. `lost` comes, with
 * `why`. Idempotent. */
void hd_hub_drop(struct hd_hub *hub, uint32_t worker, enum hd_close why, const char *text);
/* Drops all, and listens no more: poll until hd_hub_is_closed(), T at most, then finish. */
void hd_hub_close(struct hd_hub *hub, enum hd_close why, const char *text);
bool hd_hub_is_closed(const struct hd_hub *hub);          /* no connection is left */
bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker);
/* up, by a transport that other machines can come by */
bool hd_hub_is_away(const struct hd_hub *hub, uint32_t worker);
/* A joiner that was given its id; only while no connection is up. */
void hd_hub_call_me(struct hd_hub *hub, uint32_t worker);

/* ---- epochs ---- */

/* `next` is decided: frames of it are accepted as well as of the current one. */
void hd_hub_decided(struct hd_hub *hub, uint32_t next);
/* From now on `epoch`, greater than before (0 at init), under the plan of that hash. */
void hd_hub_epoch(struct hd_hub *hub, uint32_t epoch, struct hd_hash plan);
/* The transfers of this epoch with one peer: what it may send here, what it may be sent. Once per epoch and
 * `up` (also in that callback); rows are copied. Tells the peer, at the next poll, that this end is in the
 * epoch, and grants the slots of the rows: with slots > 0 post as many buffers before that poll. Without
 * it there are no transfers with that peer. */
HD_MUST_USE enum hd_err hd_hub_channel(struct hd_hub *hub, uint32_t worker, const struct hd_transfer *in,
	size_t n_in,
				       const struct hd_transfer *out, size_t n_out, struct hd_diag *diag);

/* ---- what is said ----  HD_E_AGAIN: its queue is full, try again after a `sent` (tell: after a poll). */

/* HD_E_INVAL: id below HD_TELL_FIRST_ID or longer than HD_TELL_MAX. */
HD_MUST_USE enum hd_err hd_hub_tell(struct hd_hub *hub, uint32_t worker, uint32_t id, uint64_t step,
	const void *bytes, size_t len, struct hd_diag *diag);

struct hd_send {
	uint32_t transfer;                /* a row of the channel, of exactly `len` bytes */
	int32_t priority;                 /* lower is more urgent; equal ones in the order of the calls */
	uint64_t step;
	const void *bytes;                /* borrowed until `sent` */
	uint64_t len;
	uint64_t token;                   /* given back in `sent` */
};
HD_MUST_USE enum hd_err hd_hub_send(struct hd_hub *hub, uint32_t worker, const struct hd_send *send,
	struct hd_diag *diag);

struct hd_answer {
	uint64_t request;                 /* the asker's number, from its message */
	int32_t priority;
	uint64_t step;
	const void *bytes;                /* borrowed until `sent` */
	uint64_t len;                     /* 1 .. what the asker expects */
	uint64_t token;
};
HD_MUST_USE enum hd_err hd_hub_answer(struct hd_hub *hub, uint32_t worker, const struct hd_answer *answer,
	struct hd_diag *diag);
/* Every queued send and answer with that token: `sent` says HD_E_STALE, from the next poll. */
void hd_hub_cancel(struct hd_hub *hub, uint32_t worker, uint64_t token);

/* ---- where it goes ---- */

/* The buffer, of the row's length, for the next instance of a transfer; posts of one transfer are filled in
 * order. The arrival says which step it was. HD_E_AGAIN: HD_SLOTS_MAX are posted already, those that are
 * being filled among them. HD_E_INVAL: no row. */
HD_MUST_USE enum hd_err hd_hub_post(struct hd_hub *hub, uint32_t worker, uint32_t transfer, void *buffer,
	struct hd_diag *diag);
/* The buffer for the answer to `request` (a number not expected yet), of at most `cap` bytes. Call it
 * before the message that asks. */
HD_MUST_USE enum hd_err hd_hub_expect(struct hd_hub *hub, uint32_t worker, uint64_t request, void *buffer,
	uint64_t cap, struct hd_diag *diag);
/* A device waits for this transfer: if it has begun, the sender moves it to the front of its channel. */
void hd_hub_want(struct hd_hub *hub, uint32_t worker, uint32_t transfer);

/* ---- turning ---- */

/* Moves bytes and calls back until something was done, the loop was woken, an event that is not the hub's
 * came, or until_ns by the loop's clock. Events and timers whose tag is below HD_HUB_TAG are the owner's:
 * they are put into other[0..cap), cap >= 1. */
#define HD_HUB_TAG (UINT64_C(1) << 56)
HD_MUST_USE enum hd_err hd_hub_poll(struct hd_hub *hub, int64_t until_ns, struct hd_loop_event *other,
	size_t cap, size_t *n, struct hd_diag *diag);
/* when the poll has something to do though no event comes: for a caller with several hubs */
int64_t hd_hub_due_ns(const struct hd_hub *hub);
/* a PING at once, for `probed`; of several that wait one goes */
void hd_hub_probe(struct hd_hub *hub, uint32_t worker);
void hd_hub_wake(struct hd_hub *hub);     /* any thread: the poll under way, or the next, returns soon */
void hd_hub_stats(const struct hd_hub *hub, struct hd_hub_stats *stats);

#endif
