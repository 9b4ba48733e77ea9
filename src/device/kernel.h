/* kernel.h -- how one op is computed on a processor's threads: a fixed grid of
 * single-threaded tiles over its outputs.
 *
 * Authors of processor back-ends (cpu, reference) fill one row per op; team.h
 * shares the tiles of a call among a device's threads.
 *
 * 1. The grid is a function of op and shape alone: never of the number of
 *    threads. No two tiles write the same element; a dimension that is summed
 *    over is never split between tiles, except in a row that says how its parts
 *    are joined, in fixed order, by a second pass. A thread that computes all tiles
 *    may do so in an order of its own, and so may each of several that share a call in as many
 *    equal pieces (`piece`), with the same bits.
 * 2. A tile reads only the inputs, writes only its part of the outputs, and uses
 *    `scratch` (its thread's own, `scratch` bytes of the row, 64-byte aligned).
 * 3. Outputs are written completely; nothing is accumulated into old contents.
 * 4. Same bits on every instruction set for rows marked exact: our own loops fix
 *    the order of every sum and contract nothing but explicit fused multiply-adds.
 */
#ifndef HD_DEVICE_KERNEL_H
#define HD_DEVICE_KERNEL_H

#include "graph/ir.h"
#include "graph/op.h"
#include "device/edge_rows.h"

/* One operand bound to memory, extents resolved for the rows at hand. */
struct hd_operand {
	void    *at;
	int64_t  dim[HD_MAX_DIMS];
	uint8_t  rank, dtype;
	uint64_t elems;
};

/* What the random numbers of a call are keyed by (philox.h, domain model). */
struct hd_draw { uint64_t seed, step; uint32_t vn, op; uint64_t row0; };

struct hd_call {
	uint16_t op;
	struct hd_attr attr;
	uint8_t nin, nout;
	struct hd_operand in[HD_MAX_IN], out[HD_MAX_OUT];
	struct hd_draw draw;              /* row0: first row of this slice inside its virtual node */
	const void *prepared;             /* what prepare() made for this op and shape, or NULL */
	/* ops along edges: the edges row by row (edge_rows.h), or NULL. The bits are the same without. */
	const struct hd_edge_rows *edges;
};

struct hd_part;                           /* device.h */

/* How a kernel that makes the gradient of a parameter sums it over the parts of a wave as it goes. */
struct hd_fold_job {
	uint32_t nparts;
	const struct hd_part *part;       /* rows and moves of each */
	/* of a full part: the call has its extents and the addresses of part 0 */
	uint64_t rows;
	uint64_t step_bytes[HD_MAX_IN];   /* from an operand of a part to that of the next */
	/* elements: where the tensor begins in the flat buffers of the moves */
	uint64_t at;
};

/* The moves of a part are a chain: the first puts or adds the leaf into a buffer, each further one adds the
 * buffer of the move before into its own, and only the last buffer keeps a value.
 * The leaf of a part is what tile() of the kernel makes of its rows, bit for bit (+0.0 of no rows); the moves
 * of a part apply to it before the leaf of the next one. Temporary buffers of the moves are the kernel's
 * own, in `scratch`. */
struct hd_fold_kernel {
	/* operands that are read, the first ones: each must have rows; of the others only extents count */
	uint8_t  nread;
	/* false: the frame folds this shape; a function of shape alone */
	bool     (*takes)(const struct hd_call *call);
	uint32_t (*ntiles)(const struct hd_call *call);
	size_t   (*scratch)(const struct hd_call *call, uint32_t max_parts);
	void     (*tile)(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile,
		void *scratch);
	/* as of a kernel, below */
	void     (*piece)(const struct hd_call *call, const struct hd_fold_job *job, uint32_t i, uint32_t n,
		void *scratch);
	bool     (*divides)(const struct hd_call *call, uint32_t n);
};

struct hd_kernel {
	uint32_t (*ntiles)(const struct hd_call *call);               /* >= 1 unless an output is empty */
	size_t   (*scratch)(const struct hd_call *call);              /* bytes per thread; may be 0 */
	void     (*tile)(const struct hd_call *call, uint32_t tile, void *scratch);
	/* Row r of the outputs (extent 0) reads row r of the operands that have rows, and has the same bits
	 * in a call of any number of rows: so rows of several virtual nodes may share a call. Never of
	 * random ops, which are keyed. */
	bool     rowwise;
	const struct hd_fold_kernel *fold;        /* NULL: the frame folds leaf by leaf */
	/* Piece i of n of the outputs, for a thread of n; of one piece all. NULL: tile by tile. */
	void     (*piece)(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch);
	/* n > 1: are pieces so equal that threads wait for none? Else they take tiles. Set where piece is. */
	bool     (*divides)(const struct hd_call *call, uint32_t n);
};

/* Flattens all extents but the last: rows and columns of an operand. */
static inline int64_t hd_cols(const struct hd_operand *o) { return o->dim[o->rank - 1]; }
static inline int64_t hd_rows(const struct hd_operand *o) { return (int64_t)o->elems / o->dim[o->rank - 1]; }

#endif
