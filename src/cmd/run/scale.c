#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "notice/hand.h"
#include "run/pipes.h"
#include "worker/notice_agent.h"
#include "cmd/run/drive.h"
#include "cmd/run/live.h"

#define HD_LOOK_NS INT64_C(100000000)
enum { HD_STOP_TRIES = 10 };
#define HD_STOP_PAUSE_NS INT64_C(20000000)
#define HD_TELL_NS INT64_C(5000000000)

/* "5", "+2", "-1", "auto" -> a member of the request. */
static enum hd_err request(struct hd_cmd *cmd, const char *text, char ask[96])
{
	const char *digits = text + (*text == '+' || *text == '-');
	uint64_t n = 0;

	if (!strcmp(text, "auto")) {
		const char *policy = hd_args_text(&cmd->args, HD_OPT_POLICY, "curve");
		if (strlen(policy) > 32 || strpbrk(policy, "\"\\"))
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"there is no autoscaling policy \"%.40s\"; there are curve, ae-2020", policy);
		snprintf(ask, 96, "{\"do\":\"scale\",\"auto\":true,\"policy\":\"%s\"}", policy);
		return HD_OK;
	}
	if (hd_num_u64(digits, HD_LIVE_WORKERS, &n, NULL) || (digits == text && n == 0))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"workers \"%s\": write a number from 1 to %d, +K, -K or auto", text, HD_LIVE_WORKERS);
	snprintf(ask, 96, "{\"do\":\"scale\",\"%s\":%s%llu}", digits == text ? "workers" : "by",
		*text == '-' ? "-" : "", (unsigned long long)n);
	return HD_OK;
}

/* Which workers it waits for. */
static void tell_wait(const struct hd_live *live, int64_t waited_ns)
{
	fprintf(stderr, "scale: %lld of %lld workers after %.0f s", (long long)live->members,
		(long long)live->target, (double)waited_ns * 1e-9);
	for (uint32_t i = 0; i < live->nworkers; i++)
		if (strcmp(live->worker[i].state, "member") != 0)
			fprintf(stderr, ", worker %lld is %s", (long long)live->worker[i].id,
				live->worker[i].state);
	fprintf(stderr, "%s%s\n", *live->why ? "; " : "", live->why);
}

/* Until as many workers are members as are wanted, or a signal comes; remote workers may come and go
 * meanwhile. Says now and then what it waits for. */
static enum hd_err wait_for(struct hd_cmd *cmd, const char *run, int64_t asked, int64_t *target,
	int64_t *members)
{
	int64_t began_ns = hd_clock_now_ns(&cmd->clock), said_ns = began_ns;

	for (;;) {
		const struct hd_json *answer;
		struct hd_live live;
		enum hd_err err = hd_live_ask(cmd, run, "{\"do\":\"status\"}", &answer);
		if (!err)
			err = hd_live_read(answer, &live, &cmd->diag);
		if (err)
			return err;
		*target = live.target;
		*members = live.members;
		if (live.asked != asked)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"another command asked for %lld workers meanwhile",
				(long long)live.asked);
		if (live.members == live.target)
			return HD_OK;
		if (hd_signal_stop())
			return hd_stop_err(hd_signal_stop());
		int64_t now_ns = hd_clock_now_ns(&cmd->clock);
		if (now_ns - said_ns >= HD_TELL_NS && !cmd->args.has[HD_OPT_QUIET]) {
			tell_wait(&live, now_ns - began_ns);
			said_ns = now_ns;
		}
		hd_clock_wait_until(&cmd->clock, now_ns + HD_LOOK_NS);
	}
}

/* A worker that finds out at the change that its stages do not fit would leave, and the next one, too. */
static enum hd_err fits(struct hd_cmd *cmd, const char *run, const char *workers)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { 0 };
	const struct hd_json *answer;
	char dir[HD_RUN_PATH];
	struct hd_live live;
	uint64_t n = 0;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	enum hd_err err = hd_live_ask(cmd, run, "{\"do\":\"status\"}", &answer);
	err = err ? err : hd_live_read(answer, &live, &cmd->diag);
	err = err ? err : hd_session_job_of(cmd, run, job, dir);
	if (err || job->value[HD_JOB_MEMORY].is_auto || !live.nworkers)
		return err;
	if (!workers || hd_num_u64(workers, HD_LIVE_WORKERS, &n, NULL))
		n = (uint64_t)live.target;
	err = hd_pipes_change(job, (uint32_t)job->value[HD_JOB_PAR_WIDTH].i,
		(uint32_t)live.worker[0].devices, &cmd->arena, &cmd->diag);
	err = err ? err : hd_session_devices(cmd, job, &options);
	options.worker.ndevices = (uint32_t)live.worker[0].devices;
	return err ? err : hd_drive_fits(cmd, job, &options, (uint32_t)n);
}

/* -s: pipelines of another shape; with a number of workers they are those. */
static enum hd_err ask_for_shape(struct hd_cmd *cmd, const char *run, const char *workers)
{
	const struct hd_json *answer;
	const char *schedule = "", *redundancy = "";
	int64_t stages = 0, devices = 0;
	struct hd_json_writer w;
	struct hd_text text;
	uint64_t n = 0;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "do", "shape");
	hd_json_open_array(&w, "set");
	for (uint32_t i = 0; i < cmd->args.nsets; i++)
		hd_json_put_text(&w, NULL, cmd->args.set[i]);
	hd_json_close(&w);
	if (workers && !hd_num_u64(workers, HD_LIVE_WORKERS, &n, NULL))
		hd_json_put_i64(&w, "workers", (int64_t)n);
	hd_json_close(&w);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the request");
	enum hd_err err = fits(cmd, run, workers);
	err = err ? err : hd_live_ask(cmd, run, text.at, &answer);
	err = err ? err : hd_json_get_i64(answer, "stages", 0, INT64_MAX, &stages, &cmd->diag);
	err = err ? err : hd_json_get_i64(answer, "devices", 0, INT64_MAX, &devices, &cmd->diag);
	err = err ? err : hd_json_get_text(answer, "schedule", &schedule, &cmd->diag);
	err = err ? err : hd_json_get_text(answer, "redundancy", &redundancy, &cmd->diag);
	if (!err && !workers && cmd->args.has[HD_OPT_JSON])
		printf("{\"stages\":%lld,\"devices\":%lld,\"schedule\":\"%s\",\"redundancy\":\"%s\"}\n",
			(long long)stages, (long long)devices, schedule, redundancy);
	else if (!err && !cmd->args.has[HD_OPT_JSON] && !cmd->args.has[HD_OPT_QUIET])
		printf("%s: %lld stage%s, %lld device%s a pipeline, redundancy %s, from one of the next "
			"steps on\n", schedule, (long long)stages, stages == 1 ? "" : "s", (long long)devices,
			devices == 1 ? "" : "s", redundancy);
	return err;
}

static enum hd_err verb_scale(struct hd_cmd *cmd)
{
	const char *run = cmd->args.pos[0], *workers = cmd->args.npos > 1 ? cmd->args.pos[1] : NULL;
	const struct hd_json *answer;
	int64_t asked = 0, target = 0, members = 0;
	char ask[96];

	if (!workers && !cmd->args.nsets)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"say how many workers, as in `heddle scale %s 4`, or which pipelines, as in `heddle "
			"scale %s -s parallel.stages=2`", run, run);
	enum hd_err err = workers ? request(cmd, workers, ask) : HD_OK;

	if (!err && cmd->args.has[HD_OPT_POLICY] && (!workers || strcmp(workers, "auto") != 0))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--policy goes with auto");
	if (!err && cmd->args.nsets)
		err = ask_for_shape(cmd, run, workers);
	if (err || !workers)
		return err;
	if (!err)
		err = hd_live_ask(cmd, run, ask, &answer);
	if (!err)
		err = hd_json_get_i64(answer, "asked", 0, INT64_MAX, &asked, &cmd->diag);
	if (!err)
		err = hd_json_get_i64(answer, "target", 0, INT64_MAX, &target, &cmd->diag);
	if (!err)
		err = hd_json_get_i64(answer, "members", 0, INT64_MAX, &members, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_WAIT])
		err = hd_signal_install(&cmd->diag);
	if (!err && cmd->args.has[HD_OPT_WAIT])
		err = wait_for(cmd, run, asked, &target, &members);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"target\":%lld,\"members\":%lld}\n", (long long)target, (long long)members);
	else if (!cmd->args.has[HD_OPT_QUIET])
		printf("%lld workers asked for, %lld now\n", (long long)target, (long long)members);
	return HD_OK;
}

const struct hd_verb hd_verb_scale = {
	.name = "scale", .args = "RUN [N|+K|-K|auto]", .npos_min = 1, .npos_max = 2,
	.about = "ask a run for another number of workers, or other pipelines, while it goes on",
	.more =
		"The run is one of `heddle run --workers`. Workers come and go between two steps; not a "
		"bit of the result depends on it.\n"
		"auto: the run tries sizes and stays at the best (elastic.autoscale of the job says "
		"what that is); `heddle status` says why.\n"
		"A number turns that off. --wait: until that many are members.\n"
		"-s: of a run of pipelines over workers parallel.stages, chunks, schedule, replicas, tensor, "
		"groups and recompute, and elastic.redundancy, also with a number of workers: from one of "
		"the next steps on. The number of stages left out, pipelines have as many ranks as before.",
	.opts = HD_OPTS(HD_OPT_WAIT, HD_OPT_POLICY, HD_OPT_SET),
	.run = verb_scale, .test = "program_elastic.sh",
};

/* One process without workers is asked as a user would: by a signal, which it obeys with a checkpoint, and
 * by a second one, which it obeys at once. */
static enum hd_err stop_alone(struct hd_cmd *cmd, int pid)
{
	cmd->diag.text[0] = '\0';
	if (cmd->args.has[HD_OPT_WORKER])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s goes on in one process: it has no worker that could leave; leave out --worker",
			cmd->args.pos[0]);
	enum hd_err err = hd_pid_signal(pid, HD_PROC_TERM);
	/* two that come before the first is taken are one */
	for (int i = 0; i < HD_STOP_TRIES && cmd->args.has[HD_OPT_NOW] && !err &&
		!hd_pid_signal(pid, HD_PROC_TERM); i++)
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + HD_STOP_PAUSE_NS);
	return err ? hd_fail(&cmd->diag, err, "process %d of %s is gone, or another user's", pid,
		cmd->args.pos[0]) : HD_OK;
}

/* By the file that all workers of this machine look at: each leaves on its own, and no coordinator is asked.
 * */
static enum hd_err stop_local(struct hd_cmd *cmd)
{
	const char *lead = hd_args_text(&cmd->args, HD_OPT_NOTICE, "30s");
	char path[HD_PATH_CAP], folder[HD_PATH_CAP], text[HD_HAND_TEXT];
	struct hd_diag why = { "" };
	uint64_t ms = 0;

	if (cmd->args.npos || cmd->args.has[HD_OPT_WORKER] || cmd->args.has[HD_OPT_NOW])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--local is for this machine and all runs: leave out RUN, --worker and --now");
	if (strcmp(lead, "none") != 0 && hd_num_duration(lead, 86400000, &ms, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--notice %s: %s", lead, why.text);
	enum hd_err err = hd_notice_agent_file(path, &cmd->diag);
	if (err)
		return err;
	int64_t ends_ns = hd_clock_wall_ns(&cmd->clock) + (int64_t)ms * HD_NS_PER_MS;
	size_t len = hd_hand_print(strcmp(lead, "none") != 0 ? ends_ns : 0, text);
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0),
		path);
	if (*folder)
		err = hd_fs_mkdirs(&cmd->fs, folder, &cmd->diag);
	return err ? err : hd_file_write_atomic(&cmd->fs, path, text, len, &cmd->diag);
}

/* The whole run, or one worker of it. */
static enum hd_err verb_stop(struct hd_cmd *cmd)
{
	const struct hd_json *answer;
	char ask[96];

	if (cmd->args.has[HD_OPT_LOCAL])
		return stop_local(cmd);
	if (cmd->args.has[HD_OPT_NOTICE])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--notice goes with --local");
	if (!cmd->args.npos)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"say which run to stop, or --local for all workers of this machine");

	if (cmd->args.has[HD_OPT_WORKER])
		snprintf(ask, sizeof ask, "{\"do\":\"drain\",\"worker\":%llu}",
			(unsigned long long)cmd->args.count[HD_OPT_WORKER]);
	else
		snprintf(ask, sizeof ask, "{\"do\":\"stop\",\"now\":%s}",
			cmd->args.has[HD_OPT_NOW] ? "true" : "false");
	enum hd_err err = hd_live_ask(cmd, cmd->args.pos[0], ask, &answer);
	int pid = err == HD_E_NOTFOUND ? hd_live_alone(cmd, cmd->args.pos[0]) : 0;
	return pid ? stop_alone(cmd, pid) : err;
}

const struct hd_verb hd_verb_stop = {
	.name = "stop", .args = "[RUN]", .npos_min = 0, .npos_max = 1,
	.about =
		"end a run after its current step, with a checkpoint (the run exits with 75); or remove one "
		"worker",
	.more =
		"--worker ID: that worker leaves, the run goes on. --now: the run ends without a last "
		"checkpoint.\n"
		"--local, without RUN: this machine will be taken away in --notice TIME; its workers, of all "
		"runs, hand over and leave (exit 0), and where none is left a run stops with a "
		"checkpoint. For preStop hooks and the like. --local --notice none takes it back.",
	.opts = HD_OPTS(HD_OPT_WORKER, HD_OPT_NOW, HD_OPT_LOCAL, HD_OPT_NOTICE),
	.run = verb_stop, .test = "program_elastic.sh",
};
