/* The planner on published profiles: what gives it more to choose from never makes it slower. */
#include "planner/search/testing_planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_model(struct model *m, const char *name)
{
	char path[64], *text;

	snprintf(path, sizeof path, "pipedream/%s.graph.txt", name);
	if (!(text = hd_shared_text(path)))
		return false;
	assert_int_equal(hd_profile_read(&m->profile, text, strlen(text), name, &arena, NULL), HD_OK);
	hd_sums_of(&m->sums, &m->cuts, &m->profile, (struct hd_cuts_how){ .compress = true });
	return true;
}

struct servers { struct hd_cluster cluster; struct hd_cluster_kind kind; uint32_t of[32]; };

static void make_servers(struct servers *c, uint32_t n, double bytes_per_s, int64_t memory)
{
	*c = (struct servers){ .kind = { "new", 1, memory } };
	c->cluster = (struct hd_cluster){ .kind = &c->kind, .nkinds = 1, .nlevels = 1, .device_kind = c->of,
		.ndevices = n };
	c->cluster.level[0] = (struct hd_cluster_level){ "s", n, bytes_per_s, 5000000 };
}

/* INT64_MAX: refused. */
static int64_t step_of(const struct model *m, const struct servers *c, struct hd_auto_ask ask)
{
	struct hd_auto a;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_plan_auto(&a, &m->sums, &c->cluster, &ask, &arena, &diag);

	assert_true(err == HD_OK || err == HD_E_INVAL);
	const char *at = strstr(diag.text, "the smallest need is about ");
	if (err && at) {
		long long need = 0;
		assert_int_equal(sscanf(at, "the smallest need is about %lld", &need), 1);
		CHECK(need > c->kind.memory, "refused, though it needs no more than there is: %s", diag.text);
	}
	return err ? INT64_MAX : a.plan[0].makespan_ps;
}

/* HD_PLANS=all: every case, where a few of each kind are enough. */
static bool all_plans(void)
{
	const char *asked = getenv("HD_PLANS");

	return asked && !strcmp(asked, "all");
}

/* Over one link the even sizes, over the other the odd ones. */
static void more_memory_is_never_slower(void **state)
{
	static const char *const names[] = { "resnet50", "vgg16" };

	(void)state;
	for (size_t k = 0; k < (SANITIZED ? 1 : 2); k++)
		for (double bandwidth = 1e8; bandwidth < 2e9; bandwidth *= 10) {
			int64_t before = INT64_MAX;
			struct model m;
			if (!read_model(&m, names[k]))
				SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
			for (int64_t memory = 6; memory <= 20; memory++) {
				if ((!all_plans() && memory % 2 != (bandwidth > 5e8)) ||
					(SANITIZED && memory % 8 > 1))
					continue;
				struct servers c;
				make_servers(&c, 4, bandwidth, memory * 1000000000);
				int64_t took = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
				CHECK(took <= before, "%s at %g B/s: %lld ps with %lld GB, %lld with less",
					names[k], bandwidth, (long long)took,
					(long long)memory, (long long)before);
				before = took;
			}
			CHECK(before < INT64_MAX, "%s is refused with 20 GB", names[k]);
			hd_arena_reset(&arena);
		}
}

/* Each wish meets every third size of memory, each size a third of the wishes. */
static void nothing_that_is_forced_is_faster_than_the_free_choice(void **state)
{
	static const char *const schedules[] = { NULL, "data-parallel", "gpipe", "1f1b", "interleaved",
		"zb-h1", "zb-h2", "zb-v", "v-half", "v-min",
		"dualpipev", "1f1b-rr" };
	static const char *const names[] = { "resnet50", "vgg16" };

	(void)state;
	for (size_t k = 0; k < (SANITIZED ? 1 : 2); k++)
		for (int64_t memory = 8; memory <= 16; memory += SANITIZED ? 8 : 1) {
			struct servers c;
			struct model m;
			if (!read_model(&m, names[k]))
				SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
			make_servers(&c, 4, 1e9, memory * 1000000000);
			int64_t best = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
			for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++)
				for (int r = HD_AUTO_IF_NEEDED; r <= HD_AUTO_ALWAYS; r++) {
					if (!all_plans() && (s + (size_t)r + (size_t)memory) % 3)
						continue;
					int64_t took = step_of(&m, &c,
						(struct hd_auto_ask){ .vns = 16, .schedule = schedules[s],
						.recompute = (enum hd_auto_recompute)r });
					CHECK(best <= took,
						"%s with %lld GB: %lld ps, %s with recompute %d takes %lld",
						names[k], (long long)memory,
						(long long)best, schedules[s] ? schedules[s] : "any schedule",
						r, (long long)took);
				}
			hd_arena_reset(&arena);
		}
}

/* Devices of two kinds, or one; every schedule, depth and number of chunks that may be asked for. */
static void no_single_shape_is_faster_than_the_free_choice(void **state)
{
	static const char *const schedules[] = { "data-parallel", "gpipe", "1f1b", "interleaved", "zb-h1",
		"zb-h2", "zb-v", "v-half", "v-min", "dualpipev" };

	(void)state;
	for (uint32_t seed = 0; seed < (SANITIZED ? 2 : 6); seed++) {
		struct hd_dice d = { seed + 40 };
		struct machines c;
		struct model m;
		struct hd_auto a, one;
		const struct hd_auto_ask ask = { .vns = 4 + seed };
		make_machines(&c, &d, 2, 2, seed % 2, 0, 1);
		make_model(&m, d, 8, 1, false);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		assert_int_equal(a.nleft, 0);
		for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++)
			for (uint32_t p = 1; p <= 4; p++)
				for (uint32_t v = 1; v <= 3; v++) {
					struct hd_auto_ask single = { .vns = ask.vns, .p = p, .v = v,
						.schedule = schedules[k] };
					if (hd_plan_auto(&one, &m.sums, &c.cluster, &single, &arena, NULL))
						continue;
					CHECK(a.plan[0].makespan_ps <= one.plan[0].makespan_ps,
						"%u: %lld ps, %s with p = %u, v = %u %lld", seed,
						(long long)a.plan[0].makespan_ps, schedules[k], p, v,
						(long long)one.plan[0].makespan_ps);
				}
		hd_arena_reset(&arena);
	}
}

/* Every width of copies of the whole model, asked for by itself: the one that is named beside the choice
 * is the best. */
static void the_data_parallel_to_compare_with_is_the_best_of_all_widths(void **state)
{
	uint32_t fewer = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(30); seed++) {
		struct hd_dice d = { seed + 70 };
		struct machines c;
		struct model m;
		struct hd_auto a, one;
		int64_t best = INT64_MAX;
		const struct hd_auto_ask ask = { .vns = 2 + hd_roll(&d, 9), .p = 1 };
		make_machines(&c, &d, 3, 2, seed % 2, 0, 1);
		make_model(&m, d, 6, 1, false);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		for (uint32_t n = 2; n <= 6 && n <= ask.vns; n++) {
			const struct hd_auto_ask single = { .vns = ask.vns, .p = 1, .d = n,
				.schedule = "data-parallel" };
			if (!hd_plan_auto(&one, &m.sums, &c.cluster, &single, &arena, NULL) &&
				one.plan[0].makespan_ps < best)
				best = one.plan[0].makespan_ps;
		}
		CHECK(a.data_ps == best, "%u: %lld ps on %u devices, the best of all widths %lld", seed,
			(long long)a.data_ps, a.data_d, (long long)best);
		fewer += a.data_d < 6 && a.data_d < ask.vns;
		hd_arena_reset(&arena);
	}
	CHECK(fewer > 0, "all devices were always the best");
}

static void more_devices_are_never_slower(void **state)
{
	static const char *const names[] = { "vgg16", "alexnet" };

	(void)state;
	for (size_t k = SANITIZED; k < 2; k++) {
		int64_t before = INT64_MAX;
		struct model m;
		if (!read_model(&m, names[k]))
			SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
		for (uint32_t n = 8; n <= 16; n += SANITIZED ? 8 : 1) {
			struct servers c;
			make_servers(&c, n, 1e9, 0);
			int64_t took = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
			CHECK(took <= before, "%s: %lld ps on %u devices, %lld on one less", names[k],
				(long long)took, n, (long long)before);
			before = took;
		}
		hd_arena_reset(&arena);
	}
}

/* Four times the work on devices four times as fast is the same question. */
static void work_and_speed_four_times_as_large_change_nothing(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(200); seed++) {
		struct hd_dice d = { seed }, same;
		struct machines c;
		struct model one, four;
		uint32_t n = 4 + hd_roll(&d, 9), vns = 1 + hd_roll(&d, 20);
		make_model(&one, d, n, 1, false);
		make_model(&four, d, n, 1, false);
		for (uint32_t v = 0; v < n; v++) {
			four.profile.node[v].f.p50_ns *= 4;
			four.profile.node[v].i.p50_ns *= 4;
			four.profile.node[v].w.p50_ns *= 4;
		}
		settle(&four);
		same = d;
		struct hd_auto_ask ask = { .vns = vns, .schedule = "1f1b-rr" };
		struct hd_auto a, b;
		make_machines(&c, &d, 4, 2, true, 0, 1);
		assert_int_equal(hd_plan_auto(&a, &one.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		make_machines(&c, &same, 4, 2, true, 0, 1);
		c.kind[0].speed = 4;
		assert_int_equal(hd_plan_auto(&b, &four.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		CHECK(a.plan[0].makespan_ps == b.plan[0].makespan_ps && a.nplans == b.nplans,
			"%u: %lld ps of %u plans, and %lld of %u", seed,
			(long long)a.plan[0].makespan_ps, a.nplans, (long long)b.plan[0].makespan_ps,
			b.nplans);
		for (uint32_t i = 0; i < a.nplans; i++)
			CHECK(a.plan[i].makespan_ps == b.plan[i].makespan_ps,
				"%u: plan %u takes %lld ps, and %lld", seed, i,
				(long long)a.plan[i].makespan_ps, (long long)b.plan[i].makespan_ps);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_memory_is_never_slower),
		cmocka_unit_test(nothing_that_is_forced_is_faster_than_the_free_choice),
		cmocka_unit_test(no_single_shape_is_faster_than_the_free_choice),
		cmocka_unit_test(the_data_parallel_to_compare_with_is_the_best_of_all_widths),
		cmocka_unit_test(more_devices_are_never_slower),
		cmocka_unit_test(work_and_speed_four_times_as_large_change_nothing),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
