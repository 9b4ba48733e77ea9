#include "launch/task_env.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

enum { RANKS = 1 << 20, CPUS = 1 << 16 };

struct starter { const char *name, *words, *rank, *size, *local_rank, *local_size, *job; };

static const struct starter starters[] = {
	{ "open mpi", "Open MPI job", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE" },
	{ "pmix", "PMIx job", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE", "PMIX_NAMESPACE" },
	{ "pmi", "MPI job", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID" },
	{ "slurm", "Slurm job", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_JOB_ID" },
};

static const char *value_of(char *const *environment, const char *name)
{
	const size_t n = name ? strlen(name) : 0;

	for (size_t i = 0; name && environment[i]; i++)
		if (!strncmp(environment[i], name, n) && environment[i][n] == '=')
			return environment[i] + n + 1;
	return NULL;
}

/* One that is not there leaves *to as it is. */
static enum hd_err number(char *const *environment, const char *name, uint64_t most, uint32_t *to,
	struct hd_diag *diag)
{
	const char *text = value_of(environment, name);
	uint64_t n = 0;

	if (!text)
		return HD_OK;
	if (hd_num_u64(text, most, &n, NULL))
		return hd_fail(diag, HD_E_INVAL, "%s is \"%.40s\", no number from 0 to %llu: this process "
			"was started "
			"by something that does not speak like srun or mpirun; unset it", name, text,
			(unsigned long long)most);
	*to = (uint32_t)n;
	return HD_OK;
}

static void take_text(char *const *environment, const char *name, char *to, size_t cap)
{
	const char *text = value_of(environment, name);
	size_t n = 0;

	for (; text && text[n] && n + 1 < cap && text[n] > ' ' && text[n] <= '~'; n++)
		to[n] = text[n];
	to[n] = '\0';
}

static enum hd_err below(uint32_t n, const char *name, uint32_t size, const char *of, struct hd_diag *diag)
{
	return !size || n < size ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%s is %u and %s is %u: there is no such task; unset them, or start all tasks by one srun "
		"or mpirun",
		name, n, of, size);
}

/* "4", or of several nodes alike "4(x2)": of this one, where all are alike. */
static uint32_t first_number(const char *text)
{
	uint32_t n = 0;

	for (; text && *text >= '0' && *text <= '9' && n < CPUS; text++)
		n = 10 * n + (uint32_t)(*text - '0');
	return text && (!*text || *text == '(') ? n : 0;
}

/* Of a step of one task on this node all of its processors are that task's. */
static enum hd_err take_slurm(struct hd_task_env *t, char *const *environment, struct hd_diag *diag)
{
	uint32_t per_task = 0, node = 0;
	enum hd_err err = number(environment, "SLURM_CPUS_PER_TASK", CPUS, &per_task, diag);

	err = err ? err : number(environment, "SLURM_CPUS_ON_NODE", CPUS, &node, diag);
	const uint32_t step = first_number(value_of(environment, "SLURM_STEP_TASKS_PER_NODE")),
		job = first_number(value_of(environment, "SLURM_TASKS_PER_NODE"));
	t->local_size = step ? step : job;
	t->cpus = per_task ? per_task : t->local_size ? node / t->local_size : node;
	/* the batch step itself has no number in its environment */
	t->twice = value_of(environment, "SLURM_STEP_ID");
	take_text(environment, "SLURMD_NODENAME", t->node, sizeof t->node);
	take_text(environment, "SLURM_STEP_GPUS", t->gpus, sizeof t->gpus);
	if (!t->gpus[0])
		take_text(environment, "SLURM_JOB_GPUS", t->gpus, sizeof t->gpus);
	return err;
}

static enum hd_err take(struct hd_task_env *t, const struct starter *s, char *const *environment,
	struct hd_diag *diag)
{
	t->starter = s->name;
	enum hd_err err = number(environment, s->rank, RANKS, &t->rank, diag);
	err = err ? err : number(environment, s->size, RANKS, &t->size, diag);
	err = err ? err : number(environment, s->local_rank, RANKS, &t->local_rank, diag);
	err = err ? err : number(environment, s->local_size, RANKS, &t->local_size, diag);
	if (!err && !s->local_size)
		err = take_slurm(t, environment, diag);
	take_text(environment, s->job, t->job, sizeof t->job);
	err = err ? err : below(t->rank, s->rank, t->size, s->size, diag);
	/* tasks of a node are not said by all of Slurm's: 4,2 */
	return err || !s->local_size ? err : below(t->local_rank, s->local_rank, t->local_size,
		s->local_size, diag);
}

enum hd_err hd_task_env_read(struct hd_task_env *task, char *const *environment, struct hd_diag *diag)
{
	struct hd_task_env t = { .starter = NULL };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof starters / sizeof *starters; i++)
		if (value_of(environment, starters[i].rank)) {
			err = take(&t, &starters[i], environment, diag);
			break;
		}
	if (!err)
		*task = t;
	return err;
}

const char *hd_task_env_say(const struct hd_task_env *task, char out[200])
{
	size_t i = 0;

	out[0] = '\0';
	if (!task->starter)
		return out;
	while (strcmp(starters[i].name, task->starter) != 0)
		i++;
	int n = snprintf(out, 200, "task %u", task->rank);
	if (task->size)
		n += snprintf(out + n, 200 - (size_t)n, " of %u", task->size);
	n += snprintf(out + n, 200 - (size_t)n, " of %s %s", starters[i].words, *task->job ? task->job :
		"without a name");
	if (*task->node)
		n += snprintf(out + n, 200 - (size_t)n, " on %s", task->node);
	return out;
}
