#include "engine/judge.h"

#include <math.h>

#include "engine/testing.h"

/* Looks one by one, by rules written again here; then in a worker: what is looked at, and that devices and a
 * fresh worker with the table decide alike. That falls are PyTorch's is a case of habits_test.c. */

static double number(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (double)(*seed >> 8) / 0x1p24;
}

/* ReduceLROnPlateau and early stopping, as their documents say them, with the whole history. */
static void looks_follow_the_history(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed < 400; seed++) {
		uint32_t s = seed;
		const bool larger = seed % 2, stop = seed % 3 == 0;
		const enum hd_judge_kind kind = stop ? HD_JUDGE_STOP : HD_JUDGE_PLATEAU;
		struct hd_judge j = { .wanted = true, .larger = larger, .patience = 1 + seed % 4,
			.threshold = seed % 5 * 0.05 };
		double best = larger ? -INFINITY : INFINITY;
		int64_t bad = 0, falls = 0;
		for (int k = 0; k < 60; k++) {
			const double x = k % 17 == 5 ? NAN : 1 + number(&s) - (larger ? -1 : 1) * k * 0.002;
			const double edge = stop ? j.threshold : isinf(best) ? 0 : best * j.threshold;
			const bool better = larger ? x > best + edge : x < best - edge;
			best = better ? x : best;
			bad = better ? 0 : bad + 1;
			if (!stop && bad > (int64_t)j.patience) {
				falls++;
				bad = 0;
			}
			hd_judge_look(&j, kind, x);
			j.state = j.next;
			CHECK(j.state.bad == bad && j.state.falls == falls && (isinf(best) || j.state.best ==
				best), "seed %u, look %d", seed, k);
		}
	}
}

#define JOB(more) "optim: {kind: sgd, lr: 0.5, schedule: {kind: plateau, warmup: 0, every: 2, patience: 0, " \
	"factor: 0.5, floor: 0.001, threshold: 0.5" more "}}\n"

static const char *const cases[] = {
	JOB(""), JOB(", metric: val_accuracy"), JOB(", metric: loss"),
	JOB("") "stop: {patience: 60, metric: val_accuracy, every: 3}",
};
enum { NCASES = sizeof cases / sizeof *cases, STEPS = 9 };

static void devices_decide_alike(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct hd_step_record want[STEPS];
		for (uint32_t n = 1; n <= 5; n += n == 1 ? 1 : n == 2 ? 1 : 2) {
			struct hd_rig rig;
			hd_rig_open(&rig, hd_rig_mlp, 26, 13, cases[c], n);
			for (int s = 0; s < STEPS; s++) {
				const struct hd_step_record r = hd_rig_step(&rig);
				if (n == 1)
					want[s] = r;
				CHECK(hd_hash_same(r.digest, want[s].digest) && r.lr == want[s].lr,
					"case %zu, %u devices, step %d", c, n, s);
			}
			hd_rig_close(&rig);
		}
		CHECK(want[STEPS - 1].lr < want[0].lr, "case %zu: no fall", c);
	}
}

/* The sums are those of the steps since the look before, not of one or of all. */
static void the_training_loss_is_of_the_steps_since_the_last_look(void **state)
{
	struct hd_rig rig;
	double loss[STEPS], weight[STEPS];

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, JOB(", metric: loss"), 2);
	const struct hd_judge *j = &rig.worker->judges->of[HD_JUDGE_PLATEAU];
	for (int s = 0; s < STEPS; s++) {
		const struct hd_step_record r = hd_rig_step(&rig);
		loss[s] = r.loss_sum;
		weight[s] = r.weight;
		if (s && s % 2 == 0)
			CHECK(j->measure == (loss[s - 2] + loss[s - 1]) / (weight[s - 2] + weight[s - 1]),
				"before step %d", s);
	}
	hd_rig_close(&rig);
}

/* The step that must not run leaves no trace: whoever asks again is answered alike. */
static void a_stop_is_a_function_of_the_state_before_the_step(void **state)
{
	static const char text[] = "optim: {kind: sgd, lr: 0.05}\nstop: {patience: 2, metric: loss, "
		"min_delta: 9, "
		"every: 2}";
	struct hd_diag diag = { "" };
	struct hd_rig_bytes bytes;
	struct hd_rig rig, fresh;
	uint64_t steps = 0;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, text, 2);
	for (;; steps++) {
		CHECK(hd_judges_look(rig.worker, &diag) == HD_OK, "%s", diag.text);
		if (hd_judges_stop(rig.worker))
			break;
		hd_rig_step(&rig);
	}
	assert_int_equal(steps, 6);       /* the first look is the best, two more are not */
	hd_rig_copy(&rig, &bytes, &rig.arena);
	hd_rig_open(&fresh, hd_rig_mlp, 26, 13, text, 3);
	assert_false(hd_judges_stop(fresh.worker));
	hd_rig_paste(&fresh, &bytes, HD_NONE);
	assert_false(hd_judges_stop(fresh.worker));
	CHECK(hd_judges_look(fresh.worker, &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_judges_stop(fresh.worker));
	struct hd_text said;
	hd_text_init(&said, &fresh.arena);
	assert_true(hd_judges_say(fresh.worker, HD_JUDGE_STOP, &said));
	assert_non_null(strstr(said.at, "the best was"));
	assert_non_null(strstr(said.at, "2 looks in a row no better"));
	fresh.worker->judges->of[HD_JUDGE_STOP].state.gains = 0;
	assert_true(hd_judges_say(fresh.worker, HD_JUDGE_STOP, &said));
	assert_non_null(strstr(said.at, "none was finite; 2 looks"));
	assert_false(hd_judges_say(fresh.worker, HD_JUDGE_PLATEAU, &said));
	/* of another state nothing is known */
	assert_int_equal(fresh.worker->judges->of[HD_JUDGE_STOP].looked, 7);
	hd_rig_paste(&fresh, &bytes, HD_NONE);
	assert_int_equal(fresh.worker->judges->of[HD_JUDGE_STOP].looked, 0);
	hd_rig_close(&fresh);
	hd_rig_close(&rig);
}

static void less_accuracy_may_be_better_where_it_is_said(void **state)
{
	static const struct { const char *text; bool larger; } rows[] = {
		{ "stop: {patience: 2}", false }, { "stop: {patience: 2, metric: val_accuracy}", true },
		{ "stop: {patience: 2, metric: val_accuracy, mode: min}", false },
		{ "stop: {patience: 2, metric: loss, mode: max}", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig rig;
		hd_rig_open(&rig, hd_rig_mlp, 26, 13, rows[i].text, 1);
		CHECK(rig.worker->judges->of[HD_JUDGE_STOP].larger == rows[i].larger, "%s", rows[i].text);
		hd_rig_close(&rig);
	}
}

static void without_a_split_there_is_nothing_to_measure(void **state)
{
	static const struct { const char *more; bool fits; } rows[] = {
		{ "stop: {patience: 2}", false }, { "stop: {patience: 2, metric: loss}", true },
		{ "optim: {schedule: {kind: plateau}}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		const char *source = getenv("SOURCE_DIR");
		char model[600];
		snprintf(model, sizeof model, "model: {use: builtin:mlp, args: {input: [12], classes: "
			"4}}\ndata: {kind: "
			"npy, path: %s/tests/torch/fixtures/habits, split: {train: 1, valid: 0}}\n",
			source ? source : ".");
		hd_rig_begin(&rig, model, 26, 13, rows[i].more);
		const enum hd_err err = hd_task_create(&rig.task, rig.job, &rig.fs, &diag);
		CHECK(err == (rows[i].fits ? HD_OK : HD_E_INVAL), "%s: %s", rows[i].more, diag.text);
		CHECK(rows[i].fits || strstr(diag.text, "no samples in a split \"valid\""), "%s", diag.text);
		hd_rig_close(&rig);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_follow_the_history),
		cmocka_unit_test(devices_decide_alike),
		cmocka_unit_test(the_training_loss_is_of_the_steps_since_the_last_look),
		cmocka_unit_test(a_stop_is_a_function_of_the_state_before_the_step),
		cmocka_unit_test(less_accuracy_may_be_better_where_it_is_said),
		cmocka_unit_test(without_a_split_there_is_nothing_to_measure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
