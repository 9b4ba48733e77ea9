/* pace.h -- measured speed of each worker.
 *
 * A worker's seal has the time of its step, its wait and its compute. Compute time per virtual node is its
 * pace.
 *
 * 1. A pace is an EWMA (0.1) over steps without repairs, each counted as at most twice the pace; the first
 *    HD_PACE_FIRST steps of a view are not counted.
 * 2. What those steps took and the virtual nodes that they had are summed: the difference of two looks is
 *    what was between them. Sums begin at 0 with each coordinator.
 * 3. The two newest steps of each worker are kept: a step is reported once all members have sealed it.
 *
 * Plain values, no clock. Threads: one. */
#ifndef HD_DRIVER_PACE_H
#define HD_DRIVER_PACE_H

#include "protocol/coordinator.h"

enum { HD_PACE_FIRST = 3 };

/* next: the step's number + 1 */
struct hd_pace_step {
	uint64_t next, step_ns, wait_ns, compute_ns, redundant_ns, stalled_ns, read_wait_ns, bytes_out;
	uint64_t preempted, inverted;
	uint32_t redone;
};

struct hd_pace_worker {
	uint32_t worker, steps;
	uint64_t vn_ps;                   /* 0: not measured */
	struct hd_pace_step step[2];      /* by parity */
	uint64_t newest;                  /* step */
	uint64_t redone;                  /* virtual nodes that it computed for others, in all */
	/* of the steps of rule 1: virtual nodes, each time on the device that has most of them; */
	/* compute time, of that waiting for data */
	struct hd_pace_sums { uint64_t steps, vns, compute_ns, read_wait_ns; } sums;
};

struct hd_pace {
	uint32_t epoch, in_epoch;         /* the view; steps of it seen */
	uint32_t n;
	struct hd_pace_worker worker[HD_MAX_WORKERS];
};

/* A seal of a member under `view`, which may be NULL. One that computed for longer than its step took was not
 * measured. */
void hd_pace_seal(struct hd_pace *pace, uint32_t worker, uint64_t step, const struct hd_step_news *news,
	const struct hd_view *view);
/* NULL: it has sealed no step */
const struct hd_pace_worker *hd_pace_of(const struct hd_pace *pace, uint32_t worker);
const struct hd_pace_step *hd_pace_last(const struct hd_pace_worker *worker);
/* NULL: not kept */
const struct hd_pace_step *hd_pace_at(const struct hd_pace_worker *worker, uint64_t step);
/* Of the members of the view (NULL: of none) that sealed that step: the longest wait for data, at most the
 * step of its worker; the sums of what they sent, of pre-emptions and of inversions, each at most
 * 2^63 / HD_MAX_MEMBERS. */
struct hd_pace_total { uint64_t read_wait_ns, bytes_out, preempted, inverted; };
struct hd_pace_total hd_pace_total(const struct hd_pace *pace, uint64_t step, const struct hd_view *view);
/* What a virtual node took in that step, picoseconds; 0: the worker has none under that view. */
uint64_t hd_pace_vn_ps(const struct hd_pace_step *step, const struct hd_view *view, uint32_t worker);
/* How fast a worker is: 1 is the median of those of the view. 0: not measured. */
double hd_pace_speed(const struct hd_pace *pace, uint32_t worker, const struct hd_view *view);
/* Paces as bytes, for a coordinator that follows: u32 worker, u64 picoseconds each, little end. What is not
 * such is not taken; a pace that was taken counts as one step. */
enum { HD_PACE_ENTRY = 12, HD_PACE_BYTES = HD_PACE_ENTRY * HD_MAX_WORKERS };
size_t hd_pace_put(const struct hd_pace *pace, uint8_t bytes[HD_PACE_BYTES]);
void hd_pace_take(struct hd_pace *pace, const uint8_t *bytes, size_t len);
/* Of those that were measured; even: the mean of the middle two. 0: none was. */
uint64_t hd_pace_median(const struct hd_pace *pace, const uint32_t *worker, uint32_t n);

#endif
