#include "base/lanes.h"

#include "base/bits.h"

/* The compiler turns the inner loops into vectors of any width without changing a bit,
 * since lanes never meet. x*x of two f32 is exact in f64, so that a fused multiply-add
 * would give the same bits too. Lanes start at +0: a sum of nothing but -0 is +0. */
static double join(const double lane[HD_LANES]) { return hd_tree_sum(lane, HD_LANES); }

double hd_lanes_sum(const float *at, size_t n)
{
	double lane[HD_LANES] = { 0 };
	size_t whole = n / HD_LANES * HD_LANES;

	for (size_t i = 0; i < whole; i += HD_LANES)
		for (size_t j = 0; j < HD_LANES; j++)
			lane[j] += (double)at[i + j];
	for (size_t i = whole; i < n; i++)
		lane[i - whole] += (double)at[i];
	return join(lane);
}

double hd_lanes_sumsq(const float *at, size_t n)
{
	double lane[HD_LANES] = { 0 };
	size_t whole = n / HD_LANES * HD_LANES;

	for (size_t i = 0; i < whole; i += HD_LANES)
		for (size_t j = 0; j < HD_LANES; j++)
			lane[j] += (double)at[i + j] * (double)at[i + j];
	for (size_t i = whole; i < n; i++)
		lane[i - whole] += (double)at[i] * (double)at[i];
	return join(lane);
}

/* The depth of the recursion is the number of bits of n. */
double hd_tree_sum(const double *at, size_t n)
{
	if (n <= 2)
		return n == 0 ? 0.0 : n == 1 ? at[0] : at[0] + at[1];
	size_t left = hd_tree_split(n);
	double low = hd_tree_sum(at, left);
	return low + hd_tree_sum(at + left, n - left);
}
