/* What must hold of any cluster, on random ones; best vertices and permutations are the oracles. */
#include "scheduler/policy/testing.h"

#include "scheduler/lp.h"
#include "scheduler/policy/int.h"

static struct every_policy all;

static uint32_t jobs_of(uint32_t seed) { return 1 + seed * 7 % 24; }
static uint32_t types_of(uint32_t seed) { return 1 + seed % 5; }

/* Every call checks them and would end in HD_E_BUG: here twice, so that memory of the last call takes
 * part. */
static void every_policy_keeps_time_and_devices(void **state)
{
	(void)state;
	need_lp();
	name_every_policy(&all);
	for (uint32_t seed = 0; seed < DRAWS(60); seed++)
		for (int p = 0; p < all.n; p++)
			for (int fidelity = 0; fidelity < 2; fidelity++) {
				struct hd_policy_setting set = { .fidelity = (enum hd_fidelity)fidelity,
					.deadlines = true, .seed = seed };
				struct hd_policy *policy;
				struct hd_sched_state s;
				struct hd_shares out;
				struct hd_diag diag = { "" };
				CHECK(hd_policy_parse(&set, all.name[p], &diag) == HD_OK &&
					hd_policy_create(&policy, &set, &diag) == HD_OK, "%s", diag.text);
				for (uint32_t call = 0; call < 2; call++) {
					random_state(&s, seed, jobs_of(seed) + call, types_of(seed), &arena);
					CHECK(hd_policy_allocate(policy, &s, &arena, &out, &diag) == HD_OK,
						"%s, seed %u: %s", all.name[p], seed, diag.text);
					CHECK(!out.kept && out.gap <= 1e-7, "%s, seed %u: gap %g, kept %d",
						all.name[p], seed, out.gap, out.kept);
				}
				hd_policy_destroy(policy);
				hd_arena_reset(&arena);
			}
}

static void the_order_of_jobs_and_types_in_a_file_changes_no_byte(void **state)
{
	(void)state;
	need_lp();
	name_every_policy(&all);
	for (uint32_t seed = 0; seed < DRAWS(20); seed++)
		for (int p = 0; p < all.n; p++) {
			struct hd_sched_state s, mixed;
			struct hd_shares a, b;
			struct hd_diag diag = { "" };
			uint32_t n = jobs_of(seed);
			random_state(&s, seed, n, types_of(seed), &arena);
			struct hd_sched_job *jobs = hd_arena_take(&arena, n, sizeof *jobs);
			struct hd_sched_pair *pairs = hd_arena_take(&arena, s.npairs + 1, sizeof *pairs);
			for (uint32_t i = 0; i < n; i++)
				jobs[i] = s.jobs[n - 1 - i];
			for (uint32_t k = 0; k < s.npairs; k++)
				pairs[k] = (struct hd_sched_pair){ n - 1 - s.pairs[k].b, n - 1 - s.pairs[k].a,
					{ s.pairs[k].rate[1], s.pairs[k].rate[0] } };
			mixed = s;
			mixed.jobs = jobs;
			mixed.pairs = pairs;
			CHECK(hd_sched_order(&mixed, &arena, &diag) == HD_OK, "%s", diag.text);
			ask(all.name[p], (struct hd_policy_setting){ 0 }, &s, &arena, &a);
			ask(all.name[p], (struct hd_policy_setting){ 0 }, &mixed, &arena, &b);
			CHECK(same_shares(&a, &b), "%s, seed %u", all.name[p], seed);
			hd_arena_reset(&arena);
		}
}

/* Steps of another size: rates and steps of one job times 1000. */
static void a_job_in_smaller_steps_gets_the_same_share(void **state)
{
	static const char *const names[] = { "las", "ftf", "makespan", "sum", "hierarchy", "isolated",
		"nash" };
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(20); seed++)
		for (size_t p = 0; p < sizeof names / sizeof *names; p++) {
			struct hd_sched_state s, finer;
			struct hd_shares a, b;
			uint32_t n = jobs_of(seed), m = types_of(seed);
			random_state(&s, seed, n, m, &arena);
			struct hd_sched_job *jobs = hd_arena_take(&arena, n, sizeof *jobs);
			double *rate = hd_arena_take(&arena, m, sizeof *rate);
			memcpy(jobs, s.jobs, n * sizeof *jobs);
			for (uint32_t j = 0; j < m; j++)
				rate[j] = 1000 * jobs[seed % n].rate[j];
			jobs[seed % n].rate = rate;
			jobs[seed % n].steps_left *= 1000;
			finer = s;
			finer.jobs = jobs;
			ask(names[p], (struct hd_policy_setting){ 0 }, &s, &arena, &a);
			ask(names[p], (struct hd_policy_setting){ 0 }, &finer, &arena, &b);
			for (uint32_t k = 0; k < a.nshapes; k++) {
				double other = share_of(&b, a.shape[k].member[0], HD_SCHED_NONE,
					a.shape[k].need[0].type);
				CHECK(fabs(a.x[k] - other) < 1e-5, "%s, seed %u, job %u on %u: %.9g and %.9g",
					names[p], seed, a.shape[k].member[0],
					a.shape[k].need[0].type, a.x[k], other);
			}
			hd_arena_reset(&arena);
		}
}

static void nobody_is_worse_off_than_alone(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(60); seed++) {
		struct hd_sched_state s;
		struct hd_shares las, iso, ftf;
		double least[2] = { INFINITY, INFINITY };
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		for (uint32_t i = 0; i < s.njobs; i++) {
			((struct hd_sched_job *)s.jobs)[i].weight = 1;
			((struct hd_sched_job *)s.jobs)[i].age_s = 0;
		}
		ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &las);
		ask("isolated", (struct hd_policy_setting){ 0 }, &s, &arena, &iso);
		ask("ftf", (struct hd_policy_setting){ 0 }, &s, &arena, &ftf);
		for (uint32_t i = 0; i < s.njobs; i++)
			if (!hd_sched_absent(&s, i)) {
				least[0] = fmin(least[0], las.z[i] * s.jobs[i].scale);
				least[1] = fmin(least[1], iso.z[i] * s.jobs[i].scale);
			}
		CHECK(!(least[0] < least[1] * (1 - 1e-8)), "seed %u: %.9g, alone %.9g", seed, least[0],
			least[1]);
		CHECK(isnan(ftf.objective) || ftf.objective <= 1 + 1e-9, "seed %u: rho %.12g", seed,
			ftf.objective);
		hd_arena_reset(&arena);
	}
}

static void plain_fairness_of_equals_is_equal_time(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		uint32_t devices = 0;
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		for (uint32_t i = 0; i < s.njobs; i++) {
			struct hd_sched_job *job = &((struct hd_sched_job *)s.jobs)[i];
			double *rate = hd_arena_take(&arena, s.ntypes, sizeof *rate);
			for (uint32_t j = 0; j < s.ntypes; j++)
				rate[j] = 1 + i + j;
			job->weight = job->scale = 1;
			job->rate = rate;
		}
		for (uint32_t j = 0; j < s.ntypes; j++)
			devices += s.types[j].n;
		ask("las-plain", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
		for (uint32_t i = 0; i < s.njobs; i++) {
			double sum = 0, want = fmin(1, (double)devices / s.njobs);
			for (uint32_t j = 0; j < s.ntypes; j++)
				sum += share_of(&out, i, HD_SCHED_NONE, j);
			CHECK(fabs(sum - want) < 1e-7, "seed %u, job %u: %.9g, not %.9g", seed, i, sum, want);
		}
		hd_arena_reset(&arena);
	}
}

static void the_bisected_makespan_is_within_5_percent_above(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_sched_state s;
		struct hd_shares exact, theirs;
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		/* large enough for every gang: theirs counts parts of a gang as well */
		for (uint32_t j = 0; j < s.ntypes; j++)
			((struct hd_sched_type *)s.types)[j].n += 3;
		ask("makespan", (struct hd_policy_setting){ 0 }, &s, &arena, &exact);
		ask("makespan", (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &s, &arena,
			&theirs);
		if (exact.objective > 100)
			CHECK(theirs.objective >= exact.objective * (1 - 1e-9) &&
				theirs.objective <= exact.objective * 1.05, "seed %u: %.9g, exact %.9g", seed,
				theirs.objective, exact.objective);
		for (uint32_t i = 0; i < s.njobs; i++)
			CHECK(hd_sched_absent(&s, i) || s.jobs[i].steps_left <= exact.e[i] * exact.objective *
				(1 + 1e-6), "seed %u: job %u ends later", seed,
				i);
		hd_arena_reset(&arena);
	}
}

static void one_entity_of_all_shares_as_without_entities(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_sched_state s;
		struct hd_shares a, b;
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		for (uint32_t i = 0; i < s.njobs; i++)
			((struct hd_sched_job *)s.jobs)[i].entity = 0;
		ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &a);
		ask("hierarchy", (struct hd_policy_setting){ .entity_kind = 1 + HD_ENTITY_FAIRNESS }, &s,
			&arena, &b);
		for (uint32_t i = 0; i < s.njobs; i++)
			CHECK(fabs(a.z[i] - b.z[i]) <= 1e-6 * fmax(1, a.z[i]),
				"seed %u, job %u: %.9g and %.9g", seed, i, a.z[i], b.z[i]);
		hd_arena_reset(&arena);
	}
}

/* Without a floor and deadlines no job buys a step for more than 1.25 of what it costs where it is
 * cheapest. */
static void no_step_is_bought_above_its_worth(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		ask("cost", (struct hd_policy_setting){ .phi = -1 }, &s, &arena, &out);
		CHECK(!out.work_conserving, "seed %u", seed);
		for (uint32_t k = 0; k < out.nshapes; k++) {
			const struct hd_sched_job *job = &s.jobs[out.shape[k].member[0]];
			double least = INFINITY, paid;
			for (uint32_t j = 0; j < s.ntypes; j++)
				if (job->rate[j] > 0 && is_whole(&s, out.shape[k].member[0], j))
					least = fmin(least, s.types[j].price_usd_h / job->rate[j]);
			paid = s.types[out.shape[k].need[0].type].price_usd_h /
				job->rate[out.shape[k].need[0].type];
			CHECK(paid <= 1.25 * least * (1 + 1e-9), "seed %u, job %u: pays %.6g, cheapest %.6g",
				seed, out.shape[k].member[0], paid, least);
		}
		hd_arena_reset(&arena);
	}
}

/* las: whoever has more weight has its level raised faster. sum: of two optima each is the better one for its
 * own weights. Not of nash, whose discount grows with what a job takes; ftf and makespan promise by work;
 * cost by money; in hierarchies weight is taken from brothers. */
static void more_weight_is_never_less(void **state)
{
	static const char *const names[] = { "las", "las-packed", "las-kinds", "sum", "sum-packed" };
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(40); seed++)
		for (size_t p = 0; p < sizeof names / sizeof *names; p++) {
			struct hd_sched_state s;
			struct hd_shares before, after;
			random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
			uint32_t i = seed % s.njobs;
			ask(names[p], (struct hd_policy_setting){ 0 }, &s, &arena, &before);
			((struct hd_sched_job *)s.jobs)[i].weight *= 2;
			ask(names[p], (struct hd_policy_setting){ 0 }, &s, &arena, &after);
			CHECK(after.z[i] >= before.z[i] * (1 - 1e-6), "%s, seed %u: %.9g, before %.9g",
				names[p], seed, after.z[i], before.z[i]);
			hd_arena_reset(&arena);
		}
}

/* Errors of the solver in thousands of rows add up: what it reached must not be refused by the programs
 * that follow. */
static void thousands_of_jobs_are_settled(void **state)
{
	struct hd_sched_state s;
	struct hd_shares out;
	(void)state;
	need_lp();
	random_state(&s, 1, 1500, 3, &arena);
	for (uint32_t j = 0; j < 3; j++)
		((struct hd_sched_type *)s.types)[j].n = 250;
	ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
	CHECK(!out.kept && out.gap <= 1e-7 && out.objective > 0, "kept %d, gap %g, %g", out.kept, out.gap,
		out.objective);
	hd_arena_reset(&arena);
}

/* The program of packed sharing with every pair a column, straight from the state: the best sum of w z, or
 * the best least z s / w. `parts`: as published, also of types that are too small for a gang. */
static double best_of_all_pairs(const struct hd_sched_state *s, bool least, bool parts, uint32_t *npairs)
{
	uint32_t n = s->njobs, m = s->ntypes, nrows = 2 * n + m,
		*none = hd_arena_take(&arena, nrows + 1, sizeof *none);
	double *lo = hd_arena_take(&arena, nrows, sizeof *lo), *hi = hd_arena_take(&arena, nrows, sizeof *hi),
		*p = hd_arena_take(&arena, n, sizeof *p);
	double zero = 0, inf = INFINITY, one = 1;
	struct hd_lp *lp = hd_lp_new(true);
	struct hd_lp_result r;

	*npairs = 0;
	for (uint32_t i = 0; i < n; i++) {                        /* rows: time, z, devices */
		lo[i] = -INFINITY;
		hi[i] = 1;
		lo[n + i] = least ? 0 : -INFINITY;
		hi[n + i] = INFINITY;
		p[i] = hd_sched_proportional(s, s->jobs[i].rate);
	}
	for (uint32_t j = 0; j < m; j++) {
		lo[2 * n + j] = -INFINITY;
		hi[2 * n + j] = s->types[j].n;
	}
	assert_int_equal(hd_lp_rows(lp, nrows, lo, hi, none, NULL, NULL), HD_OK);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < m; j++) {
			double gain = s->jobs[i].rate[j] / p[i], cost = least ? 0 : s->jobs[i].weight * gain;
			if (gain > 0 && (parts || is_whole(s, i, j)))
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 3 },
					(uint32_t[]){ i, n + i, 2 * n + j },
					(double[]){ 1, gain, s->jobs[i].scale }), HD_OK);
		}
	for (uint32_t k = 0; k < s->npairs; k++)
		for (uint32_t j = 0; j < m; j++) {
			const struct hd_sched_pair *q = &s->pairs[k];
			const struct hd_sched_job *a = &s->jobs[q->a], *b = &s->jobs[q->b];
			if (!(a->rate[j] > 0 && b->rate[j] > 0) || !(parts || is_whole(s, q->a, j)))
				continue;
			if (q->rate[0][j] / a->rate[j] + q->rate[1][j] / b->rate[j] < 1)
				continue;
			double gain[] = { q->rate[0][j] / p[q->a], q->rate[1][j] / p[q->b] },
				cost = least ? 0 : a->weight * gain[0] + b->weight * gain[1];
			assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 5 },
				(uint32_t[]){ q->a, q->b, n + q->a, n + q->b, 2 * n + j },
				(double[]){ 1, 1, gain[0], gain[1], a->scale }), HD_OK);
			++*npairs;
		}
	for (uint32_t i = 0; i < n; i++) {
		none[i] = n + i;
		lo[i] = -s->jobs[i].weight / s->jobs[i].scale;
	}
	if (least)
		assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &one, (uint32_t[]){ 0, n }, none, lo), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_OPTIMAL, "%s", hd_lp_status_text(r.status));
	hd_lp_free(lp);
	return r.objective;
}

static void pairs_that_are_priced_reach_what_all_pairs_reach(void **state)
{
	static const struct { const char *name; enum hd_fidelity fidelity; bool least; } cases[] = {
		{ "sum-packed", HD_FIDELITY_EXACT, false },
		{ "las-packed", HD_FIDELITY_GAVEL, true },
		{ "las-packed", HD_FIDELITY_EXACT, true },
	};
	(void)state;
	need_lp();
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct hd_sched_state s;
		struct hd_shares out;
		uint32_t npairs;
		random_state(&s, 3, 130, 5, &arena);
		ask(cases[c].name, (struct hd_policy_setting){ .fidelity = cases[c].fidelity }, &s, &arena,
			&out);
		double want = best_of_all_pairs(&s, cases[c].least, cases[c].fidelity == HD_FIDELITY_GAVEL,
			&npairs);
		CHECK(npairs > 6000, "%u pair columns are listed, not priced", npairs);
		CHECK(!out.kept && fabs(out.objective - want) <= 1e-7 * want,
			"%s, fidelity %d: %.12g, with all %u pair columns %.12g", cases[c].name,
			(int)cases[c].fidelity, out.objective, npairs, want);
		hd_arena_reset(&arena);
	}
}

/* Jobs of up to five kinds, equal in all but their weights, pairs as the kinds say. */
static void state_of_kinds(struct hd_sched_state *s, uint32_t seed, bool weights)
{
	static const char *const names[] = { "k0", "k1", "k2", "k3", "k4" };
	uint32_t n = 2 + seed * 5 % 19, m = 1 + seed % 4, nkinds = 1 + seed % 5, k = 0;
	double *alone = hd_arena_take(&arena, 5 * (size_t)m, sizeof *alone),
		*beside = hd_arena_take(&arena, 25 * (size_t)m, sizeof *beside);

	random_state(s, seed, n, m, &arena);
	struct hd_sched_job *jobs = (struct hd_sched_job *)s->jobs;
	struct hd_sched_pair *pairs = hd_arena_take(&arena, (size_t)n * n, sizeof *pairs);
	for (uint32_t a = 0; a < nkinds; a++)
		for (uint32_t j = 0; j < m; j++) {
			alone[a * m + j] = exp(4 * draw(seed, 80, a, 0)) * (0.3 + j * draw(seed, 81, a, j));
			for (uint32_t b = 0; b < nkinds; b++)
				beside[(a * 5 + b) * m + j] = alone[a * m + j] * (0.35 + 0.6 * draw(seed, 82,
					a * 5 + b, j));
		}
	for (uint32_t i = 0; i < n; i++) {
		jobs[i].kind = names[i % nkinds];
		jobs[i].rate = &alone[i % nkinds * m];
		jobs[i].scale = 1;
		jobs[i].weight = weights ? 1 + floor(3 * draw(seed, 83, i, 0)) : 1;
	}
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = a + 1; b < n; b++)
			pairs[k++] = (struct hd_sched_pair){ a, b,
				{ &beside[(a % nkinds * 5 + b % nkinds) * m],
				&beside[(b % nkinds * 5 + a % nkinds) * m] } };
	s->pairs = pairs;
	s->npairs = k;
}

/* Of equal weights any pairs can be evened out over the jobs of a kind; of others jobs of one kind may
 * pair less freely. */
static void pairs_by_kind_reach_what_all_pairs_reach(void **state)
{
	uint32_t gained = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(60); seed++)
		for (int weights = 0; weights < 2; weights++)
			for (int fidelity = 0; fidelity < 2; fidelity++) {
				struct hd_sched_state s;
				struct hd_shares out, alone;
				uint32_t npairs;
				state_of_kinds(&s, seed, weights);
				ask("las-kinds", (struct hd_policy_setting){ .fidelity =
					(enum hd_fidelity)fidelity }, &s, &arena, &out);
				ask("las", (struct hd_policy_setting){ .fidelity =
					(enum hd_fidelity)fidelity }, &s, &arena, &alone);
				double want = best_of_all_pairs(&s, true, false, &npairs), got = INFINITY;
				/* of the pairs that came back, not of the program's columns */
				for (uint32_t i = 0; i < s.njobs; i++)
					got = fmin(got, out.z[i] / s.jobs[i].weight);
				bool as_good = weights ? got >= alone.objective * (1 - 1e-7) :
					got >= want * (1 - 1e-7);
				CHECK(!out.kept && got <= want * (1 + 1e-7) && as_good &&
					fabs(got - out.objective) <= 1e-7 * got,
					"seed %u, weights %d, fidelity %d: %.9g of %.9g with all pairs, "
					"%.9g without", seed, weights, fidelity, got, want,
					alone.objective);
				gained += got > alone.objective * (1 + 1e-3);
				hd_arena_reset(&arena);
			}
	CHECK(gained >= (SANITIZED ? 1 : 60), "%u of %d gain by pairs", gained, 4 * DRAWS(60));
}

/* One pair in four is struck from the list, one in eight cannot share: no pair is formed that the state
 * does not know it to run with. */
static void kinds_never_meet_whom_they_cannot_run_with(void **state)
{
	uint32_t met = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < DRAWS(60); seed++)
		for (int fidelity = 0; fidelity < 2; fidelity++) {
			struct hd_sched_state s;
			struct hd_shares out;
			uint32_t left = 0;
			state_of_kinds(&s, seed, false);
			struct hd_sched_pair *pairs = (struct hd_sched_pair *)s.pairs;
			const double *none = hd_arena_take(&arena, s.ntypes, sizeof *none);
			for (uint32_t k = 0; k < s.npairs; k++) {
				double u = seed % 4 ? draw(seed, 84, k, 0) : 1;
				pairs[left] = pairs[k];
				if (u < 0.125)
					pairs[left].rate[0] = pairs[left].rate[1] = none;
				left += u >= 0.25 || u < 0.125;
			}
			s.npairs = left;
			ask("las-kinds", (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity },
				&s, &arena, &out);
			for (uint32_t k = 0; k < out.nshapes; k++) {
				const struct hd_shape *shape = &out.shape[k];
				double rate[2];
				if (shape->nmembers < 2)
					continue;
				bool known = hd_sched_pair_rate(&s, shape->member[0], shape->member[1],
					shape->need[0].type, rate);
				CHECK(known && rate[0] > 0 && rate[1] > 0 &&
					!memcmp(rate, shape->rate, sizeof rate),
					"seed %u, fidelity %d: jobs %u and %u",
					seed, fidelity, shape->member[0], shape->member[1]);
				met++;
			}
			hd_arena_reset(&arena);
		}
	CHECK(met > DRAWS(50), "%u pairs", met);
}

static void pairs_are_priced_in_any_currency(void **state)
{
	double objective[2];
	(void)state;
	need_lp();
	for (int tiny = 0; tiny < 2; tiny++) {
		struct hd_sched_state s;
		struct hd_shares out;
		random_state(&s, 3, 130, 5, &arena);
		for (uint32_t j = 0; j < s.ntypes; j++)
			((struct hd_sched_type *)s.types)[j].price_usd_h *= tiny ? 1e-7 : 1;
		ask("cost-packed", (struct hd_policy_setting){ .deadlines = true }, &s, &arena, &out);
		objective[tiny] = out.objective * (tiny ? 1e7 : 1);
		hd_arena_reset(&arena);
	}
	CHECK(fabs(objective[1] - objective[0]) <= 1e-7 * fabs(objective[0]),
		"$%.12g, in another currency $%.12g", objective[0], objective[1]);
}

/* Jobs in plenty of few kinds: the parts are like the whole. */
static void parts_are_nearly_as_good_as_the_whole(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < 3; seed++) {
		struct hd_sched_state s;
		struct hd_shares whole, parts;
		random_state(&s, seed, 400, 3, &arena);
		for (uint32_t i = 0; i < s.njobs; i++)
			((struct hd_sched_job *)s.jobs)[i].scale = 1;
		for (uint32_t j = 0; j < 3; j++)
			((struct hd_sched_type *)s.types)[j].n = 40;
		ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &whole);
		ask("pop:4:las", (struct hd_policy_setting){ 0 }, &s, &arena, &parts);
		bool near = parts.objective <= whole.objective * (1 + 1e-7) &&
			parts.objective >= 0.9 * whole.objective;
		CHECK(near, "seed %u: %.6g of %.6g", seed, parts.objective, whole.objective);
		hd_arena_reset(&arena);
	}
}

/* ---- the best vertex of three jobs on two types: t and six shares, seven tight of 14 rows ---- */

enum { V = 7, R = 14 };

static bool solve7(double a[V][V + 1], double x[V])
{
	for (int p = 0; p < V; p++) {
		int q = p;
		for (int r = p; r < V; r++)
			q = fabs(a[r][p]) > fabs(a[q][p]) ? r : q;
		if (fabs(a[q][p]) < 1e-12)
			return false;
		for (int k = 0; k <= V; k++) {
			double was = a[p][k];
			a[p][k] = a[q][k];
			a[q][k] = was;
		}
		for (int r = 0; r < V; r++)
			for (int k = V; r != p && k >= p; k--)
				a[r][k] -= a[r][p] / a[p][p] * a[p][k];
	}
	for (int k = 0; k < V; k++)
		x[k] = a[k][V] / a[k][k];
	return true;
}

/* Rows: 3 of time, 2 of devices, 3 of fairness (t - (s/w) z <= 0), 6 of x >= 0; columns x[i][j], then t. */
static double best_least(const struct hd_sched_state *s)
{
	double rows[R][V + 1] = { { 0 } }, best = 0;

	for (uint32_t i = 0; i < 3; i++) {
		double p = hd_sched_proportional(s, s->jobs[i].rate);
		for (uint32_t j = 0; j < 2; j++) {
			rows[i][2 * i + j] = 1;
			rows[3 + j][2 * i + j] = s->jobs[i].scale;
			rows[5 + i][2 * i + j] = is_whole(s, i, j) ?
				-s->jobs[i].rate[j] / p * s->jobs[i].scale / s->jobs[i].weight : 0;
			rows[8 + 2 * i + j][2 * i + j] = -1;
			rows[3 + j][V] = s->types[j].n;
		}
		rows[i][V] = 1;
		rows[5 + i][6] = 1;
	}
	for (uint32_t set = 0; set < 1u << R; set++) {
		double a[V][V + 1], x[V];
		int n = 0;
		if (__builtin_popcount(set) != V)
			continue;
		for (int r = 0; r < R; r++)
			if (set >> r & 1)
				memcpy(a[n++], rows[r], sizeof rows[r]);
		if (!solve7(a, x) || x[6] <= best)
			continue;
		bool inside = true;
		for (int r = 0; inside && r < R; r++) {
			double sum = 0;
			for (int k = 0; k < V; k++)
				sum += rows[r][k] * x[k];
			inside = sum <= rows[r][V] + 1e-9;
		}
		best = inside ? x[6] : best;
	}
	return best;
}

static void max_min_of_three_jobs_is_the_best_vertex(void **state)
{
	uint32_t tried = 0;
	(void)state;
	need_lp();
	for (uint32_t seed = 100; seed < 160; seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		bool whole = true;
		random_state(&s, seed, 3, 2, &arena);
		for (uint32_t i = 0; i < 3; i++)
			for (uint32_t j = 0; j < 2; j++)
				whole &= s.jobs[i].rate[j] > 0 && !hd_sched_absent(&s, i);
		if (!whole)
			continue;
		tried++;
		ask("las", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
		double want = best_least(&s);
		CHECK(fabs(out.objective - want) <= 1e-8 * want, "seed %u: %.12g, best vertex %.12g", seed,
			out.objective, want);
		hd_arena_reset(&arena);
	}
	CHECK(tried >= 10, "%u", tried);
}

struct cost_table { double at[6][8]; };

static double at(const void *context, uint32_t row,
	uint32_t col) { return ((const struct cost_table *)context)->at[row][col]; }

static double by_permutations(const struct cost_table *t, uint32_t nrows, uint32_t ncols, uint32_t row,
	uint32_t used)
{
	double best = INFINITY;

	if (row == nrows)
		return 0;
	for (uint32_t c = 0; c < ncols; c++)
		if (!(used >> c & 1))
			best = fmin(best, t->at[row][c] + by_permutations(t, nrows, ncols, row + 1,
				used | 1u << c));
	return best;
}

struct stop_after { uint32_t left; atomic_bool stop; };

/* Somebody tells it to stop while it looks at that cost. */
static double at_last(const void *context, uint32_t row, uint32_t col)
{
	struct stop_after *stopper = (struct stop_after *)context;

	if (stopper->left && !--stopper->left)
		atomic_store(&stopper->stop, true);
	return row == 3 && !stopper->left ? NAN : (double)(row * col % 7);
}

static void an_assignment_ends_where_it_is_stopper_to_and_where_a_cost_is_no_number(void **state)
{
	struct stop_after stopper = { .left = 20 * 25 };           /* of 20 rows of 25 columns at least */
	const struct hd_policy_setting set = { .stop = &stopper.stop }, unset = { 0 };
	uint32_t of[20];

	(void)state;
	assert_int_equal(hd_assign(20, 25, at_last, &stopper, &set, &arena, of), HD_E_AGAIN);
	stopper.left = 0;
	assert_int_equal(hd_assign(4, 4, at_last, &stopper, &unset, &arena, of), HD_E_INVAL);
	hd_arena_reset(&arena);
}

static void assignments_are_the_best_permutation(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(300); seed++) {
		struct cost_table t;
		const struct hd_policy_setting set = { 0 };
		uint32_t nrows = 1 + seed % 6, ncols = nrows + seed / 6 % 3, of[6], used = 0;
		double sum = 0;
		for (uint32_t r = 0; r < 6; r++)
			for (uint32_t c = 0; c < 8; c++)
				/* with ties, without */
				t.at[r][c] = seed % 2 ? floor(4 * draw(seed, 1, r, c)) : draw(seed, 1, r, c);
		assert_int_equal(hd_assign(nrows, ncols, at, &t, &set, &arena, of), HD_OK);
		for (uint32_t r = 0; r < nrows; r++) {
			CHECK(of[r] < ncols && !(used >> of[r] & 1), "seed %u", seed);
			used |= 1u << of[r];
			sum += t.at[r][of[r]];
		}
		CHECK(fabs(sum - by_permutations(&t, nrows, ncols, 0, 0)) < 1e-9, "seed %u: %g", seed, sum);
	}
	hd_arena_reset(&arena);
}

/* The least sum of completion times when `of` says on which device each job is, the shortest first; into
 * `first` the first job on each. */
static double sum_of_completions(const struct hd_sched_state *s, const uint32_t *of, const uint32_t *type,
	uint32_t ndevices, uint32_t *first)
{
	double sum = 0;

	for (uint32_t d = 0; d < ndevices; d++)
		first[d] = HD_SCHED_NONE;
	for (uint32_t i = 0; i < s->njobs; i++) {
		double time = s->jobs[i].steps_left / s->jobs[i].rate[type[of[i]]];
		uint32_t behind = 1;                              /* the jobs that wait for it, itself too */
		for (uint32_t k = 0; k < s->njobs; k++)
			behind += k != i && of[k] == of[i] &&
				s->jobs[k].steps_left / s->jobs[k].rate[type[of[k]]] > time;
		sum += behind * time;
		uint32_t *f = &first[of[i]];
		*f = *f == HD_SCHED_NONE || s->jobs[*f].steps_left / s->jobs[*f].rate[type[of[*f]]] > time ?
			i : *f;
	}
	return sum;
}

/* Every way to put the jobs on the devices: the best, and the best of those that begin with what runs in
 * `out`. */
static void best_completions(const struct hd_sched_state *s, const struct hd_shares *out, double *best,
	double *theirs)
{
	uint32_t type[4], first[4], of[6] = { 0 }, ndevices = 0, ways = 1;

	for (uint32_t j = 0; j < s->ntypes; j++)
		for (uint32_t d = 0; d < s->types[j].n; d++)
			type[ndevices++] = j;
	for (uint32_t i = 0; i < s->njobs; i++)
		ways *= ndevices;
	*best = *theirs = INFINITY;
	for (uint32_t way = 0; way < ways; way++) {
		uint32_t left = way, running = 0;
		bool same = true;
		for (uint32_t i = 0; i < s->njobs; i++, left /= ndevices)
			of[i] = left % ndevices;
		double sum = sum_of_completions(s, of, type, ndevices, first);
		for (uint32_t d = 0; d < ndevices; d++) {
			running += first[d] != HD_SCHED_NONE;
			same &= first[d] == HD_SCHED_NONE ||
				share_of(out, first[d], HD_SCHED_NONE, type[d]) > 0.5;
		}
		*best = fmin(*best, sum);
		if (same && running == out->nshapes)
			*theirs = fmin(*theirs, sum);
	}
}

static void allox_begins_as_the_least_sum_of_completions_does(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(80); seed++)
		for (int fidelity = 0; fidelity < 2; fidelity++) {
			struct hd_sched_state s;
			struct hd_shares out;
			double best, theirs;
			random_state(&s, seed, 1 + seed % 6, 1 + seed / 6 % 2, &arena);
			for (uint32_t j = 0; j < s.ntypes; j++)
				((struct hd_sched_type *)s.types)[j].n = 1 + (seed / 12 + j) % 2;
			for (uint32_t i = 0; i < s.njobs; i++) {
				((struct hd_sched_job *)s.jobs)[i].scale = 1;
				for (uint32_t j = 0; j < s.ntypes; j++)
					/* none that cannot run */
					((double *)s.jobs[i].rate)[j] += 0.01;
			}
			ask("allox", (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity }, &s,
				&arena, &out);
			best_completions(&s, &out, &best, &theirs);
			CHECK(theirs <= best * (1 + 1e-9),
				"seed %u, fidelity %d: %u jobs begin, of which %.12g s come at best, not "
				"%.12g s", seed, fidelity,
				out.nshapes, theirs, best);
			hd_arena_reset(&arena);
		}
}

/* N_j / n / s_i, by the row's sum where that is above 1, in this order: to the last bit, also where a row
 * adds up to 1 and an ulp. */
static void published_isolated_shares_are_not_touched(void **state)
{
	uint32_t above = 0;
	(void)state;
	for (uint32_t seed = 0; seed < 60; seed++) {
		struct hd_sched_state s;
		struct hd_shares out;
		uint32_t n = 0;
		random_state(&s, seed, jobs_of(seed), types_of(seed), &arena);
		ask("isolated", (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &s, &arena,
			&out);
		for (uint32_t i = 0; i < s.njobs; i++)
			n += !hd_sched_absent(&s, i);
		for (uint32_t k = 0; k < out.nshapes; k++) {
			uint32_t i = out.shape[k].member[0];
			double x[5], sum = 0, row = 0;
			for (uint32_t j = 0; j < s.ntypes; j++)
				sum += x[j] = (double)s.types[j].n / n / s.jobs[i].scale;
			for (uint32_t j = 0; j < s.ntypes; j++)
				row += x[j] /= fmax(1, sum);
			CHECK(out.x[k] == x[out.shape[k].need[0].type], "seed %u, job %u: %.17g, not %.17g",
				seed, i, out.x[k], x[out.shape[k].need[0].type]);
			above += row > 1;
		}
		hd_arena_reset(&arena);
	}
	CHECK(above > 0, "no row is above 1");
}

static void bad_names_and_variants_are_refused(void **state)
{
	static const struct { const char *name, *says; } cases[] = {
		{ "lass", "there is no policy \"lass\"; did you mean las? (heddle sched policies lists them)" },
		{ "max_min_fairness_pref", "there is no policy \"max_min_fairness_pref\"; did you mean max_min_fairness_perf? (heddle sched policies lists them)" },
		{ "sum-plain", "the policy sum has no variant plain" },
		{ "sjf-packed", "the policy sjf has no variant packed" },
	};
	(void)state;
	need_lp();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_policy_setting set = { 0 };
		struct hd_policy *policy;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_policy_parse(&set, cases[i].name, &diag);
		if (!err)
			err = hd_policy_create(&policy, &set, &diag);
		CHECK(err == HD_E_INVAL, "%s", cases[i].name);
		assert_string_equal(diag.text, cases[i].says);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_keeps_time_and_devices),
		cmocka_unit_test(the_order_of_jobs_and_types_in_a_file_changes_no_byte),
		cmocka_unit_test(a_job_in_smaller_steps_gets_the_same_share),
		cmocka_unit_test(nobody_is_worse_off_than_alone),
		cmocka_unit_test(plain_fairness_of_equals_is_equal_time),
		cmocka_unit_test(the_bisected_makespan_is_within_5_percent_above),
		cmocka_unit_test(one_entity_of_all_shares_as_without_entities),
		cmocka_unit_test(no_step_is_bought_above_its_worth),
		cmocka_unit_test(more_weight_is_never_less),
		cmocka_unit_test(thousands_of_jobs_are_settled),
		cmocka_unit_test(pairs_that_are_priced_reach_what_all_pairs_reach),
		cmocka_unit_test(pairs_by_kind_reach_what_all_pairs_reach),
		cmocka_unit_test(kinds_never_meet_whom_they_cannot_run_with),
		cmocka_unit_test(pairs_are_priced_in_any_currency),
		cmocka_unit_test(parts_are_nearly_as_good_as_the_whole),
		cmocka_unit_test(max_min_of_three_jobs_is_the_best_vertex),
		cmocka_unit_test(assignments_are_the_best_permutation),
		cmocka_unit_test(an_assignment_ends_where_it_is_stopper_to_and_where_a_cost_is_no_number),
		cmocka_unit_test(allox_begins_as_the_least_sum_of_completions_does),
		cmocka_unit_test(published_isolated_shares_are_not_touched),
		cmocka_unit_test(bad_names_and_variants_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
