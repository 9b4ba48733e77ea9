/* conv_b.inc.h -- the ops conv2d_b, conv2d_b_dx and conv2d_b_dw: which of two ways they go, directly
 * (blocked.inc.h) or by windows (winograd.inc.h), and the gradient of a kernel over the parts of a wave. One
 * source for all paths.
 *
 * 1. The way is a function of the shape of one sample.
 * 2. The leaf of a part is added to the buffers of its moves where it leaves the scratch: it never lies in
 *    memory. */
#ifndef HD_DEVICE_CPU_CONV_B_INC_H
#define HD_DEVICE_CPU_CONV_B_INC_H

#include "device/cpu/winograd.inc.h"

static inline uint32_t conv2d_b_ntiles(const struct hd_call *call)
{
	struct blk_work k = blk_work_of(call);
	return win_takes(&k.conv) ? win_conv_ntiles(&k) : blk_conv_ntiles(&k);
}
static inline size_t conv2d_b_scratch(const struct hd_call *call)
{
	struct blk_work k = blk_work_of(call);
	return win_takes(&k.conv) ? win_conv_scratch(&k) : blk_conv_scratch(&k);
}
static inline void conv2d_b_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct blk_work k = blk_work_of(call);
	(win_takes(&k.conv) ? win_conv_tile : blk_conv_tile)(call, &k, tile, scratch);
}
/* The gradient of a kernel, alone or over the parts of a wave. */
/* most: floats of a patch */
struct blk_grid { bool windows; uint32_t ntiles; size_t scratch; int64_t most; };
static inline struct blk_grid blk_grid_of(const struct blk_conv *g)
{
	if (win_takes(g))
		return (struct blk_grid){ true, win_dw_ntiles(g), win_dw_scratch(),
			WIN_BLOCKS * HD_UNIT * WIN_DW_DEPTH * HD_UNIT * 9 };
	return (struct blk_grid){ false, blk_dw_ntiles(g), blk_dw_scratch(g),
		BLK_GROUP * HD_UNIT * HD_UNIT * g->r * g->s };
}
static inline uint32_t conv2d_b_dw_ntiles(const struct hd_call *call)
{
	struct blk_conv g = blk_dw_of(call);
	return blk_grid_of(&g).ntiles;
}
static inline size_t conv2d_b_dw_scratch(const struct hd_call *call)
{
	struct blk_conv g = blk_dw_of(call);
	return blk_grid_of(&g).scratch;
}
static inline void conv2d_b_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	static const struct gemm_adds none;
	struct blk_conv g = blk_dw_of(call);
	bool windows = blk_grid_of(&g).windows;
	struct blk_patch at = (windows ? win_dw_patch : blk_dw_patch)(&g, tile);
	int64_t taps = g.r * g.s, step = g.c * taps;
	struct blk_leaf leaf = { call->in[0].at, call->in[1].at,
		{ (float *)call->out[0].at + at.k0 * step + at.c0 * taps, step }, &none };

	(windows ? win_dw_leaf : blk_dw_leaf)(&g, &at, &leaf, scratch);
}

static inline bool conv2d_b_dw_fold_takes(const struct hd_call *call) { (void)call; return true; }
static inline size_t conv2d_b_dw_fold_scratch(const struct hd_call *call, uint32_t max_parts)
{
	struct blk_conv g = blk_dw_of(call);
	struct blk_grid grid = blk_grid_of(&g);
	return grid.scratch + (size_t)(fold_temps(max_parts) * grid.most) * sizeof(float);
}
static inline void conv2d_b_dw_fold_tile(const struct hd_call *call, const struct hd_fold_job *job,
	uint32_t tile, void *scratch)
{
	struct blk_conv g = blk_dw_of(call);
	struct blk_grid grid = blk_grid_of(&g);
	struct blk_patch at = (grid.windows ? win_dw_patch : blk_dw_patch)(&g, tile);
	int64_t taps = g.r * g.s, step = g.c * taps, rows = g.n / (int64_t)job->rows;
	struct fold_site site = { (int64_t)job->at + at.k0 * step + at.c0 * taps, step,
		(float *)scratch + grid.scratch / sizeof(float), grid.most,
		at.nc * taps };

	for (uint32_t p = 0; p < job->nparts; p++) {
		struct gemm_adds adds;
		struct blk_leaf leaf = { (const float *)call->in[0].at + job->step_bytes[0] / sizeof(float) *
			p,
			(const float *)call->in[1].at + job->step_bytes[1] / sizeof(float) * p,
			fold_chain(&site, &job->part[p], &adds), &adds };
		g.n = rows * (int64_t)job->part[p].rows;
		(grid.windows ? win_dw_leaf : blk_dw_leaf)(&g, &at, &leaf, scratch);
	}
}

#endif
