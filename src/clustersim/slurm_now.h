/* slurm_now.h -- what a Slurm cluster is doing now, as squeue and sinfo print it, and what a policy would
 * start next.
 *
 * `heddle sched advise` reads and prints it; nothing is changed in the cluster.
 *
 *	squeue --noheader --array --states=PENDING,... -O HD_LIVE_SQUEUE       columns of a fixed width, by
 *	sinfo --noheader --Node -O HD_LIVE_SINFO                               the manual pages of 22.05
 *
 * 1. Now is the latest submission or start that squeue says: only differences of ages count.
 * 2. A node has GPUs of one type, those of its Gres; GresUsed of them are taken. A node that is down,
 *    drained, reserved, powered off or does not answer has none to give. Types are split where nodes of one
 *    type are in different partitions; a job runs on those of its partitions alone.
 * 3. Jobs that wait for something else than devices (held, a dependency, a limit of their account) are none
 *    of the policy's: they are listed with Slurm's reason. Jobs without GPUs are counted.
 * 4. The policy is asked about jobs that wait and devices that are free. Nothing is preempted. What a job has
 *    to do is its limit.
 * 5. Bad input is HD_E_INPUT and says file:line.
 *
 * Ownership: all lies in the arena. Pure. */
#ifndef HD_CLUSTERSIM_SLURM_NOW_H
#define HD_CLUSTERSIM_SLURM_NOW_H

#include "base/text.h"
#include "scheduler/rounds_why.h"

#define HD_LIVE_SQUEUE \
	"JobArrayID:24,ArrayTaskID:24,State:16,UserName:48,Account:48,Partition:96," \
	"SubmitTime:24,StartTime:24,TimeLimit:16,tres-alloc:256,Reason:64,Name:128"
#define HD_LIVE_STATES "PENDING,CONFIGURING,RUNNING,COMPLETING,SUSPENDED,STOPPED"
#define HD_LIVE_SINFO "NodeHost:96,StateCompact:16,PartitionName:64,Gres:256,GresUsed:256"

enum { HD_LIVE_NODES = 1 << 16, HD_LIVE_PARTITIONS = 64, HD_LIVE_NODE_GPUS = 1024 };

struct hd_slurm_node {
	const char *name, *gpu, *state;           /* gpu: "gpu" where it has no name */
	const char *type_name;
	uint32_t gpus, used, type;                /* type: of hd_slurm_now */
	uint64_t partitions;                      /* bits of hd_slurm_now.partition */
	bool usable;
};

struct hd_slurm_job {
	const char *id, *user, *account, *partition, *name, *reason, *gpu;       /* gpu: asked for, or "" */
	uint32_t gpus;
	double submit_s, limit_s;                 /* limit_s: INFINITY, none */
	uint64_t partitions;
	bool runs, held;
};

struct hd_slurm_now {
	struct hd_slurm_node *node;                /* with GPUs */
	struct hd_slurm_job *job;                  /* with GPUs, by submission */
	uint32_t nnodes, njobs, npartitions, ntypes;
	uint64_t nwithout;                        /* jobs without GPUs */
	const char *partition[HD_LIVE_PARTITIONS];
	struct hd_sched_type type[HD_SCHED_TYPES];       /* n: all devices of it */
	double now_s;
};

/* sinfo first: which partitions there are. */
HD_MUST_USE enum hd_err hd_slurm_nodes(struct hd_slurm_now *live, const char *name, const uint8_t *bytes,
	size_t
	len,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_slurm_jobs(struct hd_slurm_now *live, const char *name, const uint8_t *bytes,
	size_t len,
	struct hd_arena *arena, struct hd_diag *diag);

struct hd_advice {
	const struct hd_slurm_job *job;
	bool starts;
	const char *where;                        /* "n1:2 n2:4"; "" */
	enum hd_why_code code;                    /* RUNS: it starts */
	struct hd_wait wait;                      /* of one that waits for devices */
};

/* One for each job that waits; those that start first. Ids in `wait` are places in live->job, from 1. */
HD_MUST_USE enum hd_err hd_slurm_advise(struct hd_advice **advice, uint32_t *n, const struct hd_slurm_now
	*live,
	const struct hd_policy_setting *policy, struct hd_arena *arena, struct hd_diag *diag);

#endif
