/* Points: a grid has each combination once, a Sobol sequence is the published one and fills evenly, what is
 * drawn stays where it was. */
#include "sweep/draw.h"

#include <stdlib.h>
#include <string.h>

#include "sweep/sobol.h"
#include "tests/check.h"

/* Rows of SciPy 1.17.1, qmc.Sobol(21, scramble=False, bits=32).random(64), times 64, the first 16 columns. */
static void a_sobol_sequence_is_the_published_one(void **state)
{
	static const struct { uint32_t i; uint8_t at[HD_SOBOL_DIMENSIONS]; } rows[] = {
		{ 0, { 0 } },
		{ 1, { 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32 } },
		{ 2, { 48, 16, 16, 16, 48, 48, 16, 48, 48, 48, 48, 48, 16, 16, 48, 16 } },
		{ 3, { 16, 48, 48, 48, 16, 16, 48, 16, 16, 16, 16, 16, 48, 48, 16, 48 } },
		{ 5, { 56, 56, 8, 24, 56, 40, 56, 24, 24, 8, 24, 56, 56, 8, 56, 24 } },
		{ 7, { 8, 40, 24, 8, 8, 24, 40, 40, 40, 56, 40, 8, 40, 24, 8, 8 } },
		{ 20, { 30, 6, 54, 18, 10, 54, 58, 14, 38, 34, 62, 2, 50, 2, 14, 58 } },
		{ 37, { 59, 41, 37, 59, 49, 19, 11, 51, 39, 11, 1, 5, 37, 55, 7, 31 } },
		{ 63, { 1, 51, 23, 29, 55, 9, 37, 9, 53, 37, 27, 43, 35, 49, 21, 49 } },
	};
	(void)state;

	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (uint32_t d = 0; d < HD_SOBOL_DIMENSIONS; d++)
			CHECK(hd_sobol(rows[r].i, d) == (uint32_t)rows[r].at[d] << 26,
				"point %u, dimension %u: %u/64",
				rows[r].i, d, hd_sobol(rows[r].i, d) >> 26);
}

static void of_the_first_powers_of_two_points_each_interval_has_one(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 10; k++)
		for (uint32_t d = 0; d < HD_SOBOL_DIMENSIONS; d++) {
			uint8_t has[1024] = { 0 };
			for (uint32_t i = 0; i < 1u << k; i++)
				has[hd_sobol(i, d) >> (32 - k)]++;
			for (uint32_t i = 0; i < 1u << k; i++)
				CHECK(has[i] == 1, "2^%u points, dimension %u: interval %u has %u", k, d, i,
					has[i]);
		}
}

static struct hd_sweep a_sweep(enum hd_sweep_method draw, uint64_t seed)
{
	return (struct hd_sweep){ .method = draw, .draw = draw, .seed = seed, .ntrials = 24, .naxes = 4,
		.axis = { { .key = "a", .kind = HD_SWEEP_AXIS_LOG, .from = 1e-4, .to = 1e-1, .n = 4 },
			{ .key = "b", .kind = HD_SWEEP_AXIS_CHOICE, .n = 3, .choice = { "x", "y", "z" } },
			{ .key = "c", .kind = HD_SWEEP_AXIS_INT, .from = 3, .to = 6, .n = 2 },
			{ .key = "d", .kind = HD_SWEEP_AXIS_LINEAR, .from = -1, .to = 1, .n = 1 } } };
}

static void a_grid_has_each_combination_once_with_both_ends_of_a_range(void **state)
{
	static const char *const want[4][4] = { { "0.0001", "0.001", "0.01", "0.1" }, { "x", "y", "z" },
		{ "3", "6" }, { "-1" } };
	const struct hd_sweep s = a_sweep(HD_SWEEP_GRID, 0);
	uint32_t trial = 0;
	struct hd_sweep_value room;
	(void)state;

	for (uint32_t a = 0; a < 4; a++)
		for (uint32_t b = 0; b < 3; b++)
			for (uint32_t c = 0; c < 2; c++, trial++) {
				assert_string_equal(hd_sweep_value(&s, trial, 0, &room), want[0][a]);
				assert_string_equal(hd_sweep_value(&s, trial, 1, &room), want[1][b]);
				assert_string_equal(hd_sweep_value(&s, trial, 2, &room), want[2][c]);
				assert_string_equal(hd_sweep_value(&s, trial, 3, &room), want[3][0]);
			}
	CHECK(trial == s.ntrials, "%u", trial);
}

static void what_is_drawn_lies_in_its_range_and_whole_numbers_are_equally_likely(void **state)
{
	static const enum hd_sweep_method ways[] = { HD_SWEEP_RANDOM, HD_SWEEP_SOBOL };
	struct hd_sweep_value room;
	(void)state;

	for (size_t w = 0; w < 2; w++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			const struct hd_sweep s = a_sweep(ways[w], seed);
			uint32_t low = 0, of[4] = { 0 }, x = 0;
			for (uint32_t i = 0; i < 1024; i++) {
				double v = strtod(hd_sweep_value(&s, i, 0, &room), NULL);
				CHECK(v >= 1e-4 && v <= 1e-1, "%g", v);
				low += v < 3.1622776e-3;
				x += !strcmp(hd_sweep_value(&s, i, 1, &room), "x");
				v = strtod(hd_sweep_value(&s, i, 2, &room), NULL);
				CHECK(v >= 3 && v <= 6 && v == (int)v, "%g", v);
				of[(int)v - 3]++;
			}
			/* binomial: five deviations of 1024 draws are 80 of a half, 69 of a quarter,
				75 of a third */
			CHECK(low > 432 && low < 592 && x > 266 && x < 417, "%u low, %u x", low, x);
			for (int k = 0; k < 4; k++)
				CHECK(of[k] > 187 && of[k] < 325, "%u of %d", of[k], k + 3);
		}
}

static void a_seed_moves_points_and_the_number_of_trials_does_not(void **state)
{
	struct hd_sweep s = a_sweep(HD_SWEEP_RANDOM, 1), t = a_sweep(HD_SWEEP_RANDOM, 2);
	struct hd_sweep_value one, two;
	(void)state;

	CHECK(strcmp(hd_sweep_value(&s, 3, 0, &one), hd_sweep_value(&t, 3, 0, &two)) != 0, "%s", one.text);
	t.seed = 1;
	t.ntrials = 1000;
	assert_string_equal(hd_sweep_value(&s, 3, 0, &one), hd_sweep_value(&t, 3, 0, &two));
	s.draw = t.draw = HD_SWEEP_SOBOL;
	s.seed = 0;
	assert_string_equal(hd_sweep_value(&s, 0, 3, &one), "-1");        /* point 0, not shifted */
	CHECK(strcmp(hd_sweep_value(&t, 0, 3, &two), "-1") != 0, "a seed shifts nothing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sobol_sequence_is_the_published_one),
		cmocka_unit_test(of_the_first_powers_of_two_points_each_interval_has_one),
		cmocka_unit_test(a_grid_has_each_combination_once_with_both_ends_of_a_range),
		cmocka_unit_test(what_is_drawn_lies_in_its_range_and_whole_numbers_are_equally_likely),
		cmocka_unit_test(a_seed_moves_points_and_the_number_of_trials_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
