/* ticks.h -- CLOCK_MONOTONIC_RAW, looked at often: between two looks at the kernel's clock the
 * processor's counter says how much time has gone, which takes half as long.
 *
 * The trace takes its stamps of devices so (engine/recorder.h). A value is an anchor: a look at both, by one
 * thread. Another value, shared by all threads of a process, is what a tick takes; one thread measures it.
 *
 * 1. A time is that of hd_clock_raw_ns() at a moment inside the call, give or take HD_TICKS_OFF_NS, and never
 *    before one that the same value gave. Threads with values of their own agree by twice that.
 * 2. An anchor holds for HD_TICKS_SPAN_NS; what the rate is wrong by has no longer to grow. A look at both
 *    that took longer than HD_TICKS_OFF_NS, since its thread was interrupted, is no anchor.
 * 3. While the rate is not known every look asks the kernel: HD_TICKS_KNOWN_NS from the first measurement on;
 *    on a machine whose kernel does not keep time by the counter (its clocksource is not tsc) for ever. What
 *    a tick takes is measured from the first measurement to the last, so that it gets better. Where the two
 *    clocks disagree between two measurements by more than HD_TICKS_RATE_OFF it begins again: one of them
 *    stood still or was set (a machine that slept, or was moved), and what is measured over that is wrong.
 *
 * Threads: a value belongs to one at a time; measuring to one; all else any. */
#ifndef HD_SYS_TICKS_H
#define HD_SYS_TICKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HD_TICKS_OFF_NS   UINT64_C(400)
#define HD_TICKS_SPAN_NS  UINT64_C(1000000)
#define HD_TICKS_KNOWN_NS UINT64_C(20000000)
#define HD_TICKS_RATE_OFF 1e-4

/* Zeros: nothing is known. */
struct hd_ticks_rate {
	_Atomic uint64_t mult;            /* ns of 2^32 ticks; 0: not known */
	_Atomic uint64_t span;            /* ticks of HD_TICKS_SPAN_NS */
	/* of the thread that measures */
	uint64_t first_tick, first_ns, last_tick, last_ns;
	bool forgotten;
};

/* Zeros: no anchor yet. */
struct hd_ticks { uint64_t tick, ns, last; };

uint64_t hd_ticks_ns(struct hd_ticks *ticks, const struct hd_ticks_rate *rate);
/* Does the kernel keep time by the counter? Reads a file. */
bool hd_ticks_usable(void);
/* Now and then, while they are usable; a first time soon. */
void hd_ticks_measure(struct hd_ticks_rate *rate);
void hd_ticks_forget(struct hd_ticks_rate *rate);        /* they no longer are: for good */

#endif
