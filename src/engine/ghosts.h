/* ghosts.h -- which rows the intervals of one worker read of another's: what they send one another where rows
 * meet (meeting.h). These are the halo lists of the prepared graph (data/halo.h), by worker.
 *
 * Each virtual node has a list of ghosts, rows of the step that its edges read (data/graph_layout.h). A
 * message carries those rows of the lists of the receiver's virtual nodes that the sender's virtual nodes
 * own, each once, ascending. Both ends derive this list, so the message has rows alone, without their
 * numbers.
 *
 * Pure. */
#ifndef HD_ENGINE_GHOSTS_H
#define HD_ENGINE_GHOSTS_H

#include <stdint.h>

#include "base/arena.h"

/* Ghosts of all virtual nodes, ghost[nvns][each]: rows of the step, -1 none. `rows`: of a virtual node. */
struct hd_ghosts { const int32_t *ghost; uint64_t each, rows; uint32_t nvns; };
struct hd_ghost_rows { uint32_t *row, n; };

/* worker[nvns] is that of each virtual node. The list lies in the arena. */
HD_MUST_USE enum hd_err hd_ghost_rows_make(const struct hd_ghosts *ghosts, const uint16_t *worker,
	uint16_t from, uint16_t to, struct hd_ghost_rows *rows, struct hd_arena *arena, struct hd_diag *diag);
/* How many rows each of the workers sends, to all others together: what its lists have. */
HD_MUST_USE enum hd_err hd_ghost_rows_count(const struct hd_ghosts *ghosts, const uint16_t *worker,
	uint16_t nworkers, uint64_t *sent, struct hd_diag *diag);

#endif
