#include "spot/reconfigure.h"

#include <math.h>

#include "tests/check.h"

/* Each rule alone: what fires it, and the same with one device fewer, which does not. */
static void each_rule_fires_alone(void **state)
{
	static const struct { struct hd_spot_standing s; enum hd_reconfigure want; } rows[] = {
		{ { 47, 1, 1, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_REPLACE },
		{ { 47, 0, 1, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_GO_ON },
		{ { 46, 1, 2, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_REBALANCE },
		{ { 40, 0, 1, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_GO_ON },      /* 2 of 40 is the risk, not more */
		{ { 39, 0, 1, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_REBALANCE },
		{ { 24, 12, 0, 2, 4, 12, 50000, 0 }, HD_RECONFIGURE_GROW },
		{ { 24, 11, 0, 2, 4, 12, 50000, 0 }, HD_RECONFIGURE_GO_ON },
		{ { 48, 12, 0, 4, 4, 12, 50000, 0 }, HD_RECONFIGURE_GO_ON },     /* never more than may be */
		{ { 48, 0, 0, 4, 4, 12, 0, 0 }, HD_RECONFIGURE_GO_ON },
		{ { .active = 48, .pipelines = 4, .most = 4, .stages = 12, .leaving = 1 },
		  HD_RECONFIGURE_EVACUATE },
		{ { 47, 1, 1, 4, 4, 12, 50000, 1 }, HD_RECONFIGURE_EVACUATE },
		{ { 23, 13, 1, 2, 4, 12, 50000, 0 }, HD_RECONFIGURE_REPLACE },   /* the first that holds */
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(hd_reconfigure(&rows[i].s) == rows[i].want, "row %zu", i);
}

/* As the rules stand in text, in real numbers. */
static void small_standings_are_judged_as_the_rules_read(void **state)
{
	(void)state;
	for (uint32_t stages = 1; stages <= 4; stages++)
		for (uint32_t d = 1; d <= 3; d++)
			for (uint32_t x = 0; 2 * x <= d * stages; x++)
				for (uint32_t w = 0; w <= 9; w++) {
					const double a = d * stages - x;
					enum hd_reconfigure want = HD_RECONFIGURE_GO_ON;
					if (fmin(floor((a + w) / stages), 3) > d)
						want = HD_RECONFIGURE_GROW;
					if (x > 0 && 2.0 * x / a > 0.3)
						want = HD_RECONFIGURE_REBALANCE;
					if (x > 0 && w >= x)
						want = HD_RECONFIGURE_REPLACE;
					const struct hd_spot_standing s = { (uint32_t)a, w, x, d, 3, stages,
						300000, 0 };
					CHECK(hd_reconfigure(&s) == want, "%u stages, D %u, x %u, w %u",
						stages, d, x, w);
				}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_fires_alone),
		cmocka_unit_test(small_standings_are_judged_as_the_rules_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
