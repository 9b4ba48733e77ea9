/* The strategy-proof policy: cases worked out by hand, the condition of the optimum by a program of its
 * own, and that lying does not pay. */
#include "scheduler/policy/testing.h"

#include "scheduler/lp.h"

static const double ones[3] = { 1, 1, 1 };

static struct hd_sched_job job(uint64_t id, double weight, const double *rate)
{
	return (struct hd_sched_job){ .id = id, .kind = "", .ikind = HD_SCHED_NONE, .scale = 1,
		.weight = weight, .steps_left = 1e4, .deadline_s = INFINITY,
		.entity = HD_SCHED_NONE, .rate = rate };
}

/* n equals on one device have 1 / n each, without one 1 / (n - 1): the discount is ((n - 1) / n) ^ (n -
 * 1). */
static void equals_pay_what_the_others_lose(void **state)
{
	const struct hd_sched_type type = { .name = "v", .n = 1 };
	struct hd_sched_job jobs[5];
	(void)state;
	need_lp();
	for (uint32_t n = 1; n <= 5; n++)
		for (int fidelity = 0; fidelity < 2; fidelity++) {
			const struct hd_sched_state s = { .ntypes = 1, .njobs = n, .types = &type,
				.jobs = jobs };
			struct hd_shares out;
			double want = pow((n - 1.0) / n, n - 1.0) / n;
			for (uint32_t i = 0; i < n; i++)
				jobs[i] = job(i, 1, ones);
			ask("nash", (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity }, &s,
				&arena, &out);
			for (uint32_t i = 0; i < n; i++)
				CHECK(fabs(out.z[i] - (n == 1 ? 1 : want)) < 1e-6, "%u jobs: %.9g, not %.9g",
					n, out.z[i], want);
			CHECK(fabs(out.objective + n * log(n)) < 1e-6 && !out.work_conserving,
				"%u jobs: %.9g", n, out.objective);
		}
}

/* Weights 1 and 3: z* are 1/4 and 3/4, alone both have 1. The first leaves the other 3/4 of what it had:
 * (3/4)^3; and it (1/4)^(1/3). */
static void weights_count_in_ours_and_not_in_theirs(void **state)
{
	const struct hd_sched_type type = { .name = "v", .n = 1 };
	const struct hd_sched_job jobs[] = { job(0, 1, ones), job(1, 3, ones) };
	const struct hd_sched_state s = { .ntypes = 1, .njobs = 2, .types = &type, .jobs = jobs };
	struct hd_shares out;
	(void)state;
	need_lp();
	ask("nash", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
	CHECK(fabs(out.z[0] - 0.25 * pow(0.75, 3)) < 1e-5 &&
		fabs(out.z[1] - 0.75 * pow(0.25, 1.0 / 3)) < 1e-5, "%.9g %.9g", out.z[0], out.z[1]);
	ask("nash", (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &s, &arena, &out);
	CHECK(fabs(out.z[0] - 0.25) < 1e-5 && fabs(out.z[1] - 0.25) < 1e-5, "%.9g %.9g", out.z[0], out.z[1]);
	ask("max_min_fairness_strategy_proof", (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL },
		&s, &arena, &out);
	CHECK(fabs(out.z[1] - 0.25) < 1e-5, "%.9g", out.z[1]);
}

/* The z of the most of sum c_i z_i, without job `gone`: a program of its own. */
static double most_of(const struct hd_sched_state *s, const double *c, uint32_t gone, double *z)
{
	uint32_t n = s->njobs, m = s->ntypes, none[100] = { 0 }, of[200], ncols = 0;
	double lo[100], hi[100], gain[200], zero = 0, inf = INFINITY;
	struct hd_lp *lp = hd_lp_new(true);
	struct hd_lp_result r;

	for (uint32_t k = 0; k < n + m; k++) {
		lo[k] = -INFINITY;
		hi[k] = k < n ? 1 : s->types[k - n].n;
	}
	assert_int_equal(hd_lp_rows(lp, n + m, lo, hi, none, NULL, NULL), HD_OK);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < m; j++) {
			bool there = !hd_sched_absent(s, i) && i != gone && is_whole(s, i, j);
			gain[ncols] = there ? s->jobs[i].rate[j] / hd_sched_proportional(s, s->jobs[i].rate) :
				0;
			of[ncols] = i;
			double cost = c[i] * gain[ncols];
			if (gain[ncols] > 0) {
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 2 },
					(uint32_t[]){ i, n + j },
					(double[]){ 1, s->jobs[i].scale }), HD_OK);
				ncols++;
			}
		}
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_OPTIMAL, "%s", hd_lp_status_text(r.status));
	for (uint32_t i = 0; i < n; i++)
		z[i] = 0;
	for (uint32_t k = 0; k < ncols; k++)
		z[of[k]] += gain[k] * r.x[k];
	double most = r.objective;
	hd_lp_free(lp);
	return most;
}

/* The most of sum w log z by steps towards the best corner (Frank and Wolfe): it lies between the two. */
static void between(const struct hd_sched_state *s, uint32_t gone, double *low, double *high)
{
	double z[24] = { 0 }, corner[24], c[24], weight = 0;
	uint32_t there = 0;

	for (uint32_t i = 0; i < s->njobs; i++)
		there += !hd_sched_absent(s, i) && i != gone;
	for (uint32_t i = 0; i < s->njobs; i++)                   /* the middle of what each has alone */
		if (!hd_sched_absent(s, i) && i != gone) {
			for (uint32_t k = 0; k < s->njobs; k++)
				c[k] = k == i;
			(void)most_of(s, c, gone, corner);
			for (uint32_t k = 0; k < s->njobs; k++)
				z[k] += corner[k] / there;
			weight += s->jobs[i].weight;
		}
	*low = there ? -INFINITY : 0;
	*high = there ? INFINITY : 0;
	for (uint32_t step = 0; step < 3000 && *high - *low > 1e-4 * weight; step++) {
		double worth = 0, a = 0, b = 1;
		for (uint32_t i = 0; i < s->njobs; i++) {
			c[i] = z[i] > 0 ? s->jobs[i].weight / z[i] : 0;
			worth += z[i] > 0 ? s->jobs[i].weight * log(z[i]) : 0;
		}
		*low = fmax(*low, worth);
		*high = fmin(*high, worth + most_of(s, c, gone, corner) - weight);
		for (int k = 0; k < 60; k++) {                    /* how far: where the slope is 0 */
			double mid = (a + b) / 2, slope = 0;
			for (uint32_t i = 0; i < s->njobs; i++)
				slope += z[i] > 0 ? s->jobs[i].weight *
					(corner[i] - z[i]) / (z[i] + mid * (corner[i] - z[i])) : 0;
			*(slope > 0 ? &a : &b) = mid;
		}
		for (uint32_t i = 0; i < s->njobs; i++)
			z[i] += a * (corner[i] - z[i]);
	}
}

/* With F the most of sum w log z of all and F_i that without job i, what the job gets is w_i log z_i = F -
 * F_i, by the definition of the discount. */
static void the_product_is_the_largest_and_so_are_those_without_one(void **state)
{
	uint32_t tried = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < (SANITIZED ? 4 : 12); seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		double low, high, low_i, high_i;
		bool whole = true, any = false;
		random_state(&s, seed, 2 + seed % 5, 1 + seed % 3, &arena);
		for (uint32_t i = 0; i < s.njobs; i++) {
			whole &= hd_sched_absent(&s, i) || hd_sched_fits_whole(&s, i);
			any |= !hd_sched_absent(&s, i);
		}
		if (!whole || !any)
			continue;
		ask("nash", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
		CHECK(!out.kept && !out.cut, "seed %u", seed);
		between(&s, HD_SCHED_NONE, &low, &high);
		CHECK(out.objective >= low - 1e-7 && out.objective <= high + 1e-7,
			"seed %u: %.9g is not in [%.9g, %.9g]", seed, out.objective, low, high);
		for (uint32_t i = 0; i < s.njobs; i++) {
			if (hd_sched_absent(&s, i))
				continue;
			between(&s, i, &low_i, &high_i);
			double got = s.jobs[i].weight * log(out.z[i]);
			CHECK(got >= low - high_i - 1e-5 && got <= high - low_i + 1e-5,
				"seed %u: job %u has %.9g, not in [%.9g, %.9g]", seed, i, got,
				low - high_i, high - low_i);
			tried++;
		}
		hd_arena_reset(&arena);
	}
	CHECK(tried >= (SANITIZED ? 1 : 15), "%u", tried);
}

static double true_rate(const struct hd_sched_state *s, const struct hd_shares *out, uint32_t job)
{
	double sum = 0;

	for (uint32_t k = 0; k < out->nshapes; k++)
		sum += out->shape[k].member[0] == job ? out->x[k] *
			s->jobs[job].rate[out->shape[k].need[0].type] : 0;
	return sum;
}

static void who_lies_about_its_speeds_goes_no_faster(void **state)
{
	uint32_t tried = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(60); seed++)
		for (int fidelity = 0; fidelity < 2; fidelity++) {
			struct hd_sched_state s, lied;
			struct hd_shares truth, lie;
			uint32_t n = 2 + seed % 6, m = 2 + seed % 3, i = seed % n;
			double said[5];
			random_state(&s, seed, n, m, &arena);
			if (hd_sched_absent(&s, i))
				continue;
			struct hd_sched_job *jobs = hd_arena_take(&arena, n, sizeof *jobs);
			memcpy(jobs, s.jobs, n * sizeof *jobs);
			for (uint32_t j = 0; j < m; j++)
				said[j] = s.jobs[i].rate[j] * exp(3 * draw(seed, 50, j, 0) - 1.5);
			jobs[i].rate = said;
			lied = s;
			lied.jobs = jobs;
			ask("nash", (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity }, &s,
				&arena, &truth);
			ask("nash", (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity },
				&lied, &arena, &lie);
			double with = true_rate(&s, &truth, i), without = true_rate(&s, &lie, i);
			CHECK(without <= with * (1 + 1e-5),
				"seed %u, fidelity %d: job %u goes at %.9g, having lied at %.9g", seed,
				fidelity, i, with, without);
			tried++;
			hd_arena_reset(&arena);
		}
	CHECK(tried >= DRAWS(60), "%u", tried);
}

/* Not seconds but work: a Newton step costs as much as the jobs are many, and 301 optima must not take
 * more of them each than a few do. */
static void hundreds_of_jobs_take_few_steps_each(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < (SANITIZED ? 1 : 3); seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		uint32_t present = 0;
		random_state(&s, seed, 300, 3 + seed, &arena);
		for (uint32_t j = 0; j < s.ntypes; j++)
			((struct hd_sched_type *)s.types)[j].n *= 10;
		s.npairs = 0;
		for (uint32_t i = 0; i < s.njobs; i++)
			present += !hd_sched_absent(&s, i);
		ask("nash", (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &s, &arena, &out);
		CHECK(!out.kept && !out.cut && out.gap <= 1e-7, "seed %u: kept %d, cut %d, gap %g", seed,
			out.kept, out.cut, out.gap);
		CHECK(out.nlps == present + 1 && out.iterations <= 40 * out.nlps,
			"seed %u: %u optima in %u steps", seed, out.nlps, out.iterations);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_pay_what_the_others_lose),
		cmocka_unit_test(weights_count_in_ours_and_not_in_theirs),
		cmocka_unit_test(the_product_is_the_largest_and_so_are_those_without_one),
		cmocka_unit_test(who_lies_about_its_speeds_goes_no_faster),
		cmocka_unit_test(hundreds_of_jobs_take_few_steps_each),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
