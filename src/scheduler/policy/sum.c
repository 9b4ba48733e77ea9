/* Most throughput: published, the sum of e_i in steps, which favours jobs of many small steps; ours, the
 * sum of w_i z_i. */
#include "scheduler/policy/int.h"

enum hd_err hd_sum_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_sum_finish(struct hd_policy *policy) { (void)policy; }

static double steps(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_shape *s = &pg->shape[k];
	double sum = 0;

	(void)context;
	for (int m = 0; m < s->nmembers; m++)
		sum += pg->gain[k][m] * pg->seen->p[s->member[m]];
	return sum;
}

static double steps_of(const struct hd_shape *shape, const double rate[2], const void *context)
{
	(void)context;
	return rate[0] + (shape->nmembers == 2 ? rate[1] : 0);
}

static double normalised(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_shape *s = &pg->shape[k];
	double sum = 0;

	(void)context;
	for (int m = 0; m < s->nmembers; m++)
		sum += pg->seen->state->jobs[s->member[m]].weight * pg->gain[k][m];
	return sum;
}

enum hd_err hd_sum_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	struct hd_seen seen;
	struct hd_policy_lp pg = { 0 };
	hd_worth *worth = policy->set.published || policy->set.fidelity == HD_FIDELITY_GAVEL ? steps :
		normalised;
	enum hd_err err = hd_see(&seen, policy, state, HD_FLAT_ONE, arena, diag);

	if (err)
		return err;
	out->work_conserving = true;
	err = hd_program_open(&pg, &seen, arena, diag);
	if (!err) {
		hd_program_worth(&pg, worth, NULL);
		err = hd_program_solve(&pg);
	}
	if (!err)
		err = hd_program_prices(&pg, out);
	if (!err) {
		out->objective = pg.last.objective;
		err = policy->set.fidelity == HD_FIDELITY_GAVEL ? hd_program_shares(&pg, out) :
			hd_program_row(&pg, worth, NULL, out->objective * (1 - 1e-9));
	}
	if (!err && policy->set.fidelity == HD_FIDELITY_EXACT)
		err = hd_program_settle(&pg, policy, out);
	else if (!err && policy->set.variant != HD_VARIANT_KINDS)
		err = hd_middle(&seen, &(struct hd_middle){ .worth = steps_of, .least = out->objective },
			arena, out);
	hd_program_close(&pg);
	return err;
}
