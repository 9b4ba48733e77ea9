#include "planner/search/build.h"

#include <math.h>
#include <string.h>

#include "pipeline/passes.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"

uint64_t hd_auto_nins(const struct hd_auto_cand *c, uint32_t vns)
{
	return (uint64_t)vns * c->stages.nstages * (c->row && c->row->v_placed ? 3 : 2);
}

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a schedule of the planner"); }

/* ---- lists */

/* Virtual node `local` of a pipeline with `share` of V from `first`; earlier steps are negative, later
 * ones beyond. */
static uint32_t vn_of(int64_t local, uint32_t share, uint32_t first, uint32_t vns)
{
	int64_t step = local >= 0 ? local / share : -((-local + share - 1) / share);

	return (uint32_t)(step * vns + first + (local - step * share));
}

static enum hd_err copy_list(struct hd_ilist *to, const struct hd_ilist *from, uint32_t share, uint32_t first,
	uint32_t vns, struct hd_arena *arena)
{
	to->len = to->cap = from->len;
	to->at = hd_arena_take(arena, (size_t)from->len + 1, sizeof *to->at);
	if (!to->at)
		return HD_E_NOMEM;
	for (uint32_t i = 0; i < from->len; i++) {
		to->at[i] = from->at[i];
		to->at[i].vn = vn_of((int32_t)from->at[i].vn, share, first, vns);
	}
	return HD_OK;
}

static enum hd_err put_pipeline(struct hd_schedule *s, const struct hd_schedule *one, uint32_t q,
	uint32_t first, uint32_t vns, struct hd_arena *arena)
{
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < one->nranks && !err; r++) {
		uint32_t rank = q * one->nranks + r;
		err = copy_list(&s->list[rank], &one->list[r], one->nvns, first, vns, arena);
		if (!err && one->prologue)
			err = copy_list(&s->prologue[rank], &one->prologue[r], one->nvns, first, vns, arena);
		if (!err && one->prologue)
			err = copy_list(&s->epilogue[rank], &one->epilogue[r], one->nvns, first, vns, arena);
	}
	return err;
}

static enum hd_err template_of(struct hd_schedule *one, const struct hd_auto_cand *c, uint32_t m,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const char *name = c->row->alone ? "1f1b" : c->row->schedule;

	return hd_schedule_make(one, &(struct hd_schedule_ask){ .name = name, .p = c->shape.p, .m = m,
		.v = c->shape.v }, arena, diag);
}

/* d copies of the schedule of one pipeline. */
static enum hd_err of_pipelines(struct hd_schedule *out, const struct hd_auto_cand *c, uint32_t vns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t p = c->shape.p, d = c->shape.d, first = 0;
	struct hd_schedule s = { .nranks = p * d, .nvns = vns,
		.list = hd_arena_take(arena, (size_t)p * d, sizeof *s.list) }, one = { 0 };
	enum hd_err err = s.list ? HD_OK : no_memory(diag);

	for (uint32_t q = 0; q < d && !err; first += c->share[q++]) {
		if (one.nvns != c->share[q])
			err = template_of(&one, c, c->share[q], arena, diag);
		if (err)
			return err;
		s.update = one.update;
		if (one.prologue && !s.prologue) {
			s.prologue = hd_arena_take(arena, s.nranks, sizeof *s.prologue);
			s.epilogue = hd_arena_take(arena, s.nranks, sizeof *s.epilogue);
			if (!s.prologue || !s.epilogue)
				return no_memory(diag);
		}
		err = put_pipeline(&s, &one, q, first, vns, arena) ? no_memory(diag) : HD_OK;
	}
	*out = s;
	return err ? err : hd_schedule_infer(out, arena, diag);
}

static enum hd_err of_replicas(struct hd_schedule *out, const struct hd_auto_cand *c, uint32_t vns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *replicas = hd_arena_take(arena, c->stages.nstages, sizeof *replicas), ranks = 0;

	if (!replicas)
		return no_memory(diag);
	for (uint32_t s = 0; s < c->stages.nstages; s++)
		ranks += replicas[s] = c->stages.stage[s].replicas;
	return hd_schedule_make(out, &(struct hd_schedule_ask){ .name = "1f1b-rr", .p = ranks, .m = vns,
		.replicas = replicas,
		.nreplicas = c->stages.nstages }, arena, diag);
}

/* Recomputation, versions where updates are delayed, sums and updates. */
static enum hd_err complete(struct hd_schedule *s, const struct hd_auto_plan *plan, bool clips,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule_job job = { .tied = plan->costs.tied, .ntied = plan->costs.ntied, .clips = clips };
	enum hd_err err = hd_schedule_recompute(s, s, plan->recompute, arena, diag);

	if (!err && s->prologue)
		err = hd_schedule_versions(s, s, &job, arena, diag);
	return err ? err : hd_schedule_updates(s, s, &job, arena, diag);
}

static enum hd_err take_costs(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = space->sums->cuts->n;
	enum hd_err err = hd_stage_costs_make(&plan->costs, space->sums, plan->first, plan->nstages, arena,
		diag);

	for (uint32_t s = 0; s < plan->nstages && !err; s++)
		plan->costs.stage[s] = hd_auto_shard_cost(space, plan->costs.stage[s], plan->first[s],
			(s + 1 < plan->nstages ? plan->first[s + 1] : n) - 1,
			plan->shape.t);
	return err;
}

static void place_ranks(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	const struct hd_auto_cand *c)
{
	for (uint32_t rank = 0; rank < plan->nranks; rank++) {
		struct hd_auto_rank *to = &plan->rank[rank];
		to->pipeline = c->row ? rank / c->shape.p : 0;
		to->device = c->row ? hd_auto_device(c, to->pipeline, rank % c->shape.p) : rank;
		for (uint32_t i = 0; i < plan->shape.t; i++) {
			int64_t mine = hd_cluster_kind_of(space->cluster, to->device + i)->memory;
			to->memory = mine && (!to->memory || mine < to->memory) ? mine : to->memory;
		}
	}
}

enum hd_err hd_auto_build(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	const struct hd_auto_cand *c, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t n = c->stages.nstages, vns = space->ask->vns;
	struct hd_auto_plan made = { .shape = c->shape, .order = c->order, .nstages = n,
		.estimate_ps = c->estimate_ps, .npipelines = c->row ? c->shape.d : 1,
		.first = hd_arena_take(arena, n, sizeof *made.first),
		.recompute = hd_arena_take(arena, n, sizeof *made.recompute),
		.replicas = hd_arena_take(arena, n, sizeof *made.replicas),
		.share = hd_arena_take(arena, c->row ? c->shape.d : 1, sizeof *made.share) };
	enum hd_err err;

	if (!made.first || !made.recompute || !made.replicas || !made.share)
		return no_memory(diag);
	for (uint32_t s = 0; s < n; s++) {
		made.first[s] = c->stages.stage[s].first;
		made.recompute[s] = c->stages.stage[s].recompute;
		made.replicas[s] = c->row ? c->shape.d : c->stages.stage[s].replicas;
	}
	for (uint32_t q = 0; q < made.npipelines; q++)
		made.share[q] = c->row ? c->share[q] : vns;
	err = c->row ? of_pipelines(&made.schedule, c, vns, arena, diag) : of_replicas(&made.schedule, c, vns,
		arena, diag);
	err = err ? err : take_costs(&made, space, arena, diag);
	err = err ? err : complete(&made.schedule, &made, space->ask->clips, arena, diag);
	if (err)
		return err;
	struct hd_text heading;
	hd_text_init(&heading, arena);
	hd_text_addf(&heading, "auto %s t=%u p=%u d=%u v=%u m=%u", c->shape.schedule, c->shape.t, c->shape.p,
		c->shape.d, c->shape.v, vns);
	if (heading.full)
		return no_memory(diag);
	made.schedule.heading = heading.at;
	made.nranks = made.schedule.nranks;
	made.rank = hd_arena_take(arena, made.nranks, sizeof *made.rank);
	if (!made.rank)
		return no_memory(diag);
	place_ranks(&made, space, c);
	*plan = made;
	return HD_OK;
}

/* ---- judgement */

static enum hd_auto_bound bound_of(const struct hd_sim_share *share, int64_t makespan, bool recomputes)
{
	int64_t moving = share->idle[HD_IDLE_TRANSFER] + share->idle[HD_IDLE_CREDIT],
		ends = share->idle[HD_IDLE_WARM_UP] + share->idle[HD_IDLE_DRAIN];

	if (recomputes)
		return HD_AUTO_BY_MEMORY;
	if (share->busy >= makespan - makespan / 5)
		return HD_AUTO_BY_COMPUTE;
	if (moving >= ends && moving >= share->idle[HD_IDLE_DEPENDENCY])
		return HD_AUTO_BY_TRANSFER;
	return ends >= share->idle[HD_IDLE_DEPENDENCY] ? HD_AUTO_BY_FILL : HD_AUTO_BY_OTHERS;
}

static bool recomputes(const struct hd_auto_plan *plan, uint32_t rank)
{
	for (uint32_t i = 0; i < plan->schedule.list[rank].len; i++)
		if (plan->schedule.list[rank].at[i].op == HD_INS_R)
			return true;
	return false;
}

/* Two standard deviations of the busiest rank's work, nodes and virtual nodes independent. */
static void error_band(struct hd_auto_plan *plan)
{
	double worst = 0;

	for (uint32_t rank = 0; rank < plan->nranks; rank++) {
		double variance = 0;
		for (uint32_t i = 0; i < plan->schedule.list[rank].len; i++) {
			const struct hd_ins *x = &plan->schedule.list[rank].at[i];
			if (x->op != HD_INS_F && x->op != HD_INS_B && x->op != HD_INS_I && x->op != HD_INS_W)
				continue;
			const struct hd_stage_cost *cost = &plan->costs.stage[x->stage];
			double f = (double)cost->of_f.sd, b = (double)cost->of_i.sd,
				w = (double)cost->of_w.sd;
			variance += x->op == HD_INS_F ? f * f :
				(x->op != HD_INS_W ? b * b : 0) + (x->op != HD_INS_I ? w * w : 0);
		}
		worst = variance > worst ? variance : worst;
	}
	int64_t two = llround(2 * sqrt(worst));
	plan->low_ps = two < plan->makespan_ps ? plan->makespan_ps - two : 0;
	plan->high_ps = plan->makespan_ps + two;
}

enum hd_err hd_auto_judge(struct hd_auto_plan *plan, const struct hd_auto_space *space,
	enum hd_auto_proof how, bool *late, struct hd_arena *scratch,
	struct hd_diag *diag)
{
	uint32_t *device = hd_arena_take(scratch, plan->nranks, sizeof *device);
	struct hd_sim_plan sim;
	struct hd_schedule moved;
	enum hd_err err;

	*late = false;
	if (!device)
		return no_memory(diag);
	for (uint32_t r = 0; r < plan->nranks; r++)
		device[r] = plan->rank[r].device;
	err = how == HD_AUTO_PROVED ? HD_OK : hd_schedule_check(&plan->schedule,
		&(struct hd_schedule_rules){ HD_TRANSPORT_EAGER, 0 }, NULL, diag);
	if (!err)
		err = hd_schedule_comms(&moved, &plan->schedule, scratch, diag);
	if (err)
		return err;
	struct hd_sim_setting setting = { .costs = &plan->costs, .cluster = space->cluster, .device = device,
		.transport = HD_TRANSPORT_BUFFERED };
	err = hd_sim_plan(&sim, &moved, &setting, scratch, diag);
	*late = err == HD_E_INVAL;         /* sizes fit each other: rules of the builder */
	if (*late || err == HD_E_BADPLAN)
		return HD_E_NOTFOUND;              /* more buffers would do, but runs have no more */
	if (err)
		return err;
	plan->makespan_ps = sim.steps > 2 ? (sim.step_end[sim.steps - 1] - sim.step_end[1]) / (sim.steps -
		2) : sim.makespan;
	for (uint32_t r = 0; r < plan->nranks; r++) {
		plan->rank[r].busy_ps = sim.rank[r].busy / sim.steps;
		plan->rank[r].peak = sim.rank[r].peak;
		plan->rank[r].bound = bound_of(&sim.rank[r], sim.makespan, recomputes(plan, r));
		plan->peak = sim.rank[r].peak > plan->peak ? sim.rank[r].peak : plan->peak;
		if (plan->rank[r].memory && plan->rank[r].peak > plan->rank[r].memory)
			err = HD_E_NOTFOUND;
	}
	error_band(plan);
	return err;
}
