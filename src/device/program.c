#include "device/program.h"

#include <string.h>

/* Debug builds check every plan by brute force. */
#ifdef HD_DEBUG
enum { VERIFY_PLANS = true };
#else
enum { VERIFY_PLANS = false };
#endif

static bool in_list(const struct hd_node *node, int list)
{
	switch ((enum hd_run_phase)list) {
	case HD_RUN_F: return node->phase == HD_PHASE_F;
	case HD_RUN_B: return node->phase != HD_PHASE_F;
	case HD_RUN_I: return node->phase == HD_PHASE_I;
	case HD_RUN_W: return node->phase == HD_PHASE_W;
	}
	return false;
}

static bool list_nodes(struct hd_program *program, const struct hd_graph *graph)
{
	for (int list = HD_RUN_F; list <= HD_RUN_W; list++) {
		program->order[list] = hd_arena_take(program->arena, graph->nnodes, sizeof(uint32_t));
		if (!program->order[list])
			return false;
		if (list != HD_RUN_F && !program->training)
			continue;
		for (uint32_t i = 0; i < graph->nnodes; i++)
			if (in_list(&graph->node[i], list))
				program->order[list][program->norder[list]++] = i;
	}
	return true;
}

static uint64_t line_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static bool rows_first(const struct hd_value *value)
{
	bool fixed = true;

	for (uint8_t d = 1; d < value->rank; d++)
		fixed &= value->dim[d] > 0;
	return value->rank && value->dim[0] < 0 && fixed;
}

static bool has_rows(const struct hd_value *value)
{
	bool fixed = true;

	for (uint8_t d = 0; d < value->rank; d++)
		fixed &= value->dim[d] > 0;
	return !fixed;
}

/* A view is what the value it shows is. A constant that is expanded over the rows has those of each part. */
static uint8_t kind_of_node(const struct hd_program *program, const struct hd_node *node,
	const struct hd_value *made)
{
	/* gradients are a part's own */
	bool shared = hd_ops[node->op].class != HD_OP_RANDOM && node->phase != HD_PHASE_W && !has_rows(made);

	if (hd_ops[node->op].class == HD_OP_VIEW)
		return program->kind[node->in[0]];
	for (uint8_t i = 0; i < node->nin; i++)
		shared &= program->kind[node->in[i]] == HD_KIND_SHARED;
	return shared ? HD_KIND_SHARED : rows_first(made) ? HD_KIND_ROWS : HD_KIND_PART;
}

static bool runs_together(const struct hd_program *program, const struct hd_graph *graph,
	const struct hd_node *node)
{
	bool together = true;

	for (uint8_t i = 0; i < node->nin; i++)
		together &= program->kind[node->in[i]] == HD_KIND_SHARED ||
			(program->kind[node->in[i]] == HD_KIND_ROWS &&
			rows_first(&graph->value[node->in[i]]));
	for (uint32_t v = node->out; v < node->out + node->nout; v++)
		together &= program->kind[v] == HD_KIND_ROWS && rows_first(&graph->value[v]);
	return together;
}

static void sort_values(struct hd_program *program, const struct hd_graph *graph)
{
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct hd_value *value = &graph->value[v];
		program->kind[v] = value->kind == HD_INPUT ?
			(rows_first(value) ? HD_KIND_ROWS : HD_KIND_PART) : HD_KIND_SHARED;
	}
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_node *node = &graph->node[i];
		for (uint32_t v = node->out; v < node->out + node->nout; v++)
			program->kind[v] = kind_of_node(program, node, &graph->value[v]);
		program->together[i] = runs_together(program, graph, node);
	}
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		uint64_t bytes = hd_value_bytes(&graph->value[v], program->part_rows);
		program->part_bytes[v] = program->kind[v] == HD_KIND_SHARED ? 0 :
			program->kind[v] == HD_KIND_ROWS ? bytes : line_up(bytes);
	}
	/* A view of a copied value has the steps of what it shows. */
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (hd_ops[graph->node[i].op].class == HD_OP_VIEW)
			program->part_bytes[graph->node[i].out] = program->part_bytes[graph->node[i].in[0]];
	/* A complete gradient is folded before that of the next part is made. */
	for (uint32_t g = 0; g < hd_graph_ngrads(graph) && program->training; g++) {
		uint32_t grad = hd_graph_grad(graph, g);
		if (grad != HD_NONE && hd_ops[graph->node[graph->value[grad].node].op].class != HD_OP_VIEW)
			program->part_bytes[grad] = 0;
	}
}

uint64_t hd_program_value_bytes(const struct hd_program *program, uint32_t v)
{
	uint64_t bytes = hd_value_bytes(&program->graph->value[v], program->part_rows);

	return program->part_bytes[v] ? program->part_bytes[v] * (program->max_parts - 1) + bytes : bytes;
}

/* How the nodes are shared out. */
struct tensor_ask {
	struct hd_program_tensor *to;
	struct hd_memplan_clocks clocks;
	const struct hd_program_group *group;     /* NULL: one for all */
};

/* What a group does not have takes no bytes of its arena. */
static bool is_had(const struct tensor_ask *ask, uint32_t value)
{
	const struct hd_program_group *of = ask ? ask->group : NULL;

	return !of || of->at->has[of->at->root[value]] >> of->group & 1;
}

static enum hd_err plan_memory(struct hd_program *program, const struct hd_graph *graph,
	const struct tensor_ask *ask, struct hd_diag *diag)
{
	uint32_t nf = program->norder[HD_RUN_F], nb = program->norder[HD_RUN_B];
	uint32_t *order = hd_arena_take(program->arena, (size_t)nf + nb, sizeof *order);

	uint64_t *bytes = hd_arena_take(program->arena, (size_t)graph->nvalues + 1, sizeof *bytes);

	if (!order || !bytes)
		return hd_fail(diag, HD_E_NOMEM, "order of %u nodes: out of memory", nf + nb);
	for (uint32_t v = 0; v < graph->nvalues; v++)
		bytes[v] = is_had(ask, v) ? hd_program_value_bytes(program, v) : 0;
	for (uint32_t i = 0; i < nf + nb; i++)
		order[i] = i < nf ? program->order[HD_RUN_F][i] : program->order[HD_RUN_B][i - nf];
	enum hd_err err = hd_memplan_make_tensor(&program->memory, graph, order, nf + nb, bytes,
		ask ? &ask->clocks : NULL, program->arena, diag);
	if (!err && VERIFY_PLANS)
		err = hd_memplan_verify(&program->memory, graph, order, nf + nb, bytes, diag);
	return err;
}

/* A view lies where the value it shows lies. */
static void locate(struct hd_program *program, const struct hd_graph *graph)
{
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct hd_value *value = &graph->value[v];
		struct hd_where *where = &program->where[v];

		switch ((enum hd_value_kind)value->kind) {
		case HD_TEMP:  *where = (struct hd_where){ HD_IN_ARENA, 0, program->memory.at[v] }; break;
		case HD_INPUT: *where = (struct hd_where){ HD_IN_INPUT, value->data, 0 }; break;
		case HD_PARAM: *where = (struct hd_where){ HD_IN_PARAMS, 0,
			program->layout->at[value->data] * sizeof(float) }; break;
		case HD_BUFFER: *where = (struct hd_where){ HD_IN_BUFFERS, 0,
			program->layout->buffer_at[value->data] * sizeof(float) }; break;
		case HD_CONST: *where = (struct hd_where){ HD_IN_CONSTS, 0, value->data }; break;
		}
	}
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (hd_ops[graph->node[i].op].class == HD_OP_VIEW)
			program->where[graph->node[i].out] = program->where[graph->node[i].in[0]];
}

/* Autodiff gives every parameter a value of its own, made by the backward pass; a graph
 * that came from elsewhere must do the same, or the fold would take a tensor twice or never. */
static enum hd_err find_gradients(struct hd_program *program, const struct hd_graph *graph,
	struct hd_diag *diag)
{
	for (uint32_t v = 0; v < graph->nvalues; v++)
		program->grad_of_value[v] = HD_NONE;
	for (uint32_t g = 0; g < hd_graph_ngrads(graph) && program->training; g++) {
		uint32_t grad = hd_graph_grad(graph, g);
		if (grad == HD_NONE)
			continue;
		if (graph->value[grad].kind != HD_TEMP || graph->node[graph->value[grad].node].phase ==
			HD_PHASE_F ||
		    program->grad_of_value[grad] != HD_NONE)
			return hd_fail(diag, HD_E_INVAL,
				"the gradient of %s is not a value of its own made by the backward pass",
				hd_graph_text_of(graph,
				graph->value[graph->param[hd_graph_grad_param(graph, g)].value].name));
		program->grad_of_value[grad] = g;
	}
	return HD_OK;
}

static struct hd_operand operand(const struct hd_value *value, uint64_t rows)
{
	struct hd_operand o = { .rank = value->rank, .dtype = value->dtype,
		.elems = hd_value_elems(value, rows) };

	for (uint8_t d = 0; d < value->rank; d++)
		o.dim[d] = hd_extent(value->dim[d], rows);
	return o;
}

struct hd_call hd_call_of(const struct hd_graph *graph, uint32_t inode, uint64_t rows)
{
	const struct hd_node *node = &graph->node[inode];
	struct hd_call call = { .op = node->op, .attr = node->attr, .nin = node->nin, .nout = node->nout };

	for (uint8_t k = 0; k < node->nin; k++)
		call.in[k] = operand(&graph->value[node->in[k]], rows);
	for (uint8_t k = 0; k < node->nout; k++)
		call.out[k] = operand(&graph->value[node->out + k], rows);
	return call;
}

static enum hd_err resolve(struct hd_program *program, const struct hd_graph *graph, uint32_t variant,
	struct hd_diag *diag)
{
	struct hd_call *calls = hd_arena_take(program->arena, graph->nnodes, sizeof *calls);
	uint64_t rows = program->rows[variant];

	if (!calls)
		return hd_fail(diag, HD_E_NOMEM, "operands of %u nodes for %llu rows: out of memory",
			graph->nnodes, (unsigned long long)rows);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		calls[i] = hd_call_of(graph, i, rows);
	program->calls[variant] = calls;
	return HD_OK;
}

static enum hd_err choose_variants(struct hd_program *program, const uint64_t *rows, uint32_t nrows,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < nrows; i++) {
		if (rows[i] == 0 || hd_program_variant(program, rows[i]) != HD_NONE)
			continue;
		if (program->nvariants == HD_MAX_VARIANTS)
			return hd_fail(diag, HD_E_INVAL,
				"more than %d different slice sizes: choose a batch that virtual nodes and "
				"slices divide more evenly",
				HD_MAX_VARIANTS);
		if (program->nvariants && rows[i] > program->rows[0])
			return hd_fail(diag, HD_E_BUG,
				"slice of %llu rows after one of %llu: the largest must come first",
				(unsigned long long)rows[i], (unsigned long long)program->rows[0]);
		program->rows[program->nvariants++] = rows[i];
	}
	if (!program->nvariants)
		return hd_fail(diag, HD_E_INVAL, "no slice has any rows: the batch is empty");
	return HD_OK;
}

static enum hd_err take_arrays(struct hd_program *made, const struct hd_graph *graph, struct hd_diag *diag)
{
	made->where = hd_arena_take(made->arena, graph->nvalues, sizeof *made->where);
	made->grad_of_value = hd_arena_take(made->arena, graph->nvalues, sizeof *made->grad_of_value);
	made->kind = hd_arena_take(made->arena, graph->nvalues, sizeof *made->kind);
	made->part_bytes = hd_arena_take(made->arena, graph->nvalues, sizeof *made->part_bytes);
	made->together = hd_arena_take(made->arena, graph->nnodes, sizeof *made->together);
	if (!made->where || !made->grad_of_value || !made->kind || !made->part_bytes || !made->together ||
		!list_nodes(made, graph))
		return hd_fail(diag, HD_E_NOMEM, "program of %u nodes: out of memory", graph->nnodes);
	return HD_OK;
}

static uint64_t largest_param(const struct hd_layout *layout)
{
	uint64_t most = 0;

	for (uint32_t p = 0; p < layout->nparams; p++)
		/* of a frozen one nothing is folded */
		if (layout->first_segment[p + 1] > layout->first_segment[p])
			most = layout->len[p] > most ? layout->len[p] : most;
	return (most + HD_FLAT_ALIGN_ELEMS - 1) / HD_FLAT_ALIGN_ELEMS * HD_FLAT_ALIGN_ELEMS;
}

enum hd_err hd_program_make(struct hd_program *program, const struct hd_graph *graph,
	const struct hd_layout *layout, bool training, const uint64_t *rows, uint32_t nrows,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return hd_program_make_waves(program, graph, layout, training, rows, nrows, 1, arena, diag);
}

/* One list of a phase, as it stands in an order of the memory plan from place `first` on; clocks go on. */
static enum hd_err share_list(struct tensor_ask *ask, const struct hd_program *program, int list,
	uint32_t first,
	uint32_t *clock, uint32_t *until, uint32_t *now, struct hd_diag *diag)
{
	const uint32_t t = ask->to->t, n = program->norder[list];
	const uint8_t *device = ask->clocks.device;

	clock += first;
	until += (size_t)first * t;
	enum hd_err err = hd_tensor_lists(ask->to->list[list], clock, until, program->graph, device, t,
		program->order[list], n, program->arena, diag);
	for (uint32_t i = 0; i < n && !err; i++) {
		clock[i] += now[device[program->order[list][i]]];
		for (uint32_t d = 0; d < t; d++)
			until[(size_t)i * t + d] += now[d];
	}
	for (uint32_t d = 0; d < t && !err; d++)
		now[d] += ask->to->list[list][d].n;
	return err;
}

/* Both orders of the memory plan: F and B; F, I and W. Each list runs by itself. */
static enum hd_err share_out(struct tensor_ask *ask, struct hd_program *program, struct hd_diag *diag)
{
	static const int lists[2][3] = { { HD_RUN_F, HD_RUN_B, -1 }, { HD_RUN_F, HD_RUN_I, HD_RUN_W } };
	const size_t n = program->graph->nnodes;
	enum hd_err err = HD_OK;

	for (int o = 0; o < 2 && !err; o++) {
		uint32_t now[HD_MAX_TENSOR] = { 0 }, first = 0;
		uint32_t *clock = hd_arena_take(program->arena, n + 1, sizeof *clock);
		uint32_t *until = hd_arena_take(program->arena, n * ask->to->t + 1, sizeof *until);
		if (!clock || !until)
			return hd_fail(diag, HD_E_NOMEM, "program of %u nodes: out of memory",
				program->graph->nnodes);
		for (int k = 0; k < 3 && lists[o][k] >= 0 && !err; first += program->norder[lists[o][k++]])
			err = share_list(ask, program, lists[o][k], first, clock, until, now, diag);
		ask->clocks.clock[o] = clock;
		ask->clocks.until[o] = until;
	}
	return err;
}

static enum hd_err make_program(struct hd_program *program, const struct hd_graph *graph,
	const struct hd_layout *layout, bool training, const uint64_t *rows, uint32_t nrows, uint32_t nparts,
	struct tensor_ask *tensor, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_program made = { .graph = graph, .layout = layout, .arena = arena, .training = training,
		.max_parts = nparts };
	enum hd_err err = choose_variants(&made, rows, nrows, diag);

	if (err)
		return err;
	if (nparts == 0 || nparts > HD_MAX_WAVE)
		return hd_fail(diag, HD_E_INVAL, "a wave has 1 to %d virtual nodes, not %u", HD_MAX_WAVE,
			nparts);
	made.part_rows = made.rows[0];
	err = take_arrays(&made, graph, diag);
	if (err)
		return err;
	sort_values(&made, graph);
	made.temp_elems = training ? largest_param(layout) : 0;
	if (tensor)
		err = share_out(tensor, &made, diag);
	err = err ? err : plan_memory(&made, graph, tensor, diag);
	for (uint32_t i = 0; i < made.nvariants && !err; i++)
		err = resolve(&made, graph, i, diag);
	if (!err)
		err = find_gradients(&made, graph, diag);
	if (err)
		return err;
	locate(&made, graph);
	*program = made;
	return HD_OK;
}

enum hd_err hd_program_make_waves(struct hd_program *program, const struct hd_graph *graph,
	const struct hd_layout *layout, bool training, const uint64_t *rows, uint32_t nrows, uint32_t nparts,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return make_program(program, graph, layout, training, rows, nrows, nparts, NULL, arena, diag);
}

/* The part of device j: the whole, but for what it runs. */
static enum hd_err make_part(struct hd_program_tensor *tensor, uint32_t j, const uint8_t *device,
	struct hd_diag *diag)
{
	struct hd_program *part = &tensor->part[j];
	const uint32_t n = tensor->whole.graph->nnodes;
	bool *runs = hd_arena_take(tensor->whole.arena, (size_t)n + 1, sizeof *runs);

	if (!runs)
		return hd_fail(diag, HD_E_NOMEM, "program of %u nodes: out of memory", n);
	for (uint32_t i = 0; i < n; i++)
		runs[i] = device[i] == j;
	*part = tensor->whole;
	part->runs = runs;
	for (int list = HD_RUN_F; list <= HD_RUN_W; list++) {
		part->order[list] = tensor->list[list][j].node;
		part->norder[list] = tensor->list[list][j].n;
	}
	return HD_OK;
}

enum hd_err hd_program_make_tensor(struct hd_program_tensor *tensor, const struct hd_graph *graph,
	const struct hd_layout *layout, const uint64_t *rows, uint32_t nrows, uint32_t nshards, uint32_t t,
	const struct hd_program_group *group, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_program_tensor made = { .t = t,
		.part = hd_arena_take(arena, (size_t)t + 1, sizeof *made.part) };
	uint8_t *device = hd_arena_take(arena, (size_t)graph->nnodes + 1, sizeof *device);
	struct tensor_ask ask = { .to = &made, .clocks = { .t = t, .device = device }, .group = group };
	bool there = made.part && device;

	for (int list = HD_RUN_F; list <= HD_RUN_W; list++)
		there &= (made.list[list] = hd_arena_take(arena, (size_t)t + 1, sizeof **made.list)) != NULL;
	enum hd_err err = there ? hd_tensor_place(device, graph, nshards, t, diag) :
		hd_fail(diag, HD_E_NOMEM, "program of %u nodes: out of memory", graph->nnodes);
	err = err ? err : make_program(&made.whole, graph, layout, true, rows, nrows, 1, t > 1 ? &ask : NULL,
		arena, diag);
	for (uint32_t j = 0; j < t && !err && t > 1; j++)
		err = make_part(&made, j, device, diag);
	if (!err && t == 1)
		made.part[0] = made.whole;
	for (int list = HD_RUN_F; list <= HD_RUN_W && !err && group && group->ngroups > 1; list++)
		err = hd_parcels_make(&made.parcels[list], graph, group->at, made.list[list], t,
			group->ngroups,
			arena, diag);
	if (!err)
		*tensor = made;
	return err;
}

uint32_t hd_program_variant(const struct hd_program *program, uint64_t rows)
{
	for (uint32_t i = 0; i < program->nvariants; i++)
		if (program->rows[i] == rows)
			return i;
	return HD_NONE;
}

/* Kernels take one pointer type for inputs and outputs and never write inputs: hence the casts. */
void *hd_program_value(const struct hd_program *program, const struct hd_bind *bind, uint32_t value)
{
	const struct hd_where *where = &program->where[value];

	switch ((enum hd_space)where->space) {
	case HD_IN_ARENA:  return where->at_bytes == UINT64_MAX ? NULL : bind->arena + where->at_bytes;
	case HD_IN_PARAMS: return (uint8_t *)(uintptr_t)bind->params + where->at_bytes;
	case HD_IN_INPUT:  return (uint8_t *)(uintptr_t)bind->input[where->index];
	case HD_IN_BUFFERS: return (uint8_t *)(uintptr_t)bind->buffers + where->at_bytes;
	case HD_IN_CONSTS: return (uint8_t *)(uintptr_t)program->graph->consts + where->at_bytes;
	}
	return NULL;
}

void hd_program_bind(const struct hd_program *program, uint32_t variant, uint32_t inode,
	const struct hd_bind *bind, struct hd_call *call)
{
	const struct hd_node *node = &program->graph->node[inode];
	int64_t leading = program->graph->value[node->out].rank ? program->graph->value[node->out].dim[0] : 1;

	*call = program->calls[variant][inode];
	for (uint8_t i = 0; i < node->nin; i++)
		call->in[i].at = hd_program_value(program, bind, node->in[i]);
	for (uint8_t i = 0; i < node->nout; i++)
		call->out[i].at = hd_program_value(program, bind, node->out + i);
	call->draw = bind->draw;
	call->draw.op = node->key;
	if (leading < 0)
		call->draw.row0 *= (uint64_t)-leading;
}

void *hd_program_part(const struct hd_program *program, const struct hd_bind *bind, uint32_t value,
	uint32_t ipart)
{
	uint8_t *first = hd_program_value(program, bind, value);

	return first ? first + program->part_bytes[value] * ipart : NULL;
}

void hd_program_bind_part(const struct hd_program *program, uint32_t variant, uint32_t inode, uint32_t ipart,
	const struct hd_bind *bind, struct hd_call *call)
{
	const struct hd_node *node = &program->graph->node[inode];

	hd_program_bind(program, variant, inode, bind, call);
	for (uint8_t i = 0; i < node->nin; i++)
		call->in[i].at = hd_program_part(program, bind, node->in[i], ipart);
	for (uint8_t i = 0; i < node->nout; i++)
		call->out[i].at = hd_program_part(program, bind, node->out + i, ipart);
	call->draw.vn = bind->part[ipart].vn;
}

static void extend(struct hd_operand *operand, uint32_t nparts)
{
	operand->dim[0] *= nparts;
	operand->elems *= nparts;
}

void hd_program_widen(const struct hd_program *program, uint32_t inode, uint32_t nparts, struct hd_call *call)
{
	const struct hd_node *node = &program->graph->node[inode];

	for (uint8_t i = 0; i < node->nin; i++)
		if (program->kind[node->in[i]] == HD_KIND_ROWS)
			extend(&call->in[i], nparts);
	for (uint8_t i = 0; i < node->nout; i++)
		extend(&call->out[i], nparts);
}

static bool operand_same(const struct hd_operand *a, const struct hd_operand *b)
{
	return a->rank == b->rank && a->dtype == b->dtype &&
		memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

bool hd_call_same(const struct hd_call *a, const struct hd_call *b)
{
	bool same = a->op == b->op && a->nin == b->nin && a->nout == b->nout &&
		memcmp(&a->attr, &b->attr, sizeof a->attr) == 0;

	for (uint8_t i = 0; same && i < a->nin; i++)
		same = operand_same(&a->in[i], &b->in[i]);
	for (uint8_t i = 0; same && i < a->nout; i++)
		same = operand_same(&a->out[i], &b->out[i]);
	return same;
}

struct hd_cost hd_program_cost(const struct hd_program *program, enum hd_run_phase phase, uint64_t rows)
{
	struct hd_cost sum = { 0, 0 };

	for (uint32_t i = 0; i < program->norder[phase]; i++) {
		const struct hd_node *node = &program->graph->node[program->order[phase][i]];
		struct hd_cost cost = hd_ops[node->op].cost(program->graph, node, rows);
		sum.flops += cost.flops;
		sum.bytes += cost.bytes;
	}
	return sum;
}
