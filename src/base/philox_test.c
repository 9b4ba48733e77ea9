#include "base/philox.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

static void known_answers_of_the_paper_hold(void **state)
{
	static const struct { uint32_t counter[4]; uint64_t key; uint32_t want[4]; } cases[] = {
		{ { 0, 0, 0, 0 }, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u, ~0u, ~0u }, ~UINT64_C(0), { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, UINT64_C(0x299f31d0a4093822),
			{ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },       /* digits of pi, from the authors' test vectors */
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_philox got = hd_philox(cases[i].counter, cases[i].key);
		CHECK(memcmp(got.word, cases[i].want, sizeof got.word) == 0, "case %zu", i);
	}
}

static void known_answer_of_the_model_domain_holds(void **state)
{
	static const uint32_t want[4] = { 0x0a7a0216, 0xb54dcfa2, 0x57ac9a10, 0xddd92bbd };
	struct hd_philox got = hd_philox_model(17, 5, 3, 7, 0);
	(void)state;

	assert_int_equal(hd_philox_key(17, HD_RNG_MODEL), UINT64_C(0x3c6ef372fe94f83b));
	assert_memory_equal(got.word, want, sizeof want);
}

static void every_field_of_the_model_counter_is_told_apart(void **state)
{
	static const struct { uint64_t step; uint32_t vn, op; uint64_t block; } at[] = {
		{ 5, 3, 7, 0 }, { 6, 3, 7, 0 }, { 5, 4, 7, 0 }, { 5, 3, 8, 0 }, { 5, 3, 7, 1 },
		{ UINT64_C(5) + (UINT64_C(1) << 32), 3, 7, 0 }, { UINT64_C(5) + (UINT64_C(1) << 43), 3, 7, 0 },
		{ 5, 3 + (1u << 19), 7, 0 }, { 5, 3, 7, UINT32_MAX },
	};
	enum { N = sizeof at / sizeof at[0] };
	struct hd_philox got[N];
	(void)state;

	for (size_t i = 0; i < N; i++) {
		got[i] = hd_philox_model(17, at[i].step, at[i].vn, at[i].op, at[i].block);
		for (size_t j = 0; j < i; j++)
			CHECK(memcmp(&got[i], &got[j], sizeof got[i]) != 0, "%zu and %zu", i, j);
	}
}

static void a_step_of_2_to_32_sits_above_the_virtual_node(void **state)
{
	const uint32_t counter[4] = { 9, 7, 5, 3 | 1u << 20 };
	struct hd_philox want = hd_philox(counter, hd_philox_key(17, HD_RNG_MODEL));
	struct hd_philox got = hd_philox_model(17, (UINT64_C(1) << 32) + 5, 3, 7, 9);
	(void)state;

	assert_memory_equal(&got, &want, sizeof got);
}

static void masks_are_keyed_by_sample_and_position(void **state)
{
	const uint32_t counter[4] = { 5 | 3u << 20, 9, 7, 0xabcdef01 };
	struct hd_philox want = hd_philox(counter, hd_philox_key(11, HD_RNG_MASK)),
		got = hd_philox_mask(11, (UINT64_C(3) << 32) + 7, 9, 0xabcdef01, 5);

	(void)state;
	assert_memory_equal(&got, &want, sizeof want);
	assert_true(HD_RNG_MASK == 7);                 /* a number of checkpoints' runs: never another */
}

static void uniforms_are_in_0_1_and_exact(void **state)
{
	(void)state;
	assert_true(hd_uniform(0) == 0.0f && hd_uniform(255) == 0.0f && hd_uniform(256) == 0x1p-24f);
	assert_true(hd_uniform(UINT32_MAX) == 1.0f - 0x1p-24f);
}

static void dropout_thresholds_are_the_floor_of_p_times_2_to_32(void **state)
{
	(void)state;
	assert_int_equal(hd_keep_from(0.0), 0);
	assert_int_equal(hd_keep_from(0.5), 0x80000000u);
	assert_int_equal(hd_keep_from(0.1), 429496729u);
}

/* The host's libm is the oracle; it may be off by a unit, and so may the rounding to f32. */
static void normals_agree_with_libm_at_the_edges_and_in_the_middle(void **state)
{
	static const uint32_t edge[] = {
		0, 1, 2, 255, 0x1fffffff, 0x20000000, 0x3fffffff, 0x40000000, 0x60000000, 0x7fffffff,
			0x80000000,
		0x80000001, 0xa0000000, 0xb504f333, 0xbfffffff, 0xc0000000, 0xdfffffff, 0xe0000000,
		0xfffffffe, 0xffffffff,
	};
	enum { N = sizeof edge / sizeof edge[0], DRAWN = 20000 };
	(void)state;

	for (uint32_t i = 0; i < N * N + DRAWN; i++) {
		struct hd_philox drawn = hd_philox((uint32_t[4]){ i, 0, 0, 0 }, 1);
		uint32_t u = i < N * N ? edge[i / N] : drawn.word[0],
			v = i < N * N ? edge[i % N] : drawn.word[1];
		double r = sqrt(-2.0 * log((u + 0.5) / 4294967296.0)),
			a = v / 4294967296.0 * 2.0 * acos(-1.0);
		double want[2] = { r * cos(a), r * sin(a) };
		float got[2];
		hd_normal2(u, v, got);
		for (int k = 0; k < 2; k++)
			CHECK(fabs(got[k] - want[k]) <= fabs(want[k]) * 0x1p-23 + r * 1e-15,
				"u %08x v %08x: %.9g, not %.17g", u, v, (double)got[k], want[k]);
	}
}

/* Bits pinned, so that a change of compiler, flags or series shows. */
static void normals_keep_their_bits(void **state)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	(void)state;

	for (uint32_t i = 0; i < 100000; i++) {
		struct hd_philox drawn = hd_philox((uint32_t[4]){ i, 1, 2, 3 }, 99);
		uint32_t bits[2];
		float out[2];
		hd_normal2(drawn.word[0], drawn.word[1], out);
		memcpy(bits, out, sizeof bits);
		hash = ((hash ^ bits[0]) * UINT64_C(0x100000001b3) ^ bits[1]) * UINT64_C(0x100000001b3);
	}
	CHECK(hash == UINT64_C(0x8590bb34e82aba5c), "%016llx", (unsigned long long)hash);
}

static void normals_have_mean_0_variance_1_and_the_right_tails(void **state)
{
	enum { N = 400000 };
	double sum = 0, squares = 0;
	int beyond2 = 0;
	(void)state;

	for (uint32_t i = 0; i < N / 2; i++) {
		struct hd_philox drawn = hd_philox((uint32_t[4]){ i, 0, 0, 0 },
			hd_philox_key(3, HD_RNG_INIT));
		float out[2];
		hd_normal2(drawn.word[0], drawn.word[1], out);
		for (int k = 0; k < 2; k++) {
			sum += out[k];
			squares += (double)out[k] * out[k];
			beyond2 += fabsf(out[k]) > 2;
		}
	}
	/* five standard errors: 1/sqrt(N), sqrt(2/N), sqrt(p(1-p)/N) with p = 0.0455 */
	CHECK(fabs(sum / N) < 0.0079 && fabs(squares / N - 1) < 0.0112, "mean %g, variance %g", sum / N,
		squares / N);
	CHECK(fabs((double)beyond2 / N - 0.0455) < 0.00165, "%d beyond 2", beyond2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers_of_the_paper_hold),
		cmocka_unit_test(known_answer_of_the_model_domain_holds),
		cmocka_unit_test(every_field_of_the_model_counter_is_told_apart),
		cmocka_unit_test(a_step_of_2_to_32_sits_above_the_virtual_node),
		cmocka_unit_test(masks_are_keyed_by_sample_and_position),
		cmocka_unit_test(uniforms_are_in_0_1_and_exact),
		cmocka_unit_test(dropout_thresholds_are_the_floor_of_p_times_2_to_32),
		cmocka_unit_test(normals_agree_with_libm_at_the_edges_and_in_the_middle),
		cmocka_unit_test(normals_keep_their_bits),
		cmocka_unit_test(normals_have_mean_0_variance_1_and_the_right_tails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
