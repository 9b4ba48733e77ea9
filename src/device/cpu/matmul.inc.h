/* matmul.inc.h -- the op matmul: a grid of panels over its result. One source for all paths.
 *
 * 1. The grid is a function of the shape alone. Panels are large where the result
 *    is large, since both operands are packed again for each, and smaller until there are two of
 *    them or a panel would be less work than sharing it is worth.
 *    Tiles go down a column of panels first: the block of b, the larger one, is
 *    then still in the second-level cache.
 * 2. Sums are those of gemm.inc.h, whatever the panel. */
#ifndef HD_DEVICE_CPU_MATMUL_INC_H
#define HD_DEVICE_CPU_MATMUL_INC_H

#include "device/cpu/fold.inc.h"
#include "device/kernel.h"

struct matmul { int64_t m, n, k, rows, cols, ntall, nwide; };      /* rows x cols: a panel */

static inline struct matmul matmul_grid(int64_t m, int64_t n, int64_t k)
{
	static const struct { int64_t rows, cols; } panel[] = {
		{ 2 * GEMM_ROWS, GEMM_COLS }, { 2 * GEMM_ROWS, 256 }, { GEMM_ROWS, 256 }, { 84, 256 }, { 84, 128 }, { 84, 64 },
	};
	const int64_t enough = 2, least = 1 << 20;     /* panels; multiply-adds of one */
	struct matmul g = { m, n, k, 0, 0, 0, 0 };

	for (size_t i = 0; i < sizeof panel / sizeof panel[0]; i++) {
		int64_t rows = share(m, panel[i].rows, 14), cols = share(n, panel[i].cols, 32);
		if (i > 0 && (g.ntall * g.nwide >= enough || rows * cols * k < least))
			break;
		g.rows = rows;
		g.cols = cols;
		g.ntall = div_up(m, rows);
		g.nwide = div_up(n, cols);
	}
	return g;
}

static inline struct matmul matmul_of(const struct hd_call *call)
{
	const struct hd_operand *a = &call->in[0], *b = &call->in[1];
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;

	return matmul_grid(ta ? hd_cols(a) : hd_rows(a), tb ? hd_rows(b) : hd_cols(b),
		ta ? hd_rows(a) : hd_cols(a));
}

static inline uint32_t matmul_ntiles(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return (uint32_t)(g.ntall * g.nwide);
}

static inline size_t matmul_scratch(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return gemm_scratch(g.rows, g.cols, g.k);
}

static inline void matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct matmul g = matmul_of(call);
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	const float *a = call->in[0].at, *b = call->in[1].at;
	int64_t i = tile % g.ntall * g.rows, j = tile / g.ntall * g.cols;
	struct mat left = { ta ? a + i : a + i * g.k, ta ? g.m : g.k, ta };
	struct mat right = { tb ? b + j * g.k : b + j, tb ? g.k : g.n, tb };
	struct gemm_out out = { (float *)call->out[0].at + i * g.n + j, g.n, min64(g.rows, g.m - i),
		min64(g.cols, g.n - j), false };

	gemm(left, right, out, g.k, scratch);
}

/* The gradient of a weight over the parts of a wave: a part's rows are its terms. For a micro-tile of the
 * result the leaves of several parts are made one after the other in registers and folded at once, so that
 * the pending sums stay in the first-level cache and the gradient goes through memory once per wave. Parts
 * with more terms than a packed block holds make their leaf in a rectangle of their own. */
enum { FOLD_ROWS = 112, FOLD_COLS = 256, FOLD_ENOUGH = 8 };

static inline bool matmul_fold_takes(const struct hd_call *call) { return call->attr.i[0] != 0 &&
	call->attr.i[1] == 0; }

static inline struct matmul matmul_fold_grid(const struct hd_call *call)
{
	int64_t m = hd_cols(&call->in[0]), n = hd_cols(&call->in[1]), most[2] = { FOLD_ROWS, FOLD_COLS };
	struct matmul g = { m, n, hd_rows(&call->in[0]), 0, 0, 0, 0 };

	for (int halving = 0; halving < 3; halving++) {
		g.rows = share(m, most[0], GEMM_HEIGHT);
		g.cols = share(n, most[1], 32);
		g.ntall = div_up(m, g.rows);
		g.nwide = div_up(n, g.cols);
		if (g.ntall * g.nwide >= FOLD_ENOUGH)
			break;
		most[halving == 0] /= 2;
	}
	return g;
}

static inline uint32_t matmul_fold_ntiles(const struct hd_call *call)
{
	struct matmul g = matmul_fold_grid(call);
	return (uint32_t)(g.ntall * g.nwide);
}

struct fold_scratch { float *a, *b, *gemm, *leaf, *temp; int64_t len; };       /* len: of a rectangle */

/* Panels are written in whole registers: each has the room of one more behind it. */
static inline size_t fold_place(const struct matmul *g, int64_t ntemps, float *from, struct fold_scratch *s)
{
	int64_t a = round_up((round_up(g->rows, GEMM_HEIGHT) + GEMM_HEIGHT) * GEMM_DEPTH + HD_UNIT, HD_UNIT);
	int64_t b = round_up(round_up(g->cols, GEMM_WIDTH) * GEMM_DEPTH + HD_UNIT, HD_UNIT),
		len = round_up(g->rows * g->cols, HD_UNIT);

	int64_t block = round_up((int64_t)(gemm_scratch(g->rows, g->cols, GEMM_DEPTH) / sizeof(float)),
		HD_UNIT);

	if (s)
		*s = (struct fold_scratch){ from, from + a, from + a + b, from + a + b + block,
			from + a + b + block + len, len };
	return (size_t)(a + b + block + len * (1 + ntemps)) * sizeof(float);
}

static inline size_t matmul_fold_scratch(const struct hd_call *call, uint32_t max_parts)
{
	struct matmul g = matmul_fold_grid(call);
	return fold_place(&g, fold_temps(max_parts), NULL, NULL);
}

struct fold_tile {
	const struct hd_call *call;
	const struct hd_fold_job *job;
	struct matmul g;
	struct fold_scratch s;
	struct fold_site site;
	int64_t i, j, m, n;
};

static inline int64_t part_terms(const struct fold_tile *t, uint32_t p)
{
	return t->g.k / (int64_t)t->job->rows * (int64_t)t->job->part[p].rows;
}

static inline struct mat part_operand(const struct fold_tile *t, uint32_t p, int which)
{
	const uint8_t *first = t->call->in[which].at;
	const float *at = (const float *)(const void *)(first + t->job->step_bytes[which] * p);

	return which ? (struct mat){ at + t->j, t->g.n, false } : (struct mat){ at + t->i, t->g.m, true };
}

/* Parts [first, end), packed: leaves and folds of every micro-tile in turn. */
static inline void fold_packed(const struct fold_tile *t, uint32_t first, uint32_t end)
{
	int64_t height = panel_height(t->m), tall = div_up(t->m, height) * height,
		wide = round_up(t->n, GEMM_WIDTH);
	struct gemm_adds adds[HD_MAX_WAVE], here;
	struct rect to[HD_MAX_WAVE];

	for (uint32_t p = first; p < end; p++)
		to[p] = fold_chain(&t->site, &t->job->part[p], &adds[p]);
	for (int64_t j = 0; j < t->n; j += GEMM_WIDTH)
		for (int64_t i = 0; i < t->m; i += height) {
			int64_t h = round_up(min64(height, t->m - i), 2),
				v = panel_width(t->n - j) / HD_WIDTH, before = 0;
			for (uint32_t p = first; p < end; p++) {
				int64_t depth = part_terms(t, p);
				struct gemm_out out = { to[p].at + i * to[p].step + j, to[p].step,
					min64(h, t->m - i), t->n - j, false };
				here.n = adds[p].n;
				for (uint32_t k = 0; k < here.n; k++)
					here.of[k] = (struct gemm_add){ adds[p].of[k].at + i *
						adds[p].of[k].step + j, adds[p].of[k].step };
				micro_adds[h / 2 - 1][v - 1](t->s.a + before * tall + i * depth,
					t->s.b + before * wide + j * depth, depth, &out, &here, NULL);
				before += depth;
			}
		}
}

/* A leaf that was made in a rectangle of its own. */
static inline void fold_leaf(const struct fold_tile *t, uint32_t p)
{
	struct gemm_adds adds;
	struct rect to = fold_chain(&t->site, &t->job->part[p], &adds);

	for (int64_t i = 0; i < t->m; i++)
		for (int64_t j = 0; j < t->n; j += HD_WIDTH) {
			size_t n = (size_t)min64(HD_WIDTH, t->n - j);
			part x = part_load_n(t->s.leaf + i * t->g.cols + j, n);
			for (uint32_t k = 0; k < adds.n; k++)
				x = part_load_n(adds.of[k].at + i * adds.of[k].step + j, n) + x;
			part_store_n(to.at + i * to.step + j, x, n);
		}
}

static inline void matmul_fold_tile(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile,
	void *scratch)
{
	struct fold_tile t = { .call = call, .job = job, .g = matmul_fold_grid(call) };
	int64_t tall, wide;
	uint32_t end;

	t.i = tile % t.g.ntall * t.g.rows;
	t.j = tile / t.g.ntall * t.g.cols;
	t.m = min64(t.g.rows, t.g.m - t.i);
	t.n = min64(t.g.cols, t.g.n - t.j);
	fold_place(&t.g, 0, scratch, &t.s);
	t.site = (struct fold_site){ (int64_t)job->at + t.i * t.g.n + t.j, t.g.n, t.s.temp, t.s.len,
		t.g.cols };
	tall = div_up(t.m, panel_height(t.m)) * panel_height(t.m);
	wide = round_up(t.n, GEMM_WIDTH);
	for (uint32_t p = 0; p < job->nparts; p = end) {
		int64_t terms = 0;
		for (end = p; end < job->nparts && terms + part_terms(&t, end) <= GEMM_DEPTH; end++) {
			int64_t depth = part_terms(&t, end);
			gemm_pack_a(t.s.a + terms * tall, part_operand(&t, end, 0), 0, t.m, 0, depth);
			gemm_pack_b(t.s.b + terms * wide, part_operand(&t, end, 1), 0, t.n, 0, depth);
			terms += depth;
		}
		if (end > p) {
			fold_packed(&t, p, end);
			continue;
		}
		struct gemm_out out = { t.s.leaf, t.g.cols, t.m, t.n, false };
		gemm(part_operand(&t, p, 0), part_operand(&t, p, 1), out, part_terms(&t, p), t.s.gemm);
		fold_leaf(&t, p);
		end = p + 1;
	}
}

#endif
