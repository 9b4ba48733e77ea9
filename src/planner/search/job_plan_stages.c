#include <string.h>

#include "planner/search/job_plan_int.h"
#include "planner/steady.h"

/* Stages with copies, found by a recurrence over cuts and run by 1f1b-rr: PipeDream's, for equal devices and
 * links and the steady state alone; or steady.h, which knows the devices, their memory and the fill of a
 * step. */

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	}

static enum hd_err take(struct hd_job_plan *plan, uint32_t nstages, uint32_t **replicas,
	struct hd_arena *arena, struct hd_diag *diag)
{
	plan->nstages = nstages;
	plan->first = hd_arena_take(arena, nstages, sizeof *plan->first);
	*replicas = hd_arena_take(arena, nstages, sizeof **replicas);
	return plan->first && *replicas ? HD_OK : no_memory(diag);
}

/* One level of equal links, as the paper has it: the slowest of the cluster. */
static double slowest_link(const struct hd_cluster *cluster)
{
	double slowest = cluster->level[0].bytes_per_s;

	for (uint32_t l = 1; l < cluster->nlevels; l++)
		slowest = cluster->level[l].bytes_per_s < slowest ? cluster->level[l].bytes_per_s : slowest;
	return slowest;
}

static enum hd_err by_pipedream(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	uint32_t **replicas, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t n = ask->cluster->ndevices < ask->vns ? ask->cluster->ndevices : ask->vns;
	struct hd_part_how how = { .variant = ask->variant, .nlevels = 1,
		.level = { { n, slowest_link(ask->cluster) } } };
	struct hd_partition part;
	struct hd_text split;

	if (n > HD_PART_MACHINES)
		return hd_fail(diag, HD_E_INVAL, "the planner pipedream takes at most %d devices, not %u",
			HD_PART_MACHINES, n);
	enum hd_err err = hd_part_solve(&part, ask->sums->cuts, &how, arena, diag);
	err = err ? err : take(plan, part.top.nstages, replicas, arena, diag);
	if (err)
		return err;
	for (uint32_t s = 0; s < plan->nstages; s++) {
		(*replicas)[s] = part.top.stage[s].replicas;
		plan->first[s] = part.top.stage[s].first;
	}
	hd_text_init(&split, arena);
	hd_part_print(&part, 1, &split);
	hd_text_addf(&plan->why,
		"the recurrence of PipeDream (%s) over %u equal devices at %.4g bytes/s: cuts %s; its "
		"slowest stage takes %.6g s a virtual "
		"node, all on one device %.6g s\n", hd_part_variant_name(ask->variant), n,
		how.level[0].bytes_per_s, split.full ? "" : split.at, part.time_s,
		part.one_s);
	return HD_OK;
}

static enum hd_err by_steady(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask, uint32_t **replicas,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const enum hd_steady_recompute recompute[] = { [HD_RECOMPUTES_IF_NEEDED] = HD_STEADY_IF_NEEDED,
		[HD_RECOMPUTES_NEVER] = HD_STEADY_NEVER, [HD_RECOMPUTES_ALWAYS] = HD_STEADY_ALWAYS };
	struct hd_steady_how how = { .m = ask->vns, .cluster = ask->cluster,
		.recompute = recompute[ask->recompute] };
	struct hd_steady_table table;
	struct hd_steady found;
	struct hd_arena scratch;
	int64_t least = 0;
	enum hd_err err = hd_steady_table_make(&table, ask->sums, hd_steady_cuts(ask->cluster->ndevices),
		arena, diag);

	if (err)
		return err;
	hd_arena_init(&scratch, 0);
	err = hd_steady_solve(&found, &table, &how, arena, &scratch, diag);
	hd_arena_reset(&scratch);
	if (err == HD_E_NOTFOUND) {
		err = hd_steady_least_bytes(&least, &table, &how, &scratch, diag);
		err = err ? err : hd_fail(diag, HD_E_INVAL,
			"no stages fit the devices: the least that the fullest would need is %lld bytes",
			(long long)least);
	}
	hd_arena_finish(&scratch);
	err = err ? err : take(plan, found.nstages, replicas, arena, diag);
	plan->recompute = err ? NULL : hd_arena_take(arena, found.nstages, sizeof *plan->recompute);
	if (!err && !plan->recompute)
		err = no_memory(diag);
	for (uint32_t s = 0; !err && s < plan->nstages; s++) {
		(*replicas)[s] = found.stage[s].replicas;
		plan->first[s] = found.stage[s].first;
		plan->recompute[s] = found.stage[s].recompute;
	}
	if (!err)
		hd_steady_explain(&found, &table, &how, &plan->why);
	return err;
}

enum hd_err hd_job_plan_pipedream(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	bool ours = ask->variant == HD_NPART_VARIANTS;
	const struct hd_job_wish wishes[] = { { ask->stages > 0, "number of stages" },
		{ ask->chunks > 1, "chunks" }, { ask->tensor > 1, "tensor width" },
		{ ask->schedule && strcmp(ask->schedule, "1f1b-rr") != 0, "schedule (1f1b-rr)" },
		{ ask->recompute == HD_RECOMPUTES_ALWAYS && !ours, "recomputation" },
		{ ask->replicas > 0, "replicas of whole pipelines" } };
	uint32_t *replicas = NULL, n = 0;
	enum hd_err err = hd_job_plan_refuse(plan, wishes, sizeof wishes / sizeof *wishes, diag);

	err = err ? err : (ours ? by_steady : by_pipedream)(plan, ask, &replicas, arena, diag);
	if (err)
		return err;
	for (uint32_t s = 0; s < plan->nstages; s++)
		n += replicas[s];
	struct hd_schedule_ask rr = { .name = "1f1b-rr", .p = n, .m = ask->vns, .replicas = replicas,
		.nreplicas = plan->nstages };
	err = hd_schedule_make(&plan->skeleton, &rr, arena, diag);
	return err ? err : hd_job_plan_in_order(plan, n, arena, diag);
}
