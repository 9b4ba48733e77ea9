/* owners.h -- what each initializer of a file is: a parameter, a constant, and whose.
 *
 * Exporters write one tensor where several are equal (all fresh biases are zeros), and
 * constants beside parameters. Left as it is, statistics of a norm would be trained,
 * norms would be tied to one another, constants would move.
 *
 * 1. PyTorch's newer exporter says in the file which initializers are parameters and, of each
 *    node, which it came from (metadata of the graph and of its nodes). Then that counts:
 *    a buffer or constant of the module is a constant; so is what the exporter computed;
 *    a node that reads an equal tensor in the place of its own gets a copy under its own name.
 *    A parameter that was computed into another tensor is that tensor, where the source
 *    is unambiguous; else the file is refused by its name.
 * 2. Without it an Identity of a tensor whose elements are all the same number is a tensor of
 *    its own (the older exporter writes these for equal ones; a tie of such a tensor is lost,
 *    ties of others stay). Where statistics and something else share such a tensor, the file
 *    was made smaller by value, and every node that reads such a tensor gets a copy.
 * 3. Statistics of a norm over the batch share a tensor of one number with nothing, ever.
 *
 * Private to graph/onnx. */
#ifndef HD_GRAPH_ONNX_OWNERS_H
#define HD_GRAPH_ONNX_OWNERS_H

#include "graph/onnx/import.h"

/* After all names are noted, before a node is looked at. */
HD_MUST_USE enum hd_err hd_onnx_owners(struct hd_importer *im, struct hd_diag *diag);

/* Input k of node `at` reads a copy from now on, called `name` if that is free. */
HD_MUST_USE enum hd_err hd_onnx_own(struct hd_importer *im, size_t at, size_t k, const char *name,
	struct hd_diag *diag);

/* signature.c: rule 1. *known: the file says it. */
HD_MUST_USE enum hd_err hd_onnx_signature(struct hd_importer *im, bool *known, struct hd_diag *diag);

/* What may be a parameter: an initializer of floats with extents. */
static inline bool hd_onnx_is_float_init(const struct hd_onnx_val *v)
{
	return v && v->kind == HD_VAL_INIT && v->rank && hd_onnx_type_is_float(v->type);
}

#endif
