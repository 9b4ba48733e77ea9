/* conv.inc.h -- what a convolution of plain images is, and moves of rows. */
#ifndef HD_DEVICE_CPU_CONV_INC_H
#define HD_DEVICE_CPU_CONV_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/maps.inc.h"

/* own: input channels of a group; each: its output channels */
struct conv { int64_t n, c, h, w, k, r, s, p, q, sh, sw, ph, pw, groups, dh, dw, own, each; };

static inline struct conv conv_of(const struct hd_call *call, const struct hd_operand *x,
	const struct hd_operand *w, const struct hd_operand *y)
{
	const int32_t *attr = call->attr.i;
	int64_t groups = attr[4] ? attr[4] : 1;
	return (struct conv){ x->dim[0], x->dim[1], x->dim[2], x->dim[3], w->dim[0], w->dim[2], w->dim[3],
		y->dim[2], y->dim[3],
		attr[0], attr[1], attr[2], attr[3], groups, attr[5] ? attr[5] : 1, attr[6] ? attr[6] : 1,
		w->dim[1], w->dim[0] / groups };
}

/* Windows of one pixel each, all of them. */
HD_INLINE bool conv_is_flat(const struct conv *g)
{
	return g->r * g->s == 1 && g->sh == 1 && g->sw == 1 && g->ph == 0 && g->pw == 0;
}
HD_INLINE bool conv_is_depthwise(const struct conv *g) { return g->own == 1 && g->groups > 1; }

/* The q for which window column s lies inside the image: [first, last). */
HD_INLINE void inside(int64_t extent, int64_t n, int64_t stride, int64_t offset, int64_t *first,
	int64_t *last)
{
	*first = offset >= 0 ? 0 : div_up(-offset, stride);
	*last = extent - 1 < offset ? 0 : min64(n, (extent - 1 - offset) / stride + 1);
	if (*first > *last)
		*first = *last;
}

/* A memcpy() of ten floats costs more than their move. */
HD_INLINE void copy_run(float *to, const float *from, int64_t n)
{
	if (n > 0)
		HD_UNITS(i, len, (size_t)n)
			vf_store_n(to + i, vf_load_n(from + i, len), len);
}
HD_INLINE void add_run(float *to, const float *from, int64_t n)
{
	if (n > 0)
		HD_UNITS(i, len, (size_t)n)
			vf_store_n(to + i, vf_add(vf_load_n(to + i, len), vf_load_n(from + i, len)), len);
}

#endif
