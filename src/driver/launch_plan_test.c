#include "driver/launch_int.h"

#include <string.h>
#include <unistd.h>

#include "run/kept_job.h"
#include "run/testing_costs.h"

/* What a run over workers is started or resumed with, of parallel.mode: auto, by times that are made up. */

struct desk {
	struct hd_made made;
	struct hd_clock clock;
	struct hd_rundir dir;
	struct hd_worker_spec worker;
	struct hd_launch launch;
	struct hd_diag diag;
	char parent[64], notes[4096];
};

static void note(void *user, const char *kind, const char *text)
{
	struct desk *d = user;
	const size_t n = strlen(d->notes);

	(void)kind;
	snprintf(d->notes + n, sizeof d->notes - n, "%s\n", text);
}

static void begin(struct desk *d, const char *more, uint32_t target, uint32_t ndevices, bool costs)
{
	struct hd_text text;
	char folder[80];

	*d = (struct desk){ .notes = "" };
	hd_made_begin(&d->made, hd_made_gpt, more, 5);
	struct hd_arena *arena = &d->made.rig.arena;
	struct hd_fs *fs = &d->made.rig.fs;
	hd_clock_real(&d->clock);
	snprintf(d->parent, sizeof d->parent, "/tmp/hd_launch_plan_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", d->parent);
	assert_int_equal(hd_fs_mkdirs(fs, d->parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&d->dir, fs, &d->clock, d->parent, folder, "gpt", "{}", 2, NULL),
		HD_OK);
	hd_text_init(&text, arena);
	hd_job_json(d->made.rig.job, false, &text);
	assert_int_equal(hd_rundir_put(&d->dir, HD_RUN_JOB, text.at, text.len, NULL), HD_OK);
	const struct hd_job_value *memory = &d->made.rig.job->value[HD_JOB_MEMORY];
	d->worker = (struct hd_worker_spec){ .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE,
		.memory_limit_bytes = memory->is_auto ? 0 : (uint64_t)memory->i };
	d->launch = (struct hd_launch){ .job = d->made.rig.job, .task = d->made.rig.task,
		.costs = costs ? d->made.costs : NULL, .spec = { .job = d->made.rig.job, .fs = fs,
		.clock = &d->clock, .dir = &d->dir, .target = target,
		.worker = ndevices ? &d->worker : NULL, .watch = { .user = d, .note = note } } };
	hd_arena_init(&d->launch.arena, 0);
}

static void end(struct desk *d)
{
	hd_arena_finish(&d->launch.arena);
	hd_rundir_close(&d->dir);
	assert_int_equal(hd_fs_remove_tree(&d->made.rig.fs, d->parent, NULL), HD_OK);
	hd_made_end(&d->made);
}

static const char *settled(struct desk *d) { return d->made.rig.job->value[HD_JOB_PAR_SETTLED].text; }

/* As a worker reads it, or a coordinator that takes over. */
static const char *kept(struct desk *d)
{
	struct hd_job *job = NULL;

	CHECK(hd_kept_job_read(&job, &d->dir, NULL, 0, &d->made.rig.arena, &d->diag) == HD_OK, "%s",
		d->diag.text);
	return job->value[HD_JOB_PAR_SETTLED].text;
}

/* For this start, or as the job has it. */
static void give(struct desk *d, enum hd_job_key key)
{
	struct hd_job_value *value = d->made.rig.job->value;

	if (key == HD_JOB_SLICES)
		value[key].i = 2;
	else if (key == HD_JOB_BN)
		value[key].i = HD_BN_GLOBAL;
	else if (key < HD_JOB_NKEYS)
		value[key].origin = HD_FROM_SET;
}

static void a_start_settles_by_what_it_has(void **state)
{
	/* given: a key that was set for this start; want: "=" what it was, else the words that it has */
	static const struct { const char *more; uint32_t target, ndevices; bool costs; enum hd_job_key given;
		const char *want; } rows[] = {
#define NONE HD_JOB_NKEYS
#define AUTO(rest) "parallel: {mode: auto, " rest "}\n"
		{ AUTO("schedule: gpipe"), 2, 1, true, NONE, "gpipe 2 2 0, of 2" },
		{ AUTO("settled: '1f1b 2 2 0,5 of 2'"), 2, 1, true, NONE, "=" },
		{ AUTO("settled: '1f1b 2 2 0,5 of 2'"), 2, 1, false, NONE, "=" },
		{ AUTO("settled: 'data-parallel 1 1 of 2'"), 2, 1, true, NONE, "=" },
		{ AUTO("settled: 'data-parallel 1 1 of 2'"), 1, 2, true, NONE, "=" },
		/* keys given at a resume, or that stand in the job, count */
		{ AUTO("schedule: gpipe, settled: '1f1b 2 2 0,5 of 2'"), 2, 1, true, HD_JOB_PAR_SCHEDULE,
			"gpipe 2 2 0, of 2" },
		{ AUTO("schedule: gpipe, settled: '1f1b 2 2 0,5 of 2'"), 2, 1, true, NONE, "gpipe 2 2 0, of 2" },
		{ AUTO("recompute: stage, settled: '1f1b 2 2 0,5 of 2'"), 2, 1, true, HD_JOB_PAR_RECOMPUTE,
			" recompute of 2" },
		{ AUTO("schedule: gpipe, settled: '1f1b 2 2 0,5 of 2'"), 2, 1, false, HD_JOB_PAR_SCHEDULE,
			"none" },
		/* other devices */
		{ AUTO("schedule: 1f1b, settled: '1f1b 2 2 0,5 of 2'"), 3, 1, true, NONE, "1f1b 3 3 0, of 3" },
		{ AUTO("settled: '1f1b 3 3 of 3'"), 1, 1, true, NONE, "data-parallel 1 1" },
		{ AUTO("settled: '1f1b 3 3 of 3'"), 1, 1, false, NONE, "data-parallel 1 1" },
		{ AUTO("settled: '1f1b 3 3 of 3'"), 4, 1, false, NONE, "data-parallel 1 1" },
		/* workers of a scheduler: theirs is the whole model */
		{ AUTO("settled: '1f1b 3 3 of 3'"), 4, 0, true, NONE, "data-parallel 1 1" },
		/* of a run that is taken over nothing changes */
		{ AUTO("settled: '1f1b 3 3 of 3'"), 0, 1, true, NONE, "=" },
		{ AUTO("schedule: gpipe, settled: '1f1b 3 3 of 3'"), 0, 0, true, NONE, "=" },
		/* what goes with the whole model alone */
		{ AUTO("settled: '1f1b 2 2 of 2'") "comm: {sync: sharded}\n", 2, 1, true, NONE,
			"data-parallel 1 1" },
		{ AUTO("settled: '1f1b 2 2 of 2'"), 2, 1, true, HD_JOB_SLICES, "data-parallel 1 1" },
		{ AUTO("settled: '1f1b 2 2 of 2'"), 2, 1, true, HD_JOB_BN, "data-parallel 1 1" },
		/* another mode */
		{ "parallel: {mode: pipeline, settled: '1f1b 3 3 of 3'}\n", 2, 1, true, NONE, "=" },
		{ "parallel: {mode: data}\n", 2, 1, true, NONE, "none" },
		/* state by stages */
		{ AUTO("schedule: auto") "comm: {sync: stages}\n", 2, 1, true, NONE, " of 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct desk d;
		char word[40], was[80];
		const char *want = rows[i].want;
		begin(&d, rows[i].more, rows[i].target, rows[i].ndevices, rows[i].costs);
		snprintf(was, sizeof was, "%s", settled(&d));
		give(&d, rows[i].given);
		CHECK(launch_settle(&d.launch, &d.diag) == HD_OK, "row %zu: %s", i, d.diag.text);
		if (*want == '=')
			want = was;
		for (size_t n; *want; want += n + (want[n] == ',')) {
			n = strcspn(want, ",");
			snprintf(word, sizeof word, "%.*s", (int)n, want);
			CHECK(strstr(settled(&d), word), "row %zu: %s, without \"%s\"", i, settled(&d), word);
		}
		CHECK(*rows[i].want != '=' || !strcmp(settled(&d), was), "row %zu: %s", i, settled(&d));
		assert_string_equal(kept(&d), settled(&d));
		end(&d);
	}
}

/* State by stages needs stages. */
static void state_by_stages_does_not_start_without_stages(void **state)
{
	static const char stages[] = AUTO("schedule: auto") "comm: {sync: stages}\n",
		was[] = AUTO("settled: '1f1b 3 3 of 3'") "comm: {sync: stages}\n";
	static const struct { const char *more; uint32_t target, ndevices; bool costs; enum hd_job_key given;
		const char *why; } rows[] = {
		{ stages, 1, 1, true, NONE, "there is one device" },
		{ was, 1, 1, true, NONE, "there is one device" },
		{ stages, 3, 1, false, NONE, "were not measured" },
		{ stages, 3, 1, true, HD_JOB_BN, "the whole model alone" },
		{ stages, 3, 0, true, NONE, "scheduler" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct desk d;
		begin(&d, rows[i].more, rows[i].target, rows[i].ndevices, rows[i].costs);
		give(&d, rows[i].given);
		const enum hd_err err = launch_settle(&d.launch, &d.diag);
		CHECK(err == HD_E_INVAL && strstr(d.diag.text, rows[i].why), "row %zu: %d, %s", i, (int)err,
			d.diag.text);
		end(&d);
	}
}

/* What ends otherwise than for want of memory ends the start: no other plan is tried for it. */
static void another_plan_is_tried_for_memory_alone(void **state)
{
	struct desk d;

	(void)state;
	begin(&d, AUTO("schedule: gpipe") "workers: {memory: 64MiB}\n", 2, 1, true);
	d.worker.kind = "nonsense";
	assert_int_not_equal(launch_settle(&d.launch, &d.diag), HD_OK);
	CHECK(*d.diag.text && !strstr(d.notes, "the next is tried"), "%s; %s", d.diag.text, d.notes);
	assert_string_equal(kept(&d), "none");
	end(&d);
}

/* A limit that is lower than before: what was chosen stays where it fits yet, and else those stages compute
 * again; where keys forbid that the start is refused. */
static void what_was_chosen_must_fit_a_lower_limit(void **state)
{
	static const struct { const char *more, *want, *said; } rows[] = {
		{ AUTO("schedule: gpipe, settled: 'gpipe 2 2 of 2'") "workers: {memory: 8MiB}\n", "gpipe 2 2 of 2",
			NULL },
		{ AUTO("schedule: gpipe, settled: 'gpipe 2 2 of 2'") "workers: {memory: 800KiB}\n",
			" recompute of 2", "fits no longer" },
		{ AUTO("schedule: gpipe, recompute: none, settled: 'gpipe 2 2 of 2'")
			"workers: {memory: 800KiB}\n", NULL, "fits no longer" },
		{ AUTO("schedule: gpipe, settled: 'gpipe 2 2 of 2'") "comm: {sync: stages}\n"
			"workers: {memory: 100KiB}\n", NULL, "fits no longer" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct desk d;
		begin(&d, rows[i].more, 2, 1, true);
		const enum hd_err err = launch_settle(&d.launch, &d.diag);
		CHECK((err == HD_OK) == (rows[i].want != NULL), "row %zu: %s", i, d.diag.text);
		CHECK(!rows[i].want || strstr(kept(&d), rows[i].want), "row %zu: %s", i, kept(&d));
		CHECK(!rows[i].said == !*d.notes && (!rows[i].said || strstr(d.notes, rows[i].said)),
			"row %zu: %s", i, d.notes);
		end(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_settles_by_what_it_has),
		cmocka_unit_test(state_by_stages_does_not_start_without_stages),
		cmocka_unit_test(another_plan_is_tried_for_memory_alone),
		cmocka_unit_test(what_was_chosen_must_fit_a_lower_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
