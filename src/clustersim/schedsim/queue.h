/* queue.h -- jobs that keep what they got until they end: what was recorded, and Slurm's queue. For the
 * simulator. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_QUEUE_H
#define HD_CLUSTERSIM_SCHEDSIM_QUEUE_H

#include "clustersim/schedsim/int.h"
#include "clustersim/slurm.h"

struct job_event { double at_s; bool begins; uint32_t nth; uint64_t id; };

/* Devices of a type that a job has. */
struct job_part { uint32_t type, n; };
/* The nth stay of a job: parts [first, first + nparts). */
struct job_stay { double from_s; uint32_t first, nparts, nth; bool goes_on; };

struct slurm;

struct job_queue {
	struct sched_sim *sim;
	struct job_event *event;                /* owned: a heap, the earliest first */
	struct job_stay *stay;                    /* owned, by id: its last */
	struct job_part *part;                    /* owned: of all stays */
	uint32_t nevents, events_cap, stays_cap, nparts, parts_cap;
	double start_s, busy_s;
	uint32_t busy, busy_of[HD_SCHED_TYPES];
	/* of types with the same GPUs the first; types by that, those of few partitions first */
	uint32_t kind[HD_SCHED_TYPES], order[HD_SCHED_TYPES];
	/* as it was: devices that jobs of one partition have, of a kind */
	uint32_t used[HD_SLURM_PARTITIONS][HD_SCHED_TYPES];
	struct slurm *slurm;                      /* NULL: as it was */
};

/* The job has these devices from now until then, unless it is preempted. */
HD_MUST_USE enum hd_err queue_begin(struct job_queue *q, struct sim_job *job, const struct job_part *part,
	uint32_t nparts, double end_s);
/* It has them no more: its row is charged. */
void queue_leave(struct job_queue *q, struct sim_job *job);
/* Again in the queue, from then on. */
HD_MUST_USE enum hd_err queue_again(struct job_queue *q, const struct sim_job *job, double at_s);

/* Owned by the caller, with all that it holds; `most`: devices of all types. */
HD_MUST_USE enum hd_err slurm_create(struct slurm **slurm, const struct hd_slurm_setting *setting,
	struct job_queue *q);
void slurm_destroy(struct slurm *slurm);
HD_MUST_USE enum hd_err slurm_came(struct slurm *slurm, const struct sim_job *job);
void slurm_ended(struct slurm *slurm, const struct sim_job *job);
/* Starts whatever may start now. */
HD_MUST_USE enum hd_err slurm_pass(struct slurm *slurm);

#endif
