/* times.h -- the times of the last steps: for the medians that users see, and for how often something costly
 * may be done. They decide nothing of the result. */
#ifndef HD_ENGINE_TIMES_H
#define HD_ENGINE_TIMES_H

#include <stdint.h>

enum { HD_TIMES_CAP = 256 };

/* What instructions of one kind took together; of stages also the processor time of the rank's thread,
 * without waits and without what others took of its core. */
struct hd_spent { uint64_t n, ns, processor_ns; };

struct hd_times { double at[HD_TIMES_CAP]; uint64_t n; };

void hd_times_add(struct hd_times *times, double ms);
/* Nearest rank of the last HD_TIMES_CAP values; 0 of none. Does not allocate. */
double hd_times_quantile(const struct hd_times *times, double q);

/* Every how many steps something may happen that takes `cost_ms`, so that it takes at most 1/`share` of the
 * time of steps of `step_ms`: a power of two, so that two runs which measured differently share the longer
 * one's steps. */
uint64_t hd_times_interval(double cost_ms, double step_ms, uint32_t share);

#endif
