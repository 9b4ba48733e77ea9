/* Sums along edges by rows that the device made of the lists, against a walk through the lists in plain C,
 * bit for bit: lists that ascend and that do not, ends that are no row, other lists one after the other. */
#include "device/edge_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/single.h"
#include "device/testing.h"

/* Edges enough for several tiles, and a tail of edges that are none. */
enum { V = 70, U = 50, E = 3 * 4096 + 5, HEADS = 3, WIDTH = 51 };

enum kind { ASCENDING, ANY, ELSEWHERE, NO_SOURCE, NO_TARGET, NKINDS };
static const char *const kind_name[] = {
	"ascending", "any", "with other sources", "without a source", "without a target" };

struct lists { int32_t from[E], to[E]; };

static uint32_t draw(uint32_t seed, uint32_t i)
{
	return hd_philox((const uint32_t[4]){ i, seed, 0, 0 }, hd_philox_key(5, HD_RNG_USER)).word[0];
}

static int ascending(const void *a, const void *b)
{
	return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

/* Target 7 is a hub, 8 and the last have no edges. */
static void make(struct lists *l, enum kind kind, uint32_t seed)
{
	const uint32_t real = E - 300;

	for (uint32_t e = 0; e < E; e++) {
		uint32_t to = draw(kind == ELSEWHERE ? ANY : seed, 2 * e) % (U - 1);
		l->to[e] = e >= real ? -1 : to == 8 || to % 3 == 0 ? 7 : (int32_t)to;
		l->from[e] = e >= real ? -1 : (int32_t)(draw(seed, 2 * e + 1) % V);
	}
	if (kind != ANY && kind != ELSEWHERE)
		qsort(l->to, real, sizeof *l->to, ascending);
	for (uint32_t e = 5; e < real && kind == NO_SOURCE; e += 4000)
		l->from[e] = e % 2 ? -1 : V;
	for (uint32_t e = 5; e < real && kind == NO_TARGET; e += 4000)
		l->to[e] = e % 2 ? -1 : U;
}

static float a[E * HEADS], x[V * WIDTH], each[E * HEADS];

struct sum { uint16_t op; const char *name; uint64_t width; uint8_t nin; };
static const struct sum sums[] = { { HD_OP_SPMM, "spmm", WIDTH, 4 }, { HD_OP_EDGE_SUM, "edge_sum", WIDTH, 5 },
	{ HD_OP_EDGE_TOTAL, "edge_total", HEADS, 3 } };

static void walk(const struct sum *s, const struct lists *l, float *y)
{
	memset(y, 0, U * s->width * sizeof *y);
	for (uint32_t e = 0; e < E; e++) {
		const int32_t v = l->to[e], u = l->from[e];
		if (v < 0 || v >= U || (s->op != HD_OP_EDGE_TOTAL && (u < 0 || u >= V)))
			continue;
		for (uint32_t c = 0; c < s->width; c++) {
			float *at = y + (uint32_t)v * s->width + c;
			*at = s->op == HD_OP_EDGE_TOTAL ? *at + each[e * HEADS + c] :
				s->op == HD_OP_SPMM ? *at + x[(uint32_t)u * WIDTH + c] :
				fmaf(a[e * HEADS + c / (WIDTH / HEADS)], x[(uint32_t)u * WIDTH + c], *at);
		}
	}
}

static void make_single(struct hd_single *single, const struct sum *s, struct hd_arena *arena)
{
	const struct hd_value list = { .dim = { E }, .rank = 1, .dtype = HD_I32 },
		weights = { .dim = { E, HEADS }, .rank = 2, .dtype = HD_F32 },
		sources = { .dim = { V, WIDTH }, .rank = 2, .dtype = HD_F32 },
		targets = { .dim = { U, (int64_t)s->width }, .rank = 2, .dtype = HD_F32 };
	const struct hd_value spmm[] = { list, list, sources, targets },
		sum[] = { list, list, weights, sources, targets }, total[] = { list, weights, targets };
	const struct hd_attr none = { .i = { 0 } };
	const uint64_t rows = 1;
	struct hd_diag diag = { "" };

	CHECK(hd_single_make(single, s->op, s->nin, s->op == HD_OP_SPMM ? spmm :
		s->op == HD_OP_EDGE_SUM ? sum : total, &none, &rows, 1, arena, &diag) == HD_OK, "%s",
		diag.text);
}

static void operands(const struct sum *s, const struct lists *l, const void *at[5])
{
	static const float shape_only[U * WIDTH];
	const void *const spmm[] = { l->from, l->to, x, shape_only },
		*const sum[] = { l->from, l->to, a, x, shape_only },
		*const total[] = { l->to, each, shape_only };

	memcpy(at, s->op == HD_OP_SPMM ? spmm : s->op == HD_OP_EDGE_SUM ? sum : total, s->nin * sizeof *at);
}

static struct lists lists[NKINDS];
static float got[U * WIDTH], want[U * WIDTH];

static void fill(void)
{
	for (uint32_t i = 0; i < E * HEADS; i++) {
		a[i] = hd_uniform(draw(90, i)) * 2 - 1;
		each[i] = hd_uniform(draw(91, i)) * 2 - 1;
	}
	for (uint32_t i = 0; i < V * WIDTH; i++)
		x[i] = hd_uniform(draw(92, i)) * 2 - 1;
	for (uint32_t k = 0; k < NKINDS; k++)
		make(&lists[k], (enum kind)k, k);
}

/* One loaded program meets all lists, so that rows of the lists before would be found out. */
static void a_device_has_the_bits_of_the_walk(void **state)
{
	(void)state;
	fill();
	for (uint32_t threads = 1; threads <= 2; threads++)
		for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
			struct hd_device *device = hd_stage_device("cpu", threads);
			struct hd_single single;
			struct hd_arena arena;
			struct hd_diag diag = { "" };
			hd_arena_init(&arena, 0);
			make_single(&single, &sums[i], &arena);
			CHECK(device->ops->load(device, &single.program, &diag) == HD_OK, "%s", diag.text);
			for (uint32_t turn = 0; turn < 2 * NKINDS; turn++) {
				const struct lists *l = &lists[turn % NKINDS];
				const void *at[5];
				operands(&sums[i], l, at);
				walk(&sums[i], l, want);
				memset(got, 0x5a, sizeof got);
				CHECK(hd_single_run(device, &single, 1, &(struct hd_draw){ 0 }, at,
					(void *const[]){ got }, &diag) == HD_OK, "%s", diag.text);
				CHECK(memcmp(got, want, U * sums[i].width * sizeof *got) == 0,
					"%s, edges %s, %u threads", sums[i].name, kind_name[turn % NKINDS],
					threads);
			}
			device->ops->unload(device, &single.program);
			hd_device_destroy(device);
			hd_arena_finish(&arena);
		}
}

/* What kernels do that are given no rows, and what they do with them, on all paths. */
static void rows_change_no_bit_on_any_path(void **state)
{
	static const char *const paths[] = { "avx512", "avx2", "portable" };

	(void)state;
	fill();
	for (size_t p = 0; p < 3; p++)
		for (size_t i = 0; hd_cpu_path(paths[p]) && i < sizeof sums / sizeof *sums; i++) {
			const struct hd_kernel *kernel = &hd_cpu_table(HD_KERNELS_PORTABLE,
				paths[p])[sums[i].op].kernel;
			struct hd_edge_table table = { .nrows = U, .nedges = E, .nothers = V,
				.has_others = sums[i].op != HD_OP_EDGE_TOTAL,
				.rows.kernels = hd_edge_kernels(paths[p]) };
			struct hd_single single;
			struct hd_arena arena;
			struct hd_diag diag = { "" };
			hd_arena_init(&arena, 0);
			make_single(&single, &sums[i], &arena);
			CHECK(hd_edge_table_take(&table, &diag) == HD_OK, "%s", diag.text);
			for (uint32_t turn = 0; turn < 2 * NKINDS; turn++) {
				const enum kind kind = (enum kind)(turn / 2);
				const struct lists *l = &lists[kind];
				struct hd_call call = single.program.calls[0][0];
				const void *at[5];
				operands(&sums[i], l, at);
				for (uint8_t k = 0; k < sums[i].nin; k++)
					call.in[k].at = (void *)(uintptr_t)at[k];
				call.out[0].at = got;
				if (turn % 2)
					call.edges = hd_edge_table_rows(&table, l->to, kind + 1,
						table.has_others ? l->from : NULL, kind + 1);
				CHECK(!(turn % 2) || (call.edges != NULL) == (kind != NO_SOURCE ||
					!table.has_others), "rows of edges %s", kind_name[kind]);
				CHECK(!call.edges || (call.edges->order == NULL) == (kind == ASCENDING ||
					kind == NO_SOURCE), "order of edges %s", kind_name[kind]);
				walk(&sums[i], l, want);
				memset(got, 0x5a, sizeof got);
				for (uint32_t t = kernel->ntiles(&call); t-- > 0;)
					kernel->tile(&call, t, NULL);
				CHECK(memcmp(got, want, U * sums[i].width * sizeof *got) == 0,
					"%s on %s, edges %s, %s rows", sums[i].name, paths[p],
					kind_name[kind], turn % 2 ? "with" : "without");
			}
			hd_edge_table_free(&table);
			hd_arena_finish(&arena);
		}
}

/* ---- blocks of sources ---- */

static float blocked[V * WIDTH], whole[V * WIDTH];

/* Sources of each target ascend. Sorts a run of edges. */
static void sort_sources(struct lists *l)
{
	for (uint32_t from = 0, end; from < E && l->to[from] >= 0; from = end) {
		for (end = from + 1; end < E && l->to[end] == l->to[from]; end++)
			;
		qsort(l->from + from, end - from, sizeof *l->from, ascending);
	}
}

/* Block b of n has the edges of its sources, no others. */
static void is_block(const struct hd_edge_rows *rows, const struct hd_spmm *call, uint64_t nothers,
	uint32_t b, uint32_t n)
{
	const uint64_t share = (nothers + 7) / 8 * (8 / n);
	uint64_t here = 0, seen = 0;

	for (uint64_t e = 0; e < rows->offset[call->last]; e++)
		here += rows->at[e] / share == b;
	for (uint64_t r = 0; r < call->last; r++)
		for (uint64_t e = call->offset[r]; e < call->end[r]; e++, seen++)
			CHECK(call->at[e] / share == b, "block %u of %u has source %u", b, n, call->at[e]);
	CHECK(seen == here, "block %u of %u has %llu edges of %llu", b, n, (unsigned long long)seen,
		(unsigned long long)here);
}

/* back: sums at the sources, whose edges the table puts into order. */
static void block_by_block(const char *path, const struct lists *l, bool back, bool weighs)
{
	struct hd_edge_table table = { .nrows = back ? V : U, .nedges = E, .nothers = back ? U : V,
		.has_others = true, .nblocks = 8, .rows.kernels = hd_edge_kernels(path) };
	struct hd_diag diag = { "" };

	CHECK(hd_edge_table_take(&table, &diag) == HD_OK, "%s", diag.text);
	const struct hd_edge_rows *rows = hd_edge_table_rows(&table, back ? l->from : l->to, 1,
		back ? l->to : l->from, 2);
	assert_true(rows && rows->nblocks == 8 && (rows->order != NULL) == back);
	struct hd_spmm call = { .offset = rows->offset, .at = rows->at, .last = table.nrows, .width = WIDTH,
		.x = x, .x_stride = WIDTH, .y = whole, .y_stride = WIDTH, .weight = weighs ? a : NULL,
		.heads = HEADS, .edge = rows->order };
	rows->kernels->spmm(&call);
	call.y = blocked;
	for (uint32_t n = 2; n <= 8; n *= 2) {
		memset(blocked, 0x5a, sizeof blocked);
		for (uint32_t b = 0; b < n; b++) {
			hd_edge_block(rows, table.nrows, b, n, &call);
			is_block(rows, &call, table.nothers, b, n);
			rows->kernels->spmm(&call);
		}
		CHECK(memcmp(blocked, whole, table.nrows * WIDTH * sizeof *blocked) == 0,
			"%u blocks on %s, %s", n, path, back ? "back" : "forth");
	}
	hd_edge_table_free(&table);
}

static void blocks_of_sources_change_no_bit(void **state)
{
	static const char *const paths[] = { "avx512", "avx2", "portable" };
	struct lists *l = &lists[ASCENDING];

	(void)state;
	fill();
	struct hd_edge_table table = { .nrows = U, .nedges = E, .nothers = V, .has_others = true,
		.nblocks = 8, .rows.kernels = hd_edge_kernels(NULL) };
	struct hd_diag diag = { "" };
	CHECK(hd_edge_table_take(&table, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_edge_table_rows(&table, l->to, 1, l->from, 1)->nblocks, 1);
	sort_sources(l);
	assert_int_equal(hd_edge_table_rows(&table, l->to, 1, l->from, 2)->nblocks, 8);
	hd_edge_table_free(&table);
	for (size_t p = 0; p < 3; p++)
		for (int how = 0; hd_cpu_path(paths[p]) && how < 4; how++)
			block_by_block(paths[p], l, how & 1, how & 2);
}

/* So wide that a device takes blocks: two, of 70 rows of 256 KiB. */
enum { WIDE = 1 << 16, FEW = 300 };

/* FEW edges, whose targets ascend, and the sources of each. */
static void make_few(struct lists *l)
{
	for (uint32_t e = 0; e < FEW; e++) {
		l->to[e] = (int32_t)(e * U / FEW);
		l->from[e] = (int32_t)(draw(96, e) % V);
	}
	for (uint32_t e = 0; e < FEW; e += FEW / U)
		qsort(l->from + e, FEW / U, sizeof *l->from, ascending);
}

static void a_device_sums_wide_rows_by_blocks(void **state)
{
	const struct hd_value list = { .dim = { FEW }, .rank = 1, .dtype = HD_I32 },
		sources = { .dim = { V, WIDE }, .rank = 2, .dtype = HD_F32 },
		targets = { .dim = { U, WIDE }, .rank = 2, .dtype = HD_F32 }, in[] = { list, list, sources,
		targets };
	const uint64_t rows = 1;
	struct lists *l = &lists[ASCENDING];
	float *from = malloc(V * WIDE * sizeof *from), *to = malloc(U * WIDE * sizeof *to),
		*sum = malloc(U * WIDE * sizeof *sum);

	(void)state;
	assert_true(from && to && sum && hd_edge_blocks(V, WIDE, U, FEW) == 2);
	make_few(l);
	for (uint32_t i = 0; i < V * WIDE; i++)
		from[i] = (float)(i * 2654435761u >> 8) * 0x1p-20f;
	memset(sum, 0, U * WIDE * sizeof *sum);
	for (uint32_t e = 0; e < FEW; e++)
		for (uint32_t c = 0; c < WIDE; c++)
			sum[l->to[e] * WIDE + (int32_t)c] += from[l->from[e] * WIDE + (int32_t)c];
	for (uint32_t threads = 1; threads <= 3; threads++) {
		struct hd_device *device = hd_stage_device("cpu", threads);
		struct hd_single single;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		CHECK(hd_single_make(&single, HD_OP_SPMM, 4, in, &(struct hd_attr){ .i = { 0 } }, &rows, 1,
			&arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(device->ops->load(device, &single.program, &diag) == HD_OK, "%s", diag.text);
		memset(to, 0x5a, U * WIDE * sizeof *to);
		CHECK(hd_single_run(device, &single, 1, &(struct hd_draw){ 0 },
			(const void *const[]){ l->from, l->to, from, to }, (void *const[]){ to },
			&diag) == HD_OK, "%s", diag.text);
		CHECK(memcmp(to, sum, U * WIDE * sizeof *to) == 0, "%u threads", threads);
		device->ops->unload(device, &single.program);
		hd_device_destroy(device);
		hd_arena_finish(&arena);
	}
	free(sum);
	free(to);
	free(from);
}

/* Calls of the sum that went on from one before, and all. */
static uint32_t nresumed, nsums;
static const struct hd_edge_kernels *counted;

static void count_sum(const struct hd_spmm *s)
{
	nresumed += (s->flags & HD_SPMM_RESUME) != 0;
	nsums++;
	counted->spmm(s);
}

/* Each piece is two calls, of sums with weights as of those without. */
static void pieces_of_wide_rows_go_by_blocks(void **state)
{
	enum { WIDE_HEADS = 4 };
	const struct hd_value list = { .dim = { FEW }, .rank = 1, .dtype = HD_I32 },
		weights = { .dim = { FEW, WIDE_HEADS }, .rank = 2, .dtype = HD_F32 },
		sources = { .dim = { V, WIDE }, .rank = 2, .dtype = HD_F32 },
		targets = { .dim = { U, WIDE }, .rank = 2, .dtype = HD_F32 },
		plain[] = { list, list, sources, targets },
		weighted[] = { list, list, weights, sources, targets };
	const uint64_t rows = 1;
	struct lists *l = &lists[ASCENDING];
	float *from = malloc(V * WIDE * sizeof *from), *to = malloc(U * WIDE * sizeof *to),
		*sum = malloc(U * WIDE * sizeof *sum);

	(void)state;
	assert_true(from && to && sum);
	fill();
	make_few(l);
	for (uint32_t i = 0; i < V * WIDE; i++)
		from[i] = (float)(i * 2654435761u >> 8) * 0x1p-20f;
	counted = hd_edge_kernels(NULL);
	struct hd_edge_kernels counts = *counted;
	counts.spmm = count_sum;
	struct hd_edge_table table = { .nrows = U, .nedges = FEW, .nothers = V, .has_others = true,
		.nblocks = 2, .rows.kernels = &counts };
	struct hd_diag diag = { "" };
	CHECK(hd_edge_table_take(&table, &diag) == HD_OK, "%s", diag.text);
	for (int weighs = 0; weighs < 2; weighs++) {
		const uint16_t op = weighs ? HD_OP_EDGE_SUM : HD_OP_SPMM;
		const struct hd_kernel *kernel = &hd_cpu_table(HD_KERNELS_PORTABLE, counted->path)[op].kernel;
		const void *const at[] = { l->from, l->to, weighs ? a : from, weighs ? from : to, to };
		struct hd_single single;
		struct hd_arena arena;
		hd_arena_init(&arena, 0);
		CHECK(hd_single_make(&single, op, weighs ? 5 : 4, weighs ? weighted : plain,
			&(struct hd_attr){ .i = { 0 } }, &rows, 1, &arena, &diag) == HD_OK, "%s", diag.text);
		struct hd_call call = single.program.calls[0][0];
		for (int k = 0; k < 4 + weighs; k++)
			call.in[k].at = (void *)(uintptr_t)at[k];
		call.out[0].at = to;
		call.edges = hd_edge_table_rows(&table, l->to, 1, l->from, 1);
		memset(sum, 0, U * WIDE * sizeof *sum);
		for (uint32_t e = 0; e < FEW; e++)
			for (uint32_t c = 0; c < WIDE; c++) {
				float *y = sum + l->to[e] * WIDE + (int32_t)c;
				const float v = from[l->from[e] * WIDE + (int32_t)c];
				const float weight = a[e * WIDE_HEADS + c / (WIDE / WIDE_HEADS)];
				*y = weighs ? fmaf(weight, v, *y) : *y + v;
			}
		for (uint32_t n = 1; n <= 3; n++) {
			nresumed = nsums = 0;
			memset(to, 0x5a, U * WIDE * sizeof *to);
			for (uint32_t i = n; i-- > 0;)
				kernel->piece(&call, i, n, NULL);
			CHECK(nsums == 2 * n && nresumed == n, "%u pieces: %u sums, %u resumed", n, nsums,
				nresumed);
			CHECK(memcmp(to, sum, U * WIDE * sizeof *to) == 0, "%u pieces", n);
		}
		hd_arena_finish(&arena);
	}
	hd_edge_table_free(&table);
	free(sum);
	free(to);
	free(from);
}

/* ---- softmax over the edges of a target ---- */

enum { COLS = 19 };
static float logit[E * COLS], weight[E * COLS], grad[E * COLS], made[E * COLS];
static double exact[E * COLS];

/* A hub of two tiles and a half between targets of few edges; then edges that are none. */
static void make_runs(int32_t *to)
{
	for (uint32_t e = 0; e < E; e++)
		to[e] = e < 1500 ? (int32_t)e / 5 : e < 1500 + 10240 ? 300 : e < E - 300 ?
			301 + (int32_t)e % 97 / 48 : -1;
	for (uint32_t i = 0; i < E * COLS; i++) {
		logit[i] = hd_uniform(draw(93, i)) * 6 - 3;
		grad[i] = hd_uniform(draw(94, i)) * 2 - 1;
	}
}

/* Of one run of equal ends, column by column, in double precision. */
static void exact_run(uint32_t from, uint32_t end, bool back)
{
	for (uint32_t c = 0; c < COLS; c++) {
		double sum = 0;
		for (uint32_t e = from * COLS + c; e < end * COLS; e += COLS)
			sum += back ? (double)weight[e] * (double)grad[e] : exp((double)logit[e]);
		for (uint32_t e = from * COLS + c; e < end * COLS; e += COLS)
			exact[e] = back ? (double)weight[e] * ((double)grad[e] - sum) :
				exp((double)logit[e]) / sum;
	}
}

static void find_exact(const int32_t *to, bool back)
{
	for (uint32_t from = 0, end; from < E; from = end) {
		for (end = from + 1; end < E && to[end] == to[from]; end++)
			;
		exact_run(from, end, back);
	}
	for (uint32_t i = 0; !back && i < E * COLS; i++)
		weight[i] = (float)exact[i];
}

static void is_exact(const char *path, bool back)
{
	for (uint32_t i = 0; i < E * COLS; i++)
		CHECK(fabs((double)made[i] - exact[i]) <= 2e-4 * (double)weight[i],
			"%s on %s, edge %u, column %u: %.9g, not %.9g", back ? "gradient" : "softmax", path,
			i / COLS, i % COLS, (double)made[i], exact[i]);
}

static void softmax_on(const char *path, const int32_t *to, bool back)
{
	const struct hd_value list = { .dim = { E }, .rank = 1, .dtype = HD_I32 },
		edges = { .dim = { E, COLS }, .rank = 2, .dtype = HD_F32 }, in[] = { list, edges, edges };
	const uint16_t op = back ? HD_OP_EDGE_SOFTMAX_DX : HD_OP_EDGE_SOFTMAX;
	const struct hd_kernel *kernel = &hd_cpu_table(HD_KERNELS_PORTABLE, path)[op].kernel;
	const void *const at[] = { to, back ? grad : logit, weight };
	const uint64_t rows = 1;
	struct hd_single single;
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	CHECK(hd_single_make(&single, op, back ? 3 : 2, in, &(struct hd_attr){ .i = { 0 } }, &rows, 1, &arena,
		&diag) == HD_OK, "%s", diag.text);
	struct hd_call call = single.program.calls[0][0];
	for (uint8_t k = 0; k < (back ? 3 : 2); k++)
		call.in[k].at = (void *)(uintptr_t)at[k];
	call.out[0].at = made;
	const uint32_t n = kernel->ntiles(&call);
	assert_int_equal(n, 4);
	/* up and down: in one order the whole hub would cover what a part of it left */
	for (int down = 0; down < 2; down++) {
		memset(made, 0x5a, sizeof made);
		for (uint32_t t = 0; t < n; t++)
			kernel->tile(&call, down ? n - 1 - t : t, NULL);
		is_exact(path, back);
	}
	hd_arena_finish(&arena);
}

/* A tile has the targets that begin in it, so that a hub is summed once, whatever tiles it reaches into. */
static void softmax_goes_over_the_ends_of_tiles(void **state)
{
	static const char *const paths[] = { "avx512", "avx2", "portable" };
	static int32_t to[E];

	(void)state;
	make_runs(to);
	for (int back = 0; back < 2; back++) {
		find_exact(to, back);
		for (size_t p = 0; p < 3; p++)
			if (hd_cpu_path(paths[p]))
				softmax_on(paths[p], to, back);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(softmax_goes_over_the_ends_of_tiles),
		cmocka_unit_test(a_device_has_the_bits_of_the_walk),
		cmocka_unit_test(rows_change_no_bit_on_any_path),
		cmocka_unit_test(blocks_of_sources_change_no_bit),
		cmocka_unit_test(a_device_sums_wide_rows_by_blocks),
		cmocka_unit_test(pieces_of_wide_rows_go_by_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
