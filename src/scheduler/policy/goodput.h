/* goodput.h -- the model of Pollux (sched_state.h has its formulas): what a batch on k devices is worth.
 * Pure. For the policy and its tests. */
#ifndef HD_SCHEDULER_POLICY_GOODPUT_H
#define HD_SCHEDULER_POLICY_GOODPUT_H

#include "scheduler/sched_state.h"

/* Samples/s on k devices of the fastest type, in samples of the first batch's worth. For tests. */
double hd_goodput_at(const struct hd_sched_goodput *model, uint32_t k, double batch);
/* The best of 50 batches from the first to the largest, in equal factors; 0 where none has a sample for
 * each device. For tests. */
double hd_goodput(const struct hd_sched_goodput *model, uint32_t k, double *batch);

#endif
