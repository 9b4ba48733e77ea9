#include "cmd/session.h"

#include <stdlib.h>
#include <string.h>

#include "sys/process.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "data/graph_layout.h"
#include "job/graph.h"
#include "run/best.h"
#include "run/forecast.h"
#include "run/functions_bill.h"
#include "run/report.h"
#include "daemon/daemon.h"
#include "cmd/ckpt/diff.h"
#include "cmd/json_line.h"

enum {
	HD_SESSION_OWN = 4,               /* keys that have options of their own */
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
		{ HD_OPT_KEY, "net.key" }, { HD_OPT_LAUNCH, "launch.kind" } };
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_RECORD])
		hd_job_sets_option(sets, "trace.record", "true");
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (cmd->args.has[own[i].opt])
			hd_job_sets_option(sets, own[i].key, cmd->args.text[own[i].opt]);
	for (uint32_t i = 0; i < cmd->args.nsets && !err; i++)
		err = hd_job_sets_word(sets, cmd->args.set[i], &cmd->diag);
	return err;
}

/* A scheduler starts its processes in an environment of its own: the variables are those of the submission,
 * which are in the job. */
static bool is_scheduled(struct hd_cmd *cmd, const char *path)
{
	return hd_job_has_beside(&cmd->fs, path, HD_RUN_LEASE);
}

/* The rows of a step in so many intervals of the graph. */
static enum hd_err in_intervals(struct hd_cmd *cmd, const char *path, const struct hd_prepared *graph,
	uint32_t n, uint64_t *rows)
{
	const uint32_t have = graph->head.nintervals;
	struct hd_graph_layout layout;

	if (n & (n - 1))
		return hd_fail(&cmd->diag, HD_E_INVAL, "graph.intervals: %u: %s has %u intervals; set it to "
			"1 or to a power of two up to %u", n, path, have, have);
	if (n > have || have % n)
		return hd_fail(&cmd->diag, HD_E_INVAL, "graph.intervals: %u: %s has %u intervals; set it to "
			"1 or to a power of two up to %u, or prepare the graph again with --intervals %u", n,
			path, have, have, n);
	enum hd_err err = hd_graph_layout_make(&layout, graph, path, n, &cmd->arena, &cmd->diag);
	*rows = err ? 0 : layout.n * layout.rows;
	return err;
}

/* What the prepared graph says, of a job of the short form (job/graph.h). */
static enum hd_err from_graph(struct hd_cmd *cmd, const char *name, const char *bytes, size_t len,
	struct hd_job_sets *sets)
{
	const char *path = hd_job_graph_file(name, bytes, len, sets);
	struct hd_prepared_file file = { .fs = NULL };
	uint64_t rows = 0;

	if (!path)
		return HD_OK;
	enum hd_err err = hd_prepared_open(&file, &cmd->fs, path, false, &cmd->diag);
	if (!err)
		err = in_intervals(cmd, path, &file.graph, hd_job_graph_intervals(name, bytes, len, sets),
			&rows);
	if (!err)
		err = hd_job_graph_sets(sets, &(struct hd_job_graph){ file.graph.head.nvertices,
			file.graph.head.nedges, file.graph.head.width, file.graph.head.nclasses, rows },
			&cmd->diag);
	hd_prepared_close(&file);
	return err;
}

static enum hd_err parse(struct hd_cmd *cmd, const char *name, const char *bytes, size_t len, bool obeys,
	struct hd_job *job)
{
	struct hd_job_sets sets;
	struct hd_text warnings;
	enum hd_err err = hd_job_sets_init(&sets, HD_MAX_SETS + HD_SESSION_OWN + HD_JOB_GRAPH_SETS,
		&cmd->arena, &cmd->diag);

	if (!err && obeys)
		err = hd_session_environment(cmd, &sets);
	if (!err && obeys)
		warn_of_variables(cmd);
	if (!err)
		err = from_options(cmd, &sets);
	if (!err)
		err = from_graph(cmd, name, bytes, len, &sets);
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
		hd_job_files_from(job, &cmd->fs, folder, strlen(folder), &cmd->arena);
	return err;
}

/* Whoever takes the bytes may not have the prepared graph at hand. */
static enum hd_err long_form(struct hd_cmd *cmd, const char *path, const struct hd_job *job,
	const char **bytes, size_t *len)
{
	struct hd_text text;

	if (!hd_job_graph_file(path, *bytes, *len, &(struct hd_job_sets){ .arena = &cmd->arena }))
		return HD_OK;
	hd_text_init(&text, &cmd->arena);
	hd_job_json(job, false, &text);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	*bytes = text.at;
	*len = text.len;
	return HD_OK;
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
	if (err)
		hd_job_files_repair(&cmd->fs, path, (const char *)file, n, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_job_files_beside(job, &cmd->fs, path, &cmd->arena, &cmd->diag);
	if (bytes)
		*bytes = (const char *)file;
	if (len)
		*len = n;
	return err || !bytes || !len ? err : long_form(cmd, path, job, bytes, len);
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

enum hd_err hd_session_devices(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options)
{
	const struct hd_args *args = &cmd->args;
	struct hd_cores cores;

	hd_cores_usable(&cores);
	enum hd_err err = hd_devices_ask(options, job, args->text[HD_OPT_DEVICES],
		args->has[HD_OPT_THREADS] ? &args->count[HD_OPT_THREADS] : NULL, cores.n, &cmd->diag);
	options->profile = args->text[HD_OPT_PROFILE];
	if (!err && options->profile && options->pace <= 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--profile %s: what devices wait, and these compute; "
			"it goes with --devices paced:N", options->profile);
	if (!err && (options->pace > 0 || !strcmp(options->worker.kind, "cpu")))
		err = hd_kernels_settle(job, &cmd->fs, NULL, &cmd->diag);
	options->worker.kernels = hd_kernels_of(job);
	return err;
}

static void name_refused(void *user, const char *folder, const char *why)
{
	(void)user;
	fprintf(stderr, "!! %s is refused: %s; trying the next older one\n", folder, why);
}

enum hd_err hd_session_job_of(struct hd_cmd *cmd, const char *path, struct hd_job *job, char dir[HD_RUN_PATH])
{
	char file[HD_PATH_CAP];
	enum hd_err err = hd_job_run_of(&cmd->fs, path, dir, file, &cmd->diag);

	return err ? err : hd_session_job(cmd, file, job, NULL, NULL);
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
			"%s, where the checkpoints of %s were to lie, is gone: bring it back, or start the "
			"job again with `heddle run %s/job.yaml`", parent, dir->path, dir->path);
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
	err = hd_ckpt_meant(cmd, &run_path);
	if (!err)
		err = hd_ckpt_find(&cmd->fs, run_path, UINT64_MAX, &s->ckpt, name_refused, NULL, &cmd->diag);
	if (err)
		return err;
	err = hd_session_job_of(cmd, run_path, &s->job, s->dir);
	if (!err)
		err = hd_kernels_settle(&s->job, &cmd->fs, s->ckpt.kernels, &cmd->diag);
	if (!err)
		err = hd_session_devices(cmd, &s->job, &options);
	if (!err)
		err = hd_run_create(&s->run, &s->job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	if (!err)
		err = hd_run_restore(s->run, s->ckpt.folder, HD_RESTORE_READ, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_EMA])
		err = hd_worker_exchange_means(hd_run_worker(s->run), &cmd->diag);
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

/* Null where nothing was predicted, or no step measured. */
void hd_session_put_forecast(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_forecast *f)
{
	const struct hd_forecast none = { 0 };

	if (f && f->nrows && cmd->args.has[HD_OPT_EXPLAIN]) {
		hd_forecast_put(f, w);
		return;
	}
	hd_forecast_put_step(f ? f : &none, w);
}

bool hd_session_best(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_ckpt_info *kept)
{
	char parent[HD_PATH_CAP];

	return hd_job_int(job, HD_JOB_CKPT_BEST) != HD_BEST_NONE &&
		!hd_ckpt_place(&cmd->fs, dir, hd_job_text(job, HD_JOB_CKPT_DIR), parent, sizeof parent,
		NULL) &&
		hd_best_find(kept, &cmd->fs, parent, NULL);
}

void hd_session_put_test(struct hd_cmd *cmd, struct hd_json_writer *w, struct hd_run *run, const char *dir)
{
	const struct hd_job *job = hd_run_task(run)->job;
	struct hd_ckpt_info kept;
	struct hd_metrics m;

	const bool has_best = hd_session_best(cmd, job, dir, &kept);
	if (has_best)
		hd_json_put_i64(w, "best_step", (int64_t)kept.step);
	if (strcmp(hd_job_text(job, HD_JOB_DATA_KIND), "graph") != 0)
		return;
	enum hd_err err = has_best ? hd_run_restore(run, kept.folder, HD_RESTORE_READ, &cmd->diag) : HD_OK;
	if (!err && !hd_run_eval(run, "test", &m, NULL) && hd_metrics_has_accuracy(&m) && m.weight > 0)
		hd_json_put_f64(w, "test_accuracy", hd_metrics_accuracy(&m));
	if (err)
		fprintf(stderr, "!! no test: %s\n", cmd->diag.text);
}

void hd_session_say_best(struct hd_ui *ui, const struct hd_job *job, const char *dir)
{
	struct hd_ckpt_info kept;
	char said[HD_BEST_WORDS];

	if (hd_session_best(ui->cmd, job, dir, &kept))
		hd_ui_say(ui, "best     %s  (%s)", hd_best_say(said, &kept), kept.folder);
}

void hd_session_say_functions(struct hd_ui *ui, const char *dir)
{
	struct hd_functions_bill bill;
	char said[HD_FN_BILL_WORDS];

	hd_functions_bill_sum(&bill, &ui->cmd->fs, dir);
	if (bill.nprocesses || bill.unread[0])
		hd_ui_say(ui, "functions %s", hd_functions_bill_say(said, &bill));
}

void hd_session_put_functions(struct hd_cmd *cmd, struct hd_json_writer *w, const char *dir)
{
	struct hd_functions_bill bill;

	hd_functions_bill_sum(&bill, &cmd->fs, dir);
	if (!bill.nprocesses)
		return;
	hd_json_put_i64(w, "functions_tasks", (int64_t)bill.accepted);
	hd_json_put_i64(w, "functions_here", (int64_t)bill.here);
	hd_json_put_i64(w, "functions_calls", (int64_t)bill.calls);
	hd_json_put_i64(w, "functions_nano_usd", bill.nano_usd);
}

static void end_json(struct hd_cmd *cmd, const struct hd_ui *ui, uint64_t step, const struct hd_rundir *dir,
	struct hd_run *run, const char *hex, enum hd_err err)
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
	if (!err)
		hd_session_put_test(cmd, w, run, dir->path);
	hd_session_put_forecast(cmd, w, hd_run_forecast(run));
	hd_json_put_text(w, "held_back", hd_run_held_back(run));
	hd_session_put_functions(cmd, w, dir->path);
	hd_json_put_i64(w, "exit", hd_err_exit(err));
	hd_json_line_print(&line);
}

void hd_session_say_forecast(struct hd_ui *ui, const struct hd_forecast *f)
{
	struct hd_cmd *cmd = ui->cmd;
	struct hd_text text;

	if (!f || f->step_ns <= 0 || f->measured_ns <= 0)
		return;
	hd_ui_say(ui, "step     predicted %.4g ms, measured %.4g ms (median; least %.4g)", f->step_ns * 1e-6,
		f->measured_ns * 1e-6, f->least_ns * 1e-6);
	if (!cmd->args.has[HD_OPT_EXPLAIN])
		return;
	hd_text_init(&text, &cmd->arena);
	hd_forecast_print(f, &text);
	hd_ui_say(ui, "%.*s", text.full ? 0 : (int)text.len - 1, text.at);
}

static void print_end(struct hd_cmd *cmd, struct hd_ui *ui, struct hd_run *run, const struct hd_rundir *dir,
	enum hd_err err)
{
	uint64_t step = hd_worker_at(hd_run_worker(run));
	char hex[HD_HASH_HEX];

	hd_hash_hex(hd_worker_digest(hd_run_worker(run)), hex);
	hd_ui_end(ui);
	if (cmd->args.has[HD_OPT_JSON]) {
		end_json(cmd, ui, step, dir, run, hex, err);
		return;
	}
	hd_session_say_forecast(ui, hd_run_forecast(run));
	if (*hd_run_held_back(run))
		hd_ui_say(ui, "held     %s", hd_run_held_back(run));
	hd_ui_say(ui, "state    %s  (step %llu)", hex, (unsigned long long)step);
	hd_session_say_best(ui, hd_run_task(run)->job, dir->path);
	hd_session_say_functions(ui, dir->path);
	hd_ui_say(ui, "report   %s/report.html", dir->path);
	if (dir->lines_lost)
		hd_ui_say(ui, "!! some lines of metrics or events could not be written");
}

enum hd_err hd_session_stop(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

/* News of the agent, on the run's thread. */
static void say_notices(struct hd_ui *ui)
{
	struct hd_notice_news news;
	char room[600];
	struct hd_json_writer w;
	struct hd_text body;

	while (hd_notice_agent_fetch(ui->notices, &news)) {
		bool is_notice = news.notice.kind != HD_NOTICE_NONE;
		hd_text_fixed(&body, room, sizeof room);
		hd_json_writer_init(&w, &body);
		hd_json_open_object(&w, NULL);
		if (is_notice)
			hd_notice_news_put(&news, &w);
		else
			hd_json_put_text(&w, "text", news.line);
		hd_json_close(&w);
		if (is_notice)
			hd_ui_say(ui, "!! notice by %s: %s", news.notice.source, news.notice.text);
		if (body.full || body.len < 3)
			continue;
		body.at[body.len - 1] = '\0';
		hd_rundir_event(ui->dir, is_notice ? "notice" : "notices",
			hd_worker_at(hd_run_worker(ui->run)), body.at + 1);
	}
}

enum hd_err hd_session_stop_run(void *user)
{
	struct hd_ui *ui = user;
	enum hd_err stop = hd_session_stop(NULL);

	say_notices(ui);
	return stop || !hd_notice_agent_leaves(ui->notices, NULL) ? stop : HD_E_PREEMPTED;
}

enum hd_err hd_session_train(struct hd_cmd *cmd, struct hd_ui *ui, struct hd_run *run, struct hd_rundir *dir)
{
	struct hd_diag why = { "" };
	struct hd_notice_agent_spec spec;

	hd_notice_agent_of_job(hd_run_task(run)->job, &spec);
	spec.clock = &cmd->clock;
	spec.fs = &cmd->fs;
	enum hd_err err = hd_notice_agent_open(&ui->notices, &spec, &cmd->diag);
	if (err)
		return err;
	ui->run = run;
	ui->dir = dir;
	err = hd_run_train(run, &cmd->diag);
	hd_notice_agent_close(ui->notices);
	ui->notices = NULL;
	if (hd_report_write(dir, &why))
		hd_ui_say(ui, "!! no report: %s", why.text);
	print_end(cmd, ui, run, dir, err);
	return err;
}
