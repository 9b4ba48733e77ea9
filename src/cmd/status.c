#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "cmd/live.h"
#include "cmd/scheduler.h"

enum { HD_STATUS_EVERY_NS = 1000000000 };

static void print_json(struct hd_cmd *cmd, const struct hd_live *l)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "name", l->name);
	hd_json_put_text(&w, "state", l->state);
	hd_json_put_text(&w, "why", l->why);
	if (l->exit >= 0)
		hd_json_put_i64(&w, "exit", l->exit);
	else
		hd_json_put_null(&w, "exit");
	if (l->alone)
		hd_json_put_i64(&w, "pid", l->alone);
	hd_json_put_i64(&w, "step", l->step);
	hd_json_put_i64(&w, "steps", l->steps);
	hd_json_put_f64(&w, "loss", l->loss);
	hd_json_put_f64(&w, "step_ms", l->step_ms);
	hd_json_put_f64(&w, "wait_ms", l->wait_ms);
	hd_json_put_i64(&w, "membership", l->epoch);
	hd_json_put_i64(&w, "term", l->term);
	hd_json_put_i64(&w, "plan", l->plan);
	hd_json_put_i64(&w, "members", l->members);
	hd_json_put_i64(&w, "target", l->target);
	hd_json_put_i64(&w, "asked", l->asked);
	hd_json_put_i64(&w, "virtual_nodes", l->virtual_nodes);
	hd_json_put_text(&w, "autoscale", l->autoscale);
	hd_json_put_text(&w, "autoscale_why", l->autoscale_why);
	hd_json_put_text(&w, "plan_why", l->plan_why);
	hd_json_put_f64(&w, "predicted_ms", l->predicted_ms);
	hd_json_put_i64(&w, "unrecorded", l->unrecorded);
	hd_json_put_i64(&w, "copies", l->copies);
	hd_json_put_i64(&w, "given_up", l->given_up);
	hd_json_open_array(&w, "workers");
	for (uint32_t i = 0; i < l->nworkers; i++) {
		const struct hd_live_worker *p = &l->worker[i];
		hd_json_open_object(&w, NULL);
		hd_json_put_i64(&w, "id", p->id);
		hd_json_put_i64(&w, "worker", p->id);     /* as events call it */
		hd_json_put_text(&w, "state", p->state);
		hd_json_put_i64(&w, "pid", p->pid);
		hd_json_put_i64(&w, "devices", p->devices);
		hd_json_put_i64(&w, "virtual_nodes", p->virtual_nodes);
		hd_json_put_f64(&w, "step_ms", p->step_ms);
		hd_json_put_f64(&w, "wait_ms", p->wait_ms);
		hd_json_put_f64(&w, "compute_ms", p->compute_ms);
		hd_json_put_f64(&w, "vn_ms", p->vn_ms);
		hd_json_put_f64(&w, "speed", p->speed);
		hd_json_put_i64(&w, "redone_vn", p->redone);
		hd_json_put_text(&w, "address", p->address);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
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
	struct hd_live_misses misses = { 0 };
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
		if (hd_live_missed(&misses, err))
			err = HD_OK;
		if (err || !live.goes_on)
			break;
		hd_arena_reset(&cmd->arena);
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + (int64_t)every);
	}
	return err;
}

enum hd_err hd_cmd_status(struct hd_cmd *cmd)
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

enum hd_err hd_cmd_top(struct hd_cmd *cmd)
{
	return cmd->args.npos ? again_and_again(cmd, true) : hd_scheduler_status(cmd, true, true);
}
