#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* A whole run in a folder of its own: what it tells, what it leaves behind. */

#define MODEL "model: {use: builtin:mlp, args: {hidden: [9]}}\ndata: {kind: synthetic, count: 61}\nbatch: " \
	"{global: 12, virtual_nodes: 4}\n"

struct heard { uint32_t choices, plans, warnings, checkpoints, evals; char warning[512];
	struct hd_metrics metrics; };

struct run_bench {
	char root[32], path[64];
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_clock clock;
	struct hd_rundir dir;
	struct hd_job job;
	struct hd_run *run;
	struct heard heard;
	struct hd_diag diag;
};

static void on_note(void *user, const char *kind, const char *text)
{
	struct heard *h = user;

	h->choices += !strcmp(kind, "choice");
	h->plans += !strcmp(kind, "plan");
	h->checkpoints += !strcmp(kind, "checkpoint_done");
	if (!strcmp(kind, "warning")) {
		h->warnings++;
		snprintf(h->warning, sizeof h->warning, "%s", text);
	}
}

static void on_eval(void *user, uint64_t step, const char *split, const struct hd_metrics *metrics)
{
	struct heard *h = user;

	(void)step;
	(void)split;
	h->evals++;
	h->metrics = *metrics;
}

/* Opens a run of `more` (sections besides MODEL) on devices of `kind`. */
static enum hd_err bench_open(struct run_bench *b, const char *kind, const char *more)
{
	char yaml[1024];

	memset(b, 0, sizeof *b);
	snprintf(b->root, sizeof b->root, "/tmp/hd_run_XXXXXX");
	assert_non_null(mkdtemp(b->root));
	snprintf(b->path, sizeof b->path, "%s/run", b->root);
	hd_fs_real(&b->fs);
	hd_clock_real(&b->clock);
	hd_arena_init(&b->arena, 0);
	snprintf(yaml, sizeof yaml, "job: {seed: 3, steps: 6, kernels: portable}\n" MODEL "%s", more);
	CHECK(hd_job_parse(&b->job, "t.yaml", yaml, strlen(yaml), NULL, 0, &b->arena, &b->diag,
		NULL) == HD_OK, "%s", b->diag.text);
	CHECK(hd_rundir_create(&b->dir, &b->fs, &b->clock, b->root, b->path, "job", yaml, strlen(yaml),
		&b->diag) == HD_OK, "%s", b->diag.text);
	struct hd_run_options options = {
		.worker = { .kind = kind, .ndevices = 2, .nthreads = 1, .kernels = HD_KERNELS_PORTABLE },
		.watch = { .user = &b->heard, .note = on_note, .eval = on_eval },
	};
	return hd_run_create(&b->run, &b->job, &b->fs, &b->clock, &b->dir, &options, &b->diag);
}

static void bench_train(struct run_bench *b, const char *kind, const char *more)
{
	CHECK(bench_open(b, kind, more) == HD_OK, "%s", b->diag.text);
	CHECK(hd_run_train(b->run, &b->diag) == HD_OK, "%s", b->diag.text);
}

static void bench_close(struct run_bench *b)
{
	hd_run_destroy(b->run);
	hd_rundir_close(&b->dir);
	assert_int_equal(hd_fs_remove_tree(&b->fs, b->root, NULL), HD_OK);
	hd_arena_finish(&b->arena);
}

static bool events_hold(struct run_bench *b, const char *text)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(&b->dir, "events.ndjson", path, sizeof path);
	assert_int_equal(hd_file_read_all(&b->fs, path, &b->arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	return strstr((const char *)bytes, text) != NULL;
}

static bool has_checkpoint(struct run_bench *b)
{
	struct hd_ckpt_info info;

	return hd_ckpt_find(&b->fs, b->path, UINT64_MAX, &info, NULL, NULL, NULL) == HD_OK;
}

static void what_nobody_computed_is_no_checkpoint_and_reaches_no_target(void **state)
{
	struct run_bench b;

	(void)state;
	bench_train(&b, "null", "eval: {every: 2, target: 100}\ncheckpoint: {every: 2 steps}\n");
	assert_int_equal(hd_worker_at(hd_run_worker(b.run)), 6);
	assert_false(has_checkpoint(&b));
	assert_int_equal(b.heard.warnings, 1);
	CHECK(strstr(b.heard.warning, "compute nothing"), "%s", b.heard.warning);
	assert_int_equal(b.heard.checkpoints, 0);
	bench_close(&b);
	bench_train(&b, "cpu", "eval: {every: 2, target: 100}\ncheckpoint: {every: 2 steps}\n");
	assert_int_equal(hd_worker_at(hd_run_worker(b.run)), 2);
	assert_true(has_checkpoint(&b));
	assert_int_equal(b.heard.warnings, 0);
	bench_close(&b);
}

static void perplexity_is_the_exponential_of_the_mean_loss(void **state)
{
	struct run_bench b;
	double metric = 0;

	(void)state;
	bench_train(&b, "cpu", "eval: {every: 2, metric: perplexity}\n");
	assert_true(hd_run_best(b.run, &metric));
	CHECK(fabs(metric / exp(b.heard.metrics.loss_sum / b.heard.metrics.weight) - 1) < 1e-12, "%.17g",
		metric);
	assert_true(metric > 3);                  /* a model that knows nothing guesses among ten */
	assert_true(events_hold(&b, "\"perplexity\":"));
	assert_int_equal(hd_worker_at(hd_run_worker(b.run)), 6);
	bench_close(&b);
	/* as a loss 3 would be reached at once; as a perplexity it is not, and 1000 is */
	bench_train(&b, "cpu", "eval: {every: 2, metric: perplexity, target: 3}\n");
	assert_int_equal(hd_worker_at(hd_run_worker(b.run)), 6);
	bench_close(&b);
	bench_train(&b, "cpu", "eval: {every: 2, metric: perplexity, target: 1000}\n");
	assert_int_equal(hd_worker_at(hd_run_worker(b.run)), 2);
	bench_close(&b);
}

static void a_level_keeps_chatter_from_the_screen_and_nothing_from_the_log(void **state)
{
	static const struct { const char *level; bool shown; } levels[] = { { "error", false },
		{ "warning", false }, { "info", true }, { "debug", true } };

	(void)state;
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		char more[64];
		struct run_bench b;
		snprintf(more, sizeof more, "log: {level: %s}\n", levels[i].level);
		bench_train(&b, "cpu", more);
		CHECK((b.heard.choices > 0) == levels[i].shown && (b.heard.plans > 0) == levels[i].shown &&
			(b.heard.checkpoints > 0) == levels[i].shown,
			"%s", levels[i].level);
		assert_true(events_hold(&b, "\"kind\":\"choice\"") &&
			events_hold(&b, "\"kind\":\"checkpoint_done\""));
		bench_close(&b);
		bench_train(&b, "null", more);
		CHECK(b.heard.warnings == 1, "%s: a warning is not shown", levels[i].level);
		bench_close(&b);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_computed_is_no_checkpoint_and_reaches_no_target),
		cmocka_unit_test(perplexity_is_the_exponential_of_the_mean_loss),
		cmocka_unit_test(a_level_keeps_chatter_from_the_screen_and_nothing_from_the_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
