#include "graph/ids.h"

#include "graph/op.h"

/* Which extent of a table ids count. */
enum axis { NONE, FIRST, LAST, NAMED };                   /* NAMED: by attribute 0 */

/* Which operand holds ids, whether output 0 holds them again, and the table that they index. */
static const struct ids_reader { uint16_t op; uint8_t ids, table; enum axis axis; bool passes; } readers[] = {
	{ HD_OP_EMBED,        0, 1, FIRST, false },
	{ HD_OP_GATHER,       1, 0, NAMED, false },
	{ HD_OP_SCATTER_ADD,  1, 2, NAMED, false },
	{ HD_OP_SOFTMAX_XENT, 1, 0, LAST,  false },
	{ HD_OP_CLASS_XENT,   1, 0, LAST,  false },
	{ HD_OP_SPMM,         0, 2, FIRST, false },
	{ HD_OP_SPMM,         1, 3, FIRST, false },
	{ HD_OP_EDGE_PAIR,    0, 2, FIRST, false },
	{ HD_OP_EDGE_PAIR,    1, 3, FIRST, false },
	{ HD_OP_EDGE_TOTAL,   0, 2, FIRST, false },
	{ HD_OP_EDGE_SUM,     0, 3, FIRST, false },
	{ HD_OP_EDGE_SUM,     1, 4, FIRST, false },
	{ HD_OP_EDGE_DOT,     0, 3, FIRST, false },
	{ HD_OP_EDGE_DOT,     1, 2, FIRST, false },
	{ HD_OP_EXPERT_MATMUL, 1, 2, FIRST, false },
	{ HD_OP_MASK_TOKENS,  0, 0, NONE,  true },
	{ HD_OP_RESHAPE,      0, 0, NONE,  true },
	{ HD_OP_PERMUTE,      0, 0, NONE,  true },
	{ HD_OP_EXPAND,       0, 0, NONE,  true },
	{ HD_OP_SLICE,        0, 0, NONE,  true },
	{ HD_OP_CONCAT,       0, 0, NONE,  true },
	{ HD_OP_CONCAT,       1, 0, NONE,  true },
	{ HD_OP_CAST,         0, 0, NONE,  true },
	{ HD_OP_PAD,          0, 0, NONE,  true },
	{ HD_OP_WHERE,        1, 0, NONE,  true },
	{ HD_OP_WHERE,        2, 0, NONE,  true },
	{ HD_OP_MAXIMUM,      0, 0, NONE,  true },
	{ HD_OP_MAXIMUM,      1, 0, NONE,  true },
	{ HD_OP_MINIMUM,      0, 0, NONE,  true },
	{ HD_OP_MINIMUM,      1, 0, NONE,  true },
};

static int64_t rows_of(const struct hd_graph *graph, const struct hd_node *node, const struct ids_reader *r)
{
	const struct hd_value *table = &graph->value[node->in[r->table]];

	switch (r->axis) {
	case FIRST: return table->dim[0];
	case LAST:  return table->dim[table->rank - 1];
	case NAMED: return table->dim[node->attr.i[0] < 0 ? node->attr.i[0] + table->rank : node->attr.i[0]];
	case NONE:  break;
	}
	return 0;
}

static void read(const struct hd_graph *graph, uint32_t at, bool *holds, struct hd_ids *ids)
{
	const struct hd_node *node = &graph->node[at];

	for (size_t k = 0; k < sizeof readers / sizeof readers[0]; k++) {
		const struct ids_reader *r = &readers[k];
		if (node->op != r->op || !holds[node->in[r->ids]])
			continue;
		int64_t rows = rows_of(graph, node, r);
		if (rows > 0 && (!ids->rows || rows < ids->rows))
			*ids = (struct hd_ids){ rows, at };
		holds[node->out] |= r->passes;
	}
}

enum hd_err hd_graph_ids(const struct hd_graph *graph, uint32_t value, struct hd_ids *ids,
	struct hd_diag *diag)
{
	bool *holds = hd_arena_take(graph->arena, graph->nvalues, sizeof *holds);

	if (!holds)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a graph of %u values", graph->nvalues);
	*ids = (struct hd_ids){ .node = HD_NONE };
	holds[value] = true;
	for (uint32_t i = 0; i < graph->nnodes; i++)
		read(graph, i, holds, ids);
	return HD_OK;
}
