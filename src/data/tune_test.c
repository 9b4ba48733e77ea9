#include "data/tune.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* A store as a formula: each request takes t0 + b / b1, depths add up to a limit, and noise of a few percent.
 * */
struct made_store { double t0_s, b1, most, noise; };

static double truth(const struct made_store *s, struct hd_ranges_knobs k)
{
	const double x = (double)k.depth * k.size_bytes / (s->t0_s + k.size_bytes / s->b1);

	return x < s->most ? x : s->most;
}

static double draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

static double best_of(const struct made_store *s, uint64_t memory, struct hd_ranges_knobs *least)
{
	double best = 0;
	uint64_t cost = UINT64_MAX;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t q = 1; q <= 256; q *= 2)
			for (uint32_t b = 4096; b <= 8 << 20; b *= 2) {
				const struct hd_ranges_knobs k = { q, b, 0 };
				if ((uint64_t)q * b > memory)
					continue;
				if (!pass && truth(s, k) > best)
					best = truth(s, k);
				if (pass && truth(s, k) >= 0.95 * best && (uint64_t)q * b < cost) {
					cost = (uint64_t)q * b;
					*least = k;
				}
			}
	return best;
}

static const struct made_store stores[] = {
	{ 20e-6, 6e9, 9e9, 0.05 },        /* page cache */
	{ 100e-6, 2e9, 3e9, 0.03 },       /* NVMe */
	{ 8e-3, 150e6, 160e6, 0.1 },      /* disk */
	{ 40e-3, 60e6, 1e9, 0.2 },        /* objects far away */
	{ 40e-3, 60e6, 100e6, 0.05 },     /* ... with a limit */
	{ 1e-6, 1e12, 50e6, 0.02 },       /* a throttle alone */
};

static void within_a_tenth_of_the_best_of_all(void **state)
{
	static const uint64_t memories[] = { 1 << 20, 16 << 20, HD_RANGES_MEMORY };
	uint64_t draws = 7, bad = 0, all = 0;

	(void)state;
	for (size_t s = 0; s < sizeof stores / sizeof *stores; s++)
		for (size_t m = 0; m < 3; m++)
			for (uint32_t seed = 0; seed < DRAWS(20); seed++) {
				struct hd_ranges_knobs least = { 0 };
				const double best = best_of(&stores[s], memories[m], &least);
				struct hd_tune t;
				uint32_t n = 0;
				hd_tune_init(&t, memories[m], false);
				while (t.phase != HD_TUNE_KEEP) {
					const struct hd_ranges_knobs k = hd_tune_knobs(&t);
					CHECK((uint64_t)k.depth * k.size_bytes <= memories[m],
						"beyond the memory");
					CHECK(n++ < 6 + 30 * HD_TUNE_COMPARISONS, "no end");
					hd_tune_sample(&t, truth(&stores[s], k) *
						(1 + stores[s].noise * (2 * draw(&draws) - 1)), true);
				}
				CHECK(t.comparisons <= HD_TUNE_COMPARISONS, "%u comparisons", t.comparisons);
				all++;
				bad += truth(&stores[s], t.kept) < 0.9 * best;
				CHECK(truth(&stores[s], t.kept) >= 0.6 * best,
					"store %d, memory %d: %g of %g with q %u, b %u",
					(int)s, (int)m, truth(&stores[s], t.kept), best, t.kept.depth,
					t.kept.size_bytes);
			}
	CHECK(bad * 10 <= all, "%d of %d below nine tenths", (int)bad, (int)all);
}

/* Without noise the depth beyond the knee is not paid for. */
/* Of a copy that two processors make, where a request of several costs to be handed over: what one at a time
 * takes says nothing of many. A tuner that has time for 120 samples is not misled by it. */
static void requests_that_cost_more_together_mislead_nothing(void **state)
{
	static const struct { double t0_s, b1, hand_s; } copies[] = {
		{ 2e-6, 9e9, 60e-6 }, { 1e-6, 12e9, 25e-6 }, { 3e-6, 5e9, 100e-6 } };
	uint64_t draws = 5, bad = 0, all = 0;

	(void)state;
	for (size_t s = 0; s < sizeof copies / sizeof *copies; s++)
		for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
			const double best = 2 * copies[s].b1;
			struct hd_tune t;
			hd_tune_init(&t, HD_RANGES_MEMORY, false);
			for (uint32_t n = 0; n < 120 && t.phase != HD_TUNE_KEEP; n++) {
				const struct hd_ranges_knobs k = hd_tune_knobs(&t);
				const double took = copies[s].t0_s + k.size_bytes / copies[s].b1 +
					(k.depth > 1 ? copies[s].hand_s : 0);
				hd_tune_sample(&t, (k.depth > 1 ? 2 : 1) * k.size_bytes / took *
					(0.9 + 0.2 * draw(&draws)), true);
			}
			hd_tune_stop(&t);
			const double x = (t.kept.depth > 1 ? 2 : 1) * t.kept.size_bytes / (copies[s].t0_s +
				t.kept.size_bytes / copies[s].b1 + (t.kept.depth > 1 ? copies[s].hand_s : 0));
			all++;
			bad += x < 0.75 * best;
		}
	CHECK(bad * 10 <= all, "%d of %d below three quarters", (int)bad, (int)all);
}

static void no_more_depth_than_the_knee(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof stores / sizeof *stores; s++) {
		struct hd_ranges_knobs least = { 0 };
		const double best = best_of(&stores[s], HD_RANGES_MEMORY, &least);
		struct hd_tune t;
		hd_tune_init(&t, HD_RANGES_MEMORY, false);
		while (t.phase != HD_TUNE_KEEP)
			hd_tune_sample(&t, truth(&stores[s], hd_tune_knobs(&t)), true);
		CHECK(truth(&stores[s], t.kept) >= 0.9 * best, "store %d: %g of %g", (int)s,
			truth(&stores[s], t.kept), best);
		CHECK((uint64_t)t.kept.depth * t.kept.size_bytes <=
			4 * (uint64_t)least.depth * least.size_bytes,
			"store %d: q %u, b %u where %u, %u would do", (int)s, t.kept.depth, t.kept.size_bytes,
			least.depth, least.size_bytes);
	}
}

static void kept(struct hd_tune *t)
{
	hd_tune_init(t, HD_RANGES_MEMORY, false);
	while (t->phase != HD_TUNE_KEEP)
		hd_tune_sample(t, truth(&stores[4], hd_tune_knobs(t)), true);
}

static void what_nothing_waits_for_is_given_back(void **state)
{
	struct hd_tune t;

	(void)state;
	kept(&t);
	const struct hd_ranges_knobs k = t.kept;
	assert_true(k.depth > 2);
	for (uint32_t i = 0; i < HD_TUNE_QUIET; i++)
		hd_tune_sample(&t, 1e6, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth / 2);
	hd_tune_sample(&t, 1e6, true);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth);
	for (uint32_t i = 0; i < HD_TUNE_HOLD - 1; i++)
		hd_tune_sample(&t, t.kept_value, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth);
	hd_tune_sample(&t, t.kept_value, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth / 2);
}

static void three_slow_samples_with_waiting_search_again(void **state)
{
	struct hd_tune t;

	(void)state;
	kept(&t);
	hd_tune_sample(&t, 0.8 * t.kept_value, true);
	hd_tune_sample(&t, 0.8 * t.kept_value, true);
	hd_tune_sample(&t, 0.9 * t.kept_value, true);
	hd_tune_sample(&t, 0.8 * t.kept_value, true);
	hd_tune_sample(&t, 0.8 * t.kept_value, true);
	assert_int_equal(t.phase, HD_TUNE_KEEP);
	hd_tune_sample(&t, 0.8 * t.kept_value, true);
	assert_int_equal(t.phase, HD_TUNE_PROBE);
}

static void equal_samples_make_equal_knobs(void **state)
{
	struct hd_tune a, b;
	uint64_t draws = 11;

	(void)state;
	hd_tune_init(&a, HD_RANGES_MEMORY, true);
	hd_tune_init(&b, HD_RANGES_MEMORY, true);
	for (uint32_t i = 0; i < 2000; i++) {
		const double x = truth(&stores[3], hd_tune_knobs(&a)) * (0.9 + 0.2 * draw(&draws));
		hd_tune_sample(&a, x, i % 3 != 0);
		hd_tune_sample(&b, x, i % 3 != 0);
		assert_memory_equal(&a, &b, sizeof a);
	}
}

static void stopped_it_keeps_the_best_so_far(void **state)
{
	static const double probes[] = { 1e6, 5e6, 4e6 };
	struct hd_tune tune;

	(void)state;
	hd_tune_init(&tune, HD_RANGES_MEMORY, false);
	for (size_t i = 0; i < 3; i++)
		hd_tune_sample(&tune, probes[i], true);
	hd_tune_stop(&tune);
	assert_int_equal(tune.phase, HD_TUNE_KEEP);
	assert_int_equal(tune.kept.depth, 1);
	assert_int_equal(tune.kept.size_bytes, 256 << 10);
	assert_true(tune.kept_value == 5e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_a_tenth_of_the_best_of_all),
		cmocka_unit_test(requests_that_cost_more_together_mislead_nothing),
		cmocka_unit_test(no_more_depth_than_the_knee),
		cmocka_unit_test(what_nothing_waits_for_is_given_back),
		cmocka_unit_test(three_slow_samples_with_waiting_search_again),
		cmocka_unit_test(equal_samples_make_equal_knobs),
		cmocka_unit_test(stopped_it_keeps_the_best_so_far),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
