#include "timeline/analyze/busy.h"

#include "base/philox.h"
#include "tests/check.h"

enum { LONG = 400 };

/* What is taken, a flag for each ns: a thing takes the free ones from when it is there on. */
static int64_t take_by_flags(bool taken[LONG], int64_t from, int64_t ns)
{
	int64_t t = from;

	while (ns > 0)
		ns -= !taken[t++];
	for (int64_t i = from; i < t; i++)
		taken[i] = true;
	return t;
}

static void a_line_is_taken_as_flags_of_each_ns_say(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
		struct hd_arena arena;
		struct hd_tl_busy busy;
		bool taken[LONG] = { false };
		hd_arena_init(&arena, 0);
		assert_true(hd_tl_busy_open(&busy, &arena));
		for (uint32_t i = 0; i < 20; i++) {
			const struct hd_philox draw = hd_philox((uint32_t[4]){ i, 0, 0, 0 },
				hd_philox_key(seed, HD_RNG_USER));
			const uint32_t *word = draw.word;
			const int64_t from = word[0] % 100, ns = 1 + word[1] % 10, to = from + word[2] % 50;
			int64_t free = 0;
			for (int64_t t = from; t < to; t++)
				free += !taken[t];
			CHECK(hd_tl_busy_free(&busy, from, to) == free, "seed %u, %u", (unsigned)seed, i);
			const int64_t want = take_by_flags(taken, from, ns), got = hd_tl_busy_take(&busy,
				from, ns);
			CHECK(got == want, "seed %u, %u: %lld, not %lld", (unsigned)seed, i, (long long)got,
				(long long)want);
		}
		hd_arena_finish(&arena);
	}
}

static void of_many_spans_the_oldest_become_one(void **state)
{
	(void)state;
	struct hd_arena arena;
	struct hd_tl_busy busy;

	hd_arena_init(&arena, 0);
	assert_true(hd_tl_busy_open(&busy, &arena));
	for (int64_t i = 0; i < 3 * HD_TL_BUSY_SPANS; i++)
		assert_int_equal(hd_tl_busy_take(&busy, 10 * i, 4), 10 * i + 4);
	assert_int_equal(busy.n, HD_TL_BUSY_SPANS);
	assert_int_equal(hd_tl_busy_free(&busy, 0, 1000), 0);
	const int64_t end = 10 * 3 * HD_TL_BUSY_SPANS;
	assert_int_equal(hd_tl_busy_free(&busy, end - 20, end), 12);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_taken_as_flags_of_each_ns_say),
		cmocka_unit_test(of_many_spans_the_oldest_become_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
