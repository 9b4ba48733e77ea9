#include "device/reference/reference.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"

/* RMSNORM: x gamma -> y r. ADD_RMSNORM: a b gamma -> y s r, where s = a + b is rounded first. */
static void rmsnorm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const bool fused = call->op == HD_OP_ADD_RMSNORM;
	const int64_t c = hd_cols(&call->out[0]);
	const float *gamma = hd_ref_in(call, fused ? 2 : 1);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *x = hd_ref_in(call, 0) + (int64_t)u * c;
		float *y = hd_ref_out(call, 0) + (int64_t)u * c;
		double sum = 0;

		if (fused) {
			float *s = hd_ref_out(call, 1) + (int64_t)u * c;
			for (int64_t i = 0; i < c; i++)
				s[i] = x[i] + hd_ref_in(call, 1)[(int64_t)u * c + i];
			x = s;
		}
		for (int64_t i = 0; i < c; i++)
			sum += (double)x[i] * (double)x[i];
		double root = 1 / sqrt(sum / (double)c + (double)call->attr.f[0]);
		for (int64_t i = 0; i < c; i++)
			y[i] = (float)((double)x[i] * root * (double)gamma[i]);
		hd_ref_out(call, fused ? 2 : 1)[u] = (float)root;
	}
}

/* With g = dy gamma: dx = r g - x r^3 mean(g x). */
static void rmsnorm_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t c = hd_cols(&call->out[0]);

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const float *dy = hd_ref_in(call, 0) + (int64_t)u * c,
			*x = hd_ref_in(call, 1) + (int64_t)u * c, *gamma = hd_ref_in(call, 2);
		const double root = (double)hd_ref_in(call, 3)[u];
		double along = 0;
		for (int64_t i = 0; i < c; i++)
			along += (double)dy[i] * (double)gamma[i] * (double)x[i];
		for (int64_t i = 0; i < c; i++)
			hd_ref_out(call, 0)[(int64_t)u * c + i] =
				(float)(root * (double)dy[i] * (double)gamma[i] -
				(double)x[i] * root * root * root * along / (double)c);
	}
}

static void rmsnorm_dg(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const uint64_t c = call->out[0].elems, rows = call->in[0].elems / c;

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double sum = 0;
		for (uint64_t n = 0; n < rows; n++)
			sum += (double)hd_ref_in(call, 0)[n * c + u] * (double)hd_ref_in(call,
				1)[n * c + u] * (double)hd_ref_in(call, 2)[n];
		hd_ref_out(call, 0)[u] = (float)sum;
	}
}

static void rotary(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int64_t heads = call->attr.i[0], d = x->dim[2] / heads, half = d / 2;

	(void)scratch;
	for (uint64_t u = first; u < last; u++)
		for (int64_t e = 0; e < x->dim[2]; e++) {
			const int64_t row = (int64_t)u * x->dim[2], i = e % d % half;
			const bool high = e % d >= half;
			double angle = (double)((int64_t)u % x->dim[1]) * pow((double)call->attr.f[0],
				-2.0 * (double)i / (double)d);
			double a = (double)hd_ref_in(call, 0)[row + e],
				b = (double)hd_ref_in(call, 0)[row + (high ? e - half : e + half)];
			double turn = (call->attr.i[1] ? -sin(angle) : sin(angle)) * (high ? 1 : -1);
			hd_ref_out(call, 0)[row + e] = (float)(a * cos(angle) + b * turn);
		}
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void swiglu(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double a = (double)hd_ref_in(call, 0)[u];
		hd_ref_out(call, 0)[u] = (float)(a * sigmoid(a) * (double)hd_ref_in(call, 1)[u]);
	}
}

static void swiglu_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		double dy = (double)hd_ref_in(call, 0)[u], a = (double)hd_ref_in(call, 1)[u],
			b = (double)hd_ref_in(call, 2)[u], s = sigmoid(a);
		hd_ref_out(call, 0)[u] = (float)(dy * b * (s + a * s * (1 - s)));
		hd_ref_out(call, 1)[u] = (float)(dy * a * s);
	}
}

/* Attention. Position i of a sample begins at (sample*T + i) * heads * d. `q`: the operand that is q. */
struct attend {
	int64_t t, heads, kv, d;
	bool causal;
	const int32_t *ids;
	int32_t pad;
	int64_t window;                   /* 0: all that came before */
	double scale, cap;                /* cap 0: none */
};

static struct attend attend_of(const struct hd_call *call, int q)
{
	const bool padded = call->op == HD_OP_ATTEND_PAD || call->op == HD_OP_ATTEND_PAD_DX;
	const int64_t heads = call->attr.i[0], d = call->in[q].dim[2] / heads;
	const float *f = call->attr.f;

	return (struct attend){ call->in[q].dim[1], heads, call->attr.i[1], d, call->attr.i[2] != 0,
		padded ? call->in[call->nin - 1].at : NULL, call->attr.i[3],
		call->attr.i[padded ? 4 : 3], f[0] > 0 ? (double)f[0] : 1 / sqrt((double)d), (double)f[1] };
}

static bool seen(const struct attend *a, int64_t sample, int64_t i, int64_t j)
{
	const int32_t *ids = a->ids ? a->ids + sample * a->t : NULL;

	return !(a->causal && j > i) && !(a->window && j <= i - a->window) &&
		!(ids && (a->pad == HD_PAD_OTHERS ? ids[j] != ids[i] : ids[j] == a->pad));
}

static double capped(const struct attend *a, double score)
{
	return a->cap > 0 ? a->cap * tanh(score * a->scale / a->cap) : score * a->scale;
}

/* Probabilities of one query; returns their logarithmic sum, 0 where nothing is seen. */
static double weigh(const struct attend *a, const float *q, const float *k, int64_t sample, int64_t i,
	double *p)
{
	double most = -INFINITY, sum = 0;

	for (int64_t j = 0; j < a->t; j++) {
		double score = 0;
		for (int64_t e = 0; e < a->d; e++)
			score += (double)q[e] * (double)k[j * a->kv * a->d + e];
		p[j] = seen(a, sample, i, j) ? capped(a, score) : -INFINITY;
		most = p[j] > most ? p[j] : most;
	}
	for (int64_t j = 0; j < a->t; j++)
		sum += p[j] > -INFINITY ? exp(p[j] - most) : 0;
	double lse = sum > 0 ? most + log(sum) : 0;
	for (int64_t j = 0; j < a->t; j++)
		p[j] = exp(p[j] - lse);
	return lse;
}

static uint64_t attend_units(const struct hd_call *call) { return (uint64_t)(call->in[0].dim[0] *
	call->attr.i[0]); }
static size_t attend_scratch(const struct hd_call *call) { return (size_t)call->in[0].dim[1] * sizeof(double);
	}

/* A unit is a head of queries of a sample. */
static void attend(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct attend a = attend_of(call, 0);

	for (uint64_t u = first; u < last; u++) {
		const int64_t n = (int64_t)u / a.heads, head = (int64_t)u % a.heads,
			reads = head / (a.heads / a.kv);
		const float *k = hd_ref_in(call, 1) + (n * a.t * a.kv + reads) * a.d,
			*v = hd_ref_in(call, 2) + (n * a.t * a.kv + reads) * a.d;
		double *p = scratch;
		for (int64_t i = 0; i < a.t; i++) {
			const int64_t at = ((n * a.t + i) * a.heads + head) * a.d;
			hd_ref_out(call, 1)[(int64_t)u * a.t + i] = (float)weigh(&a, hd_ref_in(call, 0) + at,
				k, n, i, p);
			for (int64_t e = 0; e < a.d; e++) {
				double sum = 0;
				for (int64_t j = 0; j < a.t; j++)
					sum += p[j] * (double)v[j * a.kv * a.d + e];
				hd_ref_out(call, 0)[at + e] = (float)sum;
			}
		}
	}
}

static uint64_t attend_dx_units(const struct hd_call *call) { return (uint64_t)(call->in[1].dim[0] *
	call->attr.i[1]); }

static size_t attend_dx_scratch(const struct hd_call *call)
{
	const struct attend a = attend_of(call, 1);
	return (size_t)(2 * a.t + a.d + 2 * a.t * a.d) * sizeof(double);
}

/* d capped / d score = scale (1 - (capped / cap)^2) */
static double slope_of(const struct attend *a, const float *q, const float *k)
{
	double score = 0;

	for (int64_t e = 0; e < a->d && a->cap > 0; e++)
		score += (double)q[e] * (double)k[e];
	double part = a->cap > 0 ? capped(a, score) / a->cap : 0;
	return a->scale * (1 - part * part);
}

struct attend_sums { double *p, *dp, *dq, *dk, *dv; };

/* One query: its dq, and what it adds to dk and dv of its head of keys. Formulas as in dense.c. */
static void attend_dx_query(const struct hd_call *call, const struct attend *a, int64_t n, int64_t head,
	int64_t i, const struct attend_sums *s)
{
	const int64_t at = ((n * a->t + i) * a->heads + head) * a->d, reads = head / (a->heads / a->kv),
		step = a->kv * a->d;
	const float *dy = hd_ref_in(call, 0) + at, *q = hd_ref_in(call, 1) + at;
	const float *k = hd_ref_in(call, 2) + (n * a->t * a->kv + reads) * a->d,
		*v = hd_ref_in(call, 3) + (n * a->t * a->kv + reads) * a->d;
	double along = 0;

	weigh(a, q, k, n, i, s->p);
	memset(s->dq, 0, (size_t)a->d * sizeof *s->dq);
	for (int64_t j = 0; j < a->t; j++) {
		s->dp[j] = 0;
		for (int64_t e = 0; e < a->d; e++) {
			s->dp[j] += (double)dy[e] * (double)v[j * step + e];
			s->dv[j * a->d + e] += s->p[j] * (double)dy[e];
		}
		along += s->p[j] * s->dp[j];
	}
	for (int64_t j = 0; j < a->t; j++) {
		double ds = s->p[j] * (s->dp[j] - along) * slope_of(a, q, k + j * step);
		for (int64_t e = 0; e < a->d; e++) {
			s->dq[e] += ds * (double)k[j * step + e];
			s->dk[j * a->d + e] += ds * (double)q[e];
		}
	}
	for (int64_t e = 0; e < a->d; e++)
		hd_ref_out(call, 0)[at + e] = (float)s->dq[e];
}

/* A unit is a head of keys of a sample, with all heads of queries that read it. */
static void attend_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct attend a = attend_of(call, 1);
	const int64_t group = a.heads / a.kv;
	struct attend_sums s = { .p = scratch };

	s.dp = s.p + a.t;
	s.dq = s.dp + a.t;
	s.dk = s.dq + a.d;
	s.dv = s.dk + a.t * a.d;
	for (uint64_t u = first; u < last; u++) {
		const int64_t n = (int64_t)u / a.kv, kv = (int64_t)u % a.kv;
		memset(s.dk, 0, (size_t)(2 * a.t * a.d) * sizeof *s.dk);
		for (int64_t head = kv * group; head < (kv + 1) * group; head++)
			for (int64_t i = 0; i < a.t; i++)
				attend_dx_query(call, &a, n, head, i, &s);
		for (int64_t j = 0; j < a.t; j++)
			for (int64_t e = 0; e < a.d; e++) {
				const int64_t at = ((n * a.t + j) * a.kv + kv) * a.d + e;
				hd_ref_out(call, 1)[at] = (float)s.dk[j * a.d + e];
				hd_ref_out(call, 2)[at] = (float)s.dv[j * a.d + e];
			}
	}
}

/* Recurrent cells. A unit is a sample; its state, in f64, lies in scratch: what is stored is rounded, what
 * goes on is not. */
static uint64_t samples(const struct hd_call *call) { return (uint64_t)call->out[0].dim[0]; }
static size_t cell_scratch(const struct hd_call *call) { return (size_t)(call->in[1].dim[0] + 4 *
	call->in[1].dim[1]) * sizeof(double); }

/* to = w h + b, all gates. */
static void recur(const struct hd_call *call, const double *h, double *to)
{
	const int64_t g = call->in[1].dim[0], width = call->in[1].dim[1];

	for (int64_t i = 0; i < g; i++) {
		to[i] = (double)hd_ref_in(call, 2)[i];
		for (int64_t k = 0; k < width; k++)
			to[i] += (double)hd_ref_in(call, 1)[i * width + k] * h[k];
	}
}

static void lstm(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t t = call->in[0].dim[1], width = call->in[1].dim[1];
	double *g = scratch, *h = g + 4 * width, *c = h + width;

	for (uint64_t u = first; u < last; u++) {
		memset(h, 0, (size_t)(2 * width) * sizeof *h);
		for (int64_t s = (int64_t)u * t; s < ((int64_t)u + 1) * t; s++) {
			recur(call, h, g);
			for (int64_t i = 0; i < 4 * width; i++) {
				g[i] += (double)hd_ref_in(call, 0)[s * 4 * width + i];
				g[i] = i / width == 2 ? tanh(g[i]) : sigmoid(g[i]);
				hd_ref_out(call, 2)[s * 4 * width + i] = (float)g[i];
			}
			for (int64_t i = 0; i < width; i++) {
				c[i] = g[width + i] * c[i] + g[i] * g[2 * width + i];
				h[i] = g[3 * width + i] * tanh(c[i]);
				hd_ref_out(call, 0)[s * width + i] = (float)h[i];
				hd_ref_out(call, 1)[s * width + i] = (float)c[i];
			}
		}
	}
}

static void lstm_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t t = call->in[0].dim[1], width = call->in[1].dim[1];
	double *dg = scratch, *dh = dg + 4 * width, *dc = dh + width;

	for (uint64_t u = first; u < last; u++) {
		memset(dh, 0, (size_t)(2 * width) * sizeof *dh);
		for (int64_t s = t - 1; s >= 0; s--) {
			const int64_t at = ((int64_t)u * t + s) * width;
			for (int64_t j = 0; j < width; j++) {
				const float *gate = hd_ref_in(call, 3) + 4 * at + j;
				double i = (double)gate[0], f = (double)gate[width],
					n = (double)gate[2 * width], o = (double)gate[3 * width];
				double before = s ? (double)hd_ref_in(call, 2)[at - width + j] : 0,
					squashed = tanh((double)hd_ref_in(call, 2)[at + j]);
				double d = dh[j] + (double)hd_ref_in(call, 0)[at + j],
					c = dc[j] + d * o * (1 - squashed * squashed);
				dg[j] = c * n * i * (1 - i);
				dg[width + j] = c * before * f * (1 - f);
				dg[2 * width + j] = c * i * (1 - n * n);
				dg[3 * width + j] = d * squashed * o * (1 - o);
				dc[j] = c * f;
			}
			for (int64_t j = 0; j < 4 * width; j++)
				hd_ref_out(call, 0)[4 * at + j] = (float)dg[j];
			for (int64_t k = 0; k < width; k++) {
				dh[k] = 0;
				for (int64_t j = 0; j < 4 * width; j++)
					dh[k] += dg[j] * (double)hd_ref_in(call, 1)[j * width + k];
			}
		}
	}
}

static void gru(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t t = call->in[0].dim[1], width = call->in[1].dim[1];
	double *g = scratch, *h = g + 3 * width;

	for (uint64_t u = first; u < last; u++) {
		memset(h, 0, (size_t)width * sizeof *h);
		for (int64_t s = (int64_t)u * t; s < ((int64_t)u + 1) * t; s++) {
			const float *x = hd_ref_in(call, 0) + s * 3 * width;
			recur(call, h, g);
			for (int64_t i = 0; i < width; i++) {
				double r = sigmoid((double)x[i] + g[i]),
					z = sigmoid((double)x[width + i] + g[width + i]);
				double n = tanh((double)x[2 * width + i] + r * g[2 * width + i]);
				h[i] = (1 - z) * n + z * h[i];
				hd_ref_out(call, 0)[s * width + i] = (float)h[i];
				hd_ref_out(call, 1)[s * 3 * width + i] = (float)r;
				hd_ref_out(call, 1)[s * 3 * width + width + i] = (float)z;
				hd_ref_out(call, 1)[s * 3 * width + 2 * width + i] = (float)n;
				hd_ref_out(call, 2)[s * width + i] = (float)g[2 * width + i];
			}
		}
	}
}

static void gru_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t t = call->in[0].dim[1], width = call->in[1].dim[1];
	double *dg = scratch, *dh = dg + 3 * width;

	for (uint64_t u = first; u < last; u++) {
		memset(dh, 0, (size_t)width * sizeof *dh);
		for (int64_t s = t - 1; s >= 0; s--) {
			const int64_t at = ((int64_t)u * t + s) * width;
			for (int64_t j = 0; j < width; j++) {
				const float *gate = hd_ref_in(call, 3) + 3 * at + j;
				double r = (double)gate[0], z = (double)gate[width],
					n = (double)gate[2 * width], pre = (double)hd_ref_in(call, 4)[at + j];
				double before = s ? (double)hd_ref_in(call, 2)[at - width + j] : 0,
					d = dh[j] + (double)hd_ref_in(call, 0)[at + j];
				double dn = d * (1 - z) * (1 - n * n);
				dg[j] = dn * pre * r * (1 - r);
				dg[width + j] = d * (before - n) * z * (1 - z);
				dg[2 * width + j] = dn * r;
				hd_ref_out(call, 0)[3 * at + 2 * width + j] = (float)dn;
				dh[j] = d * z;
			}
			for (int64_t j = 0; j < 3 * width; j++) {
				hd_ref_out(call, 1)[3 * at + j] = (float)dg[j];
				if (j < 2 * width)
					hd_ref_out(call, 0)[3 * at + j] = (float)dg[j];
			}
			for (int64_t k = 0; k < width; k++)
				for (int64_t j = 0; j < 3 * width; j++)
					dh[k] += dg[j] * (double)hd_ref_in(call, 1)[j * width + k];
		}
	}
}

static void recur_dw(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t n = call->in[0].dim[0], t = call->in[0].dim[1], g = call->in[0].dim[2],
		width = call->in[1].dim[2];

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const int64_t i = (int64_t)u / width, k = (int64_t)u % width;
		double sum = 0;
		for (int64_t s = 0; s < n * t; s++)
			sum += s % t ? (double)hd_ref_in(call, 0)[s * g + i] * (double)hd_ref_in(call,
				1)[(s - 1) * width + k] : 0;
		hd_ref_out(call, 0)[u] = (float)sum;
	}
}

/* Word 0 of a token's draw chooses it, word 1 says what becomes of it, word 2 which token that is. */
static void mask_tokens(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t t = call->in[0].dim[1];
	const int32_t *x = call->in[0].at;
	int32_t *ids = call->out[0].at, *labels = call->out[1].at;

	(void)scratch;
	for (uint64_t u = first; u < last; u++) {
		const uint32_t sample = (uint32_t)hd_hash64(x + (int64_t)u / t * t, (size_t)t * sizeof *x);
		const struct hd_philox draw = hd_philox_mask(call->draw.seed, call->draw.step, call->draw.op,
			sample, (uint32_t)((int64_t)u % t));
		const bool chosen = (double)draw.word[0] < (double)call->attr.f[0] * 4294967296.0;
		const double fate = (double)draw.word[1] / 4294967296.0;

		labels[u] = chosen ? x[u] : -1;
		ids[u] = x[u];
		if (chosen && fate < 0.8)
			ids[u] = call->attr.i[0];
		else if (chosen && fate < 0.9)
			ids[u] = (int32_t)(draw.word[2] % (uint32_t)call->attr.i[1]);
	}
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_RMSNORM]       = { hd_ref_rows, hd_ref_no_scratch, rmsnorm },
	[HD_OP_ADD_RMSNORM]   = { hd_ref_rows, hd_ref_no_scratch, rmsnorm },
	[HD_OP_RMSNORM_DX]    = { hd_ref_rows, hd_ref_no_scratch, rmsnorm_dx },
	[HD_OP_RMSNORM_DG]    = { hd_ref_elems, hd_ref_no_scratch, rmsnorm_dg },
	[HD_OP_ROTARY]        = { hd_ref_rows, hd_ref_no_scratch, rotary },
	[HD_OP_SWIGLU]        = { hd_ref_elems, hd_ref_no_scratch, swiglu },
	[HD_OP_SWIGLU_DX]     = { hd_ref_elems, hd_ref_no_scratch, swiglu_dx },
	[HD_OP_ATTEND]        = { attend_units, attend_scratch, attend },
	[HD_OP_ATTEND_PAD]    = { attend_units, attend_scratch, attend },
	[HD_OP_ATTEND_DX]     = { attend_dx_units, attend_dx_scratch, attend_dx },
	[HD_OP_ATTEND_PAD_DX] = { attend_dx_units, attend_dx_scratch, attend_dx },
	[HD_OP_LSTM]          = { samples, cell_scratch, lstm },
	[HD_OP_LSTM_DX]       = { samples, cell_scratch, lstm_dx },
	[HD_OP_GRU]           = { samples, cell_scratch, gru },
	[HD_OP_GRU_DX]        = { samples, cell_scratch, gru_dx },
	[HD_OP_RECUR_DW]      = { hd_ref_elems, hd_ref_no_scratch, recur_dw },
	[HD_OP_MASK_TOKENS]   = { hd_ref_elems, hd_ref_no_scratch, mask_tokens },
};

const struct hd_ref_op *hd_ref_sequences(uint16_t op) { return &rows[op]; }
