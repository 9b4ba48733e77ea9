#include "base/checked.h"

#include <math.h>

#include "tests/check.h"

/* Values where something overflows; 128-bit arithmetic is the oracle. */
static const uint64_t edge[] = {
	0, 1, 2, 3, UINT32_MAX - 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1, (uint64_t)UINT32_MAX + 2,
		INT64_MAX - 1, INT64_MAX,
	(uint64_t)INT64_MAX + 1, UINT64_MAX / 3, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX,
};
enum { N = sizeof edge / sizeof edge[0] };

__extension__ typedef __int128 wide;

static void unsigned_results_are_exact_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++) {
			wide a = edge[i], b = edge[j];
			bool fits[3] = { a + b <= UINT64_MAX, a >= b, a == 0 || b <= (wide)UINT64_MAX / a };
			wide want[3] = { a + b, a - b, fits[2] ? a * b : 0 };
			uint64_t got[3] = { 7, 7, 7 };
			bool said[3] = { hd_add_u64(edge[i], edge[j], &got[0]),
				hd_sub_u64(edge[i], edge[j], &got[1]),
				hd_mul_u64(edge[i], edge[j], &got[2]) };
			size_t size = 7;
			CHECK(hd_mul_size(edge[i], edge[j], &size) == said[2] && size == got[2], "%zu %zu", i,
				j);
			for (int k = 0; k < 3; k++)
				CHECK(said[k] == fits[k] && got[k] == (fits[k] ? (uint64_t)want[k] : 7),
					"op %d of %zu and %zu", k, i, j);
		}
}

static void signed_results_are_exact_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++) {
			int64_t a = (int64_t)edge[i], b = (int64_t)edge[j];
			wide want[3] = { (wide)a + b, (wide)a - b, (wide)a * b };
			int64_t got[3] = { 7, 7, 7 };
			bool said[3] = { hd_add_i64(a, b, &got[0]), hd_sub_i64(a, b, &got[1]),
				hd_mul_i64(a, b, &got[2]) };
			for (int k = 0; k < 3; k++) {
				bool fits = want[k] >= INT64_MIN && want[k] <= INT64_MAX;
				CHECK(said[k] == fits && got[k] == (fits ? (int64_t)want[k] : 7),
					"op %d of %zu and %zu", k, i, j);
			}
		}
}

static void narrowing_keeps_the_value_or_refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		uint64_t v = edge[i], u64 = 7;
		int64_t s = (int64_t)v, i64 = 7;
		uint32_t u32 = 7;
		int32_t i32 = 7;
		CHECK(hd_u32_from(v, &u32) == (v <= UINT32_MAX) && u32 == (v <= UINT32_MAX ? v : 7), "%zu",
			i);
		CHECK(hd_i32_from(s, &i32) == (s >= INT32_MIN && s <= INT32_MAX) && (i32 == 7 || i32 == s),
			"%zu", i);
		CHECK(hd_u64_from(s, &u64) == (s >= 0) && u64 == (s >= 0 ? v : 7), "%zu", i);
		CHECK(hd_i64_from(v, &i64) == (v <= INT64_MAX) && i64 == (v <= INT64_MAX ? s : 7), "%zu", i);
	}
}

static void doubles_become_integers_within_2_to_the_62(void **state)
{
	static const struct { double v; bool fits; int64_t is; } rows[] = {
		{ 0, true, 0 }, { -0.0, true, 0 }, { 1.9, true, 1 }, { -1.9, true, -1 }, { 0x1p53, true, INT64_C(1) << 53 },
		{ 0x1p62, true, INT64_C(1) << 62 }, { -0x1p62, true, -(INT64_C(1) << 62) }, { 0x1.0000000000001p62, false, 7 },
		{ -0x1.0000000000001p62, false, 7 }, { 0x1p63, false, 7 }, { 1e300, false, 7 }, { INFINITY, false, 7 }, { -INFINITY, false, 7 }, { NAN, false, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t out = 7;
		CHECK(hd_i64_from_f64(rows[i].v, &out) == rows[i].fits && out == rows[i].is, "%g gave %lld",
			rows[i].v, (long long)out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_results_are_exact_or_refused),
		cmocka_unit_test(signed_results_are_exact_or_refused),
		cmocka_unit_test(narrowing_keeps_the_value_or_refuses),
		cmocka_unit_test(doubles_become_integers_within_2_to_the_62),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
