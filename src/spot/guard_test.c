/* When a run needs redundancy: against the rules read off the whole history of losses. */
#include "spot/guard.h"

#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

enum { MOST = 400 };

struct loss { uint32_t worker; bool in_time; };

/* All losses so far, oldest first: the state follows from the last time that it changed. */
static bool wants(const struct loss *loss, uint32_t n)
{
	bool on = true;
	uint32_t since = 0;

	for (uint32_t i = 1; i <= n; i++) {
		uint32_t good = 0;
		if (!on && !loss[i - 1].in_time) {
			on = true;
			since = i;
		}
		for (uint32_t k = i >= 20 ? i - 20 : 0; k < i; k++)
			good += loss[k].in_time;
		if (on && i - since >= 20 && good >= 19)
			on = false;
	}
	return on;
}

static void it_follows_from_the_history_of_losses(void **state)
{
	static struct loss loss[MOST];
	uint32_t turns = 0, offs = 0;

	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct hd_guard g = { .n = 0 };
		bool was = true;
		for (uint32_t n = 0; n < MOST; n++) {
			const uint32_t counter[4] = { n, seed, 0, 0 };
			const struct hd_philox x = hd_philox(counter, hd_philox_key(5, HD_RNG_CLUSTER));
			/* shares of 0.5 to nearly 1; bad times in between */
			const uint32_t bad = n / 100 % 2 ? 4 : 40 + seed;
			loss[n] = (struct loss){ n, x.word[0] % bad != 0 };
			if (loss[n].in_time)
				hd_guard_left(&g, n, true);
			else
				hd_guard_lost(&g, n);
			if (x.word[1] % 4 == 0)
				hd_guard_left(&g, MOST + n, false);      /* asked to go: no loss */
			if (n % 7 == 3) {                 /* another coordinator goes on with it */
				uint8_t bytes[HD_GUARD_BYTES];
				struct hd_guard next = { .n = 0 };
				hd_guard_put(&g, bytes);
				memset(&g, 0x5a, sizeof g);
				assert_true(hd_guard_take(&next, bytes, sizeof bytes));
				g = next;
			}
			const bool is = hd_guard_wants(&g);
			CHECK(is == wants(loss, n + 1), "seed %u, loss %u: %s", seed, n, is ? "on" : "off");
			turns += is != was;
			offs += !is;
			was = is;
		}
	}
	CHECK(turns > 400 && offs > 5000, "%u turns, off after %u losses", turns, offs);
}

static void one_that_dies_before_it_has_left_was_not_in_time(void **state)
{
	struct hd_guard g = { .n = 0 };
	char why[HD_GUARD_WORDS];

	(void)state;
	assert_string_equal(hd_guard_why(&g, why),
		"on: 0 of 0 losses since it is on were announced in time; off with 19 of 20");
	for (uint32_t i = 0; i < 19; i++)
		hd_guard_left(&g, i, true);
	hd_guard_lost(&g, 3);
	hd_guard_lost(&g, 3);                     /* said once more */
	assert_true(hd_guard_wants(&g) && g.n == 19);
	hd_guard_left(&g, 20, true);
	assert_string_equal(hd_guard_why(&g, why), "off: 19 of the last 20 losses were announced in time");
	assert_false(hd_guard_wants(&g));
	hd_guard_left(&g, 21, true);
	assert_false(hd_guard_wants(&g));
	hd_guard_lost(&g, 21);
	assert_true(hd_guard_wants(&g) && g.n == 0);
	for (uint32_t i = 30; i < 50; i++) {
		assert_true(hd_guard_wants(&g));
		hd_guard_left(&g, i, true);
	}
	assert_false(hd_guard_wants(&g));
}

static void other_bytes_are_not_taken(void **state)
{
	static const struct { size_t at; uint8_t is; } bad[] = { { HD_GUARD_BYTES - 3, HD_GUARD_LOSSES },
		{ HD_GUARD_BYTES - 2, HD_GUARD_LOSSES + 1 }, { HD_GUARD_BYTES - 1, 2 } };
	struct hd_guard g = { .n = 0 };
	uint8_t bytes[HD_GUARD_BYTES];

	(void)state;
	hd_guard_lost(&g, 7);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		hd_guard_put(&g, bytes);
		assert_true(hd_guard_take(&g, bytes, sizeof bytes) && g.n == 1 && g.worker[0] == 7);
		bytes[bad[i].at] = bad[i].is;
		assert_false(hd_guard_take(&g, bytes, sizeof bytes));
		assert_true(g.n == 1);
	}
	assert_false(hd_guard_take(&g, bytes, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_follows_from_the_history_of_losses),
		cmocka_unit_test(one_that_dies_before_it_has_left_was_not_in_time),
		cmocka_unit_test(other_bytes_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
