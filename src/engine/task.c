#include "engine/task.h"

#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "base/le.h"
#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/ids.h"
#include "graph/intervals.h"
#include "graph/model.h"
#include "graph/names.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/shard.h"
#include "graph/text.h"
#include "data/graph_layout.h"
#include "data/blob.h"
#include "data/mix.h"
#include "data/named.h"
#include "checkpoint/onnx_model.h"
#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/fore.h"
#include "engine/stale.h"
#include "engine/stamps.h"

enum { HD_GRAPH_FILE_BYTES = 16 << 20 };

static enum hd_err build_builtin(const struct hd_job *job, struct hd_arena *arena, struct hd_graph *graph,
	const char *name,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	const struct hd_job_value *args = &job->value[HD_JOB_MODEL_ARGS];
	struct hd_model_arg arg[HD_MAX_ARGS];

	if (args->nargs > HD_MAX_ARGS)
		return hd_fail(diag, HD_E_INVAL, "%s:%u:%u: model.args has more than %d entries", job->file,
			args->line, args->column, HD_MAX_ARGS);
	for (uint32_t i = 0; i < args->nargs; i++)
		arg[i] = (struct hd_model_arg){ args->arg[i].name, args->arg[i].text };
	hd_graph_init(graph, arena);
	return hd_model_build(graph, name, arg, args->nargs, opts, diag);
}

static enum hd_err parse_file(struct hd_arena *arena, struct hd_graph *graph, const char *path,
	struct hd_fs *fs, struct hd_diag *diag)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(fs, path, arena, HD_GRAPH_FILE_BYTES, &bytes, &len, diag);

	hd_graph_init(graph, arena);
	err = err ? err : hd_graph_parse(graph, path, (const char *)bytes, len, diag);
	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		if (graph->param[p].slice.n > 1 || graph->param[p].slice.tensor != p)
			err = hd_fail(diag, HD_E_INPUT,
				"%s: '%s' is of a model that came in shards: give the model as it was "
				"before, and model.shards", path, hd_whole_name(graph, p));
	return err;
}

/* Labels per sample decide what "auto" counts: one label, the sample; a row of them, the tokens. */
static bool labels_are_tokens(const struct hd_graph *graph)
{
	uint32_t y = hd_graph_find_input(graph, "y");

	return y != HD_NONE && graph->value[graph->input[y]].rank > 1 &&
		graph->value[graph->input[y]].dtype == HD_I32;
}

static bool of_graphs(const struct hd_job *job)
{
	return !strcmp(hd_job_text(job, HD_JOB_DATA_KIND), "graph");
}

/* What the loss is divided by. Of a graph's vertices most have no label and weigh nothing, whatever the
 * model. */
static const char *normalize_of(const struct hd_job *job)
{
	const char *norm = hd_job_text(job, HD_JOB_NORMALIZE);

	return !strcmp(norm, "auto") && of_graphs(job) ? "token" : norm;
}

static enum hd_err check_normalize(const struct hd_job *job, struct hd_diag *diag)
{
	const struct hd_job_value *v = &job->value[HD_JOB_NORMALIZE];

	if (!of_graphs(job) || strcmp(normalize_of(job), "sample") != 0)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"%s:%u:%u: batch.normalize: sample divides the loss by all vertices of a graph, also those "
		"without a label: set it to token, or leave it out", job->file, v->line, v->column);
}

static const float *floats_of(const struct hd_job_value *v, struct hd_arena *arena)
{
	float *at = hd_arena_take(arena, v->nlist + 1, sizeof *at);

	for (uint32_t i = 0; i < v->nlist && at; i++)
		at[i] = (float)v->list[i];
	return at;
}

/* The table loss of a job. */
static enum hd_err loss_options(const struct hd_job *job, struct hd_arena *arena, struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	const struct hd_job_value *classes = &job->value[HD_JOB_CLASS_WEIGHTS],
		*pos = &job->value[HD_JOB_POS_WEIGHT];

	opts->smoothing = (float)hd_job_num(job, HD_JOB_SMOOTHING);
	opts->delta = (float)hd_job_num(job, HD_JOB_DELTA);
	opts->ignore = (int32_t)hd_job_int(job, HD_JOB_IGNORE);
	opts->ignores = opts->ignore != -1;
	opts->nclass_weights = classes->nlist;
	opts->npos_weights = pos->nlist;
	opts->class_weights = floats_of(classes, arena);
	opts->pos_weights = floats_of(pos, arena);
	struct hd_loss_term *term = hd_arena_take(arena, HD_MODEL_TERMS, sizeof *term);
	const struct hd_job_value *sum = &job->value[HD_JOB_SUM];
	for (; term && opts->nterms < sum->nterms; opts->nterms++) {
		const struct hd_job_term *t = &sum->term[opts->nterms];
		term[opts->nterms] = (struct hd_loss_term){ .weight = (float)t->weight,
			.smoothing = (float)t->smoothing, .delta = (float)t->delta, .of = t->of,
			.target = t->target };
		(void)hd_loss_parse(t->kind, &term[opts->nterms].loss);
	}
	opts->term = term;
	return term && opts->class_weights && opts->pos_weights ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for weights of classes");
}

/* With the weights of the file where they are asked for. */
static enum hd_err import_onnx(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_graph *graph,
	struct hd_weights **weights, struct hd_diag *diag)
{
	const char *norm = normalize_of(job);
	struct hd_model_opts loss = { .normalize = HD_NORMALIZE_SAMPLE };
	struct hd_onnx_opts opts = { .token_if_rows = !strcmp(norm, "auto") };

	if (hd_loss_parse(hd_job_text(job, HD_JOB_LOSS), &loss.loss))
		opts.loss = &loss;                        /* `none`: the file has a loss of its own */
	hd_normalize_parse(norm, &loss.normalize);
	enum hd_err err = loss_options(job, arena, &loss, diag);
	return err ? err : hd_onnx_model(fs, hd_job_text(job, HD_JOB_MODEL) + 5, &opts, arena, graph,
		weights, diag);
}

static bool is_onnx(const struct hd_job *job) { return !strncmp(hd_job_text(job, HD_JOB_MODEL), "onnx:", 5); }

static enum hd_err base_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_graph *graph, struct hd_diag *diag)
{
	const char *use = hd_job_text(job, HD_JOB_MODEL), *norm = normalize_of(job);
	struct hd_model_opts opts = { .normalize = HD_NORMALIZE_SAMPLE };
	enum hd_err err = check_normalize(job, diag);

	if (err)
		return err;
	if (!strncmp(use, "graph:", 6))
		return parse_file(arena, graph, use + 6, fs, diag);
	if (is_onnx(job))
		return import_onnx(job, fs, arena, graph, NULL, diag);
	if (strncmp(use, "builtin:", 8) != 0)
		return hd_fail(diag, HD_E_INVAL,
			"model.use is \"%s\": write builtin:NAME (see `heddle model ls`), graph:FILE or "
			"onnx:FILE", use);
	if (!hd_loss_parse(hd_job_text(job, HD_JOB_LOSS), &opts.loss))
		return hd_fail(diag, HD_E_INVAL,
			"model.loss is \"%s\"; a built-in model needs one, as cross-entropy or mse",
			hd_job_text(job, HD_JOB_LOSS));
	hd_normalize_parse(norm, &opts.normalize);
	err = loss_options(job, arena, &opts, diag);
	err = err ? err : build_builtin(job, arena, graph, use + 8, &opts, diag);
	if (!err && !strcmp(norm, "auto") && labels_are_tokens(graph)) {
		opts.normalize = HD_NORMALIZE_TOKEN;
		err = build_builtin(job, arena, graph, use + 8, &opts, diag);
	}
	return err;
}

/* The texts of a NAMES key; returns how many. */
static uint32_t names_of(const struct hd_job *job, enum hd_job_key key, const char *name[HD_JOB_MAX_NAMES])
{
	const struct hd_job_value *v = &job->value[key];
	uint32_t n = 0;

	for (; n < v->nargs && n < HD_JOB_MAX_NAMES; n++)
		name[n] = v->arg[n].text;
	return n;
}

bool hd_task_lora(const struct hd_job *job, struct hd_patterns *pattern, struct hd_lora *lora)
{
	int64_t rank = hd_job_int(job, HD_JOB_LORA_RANK);

	*lora = (struct hd_lora){
		.rank = (uint32_t)rank,
		.alpha = job->value[HD_JOB_LORA_ALPHA].is_auto ? (float)rank : (float)hd_job_num(job,
		HD_JOB_LORA_ALPHA),
		.target = pattern->target, .ntargets = names_of(job, HD_JOB_LORA_TARGETS, pattern->target),
		.train = pattern->train, .ntrain = names_of(job, HD_JOB_LORA_TRAIN, pattern->train),
		.ranks = pattern->ranks, .nranks = names_of(job, HD_JOB_LORA_RANKS, pattern->ranks),
		.alphas = pattern->alphas, .nalphas = names_of(job, HD_JOB_LORA_ALPHAS, pattern->alphas),
		.root = !strcmp(hd_job_text(job, HD_JOB_LORA_SCALE), "root"),
		.dropout = (float)hd_job_num(job, HD_JOB_LORA_DROPOUT),
	};
	return rank > 0;
}

enum hd_err hd_task_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_graph *graph, struct hd_diag *diag)
{
	const char *freeze[HD_JOB_MAX_NAMES];
	struct hd_patterns pattern;
	struct hd_lora lora;
	enum hd_err err = base_graph(job, fs, arena, graph, diag);

	if (!err)
		err = hd_graph_freeze(graph, freeze, names_of(job, HD_JOB_FREEZE, freeze), diag);
	if (!err && hd_task_lora(job, &pattern, &lora))
		err = hd_graph_lora(graph, &lora, diag);
	return err ? err : hd_param_rates_freeze(job, graph, diag);
}

enum hd_err hd_task_merge(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_state *state, struct hd_diag *diag)
{
	struct hd_patterns pattern;
	struct hd_graph graph;
	struct hd_lora lora;

	if (!hd_lora_any(state))
		return HD_OK;
	if (!hd_task_lora(job, &pattern, &lora))
		return hd_fail(diag, HD_E_INTEGRITY,
			"it has adapters, its job has none: another job's checkpoint?");
	enum hd_err err = hd_task_graph(job, fs, arena, &graph, diag);
	return err ? err : hd_lora_merge(state, &graph, &lora, diag);
}

/* The same parameters in the same order, so one layout serves both graphs. */
static void for_inference(struct hd_graph *graph)
{
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		if (graph->node[i].op == HD_OP_DROPOUT || graph->node[i].op == HD_OP_EDGE_DROPOUT)
			graph->node[i].attr.f[0] = 0;
		if (graph->node[i].op == HD_OP_BATCHNORM)
			graph->node[i].attr.i[1] = 1;
	}
}

static enum hd_err globalize(const struct hd_job *job, struct hd_graph *graph, struct hd_diag *diag)
{
	const struct hd_job_value *bn = &job->value[HD_JOB_BN];

	if (hd_job_int(job, HD_JOB_SLICES) > 1)
		return hd_fail(diag, HD_E_INVAL,
			"%s:%u:%u: model.bn: global keeps the activations of all virtual nodes, so "
			"batch.slices saves nothing; "
			"remove batch.slices, or use bn: ghost", job->file, bn->line, bn->column);
	return hd_graph_globalize(graph, diag);
}

enum hd_err hd_task_shard(const struct hd_job *job, struct hd_graph *graph, struct hd_diag *diag)
{
	const struct hd_job_value *shards = &job->value[HD_JOB_SHARDS];
	struct hd_diag why = { "" };
	enum hd_err err = hd_graph_shard(graph, (uint32_t)shards->i,
		hd_job_int(job, HD_JOB_SEQUENCE_SHARDS) > 0, &why);

	if (err && shards->line)
		return hd_fail(diag, err, "%s:%u:%u: model.shards: %s", job->file, shards->line,
			shards->column, why.text);
	return err ? hd_fail(diag, err, "model.shards: %s", why.text) : HD_OK;
}

/* A graph's own loss may have no hits. */
static enum hd_err check_metric(const struct hd_job *job, const struct hd_graph *graph, struct hd_diag *diag)
{
	const struct hd_job_value *v = &job->value[HD_JOB_METRIC];

	if (v->i != HD_METRIC_ACCURACY || hd_graph_find_output(graph, "correct") != HD_NONE)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"%s:%u:%u: eval.metric is accuracy, but the graph has no output \"correct\", so nothing is "
		"counted; use loss, or add "
		"`output correct %%N`, the number of hits in f64", job->file, v->line, v->column);
}

/* How many virtual nodes a graph network has that the rows of one are an interval for; 1: it has no edges, or
 * one virtual node takes the whole graph. */
static uint32_t intervals_of(const struct hd_job *job, const struct hd_graph *graph)
{
	return of_graphs(job) && hd_graph_find_input(graph, "from") != HD_NONE ? job->nvns : 1;
}

/* How many places lists need depends on the graph that they are of. */
static enum hd_err intervals(const struct hd_job *job, struct hd_fs *fs, struct hd_graph *graph,
	struct hd_diag *diag)
{
	const struct hd_job_value *path = &job->value[HD_JOB_DATA_PATH], *shards = &job->value[HD_JOB_SHARDS];
	struct hd_graph_shape shape;

	if (path->is_none)
		return HD_OK;                     /* refused where the data are opened */
	if (shards->i > 1)
		return hd_fail(diag, HD_E_INVAL, "%s:%u:%u: model.shards: the rows of a graph in several "
			"intervals are not cut once more: leave it out, or set batch.virtual_nodes to 1",
			job->file, shards->line, shards->column);
	enum hd_err err = hd_graph_shape(&shape, fs, path->text, job->nvns, diag);
	return err ? err : hd_graph_intervals(graph, &(struct hd_interval_slots){ (uint32_t)shape.in.edges,
		(uint32_t)shape.in.ghosts, (uint32_t)shape.out.edges, (uint32_t)shape.out.ghosts }, diag);
}

static enum hd_err for_training(const struct hd_job *job, struct hd_fs *fs, struct hd_graph *graph,
	struct hd_diag *diag)
{
	enum hd_err err = hd_graph_optimize(graph, job->per_vn, diag);

	if (!err && hd_graph_find_output(graph, "loss") == HD_NONE)
		err = hd_fail(diag, HD_E_INPUT,
			"the graph has no output \"loss\"; add `output loss %%N` with the sum of the losses "
			"in f64");
	if (!err && hd_graph_find_output(graph, "weight") == HD_NONE)
		err = hd_fail(diag, HD_E_INPUT,
			"the graph has no output \"weight\"; add `output weight %%N`, what the loss is "
			"divided by, in f64");
	if (!err)
		err = check_metric(job, graph, diag);
	if (!err && hd_job_int(job, HD_JOB_BN) == HD_BN_GLOBAL)
		err = globalize(job, graph, diag);
	if (!err && intervals_of(job, graph) > 1)
		err = intervals(job, fs, graph, diag);
	return err ? err : hd_graph_autodiff(graph, diag);
}

enum hd_err hd_task_train_graph(const struct hd_job *job, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_graph *graph, struct hd_diag *diag)
{
	enum hd_err err = hd_task_graph(job, fs, arena, graph, diag);

	return err ? err : for_training(job, fs, graph, diag);
}

static enum hd_err build_graphs(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	enum hd_err err = hd_task_graph(task->job, fs, &task->arena, &task->train, diag);

	if (!err)
		err = hd_task_shard(task->job, &task->train, diag);
	if (!err)
		err = for_training(task->job, fs, &task->train, diag);
	if (!err)
		err = hd_task_graph(task->job, fs, &task->arena, &task->infer, diag);
	if (!err)
		err = hd_task_shard(task->job, &task->infer, diag);
	if (!err) {
		task->eval_rows = intervals_of(task->job, &task->infer) > 1 ? task->job->batch :
			task->job->per_vn;
		err = hd_graph_optimize(&task->infer, task->eval_rows, diag);
	}
	if (!err)
		for_inference(&task->infer);
	return err;
}

/* Labels are bounded by the logits that they judge, those of the output or narrower ones. */
static enum hd_err bound_labels(const struct hd_graph *g, uint32_t y, struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	struct hd_ids ids;
	enum hd_err err = y == HD_NONE ? HD_OK : hd_graph_ids(g, g->input[y], &ids, diag);

	spec->apart = y != HD_NONE && !err && ids.node != HD_NONE && g->node[ids.node].op == HD_OP_EMBED;
	if (y != HD_NONE && !err && ids.rows && (!spec->classes || ids.rows < (int64_t)spec->classes))
		spec->classes = (uint32_t)ids.rows;
	return err;
}

/* A table is as long as what indexes it has values: tokens with one label for all may be as many as their
 * table has rows; where each has its own, they and the labels are of one kind. What is neither x nor y has a
 * bound of its own (name_wants()). */
static enum hd_err bound_ids(const struct hd_graph *g, uint32_t x, uint32_t y, struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < g->ninputs; i++) {
		struct hd_ids ids;
		if (i != x && i != y)
			continue;
		enum hd_err err = hd_graph_ids(g, g->input[i], &ids, diag);
		if (err)
			return err;
		if (i == x && (spec->one_label || spec->classes == 0))
			spec->tokens = (uint32_t)ids.rows;
		else if (ids.rows && ids.rows < (int64_t)spec->classes)
			return hd_fail(diag, HD_E_INPUT,
				"node %u (%s) has a table of %lld rows, the data may hold %u different "
				"tokens (the last extent of "
				"the logits): make the table as long", ids.node,
				hd_ops[g->node[ids.node].op].name, (long long)ids.rows, spec->classes);
	}
	return HD_OK;
}

/* What the graph reads beside x and y, each with the rows of the table that it indexes. */
static enum hd_err name_wants(const struct hd_graph *g, uint32_t x, uint32_t y,
	struct hd_data_want want[HD_MAX_FIELDS], uint32_t *n, struct hd_diag *diag)
{
	*n = 0;
	for (uint32_t i = 0; i < g->ninputs; i++) {
		const struct hd_value *v = &g->value[g->input[i]];
		const char *name = hd_graph_text_of(g, v->name);
		struct hd_ids ids;
		if (i == x || i == y)
			continue;
		if (*n == HD_MAX_FIELDS - 2 || strlen(name) >= sizeof ((struct hd_field *)0)->name)
			return hd_fail(diag, HD_E_INPUT,
				"the graph reads an input \"%s\": beside x and y it may have %d, with names "
				"of at most %zu characters", name, HD_MAX_FIELDS - 2,
				sizeof ((struct hd_field *)0)->name - 1);
		enum hd_err err = hd_graph_ids(g, g->input[i], &ids, diag);
		if (err)
			return err;
		struct hd_data_want *w = &want[(*n)++];
		*w = (struct hd_data_want){ .name = name, .dtype = (enum hd_dtype)v->dtype,
			.rank = v->rank ? (uint8_t)(v->rank - 1) : 0, .bound = ids.rows };
		memcpy(w->dim, v->dim + 1, w->rank * sizeof *w->dim);
	}
	return HD_OK;
}

/* The token that attention does not see is what short texts end in. A mask is no text: it is an input of its
 * own. */
static int32_t token_of_pads(const struct hd_graph *g)
{
	const uint32_t mask = hd_graph_find_input(g, HD_MASK_NAME);

	for (uint32_t i = 0; i < g->nforward; i++)
		if (g->node[i].op == HD_OP_ATTEND_PAD && g->node[i].attr.i[3] != HD_PAD_OTHERS && (mask ==
			HD_NONE ||
			g->node[i].in[3] != g->input[mask]))
			return g->node[i].attr.i[3];
	return -1;
}

/* What one sample is: its type and extents; those of 1 are no shape, [5,1] is [5]. */
struct per_sample { uint8_t dtype, rank; int64_t dim[HD_MAX_DIMS]; char text[128]; };

static void take_extents(struct per_sample *s, enum hd_dtype dtype, uint32_t rank, const int64_t *dim)
{
	struct hd_text text;

	*s = (struct per_sample){ .dtype = (uint8_t)dtype };
	hd_text_fixed(&text, s->text, sizeof s->text);
	hd_text_addf(&text, "%s [", hd_dtype_text(dtype));
	for (uint32_t i = 0; i < rank; i++) {
		hd_text_addf(&text, "%s%lld", i ? "," : "", (long long)dim[i]);
		if (dim[i] != 1)
			s->dim[s->rank++] = dim[i];
	}
	hd_text_add(&text, "]");
}

/* Rows of an input are copied from the field of its name as they are: both must mean the same bytes. */
static enum hd_err field_fits(const struct hd_graph *g, uint32_t input, const struct hd_dataset *data,
	struct hd_diag *diag)
{
	const struct hd_value *v = &g->value[input];
	const char *name = hd_graph_text_of(g, v->name);
	struct per_sample reads, has;
	uint32_t f = 0;

	while (f < data->nfields && strcmp(data->field[f].name, name) != 0)
		f++;
	if (f == data->nfields)
		return HD_OK;                     /* refused where inputs are mapped */
	take_extents(&has, (enum hd_dtype)data->field[f].dtype, data->field[f].rank, data->field[f].dim);
	take_extents(&reads, (enum hd_dtype)v->dtype, v->rank ? v->rank - 1u : 0, v->dim + 1);
	if (v->rank && v->dim[0] == -1 && reads.dtype == has.dtype && reads.rank == has.rank &&
		!memcmp(reads.dim, has.dim, has.rank * sizeof *has.dim))
		return HD_OK;
	return hd_fail(diag, HD_E_INPUT,
		"of each sample the model reads \"%s\" as %s, the data have %s (%s): take "
		"a data.kind that has it, or another model", name, reads.text, has.text, data->about);
}

static enum hd_err fields_fit(const struct hd_graph *g, const struct hd_dataset *data, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < g->ninputs && !err; i++)
		err = field_fits(g, g->input[i], data, diag);
	return err;
}

/* Lists of edges name vertices by their row: the rows of a step must be all of the graph, in their order. */
static enum hd_err whole_graph(const struct hd_job *job, const struct hd_graph *g,
	const struct hd_dataset *data,
	struct hd_diag *diag)
{
	const uint32_t list = hd_graph_find_input(g, "from");
	uint32_t f = 0;

	while (f < data->nfields && strcmp(data->field[f].name, "from") != 0)
		f++;
	if (list == HD_NONE || f == data->nfields)
		return HD_OK;
	int64_t slots = g->value[g->input[list]].dim[1];
	if (slots != data->field[f].dim[0])
		return hd_fail(diag, HD_E_INPUT,
			"the model has %lld places for edges a vertex, this graph takes %lld: set "
			"model.args.slots to %lld "
			"(%s)", (long long)slots, (long long)data->field[f].dim[0],
				(long long)data->field[f].dim[0],
			data->about);
	if (job->batch != data->count || hd_job_int(job, HD_JOB_SLICES) != 1 ||
		hd_job_int(job, HD_JOB_ORDER) != HD_ORDER_SEQUENTIAL)
		return hd_fail(diag, HD_E_INVAL,
			"a step of a whole graph takes all its rows in their order, here as %u virtual nodes "
			"of %llu: set batch.global to %llu, batch.virtual_nodes to %u, batch.slices to 1 and "
			"data.order to sequential (%s)", job->nvns,
			(unsigned long long)(data->count / job->nvns),
			(unsigned long long)data->count, job->nvns, data->about);
	return HD_OK;
}

static const char *text_or_none(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].is_none ? NULL : hd_job_text(job, key);
}

static bool is_of_shares(const char *loss)
{
	return !strcmp(loss, "soft-cross-entropy") || !strcmp(loss, "kl");
}

/* Is y, where it is numbers, shares of classes? Of several losses those that read y say it. */
static bool wants_shares(const struct hd_job *job)
{
	const struct hd_job_value *sum = &job->value[HD_JOB_SUM];

	for (uint32_t i = 0; i < sum->nterms; i++)
		if (!strcmp(sum->term[i].target, HD_JOB_TERM_TARGET) && is_of_shares(sum->term[i].kind))
			return true;
	return !sum->nterms && is_of_shares(hd_job_text(job, HD_JOB_LOSS));
}

/* What data a graph takes is read from it as it was before it came in shards: a shard's table is a part of
 * the whole. */
static enum hd_err open_data(struct hd_task *task, const struct hd_graph *g, struct hd_fs *fs,
	struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	uint32_t x = hd_graph_find_input(g, "x"), y = hd_graph_find_input(g, "y"),
		logits = hd_graph_find_output(g, "logits");
	const char *column[HD_JOB_MAX_NAMES], *class[HD_JOB_MAX_NAMES];
	struct hd_data_want want[HD_MAX_FIELDS];
	const struct hd_blob_rules store = {
		.cache = text_or_none(job, HD_JOB_DATA_CACHE),
		.cache_bytes = job->value[HD_JOB_DATA_CACHE_BYTES].is_auto ? 0 :
			(uint64_t)hd_job_int(job, HD_JOB_DATA_CACHE_BYTES),
		.endpoint = text_or_none(job, HD_JOB_DATA_ENDPOINT),
		.region = text_or_none(job, HD_JOB_DATA_REGION),
		.plain = hd_job_int(job, HD_JOB_DATA_PLAIN) != 0,
		.direct = (enum hd_blob_direct)hd_job_int(job, HD_JOB_DATA_DIRECT),
		.api = (enum hd_blob_api)hd_job_int(job, HD_JOB_DATA_API),
	};
	struct hd_data_spec spec = {
		.kind = hd_job_text(job, HD_JOB_DATA_KIND),
		.path = job->value[HD_JOB_DATA_PATH].is_none ? NULL : hd_job_text(job, HD_JOB_DATA_PATH),
		.seed = (uint64_t)hd_job_int(job, HD_JOB_SEED), .split_seed = hd_job_split_seed(job),
		.train = job->value[HD_JOB_SPLIT].list[0], .valid = job->value[HD_JOB_SPLIT].list[1],
		.count = (uint64_t)hd_job_int(job, HD_JOB_DATA_COUNT),
		.label = job->value[HD_JOB_LABEL].is_auto ? NULL : hd_job_text(job, HD_JOB_LABEL),
		.column = column, .ncolumns = names_of(job, HD_JOB_COLUMNS, column),
		.class = class, .nclasses = names_of(job, HD_JOB_CLASSES, class),
		.pack = (enum hd_packing_how)hd_job_int(job, HD_JOB_PACK),
		.boundaries = text_or_none(job, HD_JOB_BOUNDARIES),
		.tokenizer = text_or_none(job, HD_JOB_TOKENIZER),
		.ignores = hd_job_int(job, HD_JOB_IGNORE) != -1, .ignore = (int32_t)hd_job_int(job,
			HD_JOB_IGNORE),
		.store = &store,
		.size = job->value[HD_JOB_IMAGE_SIZE].is_auto ? 0 : (uint32_t)hd_job_int(job,
			HD_JOB_IMAGE_SIZE),
		.stretch = hd_job_int(job, HD_JOB_IMAGE_FIT) != 0,
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
	spec.shares = spec.float_target && spec.classes && wants_shares(job);
	spec.one_label = spec.context && y != HD_NONE && (g->value[g->input[y]].rank == 1 ||
		spec.float_target);
	spec.pad = token_of_pads(g);
	spec.intervals = intervals_of(job, g);
	spec.want = want;
	enum hd_err err = name_wants(g, x, y, want, &spec.nwant, diag);
	if (!err)
		err = bound_labels(g, y, &spec, diag);
	if (!err)
		err = bound_ids(g, x, y, &spec, diag);
	if (!err)
		err = hd_dataset_open(&task->data, &spec, fs, diag);
	err = err ? err : whole_graph(job, g, task->data, diag);
	return err ? err : fields_fit(g, task->data, diag);
}

static enum hd_err mixes_fit(const struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_job_value *v = &task->job->value[HD_JOB_AUGMENT];
	struct hd_diag why = { "" };
	enum hd_err err = hd_mix_check(task->data, &why);

	if (err && v->line)
		return hd_fail(diag, err, "%s:%u:%u: data.augment: %s", task->job->file, v->line, v->column,
			why.text);
	return err ? hd_fail(diag, err, "data.augment: %s", why.text) : HD_OK;
}

static enum hd_err take_augment(struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_job_value *v = &task->job->value[HD_JOB_AUGMENT];
	enum hd_err err = HD_OK;

	task->augment = (struct hd_augment){ .seed = (uint64_t)hd_job_int(task->job, HD_JOB_SEED),
		.part_taken = task->data->takes_part };
	for (const struct hd_job_call *c = v->call; c < v->call + v->ncalls && !err; c++) {
		struct hd_augment_param param[HD_JOB_MAX_PARAMS];
		struct hd_diag why = { "" };
		for (uint32_t i = 0; i < c->nparams; i++)
			param[i] = (struct hd_augment_param){ c->param[i].name, c->param[i].at,
				c->param[i].n };
		err = hd_augment_add(&task->augment, &(struct hd_augment_call){ c->name, param, c->nparams },
			&task->data->field[0], &why);
		if (err && v->line)
			(void)hd_fail(diag, err, "%s:%u:%u: data.augment: %s", task->job->file, c->line,
				c->column, why.text);
		else if (err)
			(void)hd_fail(diag, err, "data.augment: %s", why.text);
	}
	task->data->augment = task->augment.nsteps || task->augment.nmixes ? &task->augment : NULL;
	return err ? err : mixes_fit(task, diag);
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
		.bf16 = hd_job_int(job, HD_JOB_PRECISION) == HD_PRECISION_BF16,
		.average = job->value[HD_JOB_EMA].is_none ? 0 : (float)(1 - hd_job_num(job, HD_JOB_EMA)),
		.average_every = job->value[HD_JOB_EMA].is_none ? 0 :
			(uint32_t)hd_job_int(job, HD_JOB_EMA_EVERY),
	};
}

void hd_task_slice(const struct hd_task *task, uint64_t nrows, uint32_t vn, uint32_t slice, uint64_t *first,
	uint64_t *end)
{
	uint64_t q = (uint64_t)hd_job_int(task->job, HD_JOB_SLICES), per = (task->job->per_vn + q - 1) / q,
		at, stop;

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

/* The job's hash and what it says nothing of: the content of a file. */
static void join_hash(struct hd_task *task, const void *bytes, size_t len)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, task->job_hash.byte, sizeof task->job_hash.byte);
	hd_hasher_add(&hasher, bytes, len);
	task->job_hash = hd_hasher_end(&hasher);
}

/* Parts of a virtual node that is not full may use the running statistics instead; if every part did, they
 * would never move. */
static enum hd_err check_norms(const struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_graph *g = &task->train;

	for (uint32_t i = 0; i < g->nforward; i++) {
		const struct hd_node *n = &g->node[i];
		bool global = n->op == HD_OP_BATCHNORM_APPLY;
		if (!global && (n->op != HD_OP_BATCHNORM || n->attr.i[1]))
			continue;
		uint64_t values = hd_value_elems(&g->value[n->in[0]],
			global ? task->job->batch : task->rows[0]) / hd_value_elems(&g->value[n->in[1]], 1);
		if (values < 2)
			return hd_fail(diag, HD_E_INVAL,
				"node %u (batchnorm of %s): %s has %llu value per channel, fewer than the 2 "
				"that have a variance; "
				"use fewer batch.virtual_nodes or batch.slices, or a larger batch.global", i,
				hd_graph_text_of(g, g->value[n->in[1]].name),
				global ? "the batch" : "a full virtual node", (unsigned long long)values);
	}
	return HD_OK;
}

static enum hd_err identify(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	struct hd_graph graph;
	struct hd_text text;

	task->job_hash = task->job->hash;
	if (task->weights)
		join_hash(task, task->weights->digest.byte, sizeof task->weights->digest.byte);
	if (strncmp(hd_job_text(task->job, HD_JOB_MODEL), "graph:", 6) != 0 && !is_onnx(task->job))
		return HD_OK;
	hd_text_init(&text, &task->arena);
	enum hd_err err = hd_task_graph(task->job, fs, &task->arena, &graph, diag);
	if (!err)
		err = hd_graph_print(&graph, &text, diag);
	if (err)
		return err;
	join_hash(task, text.at, text.len);
	return HD_OK;
}

static enum hd_err delay(struct hd_task *task, struct hd_diag *diag)
{
	enum hd_err err = hd_delays_make(&task->delays, task->job, &task->train, task->rows[0], &task->arena,
		diag);

	for (uint32_t s = 0; s < task->delays.nstages && !err; s++) {
		uint8_t bytes[4];
		hd_put32(bytes, task->delays.first[s]);
		join_hash(task, bytes, sizeof bytes);
	}
	return err;
}

static enum hd_err read_weights(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_job_value *v = &task->job->value[HD_JOB_WEIGHTS];
	const char *skip[HD_JOB_MAX_NAMES];
	struct hd_graph graph, whole;
	struct hd_weight_source *fit;

	if (v->is_none && !is_onnx(task->job))
		return HD_OK;
	enum hd_err err = v->is_none ? import_onnx(task->job, fs, &task->arena, &graph, &task->weights,
		diag) :
		hd_weights_open(&task->weights, fs, v->text, diag);
	if (!err)
		err = hd_task_graph(task->job, fs, &task->arena, &whole, diag);
	if (!err)
		err = hd_weights_fit(task->weights, &whole, skip,
			names_of(task->job, HD_JOB_WEIGHTS_SKIP, skip), &fit, NULL, diag);
	if (!err)
		task->fit = fit;
	return err;
}

void hd_task_drop_weights(struct hd_task *task)
{
	hd_weights_close(task->weights);
	task->weights = NULL;
	task->fit = NULL;
}

/* Its bits are part of what is computed, its name is not. */
static enum hd_err read_recording(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_job_value *v = &task->job->value[HD_JOB_REPLAY];
	struct hd_recording *r;
	struct hd_hash digest;

	if (v->is_none)
		return HD_OK;
	if (!(r = hd_arena_take(&task->arena, 1, sizeof *r)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for a recording");
	enum hd_err err = hd_recording_read(r, task, fs, v->text, &task->arena, &digest, diag);
	if (err)
		return err;
	join_hash(task, digest.byte, sizeof digest.byte);
	task->recording = r;
	return HD_OK;
}

/* What a run decided of another model's buckets is refused: its workers would not sum the same. */
enum hd_err hd_task_settle(struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_job_value *settled = &task->job->value[HD_JOB_COMM_SETTLED];
	struct hd_comm comm = { .nbuckets = 0 };

	if (settled->is_none)
		return HD_OK;
	enum hd_err err = hd_comm_read(&comm, settled->text, &task->arena, diag);
	/* a plan that is given to a run later, whose chunks are uncut: what was settled before is void */
	if (!err && comm.nsegments && (!task->job->value[HD_JOB_PAR_PLAN].is_none ||
		hd_job_is_listed(task->job)))
		return HD_OK;
	if (!err && comm.nsegments)
		err = hd_layout_cut(&task->layout, comm.nbuckets, comm.nsegments, &task->arena, diag);
	if (!err && comm.nbuckets != hd_layout_nbuckets(&task->layout))
		err = hd_fail(diag, HD_E_INVAL, "comm.settled is of %u buckets, and the model has %u: it was "
			"written for another model; leave it out", comm.nbuckets,
			hd_layout_nbuckets(&task->layout));
	if (!err)
		task->comm = comm;
	return err;
}

struct hd_hash hd_task_alike(const struct hd_task *task)
{
	struct { struct hd_hash job, cut; } both = { .job = task->job_hash };

	if (!task->comm.nsegments)
		return task->job_hash;
	both.cut = hd_hash(task->comm.nsegments, task->comm.nbuckets * sizeof *task->comm.nsegments);
	return hd_hash(&both, sizeof both);
}

/* A graph of a file may say them, too. */
static enum hd_err count_terms(struct hd_task *task, struct hd_diag *diag)
{
	char name[] = "loss_1";
	uint32_t most = 0;

	for (uint32_t i = 0; i < HD_MODEL_TERMS; i++, name[5]++)
		if (hd_graph_find_output(&task->train, name) != HD_NONE) {
			task->nterms++;
			most = i + 1;
		}
	return most == task->nterms ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"the graph has an output loss_%u and not "
		"all before it: number them from 1", most);
}

static enum hd_err set_up(struct hd_task *task, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	struct hd_graph whole;
	enum hd_err err = build_graphs(task, fs, diag);

	if (!err)
		err = count_terms(task, diag);
	if (!err)
		err = hd_wholes_make(&task->wholes, &task->train, &task->arena, diag);
	if (!err)
		err = read_weights(task, fs, diag);
	if (!err)
		err = identify(task, fs, diag);
	if (!err)
		err = hd_layout_make(&task->layout, &task->train, &task->arena, diag);
	if (!err)
		err = hd_task_settle(task, diag);
	if (!err)
		err = hd_job_int(job, HD_JOB_SHARDS) > 1 ? hd_task_graph(job, fs, &task->arena, &whole,
			diag) : HD_OK;
	if (!err)
		err = open_data(task, hd_job_int(job, HD_JOB_SHARDS) > 1 ? &whole : &task->train, fs, diag);
	if (!err)
		err = hd_measuring_make(&task->measured, task, diag);
	if (!err)
		err = take_augment(task, diag);
	if (!err)
		err = hd_sampler_init(&task->sampler, (uint64_t)hd_job_int(job, HD_JOB_SEED),
			task->data->split[0].count, job->batch,
			(enum hd_order)hd_job_int(job, HD_JOB_ORDER),
			(enum hd_last)hd_job_int(job, HD_JOB_LAST), diag);
	if (err)
		return err;
	take_optim(task);
	find_rows(task);
	err = check_norms(task, diag);
	err = err ? err : hd_param_rates_make(&task->rate, job, &task->train, &task->arena, diag);
	err = err ? err : delay(task, diag);
	if (!err && hd_job_copies(job) && hd_optims[task->optim.kind].unit == HD_UNIT_TENSOR)
		err = hd_fail(diag, HD_E_INVAL,
			"comm.sync: %s does not know optimizers that change whole tensors (optim.kind: "
			"%s), whose norms have "
			"several owners; take comm.sync: allreduce", hd_job_text(job, HD_JOB_SYNC),
			hd_optims[task->optim.kind].name);
	if (err)
		return err;
	double steps = (double)hd_sampler_steps(&task->sampler) * hd_job_num(job, HD_JOB_EPOCHS);
	task->nsteps = job->value[HD_JOB_STEPS].is_none ? (uint64_t)steps +
		((double)(uint64_t)steps < steps) : (uint64_t)hd_job_int(job, HD_JOB_STEPS);
	err = hd_fore_allowed(task, diag);
	err = err ? err : hd_stamps_allowed(task, diag);
	err = err ? err : hd_closing_allowed(task, diag);
	err = err ? err : hd_judges_allowed(task, diag);
	return err ? err : read_recording(task, fs, diag);
}

enum hd_err hd_task_create(struct hd_task **out, const struct hd_job *job, struct hd_fs *fs,
	struct hd_diag *diag)
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
	hd_weights_close(task->weights);
	hd_arena_finish(&task->arena);
	hd_free(task);
}

/* Elements [first, first + n) of tensor t, first a multiple of 4. Element e: word e mod 4 of block
 * (e/4, t, 0, 0); normals take words in pairs. */
static void init_elements(const struct hd_param *param, uint32_t tensor, uint64_t key, uint64_t first,
	uint64_t n, float *to)
{
	for (uint64_t e = 0; e < n; e += 4) {
		const uint32_t counter[4] = { (uint32_t)((first + e) / 4), tensor, 0, 0 };
		struct hd_philox block = hd_philox(counter, key);
		float x[4] = { 0 };
		for (int k = 0; k < 4; k++)
			x[k] = hd_uniform(block.word[k]) * 2 - 1;
		if (param->init == HD_INIT_NORMAL) {
			hd_normal2(block.word[0], block.word[1], x);
			hd_normal2(block.word[2], block.word[3], x + 2);
		}
		for (uint64_t k = 0; k < 4 && e + k < n; k++)
			to[e + k] = param->init == HD_INIT_ZEROS ? 0 : param->init == HD_INIT_ONES ? 1 :
				x[k] * param->scale;
	}
}

static void round_bf16(float *at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		at[i] = hd_bf16_round(at[i]);
}

/* A piece of a tensor at a time, in its natural order, wherever its slices lie. */
static void init_whole(const struct hd_task *task, uint32_t tensor, uint64_t key, float *params)
{
	enum { N = 4096 };
	const uint32_t *param = task->wholes.param + task->wholes.first[tensor];
	const struct hd_sliced shape = hd_whole_shape(&task->train, param[0]);
	const struct hd_weight_source *fit = task->fit && task->fit[tensor].from ? &task->fit[tensor] : NULL;
	const uint64_t elems = hd_sliced_elems(&shape);
	float *slice[HD_MAX_SHARDS], piece[N];

	for (uint32_t s = 0; s < shape.n; s++)
		slice[s] = params + task->layout.at[param[s]];
	for (uint64_t first = 0; first < elems; first += N) {
		const uint64_t n = elems - first < N ? elems - first : N;
		if (fit)
			hd_fit_get(fit, first, n, piece);
		else
			init_elements(&task->train.param[param[0]], tensor, key, first, n, piece);
		hd_slices_put(&shape, slice, first, n, piece);
	}
}

void hd_task_init_params(const struct hd_task *task, float *params)
{
	uint64_t key = hd_philox_key((uint64_t)hd_job_int(task->job, HD_JOB_SEED), HD_RNG_INIT);

	for (uint32_t t = 0; t < task->wholes.n; t++)
		init_whole(task, t, key, params);
	if (task->optim.bf16)
		round_bf16(params, task->layout.held_elems);
}

void hd_task_init_buffers(const struct hd_task *task, float *buffers)
{
	for (uint32_t b = 0; b < task->train.nbuffers; b++) {
		const struct hd_weight_source *fit = task->fit ? &task->fit[task->wholes.n + b] : NULL;
		float *at = buffers + task->layout.buffer_at[b];
		for (uint64_t i = 0; i < task->layout.buffer_len[b]; i++)
			at[i] = task->train.buffer[b].init == HD_INIT_ONES ? 1.0f : 0.0f;
		if (fit && fit->from)
			hd_fit_put(fit, at);
	}
}

double hd_task_flops(const struct hd_task *task)
{
	double flops = 0;

	for (uint32_t i = 0; i < task->train.nnodes; i++)
		flops += hd_ops[task->train.node[i].op].cost(&task->train, &task->train.node[i],
			task->job->batch).flops;
	return flops;
}
