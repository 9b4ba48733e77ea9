/* op_batch_rules.h -- rules of the lines of op_batch.h (private to the room; their bodies: op_batch.c).
 * RULES_<OP>: shape, gradient, cost. NULL: what is not differentiated again. */
#ifndef HD_GRAPH_OP_BATCH_RULES_H
#define HD_GRAPH_OP_BATCH_RULES_H

#include "graph/op_rules.h"

hd_shape_rule hd_shape_batchnorm, hd_shape_batchnorm_dx, hd_shape_batchnorm_sums, hd_shape_batchnorm_dp;
hd_shape_rule hd_shape_batchnorm_moments, hd_shape_batchnorm_sync, hd_shape_batchnorm_apply,
	hd_shape_batchnorm_apply_dx;
hd_grad_rule hd_grad_batchnorm, hd_grad_batchnorm_apply;

#define RULES_BATCHNORM      hd_shape_batchnorm, hd_grad_batchnorm, hd_cost_elementwise
#define RULES_BATCHNORM_DX   hd_shape_batchnorm_dx, NULL, hd_cost_elementwise
#define RULES_BATCHNORM_SUMS hd_shape_batchnorm_sums, NULL, hd_cost_elementwise
#define RULES_BATCHNORM_DP   hd_shape_batchnorm_dp, NULL, hd_cost_elementwise
#define RULES_BATCHNORM_MOMENTS  hd_shape_batchnorm_moments, NULL, hd_cost_elementwise
#define RULES_BATCHNORM_SYNC     hd_shape_batchnorm_sync, NULL, hd_cost_elementwise
#define RULES_BATCHNORM_APPLY    hd_shape_batchnorm_apply, hd_grad_batchnorm_apply, hd_cost_elementwise
#define RULES_BATCHNORM_APPLY_DX hd_shape_batchnorm_apply_dx, NULL, hd_cost_elementwise

#endif
