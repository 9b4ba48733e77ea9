/* text.h -- a graph as text that a person can read, write and compare.
 *
 * Golden files, `heddle model show`, job files (`model.use: graph: FILE`) and messages
 * of reviewers use it. One statement per line, blanks separate, `#` begins a comment:
 *
 *	graph tiny
 *	input x f32 [*,4]                                  * is the rows, 3* three times the rows
 *	param w f32 [2,4] uniform 0.5                      zeros, ones, normal D, uniform BOUND
 *	buffer m f32 [2] zeros                             state that is not learned: zeros or ones
 *	const $0 f32 [2] 1 2
 *	%0 = matmul x w tb=1 : f32 [*,2]                   operands, attributes (integers only when not 0),
 *	                                                   shapes
 *	%1,%2,%3 = softmax_xent %0 y : f32 [*], f32 [*], f32 [*]
 *	%4 = dropout %0 p=0.1 key=0 stage=1 : f32 [*,2]    key and stage go with the attributes
 *	%9 = matmul %8 x ta=1 phase=W of=%0 : f32 [2,4]    gradient nodes: phase, and forward node by output
 *	output loss %6
 *	running m v %3 0.1                                 buffers m, v follow the moments %3, momentum 0.1
 *	grad w %9 %12                                      its parts, in the order in which they are added
 *
 * 1. Printing is canonical: graph, inputs, parameters, buffers, constants, nodes, outputs,
 *    running statistics, gradients; temporaries and constants numbered in order. What was printed parses
 *    to a graph that prints the same bytes.
 * 2. Parsing accepts any order in which names come before their use, any labels, and
 *    lines without shapes (they are derived; given ones must agree).
 * 3. What is parsed is verified (verify.h), for one row: the caller verifies for those it runs
 *    on. Errors are HD_E_INPUT and say file:line:column.
 *
 * No recursion; limits are those of ir.h and HD_MAX_GRAPH_TEXT. */
#ifndef HD_GRAPH_TEXT_H
#define HD_GRAPH_TEXT_H

#include "base/text.h"
#include "graph/ir.h"

enum { HD_MAX_GRAPH_TEXT = 1 << 26 };

HD_MUST_USE enum hd_err hd_graph_print(const struct hd_graph *graph, struct hd_text *text,
	struct hd_diag *diag);

/* Fills a graph made by hd_graph_init(); `file` is for messages. `text` need not end with 0. */
HD_MUST_USE enum hd_err hd_graph_parse(struct hd_graph *graph, const char *file, const char *text, size_t len,
	struct hd_diag *diag);

#endif
