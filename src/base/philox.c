#include "base/philox.h"

#include <math.h>
#include <string.h>

/* Constants of the paper: two multipliers, and the Weyl increments of the key. */
#define MUL0 UINT32_C(0xD2511F53)
#define MUL1 UINT32_C(0xCD9E8D57)
#define WEYL0 UINT32_C(0x9E3779B9)
#define WEYL1 UINT32_C(0xBB67AE85)
enum { ROUNDS = 10 };

struct hd_philox hd_philox(const uint32_t counter[4], uint64_t key)
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t p0 = (uint64_t)MUL0 * c0, p1 = (uint64_t)MUL1 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += WEYL0;
		k1 += WEYL1;
	}
	return (struct hd_philox){ { c0, c1, c2, c3 } };
}

uint64_t hd_philox_key(uint64_t seed, enum hd_rng_domain domain)
{
	return seed + (uint64_t)domain * UINT64_C(0x9E3779B97F4A7C15);
}

struct hd_philox hd_philox_model(uint64_t seed, uint64_t step, uint32_t vn, uint32_t op, uint64_t block)
{
	const uint32_t counter[4] = {
		(uint32_t)block, op, (uint32_t)step, vn | (uint32_t)(step >> 32) << 20,
	};
	return hd_philox(counter, hd_philox_key(seed, HD_RNG_MODEL));
}

struct hd_philox hd_philox_mask(uint64_t seed, uint64_t step, uint32_t op, uint32_t sample, uint32_t position)
{
	const uint32_t counter[4] = { position | (uint32_t)(step >> 32) << 20, op, (uint32_t)step, sample };

	return hd_philox(counter, hd_philox_key(seed, HD_RNG_MASK));
}

/* Natural logarithm of a positive normal number: x = m * 2^e with m in [sqrt(1/2), sqrt(2)),
 * log m = 2 atanh s with s = (m-1)/(m+1), |s| <= 0.172, of which the eleventh term
 * is below half a unit in the last place. ln 2 in two parts, so that e * high is exact. */
static double own_log(double x)
{
	static const double coeff[] = { 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
		1.0 / 7, 1.0 / 5, 1.0 / 3 };
	uint64_t bits;
	double m, tail = 0;

	memcpy(&bits, &x, sizeof bits);
	int64_t e = (int64_t)(bits >> 52) - 1023;
	bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
	memcpy(&m, &bits, sizeof m);
	if (m > 0x1.6a09e667f3bcdp+0) {
		m *= 0.5;
		e++;
	}
	double s = (m - 1.0) / (m + 1.0), ss = s * s;
	for (size_t i = 0; i < sizeof coeff / sizeof coeff[0]; i++)
		tail = (tail + coeff[i]) * ss;
	return (double)e * 0x1.62e42fee00000p-1 + ((double)e * 0x1.a39ef35793c76p-33 +
		(2.0 * s + 2.0 * s * tail));
}

/* Taylor's series for |a| <= pi/4; the first term left out is below 1e-17. */
static double series(double aa, const double *coeff, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum = sum * aa + coeff[i];
	return sum;
}

static double own_sin(double a)
{
	static const double coeff[] = {
		1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
		1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0,
	};
	return a * series(a * a, coeff, sizeof coeff / sizeof coeff[0]);
}

static double own_cos(double a)
{
	static const double coeff[] = {
		1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
		1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1.0,
	};
	return series(a * a, coeff, sizeof coeff / sizeof coeff[0]);
}

/* The radius uses (u + 1/2) / 2^32, never 0 or 1: the largest normal is 6.77. The angle
 * is v / 2^32 turns; the nearest quarter turn is taken off in integers, hence exactly.
 * All in f64 without contraction; sqrt is exactly rounded by IEEE 754. */
void hd_normal2(uint32_t u, uint32_t v, float out[2])
{
	double radius = sqrt(-2.0 * own_log(((double)u + 0.5) * 0x1p-32));
	uint32_t quarter = (v + UINT32_C(0x20000000)) >> 30;
	double angle = (double)(int32_t)(v - (quarter << 30)) * (0x1p-32 * 6.283185307179586476925);
	double c = own_cos(angle), s = own_sin(angle);
	double x = quarter & 1 ? -s : c, y = quarter & 1 ? c : s;

	out[0] = (float)(quarter & 2 ? -(radius * x) : radius * x);
	out[1] = (float)(quarter & 2 ? -(radius * y) : radius * y);
}
