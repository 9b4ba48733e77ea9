/* winograd.inc.h -- convolutions of blocked images by 3 x 3 kernels of stride 1 with 16
 * products where the definition has 36. One source for all paths.
 *
 * F(2x2, 3x3) of Winograd, after Lavin and Gray, "Fast algorithms for convolutional neural
 * networks" (2016): a *window* of 4 x 4 pixels of the source d and a kernel g give 2 x 2
 * results
 *
 *     Y = A' [ (G g G') * (B' d B) ] A      * element by element, ' transposed
 *
 * and, as its derivative, the gradient of g is G' [ (A dY A') * (B' d B) ] G. Of each of the
 * 16 *points* (elements of the 4 x 4 squares) the products summed over channels, or over
 * windows, are a product of matrices, which the loops of blocked.inc.h compute.
 *
 * 1. conv2d_b, conv2d_b_dx: each point of a window is one chain of fused multiply-adds from +0
 *    over channels of the source, ascending; transforms are sums in the order written
 *    below, none fused. Pixels outside the image are +0.
 * 2. conv2d_b_dw: each point is one chain over the windows of (n, row, column), ascending.
 * 3. So chunks, passes, tiles and the number of samples in a call change no bit. What shapes go this
 *    way (win_takes) is a function of the shape of one sample.
 * 4. An infinity in a window makes all four of its results NaN or infinite. */
#ifndef HD_DEVICE_CPU_WINOGRAD_INC_H
#define HD_DEVICE_CPU_WINOGRAD_INC_H

#include "device/cpu/blocked.inc.h"

enum {
	WIN_POINTS = 16,
	WIN_CHUNK = 2 * BLK_PIXELS > 28 ? 2 * BLK_PIXELS : 28,  /* windows transformed at once */
	WIN_RANGE = 4 * WIN_CHUNK,                /* of a tile whose sums go through memory */
	WIN_LONG = 16 * WIN_CHUNK,                /* of a tile whose sums do not */
	WIN_DEPTH = 4,                            /* blocks of source channels of a pass */
	WIN_BLOCKS = 4,                           /* blocks of result channels of a tile */
	WIN_DW_CHUNK = 32,                        /* windows transformed at once by conv2d_b_dw */
	WIN_DW_DEPTH = 2,                         /* blocks of source channels of its tile */
};

/* A source of n samples, h x w, seen through windows whose first begins at (-top, -left), 2 pixels apart,
 * high x wide a sample. */
struct win_view { int64_t n, blocks, h, w, top, left, high, wide; };

/* Where a window lies, and the one after it. */
struct win_at { int64_t n, row, col; };
HD_INLINE struct win_at win_find(const struct win_view *v, int64_t window)
{
	return (struct win_at){ window / (v->wide * v->high), window / v->wide % v->high, window % v->wide };
}
HD_INLINE void win_step(const struct win_view *v, struct win_at *at)
{
	if (++at->col < v->wide)
		return;
	at->col = 0;
	if (++at->row < v->high)
		return;
	at->row = 0;
	at->n++;
}

HD_INLINE int64_t win_count(const struct win_view *v) { return v->n * v->high * v->wide; }

static inline bool win_takes(const struct blk_conv *g)
{
	int64_t pixels = g->p * g->q, covered = 4 * div_up(g->p, 2) * div_up(g->q, 2),
		source = 4 * div_up(g->h, 2) * div_up(g->w, 2);

	return g->r == 3 && g->s == 3 && g->sh == 1 && g->sw == 1 && g->ph <= 2 && g->pw <= 2 &&
		g->c >= HD_UNIT && g->k >= HD_UNIT &&
		2 * covered <= 3 * pixels && 2 * source <= 3 * g->h * g->w;
}

typedef part win_square[4][4];

/* B' d B */
HD_INLINE void win_transform_source(win_square d)
{
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		part a = d[0][j] - d[2][j], b = d[1][j] + d[2][j], c = d[2][j] - d[1][j],
			e = d[1][j] - d[3][j];
		d[0][j] = a, d[1][j] = b, d[2][j] = c, d[3][j] = e;
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		part a = d[i][0] - d[i][2], b = d[i][1] + d[i][2], c = d[i][2] - d[i][1],
			e = d[i][1] - d[i][3];
		d[i][0] = a, d[i][1] = b, d[i][2] = c, d[i][3] = e;
	}
}

HD_INLINE void win_scatter(win_square d, float *to, int64_t point)
{
#pragma GCC unroll 16
	for (int i = 0; i < WIN_POINTS; i++)
		part_store(to + i * point, d[i / 4][i % 4]);
}

/* A square of `size` x `size` pixels from (y, x) on; outside the image +0. */
HD_INLINE void win_pick(const int size, const float *plane, int64_t h, int64_t w, int64_t y, int64_t x,
	int part_at, win_square d)
{
	const float *from = plane + (y * w + x) * HD_UNIT + part_at * HD_WIDTH;

	if (y >= 0 && x >= 0 && y + size <= h && x + size <= w) {
#pragma GCC unroll 16
		for (int i = 0; i < size * size; i++)
			d[i / size][i % size] = part_load(from + (i / size * w + i % size) * HD_UNIT);
		return;
	}
#pragma GCC unroll 16
	for (int i = 0; i < size * size; i++) {
		bool in = y + i / size >= 0 && y + i / size < h && x + i % size >= 0 && x + i % size < w;
		d[i / size][i % size] = in ? part_load(from + (i / size * w + i % size) * HD_UNIT) :
			part_set(0.0f);
	}
}

/* Windows [first, first + count) of one block: to[point][window][16], `point` floats from a point to the
 * next. */
static inline void win_sources(const struct win_view *v, const float *image, int64_t block, int64_t first,
	int64_t count, float *to, int64_t point)
{
	struct win_at at = win_find(v, first);

	for (int64_t t = 0; t < count; t++, to += HD_UNIT, win_step(v, &at)) {
		const float *plane = image + (at.n * v->blocks + block) * v->h * v->w * HD_UNIT;
		for (int k = 0; k < HD_PARTS; k++) {
			win_square d;
			win_pick(4, plane, v->h, v->w, 2 * at.row - v->top, 2 * at.col - v->left, k, d);
			win_transform_source(d);
			win_scatter(d, to + k * HD_WIDTH, point);
		}
	}
}

/* A dY A' of the same windows: `v` is what the windows of 2 x 2 see. */
static inline void win_slopes(const struct win_view *v, const float *image, int64_t block, int64_t first,
	int64_t count, float *to, int64_t point)
{
	struct win_at at = win_find(v, first);

	for (int64_t t = 0; t < count; t++, to += HD_UNIT, win_step(v, &at)) {
		const float *plane = image + (at.n * v->blocks + block) * v->h * v->w * HD_UNIT;
		for (int k = 0; k < HD_PARTS; k++) {
			win_square d;
			win_pick(2, plane, v->h, v->w, 2 * at.row, 2 * at.col, k, d);
#pragma GCC unroll 2
			for (int j = 0; j < 2; j++) {
				part a = d[0][j], b = d[1][j];
				d[1][j] = a + b, d[2][j] = a - b, d[3][j] = -b;
			}
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++) {
				part a = d[i][0], b = d[i][1];
				d[i][1] = a + b, d[i][2] = a - b, d[i][3] = -b;
			}
			win_scatter(d, to + k * HD_WIDTH, point);
		}
	}
}

/* G g G' of `n` vectors: panel[9][n] -> to[16][n]; turned: the kernel's taps from last to first. */
static inline void win_kernels(const float *panel, int64_t n, bool turned, float *to)
{
	const part half = part_set(0.5f);

	for (int64_t at = 0; at < n; at += HD_WIDTH) {
		part a[4][3];
#pragma GCC unroll 3
		for (int s = 0; s < 3; s++) {
			part g[3];
#pragma GCC unroll 3
			for (int r = 0; r < 3; r++)
				g[r] = part_load(panel + (turned ? 8 - (r * 3 + s) : r * 3 + s) * n + at);
			part ends = g[0] + g[2];
			a[0][s] = g[0], a[1][s] = half * (ends + g[1]), a[2][s] = half * (ends - g[1]),
				a[3][s] = g[2];
		}
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++) {
			part ends = a[i][0] + a[i][2];
			float *row = to + i * 4 * n + at;
			part_store(row, a[i][0]);
			part_store(row + n, half * (ends + a[i][1]));
			part_store(row + 2 * n, half * (ends - a[i][1]));
			part_store(row + 3 * n, a[i][2]);
		}
	}
}

/* G' s G of `n` vectors: sums[16][n] -> to[9][n]. */
static inline void win_gradients(const float *sums, int64_t n, float *to)
{
	const part half = part_set(0.5f);

	for (int64_t at = 0; at < n; at += HD_WIDTH) {
		part a[3][4];
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++) {
			part s[4];
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++)
				s[i] = part_load(sums + (i * 4 + j) * n + at);
			part both = half * (s[1] + s[2]);
			a[0][j] = s[0] + both, a[1][j] = half * (s[1] - s[2]), a[2][j] = both + s[3];
		}
#pragma GCC unroll 3
		for (int r = 0; r < 3; r++) {
			part both = half * (a[r][1] + a[r][2]);
			float *row = to + r * 3 * n + at;
			part_store(row, a[r][0] + both);
			part_store(row + n, half * (a[r][1] - a[r][2]));
			part_store(row + 2 * n, both + a[r][3]);
		}
	}
}

/* A' m A of windows [first, first + count) of one block: from[point][window][16]; pixels past the edge are
 * dropped. */
static inline void win_results(const struct win_view *v, int64_t h, int64_t w, const float *from,
	int64_t point, float *image, int64_t block,
	int64_t blocks, int64_t first, int64_t count)
{
	struct win_at at = win_find(v, first);

	for (int64_t t = 0; t < count; t++, from += HD_UNIT, win_step(v, &at)) {
		float *to = image + (((at.n * blocks + block) * h + 2 * at.row) * w + 2 * at.col) * HD_UNIT;
		bool right = 2 * at.col + 1 < w, below = 2 * at.row + 1 < h;
		for (int k = 0; k < HD_PARTS; k++) {
			part a[2][4];
#pragma GCC unroll 4
			for (int j = 0; j < 4; j++) {
				part m[4];
#pragma GCC unroll 4
				for (int i = 0; i < 4; i++)
					m[i] = part_load(from + (i * 4 + j) * point + k * HD_WIDTH);
				a[0][j] = m[0] + m[1] + m[2], a[1][j] = m[1] - m[2] - m[3];
			}
#pragma GCC unroll 2
			for (int i = 0; i < 2; i++) {
				float *pixel = to + i * w * HD_UNIT + k * HD_WIDTH;
				if (i && !below)
					break;
				part_store(pixel, a[i][0] + a[i][1] + a[i][2]);
				if (right)
					part_store(pixel + HD_UNIT, a[i][1] - a[i][2] - a[i][3]);
			}
		}
	}
}

/* conv2d_b and conv2d_b_dx. */
struct win_work { struct win_view view; int64_t nin, nout, out_h, out_w, range, chunk; bool single; };

static inline struct win_work win_work_of(const struct blk_work *k)
{
	const struct blk_conv *g = &k->conv;
	struct win_view v = { g->n, blk_blocks(k->nin), k->back ? g->p : g->h, k->back ? g->q : g->w,
		k->back ? 2 - g->ph : g->ph,
		k->back ? 2 - g->pw : g->pw, div_up(k->out_h, 2), div_up(k->out_w, 2) };
	bool single = v.blocks <= WIN_DEPTH && k->nin % HD_UNIT == 0;
	return (struct win_work){ v, k->nin, k->nout, k->out_h, k->out_w, single ? WIN_LONG : WIN_RANGE,
		WIN_CHUNK, single };
}

/* Scratch: the panel of blocked.inc.h and what turns it, transformed kernels, transformed windows, sums. */
struct win_scratch { size_t panel, spare, kernels, windows, sums; };
static inline struct win_scratch win_scratch_of(const struct blk_work *k)
{
	struct win_work w = win_work_of(k);
	int64_t wide = WIN_BLOCKS * HD_UNIT, depth = WIN_DEPTH * HD_UNIT;
	return (struct win_scratch){ 9 * HD_UNIT * BLK_GROUP * HD_UNIT, k->back ? 9 * HD_UNIT * HD_UNIT : 0,
		(size_t)(WIN_POINTS * depth * wide), (size_t)(WIN_POINTS * depth * w.chunk),
		(size_t)(WIN_POINTS * wide * (w.single ? w.chunk : w.range)) };
}
static inline size_t win_conv_scratch(const struct blk_work *k)
{
	struct win_scratch s = win_scratch_of(k);
	return (s.panel + s.spare + s.kernels + s.windows + s.sums) * sizeof(float);
}
static inline uint32_t win_conv_ntiles(const struct blk_work *k)
{
	struct win_work w = win_work_of(k);
	return (uint32_t)(div_up(blk_blocks(w.nout), WIN_BLOCKS) * div_up(win_count(&w.view), w.range));
}

/* Kernels of `depth` blocks of nc channels from block b on: [pair of result blocks][block][16][nc][nb*16]. */
static inline void win_pack(const struct blk_work *k, const float *w, int64_t b0, int64_t nblocks, int64_t b,
	int64_t depth, int64_t nc,
	float *panel, float *spare, float *to)
{
	for (int64_t i = 0; i < nblocks; i += BLK_GROUP)
		for (int64_t d = 0; d < depth; d++) {
			int64_t nb = min64(BLK_GROUP, nblocks - i), vectors = nc * nb * HD_UNIT;
			if (k->back)
				blk_pack_dx(&k->conv, w, (b0 + i) * HD_UNIT, nb, (b + d) * HD_UNIT, nc, panel,
					spare);
			else
				blk_pack(&k->conv, w, (b0 + i) * HD_UNIT, nb, (b + d) * HD_UNIT, nc, panel);
			win_kernels(panel, vectors, k->back, to);
			to += WIN_POINTS * vectors;
		}
}

/* sums[point][result block][window][16] of `count` windows (+)= transformed windows times transformed
 * kernels. */
static inline void win_multiply(const float *windows, const float *kernels, int64_t chunk, int64_t count,
	int64_t nblocks, int64_t depth, int64_t nc,
	float *sums, int64_t room, bool more)
{
	struct blk_tap tap[WIN_DEPTH];

	for (int64_t i = 0; i < nblocks; i += BLK_GROUP) {
		int64_t nb = min64(BLK_GROUP, nblocks - i), vectors = nc * nb * HD_UNIT;
		for (int64_t d = 0; d < depth; d++)
			tap[d] = (struct blk_tap){ d * WIN_POINTS * chunk * HD_UNIT,
				d * WIN_POINTS * vectors };
		for (int p = 0; p < WIN_POINTS; p++) {
			struct blk_in in = { windows + p * chunk * HD_UNIT, 0, kernels + p * vectors, tap,
				depth, nc };
			struct blk_out out = { sums + (p * nblocks + i) * room * HD_UNIT, 0, HD_UNIT,
				room * HD_UNIT, more };
			blk_field(&in, &out, 1, 1, count, nb);
		}
		kernels += depth * WIN_POINTS * vectors;
	}
}

static inline void win_conv_tile(const struct hd_call *call, const struct blk_work *k, uint32_t tile,
	float *scratch)
{
	struct win_work w = win_work_of(k);
	struct win_scratch s = win_scratch_of(k);
	int64_t all = blk_blocks(w.nout), groups = div_up(all, WIN_BLOCKS), b0 = tile % groups * WIN_BLOCKS,
		nblocks = min64(WIN_BLOCKS, all - b0);
	int64_t first = tile / groups * w.range, end = min64(first + w.range, win_count(&w.view)),
		room = w.single ? w.chunk : w.range;
	float *panel = scratch, *spare = panel + s.panel, *kernels = spare + s.spare,
		*windows = kernels + s.kernels, *sums = windows + s.windows;

	for (int64_t b = 0, depth; b < w.view.blocks; b += depth) {
		int64_t nc = min64(HD_UNIT, w.nin - b * HD_UNIT), point = w.chunk * HD_UNIT;
		depth = nc < HD_UNIT ? 1 : min64(WIN_DEPTH, w.nin / HD_UNIT - b);
		win_pack(k, call->in[1].at, b0, nblocks, b, depth, nc, panel, spare, kernels);
		for (int64_t t = first; t < end; t += w.chunk) {
			int64_t count = min64(w.chunk, end - t);
			float *to = w.single ? sums : sums + (t - first) * HD_UNIT;
			for (int64_t d = 0; d < depth; d++)
				win_sources(&w.view, call->in[0].at, b + d, t, count,
					windows + d * WIN_POINTS * point, point);
			win_multiply(windows, kernels, w.chunk, count, nblocks, depth, nc, to, room, b > 0);
			for (int64_t i = 0; i < nblocks && b + depth == w.view.blocks; i++)
				win_results(&w.view, w.out_h, w.out_w, to + i * room * HD_UNIT,
					nblocks * room * HD_UNIT, call->out[0].at, b0 + i, all,
					t, count);
		}
	}
}

/* conv2d_b_dw: WIN_DW_DEPTH blocks of source channels, WIN_BLOCKS of results. Scratch: transformed
 * windows, slopes, sums, a panel. */
struct win_dw { int64_t ncb, nkb, cgroups, kgroups; };
static inline struct win_dw win_dw_of(const struct blk_conv *g)
{
	int64_t ncb = blk_blocks(g->c), nkb = blk_blocks(g->k);
	return (struct win_dw){ ncb, nkb, div_up(ncb, WIN_DW_DEPTH), div_up(nkb, WIN_BLOCKS) };
}
static inline uint32_t win_dw_ntiles(const struct blk_conv *g)
{
	struct win_dw w = win_dw_of(g);
	return (uint32_t)(w.cgroups * w.kgroups);
}

enum {
	WIN_DW_WINDOWS = WIN_DW_DEPTH * WIN_POINTS * WIN_DW_CHUNK * HD_UNIT,
	WIN_DW_SLOPES = WIN_BLOCKS * WIN_POINTS * WIN_DW_CHUNK * HD_UNIT,
	/* of a block of the source and BLK_GROUP of results */
	WIN_DW_SUMS = WIN_POINTS * HD_UNIT * BLK_GROUP * HD_UNIT,
	WIN_DW_PAIRS = WIN_DW_DEPTH * (WIN_BLOCKS / BLK_GROUP),
};
static inline size_t win_dw_scratch(void)
{
	return (WIN_DW_WINDOWS + WIN_DW_SLOPES + WIN_DW_PAIRS * WIN_DW_SUMS + 9 * HD_UNIT * BLK_GROUP *
		HD_UNIT) * sizeof(float);
}

/* sums[point][nc][nb*16] (+)= windows' times slopes */
static inline void win_dw_multiply(const float *windows, const float *slopes, int64_t count, int64_t nc,
	int64_t nb, float *sums, bool more)
{
	const int64_t point = WIN_DW_CHUNK * HD_UNIT;

	for (int p = 0; p < WIN_POINTS; p++)
		for (int64_t c = 0, hc; c < nc; c += hc) {
			for (hc = BLK_TERMS; hc > nc - c; hc /= 2)
				;
			struct blk_dw d = { .x = windows + p * point + c, .dy = slopes + p * point,
				.nsamples = 1, .rows = 1, .cols = count,
				.yblock = WIN_POINTS * point, .sum = sums + (p * nc + c) * nb * HD_UNIT,
				.wide = nb * HD_UNIT, .more = more };
			blk_dws[hc][nb - 1](&d);
		}
}

static inline struct blk_patch win_dw_patch(const struct blk_conv *g, uint32_t tile)
{
	struct win_dw w = win_dw_of(g);
	int64_t c0 = tile % w.cgroups * WIN_DW_DEPTH * HD_UNIT, k0 = tile / w.cgroups * WIN_BLOCKS * HD_UNIT;
	return (struct blk_patch){ k0, min64(WIN_BLOCKS * HD_UNIT, g->k - k0), c0,
		min64(WIN_DW_DEPTH * HD_UNIT, g->c - c0) };
}

static inline void win_dw_leaf(const struct blk_conv *g, const struct blk_patch *at,
	const struct blk_leaf *leaf, float *scratch)
{
	struct win_view source = { g->n, blk_blocks(g->c), g->h, g->w, g->ph, g->pw, div_up(g->p, 2),
		div_up(g->q, 2) }, slope = source;
	int64_t nblocks = blk_blocks(at->nk), depth = blk_blocks(at->nc), all = win_count(&source),
		point = WIN_DW_CHUNK * HD_UNIT;
	float *windows = scratch, *slopes = windows + WIN_DW_WINDOWS, *sums = slopes + WIN_DW_SLOPES;
	float *panel = sums + WIN_DW_PAIRS * WIN_DW_SUMS;

	slope.blocks = blk_blocks(g->k), slope.h = g->p, slope.w = g->q;
	if (all == 0)
		memset(sums, 0, WIN_DW_PAIRS * WIN_DW_SUMS * sizeof *sums);
	for (int64_t t = 0; t < all; t += WIN_DW_CHUNK) {
		int64_t count = min64(WIN_DW_CHUNK, all - t);
		for (int64_t i = 0; i < depth; i++)
			win_sources(&source, leaf->x, at->c0 / HD_UNIT + i, t, count,
				windows + i * WIN_POINTS * point, point);
		for (int64_t i = 0; i < nblocks; i++)
			win_slopes(&slope, leaf->dy, at->k0 / HD_UNIT + i, t, count,
				slopes + i * WIN_POINTS * point, point);
		for (int64_t i = 0; i < depth; i++)
			for (int64_t j = 0; j < nblocks; j += BLK_GROUP)
				win_dw_multiply(windows + i * WIN_POINTS * point,
					slopes + j * WIN_POINTS * point, count,
					min64(HD_UNIT, at->nc - i * HD_UNIT), min64(BLK_GROUP, nblocks - j),
					sums + (i * (WIN_BLOCKS / BLK_GROUP) + j / BLK_GROUP) * WIN_DW_SUMS,
					t > 0);
	}
	for (int64_t i = 0; i < depth; i++)
		for (int64_t j = 0; j < nblocks; j += BLK_GROUP) {
			int64_t nc = min64(HD_UNIT, at->nc - i * HD_UNIT),
				nk = min64(BLK_GROUP * HD_UNIT, at->nk - j * HD_UNIT);
			win_gradients(sums + (i * (WIN_BLOCKS / BLK_GROUP) + j / BLK_GROUP) * WIN_DW_SUMS,
				nc * round_up(nk, HD_UNIT), panel);
			blk_unpack(g, panel, j * HD_UNIT, nk, i * HD_UNIT, nc, leaf);
		}
}

#endif
