/* op_tensors_rules.h -- rules of the lines of op_tensors.h (private to the room; their bodies: op_tensors.c,
 * op_broadcast.c). RULES_<OP>: shape, gradient, cost. NULL: what is not differentiated again. */
#ifndef HD_GRAPH_OP_TENSORS_RULES_H
#define HD_GRAPH_OP_TENSORS_RULES_H

#include "graph/op_rules.h"

/* op_broadcast.c: elementwise ops of broadcast operands. */
hd_shape_rule hd_shape_pair_f32, hd_shape_compare, hd_shape_where, hd_shape_expand;
hd_grad_rule hd_grad_div, hd_grad_maximum, hd_grad_minimum, hd_grad_where, hd_grad_expand;
/* The gradient of an operand that broadcasting repeats: what op(in) gives, summed to the shape of `value`. */
HD_MUST_USE enum hd_err hd_grad_add_summed(struct hd_autodiff *ad, uint32_t forward, uint32_t value,
	uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag);

/* A constant [1], to be broadcast. */
HD_MUST_USE enum hd_err hd_grad_scalar(struct hd_autodiff *ad, float at, uint32_t *out, struct hd_diag *diag);

/* The attribute `axis` is an extent of x, and if `fixed` one that does not grow with the rows. */
HD_MUST_USE enum hd_err hd_rule_axis(const struct hd_graph *graph, const struct hd_node *node,
	const struct hd_value *x, bool fixed, struct hd_diag *diag);
/* A reduced value with the extents that it lost, those in `axes`, as 1 again: broadcasts like `value`. */
HD_MUST_USE enum hd_err hd_grad_regrow(struct hd_autodiff *ad, uint32_t node, uint32_t value,
	uint32_t reduced, int32_t axes, uint32_t *out, struct hd_diag *diag);

/* op_tensors.c */
hd_shape_rule hd_shape_reduce, hd_shape_reduce_fixed, hd_shape_argmax, hd_shape_softmax,
	hd_shape_softmax_dx,
	hd_shape_permute, hd_shape_slice, hd_shape_slice_dx, hd_shape_concat, hd_shape_pad, hd_shape_gather,
	hd_shape_scatter_add,
	hd_shape_one_hot, hd_shape_cast, hd_shape_contract;
hd_grad_rule hd_grad_reduce_sum, hd_grad_reduce_mean, hd_grad_reduce_most, hd_grad_reduce_prod,
	hd_grad_softmax, hd_grad_log_softmax,
	hd_grad_permute, hd_grad_slice, hd_grad_concat, hd_grad_pad, hd_grad_gather, hd_grad_scatter_add,
	hd_grad_contract;
hd_cost_rule hd_cost_contract;

#define RULES_DIV             hd_shape_arith, hd_grad_div, hd_cost_elementwise
#define RULES_MAXIMUM         hd_shape_arith, hd_grad_maximum, hd_cost_elementwise
#define RULES_MINIMUM         hd_shape_arith, hd_grad_minimum, hd_cost_elementwise
#define RULES_LESS            hd_shape_compare, NULL, hd_cost_elementwise
#define RULES_LESS_EQ         hd_shape_compare, NULL, hd_cost_elementwise
#define RULES_EQUAL           hd_shape_compare, NULL, hd_cost_elementwise
#define RULES_WHERE           hd_shape_where, hd_grad_where, hd_cost_elementwise
#define RULES_EXPAND          hd_shape_expand, hd_grad_expand, hd_cost_elementwise
#define RULES_REDUCE_SUM      hd_shape_reduce, hd_grad_reduce_sum, hd_cost_elementwise
#define RULES_REDUCE_MEAN     hd_shape_reduce_fixed, hd_grad_reduce_mean, hd_cost_elementwise
#define RULES_REDUCE_MAX      hd_shape_reduce_fixed, hd_grad_reduce_most, hd_cost_elementwise
#define RULES_REDUCE_MIN      hd_shape_reduce_fixed, hd_grad_reduce_most, hd_cost_elementwise
#define RULES_REDUCE_PROD     hd_shape_reduce_fixed, hd_grad_reduce_prod, hd_cost_elementwise
#define RULES_ARGMAX          hd_shape_argmax, NULL, hd_cost_elementwise
#define RULES_SOFTMAX         hd_shape_softmax, hd_grad_softmax, hd_cost_elementwise
#define RULES_SOFTMAX_DX      hd_shape_softmax_dx, NULL, hd_cost_elementwise
#define RULES_LOG_SOFTMAX     hd_shape_softmax, hd_grad_log_softmax, hd_cost_elementwise
#define RULES_LOG_SOFTMAX_DX  hd_shape_softmax_dx, NULL, hd_cost_elementwise
#define RULES_PERMUTE         hd_shape_permute, hd_grad_permute, hd_cost_elementwise
#define RULES_SLICE           hd_shape_slice, hd_grad_slice, hd_cost_elementwise
#define RULES_SLICE_DX        hd_shape_slice_dx, NULL, hd_cost_elementwise
#define RULES_CONCAT          hd_shape_concat, hd_grad_concat, hd_cost_elementwise
#define RULES_PAD             hd_shape_pad, hd_grad_pad, hd_cost_elementwise
#define RULES_GATHER          hd_shape_gather, hd_grad_gather, hd_cost_elementwise
#define RULES_SCATTER_ADD     hd_shape_scatter_add, hd_grad_scatter_add, hd_cost_elementwise
#define RULES_ONE_HOT         hd_shape_one_hot, NULL, hd_cost_elementwise
#define RULES_CAST            hd_shape_cast, NULL, hd_cost_elementwise
#define RULES_CONTRACT        hd_shape_contract, hd_grad_contract, hd_cost_contract

#endif
