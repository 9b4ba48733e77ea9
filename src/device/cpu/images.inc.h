/* images.inc.h -- convolutions as products of matrices. One source for all paths.
 *
 * The windows of one group of one sample are laid out as a matrix [C/groups*R*S, P*Q] in
 * scratch ("im2col"; Chellapilla, Puri, Simard 2006). Kernels of one element that step by one
 * pixel need no windows: the image is its own matrix. Groups of one input channel (depthwise
 * convolution) would make products of one row and are summed in place instead. What
 * narrow.inc.h takes goes there, by shape alone.
 *
 * 1. conv2d and conv2d_dx: a tile is one sample. conv2d_dw: a tile is some channels of one
 *    group of the input, all samples in ascending order; each sample continues the chain of
 *    fused multiply-adds of the one before.
 * 2. conv2d_dx adds the windows that overlap a pixel in order of (r, s, p, q).
 * 3. Depthwise: one ascending chain of fused multiply-adds over (r, s), of dx over (k, r, s);
 *    dw has 16 lanes along q, continued over (n, p), and their tree at the end. */
#ifndef HD_DEVICE_CPU_IMAGES_INC_H
#define HD_DEVICE_CPU_IMAGES_INC_H

#include "device/cpu/narrow.inc.h"

/* One row of the matrix: what window element (r, s) sees of a plane at all (p, q). */
static inline void unfold(const struct conv *g, const float *plane, int64_t r, int64_t s, float *to)
{
	int64_t first, last;

	inside(g->w, g->q, g->sw, s * g->dw - g->pw, &first, &last);
	for (int64_t p = 0; p < g->p; p++, to += g->q) {
		int64_t y = p * g->sh + r * g->dh - g->ph;
		if (y < 0 || y >= g->h) {
			memset(to, 0, (size_t)g->q * sizeof *to);
			continue;
		}
		const float *from = plane + y * g->w + s * g->dw - g->pw;
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

	inside(g->w, g->q, g->sw, s * g->dw - g->pw, &first, &last);
	for (int64_t p = 0; p < g->p; p++, from += g->q) {
		int64_t y = p * g->sh + r * g->dh - g->ph;
		if (y < 0 || y >= g->h)
			continue;
		float *to = plane + y * g->w + s * g->dw - g->pw;
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

/* to[i] = fma(by, from[i * step], to[i]) */
HD_INLINE void fma_run(float *to, float by, const float *from, int64_t step, int64_t n)
{
	if (n > 0)
		HD_UNITS(i, len, (size_t)n)
			vf_store_n(to + i, vf_fma(vf_set(by),
				vf_load_step(from + (int64_t)i * step, step, len), vf_load_n(to + i, len)),
				len);
}

/* The pixel row that window row r of output row p sees; -1: a pad. */
HD_INLINE int64_t row_seen(const struct conv *g, int64_t p, int64_t r)
{
	int64_t y = p * g->sh + r * g->dh - g->ph;
	return y < g->h ? y : -1;
}

static inline void depthwise_plane(const struct conv *g, const float *plane, const float *w, float *out)
{
	int64_t first, last;

	memset(out, 0, (size_t)(g->p * g->q) * sizeof *out);
	for (int64_t r = 0; r < g->r; r++)
		for (int64_t s = 0; s < g->s; s++, w++) {
			inside(g->w, g->q, g->sw, s * g->dw - g->pw, &first, &last);
			for (int64_t p = 0; p < g->p; p++) {
				int64_t y = row_seen(g, p, r);
				if (y >= 0)
					fma_run(out + p * g->q + first, *w,
						plane + y * g->w + first * g->sw + s * g->dw - g->pw, g->sw,
						last - first);
			}
		}
}

/* Continues the sums in `plane`. */
static inline void depthwise_dx_plane(const struct conv *g, const float *dy, const float *w, float *plane)
{
	int64_t first, last;

	for (int64_t r = 0; r < g->r; r++)
		for (int64_t s = 0; s < g->s; s++, w++) {
			inside(g->w, g->q, g->sw, s * g->dw - g->pw, &first, &last);
			for (int64_t p = 0; p < g->p; p++) {
				int64_t y = row_seen(g, p, r);
				if (y < 0)
					continue;
				float *to = plane + y * g->w + s * g->dw - g->pw;
				const float *from = dy + p * g->q;
				if (g->sw == 1)
					fma_run(to + first, *w, from + first, 1, last - first);
				for (int64_t q = first; g->sw != 1 && q < last; q++)
					to[q * g->sw] = __builtin_fmaf(*w, from[q], to[q * g->sw]);
			}
		}
}

static inline struct vf depthwise_dw_lanes(const struct conv *g, const float *dy, const float *plane,
	int64_t r, int64_t s, struct vf lanes)
{
	int64_t first, last;

	inside(g->w, g->q, g->sw, s * g->dw - g->pw, &first, &last);
	for (int64_t p = 0; p < g->p; p++) {
		int64_t y = row_seen(g, p, r);
		if (y < 0)
			continue;
		const float *from = plane + y * g->w + first * g->sw + s * g->dw - g->pw,
			*with = dy + p * g->q + first;
		HD_UNITS(i, len, (size_t)(last - first))
			lanes = vf_fma(vf_load_n(with + i, len),
				vf_load_step(from + (int64_t)i * g->sw, g->sw, len), lanes);
	}
	return lanes;
}

static inline struct conv conv2d_of(const struct hd_call *call) { return conv_of(call, &call->in[0],
	&call->in[1], &call->out[0]); }
static inline uint32_t conv2d_ntiles(const struct hd_call *call)
{
	struct conv g = conv2d_of(call);
	return conv_is_narrow(&g, g.q) ? narrow_ntiles(&g, false) : (uint32_t)g.n;
}
static inline size_t conv2d_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_of(call);
	if (conv_is_narrow(&g, g.q))
		return narrow_scratch(&g, false);
	return conv_is_depthwise(&g) ? 0 : conv_scratch_of(&g, g.own,
		gemm_scratch(g.each, g.p * g.q, g.own * g.r * g.s));
}

static inline void conv2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_of(call);
	int64_t window = g.own * g.r * g.s, area = g.p * g.q, plane = g.h * g.w;
	if (conv_is_narrow(&g, g.q)) {
		narrow_tile(&g, false, call->in[0].at, call->in[1].at, call->out[0].at, tile, scratch);
		return;
	}
	const float *x = (const float *)call->in[0].at + tile * g.c * plane, *w = call->in[1].at;
	float *y = (float *)call->out[0].at + tile * g.k * area;

	for (int64_t k = 0; conv_is_depthwise(&g) && k < g.k; k++)
		depthwise_plane(&g, x + k / g.each * plane, w + k * window, y + k * area);
	for (int64_t i = 0; !conv_is_depthwise(&g) && i < g.groups; i++, x += g.own * plane,
		w += g.each * window, y += g.each * area) {
		if (!conv_is_flat(&g))
			unfold_all(&g, x, g.own, scratch);
		gemm((struct mat){ w, window, false }, (struct mat){ conv_is_flat(&g) ? x : scratch, area,
			false },
			(struct gemm_out){ y, area, g.each, area, false }, window,
			after_windows(&g, g.own, scratch));
	}
}

static inline struct conv conv2d_dx_of(const struct hd_call *call) { return conv_of(call, &call->out[0],
	&call->in[1], &call->in[0]); }
static inline uint32_t conv2d_dx_ntiles(const struct hd_call *call)
{
	struct conv g = conv2d_dx_of(call);
	return conv_is_narrow(&g, g.w) ? narrow_ntiles(&g, true) : (uint32_t)g.n;
}
static inline size_t conv2d_dx_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_dx_of(call);
	if (conv_is_narrow(&g, g.w))
		return narrow_scratch(&g, true);
	return conv_is_depthwise(&g) ? 0 : conv_scratch_of(&g, g.own,
		gemm_scratch(g.own * g.r * g.s, g.p * g.q, g.each));
}

static inline void conv2d_dx_group(const struct conv *g, const float *dy, const float *w, float *dx,
	void *scratch)
{
	int64_t window = g->own * g->r * g->s, area = g->p * g->q, plane = g->h * g->w;
	const float *from = scratch;

	gemm((struct mat){ w, window, true }, (struct mat){ dy, area, false },
		(struct gemm_out){ conv_is_flat(g) ? dx : scratch, area, window, area, false }, g->each,
		after_windows(g, g->own, scratch));
	if (conv_is_flat(g))
		return;
	memset(dx, 0, (size_t)(g->own * plane) * sizeof *dx);
	for (int64_t c = 0; c < g->own; c++)
		for (int64_t r = 0; r < g->r; r++)
			for (int64_t s = 0; s < g->s; s++, from += area)
				fold(g, from, r, s, dx + c * plane);
}

static inline void conv2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_dx_of(call);
	int64_t window = g.own * g.r * g.s, area = g.p * g.q, plane = g.h * g.w;
	if (conv_is_narrow(&g, g.w)) {
		narrow_tile(&g, true, call->in[0].at, call->in[1].at, call->out[0].at, tile, scratch);
		return;
	}
	const float *dy = (const float *)call->in[0].at + tile * g.k * area, *w = call->in[1].at;
	float *dx = (float *)call->out[0].at + tile * g.c * plane;
	if (conv_is_depthwise(&g)) {
		memset(dx, 0, (size_t)(g.c * plane) * sizeof *dx);
		for (int64_t k = 0; k < g.k; k++)
			depthwise_dx_plane(&g, dy + k * area, w + k * window, dx + k / g.each * plane);
		return;
	}
	for (int64_t i = 0; i < g.groups; i++)
		conv2d_dx_group(&g, dy + i * g.each * area, w + i * g.each * window, dx + i * g.own * plane,
			scratch);
}

static inline struct conv conv2d_dw_of(const struct hd_call *call) { return conv_of(call, &call->in[1],
	&call->out[0], &call->in[0]); }

/* Channels of a tile: some 64 columns of dw. Tiles of a group lie side by side. */
HD_INLINE int64_t dw_channels(const struct conv *g) { return min64(g->own, div_up(64, g->r * g->s)); }
HD_INLINE int64_t dw_tiles(const struct conv *g) { return div_up(g->own, dw_channels(g)); }

static inline uint32_t conv2d_dw_ntiles(const struct hd_call *call)
{
	struct conv g = conv2d_dw_of(call);
	return (uint32_t)(conv_is_narrow(&g, g.q) ? g.c : g.groups * dw_tiles(&g));
}
static inline size_t conv2d_dw_scratch(const struct hd_call *call)
{
	struct conv g = conv2d_dw_of(call);
	int64_t nc = dw_channels(&g);
	if (conv_is_narrow(&g, g.q))
		return narrow_dw_scratch(&g);
	return conv_is_depthwise(&g) ? 0 : conv_scratch_of(&g, nc,
		gemm_scratch(g.each, nc * g.r * g.s, g.p * g.q));
}

static inline void depthwise_dw_tile(const struct hd_call *call, const struct conv *g, int64_t channel)
{
	int64_t area = g->p * g->q, plane = g->h * g->w;
	float *dw = (float *)call->out[0].at + channel * g->each * g->r * g->s;

	for (int64_t k = channel * g->each; k < (channel + 1) * g->each; k++)
		for (int64_t r = 0; r < g->r; r++)
			for (int64_t s = 0; s < g->s; s++) {
				struct vf lanes = vf_set(0.0f);
				for (int64_t n = 0; n < g->n; n++)
					lanes = depthwise_dw_lanes(g,
						(const float *)call->in[0].at + (n * g->k + k) * area,
						(const float *)call->in[1].at + (n * g->c + channel) * plane,
						r, s, lanes);
				*dw++ = vf_sum(lanes);
			}
}

static inline void conv2d_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct conv g = conv2d_dw_of(call);
	int64_t group = tile / dw_tiles(&g), first = tile % dw_tiles(&g) * dw_channels(&g),
		nc = min64(dw_channels(&g), g.own - first);
	int64_t window = g.r * g.s, area = g.p * g.q;
	float *dw = (float *)call->out[0].at + (group * g.each * g.own + first) * window;

	if (conv_is_narrow(&g, g.q)) {
		narrow_dw_tile(&g, call->in[0].at, call->in[1].at, call->out[0].at, tile, scratch);
		return;
	}
	if (conv_is_depthwise(&g)) {
		depthwise_dw_tile(call, &g, group);
		return;
	}
	for (int64_t n = 0; n < g.n; n++) {
		const float *x = (const float *)call->in[1].at + (n * g.c + group * g.own + first) * g.h *
			g.w;
		if (!conv_is_flat(&g))
			unfold_all(&g, x, nc, scratch);
		gemm((struct mat){ (const float *)call->in[0].at + (n * g.k + group * g.each) * area, area,
			false },
			(struct mat){ conv_is_flat(&g) ? x : scratch, area, true },
			(struct gemm_out){ dw, g.own * window, g.each, nc * window, n > 0 }, area,
			after_windows(&g, dw_channels(&g), scratch));
	}
}

#endif
