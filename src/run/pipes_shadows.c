#include "run/pipes_shadows.h"

#include <string.h>

#include "graph/op.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/redundancy.h"
#include "pipeline/staged.h"

static enum hd_redundancy mode_of(const struct hd_job *job)
{
	return (enum hd_redundancy)hd_job_int(job, HD_JOB_REDUNDANCY);
}

static bool computes(enum hd_redundancy mode)
{
	return mode == HD_REDUNDANCY_EAGER || mode == HD_REDUNDANCY_FULL;
}

enum hd_err hd_pipes_shadows_fit(const struct hd_pipes *pipes, const struct hd_job *job, struct hd_diag *diag)
{
	const char *mode = hd_job_text(job, HD_JOB_REDUNDANCY);

	if (pipes->stages.ncopies && mode_of(job) != HD_REDUNDANCY_NONE)
		return hd_fail(diag, HD_E_INVAL,
			"elastic.redundancy: %s does not go with stages that have copies (%s): "
			"elastic.redundancy: none, or %s", mode,
			pipes->stages.listed ? "parallel.plan" : "parallel.copies", pipes->stages.listed ?
			"a plan without copies" : "parallel.schedule: 1f1b without copies");
	if (!computes(mode_of(job)))
		return HD_OK;
	if (pipes->stages.v > 1)
		return hd_fail(diag, HD_E_INVAL,
			"elastic.redundancy: %s computes the stage after its own on each device, and %s puts "
			"%u stages on a device: parallel.schedule: 1f1b, or elastic.redundancy: lazy", mode,
			pipes->stages.schedule, pipes->stages.v);
	if (pipes->stages.t > 1)
		return hd_fail(diag, HD_E_INVAL,
			"elastic.redundancy: %s does not go with stages that %u devices share "
			"(parallel.tensor): parallel.tensor: 1, or elastic.redundancy: lazy", mode,
			pipes->stages.t);
	for (uint32_t s = 0; pipes->stages.listed && s < pipes->shape.nstages; s++)
		if (pipes->shape.place[s] != s)
			return hd_fail(diag, HD_E_INVAL,
				"elastic.redundancy: %s computes the stage after its own on each device, and "
				"the plan (parallel.plan) has stage %u on device %u of its pipeline: a plan "
				"with its stages in the order of the devices, or elastic.redundancy: lazy",
				mode, s, pipes->shape.place[s]);
	return HD_OK;
}

/* By the nodes of the graph, as many ticks as FLOPs, and one a stage at least. */
static enum hd_err costs_of(struct hd_stage_costs *costs, const struct hd_plan *plan,
	const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_graph *g = &task->train;
	enum hd_err err = hd_stage_costs_even(costs, &(struct hd_rank_costs){ .f = 1, .i = 1, .w = 1 },
		plan->nstages, arena, diag);

	for (uint32_t i = 0; i < g->nnodes && !err; i++) {
		const struct hd_node *node = &g->node[i];
		const uint32_t at = i < g->nforward ? i : node->of;
		uint32_t s = plan->nstages - 1;
		while (s && plan->first[s] > at)
			s--;
		struct hd_stage_cost *c = &costs->stage[s];
		const int64_t flops = (int64_t)hd_ops[node->op].cost(g, node, task->rows[0]).flops;
		*(node->phase == HD_PHASE_F ? &c->f : node->phase == HD_PHASE_I ? &c->i : &c->w) += flops;
	}
	for (uint32_t s = 0; s < plan->nstages && !err; s++)
		costs->stage[s].r = costs->stage[s].f;
	return err;
}

/* Rule 2: why lists have no shadows; NULL: they may. */
static const char *without_work(const struct hd_plan *plan, const struct hd_schedule *s,
	struct hd_arena *arena, struct hd_diag *diag, enum hd_err *err)
{
	struct hd_shadow_ring ring;

	*err = hd_shadow_ring_of(&ring, s, arena, diag);
	for (uint32_t r = 0; !*err && r < ring.nranks; r++) {
		const uint32_t next = hd_shadow_ring_next(&ring, r), n = ring.nstages;
		if (next != r / n * n + (r + 1) % n)
			return "shadows without work: stages in another order than ranks";
		if (plan->worker[next] == plan->worker[r])
			return "shadows without work: neighbours of one worker";
	}
	return NULL;
}

static enum hd_err say(struct hd_plan *plan, const char *what, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "%s; %s", plan->cause, what);
	plan->cause = text.at;
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for what a plan says") : HD_OK;
}

static enum hd_err take(struct hd_plan *plan, const struct hd_ilist *given,
	const struct hd_plan_job *plan_job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_plan made = *plan;

	made.list = hd_arena_take(arena, plan->nranks, sizeof *made.list);
	if (!made.list)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the lists of shadows");
	memcpy(made.list, given, plan->nranks * sizeof *made.list);
	enum hd_err err = hd_plan_staged_check(&made, plan_job, NULL, diag);
	if (!err)
		plan->list = made.list;
	return err;
}

static enum hd_err add(struct hd_plan *plan, const struct hd_schedule *s, enum hd_redundancy mode,
	const struct hd_plan_job *plan_job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_schedule with = { 0 };
	struct hd_stage_costs costs;
	struct hd_plan made = *plan;
	enum hd_err err = costs_of(&costs, plan, task, arena, diag);
	const struct hd_sim_setting set = { .costs = &costs, .transport = HD_TRANSPORT_BUFFERED };

	err = err ? err : hd_redundancy_add(&with, s, &(struct hd_redundancy_ask){ .mode = mode,
		.setting = &set }, arena, diag);
	made.list = with.list;
	err = err ? err : hd_plan_staged_check(&made, plan_job, NULL, diag);
	if (!err)
		plan->list = with.list;
	return err;
}

/* Rule 5. */
static bool has_no_lists(const struct hd_plan *plan, const struct hd_task *task)
{
	return task->delays.most || hd_plan_width(plan) > 1 || hd_plan_groups(plan) > 1;
}

enum hd_err hd_pipes_shadows(struct hd_plan *plan, enum hd_redundancy mode,
	const struct hd_ilist *given, const struct hd_plan_job *plan_job, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const char *const says[] = { [HD_REDUNDANCY_LAZY] = "shadows lazy",
		[HD_REDUNDANCY_EAGER] = "shadows eager", [HD_REDUNDANCY_FULL] = "shadows full" };
	static const char *const of_file[] = { [HD_REDUNDANCY_LAZY] = "shadows lazy, of the file",
		[HD_REDUNDANCY_EAGER] = "shadows eager, of the file",
		[HD_REDUNDANCY_FULL] = "shadows full, of the file" };
	const bool lazy = mode == HD_REDUNDANCY_LAZY;
	struct hd_schedule s = { 0 };
	struct hd_diag why = { "" };

	if (mode == HD_REDUNDANCY_NONE || (lazy && has_no_lists(plan, task)))
		return HD_OK;
	struct hd_diag *said = lazy ? &why : diag;
	enum hd_err err = hd_schedule_of_plan(&s, plan, arena, said);
	const char *without = err ? NULL : without_work(plan, &s, arena, said, &err);
	if (without)
		return say(plan, without, arena, diag);
	err = err ? err : given ? take(plan, given, plan_job, arena, said) :
		add(plan, &s, mode, plan_job, task, arena, said);
	if (!err)
		return say(plan, given ? of_file[mode] : says[mode], arena, diag);
	return lazy && err != HD_E_NOMEM ? HD_OK : !lazy ? err : hd_fail(diag, err, "%s", why.text);
}
