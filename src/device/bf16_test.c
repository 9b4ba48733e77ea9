/* bf16_test.c -- devices of HD_KERNELS_BF16 and HD_KERNELS_BF16_AMX: the reference is the definition, cores
 * give its bits, and processors without the instructions are refused. */
#include "device/bf16.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/single.h"
#include "tests/check.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static struct hd_device *open_device(const char *kind, enum hd_kernels kernels, const char *path,
	uint32_t nthreads, struct hd_diag *why)
{
	const struct hd_device_spec spec = { .nthreads = nthreads, .kernels = kernels, .path = path };
	struct hd_device *device = NULL;
	enum hd_err err = hd_device_create(&device, kind, &spec, why);

	CHECK(err == HD_OK || err == HD_E_REFUSED, "%s: %s", kind, why->text);
	return device;
}

/* c = a b of m x k and k x n, as the device computes it. */
static void product(struct hd_device *device, int64_t m, int64_t k, int64_t n, const float *a, const float *b,
	float *c)
{
	const struct hd_value in[2] = { { .rank = 2, .dtype = HD_F32, .dim = { m, k } },
		{ .rank = 2, .dtype = HD_F32, .dim = { k, n } } };
	struct hd_single *single = hd_arena_take(&arena, 1, sizeof *single);
	const struct hd_attr attr = { .i = { 0, 0 } };
	const void *operands[2] = { a, b };
	void *results[1] = { c };
	const uint64_t rows = 1;
	struct hd_diag diag = { "" };

	assert_non_null(single);
	CHECK(!hd_single_make(single, HD_OP_MATMUL, 2, in, &attr, &rows, 1, &arena, &diag), "%s", diag.text);
	CHECK(!hd_single_run(device, single, rows, &(struct hd_draw){ .seed = 1 }, operands, results, &diag),
		"%s", diag.text);
}

/* The first element: of a row of a and a column of b with `n` between its elements. */
static float first_of(enum hd_kernels kernels, int64_t k, int64_t n, const float *a, const float *b)
{
	const int terms = kernels == HD_KERNELS_BF16 ? 2 : HD_BF16_BLOCK;
	float sum = 0;

	for (int64_t p = 0; p < k; p += terms) {
		float x[HD_BF16_BLOCK] = { 0 }, y[HD_BF16_BLOCK] = { 0 };
		for (int t = 0; t < terms && p + t < k; t++) {
			x[t] = hd_bf16_operand(a[p + t]);
			y[t] = hd_bf16_operand(b[(p + t) * n]);
		}
		sum = kernels == HD_KERNELS_BF16 ? hd_bf16_pair(sum, x, y) : hd_bf16_block(sum, x, y);
	}
	return sum;
}

/* The reference's results of all shapes are hashed. false: this processor has no such kernels. */
static bool check_bits(enum hd_kernels kernels, struct hd_hash *hash)
{
	static const int64_t shape[][3] = { { 1, 1, 1 }, { 5, 7, 3 }, { 64, 33, 70 }, { 300, 130, 65 } };
	struct hd_diag diag = { "" };
	struct hd_device *reference = open_device("reference", kernels, NULL, 1, &diag),
		*cores = open_device("cpu", kernels, NULL, 2, &diag);
	const bool here = cores != NULL;
	struct hd_hasher hasher;

	assert_non_null(reference);
	hd_hasher_init(&hasher);
	for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
		int64_t m = shape[s][0], k = shape[s][1], n = shape[s][2];
		float *a = malloc((size_t)(m * k) * sizeof *a), *b = malloc((size_t)(k * n) * sizeof *b),
			*want = malloc((size_t)(m * n) * sizeof *want),
			*got = malloc((size_t)(m * n) * sizeof *got);
		assert_true(a && b && want && got);
		for (int64_t i = 0; i < m * k; i++)
			a[i] = (float)(i * 37 % 101 - 50) / 7;
		for (int64_t i = 0; i < k * n; i++)
			b[i] = (float)(i * 53 % 97 - 48) / 11;
		product(reference, m, k, n, a, b, want);
		const float first = first_of(kernels, k, n, a, b);
		assert_memory_equal(&want[0], &first, sizeof first);
		hd_hasher_add(&hasher, want, (size_t)(m * n) * sizeof *want);
		if (cores) {
			product(cores, m, k, n, a, b, got);
			assert_memory_equal(got, want, (size_t)(m * n) * sizeof *want);
		}
		free(a), free(b), free(want), free(got);
	}
	hd_device_destroy(reference);
	hd_device_destroy(cores);
	*hash = hd_hasher_end(&hasher);
	return here;
}

/* The same on every machine: a definition that changed would change the jobs that name it. */
static void cores_give_the_bits_of_the_reference(void **state)
{
	static const struct { enum hd_kernels kernels; const char *hash; } row[] = {
		{ HD_KERNELS_BF16, "e4879a33926ca8cc8c9ff904112f18ba" }, { HD_KERNELS_BF16_AMX, "17af642658e6bdf93ded79b644ec4e72" },
	};
	bool here[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hd_hash hash;
		char hex[HD_HASH_HEX];
		here[i] = check_bits(row[i].kernels, &hash);
		hd_hash_hex(hash, hex);
		CHECK(strcmp(hex, row[i].hash) == 0, "%s: %s", hd_kernels_text(row[i].kernels), hex);
	}
	if (!here[0] || !here[1])
		SKIP("this processor has no AVX512-BF16, or no AMX-BF16");
}

/* The way out is none that would be refused, too: such a path has no bf16 either. */
static void paths_without_the_instructions_are_refused_with_the_way_out(void **state)
{
	static const struct { enum hd_kernels kernels; const char *needs, *instead; } row[] = {
		{ HD_KERNELS_BF16, "AVX512-BF16", "job.precision: f32" },
		{ HD_KERNELS_BF16_AMX, "AMX-BF16", "job.precision: f32" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hd_diag diag = { "" };
		assert_null(open_device("cpu", row[i].kernels, "portable", 1, &diag));
		CHECK(strstr(diag.text, row[i].needs) && strstr(diag.text, row[i].instead) &&
			strstr(diag.text, "another machine"), "%s", diag.text);
	}
}

/* Hard cases of the definition, worked out by hand. */
static void the_definition_rounds_each_term_odd_first_and_flushes(void **state)
{
	static const struct { float sum, a[2], b[2], want; } at[] = {
		{ 1, { 0x1p-24f, 0x1p-24f }, { 1, 1 }, 1 },             /* two ties, both down to even */
		{ -1, { 1, 0x1p-25f }, { 1, 1 }, 0 },                   /* -1 + 2^-25 is -1 again */
		{ 0, { 0x1p-130f, 0 }, { 0x1p20f, 0 }, 0 },             /* a subnormal operand */
		{ 0x1p-130f, { 0, 0 }, { 0, 0 }, 0 },                   /* a subnormal sum */
		{ 0, { 0x1p-70f, 0 }, { 0x1p-60f, 0 }, 0 },             /* a subnormal result */
		{ 0, { 3, 5 }, { 7, 11 }, 76 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		CHECK(hd_bf16_pair(at[i].sum, at[i].a, at[i].b) == at[i].want, "case %zu", i);
	assert_true(hd_bf16_operand(0x1.01p0f) == 1);             /* a tie, to even */
	assert_true(hd_bf16_operand(0x1.03p0f) == 0x1.04p0f);
	assert_true(hd_bf16_operand(0x1.fffffcp-127f) == 0);      /* flushed before it would be rounded up */
	assert_true(signbit(hd_bf16_operand(-0x1p-140f)));
}

/* Of bf16-amx: two chains from +0, which meet before the old sum does. */
static void the_definition_of_tiles_keeps_even_and_odd_terms_apart(void **state)
{
	static const struct { float sum, a[4], b[4], want; } at[] = {
		{ 1, { 0x1p-24f, 0x1p-24f }, { 1, 1 }, 0x1.000002p0f },        /* halves meet first */
		{ 1, { 0, 0x1p-24f, 0, 0x1p-24f }, { 0, 1, 0, 1 }, 0x1.000002p0f },
		{ 0, { 1, 0x1p-24f, -1 }, { 1, 1, 1 }, 0x1p-24f },             /* 1 - 1 apart from it */
		{ 0, { 1, -1, 0x1p-24f }, { 1, 1, 1 }, 0 },                    /* 1 + 2^-24 is 1, a tie */
		{ 0x1p-126f, { -0x1p-64f }, { 0x1p-63f }, 0x1p-126f },         /* a chain is flushed */
		{ 0, { 0x1.8p-63f, -0x1p-63f }, { 0x1p-63f, 0x1p-63f }, 0 },   /* and where they meet */
		{ 0x1.8p-126f, { -0x1p-63f }, { 0x1p-63f }, 0 },               /* and the new sum */
		{ 0, { 3, 5, 7, 11 }, { 1, 2, 3, 4 }, 78 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		float a[HD_BF16_BLOCK] = { 0 }, b[HD_BF16_BLOCK] = { 0 };
		memcpy(a, at[i].a, sizeof at[i].a);
		memcpy(b, at[i].b, sizeof at[i].b);
		CHECK(hd_bf16_block(at[i].sum, a, b) == at[i].want, "case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores_give_the_bits_of_the_reference),
		cmocka_unit_test(paths_without_the_instructions_are_refused_with_the_way_out),
		cmocka_unit_test(the_definition_of_tiles_keeps_even_and_odd_terms_apart),
		cmocka_unit_test(the_definition_rounds_each_term_odd_first_and_flushes),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
