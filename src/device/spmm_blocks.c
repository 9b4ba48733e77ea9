#include "device/spmm_blocks.h"

#include "base/alloc.h"

uint32_t hd_spmm_blocks_rule(uint64_t nsources, uint64_t row_bytes, uint64_t nrows, uint64_t nedges,
	uint64_t l2_bytes)
{
	const uint64_t bytes = nsources * row_bytes, cap = 8 * l2_bytes;
	uint32_t n = 1;

	while (n < HD_SPMM_BLOCKS_CAP && bytes / n > cap && nrows && nedges / nrows / (2 * n) >= 2)
		n *= 2;
	return n;
}

enum hd_err hd_spmm_blocks_make(struct hd_spmm_blocks *blocks, const uint64_t *offset, const uint32_t *at,
	uint64_t first, uint64_t last, uint64_t nsources, uint32_t n, struct hd_diag *diag)
{
	const uint64_t each = nsources / n + (nsources % n != 0);
	struct hd_spmm_blocks made = { .n = n, .first = first, .last = last };

	for (uint32_t b = 0; b < n; b++) {
		const uint64_t low = b * each, high = low + each;
		uint64_t count = 0;
		for (uint64_t e = offset[first]; e < offset[last]; e++)
			count += at[e] >= low && at[e] < high;
		made.offset[b] = hd_alloc((last + 1) * sizeof **made.offset);
		made.at[b] = hd_alloc((count + 1) * sizeof **made.at);
		if (!made.offset[b] || !made.at[b]) {
			hd_spmm_blocks_free(&made);
			return hd_fail(diag, HD_E_NOMEM, "no memory to cut the edges of a graph into %u "
				"blocks", n);
		}
		count = 0;
		for (uint64_t r = first; r < last; r++) {
			made.offset[b][r] = count;
			for (uint64_t e = offset[r]; e < offset[r + 1]; e++)
				if (at[e] >= low && at[e] < high)
					made.at[b][count++] = at[e];
		}
		made.offset[b][last] = count;
	}
	*blocks = made;
	return HD_OK;
}

void hd_spmm_blocks_free(struct hd_spmm_blocks *blocks)
{
	for (uint32_t b = 0; b < blocks->n; b++) {
		hd_free(blocks->offset[b]);
		hd_free(blocks->at[b]);
	}
	*blocks = (struct hd_spmm_blocks){ 0 };
}

void hd_spmm_blocks_run(const struct hd_edge_kernels *kernels, const struct hd_spmm_blocks *blocks,
	struct hd_spmm call)
{
	const unsigned flags = call.flags;

	for (uint32_t b = 0; b < blocks->n; b++) {
		call.offset = blocks->offset[b];
		call.at = blocks->at[b];
		call.first = blocks->first;
		call.last = blocks->last;
		call.flags = (b ? (flags & ~(unsigned)HD_SPMM_LOOP) | HD_SPMM_RESUME : flags) |
			(b + 1 < blocks->n ? HD_SPMM_PARTIAL : 0);
		kernels->spmm(&call);
	}
}
