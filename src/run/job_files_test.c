#include "run/job_files.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "job/sets.h"
#include "tests/check.h"

static const char yaml[] = "data: {kind: csv, path: none.csv}\nbatch: {global: 16}\njob: {steps: 5}\n"
	"model: {use: builtin:mlp}\n";

struct desk { struct hd_arena arena; struct hd_fs_sim files; struct hd_job job; struct hd_diag diag; };

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_sim_init(&d.files);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	struct desk *d = *state;

	hd_fs_sim_finish(&d->files);
	hd_arena_finish(&d->arena);
	return 0;
}

static void put(struct desk *d, const char *folder, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(hd_fs_mkdirs(&d->files.fs, folder, NULL), HD_OK);
	assert_int_equal(hd_file_write_atomic(&d->files.fs, path, text, strlen(text), NULL), HD_OK);
}

static struct hd_job *job_with(struct desk *d, const char *const *words)
{
	struct hd_job_sets sets;
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	assert_int_equal(hd_job_sets_init(&sets, 8, &d->arena, &d->diag), HD_OK);
	for (; *words; words++)
		assert_int_equal(hd_job_sets_word(&sets, *words, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&d->job, "job.yaml", yaml, sizeof yaml - 1, sets.set, sets.n, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

static void paths_that_lead_nowhere_from_here_are_looked_for_there(void **state)
{
	struct desk *d = *state;
	struct hd_job *job = job_with(d, (const char *const[]){ "model.use=graph:m.graph",
		"model.weights=w.st",
		"data.path=d.csv", "net.key=k", NULL });

	put(d, "/there", "m.graph", "x");
	put(d, "/there", "w.st", "x");
	put(d, "/", "w.st", "x");         /* here, too: stays */
	put(d, "/there", "k", "x");
	hd_job_files_from(job, &d->files.fs, "/there", 6, &d->arena);
	assert_string_equal(hd_job_text(job, HD_JOB_MODEL), "graph:/there/m.graph");
	assert_string_equal(hd_job_model_file(job), "/there/m.graph");
	assert_string_equal(hd_job_text(job, HD_JOB_WEIGHTS), "w.st");
	assert_string_equal(hd_job_text(job, HD_JOB_DATA_PATH), "d.csv");       /* nowhere: as it was said */
	assert_string_equal(hd_job_text(job, HD_JOB_NET_KEY), "/there/k");
	job = job_with(d, (const char *const[]){ "model.weights=w2.st", NULL });
	put(d, "/there", "w2.st", "x");
	hd_job_files_from(job, &d->files.fs, "/there", 6, &d->arena);
	assert_string_equal(hd_job_text(job, HD_JOB_WEIGHTS), "/there/w2.st");
}

static void a_builtin_model_has_no_file(void **state)
{
	struct desk *d = *state;

	assert_null(hd_job_model_file(job_with(d, (const char *const[]){ NULL })));
	assert_string_equal(hd_job_model_file(job_with(d, (const char *const[]){ "model.use=onnx:/a.onnx",
		NULL })),
		"/a.onnx");
}

static void the_job_of_a_run_begins_where_the_run_was_begun(void **state)
{
	struct desk *d = *state;
	static const char *const words[] = { "data.path=d.csv", NULL };

	put(d, "/there", "d.csv", "x");
	put(d, "/run", HD_RUN_JOB, "{}");
	put(d, "/run", HD_RUN_FOLDER, "/there");
	struct hd_job *job = job_with(d, words);
	assert_int_equal(hd_job_files_beside(job, &d->files.fs, "/run/my-other-job.yaml", &d->arena,
		&d->diag), HD_OK);
	/* a job file, not a run's job */
	assert_string_equal(hd_job_text(job, HD_JOB_DATA_PATH), "d.csv");
	assert_int_equal(hd_job_files_beside(job, &d->files.fs, "/run/" HD_RUN_JOB, &d->arena, &d->diag),
		HD_OK);
	assert_string_equal(hd_job_text(job, HD_JOB_DATA_PATH), "/there/d.csv");
	job = job_with(d, words);
	put(d, "/old", HD_RUN_JOB, "{}"); /* of a program that wrote no folder */
	assert_int_equal(hd_job_files_beside(job, &d->files.fs, "/old/" HD_RUN_JOB, &d->arena, &d->diag),
		HD_OK);
	assert_string_equal(hd_job_text(job, HD_JOB_DATA_PATH), "d.csv");
	assert_true(hd_job_has_beside(&d->files.fs, "/run/" HD_RUN_JOB, HD_RUN_FOLDER));
	assert_false(hd_job_has_beside(&d->files.fs, "/run/" HD_RUN_JOB, "lease"));
	assert_false(hd_job_has_beside(&d->files.fs, "/run/my-other-job.yaml", HD_RUN_FOLDER));
}

/* Each prefix of a run's job: refused with what replaces it, never where something else is wrong. */
static void a_damaged_job_of_a_run_is_refused_with_its_replacement(void **state)
{
	static const char cp[] = "`cp /run/job.yaml /run/" HD_RUN_JOB "`";
	struct desk *d = *state;
	struct hd_job *job = job_with(d, (const char *const[]){ NULL });
	struct hd_text text;

	hd_text_init(&text, &d->arena);
	hd_job_json(job, false, &text);
	put(d, "/run", HD_RUN_JOB, text.at);
	put(d, "/run", "job.yaml", yaml);
	for (size_t len = 0; len <= text.len; len += len + 10 < text.len ? 101 : 1) {
		struct hd_diag diag = { "line 1: no value" };
		hd_job_files_repair(&d->files.fs, "/run/" HD_RUN_JOB, text.at, len, &d->arena, &diag);
		CHECK(!strncmp(diag.text, "line 1: no value", 16), "%zu: %s", len, diag.text);
		CHECK(!strstr(diag.text, cp) == (len == text.len), "%zu of %zu bytes: %s", len, text.len,
			diag.text);
	}
	struct hd_diag diag = { "why" };
	hd_job_files_repair(&d->files.fs, "/run/my-other-job.yaml", "{", 1, &d->arena, &diag);
	assert_string_equal(diag.text, "why");
	put(d, "/old", HD_RUN_JOB, "{");
	hd_job_files_repair(&d->files.fs, "/old/" HD_RUN_JOB, "{", 1, &d->arena, &diag);
	assert_non_null(strstr(diag.text, "why; the file is damaged, and /old/job.yaml, which could"));
}

static void a_run_is_found_from_its_checkpoints(void **state)
{
	static const struct { const char *path, *dir; } cases[] = {
		{ "/run", "/run" }, { "/run/ckpt", "/run/ckpt/.." }, { "/run/ckpt/step-000000001", "/run/ckpt/step-000000001/../.." },
	};
	char dir[HD_RUN_PATH], job[HD_PATH_CAP], path[HD_PATH_CAP], long_path[HD_RUN_PATH + 10];
	struct desk *d = *state;
	struct hd_fs real;

	hd_fs_real(&real);                /* the simulated files know no ".." */
	snprintf(path, sizeof path, "/tmp/hd_job_files_test.%p", (void *)d);
	char made[HD_PATH_CAP + 32], at[HD_PATH_CAP + 32];
	snprintf(made, sizeof made, "%s/run/ckpt/step-000000001", path);
	assert_int_equal(hd_fs_mkdirs(&real, made, NULL), HD_OK);
	snprintf(made, sizeof made, "%s/run/" HD_RUN_JOB, path);
	assert_int_equal(hd_file_write_atomic(&real, made, "{}", 2, NULL), HD_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(at, sizeof at, "%s%s", path, cases[i].path);
		assert_int_equal(hd_job_run_of(&real, at, dir, job, &d->diag), HD_OK);
		assert_string_equal(dir + strlen(path), cases[i].dir);
		assert_true(strlen(job) == strlen(dir) + sizeof HD_RUN_JOB);
	}
	assert_int_equal(hd_job_run_of(&real, "/tmp", dir, job, &d->diag), HD_E_NOTFOUND);
	assert_non_null(strstr(d->diag.text, "/tmp is no run"));
	memset(long_path, 'x', sizeof long_path);
	long_path[sizeof long_path - 1] = '\0';
	assert_int_equal(hd_job_run_of(&real, long_path, dir, job, &d->diag), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_remove_tree(&real, path, NULL), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_that_lead_nowhere_from_here_are_looked_for_there,
			enter, leave),
		cmocka_unit_test_setup_teardown(a_builtin_model_has_no_file, enter, leave),
		cmocka_unit_test_setup_teardown(the_job_of_a_run_begins_where_the_run_was_begun, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_damaged_job_of_a_run_is_refused_with_its_replacement, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_run_is_found_from_its_checkpoints, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
