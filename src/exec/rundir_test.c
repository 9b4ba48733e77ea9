#include "exec/rundir.h"

#include <errno.h>
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

static const char *text_of(struct hd_fs_sim *sim, const char *path, struct hd_arena *arena)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(hd_file_read_all(&sim->fs, path, arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	return (const char *)bytes;
}

static void steps_that_a_full_disk_took_are_named_once_there_is_space(void **state)
{
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };
	(void)state;

	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL), HD_OK);
	for (uint64_t step = 0; step < 10; step++) {
		if (step == 3)
			hd_fs_sim_fail(&sim, 1, ENOSPC, true);
		if (step == 7)
			hd_fs_sim_fail(&sim, 0, 0, false);
		hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = step, .weight = 1 }, &times, 0);
	}
	assert_true(dir.lines_lost);
	assert_int_equal(dir.metrics.lost, 0);
	hd_fs_sim_fail(&sim, 1, ENOSPC, true);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 10, .weight = 1 }, &times, 0);
	hd_fs_sim_fail(&sim, 0, 0, false);
	hd_rundir_close(&dir);
	const char *metrics = text_of(&sim, "/run/metrics.ndjson", &arena);
	for (uint64_t step = 0; step < 10; step++) {
		char head[40];
		snprintf(head, sizeof head, "{\"v\":1,\"step\":%d,", (int)step);
		assert_int_equal(strstr(metrics, head) != NULL, step < 3 || step >= 7);
	}
	const char *events = text_of(&sim, "/run/events.ndjson", &arena);
	assert_non_null(strstr(events, "\"kind\":\"unrecorded\",\"step\":7,\"membership\":0,\"text\":\"4 steps have no line"));
	assert_non_null(strstr(events, "\"step\":10,\"membership\":0,\"text\":\"1 steps have no line"));
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* A line that a death tore is no part of the next record. */
static void a_torn_line_is_cut_off_when_the_run_goes_on(void **state)
{
	static const char torn[] = "{\"v\":1,\"step\":0,\"t\":1}\n{\"v\":1,\"step\":1,\"t\":";
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };
	(void)state;

	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL), HD_OK);
	hd_rundir_close(&dir);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/run/metrics.ndjson", torn, strlen(torn), NULL), HD_OK);
	assert_int_equal(hd_rundir_open(&dir, &sim.fs, &clock.clock, "/run", NULL), HD_OK);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 1, .weight = 1 }, &times, 0);
	hd_rundir_close(&dir);
	const char *metrics = text_of(&sim, "/run/metrics.ndjson", &arena);
	assert_non_null(strstr(metrics, "\"t\":1}\n{\"v\":1,\"step\":1,\"t\":0,\"loss\""));
	assert_int_equal(metrics[strlen(metrics) - 1], '\n');
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_whole_line_says_up_to_where_steps_are_recorded),
		cmocka_unit_test(the_last_line_with_a_digest_says_which_state_was_verified),
		cmocka_unit_test(steps_that_a_full_disk_took_are_named_once_there_is_space),
		cmocka_unit_test(a_torn_line_is_cut_off_when_the_run_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
