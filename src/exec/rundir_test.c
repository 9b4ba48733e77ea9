#include "exec/rundir.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static uint64_t asked(const char *metrics, uint64_t (*ask)(const struct hd_rundir *dir))
{
	struct hd_rundir dir = { .path = "/run" };
	struct hd_fs_sim sim;

	hd_fs_sim_init(&sim);
	dir.fs = &sim.fs;
	assert_int_equal(hd_fs_mkdir(&sim.fs, "/run", NULL), HD_OK);
	if (metrics)
		assert_int_equal(hd_file_write_atomic(&sim.fs, "/run/metrics.ndjson", metrics, strlen(metrics), NULL), HD_OK);
	uint64_t next = ask(&dir);
	hd_fs_sim_finish(&sim);
	return next;
}

static uint64_t recorded(const char *metrics) { return asked(metrics, hd_rundir_recorded); }

static void the_last_line_with_a_digest_says_which_state_was_verified(void **state)
{
	(void)state;
	assert_int_equal(asked(NULL, hd_rundir_verified), 0);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":null}\n", hd_rundir_verified), 0);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":\"ab\"}\n{\"v\":1,\"step\":4,\"digest\":null}\n", hd_rundir_verified), 4);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":\"ab\"}\n{\"v\":1,\"step\":4,\"digest\":\"cd\"}", hd_rundir_verified), 4);
	for (int n = 1; n < 5000; n += n / 3 + 1) {       /* digests are of every so many steps */
		struct hd_arena arena;
		struct hd_text text;
		hd_arena_init(&arena, 0);
		hd_text_init(&text, &arena);
		hd_text_add(&text, "{\"v\":1,\"step\":7,\"digest\":\"ab\"}\n");
		for (int i = 0; i < n; i++)
			hd_text_addf(&text, "{\"v\":1,\"step\":%d,\"digest\":null}\n", 8 + i);
		assert_int_equal(asked(text.at, hd_rundir_verified), 8);
		assert_int_equal(asked(text.at, hd_rundir_recorded), 8 + n);
		hd_arena_finish(&arena);
	}
}

static void the_last_whole_line_says_up_to_where_steps_are_recorded(void **state)
{
	char many[40000] = "";
	size_t at = 0;

	(void)state;
	assert_int_equal(recorded(NULL), 0);
	assert_int_equal(recorded(""), 0);
	assert_int_equal(recorded("{\"v\":1,\"step\":0,\"t\":1}\n"), 1);
	assert_int_equal(recorded("{\"v\":1,\"step\":8,\"t\":1}\n{\"v\":1,\"step\":41,\"t\":1}\n"), 42);
	assert_int_equal(recorded("{\"v\":1,\"step\":8,\"t\":1}\n{\"v\":1,\"step\":41,\"t\":"), 9);   /* torn */
	assert_int_equal(recorded("rubbish\n"), 0);
	for (int i = 0; i < 1000; i++)
		at += (size_t)snprintf(many + at, sizeof many - at, "{\"v\":1,\"step\":%d,\"t\":%d}\n", i, i);
	assert_int_equal(recorded(many), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_whole_line_says_up_to_where_steps_are_recorded),
		cmocka_unit_test(the_last_line_with_a_digest_says_which_state_was_verified),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
