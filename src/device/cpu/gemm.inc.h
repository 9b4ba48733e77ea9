/* gemm.inc.h -- products of matrices, the inner routine of matmul, attention and
 * convolution. One source for all paths.
 *
 * After Goto and van de Geijn ("Anatomy of high-performance matrix multiplication",
 * 2008) and BLIS: blocks of both operands are packed into panels that the innermost
 * loop reads in order; a tile of HEIGHT x 2 vectors of results stays in registers.
 *
 * 1. Every element of the result is one chain c = fma(a[m,k], b[k,n], c), k
 *    ascending, from +0 (or from the old c when `more`). Blocks of k continue the
 *    chain through memory, which changes no bit. So heights, widths, blocks and
 *    paths are free.
 * 2. Rows and columns beyond the edge are computed on zeros and not stored.
 * 3. a and b are never written; c overlaps neither.
 *
 * Heights: 14 x 32 keeps 28 of 32 AVX-512 registers busy, 6 x 16 uses 12
 * of 16 on AVX2. */
#ifndef HD_DEVICE_CPU_GEMM_INC_H
#define HD_DEVICE_CPU_GEMM_INC_H

#include <stdbool.h>

#include "device/cpu/vec.h"

/* A matrix inside memory: element (i, j) at at[i*step + j], or at[j*step + i] when turned. */
struct mat { const float *at; int64_t step; bool turned; };

enum {
	GEMM_VECS = 2,
	GEMM_WIDTH = GEMM_VECS * HD_WIDTH,
	GEMM_HEIGHT = HD_HEIGHT,
	GEMM_DEPTH = 256,                 /* of a block: the panel of b fits the first-level cache */
	GEMM_ROWS = 168,                  /* of a block: a multiple of every height */
	GEMM_COLS = 512,
};

HD_INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
HD_INLINE int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
HD_INLINE int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

/* Bytes that gemm() needs for results of at most m x n with k terms. */
static inline size_t gemm_scratch(int64_t m, int64_t n, int64_t k)
{
	int64_t depth = min64(k, GEMM_DEPTH);
	int64_t a = round_up(min64(m, GEMM_ROWS), GEMM_HEIGHT) + GEMM_HEIGHT;
	int64_t b = round_up(min64(n, GEMM_COLS), GEMM_WIDTH);
	return (size_t)(round_up(a * depth + HD_WIDTH, HD_UNIT) + b * depth + HD_UNIT) * sizeof(float);
}

/* Packing writes to[k*pitch + i] = element (i, k) for k < depth, zero for i in n .. pitch.
 * Whole registers are written even where the pitch is narrower: what lies over the edge
 * belongs to the next k, or to the next panel, and is written after it. */

/* Consecutive i are consecutive in memory. */
static inline void pack_straight(float *to, int64_t pitch, const float *from, int64_t step, int64_t n,
	int64_t depth)
{
	for (int64_t k = 0; k < depth; k++, to += pitch, from += step)
		for (int64_t i = 0; i < pitch; i += HD_WIDTH)
			part_store(to + i, i + HD_WIDTH <= n ? part_load(from + i)
				: i < n ? part_load_n(from + i, (size_t)(n - i)) : part_set(0.0f));
}

/* HD_WIDTH columns of `to` for `depth` <= HD_WIDTH values of k. */
HD_INLINE void turn_square(float *to, int64_t pitch, const float *from, int64_t step, int64_t n, size_t depth)
{
	part row[HD_WIDTH];

#pragma GCC unroll 16
	for (int64_t i = 0; i < HD_WIDTH; i++)
		row[i] = i >= n ? part_set(0.0f) : depth == HD_WIDTH ? part_load(from + i * step)
			: part_load_n(from + i * step, depth);
	part_transpose(row);
#pragma GCC unroll 16
	for (size_t k = 0; k < HD_WIDTH; k++)
		if (k < depth)
			part_store(to + (int64_t)k * pitch, row[k]);
}

/* Consecutive k are consecutive in memory: squares of a register's width are turned. */
static inline void pack_turned(float *to, int64_t pitch, const float *from, int64_t step, int64_t n,
	int64_t depth)
{
	for (int64_t k = 0; k < depth; k += HD_WIDTH) {
		size_t len = (size_t)min64(HD_WIDTH, depth - k);
		for (int64_t i = 0; i < pitch; i += HD_WIDTH)
			turn_square(to + k * pitch + i, pitch, from + i * step + k, step, n - i, len);
	}
}

struct gemm_out { float *at; int64_t step; int64_t m, n; bool more; };

/* What is added to a finished result before it is stored: `n` matrices of its place, one after the other. */
struct gemm_add { const float *at; int64_t step; };
struct gemm_adds { uint32_t n; struct gemm_add of[24]; };

/* The innermost loop: h x v registers of results. h and v are constants after inlining. `step`: from
 * one k to the next in a; a packed panel has its height there. */
HD_INLINE void micro(const int h, const int v, const float *a, int64_t step, const float *b, int64_t depth,
	const struct gemm_out *c,
	const struct gemm_adds *adds)
{
	part acc[GEMM_HEIGHT][GEMM_VECS];
	/* every loop over acc is unrolled, or it would live in memory */
	bool whole = c->m >= h && c->n >= v * HD_WIDTH;

#define EACH_ROW _Pragma("GCC unroll 14") for (int i = 0; i < h; i++)
#define EACH_PART _Pragma("GCC unroll 2") for (int j = 0; j < v; j++)
#define PART_AT (c->at + i * c->step + j * HD_WIDTH)
#define PART_LEN ((size_t)min64(c->n - j * HD_WIDTH, HD_WIDTH))
	if (!c->more) {
		EACH_ROW EACH_PART acc[i][j] = part_set(0.0f);
	} else if (whole) {
		EACH_ROW EACH_PART acc[i][j] = part_load(PART_AT);
	} else {
		EACH_ROW EACH_PART acc[i][j] = i < c->m && j * HD_WIDTH < c->n ? part_load_n(PART_AT,
			PART_LEN) : part_set(0.0f);
	}
	for (int64_t k = 0; k < depth; k++, a += step, b += v * HD_WIDTH) {
		part bk[GEMM_VECS];
		EACH_PART bk[j] = part_load(b + j * HD_WIDTH);
		EACH_ROW {
			part ai = part_set(a[i]);
			EACH_PART acc[i][j] = part_fma(ai, bk[j], acc[i][j]);
		}
	}
	if (whole) {
		for (uint32_t k = 0; adds && k < adds->n; k++) {
			const float *from = adds->of[k].at;
			EACH_ROW EACH_PART acc[i][j] = part_load(from + i * adds->of[k].step + j * HD_WIDTH) +
				acc[i][j];
		}
		EACH_ROW EACH_PART part_store(PART_AT, acc[i][j]);
	} else {
		EACH_ROW EACH_PART {
			if (i >= c->m || j * HD_WIDTH >= c->n)
				continue;
			for (uint32_t k = 0; adds && k < adds->n; k++)
				acc[i][j] = part_load_n(adds->of[k].at + i * adds->of[k].step + j * HD_WIDTH,
					PART_LEN) + acc[i][j];
			part_store_n(PART_AT, acc[i][j], PART_LEN);
		}
	}
#undef EACH_ROW
#undef EACH_PART
#undef PART_AT
#undef PART_LEN
}
typedef void micro_fn(const float *a, int64_t step, const float *b, int64_t depth, const struct gemm_out *c);
typedef void micro_add_fn(const float *a, const float *b, int64_t depth, const struct gemm_out *c,
	const struct gemm_adds *adds);

#define MICRO(h, v)                                  \
	static inline void micro_##h##x##v(const float *a, int64_t step, const float *b, int64_t depth, \
		const struct gemm_out *c)            \
	{ micro(h, v, a, step, b, depth, c, NULL); } \
	static inline void micro_add_##h##x##v(const float *a, const float *b, int64_t depth, \
		const struct gemm_out *c, const struct gemm_adds *adds) \
	{ micro(h, v, a, h, b, depth, c, adds); }
#define X(h) MICRO(h, 1) MICRO(h, 2)
HD_HEIGHTS(X)
#undef X
#undef MICRO

/* By height / 2 - 1 and registers - 1. */
#define X(h) { micro_##h##x1, micro_##h##x2 },
static micro_fn *const micros[GEMM_HEIGHT / 2][GEMM_VECS] = { HD_HEIGHTS(X) };
#undef X
#define X(h) { micro_add_##h##x1, micro_add_##h##x2 },
static micro_add_fn *const micro_adds[GEMM_HEIGHT / 2][GEMM_VECS] = { HD_HEIGHTS(X) };
#undef X

/* Panels of nearly equal, even heights: the last one computes one row of zeros at most. */
HD_INLINE int64_t panel_height(int64_t m) { return round_up(div_up(m, div_up(m, GEMM_HEIGHT)), 2); }
HD_INLINE int64_t panel_width(int64_t n) { return n <= HD_WIDTH ? HD_WIDTH : GEMM_WIDTH; }

static inline void gemm_pack_a(float *to, struct mat a, int64_t m0, int64_t m, int64_t k0, int64_t depth)
{
	int64_t height = panel_height(m);

	for (int64_t i = 0; i < m; i += height, to += height * depth) {
		int64_t h = round_up(min64(height, m - i), 2);
		if (a.turned)
			pack_straight(to, h, a.at + k0 * a.step + m0 + i, a.step, min64(h, m - i), depth);
		else
			pack_turned(to, h, a.at + (m0 + i) * a.step + k0, a.step, min64(h, m - i), depth);
	}
}

static inline void gemm_pack_b(float *to, struct mat b, int64_t n0, int64_t n, int64_t k0, int64_t depth)
{
	for (int64_t j = 0; j < n; j += GEMM_WIDTH, to += GEMM_WIDTH * depth) {
		int64_t w = panel_width(n - j);
		if (b.turned)
			pack_turned(to, w, b.at + (n0 + j) * b.step + k0, b.step, min64(w, n - j), depth);
		else
			pack_straight(to, w, b.at + k0 * b.step + n0 + j, b.step, min64(w, n - j), depth);
	}
}

/* One packed block of a times one of b: panels of b outside, so that each stays in the
 * first-level cache while all of a passes. Panels of b hold `packed` >= depth terms, of which
 * the first `depth` are read. */
static inline void gemm_block(const float *a, const float *b, int64_t packed, int64_t depth,
	const struct gemm_out *c)
{
	int64_t height = panel_height(c->m);

	for (int64_t j = 0; j < c->n; j += GEMM_WIDTH) {
		int64_t v = panel_width(c->n - j) / HD_WIDTH;
		for (int64_t i = 0; i < c->m; i += height) {
			int64_t h = round_up(min64(height, c->m - i), 2);
			struct gemm_out out = { c->at + i * c->step + j, c->step, min64(h, c->m - i),
				c->n - j, c->more };
			micros[h / 2 - 1][v - 1](a + i * depth, h, b + j * packed, depth, &out);
		}
	}
}

/* The same over the terms from .. depth of b, with a as it lies in memory: element (i, k) at a[(k -
 * from)*step + i], one float after i = m - 1 may be read. For products whose a is used once, so that
 * packing it would not pay. */
static inline void gemm_turned(const float *a, int64_t step, const float *b, int64_t packed, int64_t from,
	int64_t depth, const struct gemm_out *c)
{
	int64_t height = panel_height(c->m);

	for (int64_t j = 0; j < c->n; j += GEMM_WIDTH) {
		int64_t v = panel_width(c->n - j) / HD_WIDTH;
		for (int64_t i = 0; i < c->m; i += height) {
			int64_t h = round_up(min64(height, c->m - i), 2);
			struct gemm_out out = { c->at + i * c->step + j, c->step, min64(h, c->m - i),
				c->n - j, c->more };
			micros[h / 2 - 1][v - 1](a + i, step, b + j * packed + from * v * HD_WIDTH,
				depth - from, &out);
		}
	}
}

/* Floats of n columns of b packed as panels of `depth` terms, and of m rows of a. */
HD_INLINE int64_t packed_b(int64_t n, int64_t depth) { return round_up(n, GEMM_WIDTH) * depth + HD_UNIT; }
HD_INLINE int64_t packed_a(int64_t m, int64_t depth) { return round_up((round_up(m,
	GEMM_HEIGHT) + GEMM_HEIGHT) * depth + HD_WIDTH, HD_UNIT); }

/* c = a b over `depth` terms, or c continued when c.more. No terms: zeros. */
static inline void gemm(struct mat a, struct mat b, struct gemm_out c, int64_t depth, float *scratch)
{
	int64_t block = min64(depth, GEMM_DEPTH);
	float *pa = scratch, *pb = scratch + round_up(
		(round_up(min64(c.m, GEMM_ROWS), GEMM_HEIGHT) + GEMM_HEIGHT) * block + HD_WIDTH, HD_UNIT);

	for (int64_t k = 0; k < depth; k += block) {
		int64_t len = min64(block, depth - k);
		for (int64_t j = 0; j < c.n; j += GEMM_COLS) {
			int64_t n = min64(GEMM_COLS, c.n - j);
			gemm_pack_b(pb, b, j, n, k, len);
			for (int64_t i = 0; i < c.m; i += GEMM_ROWS) {
				int64_t m = min64(GEMM_ROWS, c.m - i);
				struct gemm_out out = { c.at + i * c.step + j, c.step, m, n, c.more ||
					k > 0 };
				gemm_pack_a(pa, a, i, m, k, len);
				gemm_block(pa, pb, len, len, &out);
			}
		}
	}
}

#endif
