/* Products, pads. */
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

/* What fills a pad: a number, the edge, what lies behind it, or what lies at the other end. */
enum pad_mode { PAD_NUMBER, PAD_EDGE, PAD_REFLECT, PAD_WRAP, NPAD_MODES };
static const char *const pad_modes[NPAD_MODES] = { "constant", "edge", "reflect", "wrap" };

/* All but numbers are a gather by the indices. */
static enum hd_err pad_by_own(struct hd_onnx_call *call, uint32_t axis, int64_t before, int64_t after,
	enum pad_mode mode, uint32_t *x)
{
	int64_t have = hd_onnx_shape(call, *x)->dim[axis], n = before + have + after;
	int32_t *at = have > 0 && n > 0 && n < 1 << 24 ? hd_arena_take(&call->im->file.arena, (size_t)n,
		sizeof *at) : NULL;
	uint32_t index;

	if (!at || (mode == PAD_REFLECT && (before >= have || after >= have)))
		return hd_onnx_no(call, "a pad along axis %u is larger than the axis, or that is the rows",
			axis);
	for (int64_t k = 0; k < n; k++) {
		int64_t from = k - before, low = mode == PAD_REFLECT ? -from : 0,
			high = mode == PAD_REFLECT ? 2 * (have - 1) - from : have - 1;
		if (mode == PAD_WRAP)
			low = high = (from % have + have) % have;
		at[k] = (int32_t)(from < 0 ? low : from >= have ? high : from);
	}
	enum hd_err err = hd_graph_const(call->im->graph, HD_I32, 1, &n, at, &index, &call->why);
	return err ? err : hd_onnx_node2(call, HD_OP_GATHER, *x, index,
		(struct hd_attr){ .i = { (int32_t)axis } }, x);
}

/* A negative pad takes elements away, and does so first. */
static enum hd_err pad_axis(struct hd_onnx_call *call, uint32_t axis, int64_t before, int64_t after,
	enum pad_mode mode, double value, uint32_t *x)
{
	int64_t have = hd_onnx_shape(call, *x)->dim[axis], from = before < 0 ? -before : 0,
		keep = have - from - (after < 0 ? -after : 0);
	enum hd_err err = HD_OK;

	if (before == 0 && after == 0)
		return HD_OK;
	if (have < 1 || keep < 1)
		return hd_onnx_no(call, "nothing is left of axis %u, or it is the rows", axis);
	if (keep < have)
		err = hd_onnx_node1(call, HD_OP_SLICE, *x,
			(struct hd_attr){ .i = { (int32_t)axis, (int32_t)from, 1, (int32_t)keep } }, x);
	before = before < 0 ? 0 : before;
	after = after < 0 ? 0 : after;
	if (err || (before == 0 && after == 0))
		return err;
	return mode != PAD_NUMBER ? pad_by_own(call, axis, before, after, mode, x) :
		hd_onnx_node1(call, HD_OP_PAD, *x, (struct hd_attr){ .i = { (int32_t)axis, (int32_t)before,
		(int32_t)after }, .f = { (float)value } }, x);
}

/* Two pads for each axis, or since opset 18 for each of those named. */
static enum hd_err pad_amounts(struct hd_onnx_call *call, uint32_t rank, int64_t amount[HD_ONNX_DIMS][2])
{
	struct hd_sym s[2 * HD_ONNX_DIMS], axis[HD_ONNX_DIMS];
	uint32_t n = 0, naxes = 0, at, set = 0;
	bool given, some = false;
	enum hd_err err = hd_onnx_ints(call, "pads", 1, s, 2 * HD_ONNX_DIMS, &n, &given);

	if (!err)
		err = hd_onnx_ints(call, NULL, 3, axis, HD_ONNX_DIMS, &naxes, &some);
	naxes = some ? naxes : rank;
	if (!err && n != 2 * naxes)
		return hd_onnx_no(call, "there are not two pads for each axis");
	for (uint32_t d = 0; d < naxes && !err; d++) {
		struct hd_sym before = s[d], after = s[naxes + d];
		if (!hd_onnx_axis(some ? axis[d].a : (int64_t)d, rank, &at) || set >> at & 1)
			return hd_onnx_no(call, "an axis does not exist, or is given twice");
		if (before.rows || after.rows || before.a > INT32_MAX / 4 || after.a > INT32_MAX / 4 ||
			before.a < -INT32_MAX / 4 || after.a < -INT32_MAX / 4)
			return hd_onnx_no(call, "a pad is huge, or depends on the rows");
		set |= 1u << at;
		amount[at][0] = before.a;
		amount[at][1] = after.a;
	}
	return err;
}

enum hd_err hd_onnx_pad(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t amount[HD_ONNX_DIMS][2] = { { 0 } }, dim[HD_ONNX_DIMS];
	double value = hd_onnx_attr_float(call->node, "value", 0);
	enum pad_mode mode = PAD_NUMBER;
	uint32_t x;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	while (mode < NPAD_MODES && !hd_onnx_attr_is(call->node, "mode", pad_modes[mode], mode == PAD_NUMBER))
		mode++;
	if (!err && (mode == NPAD_MODES || (hd_onnx_in(call, 2) && !hd_onnx_number(call, 2, &value))))
		return hd_onnx_no(call, "pads are constants, edges, reflections, or wrap around");
	if (!err)
		err = pad_amounts(call, v->rank, amount);
	if (err)
		return err;
	memcpy(dim, v->dim, sizeof dim);
	for (uint32_t d = 0; d < v->rank && !err; d++) {
		err = pad_axis(call, d, amount[d][0], amount[d][1], mode, value, &x);
		dim[d] += amount[d][0] + amount[d][1];
	}
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}
