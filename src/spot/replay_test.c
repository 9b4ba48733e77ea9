#include "spot/replay.h"

#include <stdio.h>

#include "base/alloc.h"
#include "spot/testing.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

#define MODEL(stages, local, steps) "{\"name\": \"m\", \"stages\": " #stages ", \"batch\": 10, " \
	"\"local_ms\": " #local ", \"step_ms\": " steps ", \"usd_h\": 3.6, " \
	"\"on_demand\": {\"nodes\": 1, \"step_ms\": 1000}"

struct want { uint64_t steps, removals, level2, rendezvous, absorbed; };

static struct hd_spot_replay play_it(const char *model_text, size_t n, const struct hd_spot_change *in)
{
	const struct hd_spot_model model = model_of(model_text, &arena);
	struct hd_spot_replay r;
	struct hd_spot_trace t;
	struct hd_diag diag = { "" };

	CHECK(!hd_spot_trace_make(&t, n, in, 0, &arena, &diag), "%s", diag.text);
	CHECK(!hd_spot_replay(&r, &t, &model, &arena, &diag), "%s", diag.text);
	return r;
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

static void without_memory_it_says_so(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" } };
	const struct hd_spot_model model = model_of(MODEL(1, 5000, "[86400000]") ", \"wanted\": 1}", &arena);
	struct hd_spot_replay r;
	struct hd_spot_trace t;
	enum hd_err err;
	(void)state;

	assert_int_equal(hd_spot_trace_make(&t, 1, in, 0, &arena, NULL), HD_OK);
	EACH_PIECE_REFUSED(err, hd_spot_replay(&r, &t, &model, &arena, NULL));
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
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
