/* Pools. A volume is pooled in its slices, then along its depth: a maximum of maxima, a mean of means of
 * equal weight. */
#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/windows.h"

/* Two axes of windows: of the images of a node, or the depth of its volumes with an axis of windows of 1. */
struct onnx_pool { uint32_t axis[2]; bool all; };

/* ceil_mode: one window more where elements are left, if it begins in the image or in the pads before it
 * (PyTorch's rule): what it reaches beyond the pads. */
static int64_t beyond(const struct hd_onnx_windows *w, uint32_t d)
{
	int64_t reach = (w->size[d] - 1) * w->apart[d] + 1,
		room = w->image[d] + w->before[d] + w->after[d] - reach, n = room / w->stride[d] + 1;

	return room > 0 && room % w->stride[d] && n * w->stride[d] < w->image[d] + w->before[d] ?
		w->stride[d] - room % w->stride[d] : 0;
}

static struct hd_attr pool_attr(const struct hd_onnx_windows *w, const struct onnx_pool *p)
{
	const uint32_t i = p->axis[0], j = p->axis[1];

	return (struct hd_attr){ .i = { (int32_t)w->size[i], (int32_t)w->size[j], (int32_t)w->stride[i],
		(int32_t)w->stride[j], (int32_t)w->before[i], (int32_t)w->before[j], p->all } };
}

/* Elements of a window that lie apart: one slice of x for each, and the largest of them. */
static enum hd_err max_apart(struct hd_onnx_call *call, const struct hd_onnx_windows *w, uint32_t d,
	int32_t at, uint32_t *x)
{
	int64_t reach = (w->size[d] - 1) * w->apart[d] + 1, n = (w->image[d] + w->before[d] + w->after[d] -
		reach) / w->stride[d] + 1;
	struct hd_attr pad = { .i = { at, (int32_t)w->before[d], (int32_t)w->after[d] }, .f = { -FLT_MAX } };
	uint32_t y, whole = HD_NONE;
	enum hd_err err = pad.i[1] || pad.i[2] ? hd_onnx_node1(call, HD_OP_PAD, *x, pad, x) : HD_OK;

	if (!err && (n < 1 || w->size[d] > 1 << 10))
		return hd_onnx_no(call, "a window is larger than the padded image, or than 1024");
	for (int64_t k = 0; k < w->size[d] && !err; k++) {
		struct hd_attr met = { .i = { at, (int32_t)(k * w->apart[d]), (int32_t)w->stride[d],
			(int32_t)n } };
		err = hd_onnx_node1(call, HD_OP_SLICE, *x, met, &y);
		if (!err && whole != HD_NONE)
			err = hd_onnx_node2(call, HD_OP_MAXIMUM, whole, y, (struct hd_attr){ .i = { 0 } },
				&y);
		whole = y;
	}
	*x = err ? *x : whole;
	return err;
}

static enum hd_err largest(struct hd_onnx_call *call, struct hd_onnx_windows w, const struct onnx_pool *p,
	uint32_t *x)
{
	bool apart = w.apart[p->axis[0]] != 1 || w.apart[p->axis[1]] != 1;
	enum hd_err err = HD_OK;

	for (int32_t d = 0; d < 2 && !err; d++)
		err = apart ? max_apart(call, &w, p->axis[d], 2 + d, x) :
			hd_onnx_pad_uneven(call, &w, p->axis[d], 2 + d, -FLT_MAX, x);
	return err || apart ? err : hd_onnx_node1(call, HD_OP_MAXPOOL2D, *x, pool_attr(&w, p), x);
}

/* How many elements of window `at` count along axis d. */
static int64_t counted(const struct hd_onnx_windows *w, uint32_t d, bool all, int64_t at)
{
	int64_t from = at * w->stride[d] - w->before[d], to = from + w->size[d];
	int64_t low = all ? -w->before[d] : 0, high = w->image[d] + (all ? w->after[d] : 0);

	return (to < high ? to : high) - (from > low ? from : low);
}

/* A mean over whole windows becomes that over the elements that count: a factor per window. */
static enum hd_err recount(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	const struct onnx_pool *p,
	uint32_t *y)
{
	const struct hd_value *v = hd_onnx_shape(call, *y);
	const int64_t dim[2] = { v->dim[2], v->dim[3] }, whole = w->size[p->axis[0]] * w->size[p->axis[1]];
	float *by = dim[0] * dim[1] < 1 << 24 ? hd_arena_take(&call->im->file.arena,
		(size_t)(dim[0] * dim[1]), sizeof *by) : NULL;
	uint32_t factor;

	if (!by)
		return hd_onnx_no(call, "no memory for its windows");
	for (int64_t k = 0; k < dim[0] * dim[1]; k++) {
		int64_t rows = counted(w, p->axis[0], p->all, k / dim[1]),
			columns = counted(w, p->axis[1], p->all, k % dim[1]);
		if (rows < 1 || columns < 1)
			return hd_onnx_no(call, "a window sees nothing of the image");
		by[k] = (float)((double)whole / (double)(rows * columns));
	}
	enum hd_err err = hd_graph_const(call->im->graph, HD_F32, 2, dim, by, &factor, &call->why);
	return err ? err : hd_onnx_node2(call, HD_OP_MUL, *y, factor, (struct hd_attr){ .i = { 0 } }, y);
}

/* `more`: what the windows of ceil_mode reach beyond the pads; they do not count. */
static enum hd_err mean(struct hd_onnx_call *call, const struct hd_onnx_windows *w, const struct onnx_pool *p,
	const int64_t more[HD_WINDOW_AXES], uint32_t *x)
{
	struct hd_onnx_windows put = *w;
	struct onnx_pool how = *p;
	bool uneven = false, longer = false;
	enum hd_err err = HD_OK;

	for (int32_t d = 0; d < 2 && !err; d++) {
		uint32_t axis = p->axis[d];
		uneven = uneven || w->before[axis] != w->after[axis];
		longer = longer || more[axis];
		put.after[axis] += more[axis];
		err = hd_onnx_pad_uneven(call, &put, axis, 2 + d, 0, x);
	}
	bool plain = !longer && (p->all || !uneven);
	how.all = p->all || !plain;
	if (!err)
		err = hd_onnx_node1(call, HD_OP_AVGPOOL2D, *x, pool_attr(&put, &how), x);
	return err || plain ? err : recount(call, w, p, x);
}

struct onnx_pooled { bool is_max, all; int64_t more[HD_WINDOW_AXES]; };

static enum hd_err pool(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	const struct onnx_pooled *how,
	uint32_t i, uint32_t j, uint32_t *x)
{
	const struct onnx_pool p = { { i, j }, how->all };
	struct hd_onnx_windows longer = *w;

	for (uint32_t d = 0; d < HD_WINDOW_AXES; d++)
		longer.after[d] += how->more[d];
	return how->is_max ? largest(call, longer, &p, x) : mean(call, w, &p, how->more, x);
}

/* [N,C,D,H,W] as [N,C D,H,W]; then, its slices pooled, as [N,C,D,H W] with windows of 1 along the last. */
static enum hd_err pool_volume(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	const struct onnx_pooled *how, uint32_t x)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_onnx_windows deep = *w;
	int64_t channels;

	if (!hd_mul_i64(v->dim[1], v->dim[2], &channels))
		return hd_onnx_no(call, "too many slices");
	enum hd_err err = hd_onnx_reshape(call, x, 4, (int64_t[]){ v->dim[0], channels, v->dim[3],
		v->dim[4] },
		&x);
	if (!err)
		err = pool(call, w, how, HD_HEIGHT, HD_WIDTH, &x);
	if (err)
		return err;
	int64_t height = hd_onnx_shape(call, x)->dim[2], width = hd_onnx_shape(call, x)->dim[3];
	deep.image[HD_WIDTH] = height * width;
	deep.size[HD_WIDTH] = deep.stride[HD_WIDTH] = deep.apart[HD_WIDTH] = 1;
	deep.before[HD_WIDTH] = deep.after[HD_WIDTH] = 0;
	struct onnx_pooled along = *how;
	along.more[HD_WIDTH] = 0;
	err = hd_onnx_reshape(call, x, 4, (int64_t[]){ v->dim[0], v->dim[1], v->dim[2], height * width }, &x);
	if (!err)
		err = pool(call, &deep, &along, HD_DEPTH, HD_WIDTH, &x);
	if (err)
		return err;
	int64_t dim[5] = { v->dim[0], v->dim[1], hd_onnx_shape(call, x)->dim[2], height, width };
	err = hd_onnx_reshape(call, x, 5, dim, &x);
	return err ? err : hd_onnx_put(call, 0, x, 5, dim);
}

static enum hd_err pool_all(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	const struct onnx_pooled *how, uint32_t x)
{
	if (w->axes == 3)
		return pool_volume(call, w, how, x);
	enum hd_err err = hd_onnx_image(call, w, &x);
	if (!err)
		err = pool(call, w, how, HD_HEIGHT, HD_WIDTH, &x);
	return err ? err : hd_onnx_put_image(call, w, x);
}

static enum hd_err pool_op(struct hd_onnx_call *call, bool is_max)
{
	struct onnx_pooled how = { is_max, hd_onnx_attr_int(call->node, "count_include_pad", 0) != 0, { 0 } };
	struct hd_onnx_windows w;
	uint32_t x;
	enum hd_err err = hd_onnx_windows_read(call, NULL, true, &w);

	if (!err)
		err = hd_onnx_value(call, 0, &x);
	for (uint32_t d = 0; d < HD_WINDOW_AXES && !err; d++) {
		how.more[d] = hd_onnx_attr_int(call->node, "ceil_mode", 0) ? beyond(&w, d) : 0;
		if (!is_max && w.apart[d] != 1)
			return hd_onnx_no(call, "means of elements that lie apart (dilations)");
	}
	if (err)
		return err;
	/* Bytes go through f32, which holds them all. */
	bool bytes = is_max && hd_onnx_shape(call, x)->dtype == HD_I32;
	if (bytes)
		err = hd_onnx_node1(call, HD_OP_CAST, x, (struct hd_attr){ .i = { HD_F32 } }, &x);
	if (!err)
		err = pool_all(call, &w, &how, x);
	struct hd_onnx_val *out = hd_onnx_out(call, 0);
	if (err || !bytes || !out)
		return err;
	err = hd_onnx_node1(call, HD_OP_CAST, out->value, (struct hd_attr){ .i = { HD_I32 } }, &x);
	return err ? err : hd_onnx_put(call, 0, x, out->rank, out->dim);
}

enum hd_err hd_onnx_maxpool(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *at = hd_onnx_out(call, 1);

	return at && at->nuses ? hd_onnx_no(call, "its indices are read") : pool_op(call, true);
}

enum hd_err hd_onnx_avgpool(struct hd_onnx_call *call) { return pool_op(call, false); }

static enum hd_err whole(struct hd_onnx_call *call, bool is_max)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_onnx_windows w = { .axes = v && v->rank > 2 ? v->rank - 2u : 0 };
	struct onnx_pooled how = { .is_max = is_max };
	uint32_t x;

	if (w.axes < 1 || w.axes > 3)
		return hd_onnx_no(call, "x is no sequence, image or volume");
	for (uint32_t d = 0; d < HD_WINDOW_AXES; d++) {
		w.image[d] = w.size[d] = d < HD_WINDOW_AXES - w.axes ? 1 : v->dim[v->rank -
			HD_WINDOW_AXES + d];
		w.stride[d] = w.apart[d] = 1;
		if (w.image[d] < 1)
			return hd_onnx_no(call, "the size of the image depends on the number of rows");
	}
	enum hd_err err = hd_onnx_value(call, 0, &x);
	return err ? err : pool_all(call, &w, &how, x);
}

enum hd_err hd_onnx_global_avgpool(struct hd_onnx_call *call) { return whole(call, false); }
enum hd_err hd_onnx_global_maxpool(struct hd_onnx_call *call) { return whole(call, true); }
