/* measured.h -- how fast types of devices are against each other, from an accounting: where jobs of one name
 * ran on several.
 *
 * 1. Jobs are alike if user, name and number of devices are. Of a name what ends it is no part: digits behind
 *    a separator or behind seed, run, trial, rep or fold, with them ("vit-b-seed3", "vit-b_12": "vit-b"; but
 *    "resnet50" stays). Only jobs that completed count: others' times say when they ended, not how fast they
 *    were.
 * 2. Alike jobs on two types are a pair: the difference of their mean log times, with the weight
 *    1 / (1 / n + 1 / m) of n and m jobs. Speeds are those whose ratios come closest to all pairs (least
 *    squares of logs). The type in most pairs, of equal ones the first by name, has speed 1.
 * 3. The speed of a type that no chain of pairs ties to that one is NAN.
 *
 * What it cannot see: whether alike jobs did equal work. The spread says how far pairs are from each other.
 *
 * Pure. */
#ifndef HD_CLUSTERSIM_MEASURED_H
#define HD_CLUSTERSIM_MEASURED_H

#include "clustersim/sched_sim.h"

struct hd_measured {
	uint32_t reference;
	/* npairs: of it with the reference; low, high: ratios of these; spread: their standard deviation in
	 * logs, as a factor; njobs: of all its pairs */
	struct { double speed, low, high, spread; uint64_t npairs, njobs; } of[HD_SCHED_TYPES];
};

/* "vit-b" of "vit-b-seed3": how many bytes of it. */
size_t hd_measured_name(const char *name);

HD_MUST_USE enum hd_err hd_speeds_measure(struct hd_measured *measured, const struct hd_job_list *list,
	const struct hd_sched_type *type, uint32_t ntypes, struct hd_arena *arena, struct hd_diag *diag);

#endif
