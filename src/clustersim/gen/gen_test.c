#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "clustersim/job_generate.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static double number(const struct hd_json *object, const char *key)
{
	double value = 0;

	assert_int_equal(hd_json_get_f64(object, key, &value, NULL), HD_OK);
	return value;
}

static void the_published_generator_draws_the_published_jobs(void **state)
{
	static const struct { const char *key; struct hd_job_generator_setting how; } lists[] = {
		{ "jobs_seed0_single_rate2", { .per_hour = 2 } },
		{ "jobs_seed0_multi_static", { .multi = true } },
		{ "jobs_seed42_single_rate0.8", { .per_hour = 0.8, .seed = 42 } },
		{ "jobs_seed0_multi_priority_slo_rate1", { .per_hour = 1, .multi = true, .priorities = true, .slos = true } },
	};
	const struct hd_json *vectors = shared_json("data/gavel/generator_vectors.json", &arena),
		*table = shared_json("data/gavel/job_table.json", &arena);
	struct hd_rates rates;
	(void)state;

	if (!vectors || !table)
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	assert_int_equal(hd_rates_read(&rates, table, &arena, NULL), HD_OK);
	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
		const struct hd_json *jobs = hd_json_find(vectors, lists[l].key);
		struct hd_job_generator generator;
		assert_non_null(jobs);
		assert_int_equal(hd_job_generator_init(&generator, &lists[l].how, &rates, NULL), HD_OK);
		for (size_t i = 0; i < hd_json_count(jobs); i++) {
			const struct hd_json *want = hd_json_item(jobs, i), *slo = hd_json_find(want, "slo");
			struct hd_listed_job job;
			const char *kind;
			double factor = 0;
			hd_job_generator_next(&generator, &job);
			assert_int_equal(hd_json_get_text(want, "job_type", &kind, NULL), HD_OK);
			if (hd_json_kind(slo) != HD_JSON_NULL)
				assert_int_equal(hd_json_as_f64(slo, &factor, NULL), HD_OK);
			CHECK(!strcmp(job.kind, kind) && job.scale == number(want, "scale_factor") &&
				job.weight == number(want, "priority")
				&& job.slo == factor, "%s, job %zu: %s", lists[l].key, i, job.kind);
			CHECK(fabs(job.steps / number(want, "total_steps") - 1) < 1e-14 &&
				fabs(job.duration_s / number(want, "duration") - 1) < 1e-14
				&& fabs(job.arrival_s - number(want, "arrival")) <= 1e-14 * job.arrival_s,
					"%s, job %zu", lists[l].key, i);
		}
	}
	hd_arena_reset(&arena);
}

static void a_synthetic_year_has_the_marginals_it_promises(void **state)
{
	const struct hd_job_synthesis how = { .seed = 5, .n = 100000, .per_hour = 100000 / 8760.0 };
	struct hd_job_list list;
	struct hd_diag diag = { "" };
	size_t single = 0, below = 0, night = 0, noon = 0, weekend = 0;
	double sum = 0;
	(void)state;

	CHECK(hd_job_synthesize(&list, &how, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(list.n, 100000);
	for (size_t i = 0; i < list.n; i++) {
		const struct hd_listed_job *job = &list.at[i];
		double hour = fmod(job->arrival_s / 3600, 24);
		assert_true(!i || job->arrival_s >= list.at[i - 1].arrival_s);
		single += job->scale == 1;
		below += job->duration_s <= 780;
		sum += job->duration_s;
		night += hour >= 2 && hour < 6;
		noon += hour >= 14 && hour < 18;
		weekend += fmod(job->arrival_s / 86400, 7) >= 5;
	}
	/* ten standard deviations of a count of this size are below a hundredth */
	CHECK(fabs((double)single / 1e5 - 0.93) < 0.01, "%zu of one device", single);
	CHECK(fabs((double)below / 1e5 - 0.5) < 0.02, "%zu below the median", below);
	CHECK(sum / 1e5 > 5 * 780, "mean %g s: no heavy tail", sum / 1e5);
	CHECK(fabs(list.at[list.n - 1].arrival_s / (8760.0 * 3600) - 1) < 0.02, "ends at %g s",
		list.at[list.n - 1].arrival_s);
	/* 1 - 0.6 (1 + cos) / 2 averaged over four hours about 4 h, and about 16 h */
	CHECK(fabs((double)night / (double)noon - 0.427) < 0.03, "%zu at night, %zu by day", night, noon);
	CHECK(fabs((double)weekend / 1e5 - 2 * 0.55 / (5 + 2 * 0.55)) < 0.01, "%zu at weekends", weekend);
	hd_arena_reset(&arena);
}

static void one_job_more_changes_none_before_it(void **state)
{
	struct hd_job_synthesis how = { .seed = 9, .n = 500, .per_hour = 20 };
	struct hd_job_list few, many, other;
	(void)state;

	assert_int_equal(hd_job_synthesize(&few, &how, &arena, NULL), HD_OK);
	how.n = 501;
	assert_int_equal(hd_job_synthesize(&many, &how, &arena, NULL), HD_OK);
	assert_memory_equal(few.at, many.at, 500 * sizeof *few.at);
	how.seed = 10;
	assert_int_equal(hd_job_synthesize(&other, &how, &arena, NULL), HD_OK);
	assert_memory_not_equal(other.at, many.at, 500 * sizeof *few.at);
	hd_arena_reset(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_generator_draws_the_published_jobs),
		cmocka_unit_test(a_synthetic_year_has_the_marginals_it_promises),
		cmocka_unit_test(one_job_more_changes_none_before_it),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
