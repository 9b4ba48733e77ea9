#include "base/half.h"

#include <math.h>

#include "tests/check.h"

/* The formats as their standards spell them, in f64. */
static double value_of(uint16_t half, int exponent_bits, int fraction_bits)
{
	int exponent = half >> fraction_bits & ((1 << exponent_bits) - 1),
		bias = (1 << (exponent_bits - 1)) - 1;
	double fraction = ldexp(half & ((1 << fraction_bits) - 1), -fraction_bits), size;

	if (exponent == (1 << exponent_bits) - 1)
		size = fraction != 0 ? (double)NAN : (double)INFINITY;
	else
		size = exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
	return half & 0x8000 ? -size : size;
}

static void every_half_widens_to_its_value(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 65536; i++) {
		const double want[2] = { value_of((uint16_t)i, 5, 10), value_of((uint16_t)i, 8, 7) };
		const float got[2] = { hd_f32_of_f16((uint16_t)i), hd_f32_of_bf16((uint16_t)i) };
		for (int k = 0; k < 2; k++) {
			CHECK(isnan(want[k]) ? isnan(got[k]) : (double)got[k] == want[k],
				"%s %04x: %g, not %g", k ? "bf16" : "f16", i,
				(double)got[k], want[k]);
			CHECK((signbit(got[k]) != 0) == (i >= 0x8000), "%s %04x: sign", k ? "bf16" : "f16",
				i);
		}
	}
}

/* Of the two neighbours the nearer one, of equally near ones the even: compared in f64, where all is
 * exact. */
static void rounding_takes_the_nearer_neighbour_and_of_two_the_even_one(void **state)
{
	static const uint32_t lows[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4321, 0xcdef };

	(void)state;
	for (uint32_t high = 0; high < 0x7f80; high++)
		for (size_t k = 0; k < sizeof lows / sizeof *lows; k++) {
			float x = hd_f32_of_bits(high << 16 | lows[k]);
			double down = (double)hd_f32_of_bits(high << 16),
				up = high == 0x7f7f ? 0x1p128 : (double)hd_f32_of_bits((high + 1) << 16);
			double below = (double)x - down, above = up - (double)x;
			uint32_t want = below < above || (below == above && high % 2 == 0) ? high : high + 1;
			CHECK(hd_bf16_of_f32(x) == want, "%08x -> %04x, not %04x", high << 16 | lows[k],
				hd_bf16_of_f32(x), want);
			CHECK(hd_bf16_of_f32(-x) == (want | 0x8000), "-%08x", high << 16 | lows[k]);
			CHECK(hd_bf16_round(hd_bf16_round(x)) == hd_bf16_round(x), "%08x: twice",
				high << 16 | lows[k]);
		}
	CHECK(isinf(hd_bf16_round(INFINITY)) && hd_bf16_of_f32(-INFINITY) == 0xff80, "infinity");
	CHECK(isnan(hd_bf16_round(NAN)) && isnan(hd_bf16_round(hd_f32_of_bits(0x7f800001))), "NaN");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_half_widens_to_its_value),
		cmocka_unit_test(rounding_takes_the_nearer_neighbour_and_of_two_the_even_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
