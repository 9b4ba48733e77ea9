/* dense.h -- a dense task ready to be computed: its graph, and a device for it.
 *
 * Function workers compute with it, and so does the owner of tasks where no function does: the same code, so
 * the same bits.
 *
 * 1. A task's graph has inputs and outputs and nothing else: no parameters, no buffers, no ops on edges, one
 *    phase. Weights are inputs of fixed extents; a gradient's part is an output.
 * 2. Kernels are our own, by the name of their instruction set: "avx512", "avx2", "portable". One that the
 *    processor lacks is HD_E_REFUSED. All have equal bits (device/kernel.h, 4).
 *    A *proof* is what they answer on HD_FN_PROOF_ROWS drawn rows: a worker compares its own with the owner's
 *    before any input comes, once for a graph, so that kernels of another version are met there, not in a
 *    run's bits.
 * 3. Tensors of a task are its inputs, then its outputs, in the order of the graph.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: one. */
#ifndef HD_FUNCTIONS_DENSE_H
#define HD_FUNCTIONS_DENSE_H

#include "sys/clock.h"
#include "device/program.h"
#include "functions/message.h"

enum { HD_FN_PROOF_ROWS = 7 };            /* no multiple of any tile's rows */

/* A task that is ready. */
struct hd_dense {
	struct hd_arena arena;
	struct hd_graph graph;
	struct hd_layout layout;          /* of no parameters */
	struct hd_program program;
	struct hd_device *device;         /* owned */
	void *memory;                     /* owned by the device: what a run needs */
	uint64_t rows;
	struct hd_hash name;              /* of text, rows and kernels */
	struct hd_hash proof;             /* kept by a worker; of no digest: not known yet */
};

/* Are there kernels of that name here? HD_E_REFUSED: the processor lacks them; HD_E_INVAL: none has. */
HD_MUST_USE enum hd_err hd_dense_has_kernels(const char *kernels, struct hd_diag *diag);
/* By kernels, rows and text of `work`. HD_E_INPUT: the text is no dense task. */
HD_MUST_USE enum hd_err hd_dense_open(struct hd_dense *dense, const struct hd_fn_work *work,
	struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_dense_close(struct hd_dense *dense);
/* What `name` of a task like this is. */
struct hd_hash hd_dense_name(const struct hd_fn_work *work);
/* Fills the tensors of `work` as the graph has them; digests are the caller's. */
HD_MUST_USE enum hd_err hd_dense_tensors(const struct hd_dense *dense, struct hd_fn_work *work,
	struct hd_diag *diag);
/* Are the tensors of `work` those of the graph? [HD_E_INPUT] */
HD_MUST_USE enum hd_err hd_dense_fits(const struct hd_dense *dense, const struct hd_fn_work *work,
	struct hd_diag *diag);
/* at[i]: bytes of tensor i, inputs read and outputs written. HD_E_AGAIN: `until_ns` of the clock came before
 * the end; it is looked at between ops. */
HD_MUST_USE enum hd_err hd_dense_run(struct hd_dense *dense, const struct hd_fn_work *work, void *const *at,
	struct hd_clock *clock, int64_t until_ns, struct hd_diag *diag);
/* Digest of what the kernels of `work` make of its graph, on few rows: by the text and the kernels alone. */
HD_MUST_USE enum hd_err hd_dense_proof(const struct hd_fn_work *work, struct hd_clock *clock,
	int64_t until_ns, struct hd_hash *proof, struct hd_diag *diag);
/* Over all outputs: what a COMMIT names. */
struct hd_hash hd_dense_digest(const struct hd_fn_work *work, void *const *at);

#endif
