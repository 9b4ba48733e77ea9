#include "run/fits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/testing.h"

static char path[64];

static void write_rows(void)
{
	snprintf(path, sizeof path, "/tmp/heddle-fits-%d.csv", (int)getpid());
	FILE *file = fopen(path, "w");

	CHECK(file, "%s", path);
	(void)fprintf(file, "a,b,c,y\n");
	for (int i = 0; i < 200; i++)
		(void)fprintf(file, "%d,%d,%d,%d\n", i * 37 % 101, i % 97, i % 89, i % 3);
	assert_int_equal(fclose(file), 0);
}

/* With a task at hand it is judged as without: more than there is is refused. Only then may the data be
 * gone. */
static void with_a_task_no_data_are_opened(void **state)
{
	static const struct { const char *memory; enum hd_err err; } rows[] = {
		{ "workers: {memory: 400MiB}\n", HD_OK }, { "workers: {memory: 1MiB}\n", HD_E_REFUSED } };
	char model[200];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_run_options options = { .worker = { .ndevices = 1, .nthreads = 1, .kind = "cpu" } };
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		struct hd_clock clock;
		write_rows();
		hd_clock_real(&clock);
		snprintf(model, sizeof model,
			"model: {use: builtin:mlp, args: {input: [3], hidden: [700, 700], classes: 3}}\n"
			"data: {kind: csv, path: %s, split: {train: 1, valid: 0}}\n", path);
		hd_rig_begin(&rig, model, 16, 8, rows[i].memory);
		options.worker.memory_limit_bytes = i ? 1 << 20 : 400 << 20;
		CHECK(!hd_task_create(&rig.task, rig.job, &rig.fs, &diag), "%s", diag.text);
		enum hd_err before = hd_run_fits(rig.job, &rig.fs, &clock, &options, 2, &diag);
		CHECK(before == rows[i].err, "row %zu: %s", i, diag.text);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(hd_run_fits(rig.job, &rig.fs, &clock, &options, 2, NULL), HD_E_NOTFOUND);
		options.task = rig.task;
		enum hd_err err = hd_run_fits(rig.job, &rig.fs, &clock, &options, 2, NULL);
		CHECK(err == rows[i].err, "row %zu: %d", i, (int)err);
		hd_task_destroy(rig.task);
		hd_arena_finish(&rig.arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(with_a_task_no_data_are_opened) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
