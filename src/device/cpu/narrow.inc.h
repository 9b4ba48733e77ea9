/* narrow.inc.h -- convolutions of plain images with few channels. One source for all paths.
 *
 * Where 16 channels at most become 16 at most, laying out windows costs as much as the products and blocks of
 * 16 channels would be part empty. Here a vector holds pixels of one row of the result instead: some rows
 * times some kernels stay in registers, each term is one element of a kernel times a row of the source. A
 * tile copies its source between zeros, so that the inner loop knows no edges.
 *
 * 1. conv2d: each element is one chain of fused multiply-adds from +0 over (c, r, s) ascending; conv2d_dx
 *    over k ascending, (r, s) ascending. Rows of pads that no row of a group of NAR_GROUP sees are left out.
 * 2. conv2d_dw: each element has 16 lanes along q, chains over (n, p, q) ascending, and their tree at the
 *    end.
 * 3. So registers, pieces, tiles and the number of samples in a call change no bit. */
#ifndef HD_DEVICE_CPU_NARROW_INC_H
#define HD_DEVICE_CPU_NARROW_INC_H

#include "device/cpu/conv.inc.h"

enum {
	NAR_CHANNELS = 16,                        /* the most that are few */
	NAR_KERNELS = (int)HD_HEIGHT < 6 ? HD_HEIGHT : 6,   /* held at once */
	NAR_GROUP = 4,                            /* rows that leave out the same rows of pads */
	/* pixels of a tile, so that a panel of kernels is used often */
	NAR_TILE = 512,
	/* of padded planes that conv2d_dw goes over again and again */
	NAR_CHUNK = 16384 / (int)sizeof(float),
#if defined(__AVX512F__) && defined(__AVX512DQ__)
	NAR_HIGH = 4, NAR_DW_KERNELS = 4, NAR_DW_TAPS = 5,
#else
	NAR_HIGH = 2, NAR_DW_KERNELS = 2, NAR_DW_TAPS = 2,
#endif
	/* registers of a row held at once; then half as many rows */
	NAR_WIDE = 2,
};

/* Results `cols` wide: pads and the end of the last vector may be three eighths of the work. */
HD_INLINE bool conv_is_narrow(const struct conv *g, int64_t cols)
{
	return g->groups == 1 && g->c <= NAR_CHANNELS && g->k <= NAR_CHANNELS && g->r * g->s > 1 &&
		g->sh == 1 && g->sw == 1 && g->dh == 1 &&
		g->dw == 1 && cols * 8 >= round_up(cols, HD_UNIT) * 5;
}

/* A convolution or its gradient by the source, as one thing: planes h x w with `top` and `left` zeros before
 * them become planes rows x cols. Window element (r, s) lies at row r, column s, or counted from the end
 * when `back`. */
struct narrow { int64_t nin, nout, h, w, top, left, rows, cols, r, s, pitch, plane; bool back; };

static inline struct narrow narrow_of(const struct conv *g, bool back)
{
	struct narrow f = { g->c, g->k, g->h, g->w, g->ph, g->pw, g->p, g->q, g->r, g->s, 0, 0, back };

	if (back)
		f = (struct narrow){ g->k, g->c, g->p, g->q, g->r - 1 - g->ph, g->s - 1 - g->pw, g->h, g->w,
			g->r, g->s, 0, 0, back };
	f.pitch = f.cols + f.s - 1;
	f.plane = (f.rows + f.r - 1) * f.pitch;
	return f;
}

/* n planes between zeros, `from` each `step` floats; a vector may read over the end of the last. */
enum { NAR_SLACK = NAR_WIDE * HD_UNIT };
static inline void narrow_spread(const struct narrow *f, const float *from, int64_t step, int64_t n,
	float *to)
{
	memset(to, 0, (size_t)(n * f->plane + NAR_SLACK) * sizeof *to);
	for (int64_t i = 0; i < n; i++, from += step)
		for (int64_t y = 0; y < f->h; y++)
			copy_run(to + i * f->plane + (f->top + y) * f->pitch + f->left, from + y * f->w,
				f->w);
}

/* What a call of the innermost loop sees: `nr` rows of windows from x on, steps from one element to the
 * next. */
struct narrow_in { const float *x, *w; int64_t nin, nr, s, plane, pitch, rstep, sstep, kernel; };
struct narrow_out { float *at; int64_t row, plane, nk, len; };

/* a rows x v registers x h kernels of results; constants after inlining. */
HD_INLINE void narrow_micro(const int a, const int v, const int h, const struct narrow_in *in,
	const struct narrow_out *out)
{
	part acc[NAR_HIGH][NAR_WIDE][NAR_KERNELS];

#define EACH_ROW _Pragma("GCC unroll 4") for (int i = 0; i < a; i++)
#define EACH_PART _Pragma("GCC unroll 2") for (int j = 0; j < v; j++)
#define EACH_KERNEL _Pragma("GCC unroll 6") for (int k = 0; k < h; k++)
	EACH_ROW EACH_PART EACH_KERNEL acc[i][j][k] = part_set(0.0f);
	for (int64_t c = 0; c < in->nin; c++) {
		const float *w = in->w + c * in->kernel;
		for (int64_t r = 0; r < in->nr; r++) {
			const float *x = in->x + c * in->plane + r * in->rstep;
			for (int64_t s = 0; s < in->s; s++, x += in->sstep, w += h) {
				part seen[NAR_HIGH][NAR_WIDE];
				EACH_ROW EACH_PART seen[i][j] = part_load(x + i * in->pitch + j * HD_WIDTH);
				EACH_KERNEL {
					part wk = part_set(w[k]);
					EACH_ROW EACH_PART acc[i][j][k] = part_fma(wk, seen[i][j],
						acc[i][j][k]);
				}
			}
		}
	}
	EACH_KERNEL {
		if (k >= out->nk)
			continue;
		EACH_ROW EACH_PART {
			float *to = out->at + k * out->plane + i * out->row + j * HD_WIDTH;
			if ((j + 1) * HD_WIDTH <= out->len)
				part_store(to, acc[i][j][k]);
			else
				part_store_n(to, acc[i][j][k], (size_t)(out->len - j * HD_WIDTH));
		}
	}
#undef EACH_ROW
#undef EACH_PART
#undef EACH_KERNEL
}
typedef void narrow_fn(const struct narrow_in *in, const struct narrow_out *out);

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define NAR_FIELDS(X, h) X(1, 1, h) X(2, 1, h) X(4, 1, h) X(1, 2, h) X(2, 2, h)
#define NAR_SHAPES(X) NAR_FIELDS(X, 2) NAR_FIELDS(X, 4) NAR_FIELDS(X, 6)
#elif defined(__AVX2__) && defined(__FMA__)
#define NAR_FIELDS(X, h) X(1, 1, h) X(2, 1, h) X(1, 2, h)
#define NAR_SHAPES(X) NAR_FIELDS(X, 2) NAR_FIELDS(X, 4) NAR_FIELDS(X, 6)
#else
#define NAR_FIELDS(X, h) X(1, 1, h) X(2, 1, h) X(1, 2, h)
#define NAR_SHAPES(X) NAR_FIELDS(X, 2) NAR_FIELDS(X, 4)
#endif
#define X(a, v, h) \
	static inline void narrow_##a##x##v##x##h(const struct narrow_in *in, const struct narrow_out *out) \
	{ narrow_micro(a, v, h, in, out); }
NAR_SHAPES(X)
#undef X
#define X(a, v, h) [a][v - 1][h / 2 - 1] = narrow_##a##x##v##x##h,
static narrow_fn *const narrow_fns[NAR_HIGH + 1][NAR_WIDE][NAR_KERNELS / 2] = { NAR_SHAPES(X) };
#undef X

/* Kernels of the next piece of `left`, nearly equal and even. */
HD_INLINE int64_t narrow_piece(int64_t left) { return round_up(div_up(left, div_up(left, NAR_KERNELS)), 2); }

/* Panels [nin][R*S][piece], one after the other. Whole registers are written over the edge (pack_turned). */
static inline void narrow_pack(const struct narrow *f, const float *w, float *to)
{
	int64_t taps = f->r * f->s;

	for (int64_t k = 0, h; k < f->nout; k += h, to += h * f->nin * taps) {
		h = narrow_piece(f->nout - k);
		if (!f->back)
			pack_turned(to, h, w + k * f->nin * taps, f->nin * taps, min64(h, f->nout - k),
				f->nin * taps);
		for (int64_t c = 0; f->back && c < f->nin; c++)
			pack_turned(to + c * taps * h, h, w + (c * f->nout + k) * taps, taps,
				min64(h, f->nout - k), taps);
	}
}

/* Window rows [first, last) that some of the rows [y, y + NAR_GROUP) of the result see inside the image. */
HD_INLINE void narrow_seen(const struct narrow *f, int64_t y, int64_t *first, int64_t *last)
{
	/* counted from the window's top */
	int64_t lo = f->top - (y + NAR_GROUP - 1), hi = f->h + f->top - y;

	lo = lo < 0 ? 0 : min64(lo, f->r);
	hi = hi < lo ? lo : min64(hi, f->r);
	*first = f->back ? f->r - hi : lo;
	*last = f->back ? f->r - lo : hi;
}

/* A group of rows of all results of one sample. */
static inline void narrow_rows(const struct narrow *f, const float *panel, const float *source, int64_t y0,
	int64_t rows, float *to)
{
	struct narrow_in in = { .nin = f->nin, .s = f->s, .plane = f->plane, .pitch = f->pitch };
	int64_t first, last, taps = f->r * f->s;

	narrow_seen(f, y0, &first, &last);
	in.nr = last - first;
	in.rstep = f->back ? -f->pitch : f->pitch;
	in.sstep = f->back ? -1 : 1;
	const float *corner = source + (f->back ? (f->r - 1 - first) * f->pitch + f->s - 1 :
		first * f->pitch);
	for (int64_t k = 0, h; k < f->nout; k += h, panel += h * f->nin * taps) {
		h = narrow_piece(f->nout - k);
		in.kernel = taps * h;
		in.w = panel + first * f->s * h;
		for (int64_t x = 0, v; x < f->cols; x += v * HD_WIDTH) {
			v = f->cols - x > HD_WIDTH ? NAR_WIDE : 1;
			for (int64_t y = 0, a; y < rows; y += a) {
				for (a = NAR_HIGH / v; a > rows - y; a /= 2)
					;
				in.x = corner + (y0 + y) * f->pitch + x;
				narrow_fns[a][v - 1][h / 2 - 1](&in,
					&(struct narrow_out){ to + (k * f->rows + y0 + y) * f->cols + x,
					f->cols,
					f->rows * f->cols, f->nout - k, f->cols - x });
			}
		}
	}
}

HD_INLINE int64_t narrow_samples(const struct conv *g, const struct narrow *f) { return min64(g->n,
	div_up(NAR_TILE, f->rows * f->cols)); }
HD_INLINE uint32_t narrow_ntiles(const struct conv *g, bool back)
{
	struct narrow f = narrow_of(g, back);
	return g->n ? (uint32_t)div_up(g->n, narrow_samples(g, &f)) : 0;
}
HD_INLINE int64_t narrow_panel(const struct narrow *f) { return round_up((f->nout + 1) * f->nin * f->r *
	f->s + HD_UNIT, HD_UNIT); }
HD_INLINE size_t narrow_scratch(const struct conv *g, bool back)
{
	struct narrow f = narrow_of(g, back);
	return (size_t)(narrow_panel(&f) + f.nin * f.plane + NAR_SLACK) * sizeof(float);
}

static inline void narrow_tile(const struct conv *g, bool back, const float *from, const float *w, float *to,
	uint32_t tile, float *panel)
{
	struct narrow f = narrow_of(g, back);
	int64_t each = narrow_samples(g, &f), end = min64((tile + 1) * each, g->n);
	float *source = panel + narrow_panel(&f);

	narrow_pack(&f, w, panel);
	for (int64_t n = tile * each; n < end; n++) {
		narrow_spread(&f, from + n * f.nin * f.h * f.w, f.h * f.w, f.nin, source);
		for (int64_t y = 0; y < f.rows; y += NAR_GROUP)
			narrow_rows(&f, panel, source, y, min64(NAR_GROUP, f.rows - y),
				to + n * f.nout * f.rows * f.cols);
	}
}

/* h planes of dy times b neighbours of a window row, over the rows that the image holds. */
struct narrow_dw { const float *x, *dy; int64_t nsamples, rows, cols, xsample, pitch, ysample, plane;
	float *sum; int64_t kernel; bool more; };

HD_INLINE void narrow_dw_step(const int h, const int b, const float *x, const float *dy, int64_t plane,
	size_t len,
	struct vf acc[NAR_DW_KERNELS][NAR_DW_TAPS])
{
	struct vf yk[NAR_DW_KERNELS];

#define EACH_KERNEL _Pragma("GCC unroll 4") for (int k = 0; k < h; k++)
#define EACH_TAP _Pragma("GCC unroll 5") for (int j = 0; j < b; j++)
	EACH_KERNEL yk[k] = vf_load_n(dy + k * plane, len);
	EACH_TAP {
		struct vf xj = vf_load_n(x + j, len);
		EACH_KERNEL acc[k][j] = vf_fma(yk[k], xj, acc[k][j]);
	}
}

HD_INLINE void narrow_dw_micro(const int h, const int b, const struct narrow_dw *d)
{
	struct vf acc[NAR_DW_KERNELS][NAR_DW_TAPS];
	const int64_t cols = d->cols, whole = cols / HD_UNIT * HD_UNIT, rows = d->rows, pitch = d->pitch,
		plane = d->plane;
	const size_t rest = (size_t)(cols - whole);

	EACH_KERNEL EACH_TAP acc[k][j] = d->more ? vf_load(d->sum + k * d->kernel + j * HD_UNIT) :
		vf_set(0.0f);
	for (int64_t n = 0; n < d->nsamples; n++) {
		const float *x = d->x + n * d->xsample, *dy = d->dy + n * d->ysample;
		for (int64_t p = 0; p < rows; p++, x += pitch, dy += cols) {
			for (int64_t i = 0; i < whole; i += HD_UNIT)
				narrow_dw_step(h, b, x + i, dy + i, plane, HD_UNIT, acc);
			if (rest)
				narrow_dw_step(h, b, x + whole, dy + whole, plane, rest, acc);
		}
	}
	EACH_KERNEL EACH_TAP vf_store(d->sum + k * d->kernel + j * HD_UNIT, acc[k][j]);
#undef EACH_KERNEL
#undef EACH_TAP
}
typedef void narrow_dw_fn(const struct narrow_dw *d);

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define NAR_DW_OF(X, h) X(h, 1) X(h, 2) X(h, 3) X(h, 4) X(h, 5)
#define NAR_DW_SHAPES(X) NAR_DW_OF(X, 1) NAR_DW_OF(X, 2) NAR_DW_OF(X, 3) NAR_DW_OF(X, 4)
#else
#define NAR_DW_SHAPES(X) X(1, 1) X(1, 2) X(2, 1) X(2, 2)
#endif
#define X(h, b) \
	static inline void narrow_dw_##h##x##b(const struct narrow_dw *d) { narrow_dw_micro(h, b, d); }
NAR_DW_SHAPES(X)
#undef X
#define X(h, b) [h - 1][b - 1] = narrow_dw_##h##x##b,
static narrow_dw_fn *const narrow_dws[NAR_DW_KERNELS][NAR_DW_TAPS] = { NAR_DW_SHAPES(X) };
#undef X

/* Scratch of a tile: 16 lanes per sum, the sums, padded planes of one channel. */
HD_INLINE int64_t narrow_dw_sums(const struct conv *g) { return round_up(g->k * g->r * g->s, HD_WIDTH); }
HD_INLINE int64_t narrow_dw_samples(const struct conv *g, const struct narrow *f) { return g->n < 1 ? 1 :
	min64(g->n, div_up(NAR_CHUNK, f->plane)); }
static inline size_t narrow_dw_scratch(const struct conv *g)
{
	struct narrow f = narrow_of(g, false);
	return (size_t)(narrow_dw_sums(g) * (HD_UNIT + 1) + narrow_dw_samples(g, &f) * f.plane + NAR_SLACK) *
		sizeof(float);
}

/* All kernels and window elements of some samples of one channel. */
static inline void narrow_dw_chunk(const struct conv *g, const struct narrow *f, struct narrow_dw *d,
	const float *source, const float *dy, float *lanes)
{
	for (int64_t r = 0; r < g->r; r++) {
		int64_t first = g->ph > r ? min64(g->ph - r, g->p) : 0, last = min64(g->p, g->h + g->ph - r);
		d->rows = last - first;
		for (int64_t k = 0, h; k < g->k; k += h) {
			h = div_up(g->k - k, div_up(g->k - k, NAR_DW_KERNELS));
			for (int64_t s = 0, b; s < g->s; s += b) {
				b = div_up(g->s - s, div_up(g->s - s, NAR_DW_TAPS));
				d->x = source + (first + r) * f->pitch + s;
				d->dy = dy + k * d->plane + first * g->q;
				d->sum = lanes + ((k * g->r + r) * g->s + s) * HD_UNIT;
				narrow_dws[h - 1][b - 1](d);
			}
		}
	}
}

/* The trees of vf_sum(), a register's width of them at a time. */
static inline void narrow_trees(const float *lanes, int64_t n, float *to)
{
	for (int64_t i = 0; i < n; i += HD_WIDTH) {
		part row[HD_WIDTH];
#pragma GCC unroll 16
		for (int e = 0; e < HD_WIDTH; e++) {
			struct vf v = vf_load(lanes + (i + e) * HD_UNIT);
			for (int half = HD_PARTS / 2; half > 0; half /= 2)
				for (int j = 0; j < half; j++)
					v.p[j] += v.p[j + half];
			row[e] = v.p[0];
		}
		part_transpose(row);
		for (int half = HD_WIDTH / 2; half > 0; half /= 2)
			for (int j = 0; j < half; j++)
				row[j] += row[j + half];
		part_store(to + i, row[0]);
	}
}

/* A tile is one channel of x. */
static inline void narrow_dw_tile(const struct conv *g, const float *all_dy, const float *all_x, float *dw,
	uint32_t tile, float *lanes)
{
	struct narrow f = narrow_of(g, false);
	int64_t each = narrow_dw_samples(g, &f), taps = g->r * g->s, area = g->p * g->q, plane = g->h * g->w;
	float *sums = lanes + narrow_dw_sums(g) * HD_UNIT, *source = sums + narrow_dw_sums(g);
	struct narrow_dw d = { .cols = g->q, .xsample = f.plane, .pitch = f.pitch, .ysample = g->k * area,
		.plane = area, .kernel = taps * HD_UNIT };

	memset(lanes, 0, (size_t)(narrow_dw_sums(g) * HD_UNIT) * sizeof *lanes);
	for (int64_t n = 0; n < g->n; n += each, d.more = true) {
		d.nsamples = min64(each, g->n - n);
		narrow_spread(&f, all_x + (n * g->c + tile) * plane, g->c * plane, d.nsamples, source);
		narrow_dw_chunk(g, &f, &d, source, all_dy + n * d.ysample, lanes);
	}
	narrow_trees(lanes, narrow_dw_sums(g), sums);
	for (int64_t k = 0; k < g->k; k++)
		copy_run(dw + (k * g->c + tile) * taps, sums + k * taps, taps);
}

#endif
