/* spmm.h -- sums of rows along the edges of a graph: y[r] = act(scale[r] * sum of x[at[e]] + bias), e over
 * the edges of row r, with or without a weight for each edge. The gather of graph training.
 *
 * Ops along edges (graph/ops/spmm.inc.h, edge_sum.inc.h, edge_pair.inc.h) and `heddle bench spmm` take a
 * table of kernels by hd_edge_kernels() and call it for a range of rows, those with a share of the edges
 * (hd_spmm_cut()). The transposed product is the same call over the other direction's edges: no call writes
 * a row beyond its range.
 *
 * 1. An element is one chain, in f32: from +0, the own row first where HD_SPMM_LOOP asks for it, then the
 *    edges in the order in which they stand, one addition each; with weights one fused multiply-add each.
 *    Then times scale, plus bias, act, each where it is given, each rounded by itself. So all instruction
 *    sets, widths of tiles, ranges and blocks give the same bits.
 * 2. Rows of bf16 are read as the f32 they stand for; sums are f32. Their stride is hd_bf16_stride(width),
 *    a table of them has hd_bf16_elems(): what lies beyond a row's width is read, never used.
 * 3. Blocks of sources: a row's edges may be given in several calls, ascending. The first of them has
 *    HD_SPMM_PARTIAL, those between HD_SPMM_PARTIAL and HD_SPMM_RESUME, the last HD_SPMM_RESUME: y holds the
 *    sum so far. The bits are those of one call. With `end` such a call has some of the edges of each row
 *    where they stand.
 * 4. The scale of a source (d^-1/2 of a GCN) is applied once where x is made, by rows().
 * 5. What is no number stays no number. Nothing is allocated, nothing is read beyond the rows that edges name
 *    (but for 2).
 *
 * Ownership: a call borrows all. Threads: calls on disjoint ranges of rows may run at once. */
#ifndef HD_DEVICE_SPMM_H
#define HD_DEVICE_SPMM_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/acts.h"

enum hd_spmm_flag {
	HD_SPMM_LOOP = 1,                 /* row r of x is added first (weight: own) */
	HD_SPMM_PARTIAL = 2,              /* more edges of these rows will come: no scale, bias, act yet */
	HD_SPMM_RESUME = 4,               /* y holds the sum of the edges before */
	HD_SPMM_ACT = 8,                  /* act, one of HD_SPMM_ACTS */
	HD_SPMM_BF16 = 16,                /* x are rows of bf16 (uint16_t) */
};

/* Activations that a row's end can have; others are ops of their own. */
#define HD_SPMM_ACTS(X) X(RELU) X(LEAKY) X(ELU) X(TANH) X(GELU)

/* What a call computes. Zeroed fields are left out. */
struct hd_spmm {
	/* the edges of row r are at[offset[r]] to at[offset[r + 1] - 1]: numbers of rows of x */
	const uint64_t *offset; const uint32_t *at;
	/* NULL, or in place of offset[r + 1] the end of row r: not before offset[r], ascending */
	const uint64_t *end;
	uint64_t first, last;             /* rows [first, last) */
	uint32_t width;                   /* columns, at least 1 */
	unsigned flags;                   /* enum hd_spmm_flag */
	const void *x; uint64_t x_stride; /* in elements; x may not overlap y */
	float *y; uint64_t y_stride;      /* row r of y is that of edges r */
	/* weight[e * heads + k] of edge e for the columns [k, k + 1) * width / heads; own: of the loops, by
	 * row. heads divides the width; 0 counts as 1. edge[e] is read in place of e where it is given */
	const float *weight, *own; uint32_t heads;
	const uint32_t *edge;
	const float *scale;               /* by row */
	const float *bias;                /* by column */
	enum hd_act act; float act_of[2]; /* alpha, beta */
};

/* x[r] * scale[r] (NULL: 1) of rows [first, last) into f32, or rounded to the nearest bf16. Strides in
 * elements. */
struct hd_spmm_rows {
	uint64_t first, last; uint32_t width;
	const float *x; uint64_t x_stride;
	const float *scale;
	void *to; uint64_t to_stride; bool bf16;
};

struct hd_edge_kernels {
	const char *path;                 /* of which path they are */
	void (*spmm)(const struct hd_spmm *spmm);
	void (*rows)(const struct hd_spmm_rows *rows);
	/* spmm of f32 rows by a plain loop over columns inside one over edges, the output row in memory: what
	 * benchmarks compare with. Flags: HD_SPMM_LOOP alone. The same bits. */
	void (*plain)(const struct hd_spmm *spmm);
};

/* Of a path ("avx512", "avx2", "portable"; NULL or "auto": the widest that the processor has). NULL: it has
 * not that one. Constant. */
const struct hd_edge_kernels *hd_edge_kernels(const char *path);

/* Elements from a row of bf16 to the next: the width, rounded up to 16, below that to a power of two. */
static inline uint64_t hd_bf16_stride(uint32_t width)
{
	return width <= 1 ? 1 : width <= 2 ? 2 : width <= 4 ? 4 : width <= 8 ? 8 :
		((uint64_t)width + 15) / 16 * 16;
}
/* Elements of a table of at least one row: sixteen are read from where the last row begins. */
static inline uint64_t hd_bf16_elems(uint64_t rows, uint32_t width)
{
	const uint64_t stride = hd_bf16_stride(width);

	return rows * stride + (stride < 16 ? 16 - stride : 0);
}

/* The first row of part i of n (i <= n) of rows [first, last): parts are cut where edges and rows together,
 * an edge counting as much as a row, reach i n-ths. */
uint64_t hd_spmm_cut(const uint64_t *offset, uint64_t first, uint64_t last, uint32_t i, uint32_t n);

#endif
