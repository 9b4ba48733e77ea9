/* vec.h -- sixteen floats as one value: the unit in which every kernel of ours
 * computes, whatever the width of the machine's registers.
 *
 * A `struct vf` is one AVX-512 register, two of AVX2, or four groups of four in
 * plain C. The kernels (*.inc.h) are written once against it and compiled once
 * per path.
 *
 * 1. Each operation is IEEE-754 single precision with one rounding per element;
 *    nothing is contracted but vf_fma().
 * 2. Sums and maxima across a vector pair lane j with j+8, then j+4, j+2, j+1.
 * 3. Lanes beyond the end of a row are zero after vf_load_n(); callers choose
 *    another filling by vf_only().
 *
 * Everything is inline: the header is private to the kernels. */
#ifndef HD_DEVICE_CPU_VEC_H
#define HD_DEVICE_CPU_VEC_H

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "device/cpu/vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "device/cpu/vec_avx2.h"
#else
#include "device/cpu/vec_portable.h"
#endif

enum { HD_UNIT = 16, HD_PARTS = HD_UNIT / HD_WIDTH };

struct vf { part p[HD_PARTS]; };
struct vi { ipart p[HD_PARTS]; };
struct vm { pmask p[HD_PARTS]; };           /* of each lane, yes or no */

/* Defines an elementwise function from an expression over the parts of its operands. */
#define HD_VEC1(type, name, from, expr) \
	HD_INLINE type name(from a) { type r; for (int i = 0; i < HD_PARTS; i++) r.p[i] = expr; return r; }
#define HD_VEC2(type, name, from, expr) \
	HD_INLINE type name(from a, from b) \
	{ type r; for (int i = 0; i < HD_PARTS; i++) r.p[i] = expr; return r; }

HD_VEC2(struct vf, vf_add, struct vf, a.p[i] + b.p[i])
HD_VEC2(struct vf, vf_sub, struct vf, a.p[i] - b.p[i])
HD_VEC2(struct vf, vf_mul, struct vf, a.p[i] * b.p[i])
HD_VEC2(struct vf, vf_div, struct vf, a.p[i] / b.p[i])
HD_VEC1(struct vf, vf_sqrt, struct vf, part_sqrt(a.p[i]))
HD_VEC2(struct vm, vf_lt, struct vf, part_lt(a.p[i], b.p[i]))
HD_VEC2(struct vm, vf_eq, struct vf, part_eq(a.p[i], b.p[i]))
/* b where either is no number */
HD_VEC2(struct vf, vf_max, struct vf, part_max(a.p[i], b.p[i]))
HD_VEC1(struct vf, vi_to_float, struct vi, part_from_int(a.p[i]))
HD_VEC1(struct vi, vf_bits, struct vf, (ipart)a.p[i])
HD_VEC1(struct vf, vi_float_of, struct vi, (part)a.p[i])                   /* the same bits */
HD_VEC2(struct vi, vi_add, struct vi, (ipart)((upart)a.p[i] + (upart)b.p[i]))
HD_VEC2(struct vi, vi_sub, struct vi, (ipart)((upart)a.p[i] - (upart)b.p[i]))
HD_VEC2(struct vi, vi_and, struct vi, a.p[i] & b.p[i])
HD_VEC2(struct vi, vi_or, struct vi, a.p[i] | b.p[i])
HD_VEC2(struct vi, vi_xor, struct vi, a.p[i] ^ b.p[i])
HD_VEC2(struct vm, vi_lt, struct vi, ipart_lt(a.p[i], b.p[i]))              /* signed */
HD_VEC2(struct vm, vi_eq, struct vi, ipart_eq(a.p[i], b.p[i]))
HD_VEC2(struct vm, vm_and, struct vm, (pmask)(a.p[i] & b.p[i]))
HD_VEC2(struct vm, vm_or, struct vm, (pmask)(a.p[i] | b.p[i]))
HD_VEC1(struct vm, vm_not, struct vm, mask_not(a.p[i]))
HD_VEC1(struct vi, vi_up23, struct vi, (ipart)((upart)a.p[i] << 23))
HD_VEC1(struct vi, vi_down23, struct vi, a.p[i] >> 23)
#undef HD_VEC1
#undef HD_VEC2

HD_INLINE struct vf vf_set(float x) { struct vf r; for (int i = 0; i < HD_PARTS; i++) r.p[i] = part_set(x);
	return r; }
HD_INLINE struct vi vi_set(int32_t x)
{
	struct vi r;
	for (int i = 0; i < HD_PARTS; i++)
		r.p[i] = (ipart){ 0 } + x;
	return r;
}
HD_INLINE struct vf vf_fma(struct vf a, struct vf b, struct vf c)
{
	struct vf r;
	for (int i = 0; i < HD_PARTS; i++)
		r.p[i] = part_fma(a.p[i], b.p[i], c.p[i]);
	return r;
}
/* 0 where not */
HD_INLINE struct vi vi_where(struct vm m, struct vi a)
{
	struct vi r;
	for (int i = 0; i < HD_PARTS; i++)
		r.p[i] = ipart_where(m.p[i], a.p[i]);
	return r;
}
HD_INLINE struct vf vf_select(struct vm m, struct vf yes, struct vf no)
{
	struct vf r;
	for (int i = 0; i < HD_PARTS; i++)
		r.p[i] = part_select(m.p[i], yes.p[i], no.p[i]);
	return r;
}

HD_INLINE struct vf vf_load(const float *at)
{
	struct vf r;
	for (int i = 0; i < HD_PARTS; i++)
		r.p[i] = part_load(at + i * HD_WIDTH);
	return r;
}
HD_INLINE void vf_store(float *at, struct vf a)
{
	for (int i = 0; i < HD_PARTS; i++)
		part_store(at + i * HD_WIDTH, a.p[i]);
}
/* How many of the first n lanes fall into part i. */
HD_INLINE size_t part_share(size_t n, int i)
{
	size_t before = (size_t)i * HD_WIDTH;
	return n <= before ? 0 : n - before < HD_WIDTH ? n - before : HD_WIDTH;
}
/* n in 1..16; memory beyond n is not touched. */
HD_INLINE struct vf vf_load_n(const float *at, size_t n)
{
	struct vf r;
	if (n >= HD_UNIT)
		return vf_load(at);
	for (int i = 0; i < HD_PARTS; i++) {
		size_t share = part_share(n, i);
		r.p[i] = share ? part_load_n(at + i * HD_WIDTH, share) : part_set(0.0f);
	}
	return r;
}
HD_INLINE void vf_store_n(float *at, struct vf a, size_t n)
{
	if (n >= HD_UNIT) {
		vf_store(at, a);
		return;
	}
	for (int i = 0; i < HD_PARTS; i++) {
		size_t share = part_share(n, i);
		if (share)
			part_store_n(at + i * HD_WIDTH, a.p[i], share);
	}
}

/* Lanes at[0], at[step], ..: n in 1..16, step at least 1; memory beyond the last of them is not touched. */
HD_INLINE struct vf vf_load_step(const float *at, int64_t step, size_t n)
{
	float lane[HD_UNIT] = { 0 };
	struct vf both[2], r;

	if (step == 1)
		return vf_load_n(at, n);
	if (step == 2) {
		size_t span = 2 * n - 1;
		both[0] = vf_load_n(at, span < HD_UNIT ? span : HD_UNIT);
		both[1] = span > HD_UNIT ? vf_load_n(at + HD_UNIT, span - HD_UNIT) : vf_set(0.0f);
		for (int i = 0; i < HD_PARTS; i++)
			r.p[i] = part_even(both[2 * i / HD_PARTS].p[2 * i % HD_PARTS],
				both[(2 * i + 1) / HD_PARTS].p[(2 * i + 1) % HD_PARTS]);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		lane[i] = at[(int64_t)i * step];
	return vf_load(lane);
}

/* The 2n floats at `at` as n pairs, n in 1..16, and back; memory beyond them is not touched. */
HD_INLINE void vf_load_pairs(const float *at, size_t n, struct vf *first, struct vf *second)
{
	struct vf both[2] = { vf_load_n(at, n < HD_UNIT / 2 ? 2 * n : HD_UNIT), vf_set(0.0f) };

	if (n > HD_UNIT / 2)
		both[1] = vf_load_n(at + HD_UNIT, 2 * n - HD_UNIT);
	for (int i = 0; i < HD_PARTS; i++) {
		part a = both[2 * i / HD_PARTS].p[2 * i % HD_PARTS],
			b = both[(2 * i + 1) / HD_PARTS].p[(2 * i + 1) % HD_PARTS];
		first->p[i] = part_even(a, b);
		second->p[i] = part_odd(a, b);
	}
}
HD_INLINE void vf_store_pairs(float *at, struct vf first, struct vf second, size_t n)
{
	struct vf both[2];

	for (int i = 0; i < HD_PARTS; i++) {
		both[2 * i / HD_PARTS].p[2 * i % HD_PARTS] = part_low(first.p[i], second.p[i]);
		both[(2 * i + 1) / HD_PARTS].p[(2 * i + 1) % HD_PARTS] = part_high(first.p[i], second.p[i]);
	}
	vf_store_n(at, both[0], n < HD_UNIT / 2 ? 2 * n : HD_UNIT);
	if (n > HD_UNIT / 2)
		vf_store_n(at + HD_UNIT, both[1], 2 * n - HD_UNIT);
}

/* Sums of neighbours: lanes 0 and 1 of a, 2 and 3, .. up to 14 and 15 of b. */
HD_INLINE struct vf vf_pair_sums(struct vf a, struct vf b)
{
	const struct vf both[2] = { a, b };
	struct vf r;

	for (int i = 0; i < HD_PARTS; i++) {
		part first = both[2 * i / HD_PARTS].p[2 * i % HD_PARTS],
			second = both[(2 * i + 1) / HD_PARTS].p[(2 * i + 1) % HD_PARTS];
		r.p[i] = part_even(first, second) + part_odd(first, second);
	}
	return r;
}

/* `a` in the first n lanes, `rest` in the others. */
HD_INLINE struct vf vf_only(struct vf a, size_t n, struct vf rest)
{
	if (n >= HD_UNIT)
		return a;
	for (int i = 0; i < HD_PARTS; i++)
		a.p[i] = part_select(mask_first(part_share(n, i)), a.p[i], rest.p[i]);
	return a;
}

HD_INLINE float vf_sum(struct vf a)
{
	quad q[4];

	part_quads(a.p, q);
	q[0] = (q[0] + q[2]) + (q[1] + q[3]);
	return (q[0][0] + q[0][2]) + (q[0][1] + q[0][3]);
}

/* The second where either is no number. */
HD_INLINE float top_of(float a, float b) { return a > b ? a : b; }

HD_INLINE quad quad_top(quad a, quad b)
{
	for (int j = 0; j < 4; j++)
		a[j] = top_of(a[j], b[j]);
	return a;
}

HD_INLINE float vf_top(struct vf a)
{
	quad q[4];

	part_quads(a.p, q);
	q[0] = quad_top(quad_top(q[0], q[2]), quad_top(q[1], q[3]));
	return top_of(top_of(q[0][0], q[0][2]), top_of(q[0][1], q[0][3]));
}

#endif
