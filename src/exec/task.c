#include "exec/task.h"

#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/model.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/text.h"

enum { HD_GRAPH_FILE_BYTES = 16 << 20 };

static enum hd_err build_builtin(const struct hd_job *job, struct hd_arena *arena, struct hd_graph *graph, const char *name,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	const struct hd_job_value *args = &job->value[HD_JOB_MODEL_ARGS];
	struct hd_model_arg arg[HD_MAX_ARGS];

	if (args->nargs > HD_MAX_ARGS)
		return hd_fail(diag, HD_E_INVAL, "%s:%u:%u: model.args has more than %d entries", job->file, args->line, args->column, HD_MAX_ARGS);
	for (uint32_t i = 0; i < args->nargs; i++)
		arg[i] = (struct hd_model_arg){ args->arg[i].name, args->arg[i].text };
	hd_graph_init(graph, arena);
	return hd_model_build(graph, name, arg, args->nargs, opts, diag);
}

static enum hd_err parse_file(struct hd_arena *arena, struct hd_graph *graph, const char *path, struct hd_fs *fs, struct hd_diag *diag)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(fs, path, arena, HD_GRAPH_FILE_BYTES, &bytes, &len, diag);

	hd_graph_init(graph, arena);
	return err ? err : hd_graph_parse(graph, path, (const char *)bytes, len, diag);
}

/* Labels per sample decide what "auto" counts: one label, the sample; a row of them, the tokens. */
static bool labels_are_tokens(const struct hd_graph *graph)
{
	uint32_t y = hd_graph_find_input(graph, "y");

	return y != HD_NONE && graph->value[graph->input[y]].rank > 1 && graph->value[graph->input[y]].dtype == HD_I32;
}

enum hd_err hd_task_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena, struct hd_graph *graph, struct hd_diag *diag)
{
	const char *use = hd_job_text(job, HD_JOB_MODEL), *norm = hd_job_text(job, HD_JOB_NORMALIZE);
	struct hd_model_opts opts = { .normalize = HD_NORMALIZE_SAMPLE };
	enum hd_err err;

	if (!strncmp(use, "graph:", 6))
		return parse_file(arena, graph, use + 6, fs, diag);
	if (strncmp(use, "builtin:", 8) != 0)
		return hd_fail(diag, HD_E_INVAL, "model.use is \"%s\": write builtin:NAME (see `heddle model ls`) or graph:FILE", use);
	if (!hd_loss_parse(hd_job_text(job, HD_JOB_LOSS), &opts.loss))
		return hd_fail(diag, HD_E_INVAL, "model.loss is \"%s\"; a built-in model takes cross-entropy or mse", hd_job_text(job, HD_JOB_LOSS));
	hd_normalize_parse(norm, &opts.normalize);
	err = build_builtin(job, arena, graph, use + 8, &opts, diag);
	if (!err && !strcmp(norm, "auto") && labels_are_tokens(graph)) {
		opts.normalize = HD_NORMALIZE_TOKEN;
		err = build_builtin(job, arena, graph, use + 8, &opts, diag);
	}
	return err;
}

/* The same parameters in the same order, so one layout serves both graphs. */
static void without_dropout(struct hd_graph *graph)
{
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (graph->node[i].op == HD_OP_DROPOUT)
			graph->node[i].attr.f[0] = 0;
}

static enum hd_err build_graphs(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	enum hd_err err = hd_task_graph(task->job, fs, &task->arena, &task->train, diag);

	if (!err)
		err = hd_graph_optimize(&task->train, task->job->per_vn, diag);
	if (!err && hd_graph_find_output(&task->train, "loss") == HD_NONE)
		err = hd_fail(diag, HD_E_INPUT, "the graph has no output \"loss\"; add `output loss %%N` with the sum of the losses in f64");
	if (!err && hd_graph_find_output(&task->train, "weight") == HD_NONE)
		err = hd_fail(diag, HD_E_INPUT, "the graph has no output \"weight\"; add `output weight %%N`, what the loss is divided by, in f64");
	if (!err)
		err = hd_graph_autodiff(&task->train, diag);
	if (!err)
		err = hd_task_graph(task->job, fs, &task->arena, &task->infer, diag);
	if (!err)
		err = hd_graph_optimize(&task->infer, task->job->per_vn, diag);
	if (!err)
		without_dropout(&task->infer);
	return err;
}

static enum hd_err open_data(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	const struct hd_graph *g = &task->train;
	uint32_t x = hd_graph_find_input(g, "x"), y = hd_graph_find_input(g, "y"), logits = hd_graph_find_output(g, "logits");
	struct hd_data_spec spec = {
		.kind = hd_job_text(job, HD_JOB_DATA_KIND),
		.path = job->value[HD_JOB_DATA_PATH].is_none ? NULL : hd_job_text(job, HD_JOB_DATA_PATH),
		.seed = (uint64_t)hd_job_int(job, HD_JOB_SEED),
		.train = job->value[HD_JOB_SPLIT].list[0], .valid = job->value[HD_JOB_SPLIT].list[1],
		.count = (uint64_t)hd_job_int(job, HD_JOB_DATA_COUNT),
	};

	if (x == HD_NONE)
		return hd_fail(diag, HD_E_INPUT, "the graph has no input \"x\"");
	const struct hd_value *v = &g->value[g->input[x]];
	spec.rank = (uint8_t)(v->rank - 1);
	memcpy(spec.dim, v->dim + 1, spec.rank * sizeof *spec.dim);
	if (v->dtype == HD_I32 && v->rank == 2)
		spec.context = (uint32_t)v->dim[1];
	if (logits != HD_NONE)
		spec.classes = (uint32_t)g->value[logits].dim[g->value[logits].rank - 1];
	spec.float_target = y != HD_NONE && g->value[g->input[y]].dtype == HD_F32;
	return hd_dataset_open(&task->data, &spec, fs, diag);
}

static void take_optim(struct hd_task *task)
{
	const struct hd_job *job = task->job;
	const double *betas = job->value[HD_JOB_BETAS].list;

	task->optim = (struct hd_optim){
		.kind = (uint32_t)hd_job_int(job, HD_JOB_OPTIM),
		.momentum = (float)hd_job_num(job, HD_JOB_MOMENTUM),
		.beta1 = (float)betas[0], .beta2 = (float)betas[1],
		.eps = (float)hd_job_num(job, HD_JOB_EPS),
		.weight_decay = (float)hd_job_num(job, HD_JOB_WEIGHT_DECAY),
	};
}

void hd_task_slice(const struct hd_task *task, uint64_t nrows, uint32_t vn, uint32_t slice, uint64_t *first, uint64_t *end)
{
	uint64_t q = (uint64_t)hd_job_int(task->job, HD_JOB_SLICES), per = (task->job->per_vn + q - 1) / q, at, stop;

	hd_vn_rows(task->job->per_vn, nrows, vn, &at, &stop);
	*first = at + slice * per < stop ? at + slice * per : stop;
	*end = *first + per < stop ? *first + per : stop;
}

static void note_rows(struct hd_task *task, uint64_t rows)
{
	uint32_t at = 0;

	while (at < task->nrows && task->rows[at] > rows)
		at++;
	if (rows == 0 || (at < task->nrows && task->rows[at] == rows) || task->nrows == HD_MAX_VARIANTS)
		return;
	memmove(task->rows + at + 1, task->rows + at, (task->nrows - at) * sizeof *task->rows);
	task->rows[at] = rows;
	task->nrows++;
}

/* A full step and the last of a data epoch are the only two lengths; each has at most two
 * sizes of virtual node and each of those at most two of slice. */
static void find_rows(struct hd_task *task)
{
	uint64_t steps = hd_sampler_steps(&task->sampler);
	uint64_t n[2] = { hd_sampler_rows(&task->sampler, 0), hd_sampler_rows(&task->sampler, steps - 1) };
	uint64_t first, end;

	for (int i = 0; i < 2; i++)
		for (uint32_t v = 0; v < task->job->nvns; v++)
			for (uint32_t q = 0; q < (uint32_t)hd_job_int(task->job, HD_JOB_SLICES); q++) {
				hd_task_slice(task, n[i], v, q, &first, &end);
				note_rows(task, end - first);
			}
}

static enum hd_err identify(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	struct hd_graph graph;
	struct hd_hasher hasher;
	struct hd_text text;

	task->job_hash = task->job->hash;
	if (strncmp(hd_job_text(task->job, HD_JOB_MODEL), "graph:", 6) != 0)
		return HD_OK;
	hd_text_init(&text, &task->arena);
	enum hd_err err = hd_task_graph(task->job, fs, &task->arena, &graph, diag);
	if (!err)
		err = hd_graph_print(&graph, &text, diag);
	if (err)
		return err;
	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, task->job->hash.byte, sizeof task->job->hash.byte);
	hd_hasher_add(&hasher, text.at, text.len);
	task->job_hash = hd_hasher_end(&hasher);
	return HD_OK;
}

static enum hd_err set_up(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	enum hd_err err = build_graphs(task, fs, diag);

	if (!err)
		err = identify(task, fs, diag);
	if (!err)
		err = hd_layout_make(&task->layout, &task->train, &task->arena, diag);
	if (!err)
		err = open_data(task, fs, diag);
	if (!err)
		err = hd_sampler_init(&task->sampler, (uint64_t)hd_job_int(job, HD_JOB_SEED), task->data->split[0].count, job->batch,
			(enum hd_order)hd_job_int(job, HD_JOB_ORDER), (enum hd_last)hd_job_int(job, HD_JOB_LAST), diag);
	if (err)
		return err;
	take_optim(task);
	find_rows(task);
	double steps = (double)hd_sampler_steps(&task->sampler) * hd_job_num(job, HD_JOB_EPOCHS);
	task->nsteps = job->value[HD_JOB_STEPS].is_none ? (uint64_t)steps + ((double)(uint64_t)steps < steps) : (uint64_t)hd_job_int(job, HD_JOB_STEPS);
	return HD_OK;
}

enum hd_err hd_task_create(struct hd_task **out, const struct hd_job *job, struct hd_fs *fs, struct hd_diag *diag)
{
	struct hd_task *task = hd_alloc(sizeof *task);
	enum hd_err err;

	if (!task)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	*task = (struct hd_task){ .job = job };
	hd_arena_init(&task->arena, 0);
	err = set_up(task, fs, diag);
	if (err)
		hd_task_destroy(task);
	else
		*out = task;
	return err;
}

void hd_task_destroy(struct hd_task *task)
{
	if (!task)
		return;
	hd_dataset_destroy(task->data);
	hd_arena_finish(&task->arena);
	hd_free(task);
}

/* Element e of tensor t: word e mod 4 of block (e/4, t, 0, 0); normals take words in pairs. */
static void init_tensor(const struct hd_param *param, uint32_t index, uint64_t key, float *at, uint64_t len)
{
	for (uint64_t e = 0; e < len; e += 4) {
		const uint32_t counter[4] = { (uint32_t)(e / 4), index, 0, 0 };
		struct hd_philox block = hd_philox(counter, key);
		float x[4] = { 0 };
		for (int k = 0; k < 4; k++)
			x[k] = hd_uniform(block.word[k]) * 2 - 1;
		if (param->init == HD_INIT_NORMAL) {
			hd_normal2(block.word[0], block.word[1], x);
			hd_normal2(block.word[2], block.word[3], x + 2);
		}
		for (uint64_t k = 0; k < 4 && e + k < len; k++)
			at[e + k] = param->init == HD_INIT_ZEROS ? 0 : param->init == HD_INIT_ONES ? 1 : x[k] * param->scale;
	}
}

void hd_task_init_params(const struct hd_task *task, float *params)
{
	uint64_t key = hd_philox_key((uint64_t)hd_job_int(task->job, HD_JOB_SEED), HD_RNG_INIT);

	for (uint32_t p = 0; p < task->train.nparams; p++)
		init_tensor(&task->train.param[p], p, key, params + task->layout.at[p], task->layout.len[p]);
}

double hd_task_flops(const struct hd_task *task)
{
	double flops = 0;

	for (uint32_t i = 0; i < task->train.nnodes; i++)
		flops += hd_ops[task->train.node[i].op].cost(&task->train, &task->train.node[i], task->job->batch).flops;
	return flops;
}
