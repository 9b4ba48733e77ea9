#include "cmd/model/convert.h"

#include <string.h>

#include "graph/published.h"
#include "checkpoint/adopt.h"
#include "checkpoint/peft.h"
#include "cmd/session.h"
#include "cmd/ckpt/diff.h"

/* heddle model import, model export: weights of others become a model of ours and back. */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* -s ARGUMENT=VALUE, each. */
static enum hd_err read_args(struct hd_cmd *cmd, struct hd_model_arg **out)
{
	struct hd_model_arg *arg = hd_arena_take(&cmd->arena, cmd->args.nsets + 1, sizeof *arg);

	if (!arg)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the arguments");
	for (uint32_t i = 0; i < cmd->args.nsets; i++) {
		const char *key = cmd->args.set[i], *eq = strchr(key, '=');
		key += strncmp(key, "model.args.", 11) ? 0 : 11;
		if (!eq || eq < key)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"-s %s: write ARGUMENT=VALUE; `heddle model ls` has the arguments",
				cmd->args.set[i]);
		arg[i] = (struct hd_model_arg){ hd_arena_text(&cmd->arena, key, (size_t)(eq - key)), eq + 1 };
		if (!arg[i].name)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the arguments");
	}
	*out = arg;
	return HD_OK;
}

static enum hd_err import_weights(struct hd_cmd *cmd, const char *source, const char *folder,
	struct hd_adopted *made)
{
	struct hd_model_arg *arg = NULL;
	enum hd_err err = read_args(cmd, &arg);

	return err ? err : hd_adopt_weights(made, &cmd->fs, source, folder, cmd->args.text[HD_OPT_MODEL], arg,
		cmd->args.nsets, &cmd->arena, &cmd->diag);
}

static enum hd_err import_peft(struct hd_cmd *cmd, const char *source, const char *folder,
	struct hd_adopted *made)
{
	struct hd_model_arg *arg = NULL;
	enum hd_err err = read_args(cmd, &arg);

	return err ? err : hd_adopt_peft(made, &cmd->fs, source, cmd->args.text[HD_OPT_BASE], folder,
		cmd->args.text[HD_OPT_MODEL], arg, cmd->args.nsets, &cmd->arena, &cmd->diag);
}

static enum hd_err import_onnx(struct hd_cmd *cmd, const char *source, const char *folder,
	struct hd_adopted *made)
{
	return hd_adopt_onnx(made, &cmd->fs, source, folder, &cmd->arena, &cmd->diag);
}

static void say_made(const char *folder, const struct hd_adopted *made)
{
	if (made->model)
		fprintf(stderr,
			"wrote %u tensors of builtin:%s to %s and a job that begins from them to "
			"%s/job.yaml\n", made->ntensors, made->model, made->weights, folder);
	else
		fprintf(stderr,
			"wrote %u nodes to %s/model.graph, %u tensors to %s and a job that begins from them "
			"to %s/job.yaml\n", made->nnodes, folder, made->ntensors, made->weights, folder);
}

/* ---- which kind of file; the first row whose ending fits */

static const struct { const char *end; enum hd_err (*run)(struct hd_cmd *cmd, const char *source,
	const char *folder, struct hd_adopted *made); } imports[] = {
	{ ".onnx", import_onnx },
	{ "", import_weights },
};

static enum hd_err verb_model_import(struct hd_cmd *cmd)
{
	const char *source = cmd->args.pos[0], *folder = cmd->args.text[HD_OPT_OUTPUT];

	if (!folder)
		return hd_fail(&cmd->diag, HD_E_INVAL, "where to? give -o DIR");
	struct hd_adopted made = { .model = NULL };
	struct hd_stat stat;
	size_t i = 0;
	while (!ends_with(source, imports[i].end))
		i++;                              /* the last ending fits each name */
	enum hd_err err = hd_fs_stat(&cmd->fs, source, &stat, &cmd->diag);
	const bool peft = !err && stat.kind == HD_FILE_FOLDER && hd_peft_is(&cmd->fs, source);
	if (!err && cmd->args.text[HD_OPT_BASE] && !peft)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--base goes with a folder of an adapter, and %s has "
			"no adapter_config.json", source);
	if (!err)                         /* a folder that is not there has no config.json either */
		err = peft ? import_peft(cmd, source, folder, &made) : imports[i].run(cmd, source, folder,
			&made);
	if (made.notes.len && (err || !cmd->args.has[HD_OPT_QUIET]))
		fputs(made.notes.at, stderr);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		say_made(folder, &made);
	return err;
}

const struct hd_verb hd_verb_model_import = {
	.name = "model import", .args = "FILE|DIR", .npos_min = 1, .npos_max = 1,
	.about = "import a model from published weights or an ONNX file",
	.more =
		"A .safetensors file, a *.safetensors.index.json with its shards, or a folder that "
		"holds either. A config.json beside them (of transformers, whose model type "
		"`heddle model ls` names) gives "
		"model and arguments: each of its keys is read, or refused by name; for arguments -s "
		"ARGUMENT=VALUE counts more. Writes DIR/model.safetensors and DIR/job.yaml.\n"
		"A folder with adapter_config.json is an adapter of peft (LoRA): --base DIR holds the model "
		"that it is of, if the file does not name a folder. Both are in the job, which trains on "
		"from them.\n"
		"Of FILE.onnx (exported for training) the graph too, DIR/model.graph; nodes that are "
		"not supported are listed, one by one.",
	.opts = HD_OPTS(HD_OPT_MODEL, HD_OPT_SET, HD_OPT_OUTPUT, HD_OPT_BASE),
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
	if (names && !strcmp(names, "peft"))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--names peft goes with `heddle model export RUN -o DIR`");
	if (tied && !how->family)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--tied chooses among public names; it goes with --names torch");
	return HD_OK;
}

static enum hd_err merge(struct hd_cmd *cmd, const char *run, struct hd_state *state)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_diag why = { "" };
	char dir[HD_RUN_PATH];
	enum hd_err err = job ? hd_session_job_of(cmd, run, job, dir) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (err)
		return err;
	err = hd_task_merge(job, &cmd->fs, &cmd->arena, state, &why);
	return err ? hd_fail(&cmd->diag, err, "%s: %s", run, why.text) : HD_OK;
}

/* `whole`: with the names of the class that config.json names, not of what it holds. */
static enum hd_err write_weights(struct hd_cmd *cmd, const char *run, const char *path, bool whole)
{
	struct hd_ckpt_info info;
	struct hd_state state;
	struct hd_export how;
	enum hd_err err = hd_ckpt_open(cmd, run, &state, &info);

	if (!err)
		err = hd_convert_how(cmd, info.model, true, &how);
	if (!err && whole && how.family)
		how.prefix = how.family->prefix[0];
	if (!err && hd_lora_any(&state))
		err = merge(cmd, run, &state);
	if (!err)
		err = hd_export_state(&cmd->fs, &state, &info, &how, path, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the parameters of step %llu to %s\n", (unsigned long long)info.step,
			path);
	return err;
}

static enum hd_err export_weights(struct hd_cmd *cmd, const char *run, const char *path)
{
	return write_weights(cmd, run, path, false);
}

static enum hd_err export_onnx(struct hd_cmd *cmd, const char *run, const char *path)
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
		err = hd_onnx_values_of(&values, &graph, &state, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_onnx_export(&graph, &values, &cmd->arena, &bytes, &len, &cmd->diag);
	if (!err)
		err = hd_file_write_atomic(&cmd->fs, path, bytes, len, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the model of step %llu to %s\n", (unsigned long long)info.step, path);
	return err;
}

/* ---- a folder, as the library of published models writes it */

/* The built-in model of a job: its row and its arguments. */
static enum hd_err model_of(struct hd_cmd *cmd, const struct hd_job *job, const struct hd_model_row **row,
	struct hd_model_value value[HD_MAX_ARGS])
{
	struct hd_model_arg arg[HD_JOB_MAX_ARGS];
	const char *use = hd_job_text(job, HD_JOB_MODEL);
	const struct hd_job_value *args = &job->value[HD_JOB_MODEL_ARGS];

	if (strncmp(use, "builtin:", 8) != 0)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s is no built-in model: it has no config.json; give -o "
			"FILE.safetensors or -o FILE.onnx", use);
	for (uint32_t i = 0; i < args->nargs; i++)
		arg[i] = (struct hd_model_arg){ args->arg[i].name, args->arg[i].text };
	enum hd_err err = hd_model_find(use + 8, row, &cmd->diag);
	return err ? err : hd_model_args(*row, arg, args->nargs, value, &cmd->diag);
}

static enum hd_err config_of(struct hd_cmd *cmd, const char *run, struct hd_text *text)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_model_value value[HD_MAX_ARGS];
	const struct hd_model_row *row;
	char dir[HD_RUN_PATH];
	enum hd_err err = job ? hd_session_job_of(cmd, run, job, dir) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (!err)
		err = model_of(cmd, job, &row, value);
	return err ? err : hd_published_write(row->name, value, text, &cmd->diag);
}

/* ---- adapters, as peft keeps them */

static const char *head_of(const struct hd_model_row *row, const struct hd_model_value *value)
{
	for (int i = 0; row->param[i].name; i++)
		if (!strcmp(row->param[i].name, "head"))
			return value[i].word;
	return "";
}

static enum hd_err export_peft(struct hd_cmd *cmd, const char *run, const char *folder)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_model_value value[HD_MAX_ARGS];
	const struct hd_model_row *row;
	struct hd_patterns pattern;
	struct hd_ckpt_info info;
	struct hd_state state;
	struct hd_graph graph;
	struct hd_lora lora;
	char dir[HD_RUN_PATH];
	enum hd_err err = job ? hd_ckpt_open(cmd, run, &state, &info) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (!err)
		err = hd_session_job_of(cmd, run, job, dir);
	if (!err && !hd_task_lora(job, &pattern, &lora))
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"%s has no adapters (model.lora); leave out --names peft",
			run);
	if (!err && (cmd->args.text[HD_OPT_DTYPE] || cmd->args.text[HD_OPT_TIED]))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--names peft writes f32 under one name: leave out "
			"--dtype and --tied");
	if (!err)
		err = model_of(cmd, job, &row, value);
	if (!err)
		err = hd_task_graph(job, &cmd->fs, &cmd->arena, &graph, &cmd->diag);
	if (err)
		return err;
	err = hd_peft_export(&cmd->fs, &(struct hd_peft_source){ &state, &graph, &lora, row->name,
		head_of(row, value), cmd->args.text[HD_OPT_BASE] }, folder, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the adapters of step %llu to %s\n", (unsigned long long)info.step,
			folder);
	return err;
}

/* config.json comes last: a folder that has one is whole. */
static enum hd_err export_folder(struct hd_cmd *cmd, const char *run, const char *folder)
{
	char weights[HD_PATH_CAP], config[HD_PATH_CAP];
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	enum hd_err err = config_of(cmd, run, &text);
	if (!err && ((size_t)snprintf(weights, sizeof weights, "%s/model.safetensors",
		folder) >= sizeof weights ||
		(size_t)snprintf(config, sizeof config, "%s/config.json", folder) >= sizeof config))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path %.100s... is too long", folder);
	if (!err)
		err = hd_fs_mkdirs(&cmd->fs, folder, &cmd->diag);
	if (!err)
		err = write_weights(cmd, run, weights, true);
	return err ? err : hd_file_write_atomic(&cmd->fs, config, text.at, text.len, &cmd->diag);
}

static const struct { const char *end; enum hd_err (*run)(struct hd_cmd *cmd, const char *run,
	const char *path); } exports[] = {
	{ ".safetensors", export_weights },
	{ ".onnx", export_onnx },
};

static enum hd_err verb_model_export(struct hd_cmd *cmd)
{
	const char *path = cmd->args.text[HD_OPT_OUTPUT];

	if (!path)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"where to? give -o FILE.safetensors, -o FILE.onnx or -o DIR");
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const bool peft = cmd->args.text[HD_OPT_NAMES] && !strcmp(cmd->args.text[HD_OPT_NAMES], "peft");
	if (peft && !strchr(name, '.'))
		return export_peft(cmd, cmd->args.pos[0], path);
	if (cmd->args.text[HD_OPT_BASE] && !peft)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--base goes with --names peft");
	for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
		if (ends_with(path, exports[i].end))
			return exports[i].run(cmd, cmd->args.pos[0], path);
	if (!strchr(name, '.'))
		return export_folder(cmd, cmd->args.pos[0], path);
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"-o %s: its ending says what to write; this build writes .safetensors, .onnx, and without an "
		"ending a folder", path);
}

const struct hd_verb hd_verb_model_export = {
	.name = "model export", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "write a run's newest checkpoint for others to load",
	.more =
		"-o FILE.safetensors: public names unless --names heddle, what "
		"load_state_dict(strict=True) of the PyTorch module takes.\n"
		"-o DIR: the same with config.json, as transformers' from_pretrained() takes it, of a "
		"model whose kind is published.\n"
		"-o DIR --names peft: adapters alone (model.lora), adapter_config.json and "
		"adapter_model.safetensors, as PeftModel.from_pretrained() takes them.\n"
		"-o FILE.onnx: the graph from x to logits for inference, opset 17, weights inside.",
	.opts = HD_OPTS(HD_OPT_OUTPUT, HD_OPT_NAMES, HD_OPT_DTYPE, HD_OPT_TIED, HD_OPT_BEST, HD_OPT_EMA,
		HD_OPT_BASE),
	.run = verb_model_export, .test = "program_weights.sh",
};
