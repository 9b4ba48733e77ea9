/* GatherND: indices of several axes as one number of a place among them, known before the graph runs; of one
 * axis whatever they are. */
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/import.h"

/* Places of the indices among the first k axes, row by row; below 0 they count from the end. */
static enum hd_err places(struct hd_onnx_call *call, const struct hd_host_tensor *ids, uint32_t k,
	uint32_t *value)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	const uint64_t n = ids->n / k;
	int32_t *at = hd_arena_take(&call->im->file.arena, n, sizeof *at);

	if (!at)
		return hd_onnx_no(call, "no memory for its indices");
	for (uint64_t i = 0; i < n; i++) {
		int64_t place = 0;
		for (uint32_t d = 0; d < k; d++) {
			int64_t index = ids->i[i * k + d].a;
			if (ids->i[i * k + d].rows || index < -v->dim[d] || index >= v->dim[d])
				return hd_onnx_no(call, "index %lld does not exist: the axis has %lld",
					(long long)index, (long long)v->dim[d]);
			place = place * v->dim[d] + index + (index < 0 ? v->dim[d] : 0);
		}
		at[i] = (int32_t)place;
	}
	return hd_graph_const(call->im->graph, HD_I32, 1, (int64_t[]){ (int64_t)n }, at, value, &call->why);
}

static enum hd_err ids_of(struct hd_onnx_call *call, uint32_t k, uint32_t *value)
{
	const struct hd_onnx_val *ids = hd_onnx_in(call, 1);
	const struct hd_host_tensor *known = hd_onnx_known(call, 1);

	if (known && !known->is_float && known->n)
		return places(call, known, k, value);
	if (k > 1)
		return hd_onnx_no(call, "its indices of several axes are not known before the graph runs");
	enum hd_err err = hd_onnx_value(call, 1, value);
	return err ? err : hd_onnx_reshape(call, *value, ids->rank - 1u, ids->dim, value);
}

enum hd_err hd_onnx_gather_nd(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *ids = hd_onnx_in(call, 1);
	int64_t dim[2 * HD_ONNX_DIMS], flat[HD_ONNX_DIMS];
	uint32_t x, index, n = 0;

	if (!v || !ids || ids->rank < 1 || hd_onnx_attr_int(call->node, "batch_dims", 0))
		return hd_onnx_no(call, "an input is missing, or some axes are those of a batch");
	int64_t k = ids->dim[ids->rank - 1];
	if (k < 1 || k > v->rank)
		return hd_onnx_no(call, "it addresses by %lld indices", (long long)k);
	flat[0] = hd_dims_product(v->dim, (uint32_t)k);
	for (int64_t d = 0; d < k; d++)
		if (v->dim[d] < 1 || flat[0] < 1 || flat[0] > INT32_MAX)
			return hd_onnx_no(call, "axis %lld is the rows, or there are too many places",
				(long long)d);
	for (uint32_t d = 0; d + 1u < ids->rank; d++)
		dim[n++] = ids->dim[d];
	for (uint32_t d = (uint32_t)k; d < v->rank; d++)
		flat[1 + d - k] = dim[n++] = v->dim[d];
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (!err)
		err = ids_of(call, (uint32_t)k, &index);
	if (!err)
		err = hd_onnx_reshape(call, x, 1 + v->rank - (uint32_t)k, flat, &x);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_GATHER, x, index, (struct hd_attr){ .i = { 0 } }, &x);
	if (!err)
		err = hd_onnx_reshape(call, x, n, dim, &x);
	return err ? err : hd_onnx_put(call, 0, x, n, dim);
}
