/* eval64_batch.inc.h -- eval64.inc.h for the family of op_batch.h: the textbook's one-line formulas. */

static int64_t batch_channel64(const struct shape64 *s, int axis, int64_t e)
{
	if (axis == 16)
		return e / (s->dim[4] * s->dim[3] * s->dim[2]) % s->dim[1] * 16 + e % 16;
	return channel64(s, axis, e);
}

/* Moments per channel: the spread as the sum of squares less n times the square of the mean, of values
 * shifted by the first. */
static void moments64(const struct hd_node *n, const struct shape64 *s, int64_t c, const double *x,
	double *out)
{
	double *shift = calloc((size_t)c, sizeof *shift), count = (double)(s[0].elems / c);

	for (int64_t e = s[0].elems - 1; e >= 0; e--)
		shift[batch_channel64(s, n->attr.i[0], e)] = x[e];
	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t k = batch_channel64(s, n->attr.i[0], e);
		out[c + k] += (x[e] - shift[k]) / count;
		out[2 * c + k] += (x[e] - shift[k]) * (x[e] - shift[k]);
	}
	for (int64_t k = 0; k < c; k++) {
		out[k] = count;
		out[2 * c + k] -= count * out[c + k] * out[c + k];
		out[c + k] += shift[k];
	}
	free(shift);
}

static void normalise64(const struct hd_node *n, const struct shape64 *s, double **in, const double *m,
	double **out)
{
	int64_t c = s[1].elems;

	for (int64_t k = 0; k < c; k++) {
		bool frozen = m[k] < 2;
		out[1][k] = frozen ? in[3][k] : m[c + k];
		out[1][c + k] = pow((frozen ? in[4][k] : m[2 * c + k] / m[k]) + (double)n->attr.f[0], -0.5);
		out[1][2 * c + k] = frozen ? 0 : 1 / m[k];
	}
	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t k = batch_channel64(s, n->attr.i[0], e);
		out[0][e] = (in[0][e] - out[1][k]) * out[1][c + k] * in[1][k] + in[2][k];
	}
}

static void batchnorm64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	if (!n->attr.i[1] && s[0].elems / s[1].elems >= 2)
		moments64(n, s, s[1].elems, in[0], out[2]);
	normalise64(n, s, in, out[2], out);
}

/* false: the op is of another family. */
static bool batch64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	switch (n->op) {
	case HD_OP_BATCHNORM:         batchnorm64(n, s, in, out); return true;
	case HD_OP_BATCHNORM_MOMENTS: moments64(n, s, y->last, in[0], out[0]); return true;
	case HD_OP_BATCHNORM_SYNC:    memcpy(out[0], in[0], (size_t)y->elems * sizeof(double)); return true;
	case HD_OP_BATCHNORM_APPLY:   normalise64(n, s, in, in[5], out); return true;
	default:                      return false;
	}
}
