/* heddle trace analyze, diff: what recordings say. */
#include <stdio.h>
#include <string.h>

#include "timeline/analyze/compare.h"
#include "cmd/json_line.h"
#include "cmd/trace/input.h"
#include "cmd/trace/show.h"

/* ---- analyze ---- */

static enum hd_err verb_trace_analyze(struct hd_cmd *cmd)
{
	const uint64_t most = hd_args_count(&cmd->args, HD_OPT_LAST_STEPS, HD_TL_SUMMARY_STEPS);
	struct hd_trace_input input;
	struct hd_tl_summary summary;
	struct hd_arena scratch;
	struct hd_json_line line;

	if (!most)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--steps 0: at least one");
	enum hd_err err = hd_trace_read(cmd, cmd->args.pos, cmd->args.npos, &input);
	if (err)
		return err;
	hd_arena_init(&scratch, 0);
	err = hd_tl_summary_of(&input.timeline, most, &cmd->arena, &scratch, &summary, &cmd->diag);
	hd_arena_finish(&scratch);
	if (err)
		return err;
	if (!cmd->args.has[HD_OPT_JSON]) {
		hd_trace_print_summary(&summary);
		return HD_OK;
	}
	hd_trace_put_summary(hd_json_line_open(cmd, &line), &summary);
	hd_json_line_print(&line);
	return HD_OK;
}

const struct hd_verb hd_verb_trace_analyze = {
	.name = "trace analyze", .args = "RUN|FILE [MORE...]", .npos_min = 1, .npos_max = HD_MAX_POSITIONALS,
	.about = "say what a recorded run spent its time on, and what held it back",
	.more =
		"Of the last 100 steps that the recording holds (--steps N: of the last N): the parts of "
		"each "
		"process's time, which add up to its steps; the critical path; the waits by cause; what was "
		"predicted beside what was measured; and the straggler, if there is one: the worker that has "
		"more than half of the critical path in more than half of the last 20 steps, and without "
		"whose slowness the run would gain more than 5 %.\n"
		"Its cause is the kind of cost that makes it slow: compute, link, io (waits for data), "
		"preemption (it had a notice), paused (it stood still for 0.2 s and more at a time).\n"
		"E: 1 if transfers and compute overlap as far as they can, 0 if not at all, below 0 the more "
		"of a step is neither. S: the most that overlap can gain. alpha: time of transfers by time "
		"of compute.\n"
		" heddle trace analyze runs/mnist-1 --json",
	.opts = HD_OPTS(HD_OPT_LAST_STEPS),
	.run = verb_trace_analyze, .test = "program_trace_analyze.sh",
};

/* ---- diff ---- */

static void put_median(struct hd_json_writer *w, const char *key, const struct hd_tl_median *m)
{
	hd_json_open_object(w, key);
	hd_json_put_i64(w, "n", (int64_t)m->n);
	hd_json_put_i64(w, "median_ns", m->ns);
	hd_json_put_i64(w, "low_ns", m->low);
	hd_json_put_i64(w, "high_ns", m->high);
	hd_json_close(w);
}

static void show_changes(struct hd_cmd *cmd, const struct hd_tl_change *c, size_t n)
{
	struct hd_json_line line;
	char name[HD_TRACE_SHOWN];

	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_open_array(w, "changes");
		for (size_t i = 0; i < n; i++) {
			hd_json_open_object(w, NULL);
			hd_json_put_text(w, "name", c[i].name);
			hd_json_put_text(w, "kind", hd_event_text(c[i].kind));
			hd_json_put_bool(w, "slower", c[i].slower);
			put_median(w, "before", &c[i].before);
			put_median(w, "after", &c[i].after);
			hd_json_close(w);
		}
		hd_json_close(w);
		hd_json_line_print(&line);
		return;
	}
	if (n)
		printf("%-16s %-6s %14s %14s %9s %8s\n", "name", "kind", "before (us)", "after (us)",
			"change", "n");
	for (size_t i = 0; i < n; i++)
		printf("%-16s %-6s %14.1f %14.1f %+8.1f%% %8llu\n",
			hd_trace_shown(c[i].name, name, sizeof name), hd_event_text(c[i].kind),
			(double)c[i].before.ns / 1e3, (double)c[i].after.ns / 1e3,
			100 * ((double)c[i].after.ns / (double)c[i].before.ns - 1),
			(unsigned long long)c[i].after.n);
	if (!n)
		printf("no median changed by more than %d %% beyond what chance explains\n",
			HD_TL_CHANGE_PERCENT);
}

static enum hd_err verb_trace_diff(struct hd_cmd *cmd)
{
	struct hd_trace_input before, after;
	struct hd_tl_change *change;
	size_t n;
	enum hd_err err = hd_trace_read(cmd, &cmd->args.pos[0], 1, &before);

	if (!err)
		err = hd_trace_read(cmd, &cmd->args.pos[1], 1, &after);
	if (!err)
		err = hd_tl_compare(&before.timeline, &after.timeline, &cmd->arena, &change, &n, &cmd->diag);
	if (!err)
		show_changes(cmd, change, n);
	return err;
}

const struct hd_verb hd_verb_trace_diff = {
	.name = "trace diff", .args = "BEFORE AFTER", .npos_min = 2, .npos_max = 2,
	.about = "say what became slower or faster from one recording to another",
	.more =
		"By name: instructions and reads from begin to end, transfers from their first byte on. A "
		"change "
		"is listed where the 95 % intervals of the medians (between order statistics: no "
		"distribution is "
		"assumed) are disjoint and the medians differ by more than 3 %. The costliest first.",
	.opts = HD_OPTS(), .run = verb_trace_diff, .test = "program_trace_analyze.sh",
};
