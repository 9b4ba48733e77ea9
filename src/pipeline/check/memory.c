/* K22: what a rank needs, by the simulator that planners judge with. */
#include "pipeline/check/int.h"

#include "pipeline/sim_plan.h"

/* Of lists without findings; `rank` counts tensor groups where there are any. */
enum hd_err hd_lists_memory(const struct hd_lists *l, const struct hd_schedule_rules *rules,
	struct hd_diag *diag)
{
	const struct hd_sim_setting set = { .costs = l->job->costs, .transport = rules->transport,
		.credits = rules->credits, .job = l->job };
	struct hd_lists ran = *l;
	struct hd_sim_plan sim;

	if (l->job->costs->nstages != l->s->nstages)
		return hd_fail(diag, HD_E_INVAL, "costs of %u stages for lists of %u", l->job->costs->nstages,
			l->s->nstages);
	enum hd_err err = hd_sim_plan(&sim, l->s, &set, l->arena, diag);
	for (uint32_t r = 0; !err && r < sim.ran.nranks; r++) {
		const struct hd_sim_share *k = &sim.rank[r];
		const int64_t *at = k->at_peak;
		if (l->job->memory[r] <= 0 || k->peak <= l->job->memory[r] ||
			k->peak_at >= sim.ran.list[r].len)
			continue;
		ran.s = &sim.ran;
		hd_lists_say(&ran, "K22", r, k->peak_at,
			"rank %u would need %lld of %lld bytes at #%u: "
			"weights %lld, optimizer %lld, workspace %lld, "
			"versions %lld, gradient partials %lld, activations %lld, buffers %lld, shadows "
			"%lld", r,
			(long long)k->peak, (long long)l->job->memory[r],
			k->peak_at, (long long)at[HD_MEMORY_WEIGHTS], (long long)at[HD_MEMORY_OPTIMIZER],
			(long long)at[HD_MEMORY_WORKSPACE],
			(long long)at[HD_MEMORY_VERSIONS], (long long)at[HD_MEMORY_PARTIALS],
			(long long)at[HD_MEMORY_ACTIVATIONS],
			(long long)at[HD_MEMORY_SLOTS], (long long)at[HD_MEMORY_SHADOWS]);
	}
	return err;
}
