/* pools.inc.h -- maxima and means of windows. One source for all paths.
 *
 * A unit of work is a plane; a tile is some planes. Of a row of windows the *inner* ones, which lie
 * between the left and the right edge of the image, are made sixteen at a time; the others
 * are clipped to the image one by one. Maxima of windows two wide and two apart ("pairs") read each row once,
 * and their gradient writes each row once where rows of windows share none.
 *
 * 1. The first maximum of a window in row-major order wins; pads are no candidates.
 * 2. maxpool2d_dx adds to a pixel in order of the windows.
 * 3. A mean is a sum from the window's first element on, row-major, over the image, then one division.
 *    A window that is the whole image is summed in 16 lanes instead.
 * 4. avgpool2d_dx adds to a pixel in order of rows of windows, then of sixteens, then of elements. */
#ifndef HD_DEVICE_CPU_POOLS_INC_H
#define HD_DEVICE_CPU_POOLS_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/maps.inc.h"

struct pool { int64_t planes, h, w, p, q, kh, kw, sh, sw, ph, pw, first, last; bool all; };

/* Windows [first, last) of a row are inner; an offset in a window fits 32 bits there. */
static inline struct pool pool_of(const struct hd_call *call, const struct hd_operand *x,
	const struct hd_operand *y)
{
	const int32_t *a = call->attr.i;
	struct pool g = { x->dim[0] * x->dim[1], x->dim[2], x->dim[3], y->dim[2], y->dim[3], a[0], a[1], a[2],
		a[3], a[4], a[5], 0, 0, a[6] != 0 };

	g.first = min64(div_up(g.pw, g.sw), g.q);
	g.last = g.w + g.pw < g.kw || g.kh * g.w > INT32_MAX ? 0 : min64((g.w + g.pw - g.kw) / g.sw + 1, g.q);
	if (g.last < g.first)
		g.last = g.first;
	return g;
}

/* A window, or a row of windows, clipped to the image: rows [r, rend) and columns [s, send) of the window,
 * whose own corner lies at pixel `corner`, perhaps on a pad. */
struct clip { int64_t corner, r, rend, s, send; };

HD_INLINE struct clip clip_row(const struct pool *g, int64_t p)
{
	int64_t y = p * g->sh - g->ph;
	return (struct clip){ y * g->w - g->pw, y < 0 ? -y : 0, min64(g->kh, g->h - y), 0, g->kw };
}
HD_INLINE struct clip clip_window(const struct pool *g, const struct clip *row, int64_t q)
{
	int64_t x = q * g->sw - g->pw;
	return (struct clip){ row->corner + q * g->sw, row->r, row->rend, x < 0 ? -x : 0,
		min64(g->kw, g->w - x) };
}
HD_INLINE float clip_divisor(const struct pool *g, const struct clip *c)
{
	return (float)(g->all ? g->kh * g->kw : (c->rend - c->r) * (c->send - c->s));
}

/* Where the first maximum of a window lies in its plane. */
HD_INLINE int64_t first_max(const struct pool *g, const struct clip *c, const float *x)
{
	int64_t best = c->corner + c->r * g->w + c->s;

	for (int64_t r = c->r; r < c->rend; r++)
		for (int64_t s = c->s; s < c->send; s++)
			if (x[c->corner + r * g->w + s] > x[best])
				best = c->corner + r * g->w + s;
	return best;
}

/* Of `len` inner windows from q on: the maxima, and where they lie from the window's corner on. */
HD_INLINE struct vf inner_max(const struct pool *g, const struct clip *row, const float *x, int64_t q,
	size_t len, struct vf *where)
{
	const float *corner = x + row->corner + q * g->sw;
	struct vf top = vf_load_step(corner + row->r * g->w, g->sw, len);

	*where = vi_float_of(vi_set((int32_t)(row->r * g->w)));
	for (int64_t r = row->r; r < row->rend; r++)
		for (int64_t s = 0; s < g->kw; s++) {
			struct vf seen = vf_load_step(corner + r * g->w + s, g->sw, len);
			struct vm more = vf_lt(top, seen);
			top = vf_select(more, seen, top);
			*where = vf_select(more, vi_float_of(vi_set((int32_t)(r * g->w + s))), *where);
		}
	return top;
}

/* Windows of two columns, two apart: `len` of them from pixel `corner` of the plane on. */
HD_INLINE struct vf pairs_max(const struct pool *g, const struct clip *row, const float *corner, size_t len,
	struct vf *where)
{
	struct vf top = vf_set(0.0f), seen[2];

	*where = vi_float_of(vi_set((int32_t)(row->r * g->w)));
	for (int64_t r = row->r; r < row->rend; r++) {
		vf_load_pairs(corner + r * g->w, len, &seen[0], &seen[1]);
		top = r == row->r ? seen[0] : top;
		for (int s = 0; s < 2; s++) {
			struct vm more = vf_lt(top, seen[s]);
			top = vf_select(more, seen[s], top);
			*where = vf_select(more, vi_float_of(vi_set((int32_t)(r * g->w + s))), *where);
		}
	}
	return top;
}
HD_INLINE bool pool_is_pairs(const struct pool *g) { return g->kw == 2 && g->sw == 2 && g->pw == 0 &&
	g->kh * g->w <= INT32_MAX; }
HD_INLINE bool pool_shares_no_row(const struct pool *g) { return g->kh <= g->sh; }

static inline void maxpool_pairs_row(const struct pool *g, const float *x, int64_t p, float *y)
{
	struct clip row = clip_row(g, p);
	struct vf where;

	HD_UNITS(q, len, (size_t)g->q)
		vf_store_n(y + q, pairs_max(g, &row, x + row.corner + 2 * (int64_t)q, len, &where), len);
}

/* dx is zero here. A sum with it, as for other windows: no zero keeps a sign. */
static inline void maxpool_dx_pairs_row(const struct pool *g, const float *x, int64_t p, const float *dy,
	float *dx)
{
	struct clip row = clip_row(g, p);
	struct vf where, got[2], none = vf_set(0.0f);

	HD_UNITS(q, len, (size_t)g->q) {
		int64_t corner = row.corner + 2 * (int64_t)q;
		struct vf each = vf_add(none, vf_load_n(dy + q, len));
		(void)pairs_max(g, &row, x + corner, len, &where);
		for (int64_t r = row.r; r < row.rend; r++) {
			for (int s = 0; s < 2; s++)
				got[s] = vf_select(vi_eq(vf_bits(where), vi_set((int32_t)(r * g->w + s))),
					each, none);
			vf_store_pairs(dx + corner + r * g->w, got[0], got[1], len);
		}
	}
}

/* The windows of a row that are not inner: those left of first, then those from last on. */
HD_INLINE int64_t edge_first(const struct pool *g) { return g->first ? 0 : g->last; }
HD_INLINE int64_t edge_next(const struct pool *g, int64_t q) { return q + 1 == g->first ? g->last : q + 1; }

static inline void maxpool_row(const struct pool *g, const float *x, int64_t p, float *y)
{
	struct clip row = clip_row(g, p), c;
	struct vf where;

	for (int64_t q = edge_first(g); q < g->q; q = edge_next(g, q)) {
		c = clip_window(g, &row, q);
		y[q] = x[first_max(g, &c, x)];
	}
	HD_UNITS(i, len, (size_t)(g->last - g->first))
		vf_store_n(y + g->first + i, inner_max(g, &row, x, g->first + (int64_t)i, len, &where), len);
}

/* In order of q, for windows may share a pixel. */
static inline void maxpool_dx_row(const struct pool *g, const float *x, int64_t p, const float *dy, float *dx)
{
	struct clip row = clip_row(g, p), c;
	int32_t at[HD_UNIT];
	struct vf where;

	for (int64_t q = 0; q < g->q; q++) {
		if (q < g->first || q >= g->last) {
			c = clip_window(g, &row, q);
			dx[first_max(g, &c, x)] += dy[q];
			continue;
		}
		int64_t n = min64(HD_UNIT, g->last - q);
		(void)inner_max(g, &row, x, q, (size_t)n, &where);
		memcpy(at, &where, sizeof at);
		for (int64_t i = 0; i < n; i++)
			dx[row.corner + (q + i) * g->sw + at[i]] += dy[q + i];
		q += n - 1;
	}
}

static inline void avgpool_row(const struct pool *g, const float *x, int64_t p, float *y)
{
	struct clip row = clip_row(g, p), c;

	for (int64_t q = edge_first(g); q < g->q; q = edge_next(g, q)) {
		c = clip_window(g, &row, q);
		float sum = 0.0f;
		for (int64_t r = c.r; r < c.rend; r++)
			for (int64_t s = c.s; s < c.send; s++)
				sum += x[c.corner + r * g->w + s];
		y[q] = sum / clip_divisor(g, &c);
	}
	HD_UNITS(i, len, (size_t)(g->last - g->first)) {
		const float *corner = x + row.corner + (g->first + (int64_t)i) * g->sw;
		struct vf sum = vf_set(0.0f);
		for (int64_t r = row.r; r < row.rend; r++)
			for (int64_t s = 0; s < g->kw; s++)
				sum = vf_add(sum, vf_load_step(corner + r * g->w + s, g->sw, len));
		vf_store_n(y + g->first + i, vf_div(sum, vf_set(clip_divisor(g, &row))), len);
	}
}

static inline void avgpool_dx_inner(const struct pool *g, const struct clip *row, int64_t q, size_t len,
	const float *dy, float *dx)
{
	struct vf piece = vf_div(vf_load_n(dy + q, len), vf_set(clip_divisor(g, row)));
	float each[HD_UNIT];

	vf_store(each, piece);
	for (int64_t r = row->r; r < row->rend; r++)
		for (int64_t s = 0; s < g->kw; s++) {
			float *to = dx + row->corner + q * g->sw + r * g->w + s;
			if (g->sw == 1)
				vf_store_n(to, vf_add(vf_load_n(to, len), piece), len);
			for (size_t i = 0; g->sw != 1 && i < len; i++)
				to[(int64_t)i * g->sw] += each[i];
		}
}

static inline void avgpool_dx_row(const struct pool *g, int64_t p, const float *dy, float *dx)
{
	struct clip row = clip_row(g, p), c;

	for (int64_t q = edge_first(g); q < g->q; q = edge_next(g, q)) {
		c = clip_window(g, &row, q);
		float each = dy[q] / clip_divisor(g, &c);
		for (int64_t r = c.r; r < c.rend; r++)
			for (int64_t s = c.s; s < c.send; s++)
				dx[c.corner + r * g->w + s] += each;
	}
	HD_UNITS(i, len, (size_t)(g->last - g->first))
		avgpool_dx_inner(g, &row, g->first + (int64_t)i, len, dy, dx);
}

HD_INLINE bool pool_is_global(const struct pool *g) { return g->kh == g->h && g->kw == g->w && g->ph == 0 &&
	g->pw == 0; }

HD_INLINE float plane_mean(const float *x, int64_t n)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, (size_t)n)
		lanes = vf_add(lanes, vf_load_n(x + i, len));
	return vf_sum(lanes) / (float)n;
}

HD_INLINE void plane_fill(float *x, float value, int64_t n)
{
	HD_UNITS(i, len, (size_t)n)
		vf_store_n(x + i, vf_set(value), len);
}

HD_INLINE uint32_t pool_ntiles(const struct pool *g) { return row_ntiles((uint64_t)g->planes,
	(uint64_t)(g->h * g->w)); }
HD_INLINE struct elem_run pool_run(const struct pool *g, uint32_t tile) { return row_run((uint64_t)g->planes,
	(uint64_t)(g->h * g->w), tile); }

static inline struct pool pool2d_of(const struct hd_call *call) { return pool_of(call, &call->in[0],
	&call->out[0]); }
static inline struct pool pool2d_dx_of(const struct hd_call *call) { return pool_of(call, &call->in[1],
	&call->in[0]); }
static inline uint32_t pool2d_ntiles(const struct hd_call *call) { struct pool g = pool2d_of(call);
	return pool_ntiles(&g); }
static inline uint32_t pool2d_dx_ntiles(const struct hd_call *call) { struct pool g = pool2d_dx_of(call);
	return pool_ntiles(&g); }

static inline void maxpool2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool2d_of(call);
	struct elem_run run = pool_run(&g, tile);
	const float *x = (const float *)call->in[0].at + (int64_t)run.at * g.h * g.w;
	float *y = (float *)call->out[0].at + (int64_t)run.at * g.p * g.q;
	(void)scratch;

	for (uint64_t i = 0; i < run.n; i++, x += g.h * g.w)
		for (int64_t p = 0; p < g.p; p++, y += g.q)
			pool_is_pairs(&g) ? maxpool_pairs_row(&g, x, p, y) : maxpool_row(&g, x, p, y);
}

static inline void maxpool2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool2d_dx_of(call);
	struct elem_run run = pool_run(&g, tile);
	const float *x = (const float *)call->in[1].at + (int64_t)run.at * g.h * g.w;
	const float *dy = (const float *)call->in[0].at + (int64_t)run.at * g.p * g.q;
	float *dx = (float *)call->out[0].at + (int64_t)run.at * g.h * g.w;
	(void)scratch;

	memset(dx, 0, run.n * (uint64_t)(g.h * g.w) * sizeof *dx);
	for (uint64_t i = 0; i < run.n; i++, x += g.h * g.w, dx += g.h * g.w)
		for (int64_t p = 0; p < g.p; p++, dy += g.q)
			pool_is_pairs(&g) && pool_shares_no_row(&g) ? maxpool_dx_pairs_row(&g, x, p, dy, dx) :
				maxpool_dx_row(&g, x, p, dy, dx);
}

static inline void avgpool2d_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool2d_of(call);
	struct elem_run run = pool_run(&g, tile);
	const float *x = (const float *)call->in[0].at + (int64_t)run.at * g.h * g.w;
	float *y = (float *)call->out[0].at + (int64_t)run.at * g.p * g.q;
	(void)scratch;

	for (uint64_t i = 0; i < run.n; i++, x += g.h * g.w) {
		if (pool_is_global(&g))
			*y++ = plane_mean(x, g.h * g.w);
		for (int64_t p = 0; !pool_is_global(&g) && p < g.p; p++, y += g.q)
			avgpool_row(&g, x, p, y);
	}
}

static inline void avgpool2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct pool g = pool2d_dx_of(call);
	struct elem_run run = pool_run(&g, tile);
	const float *dy = (const float *)call->in[0].at + (int64_t)run.at * g.p * g.q;
	float *dx = (float *)call->out[0].at + (int64_t)run.at * g.h * g.w;
	(void)scratch;

	memset(dx, 0, run.n * (uint64_t)(g.h * g.w) * sizeof *dx);
	for (uint64_t i = 0; i < run.n; i++, dx += g.h * g.w) {
		if (pool_is_global(&g))
			plane_fill(dx, *dy++ / (float)(g.h * g.w), g.h * g.w);
		for (int64_t p = 0; !pool_is_global(&g) && p < g.p; p++, dy += g.q)
			avgpool_dx_row(&g, p, dy, dx);
	}
}

#endif
