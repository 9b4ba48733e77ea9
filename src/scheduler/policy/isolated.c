/* Every job gets 1/n of every type: what fairness is measured against. */
#include <math.h>

#include "scheduler/policy/int.h"

enum hd_err hd_isolated_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_isolated_finish(struct hd_policy *policy) { (void)policy; }

enum hd_err hd_isolated_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_collect c = { .out = out, .arena = arena };
	uint32_t present = 0;
	double x[HD_SCHED_TYPES];
	enum hd_err err = HD_OK;

	out->work_conserving = true;
	for (uint32_t i = 0; i < state->njobs; i++)
		present += !hd_never_whole(state, i);
	for (uint32_t i = 0; !err && i < state->njobs; i++) {
		if (hd_never_whole(state, i))
			continue;
		(void)hd_sched_isolated(state, i, state->jobs[i].rate, present,
			policy->set.fidelity == HD_FIDELITY_EXACT, x);
		for (uint32_t j = 0; !err && j < state->ntypes; j++) {
			struct hd_shape shape = hd_way_single(state, i, j);
			if (x[j] > 0 && state->jobs[i].rate[j] > 0)
				err = hd_collect(&c, &shape, x[j]);
		}
	}
	return err ? hd_fail(diag, err, "no memory for %u jobs", state->njobs) : HD_OK;
}
