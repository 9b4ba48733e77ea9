#include "run/kept_job.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job/sets.h"
#include "tests/check.h"

static const char yaml[] = "model: {use: builtin:mlp, args: {input: [1, 4, 4], hidden: [8], classes: 3}}\n"
	"data: {kind: synthetic, count: 50}\nbatch: {global: 16}\njob: {steps: 5}\n"
	"workers: {min: 2}\n";

struct desk { struct hd_arena arena; struct hd_fs fs; struct hd_clock clock; struct hd_rundir dir;
	struct hd_job job; struct hd_diag diag; char parent[64]; };

/* `yaml` with one word set, as `-s` or, of `origin`, as another did. */
static struct hd_job *job_with(struct desk *d, const char *word, enum hd_origin origin)
{
	struct hd_job_set set[1];
	struct hd_job_sets sets;
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	assert_int_equal(hd_job_sets_init(&sets, 1, &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_job_sets_word(&sets, word, &d->diag), HD_OK);
	set[0] = sets.set[0];
	set[0].origin = origin;
	CHECK(!hd_job_parse(&d->job, "job.yaml", yaml, sizeof yaml - 1, set, 1, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

/* The job of the run, as a process that goes on with it reads it. */
static const struct hd_job *kept(struct desk *d)
{
	static struct hd_job job;
	char path[HD_PATH_CAP];
	struct hd_text warnings;
	uint8_t *bytes;
	size_t len;

	hd_text_init(&warnings, &d->arena);
	hd_rundir_path(&d->dir, HD_RUN_JOB, path, sizeof path);
	assert_int_equal(hd_file_read_all(&d->fs, path, &d->arena, 1 << 20, &bytes, &len, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&job, path, (const char *)bytes, len, NULL, 0, &d->arena, &d->diag, &warnings),
		"%s", d->diag.text);
	return &job;
}

static int enter(void **state)
{
	static struct desk d;
	struct hd_text text;
	char folder[80];

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_real(&d.fs);
	hd_clock_real(&d.clock);
	snprintf(d.parent, sizeof d.parent, "/tmp/hd_kept_job_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", d.parent);
	assert_int_equal(hd_fs_mkdirs(&d.fs, d.parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&d.dir, &d.fs, &d.clock, d.parent, folder, "mlp", yaml,
		sizeof yaml - 1, &d.diag), HD_OK);
	hd_text_init(&text, &d.arena);
	hd_job_json(job_with(&d, "workers.min=2", HD_FROM_SET), false, &text);
	assert_int_equal(hd_rundir_put(&d.dir, HD_RUN_JOB, text.at, text.len, &d.diag), HD_OK);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	struct desk *d = *state;

	hd_rundir_close(&d->dir);
	assert_int_equal(hd_fs_remove_tree(&d->fs, d->parent, NULL), HD_OK);
	hd_arena_finish(&d->arena);
	return 0;
}

/* An option, --devices for one, is of this start alone: workers are given it another way. */
static void what_is_set_is_kept_and_nothing_else(void **state)
{
	static const struct { const char *word; enum hd_origin origin; int schedule; } row[] = {
		{ "parallel.schedule=zb-v", HD_FROM_SET, true },
		{ "parallel.schedule=zb-v", HD_FROM_ENV, true },
		{ "parallel.schedule=zb-v", HD_FROM_OPTION, false },
	};
	struct desk *d = *state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_kept_value before = { HD_JOB_PAR_SCHEDULE,
			job_with(d, "workers.min=2", HD_FROM_SET)->value[HD_JOB_PAR_SCHEDULE] };

		assert_int_equal(hd_kept_job_put(&d->dir, &before, 1, &d->arena, &d->diag), HD_OK);
		assert_int_equal(hd_kept_job_settings(&d->dir, job_with(d, row[i].word, row[i].origin),
			&d->arena, &d->diag), HD_OK);
		CHECK(!strcmp(hd_job_text(kept(d), HD_JOB_PAR_SCHEDULE), row[i].schedule ? "zb-v" : "auto"),
			"row %zu: %s", i, hd_job_text(kept(d), HD_JOB_PAR_SCHEDULE));
		assert_int_equal(hd_job_int(kept(d), HD_JOB_MIN_WORKERS), 2);
	}
}

static void a_path_is_kept_from_the_root(void **state)
{
	struct desk *d = *state;
	char here[400], want[420];

	assert_non_null(getcwd(here, sizeof here));
	snprintf(want, sizeof want, "%s/some/key", here);
	assert_int_equal(hd_kept_job_settings(&d->dir, job_with(d, "net.key=some/key", HD_FROM_SET),
		&d->arena, &d->diag), HD_OK);
	assert_string_equal(hd_job_text(kept(d), HD_JOB_NET_KEY), want);
	assert_int_equal(hd_kept_job_settings(&d->dir, job_with(d, "net.key=/some/key", HD_FROM_SET),
		&d->arena, &d->diag), HD_OK);
	assert_string_equal(hd_job_text(kept(d), HD_JOB_NET_KEY), "/some/key");
}

static void what_fixes_the_result_is_refused(void **state)
{
	struct desk *d = *state;

	assert_int_equal(hd_kept_job_settings(&d->dir, job_with(d, "job.steps=6", HD_FROM_SET), &d->arena,
		&d->diag), HD_E_INVAL);
	CHECK(strstr(d->diag.text, "what fixes the result differs"), "%s", d->diag.text);
	assert_int_equal(hd_job_int(kept(d), HD_JOB_STEPS), 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_set_is_kept_and_nothing_else, enter, leave),
		cmocka_unit_test_setup_teardown(a_path_is_kept_from_the_root, enter, leave),
		cmocka_unit_test_setup_teardown(what_fixes_the_result_is_refused, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
