#include "data/tune.h"

#include <math.h>
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

enum { SAMPLES_MOST = 1500 };
static const struct made_store stores[] = {
	{ 20e-6, 6e9, 9e9, 0.05 },        /* page cache */
	{ 100e-6, 2e9, 3e9, 0.03 },       /* NVMe */
	{ 8e-3, 150e6, 160e6, 0.1 },      /* disk */
	{ 40e-3, 60e6, 1e9, 0.2 },        /* objects far away */
	{ 40e-3, 60e6, 100e6, 0.05 },     /* ... with a limit */
	{ 1e-6, 1e12, 50e6, 0.02 },       /* a throttle alone */
};

static void begin(struct hd_tune *t, uint64_t memory_bytes, uint32_t size_most, bool gaps)
{
	hd_tune_init(t, &(struct hd_tune_rules){ .memory_bytes = memory_bytes, .size_most = size_most,
		.gaps = gaps });
}

/* A sample of 50 ms. */
static void feed(struct hd_tune *t, double rate, bool waited)
{
	hd_tune_sample(t, (uint64_t)(rate * 0.05), 50000000, waited);
}

static void memory_is_kept_to_and_the_best_of_few_stores_found(void **state)
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
				begin(&t, memories[m], 0, false);
				while (t.phase != HD_TUNE_KEEP) {
					const struct hd_ranges_knobs k = hd_tune_knobs(&t);
					CHECK((uint64_t)k.depth * k.size_bytes <= memories[m],
						"beyond the memory");
					CHECK(n++ < SAMPLES_MOST, "no end");
					feed(&t, truth(&stores[s], k) *
						(1 + stores[s].noise * (2 * draw(&draws) - 1)), true);
				}
				all++;
				bad += truth(&stores[s], t.kept) < 0.95 * best;
				CHECK(truth(&stores[s], t.kept) >= 0.85 * best,
					"store %d, memory %d: %g of %g with q %u, b %u",
					(int)s, (int)m, truth(&stores[s], t.kept), best, t.kept.depth,
					t.kept.size_bytes);
			}
	CHECK(bad * 20 <= all, "%d of %d below 0.95", (int)bad, (int)all);
}

/* A surface of throughput by depth and size: a store as above, and what real ones have, too. */
struct surface {
	struct made_store store;
	double thrash;                    /* requests at once beyond which each costs the others */
	double cached;                    /* bytes of a request beyond which copying is slower */
	double hill_q, hill_b, hill;      /* a second hill around there, by so much */
	double noise, spike, wave;        /* of samples; how many are a third; of what all share */
};

static double log_between(uint64_t *draws, double low, double high)
{
	return low * pow(high / low, draw(draws));
}

static struct surface draw_surface(uint64_t *draws, double noise)
{
	struct surface f = { .store = { .t0_s = log_between(draws, 2e-6, 0.2),
		.b1 = log_between(draws, 20e6, 8e9) } };

	f.store.most = f.store.b1 * log_between(draws, 1, 40);
	f.store.most = f.store.most < 12e9 ? f.store.most : 12e9;
	f.thrash = draw(draws) < 0.5 ? log_between(draws, 8, 400) : 1e9;
	f.cached = draw(draws) < 0.5 ? log_between(draws, 128e3, 8e6) : 1e12;
	f.hill_q = log_between(draws, 1, 256);
	f.hill_b = log_between(draws, 16e3, 8e6);
	f.hill = draw(draws) < 0.3 ? 0.15 * draw(draws) : 0;
	f.noise = noise * (0.5 + draw(draws));
	f.spike = 0.03 * draw(draws);
	f.wave = 0.4 * draw(draws);
	return f;
}

static double height(const struct surface *f, struct hd_ranges_knobs k)
{
	double x = truth(&f->store, k);
	const double dq = log2(k.depth / f->hill_q), db = log2(k.size_bytes / f->hill_b);

	x *= k.depth > f->thrash ? pow(f->thrash / k.depth, 0.3) : 1;
	x *= k.size_bytes > f->cached ? pow(f->cached / k.size_bytes, 0.15) : 1;
	return x * (1 + f->hill * exp(-(dq * dq + db * db) / 8));
}

static double highest(const struct surface *f, uint64_t memory)
{
	double best = 0;

	for (uint32_t q = 1; q <= HD_RANGES_DEPTH; q *= 2)
		for (uint32_t b = HD_RANGES_SIZE_MIN; b <= HD_RANGES_SIZE_MAX; b *= 2)
			if ((uint64_t)q * b <= memory)
				best = fmax(best, height(f, (struct hd_ranges_knobs){ q, b, 0 }));
	return best;
}

/* The share of the highest that it keeps; *n: samples. */
static double climb(const struct surface *f, uint64_t *draws, int64_t budget_ns, uint32_t *n)
{
	struct hd_tune t;

	begin(&t, HD_RANGES_MEMORY / 2, 0, false);
	t.rules.budget_ns = budget_ns;
	for (*n = 0; t.phase != HD_TUNE_KEEP; ++*n) {
		double x = height(f, hd_tune_knobs(&t));
		x *= 1 + f->noise * (2 * draw(draws) - 1);
		x *= draw(draws) < f->spike ? 0.3 : 1;
		x *= 1 + f->wave * sin(*n / 17.0);
		CHECK(*n < SAMPLES_MOST, "no end");
		feed(&t, x, true);
	}
	return height(f, t.kept) / highest(f, HD_RANGES_MEMORY / 2);
}

/* 200 surfaces, quiet, noisy, and with little time: the optimum is that of all knobs there are. */
static void of_200_surfaces_the_optimum_is_reached(void **state)
{
	static const struct { double noise; int64_t budget_s; double most, least; } rows[] = {
		{ 0, 0, 0.01, 0.9 }, { 0.05, 0, 0.02, 0.8 }, { 0.15, 0, 0.05, 0.8 }, { 0.05, 6, 0.04, 0.8 },
		{ 0.05, 3, 0.08, 0.75 },
	};
	uint64_t draws = 23;

	(void)state;
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		uint32_t bad = 0, n;
		double least = 1;
		for (uint32_t i = 0; i < 200; i++) {
			const struct surface f = draw_surface(&draws, rows[r].noise);
			const double share = climb(&f, &draws, rows[r].budget_s * 1000000000, &n);
			bad += share < 0.95;
			least = fmin(least, share);
		}
		CHECK(bad <= 200 * rows[r].most && least >= rows[r].least,
			"row %zu: %u of 200 below 0.95, the least %.3f", r, bad, least);
	}
}

/* A hill among small requests, and one far away; the valley between is lower than either. */
static double two_hills(struct hd_ranges_knobs k, bool far_is_higher)
{
	const double q = log2(k.depth), b = log2(k.size_bytes);
	const double small = pow(q - 1, 2) + pow(b - 15, 2), far = pow(q - 5, 2) + pow(b - 21, 2);

	return 1e8 * (1 + (far_is_higher ? 2 : 3) * exp(-small / 8) + (far_is_higher ? 3 : 2) *
		exp(-far / 8));
}

static void a_hill_is_not_taken_for_the_highest(void **state)
{
	(void)state;
	for (uint32_t way = 0; way < 2; way++) {
		struct hd_tune t;
		begin(&t, HD_RANGES_MEMORY, 0, false);
		while (t.phase != HD_TUNE_KEEP)
			feed(&t, two_hills(hd_tune_knobs(&t), way), true);
		CHECK(two_hills(t.kept, way) > 3.8e8, "way %u: q %u, b %u", way, t.kept.depth,
			t.kept.size_bytes);
	}
}

/* A start ends within seven samples with most of what there is; and what has too little in flight to come to
 * that is not tried. */
static void where_latency_rules_most_is_there_at_once(void **state)
{
	static const struct made_store far[] = {
		{ 20e-3, 100e6, 900e6, 0.05 }, { 20e-3, 1e9, 600e6, 0.1 }, { 40e-3, 60e6, 1e9, 0.1 },
		{ 40e-3, 60e6, 100e6, 0.05 }, { 100e-3, 50e6, 400e6, 0.1 },
	};
	uint64_t draws = 3;

	(void)state;
	for (size_t s = 0; s < sizeof far / sizeof *far; s++)
		for (uint32_t seed = 0; seed < DRAWS(20); seed++) {
			struct hd_ranges_knobs least = { 0 };
			const double best = best_of(&far[s], HD_RANGES_MEMORY / 2, &least);
			struct hd_tune t;
			uint32_t n = 0;
			begin(&t, HD_RANGES_MEMORY / 2, 0, false);
			for (; t.phase == HD_TUNE_START; n++)
				feed(&t, truth(&far[s], hd_tune_knobs(&t)) *
					(1 + far[s].noise * (2 * draw(&draws) - 1)), true);
			CHECK(n <= 7 && truth(&far[s], t.best) >= 0.8 * best, "store %zu: %g of %g in %u",
				s, truth(&far[s], t.best), best, n);
			for (; t.phase == HD_TUNE_PROBE; feed(&t, truth(&far[s], hd_tune_knobs(&t)), true))
				CHECK(truth(&far[s], hd_tune_knobs(&t)) >= 0.1 * best,
					"store %zu: depth %u, size %u is tried", s, hd_tune_knobs(&t).depth,
					hd_tune_knobs(&t).size_bytes);
		}
}

/* Where no request is longer than 16 KiB a size of 64 has no more in flight for it. */
static void short_requests_are_counted_as_short(void **state)
{
	static const struct { uint32_t request_bytes, second; } rows[] = { { 0, 64 }, { 16 << 10, 256 } };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct hd_tune t;
		hd_tune_init(&t, &(struct hd_tune_rules){ .memory_bytes = HD_RANGES_MEMORY, .depth_first = 64,
			.depth_least = 8, .size_most = 64 << 10, .request_bytes = rows[i].request_bytes });
		assert_int_equal(hd_tune_knobs(&t).depth, 64);
		feed(&t, 64 * 16384 / 0.04, true);        /* 26 MB/s: half a second is 13 MB */
		assert_int_equal(hd_tune_knobs(&t).depth, rows[i].second);
	}
}

/* The first requests of a depth open connections: where most is to be had seems slow, once. */
static void what_is_cold_is_sampled_once_more(void **state)
{
	uint64_t warm = 1 << 20;
	struct hd_tune t;

	(void)state;
	begin(&t, HD_RANGES_MEMORY, 0, false);
	while (t.phase != HD_TUNE_KEEP) {
		const struct hd_ranges_knobs k = hd_tune_knobs(&t);
		const uint64_t bytes = (uint64_t)k.depth * k.size_bytes;
		feed(&t, two_hills(k, true) * (bytes > warm ? 0.25 : 1), true);
		warm = bytes > warm ? bytes : warm;
	}
	CHECK(two_hills(t.kept, true) > 3.8e8, "q %u, b %u", t.kept.depth, t.kept.size_bytes);
}

/* Searching ends with its budget, of time and of bytes, but for the sample that is under way. */
static void a_budget_is_kept_to(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		const uint64_t budget = UINT64_C(5000000) << i % 10;
		struct hd_tune t;
		begin(&t, HD_RANGES_MEMORY, 0, i % 3 == 0);
		t.rules.budget_bytes = i % 2 ? budget : 0;
		t.rules.budget_ns = i % 2 ? 0 : (int64_t)budget * 10;
		while (t.phase != HD_TUNE_KEEP)
			feed(&t, truth(&stores[i % 6], hd_tune_knobs(&t)), true);
		const int64_t budget_ns = (int64_t)budget * 10;
		CHECK(i % 2 ? t.spent_bytes < budget + 600000000 : t.spent_ns < budget_ns + 60000000,
			"case %u: %llu bytes, %lld ns", i, (unsigned long long)t.spent_bytes,
			(long long)t.spent_ns);
		assert_true(t.kept.depth && t.kept_value > 0);
	}
}

/* Without noise the depth beyond the knee is not paid for. */
static void no_more_depth_than_the_knee(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof stores / sizeof *stores; s++) {
		struct hd_ranges_knobs least = { 0 };
		const double best = best_of(&stores[s], HD_RANGES_MEMORY, &least);
		struct hd_tune t;
		begin(&t, HD_RANGES_MEMORY, 0, false);
		while (t.phase != HD_TUNE_KEEP)
			feed(&t, truth(&stores[s], hd_tune_knobs(&t)), true);
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
	begin(t, HD_RANGES_MEMORY, 0, false);
	while (t->phase != HD_TUNE_KEEP)
		feed(t, truth(&stores[4], hd_tune_knobs(t)), true);
}

static void what_nothing_waits_for_is_given_back(void **state)
{
	struct hd_tune t;

	(void)state;
	kept(&t);
	const struct hd_ranges_knobs k = t.kept;
	assert_true(k.depth > 2);
	for (uint32_t i = 0; i < HD_TUNE_QUIET; i++)
		feed(&t, 1e6, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth / 2);
	feed(&t, 1e6, true);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth);
	for (uint32_t i = 0; i < HD_TUNE_HOLD - 1; i++)
		feed(&t, t.kept_value, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth);
	feed(&t, t.kept_value, false);
	assert_int_equal(hd_tune_knobs(&t).depth, k.depth / 2);
}

static void three_slow_samples_with_waiting_search_again(void **state)
{
	struct hd_tune t;

	(void)state;
	kept(&t);
	feed(&t, 0.8 * t.kept_value, true);
	feed(&t, 0.8 * t.kept_value, true);
	feed(&t, 0.9 * t.kept_value, true);
	feed(&t, 0.8 * t.kept_value, true);
	feed(&t, 0.8 * t.kept_value, true);
	assert_int_equal(t.phase, HD_TUNE_KEEP);
	feed(&t, 0.8 * t.kept_value, true);
	assert_int_equal(t.phase, HD_TUNE_NEAR);
	assert_memory_equal(&t.best, &t.kept, sizeof t.kept);
}

/* Steps wait for nothing while it reads 64 at once: nothing better is looked for, and nothing worse tried. */
static void a_search_ends_where_no_step_waits(void **state)
{
	struct hd_tune t;
	uint32_t calm = 0;

	(void)state;
	begin(&t, HD_RANGES_MEMORY, 64 << 10, true);
	for (uint32_t n = 0; n < 100 && t.phase != HD_TUNE_KEEP; n++) {
		const struct hd_ranges_knobs k = hd_tune_knobs(&t);
		assert_true(k.size_bytes <= 64 << 10);
		calm = k.depth >= 64 ? calm + 1 : 0;
		feed(&t, truth(&stores[3], k), k.depth < 64);
	}
	assert_int_equal(calm, HD_TUNE_CALM);
	assert_int_equal(t.kept.depth, 64);
	/* what it read then is no measure: what steps want may be less. Waiting is. */
	for (uint32_t n = 0; n < 20; n++)
		feed(&t, 0.1 * t.kept_value, n % 3 != 0);
	assert_int_equal(t.phase, HD_TUNE_KEEP);
	for (uint32_t n = 0; n < 3; n++)
		feed(&t, 2 * t.kept_value, true);
	assert_int_equal(t.phase, HD_TUNE_NEAR);
	/* it is alone in that: waiting was once, and then not for a while */
	begin(&t, HD_RANGES_MEMORY, 0, true);
	for (uint32_t n = 0; n < 4 * (HD_TUNE_CALM - 1); n++) {
		feed(&t, truth(&stores[3], hd_tune_knobs(&t)), n % HD_TUNE_CALM == 0);
		assert_true(t.phase != HD_TUNE_KEEP);
	}
}

static void equal_samples_make_equal_knobs(void **state)
{
	struct hd_tune a, b;
	uint64_t draws = 11;

	(void)state;
	begin(&a, HD_RANGES_MEMORY, 0, true);
	begin(&b, HD_RANGES_MEMORY, 0, true);
	for (uint32_t i = 0; i < 2000; i++) {
		const double x = truth(&stores[3], hd_tune_knobs(&a)) * (0.9 + 0.2 * draw(&draws));
		feed(&a, x, i % 3 != 0);
		feed(&b, x, i % 3 != 0);
		const struct hd_ranges_knobs p = hd_tune_knobs(&a), q = hd_tune_knobs(&b);
		assert_memory_equal(&p, &q, sizeof p);
		assert_true(a.phase == b.phase && a.round == b.round && a.nseen == b.nseen);
	}
}

static void stopped_it_keeps_the_best_so_far(void **state)
{
	static const double probes[] = { 1e6, 5e6, 4e6 };
	struct hd_tune tune;

	(void)state;
	begin(&tune, HD_RANGES_MEMORY, 0, false);
	for (size_t i = 0; i < 3; i++)
		feed(&tune, probes[i], true);
	hd_tune_stop(&tune);
	assert_int_equal(tune.phase, HD_TUNE_KEEP);
	assert_int_equal(tune.kept.depth, 4);
	assert_int_equal(tune.kept.size_bytes, 64 << 10);
	assert_true(tune.kept_value == 5e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_kept_to_and_the_best_of_few_stores_found),
		cmocka_unit_test(of_200_surfaces_the_optimum_is_reached),
		cmocka_unit_test(a_hill_is_not_taken_for_the_highest),
		cmocka_unit_test(where_latency_rules_most_is_there_at_once),
		cmocka_unit_test(short_requests_are_counted_as_short),
		cmocka_unit_test(what_is_cold_is_sampled_once_more),
		cmocka_unit_test(a_budget_is_kept_to),
		cmocka_unit_test(no_more_depth_than_the_knee),
		cmocka_unit_test(what_nothing_waits_for_is_given_back),
		cmocka_unit_test(three_slow_samples_with_waiting_search_again),
		cmocka_unit_test(a_search_ends_where_no_step_waits),
		cmocka_unit_test(equal_samples_make_equal_knobs),
		cmocka_unit_test(stopped_it_keeps_the_best_so_far),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
