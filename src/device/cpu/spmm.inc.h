/* spmm.inc.h -- sums of rows along edges (device/spmm.h). One source for all paths.
 *
 * A tile of columns, eight registers at most, is summed for one row after another: its sums stay in registers
 * while the row's edges go by; the lines of a neighbour SPMM_AHEAD edges on are fetched meanwhile. A number
 * of registers, a kind of rows and a kind of weights make one function; a table chooses it once a tile. Where
 * the edges of a row are not followed by those of the next one (`end`), the first of each row are fetched
 * some rows before.
 *
 * 1. Lanes of a register are columns: how many columns a tile has changes no bit.
 * 2. Lanes beyond the width are not read (f32) or read and not stored (bf16). */
#include <string.h>

#include "base/half.h"
#include "graph/acts.h"

/* Its loops over all activations are not wanted here. */
static __attribute__((unused)) void act_all(int act, const float *f, const float *x, float *y, uint64_t n);
static __attribute__((unused)) void act_dx_all(int act, const float *f, const float *dy, const float *x,
	float *dx, uint64_t n);
#include "device/cpu/acts.inc.h"
#include "device/spmm.h"

enum { SPMM_REGISTERS = 8, SPMM_TILE = SPMM_REGISTERS * HD_WIDTH, SPMM_AHEAD = 8, SPMM_LINE = 64,
	SPMM_LIST_AHEAD = 16 };

typedef uint16_t spmm_half __attribute__((vector_size(2 * HD_WIDTH)));
enum spmm_weights { SPMM_NONE, SPMM_ONE, SPMM_MANY, SPMM_NWEIGHTS };

/* The weights of a register (SPMM_MANY): the first of those that are loaded, how many, and each lane's among
 * them. */
struct spmm_pick { uint32_t head; size_t n; ipart lane; };
/* A tile: its first column, how many rows before the first edges of one are fetched, how many lanes its last
 * register has, the weights of its lanes. */
struct spmm_tile {
	uint64_t column, ahead;
	size_t lanes;
	uint32_t head;
	struct spmm_pick pick[SPMM_REGISTERS];
};

HD_INLINE part spmm_load(const struct hd_spmm *s, bool half, uint64_t at, size_t lanes)
{
	if (half) {
		spmm_half h;
		memcpy(&h, (const uint16_t *)s->x + at, sizeof h);
		return (part)((ipart)(__builtin_convertvector(h, upart) << 16));
	}
	return lanes == HD_WIDTH ? part_load((const float *)s->x + at) :
		part_load_n((const float *)s->x + at, lanes);
}

/* One neighbour, added. `lanes`: of the last register. */
HD_INLINE void spmm_add(const struct hd_spmm *s, const struct spmm_tile *t, int n, bool half,
	enum spmm_weights kind, size_t lanes, uint64_t row, const float *weight, part sum[SPMM_REGISTERS])
{
	const uint64_t at = row * s->x_stride + t->column;
	part by = part_set(kind == SPMM_ONE ? weight[t->head] : 0.0f);

#pragma GCC unroll 8
	for (int i = 0; i < n; i++) {
		if (kind == SPMM_MANY)
			by = part_pick(part_load_n(weight + t->pick[i].head, t->pick[i].n), t->pick[i].lane);
		part x = spmm_load(s, half, at + (uint64_t)i * HD_WIDTH, i + 1 < n ? HD_WIDTH : lanes);
		sum[i] = kind == SPMM_NONE ? sum[i] + x : part_fma(by, x, sum[i]);
	}
}

/* The number of an edge among the weights. */
HD_INLINE uint64_t spmm_edge(const struct hd_spmm *s, uint64_t e) { return s->edge ? s->edge[e] : e; }

HD_INLINE void spmm_fetch(const struct hd_spmm *s, const struct spmm_tile *t, int n, bool half, uint64_t row)
{
	const uint64_t bytes = half ? 2 : 4;
	const char *at = (const char *)s->x + (row * s->x_stride + t->column) * bytes;

	for (int i = 0; i < n * HD_WIDTH * (half ? 2 : 4); i += SPMM_LINE)
		__builtin_prefetch(at + i);
}

static __attribute__((noinline)) void spmm_act(const struct hd_spmm *s, float *lane, uint64_t n)
{
	switch ((int)s->act) {
#define X(id) case HD_ACT_##id: act_run(HD_ACT_##id, s->act_of, lane, lane, n); break;
	HD_SPMM_ACTS(X)
#undef X
	default: break;
	}
}

/* What comes after the last edge. */
HD_INLINE void spmm_end(const struct hd_spmm *s, const struct spmm_tile *t, int n, uint64_t row,
	part sum[SPMM_REGISTERS])
{
	if (s->scale)
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			sum[i] = part_set(s->scale[row]) * sum[i];
	if (s->bias)
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			sum[i] = sum[i] + (i + 1 < n ? part_load(s->bias + t->column + i * HD_WIDTH) :
				part_load_n(s->bias + t->column + i * HD_WIDTH, t->lanes));
	if (s->flags & HD_SPMM_ACT) {
		float lane[SPMM_TILE];
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			part_store(lane + i * HD_WIDTH, sum[i]);
		spmm_act(s, lane, (uint64_t)n * HD_WIDTH);
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			sum[i] = part_load(lane + i * HD_WIDTH);
	}
}

/* Rows that have SPMM_AHEAD edges together, as many as the mean says. */
static uint64_t spmm_rows_ahead(const struct hd_spmm *s)
{
	uint64_t edges = 1;

	for (uint64_t row = s->first; row < s->last; row++)
		edges += s->end[row] - s->offset[row];
	return 1 + SPMM_AHEAD * (s->last - s->first) / edges;
}

/* The first edges of a row: the others are fetched SPMM_AHEAD edges before. */
HD_INLINE void spmm_fetch_row(const struct hd_spmm *s, const struct spmm_tile *t, int n, bool half,
	uint64_t row)
{
	const uint64_t from = s->offset[row], end = s->end[row];
	const uint64_t later = row + SPMM_LIST_AHEAD < s->last ? row + SPMM_LIST_AHEAD : row;

	__builtin_prefetch(s->at + s->offset[later]);
	for (uint64_t e = from; e < end && e < from + SPMM_AHEAD; e++)
		spmm_fetch(s, t, n, half, s->at[e]);
}

/* n registers, the last with `lanes` lanes, of every row. */
HD_INLINE void spmm_columns(const struct hd_spmm *s, const struct spmm_tile *t, int n, bool half,
	enum spmm_weights kind, size_t lanes)
{
	const uint64_t heads = s->heads ? s->heads : 1, all = s->end ? 0 : s->offset[s->last],
		*ends = s->end ? s->end : s->offset + 1;
	const unsigned flags = s->flags, between = HD_SPMM_RESUME | HD_SPMM_PARTIAL;

	for (uint64_t row = s->first; row < s->last; row++) {
		uint64_t e = s->offset[row];
		const uint64_t end = ends[row], known = s->end ? end : all;
		float *y = s->y + row * s->y_stride + t->column;
		part sum[SPMM_REGISTERS];
		if (s->end && row + t->ahead < s->last)
			spmm_fetch_row(s, t, n, half, row + t->ahead);
		if (e == end && (flags & between) == between && !(flags & HD_SPMM_LOOP))
			continue;
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			sum[i] = !(flags & HD_SPMM_RESUME) ? part_set(0.0f) :
				i + 1 < n ? part_load(y + i * HD_WIDTH) :
				part_load_n(y + i * HD_WIDTH, lanes);
		if (flags & HD_SPMM_LOOP)
			spmm_add(s, t, n, half, kind, lanes, row, kind ? s->own + row * heads : NULL, sum);
		for (; e < end; e++) {
			uint64_t ahead = e + SPMM_AHEAD < known ? e + SPMM_AHEAD : e;
			spmm_fetch(s, t, n, half, s->at[ahead]);
			if (kind && s->edge)
				__builtin_prefetch(s->weight + s->edge[ahead] * heads);
			spmm_add(s, t, n, half, kind, lanes, s->at[e],
				kind ? s->weight + spmm_edge(s, e) * heads : NULL, sum);
		}
		if (!(flags & HD_SPMM_PARTIAL))
			spmm_end(s, t, n, row, sum);
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			if (i + 1 < n || lanes == HD_WIDTH)
				part_store(y + i * HD_WIDTH, sum[i]);
			else
				part_store_n(y + i * HD_WIDTH, sum[i], lanes);
	}
}

/* rows of f32 or bf16, weights: none, one a tile, many */
#define SPMM_KINDS(X, n) X(n, 0, NONE) X(n, 0, ONE) X(n, 1, NONE) X(n, 1, ONE) X(n, 0, MANY) X(n, 1, MANY)
#define SPMM_ALL(X) SPMM_KINDS(X, 1) SPMM_KINDS(X, 2) SPMM_KINDS(X, 3) SPMM_KINDS(X, 4) SPMM_KINDS(X, 5) \
	SPMM_KINDS(X, 6) SPMM_KINDS(X, 7) SPMM_KINDS(X, 8)

#define SPMM_DEFINE(n, half, kind) \
	static void spmm_##n##_##half##_##kind(const struct hd_spmm *s, const struct spmm_tile *t) \
	{ spmm_columns(s, t, n, half, SPMM_##kind, t->lanes); }
SPMM_ALL(SPMM_DEFINE)

static void (*const spmm_of[SPMM_REGISTERS][2][SPMM_NWEIGHTS])(const struct hd_spmm *s,
	const struct spmm_tile *t) = {
#define SPMM_ROW(n, half, kind) [n - 1][half][SPMM_##kind] = spmm_##n##_##half##_##kind,
	SPMM_ALL(SPMM_ROW)
};

/* A register has at most as many heads as lanes: from that of its first lane on, or all of them. */
static void spmm_picks(struct spmm_tile *t, uint64_t n, uint64_t each, uint64_t heads)
{
	for (uint64_t first = 0; first < n; first += HD_WIDTH) {
		struct spmm_pick *p = &t->pick[first / HD_WIDTH];
		p->head = heads <= HD_WIDTH ? 0 : (uint32_t)((t->column + first) / each);
		p->n = heads - p->head < HD_WIDTH ? heads - p->head : HD_WIDTH;
		for (uint64_t i = 0; i < HD_WIDTH; i++) {
			uint64_t column = t->column + (first + i < n ? first + i : n - 1);
			p->lane[i] = (int32_t)(column / each - p->head);
		}
	}
}

static void spmm(const struct hd_spmm *s)
{
	const uint64_t heads = s->heads ? s->heads : 1, each = s->width / heads;
	const bool weighs = s->weight || s->own;
	struct spmm_tile t = { .ahead = s->end ? spmm_rows_ahead(s) : 0 };

	for (uint64_t n; t.column < s->width; t.column += n) {
		enum spmm_weights kind = weighs ? SPMM_ONE : SPMM_NONE;
		n = s->width - t.column < SPMM_TILE ? s->width - t.column : SPMM_TILE;
		t.head = (uint32_t)(t.column / each);
		if (weighs && (t.column + n - 1) / each != t.head) {
			kind = SPMM_MANY;
			spmm_picks(&t, n, each, heads);
		}
		t.lanes = (n - 1) % HD_WIDTH + 1;
		spmm_of[(n - 1) / HD_WIDTH][(s->flags & HD_SPMM_BF16) != 0][kind](s, &t);
	}
}

static void spmm_rows(const struct hd_spmm_rows *r)
{
	for (uint64_t row = r->first; row < r->last; row++) {
		const float *x = r->x + row * r->x_stride;
		const struct vf scale = vf_set(r->scale ? r->scale[row] : 1.0f);
		HD_UNITS(i, len, r->width) {
			struct vf y = vf_mul(scale, vf_load_n(x + i, len));
			if (r->bf16) {
				uint16_t *to = (uint16_t *)r->to + row * r->to_stride + i;
				float lane[HD_UNIT];
				vf_store(lane, y);
				for (size_t k = 0; k < len; k++)
					to[k] = hd_bf16_of_f32(lane[k]);
			} else {
				vf_store_n((float *)r->to + row * r->to_stride + i, y, len);
			}
		}
	}
}

/* Compilers make vectors of the innermost loop of this. */
static void spmm_plain(const struct hd_spmm *s)
{
	const uint64_t width = s->width, heads = s->heads ? s->heads : 1, each = width / heads;
	const float *x = s->x;

	for (uint64_t row = s->first; row < s->last; row++) {
		float *restrict y = s->y + row * s->y_stride;
		for (uint64_t c = 0; c < width; c++)
			y[c] = 0;
		if (s->flags & HD_SPMM_LOOP)
			for (uint64_t c = 0; c < width; c++)
				y[c] = s->own ? __builtin_fmaf(s->own[row * heads + c / each],
					x[row * s->x_stride + c], y[c]) : y[c] + x[row * s->x_stride + c];
		for (uint64_t e = s->offset[row]; e < s->offset[row + 1]; e++) {
			const float *restrict from = x + s->at[e] * s->x_stride;
			if (!s->weight)
				for (uint64_t c = 0; c < width; c++)
					y[c] += from[c];
			else
				for (uint64_t c = 0; c < width; c++)
					y[c] = __builtin_fmaf(s->weight[spmm_edge(s, e) * heads + c / each],
						from[c], y[c]);
		}
		if (s->scale)
			for (uint64_t c = 0; c < width; c++)
				y[c] *= s->scale[row];
		if (s->bias)
			for (uint64_t c = 0; c < width; c++)
				y[c] += s->bias[c];
	}
}
