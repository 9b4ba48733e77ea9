/* blocked.inc.h -- convolutions of images in blocks of 16 channels, [N, C/16, H, W, 16].
 * One source for all paths.
 *
 * A vector holds 16 channels of one pixel of the result, so no windows are laid out: some
 * pixels of a row times one or two blocks of channels stay in registers, each term is one
 * element of the source times one vector of the kernel (after Georganas et al., "Anatomy of
 * high-performance deep learning convolutions on SIMD architectures", 2018). The kernel
 * lies in memory as parameters do, [K, C, R, S]; a tile turns the part that it needs for
 * one block of the source into a *panel* in scratch, and copies the rows of the source
 * that it needs between zeros (`spread`), so that the inner loop knows no edges.
 *
 * 1. conv2d_b: each element is one chain of fused multiply-adds from +0, over blocks of
 *    source channels, then (r, s), then channels of the block, all ascending. Terms outside
 *    the image are products with +0. conv2d_b_dx: the same chain over channels of dy and
 *    those (r, s) that reach the pixel. Blocks continue the chain through memory.
 * 2. conv2d_b_dw: one chain per element over (n, p, q), ascending.
 * 3. So registers, panels, chunks of rows, tiles and the number of samples in a call
 *    change no bit.
 * 4. Channels past the last real one are not read; those of a result are zero. */
#ifndef HD_DEVICE_CPU_BLOCKED_INC_H
#define HD_DEVICE_CPU_BLOCKED_INC_H

#include "device/cpu/fold.inc.h"
#include "device/cpu/images.inc.h"

enum {
	BLK_GROUP = (int)HD_WIDTH == (int)HD_UNIT ? 2 : 1,  /* blocks of result channels held at once */
	BLK_PIXELS = HD_HEIGHT,                   /* of them */
	/* channels of the source held at once by conv2d_b_dw */
	BLK_TERMS = (int)HD_WIDTH == (int)HD_UNIT ? 8 : 4,
	/* of a spread source: it shares the first-level cache with a panel */
	BLK_CHUNK = 16384 / (int)sizeof(float),
	BLK_TILE = 1024,                          /* pixels of a tile, so that a panel is used often */
	/* of a chunk of conv2d_b_dw: sums stay in registers so long */
	BLK_DW_PIXELS = 128,
};

/* x[n,c,h,w] w[k,c,r,s] y[n,k,p,q], whatever role each plays in the call. */
struct blk_conv { int64_t n, c, h, w, k, r, s, p, q, sh, sw, ph, pw; };

/* Where a term's source pixel lies from the first of the window, and its vectors in the panel. */
struct blk_tap { int64_t x, w; };

/* How results see a source [h, w] that has `top` and `left` zeros before it: result row i needs `reach` rows
 * from i * step on; of each row every `jump`-th column, in `nphase` runs of `run` columns. */
struct blk_lens { int64_t h, w, top, left, step, reach, jump, nphase, run; };

HD_INLINE int64_t blk_pitch(const struct blk_lens *g) { return g->nphase * g->run * HD_UNIT; }
HD_INLINE int64_t blk_span(const struct blk_lens *g, int64_t rows) { return (rows - 1) * g->step + g->reach; }

/* Result rows whose source fits the first-level cache. */
HD_INLINE int64_t blk_rows(const struct blk_lens *g, int64_t rows)
{
	int64_t fit = (BLK_CHUNK / blk_pitch(g) - g->reach) / g->step + 1;
	return fit < 2 ? min64(rows, 2) : min64(rows, fit);
}

HD_INLINE void blk_zero(float *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		vf_store(to + i * HD_UNIT, vf_set(0.0f));
}

/* Rows of the source for `rows` result rows from `first` on. */
static inline void blk_spread(const struct blk_lens *g, const float *from, int64_t first, int64_t rows,
	float *to)
{
	int64_t ny = blk_span(g, rows);

	for (int64_t y = 0; y < ny; y++) {
		int64_t up = first * g->step + y - g->top;
		if (g->step > g->reach && y % g->step >= g->reach) {
			to += blk_pitch(g);
			continue;
		}
		const float *row = from + up * g->w * HD_UNIT;
		for (int64_t f = 0; f < g->nphase; f++, to += g->run * HD_UNIT) {
			int64_t begin = 0, end = 0;
			if (up >= 0 && up < g->h)
				inside(g->w, g->run, g->jump, f - g->left, &begin, &end);
			blk_zero(to, begin);
			for (int64_t i = begin; i < end; i++)
				vf_store(to + i * HD_UNIT, vf_load(row + (f - g->left + i * g->jump) *
					HD_UNIT));
			blk_zero(to + end * HD_UNIT, g->run - end);
		}
	}
}

/* Results of one call of the innermost loop: pixels `pixel` apart in rows `row` apart, blocks `block`
 * apart. */
struct blk_out { float *at; int64_t row, pixel, block; bool more; };
struct blk_in { const float *x; int64_t row; const float *w; const struct blk_tap *tap; int64_t ntaps, nc; };

typedef part blk_acc[2][BLK_PIXELS][BLK_GROUP * HD_PARTS];

/* One channel of the source. */
HD_INLINE void blk_term(const int a, const int b, const int v, const float *x, int64_t row, const float *w,
	blk_acc acc)
{
	part wk[BLK_GROUP * HD_PARTS];

#pragma GCC unroll 4
	for (int k = 0; k < v; k++)
		wk[k] = part_load(w + k * HD_WIDTH);
#pragma GCC unroll 2
	for (int i = 0; i < a; i++)
#pragma GCC unroll 14
		for (int j = 0; j < b; j++) {
			part xi = part_set(x[i * row + j * HD_UNIT]);
#pragma GCC unroll 4
			for (int k = 0; k < v; k++)
				acc[i][j][k] = part_fma(xi, wk[k], acc[i][j][k]);
		}
}

/* a rows x b pixels x nb blocks of results in registers; constants after inlining. */
HD_INLINE void blk_micro(const int a, const int b, const int nb, const struct blk_in *in,
	const struct blk_out *out)
{
	blk_acc acc;
	const int v = nb * HD_PARTS;

#pragma GCC unroll 2
	for (int i = 0; i < a; i++)
#pragma GCC unroll 14
		for (int j = 0; j < b; j++)
#pragma GCC unroll 4
			for (int k = 0; k < v; k++)
				acc[i][j][k] = out->more ? part_load(out->at + i * out->row + j * out->pixel +
					k / HD_PARTS * out->block +
					k % HD_PARTS * HD_WIDTH) : part_set(0.0f);
	for (int64_t t = 0; t < in->ntaps; t++) {
		const float *x = in->x + in->tap[t].x, *w = in->w + in->tap[t].w;
		if (in->nc == HD_UNIT) {
#pragma GCC unroll 16
			for (int c = 0; c < HD_UNIT; c++)
				blk_term(a, b, v, x + c, in->row, w + c * v * HD_WIDTH, acc);
			continue;
		}
		for (int64_t c = 0; c < in->nc; c++)
			blk_term(a, b, v, x + c, in->row, w + c * v * HD_WIDTH, acc);
	}
#pragma GCC unroll 2
	for (int i = 0; i < a; i++)
#pragma GCC unroll 14
		for (int j = 0; j < b; j++)
#pragma GCC unroll 4
			for (int k = 0; k < v; k++)
				part_store(out->at + i * out->row + j * out->pixel + k / HD_PARTS *
					out->block + k % HD_PARTS * HD_WIDTH,
					acc[i][j][k]);
}
typedef void blk_micro_fn(const struct blk_in *in, const struct blk_out *out);

/* Shapes that the registers hold: one row of up to BLK_PIXELS, two of half as many. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define BLK_ONE(X, nb) X(1, 1, nb) X(1, 2, nb) X(1, 3, nb) X(1, 4, nb) X(1, 5, nb) X(1, 6, nb) X(1, 7, nb) \
	X(1, 8, nb) X(1, 9, nb) X(1, 10, nb) X(1, 11, nb) X(1, 12, nb) X(1, 13, nb) X(1, 14, nb)
#define BLK_TWO(X, nb) X(2, 1, nb) X(2, 2, nb) X(2, 3, nb) X(2, 4, nb) X(2, 5, nb) X(2, 6, nb) X(2, 7, nb)
#define BLK_BLOCKS(X, list) list(X, 1) list(X, 2)
#elif defined(__AVX2__) && defined(__FMA__)
#define BLK_ONE(X, nb) X(1, 1, nb) X(1, 2, nb) X(1, 3, nb) X(1, 4, nb) X(1, 5, nb) X(1, 6, nb)
#define BLK_TWO(X, nb) X(2, 1, nb) X(2, 2, nb) X(2, 3, nb)
#define BLK_BLOCKS(X, list) list(X, 1)
#else
#define BLK_ONE(X, nb) X(1, 1, nb) X(1, 2, nb) X(1, 3, nb) X(1, 4, nb)
#define BLK_TWO(X, nb) X(2, 1, nb) X(2, 2, nb)
#define BLK_BLOCKS(X, list) list(X, 1)
#endif

#define X(a, b, nb) \
	static inline void blk_micro_##a##x##b##x##nb(const struct blk_in *in, const struct blk_out *out) \
	{ blk_micro(a, b, nb, in, out); }
BLK_BLOCKS(X, BLK_ONE)
BLK_BLOCKS(X, BLK_TWO)
#undef X
#define X(a, b, nb) [a - 1][b - 1][nb - 1] = blk_micro_##a##x##b##x##nb,
static blk_micro_fn *const blk_micros[2][BLK_PIXELS][BLK_GROUP] = { BLK_BLOCKS(X, BLK_ONE) BLK_BLOCKS(X,
	BLK_TWO) };
#undef X

/* rows x cols results in nearly equal pieces. */
static inline void blk_field(const struct blk_in *in, const struct blk_out *out, int64_t step, int64_t rows,
	int64_t cols, int64_t nb)
{
	int64_t pieces = div_up(cols, BLK_PIXELS), high = cols <= BLK_PIXELS / 2 ? 2 : 1;

	for (int64_t i = 0; i < rows; i += high) {
		int64_t a = min64(high, rows - i), j = 0;
		for (int64_t k = 0; k < pieces; k++) {
			int64_t b = (cols - j) / (pieces - k);
			struct blk_in from = *in;
			struct blk_out to = *out;
			from.x += i * step * in->row + j * HD_UNIT;
			from.row = step * in->row;
			to.at += i * out->row + j * out->pixel;
			blk_micros[a - 1][b - 1][nb - 1](&from, &to);
			j += b;
		}
	}
}

/* HD_WIDTH or fewer rows `step` apart from `from` on, HD_WIDTH or fewer columns: to(column) receives a
 * column. */
HD_INLINE void blk_turn(part square[HD_WIDTH], const float *from, int64_t step, int64_t rows, int64_t cols)
{
#pragma GCC unroll 16
	for (int64_t i = 0; i < HD_WIDTH; i++)
		square[i] = i >= rows ? part_set(0.0f) : cols >= HD_WIDTH ? part_load(from + i * step) :
			part_load_n(from + i * step, (size_t)cols);
	part_transpose(square);
}

/* The panel of conv2d_b: [R*S][nc][nb*16] of the kernels of nb blocks from k0 on, channels [c0, c0 + nc). */
static inline void blk_pack(const struct blk_conv *g, const float *w, int64_t k0, int64_t nb, int64_t c0,
	int64_t nc, float *to)
{
	int64_t taps = g->r * g->s, wide = nb * HD_UNIT, kernel = g->c * taps;

	for (int64_t k = 0; k < wide; k += HD_WIDTH) {
		const float *from = w + (k0 + k) * kernel + c0 * taps;
		int64_t rows = min64(HD_WIDTH, g->k - k0 - k), t = 0, c = 0;
		for (int64_t j = 0; j < nc * taps; j += HD_WIDTH) {
			int64_t cols = min64(HD_WIDTH, nc * taps - j);
			part square[HD_WIDTH];
			blk_turn(square, from + j, kernel, rows, cols);
			for (int64_t i = 0; i < cols; i++) {
				part_store(to + (t * nc + c) * wide + k, square[i]);
				c += ++t == taps;
				t = t == taps ? 0 : t;
			}
		}
	}
}

/* The panel of conv2d_b_dx: [R*S][nk][nb*16] of kernels [k0, k0 + nk), nb blocks of channels from c0 on. Each
 * block is turned twice: into vectors of kernels in `spare`, [16][R*S][16], and back into vectors of
 * channels. */
static inline void blk_pack_dx(const struct blk_conv *g, const float *w, int64_t c0, int64_t nb, int64_t k0,
	int64_t nk, float *to, float *spare)
{
	int64_t taps = g->r * g->s, wide = nb * HD_UNIT;

	for (int64_t c = 0; c < wide; c += HD_UNIT) {
		int64_t nc = min64(HD_UNIT, g->c - c0 - c);
		const float *from = w + (k0 * g->c + c0 + c) * taps;
		for (int64_t k = 0; k < HD_UNIT; k += HD_WIDTH)
			for (int64_t j = 0; j < nc * taps; j += HD_WIDTH) {
				int64_t cols = min64(HD_WIDTH, nc * taps - j);
				part square[HD_WIDTH];
				blk_turn(square, from + k * g->c * taps + j, g->c * taps, nk - k, cols);
				for (int64_t i = 0; i < cols; i++)
					part_store(spare + (j + i) * HD_UNIT + k, square[i]);
			}
		for (int64_t t = 0; t < taps; t++)
			for (int64_t i = 0; i < HD_UNIT; i += HD_WIDTH)
				for (int64_t k = 0; k < nk; k += HD_WIDTH) {
					part square[HD_WIDTH];
					blk_turn(square, spare + (i * taps + t) * HD_UNIT + k, taps * HD_UNIT,
						nc - i, HD_WIDTH);
					for (int64_t j = 0; j < min64(HD_WIDTH, nk - k); j++)
						part_store(to + (t * nk + k + j) * wide + c + i, square[j]);
				}
	}
}

HD_INLINE int64_t blk_blocks(int64_t channels) { return div_up(channels, HD_UNIT); }
/* Samples of a tile. */
HD_INLINE int64_t blk_samples(int64_t n, int64_t pixels) { return min64(n, div_up(BLK_TILE, pixels)); }

/* A convolution or its gradient by the source, as one thing: results of `out` channels and extents h x w in
 * sh x sw interleaved fields, each with taps of its own. */
struct blk_work {
	struct blk_conv conv;
	struct blk_lens lens;
	bool direct, back;                /* the source needs no copy; dx */
	int64_t nin, nout, out_h, out_w, fh, fw;
};

static inline struct blk_work blk_forward(const struct blk_conv *g)
{
	struct blk_lens lens = { g->h, g->w, g->ph, g->pw, g->sh, g->r, g->sw, min64(g->sw, g->s),
		g->q + (g->s - 1) / g->sw };
	bool direct = g->ph == 0 && g->pw == 0 && g->sw == 1;
	if (direct)
		lens.run = g->w;
	return (struct blk_work){ *g, lens, direct, false, g->c, g->k, g->p, g->q, 1, 1 };
}

static inline struct blk_work blk_backward(const struct blk_conv *g)
{
	int64_t top = (g->r - 1 - g->ph) / g->sh, left = (g->s - 1 - g->pw) / g->sw;
	int64_t cols = left + (g->w - 1 + g->pw) / g->sw + 1;
	struct blk_lens lens = { g->p, g->q, top, left, 1, top + (g->sh - 1 + g->ph) / g->sh + 1, 1, 1,
		cols };
	bool direct = top == 0 && left == 0 && lens.reach == 1 && cols <= g->q && div_up(g->h, g->sh) <= g->p;
	if (direct)
		lens.run = g->q;
	return (struct blk_work){ *g, lens, direct, true, g->k, g->c, g->h, g->w, g->sh, g->sw };
}

static inline struct blk_work blk_work_of(const struct hd_call *call)
{
	struct blk_conv g;
	bool back = call->op == HD_OP_CONV2D_B_DX;
	const struct hd_operand *x = back ? &call->out[0] : &call->in[0],
		*y = back ? &call->in[0] : &call->out[0], *w = &call->in[1];
	const int32_t *at = call->attr.i;

	g = (struct blk_conv){ x->dim[0], w->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[2], w->dim[3],
		y->dim[2], y->dim[3],
		at[0], at[1], at[2], at[3] };
	return back ? blk_backward(&g) : blk_forward(&g);
}

/* The taps of field (fh, fw), panels of n channels and `wide` results. */
static inline int64_t blk_taps(const struct blk_work *k, int64_t fh, int64_t fw, int64_t panel,
	struct blk_tap *tap)
{
	const struct blk_conv *g = &k->conv;
	int64_t n = 0;

	for (int64_t r = 0; r < g->r; r++)
		for (int64_t s = 0; s < g->s; s++) {
			int64_t up = fh + g->ph - r, left = fw + g->pw - s, at = (r * g->s + s) * panel;
			if (!k->back)
				tap[n++] = (struct blk_tap){ r * blk_pitch(&k->lens) +
					(s % g->sw * k->lens.run + s / g->sw) * HD_UNIT, at };
			else if (up % g->sh == 0 && left % g->sw == 0)
				tap[n++] = (struct blk_tap){ (up / g->sh + k->lens.top) *
					blk_pitch(&k->lens) +
					(left / g->sw + k->lens.left) * HD_UNIT, at };
		}
	return n;
}

/* Scratch: taps, the panel, what turns it, the spread source. */
struct blk_scratch { size_t taps, panel, spare, source; };
static inline struct blk_scratch blk_scratch_of(const struct blk_work *k)
{
	int64_t taps = k->conv.r * k->conv.s, high = div_up(k->out_h, k->fh);
	return (struct blk_scratch){
		(size_t)round_up(taps * (int64_t)(sizeof(struct blk_tap) / sizeof(float)), HD_UNIT),
		(size_t)(taps * HD_UNIT * BLK_GROUP * HD_UNIT),
		k->back ? (size_t)(taps * HD_UNIT * HD_UNIT) : 0,
		k->direct ? 0 : (size_t)(blk_span(&k->lens,
		blk_rows(&k->lens, high)) * blk_pitch(&k->lens)) };
}
static inline size_t blk_conv_scratch(const struct blk_work *k)
{
	struct blk_scratch s = blk_scratch_of(k);
	return (s.taps + s.panel + s.spare + s.source) * sizeof(float);
}

static inline uint32_t blk_conv_ntiles(const struct blk_work *k)
{
	return (uint32_t)(div_up(blk_blocks(k->nout), BLK_GROUP) * div_up(k->conv.n,
		blk_samples(k->conv.n, k->out_h * k->out_w)));
}

/* One block of source channels of one sample, added to nb blocks of its results. */
static inline void blk_sample(const struct blk_work *k, const float *from, float *to, struct blk_in *in,
	struct blk_tap *tap, float *source,
	int64_t nb, bool more)
{
	int64_t high = div_up(k->out_h, k->fh), chunk = k->direct ? high : blk_rows(&k->lens, high),
		area = k->out_h * k->out_w * HD_UNIT;

	in->row = blk_pitch(&k->lens);
	for (int64_t i = 0; i < high; i += chunk) {
		int64_t rows = min64(chunk, high - i);
		in->x = k->direct ? from + i * k->lens.step * in->row : source;
		if (!k->direct)
			blk_spread(&k->lens, from, i, rows, source);
		for (int64_t f = 0; f < k->fh * k->fw; f++) {
			int64_t fh = f / k->fw, fw = f % k->fw;
			struct blk_out out = { to + ((i * k->fh + fh) * k->out_w + fw) * HD_UNIT,
				k->fh * k->out_w * HD_UNIT, k->fw * HD_UNIT, area, more };
			if (k->fh * k->fw > 1)
				in->ntaps = blk_taps(k, fh, fw, in->nc * nb * HD_UNIT, tap);
			blk_field(in, &out, k->lens.step, min64(rows, div_up(k->out_h - fh, k->fh) - i),
				div_up(k->out_w - fw, k->fw), nb);
		}
	}
}

static inline void blk_conv_tile(const struct hd_call *call, const struct blk_work *k, uint32_t tile,
	float *scratch)
{
	struct blk_scratch s = blk_scratch_of(k);
	int64_t groups = div_up(blk_blocks(k->nout), BLK_GROUP),
		each = blk_samples(k->conv.n, k->out_h * k->out_w);
	int64_t b0 = tile % groups * BLK_GROUP, nb = min64(BLK_GROUP, blk_blocks(k->nout) - b0);
	int64_t n0 = tile / groups * each, n1 = min64(n0 + each, k->conv.n);
	int64_t nin = blk_blocks(k->nin), area = k->lens.h * k->lens.w * HD_UNIT,
		out_area = k->out_h * k->out_w * HD_UNIT;
	struct blk_tap *tap = (struct blk_tap *)scratch;
	float *panel = scratch + s.taps, *spare = panel + s.panel, *source = spare + s.spare;

	for (int64_t b = 0; b < nin; b++) {
		int64_t nc = min64(HD_UNIT, k->nin - b * HD_UNIT);
		struct blk_in in = { .w = panel, .tap = tap, .nc = nc,
			.ntaps = blk_taps(k, 0, 0, nc * nb * HD_UNIT, tap) };
		if (k->back)
			blk_pack_dx(&k->conv, call->in[1].at, b0 * HD_UNIT, nb, b * HD_UNIT, nc, panel,
				spare);
		else
			blk_pack(&k->conv, call->in[1].at, b0 * HD_UNIT, nb, b * HD_UNIT, nc, panel);
		for (int64_t n = n0; n < n1; n++)
			blk_sample(k, (const float *)call->in[0].at + (n * nin + b) * area,
				(float *)call->out[0].at + (n * blk_blocks(k->nout) + b0) * out_area, &in,
				tap, source, nb, b > 0);
	}
}

/* hc channels of x times nb blocks of dy, over a chunk of samples and rows. */
struct blk_dw { const float *x, *dy; int64_t nsamples, rows, cols, xsample, xrow, ysample, yblock; float *sum;
	int64_t wide; bool more; };

HD_INLINE void blk_dw_micro(const int hc, const int nb, const struct blk_dw *d)
{
	part acc[BLK_TERMS][BLK_GROUP * HD_PARTS];
	const int v = nb * HD_PARTS;

#pragma GCC unroll 8
	for (int c = 0; c < hc; c++)
#pragma GCC unroll 4
		for (int k = 0; k < v; k++)
			acc[c][k] = d->more ? part_load(d->sum + c * d->wide + k * HD_WIDTH) : part_set(0.0f);
	for (int64_t n = 0; n < d->nsamples; n++) {
		const float *dy = d->dy + n * d->ysample;
		for (int64_t p = 0; p < d->rows; p++) {
			const float *x = d->x + n * d->xsample + p * d->xrow;
			for (int64_t q = 0; q < d->cols; q++, x += HD_UNIT, dy += HD_UNIT) {
				part yk[BLK_GROUP * HD_PARTS];
#pragma GCC unroll 4
				for (int k = 0; k < v; k++)
					yk[k] = part_load(dy + k / HD_PARTS * d->yblock + k % HD_PARTS *
						HD_WIDTH);
#pragma GCC unroll 8
				for (int c = 0; c < hc; c++) {
					part xc = part_set(x[c]);
#pragma GCC unroll 4
					for (int k = 0; k < v; k++)
						acc[c][k] = part_fma(xc, yk[k], acc[c][k]);
				}
			}
		}
	}
#pragma GCC unroll 8
	for (int c = 0; c < hc; c++)
#pragma GCC unroll 4
		for (int k = 0; k < v; k++)
			part_store(d->sum + c * d->wide + k * HD_WIDTH, acc[c][k]);
}
typedef void blk_dw_fn(const struct blk_dw *d);

#define BLK_DW_SHAPES(X, nb) X(1, nb) X(2, nb) X(4, nb)
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define BLK_DW_ALL(X) BLK_DW_SHAPES(X, 1) X(8, 1) BLK_DW_SHAPES(X, 2) X(8, 2)
#else
#define BLK_DW_ALL(X) BLK_DW_SHAPES(X, 1)
#endif
#define X(hc, nb) static inline void blk_dw_##hc##x##nb(const struct blk_dw *d) { blk_dw_micro(hc, nb, d); }
BLK_DW_ALL(X)
#undef X
#define X(hc, nb) [hc][nb - 1] = blk_dw_##hc##x##nb,
static blk_dw_fn *const blk_dws[BLK_TERMS + 1][BLK_GROUP] = { BLK_DW_ALL(X) };
#undef X

static inline struct blk_conv blk_dw_of(const struct hd_call *call)
{
	const struct hd_operand *dy = &call->in[0], *x = &call->in[1], *w = &call->out[0];
	const int32_t *at = call->attr.i;
	return (struct blk_conv){ x->dim[0], w->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[2], w->dim[3],
		dy->dim[2], dy->dim[3],
		at[0], at[1], at[2], at[3] };
}

/* A chunk: some rows of one sample, or all rows of some samples. */
HD_INLINE int64_t blk_dw_rows(const struct blk_conv *g) { return min64(g->p, div_up(BLK_DW_PIXELS, g->q)); }
HD_INLINE int64_t blk_dw_samples(const struct blk_conv *g)
{
	return blk_dw_rows(g) < g->p ? 1 : min64(g->n, div_up(BLK_DW_PIXELS, g->p * g->q));
}

static inline size_t blk_dw_scratch(const struct blk_conv *g)
{
	struct blk_work k = blk_forward(g);
	int64_t source = k.direct ? 0 : blk_dw_samples(g) * blk_span(&k.lens,
		blk_dw_rows(g)) * blk_pitch(&k.lens);
	return (size_t)(g->r * g->s * HD_UNIT * BLK_GROUP * HD_UNIT + source) * sizeof(float);
}
static inline uint32_t blk_dw_ntiles(const struct blk_conv *g)
{
	return (uint32_t)(div_up(blk_blocks(g->k), BLK_GROUP) * blk_blocks(g->c));
}

/* All taps and channels of one chunk. */
static inline void blk_dw_chunk(const struct blk_work *k, struct blk_dw *d, const float *x, float *sums,
	int64_t nc, int64_t nb)
{
	const struct blk_conv *g = &k->conv;

	d->xrow = k->lens.step * blk_pitch(&k->lens);
	d->wide = nb * HD_UNIT;
	for (int64_t r = 0; r < g->r; r++)
		for (int64_t s = 0; s < g->s; s++)
			for (int64_t c = 0, hc; c < nc; c += hc) {
				for (hc = BLK_TERMS; hc > nc - c; hc /= 2)
					;
				d->x = x + r * blk_pitch(&k->lens) + (s % g->sw * k->lens.run + s / g->sw) *
					HD_UNIT + c;
				d->sum = sums + ((r * g->s + s) * nc + c) * d->wide;
				blk_dws[hc][nb - 1](d);
			}
}

/* One part's share of a gradient's tile: its operands, and where the leaf goes: [K][C*R*S] from the tile's
 * first element on. */
struct blk_leaf { const float *dy, *x; struct rect to; const struct gemm_adds *adds; };

/* sums[R*S][nc][nb*16] of kernels k and channels c (from the tile's first on) as parameters lie. */
static inline void blk_unpack(const struct blk_conv *g, const float *sums, int64_t k0, int64_t nk, int64_t c0,
	int64_t nc, const struct blk_leaf *leaf)
{
	int64_t taps = g->r * g->s, wide = round_up(nk, HD_UNIT);

	for (int64_t k = 0; k < nk; k += HD_WIDTH) {
		int64_t rows = min64(HD_WIDTH, nk - k), t = 0, c = 0;
		for (int64_t j = 0; j < nc * taps; j += HD_WIDTH) {
			int64_t cols = min64(HD_WIDTH, nc * taps - j), col = c0 * taps + j;
			part square[HD_WIDTH];
			for (int64_t i = 0; i < HD_WIDTH; i++) {
				square[i] = i < cols ? part_load(sums + (t * nc + c) * wide + k) :
					part_set(0.0f);
				c += ++t == taps;
				t = t == taps ? 0 : t;
			}
			part_transpose(square);
			for (int64_t i = 0; i < rows; i++) {
				int64_t row = k0 + k + i;
				for (uint32_t a = 0; a < leaf->adds->n; a++)
					square[i] = part_load_n(leaf->adds->of[a].at + row *
						leaf->adds->of[a].step + col, (size_t)cols) + square[i];
				part_store_n(leaf->to.at + row * leaf->to.step + col, square[i],
					(size_t)cols);
			}
		}
	}
}

/* A tile of the gradient of a kernel: kernels [k0, k0 + nk), channels [c0, c0 + nc). */
struct blk_patch { int64_t k0, nk, c0, nc; };

/* BLK_GROUP blocks of kernels, one of channels. */
static inline struct blk_patch blk_dw_patch(const struct blk_conv *g, uint32_t tile)
{
	int64_t ncb = blk_blocks(g->c), c0 = tile % ncb * HD_UNIT, k0 = tile / ncb * BLK_GROUP * HD_UNIT;
	return (struct blk_patch){ k0, min64(BLK_GROUP * HD_UNIT, g->k - k0), c0, min64(HD_UNIT, g->c - c0) };
}

static inline void blk_dw_leaf(const struct blk_conv *g, const struct blk_patch *at,
	const struct blk_leaf *leaf, float *scratch)
{
	struct blk_work k = blk_forward(g);
	int64_t ncb = blk_blocks(g->c), nkb = blk_blocks(g->k), b = at->c0 / HD_UNIT, b0 = at->k0 / HD_UNIT,
		nb = blk_blocks(at->nk);
	int64_t rows = blk_dw_rows(g), samples = blk_dw_samples(g), xarea = g->h * g->w * HD_UNIT,
		yarea = g->p * g->q * HD_UNIT;
	float *sums = scratch, *source = sums + g->r * g->s * HD_UNIT * BLK_GROUP * HD_UNIT;
	struct blk_dw d = { .cols = g->q, .ysample = nkb * yarea, .yblock = yarea };

	for (int64_t n = 0; n < g->n; n += samples)
		for (int64_t p = 0; p < g->p; p += rows) {
			const float *x = leaf->x + (n * ncb + b) * xarea;
			d.nsamples = min64(samples, g->n - n);
			d.rows = min64(rows, g->p - p);
			d.dy = leaf->dy + (n * nkb + b0) * yarea + p * g->q * HD_UNIT;
			d.xsample = k.direct ? ncb * xarea : blk_span(&k.lens, d.rows) * blk_pitch(&k.lens);
			for (int64_t i = 0; i < d.nsamples && !k.direct; i++)
				blk_spread(&k.lens, x + i * ncb * xarea, p, d.rows, source + i * d.xsample);
			blk_dw_chunk(&k, &d, k.direct ? x + p * g->sh * g->w * HD_UNIT : source, sums, at->nc,
				nb);
			d.more = true;
		}
	if (g->n == 0)
		memset(sums, 0, (size_t)(g->r * g->s * at->nc * nb * HD_UNIT) * sizeof *sums);
	blk_unpack(g, sums, 0, at->nk, 0, at->nc, leaf);
}

/* [N,C,H,W] <-> [N,C/16,H,W,16]: a unit is a row of one block. */
static inline void blk_move(const struct hd_operand *plain, const struct hd_operand *blocked, uint64_t unit,
	bool into)
{
	int64_t w = plain->dim[3], h = plain->dim[2], channels = plain->dim[1], blocks = blocked->dim[1];
	int64_t y = (int64_t)unit % h, b = (int64_t)unit / h % blocks, n = (int64_t)unit / (h * blocks);
	int64_t nc = min64(HD_UNIT, channels - b * HD_UNIT), plane = h * w;
	float *p = (float *)plain->at + ((n * channels + b * HD_UNIT) * h + y) * w,
		*q = (float *)blocked->at + (int64_t)unit * w * HD_UNIT;

	for (int64_t i = 0; i < w; i += HD_WIDTH) {
		int64_t cols = min64(HD_WIDTH, w - i);
		for (int64_t c = 0; c < HD_UNIT; c += HD_WIDTH) {
			part square[HD_WIDTH];
			if (into) {
				blk_turn(square, p + c * plane + i, plane, nc - c, cols);
				for (int64_t j = 0; j < cols; j++)
					part_store(q + (i + j) * HD_UNIT + c, square[j]);
				continue;
			}
			blk_turn(square, q + i * HD_UNIT + c, HD_UNIT, cols, HD_WIDTH);
			for (int64_t j = 0; j < min64(HD_WIDTH, nc - c); j++)
				part_store_n(p + (c + j) * plane + i, square[j], (size_t)cols);
		}
	}
}

static inline uint64_t blk_units(const struct hd_operand *blocked) { return (uint64_t)(blocked->dim[0] *
	blocked->dim[1] * blocked->dim[2]); }
static inline uint32_t block_ntiles(const struct hd_call *call)
{
	const struct hd_operand *b = call->op == HD_OP_BLOCK ? &call->out[0] : &call->in[0];
	return row_ntiles(blk_units(b), (uint64_t)(b->dim[3] * HD_UNIT));
}
static inline void block_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	bool into = call->op == HD_OP_BLOCK;
	const struct hd_operand *blocked = into ? &call->out[0] : &call->in[0],
		*plain = into ? &call->in[0] : &call->out[0];
	struct elem_run run = row_run(blk_units(blocked), (uint64_t)(blocked->dim[3] * HD_UNIT), tile);
	(void)scratch;

	for (uint64_t i = run.at; i < run.at + run.n; i++)
		blk_move(plain, blocked, i, into);
}

#endif
