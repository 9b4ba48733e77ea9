/* task_env.h -- which of several like processes this one is, as its starter says: srun, a batch job of Slurm,
 * mpirun (Open MPI, PMIx, MPICH and Intel's) (pure).
 *
 * 1. A row per starter, in this order: those of MPI before Slurm's, as mpirun starts its own daemons by
 *    srun, and
 *    what they start inherits what srun said to them.
 * 2. A row is there if its rank is. What it says then has to make sense as a whole: a rank below the size, a
 *    local rank below the local size; else it is refused and named.
 * 3. Processors are those of the task: Slurm's per task, else this node's among its tasks.
 *
 * Plain values; threads: any. */
#ifndef HD_LAUNCH_TASK_ENV_H
#define HD_LAUNCH_TASK_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_TASK_NODE = 64, HD_TASK_JOB = 32, HD_TASK_GPUS = 64 };

struct hd_task_env {
	const char *starter;              /* "slurm", "open mpi", "pmix", "pmi"; NULL: none, all else is 0 */
	uint32_t rank, size;              /* size 0: not said */
	uint32_t local_rank, local_size;  /* likewise */
	uint32_t cpus;                    /* for this task; 0: not said */
	bool twice;                       /* each signal comes twice: a task of srun (sys/signal.h, rule 5) */
	char node[HD_TASK_NODE], job[HD_TASK_JOB], gpus[HD_TASK_GPUS];     /* "": not said */
};

/* "NAME=value" each, NULL at the end. HD_E_INVAL: which variable makes no sense. */
HD_MUST_USE enum hd_err hd_task_env_read(struct hd_task_env *task, char *const *environment,
	struct hd_diag *diag);
/* "task 3 of 8 of Slurm job 77 on k1"; "" without a starter */
const char *hd_task_env_say(const struct hd_task_env *task, char out[200]);

#endif
