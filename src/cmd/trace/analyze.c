/* heddle trace analyze, diff, whatif: what recordings say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
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

/* ---- whatif ---- */

static enum hd_err read_factor(struct hd_cmd *cmd, enum hd_opt opt, double least, double *factor)
{
	struct hd_diag why = { "" };
	const char *text = hd_args_text(&cmd->args, opt, NULL);

	if (!text)
		return HD_OK;
	if (hd_num_f64(text, least, 1e6, factor, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %.60s: a factor from %g to 1e6",
			hd_opts[opt].name,
			text, least);
	return HD_OK;
}

/* W=median */
static enum hd_err read_worker(struct hd_cmd *cmd, const struct hd_timeline *tl, struct hd_tl_whatif *whatif)
{
	const char *text = hd_args_text(&cmd->args, HD_OPT_WORKER_AS, NULL), *equals = text ? strchr(text,
		'=') : NULL;
	char number[16] = "";
	uint64_t worker;

	if (!text)
		return HD_OK;
	if (equals && (size_t)(equals - text) < sizeof number)
		memcpy(number, text, (size_t)(equals - text));
	if (!equals || strcmp(equals, "=median") != 0 || hd_num_u64(number, UINT32_MAX - 1, &worker, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--worker %.60s: W=median, as 2=median", text);
	/* of several lives of a worker the last one that is there */
	for (uint32_t p = 0; p < tl->nprocesses; p++)
		if (tl->process[p].worker == worker && tl->process[p].step_begin < tl->process[p].step_end)
			whatif->process = p;
	if (whatif->process == HD_TL_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"the recording has no steps of worker %llu; `heddle trace "
			"analyze` lists those that it has", (unsigned long long)worker);
	whatif->work = whatif->reading = whatif->channels = true;
	return HD_OK;
}

static void show_whatif(struct hd_cmd *cmd, const struct hd_tl_range *range, const struct hd_tl_replayed *now,
	const struct hd_tl_replayed *then)
{
	const double steps = (double)(range->last - range->first + 1),
		error = now->recorded ? (double)now->replayed / (double)now->recorded - 1 : 0,
		gain = now->replayed ? 1 - (double)then->replayed / (double)now->replayed : 0;
	struct hd_json_line line;

	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_i64(w, "first", (int64_t)range->first);
		hd_json_put_i64(w, "last", (int64_t)range->last);
		hd_json_put_i64(w, "recorded_ns", now->recorded);
		hd_json_put_i64(w, "replayed_ns", now->replayed);
		hd_json_put_f64(w, "replay_error", error);
		hd_json_put_i64(w, "whatif_ns", then->replayed);
		hd_json_put_f64(w, "gain", gain);
		hd_json_line_print(&line);
		return;
	}
	printf("recorded  %10.3f ms a step (steps %llu to %llu)\n", (double)now->recorded / 1e6 / steps,
		(unsigned long long)range->first, (unsigned long long)range->last);
	printf("what if   %10.3f ms a step: %.1f %% %s\n", (double)then->replayed / 1e6 / steps, 100 *
		fabs(gain), gain < 0 ? "more" : "less");
	if (fabs(error) > 0.05)
		printf("replay error %.1f %%: unchanged, the replay takes so much %s than the recording\n",
			100 * fabs(error), error < 0 ? "less" : "longer");
}

static enum hd_err verb_trace_whatif(struct hd_cmd *cmd)
{
	const struct hd_tl_whatif none = hd_tl_as_recorded();
	struct hd_tl_whatif whatif = none;
	struct hd_trace_input input;
	struct hd_tl_causes causes;
	struct hd_tl_range range;
	struct hd_tl_replayed now, then;
	enum hd_err err = read_factor(cmd, HD_OPT_CHANNELS, 1e-6, &whatif.bandwidth);

	if (!err)
		err = read_factor(cmd, HD_OPT_FASTER, 1e-6, &whatif.compute);
	if (!err)
		err = read_factor(cmd, HD_OPT_DATA_WAITS, 0, &whatif.data);
	if (!err && !cmd->args.has[HD_OPT_CHANNELS] && !cmd->args.has[HD_OPT_FASTER] &&
		!cmd->args.has[HD_OPT_DATA_WAITS] && !cmd->args.has[HD_OPT_WORKER_AS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"what if what? --bandwidth K, --compute K, --worker W=median, --data X");
	if (!err)
		err = hd_trace_read(cmd, cmd->args.pos, cmd->args.npos, &input);
	if (!err)
		err = read_worker(cmd, &input.timeline, &whatif);
	if (!err)
		err = hd_tl_range_last(&input.timeline, hd_args_count(&cmd->args, HD_OPT_LAST_STEPS,
			HD_TL_SUMMARY_STEPS), &range, &cmd->diag);
	if (!err)
		err = hd_tl_causes_make(&causes, &input.timeline, &cmd->arena, &cmd->diag);
	const uint64_t first = range.first;
	if (!err)
		hd_tl_range_unbroken(&causes, &range);
	if (!err && range.first != first)
		hd_trace_say(cmd, "the run stood still before step %llu: steps from it on are replayed",
			(unsigned long long)range.first);
	if (!err)
		err = hd_tl_replay(&causes, range, &none, &cmd->arena, &now, &cmd->diag);
	if (!err)
		err = hd_tl_replay(&causes, range, &whatif, &cmd->arena, &then, &cmd->diag);
	if (!err)
		show_whatif(cmd, &range, &now, &then);
	return err;
}

const struct hd_verb hd_verb_trace_whatif = {
	.name = "trace whatif", .args = "RUN|FILE [MORE...]", .npos_min = 1, .npos_max = HD_MAX_POSITIONALS,
	.about = "say how long the recorded steps would take with other costs",
	.more =
		"--bandwidth K: bytes travel K times as fast. --compute K: instructions of devices take a "
		"K-th of their time. --worker W=median: what worker W does costs "
		"what it "
		"costs the others. --data X: waits for data take X times as long (0: there are none).\n"
		"The recording is replayed with what depends on what: instructions in their order, each "
		"wait until "
		"its transfer or the last at a meeting has come. First unchanged; if that misses the "
		"recorded time "
		"by more than 5 %, the error is printed. The order of transfers stays as it was.\n"
		" heddle trace whatif runs/mnist-1 --worker 2=median",
	.opts = HD_OPTS(HD_OPT_CHANNELS, HD_OPT_FASTER, HD_OPT_WORKER_AS, HD_OPT_DATA_WAITS,
		HD_OPT_LAST_STEPS),
	.run = verb_trace_whatif, .test = "program_trace_analyze.sh",
};
