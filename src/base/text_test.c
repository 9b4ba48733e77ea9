#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

static void a_growing_text_equals_its_pieces_joined(void **state)
{
	static char want[200000];
	struct hd_arena arena;
	struct hd_text text;
	size_t len = 0;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	assert_string_equal(text.at, "");
	for (int i = 0; i < 9000; i++) {
		len += (size_t)snprintf(want + len, sizeof want - len, "%d:%s;%*d", i, "ab", i % 13, i);
		hd_text_addf(&text, "%d:", i);
		hd_text_add(&text, "ab");
		hd_text_put(&text, ";xx", 1);
		hd_text_addf(&text, "%*d", i % 13, i);
	}
	assert_int_equal(text.len, len);
	assert_string_equal(text.at, want);
	assert_false(text.full);
	hd_arena_finish(&arena);
}

static void bytes_of_any_value_are_kept(void **state)
{
	struct hd_arena arena;
	struct hd_text text;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_text_put(&text, "a\0b", 3);
	assert_int_equal(text.len, 3);
	assert_memory_equal(text.at, "a\0b", 4);
	hd_arena_finish(&arena);
}

/* For every room: what is kept is the longest prefix, terminated, and full tells. */
static void a_fixed_text_keeps_the_prefix_that_fits(void **state)
{
	static const char want[] = "one22three4.0";
	(void)state;

	for (size_t cap = 0; cap <= sizeof want + 2; cap++) {
		char space[sizeof want + 3];
		struct hd_text text;
		memset(space, '#', sizeof space);
		hd_text_fixed(&text, space, cap);
		hd_text_add(&text, "one");
		hd_text_addf(&text, "%d", 22);
		hd_text_put(&text, "three", 5);
		hd_text_addf(&text, "%.1f", 4.0);
		size_t keeps = cap == 0 ? 0 : cap - 1 < sizeof want - 1 ? cap - 1 : sizeof want - 1;
		CHECK(text.len == keeps && memcmp(text.at, want, keeps) == 0 && text.at[keeps] == '\0',
			"cap %zu: \"%s\"", cap, text.at);
		CHECK(text.full == (keeps < sizeof want - 1), "cap %zu", cap);
		CHECK(space[cap] == '#', "cap %zu was overrun", cap);
	}
}

static void a_full_text_takes_nothing_more(void **state)
{
	char space[4];
	struct hd_text text;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_text_add(&text, "abc");
	assert_false(text.full);
	hd_text_add(&text, "d");
	assert_true(text.full);
	hd_text_add(&text, "");
	hd_text_add(&text, "e");
	hd_text_addf(&text, "%s", "f");
	assert_true(text.full);
	assert_string_equal(text.at, "abc");
}

static void what_follows_a_piece_that_did_not_fit_is_dropped_even_if_it_would_fit(void **state)
{
	static char large[5000];
	struct hd_arena arena;
	struct hd_text text;
	(void)state;

	memset(large, 'x', sizeof large);
	hd_arena_init(&arena, 512);
	hd_text_init(&text, &arena);
	hd_text_add(&text, "a");
	hd_text_put(&text, large, sizeof large);
	size_t len = text.len;
	assert_true(text.full && len < 512);
	hd_text_addf(&text, "%s", "b");
	hd_text_add(&text, "b");
	assert_int_equal(text.len, len);
	hd_arena_finish(&arena);
}

static void one_piece_may_be_larger_than_any_growth(void **state)
{
	static char large[100000];
	struct hd_arena arena;
	struct hd_text text;
	(void)state;

	memset(large, 'x', sizeof large);
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_text_addf(&text, "%*d", 3000, 1);
	assert_true(!text.full && text.len == 3000);
	hd_text_init(&text, &arena);
	hd_text_put(&text, large, sizeof large);
	hd_text_addf(&text, "%.*s", 300000, "y");
	hd_text_addf(&text, "%*d", 300000, 1);
	assert_true(!text.full && text.len == 400001 && text.at[100000] == 'y' && text.at[400000] == '1');
	hd_arena_finish(&arena);
}

static void printing_nothing_fits_always(void **state)
{
	char space[4];
	struct hd_text text;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_text_add(&text, "abc");
	hd_text_addf(&text, "%s", "");
	hd_text_put(&text, "x", 0);
	assert_false(text.full);
	assert_string_equal(text.at, "abc");
}

static void an_exhausted_arena_makes_it_full_and_leaves_a_prefix(void **state)
{
	(void)state;
	for (size_t budget = 64; budget < 4096; budget += 64) {
		struct hd_arena arena;
		struct hd_text text;
		hd_arena_init(&arena, budget);
		hd_text_init(&text, &arena);
		for (int i = 0; i < 3000; i++)
			hd_text_addf(&text, "%c-", 'a' + i % 26);
		CHECK(text.full && text.len == strlen(text.at) && text.len < budget, "budget %zu", budget);
		for (size_t i = 0; i < text.len; i++)
			CHECK(text.at[i] == (i % 2 ? '-' : (char)('a' + i / 2 % 26)), "budget %zu byte %zu",
				budget, i);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_growing_text_equals_its_pieces_joined),
		cmocka_unit_test(bytes_of_any_value_are_kept),
		cmocka_unit_test(a_fixed_text_keeps_the_prefix_that_fits),
		cmocka_unit_test(a_full_text_takes_nothing_more),
		cmocka_unit_test(what_follows_a_piece_that_did_not_fit_is_dropped_even_if_it_would_fit),
		cmocka_unit_test(one_piece_may_be_larger_than_any_growth),
		cmocka_unit_test(printing_nothing_fits_always),
		cmocka_unit_test(an_exhausted_arena_makes_it_full_and_leaves_a_prefix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
