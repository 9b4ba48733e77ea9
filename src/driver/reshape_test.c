#include "driver/reshape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

/* Workers that take ms[i] for a virtual node, with an exchange of exchange_ms and an update of own_ms after
 * it; the planner is asked when reshape wants it. */
enum { MOST = 8 };
struct reshape_stage {
	struct hd_reshape r;
	struct hd_view view;
	uint64_t step;
	double ms[MOST], exchange_ms, own_ms, step_ms;
	uint32_t plans;
	uint32_t wraps;                   /* this one of them, from 1, says that it computed for -3.1 ms */
	char kinds[2000];                 /* of all that was said */
	char text[HD_RESHAPE_WORDS];      /* said last */
};
static struct reshape_stage g;

static void set_members(uint32_t n)
{
	uint32_t member[MOST], ndevices[MOST];
	struct hd_member_info info[MOST];
	struct hd_view view = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		member[i] = 10 + i;
		ndevices[i] = 1;
		info[i] = (struct hd_member_info){ .worker = member[i], .ndevices = 1 };
	}
	hd_view_even(&view, g.view.epoch + 1, member, ndevices, n, g.r.nvns);
	if (hd_reshape_plan(&g.r, &view, info, n))
		CHECK(!hd_view_verify(&view, g.r.nvns, NULL), "%u members", n);
	g.view = view;
}

static void open_stage(uint32_t n, uint32_t nvns, const double *ms, bool act)
{
	hd_reshape_finish(&g.r);
	memset(&g, 0, sizeof g);
	hd_reshape_init(&g.r, nvns, 1 << 20, act);
	memcpy(g.ms, ms, n * sizeof *ms);
	set_members(n);
}

static uint32_t share(uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < g.view.nranks; r++)
		n += g.view.rank[r].worker == worker ? g.view.rank[r].nvns : 0;
	return n;
}

static void run(uint32_t steps)
{
	for (uint32_t s = 0; s < steps; s++, g.step++) {
		double longest = 0;
		for (uint32_t i = 0; i < g.view.nmembers; i++)
			longest = fmax(longest, g.ms[i] * share(10 + i));
		g.step_ms = longest + g.exchange_ms + g.own_ms;
		for (uint32_t i = 0; i < g.view.nmembers; i++) {
			double mine = g.ms[i] * share(10 + i);
			const struct hd_step_news news = { .step_ns = (uint64_t)(g.step_ms * 1e6),
				.compute_ns = g.wraps == i + 1 ? -UINT64_C(3100000) :
					(uint64_t)(mine * 1e6),
				.wait_ns = (uint64_t)((longest - mine + g.exchange_ms) * 1e6) };
			hd_reshape_seal(&g.r, 10 + i, g.step, &news, &g.view);
		}
		struct hd_reshape_said said;
		bool asks = hd_reshape_step(&g.r, g.step, &g.view, &said);
		if (said.kind[0]) {
			strncat(g.kinds, said.kind, sizeof g.kinds - strlen(g.kinds) - 2);
			strcat(g.kinds, " ");
			snprintf(g.text, sizeof g.text, "%s", said.text);
		}
		if (asks) {
			g.plans++;
			set_members(g.view.nmembers);
		}
	}
}

static void equal_workers_keep_even_shares(void **state)
{
	const double ms[] = { 2, 2.04, 1.98 };

	(void)state;
	open_stage(3, 12, ms, true);
	run(300);
	assert_int_equal(g.plans, 0);
	assert_string_equal(g.kinds, "");
	assert_true(share(10) == 4 && share(11) == 4 && share(12) == 4);
}

/* 16 virtual nodes, the second worker three times as slow: 12 and 4 end together; the step is foreseen. */
static void a_slow_worker_gets_its_part_and_the_step_is_as_predicted(void **state)
{
	const double ms[] = { 2, 6 };

	(void)state;
	open_stage(2, 16, ms, true);
	g.exchange_ms = 1.5;
	g.own_ms = 0.5;
	run(HD_PACE_FIRST + HD_RESHAPE_LEARN + 10);
	assert_int_equal(g.plans, 0);             /* not before it was slow for 16 steps */
	run(10);
	assert_int_equal(g.plans, 1);
	CHECK(strstr(g.text, "virtual nodes 12/4 instead of 8/8"), "%s", g.text);
	assert_true(share(10) == 12 && share(11) == 4);
	run(200);
	assert_string_equal(g.kinds, "plan plan_judged ");
	double predicted_ms = (double)g.r.used.predicted_ps * 1e-9;
	CHECK(fabs(predicted_ms / g.step_ms - 1) < 0.05, "predicted %g, took %g", predicted_ms, g.step_ms);
	assert_int_equal(g.r.nerrors, 1);
	assert_true(g.r.error_ppm[0] < 50000);
	g.ms[1] = 2;                              /* well again */
	run(200);
	assert_true(share(10) == 8 && share(11) == 8);
}

static void what_is_not_worth_it_is_said_with_its_numbers(void **state)
{
	const double ms[] = { 2, 2.3 };           /* 8/8 takes 18.4; 9/7 18 */

	(void)state;
	open_stage(2, 4, ms, true);               /* of 4: 2/2 takes 4.6, 3/1 6 */
	run(100);
	assert_int_equal(g.plans, 0);
	CHECK(strstr(g.kinds, "plan_kept ") && strstr(g.text, "not worth it"), "%s: %s", g.kinds, g.text);
}

static void who_was_never_measured_counts_as_the_median_until_it_is(void **state)
{
	const double ms[] = { 1, 3 };

	(void)state;
	open_stage(2, 32, ms, true);
	run(60);
	g.ms[2] = 1;
	set_members(3);
	CHECK(share(10) > share(12) && share(12) > share(11), "%u %u %u", share(10), share(11), share(12));
	run(60);
	assert_int_equal(share(10) + share(11) + share(12), 32);
	assert_true(share(12) >= share(10) - 1 && share(12) <= share(10) + 1 && share(11) < 6);
	set_members(2);                           /* the newcomer goes: known paces make the map at once */
	CHECK(share(10) == 24 && share(11) == 8, "%u %u", share(10), share(11));
}

/* A view of the same members (a link that was mended, a failure without a loss) keeps the map. */
static void the_same_members_keep_their_map(void **state)
{
	const double ms[] = { 2, 6 };

	(void)state;
	open_stage(2, 16, ms, true);
	run(60);
	assert_int_equal(share(10), 12);
	set_members(2);
	assert_int_equal(share(10), 12);
	run(100);
	assert_int_equal(share(10), 12);
	assert_int_equal(g.plans, 1);
}

static void one_odd_step_changes_nothing(void **state)
{
	const double ms[] = { 2, 2 };

	(void)state;
	open_stage(2, 16, ms, true);
	run(60);
	g.ms[1] = 5;
	run(1);
	g.ms[1] = 2;
	run(60);
	assert_int_equal(g.plans, 0);
}

/* As it was recorded of a graph in eight intervals on three workers, steps of 1.2 ms: the worker that had all
 * of it seemed 16 thousand million times as slow, and all went to the next one, and again. */
static void a_time_that_cannot_be_moves_nothing(void **state)
{
	const double ms[] = { 0.2, 0.2, 0.2 };

	(void)state;
	open_stage(3, 9, ms, true);
	run(60);
	g.wraps = 2;
	run(300);
	CHECK(g.plans == 0 && share(11) == 3, "%s: %s", g.kinds, g.text);
}

static void shares_stay_even_if_that_is_asked_for(void **state)
{
	const double ms[] = { 2, 6 };

	(void)state;
	open_stage(2, 16, ms, false);
	run(200);
	assert_int_equal(g.plans, 0);
	assert_true(share(10) == 8 && share(11) == 8);
}

static int close_stage(void **state)
{
	(void)state;
	hd_reshape_finish(&g.r);
	return 0;
}

/* 12 virtual nodes; a step with the second would take 50 ms, without it 24: it is left out, tried, and
 * comes back when it is well. */
static void who_was_left_out_comes_back(void **state)
{
	const double ms[] = { 2, 50 };
	int64_t now_ps, well_ps;

	(void)state;
	open_stage(2, 12, ms, true);
	assert_false(hd_reshape_if(&g.r, 11, 0, &now_ps));        /* nothing was measured yet */
	run(60);
	CHECK(share(11) == 0 && share(10) == 12, "%s", g.text);
	/* speeds are rounded to hundredths */
	assert_true(hd_reshape_if(&g.r, 11, 0, &now_ps) && hd_reshape_if(&g.r, 11, 2e9, &well_ps));
	CHECK(now_ps > INT64_C(23000000000) && now_ps < INT64_C(25000000000) &&
		well_ps > INT64_C(11500000000) && well_ps < INT64_C(12500000000),
		"%lld and %lld ps", (long long)now_ps, (long long)well_ps);
	run(120);
	CHECK(share(11) == 0 && strstr(g.kinds, "straggler plan_back"), "%s: %s", g.kinds, g.text);
	g.ms[1] = 2;
	run(250);
	CHECK(share(11) == 6, "%u: %s", share(11), g.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_workers_keep_even_shares),
		cmocka_unit_test(who_was_left_out_comes_back),
		cmocka_unit_test(a_slow_worker_gets_its_part_and_the_step_is_as_predicted),
		cmocka_unit_test(what_is_not_worth_it_is_said_with_its_numbers),
		cmocka_unit_test(who_was_never_measured_counts_as_the_median_until_it_is),
		cmocka_unit_test(the_same_members_keep_their_map),
		cmocka_unit_test(one_odd_step_changes_nothing),
		cmocka_unit_test(a_time_that_cannot_be_moves_nothing),
		cmocka_unit_test(shares_stay_even_if_that_is_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, close_stage);
}
