#include "driver/driver_int.h"

#include <math.h>

#include "protocol/testing_coordinator.h"
#include "worker/elastic.h"
#include "driver/testing_run.h"

/* checkpoint.every: auto on its way through a driver: what its machine's notes say of checkpoints and losses,
 * the file that the worker reads which saves, the coordinator that follows. */

struct run {
	struct desk desk;
	struct driver c;
	struct hd_driver_spec spec;
	struct co_at_work at;
	struct hd_clock_sim clock;
};

static void note(void *user, const char *kind, uint32_t worker, const char *text)
{
	(void)worker;
	if (!strcmp(kind, "saving") || !strcmp(kind, "warning"))
		desk_say(user, text);
}

static void begin_with(struct run *r, const char *more, uint32_t n)
{
	struct driver *c = &r->c;
	char all[300], path[100];

	memset(r, 0, sizeof *r);
	snprintf(all, sizeof all, "checkpoint: {every: auto}\n%s\n", more);
	desk_open(&r->desk, all);
	const struct hd_task *task = r->desk.made.rig.task;
	hd_clock_sim(&r->clock, INT64_C(1000000000000), 0);
	r->spec = (struct hd_driver_spec){ .task = task, .fs = &r->desk.made.rig.fs, .clock = &r->clock.clock,
		.dir = &r->desk.dir, .target = 2, .watch = { .user = &r->desk, .note = note } };
	c->spec = &r->spec;
	CHECK(hd_pipe_set_init(&c->pipes, task, &r->desk.diag) == HD_OK, "%s", r->desk.diag.text);
	c->config = co_config;
	c->config.nvns = task->job->nvns;
	c->config.nbuckets = hd_layout_nbuckets(&task->layout);
	c->config.shape = c->pipes.first.shape;
	c->config.pipes = c->pipes.first.most;
	c->config.copies = hd_job_copies(task->job);
	c->config.of_shape = hd_pipe_set_buckets;
	c->config.of_shape_self = &c->pipes;
	c->config.bucket_bytes = c->pipes.first.bytes;
	c->config.whole = c->pipes.first.buckets.whole;
	co_run(&r->at, &c->config, n);
	assert_int_equal(r->at.co->view.nranks, n);
	c->machine = r->at.co;
	c->stepping = true;
	snprintf(path, sizeof path, "%s/saving.db", r->desk.parent);
	CHECK(hd_store_open(&c->store, path, &r->desk.diag) == HD_OK, "%s", r->desk.diag.text);
	driver_saving_begin(c);
	driver_guard_begin(c, task->job);
	driver_guard_go_on(c);
}

static void begin(struct run *r, const char *more) { begin_with(r, more, 2); }

static void end(struct run *r)
{
	hd_store_close(r->c.store);
	co_end(&r->at);
	hd_pipe_set_finish(&r->c.pipes);
	desk_close(&r->desk);
}

static void pass(struct run *r, int64_t s) { hd_clock_sim_advance(&r->clock, s * 1000000000); }

static void save(struct run *r, double took_s)
{
	char text[160], event[200];

	hd_ckpt_done_say(text, sizeof text, 7, 1 << 20, took_s);
	snprintf(event, sizeof event, "{\"text\":\"%s\"}", text);
	driver_noted(&r->c, "checkpoint_done", 0, event);
}

/* What the worker reads which saves, in seconds; 0: nothing. */
static double every_s(struct run *r)
{
	struct hd_saving saving;

	return hd_ckpt_every_get(&saving, r->spec.fs, r->desk.dir.path) ? (double)saving.every_ms * 1e-3 : 0;
}

static bool near(double is, double want) { return fabs(is - want) < 1e-3 * want; }

/* Which losses go back follows from what members hold: where each worker alone has a part, each does; else of
 * two those of both at once, which are half of the losses here; of four in chains of two copies two of three
 * such. Where none does it is 30 min, the most there is. */
static void only_losses_that_go_back_count(void **state)
{
	static const struct { const char *more; uint32_t n; bool first; double then; } row[] = {
#define STAGES "parallel: {mode: pipeline, width: 2}\n"
		{ STAGES "comm: {sync: stages}", 2, true, 1 },
		{ STAGES "comm: {sync: stages}\nelastic: {redundancy: lazy}", 2, false, 0.5 },
		{ STAGES, 2, false, 0.5 },
		{ "", 2, false, 0.5 },
		{ "comm: {sync: sharded, copies: 2}", 2, false, 0.5 },
		{ "comm: {sync: sharded, copies: 2}", 4, false, 1 / 3. },
		{ "", 1, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct run r;
		begin_with(&r, row[i].more, row[i].n);
		driver_saving_step(&r.c);
		CHECK(every_s(&r) == 0, "row %zu: %g s of no checkpoint", i, every_s(&r));
		save(&r, 0.5);
		driver_saving_step(&r.c);
		/* one in ten minutes, of one worker, before any was seen */
		CHECK(near(every_s(&r), row[i].first ? sqrt(2 * 0.5 * 600) : 1800), "row %zu: %g s", i,
			every_s(&r));
		pass(&r, 600);
		driver_noted(&r.c, "lost", 0, "its process ended");
		driver_noted(&r.c, "lost", 1, "its process ended");
		driver_saving_step(&r.c);
		CHECK(near(every_s(&r), sqrt(2 * 0.5 * 600 / row[i].then)), "row %zu: %g s", i, every_s(&r));
		end(&r);
	}
}

/* It is judged at a commit after a loss or a checkpoint, else at each hundredth. */
static void an_interval_follows_losses_at_commits(void **state)
{
	char text[HD_SAVING_WORDS + 16];
	struct run r;

	(void)state;
	begin(&r, STAGES "comm: {sync: stages}");
	save(&r, 0.5);
	assert_true(every_s(&r) == 0);
	driver_saving_step(&r.c);
	assert_true(near(every_s(&r), 24.495));
	CHECK(!strcmp(r.desk.notes, "checkpoints 24.5 s apart: one takes 0.5 s, 6 losses/h go back to one\n"),
		"%s", r.desk.notes);
	assert_string_equal(driver_saving(&r.c, text, sizeof text),
		"auto, 24.5 s apart: one takes 0.5 s, 6 losses/h go back to one");
	/* two more in 100 s: three in 700 s */
	pass(&r, 90);
	driver_noted(&r.c, "lost", 0, "its process ended");
	pass(&r, 10);
	driver_noted(&r.c, "lost", 1, "its process ended");
	assert_true(near(every_s(&r), 24.495));
	driver_saving_step(&r.c);
	assert_true(near(every_s(&r), sqrt(2 * 0.5 * 700 / 3)));
	/* then none: they count for less as time passes */
	pass(&r, 3500);
	for (uint32_t i = 1; i < HD_RESILIENCE_COMMITS; i++)
		driver_saving_step(&r.c);
	assert_true(near(every_s(&r), sqrt(2 * 0.5 * 700 / 3)));
	driver_saving_step(&r.c);
	assert_true(near(every_s(&r), sqrt(2 * 0.5 * 4200 / 3)));
	end(&r);
}

/* A coordinator that takes over, and a resume, go on with what was measured and what was lost. */
static void the_next_coordinator_goes_on_with_it(void **state)
{
	(void)state;
	for (uint32_t target = 0; target <= 2; target += 2) {
		struct run r;
		begin(&r, STAGES "comm: {sync: stages}");
		save(&r, 0.5);
		pass(&r, 600);
		driver_noted(&r.c, "lost", 0, "its process ended");
		driver_saving_step(&r.c);
		const double was_s = every_s(&r);
		CHECK(near(was_s, sqrt(2 * 0.5 * 600)), "%g s", was_s);
		memset(&r.c.saving, 0, sizeof r.c.saving);
		hd_clock_sim(&r.clock, INT64_C(5000000000), r.clock.wall_ns);    /* its machine began later */
		r.c.machine = NULL;
		r.spec.target = target;
		driver_saving_begin(&r.c);
		driver_guard_begin(&r.c, r.spec.task->job);
		driver_guard_go_on(&r.c);
		r.c.machine = r.at.co;
		assert_true(near((double)r.c.saving.every_ms * 1e-3, was_s));
		assert_true(near(r.c.saving.cost_s, 0.5));
		/* a third loss, in 1300 s */
		pass(&r, 100);
		driver_noted(&r.c, "lost", 1, "its process ended");
		driver_saving_step(&r.c);
		CHECK(near(r.c.back_h, 3 * 3600 / 1300.), "%g losses/h", r.c.back_h);
		end(&r);
	}
}

/* With resilience: auto what checkpoints cost is a term of what is judged: a mode that goes back to none has
 * them half an hour apart, one that does far closer. */
static void what_checkpoints_cost_is_judged(void **state)
{
	static const double took_s[] = { 0.001, 20 };
	double useful[2];
	struct run r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(&r, STAGES "comm: {sync: stages}\nelastic: {resilience: auto}");
		r.c.step_ms = 100;
		save(&r, took_s[i]);
		driver_saving_step(&r.c);
		driver_guard_step(&r.c, 0, true);
		assert_int_equal(sscanf(strstr(r.c.judged, "none useful"), "none useful %lf", &useful[i]), 1);
		end(&r);
	}
	/* 20 s each sqrt(2 * 20 * 600) s = 155 s, and as much again by the mean loss: 1 / 1.129 / 1.129 */
	CHECK(useful[0] > 98 && fabs(useful[1] - useful[0] / 1.129 / 1.129) < 3, "%g %%, %g %%", useful[0],
		useful[1]);
}

static void pass_commits(struct run *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		driver_saving_step(&r->c);
}

/* The file is put, and synced to its disk, when it says something else alone; that it cannot be is said once
 * until it can. */
static void what_is_kept_is_not_written_again(void **state)
{
	char path[HD_PATH_CAP];
	struct run r;

	(void)state;
	begin(&r, STAGES "comm: {sync: stages}");
	hd_rundir_path(&r.desk.dir, HD_RUN_CKPT_EVERY, path, sizeof path);
	save(&r, 0.5);
	driver_saving_step(&r.c);
	const double was_s = every_s(&r);
	assert_int_equal(hd_fs_remove_tree(r.spec.fs, path, NULL), HD_OK);
	*r.desk.notes = '\0';
	pass_commits(&r, 2 * HD_RESILIENCE_COMMITS);
	assert_true(was_s > 0 && every_s(&r) == 0 && !*r.desk.notes);
	/* a folder lies there: no file can take its place */
	assert_int_equal(hd_fs_mkdirs(r.spec.fs, path, NULL), HD_OK);
	save(&r, 0.6);
	pass_commits(&r, 3 * HD_RESILIENCE_COMMITS);
	const char *said = strstr(r.desk.notes, HD_RUN_CKPT_EVERY);
	CHECK(said && !strchr(strchr(r.desk.notes, '\n') + 1, '\n'), "%s", r.desk.notes);
	assert_int_equal(hd_fs_remove_tree(r.spec.fs, path, NULL), HD_OK);
	pass_commits(&r, HD_RESILIENCE_COMMITS);
	assert_true(every_s(&r) > 0);
	end(&r);
}

static void a_job_that_gives_it_writes_nothing(void **state)
{
	char text[HD_SAVING_WORDS + 16];
	struct run r;

	(void)state;
	begin(&r, "");
	r.c.saves = false;
	save(&r, 0.5);
	for (int i = 0; i < 200; i++)
		driver_saving_step(&r.c);
	assert_true(every_s(&r) == 0 && !*r.desk.notes);
	r.desk.made.rig.job->value[HD_JOB_CKPT_EVERY].text = "60 s";
	assert_string_equal(driver_saving(&r.c, text, sizeof text), "60 s");
	end(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_losses_that_go_back_count),
		cmocka_unit_test(an_interval_follows_losses_at_commits),
		cmocka_unit_test(the_next_coordinator_goes_on_with_it),
		cmocka_unit_test(what_checkpoints_cost_is_judged),
		cmocka_unit_test(what_is_kept_is_not_written_again),
		cmocka_unit_test(a_job_that_gives_it_writes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
