#include "plan/collective_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const struct hd_collective_costs lan = { 100, 2, 0.5, 10, 1.5 };

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b) + 1e-12; }

/* Numbers of the header's table, worked out by hand. */
static void predictions_are_those_of_the_table(void **state)
{
	static const struct { enum hd_collective kind; struct hd_collective_shape shape; double ns;
		} rows[] = {
		/* p 4, n 1000: 2 (100 + 30) + 2 * 750 * 3 + 750 * .5 */
		{ HD_COLLECTIVE_DIRECT, { .p = 4 }, 260 + 4500 + 375 },
		/* r 2: 3 * 750 * 3, (8 - 1) / 4 * 1000 * .5 */
		{ HD_COLLECTIVE_DIRECT, { .p = 4, .roots = 2 }, 260 + 6750 + 875 },
		{ HD_COLLECTIVE_OWNER, { .p = 4 }, 260 + 18000 + 1500 },
		{ HD_COLLECTIVE_OWNER, { .p = 4, .owners = 2 }, 260 + 9000 + 750 },
		{ HD_COLLECTIVE_HALVING, { .p = 4 }, 400 + 3000 + 375 },
		{ HD_COLLECTIVE_DOUBLING, { .p = 4 }, 200 + 4000 + 1000 },
		/* 3 ranks: one fold, 200 + 4000 + 500, then two of them */
		{ HD_COLLECTIVE_HALVING, { .p = 3 }, 4700 + 200 + 2000 + 250 },
		{ HD_COLLECTIVE_DOUBLING, { .p = 5 }, 9400 + 100 + 2000 + 500 },
		{ HD_COLLECTIVE_RING, { .p = 4 }, 600 + 3000 + 375 },
		/* h 2, 3 + k rounds */
		{ HD_COLLECTIVE_TREE, { .p = 4 }, 4 * (100 + 4000 + 500) },
		{ HD_COLLECTIVE_TREE, { .p = 4, .segments = 5 }, 8 * (100 + 900) },
		/* direct of 2 with 1000, then of 2 with 500 */
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 4, .node = 2 }, (220 + 3000 + 250) + (220 + 1500 + 125) },
		{ HD_COLLECTIVE_DIRECT, { .p = 1 }, 0 },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double ns = hd_collective_predict(rows[i].kind, &rows[i].shape, 1000, &lan, &lan);
		CHECK(near(ns, rows[i].ns), "row %u: %g, not %g", i, ns, rows[i].ns);
	}
}

static void the_choice_is_the_least_of_the_legal_ones(void **state)
{
	struct hd_collective_table table;
	uint32_t taken = 0;

	(void)state;
	hd_collective_table_init(&table);
	for (uint32_t p = 2; p <= 17; p++)
		for (uint32_t form = 0; form < 8; form++)
			for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes *= 8) {
				struct hd_collective_shape s = { .p = p, .node = form & 4 ? 4 : 0, .fast =
					form & 1,
					.ragged = form & 2, .segments = 4 };
				double ns, least = INFINITY;
				enum hd_collective kind = hd_collective_choose(&table, &s, bytes, &ns),
					best = kind;
				for (uint32_t k = HD_COLLECTIVE_COUNT; k-- > 0;) {
					double it = hd_collective_expect(&table, (enum hd_collective)k, &s,
						bytes);
					if (it <= least && !hd_collective_check((enum hd_collective)k, &s,
						NULL)) {
						least = it;
						best = (enum hd_collective)k;
					}
				}
				CHECK(kind == best && near(ns, least),
					"%u ranks, form %u, %llu bytes: %s, not %s", p, form,
					(unsigned long long)bytes, hd_collective_word(kind),
						hd_collective_word(best));
				taken |= 1u << kind;
			}
	/* a choice that is always one proves little */
	CHECK(__builtin_popcount(taken) >= 4, "only %x is ever chosen", taken);
}

static void what_is_unusable_is_not_chosen(void **state)
{
	struct hd_collective_table table;
	struct hd_collective_shape s = { .p = 8 };
	double ns;

	(void)state;
	hd_collective_table_init(&table);
	enum hd_collective first = hd_collective_choose(&table, &s, 1 << 24, &ns);
	assert_true(first != HD_COLLECTIVE_DIRECT);
	table.ratio[first][24] = -1;
	assert_true(hd_collective_choose(&table, &s, 1 << 24, &ns) != first);
	assert_int_equal(hd_collective_choose(&table, &s, 1 << 25, &ns), first);
	for (uint32_t k = 1; k < HD_COLLECTIVE_COUNT; k++)
		table.ratio[k][24] = -1;
	assert_int_equal(hd_collective_choose(&table, &s, 1 << 24, &ns), HD_COLLECTIVE_DIRECT);
}

static uint32_t seed = 1;
static double draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) / 16777216.0;
}

static const enum hd_collective fitted[] = { HD_COLLECTIVE_DIRECT, HD_COLLECTIVE_OWNER, HD_COLLECTIVE_HALVING,
	HD_COLLECTIVE_DOUBLING, HD_COLLECTIVE_RING };
enum { FITTED = sizeof fitted / sizeof *fitted, SIZES = 8 };

static uint32_t sample_all(struct hd_collective_sample *sample, const struct hd_collective_costs *c,
	uint32_t p,
	double noise)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < FITTED; k++)
		for (uint32_t i = 0; i < SIZES; i++) {
			struct hd_collective_sample *s = &sample[n++];
			*s = (struct hd_collective_sample){ fitted[k], { .p = p },
				UINT64_C(1024) << 2 * i, 0 };
			s->ns = hd_collective_predict(s->kind, &s->shape, s->bytes, c, c) * (1 + noise *
				(draw() - 0.5));
		}
	return n;
}

static double error_of(const struct hd_collective_costs *c, const struct hd_collective_sample *sample,
	uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		double e = hd_collective_predict(sample[i].kind, &sample[i].shape, sample[i].bytes, c,
			c) / sample[i].ns - 1;
		sum += e * e;
	}
	return sum;
}

static void a_fit_finds_the_costs_that_made_the_times(void **state)
{
	struct hd_collective_sample sample[FITTED * SIZES];

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		struct hd_collective_costs c = { 1000 + 1e5 * draw(), 0.1 + 10 * draw(), 0.05 + draw(),
			100 + 5000 * draw(),
			1 + 2 * draw() }, got;
		uint32_t n = sample_all(sample, &c, 3 + i % 6, 0);
		assert_int_equal(hd_collective_fit(&got, sample, n, NULL), HD_OK);
		CHECK(error_of(&got, sample, n) < 1e-8, "draw %u: %g ns, %g ns/B: error %g", i, got.alpha_ns,
			got.beta_ns, error_of(&got, sample, n));
		CHECK(fabs(got.alpha_ns / c.alpha_ns - 1) < 1e-3 && fabs(got.beta_ns / c.beta_ns -
			1) < 1e-3 &&
			fabs(got.gamma_ns / c.gamma_ns - 1) < 1e-3 && fabs(got.overhead_ns / c.overhead_ns -
				1) < 1e-3 &&
			fabs(got.incast / c.incast - 1) < 1e-3, "draw %u", i);
	}
}

/* No step from the fit, within the bounds, is better: it is the minimum of a convex function. */
static void a_fit_of_noisy_times_is_the_best_within_bounds(void **state)
{
	struct hd_collective_sample sample[FITTED * SIZES];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		struct hd_collective_costs c = { 1e5 * draw(), 10 * draw(), i % 3 ? draw() : 0, i % 2 ?
			5000 * draw() : 0,
			i % 5 ? 1 + draw() : 1 }, got;
		uint32_t n = sample_all(sample, &c, 2 + i % 7, 0.6);
		assert_int_equal(hd_collective_fit(&got, sample, n, NULL), HD_OK);
		double best = error_of(&got, sample, n);
		CHECK(got.alpha_ns >= 0 && got.beta_ns >= 0 && got.gamma_ns >= 0 && got.overhead_ns >= 0 &&
			got.incast >= 1, "draw %u: a bound is broken", i);
		CHECK(best <= error_of(&c, sample, n) + 1e-6, "draw %u: what made the times is better", i);
		for (uint32_t d = 0; d < 10; d++) {
			struct hd_collective_costs other = got;
			double *at[] = { &other.alpha_ns, &other.beta_ns, &other.gamma_ns,
				&other.overhead_ns, &other.incast };
			const double step[] = { 100, 0.01, 0.01, 10, 0.01 }, least[] = { 0, 0, 0, 0, 1 };
			*at[d / 2] += d % 2 ? step[d / 2] : -step[d / 2];
			if (*at[d / 2] >= least[d / 2] && other.incast <= HD_COLLECTIVE_INCAST)
				CHECK(error_of(&other, sample, n) >= best - 1e-6,
					"draw %u: step %u is better: %g %g %g %g %g", i, d, got.alpha_ns,
					got.beta_ns, got.gamma_ns, got.overhead_ns, got.incast);
		}
	}
}

static void samples_that_say_nothing_are_refused(void **state)
{
	struct hd_collective_costs c;
	struct hd_collective_sample bad[] = {
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 4, .node = 2 }, 8, 1 }, { HD_COLLECTIVE_RING, { .p = 4 }, 0, 1 },
		{ HD_COLLECTIVE_RING, { .p = 4 }, 8, 0 }, { HD_COLLECTIVE_RING, { .p = 1 }, 8, 1 },
	};

	(void)state;
	assert_int_equal(hd_collective_fit(&c, NULL, 0, NULL), HD_E_INVAL);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(hd_collective_fit(&c, &bad[i], 1, NULL), HD_E_INVAL);
	/* one sample tells one cost: the times that it has are met */
	struct hd_collective_sample one = { HD_COLLECTIVE_DIRECT, { .p = 2 }, 1 << 20, 5e6 };
	assert_int_equal(hd_collective_fit(&c, &one, 1, NULL), HD_OK);
	assert_true(near(hd_collective_predict(one.kind, &one.shape, one.bytes, &c, &c), 5e6));
}

static void a_measurement_moves_its_ratio_by_a_tenth(void **state)
{
	struct hd_collective_table table;
	struct hd_collective_sample s = { HD_COLLECTIVE_RING, { .p = 4 }, 5000, 0 };
	double *ratio = &table.ratio[HD_COLLECTIVE_RING][12];

	(void)state;
	hd_collective_table_init(&table);
	double base = hd_collective_expect(&table, s.kind, &s.shape, s.bytes);
	s.ns = 3 * base;
	hd_collective_refine(&table, &s);
	assert_true(near(*ratio, 1.2));
	hd_collective_refine(&table, &s);
	assert_true(near(*ratio, 0.9 * 1.2 + 0.3));
	assert_true(near(table.ratio[HD_COLLECTIVE_RING][13], 1) &&
		near(table.ratio[HD_COLLECTIVE_DIRECT][12], 1));
	s.ns = 1000 * base;
	hd_collective_refine(&table, &s);
	assert_true(near(*ratio, 8));
	s.ns = base * 1e-6;
	for (uint32_t i = 0; i < 100; i++)
		hd_collective_refine(&table, &s);
	assert_true(near(*ratio, 0.125));
	*ratio = -1;
	hd_collective_refine(&table, &s);
	assert_true(near(*ratio, -1));
}

static void segments_balance_latency_and_bytes(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= 33; p++)
		for (uint64_t n = 1; n < 1 << 30; n *= 4) {
			struct hd_collective_shape s = { .p = p, .segments = hd_collective_segments(&lan, p,
				n, 64) };
			double it = hd_collective_predict(HD_COLLECTIVE_TREE, &s, n, &lan, &lan), best =
				INFINITY;
			for (s.segments = 1; s.segments <= 64; s.segments++) {
				double other = hd_collective_predict(HD_COLLECTIVE_TREE, &s, n, &lan, &lan);
				best = other < best ? other : best;
			}
			CHECK(it <= 1.05 * best, "%u ranks, %llu bytes: %g, not %g", p,
				(unsigned long long)n, it, best);
		}
}

static const char example[] = "# by hand\nheddle-collectives 1\nlink local 12000 0.21 0.09 400 1.25\n"
	"ratio ring 20 1.25   # slow\nratio tree 30 -1\n";

static void tables_read_back_as_they_print(void **state)
{
	struct hd_collective_table table, again;
	struct hd_diag diag = { "" };
	char one[4096], two[4096];
	struct hd_text text;

	(void)state;
	CHECK(!hd_collective_table_parse(&table, example, strlen(example), "f", &diag), "%s", diag.text);
	assert_true(near(table.link[HD_COLLECTIVE_LOCAL].incast, 1.25) &&
		near(table.link[HD_COLLECTIVE_REMOTE].alpha_ns, 100000));
	assert_true(table.ratio[HD_COLLECTIVE_TREE][30] < 0 && near(table.ratio[HD_COLLECTIVE_RING][20],
		1.25));
	hd_text_fixed(&text, one, sizeof one);
	hd_collective_table_print(&table, &text);
	assert_int_equal(hd_collective_table_parse(&again, one, text.len, "f", NULL), HD_OK);
	assert_memory_equal(&table, &again, sizeof table);
	hd_text_fixed(&text, two, sizeof two);
	hd_collective_table_print(&again, &text);
	assert_string_equal(one, two);
}

static void broken_tables_are_refused_with_a_place(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{ "", "f:0:1: the first line" }, { "heddle-collectives 2\n", "f:1:1: the first line" },
		{ "heddle-collectives 1 2\n", "the first line" }, { "heddle-collectives 1\nring 1\n", "f:2:1: a line begins" },
		{ "heddle-collectives 1\nlink near 1 1 1 1 1\n", "f:2:6: a link is" },
		{ "heddle-collectives 1\nlink\n", "local or remote is missing" },
		{ "heddle-collectives 1\nlink local 1 1 1 1\n", "f:2:19: incast is missing" },
		{ "heddle-collectives 1\nlink local 1 1 1 1 0.5\n", "incast is a number from 1" },
		{ "heddle-collectives 1\nlink local -1 1 1 1 1\n", "alpha is a number from 0" },
		{ "heddle-collectives 1\nlink local 1 1 1 1 1 1\n", "more than the line" },
		{ "heddle-collectives 1\nlink local 1 1 1 1 1\nlink local 1 1 1 1 1\n", "f:3:6: local is there twice" },
		{ "heddle-collectives 1\nratio rings 1 1\n", "f:2:7: no primitive" },
		{ "heddle-collectives 1\nratio ring 41 1\n", "plain number up to 40" },
		{ "heddle-collectives 1\nratio ring 1 0.1\n", "0.125 to 8, or -1" },
		{ "heddle-collectives 1\nratio ring 1 nan\n", "ratio is a number" },
		{ "heddle-collectives 1\nratio direct 1 -1\n", "direct cannot be unusable" },
		{ "heddle-collectives 1\nratio ring 1\n", "ratio is missing" },
		{ "heddle-collectives 1\nratio ring\n", "size class is missing" },
		{ "heddle-collectives 1\nratio\n", "the primitive is missing" },
		{ "heddle-collectives 1\nratio ring 1 0000000000000000000000000000000000000000000000001\n", "is no number" },
	};
	struct hd_collective_table table, before;

	(void)state;
	hd_collective_table_init(&table);
	before = table;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_collective_table_parse(&table, rows[i].text, strlen(rows[i].text), "f", &diag) ==
			HD_E_INPUT &&
			strstr(diag.text, rows[i].says), "row %u: %s", i, diag.text);
		assert_memory_equal(&table, &before, sizeof table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_are_those_of_the_table),
		cmocka_unit_test(the_choice_is_the_least_of_the_legal_ones),
		cmocka_unit_test(what_is_unusable_is_not_chosen),
		cmocka_unit_test(a_fit_finds_the_costs_that_made_the_times),
		cmocka_unit_test(a_fit_of_noisy_times_is_the_best_within_bounds),
		cmocka_unit_test(samples_that_say_nothing_are_refused),
		cmocka_unit_test(a_measurement_moves_its_ratio_by_a_tenth),
		cmocka_unit_test(segments_balance_latency_and_bytes),
		cmocka_unit_test(tables_read_back_as_they_print),
		cmocka_unit_test(broken_tables_are_refused_with_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
