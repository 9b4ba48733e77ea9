#include "cmd/team.h"

#include <string.h>

#include "base/json.h"
#include "sys/failpoint.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "engine/lockstep.h"
#include "engine/times.h"
#include "run/ending.h"
#include "run/identity.h"
#include "run/report.h"
#include "driver/driver.h"
#include "chaos/fault.h"
#include "cmd/json_line.h"
#include "cmd/network.h"
#include "cmd/run/detach.h"

enum { HD_TEAM_ARGS = 16 };

struct team {
	struct hd_ui *ui;
	const struct hd_task *task;
	struct hd_run_watch watch;
	struct hd_arena arena;            /* of the plan that is shown */
	struct hd_plan plan;
	struct hd_times times;
	uint32_t shown;                   /* epoch of it */
	int64_t began_ns;
	uint64_t began_step;
	bool begun;
};

/* A plan of a view, for the line that shows who has how many virtual nodes. */
static void take_view(struct team *t, const struct hd_view *view)
{
	const struct hd_plan_job job = hd_plan_job_whole(t->task->job->nvns, 1);
	uint32_t counts[HD_VIEW_RANKS];

	if (!view || view->epoch == t->shown)
		return;
	t->shown = view->epoch;
	for (uint32_t r = 0; r < view->nranks; r++)
		counts[r] = view->rank[r].nvns;
	hd_arena_reset(&t->arena);
	if (hd_plan_data(&t->plan, &job, view->nranks, counts, &t->arena, NULL))
		t->plan = (struct hd_plan){ 0 };
}

static void on_step(void *user, const struct hd_step_news *n, uint64_t step, const struct hd_view *view)
{
	struct team *t = user;
	struct hd_clock *clock = &t->ui->cmd->clock;
	int64_t now = hd_clock_now_ns(clock);

	take_view(t, view);
	if (!t->begun) {
		t->begun = true;
		t->began_ns = now;
		t->began_step = step;
	}
	struct hd_progress p = { .plan = &t->plan, .nsteps = t->task->nsteps,
		.step_ms = (double)n->step_ns * 1e-6 };
	p.record.step = step;
	p.record.lr = (float)n->lr;
	p.loss = n->weight > 0 ? n->loss_sum / n->weight : 0;
	hd_times_add(&t->times, p.step_ms);
	p.times = &t->times;
	p.samples_per_s = p.step_ms > 0 ? (double)t->task->job->batch * 1e3 / p.step_ms : 0;
	p.wait_share = n->step_ns ? (double)n->wait_ns / (double)n->step_ns : 0;
	p.eta_s = step > t->began_step ? (double)(now - t->began_ns) * 1e-9 / (double)(step - t->began_step) *
		(double)(t->task->nsteps - step - 1) : 0;
	t->watch.step(t->watch.user, &p);
}

static void put_member(struct hd_text *to, const char *key, const struct hd_json *value)
{
	const char *text;
	double number;

	if (!hd_json_as_text(value, &text, NULL))
		hd_text_addf(to, "%s%s %s", to->len ? "  " : "", key, text);
	else if (!hd_json_as_f64(value, &number, NULL))
		hd_text_addf(to, "%s%s %.6g", to->len ? "  " : "", key, number);
}

/* What a worker tells comes as the body of an event: its text, or its members as words. */
static const char *words_of(const char *text, char *words, size_t cap)
{
	const struct hd_json *json;
	const char *said = text;
	struct hd_arena arena;
	struct hd_text to;

	if (*text != '{')
		return text;
	hd_arena_init(&arena, 0);
	hd_text_fixed(&to, words, cap);
	if (!hd_json_parse(&arena, "an event", text, strlen(text), &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT) {
		const struct hd_json *alone = hd_json_count(json) == 1 ? hd_json_find(json, "text") : NULL;
		if (alone && !hd_json_as_text(alone, &said, NULL))
			hd_text_add(&to, said);
		for (size_t i = 0; i < hd_json_count(json) && !alone; i++)
			put_member(&to, hd_json_key(json, i), hd_json_item(json, i));
		said = to.len ? words : text;
	}
	hd_arena_finish(&arena);
	return said;
}

static void on_note(void *user, const char *kind, uint32_t worker, const char *text)
{
	struct team *t = user;
	char line[700], words[600];

	text = words_of(text, words, sizeof words);
	if (worker != HD_NOBODY)
		snprintf(line, sizeof line, "worker %u: %s", worker, text);
	t->watch.note(t->watch.user, kind, worker != HD_NOBODY ? line : text);
}

static enum hd_err stop_request(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

void hd_team_take_orders(const char *dir)
{
	char folder[HD_PATH_CAP];

	if ((size_t)snprintf(folder, sizeof folder, "%s/" HD_FAULT_FOLDER, dir) >= sizeof folder)
		return;
	hd_failpoint_watch(folder);
	hd_failpoint_look();
}

const char *hd_team_devices(struct hd_cmd *cmd, uint32_t nworkers)
{
	struct hd_text devices;
	struct hd_cores cores;

	if (cmd->args.has[HD_OPT_DEVICES])
		return cmd->args.text[HD_OPT_DEVICES];
	hd_text_init(&devices, &cmd->arena);
	hd_cores_usable(&cores);
	hd_text_addf(&devices, "auto:%u", cores.n / nworkers > 1 ? cores.n / nworkers : 1);
	return devices.full ? NULL : devices.at;
}

static const char *const *worker_line(struct hd_cmd *cmd, const char *dir, uint32_t target)
{
	const char **argv = hd_arena_take(&cmd->arena, HD_TEAM_ARGS, sizeof *argv);
	const char *devices = hd_team_devices(cmd, target);
	struct hd_text threads, steps;
	uint32_t n = 0;

	hd_text_init(&threads, &cmd->arena);
	hd_text_init(&steps, &cmd->arena);
	if (!argv || !devices)
		return NULL;
	argv[n++] = "/proc/self/exe";
	argv[n++] = "worker";
	argv[n++] = "--join";
	argv[n++] = dir;
	argv[n++] = "--devices";
	argv[n++] = devices;
	if (cmd->args.has[HD_OPT_THREADS]) {
		hd_text_addf(&threads, "%llu", (unsigned long long)cmd->args.count[HD_OPT_THREADS]);
		argv[n++] = "--threads";
		argv[n++] = threads.at;
	}
	if (cmd->args.has[HD_OPT_STEPS]) {
		hd_text_addf(&steps, "%llu", (unsigned long long)cmd->args.count[HD_OPT_STEPS]);
		argv[n++] = "--steps";
		argv[n++] = steps.at;
	}
	argv[n] = NULL;
	return threads.full || steps.full ? NULL : argv;
}

static void print_json(struct hd_cmd *cmd, const struct hd_ui *ui, const struct hd_rundir *dir,
	const struct hd_driver_end *end, const char *hex,
	enum hd_err err)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "run", dir->path);
	hd_json_put_i64(w, "step", (int64_t)end->step);
	if (ui->steps) {
		hd_json_put_f32(w, "loss_first", (float)ui->first_loss);
		hd_json_put_f32(w, "loss_last", (float)ui->last_loss);
	} else {
		hd_json_put_null(w, "loss_first");
		hd_json_put_null(w, "loss_last");
	}
	hd_json_put_text(w, "digest", hex);
	hd_json_put_i64(w, "commits", end->commits);
	hd_json_put_i64(w, "membership", end->epochs);
	hd_json_put_i64(w, "redone_vn", (int64_t)end->redone);
	hd_json_put_i64(w, "unrecorded", (int64_t)end->unrecorded);
	hd_json_put_i64(w, "given_up", end->given_up);
	hd_json_put_i64(w, "exit", hd_err_exit(err));
	hd_json_line_print(&line);
}

/* The state is the members'; what is left of it here is the last checkpoint. */
static struct hd_team_end end_of(struct hd_cmd *cmd, const struct hd_task *task, const struct hd_rundir *dir,
	const struct hd_driver_end *end)
{
	struct hd_team_end reached = { .step = end->step, .steps = task->job->value[HD_JOB_TARGET].is_none ?
		task->nsteps : 0 };
	struct hd_ckpt_info info;

	if (!hd_ckpt_find(&cmd->fs, dir->path, UINT64_MAX, &info, NULL, NULL, NULL) && info.step == end->step)
		hd_hash_hex(info.digest, reached.digest);
	return reached;
}

static void print_end(struct hd_cmd *cmd, struct hd_ui *ui, const struct hd_task *task,
	const struct hd_rundir *dir, const struct hd_driver_end *end,
	enum hd_err err)
{
	const struct hd_team_end reached = end_of(cmd, task, dir, end);
	const char *hex = reached.digest;

	hd_ui_end(ui);
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, ui, dir, end, hex, err);
		return;
	}
	if (*hex)
		hd_ui_say(ui, "state    %s  (step %llu)", hex, (unsigned long long)end->step);
	if (end->given_up)
		hd_ui_say(ui,
			"!! %u workers were given up for lost and lived: this machine is busier than "
			"workers.detect (%lld ms) allows for; a larger one "
			"waits longer", end->given_up, (long long)hd_job_int(task->job,
			HD_JOB_DETECT) / 1000000);
	hd_ui_say(ui, "report   %s/report.html", dir->path);
	if (dir->lines_lost)
		hd_ui_say(ui, "!! some lines of metrics or events could not be written");
}

/* What those are told who ask which job this is: as it lies in the folder. Where nobody is asked to join
 * it need not fit. */
static enum hd_err text_of(struct hd_cmd *cmd, const struct hd_rundir *dir, const char *name, size_t most,
	bool listens, const char **text)
{
	char path[HD_PATH_CAP];
	struct hd_diag why = { "" };
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(dir, name, path, sizeof path);
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, most, &bytes, &len, &why);
	*text = err ? "" : (const char *)bytes;
	return !err || !listens || err == HD_E_NOTFOUND ? HD_OK
		: hd_fail(&cmd->diag, err, "%s; whoever joins this run from another machine must be told it",
			why.text);
}

enum hd_err hd_team_check(const struct hd_task *task, uint32_t nworkers, struct hd_diag *diag)
{
	bool lockstep = hd_job_int(task->job, HD_JOB_BN) == HD_BN_GLOBAL &&
		hd_lockstep_bytes(&task->train, task->job->nvns);

	return nworkers > 1 && lockstep ? hd_fail(diag, HD_E_INVAL,
		"--workers %u: norms over the global batch (model.bn: global) meet at every norm, and "
		"several workers have no way to meet there yet: model.bn: ghost, or one worker with more "
		"devices", nworkers) : HD_OK;
}

/* Who begins a run, or goes on with it, has its data. Who takes over has members that do: newcomers alone
 * are judged by what lies here. */
static enum hd_err prove(struct hd_cmd *cmd, struct hd_rundir *dir, struct hd_task *task, bool takes_over,
	struct hd_ui *ui)
{
	struct hd_diag other = { "" };
	struct hd_json_writer w;
	struct hd_text body;

	if (!takes_over)
		return hd_identity_keep(dir, task, &cmd->diag);
	enum hd_err err = hd_identity_take(&cmd->fs, dir->path, task, &other, &cmd->diag);
	if (err || !other.text[0])
		return err;
	hd_text_init(&body, &cmd->arena);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", other.text);
	hd_json_close(&w);
	hd_ui_say(ui, "!! %s; workers that have the old data go on, others are refused", other.text);
	if (body.full)
		return HD_OK;
	body.at[body.len - 1] = '\0';
	hd_rundir_event(dir, "warning", 0, body.at + 1);
	return HD_OK;
}

enum hd_err hd_team_drive(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_team_order *order,
	struct hd_team_end *reached)
{
	uint32_t target = order->target;
	char address[HD_MSG_ADDR + 1];
	const char *text = "", *folder = "";
	struct hd_driver_end end = { 0 };
	struct hd_diag why = { "" };
	struct hd_task *task = NULL;
	struct hd_network net = { .listens = false };
	struct hd_ui ui;
	struct team team = { .ui = &ui };

	hd_title_set(&cmd->title, "heddle coord", "heddle: coordinator of %s", dir->path);
	hd_ui_init(&ui, cmd);
	hd_arena_init(&team.arena, 0);
	team.watch = hd_ui_watch(&ui);
	enum hd_err err = hd_task_create(&task, job, &cmd->fs, &cmd->diag);
	if (!err)
		err = prove(cmd, dir, task, !target, &ui);
	if (!err)
		err = hd_team_check(task, target, &cmd->diag);
	if (!err)
		err = hd_driver_address("unix", dir->path, HD_TEAM_SOCKET, address, &cmd->diag);
	if (!err)
		err = hd_network_of(cmd, job, dir->path, &net);
	if (!err)
		err = hd_session_keep_network(cmd, dir, job);
	if (!err)
		err = text_of(cmd, dir, "job.resolved.json", HD_MSG_JOB, net.listens, &text);
	if (!err)
		err = text_of(cmd, dir, HD_RUN_FOLDER, HD_MSG_PATH, net.listens, &folder);
	if (err) {
		hd_network_give(&net);
		hd_task_destroy(task);
		return err;
	}
	hd_task_drop_weights(task);
	team.task = task;
	struct hd_driver_spec spec = {
		.task = task, .fs = &cmd->fs, .clock = &cmd->clock, .dir = dir, .target = target,
			.step = order->step,
		.lease_ns = (int64_t)(order->lease_s * 1e9),
		.listen = { address, net.listens ? net.coordinator : NULL },
		.job_text = text, .job_folder = folder, .realm = net.realm,
		.key = net.has_key ? net.key.byte : NULL, .key_len = sizeof net.key.byte,
		.plaintext = net.plaintext,
		.worker_argv = order->others_start ? NULL : worker_line(cmd, dir->path, target ? target : 1),
		.stop = stop_request,
		.watch = { .user = &team, .step = on_step, .note = on_note },
	};
	hd_team_take_orders(dir->path);
	hd_detach_begun(cmd);
	err = hd_driver_run(&spec, &end, &cmd->diag);
	if (err != HD_E_AGAIN) {
		hd_ending_ends(dir, end.step, task->nsteps, err, &cmd->diag);
		if (hd_report_write(dir, &why))
			hd_ui_say(&ui, "!! no report: %s", why.text);
		print_end(cmd, &ui, task, dir, &end, err);
	}
	if (reached)
		*reached = end_of(cmd, task, dir, &end);
	hd_network_give(&net);
	hd_arena_finish(&team.arena);
	hd_task_destroy(task);
	return err;
}
