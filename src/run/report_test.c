#include "run/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "run/report_int.h"
#include "tests/check.h"

static struct hd_arena arena;

static void put(struct hd_fs *fs, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "/run/%s", name);
	assert_int_equal(hd_file_write_atomic(fs, path, text, strlen(text), NULL), HD_OK);
}

/* The page made of these three files (NULL: absent). */
static const char *page_of(const char *metrics, const char *events, const char *job)
{
	struct hd_rundir dir = { .path = "/run" };
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	uint8_t *page;
	size_t len;

	hd_fs_sim_init(&sim);
	dir.fs = &sim.fs;
	assert_int_equal(hd_fs_mkdir(&sim.fs, "/run", NULL), HD_OK);
	if (metrics)
		put(&sim.fs, "metrics.ndjson", metrics);
	if (events)
		put(&sim.fs, "events.ndjson", events);
	if (job)
		put(&sim.fs, "job.resolved.json", job);
	CHECK(hd_report_write(&dir, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_file_read_all(&sim.fs, "/run/report.html", &arena, 1 << 24, &page, &len, NULL),
		HD_OK);
	hd_fs_sim_finish(&sim);
	return (const char *)page;
}

static void a_run_without_steps_says_so(void **unused)
{
	(void)unused;
	assert_non_null(strstr(page_of(NULL, NULL, NULL), "no steps recorded yet"));
	assert_non_null(strstr(page_of("", "", "{}"), "no events recorded"));
}

static void the_page_needs_nothing_and_runs_nothing(void **unused)
{
	const char *page = page_of("{\"step\":0,\"loss\":2}\n", "",
		"{\"job\":{\"name\":\"<script>x</script>\"}}");
	(void)unused;
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_non_null(strstr(page, "default-src 'none'"));
	assert_non_null(strstr(page, "&lt;script&gt;"));
	assert_non_null(strstr(page, "job.name"));
}

static void unreadable_lines_are_counted_and_said(void **unused)
{
	(void)unused;
	const char *page = page_of("{\"step\":0,\"loss\":2}\n{\"step\":1,\"lo\nrubbish\n", "{}\n", NULL);
	assert_non_null(strstr(page, "3 lines of metrics or events could not be read"));
}

static void the_last_record_of_a_step_counts(void **unused)
{
	(void)unused;
	const char *page =
		page_of("{\"step\":0,\"loss\":4}\n{\"step\":1,\"loss\":900}\n{\"step\":2,\"loss\":901}\n"
		"{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2.5,\"digest\":\"abc\"}\n", NULL, NULL);
	assert_non_null(strstr(page, "4 &rarr; 2.5"));
	assert_null(strstr(page, ">500<"));          /* no axis reaches for what was undone */
	assert_null(strstr(page, ">200<"));
	assert_non_null(strstr(page, "abc"));
}

static void evaluations_are_dots(void **unused)
{
	(void)unused;
	const char *page = page_of("{\"step\":0,\"loss\":4}\n{\"step\":1,\"loss\":3}\n",
		"{\"v\":1,\"t\":1.5,\"kind\":\"eval\",\"step\":1,\"membership\":0,\"split\":\"valid\","
		"\"loss\":3.25}\n", NULL);
	assert_non_null(strstr(page, "<title>step 1: 3.25</title>"));
	assert_non_null(strstr(page, "split valid, loss 3.25"));
}

static void values_that_are_not_finite_are_counted(void **unused)
{
	(void)unused;
	const char *page = page_of("{\"step\":0,\"loss\":4}\n{\"step\":1,\"loss\":\"nan\"}\n", NULL, NULL);
	assert_non_null(strstr(page, "1 values were not finite"));
	assert_null(strstr(page, "nan\"/>"));
}

/* Against a plain loop over all values: no spike is lost, however far the curve was thinned. */
static void a_long_curve_keeps_its_spikes(void **unused)
{
	static struct hd_curve c;
	(void)unused;
	for (uint64_t n = 1; n <= 300000; n = n * 7 + 1) {
		double low = 0, high = 0;
		memset(&c, 0, sizeof c);
		for (uint64_t s = 0; s < n; s++)
			hd_curve_add(&c, s, s == n / 3 ? 1000 : s == n / 2 ? -1000 : sin((double)s));
		assert_true(c.nbins <= HD_CURVE_BINS && hd_curve_range(&c, &low, &high));
		CHECK(n < 2 || low == -1000, "%llu steps", (unsigned long long)n);
		CHECK(n < 4 || high == 1000, "%llu steps", (unsigned long long)n);
		CHECK((uint64_t)c.nbins * c.width >= n && (uint64_t)(c.nbins - 1) * c.width < n, "%llu steps",
			(unsigned long long)n);
		hd_curve_cut(&c, 0);
		assert_false(hd_curve_range(&c, &low, &high));
	}
}

static int begin(void **unused)
{
	(void)unused;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	hd_arena_finish(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_without_steps_says_so),
		cmocka_unit_test(the_page_needs_nothing_and_runs_nothing),
		cmocka_unit_test(unreadable_lines_are_counted_and_said),
		cmocka_unit_test(the_last_record_of_a_step_counts),
		cmocka_unit_test(evaluations_are_dots),
		cmocka_unit_test(values_that_are_not_finite_are_counted),
		cmocka_unit_test(a_long_curve_keeps_its_spikes),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
