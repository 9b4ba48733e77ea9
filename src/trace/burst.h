/* burst.h -- when to probe the clock of another process, and which probe of a burst is kept.
 *
 * The end that aligns itself (a worker) drives one of these for the reference (its coordinator).
 *
 * 1. A burst is HD_BURST_PROBES probes, one after the other; the next begins HD_BURST_EVERY_NS after the last
 *    one began, HD_BURST_SOON_NS in the first HD_BURST_YOUNG_NS after hd_burst_begin().
 * 2. Kept is the probe of a burst with the least (t4 - t1) - (t3 - t2), the first of equal ones: its bounds
 *    are the tightest (see CLOCK in event.h). A probe whose times run backwards at one end is not counted.
 * 3. Of a burst that is not whole when the next one is due, what came is kept.
 *
 * Pure: times are handed in, in ns of one clock. */
#ifndef HD_TRACE_BURST_H
#define HD_TRACE_BURST_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_BURST_PROBES = 8 };
#define HD_BURST_EVERY_NS UINT64_C(2000000000)
#define HD_BURST_SOON_NS  UINT64_C(500000000)
#define HD_BURST_YOUNG_NS UINT64_C(10000000000)

/* out, in; out, in: t2 and t3 are of the other end */
struct hd_burst_probe { uint64_t t1, t2, t3, t4; };

struct hd_burst {
	uint64_t since_ns, due_ns;
	uint32_t left;                    /* of the burst at hand, not answered yet */
	bool runs, has;                   /* runs: there is a link; has: `best` is there */
	struct hd_burst_probe best;
};

void hd_burst_begin(struct hd_burst *burst, uint64_t now_ns);      /* a link is there: the first is due now */
void hd_burst_end(struct hd_burst *burst);                         /* it is gone */
/* Is a burst due? Then the caller probes once. *kept, with `keep`: the best of one that was not whole. */
bool hd_burst_due(struct hd_burst *burst, uint64_t now_ns, struct hd_burst_probe *kept, bool *keep);
/* An answer came; true: the caller probes again. *keep: the burst is whole, and *kept is its best. */
bool hd_burst_took(struct hd_burst *burst, const struct hd_burst_probe *probe, struct hd_burst_probe *kept,
	bool *keep);

#endif
