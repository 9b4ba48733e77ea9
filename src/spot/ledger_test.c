#include "spot/ledger.h"

#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

static void parts_are_dealt_out_of_the_exact_cost(void **state)
{
	/* 1 ms at 1,000,000,000 nano-dollars an hour is 277.77... of them */
	struct hd_spot_ledger l = { 0 };
	struct hd_ledger_sum sum;
	(void)state;

	assert_true(hd_ledger_put(&l, HD_LEDGER_USEFUL, 1, 1000000000));
	assert_true(hd_ledger_put(&l, HD_LEDGER_BUBBLE, 1, 1000000000));
	assert_true(hd_ledger_put(&l, HD_LEDGER_BOOT, 1, 1000000000));
	assert_true(hd_ledger_sum(&l, &sum));
	assert_true(sum.ms == 3 && sum.nano_usd == 833);
	assert_true(sum.part[HD_LEDGER_USEFUL] == 277 && sum.part[HD_LEDGER_BUBBLE] == 278 &&
		sum.part[HD_LEDGER_BOOT] == 278 && sum.part[HD_LEDGER_REDO] == 0);
}

/* Against the sum of the products, below 2^64: random parts, times and prices, some that change. */
static void parts_sum_to_all_that_was_paid(void **state)
{
	(void)state;
	for (uint32_t draw = 0; draw < DRAWS(2000); draw++) {
		struct hd_spot_ledger l = { 0 };
		struct hd_ledger_sum sum;
		int64_t ms = 0, parts_ms = 0, parts_nano = 0;
		uint64_t numerator = 0;

		for (uint32_t i = 0; i < draw % 50; i++) {
			const uint32_t counter[4] = { i, draw, 0, 0 };
			struct hd_philox x = hd_philox(counter, 5);
			int64_t t = x.word[1] % 3000000, price = x.word[2] % 4000000000u;
			assert_true(hd_ledger_put(&l, x.word[0] % HD_NLEDGER, t, price));
			ms += t;
			numerator += (uint64_t)t * (uint64_t)price;
		}
		assert_true(hd_ledger_sum(&l, &sum));
		for (int p = 0; p < HD_NLEDGER; p++) {
			CHECK(sum.part[p] >= l.nano_usd[p] && sum.part[p] <= l.nano_usd[p] + 1,
				"draw %u: a part is rounded by more than one", draw);
			parts_ms += l.ms[p];
			parts_nano += sum.part[p];
		}
		CHECK(sum.ms == ms && parts_ms == ms, "draw %u: times", draw);
		CHECK(sum.nano_usd == parts_nano && (uint64_t)parts_nano == numerator / 3600000,
			"draw %u: %lld", draw, (long long)parts_nano);
	}
}

static void what_does_not_fit_changes_nothing(void **state)
{
	struct hd_spot_ledger l = { 0 }, before;
	struct hd_ledger_sum sum = { .ms = -1 };
	(void)state;

	assert_true(hd_ledger_put(&l, HD_LEDGER_REDO, INT64_MAX - 5, 1000));
	before = l;
	assert_false(hd_ledger_put(&l, HD_LEDGER_REDO, 6, 1));
	assert_false(hd_ledger_put(&l, HD_LEDGER_BOOT, INT64_MAX, INT64_MAX));
	assert_memory_equal(&l, &before, sizeof l);
	assert_true(hd_ledger_put(&l, HD_LEDGER_BOOT, 6, 1));
	assert_false(hd_ledger_sum(&l, &sum));
	assert_true(sum.ms == -1);
}

static void names_are_those_of_the_table(void **state)
{
	(void)state;
	assert_string_equal(hd_ledger_names[HD_LEDGER_USEFUL], "useful");
	assert_string_equal(hd_ledger_names[HD_LEDGER_BOOT], "boot");
	assert_int_equal(HD_NLEDGER, 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_dealt_out_of_the_exact_cost),
		cmocka_unit_test(parts_sum_to_all_that_was_paid),
		cmocka_unit_test(what_does_not_fit_changes_nothing),
		cmocka_unit_test(names_are_those_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
