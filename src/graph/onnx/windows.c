#include "graph/onnx/windows.h"

#include <string.h>

enum hd_err hd_onnx_window_ints(struct hd_onnx_call *call, const char *name, uint32_t axes, int64_t standard,
	int64_t least, int64_t out[HD_WINDOW_AXES])
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, name);

	for (uint32_t d = 0; d < HD_WINDOW_AXES; d++)
		out[d] = standard;
	if (a && a->n_ints != axes)
		return hd_onnx_no(call, "%s has %zu numbers for %u axes", name, a->n_ints, axes);
	for (uint32_t d = 0; a && d < axes; d++)
		out[HD_WINDOW_AXES - axes + d] = a->ints[d];
	for (uint32_t d = 0; d < HD_WINDOW_AXES; d++)
		if (out[d] < least || out[d] > INT32_MAX)
			return hd_onnx_no(call, "%s is %lld", name, (long long)out[d]);
	return HD_OK;
}

static void same_pads(struct hd_onnx_windows *w, bool upper)
{
	for (uint32_t d = HD_WINDOW_AXES - w->axes; d < HD_WINDOW_AXES; d++) {
		int64_t reach = (w->size[d] - 1) * w->apart[d] + 1;
		int64_t out = (w->image[d] + w->stride[d] - 1) / w->stride[d],
			all = (out - 1) * w->stride[d] + reach - w->image[d];
		all = all < 0 ? 0 : all;
		w->before[d] = upper ? all / 2 : all - all / 2;
		w->after[d] = all - w->before[d];
	}
}

static enum hd_err read_pads(struct hd_onnx_call *call, struct hd_onnx_windows *w)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "pads");
	uint32_t from = HD_WINDOW_AXES - w->axes;

	if (a && w->explicit_pads && a->n_ints != 2 * w->axes)
		return hd_onnx_no(call, "pads has %zu numbers for %u axes", a->n_ints, w->axes);
	for (uint32_t d = 0; a && w->explicit_pads && d < w->axes; d++) {
		w->before[from + d] = a->ints[d];
		w->after[from + d] = a->ints[w->axes + d];
		if (a->ints[d] < 0 || a->ints[d] > 1 << 20 || a->ints[w->axes + d] < 0 ||
			a->ints[w->axes + d] > 1 << 20)
			return hd_onnx_no(call, "a pad is negative or huge");
	}
	return HD_OK;
}

static enum hd_err read_sizes(struct hd_onnx_call *call, const struct hd_onnx_val *kernel,
	struct hd_onnx_windows *w)
{
	for (uint32_t d = 0; kernel && d < HD_WINDOW_AXES; d++)
		w->size[d] = d < HD_WINDOW_AXES - w->axes ? 1 :
			kernel->dim[kernel->rank - HD_WINDOW_AXES + d];
	if (kernel)
		return HD_OK;
	if (!hd_onnx_attr(call->node, "kernel_shape"))
		return hd_onnx_no(call, "has no kernel_shape");
	return hd_onnx_window_ints(call, "kernel_shape", w->axes, 1, 1, w->size);
}

enum hd_err hd_onnx_windows_read(struct hd_onnx_call *call, const struct hd_onnx_val *kernel, bool pads,
	struct hd_onnx_windows *w)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);

	*w = (struct hd_onnx_windows){ .axes = v ? v->rank - 2u : 0 };
	if (!v || v->rank < 3 || v->rank > 5)
		return hd_onnx_no(call, "x has %u extents; sequences have 3, images 4, volumes 5",
			v ? v->rank : 0);
	if (kernel && kernel->rank != v->rank)
		return hd_onnx_no(call, "the kernel has %u extents", kernel->rank);
	for (uint32_t d = 0; d < HD_WINDOW_AXES; d++) {
		w->image[d] = d < HD_WINDOW_AXES - w->axes ? 1 : v->dim[v->rank - HD_WINDOW_AXES + d];
		if (w->image[d] < 1)
			return hd_onnx_no(call, "the size of the image depends on the number of rows");
	}
	enum hd_err err = read_sizes(call, kernel, w);
	if (!err)
		err = hd_onnx_window_ints(call, "strides", w->axes, 1, 1, w->stride);
	if (!err)
		err = hd_onnx_window_ints(call, "dilations", w->axes, 1, 1, w->apart);
	w->explicit_pads = hd_onnx_attr_is(call->node, "auto_pad", "NOTSET", true);
	if (err || !pads)
		return err;
	if (!w->explicit_pads && !hd_onnx_attr_is(call->node, "auto_pad", "VALID", false))
		same_pads(w, hd_onnx_attr_is(call->node, "auto_pad", "SAME_UPPER", false));
	return read_pads(call, w);
}

enum hd_err hd_onnx_pad_uneven(struct hd_onnx_call *call, struct hd_onnx_windows *w, uint32_t axis,
	int32_t at, float value, uint32_t *x)
{
	struct hd_attr attr = { .i = { at, (int32_t)w->before[axis], (int32_t)w->after[axis] },
		.f = { value } };

	if (w->before[axis] == w->after[axis])
		return HD_OK;
	w->image[axis] += w->before[axis] + w->after[axis];
	w->before[axis] = w->after[axis] = 0;
	return hd_onnx_node1(call, HD_OP_PAD, *x, attr, x);
}

enum hd_err hd_onnx_image(struct hd_onnx_call *call, const struct hd_onnx_windows *w, uint32_t *x)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);

	return w->axes != 1 ? HD_OK : hd_onnx_reshape(call, *x, 4,
		(int64_t[]){ v->dim[0], v->dim[1], 1, v->dim[2] }, x);
}

enum hd_err hd_onnx_put_image(struct hd_onnx_call *call, const struct hd_onnx_windows *w, uint32_t y)
{
	const struct hd_value *v = hd_onnx_shape(call, y);
	int64_t dim[4] = { v->dim[0], v->dim[1], v->dim[2], v->dim[3] };

	if (w->axes != 1)
		return hd_onnx_put(call, 0, y, 4, dim);
	dim[2] = dim[3];
	enum hd_err err = hd_onnx_reshape(call, y, 3, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, 3, dim);
}
