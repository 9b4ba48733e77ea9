#include "base/err.h"

#include <string.h>

#include "tests/check.h"

static const enum hd_err all[] = {
#define X(id, code, exit, text) HD_##id,
	HD_ERRS(X)
#undef X
};
enum { N = sizeof all / sizeof all[0] };

static void every_row_has_its_own_code_text_and_a_radius(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		CHECK(strcmp(hd_err_text(all[i]), "unknown error") != 0, "row %zu", i);
		CHECK(all[i] == HD_OK ? hd_err_radius(all[i]) == HD_UNHURT
			: hd_err_radius(all[i]) >= HD_HURT_OP && hd_err_radius(all[i]) <= HD_HURT_PROCESS, "row %zu", i);
		for (size_t j = 0; j < i; j++)
			CHECK(all[i] != all[j] && strcmp(hd_err_text(all[i]), hd_err_text(all[j])) != 0, "rows %zu and %zu", i, j);
	}
}

static void radii_follow_the_hundreds(void **state)
{
	(void)state;
	assert_int_equal(hd_err_radius(HD_E_STALE), HD_HURT_OP);
	assert_int_equal(hd_err_radius(HD_E_PEERLOST), HD_HURT_PEER);
	assert_int_equal(hd_err_radius(HD_E_DIVERGED), HD_HURT_JOB);
	assert_int_equal(hd_err_radius(HD_E_NOMEM), HD_HURT_PROCESS);
}

/* The manual's table, by hand: schedulers act on these. */
static void exit_codes_are_those_of_the_manual(void **state)
{
	static const struct { enum hd_err err; int exit; } rows[] = {
		{ HD_OK, 0 }, { HD_E_BUG, 1 }, { HD_E_INVAL, 2 }, { HD_E_BADPLAN, 2 }, { HD_E_INPUT, 3 }, { HD_E_DIVERGED, 4 },
		{ HD_E_INTEGRITY, 5 }, { HD_E_WORKERS, 10 }, { HD_E_REFUSED, 11 }, { HD_E_IO, 11 }, { HD_E_NOMEM, 11 },
		{ HD_E_PREEMPTED, 75 }, { HD_E_INTERRUPT, 130 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		CHECK(hd_err_exit(rows[i].err) == rows[i].exit, "%s: %d", hd_err_text(rows[i].err), hd_err_exit(rows[i].err));
}

static void codes_outside_the_table_are_still_answered(void **state)
{
	(void)state;
	assert_string_equal(hd_err_text((enum hd_err)-999), "unknown error");
	assert_int_equal(hd_err_exit((enum hd_err)-999), 1);
}

static void the_first_to_know_speaks(void **state)
{
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_fail(&diag, HD_E_IO, "disk %d", 7), HD_E_IO);
	assert_int_equal(hd_fail(&diag, HD_E_INVAL, "later"), HD_E_INVAL);
	assert_string_equal(diag.text, "disk 7");
}

static void no_diag_is_needed(void **state)
{
	(void)state;
	assert_int_equal(hd_fail(NULL, HD_E_IO, "nobody listens"), HD_E_IO);
}

static void long_text_is_cut_with_dots_exactly_when_it_does_not_fit(void **state)
{
	char line[sizeof((struct hd_diag *)0)->text + 10];
	(void)state;

	for (int len = (int)sizeof((struct hd_diag *)0)->text - 3; len < (int)sizeof line; len++) {
		struct hd_diag diag = { "" };
		memset(line, 'x', sizeof line);
		assert_int_equal(hd_fail(&diag, HD_E_IO, "%.*s", len, line), HD_E_IO);
		size_t fits = sizeof diag.text - 1, want = (size_t)len < fits ? (size_t)len : fits;
		CHECK(strlen(diag.text) == want, "%d", len);
		CHECK((strcmp(diag.text + want - 3, "...") == 0) == ((size_t)len > fits), "%d", len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_its_own_code_text_and_a_radius),
		cmocka_unit_test(radii_follow_the_hundreds),
		cmocka_unit_test(exit_codes_are_those_of_the_manual),
		cmocka_unit_test(codes_outside_the_table_are_still_answered),
		cmocka_unit_test(the_first_to_know_speaks),
		cmocka_unit_test(no_diag_is_needed),
		cmocka_unit_test(long_text_is_cut_with_dots_exactly_when_it_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
