/* domain.h -- of what each value of a graph network is: a row of it per vertex, per edge, or neither.
 *
 * Users: plan/separate.h, which cuts the network into phases; the verb that shows a model.
 *
 * 1. Inferred forward. Ops of edges (class graph, and edge_dropout) say which operands are of edges; an input
 *    that one of them reads as a list is of edges, each other input with rows is of vertices.
 * 2. All other ops keep the domain of their first operand of vertices or edges while the result has rows; a
 *    result without rows is a sum over them: a parameter's gradient (P) or a number of the run (S, f64 [1]).
 * 3. Refused with the op's name: values of vertices and of edges in one elementwise op, an op of edges whose
 *    operand is of the other kind.
 *
 * Pure. */
#ifndef HD_GRAPH_DOMAIN_H
#define HD_GRAPH_DOMAIN_H

#include "graph/ir.h"

/* CONST: made of constants alone, of no domain yet */
enum hd_domain { HD_DOMAIN_CONST, HD_DOMAIN_V, HD_DOMAIN_E, HD_DOMAIN_P, HD_DOMAIN_S };

/* Is it an op of edges? Then `operand` has a letter for each: 'f' the list of sources, 't' of targets, 'a'
 * a list
 * that says at which end, 'n' numbers of edges, 'F' and 'T' rows of vertices at these ends, 'A' at that
 * end, 'e' of
 * edges, 's' a shape; `result` V or E. */
struct hd_edge_op { const char *operand; enum hd_domain result; };
const struct hd_edge_op *hd_edge_op(uint16_t op);            /* NULL: it is none */

/* Does the graph have edges at all? */
bool hd_graph_has_edges(const struct hd_graph *graph);

/* domain[nvalues]. HD_E_INVAL: rule 3. */
HD_MUST_USE enum hd_err hd_graph_domains(const struct hd_graph *graph, uint8_t *domain, struct hd_diag *diag);

#endif
