/* autodiff.h -- adds the nodes that compute the gradient of every parameter.
 *
 * Reverse mode over the forward nodes, last to first. The seed is the sum of the
 * losses (unnormalised: virtual nodes are added before anything is divided), so
 * the gradient of the loss with respect to itself is 1 and never stored.
 *
 * 1. Gradients of inputs (phase I) and of weights (phase W) are separate nodes;
 *    the weight gradients of a node come right after its input gradient, so the
 *    fold can take each tensor as soon as it is complete.
 * 2. A value used several times receives the sum of its gradients in backward
 *    order (last use first), by ADD nodes.
 * 3. A *tied* parameter has a gradient part for each use instead, in backward order, and no node adds them
 *    (ir.h, 7): they may be made in different stages of a pipeline. A use is a forward node that reads the
 *    parameter. Tied is what 2 to HD_MAX_USES_APART nodes read, none of which only hands it on (a view, a
 *    slice: shards). A parameter that more nodes read (a cell unrolled in time) is as in 2, in phase W: each
 *    part takes as much memory as the parameter.
 * 4. Gradient nodes carry the stage of their forward node.
 * 5. Nothing is made that no parameter needs.
 *
 * On success graph->value[p].grad names the gradient (the first part) of every parameter p; a
 * parameter that the loss does not reach is an error that names it. */
#ifndef HD_GRAPH_AUTODIFF_H
#define HD_GRAPH_AUTODIFF_H

#include "graph/ir.h"

struct hd_autodiff;

HD_MUST_USE enum hd_err hd_graph_autodiff(struct hd_graph *graph, struct hd_diag *diag);

/* For the gradient rules of the op table: */
/* gradient of an output so far, HD_NONE: it is zero */
uint32_t hd_grad_of(struct hd_autodiff *ad, uint32_t value);
/* does a parameter lie behind it? */
bool hd_grad_wanted(const struct hd_autodiff *ad, uint32_t value);
struct hd_graph *hd_grad_graph(struct hd_autodiff *ad);
/* Appends one gradient node of `forward`, contributing to `value`; the phase is W when `value` is a
 * parameter. Does nothing when the gradient is not wanted. */
HD_MUST_USE enum hd_err hd_grad_add(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, struct hd_diag *diag);
/* The same, times `by` (a SCALE node more unless it is 1). */
HD_MUST_USE enum hd_err hd_grad_add_scaled(struct hd_autodiff *ad, uint32_t forward, uint32_t value,
	uint16_t op, uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, float by, struct hd_diag *diag);
/* A node that contributes to nothing by itself: other gradient nodes of `forward` read it. Phase I. */
HD_MUST_USE enum hd_err hd_grad_aux(struct hd_autodiff *ad, uint32_t forward, uint16_t op, uint8_t nin,
	const uint32_t *in,
	const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag);
/* The same for `value` alone, of its phase: one node of several that make a contribution to it. Its output
 * in *out, and nothing contributed yet. */
HD_MUST_USE enum hd_err hd_grad_make(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint16_t op,
	uint8_t nin,
	const uint32_t *in, const struct hd_attr *attr, uint32_t *out, struct hd_diag *diag);
/* Contributes what hd_grad_make() made for this value. */
HD_MUST_USE enum hd_err hd_grad_join(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t made,
	struct hd_diag *diag);
/* Like hd_grad_add without a node: the gradient of `value` is `grad` itself (sums pass it on unchanged). */
HD_MUST_USE enum hd_err hd_grad_pass(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t grad,
	struct hd_diag *diag);

/* Between the sum of the losses and the loss op every element has the same gradient: a number, not a
 * value. */
bool hd_grad_is_seed(const struct hd_autodiff *ad, uint32_t value, float *seed);
/* For rules that want a value: the gradient of an output, a seed written out (EXPAND of a constant). */
HD_MUST_USE enum hd_err hd_grad_full(struct hd_autodiff *ad, uint32_t forward, uint32_t value, uint32_t *grad,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_grad_seed(struct hd_autodiff *ad, uint32_t value, float seed,
	struct hd_diag *diag);

#endif
