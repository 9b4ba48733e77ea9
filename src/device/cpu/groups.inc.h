/* groups.inc.h -- norms of groups of channels. One source for all paths.
 *
 * A unit of work is a group of one sample, whose elements lie side by side; a tile is some groups.
 * Moments are those of rows.inc.h over a row of that length.
 *
 * 1. groupnorm_dx: sums along a channel have 16 lanes, channels are joined in ascending order.
 * 2. groupnorm_dg: a tile is a channel; its planes are joined in ascending order of the samples. */
#ifndef HD_DEVICE_CPU_GROUPS_INC_H
#define HD_DEVICE_CPU_GROUPS_INC_H

#include "device/cpu/rows.inc.h"

/* x[N,C,..] as [n, groups, own, inner] */
struct groups { uint64_t n, groups, own, inner; };

HD_INLINE struct groups groups_of(const struct hd_call *call, const struct hd_operand *x)
{
	uint64_t n = (uint64_t)x->dim[0], c = (uint64_t)x->dim[1], groups = (uint64_t)call->attr.i[0];
	return (struct groups){ n, groups, c / groups, x->elems / (n * c) };
}

static inline uint32_t groupnorm_ntiles(const struct hd_call *call)
{
	struct groups g = groups_of(call, &call->out[0]);
	return row_ntiles(g.n * g.groups, g.own * g.inner);
}

static inline void groupnorm_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct groups g = groups_of(call, &call->out[0]);
	uint64_t len = g.own * g.inner;
	struct elem_run run = row_run(g.n * g.groups, len, tile);
	(void)scratch;

	for (uint64_t u = run.at; u < run.at + run.n; u++) {
		const float *x = (const float *)call->in[0].at + u * len;
		float *y = (float *)call->out[0].at + u * len, *stats = (float *)call->out[1].at + 2 * u;
		float mean = row_mean(x, len), rstd = 1.0f / __builtin_sqrtf(row_variance(x, len,
			mean) + call->attr.f[0]);
		for (uint64_t c = 0; c < g.own; c++, x += g.inner, y += g.inner) {
			struct vf gamma = vf_set(((const float *)call->in[1].at)[u % g.groups * g.own + c]);
			struct vf beta = vf_set(((const float *)call->in[2].at)[u % g.groups * g.own + c]);
			HD_UNITS(i, n, g.inner) {
				struct vf unit = vf_mul(vf_sub(vf_load_n(x + i, n), vf_set(mean)),
					vf_set(rstd));
				vf_store_n(y + i, vf_fma(unit, gamma, beta), n);
			}
		}
		stats[0] = mean;
		stats[1] = rstd;
	}
}

/* Sums along one plane: of dy, and of dy times the normalised x. */
struct plane_pair { float sum, along; };
HD_INLINE struct plane_pair groups_plane(const float *dy, const float *x, uint64_t inner,
	const float stats[2])
{
	struct vf sum = vf_set(0.0f), along = vf_set(0.0f), mean = vf_set(stats[0]), rstd = vf_set(stats[1]);

	HD_UNITS(i, n, inner) {
		struct vf d = vf_load_n(dy + i, n);
		sum = vf_add(sum, d);
		/* d is 0 beyond the edge */
		along = vf_fma(d, vf_mul(vf_sub(vf_load_n(x + i, n), mean), rstd), along);
	}
	return (struct plane_pair){ vf_sum(sum), vf_sum(along) };
}

/* The formula of norm_dx_row(), gamma being constant along a plane. */
HD_INLINE void groupnorm_dx_group(const struct groups *g, const float *dy, const float *x, const float *gamma,
	const float stats[2], float *dx)
{
	float sum = 0.0f, along = 0.0f, count = (float)(g->own * g->inner);

	for (uint64_t c = 0; c < g->own; c++) {
		struct plane_pair s = groups_plane(dy + c * g->inner, x + c * g->inner, g->inner, stats);
		sum = __builtin_fmaf(gamma[c], s.sum, sum);
		along = __builtin_fmaf(gamma[c], s.along, along);
	}
	struct vf gmean = vf_set(sum / count), umean = vf_set(along / count), mean = vf_set(stats[0]),
		rstd = vf_set(stats[1]);
	for (uint64_t c = 0; c < g->own; c++, dy += g->inner, x += g->inner, dx += g->inner)
		HD_UNITS(i, n, g->inner) {
			struct vf d = vf_mul(vf_load_n(dy + i, n), vf_set(gamma[c]));
			struct vf u = vf_mul(vf_sub(vf_load_n(x + i, n), mean), rstd);
			vf_store_n(dx + i, vf_mul(rstd, vf_sub(vf_sub(d, gmean), vf_mul(u, umean))), n);
		}
}

static inline void groupnorm_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct groups g = groups_of(call, &call->out[0]);
	uint64_t len = g.own * g.inner;
	struct elem_run run = row_run(g.n * g.groups, len, tile);
	(void)scratch;

	for (uint64_t u = run.at; u < run.at + run.n; u++)
		groupnorm_dx_group(&g, (const float *)call->in[0].at + u * len,
			(const float *)call->in[1].at + u * len,
			(const float *)call->in[2].at + u % g.groups * g.own,
			(const float *)call->in[3].at + 2 * u, (float *)call->out[0].at + u * len);
}

static inline uint32_t groupnorm_dg_ntiles(const struct hd_call *call) { return (uint32_t)call->out[0].elems;
	}

static inline void groupnorm_dg_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct groups g = groups_of(call, &call->in[1]);
	uint64_t c = g.groups * g.own;
	float total = 0.0f;
	(void)scratch;

	for (uint64_t n = 0; n < g.n; n++) {
		uint64_t at = (n * c + tile) * g.inner;
		total += groups_plane((const float *)call->in[0].at + at, (const float *)call->in[1].at + at,
			g.inner,
			(const float *)call->in[2].at + 2 * (n * g.groups + tile / g.own)).along;
	}
	((float *)call->out[0].at)[tile] = total;
}

#endif
