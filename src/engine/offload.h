/* offload.h -- activations of a stage in a file, between the forward and the backward of a virtual node.
 * Private to the room.
 *
 * The instruction OFF writes what the backward pass reads of a cell's activations to a file without a name
 * and gives the cell's arena back; ON takes an arena and reads them in again. Memory of a device is memory of
 * its process, so the place for what leaves it is a file (as for state that a worker does not hold, store.h):
 * its pages are the system's, which writes them to disk when it needs memory, and no part of what a process
 * takes.
 *
 * 1. Only what a forward pass wrote and a backward pass reads is moved, as spans of the arena: nothing else
 *    in the arena has a meaning between the two, and pages that nothing writes to stay so.
 * 2. A seat has as many places in the file as it has virtual nodes away at once, counted from its list
 *    (pipe_count.c); so it has arenas for those that are here.
 * 3. Input of a stage stays where it came to lie, in its mail.
 * 4. A rank moves its own cells, in its own time: no bit of them changes, and no other rank sees it.
 *
 * Ownership: the file is the pipe's, from hd_offload_take() to hd_offload_give(). */
#ifndef HD_ENGINE_OFFLOAD_H
#define HD_ENGINE_OFFLOAD_H

#include "base/arena.h"
#include "sys/memory.h"

struct hd_graph_spread;
struct hd_pipe;
struct hd_pipe_stage;
struct hd_cell;

/* Places of a seat in the file: free ones are a stack. */
struct hd_offload_pool { uint32_t *free, nfree, cap; uint64_t at_bytes; };

/* What a forward pass of the stage leaves to the backward pass, and the first `nout` of the values that it
 * sends: [nkept] spans of an arena. */
HD_MUST_USE enum hd_err hd_offload_find(struct hd_pipe_stage *stage, const struct hd_graph_spread *spread,
	uint32_t nout, struct hd_arena *arena, struct hd_diag *diag);
/* Makes the file in `folder`, where some seat needs places. */
HD_MUST_USE enum hd_err hd_offload_take(struct hd_pipe *pipe, const char *folder, struct hd_arena *arena,
	struct hd_diag *diag);
void hd_offload_give(struct hd_pipe *pipe);
void hd_offload_clear(struct hd_pipe *pipe);        /* all places are free: before a step */

/* From the cell's arena into a place; from its place into the arena that it has again. `rows`: the virtual
 * node has some. */
HD_MUST_USE enum hd_err hd_offload_out(struct hd_pipe *pipe, struct hd_cell *cell, uint32_t stage, bool rows,
	struct hd_diag *diag);
/* Of a cell whose activations were moved before a loss: from the place that it had then (rest.h). */
HD_MUST_USE enum hd_err hd_offload_back(struct hd_pipe *pipe, struct hd_cell *cell, uint32_t stage, bool rows,
	struct hd_diag *diag);

#endif
