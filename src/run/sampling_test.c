#include "run/sampling.h"

#include <math.h>

#include "base/philox.h"
#include "tests/check.h"

/* Tokens were computed beforehand in Python: Philox4x32-10 written from its paper, numpy's exp, cumsum and
 * searchsorted. No draw lies nearer than 1e-6 to an edge between two tokens. */

enum { VOCAB = 8, DRAWN = 16 };
static const float logits[VOCAB] = { 0.5f, -1, 2, 0, 1.5f, -3, 2, 0.25f };

static struct hd_sampling sampling_of(double temperature, uint64_t seed)
{
	return (struct hd_sampling){ temperature, hd_philox_key(seed, HD_RNG_USER) };
}

static void tokens_are_those_of_another_program(void **state)
{
	static const struct { double temperature; uint64_t seed, first; uint32_t want[DRAWN]; } cases[] = {
		{ 0.8, 0, 0, { 2, 6, 0, 7, 6, 7, 6, 2, 0, 2, 6, 2, 1, 6, 2, 2 } },
		{ 0.8, 7, 0, { 4, 2, 3, 6, 6, 0, 3, 2, 6, 4, 2, 6, 2, 4, 4, 6 } },
		{ 2, 7, 0, { 4, 1, 3, 6, 6, 0, 3, 2, 6, 4, 2, 6, 2, 4, 4, 6 } },
		{ 100, 1, 0, { 4, 4, 6, 3, 6, 7, 7, 1, 6, 5, 7, 7, 7, 3, 7, 0 } },
		{ 0.05, 3, 0, { 2, 6, 6, 6, 2, 2, 6, 2, 6, 2, 6, 2, 2, 2, 6, 6 } },
		{ 0.8, 7, UINT64_C(4294967296), { 6, 2, 6, 6, 0, 4, 6, 2, 0, 2, 0, 6, 2, 2, 4, 7 } },
		{ 0.8, UINT64_C(1099511627776), 5, { 2, 6, 6, 4, 2, 4, 4, 2, 7, 6, 2, 2, 2, 2, 2, 0 } },
	};
	double weight[VOCAB];
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		const struct hd_sampling s = sampling_of(cases[c].temperature, cases[c].seed);
		for (uint32_t i = 0; i < DRAWN; i++) {
			uint32_t got = hd_sampling_token(&s, logits, VOCAB, cases[c].first + i, weight);
			CHECK(got == cases[c].want[i], "case %zu, token %u: %u", c, i, got);
		}
	}
}

static void temperature_0_takes_the_first_of_the_likeliest(void **state)
{
	const struct hd_sampling s = sampling_of(0, 5);
	(void)state;

	for (uint64_t at = 0; at < 50; at++)
		assert_int_equal(hd_sampling_token(&s, logits, VOCAB, at, NULL), 2);
	assert_int_equal(hd_sampling_largest(logits + 3, 5), 3);
	assert_int_equal(hd_sampling_largest(logits + 5, 1), 0);
}

static void a_vocabulary_of_one_token_has_no_choice(void **state)
{
	static const float one[] = { -70 };
	double weight[1];
	(void)state;

	for (uint64_t at = 0; at < 50; at++) {
		const struct hd_sampling warm = sampling_of(0.8, at), cold = sampling_of(0, at);
		assert_int_equal(hd_sampling_token(&warm, one, 1, at, weight), 0);
		assert_int_equal(hd_sampling_token(&cold, one, 1, at, weight), 0);
	}
}

/* Large logits must not overflow: what counts is their difference. */
static void a_shift_of_all_logits_changes_nothing(void **state)
{
	const struct hd_sampling s = sampling_of(0.8, 7);
	float high[VOCAB];
	double weight[VOCAB];
	(void)state;

	for (uint32_t v = 0; v < VOCAB; v++)
		high[v] = logits[v] + 65536;
	for (uint64_t at = 0; at < 200; at++)
		assert_int_equal(hd_sampling_token(&s, high, VOCAB, at, weight),
			hd_sampling_token(&s, logits, VOCAB, at, weight));
}

static void a_token_of_probability_0_is_never_drawn(void **state)
{
	static const float masked[] = { -INFINITY, 0, -INFINITY, 0, -INFINITY };
	const struct hd_sampling s = sampling_of(100, 9);
	uint32_t times[5] = { 0 };
	double weight[5];
	(void)state;

	for (uint64_t at = 0; at < 1000; at++)
		times[hd_sampling_token(&s, masked, 5, at, weight)]++;
	assert_int_equal(times[1] + times[3], 1000);
	assert_in_range(times[1], 400, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_those_of_another_program),
		cmocka_unit_test(temperature_0_takes_the_first_of_the_likeliest),
		cmocka_unit_test(a_vocabulary_of_one_token_has_no_choice),
		cmocka_unit_test(a_shift_of_all_logits_changes_nothing),
		cmocka_unit_test(a_token_of_probability_0_is_never_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
