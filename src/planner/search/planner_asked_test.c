/* What a question asks for is kept, or refused with the reason and with what would work. */
#include "planner/search/testing_planner.h"

#include <stdio.h>
#include <string.h>

static const struct model *asked_of;             /* the model of the last ask_for() */

static enum hd_err ask_for(struct hd_auto *a, struct machines *c, struct hd_auto_ask ask, uint32_t nodes,
	struct hd_diag *diag)
{
	static struct model m;

	asked_of = &m;
	make_model(&m, (struct hd_dice){ 5 }, nodes, 1, false);
	*diag = (struct hd_diag){ "" };
	return hd_plan_auto(a, &m.sums, &c->cluster, &ask, &arena, diag);
}

static void what_cannot_work_is_refused_with_what_would(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;
	long long need = 0;
	const char *at;

	(void)state;
	make_machines(&c, &d, 2, 2, true, 100, 1);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8 }, 6, &diag), HD_E_INVAL);
	at = strstr(diag.text, "the smallest need is about ");
	CHECK(at && strstr(diag.text, "at p = ") && strstr(diag.text, "has 100"), "it says %s", diag.text);
	assert_int_equal(sscanf(at, "the smallest need is about %lld", &need), 1);
	make_machines(&c, &d, 2, 2, true, need + need / 10, 1);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8 }, 6, &diag) == HD_OK,
		"with a tenth more than it asks for: %s", diag.text);
	make_machines(&c, &d, 2, 2, true, 0, 1);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 3, .update = HD_UPDATE_2BW, .p = 4 }, 6,
		&diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "2bw needs m >= p; m = 3, p = 4: the nearest that works: V = 4, or p = 3"),
		"it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 7, .p = 2, .d = 2,
		.schedule = "dualpipev" }, 6, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "dualpipev needs m >= 2p; m = 3, p = 2: the nearest that works: V = 8"),
		"it says %s", diag.text);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 2, .d = 2, .schedule = "dualpipev" }, 6,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 4 }, 3, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "p is at most 3"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 3, .d = 2 }, 6, &diag),
		HD_E_INVAL);
	CHECK(strstr(diag.text, "more than the 4 devices"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .update = HD_UPDATE_STASH, .d = 2 },
		6, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text,
		"every virtual node of update stash updates the weights by itself, so there is one pipeline"),
		"it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .schedule = "1f1c" }, 6, &diag),
		HD_E_INVAL);
	CHECK(strstr(diag.text, "did you mean 1f1b?"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ 0 }, 6, &diag), HD_E_INVAL);
	hd_arena_reset(&arena);
}

/* Two servers on a link that takes years, or a server whose devices are so joined: the plan is that of
 * what remains. */
static void what_takes_longer_than_is_counted_is_left_out(void **state)
{
	static const struct { uint32_t inner, outer; double bytes_per_s[2]; struct hd_auto_ask ask;
		uint32_t alone; const char *data; } cases[] = {
		{ 2, 2, { 1e10, 1e-3 }, { .vns = 8 }, 2, "data parallel, best on 2 of 4 devices: " },
		{ 4, 1, { 1e-3, 1e-3 }, { .vns = 8, .tensor_shards = 4 }, 1, "data parallel: takes longer than is counted" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_dice d = { 3 };
		struct machines c;
		struct hd_auto a, alone;
		struct hd_diag diag;
		struct hd_text text;
		make_machines(&c, &d, cases[k].inner, cases[k].outer, true, 0, 1);
		for (int l = 0; l < 2; l++)
			c.cluster.level[l] = (struct hd_cluster_level){ "l",
				l ? cases[k].outer : cases[k].inner, cases[k].bytes_per_s[l], 0 };
		CHECK(ask_for(&a, &c, cases[k].ask, 6, &diag) == HD_OK, "case %zu: %s", k, diag.text);
		CHECK(a.nlate > 0 && (k == 0 ? a.data_ps > 0 &&
			a.data_d == 2 : a.data_ps == HD_AUTO_TOO_LONG) && a.one_ps > 0,
			"case %zu: %llu left out, data parallel %lld", k,
			(unsigned long long)a.nlate, (long long)a.data_ps);
		hd_text_init(&text, &arena);
		hd_auto_explain(&a, &asked_of->sums, &c.cluster, &cases[k].ask, false, &text);
		assert_non_null(strstr(text.at, cases[k].data));
		assert_non_null(strstr(text.at, "left out: "));
		make_machines(&c, &d, cases[k].alone, 1, true, 0, 1);
		c.cluster.level[0] = (struct hd_cluster_level){ "l", cases[k].alone, cases[k].bytes_per_s[0],
			0 };
		CHECK(ask_for(&alone, &c, cases[k].ask, 6, &diag) == HD_OK, "case %zu: %s", k, diag.text);
		CHECK(alone.nlate == 0 && a.plan[0].makespan_ps == alone.plan[0].makespan_ps,
			"case %zu: %lld ps, without the link %lld", k,
			(long long)a.plan[0].makespan_ps, (long long)alone.plan[0].makespan_ps);
		hd_arena_reset(&arena);
	}
}

static void what_is_asked_for_is_kept(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;

	(void)state;
	make_machines(&c, &d, 4, 2, true, 0, 1);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .p = 2, .d = 4, .schedule = "interleaved",
		.v = 3 }, 12, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(a.plan[0].shape.p, 2);
	assert_int_equal(a.plan[0].shape.d, 4);
	assert_int_equal(a.plan[0].nstages, 6);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .p = 4, .recompute = HD_AUTO_ALWAYS }, 12,
		&diag) == HD_OK, "%s", diag.text);
	for (uint32_t s = 0; s < a.plan[0].nstages; s++)
		assert_true(a.plan[0].recompute[s]);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .tensor_shards = 4, .t = 2 }, 12,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(a.plan[0].shape.t, 2);
	hd_arena_reset(&arena);
}

/* Fewer copies of the whole model than there are devices, though more would be faster. */
static void any_number_of_copies_that_is_asked_for_has_a_plan(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;

	(void)state;
	make_machines(&c, &d, 4, 3, true, 0, 1);
	for (uint32_t n = 1; n <= 12; n++) {
		CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 12, .p = 1, .d = n, .v = 1 }, 6, &diag) ==
			HD_OK, "d %u: %s", n, diag.text);
		CHECK(a.plan[0].shape.d == n && a.plan[0].shape.p == 1, "d %u of %u", a.plan[0].shape.d, n);
	}
}

static void only_a_profile_of_a_sharded_job_is_divided(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct model m;
	struct hd_auto a;
	struct hd_diag diag = { "" };
	struct hd_text text;

	(void)state;
	make_machines(&c, &d, 4, 1, true, 0, 1);
	make_model(&m, d, 6, 1, false);
	struct hd_auto_ask ask = { .vns = 8, .tensor_shards = 3 };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "3 tensor shards: the profile is of a job with 4"), "it says %s", diag.text);
	m.profile.tensor_shards = 1;
	ask.tensor_shards = 2;
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "2 tensor shards: the profile is of a job with 1"), "it says %s", diag.text);
	m.profile.tensor_shards = 2;
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	make_model(&m, d, 1, 1, false);
	c.cluster.level[0] = (struct hd_cluster_level){ "in", 4, 1e15, 0 };
	ask = (struct hd_auto_ask){ .vns = 1, .tensor_shards = 4 };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	assert_int_equal(a.plan[0].shape.t, 4);
	hd_text_init(&text, &arena);
	hd_auto_explain(&a, &m.sums, &c.cluster, &ask, false, &text);
	CHECK(strstr(text.at, "no pipeline: 4 devices share the work of every node") &&
		!strstr(text.at, "cost less"), "it says %s", text.at);
	hd_arena_reset(&arena);
}

static void what_was_asked_for_is_told_as_the_reason(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;
	struct model m;
	struct hd_text text;
	struct hd_auto_ask ask = { .vns = 16, .p = 4, .schedule = "gpipe", .recompute = HD_AUTO_ALWAYS };

	(void)state;
	make_machines(&c, &d, 4, 2, true, 0, 1);
	make_model(&m, (struct hd_dice){ 5 }, 12, 1, false);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	hd_text_init(&text, &arena);
	hd_auto_explain(&a, &m.sums, &c.cluster, &ask, false, &text);
	CHECK(strstr(text.at, "asked for: schedule gpipe, p = 4\n") && strstr(text.at, "; asked for\n") &&
		!strstr(text.at, "do not fit") &&
		!strstr(text.at, "data parallel would sum"), "it says %s", text.at);
	hd_arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_work_is_refused_with_what_would),
		cmocka_unit_test(what_takes_longer_than_is_counted_is_left_out),
		cmocka_unit_test(what_is_asked_for_is_kept),
		cmocka_unit_test(any_number_of_copies_that_is_asked_for_has_a_plan),
		cmocka_unit_test(only_a_profile_of_a_sharded_job_is_divided),
		cmocka_unit_test(what_was_asked_for_is_told_as_the_reason),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
