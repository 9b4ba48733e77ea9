/* matmul.inc.h -- the op matmul: a grid of panels over its result. One source for all paths.
 *
 * 1. The grid is a function of the shape alone. Panels shrink until there are MATMUL_ENOUGH of them, which
 *    keeps as many threads busy, or until one would be less work than sharing it is worth. What is read
 *    where it lies costs nothing to read again: they become narrow, and b is packed once. Where a is
 *    packed or copied for each, they stay wide.
 * 2. Sums are those of gemm.inc.h, whatever the panel.
 * 3. A thread that has all panels takes wide ones: each reads a from end to end, and a may be larger than a
 *    cache. */
#ifndef HD_DEVICE_CPU_MATMUL_INC_H
#define HD_DEVICE_CPU_MATMUL_INC_H

#include "device/cpu/fold.inc.h"
#include "device/kernel.h"

struct matmul { int64_t m, n, k, rows, cols, ntall, nwide; };      /* rows x cols: a panel */

enum { MATMUL_ENOUGH = 8, MATMUL_LEAST = 1 << 20 };        /* panels; multiply-adds of one */

/* Is a block of a, turned or not, packed or copied (gemm_left)? */
HD_INLINE bool matmul_lays_a(int64_t m, int64_t k, bool turned)
{
	return turned || (m > 1 && (LANE_TERMS > 1 || k * (int64_t)sizeof(float) % GEMM_CLASH == 0));
}

static inline struct matmul matmul_grid(int64_t m, int64_t n, int64_t k, bool turned)
{
	static const struct { int64_t rows, cols; } panel[2][8] = { {
		{ GEMM_ROWS, 512 }, { GEMM_ROWS, 256 }, { GEMM_ROWS, 192 }, { GEMM_ROWS, 128 },
		{ GEMM_ROWS, 96 }, { GEMM_ROWS, 64 }, { GEMM_ROWS, 32 }, { 84, 32 },
	}, {
		{ GEMM_ROWS, 512 }, { GEMM_ROWS, 256 }, { GEMM_ROWS / 2, 256 }, { GEMM_ROWS / 2, 192 },
		{ GEMM_ROWS / 2, 128 }, { GEMM_ROWS / 2, 96 }, { 84, 96 }, { 84, 64 },
	} };
	bool lays = matmul_lays_a(m, k, turned);
	struct matmul g = { m, n, k, 0, 0, 0, 0 };

	for (int i = 0; i < 8; i++) {
		int64_t rows = share(m, panel[lays][i].rows, 14), cols = share(n, panel[lays][i].cols, 32);
		if (i > 0 && (g.ntall * g.nwide >= MATMUL_ENOUGH || rows * cols * k < MATMUL_LEAST))
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
		ta ? hd_rows(a) : hd_cols(a), ta);
}

static inline uint32_t matmul_ntiles(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return (uint32_t)(g.ntall * g.nwide);
}

/* Of all rows, as matmul_whole() needs it. */
static inline size_t matmul_scratch(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return gemm_scratch(g.m, g.cols, g.k);
}

static inline void matmul_panel(const struct hd_call *call, struct matmul g, uint32_t tile, void *scratch)
{
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	const float *a = call->in[0].at, *b = call->in[1].at;
	int64_t i = tile % g.ntall * g.rows, j = tile / g.ntall * g.cols;
	struct mat left = { ta ? a + i : a + i * g.k, ta ? g.m : g.k, ta };
	struct mat right = { tb ? b + j * g.k : b + j, tb ? g.k : g.n, tb };
	struct gemm_out out = { (float *)call->out[0].at + i * g.n + j, g.n, min64(g.rows, g.m - i),
		min64(g.cols, g.n - j), false };

	gemm_then(left, right, out, g.k, i + g.rows < g.m ? 0 : g.n - j - out.n, scratch);
}

static inline void matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	matmul_panel(call, matmul_of(call), tile, scratch);
}

/* Results of one block of terms are written once, and may be as wide as they like; those of several stay in
 * the second-level cache from block to block. */
static inline void matmul_whole(const struct hd_call *call, void *scratch)
{
	struct matmul g = matmul_of(call);

	g.rows = g.m;
	g.cols = lanes_of(g.k) <= GEMM_DEPTH ? g.n : share(g.n, GEMM_COLS, GEMM_WIDTH);
	g.ntall = 1;
	g.nwide = div_up(g.n, g.cols);
	for (uint32_t tile = 0; tile < (uint32_t)g.nwide; tile++)
		matmul_panel(call, g, tile, scratch);
}

/* The gradient of a weight over the parts of a wave: a part's rows are its terms. For a micro-tile of the
 * result the leaves of several parts are made one after the other in registers and folded at once, so that
 * the pending sums stay in the first-level cache and the gradient goes through memory once per wave. Those
 * of the next micro-tile are fetched meanwhile. Where one block holds the terms of all parts, a pending sum
 * is as small as a micro-tile and has one place for all of them. Parts with more terms than a block holds
 * make their leaf in a rectangle of their own. */
enum { FOLD_ROWS = 336, FOLD_COLS = 512, FOLD_ENOUGH = 8, FOLD_LANES = 512 };       /* lanes: of a block */

static inline bool matmul_fold_takes(const struct hd_call *call) { return call->attr.i[0] != 0 &&
	call->attr.i[1] == 0; }

/* A result of m x n in `tall` rows of tiles, and as many columns of them as make FOLD_ENOUGH. */
static inline struct matmul fold_cut(int64_t m, int64_t n, int64_t k, int64_t tall)
{
	struct matmul g = { m, n, k, share(m, div_up(m, tall), GEMM_HEIGHT), 0, 0, 0 };

	g.ntall = div_up(m, g.rows);
	g.cols = share(n, min64(FOLD_COLS, div_up(n, div_up(FOLD_ENOUGH, g.ntall))), GEMM_WIDTH);
	g.nwide = div_up(n, g.cols);
	return g;
}

/* Each tile packs its panels: all of a is packed once for each column of tiles, all of b for each row. a,
 * whose panels are narrow, costs about twice as much. */
HD_INLINE int64_t fold_packs(const struct matmul *g) { return 2 * g->nwide * g->m + g->ntall * g->n; }

static inline bool fold_better(const struct matmul *g, const struct matmul *than)
{
	int64_t n = min64(g->ntall * g->nwide, FOLD_ENOUGH), most = min64(than->ntall * than->nwide,
		FOLD_ENOUGH);

	return n != most ? n > most : fold_packs(g) < fold_packs(than);
}

/* As few rows of tiles as scratch allows, or 2, 4, 8, whichever packs least. */
static inline struct matmul matmul_fold_grid(const struct hd_call *call)
{
	int64_t m = hd_cols(&call->in[0]), n = hd_cols(&call->in[1]), k = hd_rows(&call->in[0]),
		least = div_up(m, FOLD_ROWS);
	struct matmul best = fold_cut(m, n, k, least);

	for (int64_t tall = 2; tall <= FOLD_ENOUGH; tall *= 2)
		if (tall > least) {
			struct matmul g = fold_cut(m, n, k, tall);
			if (fold_better(&g, &best))
				best = g;
		}
	return best;
}

static inline uint32_t matmul_fold_ntiles(const struct hd_call *call)
{
	struct matmul g = matmul_fold_grid(call);
	return (uint32_t)(g.ntall * g.nwide);
}

/* `len`: floats from a pending sum to the next, those of a micro-tile or of a whole tile. */
struct fold_scratch { float *a, *b, *temp, *leaf, *gemm; int64_t len; };

/* Panels are written in whole registers: each has the room of one more behind it. `small`: pending sums are
 * those of a micro-tile, and no part makes its leaf apart. */
static inline size_t fold_place(const struct matmul *g, bool small, int64_t ntemps, float *from,
	struct fold_scratch *s)
{
	int64_t a = round_up((round_up(g->rows, GEMM_HEIGHT) + GEMM_HEIGHT) * FOLD_LANES + HD_UNIT, HD_UNIT);
	int64_t b = GEMM_WIDTH * FOLD_LANES + HD_UNIT,
		len = small ? GEMM_HEIGHT * GEMM_WIDTH : round_up(g->rows * g->cols, HD_UNIT),
		leaf = small ? 0 : len;
	int64_t block = small ? 0 : round_up((int64_t)(gemm_scratch(g->rows, g->cols, g->k) / sizeof(float)),
		HD_UNIT);

	if (s)
		*s = (struct fold_scratch){ .a = from, .b = from + a, .gemm = from + a + b,
			.leaf = from + a + b + block, .temp = from + a + b + block + leaf, .len = len };
	return (size_t)(a + b + block + leaf + len * ntemps) * sizeof(float);
}

/* Tiles of one thread: as tall as scratch allows, and as wide as the result where pending sums are small. */
static inline struct matmul fold_grid_whole(const struct hd_call *call, bool small)
{
	int64_t m = hd_cols(&call->in[0]), n = hd_cols(&call->in[1]);
	struct matmul g = { m, n, hd_rows(&call->in[0]), share(m, FOLD_ROWS, GEMM_HEIGHT),
		small ? n : share(n, FOLD_COLS, GEMM_WIDTH), 0, 0 };

	g.ntall = div_up(m, g.rows);
	g.nwide = div_up(n, g.cols);
	return g;
}

static inline size_t matmul_fold_scratch(const struct hd_call *call, uint32_t max_parts)
{
	bool small = lanes_of(hd_rows(&call->in[0])) * max_parts <= FOLD_LANES;
	struct matmul g = matmul_fold_grid(call), whole = fold_grid_whole(call, small);
	size_t tile = fold_place(&g, small, fold_temps(max_parts), NULL, NULL),
		all = fold_place(&whole, small, fold_temps(max_parts), NULL, NULL);

	return tile > all ? tile : all;
}

struct fold_tile {
	const struct hd_call *call;
	const struct hd_fold_job *job;
	struct matmul g;
	struct fold_scratch s;
	struct fold_site site;
	int64_t i, j, m, n;
	bool small;                       /* pending sums are of a micro-tile */
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

/* The moves of a part for the micro-tile at (i, j). */
static inline struct rect fold_moves(const struct fold_tile *t, uint32_t p, int64_t i, int64_t j,
	struct gemm_adds *adds)
{
	struct fold_site here = t->site;

	here.at += i * here.step + j;
	here.temp += t->small ? 0 : i * here.temp_step + j;
	return fold_chain(&here, &t->job->part[p], adds);
}

/* What the micro-tile at (i, j) of parts [first, end) finds in memory: every sum but the pending ones. */
static inline void fold_ahead(const struct fold_tile *t, uint32_t first, uint32_t end, int64_t i, int64_t j,
	int64_t height, struct ahead *ahead)
{
	int64_t at = t->site.at + i * t->site.step + j;

	for (uint32_t p = first; p < end; p++)
		for (uint32_t k = 0; k < t->job->part[p].nfolds; k++)
			if (!t->job->part[p].fold[k].dst_temp)
				ahead_add(ahead, t->job->part[p].fold[k].dst + at, t->site.step,
					min64(height, t->m - i));
}

/* The micro-tile at (i, j): leaves and folds of parts [first, end). */
static inline void fold_micro(const struct fold_tile *t, uint32_t first, uint32_t end, int64_t i, int64_t j,
	struct ahead *ahead)
{
	int64_t height = panel_height(t->m), tall = div_up(t->m, height) * height,
		h = round_up(min64(height, t->m - i), 2), v = panel_width(t->n - j) / HD_WIDTH, before = 0;
	struct gemm_adds adds;

	for (uint32_t p = first; p < end; p++) {
		int64_t depth = lanes_of(part_terms(t, p));
		struct rect to = fold_moves(t, p, i, j, &adds);
		struct gemm_out out = { to.at, to.step, min64(h, t->m - i), t->n - j, false };
		micro_adds[h / 2 - 1][v - 1](t->s.a + before * tall + i * depth, t->s.b + before * GEMM_WIDTH,
			depth, &out, &adds, ahead);
		before += depth;
	}
}

/* Panel j of parts [first, end), and what comes after it. */
static inline void fold_panel(const struct fold_tile *t, uint32_t first, uint32_t end, int64_t j,
	struct ahead_b *later)
{
	int64_t height = panel_height(t->m);

	later->ncalls = div_up(t->m, height);
	for (int64_t i = 0; i < t->m; i += height) {
		struct ahead ahead = { 0 };
		if (i + height < t->m)
			fold_ahead(t, first, end, i + height, j, height, &ahead);
		else if (j + GEMM_WIDTH < t->n)
			fold_ahead(t, first, end, 0, j + GEMM_WIDTH, height, &ahead);
		ahead_of_b(&ahead, later, i / height);
		ahead_begin(&ahead);
		fold_micro(t, first, end, i, j, &ahead);
	}
}

/* Parts [first, end), whose terms fit a block: one panel of b after the other. */
static inline void fold_parts(const struct fold_tile *t, uint32_t first, uint32_t end)
{
	int64_t tall = div_up(t->m, panel_height(t->m)) * panel_height(t->m), terms = 0, lanes = 0;

	for (uint32_t p = first; p < end; p++) {
		gemm_pack_a(t->s.a + lanes * tall, part_operand(t, p, 0), 0, t->m, 0, part_terms(t, p));
		terms += part_terms(t, p);
		lanes += lanes_of(part_terms(t, p));
	}
	for (int64_t j = 0; j < t->n; j += GEMM_WIDTH) {
		struct ahead_b later = { part_operand(t, first, 1), j + GEMM_WIDTH, t->n, 0, terms, 0 };
		int64_t before = 0;
		for (uint32_t p = first; p < end; p++) {
			gemm_pack_b(t->s.b + before * GEMM_WIDTH, part_operand(t, p, 1), j,
				min64(GEMM_WIDTH, t->n - j), 0, part_terms(t, p));
			before += lanes_of(part_terms(t, p));
		}
		fold_panel(t, first, end, j, &later);
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

/* Parts from `first` on whose terms fit a block, `first` itself if it alone does not. */
static inline uint32_t fold_group(const struct fold_tile *t, uint32_t first)
{
	int64_t lanes = 0;
	uint32_t end = first;

	while (end < t->job->nparts && lanes + lanes_of(part_terms(t, end)) <= FOLD_LANES)
		lanes += lanes_of(part_terms(t, end++));
	return end;
}

static inline void fold_run(const struct hd_call *call, const struct hd_fold_job *job, struct matmul g,
	bool small, uint32_t tile, void *scratch)
{
	struct fold_tile t = { .call = call, .job = job, .g = g, .small = small };
	uint32_t end;

	t.i = tile % t.g.ntall * t.g.rows;
	t.j = tile / t.g.ntall * t.g.cols;
	t.m = min64(t.g.rows, t.g.m - t.i);
	t.n = min64(t.g.cols, t.g.n - t.j);
	fold_place(&t.g, t.small, 0, scratch, &t.s);
	t.site = (struct fold_site){ (int64_t)job->at + t.i * t.g.n + t.j, t.g.n, t.s.temp, t.s.len,
		t.small ? GEMM_WIDTH : t.g.cols };
	for (uint32_t p = 0; p < job->nparts; p = end) {
		end = fold_group(&t, p);
		if (end > p) {
			fold_parts(&t, p, end);
			continue;
		}
		struct gemm_out out = { t.s.leaf, t.g.cols, t.m, t.n, false };
		gemm(part_operand(&t, p, 0), part_operand(&t, p, 1), out, part_terms(&t, p), t.s.gemm);
		fold_leaf(&t, p);
		end = p + 1;
	}
}

/* Do the terms of all parts fit a block? */
static inline bool fold_is_small(const struct hd_call *call, const struct hd_fold_job *job)
{
	struct fold_tile t = { .call = call, .job = job, .g.k = hd_rows(&call->in[0]) };

	return fold_group(&t, 0) == job->nparts;
}

static inline void matmul_fold_tile(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile,
	void *scratch)
{
	fold_run(call, job, matmul_fold_grid(call), fold_is_small(call, job), tile, scratch);
}

static inline void matmul_fold_whole(const struct hd_call *call, const struct hd_fold_job *job, void *scratch)
{
	bool small = fold_is_small(call, job);
	struct matmul g = fold_grid_whole(call, small);

	for (uint32_t tile = 0; tile < (uint32_t)(g.ntall * g.nwide); tile++)
		fold_run(call, job, g, small, tile, scratch);
}

#endif
