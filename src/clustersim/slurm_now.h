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
 *    type are in different partitions (slurm_partitions.h); a job runs on those of its partitions alone, of
 *    those that start jobs (Available up) and allow its time limit (Time).
 * 3. Jobs that could not start on free devices are none of the policy's: HD_SLURM_BARS says why. What Slurm
 *    says as its reason may be older than the job's dependency, hold or partition, so these are looked at,
 *    too. Jobs without GPUs are counted.
 * 4. The policy is asked about jobs that wait and devices that are free. Nothing is preempted. What a job has
 *    to do is its limit. Its weight is 1; for policies that go by weight alone (`priority`), its place in
 *    Slurm's order: by the tier of its partition, by its priority, the older first.
 * 5. CPUs, memory and licences are not looked at.
 * 6. Bad input is HD_E_INPUT and says file:line.
 *
 * Ownership: all lies in the arena. Pure. */
#ifndef HD_CLUSTERSIM_SLURM_NOW_H
#define HD_CLUSTERSIM_SLURM_NOW_H

#include "base/text.h"
#include "scheduler/rounds_why.h"
#include "clustersim/slurm_partitions.h"

#define HD_LIVE_SQUEUE \
	"JobArrayID:24,ArrayTaskID:24,State:16,UserName:48,Account:48,Partition:96," \
	"SubmitTime:24,StartTime:24,TimeLimit:16,tres-alloc:256,tres-per-job:64,tres-per-node:64," \
	"NumNodes:12,PriorityLong:16,Dependency:64,EligibleTime:24,Feature:64,ReqNodes:64,NodeList:256," \
	"Reason:64,Name:128"
#define HD_LIVE_STATES "PENDING,CONFIGURING,RUNNING,COMPLETING,SUSPENDED,STOPPED"
#define HD_LIVE_SINFO \
	"NodeList:96,StateCompact:16,PartitionName:64,Gres:256,GresUsed:256,Available:16,Time:24," \
	"PriorityTier:16,PriorityJobFactor:24,PreemptMode:24"

enum { HD_LIVE_NODES = 1 << 16, HD_LIVE_NODE_GPUS = 1024 };

/* Why a job could not start whatever is free. */
/*        id          code                words */
#define HD_SLURM_BARS(X) \
	X(NONE,       "",                 "")                                                                \
	X(REASON,     "HELD_BY_SLURM",    "Slurm keeps it, for another reason than devices")                 \
	X(HELD,       "HELD",             "it is held: its priority is 0 (scontrol release)")                \
	X(DEPENDENCY, "DEPENDENCY",       "it waits for other jobs")                                         \
	X(BEGIN,      "BEGIN_TIME",       "it is to begin later")                                            \
	X(PARTITION,  "PARTITION_DOWN",   "no partition of its list has GPUs and starts jobs")               \
	X(LIMIT,      "PARTITION_LIMIT",  "it asks for longer than its partition allows")                    \
	X(NODES,      "ASKS_NODES",       "it asks for nodes or features, which are not looked at here")

enum hd_slurm_bar {
#define X(id, code, words) HD_SLURM_BAR_##id,
	HD_SLURM_BARS(X)
#undef X
	HD_SLURM_NBARS
};

struct hd_slurm_node {
	const char *name, *gpu, *state;           /* gpu: "gpu" where it has no name */
	const char *type_name;
	uint32_t gpus, used, type;                /* type: of hd_slurm_now */
	uint64_t partitions;                      /* bits of hd_slurm_now.partitions */
	bool usable;
};

struct hd_slurm_job {
	const char *id, *user, *account, *partition, *name, *reason, *gpu;       /* gpu: asked for, or "" */
	const char *nodes;                        /* of one that runs: "v[1-2],k1" */
	uint32_t gpus, tier;                      /* tier: the highest of its partitions */
	uint32_t per_node;                        /* so many on each of its nodes; 0: not said */
	double submit_s, begin_s;                 /* begin_s: from when it may begin */
	double start_s, limit_s;                  /* start_s: of one that runs; limit_s: INFINITY, none */
	double priority;                          /* Slurm's */
	uint64_t partitions;                      /* where it may start */
	enum hd_slurm_bar bar;
	bool runs;
};

struct hd_slurm_now {
	struct hd_slurm_node *node;                /* with GPUs */
	struct hd_slurm_job *job;                  /* with GPUs, by submission */
	uint32_t nnodes, njobs, ntypes;
	uint64_t nwithout;                        /* jobs without GPUs */
	struct hd_slurm_partitions partitions;
	struct hd_sched_type type[HD_SCHED_TYPES];       /* n: all devices of it */
	double now_s;
};

/* sinfo first: which partitions there are. */
HD_MUST_USE enum hd_err hd_slurm_nodes(struct hd_slurm_now *live, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_slurm_jobs(struct hd_slurm_now *live, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena, struct hd_diag *diag);

struct hd_advice {
	const struct hd_slurm_job *job;
	bool starts, scattered;                   /* scattered: not so many on each node as it asks for */
	const char *where;                        /* "n1:2 n2:4"; "" */
	enum hd_why_code code;                    /* RUNS: it starts */
	struct hd_wait wait;                      /* of one that waits for devices */
};

/* One for each job that waits; those that start first. Ids in `wait` are places in live->job, from 1.
 * `policy` NULL: Slurm's own order, by tier and priority, with backfill by limits. */
HD_MUST_USE enum hd_err hd_slurm_advise(struct hd_advice **advice, uint32_t *n,
	const struct hd_slurm_now *live, const struct hd_policy_setting *policy,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
