#include "timeline/analyze/compare.h"

#include "base/philox.h"
#include "timeline/analyze/testing.h"
#include "tests/check.h"

static uint32_t draw(uint64_t seed, uint32_t i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ i, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

/* Integers of the triangle of Pascal, in place of products of fractions. */
static void ranks_are_those_of_the_triangle_of_pascal(void **state)
{
	(void)state;
	__extension__ typedef unsigned __int128 wide;
	wide row[61] = { 1 };

	for (uint64_t n = 1; n <= 60; n++) {
		wide below = 0;
		uint64_t low = 7, high = 7, k = 0;
		for (uint64_t i = n; i > 0; i--)
			row[i] += row[i - 1];
		while ((below + row[k]) * 40 <= (wide)1 << n)
			below += row[k++];
		if (n < HD_TL_MEDIAN_LEAST) {
			assert_false(hd_tl_median_ranks(n, &low, &high));
			continue;
		}
		assert_true(k > 0);
		assert_true(hd_tl_median_ranks(n, &low, &high));
		CHECK(low == k - 1 && high == n - k, "n %u: [%u, %u], not [%u, %u]", (unsigned)n,
			(unsigned)low,
			(unsigned)high, (unsigned)(k - 1), (unsigned)(n - k));
	}
	/* where the normal law takes over nothing jumps */
	uint64_t a = 0, b = 0, c = 0, d = 0;
	assert_true(hd_tl_median_ranks(1000, &a, &b) && hd_tl_median_ranks(1001, &c, &d));
	assert_true(c + 2 >= a && c <= a + 2 && d + 2 >= b && d <= b + 3);
}

static void record(struct hd_tl_hand *h, uint64_t seed, int64_t f, int64_t b)
{
	struct hd_tl_causes causes;

	hd_tl_hand_init(h, 1);
	for (uint32_t i = 0; i < 40; i++) {
		const int64_t t = i * 100000;
		hd_tl_hand_op(h, 0, 1, t, t + f + draw(seed, 2 * i, 100));
		hd_tl_hand_op(h, 0, 2, t + 50000, t + 50000 + b + draw(seed, 2 * i + 1, 100));
	}
	hd_tl_hand_made(h, &causes);
}

static void only_what_changed_is_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h[2];
	struct hd_tl_change *c;
	size_t n;

	record(&h[0], 1, 10000, 20000);
	record(&h[1], 2, 10000, 22000);
	assert_int_equal(hd_tl_compare(&h[0].tl, &h[1].tl, &h[0].arena, &c, &n, NULL), HD_OK);
	assert_int_equal(n, 1);
	assert_true(strcmp(c->name, "B") == 0 && c->slower && c->before.n == 40 && c->after.ns >
		c->before.ns);
	assert_int_equal(hd_tl_compare(&h[1].tl, &h[0].tl, &h[0].arena, &c, &n, NULL), HD_OK);
	assert_true(n == 1 && !c->slower);
	assert_int_equal(hd_tl_compare(&h[0].tl, &h[0].tl, &h[0].arena, &c, &n, NULL), HD_OK);
	assert_int_equal(n, 0);
	hd_arena_finish(&h[1].arena);
	/* disjoint, and only 2 % apart: not reported; the larger of two changes first */
	record(&h[1], 2, 10000, 20400);
	assert_int_equal(hd_tl_compare(&h[0].tl, &h[1].tl, &h[0].arena, &c, &n, NULL), HD_OK);
	assert_int_equal(n, 0);
	hd_arena_finish(&h[1].arena);
	record(&h[1], 2, 14000, 30000);
	assert_int_equal(hd_tl_compare(&h[0].tl, &h[1].tl, &h[0].arena, &c, &n, NULL), HD_OK);
	assert_true(n == 2 && strcmp(c[0].name, "B") == 0 && strcmp(c[1].name, "F") == 0);
	for (int i = 0; i < 2; i++)
		hd_arena_finish(&h[i].arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_those_of_the_triangle_of_pascal),
		cmocka_unit_test(only_what_changed_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
