/* ends.h -- two threads of this process, each with its hub, joined by a link (link.h), for measurements of
 * what goes from the near one to the far one: preempt.c and pull.c.
 *
 *	hd_ends_run: near and far run as threads. far: hd_ends_join, ..., hd_ends_finish
 *	                                          near: hd_ends_begin, hd_ends_meet, ..., hd_ends_finish
 *
 * 1. Both read one clock.
 * 2. A failure of one ends the waits of the other; what is said is that of the end that did not only wait in
 *    vain for the other.
 * 3. Each wait has a deadline: `patience_ns`.
 *
 * Ownership: the caller's struct, zeroed, with transport, folder, patience_ns and `name` set; it does not
 * move. */
#ifndef HD_WORKER_ENDS_H
#define HD_WORKER_ENDS_H

#include <stdatomic.h>

#include "wire/hub.h"
#include "worker/link.h"

enum { HD_END_NEAR = 0, HD_END_FAR = 1, HD_ENDS_KEY = 32 };

/* One end's own. */
struct hd_end {
	struct hd_loop loop;
	struct hd_hub hub;
	enum hd_err err;
	struct hd_diag diag;
};

struct hd_ends {
	const char *transport;            /* row of wire/transports.h */
	const char *folder;               /* mode 0700, for sockets */
	const char *name;                 /* of the measurement: both hubs' job */
	uint32_t streams_cap;
	int64_t patience_ns;              /* of every wait */
	struct hd_link link;
	struct hd_clock *clock;
	uint8_t key[HD_ENDS_KEY];
	_Atomic bool ended[2];            /* an end is over: the other waits no more */
	struct hd_end end[2];
};

/* Threads' whole lives: near(arg) and far(arg). Fails as the ends did. */
HD_MUST_USE enum hd_err hd_ends_run(struct hd_ends *ends, const struct hd_link_spec *link,
	void (*near)(void *arg), void (*far)(void *arg), void *arg, struct hd_diag *diag);

/* Callbacks that do nothing. */
void hd_ends_hear_nothing(struct hd_wire_events *events);
/* The hub, in epoch 1. */
HD_MUST_USE enum hd_err hd_ends_begin(struct hd_ends *ends, uint32_t me, const struct hd_wire_events *events);
/* The far one: its side of the link, the hub, and the door. */
HD_MUST_USE enum hd_err hd_ends_join(struct hd_ends *ends, const struct hd_wire_events *events);
/* The near one, after hd_ends_begin: the link, and a call; *up is set by its event. */
HD_MUST_USE enum hd_err hd_ends_meet(struct hd_ends *ends, const bool *up);
void hd_ends_finish(struct hd_ends *ends, uint32_t me);
void hd_ends_failed(struct hd_ends *ends, uint32_t me, enum hd_err err);      /* the first is kept */
/* Polls until is(arg), `until_ns` (then HD_E_AGAIN), or the end of the other or of all patience. */
HD_MUST_USE enum hd_err hd_ends_wait(struct hd_ends *ends, uint32_t me, bool (*is)(const void *arg),
	const void *arg, int64_t until_ns, const char *what);
/* The near one: until the far one is over. */
HD_MUST_USE enum hd_err hd_ends_wait_far(struct hd_ends *ends);

#endif
