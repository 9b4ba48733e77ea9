#include "cost/reuse.h"

#include <math.h>

#include "tests/check.h"

static void between_two_points_lies_a_line(void **state)
{
	const struct hd_reuse r = { { { 1, 1.5, 2.5 }, { 1, 1, 1 }, { 1, 3, 3 }, { 2, 2, 3 }, { 1, 1, 5 } } };
	/* a distance, and what F, I, W, and I and W apart take there, by hand */
	static const double rows[][1 + HD_REUSE_KINDS] = { { 0, 1, 1, 1, 2, 1 }, { 0.3, 1, 1, 1, 2, 1 },
		{ 1, 1, 1, 1, 2, 1 }, { 1.5, 1.25, 1, 2, 2, 1 }, { 2, 1.5, 1, 3, 2, 1 },
		{ 2.5, 1.75, 1, 3, 2.25, 2 }, { 3, 2, 1, 3, 2.5, 3 }, { 4, 2.5, 1, 3, 3, 5 },
		{ 99, 2.5, 1, 3, 3, 5 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int k = 0; k < HD_REUSE_KINDS; k++) {
			const double by = hd_reuse_at(&r, (enum hd_reuse_kind)k, rows[i][0]);
			CHECK(fabs(by - rows[i][k + 1]) < 1e-12, "distance %g, kind %d: %g", rows[i][0], k,
				by);
		}
}

static void a_longer_way_is_never_shorter(void **state)
{
	/* nanoseconds as measured: rising, falling, falling and rising; apart against the same within B */
	struct hd_reuse r = { { { 200, 250, 300 }, { 200, 150, 100 }, { 100, 90, 120 }, { 250, 200, 300 },
		{ 90, 130, 125 } } }, none;
	const struct hd_reuse want = { { { 1, 1.25, 1.5 }, { 1, 1, 1 }, { 1, 1, 1.2 }, { 1.25, 1.25, 1.5 },
		{ 1, 1.3, 1.3 } } };

	(void)state;
	hd_reuse_settle(&r);
	for (int i = 0; i < HD_REUSE_KINDS; i++)
		for (int k = 0; k < HD_REUSE_POINTS; k++)
			CHECK(fabs(r.by[i][k] - want.by[i][k]) < 1e-12, "kind %d, point %d: %g", i, k,
				r.by[i][k]);
	r = (struct hd_reuse){ { { 0, 0, 0 }, { 0, 5, 5 }, { 0, 0, 0 }, { 3, 4, 5 }, { 0, 0, 1 } } };
	hd_reuse_settle(&r);
	hd_reuse_none(&none);
	assert_memory_equal(&r, &none, sizeof r);
	assert_true(hd_reuse_at(&none, HD_REUSE_F, 7) == 1 && hd_reuse_at(&none, HD_REUSE_W_APART, 0) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(between_two_points_lies_a_line),
		cmocka_unit_test(a_longer_way_is_never_shorter) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
