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

/* Elements are closed in the order they were opened, attributes are quoted, ampersands begin an entity. */
static void check_well_formed(const char *page)
{
	static char open[64][16];
	uint32_t depth = 0;

	for (const char *at = strchr(page, '\n'); *at; at++) {         /* behind the doctype */
		if (*at == '&') {
			size_t len = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
			CHECK(len && at[1 + len] == ';', "a bare ampersand: %.40s", at);
		}
		CHECK(*at != '>', "a bare '>': %.40s", at - 20);
		if (*at != '<')
			continue;
		bool closes = at[1] == '/';
		const char *name = at + 1 + closes;
		size_t len = strcspn(name, " />");
		for (at = name + len; *at && *at != '>'; at++)
			if (*at == '"') {
				CHECK(at[-1] == '=', "a quote: %.40s", at);
				at += 1 + strcspn(at + 1, "\"<");
				CHECK(*at == '"', "an attribute without its end: %.40s", name);
			}
		CHECK(*at == '>' && len < sizeof open[0], "a tag without its end: %.40s", name);
		if (closes) {
			CHECK(depth && strlen(open[depth - 1]) == len &&
				!memcmp(open[depth - 1], name, len), "%.*s is closed inside %s", (int)len,
				name, depth ? open[depth - 1] : "nothing");
			depth--;
		} else if (at[-1] != '/' && strncmp(name, "meta", len) != 0) {
			CHECK(depth < 64, "too deep");
			snprintf(open[depth++], sizeof open[0], "%.*s", (int)len, name);
		}
	}
	CHECK(depth == 0, "%s is not closed", open[depth ? depth - 1 : 0]);
}

static const char *forecast;              /* of the next pages; NULL: none */

/* The page made of these three files (NULL: absent), which is well-formed, whatever they are. */
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
	put(&sim.fs, "job.yaml", "model: {}\n");
	if (metrics)
		put(&sim.fs, "metrics.ndjson", metrics);
	if (events)
		put(&sim.fs, "events.ndjson", events);
	if (job)
		put(&sim.fs, "job.resolved.json", job);
	if (forecast) {
		assert_int_equal(hd_fs_mkdir(&sim.fs, "/run/plan", NULL), HD_OK);
		put(&sim.fs, "plan/0003.plan", "");
		put(&sim.fs, "plan/0003.measured.json", forecast);
	}
	CHECK(hd_report_write(&dir, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_file_read_all(&sim.fs, "/run/report.html", &arena, 1 << 24, &page, &len, NULL),
		HD_OK);
	hd_fs_sim_finish(&sim);
	check_well_formed((const char *)page);
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

/* The newest one, which counts from the beginning; one whose parts are not all of it is passed over. */
static void what_was_paid_is_said_with_its_parts(void **unused)
{
	static const char events[] =
		"{\"kind\":\"paid\",\"step\":5,\"t\":1,\"ms\":1800000,\"nano_usd\":455000000,"
		"\"useful_ms\":1000000,"
		"\"redundant_ms\":0,\"bubble_ms\":800000,\"pause_ms\":0,\"redo_ms\":0,\"rebuild_ms\":0,"
		"\"waiting_ms\":0,\"boot_ms\":0}\n"
		"{\"kind\":\"paid\",\"step\":9,\"t\":2,\"ms\":7200000,\"nano_usd\":1820000007,"
		"\"useful_ms\":3600000,"
		"\"redundant_ms\":0,\"bubble_ms\":1800000,\"pause_ms\":0,\"redo_ms\":900000,\"rebuild_ms\":0,"
		"\"waiting_ms\":0,\"boot_ms\":900000}\n"
		"{\"kind\":\"paid\",\"step\":9,\"t\":3,\"ms\":9,\"nano_usd\":1,\"useful_ms\":10,"
		"\"redundant_ms\":0,\"bubble_ms\":0,\"pause_ms\":0,\"redo_ms\":0,\"rebuild_ms\":0,"
		"\"waiting_ms\":0,\"boot_ms\":0}\n";

	(void)unused;
	const char *page = page_of(NULL, events, NULL);
	assert_non_null(strstr(page, "<dt>paid</dt><dd>2.000 machine hours, $1.820000007: useful 50.0 %, "
		"bubble 25.0 %, redo 12.5 %, boot 12.5 %</dd>"));
	assert_null(strstr(page_of(NULL, "", NULL), "<dt>paid"));
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
	assert_non_null(strstr(page, "1 value was not finite and is not drawn"));
	assert_non_null(strstr(page, "4 &rarr; not finite"));
	assert_null(strstr(page, "nan"));
	page = page_of("{\"step\":0,\"loss\":\"nan\"}\n{\"step\":1,\"loss\":\"inf\"}\n",
		"{\"kind\":\"eval\",\"t\":1,\"step\":1,\"loss\":\"nan\"}\n", NULL);
	assert_non_null(strstr(page, "no value that can be drawn; 2 values were not finite"));
	assert_non_null(strstr(page, "loss not finite on split unnamed"));
	assert_true(strstr(page, "nan") > strstr(page, "<h2>Events"));
}

#define START "{\"v\":1,\"t\":0.5,\"kind\":\"job_start\",\"step\":0,\"membership\":0,\"steps\":40}\n"
#define END(exit, text) "{\"v\":1,\"t\":75,\"kind\":\"job_end\",\"step\":2,\"membership\":0,\"steps\":40," \
	"\"exit\":" exit ",\"text\":\"" text "\"}\n"
#define EVAL "{\"v\":1,\"t\":2,\"kind\":\"eval\",\"step\":2,\"membership\":0,\"split\":\"valid\"," \
	"\"loss\":0.5,\"accuracy\":0.625,\"perplexity\":1.6,\"rows\":8}\n"
#define STEP(n, loss) "{\"step\":" n ",\"t\":1,\"loss\":" loss ",\"lr\":0.25,\"gnorm\":3,\"workers\":1," \
	"\"step_ms\":5}\n"

static void the_head_says_how_it_ended(void **unused)
{
	static const struct { const char *events, *said; } rows[] = {
		{ "", "<b class=\"bad\">died</b> (interrupted, no end is recorded" },
		{ START, "<b class=\"bad\">died</b> (interrupted, no end is recorded" },
		{ START END("0", ""), "<b class=\"good\">done</b> (all steps are done), exit code 0<" },
		{ START END("75", "somebody asked"), "<b class=\"\">stopped</b> (it was asked to; "
			"<code>heddle resume</code> goes on), exit code 75: somebody asked<" },
		{ START END("130", "stop"), "<b class=\"\">stopped</b>" },
		{ START END("4", "loss is <nan> after step 1"), "<b class=\"bad\">failed</b> "
			"(an error ended it), exit code 4: loss is &lt;nan&gt; after step 1<" },
		{ START END("75", "") START, "<b class=\"bad\">died</b>" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *page = page_of(STEP("0", "4") STEP("1", "2"), rows[i].events, NULL);
		CHECK(strstr(page, rows[i].said), "row %zu: no %s in %.400s", i, rows[i].said,
			strstr(page, "<dl>"));
	}
	assert_non_null(strstr(page_of(NULL, NULL, NULL), "<b class=\"\">new</b> (no step was begun)"));
}

static void the_head_has_metric_steps_time_and_devices(void **unused)
{
	(void)unused;
	const char *page = page_of(STEP("0", "4") STEP("1", "2"), START EVAL END("0", ""), NULL);
	assert_non_null(strstr(page, "<dt>final metric</dt><dd>accuracy 62.5 %, loss 0.5 on split valid "
		"after step 2</dd>"));
	assert_non_null(strstr(page, "<dt>steps</dt><dd>2 of 40</dd>"));
	assert_non_null(strstr(page, "<dt>time</dt><dd>1 min 15 s</dd>"));
	assert_non_null(strstr(page, "<dt>devices</dt><dd>not recorded, 1 worker</dd>"));
	page = page_of(STEP("0", "4"), START, NULL);
	assert_non_null(strstr(page, "training loss 4; no evaluation recorded"));
	assert_non_null(strstr(page, "<dt>steps</dt><dd>1 of 40</dd>"));
	/* t starts at 0 with each process: 75 s and 75 s */
	page = page_of(STEP("0", "4"), START END("75", "") START END("0", ""), NULL);
	assert_non_null(strstr(page, "<dt>time</dt><dd>2 min 30 s</dd>"));
	page = page_of("{\"step\":0,\"loss\":4,\"workers\":3}\n{\"step\":1,\"loss\":4,\"workers\":5}\n"
		"{\"step\":2,\"loss\":4,\"workers\":2}\n", NULL, NULL);
	assert_non_null(strstr(page, "2 workers at the end (from 2 to 5)"));
}

static void there_is_a_curve_of_each_thing_that_is_recorded(void **unused)
{
	static const char *const titles[] = { "Loss", "Accuracy", "Learning rate", "Gradient norm",
		"Step time" };

	(void)unused;
	const char *page = page_of(STEP("0", "4") STEP("1", "2"), START EVAL, NULL), *at = page;
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
		char heading[40];
		snprintf(heading, sizeof heading, "<h2>%s <small>", titles[i]);
		at = strstr(at, heading);
		CHECK(at, "%s", titles[i]);
		CHECK(strstr(at, "<svg") && strstr(at, "<svg") < strstr(at, "</section>"), "%s", titles[i]);
	}
	assert_non_null(strstr(page, "<title>step 2: 62.5</title>"));
	assert_non_null(strstr(page, "line: evaluations in order; dots: evaluations"));
	page = page_of(STEP("0", "4"), START, NULL);
	assert_non_null(strstr(page, "<h2>Accuracy</h2><p class=\"empty\">no evaluation recorded"));
	page = page_of(STEP("0", "4"), START "{\"kind\":\"eval\",\"t\":1,\"step\":1,\"loss\":2}\n", NULL);
	assert_non_null(strstr(page, "evaluations have no accuracy"));
}

static void a_single_step_can_be_seen(void **unused)
{
	(void)unused;
	assert_non_null(strstr(page_of(STEP("0", "4"), START, NULL), "<circle class=\"point\""));
	assert_null(strstr(page_of(STEP("0", "4") STEP("1", "2"), START, NULL), "<circle class=\"point\""));
}

/* Nothing is wider than a telephone: drawings shrink, tables scroll in their own box. */
static void what_was_predicted_stands_beside_what_was_measured(void **unused)
{
	(void)unused;
	forecast = "{\"predicted_ms\":12.5,\"measured_ms\":13,\"instructions\":[{\"op\":\"F\",\"stage\":1,"
		"\"predicted_ms\":2,\"measured_ms\":2.25,\"processor_ms\":2.125},{\"op\":\"STEP\","
		"\"predicted_ms\":0.5,\"measured_ms\":null}]}";
	const char *page = page_of(NULL, NULL, NULL);
	static const char *const rows[] = {
		"<td>F</td><td>1</td><td>2.0000</td><td>2.2500</td><td>2.1250</td>",
		"<td>STEP</td><td>all</td><td>0.5000</td><td></td><td></td>",
		"<td>step</td><td>all</td><td>12.5000</td><td>13.0000</td><td></td>" };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(strstr(page, rows[i]), "%s", rows[i]);
	assert_null(strstr(page, "that were lost"));
	forecast = "{\"plan\":7,\"predicted_ms\":1,\"instructions\":[],\"missing\":[2,5]}";
	page = page_of(NULL, NULL, NULL);
	assert_true(strstr(page, "<p>Plan 7</p>") && strstr(page, "had no second step: 2, 5</p>"));
	forecast = "{\"instructions\":[";
	assert_null(strstr(page_of(NULL, NULL, NULL), "Predicted and measured"));
	forecast = NULL;
	assert_null(strstr(page_of(NULL, NULL, NULL), "Predicted and measured"));
}

static void a_narrow_screen_is_provided_for(void **unused)
{
	(void)unused;
	const char *page = page_of(STEP("0", "4"), START, "{\"job\":{\"name\":\"x\"}}");
	const char *narrow = strstr(page, "@media(max-width:600px){");
	assert_non_null(strstr(page, "<meta name=\"viewport\" "
		"content=\"width=device-width,initial-scale=1\">"));
	assert_non_null(narrow);
	assert_non_null(strstr(narrow, "svg{min-width:0"));
	assert_non_null(strstr(narrow, "dl{grid-template-columns:1fr}"));
	assert_non_null(strstr(page, "prefers-color-scheme:dark"));
	for (const char *at = page; (at = strstr(at, "<table>")); at++)
		CHECK(!memcmp(at - 18, "<div class=\"wide\">", 18), "a table without a box: %.60s", at);
	for (const char *at = page; (at = strstr(at, "<svg")); at++)
		CHECK(!memcmp(at, "<svg viewBox=", 13), "a drawing of fixed width: %.60s", at);
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
		cmocka_unit_test(what_was_paid_is_said_with_its_parts),
		cmocka_unit_test(evaluations_are_dots),
		cmocka_unit_test(values_that_are_not_finite_are_counted),
		cmocka_unit_test(the_head_says_how_it_ended),
		cmocka_unit_test(the_head_has_metric_steps_time_and_devices),
		cmocka_unit_test(there_is_a_curve_of_each_thing_that_is_recorded),
		cmocka_unit_test(a_single_step_can_be_seen),
		cmocka_unit_test(what_was_predicted_stands_beside_what_was_measured),
		cmocka_unit_test(a_narrow_screen_is_provided_for),
		cmocka_unit_test(a_long_curve_keeps_its_spikes),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
