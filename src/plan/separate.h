/* separate.h -- a graph network as phases: runs of work of one kind, that every interval goes through in
 * order.
 *
 * Graph work reads rows of far vertices, dense work a vertex's own; between them rows are sent to those
 * that read
 * them. A phase list says which nodes of the graph belong together, what is sent, and what is computed
 * again at the
 * other end of an edge because values of edges are never sent.
 *
 * Users: `heddle model show`; what trains a graph in several intervals.
 *
 * Kinds: GA, sums over edges that read far rows; AV, work on rows of vertices, products of them (gradients of
 * weights) with it; AE, work on rows of edges and their sums at the end where they are; SC, rows are sent;
 * WU, the
 * parameters are updated. A phase after the loss has a B behind its name; the one with the loss is AV^, its
 * own
 * gradient with it.
 *
 * 1. What is made of inputs alone without a sum over edges is made when a graph is bound: it is in no
 *    phase, and its
 *    rows are never sent.
 * 2. An item is a node of the graph at an end of the edges: an op of edges sees them by target (IN:
 *    in-edges of
 *    the interval) or by source (OUT). A value of edges made at one end and read at the other is an item
 *    there again;
 *    a softmax then reads, of each target, what edge_peaks or a sum has kept (KEPT), which is sent in place
 *    of it.
 * 3. Groups: items in the order in which the graph asks for them; each joins the newest group of its kind
 *    and end
 *    unless a path would leave that group and come back. Groups run in topological order, of two the one
 *    whose first
 *    item is lower.
 * 4. Refused with the op's name: norms over the vertices, other reads of what is summed over vertices or
 *    edges,
 *    lists of edges that are computed, draws on edges that are not keyed by their number.
 *
 * Ownership: all lies in the arena. Pure. */
#ifndef HD_PLAN_SEPARATE_H
#define HD_PLAN_SEPARATE_H

#include "base/text.h"
#include "graph/ir.h"

enum hd_phase_kind { HD_PHASE_GA, HD_PHASE_AV, HD_PHASE_AE, HD_PHASE_SC, HD_PHASE_WU };
enum hd_phase_end { HD_EDGES_NONE, HD_EDGES_IN, HD_EDGES_OUT };

/* SC: `value` is sent, or with `kept` what is kept per target of the node that makes it. Others: the node
 * that makes
 * `value`; `kept`: what is kept of it, `again`: not where it is made first. */
struct hd_phase_item { uint32_t value, group; uint8_t kind, end; bool kept, again; };

/* Its items are item[first .. first + n) of the list. */
struct hd_graph_phase { uint8_t kind, end; bool backward, loss; uint32_t first, n; };

struct hd_phase_list {
	struct hd_graph_phase *phase; uint32_t nphases;
	struct hd_phase_item *item; uint32_t nitems;
};

/* Of a graph with or without its gradient; with it WU is the last phase. */
HD_MUST_USE enum hd_err hd_separate(struct hd_phase_list *list, const struct hd_graph *graph,
	struct hd_arena *arena, struct hd_diag *diag);
/* "AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB WU"; AEB and GAB at the sources' end are
 * "AEB+GAB(out-edges)". */
void hd_phase_list_print(const struct hd_phase_list *list, struct hd_text *text);

#endif
