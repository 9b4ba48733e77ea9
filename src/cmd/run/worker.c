#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "launch/task_env.h"
#include "run/ending.h"
#include "worker/elastic.h"
#include "worker/offer.h"
#include "driver/driver.h"
#include "driver/pid_lock.h"
#include "driver/standing.h"
#include "driver/successor.h"
#include "daemon/daemon.h"
#include "chaos/fault.h"
#include "cmd/run/drive.h"
#include "cmd/run/function.h"
#include "cmd/run/pilot.h"

/* A worker of a run: joins, and joins again when the others went on without it. */

enum { POST_PASSED = 4, POST_ARGS = 5 + 2 * POST_PASSED + 2 };

struct post {
	struct hd_cmd *cmd;
	const char *dir;
	const char *where;                /* of a run of another machine: HOST:PORT; else NULL */
	struct hd_offer offer;            /* by that one */
	const char *text;                 /* of the job of a run of this machine, [len] */
	size_t len;
	struct hd_network net;
	struct hd_host host;
	struct hd_successor successor;
	struct hd_notice_agent *notices;  /* owned */
	bool was_stopped;                 /* as this worker began: it was started to go on with it */
	bool far;                         /* of a run whose folder another machine shares */
	char mark[HD_PATH_CAP];           /* of a far one: shows that it shares it; "": none */
	const char *argv[POST_ARGS];      /* of the successor; [nargv]: --going or none */
	uint32_t nargv;
	char option[POST_PASSED][16], count[POST_PASSED][24];
};

static void failing(void *user, uint32_t n, int code)
{
	const struct post *p = user;

	fprintf(stderr,
		"heddle: %u coordinators in a row, which this worker started, ended with exit code %d: %s/"
		HD_SUCCESSOR_LOG " says why; it goes on trying\n", n, code, p->dir);
}

/* A run of a scheduler that is over, until the next lease: a worker that came late finds none to join. */
static bool has_ended(const struct post *p, struct hd_run_end *end)
{
	struct hd_run_held held;

	return !hd_run_lease(&p->cmd->fs, p->dir, &held, NULL) &&
		!hd_run_end_get(&p->cmd->fs, p->dir, end, NULL) && end->lease == held.lease;
}

/* It ended by a word that was kept, and no lease says that it goes on: a user resumes it, no worker. */
static bool is_over(const struct post *p, const struct hd_ending *ending)
{
	struct hd_run_held held;

	return hd_ending_is_over(ending) && hd_run_lease(&p->cmd->fs, p->dir, &held, NULL) == HD_E_NOTFOUND;
}

/* A process that holds it resumes it, or is about to leave. */
static bool is_held(const struct post *p)
{
	struct hd_held held;

	return !hd_rundir_held(&p->cmd->fs, p->dir, &held, NULL) && held.hold != HD_HOLD_NONE;
}

static enum hd_err take_over(void *user, struct hd_diag *diag)
{
	struct post *p = user;
	struct hd_run_end end;
	struct hd_ending ending;

	if (has_ended(p, &end))
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s: lease %u has ended with exit code %d at step %llu: no worker is wanted until "
			"the scheduler gives the next", p->dir, end.lease, end.exit,
			(unsigned long long)end.step);
	if (hd_ending_look(&p->cmd->fs, p->dir, &ending, NULL))
		return hd_successor_start(&p->successor, diag);
	if (hd_ending_is_done(&ending))
		return hd_fail(diag, HD_E_NOTFOUND, "%s: done, %llu steps: no worker is wanted", p->dir,
			(unsigned long long)ending.step);
	/* if it left at once it said no word to its workers, also to those that still start; one that comes
	 * later resumes the run */
	const bool over = is_over(p, &ending);
	if (over && is_held(p))
		return HD_OK;
	if (over || (!p->was_stopped && hd_ending_is_stopped(&ending)))
		return hd_fail(diag, HD_E_NOTFOUND, "%s: %s at step %llu: `heddle resume %s` goes on", p->dir,
			hd_ending_is_stopped(&ending) ? "stopped" : "ended",
			(unsigned long long)ending.step, p->dir);
	/* the run may have ended by the time it holds the folder: then it leaves */
	p->argv[p->nargv] = p->was_stopped ? NULL : "--going";
	return hd_successor_start(&p->successor, diag);
}

/* A coordinator gets the options of this worker that it gives to those that it starts. */
static void name_successor(struct post *p)
{
	static const enum hd_opt passed[POST_PASSED] = { HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_STEPS,
		HD_OPT_PROFILE };
	const struct hd_args *args = &p->cmd->args;
	uint32_t n = 0;

	p->argv[n++] = "/proc/self/exe";
	p->argv[n++] = "serve";
	p->argv[n++] = "--job";
	p->argv[n++] = p->dir;
	p->argv[n++] = "-q";
	for (size_t i = 0; i < POST_PASSED; i++) {
		const struct hd_opt_row *row = &hd_opts[passed[i]];
		if (!args->has[passed[i]])
			continue;
		snprintf(p->option[i], sizeof p->option[i], "--%s", row->name);
		snprintf(p->count[i], sizeof p->count[i], "%llu", (unsigned long long)args->count[passed[i]]);
		p->argv[n++] = p->option[i];
		p->argv[n++] = row->kind == HD_TAKES_COUNT ? p->count[i] : args->text[passed[i]];
	}
	p->argv[n] = p->argv[n + 1] = NULL;
	p->nargv = n;
	hd_host_real(&p->host);
	p->successor = (struct hd_successor){ .host = &p->host, .fs = &p->cmd->fs, .dir = p->dir,
		.argv = p->argv, .failing = failing, .user = p };
}

static void admitted(void *user, uint32_t worker)
{
	struct post *p = user;
	char brief[HD_TITLE_BRIEF + 1];

	p->was_stopped = false;           /* it goes on */
	if (snprintf(brief, sizeof brief, "heddle worker %u", worker) > HD_TITLE_BRIEF)
		(void)snprintf(brief, sizeof brief, "heddle w%u", worker);
	hd_title_set(&p->cmd->title, brief, "heddle: worker %u of %s", worker, p->dir);
}

/* Which key names the file that is not here; a path of data may be a pattern, so it is what remains. */
static enum hd_err missing(const struct post *p, const struct hd_job *job, const char *why)
{
	const struct hd_job_value *weights = &job->value[HD_JOB_WEIGHTS];
	const char *model = hd_job_model_file(job);
	struct hd_stat stat;

	if (model && hd_fs_stat(&p->cmd->fs, model, &stat, NULL))
		return hd_fail(&p->cmd->diag, HD_E_NOTFOUND,
			"%s; model.use of the run names this file: copy it to %s%s", why, model,
			model[0] == '/' ? "" : ", from the folder in which you start this worker");
	return hd_fail(&p->cmd->diag, HD_E_NOTFOUND,
		"%s; this machine needs the files of the run itself: copy them, or say where they are by -s "
		"%s=PATH",
		why, !weights->is_none && hd_fs_stat(&p->cmd->fs, weights->text, &stat, NULL) ?
		"model.weights" : "data.path");
}

static enum hd_err make_run(struct post *p, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_run_options *options, struct hd_run **run)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_run_create(run, job, &p->cmd->fs, &p->cmd->clock, p->where ? NULL : dir, options,
		&why);

	if (!err && p->where) {
		err = hd_offer_agrees(&p->offer, p->where, hd_run_task(*run), &p->cmd->diag);
		if (err)
			hd_run_destroy(*run);
		return err;
	}
	return err == HD_E_NOTFOUND && p->where ? missing(p, job, why.text)
		: err ? hd_fail(&p->cmd->diag, err, "%s", why.text) : HD_OK;
}

static enum hd_err read_vn_time(struct hd_cmd *cmd, const struct hd_job *job, int64_t *ns)
{
	const char *text = cmd->args.text[HD_OPT_VN_TIME];
	struct hd_diag why = { "" };
	uint64_t ms = 0;

	if (hd_num_duration(text, HD_VN_TIME_MS, &ms, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--vn-time %s: %s", text, why.text);
	*ns = (int64_t)ms * HD_NS_PER_MS;
	return hd_job_has_pipes(job) ? hd_fail(&cmd->diag, HD_E_INVAL, HD_VN_TIME_STAGES) : HD_OK;
}

static enum hd_err once(struct post *p, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_run_options *options, bool *fenced)
{
	struct hd_cmd *cmd = p->cmd;
	char coordinator[HD_ELASTIC_ADDR], own[HD_ELASTIC_ADDR], name[HD_POST_NAME];
	struct hd_proc_self self;
	struct hd_run *run = NULL;
	enum hd_err err = HD_OK;

	hd_proc_self(&self);
	hd_post_name(self.pid, name);
	if (!p->where && !p->far)
		err = hd_driver_address("unix", p->dir, HD_LAUNCH_SOCKET, coordinator, &cmd->diag);
	if (!err && !p->where && !p->far)
		err = hd_driver_address("shm", p->dir, name, own, &cmd->diag);
	if (!err)
		err = make_run(p, job, dir, options, &run);
	if (err)
		return err;
	struct hd_elastic_spec spec = { .run = run, .fs = &cmd->fs, .clock = &cmd->clock,
		.dir = p->where ? NULL : p->dir, .far = p->far,
		.coordinator = p->where || p->far ? p->net.coordinator : coordinator,
		.listen = { p->net.listens ? p->net.workers : own },
		.realm = p->net.realm, .key = p->net.has_key ? p->net.key.byte : NULL,
		.key_len = sizeof p->net.key.byte, .plaintext = p->net.plaintext,
		.take_over = p->where || p->far ? NULL : take_over, .admitted = admitted, .stop =
			hd_session_stop,
		.user = p, .notices = p->notices,
		.stop_at = hd_args_count(&cmd->args, HD_OPT_STEPS, 0) };
	if (p->net.listens && !p->where && !p->far)
		spec.listen[1] = own;
	spec.zone = cmd->args.text[HD_OPT_ZONE];
	if (cmd->args.has[HD_OPT_SLOW])
		err = hd_num_f64(cmd->args.text[HD_OPT_SLOW], 1, 1000, &spec.slow, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_VN_TIME])
		err = read_vn_time(cmd, job, &spec.vn_wait_ns);
	if (!err)
		err = hd_elastic_attend(&spec, fenced, &cmd->diag);
	hd_run_destroy(run);
	return err;
}

#define HOLDER_LOOK_NS INT64_C(20000000)
#define LONGEST_PAUSE_NS INT64_C(5000000000)

/* A process that begins a run writes into its job what all its workers must have alike (comm.settled) before
 * it coordinates: until then the job is not read. One of which nothing is known is not waited for. */
static void await_settled(struct hd_cmd *cmd, const char *dir)
{
	int64_t said_ns = hd_clock_now_ns(&cmd->clock);
	struct hd_held held;

	while (!hd_rundir_held(&cmd->fs, dir, &held, NULL) && held.hold == HD_HOLD_BEGINS &&
		(held.pid || held.host[0])) {
		int64_t now_ns = hd_clock_now_ns(&cmd->clock);
		if (now_ns - said_ns >= LONGEST_PAUSE_NS && !cmd->args.has[HD_OPT_QUIET]) {
			fprintf(stderr, ">> %s: its process measures and plans; waiting for it\n", dir);
			said_ns = now_ns;
		}
		hd_clock_wait_until(&cmd->clock, now_ns + HOLDER_LOOK_NS);
	}
}

/* With --wait a far worker may be there before the first coordinator. */
static enum hd_err find_listener(const struct post *p)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/" HD_DRIVER_ADDRESS, p->dir);
	if (!p->far || !p->cmd->args.has[HD_OPT_WAIT_UP] ||
		hd_fs_stat(&p->cmd->fs, path, &stat, NULL) != HD_E_NOTFOUND)
		return HD_OK;
	return hd_fail(&p->cmd->diag, HD_E_NOTFOUND, "%s: no coordinator of it listens to other machines yet",
		p->dir);
}

/* A run of this machine: all there is to know lies in its folder. */
static enum hd_err visit(struct post *p, struct hd_rundir *dir, struct hd_job *job)
{
	struct hd_cmd *cmd = p->cmd;
	char path[HD_PATH_CAP];
	struct hd_ending ending;

	enum hd_err err = find_listener(p);
	err = err ? err : hd_rundir_visit(dir, &cmd->fs, &cmd->clock, p->dir, &cmd->diag);
	if (!err) {
		p->was_stopped = !cmd->args.has[HD_OPT_GOING] &&
			!hd_ending_look(&cmd->fs, p->dir, &ending, NULL) && hd_ending_is_stopped(&ending);
		await_settled(cmd, p->dir);
		hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
		err = hd_session_job(cmd, path, job, &p->text, &p->len);
	}
	err = err ? err : hd_drive_network(cmd, job, p->dir, &p->net);
	return err || !p->far ? err : hd_network_from_afar(&p->net, cmd->args.text[HD_OPT_LISTEN],
		&cmd->diag);
}

/* The coordinator believes a far worker by this file alone. */
static enum hd_err show_folder(struct post *p)
{
	char id[HD_FAR_ID + 1];

	if (!p->far)
		return HD_OK;
	hd_far_id(id);
	snprintf(p->mark, sizeof p->mark, "%s/" HD_FAR_FOLDER, p->dir);
	enum hd_err err = hd_fs_mkdirs(&p->cmd->fs, p->mark, &p->cmd->diag);
	snprintf(p->mark, sizeof p->mark, "%s/" HD_FAR_FOLDER "/%s", p->dir, id);
	return err ? err : hd_file_write_atomic(&p->cmd->fs, p->mark, "", 0, &p->cmd->diag);
}

/* Of delayed updates over stages each worker must know of each step whether it begins the next one: these
 * keys say it too, and are no part of what fixes the result. The run's own hold, as they are without -s and
 * variables of this process. */
static enum hd_err keeps_order(struct post *p, const struct hd_job *job)
{
	static const struct { enum hd_job_key key; const char *name, *variable; } keys[] = {
		{ HD_JOB_PAR_OFFLOAD, "parallel.offload", "HEDDLE_PARALLEL_OFFLOAD" },
		{ HD_JOB_SAMPLES, "trace.samples", "HEDDLE_TRACE_SAMPLES" },
		{ HD_JOB_VALUES, "trace.values", "HEDDLE_TRACE_VALUES" },
	};
	struct hd_cmd *cmd = p->cmd;
	struct hd_job *own = hd_arena_take(&cmd->arena, 1, sizeof *own);

	if (!own)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the run's job");
	if (hd_job_int(job, HD_JOB_UPDATE) == HD_UPDATE_FLUSH || !hd_job_has_pipes(job))
		return HD_OK;
	enum hd_err err = hd_job_parse(own, "the run's job", p->where ? p->offer.text : p->text,
		p->where ? p->offer.len : p->len, NULL, 0, &cmd->arena, &cmd->diag, NULL);
	for (size_t k = 0; k < sizeof keys / sizeof *keys && !err; k++)
		if (hd_job_int(job, keys[k].key) != hd_job_int(own, keys[k].key))
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"%s (by -s or %s) differs from the run's: all workers of a run with "
				"optim.update=%s have the same, or their steps do not overlap alike; "
				"leave it out: the run's own holds", keys[k].name, keys[k].variable,
				hd_job_text(job, HD_JOB_UPDATE));
	return err;
}

static bool asks_for_plaintext(const struct hd_cmd *cmd)
{
	bool open = false;

	for (uint32_t i = 0; i < cmd->args.nsets; i++)
		open |= !strcmp(cmd->args.set[i], "net.insecure_plaintext=true");
	return open;
}

/* A run of another machine: its coordinator says which job it is. */
static enum hd_err call(struct post *p, struct hd_job *job)
{
	struct hd_cmd *cmd = p->cmd;
	char name[HD_ADDR_CAP + 32];

	enum hd_err err = hd_network_join(&p->net, &(struct hd_network_call){ .where = p->where,
		.key = cmd->args.text[HD_OPT_KEY], .listen = cmd->args.text[HD_OPT_LISTEN],
		.plaintext = asks_for_plaintext(cmd) }, &cmd->diag);
	if (err)
		return err;
	hd_drive_warn(&p->net);
	const struct hd_offer_spec spec = { .clock = &cmd->clock, .coordinator = p->net.coordinator,
		.realm = p->net.realm,
		.key = p->net.has_key ? p->net.key.byte : NULL, .key_len = sizeof p->net.key.byte,
		.plaintext = p->net.plaintext };
	err = hd_offer_ask(&spec, &cmd->arena, &p->offer, &cmd->diag);
	snprintf(name, sizeof name, "the job of %.*s", HD_ADDR_CAP, p->where);
	if (!err)
		err = hd_session_job_text(cmd, name, p->offer.text, p->offer.len, p->offer.folder, job);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> %s: %s, joining as a worker\n", p->where, hd_job_text(job, HD_JOB_NAME));
	return err;
}

#define FIRST_PAUSE_NS INT64_C(250000000)
#define FAR_PAUSE_NS INT64_C(500000000)           /* it looks for a file of a coordinator that is to come */

/* Once, or with --wait until a process answers, each pause twice as long; says at most every 5 s what it
 * waits for. */
static enum hd_err find_run(struct post *p, struct hd_rundir *dir, struct hd_job *job)
{
	struct hd_cmd *cmd = p->cmd;
	const char *text = hd_args_text(&cmd->args, HD_OPT_WAIT_UP, "0");
	int64_t began_ns = hd_clock_now_ns(&cmd->clock), pause_ns = FIRST_PAUSE_NS, said_ns = 0;
	const int64_t longest_ns = p->far ? FAR_PAUSE_NS : LONGEST_PAUSE_NS;
	struct hd_diag why = { "" };
	uint64_t ms = 0;

	if (hd_num_duration(text, UINT64_C(1000000000), &ms, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--wait %s: %s", text, why.text);
	for (;;) {
		enum hd_err err = p->where ? call(p, job) : visit(p, dir, job);
		int64_t now_ns = hd_clock_now_ns(&cmd->clock),
			left_ns = began_ns + (int64_t)ms * HD_NS_PER_MS - now_ns;
		if (err != (p->where ? HD_E_PEERLOST : HD_E_NOTFOUND) || left_ns <= 0)
			return err;
		if (!cmd->args.has[HD_OPT_QUIET] && (!said_ns || now_ns - said_ns >= LONGEST_PAUSE_NS)) {
			fprintf(stderr, ">> %s; trying for %.0f s more\n", cmd->diag.text,
				(double)left_ns * 1e-9);
			said_ns = now_ns;
		}
		cmd->diag.text[0] = '\0';
		hd_network_wipe(&p->net);
		hd_rundir_close(dir);
		hd_clock_wait_until(&cmd->clock, now_ns + (pause_ns < left_ns ? pause_ns : left_ns));
		pause_ns = 2 * pause_ns < longest_ns ? 2 * pause_ns : longest_ns;
	}
}

/* Pid lock of a scheduler's device: until this process ends no other worker can use it. */
static enum hd_err hold(const struct post *p, struct hd_file *lock)
{
	struct hd_cmd *cmd = p->cmd;
	struct hd_run_held held = { 0 };

	if (p->where)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--hold goes with --join RUN");
	enum hd_err err = hd_run_lease(&cmd->fs, p->dir, &held, &cmd->diag);
	return err ? err : hd_pid_lock_take(lock, &cmd->fs, &cmd->clock, cmd->args.text[HD_OPT_HOLD],
		held.job, held.lease, &cmd->diag);
}

static enum hd_err check_zone(struct hd_cmd *cmd)
{
	const char *zone = cmd->args.text[HD_OPT_ZONE];

	if (!cmd->args.has[HD_OPT_ZONE] || (strlen(zone) <= HD_MSG_ZONE && hd_name_valid(zone)))
		return HD_OK;
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"--zone \"%.64s\": use 1 to %d of A-Z a-z 0-9 . _ -, beginning with none of . -", zone,
		HD_MSG_ZONE);
}

/* What its starter gave to this task of several on a node: of processors as many, and the node as its zone.
 * */
static enum hd_err take_task(struct hd_cmd *cmd, const struct hd_job *job, struct hd_text *devices)
{
	struct hd_task_env task;
	struct hd_cores cores;
	char said[200];

	hd_cores_usable(&cores);
	enum hd_err err = hd_task_env_read(&task, hd_proc_environment(), &cmd->diag);
	if (err || !task.starter)
		return err;
	const uint32_t ncores = task.cpus ? task.cpus : cores.n / (task.local_size ? task.local_size : 1);
	if (!cmd->args.has[HD_OPT_DEVICES] && !cmd->args.has[HD_OPT_THREADS] && ncores < cores.n &&
		!strcmp(hd_job_text(job, HD_JOB_DEVICES), "auto")) {
		hd_text_addf(devices, "auto:%u", ncores ? ncores : 1);
		cmd->args.text[HD_OPT_DEVICES] = devices->at;
		cmd->args.has[HD_OPT_DEVICES] = true;
	}
	if (!cmd->args.has[HD_OPT_ZONE] && hd_name_valid(task.node) && strlen(task.node) <= HD_MSG_ZONE) {
		hd_text_init(devices, &cmd->arena);
		hd_text_add(devices, task.node);
		cmd->args.text[HD_OPT_ZONE] = devices->at;
		cmd->args.has[HD_OPT_ZONE] = true;
	}
	if (task.twice)
		hd_signal_twice();
	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> %s\n", hd_task_env_say(&task, said));
	return devices->full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the devices") : HD_OK;
}

static enum hd_err hear(struct post *p, const struct hd_job *job)
{
	struct hd_notice_agent_spec spec;

	hd_notice_agent_of_job(job, &spec);
	spec.clock = &p->cmd->clock;
	spec.fs = &p->cmd->fs;
	return hd_notice_agent_open(&p->notices, &spec, &p->cmd->diag);
}

static enum hd_err verb_worker(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { 0 };
	struct post *post = hd_arena_take(&cmd->arena, 1, sizeof *post);
	struct hd_rundir dir = { 0 };
	struct hd_file lock = { 0 };
	struct hd_text devices;
	bool fenced = true;

	if (cmd->args.has[HD_OPT_PACK])
		return hd_cmd_pack(cmd);
	if (cmd->args.has[HD_OPT_FUNCTION])
		return hd_cmd_function(cmd);
	if (!job || !post)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	if (!cmd->args.has[HD_OPT_JOIN])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--join names what to join: the folder of a run that was started with --workers, or "
			"HOST:PORT of one started with --listen");
	const char *where = cmd->args.text[HD_OPT_JOIN];
	if (hd_pilot_is_asked(cmd, where))
		return hd_worker_pilot(cmd, where);
	*post = (struct post){ .cmd = cmd, .dir = where, .where = hd_network_is_address(where) ? where :
		NULL };
	hd_title_set(&cmd->title, "heddle worker", "heddle: worker of %s", where);
	post->far = cmd->args.has[HD_OPT_FAR];
	name_successor(post);
	enum hd_err err = check_zone(cmd);
	if (!err && post->far && post->where)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--far goes with --join RUN, a folder");
	if (!err && !post->where && cmd->args.has[HD_OPT_RECORD_IN])
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--record-in goes with --join HOST:PORT: a worker of a "
			"run of this machine records in the run's folder");
	err = err ? err : find_run(post, &dir, job);
	err = err ? err : keeps_order(post, job);
	hd_text_init(&devices, &cmd->arena);
	err = err ? err : take_task(cmd, job, &devices);
	if (!err)
		err = hd_session_devices(cmd, job, &options);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	options.shared = true;
	options.quiet_disk = post->where != NULL;
	options.recordings = cmd->args.text[HD_OPT_RECORD_IN];
	options.worker.path = hd_args_text(&cmd->args, HD_OPT_ISA, NULL);
	if (!err && cmd->args.has[HD_OPT_HOLD])
		err = hold(post, &lock);
	if (!post->where && !post->far)
		hd_fault_take_orders(post->dir);
	err = err ? err : show_folder(post);
	if (!err)
		err = hear(post, job);
	while (!err && fenced)
		err = once(post, job, &dir, &options, &fenced);
	hd_notice_agent_close(post->notices);
	hd_network_wipe(&post->net);
	if (post->mark[0])
		(void)!hd_fs_unlink(&cmd->fs, post->mark, NULL);
	hd_rundir_close(&dir);
	(void)!hd_file_close(&lock, NULL);
	return err;
}

const struct hd_verb hd_verb_worker = {
	.name = "worker", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "join a run as one of its workers, with the devices of this machine",
	.more =
		"--join RUN: the folder of a run that was started with --workers; `heddle run` starts "
		"its own workers this way. A worker receives the state while the others go on, takes its "
		"part between two steps, and leaves at SIGTERM or SIGHUP after the step at hand (exit "
		"75). If the others went on without it, it joins again. If the coordinator is gone, it "
		"starts another, but not of a run that ended or was stopped: `heddle resume` goes on "
		"with that. If it was stopped at once, a worker goes on with it only if it came "
		"later, and not with --going, which `heddle run` gives to its own.\n"
		"ps and top show it as `heddle: worker N of RUN`, N its number in `heddle status RUN`, "
		"and then its arguments.\n"
		"--join HOST:PORT --key FILE: a run of another machine, started with --listen HOST:PORT "
		"--key FILE. The job comes from there; the data must be here too, at the same path or "
		"where -s data.path=PATH says. Other workers call this one at --listen HOST:PORT, by "
		"default at the address from which it calls the run. Without a way to the run for 30 "
		"times workers.detect, or once a worker of that machine says that it was stopped: exit 75.\n"
		"--join RUN --far: on another machine that shares the run's folder, and of a run that "
			"listens: "
		"as --join HOST:PORT, but it saves and restores as workers of the run's machine do, and a "
		"run may begin with such ones alone. `heddle run --launch` starts its workers this way.\n"
		"--join DIR/pilots/TYPE: a node for a scheduler (`heddle serve --launch`), which says for "
		"which run it works; asked to leave by a signal, it gives its worker notice (exit 75).\n"
		"One of several that srun or mpirun starts takes the processors of its task, and its node as "
		"its zone; what they say and makes no sense is refused.\n"
		"--record-in FOLDER: it records into FOLDER/flight and FOLDER/trace what it does (without it "
		"nothing); `heddle trace merge RUN FOLDER` puts it beside the others.\n"
		"A notice that this machine will be taken away (elastic.notice of the job) is obeyed after "
		"the step at hand (exit 0; the run goes on); if it is withdrawn the worker joins again. -s "
		"elastic.notice.source=ec2 names the source for this worker alone.\n"
		"--zone NAME: workers of one zone are lost together, so stages next to each other, and the "
		"copies of a stage, are put into different zones (docs/redundancy.md).\n"
		"--wait 60s: a run that is not there yet is tried again for so long, in pauses of at "
		"most 5 s.\n"
		"--function=lambda, --function=pool: no run is joined; dense tasks are computed for their "
		"owners, one invocation after the other of the runtime API that "
		"AWS_LAMBDA_RUNTIME_API names.\n"
		"--function=http: POST of an event to /, one at a time or --slots; health at /_/health; "
		"at 127.0.0.1, port PORT of the environment (8080), or at --listen HOST:PORT.\n"
		"--pack lambda -o FILE: the zip file that AWS Lambda starts function workers from: "
		"`bootstrap`, the static heddle-function or --bootstrap FILE (docs/functions.md).",
	.opts = HD_OPTS(HD_OPT_JOIN, HD_OPT_FUNCTION, HD_OPT_SLOTS, HD_OPT_PACK, HD_OPT_BOOTSTRAP,
		HD_OPT_OUTPUT,
		HD_OPT_WAIT_UP, HD_OPT_KEY, HD_OPT_LISTEN,
		HD_OPT_FAR, HD_OPT_ZONE, HD_OPT_DEVICES,
		HD_OPT_THREADS, HD_OPT_PROFILE, HD_OPT_STEPS, HD_OPT_RECORD_IN, HD_OPT_SLOW,
		HD_OPT_VN_TIME, HD_OPT_ISA,
			HD_OPT_HOLD, HD_OPT_GOING, HD_OPT_SET),
	.run = verb_worker, .test = "program_remote.sh",
};
