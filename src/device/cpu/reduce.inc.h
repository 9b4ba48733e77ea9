/* reduce.inc.h -- sums, means, maxima, products over any axes; running sums, softmax, batched products.
 * One source for all paths.
 *
 * 1. x is seen as groups of neighbouring extents, kept or reduced in turn. Where the innermost
 *    group is reduced, an element of the result has 16 lanes over all its terms in order of memory,
 *    joined by vf_sum(), or as it does: lane j with j + 8, then 4, 2, 1. Where it is kept, each column is its
 *    own chain: 64 terms at a time, the partial sums added in order. No sum is split between tiles.
 * 2. A product of matrices is that of gemm.inc.h, one grid per member of the batch. */
#ifndef HD_DEVICE_CPU_REDUCE_INC_H
#define HD_DEVICE_CPU_REDUCE_INC_H

#include "device/cpu/matmul.inc.h"
#include "device/cpu/tensors.inc.h"

enum { FOLD_SUM, FOLD_MAX, FOLD_MIN, FOLD_PROD };

/* Groups of extents, outermost first; at most three of a kind, as they take turns. */
struct spans { int n; int64_t dim[3], step[3]; };
/* The result is rows x cols; `columns`: the innermost group is kept. Extents of 1 count as others do: the
 * order of a sum is a matter of axes, not of how many rows there are. */
struct fold { struct spans kept, reduced; int64_t terms, rows, cols; bool columns; };

HD_INLINE void group_add(struct spans *g, bool more, int64_t n, int64_t step)
{
	int at = more ? g->n - 1 : g->n++;
	g->dim[at] = more ? g->dim[at] * n : n;
	g->step[at] = step;
}

static inline struct fold fold_of(const struct hd_call *call)
{
	const struct hd_operand *x = &call->in[0];
	struct fold f = { .terms = 1, .rows = (int64_t)call->out[0].elems, .cols = 1 };
	int before = -1;

	for (int d = 0; d < x->rank; d++) {
		int reduced = call->attr.i[0] >> d & 1;
		group_add(reduced ? &f.reduced : &f.kept, reduced == before, x->dim[d], inner_of(x, d));
		f.terms *= reduced ? x->dim[d] : 1;
		before = reduced;
	}
	f.columns = before == 0;
	if (f.columns) {
		f.cols = f.kept.dim[--f.kept.n];
		f.rows /= f.cols;
	}
	return f;
}

/* Where member i of the first n groups lies. */
HD_INLINE int64_t group_at(const struct spans *g, int n, int64_t i)
{
	int64_t at = 0;

	for (int d = n - 1; d >= 0; d--) {
		at += i % g->dim[d] * g->step[d];
		i /= g->dim[d];
	}
	return at;
}

HD_INLINE struct vf fold_join(int kind, struct vf acc, struct vf x)
{
	return kind == FOLD_SUM ? vf_add(acc, x) : kind == FOLD_PROD ? vf_mul(acc, x) : kind == FOLD_MAX ?
		vf_larger(x, acc) : vf_smaller(x, acc);
}
HD_INLINE float fold_none(int kind)
{
	return kind == FOLD_SUM ? 0.0f : kind == FOLD_PROD ? 1.0f : kind == FOLD_MAX ? -__builtin_inff() :
		__builtin_inff();
}

HD_INLINE float fold_lanes(int kind, struct vf a)
{
	float lane[HD_UNIT];

	if (kind == FOLD_SUM)
		return vf_sum(a);
	vf_store(lane, a);
	for (int half = HD_UNIT / 2; half > 0; half /= 2)
		for (int j = 0; j < half; j++) {
			float x = lane[j], y = lane[j + half];
			lane[j] = kind == FOLD_PROD ? x * y : x != x ||
				(kind == FOLD_MAX ? x > y : x < y) ? x : y;
		}
	return lane[0];
}

/* One element: the innermost reduced group is a run in memory. */
HD_INLINE float fold_row(int kind, const struct fold *f, const float *x)
{
	int outer = f->reduced.n - 1;
	int64_t run = f->reduced.dim[outer], runs = f->terms / run;
	struct vf lanes = vf_set(fold_none(kind));

	for (int64_t t = 0; t < runs; t++) {
		const float *from = x + group_at(&f->reduced, outer, t);
		HD_UNITS(i, len, (uint64_t)run)
			lanes = fold_join(kind, lanes, vf_only(vf_load_n(from + i, len), len,
				vf_set(fold_none(kind))));
	}
	return fold_lanes(kind, lanes);
}

/* len <= 16 columns of one row of the result. */
HD_INLINE struct vf fold_columns(int kind, const struct fold *f, const float *x, size_t len)
{
	struct vf total = vf_set(fold_none(kind));

	for (int64_t first = 0; first < f->terms; first += ROW_BLOCK) {
		int64_t end = first + ROW_BLOCK < f->terms ? first + ROW_BLOCK : f->terms;
		struct vf chain = vf_set(fold_none(kind));
		for (int64_t t = first; t < end; t++)
			chain = fold_join(kind, chain, vf_load_n(x + group_at(&f->reduced, f->reduced.n, t),
				len));
		total = fold_join(kind, total, chain);
	}
	return total;
}

/* Units of a result: elements, or 16 columns of a row. */
HD_INLINE int64_t fold_wide(const struct fold *f) { return (f->cols + HD_UNIT - 1) / HD_UNIT; }
HD_INLINE uint64_t fold_work(const struct fold *f) { return (uint64_t)f->terms * (f->columns ? HD_UNIT : 1); }
static inline uint32_t reduce_ntiles(const struct hd_call *call)
{
	struct fold f = fold_of(call);
	return row_ntiles((uint64_t)(f.rows * fold_wide(&f)), fold_work(&f));
}

HD_INLINE void reduce_run(int kind, const struct hd_call *call, uint32_t tile, float by)
{
	struct fold f = fold_of(call);
	int64_t wide = fold_wide(&f);
	struct elem_run run = row_run((uint64_t)(f.rows * wide), fold_work(&f), tile);
	const float *x = call->in[0].at;
	float *out = call->out[0].at;

	for (int64_t u = (int64_t)run.at; u < (int64_t)(run.at + run.n); u++) {
		int64_t row = u / wide, col = u % wide * HD_UNIT;
		const float *from = x + group_at(&f.kept, f.kept.n, row) + col;
		if (!f.columns) {
			out[row] = fold_row(kind, &f, from) / by;
		} else {
			size_t len = (size_t)(f.cols - col < HD_UNIT ? f.cols - col : HD_UNIT);
			vf_store_n(out + row * f.cols + col,
				vf_div(fold_columns(kind, &f, from, len), vf_set(by)), len);
		}
	}
}

static inline void reduce_sum_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)scratch;
	reduce_run(FOLD_SUM, call, tile, 1.0f); }
static inline void reduce_max_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)scratch;
	reduce_run(FOLD_MAX, call, tile, 1.0f); }
static inline void reduce_min_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)scratch;
	reduce_run(FOLD_MIN, call, tile, 1.0f); }
static inline void reduce_prod_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)scratch;
	reduce_run(FOLD_PROD, call, tile, 1.0f); }
static inline void reduce_mean_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)scratch;
	reduce_run(FOLD_SUM, call, tile, (float)fold_of(call).terms);
}

static inline uint32_t argmax_ntiles(const struct hd_call *call)
{
	return row_ntiles(call->out[0].elems, (uint64_t)call->in[0].dim[call->attr.i[0]]);
}

static inline void argmax_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->in[0], call->attr.i[0]);
	struct elem_run run = row_run(call->out[0].elems, (uint64_t)b.axis, tile);
	(void)scratch;

	for (int64_t e = (int64_t)run.at; e < (int64_t)(run.at + run.n); e++) {
		const float *x = (const float *)call->in[0].at + e / b.inner * b.axis * b.inner + e % b.inner;
		int64_t best = 0;
		for (int64_t i = 1; i < b.axis; i++)
			if (x[i * b.inner] > x[best * b.inner] ||
				(x[i * b.inner] != x[i * b.inner] && x[best * b.inner] == x[best * b.inner]))
				best = i;
		((int32_t *)call->out[0].at)[e] = (int32_t)best;
	}
}

/* Softmax along rows. */

static inline void softmax_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		float *y = (float *)call->out[0].at + row * cols, top = row_max(x, cols, -__builtin_inff());
		struct vf lanes = vf_set(0.0f);
		HD_UNITS(i, len, cols) {
			struct vf e = vf_only(vf_exp(vf_sub(vf_load_n(x + i, len), vf_set(top))), len,
				vf_set(0.0f));
			lanes = vf_add(lanes, e);
			vf_store_n(y + i, e, len);
		}
		struct vf sum = vf_set(vf_sum(lanes));
		HD_UNITS(i, len, cols)
			vf_store_n(y + i, vf_div(vf_load_n(y + i, len), sum), len);
	}
}

static inline void log_softmax_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		float *y = (float *)call->out[0].at + row * cols, top = row_max(x, cols, -__builtin_inff());
		struct vf rest = vf_set(one_log(vf_sum(row_exps(x, cols, top, vf_set(0.0f)))));
		HD_UNITS(i, len, cols)
			vf_store_n(y + i, vf_sub(vf_sub(vf_load_n(x + i, len), vf_set(top)), rest), len);
	}
}

/* softmax: y (dy - sum dy y); its logarithm: dy - e^y sum dy */
HD_INLINE void softmax_dx_run(bool log, const struct hd_call *call, uint32_t tile)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *dy = (const float *)call->in[0].at + row * cols,
			*y = (const float *)call->in[1].at + row * cols;
		float *dx = (float *)call->out[0].at + row * cols;
		struct vf lanes = vf_set(0.0f);
		HD_UNITS(i, len, cols)
			lanes = log ? vf_add(lanes, vf_load_n(dy + i, len)) : vf_fma(vf_load_n(dy + i, len),
				vf_load_n(y + i, len), lanes);
		struct vf sum = vf_set(vf_sum(lanes));
		HD_UNITS(i, len, cols) {
			struct vf d = vf_load_n(dy + i, len), v = vf_load_n(y + i, len);
			vf_store_n(dx + i, log ? vf_sub(d, vf_mul(vf_exp(v), sum)) : vf_mul(v,
				vf_sub(d, sum)), len);
		}
	}
}
static inline void softmax_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)scratch;
	softmax_dx_run(false, call, tile); }
static inline void log_softmax_dx_tile(const struct hd_call *call, uint32_t tile,
	void *scratch) { (void)scratch; softmax_dx_run(true, call, tile); }

/* Batched products. */

static inline struct matmul contract_of(const struct hd_call *call)
{
	const struct hd_operand *a = &call->in[0], *out = &call->out[0];
	return matmul_grid(out->dim[out->rank - 2], out->dim[out->rank - 1],
		a->dim[a->rank - (call->attr.i[0] ? 2 : 1)], call->attr.i[0] != 0);
}

static inline uint32_t contract_ntiles(const struct hd_call *call)
{
	struct matmul g = contract_of(call);
	return (uint32_t)((int64_t)call->out[0].elems / (g.m * g.n) * g.ntall * g.nwide);
}

static inline size_t contract_scratch(const struct hd_call *call)
{
	struct matmul g = contract_of(call);
	return gemm_scratch(g.rows, g.cols, g.k);
}

/* Where the matrix of `in` for member `batch` of the result begins. */
HD_INLINE int64_t batch_at(const struct hd_operand *in, const struct hd_operand *out, int64_t batch)
{
	int64_t at = 0, step = in->dim[in->rank - 2] * in->dim[in->rank - 1];

	for (int d = 2; d < in->rank; d++) {
		int64_t n = out->dim[out->rank - 1 - d], mine = in->dim[in->rank - 1 - d];
		at += mine == 1 ? 0 : batch % n * step;
		batch /= n;
		step *= mine;
	}
	return at;
}

static inline void contract_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct matmul g = contract_of(call);
	int64_t per = g.ntall * g.nwide, batch = tile / per, t = tile % per;
	bool ta = call->attr.i[0] != 0, tb = call->attr.i[1] != 0;
	const float *a = (const float *)call->in[0].at + batch_at(&call->in[0], &call->out[0], batch);
	const float *b = (const float *)call->in[1].at + batch_at(&call->in[1], &call->out[0], batch);
	int64_t i = t % g.ntall * g.rows, j = t / g.ntall * g.cols;
	struct mat left = { ta ? a + i : a + i * g.k, ta ? g.m : g.k, ta };
	struct mat right = { tb ? b + j * g.k : b + j, tb ? g.k : g.n, tb };
	struct gemm_out out = { (float *)call->out[0].at + batch * g.m * g.n + i * g.n + j, g.n,
		min64(g.rows, g.m - i), min64(g.cols, g.n - j), false };

	gemm(left, right, out, g.k, scratch);
}

#endif
