#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "exec/elastic.h"
#include "serve/conduct.h"
#include "cmd/team.h"

/* A worker of a run: joins, and joins anew when the others went on without it. */

struct post {
	struct hd_cmd *cmd;
	const char *dir;
	struct hd_host host;
	struct hd_proc coordinator;       /* one that this worker started; reaped at the next */
};

static enum hd_err wish(void *user)
{
	(void)user;
	return hd_wish_err(hd_signal_wish());
}

/* What it says goes into a log of the run's folder; it outlives this worker. */
static enum hd_err take_over(void *user, struct hd_diag *diag)
{
	struct post *p = user;
	const char *argv[16] = { "/proc/self/exe", "serve", "--job", p->dir, "-q" };
	char path[HD_PATH_CAP], threads[32], steps[32];
	struct hd_file log = { 0 };
	struct hd_stat stat;
	uint32_t n = 5;
	int code;

	snprintf(path, sizeof path, "%s/job.resolved.json", p->dir);
	if (hd_fs_stat(&p->cmd->fs, path, &stat, NULL) == HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_REFUSED, "the run's folder %s is gone and so is its coordinator: nothing that is computed could be kept", p->dir);

	if (p->coordinator.host && hd_proc_wait(&p->coordinator, 0, &code, NULL) == HD_E_AGAIN)
		return HD_OK;             /* it is still trying */
	p->coordinator = (struct hd_proc){ 0 };
	if (p->cmd->args.has[HD_OPT_DEVICES]) {
		argv[n++] = "--devices";
		argv[n++] = p->cmd->args.text[HD_OPT_DEVICES];
	}
	if (p->cmd->args.has[HD_OPT_THREADS]) {
		snprintf(threads, sizeof threads, "%llu", (unsigned long long)p->cmd->args.count[HD_OPT_THREADS]);
		argv[n++] = "--threads";
		argv[n++] = threads;
	}
	if (p->cmd->args.has[HD_OPT_STEPS]) {
		snprintf(steps, sizeof steps, "%llu", (unsigned long long)p->cmd->args.count[HD_OPT_STEPS]);
		argv[n++] = "--steps";
		argv[n++] = steps;
	}
	snprintf(path, sizeof path, "%s/log/coordinator.log", p->dir);
	enum hd_err err = hd_file_open(&p->cmd->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &log, diag);
	if (!err)
		err = hd_proc_spawn(&p->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id, .err = log.id }, &p->coordinator, diag);
	if (log.fs && hd_file_close(&log, NULL) && !err)
		err = HD_E_IO;
	return err;
}

static enum hd_err once(struct post *p, const struct hd_job *job, struct hd_rundir *dir, const struct hd_run_options *options, bool *fenced)
{
	struct hd_cmd *cmd = p->cmd;
	char coordinator[HD_MSG_ADDR + 1], listen[HD_MSG_ADDR + 1], name[32];
	struct hd_proc_self self;
	struct hd_run *run = NULL;
	enum hd_err err;

	hd_proc_self(&self);
	snprintf(name, sizeof name, "w%u.sock", self.pid);
	err = hd_conduct_address("unix", p->dir, HD_TEAM_SOCKET, coordinator, &cmd->diag);
	if (!err)
		err = hd_conduct_address("shm", p->dir, name, listen, &cmd->diag);
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, dir, options, &cmd->diag);
	if (err)
		return err;
	struct hd_elastic_spec spec = { .run = run, .fs = &cmd->fs, .clock = &cmd->clock, .dir = p->dir, .coordinator = coordinator, .listen = listen,
		.take_over = take_over, .wish = wish, .user = p,
		.stop_at = cmd->args.has[HD_OPT_STEPS] ? cmd->args.count[HD_OPT_STEPS] : 0 };
	if (cmd->args.has[HD_OPT_SLOW])
		err = hd_num_f64(cmd->args.text[HD_OPT_SLOW], 1, 1000, &spec.slow, &cmd->diag);
	if (!err)
		err = hd_elastic_attend(&spec, fenced, &cmd->diag);
	hd_run_destroy(run);
	return err;
}

enum hd_err hd_cmd_worker(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { 0 };
	struct post post = { .cmd = cmd, .dir = cmd->args.text[HD_OPT_JOIN] };
	struct hd_rundir dir = { 0 };
	char path[HD_PATH_CAP];
	bool fenced = true;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	if (!cmd->args.has[HD_OPT_JOIN])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--join names what to join: the folder of a run that was started with --workers");
	hd_host_real(&post.host);
	enum hd_err err = hd_rundir_visit(&dir, &cmd->fs, &cmd->clock, post.dir, &cmd->diag);
	if (!err) {
		hd_rundir_path(&dir, "job.resolved.json", path, sizeof path);
		err = hd_session_job(cmd, path, job, NULL, NULL);
	}
	if (!err)
		err = hd_session_devices(cmd, job, &options);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	options.shared = true;
	while (!err && fenced)
		err = once(&post, job, &dir, &options, &fenced);
	hd_rundir_close(&dir);
	return err;
}

enum hd_err hd_cmd_serve(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_rundir dir = { 0 };
	char path[HD_PATH_CAP];

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	if (!cmd->args.has[HD_OPT_JOB])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--job names the folder of the run to coordinate");
	enum hd_err err = hd_rundir_open(&dir, &cmd->fs, &cmd->clock, cmd->args.text[HD_OPT_JOB], &cmd->diag);
	if (!err) {
		hd_rundir_path(&dir, "job.resolved.json", path, sizeof path);
		err = hd_session_job(cmd, path, job, NULL, NULL);
	}
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_team_conduct(cmd, job, &dir, 0, 0);
	hd_rundir_close(&dir);
	return err;
}
