/* pattern.h -- ops that an exporter took apart, found again.
 *
 * Below opset 17 LayerNorm arrives as nine nodes, GELU as five always. A pattern is a table
 * of steps, its root first; a step names an op and its operands: another step, a tensor to
 * be captured, a number. It matches a subgraph only when
 *
 * 1. every step's node is that op (Add and Mul: operands in either order), a number is
 *    known and equal (to 1e-6 relative) or is captured, one captured tensor is one tensor;
 * 2. nothing outside reads what a node inside makes.
 *
 * Then the root stands for all of it and the nodes inside are left out.
 *
 * Private to graph/onnx. */
#ifndef HD_GRAPH_ONNX_PATTERN_H
#define HD_GRAPH_ONNX_PATTERN_H

#include "graph/onnx/import.h"

enum { HD_PATTERN_TENSORS = 3, HD_PATTERN_NUMBERS = 2, HD_PATTERN_STEPS = 12 };

struct hd_onnx_match {
	const struct hd_onnx_op *op;      /* at a root: what it became */
	bool inside;                      /* part of another node's pattern: left out */
	const char *in[HD_PATTERN_TENSORS];
	uint32_t nin;
	double number[HD_PATTERN_NUMBERS];
};

/* Fills im->match[]. */
void hd_onnx_patterns(struct hd_importer *im);

#endif
