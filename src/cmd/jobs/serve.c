#include "cmd/jobs/serve.h"

#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "checkpoint/ckpt.h"
#include "run/ending.h"
#include "driver/pid_lock.h"
#include "daemon/daemon.h"
#include "daemon/http_frontend.h"
#include "daemon/webhook.h"
#include "cmd/run/drive.h"
#include "cmd/sched/input.h"

/* Processes in the background: the coordinator of a run that lost its own or was given devices by a
 * scheduler; the scheduler itself. */

static enum hd_err new_key(struct hd_cmd *cmd)
{
	enum hd_err err = hd_key_make(cmd->args.text[HD_OPT_NEW_KEY], &cmd->diag);

	if (!err)
		printf("%s\n", cmd->args.text[HD_OPT_NEW_KEY]);
	return err;
}

/* ---- one run ---- */

/* As `run` and `resume` start one. A scheduler's workers come and go, each with a whole model. */
static enum hd_err start(struct hd_cmd *cmd, struct hd_job *job, struct hd_rundir *dir,
	struct hd_drive *order, struct hd_run_options *options)
{
	enum hd_err err = hd_session_devices(cmd, job, options);

	err = err ? err : hd_drive_list(cmd, job);
	err = err ? err : hd_job_spreads(job, &cmd->diag);
	err = err ? err : hd_drive_spread(cmd, job, options);
	err = err ? err : hd_drive_keep(cmd, job, dir);
	order->worker = &options->worker;
	order->pace = options->pace;
	return err;
}

/* A worker that missed the end may have ordered a coordinator: nothing of a run that is done is done
 * again. */
static enum hd_err refuse_done(struct hd_cmd *cmd, const struct hd_rundir *dir)
{
	struct hd_ending ending;

	if (hd_ending_look(&cmd->fs, dir->path, &ending, NULL) || !hd_ending_is_done(&ending))
		return HD_OK;
	return hd_fail(&cmd->diag, HD_E_AGAIN,
		"%s: done, %s%llu of %llu steps: there is nothing to coordinate", dir->path,
		ending.reached ? "its eval.target was reached after " : "", (unsigned long long)ending.step,
		(unsigned long long)ending.steps);
}

/* With a number of workers a run begins, or goes on from its newest checkpoint; without one it is taken
 * over as it stands. */
static enum hd_err drive(struct hd_cmd *cmd, struct hd_rundir *dir, const struct hd_run_held *held,
	uint64_t until, struct hd_launch_end *end)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_drive order = { .others_start = held, .lease_s = held ? held->for_s : 0, .until = until };
	struct hd_run_options options = { 0 };
	struct hd_ckpt_info info = { 0 };
	char path[HD_PATH_CAP];

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	enum hd_err err = cmd->args.has[HD_OPT_WORKERS] ? hd_drive_workers(cmd, &order.target) : HD_OK;
	err = err ? err : hd_session_job(cmd, path, job, NULL, NULL);
	if (!err && !order.target && !held)
		err = refuse_done(cmd, dir);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err && order.target) {
		err = hd_session_newest(cmd, dir, job, UINT64_MAX, &info);
		order.step = info.step;
	}
	if (!err)
		err = hd_kernels_keep(dir, job, info.kernels, &cmd->arena, &cmd->diag);
	if (!err && order.target && !held)
		err = start(cmd, job, dir, &order, &options);
	return err ? err : hd_drive(cmd, job, dir, &order, end);
}

/* The lease is the one that there is when the lock is held: a driver that comes late, with an older one,
 * drives nothing. Nor does it drive one again that has ended: a scheduler that died, or did not see the end,
 * may have ordered a driver twice, or a worker that came late and found none. */
static enum hd_err take_pid_lock(struct hd_cmd *cmd, const struct hd_rundir *dir,
	const struct hd_run_held *held, struct hd_file *lock)
{
	char path[HD_PATH_CAP];
	struct hd_run_held now = { 0 };
	struct hd_run_end end;

	hd_rundir_path(dir, HD_RUN_PID_LOCK, path, sizeof path);
	enum hd_err err = hd_pid_lock_take(lock, &cmd->fs, &cmd->clock, path, held->job, held->lease,
		&cmd->diag);
	if (!err)
		err = hd_run_lease(&cmd->fs, dir->path, &now, &cmd->diag);
	if (!err && (now.job != held->job || now.lease != held->lease))
		err = hd_fail(&cmd->diag, HD_E_AGAIN, "%s: lease %u is over, and %u was given", dir->path,
			held->lease, now.lease);
	if (!err && !hd_run_end_get(&cmd->fs, dir->path, &end, NULL) && end.lease == held->lease)
		err = hd_fail(&cmd->diag, HD_E_AGAIN,
			"%s: lease %u has ended with exit code %d at step %llu; the scheduler gives the next",
			dir->path, end.lease, end.exit, (unsigned long long)end.step);
	return err;
}

/* Of a coordinator that was ordered for a run that went on: another one may have brought it to its end before
 * this one held the folder. */
static enum hd_err still_goes(struct hd_cmd *cmd, const struct hd_rundir *dir)
{
	struct hd_ending ending;

	if (!cmd->args.has[HD_OPT_GOING] || hd_ending_look(&cmd->fs, dir->path, &ending, NULL) ||
		(!hd_ending_is_over(&ending) && !hd_ending_is_stopped(&ending)))
		return HD_OK;
	return hd_fail(&cmd->diag, HD_E_AGAIN,
		"%s: %s at step %llu by another coordinator: nothing is left to do",
		dir->path, hd_ending_state(&ending), (unsigned long long)ending.step);
}

#define TRY_NS INT64_C(50000000)

/* With --wait as long as another process holds it. */
static enum hd_err open_run(struct hd_cmd *cmd, struct hd_rundir *dir)
{
	const char *text = hd_args_text(&cmd->args, HD_OPT_WAIT_UP, "0");
	const int64_t began_ns = hd_clock_now_ns(&cmd->clock);
	struct hd_diag why = { "" };
	uint64_t ms = 0;

	if (hd_num_duration(text, 86400000, &ms, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--wait %s: %s", text, why.text);
	for (;;) {
		cmd->diag.text[0] = 0;
		enum hd_err err = hd_rundir_open(dir, &cmd->fs, &cmd->clock, cmd->args.text[HD_OPT_JOB],
			&cmd->diag);
		const int64_t waited_ns = hd_clock_now_ns(&cmd->clock) - began_ns;
		if (err != HD_E_AGAIN || waited_ns >= (int64_t)ms * HD_NS_PER_MS)
			return err;
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + TRY_NS);
	}
}

static enum hd_err serve_run(struct hd_cmd *cmd)
{
	struct hd_run_end end = { 0 };
	struct hd_launch_end reached = { 0 };
	struct hd_rundir dir = { 0 };
	struct hd_file lock = { 0 };
	struct hd_run_held held = { 0 };

	enum hd_err err = open_run(cmd, &dir);
	if (err)
		return err;
	uint64_t until = 0;
	err = still_goes(cmd, &dir);
	enum hd_err leased = hd_run_lease(&cmd->fs, dir.path, &held, NULL);
	if (!err && leased && leased != HD_E_NOTFOUND)
		err = hd_run_lease(&cmd->fs, dir.path, &held, &cmd->diag);
	if (!err && !leased)
		err = take_pid_lock(cmd, &dir, &held, &lock);
	if (!err && !leased)
		err = hd_run_until_get(&cmd->fs, dir.path, &until, &cmd->diag);
	if (!err)
		err = drive(cmd, &dir, leased ? NULL : &held, until, &reached);
	/* the scheduler learns here how it ended, whenever it looks */
	if (!leased && err != HD_E_AGAIN) {
		end.lease = held.lease;
		end.exit = hd_err_exit(err);
		end.step = reached.driver.step;
		end.steps = until && until < reached.steps ? until : reached.steps;
		snprintf(end.digest, sizeof end.digest, "%s", reached.digest);
		snprintf(end.error, sizeof end.error, "%.199s", err ? cmd->diag.text : "");
		enum hd_err put = hd_run_end_put(&cmd->fs, dir.path, &end, NULL);
		err = err ? err : put;
	}
	hd_rundir_close(&dir);
	(void)!hd_file_close(&lock, NULL);
	return err;
}

/* ---- the scheduler ---- */

static enum hd_err stop_request(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

static void say(void *user, const char *kind, uint64_t job, const char *text)
{
	struct hd_cmd *cmd = user;

	if (cmd->args.has[HD_OPT_QUIET])
		return;
	if (job)
		fprintf(stderr, ">> %s  job %llu  %s\n", kind, (unsigned long long)job, text);
	else
		fprintf(stderr, ">> %s  %s\n", kind, text);
}

struct serve_notes { struct hd_cmd *cmd; const char *dir; };

/* An address that listens is printed even with --quiet. */
static void tell_port(void *user, const char *url)
{
	const struct serve_notes *notes = user;
	const char *dir = notes->dir, *port = strrchr(url, ':');

	if (port)
		hd_title_set(&notes->cmd->title, "heddle sched", "heddle: scheduler of %s on port %s", dir,
			port + 1);
	fprintf(stderr, ">> http  %s  for clients that have %s/token\n", url, dir);
}

static enum hd_err add_pools(struct hd_cmd *cmd, struct hd_pools *pools)
{
	static const enum hd_opt lent[] = { HD_OPT_LENT_NODES, HD_OPT_LENT_FROM, HD_OPT_LENT_AS,
		HD_OPT_LENT_FOR, HD_OPT_LENT_IDLE, HD_OPT_LENT_EXTRA, HD_OPT_NO_PILOTS };
	const char *text = hd_args_text(&cmd->args, HD_OPT_POOLS, "");
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof lent / sizeof *lent && !err; i++)
		if (cmd->args.has[lent[i]] && !hd_serve_launches(cmd))
			err = hd_fail(&cmd->diag, HD_E_INVAL, "--%s goes with --launch slurm",
				hd_opts[lent[i]].name);
	while (*text && !err) {
		size_t len = strcspn(text, ",");
		const char *one = hd_arena_text(&cmd->arena, text, len);
		err = one ? hd_pools_add(pools, one, &cmd->diag) : hd_fail(&cmd->diag, HD_E_NOMEM,
			"no memory for pools");
		text += len + (text[len] == ',');
	}
	return err;
}

static enum hd_err check_users(struct hd_cmd *cmd)
{
	const char *dir = cmd->args.text[HD_OPT_DIR];
	char path[HD_PATH_CAP];
	struct hd_users users;
	enum hd_err err = hd_users_load(&cmd->fs, dir, &users, &cmd->arena, &cmd->diag);

	snprintf(path, sizeof path, "%.2000s/" HD_USERS_FILE, dir);
	for (uint32_t i = 0; !err && i < users.nusers; i++)
		if (users.user[i].uid == HD_NO_UID)
			fprintf(stderr, "heddle: %s: this machine has no account %s: it can use tokens, and "
				"run no job\n", path, users.user[i].name);
	if (!err)
		printf("%s: ok  %u users, %u accounts, %u groups%s\n", path, users.nusers, users.naccounts,
			users.ngroups, users.others.name ? ", and others" : "");
	return err;
}

static enum hd_err serve_folder(struct hd_cmd *cmd)
{
	struct hd_pools *pools = hd_arena_take(&cmd->arena, 1, sizeof *pools);
	struct hd_http_frontend *http = hd_arena_take(&cmd->arena, 1, sizeof *http);
	char *dir = hd_arena_take(&cmd->arena, 1, HD_PATH_CAP), here[HD_PATH_CAP];
	const char *asked = cmd->args.text[HD_OPT_DIR];
	/* a batch job ends, and another one begins */
	struct hd_switch_costs costs = { .move_s = cmd->args.has[HD_OPT_NO_PILOTS] ? 10 : 2 };
	struct hd_serve_lent lent = { NULL, NULL };
	double round_s = 0, lease_s = 0;

	if (!pools || !http || !dir)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a scheduler");
	/* jobs are started from anywhere: their paths are absolute */
	enum hd_err err = hd_proc_folder(here, sizeof here, &cmd->diag);
	if (!err && (size_t)snprintf(dir, HD_PATH_CAP, "%s%s%s", asked[0] == '/' ? "" : here,
		asked[0] == '/' ? "" : "/", asked) >= HD_PATH_CAP / 2)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path of %.80s is too long", asked);
	if (!err)
		err = add_pools(cmd, pools);
	if (!err && cmd->args.has[HD_OPT_ROUND])
		err = hd_num_f64(cmd->args.text[HD_OPT_ROUND], 0.5, 86400, &round_s, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_LEASE] &&
		hd_num_f64(cmd->args.text[HD_OPT_LEASE], 2, 86400, &lease_s, NULL))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--lease %.40s: seconds from 2 to 86400",
			cmd->args.text[HD_OPT_LEASE]);
	if (!err && cmd->args.has[HD_OPT_SWITCHING])
		err = hd_sched_switching(cmd, &costs);
	if (!err)
		err = hd_serve_launch(cmd, dir, pools, &lent);
	if (!err)
		err = hd_pools_open(pools, &cmd->fs, &cmd->diag);
	if (lent.pilots || lent.batches)
		pools->means = HD_POOL_LENT;
	if (!err)
		err = hd_signal_install(&cmd->diag);
	struct serve_notes notes = { cmd, dir };
	http->dir = dir;
	http->also = hd_args_text(&cmd->args, HD_OPT_SOCKET, NULL);
	http->where = hd_args_text(&cmd->args, HD_OPT_HTTP, NULL);
	http->opened = tell_port;
	http->user = &notes;
	struct hd_webhook hook = { .dir = dir, .url = hd_args_text(&cmd->args, HD_OPT_WEBHOOK, NULL),
		.say = say, .user = cmd };
	const struct hd_frontend frontend[] = { { &hd_http_frontend_ops, http }, { &hd_webhook_ops, &hook } };
	if (!err && hook.url)
		err = hd_webhook_check(hook.url, &cmd->diag);
	const struct hd_daemon_spec spec = { .fs = &cmd->fs, .clock = &cmd->clock, .dir = dir, .pools = pools,
		.pilots = lent.pilots, .batches = lent.batches,
		.policy = hd_args_text(&cmd->args, HD_OPT_SCHED_POLICY,
		hd_policy_has_lp() ? "las" : "fifo"), .round_s = round_s, .alone_s = lease_s,
		.move_s = costs.move_s,
		.drain = cmd->args.has[HD_OPT_DRAIN], .frontend = frontend, .nfrontends = hook.url ? 2 : 1,
		.stop = stop_request, .user = cmd, .say = say };
	hd_title_set(&cmd->title, "heddle sched", "heddle: scheduler of %s", dir);
	if (!err && cmd->args.has[HD_OPT_REPLACE])
		err = hd_serve_replace(cmd, &spec);
	if (!err && cmd->args.has[HD_OPT_CHECK]) {
		err = hd_serve_check(cmd, &spec, stdout);
		hd_serve_launch_close(&lent);
		hd_pools_close(pools);
		return err;
	}
	if (!err)
		say(cmd, "serve", 0, dir);
	if (!err)
		err = hd_daemon(&spec, &cmd->leave_at_once, &cmd->diag);
	hd_serve_launch_close(&lent);
	hd_pools_close(pools);
	return err;
}

static enum hd_err verb_serve(struct hd_cmd *cmd)
{
	if (cmd->args.has[HD_OPT_NEW_KEY])
		return new_key(cmd);
	if (cmd->args.has[HD_OPT_JOB])
		return serve_run(cmd);
	if (cmd->args.has[HD_OPT_CHECK] && cmd->args.has[HD_OPT_REPLACE])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--check changes nothing, --replace does: one of them");
	if (cmd->args.has[HD_OPT_DIR] && cmd->args.has[HD_OPT_CHECK] && !cmd->args.has[HD_OPT_POOLS] &&
		!hd_serve_launches(cmd))
		return check_users(cmd);
	if (cmd->args.has[HD_OPT_BACKUP] || cmd->args.has[HD_OPT_RESTORE])
		return cmd->args.has[HD_OPT_BACKUP] ? hd_serve_backup(cmd) : hd_serve_restore(cmd);
	if (cmd->args.has[HD_OPT_DIR])
		return serve_folder(cmd);
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"--dir DIR names the folder of a scheduler, --job RUN that of the run to coordinate");
}

const struct hd_verb hd_verb_serve = {
	.name = "serve", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "schedule the jobs of a folder over local devices; or coordinate one run",
	.more =
		"--dir DIR --pool TYPE:N[:SPEED],...: schedules what is submitted to DIR over so many "
		"devices of each type, one worker process each; slower types have a part of a core. "
		"--policy decides which job gets which for how long, round by round; jobs are resized "
		"and moved while they run, or commit and go on later, with the same bits; by what a "
		"move costs (--switching; 2 s) they hold on to devices.\n"
		"--launch slurm --nodes [N..]M: its devices are nodes that Slurm lends: batch jobs of one "
		"node each, as many as the jobs ask for, given back after --idle; a type is that of a "
		"node's GPU, else its first feature. Preempted, a job goes on with what is left, or waits; "
		"started again with the same DIR the scheduler finds its nodes (docs/slurm.md). With "
		"--no-pilots each job is a batch job of its own, of as many nodes as it is given; to have "
		"more or fewer it commits, ends, and another one goes on.\n"
		"Jobs outlive the scheduler: started again with the same DIR it finds them.\n"
		"SIGTERM or SIGHUP ends it and lets jobs go on; with --drain they commit and leave. A "
		"second one of the same DIR is refused (exit 1). Users come through DIR/heddle.sock; "
		"nothing else listens unless --http asks for it.\n"
		"With DIR/users.yaml it has users: the socket is for all accounts of the machine, that file "
		"says which of them may what, and where the scheduler is root, their jobs run as they. "
		"--check looks whether it is right.\n"
		"--check with --pool and what else it would be started with: would this program serve DIR? "
		"A line a matter: ok, warn, refuse (exit 2); nothing is changed. --replace: so checked, it "
		"takes the place of the scheduler that serves DIR, and jobs go on meanwhile; what is refused "
		"leaves that one as it is (docs/upgrade.md).\n"
		"--backup FOLDER --dir DIR: copies the store of that scheduler, while it serves or not, "
		"with a sum of each file. --restore FOLDER --dir DIR: puts it back where no scheduler "
		"serves and no process of a run works; of each job it looks what became of its run since "
		"(docs/upgrade.md).\n"
		"--job RUN: takes over the run in that folder: its members and what was decided stand "
		"in its store. Workers do so by themselves, with --going. While another one coordinates "
		"it, nothing is done (exit 1); with --wait TIME it is tried again for so long.\n"
		"--job RUN --workers N: begins it, or goes on from its newest checkpoint, for N workers "
		"(how a scheduler starts a job).\n"
		"--new-key FILE: writes a new key for `run --listen` and `worker --join HOST:PORT`, "
		"readable by you alone, and stops. Copy the file to the other machines; it is never "
		"sent, nor named in an argument or a log.",
	.opts = HD_OPTS(HD_OPT_SOCKET, HD_OPT_CHECK, HD_OPT_POOLS, HD_OPT_LAUNCH, HD_OPT_LENT_NODES,
		HD_OPT_NO_PILOTS, HD_OPT_LENT_FROM, HD_OPT_LENT_AS, HD_OPT_LENT_FOR, HD_OPT_LENT_IDLE,
			HD_OPT_LENT_EXTRA,
			HD_OPT_SCHED_POLICY, HD_OPT_ROUND, HD_OPT_LEASE,
		HD_OPT_SWITCHING, HD_OPT_HTTP, HD_OPT_WEBHOOK, HD_OPT_DRAIN, HD_OPT_REPLACE, HD_OPT_BACKUP,
		HD_OPT_RESTORE,
		HD_OPT_JOB, HD_OPT_GOING, HD_OPT_WAIT_UP, HD_OPT_WORKERS, HD_OPT_LISTEN,
		HD_OPT_KEY, HD_OPT_NEW_KEY, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_PROFILE, HD_OPT_STEPS,
		HD_OPT_SET),
	.run = verb_serve, .test = "program_cluster.sh",
};
