/* maps.inc.h -- elementwise ops: arithmetic, bias, activations, embedding, dropout.
 * One source for all paths.
 *
 * 1. A tile is MAP_ELEMS consecutive elements, or as many whole rows as hold about
 *    that many.
 * 2. Every element is computed alone: no order to fix. */
#ifndef HD_DEVICE_CPU_MAPS_INC_H
#define HD_DEVICE_CPU_MAPS_INC_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/philox.h"
#include "device/cpu/acts.inc.h"
#include "device/kernel.h"

enum { MAP_ELEMS = 16384 };

static inline size_t scratch_none(const struct hd_call *call) { (void)call; return 0; }

/* The elements [at, at + n) of the first output that a tile makes. */
struct elem_run { uint64_t at, n; };
HD_INLINE struct elem_run map_run(const struct hd_call *call, uint32_t tile)
{
	uint64_t at = (uint64_t)tile * MAP_ELEMS, left = call->out[0].elems - at;
	return (struct elem_run){ at, left < MAP_ELEMS ? left : MAP_ELEMS };
}
static inline uint32_t map_ntiles(const struct hd_call *call)
{
	return (uint32_t)((call->out[0].elems + MAP_ELEMS - 1) / MAP_ELEMS);
}

/* Rows of `cols` elements, MAP_ELEMS or so at a time. */
HD_INLINE uint64_t rows_of_tile(uint64_t cols) { return cols >= MAP_ELEMS ? 1 : MAP_ELEMS / cols; }
HD_INLINE uint32_t row_ntiles(uint64_t rows, uint64_t cols)
{
	uint64_t per = rows_of_tile(cols);
	return (uint32_t)((rows + per - 1) / per);
}
HD_INLINE struct elem_run row_run(uint64_t rows, uint64_t cols, uint32_t tile)
{
	uint64_t per = rows_of_tile(cols), at = (uint64_t)tile * per;
	return (struct elem_run){ at, rows - at < per ? rows - at : per };
}

static inline void scale_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	const float *a = (const float *)call->in[0].at + run.at;
	float *out = (float *)call->out[0].at + run.at;
	(void)scratch;
	HD_UNITS(i, len, run.n)
		vf_store_n(out + i, vf_mul(vf_load_n(a + i, len), vf_set(call->attr.f[0])), len);
}

static inline void act_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	(void)scratch;
	act_all(call->attr.i[0], call->attr.f, (const float *)call->in[0].at + run.at,
		(float *)call->out[0].at + run.at, run.n);
}

static inline void act_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	(void)scratch;
	act_dx_all(call->attr.i[0], call->attr.f, (const float *)call->in[0].at + run.at,
		(const float *)call->in[1].at + run.at,
		(float *)call->out[0].at + run.at, run.n);
}

/* A bias as rows: along the last extent each row adds all of b; for images a row is one plane
 * and adds one element of b. */
struct bias { uint64_t rows, cols, nchannels; bool planes; };
HD_INLINE struct bias bias_of(const struct hd_operand *x, const struct hd_operand *b, int axis)
{
	bool planes = axis == 1 && x->rank > 2;
	uint64_t cols = b->elems;

	if (planes) {
		cols = 1;
		for (int d = 2; d < x->rank; d++)
			cols *= (uint64_t)x->dim[d];
	}
	return (struct bias){ x->elems / cols, cols, b->elems, planes };
}

HD_INLINE void bias_row(const struct bias *s, const float *x, const float *b, uint64_t row, float *z)
{
	const float *from = s->planes ? b + row % s->nchannels : b;

	HD_UNITS(i, len, s->cols) {
		struct vf add = s->planes ? vf_set(*from) : vf_load_n(from + i, len);
		vf_store_n(z + i, vf_add(vf_load_n(x + i, len), add), len);
	}
}

static inline uint32_t bias_ntiles(const struct hd_call *call)
{
	struct bias s = bias_of(&call->in[0], &call->in[1], call->attr.i[0]);
	return row_ntiles(s.rows, s.cols);
}

static inline void bias_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct bias s = bias_of(&call->in[0], &call->in[1], call->attr.i[0]);
	struct elem_run run = row_run(s.rows, s.cols, tile);
	(void)scratch;
	for (uint64_t row = run.at; row < run.at + run.n; row++)
		bias_row(&s, (const float *)call->in[0].at + row * s.cols, call->in[1].at, row,
			(float *)call->out[0].at + row * s.cols);
}

static inline void bias_act_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct bias s = bias_of(&call->in[0], &call->in[1], call->attr.i[0]);
	struct elem_run run = row_run(s.rows, s.cols, tile);
	float *z = call->out[0].at, *y = call->out[1].at;
	(void)scratch;
	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		uint64_t at = row * s.cols;
		bias_row(&s, (const float *)call->in[0].at + at, call->in[1].at, row, z + at);
		act_all(call->attr.i[1], call->attr.f, z + at, y + at, s.cols);
	}
}

static inline uint32_t embed_ntiles(const struct hd_call *call)
{
	return row_ntiles(call->in[0].elems, (uint64_t)hd_cols(&call->in[1]));
}

static inline void embed_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t cols = (uint64_t)hd_cols(&call->in[1]);
	struct elem_run run = row_run(call->in[0].elems, cols, tile);
	const int32_t *id = call->in[0].at;
	(void)scratch;
	for (uint64_t row = run.at; row < run.at + run.n; row++) {
		float *to = (float *)call->out[0].at + row * cols;
		if (id[row] >= 0 && id[row] < call->in[1].dim[0])
			memcpy(to, (const float *)call->in[1].at + (uint64_t)id[row] * cols,
				cols * sizeof(float));
		else                       /* no such row: NaN, which the step will report */
			for (uint64_t i = 0; i < cols; i++)
				to[i] = NAN;
	}
}

/* Both halves of the products a[i] * by, sixteen at a time: even and odd elements apart, as
 * the instructions for 32 x 32 -> 64 bits take them. */
HD_INLINE void mul_wide(struct vi a, uint32_t by, struct vi *high, struct vi *low)
{
	for (int i = 0; i < HD_PARTS; i++) {
		uwide even = (uwide)a.p[i] & 0xffffffffu, odd = (uwide)a.p[i] >> 32;
		even *= by;
		odd *= by;
		low->p[i] = (ipart)((even & 0xffffffffu) | odd << 32);
		high->p[i] = (ipart)(even >> 32 | (odd & ~UINT64_C(0xffffffff)));
	}
}

/* Philox4x32-10 of sixteen consecutive blocks, as philox.h has it for one: word[k] holds word k
 * of each. */
HD_INLINE void philox_unit(const struct hd_draw *draw, uint64_t block, struct vi word[4])
{
	static const int32_t index[HD_UNIT] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	uint64_t key = hd_philox_key(draw->seed, HD_RNG_MODEL);
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	struct vi c0, c1 = vi_set((int32_t)draw->op), c2 = vi_set((int32_t)(uint32_t)draw->step);
	struct vi c3 = vi_set((int32_t)(draw->vn | (uint32_t)(draw->step >> 32) << 20)), h0, h1;

	memcpy(&c0, index, sizeof c0);
	c0 = vi_add(c0, vi_set((int32_t)(uint32_t)block));
	for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
		struct vi l0, l1;
		mul_wide(c0, 0xD2511F53u, &h0, &l0);
		mul_wide(c2, 0xCD9E8D57u, &h1, &l1);
		c0 = vi_xor(vi_xor(h1, c1), vi_set((int32_t)k0));
		c1 = l1;
		c2 = vi_xor(vi_xor(h0, c3), vi_set((int32_t)k1));
		c3 = l0;
	}
	word[0] = c0;
	word[1] = c1;
	word[2] = c2;
	word[3] = c3;
}

/* The draws of elements 4 * block .. + 63 in order, shifted so that a signed comparison
 * orders them as unsigned numbers. */
HD_INLINE void draws_of(const struct hd_draw *draw, uint64_t block, int32_t flat[4 * HD_UNIT])
{
	int32_t word[4][HD_UNIT];
	struct vi unit[4];

	philox_unit(draw, block, unit);
	for (int k = 0; k < 4; k++)
		unit[k] = vi_xor(unit[k], vi_set(INT32_MIN));
	memcpy(word, unit, sizeof word);
	for (int i = 0; i < HD_UNIT; i++)
		for (int k = 0; k < 4; k++)
			flat[4 * i + k] = word[k][i];
}

/* `count` elements that draw the numbers from `element` on. */
static inline void dropout_run(const struct hd_call *call, const float *x, float *y, uint64_t element,
	uint64_t count)
{
	struct vf kept = vf_set(1.0f - call->attr.f[0]), zero = vf_set(0.0f);
	struct vi from = vi_set((int32_t)(hd_keep_from((double)call->attr.f[0]) ^ 0x80000000u));
	int32_t flat[5 * HD_UNIT] = { 0 };         /* a unit may start at any draw of the block */

	for (uint64_t i = 0, n; i < count; i += n) {
		uint64_t skip = (element + i) % 4;
		n = count - i < 4 * HD_UNIT - skip ? count - i : 4 * HD_UNIT - skip;
		draws_of(&call->draw, (element + i) / 4, flat);
		HD_UNITS(j, len, n) {
			struct vm drop = vi_lt(vf_bits(vf_load((const float *)(const void *)(flat + skip +
				j))), from);
			vf_store_n(y + i + j, vf_select(drop, zero, vf_div(vf_load_n(x + i + j, len), kept)),
				len);
		}
	}
}

/* The element's number inside its virtual node keys the draw, so that a slice draws what the
 * whole would; row0 counts extent 0. Rows of a part lie further apart in the whole. */
static inline void dropout_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct hd_operand *out = &call->out[0];
	struct elem_run run = map_run(call, tile);
	const float *x = (const float *)call->in[0].at + run.at;
	float *y = (float *)out->at + run.at;
	uint64_t per = out->elems / (uint64_t)out->dim[0], whole = per, first = 0;
	(void)scratch;

	if (call->attr.i[1]) {
		whole = per / (uint64_t)out->dim[1] * (uint64_t)call->attr.i[1];
		first = per / (uint64_t)out->dim[1] * (uint64_t)call->attr.i[0];
	}
	for (uint64_t i = 0, n; i < run.n; i += n) {
		uint64_t row = (run.at + i) / per, inside = (run.at + i) % per,
			left = whole == per ? run.n : per - inside;
		n = run.n - i < left ? run.n - i : left;
		dropout_run(call, x + i, y + i, (call->draw.row0 + row) * whole + first + inside, n);
	}
}

static inline void mse_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	const float *a = (const float *)call->in[0].at + run.at, *b = (const float *)call->in[1].at + run.at;
	float *out = (float *)call->out[0].at + run.at;
	struct vf c = vf_set((float)hd_cols(&call->in[0]));
	(void)scratch;
	HD_UNITS(i, len, run.n) {
		struct vf gap = vf_sub(vf_load_n(a + i, len), vf_load_n(b + i, len));
		vf_store_n(out + i, vf_div(vf_add(gap, gap), c), len);
	}
}

#endif
