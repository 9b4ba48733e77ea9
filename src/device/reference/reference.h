/* reference.h -- one plain loop per op: the oracle that other kernels are judged by.
 *
 * Written to be read, not to be fast: no blocking, no vectors, no approximations.
 * Everything is stored as f32 and computed in f64, sums included, and rounded once
 * when it is stored; so an error of the reference is half a unit in the last place
 * of the result and tolerances need only cover the kernel under test.
 *
 * 1. A kernel is a loop over *units* of the output (elements, rows, images: whatever
 *    is whole without the others); a tile is a fixed number of units.
 * 2. Functions are those of libm in f64. Their last bit may differ between hosts, so
 *    the device does not claim portable bits.
 * 3. SUM64 and the moves of flat vectors are defined bit for bit (lanes.h, optim.h)
 *    and are those here. */
#ifndef HD_DEVICE_REFERENCE_REFERENCE_H
#define HD_DEVICE_REFERENCE_REFERENCE_H

#include "device/cpu/cpu_kernels.h"

/* One op: `units` of a call, and units [first, last) of it. `scratch` has scratch() bytes. */
struct hd_ref_op {
	uint64_t (*units)(const struct hd_call *call);
	size_t   (*scratch)(const struct hd_call *call);
	void     (*run)(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch);
};

/* By enum hd_op; each file fills its own rows. NULL run: not of this file. */
const struct hd_ref_op *hd_ref_batch(uint16_t op);
const struct hd_ref_op *hd_ref_blocked(uint16_t op);
const struct hd_ref_op *hd_ref_dense(uint16_t op);
const struct hd_ref_op *hd_ref_images(uint16_t op);
const struct hd_ref_op *hd_ref_map(uint16_t op);
const struct hd_ref_op *hd_ref_ops(uint16_t op);
const struct hd_ref_op *hd_ref_reduce(uint16_t op);
const struct hd_ref_op *hd_ref_sequences(uint16_t op);
const struct hd_ref_op *hd_ref_tensors(uint16_t op);

/* MATMUL by the arithmetic of bf16.h: of bf16, of bf16-amx. */
void hd_ref_matmul_bf16(const struct hd_call *call, uint64_t first, uint64_t last);
void hd_ref_matmul_amx(const struct hd_call *call, uint64_t first, uint64_t last);
const struct hd_cpu_row *hd_ref_table(void);              /* [HD_NOPS]; for tests */
extern const struct hd_cpu_vector hd_ref_vector;

/* For all files: units are elements, rows, or everything at once. */
uint64_t hd_ref_elems(const struct hd_call *call);        /* of output 0 */
uint64_t hd_ref_rows(const struct hd_call *call);         /* of output 0, last extent left out */
uint64_t hd_ref_whole(const struct hd_call *call);
size_t hd_ref_no_scratch(const struct hd_call *call);

static inline const float *hd_ref_in(const struct hd_call *call, int i) { return call->in[i].at; }
static inline float *hd_ref_out(const struct hd_call *call, int i) { return call->out[i].at; }

#endif
