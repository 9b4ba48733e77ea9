/* Max-min fairness: maximise the least z s / w; exact: the whole vector, level by level. */
#include <math.h>

#include "scheduler/policy/int.h"

enum hd_err hd_las_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_las_finish(struct hd_policy *policy) { (void)policy; }

static enum hd_err one_level(struct hd_policy_lp *pg, struct hd_shares *out, double *z)
{
	const struct hd_sched_state *s = pg->seen->state;
	double most = 0, *g = hd_arena_take(pg->arena, s->njobs, sizeof *g);

	if (!g)
		return hd_fail(pg->diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
	for (uint32_t i = 0; i < s->njobs; i++)
		most = fmax(most, s->jobs[i].weight / s->jobs[i].scale);
	for (uint32_t i = 0; i < s->njobs; i++) {
		z[i] = s->jobs[i].weight / s->jobs[i].scale / most;
		hd_program_promise(pg, i, 0);
	}
	enum hd_err err = hd_program_level(pg, z);
	if (!err)
		err = hd_program_solve(pg);
	if (!err)
		err = hd_program_prices(pg, out);
	if (!err)
		err = hd_program_shares(pg, out);
	if (err)
		return err;
	for (uint32_t i = 0; i < s->njobs; i++)
		g[i] = z[i] * hd_program_c(pg);
	hd_program_z(pg, z);
	return pg->seen->set->variant == HD_VARIANT_KINDS ? HD_OK : hd_middle(pg->seen,
		&(struct hd_middle){ .lo = g }, pg->arena, out);
}

static enum hd_err fill(struct hd_policy *policy, const struct hd_sched_state *state, bool entities,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_seen seen;
	struct hd_policy_lp pg = { 0 };
	struct hd_kinds kinds = { 0 };
	bool by_kind = policy->set.variant == HD_VARIANT_KINDS;
	double *z = hd_arena_take(arena, state->njobs, sizeof *z);
	enum hd_err err = z ? hd_see(&seen, policy, state, HD_FLAT_ONE, arena, diag) : hd_fail(diag,
		HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	out->work_conserving = true;
	err = hd_program_open(&pg, &seen, arena, diag);
	if (!err && by_kind)
		err = hd_kinds_open(&kinds, &pg);
	if (!err && policy->set.fidelity == HD_FIDELITY_GAVEL && !entities) {
		err = one_level(&pg, out, z);
		if (!err)
			hd_kinds_z(&kinds, &pg, z);
	} else if (!err) {
		err = hd_fill(&pg, entities, out, z);
		hd_kinds_dear(&kinds, &pg);
		if (!err)
			err = hd_program_settle(&pg, policy, out);
	}
	if (!err && by_kind)
		err = hd_kinds_shares(&kinds, &pg, out);
	if (!err)
		out->objective = hd_max_min(&seen, z);
	hd_program_close(&pg);
	return err;
}

enum hd_err hd_las_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	return fill(policy, state, false, arena, out, diag);
}

enum hd_err hd_hierarchy_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_hierarchy_finish(struct hd_policy *policy) { (void)policy; }

enum hd_err hd_hierarchy_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	return fill(policy, state, true, arena, out, diag);
}
