/* idle.h -- memory that a program reserves and a device never writes to.
 *
 * Where a kernel folds the gradient of a parameter by itself (hd_fold_kernel), neither the place of that
 * gradient among the activations nor the temporary buffers see it. They stay reserved, since measurements of
 * ops run them without folds; but pages that are never written to take no memory, and a prediction leaves
 * them out. Used by the engine's memory terms.
 *
 * 1. Counted in the pages that blocks are asked in (hd_memory_taken_by()): a page of which a byte may be
 *    written to is not idle.
 * 2. A device without folding kernels has nothing idle.
 *
 * Pure but for memory while it counts. */
#ifndef HD_DEVICE_IDLE_H
#define HD_DEVICE_IDLE_H

#include "device/program.h"

struct hd_idle {
	uint64_t arena_bytes;             /* of the `len_bytes` that were asked about */
	uint64_t temp_bytes;              /* of each temporary buffer of program->temp_elems */
};

/* Of a training program, for the kernels that the device has, in an arena of `len_bytes` (at least that of
 * the program), of which other programs write to the first `other_bytes`. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_program_idle(struct hd_idle *idle, const struct hd_program *program,
	struct hd_device *device, uint64_t len_bytes, uint64_t other_bytes, struct hd_diag *diag);

#endif
