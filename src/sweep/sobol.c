#include "sweep/sobol.h"

#include <assert.h>

/* degree of the primitive polynomial, its inner coefficients, the first direction numbers */
static const struct { uint32_t degree, a, m[6]; } table[HD_SOBOL_DIMENSIONS] = {
	{ 0, 0, { 0 } },                  /* van der Corput */
	{ 1, 0, { 1 } },
	{ 2, 1, { 1, 3 } },
	{ 3, 1, { 1, 3, 1 } },
	{ 3, 2, { 1, 1, 1 } },
	{ 4, 1, { 1, 1, 3, 3 } },
	{ 4, 4, { 1, 3, 5, 13 } },
	{ 5, 2, { 1, 1, 5, 5, 17 } },
	{ 5, 4, { 1, 1, 5, 5, 5 } },
	{ 5, 7, { 1, 1, 7, 11, 19 } },
	{ 5, 11, { 1, 1, 5, 1, 1 } },
	{ 5, 13, { 1, 1, 1, 3, 11 } },
	{ 5, 14, { 1, 3, 5, 5, 31 } },
	{ 6, 1, { 1, 3, 3, 9, 7, 49 } },
	{ 6, 13, { 1, 1, 1, 15, 21, 21 } },
	{ 6, 16, { 1, 3, 1, 13, 27, 49 } },
};

static void directions(uint32_t dimension, uint32_t v[32])
{
	const uint32_t s = table[dimension].degree;

	for (uint32_t k = 0; k < 32; k++) {
		if (k < s || !s) {
			v[k] = (s ? table[dimension].m[k] : 1u) << (31 - k);
			continue;
		}
		v[k] = v[k - s] ^ (v[k - s] >> s);
		for (uint32_t j = 1; j < s; j++)
			v[k] ^= table[dimension].a >> (s - 1 - j) & 1 ? v[k - j] : 0;
	}
}

uint32_t hd_sobol(uint32_t i, uint32_t dimension)
{
	uint32_t v[32], gray = i ^ (i >> 1), x = 0;

	assert(dimension < HD_SOBOL_DIMENSIONS);
	directions(dimension, v);
	for (uint32_t k = 0; gray; k++, gray >>= 1)
		x ^= gray & 1 ? v[k] : 0;
	return x;
}
