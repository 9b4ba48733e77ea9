#include "checkpoint/ckpt.h"
#include "engine/fore.h"
#include "engine/stamps.h"
#include "gnn/testing_recursion.h"

/* Virtual nodes that run steps ahead of the slowest (engine/fore.h): two devices, of which one is held back
 * so that the other one is as far ahead as it may be; the recursion in f64 of what they have recorded; bits
 * of its replay. */

static const char rate[] = "optim: {kind: sgd, lr: 0.5, clip: 0, schedule: {kind: constant, warmup: 0}}\n",
	rate_skips[] = "optim: {kind: sgd, lr: 0.5, clip: 0, on_nonfinite: skip, schedule: {kind: constant, "
	"warmup: 0}}\n",
	adam[] = "optim: {kind: adamw, lr: 0.01, clip: 0.5, on_nonfinite: skip, schedule: {kind: constant, "
	"warmup: 0}}\n";

/* ---- one device is held back ---- */

/* Device 1 begins step e, e mod (S + 1) = 1, when device 0 has read all of step e + S, and ends no step
 * before device 0 does, so that it is never ahead. In other steps device 0 comes no more than a part
 * ahead. */
static void hold(void *user, const struct hd_rank *rank, uint32_t part)
{
	const struct hd_worker *w = rank->worker;
	const struct hd_lockstep *l = &w->stage->lockstep;
	const uint64_t s = l->fore->most, step = (uint64_t)w->count.step;
	const uint32_t nsyncs = l->nsyncs[HD_RUN_F] + l->nsyncs[HD_RUN_B];
	_Atomic uint64_t *through = user;         /* steps whose rows device 0 has read */

	if (!hd_fore_runs(w))
		return;
	if (rank->id == 0 && part == nsyncs + 1)
		atomic_store(through, hd_rank_step(rank) + 1);
	while (rank->ahead && step % (s + 1) != 1 && atomic_load(&l->fore->nthrough) < w->spec.ndevices)
		sched_yield();
	if (rank->id == 0)
		return;
	assert_int_equal(rank->ahead, 0);
	while (part == 0 && step % (s + 1) == 1 && atomic_load(through) < step + s + 1)
		sched_yield();
	while (part == nsyncs + 1 && !atomic_load(&l->fore->nthrough))
		sched_yield();
}

static void open_held(struct graphs *g, struct hd_rig *rig, const struct how *how)
{
	open_stale(g, rig, how, 2);
	rig->worker->stage->lockstep.fore->hold = hold;
	rig->worker->stage->lockstep.fore->hold_user = hd_arena_take(&rig->arena, 1,
		sizeof(_Atomic uint64_t));
}

static const uint32_t *stamps_of(const struct hd_rig *rig)
{
	return hd_state_find(hd_worker_state(rig->worker), "stamps")->at;
}

/* Of step e + j each virtual node of device 0 reads those of device 1 of step e - 1, with the weights of
 * e. */
static void is_ahead(const struct oracle *o, uint32_t s)
{
	for (uint32_t e = 1; e + s < EPOCHS; e += s + 1)
		for (uint32_t j = 1; j <= s; j++)
			for (uint32_t v = 0; v < o->n; v++) {
				const bool first = v < o->n / 2;
				CHECK(age_at(o, e + j, NSYNCS, v, 0) == (first ? j : 0),
					"step %u, %u: weights", e + j, v);
				for (uint32_t k = 0; k < NSYNCS && first; k++)
					for (uint32_t u = 0; u < o->n; u++)
						CHECK(age_at(o, e + j, k, v, u) == (u < o->n / 2 ? 0 : j + 1),
							"step %u, sync %u: %u reads %u", e + j, k, v, u);
			}
}

/* The worker's weights, and those of the recursion by its recording, and by that with one bit changed. */
static void compare(struct graphs *g, const struct how *how, bool pins)
{
	static struct oracle o;
	static uint32_t late[EPOCHS * (NSYNCS + 1) * INTERVALS];
	int id[INTERVALS * VERTICES];
	double before[NNAMES][MOST_ELEMS];
	struct hd_rig rig;

	open_held(g, &rig, how);
	ids_of_rows(g, how->kind, how->n, rows_of(g, how->kind, how->n), id);
	oracle_begin(&o, g->known[how->kind], id, rows_of(g, how->kind, how->n), how);
	o.late = late;
	o.ahead = true;
	for (int i = 0; i < NNAMES; i++) {
		read_param(&rig, i, before[i]);
		memcpy(param_of(&o, 0, i), before[i], sizeof(double) * (size_t)read_param(&rig, i,
			before[i]));
	}
	for (uint32_t e = 0; e < EPOCHS; e++)
		hd_rig_step(&rig);
	memcpy(late, stamps_of(&rig), EPOCHS * (NSYNCS + 1) * how->n * sizeof *late);
	is_ahead(&o, how->k);
	for (uint32_t e = 0, at = 0; e < EPOCHS; e++)
		for (uint32_t row = 0; row <= NSYNCS; row++)
			for (uint32_t v = 0; v < how->n; v++, at++)
				late[at] = (row == NSYNCS) == pins ? late[at] : 0;
	for (uint32_t e = 0; e < EPOCHS; e++)
		oracle_step(&o, e, 0.5);
	for (int i = 0; i < NNAMES; i++)
		CHECK(apart(&o, &rig, before, i) > 1e-3, "without %s %s is the same",
			pins ? "rows" : "weights", names[i]);
	memcpy(late, stamps_of(&rig), EPOCHS * (NSYNCS + 1) * how->n * sizeof *late);
	memset(o.z, 0, sizeof o.z);
	memset(o.d, 0, sizeof o.d);
	for (uint32_t e = 0; e < EPOCHS; e++)
		oracle_step(&o, e, 0.5);
	for (int i = 0; i < NNAMES; i++)
		CHECK(apart(&o, &rig, before, i) < 1e-5, "graph %d, %u intervals, S %u: %s is off by %g",
			how->kind, how->n, how->k, names[i], apart(&o, &rig, before, i));
	hd_rig_close(&rig);
}

static void weights_are_those_of_the_recursion(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int kind = 0; kind < 2; kind++)
		for (uint32_t s = 1; s <= 2; s++) {
			const struct how how = { 0, kind, s == 1 ? INTERVALS : 4, 1, s, HD_MODE_BOUNDED, "0",
				rate };
			compare(&g, &how, kind == 0);
		}
	drop_graphs(&g);
}

/* ---- replays ---- */

/* A weight is infinite in the step: it is skipped. */
static struct hd_hash skips(struct hd_rig *rig, bool bad)
{
	float *w = hd_rig_params(rig), had = w[5];

	if (bad)
		w[5] = INFINITY;
	const struct hd_step_record r = hd_rig_step(rig);
	assert_true(r.skipped == bad);
	if (bad)
		w[5] = had;
	assert_true(bad || hd_hash_same(r.digest, hd_worker_digest(rig->worker)));
	return r.digest;
}

/* Step `bad` is, if it is not 0. */
static struct hd_hash step_with(struct hd_rig *rig, uint32_t e, uint32_t bad)
{
	return skips(rig, bad && e == bad);
}

static void a_replay_has_the_bits_of_the_recorded(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int x = 0; x < 2 * NMODELS; x++) {
		const int m = x % NMODELS;
		const uint32_t bad = x < NMODELS || m == ATTENTION ? 0 : 3;
		struct how how = { m, m % 2, m % 2 ? 4 : INTERVALS, 1, 1 + (uint32_t)(m > 1), HD_MODE_BOUNDED,
			"0.4", adam };
		struct hd_hash want[EPOCHS];
		struct hd_rig rig, again;
		open_held(&g, &rig, &how);
		for (uint32_t e = 0; e < EPOCHS; e++)
			want[e] = step_with(&rig, e, bad);
		const struct hd_recording recording = { EPOCHS, stamps_of(&rig), 0 };
		how.mode = HD_MODE_REPLAY;
		for (uint32_t d = 1; d <= 3; d += 2) {
			open_stale(&g, &again, &how, d);
			again.task->recording = &recording;
			for (uint32_t e = 0; e < EPOCHS; e++)
				CHECK(hd_hash_same(step_with(&again, e, bad), want[e]),
					"%s, S %u, %u devices, bad %u: step %u", models[m], how.k, d, bad, e);
			hd_rig_close(&again);
		}
		hd_rig_close(&rig);
	}
	drop_graphs(&g);
}

/* Step 0 is skipped: step 1 is in step, and has the bits of a run's first; what it records is replayed. */
static void nothing_is_late_after_a_first_step_that_is_skipped(void **state)
{
	struct how how = { 0, 1, INTERVALS, 1, 2, HD_MODE_BOUNDED, "0", rate_skips };
	struct hd_rig rig, one, again;
	struct hd_hash want[EPOCHS];
	struct graphs g;

	(void)state;
	make_graphs(&g);
	open_held(&g, &rig, &how);
	open_stale(&g, &one, &how, 1);
	hd_rig_step(&one);
	for (uint32_t e = 0; e < EPOCHS; e++) {
		want[e] = skips(&rig, e == 0);
		const struct hd_state_entry *p = hd_state_find(hd_worker_state(rig.worker),
			"layers.0.weight");
		CHECK(e != 1 || !memcmp(p->at, hd_state_find(hd_worker_state(one.worker), p->name)->at,
			p->len_bytes), "the weights after step 1");
	}
	const uint64_t n = (NSYNCS + 1) * how.n;
	const uint32_t late[(NSYNCS + 1) * INTERVALS] = { 0 };
	assert_memory_equal(stamps_of(&rig) + n, late, n * sizeof(uint32_t));
	const struct hd_recording recording = { EPOCHS, stamps_of(&rig), 0 };
	how.mode = HD_MODE_REPLAY;
	open_stale(&g, &again, &how, 3);
	again.task->recording = &recording;
	for (uint32_t e = 0; e < EPOCHS; e++)
		CHECK(hd_hash_same(skips(&again, e == 0), want[e]), "step %u", e);
	hd_rig_close(&again);
	hd_rig_close(&one);
	hd_rig_close(&rig);
	drop_graphs(&g);
}

/* What runs ahead is no state: a worker that begins with the table in the middle, on as many devices as it
 * likes, is one that goes on, and what both record is replayed. */
static void what_is_ahead_is_forgotten(void **state)
{
	struct how how = { 0, 1, INTERVALS, 1, 1, HD_MODE_BOUNDED, "0.4", adam };
	struct hd_rig_bytes bytes;
	struct hd_hash want[EPOCHS], probe[2];
	struct hd_rig rig, fresh;
	struct hd_diag diag = { "" };
	struct graphs g;

	(void)state;
	make_graphs(&g);
	open_held(&g, &rig, &how);
	for (uint32_t e = 0; e < 4; e++)
		want[e] = step_with(&rig, e, 0);
	open_stale(&g, &fresh, &how, 3);
	hd_rig_copy(&rig, &bytes, &rig.arena);
	hd_rig_paste(&fresh, &bytes, HD_NONE);
	for (uint32_t v = 0; v < INTERVALS; v += 3) {
		CHECK(hd_dist_probe(rig.worker, v, &probe[0], &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_dist_probe(fresh.worker, v, &probe[1], &diag) == HD_OK, "%s", diag.text);
		assert_true(hd_hash_same(probe[0], probe[1]));
		assert_true(hd_dist_wants_rows(fresh.worker));   /* its rows are not those of the step */
	}
	for (uint32_t e = 4; e < EPOCHS; e++)
		want[e] = step_with(&fresh, e, 0);
	hd_rig_close(&rig);
	const struct hd_recording recording = { EPOCHS, stamps_of(&fresh), 0 };
	how.mode = HD_MODE_REPLAY;
	open_stale(&g, &rig, &how, 2);
	rig.task->recording = &recording;
	for (uint32_t e = 0; e < EPOCHS; e++)
		CHECK(hd_hash_same(step_with(&rig, e, 0), want[e]), "step %u", e);
	hd_rig_close(&rig);
	hd_rig_close(&fresh);
	drop_graphs(&g);
}

/* ---- what a replay reads ---- */

/* The state as a checkpoint of so many steps, in a file system of its own, and what is read of it. */
static enum hd_err read_back(struct hd_rig *rig, uint64_t steps, const struct hd_task *task,
	struct hd_recording *recording, struct hd_diag *diag)
{
	struct hd_ckpt_info info = { .step = steps };
	struct hd_hash digest;
	struct hd_fs_sim sim;

	hd_fs_sim_init(&sim);
	diag->text[0] = 0;
	CHECK(hd_ckpt_write(&sim.fs, "c", hd_worker_state(rig->worker), &info, 1, true, diag) == HD_OK, "%s",
		diag->text);
	enum hd_err err = hd_recording_read(recording, task, &sim.fs, "c", &rig->arena, &digest, diag);
	hd_fs_sim_finish(&sim);
	return err;
}

/* Each age of each row, one more than a step may have: S + 1 at most, of weights S, none before step 0. */
static void a_recording_that_is_later_than_allowed_is_refused(void **state)
{
	struct how how = { 0, 1, 4, 1, 1, HD_MODE_BOUNDED, "0.4", adam };
	struct hd_recording recording;
	struct hd_diag diag = { "" };
	struct graphs g;
	struct hd_rig rig;

	(void)state;
	make_graphs(&g);
	open_held(&g, &rig, &how);
	for (uint32_t e = 0; e < EPOCHS; e++)
		step_with(&rig, e, 0);
	struct hd_task task = *rig.task;
	uint32_t *late = hd_state_find(hd_worker_state(rig.worker), "stamps")->at;
	const uint64_t n = EPOCHS * (NSYNCS + 1) * how.n;
	task.nsteps = EPOCHS;
	CHECK(read_back(&rig, EPOCHS, &task, &recording, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(recording.nsteps, EPOCHS);
	assert_memory_equal(recording.late, late, n * sizeof *late);
	assert_int_equal(read_back(&rig, EPOCHS - 1, &task, &recording, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "has recorded 6 of 60 steps"));
	for (uint32_t e = 0; e <= 2; e++)
		for (uint32_t row = 0; row <= NSYNCS; row += NSYNCS) {
			const uint32_t most = row == NSYNCS ? 1 : 2, age = 1 + (e < most ? e : most);
			uint32_t *word = &late[(e * (NSYNCS + 1) + row) * how.n + 2], had = *word;
			*word = (age - 1) << 2 * 3;
			CHECK(read_back(&rig, EPOCHS, &task, &recording, &diag) == HD_OK, "step %u: %s", e,
				diag.text);
			*word = age << 2 * 3;
			CHECK(read_back(&rig, EPOCHS, &task, &recording, &diag) == HD_E_INTEGRITY,
				"step %u, row %u, age %u", e, row, age);
			*word = had;
		}
	rig.job->value[HD_JOB_STALENESS].i = 2;
	assert_int_equal(read_back(&rig, EPOCHS, &task, &recording, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "was recorded with batch.staleness 1, and this job has 2"));
	rig.job->value[HD_JOB_STALENESS].i = 1;
	hd_rig_close(&rig);
	drop_graphs(&g);
}

static void what_looks_at_one_step_is_refused(void **state)
{
	const struct how how = { 0, 1, INTERVALS, 1, 1, HD_MODE_BOUNDED, "0.4", adam };
	struct hd_diag diag = { "" };
	struct graphs g;
	struct hd_rig rig;

	(void)state;
	make_graphs(&g);
	open_stale(&g, &rig, &how, 1);
	assert_int_equal(hd_fore_allowed(rig.task, &diag), HD_OK);
	rig.task->layout.held_elems++;
	assert_int_equal(hd_fore_allowed(rig.task, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "batch.staleness 1: no virtual node can be ahead of others, for "
		"parameters are frozen: write 0"));
	diag.text[0] = 0;
	rig.task->layout.held_elems--;
	rig.job->value[HD_JOB_VALUES].is_none = false;
	assert_int_equal(hd_fore_allowed(rig.task, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "trace.values looks at one step at a time"));
	rig.job->value[HD_JOB_MODE].i = HD_MODE_REPLAY;
	assert_int_equal(hd_fore_allowed(rig.task, &diag), HD_OK);
	rig.job->value[HD_JOB_MODE].i = HD_MODE_BOUNDED;
	rig.job->value[HD_JOB_VALUES].is_none = true;
	hd_rig_close(&rig);
	drop_graphs(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_those_of_the_recursion),
		cmocka_unit_test(a_replay_has_the_bits_of_the_recorded),
		cmocka_unit_test(nothing_is_late_after_a_first_step_that_is_skipped),
		cmocka_unit_test(what_is_ahead_is_forgotten),
		cmocka_unit_test(a_recording_that_is_later_than_allowed_is_refused),
		cmocka_unit_test(what_looks_at_one_step_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
