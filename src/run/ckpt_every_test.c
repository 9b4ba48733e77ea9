#include "run/run_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* checkpoint.every: auto of a run in one process: by a clock on which a step takes 1 s, and a file system on
 * which a checkpoint takes what its folder does. */

#define JOB "job: {seed: 3, steps: 400, kernels: portable}\n" \
	"model: {use: builtin:mlp, args: {hidden: [3]}}\ndata: {kind: synthetic, count: 8}\n" \
	"batch: {global: 2, virtual_nodes: 1}\neval: {every: 100}\ncheckpoint: {every: auto}\n"

enum { SAVED = 64 };

struct slow_fs {
	struct hd_fs fs;                  /* first: what the ops get */
	struct hd_fs_ops ops;
	const struct hd_fs_ops *real;
	struct hd_clock_sim *clock;
	int64_t takes_ns;
};

struct bench {
	char root[32], path[64];
	struct hd_arena arena;
	struct slow_fs slow;
	struct hd_clock_sim clock;
	struct hd_rundir dir;
	struct hd_job job;
	struct hd_run *run;
	struct hd_diag diag;
	int64_t saved_s[SAVED];
	uint32_t nsaved, nsaid;
	char said[120];
};

static int slow_mkdir(struct hd_fs *fs, const char *path)
{
	struct slow_fs *slow = (struct slow_fs *)fs;

	if (strstr(path, "/ckpt/"))
		hd_clock_sim_advance(slow->clock, slow->takes_ns);
	return slow->real->mkdir(fs, path);
}

static void on_note(void *user, const char *kind, const char *text)
{
	struct bench *b = user;

	if (!strcmp(kind, "checkpoint_done"))
		b->saved_s[b->nsaved++ % SAVED] = (hd_clock_now_ns(&b->clock.clock) + 500000000) /
			1000000000;
	if (strcmp(kind, "saving") != 0)
		return;
	b->nsaid++;
	snprintf(b->said, sizeof b->said, "%s", text);
}

/* Asked between steps. */
static enum hd_err on_step(void *user)
{
	struct bench *b = user;

	hd_clock_sim_advance(&b->clock, 1000000000);
	return HD_OK;
}

static void on_eval(void *user, uint64_t step, const char *split, const struct hd_metrics *metrics)
{
	struct bench *b = user;

	(void)step;
	(void)split;
	(void)metrics;
	hd_clock_sim_advance(&b->clock, 3000000000);
}

static void begin(struct bench *b, double takes_s)
{
	memset(b, 0, sizeof *b);
	snprintf(b->root, sizeof b->root, "/tmp/hd_every_XXXXXX");
	assert_non_null(mkdtemp(b->root));
	snprintf(b->path, sizeof b->path, "%s/run", b->root);
	hd_fs_real(&b->slow.fs);
	b->slow.real = b->slow.fs.ops;
	b->slow.ops = *b->slow.real;
	b->slow.ops.mkdir = slow_mkdir;
	b->slow.fs.ops = &b->slow.ops;
	b->slow.clock = &b->clock;
	b->slow.takes_ns = (int64_t)(takes_s * 1e9);
	hd_clock_sim(&b->clock, 1000000000, 0);
	hd_arena_init(&b->arena, 0);
	CHECK(hd_job_parse(&b->job, "t.yaml", JOB, strlen(JOB), NULL, 0, &b->arena, &b->diag, NULL) == HD_OK,
		"%s", b->diag.text);
	CHECK(hd_rundir_create(&b->dir, &b->slow.fs, &b->clock.clock, b->root, b->path, "job", JOB,
		strlen(JOB), &b->diag) == HD_OK, "%s", b->diag.text);
}

static void open_run(struct bench *b, bool shared, uint64_t stop_at)
{
	const struct hd_run_options options = { .shared = shared, .stop_at = stop_at, .stop = on_step,
		.worker = { .kind = "cpu", .ndevices = 1, .nthreads = 1, .kernels = HD_KERNELS_PORTABLE },
		.watch = { .user = b, .note = on_note, .eval = on_eval } };

	CHECK(hd_run_create(&b->run, &b->job, &b->slow.fs, &b->clock.clock, &b->dir, &options, &b->diag) ==
		HD_OK, "%s", b->diag.text);
}

static void end(struct bench *b)
{
	hd_run_destroy(b->run);
	hd_rundir_close(&b->dir);
	assert_int_equal(hd_fs_remove_tree(&b->slow.fs, b->root, NULL), HD_OK);
	hd_arena_finish(&b->arena);
}

static int64_t gap_s(const struct bench *b, uint32_t i)
{
	return b->saved_s[i + 1] - b->saved_s[i];
}

/* The first at the minute that a job has without the key. Half a second each, and one loss in the minute and
 * ten more: sqrt(2 * 0.5 * 660) s = 25.7 s, until it is a quarter longer. */
static void an_interval_follows_from_what_a_checkpoint_took(void **state)
{
	struct hd_saving kept = { 0 };
	struct bench b;

	(void)state;
	begin(&b, 0.5);
	open_run(&b, false, 0);
	CHECK(hd_run_train(b.run, &b.diag) == HD_OK, "%s", b.diag.text);
	CHECK(b.nsaved >= 10 && b.nsaved < SAVED && b.nsaid == 1, "%u checkpoints, %u changes", b.nsaved,
		b.nsaid);
	CHECK(b.saved_s[0] >= 60 && b.saved_s[0] <= 63, "the first after %lld s", (long long)b.saved_s[0]);
	/* the last is that of the end; a step beside an evaluation takes 4 s */
	for (uint32_t i = 0; i + 2 < b.nsaved; i++)
		CHECK(gap_s(&b, i) >= 26 && gap_s(&b, i) <= 30, "checkpoint %u: %lld s", i,
			(long long)gap_s(&b, i));
	CHECK(!strncmp(b.said, "checkpoints 25.", 15), "%s", b.said);
	assert_true(hd_ckpt_every_get(&kept, &b.slow.fs, b.path));
	/* what was evaluated in between is no cost of it */
	CHECK(kept.every_ms / 1000 == 25 && fabs(kept.cost_s - 0.5) < 1e-3, "%llu ms, %g s",
		(unsigned long long)kept.every_ms, kept.cost_s);
	end(&b);
}

static void a_resume_begins_with_the_interval_that_was(void **state)
{
	const struct hd_saving was = { .every_ms = 20000, .cost_s = 0.5 };
	struct bench b;

	(void)state;
	begin(&b, 0.5);
	assert_int_equal(hd_ckpt_every_put(&b.dir, &was, NULL), HD_OK);
	open_run(&b, false, 60);
	const int64_t began_s = hd_clock_now_ns(&b.clock.clock) / 1000000000;
	CHECK(hd_run_train(b.run, &b.diag) == HD_OK, "%s", b.diag.text);
	CHECK(b.nsaved >= 2 && b.saved_s[0] - began_s >= 20 && b.saved_s[0] - began_s <= 22, "%u, %lld s",
		b.nsaved, (long long)(b.saved_s[0] - began_s));
	end(&b);
}

/* One of several workers: whichever saves does as the folder says by then, and says nothing itself. */
static void a_worker_that_saves_does_as_the_folder_says(void **state)
{
	static const struct { uint64_t every_ms; int64_t passes_s; bool saves; } row[] = { { 0, 30, false },
		{ 90000, 40, false }, { 71000, 1, true } };
	struct bench b;
	bool reached;

	(void)state;
	begin(&b, 0.5);
	open_run(&b, true, 0);
	hd_run_begin(b.run);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_saving saving = { .every_ms = row[i].every_ms };
		if (saving.every_ms)
			assert_int_equal(hd_ckpt_every_put(&b.dir, &saving, NULL), HD_OK);
		hd_clock_sim_advance(&b.clock, row[i].passes_s * 1000000000);
		assert_int_equal(hd_run_saves(b.run, false), row[i].saves);
		assert_int_equal(hd_run_boundary(b.run, false, &reached, &b.diag), HD_OK);
	}
	assert_true(b.nsaved == 1 && !b.nsaid);
	/* asked before an evaluation of 3 s, which is no cost of the checkpoint */
	b.run->target_reached = true;
	b.run->last_ckpt_step = 0;
	assert_true(hd_run_saves(b.run, true));
	assert_int_equal(hd_run_boundary(b.run, true, &reached, &b.diag), HD_OK);
	CHECK(b.nsaved == 2 && fabs(b.run->saving.cost_s - 0.5) < 1e-3, "%g s", b.run->saving.cost_s);
	/* the same boundary again, after a loss that took 20 s, with the answer that it had: that is no cost
	 * of it, but what goes by from then on */
	b.run->last_ckpt_step = 0;
	b.run->saving = (struct hd_saving){ 0 };
	b.slow.takes_ns = 0;
	hd_clock_sim_advance(&b.clock, INT64_C(80000000000));
	assert_true(hd_run_saves(b.run, false));
	b.run->last_ckpt_ns = hd_clock_now_ns(&b.clock.clock);
	hd_clock_sim_advance(&b.clock, INT64_C(20000000000));
	assert_true(hd_run_saves(b.run, false));
	hd_clock_sim_advance(&b.clock, INT64_C(2000000000));
	assert_int_equal(hd_run_boundary(b.run, false, &reached, &b.diag), HD_OK);
	CHECK(b.nsaved == 3 && fabs(b.run->saving.cost_s - 2) < 1e-3, "%g s", b.run->saving.cost_s);
	/* half a file is none */
	assert_int_equal(hd_rundir_put(&b.dir, HD_RUN_CKPT_EVERY, "9000", 4, NULL), HD_OK);
	hd_clock_sim_advance(&b.clock, INT64_C(50000000000));
	assert_false(hd_run_saves(b.run, false));
	end(&b);
}

static void an_event_says_what_a_checkpoint_took(void **state)
{
	static const char *const bad[] = { "", "step 7, 1.5 MiB", "training stood 1 s",
		"step 7, 1.5 MiB, training stood s",
		"step 7, 1.5 MiB, training stood 1.2.3 s", "step 7, 1.5 MiB, training stood -1 s" };
	char text[120];
	double took_s = 9;

	(void)state;
	hd_ckpt_done_say(text, sizeof text, 7, 3 << 19, 0.25);
	assert_string_equal(text, "step 7, 1.5 MiB, training stood 0.250000 s");
	assert_true(hd_ckpt_done_took(text, &took_s) && fabs(took_s - 0.25) < 1e-12);
	/* as a member's event has it */
	assert_true(hd_ckpt_done_took("{\"text\":\"step 7, 1.5 MiB, training stood 2.500000 s\"}", &took_s) &&
		fabs(took_s - 2.5) < 1e-12);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!hd_ckpt_done_took(bad[i], &took_s), "%s", bad[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_follows_from_what_a_checkpoint_took),
		cmocka_unit_test(a_resume_begins_with_the_interval_that_was),
		cmocka_unit_test(a_worker_that_saves_does_as_the_folder_says),
		cmocka_unit_test(an_event_says_what_a_checkpoint_took),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
