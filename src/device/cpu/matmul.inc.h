/* matmul.inc.h -- the op matmul: a grid of panels over its result. One source for all paths.
 *
 * 1. The grid is a function of the shape alone. Panels shrink until there are MATMUL_ENOUGH of them, which
 *    keeps as many threads busy, or until one would be less work than sharing it is worth. What is read
 *    where it lies costs nothing to read again: they become narrow, and b is packed once. Where a is
 *    packed or copied for each, they stay wide.
 * 2. Sums are those of gemm.inc.h, whatever the panel.
 * 3. A thread that has all panels takes wide ones: each reads a from end to end, and a may be larger than a
 *    cache. So does each of several threads that share the columns evenly: b is packed once. */
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
		int64_t rows = share(m, panel[lays][i].rows, GEMM_SHARE),
			cols = share(n, panel[lays][i].cols, 32);
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

/* Of all rows, as matmul_piece() needs it. */
static inline size_t matmul_scratch(const struct hd_call *call)
{
	struct matmul g = matmul_of(call);
	return gemm_scratch(g.m, g.cols, g.k);
}

/* m x n results from (i, j) on; `beyond` more columns come after them. */
static inline void matmul_panel(const struct hd_call *call, const struct matmul *g, int64_t i, int64_t m,
	int64_t j, int64_t n, int64_t beyond, void *scratch)
{
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	const float *a = call->in[0].at, *b = call->in[1].at;
	struct mat left = { ta ? a + i : a + i * g->k, ta ? g->m : g->k, ta };
	struct mat right = { tb ? b + j * g->k : b + j, tb ? g->k : g->n, tb };
	struct gemm_out out = { (float *)call->out[0].at + i * g->n + j, g->n, m, n, false };

	gemm_then(left, right, out, g->k, beyond, scratch);
}

static inline void matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct matmul g = matmul_of(call);
	int64_t i = tile % g.ntall * g.rows, j = tile / g.ntall * g.cols, n = min64(g.cols, g.n - j);

	matmul_panel(call, &g, i, min64(g.rows, g.m - i), j, n, i + g.rows < g.m ? 0 : g.n - j - n, scratch);
}

/* Columns of a piece come in units that are whole panels of b on every path. */
enum { PIECE_COLS = 32 };
_Static_assert(PIECE_COLS % GEMM_WIDTH == 0, "a piece is whole panels");

/* Columns [*from, *end) of n. */
HD_INLINE void piece_columns(int64_t n, uint32_t i, uint32_t npieces, int64_t *from, int64_t *end)
{
	const int64_t units = div_up(n, PIECE_COLS);

	*from = min64(n, units * i / npieces * PIECE_COLS);
	*end = min64(n, units * (i + 1) / npieces * PIECE_COLS);
}

/* The longest is at most a tenth longer than an equal share. */
HD_INLINE bool piece_columns_equal(int64_t n, uint32_t npieces)
{
	return 10 * div_up(div_up(n, PIECE_COLS), npieces) * PIECE_COLS * npieces <= 11 * n;
}

static inline bool matmul_divides(const struct hd_call *call, uint32_t n)
{
	return piece_columns_equal(hd_cols(&call->out[0]), n);
}

/* Results of one block of terms are written once, and may be as wide as they like; those of several stay in
 * the second-level cache from block to block. */
static inline void matmul_piece(const struct hd_call *call, uint32_t i, uint32_t npieces, void *scratch)
{
	const struct matmul g = matmul_of(call);
	int64_t from, end;

	piece_columns(g.n, i, npieces, &from, &end);
	if (from == end)
		return;
	int64_t cols = lanes_of(g.k) <= GEMM_DEPTH ? end - from : share(end - from, GEMM_COLS, GEMM_WIDTH);
	for (int64_t j = from; j < end; j += cols) {
		int64_t n = min64(cols, end - j);
		matmul_panel(call, &g, 0, g.m, j, n, end - j - n, scratch);
	}
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
 * those of a micro-tile, and no part makes its leaf apart. A tile of more than FOLD_ROWS has fewer lanes for
 * it (fold_tall()). */
static inline size_t fold_place(const struct matmul *g, bool small, int64_t ntemps, float *from,
	struct fold_scratch *s)
{
	int64_t tall = min64(round_up(g->rows, GEMM_HEIGHT) + GEMM_HEIGHT, FOLD_ROWS + 2 * GEMM_HEIGHT);
	int64_t a = round_up(tall * FOLD_LANES + HD_UNIT, HD_UNIT);
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

/* Rows of a whose terms, `lanes` of all parts together, have the room of FOLD_ROWS with FOLD_LANES. */
HD_INLINE int64_t fold_tall(int64_t lanes) { return FOLD_ROWS * FOLD_LANES / (lanes > 0 ? lanes : 1); }

/* Tiles of a thread that has `cols` columns: as tall as scratch allows, since each row of them packs all of
 * b, and as wide as they are where pending sums are small: of `lanes` in all parts, 0 where they are not. */
static inline struct matmul fold_grid_piece(const struct hd_call *call, int64_t lanes, int64_t cols)
{
	int64_t m = hd_cols(&call->in[0]), n = hd_cols(&call->in[1]);
	struct matmul g = { m, n, hd_rows(&call->in[0]), share(m, lanes ? fold_tall(lanes) : FOLD_ROWS,
		GEMM_HEIGHT), lanes ? cols : share(cols, FOLD_COLS, GEMM_WIDTH), 0, 0 };

	g.ntall = div_up(m, g.rows);
	g.nwide = div_up(cols, g.cols);
	return g;
}

/* A job of fewer or shorter parts than there may be is perhaps small where a full one is not; tiles of a
 * thread's columns are perhaps wider than those of all. */
static inline size_t matmul_fold_scratch(const struct hd_call *call, uint32_t max_parts)
{
	const int64_t n = hd_cols(&call->in[1]);
	const struct matmul grid[] = { matmul_fold_grid(call), fold_grid_piece(call, 0, min64(n, FOLD_COLS)),
		fold_grid_piece(call, 1, n) };
	bool small = lanes_of(hd_rows(&call->in[0])) * max_parts <= FOLD_LANES;
	size_t most = 0;

	for (int i = 0; i < 3; i++)
		for (int apart = 0; apart < 2 && !(apart && (small || i == 2)); apart++) {
			size_t bytes = fold_place(&grid[i], !apart, fold_temps(max_parts), NULL, NULL);
			most = bytes > most ? bytes : most;
		}
	return most;
}

struct fold_tile {
	const struct hd_call *call;
	const struct hd_fold_job *job;
	struct matmul g;
	struct fold_scratch s;
	struct fold_site site;
	int64_t i, j, m, n;
	int64_t height;                   /* of a micro-tile */
	bool small;                       /* pending sums are of a micro-tile */
	int64_t lanes[HD_MAX_WAVE];       /* of each part */
};

static inline int64_t part_terms_of(int64_t k, const struct hd_fold_job *job, uint32_t p)
{
	return k / (int64_t)job->rows * (int64_t)job->part[p].rows;
}

static inline int64_t part_terms(const struct fold_tile *t, uint32_t p)
{
	return part_terms_of(t->g.k, t->job, p);
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
				ahead_of_c(ahead, t->job->part[p].fold[k].dst + at, t->site.step,
					min64(height, t->m - i));
}

/* The micro-tile at (i, j): leaves and folds of parts [first, end), of `lanes` together. */
static inline void fold_micro(const struct fold_tile *t, uint32_t first, uint32_t end, int64_t lanes,
	int64_t i, int64_t j, struct ahead *ahead)
{
	int64_t h = panel_rows(t->height, t->m, i), v = panel_width(t->n - j) / HD_WIDTH;
	const float *a = t->s.a + i * lanes, *b = t->s.b;
	struct gemm_adds adds;

	for (uint32_t p = first; p < end; p++) {
		int64_t depth = t->lanes[p];
		struct rect to = fold_moves(t, p, i, j, &adds);
		struct gemm_out out = { to.at, to.step, min64(h, t->m - i), t->n - j, false };
		micro_adds[h / GEMM_STEP - 1][v - 1](a, b, depth, &out, &adds, ahead);
		a += depth * h;
		b += depth * GEMM_WIDTH;
	}
}

/* Panel j of parts [first, end), and what comes after it. */
static inline void fold_panel(const struct fold_tile *t, uint32_t first, uint32_t end, int64_t lanes,
	int64_t j, struct ahead_b *later)
{
	int64_t height = t->height, call = 0;

	later->ncalls = div_up(t->m, height);
	for (int64_t i = 0; i < t->m; i += height) {
		struct ahead ahead = { 0 };
		if (i + height < t->m)
			fold_ahead(t, first, end, i + height, j, height, &ahead);
		else if (j + GEMM_WIDTH < t->n)
			fold_ahead(t, first, end, 0, j + GEMM_WIDTH, height, &ahead);
		ahead_of_b(&ahead, later, call++);
		ahead_begin(&ahead);
		fold_micro(t, first, end, lanes, i, j, &ahead);
	}
}

/* Parts [first, end), whose terms fit a block: one panel of b after the other. What a micro-tile reads of a
 * lies in one piece, part after part. */
static inline void fold_parts(const struct fold_tile *t, uint32_t first, uint32_t end)
{
	int64_t terms = 0, lanes = 0, packed = 0;

	for (uint32_t p = first; p < end; p++)
		lanes += t->lanes[p];
	for (uint32_t p = first; p < end; p++) {
		const struct mat a = part_operand(t, p, 0);
		gemm_pack_turned_a(t->s.a, a.at, a.step, t->m, part_terms(t, p), lanes, packed);
		terms += part_terms(t, p);
		packed += t->lanes[p];
	}
	for (int64_t j = 0; j < t->n; j += GEMM_WIDTH) {
		struct ahead_b later = { part_operand(t, first, 1), j + GEMM_WIDTH, t->n, 0, terms, 0 };
		int64_t before = 0;
		for (uint32_t p = first; p < end; p++) {
			gemm_pack_b(t->s.b + before * GEMM_WIDTH, part_operand(t, p, 1), j,
				min64(GEMM_WIDTH, t->n - j), 0, part_terms(t, p));
			before += t->lanes[p];
		}
		fold_panel(t, first, end, lanes, j, &later);
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

/* Parts from `first` on whose terms fit a block. */
static inline uint32_t fold_group(const struct fold_tile *t, uint32_t first)
{
	int64_t lanes = 0;
	uint32_t end = first;

	while (end < t->job->nparts && lanes + t->lanes[end] <= FOLD_LANES)
		lanes += t->lanes[end++];
	return end;
}

/* A tile of the columns from .. upto. */
static inline void fold_run(const struct hd_call *call, const struct hd_fold_job *job, struct matmul g,
	bool small, uint32_t tile, int64_t from, int64_t upto, void *scratch)
{
	struct fold_tile t = { .call = call, .job = job, .g = g, .small = small };
	uint32_t end;

	t.i = tile % t.g.ntall * t.g.rows;
	t.j = from + tile / t.g.ntall * t.g.cols;
	t.m = min64(t.g.rows, t.g.m - t.i);
	t.n = min64(t.g.cols, upto - t.j);
	t.height = panel_height(t.m);
	for (uint32_t p = 0; p < job->nparts; p++)
		t.lanes[p] = lanes_of(part_terms(&t, p));
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

/* Lanes of all parts, 0 where they do not fit a block. */
static inline int64_t fold_small(const struct hd_call *call, const struct hd_fold_job *job)
{
	int64_t lanes = 0;

	for (uint32_t p = 0; p < job->nparts; p++)
		lanes += lanes_of(part_terms_of(hd_rows(&call->in[0]), job, p));
	return lanes <= FOLD_LANES ? (lanes ? lanes : 1) : 0;
}

static inline void matmul_fold_tile(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile,
	void *scratch)
{
	const struct matmul g = matmul_fold_grid(call);

	fold_run(call, job, g, fold_small(call, job) > 0, tile, 0, g.n, scratch);
}

static inline bool matmul_fold_divides(const struct hd_call *call, uint32_t n)
{
	return piece_columns_equal(hd_cols(&call->in[1]), n);
}

static inline void matmul_fold_piece(const struct hd_call *call, const struct hd_fold_job *job, uint32_t i,
	uint32_t npieces, void *scratch)
{
	const int64_t lanes = fold_small(call, job);
	int64_t from, end;

	piece_columns(hd_cols(&call->in[1]), i, npieces, &from, &end);
	if (from == end)
		return;
	const struct matmul g = fold_grid_piece(call, lanes, end - from);
	for (uint32_t tile = 0; tile < (uint32_t)(g.ntall * g.nwide); tile++)
		fold_run(call, job, g, lanes > 0, tile, from, end, scratch);
}

#endif
