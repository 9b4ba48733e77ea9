/* Terms as texts: what is written is read again, and nothing else is. */
#include <string.h>

#include "base/arena.h"
#include "scheduler/terms.h"
#include "tests/check.h"

static void what_a_job_runs_after_is_written_and_read_again(void **state)
{
	struct hd_job_terms terms = { 0 }, again = { 0 };
	char text[HD_TERMS_TEXT], twice[HD_TERMS_TEXT];
	struct hd_diag diag = { "" };
	(void)state;

	hd_terms_put_after(&terms, text);
	assert_string_equal(text, "");
	for (uint32_t n = 0; n < HD_TERMS_AFTER; n++) {
		terms.after[n] = (struct hd_after){ n ? INT64_MAX - n : 7,
			(enum hd_after_kind)(n % HD_AFTER_NKINDS),
			(enum hd_after_now)(n / 3 % HD_AFTER_NNOWS) };
		terms.nafter = n + 1;
		hd_terms_put_after(&terms, text);
		CHECK(!hd_terms_get_after(&again, text, &diag), "%s", diag.text);
		hd_terms_put_after(&again, twice);
		assert_string_equal(text, twice);
		assert_int_equal(again.nafter, n + 1);
	}
	CHECK(!strncmp(text, "7:ok:waits 9223372036854775806:fail:waits ", 42), "%s", text);
	CHECK(!hd_terms_get_after(&again, "", &diag) && again.nafter == 0, "%s", diag.text);
}

static void a_text_that_was_not_written_so_is_refused(void **state)
{
	static const char *const bad[] = { "7", "7:ok", "7:ok:", "7:ok:met ", " 7:ok:met", "0:ok:met",
		"-1:ok:met",
		"7:good:met", "7:ok:done", "7:ok:met  8:ok:met", "7:ok:met:8",
			"99999999999999999999:ok:met", "7:ok met",
		"1:ok:met 2:ok:met 3:ok:met 4:ok:met 5:ok:met 6:ok:met 7:ok:met 8:ok:met 9:ok:met" };
	struct hd_job_terms terms = { .nafter = 5 };
	struct hd_diag diag;
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_terms_get_after(&terms, bad[i], &diag) == HD_E_INPUT && terms.nafter == 5,
			"\"%s\" is read",
			bad[i]);
}

static void an_array_is_ranges_of_indices(void **state)
{
	static const struct { const char *text; uint32_t n, first, last, at_once; } row[] = {
		{ "0", 1, 0, 0, 0 }, { "0-9", 10, 0, 9, 0 }, { "0-9%4", 10, 0, 9, 4 }, { "0-3,8,12-20%1", 14, 0, 20, 1 },
		{ "5,6", 2, 5, 6, 0 }, { "1000000", 1, 1000000, 1000000, 0 }, { "1-1000", 1000, 1, 1000, 0 },
	};
	static const char *const bad[] = { "", "a", "-1", "3-1", "0-", "0-1000", "0,", "0,,1", "1,1",
		"0-3,2", "0%", "0%0",
		"0%x", "0%2 ", "0 1", "1000001", "%3", "0-9,%3", "0-9%1001", "+1" };
	struct hd_tasks tasks;
	struct hd_diag diag;
	(void)state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK(!hd_tasks_read(&tasks, row[i].text, &diag), "%s", diag.text);
		CHECK(tasks.n == row[i].n && tasks.index[0] == row[i].first && tasks.at_once ==
			row[i].at_once &&
			tasks.index[tasks.n - 1] == row[i].last, "%s: %u tasks, %u at once", row[i].text,
				tasks.n,
			tasks.at_once);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_tasks_read(&tasks, bad[i], &diag) == HD_E_INVAL, "\"%s\" is an array", bad[i]);
}

static void an_index_takes_the_place_of_its_mark(void **state)
{
	struct hd_arena arena;
	struct hd_text text;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_tasks_put("job.seed={index}0 {x} {index}{index}", 7, &text);
	assert_string_equal(text.at, "job.seed=70 {x} 77");
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_job_runs_after_is_written_and_read_again),
		cmocka_unit_test(a_text_that_was_not_written_so_is_refused),
		cmocka_unit_test(an_array_is_ranges_of_indices),
		cmocka_unit_test(an_index_takes_the_place_of_its_mark),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
