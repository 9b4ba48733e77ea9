/* vec64.h -- sixteen doubles as one value: what vec.h is for floats, for the few sums that
 * are kept in f64 (moments). Two vectors of doubles for each register of floats.
 *
 * 1. Each operation is IEEE-754 double precision, one rounding per element; nothing is
 *    contracted, so a path without a fused instruction has the same bits.
 * 2. vd_sum() pairs lane j with j+8, then j+4, j+2, j+1, as vf_sum(). */
#ifndef HD_DEVICE_CPU_VEC64_H
#define HD_DEVICE_CPU_VEC64_H

#include <string.h>

#include "device/cpu/vec.h"

enum { HD_DWIDTH = HD_WIDTH / 2, HD_DPARTS = HD_UNIT / HD_DWIDTH };

typedef double dpart __attribute__((vector_size(sizeof(part))));
typedef float hpart __attribute__((vector_size(sizeof(part) / 2)));      /* the floats that fill a dpart */

struct vd { dpart p[HD_DPARTS]; };

HD_INLINE struct vd vd_add(struct vd a, struct vd b)
{
	for (int i = 0; i < HD_DPARTS; i++)
		a.p[i] += b.p[i];
	return a;
}
HD_INLINE struct vd vd_sub(struct vd a, struct vd b)
{
	for (int i = 0; i < HD_DPARTS; i++)
		a.p[i] -= b.p[i];
	return a;
}
HD_INLINE struct vd vd_mul(struct vd a, struct vd b)
{
	for (int i = 0; i < HD_DPARTS; i++)
		a.p[i] *= b.p[i];
	return a;
}
HD_INLINE struct vd vd_set(double x)
{
	struct vd r;
	for (int i = 0; i < HD_DPARTS; i++)
		r.p[i] = (dpart){ 0 } + x;
	return r;
}
HD_INLINE struct vd vd_load(const double *at)
{
	struct vd r;
	memcpy(&r, at, sizeof r);
	return r;
}
HD_INLINE void vd_store(double *at, struct vd a) { memcpy(at, &a, sizeof a); }

/* Sixteen floats, exactly. */
HD_INLINE struct vd vd_of(const float *at)
{
	struct vd r;
	for (int i = 0; i < HD_DPARTS; i++) {
		hpart half;
		memcpy(&half, at + i * HD_DWIDTH, sizeof half);
		r.p[i] = __builtin_convertvector(half, dpart);
	}
	return r;
}
/* The first n, in 1..16, and zeros; memory beyond is not touched. */
HD_INLINE struct vd vd_of_n(const float *at, size_t n)
{
	float lane[HD_UNIT];
	if (n >= HD_UNIT)
		return vd_of(at);
	vf_store(lane, vf_load_n(at, n));
	return vd_of(lane);
}
/* Zeros in all lanes but the first n. */
HD_INLINE struct vd vd_only(struct vd a, size_t n)
{
	double lane[HD_UNIT];
	if (n >= HD_UNIT)
		return a;
	vd_store(lane, a);
	for (size_t j = n; j < HD_UNIT; j++)
		lane[j] = 0;
	return vd_load(lane);
}

HD_INLINE double vd_sum(struct vd a)
{
	double lane[HD_UNIT];

#pragma GCC unroll 8
	for (int half = HD_DPARTS / 2; half > 0; half /= 2)
#pragma GCC unroll 8
		for (int i = 0; i < half; i++)
			a.p[i] += a.p[i + half];
	vd_store(lane, a);
#pragma GCC unroll 8
	for (int half = HD_DWIDTH / 2; half > 0; half /= 2)
#pragma GCC unroll 8
		for (int j = 0; j < half; j++)
			lane[j] += lane[j + half];
	return lane[0];
}

#endif
