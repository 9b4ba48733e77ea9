/* matmul.inc.h -- the op matmul: a grid of panels over its result. One source for all paths.
 *
 * 1. The grid is a function of the shape alone. Panels are large where the result
 *    is large, and smaller until there are eight of them or a panel would be less
 *    work than sharing it is worth.
 *    Tiles go down a column of panels first: the block of b, the larger one, is
 *    then still in the second-level cache.
 * 2. Sums are those of gemm.inc.h, whatever the panel. */
#ifndef HD_DEVICE_CPU_MATMUL_INC_H
#define HD_DEVICE_CPU_MATMUL_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/kernel.h"

struct matmul { int64_t m, n, k, rows, cols, ntall, nwide; };      /* rows x cols: a panel */

/* `whole` in equal parts of at most `most`, multiples of `unit`. */
HD_INLINE int64_t share(int64_t whole, int64_t most, int64_t unit)
{
	return min64(whole, round_up(div_up(whole, div_up(whole, most)), unit));
}

static inline struct matmul matmul_grid(int64_t m, int64_t n, int64_t k)
{
	static const struct { int64_t rows, cols; } panel[] = {
		{ GEMM_ROWS, GEMM_COLS }, { GEMM_ROWS, 256 }, { 84, 256 }, { 84, 128 }, { 84, 64 },
	};
	const int64_t enough = 8, least = 1 << 20;     /* panels; multiply-adds of one */
	struct matmul g = { m, n, k, 0, 0, 0, 0 };

	for (size_t i = 0; i < sizeof panel / sizeof panel[0]; i++) {
		int64_t rows = share(m, panel[i].rows, 14), cols = share(n, panel[i].cols, 32);
		if (i > 0 && (g.ntall * g.nwide >= enough || rows * cols * k < least))
			break;
		g.rows = rows;
		g.cols = cols;
		g.ntall = div_up(m, rows);
		g.nwide = div_up(n, cols);
	}
	return g;
}

static inline struct matmul matmul_of(const struct hd_call *call)
{
	const struct hd_operand *a = &call->in[0], *b = &call->in[1];
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;

	return matmul_grid(ta ? hd_cols(a) : hd_rows(a), tb ? hd_rows(b) : hd_cols(b), ta ? hd_rows(a) : hd_cols(a));
}

static inline uint32_t matmul_ntiles(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return (uint32_t)(g.ntall * g.nwide);
}

static inline size_t matmul_scratch(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return gemm_scratch(g.rows, g.cols, g.k);
}

static inline void matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct matmul g = matmul_of(call);
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	const float *a = call->in[0].at, *b = call->in[1].at;
	int64_t i = tile % g.ntall * g.rows, j = tile / g.ntall * g.cols;
	struct mat left = { ta ? a + i : a + i * g.k, ta ? g.m : g.k, ta };
	struct mat right = { tb ? b + j * g.k : b + j, tb ? g.k : g.n, tb };
	struct gemm_out out = { (float *)call->out[0].at + i * g.n + j, g.n, min64(g.rows, g.m - i), min64(g.cols, g.n - j), false };

	gemm(left, right, out, g.k, scratch);
}

#endif
