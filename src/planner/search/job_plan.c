#include "planner/search/job_plan_int.h"

#include <assert.h>
#include <string.h>

#include "base/near.h"
#include "pipeline/passes.h"

#define MIB 0x1p-20

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	}

/* ---- refusals */

enum hd_err hd_job_plan_refuse(const struct hd_job_plan *plan, const struct hd_job_wish *wish, size_t n,
	struct hd_diag *diag)
{
	for (size_t i = 0; i < n; i++)
		if (wish[i].given)
			return hd_fail(diag, HD_E_INVAL,
				"the planner %s decides the %s itself; leave it out, or take --planner auto",
				plan->planner,
				wish[i].key);
	return HD_OK;
}

enum hd_err hd_job_plan_in_order(struct hd_job_plan *plan, uint32_t nranks, struct hd_arena *arena,
	struct hd_diag *diag)
{
	plan->device = hd_arena_take(arena, nranks, sizeof *plan->device);
	for (uint32_t r = 0; plan->device && r < nranks; r++)
		plan->device[r] = r;
	return plan->device ? HD_OK : no_memory(diag);
}

/* ---- all planners */

const struct hd_job_planner hd_job_planners[] = {
	{ "auto", "the fastest that fits, of all depths, widths and schedules, by simulation", hd_job_plan_auto, hd_job_plan_data },
	{ "data", "every device used has the whole model, and virtual nodes by its speed", hd_job_plan_data, NULL },
	{ "pipedream", "stages and copies by PipeDream's recurrence (--partitioner), run by 1f1b-rr", hd_job_plan_pipedream, NULL },
	{ "2bw", "depth and width of delayed updates", hd_job_plan_2bw, NULL },
	{ "ptdp", "the rules of PTD-P: as wide and as deep as memory needs, then as many copies as there are devices", hd_job_plan_ptdp, NULL },
	{ 0 },
};
static_assert(sizeof hd_job_planners / sizeof *hd_job_planners <= HD_JOB_PLANNERS + 1,
	"a caller that prints all planners has room for HD_JOB_PLANNERS");

enum hd_err hd_job_planner_find(const struct hd_job_planner **planner, const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);
	char all[160] = "";

	for (const struct hd_job_planner *p = hd_job_planners; p->name; p++) {
		if (!strcmp(p->name, name)) {
			*planner = p;
			return HD_OK;
		}
		hd_near_offer(&near, p->name);
		strncat(all, *all ? ", " : "", sizeof all - strlen(all) - 1);
		strncat(all, p->name, sizeof all - strlen(all) - 1);
	}
	return hd_fail(diag, HD_E_INVAL, "there is no planner \"%.40s\"%s%s%s there are %s", name,
		near.best ? "; did you mean " : ";",
		near.best ? near.best : "", near.best ? "?" : "", all);
}

static enum hd_err fits(const struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_diag *diag)
{
	for (uint32_t r = 0; r < plan->schedule.nranks; r++) {
		int64_t has = hd_cluster_kind_of(ask->cluster, plan->device[r])->memory,
			needs = plan->sim.rank[r].peak;
		if (has && needs > has)
			return hd_fail(diag, HD_E_INVAL,
				"the plan of %s does not fit: rank %u needs %.1f MiB at its worst, device "
				"%u has %.1f MiB; more "
				"stages, recomputation or smaller virtual nodes need less", plan->planner, r,
				(double)needs * MIB, plan->device[r],
				(double)has * MIB);
	}
	return HD_OK;
}

static enum hd_err make_and_simulate(struct hd_job_plan *out, const struct hd_job_planner *planner,
	const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_plan plan = { .planner = planner->name };
	struct hd_schedule_job job = { .clips = ask->clips };

	hd_text_init(&plan.why, arena);
	enum hd_err err = planner->make(&plan, ask, arena, diag);
	if (!err && !plan.costs.stage)
		err = hd_stage_costs_make(&plan.costs, ask->sums, plan.first, plan.nstages, arena, diag);
	if (err)
		return err;
	job.tied = plan.costs.tied;
	job.ntied = plan.costs.ntied;
	job.costs = &plan.costs;
	err = hd_schedule_complete(&plan.schedule, &plan.skeleton,
		&(struct hd_pass_options){ .job = &job, .recompute = plan.recompute }, arena, diag);
	struct hd_sim_setting setting = { .costs = &plan.costs, .cluster = ask->cluster,
		.device = plan.device, .transport = HD_TRANSPORT_BUFFERED,
		.spans = ask->spans };
	if (!err)
		err = plan.overlap ? hd_job_plan_steady(&plan.sim, &plan, ask, arena, diag) :
			hd_sim_plan(&plan.sim, &plan.schedule, &setting, arena, diag);
	if (!err)
		err = fits(&plan, ask, diag);
	if (!err && plan.why.full)
		err = no_memory(diag);
	if (!err)
		*out = plan;
	return err;
}

static bool same_lists(const struct hd_ilist *a, const struct hd_ilist *b, uint32_t n)
{
	if (!a || !b)
		return a == b;
	for (uint32_t r = 0; r < n; r++)
		if (a[r].len != b[r].len || memcmp(a[r].at, b[r].at, a[r].len * sizeof *a[r].at) != 0)
			return false;
	return true;
}

bool hd_job_plan_same(const struct hd_job_plan *a, const struct hd_job_plan *b)
{
	const struct hd_schedule *x = &a->schedule, *y = &b->schedule;

	if (a->nstages != b->nstages || a->overlap != b->overlap ||
		(a->tensor ? a->tensor : 1) != (b->tensor ? b->tensor : 1) ||
		x->nranks != y->nranks || x->nvns != y->nvns)
		return false;
	return !memcmp(a->first, b->first, a->nstages * sizeof *a->first) &&
		!memcmp(a->device, b->device, x->nranks * sizeof *a->device) &&
		same_lists(x->prologue, y->prologue, x->nranks) && same_lists(x->list, y->list, x->nranks) &&
		same_lists(x->epilogue, y->epilogue, x->nranks);
}

static bool devices_differ(const struct hd_cluster *cluster)
{
	for (uint32_t d = 1; d < cluster->ndevices; d++)
		if (cluster->device_kind[d] != cluster->device_kind[0])
			return true;
	return false;
}

/* What the planner's shapes do not have: copies with uneven counts. A refusal of it refuses nothing. */
static enum hd_err also_uneven(struct hd_job_plan *plan, enum hd_err made,
	const struct hd_job_planner *planner, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag, const struct hd_diag *why)
{
	const struct hd_job_planner uneven = { planner->name, planner->about, planner->also, NULL };
	struct hd_job_plan other;
	struct hd_diag quiet = { "" };
	enum hd_err err = make_and_simulate(&other, &uneven, ask, arena, &quiet);

	if (!err && (made || hd_job_plan_step_s(&other) < hd_job_plan_step_s(plan))) {
		if (!made)
			hd_text_addf(&other.why, "the best with equal counts or stages takes %.3f ms\n",
				hd_job_plan_step_s(plan) * 1e3);
		*plan = other;
		return HD_OK;
	}
	return made ? hd_fail(diag, made, "%s", why->text) : HD_OK;
}

enum hd_err hd_job_plan_make(struct hd_job_plan *out, const struct hd_job_planner *planner,
	const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_plan plan;
	struct hd_diag why = { "" };
	enum hd_err err = make_and_simulate(&plan, planner, ask, arena, &why);

	if (planner->also && devices_differ(ask->cluster) && (!err || err == HD_E_INVAL))
		err = also_uneven(&plan, err, planner, ask, arena, diag, &why);
	else if (err)
		return hd_fail(diag, err, "%s", why.text);
	if (!err)
		*out = plan;
	return err;
}

void hd_job_plan_print(const struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_text *text)
{
	const struct hd_cuts *cuts = ask->sums->cuts;

	hd_text_addf(text, "# made by the planner %s for %u devices: %.6g s a step\n", plan->planner,
		ask->cluster->ndevices, hd_job_plan_step_s(plan));
	if (plan->overlap)
		hd_text_add(text, "# steps overlap; the lists are those of one that is drained\n");
	for (uint32_t s = 0; s < plan->nstages; s++) {
		uint32_t last = (s + 1 < plan->nstages ? plan->first[s + 1] : cuts->n) - 1;
		hd_text_addf(text, "# stage %u: cuts %u-%u, up to %s\n", s, plan->first[s], last,
			cuts->name[last]);
	}
	for (uint32_t r = 0; r < plan->schedule.nranks; r++)
		hd_text_addf(text, "# rank %u: device %u\n", r, plan->device[r]);
	hd_schedule_print(&plan->schedule, text);
}
