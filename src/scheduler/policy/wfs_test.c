/* Sharing by resize: counts against their definition, against a second writing of the published rule, and
 * what a policy does with them. */
#include "scheduler/policy/testing.h"

#include "scheduler/policy/counts.h"

enum { MOST = 12 };

static const struct { uint32_t devices, n; double weight[8]; uint32_t demand[8], theirs[8], ours[8];
	} examples[] = {
	{ 12, 3, { 1, 1, 2 }, { 4, 8, 16 }, { 2, 2, 8 }, { 3, 3, 6 } },
	{ 16, 2, { 1, 3 }, { 16, 16 }, { 8, 8 }, { 4, 12 } },
	{ 16, 3, { 5, 1, 1 }, { 2, 16, 16 }, { 2, 8, 4 }, { 2, 7, 7 } },
	{ 6, 2, { 1, 1 }, { 8, 8 }, { 4, 2 }, { 3, 3 } },
	{ 32, 4, { 4, 2, 1, 1 }, { 6, 32, 32, 3 }, { 6, 16, 4, 3 }, { 6, 15, 8, 3 } },
	{ 10, 8, { 10, 1, 1, 1, 1, 1, 1, 1 }, { 8, 4, 4, 4, 4, 4, 4, 4 }, { 2, 2, 1, 1, 1, 1, 1, 1 }, { 3, 1, 1, 1, 1, 1, 1, 1 } },
};

static void worked_examples_come_out(void **state)
{
	(void)state;
	for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
		struct hd_want want[8];
		uint32_t counts[8];
		for (uint32_t i = 0; i < examples[e].n; i++)
			want[i] = (struct hd_want){ examples[e].weight[i], 1, examples[e].demand[i], 0,
				NULL };
		assert_int_equal(hd_wfs_counts(examples[e].n, want, examples[e].devices, &arena, counts),
			HD_OK);
		for (uint32_t i = 0; i < examples[e].n; i++)
			CHECK(counts[i] == examples[e].ours[i], "example %zu, job %u: %u, not %u", e, i,
				counts[i], examples[e].ours[i]);
		assert_int_equal(hd_wfs_2020_counts(examples[e].n, want, examples[e].devices, &arena, counts),
			HD_OK);
		for (uint32_t i = 0; i < examples[e].n; i++)
			CHECK(counts[i] == examples[e].theirs[i], "2020, example %zu, job %u: %u, not %u", e,
				i, counts[i], examples[e].theirs[i]);
	}
	hd_arena_reset(&arena);
}

/* n jobs, G devices, mostly small weights that tie. */
static uint32_t random_wants(uint32_t seed, struct hd_want *want, uint32_t *devices)
{
	uint32_t n = 1 + (uint32_t)(MOST * draw(seed, 1, 0, 0));

	*devices = n + (uint32_t)((seed % 3 ? 20 : 200) * draw(seed, 2, 0, 0));
	for (uint32_t i = 0; i < n; i++)
		want[i] = (struct hd_want){ seed % 2 ? 1 + (uint32_t)(5 * draw(seed, 3, i, 0)) :
			0.01 + 20 * draw(seed, 3, i, 1), 1,
			1 + (uint32_t)(40 * draw(seed, 4, i, 0)), 0, NULL };
	return n;
}

/* The published rule once more, from its text and not from counts.c: plain arrays, one loop a line of it. */
static void again_2020(uint32_t n, const struct hd_want *want, uint32_t devices, uint32_t *alloc)
{
	bool todo[MOST];
	uint32_t share[MOST], left = n, order[MOST];
	int64_t free = devices;

	for (uint32_t j = 0; j < n; j++)
		todo[j] = true;
	while (left) {
		double weights = 0;
		int64_t sum = 0;
		uint32_t norder = 0, i = 0;
		bool full = false;
		for (uint32_t j = 0; j < n; j++)
			weights += todo[j] ? want[j].weight : 0;
		for (uint32_t j = 0; j < n; j++) {
			if (!todo[j])
				continue;
			double fair = (double)free * want[j].weight / weights;
			for (share[j] = 1; 2.0 * share[j] <= fair;)
				share[j] *= 2;
			sum += share[j];
		}
		for (uint32_t j = 0; j < n; j++) {            /* a stable sort by insertion */
			uint32_t at = norder;
			if (!todo[j])
				continue;
			for (; at && want[order[at - 1]].weight > want[j].weight; at--)
				order[at] = order[at - 1];
			order[at] = j;
			norder++;
		}
		while (sum > free && i < norder) {
			if (share[order[i]] > 1) {
				sum -= share[order[i]] / 2;
				share[order[i]] /= 2;
			} else {
				i++;
			}
		}
		for (uint32_t j = 0; j < n; j++)
			full |= todo[j] && share[j] >= want[j].most;
		for (uint32_t j = 0; j < n; j++) {
			if (!todo[j] || (full && share[j] < want[j].most))
				continue;
			alloc[j] = full ? want[j].most : share[j];
			free -= alloc[j];
			todo[j] = false;
			left--;
		}
	}
	for (bool given[MOST] = { false }; free > 0;) {
		uint32_t best = n;
		for (uint32_t j = 0; j < n; j++)
			if (!given[j] && (best == n || want[j].weight > want[best].weight))
				best = j;
		if (best == n)
			return;
		given[best] = true;
		while (free >= alloc[best] && want[best].most >= 2 * alloc[best]) {
			free -= alloc[best];
			alloc[best] *= 2;
		}
	}
}

static void the_published_rule_is_the_same_written_twice(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 100000; seed++) {
		struct hd_want want[MOST];
		uint32_t devices, counts[MOST], again[MOST], n = random_wants(seed, want, &devices);
		assert_int_equal(hd_wfs_2020_counts(n, want, devices, &arena, counts), HD_OK);
		again_2020(n, want, devices, again);
		for (uint32_t i = 0; i < n; i++)
			CHECK(counts[i] == again[i], "seed %u: job %u of %u on %u devices gets %u, not %u",
				seed, i, n, devices, counts[i], again[i]);
		if (seed % 64 == 0)
			hd_arena_reset(&arena);
	}
	hd_arena_reset(&arena);
}

static void counts_keep_their_laws(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 20000; seed++)
		for (int ours = 0; ours < 2; ours++) {
			struct hd_want want[MOST];
			uint32_t devices, counts[MOST], sum = 0, n = random_wants(seed, want, &devices);
			assert_int_equal((ours ? hd_wfs_counts : hd_wfs_2020_counts)(n, want, devices, &arena,
				counts), HD_OK);
			for (uint32_t i = 0; i < n; i++) {
				CHECK(counts[i] >= 1 && counts[i] <= want[i].most,
					"seed %u, job %u: %u of %u", seed, i, counts[i], want[i].most);
				CHECK(ours || counts[i] == want[i].most || !(counts[i] & (counts[i] - 1)),
					"seed %u, job %u: %u", seed, i, counts[i]);
				sum += counts[i];
			}
			CHECK(sum <= devices, "seed %u: %u of %u devices", seed, sum, devices);
			/* max-min within one device: a job below its demand is not poorer than another by
			 * more */
			for (uint32_t i = 0; ours && i < n; i++)
				for (uint32_t j = 0; j < n && counts[i] < want[i].most; j++)
					CHECK(sum == devices &&
						(counts[j] == 1 ||
						(counts[j] -
						1) / want[j].weight <= counts[i] / want[i].weight + 1e-4),
						"seed %u: job %u has %u for %g, job %u has %u for %g", seed,
						i, counts[i], want[i].weight, j, counts[j],
						want[j].weight);
			hd_arena_reset(&arena);
		}
}

/* How often (weight, count) is in the list. */
static uint32_t often(const struct hd_want *want, const uint32_t *counts, uint32_t n, double weight,
	uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += want[i].weight == weight && counts[i] == count;
	return found;
}

static void equal_jobs_in_another_order_only_exchange_their_counts(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed < 5000; seed += 2)           /* of whole weights */
		for (int ours = 0; ours < 2; ours++) {
			struct hd_want want[MOST], back[MOST];
			uint32_t devices, a[MOST], b[MOST], n = random_wants(seed, want, &devices);
			for (uint32_t i = 0; i < n; i++)
				want[i].most = want[0].most;
			for (uint32_t i = 0; i < n; i++)
				back[i] = want[n - 1 - i];
			assert_int_equal((ours ? hd_wfs_counts : hd_wfs_2020_counts)(n, want, devices, &arena,
				a), HD_OK);
			assert_int_equal((ours ? hd_wfs_counts : hd_wfs_2020_counts)(n, back, devices, &arena,
				b), HD_OK);
			for (uint32_t i = 0; i < n; i++) {
				uint32_t here = often(want, a, n, want[i].weight, a[i]),
					there = often(back, b, n, want[i].weight, a[i]);
				CHECK(here == there,
					"seed %u: %u jobs of weight %g have %u, in the other order %u", seed,
					here, want[i].weight, a[i], there);
			}
			hd_arena_reset(&arena);
		}
}

static uint32_t fullest(uint32_t nvns, uint32_t k) { return nvns / k + (nvns % k != 0); }

static void no_device_is_held_that_does_not_help(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 20000; seed++) {
		struct hd_want want[MOST];
		uint32_t devices, counts[MOST], left, n = random_wants(seed, want, &devices);
		for (uint32_t i = 0; i < n; i++)
			want[i].nvns = 1 + (uint32_t)(24 * draw(seed, 6, i, 0));
		assert_int_equal(hd_wfs_counts(n, want, devices, &arena, counts), HD_OK);
		left = devices;
		for (uint32_t i = 0; i < n; i++) {
			left -= counts[i];
			bool helps = counts[i] == 1 || fullest(want[i].nvns,
				counts[i] - 1) > fullest(want[i].nvns, counts[i]);
			CHECK(helps, "seed %u: %u devices for %u nodes", seed, counts[i], want[i].nvns);
		}
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = counts[i]; k <= counts[i] + left && k <= want[i].most &&
				k <= want[i].nvns; k++)
				CHECK(fullest(want[i].nvns, k) == fullest(want[i].nvns, counts[i]),
					"seed %u: job %u of %u nodes has %u, %u are left", seed, i,
					want[i].nvns, counts[i], left);
		hd_arena_reset(&arena);
	}
}

/* ---- the policies ---- */

static const double line[17] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const double one[1] = { 1 };
static struct hd_sched_elastic curve = { 1, 16, 16, line, 0, false };

static struct hd_sched_job job(uint64_t id, double weight, uint32_t demand, double steps, double age_s)
{
	return (struct hd_sched_job){ .id = id, .kind = "", .ikind = HD_SCHED_NONE, .scale = demand,
		.weight = weight, .steps_left = steps, .age_s = age_s,
		.deadline_s = INFINITY, .entity = HD_SCHED_NONE, .rate = one, .elastic = &curve };
}

static struct hd_policy *open(const char *name)
{
	struct hd_policy_setting set = { 0 };
	struct hd_policy *policy;

	assert_int_equal(hd_policy_parse(&set, name, NULL), HD_OK);
	assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
	return policy;
}

/* "id:count ..." of what the policy gives. */
static const char *given(struct hd_policy *policy, struct hd_sched_job *jobs, uint32_t n, uint32_t devices)
{
	static char text[200];
	const struct hd_sched_type type = { .name = "v", .n = devices };
	const struct hd_sched_state s = { .ntypes = 1, .njobs = n, .types = &type, .jobs = jobs };
	struct hd_shares out;
	struct hd_diag diag = { "" };
	int at = 0;

	text[0] = 0;
	CHECK(hd_policy_allocate(policy, &s, &arena, &out, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < out.nshapes; k++) {
		assert_true(out.x[k] > 1 - 1e-12 && out.shape[k].nneeds == 1);
		at += snprintf(text + at, sizeof text - (size_t)at, "%s%llu:%u", k ? " " : "",
			(unsigned long long)jobs[out.shape[k].member[0]].id,
			out.shape[k].need[0].n);
	}
	hd_arena_reset(&arena);
	return text;
}

static void a_job_that_waits_is_let_in_by_shrinking_the_others(void **state)
{
	struct hd_sched_job jobs[] = { job(0, 1, 8, 1e4, 0), job(1, 1, 8, 1e4, 0), job(2, 10, 8, 1e4, 0) };
	struct hd_policy *ours = open("wfs"), *theirs = open("wfs-2020");
	(void)state;

	curve.resize_s = 1e9;                             /* no job would resize by itself */
	assert_string_equal(given(ours, jobs, 1, 8), "0:8");
	assert_string_equal(given(ours, jobs, 2, 8), "0:4 1:4");
	assert_string_equal(given(ours, jobs, 3, 8), "0:1 1:1 2:6");
	/* over: what it leaves would have to pay for the resize */
	jobs[2].steps_left = 0;
	assert_string_equal(given(ours, jobs, 3, 8), "0:1 1:1");
	curve.resize_s = 1;
	assert_string_equal(given(ours, jobs, 3, 8), "0:1 1:1");         /* resized less than 30 s ago */
	jobs[0].age_s = jobs[1].age_s = 31;
	assert_string_equal(given(ours, jobs, 3, 8), "0:4 1:4");
	hd_policy_destroy(ours);
	jobs[2].steps_left = 1e4;
	assert_string_equal(given(theirs, jobs, 2, 8), "0:4 1:4");
	assert_string_equal(given(theirs, jobs, 3, 8), "0:2 1:2 2:4");
	hd_policy_destroy(theirs);
}

static void a_resize_must_save_more_than_twice_what_it_costs(void **state)
{
	struct hd_sched_job jobs[] = { job(0, 1, 4, 800, 0), job(1, 1, 4, 800, 0) };
	(void)state;

	for (int pays = 0; pays < 2; pays++) {
		struct hd_policy *p = open("wfs");
		/* at scale 4 a rate of 1: 800 steps take 1600 s on 2 devices and 800 s on 4 */
		curve.resize_s = pays ? 399 : 401;
		jobs[1].steps_left = 800;
		assert_string_equal(given(p, jobs, 2, 4), "0:2 1:2");
		jobs[1].steps_left = 0;
		jobs[0].age_s = 100;
		assert_string_equal(given(p, jobs, 2, 4), pays ? "0:4" : "0:2");
		jobs[0].age_s = 0;
		hd_policy_destroy(p);
	}
	curve.resize_s = 0;
}

static void lost_devices_put_the_last_started_back(void **state)
{
	struct hd_sched_job jobs[] = { job(0, 1, 2, 1e4, 0), job(1, 5, 2, 1e4, 0), job(2, 1, 2, 1e4, 0) };
	static const char *const names[] = { "wfs", "wfs-2020" };
	(void)state;

	for (int k = 0; k < 2; k++) {
		struct hd_policy *p = open(names[k]);
		assert_string_equal(given(p, jobs, 3, 6), "0:2 1:2 2:2");
		/* started in order of weight: 1, 0, 2 */
		assert_string_equal(given(p, jobs, 3, 2), "0:1 1:1");
		assert_string_equal(given(p, jobs, 3, 1), "1:1");
		hd_policy_destroy(p);
	}
}

static void rigid_jobs_keep_their_size_and_other_types_are_refused(void **state)
{
	struct hd_sched_job jobs[] = { job(0, 1, 8, 1e4, 0), job(1, 1, 4, 1e4, 0) };
	const struct hd_sched_type types[] = { { .name = "k", .n = 2 }, { .name = "v", .n = 2 } };
	static const double two[2] = { 1, 1 };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 2, .types = types, .jobs = jobs };
	struct hd_policy *p = open("wfs");
	struct hd_shares out;
	struct hd_diag diag = { "" };
	(void)state;

	jobs[1].elastic = NULL;
	assert_string_equal(given(p, jobs, 2, 8), "0:4 1:4");
	assert_string_equal(given(p, jobs, 2, 6), "0:2 1:4");
	hd_policy_destroy(p);
	p = open("wfs-2020");
	const struct hd_sched_state alone = { .ntypes = 1, .njobs = 2,
		.types = &(struct hd_sched_type){ .name = "v", .n = 8 }, .jobs = jobs };
	assert_int_equal(hd_policy_allocate(p, &alone, &arena, &out, &diag), HD_E_INVAL);
	assert_string_equal(diag.text,
		"the policy wfs-2020 resizes every job from 1 device on, job 1 runs on 4 or not at all");
	jobs[0].rate = jobs[1].rate = two;
	diag.text[0] = 0;
	assert_int_equal(hd_policy_allocate(p, &s, &arena, &out, &diag), HD_E_INVAL);
	assert_string_equal(diag.text,
		"the policy wfs-2020 shares devices of one type, here are 2 (the policy heddle resizes jobs "
		"over several)");
	hd_policy_destroy(p);
	hd_arena_reset(&arena);
}

static void gangs_go_by_weight_and_the_head_blocks_unless_backfilled(void **state)
{
	/* by weight: 2, then 0, 1, 3; job 0 does not fit beside 2 and holds back 1 and 3 */
	struct hd_sched_job jobs[] = { job(0, 5, 8, 100, 0), job(1, 1, 2, 50, 0), job(2, 10, 4, 100, 0),
		job(3, 1, 2, 200, 0) };
	struct hd_policy *p = open("priority");
	(void)state;

	assert_string_equal(given(p, jobs, 4, 8), "2:4");
	jobs[2].steps_left = 0;
	assert_string_equal(given(p, jobs, 4, 8), "0:8");
	hd_policy_destroy(p);
	p = open("priority-backfill");
	jobs[2].steps_left = 100;
	/* 1 ends before the head can start, 3 does not */
	assert_string_equal(given(p, jobs, 4, 8), "1:2 2:4");
	hd_policy_destroy(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_examples_come_out),
		cmocka_unit_test(the_published_rule_is_the_same_written_twice),
		cmocka_unit_test(counts_keep_their_laws),
		cmocka_unit_test(equal_jobs_in_another_order_only_exchange_their_counts),
		cmocka_unit_test(no_device_is_held_that_does_not_help),
		cmocka_unit_test(a_job_that_waits_is_let_in_by_shrinking_the_others),
		cmocka_unit_test(a_resize_must_save_more_than_twice_what_it_costs),
		cmocka_unit_test(lost_devices_put_the_last_started_back),
		cmocka_unit_test(rigid_jobs_keep_their_size_and_other_types_are_refused),
		cmocka_unit_test(gangs_go_by_weight_and_the_head_blocks_unless_backfilled),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
