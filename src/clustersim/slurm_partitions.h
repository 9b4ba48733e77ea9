/* slurm_partitions.h -- which devices jobs of a partition may have, and on what terms, as Slurm's sinfo says.
 *
 * Read with the nodes (slurm_now.h); the simulator and `heddle sched advise` obey them.
 *
 * 1. A type is a kind of GPU on nodes that are in the same partitions: devices of one type are alike in all
 *    that a partition can ask. gpu[t] is its kind, in[t] the partitions, a bit each, in the order in which
 *    the file names them first.
 * 2. A job names one partition or several, parted by commas, and may have devices of any of them. One that
 *    names none that is there may have all.
 *
 * Pure. */
#ifndef HD_CLUSTERSIM_SLURM_PARTITIONS_H
#define HD_CLUSTERSIM_SLURM_PARTITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/sched_state.h"

enum { HD_SLURM_PARTITIONS = 64 };

/* What becomes of its jobs when one of a higher tier needs their devices. */
enum hd_preempted { HD_PREEMPTED_NOT, HD_PREEMPTED_REQUEUE, HD_PREEMPTED_CANCEL };

struct hd_slurm_partition {
	const char *name;
	const char *state;                        /* "up"; "down", "drain", "inact" */
	uint32_t tier;
	double factor, limit_s;                   /* PriorityJobFactor; MaxTime, INFINITY: none */
	enum hd_preempted preempted;
};

struct hd_slurm_partitions {
	uint32_t n;
	struct hd_slurm_partition at[HD_SLURM_PARTITIONS];
	const char *gpu[HD_SCHED_TYPES];
	uint64_t in[HD_SCHED_TYPES];
};

/* Those of a list "a,b" that are there, as bits; 0: none. */
uint64_t hd_slurm_partitions_named(const struct hd_slurm_partitions *partitions, const char *list);
/* Rule 2. */
uint64_t hd_slurm_partitions_of(const struct hd_slurm_partitions *partitions, const char *list);
/* The job's list has that one. */
bool hd_slurm_partition_in(const char *list, const char *name);

#endif
