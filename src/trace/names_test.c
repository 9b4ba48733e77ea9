#include "trace/names.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static char table[HD_NAMES_BYTES];
static struct hd_names names;
static _Atomic uint32_t used;

static uint32_t intern(const char *text) { return hd_names_intern(&names, text, strlen(text)); }

static void equal_texts_have_equal_numbers_and_read_back(void **state)
{
	(void)state;
	hd_names_init(&names, table, sizeof table, &used);
	uint32_t a = intern("matmul fc1"), b = intern("softmax"), empty = intern("");
	assert_true(a != b && a != 0 && b != 0 && empty != 0);
	assert_true(intern("matmul fc1") == a && intern("softmax") == b && intern("") == empty);
	assert_true(intern("matmul fc") != a && intern("matmul fc12") != a);
	assert_string_equal(hd_names_text(table, used, a), "matmul fc1");
	assert_string_equal(hd_names_text(table, used, empty), "");
	assert_string_equal(hd_names_text(table, used, 0), "?");
}

static void thousands_of_names_are_told_apart(void **state)
{
	static uint32_t number[9000];
	char text[32];
	(void)state;

	hd_names_init(&names, table, sizeof table, &used);
	for (int again = 0; again < 2; again++)
		for (unsigned i = 0; i < 9000; i++) {
			snprintf(text, sizeof text, "tensor %u", i * 7919);
			uint32_t got = intern(text);
			CHECK(again ? got == number[i] : got != 0, "%s", text);
			number[i] = got;
			assert_string_equal(hd_names_text(table, used, got), text);
		}
}

static void a_full_table_answers_0_and_counts(void **state)
{
	(void)state;
	hd_names_init(&names, table, 10, &used);
	memset(table + 10, 'x', 6);
	uint32_t a = intern("abcd");
	assert_int_equal(a, 2);
	assert_int_equal(intern("ab"), 7);
	assert_int_equal(intern("c"), 0);
	assert_int_equal(names.nrefused, 1);
	assert_int_equal(intern("abcd"), a);
	assert_int_equal(intern("ab"), 7);
	assert_int_equal(used, 10);
	assert_memory_equal(table + 10, "xxxxxx", 6);
}

static void the_index_is_never_full(void **state)
{
	char text[8];
	unsigned n = 0;
	(void)state;

	hd_names_init(&names, table, sizeof table, &used);
	for (unsigned i = 0; i < 40000; i++) {
		snprintf(text, sizeof text, "%x", i);
		n += intern(text) != 0;
	}
	assert_int_equal(n, HD_NAMES_INDEX - 1);
	assert_int_equal(names.nrefused, 40000 - (HD_NAMES_INDEX - 1));
}

static void long_texts_are_cut(void **state)
{
	char text[400];
	(void)state;

	hd_names_init(&names, table, sizeof table, &used);
	memset(text, 'a', sizeof text);
	uint32_t a = hd_names_intern(&names, text, sizeof text);
	assert_int_equal(strlen(hd_names_text(table, used, a)), HD_TRACE_NAME_MAX);
	assert_int_equal(hd_names_intern(&names, "ab\0cd", 5), intern("ab"));
}

static void every_number_gives_a_text(void **state)
{
	static const char bytes[] = { '?', 0, 'a', 'b', 0, 'c', 'd' };        /* the last one is not ended */
	(void)state;

	assert_string_equal(hd_names_text(bytes, sizeof bytes, 2), "ab");
	for (uint32_t name = 0; name < 20; name++)
		if (name != 2)
			assert_string_equal(hd_names_text(bytes, sizeof bytes, name), "?");
	assert_string_equal(hd_names_text(bytes, sizeof bytes, UINT32_MAX), "?");
	assert_string_equal(hd_names_text(bytes, 0, 0), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_equal_numbers_and_read_back),
		cmocka_unit_test(thousands_of_names_are_told_apart),
		cmocka_unit_test(a_full_table_answers_0_and_counts),
		cmocka_unit_test(the_index_is_never_full),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(every_number_gives_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
