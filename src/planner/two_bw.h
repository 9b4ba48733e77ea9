/* two_bw.h -- how deep and how wide to run a job whose updates are delayed by one (2BW).
 *
 * The planner of PipeDream-2BW (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML
 * 2021), for `heddle plan 2bw`: p equal stages, each on d devices that are neighbours, p d <= n.
 *
 * 1. m = V/d must be whole and at least p. The paper's planner also chooses the micro-batch; here the size of
 *    a virtual node belongs to the job.
 * 2. Stages are cut where all that runs before is done before all that runs after (hd_2bw_cut()), each
 *    boundary at the cut nearest to its share of the time, ties earlier. |W|, A, A_in below are a stage's
 *    own: of equal stages the paper's |W|/p, A_total/p and A_in.
 * 3. Bytes a device needs: 2 |W| + p A + p A_in without recomputation, 2 |W| + A + p A_in with. (Two versions
 *    of the weights, p virtual nodes in flight. Gradients, optimizer state and workspace are not in the
 *    paper's formula.)
 * 4. Time of a virtual node, pipelined: the slowest stage's max(c T + transfers, sum over d / m), c = 1, or
 *    4/3 with recomputation; transfers 2 (A_in + A_out) over the link of neighbours. Not pipelined (p = 1):
 *    the sum over layers, that is nodes, of the same without transfers. A sum over d of a stage moves 2 (d -
 *    1)/d of |W|.
 * 5. Links: copies of a stage are neighbours, so they sum over the innermost level if d devices fit in its
 *    component, else over the outermost; stages send over the innermost if p d fit, else over the outermost.
 *    Devices are as slow and as small as the worst of the cluster.
 * 6. The largest d/time wins; ties: no recomputation, smaller p, smaller d. A choice whose virtual node takes
 *    more than 2^62 ps (53 days), or that needs more than 2^63 bytes, is left out and counted.
 *
 * Ownership: everything lies in the arena. Pure: equal arguments give equal bytes. */
#ifndef HD_PLANNER_TWO_BW_H
#define HD_PLANNER_TWO_BW_H

#include "cost/topology.h"
#include "cost/stage_costs.h"

struct hd_2bw_ask {
	uint32_t vns;                             /* V of a step; never 0 */
	uint32_t p;                               /* this depth alone; 0: any */
	/* bytes a device has, in place of the cluster's; 0: the cluster's */
	int64_t memory;
};

struct hd_2bw_plan {
	uint32_t p, d, m;
	bool recompute;
	uint32_t *first;                          /* [p] first cut of each stage */
	int64_t vn_ps;                            /* rule 4 */
	int64_t need, limit;                      /* bytes of the fullest device; limit 0: none is known */
	/* what GPipe (m in flight) and PipeDream-Flush (one version) would need there; gpipe -1: above
	 * 2^63 */
	int64_t gpipe, flush;
	uint64_t ntried, nfit, nlate;             /* late: left out by rule 6 */
	/* the best of p = 1, data parallel: d and rule 4's time; 0: none fits */
	uint32_t data_d; int64_t data_ps;
};

/* V virtual nodes take V/d of vn_ps. */
static inline double hd_2bw_step_s(const struct hd_2bw_plan *plan) { return (double)plan->vn_ps *
	plan->m / 1e12; }

/* HD_E_INVAL: `2bw needs m >= p; m = M, p = P` where p is asked for and no d allows it; nothing fits: the
 * smallest need; nothing remains but what rule 6 leaves out: one of these, and what it takes. */
HD_MUST_USE enum hd_err hd_2bw_plan(struct hd_2bw_plan *plan, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster,
	const struct hd_2bw_ask *ask, struct hd_arena *arena, struct hd_diag *diag);

/* Rule 2: first[0..p), false if the model has too few such cuts. `thin` is hd_2bw_thin_cuts(). For tests,
 * both. */
bool hd_2bw_cut(uint32_t *first, uint32_t p, const struct hd_cut_sums *sums, const uint32_t *thin,
	uint32_t nthin);
/* Cuts that all earlier ones precede and that precede all later ones, ascending: how many; thin has room
 * for cuts->n. */
uint32_t hd_2bw_thin_cuts(uint32_t *thin, const struct hd_cuts *cuts);

#endif
