#include "autoscale/curve_fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { TERMS = 3, SUBSETS = 1 << TERMS };

static void terms(uint32_t size, double out[TERMS])
{
	out[0] = 1;
	out[1] = (size - 1.0) / size;
	out[2] = size - 1.0;
}

double hd_curve_at(const struct hd_curve_coef *coef, uint32_t size, double compute_s)
{
	double t[TERMS];

	terms(size, t);
	for (int i = 0; i < TERMS; i++)
		compute_s += coef->at[i] * t[i];
	return compute_s;
}

/* Gauss with pivots over the terms of the subset; false: they are linearly dependent, or a coefficient is
 * below 0. */
static bool solve(double m[TERMS][TERMS + 1], uint32_t subset, struct hd_curve_coef *out)
{
	int used[TERMS], n = 0;

	for (int i = 0; i < TERMS; i++)
		if (subset >> i & 1)
			used[n++] = i;
	for (int i = 0; i < n; i++) {
		int p = used[i];
		double scale = m[p][p];
		if (!(fabs(scale) > 1e-12))
			return false;
		for (int r = i + 1; r < n; r++) {
			double by = m[used[r]][p] / scale;
			for (int c = i; c < n; c++)
				m[used[r]][used[c]] -= by * m[p][used[c]];
			m[used[r]][TERMS] -= by * m[p][TERMS];
		}
	}
	memset(out, 0, sizeof *out);
	for (int i = n - 1; i >= 0; i--) {
		double v = m[used[i]][TERMS];
		for (int c = i + 1; c < n; c++)
			v -= m[used[i]][used[c]] * out->at[used[c]];
		out->at[used[i]] = v / m[used[i]][used[i]];
		if (out->at[used[i]] < 0)
			return false;
	}
	return true;
}

/* Times are scaled by the largest weighted one, so that "apart" means the same for steps of a microsecond
 * and of an hour. */
static bool fit_subset(const struct hd_curve_point *point, uint32_t n, uint32_t subset,
	struct hd_curve_coef *out)
{
	double m[TERMS][TERMS + 1] = { 0 }, most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = point[i].weight > most ? point[i].weight : most;
	for (uint32_t i = 0; i < n; i++) {
		double t[TERMS], w = point[i].weight / most;
		terms(point[i].size, t);
		for (int r = 0; r < TERMS; r++) {
			for (int c = 0; c < TERMS; c++)
				m[r][c] += w * t[r] * t[c];
			m[r][TERMS] += w * t[r] * (point[i].step_s - point[i].compute_s);
		}
	}
	return solve(m, subset, out);
}

static double squares(const struct hd_curve_point *point, uint32_t n, const struct hd_curve_coef *coef)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		double off = hd_curve_at(coef, point[i].size, point[i].compute_s) - point[i].step_s;
		sum += point[i].weight * off * off;
	}
	return sum;
}

static double spread(const struct hd_curve_point *point, uint32_t n, const struct hd_curve_coef *coef)
{
	double worst = 0;

	for (uint32_t i = 0; i < n; i++) {
		double off = fabs(hd_curve_at(coef, point[i].size,
			point[i].compute_s) - point[i].step_s) / point[i].step_s;
		worst = off > worst ? off : worst;
	}
	return worst;
}

void hd_curve_fit(struct hd_curve_fit *fit, const struct hd_curve_point *point, uint32_t n)
{
	struct hd_curve_coef coef[SUBSETS];
	double least = INFINITY;
	uint32_t nfits = 0, best = 0;

	for (uint32_t subset = 0; subset < SUBSETS; subset++) {
		if ((uint32_t)__builtin_popcount(subset) > n || !fit_subset(point, n, subset, &coef[nfits]))
			continue;
		double s = squares(point, n, &coef[nfits]);
		if (s < least) {
			least = s;
			best = nfits;
		}
		nfits++;
	}
	*fit = (struct hd_curve_fit){ .may[0] = coef[best], .n = 1, .spread = spread(point, n, &coef[best]) };
	for (uint32_t i = 0; i < nfits && n < TERMS; i++) {
		double off = spread(point, n, &coef[i]);
		if (i != best && (off <= HD_CURVE_CLOSE || off <= fit->spread))
			fit->may[fit->n++] = coef[i];
	}
}
