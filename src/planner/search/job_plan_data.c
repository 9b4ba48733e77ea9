#include <string.h>

#include "balance/solver.h"
#include "planner/search/job_plan_int.h"

/* Every device used has the whole model; how many virtual nodes each gets, and which are used at all, is what
 * the solver says (solver.h). Devices that stand nearer to one another exchange faster, so every component of
 * every level is asked for by itself, with the links of that level: a server's own, then the rack's. A sum of
 * gradients is joined after the last backward here, as the schedule says, so nothing of it hides behind
 * computing. */

struct vn_sharing {
	const struct hd_job_plan_ask *ask;
	struct hd_vn_cost *type; uint32_t ntypes; /* by kind of the cluster */
	struct hd_solve_device *device;
	struct hd_solve_worker *worker;
	int64_t gradient_bytes;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

/* What a component of a level would do. */
struct answer { uint32_t level, first; struct hd_solve_ask ask; struct hd_solve solve; bool mixed; };

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	}

static int64_t on(double speed, int64_t ps) { return (int64_t)((double)ps / speed + 0.5); }

static int64_t needs(const struct hd_stage_cost *c) { return 2 * c->param + c->opt + c->saved + c->work; }

static enum hd_err cost_kinds(struct vn_sharing *s)
{
	const struct hd_cluster *cluster = s->ask->cluster;
	struct hd_stage_cost c = hd_cut_sums_range(s->ask->sums, 0, s->ask->sums->cuts->n);
	bool any = false;

	s->gradient_bytes = c.param;
	s->ntypes = cluster->nkinds;
	s->type = hd_arena_take(s->arena, s->ntypes, sizeof *s->type);
	s->device = hd_arena_take(s->arena, cluster->ndevices, sizeof *s->device);
	s->worker = hd_arena_take(s->arena, cluster->ndevices, sizeof *s->worker);
	if (!s->type || !s->device || !s->worker)
		return no_memory(s->diag);
	for (uint32_t d = 0; d < cluster->ndevices; d++)
		any |= !hd_cluster_kind_of(cluster, d)->memory ||
			needs(&c) <= hd_cluster_kind_of(cluster, d)->memory;
	for (uint32_t k = 0; k < s->ntypes; k++) {
		const struct hd_cluster_kind *kind = &cluster->kind[k];
		const struct hd_wave_time wave = { 1, on(kind->speed, c.f + c.i + c.w), 0, needs(&c) };
		/* where nothing fits the simulator says so, to the byte */
		struct hd_vn_profile profile = { kind->name, on(kind->speed, c.step), any ? kind->memory : 0,
			&wave, 1 };
		enum hd_err err = hd_vn_cost_make(&s->type[k], &profile, s->ask->vns, s->arena, s->diag);
		if (err)
			return err;
	}
	return HD_OK;
}

static uint32_t components_size(const struct hd_cluster *cluster, uint32_t level)
{
	uint32_t n = 1;

	for (uint32_t l = 0; l <= level; l++)
		n *= cluster->level[l].components;
	return n;
}

/* An earlier component of the level has the same kinds in the same order. */
static bool seen(const struct hd_cluster *cluster, uint32_t first, uint32_t size)
{
	for (uint32_t other = 0; other < first; other += size)
		if (!memcmp(&cluster->device_kind[other], &cluster->device_kind[first],
			size * sizeof *cluster->device_kind))
			return true;
	return false;
}

static bool is_mixed(const struct answer *a)
{
	uint32_t kind = UINT32_MAX;

	for (uint32_t d = 0; d < a->ask.ndevices; d++) {
		if (!a->solve.plan.count[d])
			continue;
		if (kind != UINT32_MAX && kind != a->ask.device[d].type)
			return true;
		kind = a->ask.device[d].type;
	}
	return false;
}

static enum hd_err ask_component(const struct vn_sharing *s, uint32_t level, uint32_t first, uint32_t size,
	struct answer *a, struct hd_diag *why)
{
	const struct hd_cluster *cluster = s->ask->cluster;
	struct hd_solve_device *device = hd_arena_take(s->arena, size, sizeof *device);
	struct hd_solve_worker *worker = hd_arena_take(s->arena, size, sizeof *worker);

	if (!device || !worker)
		return no_memory(why);
	for (uint32_t d = 0; d < size; d++) {
		device[d] = (struct hd_solve_device){ cluster->device_kind[first + d], d };
		worker[d].bytes_per_s = (uint64_t)cluster->level[level].bytes_per_s;
	}
	*a = (struct answer){ .level = level, .first = first,
		.ask = { .nvns = s->ask->vns, .type = s->type, .ntypes = s->ntypes, .device = device,
		.ndevices = size, .worker = worker, .nworkers = size, .gradient_bytes = s->gradient_bytes,
		.latency_ps = cluster->level[level].latency_ps } };
	enum hd_err err = hd_solve(&a->solve, &a->ask, s->arena, why);
	a->mixed = !err && is_mixed(a);
	return err;
}

static bool better(const struct answer *a, const struct answer *b)
{
	if (a->solve.plan.step_ps != b->solve.plan.step_ps)
		return a->solve.plan.step_ps < b->solve.plan.step_ps;
	/* else the one asked first: inner levels, lower devices */
	return a->solve.plan.nmembers < b->solve.plan.nmembers;
}

/* The fastest of all, unless the fastest of one kind is within the margin (solver.h, rule 6). `widest` is
 * all devices. */
static enum hd_err choose(const struct vn_sharing *s, struct answer *chosen, struct answer *widest)
{
	const struct hd_cluster *cluster = s->ask->cluster;
	struct answer best = { 0 }, simple = { 0 };
	bool any = false, any_simple = false;
	struct hd_diag first_why = { "" };

	for (uint32_t level = 0; level < cluster->nlevels; level++) {
		uint32_t size = components_size(cluster, level);
		for (uint32_t first = 0; first < cluster->ndevices; first += size) {
			struct answer a;
			if (seen(cluster, first, size))
				continue;
			enum hd_err err = ask_component(s, level, first, size, &a, &first_why);
			if (err == HD_E_REFUSED)
				continue;
			if (err)
				return hd_fail(s->diag, err, "%s", first_why.text);
			if (!any || better(&a, &best))
				best = a;
			if (!a.mixed && (!any_simple || better(&a, &simple)))
				simple = a;
			any = true;
			any_simple |= !a.mixed;
			*widest = a;
		}
	}
	if (!any)
		return hd_fail(s->diag, HD_E_INVAL, "%s", first_why.text);
	bool gains = !best.mixed || !any_simple || hd_solve_gains(best.solve.plan.step_ps,
		simple.solve.plan.step_ps, best.solve.margin_ppm);
	*chosen = gains ? best : simple;
	return HD_OK;
}

/* ---- from counts to a schedule: ranks are the used devices in the order of their ranges */

static enum hd_err ranks_of(struct hd_job_plan *plan, const struct answer *a, uint32_t *nranks,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_solve_plan *p = &a->solve.plan;
	uint32_t n = 0;

	plan->counts = hd_arena_take(arena, p->ndevices, sizeof *plan->counts);
	plan->device = hd_arena_take(arena, p->ndevices, sizeof *plan->device);
	if (!plan->counts || !plan->device)
		return no_memory(diag);
	for (uint32_t v = 0; v < a->ask.nvns; v += plan->counts[n++])
		for (uint32_t d = 0; d < a->ask.ndevices; d++)
			if (p->count[d] && p->first[d] == v) {
				plan->counts[n] = p->count[d];
				plan->device[n] = a->first + d;
			}
	*nranks = n;
	return HD_OK;
}

static enum hd_err alternate(struct hd_schedule *s, const uint32_t *counts, uint32_t nranks, uint32_t vns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t vn = 0;

	*s = (struct hd_schedule){ .heading = "data parallel", .nranks = nranks, .nvns = vns,
		.list = hd_arena_take(arena, nranks, sizeof *s->list) };
	for (uint32_t r = 0; s->list && r < nranks; r++) {
		struct hd_ilist *list = &s->list[r];
		list->cap = 2 * counts[r] + 1;
		list->at = hd_arena_take(arena, list->cap, sizeof *list->at);
		if (!list->at)
			return no_memory(diag);
		for (uint32_t i = 0; i < counts[r]; i++, vn++) {
			list->at[list->len++] = (struct hd_ins){ .op = HD_INS_F, .vn = vn };
			list->at[list->len++] = (struct hd_ins){ .op = HD_INS_B, .vn = vn };
		}
	}
	return s->list ? hd_schedule_infer(s, arena, diag) : no_memory(diag);
}

/* ---- words */

/* Norms over the global batch, rows of a graph in intervals: at each, every device that is used sends its
 * share to all others. Neither the solver nor the simulator knows of them. */
static enum hd_err explain_meetings(const struct vn_sharing *s, const struct answer *a, struct hd_text *why)
{
	const struct hd_solve_plan *p = &a->solve.plan;
	const struct hd_cluster_level *link = &s->ask->cluster->level[a->level];
	uint32_t most = 0;
	uint64_t sent = 0;

	if (!s->ask->meetings || p->ndevices < 2)
		return HD_OK;
	for (uint32_t d = 0; d < a->ask.ndevices; d++)
		most = p->count[d] > most ? p->count[d] : most;
	enum hd_err err = s->ask->sent ? s->ask->sent(s->ask->user, p->count, a->ask.ndevices, &sent,
		s->diag) : HD_OK;
	const double bytes = (double)s->ask->meeting_bytes * most / s->ask->vns,
		all = s->ask->sent ? (double)sent : bytes * (p->ndevices - 1),
		least_s = (double)link->latency_ps * 1e-12 * s->ask->meetings +
			all / (double)link->bytes_per_s;
	hd_text_addf(why, "virtual nodes in lockstep: all meet %u times a step, with up to %.1f KiB from one "
		"to %s: at least %.3f ms beside the times below\n", s->ask->meetings,
		(s->ask->sent ? all : bytes) / 1024, s->ask->sent ? "all others, the rows that they read" :
		"each other", least_s * 1e3);
	return err;
}

static enum hd_err explain(const struct vn_sharing *s, const struct answer *chosen,
	const struct answer *widest, struct hd_text *why)
{
	const struct hd_cluster *cluster = s->ask->cluster;
	uint32_t idle = cluster->ndevices - chosen->solve.plan.ndevices;

	hd_text_addf(why,
		"every device used has the whole model, and the gradients are summed once a step, over the "
		"%s\n",
		cluster->level[chosen->level].name);
	if (chosen->ask.ndevices < cluster->ndevices)
		hd_text_addf(why, "devices %u-%u: ", chosen->first, chosen->first + chosen->ask.ndevices - 1);
	hd_solve_print(&chosen->solve, &chosen->ask, why);
	const enum hd_err err = explain_meetings(s, chosen, why);
	if (widest->ask.ndevices > chosen->ask.ndevices) {
		int32_t ppm = hd_solve_slower_ppm(widest->solve.plan.step_ps, chosen->solve.plan.step_ps);
		bool exchange = widest->solve.plan.compute_ps <= chosen->solve.plan.compute_ps;
		hd_text_addf(why, "%u devices over the %s: would be %.1f %% %s: %s; %.3f ms\n",
			widest->solve.plan.ndevices, cluster->level[widest->level].name,
			(ppm < 0 ? -ppm : ppm) * 1e-4, ppm < 0 ? "faster" : "slower",
			hd_verdict_words(ppm < 0 ? HD_VERDICT_WITHIN_ERROR
			: exchange ? HD_VERDICT_EXCHANGE : HD_VERDICT_SLOWER),
				(double)widest->solve.plan.step_ps * 1e-9);
	}
	if (idle && s->ask->vns < cluster->ndevices)
		hd_text_addf(why, "%u of %u devices stay idle: the step has %u virtual nodes\n", idle,
			cluster->ndevices, s->ask->vns);
	else if (idle)
		hd_text_addf(why, "%u of %u devices stay idle\n", idle, cluster->ndevices);
	return err;
}

enum hd_err hd_job_plan_data(struct hd_job_plan *plan, const struct hd_job_plan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_job_wish wishes[] = { { ask->stages > 1, "stages" }, { ask->chunks > 1, "chunks" },
		{ ask->tensor > 1, "tensor width" },
		{ ask->schedule && strcmp(ask->schedule, "data-parallel") != 0, "schedule" }, { ask->recompute == HD_RECOMPUTES_ALWAYS, "recomputation" },
		{ ask->deep, "depth (one stage)" }, { ask->replicas > 0, "replicas (one a device)" } };
	struct vn_sharing s = { .ask = ask, .arena = arena, .diag = diag };
	struct answer *chosen = hd_arena_take(arena, 2, sizeof *chosen);
	uint32_t nranks = 0;
	enum hd_err err = hd_job_plan_refuse(plan, wishes, sizeof wishes / sizeof *wishes, diag);

	plan->first = hd_arena_take(arena, 1, sizeof *plan->first);
	if (!err && (!plan->first || !chosen))
		err = no_memory(diag);
	err = err ? err : cost_kinds(&s);
	err = err ? err : choose(&s, &chosen[0], &chosen[1]);
	err = err ? err : ranks_of(plan, &chosen[0], &nranks, arena, diag);
	err = err ? err : alternate(&plan->skeleton, plan->counts, nranks, ask->vns, arena, diag);
	if (err)
		return err;
	plan->nstages = HD_WHOLE_MODEL;
	plan->whole = true;
	return explain(&s, &chosen[0], &chosen[1], &plan->why);
}
