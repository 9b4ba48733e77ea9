/* pace.h -- devices that compute nothing (`null`) sleep for as long as computing would take. Private to the
 * room.
 *
 * A worker may be given the times of the nodes of its training graph (hd_worker_spec.pace_ns). After each
 * phase a rank whose device computes nothing then sleeps for the sum of its times, divided by the speed of
 * the device. So any number of ranks can share one core, and the rest of a step is the runtime alone. Where
 * gradients are sent during the pass, each is final once the nodes up to its own have taken their time.
 *
 * No allocation, no state. Threads: the rank's. */
#ifndef HD_ENGINE_PACE_H
#define HD_ENGINE_PACE_H

#include "device/program.h"

struct hd_rank;

struct hd_waits { int64_t ns[4]; };        /* of full rows, by enum hd_run_phase; 0: no wait */

/* From the times of the graph's nodes, [nnodes]. */
void hd_waits_make(struct hd_waits *pace, const struct hd_program *program, const int64_t *node_ns);
/* What the program's phase takes on so many of its rows. */
void hd_rank_pace(const struct hd_rank *rank, const struct hd_waits *pace, enum hd_run_phase phase,
	const struct hd_program *program, const struct hd_bind *bind);
/* What the nodes of a run with `from` and `to` take: node_ns[nnodes]. */
void hd_rank_pace_nodes(const struct hd_rank *rank, const int64_t *node_ns, const struct hd_program *program,
	enum hd_run_phase phase, const struct hd_bind *bind);

#endif
