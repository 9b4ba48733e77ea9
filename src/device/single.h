/* single.h -- one op, alone, as a program: how fingerprints and the conformance suite
 * put the same question to every device.
 *
 * A graph of one node whose operands are inputs; it runs through the device's own
 * load() and run(), so what is asked is what a job would get.
 *
 * 1. Operands are filled from Philox by (seed, operand, element): floats in [-1, 1),
 *    indices below the extent they index; the same on every machine.
 *
 * Ownership: graph and program lie in the arena given and must outlive the device's
 * use of them (until it closes). Threads: one. */
#ifndef HD_DEVICE_SINGLE_H
#define HD_DEVICE_SINGLE_H

#include "device/program.h"

struct hd_single {
	struct hd_graph graph;
	struct hd_layout layout;
	struct hd_program program;
};

/* Operands by rank, dim and dtype of `in`; extents may be multiples of the rows. */
HD_MUST_USE enum hd_err hd_single_make(struct hd_single *single, uint16_t op, uint8_t nin,
	const struct hd_value *in,
	const struct hd_attr *attr, const uint64_t *rows, uint32_t nrows, struct hd_arena *arena,
	struct hd_diag *diag);

void hd_single_fill(const struct hd_call *call, uint8_t operand, uint64_t seed, void *at);

/* Runs on `rows` rows: in[] are the operands' bytes, out[] receives the outputs' (host memory). What
 * out[] holds before lies in the outputs' memory when the op begins: no kernel may be moved by it. */
HD_MUST_USE enum hd_err hd_single_run(struct hd_device *device, const struct hd_single *single, uint64_t rows,
	const struct hd_draw *draw, const void *const *in, void *const *out, struct hd_diag *diag);
/* The same with operands in memory of the device; the outputs are values of the arena, memory.len_bytes. */
HD_MUST_USE enum hd_err hd_single_run_at(struct hd_device *device, const struct hd_single *single,
	uint64_t rows, const struct hd_draw *draw, const void *const *in, void *arena, struct hd_diag *diag);

#endif
