/* stage_costs.h -- what ranges of cuts cost as stages of a pipeline: times, bytes, tied weights.
 *
 * Made of a profile and its cuts; planners compare ranges by it, the simulator (sim_plan.h) runs on it.
 *
 * 1. A stage is a range [first, last) of cuts. Its nodes are those that have run at cut last - 1 and had not
 *    at cut first - 1, which precedes it. Data sources and unused outputs, which cuts.h drops, belong to no
 *    stage.
 * 2. Times are picoseconds on a device of speed 1 (p50 of the profile), sizes bytes, all of one virtual node.
 *    Both are integers, so sums are exact and equal on every machine.
 * 3. Weights that nodes of one stage share under a name (`tied`) count once in it, those of the first such
 *    node. A group with nodes in several stages is a row of `tied`: each of them holds a copy.
 * 4. What W needs of the activations is act_w of each node, rounded down.
 *
 * Ownership: everything lies in the arena; the profile and the cuts are borrowed. Pure. */
#ifndef HD_COST_STAGE_COSTS_H
#define HD_COST_STAGE_COSTS_H

#include "cost/cuts.h"

struct hd_spread { int64_t mean, sd; };           /* ps; of measured times: mean 0 where none is known */

struct hd_stage_cost {
	int64_t f, i, w, r;                       /* B is i + w; r: to compute again what flag c dropped */
	int64_t saved, saved_w;                   /* kept from F to B; the part that W still needs after I */
	/* kept by F under flag c: the input, and what no R may compute again */
	int64_t kept;
	/* what enters from the stage before and goes to the next; gradients are as large */
	int64_t in, out;
	/* weights (a gradient has as many), optimizer state, the largest workspace */
	int64_t param, opt, work;
	int64_t step, add;                        /* ps of the update; of adding two gradients */
	int64_t group;                    /* of f, of i and of r: ps of sums within a tensor group */
	struct hd_spread of_f, of_i, of_w;        /* of whole stages (hd_stage_costs_make) alone */
};

/* holds[stage]; nstages of them */
struct hd_tied_group { const char *name; int64_t param; uint32_t nstages; bool *holds; };

struct hd_stage_costs {
	uint32_t nstages, ntied;
	struct hd_stage_cost *stage;              /* [nstages] */
	/* [ntied] those of several stages, in the order of the profile */
	struct hd_tied_group *tied;
	/* a pair takes ovl of its halves' sum; compute during a transfer comm_tax of itself */
	double ovl, comm_tax;
};

/* Sums up to each cut: any range in constant time (but for `work` and tied weights: a few nodes). */
struct hd_cut_sums {
	const struct hd_profile *profile;
	const struct hd_cuts *cuts;
	struct hd_stage_cost *upto;               /* [cuts->n] */
	uint32_t *by_work, nwork;                 /* nodes with workspace, the largest first */
	/* tied nodes, in the order of the profile */
	struct hd_cut_twins { const char *name; uint32_t *node, n; } *twins;
	uint32_t ntwins;
};

/* HD_E_INPUT: updates, additions, means or spreads of all nodes together pass 2^62 ps. */
HD_MUST_USE enum hd_err hd_cut_sums_make(struct hd_cut_sums *sums, const struct hd_profile *profile,
	const struct hd_cuts *cuts,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of [first, last): first < last <= cuts->n, and rule 1 holds. */
struct hd_stage_cost hd_cut_sums_range(const struct hd_cut_sums *sums, uint32_t first, uint32_t last);
/* What one node of the profile adds to a stage: zeros for one that is dropped, no weights for a later one
 * of a tied group. */
struct hd_stage_cost hd_cut_sums_node(const struct hd_cut_sums *sums, uint32_t node);
/* first - 1 precedes last - 1: the range can be a stage. */
bool hd_cut_sums_is_stage(const struct hd_cut_sums *sums, uint32_t first, uint32_t last);

/* Stage s is [first[s], first[s + 1]), the last one to the end; first[0] is 0. HD_E_INVAL: not rising, or
 * rule 1 broken. */
HD_MUST_USE enum hd_err hd_stage_costs_make(struct hd_stage_costs *costs, const struct hd_cut_sums *sums,
	const uint32_t *first, uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
