#include "base/flow.h"

#include <string.h>

#include "tests/check.h"

static void lines_end_before_the_word_that_would_pass_the_width(void **state)
{
	static const struct { unsigned width, indent, at; bool apart; const char *text, *want; } cases[] = {
		{ 10, 0, 0, false, "", "" }, { 10, 0, 0, false, "one", "one" },
		{ 7, 0, 0, false, "one two", "one two" }, { 6, 0, 0, false, "one two", "one\ntwo" },
		{ 7, 2, 4, false, "one two", "one\n  two" }, { 11, 2, 4, false, "one two", "one two" },
		{ 10, 2, 4, false, "one two", "one\n  two" }, { 9, 2, 0, false, "aa bb cc dd ee", "aa bb cc\n  dd ee" },
		{ 4, 0, 0, false, "a longword b", "a\nlongword\nb" }, { 4, 1, 3, false, "longword b", "longword\n b" },
		{ 20, 0, 0, false, "a   b  c ", "a b c" },
		{ 9, 0, 0, false, "a b\nc d", "a b\nc d" }, { 9, 1, 0, true, "a b\nc d", "a b\n\n c d" },
		{ 3, 0, 0, true, "a\n  x  y  z\n  long example\nb", "a\n\n  x  y  z\n  long example\n\nb" },
		{ 5, 0, 0, false, "\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6 u", "\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6\nu" },
		{ 9, 0, 0, false, "ends\n", "ends" },
	};
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		const struct hd_flow flow = { cases[c].width, cases[c].indent, cases[c].apart };
		struct hd_arena arena;
		struct hd_text out;
		hd_arena_init(&arena, 0);
		hd_text_init(&out, &arena);
		hd_text_add(&out, "");
		hd_flow_add(&flow, cases[c].text, cases[c].at, &out);
		CHECK(!strcmp(out.at, cases[c].want), "case %zu: \"%s\"", c, out.at);
		hd_arena_finish(&arena);
	}
}

/* Whatever the width: the same words in the same order, and no line is longer than it must be. */
static void no_word_is_lost_at_any_width(void **state)
{
	static const char text[] = "The run directory is runs/NAME below the current folder (or -C DIR), "
		"NAME from job.name; a name that is taken gets -2, -3 and so on.";
	(void)state;

	for (unsigned width = 1; width < 130; width++)
		for (unsigned indent = 0; indent < 8; indent += 3) {
			const struct hd_flow flow = { width, indent, true };
			struct hd_arena arena;
			struct hd_text out;
			const char *want = text;
			size_t column = 0;
			hd_arena_init(&arena, 0);
			hd_text_init(&out, &arena);
			hd_flow_add(&flow, text, 0, &out);
			for (const char *at = out.at; *at;) {
				size_t word = strcspn(at, " \n");
				CHECK(!strncmp(at, want, word), "width %u: %s", width, at);
				column += word;
				CHECK(column <= width || column == word || column == word + indent,
					"width %u", width);
				at += word;
				want += word + (want[word] == ' ');
				for (; *at == ' ' || *at == '\n'; at++)
					column = *at == '\n' ? 0 : column + 1;
			}
			assert_int_equal(*want, 0);
			hd_arena_finish(&arena);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_before_the_word_that_would_pass_the_width),
		cmocka_unit_test(no_word_is_lost_at_any_width),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
