/* eval64_images.inc.h -- part of eval64.inc.h: pools and norms of groups. */

/* Each pixel goes to the windows that cover it; a pad is a window's element that no pixel reaches. */
static void pool64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	const int32_t *a = n->attr.i;
	const int64_t *x = s[0].dim;
	bool top = n->op == HD_OP_MAXPOOL2D;
	double *seen = calloc((size_t)y->elems, sizeof *seen);

	for (int64_t e = 0; top && e < y->elems; e++)
		out[0][e] = (double)-INFINITY;
	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t row = e / x[3] % x[2], col = e % x[3], plane = e / (x[3] * x[2]);
		for (int64_t w = 0; w < y->dim[2] * y->dim[3]; w++) {
			int64_t up = row + a[4] - w / y->dim[3] * a[2],
				left = col + a[5] - w % y->dim[3] * a[3],
				to = plane * y->dim[2] * y->dim[3] + w;
			if (up < 0 || up >= a[0] || left < 0 || left >= a[1])
				continue;
			seen[to]++;
			out[0][to] = top ? fmax(out[0][to], in[0][e]) : out[0][to] + in[0][e];
		}
	}
	for (int64_t e = 0; !top && e < y->elems; e++)
		out[0][e] /= a[6] ? a[0] * a[1] : seen[e];
	free(seen);
}

/* Moments by E[x^2] - E[x]^2, which f64 forgives. */
static void groupnorm64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t inner = s[0].elems / (s[0].dim[0] * s[0].dim[1]), len = s[0].dim[1] / n->attr.i[0] * inner;
	double *stats = out[1], count = (double)len;

	for (int64_t e = 0; e < s[0].elems; e++) {
		stats[e / len * 2] += in[0][e] / count;
		stats[e / len * 2 + 1] += in[0][e] * in[0][e] / count;
	}
	for (int64_t u = 0; u < s[0].elems / len; u++)
		stats[2 * u + 1] = 1 / sqrt(stats[2 * u + 1] - stats[2 * u] * stats[2 * u] +
			(double)n->attr.f[0]);
	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t c = e / inner % s[0].dim[1];
		out[0][e] = (in[0][e] - stats[e / len * 2]) * stats[e / len * 2 + 1] * in[1][c] + in[2][c];
	}
}
