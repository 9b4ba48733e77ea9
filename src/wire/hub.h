/* hub.h -- all connections of one process: its listeners, and one connection to each peer (named by its
 * worker id). One event loop, one thread.
 *
 * Workers and the coordinator use this header (and events.h, close.h) and nothing else of the room. Three
 * kinds of traffic, by class; a lower class goes first:
 *
 *   tell     class 0: control messages of at most HD_TELL_MAX bytes, copied, delivered in order
 *   send     class 1: transfers that the plan names, from the sender's memory into the buffer that the
 *            receiver posted, without a copy; by priority, pre-empted at chunk boundaries
 *   answer   class 2, bulk: what the other side asked for by a message (checkpoints, state for joiners), into
 *            the buffer with which it expects it. While there is bulk it gets at least 5 % of the bytes.
 *
 *  1. One thread at a time uses a hub, another one while hd_hub_poll() rests (sys/loop.h, rule 5); what that
 *     one says goes out with the next poll: it looks at hd_hub_due_ns(), and wakes. hd_hub_wake() may be
 *     called by any. Only hd_hub_poll() blocks.
 *  2. Bytes given to send and answer are borrowed until `sent`; buffers given to post and expect until
 *     `arrived`, hd_hub_epoch() or `lost`. tell copies.
 *  3. A peer can be sent to between its `up` and its `lost`. Before and after, every call returns
 *     HD_E_PEERLOST and queues nothing. There is one connection per peer, whichever end opened it. If both
 *     ends connect at once, the connection that the lower id opened stays. A later connect of the same peer
 *     replaces its connection if that is suspected, else it is refused.
 *  4. Transfers belong to a membership epoch. hd_hub_epoch() ends all transfers of the old one (their `sent`
 *     says HD_E_STALE, their posts are void), and nothing of an earlier epoch is delivered after it. A
 *     transfer goes out only when both ends are in the same epoch with the same plan. So the two ends need
 *     not change at the same instant.
 *  5. Flow control is by the receiver's grants: a grant is a posted buffer. A transfer's row says how many
 *     bytes it has and how many grants the sender has from the start (`grants`); each further post adds one.
 *     A transfer without a grant waits, and blocks no other.
 *  6. Control messages and bulk do not end with an epoch; but those that were sent in an epoch that is over
 *     at the receiver are dropped, and the sender gets `stale`. Bulk, and messages that ask for it, are sent
 *     as of the decided epoch once the other end is in it: they are valid in both. Links with a coordinator
 *     are not fenced: their messages name the epoch, and the receiver decides.
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
	HD_TELL_ASKS = 128,               /* from here on: messages that ask for bulk (6) */
	HD_HUB_PEERS = 64,                /* greatest peers_cap */
	/* connections before their greeting: so many from this machine, and as many from others. Beyond that,
	 * one more from this machine is refused; of those from others, the address that has most of them
	 * loses its oldest */
	HD_HUB_GREETING = 64,
	HD_HUB_LISTENERS = 4,
	HD_GRANTS_MAX = 4,                /* buffers posted for one transfer at a time */
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
	/* of connections to other machines: so much may wait here to be read, which bounds what is on its way
	 * at a time, and cannot be overtaken any more; 0: as the system has it */
	uint32_t kept_bytes;
	/* look for 50 us before sleeping: only where a core is free for it */
	bool spin;
	bool plaintext;                           /* TCP without a key: the owner has warned its user */
	/* borrowed, until finish: the job's key, for tls; NULL: none */
	const void *key;
	size_t key_len;
	uint64_t (*stamp)(void *self);            /* clock of the trace, for probes; NULL: the loop's */
};

/* One transfer of a channel, in an epoch: its row in the transfer table (`id`), the buffers granted from the
 * start, its length. Rows of a channel are ascending by id. */
struct hd_transfer { uint32_t id, grants; uint64_t bytes; };      /* grants 0..HD_GRANTS_MAX; bytes >= 1 */

struct hd_hub_stats {
	uint64_t bytes_sent, bytes_received;      /* of payload */
	uint64_t frames_sent, frames_received;
	uint64_t dropped_stale, dropped_cancelled;        /* frames */
	uint64_t aged;                            /* class 2 chunks that went before class 1 */
	uint64_t preempted;                       /* times a stream went between two chunks of another */
	/* chunks that went although a more urgent stream could have gone, but for aged ones: 0, unless
	 * HD_STREAMS_OPEN are under way */
	uint64_t inverted;
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
/* Its addresses are tcp:HOST:PORT, not unix:PATH; false: there is no such transport, either. */
bool hd_hub_names_hosts(const char *transport);
/* closes without good-byes; takes zeroed and finished ones */
void hd_hub_finish(struct hd_hub *hub);

/* ---- connections ---- */

/* `transport` is a row of wire/transports.h, or "sim"; addr in and out: a port 0 becomes the one chosen. */
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
/* Is it up, over a transport that reaches other machines? */
bool hd_hub_is_away(const struct hd_hub *hub, uint32_t worker);
/* Sets the own id: for a joiner that was given one. Connections that are there end: peers call again. */
void hd_hub_call_me(struct hd_hub *hub, uint32_t worker);

/* ---- epochs ---- */

/* `next` is decided: frames of it are accepted as well as of the current one. */
void hd_hub_decided(struct hd_hub *hub, uint32_t next);
/* This end is in `epoch` from now on, with the plan of that hash. Epochs increase; 0 at init. */
void hd_hub_epoch(struct hd_hub *hub, uint32_t epoch, struct hd_hash plan);
/* The transfers of this epoch with one peer: those that it may send here (`in`), and those that may be sent
 * to it (`out`); rows are copied. Call it once per epoch and `up` (also in that callback); without it there
 * are no transfers with that peer. The next poll tells the peer that this end is in the epoch. Rows of `in`
 * with grants > 0: post as many buffers before that poll. */
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
/* Every queued send and answer with that token has this priority from its next chunk on. */
void hd_hub_rank(struct hd_hub *hub, uint32_t worker, uint64_t token, int32_t priority);

/* ---- where it goes ---- */

/* Posts a buffer of the row's length for a transfer; posts of one transfer are filled in order. The arrival
 * says of which step it is. HD_E_AGAIN: HD_GRANTS_MAX are posted already, counting those that are being
 * filled. HD_E_INVAL: no such row. */
HD_MUST_USE enum hd_err hd_hub_post(struct hd_hub *hub, uint32_t worker, uint32_t transfer, void *buffer,
	struct hd_diag *diag);
/* The buffer for the answer to `request` (a number not expected yet), of at most `cap` bytes. Call it
 * before the message that asks. */
HD_MUST_USE enum hd_err hd_hub_expect(struct hd_hub *hub, uint32_t worker, uint64_t request, void *buffer,
	uint64_t cap, struct hd_diag *diag);
/* The answer is not needed any more: no `arrived` comes, its buffer is the owner's again. The number stays
 * expected until the other side begins to answer, or the connection ends. */
void hd_hub_refuse(struct hd_hub *hub, uint32_t worker, uint64_t request);
/* A device is waiting for the next of this transfer, which has begun or not, or is not even sent yet: the
 * sender moves it to the front of its channel. */
void hd_hub_want(struct hd_hub *hub, uint32_t worker, uint32_t transfer);

/* ---- running ---- */

/* Moves bytes and calls back. Returns when something was done, the loop was woken, an event of the owner
 * came, or the loop's clock reached until_ns. Events and timers whose tag is below HD_HUB_TAG are the
 * owner's: they are put into other[0..cap), cap >= 1; *n says how many. */
#define HD_HUB_TAG (UINT64_C(1) << 56)
HD_MUST_USE enum hd_err hd_hub_poll(struct hd_hub *hub, int64_t until_ns, struct hd_loop_event *other,
	size_t cap, size_t *n, struct hd_diag *diag);
/* When must poll be called even if no event comes? For a caller with several hubs. */
int64_t hd_hub_due_ns(const struct hd_hub *hub);
/* Sends a PING at once; the answer is reported by `probed`. At most one is queued. */
void hd_hub_probe(struct hd_hub *hub, uint32_t worker);
void hd_hub_wake(struct hd_hub *hub);     /* any thread: the poll under way, or the next, returns soon */
/* The protocol that this program speaks: members of one run speak the same. */
uint32_t hd_hub_protocol(void);
void hd_hub_stats(const struct hd_hub *hub, struct hd_hub_stats *stats);

#endif
