#include "data/fair_text.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static const struct hd_fair_part full = { 1e15 / 3, 1e15 / 7, 9.123456789, 0.010101, 64.25,
	{ 0, 0.1, 0.02, 1.0 / 3, 4, 5, 6, 1e-6 }, 256, 1 };

static void a_window_reads_back_to_its_bits(void **state)
{
	char room[HD_FAIR_TEXT], again[HD_FAIR_TEXT];
	struct hd_fair_part part;
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, room, sizeof room);
	hd_fair_put(&full, &text);
	assert_false(text.full);
	assert_int_equal(hd_fair_parse(room, text.len, &part, NULL), HD_OK);
	hd_text_fixed(&text, again, sizeof again);
	hd_fair_put(&part, &text);
	assert_string_equal(room, again);
	assert_true(part.demanded == full.demanded && part.file_service_s[3] == full.file_service_s[3] &&
		part.depth == 256 && part.knee == 1);
}

/* FROM in the text becomes TO. */
static void what_is_no_window_is_refused(void **state)
{
	static const struct { const char *from, *to; } row[] = {
		{ "\"depth\":256", "\"depth\":0" }, { "\"depth\":256", "\"depth\":257" },
		{ "\"depth\":256", "\"dept\":1" }, { "\"waited_s\":9.123456789", "\"waited_s\":-1" },
		{ "\"waited_s\":9.123456789", "\"waited_s\":\"nan\"" },
		{ "\"waited_s\":9.123456789", "\"waited_s\":\"inf\"" },
		{ "\"waited_s\":9.123456789", "\"waited_s\":1e19" },
		{ "\"waited_s\":9.123456789", "\"waited_s\":true" },
		{ "[0,0.1,", "[0.1," }, { "[0,0.1,", "[0,0,0.1," }, { "}", "" }, { "{", "[{" },
	};
	char room[HD_FAIR_TEXT], wrong[HD_FAIR_TEXT + 40];
	struct hd_fair_part part;
	struct hd_diag diag;
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, room, sizeof room);
	hd_fair_put(&full, &text);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const char *at = strstr(room, row[i].from);
		CHECK(at, "row %zu: %s is not in %s", i, row[i].from, room);
		const int n = snprintf(wrong, sizeof wrong, "%.*s%s%s", (int)(at - room), room, row[i].to,
			at + strlen(row[i].from));
		CHECK(hd_fair_parse(wrong, (size_t)n, &part, &diag) == HD_E_PROTOCOL, "row %zu: %s", i,
			wrong);
	}
	assert_int_equal(hd_fair_parse("[1]", 3, &part, &diag), HD_E_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_reads_back_to_its_bits),
		cmocka_unit_test(what_is_no_window_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
