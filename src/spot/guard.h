/* guard.h -- does a run need redundancy? Not while machines that go are announced in time; again from the
 * first one that was not.
 *
 * The coordinator of a run asks it at each step (driver_guard.c); a simulation may ask it alike.
 *
 * 1. A loss is a worker that left, or was lost. It was *in time* if there was notice and it left by itself:
 *    its part had another place by then. One that left first and was lost before it was gone is not.
 * 2. At first redundancy is wanted.
 * 3. It is wanted no more once, of the last HD_GUARD_LOSSES losses since it came to be, all but
 *    HD_GUARD_MISSED were in time. Those before count no more.
 * 4. While it is not wanted the first loss that is not in time brings it back.
 * So it goes at most once in HD_GUARD_LOSSES losses.
 *
 * Pure; a plain value: zeroed, nothing was seen. */
#ifndef HD_SPOT_GUARD_H
#define HD_SPOT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HD_GUARD_LOSSES = 20, HD_GUARD_MISSED = 1, HD_GUARD_WORDS = 160,
	HD_GUARD_BYTES = 5 * HD_GUARD_LOSSES + 3 };

struct hd_guard {
	uint32_t worker[HD_GUARD_LOSSES];         /* that were lost; a ring */
	bool in_time[HD_GUARD_LOSSES];
	uint32_t next, n;                         /* where the next one goes; those that count, at most all */
	bool off;                                 /* redundancy is not wanted */
};

/* A worker of the view left by itself; `noticed`: after a notice. Without one it is no loss. */
void hd_guard_left(struct hd_guard *guard, uint32_t worker, bool noticed);
void hd_guard_lost(struct hd_guard *guard, uint32_t worker);
/* Is redundancy wanted? */
bool hd_guard_wants(const struct hd_guard *guard);
/* Why, with what was counted. Returns `out`. */
const char *hd_guard_why(const struct hd_guard *guard, char out[HD_GUARD_WORDS]);
/* As it is stored, for the next coordinator of the run. */
void hd_guard_put(const struct hd_guard *guard, uint8_t bytes[HD_GUARD_BYTES]);
/* False, and nothing is taken: these are no such bytes. */
bool hd_guard_take(struct hd_guard *guard, const uint8_t *bytes, size_t len);

#endif
