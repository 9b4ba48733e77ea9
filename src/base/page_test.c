#include "base/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;
static struct hd_text page;

static void start(void)
{
	hd_arena_reset(&arena);
	hd_text_init(&page, &arena);

}

static void a_page_needs_nothing_and_escapes_what_it_is_given(void **unused)
{
	(void)unused;
	start();
	hd_page_open(&page, "<script>\"a\"&b</script>");
	hd_plot_legend(&page, 2, (const char *const[]){ "x<y", "\"" });
	hd_page_close(&page);
	assert_null(strstr(page.at, "<script"));
	assert_null(strstr(page.at, "http:"));
	assert_null(strstr(page.at, "https:"));
	assert_non_null(strstr(page.at, "default-src 'none'"));
	assert_non_null(strstr(page.at, "&lt;script&gt;&quot;a&quot;&amp;b"));
	assert_non_null(strstr(page.at, "x&lt;y"));
	assert_non_null(strstr(page.at, "</body></html>\n"));
}

/* Numbers at the ends of axes lie at the ends of the drawing, a decade of a logarithmic axis is as long as
 * the next. */
static void values_stand_where_the_axes_say(void **unused)
{
	struct hd_plot p = { .title = "t", .unit = "u", .x_name = "x", .x_end = 10, .low = 1, .high = 3 };
	struct hd_plot l = { .title = "t", .unit = "u", .x_name = "x", .x_end = 1, .low = 1, .high = 100,
		.log = true };

	(void)unused;
	assert_true(fabs(hd_plot_x(&p, 0) - HD_PLOT_LEFT) < 1e-9 &&
		fabs(hd_plot_x(&p, 10) - (HD_PLOT_WIDTH - HD_PLOT_RIGHT)) < 1e-9);
	assert_true(fabs(hd_plot_y(&p, 3) - HD_PLOT_TOP) < 1e-9 &&
		fabs(hd_plot_y(&p, 1) - (HD_PLOT_HEIGHT - HD_PLOT_BOTTOM)) < 1e-9);
	assert_true(fabs((hd_plot_y(&l, 1) - hd_plot_y(&l, 10)) - (hd_plot_y(&l, 10) - hd_plot_y(&l, 100))) <
		1e-9);
	start();
	hd_plot_open(&page, &p);
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(page.at, (const char *const[]){ ">1</text>", ">2</text>",
			">3</text>" }[i]));
	assert_non_null(strstr(page.at, ">10</text>"));
}

static void limits_leave_room_and_choose_the_axis(void **unused)
{
	static const struct { double low, high; bool log; } cases[] = {
		{ 0, 1, false }, { 2, 2, false }, { 1, 9, false }, { 1, 11, true }, { 0, 1e6, false }, { -3, 100, false }, { 1e-6, 1, true },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_plot p = { .title = "t", .unit = "", .x_name = "x", .x_end = 1 };
		hd_plot_fit(&p, cases[i].low, cases[i].high);
		CHECK(p.log == cases[i].log && p.low < p.high && p.low <= cases[i].low &&
			p.high >= cases[i].high && (!p.log || p.low > 0), "case %zu", i);
		CHECK(cases[i].low < 0 || p.low >= 0, "case %zu: no value is below 0", i);
		start();
		hd_plot_open(&page, &p);
		hd_plot_close(&page, &p, "");
		CHECK(!strstr(page.at, "nan") && !strstr(page.at, "inf"), "case %zu", i);
	}
}

static void rows_have_a_bar_each(void **unused)
{
	const char *names[] = { "7", "<8>" };
	struct hd_plot p = { .title = "t", .unit = "", .x_name = "hour", .x_end = 2, .rows = 2,
		.row_name = names };

	(void)unused;
	start();
	hd_plot_open(&page, &p);
	hd_plot_bar(&page, &p, 0, 0, 0, 1, "a&b");
	hd_plot_bar(&page, &p, 1, 9, 1, 1, "thin");
	hd_plot_close(&page, &p, "note");
	assert_non_null(strstr(page.at, "&lt;8&gt;"));
	assert_non_null(strstr(page.at, "<title>a&amp;b</title>"));
	assert_non_null(strstr(page.at, "width=\"390.0\""));        /* half of the 780 between the axes */
	assert_non_null(strstr(page.at, "width=\"0.5\""));          /* of no length, but to be seen */
	assert_non_null(strstr(page.at, "series c1\""));            /* colour 9 of 8 */
	assert_int_equal(hd_plot_height(&p), 2 * 14 + HD_PLOT_TOP + HD_PLOT_BOTTOM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_needs_nothing_and_escapes_what_it_is_given),
		cmocka_unit_test(values_stand_where_the_axes_say),
		cmocka_unit_test(limits_leave_room_and_choose_the_axis),
		cmocka_unit_test(rows_have_a_bar_each),
	};
	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
