/* eval64_sequences.inc.h -- forward ops of op_sequences.h for eval64.inc.h; scatters where the reference
 * gathers. */

static void rms64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	bool fused = n->op == HD_OP_ADD_RMSNORM;
	int64_t c = s[0].last;
	double *root = out[fused ? 2 : 1];

	for (int64_t e = 0; e < s[0].elems; e++) {
		double x = in[0][e] + (fused ? in[1][e] : 0);
		out[0][e] = x;
		if (fused)
			out[1][e] = x;
		root[e / c] += x * x;
	}
	for (int64_t r = 0; r < s[0].elems / c; r++)
		root[r] = pow(root[r] / (double)c + (double)n->attr.f[0], -0.5);
	for (int64_t e = 0; e < s[0].elems; e++)
		out[0][e] *= root[e / c] * in[fused ? 2 : 1][e % c];
}

/* A pair is a complex number, turned by e^(i angle). */
static void rotary64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t half = s[0].last / n->attr.i[0] / 2;

	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t pair = e % (2 * half), t = e / s[0].last % s[0].dim[1];
		if (pair >= half)
			continue;
		double angle = (double)t * exp(-log((double)n->attr.f[0]) * (double)pair / (double)half) *
			(n->attr.i[1] ? -1 : 1);
		out[0][e] = in[0][e] * cos(angle) - in[0][e + half] * sin(angle);
		out[0][e + half] = in[0][e] * sin(angle) + in[0][e + half] * cos(angle);
	}
}

static bool hidden64(const struct hd_node *n, double **in, int64_t t, int64_t img, int64_t i, int64_t j)
{
	bool padded = n->op == HD_OP_ATTEND_PAD;
	int64_t window = n->attr.i[padded ? 4 : 3];

	return (n->attr.i[2] && j > i) || (window > 0 && i - j >= window) ||
		(padded && n->attr.i[3] != HD_PAD_OTHERS && in[3][img * t + j] == n->attr.i[3]) ||
		(padded && n->attr.i[3] == HD_PAD_OTHERS && in[3][img * t + j] - in[3][img * t + i] != 0);
}

static void attend64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t t = s[0].dim[1], heads = n->attr.i[0], kv = n->attr.i[1], d = s[0].last / heads;
	double scale = n->attr.f[0] > 0 ? (double)n->attr.f[0] : pow((double)d, -0.5),
		cap = (double)n->attr.f[1];

	for (int64_t img = 0; img < s[0].dim[0]; img++)
		for (int64_t e = 0; e < t * heads; e++) {
			int64_t i = e / heads, h = e % heads, at = (img * t * heads + e) * d,
				from = (img * t * kv + h * kv / heads) * d;
			double norm = 0;
			for (int pass = 0; pass < 2; pass++)
				for (int64_t j = 0; j < t; j++) {
					double score = 0;
					for (int64_t k = 0; k < d; k++)
						score += in[0][at + k] * in[1][from + j * kv * d + k];
					score = hidden64(n, in, t, img, i, j) ? 0 :
						exp(cap > 0 ?
							cap * tanh(score * scale / cap) : score * scale);
					norm += pass == 0 ? score : 0;
					for (int64_t k = 0; pass == 1 && norm > 0 && k < d; k++)
						out[0][at + k] += score / norm * in[2][from + j * kv * d + k];
				}
			out[1][(img * heads + h) * t + i] = norm > 0 ? log(norm) : 0;
		}
}

static double logistic64(double x) { return 0.5 + 0.5 * tanh(x / 2); }

/* What the state before position `at` (sample * T + t) adds to gate `g` of H * gates. */
static double recur64(const struct shape64 *s, double **in, const double *y, int64_t at, int64_t g)
{
	int64_t h = s[1].last;
	double sum = in[2][g];

	for (int64_t k = 0; at % s[0].dim[1] && k < h; k++)
		sum += in[1][g * h + k] * y[(at - 1) * h + k];
	return sum;
}

static void lstm64(const struct shape64 *s, double **in, double **out)
{
	int64_t h = s[1].last;

	for (int64_t at = 0; at < s[0].elems / (4 * h); at++)
		for (int64_t k = 0; k < h; k++) {
			double *gate = out[2] + at * 4 * h + k,
				cell = at % s[0].dim[1] ? out[1][(at - 1) * h + k] : 0;
			for (int64_t g = 0; g < 4; g++) {
				double z = in[0][at * 4 * h + g * h + k] + recur64(s, in, out[0], at,
					g * h + k);
				gate[g * h] = g == 2 ? tanh(z) : logistic64(z);
			}
			out[1][at * h + k] = gate[h] * cell + gate[0] * gate[2 * h];
			out[0][at * h + k] = gate[3 * h] * tanh(out[1][at * h + k]);
		}
}

static void gru64(const struct shape64 *s, double **in, double **out)
{
	int64_t h = s[1].last;

	for (int64_t at = 0; at < s[0].elems / (3 * h); at++)
		for (int64_t k = 0; k < h; k++) {
			const double *z = in[0] + at * 3 * h + k;
			double *gate = out[1] + at * 3 * h + k,
				before = at % s[0].dim[1] ? out[0][(at - 1) * h + k] : 0;
			out[2][at * h + k] = recur64(s, in, out[0], at, 2 * h + k);
			gate[0] = logistic64(z[0] + recur64(s, in, out[0], at, k));
			gate[h] = logistic64(z[h] + recur64(s, in, out[0], at, h + k));
			gate[2 * h] = tanh(z[2 * h] + gate[0] * out[2][at * h + k]);
			out[0][at * h + k] = gate[2 * h] + gate[h] * (before - gate[2 * h]);
		}
}

static void mask64(const struct eval64 *ev, const struct hd_node *n, const struct shape64 *s, double **in,
	double **out)
{
	int64_t t = s[0].last;
	int32_t *x = calloc((size_t)t, sizeof *x);

	for (int64_t r = 0; r < s[0].elems / t; r++) {
		for (int64_t i = 0; i < t; i++)
			x[i] = (int32_t)in[0][r * t + i];
		uint32_t sample = (uint32_t)hd_hash64(x, (size_t)t * sizeof *x);
		for (int64_t i = 0; i < t; i++) {
			struct hd_philox draw = hd_philox_mask(ev->draw.seed, ev->draw.step, n->key, sample,
				(uint32_t)i);
			bool chosen = ldexp(draw.word[0], -32) < (double)n->attr.f[0];
			out[1][r * t + i] = chosen ? x[i] : -1;
			if (chosen && draw.word[1] < 0.8 * 4294967296.0)
				x[i] = n->attr.i[0];
			else if (chosen && draw.word[1] < 0.9 * 4294967296.0)
				x[i] = (int32_t)(draw.word[2] % (uint32_t)n->attr.i[1]);
			out[0][r * t + i] = x[i];
		}
	}
	free(x);
}

/* false: the op is of another family. */
static bool sequences64(const struct eval64 *ev, const struct hd_node *n, const struct shape64 *s,
	double **in, double **out)
{
	switch (n->op) {
	case HD_OP_RMSNORM:
	case HD_OP_ADD_RMSNORM: rms64(n, s, in, out); return true;
	case HD_OP_ROTARY:      rotary64(n, s, in, out); return true;
	case HD_OP_ATTEND:
	case HD_OP_ATTEND_PAD:  attend64(n, s, in, out); return true;
	case HD_OP_LSTM:        lstm64(s, in, out); return true;
	case HD_OP_GRU:         gru64(s, in, out); return true;
	case HD_OP_MASK_TOKENS: mask64(ev, n, s, in, out); return true;
	case HD_OP_SWIGLU:
		for (int64_t e = 0; e < s[0].elems; e++)
			out[0][e] = in[0][e] * logistic64(in[0][e]) * in[1][e];
		return true;
	default: return false;
	}
}
