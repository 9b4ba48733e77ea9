/* Files that are read, files that are refused with a reason, and what a state says of itself. */
#include "scheduler/sched_state.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

static enum hd_err read_text(struct hd_sched_state *s, const char *text, const char *set,
	struct hd_arena *arena, struct hd_diag *diag)
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
		",\"pairs\":[{\"a\":7,\"b\":2,\"throughput\":{\"v\":[0.5,0.6],\"k\":[0.7,0.8]}}],"
		"\"prices_per_hour\":{\"v\":2.5,\"k\":0},"
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
	CHECK(s.jobs[0].id == 2 && s.jobs[1].id == 7 && s.jobs[1].weight == 3 && s.jobs[0].deadline_s == 60 &&
		isinf(s.jobs[1].deadline_s), "jobs");
	CHECK(s.jobs[0].rate[0] == 1 && s.jobs[0].rate[1] == 2 && s.jobs[1].entity == 0 &&
		s.jobs[0].entity == HD_SCHED_NONE, "jobs");
	CHECK(hd_sched_find(&s, 7) == 1 && hd_sched_find(&s, 3) == HD_SCHED_NONE, "find");
	CHECK(hd_sched_pair_rate(&s, 1, 0, 0, rate) && rate[0] == 0.7 && rate[1] == 0.8, "pair %g %g",
		rate[0], rate[1]);
	CHECK(hd_sched_pair_rate(&s, 0, 1, 1, rate) && rate[0] == 0.6 && rate[1] == 0.5, "pair %g %g",
		rate[0], rate[1]);
	CHECK(fabs(hd_sched_proportional(&s, s.jobs[0].rate) - 6.0 / 5) < 1e-15, "P");
	CHECK(!hd_sched_blocked(&s, 0) && hd_sched_fits(&s, 0, 0) && !hd_sched_fits(&s, 0, 1),
		"scale 2 fits k alone");
	hd_arena_finish(&arena);
}

static void bad_files_are_refused_with_a_reason(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{\"jobs\":[" JOB("1", "") "," JOB("1", "") "]" CLUSTER "}", "s.json: the whole: job 1 is there twice" },
		{ "{\"jobs\":[" JOB("1", ",\"priority\":0") "]" CLUSTER "}", "s.json: .jobs[0].priority is 0; it is a weight from 1e-9 to 1e9" },
		{ "{\"jobs\":[" JOB("1", ",\"priority\":\"nan\"") "]" CLUSTER "}", "s.json: .jobs[0].priority is nan; it is a weight from 1e-9 to 1e9" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":-1,\"throughput\":{}}]" CLUSTER "}",
		  "s.json: .jobs[0].steps_remaining is -1; it is steps from 0 to 1e18" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"v\":-2}}]" CLUSTER "}",
		  "s.json: .jobs[0].throughput.v is -2; it is steps/s from 1e-12 to 1e12, or 0 where the "
		  "job cannot run" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"v\":\"inf\"}}]" CLUSTER "}",
		  "s.json: .jobs[0].throughput.v is inf; it is steps/s from 1e-12 to 1e12, or 0 where the "
		  "job cannot run" },
		/* what is written wrongly: names, types, what is missing, numbers beyond all sense */
		{ "{\"jobs\":[" JOB("1", ",\"prority\":2") "]" CLUSTER "}", "s.json: .jobs[0].prority is no member that is known here; did you mean priority?" },
		{ "{\"jobs\":[{\"id\":1,\"throughput\":{}}]" CLUSTER "}", "s.json: .jobs[0] lacks the member \"steps_remaining\"" },
		{ "{\"jobs\":[]" CLUSTER ",\"pair\":[]}", "s.json: .pair is no member that is known here; did you mean pairs?" },
		{ "{\"jobs\":[],\"clustr\":{\"v\":1}}", "s.json: .clustr is no member that is known here; did you mean cluster?" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"V\":2}}]" CLUSTER "}",
		  "s.json: .jobs[0].throughput.V is of a type that \"cluster\" does not list: add it there, "
		  "with 0 if there are none" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"V100\":2}}],\"cluster\":{\"v100\":1}}",
		  "s.json: .jobs[0].throughput.V100 is of a type that \"cluster\" does not list; did you "
		  "mean v100?" },
		{ "{\"jobs\":[" JOB("1", "") "," JOB("2", "") "]" CLUSTER ",\"pairs\":[{\"a\":1,\"b\":2,\"throughput\":{\"v100\":[1,1]}}]}",
		  "s.json: .pairs[0].throughput.v100 is of a type that \"cluster\" does not list: add it "
		  "there, with 0 if there are none" },
		{ "{\"jobs\":[" JOB("1", "") "," JOB("2", "") "]" CLUSTER ",\"pairs\":[{\"a\":1,\"b\":2,\"throughputs\":{}}]}",
		  "s.json: .pairs[0].throughputs is no member that is known here; did you mean throughput?" },
		{ "{\"jobs\":[]" CLUSTER ",\"prices_per_hour\":{\"v\":1}}", "s.json: .prices_per_hour lacks the price of k: give every one, or leave the table out" },
		{ "{\"jobs\":[]" CLUSTER ",\"prices_per_hour\":{\"v\":1,\"k\":1,\"kk80\":1}}", "s.json: .prices_per_hour.kk80 is of nothing that the state has" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"entities\":{\"ann\":[1],\"bob\":[]},\"entity_weights\":{\"ann\":2}}",
		  "s.json: .entity_weights lacks the weight of bob: give every one, or leave the table out" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"entities\":{\"ann\":[1]},\"entity_weights\":{\"ann\":2,\"anne\":1}}",
		  "s.json: .entity_weights.anne is of nothing that the state has; did you mean ann?" },
		{ "{\"jobs\":[]" CLUSTER ",\"entities\":{\"a\":[]},\"entity_parents\":{\"a\":\"b\"}}", "s.json: .entity_parents.a is no entity" },
		{ "{\"jobs\":[]" CLUSTER ",\"entities\":{\"a\":[]},\"entity_parents\":{\"b\":\"a\"}}", "s.json: .entity_parents.b is of nothing that the state has" },
		{ "{\"jobs\":[]" CLUSTER ",\"entities\":{\"a\":[]},\"entity_parents\":{\"a\":\"a\"}}", "s.json: the whole: entity a: it lies within itself, or more than 8 deep" },
		{ "{\"jobs\":[]" CLUSTER ",\"entities\":{\"a\":[],\"b\":[]},\"entity_parents\":{\"a\":\"b\",\"b\":\"a\"}}", "s.json: the whole: entity a: it lies within itself, or more than 8 deep" },
		{ "{\"jobs\":[]" CLUSTER ",\"entity_weights\":{\"ann\":2}}", "s.json: the whole lacks the member \"entities\"" },
		{ "{\"throughputs\":{\"1\":{\"v\":1},\"2\":{\"v\":1}},\"priority\":{\"1\":1}" CLUSTER "}",
		  "s.json: .priority lacks the priority of job 2: give every one, or leave the table out" },
		{ "{\"throughputs\":{\"1\":{\"v\":1}},\"priority\":{\"1\":1,\"3\":1}" CLUSTER "}",
		  "s.json: .priority.3 is of nothing that the state has" },
		{ "{\"throughputs\":{\"1\":{\"v\":1}},\"num_jobs\":2" CLUSTER "}", "s.json: .num_jobs is 2, not between 1 and 1" },
		{ "{\"jobs\":[" JOB("1", ",\"elastic\":{\"speedup\":[1,2],\"mim\":1}") "]" CLUSTER "}",
		  "s.json: .jobs[0].elastic.mim is no member that is known here; did you mean min?" },
		{ "{\"jobs\":[" JOB("1", ",\"elastic\":{\"speedup\":[1,1e300]}") "]" CLUSTER "}",
		  "s.json: .jobs[0].elastic.speedup[1] is 1e+300; it is a speed-up from 1e-6 to 1e6 of what "
		  "one device does" },
		{ "{\"jobs\":[" JOB("1", ",\"goodput\":{\"ac\":1,\"acc\":1}") "]" CLUSTER "}",
		  "s.json: .jobs[0].goodput.acc is no member that is known here; did you mean ac?" },
		{ "{\"jobs\":[{\"id\":1,\"steps_remaining\":1,\"throughput\":{\"v\":1e308}}]" CLUSTER "}",
		  "s.json: .jobs[0].throughput.v is 1e+308; it is steps/s from 1e-12 to 1e12, or 0 where "
		  "the job cannot run" },
		{ "{\"jobs\":[" JOB("1", ",\"deadline_s\":\"-inf\"") "]" CLUSTER "}",
		  "s.json: .jobs[0].deadline_s is -inf; it is seconds from now, -1e15 (passed) to 1e15, or "
		  "inf for none" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"entities\":{\"x\":[2]}}", "s.json: .entities.x[0] is no job" },
		{ "{\"jobs\":[" JOB("1", "") "]" CLUSTER ",\"pairs\":[{\"a\":1,\"b\":1,\"throughput\":{}}]}",
		  "s.json: .pairs[0] pairs a job that is not there, or with itself" },
		{ "{\"jobs\":[],\"cluster\":{}}", "s.json: .cluster has none or more than 64 types of devices" },
		{ "{\"a\":{},\"b\":{}}", "s.json: the whole holds 2 states: choose one by its name (the first is a)" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_arena arena;
		struct hd_sched_state s;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		CHECK(read_text(&s, cases[i].text, NULL, &arena, &diag) == HD_E_INPUT, "case %zu: %s", i,
			cases[i].text);
		assert_string_equal(diag.text, cases[i].says);
		hd_arena_finish(&arena);
	}
}

static void jobs_that_nothing_can_run_are_blocked(void **state)
{
	static const char text[] = "{\"jobs\":[" JOB("1",
		",\"scale_factor\":8") ",{\"id\":2,\"steps_remaining\":5,\"throughput\":{}}," JOB("3", "")
		",{\"id\":4,\"steps_remaining\":0,\"throughput\":{\"v\":1}}]" CLUSTER "}";
	struct hd_arena arena;
	struct hd_sched_state s;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(read_text(&s, text, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_sched_blocked(&s, 0) && hd_sched_blocked(&s, 1) && !hd_sched_blocked(&s, 2) &&
		!hd_sched_blocked(&s, 3), "blocked");
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
