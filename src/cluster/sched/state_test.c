/* Files that are read, files that are refused with a reason, and what a state says of itself. */
#include "cluster/sched_state.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

static enum hd_err read_text(struct hd_sched_state *s, const char *text, const char *set, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *json;
	enum hd_err err = hd_json_parse(arena, "s.json", text, strlen(text), &json, diag);

	return err ? err : hd_sched_read(s, json, set, arena, diag);
}

#define JOB(id, more) "{\"id\":" id ",\"steps_remaining\":10,\"throughput\":{\"v\":2,\"k\":1}" more "}"
#define CLUSTER ",\"cluster\":{\"v\":1,\"k\":4}"

static void types_jobs_and_pairs_come_in_order(void **state)
{
	static const char text[] = "{\"jobs\":[" JOB("7", ",\"scale_factor\":2,\"priority\":3") ","
		JOB("2", ",\"scale_factor\":2,\"deadline_s\":60") "]" CLUSTER
		",\"pairs\":[{\"a\":7,\"b\":2,\"throughput\":{\"v\":[0.5,0.6],\"k\":[0.7,0.8]}}],\"prices_per_hour\":{\"v\":2.5},"
		"\"entities\":{\"x\":[7]},\"entity_weights\":{\"x\":4}}";
	struct hd_arena arena;
	struct hd_sched_state s;
	struct hd_diag diag = { "" };
	double rate[2];
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(read_text(&s, text, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_string_equal(s.types[0].name, "k");
	CHECK(s.types[0].n == 4 && s.types[1].n == 1 && s.types[1].price_usd_h == 2.5, "types");
	CHECK(s.jobs[0].id == 2 && s.jobs[1].id == 7 && s.jobs[1].weight == 3 && s.jobs[0].deadline_s == 60 && isinf(s.jobs[1].deadline_s), "jobs");
	CHECK(s.jobs[0].rate[0] == 1 && s.jobs[0].rate[1] == 2 && s.jobs[1].entity == 0 && s.jobs[0].entity == HD_SCHED_NONE, "jobs");
	CHECK(hd_sched_find(&s, 7) == 1 && hd_sched_find(&s, 3) == HD_SCHED_NONE, "find");
	CHECK(hd_sched_pair_rate(&s, 1, 0, 0, rate) && rate[0] == 0.7 && rate[1] == 0.8, "pair %g %g", rate[0], rate[1]);
	CHECK(hd_sched_pair_rate(&s, 0, 1, 1, rate) && rate[0] == 0.6 && rate[1] == 0.5, "pair %g %g", rate[0], rate[1]);
	CHECK(fabs(hd_sched_proportional(&s, s.jobs[0].rate) - 6.0 / 5) < 1e-15, "P");
	CHECK(!hd_sched_blocked(&s, 0) && hd_sched_fits(&s, 0, 0) && !hd_sched_fits(&s, 0, 1), "scale 2 fits k alone");
	hd_arena_finish(&arena);
}

static void bad_files_are_refused_with_a_reason(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{\"jobs\":[" JOB("1", "") "," JOB("1", "") "]" CLUSTER "}", "job 1 is there twice" },
		{ "{\"jobs\":[" JOB("1", ",\"priority\":0") "]" CLUSTER "}", "job 1: a weight of 0; it is above 0" },
		{ "{\"jobs\":[" JOB("1", ",\"priority\":\"nan\"") "]" CLUSTER "}", "job 1: a weight of nan; it is above 0" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":-1,\"throughput\":{}}]" CLUSTER "}", "job 1: -1 steps left" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"v\":-2}}]" CLUSTER "}", "job 1: -2 steps/s on type v; 0 stands for cannot run there" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"v\":\"inf\"}}]" CLUSTER "}",
		  "job 1: inf steps/s on type v; 0 stands for cannot run there" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"entities\":{\"x\":[2]}}", "s.json: .entities.x[0] is no job" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"pairs\":[{\"a\":1,\"b\":1,\"throughput\":{}}]}",
		  "s.json: .pairs[0] pairs a job that is not there, or with itself" },
		{ "{\"jobs\":[],\"cluster\":{}}", "0 types of devices: there are 1 to 64" },
		{ "{\"a\":{},\"b\":{}}", "s.json: the whole holds 2 states: choose one by its name (the first is a)" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_arena arena;
		struct hd_sched_state s;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		CHECK(read_text(&s, cases[i].text, NULL, &arena, &diag) == HD_E_INPUT, "case %zu: %s", i, cases[i].text);
		assert_string_equal(diag.text, cases[i].says);
		hd_arena_finish(&arena);
	}
}

static void jobs_that_nothing_can_run_are_blocked(void **state)
{
	static const char text[] = "{\"jobs\":[" JOB("1", ",\"scale_factor\":8") ",{\"id\":2,\"steps_remaining\":5,\"throughput\":{\"z\":3}}," JOB("3", "")
		",{\"id\":4,\"steps_remaining\":0,\"throughput\":{\"v\":1}}]" CLUSTER "}";
	struct hd_arena arena;
	struct hd_sched_state s;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(read_text(&s, text, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_sched_blocked(&s, 0) && hd_sched_blocked(&s, 1) && !hd_sched_blocked(&s, 2) && !hd_sched_blocked(&s, 3), "blocked");
	CHECK(hd_sched_absent(&s, 3) && !hd_sched_absent(&s, 2), "absent");
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_jobs_and_pairs_come_in_order),
		cmocka_unit_test(bad_files_are_refused_with_a_reason),
		cmocka_unit_test(jobs_that_nothing_can_run_are_blocked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
