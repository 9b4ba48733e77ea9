#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "notice/hand.h"
#include "worker/notice_agent.h"
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
		const char *policy = cmd->args.has[HD_OPT_POLICY] ? cmd->args.text[HD_OPT_POLICY] : "curve";
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

static enum hd_err verb_scale(struct hd_cmd *cmd)
{
	const char *run = cmd->args.pos[0];
	const struct hd_json *answer;
	int64_t asked = 0, target = 0, members = 0;
	char ask[96];
	enum hd_err err = request(cmd, cmd->args.pos[1], ask);

	if (!err && cmd->args.has[HD_OPT_POLICY] && strcmp(cmd->args.pos[1], "auto") != 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--policy goes with auto");
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
	.name = "scale", .args = "RUN N|+K|-K|auto", .npos_min = 2, .npos_max = 2,
	.about = "ask a run for another number of workers, while it goes on",
	.more =
		"The run is one of `heddle run --workers`. Workers come and go between two steps; not a "
		"bit of the result depends on it.\n"
		"auto: the run tries sizes and stays at the best (elastic.autoscale of the job says "
		"what that is); `heddle status` says why.\n"
		"A number turns that off. --wait: until that many are members.",
	.opts = HD_OPTS(HD_OPT_WAIT, HD_OPT_POLICY),
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
	const char *lead = cmd->args.has[HD_OPT_NOTICE] ? cmd->args.text[HD_OPT_NOTICE] : "30s";
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
		"end a run after the step at hand, with a checkpoint (exit 75 there); or let one worker "
		"go",
	.more =
		"--worker ID: that worker leaves, the run goes on. --now: the run ends without a last "
		"checkpoint.\n"
		"--local, without RUN: this machine will be taken away in --notice TIME; its workers, of all "
		"runs, hand over and leave (exit 0), and where none is left a run stops with a "
		"checkpoint. For preStop hooks and the like. --local --notice none takes it back.",
	.opts = HD_OPTS(HD_OPT_WORKER, HD_OPT_NOW, HD_OPT_LOCAL, HD_OPT_NOTICE),
	.run = verb_stop, .test = "program_elastic.sh",
};
