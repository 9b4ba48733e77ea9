/* gemm_parts.h -- what the loops of a product (gemm.inc.h) and the innermost one (micro.inc.h) both speak of:
 * sizes of blocks, where operands and results lie, what is fetched meanwhile. One source for all paths. */
#ifndef HD_DEVICE_CPU_GEMM_PARTS_H
#define HD_DEVICE_CPU_GEMM_PARTS_H

#include <stdbool.h>
#include <string.h>

#include "device/cpu/lane.h"

/* A matrix inside memory: element (i, j) at at[i*step + j], or at[j*step + i] when turned. */
struct mat { const float *at; int64_t step; bool turned; };

enum {
	GEMM_VECS = 2,
	GEMM_WIDTH = GEMM_VECS * HD_WIDTH,
#ifdef HD_AMX
	GEMM_HEIGHT = 2 * LANE_TILE,
	GEMM_STEP = LANE_TILE,            /* heights of panels are multiples of it */
	GEMM_SHARE = GEMM_HEIGHT,         /* and those of a grid's panels of this */
	GEMM_ROWS = 352,                  /* of a block: a multiple of every height */
#else
	GEMM_HEIGHT = HD_HEIGHT,
	GEMM_STEP = 2,
	GEMM_SHARE = 14,
	GEMM_ROWS = 336,
#endif
	GEMM_DEPTH = 384,                 /* of a block: a panel of b stays near the first-level cache */
	GEMM_COLS = 512,
	GEMM_CLASH = 4096,                /* bytes: rows so far apart fall into few sets of the cache */
	GEMM_LINE = 64,
	GEMM_LINES = 32,                  /* rows of a turned a that are read side by side */
};

_Static_assert(GEMM_ROWS % GEMM_HEIGHT == 0, "no panel of a block is cut");

HD_INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
HD_INLINE int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
HD_INLINE int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

/* `whole` in equal parts of at most `most`, multiples of `unit`. */
HD_INLINE int64_t share(int64_t whole, int64_t most, int64_t unit)
{
	return min64(whole, round_up(div_up(whole, div_up(whole, most)), unit));
}

/* Lanes of a block: equal ones, so that none is too short to pay for reading c again. */
HD_INLINE int64_t gemm_depth(int64_t k)
{
	return k > 0 ? share(lanes_of(k), GEMM_DEPTH, LANE_TILE > 4 ? LANE_TILE : 4) : 0;
}
/* From a row to the next of a block of a that is copied. */
HD_INLINE int64_t gemm_pitch(int64_t depth) { return round_up(depth, HD_UNIT) + HD_UNIT; }
/* Floats of a block of a, packed or copied. */
HD_INLINE int64_t gemm_room_a(int64_t m, int64_t depth)
{
	return (round_up(min64(m, GEMM_ROWS), GEMM_HEIGHT) + GEMM_HEIGHT) * gemm_pitch(depth) + HD_UNIT;
}

/* Bytes that gemm() needs for results of at most m x n with at most k terms: fewer may have deeper blocks. */
static inline size_t gemm_scratch(int64_t m, int64_t n, int64_t k)
{
	int64_t depth = k > 0 ? min64(lanes_of(k), GEMM_DEPTH) : 0;

	(void)n;
	return (size_t)(gemm_room_a(m, depth) + GEMM_WIDTH * depth + HD_UNIT) * sizeof(float);
}

struct gemm_out { float *at; int64_t step; int64_t m, n; bool more; };

/* What is added to a finished result before it is stored: `n` matrices of its place, one after the other. */
struct gemm_add { const float *at; int64_t step; };
struct gemm_adds { uint32_t n; struct gemm_add of[24]; };

/* Memory to fetch while products are made: `n` pairs of cache lines `step` bytes apart. They go into the
 * second level, since the first is full, a line every four terms: more at once, and the lines that products
 * themselves wait for stand behind them. */
struct ahead_of { const char *at; int64_t step, n; };

enum { AHEAD_MOST = 8 };

/* One after the other, over as many calls as it takes; the last is endless and costs nothing, a line that is
 * near. */
struct ahead {
	uint32_t n;
	struct ahead_of of[AHEAD_MOST + 1];
	const struct ahead_of *now;       /* what is left of it: `left` pairs from `fetch` on */
	const char *fetch;
	int64_t left;
};

HD_INLINE void ahead_add(struct ahead *w, const float *at, int64_t step, int64_t n)
{
	if (n > 0 && w->n < AHEAD_MOST)
		w->of[w->n++] = (struct ahead_of){ (const char *)at, step * (int64_t)sizeof *at, n };
}

/* The piece of two lines of n rows of results: one that does not begin on a line shares its first with the
 * piece before it, and ends in a third. */
HD_INLINE void ahead_of_c(struct ahead *w, const float *at, int64_t step, int64_t n)
{
	ahead_add(w, at + GEMM_LINE / (int64_t)sizeof *at - 1, step, n);
}

/* Nothing is added after this. */
HD_INLINE void ahead_begin(struct ahead *w)
{
	w->of[w->n] = (struct ahead_of){ (const char *)w, 0, INT64_MAX };
	w->now = w->of;
	w->fetch = w->now->at;
	w->left = w->now->n;
}

HD_INLINE void ahead_nothing(struct ahead *w)
{
	w->n = 0;
	ahead_begin(w);
}

/* The innermost loop of a shape of tile: by packed panels of a, by rows of it, and with what is added to the
 * results. */
typedef void micro_fn(const float *a, int64_t step, const float *b, int64_t depth, const struct gemm_out *c,
	struct ahead *ahead);
typedef void micro_add_fn(const float *a, const float *b, int64_t depth, const struct gemm_out *c,
	const struct gemm_adds *adds, struct ahead *ahead);

/* The three of h x v, of micro() there: h in rows, by AMX in tiles. */
#define MICRO(h, v)                                  \
	static inline void micro_##h##x##v(const float *a, int64_t step, const float *b, int64_t depth, \
		const struct gemm_out *c, struct ahead *ahead) \
	{ micro(h, v, false, a, step, b, depth, c, NULL, ahead); } \
	static inline void micro_rows_##h##x##v(const float *a, int64_t step, const float *b, int64_t depth, \
		const struct gemm_out *c, struct ahead *ahead) \
	{ micro(h, v, true, a, step, b, depth, c, NULL, ahead); } \
	static inline void micro_add_##h##x##v(const float *a, const float *b, int64_t depth, \
		const struct gemm_out *c, const struct gemm_adds *adds, struct ahead *ahead) \
	{ micro(h, v, false, a, h * LANE_TILE, b, depth, c, adds, ahead); }

#endif
