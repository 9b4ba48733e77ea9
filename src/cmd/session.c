#include "cmd/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "run/report.h"
#include "daemon/daemon.h"
#include "cmd/json_line.h"
#include "cmd/kernels.h"

enum {
	HD_JOB_BYTES = 1 << 20,
	HD_SESSION_OWN = 2,               /* keys that have options of their own */
	/* a plan, records, the store: what a run writes beside its checkpoints at least */
	HD_SPACE_OF_RUN = 1 << 17,
};

enum hd_err hd_session_environment(struct hd_cmd *cmd, struct hd_job_sets *sets)
{
	return hd_job_sets_environment(sets, hd_proc_environment(), &cmd->diag);
}

static void warn_of_variables(struct hd_cmd *cmd)
{
	struct hd_text lines;

	if (cmd->args.has[HD_OPT_QUIET])
		return;
	hd_text_init(&lines, &cmd->arena);
	hd_job_sets_warn(hd_proc_environment(), &lines);
	if (lines.len)
		fputs(lines.at, stderr);
}

static enum hd_err from_options(struct hd_cmd *cmd, struct hd_job_sets *sets)
{
	static const struct { enum hd_opt opt; const char *key; } own[] = { { HD_OPT_LISTEN, "net.listen" },
		{ HD_OPT_KEY, "net.key" } };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < HD_SESSION_OWN; i++)
		if (cmd->args.has[own[i].opt])
			hd_job_sets_option(sets, own[i].key, cmd->args.text[own[i].opt]);
	for (uint32_t i = 0; i < cmd->args.nsets && !err; i++)
		err = hd_job_sets_word(sets, cmd->args.set[i], &cmd->diag);
	return err;
}

static bool exists(struct hd_cmd *cmd, const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(&cmd->fs, path, &stat, NULL);
}

const char *hd_session_model_file(const struct hd_job *job)
{
	const char *use = hd_job_text(job, HD_JOB_MODEL), *colon = strchr(use, ':');

	return colon && (!strncmp(use, "onnx:", 5) || !strncmp(use, "graph:", 6)) ? colon + 1 : NULL;
}

/* Files that a job names by relative paths: where they lie from here, else from `folder`. What fixes the
 * result is hashed already. */
static void find_from(struct hd_cmd *cmd, const char *folder, size_t n, struct hd_job *job)
{
	static const int files[] = { HD_JOB_MODEL, HD_JOB_WEIGHTS, HD_JOB_DATA_PATH, HD_JOB_NET_KEY };
	struct hd_text at;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct hd_job_value *v = &job->value[files[i]];
		const char *file = files[i] == HD_JOB_MODEL ? hd_session_model_file(job) : v->text;
		if (v->is_none || !file || file[0] == '/' || exists(cmd, file))
			continue;
		hd_text_init(&at, &cmd->arena);
		hd_text_put(&at, v->text, (size_t)(file - v->text));
		hd_text_put(&at, folder, n);
		hd_text_addf(&at, "/%s", file);
		if (!at.full && exists(cmd, at.at + (file - v->text)))
			v->text = at.at;
	}
}

/* Where `path` is the job of a run: what lies beside it under this name. NULL: it is not, or there is
 * none. */
static const char *beside(struct hd_cmd *cmd, const char *path, const char *other)
{
	static const char resolved[] = "job.resolved.json";
	size_t len = strlen(path), name = sizeof resolved - 1;
	struct hd_text at;

	if (len < name || strcmp(path + len - name, resolved) != 0)
		return NULL;
	hd_text_init(&at, &cmd->arena);
	hd_text_put(&at, path, len - name);
	hd_text_add(&at, other);
	return !at.full && exists(cmd, at.at) ? at.at : NULL;
}

/* A scheduler starts its processes in an environment of its own, which is not that of who submitted the
 * job. */
static bool is_scheduled(struct hd_cmd *cmd, const char *path) { return beside(cmd, path,
	HD_RUN_LEASE) != NULL; }

/* The job of a run: relative paths begin where the run was begun. */
static enum hd_err find_files(struct hd_cmd *cmd, const char *path, struct hd_job *job)
{
	const char *at = beside(cmd, path, HD_RUN_FOLDER);
	uint8_t *folder;
	size_t n;

	if (!at)
		return HD_OK;
	enum hd_err err = hd_file_read_all(&cmd->fs, at, &cmd->arena, HD_PATH_CAP, &folder, &n, &cmd->diag);
	if (!err)
		find_from(cmd, (const char *)folder, n, job);
	return err;
}

static enum hd_err parse(struct hd_cmd *cmd, const char *name, const char *bytes, size_t len, bool obeys,
	struct hd_job *job)
{
	struct hd_job_sets sets;
	struct hd_text warnings;
	enum hd_err err = hd_job_sets_init(&sets, HD_MAX_SETS + HD_SESSION_OWN, &cmd->arena, &cmd->diag);

	if (!err && obeys)
		err = hd_session_environment(cmd, &sets);
	if (!err && obeys)
		warn_of_variables(cmd);
	if (!err)
		err = from_options(cmd, &sets);
	if (err)
		return err;
	hd_text_init(&warnings, &cmd->arena);
	err = hd_job_parse(job, name, bytes, len, sets.set, sets.n, &cmd->arena, &cmd->diag, &warnings);
	if (!err && warnings.len && !cmd->args.has[HD_OPT_QUIET])
		fputs(warnings.at, stderr);
	return err;
}

enum hd_err hd_session_job_text(struct hd_cmd *cmd, const char *name, const char *text, size_t len,
	const char *folder, struct hd_job *job)
{
	enum hd_err err = parse(cmd, name, text, len, true, job);

	if (!err)
		find_from(cmd, folder, strlen(folder), job);
	return err;
}

enum hd_err hd_session_job(struct hd_cmd *cmd, const char *path, struct hd_job *job, const char **bytes,
	size_t *len)
{
	uint8_t *file;
	size_t n;

	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_JOB_BYTES, &file, &n, &cmd->diag);
	if (err)
		return err;
	err = parse(cmd, path, (const char *)file, n, !is_scheduled(cmd, path), job);
	if (!err)
		err = find_files(cmd, path, job);
	if (bytes)
		*bytes = (const char *)file;
	if (len)
		*len = n;
	return err;
}

enum hd_err hd_session_check_model(struct hd_cmd *cmd, const struct hd_job *job)
{
	const struct hd_job_value *args = &job->value[HD_JOB_MODEL_ARGS], *use = &job->value[HD_JOB_MODEL];
	const struct hd_job_value *at = args->line ? args : use;
	struct hd_diag why = { "" };
	struct hd_graph graph;
	enum hd_err err = hd_task_graph(job, &cmd->fs, &cmd->arena, &graph, &why);

	if (!err)
		return hd_task_shard(job, &graph, &cmd->diag);
	return at->line ? hd_fail(&cmd->diag, err, "%s:%u:%u: %s", job->file, at->line, at->column, why.text)
	    : hd_fail(&cmd->diag, err, "%s: %s", job->file, why.text);
}

/* "auto", "auto:8": chosen, of so many cores. */
static bool parse_auto(const char *text, uint32_t *cores)
{
	uint64_t n = 0;

	if (strncmp(text, "auto", 4) != 0 || (text[4] && (text[4] != ':' ||
		hd_num_u64(text + 5, HD_MAX_DEVICES, &n, NULL) || n == 0)))
		return false;
	*cores = (uint32_t)n;
	return true;
}

/* "4" = cores:4; "cores:2x2" = two devices of two threads; "reference:1"; "null:4". */
static enum hd_err parse_devices(struct hd_cmd *cmd, const char *text, struct hd_worker_spec *spec)
{
	static const struct { const char *word, *kind; } kinds[] = { { "cores", "cpu" }, { "cpu", "cpu" },
		{ "reference", "reference" }, { "null", "null" } };
	const char *colon = strchr(text, ':'), *counts = colon ? colon + 1 : text, *x = strchr(counts, 'x');
	char number[HD_NUM_CAP] = "";
	uint64_t d = 0, t = 1;
	size_t i = 0;

	spec->kind = "cpu";
	for (; colon && i < sizeof kinds / sizeof *kinds; i++)
		if (strlen(kinds[i].word) == (size_t)(colon - text) &&
			!strncmp(kinds[i].word, text, (size_t)(colon - text))) {
			spec->kind = kinds[i].kind;
			break;
		}
	if (i == sizeof kinds / sizeof *kinds)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"devices \"%s\": this build has auto, auto:N, cores:N, cores:NxT, reference:N and "
			"null:N", text);
	snprintf(number, sizeof number, "%.*s", x ? (int)(x - counts) : (int)sizeof number - 1, counts);
	if (hd_num_u64(number, HD_MAX_DEVICES, &d, NULL) || d == 0 ||
		(x && (hd_num_u64(x + 1, HD_MAX_THREADS, &t, NULL) || t == 0)))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"devices \"%s\": write a number from 1 to %d, as 4, cores:4 or cores:2x2 (two "
			"devices of two threads, at most %d)", text,
			HD_MAX_DEVICES, HD_MAX_THREADS);
	spec->ndevices = (uint32_t)d;
	spec->nthreads = (uint32_t)t;
	return HD_OK;
}

enum hd_err hd_session_put_job(struct hd_cmd *cmd, struct hd_rundir *dir, const struct hd_job *job)
{
	struct hd_text text;

	char folder[HD_PATH_CAP];

	hd_text_init(&text, &cmd->arena);
	hd_job_json(job, false, &text);
	hd_text_add(&text, "\n");
	enum hd_err err = hd_rundir_put(dir, "job.resolved.json", text.at, text.len, &cmd->diag);
	if (!err)
		err = hd_proc_folder(folder, sizeof folder, &cmd->diag);
	return err ? err : hd_rundir_put(dir, HD_RUN_FOLDER, folder, strlen(folder), &cmd->diag);
}

/* Threads given alone divide the cores by hand. */
static enum hd_err take_threads(struct hd_cmd *cmd, const struct hd_job *job, struct hd_run_options *options)
{
	struct hd_cores cores;
	uint64_t t = cmd->args.count[HD_OPT_THREADS], d;

	if (!cmd->args.has[HD_OPT_THREADS])
		return HD_OK;
	if (t < 1 || t > HD_MAX_THREADS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--threads is from 1 to %d", HD_MAX_THREADS);
	options->worker.nthreads = (uint32_t)t;
	if (options->worker.ndevices)
		return HD_OK;
	hd_cores_usable(&cores);
	d = (options->auto_cores ? options->auto_cores : cores.n) / t;
	options->worker.ndevices = (uint32_t)(d < 1 ? 1 : d < job->nvns ? d : job->nvns);
	return HD_OK;
}

enum hd_err hd_session_devices(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options)
{
	const char *given = cmd->args.has[HD_OPT_DEVICES] ? cmd->args.text[HD_OPT_DEVICES] :
		job->value[HD_JOB_DEVICES].text;

	options->worker = (struct hd_worker_spec){ .kind = "cpu", .nthreads = 1, .spin = true };
	if (!job->value[HD_JOB_MEMORY].is_auto)
		options->worker.memory_limit_bytes = (uint64_t)hd_job_int(job, HD_JOB_MEMORY);
	enum hd_err err = parse_auto(given, &options->auto_cores) ? HD_OK : parse_devices(cmd, given,
		&options->worker);
	if (!err && !strcmp(options->worker.kind, "cpu"))
		err = hd_kernels_settle(cmd, job, NULL);
	options->worker.kernels = hd_kernels_of(job);
	return err ? err : take_threads(cmd, job, options);
}

static void told_of_bad(void *user, const char *folder, const char *why)
{
	(void)user;
	fprintf(stderr, "!! %s is refused: %s; trying the next older one\n", folder, why);
}

enum hd_err hd_session_job_of(struct hd_cmd *cmd, const char *path, struct hd_job *job, char dir[HD_RUN_PATH])
{
	static const char *const up[] = { "", "/..", "/../.." };
	char yaml[HD_PATH_CAP];
	struct hd_stat stat;

	for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
		int len = snprintf(dir, HD_RUN_PATH, "%s%s", path, up[i]);
		if (len >= HD_RUN_PATH || snprintf(yaml, sizeof yaml, "%s/job.resolved.json",
			dir) >= (int)sizeof yaml)
			return hd_fail(&cmd->diag, HD_E_NOTFOUND, "%.200s...: the path is too long", path);
		if (!hd_fs_stat(&cmd->fs, yaml, &stat, NULL))
			return hd_session_job(cmd, yaml, job, NULL, NULL);
	}
	return hd_fail(&cmd->diag, HD_E_NOTFOUND,
		"%s is no run: neither it nor what holds it has a job.resolved.json", path);
}

static void bad_checkpoint(void *user, const char *folder, const char *why)
{
	fprintf(stderr, "!! %s is refused: %s; trying the next older one\n", folder, why);
	hd_rundir_event(user, "checkpoint_bad", 0, "");
}

/* The next checkpoint is written before an old one goes. */
static enum hd_err has_room(struct hd_cmd *cmd, const struct hd_rundir *dir, const struct hd_job *job,
	const struct hd_ckpt_info *info)
{
	char parent[HD_PATH_CAP];

	enum hd_err err = hd_fs_has_space(&cmd->fs, dir->path, HD_SPACE_OF_RUN, "going on with the run",
		&cmd->diag);
	if (!err && !hd_ckpt_place(&cmd->fs, dir->path, hd_job_text(job, HD_JOB_CKPT_DIR), parent,
		sizeof parent, NULL))
		err = hd_fs_has_space(&cmd->fs, parent, info->len_bytes + HD_SPACE_OF_RUN,
			"the next checkpoint", &cmd->diag);
	return err;
}

enum hd_err hd_session_newest(struct hd_cmd *cmd, struct hd_rundir *dir, const struct hd_job *job,
	uint64_t from, struct hd_ckpt_info *info)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_ckpt_find(&cmd->fs, dir->path, from, info, bad_checkpoint, dir, &diag);
	char parent[HD_PATH_CAP];
	struct hd_stat stat;

	if (err != HD_E_NOTFOUND || from != UINT64_MAX)
		return err ? hd_fail(&cmd->diag, err, "%s", diag.text) : has_room(cmd, dir, job, info);
	err = hd_ckpt_place(&cmd->fs, dir->path, hd_job_text(job, HD_JOB_CKPT_DIR), parent, sizeof parent,
		&diag);
	if (!err && hd_fs_stat(&cmd->fs, parent, &stat, NULL))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"%s, where the checkpoints of %s were to lie, is gone: bring it back, or begin the "
			"job anew "
			"with `heddle run %s/job.yaml`", parent, dir->path, dir->path);
	if (err && err != HD_E_NOTFOUND)
		return hd_fail(&cmd->diag, err, "%s", diag.text);
	*info = (struct hd_ckpt_info){ .step = 0 };
	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> %s ended before its first checkpoint: it goes on at step 0\n", dir->path);
	return HD_OK;
}

enum hd_err hd_session_open(struct hd_cmd *cmd, const char *run_path, struct hd_session *s)
{
	struct hd_run_options options = { .quiet_disk = true };
	enum hd_err err;

	*s = (struct hd_session){ 0 };
	err = hd_ckpt_find(&cmd->fs, run_path, UINT64_MAX, &s->ckpt, told_of_bad, NULL, &cmd->diag);
	if (err)
		return err;
	err = hd_session_job_of(cmd, run_path, &s->job, s->dir);
	if (!err)
		err = hd_kernels_settle(cmd, &s->job, s->ckpt.kernels);
	if (!err)
		err = hd_session_devices(cmd, &s->job, &options);
	if (!err)
		err = hd_run_create(&s->run, &s->job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	if (!err)
		err = hd_run_restore(s->run, s->ckpt.folder, false, &cmd->diag);
	if (err)
		hd_session_close(s);
	return err;
}

void hd_session_close(struct hd_session *s)
{
	hd_run_destroy(s->run);
	s->run = NULL;
}

const char *hd_session_split(struct hd_cmd *cmd, const struct hd_session *s)
{
	const struct hd_dataset *data = hd_run_task(s->run)->data;
	uint32_t valid = hd_dataset_split(data, "valid");

	if (cmd->args.has[HD_OPT_SPLIT])
		return cmd->args.text[HD_OPT_SPLIT];
	return valid != HD_NONE && data->split[valid].count ? "valid" : "test";
}

static void end_json(struct hd_cmd *cmd, const struct hd_ui *ui, uint64_t step, const struct hd_rundir *dir,
	const char *hex, enum hd_err err)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "run", dir->path);
	hd_json_put_i64(w, "step", (int64_t)step);
	if (ui->steps) {
		hd_json_put_f32(w, "loss_first", (float)ui->first_loss);
		hd_json_put_f32(w, "loss_last", (float)ui->last_loss);
	} else {
		hd_json_put_null(w, "loss_first");
		hd_json_put_null(w, "loss_last");
	}
	hd_json_put_text(w, "digest", hex);
	hd_json_put_i64(w, "exit", hd_err_exit(err));
	hd_json_line_print(&line);
}

static void print_end(struct hd_cmd *cmd, struct hd_ui *ui, struct hd_run *run, const struct hd_rundir *dir,
	enum hd_err err)
{
	uint64_t step = hd_worker_at(hd_run_worker(run));
	char hex[HD_HASH_HEX];

	hd_hash_hex(hd_worker_digest(hd_run_worker(run)), hex);
	hd_ui_end(ui);
	if (cmd->args.has[HD_OPT_JSON]) {
		end_json(cmd, ui, step, dir, hex, err);
		return;
	}
	hd_ui_say(ui, "state    %s  (step %llu)", hex, (unsigned long long)step);
	hd_ui_say(ui, "report   %s/report.html", dir->path);
	if (dir->lines_lost)
		hd_ui_say(ui, "!! some lines of metrics or events could not be written");
}

enum hd_err hd_session_stop(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

enum hd_err hd_session_train(struct hd_cmd *cmd, struct hd_ui *ui, struct hd_run *run, struct hd_rundir *dir)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_run_train(run, &cmd->diag);

	if (hd_report_write(dir, &why))
		hd_ui_say(ui, "!! no report: %s", why.text);
	print_end(cmd, ui, run, dir, err);
	return err;
}
