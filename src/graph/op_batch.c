#include "graph/op_batch_rules.h"

enum { STATS = 3, SUMS = 2, BLOCK = 16 };

/* 0: x is not of that form. */
static int64_t channels_of(const struct hd_value *x, int32_t axis)
{
	int64_t c = 0;

	if (x->rank < 2)
		return 0;
	if (axis == -1)
		c = x->dim[x->rank - 1];
	else if (axis == 1)
		c = x->dim[1];
	else if (axis == BLOCK && x->rank == 5 && x->dim[4] == BLOCK && x->dim[1] <= HD_MAX_EXTENT / BLOCK)
		c = x->dim[1] * BLOCK;
	return c > 0 ? c : 0;
}

static bool is_vector(const struct hd_value *v, int64_t len) { return v->rank == 1 && v->dim[0] == len; }

static bool is_table(const struct hd_value *v, enum hd_dtype dtype, int64_t rows, int64_t c)
{
	return v->dtype == dtype && v->rank == 2 && v->dim[0] == rows && v->dim[1] == c;
}

static enum hd_err axis_broken(const struct hd_graph *graph, const struct hd_node *node, struct hd_diag *diag)
{
	return hd_rule_broken(graph, node,
		"axis is -1 (channels last), 1, or 16 (blocked images [N,C/16,H,W,16]), and the channels "
		"are fixed", diag);
}

/* x gamma beta running_mean running_var; `but` excuses operands from being f32. */
static enum hd_err norm_check(const struct hd_graph *graph, const struct hd_node *node, unsigned but,
	int64_t *c, struct hd_diag *diag)
{
	*c = channels_of(hd_rule_in(graph, node, 0), node->attr.i[0]);
	enum hd_err err = hd_rule_f32(graph, node, but, diag);

	if (err != HD_OK)
		return err;
	if (*c == 0)
		return axis_broken(graph, node, diag);
	if (!(node->attr.f[0] > 0.0f))
		return hd_rule_broken(graph, node, "eps is above 0", diag);
	for (int i = 1; i < 5; i++)
		if (!is_vector(hd_rule_in(graph, node, i), *c))
			return hd_rule_broken(graph, node,
				"gamma, beta and the running statistics have one element per channel", diag);
	return HD_OK;
}

enum hd_err hd_shape_batchnorm(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	int64_t c;
	enum hd_err err = norm_check(graph, node, 0, &c, diag);

	if (err == HD_OK && node->attr.i[1] != 0 && node->attr.i[1] != 1)
		err = hd_rule_broken(graph, node, "infer is 0 or 1", diag);
	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	hd_rule_set(&out[1], 2, (int64_t[]){ STATS, c }, HD_F32);
	hd_rule_set(&out[2], 2, (int64_t[]){ STATS, c }, HD_F64);
	return HD_OK;
}

enum hd_err hd_shape_batchnorm_moments(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t c = channels_of(hd_rule_in(graph, node, 0), node->attr.i[0]);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK && c == 0)
		err = axis_broken(graph, node, diag);
	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ STATS, c }, HD_F64);
	return err;
}

enum hd_err hd_shape_batchnorm_sync(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *v = hd_rule_in(graph, node, 0);
	int32_t how = node->attr.i[0];

	if (how < 0 || how > 1 || v->rank != 2 || !is_table(v, HD_F64, how ? STATS : SUMS, v->dim[1]) ||
		v->dim[1] <= 0)
		return hd_rule_broken(graph, node, "v is f64 [2,C] (how 0) or f64 [3,C] (how 1)", diag);
	hd_rule_like(out, v);
	return HD_OK;
}

enum hd_err hd_shape_batchnorm_apply(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t c;
	enum hd_err err = norm_check(graph, node, 1u << 5, &c, diag);

	if (err == HD_OK && !is_table(hd_rule_in(graph, node, 5), HD_F64, STATS, c))
		err = hd_rule_broken(graph, node, "moments are f64 [3,C]", diag);
	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	hd_rule_set(&out[1], 2, (int64_t[]){ STATS, c }, HD_F32);
	return HD_OK;
}

/* dy x .. stats; `istats` is the place of the latter, `but` excuses operands from being f32. */
static enum hd_err grad_check(const struct hd_graph *graph, const struct hd_node *node, int istats,
	unsigned but, int64_t *c, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 1);
	enum hd_err err = hd_rule_f32(graph, node, but, diag);

	if (err != HD_OK)
		return err;
	*c = channels_of(x, node->attr.i[0]);
	if (*c == 0)
		return axis_broken(graph, node, diag);
	if (!hd_dims_same(hd_rule_in(graph, node, 0), x) ||
		!is_table(hd_rule_in(graph, node, istats), HD_F32, STATS, *c))
		return hd_rule_broken(graph, node, "dy, x and stats are not those of one normalisation",
			diag);
	return HD_OK;
}

enum hd_err hd_shape_batchnorm_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t c;
	enum hd_err err = grad_check(graph, node, 3, 0, &c, diag);

	if (err == HD_OK && !is_vector(hd_rule_in(graph, node, 2), c))
		err = hd_rule_broken(graph, node, "gamma has one element per channel", diag);
	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 1));
	hd_rule_set(&out[1], 2, (int64_t[]){ SUMS, c }, HD_F64);
	return HD_OK;
}

enum hd_err hd_shape_batchnorm_apply_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t c;
	enum hd_err err = grad_check(graph, node, 3, 1u << 4, &c, diag);

	if (err == HD_OK && (!is_vector(hd_rule_in(graph, node, 2), c) ||
		!is_table(hd_rule_in(graph, node, 4), HD_F64, SUMS, c)))
		err = hd_rule_broken(graph, node, "gamma has one element per channel, sums are f64 [2,C]",
			diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 1));
	return err;
}

enum hd_err hd_shape_batchnorm_sums(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	int64_t c;
	enum hd_err err = grad_check(graph, node, 2, 0, &c, diag);

	if (err == HD_OK)
		hd_rule_set(out, 2, (int64_t[]){ SUMS, c }, HD_F64);
	return err;
}

enum hd_err hd_shape_batchnorm_dp(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	const struct hd_value *sums = hd_rule_in(graph, node, 0);

	if (sums->rank != 2 || !is_table(sums, HD_F64, SUMS, sums->dim[1]) || sums->dim[1] <= 0 ||
		node->attr.i[0] < 0 || node->attr.i[0] >= SUMS)
		return hd_rule_broken(graph, node, "sums are f64 [2,C], and row is 0 or 1", diag);
	hd_rule_set(out, 1, &sums->dim[1], HD_F32);
	return HD_OK;
}

static enum hd_err params_of(struct hd_autodiff *ad, uint32_t node, uint32_t sums, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = HD_OK;

	for (int i = 1; i <= 2 && err == HD_OK; i++)
		err = hd_grad_add(ad, node, n.in[i], HD_OP_BATCHNORM_DP, 1, &sums,
			&(struct hd_attr){ .i = { i == 1 } }, diag);
	return err;
}

/* One pass makes dx and the sums behind dgamma and dbeta; where dx is not wanted, the sums alone. */
static enum hd_err sums_of(struct hd_autodiff *ad, uint32_t node, uint32_t *sums, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr axis = { .i = { n.attr.i[0] } };
	uint32_t dy = hd_grad_of(ad, n.out), x = n.in[0], stats = n.out + 1;

	if (!hd_grad_wanted(ad, x))
		return hd_grad_aux(ad, node, HD_OP_BATCHNORM_SUMS, 3, (uint32_t[]){ dy, x, stats }, &axis,
			sums, diag);
	*sums = hd_grad_graph(ad)->nvalues + 1;
	return hd_grad_add(ad, node, x, HD_OP_BATCHNORM_DX, 4, (uint32_t[]){ dy, x, n.in[1], stats }, &axis,
		diag);
}

enum hd_err hd_grad_batchnorm(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	uint32_t sums = HD_NONE;
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_rule_no_grad(ad, node, 2, diag);
	if (err == HD_OK)
		err = sums_of(ad, node, &sums, diag);
	return err == HD_OK ? params_of(ad, node, sums, diag) : err;
}

/* A part's own sums make its share of dgamma and dbeta; dx needs those of all parts. */
enum hd_err hd_grad_batchnorm_apply(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	struct hd_attr axis = { .i = { n.attr.i[0] } };
	uint32_t dy = hd_grad_of(ad, n.out), x = n.in[0], stats = n.out + 1, sums = HD_NONE, all = HD_NONE;
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	if (err == HD_OK)
		err = hd_grad_aux(ad, node, HD_OP_BATCHNORM_SUMS, 3, (uint32_t[]){ dy, x, stats }, &axis,
			&sums, diag);
	if (err == HD_OK && hd_grad_wanted(ad, x))
		err = hd_grad_aux(ad, node, HD_OP_BATCHNORM_SYNC, 1, &sums, &(struct hd_attr){ .i = { 0 } },
			&all, diag);
	if (err == HD_OK && hd_grad_wanted(ad, x))
		err = hd_grad_add(ad, node, x, HD_OP_BATCHNORM_APPLY_DX, 5,
			(uint32_t[]){ dy, x, n.in[1], stats, all }, &axis, diag);
	return err == HD_OK ? params_of(ad, node, sums, diag) : err;
}
