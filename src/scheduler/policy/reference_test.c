/* Objectives and vectors against the stored answers of the published code and of exact solvers. */
#include "scheduler/policy/testing.h"

static bool same(double got, double want, double tolerance) { return fabs(got - want) <= tolerance *
	fmax(1e-9, fabs(want)); }

static const struct { const char *policy, *key; } exact[] = {
	{ "max_min_fairness_perf", "max_min_fairness_perf" }, { "max_min_fairness_packed", "max_min_fairness_packed" },
	{ "max_min_fairness", "max_min_fairness (on T=1)" }, { "las", "max_min_fairness_perf" },
	{ "max_min_fairness_water_filling_perf", "max_min_fairness_perf" },
	{ "min_total_duration_perf", "min_total_duration_perf" }, { "min_total_duration_packed", "min_total_duration_packed" },
	{ "min_total_duration", "min_total_duration (on T_v100)" }, { "makespan", "min_total_duration_perf" },
	{ "finish_time_fairness_perf", "finish_time_fairness_perf" }, { "finish_time_fairness", "finish_time_fairness (on T_v100)" },
	{ "finish_time_fairness_packed_unweighted", "finish_time_fairness_packed_unweighted" },
	{ "max_sum_throughput_perf", "max_sum_throughput_perf" },
	{ "max_sum_throughput_normalized_by_cost_perf", "max_sum_throughput_normalized_by_cost_perf" },
	{ "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=3x_v100_time", "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=3x_v100_time" },
	{ "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=20x_v100_time", "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=20x_v100_time" },
};

static const struct hd_json *need(const struct hd_json *file)
{
	if (!file)
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	need_lp();
	return file;
}

static const struct hd_json *answer_of(const struct hd_json *answers, uint32_t set, const char *group)
{
	return hd_json_find(hd_json_item(answers, set), group);
}

static void objectives_are_the_exact_optimum(void **state)
{
	(void)state;
	const struct hd_json *sets = need(shared_json("data/gavel/job_sets.json", &arena));
	const struct hd_json *answers = shared_json("data/gavel/answers/allocations.json", &arena);
	for (uint32_t s = 0; s < hd_json_count(answers); s++)
		for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
			for (int fidelity = 0; fidelity < 2; fidelity++) {
				struct hd_sched_state st;
				struct hd_shares out;
				struct hd_diag diag = { "" };
				double want = 0;
				const char *set = hd_json_key(answers, s);
				CHECK(hd_sched_read(&st, sets, set, &arena, &diag) == HD_OK, "%s", diag.text);
				CHECK(hd_json_get_f64(answer_of(answers, s, "exact_optimum"), exact[i].key,
					&want, &diag) == HD_OK, "%s", diag.text);
				ask(exact[i].policy, (struct hd_policy_setting){ .fidelity =
					(enum hd_fidelity)fidelity }, &st, &arena, &out);
				bool less = strstr(exact[i].key, "min_total") ||
					strstr(exact[i].key, "finish_time");
				bool bisected = fidelity && strstr(exact[i].key, "min_total"),
					parts = !fidelity && has_parts(&st);
				double worse = (less ? 1 : -1) * (out.objective / want - 1);
				/* C is stored with parts of a gang of eight on types of four, which ours
				 * never count: covered_test.c has what it comes to */
				CHECK(bisected ? worse >= -1e-6 &&
					worse <= 0.05 : parts ? worse >= -1e-6 : same(out.objective, want,
					1e-6),
					"%s, %s, fidelity %d: %.9g, not %.9g", set, exact[i].policy, fidelity,
					out.objective, want);
				CHECK(out.gap <= 1e-7 && !out.kept, "%s, %s: gap %g", set, exact[i].policy,
					out.gap);
			}
	hd_arena_reset(&arena);
}

/* Names of vectors in exact_optimum; plain ones are shares of time. */
static const struct { const char *policy, *key; bool time; } vectors[] = {
	{ "max_min_fairness_water_filling_perf", "water_filling_perf_exact_normalized", false },
	{ "max_min_fairness_water_filling_packed", "water_filling_packed_exact_normalized", false },
	{ "max_min_fairness_water_filling", "water_filling_agnostic_exact_time_share", true },
	{ "hierarchical_fairness", "hierarchical_entities_mod3_weights123_fairness_exact_normalized", false },
	{ "hierarchical_fifo", "hierarchical_entities_mod3_weights123_fifo_exact_normalized", false },
};

static double time_of(const struct hd_shares *out, uint32_t job)
{
	double sum = 0;

	for (uint32_t k = 0; k < out->nshapes; k++)
		sum += out->shape[k].member[0] == job ? out->x[k] : 0;
	return sum;
}

static void check_vector(const char *what, const struct hd_sched_state *st, const struct hd_shares *out,
	const struct hd_json *want, bool time)
{
	for (uint32_t i = 0; i < st->njobs; i++) {
		double v = 0;
		assert_int_equal(hd_json_as_f64(hd_json_item(want, i), &v, NULL), HD_OK);
		double got = time ? time_of(out, i) : out->z[i];
		CHECK(fabs(got - v) <= 1e-5, "%s: job %u: %.9g, not %.9g", what, i, got, v);
	}
}

static void filled_vectors_are_the_exact_ones(void **state)
{
	(void)state;
	const struct hd_json *sets = need(shared_json("data/gavel/job_sets.json", &arena));
	const struct hd_json *answers = shared_json("data/gavel/answers/allocations.json", &arena);
	for (uint32_t s = 0; s < hd_json_count(answers); s++)
		for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
			struct hd_sched_state st;
			struct hd_shares out;
			assert_int_equal(hd_sched_read(&st, sets, hd_json_key(answers, s), &arena, NULL),
				HD_OK);
			ask(vectors[i].policy, (struct hd_policy_setting){ 0 }, &st, &arena, &out);
			const struct hd_json *want = hd_json_find(answer_of(answers, s, "exact_optimum"),
				vectors[i].key);
			if (!has_parts(&st))                      /* of C: covered_test.c */
				check_vector(vectors[i].policy, &st, &out, want, vectors[i].time);
			CHECK(out.nlps <= st.njobs + 1, "%s: %u programs of %u jobs", vectors[i].policy,
				out.nlps, st.njobs);
		}
	hd_arena_reset(&arena);
}

/* 72 states, answers of 36; the published vectors are of a method that stops early, so the sum is never below
 * theirs (fairness). In 3 of the 18 the stored exact vector itself gives somebody less than the published
 * run does. */
static void hierarchies_are_the_exact_ones(void **state)
{
	uint32_t states = 0, nobody_less = 0, compared = 0;
	(void)state;
	const struct hd_json *sets = need(shared_json("data/gavel/hierarchical_states.json", &arena));
	const struct hd_json *answers = shared_json("data/gavel/answers/hierarchical.json", &arena);
	for (uint32_t s = 0; s < hd_json_count(sets); s++) {
		const char *name = hd_json_key(sets, s);
		const struct hd_json *answer = hd_json_find(answers, name);
		struct hd_sched_state st;
		struct hd_shares hetero, plain;
		struct hd_diag diag = { "" };
		CHECK(hd_sched_read(&st, sets, name, &arena, &diag) == HD_OK, "%s", diag.text);
		ask("hierarchy", (struct hd_policy_setting){ 0 }, &st, &arena, &hetero);
		ask("hierarchy-plain", (struct hd_policy_setting){ 0 }, &st, &arena, &plain);
		CHECK(hetero.nlps <= st.njobs + 1, "%s: %u programs of %u jobs", name, hetero.nlps, st.njobs);
		if (!answer)
			continue;
		states++;
		check_vector(name, &st, &hetero, hd_json_find(answer, "exact_normalized"), false);
		check_vector(name, &st, &plain, hd_json_find(answer, "exact_time_share_agnostic"), true);
		const struct hd_json *theirs = hd_json_find(answer, "rerun_perf");
		double sum = 0, theirs_sum = 0, v = 0;
		bool less = false;
		for (uint32_t i = 0; theirs && i < st.njobs; i++) {
			if (hd_json_as_f64(hd_json_item(theirs, i), &v, NULL))
				v = NAN;
			sum += hetero.z[i];
			theirs_sum += v;
			less |= hetero.z[i] < v - 1e-6;
		}
		if (theirs && !strncmp(name, "fairness", 8)) {
			compared++;
			nobody_less += !less;
			CHECK(sum >= theirs_sum - 1e-6 * theirs_sum, "%s: sum of z %.9g, theirs %.9g", name,
				sum, theirs_sum);
		}
	}
	CHECK(states >= 36 && 6 * nobody_less >= 5 * compared,
		"%u states, %u of %u in which no job gets less", states, nobody_less, compared);
	hd_arena_reset(&arena);
}

static const char *const unique[] = { "isolated", "fifo_perf", "fifo_packed", "allox" };

/* "3" or "(1, 2)": jobs by id. */
static void members_of(const char *key, const struct hd_sched_state *st, uint32_t out[2])
{
	unsigned long long a = 0, b = 0;
	int n = sscanf(key, key[0] == '(' ? "(%llu, %llu)" : "%llu", &a, &b);

	out[0] = hd_sched_find(st, a);
	out[1] = n == 2 ? hd_sched_find(st, b) : HD_SCHED_NONE;
}

static void shares_that_are_unique_are_the_published_ones(void **state)
{
	(void)state;
	const struct hd_json *sets = need(shared_json("data/gavel/job_sets.json", &arena));
	const struct hd_json *answers = shared_json("data/gavel/answers/allocations.json", &arena);
	for (uint32_t s = 0; s < hd_json_count(answers); s++)
		for (size_t p = 0; p < sizeof unique / sizeof *unique; p++) {
			const struct hd_json *answer = hd_json_find(answer_of(answers, s, "policies"),
				unique[p]);
			const struct hd_json *rows = answer ? hd_json_find(answer, "allocation") : NULL;
			struct hd_sched_state st;
			struct hd_shares out;
			uint32_t listed = 0;
			if (!rows)
				continue;
			assert_int_equal(hd_sched_read(&st, sets, hd_json_key(answers, s), &arena, NULL),
				HD_OK);
			ask(unique[p], (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &st,
				&arena, &out);
			for (uint32_t i = 0; i < hd_json_count(rows); i++)
				for (uint32_t k = 0; k < hd_json_count(hd_json_item(rows, i)); k++) {
					const struct hd_json *row = hd_json_item(rows, i);
					uint32_t pair[2], type = 0;
					double want = 0;
					members_of(hd_json_key(rows, i), &st, pair);
					while (strcmp(st.types[type].name, hd_json_key(row, k)) != 0)
						type++;
					assert_int_equal(hd_json_as_f64(hd_json_item(row, k), &want, NULL),
						HD_OK);
					double got = share_of(&out, pair[0], pair[1], type);
					CHECK(fabs(got - want) <= 1e-9, "%s, %s: %s on %s: %.12g, not %.12g",
						hd_json_key(answers, s), unique[p],
						hd_json_key(rows, i), hd_json_key(row, k), got, want);
					listed++;
				}
			CHECK(out.nshapes == listed, "%s, %s: %u shares, not %u", hd_json_key(answers, s),
				unique[p], out.nshapes, listed);
		}
	hd_arena_reset(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(objectives_are_the_exact_optimum),
		cmocka_unit_test(filled_vectors_are_the_exact_ones),
		cmocka_unit_test(shares_that_are_unique_are_the_published_ones),
		cmocka_unit_test(hierarchies_are_the_exact_ones),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
