/* Solvers that give up, at every solve there is; what the whole answer promises: no job can have more for
 * nothing; parts of a large cluster. */
#include "scheduler/policy/testing.h"

#include "scheduler/lp.h"
#include "scheduler/policy/int.h"

static const char *const programs[] = { "las", "las-plain", "las-packed", "ftf", "ftf-packed", "makespan",
	"makespan-packed", "sum", "cost", "cost-packed",
	"hierarchy", "heddle", "heddle-packed", "nash", "pop:2:las" };
enum { NPROGRAMS = sizeof programs / sizeof *programs };

static double total_of(const struct hd_shares *out, const struct hd_sched_state *s, uint64_t id)
{
	double sum = 0;

	for (uint32_t k = 0; k < out->nshapes; k++)
		for (int m = 0; m < out->shape[k].nmembers; m++)
			sum += s->jobs[out->shape[k].member[m]].id == id ? out->x[k] : 0;
	return sum;
}

/* The first 8 jobs in peace, then the 9th comes and the solver gives up: by its number of iterations at one
 * solve or another, or because no certificate is good enough. */
static void a_solver_that_gives_up_empties_no_cluster(void **state)
{
	static const uint32_t iterations[] = { 1, 2, 4, 8, 16, 32 };
	uint32_t kept = 0, tried = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < (SANITIZED ? 4 : 12); seed++)
		for (int p = 0; p < NPROGRAMS; p++)
			for (uint32_t how = 0; how <= sizeof iterations / sizeof *iterations; how++) {
				struct hd_policy_setting set = { 0 };
				struct hd_policy *policy;
				struct hd_sched_state all, first;
				struct hd_shares before, after;
				struct hd_diag diag = { "" };
				random_state(&all, seed, 9, 1 + seed % 4, &arena);
				first = all;
				first.njobs = 8;
				first.npairs = 0;
				all.npairs = 0;
				assert_int_equal(hd_policy_parse(&set, programs[p], NULL), HD_OK);
				assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
				CHECK(hd_policy_allocate(policy, &first, &arena, &before, &diag) == HD_OK,
					"%s", diag.text);
				bool numeric = how == sizeof iterations / sizeof *iterations;
				policy->set.lp_iterations = numeric ? 0 : iterations[how];
				policy->set.lp_gap = numeric ? 1e-300 : 0;
				for (uint32_t part = 0; policy->parts && part < policy->set.npops; part++) {
					policy->parts[part]->set.lp_iterations = policy->set.lp_iterations;
					policy->parts[part]->set.lp_gap = policy->set.lp_gap;
				}
				CHECK(hd_policy_allocate(policy, &all, &arena, &after, &diag) == HD_OK,
					"%s, seed %u, how %u: %s", programs[p], seed, how,
					diag.text);
				tried++;
				kept += after.kept;
				CHECK(!after.kept || (after.kept_why && *after.kept_why &&
						isnan(after.objective)),
					"%s, seed %u, how %u: gave up without a reason, or with an objective",
					programs[p], seed, how);
				/* all is in proportion to what it was, the newcomer has a part as well */
				double scale = 0;
				for (uint32_t i = 0; after.kept && i < 8 && !policy->parts; i++) {
					double was = total_of(&before, &first, all.jobs[i].id),
						is = total_of(&after, &all, all.jobs[i].id);
					if (was > 1e-6 && !(scale > 0))
						scale = is / was;
					bool in_step = !(was > 1e-6) ||
						(is > 0 && fabs(is / was - scale) < 1e-6);
					CHECK(in_step,
						"%s, seed %u, how %u: job %u had %g, has %g; others %g",
						programs[p], seed, how, i, was, is, scale);
				}
				bool has_part = hd_sched_absent(&all, 8) ||
					total_of(&after, &all, all.jobs[8].id) > 0;
				CHECK(!after.kept || has_part, "%s, seed %u: the newcomer has nothing",
					programs[p], seed);
				hd_policy_destroy(policy);
				hd_arena_reset(&arena);
			}
	CHECK(kept * 3 > tried && kept < tried, "%u of %u were given up", kept, tried);
}

/* The most that the sum of z can be if no job has less than now: by a program of its own. */
static double most_together(const struct hd_sched_state *s, const double *z)
{
	uint32_t n = s->njobs, m = s->ntypes, none[200] = { 0 };
	double lo[150], hi[150], zero = 0, inf = INFINITY;
	struct hd_lp *lp = hd_lp_new(true);
	struct hd_lp_result r;

	for (uint32_t i = 0; i < n; i++) {
		lo[i] = -INFINITY;
		hi[i] = 1;
		lo[n + i] = z[i] * (1 - 1e-7) - 1e-9;
		hi[n + i] = INFINITY;
	}
	for (uint32_t j = 0; j < m; j++) {
		lo[2 * n + j] = -INFINITY;
		hi[2 * n + j] = s->types[j].n;
	}
	assert_int_equal(hd_lp_rows(lp, 2 * n + m, lo, hi, none, NULL, NULL), HD_OK);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < m; j++) {
			double gain = hd_sched_absent(s, i) ||
				!is_whole(s, i, j) ? 0 : s->jobs[i].rate[j] / hd_sched_proportional(s,
				s->jobs[i].rate);
			if (gain > 0)
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &gain, (uint32_t[]){ 0, 3 },
					(uint32_t[]){ i, n + i, 2 * n + j },
					(double[]){ 1, gain, s->jobs[i].scale }), HD_OK);
		}
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_OPTIMAL, "%s", hd_lp_status_text(r.status));
	double most = r.objective;
	hd_lp_free(lp);
	return most;
}

static void nobody_can_have_more_without_another_having_less(void **state)
{
	static const char *const exact[] = { "las", "ftf", "makespan", "hierarchy" };
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(60); seed++)
		for (int p = 0; p < 4; p++) {
			struct hd_sched_state s;
			struct hd_shares out;
			double sum = 0;
			random_state(&s, seed, 1 + seed * 7 % 24, 1 + seed % 5, &arena);
			for (uint32_t i = 0; i < s.njobs; i++)
				/* ftf, makespan: sum w z */
				((struct hd_sched_job *)s.jobs)[i].weight = p == 0 ||
					p == 3 ? s.jobs[i].weight : 1;
			ask(exact[p], (struct hd_policy_setting){ .entity_kind = 1 + HD_ENTITY_FAIRNESS }, &s,
				&arena, &out);
			for (uint32_t i = 0; i < s.njobs; i++)
				sum += out.z[i];
			double most = most_together(&s, out.z);
			/* what is held may be 1e-7 less here and in the policy, and a little less of one
			 * can be much more of another */
			CHECK(most <= sum * (1 + 2e-4) + 1e-6,
				"%s, seed %u: %.9g together, %.9g could be had", exact[p], seed, sum, most);
			hd_arena_reset(&arena);
		}
}

/* Rule 1 of the header to its own figure: counted here again. */
static void shares_keep_to_1e_9(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++)
		for (int p = 0; p < NPROGRAMS; p++) {
			struct hd_sched_state s;
			struct hd_shares out;
			double time[32] = { 0 }, used[5] = { 0 };
			random_state(&s, seed, 1 + seed * 7 % 24, 1 + seed % 5, &arena);
			ask(programs[p], (struct hd_policy_setting){ 0 }, &s, &arena, &out);
			for (uint32_t k = 0; k < out.nshapes; k++) {
				for (int m = 0; m < out.shape[k].nmembers; m++)
					CHECK((time[out.shape[k].member[m]] += out.x[k]) <= 1 + 1e-9,
						"%s, seed %u: time", programs[p], seed);
				for (int d = 0; d < out.shape[k].nneeds; d++)
					used[out.shape[k].need[d].type] += out.x[k] * out.shape[k].need[d].n;
			}
			for (uint32_t j = 0; j < s.ntypes; j++)
				CHECK(used[j] <= s.types[j].n * (1 + 1e-9),
					"%s, seed %u: %.12g of %u devices", programs[p], seed, used[j],
					s.types[j].n);
			hd_arena_reset(&arena);
		}
}

static void four_parts_of_1024_jobs_are_as_good_as_the_whole(void **state)
{
	struct hd_sched_state s;
	struct hd_shares whole, parts;
	(void)state;
	need_lp();
	random_state(&s, 7, 1024, 3, &arena);
	/* 26 kinds, as the published generator draws: one of eight devices' worth is a gang */
	for (uint32_t i = 0; i < s.njobs; i++) {
		struct hd_sched_job *j = &((struct hd_sched_job *)s.jobs)[i];
		uint32_t kind = (uint32_t)(26 * draw(7, 40, i, 0));
		for (uint32_t t = 0; t < 3; t++)
			((double *)j->rate)[t] = (1 + t * draw(9, 41, kind, 0) * 4) * exp(5 * draw(9, 42,
				kind, 0));
		j->weight = 1;
		j->scale = 1;
	}
	for (uint32_t t = 0; t < 3; t++)
		((struct hd_sched_type *)s.types)[t].n = 256;
	ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &whole);
	ask("pop:4:las", (struct hd_policy_setting){ 0 }, &s, &arena, &parts);
	print_message("least z of four parts: %.5f of the whole\n", parts.objective / whole.objective);
	CHECK(parts.objective >= 0.99 * whole.objective, "%.6g of %.6g", parts.objective, whole.objective);
	hd_arena_reset(&arena);
}

/* Types that are thousands of times faster for one job and slower for the next make prices of thousands:
 * levels that hold to the tolerance of a solver alone, and certificates that fail by what the tolerances
 * leave. */
static void no_level_is_given_up_where_speeds_are_far_apart(void **state)
{
	static const char *const filled[] = { "hierarchy-packed", "hierarchy", "las-packed", "las" };
	uint32_t kept[4] = { 0 };
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_sched_state s;
		random_state(&s, seed, 12 + seed * 7 % 29, 2 + seed % 3, &arena);
		for (uint32_t k = 0; k < s.njobs * s.ntypes; k++) {
			double far = pow(10, 4 * draw(seed, 80, k / s.ntypes, k % s.ntypes) - 2);
			((double *)s.jobs[k / s.ntypes].rate)[k % s.ntypes] *= far;
			for (uint32_t p = 0; p < s.npairs; p++)
				for (int m = 0; m < 2; m++)
					if ((m ? s.pairs[p].b : s.pairs[p].a) == k / s.ntypes)
						((double *)s.pairs[p].rate[m])[k % s.ntypes] *= far;
		}
		for (int p = 0; p < 4; p++) {
			struct hd_shares out;
			ask(filled[p], (struct hd_policy_setting){ 0 }, &s, &arena, &out);
			kept[p] += out.kept;
			CHECK(!out.kept || *out.kept_why, "no reason");
		}
		hd_arena_reset(&arena);
	}
	CHECK(kept[0] + kept[1] + kept[2] + kept[3] == 0,
		"given up: hierarchy-packed %u, hierarchy %u, las-packed %u, las %u", kept[0], kept[1],
		kept[2],
		kept[3]);
}

/* A program of its own or several: the first look at the flag comes before the first of them. */
static void who_is_told_to_stop_gives_up(void **state)
{
	const atomic_bool stop = true;
	(void)state;
	need_lp();
	for (int p = 0; p < NPROGRAMS; p++) {
		struct hd_sched_state s;
		struct hd_shares out;
		random_state(&s, 3, 12, 3, &arena);
		ask(programs[p], (struct hd_policy_setting){ .stop = &stop }, &s, &arena, &out);
		CHECK(out.kept && out.nlps == 0, "%s solved %u programs", programs[p], out.nlps);
		hd_arena_reset(&arena);
	}
	for (int p = 0; p < 2; p++) {                     /* no programs, and as long an answer */
		struct hd_sched_state s;
		struct hd_shares out;
		random_state(&s, 3, 12, 3, &arena);
		for (uint32_t i = 0; i < s.njobs; i++)
			((struct hd_sched_job *)s.jobs)[i].scale = 1;
		ask(p ? "allox" : "goodput", (struct hd_policy_setting){ .stop = &stop }, &s, &arena, &out);
		CHECK(out.kept, "%s", p ? "allox" : "goodput");
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_solver_that_gives_up_empties_no_cluster),
		cmocka_unit_test(nobody_can_have_more_without_another_having_less),
		cmocka_unit_test(shares_keep_to_1e_9),
		cmocka_unit_test(no_level_is_given_up_where_speeds_are_far_apart),
		cmocka_unit_test(who_is_told_to_stop_gives_up),
		cmocka_unit_test(four_parts_of_1024_jobs_are_as_good_as_the_whole),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
