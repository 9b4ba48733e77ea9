/* Products against the definition: one ascending chain of fused multiply-adds per element,
 * bit for bit, on every path. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/bf16.h"
#include "device/cpu/bf16_rows.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/peak.h"
#include "device/cpu/testing_tiles.h"
#include "tests/check.h"

struct gemm_case { int64_t m, n, k; int ta, tb; };

static float *values(size_t n, uint32_t seed)
{
	float *at = malloc(n * sizeof *at);

	assert_non_null(at);
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		at[i] = (float)(int32_t)seed * 0x1p-31f;
	}
	return at;
}

static void define(const struct gemm_case *p, const float *a, const float *b, float *c)
{
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			float sum = 0;
			for (int64_t k = 0; k < p->k; k++)
				sum = fmaf(p->ta ? a[k * p->m + i] : a[i * p->k + k],
					p->tb ? b[j * p->k + k] : b[k * p->n + j], sum);
			c[i * p->n + j] = sum;
		}
}

/* Products in bf16: `terms` of a sum are added at once. */
struct half { const char *name; int terms; float (*add)(float sum, const float *a, const float *b); };

static float pair(float sum, const float *a, const float *b) { return hd_bf16_pair(sum, a, b); }
static float block(float sum, const float *a, const float *b) { return hd_bf16_block(sum, a, b); }
static const struct half by_pairs = { "bf16", 2, pair }, by_tiles = { "bf16-amx", HD_BF16_BLOCK, block };

static const struct hd_cpu_row *rows_of(const struct half *how)
{
	const struct hd_cpu_isa *isa = hd_cpu_isa_of("avx512");

	return how == &by_pairs ? isa->bf16_rows : isa->amx_rows;
}

static bool has(const struct half *how) { return how == &by_pairs ? hd_lends_pairs() : hd_lends_tiles(); }

static float *operands(const float *from, int64_t n)
{
	float *at = malloc((size_t)n * sizeof *at);

	assert_non_null(at);
	for (int64_t i = 0; i < n; i++)
		at[i] = hd_bf16_operand(from[i]);
	return at;
}

static void define_half(const struct half *how, const struct gemm_case *p, const float *from_a,
	const float *from_b, float *c)
{
	float *a = operands(from_a, p->m * p->k), *b = operands(from_b, p->k * p->n);

	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			float sum = 0;
			for (int64_t k = 0; k < p->k; k += how->terms) {
				float x[HD_BF16_BLOCK] = { 0 }, y[HD_BF16_BLOCK] = { 0 };
				for (int t = 0; t < how->terms && k + t < p->k; t++) {
					x[t] = p->ta ? a[(k + t) * p->m + i] : a[i * p->k + k + t];
					y[t] = p->tb ? b[j * p->k + k + t] : b[(k + t) * p->n + j];
				}
				sum = how->add(sum, x, y);
			}
			c[i * p->n + j] = sum;
		}
	free(a), free(b);
}

static struct hd_operand operand(const void *at, int64_t rows, int64_t cols)
{
	return (struct hd_operand){ .at = (void *)at, .dim = { rows, cols }, .rank = 2, .dtype = HD_F32,
		.elems = (uint64_t)(rows * cols) };
}

/* Tile by tile, from the last to the first, or piece by piece, of one thread that has all or of several. */
static void compute(const struct hd_cpu_row *rows, const struct gemm_case *p, uint32_t npieces,
	const float *a, const float *b, float *c)
{
	struct hd_call call = { .op = HD_OP_MATMUL, .attr = { .i = { p->ta, p->tb } }, .nin = 2, .nout = 1 };
	const struct hd_kernel *kernel = &rows[HD_OP_MATMUL].kernel;

	call.in[0] = p->ta ? operand(a, p->k, p->m) : operand(a, p->m, p->k);
	call.in[1] = p->tb ? operand(b, p->n, p->k) : operand(b, p->k, p->n);
	call.out[0] = operand(c, p->m, p->n);
	void *scratch = hd_alloc(kernel->scratch(&call));
	assert_non_null(scratch);
	memset(scratch, 0xff, kernel->scratch(&call));
	for (uint32_t i = npieces; i-- > 0; )
		kernel->piece(&call, i, npieces, scratch);
	for (uint32_t tile = npieces ? 0 : kernel->ntiles(&call); tile-- > 0; )
		kernel->tile(&call, tile, scratch);
	hd_free(scratch);
}

/* The result `want` of rows `rows`, each way. */
static void agree(const struct hd_cpu_row *rows, const char *name, const struct gemm_case *p, const float *a,
	const float *b, const float *want)
{
	size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
	float *got = malloc(bytes);

	assert_non_null(got);
	for (uint32_t npieces = 0; npieces < 4; npieces++) {
		memset(got, 0xff, bytes);
		compute(rows, p, npieces, a, b, got);
		CHECK(!hd_holds_tiles(), "%s: tiles are held after a call", name);
		CHECK(memcmp(got, want, bytes) == 0,
			"%s: [%lld,%lld] x [%lld,%lld], ta %d, tb %d, %u pieces (0: tiles)", name,
			(long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n, p->ta, p->tb,
			npieces);
	}
	free(got);
}

/* AddressSanitizer watches the portable path alone: of the others, whose objects are the same in every build,
 * it would show nothing new. */
static void check(const struct gemm_case *p, bool portable, bool tiles)
{
	static const char *const path[] = { "avx512", "avx2", "portable" };
	if (SANITIZED && !portable)
		return;
	float *a = values((size_t)(p->m * p->k), 1), *b = values((size_t)(p->k * p->n), 2);
	size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
	float *want = malloc(bytes);

	assert_non_null(want);
	define(p, a, b, want);
	for (int i = SANITIZED ? 2 : 0; i < 2 + portable; i++)
		if (hd_cpu_path(path[i]))
			agree(hd_cpu_isa_of(path[i])->rows, path[i], p, a, b, want);
	for (int i = 0; i < 2; i++) {
		const struct half *how = i ? &by_tiles : &by_pairs;
		if (!has(how) || SANITIZED || (how == &by_tiles && !tiles))
			continue;
		define_half(how, p, a, b, want);
		agree(rows_of(how), how->name, p, a, b, want);
	}
	free(a), free(b), free(want);
}

static void every_small_shape_is_the_chain_of_its_definition(void **state)
{
	(void)state;
	for (int64_t m = 1; m <= 40; m += m < 18 ? 1 : 3)
		for (int64_t n = 1; n <= 40; n += n < 18 ? 1 : 5)
			for (int64_t k = 1; k <= 40; k += k < 4 ? 1 : 9)
				for (int t = 0; t < 4; t++)
					check(&(struct gemm_case){ m, n, k, t & 1, t >> 1 }, t == 0 ||
						t == 3, true);
}

static void shapes_beyond_every_block_are_the_same_chain(void **state)
{
	static const struct gemm_case shape[] = {
		{ 169, 513, 257, 0, 0 }, { 337, 65, 520, 0, 1 }, { 85, 600, 100, 1, 0 }, { 200, 200, 300, 1, 1 }, { 1, 700, 700, 0, 0 }, { 700, 1, 90, 1, 0 },
		{ 64, 10, 1024, 0, 0 }, { 14, 32, 2048, 0, 1 },
		/* rows of a 2 KiB apart, and one without a partner in its panel */
		{ 29, 70, 512, 0, 0 }, { 43, 33, 1024, 0, 1 }, { 351, 40, 512, 0, 0 },
		/* blocks of k are equal: 385 = 196 + 189, 770 = 3 x 260 */
		{ 30, 50, 385, 0, 0 }, { 31, 97, 770, 1, 0 }, { 350, 31, 386, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
		check(&shape[i], true, true);
}

/* Drawn with a fixed seed: odd edges of every block, whatever their sizes are. */
static void drawn_shapes_are_the_same_chain(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int i = 0; i < 60; i++) {
		int64_t dim[3];
		for (int d = 0; d < 3; d++) {
			seed = seed * 1664525u + 1013904223u;
			dim[d] = 1 + (int64_t)(seed >> 12) % (d == 2 ? 900 : 190);
		}
		check(&(struct gemm_case){ dim[0], dim[1], dim[2], i & 1, i >> 1 & 1 }, i % 4 == 0,
			i % 3 == 0);
	}
}

static void rows_do_not_depend_on_how_many_there_are(void **state)
{
	struct gemm_case all = { 100, 48, 70, 0, 0 }, some = { 37, 48, 70, 0, 0 };
	float *a = values(100 * 70, 5), *b = values(70 * 48, 6), *c = malloc(100 * 48 * sizeof *c),
		*d = malloc(37 * 48 * sizeof *d);
	const struct hd_cpu_isa *isa = hd_cpu_isa_of(hd_cpu_path(NULL));

	(void)state;
	assert_true(c && d);
	compute(isa->rows, &all, false, a, b, c);
	compute(isa->rows, &some, false, a + 20 * 70, b, d);
	assert_memory_equal(d, c + 20 * 48, 37 * 48 * sizeof *d);
	free(a), free(b), free(c), free(d);
}

/* So that a device of 8 threads has work for each, whichever operand is turned. */
static void products_of_256_rows_are_at_least_eight_tiles(void **state)
{
	static const struct gemm_case shape[] = {
		{ 256, 1536, 384, 0, 0 }, { 256, 384, 1536, 0, 1 }, { 256, 1152, 384, 0, 0 },
		{ 256, 384, 384, 0, 1 }, { 256, 256, 384, 0, 1 }, { 256, 384, 256, 0, 0 },
		{ 256, 384, 50257, 0, 0 }, { 256, 50257, 384, 0, 1 }, { 2048, 384, 384, 0, 0 },
		{ 256, 384, 1024, 0, 0 }, { 384, 1536, 256, 1, 0 }, { 384, 384, 256, 1, 0 },
	};
	const struct hd_cpu_isa *isa = hd_cpu_isa_of(hd_cpu_path(NULL));

	(void)state;
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
		const struct gemm_case *p = &shape[i];
		struct hd_call call = { .op = HD_OP_MATMUL, .attr = { .i = { p->ta, p->tb } }, .nin = 2,
			.nout = 1 };
		const struct hd_kernel *kernel = &isa->rows[HD_OP_MATMUL].kernel;
		call.in[0] = p->ta ? operand(NULL, p->k, p->m) : operand(NULL, p->m, p->k);
		call.in[1] = p->tb ? operand(NULL, p->n, p->k) : operand(NULL, p->k, p->n);
		call.out[0] = operand(NULL, p->m, p->n);
		CHECK(kernel->ntiles(&call) >= 8, "[%lld,%lld] x [%lld,%lld]: %u tiles", (long long)p->m,
			(long long)p->k, (long long)p->k, (long long)p->n, kernel->ntiles(&call));
		CHECK(!p->ta || kernel->fold->ntiles(&call) >= 8, "fold %zu: %u tiles", i,
			kernel->fold->ntiles(&call));
	}
}

/* Values of all kinds: the draw itself, near 1, near the least normal ones, and special ones. */
static uint32_t drawn(uint32_t *seed, int kind, bool half)
{
	static const uint32_t special[] = { 0, 0x80000000u, 0x10000, 0x80010000u, 0x7f0000, 0x800000,
		0x80800000u, 0x3f800000, 0xbf800000u, 0x7f7f0000, 0xff7f0000u, 0x7f800000, 0xff800000u,
		0x7fc00000, 0x7f810000, 0x20000000, 0x1f800000, 0x60000000, 0x7fffff, 0x807fc000u };
	const uint32_t exponent[] = { 0, 119, half ? 60 : 1 };

	for (int i = 0; i < 2; i++)
		*seed = *seed * 1664525u + 1013904223u;
	uint32_t x = *seed ^ *seed >> 15, e = exponent[kind % 3] + (x >> 3) % 12;
	x = kind == 3 ? special[x % (sizeof special / sizeof special[0])] : kind == 0 ? x :
		(x & 0x807fffffu) | e << 23;
	return half ? x & 0xffff0000u : x;
}

static void the_processor_adds_pairs_as_defined(void **state)
{
	uint32_t seed = 3;

	(void)state;
	if (!hd_lends_pairs())
		SKIP("this processor has no AVX512-BF16");
	CHECK(hd_cpu_has_bf16("avx512"), "this processor is refused: it answers otherwise");
	for (int round = 0; round < DRAWS(40000); round++) {
		uint32_t a[2][16], b[2][16], x[16], y[16], sum[16], got[16];
		for (int i = 0; i < 16; i++) {
			for (int t = 0; t < 2; t++) {
				a[t][i] = drawn(&seed, round % 4, true);
				b[t][i] = drawn(&seed, round % 4, true);
			}
			x[i] = a[1][i] | a[0][i] >> 16;
			y[i] = b[1][i] | b[0][i] >> 16;
			sum[i] = drawn(&seed, round % 4, false);
		}
		hd_bf16_unit((float *)sum, x, y, (float *)got);
		for (int i = 0; i < 16; i++) {
			float left[2] = { hd_f32_of_bits(a[0][i]), hd_f32_of_bits(a[1][i]) },
				right[2] = { hd_f32_of_bits(b[0][i]), hd_f32_of_bits(b[1][i]) },
				want = hd_bf16_pair(hd_f32_of_bits(sum[i]), left, right);
			CHECK(isnan(want) ? isnan(hd_f32_of_bits(got[i])) : got[i] == hd_bits_of_f32(want),
				"%08x + %08x %08x x %08x %08x: %08x, not %08x", sum[i], a[0][i], a[1][i],
				b[0][i], b[1][i], got[i], hd_bits_of_f32(want));
		}
	}
}

/* Of 16 x 16 sums of 32 terms. */
static void the_processor_adds_tiles_as_defined(void **state)
{
	static uint32_t a[16][16], b[16][16], sum[16][16], got[16][16];
	uint32_t seed = 5;

	(void)state;
	if (!hd_lends_tiles())
		SKIP("this processor has no AMX-BF16, or the system lends no tiles");
	CHECK(hd_cpu_has_amx("avx512"), "this processor is refused: it answers otherwise");
	for (int round = 0; round < DRAWS(400); round++) {
		/* few special ones, or nearly every sum would be no number */
		const int kind = round % 4;
		for (int i = 0; i < 256; i++) {
			const int here = kind == 3 && i % 9 ? 2 : kind;
			a[i / 16][i % 16] = drawn(&seed, here, true) | drawn(&seed, here, true) >> 16;
			b[i / 16][i % 16] = drawn(&seed, here, true) | drawn(&seed, here, true) >> 16;
			sum[i / 16][i % 16] = drawn(&seed, kind, false);
		}
		hd_amx_unit((float (*)[16])sum, a, b, (float (*)[16])got);
		for (int i = 0; i < 256; i++) {
			float x[HD_BF16_BLOCK], y[HD_BF16_BLOCK];
			for (int k = 0; k < 16; k++) {
				x[2 * k] = hd_f32_of_bits(a[i / 16][k] << 16);
				x[2 * k + 1] = hd_f32_of_bits(a[i / 16][k] & 0xffff0000u);
				y[2 * k] = hd_f32_of_bits(b[k][i % 16] << 16);
				y[2 * k + 1] = hd_f32_of_bits(b[k][i % 16] & 0xffff0000u);
			}
			float want = hd_bf16_block(hd_f32_of_bits(sum[i / 16][i % 16]), x, y);
			uint32_t bits = got[i / 16][i % 16];
			CHECK(isnan(want) ? isnan(hd_f32_of_bits(bits)) : bits == hd_bits_of_f32(want),
				"round %d: %08x, not %08x", round, bits, hd_bits_of_f32(want));
		}
	}
	CHECK(!hd_holds_tiles(), "tiles are held after a product of one");
	CHECK(hd_peak_run_amx(3) == 3 * HD_BF16_BLOCK && !hd_holds_tiles(), "tiles are held after a peak");
}

/* Operands of all kinds through the packing: rounded, flushed, with and without a partner. */
static void check_operands(const struct half *how)
{
	enum { TERMS = 70 };
	float a[3 * TERMS], b[TERMS * 35], want[3 * 35], got[3 * 35];
	uint32_t seed = 11;

	for (int round = 0; round < 400; round++) {
		const struct gemm_case p = { 1 + round % 3, 1 + round % 35, round % 8 ? 1 + round % 2 :
			1 + round % TERMS, round & 1, round >> 1 & 1 };
		for (int64_t i = 0; i < p.m * p.k; i++)
			a[i] = hd_f32_of_bits(drawn(&seed, round % 4, false));
		for (int64_t i = 0; i < p.k * p.n; i++)
			b[i] = hd_f32_of_bits(drawn(&seed, round % 4, false));
		define_half(how, &p, a, b, want);
		compute(rows_of(how), &p, false, a, b, got);
		for (int64_t i = 0; i < p.m * p.n; i++)
			CHECK(isnan(want[i]) ? isnan(got[i]) : hd_bits_of_f32(got[i]) ==
				hd_bits_of_f32(want[i]), "%s, round %d: %a, not %a", how->name, round,
				(double)got[i], (double)want[i]);
	}
}

static void operands_are_rounded_as_defined(void **state)
{
	(void)state;
	if (!hd_lends_pairs())
		SKIP("this processor has no AVX512-BF16");
	check_operands(&by_pairs);
	if (hd_lends_tiles())
		check_operands(&by_tiles);
}

/* Piece i of n alone: how many elements it writes, each of them for the first time. */
static int64_t written(const struct hd_kernel *kernel, const struct hd_call *call, uint32_t i, uint32_t n,
	float *before, void *scratch)
{
	const uint64_t elems = call->out[0].elems;
	float *at = call->out[0].at;
	int64_t sum = 0;

	for (uint64_t k = 0; k < elems; k++)
		at[k] = NAN;
	kernel->piece(call, i, n, scratch);
	for (uint64_t k = 0; k < elems; k++)
		if (!isnan(at[k])) {
			CHECK(isnan(before[k]), "element %u is written by two pieces of %u", (unsigned)k, n);
			before[k] = at[k];
			sum++;
		}
	return sum;
}

/* Threads wait for the longest piece: at most a tenth longer than an equal share, or they take tiles. */
static void pieces_are_taken_where_they_are_equal(void **state)
{
	static const struct { int64_t n; uint32_t npieces; bool divides; } row[] = {
		{ 1024, 2, true }, { 1024, 8, true }, { 1024, 5, true }, { 1024, 24, false }, { 10, 2, false },
		{ 384, 2, true }, { 384, 3, true }, { 384, 8, false }, { 96, 2, false }, { 64, 2, true },
		{ 1152, 8, false }, { 800, 2, true }, { 1000, 2, true },
	};
	float *a = values(3 * 4, 1), *b = values(4 * 1152, 2), c[3 * 1152], all[3 * 1152];

	(void)state;
	for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
		const struct hd_kernel *kernel = &hd_cpu_isa_of("portable")->rows[HD_OP_MATMUL].kernel;
		struct hd_call call = { .op = HD_OP_MATMUL, .nin = 2, .nout = 1, .in = { operand(a, 3, 4),
			operand(b, 4, row[r].n) }, .out = { operand(c, 3, row[r].n) } };
		int64_t most = 0, sum = 0;
		void *scratch = hd_alloc(kernel->scratch(&call));
		assert_non_null(scratch);
		for (int64_t k = 0; k < 3 * row[r].n; k++)
			all[k] = NAN;
		for (uint32_t i = 0; i < row[r].npieces; i++) {
			int64_t n = written(kernel, &call, i, row[r].npieces, all, scratch);
			most = n > most ? n : most;
			sum += n;
		}
		CHECK(sum == 3 * row[r].n, "%lld columns in %u pieces: %lld elements", (long long)row[r].n,
			row[r].npieces, (long long)sum);
		CHECK(!row[r].divides || 10 * most * row[r].npieces <= 11 * sum,
			"%lld columns in %u pieces: one of %lld elements", (long long)row[r].n,
			row[r].npieces, (long long)most);
		CHECK(kernel->divides(&call, row[r].npieces) == row[r].divides, "%lld columns in %u pieces",
			(long long)row[r].n, row[r].npieces);
		hd_free(scratch);
	}
	free(a), free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_shape_is_the_chain_of_its_definition),
		cmocka_unit_test(shapes_beyond_every_block_are_the_same_chain),
		cmocka_unit_test(drawn_shapes_are_the_same_chain),
		cmocka_unit_test(the_processor_adds_pairs_as_defined),
		cmocka_unit_test(the_processor_adds_tiles_as_defined),
		cmocka_unit_test(operands_are_rounded_as_defined),
		cmocka_unit_test(products_of_256_rows_are_at_least_eight_tiles),
		cmocka_unit_test(rows_do_not_depend_on_how_many_there_are),
		cmocka_unit_test(pieces_are_taken_where_they_are_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
