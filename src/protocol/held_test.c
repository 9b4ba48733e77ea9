#include "protocol/held.h"

#include <string.h>

#include "tests/check.h"

/* Digests of what several hold: where runs are cut, and what is compared. */

enum { MOST = 1000 };

static uint64_t dice = 1;
static uint32_t roll(uint32_t n)
{
	dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((dice >> 33) % n);
}

static void runs_end_where_holders_do(void **state)
{
	const uint64_t holders[6] = { 3, 3, 6, 6, 6, 5 }, digest[6] = { 11, 12, 0, 14, 15, 16 };
	const struct { uint32_t first, n; } want[] = { { 0, 1 }, { 1, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 } };
	struct hd_held_run run[HD_SEAL_HELD];

	(void)state;
	assert_int_equal(hd_held_make(run, digest, holders, 6), 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(run[i].first == want[i].first && run[i].n == want[i].n && run[i].digest);
	/* nothing to compare with */
	assert_int_equal(hd_held_make(run, digest, (const uint64_t[6]){ 1, 1, 2, 4, 4, 4 }, 6), 0);
}

/* Of many buckets: neighbours with the same holders are one run, up to a 32nd of all. */
static void many_buckets_make_few_runs(void **state)
{
	static uint64_t holders[MOST], digest[MOST];
	struct hd_held_run run[HD_SEAL_HELD];

	(void)state;
	for (uint32_t b = 0; b < MOST; b++) {
		holders[b] = b < 500 ? 3 : 6;
		digest[b] = 1 + b;
	}
	const uint32_t n = hd_held_make(run, digest, holders, MOST);
	assert_int_equal(n, 33);          /* 32 of all, one of them cut in two */
	uint32_t next = 0;
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(run[i].first, next);
		next += run[i].n;
	}
	assert_int_equal(next, MOST);
	/* where holders change at each bucket only so many are said */
	for (uint32_t b = 0; b < MOST; b++)
		holders[b] = b % 2 ? 3 : 6;
	assert_int_equal(hd_held_make(run, digest, holders, MOST), HD_SEAL_HELD);
}

/* Holders of the same buckets find any one bucket that differs, and nothing else. */
static void a_bucket_that_differs_is_found(void **state)
{
	static uint64_t holders[MOST], of[2][MOST];

	(void)state;
	for (uint32_t draws = 0; draws < 500; draws++) {
		struct hd_held_run run[2][HD_SEAL_HELD];
		const uint32_t nbuckets = 1 + roll(MOST), stages = 1 + roll(8);
		uint32_t n[2], both = 0, other = MOST;
		for (uint32_t b = 0; b < nbuckets; b++) {
			const uint32_t stage = (uint32_t)((uint64_t)b * stages / nbuckets);
			holders[b] = UINT64_C(1) << stage | UINT64_C(1) << (stage + 1) % stages;
			for (uint32_t k = 0; k < 2; k++)
				of[k][b] = holders[b] >> k & 1 ? 1 + b : 0;
			if (of[0][b] && of[1][b] && !roll(++both))
				other = b;
		}
		for (uint32_t k = 0; k < 2; k++)
			n[k] = hd_held_make(run[k], of[k], holders, nbuckets);
		assert_null(hd_held_differ(run[0], n[0], run[1], n[1]));
		if (other == MOST || !n[0])
			continue;
		of[1][other] ^= UINT64_C(1) << 40;
		n[1] = hd_held_make(run[1], of[1], holders, nbuckets);
		const struct hd_held_run *found = hd_held_differ(run[0], n[0], run[1], n[1]);
		assert_true(found && found->first <= other && other - found->first < found->n);
	}
}

static void runs_of_other_buckets_are_not_compared(void **state)
{
	const struct hd_held_run a[] = { { 0, 2, 5 }, { 4, 1, 6 } }, b[] = { { 0, 3, 7 }, { 4, 1, 6 } };

	(void)state;
	assert_null(hd_held_differ(a, 2, b, 2));
	assert_null(hd_held_differ(a, 2, b, 0));
	assert_null(hd_held_differ(a, 0, b, 2));
	assert_ptr_equal(hd_held_of(a, 2, 4, 1), &a[1]);
	assert_null(hd_held_of(a, 2, 4, 2));
	assert_null(hd_held_of(a, 2, 1, 1));
}

/* Cut alike, or of other buckets. */
static void runs_that_lie_across_one_another_were_not_compared(void **state)
{
	static const struct { struct hd_held_run a[3], b[3]; uint32_t na, nb; bool all, met; } rows[] = {
		{ { { 0, 2, 1 }, { 2, 3, 1 } }, { { 2, 3, 1 } }, 2, 1, true, true },
		{ { { 0, 2, 1 } }, { { 2, 3, 1 } }, 1, 1, true, false },
		{ { { 0, 2, 1 } }, { { 0, 0, 1 } }, 1, 0, true, false },
		{ { { 0, 2, 1 }, { 2, 3, 1 } }, { { 0, 2, 1 }, { 2, 2, 1 } }, 2, 2, false, true },
		{ { { 1, 4, 1 } }, { { 0, 2, 1 } }, 1, 1, false, false },
		{ { { 0, 1, 1 }, { 4, 1, 1 }, { 8, 2, 1 } }, { { 1, 3, 1 }, { 5, 1, 1 }, { 8, 2, 1 } }, 3, 3, true, true },
		{ { { 4, UINT32_MAX, 1 } }, { { 6, 1, 1 } }, 1, 1, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int turned = 0; turned < 2; turned++) {
			const struct hd_held_run *a = turned ? rows[i].b : rows[i].a,
				*b = turned ? rows[i].a : rows[i].b;
			bool met = false;
			CHECK(hd_held_meet(a, turned ? rows[i].nb : rows[i].na, b, turned ? rows[i].na :
				rows[i].nb, &met) == rows[i].all && met == rows[i].met, "row %zu", i);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_end_where_holders_do),
		cmocka_unit_test(many_buckets_make_few_runs),
		cmocka_unit_test(a_bucket_that_differs_is_found),
		cmocka_unit_test(runs_that_lie_across_one_another_were_not_compared),
		cmocka_unit_test(runs_of_other_buckets_are_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
