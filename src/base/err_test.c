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
			: hd_err_radius(all[i]) >= HD_HURT_OP && hd_err_radius(all[i]) <= HD_HURT_PROCESS,
				"row %zu", i);
		for (size_t j = 0; j < i; j++)
			CHECK(all[i] != all[j] && strcmp(hd_err_text(all[i]), hd_err_text(all[j])) != 0,
				"rows %zu and %zu", i, j);
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
		CHECK(hd_err_exit(rows[i].err) == rows[i].exit, "%s: %d", hd_err_text(rows[i].err),
			hd_err_exit(rows[i].err));
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
	assert_int_equal(hd_fail(NULL, HD_E_IO, "no listener"), HD_E_IO);
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

static void what_is_quoted_shows_its_control_characters(void **state)
{
	static const struct { const char *quoted, *shown; } cases[] = {
		{ "plain, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80, two\nlines \\x1b", "plain, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80, two\nlines \\x1b" },
		{ "\x1b[31mred\x07", "\\x1b[31mred\\x07" }, { "\ttab\r", "\\x09tab\\x0d" }, { "del\x7f", "del\\x7f" },
		{ "\xc2\x9b" "31m", "\\xc2\\x9b31m" }, { "\xc2\xa0", "\xc2\xa0" },                     /* C1 controls end before U+00A0 */
		{ "\xff half \xe2\x82", "\\xff half \\xe2\\x82" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		hd_fail(&diag, HD_E_INPUT, "%s", cases[i].quoted);
		assert_string_equal(diag.text, cases[i].shown);
	}
}

/* Escapes and characters of several bytes are whole or not there. */
static void text_is_cut_between_characters(void **state)
{
	static const char *const ends[] = { "\x01\x02\x03\x04", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
		"\xc2\x80\xc2\x80" };
	static const size_t whole[] = { 4, 3, 4 };
	enum { CAP = sizeof((struct hd_diag *)0)->text };
	(void)state;

	for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
		for (int len = CAP - 20; len < CAP + 4; len++) {
			struct hd_diag diag = { "" };
			char line[CAP + 20];
			memset(line, 'x', sizeof line);
			hd_fail(&diag, HD_E_IO, "%.*s%s", len, line, ends[e]);
			size_t n = strspn(diag.text, "x"), nall = strlen(diag.text),
				dots = strcmp(diag.text + nall - 3, "...") == 0 ? 3 : 0;
			assert_true(nall < CAP && n <= (size_t)len && (dots || n == (size_t)len));
			CHECK((nall - n - dots) % whole[e] == 0, "end %zu, %d before it: %s", e, len,
				diag.text + n);
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
		cmocka_unit_test(what_is_quoted_shows_its_control_characters),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(long_text_is_cut_with_dots_exactly_when_it_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
