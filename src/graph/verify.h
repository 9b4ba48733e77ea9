/* verify.h -- the rules a graph keeps, checked.
 *
 * The parser runs it on what it has read and the pass runner after every pass; tests
 * run it on everything. A message names the node (or value) and the rule:
 *
 *	node 7 (matmul): operands come before their reader; operand 1 is made by node 9
 *
 * 1. values   dtype and extents exist; a value at the largest number of rows fits
 *             HD_MAX_VALUE_BYTES; inputs, parameters and constants lie where their
 *             index says; a parameter is f32 and fixed in size.
 * 2. makers   operands come before their reader; every temporary has one maker, and
 *             makers' outputs ascend.
 * 3. shapes   outputs are what the op's rule derives; attributes are in range.
 * 4. phases   F nodes first; gradient nodes name a forward node; an input gradient
 *             never reads a weight gradient, so "I, then W" is an order too.
 * 5. stages   never descend in F, never ascend in the gradient, and a gradient node has
 *             the stage of its forward node: a graph is cut between two nodes only.
 * 6. keys     forward random nodes have ascending keys, gradients that of their forward.
 * 7. ends     loss, weight and correct are f64 [1]; with a gradient every parameter has
 *             one of its shape, of phase W, shared with no other.
 *
 * HD_E_INVAL when a rule is broken. Pure; no memory. */
#ifndef HD_GRAPH_VERIFY_H
#define HD_GRAPH_VERIFY_H

#include "graph/ir.h"

#define HD_MAX_VALUE_BYTES ((uint64_t)1 << 46)

HD_MUST_USE enum hd_err hd_graph_verify(const struct hd_graph *graph, uint64_t rows, struct hd_diag *diag);

#endif
