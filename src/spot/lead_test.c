#include "spot/lead.h"

#include "tests/check.h"

/* One row fires each answer alone, and one stands on each side of each bound. */
static void each_answer_has_its_lead_time(void **state)
{
	static const struct { struct hd_lead_case c; enum hd_lead want; } rows[] = {
		/* a risk, whatever else; an end that is far off, to the millisecond */
		{ { .risk = true, .left_ms = 1 }, HD_LEAD_NOTE },
		{ { .left_ms = 150001 }, HD_LEAD_NOTE },
		{ { .left_ms = 150000 }, HD_LEAD_EVACUATE },
		/* all go: the checkpoint fits, or does not; whatever a step takes */
		{ { .all = true, .left_ms = 30000, .save_ms = 27000, .step_ms = 99999 }, HD_LEAD_SAVE },
		{ { .all = true, .left_ms = 30000, .save_ms = 27001, .held = true }, HD_LEAD_LOSE },
		/* EC2's two minutes, five seconds of margin: step and move */
		{ { .left_ms = 120000, .step_ms = 15000, .ship_ms = 100000 }, HD_LEAD_EVACUATE },
		{ { .left_ms = 120000, .step_ms = 15001, .ship_ms = 100000, .held = true },
		  HD_LEAD_HAND_OVER },
		{ { .left_ms = 120000, .step_ms = 15001, .ship_ms = 100000 }, HD_LEAD_LOSE },
		/* GCE's thirty seconds, three of margin: the step alone */
		{ { .left_ms = 30000, .step_ms = 27000, .ship_ms = 1, .held = true }, HD_LEAD_HAND_OVER },
		{ { .left_ms = 30000, .step_ms = 27001, .held = true }, HD_LEAD_LOSE },
		/* late: the end is now, or was; times that would overflow a sum */
		{ { .left_ms = 0, .step_ms = 1, .held = true }, HD_LEAD_LOSE },
		{ { .left_ms = -5, .step_ms = 1 }, HD_LEAD_LOSE },
		{ { .left_ms = INT64_MIN, .step_ms = 1 }, HD_LEAD_LOSE },
		{ { .left_ms = 100000, .step_ms = INT64_MAX, .ship_ms = INT64_MAX }, HD_LEAD_LOSE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(hd_lead_answer(&rows[i].c) == rows[i].want, "row %zu: %s, not %s", i,
			hd_lead_names[hd_lead_answer(&rows[i].c)], hd_lead_names[rows[i].want]);
}

/* More time never makes an answer worse: the order of the table is that of what is kept. */
static void more_time_is_never_worse(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++) {
		struct hd_lead_case c = { .all = i & 1, .held = i & 2, .step_ms = 1000 * (1 + i % 7),
			.ship_ms = 500 * (i % 5), .save_ms = 3000 * (i % 3) };
		enum hd_lead last = HD_LEAD_LOSE;
		for (c.left_ms = 0; c.left_ms <= HD_LEAD_AHEAD_MS + 2000; c.left_ms += 250) {
			const enum hd_lead now = hd_lead_answer(&c);
			CHECK(now <= last, "case %d: %s with %lld ms, %s with less", i, hd_lead_names[now],
				(long long)c.left_ms, hd_lead_names[last]);
			last = now;
		}
		assert_int_equal(last, HD_LEAD_NOTE);
	}
	assert_true(hd_lead_usable_ms(120000) == 115000 && hd_lead_usable_ms(30000) == 27000 &&
		hd_lead_usable_ms(9) == 9 && hd_lead_usable_ms(-1) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_has_its_lead_time),
		cmocka_unit_test(more_time_is_never_worse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
