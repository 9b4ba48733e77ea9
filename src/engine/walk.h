/* walk.h -- runs the virtual nodes of the step at hand node by node, so that each node can be timed. Private
 * to the room: op_times.c and profile.c.
 *
 * 1. The rows are those of the step, taken as its LD instructions would take them; the step reads them again.
 * 2. No parameter, slot or counter changes; gradient buffers do, and the next step clears them.
 *
 * Workers of one device without lockstep, under a plan (HD_E_REFUSED, HD_E_INVAL). open/close, close also
 * after a failed open. Threads: the worker's caller. */
#ifndef HD_ENGINE_WALK_H
#define HD_ENGINE_WALK_H

#include "engine/worker_int.h"

struct hd_walk {
	struct hd_worker *worker;
	struct hd_rank *rank;
	struct hd_part part[HD_MAX_WAVE];
	struct hd_bind bind;
	uint32_t ntaken;
};

/* `nparts` virtual nodes from the first one on; 0: the wave of the worker's plan. */
HD_MUST_USE enum hd_err hd_walk_open(struct hd_walk *walk, struct hd_worker *worker, uint32_t nparts,
	struct hd_diag *diag);
void hd_walk_close(struct hd_walk *walk);
/* The node at `place` of a phase's order, drained. What lies before has run. */
HD_MUST_USE enum hd_err hd_walk_run(struct hd_walk *walk, enum hd_run_phase phase, uint32_t place,
	struct hd_diag *diag);

#endif
