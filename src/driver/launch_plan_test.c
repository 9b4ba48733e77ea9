#include "driver/launch_int.h"

#include "run/kept_costs.h"
#include "driver/testing_run.h"

/* What a run over workers is started or resumed with, of parallel.mode: auto, by times that are made up. */

struct start { struct desk desk; struct hd_worker_spec worker; struct hd_launch launch; };

static void note(void *user, const char *kind, const char *text)
{
	(void)kind;
	desk_say(user, text);
}

static void begin(struct start *d, const char *more, uint32_t target, uint32_t ndevices, bool costs)
{
	desk_open(&d->desk, more);
	struct hd_job *job = d->desk.made.rig.job;
	const struct hd_job_value *memory = &job->value[HD_JOB_MEMORY];
	d->worker = (struct hd_worker_spec){ .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE,
		.memory_limit_bytes = memory->is_auto ? 0 : (uint64_t)memory->i };
	d->launch = (struct hd_launch){ .job = job, .task = d->desk.made.rig.task,
		.costs = costs ? d->desk.made.costs : NULL, .spec = { .job = job, .fs = &d->desk.made.rig.fs,
		.clock = &d->desk.clock, .dir = &d->desk.dir, .target = target,
		.worker = ndevices ? &d->worker : NULL, .watch = { .user = &d->desk, .note = note } } };
	hd_arena_init(&d->launch.arena, 0);
}

static void end(struct start *d)
{
	hd_arena_finish(&d->launch.arena);
	desk_close(&d->desk);
}

static const char *settled(struct start *d) { return d->launch.job->value[HD_JOB_PAR_SETTLED].text; }

static const char *kept(struct start *d) { return desk_kept(&d->desk); }

/* For this start, or as the job has it. */
static void give(struct start *d, enum hd_job_key key)
{
	struct hd_job_value *value = d->launch.job->value;

	if (key == HD_JOB_SLICES)
		value[key].i = 2;
	else if (key == HD_JOB_BN)
		value[key].i = HD_BN_GLOBAL;
	else if (key < HD_JOB_NKEYS)
		value[key].origin = HD_FROM_SET;
}

#define WAS "comm: {settled: fifo ranks 0, order: tac, buckets: 1KiB}\n"

/* Buckets and ranks, kept in the run's job, and in use by the task; the run's hash is the one that it had. */
static void a_start_settles_its_transfers(void **state)
{
	/* given: a key that was set for this start; 0: none */
	static const struct comm_start { const char *more; uint32_t target; bool costs;
		const char *begins; int cut; enum hd_job_key given; } rows[] = {
		{ "", 2, false, "tic+ ranks ", 0, 0 },
		{ "", 2, true, "search ranks ", 1, 0 },
		{ "comm: {order: tac}\n", 3, true, "tac parts ranks ", 1, 0 },
		{ "comm: {order: fifo, buckets: none}\n", 2, true, "fifo ranks ", 1, 0 },
		{ "comm: {order: random, buckets: 1KiB}\n", 2, false, "random parts ranks ", 1, 0 },
		{ "comm: {buckets: 1GiB}\n", 2, true, "search ranks 0 segments ", 1, 0 },
		/* what a run began with before: another start keeps it, as a coordinator that takes over
		 * keeps it */
		{ "comm: {settled: fifo ranks 0}\n", 2, true, "fifo ranks 0", 0, 0 },
		{ "comm: {settled: fifo ranks 0}\n", 0, true, "fifo ranks 0", 0, 0 },
		/* so it is when the job names another order and other buckets: these count when they are set
		 * for this start; no other key opens it, and a coordinator that takes over keeps it */
		{ WAS, 2, true, "fifo ranks 0", 0, 0 },
		{ WAS, 2, true, "tac parts ranks ", 1, HD_JOB_COMM_ORDER },
		{ WAS, 2, true, "tac parts ranks ", 1, HD_JOB_COMM_BUCKETS },
		{ WAS, 2, true, "fifo ranks 0", 0, HD_JOB_STEPS },
		{ WAS, 0, true, "fifo ranks 0", 0, HD_JOB_COMM_ORDER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct start d;
		struct hd_comm comm;
		begin(&d, rows[i].more, rows[i].target, 1, rows[i].costs);
		struct hd_task *task = d.launch.task;
		if (rows[i].given)
			give(&d, rows[i].given);
		const struct hd_job_value *value = &d.launch.job->value[HD_JOB_COMM_SETTLED];
		const uint32_t plain = hd_layout_nbuckets(&task->layout);
		CHECK(launch_comm(&d.launch, &d.desk.diag) == HD_OK, "row %zu: %s", i, d.desk.diag.text);
		CHECK(strncmp(value->text, rows[i].begins, strlen(rows[i].begins)) == 0, "row %zu: %s", i,
			value->text);
		CHECK(!!strstr(value->text, " segments ") == rows[i].cut &&
			(task->layout.first_chunk != NULL) ==
			rows[i].cut && (rows[i].cut || hd_layout_nbuckets(&task->layout) == plain),
				"row %zu: %s",
			i, value->text);
		CHECK(hd_comm_read(&comm, value->text, &d.launch.arena, &d.desk.diag) == HD_OK, "row %zu", i);
		CHECK(comm.nbuckets == hd_layout_nbuckets(&task->layout) && (!rows[i].target ||
			task->comm.nbuckets == comm.nbuckets), "row %zu: %s", i, value->text);
		struct hd_job *job;
		CHECK(hd_kept_job_read(&job, &d.desk.dir, NULL, 0, &d.launch.arena, &d.desk.diag) == HD_OK,
			"row %zu: %s", i, d.desk.diag.text);
		CHECK(strcmp(job->value[HD_JOB_COMM_SETTLED].text, value->text) == 0 &&
			hd_hash_same(job->hash, d.launch.job->hash), "row %zu: %s kept", i,
			job->value[HD_JOB_COMM_SETTLED].text);
		end(&d);
	}
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
		struct start d;
		char word[40], was[80];
		const char *want = rows[i].want;
		begin(&d, rows[i].more, rows[i].target, rows[i].ndevices, rows[i].costs);
		snprintf(was, sizeof was, "%s", settled(&d));
		give(&d, rows[i].given);
		CHECK(launch_settle(&d.launch, &d.desk.diag) == HD_OK, "row %zu: %s", i, d.desk.diag.text);
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
		struct start d;
		begin(&d, rows[i].more, rows[i].target, rows[i].ndevices, rows[i].costs);
		give(&d, rows[i].given);
		const enum hd_err err = launch_settle(&d.launch, &d.desk.diag);
		CHECK(err == HD_E_INVAL && strstr(d.desk.diag.text, rows[i].why), "row %zu: %d, %s", i,
			(int)err, d.desk.diag.text);
		end(&d);
	}
}

/* What ends otherwise than for want of memory ends the start: no other plan is tried for it. */
static void another_plan_is_tried_for_memory_alone(void **state)
{
	struct start d;

	(void)state;
	begin(&d, AUTO("schedule: gpipe") "workers: {memory: 64MiB}\n", 2, 1, true);
	d.worker.kind = "nonsense";
	assert_int_not_equal(launch_settle(&d.launch, &d.desk.diag), HD_OK);
	CHECK(*d.desk.diag.text && !strstr(d.desk.notes, "the next is tried"), "%s; %s", d.desk.diag.text,
		d.desk.notes);
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
		struct start d;
		begin(&d, rows[i].more, 2, 1, true);
		const enum hd_err err = launch_settle(&d.launch, &d.desk.diag);
		CHECK((err == HD_OK) == (rows[i].want != NULL), "row %zu: %s", i, d.desk.diag.text);
		CHECK(!rows[i].want || strstr(kept(&d), rows[i].want), "row %zu: %s", i, kept(&d));
		CHECK(!rows[i].said == !*d.desk.notes &&
			(!rows[i].said || strstr(d.desk.notes, rows[i].said)), "row %zu: %s", i,
			d.desk.notes);
		end(&d);
	}
}

/* Cuts of stages that drift: as the workers of a view would have them. */
static void other_cuts_are_judged_by_the_memory_of_workers(void **state)
{
	static const struct { const char *memory; bool fits; } rows[] = { { "8MiB", true },
		{ "300KiB", false }, { "auto", true } };
	static const struct hd_view_shape shape = { .nstages = 2, .width = 2, .place = { 0, 1 },
		.schedule = 1, .first = { 0, 25 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag why = { "" };
		struct start d;
		char more[120];
		snprintf(more, sizeof more, AUTO("settled: 'gpipe 2 2 0,5 of 2'") "workers: {memory: %s}\n",
			rows[i].memory);
		begin(&d, more, 2, 1, true);
		CHECK(launch_shape_fits(&d.launch, &shape, 2, 1, &why) == rows[i].fits &&
			(strstr(why.text, "the job needs") != NULL) == !rows[i].fits, "%s: %s",
			rows[i].memory, why.text);
		CHECK(strstr(settled(&d), "gpipe 2 2 0,5"), "%s", settled(&d));
		end(&d);
	}
}

/* Fewer stages after a loss, which neither the keys nor a plan file name. Parameters, slots and gradient of
 * the model are 81.7 MiB: one of two stages has at least half of them, and with the shadow of the other one
 * all but its gradient. */
static void fewer_stages_are_judged_as_such_in_each_mode(void **state)
{
	static const char model[] = "model: {use: builtin:gpt, args: {layers: 12, width: 192, heads: 2, "
		"context: 8, vocab: 90}}\ndata: {kind: synthetic, count: 64}\n";
	static const char *const modes[] = { "mode: pipeline, stages: 3", "mode: pipeline, width: 3",
		"mode: auto, settled: '1f1b 3 3 of 3'" };
	static const struct { uint32_t mib; bool shadows, fits; } row[] = { { 78, false, true },
		{ 40, false, false }, { 78, true, false }, { 160, true, true } };
	struct hd_view_shape two = { .nstages = 2, .width = 2, .place = { 0, 1 }, .schedule = 2 };
	struct hd_clock clock;

	(void)state;
	assert_string_equal(hd_schedule_kinds[two.schedule].name, "1f1b");
	hd_clock_real(&clock);
	for (size_t i = 0; i < sizeof modes / sizeof *modes * sizeof row / sizeof *row; i++) {
		const char *mode = modes[i % (sizeof modes / sizeof *modes)];
		const size_t at = i / (sizeof modes / sizeof *modes);
		struct hd_worker_spec worker = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
			.kernels = HD_KERNELS_PORTABLE, .memory_limit_bytes = (uint64_t)row[at].mib << 20 };
		struct hd_diag why = { "" };
		char more[160];
		struct hd_rig rig;
		snprintf(more, sizeof more, "parallel: {%s}\ncomm: {sync: stages}\nworkers: {memory: 1GiB}\n",
			mode);
		hd_rig_begin(&rig, model, 8, 2, more);
		CHECK(hd_task_create(&rig.task, rig.job, &rig.fs, &why) == HD_OK, "%s: %s", mode, why.text);
		struct hd_launch launch = { .job = rig.job, .task = rig.task, .spec = { .fs = &rig.fs,
			.clock = &clock, .worker = &worker } };
		hd_shape_make_redundant(&two, row[at].shadows ? HD_REDUNDANCY_LAZY : HD_REDUNDANCY_NONE);
		CHECK(launch_shape_fits(&launch, &two, 2, 1, &why) == row[at].fits, "%s, row %zu: %s", mode,
			at, why.text);
		hd_rig_close(&rig);
	}
}

/* It has nothing to measure with, and its stages drift as any other's. */
static void a_run_that_is_taken_over_goes_on_with_its_costs(void **state)
{
	static const struct { const char *more; uint32_t target; bool keeps, has; } rows[] = {
		{ AUTO("settled: '1f1b 2 2 0,5 of 2'") "workers: {memory: 8MiB}\n", 0, true, true },
		{ "parallel: {mode: pipeline, width: 2}\n", 0, true, true },
		{ AUTO("settled: '1f1b 2 2 0,5 of 2'"), 0, false, false },
		{ "parallel: {mode: data}\n", 0, true, false },
		/* a scheduler starts it */
		{ AUTO("settled: '1f1b 2 2 0,5 of 2'"), 2, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_worker_spec opened = { .ndevices = 3, .nthreads = 1 };
		struct start d;
		begin(&d, rows[i].more, rows[i].target, 0, false);
		struct hd_launch *l = &d.launch;
		if (rows[i].keeps)
			assert_int_equal(hd_kept_costs_put(&d.desk.dir, d.desk.made.costs, &opened, &l->arena,
				NULL), HD_OK);
		assert_int_equal(launch_cost(l, &d.desk.diag), HD_OK);
		CHECK((l->costs != NULL) == rows[i].has && (*d.desk.notes != '\0') == rows[i].has,
			"row %zu: %s", i, d.desk.notes);
		if (rows[i].has) {
			assert_true(l->redraw.spec.costs == l->costs && l->redraw.spec.task == l->task);
			assert_true(l->spec.worker->ndevices == 3 && l->redraw.spec.is_auto == (i == 0) &&
				l->redraw.spec.memory_bytes == (i ? 0 : 8 << 20) && l->redraw.spec.fits);
			hd_redraw_finish(&l->redraw);
		}
		assert_int_equal(launch_settle(l, &d.desk.diag), HD_OK);
		CHECK(rows[i].target || strstr(settled(&d), i == 0 || i == 2 ? "1f1b 2 2 0,5 of 2" : "none"),
			"row %zu: %s", i, settled(&d));
		end(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_settles_its_transfers),
		cmocka_unit_test(a_start_settles_by_what_it_has),
		cmocka_unit_test(state_by_stages_does_not_start_without_stages),
		cmocka_unit_test(another_plan_is_tried_for_memory_alone),
		cmocka_unit_test(what_was_chosen_must_fit_a_lower_limit),
		cmocka_unit_test(other_cuts_are_judged_by_the_memory_of_workers),
		cmocka_unit_test(fewer_stages_are_judged_as_such_in_each_mode),
		cmocka_unit_test(a_run_that_is_taken_over_goes_on_with_its_costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
