#include "pipeline/generate.h"
#include "pipeline/sim_window.h"
#include "pipeline/window.h"
#include "planner/search/job_plan_int.h"

/* Plans whose steps overlap (rule 5 of job_plan.h): of every depth that the keys leave open, cut for the
 * steady state by the automatic planner, one step of many simulated. Ties: the shallower. */

enum hd_err hd_job_plan_steady(struct hd_sim_plan *sim, const struct hd_job_plan *plan,
	const struct hd_job_plan_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_sim_setting setting = { .costs = &plan->costs, .cluster = ask->cluster,
		.device = plan->device, .transport = HD_TRANSPORT_BUFFERED };
	const struct hd_sim_windowed window = { plan->nstages, ask->vns, plan->recompute,
		ask->update == HD_UPDATE_STASH };

	return hd_sim_window(sim, &window, &setting, arena, diag);
}

/* The found stages as a plan of one pipeline. */
static enum hd_err take(struct hd_job_plan *plan, const struct hd_auto_plan *found,
	const struct hd_job_plan_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_text heading;

	plan->overlap = true;
	plan->costs = found->costs;
	plan->tensor = found->shape.t;
	plan->nstages = found->nstages;
	plan->first = found->first;
	plan->recompute = found->recompute;
	plan->device = hd_arena_take(arena, (size_t)found->nranks + 1, sizeof *plan->device);
	for (uint32_t r = 0; plan->device && r < found->nranks; r++)
		plan->device[r] = found->rank[r].device;
	hd_text_init(&heading, arena);
	hd_text_addf(&heading, "auto %s t=%u p=%u m=%u, steps overlap", hd_update_names[ask->update],
		found->shape.t, found->nranks, ask->vns);
	if (!plan->device || heading.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	enum hd_err err = hd_schedule_make(&plan->skeleton, &(struct hd_schedule_ask){ .name = "1f1b",
		.p = found->nranks, .m = ask->vns, .v = 1 }, arena, diag);
	plan->skeleton.heading = heading.at;
	return err ? err : hd_job_plan_steady(&plan->sim, plan, ask, arena, diag);
}

static bool fits(const struct hd_job_plan *plan, const struct hd_cluster *cluster)
{
	for (uint32_t r = 0; r < plan->nstages; r++) {
		const int64_t has = hd_cluster_kind_of(cluster, plan->device[r])->memory;
		if (has && plan->sim.rank[r].peak > has)
			return false;
	}
	return true;
}

static const char *refuses(const struct hd_job_plan_ask *ask)
{
	const struct hd_schedule_kind *kind = NULL;
	const struct { bool drains; const char *why; } rows[] = {
		{ ask->drains, ask->drains },
		{ ask->schedule && !hd_schedule_kind_find(&kind, ask->schedule, NULL) &&
			kind->update == HD_UPDATE_FLUSH, "parallel.schedule names another order" },
		{ ask->replicas > 1 || ask->chunks > 1, "the keys ask for several pipelines, or chunks" },
		{ ask->vns < 2, "there are fewer than 2 (p - 1) virtual nodes" },
		{ ask->cluster->ndevices < 2 || ask->sums->cuts->n < 2, "a pipeline needs two devices and two "
			"cuts" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].drains)
			return rows[i].why;
	return NULL;
}

/* Of one depth; *better: it is in `plan`. */
static enum hd_err of_depth(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask, uint32_t p,
	bool *better, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_auto_ask how = { .vns = ask->vns, .tensor_shards = ask->tensor_shards,
		.sequence = ask->sequence, .t = ask->tensor, .p = p, .d = 1, .v = 1,
		.update = HD_UPDATE_2BW, .recompute = hd_job_plan_recompute(ask), .clips = ask->clips };
	struct hd_job_plan made = { .planner = plan->planner, .why = plan->why };
	struct hd_auto found;
	enum hd_err err = hd_plan_auto(&found, ask->sums, ask->cluster, &how, arena, diag);

	err = err ? err : take(&made, &found.plan[0], ask, arena, diag);
	if (err)
		return err;
	if (!fits(&made, ask->cluster))
		return hd_fail(diag, HD_E_INVAL, "activations of two steps do not fit the memory");
	*better = !plan->overlap || made.sim.makespan < plan->sim.makespan;
	if (*better)
		*plan = made;
	return HD_OK;
}

enum hd_err hd_job_plan_overlap(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const char *why = refuses(ask);
	const uint32_t cuts = ask->sums->cuts->n, n = ask->cluster->ndevices;
	struct hd_diag first = { "" };

	if (why)
		return hd_fail(diag, HD_E_INVAL, "%s", why);
	for (uint32_t p = 2; p <= n && p <= cuts && p <= HD_JOB_PLAN_DEEPEST; p++) {
		struct hd_diag of = { "" };
		bool better;
		if ((ask->stages && ask->stages != p) || (uint64_t)p * (ask->tensor ? ask->tensor : 1) > n)
			continue;
		enum hd_err err = hd_window_fits(p, ask->vns) ? of_depth(plan, ask, p, &better, arena, &of) :
			hd_fail(&of, HD_E_INVAL, "there are fewer than 2 (p - 1) virtual nodes");
		if (err && err != HD_E_INVAL)
			return hd_fail(diag, err, "%s", of.text);
		if (err && !*first.text)
			first = of;
	}
	if (!plan->overlap)
		return hd_fail(diag, HD_E_INVAL, "%s", *first.text ? first.text :
			"no depth that was asked for is tried");
	hd_text_addf(&plan->why,
		"%s: %u stages of one pipeline whose steps overlap: %.4f ms a step of many\n",
		hd_update_names[ask->update], plan->nstages, (double)plan->sim.makespan * 1e-9);
	return HD_OK;
}
