#include "checkpoint/adopt.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "graph/pass.h"
#include "graph/published.h"
#include "graph/text.h"
#include "checkpoint/adopt_int.h"
#include "checkpoint/export.h"
#include "checkpoint/onnx_model.h"

enum { CONFIG_BYTES = 1 << 20 };

enum hd_err hd_adopt_begin(const struct hd_adopt_desk *d)
{
	*d->out = (struct hd_adopted){ 0 };
	hd_text_init(&d->out->notes, d->arena);
	if ((size_t)snprintf(d->out->weights, sizeof d->out->weights, "%s/model.safetensors", d->folder) >=
		sizeof d->out->weights)
		return hd_fail(d->diag, HD_E_INVAL, "the path %.100s... is too long", d->folder);
	return HD_OK;
}

static enum hd_err write_text(const struct hd_adopt_desk *d, const char *name, const struct hd_text *text)
{
	char path[HD_PATH_CAP];

	if (text->full || (size_t)snprintf(path, sizeof path, "%s/%s", d->folder, name) >= sizeof path)
		return hd_fail(d->diag, HD_E_NOMEM, "no memory for %s, or its path is too long", name);
	return hd_file_write_atomic(d->fs, path, text->at, text->len, d->diag);
}

/* ---- published weights */

static enum hd_err give(struct hd_adopt_given *given, const char *name, const char *value,
	struct hd_diag *diag)
{
	uint32_t i = 0;

	while (i < given->n && strcmp(given->arg[i].name, name) != 0)
		i++;
	if (i == HD_MAX_ARGS)
		return hd_fail(diag, HD_E_INVAL, "more than %d arguments of a model", HD_MAX_ARGS);
	given->arg[i] = (struct hd_model_arg){ name, value };
	given->n = i == given->n ? i + 1 : given->n;
	return HD_OK;
}

/* What the file says, and what of it ours does otherwise. */
static enum hd_err take_config(const struct hd_adopt_desk *d, const char *path, const struct hd_json *json,
	struct hd_adopt_given *given)
{
	struct hd_published said;
	enum hd_err err = hd_published_read(&said, json, path, given->model, d->arena, d->diag);

	for (uint32_t i = 0; !err && i < said.nargs; i++)
		err = give(given, said.arg[i].name, said.arg[i].value, d->diag);
	if (err)
		return err;
	given->model = said.model ? said.model : given->model;
	hd_text_add(&d->out->notes, said.notes.at);
	return HD_OK;
}

/* Rule 1: beside the file, or in the folder that was named. */
static enum hd_err read_config(const struct hd_adopt_desk *d, struct hd_adopt_given *given)
{
	const char *slash = strrchr(d->source, '/');
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	uint8_t *bytes;
	size_t len;
	bool folder = !hd_fs_stat(d->fs, d->source, &stat, NULL) && stat.kind == HD_FILE_FOLDER;
	int n = folder ? snprintf(path, sizeof path, "%s/config.json", d->source)
		: snprintf(path, sizeof path, "%.*sconfig.json", slash ? (int)(slash - d->source) + 1 : 0,
			d->source);

	if ((size_t)n >= sizeof path || hd_fs_stat(d->fs, path, &stat, NULL))
		return HD_OK;
	enum hd_err err = hd_file_read_all(d->fs, path, d->arena, CONFIG_BYTES, &bytes, &len, d->diag);
	if (!err)
		err = hd_json_parse(d->arena, path, (const char *)bytes, len, &json, d->diag);
	return err ? err : take_config(d, path, json, given);
}

enum hd_err hd_adopt_settle(const struct hd_adopt_desk *d, struct hd_adopt_given *given, const char *model,
	const struct hd_model_arg *arg, uint32_t nargs)
{
	*given = (struct hd_adopt_given){ .model = model && !strncmp(model, "builtin:", 8) ? model + 8 :
		model };
	enum hd_err err = read_config(d, given);

	for (uint32_t i = 0; i < nargs && !err; i++)
		err = give(given, arg[i].name, arg[i].value, d->diag);
	if (!err && !given->model)
		err = hd_fail(d->diag, HD_E_INVAL,
			"which model are these the weights of? give --model NAME (`heddle model ls`) and "
			"its arguments by -s");
	return err;
}

enum hd_err hd_adopt_build(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	struct hd_graph *graph)
{
	struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };

	hd_graph_init(graph, d->arena);
	return hd_model_build(graph, given->model, given->arg, given->n, &opts, d->diag);
}

/* A job that trains at once, on made-up data until the user names others. */
enum hd_err hd_adopt_write_job(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	const char *more)
{
	const struct hd_model_row *row;
	struct hd_model_value value[HD_MAX_ARGS];
	struct hd_text text;
	enum hd_err err = hd_model_find(given->model, &row, d->diag);

	if (!err)
		err = hd_model_args(row, given->arg, given->n, value, d->diag);
	if (err)
		return err;
	hd_text_init(&text, d->arena);
	hd_text_addf(&text,
		"# Made by `heddle model import`: begins from the imported weights. Name your data, then\n# "
		"  heddle run %s/job.yaml\n"
		"job:   {name: finetune, steps: 100}\nmodel:\n  use: builtin:%s\n  args: {", d->folder,
		row->name);
	for (uint32_t i = 0; row->param[i].name; i++) {
		if (!hd_model_arg_listed(&row->param[i], &value[i]))
			continue;
		hd_text_addf(&text, "%s%s: ", i ? ", " : "", row->param[i].name);
		hd_model_arg_print(&text, &row->param[i], &value[i]);
	}
	hd_text_addf(&text,
		"}\n  weights: \"%s/model.safetensors\"\n%sdata:  {kind: synthetic}      # kind: "
		"text|idx|npy|..., path: FILE\n"
		"batch: {global: 16, virtual_nodes: 8}\noptim: {kind: adamw, lr: 1e-4, schedule: {kind: "
		"cosine, warmup: 10}}\n", d->folder, more);
	return write_text(d, "job.yaml", &text);
}

void hd_adopt_say_surplus(const struct hd_adopt_desk *d, const struct hd_adopt_given *given,
	const struct hd_weights *weights)
{
	if (weights->nsurplus)
		hd_text_addf(&d->out->notes,
			"%u tensors are of heads that builtin:%s with these arguments has not, and were "
			"skipped: %s\n", weights->nsurplus, given->model, weights->surplus.at);
}

enum hd_err hd_adopt_weights(struct hd_adopted *adopted, struct hd_fs *fs, const char *source,
	const char *folder, const char *model, const struct hd_model_arg *arg, uint32_t nargs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_adopt_desk d = { adopted, fs, source, folder, arena, diag };
	struct hd_weights *w = NULL;
	struct hd_adopt_given given;
	struct hd_graph graph;
	struct hd_weight_source *fit;
	struct hd_text full;
	enum hd_err err = hd_adopt_begin(&d);

	hd_text_init(&full, arena);
	if (!err)
		err = hd_adopt_settle(&d, &given, model, arg, nargs);
	if (!err)
		err = hd_adopt_build(&d, &given, &graph);
	if (!err)
		err = hd_weights_open(&w, fs, source, diag);
	if (!err)
		err = hd_weights_fit(w, &graph, NULL, 0, &fit, &full, diag);
	if (!err)
		hd_adopt_say_surplus(&d, &given, w);
	if (diag && full.len >= sizeof diag->text)
		hd_text_addf(&adopted->notes, "%s\n", full.at);
	if (!err)
		err = hd_fs_mkdirs(fs, folder, diag);
	if (!err)
		err = hd_export_fit(fs, w, &graph, fit, arena, adopted->weights, diag);
	if (!err)
		err = hd_adopt_write_job(&d, &given, "");
	if (!err) {
		adopted->model = given.model;
		adopted->nnodes = graph.nnodes;
		adopted->ntensors = w->ntensors;
	}
	hd_weights_close(w);
	return err;
}

/* ---- ONNX */

/* Rule 2. */
static enum hd_err import(const struct hd_adopt_desk *d, struct hd_graph *graph, struct hd_weights **weights,
	bool *own_loss)
{
	static const struct hd_model_opts entropy = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	struct hd_onnx_opts opts = { .token_if_rows = true };
	struct hd_diag why = { "" };
	struct hd_text report;

	hd_text_init(&report, d->arena);
	*own_loss = true;
	if (!hd_onnx_model(d->fs, d->source, &opts, d->arena, graph, weights, &why))
		return HD_OK;
	*own_loss = false;
	opts.loss = &entropy;
	opts.report = &report;
	enum hd_err err = hd_onnx_model(d->fs, d->source, &opts, d->arena, graph, weights, d->diag);
	/* every node that cannot be had, a line each */
	if (report.len)
		hd_text_add(&d->out->notes, report.at);
	return err;
}

static enum hd_err write_graph(const struct hd_adopt_desk *d, const struct hd_graph *graph)
{
	struct hd_text text;

	hd_text_init(&text, d->arena);
	enum hd_err err = hd_graph_print(graph, &text, d->diag);
	return err ? err : write_text(d, "model.graph", &text);
}

static enum hd_err write_onnx_job(const struct hd_adopt_desk *d, bool own_loss)
{
	struct hd_text text;

	hd_text_init(&text, d->arena);
	hd_text_addf(&text,
		"# Made by `heddle model import` of %s: begins from the imported weights. Name your data, "
		"then\n#   heddle run %s/job.yaml\n"
		"job:   {name: imported, steps: 100}\nmodel: {use: \"graph:%s/model.graph\", weights: "
		"\"%s/model.safetensors\"}%s\n"
		"data:  {kind: synthetic}      # kind: text|idx|npy|..., path: FILE\nbatch: {global: 16, "
		"virtual_nodes: 4}\n"
		"optim: {kind: adamw, lr: 1e-4, schedule: {kind: cosine, warmup: 10}}\n", d->source,
		d->folder, d->folder, d->folder,
		own_loss ? "      # the loss is the file's own" :
		"      # the loss is cross-entropy; for another: use onnx:FILE and model.loss");
	return write_text(d, "job.yaml", &text);
}

enum hd_err hd_adopt_onnx(struct hd_adopted *adopted, struct hd_fs *fs, const char *source,
	const char *folder, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_adopt_desk d = { adopted, fs, source, folder, arena, diag };
	struct hd_weights *weights = NULL;
	struct hd_graph graph;
	bool own_loss = false;
	enum hd_err err = hd_adopt_begin(&d);

	if (!err)
		err = import(&d, &graph, &weights, &own_loss);
	if (!err)
		err = hd_graph_prune(&graph, diag);
	if (!err)
		err = hd_fs_mkdirs(fs, folder, diag);
	if (!err)
		err = write_graph(&d, &graph);
	if (!err)
		err = hd_export_tensors(fs, weights->tensor, weights->ntensors, NULL, 0, adopted->weights,
			diag);
	if (!err)
		err = write_onnx_job(&d, own_loss);
	if (!err) {
		adopted->nnodes = graph.nnodes;
		adopted->ntensors = weights->ntensors;
	}
	hd_weights_close(weights);
	return err;
}

enum hd_err hd_onnx_values_of(struct hd_onnx_values *values, const struct hd_graph *graph,
	const struct hd_state *state, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = hd_fit_count(graph);
	struct hd_onnx_weight *at = hd_arena_take(arena, n + 1, sizeof *at);

	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the tensors");
	for (uint32_t i = 0; i < n; i++) {
		const char *name = hd_graph_text_of(graph, hd_fit_value(graph, i)->name);
		const struct hd_state_entry *e = hd_state_find(state, name);
		if (!e)
			return hd_fail(diag, HD_E_INTEGRITY, "the checkpoint has no tensor '%s'", name);
		at[i] = (struct hd_onnx_weight){ e->at, e->len_bytes };
	}
	*values = (struct hd_onnx_values){ at, at + graph->nparams };
	return HD_OK;
}
