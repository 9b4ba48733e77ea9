/* Convolutions, forwards and transposed.
 *
 * A volume is a sum over the depth of the kernel of convolutions of images, its slices as rows: x [N,C,D,H,W]
 * becomes [N D,C,H,W] once, and each depth of the kernel reads the slices that it meets. A transposed
 * convolution is the gradient of one, which is an op of ours (CONV2D_DX); of volumes each depth of the kernel
 * makes images that are put, apart by the stride, where they belong, and added. */
#include <string.h>

#include "graph/models/rows.h"
#include "graph/onnx/windows.h"

static const struct hd_attr none;

struct onnx_conv {
	struct hd_onnx_windows win;
	int64_t groups, out;              /* channels of the result */
	uint32_t x, w;
};

static struct hd_attr plane_attr(const struct onnx_conv *c)
{
	const struct hd_onnx_windows *w = &c->win;

	return (struct hd_attr){ .i = { (int32_t)w->stride[HD_HEIGHT], (int32_t)w->stride[HD_WIDTH],
		(int32_t)w->before[HD_HEIGHT], (int32_t)w->before[HD_WIDTH],
		c->groups == 1 ? 0 : (int32_t)c->groups,
		w->apart[HD_HEIGHT] == 1 ? 0 : (int32_t)w->apart[HD_HEIGHT],
		w->apart[HD_WIDTH] == 1 ? 0 : (int32_t)w->apart[HD_WIDTH] } };
}

/* Kernels of images: of a sequence, of an image, slice `depth` of those of a volume. */
static enum hd_err plane_kernel(struct hd_onnx_call *call, const struct onnx_conv *c, int32_t depth,
	uint32_t *w)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 1);
	const int64_t dim[4] = { v->dim[0], v->dim[1], c->win.size[HD_HEIGHT], c->win.size[HD_WIDTH] };
	enum hd_err err = HD_OK;

	*w = c->w;
	if (c->win.axes == 3)
		err = hd_onnx_node1(call, HD_OP_SLICE, *w, (struct hd_attr){ .i = { 2, depth, 1, 1 } }, w);
	return err ? err : hd_onnx_reshape(call, *w, 4, dim, w);
}

static enum hd_err biased(struct hd_onnx_call *call, uint32_t *y)
{
	uint32_t b;
	enum hd_err err = hd_onnx_in(call, 2) ? hd_onnx_value(call, 2, &b) : HD_OK;

	return err || !hd_onnx_in(call, 2) ? err : hd_onnx_node2(call, HD_OP_BIAS, *y, b,
		(struct hd_attr){ .i = { 1 } }, y);
}

/* x [N,C,D,H,W] as images [N D,C,H,W], and back with another number of slices as output 0. */
static enum hd_err to_slices(struct hd_onnx_call *call, uint32_t *x)
{
	struct hd_attr turn = { .i = { 0, 2, 1, 3, 4 } };
	enum hd_err err = hd_onnx_node1(call, HD_OP_PERMUTE, *x, turn, x);

	return err;
}

static enum hd_err as_rows(struct hd_onnx_call *call, uint32_t *x)
{
	const int64_t *v = hd_onnx_shape(call, *x)->dim;
	int64_t dim[4] = { v[0] * v[1], v[2], v[3], v[4] };

	return hd_onnx_reshape(call, *x, 4, dim, x);
}

static enum hd_err put_slices(struct hd_onnx_call *call, uint32_t y, int64_t slices)
{
	const struct hd_value v = *hd_onnx_shape(call, y);
	int64_t dim[5] = { v.dim[0] / slices, slices, v.dim[1], v.dim[2], v.dim[3] };
	enum hd_err err = hd_onnx_reshape(call, y, 5, dim, &y);

	if (!err)
		err = to_slices(call, &y);
	return err ? err : hd_onnx_put_like(call, 0, y);
}

static enum hd_err volume(struct hd_onnx_call *call, struct onnx_conv *c)
{
	struct hd_onnx_windows *w = &c->win;
	const int64_t depth = w->image[HD_DEPTH] + w->before[HD_DEPTH] + w->after[HD_DEPTH],
		reach = (w->size[HD_DEPTH] - 1) * w->apart[HD_DEPTH] + 1,
		slices = (depth - reach) / w->stride[HD_DEPTH] + 1;
	struct hd_attr pad = { .i = { 2, (int32_t)w->before[HD_DEPTH], (int32_t)w->after[HD_DEPTH] } };
	uint32_t x, k, y = HD_NONE;
	enum hd_err err = HD_OK;

	if (depth < reach)
		return hd_onnx_no(call, "the kernel is deeper than the padded volume");
	if (pad.i[1] || pad.i[2])
		err = hd_onnx_node1(call, HD_OP_PAD, c->x, pad, &c->x);
	if (!err)
		err = to_slices(call, &c->x);
	for (int32_t d = 0; d < w->size[HD_DEPTH] && !err; d++) {
		struct hd_attr met = { .i = { 1, d * (int32_t)w->apart[HD_DEPTH],
			(int32_t)w->stride[HD_DEPTH], (int32_t)slices } };
		err = hd_onnx_node1(call, HD_OP_SLICE, c->x, met, &x);
		if (!err)
			err = as_rows(call, &x);
		if (!err)
			err = plane_kernel(call, c, d, &k);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_CONV2D, x, k, plane_attr(c), &x);
		if (!err && y != HD_NONE)
			err = hd_onnx_node2(call, HD_OP_ADD, y, x, none, &x);
		y = x;
	}
	if (!err)
		err = biased(call, &y);
	return err ? err : put_slices(call, y, slices);
}

static enum hd_err read_conv(struct hd_onnx_call *call, bool pads, struct onnx_conv *c)
{
	const struct hd_onnx_val *wv = hd_onnx_in(call, 1);

	*c = (struct onnx_conv){ .groups = hd_onnx_attr_int(call->node, "group", 1) };
	if (!wv || wv->rank < 3 || hd_dims_product(wv->dim, wv->rank) < 1 || c->groups < 1 ||
		c->groups > INT32_MAX)
		return hd_onnx_no(call, "the kernel has %u extents, or there are %lld groups",
			wv ? wv->rank : 0, (long long)c->groups);
	enum hd_err err = hd_onnx_windows_read(call, wv, pads, &c->win);
	if (!err)
		err = hd_onnx_value(call, 0, &c->x);
	return err ? err : hd_onnx_value(call, 1, &c->w);
}

enum hd_err hd_onnx_conv(struct hd_onnx_call *call)
{
	struct onnx_conv c;
	uint32_t w, y;
	enum hd_err err = read_conv(call, true, &c);
	bool deep = !err && c.win.axes == 3;

	if (!err)
		err = hd_onnx_image(call, &c.win, &c.x);
	for (uint32_t d = HD_HEIGHT; d <= HD_WIDTH && !err; d++)
		err = hd_onnx_pad_uneven(call, &c.win, d, (int32_t)(d + deep + 1), 0, &c.x);
	if (err)
		return err;
	if (deep)
		return volume(call, &c);
	err = plane_kernel(call, &c, 0, &w);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_CONV2D, c.x, w, plane_attr(&c), &y);
	if (!err)
		err = biased(call, &y);
	return err ? err : hd_onnx_put_image(call, &c.win, y);
}

/* ---- transposed */

/* What the whole result has along an axis, and what is cut off. */
struct onnx_span { int64_t whole, first, keep; };

/* ONNX: (image - 1) stride + output_padding + (size - 1) apart + 1 less the pads; output_shape says the pads
 * in their place. */
static enum hd_err read_spans(struct hd_onnx_call *call, const struct onnx_conv *c,
	struct onnx_span at[HD_WINDOW_AXES])
{
	const struct hd_onnx_windows *w = &c->win;
	const Onnx__AttributeProto *shape = hd_onnx_attr(call->node, "output_shape"),
		*pads = hd_onnx_attr(call->node, "pads");
	bool upper = hd_onnx_attr_is(call->node, "auto_pad", "SAME_UPPER", false),
		same = upper || hd_onnx_attr_is(call->node, "auto_pad", "SAME_LOWER", false);
	int64_t more[HD_WINDOW_AXES];
	uint32_t from = HD_WINDOW_AXES - w->axes;
	enum hd_err err = hd_onnx_window_ints(call, "output_padding", w->axes, 0, 0, more);

	if (!err && ((shape && shape->n_ints != w->axes) || (pads && pads->n_ints != 2 * w->axes)))
		return hd_onnx_no(call, "output_shape or pads have another number of axes");
	for (uint32_t d = 0; d < HD_WINDOW_AXES && !err; d++) {
		int64_t reach = (w->size[d] - 1) * w->apart[d] + 1, before = 0, after = 0;
		bool has = d >= from;
		at[d].whole = (w->image[d] - 1) * w->stride[d] + reach + more[d];
		if (has && (shape || same)) {
			int64_t want = shape ? shape->ints[d - from] : w->image[d] * w->stride[d],
				all = at[d].whole - want;
			before = upper ? all / 2 : all - all / 2;
			after = all - before;
		} else if (has && pads && w->explicit_pads) {
			before = pads->ints[d - from];
			after = pads->ints[d - from + w->axes];
		}
		at[d].first = before;
		at[d].keep = at[d].whole - before - after;
		if (before < 0 || after < 0 || at[d].keep < 1 || at[d].whole > INT32_MAX)
			return hd_onnx_no(call, "pads are negative, or nothing is left between them");
		if (more[d] >= w->stride[d])
			return hd_onnx_no(call, "output_padding is not below the stride");
	}
	return err;
}

static enum hd_err cut(struct hd_onnx_call *call, int32_t axis, struct onnx_span s, uint32_t *y)
{
	struct hd_attr attr = { .i = { axis, (int32_t)s.first, 1, (int32_t)s.keep } };

	return s.keep == hd_onnx_shape(call, *y)->dim[axis] ? HD_OK :
		hd_onnx_node1(call, HD_OP_SLICE, *y, attr, y);
}

/* The gradient op wants what the convolution read, for its extents alone: a number repeated. Pads that are
 * equal on both sides and smaller than the window are the op's; others are cut off after it. */
static enum hd_err transposed_plane(struct hd_onnx_call *call, const struct onnx_conv *c, uint32_t x,
	const struct onnx_span at[HD_WINDOW_AXES], int32_t depth, uint32_t *y)
{
	struct onnx_conv plane = *c;
	int64_t dim[4] = { hd_onnx_shape(call, x)->dim[0], c->out };
	struct onnx_span left[HD_WINDOW_AXES];
	uint32_t shape, w;

	memcpy(left, at, sizeof left);
	for (uint32_t d = HD_HEIGHT; d <= HD_WIDTH; d++) {
		int64_t reach = (c->win.size[d] - 1) * c->win.apart[d] + 1, pad = at[d].first,
			behind = at[d].whole - at[d].first - at[d].keep;
		pad = pad < behind ? pad : behind;
		pad = pad < reach ? pad : reach - 1;
		plane.win.before[d] = pad;
		left[d].first -= pad;
		dim[1 + d] = at[d].whole - 2 * pad;
	}
	struct hd_attr extents = { .i = { (int32_t)dim[0], (int32_t)dim[1], (int32_t)dim[2],
		(int32_t)dim[3] } };
	enum hd_err err = hd_onnx_float_const(call, 0, &shape);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_EXPAND, shape, extents, &shape);
	if (!err)
		err = plane_kernel(call, c, depth, &w);
	if (!err)
		err = hd_onnx_node(call, HD_OP_CONV2D_DX, 3, (uint32_t[]){ x, w, shape },
			plane_attr(&plane), y);
	for (int32_t d = HD_HEIGHT; d <= HD_WIDTH && !err; d++)
		err = cut(call, 1 + d, left[d], y);
	return err;
}

/* Images [N D,K,H,W] of one depth of the kernel among the slices of the result: `apart` between them. */
static enum hd_err placed(struct hd_onnx_call *call, const struct onnx_conv *c, int64_t at, int64_t whole,
	uint32_t *y)
{
	const struct hd_value v = *hd_onnx_shape(call, *y);
	const int64_t n = c->win.image[HD_DEPTH], stride = c->win.stride[HD_DEPTH];
	int64_t apart[6] = { v.dim[0] / n, n, 1, v.dim[1], v.dim[2], v.dim[3] },
		dim[5] = { v.dim[0] / n, n * stride, v.dim[1], v.dim[2], v.dim[3] };
	enum hd_err err = hd_onnx_reshape(call, *y, 6, apart, y);

	if (!err && stride > 1)
		err = hd_onnx_node1(call, HD_OP_PAD, *y, (struct hd_attr){ .i = { 2, 0,
			(int32_t)stride - 1 } }, y);
	if (!err)
		err = hd_onnx_reshape(call, *y, 5, dim, y);
	int64_t behind = whole - at - n * stride;
	if (!err && behind < 0)
		err = hd_onnx_node1(call, HD_OP_SLICE, *y, (struct hd_attr){ .i = { 1, 0, 1,
			(int32_t)(whole - at) } }, y);
	if (!err && (at || behind > 0))
		err = hd_onnx_node1(call, HD_OP_PAD, *y, (struct hd_attr){ .i = { 1, (int32_t)at,
			(int32_t)(behind > 0 ? behind : 0) } }, y);
	return err;
}

static enum hd_err transposed_volume(struct hd_onnx_call *call, struct onnx_conv *c,
	const struct onnx_span at[HD_WINDOW_AXES])
{
	uint32_t y, sum = HD_NONE;
	enum hd_err err = to_slices(call, &c->x);

	if (!err)
		err = as_rows(call, &c->x);
	for (int32_t d = 0; d < c->win.size[HD_DEPTH] && !err; d++) {
		err = transposed_plane(call, c, c->x, at, d, &y);
		if (!err)
			err = placed(call, c, d * c->win.apart[HD_DEPTH], at[HD_DEPTH].whole, &y);
		if (!err && sum != HD_NONE)
			err = hd_onnx_node2(call, HD_OP_ADD, sum, y, none, &y);
		sum = y;
	}
	if (!err)
		err = cut(call, 1, at[HD_DEPTH], &sum);
	if (!err)
		err = as_rows(call, &sum);
	if (!err)
		err = biased(call, &sum);
	return err ? err : put_slices(call, sum, at[HD_DEPTH].keep);
}

/* The kernel has [C, K / groups, ..]: that of the convolution whose gradient this is. */
enum hd_err hd_onnx_conv_transpose(struct hd_onnx_call *call)
{
	struct onnx_span at[HD_WINDOW_AXES];
	struct onnx_conv c;
	uint32_t y;
	enum hd_err err = read_conv(call, false, &c);

	if (!err)
		err = read_spans(call, &c, at);
	if (err)
		return err;
	c.out = hd_onnx_in(call, 1)->dim[1] * c.groups;
	if (c.out > INT32_MAX || hd_onnx_in(call, 0)->dim[1] != hd_onnx_in(call, 1)->dim[0])
		return hd_onnx_no(call, "x and the kernel have different channels");
	if (c.win.axes == 3)
		return transposed_volume(call, &c, at);
	err = hd_onnx_image(call, &c.win, &c.x);
	if (!err)
		err = transposed_plane(call, &c, c.x, at, 0, &y);
	if (!err)
		err = biased(call, &y);
	return err ? err : hd_onnx_put_image(call, &c.win, y);
}
