#include "cmd/model/convert.h"

#include <string.h>

#include "base/json.h"
#include "graph/model.h"
#include "graph/published.h"
#include "checkpoint/weights.h"
#include "cmd/session.h"
#include "cmd/ckpt/diff.h"
#include "cmd/model/onnx.h"

/* heddle model import, model export: weights of others become a model of ours and back. */

enum { CONFIG_BYTES = 1 << 20 };

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* ---- which model, with which arguments */

struct given { struct hd_model_arg arg[HD_MAX_ARGS]; uint32_t n; const char *model; };

static enum hd_err give(struct hd_cmd *cmd, struct given *given, const char *name, const char *value)
{
	uint32_t i = 0;

	while (i < given->n && strcmp(given->arg[i].name, name) != 0)
		i++;
	if (i == HD_MAX_ARGS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "more than %d arguments of a model", HD_MAX_ARGS);
	given->arg[i] = (struct hd_model_arg){ name, value };
	given->n = i == given->n ? i + 1 : given->n;
	return HD_OK;
}

/* What the file says, and what of it ours does otherwise. */
static enum hd_err take_config(struct hd_cmd *cmd, const char *path, const struct hd_json *json,
	struct given *given)
{
	struct hd_published said;
	enum hd_err err = hd_published_read(&said, json, path, given->model, &cmd->arena, &cmd->diag);

	for (uint32_t i = 0; !err && i < said.nargs; i++)
		err = give(cmd, given, said.arg[i].name, said.arg[i].value);
	if (err)
		return err;
	given->model = said.model ? said.model : given->model;
	if (!cmd->args.has[HD_OPT_QUIET])
		fputs(said.notes.at, stderr);
	return HD_OK;
}

/* Beside the file, or in the folder that was named. */
static enum hd_err read_config(struct hd_cmd *cmd, const char *source, struct given *given)
{
	const char *slash = strrchr(source, '/');
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	uint8_t *bytes;
	size_t len;
	bool folder = !hd_fs_stat(&cmd->fs, source, &stat, NULL) && stat.kind == HD_FILE_FOLDER;
	int n = folder ? snprintf(path, sizeof path, "%s/config.json", source)
		: snprintf(path, sizeof path, "%.*sconfig.json", slash ? (int)(slash - source) + 1 : 0,
			source);

	if ((size_t)n >= sizeof path || hd_fs_stat(&cmd->fs, path, &stat, NULL))
		return HD_OK;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, CONFIG_BYTES, &bytes, &len,
		&cmd->diag);
	if (!err)
		err = hd_json_parse(&cmd->arena, path, (const char *)bytes, len, &json, &cmd->diag);
	return err ? err : take_config(cmd, path, json, given);
}

/* What the user says counts more than what lies beside the weights. */
static enum hd_err read_args(struct hd_cmd *cmd, struct given *given)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < cmd->args.nsets && !err; i++) {
		const char *key = cmd->args.set[i], *eq = strchr(key, '=');
		key += strncmp(key, "model.args.", 11) ? 0 : 11;
		if (!eq || eq < key)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"-s %s: write ARGUMENT=VALUE; `heddle model ls` has the arguments",
				cmd->args.set[i]);
		char *name = hd_arena_text(&cmd->arena, key, (size_t)(eq - key));
		err = name ? give(cmd, given, name, eq + 1) : hd_fail(&cmd->diag, HD_E_NOMEM,
			"no memory for the arguments");
	}
	return err;
}

/* ---- import of weights */

static enum hd_err settle_model(struct hd_cmd *cmd, const char *source, struct given *given)
{
	const char *asked = cmd->args.text[HD_OPT_MODEL];
	enum hd_err err;

	*given = (struct given){ .model = asked && !strncmp(asked, "builtin:", 8) ? asked + 8 : asked };
	err = read_config(cmd, source, given);
	if (!err)
		err = read_args(cmd, given);
	if (!err && !given->model)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"which model are these the weights of? give --model NAME (`heddle model ls`) and "
			"its arguments by -s");
	return err;
}

static enum hd_err build(struct hd_cmd *cmd, const struct given *given, struct hd_graph *graph)
{
	struct hd_model_opts opts = { HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_SAMPLE };

	hd_graph_init(graph, &cmd->arena);
	return hd_model_build(graph, given->model, given->arg, given->n, &opts, &cmd->diag);
}

/* A job that trains at once, on made-up data until the user names others. */
static enum hd_err write_job(struct hd_cmd *cmd, const struct given *given, const char *folder)
{
	const struct hd_model_row *row;
	struct hd_model_value value[HD_MAX_ARGS];
	char path[HD_PATH_CAP];
	struct hd_text text;
	enum hd_err err = hd_model_find(given->model, &row, &cmd->diag);

	if (!err)
		err = hd_model_args(row, given->arg, given->n, value, &cmd->diag);
	if (err)
		return err;
	hd_text_init(&text, &cmd->arena);
	hd_text_addf(&text,
		"# Made by `heddle model import`: begins from the imported weights. Name your data, then\n# "
		"  heddle run %s/job.yaml\n"
		"job:   {name: finetune, steps: 100}\nmodel:\n  use: builtin:%s\n  args: {", folder,
		row->name);
	for (uint32_t i = 0; row->param[i].name; i++) {
		if (!hd_model_arg_listed(&row->param[i], &value[i]))
			continue;
		hd_text_addf(&text, "%s%s: ", i ? ", " : "", row->param[i].name);
		hd_model_arg_print(&text, &row->param[i], &value[i]);
	}
	hd_text_addf(&text,
		"}\n  weights: \"%s/model.safetensors\"\ndata:  {kind: synthetic}      # kind: "
		"text|idx|npy|..., path: FILE\n"
		"batch: {global: 16, virtual_nodes: 8}\noptim: {kind: adamw, lr: 1e-4, schedule: {kind: "
		"cosine, warmup: 10}}\n", folder);
	if (text.full || (size_t)snprintf(path, sizeof path, "%s/job.yaml", folder) >= sizeof path)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job file");
	return hd_file_write_atomic(&cmd->fs, path, text.at, text.len, &cmd->diag);
}

/* What the first line of an error cannot hold. */
static void print_misfits(const struct hd_cmd *cmd, const struct hd_text *full)
{
	if (full->len >= sizeof cmd->diag.text)
		fprintf(stderr, "%s\n", full->at);
}

static enum hd_err import_weights(struct hd_cmd *cmd, const char *source, const char *folder)
{
	struct hd_weights *w = NULL;
	struct given given;
	struct hd_graph graph;
	struct hd_weight_source *fit;
	struct hd_text full;
	char path[HD_PATH_CAP];
	enum hd_err err = settle_model(cmd, source, &given);

	hd_text_init(&full, &cmd->arena);
	if (!err)
		err = build(cmd, &given, &graph);
	if (!err)
		err = hd_weights_open(&w, &cmd->fs, source, &cmd->diag);
	if (!err)
		err = hd_weights_fit(w, &graph, NULL, 0, &fit, &full, &cmd->diag);
	print_misfits(cmd, &full);
	if (!err && (size_t)snprintf(path, sizeof path, "%s/model.safetensors", folder) >= sizeof path)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path %.100s... is too long", folder);
	if (!err)
		err = hd_fs_mkdirs(&cmd->fs, folder, &cmd->diag);
	if (!err)
		err = hd_export_fit(&cmd->fs, w, &graph, fit, &cmd->arena, path, &cmd->diag);
	if (!err)
		err = write_job(cmd, &given, folder);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr,
			"wrote %u tensors of builtin:%s to %s and a job that begins from them to "
			"%s/job.yaml\n", w->ntensors, given.model, path,
			folder);
	hd_weights_close(w);
	return err;
}

/* ---- which kind of file; the first row whose ending fits */

static const struct { const char *end; enum hd_err (*run)(struct hd_cmd *cmd, const char *source,
	const char *folder); } imports[] = {
	{ ".onnx", hd_onnx_take_in },
	{ "", import_weights },
};

static enum hd_err verb_model_import(struct hd_cmd *cmd)
{
	const char *source = cmd->args.pos[0], *folder = cmd->args.text[HD_OPT_OUTPUT];

	if (!folder)
		return hd_fail(&cmd->diag, HD_E_INVAL, "where to? give -o DIR");
	for (size_t i = 0; i < sizeof imports / sizeof *imports; i++)
		if (ends_with(source, imports[i].end))
			return imports[i].run(cmd, source, folder);
	return HD_E_BUG;
}

const struct hd_verb hd_verb_model_import = {
	.name = "model import", .args = "FILE|DIR", .npos_min = 1, .npos_max = 1,
	.about = "make a model of ours from published weights, or from an ONNX file",
	.more =
		"A .safetensors file, a *.safetensors.index.json with its shards, or a folder that "
		"holds either. A config.json beside them (of transformers: gpt2, llama, bert) gives "
		"model and arguments: each of its keys is read, or refused by name; for arguments -s "
		"ARGUMENT=VALUE counts more. Writes DIR/model.safetensors and DIR/job.yaml.\n"
		"Of FILE.onnx (exported for training) the graph too, DIR/model.graph; nodes that are "
		"not supported are listed, one by one.",
	.opts = HD_OPTS(HD_OPT_MODEL, HD_OPT_SET, HD_OPT_OUTPUT),
	.run = verb_model_import, .test = "program_weights.sh",
};

/* ---- export */

enum hd_err hd_convert_how(struct hd_cmd *cmd, const char *model, bool torch, struct hd_export *how)
{
	const char *names = cmd->args.text[HD_OPT_NAMES], *dtype = cmd->args.text[HD_OPT_DTYPE],
		*tied = cmd->args.text[HD_OPT_TIED];

	*how = (struct hd_export){ .family = (names ? !strcmp(names, "torch") : torch) ?
		hd_export_family(model) : NULL,
		.bf16 = dtype && !strcmp(dtype, "bf16"), .both = tied && !strcmp(tied, "both") };
	if (tied && !how->family)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--tied chooses among public names; it goes with --names torch");
	return HD_OK;
}

static bool has_adapters(const struct hd_state *state)
{
	for (uint32_t i = 0; i < state->nentries; i++)
		if (state->entry[i].group == HD_STATE_MODEL && hd_lora_is_adapter(state->entry[i].name))
			return true;
	return false;
}

/* Other programs do not know our adapters: they are merged into the weights that they change. */
static enum hd_err merge(struct hd_cmd *cmd, const char *run, struct hd_state *state)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_patterns pattern;
	struct hd_graph graph;
	struct hd_lora lora;
	char dir[HD_RUN_PATH];
	enum hd_err err = job ? hd_session_job_of(cmd, run, job, dir) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (!err && !hd_task_lora(job, &pattern, &lora))
		err = hd_fail(&cmd->diag, HD_E_INTEGRITY,
			"%s has adapters, its job has none: another job's checkpoint?", run);
	if (!err)
		err = hd_task_graph(job, &cmd->fs, &cmd->arena, &graph, &cmd->diag);
	return err ? err : hd_lora_merge(state, &graph, &lora, &cmd->diag);
}

static enum hd_err export_weights(struct hd_cmd *cmd, const char *run, const char *path)
{
	struct hd_ckpt_info info;
	struct hd_state state;
	struct hd_export how;
	enum hd_err err = hd_ckpt_open(cmd, run, &state, &info);

	if (!err)
		err = hd_convert_how(cmd, info.model, true, &how);
	if (!err && has_adapters(&state))
		err = merge(cmd, run, &state);
	if (!err)
		err = hd_export_state(&cmd->fs, &state, &info, &how, path, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the parameters of step %llu to %s\n", (unsigned long long)info.step,
			path);
	return err;
}

static const struct { const char *end; enum hd_err (*run)(struct hd_cmd *cmd, const char *run,
	const char *path); } exports[] = {
	{ ".safetensors", export_weights },
	{ ".onnx", hd_onnx_give_out },
};

static enum hd_err verb_model_export(struct hd_cmd *cmd)
{
	const char *path = cmd->args.text[HD_OPT_OUTPUT];

	if (!path)
		return hd_fail(&cmd->diag, HD_E_INVAL, "where to? give -o FILE.safetensors or -o FILE.onnx");
	for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
		if (ends_with(path, exports[i].end))
			return exports[i].run(cmd, cmd->args.pos[0], path);
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"-o %s: its ending says what to write; this build writes .safetensors and .onnx", path);
}

const struct hd_verb hd_verb_model_export = {
	.name = "model export", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "write a run's newest checkpoint for others to load",
	.more =
		"-o FILE.safetensors: public names unless --names heddle, what "
		"load_state_dict(strict=True) of the PyTorch module takes.\n"
		"-o FILE.onnx: the graph from x to logits for inference, opset 17, weights inside.",
	.opts = HD_OPTS(HD_OPT_OUTPUT, HD_OPT_NAMES, HD_OPT_DTYPE, HD_OPT_TIED),
	.run = verb_model_export, .test = "program_weights.sh",
};
