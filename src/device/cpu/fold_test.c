/* Kernels that fold a gradient by themselves: against leaves made whole and moved one after the other, bit
 * for bit, on every path, tile by tile and as one thread does that has all tiles. Products in bf16 too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/bf16.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/testing_tiles.h"
#include "device/device.h"
#include "tests/check.h"

enum { PARTS = 8, PENDING = 3, LEAD = 3, BEHIND = 4096 };  /* elements before the tensor; bytes */

/* A gradient of m x n. A part has `rows` rows of `per` positions at most. */
struct fold_case { uint16_t op; int64_t m, n, per; uint32_t rows; };

/* How a leaf's terms are added: `terms` at once. */
struct sums { const char *name; int terms; float (*add)(float sum, const float *a, const float *b); };

static float plain(float sum, const float *a, const float *b) { return fmaf(*a, *b, sum); }
static float pair(float sum, const float *a, const float *b) { return hd_bf16_pair(sum, a, b); }
static float block(float sum, const float *a, const float *b) { return hd_bf16_block(sum, a, b); }
static const struct sums in_f32 = { "f32", 1, plain }, by_pairs = { "bf16", 2, pair },
	by_tiles = { "bf16-amx", HD_BF16_BLOCK, block };

struct scene {
	const struct fold_case *p;
	const struct sums *sums;
	float *a, *b;                     /* each position has a row of them; a of a product: m long */
	int32_t *id;
	float *leaf, *got[PENDING], *want[PENDING];
	uint32_t rows[PARTS];
	size_t len;                       /* of a flat buffer */
	struct { uint32_t n; struct { uint32_t dst, src; bool add; } of[PENDING + 1]; } moves[PARTS];
	uint8_t temp[PENDING];            /* its number, 0: none */
};

static uint32_t draw(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 8; }

static float *garbage(size_t n)
{
	float *at = malloc(n * sizeof *at);

	assert_non_null(at);
	memset(at, 0xff, n * sizeof *at);
	return at;
}

/* With zeros of both signs, and of many exponents. */
static float *values(size_t n, uint32_t seed)
{
	float *at = garbage(n);

	for (size_t i = 0; i < n; i++)
		at[i] = draw(&seed) % 5 ? ((float)draw(&seed) * 0x1p-22f - 2.0f) / (float)(1 + i % 7) :
			draw(&seed) % 2 ? 0.0f : -0.0f;
	return at;
}

/* The tree of PARTS leaves: an even one pends, an odd one is added to it, and sums of equal size are
 * added. */
static void make_moves(struct scene *s)
{
	uint32_t npending = 0;

	for (uint32_t v = 0; v < PARTS; v++) {
		uint32_t n = 1;
		npending += v % 2 == 0;
		s->moves[v].of[0].dst = npending - 1;
		s->moves[v].of[0].add = v % 2;
		for (uint32_t done = v + 1; done % 4 == 0; done /= 2, n++, npending--) {
			s->moves[v].of[n].src = npending - 1;
			s->moves[v].of[n].dst = npending - 2;
			s->moves[v].of[n].add = true;
		}
		s->moves[v].n = n;
	}
}

/* A buffer that never pends when a wave ends is temporary. */
static void make_temps(struct scene *s, uint32_t wave)
{
	bool stays[PENDING] = { false };
	uint8_t ntemps = 0;

	for (uint32_t v = 0; v < PARTS; v++)
		for (uint32_t i = 0; i <= s->moves[v].of[s->moves[v].n - 1].dst; i++)
			stays[i] |= (v + 1) % wave == 0 || v + 1 == PARTS;
	for (uint32_t i = 0; i < PENDING; i++)
		s->temp[i] = stays[i] ? 0 : ++ntemps;
}

/* Of a table few rows are named, some twice, some out of range. A part is short, and one is empty. */
static void make(struct scene *s, const struct fold_case *p, const struct sums *sums)
{
	size_t n = (size_t)p->rows * (size_t)p->per * PARTS;
	uint32_t seed = 1;

	*s = (struct scene){ .p = p, .sums = sums, .len = (size_t)(p->m * p->n) + LEAD };
	s->a = values(p->op == HD_OP_MATMUL ? n * (size_t)p->m : 1, 2);
	s->b = values(n * (size_t)p->n, 3);
	s->id = malloc(n * sizeof *s->id);
	assert_non_null(s->id);
	for (size_t i = 0; i < n; i++)
		s->id[i] = (int32_t)(draw(&seed) % (uint32_t)(p->m + 2)) - 1;
	s->leaf = garbage(s->len);
	for (uint32_t i = 0; i < PENDING; i++) {
		s->got[i] = garbage(s->len);
		s->want[i] = garbage(s->len);
	}
	for (uint32_t i = 0; i < PARTS; i++)
		s->rows[i] = i == 3 ? p->rows - 1 : i == 5 ? 0 : p->rows;
	make_moves(s);
}

static void finish(struct scene *s)
{
	for (uint32_t i = 0; i < PENDING; i++)
		free(s->got[i]), free(s->want[i]);
	free(s->a), free(s->b), free(s->id), free(s->leaf);
}

/* What position `at` adds to the leaf of a table. */
static void define_position(const struct scene *s, size_t at)
{
	const struct fold_case *p = s->p;
	const float *b = s->b + at * (size_t)p->n;

	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n && i == s->id[at]; j++)
			s->leaf[LEAD + i * p->n + j] += b[j];
}

/* The leaf of a product, of n positions from `first` on. */
static void define_product(const struct scene *s, size_t first, size_t n)
{
	const struct fold_case *p = s->p;
	const float *a = s->a + first * (size_t)p->m, *b = s->b + first * (size_t)p->n;
	const size_t terms = (size_t)s->sums->terms;

	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++)
			for (size_t k = 0; k < n; k += terms) {
				float x[HD_BF16_BLOCK] = { 0 }, y[HD_BF16_BLOCK] = { 0 };
				float *to = s->leaf + LEAD + i * p->n + j;
				for (size_t t = 0; t < terms && k + t < n; t++) {
					x[t] = a[(int64_t)(k + t) * p->m + i];
					y[t] = b[(int64_t)(k + t) * p->n + j];
					x[t] = terms > 1 ? hd_bf16_operand(x[t]) : x[t];
					y[t] = terms > 1 ? hd_bf16_operand(y[t]) : y[t];
				}
				*to = s->sums->add(*to, x, y);
			}
}

static void define(const struct scene *s)
{
	const struct fold_case *p = s->p;

	for (uint32_t v = 0; v < PARTS; v++) {
		size_t first = (size_t)v * p->rows * (size_t)p->per, n = (size_t)s->rows[v] * (size_t)p->per;
		for (size_t i = 0; i < s->len; i++)
			s->leaf[i] = 0.0f;
		for (size_t at = first; at < first + n && p->op == HD_OP_EMBED_DW; at++)
			define_position(s, at);
		if (p->op == HD_OP_MATMUL)
			define_product(s, first, n);
		for (uint32_t k = 0; k < s->moves[v].n; k++) {
			float *dst = s->want[s->moves[v].of[k].dst];
			const float *src = k ? s->want[s->moves[v].of[k].src] : s->leaf;
			for (size_t i = LEAD; i < s->len; i++)
				dst[i] = s->moves[v].of[k].add ? dst[i] + src[i] : src[i];
		}
	}
}

static struct hd_operand operand(const void *at, int64_t rows, int64_t cols, uint8_t dtype)
{
	return (struct hd_operand){ .at = (void *)(uintptr_t)at, .dim = { rows, cols }, .rank = 2,
		.dtype = dtype, .elems = (uint64_t)(rows * cols) };
}

static uint32_t bind_moves(const struct scene *s, uint32_t v, struct hd_fold *fold)
{
	for (uint32_t k = 0; k < s->moves[v].n; k++) {
		uint32_t dst = s->moves[v].of[k].dst, src = s->moves[v].of[k].src;
		fold[k] = (struct hd_fold){ .add = s->moves[v].of[k].add };
		fold[k].dst_temp = s->temp[dst];
		fold[k].dst = s->temp[dst] ? NULL : s->got[dst];
		fold[k].src_temp = k ? s->temp[src] : 0;
		fold[k].src = k && !s->temp[src] ? s->got[src] : NULL;
	}
	return s->moves[v].n;
}

/* The call of a full part that begins at virtual node `first`. */
static void make_call(const struct scene *s, uint32_t first, struct hd_call *call, struct hd_fold_job *job)
{
	const struct fold_case *p = s->p;
	const int64_t n = (int64_t)p->rows * p->per, at = (int64_t)first * n;

	*call = (struct hd_call){ .op = p->op, .nin = 3, .nout = 1 };
	job->rows = p->rows;
	job->at = LEAD;
	if (p->op == HD_OP_MATMUL) {
		call->nin = 2;
		call->attr.i[0] = 1;
		call->in[0] = operand(s->a + at * p->m, n, p->m, HD_F32);
		call->in[1] = operand(s->b + at * p->n, n, p->n, HD_F32);
		job->step_bytes[0] = (uint64_t)(n * p->m) * sizeof(float);
		job->step_bytes[1] = (uint64_t)(n * p->n) * sizeof(float);
	} else {
		call->in[0] = operand(s->b + at * p->n, n, p->n, HD_F32);
		call->in[1] = operand(s->id + at, p->rows, p->per, HD_I32);
		call->in[2] = operand(NULL, p->m, p->n, HD_F32);
		job->step_bytes[0] = (uint64_t)(n * p->n) * sizeof(float);
		job->step_bytes[1] = (uint64_t)n * sizeof(int32_t);
	}
	call->out[0] = operand(NULL, p->m, p->n, HD_F32);
}

static void compute_wave(const struct scene *s, const struct hd_fold_kernel *kernel, uint32_t first,
	uint32_t wave, uint32_t npieces)
{
	struct hd_fold fold[PARTS][PENDING + 1];
	struct hd_part part[PARTS];
	struct hd_fold_job job = { .part = part };
	struct hd_call call;

	make_call(s, first, &call, &job);
	for (uint32_t v = first; v < first + wave && v < PARTS; v++)
		part[job.nparts++] = (struct hd_part){ s->rows[v], v, bind_moves(s, v, fold[v - first]),
			fold[v - first] };
	assert_true(kernel->takes(&call));
	size_t bytes = kernel->scratch(&call, wave);
	uint8_t *scratch = hd_alloc(bytes + BEHIND), behind[BEHIND];
	assert_non_null(scratch);
	memset(scratch, 0xff, bytes + BEHIND);
	memset(behind, 0xff, sizeof behind);
	for (uint32_t i = npieces ? npieces : kernel->ntiles(&call); i-- > 0; ) {
		memset(scratch, 0xff, bytes);
		if (npieces)
			kernel->piece(&call, &job, i, npieces, scratch);
		else
			kernel->tile(&call, &job, i, scratch);
		CHECK(!hd_holds_tiles(), "op %u: tiles are held after a call", s->p->op);
	}
	CHECK(memcmp(scratch + bytes, behind, sizeof behind) == 0,
		"op %u: writes behind %zu bytes of scratch", s->p->op, bytes);
	hd_free(scratch);
}

static void check(struct scene *s, const char *path, const struct hd_cpu_row *rows, uint32_t wave,
	uint32_t npieces)
{
	const struct hd_fold_kernel *kernel = rows[s->p->op].kernel.fold;

	if (npieces && !kernel->piece)
		return;
	make_temps(s, wave);
	for (uint32_t i = 0; i < PENDING; i++)
		memset(s->got[i], 0xff, s->len * sizeof(float));
	for (uint32_t first = 0; first < PARTS; first += wave)
		compute_wave(s, kernel, first, wave, npieces);
	CHECK(memcmp(s->got[0] + LEAD, s->want[0] + LEAD, (s->len - LEAD) * sizeof(float)) == 0,
		"%s, op %u: %lld x %lld, %u x %lld positions, waves of %u, %u pieces (0: tiles)", path,
		s->p->op, (long long)s->p->m, (long long)s->p->n, s->p->rows, (long long)s->p->per, wave,
		npieces);
	CHECK(memcmp(s->got[0], s->want[0], LEAD * sizeof(float)) == 0, "%s: what lies before", path);
}

static void check_ways(struct scene *s, const char *path, const struct hd_cpu_row *rows)
{
	for (uint32_t wave = 1; wave <= PARTS; wave++)
		for (uint32_t of = 0; of < 4; of++)
			check(s, path, rows, wave, of);
}

static void check_half(const struct fold_case *p, const struct sums *sums, const struct hd_cpu_row *rows)
{
	struct scene s;

	make(&s, p, sums);
	define(&s);
	check_ways(&s, sums->name, rows);
	finish(&s);
}

static void check_all(const struct fold_case *shape, size_t n)
{
	static const char *const path[] = { "avx512", "avx2", "portable" };

	for (size_t i = 0; i < n; i++) {
		struct scene s;
		make(&s, &shape[i], &in_f32);
		define(&s);
		for (int k = SANITIZED ? 2 : 0; k < 3; k++)
			if (hd_cpu_path(path[k]))
				check_ways(&s, path[k], hd_cpu_isa_of(path[k])->rows);
		finish(&s);
		if (shape[i].op == HD_OP_MATMUL && hd_cpu_has_bf16("avx512"))
			check_half(&shape[i], &by_pairs, hd_cpu_isa_of("avx512")->bf16_rows);
		if (shape[i].op == HD_OP_MATMUL && hd_cpu_has_amx("avx512"))
			check_half(&shape[i], &by_tiles, hd_cpu_isa_of("avx512")->amx_rows);
	}
}

static void named_rows_of_a_table_are_folded_as_whole_leaves_are(void **state)
{
	static const struct fold_case shape[] = {
		{ HD_OP_EMBED_DW, 300, 20, 7, 3 }, { HD_OP_EMBED_DW, 5, 4, 1, 4 },
		{ HD_OP_EMBED_DW, 41, 16, 5, 2 }, { HD_OP_EMBED_DW, 2, 33, 3, 1 },
		{ HD_OP_EMBED_DW, 3, 70000, 2, 2 }, { HD_OP_EMBED_DW, 4000, 37, 4, 2 },
	};

	(void)state;
	check_all(shape, sizeof shape / sizeof shape[0]);
}

static void products_are_folded_as_whole_leaves_are(void **state)
{
	static const struct fold_case shape[] = {
		{ HD_OP_MATMUL, 5, 7, 3, 3 }, { HD_OP_MATMUL, 31, 70, 9, 4 }, { HD_OP_MATMUL, 1, 33, 1, 1 },
		/* two tiles of rows where a thread has all, one where parts are few */
		{ HD_OP_MATMUL, 1500, 33, 8, 4 },
		/* a part alone fits a block, all do not: a last wave may be small where a full one is not */
		{ HD_OP_MATMUL, 400, 1, 38, 2 }, { HD_OP_MATMUL, 5, 7, 38, 2 }, { HD_OP_MATMUL, 367, 5, 36, 2 },
		/* a part alone does not fit */
		{ HD_OP_MATMUL, 29, 35, 60, 2 }, { HD_OP_MATMUL, 15, 17, 300, 2 },
		/* three quarters of a part have deeper blocks than all of it: 4 of 384 lanes, 6 of 344 */
		{ HD_OP_MATMUL, 5, 17, 512, 4 },
		/* one of two threads has 512 columns in a tile, one that has all 1056 makes them 352 wide */
		{ HD_OP_MATMUL, 1, 1056, 150, 2 },
	};

	(void)state;
	check_all(shape, sizeof shape / sizeof shape[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_rows_of_a_table_are_folded_as_whole_leaves_are),
		cmocka_unit_test(products_are_folded_as_whole_leaves_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
