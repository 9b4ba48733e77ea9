/* op_images_rules.h -- rules of the lines of op_images.h and of the pools of the core (private to
 * the room; their bodies: op_images.c).
 * RULES_<OP>: shape, gradient, cost. NULL: what is not differentiated again. */
#ifndef HD_GRAPH_OP_IMAGES_RULES_H
#define HD_GRAPH_OP_IMAGES_RULES_H

#include "graph/op_rules.h"

#define RULES_AVGPOOL2D       hd_shape_pool, hd_grad_pool, hd_cost_pool
#define RULES_AVGPOOL2D_DX    hd_shape_pool_dx, NULL, hd_cost_pool
#define RULES_GROUPNORM       hd_shape_groupnorm, hd_grad_groupnorm, hd_cost_elementwise
#define RULES_GROUPNORM_DX    hd_shape_groupnorm_dx, NULL, hd_cost_elementwise
#define RULES_GROUPNORM_DG    hd_shape_groupnorm_dg, NULL, hd_cost_elementwise

hd_shape_rule hd_shape_pool, hd_shape_pool_dx, hd_shape_groupnorm, hd_shape_groupnorm_dx,
	hd_shape_groupnorm_dg;
hd_grad_rule hd_grad_pool, hd_grad_groupnorm;
hd_cost_rule hd_cost_pool;

#endif
