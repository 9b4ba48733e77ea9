/* Ops that move or rename elements, and those that ask for extents. */
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/import.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

enum hd_err hd_onnx_constant(struct hd_onnx_call *call)
{
	const Onnx__AttributeProto *a = call->node->n_attribute == 1 ? call->node->attribute[0] : NULL;
	struct hd_host_tensor *h = hd_arena_take(&call->im->file.arena, 1, sizeof *h);
	struct hd_arena *arena = &call->im->file.arena;
	enum hd_err err;

	if (!h)
		return hd_fail(&call->why, HD_E_NOMEM, "no memory for a constant");
	if (!a || !a->name)
		return hd_onnx_no(call, "a Constant has one attribute");
	if (!strcmp(a->name, "value") && a->t) {
		struct hd_onnx_init init = { a->t, a->t->has_raw_data ? a->t->raw_data.data : NULL,
			a->t->has_raw_data ? a->t->raw_data.len : 0 };
		if (a->t->has_raw_data && !init.raw)
			init.raw = (const uint8_t *)"";
		err = hd_host_read(h, arena, &init, &call->why);
	} else if (!strcmp(a->name, "value_float") || !strcmp(a->name, "value_floats")) {
		bool one = !strcmp(a->name, "value_float");
		err = hd_host_make(h, arena, T(FLOAT), !one, (int64_t[]){ (int64_t)a->n_floats }, &call->why);
		for (uint64_t k = 0; !err && k < h->n; k++)
			h->f[k] = (double)(one ? a->f : a->floats[k]);
	} else if (!strcmp(a->name, "value_int") || !strcmp(a->name, "value_ints")) {
		bool one = !strcmp(a->name, "value_int");
		err = hd_host_make(h, arena, T(INT64), !one, (int64_t[]){ (int64_t)a->n_ints }, &call->why);
		for (uint64_t k = 0; !err && k < h->n; k++)
			h->i[k].a = one ? a->i : a->ints[k];
	} else {
		return hd_onnx_no(call, "attribute '%s' is not read", a->name);
	}
	return err ? err : hd_onnx_put_host(call, 0, h);
}

enum hd_err hd_onnx_shape_op(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_host_tensor *h = hd_arena_take(&call->im->file.arena, 1, sizeof *h);
	struct hd_sym dim[HD_ONNX_DIMS];
	int64_t first, n;

	if (!v || !h)
		return hd_onnx_no(call, "there is no input");
	for (uint32_t d = 0; d < v->rank; d++)
		dim[d] = v->dim[d] < 0 ? (struct hd_sym){ 0, -v->dim[d] } : (struct hd_sym){ v->dim[d], 0 };
	hd_onnx_slice(v->rank, hd_onnx_attr_int(call->node, "start", 0),
		hd_onnx_attr_int(call->node, "end", INT64_MAX), 1, &first, &n);
	enum hd_err err = hd_host_ints(h, &call->im->file.arena, (uint32_t)n, dim + first, &call->why);
	return err ? err : hd_onnx_put_host(call, 0, h);
}

enum hd_err hd_onnx_size(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_host_tensor *h = hd_arena_take(&call->im->file.arena, 1, sizeof *h);

	if (!v || !h)
		return hd_onnx_no(call, "there is no input");
	int64_t n = hd_dims_product(v->dim, v->rank);
	enum hd_err err = hd_host_make(h, &call->im->file.arena, T(INT64), 0, NULL, &call->why);
	if (!err)
		h->i[0] = n < 0 ? (struct hd_sym){ 0, -n } : (struct hd_sym){ n, 0 };
	return err ? err : hd_onnx_put_host(call, 0, h);
}

/* The same elements with other extents. */
static enum hd_err view(struct hd_onnx_call *call, uint32_t rank, const int64_t *dim)
{
	uint32_t x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_reshape(call, x, rank, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* total / n for extents in their own encoding; 0: not whole. */
static int64_t part_of(int64_t total, int64_t n)
{
	if (n < 0)
		return total < 0 && total % n == 0 ? total / n : 0;
	return n && total % n == 0 ? total / n : 0;
}

/* A batch that was traced as a number stands as that number in constant extents: where the
 * elements only come out if it means the rows, it means the rows. */
static void free_batch(const struct hd_importer *im, int64_t total, uint32_t rank, int64_t *dim)
{
	int64_t product = 1;

	if (total >= 0 || im->batch < 1 || rank == 0)
		return;
	for (uint32_t d = 0; d < rank; d++)
		if (dim[d] < 0 || !hd_mul_i64(product, dim[d], &product))
			return;
	if (product / im->batch == -total && product % im->batch == 0 && dim[0] % im->batch == 0)
		dim[0] = -(dim[0] / im->batch);
}

static enum hd_err fill_hole(struct hd_onnx_call *call, int64_t total, uint32_t rank, int64_t *dim,
	uint32_t hole)
{
	const struct hd_importer *im = call->im;
	int64_t rest = 1;

	dim[hole] = 1;
	/* [2, 16, -1] of rows that were traced as 2: the rows are the first extent, not the last. */
	if (total < 0 && hole > 0 && im->batch > 0 && dim[0] > 0 && dim[0] % im->batch == 0)
		dim[0] = -(dim[0] / im->batch);
	rest = hd_dims_product(dim, rank);
	dim[hole] = rest ? part_of(total, rest) : 0;
	return dim[hole] ? HD_OK : hd_onnx_no(call, "no extent for the -1 holds the same elements");
}

enum hd_err hd_onnx_reshape_op(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym s[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS];
	uint32_t n, hole = HD_NONE;
	bool given;
	enum hd_err err = hd_onnx_ints(call, "shape", 1, s, HD_ONNX_DIMS, &n, &given);

	if (err)
		return err;
	if (!v)
		return hd_onnx_no(call, "there is no input");
	for (uint32_t d = 0; d < n; d++) {
		bool copies = !s[d].rows && s[d].a == 0 && !hd_onnx_attr_int(call->node, "allowzero", 0) &&
			d < v->rank;
		if (!s[d].rows && s[d].a == -1 && hole == HD_NONE) {
			hole = d;
			dim[d] = 1;
		} else if (copies) {
			dim[d] = v->dim[d];
		} else if (!hd_onnx_extent(s[d], &dim[d])) {
			return hd_onnx_no(call,
				"extent %u of the new shape is none, or no multiple of the rows", d);
		}
	}
	int64_t total = hd_dims_product(v->dim, v->rank);
	if (hole != HD_NONE)
		err = fill_hole(call, total, n, dim, hole);
	else
		free_batch(call->im, total, n, dim);
	return err ? err : view(call, n, dim);
}

enum hd_err hd_onnx_flatten(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t axis = hd_onnx_attr_int(call->node, "axis", 1), dim[2];

	if (!v || axis < -(int64_t)v->rank || axis > v->rank)
		return hd_onnx_no(call, "axis %lld does not exist", (long long)axis);
	axis += axis < 0 ? v->rank : 0;
	dim[0] = hd_dims_product(v->dim, (uint32_t)axis);
	dim[1] = hd_dims_product(v->dim + axis, v->rank - (uint32_t)axis);
	if (!dim[0] || !dim[1])
		return hd_onnx_no(call, "too many elements");
	return view(call, 2, dim);
}

enum hd_err hd_onnx_axes(struct hd_onnx_call *call, uint32_t rank, uint32_t *set, uint32_t *n, bool *given)
{
	struct hd_sym s[HD_ONNX_DIMS];
	uint32_t at;
	enum hd_err err = hd_onnx_ints(call, "axes", 1, s, HD_ONNX_DIMS, n, given);

	*set = 0;
	for (uint32_t k = 0; k < *n && !err; k++) {
		if (s[k].rows || !hd_onnx_axis(s[k].a, rank, &at) || *set >> at & 1)
			return hd_onnx_no(call, "axis %lld does not exist, or is given twice",
				(long long)s[k].a);
		*set |= 1u << at;
	}
	return err;
}

enum hd_err hd_onnx_squeeze(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t set, n, rank = 0;
	bool given;

	if (!v)
		return hd_onnx_no(call, "there is no input");
	enum hd_err err = hd_onnx_axes(call, v->rank, &set, &n, &given);
	for (uint32_t d = 0; d < v->rank && !err; d++) {
		bool goes = given ? set >> d & 1 : v->dim[d] == 1;
		if (goes && v->dim[d] != 1)
			err = hd_onnx_no(call, "axis %u has %lld elements", d, (long long)v->dim[d]);
		if (!goes)
			dim[rank++] = v->dim[d];
	}
	return err ? err : view(call, rank, dim);
}

enum hd_err hd_onnx_unsqueeze(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "axes");
	const struct hd_host_tensor *h = hd_onnx_known(call, 1);
	uint64_t more = h ? h->n : a ? a->n_ints : 0;
	int64_t dim[HD_ONNX_DIMS];
	uint32_t set, n, from = 0;
	bool given;

	if (!v || v->rank + more > HD_ONNX_DIMS)
		return hd_onnx_no(call, "more than %d extents", HD_ONNX_DIMS);
	uint32_t rank = v->rank + (uint32_t)more;
	enum hd_err err = hd_onnx_axes(call, rank, &set, &n, &given);
	for (uint32_t d = 0; d < rank && !err; d++)
		dim[d] = set >> d & 1 ? 1 : v->dim[from++];
	return err ? err : view(call, rank, dim);
}

enum hd_err hd_onnx_transpose(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	const Onnx__AttributeProto *perm = hd_onnx_attr(call->node, "perm");
	int64_t dim[HD_ONNX_DIMS];
	uint32_t x, at[HD_ONNX_DIMS], set = 0;
	bool same = true;

	if (!v || (perm && perm->n_ints != v->rank))
		return hd_onnx_no(call, "perm has another number of axes");
	for (uint32_t d = 0; d < v->rank; d++) {
		if (!hd_onnx_axis(perm ? perm->ints[d] : v->rank - 1 - (int64_t)d, v->rank, &at[d]) ||
			set >> at[d] & 1)
			return hd_onnx_no(call, "perm is no order of the axes");
		set |= 1u << at[d];
		dim[d] = v->dim[at[d]];
		same = same && at[d] == d;
	}
	enum hd_err err = hd_onnx_value(call, 0, &x);
	if (err || same)
		return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
	if (v->rank == 2) {
		err = hd_onnx_put(call, 0, HD_NONE, 2, dim);
		struct hd_onnx_val *out = hd_onnx_out(call, 0);
		if (!err && out)
			out->turned = x;
		return err;
	}
	err = hd_onnx_permute(call, x, v->rank, at, &x);
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}

/* Of a permuted value: one permutation of what that was made of, or that itself. */
enum hd_err hd_onnx_permute(struct hd_onnx_call *call, uint32_t value, uint32_t rank, const uint32_t *perm,
	uint32_t *out)
{
	const struct hd_value *v = hd_onnx_shape(call, value);
	const struct hd_node *before = v->kind == HD_TEMP ? &call->im->graph->node[v->node] : NULL;
	struct hd_attr attr = { .i = { 0 } };
	bool same = true;

	if (rank > HD_MAX_DIMS)
		return hd_onnx_no(call, "%u extents; at most %d", rank, HD_MAX_DIMS);
	before = before && before->op == HD_OP_PERMUTE ? before : NULL;
	for (uint32_t d = 0; d < rank; d++) {
		attr.i[d] = before ? before->attr.i[perm[d]] : (int32_t)perm[d];
		same = same && attr.i[d] == (int32_t)d;
	}
	value = before ? before->in[0] : value;
	*out = value;
	return same ? HD_OK : hd_onnx_node1(call, HD_OP_PERMUTE, value, attr, out);
}

/* One axis to the last place and back. */
enum hd_err hd_onnx_axis_last(struct hd_onnx_call *call, uint32_t value, uint32_t rank, uint32_t axis,
	bool back, uint32_t *out)
{
	uint32_t perm[HD_ONNX_DIMS], n = 0;

	for (uint32_t d = 0; d < rank && !back; d++)
		if (d != axis)
			perm[n++] = d;
	for (uint32_t d = 0; d < rank && back; d++)
		perm[n++] = d < axis ? d : d == axis ? rank - 1 : d - 1;
	if (!back && rank)
		perm[n] = axis;
	return hd_onnx_permute(call, value, rank, perm, out);
}

/* Rows of a table by integers are EMBED; along another axis, or from a table of other rank, GATHER. */
enum hd_err hd_onnx_gather(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0), *ids = hd_onnx_in(call, 1);
	int64_t dim[HD_ONNX_DIMS + HD_ONNX_DIMS];
	uint32_t axis, table, index, y, n = 0;

	if (!v || !ids || !hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis))
		return hd_onnx_no(call, "an input is missing, or its axis");
	for (uint32_t d = 0; d < v->rank; d++) {
		for (uint32_t e = 0; d == axis && e < ids->rank; e++)
			dim[n++] = ids->dim[e];
		if (d != axis)
			dim[n++] = v->dim[d];
	}
	enum hd_err err = hd_onnx_value(call, 0, &table);
	if (!err)
		err = hd_onnx_indices(call, 1, v->dim[axis], &index);
	if (!err && axis == 0 && v->rank == 2 && v->dim[0] > 0 && v->dim[1] > 0)
		err = hd_onnx_node2(call, HD_OP_EMBED, index, table, (struct hd_attr){ .i = { 0 } }, &y);
	else if (!err)
		err = hd_onnx_node2(call, HD_OP_GATHER, table, index,
			(struct hd_attr){ .i = { (int32_t)axis } }, &y);
	if (!err)
		err = hd_onnx_reshape(call, y, n, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, n, dim);
}

/* Known indices exist, and count from the end where they are negative. */
enum hd_err hd_onnx_indices(struct hd_onnx_call *call, uint32_t i, int64_t extent, uint32_t *value)
{
	struct hd_onnx_val *v = hd_onnx_in(call, i), turned = v ? *v : (struct hd_onnx_val){ 0 };
	const struct hd_host_tensor *h = hd_onnx_known(call, i);
	struct hd_host_tensor copy;
	bool negative = false;

	for (uint64_t k = 0; h && !h->is_float && k < h->n; k++) {
		int64_t a = h->i[k].a;
		if (extent < 0 && a < 0)
			return hd_onnx_no(call, "an index from the end of the rows");
		if (extent >= 0 && (a < -extent || a >= extent))
			return hd_onnx_no(call, "index %lld does not exist: the axis has %lld", (long long)a,
				(long long)extent);
		negative = negative || a < 0;
	}
	if (!negative)
		return hd_onnx_value(call, i, value);
	enum hd_err err = hd_host_make(&copy, &call->im->file.arena, h->type, h->rank, h->dim, &call->why);
	for (uint64_t k = 0; !err && k < h->n; k++)
		copy.i[k] = (struct hd_sym){ h->i[k].a + (h->i[k].a < 0 ? extent : 0), h->i[k].rows };
	turned.kind = HD_VAL_HOST;
	turned.host = &copy;
	turned.value = HD_NONE;
	return err ? err : hd_onnx_value_of(call, &turned, value);
}

static enum hd_err slice(struct hd_onnx_call *call, uint32_t value, uint32_t axis, int64_t from, int64_t step,
	int64_t count, uint32_t *out)
{
	struct hd_attr attr = { .i = { (int32_t)axis } };

	if (count < 1 || !hd_i32_from(from, &attr.i[1]) || !hd_i32_from(step, &attr.i[2]) ||
		!hd_i32_from(count, &attr.i[3]))
		return hd_onnx_no(call, "nothing is left of axis %u", axis);
	*out = value;
	if (hd_onnx_shape(call, value)->dim[axis] == count && step == 1)
		return HD_OK;
	return hd_onnx_node1(call, HD_OP_SLICE, value, attr, out);
}

enum hd_err hd_onnx_slice_op(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym start[HD_ONNX_DIMS], end[HD_ONNX_DIMS], axis[HD_ONNX_DIMS], step[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS], first, count;
	uint32_t n[4], x, at, set = 0;
	bool given[4];
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_ints(call, "starts", 1, start, HD_ONNX_DIMS, &n[0], &given[0]);
	if (!err)
		err = hd_onnx_ints(call, "ends", 2, end, HD_ONNX_DIMS, &n[1], &given[1]);
	if (!err)
		err = hd_onnx_ints(call, "axes", 3, axis, HD_ONNX_DIMS, &n[2], &given[2]);
	if (!err)
		err = hd_onnx_ints(call, NULL, 4, step, HD_ONNX_DIMS, &n[3], &given[3]);
	if (err)
		return err;
	memcpy(dim, v->dim, sizeof dim);
	for (uint32_t k = 0; k < n[0] && !err; k++) {
		struct hd_sym by = k < n[3] ? step[k] : (struct hd_sym){ 1, 0 };
		bool there = k < n[1] && hd_onnx_axis(k < n[2] ? axis[k].a : (int64_t)k, v->rank, &at) &&
			by.a && !by.rows && by.a != INT64_MIN;
		if (!there)
			return hd_onnx_no(call, "starts, ends, axes and steps do not fit");
		if (set >> at & 1)
			return hd_onnx_no(call, "an axis is given twice");
		set |= 1u << at;
		bool all = start[k].a == 0 && !start[k].rows && by.a == 1 &&
			(end[k].rows || end[k].a >= (int64_t)1 << 31) &&
			(!end[k].rows || (end[k].a == 0 && end[k].rows == -v->dim[at]));
		if (all)
			continue;
		if (start[k].rows || end[k].rows || v->dim[at] < 0)
			return hd_onnx_no(call, "a slice of the rows");
		hd_onnx_slice(v->dim[at], start[k].a, end[k].a, by.a, &first, &count);
		err = slice(call, x, at, first, by.a, count, &x);
		dim[at] = count;
	}
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}

static enum hd_err sizes_fit(struct hd_onnx_call *call, const struct hd_sym *size, uint32_t n, int64_t extent)
{
	int64_t sum = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (size[k].rows)
			return hd_onnx_no(call, "a size depends on the number of rows");
		if (size[k].a < 0 || !hd_add_i64(sum, size[k].a, &sum))
			return hd_onnx_no(call, "a size is negative or too large");
	}
	return sum == extent ? HD_OK : hd_onnx_no(call, "the sizes add up to %lld, and the axis has %lld",
		(long long)sum, (long long)extent);
}

enum hd_err hd_onnx_split(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym size[HD_ONNX_MAX_OUT];
	int64_t dim[HD_ONNX_DIMS], at = 0;
	uint32_t axis, x, y, n, nout = (uint32_t)call->node->n_output;
	bool given;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_ints(call, "split", 1, size, HD_ONNX_MAX_OUT, &n, &given);
	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis) || (n && n != nout) ||
		v->dim[axis] < 0)
		return hd_onnx_no(call,
			"there is no such axis, it is the rows, or there are %u sizes for %u outputs", n,
			nout);
	memcpy(dim, v->dim, sizeof dim);
	err = n ? sizes_fit(call, size, n, v->dim[axis]) : HD_OK;
	for (uint32_t k = 0; k < nout && !err; k++) {
		int64_t even = (v->dim[axis] + (int64_t)nout - 1) / (int64_t)nout, left = v->dim[axis] - at;
		dim[axis] = n ? size[k].a : even < left ? even : left;
		err = slice(call, x, axis, at, 1, dim[axis], &y);
		at += dim[axis];
		if (!err)
			err = hd_onnx_put(call, k, y, v->rank, dim);
	}
	return err;
}

enum hd_err hd_onnx_concat(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t axis, x, y;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis) || v->dim[axis] < 0)
		return hd_onnx_no(call, "there is no such axis, or it is the rows");
	memcpy(dim, v->dim, sizeof dim);
	for (uint32_t k = 1; k < call->nin && !err; k++) {
		err = hd_onnx_value(call, k, &y);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_CONCAT, x, y,
				(struct hd_attr){ .i = { (int32_t)axis } }, &x);
		if (!err)
			dim[axis] += call->in[k]->dim[axis];
	}
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}

static bool is_one_number(const struct hd_host_tensor *h)
{
	for (uint64_t k = 1; h->is_float && k < h->n; k++)
		if (h->f[k] != h->f[0])
			return false;
	return h->is_float && h->n > 0;
}

/* Broadcast to the extents given: an extent of the input that is not 1 stays. */
enum hd_err hd_onnx_expand(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct hd_sym s[HD_ONNX_DIMS];
	struct hd_attr attr = { .i = { 0 } };
	int64_t dim[HD_ONNX_DIMS];
	uint32_t n, x, y;
	bool given;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_ints(call, NULL, 1, s, HD_ONNX_DIMS, &n, &given);
	if (err)
		return err;
	uint32_t rank = n > v->rank ? n : v->rank;
	const struct hd_host_tensor *h = hd_onnx_known(call, 0);
	/* repeats: over as many rows as were traced, which are made any number */
	bool one = h && is_one_number(h), repeats = false;
	for (uint32_t d = 0; d < rank; d++) {
		int64_t have = d + v->rank >= rank ? v->dim[d + v->rank - rank] : 1, want = 1, traced;
		if (d + n >= rank && !hd_onnx_extent(s[d + n - rank], &want))
			return hd_onnx_no(call, "extent %u is none, or no multiple of the rows", d);
		if (have > 1 && want < 0 && one && hd_mul_i64(-want, call->im->batch, &traced) &&
			have == traced)
			have = 1, repeats = true;
		dim[d] = want == 1 ? have : want;
		if (have != 1 && dim[d] != have && !(have < 0 &&
			hd_mul_i64(-have, call->im->batch, &traced) && want == traced))
			return hd_onnx_no(call, "extent %u cannot become %lld", d, (long long)want);
		dim[d] = have != 1 ? have : dim[d];
	}
	for (uint32_t d = 0; d < rank && d < HD_MAX_DIMS; d++)
		if (!hd_i32_from(dim[d], &attr.i[d]))
			return hd_onnx_no(call, "extent %lld is too large", (long long)dim[d]);
	attr.i[0] = rank ? attr.i[0] : 1;
	bool same = rank == v->rank && !memcmp(dim, v->dim, rank * sizeof *dim);
	y = x;
	if (repeats)
		err = hd_onnx_float_const(call, h->f[0], &x);
	if (!err && !same)
		err = rank > HD_MAX_DIMS ? hd_onnx_no(call, "more than %d extents", HD_MAX_DIMS) :
			hd_onnx_node1(call, HD_OP_EXPAND, x, attr, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* ConstantOfShape where the shape grows with the rows: one number, broadcast. */
enum hd_err hd_onnx_filled(struct hd_onnx_call *call)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "value");
	struct hd_host_tensor *h = hd_arena_take(&call->im->file.arena, 1, sizeof *h);
	struct hd_onnx_val constant = { .kind = HD_VAL_HOST, .value = HD_NONE, .turned = HD_NONE, .host = h };
	struct hd_attr attr = { .i = { 0 } };
	struct hd_sym s[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS];
	uint32_t n, y;
	bool given;
	enum hd_err err = hd_onnx_ints(call, NULL, 0, s, HD_ONNX_DIMS, &n, &given);

	if (err || !h)
		return err ? err : hd_onnx_no(call, "no memory");
	if (a && a->t) {
		struct hd_onnx_init init = { a->t, a->t->has_raw_data ? a->t->raw_data.data : NULL,
			a->t->has_raw_data ? a->t->raw_data.len : 0 };
		err = hd_host_read(h, &call->im->file.arena, &init, &call->why);
	} else {
		err = hd_host_make(h, &call->im->file.arena, T(FLOAT), 0, NULL, &call->why);
	}
	if (!err && h->n != 1)
		return hd_onnx_no(call, "its value is not one number");
	for (uint32_t d = 0; d < n && !err; d++)
		if (n > HD_MAX_DIMS || !hd_onnx_extent(s[d], &dim[d]) || !hd_i32_from(dim[d], &attr.i[d]))
			return hd_onnx_no(call, "extent %u is none, too large, or no multiple of the rows",
				d);
	if (!err)
		err = hd_onnx_value_of(call, &constant, &y);
	if (!err)
		err = hd_onnx_reshape(call, y, 0, NULL, &y);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_EXPAND, y, attr, &y);
	return err ? err : hd_onnx_put(call, 0, y, n, dim);
}
