/* op_rules.h -- the rules of the op table, for the files that hold them (private to the room).
 *
 * Rules are grouped by class: op_dense.c, op_map.c, op_norm.c (norms, losses, sums).
 * op.c joins them to the lines of op.h.
 *
 * A shape rule reads the inputs and attributes and fills rank, dim and dtype of the
 * outputs; a gradient rule adds nodes through autodiff.h; a cost counts one call. */
#ifndef HD_GRAPH_OP_RULES_H
#define HD_GRAPH_OP_RULES_H

#include "graph/autodiff.h"
#include "graph/op.h"

typedef enum hd_err hd_shape_rule(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value *out, struct hd_diag *diag);
typedef enum hd_err hd_grad_rule(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag);
typedef struct hd_cost hd_cost_rule(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows);

/* What every op but the dense ones costs: a few operations per element, every operand moved once. */
hd_cost_rule hd_cost_elementwise, hd_cost_view;

/* op_dense.c */
hd_shape_rule hd_shape_matmul, hd_shape_conv2d, hd_shape_conv2d_dx, hd_shape_conv2d_dw, hd_shape_attention,
	hd_shape_attention_dx;
hd_grad_rule hd_grad_matmul, hd_grad_conv2d, hd_grad_conv2d_dx, hd_grad_attention;
hd_cost_rule hd_cost_matmul, hd_cost_conv2d, hd_cost_conv2d_dx, hd_cost_conv2d_dw, hd_cost_attention,
	hd_cost_attention_dx;

/* op_map.c */
hd_shape_rule hd_shape_reshape, hd_shape_pair, hd_shape_scale, hd_shape_bias, hd_shape_bias_act, hd_shape_act,
	hd_shape_act_dx, hd_shape_embed, hd_shape_embed_dw, hd_shape_dropout;
hd_grad_rule hd_grad_reshape, hd_grad_scale, hd_grad_bias, hd_grad_bias_act, hd_grad_act,
	hd_grad_maxpool2d, hd_grad_embed, hd_grad_dropout;

/* op_broadcast.c: those of add, sub and mul, and of what else broadcasts (op_tensors_rules.h) */
hd_shape_rule hd_shape_arith;
hd_grad_rule hd_grad_add_op, hd_grad_sub, hd_grad_mul;

/* op_norm.c */
hd_shape_rule hd_shape_sum_rows, hd_shape_norm, hd_shape_add_norm, hd_shape_norm_dx, hd_shape_norm_dg,
	hd_shape_softmax_xent, hd_shape_softmax_xent_dx, hd_shape_mse, hd_shape_mse_dx, hd_shape_sum64,
	hd_shape_count64;
hd_grad_rule hd_grad_norm, hd_grad_add_norm, hd_grad_softmax_xent, hd_grad_mse, hd_grad_sum64;

/* Helpers of shape rules. */
static inline const struct hd_value *hd_rule_in(const struct hd_graph *graph, const struct hd_node *node,
	int i)
{
	return &graph->value[node->in[i]];
}
/* same rank, dim, dtype */
void hd_rule_like(struct hd_value *out, const struct hd_value *value);
void hd_rule_set(struct hd_value *out, uint8_t rank, const int64_t *dim, enum hd_dtype dtype);
/* Refuses inputs whose dtype is not f32; bit i of `but` excuses input i. */
HD_MUST_USE enum hd_err hd_rule_f32(const struct hd_graph *graph, const struct hd_node *node, unsigned but,
	struct hd_diag *diag);
/* "matmul: <what>; a is f32 [..], b is f32 [..]" */
enum hd_err hd_rule_broken(const struct hd_graph *graph, const struct hd_node *node, const char *what,
	struct hd_diag *diag);

/* Helpers of gradient rules: the node by value, for the array moves when nodes are added. */
struct hd_node hd_rule_node(struct hd_autodiff *ad, uint32_t node);
/* Fails when a gradient arrives at output `i`, which has none (statistics, hits). */
HD_MUST_USE enum hd_err hd_rule_no_grad(struct hd_autodiff *ad, uint32_t node, int i, struct hd_diag *diag);
/* One loss op's gradient to `value`; the loss itself, output 0, must have arrived as a seed. */
HD_MUST_USE enum hd_err hd_rule_loss_grad(struct hd_autodiff *ad, uint32_t node, uint32_t value, uint16_t op,
	uint8_t nin, const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag);

#endif
