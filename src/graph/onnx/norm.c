/* Reductions, norms, losses. */
#include <string.h>

#include "base/checked.h"
#include "graph/models/rows.h"
#include "graph/onnx/import.h"

static bool is(const struct hd_onnx_call *call, const char *op) { return !strcmp(call->node->op_type, op); }

static const struct hd_attr none;

static enum hd_op reduction(const struct hd_onnx_call *call)
{
	static const struct { const char *name; enum hd_op op; } ops[] = { { "ReduceSum", HD_OP_REDUCE_SUM },
		{ "ReduceMean", HD_OP_REDUCE_MEAN },
		{ "ReduceMax", HD_OP_REDUCE_MAX }, { "ReduceMin", HD_OP_REDUCE_MIN }, { "ReduceProd", HD_OP_REDUCE_PROD } };
	size_t i = 0;

	while (!is(call, ops[i].name))
		i++;
	return ops[i].op;
}

/* Over `set` of x, which stay as extents of 1 if `keep`. */
static enum hd_err reduce(struct hd_onnx_call *call, enum hd_op op, uint32_t x, uint32_t rank, uint32_t set,
	bool keep, uint32_t *y)
{
	*y = x;
	if (rank == 0 || !set)
		return HD_OK;
	return hd_onnx_node1(call, op, x, (struct hd_attr){ .i = { (int32_t)set, keep ? (int32_t)set : 0 } },
		y);
}

/* A sum or mean that takes in the rows is no value of a slice: it can only be the loss (ends.c). */
static enum hd_err over_rows(struct hd_onnx_call *call, uint32_t x, uint32_t rank, uint32_t set,
	uint32_t rows)
{
	bool mean = is(call, "ReduceMean");
	struct hd_onnx_val *out = hd_onnx_out(call, 0);
	uint32_t y, all = (1u << rank) - 1;

	if ((!mean && !is(call, "ReduceSum")) || set != all || !out)
		return hd_onnx_no(call, "reduces over the rows of the batch");
	enum hd_err err = reduce(call, mean ? HD_OP_REDUCE_MEAN : HD_OP_REDUCE_SUM, x, rank,
		set & ~(1u << rows), false, &y);
	if (!err)
		err = hd_onnx_put(call, 0, HD_NONE, 0, NULL);
	if (!err)
		*(mean ? &out->mean_of : &out->sum_of) = y;
	return err;
}

enum hd_err hd_onnx_reduce(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool keep = hd_onnx_attr_int(call->node, "keepdims", 1) != 0, given;
	int64_t dim[HD_ONNX_DIMS];
	uint32_t set, n, x, y, rank = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = hd_onnx_axes(call, v->rank, &set, &n, &given);
	if (err)
		return err;
	if (n == 0 && !hd_onnx_attr_int(call->node, "noop_with_empty_axes", 0))
		set = (1u << v->rank) - 1;
	for (uint32_t d = 0; d < v->rank; d++) {
		if (set >> d & 1 && v->dim[d] < 0)
			return over_rows(call, x, v->rank, set, d);
		if (keep || !(set >> d & 1))
			dim[rank++] = set >> d & 1 ? 1 : v->dim[d];
	}
	err = reduce(call, reduction(call), x, v->rank, set, keep, &y);
	if (!err)
		err = hd_onnx_reshape(call, y, rank, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* The last of equal maxima is the first from the end; a minimum is a maximum of -x. */
enum hd_err hd_onnx_argmax(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool keep = hd_onnx_attr_int(call->node, "keepdims", 1) != 0,
		from_end = hd_onnx_attr_int(call->node, "select_last_index", 0) != 0;
	int64_t dim[HD_ONNX_DIMS];
	uint32_t axis, x, y, end, rank = 0;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", 0), v->rank, &axis) || v->dim[axis] < 1 ||
		v->dim[axis] > INT32_MAX)
		return hd_onnx_no(call, "there is no such axis, or it is the rows");
	const int32_t last = (int32_t)v->dim[axis] - 1;
	for (uint32_t d = 0; d < v->rank; d++)
		if (d != axis || keep)
			dim[rank++] = d == axis ? 1 : v->dim[d];
	if (is(call, "ArgMin"))
		err = hd_onnx_node1(call, HD_OP_ACT, x, (struct hd_attr){ .i = { HD_ACT_NEG } }, &x);
	if (!err && from_end)
		err = hd_onnx_node1(call, HD_OP_SLICE, x, (struct hd_attr){ .i = { (int32_t)axis, last, -1,
			last + 1 } }, &x);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_ARGMAX, x, (struct hd_attr){ .i = { (int32_t)axis } }, &y);
	if (!err && from_end) {
		err = hd_graph_const(call->im->graph, HD_I32, 1, (int64_t[]){ 1 }, &last, &end, &call->why);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_SUB, end, y, none, &y);
	}
	if (!err)
		err = hd_onnx_reshape(call, y, rank, dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, rank, dim);
}

/* ---- softmax */

static enum hd_err softmax(struct hd_onnx_call *call, enum hd_op op, uint32_t x, uint32_t rank, uint32_t axis,
	uint32_t *y)
{
	enum hd_err err = hd_onnx_axis_last(call, x, rank, axis, false, &x);

	if (!err)
		err = hd_onnx_node1(call, op, x, none, &x);
	return err ? err : hd_onnx_axis_last(call, x, rank, axis, true, y);
}

enum hd_err hd_onnx_softmax(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool flat = call->im->file.opset < 13;            /* then: over all axes from `axis` on */
	enum hd_op op = is(call, "Softmax") ? HD_OP_SOFTMAX : HD_OP_LOG_SOFTMAX;
	int64_t dim[HD_ONNX_DIMS] = { 0 };
	uint32_t x, y, axis;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", flat ? 1 : -1), v->rank, &axis))
		return hd_onnx_no(call, "there is no such axis");
	if (flat && axis + 1u < v->rank) {
		memcpy(dim, v->dim, axis * sizeof *dim);
		dim[axis] = hd_dims_product(v->dim + axis, v->rank - axis);
		err = hd_onnx_reshape(call, x, axis + 1, dim, &x);
		if (!err)
			err = hd_onnx_node1(call, op, x, none, &y);
		if (!err)
			err = hd_onnx_reshape(call, y, v->rank, v->dim, &y);
	} else {
		err = softmax(call, op, x, v->rank, axis, &y);
	}
	return err ? err : hd_onnx_put(call, 0, y, v->rank, v->dim);
}

/* ---- norms */

static enum hd_err filled(struct hd_onnx_call *call, int64_t n, float value, uint32_t *out)
{
	float *at = n > 0 && n < 1 << 24 ? hd_arena_take(&call->im->file.arena, (size_t)n, sizeof *at) : NULL;

	if (!at)
		return hd_onnx_no(call, "no memory for %lld numbers", (long long)n);
	for (int64_t k = 0; k < n; k++)
		at[k] = value;
	enum hd_err err = hd_graph_const(call->im->graph, HD_F32, 1, &n, at, out, &call->why);
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

/* Mean and 1/deviation, which lie side by side: outputs 1 and 2, with extents of 1 where moments were
 * taken. */
static enum hd_err put_moments(struct hd_onnx_call *call, uint32_t stats, uint32_t axis)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t dim[HD_ONNX_DIMS];
	enum hd_err err = HD_OK;

	for (uint32_t d = 0; d < v->rank; d++)
		dim[d] = d < axis ? v->dim[d] : 1;
	for (uint32_t k = 1; k < 3 && !err; k++) {
		uint32_t part;
		if (!hd_onnx_out(call, k) || !hd_onnx_out(call, k)->nuses)
			continue;
		err = hd_onnx_node1(call, HD_OP_SLICE, stats,
			(struct hd_attr){ .i = { hd_onnx_shape(call, stats)->rank - 1, (int32_t)k - 1, 1,
			1 } }, &part);
		if (!err)
			err = hd_onnx_reshape(call, part, v->rank, dim, &part);
		if (!err)
			err = hd_onnx_put(call, k, part, v->rank, dim);
	}
	return err;
}

enum hd_err hd_onnx_layernorm(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	double eps = hd_onnx_attr_float(call->node, "epsilon", 1e-5);
	uint32_t in[3], axis, y;
	enum hd_err err = hd_onnx_value(call, 0, &in[0]);

	if (!err)
		err = hd_onnx_value(call, 1, &in[1]);
	if (err)
		return err;
	if (!hd_onnx_axis(hd_onnx_attr_int(call->node, "axis", -1), v->rank, &axis))
		return hd_onnx_no(call, "there is no such axis");
	int64_t channels = hd_dims_product(v->dim + axis, v->rank - axis), dim[HD_ONNX_DIMS] = { 1 };
	if (channels < 1)
		return hd_onnx_no(call, "takes moments over the rows");
	/* [..,C]: a norm over several axes is one over their product. */
	uint32_t rank = axis ? axis + 1 : 2;
	memcpy(dim, v->dim, axis * sizeof *dim);
	dim[rank - 1] = channels;
	err = hd_onnx_reshape(call, in[0], rank, dim, &in[0]);
	if (!err)
		err = hd_onnx_reshape(call, in[1], 1, &channels, &in[1]);
	if (!err && hd_onnx_in(call, 2)) {
		err = hd_onnx_value(call, 2, &in[2]);
		if (!err)
			err = hd_onnx_reshape(call, in[2], 1, &channels, &in[2]);
	} else if (!err) {
		err = filled(call, channels, 0, &in[2]);
	}
	if (!err)
		err = hd_onnx_node(call, HD_OP_LAYERNORM, 3, in, (struct hd_attr){ .f = { (float)eps } }, &y);
	if (!err)
		err = put_moments(call, y + 1, axis);
	if (!err)
		err = hd_onnx_reshape(call, y, v->rank, v->dim, &y);
	return err ? err : hd_onnx_put(call, 0, y, v->rank, v->dim);
}

/* Outputs 1 and 2 of a node case: the running statistics after this batch. In a job they are buffers that
 * move. */
static enum hd_err put_moved(struct hd_onnx_call *call, const struct hd_running *r)
{
	struct hd_maker m = { call->im->graph, &call->why, HD_OK };
	const int64_t channels = hd_onnx_shape(call, r->moments)->dim[1];
	uint32_t all = hd_make1(&m, HD_OP_CAST, r->moments, (struct hd_attr){ .i = { HD_F32 } }), row[3],
		old[2] = { r->mean, r->variance };
	enum hd_err err = HD_OK;

	for (int32_t k = 0; k < 3; k++)           /* n, mean, sum of squared distances */
		row[k] = hd_make1(&m, HD_OP_RESHAPE, hd_make1(&m, HD_OP_SLICE, all,
			(struct hd_attr){ .i = { 0, k, 1, 1 } }),
			(struct hd_attr){ .i = { (int32_t)channels } });
	row[2] = hd_make2(&m, HD_OP_DIV, row[2], row[0], none);
	for (uint32_t k = 0; k < 2 && !m.err && !err; k++) {
		uint32_t now = hd_make1(&m, HD_OP_SCALE, row[1 + k],
			(struct hd_attr){ .f = { r->momentum } });
		uint32_t then = hd_make1(&m, HD_OP_SCALE, old[k],
			(struct hd_attr){ .f = { 1 - r->momentum } });
		uint32_t y = hd_make2(&m, HD_OP_ADD, now, then, none);
		err = m.err ? HD_OK : hd_onnx_put(call, 1 + k, y, 1, &channels);
	}
	return m.err == HD_E_INVAL ? HD_E_INPUT : m.err ? m.err : err;
}

/* A norm of groups of one channel. */
enum hd_err hd_onnx_instancenorm(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	uint32_t in[3], y;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < 3 && !err; k++)
		err = hd_onnx_value(call, k, &in[k]);
	if (err)
		return err;
	if (v->rank < 2 || v->dim[1] < 1 || v->dim[1] > INT32_MAX)
		return hd_onnx_no(call, "x has no channels");
	struct hd_attr attr = { .i = { (int32_t)v->dim[1] },
		.f = { (float)hd_onnx_attr_float(call->node, "epsilon", 1e-5) } };
	err = hd_onnx_node(call, HD_OP_GROUPNORM, 3, in, attr, &y);
	return err ? err : hd_onnx_put(call, 0, y, v->rank, v->dim);
}

/* Gains and biases are those of channels; in opset 18 of groups, repeated over their channels. */
static enum hd_err of_channels(struct hd_onnx_call *call, uint32_t i, int64_t groups, int64_t channels,
	uint32_t *value)
{
	struct hd_attr attr = { .i = { (int32_t)groups, (int32_t)(channels / groups) } };
	bool repeats = call->im->file.opset < 21 && groups != channels;
	enum hd_err err = hd_onnx_value(call, i, value);

	if (!err && hd_dims_product(call->in[i]->dim, call->in[i]->rank) != (repeats ? groups : channels))
		return hd_onnx_no(call, "its gains and biases are not one a %s", repeats ? "group" :
			"channel");
	if (err || !repeats)
		return err;
	err = hd_onnx_reshape(call, *value, 2, (int64_t[]){ groups, 1 }, value);
	if (!err)
		err = hd_onnx_node1(call, HD_OP_EXPAND, *value, attr, value);
	return err ? err : hd_onnx_reshape(call, *value, 1, &channels, value);
}

enum hd_err hd_onnx_groupnorm(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	int64_t groups = hd_onnx_attr_int(call->node, "num_groups", 0);
	uint32_t in[3], y;
	enum hd_err err = hd_onnx_value(call, 0, &in[0]);

	if (err)
		return err;
	if (v->rank < 2 || v->dim[1] < 1 || v->dim[1] > INT32_MAX || groups < 1 || v->dim[1] % groups)
		return hd_onnx_no(call, "x has no channels, or they are no multiple of its groups");
	for (uint32_t k = 1; k < 3 && !err; k++)
		err = of_channels(call, k, groups, v->dim[1], &in[k]);
	struct hd_attr attr = { .i = { (int32_t)groups },
		.f = { (float)hd_onnx_attr_float(call->node, "epsilon", 1e-5) } };
	if (!err)
		err = hd_onnx_node(call, HD_OP_GROUPNORM, 3, in, attr, &y);
	return err ? err : hd_onnx_put(call, 0, y, v->rank, v->dim);
}

enum hd_err hd_onnx_batchnorm(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	bool training = hd_onnx_attr_int(call->node, "training_mode", 0) != 0 || !call->im->opts->as_is;
	struct hd_running running = { .momentum = 1 - (float)hd_onnx_attr_float(call->node, "momentum",
		0.9) };
	uint32_t in[5], y;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < 3 && !err; k++)
		err = hd_onnx_value(call, k, &in[k]);
	if (!err)
		err = hd_onnx_buffer(call, 3, &in[3]);
	if (!err)
		err = hd_onnx_buffer(call, 4, &in[4]);
	if (err)
		return err;
	for (uint32_t i = 0; i < call->im->graph->nrunning; i++)
		if (call->im->graph->running[i].mean == in[3] ||
			call->im->graph->running[i].variance == in[4])
			return hd_onnx_no(call,
				"another node moves its running statistics, too; Heddle moves each once a "
				"step");
	for (uint32_t k = 3; k < 5 && !call->im->opts->as_is; k++)
		if (call->im->graph->value[in[k]].kind != HD_BUFFER)
			return hd_onnx_no(call, "its running %s '%s' is no tensor of its own in the file",
				k == 3 ? "mean" : "variance",
				call->in[k] ? call->in[k]->name : "");
	struct hd_attr attr = { .i = { v->rank > 2 ? 1 : -1, !training },
		.f = { (float)hd_onnx_attr_float(call->node, "epsilon", 1e-5) } };
	err = hd_onnx_node(call, HD_OP_BATCHNORM, 5, in, attr, &y);
	running.mean = in[3];
	running.variance = in[4];
	running.moments = y + 2;
	if (!err && training && call->im->graph->value[in[3]].kind == HD_BUFFER)
		err = hd_graph_running(call->im->graph, &running, &call->why);
	if (!err && training && call->im->opts->as_is)
		err = put_moved(call, &running);
	return err ? err : hd_onnx_put(call, 0, y, v->rank, v->dim);
}

/* ---- losses */

/* scores [N,C,..] with classes last: [N,..,C]. */
static enum hd_err classes_last(struct hd_onnx_call *call, uint32_t *scores)
{
	enum hd_err err = hd_onnx_value(call, 0, scores);

	return err ? err : hd_onnx_axis_last(call, *scores, call->in[0]->rank, 1, false, scores);
}

/* How the losses of single labels become the output. `weight`: of each, HD_NONE: 1. */
static enum hd_err put_loss(struct hd_onnx_call *call, uint32_t loss, uint32_t weight)
{
	const struct hd_onnx_val *t = hd_onnx_in(call, 1);
	struct hd_onnx_val *out = hd_onnx_out(call, 0);
	bool mean = hd_onnx_attr_is(call->node, "reduction", "mean", true),
		sum = hd_onnx_attr_is(call->node, "reduction", "sum", false);
	uint32_t y, w, all = (1u << t->rank) - 1;
	enum hd_err err;

	if (!mean && !sum)
		return hd_onnx_put(call, 0, loss, t->rank, t->dim);
	if (t->dim[0] < 0) {
		if (weight != HD_NONE)
			return hd_onnx_no(call, "weights of classes in a loss over the batch");
		err = hd_onnx_put(call, 0, HD_NONE, 0, NULL);
		if (!err && out)
			*(mean ? &out->mean_of : &out->sum_of) = loss;
		return err;
	}
	err = reduce(call, mean && weight == HD_NONE ? HD_OP_REDUCE_MEAN : HD_OP_REDUCE_SUM, loss, t->rank,
		all, false, &y);
	if (!err && mean && weight != HD_NONE) {
		err = reduce(call, HD_OP_REDUCE_SUM, weight, t->rank, all, false, &w);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_DIV, y, w, none, &y);
	}
	if (!err)
		err = hd_onnx_reshape(call, y, 0, NULL, &y);
	return err ? err : hd_onnx_put(call, 0, y, 0, NULL);
}

/* Weight of each label: that of its class, 0 where it is the one to ignore. */
static enum hd_err label_weights(struct hd_onnx_call *call, uint32_t labels, bool ignores, int64_t ignored,
	uint32_t *weight)
{
	uint32_t table, which, same, one;
	struct hd_host_tensor *number = hd_arena_take(&call->im->file.arena, 1, sizeof *number);
	struct hd_onnx_val constant = { .kind = HD_VAL_HOST, .value = HD_NONE, .turned = HD_NONE,
		.host = number };
	enum hd_err err = HD_OK;

	*weight = HD_NONE;
	if (hd_onnx_in(call, 2)) {
		err = hd_onnx_value(call, 2, &table);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_GATHER, table, labels, none, weight);
	}
	if (err || !ignores)
		return err;
	err = number ? hd_host_ints(number, &call->im->file.arena, 1, &(struct hd_sym){ ignored, 0 },
		&call->why) : hd_onnx_no(call, "no memory");
	if (!err)
		err = hd_onnx_value_of(call, &constant, &which);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_EQUAL, labels, which, none, &same);
	if (!err)
		err = hd_onnx_float_const(call, 1, &one);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_SUB, one, same, none, &same);
	if (!err && *weight != HD_NONE)
		return hd_onnx_node2(call, HD_OP_MUL, *weight, same, none, weight);
	*weight = same;
	return err;
}

/* -log p of the label, from log p [N,..,C]. */
static enum hd_err pick(struct hd_onnx_call *call, uint32_t logp, uint32_t labels, uint32_t *loss)
{
	const struct hd_value *v = hd_onnx_shape(call, logp);
	int64_t classes = v->dim[v->rank - 1];
	uint32_t hot, last = v->rank - 1u;
	enum hd_err err = hd_onnx_node1(call, HD_OP_ONE_HOT, labels,
		(struct hd_attr){ .i = { (int32_t)classes } }, &hot);

	if (!err)
		err = hd_onnx_node2(call, HD_OP_MUL, hot, logp, none, &hot);
	if (!err)
		err = reduce(call, HD_OP_REDUCE_SUM, hot, last + 1, 1u << last, false, &hot);
	return err ? err : hd_onnx_node1(call, HD_OP_ACT, hot, (struct hd_attr){ .i = { HD_ACT_NEG } }, loss);
}

static enum hd_err from_logp(struct hd_onnx_call *call, uint32_t logp)
{
	const Onnx__AttributeProto *ignore = hd_onnx_attr(call->node, "ignore_index");
	uint32_t labels, weight, loss;
	enum hd_err err = hd_onnx_value(call, 1, &labels);

	if (!err)
		err = label_weights(call, labels, ignore != NULL, ignore ? ignore->i : 0, &weight);
	if (!err)
		err = pick(call, logp, labels, &loss);
	if (!err && weight != HD_NONE)
		err = hd_onnx_node2(call, HD_OP_MUL, loss, weight, none, &loss);
	return err ? err : put_loss(call, loss, weight);
}

enum hd_err hd_onnx_nll(struct hd_onnx_call *call)
{
	uint32_t logp;
	enum hd_err err = classes_last(call, &logp);

	return err ? err : from_logp(call, logp);
}

/* Without weights, and with nothing to ignore but masked labels (-1 in our data), it is one op. */
enum hd_err hd_onnx_xent(struct hd_onnx_call *call)
{
	const Onnx__AttributeProto *ignore = hd_onnx_attr(call->node, "ignore_index");
	bool plain = !hd_onnx_in(call, 2) && (!ignore || (!call->im->opts->as_is && ignore->i < 0)) &&
		!hd_onnx_out(call, 1);
	const struct hd_onnx_val *t = hd_onnx_in(call, 1), *x = hd_onnx_in(call, 0);
	uint32_t scores, labels, loss, logp, back;
	enum hd_err err = classes_last(call, &scores);

	if (err || !t || x->rank != t->rank + 1)
		return err ? err : hd_onnx_no(call, "labels have one extent less than scores");
	if (plain) {
		err = hd_onnx_value(call, 1, &labels);
		if (!err)
			err = hd_onnx_node2(call, HD_OP_SOFTMAX_XENT, scores, labels, none, &loss);
		return err ? err : put_loss(call, loss, HD_NONE);
	}
	err = hd_onnx_node1(call, HD_OP_LOG_SOFTMAX, scores, none, &logp);
	if (!err && hd_onnx_out(call, 1)) {
		err = hd_onnx_axis_last(call, logp, x->rank, 1, true, &back);
		if (!err)
			err = hd_onnx_put(call, 1, back, x->rank, x->dim);
	}
	return err ? err : from_logp(call, logp);
}
