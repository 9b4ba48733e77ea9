#include "cmd/ckpt/diff.h"

#include <stdio.h>
#include <string.h>

#include "run/best.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
#include "cmd/model/convert.h"

enum { KEEP_DEFAULT = 1 };

static void tell_bad(void *user, const char *folder, const char *why)
{
	(void)user;
	fprintf(stderr, "!! %s is refused: %s\n", folder, why);
}

enum hd_err hd_ckpt_meant(struct hd_cmd *cmd, const char **path)
{
	char parent[HD_PATH_CAP], best[HD_PATH_CAP];
	struct hd_ckpt_info info;

	if (!cmd->args.has[HD_OPT_BEST])
		return HD_OK;
	enum hd_err err = hd_ckpt_parent(&cmd->fs, *path, parent, sizeof parent, &cmd->diag);
	if (!err && !hd_best_find(&info, &cmd->fs, parent, NULL))
		err = hd_fail(&cmd->diag, HD_E_NOTFOUND, "%s has no best state: checkpoint.best: val_loss "
			"keeps "
			"one while a job trains", *path);
	if (!err && (size_t)snprintf(best, sizeof best, "%s/" HD_CKPT_BEST, parent) >= sizeof best)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path %.100s... is too long", *path);
	if (!err && !(*path = hd_arena_text(&cmd->arena, best, strlen(best))))
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a path");
	return err;
}

enum hd_err hd_ckpt_open(struct hd_cmd *cmd, const char *path, struct hd_state *state,
	struct hd_ckpt_info *info)
{
	enum hd_err err = hd_ckpt_meant(cmd, &path);

	if (!err)
		err = hd_ckpt_find(&cmd->fs, path, UINT64_MAX, info, tell_bad, NULL, &cmd->diag);
	if (!err)
		err = hd_ckpt_load(&cmd->fs, info->folder, &cmd->arena, state, info, &cmd->diag);
	if (err || !cmd->args.has[HD_OPT_EMA] || hd_state_use_means(state))
		return err;
	return hd_fail(&cmd->diag, HD_E_REFUSED, "%s has no means of its parameters: optim.ema.decay keeps "
		"them while a job trains", info->folder);
}

static void put_hash(struct hd_json_writer *w, const char *key, struct hd_hash hash)
{
	char hex[HD_HASH_HEX];

	hd_hash_hex(hash, hex);
	hd_json_put_text(w, key, hex);
}

static void put_info(struct hd_json_writer *w, const struct hd_ckpt_info *info)
{
	hd_json_put_text(w, "folder", info->folder);
	hd_json_put_i64(w, "step", (int64_t)info->step);
	hd_json_put_i64(w, "samples", (int64_t)info->samples);
	hd_json_put_i64(w, "bytes", (int64_t)info->len_bytes);
	put_hash(w, "digest", info->digest);
	put_hash(w, "job_hash", info->job_hash);
	hd_json_put_text(w, "model", info->model);
	hd_json_put_text(w, "kernels", info->kernels);
	put_hash(w, "kernel_fingerprint", info->fingerprint);
	put_hash(w, "data_hash", info->data_hash);
	hd_json_put_i64(w, "data_count", (int64_t)info->data_count);
	hd_json_put_i64(w, "lineage", info->lineage);
	hd_json_put_text(w, "program", info->program);
}

static const char *hex_of(struct hd_hash hash, char hex[HD_HASH_HEX])
{
	hd_hash_hex(hash, hex);
	return hex;
}

static void bad_json(struct hd_cmd *cmd, const char *folder, const char *why)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "folder", folder);
	hd_json_put_bool(w, "ok", false);
	hd_json_put_text(w, "why", why);
	hd_json_line_print(&line);
}

static void list_one(struct hd_cmd *cmd, const struct hd_ckpt_info *info)
{
	struct hd_json_line line;
	char hex[HD_HASH_HEX];

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%12llu %12llu %10.2f  %s  %s\n", (unsigned long long)info->step,
			(unsigned long long)info->samples,
			(double)info->len_bytes / 0x1p20, hex_of(info->digest, hex), info->folder);
		return;
	}
	put_info(hd_json_line_open(cmd, &line), info);
	hd_json_line_print(&line);
}

static enum hd_err verb_ckpt_ls(struct hd_cmd *cmd)
{
	const char **folders;
	uint32_t n;
	enum hd_err err = hd_ckpt_folders(&cmd->fs, cmd->args.pos[0], &cmd->arena, &folders, &n, &cmd->diag);

	if (err)
		return err;
	if (!cmd->args.has[HD_OPT_JSON])
		printf("%12s %12s %10s  %-32s  %s\n", "step", "samples", "MiB", "digest", "folder");
	for (uint32_t i = 0; i < n; i++) {
		struct hd_ckpt_info info;
		struct hd_diag why = { "" };
		if (!hd_ckpt_verify(&cmd->fs, folders[i], &info, &why))
			list_one(cmd, &info);
		else if (cmd->args.has[HD_OPT_JSON])
			bad_json(cmd, folders[i], why.text);
		else
			printf("%12s  %s: %s\n", "unreadable", folders[i], why.text);
	}
	return HD_OK;
}

const struct hd_verb hd_verb_ckpt_ls = {
	.name = "ckpt ls", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "list the checkpoints of a run",
	.opts = HD_OPTS(),
	.run = verb_ckpt_ls, .test = "program_ckpt.sh",
};

static void show_json(struct hd_cmd *cmd, const struct hd_state *state, const struct hd_ckpt_info *info)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	put_info(&w, info);
	hd_json_open_array(&w, "tensors");
	for (uint32_t i = 0; i < state->nentries; i++) {
		const struct hd_state_entry *e = &state->entry[i];
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "name", e->name);
		hd_json_put_text(&w, "dtype", hd_dtype_text((enum hd_dtype)e->dtype));
		hd_json_open_array(&w, "shape");
		for (int k = 0; k < e->rank; k++)
			hd_json_put_i64(&w, NULL, e->dim[k]);
		hd_json_close(&w);
		put_hash(&w, "digest", hd_state_tensor_digest(e));
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err verb_ckpt_show(struct hd_cmd *cmd)
{
	struct hd_ckpt_info info;
	struct hd_state state;
	char a[HD_HASH_HEX], b[HD_HASH_HEX];
	enum hd_err err = hd_ckpt_open(cmd, cmd->args.pos[0], &state, &info);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		show_json(cmd, &state, &info);
		return HD_OK;
	}
	printf("folder   %s\nmodel    %s\nstep     %llu (%llu samples)\ndigest   %s\njob      %s, lineage "
		"%u\n", info.folder, info.model,
		(unsigned long long)info.step, (unsigned long long)info.samples, hex_of(info.digest, a),
		hex_of(info.job_hash, b), info.lineage);
	printf("data     %s, %llu samples\nkernels  %s, %s\nwritten  by %s, %.2f MiB\n\n",
		hex_of(info.data_hash, a), (unsigned long long)info.data_count,
		info.kernels, hex_of(info.fingerprint, b), info.program, (double)info.len_bytes / 0x1p20);
	printf("%-40s %-5s %-20s %s\n", "tensor", "type", "shape", "digest");
	for (uint32_t i = 0; i < state.nentries; i++) {
		const struct hd_state_entry *e = &state.entry[i];
		char room[HD_MAX_DIMS * 24];
		struct hd_text shape;
		hd_text_fixed(&shape, room, sizeof room);
		for (int k = 0; k < e->rank; k++)
			hd_text_addf(&shape, "%s%lld", k ? "x" : "", (long long)e->dim[k]);
		printf("%-40s %-5s %-20s %s\n", e->name, hd_dtype_text((enum hd_dtype)e->dtype),
			e->rank ? room : "scalar",
			hex_of(hd_state_tensor_digest(e), a));
	}
	return HD_OK;
}

const struct hd_verb hd_verb_ckpt_show = {
	.name = "ckpt show", .args = "CKPT", .npos_min = 1, .npos_max = 1,
	.about = "what a checkpoint holds",
	.more = "A run directory stands for its newest whole checkpoint.",
	.opts = HD_OPTS(),
	.run = verb_ckpt_show, .test = "program_ckpt.sh",
};

static void tell_whole(struct hd_cmd *cmd, const struct hd_ckpt_info *info)
{
	char hex[HD_HASH_HEX];
	struct hd_json_line line;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("ok   %s  step %llu  %.2f MiB  %s\n", info->folder, (unsigned long long)info->step,
			(double)info->len_bytes / 0x1p20,
			hex_of(info->digest, hex));
		return;
	}
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	hd_json_put_text(w, "folder", info->folder);
	hd_json_put_bool(w, "ok", true);
	hd_json_put_i64(w, "step", (int64_t)info->step);
	put_hash(w, "digest", info->digest);
	hd_json_line_print(&line);
}

static enum hd_err verb_ckpt_verify(struct hd_cmd *cmd)
{
	const char **folders;
	uint32_t n, nbad = 0;
	enum hd_err err = hd_ckpt_folders(&cmd->fs, cmd->args.pos[0], &cmd->arena, &folders, &n, &cmd->diag);

	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++) {
		struct hd_ckpt_info info;
		struct hd_diag why = { "" };
		if (!hd_ckpt_verify(&cmd->fs, folders[i], &info, &why)) {
			tell_whole(cmd, &info);
			continue;
		}
		nbad++;
		if (cmd->args.has[HD_OPT_JSON])
			bad_json(cmd, folders[i], why.text);
		else
			printf("bad  %s: %s\n", folders[i], why.text);
	}
	return nbad ? hd_fail(&cmd->diag, HD_E_INTEGRITY, "%u of %u checkpoints are bad", nbad, n) : HD_OK;
}

const struct hd_verb hd_verb_ckpt_verify = {
	.name = "ckpt verify", .args = "CKPT", .npos_min = 1, .npos_max = 1,
	.about = "check sizes, hashes, structure and digest",
	.more = "Of a run directory every checkpoint is checked, a line each; exit 5 if any is bad.",
	.opts = HD_OPTS(),
	.run = verb_ckpt_verify, .test = "program_ckpt.sh",
};

static enum hd_err verb_ckpt_digest(struct hd_cmd *cmd)
{
	char hex[HD_HASH_HEX];
	struct hd_ckpt_info info;
	enum hd_err err = hd_ckpt_find(&cmd->fs, cmd->args.pos[0], UINT64_MAX, &info, tell_bad, NULL,
		&cmd->diag);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"step\":%llu,\"digest\":\"%s\"}\n", (unsigned long long)info.step,
			hex_of(info.digest, hex));
	else
		printf("%s\n", hex_of(info.digest, hex));
	return HD_OK;
}

const struct hd_verb hd_verb_ckpt_digest = {
	.name = "ckpt digest", .args = "CKPT", .npos_min = 1, .npos_max = 1,
	.about = "print the state digest: one hex line",
	.opts = HD_OPTS(),
	.run = verb_ckpt_digest, .test = "program_ckpt.sh",
};

static enum hd_err verb_ckpt_export(struct hd_cmd *cmd)
{
	const char *path = hd_args_text(&cmd->args, HD_OPT_SAFETENSORS, cmd->args.text[HD_OPT_OUTPUT]);
	struct hd_ckpt_info info;
	struct hd_export how;
	struct hd_state state;

	if (!path)
		return hd_fail(&cmd->diag, HD_E_INVAL, "where to? give --safetensors FILE");
	enum hd_err err = hd_ckpt_open(cmd, cmd->args.pos[0], &state, &info);
	if (!err)
		err = hd_convert_how(cmd, info.model, false, &how);
	if (!err)
		err = hd_export_state(&cmd->fs, &state, &info, &how, path, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "wrote the parameters of step %llu to %s\n", (unsigned long long)info.step,
			path);
	return err;
}

const struct hd_verb hd_verb_ckpt_export = {
	.name = "ckpt export", .args = "CKPT", .npos_min = 1, .npos_max = 1,
	.about = "write the parameters as one safetensors file",
	.more = "Our names and f32 unless --names and --dtype say otherwise.",
	.opts = HD_OPTS(HD_OPT_SAFETENSORS, HD_OPT_OUTPUT, HD_OPT_NAMES, HD_OPT_DTYPE, HD_OPT_TIED,
		HD_OPT_BEST, HD_OPT_EMA),
	.run = verb_ckpt_export, .test = "program_ckpt.sh",
};

static enum hd_err verb_ckpt_gc(struct hd_cmd *cmd)
{
	uint64_t keep = hd_args_count(&cmd->args, HD_OPT_COUNT_, KEEP_DEFAULT);
	char parent[HD_PATH_CAP];
	struct hd_ckpt_info *list;
	uint32_t n, removed = 0;
	enum hd_err err = hd_ckpt_parent(&cmd->fs, cmd->args.pos[0], parent, sizeof parent, &cmd->diag);

	if (!err && (keep < 1 || keep > UINT32_MAX))
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--count is from 1 to %u: the newest whole checkpoint always stays", UINT32_MAX);
	if (!err)
		err = hd_ckpt_list(&cmd->fs, parent, &cmd->arena, &list, &n, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_DRY_RUN])
		removed = n > keep ? n - (uint32_t)keep : 0;
	else
		err = hd_ckpt_gc(&cmd->fs, parent, (uint32_t)keep, NULL, &removed, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"removed\":%u,\"dry_run\":%s}\n", removed,
			cmd->args.has[HD_OPT_DRY_RUN] ? "true" : "false");
	else
		printf("%s %u of the checkpoints in %s\n", cmd->args.has[HD_OPT_DRY_RUN] ? "would remove" :
			"removed", removed, parent);
	return HD_OK;
}

const struct hd_verb hd_verb_ckpt_gc = {
	.name = "ckpt gc", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "remove all but the newest checkpoints",
	.opts = HD_OPTS(HD_OPT_COUNT_, HD_OPT_DRY_RUN),
	.run = verb_ckpt_gc, .test = "program_ckpt.sh",
};
