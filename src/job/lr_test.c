#include "job/lr.h"

#include <math.h>

#include "tests/check.h"

static const struct hd_lr plain = { .kind = HD_LR_CONSTANT, .lr = 3e-4, .floor = 0.1, .factor = 0.5,
	.warmup = 0, .every = 10 };

static struct hd_lr lr_of(enum hd_lr_kind kind, uint64_t warmup)
{
	struct hd_lr lr = plain;

	lr.kind = kind;
	lr.warmup = warmup;
	return lr;
}

static void warm_up_rises_evenly_and_ends_at_the_full_rate(void **state)
{
	(void)state;
	for (int kind = HD_LR_CONSTANT; kind <= HD_LR_STEP; kind++)
		for (uint64_t w = 1; w < 40; w++) {
			struct hd_lr lr = lr_of((enum hd_lr_kind)kind, w);
			for (uint64_t s = 0; s < w; s++) {
				double want = 3e-4 * (double)(s + 1) / (double)w;
				CHECK(fabs((double)hd_lr(&lr, s, 100) - want) <= want * 0x1p-24,
					"kind %d, w=%d, step %d", kind, (int)w, (int)s);
			}
			assert_true(hd_lr(&lr, w - 1, 100) == 3e-4f);
		}
}

/* Written again from the formulas, in long double with the C library's cosine. */
static void every_schedule_agrees_with_its_formula(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 300; n += 7)
		for (uint64_t w = 0; w < 60; w += 13)
			for (uint64_t s = w; s < n + 5; s++) {
				long double t = s >= n ? 1.0L : (long double)(s - w) / (long double)(n - w);
				long double falls = powl(0.5L, (long double)(s / 10));
				long double want[] = {
					3e-4L, 3e-4L * (1 - 0.9L * t),
						3e-4L * (0.1L + 0.9L *
						(1 + cosl(3.14159265358979323846264338L * t)) / 2),
					3e-4L * (falls > 0.1L ? falls : 0.1L),
				};
				for (int kind = HD_LR_CONSTANT; kind <= HD_LR_STEP; kind++) {
					struct hd_lr lr = lr_of((enum hd_lr_kind)kind, w);
					long double got = (long double)hd_lr(&lr, s, n);
					CHECK(fabsl(got - want[kind]) <= want[kind] * 0x1.001p-24L,
						"kind %d, s=%d of %d: %Lg, want %Lg", kind, (int)s, (int)n,
						got, want[kind]);
				}
			}
}

/* The same of the two whose formulas have numbers of their own. */
static void one_cycle_and_polynomial_agree_with_their_formulas(void **state)
{
	static const double powers[] = { 0, 0.5, 0.9, 1, 2, 2.5, 7 };
	static const long double pi = 3.14159265358979323846264338L;

	(void)state;
	for (uint64_t n = 2; n < 300; n += 7)
		for (uint64_t w = 0; w < n; w += 13)
			for (uint64_t s = 0; s < n + 5; s++) {
				struct hd_lr lr = lr_of(HD_LR_ONE_CYCLE, w);
				const uint64_t top = w ? w - 1 : 0;
				lr.start = 0.04;
				lr.end = 0.01;
				const long double up = s < top ? (long double)s / (long double)top : 1,
					down = s <= top ? 0 : s >= n - 1 ? 1 : (long double)(s - top) /
						(long double)(n - 1 - top);
				long double want = 3e-4L * (s <= top ? 1 - 0.96L / 2 * (1 + cosl(pi * up)) :
					0.01L + 0.99L / 2 * (1 + cosl(pi * down)));
				long double got = (long double)hd_lr(&lr, s, n);
				CHECK(fabsl(got - want) <= want * 0x1.001p-24L,
					"one-cycle, w=%d, s=%d of %d: %Lg, want %Lg", (int)w, (int)s, (int)n,
					got, want);
				if (s < w)
					continue;
				lr.kind = HD_LR_POLYNOMIAL;
				lr.power = powers[(s + n) % 7];
				const long double t = s >= n ? 1 :
					(long double)(s - w) / (long double)(n - w);
				want = 3e-4L * (0.1L + 0.9L * powl(1 - t, (long double)lr.power));
				got = (long double)hd_lr(&lr, s, n);
				CHECK(fabsl(got - want) <= want * 0x1.001p-24L,
					"power %g, w=%d, s=%d of %d: %Lg, want %Lg", lr.power, (int)w, (int)s,
					(int)n, got, want);
			}
}

static void the_smallest_cycles_have_a_top(void **state)
{
	struct hd_lr lr = lr_of(HD_LR_ONE_CYCLE, 1);

	(void)state;
	lr.start = 0.5;
	lr.end = 0.125;
	assert_true(hd_lr(&lr, 0, 1) == 3e-4f);
	assert_true(hd_lr(&lr, 0, 2) == 3e-4f && hd_lr(&lr, 1, 2) == 3e-4f * 0.125f);
	lr.warmup = 2;
	assert_true(hd_lr(&lr, 0, 2) == 3e-4f * 0.5f && hd_lr(&lr, 1, 2) == 3e-4f);
	lr.warmup = 9;                    /* a job shorter than its rise */
	assert_true(hd_lr(&lr, 0, 2) == 3e-4f * 0.5f && hd_lr(&lr, 8, 2) == 3e-4f);
	assert_true(hd_lr(&lr, UINT64_MAX - 1, 2) == 3e-4f * 0.125f);
	assert_int_equal(hd_lr_auto_warmup(HD_LR_ONE_CYCLE, 50), 15);
	assert_int_equal(hd_lr_auto_warmup(HD_LR_ONE_CYCLE, 19), 5);
	assert_true(hd_lr_auto_warmup(HD_LR_ONE_CYCLE, UINT64_MAX) > UINT64_MAX / 4);
}

static void the_ends_are_exact(void **state)
{
	struct hd_lr linear = lr_of(HD_LR_LINEAR, 0), cosine = lr_of(HD_LR_COSINE, 10),
		step = lr_of(HD_LR_STEP, 0);

	(void)state;
	linear.floor = cosine.floor = 0;
	assert_true(hd_lr(&linear, 0, 100) == 3e-4f);
	assert_true(hd_lr(&linear, 100, 100) == 0);
	assert_true(hd_lr(&linear, UINT64_MAX, 100) == 0);
	assert_true(hd_lr(&cosine, 10, 110) == 3e-4f);
	assert_true(hd_lr(&cosine, 60, 110) == (float)(3e-4 / 2));
	assert_true(hd_lr(&cosine, 110, 110) == 0);
	assert_true(hd_lr(&cosine, 10, 5) == 0);                   /* a job shorter than its warm-up */
	assert_true(hd_lr(&step, UINT64_C(1) << 42, UINT64_C(1) << 43) == (float)(3e-4 * 0.1));
	step.factor = 1;
	assert_true(hd_lr(&step, UINT64_C(1) << 42, UINT64_C(1) << 43) == 3e-4f);
}

static void the_rate_never_rises_after_the_warm_up(void **state)
{
	(void)state;
	for (int kind = HD_LR_CONSTANT; kind <= HD_LR_STEP; kind++) {
		struct hd_lr lr = lr_of((enum hd_lr_kind)kind, 20);
		for (uint64_t s = 20; s < 1200; s++)
			CHECK(hd_lr(&lr, s + 1, 1000) <= hd_lr(&lr, s, 1000), "kind %d, step %d", kind,
				(int)s);
	}
}

static void the_rate_of_a_job_is_that_of_its_keys(void **state)
{
	static struct hd_job job;

	(void)state;
	job.value[HD_JOB_SCHEDULE].i = HD_LR_STEP;
	job.value[HD_JOB_LR].f = 1;
	job.value[HD_JOB_FLOOR].f = 0.05;
	job.value[HD_JOB_FACTOR].f = 0.25;
	job.value[HD_JOB_WARMUP].i = 4;
	job.value[HD_JOB_EVERY].i = 8;
	assert_true(hd_lr_at(&job, 1, 100, 0) == 0.5f);
	assert_true(hd_lr_at(&job, 7, 100, 0) == 1.0f);
	assert_true(hd_lr_at(&job, 8, 100, 0) == 0.25f);
	assert_true(hd_lr_at(&job, 16, 100, 0) == 0.0625f);
	assert_true(hd_lr_at(&job, 24, 100, 0) == 0.05f);
}

/* Of a job of epochs, whose steps are known when its data are. */
static void an_automatic_warm_up_is_a_tenth_of_the_steps(void **state)
{
	static const struct { uint64_t nsteps, warmup; } cases[] = { { 5, 0 }, { 10, 1 }, { 99, 9 },
		{ 500, 50 }, { 1000, 100 }, { 100000, 100 } };
	static struct hd_job job;

	(void)state;
	job.value[HD_JOB_SCHEDULE].i = HD_LR_CONSTANT;
	job.value[HD_JOB_LR].f = 1;
	job.value[HD_JOB_WARMUP].is_auto = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t n = cases[i].warmup;
		CHECK(hd_lr_at(&job, n, cases[i].nsteps, 0) == 1, "%llu steps",
			(unsigned long long)cases[i].nsteps);
		CHECK(n < 2 || hd_lr_at(&job, n - 2, cases[i].nsteps, 0) < 1, "%llu steps",
			(unsigned long long)cases[i].nsteps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warm_up_rises_evenly_and_ends_at_the_full_rate),
		cmocka_unit_test(every_schedule_agrees_with_its_formula),
		cmocka_unit_test(one_cycle_and_polynomial_agree_with_their_formulas),
		cmocka_unit_test(the_smallest_cycles_have_a_top),
		cmocka_unit_test(the_ends_are_exact),
		cmocka_unit_test(the_rate_never_rises_after_the_warm_up),
		cmocka_unit_test(the_rate_of_a_job_is_that_of_its_keys),
		cmocka_unit_test(an_automatic_warm_up_is_a_tenth_of_the_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
