/* Alternating ridge least squares (probabilistic matrix factorisation). A turn costs cells * rank^2 +
 * (rows + cols) * rank^3. */
#include <math.h>
#include <string.h>

#include "scheduler/estimate.h"

static const double STOP = 1e-3;

/* strides: from cell to cell, from row to row */
struct half { const double *x; const bool *known; size_t along, across; uint32_t n; };

/* Solves a s = b in place, a symmetric and positive: lower triangle to its Cholesky factor, then two
 * substitutions. */
static void solve(double *a, double *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k <= i; k++) {
			double sum = a[i * n + k];
			for (uint32_t m = 0; m < k; m++)
				sum -= a[i * n + m] * a[k * n + m];
			a[i * n + k] = i == k ? sqrt(sum) : sum / a[k * n + k];
		}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t m = 0; m < i; m++)
			b[i] -= a[i * n + m] * b[m];
		b[i] /= a[i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t m = i + 1; m < n; m++)
			b[i] -= a[m * n + i] * b[m];
		b[i] /= a[i * n + i];
	}
}

/* One row of u (or, with the other strides, of v) from all of the other. */
static void fit_row(const struct half *h, uint32_t row, uint32_t rank, double mu, double *u, const double *v,
	double *gram)
{
	const double *x = h->x + row * h->across;
	const bool *known = h->known + row * h->across;

	memset(gram, 0, (size_t)rank * rank * sizeof *gram);
	memset(u, 0, rank * sizeof *u);
	for (uint32_t c = 0; c < h->n; c++) {
		const double *w = v + (size_t)c * rank;
		if (!known[c * h->along])
			continue;
		for (uint32_t i = 0; i < rank; i++) {
			u[i] += w[i] * x[c * h->along];
			for (uint32_t k = 0; k <= i; k++)
				gram[i * rank + k] += w[i] * w[k];
		}
	}
	for (uint32_t i = 0; i < rank; i++)
		gram[i * rank + i] += mu;
	solve(gram, u, rank);
}

static double dot(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

enum hd_err hd_complete(double *x, const bool *known, uint32_t rows, uint32_t cols, uint32_t rank, double mu,
	double *u, double *v,
	struct hd_arena *arena, struct hd_diag *diag)
{
	double *gram = hd_arena_take(arena, (size_t)rank * rank, sizeof *gram),
		*last = hd_arena_take(arena, (size_t)rows * cols, sizeof *last);
	const struct half by_row = { x, known, 1, cols, cols }, by_col = { x, known, cols, 1, rows };

	if (!gram || !last)
		return hd_fail(diag, HD_E_NOMEM, "no memory to complete %u by %u cells", rows, cols);
	for (int turn = 0; turn < HD_COMPLETE_TURNS; turn++) {
		double moved = 0;
		for (uint32_t i = 0; i < rows; i++)
			fit_row(&by_row, i, rank, mu, u + (size_t)i * rank, v, gram);
		for (uint32_t c = 0; c < cols; c++)
			fit_row(&by_col, c, rank, mu, v + (size_t)c * rank, u, gram);
		for (uint32_t i = 0; i < rows; i++)
			for (uint32_t c = 0; c < cols; c++) {
				double product = dot(u + (size_t)i * rank, v + (size_t)c * rank, rank),
					*was = &last[(size_t)i * cols + c];
				moved += (product - *was) * (product - *was);
				*was = product;
			}
		if (turn && sqrt(moved) / ((double)rows * cols) < STOP)
			break;
	}
	for (size_t i = 0; i < (size_t)rows * cols; i++)
		if (!known[i])
			x[i] = fmin(1, fmax(0, last[i]));
	return HD_OK;
}
