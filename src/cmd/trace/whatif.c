/* heddle trace whatif: how long recorded steps would take otherwise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "timeline/analyze/summary.h"
#include "run/xfer_order.h"
#include "cmd/json_line.h"
#include "cmd/trace/recorded.h"

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
		/* what both replays miss is in neither */
		otherwise = fmax(0, (double)now->recorded + (double)then->replayed - (double)now->replayed),
		gain = now->recorded ? 1 - otherwise / (double)now->recorded : 0;
	struct hd_json_line line;

	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_i64(w, "first", (int64_t)range->first);
		hd_json_put_i64(w, "last", (int64_t)range->last);
		hd_json_put_i64(w, "recorded_ns", now->recorded);
		hd_json_put_i64(w, "replayed_ns", now->replayed);
		hd_json_put_f64(w, "replay_error", error);
		hd_json_put_i64(w, "whatif_ns", (int64_t)otherwise);
		hd_json_put_f64(w, "gain", gain);
		hd_json_line_print(&line);
		return;
	}
	printf("recorded  %10.3f ms a step (steps %llu to %llu)\n", (double)now->recorded / 1e6 / steps,
		(unsigned long long)range->first, (unsigned long long)range->last);
	printf("what if   %10.3f ms a step: %.1f %% %s\n", otherwise / 1e6 / steps, 100 *
		fabs(gain), gain < 0 ? "more" : "less");
	if (fabs(error) > 0.05)
		printf("replay error %.1f %%: unchanged, the replay takes so much %s than the recording\n",
			100 * fabs(error), error < 0 ? "less" : "longer");
}

struct whatif_answer {
	struct hd_tl_range range;
	struct hd_tl_replayed now, then;
};

static enum hd_err replay_costs(struct hd_cmd *cmd, const struct hd_tl_causes *causes,
	const struct hd_tl_whatif *whatif, struct whatif_answer *answer)
{
	const struct hd_tl_whatif none = hd_tl_as_recorded();
	const enum hd_err err = hd_tl_replay(causes, answer->range, &none, &cmd->arena, &answer->now,
		&cmd->diag);

	return err ? err : hd_tl_replay(causes, answer->range, whatif, &cmd->arena, &answer->then,
		&cmd->diag);
}

static enum hd_err parse_order(struct hd_cmd *cmd, enum hd_comm_order *order)
{
	const char *text = hd_args_text(&cmd->args, HD_OPT_ORDER_AS, "");

	for (int k = 0; k < HD_NCOMM_ORDERS; k++)
		if (!strcmp(text, hd_comm_order_names[k])) {
			*order = (enum hd_comm_order)k;
			return HD_OK;
		}
	return hd_fail(&cmd->diag, HD_E_INVAL, "--order %.40s is none of comm.order", text);
}

static enum hd_err replay_order(struct hd_cmd *cmd, const struct hd_trace_input *input,
	const struct hd_tl_causes *causes, const struct hd_tl_whatif *whatif, struct whatif_answer *answer)
{
	struct hd_recorded_run run;
	struct hd_tl_order order;
	enum hd_comm_order by = HD_COMM_AUTO;
	const uint64_t first = answer->range.first;
	enum hd_err err = hd_recorded_open(&run, cmd, input, hd_opts[HD_OPT_ORDER_AS].name);

	err = err ? err : parse_order(cmd, &by);
	err = err ? err : hd_xfer_order(&order, run.task, run.costs, &run.plan, by, &cmd->arena, &cmd->diag);
	err = err ? err : hd_tl_reorder(causes, &answer->range, &order, whatif, &cmd->arena, &answer->now,
		&answer->then, &cmd->diag);
	hd_recorded_close(&run);
	if (!err && answer->range.first != first)
		hd_trace_say(cmd, "the recording has all transfers of steps from %llu on: these are replayed",
			(unsigned long long)answer->range.first);
	return err;
}

static enum hd_err read_changes(struct hd_cmd *cmd, struct hd_tl_whatif *whatif)
{
	const struct hd_args *args = &cmd->args;
	enum hd_err err = read_factor(cmd, HD_OPT_CHANNELS, 1e-6, &whatif->bandwidth);

	err = err ? err : read_factor(cmd, HD_OPT_FASTER, 1e-6, &whatif->compute);
	err = err ? err : read_factor(cmd, HD_OPT_DATA_WAITS, 0, &whatif->data);
	if (err)
		return err;
	if (!args->has[HD_OPT_CHANNELS] && !args->has[HD_OPT_FASTER] && !args->has[HD_OPT_DATA_WAITS] &&
		!args->has[HD_OPT_WORKER_AS] && !args->has[HD_OPT_ORDER_AS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"what if what? --bandwidth K, --compute K, --worker W=median, --data X, "
			"--order ORDER");
	if (args->has[HD_OPT_ORDER_AS] && (args->has[HD_OPT_WORKER_AS] || args->has[HD_OPT_DATA_WAITS]))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--order goes with --bandwidth and --compute: ask for "
			"--worker and --data in a call of their own");
	return HD_OK;
}

static enum hd_err verb_trace_whatif(struct hd_cmd *cmd)
{
	struct hd_tl_whatif whatif = hd_tl_as_recorded();
	struct whatif_answer answer;
	struct hd_trace_input input;
	struct hd_tl_causes causes;
	enum hd_err err = read_changes(cmd, &whatif);

	if (!err)
		err = hd_trace_read(cmd, cmd->args.pos, cmd->args.npos, &input);
	if (!err)
		err = read_worker(cmd, &input.timeline, &whatif);
	if (!err)
		err = hd_tl_range_last(&input.timeline, hd_args_count(&cmd->args, HD_OPT_LAST_STEPS,
			HD_TL_SUMMARY_STEPS), &answer.range, &cmd->diag);
	if (!err)
		err = hd_tl_causes_make(&causes, &input.timeline, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	const uint64_t first = answer.range.first;
	hd_tl_range_unbroken(&causes, &answer.range);
	if (answer.range.first != first)
		hd_trace_say(cmd, "the run stood still before step %llu: steps from it on are replayed",
			(unsigned long long)answer.range.first);
	err = cmd->args.has[HD_OPT_ORDER_AS] ? replay_order(cmd, &input, &causes, &whatif, &answer) :
		replay_costs(cmd, &causes, &whatif, &answer);
	if (!err)
		show_whatif(cmd, &answer.range, &answer.now, &answer.then);
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
		"by more than 5 %, the error is printed.\n"
		"--order ORDER (RUN, of workers that each hold the whole model): transfers go as with "
		"comm.order: ORDER; goes with --bandwidth and --compute. Without it their order stays.\n"
		" heddle trace whatif runs/gpt-1 --order fifo\n"
		" heddle trace whatif runs/mnist-1 --worker 2=median",
	.opts = HD_OPTS(HD_OPT_CHANNELS, HD_OPT_FASTER, HD_OPT_WORKER_AS, HD_OPT_DATA_WAITS,
		HD_OPT_ORDER_AS, HD_OPT_LAST_STEPS),
	.run = verb_trace_whatif, .test = "program_trace_analyze.sh",
};
