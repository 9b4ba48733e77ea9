/* gemm.inc.h -- products of matrices, the inner routine of matmul, attention and
 * convolution. One source for all paths.
 *
 * After Goto and van de Geijn ("Anatomy of high-performance matrix multiplication",
 * 2008) and BLIS: a tile of HEIGHT x 2 vectors of results stays in registers; a panel of b
 * is packed, then all rows of a pass over it. Where we depart: a is read where it lies, by
 * rows, since a broadcast needs no order of its rows (turned ones are packed); and while
 * products are made, lines of the next panel of b and of the next results are fetched, one
 * every four terms: in a step operands are cold, and rows that lie apart are nothing that a
 * processor guesses.
 *
 * 1. Every element of the result is one chain c = fma(a[m,k], b[k,n], c), k
 *    ascending, from +0 (or from the old c when `more`). Blocks of k continue the
 *    chain through memory, which changes no bit. So heights, widths, blocks and
 *    paths are free.
 * 2. Rows and columns beyond the edge are computed on zeros and not stored.
 * 3. a and b are never written; c overlaps neither.
 * 4. Packed operands hold lanes (lane.h): terms, or with HD_BF16 pairs of them, and an element's chain goes
 *    from pair to pair. Depths of operands are terms, those of the innermost loop lanes.
 * 5. With HD_AMX the innermost loop is micro_amx.inc.h, which takes 16 lanes at once and has sums of its own;
 *    of them, blocks of k are multiples.
 *
 * Heights: 14 x 32 keeps 28 of 32 AVX-512 registers busy, 6 x 16 uses 12
 * of 16 on AVX2. */
#ifndef HD_DEVICE_CPU_GEMM_INC_H
#define HD_DEVICE_CPU_GEMM_INC_H

#ifdef HD_AMX
#include "device/cpu/micro_amx.inc.h"
#else
#include "device/cpu/micro.inc.h"
#endif

/* Packing writes to[k*pitch + i] = element (i, k) for k < depth, zero for i in n .. pitch; pairs of terms k
 * and k + 1 lie at k / 2.
 * Whole registers are written even where the pitch is narrower: what lies over the edge
 * belongs to the next k and is written after it, but for the last k of a panel. */

/* Consecutive i are consecutive in memory. `last`: no k of the panel comes after these. */
static inline void pack_straight(float *to, int64_t pitch, const float *from, int64_t step, int64_t n,
	int64_t depth, bool last)
{
	const int64_t end = lanes_of(depth) * LANE_TERMS;

	for (int64_t k = 0; k < end; k += LANE_TERMS, to += pitch, from += LANE_TERMS * step)
		for (int64_t i = 0; i < pitch; i += HD_WIDTH) {
			part lanes = i < n ? lane_across(from + i, step, n - i, depth - k) : part_set(0.0f);
			if (last && k + LANE_TERMS >= end && pitch - i < HD_WIDTH)
				part_store_n(to + i, lanes, (size_t)(pitch - i));
			else
				part_store(to + i, lanes);
		}
}

/* HD_WIDTH columns of `to` for as many lanes of k at most. */
HD_INLINE void turn_square(float *to, int64_t pitch, const float *from, int64_t step, int64_t n, int64_t len)
{
	const size_t lanes = (size_t)lanes_of(len);
	part row[HD_WIDTH];

#pragma GCC unroll 16
	for (int64_t i = 0; i < HD_WIDTH; i++)
		row[i] = i >= n ? part_set(0.0f) : lane_along(from + i * step, len);
	part_transpose(row);
#pragma GCC unroll 16
	for (size_t k = 0; k < HD_WIDTH; k++)
		if (k < lanes)
			part_store(to + (int64_t)k * pitch, row[k]);
}

/* Consecutive k are consecutive in memory: squares of a register's width are turned. */
static inline void pack_turned(float *to, int64_t pitch, const float *from, int64_t step, int64_t n,
	int64_t depth)
{
	for (int64_t k = 0; k < depth; k += HD_WIDTH * LANE_TERMS) {
		int64_t len = min64(HD_WIDTH * LANE_TERMS, depth - k);
		for (int64_t i = 0; i < pitch; i += HD_WIDTH)
			turn_square(to + k / LANE_TERMS * pitch + i, pitch, from + i * step + k, step, n - i,
				len);
	}
}

/* Panels of nearly equal heights: the last one computes fewer rows of zeros than a step. */
HD_INLINE int64_t panel_height(int64_t m) { return round_up(div_up(m, div_up(m, GEMM_HEIGHT)), GEMM_STEP); }
/* What of it are rows from i on of m. */
HD_INLINE int64_t panel_rows(int64_t height, int64_t m, int64_t i)
{
	return round_up(min64(height, m - i), GEMM_STEP);
}
HD_INLINE int64_t panel_width(int64_t n) { return n <= HD_WIDTH ? HD_WIDTH : GEMM_WIDTH; }

#ifdef HD_AMX
/* A panel of a turned a, at most GEMM_LINES of its terms: 16 columns of lanes become 16 rows. */
static inline void pack_a_columns(float *to, int64_t h, const float *from, int64_t step, int64_t n,
	int64_t depth, bool last)
{
	part row[HD_WIDTH];

	(void)last;
	for (int64_t i = 0; i < h; i += HD_WIDTH, to += HD_WIDTH * LANE_TILE) {
#pragma GCC unroll 16
		for (int64_t k = 0; k < LANE_TILE; k++)
			row[k] = i >= n ? part_set(0.0f) : lane_across(from + LANE_TERMS * k * step + i, step,
				n - i, depth - LANE_TERMS * k);
		part_transpose(row);
#pragma GCC unroll 16
		for (int64_t r = 0; r < HD_WIDTH; r++)
			part_store(to + r * LANE_TILE, row[r]);
	}
}
#else
static inline void pack_a_columns(float *to, int64_t h, const float *from, int64_t step, int64_t n,
	int64_t depth, bool last)
{
	pack_straight(to, h, from, step, n, depth, last);
}
#endif

/* Rows of a turned a go into all panels, some rows at a time: they are read from one end to the other, as a
 * processor fetches ahead. Panels hold `lanes`, and these come after the first `before` of them. */
static inline void gemm_pack_turned_a(float *to, const float *from, int64_t step, int64_t m, int64_t depth,
	int64_t lanes, int64_t before)
{
	int64_t height = panel_height(m);

	for (int64_t k = 0; k < depth; k += GEMM_LINES) {
		int64_t len = min64(GEMM_LINES, depth - k);
		for (int64_t i = 0; i < m; i += height) {
			int64_t h = panel_rows(height, m, i);
			pack_a_columns(to + i * lanes + (before + k / LANE_TERMS) * h, h, from + k * step + i,
				step, min64(h, m - i), len, k + len == depth);
		}
	}
}

static inline void gemm_pack_a(float *to, struct mat a, int64_t m0, int64_t m, int64_t k0, int64_t depth)
{
	int64_t height = panel_height(m);

	if (a.turned) {
		gemm_pack_turned_a(to, a.at + k0 * a.step + m0, a.step, m, depth, lanes_of(depth), 0);
		return;
	}
	for (int64_t i = 0; i < m; i += height, to += height * lanes_of(depth)) {
		int64_t h = panel_rows(height, m, i);
		pack_turned(to, h, a.at + (m0 + i) * a.step + k0, a.step, min64(h, m - i), depth);
	}
}

static inline void gemm_pack_b(float *to, struct mat b, int64_t n0, int64_t n, int64_t k0, int64_t depth)
{
	for (int64_t j = 0; j < n; j += GEMM_WIDTH, to += GEMM_WIDTH * lanes_of(depth)) {
		int64_t w = panel_width(n - j);
		if (b.turned)
			pack_turned(to, w, b.at + (n0 + j) * b.step + k0, b.step, min64(w, n - j), depth);
		else
			pack_straight(to, w, b.at + k0 * b.step + n0 + j, b.step, min64(w, n - j), depth,
				true);
	}
}

/* One packed block of a times one of b: panels of b outside, so that each stays in the
 * first-level cache while all of a passes. Panels of b hold `packed` >= depth terms, of which
 * the first `depth` are read. */
static inline void gemm_block(const float *a, const float *b, int64_t packed, int64_t depth,
	const struct gemm_out *c)
{
	int64_t height = panel_height(c->m);
	struct ahead nothing;

	ahead_nothing(&nothing);
	for (int64_t j = 0; j < c->n; j += GEMM_WIDTH) {
		int64_t v = panel_width(c->n - j) / HD_WIDTH;
		for (int64_t i = 0; i < c->m; i += height) {
			int64_t h = panel_rows(height, c->m, i);
			struct gemm_out out = { c->at + i * c->step + j, c->step, min64(h, c->m - i),
				c->n - j, c->more };
			micros[h / GEMM_STEP - 1][v - 1](a + i * depth, h, b + j * packed, depth, &out,
				&nothing);
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
	struct ahead nothing;

	ahead_nothing(&nothing);
	for (int64_t j = 0; j < c->n; j += GEMM_WIDTH) {
		int64_t v = panel_width(c->n - j) / HD_WIDTH;
		for (int64_t i = 0; i < c->m; i += height) {
			int64_t h = panel_rows(height, c->m, i);
			struct gemm_out out = { c->at + i * c->step + j, c->step, min64(h, c->m - i),
				c->n - j, c->more };
			micros[h / GEMM_STEP - 1][v - 1](a + i, step, b + j * packed + from * v * HD_WIDTH,
				depth - from, &out, &nothing);
		}
	}
}

/* Floats of n columns of b packed as panels of `depth` terms, and of m rows of a. */
HD_INLINE int64_t packed_b(int64_t n, int64_t depth) { return round_up(n, GEMM_WIDTH) * depth + HD_UNIT; }
HD_INLINE int64_t packed_a(int64_t m, int64_t depth) { return round_up((round_up(m,
	GEMM_HEIGHT) + GEMM_HEIGHT) * depth + HD_WIDTH, HD_UNIT); }

/* A block of a as the innermost loop reads it: packed panels, or rows `step` apart. `spare`: a row behind
 * the last may be read. */
struct gemm_left { const float *at; int64_t step; bool packed, spare; };

HD_INLINE void copy_lanes(float *to, const float *from, int64_t depth)
{
	if (LANE_TERMS == 1)
		memcpy(to, from, (size_t)depth * sizeof *from);
	for (int64_t k = 0; LANE_TERMS > 1 && k < depth; k += HD_WIDTH * LANE_TERMS)
		part_store(to + k / LANE_TERMS, lane_along(from + k, depth - k));
}

/* Rows that lie are read where they lie, unless they would push each other out of the cache, or hold no
 * lanes yet: those are copied. */
static inline struct gemm_left gemm_left(struct mat a, int64_t m0, int64_t m, int64_t k0, int64_t depth,
	float *scratch)
{
	const float *at = a.at + m0 * a.step + k0;
	const int64_t lanes = lanes_of(depth), pitch = gemm_pitch(lanes);

	if (a.turned) {
		gemm_pack_a(scratch, a, m0, m, k0, depth);
		return (struct gemm_left){ scratch, 0, true, true };
	}
	if (LANE_TERMS == 1 && a.step * (int64_t)sizeof *at % GEMM_CLASH != 0)
		return (struct gemm_left){ at, a.step, false, false };
	for (int64_t i = 0; i < m; i++)
		copy_lanes(scratch + i * pitch, at + i * a.step, depth);
	for (int64_t i = m; i < round_up(m, GEMM_STEP); i++)
		memset(scratch + i * pitch, 0, (size_t)lanes * sizeof *at);
	return (struct gemm_left){ scratch, pitch, false, true };
}

/* Rows from i on times a packed panel of b. Panels have even heights: a last row without a partner is packed
 * with its panel, into `odd`. */
static inline void gemm_panel(const struct gemm_left *a, int64_t i, const float *b, int64_t depth,
	const struct gemm_out *c, float *odd, struct ahead *ahead)
{
	int64_t h = round_up(c->m, GEMM_STEP), v = panel_width(c->n) / HD_WIDTH, lanes = lanes_of(depth);

	if (a->packed) {
		micros[h / GEMM_STEP - 1][v - 1](a->at + i * lanes, h, b, lanes, c, ahead);
	} else if (c->m == h || a->spare) {
		micros_rows[h / GEMM_STEP - 1][v - 1](a->at + i * a->step, a->step, b, lanes, c, ahead);
	} else {                          /* rows that lie are lanes */
		gemm_pack_a(odd, (struct mat){ a->at, a->step, false }, i, c->m, 0, depth);
		micros[h / GEMM_STEP - 1][v - 1](odd, h, b, lanes, c, ahead);
	}
}

/* c = a times a packed block of b, its panels of `packed` >= depth terms. `work`: gemm_room_a(c->m, depth)
 * floats. */
static inline void gemm_lines(struct mat a, const float *b, int64_t packed, int64_t depth,
	const struct gemm_out *c, float *work)
{
	struct gemm_left left = gemm_left(a, 0, c->m, 0, depth, work);
	int64_t height = panel_height(c->m);
	struct ahead nothing;

	ahead_nothing(&nothing);
	for (int64_t j = 0; j < c->n; j += GEMM_WIDTH)
		for (int64_t i = 0; i < c->m; i += height) {
			struct gemm_out out = { c->at + i * c->step + j, c->step, min64(height, c->m - i),
				c->n - j, c->more };
			gemm_panel(&left, i, b + j * packed, depth, &out, work, &nothing);
		}
}

/* Columns from j on of a block of b, to be packed next: the part of them that call i of `ncalls` fetches. */
struct ahead_b { struct mat b; int64_t j, n, k0, depth, ncalls; };

HD_INLINE void ahead_of_b(struct ahead *w, const struct ahead_b *next, int64_t i)
{
	const struct mat *b = &next->b;
	int64_t width = min64(GEMM_WIDTH, next->n - next->j), lines = b->turned ? width : next->depth,
		per = div_up(lines, next->ncalls), end = min64(lines, (i + 1) * per);

	if (width <= 0)
		return;
	if (!b->turned)
		ahead_add(w, b->at + (next->k0 + i * per) * b->step + next->j, b->step, end - i * per);
	for (int64_t j = i * per; b->turned && j < end; j++)
		ahead_add(w, b->at + (next->j + j) * b->step + next->k0,
			2 * GEMM_LINE / (int64_t)sizeof(float),
			div_up(next->depth * (int64_t)sizeof(float), 2 * GEMM_LINE));
}

/* All rows of a block of a times the panel of b at column j; `later` is packed after it. */
static inline void gemm_column(const struct gemm_left *a, const float *b, int64_t depth, int64_t j,
	const struct gemm_out *c, float *odd, struct ahead_b *later)
{
	int64_t height = panel_height(c->m);

	later->ncalls = div_up(c->m, height);
	for (int64_t i = 0; i < c->m; i += height) {
		struct gemm_out out = { c->at + i * c->step + j, c->step, min64(height, c->m - i), c->n - j,
			c->more };
		struct ahead ahead = { 0 };
		int64_t next = i + height;
		if (next < c->m)
			ahead_of_c(&ahead, c->at + next * c->step + j, c->step, min64(height, c->m - next));
		else if (j + GEMM_WIDTH < c->n)
			ahead_of_c(&ahead, c->at + j + GEMM_WIDTH, c->step, min64(height, c->m));
		ahead_of_b(&ahead, later, i / height);
		ahead_begin(&ahead);
		gemm_panel(a, i, b, depth, &out, odd, &ahead);
	}
}

/* c = a b over `depth` terms, or c continued when c.more. No terms: c stays. `beyond` columns of b behind
 * those of c are likely to be asked for next. */
static inline void gemm_then(struct mat a, struct mat b, struct gemm_out c, int64_t depth, int64_t beyond,
	float *scratch)
{
	int64_t lanes = gemm_depth(depth), block = lanes * LANE_TERMS;
	float *pb = scratch + gemm_room_a(c.m, lanes);

	for (int64_t i = 0; i < c.m; i += GEMM_ROWS)
		for (int64_t k = 0; k < depth; k += block) {
			int64_t len = min64(block, depth - k), m = min64(GEMM_ROWS, c.m - i);
			struct gemm_out out = { c.at + i * c.step, c.step, m, c.n, c.more || k > 0 };
			struct gemm_left left = gemm_left(a, i, m, k, len, scratch);
			for (int64_t j = 0; j < c.n; j += GEMM_WIDTH) {
				struct ahead_b later = { b, j + GEMM_WIDTH, c.n + beyond, k, len, 0 };
				gemm_pack_b(pb, b, j, min64(GEMM_WIDTH, c.n - j), k, len);
				gemm_column(&left, pb, len, j, &out, scratch, &later);
			}
		}
}

static inline void gemm(struct mat a, struct mat b, struct gemm_out c, int64_t depth, float *scratch)
{
	gemm_then(a, b, c, depth, 0, scratch);
}

#endif
