/* einsum.h -- sums of products in index notation, "bij,bjk->bik", made of the ops of op_tensors.h.
 *
 * For model builders and importers. One or two operands; a letter per extent; letters that the
 * result lacks are summed over. An equation becomes at most: a sum over what only one operand has,
 * a permute and a reshape per operand, one contract, a reshape and a permute of the result.
 *
 * 1. Letters are a-z and A-Z, spaces are ignored, "->" and the result are written out. Letters
 *    repeated in one operand (diagonals) and "..." are refused, as are extents that differ.
 * 2. An empty result is [1].
 * 3. The gradient is that of the parts. */
#ifndef HD_GRAPH_EINSUM_H
#define HD_GRAPH_EINSUM_H

#include "graph/ir.h"

HD_MUST_USE enum hd_err hd_graph_einsum(struct hd_graph *graph, const char *equation, uint8_t nin,
	const uint32_t *in,
	uint16_t stage, uint32_t *out, struct hd_diag *diag);

#endif
