#include "run/run_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* A whole run in a folder of its own: what it tells, what it leaves behind. */

#define MODEL "model: {use: builtin:mlp, args: {hidden: [9]}}\ndata: {kind: synthetic, count: 61}\nbatch: " \
	"{global: 12, virtual_nodes: 4}\n"

struct heard { uint32_t choices, plans, warnings, checkpoints, evals; char warning[HD_RUN_NOTE];
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

/* Opens a run of `more` (sections besides `model`) on n devices of `kind`, with the stages that it asks
 * for. */
static enum hd_err bench_open_model(struct run_bench *b, const char *model, const char *kind, uint32_t n,
	const char *more)
{
	char yaml[1024];

	memset(b, 0, sizeof *b);
	snprintf(b->root, sizeof b->root, "/tmp/hd_run_XXXXXX");
	assert_non_null(mkdtemp(b->root));
	snprintf(b->path, sizeof b->path, "%s/run", b->root);
	hd_fs_real(&b->fs);
	hd_clock_real(&b->clock);
	hd_arena_init(&b->arena, 0);
	snprintf(yaml, sizeof yaml, "job: {seed: 3, steps: 6, kernels: portable}\n%s%s", model, more);
	CHECK(hd_job_parse(&b->job, "t.yaml", yaml, strlen(yaml), NULL, 0, &b->arena, &b->diag,
		NULL) == HD_OK, "%s", b->diag.text);
	CHECK(hd_rundir_create(&b->dir, &b->fs, &b->clock, b->root, b->path, "job", yaml, strlen(yaml),
		&b->diag) == HD_OK, "%s", b->diag.text);
	struct hd_run_options options = {
		.worker = { .kind = kind, .ndevices = n, .nthreads = 1, .kernels = HD_KERNELS_PORTABLE },
		.stages = true,
		.watch = { .user = &b->heard, .note = on_note, .eval = on_eval },
	};
	return hd_run_create(&b->run, &b->job, &b->fs, &b->clock, &b->dir, &options, &b->diag);
}

static enum hd_err bench_open_on(struct run_bench *b, const char *kind, uint32_t n, const char *more)
{
	return bench_open_model(b, MODEL, kind, n, more);
}

static enum hd_err bench_open(struct run_bench *b, const char *kind, const char *more)
{
	return bench_open_on(b, kind, 2, more);
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

static void step(struct run_bench *b, int n)
{
	struct hd_step_record record;

	for (int i = 0; i < n; i++)
		CHECK(hd_worker_step(hd_run_worker(b->run), false, &record, &b->diag) == HD_OK, "%s",
			b->diag.text);
}

/* Every node takes a millisecond each way on a core of its own, nothing takes anything besides: no time that
 * was measured here is left, however busy the machine was, and no number of cores. */
static void make_even(struct run_bench *b)
{
	struct hd_run_costs *c = b->run->costs;
	struct hd_profile *p = &c->line.profile;

	assert_non_null(c);
	for (uint32_t i = 0; i < p->nnodes; i++)
		p->node[i].f.p50_ns = p->node[i].i.p50_ns = p->node[i].w.p50_ns = 1000000;
	p->sum_ns_per_byte = c->copy_ns_per_byte = c->hop_ns = c->update_ns = c->norm_ns =
		c->link_ns_per_byte = c->late_ns = 0;
	c->whole = 1;
	hd_reuse_none(&c->reuse);
	b->run->forecast.cores = 0;
	CHECK(hd_cut_sums_make(&c->sums, p, &c->cuts, &b->run->measured, &b->diag) == HD_OK, "%s",
		b->diag.text);
}

static bool has_plan(struct run_bench *b, int number, const char *ending)
{
	char path[HD_PATH_CAP], name[64];
	struct hd_stat stat;

	snprintf(name, sizeof name, "plan/%04d.%s", number, ending);
	hd_rundir_path(&b->dir, name, path, sizeof path);
	return !hd_fs_stat(&b->fs, path, &stat, NULL);
}

static void stages_that_drift_are_cut_for_the_speeds_found_and_no_bit_changes(void **state)
{
	static const double even[] = { 1, 1, 1 }, slow[] = { 1, 0.25, 1 };
	struct run_bench one, three;
	bool taken = true;
	uint32_t first[3];

	(void)state;
	CHECK(bench_open_on(&one, "cpu", 1, "") == HD_OK, "%s", one.diag.text);
	CHECK(bench_open_on(&three, "cpu", 3, "parallel: {mode: pipeline}\n") == HD_OK, "%s",
		three.diag.text);
	assert_true(has_plan(&three, 0, "predicted.json"));
	step(&three, 2);
	make_even(&three);
	/* the first cut is of what was measured here: it may be one for a slow rank already */
	CHECK(hd_run_plan_again(three.run, even, &taken, &three.diag) == HD_OK, "%s", three.diag.text);
	const int at = taken;
	CHECK(hd_run_plan_again(three.run, slow, &taken, &three.diag) == HD_OK && taken, "%s",
		three.diag.text);
	memcpy(first, three.run->plan.first, sizeof first);
	step(&three, 2);
	CHECK(hd_run_plan_again(three.run, even, &taken, &three.diag) == HD_OK && !taken,
		"the same speeds ask for nothing");
	/* the slow rank is as fast as the others now: a quarter of the speed counted on, times four */
	CHECK(hd_run_plan_again(three.run, (const double[]){ 1, 4, 1 }, &taken, &three.diag) == HD_OK &&
		taken,
		"%s", three.diag.text);
	CHECK(three.run->plan.first[2] - three.run->plan.first[1] > first[2] - first[1],
		"%u nodes on the slow device, %u on one as fast", first[2] - first[1],
		three.run->plan.first[2] - three.run->plan.first[1]);
	assert_true(has_plan(&three, at + 1, "plan") && has_plan(&three, at + 2, "plan") &&
		has_plan(&three, at + 2, "predicted.json") && !has_plan(&three, at + 3, "plan"));
	step(&three, 2);
	step(&one, 6);
	assert_true(hd_hash_same(hd_worker_digest(hd_run_worker(one.run)),
		hd_worker_digest(hd_run_worker(three.run))));
	bench_close(&one);
	bench_close(&three);
}

static void finds(struct run_bench *b, const char *path, struct hd_ckpt_info *info)
{
	CHECK(hd_ckpt_find(&b->fs, path, UINT64_MAX, info, NULL, NULL, &b->diag) == HD_OK, "%s",
		b->diag.text);
}

/* The newest checkpoint once more, which says the contrary of one order. */
static void refuses_another_order(struct run_bench *b, enum hd_ckpt_order order)
{
	struct hd_ckpt_info info;
	struct hd_state of;
	struct hd_diag diag = { "" };
	char parent[HD_PATH_CAP];

	finds(b, b->path, &info);
	assert_int_equal(hd_ckpt_load(&b->fs, info.folder, &b->arena, &of, &info, NULL), HD_OK);
	info.order[order] = !info.order[order];
	snprintf(parent, sizeof parent, "%s/other%d", b->root, order);
	CHECK(hd_ckpt_write(&b->fs, parent, &of, &info, 0, false, &b->diag) == HD_OK, "%s", b->diag.text);
	finds(b, parent, &info);
	assert_int_equal(hd_run_restore(b->run, info.folder, HD_RESTORE_GO_ON, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, hd_ckpt_order_what(order)) && strstr(diag.text, "does not say that") &&
		strstr(diag.text, "--new-semantics, in one process"), "%s", diag.text);
	assert_int_equal(hd_run_restore(b->run, info.folder, HD_RESTORE_READ, NULL), HD_OK);
	assert_int_equal(hd_run_restore(b->run, info.folder, HD_RESTORE_NEW_SEMANTICS, NULL), HD_OK);
}

/* A checkpoint says how its sums were made, where there was another way; one of another way is read, and
 * training does not go on from it. */
static void a_state_of_other_sums_is_read_and_not_gone_on_with(void **state)
{
	static const char shards[] = "model: {use: builtin:gpt, shards: 2, args: {layers: 1, width: 8, "
		"heads: 2, context: 4, vocab: 8}}\ndata: {kind: synthetic, count: 24}\n"
		"batch: {global: 12, virtual_nodes: 4}\n";
	static const struct { const char *model, *optim; bool order[HD_CKPT_NORDERS]; } jobs[] = {
		{ MODEL, "", { false, false } },
		{ shards, "optim: {clip: 0}\n", { true, false } },
		{ shards, "optim: {clip: 1}\n", { true, true } },
		{ shards, "optim: {kind: lamb, clip: 0}\n", { true, true } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		struct run_bench b;
		struct hd_ckpt_info info;
		CHECK(bench_open_model(&b, jobs[i].model, "cpu", 2, jobs[i].optim) == HD_OK, "job %zu: %s", i,
			b.diag.text);
		CHECK(hd_run_train(b.run, &b.diag) == HD_OK, "job %zu: %s", i, b.diag.text);
		finds(&b, b.path, &info);
		CHECK(!memcmp(info.order, jobs[i].order, sizeof info.order), "job %zu: %d %d", i,
			info.order[0], info.order[1]);
		assert_int_equal(hd_run_restore(b.run, info.folder, HD_RESTORE_GO_ON, NULL), HD_OK);
		for (int k = 0; k < HD_CKPT_NORDERS; k++)
			refuses_another_order(&b, (enum hd_ckpt_order)k);
		bench_close(&b);
	}
}

/* Whatever bytes it has, an event is one line of JSON, and says that it was cut. */
static void an_event_that_is_too_long_says_so(void **state)
{
	static char words[3000];
	struct run_bench b;

	(void)state;
	assert_int_equal(bench_open(&b, "cpu", ""), HD_OK);
	memset(words, 'x', 700);
	hd_run_note(b.run, "warning", "%s", words);
	assert_string_equal(b.heard.warning, words);
	assert_true(events_hold(&b, words));
	memset(words, '\x01', sizeof words - 1);
	hd_run_note(b.run, "warning", "last: %s", words);
	assert_int_equal(strlen(b.heard.warning), HD_RUN_NOTE - 1);
	assert_string_equal(b.heard.warning + HD_RUN_NOTE - 1 - 10, " ... (cut)");
	assert_true(events_hold(&b, "\\u0001 ... (cut)\"}"));
	bench_close(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_computed_is_no_checkpoint_and_reaches_no_target),
		cmocka_unit_test(an_event_that_is_too_long_says_so),
		cmocka_unit_test(perplexity_is_the_exponential_of_the_mean_loss),
		cmocka_unit_test(stages_that_drift_are_cut_for_the_speeds_found_and_no_bit_changes),
		cmocka_unit_test(a_level_keeps_chatter_from_the_screen_and_nothing_from_the_log),
		cmocka_unit_test(a_state_of_other_sums_is_read_and_not_gone_on_with),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
