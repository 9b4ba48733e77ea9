#include "device/device.h"

#include <string.h>

#include "device/program.h"
#include "device/single.h"

enum { SEED = 1 };

/* Everything of a call but its addresses and its key. Extents stay multiples of the rows where they are that:
 * an op may say the same of its result in an attribute. */
static enum hd_err question(struct hd_single *single, const struct hd_program *program, uint32_t variant,
	uint32_t inode, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_node *node = &program->graph->node[inode];
	struct hd_value in[HD_MAX_IN] = { 0 };

	for (uint8_t i = 0; i < node->nin; i++) {
		const struct hd_value *v = &program->graph->value[node->in[i]];
		in[i].rank = v->rank;
		in[i].dtype = v->dtype;
		memcpy(in[i].dim, v->dim, sizeof in[i].dim);
	}
	return hd_single_make(single, node->op, node->nin, in, &node->attr, &program->rows[variant], 1, arena,
		diag);
}

static uint64_t bytes_of(const struct hd_operand *o) { return o->elems *
	hd_dtype_bytes((enum hd_dtype)o->dtype); }

/* Bytes of one question live only while it is asked: a job's activations need not fit all at once. They are
 * the device's, which gives them back to the system: the heap would keep them, as much as the largest op,
 * for the whole run. */
static enum hd_err ask(struct hd_device *device, const struct hd_single *single, uint64_t rows,
	struct hd_hasher *hasher, struct hd_diag *diag)
{
	const struct hd_program *program = &single->program;
	const struct hd_call *call = &program->calls[0][0];
	void *in[HD_MAX_IN] = { 0 }, *arena = NULL;
	enum hd_err err = device->ops->take(device, program->memory.len_bytes, &arena, diag);

	for (uint8_t i = 0; i < call->nin && !err; i++)
		err = device->ops->take(device, bytes_of(&call->in[i]), &in[i], diag);
	for (uint8_t i = 0; i < call->nin && !err; i++)
		hd_single_fill(call, i, SEED, in[i]);
	if (!err)
		err = hd_single_run_at(device, single, rows, &(struct hd_draw){ .seed = SEED },
			(const void *const *)in, arena, diag);
	for (uint8_t i = 0; i < call->nout && !err; i++)
		hd_hasher_add(hasher, (uint8_t *)arena +
			program->where[single->graph.node[0].out + i].at_bytes, bytes_of(&call->out[i]));
	for (uint8_t i = 0; i < call->nin; i++)
		if (in[i])
			device->ops->give(device, in[i], bytes_of(&call->in[i]));
	if (arena)
		device->ops->give(device, arena, program->memory.len_bytes);
	return err;
}

static bool seen_before(const struct hd_program *program, uint32_t variant, uint32_t inode)
{
	const struct hd_call *call = &program->calls[variant][inode];

	for (uint32_t v = 0; v <= variant; v++)
		for (uint32_t i = 0; i < (v == variant ? inode : program->graph->nnodes); i++)
			if (hd_call_same(&program->calls[v][i], call))
				return true;
	return false;
}

/* On a device of its own with one thread: the caller's may be at work, and what is loaded
 * for questions goes with it. */
enum hd_err hd_device_fingerprint(struct hd_device *device, const struct hd_program *program,
	struct hd_hash *fingerprint, struct hd_diag *diag)
{
	struct hd_device_spec spec = { .nthreads = 1, .kernels = device->spec.kernels,
		.path = device->spec.path };
	struct hd_device *asked = NULL;
	struct hd_hasher hasher;
	struct hd_arena arena;
	enum hd_err err = hd_device_create(&asked, device->ops->name, &spec, diag);

	if (err)
		return err;
	hd_arena_init(&arena, 0);
	hd_hasher_init(&hasher);
	for (uint32_t v = 0; v < program->nvariants && !err; v++)
		for (uint32_t i = 0; i < program->graph->nnodes && !err; i++) {
			struct hd_single *single;
			if (hd_ops[program->graph->node[i].op].class == HD_OP_VIEW ||
				seen_before(program, v, i))
				continue;
			single = hd_arena_take(&arena, 1, sizeof *single);
			err = single ? question(single, program, v, i, &arena, diag) :
				hd_fail(diag, HD_E_NOMEM, "fingerprint of a program: out of memory");
			if (!err)
				err = ask(asked, single, program->rows[v], &hasher, diag);
		}
	hd_device_destroy(asked);
	hd_arena_finish(&arena);
	if (!err)
		*fingerprint = hd_hasher_end(&hasher);
	return err;
}
