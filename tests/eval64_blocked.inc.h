/* eval64_blocked.inc.h -- forward ops of op_blocked.h for eval64.inc.h, which includes it.
 * Scatters: each element of x goes where it reaches. */

/* A blocked image seen plain: place of (n, c, pixel). */
static int64_t blocked64(const struct shape64 *s, int64_t n, int64_t c, int64_t pixel)
{
	int64_t area = s->dim[2] * s->dim[3];

	return (n * s->dim[1] + c / 16) * area * 16 + pixel * 16 + c % 16;
}

static void block64(const struct shape64 *plain, const struct shape64 *blocked, const double *in, double *out,
	bool into)
{
	int64_t area = plain->dim[2] * plain->dim[3];

	for (int64_t e = 0; e < plain->elems; e++) {
		int64_t at = blocked64(blocked, e / area / plain->dim[1], e / area % plain->dim[1], e % area);
		out[into ? at : e] = in[into ? e : at];
	}
}

static void conv_b64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	const int64_t *x = s[0].dim, *w = s[1].dim;
	const int32_t *a = n->attr.i;

	for (int64_t e = 0; e < s[1].elems; e++) {
		int64_t c = e % w[3], r = e / w[3] % w[2], ch = e / (w[3] * w[2]) % w[1],
			k = e / (w[3] * w[2] * w[1]);
		for (int64_t i = 0; i < x[0] * x[2] * x[3]; i++) {
			int64_t img = i / (x[2] * x[3]), pixel = i % (x[2] * x[3]),
				row = pixel / x[3] + a[2] - r, col = pixel % x[3] + a[3] - c;
			if (row < 0 || col < 0 || row % a[0] || col % a[1] || row / a[0] >= y->dim[2] ||
				col / a[1] >= y->dim[3])
				continue;
			out[0][blocked64(y, img, k, row / a[0] * y->dim[3] +
				col / a[1])] += in[0][blocked64(&s[0], img, ch, pixel)] * in[1][e];
		}
	}
}
