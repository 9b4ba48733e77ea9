#include "daemon/allowance.h"

#include "tests/check.h"

enum { ADA = 1001, BOB = 1002, S = 1000000000 };
#define MOST HD_ALLOWANCE_MOST_NS

static void a_user_that_took_all_waits_and_others_do_not(void **state)
{
	struct hd_allowance a = { 0 };
	int64_t t = 5 * (int64_t)S;
	(void)state;

	assert_true(hd_allowance_left(&a, ADA, t) == MOST && !hd_allowance_wait(&a, ADA, t));
	hd_allowance_took(&a, ADA, t, MOST - 1);
	assert_true(hd_allowance_left(&a, ADA, t) == 1 && !hd_allowance_wait(&a, ADA, t));
	hd_allowance_took(&a, ADA, t, S + 1);
	assert_true(hd_allowance_left(&a, ADA, t) == -S);
	assert_true(hd_allowance_left(&a, BOB, t) == MOST);
	int64_t wait = hd_allowance_wait(&a, ADA, t);
	assert_true(wait >= 4 * (int64_t)S && wait < 4 * (int64_t)S + 10);
	assert_true(hd_allowance_left(&a, ADA, t + wait - 5) <= 0 && hd_allowance_left(&a, ADA,
		t + wait) > 0);
	/* an array of a thousand is paid for with the disk's time */
	assert_true(hd_allowance_price(S, 1000) == 4 * (int64_t)S && hd_allowance_price(S, 1) == S);
	assert_true(hd_allowance_price(7, 0) == 7);
	/* not beyond what one may have at once, however long it was silent; nor for time that goes back */
	assert_true(hd_allowance_left(&a, ADA, INT64_MAX) == MOST);
	assert_true(hd_allowance_left(&a, ADA, t - S) == -S);
}

/* Over any stretch no user has more than what it may have at once and its part of the time. */
static void in_the_long_run_it_is_a_part_of_the_time(void **state)
{
	struct hd_allowance a = { 0 };
	int64_t took = 0, t = 0;
	uint32_t rng = 1, refused = 0;
	(void)state;

	for (int i = 0; i < 20000; i++) {
		rng = rng * 1664525u + 1013904223u;
		int64_t each = (int64_t)(rng >> 8) * 10;          /* up to 0.17 s */
		t += (int64_t)(rng & 0xffff) * 100;
		if (hd_allowance_left(&a, ADA, t) <= 0) {
			refused++;
			continue;
		}
		hd_allowance_took(&a, ADA, t, each);
		took += each;
		CHECK(took <= MOST + t / HD_ALLOWANCE_PART + 17 * (S / 100) * 1LL, "%lld of %lld ns",
			(long long)took, (long long)t);
	}
	CHECK(refused > 1000 && took > t / 5, "%u refused, %lld of %lld ns", refused, (long long)took,
		(long long)t);
}

static void a_debt_is_not_forgotten_for_those_that_ask_little(void **state)
{
	struct hd_allowance a = { 0 };
	(void)state;

	hd_allowance_took(&a, ADA, 0, 2 * MOST);
	for (uint32_t uid = 5000; uid < 5000 + 10 * HD_ALLOWANCE_USERS; uid++)
		hd_allowance_took(&a, uid, 0, 1 + uid % 7);
	assert_int_equal(a.n, HD_ALLOWANCE_USERS);
	assert_true(hd_allowance_left(&a, ADA, 0) == -MOST);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_that_took_all_waits_and_others_do_not),
		cmocka_unit_test(in_the_long_run_it_is_a_part_of_the_time),
		cmocka_unit_test(a_debt_is_not_forgotten_for_those_that_ask_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
