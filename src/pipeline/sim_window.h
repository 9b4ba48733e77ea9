/* sim_window.h -- one step of a pipeline whose steps overlap (window.h), simulated as a step of many.
 *
 * Such a step is nowhere drained: its first forwards are run while the step before ends, and it ends with the
 * first ones of the next. So a few steps are simulated one behind the other, and one of them is cut out.
 *
 * 1. All ranks meet for the norm at the end of each step. The step that is cut out lasts from the end of one
 *    such meeting, after which ranks update, to the end of the next; there all ranks begin at 0, and all end
 *    with the makespan. It is the last but one, which neither fills nor drains.
 * 2. Times count from its beginning. What is under way then, or when it ends, is there for that part of its
 *    time. Virtual nodes from V on are of the next step.
 * 3. Each rank's work and idle times add up to the makespan, so sim_why.h explains it as any step. Memory at
 *    the worst time is that of all steps, with the earlier versions of the weights that are state; what links
 *    carried is what they carry in a step on average.
 *
 * Pure; memory is the arena's. */
#ifndef HD_PIPELINE_SIM_WINDOW_H
#define HD_PIPELINE_SIM_WINDOW_H

#include "pipeline/sim_plan.h"

/* A stage a rank, of which each has nvns virtual nodes. */
struct hd_sim_windowed {
	uint32_t p, nvns;
	const bool *again;                /* [p] the rank keeps its input alone; NULL: none does */
	bool last_reads_newest;           /* stash: the last stage has no earlier version, all others one */
};

/* `set` as for any schedule of p stages; its steps and its job do not count, and spans are made whether they
 * are asked for or not. HD_E_INVAL: there are too few virtual nodes (hd_window_fits()). */
HD_MUST_USE enum hd_err hd_sim_window(struct hd_sim_plan *out, const struct hd_sim_windowed *ask,
	const struct hd_sim_setting *set, struct hd_arena *arena, struct hd_diag *diag);

#endif
