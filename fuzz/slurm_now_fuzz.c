/* What squeue and sinfo print, cut by a line "----": whatever is read keeps the promises of slurm_now.h, and
 * the advice has each job that waits once. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clustersim/slurm_now.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_nodes(const struct hd_slurm_now *live)
{
	uint64_t n = 0, all = 0;

	for (uint32_t k = 0; k < live->nnodes; k++) {
		const struct hd_slurm_node *node = &live->node[k];
		must(*node->name && *node->gpu && node->used <= node->gpus && node->gpus && node->partitions);
		must(node->type < live->ntypes && (!k || node->type >= live->node[k - 1].type));
		n += node->gpus;
	}
	for (uint32_t t = 0; t < live->ntypes; t++) {
		must(!t || strcmp(live->type[t].name, live->type[t - 1].name) > 0);
		all += live->type[t].n;
	}
	must(n == all);
}

static void check_jobs(const struct hd_slurm_now *live)
{
	for (uint32_t i = 0; i < live->njobs; i++) {
		const struct hd_slurm_job *job = &live->job[i];
		must(!i || job->submit_s >= live->job[i - 1].submit_s);
		must(*job->id && job->gpus && job->submit_s <= live->now_s && job->bar < HD_SLURM_NBARS);
		must(job->bar || (job->partitions && job->priority > 0));
	}
}

/* policy NULL: Slurm's own rules, which never give a node more than it has free. */
static void check_advice(const struct hd_slurm_now *live, const char *name, struct hd_arena *arena)
{
	struct hd_policy_setting policy = { 0 };
	struct hd_advice *advice;
	uint32_t n, waiting = 0;
	uint64_t given = 0, nfree = 0;

	if (live->njobs > 40 || live->nnodes > 40 || (name && hd_policy_parse(&policy, name, NULL)))
		return;
	policy.fidelity = HD_FIDELITY_EXACT;
	if (hd_slurm_advise(&advice, &n, live, name ? &policy : NULL, arena, NULL))
		return;
	for (uint32_t i = 0; i < live->njobs; i++)
		waiting += !live->job[i].runs;
	must(n == waiting);
	for (uint32_t i = 0; i < n; i++) {
		must(advice[i].starts == (advice[i].code == HD_WHY_RUNS));
		must(advice[i].starts == !!*advice[i].where && !(advice[i].starts && advice[i].job->bar));
		given += advice[i].starts ? advice[i].job->gpus : 0;
	}
	for (uint32_t k = 0; k < live->nnodes; k++)
		nfree += live->node[k].usable ? live->node[k].gpus - live->node[k].used : 0;
	must(given <= nfree);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char cut[] = "----\n";
	const uint8_t *at = len ? memmem(bytes, len, cut, sizeof cut - 1) : NULL;
	struct hd_arena arena;
	struct hd_slurm_now live;

	hd_arena_init(&arena, 64u << 20);
	if (at && !hd_slurm_nodes(&live, "sinfo", bytes, (size_t)(at - bytes), &arena, NULL)) {
		check_nodes(&live);
		at += sizeof cut - 1;
		if (!hd_slurm_jobs(&live, "squeue", at, len - (size_t)(at - bytes), &arena, NULL)) {
			check_jobs(&live);
			check_advice(&live, "fifo", &arena);
			check_advice(&live, NULL, &arena);
		}
	}
	hd_arena_finish(&arena);
	return 0;
}
