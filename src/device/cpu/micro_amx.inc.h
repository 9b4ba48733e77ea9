/* micro_amx.inc.h -- the innermost loop of products in bf16 by AMX (HD_AMX, kernels_amx.c), in the place of
 * micro.inc.h: one or two tiles of 16 rows by one or two of 16 columns of results, 16 lanes at a time.
 *
 * 1. A tile of b is 16 lanes of 16 columns of a packed panel. One of a is 16 rows of 16 lanes; a packed panel
 *    holds all its rows for 16 lanes, then for the next 16.
 * 2. An element's sums are those of hd_bf16_block() (device/bf16.h), of 32 terms after 32 terms.
 * 3. amx_begin() comes before the first product of a call and amx_end() behind the last: between calls a
 *    thread has no tiles, so that whoever uses them beside us (oneDNN) and the system, which saves what is in
 *    use at each switch and signal, never meet ours.
 *
 * Four tiles hold results and four what is read: each is used twice, so that a core which starts a product
 * every 16 cycles has to read one line a cycle. */
#ifndef HD_DEVICE_CPU_MICRO_AMX_INC_H
#define HD_DEVICE_CPU_MICRO_AMX_INC_H

#include "device/cpu/gemm_parts.h"

enum { AMX_TILE = 16, AMX_LINE = AMX_TILE * (int)sizeof(float), AMX_TILES = 8 };

/* As LDTILECFG reads it. */
struct amx_shape { uint8_t palette, start_row, unused[14]; uint16_t row_bytes[16]; uint8_t rows[16]; };
_Static_assert(sizeof(struct amx_shape) == 64, "64 bytes");

static inline void amx_begin(void)
{
	static const struct amx_shape shape = { .palette = 1,
#define EIGHT(x) { x, x, x, x, x, x, x, x }
		.row_bytes = EIGHT(AMX_LINE), .rows = EIGHT(AMX_TILE) };
#undef EIGHT
	_tile_loadconfig(&shape);
}

static inline void amx_end(void) { _tile_release(); }

/* Compilers do not see what an instruction on tiles reads and writes. */
#define AMX_FENCE() __asm__ volatile("" ::: "memory")

/* What of a tile's results goes beyond the edge is computed here. */
struct amx_edge { _Alignas(64) float at[GEMM_HEIGHT][GEMM_WIDTH]; };

HD_INLINE void amx_edge_fill(struct amx_edge *e, const int h, const int v, const struct gemm_out *c)
{
	for (int64_t i = 0; i < h * AMX_TILE; i++)
		for (int64_t j = 0; j < v * AMX_TILE; j += AMX_TILE)
			part_store(&e->at[i][j], i < c->m && j < c->n ? part_load_n(c->at + i * c->step + j,
				(size_t)min64(c->n - j, AMX_TILE)) : part_set(0.0f));
}

/* Results, and what is added to them, to where they belong. */
HD_INLINE void amx_edge_put(const struct amx_edge *e, const int v, const struct gemm_out *c,
	const struct gemm_adds *adds)
{
	const uint32_t nadds = adds ? adds->n : 0;

	for (int64_t i = 0; i < c->m; i++)
		for (int64_t j = 0; j < v * AMX_TILE && j < c->n; j += AMX_TILE) {
			size_t n = (size_t)min64(c->n - j, AMX_TILE);
			part x = part_load(&e->at[i][j]);
			for (uint32_t k = 0; k < nadds; k++)
				x = part_load_n(adds->of[k].at + i * adds->of[k].step + j, n) + x;
			part_store_n(c->at + i * c->step + j, x, n);
		}
}

enum { AMX_AHEAD = 4 };                   /* pairs of lines that are fetched a step */

HD_INLINE void amx_fetch(struct ahead *ahead)
{
	for (int i = 0; i < AMX_AHEAD; i++) {
		__builtin_prefetch(ahead->fetch, 0, 2);
		__builtin_prefetch(ahead->fetch + GEMM_LINE, 0, 2);
		ahead->fetch += ahead->now->step;
		if (--ahead->left == 0) {
			ahead->now++;
			ahead->fetch = ahead->now->at;
			ahead->left = ahead->now->n;
		}
	}
}

/* h x v tiles of results: constants after inlining, as `rows` is. */
HD_INLINE void micro(const int h, const int v, const bool rows, const float *a, int64_t step,
	const float *b, int64_t depth, const struct gemm_out *c, const struct gemm_adds *adds,
	struct ahead *ahead)
{
	const int64_t row = rows ? step : AMX_TILE, next = rows ? AMX_TILE : step * AMX_TILE;
	const bool whole = c->m >= h * AMX_TILE && c->n >= v * AMX_TILE && !adds;
	struct amx_edge edge;
	float *out = whole ? c->at : edge.at[0];
	const int64_t out_bytes = (whole ? c->step : GEMM_WIDTH) * (int64_t)sizeof *out;
	const int64_t down = out_bytes * AMX_TILE / (int64_t)sizeof *out;

#define EACH_RESULT(DO) \
	do { \
		DO(0, out); \
		if (v > 1) \
			DO(1, out + AMX_TILE); \
		if (h > 1) \
			DO(2, out + down); \
		if (h > 1 && v > 1) \
			DO(3, out + down + AMX_TILE); \
	} while (0)
#define ZERO(tile, at) _tile_zero(tile)
#define LOAD(tile, at) _tile_loadd(tile, at, (size_t)out_bytes)
#define STORE(tile, at) _tile_stored(tile, at, (size_t)out_bytes)
	if (!c->more) {
		EACH_RESULT(ZERO);
	} else {
		if (!whole)
			amx_edge_fill(&edge, h, v, c);
		AMX_FENCE();
		EACH_RESULT(LOAD);
	}
	AMX_FENCE();
	for (int64_t k = 0; k < depth; k += AMX_TILE, a += next, b += v * AMX_TILE * AMX_TILE) {
		_tile_loadd(4, a, (size_t)row * sizeof *a);
		_tile_loadd(6, b, (size_t)(v * AMX_LINE));
		_tile_dpbf16ps(0, 4, 6);
		if (v > 1) {
			_tile_loadd(7, b + AMX_TILE, (size_t)(v * AMX_LINE));
			_tile_dpbf16ps(1, 4, 7);
		}
		if (h > 1) {
			_tile_loadd(5, a + AMX_TILE * row, (size_t)row * sizeof *a);
			_tile_dpbf16ps(2, 5, 6);
		}
		if (h > 1 && v > 1)
			_tile_dpbf16ps(3, 5, 7);
		amx_fetch(ahead);
	}
	EACH_RESULT(STORE);
	AMX_FENCE();
	if (!whole)
		amx_edge_put(&edge, v, c, adds);
#undef EACH_RESULT
#undef ZERO
#undef LOAD
#undef STORE
}

MICRO(1, 1) MICRO(1, 2) MICRO(2, 1) MICRO(2, 2)

/* By height / GEMM_STEP - 1 and registers - 1. */
static micro_fn *const micros[2][GEMM_VECS] = { { micro_1x1, micro_1x2 }, { micro_2x1, micro_2x2 } };
static micro_fn *const micros_rows[2][GEMM_VECS] = { { micro_rows_1x1, micro_rows_1x2 },
	{ micro_rows_2x1, micro_rows_2x2 } };
static micro_add_fn *const micro_adds[2][GEMM_VECS] = { { micro_add_1x1, micro_add_1x2 },
	{ micro_add_2x1, micro_add_2x2 } };

#endif
