/* images.inc.h -- convolutions as products of matrices, and pooling. One source for all paths.
 *
 * The windows of one sample are laid out as a matrix [C*R*S, P*Q] in scratch
 * ("im2col"; Chellapilla, Puri, Simard 2006).
 *
 * 1. conv2d and conv2d_dx: a tile is one sample. conv2d_dw: a tile is some channels of
 *    the input, all samples in ascending order; each sample continues the chain of
 *    fused multiply-adds of the one before.
 * 2. conv2d_dx adds the windows that overlap a pixel in order of (r, s, p, q). */
#ifndef HD_DEVICE_CPU_IMAGES_INC_H
#define HD_DEVICE_CPU_IMAGES_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/maps.inc.h"

struct conv { int64_t n, c, h, w, k, r, s, p, q, sh, sw, ph, pw; };

static inline struct conv conv_of(const struct hd_call *call, const struct hd_operand *x, const struct hd_operand *w, const struct hd_operand *y)
{
	const int32_t *attr = call->attr.i;
	return (struct conv){ x->dim[0], x->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[2], w->dim[3], y->dim[2], y->dim[3],
		attr[0], attr[1], attr[2], attr[3] };
}

/* The q for which window column s lies inside the image: [first, last). */
HD_INLINE void inside(int64_t extent, int64_t n, int64_t stride, int64_t offset, int64_t *first, int64_t *last)
{
	*first = offset >= 0 ? 0 : div_up(-offset, stride);
	*last = extent - 1 < offset ? 0 : min64(n, (extent - 1 - offset) / stride + 1);
	if (*first > *last)
		*first = *last;
}

/* A memcpy() of ten floats costs more than their move. */
HD_INLINE void copy_run(float *to, const float *from, int64_t n)
{
	if (n > 0)
		HD_UNITS(i, len, (size_t)n)
			vf_store_n(to + i, vf_load_n(from + i, len), len);
}
HD_INLINE void add_run(float *to, const float *from, int64_t n)
{
	if (n > 0)
		HD_UNITS(i, len, (size_t)n)
			vf_store_n(to + i, vf_add(vf_load_n(to + i, len), vf_load_n(from + i, len)), len);
}

/* One row of the matrix: what window element (r, s) sees of a plane at all (p, q). */
static inline void unfold(const struct conv *g, const float *plane, int64_t r, int64_t s, float *to)
{
	int64_t first, last;

	inside(g->w, g->q, g->sw, s - g->pw, &first, &last);
	for (int64_t p = 0; p < g->p; p++, to += g->q) {
		int64_t y = p * g->sh + r - g->ph;
		if (y < 0 || y >= g->h) {
			memset(to, 0, (size_t)g->q * sizeof *to);
			continue;
		}
		const float *from = plane + y * g->w + s - g->pw;
		for (int64_t q = 0; q < first; q++)
			to[q] = 0.0f;
		if (g->sw == 1)
			copy_run(to + first, from + first, last - first);
		for (int64_t q = first; g->sw != 1 && q < last; q++)
			to[q] = from[q * g->sw];
		for (int64_t q = last; q < g->q; q++)
			to[q] = 0.0f;
	}
}

static inline void fold(const struct conv *g, const float *from, int64_t r, int64_t s, float *plane)
{
	int64_t first, last;

	inside(g->w, g->q, g->sw, s - g->pw, &first, &last);
	for (int64_t p = 0; p < g->p; p++, from += g->q) {
		int64_t y = p * g->sh + r - g->ph;
		if (y < 0 || y >= g->h)
			continue;
		float *to = plane + y * g->w + s - g->pw;
		if (g->sw == 1)
			add_run(to + first, from + first, last - first);
		for (int64_t q = first; g->sw != 1 && q < last; q++)
			to[q * g->sw] += from[q];
	}
}

/* Windows of `nc` channels of one sample, from `x` on: [nc*R*S, P*Q]. */
HD_INLINE void unfold_all(const struct conv *g, const float *x, int64_t nc, float *to)
{
	for (int64_t c = 0; c < nc; c++)
		for (int64_t r = 0; r < g->r; r++)
			for (int64_t s = 0; s < g->s; s++, to += g->p * g->q)
				unfold(g, x + c * g->h * g->w, r, s, to);
}

HD_INLINE size_t conv_scratch_of(const struct conv *g, int64_t nc, size_t product)
{
	return (size_t)round_up(nc * g->r * g->s * g->p * g->q, HD_UNIT) * sizeof(float) + product;
}
HD_INLINE float *after_windows(const struct conv *g, int64_t nc, void *scratch)
{
	return (float *)scratch + round_up(nc * g->r * g->s * g->p * g->q, HD_UNIT);
}

static inline struct conv conv2d_of(const struct hd_call *call) { return conv_of(call, &call->in[0], &call->in[1], &call->out[0]); }
static inline uint32_t conv2d_ntiles(const struct hd_call *call) { return (uint32_t)call->in[0].dim[0]; }
static inline size_t conv2d_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_of(call);
	return conv_scratch_of(&g, g.c, gemm_scratch(g.k, g.p * g.q, g.c * g.r * g.s));
}

static inline void conv2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_of(call);
	int64_t window = g.c * g.r * g.s, area = g.p * g.q;
	float *y = (float *)call->out[0].at + tile * g.k * area;

	unfold_all(&g, (const float *)call->in[0].at + tile * g.c * g.h * g.w, g.c, scratch);
	gemm((struct mat){ call->in[1].at, window, false }, (struct mat){ scratch, area, false },
		(struct gemm_out){ y, area, g.k, area, false }, window, after_windows(&g, g.c, scratch));
}

static inline struct conv conv2d_dx_of(const struct hd_call *call) { return conv_of(call, &call->out[0], &call->in[1], &call->in[0]); }
static inline uint32_t conv2d_dx_ntiles(const struct hd_call *call) { return (uint32_t)call->out[0].dim[0]; }
static inline size_t conv2d_dx_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_dx_of(call);
	return conv_scratch_of(&g, g.c, gemm_scratch(g.c * g.r * g.s, g.p * g.q, g.k));
}

static inline void conv2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_dx_of(call);
	int64_t window = g.c * g.r * g.s, area = g.p * g.q, plane = g.h * g.w;
	const float *dy = (const float *)call->in[0].at + tile * g.k * area, *from = scratch;
	float *dx = (float *)call->out[0].at + tile * g.c * plane;

	gemm((struct mat){ call->in[1].at, window, true }, (struct mat){ dy, area, false },
		(struct gemm_out){ scratch, area, window, area, false }, g.k, after_windows(&g, g.c, scratch));
	memset(dx, 0, (size_t)(g.c * plane) * sizeof *dx);
	for (int64_t c = 0; c < g.c; c++)
		for (int64_t r = 0; r < g.r; r++)
			for (int64_t s = 0; s < g.s; s++, from += area)
				fold(&g, from, r, s, dx + c * plane);
}

static inline struct conv conv2d_dw_of(const struct hd_call *call) { return conv_of(call, &call->in[1], &call->out[0], &call->in[0]); }

/* Channels of a tile: some 64 columns of dw. */
HD_INLINE int64_t dw_channels(const struct conv *g) { return min64(g->c, div_up(64, g->r * g->s)); }

static inline uint32_t conv2d_dw_ntiles(const struct hd_call *call)
{
	struct conv g = conv2d_dw_of(call);
	return (uint32_t)div_up(g.c, dw_channels(&g));
}
static inline size_t conv2d_dw_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_dw_of(call);
	int64_t nc = dw_channels(&g);
	return conv_scratch_of(&g, nc, gemm_scratch(g.k, nc * g.r * g.s, g.p * g.q));
}

static inline void conv2d_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_dw_of(call);
	int64_t first = tile * dw_channels(&g), nc = min64(dw_channels(&g), g.c - first);
	int64_t window = g.r * g.s, area = g.p * g.q;
	float *dw = (float *)call->out[0].at + first * window;

	for (int64_t n = 0; n < g.n; n++) {
		unfold_all(&g, (const float *)call->in[1].at + (n * g.c + first) * g.h * g.w, nc, scratch);
		gemm((struct mat){ (const float *)call->in[0].at + n * g.k * area, area, false }, (struct mat){ scratch, area, true },
			(struct gemm_out){ dw, g.c * window, g.k, nc * window, n > 0 }, area, after_windows(&g, dw_channels(&g), scratch));
	}
}

/* Pooling: attributes kh kw sh sw; a unit is a plane. */
struct pool { int64_t planes, h, w, p, q, kh, kw, sh, sw; };

static inline struct pool pool_of(const struct hd_call *call, const struct hd_operand *x, const struct hd_operand *y)
{
	const int32_t *attr = call->attr.i;
	return (struct pool){ x->dim[0] * x->dim[1], x->dim[2], x->dim[3], y->dim[2], y->dim[3], attr[0], attr[1], attr[2], attr[3] };
}

/* Where the first maximum of a window lies, from the window's own start. */
HD_INLINE int64_t first_max(const struct pool *g, const float *window)
{
	int64_t best = 0;

	for (int64_t r = 0; r < g->kh; r++)
		for (int64_t s = 0; s < g->kw; s++)
			if (window[r * g->w + s] > window[best])
				best = r * g->w + s;
	return best;
}

static inline uint32_t maxpool2d_ntiles(const struct hd_call *call)
{
	struct pool g = pool_of(call, &call->in[0], &call->out[0]);
	return row_ntiles((uint64_t)g.planes, (uint64_t)(g.h * g.w));
}

static inline void maxpool2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool_of(call, &call->in[0], &call->out[0]);
	struct run run = row_run((uint64_t)g.planes, (uint64_t)(g.h * g.w), tile);
	const float *x = (const float *)call->in[0].at + (int64_t)run.at * g.h * g.w;
	float *y = (float *)call->out[0].at + (int64_t)run.at * g.p * g.q;
	(void)scratch;

	for (uint64_t i = 0; i < run.n; i++, x += g.h * g.w)
		for (int64_t p = 0; p < g.p; p++)
			for (int64_t q = 0; q < g.q; q++) {
				const float *window = x + p * g.sh * g.w + q * g.sw;
				*y++ = window[first_max(&g, window)];
			}
}

static inline uint32_t maxpool2d_dx_ntiles(const struct hd_call *call)
{
	struct pool g = pool_of(call, &call->in[1], &call->in[0]);
	return row_ntiles((uint64_t)g.planes, (uint64_t)(g.h * g.w));
}

static inline void maxpool2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool_of(call, &call->in[1], &call->in[0]);
	struct run run = row_run((uint64_t)g.planes, (uint64_t)(g.h * g.w), tile);
	const float *x = (const float *)call->in[1].at + (int64_t)run.at * g.h * g.w;
	const float *dy = (const float *)call->in[0].at + (int64_t)run.at * g.p * g.q;
	float *dx = (float *)call->out[0].at + (int64_t)run.at * g.h * g.w;
	(void)scratch;

	memset(dx, 0, run.n * (uint64_t)(g.h * g.w) * sizeof *dx);
	for (uint64_t i = 0; i < run.n; i++, x += g.h * g.w, dx += g.h * g.w)
		for (int64_t p = 0; p < g.p; p++)
			for (int64_t q = 0; q < g.q; q++) {
				int64_t at = p * g.sh * g.w + q * g.sw;
				dx[at + first_max(&g, x + at)] += *dy++;
			}
}

#endif
