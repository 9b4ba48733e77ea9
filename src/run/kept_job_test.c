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

static struct hd_job_set set_of(struct desk *d, const char *word, enum hd_origin origin)
{
	struct hd_job_sets sets;

	assert_int_equal(hd_job_sets_init(&sets, 1, &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_job_sets_word(&sets, word, &d->diag), HD_OK);
	sets.set[0].origin = origin;
	return sets.set[0];
}

/* `text` with one word set, as `-s` or, of `origin`, as another did. */
static struct hd_job *job_of(struct desk *d, const char *text, const char *word, enum hd_origin origin)
{
	const struct hd_job_set set = set_of(d, word, origin);
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	CHECK(!hd_job_parse(&d->job, "job.yaml", text, strlen(text), &set, 1, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

static struct hd_job *job_with(struct desk *d, const char *word, enum hd_origin origin)
{
	return job_of(d, yaml, word, origin);
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

static void begin_with(struct desk *d, const struct hd_job *job)
{
	struct hd_text text;

	hd_text_init(&text, &d->arena);
	hd_job_json(job, false, &text);
	assert_int_equal(hd_rundir_put(&d->dir, HD_RUN_JOB, text.at, text.len, &d->diag), HD_OK);
}

static int enter(void **state)
{
	static struct desk d;
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
	begin_with(&d, job_with(&d, "workers.min=2", HD_FROM_SET));
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

/* Of two keys that say the same the later place counts: both are kept, else the next one that reads the file
 * finds them in contradiction. */
static void a_way_through_losses_is_kept_whole(void **state)
{
	static const struct { const char *begun, *word; enum hd_origin origin; const char *mode, *by; }
	row[] = {
		{ "redundancy: lazy\n", "elastic.resilience=checkpoint", HD_FROM_SET, "none", "checkpoint" },
		{ "redundancy: lazy\n", "elastic.resilience=checkpoint", HD_FROM_ENV, "none", "checkpoint" },
		{ "resilience: shadow-lazy\n", "elastic.redundancy=none", HD_FROM_SET, "none", "given" },
		{ "resilience: shadow-lazy\n", "elastic.redundancy=none", HD_FROM_ENV, "none", "given" },
		{ "resilience: shadow-lazy\n", "elastic.resilience=reroute", HD_FROM_SET, "none", "reroute" },
		{ "resilience: checkpoint\n", "elastic.redundancy=lazy", HD_FROM_SET, "lazy", "given" },
		{ "", "elastic.resilience=shadow-lazy", HD_FROM_SET, "lazy", "shadow-lazy" },
		{ "redundancy: by-notice\n", "elastic.resilience=checkpoint", HD_FROM_SET, "none",
			"checkpoint" },
		{ "resilience: shadow-lazy\n", "elastic.redundancy=by-notice", HD_FROM_SET, "lazy",
			"by-notice" },
	};
	struct desk *d = *state;
	char text[500];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_job_set set = set_of(d, row[i].word, row[i].origin);
		struct hd_job *resumed;

		snprintf(text, sizeof text, "%scomm: {sync: stages}\n%s", yaml, row[i].begun);
		begin_with(d, job_of(d, text, "workers.min=2", HD_FROM_SET));
		CHECK(!hd_kept_job_read(&resumed, &d->dir, &set, 1, &d->arena, &d->diag), "row %zu: %s", i,
			d->diag.text);
		CHECK(!hd_kept_job_settings(&d->dir, resumed, &d->arena, &d->diag), "row %zu: %s", i,
			d->diag.text);
		const struct hd_job *is = kept(d);
		CHECK(!strcmp(hd_job_text(is, HD_JOB_REDUNDANCY), row[i].mode) &&
			!strcmp(hd_job_text(is, HD_JOB_RESILIENCE), row[i].by), "row %zu: %s, %s", i,
			hd_job_text(is, HD_JOB_REDUNDANCY), hd_job_text(is, HD_JOB_RESILIENCE));
	}
}

static void what_fixes_the_result_is_refused(void **state)
{
	struct desk *d = *state;

	assert_int_equal(hd_kept_job_settings(&d->dir, job_with(d, "job.steps=6", HD_FROM_SET), &d->arena,
		&d->diag), HD_E_INVAL);
	CHECK(strstr(d->diag.text, "what fixes the result differs"), "%s", d->diag.text);
	assert_int_equal(hd_job_int(kept(d), HD_JOB_STEPS), 5);
}

/* Where another lineage cannot go on either, it is not named as what to do. */
static void other_rows_that_are_late_are_refused_by_name(void **state)
{
	static const struct { const char *mode, *word; bool rows; } row[] = {
		{ "mode: bounded, staleness: 1", "job.steps=6", true },
		{ "mode: bounded, staleness: 1", "batch.staleness=2", true },
		{ "mode: bounded", "batch.mode=sync", true },
		{ "mode: exact, staleness: 2, cells: 2", "batch.staleness=1", true },
		{ "mode: exact, staleness: 2, cells: 2", "job.steps=6", false },
		{ "mode: bounded", "optim.lr=0.5", false },
	};
	struct desk *d = *state;
	char text[500];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		snprintf(text, sizeof text, "model: {use: builtin:gcn, args: {input: 8, classes: 2, "
			"slots: 3}}\ndata: {kind: graph, path: g.graph, order: sequential}\njob: {steps: 5}\n"
			"batch: {global: 16, virtual_nodes: 4, %s}\n", row[i].mode);
		begin_with(d, job_of(d, text, "workers.min=2", HD_FROM_SET));
		d->diag.text[0] = 0;
		assert_int_equal(hd_kept_job_settings(&d->dir, job_of(d, text, row[i].word, HD_FROM_SET),
			&d->arena, &d->diag), HD_E_INVAL);
		CHECK(!strstr(d->diag.text, "--new-semantics") == row[i].rows &&
			!strstr(d->diag.text, "model.weights") == !row[i].rows, "row %zu: %s", i,
			d->diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_set_is_kept_and_nothing_else, enter, leave),
		cmocka_unit_test_setup_teardown(a_path_is_kept_from_the_root, enter, leave),
		cmocka_unit_test_setup_teardown(a_way_through_losses_is_kept_whole, enter, leave),
		cmocka_unit_test_setup_teardown(what_fixes_the_result_is_refused, enter, leave),
		cmocka_unit_test_setup_teardown(other_rows_that_are_late_are_refused_by_name, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
