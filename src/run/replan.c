#include "run/replan.h"

#include <math.h>
#include <string.h>

#include "cost/profile_graph.h"
#include "pipeline/staged.h"
#include "run/pipes_forecast.h"

enum { PHASES = 3, HALVINGS = 20 };       /* F, I, W */

struct replanning {
	const struct hd_replan_ask *ask;
	struct hd_run_costs *costs;       /* corrected */
	double *factor;                   /* [stages of ran][PHASES] of its nodes */
	double update;                    /* of the update */
	double *speed;                    /* [workers of ran] over their mean */
	uint32_t nworkers;                /* of ran */
	struct hd_arena *arena;
};

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to predict another plan");
}

static uint32_t count_workers(const struct hd_plan *plan)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		n = plan->worker[r] >= n ? plan->worker[r] + 1u : n;
	return n;
}

/* ---- what there is to go by ---- */

/* A run that settles buckets has other chunks than one that does not. */
static enum hd_err has_chunks(bool *has, const struct hd_replan_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_layout uncut;
	const enum hd_err err = hd_layout_make(&uncut, &ask->task->train, arena, diag);

	*has = !err && (ask->same_job || ask->other->nchunks == ask->task->layout.nchunks ||
		ask->other->nchunks == uncut.nchunks);
	return err;
}

static enum hd_err fits_job(const struct hd_replan_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_plan *p = ask->other;
	const struct hd_task *task = ask->task;
	struct hd_diag why = { "" };
	bool chunks;
	const enum hd_err err = has_chunks(&chunks, ask, arena, diag);

	if (err)
		return err;
	if (p->nvns != task->job->nvns || !chunks)
		return hd_fail(diag, HD_E_INVAL, "the plan is of another job: it has %u virtual nodes and %u "
			"chunks of gradients, the recorded run has %u and %u", p->nvns, p->nchunks,
			task->job->nvns, task->layout.nchunks);
	if (p->first && p->first[p->nstages - 1] >= task->train.nforward)
		return hd_fail(diag, HD_E_INVAL, "the plan is of another job: its last stage begins with "
			"node %u, and the model has %u", p->first[p->nstages - 1], task->train.nforward);
	if (hd_plan_check_file(p, NULL, &why))
		return hd_fail(diag, HD_E_BADPLAN, "the plan cannot run: %s", why.text);
	for (int k = 0; k < 2; k++) {
		const struct hd_plan *one = k ? p : ask->ran;
		if (hd_plan_devices(one) % count_workers(one))
			return hd_fail(diag, HD_E_REFUSED, "%u workers of %s plan have different numbers of "
				"devices (%u in all), which is not replayed", count_workers(one),
				k ? "the other" : "the recorded", hd_plan_devices(one));
	}
	if (hd_plan_groups(p) > 1 || hd_plan_groups(ask->ran) > 1)
		return hd_fail(diag, HD_E_REFUSED, "stages whose devices lie on several workers "
			"(parallel.groups) are not replayed under another plan");
	return HD_OK;
}

static uint64_t in_plan(const struct hd_plan *plan, uint8_t op, uint32_t stage)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			n += plan->list[r].at[i].op == op && plan->list[r].at[i].stage == stage;
	return n;
}

static struct hd_tl_spent recorded(const struct hd_replan_ask *ask, uint8_t op, uint32_t stage,
	uint32_t worker)
{
	struct hd_tl_spent sum = { .op = op, .stage = stage };

	for (uint32_t i = 0; i < ask->spent->n; i++) {
		const struct hd_tl_spent *s = &ask->spent->at[i];
		const bool all = stage == HD_TL_NONE || s->stage == stage || s->stage == HD_TL_NONE;
		if (s->op != op || !all || (worker != HD_TL_NONE && ask->worker[s->process] != worker))
			continue;
		sum.n += s->n;
		sum.ns += s->ns;
	}
	return sum;
}

/* Each step has the instructions of the plan, no more and no fewer. */
static enum hd_err is_of_ran(const struct hd_replan_ask *ask, struct hd_diag *diag)
{
	const uint32_t nworkers = count_workers(ask->ran);
	const uint64_t nsteps = ask->spent->nsteps / (ask->spent->nprocesses ? ask->spent->nprocesses : 1);

	if (ask->spent->nprocesses != nworkers)
		return hd_fail(diag, HD_E_REFUSED, "%u processes made the recorded steps, and the run's "
			"newest plan has %u workers: take fewer steps (--steps N), of that plan alone",
			ask->spent->nprocesses, nworkers);
	for (uint32_t s = 0; s < ask->ran->nstages; s++) {
		const uint64_t n = recorded(ask, HD_INS_B, s, HD_TL_NONE).n + recorded(ask, HD_INS_I, s,
			HD_TL_NONE).n, is = in_plan(ask->ran, HD_INS_B, s) + in_plan(ask->ran, HD_INS_I, s);
		if (n != is * nsteps)
			return hd_fail(diag, HD_E_REFUSED, "the recording has %llu backward passes of stage "
				"%u in %llu steps, the run's newest plan %llu in each: take fewer steps "
				"(--steps N), of that plan alone, or record all of them (heddle trace "
				"record)", (unsigned long long)n, s, (unsigned long long)nsteps,
				(unsigned long long)is);
	}
	return HD_OK;
}

/* ---- costs ---- */

static enum hd_err modelled(struct hd_profile *profile, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_profile_ask ask = { .rows = task->job->per_vn,
		.nslots = hd_optims[task->optim.kind].nslots, .tensor_shards = 1 };

	return hd_profile_at(profile, &task->train, NULL, &ask, arena, diag);
}

/* The first node of the profile that each stage of the recorded plan has. */
static enum hd_err cuts_of_ran(uint32_t *cut, const struct replanning *r, struct hd_diag *diag)
{
	const struct hd_plan *ran = r->ask->ran;

	cut[0] = 0;
	return ran->first && hd_run_costs_cuts(r->costs, ran->first, ran->nstages, cut) ? hd_fail(diag,
		HD_E_REFUSED, "stages of the recorded plan begin where the job's costs name no node") : HD_OK;
}

static void scale(struct hd_profile_cost *cost, double by)
{
	cost->p50_ns = llround((double)cost->p50_ns * by);
}

/* The costs that the run measured, times what was found of each stage. */
static enum hd_err correct(struct replanning *r, double port_bytes_per_s, struct hd_diag *diag)
{
	const struct hd_replan_ask *ask = r->ask;
	const struct hd_run_costs *is = ask->costs;
	struct hd_profile profile;
	struct hd_run_costs *made;
	uint32_t *cut = hd_arena_take(r->arena, ask->ran->nstages, sizeof *cut);
	enum hd_err err = cut ? HD_OK : no_memory(diag);

	if (!err && is)
		profile = is->line.profile;
	else if (!err)
		err = modelled(&profile, ask->task, r->arena, diag);
	err = err || !r->costs ? err : cuts_of_ran(cut, r, diag);
	struct hd_profile_node *node = err ? NULL : hd_arena_take(r->arena, profile.nnodes + 1u,
		sizeof *node);
	if (!node)
		return err ? err : no_memory(diag);
	memcpy(node, profile.node, profile.nnodes * sizeof *node);
	for (uint32_t i = 0, s = 0; i < profile.nnodes && r->costs; i++) {
		while (s + 1 < ask->ran->nstages && ask->ran->first && i >= cut[s + 1])
			s++;
		struct hd_profile_cost *cost[PHASES] = { &node[i].f, &node[i].i, &node[i].w };
		for (uint32_t k = 0; k < PHASES; k++)
			scale(cost[k], r->factor[s * PHASES + k]);
	}
	profile.node = node;
	err = hd_run_costs_again(&made, ask->task, &profile, is ? is->whole : 1, r->arena, diag);
	if (err)
		return err;
	if (is) {
		made->host_ns_per_byte = is->host_ns_per_byte;
		made->reuse = is->reuse;
		made->late_ns = is->late_ns;
		made->hop_ns = is->hop_ns;
		made->pace = is->pace;
		made->norm_ns = is->norm_ns;
		made->link_ns_per_byte = is->link_ns_per_byte;
		made->port_latency_ns = is->port_latency_ns;
	}
	made->update_ns *= r->update;
	if (made->port_bytes_per_s > 0 && port_bytes_per_s > 0)
		made->port_bytes_per_s = port_bytes_per_s;
	r->costs = made;
	return HD_OK;
}

/* ---- predictions ---- */

static enum hd_err predict(struct hd_forecast *f, const struct replanning *r, const struct hd_plan *plan,
	struct hd_diag *diag)
{
	const struct hd_job *job = r->ask->task->job;
	const uint32_t nworkers = count_workers(plan), each = hd_plan_devices(plan) / nworkers;
	double *speed = hd_arena_take(r->arena, plan->nranks, sizeof *speed);
	struct hd_forecast_setting set = { .cores = r->costs->late_ns > 0 || !r->ask->cores ? 0 :
		hd_forecast_shared(r->ask->cores, hd_plan_devices(plan)), .speed = speed };

	if (!speed)
		return no_memory(diag);
	if (nworkers > 1)
		set.holders = hd_pipes_holders(job, each);
	for (uint32_t i = 0; i < plan->nranks; i++)
		speed[i] = plan->worker[i] < r->nworkers ? r->speed[plan->worker[i]] : 1;
	enum hd_err err = hd_forecast_make(f, plan, r->costs, &set, r->arena, diag);
	if (err)
		return err;
	hd_forecast_forget(f, plan);
	return !plan->first && nworkers > 1 && hd_pipes_whole_is_predicted(r->costs) ?
		hd_pipes_whole_over_links(f, r->ask->task, r->costs, nworkers, each, r->arena, diag) : HD_OK;
}

/* ---- corrections ---- */

/* What a row of the prediction took: with what is sent in its time (forecast.h, rule 1). */
static double took(const struct hd_replan_ask *ask, const struct hd_forecast_row *row)
{
	const uint32_t stage = row->op == HD_INS_STEP ? HD_TL_NONE : row->stage;
	const uint8_t with = row->op == HD_INS_F ? HD_INS_SA : row->op == HD_INS_B || row->op == HD_INS_I ?
		HD_INS_SG : 0;
	const struct hd_tl_spent own = recorded(ask, row->op, stage, HD_TL_NONE);
	const double sent = with ? recorded(ask, with, stage, HD_TL_NONE).ns : 0;

	return own.n ? (own.ns + sent) / (double)own.n : 0;
}

static void find_factors(struct replanning *r, const struct hd_forecast *f)
{
	for (uint32_t i = 0; i < f->nrows; i++) {
		const struct hd_forecast_row *row = &f->row[i];
		const double is = took(r->ask, row), by = is > 0 && row->predicted_ns > 0 ?
			is / row->predicted_ns : 1;
		double *factor = &r->factor[row->stage * PHASES];
		if (row->op == HD_INS_F)
			factor[HD_PHASE_F] *= by;
		if (row->op == HD_INS_B || row->op == HD_INS_I)
			factor[HD_PHASE_I] *= by;
		if (row->op == HD_INS_B || row->op == HD_INS_W)
			factor[HD_PHASE_W] *= by;
		if (row->op == HD_INS_STEP)
			r->update *= by;
	}
}

/* Of a kind that several workers ran: the mean over what this one took of each. */
static double speed_of(const struct hd_replan_ask *ask, uint32_t worker, uint32_t nworkers)
{
	static const uint8_t ops[] = { HD_INS_F, HD_INS_B, HD_INS_I, HD_INS_W };
	double own = 0, all = 0;

	for (size_t k = 0; k < sizeof ops; k++)
		for (uint32_t s = 0; s < ask->ran->nstages; s++) {
			const struct hd_tl_spent here = recorded(ask, ops[k], s, worker);
			double sum = 0;
			uint32_t n = 0;
			for (uint32_t w = 0; w < nworkers; w++) {
				const struct hd_tl_spent at = recorded(ask, ops[k], s, w);
				sum += at.n ? at.ns / (double)at.n : 0;
				n += at.n > 0;
			}
			if (here.n && n > 1) {
				own += here.ns;
				all += sum / n * (double)here.n;
			}
		}
	return own > 0 && all > 0 ? all / own : 1;
}

/* Rule 2, of workers with the whole model. */
static enum hd_err find_rate(struct replanning *r, double recorded_ns, struct hd_forecast *f,
	struct hd_diag *diag)
{
	const double is = r->costs->port_bytes_per_s;
	double low = is / HD_REPLAN_WITHIN, high = is * HD_REPLAN_WITHIN;
	enum hd_err err = HD_OK;

	for (int k = 0; k < 2 && !err; k++) {
		r->costs->port_bytes_per_s = k ? high : low;
		err = predict(f, r, r->ask->ran, diag);
		if (!err && (k ? f->step_ns > recorded_ns : f->step_ns < recorded_ns)) {
			r->costs->port_bytes_per_s = is;
			return predict(f, r, r->ask->ran, diag);
		}
	}
	for (int i = 0; i < HALVINGS && !err; i++) {
		r->costs->port_bytes_per_s = sqrt(low * high);
		err = predict(f, r, r->ask->ran, diag);
		*(f->step_ns > recorded_ns ? &low : &high) = r->costs->port_bytes_per_s;
	}
	return err;
}

static enum hd_err fit(struct replanning *r, struct hd_forecast *f, struct hd_diag *diag)
{
	const struct hd_tl_spents *spent = r->ask->spent;
	const double rate = spent->rate * 1e9;
	enum hd_err err = correct(r, rate, diag);

	for (int turn = 0; turn < HD_REPLAN_TURNS && !err; turn++) {
		err = predict(f, r, r->ask->ran, diag);
		if (!err)
			find_factors(r, f);
		err = err ? err : correct(r, rate, diag);
	}
	err = err ? err : predict(f, r, r->ask->ran, diag);
	if (!err && r->costs->port_bytes_per_s > 0 && !(rate > 0) && r->nworkers > 1)
		err = find_rate(r, spent->step_ns, f, diag);
	return err;
}

/* ---- gaps ---- */

static uint32_t end_of(const struct hd_plan *plan, uint32_t stage)
{
	return plan->first && stage + 1 < plan->nstages ? plan->first[stage + 1] : UINT32_MAX;
}

static bool has_stage(const struct hd_plan *plan, uint32_t begin, uint32_t end)
{
	bool has = false;

	for (uint32_t s = 0; s < plan->nstages; s++)
		has |= (plan->first ? plan->first[s] : 0) == begin && end_of(plan, s) == end;
	return has;
}

static bool has_op(const struct hd_plan *plan, uint8_t op)
{
	bool has = false;

	for (uint32_t s = 0; s < plan->nstages && !has; s++)
		has = in_plan(plan, op, s) > 0;
	return has;
}

/* B is I and W. */
static bool is_known(const struct hd_plan *ran, uint8_t op)
{
	return has_op(ran, op) || (op == HD_INS_B && has_op(ran, HD_INS_I) && has_op(ran, HD_INS_W));
}

static enum hd_err find_gaps(struct hd_replan *made, const struct replanning *r, struct hd_diag *diag)
{
	const struct hd_plan *ran = r->ask->ran, *other = r->ask->other;
	const uint32_t nworkers = count_workers(other);

	made->gap = hd_arena_take(r->arena, (size_t)HD_INS_END + other->nstages + nworkers,
		sizeof *made->gap);
	if (!made->gap)
		return no_memory(diag);
	for (uint8_t op = 1; op < HD_INS_END; op++)
		if (hd_forecast_counts(op) && op != HD_INS_SA && op != HD_INS_SG && has_op(other, op) &&
			!is_known(ran, op))
			made->gap[made->ngaps++] = (struct hd_replan_gap){ HD_REPLAN_OP, op, 0 };
	for (uint32_t s = 0; s < other->nstages; s++)
		if (!has_stage(ran, other->first ? other->first[s] : 0, end_of(other, s)))
			made->gap[made->ngaps++] = (struct hd_replan_gap){ HD_REPLAN_STAGE, 0, s };
	for (uint32_t w = r->nworkers; w < nworkers; w++)
		made->gap[made->ngaps++] = (struct hd_replan_gap){ HD_REPLAN_WORKER, 0, w };
	return HD_OK;
}

enum hd_err hd_replan(struct hd_replan *replan, const struct hd_replan_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const size_t nstages = ask->ran->nstages;
	struct replanning r = { .ask = ask, .update = 1, .nworkers = count_workers(ask->ran), .arena = arena,
		.factor = hd_arena_take(arena, nstages * PHASES + 1, sizeof *r.factor),
		.speed = hd_arena_take(arena, (size_t)count_workers(ask->ran) + 1, sizeof *r.speed) };
	struct hd_replan made = { .recorded_ns = ask->spent->step_ns };
	struct hd_forecast f, g;
	enum hd_err err = r.factor && r.speed ? fits_job(ask, arena, diag) : no_memory(diag);

	err = err ? err : is_of_ran(ask, diag);
	if (err)
		return err;
	for (size_t i = 0; i < nstages * PHASES; i++)
		r.factor[i] = 1;
	for (uint32_t w = 0; w < r.nworkers; w++)
		r.speed[w] = speed_of(ask, w, r.nworkers);
	err = fit(&r, &f, diag);
	err = err ? err : predict(&g, &r, ask->other, diag);
	if (err)
		return err;
	if (!(f.step_ns > 0) || !(g.step_ns > 0))
		return hd_fail(diag, HD_E_REFUSED, "steps of %s plan overlap, on fewer cores than it has "
			"devices: what they take is not predicted", f.step_ns > 0 ? "the other" :
			"the recorded");
	made.ran_ns = f.step_ns;
	made.other_ns = g.step_ns;
	err = find_gaps(&made, &r, diag);
	if (!err)
		*replan = made;
	return err;
}
