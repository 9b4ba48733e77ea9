/* problem.h -- what a job trains on, as one file: another program that reads it begins where we begin and
 * sees the same rows.
 *
 * `bench step --save` writes it; bench/torch_step.py trains from it and compares its losses with ours.
 *
 * A safetensors file of
 *   NAME          parameters and buffers before the first step, under the names of `model export` (export.h)
 *   stepS.FIELD   the rows of step S in their order, [rows, extents of a sample]; S counts from 0, FIELD is
 *   an input of the graph
 *   metadata      what every export says, and `job`: the resolved job as JSON
 *
 * 1. Rows are those that the virtual nodes of a step are given, one after the other: drawn, ordered and
 *    transformed as there. How many virtual nodes there are does not change them.
 * 2. All batches lie in memory at once; more than HD_PROBLEM_BYTES of them are refused with the numbers.
 *
 * Threads: one. */
#ifndef HD_RUN_PROBLEM_H
#define HD_RUN_PROBLEM_H

#include "graph/state.h"
#include "engine/task.h"

enum { HD_PROBLEM_BYTES = 1 << 30 };      /* a file that a script loads whole */

/* `state`: of a worker that has made no step. */
HD_MUST_USE enum hd_err hd_problem_write(struct hd_fs *fs, const struct hd_task *task,
	const struct hd_state *state, uint64_t nsteps,
	const char *path, struct hd_diag *diag);

#endif
