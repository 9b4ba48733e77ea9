/* param_rates.h -- what the job says of single parameters: their rate, their decay, whether they are trained
 * (optim.groups, optim.decay, optim.no_decay).
 *
 * 1. The first group that matches a parameter counts. Its rate is lr_scale times the step's, whatever the
 *    schedule, so a step has one rate and no worker needs another number of it; of a group with `lr` that is
 *    lr / optim.lr, rounded once to f32.
 * 2. Its decay is the group's; else none where optim.no_decay names it, or optim.decay names others; else
 *    optim.weight_decay.
 * 3. Names are those of whole tensors (graph/slices.h), so slices of one have the same.
 * 4. A pattern that names no parameter is refused, and a group of which other groups have everything.
 *
 * Pure; Ownership: tables lie in the arena given. */
#ifndef HD_ENGINE_PARAM_RATES_H
#define HD_ENGINE_PARAM_RATES_H

#include "graph/ir.h"
#include "job/job.h"

struct hd_param_rate { float lr_scale, decay; };

/* Freezes what a group freezes; of a graph with its adapters, before any pass. Names patterns of groups that
 * name nothing. */
HD_MUST_USE enum hd_err hd_param_rates_freeze(const struct hd_job *job, struct hd_graph *graph,
	struct hd_diag *diag);
/* [nparams]; NULL: all have the job's. */
HD_MUST_USE enum hd_err hd_param_rates_make(const struct hd_param_rate **rate, const struct hd_job *job,
	const struct hd_graph *graph, struct hd_arena *arena, struct hd_diag *diag);
/* "3 parameters at 0.1 times the rate, decay 0; ..." for a user's eyes, of what is trained. */
void hd_param_rates_print(const struct hd_param_rate *rate, const struct hd_graph *graph, float decay,
	struct hd_text *text);

static inline bool hd_param_rate_same(struct hd_param_rate a, struct hd_param_rate b)
{
	return a.lr_scale == b.lr_scale && a.decay == b.decay;
}

#endif
