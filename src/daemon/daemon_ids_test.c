/* Numbers of jobs as a text: what is taken, and that nothing else is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_int.h"
#include "tests/check.h"

enum { MOST = 50 };

/* By another way: pieces between dots, read by scanf, whose answer is held against the piece by writing
 * it again. */
static bool is_good(const char *text)
{
	char copy[64], again[64], *rest = copy, *one;
	unsigned long long from, to, last = 0, n = 0;

	snprintf(copy, sizeof copy, "%s", text);
	while ((one = strsep(&rest, "."))) {
		if (sscanf(one, "%llu-%llu", &from, &to) == 2)
			snprintf(again, sizeof again, "%llu-%llu", from, to);
		else if (sscanf(one, "%llu", &from) == 1)
			snprintf(again, sizeof again, "%llu", to = from);
		else
			return false;
		if (strcmp(again, one) != 0 || from <= last || to < from || (n += to - from + 1) > MOST)
			return false;
		last = to;
	}
	return true;
}

static void what_is_no_list_of_ascending_numbers_is_refused(void **state)
{
	static const char letters[] = "0123456789-..--12 +x";
	uint32_t rng = 7, good = 0, bad = 0;
	(void)state;

	for (int i = 0; i < 200000; i++) {
		char text[12];
		size_t len = 1 + (rng >> 9) % 10;
		for (size_t k = 0; k < len; k++) {
			rng = rng * 1664525u + 1013904223u;
			text[k] = letters[(rng >> 16) % (sizeof letters - 1)];
		}
		text[len] = '\0';
		struct hd_diag diag = { "" };
		enum hd_err err = daemon_each_of(NULL, text, MOST, NULL, NULL, &diag);
		CHECK(err == (is_good(text) ? HD_OK : HD_E_INVAL), "\"%s\": %d %s", text, err, diag.text);
		good += !err;
		bad += err != HD_OK;
	}
	CHECK(good > 1000 && bad > 1000, "%u good, %u bad", good, bad);
}

static void the_longest_numbers_are_read_and_longer_ones_refused(void **state)
{
	static const struct { const char *text; bool good; } rows[] = {
		{ "9223372036854775807", true }, { "9223372036854775808", false }, { "99999999999999999999", false },
		{ "1.9223372036854775807", true }, { "9223372036854775800-9223372036854775807", true },
		{ "1-50", true }, { "1-51", false }, { "0", false }, { "00000000000000000001", false },
		{ "0-9223372036854775807", false }, { "1-9223372036854775807", false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK((daemon_each_of(NULL, rows[i].text, MOST, NULL, NULL, NULL) == HD_OK) == rows[i].good,
			"%s",
			rows[i].text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_list_of_ascending_numbers_is_refused),
		cmocka_unit_test(the_longest_numbers_are_read_and_longer_ones_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
