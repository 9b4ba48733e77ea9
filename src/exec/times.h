/* times.h -- the last step times, for medians that a user sees; nothing decides by them. */
#ifndef HD_EXEC_TIMES_H
#define HD_EXEC_TIMES_H

#include <stdint.h>

enum { HD_TIMES_CAP = 256 };

struct hd_times { double at[HD_TIMES_CAP]; uint64_t n; };

void hd_times_add(struct hd_times *times, double ms);
/* Nearest rank of the last HD_TIMES_CAP values; 0 of none. Does not allocate. */
double hd_times_quantile(const struct hd_times *times, double q);

#endif
