/* port_forecast.h -- what links between machines add to a predicted step (forecast.h, rule 9). Private to the
 * room.
 *
 * 1. With costs->port_bytes_per_s the ranks of each worker are devices of one machine, and machines are
 *    joined by one level of links: the simulator moves activations and gradients over them.
 * 2. Sums of a bucket begin when the stages that make it have made their last gradient. Where each worker has
 *    the whole model they begin while the last backward pass goes on, node by node, as they are sent
 *    (worker/finals.h). A bucket into which a cut falls is of the stages on both sides.
 *
 * Pure; all in the arena. */
#ifndef HD_RUN_PORT_FORECAST_H
#define HD_RUN_PORT_FORECAST_H

#include "pipeline/sim_plan.h"
#include "run/step_end.h"

/* Are there links between the ranks of the plan? */
bool hd_has_ports(const struct hd_plan *plan, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders);
/* Rule 1. */
HD_MUST_USE enum hd_err hd_port_cluster(struct hd_cluster *cluster, const struct hd_plan *plan,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders, struct hd_arena *arena,
	struct hd_diag *diag);
/* Rule 2, of the simulated step (with spans): when the last sum is there; 0: none is exchanged. */
HD_MUST_USE enum hd_err hd_port_sums(double *done_ns, const struct hd_plan *plan,
	const struct hd_sim_plan *sim, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders, struct hd_arena *arena, struct hd_diag *diag);

#endif
