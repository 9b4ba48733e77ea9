/* trial.h -- dense tasks through an owner, compared bit by bit with the same tasks computed here.
 *
 * `heddle bench functions` is its user: what a trainer does with an owner, in small.
 *
 * A task is a layer with its gradient: y = relu(x w), dw = x^T dy. Tensors are drawn by (seed, task); w is
 * the same in all tasks and has a digest, so warm workers keep it.
 *
 * Ownership: all is freed by the end. Threads: one. */
#ifndef HD_FUNCTIONS_TRIAL_H
#define HD_FUNCTIONS_TRIAL_H

#include "functions/owner.h"

#define HD_FN_WAIT_NS INT64_C(5000000000)

/* What is tried. */
struct hd_fn_trial_spec {
	uint32_t ntasks;
	uint64_t rows, in, out, seed;     /* x [rows, in], w [in, out] */
	const char *kernels;
	int64_t patience_ns;              /* for all tasks */
	void (*waits)(const char *text);  /* said every HD_FN_WAIT_NS in which no task is done; or NULL */
};

/* What came of it. `equal`: tasks whose outputs have the bits of a run here. */
struct hd_fn_trial {
	uint32_t equal;
	int64_t here_ns, there_ns;        /* of all tasks */
	int64_t trip_ns;                  /* the fastest of single tasks that a function did; 0: none */
};

/* Owner and invoker are ready. HD_E_AGAIN: not all tasks were done in time. HD_E_PREEMPTED, HD_E_INTERRUPT: a
 * signal asked to stop. */
HD_MUST_USE enum hd_err hd_fn_trial_run(struct hd_fn_owner *owner, const struct hd_fn_trial_spec *spec,
	struct hd_fn_trial *trial, struct hd_diag *diag);

#endif
