#include "graph/tensor.h"

#include <string.h>

#include "graph/op.h"

static enum hd_err no_memory(const struct hd_graph *graph, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to share %u nodes out", graph->nnodes);
}

static bool is_view(const struct hd_node *node) { return hd_ops[node->op].class == HD_OP_VIEW; }

/* The lowest device that makes an operand; `none` where no node does. */
static uint8_t lowest(const struct hd_graph *graph, const uint8_t *device, const struct hd_node *node,
	uint8_t none)
{
	uint8_t low = UINT8_MAX;

	for (uint8_t k = 0; k < node->nin; k++) {
		const struct hd_value *v = &graph->value[node->in[k]];
		if (v->kind == HD_TEMP && device[v->node] < low)
			low = device[v->node];
	}
	return low == UINT8_MAX ? none : low;
}

uint32_t *hd_tensor_roots(const struct hd_graph *graph, struct hd_arena *arena)
{
	uint32_t *root = hd_arena_take(arena, (size_t)graph->nvalues + 1, sizeof *root);

	for (uint32_t v = 0; v < graph->nvalues && root; v++)
		root[v] = v;
	for (uint32_t i = 0; i < graph->nnodes && root; i++)
		if (is_view(&graph->node[i]))
			root[graph->node[i].out] = root[graph->node[i].in[0]];
	return root;
}

enum hd_err hd_tensor_place(uint8_t *device, const struct hd_graph *graph, uint32_t nshards, uint32_t t,
	struct hd_diag *diag)
{
	if (t == 0 || t > HD_MAX_TENSOR)
		return hd_fail(diag, HD_E_INVAL, "%u devices that share the ops of a rank: from 1 to %d", t,
			HD_MAX_TENSOR);
	if (nshards % t)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices share the ops of a rank, and the model is in %u shards (model.shards): "
			"take a number of devices that divides it", t, nshards);
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_node *node = &graph->node[i];
		const uint32_t shard = node->shard ? node->shard - 1u : 0;
		const uint8_t own = shard < nshards ? (uint8_t)((uint64_t)shard * t / nshards) : 0;
		device[i] = is_view(node) || !node->shard ? lowest(graph, device, node, own) : own;
	}
	return HD_OK;
}

/* ---- lists ---- */

struct tensor_building {
	const struct hd_graph *graph;
	const uint8_t *device;
	const uint32_t *order;
	uint32_t norder, t;
	const uint32_t *root;             /* [nvalues] what a view shows; else the value */
	uint32_t *place;                  /* [nnodes] in its device's list; HD_NONE: not in this order */
	/* [norder][t] nodes of each device that are done when this begins */
	uint32_t *known;
	bool *waits, *awaited;            /* [norder] the device waits before it; another one for it */
};

static const struct hd_node *node_at(const struct tensor_building *b, uint32_t i)
{
	return &b->graph->node[b->order[i]];
}

static uint32_t *known_at(const struct tensor_building *b, uint32_t i) { return b->known + (size_t)i * b->t; }

/* What the node at i reads, and where in the order that is made; HD_NONE: by no node of it. To wait for a
 * view would be to wait for more than for its bytes, and a device of another worker (spread.h) gets
 * bytes alone. */
static uint32_t made_at(const struct tensor_building *b, uint32_t i, uint8_t k, const uint32_t *at)
{
	const struct hd_value *v = &b->graph->value[b->root[node_at(b, i)->in[k]]];

	return v->kind == HD_TEMP ? at[v->node] : HD_NONE;
}

/* One walk: what a device knows when it begins a node is what it knew, and what the devices knew that it
 * waits for. */
static void find_waits(struct tensor_building *b, const uint32_t *at, uint32_t *now)
{
	uint32_t count[HD_MAX_TENSOR] = { 0 };

	for (uint32_t i = 0; i < b->norder; i++) {
		const uint8_t d = b->device[b->order[i]];
		uint32_t *knows = now + (size_t)d * b->t;
		for (uint8_t k = 0; k < node_at(b, i)->nin; k++) {
			const uint32_t m = made_at(b, i, k, at);
			const uint8_t from = m == HD_NONE ? d : b->device[b->order[m]];
			if (from == d || knows[from] > b->place[b->order[m]])
				continue;
			b->waits[i] = b->awaited[m] = true;
			for (uint32_t j = 0; j < b->t; j++)
				if (known_at(b, m)[j] > knows[j])
					knows[j] = known_at(b, m)[j];
			knows[from] = b->place[b->order[m]] + 1;
		}
		memcpy(known_at(b, i), knows, b->t * sizeof *knows);
		b->place[b->order[i]] = count[d]++;
		knows[d] = count[d];
	}
}

/* Rule 4. What a device knows of another one only grows along its list, and so do the nodes of that one: one
 * walk over both. */
static void find_until(const struct tensor_building *b, uint32_t *until, uint8_t of, uint8_t d)
{
	uint32_t k = 0, n = 0;

	for (uint32_t i = 0; i < b->norder; i++) {
		if (b->device[b->order[i]] != of)
			continue;
		for (; k < b->norder; k++) {
			if (b->device[b->order[k]] != d)
				continue;
			if (known_at(b, k)[of] > b->place[b->order[i]])
				break;
			n++;
		}
		until[(size_t)i * b->t + d] = n;
	}
}

/* A step ends before a wait, and behind what is awaited. */
static enum hd_err make_list(struct hd_tensor_list *list, const struct tensor_building *b, uint8_t d,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tensor_step *step = NULL;
	uint32_t n = 0;
	bool ends = true;

	for (uint32_t i = 0; i < b->norder; i++)
		n += b->device[b->order[i]] == d;
	*list = (struct hd_tensor_list){ .node = hd_arena_take(arena, (size_t)n + 1, sizeof *list->node),
		.step = hd_arena_take(arena, (size_t)n + 1, sizeof *list->step) };
	if (!list->node || !list->step)
		return no_memory(b->graph, diag);
	for (uint32_t i = 0; i < b->norder; i++) {
		if (b->device[b->order[i]] != d)
			continue;
		if (ends || b->waits[i]) {
			uint32_t *after = hd_arena_take(arena, b->t, sizeof *after);
			if (!after)
				return no_memory(b->graph, diag);
			memcpy(after, known_at(b, i), b->t * sizeof *after);
			after[d] = 0;
			step = &list->step[list->nsteps++];
			*step = (struct hd_tensor_step){ .from = list->n, .after = after };
		}
		list->node[list->n++] = b->order[i];
		step->to = list->n;
		ends = b->awaited[i];
	}
	return HD_OK;
}

enum hd_err hd_tensor_lists(struct hd_tensor_list *list, uint32_t *place, uint32_t *until,
	const struct hd_graph *graph, const uint8_t *device, uint32_t t, const uint32_t *order,
	uint32_t norder, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_arena scratch;
	enum hd_err err = HD_OK;

	hd_arena_init(&scratch, 0);
	struct tensor_building b = { .graph = graph, .device = device, .order = order, .norder = norder,
		.t = t, .place = hd_arena_take(&scratch, (size_t)graph->nnodes + 1, sizeof *b.place),
		.known = hd_arena_take(&scratch, (size_t)norder * t + 1, sizeof *b.known),
		.waits = hd_arena_take(&scratch, (size_t)norder + 1, sizeof *b.waits),
		.awaited = hd_arena_take(&scratch, (size_t)norder + 1, sizeof *b.awaited) };
	uint32_t *now = hd_arena_take(&scratch, (size_t)t * t, sizeof *now);
	uint32_t *at = hd_arena_take(&scratch, (size_t)graph->nnodes + 1, sizeof *at);
	b.root = hd_tensor_roots(graph, &scratch);
	if (!b.root || !b.place || !b.known || !b.waits || !b.awaited || !now || !at)
		err = no_memory(graph, diag);
	for (uint32_t i = 0; i < graph->nnodes && !err; i++)
		at[i] = HD_NONE;
	for (uint32_t i = 0; i < norder && !err; i++)
		at[order[i]] = i;
	if (!err)
		find_waits(&b, at, now);
	for (uint32_t k = 0; k < t * t && !err; k++)
		find_until(&b, until, (uint8_t)(k / t), (uint8_t)(k % t));
	for (uint32_t i = 0; i < norder && !err; i++)
		place[i] = b.place[order[i]];
	for (uint8_t d = 0; d < t && !err; d++)
		err = make_list(&list[d], &b, d, arena, diag);
	hd_arena_finish(&scratch);
	return err;
}
