#include <string.h>

#include "pipeline/generate.h"
#include "planner/search/job_plan_int.h"

/* Planners that ask the automatic one (planner.h): with what the job wishes, or one choice after the other
 * as PTD-P's rules. */

enum hd_auto_recompute hd_job_plan_recompute(const struct hd_job_plan_ask *ask)
{
	static const enum hd_auto_recompute of[] = { [HD_RECOMPUTES_IF_NEEDED] = HD_AUTO_IF_NEEDED,
		[HD_RECOMPUTES_NEVER] = HD_AUTO_NEVER,
		[HD_RECOMPUTES_ALWAYS] = HD_AUTO_ALWAYS };

	return of[ask->recompute];
}

/* What is drained has the order of 1f1b, whatever delayed one the job names. */
static const char *drained(const char *schedule)
{
	const struct hd_schedule_kind *kind = NULL;

	return schedule && !hd_schedule_kind_find(&kind, schedule, NULL) && kind->update != HD_UPDATE_FLUSH ?
		"1f1b" : schedule;
}

/* The stages of a model are p v: with the chunks open, one a rank. */
static enum hd_err question(struct hd_auto_ask *out, const struct hd_job_plan_ask *ask, struct hd_diag *diag)
{
	uint32_t v = ask->chunks ? ask->chunks : ask->stages ? 1 : 0;

	if (ask->stages && ask->stages % v)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.stages %u is no multiple of parallel.chunks %u: every device has as many "
			"chunks", ask->stages, v);
	*out = (struct hd_auto_ask){ .vns = ask->vns, .tensor_shards = ask->tensor_shards,
		.sequence = ask->sequence, .t = ask->tensor,
		.p = ask->stages ? ask->stages / v : 0, .d = ask->replicas, .v = v,
		.schedule = drained(ask->schedule), .recompute = hd_job_plan_recompute(ask),
		.clips = ask->clips };
	return HD_OK;
}

static enum hd_err take(struct hd_job_plan *plan, const struct hd_auto_plan *found, struct hd_arena *arena,
	struct hd_diag *diag)
{
	plan->skeleton = found->schedule;
	plan->costs = found->costs;
	plan->tensor = found->shape.t;
	plan->nstages = found->nstages;
	plan->first = found->first;
	plan->whole = found->nstages == 1 && found->shape.t == 1;
	plan->counts = found->share;
	plan->device = hd_arena_take(arena, (size_t)found->nranks + 1, sizeof *plan->device);
	for (uint32_t r = 0; plan->device && r < found->nranks; r++)
		plan->device[r] = found->rank[r].device;
	return plan->device ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
}

/* Of mode pipeline: every depth from 2, the fastest; ties: the shallower. */
static enum hd_err deep(struct hd_auto *best, const struct hd_job_plan_ask *ask, struct hd_auto_ask *how,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t most = ask->cluster->ndevices < ask->sums->cuts->n ? ask->cluster->ndevices :
		ask->sums->cuts->n, chosen = 0;
	struct hd_diag first = { "" };

	if (most < 2)
		return hd_fail(diag, HD_E_INVAL,
			"a pipeline needs two devices and two stages: there are %u devices and %u cuts",
			ask->cluster->ndevices,
			ask->sums->cuts->n);
	for (how->p = 2; how->p <= most && how->p <= HD_JOB_PLAN_DEEPEST; how->p++) {
		struct hd_auto made;
		struct hd_diag why = { "" };
		enum hd_err err = hd_plan_auto(&made, ask->sums, ask->cluster, how, arena, &why);
		if (err && err != HD_E_INVAL)
			return hd_fail(diag, err, "%s", why.text);
		if (err && !*first.text)
			first = why;
		if (!err && (!chosen || made.plan[0].makespan_ps < best->plan[0].makespan_ps)) {
			*best = made;
			chosen = how->p;
		}
	}
	how->p = chosen;
	return chosen ? HD_OK : hd_fail(diag, HD_E_INVAL, "%s", first.text);
}

/* Rule 5 of job_plan.h: where steps overlap that takes the place of what was found, if it is faster or the
 * order was asked for. `drained_ps` 0: nothing was found. */
static enum hd_err prefer_overlap(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	int64_t drained_ps, struct hd_arena *arena, struct hd_diag *diag)
{
	const bool named = ask->schedule && drained(ask->schedule) != ask->schedule;
	struct hd_job_plan other = { .planner = plan->planner };
	struct hd_diag why = { "" };

	hd_text_init(&other.why, arena);
	enum hd_err err = hd_job_plan_overlap(&other, ask, arena, &why);
	if (err == HD_E_INVAL) {
		struct hd_text said;
		hd_text_init(&said, arena);
		hd_text_addf(&said,
			"each step is drained, though optim.update: %s lets steps overlap: %s\n%s",
			hd_update_names[ask->update], why.text, plan->why.at ? plan->why.at : "");
		plan->why = said;
	}
	if (err && err != HD_E_INVAL)
		return hd_fail(diag, err, "%s", why.text);
	if (err || (drained_ps && !named && other.sim.makespan >= drained_ps))
		return HD_OK;
	if (drained_ps)
		hd_text_addf(&other.why, "drained each step the best takes %.4f ms: %s",
			(double)drained_ps * 1e-9, plan->why.at);
	*plan = other;
	return HD_OK;
}

enum hd_err hd_job_plan_auto(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_auto_ask how = { 0 };
	struct hd_auto found;
	struct hd_diag why = { "" };
	enum hd_err err = question(&how, ask, &why);

	if (!err && ask->deep && !how.p)
		err = deep(&found, ask, &how, arena, &why);
	else if (!err)
		err = hd_plan_auto(&found, ask->sums, ask->cluster, &how, arena, &why);
	if (err && (err != HD_E_INVAL || ask->update == HD_UPDATE_FLUSH))
		return hd_fail(diag, err, "%s", why.text);
	const int64_t took_ps = err ? 0 : found.plan[0].makespan_ps;
	if (!err) {
		hd_auto_explain_short(&found, ask->sums, ask->cluster, &how, &plan->why);
		err = take(plan, &found.plan[0], arena, &why);
	}
	if (!err || err == HD_E_INVAL) {
		enum hd_err of = ask->update == HD_UPDATE_FLUSH ? HD_OK : prefer_overlap(plan, ask, took_ps,
			arena, diag);
		if (of)
			return of;
	}
	return err && !plan->overlap ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

enum hd_err hd_job_plan_may(bool *may, const struct hd_job_plan_ask *ask, double step_s, struct hd_diag *diag)
{
	const double ps = step_s * 1e12 * (1 + 1e-9) + 1;
	struct hd_auto_ask how = { 0 };
	enum hd_err err = question(&how, ask, diag);

	*may = true;
	return err || ask->update != HD_UPDATE_FLUSH || !(ps < 9e18) ? err :
		hd_auto_may(may, ask->sums, ask->cluster, &how, (int64_t)ps, diag);
}

static uint32_t next_width(const struct hd_job_plan_ask *ask, uint32_t t)
{
	do
		t++;
	while (t <= ask->tensor_shards && ask->tensor_shards % t);
	return t <= ask->tensor_shards && t <= ask->cluster->level[0].components ? t : 0;
}

/* PTD-P's rules on a profile: while it does not fit, the next larger t that a server holds, then p by one;
 * what devices remain are copies. Chunks, schedule and recomputation are what the automatic planner finds
 * best for this t, p, d. */
enum hd_err hd_job_plan_ptdp(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_job_wish wishes[] = { { ask->stages > 0, "number of stages" },
		{ ask->tensor > 0, "tensor width" }, { ask->replicas > 0, "replicas" } };
	uint32_t n = ask->cluster->ndevices, cuts = ask->sums->cuts->n, t = 1, p = ask->deep ? 2 : 1;
	struct hd_diag last = { "there are too few devices or cuts for two stages" };
	enum hd_err err = hd_job_plan_refuse(plan, wishes, sizeof wishes / sizeof *wishes, diag);

	while (!err && p <= cuts && (uint64_t)p * t <= n) {
		uint32_t d = n / (t * p) < ask->vns ? n / (t * p) : ask->vns,
			wider = p == 1 ? next_width(ask, t) : 0;
		struct hd_auto_ask how = { .vns = ask->vns, .tensor_shards = ask->tensor_shards,
			.sequence = ask->sequence, .t = t,
			.p = p, .d = d, .v = ask->chunks,
			.schedule = drained(ask->schedule), .recompute = hd_job_plan_recompute(ask),
			.clips = ask->clips };
		struct hd_auto found;
		struct hd_diag why = { "" };
		err = hd_plan_auto(&found, ask->sums, ask->cluster, &how, arena, &why);
		if (!err) {
			hd_text_addf(&plan->why, "t = %u, p = %u: %s\n", t, p,
				t * p == 1 ? "the whole model fits a device" : ask->deep && p == 2 && t == 1 ?
				"a pipeline was asked for, and two stages fit" : "less does not fit");
			hd_text_addf(&plan->why, "d = %u: %u devices by t p; %u stay idle\n", d, n,
				n - d * t * p);
			hd_auto_explain_short(&found, ask->sums, ask->cluster, &how, &plan->why);
			return take(plan, &found.plan[0], arena, diag);
		}
		if (err != HD_E_INVAL)
			return hd_fail(diag, err, "%s", why.text);
		err = HD_OK;
		last = why;
		t = wider ? wider : t;
		p += !wider;
	}
	return err ? err : hd_fail(diag, HD_E_INVAL, "PTD-P's rules end without a plan on %u devices: %s", n,
		last.text);
}

enum hd_err hd_job_plan_2bw(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	(void)plan;
	(void)ask;
	(void)arena;
	return hd_fail(diag, HD_E_INVAL,
		"the planner 2bw reads profiles: `heddle plan 2bw` shows the depth and width that it would "
		"choose; a job runs so by optim.update: 2bw, parallel.schedule: 2bw and parallel.stages; "
		"--planner auto plans a job");
}
