/* served.h -- how long requests of a set took, by groups of files, in windows.
 *
 * 1. A histogram of 8 bins an octave from 8 us to 64 s: a time that is taken from it is at most 7 % beside
 *    the true one. Longer ones count as 64 s.
 * 2. A window is what was counted since the one before; counts never go back, so nothing is lost or counted
 *    twice where threads count meanwhile.
 *
 * No allocation. Threads: add any; window one at a time. */
#ifndef HD_DATA_SERVED_H
#define HD_DATA_SERVED_H

#include "data/fair.h"

enum { HD_SERVED_BINS = 200 };

struct hd_served { _Atomic uint32_t n[HD_FAIR_FILES][HD_SERVED_BINS]; };
struct hd_served_seen { uint32_t n[HD_FAIR_FILES][HD_SERVED_BINS]; };

/* of the times that fall into a bin, the middle */
int64_t hd_served_bin_ns(uint32_t bin);
void hd_served_add(struct hd_served *served, uint32_t group, int64_t ns);
/* The medians and p99 of the window into the part; `seen` becomes what is counted now. */
void hd_served_window(struct hd_served *served, struct hd_served_seen *seen, struct hd_fair_part *part);
/* p99 of all that was counted so far, of any group; 0: fewer than `least` were */
int64_t hd_served_p99_ns(struct hd_served *served, uint32_t least);

#endif
