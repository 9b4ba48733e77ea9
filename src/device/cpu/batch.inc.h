/* batch.inc.h -- normalisation over the batch. One source for all paths.
 *
 * A tile is some channels with all their values, which it reads two or three times while they
 * are in the cache. Sums are kept in f64 (vec64.h).
 *
 * 1. Channels as planes (axis 1, [N,C,H,W]): a channel has 16 lanes; lane j takes elements j,
 *    j+16, ... of each plane, planes in ascending order; then the lanes are joined.
 * 2. Channels side by side (axis -1, blocked, [N,C]): sixteen channels at once, each a chain of
 *    its own over the rows in ascending order.
 * 3. Moments take two passes: the mean first, then squares of distances from it. */
#ifndef HD_DEVICE_CPU_BATCH_INC_H
#define HD_DEVICE_CPU_BATCH_INC_H

#include "device/cpu/maps.inc.h"
#include "device/cpu/vec64.h"

/* How x is walked: outer x units of sixteen floats; a group is one channel (planes) or up to
 * sixteen. Lengths in floats. */
struct batch {
	bool planes;
	uint64_t channels, outer, outer_step, units, unit_step, group_step, count;
	size_t tail;                      /* planes: of the last unit of each */
};

HD_INLINE struct batch batch_of(const struct hd_operand *x, int32_t axis)
{
	uint64_t n = (uint64_t)x->dim[0], c = (uint64_t)(axis == 16 ? x->dim[1] * 16 : axis == 1 ? x->dim[1] :
		hd_cols(x));
	uint64_t inner = x->elems / (n * c);

	if (axis == 16)
		return (struct batch){ false, c, n, inner * c, inner, HD_UNIT, inner * HD_UNIT, n * inner,
			HD_UNIT };
	if (axis == 1 && inner > 1)
		return (struct batch){ true, c, n, inner * c, (inner + HD_UNIT - 1) / HD_UNIT, HD_UNIT, inner,
			n * inner,
			(size_t)(inner - (inner - 1) / HD_UNIT * HD_UNIT) };
	return (struct batch){ false, c, 1, 0, x->elems / c, c, HD_UNIT, x->elems / c, HD_UNIT };
}

/* Channels of group g, and lanes of a unit. */
HD_INLINE uint64_t batch_width(const struct batch *b) { return b->planes ? 1 : HD_UNIT; }
HD_INLINE uint64_t batch_groups(const struct batch *b) { return (b->channels + batch_width(b) -
	1) / batch_width(b); }
HD_INLINE size_t batch_lanes(const struct batch *b, uint64_t group)
{
	uint64_t left = b->channels - group * batch_width(b);
	return b->planes || left > HD_UNIT ? HD_UNIT : (size_t)left;
}

/* for each unit of a group: `len` floats at offset `i` from the group's first */
#define HD_BATCH_UNITS(i, len, b, lanes) \
	for (uint64_t o_ = 0; o_ < (b)->outer; o_++) \
		for (uint64_t u_ = 0, i = o_ * (b)->outer_step; u_ < (b)->units; u_++, i += (b)->unit_step) \
			for (size_t len = (b)->planes && u_ + 1 == (b)->units ? (b)->tail : (lanes), \
				once_ = 1; once_; once_ = 0)

enum { BATCH_ELEMS = 8192 };

static inline uint64_t batch_groups_of_tile(const struct batch *b)
{
	uint64_t elems = b->count * batch_width(b);
	return elems >= BATCH_ELEMS ? 1 : BATCH_ELEMS / elems;
}
HD_INLINE uint32_t batch_ntiles_of(const struct batch *b)
{
	uint64_t per = batch_groups_of_tile(b);
	return (uint32_t)((batch_groups(b) + per - 1) / per);
}
HD_INLINE struct elem_run batch_run(const struct batch *b, uint32_t tile)
{
	uint64_t per = batch_groups_of_tile(b), at = tile * per, left = batch_groups(b) - at;
	return (struct elem_run){ at, left < per ? left : per };
}

/* What is the same for all values of a channel, one element per lane: of a plane all are equal. */
struct lanes64 { double at[HD_UNIT]; };

HD_INLINE struct lanes64 batch_join(const struct batch *b, struct vd sum)
{
	struct lanes64 r;

	vd_store(r.at, b->planes ? vd_set(vd_sum(sum)) : sum);
	return r;
}

/* Values of a channel, spread over the lanes of its group. */
HD_INLINE void batch_take(const struct batch *b, const float *from, uint64_t group, size_t lanes,
	float lane[HD_UNIT])
{
	for (size_t j = 0; j < HD_UNIT; j++)
		lane[j] = b->planes ? from[group] : j < lanes ? from[group * HD_UNIT + j] : 0.0f;
}
HD_INLINE void batch_take64(const struct batch *b, const double *from, uint64_t group, size_t lanes,
	double lane[HD_UNIT])
{
	for (size_t j = 0; j < HD_UNIT; j++)
		lane[j] = b->planes ? from[group] : j < lanes ? from[group * HD_UNIT + j] : 0.0;
}
HD_INLINE void batch_put(const struct batch *b, float *to, uint64_t group, size_t lanes,
	const float lane[HD_UNIT])
{
	for (size_t j = 0; j < (b->planes ? 1 : lanes); j++)
		to[group * batch_width(b) + j] = lane[j];
}
HD_INLINE void batch_put64(const struct batch *b, double *to, uint64_t group, size_t lanes,
	const double lane[HD_UNIT])
{
	for (size_t j = 0; j < (b->planes ? 1 : lanes); j++)
		to[group * batch_width(b) + j] = lane[j];
}

HD_INLINE struct lanes64 batch_sum(const struct batch *b, const float *x, size_t lanes)
{
	struct vd sum = vd_set(0);

	HD_BATCH_UNITS(i, len, b, lanes)
		sum = vd_add(sum, vd_of_n(x + i, len));
	return batch_join(b, sum);
}

HD_INLINE struct lanes64 batch_spread(const struct batch *b, const float *x, size_t lanes,
	const struct lanes64 *mean)
{
	struct vd sum = vd_set(0), middle = vd_load(mean->at);

	HD_BATCH_UNITS(i, len, b, lanes) {
		struct vd gap = vd_only(vd_sub(vd_of_n(x + i, len), middle), len);
		sum = vd_add(sum, vd_mul(gap, gap));
	}
	return batch_join(b, sum);
}

/* y = (x - mean) times + plus */
HD_INLINE void batch_apply(const struct batch *b, const float *x, size_t lanes, const float mean[HD_UNIT],
	const float times[HD_UNIT],
	const float plus[HD_UNIT], float *y)
{
	struct vf m = vf_load(mean), t = vf_load(times), p = vf_load(plus);

	HD_BATCH_UNITS(i, len, b, lanes)
		vf_store_n(y + i, vf_fma(vf_sub(vf_load_n(x + i, len), m), t, p), len);
}

/* n, mean, sum of squared distances. */
struct moments64 { struct lanes64 n, mean, spread; };

HD_INLINE struct moments64 batch_moments(const struct batch *b, const float *x, size_t lanes)
{
	struct moments64 m;

	m.mean = batch_sum(b, x, lanes);
	for (int j = 0; j < HD_UNIT; j++) {
		m.n.at[j] = (double)b->count;
		m.mean.at[j] /= (double)b->count;
	}
	m.spread = batch_spread(b, x, lanes, &m.mean);
	return m;
}

HD_INLINE void batch_put_moments(const struct batch *b, double *to, uint64_t group, size_t lanes,
	const struct moments64 *m)
{
	batch_put64(b, to, group, lanes, m->n.at);
	batch_put64(b, to + b->channels, group, lanes, m->mean.at);
	batch_put64(b, to + 2 * b->channels, group, lanes, m->spread.at);
}

/* x gamma beta running_mean running_var -> y stats; of fewer than two values: the running statistics. */
HD_INLINE void batch_normalise(const struct batch *b, const struct hd_call *call, uint64_t group,
	size_t lanes, const struct moments64 *m)
{
	float gamma[HD_UNIT], beta[HD_UNIT], mean[HD_UNIT], variance[HD_UNIT], rstd[HD_UNIT], times[HD_UNIT],
		share[HD_UNIT];
	float *stats = call->out[1].at;

	batch_take(b, call->in[1].at, group, lanes, gamma);
	batch_take(b, call->in[2].at, group, lanes, beta);
	batch_take(b, call->in[3].at, group, lanes, mean);
	batch_take(b, call->in[4].at, group, lanes, variance);
	for (int j = 0; j < HD_UNIT; j++) {
		const bool own = m->n.at[j] >= 2;
		double v = own ? m->spread.at[j] / m->n.at[j] : (double)variance[j];
		mean[j] = own ? (float)m->mean.at[j] : mean[j];
		rstd[j] = (float)(1.0 / __builtin_sqrt(v + (double)call->attr.f[0]));
		times[j] = rstd[j] * gamma[j];
		share[j] = own ? (float)(1.0 / m->n.at[j]) : 0.0f;
	}
	batch_apply(b, (const float *)call->in[0].at + group * b->group_step, lanes, mean, times, beta,
		(float *)call->out[0].at + group * b->group_step);
	batch_put(b, stats, group, lanes, mean);
	batch_put(b, stats + b->channels, group, lanes, rstd);
	batch_put(b, stats + 2 * b->channels, group, lanes, share);
}

HD_INLINE void batchnorm_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	struct moments64 m = { .n = { { 0 } }, .mean = { { 0 } }, .spread = { { 0 } } };

	if (!call->attr.i[1] && b->count >= 2)
		m = batch_moments(b, (const float *)call->in[0].at + group * b->group_step, lanes);
	batch_normalise(b, call, group, lanes, &m);
	batch_put_moments(b, call->out[2].at, group, lanes, &m);
}

HD_INLINE void batchnorm_moments_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	struct moments64 m = batch_moments(b, (const float *)call->in[0].at + group * b->group_step, lanes);

	batch_put_moments(b, call->out[0].at, group, lanes, &m);
}

HD_INLINE void batchnorm_apply_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	const double *moments = call->in[5].at;
	struct moments64 m;

	batch_take64(b, moments, group, lanes, m.n.at);
	batch_take64(b, moments + b->channels, group, lanes, m.mean.at);
	batch_take64(b, moments + 2 * b->channels, group, lanes, m.spread.at);
	batch_normalise(b, call, group, lanes, &m);
}

/* Two kinds of walk are two loops after inlining. */
#define HD_BATCH_TILE(name, operand)                                                             \
	static inline uint32_t name##_ntiles(const struct hd_call *call)                         \
	{                                                                                        \
		struct batch b = batch_of(&call->in[operand], call->attr.i[0]);                  \
		return batch_ntiles_of(&b);                                                      \
	}                                                                                        \
	static inline void name##_tile(const struct hd_call *call, uint32_t tile, void *scratch) \
	{                                                                                        \
		struct batch b = batch_of(&call->in[operand], call->attr.i[0]);                  \
		struct elem_run run = batch_run(&b, tile);                                       \
		const bool planes = b.planes;                                                    \
		(void)scratch;                                                                   \
		for (uint64_t g = run.at; g < run.at + run.n; g++)                               \
			if (planes) {                                                            \
				b.planes = true;                                                 \
				name##_group(&b, call, g);                                       \
			} else {                                                                 \
				b.planes = false;                                                \
				name##_group(&b, call, g);                                       \
			}                                                                        \
	}

HD_BATCH_TILE(batchnorm, 0)
HD_BATCH_TILE(batchnorm_moments, 0)
HD_BATCH_TILE(batchnorm_apply, 0)

static inline void batchnorm_sync_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)tile;
	(void)scratch;
	memcpy(call->out[0].at, call->in[0].at, call->in[0].elems * sizeof(double));
}

/* Sums over a group of dy and of dy times the normalised x. */
HD_INLINE void batch_sums(const struct batch *b, const float *dy, const float *x, size_t lanes,
	const float mean[HD_UNIT],
	const float rstd[HD_UNIT], struct lanes64 *sum, struct lanes64 *along)
{
	struct vd s = vd_set(0), a = vd_set(0), middle = vd_of(mean);

	HD_BATCH_UNITS(i, len, b, lanes) {
		struct vd d = vd_of_n(dy + i, len);
		s = vd_add(s, d);
		a = vd_add(a, vd_mul(d, vd_sub(vd_of_n(x + i, len), middle)));    /* d is 0 beyond the edge */
	}
	*sum = batch_join(b, s);
	*along = batch_join(b, a);
	for (int j = 0; j < HD_UNIT; j++)
		along->at[j] *= (double)rstd[j];
}

HD_INLINE void batch_put_sums(const struct batch *b, double *to, uint64_t group, size_t lanes,
	const struct lanes64 *sum,
	const struct lanes64 *along)
{
	batch_put64(b, to, group, lanes, sum->at);
	batch_put64(b, to + b->channels, group, lanes, along->at);
}

HD_INLINE void batchnorm_sums_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	const uint64_t at = group * b->group_step;
	const float *stats = call->in[2].at;
	float mean[HD_UNIT], rstd[HD_UNIT];
	struct lanes64 sum, along;

	batch_take(b, stats, group, lanes, mean);
	batch_take(b, stats + b->channels, group, lanes, rstd);
	batch_sums(b, (const float *)call->in[0].at + at, (const float *)call->in[1].at + at, lanes, mean,
		rstd, &sum, &along);
	batch_put_sums(b, call->out[0].at, group, lanes, &sum, &along);
}

HD_BATCH_TILE(batchnorm_sums, 1)

/* With u = (x - mean) rstd and means over n: dx = gamma rstd (dy - mean(dy) - u mean(dy u)). */
HD_INLINE void batch_dx(const struct batch *b, const float *dy, const float *x, size_t lanes,
	const float mean[HD_UNIT],
	const float slope[HD_UNIT], const float level[HD_UNIT], const float times[HD_UNIT], float *dx)
{
	struct vf m = vf_load(mean), s = vf_load(slope), l = vf_load(level), t = vf_load(times);

	HD_BATCH_UNITS(i, len, b, lanes) {
		struct vf rest = vf_sub(vf_load_n(dy + i, len), l);
		rest = vf_fma(vf_sub(vf_load_n(x + i, len), m), s, rest);
		vf_store_n(dx + i, vf_mul(t, rest), len);
	}
}

/* Values of a group's channels that both halves of the gradient need. */
struct norm_of { float mean[HD_UNIT], rstd[HD_UNIT]; };

HD_INLINE struct norm_of batch_norm_of(const struct batch *b, const struct hd_call *call, uint64_t group,
	size_t lanes)
{
	const float *stats = call->in[3].at;
	struct norm_of n;

	batch_take(b, stats, group, lanes, n.mean);
	batch_take(b, stats + b->channels, group, lanes, n.rstd);
	return n;
}

HD_INLINE void batch_dx_group(const struct batch *b, const struct hd_call *call, uint64_t group, size_t lanes,
	const struct norm_of *n,
	const struct lanes64 *sum, const struct lanes64 *along)
{
	const uint64_t at = group * b->group_step;
	float gamma[HD_UNIT], share[HD_UNIT], slope[HD_UNIT], level[HD_UNIT], times[HD_UNIT];

	batch_take(b, call->in[2].at, group, lanes, gamma);
	batch_take(b, (const float *)call->in[3].at + 2 * b->channels, group, lanes, share);
	for (int j = 0; j < HD_UNIT; j++) {
		level[j] = (float)(sum->at[j] * (double)share[j]);
		slope[j] = (float)(-along->at[j] * (double)share[j] * (double)n->rstd[j]);
		times[j] = gamma[j] * n->rstd[j];
	}
	batch_dx(b, (const float *)call->in[0].at + at, (const float *)call->in[1].at + at, lanes, n->mean,
		slope, level, times,
		(float *)call->out[0].at + at);
}

HD_INLINE void batchnorm_dx_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	const uint64_t at = group * b->group_step;
	struct norm_of n = batch_norm_of(b, call, group, lanes);
	struct lanes64 sum, along;

	batch_sums(b, (const float *)call->in[0].at + at, (const float *)call->in[1].at + at, lanes, n.mean,
		n.rstd, &sum, &along);
	batch_dx_group(b, call, group, lanes, &n, &sum, &along);
	batch_put_sums(b, call->out[1].at, group, lanes, &sum, &along);
}

HD_INLINE void batchnorm_apply_dx_group(const struct batch *b, const struct hd_call *call, uint64_t group)
{
	const size_t lanes = batch_lanes(b, group);
	const double *sums = call->in[4].at;
	struct norm_of n = batch_norm_of(b, call, group, lanes);
	struct lanes64 sum, along;

	batch_take64(b, sums, group, lanes, sum.at);
	batch_take64(b, sums + b->channels, group, lanes, along.at);
	batch_dx_group(b, call, group, lanes, &n, &sum, &along);
}

HD_BATCH_TILE(batchnorm_dx, 1)
HD_BATCH_TILE(batchnorm_apply_dx, 1)

static inline void batchnorm_dp_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const uint64_t c = call->out[0].elems;
	const double *sums = (const double *)call->in[0].at + (uint64_t)call->attr.i[0] * c;
	float *out = call->out[0].at;
	(void)tile;
	(void)scratch;

	for (uint64_t i = 0; i < c; i++)
		out[i] = (float)sums[i];
}

#endif
