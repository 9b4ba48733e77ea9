#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "daemon/run_page.h"
#include "cmd/json_line.h"
#include "cmd/jobs/scheduler.h"
#include "cmd/run/live.h"

enum { HD_STATUS_EVERY_NS = 1000000000 };

static void print_json(struct hd_cmd *cmd, const struct hd_live *live)
{
	struct hd_json_line line;

	hd_live_put(live, HD_LIVE_JSON, hd_json_line_open(cmd, &line));
	hd_json_line_print(&line);
	fflush(stdout);
}

static void show(struct hd_cmd *cmd, const struct hd_live *live, bool clear)
{
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, live);
		return;
	}
	if (clear && cmd->rewrite)
		printf("\033[H\033[2J");
	hd_live_print(live, stdout);
	fflush(stdout);
}

static enum hd_err again_and_again(struct hd_cmd *cmd, bool clear)
{
	struct hd_reach_misses misses = { 0 };
	/* until an answer says otherwise: the first may be missed */
	struct hd_live live = { .goes_on = true };
	uint64_t every = cmd->args.has[HD_OPT_EVERY] ? cmd->args.count[HD_OPT_EVERY] * 1000000 :
		HD_STATUS_EVERY_NS;
	enum hd_err err = hd_signal_install(&cmd->diag);

	if (!err && cmd->args.has[HD_OPT_EVERY] && cmd->args.count[HD_OPT_EVERY] < 50)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--every is at least 50 (milliseconds)");
	while (!err && !hd_signal_stop()) {
		err = hd_live_look(cmd, cmd->args.pos[0], &live);
		if (!err)
			show(cmd, &live, clear);
		if (hd_reach_missed(&misses, err))
			err = HD_OK;
		if (err || !live.goes_on)
			break;
		hd_arena_reset(&cmd->arena);
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + (int64_t)every);
	}
	return err;
}

static enum hd_err verb_status(struct hd_cmd *cmd)
{
	struct hd_live live;

	if (!cmd->args.npos)
		return hd_scheduler_status(cmd, cmd->args.has[HD_OPT_WATCH], false);
	if (cmd->args.has[HD_OPT_WATCH])
		return again_and_again(cmd, false);
	enum hd_err err = hd_live_look(cmd, cmd->args.pos[0], &live);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &live);
	else
		hd_live_print(&live, stdout);
	return HD_OK;
}

const struct hd_verb hd_verb_status = {
	.name = "status", .args = "[RUN]", .npos_min = 0, .npos_max = 1,
	.about =
		"where a run stands: step, loss, workers; without RUN a scheduler: devices, jobs, why "
		"they wait",
	.more =
		"Of a run, whether it goes on or how it ended; or of the scheduler of --dir. Where a "
		"run's coordinator is gone it waits for the next one, as scale and stop do. States: "
		"new, starting, running, evaluating, waiting, stopping; done, stopped, failed, died; "
		"ended: an earlier program did not record how.",
	.opts = HD_OPTS(HD_OPT_WATCH, HD_OPT_EVERY),
	.run = verb_status, .test = "program_elastic.sh",
};

static enum hd_err stop_request(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

static void tell_address(void *user, const char *url)
{
	const struct hd_cmd *cmd = user;

	fprintf(stderr, ">> http  %s  the page of %s; the address has its token, which ends with this "
		"process\n", url, cmd->args.pos[0]);
}

static enum hd_err serve_page(struct hd_cmd *cmd)
{
	struct hd_arena arena;
	struct hd_run_page page = { .reach = { &cmd->fs, &cmd->clock, &arena, NULL }, .run = cmd->args.pos[0],
		.where = cmd->args.text[HD_OPT_HTTP], .opened = tell_address, .stop = stop_request,
		.user = cmd };
	enum hd_err err = hd_signal_install(&cmd->diag);

	hd_arena_init(&arena, 0);
	if (!err)
		err = hd_run_page(&page, &cmd->diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err verb_top(struct hd_cmd *cmd)
{
	if (cmd->args.has[HD_OPT_HTTP] && cmd->args.npos)
		return serve_page(cmd);
	if (cmd->args.has[HD_OPT_HTTP])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--http serves the page of a RUN: name its folder; a "
			"scheduler serves its own (`heddle serve --dir DIR --http`)");
	return cmd->args.npos ? again_and_again(cmd, true) : hd_scheduler_status(cmd, true, true);
}

const struct hd_verb hd_verb_top = {
	.name = "top", .args = "[RUN]", .npos_min = 0, .npos_max = 1,
	.about = "the same as a live screen",
	.more =
		"On a terminal the screen is rewritten, elsewhere a table follows the other; ends with "
		"the run, or the scheduler. With --http the run's page for a browser instead, until a "
		"stop request: what it is at, its loss, its workers; another number of them, or its "
		"stop.",
	.opts = HD_OPTS(HD_OPT_EVERY, HD_OPT_HTTP),
	.run = verb_top, .test = "program_elastic.sh",
};
