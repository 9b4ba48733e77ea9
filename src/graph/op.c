#include "graph/op.h"

#include <math.h>
#include <string.h>

#include "graph/far_end.h"
#include "graph/op_batch_rules.h"
#include "graph/op_blocked_rules.h"
#include "graph/op_images_rules.h"
#include "graph/op_rules.h"
#include "graph/op_sequences_rules.h"
#include "graph/op_tensors_rules.h"

/* The rules of each line of op.h: shape, gradient, cost. NULL: what is not differentiated again. */
#define RULES_MATMUL          hd_shape_matmul, hd_grad_matmul, hd_cost_matmul
#define RULES_CONV2D          hd_shape_conv2d, hd_grad_conv2d, hd_cost_conv2d
#define RULES_CONV2D_DX       hd_shape_conv2d_dx, hd_grad_conv2d_dx, hd_cost_conv2d_dx
#define RULES_CONV2D_DW       hd_shape_conv2d_dw, NULL, hd_cost_conv2d_dw
#define RULES_ATTENTION       hd_shape_attention, hd_grad_attention, hd_cost_attention
#define RULES_ATTENTION_DX    hd_shape_attention_dx, NULL, hd_cost_attention_dx
#define RULES_RESHAPE         hd_shape_reshape, hd_grad_reshape, hd_cost_view
#define RULES_ADD             hd_shape_arith, hd_grad_add_op, hd_cost_elementwise
#define RULES_SUB             hd_shape_arith, hd_grad_sub, hd_cost_elementwise
#define RULES_MUL             hd_shape_arith, hd_grad_mul, hd_cost_elementwise
#define RULES_SCALE           hd_shape_scale, hd_grad_scale, hd_cost_elementwise
#define RULES_BIAS            hd_shape_bias, hd_grad_bias, hd_cost_elementwise
#define RULES_BIAS_ACT        hd_shape_bias_act, hd_grad_bias_act, hd_cost_elementwise
#define RULES_ACT             hd_shape_act, hd_grad_act, hd_cost_elementwise
#define RULES_ACT_DX          hd_shape_act_dx, NULL, hd_cost_elementwise
#define RULES_MAXPOOL2D       hd_shape_pool, hd_grad_pool, hd_cost_pool
#define RULES_MAXPOOL2D_DX    hd_shape_pool_dx, NULL, hd_cost_pool
#define RULES_EMBED           hd_shape_embed, hd_grad_embed, hd_cost_elementwise
#define RULES_EMBED_DW        hd_shape_embed_dw, NULL, hd_cost_elementwise
#define RULES_SUM_ROWS        hd_shape_sum_rows, NULL, hd_cost_elementwise
#define RULES_LAYERNORM       hd_shape_norm, hd_grad_norm, hd_cost_elementwise
#define RULES_ADD_LAYERNORM   hd_shape_add_norm, hd_grad_add_norm, hd_cost_elementwise
#define RULES_LAYERNORM_DX    hd_shape_norm_dx, NULL, hd_cost_elementwise
#define RULES_LAYERNORM_DG    hd_shape_norm_dg, NULL, hd_cost_elementwise
#define RULES_SOFTMAX_XENT    hd_shape_softmax_xent, hd_grad_softmax_xent, hd_cost_elementwise
#define RULES_SOFTMAX_XENT_DX hd_shape_softmax_xent_dx, NULL, hd_cost_elementwise
#define RULES_MSE             hd_shape_mse, hd_grad_mse, hd_cost_elementwise
#define RULES_MSE_DX          hd_shape_mse_dx, NULL, hd_cost_elementwise
#define RULES_SUM64           hd_shape_sum64, hd_grad_sum64, hd_cost_elementwise
#define RULES_COUNT64         hd_shape_count64, NULL, hd_cost_elementwise
#define RULES_DROPOUT         hd_shape_dropout, hd_grad_dropout, hd_cost_elementwise
#define RULES_DROPOUT_DX      hd_shape_dropout, NULL, hd_cost_elementwise

#define OP_RULES
#include "graph/ops.def"

const struct hd_op_row hd_ops[HD_NOPS] = {
#define X(id, text, nin, nout, class, attrs, about) \
	[HD_OP_##id] = { text, nin, nout, HD_OP_##class, attrs, about, RULES_##id },
	HD_OPS(X)
#undef X
#define OP(id, text, nin, nout, class, attrs, about, shape, grad, cost) \
	[HD_OP_##id] = { text, nin, nout, HD_OP_##class, attrs, about, shape, grad, cost },
#include "graph/ops.def"
};

bool hd_op_parse(const char *text, uint16_t *op)
{
	for (uint16_t i = 0; i < HD_NOPS; i++)
		if (strcmp(hd_ops[i].name, text) == 0) {
			*op = i;
			return true;
		}
	return false;
}

bool hd_attr_is_act(const struct hd_attr_name *name) { return strcmp(name->at, "act") == 0; }

bool hd_op_attr(uint16_t op, uint32_t i, struct hd_attr_name *name)
{
	const char *at = hd_ops[op].attrs;
	uint8_t slot[2] = { 0, 0 };

	for (;; i--) {
		at += strspn(at, " ");
		size_t len = strcspn(at, " ");
		bool is_float = len > 2 && memcmp(at, "f:", 2) == 0;
		if (len == 0)
			return false;
		if (i == 0) {
			*name = (struct hd_attr_name){ .is_float = is_float, .slot = slot[is_float] };
			size_t skip = is_float ? 2 : 0;
			len = len - skip < sizeof name->at ? len - skip : sizeof name->at - 1;
			memcpy(name->at, at + skip, len);
			return true;
		}
		slot[is_float]++;
		at += len;
	}
}

enum hd_err hd_op_attr_check(uint16_t op, const struct hd_attr *attr, struct hd_diag *diag)
{
	struct hd_attr_name name;
	uint32_t n[2] = { 0, 0 };

	for (uint32_t i = 0; hd_op_attr(op, i, &name); i++)
		n[name.is_float]++;
	for (uint32_t i = n[0]; i < sizeof attr->i / sizeof attr->i[0]; i++)
		if (attr->i[i] != 0)
			return hd_fail(diag, HD_E_INVAL, "%s: integer attribute %u is set but has no name",
				hd_ops[op].name, i);
	for (uint32_t i = 0; i < sizeof attr->f / sizeof attr->f[0]; i++)
		if (i < n[1] ? !isfinite(attr->f[i]) : attr->f[i] != 0.0f)
			return hd_fail(diag, HD_E_INVAL,
				"%s: float attribute %u is not finite or has no name", hd_ops[op].name, i);
	return HD_OK;
}

void hd_rule_set(struct hd_value *out, uint8_t rank, const int64_t *dim, enum hd_dtype dtype)
{
	out->rank = rank;
	out->dtype = (uint8_t)dtype;
	memcpy(out->dim, dim, rank * sizeof dim[0]);
}

void hd_rule_like(struct hd_value *out, const struct hd_value *value)
{
	hd_rule_set(out, value->rank, value->dim, (enum hd_dtype)value->dtype);
}

enum hd_err hd_rule_broken(const struct hd_graph *graph, const struct hd_node *node, const char *what,
	struct hd_diag *diag)
{
	char text[sizeof diag->text];
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < node->nin; i++) {
		struct hd_shape_text shape = hd_value_shape(hd_rule_in(graph, node, i));
		size_t more = strlen(shape.at);
		if (len + more + 3 > sizeof text)
			break;
		memcpy(text + len, i ? ", " : "", i ? 2 : 0);
		len += i ? 2 : 0;
		memcpy(text + len, shape.at, more + 1);
		len += more;
	}
	return hd_fail(diag, HD_E_INVAL, "%s: %s; operands are %s", hd_ops[node->op].name, what, text);
}

enum hd_err hd_rule_f32(const struct hd_graph *graph, const struct hd_node *node, unsigned but,
	struct hd_diag *diag)
{
	for (int i = 0; i < node->nin; i++)
		if (!(but >> i & 1) && hd_rule_in(graph, node, i)->dtype != HD_F32)
			return hd_rule_broken(graph, node, "an operand is not f32", diag);
	return HD_OK;
}

struct hd_node hd_rule_node(struct hd_autodiff *ad, uint32_t node) { return hd_grad_graph(ad)->node[node]; }

enum hd_err hd_rule_no_grad(struct hd_autodiff *ad, uint32_t node, int i, struct hd_diag *diag)
{
	struct hd_node n = hd_rule_node(ad, node);
	float seed;

	if (hd_grad_of(ad, n.out + (uint32_t)i) == HD_NONE &&
		!hd_grad_is_seed(ad, n.out + (uint32_t)i, &seed))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"node %u (%s): the loss depends on its output %d, which has no gradient",
		node, hd_ops[n.op].name, i);
}

static double operand_bytes(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	double bytes = 0;

	for (int i = 0; i < node->nin; i++)
		bytes += (double)hd_value_bytes(hd_rule_in(graph, node, i), rows);
	for (uint32_t i = 0; i < node->nout; i++)
		bytes += (double)hd_value_bytes(&graph->value[node->out + i], rows);
	return bytes;
}

struct hd_cost hd_cost_view(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	(void)graph, (void)node, (void)rows;
	return (struct hd_cost){ 0, 0 };
}

struct hd_cost hd_cost_elementwise(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows)
{
	double bytes = operand_bytes(graph, node, rows);

	return (struct hd_cost){ bytes / 4, bytes };
}
