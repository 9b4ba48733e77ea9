/* sequences.inc.h -- root-mean-square norms, rotary positions, gates, masked tokens. One source for all
 * paths.
 *
 * 1. Rows are those of rows.inc.h: a sum along a row has 16 lanes; a sum over rows goes up in blocks of 64.
 * 2. An angle is counted in turns, t f / (2 pi), as the sum of two floats, so that its fraction is exact to
 *    2^-40 at any position; sine and cosine of the fraction are polynomials of our own (error below 2^-22
 *    of 1). */
#ifndef HD_DEVICE_CPU_SEQUENCES_INC_H
#define HD_DEVICE_CPU_SEQUENCES_INC_H

#include "base/hash.h"
#include "device/cpu/rows.inc.h"

/* Root mean square. */

HD_INLINE void rms_row(const float *x, size_t n, const float *gamma, float eps, float *y, float *root)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n) {
		struct vf v = vf_load_n(x + i, len);
		lanes = vf_fma(v, v, lanes);
	}
	float mean = vf_sum(lanes) / (float)n + eps, r = 1.0f / __builtin_sqrtf(mean);
	HD_UNITS(i, len, n)
		vf_store_n(y + i, vf_mul(vf_mul(vf_load_n(x + i, len), vf_set(r)), vf_load_n(gamma + i, len)),
			len);
	*root = r;
}

static inline void rmsnorm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++)
		rms_row((const float *)call->in[0].at + row * cols, cols, call->in[1].at, call->attr.f[0],
			(float *)call->out[0].at + row * cols, (float *)call->out[1].at + row);
}

static inline void add_rmsnorm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
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
		rms_row(s, cols, call->in[2].at, call->attr.f[0], (float *)call->out[0].at + row * cols,
			(float *)call->out[2].at + row);
	}
}

/* With u = x r and g = dy gamma: dx = r (g - u mean(g u)). */
static inline void rmsnorm_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	size_t cols = (size_t)hd_cols(&call->out[0]);
	struct elem_run run = row_run((uint64_t)hd_rows(&call->out[0]), cols, tile);
	const float *gamma = call->in[2].at;
	(void)scratch;

	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		const float *dy = (const float *)call->in[0].at + row * cols,
			*x = (const float *)call->in[1].at + row * cols;
		float *dx = (float *)call->out[0].at + row * cols;
		struct vf along = vf_set(0.0f), r = vf_set(((const float *)call->in[3].at)[row]);
		HD_UNITS(i, len, cols) {
			struct vf g = vf_mul(vf_load_n(dy + i, len), vf_load_n(gamma + i, len));
			along = vf_fma(g, vf_mul(vf_load_n(x + i, len), r), along);
		}
		struct vf mean = vf_set(vf_sum(along) / (float)cols);
		HD_UNITS(i, len, cols) {
			struct vf g = vf_mul(vf_load_n(dy + i, len), vf_load_n(gamma + i, len));
			struct vf u = vf_mul(vf_load_n(x + i, len), r);
			vf_store_n(dx + i, vf_mul(r, vf_sub(g, vf_mul(u, mean))), len);
		}
	}
}

/* Columns of one unit. */
HD_INLINE void rms_columns(const float *dy, const float *x, const float *root, uint64_t rows, uint64_t cols,
	size_t n, float *out)
{
	struct vf total = vf_set(0.0f);

	for (uint64_t from = 0; from < rows; from += ROW_BLOCK) {
		uint64_t to = rows - from < ROW_BLOCK ? rows : from + ROW_BLOCK;
		struct vf block = vf_set(0.0f);
		for (uint64_t row = from; row < to; row++) {
			struct vf u = vf_mul(vf_load_n(x + row * cols, n), vf_set(root[row]));
			block = vf_add(block, vf_mul(vf_load_n(dy + row * cols, n), u));
		}
		total = vf_add(total, block);
	}
	vf_store_n(out, total, n);
}

static inline void rmsnorm_dg_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t cols = call->out[0].elems, first = (uint64_t)tile * COLUMN_BLOCK,
		n = cols - first < COLUMN_BLOCK ? cols - first : COLUMN_BLOCK;
	(void)scratch;

	HD_UNITS(i, len, n)
		rms_columns((const float *)call->in[0].at + first + i,
			(const float *)call->in[1].at + first + i, call->in[2].at,
			call->in[0].elems / cols, cols, len, (float *)call->out[0].at + first + i);
}

/* Rotary positions. */

/* sin and cos of 2 pi (p + e) for |e| much below 1: the nearest quarter is taken off, the rest is at most
 * an eighth of a turn. */
HD_INLINE void turn_of(struct vf p, struct vf e, struct vf *sine, struct vf *cosine)
{
	const struct vf magic = vf_set(0x1.8p23f);
	struct vf k = vf_fma(p, vf_set(4.0f), magic), q = vf_sub(k, magic);
	struct vf rest = vf_add(vf_fma(q, vf_set(-0.25f), p), e), a = vf_mul(rest, vf_set(0x1.921fb6p+2f)),
		aa = vf_mul(a, a);
	/* Taylor: the first terms left out are a^11/11! and a^12/12!, below 2^-28 for a <= pi/4 */
	struct vf s = vf_fma(aa, vf_set(1.0f / 362880), vf_set(-1.0f / 5040)),
		c = vf_fma(aa, vf_set(-1.0f / 3628800), vf_set(1.0f / 40320));
	s = vf_fma(s, aa, vf_set(1.0f / 120));
	s = vf_fma(s, aa, vf_set(-1.0f / 6));
	s = vf_fma(vf_mul(s, aa), a, a);
	c = vf_fma(c, aa, vf_set(-1.0f / 720));
	c = vf_fma(c, aa, vf_set(1.0f / 24));
	c = vf_fma(c, aa, vf_set(-0.5f));
	c = vf_fma(c, aa, vf_set(1.0f));
	/* quarter k mod 4: 0 (s, c), 1 (c, -s), 2 (-s, -c), 3 (-c, s) */
	struct vi quarter = vi_and(vf_bits(k), vi_set(3)), zero = vi_set(0);
	struct vm odd = vi_lt(zero, vi_and(quarter, vi_set(1))), late = vi_lt(vi_set(1), quarter);
	struct vm middle = vm_and(vi_lt(zero, quarter), vi_lt(quarter, vi_set(3)));
	struct vi sign = vi_set(INT32_MIN);
	*sine = vi_float_of(vi_xor(vf_bits(vf_select(odd, c, s)), vi_where(late, sign)));
	*cosine = vi_float_of(vi_xor(vf_bits(vf_select(odd, s, c)), vi_where(middle, sign)));
}

/* The n-th root of x in (0, 1) by bisection: no function of libm, and once a tile. */
HD_INLINE double root_of(double x, int64_t n)
{
	double low = 0, high = 1, mid = 0.5;

	for (int step = 0; step < 64; step++) {
		double power = 1, square;
		mid = 0.5 * (low + high);
		square = mid;
		for (int64_t e = n; e > 0; e /= 2) {
			power = e % 2 ? power * square : power;
			square *= square;
		}
		if (power < x)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* base^(-2i/d) / (2 pi) for i in 0 .. half = d/2, each as high + low, by repeated multiplication in f64. */
static inline void frequencies(float base, int64_t half, float *high, float *low)
{
	double ratio = root_of(1.0 / (double)base, half), f = 0.15915494309189535;

	for (int64_t i = 0; i < half; i++, f *= ratio) {
		high[i] = (float)f;
		low[i] = (float)(f - (double)high[i]);
	}
}

static inline uint32_t rotary_ntiles(const struct hd_call *call)
{
	return row_ntiles((uint64_t)hd_rows(&call->in[0]), (uint64_t)hd_cols(&call->in[0]));
}

/* High and low frequencies, sines, cosines. */
static inline size_t rotary_scratch(const struct hd_call *call)
{
	int64_t half = call->in[0].dim[2] / call->attr.i[0] / 2;
	return (size_t)(4 * ((half + HD_UNIT - 1) / HD_UNIT * HD_UNIT)) * sizeof(float);
}

static inline void rotary_row(const float *x, float *y, int64_t heads, size_t half, const float *sine,
	const float *cosine)
{
	for (int64_t h = 0; h < heads; h++, x += 2 * half, y += 2 * half)
		HD_UNITS(i, len, half) {
			struct vf a = vf_load_n(x + i, len), b = vf_load_n(x + half + i, len),
				s = vf_load_n(sine + i, len), c = vf_load_n(cosine + i, len);
			vf_store_n(y + i, vf_sub(vf_mul(a, c), vf_mul(b, s)), len);
			vf_store_n(y + half + i, vf_add(vf_mul(b, c), vf_mul(a, s)), len);
		}
}

static inline void rotary_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	int64_t heads = call->attr.i[0], t = call->in[0].dim[1], cols = call->in[0].dim[2],
		half = cols / heads / 2;
	int64_t room = (half + HD_UNIT - 1) / HD_UNIT * HD_UNIT;
	struct elem_run run = row_run((uint64_t)hd_rows(&call->in[0]), (uint64_t)cols, tile);
	float *high = scratch, *low = high + room, *sine = low + room, *cosine = sine + room;
	struct vi sign = vi_set(call->attr.i[1] ? INT32_MIN : 0);

	frequencies(call->attr.f[0], half, high, low);
	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		struct vf at = vf_set((float)((int64_t)row % t));
		HD_UNITS(i, len, (size_t)half) {
			struct vf f = vf_load_n(high + i, len), p = vf_mul(at, f), s, c;
			struct vf e = vf_fma(at, vf_load_n(low + i, len),
				vf_fma(at, f, vf_sub(vf_set(0.0f), p)));
			turn_of(p, e, &s, &c);
			vf_store_n(sine + i, vi_float_of(vi_xor(vf_bits(s), sign)), len);
			vf_store_n(cosine + i, c, len);
		}
		rotary_row((const float *)call->in[0].at + row * (uint64_t)cols,
			(float *)call->out[0].at + row * (uint64_t)cols, heads, (size_t)half,
			sine, cosine);
	}
}

/* Gates. */

static inline void swiglu_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	const float *a = (const float *)call->in[0].at + run.at, *b = (const float *)call->in[1].at + run.at;
	float *y = (float *)call->out[0].at + run.at;
	(void)scratch;
	HD_UNITS(i, len, run.n) {
		struct vf x = vf_load_n(a + i, len);
		vf_store_n(y + i, vf_mul(vf_mul(x, vf_sigmoid(x)), vf_load_n(b + i, len)), len);
	}
}

/* da = dy b (s + a s (1 - s)), db = dy a s. */
static inline void swiglu_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	const float *dy = (const float *)call->in[0].at + run.at, *a = (const float *)call->in[1].at + run.at,
		*b = (const float *)call->in[2].at + run.at;
	float *da = (float *)call->out[0].at + run.at, *db = (float *)call->out[1].at + run.at;
	(void)scratch;
	HD_UNITS(i, len, run.n) {
		struct vf x = vf_load_n(a + i, len), d = vf_load_n(dy + i, len), s = vf_sigmoid(x),
			silu = vf_mul(x, s);
		struct vf slope = vf_fma(silu, vf_sub(vf_set(1.0f), s), s);
		vf_store_n(da + i, vf_mul(vf_mul(d, vf_load_n(b + i, len)), slope), len);
		vf_store_n(db + i, vf_mul(d, silu), len);
	}
}

/* Masked tokens: a tile is a sample. */

static inline uint32_t sample_ntiles(const struct hd_call *call) { return (uint32_t)call->in[0].dim[0]; }

static inline void mask_tokens_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	int64_t t = call->in[0].dim[1];
	const int32_t *x = (const int32_t *)call->in[0].at + tile * t;
	int32_t *ids = (int32_t *)call->out[0].at + tile * t, *labels = (int32_t *)call->out[1].at + tile * t;
	uint32_t sample = (uint32_t)hd_hash64(x, (size_t)t * sizeof *x);
	double share = (double)call->attr.f[0] * 0x1p32;
	(void)scratch;

	for (int64_t i = 0; i < t; i++) {
		struct hd_philox draw = hd_philox_mask(call->draw.seed, call->draw.step, call->draw.op,
			sample, (uint32_t)i);
		bool chosen = (double)draw.word[0] < share;
		double fate = (double)draw.word[1] * 0x1p-32;
		int32_t other = (int32_t)(draw.word[2] % (uint32_t)call->attr.i[1]);
		labels[i] = chosen ? x[i] : -1;
		ids[i] = !chosen || fate >= 0.9 ? x[i] : fate < 0.8 ? call->attr.i[0] : other;
	}
}

#endif
