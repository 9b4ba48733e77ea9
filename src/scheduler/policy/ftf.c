/* Finish-time fairness (Themis): the least largest rho_i, how late a job ends against a share of its own.
 *
 * rho_i = (a_i + n_i / e_i) / D_i with D_i = C_i + n_i / e_iso_i; C_i grows with each call by the time that
 * the steps since the last one would have taken in isolation. Ours: rho_i / w_i counts.
 *
 * For a rho the program max c, e_i >= c n_i / (rho D_i - a_i), says whether it can be had (c >= 1). Instead
 * of a bisection each rho is the one that the shares before it reach (isolated ones at first): every step is
 * a feasible point below the last and ends where c is 1, mostly after 3 to 6 programs.
 *
 * gavel: then the middle of all shares with this rho (centre.c), with promises twice: in the published
 * program each stands in the cone of 1 / e and in the row of rho, and with 1 / e free between the two what
 * is left of their logarithms is 2 log (e - least e) - log e. */
#include <math.h>

#include "scheduler/policy/int.h"

enum { HD_FTF_STEPS = 100 };

struct past { uint64_t id; double c, steps, iso; };

enum hd_err hd_ftf_init(struct hd_policy *policy, struct hd_diag *diag)
{
	(void)diag;
	*(struct hd_ledger *)policy->memory = (struct hd_ledger){ .size = sizeof(struct past) };
	return HD_OK;
}

void hd_ftf_finish(struct hd_policy *policy) { hd_ledger_finish(policy->memory); }

static enum hd_err remember(struct hd_ledger *ledger, const struct hd_seen *seen, double *d,
	struct hd_diag *diag)
{
	const struct hd_sched_state *s = seen->state;

	hd_ledger_keep(ledger, s);
	for (uint32_t i = 0; i < s->njobs; i++) {
		const struct hd_sched_job *job = &s->jobs[i];
		struct past *past = seen->absent[i] ? hd_ledger_find(ledger, job->id) : hd_ledger_add(ledger,
			job->id);
		d[i] = 1;
		if (seen->absent[i])
			continue;
		if (!past)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
		if (past->iso > 0)
			past->c += (past->steps - job->steps_left) / past->iso;
		past->steps = job->steps_left;
		past->iso = seen->iso[i];
		d[i] = (past->c + job->steps_left / seen->iso[i]) * (seen->set->published ? 1 : job->weight);
	}
	return HD_OK;
}

/* The largest rho of shares that come to z; of the isolated ones if z is NULL. */
static double worst(const struct hd_seen *seen, const double *d, const double *z)
{
	double rho = 0;

	for (uint32_t i = 0; i < seen->state->njobs; i++)
		if (!seen->absent[i])
			rho = fmax(rho, (seen->state->jobs[i].age_s + seen->state->jobs[i].steps_left / (z ?
				z[i] * seen->p[i] : seen->iso[i])) / d[i]);
	return rho;
}

/* Steps/s over P that a job needs for this rho. */
static double needs(const struct hd_seen *seen, uint32_t i, const double *d, double rho)
{
	return seen->absent[i] ? 0 : seen->state->jobs[i].steps_left / (rho * d[i] -
		seen->state->jobs[i].age_s) / seen->p[i];
}

static enum hd_err lower(struct hd_policy_lp *pg, const double *d, double *g, double *z, double *rho,
	struct hd_shares *out)
{
	uint32_t n = pg->seen->state->njobs;
	enum hd_err err = HD_OK;
	double next;

	for (uint32_t step = 0; !err && step < HD_FTF_STEPS; step++) {
		double most = 0;
		for (uint32_t i = 0; i < n; i++) {
			g[i] = needs(pg->seen, i, d, *rho);
			most = fmax(most, g[i]);
		}
		for (uint32_t i = 0; i < n; i++)
			g[i] /= most;
		err = hd_program_level(pg, g);
		if (!err)
			err = hd_program_solve(pg);
		if (!err)
			err = hd_program_prices(pg, out);
		if (!err)
			err = hd_program_shares(pg, out);
		if (err)
			break;
		hd_program_z(pg, z);
		next = worst(pg->seen, d, z);
		bool ends = hd_program_c(pg) <= most * (1 + 1e-11) || next >= *rho * (1 - 1e-12);
		*rho = fmin(*rho, next);
		if (ends)
			break;
	}
	return err;
}

enum hd_err hd_ftf_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	struct hd_seen seen;
	struct hd_policy_lp pg = { 0 };
	double *d = hd_arena_take(arena, state->njobs, sizeof *d),
		*g = hd_arena_take(arena, state->njobs, sizeof *g);
	double *z = hd_arena_take(arena, state->njobs, sizeof *z), rho;
	enum hd_err err = d && g && z ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs",
		state->njobs);

	if (!err)
		err = hd_see(&seen, policy, state, HD_FLAT_REFERENCE, arena, diag);
	if (!err)
		err = remember(policy->memory, &seen, d, diag);
	if (err)
		return err;
	out->work_conserving = true;
	err = hd_program_open(&pg, &seen, arena, diag);
	if (err || !seen.npresent) {
		hd_program_close(&pg);
		return err;
	}
	for (uint32_t i = 0; i < state->njobs; i++)
		hd_program_promise(&pg, i, 0);
	rho = worst(&seen, d, NULL);
	err = lower(&pg, d, g, z, &rho, out);
	out->objective = rho;
	if (!err && policy->set.fidelity == HD_FIDELITY_EXACT) {
		for (uint32_t i = 0; i < state->njobs; i++)
			hd_program_promise(&pg, i, needs(&seen, i, d, rho * (1 + 1e-9)));
		err = hd_program_level(&pg, NULL);
		if (!err)
			err = hd_program_second(&pg);
		if (!err)
			err = hd_program_settle(&pg, policy, out);
	}
	if (!err && policy->set.fidelity == HD_FIDELITY_GAVEL) {
		for (uint32_t i = 0; i < state->njobs; i++)
			g[i] = needs(&seen, i, d, rho);
		err = hd_middle(&seen, &(struct hd_middle){ .lo = g, .v = 2 }, arena, out);
	}
	hd_program_close(&pg);
	return err;
}
