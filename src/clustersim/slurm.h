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
 *	P   the partition's number over the largest of all; 1 where none is given
 *	Q   the QOS' number over the largest of all; 0 where none is given
 *
 * 1. Whenever a job comes or ends, jobs are looked at by priority, then by id. A job that fits now starts, on
 *    the type where it can begin soonest (its own, or the first by name among equals), and keeps its devices
 *    until it ends.
 * 2. Backfill: a job that does not fit reserves devices at the earliest time at which running jobs will have
 *    released them by their limits. `easy`: the first that waits for a type reserves; `conservative`, what
 *    sched/backfill does: all of the first `depth`; `none`: nothing behind a job that waits for a type
 *    starts there. No later job may move a reservation.
 * 3. A limit that is none or not known is limit_s (365 days, Slurm's for UNLIMITED). Jobs are not killed at
 *    it: one that is still there is expected to end a second from now.
 * 4. Nothing is preempted, no node is chosen, no job depends on another, and no start is charged: what a job
 *    took is what the accounting says. */
#ifndef HD_CLUSTERSIM_SLURM_H
#define HD_CLUSTERSIM_SLURM_H

#include <stdbool.h>
#include <stdint.h>

enum hd_backfill { HD_BACKFILL_CONSERVATIVE, HD_BACKFILL_EASY, HD_BACKFILL_NONE };

/* a share is of an account or a user */
enum hd_slurm_of { HD_SLURM_PARTITION, HD_SLURM_QOS, HD_SLURM_SHARE };
struct hd_slurm_number { enum hd_slurm_of of; const char *name; double value; };

enum { HD_SLURM_NUMBERS = 256 };

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
