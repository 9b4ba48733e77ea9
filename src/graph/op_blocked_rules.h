/* op_blocked_rules.h -- rules of the lines of op_blocked.h (private to the room; their bodies: op_blocked.c).
 * RULES_<OP>: shape, gradient, cost. NULL: what is not differentiated again. */
#ifndef HD_GRAPH_OP_BLOCKED_RULES_H
#define HD_GRAPH_OP_BLOCKED_RULES_H

#include "graph/op_rules.h"

hd_shape_rule hd_shape_block, hd_shape_unblock, hd_shape_conv2d_b, hd_shape_conv2d_b_dx, hd_shape_conv2d_b_dw;
hd_grad_rule hd_grad_block, hd_grad_unblock, hd_grad_conv2d_b;
hd_cost_rule hd_cost_conv2d_b, hd_cost_conv2d_b_dx, hd_cost_conv2d_b_dw;

#define RULES_BLOCK           hd_shape_block, hd_grad_block, hd_cost_elementwise
#define RULES_UNBLOCK         hd_shape_unblock, hd_grad_unblock, hd_cost_elementwise
#define RULES_CONV2D_B        hd_shape_conv2d_b, hd_grad_conv2d_b, hd_cost_conv2d_b
#define RULES_CONV2D_B_DX     hd_shape_conv2d_b_dx, NULL, hd_cost_conv2d_b_dx
#define RULES_CONV2D_B_DW     hd_shape_conv2d_b_dw, NULL, hd_cost_conv2d_b_dw

#endif
