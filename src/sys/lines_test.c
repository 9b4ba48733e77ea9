#include "sys/lines.h"

#include <errno.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static struct hd_fs_sim sim;
static struct hd_arena arena;

static const char *content(void)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(hd_file_read_all(&sim.fs, "/log", &arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	return (const char *)bytes;
}

static void put(const char *bytes) { assert_int_equal(hd_file_write_atomic(&sim.fs, "/log", bytes,
	strlen(bytes), NULL), HD_OK); }
static enum hd_err add(struct hd_lines *lines, const char *text) { return hd_lines_add(lines, text,
	strlen(text), NULL); }

static int setup(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hd_fs_sim_finish(&sim);
	hd_arena_finish(&arena);
	return 0;
}

static void opening_cuts_off_what_a_death_tore(void **state)
{
	static char longs[3 * 4096 + 8];
	static const struct { const char *before, *after; } cases[] = {
		{ "", "c\n" }, { "torn", "c\n" }, { "a\n", "a\nc\n" }, { "a\nb", "a\nc\n" }, { "\n", "\nc\n" }, { longs, "a\nc\n" },
	};
	(void)state;

	memset(longs, 'x', sizeof longs - 1);
	memcpy(longs, "a\n", 2);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_lines lines;
		put(cases[i].before);
		assert_int_equal(hd_lines_open(&lines, &sim.fs, "/log", NULL), HD_OK);
		assert_int_equal(add(&lines, "c\n"), HD_OK);
		assert_int_equal(hd_lines_close(&lines, NULL), HD_OK);
		CHECK(strcmp(content(), cases[i].after) == 0, "case %zu: %s", i, content());
	}
}

static void a_missing_file_is_made_and_a_closed_one_takes_nothing(void **state)
{
	struct hd_lines lines = { 0 };
	(void)state;

	assert_int_equal(add(&lines, "a\n"), HD_OK);
	assert_int_equal(lines.lost, 0);
	assert_int_equal(hd_lines_close(&lines, NULL), HD_OK);
	assert_int_equal(hd_lines_open(&lines, &sim.fs, "/log", NULL), HD_OK);
	assert_int_equal(add(&lines, "a\nb\n"), HD_OK);
	assert_int_equal(hd_lines_close(&lines, NULL), HD_OK);
	assert_string_equal(content(), "a\nb\n");
}

/* Each call of the file system from the first record on fails once, in a write that got half of its bytes
 * out; then the disk has space again. */
static void a_record_is_there_whole_or_counted_whatever_call_fails(void **state)
{
	unsigned lost_ever = 0;
	(void)state;

	for (uint64_t call = 1; call <= 6; call++) {
		struct hd_lines lines;
		unsigned lost = 0;
		put("first\n");
		assert_int_equal(hd_lines_open(&lines, &sim.fs, "/log", NULL), HD_OK);
		sim.short_bytes = 3;
		hd_fs_sim_fail(&sim, call, ENOSPC, false);
		for (int i = 0; i < 3; i++)
			lost += add(&lines, "{12345}\n") != HD_OK;
		hd_fs_sim_fail(&sim, 0, 0, false);
		sim.short_bytes = 0;
		assert_int_equal(lines.lost, lost);
		assert_int_equal(add(&lines, "last\n"), HD_OK);
		assert_int_equal(hd_lines_close(&lines, NULL), HD_OK);
		const char *want[] = { "first\n{12345}\n{12345}\n{12345}\nlast\n",
			"first\n{12345}\n{12345}\nlast\n" };
		assert_in_range(lost, 0, 1);
		CHECK(strcmp(content(), want[lost]) == 0, "call %d: %s", (int)call, content());
		lost_ever += lost;
	}
	assert_true(lost_ever >= 3);
}

/* The disk refuses the cut, too: it is made up for before the next record. */
static void a_cut_that_fails_is_made_up_for(void **state)
{
	struct hd_lines lines;
	(void)state;

	put("first\n");
	assert_int_equal(hd_lines_open(&lines, &sim.fs, "/log", NULL), HD_OK);
	sim.short_bytes = 3;
	hd_fs_sim_fail(&sim, 2, EIO, true);
	assert_int_not_equal(add(&lines, "{12345}\n{2}\n"), HD_OK);
	assert_int_not_equal(add(&lines, "{12345}\n"), HD_OK);
	hd_fs_sim_fail(&sim, 0, 0, false);
	sim.short_bytes = 0;
	assert_int_equal(lines.lost, 3);
	assert_int_equal(add(&lines, "last\n"), HD_OK);
	assert_int_equal(hd_lines_close(&lines, NULL), HD_OK);
	assert_string_equal(content(), "first\nlast\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opening_cuts_off_what_a_death_tore, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_file_is_made_and_a_closed_one_takes_nothing, setup,
		teardown),
		cmocka_unit_test_setup_teardown(a_record_is_there_whole_or_counted_whatever_call_fails, setup,
		teardown),
		cmocka_unit_test_setup_teardown(a_cut_that_fails_is_made_up_for, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
