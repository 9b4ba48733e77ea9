#include "plan/collective_cost.h"

#include <math.h>

enum { N = HD_COLLECTIVE_TERMS, CHOICES = 1 << N };

/* Of sum (x t - 1)^2 over the samples, t being the terms over the time: the normal equations. */
struct normal { double a[N][N], b[N], samples; };
enum { BETA = 1, INCAST = N - 1, SLOWER = HD_COLLECTIVE_INCAST - 1 };

/* `tied`: incast is the greatest that there is, so that its term is one with that of beta. */
static void gather(struct normal *m, const struct hd_collective_sample *sample, uint32_t n, bool tied)
{
	double t[N];

	*m = (struct normal){ .samples = n };
	for (uint32_t s = 0; s < n; s++) {
		hd_collective_terms(t, sample[s].kind, &sample[s].shape, (double)sample[s].bytes);
		if (tied) {
			t[BETA] += SLOWER * t[INCAST];
			t[INCAST] = 0;
		}
		for (uint32_t i = 0; i < N; i++) {
			m->b[i] += t[i] / sample[s].ns;
			for (uint32_t j = 0; j < N; j++)
				m->a[i][j] += t[i] / sample[s].ns * (t[j] / sample[s].ns);
		}
	}
}

/* The unknowns of `set`, by elimination with the largest pivot, after each is scaled to a diagonal of 1.
 * false: the samples do not tell them apart. */
static bool solve(const struct normal *m, uint32_t set, double x[N])
{
	double a[N][N + 1], scale[N];
	uint32_t at[N], n = 0;

	for (uint32_t i = 0; i < N; i++) {
		x[i] = 0;
		if (set >> i & 1)
			at[n++] = i;
	}
	for (uint32_t i = 0; i < n; i++)
		scale[i] = m->a[at[i]][at[i]] > 0 ? 1 / sqrt(m->a[at[i]][at[i]]) : 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++)
			a[i][j] = m->a[at[i]][at[j]] * scale[i] * scale[j];
		a[i][n] = m->b[at[i]] * scale[i];
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t best = k;
		for (uint32_t i = k + 1; i < n; i++)
			best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
		if (fabs(a[best][k]) < 1e-9)
			return false;
		for (uint32_t j = 0; j <= n; j++) {
			double was = a[k][j];
			a[k][j] = a[best][j];
			a[best][j] = was;
		}
		for (uint32_t i = 0; i < n; i++) {
			double factor = i == k ? 0 : a[i][k] / a[k][k];
			for (uint32_t j = k; j <= n; j++)
				a[i][j] -= factor * a[k][j];
		}
	}
	for (uint32_t i = 0; i < n; i++)
		x[at[i]] = a[i][n] / a[i][i] * scale[i];
	return true;
}

static double missed(const struct normal *m, const double x[N])
{
	double sum = m->samples;

	for (uint32_t i = 0; i < N; i++) {
		sum -= 2 * x[i] * m->b[i];
		for (uint32_t j = 0; j < N; j++)
			sum += x[i] * x[j] * m->a[i][j];
	}
	return sum;
}

/* None is below 0, and incast is in its range. */
static bool is_allowed(const double x[N])
{
	for (uint32_t i = 0; i < N; i++)
		if (!(x[i] >= 0))
			return false;
	return x[INCAST] <= SLOWER * x[BETA];
}

/* The best of one family; better than `least` by more than rounding, or as it was. */
static void try_all(const struct normal *m, bool tied, double *least, double best[N])
{
	double x[N];

	for (uint32_t terms = 1; terms <= N; terms++)
		for (uint32_t set = 1; set < CHOICES; set++) {
			if ((uint32_t)__builtin_popcount(set) != terms || (tied && set >> INCAST & 1) ||
				!solve(m, set, x) || !is_allowed(x))
				continue;
			double miss = missed(m, x);
			if (miss >= *least - 1e-9 * m->samples)
				continue;
			*least = miss;
			x[INCAST] = tied ? SLOWER * x[BETA] : x[INCAST];
			for (uint32_t i = 0; i < N; i++)
				best[i] = x[i];
		}
}

static double within(double x, double most) { return x < most ? x : most; }

enum hd_err hd_collective_fit(struct hd_collective_costs *costs, const struct hd_collective_sample *sample,
	uint32_t n, struct hd_diag *diag)
{
	double best[N] = { 0 }, least = INFINITY;
	struct normal m;

	for (uint32_t i = 0; i < n; i++)
		if (sample[i].kind == HD_COLLECTIVE_HIERARCHICAL || !sample[i].bytes || !(sample[i].ns > 0) ||
			sample[i].shape.p < 2)
			return hd_fail(diag, HD_E_INVAL,
				"sample %u of %u is no time of a sum over one link", i, n);
	if (!n)
		return hd_fail(diag, HD_E_INVAL, "costs are fitted to at least one sample");
	for (uint32_t tied = 0; tied < 2; tied++) {
		gather(&m, sample, n, tied);
		try_all(&m, tied, &least, best);
	}
	*costs = (struct hd_collective_costs){ within(best[0], 6e10), within(best[BETA], 1e9),
		within(best[2], 1e9),
		within(best[3], 6e10), best[BETA] > 0 ? within(1 + best[INCAST] / best[BETA],
			HD_COLLECTIVE_INCAST) : 1 };
	return HD_OK;
}
