/* eval64.inc.h -- forward ops in f64, for finite differences: an oracle that shares no
 * code with any device. Included by tests only, once.
 *
 * Values are arrays of double, integers included; eval64() runs the forward nodes of a
 * graph in order. Where the reference gathers (loops over what an output reads), this
 * scatters (loops over what an input reaches), so that a wrong index is wrong twice in
 * different ways. Gradient ops are not here: differences judge them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"
#include "graph/op.h"

struct eval64 {
	const struct hd_graph *graph;
	uint64_t rows;
	struct hd_draw draw;
	/* [nvalues]; inputs, parameters and constants filled by the caller */
	double **at;
};

struct shape64 { int64_t dim[HD_MAX_DIMS], elems, last; int rank; };

static struct shape64 shape64(const struct eval64 *e, uint32_t v)
{
	const struct hd_value *value = &e->graph->value[v];
	struct shape64 s = { .rank = value->rank, .elems = 1 };

	for (int d = 0; d < s.rank; d++) {
		s.dim[d] = value->dim[d] < 0 ? -value->dim[d] * (int64_t)e->rows : value->dim[d];
		s.elems *= s.dim[d];
	}
	s.last = s.dim[s.rank - 1];
	return s;
}

/* The column `oracle` of acts.def: other formulas than the reference's where there is a choice. */
static double act64(int act, const float *f, double x)
{
	const double a = (double)f[0], b = (double)f[1];

	switch ((enum hd_act)act) {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, ...) \
	case HD_ACT_##id: return oracle;
#include "graph/acts.def"
	case HD_NACTS: break;
	}
	return (double)NAN;
}

static void matmul64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	bool ta = n->attr.i[0], tb = n->attr.i[1];
	int64_t arows = s[0].elems / s[0].last, m = ta ? s[0].last : arows, depth = ta ? arows : s[0].last;
	int64_t cols = tb ? s[1].elems / s[1].last : s[1].last;

	for (int64_t p = 0; p < depth; p++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < cols; j++)
				out[0][i * cols + j] += in[0][ta ? p * m + i : i * depth + p] * in[1][tb ?
					j * depth + p : p * cols + j];
}

static void conv64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	const int32_t *a = n->attr.i;
	const int64_t *x = s[0].dim, *w = s[1].dim, each = w[0] / (x[1] / w[1]), dh = a[5] ? a[5] : 1,
		dw = a[6] ? a[6] : 1;

	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t ch = e / (x[3] * x[2]) % x[1], img = e / (x[3] * x[2] * x[1]), group = ch / w[1];
		for (int64_t k = group * each; k < (group + 1) * each; k++)
			for (int64_t r = 0; r < w[2]; r++)
				for (int64_t c = 0; c < w[3]; c++) {
					int64_t col = e % x[3] + a[3] - c * dw,
						row = e / x[3] % x[2] + a[2] - r * dh;
					if (row % a[0] || col % a[1] || row < 0 || col < 0 ||
						row / a[0] >= y->dim[2] || col / a[1] >= y->dim[3])
						continue;
					out[0][((img * w[0] + k) * y->dim[2] + row / a[0]) * y->dim[3] +
						col / a[1]] +=
						in[0][e] * in[1][((k * w[1] + ch % w[1]) * w[2] + r) * w[3] +
						c];
				}
	}
}

/* By what is read: element p of dy goes to p stride + r dilation - pad. */
static void conv_dx64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	const int32_t *a = n->attr.i;
	const int64_t *dy = s[0].dim, *w = s[1].dim, each = w[0] / (y->dim[1] / w[1]);

	for (int64_t e = 0; e < s[0].elems; e++) {
		int64_t q = e % dy[3], p = e / dy[3] % dy[2], k = e / (dy[3] * dy[2]) % dy[1],
			img = e / (dy[3] * dy[2] * dy[1]);
		for (int64_t t = 0; t < w[1] * w[2] * w[3]; t++) {
			int64_t c = k / each * w[1] + t / (w[2] * w[3]),
				i = p * a[0] + t / w[3] % w[2] * (a[5] ? a[5] : 1) - a[2],
				j = q * a[1] + t % w[3] * (a[6] ? a[6] : 1) - a[3];
			if (i >= 0 && i < y->dim[2] && j >= 0 && j < y->dim[3])
				out[0][((img * y->dim[1] + c) * y->dim[2] + i) * y->dim[3] + j] +=
					in[0][e] * in[1][k * w[1] * w[2] * w[3] + t];
		}
	}
}

static void attention64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	int64_t t = s[0].dim[1], c = s[0].dim[2] / 3, heads = n->attr.i[0], d = c / heads;

	for (int64_t img = 0; img < s[0].dim[0]; img++)
		for (int64_t e = 0; e < t * heads; e++) {
			int64_t i = e / heads, h = e % heads, upto = n->attr.i[1] ? i + 1 : t;
			const double *x = in[0] + img * t * 3 * c;
			double norm = 0;
			for (int64_t pass = 0; pass < 2; pass++)
				for (int64_t j = 0; j < upto; j++) {
					double score = 0;
					for (int64_t k = h * d; k < (h + 1) * d; k++)
						score += x[i * 3 * c + k] * x[j * 3 * c + c + k];
					score = exp(score / sqrt((double)d));
					norm += pass == 0 ? score : 0;
					for (int64_t k = h * d; pass == 1 && k < (h + 1) * d; k++)
						out[0][(img * t + i) * c + k] += score / norm *
							x[j * 3 * c + 2 * c + k];
				}
			out[1][(img * heads + h) * t + i] = log(norm);
		}
}

static void layernorm64(const struct hd_node *n, const struct shape64 *s, double **in, double **out)
{
	bool fused = n->op == HD_OP_ADD_LAYERNORM;
	int64_t c = s[0].last;
	double *y = out[0], *stats = out[fused ? 2 : 1];

	for (int64_t r = 0; r < s[0].elems / c; r++) {
		double x, sum = 0, square = 0;
		for (int64_t i = r * c; i < (r + 1) * c; i++) {
			y[i] = x = in[0][i] + (fused ? in[1][i] : 0);
			sum += x;
			if (fused)
				out[1][i] = x;
		}
		for (int64_t i = r * c; i < (r + 1) * c; i++)
			square += pow(y[i] - sum / (double)c, 2);
		stats[2 * r] = sum / (double)c;
		stats[2 * r + 1] = pow(square / (double)c + (double)n->attr.f[0], -0.5);
		for (int64_t i = r * c; i < (r + 1) * c; i++)
			y[i] = (y[i] - stats[2 * r]) * stats[2 * r + 1] * in[fused ? 2 : 1][i % c] +
				in[fused ? 3 : 2][i % c];
	}
}

#include "tests/eval64_images.inc.h"

static void xent64(const struct shape64 *s, double **in, double **out)
{
	int64_t v = s[0].last;

	for (int64_t r = 0; r < s[0].elems / v; r++) {
		const double *x = in[0] + r * v;
		int64_t best = v - 1, label = (int64_t)in[1][r];
		for (int64_t i = v - 1; i >= 0; i--) {
			best = x[i] >= x[best] ? i : best;
			out[1][r] += exp(x[i]);
		}
		out[1][r] = log(out[1][r]);
		out[0][r] = label < 0 ? 0 : out[1][r] - x[label];
		out[2][r] = best == label;
	}
}

#include "tests/eval64_blocked.inc.h"

static int64_t channel64(const struct shape64 *s, int axis, int64_t e)
{
	if (axis < 0)
		return e % s->last;
	return e / (s->elems / s->dim[0] / s->dim[1]) % s->dim[1];
}

static void sum_rows64(const struct hd_node *n, const struct shape64 *s, int64_t kept, double **in,
	double **out)
{
	for (int64_t e = 0; e < s[0].elems; e++)
		out[0][n->attr.i[1] ? e % kept : channel64(&s[0], n->attr.i[0], e)] += in[0][e];
}

static double dropout64(const struct eval64 *ev, const struct hd_node *n, const struct shape64 *s, int64_t e)
{
	int64_t n1 = n->attr.i[1] ? s[0].dim[1] : 1, all1 = n->attr.i[1] ? n->attr.i[1] : 1,
		from = n->attr.i[0];
	int64_t inner = s[0].elems / s[0].dim[0] / n1, at =
		((e / inner / n1) * all1 + from + e / inner % n1) * inner + e % inner;
	uint64_t per_row = (uint64_t)(s[0].elems / n1 * all1) / ev->rows,
		element = ev->draw.row0 * per_row + (uint64_t)at;
	uint32_t word = hd_philox_model(ev->draw.seed, ev->draw.step, ev->draw.vn, n->key,
		element >> 2).word[element & 3];

	return (double)word < floor((double)n->attr.f[0] * 4294967296.0) ? 0 : 1 / (1 - (double)n->attr.f[0]);
}

/* Edges draw by their number, whatever virtual node they are computed in. */
static void edge_dropout64(const struct eval64 *ev, const struct hd_node *n, const struct shape64 *y,
	double **in, double **out)
{
	for (int64_t i = 0; i < y->elems; i++) {
		double number = in[0][i / y->last];
		if (number < 0)           /* a slot without an edge */
			continue;
		uint64_t at = (uint64_t)number * (uint64_t)y->last + (uint64_t)(i % y->last);
		uint32_t word = hd_philox_model(ev->draw.seed, ev->draw.step, 0, n->key,
			at >> 2).word[at & 3];
		if ((double)word >= floor((double)n->attr.f[0] * 4294967296.0))
			out[0][i] = in[1][i] / (1 - (double)n->attr.f[0]);
	}
}

#include "tests/eval64_batch.inc.h"
#include "tests/eval64_sequences.inc.h"
#include "tests/eval64_tensors.inc.h"

#define OP_ORACLE
#include "graph/ops.def"

/* The ops that are one file each (ops.def). false: none of them. */
static bool ops64(const struct hd_node *n, const struct shape64 *s, const struct shape64 *y, double **in,
	double **out)
{
	switch (n->op) {
#define OP_EVAL(id, eval) case HD_OP_##id: eval(n, s, y, in, out); return true;
#include "graph/ops.def"
	default: return false;
	}
}

static void node64(const struct eval64 *ev, const struct hd_node *n)
{
	struct shape64 s[HD_MAX_IN], y = shape64(ev, n->out);
	double *in[HD_MAX_IN], *out[HD_MAX_OUT];

	for (int i = 0; i < n->nin; i++) {
		s[i] = shape64(ev, n->in[i]);
		in[i] = ev->at[n->in[i]];
	}
	for (uint32_t i = 0; i < n->nout; i++) {
		out[i] = ev->at[n->out + i];
		memset(out[i], 0, (size_t)shape64(ev, n->out + i).elems * sizeof(double));
	}
	if (ops64(n, s, &y, in, out) || tensors64(ev, n, s, &y, in, out) ||
		batch64(n, s, &y, in, out) || sequences64(ev, n, s, in, out))
		return;
	switch (n->op) {
	case HD_OP_MATMUL:        matmul64(n, s, in, out); return;
	case HD_OP_EDGE_DROPOUT:  edge_dropout64(ev, n, &y, in, out); return;
	case HD_OP_CONV2D:        conv64(n, s, &y, in, out); return;
	case HD_OP_CONV2D_DX:     conv_dx64(n, s, &y, in, out); return;
	case HD_OP_CONV2D_B:      conv_b64(n, s, &y, in, out); return;
	case HD_OP_BLOCK:         block64(&s[0], &y, in[0], out[0], true); return;
	case HD_OP_UNBLOCK:       block64(&y, &s[0], in[0], out[0], false); return;
	case HD_OP_ATTENTION:     attention64(n, s, in, out); return;
	case HD_OP_LAYERNORM:
	case HD_OP_ADD_LAYERNORM: layernorm64(n, s, in, out); return;
	case HD_OP_MAXPOOL2D:
	case HD_OP_AVGPOOL2D:     pool64(n, s, &y, in, out); return;
	case HD_OP_GROUPNORM:     groupnorm64(n, s, in, out); return;
	case HD_OP_SOFTMAX_XENT:  xent64(s, in, out); return;
	case HD_OP_SUM_ROWS:      sum_rows64(n, s, y.elems, in, out); return;
	default:                  break;
	}
	for (int64_t e = 0; e < (n->op == HD_OP_EMBED ? y.elems : s[0].elems); e++)
		switch (n->op) {
		case HD_OP_RESHAPE: out[0][e] = in[0][e]; break;
		case HD_OP_SCALE:   out[0][e] = in[0][e] * (double)n->attr.f[0]; break;
		case HD_OP_BIAS:    out[0][e] = in[0][e] + in[1][channel64(&s[0], n->attr.i[0], e)]; break;
		case HD_OP_BIAS_ACT:
			out[0][e] = in[0][e] + in[1][channel64(&s[0], n->attr.i[0], e)];
			out[1][e] = act64(n->attr.i[1], n->attr.f, out[0][e]);
			break;
		case HD_OP_ACT:     out[0][e] = act64(n->attr.i[0], n->attr.f, in[0][e]); break;
		case HD_OP_EMBED:   out[0][e] = in[1][(int64_t)in[0][e / s[1].last] * s[1].last +
			e % s[1].last]; break;
		case HD_OP_MSE:     out[0][e / s[0].last] += pow(in[0][e] - in[1][e], 2) / (double)s[0].last;
			break;
		case HD_OP_SUM64:   out[0][0] += in[0][e]; break;
		case HD_OP_COUNT64:
			out[0][0] += ev->graph->value[n->in[0]].dtype == HD_I32 ? in[0][e] != -1 :
				e % (s[0].elems / s[0].dim[0]) == 0;
			break;
		case HD_OP_DROPOUT: out[0][e] = in[0][e] * dropout64(ev, n, s, e); break;
		default:            abort();
		}
}

static void eval64_run(const struct eval64 *ev)
{
	for (uint32_t i = 0; i < ev->graph->nnodes; i++)
		if (ev->graph->node[i].phase == HD_PHASE_F)
			node64(ev, &ev->graph->node[i]);
}

static void eval64_make(struct eval64 *ev, const struct hd_graph *graph, uint64_t rows)
{
	*ev = (struct eval64){ .graph = graph, .rows = rows, .at = calloc(graph->nvalues, sizeof *ev->at) };
	for (uint32_t v = 0; v < graph->nvalues; v++)
		ev->at[v] = calloc((size_t)shape64(ev, v).elems + 1, sizeof(double));
}

static void eval64_finish(struct eval64 *ev)
{
	for (uint32_t v = 0; v < ev->graph->nvalues; v++)
		free(ev->at[v]);
	free(ev->at);
}
