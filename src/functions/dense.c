#include "functions/dense.h"

#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "graph/op.h"
#include "graph/text.h"

enum { ARENA_BYTES = 256 << 20, NAMES = 3 };

static const char *const names[NAMES] = { "avx512", "avx2", "portable" };

static enum hd_err make_device(const char *kernels, struct hd_device **device, struct hd_diag *diag)
{
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE, .path = kernels };

	for (size_t i = 0; i < NAMES; i++)
		if (!strcmp(names[i], kernels))
			return hd_device_create(device, "cpu", &spec, diag);
	return hd_fail(diag, HD_E_INVAL, "kernels %s: avx512, avx2 and portable are known", kernels);
}

enum hd_err hd_dense_has_kernels(const char *kernels, struct hd_diag *diag)
{
	struct hd_device *device = NULL;
	enum hd_err err = make_device(kernels, &device, diag);

	hd_device_destroy(device);
	return err;
}

static enum hd_err check(const struct hd_graph *g, struct hd_diag *diag)
{
	if (g->nparams || g->nbuffers || g->nrunning || !g->noutputs)
		return hd_fail(diag, HD_E_INPUT,
			"a dense task has inputs and outputs alone: no parameters, no buffers");
	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct hd_op_row *op = &hd_ops[g->node[i].op];
		if (op->class == HD_OP_GRAPH || g->node[i].phase != HD_PHASE_F)
			return hd_fail(diag, HD_E_INPUT,
				"a dense task has no op on edges, and one phase: %s is not of it",
				op->name);
	}
	return HD_OK;
}

struct hd_hash hd_dense_name(const struct hd_fn_work *work)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, &work->rows, sizeof work->rows);
	hd_hasher_add(&hasher, work->kernels, strlen(work->kernels) + 1);
	hd_hasher_add(&hasher, work->text, work->text_len);
	return hd_hasher_end(&hasher);
}

enum hd_err hd_dense_open(struct hd_dense *d, const struct hd_fn_work *work, struct hd_diag *diag)
{
	*d = (struct hd_dense){ .rows = work->rows, .name = hd_dense_name(work) };
	hd_arena_init(&d->arena, ARENA_BYTES);
	hd_graph_init(&d->graph, &d->arena);
	enum hd_err err = make_device(work->kernels, &d->device, diag);
	if (!err)
		err = hd_graph_parse(&d->graph, "the task", work->text, work->text_len, diag);
	if (!err)
		err = check(&d->graph, diag);
	if (!err)
		err = hd_program_make(&d->program, &d->graph, &d->layout, false, &d->rows, 1, &d->arena,
			diag);
	if (!err)
		err = d->device->ops->load(d->device, &d->program, diag);
	if (!err)
		err = d->device->ops->take(d->device, d->program.memory.len_bytes, &d->memory, diag);
	if (err)
		hd_dense_close(d);
	return err;
}

void hd_dense_close(struct hd_dense *d)
{
	if (d->memory)
		d->device->ops->give(d->device, d->memory, d->program.memory.len_bytes);
	hd_device_destroy(d->device);
	hd_arena_finish(&d->arena);
	*d = (struct hd_dense){ .rows = 0 };
}

static enum hd_err describe(const struct hd_dense *d, uint32_t value, const char *name, bool output,
	struct hd_fn_tensor *t, struct hd_diag *diag)
{
	const struct hd_value *v = &d->graph.value[value];

	if (!*name || strlen(name) >= sizeof t->name)
		return hd_fail(diag, HD_E_INPUT,
			"a tensor of a dense task has a name of at most %d characters",
			HD_FN_NAME - 1);
	*t = (struct hd_fn_tensor){ .is_output = output, .dtype = v->dtype, .rank = v->rank };
	memcpy(t->name, name, strlen(name) + 1);
	for (uint8_t i = 0; i < v->rank; i++)
		t->dim[i] = hd_extent(v->dim[i], d->rows);
	if (!hd_fn_tensor_bytes(t) || hd_fn_row_bytes(t) > HD_FN_DATA_BYTES)
		return hd_fail(diag, HD_E_INPUT, "%s: a row of it is larger than %d bytes, or it is", name,
			HD_FN_DATA_BYTES);
	return HD_OK;
}

enum hd_err hd_dense_tensors(const struct hd_dense *d, struct hd_fn_work *work, struct hd_diag *diag)
{
	const struct hd_graph *g = &d->graph;
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->ninputs && !err; i++)
		err = describe(d, g->input[i], hd_graph_text_of(g, g->value[g->input[i]].name), false,
			&work->tensor[n++], diag);
	for (uint32_t i = 0; i < g->noutputs && !err; i++)
		err = describe(d, g->output[i].value, hd_graph_text_of(g, g->output[i].name), true,
			&work->tensor[n++], diag);
	work->ntensors = n;
	return err;
}

static bool same(const struct hd_fn_tensor *a, const struct hd_fn_tensor *b)
{
	return !strcmp(a->name, b->name) && a->is_output == b->is_output && a->dtype == b->dtype &&
		a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim);
}

enum hd_err hd_dense_fits(const struct hd_dense *d, const struct hd_fn_work *work, struct hd_diag *diag)
{
	const struct hd_graph *g = &d->graph;
	bool fits = work->ntensors == g->ninputs + g->noutputs;

	for (uint32_t i = 0; i < work->ntensors && fits; i++) {
		struct hd_fn_tensor t;
		bool output = i >= g->ninputs;
		uint32_t k = output ? i - g->ninputs : i;
		uint32_t value = output ? g->output[k].value : g->input[k];
		uint32_t name = output ? g->output[k].name : g->value[value].name;
		fits = !describe(d, value, hd_graph_text_of(g, name), output, &t, NULL) && same(&t,
			&work->tensor[i]);
	}
	return fits ? HD_OK : hd_fail(diag, HD_E_INPUT, "tensors of the task are not those of its graph");
}

enum hd_err hd_dense_run(struct hd_dense *d, const struct hd_fn_work *work, void *const *at,
	struct hd_clock *clock, int64_t until_ns, struct hd_diag *diag)
{
	const struct hd_graph *g = &d->graph;
	struct hd_device *device = d->device;
	const void *input[HD_MAX_ENDS];
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < g->ninputs; i++)
		input[i] = at[i];
	struct hd_bind bind = { .rows = d->rows, .input = input, .arena = d->memory,
		.draw = { .seed = work->seed, .step = work->step, .vn = work->vn } };
	for (uint32_t i = 0; i < d->program.norder[HD_RUN_F] && !err; i++) {
		bind.from = i;
		bind.to = i + 1;
		err = device->ops->run(device, &d->program, HD_RUN_F, &bind, &token, diag);
		if (!err && hd_clock_now_ns(clock) >= until_ns)
			return hd_fail(diag, HD_E_AGAIN, "the time ran out after op %u of %u", i + 1,
				d->program.norder[HD_RUN_F]);
	}
	for (uint32_t i = 0; i < g->noutputs && !err; i++)
		err = device->ops->read(device, at[g->ninputs + i],
			hd_program_value(&d->program, &bind, g->output[i].value),
			hd_value_bytes(&g->value[g->output[i].value], d->rows), &token);
	return err ? err : device->ops->wait(device, token, diag);
}

struct hd_hash hd_dense_digest(const struct hd_fn_work *work, void *const *at)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < work->ntensors; i++)
		if (work->tensor[i].is_output)
			hd_hasher_add(&hasher, at[i], hd_fn_tensor_bytes(&work->tensor[i]));
	return hd_hasher_end(&hasher);
}

/* ---- the proof of kernels ---- */

/* Numbers from 1/4 to 5/4: no op makes no number of them. Of other types 0, which any op takes. */
static void draw(const struct hd_fn_tensor *t, uint32_t number, void *to)
{
	const uint64_t bytes = hd_fn_tensor_bytes(t), key = hd_philox_key(1, HD_RNG_USER);
	float *at = to;

	memset(to, 0, bytes);
	for (uint64_t i = 0; t->dtype == HD_F32 && i < bytes / sizeof *at; i++) {
		const uint32_t counter[4] = { (uint32_t)(i / 4), (uint32_t)(i >> 34), number, 2 };
		if (i % 4 == 0)
			for (uint64_t k = 0; k < 4 && i + k < bytes / sizeof *at; k++)
				at[i + k] = 0.25f + hd_uniform(hd_philox(counter, key).word[k]);
	}
}

static enum hd_err answer(struct hd_dense *d, struct hd_fn_work *few, struct hd_clock *clock,
	int64_t until_ns, struct hd_hash *proof, struct hd_diag *diag)
{
	void *at[HD_FN_TENSORS] = { NULL };

	enum hd_err err = hd_dense_tensors(d, few, diag);
	for (uint32_t i = 0; i < few->ntensors && !err; i++) {
		at[i] = hd_alloc(hd_fn_tensor_bytes(&few->tensor[i]));
		if (!at[i])
			err = hd_fail(diag, HD_E_NOMEM, "no memory for the proof of kernels");
		else if (!few->tensor[i].is_output)
			draw(&few->tensor[i], i, at[i]);
	}
	if (!err)
		err = hd_dense_run(d, few, at, clock, until_ns, diag);
	if (!err)
		*proof = hd_dense_digest(few, at);
	for (uint32_t i = 0; i < HD_FN_TENSORS; i++)
		hd_free(at[i]);
	return err;
}

/* A graph that few rows do not fit, by an extent that an op names, is asked with its own. */
enum hd_err hd_dense_proof(const struct hd_fn_work *work, struct hd_clock *clock, int64_t until_ns,
	struct hd_hash *proof, struct hd_diag *diag)
{
	struct hd_fn_work *few = hd_alloc(sizeof *few);
	struct hd_dense dense = { .rows = 0 };

	if (!few)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the proof of kernels");
	memcpy(few, work, sizeof *few);
	few->rows = HD_FN_PROOF_ROWS;
	few->seed = 1;
	few->step = few->vn = 0;
	enum hd_err err = hd_dense_open(&dense, few, diag);
	if (err && err != HD_E_NOMEM && work->rows != few->rows) {
		few->rows = work->rows;
		err = hd_dense_open(&dense, few, diag);
	}
	if (!err)
		err = answer(&dense, few, clock, until_ns, proof, diag);
	hd_dense_close(&dense);
	hd_free(few);
	return err;
}
