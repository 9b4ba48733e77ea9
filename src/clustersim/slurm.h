/* slurm.h -- the rules of Slurm's own scheduler, as far as the simulator follows them: what the row `slurm`
 * of `heddle sched compare` is.
 *
 * A model of the multifactor priority, Fair Tree and backfill that Slurm describes; not compared with a
 * running Slurm.
 *
 *	priority = floor(age A + fairshare F + job_size J + partition P + qos Q), the words being weights
 *	A   time since submission over max_age, at most 1
 *	F   Fair Tree over two levels. Of an account, and of a user in it, the level is its part of the shares
 *	    over its part of the usage, infinite without usage. Users in order of their account's level, then
 *	    of their own, the highest first: F is (users - those before it) / users; equal ones are equal.
 *	    Usage is device seconds, halved every half_life, counted while they pass. Users are those that
 *	    have come so far. A share is 1 where none is given
 *	J   devices over all devices; favor_small: 1 less that
 *	P   the partition's number over the largest of all; where none is given its PriorityJobFactor, without
 *	    partitions 1
 *	Q   the QOS' number over the largest of all; 0 where none is given
 *
 * 1. Whenever a job comes or ends, jobs are looked at by priority, then by id. A job that fits now starts, on
 *    the type where it can begin soonest (its own, or the first by name among equals), and keeps its devices
 *    until it ends.
 * 2. Backfill: a job that does not fit reserves devices at the earliest time at which running jobs will have
 *    released them by their limits. `easy`: the first that waits for a type reserves; `conservative`, what
 *    sched/backfill does: all of the first `depth`; `none`: nothing behind a job that waits for a type
 *    starts there. No later job may move a reservation. A job for which no partition has devices enough is
 *    not looked at and counts in no depth: Slurm refuses it as it comes, or holds it (BadConstraints).
 * 3. A limit that is none or not known is limit_s (365 days, Slurm's for UNLIMITED). Jobs are not killed at
 *    it: one that is still there is expected to end a second from now.
 * 4. No node is chosen, no job depends on another, and no start is charged: what a job took is what the
 *    accounting says.
 * 5. With partitions (slurm_partitions.h) a job is looked at once for each that it names, in order of tier,
 *    the highest first, then of priority and id, then as the file has them. It begins by the first that has
 *    room; by each of the others it reserves (bf_one_resv_per_job is not set). One that names none that is
 *    there may have all devices, with tier 1, factor 1 and without limit.
 * 6. By a partition it has devices of one kind on nodes of that partition, first of the types that the fewest
 *    partitions have, then of the first by name. What rules 1 and 2 say of types they say of kinds.
 * 7. A job that asks for longer than MaxTime does not begin by that partition (PartitionTimeLimit); of one
 *    that asks for nothing in particular MaxTime is the limit. Whether a partition is up is not asked.
 * 8. PreemptType=preempt/partition_prio, where a partition's PreemptMode is REQUEUE or CANCEL: a job that
 *    does not fit takes devices of running ones of lower tiers, of such partitions alone. They go in order of
 *    tier, then of devices, the lowest first, then the youngest, until it fits; then those stay without which
 *    it fits as well, asked in the same order. Kinds are tried by name. What is requeued begins from its
 *    start, and is in the queue again after HD_SLURM_REQUEUE_S; what is cancelled counts as dropped. There is
 *    no grace time. */
#ifndef HD_CLUSTERSIM_SLURM_H
#define HD_CLUSTERSIM_SLURM_H

#include <stdbool.h>
#include <stdint.h>

enum hd_backfill { HD_BACKFILL_CONSERVATIVE, HD_BACKFILL_EASY, HD_BACKFILL_NONE };

/* a share is of an account or a user */
enum hd_slurm_of { HD_SLURM_PARTITION, HD_SLURM_QOS, HD_SLURM_SHARE };
struct hd_slurm_number { enum hd_slurm_of of; const char *name; double value; };

enum { HD_SLURM_NUMBERS = 256,
       HD_SLURM_REQUEUE_S = 121 };                /* as measured of 22.05 */

struct hd_slurm_setting {
	double age, fairshare, job_size, partition, qos;
	double max_age_s, half_life_s, limit_s;
	bool favor_small;
	enum hd_backfill backfill;
	uint32_t depth;
	uint32_t nnumbers;
	struct hd_slurm_number number[HD_SLURM_NUMBERS];
};

/* Weights are ours, as a site might set them (Slurm's are 0); max_age, half_life and depth (bf_max_job_test)
 * are the defaults of slurm.conf(5) in 22.05. */
#define HD_SLURM_SETTING ((struct hd_slurm_setting){ .age = 1000, .fairshare = 10000, .job_size = 1000, \
	.partition = 1000, .qos = 0, .max_age_s = 7 * 86400.0, .half_life_s = 7 * 86400.0, \
	.limit_s = 365 * 86400.0, .depth = 500 })

#endif
