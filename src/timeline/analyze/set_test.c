#include "timeline/analyze/set.h"

#include "base/philox.h"
#include "tests/check.h"

enum { WIDTH = 64, SPANS = 12 };

static uint32_t draw(uint64_t seed, uint32_t i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ i, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

static size_t some(uint64_t seed, struct hd_tl_span *span, uint8_t *bit)
{
	const size_t n = draw(seed, 0, SPANS + 1);

	for (size_t i = 0; i < n; i++) {
		span[i].t0 = (int64_t)draw(seed, (uint32_t)(2 * i + 1), WIDTH) - 20;
		span[i].t1 = span[i].t0 + (int64_t)draw(seed, (uint32_t)(2 * i + 2), 9) - 1;
		for (int64_t t = span[i].t0; t < span[i].t1; t++)
			bit[t + 20] = 1;
	}
	return n;
}

static void a_set_measures_what_a_bitmap_measures(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < DRAWS(2000); seed++) {
		struct hd_tl_span one[SPANS], two[SPANS];
		uint8_t a[2 * WIDTH] = { 0 }, b[2 * WIDTH] = { 0 };
		int64_t first = 0, common = 0;
		struct hd_tl_set x = hd_tl_set_of(one, some(2 * seed, one, a)),
			y = hd_tl_set_of(two, some(2 * seed + 1, two, b));
		for (int t = 0; t < 2 * WIDTH; t++) {
			first += a[t];
			common += a[t] && b[t];
		}
		CHECK(hd_tl_set_ns(&x) == first, "seed %u", (unsigned)seed);
		CHECK(hd_tl_set_common_ns(&x, &y) == common, "seed %u", (unsigned)seed);
		CHECK(hd_tl_set_common_ns(&y, &x) == common, "seed %u", (unsigned)seed);
		for (size_t i = 0; i < x.n; i++)
			CHECK(x.span[i].t0 < x.span[i].t1 && (!i || x.span[i - 1].t1 < x.span[i].t0),
				"seed %u, span %zu", (unsigned)seed, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_measures_what_a_bitmap_measures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
