/* eval64_tensors.inc.h -- the forward ops of op_tensors.h for eval64.inc.h, which includes it: a single plan
 * for all, where the reference has one per op. Every op is a loop over the elements of its *input* (or of the
 * pairs of inputs), which says by coordinates which element of the result it reaches. */

static void place64(const struct shape64 *s, int64_t e, int64_t *at)
{
	for (int d = s->rank; d-- > 0; e /= s->dim[d])
		at[d] = e % s->dim[d];
}

static int64_t index64(const struct shape64 *s, const int64_t *at)
{
	int64_t e = 0, step = 1;

	for (int d = s->rank; d-- > 0; step *= s->dim[d])
		e += at[d] * step;
	return e;
}

/* The element of a repeated operand under element e of y: extents are paired from the last. */
static int64_t under64(const struct shape64 *y, const struct shape64 *s, int64_t e)
{
	int64_t at[HD_MAX_DIMS] = { 0 }, mine[HD_MAX_DIMS] = { 0 };

	place64(y, e, at);
	for (int d = 1; d <= s->rank; d++)
		mine[s->rank - d] = at[y->rank - d] % s->dim[s->rank - d];
	return index64(s, mine);
}

static double pair64(const struct hd_node *n, bool ints, double a, double b)
{
	switch (n->op) {
	case HD_OP_ADD:     return a + b;
	case HD_OP_SUB:     return a - b;
	case HD_OP_MUL:     return a * b;
	case HD_OP_DIV:     return ints ? b == 0 ? 0 : trunc(a / b) : a / b;
	case HD_OP_MAXIMUM: return fmax(a, b);
	case HD_OP_MINIMUM: return fmin(a, b);
	case HD_OP_LESS:    return a < b ? 1 : 0;
	case HD_OP_LESS_EQ: return a > b ? 0 : 1;
	default:            return a < b || a > b ? 0 : 1;
	}
}

static void reduce64(const struct hd_node *n, const struct shape64 *x, const struct shape64 *y, double **in,
	double **out)
{
	/* y with its lost extents as 1 */
	struct shape64 full = { .rank = x->rank };
	int64_t at[HD_MAX_DIMS] = { 0 }, per = x->elems / y->elems;
	double sign = n->op == HD_OP_REDUCE_MIN ? -1 : 1;

	for (int d = 0; d < x->rank; d++)
		full.dim[d] = n->attr.i[0] >> d & 1 ? 1 : x->dim[d];
	for (int64_t e = 0; e < y->elems && n->op >= HD_OP_REDUCE_MAX; e++)
		out[0][e] = n->op == HD_OP_REDUCE_PROD ? 1 : (double)-INFINITY * sign;
	for (int64_t e = 0; e < x->elems; e++) {
		place64(x, e, at);
		for (int d = 0; d < x->rank; d++)
			at[d] %= full.dim[d];
		double *to = &out[0][index64(&full, at)];
		*to = n->op == HD_OP_REDUCE_SUM ? *to + in[0][e] : n->op == HD_OP_REDUCE_MEAN ?
			*to + in[0][e] / (double)per :
			n->op == HD_OP_REDUCE_PROD ? *to * in[0][e] : sign * fmax(sign * *to,
			sign * in[0][e]);
	}
}

static void softmax64(const struct hd_node *n, const struct shape64 *x, double **in, double **out)
{
	for (int64_t r = 0; r < x->elems; r += x->last) {
		double sum = 0;
		for (int64_t i = 0; i < x->last; i++)
			sum += exp(in[0][r + i] - in[0][r]);
		for (int64_t i = 0; i < x->last; i++)
			out[0][r + i] = n->op == HD_OP_SOFTMAX ? exp(in[0][r + i] - in[0][r]) / sum :
				in[0][r + i] - in[0][r] - log(sum);
	}
}

/* Where element e of operand k goes, by the coordinate of the axis it changes; -1: nowhere. */
static int64_t move64(const struct hd_node *n, int k, const struct shape64 *s, const struct shape64 *y,
	int64_t e)
{
	const int32_t *a = n->attr.i;
	int64_t at[HD_MAX_DIMS] = { 0 }, to[HD_MAX_DIMS];

	place64(&s[k], e, at);
	memcpy(to, at, sizeof to);
	switch (n->op) {
	case HD_OP_PERMUTE:
		for (int d = 0; d < y->rank; d++)
			to[d] = at[a[d]];
		break;
	case HD_OP_SLICE:
		if ((at[a[0]] - a[1]) % a[2] != 0)
			return -1;
		to[a[0]] = (at[a[0]] - a[1]) / a[2];
		if (to[a[0]] < 0 || to[a[0]] >= a[3])
			return -1;
		break;
	case HD_OP_CONCAT: to[a[0]] += k ? s[0].dim[a[0]] : 0; break;
	default:           to[a[0]] += a[1]; break;
	}
	return index64(y, to);
}

static void gather64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t axis = s[0].dim[n->attr.i[0]], inner = 1;

	for (int d = n->attr.i[0] + 1; d < s[0].rank; d++)
		inner *= s[0].dim[d];
	for (int64_t e = 0; e < s[0].elems; e++)
		for (int64_t k = 0; k < s[1].elems; k++)
			if ((int64_t)in[1][k] == e / inner % axis)
				out[0][(e / inner / axis * s[1].elems + k) * inner + e % inner] = in[0][e];
}

static void scatter64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t axis = s[2].dim[n->attr.i[0]], inner = 1;

	for (int d = n->attr.i[0] + 1; d < s[2].rank; d++)
		inner *= s[2].dim[d];
	for (int64_t e = 0; e < s[2].elems; e++)
		for (int64_t k = 0; k < s[1].elems; k++)
			if ((int64_t)in[1][k] == e / inner % axis)
				out[0][e] += in[0][(e / inner / axis * s[1].elems + k) * inner + e % inner];
}

static void contract64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	bool ta = n->attr.i[0], tb = n->attr.i[1];
	int64_t depth = s[0].dim[s[0].rank - (ta ? 2 : 1)], at[HD_MAX_DIMS] = { 0 };

	for (int64_t p = 0; p < depth; p++)
		for (int64_t e = 0; e < y->elems; e++) {
			int64_t of[2] = { 0, 0 };
			place64(y, e, at);
			for (int k = 0; k < 2; k++) {
				int64_t mine[HD_MAX_DIMS] = { 0 }, i = at[y->rank - 2], j = at[y->rank - 1];
				for (int d = 3; d <= s[k].rank; d++)
					mine[s[k].rank - d] = at[y->rank - d] % s[k].dim[s[k].rank - d];
				mine[s[k].rank - 2] = k == 0 ? (ta ? p : i) : (tb ? j : p);
				mine[s[k].rank - 1] = k == 0 ? (ta ? i : p) : (tb ? p : j);
				of[k] = index64(&s[k], mine);
			}
			out[0][e] += in[0][of[0]] * in[1][of[1]];
		}
}

static void argmax64(const struct hd_node *n, const struct shape64 *x, double **in, double **out)
{
	int64_t axis = x->dim[n->attr.i[0]], inner = 1;

	for (int d = n->attr.i[0] + 1; d < x->rank; d++)
		inner *= x->dim[d];
	for (int64_t e = 0; e < x->elems; e++) {
		int64_t i = e / inner % axis, start = e - i * inner,
			line = e / inner / axis * inner + e % inner;
		int64_t best = (int64_t)out[0][line];
		if (in[0][e] > in[0][start + best * inner])
			out[0][line] = (double)i;
	}
}

static void cast64(const struct hd_node *n, int64_t elems, double **in, double **out)
{
	static const double lowest[] = { [HD_I32] = INT32_MIN, [HD_I64] = -0x1p63, [HD_U8] = 0 };
	static const double highest[] = { [HD_I32] = INT32_MAX, [HD_I64] = 0x1p63, [HD_U8] = 255 };

	for (int64_t e = 0; e < elems; e++)
		out[0][e] = n->attr.i[0] <= HD_F64 ? in[0][e] :
			fmin(fmax(trunc(in[0][e]), lowest[n->attr.i[0]]), highest[n->attr.i[0]]);
}

/* false: not of this family. */
static bool tensors64(const struct eval64 *ev, const struct hd_node *n, const struct shape64 *s,
	const struct shape64 *y,
	double **in, double **out)
{
	switch (n->op) {
	case HD_OP_ADD: case HD_OP_SUB: case HD_OP_MUL: case HD_OP_DIV: case HD_OP_MAXIMUM:
	case HD_OP_MINIMUM: case HD_OP_LESS: case HD_OP_LESS_EQ: case HD_OP_EQUAL:
		for (int64_t e = 0; e < y->elems; e++)
			out[0][e] = pair64(n, ev->graph->value[n->in[0]].dtype == HD_I32,
				in[0][under64(y, &s[0], e)], in[1][under64(y, &s[1], e)]);
		return true;
	case HD_OP_WHERE:
		for (int64_t e = 0; e < y->elems; e++)
			out[0][e] = in[0][under64(y, &s[0], e)] != 0 ? in[1][under64(y, &s[1], e)] :
				in[2][under64(y, &s[2], e)];
		return true;
	case HD_OP_EXPAND:
		for (int64_t e = 0; e < y->elems; e++)
			out[0][e] = in[0][under64(y, &s[0], e)];
		return true;
	case HD_OP_REDUCE_SUM: case HD_OP_REDUCE_MEAN: case HD_OP_REDUCE_MAX: case HD_OP_REDUCE_MIN:
	case HD_OP_REDUCE_PROD:
		reduce64(n, &s[0], y, in, out);
		return true;
	case HD_OP_SOFTMAX: case HD_OP_LOG_SOFTMAX:
		softmax64(n, &s[0], in, out);
		return true;
	case HD_OP_PAD:
		for (int64_t e = 0; e < y->elems; e++)
			out[0][e] = ev->graph->value[n->in[0]].dtype == HD_I32 ?
				fmin(fmax(trunc((double)n->attr.f[0]), INT32_MIN), INT32_MAX) :
				(double)n->attr.f[0];
		/* fall through */
	case HD_OP_PERMUTE: case HD_OP_SLICE: case HD_OP_CONCAT:
		for (int k = 0; k < n->nin; k++)
			for (int64_t e = 0; e < s[k].elems; e++) {
				int64_t to = move64(n, k, s, y, e);
				if (to >= 0)
					out[0][to] = in[k][e];
			}
		return true;
	case HD_OP_GATHER:   gather64(n, s, in, out); return true;
	case HD_OP_SCATTER_ADD: scatter64(n, s, in, out); return true;
	case HD_OP_CONTRACT: contract64(n, s, y, in, out); return true;
	case HD_OP_ARGMAX:   argmax64(n, &s[0], in, out); return true;
	case HD_OP_CAST:     cast64(n, y->elems, in, out); return true;
	case HD_OP_ONE_HOT:
		for (int64_t e = 0; e < s[0].elems; e++)
			if (in[0][e] >= 0 && in[0][e] < (double)n->attr.i[0])
				out[0][e * n->attr.i[0] + (int64_t)in[0][e]] = 1;
		return true;
	default:
		return false;
	}
}
