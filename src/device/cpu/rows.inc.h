/* rows.inc.h -- sums along rows and columns: losses, layer norm, gradients of biases and
 * tables. One source for all paths.
 *
 * 1. A sum along a row has 16 lanes (lane j takes columns j, j+16, ...), joined by vf_sum().
 * 2. A sum over rows is a column's own chain: 64 rows at a time in ascending order, the
 *    partial sums added in order. Grids are over columns, so no sum is split.
 * 3. softmax_xent reads its logits from memory once: blocks of SOFT_BLOCK columns, whose
 *    maximum rescales the lanes when it grows (Milakov and Gimelshein, "Online normalizer
 *    calculation for softmax", 2018). */
#ifndef HD_DEVICE_CPU_ROWS_INC_H
#define HD_DEVICE_CPU_ROWS_INC_H

#include <math.h>

#include "base/lanes.h"
#include "device/cpu/maps.inc.h"

enum { SOFT_BLOCK = 1024, COLUMN_BLOCK = 64, ROW_BLOCK = 64 };

/* Softmax with cross-entropy. */

HD_INLINE float row_max(const float *x, size_t n, float least)
{
	struct vf top = vf_set(least);

	HD_UNITS(i, len, n)
		top = vf_max(vf_only(vf_load_n(x + i, len), len, vf_set(-__builtin_inff())), top);
	return vf_top(top);
}

/* lanes += exp(x - base). */
HD_INLINE struct vf row_exps(const float *x, size_t n, float base, struct vf lanes)
{
	HD_UNITS(i, len, n) {
		struct vf e = vf_exp(vf_sub(vf_load_n(x + i, len), vf_set(base)));
		lanes = vf_add(lanes, vf_only(e, len, vf_set(0.0f)));
	}
	return lanes;
}

HD_INLINE float one_log(float x) { float lane[HD_UNIT]; vf_store(lane, vf_log(vf_set(x))); return lane[0]; }

/* Logarithm of the sum of exponentials of a row; its maximum in *most. Logits of minus
 * infinity weigh nothing, also where a block holds nothing else: -inf - -inf is no number,
 * so until a larger one comes the base is 0 (and what is no number still shows). */
HD_INLINE float row_lse(const float *x, size_t n, float *most)
{
	struct vf lanes = vf_set(0.0f);
	float top = -__builtin_inff();

	for (size_t at = 0, len; at < n; at += len) {
		len = n - at < SOFT_BLOCK ? n - at : SOFT_BLOCK;
		float next = row_max(x + at, len, top);
		if (next > top && at > 0)
			lanes = vf_mul(lanes, vf_exp(vf_set(top - next)));
		top = next;
		lanes = row_exps(x + at, len, top == -__builtin_inff() ? 0.0f : top, lanes);
	}
	*most = top;
	return top + one_log(vf_sum(lanes));
}

/* Is `label` the first of the largest? */
HD_INLINE bool row_hit(const float *x, int32_t label, float most)
{
	if (label < 0 || !(x[label] == most))
		return false;
	for (int32_t i = 0; i < label; i++)
		if (x[i] == most)
			return false;
	return true;
}

static inline uint32_t logits_ntiles(const struct hd_call *call)
{
	return row_ntiles(call->in[1].elems, (uint64_t)hd_cols(&call->in[0]));
}

static inline void softmax_xent_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->in[0]);
	struct elem_run run = row_run(call->in[1].elems, cols, tile);
	const int32_t *label = call->in[1].at;
	float *loss = call->out[0].at, *lse = call->out[1].at, *hit = call->out[2].at, most;
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		lse[row] = row_lse(x, cols, &most);
		/* no such class: no number, which the step will tell */
		if (label[row] >= (int64_t)cols) {
			loss[row] = NAN;
			hit[row] = 0.0f;
			continue;
		}
		loss[row] = label[row] < 0 ? 0.0f : lse[row] - x[label[row]];
		hit[row] = row_hit(x, label[row], most) ? 1.0f : 0.0f;
	}
}

static inline void softmax_xent_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->in[0]);
	struct elem_run run = row_run(call->in[1].elems, cols, tile);
	const int32_t *label = call->in[1].at;
	const float *lse = call->in[2].at;
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *x = (const float *)call->in[0].at + row * cols;
		float *dx = (float *)call->out[0].at + row * cols;
		if (label[row] < 0) {
			memset(dx, 0, cols * sizeof *dx);
			continue;
		}
		HD_UNITS(i, len, cols)
			vf_store_n(dx + i, vf_exp(vf_sub(vf_load_n(x + i, len), vf_set(lse[row]))), len);
		if (label[row] < (int64_t)cols)
			dx[label[row]] -= 1.0f;
	}
}

static inline uint32_t mse_ntiles(const struct hd_call *call)
{
	return row_ntiles(call->out[0].elems, (uint64_t)hd_cols(&call->in[0]));
}

static inline void mse_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->in[0]);
	struct elem_run run = row_run(call->out[0].elems, cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *a = (const float *)call->in[0].at + row * cols,
			*b = (const float *)call->in[1].at + row * cols;
		struct vf lanes = vf_set(0.0f);
		HD_UNITS(i, len, cols) {
			struct vf gap = vf_sub(vf_load_n(a + i, len), vf_load_n(b + i, len));
			lanes = vf_fma(gap, gap, lanes);
		}
		((float *)call->out[0].at)[row] = vf_sum(lanes) / (float)cols;
	}
}

/* Layer norm. */

HD_INLINE float row_mean(const float *x, size_t n)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n)
		lanes = vf_add(lanes, vf_load_n(x + i, len));
	return vf_sum(lanes) / (float)n;
}

HD_INLINE float row_variance(const float *x, size_t n, float mean)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n) {
		struct vf gap = vf_only(vf_sub(vf_load_n(x + i, len), vf_set(mean)), len, vf_set(0.0f));
		lanes = vf_fma(gap, gap, lanes);
	}
	return vf_sum(lanes) / (float)n;
}

HD_INLINE void norm_row(const float *x, size_t n, const float *gamma, const float *beta, float eps, float *y,
	float stats[2])
{
	float mean = row_mean(x, n), spread = row_variance(x, n, mean) + eps,
		rstd = 1.0f / __builtin_sqrtf(spread);

	HD_UNITS(i, len, n) {
		struct vf unit = vf_mul(vf_sub(vf_load_n(x + i, len), vf_set(mean)), vf_set(rstd));
		vf_store_n(y + i, vf_fma(unit, vf_load_n(gamma + i, len), vf_load_n(beta + i, len)), len);
	}
	stats[0] = mean;
	stats[1] = rstd;
}

static inline uint32_t norm_ntiles(const struct hd_call *call)
{
	return row_ntiles((uint64_t)hd_rows(&call->out[0]), (uint64_t)hd_cols(&call->out[0]));
}

static inline void layernorm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++)
		norm_row((const float *)call->in[0].at + row * cols, cols, call->in[1].at, call->in[2].at,
			call->attr.f[0],
			(float *)call->out[0].at + row * cols, (float *)call->out[1].at + 2 * row);
}

static inline void add_layernorm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *a = (const float *)call->in[0].at + row * cols,
			*b = (const float *)call->in[1].at + row * cols;
		float *s = (float *)call->out[1].at + row * cols;
		HD_UNITS(i, len, cols)
			vf_store_n(s + i, vf_add(vf_load_n(a + i, len), vf_load_n(b + i, len)), len);
		norm_row(s, cols, call->in[2].at, call->in[3].at, call->attr.f[0],
			(float *)call->out[0].at + row * cols, (float *)call->out[2].at + 2 * row);
	}
}

/* With u = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - u mean(g u)). */
HD_INLINE void norm_dx_row(const float *dy, const float *x, const float *gamma, const float stats[2],
	size_t n, float *dx)
{
	struct vf sum = vf_set(0.0f), along = vf_set(0.0f), mean = vf_set(stats[0]), rstd = vf_set(stats[1]);

	HD_UNITS(i, len, n) {
		struct vf g = vf_mul(vf_load_n(dy + i, len), vf_load_n(gamma + i, len));
		struct vf u = vf_mul(vf_sub(vf_load_n(x + i, len), mean), rstd);
		sum = vf_add(sum, g);
		along = vf_fma(g, u, along);          /* g is 0 beyond the edge */
	}
	struct vf gmean = vf_set(vf_sum(sum) / (float)n), umean = vf_set(vf_sum(along) / (float)n);
	HD_UNITS(i, len, n) {
		struct vf g = vf_mul(vf_load_n(dy + i, len), vf_load_n(gamma + i, len));
		struct vf u = vf_mul(vf_sub(vf_load_n(x + i, len), mean), rstd);
		struct vf rest = vf_sub(vf_sub(g, gmean), vf_mul(u, umean));
		vf_store_n(dx + i, vf_mul(rstd, rest), len);
	}
}

static inline void layernorm_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++)
		norm_dx_row((const float *)call->in[0].at + row * cols,
			(const float *)call->in[1].at + row * cols, call->in[2].at,
			(const float *)call->in[3].at + 2 * row, cols, (float *)call->out[0].at + row * cols);
}

/* Sums over rows. */

static inline uint32_t column_ntiles(uint64_t cols) { return (uint32_t)((cols + COLUMN_BLOCK -
	1) / COLUMN_BLOCK); }

enum { COLUMN_UNITS = COLUMN_BLOCK / HD_UNIT };

/* n columns, those of nunits units, of `rows` rows; with x and stats each element is first
 * multiplied by its row's normalised x. nunits is a constant after inlining: several units
 * share each line of memory that a row brings. */
HD_INLINE void column_sums(const int nunits, const float *dy, const float *x, const float *stats,
	uint64_t rows, uint64_t cols, size_t n, float *out)
{
	struct vf total[COLUMN_UNITS], block[COLUMN_UNITS];

	for (int u = 0; u < nunits; u++)
		total[u] = vf_set(0.0f);
	for (uint64_t from = 0; from < rows; from += ROW_BLOCK) {
		uint64_t to = rows - from < ROW_BLOCK ? rows : from + ROW_BLOCK;
		for (int u = 0; u < nunits; u++)
			block[u] = vf_set(0.0f);
		for (uint64_t row = from; row < to; row++)
#pragma GCC unroll 4
			for (int u = 0; u < nunits; u++) {
				size_t len = nunits > 1 ? HD_UNIT : n;
				struct vf d = vf_load_n(dy + row * cols + u * HD_UNIT, len);
				if (x) {
					struct vf gap = vf_sub(vf_load_n(x + row * cols + u * HD_UNIT, len),
						vf_set(stats[2 * row]));
					d = vf_mul(d, vf_mul(gap, vf_set(stats[2 * row + 1])));
				}
				block[u] = vf_add(block[u], d);
			}
		for (int u = 0; u < nunits; u++)
			total[u] = vf_add(total[u], block[u]);
	}
	for (int u = 0; u < nunits; u++)
		vf_store_n(out + u * HD_UNIT, total[u], nunits > 1 ? HD_UNIT : n);
}

HD_INLINE void column_tile(const float *dy, const float *x, const float *stats, uint64_t rows, uint64_t cols,
	uint32_t tile, float *out)
{
	uint64_t first = (uint64_t)tile * COLUMN_BLOCK, n = cols - first < COLUMN_BLOCK ? cols - first :
		COLUMN_BLOCK;

	if (n == COLUMN_BLOCK) {
		column_sums(COLUMN_UNITS, dy + first, x ? x + first : NULL, stats, rows, cols, n,
			out + first);
		return;
	}
	HD_UNITS(i, len, n)
		column_sums(1, dy + first + i, x ? x + first + i : NULL, stats, rows, cols, len,
			out + first + i);
}

static inline uint32_t layernorm_dg_ntiles(const struct hd_call *call)
{
	return column_ntiles(call->out[0].elems);
}

static inline void layernorm_dg_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t cols = call->out[0].elems;
	(void)scratch;
	column_tile(call->in[0].at, call->in[1].at, call->in[2].at, call->in[0].elems / cols, cols, tile,
		call->out[0].at);
}

/* The operand seen as [outer, kept, inner]. */
HD_INLINE uint64_t sum_inner(const struct hd_call *call)
{
	const struct hd_operand *x = &call->in[0];
	uint64_t inner = 1;

	if (call->attr.i[1] == 0 && call->attr.i[0] == 1)
		for (int d = 2; d < x->rank; d++)
			inner *= (uint64_t)x->dim[d];
	return inner;
}

static inline uint32_t sum_rows_ntiles(const struct hd_call *call)
{
	return sum_inner(call) > 1 ? (uint32_t)call->out[0].elems : column_ntiles(call->out[0].elems);
}

/* Images: planes of one channel, each summed as a row, added in order of the images. */
HD_INLINE float plane_sums(const float *x, uint64_t outer, uint64_t step, uint64_t inner)
{
	float total = 0.0f;

	for (uint64_t o = 0; o < outer; o++) {
		struct vf lanes = vf_set(0.0f);
		HD_UNITS(i, len, inner)
			lanes = vf_add(lanes, vf_load_n(x + o * step + i, len));
		total += vf_sum(lanes);
	}
	return total;
}

static inline void sum_rows_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t kept = call->out[0].elems, inner = sum_inner(call),
		outer = call->in[0].elems / (kept * inner);
	const float *x = call->in[0].at;
	float *out = call->out[0].at;
	(void)scratch;

	if (inner > 1)
		out[tile] = plane_sums(x + tile * inner, outer, kept * inner, inner);
	else
		column_tile(x, NULL, NULL, outer, kept, tile, out);
}

static inline uint32_t embed_dw_ntiles(const struct hd_call *call)
{
	return column_ntiles((uint64_t)hd_cols(&call->out[0]));
}

static inline void embed_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t cols = (uint64_t)hd_cols(&call->out[0]), first = (uint64_t)tile * COLUMN_BLOCK;
	uint64_t n = cols - first < COLUMN_BLOCK ? cols - first : COLUMN_BLOCK;
	const int32_t *id = call->in[1].at;
	float *out = (float *)call->out[0].at + first;
	(void)scratch;

	for (uint64_t row = 0; row < (uint64_t)hd_rows(&call->out[0]); row++)
		memset(out + row * cols, 0, n * sizeof *out);
	for (uint64_t at = 0; at < call->in[1].elems; at++) {
		const float *from = (const float *)call->in[0].at + at * cols + first;
		if (id[at] < 0 || id[at] >= call->out[0].dim[0])
			continue;
		float *to = out + (uint64_t)id[at] * cols;
		HD_UNITS(i, len, n)
			vf_store_n(to + i, vf_add(vf_load_n(to + i, len), vf_load_n(from + i, len)), len);
	}
}

/* Whole-tensor counts. */

static inline uint32_t one_tile(const struct hd_call *call) { (void)call; return 1; }

static inline void sum64_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)tile;
	(void)scratch;
	*(double *)call->out[0].at = hd_lanes_sum(call->in[0].at, call->in[0].elems);
}

static inline void count64_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int32_t *label = x->at;
	uint64_t count = 0;
	(void)tile;
	(void)scratch;

	if (x->dtype == HD_F32)
		count = (uint64_t)x->dim[0];
	for (uint64_t i = 0; x->dtype == HD_I32 && i < x->elems; i++)
		count += label[i] != -1;
	*(double *)call->out[0].at = (double)count;
}

#endif
