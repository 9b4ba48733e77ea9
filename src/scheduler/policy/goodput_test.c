/* The model by hand, and the plan against every way to give the devices away. */
#include "scheduler/policy/testing.h"

#include "scheduler/policy/goodput.h"

/* Two devices of one machine, 64 samples each twice: T_acc = 0.1 + 0.01 * 64 = 0.74, T_net = 0.3; a step is
 * 0.74 + (0.74^2 + 0.3^2)^(1/2) = 0.74 + 0.7984985 s; 256 samples. s = 256 / 128 = 2; worth (1000 + 10) /
 * (1000 / 2 + 10) / 2 = 0.990196. */
static void the_model_is_the_formula(void **state)
{
	const struct hd_sched_goodput m = { .ac = 0.1, .bc = 0.01, .an = 0.9, .bn = 0.2, .ar = 0.3,
		.br = 0.05, .g = 2, .var = 1000, .sqr = 10, .batch = 128,
		.most_batch = 4096, .most_local = 64, .node = 4 };
	double batch = 0;
	(void)state;
	assert_true(fabs(hd_goodput_at(&m, 2, 256) - 256 / 1.5384985 * 0.99019608) < 1e-4);
	/* one device, its first batch in two passes, exchanges nothing: 0.74 + 0.74 */
	assert_true(fabs(hd_goodput_at(&m, 1, 128) - 128 / 1.48) < 1e-6);
	/* eight devices of two machines, 64 samples each, one pass: T_net = 0.9 + 0.2 * 6 = 2.1; s = 4:
	 * 1010 / 260 / 4 */
	assert_true(fabs(hd_goodput_at(&m, 8, 512) - 512 / sqrt(0.74 * 0.74 + 2.1 * 2.1) * 1010 / 260 / 4) <
		1e-6);
	/* the best of the 50 batches is none of the others' */
	double best = hd_goodput(&m, 4, &batch);
	for (int i = 0; i < 50; i++)
		assert_true(hd_goodput_at(&m, 4, 128 * pow(32, i / 49.0)) <= best * (1 + 1e-12));
	assert_true(fabs(hd_goodput_at(&m, 4, batch) - best) < 1e-12 * best && batch >= 128 &&
		batch <= 4096 * (1 + 1e-12));
}

/* Noise says how much a large batch teaches: without it devices beyond the first batch are of no use. */
static void noise_gets_devices(void **state)
{
	struct hd_sched_goodput m[2];
	const struct hd_sched_type type = { .name = "v", .n = 8 };
	static const double rate[] = { 1 };
	double speedup[9];
	struct hd_sched_elastic e = { .min = 1, .max = 8, .nvns = 64, .speedup = speedup };
	struct hd_sched_job jobs[2];
	const struct hd_sched_state s = { .ntypes = 1, .njobs = 2, .types = &type, .jobs = jobs };
	struct hd_shares out;
	uint32_t n[2] = { 0 };
	(void)state;
	for (uint32_t k = 0; k <= 8; k++)
		speedup[k] = k;
	for (uint32_t i = 0; i < 2; i++) {
		m[i] = (struct hd_sched_goodput){ .ac = 0.05, .bc = 0.001, .ar = 0.05, .br = 0.02, .g = 1,
			.var = i ? 1e4 : 1, .sqr = 10, .batch = 64,
			.most_batch = 4096, .most_local = 256 };
		jobs[i] = (struct hd_sched_job){ .id = i, .kind = "", .ikind = HD_SCHED_NONE, .scale = 1,
			.weight = 1, .steps_left = 1e4,
			.deadline_s = INFINITY, .entity = HD_SCHED_NONE, .rate = rate, .elastic = &e,
			.goodput = &m[i] };
	}
	ask("goodput", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
	for (uint32_t k = 0; k < out.nshapes; k++)
		n[out.shape[k].member[0]] = out.shape[k].need[0].n;
	CHECK(n[0] == 1 && n[1] >= 5, "%u and %u devices", n[0], n[1]);
}

/* ---- every way ---- */

/* w / speedup of a job on n devices of a type, from nothing: what the head of goodput.c says, written
 * again. */
static double wait_of(const struct hd_sched_state *s, uint32_t job, uint32_t type, uint32_t n)
{
	const struct hd_sched_job *j = &s->jobs[job];
	double part = 0, devices = 0, good;

	for (uint32_t t = 0; t < s->ntypes; t++) {
		uint32_t k = s->types[t].n / s->njobs;
		double share = 1;
		k = k > j->elastic->max ? j->elastic->max : k;
		if (k < 1) {
			share = (double)s->types[t].n / s->njobs;
			k = 1;
		}
		part += share * s->types[t].n * j->rate[t] * j->elastic->speedup[k];
		devices += s->types[t].n;
	}
	good = j->rate[type] * j->elastic->speedup[n] * (1 - 30.0 / 600);
	return fmin(j->weight / 0.1, j->weight * part / devices / good);
}

static double best_of_all(const struct hd_sched_state *s, uint32_t job, uint32_t free[2])
{
	double best;

	if (job == s->njobs)
		return 0;
	best = s->jobs[job].weight / 0.1 + best_of_all(s, job + 1, free);
	for (uint32_t t = 0; t < s->ntypes; t++)
		for (uint32_t n = 1; n <= s->jobs[job].elastic->max && n <= free[t]; n++) {
			free[t] -= n;
			best = fmin(best, wait_of(s, job, t, n) + best_of_all(s, job + 1, free));
			free[t] += n;
		}
	return best;
}

static void little_is_lost_against_every_way(void **state)
{
	uint32_t equal = 0, tried = 0;
	double worst = 1;
	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct hd_sched_type types[2];
		struct hd_sched_job jobs[4];
		struct hd_sched_elastic e[4];
		double rate[4][2], speedup[4][7];
		uint32_t free[2];
		struct hd_sched_state s = { .ntypes = 1 + seed % 2, .njobs = 2 + seed % 3, .types = types,
			.jobs = jobs };
		struct hd_shares out;
		for (uint32_t t = 0; t < 2; t++) {
			free[t] = 1 + (uint32_t)(5 * draw(seed, 60, t, 0));
			types[t] = (struct hd_sched_type){ .name = t ? "v" : "k", .n = free[t] };
		}
		for (uint32_t i = 0; i < 4; i++) {
			double curve = 0.2 + 0.8 * draw(seed, 61, i, 0);
			for (uint32_t k = 0; k < 7; k++)
				speedup[i][k] = pow(k, curve);
			for (uint32_t t = 0; t < 2; t++)
				rate[i][t] = 0.5 + 3 * draw(seed, 62, i, t);
			e[i] = (struct hd_sched_elastic){ .min = 1, .max = 6, .nvns = 6000,
				.speedup = speedup[i] };
			jobs[i] = (struct hd_sched_job){ .id = i, .kind = "", .ikind = HD_SCHED_NONE,
				.scale = 1, .weight = 1 + seed % 3 * (i % 2),
				.steps_left = 1e4, .deadline_s = INFINITY, .entity = HD_SCHED_NONE,
				.rate = rate[i], .elastic = &e[i] };
		}
		ask("goodput", (struct hd_policy_setting){ 0 }, &s, &arena, &out);
		double best = best_of_all(&s, 0, free);
		CHECK(out.objective >= best * (1 - 1e-9), "seed %u: %.9g is less than the best, %.9g", seed,
			out.objective, best);
		worst = fmax(worst, out.objective / best);
		equal += out.objective <= best * (1 + 1e-9);
		tried++;
		hd_arena_reset(&arena);
	}
	print_message("the best in %u of %u, at worst %.4f of it\n", equal, tried, worst);
	CHECK(equal * 10 >= tried * 9 && worst <= 1.1, "%u of %u, at worst %.4f", equal, tried, worst);
}

/* What runs is left alone where a change gains less than it takes. */
static void a_small_gain_moves_nobody(void **state)
{
	struct hd_sched_type types[] = { { .name = "k", .n = 1 }, { .name = "v", .n = 0 } };
	double speedup[] = { 0, 1 };
	const struct hd_sched_elastic e = { .min = 1, .max = 1, .nvns = 1, .speedup = speedup };
	double rate[] = { 1, 1.01 };
	const struct hd_sched_job job = { .id = 4, .kind = "", .ikind = HD_SCHED_NONE, .scale = 1,
		.weight = 1, .steps_left = 1e4, .deadline_s = INFINITY,
		.entity = HD_SCHED_NONE, .rate = rate, .elastic = &e };
	const struct hd_sched_state s = { .ntypes = 2, .njobs = 1, .types = types, .jobs = &job };
	struct hd_policy_setting set = { 0 };
	struct hd_policy *policy;
	struct hd_shares out;
	(void)state;
	assert_int_equal(hd_policy_parse(&set, "goodput", NULL), HD_OK);
	assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
	for (int turn = 0; turn < 3; turn++) {
		/* a slightly faster one comes, then it is twice as fast */
		types[1].n = turn > 0;
		rate[1] = turn < 2 ? 1.01 : 2;
		assert_int_equal(hd_policy_allocate(policy, &s, &arena, &out, NULL), HD_OK);
		assert_int_equal(out.nshapes, 1);
		assert_int_equal(out.shape[0].need[0].type, turn == 2);
	}
	hd_policy_destroy(policy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_is_the_formula),
		cmocka_unit_test(noise_gets_devices),
		cmocka_unit_test(little_is_lost_against_every_way),
		cmocka_unit_test(a_small_gain_moves_nobody),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
