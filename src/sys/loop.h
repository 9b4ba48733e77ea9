/* loop.h -- event loop: waits for descriptors, deadlines and wakeups, and returns events in order.
 *
 * No callbacks: hd_loop_poll() fills an array of events and the caller steps its state machines with them.
 * Rows: epoll, and the simulation, whose time is a simulated clock that jumps to the next event.
 *
 * 1. Events of one poll: timers and posts that are due in the order (time, sequence), then descriptors.
 * 2. A timer fires once, never before its time. Cancelling one that fired is harmless.
 * 3. hd_loop_wake() makes the current or the next poll return with HD_LOOP_WAKE; many
 *    wakes before a poll are one. So does a signal: check hd_signal_stop().
 * 4. In the simulation an id is ready after hd_loop_sim_post(), and writable once when the
 *    interest is declared; a post to an id that is not watched then is lost: after accepting, read until
 *    HD_E_AGAIN. A poll for ever with nothing to come returns no event: the simulation has ended.
 *
 * 5. `rest` of the epoll row is called before a wait that may block, and after it: between the two another
 *    thread may use the loop. A deadline that it makes earlier than the wait's counts from the next poll on.
 *
 * Ownership: init/finish; watched ids stay the caller's and are unwatched before they are closed.
 * Threads: one at a time (rule 5), except hd_loop_wake(): any. Only hd_loop_poll() blocks. */
#ifndef HD_SYS_LOOP_H
#define HD_SYS_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"

enum hd_loop_what { HD_LOOP_READ = 1, HD_LOOP_WRITE = 2, HD_LOOP_LOST = 4, HD_LOOP_TIMER = 8,
	HD_LOOP_WAKE = 16 };

struct hd_loop_event {
	unsigned what;                    /* READ | WRITE | LOST of an id, or TIMER, or WAKE */
	uint64_t tag;                     /* the watcher's, or the timer's; 0 of a wake */
};

enum { HD_LOOP_WATCHED = 1024,            /* ids, numbered below this, and timers alive at once */
       HD_LOOP_TIMERS = 1024 };

struct hd_loop;

struct hd_loop_ops {
	const char *name;
	/* interest 0: no more. Idempotent, never blocks. */
	enum hd_err (*watch)(struct hd_loop *loop, int id, unsigned interest, struct hd_diag *diag);
	/* Ready ids into out[0..cap), at most until at_ns (INT64_MAX: for ever). The one slot that blocks. */
	enum hd_err (*wait)(struct hd_loop *loop, int64_t at_ns, struct hd_loop_event *out, size_t cap,
		size_t *n, struct hd_diag *diag);
	void (*wake)(struct hd_loop *loop);       /* any thread */
	void (*finish)(struct hd_loop *loop);
};

struct hd_loop_timer {
	int64_t at_ns;
	uint64_t sequence, tag;
	int id;                           /* -1: a timer; else a post of the simulation to this id */
	unsigned what;
};

struct hd_loop {
	const struct hd_loop_ops *ops;
	struct hd_clock *clock;           /* borrowed */
	struct hd_clock_sim *sim;         /* borrowed; NULL: real */
	int epoll_fd, wake_fd;
	void (*rest)(void *self, bool rests);     /* NULL: no other thread uses the loop meanwhile */
	void *rest_self;                  /* borrowed */
	atomic_bool woken;
	uint64_t sequence;
	size_t n_timers;
	struct hd_loop_timer *timers;     /* owned: a heap by (at_ns, sequence), HD_LOOP_TIMERS */
	struct hd_loop_watch { uint64_t tag; unsigned interest; } *watched;       /* owned: by id */
};

HD_MUST_USE enum hd_err hd_loop_init(struct hd_loop *loop, struct hd_clock *real, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_loop_sim_init(struct hd_loop *loop, struct hd_clock_sim *clock,
	struct hd_diag *diag);
void hd_loop_finish(struct hd_loop *loop);                /* takes zeroed and finished ones */

HD_MUST_USE enum hd_err hd_loop_watch(struct hd_loop *loop, int id, unsigned interest, uint64_t tag,
	struct hd_diag *diag);
void hd_loop_unwatch(struct hd_loop *loop, int id);
HD_MUST_USE enum hd_err hd_loop_timer_at(struct hd_loop *loop, int64_t at_ns, uint64_t tag, uint64_t *timer,
	struct hd_diag *diag);
void hd_loop_timer_cancel(struct hd_loop *loop, uint64_t timer);
void hd_loop_wake(struct hd_loop *loop);
/* Up to cap events, waiting until at_ns (by the loop's clock) for the first. *n = 0: the time came. */
HD_MUST_USE enum hd_err hd_loop_poll(struct hd_loop *loop, int64_t at_ns, struct hd_loop_event *out,
	size_t cap, size_t *n, struct hd_diag *diag);

/* Simulation only: event `what` for the watcher of id at at_ns, if there is one then that wants it. */
HD_MUST_USE enum hd_err hd_loop_sim_post(struct hd_loop *loop, int64_t at_ns, int id, unsigned what,
	struct hd_diag *diag);

/* of the earliest timer or post; of a wake: at once; INT64_MAX: nothing comes */
int64_t hd_loop_sim_next_ns(const struct hd_loop *loop);

#endif
