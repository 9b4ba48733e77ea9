/* Programs solved by prices against the solver that gets them whole. */
#include "scheduler/policy/testing.h"

#include "scheduler/policy/int.h"

static double weighed(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const double *sign = context;

	if (*sign > 0)
		return pg->seen->state->jobs[pg->shape[k].member[0]].weight * pg->gain[k][0];
	return -(double)pg->shape[k].need[0].n * (1 + pg->shape[k].need[0].type);
}

/* LEVEL: max c; THEN: a second level above promises; WORTH: sum w z; FEWEST: fewest devices for promises;
 * KEPT: fewest devices with a part of the best sum w z kept, SETTLED: with all of it but 1e-9. */
enum what { LEVEL, THEN, WORTH, FEWEST, KEPT, SETTLED, NWHATS };

static enum hd_err make(struct hd_policy_lp *pg, const struct hd_seen *seen, enum what what, double *g,
	uint32_t seed)
{
	static const double plus = 1, minus = -1;
	enum hd_err err = hd_program_open(pg, seen, &arena, NULL);

	for (uint32_t i = 0; !err && i < seen->state->njobs; i++) {
		g[i] = seen->absent[i] ? 0 : (0.2 + draw(seed, 70, i, 0)) / seen->state->jobs[i].scale;
		/* half of an equal part, which is feasible */
		bool free = what == LEVEL || what == WORTH || what == KEPT || seen->absent[i];
		hd_program_promise(pg, i, free ? 0 : draw(seed, 71, i, 0) * 0.9 * seen->iso[i] / seen->p[i]);
		if (what == THEN && draw(seed, 72, i, 0) < 0.3)
			g[i] = 0;
	}
	if (!err && (what == LEVEL || what == THEN))
		err = hd_program_level(pg, g);
	if (!err && what >= WORTH)
		hd_program_worth(pg, weighed, what == FEWEST ? &minus : &plus);
	if (!err && what >= KEPT) {
		err = hd_program_solve(pg);
		if (!err)
			err = hd_program_row(pg, weighed, &plus,
				pg->last.objective * (what == KEPT ? 0.5 + 0.5 * draw(seed, 73, 0, 0) :
				1 - 1e-9));
		hd_program_worth(pg, weighed, &minus);
	}
	return err;
}

static void prices_find_the_optimum_of_the_solver(void **state)
{
	uint32_t solved = 0, tried = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(120); seed++)
		for (int what = 0; what < NWHATS; what++) {
			struct hd_policy_setting set = { 0 };
			struct hd_policy *policy;
			struct hd_sched_state s;
			struct hd_seen seen;
			struct hd_policy_lp pg;
			const struct hd_lp_limits limits = { 0 };
			bool done = false;
			double g[80], got, gap;
			uint32_t n = 2 + seed * 7 % 70;
			random_state(&s, seed, n, 1 + seed % 5, &arena);
			/* few kinds, all equal in them */
			for (uint32_t i = 0; i < n && seed % 3 == 0; i++) {
				struct hd_sched_job *jobs = (struct hd_sched_job *)s.jobs;
				jobs[i].rate = jobs[i % 4].rate;
				jobs[i].scale = jobs[i % 4].scale;
				jobs[i].weight = 1;
			}
			s.npairs = 0;
			assert_int_equal(hd_policy_parse(&set, "las", NULL), HD_OK);
			assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
			assert_int_equal(hd_see(&seen, policy, &s, HD_FLAT_ONE, &arena, NULL), HD_OK);
			if (seen.npresent) {
				assert_int_equal(make(&pg, &seen, (enum what)what, g, seed), HD_OK);
				assert_int_equal(hd_blocks_solve(&pg, &limits, &done), HD_OK);
				got = done ? pg.last.objective : NAN;
				gap = done ? pg.last.gap : 0;
				assert_int_equal(hd_lp_solve(pg.lp, NULL, &pg.last), HD_OK);
				CHECK(pg.last.status == HD_LP_OPTIMAL, "seed %u, program %d", seed, what);
				CHECK(!done || (fabs(got - pg.last.objective) <= 1e-8 * fmax(1e-6,
					fabs(pg.last.objective)) && gap <= 1e-7),
					"seed %u, program %d of %u jobs: %.12g, the solver %.12g", seed, what,
					n, got, pg.last.objective);
				solved += done;
				tried++;
				hd_program_close(&pg);
			}
			hd_policy_destroy(policy);
			hd_arena_reset(&arena);
		}
	print_message("%u of %u by prices\n", solved, tried);
	CHECK(solved * 20 >= tried * 19, "%u of %u", solved, tried);
}

/* 1,200 jobs of five kinds, as equal as can be: what solvers have fallen over. All of a kind get the same,
 * and the solver sees none of it. */
static void equals_in_thousands_get_equal_parts(void **state)
{
	struct hd_sched_state s;
	struct hd_shares out;
	(void)state;
	need_lp();
	random_state(&s, 5, 1200, 3, &arena);
	for (uint32_t i = 0; i < s.njobs; i++) {
		struct hd_sched_job *j = &((struct hd_sched_job *)s.jobs)[i];
		for (uint32_t t = 0; t < 3; t++)
			((double *)j->rate)[t] = 1 + (7 * (i % 5) + 3 * t * (i % 5)) % 11;
		j->weight = j->scale = 1;
	}
	for (uint32_t t = 0; t < 3; t++)
		((struct hd_sched_type *)s.types)[t].n = 120;
	ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
	CHECK(!out.kept && out.iterations == 0 && out.gap <= 1e-7, "kept %d, %u pivots, gap %g", out.kept,
		out.iterations, out.gap);
	for (uint32_t i = 5; i < s.njobs; i++)
		CHECK(fabs(out.z[i] - out.z[i % 5]) <= 1e-9, "job %u: %.12g, job %u: %.12g", i, out.z[i],
			i % 5, out.z[i % 5]);
	hd_arena_reset(&arena);
}

static void a_second_answer_of_thousands_is_as_good(void **state)
{
	struct hd_policy_setting set = { 0 };
	struct hd_policy *policy;
	struct hd_sched_state s;
	struct hd_shares out;
	double first = 0;
	(void)state;
	need_lp();
	assert_int_equal(hd_policy_parse(&set, "las", NULL), HD_OK);
	assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
	for (int turn = 0; turn < 2; turn++) {
		random_state(&s, 9, 1300, 3, &arena);
		s.npairs = 0;
		assert_int_equal(hd_policy_allocate(policy, &s, &arena, &out, NULL), HD_OK);
		CHECK(!out.kept && out.iterations == 0, "kept %d, %u pivots", out.kept, out.iterations);
		CHECK(!turn || fabs(out.objective - first) <= 1e-9 * first, "%.12g, then %.12g", first,
			out.objective);
		first = out.objective;
		hd_arena_reset(&arena);
	}
	hd_policy_destroy(policy);
}

/* Devices for everybody, and one job that is longest: no type has a price, all edges may change, and the
 * program is the answers mixed. */
static void a_long_job_among_idle_devices_bounds_the_end(void **state)
{
	struct hd_sched_state s;
	struct hd_shares out;
	double most = 0, end = 0;
	(void)state;
	need_lp();
	random_state(&s, 11, 3200, 3, &arena);
	s.npairs = 0;
	for (uint32_t j = 0; j < 3; j++)
		((struct hd_sched_type *)s.types)[j].n = 1000;
	for (uint32_t i = 0; i < s.njobs; i++) {
		for (uint32_t j = 0; j < 3; j++)
			most = i ? most : fmax(most, s.jobs[0].rate[j]);
		end = i ? end : 1e9 / most;
		((struct hd_sched_job *)s.jobs)[i].steps_left = i ? s.jobs[i].steps_left : 1e9;
	}
	ask("makespan", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
	CHECK(!out.kept && out.iterations == 0 && out.gap <= 1e-7, "kept %d, %u pivots, gap %g", out.kept,
		out.iterations, out.gap);
	CHECK(fabs(out.objective - end) <= 1e-6 * end, "ends after %.12g s, not %.12g s", out.objective, end);
	hd_arena_reset(&arena);
}

/* The objective held by a row while fewest devices are sought: by prices as well. */
static void objectives_of_thousands_are_settled_by_prices(void **state)
{
	static const char *const names[] = { "makespan", "sum", "ftf" };
	(void)state;
	need_lp();
	for (size_t p = 0; p < sizeof names / sizeof *names; p++) {
		struct hd_sched_state s;
		struct hd_shares out;
		random_state(&s, 9, 1300, 3, &arena);
		s.npairs = 0;
		for (uint32_t j = 0; j < 3; j++)
			((struct hd_sched_type *)s.types)[j].n *= 20;
		ask(names[p], (struct hd_policy_setting){ 0 }, &s, &arena, &out);
		CHECK(!out.kept && out.iterations == 0 && out.gap <= 1e-7, "%s: kept %d, %u pivots, gap %g",
			names[p], out.kept, out.iterations, out.gap);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(prices_find_the_optimum_of_the_solver),
		cmocka_unit_test(equals_in_thousands_get_equal_parts),
		cmocka_unit_test(a_second_answer_of_thousands_is_as_good),
		cmocka_unit_test(a_long_job_among_idle_devices_bounds_the_end),
		cmocka_unit_test(objectives_of_thousands_are_settled_by_prices),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
