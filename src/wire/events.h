/* events.h -- callbacks of a hub to its owner, and their arguments.
 *
 * 1. Called only from hd_hub_poll(), on its thread. None may be NULL.
 * 2. A callback may call all of wire/hub.h but poll and finish; its requests are queued and done after it
 *    returned.
 * 3. Pointers are valid until the callback returns, but for buffers of the owner: those are the owner's again
 *    from the call on.
 * 4. For every hd_hub_send() that was accepted `sent` comes exactly once. For every post and every
 *    expect comes `arrived` once, or nothing when the epoch or the connection ends first: after
 *    hd_hub_epoch() and after `lost` no buffer of theirs is touched any more. */
#ifndef HD_WIRE_EVENTS_H
#define HD_WIRE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "wire/close.h"

enum hd_role { HD_ROLE_WORKER = 1, HD_ROLE_COORDINATOR = 2, HD_ROLE_FUNCTION = 3 };
enum hd_stream_kind { HD_KIND_PLANNED = 0, HD_KIND_CONTROL = 1, HD_KIND_BULK = 2 };

#define HD_WORKER_NONE UINT32_MAX         /* a process that has no id yet; see `up` */

struct hd_peer_info {
	/* by which the hub knows it; of one without an id a number from HD_WORKER_GUEST up, for this
	 * connection only */
	uint32_t worker;
	enum hd_role role;
	uint32_t detect_ms;
	const char *transport;            /* row of wire/transport.h */
	bool outgoing;                    /* we connected */
};
#define HD_WORKER_GUEST UINT32_C(0x80000000)

/* A control message, whole. */
struct hd_message {
	uint32_t worker;                  /* the sender */
	/* the sender's when it sent it: current, decided next, or any on a link with a coordinator */
	uint32_t epoch;
	uint64_t step;
	uint32_t id;
	const void *bytes;                /* NULL if len is 0 */
	uint32_t len;
};

/* A transfer or a bulk answer, whole, in the buffer that was posted for it. */
struct hd_arrival {
	uint32_t worker;
	/* HD_OK; HD_E_STALE: a bulk answer that the fence or the other side cut off; the buffer holds
	 * nothing */
	enum hd_err err;
	enum hd_stream_kind kind;                /* PLANNED or BULK */
	uint32_t transfer;                /* of a planned one */
	uint64_t request;                 /* of a bulk one */
	uint64_t step;
	void *buffer;
	uint64_t len;
	uint64_t flow;                    /* id of the trace's arrow, the same at both ends */
	int64_t posted_ns, first_ns, end_ns;
	uint32_t chunks;
};

struct hd_sent {
	uint32_t worker;
	/* HD_OK: the last byte is with the transport; HD_E_STALE: the epoch ended or it was cancelled;
	 * HD_E_PEERLOST */
	enum hd_err err;
	uint64_t token;                   /* the sender's own */
	uint64_t flow;
	enum hd_stream_kind kind;         /* PLANNED or BULK */
	uint32_t transfer;                /* of a planned one */
	uint64_t len;
	/* asked for; granted; first byte; last byte (those reached, else 0) */
	int64_t queued_ns, gate_ns, first_ns, end_ns;
	uint32_t chunks, preempted;       /* times another stream went between two of its chunks */
};

/* of the clocks: PING out, in, PONG out, in */
struct hd_probe { uint32_t worker; uint64_t t1, t2, t3, t4; };

struct hd_wire_events {
	/* borrowed; the first argument of all */
	void *self;
	/* greeted both ways; send may begin */
	void (*up)(void *self, const struct hd_peer_info *peer);
	/* once after up, or after hd_hub_connect() that failed */
	void (*lost)(void *self, uint32_t worker, enum hd_close why, const char *text);
	/* nothing heard for T: report it; 0: heard again. The connection stays */
	void (*suspect)(void *self, uint32_t worker, int64_t silent_ms);
	void (*message)(void *self, const struct hd_message *message);
	void (*arrived)(void *self, const struct hd_arrival *arrival);
	void (*sent)(void *self, const struct hd_sent *sent);
	/* it dropped something of ours: it is in `epoch`, we were behind */
	void (*stale)(void *self, uint32_t worker, uint32_t epoch);
	/* its epoch is unknown here for T/4: ask; closed T later */
	void (*ahead)(void *self, uint32_t worker, uint32_t epoch);
	void (*probed)(void *self, const struct hd_probe *probe);
};

#endif
