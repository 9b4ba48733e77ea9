#include "device/single.h"

#include "base/philox.h"

enum hd_err hd_single_make(struct hd_single *single, uint16_t op, uint8_t nin, const struct hd_value *in,
	const struct hd_attr *attr, const uint64_t *rows, uint32_t nrows, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const char *const names[HD_MAX_IN] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	static const char *const outs[HD_MAX_OUT] = { "x", "y", "z", "w" };
	uint32_t operand[HD_MAX_IN], out;
	enum hd_err err = HD_OK;

	single->layout = (struct hd_layout){ 0 };        /* no parameters */
	hd_graph_init(&single->graph, arena);
	for (uint8_t i = 0; i < nin && !err; i++)
		err = hd_graph_input(&single->graph, names[i], (enum hd_dtype)in[i].dtype, in[i].rank,
			in[i].dim, &operand[i], diag);
	if (!err)
		err = hd_graph_node(&single->graph, op, nin, operand, attr, 0, &out, diag);
	for (uint8_t i = 0; !err && i < hd_ops[op].nout; i++)
		err = hd_graph_output(&single->graph, outs[i], out + i, diag);
	if (!err)
		err = hd_program_make(&single->program, &single->graph, &single->layout, false, rows, nrows,
			arena, diag);
	return err;
}

/* Tables are indexed by their rows, logits by their columns. */
static int64_t bound_of(const struct hd_call *call, uint8_t operand)
{
	if (call->in[operand].dtype == HD_F32)
		return 0;
	switch (call->op) {
	case HD_OP_GATHER:    return call->in[0].dim[call->attr.i[0]];
	case HD_OP_SCATTER_ADD: return call->in[2].dim[call->attr.i[0]];
	case HD_OP_ONE_HOT:   return call->attr.i[0];
	case HD_OP_WHERE:     return operand == 0 ? 2 : 100;
	case HD_OP_EMBED:    return call->in[1].dim[0];
	case HD_OP_EMBED_DW: return call->in[2].dim[0];
	case HD_OP_EXPERT_MATMUL: return call->in[2].dim[0];
	case HD_OP_EXPERT_DW: return call->in[3].dim[0];
	case HD_OP_MASK_TOKENS: return call->attr.i[1];
	/* ends of edges; of a softmax two vertices, so that there are runs */
	case HD_OP_EDGE_PAIR: return call->in[2 + operand].dim[0];
	case HD_OP_SPMM:      return call->in[2 + operand].dim[0];
	case HD_OP_EDGE_SUM:  return call->in[3 + operand].dim[0];
	case HD_OP_EDGE_DOT:  return call->in[3 - operand].dim[0];
	case HD_OP_EDGE_TOTAL: case HD_OP_EDGE_PEAKS: case HD_OP_EDGE_SOFTMAX_AT: return call->in[2].dim[0];
	case HD_OP_EDGE_SOFTMAX_SUMS: case HD_OP_EDGE_SOFTMAX_DX_AT: return call->in[3].dim[0];
	case HD_OP_EDGE_SOFTMAX: case HD_OP_EDGE_SOFTMAX_DX: return 2;
	default:             return hd_cols(&call->in[0]);
	}
}

static void put(enum hd_dtype dtype, void *at, uint64_t i, uint32_t word, int64_t bound)
{
	if (dtype == HD_F32)
		((float *)at)[i] = 2.0f * hd_uniform(word) - 1.0f;
	else if (dtype == HD_F64)
		((double *)at)[i] = 2.0 * (double)hd_uniform(word) - 1.0;
	else if (dtype == HD_I32)
		((int32_t *)at)[i] = bound ? (int32_t)(word % (uint64_t)bound) : 0;
	else if (dtype == HD_I64)
		((int64_t *)at)[i] = (int64_t)((uint64_t)word << 4) - ((int64_t)1 << 35);
	else
		((uint8_t *)at)[i] = (uint8_t)(word % (uint64_t)bound);
}

void hd_single_fill(const struct hd_call *call, uint8_t operand, uint64_t seed, void *at)
{
	const struct hd_operand *o = &call->in[operand];
	const int64_t bound = bound_of(call, operand);
	const uint64_t key = hd_philox_key(seed, HD_RNG_USER);

	for (uint64_t i = 0; i < o->elems; i += 4) {
		const uint32_t counter[4] = { (uint32_t)(i / 4), operand, 0, 0 };
		const struct hd_philox drawn = hd_philox(counter, key);
		for (uint64_t k = 0; k < 4 && i + k < o->elems; k++)
			put((enum hd_dtype)o->dtype, at, i + k, drawn.word[k], bound);
	}
}

static uint64_t bytes_of(const struct hd_operand *o) { return o->elems *
	hd_dtype_bytes((enum hd_dtype)o->dtype); }

enum hd_err hd_single_run_at(struct hd_device *device, const struct hd_single *single, uint64_t rows,
	const struct hd_draw *draw, const void *const *in, void *arena, struct hd_diag *diag)
{
	const struct hd_program *program = &single->program;
	const struct hd_bind bind = { .rows = rows, .draw = *draw, .input = in, .arena = arena };
	uint64_t token = 0;
	enum hd_err err = device->ops->load(device, program, diag);

	if (!err)
		err = device->ops->run(device, program, HD_RUN_F, &bind, &token, diag);
	return err ? err : device->ops->wait(device, token, diag);
}

enum hd_err hd_single_run(struct hd_device *device, const struct hd_single *single, uint64_t rows,
	const struct hd_draw *draw, const void *const *in, void *const *out, struct hd_diag *diag)
{
	const struct hd_program *program = &single->program;
	const struct hd_node *node = &single->graph.node[0];
	uint32_t variant = hd_program_variant(program, rows);
	void *operand[HD_MAX_IN] = { 0 }, *arena = NULL;
	uint64_t token = 0;

	if (variant == HD_NONE)
		return hd_fail(diag, HD_E_BUG, "single op: %llu rows were not prepared",
			(unsigned long long)rows);
	const struct hd_call *call = &program->calls[variant][0];
	enum hd_err err = device->ops->take(device, program->memory.len_bytes, &arena, diag);
	for (uint8_t i = 0; i < node->nin && !err; i++) {
		err = device->ops->take(device, bytes_of(&call->in[i]), &operand[i], diag);
		if (!err)
			err = device->ops->write(device, operand[i], in[i], bytes_of(&call->in[i]), &token);
	}
	for (uint8_t i = 0; i < node->nout && !err; i++) {
		uint8_t *to = (uint8_t *)arena + program->where[node->out + i].at_bytes;
		err = device->ops->write(device, to, out[i], bytes_of(&call->out[i]), &token);
	}
	if (!err)
		err = hd_single_run_at(device, single, rows, draw, (const void *const *)operand, arena, diag);
	for (uint8_t i = 0; i < node->nout && !err; i++)
		err = device->ops->read(device, out[i], (uint8_t *)arena +
			program->where[node->out + i].at_bytes, bytes_of(&call->out[i]), &token);
	if (!err)
		err = device->ops->wait(device, token, diag);
	for (uint8_t i = 0; i < node->nin; i++)
		if (operand[i])
			device->ops->give(device, operand[i], bytes_of(&call->in[i]));
	if (arena)
		device->ops->give(device, arena, program->memory.len_bytes);
	return err;
}
