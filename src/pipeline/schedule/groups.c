#include "pipeline/staged.h"

#include <string.h>

/* Plans whose ranks lie on several workers (staged.h, rule 6). */

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for a plan of groups");
}

static bool has_peer(const struct hd_ins *ins)
{
	return hd_ins_uses(ins->op, '>') || hd_ins_uses(ins->op, '<');
}

/* An instruction as group k of n has it. */
static struct hd_ins spread_ins(const struct hd_ins *ins, uint32_t n, uint32_t k)
{
	struct hd_ins of = *ins;

	if (hd_ins_uses(ins->op, 's'))
		of.stage = (uint16_t)(ins->stage * n + k);
	if (has_peer(ins))
		of.peer = (uint16_t)(ins->peer * n + k);
	return of;
}

static enum hd_err spread_list(struct hd_ilist *to, const struct hd_ilist *from, uint32_t n, uint32_t k,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*to = (struct hd_ilist){ hd_arena_take(arena, (size_t)from->len + 1, sizeof *to->at), from->len,
		from->len + 1 };
	if (!to->at)
		return no_memory(diag);
	for (uint32_t i = 0; i < from->len; i++)
		to->at[i] = spread_ins(&from->at[i], n, k);
	return HD_OK;
}

static bool take(struct hd_plan *plan, struct hd_arena *arena)
{
	plan->worker = hd_arena_take(arena, plan->nranks, sizeof *plan->worker);
	plan->map = hd_arena_take(arena, plan->nvns, sizeof *plan->map);
	plan->owner = hd_arena_take(arena, (size_t)plan->nchunks + 1, sizeof *plan->owner);
	plan->first = hd_arena_take(arena, plan->nstages, sizeof *plan->first);
	plan->list = hd_arena_take(arena, plan->nranks, sizeof *plan->list);
	return plan->worker && plan->map && plan->owner && plan->first && plan->list;
}

enum hd_err hd_plan_spread(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t t, uint32_t groups,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_plan *from = plan;
	const uint32_t n = groups;
	struct hd_plan made = *plan;

	enum hd_err err = hd_plan_widen(plan, job, t, diag);
	if (err || n <= 1)
		return err;
	if (t % n || (uint64_t)from->nstages * n > UINT16_MAX || (uint64_t)from->nranks * n > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices of a rank on %u workers: the workers must divide the "
			"devices, and a plan has %d ranks at most", t, n, HD_MAX_RANKS);
	made.nranks *= n;
	made.nstages *= n;
	made.groups = n;
	made.tensor = t / n > 1 ? t / n : 0;
	if (!take(&made, arena))
		return no_memory(diag);
	for (uint32_t v = 0; v < made.nvns; v++)
		made.map[v] = from->map[v] * n;
	for (uint32_t c = 0; c < made.nchunks; c++)
		made.owner[c] = from->owner[c] * n;
	for (uint32_t s = 0; s < made.nstages; s++)
		made.first[s] = from->first[s / n];
	for (uint32_t r = 0; r < made.nranks && !err; r++) {
		made.worker[r] = from->worker[r / n];
		err = spread_list(&made.list[r], &from->list[r / n], n, r % n, arena, diag);
	}
	if (!err)
		*plan = made;
	return err;
}

/* What groups do not do alike. */
static enum hd_err refuse(struct hd_diag *diag, uint32_t rank, uint32_t n, const char *what)
{
	return hd_fail(diag, HD_E_BADPLAN,
		"plan: rank %u is group %u of %u, and %s: the groups of a stage run one list", rank, rank % n,
		n,
		what);
}

static enum hd_err compare(const struct hd_plan *plan, const struct hd_plan *folded, uint32_t r,
	struct hd_diag *diag)
{
	const uint32_t n = plan->groups, k = r % n;
	const struct hd_ilist *of = &plan->list[r], *lead = &folded->list[r / n];

	if (of->len != lead->len)
		return refuse(diag, r, n, "its list has another length than that of group 0");
	for (uint32_t i = 0; i < of->len; i++) {
		const struct hd_ins want = spread_ins(&lead->at[i], n, k);
		if (memcmp(&want, &of->at[i], sizeof want) != 0)
			return refuse(diag, r, n, "its list is not that of group 0");
	}
	return HD_OK;
}

/* The list of group 0, with numbers of stages and ranks. */
static enum hd_err fold_list(struct hd_ilist *to, const struct hd_plan *plan, uint32_t r,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = plan->groups;
	enum hd_err err = spread_list(to, &plan->list[r * n], 1, 0, arena, diag);

	for (uint32_t i = 0; i < to->len && !err; i++) {
		struct hd_ins *ins = &to->at[i];
		const bool stage = hd_ins_uses(ins->op, 's'), peer = has_peer(ins);
		if ((stage && (ins->stage % n || ins->stage >= plan->nstages)) ||
			(peer && (ins->peer % n || ins->peer >= plan->nranks)))
			return refuse(diag, r * n, n, "its list has stages or ranks of another group");
		ins->stage = stage ? (uint16_t)(ins->stage / n) : ins->stage;
		ins->peer = peer ? (uint16_t)(ins->peer / n) : ins->peer;
	}
	return err;
}

enum hd_err hd_plan_fold(struct hd_plan *folded, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t n = hd_plan_groups(plan);
	struct hd_plan made = *plan;
	enum hd_err err = HD_OK;

	if (n == 1) {
		*folded = *plan;
		return HD_OK;
	}
	if (plan->nranks % n || plan->nstages % n || !plan->first || plan->overlap)
		return hd_fail(diag, HD_E_BADPLAN, "plan: %u ranks and %u stages are no %u groups%s",
			plan->nranks, plan->nstages, n, plan->overlap ? " whose steps overlap" : "");
	made.nranks /= n;
	made.nstages /= n;
	made.groups = 0;
	made.tensor = hd_plan_width(plan) * n;
	if (!take(&made, arena))
		return no_memory(diag);
	for (uint32_t v = 0; v < made.nvns; v++)
		made.map[v] = plan->map[v] / n;
	for (uint32_t c = 0; c < made.nchunks; c++)
		made.owner[c] = plan->owner[c] / n;
	for (uint32_t s = 0; s < plan->nstages && !err; s++) {
		made.first[s / n] = plan->first[s / n * n];
		err = plan->first[s] == made.first[s / n] ? HD_OK : hd_fail(diag, HD_E_BADPLAN,
			"plan: the groups of stage %u begin at different nodes", s / n);
	}
	for (uint32_t r = 0; r < made.nranks && !err; r++) {
		made.worker[r] = plan->worker[r * n];
		err = fold_list(&made.list[r], plan, r, arena, diag);
	}
	for (uint32_t r = 0; r < plan->nranks && !err; r++)
		err = compare(plan, &made, r, diag);
	for (uint32_t v = 0; v < made.nvns && !err; v++)
		err = plan->map[v] % n ? hd_fail(diag, HD_E_BADPLAN,
			"plan: virtual node %u is mapped to rank %u, which is no group 0", v, plan->map[v]) :
			HD_OK;
	if (!err)
		*folded = made;
	return err;
}
