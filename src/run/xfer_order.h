/* xfer_order.h -- what a recorded run's transfers are, and how urgent each would be with another comm.order:
 * the table that timeline/analyze/reorder.h replays by.
 *
 * 1. Rows are those of the transfer table of the plan's workers (protocol/transfers.h), urgencies those that
 *    a run with that order would settle (comm_settled.h) for the buckets that the run has. Those of the
 *    recording are the run's own (comm.settled).
 * 2. Nodes of the forward pass take what the run measured of them (kept_costs.h); of a run that measured
 *    nothing as much as their floating-point operations do of all.
 * 3. tac and search need times: HD_E_REFUSED where the run has none.
 * 4. random is one draw for each two workers, the same in all steps; a run that was recorded with it is
 *    refused: each of its steps had another order (plan/comm.h).
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_RUN_XFER_ORDER_H
#define HD_RUN_XFER_ORDER_H

#include "plan/plan.h"
#include "timeline/analyze/reorder.h"
#include "run/costs.h"

/* `costs` NULL: none were measured. `plan`: of the recorded steps. HD_E_REFUSED: stages, sums by pairs, one
 * worker; rule 4. */
HD_MUST_USE enum hd_err hd_xfer_order(struct hd_tl_order *order, const struct hd_task *task,
	const struct hd_run_costs *costs, const struct hd_plan *plan, enum hd_comm_order by,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
