/* queue.h -- jobs that keep what they got until they end: what was recorded, and Slurm's queue. For the
 * simulator. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_QUEUE_H
#define HD_CLUSTERSIM_SCHEDSIM_QUEUE_H

#include "clustersim/schedsim/int.h"
#include "clustersim/slurm.h"

struct job_event { double at_s; bool begins; uint64_t id; };

struct slurm;

struct job_queue {
	struct sched_sim *sim;
	struct job_event *event;                /* owned: a heap, the earliest first */
	uint32_t nevents, events_cap;
	uint32_t *type;                           /* owned, by id: where it runs; HD_SCHED_NONE */
	uint32_t type_cap;
	double start_s, busy_s;
	uint32_t busy, busy_of[HD_SCHED_TYPES];
	struct slurm *slurm;                      /* NULL: as it was */
};

/* The job has these devices from now until then. Its row is charged. */
HD_MUST_USE enum hd_err queue_begin(struct job_queue *q, struct sim_job *job, uint32_t type, double end_s);

/* Owned by the caller, with all that it holds; `most`: devices of all types. */
HD_MUST_USE enum hd_err slurm_create(struct slurm **slurm, const struct hd_slurm_setting *setting,
	struct job_queue *q);
void slurm_destroy(struct slurm *slurm);
HD_MUST_USE enum hd_err slurm_came(struct slurm *slurm, const struct sim_job *job);
void slurm_ended(struct slurm *slurm, const struct sim_job *job);
/* Starts whatever may start now. */
HD_MUST_USE enum hd_err slurm_pass(struct slurm *slurm);

#endif
