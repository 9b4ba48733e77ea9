#include "graph/ids.h"

#include "graph/op.h"

/* Which operands hold ids, whether output 0 holds them again, and the operand whose extent 0 they index (or none: -1). */
static const struct reader { uint16_t op; uint8_t ids; int8_t table; bool passes; } readers[] = {
	{ HD_OP_EMBED,       0, 1,  false },
	{ HD_OP_MASK_TOKENS, 0, -1, true },
	{ HD_OP_RESHAPE,     0, -1, true },
	{ HD_OP_PERMUTE,     0, -1, true },
	{ HD_OP_EXPAND,      0, -1, true },
	{ HD_OP_SLICE,       0, -1, true },
	{ HD_OP_CONCAT,      0, -1, true },
	{ HD_OP_CONCAT,      1, -1, true },
	{ HD_OP_CAST,        0, -1, true },
};

static void read(const struct hd_graph *graph, uint32_t at, bool *holds, struct hd_ids *ids)
{
	const struct hd_node *node = &graph->node[at];

	for (size_t k = 0; k < sizeof readers / sizeof readers[0]; k++) {
		const struct reader *r = &readers[k];
		if (node->op != r->op || !holds[node->in[r->ids]])
			continue;
		int64_t rows = r->table < 0 ? 0 : graph->value[node->in[r->table]].dim[0];
		if (rows > 0 && (!ids->rows || rows < ids->rows))
			*ids = (struct hd_ids){ rows, at };
		holds[node->out] |= r->passes;
	}
}

enum hd_err hd_graph_ids(const struct hd_graph *graph, uint32_t value, struct hd_ids *ids, struct hd_diag *diag)
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
