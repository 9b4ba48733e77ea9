#include "device/grid_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

/* A view is what it is of. */
static uint32_t value_of(const struct hd_graph *graph, uint32_t value)
{
	while (graph->value[value].node != HD_NONE &&
		hd_ops[graph->node[graph->value[value].node].op].class == HD_OP_VIEW)
		value = graph->node[graph->value[value].node].in[0];
	return value;
}

/* Lists that a step computes may share their memory with others. */
static bool are_inputs(const struct hd_graph *graph, const struct hd_node *node, struct hd_edge_lists l)
{
	return graph->value[value_of(graph, node->in[l.ends])].kind == HD_INPUT &&
		(l.others < 0 || graph->value[value_of(graph, node->in[l.others])].kind == HD_INPUT);
}

static struct hd_grid_edges *find(const struct hd_grid_program *loaded, const struct hd_grid_edges *like)
{
	struct hd_grid_edges *e = loaded->edges;

	while (e && (e->ends != like->ends || e->variant != like->variant ||
		e->table.nrows != like->table.nrows || (e->others != like->others &&
		e->others != HD_NONE && like->others != HD_NONE) ||
		(e->table.has_others && like->table.has_others && e->table.nothers != like->table.nothers)))
		e = e->next;
	return e;
}

/* The table of a node, new or with the other list, which ops of one list have no use for. */
static enum hd_err add(struct hd_grid_program *loaded, const struct hd_grid_edges *like, struct hd_slot *slot,
	struct hd_diag *diag)
{
	struct hd_grid_edges *e = find(loaded, like);

	if (!e) {
		e = hd_alloc(sizeof *e);
		if (!e)
			return hd_fail(diag, HD_E_NOMEM, "edges of a graph: out of memory");
		*e = *like;
		e->next = loaded->edges;
		loaded->edges = e;
	} else if (like->table.has_others) {
		const uint32_t nblocks = e->table.nblocks;
		e->others = like->others;
		e->table = like->table;
		e->table.nblocks = nblocks > like->table.nblocks ? nblocks : like->table.nblocks;
	}
	slot->edges = &e->table;
	return HD_OK;
}

enum hd_err hd_grid_edges_take(const struct hd_grid *grid, struct hd_grid_program *loaded,
	struct hd_diag *diag)
{
	const struct hd_program *program = loaded->of;
	const struct hd_graph *graph = program->graph;
	enum hd_err err = HD_OK;

	for (uint32_t v = 0; v < program->nvariants && grid->kernels.edges; v++)
		for (uint32_t i = 0; i < graph->nnodes && !err; i++) {
			struct hd_slot *slot = &loaded->slot[(size_t)v * graph->nnodes + i];
			const struct hd_call *call = &program->calls[v][i];
			const struct hd_edge_lists l = hd_edge_lists(graph->node[i].op);
			if (!slot->row || l.ends < 0 || call->in[l.ends].elems > UINT32_MAX ||
				call->out[0].elems == 0 || !are_inputs(graph, &graph->node[i], l))
				continue;
			const uint64_t nrows = (uint64_t)call->out[0].dim[0], nedges = call->in[l.ends].elems,
				nothers = l.others < 0 ? 0 : (uint64_t)call->in[l.of].dim[0];
			err = add(loaded, &(struct hd_grid_edges){
				.ends = value_of(graph, graph->node[i].in[l.ends]), .variant = v,
				.others = l.others < 0 ? HD_NONE :
					value_of(graph, graph->node[i].in[l.others]),
				.table = { .nrows = nrows, .nedges = nedges, .nothers = nothers,
					.has_others = l.others >= 0, .nblocks = hd_edge_blocks(nothers,
					(uint64_t)hd_cols(&call->out[0]), nrows, nedges),
					.rows.kernels = grid->kernels.edges } }, slot, diag);
		}
	for (struct hd_grid_edges *e = loaded->edges; e && !err; e = e->next)
		err = hd_edge_table_take(&e->table, diag);
	return err;
}

void hd_grid_edges_free(struct hd_grid_program *loaded)
{
	while (loaded->edges) {
		struct hd_grid_edges *e = loaded->edges;
		loaded->edges = e->next;
		hd_edge_table_free(&e->table);
		hd_free(e);
	}
}

uint64_t hd_grid_edges_bytes(const struct hd_grid *grid)
{
	uint64_t bytes = 0;

	for (const struct hd_grid_program *p = grid->program; p; p = p->next)
		for (const struct hd_grid_edges *e = p->edges; e; e = e->next)
			bytes += hd_edge_table_bytes(&e->table);
	return bytes;
}

/* Inputs do not change while a run goes on. */
static uint64_t hash_of(const struct hd_operand *list, struct hd_grid_lists *lists)
{
	for (uint32_t i = 0; i < lists->n; i++)
		if (lists->list[i].at == list->at)
			return lists->list[i].hash;
	const uint64_t hash = hd_hash64(list->at, list->elems * sizeof(int32_t));
	if (lists->n < sizeof lists->list / sizeof *lists->list) {
		lists->list[lists->n].at = list->at;
		lists->list[lists->n++].hash = hash;
	}
	return hash;
}

void hd_grid_edges_bind(struct hd_edge_table *table, struct hd_call *call, struct hd_grid_lists *lists)
{
	const struct hd_edge_lists l = hd_edge_lists(call->op);
	const struct hd_operand *ends = &call->in[l.ends],
		*others = l.others < 0 ? NULL : &call->in[l.others];

	call->edges = hd_edge_table_rows(table, ends->at, hash_of(ends, lists), others ? others->at : NULL,
		others ? hash_of(others, lists) : 0);
}
