/* Products, convolutions, pools. */
#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/import.h"

/* A matrix as MATMUL takes it: the value, and whether it is stored transposed. */
static enum hd_err matrix(struct hd_onnx_call *call, uint32_t i, bool turned, uint32_t *value, int32_t *t)
{
	struct hd_onnx_val *v = hd_onnx_in(call, i);

	*t = turned;
	if (v && v->turned != HD_NONE) {
		*value = v->turned;
		*t = !turned;
		return HD_OK;
	}
	return hd_onnx_value(call, i, value);
}

static enum hd_err scale(struct hd_onnx_call *call, uint32_t *value, double by)
{
	return by == 1 ? HD_OK : hd_onnx_node1(call, HD_OP_SCALE, *value,
		(struct hd_attr){ .f = { (float)by } }, value);
}

enum hd_err hd_onnx_gemm(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *a = hd_onnx_in(call, 0), *b = hd_onnx_in(call, 1), *c = hd_onnx_in(call, 2);
	bool ta = hd_onnx_attr_int(call->node, "transA", 0) != 0,
		tb = hd_onnx_attr_int(call->node, "transB", 0) != 0;
	double beta = hd_onnx_attr_float(call->node, "beta", 1);
	uint32_t x, w, y, k;
	int32_t tx, tw;

	if (!a || !b || a->rank != 2 || b->rank != 2)
		return hd_onnx_no(call, "takes two matrices");
	int64_t dim[2] = { a->dim[ta], b->dim[!tb] };
	enum hd_err err = matrix(call, 0, ta, &x, &tx);
	if (!err)
		err = matrix(call, 1, tb, &w, &tw);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { tx, tw } }, &y);
	if (!err)
		err = scale(call, &y, hd_onnx_attr_float(call->node, "alpha", 1));
	if (!err && c && beta != 0)
		err = hd_onnx_value(call, 2, &k);
	if (!err && c && beta != 0)
		err = scale(call, &k, beta);
	if (err || !c || beta == 0)
		return err ? err : hd_onnx_put(call, 0, y, 2, dim);
	if (c->rank && c->dim[c->rank - 1] == dim[1] && (c->rank == 1 ||
		(c->rank == 2 && c->dim[0] == 1 && dim[0] != 1))) {
		err = hd_onnx_reshape(call, k, 1, &dim[1], &k);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_BIAS, y, k, (struct hd_attr){ .i = { -1 } }, &y);
	} else {
		err = hd_onnx_node2(call, HD_OP_ADD, y, k, (struct hd_attr){ .i = { 0 } }, &y);
	}
	return err ? err : hd_onnx_put(call, 0, y, 2, dim);
}

/* numpy.matmul: extents before the last two are broadcast; a missing row or column is put in and taken
 * out. */
static enum hd_err product_dims(struct hd_onnx_call *call, uint32_t ra, const int64_t *da, uint32_t rb,
	const int64_t *db, uint32_t *rank, int64_t *dim)
{
	*rank = ra > rb ? ra : rb;
	if (da[ra - 1] != db[rb - 2])
		return hd_onnx_no(call, "the extents summed over, %lld and %lld, differ",
			(long long)da[ra - 1], (long long)db[rb - 2]);
	for (uint32_t d = 2; d < *rank; d++) {
		int64_t ea = d < ra ? da[ra - 1 - d] : 1, eb = d < rb ? db[rb - 1 - d] : 1;
		if (ea != eb && ea != 1 && eb != 1)
			return hd_onnx_no(call, "extents %lld and %lld cannot be broadcast", (long long)ea,
				(long long)eb);
		dim[*rank - 1 - d] = ea == 1 ? eb : ea;
	}
	dim[*rank - 2] = da[ra - 2];
	dim[*rank - 1] = db[rb - 1];
	return HD_OK;
}

enum hd_err hd_onnx_matmul(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *a = hd_onnx_in(call, 0), *b = hd_onnx_in(call, 1);
	int64_t da[HD_ONNX_DIMS], db[HD_ONNX_DIMS], dim[HD_ONNX_DIMS] = { 0 };
	uint32_t x, w, y, rank, ra, rb;
	int32_t ta = 0, tw = 0;

	if (!a || !b || !a->rank || !b->rank)
		return hd_onnx_no(call, "takes two tensors");
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = matrix(call, 1, false, &w, &tw);
	if (err)
		return err;
	ra = a->rank, rb = b->rank;
	memcpy(da, a->dim, sizeof da);
	memcpy(db, b->dim, sizeof db);
	if (ra == 1) {
		da[0] = 1, da[1] = a->dim[0], ra = 2;
		err = hd_onnx_reshape(call, x, 2, da, &x);
	}
	if (!err && rb == 1) {
		db[1] = 1, rb = 2;
		err = hd_onnx_reshape(call, w, 2, db, &w);
	}
	if (!err)
		err = product_dims(call, ra, da, rb, db, &rank, dim);
	if (!err)
		err = hd_onnx_attention(call, x, w, &y);
	if (!err && y == HD_NONE)
		err = hd_onnx_node2(call, rb == 2 ? HD_OP_MATMUL : HD_OP_CONTRACT, x, w,
			(struct hd_attr){ .i = { ta, tw } }, &y);
	if (err)
		return err;
	if (a->rank == 1) {
		dim[rank - 2] = dim[rank - 1];
		rank--;
	}
	rank -= b->rank == 1;
	err = hd_onnx_reshape(call, y, rank, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* ---- windows */

struct conv_window { int64_t size[2], stride[2], before[2], after[2], apart[2]; };

/* One spatial axis is made two: a height of 1. */
static enum hd_err ints2(struct hd_onnx_call *call, const char *name, uint32_t axes, int64_t standard,
	int64_t out[2])
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, name);

	out[0] = out[1] = standard;
	if (a && a->n_ints != axes)
		return hd_onnx_no(call, "%s has %zu numbers for %u axes", name, a->n_ints, axes);
	for (uint32_t d = 0; a && d < axes; d++)
		out[2 - axes + d] = a->ints[d];
	if (axes == 1)
		out[0] = !strcmp(name, "kernel_shape") ? 1 : standard;
	for (int d = 0; d < 2; d++)
		if (out[d] < 1 || out[d] > INT32_MAX)
			return hd_onnx_no(call, "%s is %lld", name, (long long)out[d]);
	return HD_OK;
}

static void same_pads(struct conv_window *w, const int64_t *image, bool upper)
{
	for (int d = 0; d < 2; d++) {
		int64_t reach = (w->size[d] - 1) * w->apart[d] + 1;
		int64_t out = (image[d] + w->stride[d] - 1) / w->stride[d],
			all = (out - 1) * w->stride[d] + reach - image[d];
		all = all < 0 ? 0 : all;
		w->before[d] = upper ? all / 2 : all - all / 2;
		w->after[d] = all - w->before[d];
	}
}

static enum hd_err pads_of(struct hd_onnx_call *call, uint32_t axes, const int64_t *image,
	struct conv_window *w)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "pads");
	bool explicit = hd_onnx_attr_is(call->node, "auto_pad", "NOTSET", true);

	memset(w->before, 0, sizeof w->before);
	memset(w->after, 0, sizeof w->after);
	if (!explicit && !hd_onnx_attr_is(call->node, "auto_pad", "VALID", false))
		same_pads(w, image, hd_onnx_attr_is(call->node, "auto_pad", "SAME_UPPER", false));
	if (!explicit || !a)
		return HD_OK;
	if (a->n_ints != 2 * axes)
		return hd_onnx_no(call, "pads has %zu numbers for %u axes", a->n_ints, axes);
	for (uint32_t d = 0; d < axes; d++) {
		w->before[2 - axes + d] = a->ints[d];
		w->after[2 - axes + d] = a->ints[axes + d];
		if (a->ints[d] < 0 || a->ints[d] > 1 << 20 || a->ints[axes + d] < 0 ||
			a->ints[axes + d] > 1 << 20)
			return hd_onnx_no(call, "a pad is negative or huge");
	}
	return HD_OK;
}

/* Pads that are not the same on both sides are put on by a node of their own. */
static enum hd_err pad_uneven(struct hd_onnx_call *call, struct conv_window *w, float value, uint32_t *x,
	int64_t *image)
{
	enum hd_err err = HD_OK;

	for (int d = 0; d < 2 && !err; d++) {
		if (w->before[d] == w->after[d])
			continue;
		err = hd_onnx_node1(call, HD_OP_PAD, *x, (struct hd_attr){ .i = { 2 + d,
			(int32_t)w->before[d], (int32_t)w->after[d] }, .f = { value } }, x);
		image[d] += w->before[d] + w->after[d];
		w->before[d] = w->after[d] = 0;
	}
	return err;
}

/* x as [N,C,H,W]. */
static enum hd_err image_of(struct hd_onnx_call *call, uint32_t *x, uint32_t *axes, int64_t *image)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	enum hd_err err = hd_onnx_value(call, 0, x);

	if (err)
		return err;
	if (v->rank != 3 && v->rank != 4)
		return hd_onnx_no(call, "x has %u extents; images have 4, sequences 3", v->rank);
	*axes = v->rank - 2u;
	image[0] = *axes == 2 ? v->dim[2] : 1;
	image[1] = v->dim[v->rank - 1];
	if (image[0] < 1 || image[1] < 1)
		return hd_onnx_no(call, "the size of the image depends on the number of rows");
	return *axes == 2 ? HD_OK : hd_onnx_reshape(call, *x, 4,
		(int64_t[]){ v->dim[0], v->dim[1], 1, v->dim[2] }, x);
}

static enum hd_err put_image(struct hd_onnx_call *call, uint32_t y, uint32_t axes)
{
	const struct hd_value *v = hd_onnx_shape(call, y);
	int64_t dim[4] = { v->dim[0], v->dim[1], v->dim[2], v->dim[3] };

	if (axes == 2)
		return hd_onnx_put(call, 0, y, 4, dim);
	dim[2] = dim[3];
	enum hd_err err = hd_onnx_reshape(call, y, 3, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, 3, dim);
}

enum hd_err hd_onnx_conv(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *wv = hd_onnx_in(call, 1);
	int64_t groups = hd_onnx_attr_int(call->node, "group", 1), image[2] = { 0 };
	uint32_t x = 0, w, b, y, axes = 0;
	struct conv_window win;
	enum hd_err err = image_of(call, &x, &axes, image);

	if (!err)
		err = hd_onnx_value(call, 1, &w);
	if (err)
		return err;
	if (wv->rank != axes + 2 || groups < 1 || groups > INT32_MAX)
		return hd_onnx_no(call, "the kernel has %u extents, or there are %lld groups", wv->rank,
			(long long)groups);
	if (axes == 1)
		err = hd_onnx_reshape(call, w, 4, (int64_t[]){ wv->dim[0], wv->dim[1], 1, wv->dim[2] }, &w);
	win.size[0] = axes == 2 ? wv->dim[2] : 1;
	win.size[1] = wv->dim[wv->rank - 1];
	if (!err)
		err = ints2(call, "strides", axes, 1, win.stride);
	if (!err)
		err = ints2(call, "dilations", axes, 1, win.apart);
	if (!err)
		err = pads_of(call, axes, image, &win);
	if (!err)
		err = pad_uneven(call, &win, 0, &x, image);
	if (err)
		return err;
	struct hd_attr attr = { .i = { (int32_t)win.stride[0], (int32_t)win.stride[1], (int32_t)win.before[0],
		(int32_t)win.before[1],
		groups == 1 ? 0 : (int32_t)groups, win.apart[0] == 1 ? 0 : (int32_t)win.apart[0],
		win.apart[1] == 1 ? 0 : (int32_t)win.apart[1] } };
	err = hd_onnx_node2(call, HD_OP_CONV2D, x, w, attr, &y);
	if (!err && hd_onnx_in(call, 2)) {
		err = hd_onnx_value(call, 2, &b);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_BIAS, y, b, (struct hd_attr){ .i = { 1 } }, &y);
	}
	return err ? err : put_image(call, y, axes);
}

/* ceil_mode: one window more where elements are left, if it begins in the image or in the pads before it
 * (PyTorch's rule); `more` is what it reaches beyond the pads. */
static void count_up(const int64_t *image, const struct conv_window *w, int64_t more[2])
{
	for (int d = 0; d < 2; d++) {
		int64_t room = image[d] + w->before[d] + w->after[d] - w->size[d],
			n = room / w->stride[d] + 1;
		more[d] = room > 0 && room % w->stride[d] &&
			n * w->stride[d] < image[d] + w->before[d] ? w->stride[d] - room % w->stride[d] : 0;
	}
}

static enum hd_err pool_window(struct hd_onnx_call *call, uint32_t axes, const int64_t *image,
	struct conv_window *w, int64_t more[2])
{
	const Onnx__AttributeProto *size = hd_onnx_attr(call->node, "kernel_shape");
	enum hd_err err = size ? ints2(call, "kernel_shape", axes, 1, w->size) : hd_onnx_no(call,
		"has no kernel_shape");

	if (!err)
		err = ints2(call, "strides", axes, 1, w->stride);
	if (!err)
		err = ints2(call, "dilations", axes, 1, w->apart);
	if (!err)
		err = pads_of(call, axes, image, w);
	if (!err && (w->apart[0] != 1 || w->apart[1] != 1))
		return hd_onnx_no(call, "dilations");
	more[0] = more[1] = 0;
	if (!err && hd_onnx_attr_int(call->node, "ceil_mode", 0))
		count_up(image, w, more);
	return err;
}

static struct hd_attr pool_attr(const struct conv_window *w, int32_t all)
{
	return (struct hd_attr){ .i = { (int32_t)w->size[0], (int32_t)w->size[1], (int32_t)w->stride[0],
		(int32_t)w->stride[1], (int32_t)w->before[0],
		(int32_t)w->before[1], all } };
}

/* Bytes go through f32, which holds them all. */
enum hd_err hd_onnx_maxpool(struct hd_onnx_call *call)
{
	int64_t image[2] = { 0 }, more[2];
	uint32_t x = 0, y, axes = 0;
	struct conv_window w;
	enum hd_err err = image_of(call, &x, &axes, image);
	bool bytes = !err && hd_onnx_shape(call, x)->dtype == HD_I32;

	if (!err && hd_onnx_out(call, 1))
		return hd_onnx_no(call, "its indices are read");
	if (!err)
		err = pool_window(call, axes, image, &w, more);
	if (!err && bytes)
		err = hd_onnx_node1(call, HD_OP_CAST, x, (struct hd_attr){ .i = { HD_F32 } }, &x);
	for (int d = 0; d < 2 && !err; d++)
		w.after[d] += more[d];
	if (!err)
		err = pad_uneven(call, &w, -FLT_MAX, &x, image);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_MAXPOOL2D, x, pool_attr(&w, 0), &y);
	if (!err && bytes)
		err = hd_onnx_node1(call, HD_OP_CAST, y, (struct hd_attr){ .i = { HD_I32 } }, &y);
	return err ? err : put_image(call, y, axes);
}

/* How many elements of window `at` count along axis d. */
static int64_t counted(const struct conv_window *w, int d, int64_t image, bool all, int64_t at)
{
	int64_t from = at * w->stride[d] - w->before[d], to = from + w->size[d];
	int64_t low = all ? -w->before[d] : 0, high = image + (all ? w->after[d] : 0);

	return (to < high ? to : high) - (from > low ? from : low);
}

/* A mean over whole windows becomes that over the elements that count: a factor per window. */
static enum hd_err recount(struct hd_onnx_call *call, const struct conv_window *w, const int64_t *image,
	bool all,
	uint32_t *y)
{
	const struct hd_value *v = hd_onnx_shape(call, *y);
	const int64_t dim[2] = { v->dim[2], v->dim[3] }, whole = w->size[0] * w->size[1];
	float *by = dim[0] * dim[1] < 1 << 24 ? hd_arena_take(&call->im->file.arena,
		(size_t)(dim[0] * dim[1]), sizeof *by) : NULL;
	uint32_t factor;

	if (!by)
		return hd_onnx_no(call, "no memory for its windows");
	for (int64_t p = 0; p < dim[0]; p++)
		for (int64_t q = 0; q < dim[1]; q++) {
			int64_t rows = counted(w, 0, image[0], all, p),
				columns = counted(w, 1, image[1], all, q);
			if (rows < 1 || columns < 1)
				return hd_onnx_no(call, "a window sees nothing of the image");
			by[p * dim[1] + q] = (float)((double)whole / (double)(rows * columns));
		}
	enum hd_err err = hd_graph_const(call->im->graph, HD_F32, 2, dim, by, &factor, &call->why);
	return err ? err : hd_onnx_node2(call, HD_OP_MUL, *y, factor, (struct hd_attr){ .i = { 0 } }, y);
}

enum hd_err hd_onnx_avgpool(struct hd_onnx_call *call)
{
	bool all = hd_onnx_attr_int(call->node, "count_include_pad", 0) != 0;
	int64_t image[2] = { 0 }, padded[2], more[2];
	uint32_t x = 0, y, axes = 0;
	struct conv_window w, put;
	enum hd_err err = image_of(call, &x, &axes, image);

	if (!err)
		err = pool_window(call, axes, image, &w, more);
	if (err)
		return err;
	bool uneven = w.before[0] != w.after[0] || w.before[1] != w.after[1], plain = !more[0] && !more[1] &&
		(all || !uneven);
	put = w;
	for (int d = 0; d < 2; d++) {
		padded[d] = image[d];
		put.after[d] += more[d];
	}
	err = pad_uneven(call, &put, 0, &x, padded);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_AVGPOOL2D, x, pool_attr(&put, all || !plain), &y);
	if (!err && !plain)
		err = recount(call, &w, image, all, &y);
	return err ? err : put_image(call, y, axes);
}

static enum hd_err whole(struct hd_onnx_call *call, enum hd_op op)
{
	int64_t image[2] = { 0 };
	uint32_t x = 0, y, axes = 0;
	enum hd_err err = image_of(call, &x, &axes, image);

	if (!err)
		err = hd_onnx_node1(call, op, x, (struct hd_attr){ .i = { (int32_t)image[0],
			(int32_t)image[1], 1, 1 } }, &y);
	return err ? err : put_image(call, y, axes);
}

enum hd_err hd_onnx_global_avgpool(struct hd_onnx_call *call) { return whole(call, HD_OP_AVGPOOL2D); }
enum hd_err hd_onnx_global_maxpool(struct hd_onnx_call *call) { return whole(call, HD_OP_MAXPOOL2D); }

/* Pads that are the edge, or what lies behind it: a gather by the indices. */
static enum hd_err pad_by_own(struct hd_onnx_call *call, uint32_t axis, int64_t before, int64_t after,
	bool reflect, uint32_t *x)
{
	int64_t have = hd_onnx_shape(call, *x)->dim[axis], n = before + have + after;
	int32_t *at = have > 0 && n < 1 << 24 ? hd_arena_take(&call->im->file.arena, (size_t)n, sizeof *at) :
		NULL;
	uint32_t index;

	if (!at || (reflect && (before >= have || after >= have)))
		return hd_onnx_no(call, "a pad along axis %u is larger than the axis, or that is the rows",
			axis);
	for (int64_t k = 0; k < n; k++) {
		int64_t from = k - before, low = reflect ? -from : 0,
			high = reflect ? 2 * (have - 1) - from : have - 1;
		at[k] = (int32_t)(from < 0 ? low : from >= have ? high : from);
	}
	enum hd_err err = hd_graph_const(call->im->graph, HD_I32, 1, &n, at, &index, &call->why);
	return err ? err : hd_onnx_node2(call, HD_OP_GATHER, *x, index,
		(struct hd_attr){ .i = { (int32_t)axis } }, x);
}

enum hd_err hd_onnx_pad(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym s[2 * HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS];
	double value = hd_onnx_attr_float(call->node, "value", 0);
	uint32_t n, x;
	bool given;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_ints(call, "pads", 1, s, 2 * HD_ONNX_DIMS, &n, &given);
	if (err)
		return err;
	bool constant = hd_onnx_attr_is(call->node, "mode", "constant", true),
		reflect = hd_onnx_attr_is(call->node, "mode", "reflect", false);
	if ((!constant && !reflect && !hd_onnx_attr_is(call->node, "mode", "edge", false)) ||
		n != 2u * v->rank || hd_onnx_in(call, 3) ||
	    (hd_onnx_in(call, 2) && !hd_onnx_number(call, 2, &value)))
		return hd_onnx_no(call, "pads are constants, edges or reflections, two an axis");
	memcpy(dim, v->dim, sizeof dim);
	for (uint32_t d = 0; d < v->rank && !err; d++) {
		int64_t before = s[d].a, after = s[v->rank + d].a;
		if (before < 0 || after < 0 || before > INT32_MAX / 4 || after > INT32_MAX / 4 || s[d].rows ||
			s[v->rank + d].rows)
			return hd_onnx_no(call, "a pad is negative, or depends on the rows");
		if (before + after == 0)
			continue;
		if (constant)
			err = hd_onnx_node1(call, HD_OP_PAD, x,
				(struct hd_attr){ .i = { (int32_t)d, (int32_t)before, (int32_t)after },
				.f = { (float)value } },
				&x);
		else
			err = pad_by_own(call, d, before, after, reflect, &x);
		dim[d] += before + after;
	}
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}
