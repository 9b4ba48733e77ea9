/* lr.h -- the learning rate of a step: a function of the job and the step; of a plateau also
 * of how often it fell.
 *
 * With w steps of warm-up, N steps in all and t = (s - w) / (N - w):
 *   s < w      lr * (s + 1) / w
 *   constant   lr
 *   linear     lr * (1 - (1 - floor) * t)
 *   cosine     lr * (floor + (1 - floor) * (1 + cos(pi t)) / 2)
 *   step       lr * max(floor, factor^(s div every))
 *   plateau    lr * max(floor, factor^falls), where falls are state (engine/judge.h)
 *   polynomial lr * (floor + (1 - floor) * (1 - t)^power)
 *   one-cycle  has no warm-up of its own: it is lr at step w - 1, and with c(x) = (1 + cos(pi x)) / 2
 *              before it   lr * (1 + (start - 1) * c(s / (w - 1)))
 *              after it    lr * (end + (1 - end) * c((s - w + 1) / (N - w)))
 *              (Smith, Topin 2019; as PyTorch's OneCycleLR with pct_start w / N, div_factor 1 / start,
 *              final_div_factor start / end, and without a cycle of the momentum)
 *
 * 1. Steps count from 0; from step N on t is 1.
 * 2. f64 with our own cosine, logarithm and power (the libm of two hosts may differ in the last
 *    bit), rounded once to f32.
 *
 * Used by the step scalars of engine and by reports. Pure. */
#ifndef HD_JOB_LR_H
#define HD_JOB_LR_H

#include "job/job.h"

/* In the order of the words of optim.schedule.kind. */
enum hd_lr_kind { HD_LR_CONSTANT, HD_LR_LINEAR, HD_LR_COSINE, HD_LR_STEP, HD_LR_ONE_CYCLE, HD_LR_POLYNOMIAL,
	HD_LR_PLATEAU };

struct hd_lr {
	enum hd_lr_kind kind;
	double lr, floor, factor, start, end, power;
	uint64_t warmup, every, falls;    /* steps; every > 0; of a plateau */
};

/* Steps of warm-up where the job leaves them open. */
uint64_t hd_lr_auto_warmup(enum hd_lr_kind kind, uint64_t nsteps);
/* For tests; others take it of a job. */
float hd_lr(const struct hd_lr *lr, uint64_t step, uint64_t nsteps);
/* by the job's own schedule, with so many falls of a plateau */
float hd_lr_at(const struct hd_job *job, uint64_t step, uint64_t nsteps, uint64_t falls);

#endif
