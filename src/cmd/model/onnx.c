#include "cmd/model/onnx.h"

#include <string.h>

#include "graph/onnx.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "checkpoint/export.h"
#include "checkpoint/onnx_model.h"
#include "cmd/session.h"
#include "cmd/ckpt/diff.h"

/* ---- in */

/* What the message has no room for: every node that cannot be had, a line each. */
static void print_report(const struct hd_text *report)
{
	if (report->len)
		fprintf(stderr, "%s", report->at);
}

static enum hd_err import(struct hd_cmd *cmd, const char *source, struct hd_graph *graph,
	struct hd_weights **weights, bool *own_loss)
{
	static const struct hd_model_opts entropy = { HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_SAMPLE };
	struct hd_onnx_opts opts = { .token_if_rows = true };
	struct hd_diag why = { "" };
	struct hd_text report;

	hd_text_init(&report, &cmd->arena);
	*own_loss = true;
	if (!hd_onnx_model(&cmd->fs, source, &opts, &cmd->arena, graph, weights, &why))
		return HD_OK;
	*own_loss = false;
	opts.loss = &entropy;
	opts.report = &report;
	enum hd_err err = hd_onnx_model(&cmd->fs, source, &opts, &cmd->arena, graph, weights, &cmd->diag);
	print_report(&report);
	return err;
}

static enum hd_err write_text(struct hd_cmd *cmd, const char *folder, const char *name,
	const struct hd_text *text)
{
	char path[HD_PATH_CAP];

	if (text->full || (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %s, or its path is too long", name);
	return hd_file_write_atomic(&cmd->fs, path, text->at, text->len, &cmd->diag);
}

static enum hd_err write_graph(struct hd_cmd *cmd, const struct hd_graph *graph, const char *folder)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	enum hd_err err = hd_graph_print(graph, &text, &cmd->diag);
	return err ? err : write_text(cmd, folder, "model.graph", &text);
}

static enum hd_err write_job(struct hd_cmd *cmd, const char *source, const char *folder, bool own_loss)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_text_addf(&text,
		"# Made by `heddle model import` of %s: begins from the imported weights. Name your data, "
		"then\n#   heddle run %s/job.yaml\n"
		"job:   {name: imported, steps: 100}\nmodel: {use: \"graph:%s/model.graph\", weights: "
		"\"%s/model.safetensors\"}%s\n"
		"data:  {kind: synthetic}      # kind: text|idx|npy|..., path: FILE\nbatch: {global: 16, "
		"virtual_nodes: 4}\n"
		"optim: {kind: adamw, lr: 1e-4, schedule: {kind: cosine, warmup: 10}}\n", source, folder,
		folder, folder,
		own_loss ? "      # the loss is the file's own" :
		"      # the loss is cross-entropy; for another: use onnx:FILE and model.loss");
	return write_text(cmd, folder, "job.yaml", &text);
}

enum hd_err hd_onnx_take_in(struct hd_cmd *cmd, const char *source, const char *folder)
{
	struct hd_weights *weights = NULL;
	struct hd_graph graph;
	char path[HD_PATH_CAP];
	bool own_loss;
	enum hd_err err = import(cmd, source, &graph, &weights, &own_loss);

	if (!err && (size_t)snprintf(path, sizeof path, "%s/model.safetensors", folder) >= sizeof path)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path %.100s... is too long", folder);
	if (!err)
		err = hd_graph_prune(&graph, &cmd->diag);
	if (!err)
		err = hd_fs_mkdirs(&cmd->fs, folder, &cmd->diag);
	if (!err)
		err = write_graph(cmd, &graph, folder);
	if (!err)
		err = hd_export_tensors(&cmd->fs, weights->tensor, weights->ntensors, NULL, 0, path,
			&cmd->diag);
	if (!err)
		err = write_job(cmd, source, folder, own_loss);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr,
			"wrote %u nodes to %s/model.graph, %u tensors to %s and a job that begins from them "
			"to %s/job.yaml\n", graph.nnodes, folder,
			weights->ntensors, path, folder);
	hd_weights_close(weights);
	return err;
}

/* ---- out */

static enum hd_err find(struct hd_cmd *cmd, const struct hd_state *state, const char *name,
	struct hd_onnx_weight *weight)
{
	const struct hd_state_entry *e = hd_state_find(state, name);

	if (!e)
		return hd_fail(&cmd->diag, HD_E_INTEGRITY, "the checkpoint has no tensor '%s'", name);
	*weight = (struct hd_onnx_weight){ e->at, e->len_bytes };
	return HD_OK;
}

static enum hd_err collect(struct hd_cmd *cmd, const struct hd_graph *g, const struct hd_state *state,
	struct hd_onnx_values *values)
{
	struct hd_onnx_weight *at = hd_arena_take(&cmd->arena, hd_fit_count(g) + 1, sizeof *at);
	enum hd_err err = at ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the tensors");

	for (uint32_t i = 0; i < hd_fit_count(g) && !err; i++)
		err = find(cmd, state, hd_graph_text_of(g, hd_fit_value(g, i)->name), &at[i]);
	*values = (struct hd_onnx_values){ at, at ? at + g->nparams : NULL };
	return err;
}

enum hd_err hd_onnx_give_out(struct hd_cmd *cmd, const char *run, const char *path)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_onnx_values values;
	struct hd_ckpt_info info;
	struct hd_state state;
	struct hd_graph graph;
	char dir[HD_RUN_PATH];
	uint8_t *bytes = NULL;
	uint64_t len = 0;
	enum hd_err err = job ? hd_ckpt_open(cmd, run, &state, &info) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (!err)
		err = hd_session_job_of(cmd, run, job, dir);
	if (!err)
		err = hd_task_graph(job, &cmd->fs, &cmd->arena, &graph, &cmd->diag);
	if (!err)
		err = collect(cmd, &graph, &state, &values);
	if (!err)
		err = hd_onnx_export(&graph, &values, &cmd->arena, &bytes, &len, &cmd->diag);
	if (!err)
		err = hd_file_write_atomic(&cmd->fs, path, bytes, len, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the model of step %llu to %s\n", (unsigned long long)info.step, path);
	return err;
}
