#include "spot/replay.h"

#include <stdio.h>

#include "base/alloc.h"
#include "spot/testing.h"

static struct hd_arena arena;
static const struct hd_spot_way shadows = { HD_SPOT_EAGER, 0, 0 };

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

#define MODEL(stages, local, steps) "{\"name\": \"m\", \"stages\": " #stages ", \"batch\": 10, " \
	"\"local_ms\": " #local ", \"step_ms\": " steps ", \"usd_h\": 3.6, " \
	"\"on_demand\": {\"nodes\": 1, \"step_ms\": 1000}"

struct want { uint64_t steps, removals, level2, rendezvous, absorbed; };

static struct hd_spot_replay play_by(const struct hd_spot_way *way, const char *model_text, size_t n,
	const struct hd_spot_change *in)
{
	const struct hd_spot_model model = model_of(model_text, &arena);
	struct hd_spot_replay r;
	struct hd_spot_trace t;
	struct hd_diag diag = { "" };

	CHECK(!hd_spot_trace_make(&t, n, in, 0, &arena, &diag), "%s", diag.text);
	CHECK(!hd_spot_replay(&r, &t, &model, way, &arena, &diag), "%s", diag.text);
	return r;
}

static struct hd_spot_replay play_it(const char *model_text, size_t n, const struct hd_spot_change *in)
{
	return play_by(&shadows, model_text, n, in);
}

static void is(const struct hd_spot_replay *r, struct want w)
{
	CHECK(r->steps == w.steps && r->removals == w.removals && r->level2 == w.level2 &&
		r->rendezvous == w.rendezvous && r->absorbed == w.absorbed,
		"%llu steps, %llu removals, %llu level 2, %llu rendezvous, %llu absorbed",
		(unsigned long long)r->steps, (unsigned long long)r->removals, (unsigned long long)r->level2,
		(unsigned long long)r->rendezvous, (unsigned long long)r->absorbed);
}

/* Ready at 45 s, steps from 75 s on: 39,925 s are left. */
static void an_undisturbed_run_is_all_steps(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" } };
	struct hd_spot_replay r = play_it(MODEL(2, 5000, "[1000, 500]") "}", 3, in);
	(void)state;

	is(&r, (struct want){ 39925, 0, 0, 1, 0 });
	assert_true(r.first_ms == 75000 && r.last_ms == HD_SPOT_END_MS && r.end_ms == HD_SPOT_END_MS);
	assert_true(r.samples_per_s > 9.999999 && r.samples_per_s < 10.000001);
	assert_true(r.usd_per_h > 10.799999 && r.usd_per_h < 10.800001);
	assert_true(r.ledger.ms[HD_LEDGER_WAITING] == 39925000 && r.ledger.ms[HD_LEDGER_BOOT] == 135000 &&
		r.ledger.ms[HD_LEDGER_REBUILD] == 90000 && r.ledger.ms[HD_LEDGER_USEFUL] == 79850000);
}

static void without_enough_machines_nothing_runs(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 1000, -1, "a" }, { 2000, 1, "b" } };
	struct hd_spot_replay r = play_it(MODEL(2, 5000, "[1000]") "}", 0, NULL);
	(void)state;

	is(&r, (struct want){ 0 });
	assert_true(r.end_ms == 0 && !(r.usd_per_h > 0) && !(r.ratio > 0));
	r = play_it(MODEL(2, 5000, "[1000]") "}", 3, in);
	is(&r, (struct want){ 0, 1, 0, 1, 0 });
	assert_true(r.end_ms == 77000 && r.paid.ms == 1000 + 75000 && !(r.samples_per_s > 0));
	assert_true(r.ledger.ms[HD_LEDGER_REBUILD] == 30000);
}

/* Three stages of one pipeline on a, b, c; d waits. Losses at 75.4 s, in the first step of 1 s. */
static void a_loss_is_absorbed_where_the_one_before_can(void **state)
{
	static const struct hd_spot_change c_and_b[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 75400, -1, "c" }, { 75400, -1, "b" } };
	static const struct hd_spot_change b_and_c[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 75400, -1, "b" }, { 75400, -1, "c" } };
	static const struct hd_spot_change ring[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 0, 1, "d" }, { 75400, -1, "a" } };
	struct hd_spot_replay r;
	(void)state;

	/* b is doubled by c's loss, then lost; what is left of the step is lost with it */
	r = play_it(MODEL(3, 5000, "[1000]") "}", 5, c_and_b);
	is(&r, (struct want){ 0, 2, 1, 2, 1 });
	assert_true(r.ledger.ms[HD_LEDGER_REDO] == 1200 && r.end_ms == 105400);
	/* a is doubled by b's loss; the one before c is gone */
	r = play_it(MODEL(3, 5000, "[1000]") "}", 5, b_and_c);
	is(&r, (struct want){ 0, 2, 1, 2, 1 });
	/* the last stage stands before the first: c is doubled, the step ends at 76.3 s, d takes the place in
	 * 5 s, and 39,918.7 s are left */
	r = play_it(MODEL(3, 5000, "[1000]") "}", 5, ring);
	is(&r, (struct want){ 39919, 1, 0, 2, 1 });
	assert_true(r.asked[HD_RECONFIGURE_REPLACE] == 1 && r.ledger.ms[HD_LEDGER_PAUSE] == 600);
	assert_true(r.ledger.ms[HD_LEDGER_REDO] == 0);
}

/* 41 stages, x = 1: 2 of 40 are no more than the risk, so the run goes on, each step half as long again. */
static void a_doubled_device_slows_steps_once(void **state)
{
	struct hd_spot_change in[43];
	char name[41][4];
	struct hd_spot_replay r;
	(void)state;

	for (int i = 0; i < 41; i++) {
		snprintf(name[i], sizeof *name, "%d", i);
		in[i] = (struct hd_spot_change){ 0, 1, name[i] };
	}
	in[41] = (struct hd_spot_change){ 75401, -1, "20" };
	r = play_it(MODEL(41, 5000, "[1001]") "}", 42, in);
	/* 600 ms are left and become 900: 76.301 s; then steps of 1501 ms */
	is(&r, (struct want){ 1 + (40000000 - 76301) / 1501, 1, 0, 1, 1 });
	assert_true(r.ledger.ms[HD_LEDGER_PAUSE] == 40 * 300);
	assert_true(r.ledger.ms[HD_LEDGER_BUBBLE] == 40 * (int64_t)(r.steps - 1) * 500);
	/* another one, not its neighbour: the step gets no longer, then there is too much at risk */
	in[42] = (struct hd_spot_change){ 75701, -1, "30" };
	r = play_it(MODEL(41, 5000, "[1001]") "}", 43, in);
	is(&r, (struct want){ 1, 2, 0, 2, 2 });
	assert_true(r.last_ms == 76301 && r.asked[HD_RECONFIGURE_REBALANCE] == 1);
}

static void a_loss_within_a_rendezvous_begins_it_again(void **state)
{
	/* b is lost at 60 s: 30 s from there; c, which boots, changes nothing; then one stage on a */
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 50000, 1, "c" },
		{ 60000, -1, "b" }, { 61000, -1, "c" } };
	struct hd_spot_replay r = play_it(MODEL(1, 5000, "[1000]") "}", 5, in);
	(void)state;

	assert_true(r.first_ms == 90000 && r.rendezvous == 1 && r.level2 == 0);
	/* a pipeline of one stage has no device before it */
	static const struct hd_spot_change alone[] = { { 0, 1, "a" }, { 75500, -1, "a" },
		{ 80000, 1, "b" } };
	r = play_it(MODEL(1, 5000, "[1000]") "}", 3, alone);
	is(&r, (struct want){ 39845, 1, 1, 3, 0 });
}

static void pipelines_are_as_many_as_have_times(void **state)
{
	struct hd_spot_change in[7];
	char name[7][4];
	struct hd_spot_replay r;
	(void)state;

	for (int i = 0; i < 7; i++) {
		snprintf(name[i], sizeof *name, "%d", i);
		in[i] = (struct hd_spot_change){ i < 5 ? 0 : 100000, 1, name[i] };
	}
	/* seven machines, two pipelines of two stages: those that come later change nothing */
	r = play_it(MODEL(2, 5000, "[1000, 500]") "}", 7, in);
	is(&r, (struct want){ 79850, 0, 0, 1, 0 });
	/* of three pipelines the third begins with the sixth machine: ready at 145 s, then a commit, 5 s */
	r = play_it(MODEL(2, 5000, "[1000, 500, 250]") "}", 7, in);
	is(&r, (struct want){ 140 + 39850 * 4, 0, 0, 2, 0 });
	assert_true(r.asked[HD_RECONFIGURE_GROW] == 1);
	/* no more than five are wanted */
	r = play_it(MODEL(2, 5000, "[1000, 500, 250]") ", \"wanted\": 5}", 7, in);
	is(&r, (struct want){ 79850, 0, 0, 1, 0 });
	assert_true(r.paid.ms == 5 * (int64_t)HD_SPOT_END_MS);
}

static void what_comes_after_the_end_does_not_happen(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { HD_SPOT_END_MS, -1, "a" },
		{ HD_SPOT_END_MS + 1, 1, "b" } };
	struct hd_spot_replay r = play_it(MODEL(1, 5000, "[1000]") "}", 3, in);
	(void)state;

	/* a's last step ends at the same time as it is removed, which comes first */
	is(&r, (struct want){ 39924, 1, 1, 2, 0 });
	assert_true(r.paid.ms == HD_SPOT_END_MS && r.ledger.ms[HD_LEDGER_REDO] == 1000);
}

/* Three machines of one stage, ready at 45 s: steps of 600 ms from 75 s on, a checkpoint of 200 ms each two.
 * b goes at 76.5 s, 300 ms after the second step was begun again: at 75 s two steps (76.2 s), saved at
 * 76.4 s, 100 ms of the third are lost. 30 s and 4 s to read; then steps of 1000 ms from 110.5 s on. */
static void checkpoints_alone_go_back_to_the_last(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 76500, -1, "b" } };
	static const struct hd_spot_way two = { HD_SPOT_CHECKPOINT, 2, 0 },
		never = { HD_SPOT_CHECKPOINT, 0, 0 };
	static const char model[] = MODEL(1, 5000, "[1900, 1000, 600]")
		", \"save_ms\": 200, \"reload_ms\": 4000, \"end_ms\": 120000}";
	struct hd_spot_replay r = play_by(&two, model, 4, in);
	(void)state;

	/* 110.5 s: two steps and 200 ms, four times to 119.3 s, the last cut off at 120 s */
	is(&r, (struct want){ 2 + 8, 1, 1, 2, 0 });
	assert_true(r.saves == 1 + 4 && r.again == 0 && r.ledger.ms[HD_LEDGER_REDO] == 3 * 100 + 2 * 0);
	assert_true(r.ledger.ms[HD_LEDGER_REDUNDANT] == 3 * 200 + 2 * 4 * 200);
	assert_true(r.ledger.ms[HD_LEDGER_USEFUL] == 3 * 1200 + 2 * 8 * 1000);
	assert_true(r.ledger.ms[HD_LEDGER_REBUILD] == 3 * 30000 + 2 * 34000);
	/* without one all steps are lost, and there is nothing to read */
	r = play_by(&never, model, 4, in);
	assert_true(r.again == 2 && r.saves == 0 && r.steps == 13 && r.level2 == 1);
	assert_true(r.ledger.ms[HD_LEDGER_REDO] == 3 * 1500 && r.ledger.ms[HD_LEDGER_REBUILD] == 3 * 30000 +
		2 * 30000);
}

/* a alone; b, ready at 105 s, is taken after a checkpoint, by a start that reads it. */
static void checkpoints_alone_grow_after_one(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 60000, 1, "b" } };
	static const struct hd_spot_way way = { HD_SPOT_CHECKPOINT, 20, 0 };
	struct hd_spot_replay r = play_by(&way, MODEL(1, 5000, "[1000, 500]")
		", \"save_ms\": 500, \"reload_ms\": 4000, \"end_ms\": 150700}", 2, in);
	(void)state;

	/* 20 steps to 95 s, saved at 95.5 s; 20 to 115.5 s, saved at 116 s; from 150 s on steps of 500 ms */
	is(&r, (struct want){ 41, 0, 0, 2, 0 });
	assert_true(r.saves == 2 && r.asked[HD_RECONFIGURE_GROW] == 1);
	/* a machine that goes while a checkpoint is written voids it */
	static const struct hd_spot_change goes[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 85400, -1, "b" } };
	r = play_by(&way, MODEL(1, 5000, "[1000, 500]")
		", \"save_ms\": 500, \"end_ms\": 120000}", 3, goes);
	assert_true(r.saves == 0 && r.again == 20 && r.steps == 4 && r.level2 == 1);
}

/* Two pipelines of two stages: a b, c d. d goes at 75.5 s: three of four take what is left of the step. */
static void peers_take_what_is_lost(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 0, 1, "d" }, { 75400, -1, "d" } };
	static const struct hd_spot_change both[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 0, 1, "d" }, { 75400, -1, "d" }, { 75500, -1, "b" } };
	static const struct hd_spot_way way = { HD_SPOT_REROUTE, 0, 0 };
	static const char model[] = MODEL(2, 5000, "[1900, 1000]") ", \"pause_ms\": 50, \"end_ms\": 85000}";
	struct hd_spot_replay r = play_by(&way, model, 5, in);
	(void)state;

	/* 600 ms become 800 and 50: 76.25 s; a new plan of one pipeline in 5 s; two steps of 1.9 s */
	is(&r, (struct want){ 1 + 1, 1, 0, 2, 1 });
	assert_true(r.asked[HD_RECONFIGURE_REBALANCE] == 1 && r.first_ms == 75000);
	assert_true(r.ledger.ms[HD_LEDGER_PAUSE] == 3 * 50 && r.ledger.ms[HD_LEDGER_BUBBLE] == 0);
	assert_true(r.ledger.ms[HD_LEDGER_USEFUL] == 4 * 400 + 3 * 800 + 2 * 1900);
	/* b too: no device holds the second stage */
	r = play_by(&way, model, 6, both);
	assert_true(r.level2 == 1 && r.absorbed == 1 && r.steps == 0);
	assert_true(r.ledger.ms[HD_LEDGER_REDO] == 4 * 400 + 3 * 100);
}

/* One of two pipelines is spare: a b, c d. d goes in the second step: the other does it, 50 ms later. */
static void spare_pipelines_take_what_is_lost(void **state)
{
	static const struct hd_spot_way way = { HD_SPOT_REPLICA, 20, 1 };
	static const char model[] = MODEL(2, 5000, "[1900, 1000]") ", \"pause_ms\": 50, "
		"\"rendezvous_ms\": 900, \"end_ms\": 55000}";
	static const struct { const char *also; uint64_t level2, absorbed, steps; } row[] = {
		{ NULL, 0, 1, 2 },                /* then 5 s of a new plan */
		{ "c", 0, 2, 2 },                 /* of the same pipeline */
		{ "a", 1, 1, 4 },                 /* of the other one: the step is lost, and each stage held */
		{ "b", 1, 1, 3 },                 /* no pipeline holds the second stage: the first, too */
	};
	(void)state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
			{ 0, 1, "d" }, { 48200, -1, "d" }, { 48300, -1, row[i].also } };
		const struct hd_spot_replay r = play_by(&way, model, row[i].also ? 6 : 5, in);
		CHECK(r.level2 == row[i].level2 && r.absorbed == row[i].absorbed && r.steps == row[i].steps,
			"%zu: level 2 %d, absorbed %d, steps %d", i, (int)r.level2, (int)r.absorbed,
			(int)r.steps);
		assert_true(row[i].also || r.ledger.ms[HD_LEDGER_PAUSE] == 3 * 50);
	}
}

/* Of intervals the one that is worth most, as a loop over all would find it. */
static void the_best_interval_is_found(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 95000, -1, "b" },
		{ 96000, 1, "c" }, { 190000, -1, "a" }, { 191000, 1, "d" }, { 310000, -1, "c" } };
	const struct hd_spot_model model = model_of(MODEL(1, 5000, "[1000, 500]")
		", \"save_ms\": 300, \"reload_ms\": 500, \"boot_ms\": 100, \"rendezvous_ms\": 900, "
		"\"end_ms\": 400000}", &arena);
	struct hd_spot_replay best, r;
	struct hd_spot_trace t;
	uint32_t every, at = 0;
	double most = -1;
	(void)state;

	assert_int_equal(hd_spot_trace_make(&t, 7, in, 0, &arena, NULL), HD_OK);
	assert_int_equal(hd_spot_replay_best(&best, &every, HD_SPOT_CHECKPOINT, &t, &model, NULL), HD_OK);
	for (uint32_t k = 1; k <= 800; k += 1 + k / 8) {
		const struct hd_spot_way way = { HD_SPOT_CHECKPOINT, k, 0 };
		assert_int_equal(hd_spot_replay(&r, &t, &model, &way, &arena, NULL), HD_OK);
		if (r.value > most) {
			most = r.value;
			at = k;
		}
	}
	assert_true(every == at && at > 1 && at < 200 && best.value >= most && best.value <= most);
}

static void without_memory_it_says_so(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" } };
	const struct hd_spot_model model = model_of(MODEL(1, 5000, "[86400000]") ", \"wanted\": 1}", &arena);
	struct hd_spot_replay r;
	struct hd_spot_trace t;
	enum hd_err err;
	(void)state;

	assert_int_equal(hd_spot_trace_make(&t, 1, in, 0, &arena, NULL), HD_OK);
	EACH_PIECE_REFUSED(err, hd_spot_replay(&r, &t, &model, &shadows, &arena, NULL));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_undisturbed_run_is_all_steps),
		cmocka_unit_test(without_enough_machines_nothing_runs),
		cmocka_unit_test(a_loss_is_absorbed_where_the_one_before_can),
		cmocka_unit_test(a_doubled_device_slows_steps_once),
		cmocka_unit_test(a_loss_within_a_rendezvous_begins_it_again),
		cmocka_unit_test(pipelines_are_as_many_as_have_times),
		cmocka_unit_test(what_comes_after_the_end_does_not_happen),
		cmocka_unit_test(checkpoints_alone_go_back_to_the_last),
		cmocka_unit_test(checkpoints_alone_grow_after_one),
		cmocka_unit_test(peers_take_what_is_lost),
		cmocka_unit_test(spare_pipelines_take_what_is_lost),
		cmocka_unit_test(the_best_interval_is_found),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
