#include "run/kernels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "job/sets.h"
#include "tests/check.h"

static const char yaml[] = "model: {use: builtin:mlp, args: {input: [1, 4, 4], hidden: [8], classes: 3}}\n"
	"data: {kind: synthetic, count: 50}\nbatch: {global: 16}\njob: {steps: 5}\n";

struct desk { struct hd_arena arena; struct hd_fs fs; struct hd_clock clock; struct hd_job job;
	struct hd_diag diag; };

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_real(&d.fs);
	hd_clock_real(&d.clock);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_arena_finish(&((struct desk *)*state)->arena);
	return 0;
}

static struct hd_job *job_with(struct desk *d, const char *word)
{
	struct hd_job_sets sets;
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	assert_int_equal(hd_job_sets_init(&sets, 1, &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_job_sets_word(&sets, word, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&d->job, "job.yaml", yaml, sizeof yaml - 1, sets.set, sets.n, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

static void what_the_job_says_stays(void **state)
{
	struct desk *d = *state;
	struct hd_job *job = job_with(d, "job.kernels=portable");

	assert_int_equal(hd_kernels_settle(job, &d->fs, "library", &d->diag), HD_OK);
	assert_int_equal(hd_kernels_of(job), HD_KERNELS_PORTABLE);
	assert_int_equal(hd_job_int(job, HD_JOB_KERNELS_AUTO), HD_JOBAUTO_NONE);
	job = job_with(d, "job.kernels=library");
	assert_int_equal(hd_kernels_of(job), HD_KERNELS_LIBRARY);
}

/* The set of the checkpoint, whatever the table says; what is settled once stays, and moves no hash. */
static void auto_is_settled_once(void **state)
{
	static const struct { const char *was; enum hd_kernels kernels; } cases[] = {
		{ "library", HD_KERNELS_LIBRARY }, { "portable", HD_KERNELS_PORTABLE } };
	struct desk *d = *state;

	for (size_t i = 0; i < 2; i++) {
		struct hd_job *job = job_with(d, "job.kernels=auto");
		struct hd_hash before = job->hash;
		assert_int_equal(hd_kernels_settle(job, &d->fs, cases[i].was, &d->diag), HD_OK);
		assert_int_equal(hd_kernels_of(job), cases[i].kernels);
		assert_int_equal(hd_kernels_settle(job, &d->fs, cases[1 - i].was, &d->diag), HD_OK);
		assert_int_equal(hd_kernels_of(job), cases[i].kernels);
		assert_true(hd_hash_same(job->hash, before));
	}
	struct hd_job *job = job_with(d, "job.kernels=auto");
	assert_int_equal(hd_kernels_of(job), HD_KERNELS_PORTABLE);      /* before it is settled */
	assert_int_equal(hd_kernels_settle(job, &d->fs, NULL, &d->diag), HD_OK);
	assert_true(hd_job_int(job, HD_JOB_KERNELS_AUTO) != HD_JOBAUTO_NONE);
	if (!hd_device_has_library())
		assert_int_equal(hd_kernels_of(job), HD_KERNELS_PORTABLE);
}

/* The job of the run in `dir`, as a process that goes on with it reads it. */
static struct hd_job *read_back(struct desk *d, struct hd_rundir *dir)
{
	char path[HD_PATH_CAP];
	struct hd_text warnings;
	uint8_t *bytes;
	size_t len;

	hd_text_init(&warnings, &d->arena);
	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	assert_int_equal(hd_file_read_all(&d->fs, path, &d->arena, 1 << 20, &bytes, &len, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&d->job, path, (const char *)bytes, len, NULL, 0, &d->arena, &d->diag,
		&warnings), "%s",
		d->diag.text);
	return &d->job;
}

static void the_folder_of_a_run_keeps_it(void **state)
{
	struct desk *d = *state;
	struct hd_job *job = job_with(d, "job.kernels=auto");
	struct hd_text text;
	struct hd_rundir dir;
	char parent[64], folder[80];

	snprintf(parent, sizeof parent, "/tmp/hd_kernels_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", parent);
	assert_int_equal(hd_fs_mkdirs(&d->fs, parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&dir, &d->fs, &d->clock, parent, folder, "mlp", yaml,
		sizeof yaml - 1,
		&d->diag), HD_OK);
	hd_text_init(&text, &d->arena);
	hd_job_json(job, false, &text);
	assert_int_equal(hd_rundir_put(&dir, HD_RUN_JOB, text.at, text.len, &d->diag), HD_OK);
	assert_int_equal(hd_kernels_keep(&dir, job, "library", &d->arena, &d->diag), HD_OK);
	job = read_back(d, &dir);
	assert_int_equal(hd_kernels_of(job), HD_KERNELS_LIBRARY);
	assert_int_equal(hd_kernels_keep(&dir, job, "portable", &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_kernels_of(read_back(d, &dir)), HD_KERNELS_LIBRARY);
	hd_rundir_close(&dir);
	assert_int_equal(hd_fs_remove_tree(&d->fs, parent, NULL), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_job_says_stays, enter, leave),
		cmocka_unit_test_setup_teardown(auto_is_settled_once, enter, leave),
		cmocka_unit_test_setup_teardown(the_folder_of_a_run_keeps_it, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
