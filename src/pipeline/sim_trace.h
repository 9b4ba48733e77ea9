/* sim_trace.h -- a simulation as the flight file that a run would have written (trace/flight.h).
 *
 * One ring a rank, clock "simulated", times in nanoseconds from 0, every event with the flag SIMULATED:
 * OP with the instruction's place in the list, as the runtime writes it; WAIT before it with the reason; SEND
 * on the sender and RECV on the receiver of each transfer; STEP_BEGIN and STEP_END on rank 0. What reads
 * recorded files reads these.
 *
 * Pure: bytes in the arena, for the caller to write. */
#ifndef HD_PIPELINE_SIM_TRACE_H
#define HD_PIPELINE_SIM_TRACE_H

#include "pipeline/sim_plan.h"

/* The simulation was asked for spans. HD_E_INVAL: more ranks than a file has rings, more events than a
 * ring has slots. */
HD_MUST_USE enum hd_err hd_sim_trace(const struct hd_sim_plan *sim, const struct hd_sim_setting *setting,
	uint8_t **bytes, size_t *len,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
