#include "base/names.h"

#include <string.h>

#include "tests/check.h"

static void ordinary_names_are_valid(void **state)
{
	static const char *const good[] = { "a", "tiny", "gpt-text.2", "_x", "0", "A..B", "step-000001200" };
	(void)state;

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		CHECK(hd_name_valid(good[i]), "%s", good[i]);
}

static void names_that_hide_climb_or_look_like_options_are_not(void **state)
{
	static const char *const bad[] = { "", ".", "..", ".hidden", "-C", "a/b", "a b", "a\n", "\xc3\xa9",
		"a*", "a\\" };
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(!hd_name_valid(bad[i]), "%s", bad[i]);
}

static void every_byte_is_judged_by_the_stated_set(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		char name[] = { 'x', (char)c, '\0' };
		bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '.' || c == '_' || c == '-';
		CHECK(hd_name_valid(name) == allowed, "byte %d", c);
	}
}

static void the_longest_name_has_128_bytes(void **state)
{
	char name[HD_NAME_MAX + 2];
	(void)state;

	memset(name, 'a', sizeof name);
	name[HD_NAME_MAX + 1] = '\0';
	assert_false(hd_name_valid(name));
	name[HD_NAME_MAX] = '\0';
	assert_true(hd_name_valid(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_names_are_valid),
		cmocka_unit_test(names_that_hide_climb_or_look_like_options_are_not),
		cmocka_unit_test(every_byte_is_judged_by_the_stated_set),
		cmocka_unit_test(the_longest_name_has_128_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
