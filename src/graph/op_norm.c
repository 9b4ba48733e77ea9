#include "graph/op_rules.h"

#include <string.h>

static void leading_of(struct hd_value *out, const struct hd_value *x)
{
	/* a value has one extent at least, so the loss of a plain vector of logits is [1] */
	if (x->rank == 1)
		hd_rule_set(out, 1, (int64_t[]){ 1 }, HD_F32);
	else
		hd_rule_set(out, (uint8_t)(x->rank - 1), x->dim, HD_F32);
}

enum hd_err hd_shape_sum_rows(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	int32_t axis = node->attr.i[0], keep = node->attr.i[1];
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (keep != 0) {
		if (axis != 0 || keep < 1 || keep >= x->rank)
			return hd_rule_broken(graph, node,
				"keep leaves at least one extent to sum over, and axis is then 0", diag);
		hd_rule_set(out, (uint8_t)keep, x->dim + (x->rank - keep), HD_F32);
		return HD_OK;
	}
	if ((axis != -1 && axis != 1) || x->rank < 2)
		return hd_rule_broken(graph, node, "axis is -1 or 1, and x has two extents or more", diag);
	hd_rule_set(out, 1, &x->dim[axis == 1 ? 1 : x->rank - 1], HD_F32);
	return HD_OK;
}

/* Normalisation over the last extent: of distances from the mean (layer norm), or of the values (root mean
 * square). What an op adds to the other lies in its kind; `nstats` numbers are kept of each row. */

struct norm_kind {
	uint8_t nstats;
	bool beta;
	uint16_t dx, dg;
	const char *vectors, *stats;      /* what is said of wrong ones */
};
static const struct norm_kind layer = { 2, true, HD_OP_LAYERNORM_DX, HD_OP_LAYERNORM_DG,
	"gamma and beta have not the last extent of x",
	"dy, x and stats are not those of one normalisation" };
static const struct norm_kind rms = { 1, false, HD_OP_RMSNORM_DX, HD_OP_RMSNORM_DG,
	"gamma has not the last extent of x",
	"dy, x and r are not those of one normalisation" };

static const struct norm_kind *kind_of(const struct hd_node *node)
{
	static const struct norm_kind *const of[HD_NOPS] = {
		[HD_OP_RMSNORM] = &rms, [HD_OP_ADD_RMSNORM] = &rms, [HD_OP_RMSNORM_DX] = &rms,
			[HD_OP_RMSNORM_DG] = &rms,
		[HD_OP_LAYERNORM] = &layer, [HD_OP_ADD_LAYERNORM] = &layer, [HD_OP_LAYERNORM_DX] = &layer,
		[HD_OP_LAYERNORM_DG] = &layer,
	};

	return of[node->op];
}

static bool is_vector(const struct hd_value *v, int64_t len) { return v->rank == 1 && v->dim[0] == len; }

static int64_t last_of(const struct hd_value *v) { return v->dim[v->rank - 1]; }

static void stats_of(struct hd_value *out, const struct hd_value *x, const struct norm_kind *kind)
{
	hd_rule_like(out, x);
	out->dim[x->rank - 1] = kind->nstats;
}

static enum hd_err norm_check(const struct hd_graph *graph, const struct hd_node *node,
	const struct norm_kind *kind, int igamma, struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	if (!(node->attr.f[0] > 0.0f))
		return hd_rule_broken(graph, node, "eps is above 0", diag);
	if (x->rank < 2 || last_of(x) < 0)
		return hd_rule_broken(graph, node, "x has two extents or more, and the last is fixed", diag);
	for (int i = igamma; i < igamma + 1 + kind->beta; i++)
		if (!is_vector(hd_rule_in(graph, node, i), last_of(x)))
			return hd_rule_broken(graph, node, kind->vectors, diag);
	return HD_OK;
}

enum hd_err hd_shape_norm(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct norm_kind *kind = kind_of(node);
	enum hd_err err = norm_check(graph, node, kind, 1, diag);

	if (err != HD_OK)
		return err;
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	stats_of(&out[1], hd_rule_in(graph, node, 0), kind);
	return HD_OK;
}

/* Of a sum, which is given out too. */
enum hd_err hd_shape_add_norm(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct norm_kind *kind = kind_of(node);
	enum hd_err err = norm_check(graph, node, kind, 2, diag);

	if (err != HD_OK)
		return err;
	if (!hd_dims_same(hd_rule_in(graph, node, 0), hd_rule_in(graph, node, 1)))
		return hd_rule_broken(graph, node, "a and b differ in shape", diag);
	hd_rule_like(&out[0], hd_rule_in(graph, node, 0));
	hd_rule_like(&out[1], hd_rule_in(graph, node, 0));
	stats_of(&out[2], hd_rule_in(graph, node, 0), kind);
	return HD_OK;
}

static enum hd_err norm_grad_check(const struct hd_graph *graph, const struct hd_node *node,
	const struct norm_kind *kind, int istats, struct hd_diag *diag)
{
	const struct hd_value *dy = hd_rule_in(graph, node, 0), *x = hd_rule_in(graph, node, 1);
	struct hd_value stats = *x;
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err != HD_OK)
		return err;
	stats_of(&stats, x, kind);
	if (x->rank < 2 || last_of(x) < 0 || !hd_dims_same(dy, x) ||
		!hd_dims_same(hd_rule_in(graph, node, istats), &stats))
		return hd_rule_broken(graph, node, kind->stats, diag);
	return HD_OK;
}

enum hd_err hd_shape_norm_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct norm_kind *kind = kind_of(node);
	const struct hd_value *x = hd_rule_in(graph, node, 1);
	enum hd_err err = norm_grad_check(graph, node, kind, 3, diag);

	if (err == HD_OK && !is_vector(hd_rule_in(graph, node, 2), last_of(x)))
		err = hd_rule_broken(graph, node, "gamma has not the last extent of x", diag);
	if (err == HD_OK)
		hd_rule_like(out, x);
	return err;
}

enum hd_err hd_shape_norm_dg(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct norm_kind *kind = kind_of(node);
	enum hd_err err = norm_grad_check(graph, node, kind, 2, diag);

	if (err == HD_OK)
		hd_rule_set(out, 1, (int64_t[]){ last_of(hd_rule_in(graph, node, 1)) }, HD_F32);
	return err;
}

/* gamma[0] is gamma, behind it beta. */
static enum hd_err norm_grad(struct hd_autodiff *ad, uint32_t node, const struct norm_kind *kind, uint32_t x,
	const uint32_t *gamma, uint32_t dy,
	uint32_t stats, struct hd_diag *diag)
{
	enum hd_err err = hd_grad_add(ad, node, x, kind->dx, 4, (uint32_t[]){ dy, x, gamma[0], stats }, NULL,
		diag);

	if (err == HD_OK)
		err = hd_grad_add(ad, node, gamma[0], kind->dg, 3, (uint32_t[]){ dy, x, stats }, NULL, diag);
	if (err == HD_OK && kind->beta)
		err = hd_grad_add(ad, node, gamma[1], HD_OP_SUM_ROWS, 1, &dy,
			&(struct hd_attr){ .i = { -1, 0 } }, diag);
	return err;
}

enum hd_err hd_grad_norm(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = hd_rule_no_grad(ad, node, 1, diag);

	return err == HD_OK ? norm_grad(ad, node, kind_of(&n), n.in[0], &n.in[1], hd_grad_of(ad, n.out),
		n.out + 1, diag) : err;
}

/* s may have readers of its own (the residual path); what they send back is there already. */
enum hd_err hd_grad_add_norm(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dy = hd_grad_of(ad, n.out), s = n.out + 1;
	enum hd_err err = hd_rule_no_grad(ad, node, 2, diag);

	if (err == HD_OK && dy != HD_NONE)
		err = norm_grad(ad, node, kind_of(&n), s, &n.in[2], dy, n.out + 2, diag);
	if (err == HD_OK)
		err = hd_grad_pass(ad, node, n.in[0], hd_grad_of(ad, s), diag);
	return err == HD_OK ? hd_grad_pass(ad, node, n.in[1], hd_grad_of(ad, s), diag) : err;
}

/* Losses. Their gradient is that of the sum of losses, times the seed that scales of the loss left. */

static enum hd_err xent_check(const struct hd_graph *graph, const struct hd_node *node, struct hd_diag *diag)
{
	const struct hd_value *logits = hd_rule_in(graph, node, 0), *labels = hd_rule_in(graph, node, 1);
	struct hd_value loss = { 0 };
	enum hd_err err = hd_rule_f32(graph, node, 2, diag);

	if (err != HD_OK)
		return err;
	leading_of(&loss, logits);
	if (labels->dtype != HD_I32 || last_of(logits) < 0 || !hd_dims_same(&loss, labels))
		return hd_rule_broken(graph, node, "labels are i32 with the leading extents of the logits",
			diag);
	return HD_OK;
}

enum hd_err hd_shape_softmax_xent(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = xent_check(graph, node, diag);

	for (int i = 0; i < 3 && err == HD_OK; i++)
		leading_of(&out[i], hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_shape_softmax_xent_dx(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag)
{
	enum hd_err err = xent_check(graph, node, diag);

	if (err == HD_OK && !hd_dims_same(hd_rule_in(graph, node, 1), hd_rule_in(graph, node, 2)))
		err = hd_rule_broken(graph, node, "lse has not the shape of the labels", diag);
	if (err == HD_OK)
		hd_rule_like(out, hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_rule_loss_grad(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	float seed;

	if (!hd_grad_is_seed(ad, n.out, &seed))
		return hd_fail(diag, HD_E_INVAL,
			"node %u (%s): its losses may only be scaled, added and summed on their way to the "
			"output loss",
			node, hd_ops[n.op].name);
	return hd_grad_add_scaled(ad, node, value, op, nin, in, attr, seed, diag);
}

/* What arrives at lse goes to the logits by their softmax. */
static enum hd_err lse_grad(struct hd_autodiff *ad, uint32_t node, uint32_t dlse, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	const struct hd_value *x = hd_rule_in(hd_grad_graph(ad), &n, 0);
	struct hd_attr column = { .i = { 0 } };
	uint32_t share;

	for (int d = 0; d < x->rank - 1; d++)
		column.i[d] = (int32_t)x->dim[d];
	column.i[x->rank - 1] = 1;
	enum hd_err err = hd_grad_make(ad, node, n.in[0], HD_OP_SOFTMAX, 1, n.in, NULL, &share, diag);
	if (err == HD_OK)
		err = hd_grad_make(ad, node, n.in[0], HD_OP_RESHAPE, 1, &dlse, &column, &dlse, diag);
	return err == HD_OK ? hd_grad_add(ad, node, n.in[0], HD_OP_MUL, 2, (uint32_t[]){ share, dlse }, NULL,
		diag) : err;
}

enum hd_err hd_grad_softmax_xent(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	uint32_t dlse = hd_grad_of(ad, n.out + 1);
	float seed;
	enum hd_err err = hd_rule_no_grad(ad, node, 2, diag);

	if (err == HD_OK && hd_grad_is_seed(ad, n.out + 1, &seed))
		err = hd_grad_full(ad, node, n.out + 1, &dlse, diag);
	if (err == HD_OK && dlse != HD_NONE && hd_grad_wanted(ad, n.in[0]))
		err = lse_grad(ad, node, dlse, diag);
	if (err != HD_OK || (dlse != HD_NONE && hd_grad_of(ad, n.out) == HD_NONE &&
		!hd_grad_is_seed(ad, n.out, &seed)))
		return err;
	return hd_rule_loss_grad(ad, node, n.in[0], HD_OP_SOFTMAX_XENT_DX, 3,
		(uint32_t[]){ n.in[0], n.in[1], n.out + 1 }, NULL, diag);
}

enum hd_err hd_shape_mse(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	struct hd_value both;
	enum hd_err err = hd_shape_pair(graph, node, &both, diag);

	if (err == HD_OK && (both.rank < 2 || last_of(&both) < 0))
		err = hd_rule_broken(graph, node,
			"the operands have two extents or more, and the last is fixed", diag);
	if (err == HD_OK)
		leading_of(out, hd_rule_in(graph, node, 0));
	return err;
}

enum hd_err hd_shape_mse_dx(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	return hd_shape_pair(graph, node, out, diag);
}

enum hd_err hd_grad_mse(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	enum hd_err err = hd_rule_loss_grad(ad, node, n.in[0], HD_OP_MSE_DX, 2, n.in, NULL, diag);

	return err == HD_OK ? hd_rule_loss_grad(ad, node, n.in[1], HD_OP_MSE_DX, 2,
		(uint32_t[]){ n.in[1], n.in[0] }, NULL, diag) : err;
}

/* Sums in f64. */

enum hd_err hd_shape_sum64(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	enum hd_err err = hd_rule_f32(graph, node, 0, diag);

	if (err == HD_OK)
		hd_rule_set(out, 1, (int64_t[]){ 1 }, HD_F64);
	return err;
}

enum hd_err hd_grad_sum64(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	float seed;

	if (!hd_grad_is_seed(ad, n.out, &seed))
		return hd_fail(diag, HD_E_INVAL, "node %u (sum64): only the output loss gives it a gradient",
			node);
	return hd_grad_seed(ad, n.in[0], seed, diag);
}

enum hd_err hd_shape_count64(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
	struct hd_diag *diag)
{
	const struct hd_value *x = hd_rule_in(graph, node, 0);

	if (x->dtype != HD_I32 && x->dtype != HD_F32)
		return hd_rule_broken(graph, node, "counts i32 labels, or the rows of f32 data", diag);
	hd_rule_set(out, 1, (int64_t[]){ 1 }, HD_F64);
	return HD_OK;
}
