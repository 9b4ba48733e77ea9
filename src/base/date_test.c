#include "base/date.h"

#include <string.h>
#include <time.h>

#include "tests/check.h"

static int64_t read(const char *text)
{
	int64_t ns = -1;

	return hd_date_read(text, strlen(text), &ns) ? -1 : ns;
}

#define S INT64_C(1000000000)

static void both_forms_are_the_same_time(void **state)
{
	(void)state;
	assert_int_equal(read("1970-01-01T00:00:00Z"), 0);
	assert_int_equal(read("2017-09-18T08:22:00Z"), 1505722920 * S);            /* date -u -d ... +%s */
	assert_int_equal(read("2017-09-18T08:22:00.250Z"), 1505722920 * S + S / 4);
	assert_int_equal(read("2017-09-18t08:22:00.1234567899+00:00"), 1505722920 * S + 123456789);
	assert_int_equal(read("Mon, 19 Sep 2016 18:29:47 GMT"), 1474309787 * S);
	assert_int_equal(read("Tue, 16 Mar 2021 00:58:46 GMT"), 1615856326 * S);
	assert_int_equal(read("2016-02-29T23:59:60Z"), 1456790400 * S);
}

static void what_is_no_date_is_refused(void **state)
{
	static const char *const bad[] = { "", "Z", "2017-09-18T08:22:00", "2017-09-18T08:22:00+02:00",
		"2017-9-18T08:22:00Z", "2017-13-18T08:22:00Z", "2017-00-18T08:22:00Z", "2017-02-29T08:22:00Z",
		"2017-09-18T24:22:00Z", "2017-09-18T08:60:00Z", "2017-09-18T08:22:61Z",
		"2017-09-18T08:22:00Zx",
		"1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2017-09-18T08:22:00.Z", "Mon, 19 Sep 2016",
		"Mon, 19 Xxx 2016 18:29:47 GMT", "Mon, 31 Sep 2016 18:29:47 GMT", "Mon, 19 Sep 2016 18:29:47",
		",", "Mon, 19 Sep 2016 18:29:47 GMT ", "never, soon", "2017-09-18T0:22:00Z" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(read(bad[i]) == -1, "\"%s\"", bad[i]);
}

/* The oracle: the C library's calendar. */
static void every_day_of_two_centuries_prints_as_the_calendar_has_it(void **state)
{
	char ours[HD_DATE_HTTP], theirs[64];

	(void)state;
	for (int64_t s = 0; s < INT64_C(230) * 365 * 86400; s += 86399) {
		time_t at = (time_t)s;
		struct tm tm;
		gmtime_r(&at, &tm);
		strftime(theirs, sizeof theirs, "%a, %d %b %Y %H:%M:%S GMT", &tm);
		hd_date_http(s * S, ours);
		assert_string_equal(ours, theirs);
		assert_int_equal(read(ours), s * S);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_the_same_time),
		cmocka_unit_test(what_is_no_date_is_refused),
		cmocka_unit_test(every_day_of_two_centuries_prints_as_the_calendar_has_it),
	};
	return cmocka_run_group_tests_name("date", tests, NULL, NULL);
}
