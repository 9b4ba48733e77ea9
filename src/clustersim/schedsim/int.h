/* int.h -- what both fidelities of the simulator share: the jobs that are there, the state that a policy
 * sees, the rows. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_INT_H
#define HD_CLUSTERSIM_SCHEDSIM_INT_H

#include "clustersim/sched_sim.h"

struct sim_job {
	struct hd_listed_job listed;
	uint64_t id;
	uint32_t ikind, entity, failures, draws;
	uint64_t partitions;                      /* of the setting's; those that it may use */
	double done;                              /* steps */
	double admitted_s, jobs_before;           /* integral of the number of jobs when it came */
	double redo;                              /* steps to do again */
	bool over;
	uint32_t run;                             /* ours: of the run it is in; UINT32_MAX */
	/* ours: in the round that begins it keeps some of its devices, not all */
	bool resizes;
	double rate[];                            /* [ntypes] alone */
};

struct sched_sim {
	const struct hd_sched_sim_setting *set;
	struct hd_sched_sim_result *result;
	struct hd_arena *arena;                   /* of rows */
	struct hd_arena call;                     /* owned: of one call of the policy */
	struct hd_policy *policy;                 /* owned; NULL: a queue */
	struct hd_rounds *rounds;                 /* owned; NULL: a queue */
	struct hd_diag *diag;
	struct hd_pair_table table;               /* the rates that the policy sees */
	struct hd_estimator *estimator;           /* owned; NULL: pairs are known */
	bool packs;
	double price[HD_SCHED_TYPES];             /* now, per device and hour */
	struct sim_job **job;                     /* owned, by id */
	uint32_t njobs, jobs_cap;
	size_t rows_cap;
	uint64_t admitted, over, wanted;          /* over: of the wanted ones */
	bool more;                                /* `ahead` is the next job of the source */
	struct hd_listed_job ahead;
	double now_s;
	uint32_t ndevices;
	double jobs_time;                         /* integral of the number of jobs */
};

HD_MUST_USE enum hd_err schedsim_open(struct sched_sim *sim, const struct hd_sched_sim_setting *setting,
	struct hd_sched_sim_result *result, struct hd_arena *arena,
	struct hd_diag *diag);
void schedsim_close(struct sched_sim *sim);
/* The job at hand enters; the one after it is fetched. */
HD_MUST_USE enum hd_err schedsim_admit(struct sched_sim *sim);
struct sim_job *schedsim_job(const struct sched_sim *sim, uint64_t id);
struct hd_sim_row *schedsim_row(const struct sched_sim *sim, uint64_t id);
/* The job is over, or dropped: its row is completed, its place freed. */
void schedsim_leave(struct sched_sim *sim, struct sim_job *job, double finish_s, bool dropped);
/* asks the policy and hands its shares to the rounds */
HD_MUST_USE enum hd_err schedsim_solve(struct sched_sim *sim);
/* Two jobs begin to run beside each other, perhaps at rates that were guessed: now they are seen. */
void schedsim_begin_pair(const struct sched_sim *sim, struct hd_round_run *run);
/* What jobs and options call the devices of a type. */
const char *schedsim_gpu(const struct hd_sched_sim_setting *set, uint32_t type);
bool schedsim_wanted(const struct sched_sim *sim, uint64_t id);
bool schedsim_is_done(const struct sched_sim *sim);
void schedsim_finish(struct sched_sim *sim, double busy_s, double device_s);     /* the result's averages */

HD_MUST_USE enum hd_err schedsim_gavel(struct sched_sim *sim);
HD_MUST_USE enum hd_err schedsim_ours(struct sched_sim *sim);
HD_MUST_USE enum hd_err schedsim_queue(struct sched_sim *sim);

#endif
