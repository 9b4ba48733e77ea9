#include "plan/plan.h"

#include <string.h>

static enum hd_err check_job(const struct hd_plan_job *job, uint32_t nranks, struct hd_diag *diag)
{
	if (nranks == 0 || nranks > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_INVAL, "a plan for %u devices: 1 to %d are possible", nranks,
			HD_MAX_RANKS);
	if (job->nvns == 0 || job->nvns > HD_MAX_VNS)
		return hd_fail(diag, HD_E_INVAL, "a plan for %u virtual nodes: 1 to %d are possible",
			job->nvns, HD_MAX_VNS);
	if (job->nstages != HD_WHOLE_MODEL)
		return hd_fail(diag, HD_E_INVAL, "a data-parallel plan has one stage, the job has %u",
			job->nstages);
	return HD_OK;
}

static enum hd_err no_memory(struct hd_diag *diag, const struct hd_plan *plan)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for a plan of %u virtual nodes on %u devices", plan->nvns,
		plan->nranks);
}

/* The arrays of a plan whose counts are set, zeroed (for makers and the parser). */
static enum hd_err take_arrays(struct hd_plan *plan, struct hd_arena *arena, struct hd_diag *diag)
{
	plan->worker = hd_arena_take(arena, plan->nranks, sizeof *plan->worker);
	plan->map = hd_arena_take(arena, plan->nvns, sizeof *plan->map);
	plan->owner = hd_arena_take(arena, (size_t)plan->nchunks + 1, sizeof *plan->owner);
	plan->list = hd_arena_take(arena, plan->nranks, sizeof *plan->list);
	return plan->worker && plan->map && plan->owner && plan->list ? HD_OK : no_memory(diag, plan);
}

static void append(struct hd_ilist *list, struct hd_ins ins) { list->at[list->len++] = ins; }

static void write_lockstep(struct hd_plan *plan)
{
	for (uint32_t v = 0; v < plan->nvns; v++)
		append(&plan->list[plan->map[v]], (struct hd_ins){ .op = HD_INS_LD, .vn = v });
	for (uint32_t r = 0; r < plan->nranks; r++) {
		append(&plan->list[r], (struct hd_ins){ .op = HD_INS_FL });
		append(&plan->list[r], (struct hd_ins){ .op = HD_INS_BL });
	}
}

/* A wave is loaded, computed and folded before the next is begun. It ends where the rank's next virtual
 * node is not the next one of all: rows of a wave lie one after the other. */
static void write_waves(struct hd_plan *plan, uint32_t wave)
{
	static const uint8_t of_vn[] = { HD_INS_LD, HD_INS_F, HD_INS_B };
	uint32_t end;

	for (uint32_t v = 0; v < plan->nvns; v = end) {
		for (end = v + 1; end < plan->nvns && end - v < wave && plan->map[end] == plan->map[v]; end++)
			;
		for (size_t i = 0; i < sizeof of_vn; i++)
			for (uint32_t k = v; k < end; k++)
				append(&plan->list[plan->map[v]], (struct hd_ins){ .op = of_vn[i], .vn = k });
	}
}

static void write_ends(struct hd_plan *plan)
{
	for (uint32_t r = 0; r < plan->nranks; r++) {
		append(&plan->list[r], (struct hd_ins){ .op = HD_INS_RED });
		append(&plan->list[r], (struct hd_ins){ .op = HD_INS_NORM });
		append(&plan->list[r], (struct hd_ins){ .op = HD_INS_STEP, .ver = HD_VER_RULE });
	}
}

static enum hd_err make(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t nranks,
	const uint32_t *map,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_plan p = { .nranks = nranks, .nstages = job->nstages, .nvns = job->nvns,
		.nchunks = job->nchunks, .cause = "" };
	enum hd_err err = take_arrays(&p, arena, diag);

	if (err)
		return err;
	for (uint32_t v = 0; v < job->nvns; v++) {
		p.map[v] = map[v];
		p.list[map[v]].cap += 3;
	}
	for (uint32_t c = 0; c < job->nchunks; c++)
		p.owner[c] = (uint32_t)((uint64_t)c * nranks / job->nchunks);
	for (uint32_t r = 0; r < nranks; r++) {
		struct hd_ilist *list = &p.list[r];
		list->cap += 5;
		list->at = hd_arena_take(arena, list->cap, sizeof *list->at);
		if (!list->at)
			return no_memory(diag, &p);
	}
	if (job->lockstep)
		write_lockstep(&p);
	else
		write_waves(&p, job->wave ? job->wave : 1);
	write_ends(&p);
	*plan = p;
	return HD_OK;
}

enum hd_err hd_plan_of_map(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t nranks,
	const uint32_t *map, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = check_job(job, nranks, diag);

	for (uint32_t v = 0; !err && v < job->nvns; v++)
		if (map[v] >= nranks)
			err = hd_fail(diag, HD_E_INVAL,
				"virtual node %u is mapped to device %u, there are %u", v, map[v], nranks);
	return err ? err : make(plan, job, nranks, map, arena, diag);
}

enum hd_err hd_plan_data(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t nranks,
	const uint32_t *counts, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = check_job(job, nranks, diag);
	uint64_t total = 0;

	for (uint32_t r = 0; !err && counts && r < nranks; r++)
		total += counts[r];
	if (!err && counts && total != job->nvns)
		err = hd_fail(diag, HD_E_INVAL, "the devices are given %llu virtual nodes, the job has %u",
			(unsigned long long)total, job->nvns);
	uint32_t *map = err ? NULL : hd_arena_take(arena, job->nvns, sizeof *map);
	if (!err && !map)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", job->nvns);
	for (uint32_t r = 0, v = 0; !err && r < nranks; r++) {
		uint32_t count = counts ? counts[r] : job->nvns / nranks + (r < job->nvns % nranks);
		for (uint32_t i = 0; i < count; i++)
			map[v++] = r;
	}
	return err ? err : make(plan, job, nranks, map, arena, diag);
}
