#include "run/best.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/failpoint.h"
#include "run/run_int.h"
#include "tests/check.h"

/* checkpoint.best: which state of a run is kept. The oracle is what the run itself said of its evaluations,
 * and a run that ends at the step in question. */

enum { STEPS = 12 };

struct bench {
	char root[32], path[64];
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_clock clock;
	struct hd_rundir dir;
	struct hd_job job;
	struct hd_run *run;
	struct hd_diag diag;
	double loss[STEPS + 1], accuracy[STEPS + 1];
	uint32_t nevals, nbest, nwarnings;
};

static void on_eval(void *user, uint64_t step, const char *split, const struct hd_metrics *m)
{
	struct bench *b = user;

	assert_string_equal(split, "valid");
	b->nevals++;
	b->loss[step] = hd_metrics_loss(m);
	b->accuracy[step] = hd_metrics_accuracy(m);
}

static void on_note(void *user, const char *kind, const char *text)
{
	struct bench *b = user;

	(void)text;
	b->nbest += !strcmp(kind, "best");
	b->nwarnings += !strcmp(kind, "warning");
}

static void begin(struct bench *b)
{
	memset(b, 0, sizeof *b);
	snprintf(b->root, sizeof b->root, "/tmp/hd_best_XXXXXX");
	assert_non_null(mkdtemp(b->root));
	snprintf(b->path, sizeof b->path, "%s/run", b->root);
	hd_fs_real(&b->fs);
	hd_clock_real(&b->clock);
	hd_arena_init(&b->arena, 0);
}

static void end(struct bench *b)
{
	hd_run_destroy(b->run);
	hd_rundir_close(&b->dir);
	assert_int_equal(hd_fs_remove_tree(&b->fs, b->root, NULL), HD_OK);
	hd_arena_finish(&b->arena);
}

/* Steps so wide that losses go up and down. */
static enum hd_err make(struct bench *b, const char *best, uint64_t stop_at)
{
	const struct hd_run_options options = { .stop_at = stop_at,
		.worker = { .kind = "cpu", .ndevices = 1, .nthreads = 1, .kernels = HD_KERNELS_PORTABLE },
		.watch = { .user = b, .note = on_note, .eval = on_eval } };
	char yaml[700];

	snprintf(yaml, sizeof yaml, "job: {seed: 3, steps: %d, kernels: portable}\n"
		"model: {use: builtin:mlp, args: {hidden: [9]}}\ndata: {kind: synthetic, count: 61}\n"
		"batch: {global: 12, virtual_nodes: 4}\neval: {every: 1}\n"
		"optim: {kind: momentum, lr: 0.5, schedule: {kind: constant, warmup: 0}}\n"
		"checkpoint: {every: 3 steps, best: %s}\n", STEPS, best);
	hd_run_destroy(b->run);
	b->run = NULL;
	CHECK(hd_job_parse(&b->job, "t.yaml", yaml, strlen(yaml), NULL, 0, &b->arena, &b->diag, NULL) ==
		HD_OK, "%s", b->diag.text);
	if (!b->dir.path[0])
		CHECK(hd_rundir_create(&b->dir, &b->fs, &b->clock, b->root, b->path, "job", yaml,
			strlen(yaml), &b->diag) == HD_OK, "%s", b->diag.text);
	return hd_run_create(&b->run, &b->job, &b->fs, &b->clock, &b->dir, &options, &b->diag);
}

static void train(struct bench *b, const char *best, uint64_t stop_at)
{
	CHECK(make(b, best, stop_at) == HD_OK, "%s", b->diag.text);
	CHECK(hd_run_train(b->run, &b->diag) == HD_OK, "%s", b->diag.text);
}

/* From its newest checkpoint, or that of a step. */
static void go_on(struct bench *b, const char *best, uint64_t from)
{
	struct hd_ckpt_info info;

	CHECK(make(b, best, 0) == HD_OK, "%s", b->diag.text);
	CHECK(hd_ckpt_find(&b->fs, b->path, from, &info, NULL, NULL, &b->diag) == HD_OK, "%s", b->diag.text);
	CHECK(hd_run_restore(b->run, info.folder, HD_RESTORE_GO_ON, &b->diag) == HD_OK, "%s", b->diag.text);
	CHECK(hd_run_train(b->run, &b->diag) == HD_OK, "%s", b->diag.text);
}

static bool kept(struct bench *b, struct hd_ckpt_info *info)
{
	char parent[HD_PATH_CAP];

	assert_int_equal(hd_ckpt_place(&b->fs, b->path, "ckpt", parent, sizeof parent, NULL), HD_OK);
	return hd_best_find(info, &b->fs, parent, NULL);
}

static uint32_t first_best(const double *value, bool more)
{
	uint32_t best = 1;

	for (uint32_t s = 2; s <= STEPS; s++)
		if (more ? value[s] > value[best] : value[s] < value[best])
			best = s;
	return best;
}

static void the_state_of_the_best_evaluation_is_kept(void **state)
{
	static const struct { const char *by; bool more; } cases[] = {
		{ "val_loss", false }, { "val_accuracy", true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_ckpt_info info, there;
		struct bench b, other;
		begin(&b);
		train(&b, cases[i].by, 0);
		const double *value = cases[i].more ? b.accuracy : b.loss;
		const uint32_t best = first_best(value, cases[i].more);
		CHECK(best > 1 && best < STEPS && b.nbest > 1 && b.nbest < STEPS,
			"the run shows nothing: best at %u of %d, %u kept", best, STEPS, b.nbest);
		assert_true(kept(&b, &info));
		CHECK(info.step == best && info.best == value[best] && !strcmp(info.best_by, cases[i].by),
			"%s %.17g at step %llu, not %.17g at %u", info.best_by, info.best,
			(unsigned long long)info.step, value[best], best);
		assert_int_equal(hd_ckpt_verify(&b.fs, info.folder, &info, NULL), HD_OK);
		begin(&other);
		train(&other, "none", best);
		assert_false(kept(&other, &there));
		assert_int_equal(hd_ckpt_find(&other.fs, other.path, best, &there, NULL, NULL, NULL), HD_OK);
		assert_true(hd_hash_same(there.digest, info.digest));
		end(&other);
		end(&b);
	}
}

/* It ends after each step, and goes on; then from a checkpoint of before the best, which is computed
 * again. */
static void a_run_that_goes_on_keeps_the_same(void **state)
{
	struct hd_ckpt_info whole, info;
	struct bench b;

	(void)state;
	begin(&b);
	train(&b, "val_loss", 0);
	assert_true(kept(&b, &whole));
	const uint32_t nbest = b.nbest;
	CHECK(whole.step > 3, "no checkpoint is older than the best of step %llu",
		(unsigned long long)whole.step);
	assert_int_equal(b.nevals, STEPS);
	end(&b);
	for (uint32_t at = 1; at < STEPS; at++) {
		begin(&b);
		train(&b, "val_loss", at);
		go_on(&b, "val_loss", UINT64_MAX);
		assert_true(kept(&b, &info));
		CHECK(info.step == whole.step && info.best == whole.best &&
			hd_hash_same(info.digest, whole.digest) && b.nbest == nbest,
			"stopped at %u: step %llu, %u kept", at, (unsigned long long)info.step, b.nbest);
		end(&b);
	}
	begin(&b);
	train(&b, "val_loss", (whole.step + 2) / 3 * 3);
	b.nbest = 0;
	go_on(&b, "val_loss", (whole.step - 1) / 3 * 3);
	assert_true(kept(&b, &info));
	CHECK(info.step == whole.step && hd_hash_same(info.digest, whole.digest) && b.nbest == 0,
		"step %llu, %u kept again", (unsigned long long)info.step, b.nbest);
	end(&b);
}

/* By another measure the one that is kept says nothing. */
static void another_measure_begins_again(void **state)
{
	struct hd_ckpt_info by_loss, info;
	struct bench b;

	(void)state;
	begin(&b);
	train(&b, "val_loss", STEPS - 3);
	assert_true(kept(&b, &by_loss));
	go_on(&b, "val_accuracy", UINT64_MAX);
	uint32_t best = STEPS - 2;
	for (uint32_t s = best + 1; s <= STEPS; s++)
		best = b.accuracy[s] > b.accuracy[best] ? s : best;
	assert_true(kept(&b, &info));
	CHECK(info.step == best && !strcmp(info.best_by, "val_accuracy"), "%s at step %llu, not %u",
		info.best_by, (unsigned long long)info.step, best);
	end(&b);
}

static void what_is_not_finite_or_equal_is_not_better(void **state)
{
	static const struct { const char *by; double is, was; bool beats; } cases[] = {
		{ "val_loss", 1, 2, true }, { "val_loss", 2, 2, false }, { "val_loss", 3, 2, false },
		{ "val_accuracy", 3, 2, true }, { "val_accuracy", 2, 2, false }, { "val_accuracy", 1, 2, false },
	};
	struct hd_metrics m = { .weight = 4, .loss_sum = NAN, .correct = 1 };
	struct hd_ckpt_info info = { .step = 1 };
	struct bench b;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_ckpt_info is = { .best = cases[i].is }, was = { .best = cases[i].was };
		snprintf(is.best_by, sizeof is.best_by, "%s", cases[i].by);
		CHECK(hd_best_beats(&is, &was) == cases[i].beats, "case %zu", i);
	}
	begin(&b);
	CHECK(make(&b, "val_loss", 0) == HD_OK, "%s", b.diag.text);
	assert_false(hd_best_judge(&info, &b.job, &m));
	m.loss_sum = INFINITY;
	assert_false(hd_best_judge(&info, &b.job, &m));
	m.loss_sum = 2;
	assert_true(hd_best_judge(&info, &b.job, &m));
	assert_true(info.best == 0.5);
	m.weight = 0;
	assert_false(hd_best_judge(&info, &b.job, &m));
	CHECK(make(&b, "val_accuracy", 0) == HD_OK, "%s", b.diag.text);
	m.weight = 4;
	assert_false(hd_best_judge(&info, &b.job, &m));          /* of a model that counts no hits */
	m.has_hits = true;
	assert_true(hd_best_judge(&info, &b.job, &m) && info.best == 0.25);
	CHECK(make(&b, "none", 0) == HD_OK, "%s", b.diag.text);
	assert_false(hd_best_judge(&info, &b.job, &m));
	end(&b);
}

static void without_a_split_to_judge_by_it_is_refused(void **state)
{
	struct hd_dataset data = { .about = "ten rows", .nsplits = 2,
		.split = { { .name = "train", .count = 9 }, { .name = "valid", .count = 1 } } };
	struct bench b;

	(void)state;
	begin(&b);
	CHECK(make(&b, "val_loss", 0) == HD_OK, "%s", b.diag.text);
	assert_int_equal(hd_best_check(&b.job, &data, &b.diag), HD_OK);
	data.split[1].count = 0;
	assert_int_equal(hd_best_check(&b.job, &data, &b.diag), HD_E_INVAL);
	CHECK(strstr(b.diag.text, "split \"valid\"") && strstr(b.diag.text, "ten rows"), "%s", b.diag.text);
	data.nsplits = 1;
	assert_int_equal(hd_best_check(&b.job, &data, NULL), HD_E_INVAL);
	CHECK(make(&b, "none", 0) == HD_OK, "%s", b.diag.text);
	assert_int_equal(hd_best_check(&b.job, &data, NULL), HD_OK);
	end(&b);
}

#ifdef HD_FAILPOINTS
/* The run goes on, and the next one that is better than what lies there is tried. */
static void one_that_cannot_be_written_is_a_warning(void **state)
{
	struct hd_ckpt_info whole, info;
	struct bench b;

	(void)state;
	begin(&b);
	train(&b, "val_loss", 0);
	assert_true(kept(&b, &whole));
	const uint32_t nbest = b.nbest;
	end(&b);
	begin(&b);
	assert_int_equal(hd_failpoint_arm("ckpt.rename.before:err=ENOSPC@1", 1, NULL), HD_OK);
	train(&b, "val_loss", 0);
	assert_int_equal(hd_failpoint_arm("", 1, NULL), HD_OK);
	assert_true(kept(&b, &info));
	CHECK(b.nwarnings == 1 && b.nbest == nbest - 1, "%u warnings, %u kept of %u", b.nwarnings,
		b.nbest, nbest);
	assert_true(info.step == whole.step && hd_hash_same(info.digest, whole.digest));
	end(&b);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_state_of_the_best_evaluation_is_kept),
		cmocka_unit_test(a_run_that_goes_on_keeps_the_same),
		cmocka_unit_test(another_measure_begins_again),
		cmocka_unit_test(what_is_not_finite_or_equal_is_not_better),
		cmocka_unit_test(without_a_split_to_judge_by_it_is_refused),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(one_that_cannot_be_written_is_a_warning),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
