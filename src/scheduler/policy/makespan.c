/* Makespan: the smallest T in which every job could end, e_i >= n_i / T.
 *
 * gavel: bisection of [100, 1e6] while hi > 1.05 lo, as published (0 to 5 % above the least); [1e6, 1e7] and
 * on when nothing fits. The shares are the middle of all that end by then (centre.c), as the published
 * solver's are. exact: one program, max r with e_i >= r n_i, T = 1 / r; then the rest of the capacity by
 * the second promise. */
#include <math.h>

#include "scheduler/policy/int.h"

enum hd_err hd_makespan_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_makespan_finish(struct hd_policy *policy) { (void)policy; }

static void promise(struct hd_policy_lp *pg, double r)
{
	const struct hd_sched_state *s = pg->seen->state;

	for (uint32_t i = 0; i < s->njobs; i++)
		hd_program_promise(pg, i, r * s->jobs[i].steps_left / pg->seen->p[i]);
}

/* Of all shares that end by t. */
static enum hd_err inside(struct hd_policy_lp *pg, double t, struct hd_shares *out)
{
	const struct hd_sched_state *s = pg->seen->state;
	double *lo = hd_arena_take(pg->arena, s->njobs, sizeof *lo);

	if (!lo)
		return hd_fail(pg->diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
	for (uint32_t i = 0; i < s->njobs; i++)
		lo[i] = s->jobs[i].steps_left / pg->seen->p[i] / t;
	return hd_middle(pg->seen, &(struct hd_middle){ .lo = lo }, pg->arena, out);
}

static enum hd_err bisect(struct hd_policy_lp *pg, struct hd_shares *out, double *found)
{
	double lo = 100, hi = 1e6, last = hi;
	bool any = false;

	for (;;) {
		while (1.05 * lo < hi) {
			double t = (lo + hi) / 2;
			promise(pg, 1 / t);
			enum hd_err err = hd_program_solve(pg);
			if (err)
				return err;
			bool fits = pg->last.status == HD_LP_OPTIMAL;
			if (fits && (err = hd_program_shares(pg, out)))
				return err;
			any |= fits;
			*found = fits ? t : *found;
			hi = fits ? t : hi;
			lo = fits ? lo : t;
		}
		if (any)
			return inside(pg, *found, out);
		if (last >= 1e300)
			return hd_fail(pg->diag, HD_E_AGAIN, "no makespan up to %g s", last);
		lo = last;
		hi = last *= 10;
	}
}

static enum hd_err exact(struct hd_policy_lp *pg, struct hd_policy *policy, double *g, struct hd_shares *out)
{
	const struct hd_sched_state *s = pg->seen->state;
	double most = 0, r;
	enum hd_err err;

	for (uint32_t i = 0; i < s->njobs; i++)
		if (!pg->seen->absent[i])
			most = fmax(most, s->jobs[i].steps_left / pg->seen->p[i]);
	for (uint32_t i = 0; i < s->njobs; i++) {
		g[i] = most > 0 && !pg->seen->absent[i] ? s->jobs[i].steps_left / pg->seen->p[i] / most : 0;
		hd_program_promise(pg, i, 0);
	}
	err = hd_program_level(pg, g);
	if (!err)
		err = hd_program_solve(pg);
	if (!err)
		err = hd_program_prices(pg, out);
	if (err)
		return err;
	r = hd_program_c(pg);
	out->objective = r > 0 ? most / r : 0;
	for (uint32_t i = 0; i < s->njobs; i++)
		hd_program_promise(pg, i, r * g[i] * (1 - 1e-9));
	err = hd_program_level(pg, NULL);
	if (!err)
		err = hd_program_second(pg);
	return err ? err : hd_program_settle(pg, policy, out);
}

enum hd_err hd_makespan_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_seen seen;
	struct hd_policy_lp pg = { 0 };
	double *g = hd_arena_take(arena, state->njobs, sizeof *g);
	enum hd_err err = g ? hd_see(&seen, policy, state, HD_FLAT_REFERENCE, arena, diag) : hd_fail(diag,
		HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (err)
		return err;
	out->work_conserving = true;
	err = hd_program_open(&pg, &seen, arena, diag);
	if (!err && seen.npresent)
		err = policy->set.fidelity == HD_FIDELITY_GAVEL ? bisect(&pg, out, &out->objective) :
			exact(&pg, policy, g, out);
	hd_program_close(&pg);
	return err;
}
