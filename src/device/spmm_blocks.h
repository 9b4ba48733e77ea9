/* spmm_blocks.h -- the edges of a graph cut by their sources, so that the rows that one pass over the edges
 * reads stay in a cache: plain edges for device/spmm.h, once for each block.
 *
 * Engines and benchmarks cut a graph once for all its steps: cutting reads every edge once a block.
 *
 * 1. Block b of n has the edges whose source is in [b, b + 1) * ceil(sources / n), each row's in their order.
 * 2. The bits of hd_spmm_blocks_run() are those of one call where the sources of each row ascend, as they do
 *    in a prepared graph.
 *
 * Ownership: make() takes what free() gives back. */
#ifndef HD_DEVICE_SPMM_BLOCKS_H
#define HD_DEVICE_SPMM_BLOCKS_H

#include "base/err.h"
#include "device/spmm.h"

enum { HD_SPMM_BLOCKS_CAP = 16 };

/* Rows [first, last) of a graph. */
struct hd_spmm_blocks {
	uint32_t n; uint64_t first, last;
	/* by block, as hd_spmm has them; offsets before `first` are not written */
	uint64_t *offset[HD_SPMM_BLOCKS_CAP]; uint32_t *at[HD_SPMM_BLOCKS_CAP];
};

/* How many blocks pay: 1 unless the rows that are read exceed 8 second-level caches of l2_bytes; else the
 * least power of two whose blocks do not, as far as a row has two edges in each, 16 at most. */
uint32_t hd_spmm_blocks_rule(uint64_t nsources, uint64_t row_bytes, uint64_t nrows, uint64_t nedges,
	uint64_t l2_bytes);

/* n is in 1..HD_SPMM_BLOCKS_CAP. */
HD_MUST_USE enum hd_err hd_spmm_blocks_make(struct hd_spmm_blocks *blocks, const uint64_t *offset,
	const uint32_t *at, uint64_t first, uint64_t last, uint64_t nsources, uint32_t n,
	struct hd_diag *diag);
void hd_spmm_blocks_free(struct hd_spmm_blocks *blocks);   /* takes zeroed ones */

/* `call` without weights over the blocks in place of its own edges; its rows are those of the blocks. */
void hd_spmm_blocks_run(const struct hd_edge_kernels *kernels, const struct hd_spmm_blocks *blocks,
	struct hd_spmm call);

#endif
