/* op_doc.h -- the op table for people: what a graph of one's own may be written with.
 *
 * Each op that a graph is written with has an example line over a few named values; its results are those
 * that the shape rules derive. docs/ops.md and `heddle model ops` are made of it, so both are true as long
 * as a test compares the document with it. Ops that only autodiff and passes make are named without one.
 *
 * Ownership: text lies in the arena of the text passed. Pure. */
#ifndef HD_GRAPH_OP_DOC_H
#define HD_GRAPH_OP_DOC_H

#include "base/text.h"
#include "graph/op.h"

/* The example of an op, NULL: it is made by autodiff or a pass alone. */
const char *hd_op_example(uint16_t op);
/* Graph text: the values that examples read. */
extern const char hd_op_leaves[];

/* The results of the example as text, "f32 [*,2], f32 [*]". */
HD_MUST_USE enum hd_err hd_op_example_results(uint16_t op, struct hd_arena *arena, struct hd_text *results,
	struct hd_diag *diag);

/* The sections of docs/ops.md between its marks: leaves, a table a class of op, activations, the rest. */
HD_MUST_USE enum hd_err hd_op_document(struct hd_arena *arena, struct hd_text *text, struct hd_diag *diag);
/* The same for a terminal. */
HD_MUST_USE enum hd_err hd_op_list(struct hd_arena *arena, struct hd_text *text, struct hd_diag *diag);

#endif
