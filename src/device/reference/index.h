/* index.h -- where elements lie: coordinates, what broadcasting pairs, lines along an axis. Index arithmetic
 * that is written to be read, for the plain loops of this folder. */
#ifndef HD_DEVICE_REFERENCE_INDEX_H
#define HD_DEVICE_REFERENCE_INDEX_H

#include "device/reference/reference.h"

/* Element e of a shape as coordinates, and back for an operand that is repeated where its extent is 1. */
static inline void hd_ref_coords_of(const struct hd_operand *o, uint64_t e, int64_t *at)
{
	for (int d = o->rank - 1; d >= 0; d--) {
		at[d] = (int64_t)(e % (uint64_t)o->dim[d]);
		e /= (uint64_t)o->dim[d];
	}
}

static inline int64_t hd_ref_element_at(const struct hd_operand *o, const int64_t *at)
{
	int64_t e = 0;

	for (int d = 0; d < o->rank; d++)
		e = e * o->dim[d] + (o->dim[d] == 1 ? 0 : at[d]);
	return e;
}

/* The element of input i that broadcasting pairs with element e of the output, and its f32 there. */
static inline int64_t hd_ref_under(const struct hd_call *call, int i, uint64_t e)
{
	int64_t at[HD_MAX_DIMS] = { 0 };

	hd_ref_coords_of(&call->out[0], e, at);
	return hd_ref_element_at(&call->in[i], at + (call->out[0].rank - call->in[i].rank));
}
static inline double hd_ref_paired(const struct hd_call *call, int i, uint64_t e)
{
	return (double)hd_ref_in(call, i)[hd_ref_under(call, i, e)];
}

/* Elements of extents d on. */
static inline int64_t hd_ref_span(const struct hd_operand *o, int d)
{
	int64_t n = 1;

	for (; d < o->rank; d++)
		n *= o->dim[d];
	return n;
}

/* Lines of input 0 along the axis that attribute 0 names, as units. Element i of line `of` lies at
 * (of / inner * axis + i) * inner + of % inner. */
struct hd_ref_line { int64_t axis, inner; };
static inline uint64_t hd_ref_lines(const struct hd_call *call)
{
	return call->in[0].elems / (uint64_t)call->in[0].dim[call->attr.i[0]];
}
static inline struct hd_ref_line hd_ref_line_of(const struct hd_call *call)
{
	return (struct hd_ref_line){ call->in[0].dim[call->attr.i[0]],
		hd_ref_span(&call->in[0], call->attr.i[0] + 1) };
}
static inline int64_t hd_ref_on_line(struct hd_ref_line l, uint64_t of, int64_t i)
{
	return ((int64_t)of / l.inner * l.axis + i) * l.inner + (int64_t)of % l.inner;
}

#endif
