/* clock.h -- time behind an interface: the machine's clock, or a simulated one.
 *
 * Code that needs the time takes a struct hd_clock and never asks the system, so that the same code runs in
 * the deterministic simulation.
 *
 * 1. now_ns never goes back; its zero is arbitrary; it is for differences and deadlines.
 * 2. wall_ns is UTC since 1970, may jump, and is for people: no decision depends on it.
 * 3. Time is int64 nanoseconds everywhere. A simulated wait returns at once, having
 *    moved the simulated time to the deadline.
 *
 * Ownership: plain values, no finish. Threads: any (the simulated fields are atomic). */
#ifndef HD_SYS_CLOCK_H
#define HD_SYS_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#define HD_NS_PER_MS INT64_C(1000000)
#define HD_NS_PER_S  INT64_C(1000000000)

struct hd_clock;

/* Rows: the machine's clock, a thread's processor time and the simulated clock. Any thread. */
struct hd_clock_ops {
	const char *name;
	int64_t (*now_ns)(struct hd_clock *clock);                        /* never blocks */
	int64_t (*wall_ns)(struct hd_clock *clock);                       /* never blocks */
	void (*wait_until)(struct hd_clock *clock, int64_t at_ns);        /* blocks until now_ns >= at_ns */
};

struct hd_clock { const struct hd_clock_ops *ops; };

struct hd_clock_sim {
	struct hd_clock clock;
	_Atomic int64_t now_ns, wall_ns;
};

void hd_clock_real(struct hd_clock *clock);
/* stamps of traces: like now_ns, but never slewed */
uint64_t hd_clock_raw_ns(void);
/* processor time of the calling thread: what others take of its core is not in it */
int64_t hd_clock_thread_ns(void);
/* the same as a clock, of whichever thread asks it: for what one thread does alone */
void hd_clock_thread(struct hd_clock *clock);
int64_t hd_clock_boot_ns(void);           /* since the machine was started, sleep included */
void hd_clock_sim(struct hd_clock_sim *sim, int64_t now_ns, int64_t wall_ns);
void hd_clock_sim_advance(struct hd_clock_sim *sim, int64_t by_ns);        /* both clocks; by_ns >= 0 */
/* the wall clock only, either way */
void hd_clock_sim_jump(struct hd_clock_sim *sim, int64_t by_ns);

static inline int64_t hd_clock_now_ns(struct hd_clock *clock) { return clock->ops->now_ns(clock); }
static inline int64_t hd_clock_wall_ns(struct hd_clock *clock) { return clock->ops->wall_ns(clock); }
static inline void hd_clock_wait_until(struct hd_clock *clock,
	int64_t at_ns) { clock->ops->wait_until(clock, at_ns); }

/* "2026-01-31T23:59:59.123Z": RFC 3339, UTC, milliseconds (rounded down). Years 1-9999. */
enum { HD_CLOCK_TEXT = 32 };
void hd_clock_text(int64_t wall_ns, char text[HD_CLOCK_TEXT]);

#endif
