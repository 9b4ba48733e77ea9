#include "engine/closing.h"
#include "engine/fore.h"
#include "engine/stamps.h"
#include "gnn/testing_recursion.h"

/* Back to sync near the end (engine/closing.h): the bits of a run whose rows are late and that goes on as
 * another job, in sync, from its state; on devices and workers, after the state went through a table, with
 * virtual nodes ahead, and of the replay. */

enum { CLOSE = 3 };
static const char adam[] = "optim: {kind: adamw, lr: 0.01, clip: 0.5, on_nonfinite: skip, schedule: {kind: "
	"constant, warmup: 0}}\n";

static int64_t closed_of(const struct hd_rig *rig)
{
	return *(const int64_t *)hd_state_find(hd_worker_state(rig->worker), "run.closed")->at;
}

/* All that the second one's table has. */
static void hand_over(struct hd_rig *from, struct hd_rig *to)
{
	struct hd_diag diag = { "" };
	struct hd_state *state = hd_worker_state(to->worker);
	static double room[1 << 16];

	for (uint32_t i = 0; i < state->nentries; i++) {
		const struct hd_state_entry *e = hd_state_find(hd_worker_state(from->worker),
			state->entry[i].name);
		const uint64_t n = state->entry[i].len_bytes /
			hd_dtype_bytes((enum hd_dtype)state->entry[i].dtype);
		CHECK(e && e->len_bytes == state->entry[i].len_bytes && e->len_bytes <= sizeof room, "%s",
			state->entry[i].name);
		hd_state_get(e, 0, n, room);
		hd_state_put(&state->entry[i], 0, n, room);
	}
	CHECK(hd_worker_rewind(to->worker, &diag) == HD_OK, "%s", diag.text);
}

static void same_params(struct hd_rig *a, struct hd_rig *b, const char *what)
{
	CHECK(!memcmp(hd_rig_params(a), hd_rig_params(b), a->task->layout.params_elems * sizeof(float)), "%s",
		what);
}

static void a_closed_run_goes_on_in_sync(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int m = 0; m < NMODELS; m++) {
		struct how how = { m, m % 2, INTERVALS, 4, 2, HD_MODE_EXACT, "0.4", adam };
		struct hd_rig early, sync, closed, late;
		open_stale(&g, &early, &how, 1);
		open_stale(&g, &late, &how, 1);
		open_closing(&g, &closed, &how, 2, CLOSE);
		how = (struct how){ m, m % 2, INTERVALS, 1, 0, HD_MODE_SYNC, "0.4", adam };
		open_stale(&g, &sync, &how, 1);
		for (uint32_t e = 0; e < EPOCHS; e++) {
			if (e == CLOSE)
				hand_over(&early, &sync);
			hd_rig_step(e < CLOSE ? &early : &sync);
			hd_rig_step(&closed);
			hd_rig_step(&late);
			same_params(e < CLOSE ? &early : &sync, &closed, models[m]);
			assert_int_equal(closed_of(&closed), e < CLOSE ? 0 : CLOSE);
		}
		CHECK(memcmp(hd_rig_params(&closed), hd_rig_params(&late),
			closed.task->layout.params_elems * sizeof(float)) != 0, "%s: late to the end",
			models[m]);
		hd_rig_close(&early);
		hd_rig_close(&sync);
		hd_rig_close(&closed);
		hd_rig_close(&late);
	}
	drop_graphs(&g);
}

/* At each step, that of the decision among them; and what closed is nothing that another entry says. */
static void a_fresh_worker_with_the_table_goes_on(void **state)
{
	const struct how how = { 0, 1, INTERVALS, 4, 2, HD_MODE_EXACT, "0.4", adam };
	struct hd_rig_bytes bytes[EPOCHS];
	struct hd_hash want[EPOCHS];
	struct hd_rig whole, fresh, probed;
	struct hd_hash probe[2];
	struct graphs g;

	(void)state;
	make_graphs(&g);
	open_closing(&g, &whole, &how, 1, CLOSE);
	open_closing(&g, &probed, &how, 1, CLOSE);
	for (int s = 0; s < EPOCHS; s++) {
		hd_rig_copy(&whole, &bytes[s], &whole.arena);
		want[s] = hd_rig_step(&whole).digest;
	}
	for (uint32_t s = 0; s < EPOCHS; s++) {
		open_closing(&g, &fresh, &how, 1 + s % 3, CLOSE);
		hd_rig_paste(&fresh, &bytes[s], HD_NONE);
		if (s == CLOSE) {         /* it proves itself before it begins a step */
			struct hd_diag diag = { "" };
			hd_rig_paste(&probed, &bytes[s], HD_NONE);
			CHECK(hd_closing_look(probed.worker, &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_dist_probe(probed.worker, 1, &probe[0], &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_dist_probe(fresh.worker, 1, &probe[1], &diag) == HD_OK, "%s", diag.text);
			assert_true(hd_hash_same(probe[0], probe[1]));
		}
		for (uint32_t at = s; at < EPOCHS; at++)
			CHECK(hd_hash_same(hd_rig_step(&fresh).digest, want[at]),
				"step %u of a worker that began at %u", at, s);
		hd_rig_close(&fresh);
	}
	hd_rig_close(&whole);
	hd_rig_close(&probed);
	drop_graphs(&g);
}

/* The measure decides: no loss is within a margin of 0 of a target of 0. */
static void a_run_far_from_its_target_does_not_close(void **state)
{
	const struct how how = { 0, 1, INTERVALS, 4, 2, HD_MODE_EXACT, "0", adam };
	struct hd_rig rig;
	struct graphs g;
	double measure = 0;

	(void)state;
	make_graphs(&g);
	open_closing(&g, &rig, &how, 1, 1);
	rig.job->value[HD_JOB_CLOSE_TARGET].f = 0;
	rig.job->value[HD_JOB_CLOSE_MARGIN].f = 0;
	for (uint32_t e = 0; e + 2 < EPOCHS; e++)
		hd_rig_step(&rig);
	assert_int_equal(closed_of(&rig), 0);
	assert_int_equal(hd_closing_look(rig.worker, NULL), HD_OK);
	assert_false(hd_closing_begins(rig.worker, &measure));
	rig.job->value[HD_JOB_CLOSE_MARGIN].f = 1e9;
	assert_int_equal(hd_closing_look(rig.worker, NULL), HD_OK);     /* it was measured */
	assert_false(hd_closing_begins(rig.worker, &measure));
	assert_int_equal(hd_worker_rewind(rig.worker, NULL), HD_OK);    /* of a state that is another */
	assert_int_equal(hd_closing_look(rig.worker, NULL), HD_OK);
	assert_true(hd_closing_begins(rig.worker, &measure) && measure > 0 && hd_closing_closed(rig.worker));
	hd_rig_step(&rig);
	assert_int_equal(closed_of(&rig), EPOCHS - 2);
	assert_false(hd_closing_begins(rig.worker, &measure));
	hd_rig_close(&rig);
	drop_graphs(&g);
}

/* ---- bounded ---- */

/* Device 0 is through all steps that it may be ahead before device 1 ends one. */
static void hold(void *user, const struct hd_rank *rank, uint32_t part)
{
	const struct hd_worker *w = rank->worker;

	(void)user;
	(void)part;
	while (hd_fore_runs(w) && rank->id && !atomic_load(&w->stage->lockstep.fore->nthrough))
		sched_yield();
}

static const uint32_t *stamps_of(const struct hd_rig *rig)
{
	return hd_state_find(hd_worker_state(rig->worker), "stamps")->at;
}

static void what_is_ahead_is_forgotten_and_a_replay_closes(void **state)
{
	struct how how = { 0, 1, INTERVALS, 1, 1, HD_MODE_BOUNDED, "0.4", adam };
	struct hd_hash want[EPOCHS];
	struct hd_rig rig, sync, again;
	struct graphs g;
	uint32_t late = 0;

	(void)state;
	make_graphs(&g);
	open_closing(&g, &rig, &how, 2, CLOSE);
	rig.worker->stage->lockstep.fore->hold = hold;
	how.mode = HD_MODE_SYNC;
	open_stale(&g, &sync, &how, 1);
	for (uint32_t e = 0; e < EPOCHS; e++) {
		if (e == CLOSE)
			hand_over(&rig, &sync);
		want[e] = hd_rig_step(&rig).digest;
		if (e >= CLOSE) {
			hd_rig_step(&sync);
			same_params(&rig, &sync, "bounded");
		}
	}
	const uint32_t *ages = stamps_of(&rig), n = (NSYNCS + 1) * INTERVALS;
	for (uint32_t i = 0; i < CLOSE * n; i++)
		late += ages[i] != 0;
	assert_true(late > 0);
	for (uint32_t i = CLOSE * n; i < EPOCHS * n; i++)
		assert_int_equal(ages[i], 0);
	const struct hd_recording recording = { EPOCHS, ages, CLOSE };
	how.mode = HD_MODE_REPLAY;
	open_closing(&g, &again, &how, 3, CLOSE);
	again.task->recording = &recording;
	for (uint32_t e = 0; e < EPOCHS; e++)
		CHECK(hd_hash_same(hd_rig_step(&again).digest, want[e]), "replay, step %u", e);
	assert_int_equal(closed_of(&again), CLOSE);
	hd_rig_close(&again);
	hd_rig_close(&sync);
	hd_rig_close(&rig);
	drop_graphs(&g);
}

/* ---- workers ---- */

static void workers_have_the_bits_of_one_device(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (uint32_t nranks = 2; nranks <= 4; nranks += 2) {
		const struct how how = { 0, 1, 2, 2, 2, HD_MODE_EXACT, "0.4", adam };
		memset(net, 0, sizeof *net);
		open_closing(&g, &net->one, &how, 1, CLOSE);
		add_data_parallel(net, nranks, 1, "closing");
		for (uint32_t e = 0; e < EPOCHS; e++)
			step(net, "closing");
		close_net(net);
	}
	drop_graphs(&g);
	free(net);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_run_goes_on_in_sync),
		cmocka_unit_test(a_fresh_worker_with_the_table_goes_on),
		cmocka_unit_test(a_run_far_from_its_target_does_not_close),
		cmocka_unit_test(what_is_ahead_is_forgotten_and_a_replay_closes),
		cmocka_unit_test(workers_have_the_bits_of_one_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
