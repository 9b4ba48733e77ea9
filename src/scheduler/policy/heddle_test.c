/* What the plan decides where it can be worked out by hand, and its laws on random clusters of elastic
 * jobs. */
#include "scheduler/policy/testing.h"

#include "scheduler/policy/int.h"

static const double ones[4] = { 1, 1, 1, 1 };

static struct hd_sched_job job(uint64_t id, uint32_t scale, double steps, const double *rate)
{
	return (struct hd_sched_job){ .id = id, .kind = "", .ikind = HD_SCHED_NONE, .scale = scale,
		.weight = 1, .steps_left = steps, .deadline_s = INFINITY,
		.entity = HD_SCHED_NONE, .rate = rate };
}

/* "id:count type+count type ..." of what runs. */
static const char *given(struct hd_policy *policy, const struct hd_sched_state *s)
{
	static char text[400];
	struct hd_shares out;
	struct hd_diag diag = { "" };
	size_t at = 0;

	text[0] = 0;
	CHECK(hd_policy_allocate(policy, s, &arena, &out, &diag) == HD_OK, "%s", diag.text);
	CHECK(!out.kept && !out.cut && out.gap <= 1e-7, "kept %d, cut %d, gap %g", out.kept, out.cut,
		out.gap);
	for (uint32_t k = 0; k < out.nshapes; k++) {
		const struct hd_shape *shape = &out.shape[k];
		assert_true(out.x[k] > 1 - 1e-12 && out.x[k] < 1 + 1e-12);
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu", k ? " " : "",
			(unsigned long long)s->jobs[shape->member[0]].id);
		if (shape->nmembers == 2)
			at += (size_t)snprintf(text + at, sizeof text - at, "&%llu",
				(unsigned long long)s->jobs[shape->member[1]].id);
		for (uint32_t d = 0; d < shape->nneeds; d++)
			at += (size_t)snprintf(text + at, sizeof text - at, "%c%u%s", d ? '+' : ':',
				shape->need[d].n, s->types[shape->need[d].type].name);
	}
	return text;
}

static struct hd_policy *open(const char *name, double delay_usd_h)
{
	struct hd_policy_setting set = { .delay_usd_h = delay_usd_h };
	struct hd_policy *policy;

	assert_int_equal(hd_policy_parse(&set, name, NULL), HD_OK);
	assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
	return policy;
}

static const char *once(const char *name, double delay_usd_h, const struct hd_sched_state *s)
{
	struct hd_policy *p = open(name, delay_usd_h);
	const char *text = given(p, s);

	hd_policy_destroy(p);
	return text;
}

static void the_least_left_by_weight_goes_first(void **state)
{
	const struct hd_sched_type type = { .name = "v", .n = 1 };
	struct hd_sched_job jobs[] = { job(0, 1, 9000, ones), job(1, 1, 3000, ones), job(2, 1, 6000, ones) };
	const struct hd_sched_state s = { .ntypes = 1, .njobs = 3, .types = &type, .jobs = jobs };
	(void)state;

	need_lp();
	assert_string_equal(once("heddle", 0, &s), "1:1v");
	jobs[0].weight = 4;                               /* 2250 s of work a weight */
	assert_string_equal(once("heddle", 0, &s), "0:1v");
	jobs[0].steps_left = 0;
	jobs[1].rate = (double[]){ 0 };
	assert_string_equal(once("heddle", 0, &s), "2:1v");
}

/* Two jobs in a row on one device, or a long gang that must begin at once for all to end early. */
static void who_goes_where_is_settled_by_what_each_gains(void **state)
{
	const struct hd_sched_type types[] = { { .name = "k", .n = 1 }, { .name = "v", .n = 1 } };
	struct hd_sched_job jobs[] = { job(0, 1, 4000, (double[]){ 1, 4 }),
		job(1, 1, 4000, (double[]){ 3, 4 }) };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 2, .types = types, .jobs = jobs };
	(void)state;

	need_lp();
	assert_string_equal(once("heddle", 0, &s), "0:1v 1:1k");
}

static void prices_decide_between_equals_or_against_time(void **state)
{
	const struct hd_sched_type types[] = { { .name = "dear", .n = 2, .price_usd_h = 9 },
		{ .name = "plain", .n = 2, .price_usd_h = 1 } };
	struct hd_sched_job jobs[] = { job(0, 1, 7200, (double[]){ 1, 1 }) };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 1, .types = types, .jobs = jobs };
	(void)state;

	need_lp();
	assert_string_equal(once("heddle", 0, &s), "0:1plain");
	/* 4800 s for $12, or 7200 s for $2: $10 for 2/3 of an hour, four times that with the makespan */
	jobs[0].rate = (double[]){ 1.5, 1 };
	assert_string_equal(once("heddle", 0, &s), "0:1dear");
	assert_string_equal(once("heddle", 3.5, &s), "0:1plain");
	assert_string_equal(once("heddle", 4, &s), "0:1dear");
	assert_string_equal(once("heddle", 20, &s), "0:1dear");
}

static void risk_is_what_it_costs(void **state)
{
	const struct hd_sched_type types[] = { { .name = "firm", .n = 1 },
		{ .name = "spot", .n = 1, .revoked_per_s = 1.0 / 3600 } };
	struct hd_sched_job jobs[] = { job(0, 1, 7200, (double[]){ 1, 1.2 }) };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 1, .types = types, .jobs = jobs };
	(void)state;

	need_lp();
	jobs[0].lost_s = 300;                             /* a twelfth of 1.2 is lost: 1.1 is left */
	assert_string_equal(once("heddle", 0, &s), "0:1spot");
	jobs[0].lost_s = 900;                             /* a quarter: 0.9 */
	assert_string_equal(once("heddle", 0, &s), "0:1firm");
}

static const double sublinear[9] = { 0, 1, 1.6, 2.1, 2.5, 2.8, 3.05, 3.25, 3.4 };

static void one_job_takes_what_helps_and_many_share(void **state)
{
	struct hd_sched_elastic e = { .min = 1, .max = 8, .nvns = 64, .speedup = sublinear, .resize_s = 1 };
	const struct hd_sched_type type = { .name = "v", .n = 8 };
	struct hd_sched_job jobs[8];
	struct hd_sched_state s = { .ntypes = 1, .njobs = 1, .types = &type, .jobs = jobs };
	struct hd_policy *p;
	(void)state;

	need_lp();
	for (uint32_t i = 0; i < 8; i++) {
		jobs[i] = job(i, 1, 1e4, ones);
		jobs[i].elastic = &e;
	}
	assert_string_equal(once("heddle", 0, &s), "0:8v");
	s.njobs = 8;                                      /* equal jobs: alone on a device each does most */
	assert_string_equal(once("heddle", 0, &s), "0:1v 1:1v 2:1v 3:1v 4:1v 5:1v 6:1v 7:1v");
	/* the others have ended: it grows, unless that takes longer than it saves */
	for (int dear = 0; dear < 2; dear++) {
		e.resize_s = 1;
		s.njobs = 8;
		p = open("heddle", 0);
		(void)given(p, &s);
		e.resize_s = dear ? 1e6 : 1;
		s.njobs = 1;
		jobs[0].steps_left = 200;
		assert_string_equal(given(p, &s), dear ? "0:1v" : "0:8v");
		jobs[0].steps_left = 1e4;
		hd_policy_destroy(p);
	}
	hd_arena_reset(&arena);
}

static void virtual_nodes_spread_over_two_types(void **state)
{
	static const double line[7] = { 0, 1, 2, 3, 4, 5, 6 };
	struct hd_sched_elastic e = { .min = 1, .max = 6, .nvns = 12, .speedup = line, .resize_s = 1,
		.mixed = true };
	const struct hd_sched_type types[] = { { .name = "k", .n = 2 }, { .name = "v", .n = 2 } };
	struct hd_sched_job jobs[] = { job(0, 1, 1e4, (double[]){ 1, 2 }) };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 1, .types = types, .jobs = jobs };
	const struct hd_need both[2] = { { 0, 2 }, { 1, 2 } }, slow[1] = { { 0, 2 } };
	(void)state;

	need_lp();
	jobs[0].elastic = &e;
	assert_string_equal(once("heddle", 0, &s), "0:2k+2v");
	/* 12 nodes: 2 on each k, 4 on each v, a node takes 1/12 s on k: 6 steps/s */
	assert_true(fabs(hd_way_rate(&jobs[0], both, 2) - 6) < 1e-9 &&
		fabs(hd_way_rate(&jobs[0], slow, 1) - 2) < 1e-12);
	e.nvns = 5;                                       /* two on each v, the fifth on a k meanwhile */
	CHECK(fabs(hd_way_rate(&jobs[0], both, 2) - 5) < 1e-9, "%.12g", hd_way_rate(&jobs[0], both, 2));
	/* the seventh: a second on a k, or a third on a v */
	e.nvns = 7;
	CHECK(fabs(hd_way_rate(&jobs[0], both, 2) - 7 / 1.5) < 1e-9, "%.12g", hd_way_rate(&jobs[0], both, 2));
	e.mixed = false;
	assert_string_equal(once("heddle", 0, &s), "0:2v");
	assert_true(!(hd_way_rate(&jobs[0], both, 2) > 0));
}

static void pairs_are_taken_where_they_gain(void **state)
{
	const struct hd_sched_type type = { .name = "v", .n = 1 };
	struct hd_sched_job jobs[] = { job(0, 1, 4000, ones), job(1, 1, 4000, ones) };
	double both[2][1] = { { 0.9 }, { 0.9 } };
	const struct hd_sched_pair pair = { 0, 1, { both[0], both[1] } };
	const struct hd_sched_state s = { .ntypes = 1, .njobs = 2, .npairs = 1, .types = &type, .jobs = jobs,
		.pairs = &pair };
	(void)state;

	need_lp();
	assert_string_equal(once("heddle-packed", 0, &s), "0&1:1v");
	assert_string_equal(once("heddle", 0, &s), "0:1v");
	/* together both end at 7843 s, one after the other at 4000 and 8000 s */
	both[0][0] = both[1][0] = 0.51;
	assert_string_equal(once("heddle-packed", 0, &s), "0:1v");
}

/* Random clusters where most jobs are elastic, some mixed: the base constraints are checked by every call. */
static void elastic_state(struct hd_sched_state *s, uint32_t seed, uint32_t n, uint32_t m)
{
	random_state(s, seed, n, m, &arena);
	for (uint32_t i = 0; i < n; i++) {
		struct hd_sched_job *j = &((struct hd_sched_job *)s->jobs)[i];
		uint32_t max = 1 + (uint32_t)(12 * draw(seed, 30, i, 0));
		struct hd_sched_elastic *e = hd_arena_take(&arena, 1, sizeof *e);
		double *speedup = hd_arena_take(&arena, (size_t)max + 1, sizeof *speedup),
			curve = 0.4 + 0.6 * draw(seed, 31, i, 0);
		for (uint32_t k = 1; k <= max; k++)
			speedup[k] = pow(k, curve);
		*e = (struct hd_sched_elastic){ .min = 1, .max = max,
			.nvns = 1 + (uint32_t)(40 * draw(seed, 32, i, 0)), .speedup = speedup,
			.resize_s = 5 * draw(seed, 33, i, 0), .mixed = draw(seed, 34, i, 0) < 0.5 };
		j->lost_s = 60;
		j->elastic = draw(seed, 35, i, 0) < 0.8 ? e : NULL;
	}
}

static void laws_hold_on_random_clusters(void **state)
{
	static const char *const names[] = { "heddle", "heddle-packed", "pop:3:heddle" };
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < 60; seed++)
		for (int p = 0; p < 3; p++) {
			struct hd_sched_state s;
			struct hd_policy *policy = open(names[p], seed % 3 ? 0 : 1 + seed);
			struct hd_diag diag = { "" };
			for (uint32_t call = 0; call < 2; call++) {
				struct hd_shares out;
				uint32_t used[5] = { 0 }, runs[40] = { 0 };
				elastic_state(&s, seed, 1 + seed * 7 % 24 + call, 1 + seed % 5);
				CHECK(hd_policy_allocate(policy, &s, &arena, &out, &diag) == HD_OK,
					"%s, seed %u: %s", names[p], seed, diag.text);
				CHECK(!out.kept && out.gap <= 1e-7, "%s, seed %u: kept %d, gap %g", names[p],
					seed, out.kept, out.gap);
				for (uint32_t k = 0; k < out.nshapes; k++) {
					const struct hd_shape *shape = &out.shape[k];
					uint32_t total = 0;
					for (uint32_t d = 0; d < shape->nneeds; d++) {
						used[shape->need[d].type] += shape->need[d].n;
						total += shape->need[d].n;
					}
					for (uint32_t m = 0; m < shape->nmembers; m++)
						CHECK(++runs[shape->member[m]] == 1,
							"%s, seed %u: a job runs twice", names[p], seed);
					const struct hd_sched_job *j = &s.jobs[shape->member[0]];
					bool fits = total == j->scale ||
						(j->elastic && total >= j->elastic->min &&
						total <= j->elastic->max);
					CHECK(fits && (shape->nneeds == 1 || j->elastic->mixed),
						"%s, seed %u: %u devices", names[p], seed, total);
				}
				for (uint32_t j = 0; j < s.ntypes; j++)
					CHECK(used[j] <= s.types[j].n, "%s, seed %u: %u of %u", names[p],
						seed, used[j], s.types[j].n);
			}
			hd_policy_destroy(policy);
			hd_arena_reset(&arena);
		}
}

static void many_jobs(uint32_t n, struct hd_sched_job *jobs, double rate[][2])
{
	for (uint32_t i = 0; i < n; i++) {
		rate[i][0] = 1 + draw(5, 0, i, 0);
		rate[i][1] = 2 + 4 * draw(5, 1, i, 0);
		jobs[i] = job(i, draw(5, 2, i, 0) < 0.8 ? 1 : 2, 500 + 20000 * draw(5, 3, i, 0), rate[i]);
	}
}

/* Of pairs 150 jobs are planned as a whole and more in parts of 50. The parts side by side are a plan of the
 * whole: not better than the best of all, and of jobs that are dealt evenly not far worse: seen 5 % here,
 * where parts have 5 and 3 devices. */
static void many_jobs_are_planned_in_parts_that_join_to_one_plan(void **state)
{
	enum { N = 160 };
	const struct hd_sched_type types[] = { { .name = "k", .n = 20 }, { .name = "v", .n = 12 } };
	struct hd_sched_job jobs[N];
	double rate[N][2];
	struct hd_sched_state s = { .ntypes = 2, .njobs = N, .types = types, .jobs = jobs };
	struct hd_shares parts, whole, again;
	(void)state;

	need_lp();
	many_jobs(N, jobs, rate);
	struct hd_policy *p = open("heddle-packed", 0), *q = open("pop:1:heddle-packed", 0),
		*r = open("heddle-packed", 0);
	assert_int_equal(hd_policy_allocate(p, &s, &arena, &parts, NULL), HD_OK);
	assert_int_equal(hd_policy_allocate(q, &s, &arena, &whole, NULL), HD_OK);
	CHECK(whole.nlps == 1 && parts.nlps == 4, "%u and %u programs", whole.nlps, parts.nlps);
	CHECK(parts.objective >= whole.objective * (1 - 1e-7) && parts.objective < 1.1 * whole.objective,
		"%g in parts, %g as a whole", parts.objective,
		whole.objective);
	/* devices are given as of one plan: none stays idle in one part while jobs of another wait */
	uint32_t used[2] = { 0 };
	for (uint32_t k = 0; k < parts.nshapes; k++)
		used[parts.shape[k].need[0].type] += parts.shape[k].need[0].n;
	CHECK(used[0] == 20 && used[1] == 12, "%u of 20 and %u of 12 devices", used[0], used[1]);
	assert_int_equal(hd_policy_allocate(r, &s, &arena, &again, NULL), HD_OK);
	assert_true(again.nshapes == parts.nshapes && !memcmp(again.shape, parts.shape,
		parts.nshapes * sizeof *parts.shape));
	/* as many as are planned as a whole have the plan of the whole, to the bit */
	s.njobs = 150;
	hd_policy_destroy(p);
	hd_policy_destroy(q);
	hd_policy_destroy(r);
	p = open("heddle-packed", 0);
	q = open("pop:1:heddle-packed", 0);
	assert_int_equal(hd_policy_allocate(p, &s, &arena, &parts, NULL), HD_OK);
	assert_int_equal(hd_policy_allocate(q, &s, &arena, &whole, NULL), HD_OK);
	assert_true(parts.nlps == 1 && !memcmp(&parts.objective, &whole.objective, sizeof whole.objective) &&
		parts.nshapes == whole.nshapes);
	assert_memory_equal(parts.shape, whole.shape, whole.nshapes * sizeof *whole.shape);
	hd_policy_destroy(p);
	hd_policy_destroy(q);
	hd_arena_reset(&arena);
}

/* Gangs of more than half of every type, one of them to all jobs there are: they have parts of their own, and
 * the room for these is what a rough plan says. Side by side the parts are a plan of the whole: seen 0.1
 * to 7 % above the best. */
static void gangs_larger_than_a_part_leave_the_others_in_parts(void **state)
{
	enum { N = 160 };
	static const uint32_t every[] = { N, 40, 10, 2, 1 };
	const struct hd_sched_type types[] = { { .name = "k", .n = 20 }, { .name = "v", .n = 15 } };
	struct hd_sched_job jobs[N];
	double rate[N][2];
	struct hd_sched_state s = { .ntypes = 2, .njobs = N, .types = types, .jobs = jobs };
	(void)state;

	need_lp();
	for (size_t c = 0; c < sizeof every / sizeof *every; c++) {
		struct hd_policy *p = open("heddle-packed", 0), *q = open("pop:1:heddle-packed", 0);
		struct hd_shares parts, whole;
		many_jobs(N, jobs, rate);
		for (uint32_t i = every[c] - 1; i < N; i += every[c])
			jobs[i].scale = 11;
		assert_int_equal(hd_policy_allocate(p, &s, &arena, &parts, NULL), HD_OK);
		assert_int_equal(hd_policy_allocate(q, &s, &arena, &whole, NULL), HD_OK);
		CHECK(whole.nlps == 1 && parts.nlps >= 4 && !parts.kept, "1 gang in %u: %u and %u programs",
			every[c], whole.nlps, parts.nlps);
		CHECK(parts.objective >= whole.objective * (1 - 1e-7) &&
			parts.objective < 1.1 * whole.objective, "1 gang in %u: %g in parts, %g as a whole",
			every[c], parts.objective, whole.objective);
		hd_policy_destroy(p);
		hd_policy_destroy(q);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_left_by_weight_goes_first),
		cmocka_unit_test(who_goes_where_is_settled_by_what_each_gains),
		cmocka_unit_test(prices_decide_between_equals_or_against_time),
		cmocka_unit_test(risk_is_what_it_costs),
		cmocka_unit_test(one_job_takes_what_helps_and_many_share),
		cmocka_unit_test(virtual_nodes_spread_over_two_types),
		cmocka_unit_test(pairs_are_taken_where_they_gain),
		cmocka_unit_test(laws_hold_on_random_clusters),
		cmocka_unit_test(many_jobs_are_planned_in_parts_that_join_to_one_plan),
		cmocka_unit_test(gangs_larger_than_a_part_leave_the_others_in_parts),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
