/* heddle trace whatif: how long recorded steps would take otherwise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "sys/thread.h"
#include "timeline/analyze/summary.h"
#include "run/kept_plan.h"
#include "run/replan.h"
#include "run/xfer_order.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
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

enum { WHATIF_PLAN_BYTES = 16 << 20 };

struct whatif_answer {
	struct hd_tl_range range;
	struct hd_tl_replayed now, then;
	struct hd_replan replan;          /* of another plan */
};

static void put_gaps(struct hd_json_writer *w, const struct hd_replan *replan)
{
	hd_json_open_array(w, "not_recorded");
	for (uint32_t i = 0; i < replan->ngaps; i++) {
		const struct hd_replan_gap *gap = &replan->gap[i];
		hd_json_open_object(w, NULL);
		if (gap->why == HD_REPLAN_OP)
			hd_json_put_text(w, "op", hd_ins_row(gap->op)->text);
		else
			hd_json_put_i64(w, gap->why == HD_REPLAN_STAGE ? "stage" : "worker", gap->at);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void show_whatif(struct hd_cmd *cmd, const struct whatif_answer *answer)
{
	const struct hd_tl_range *range = &answer->range;
	const struct hd_tl_replayed *now = &answer->now, *then = &answer->then;
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
		if (cmd->args.has[HD_OPT_PLAN_AS])
			put_gaps(w, &answer->replan);
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

/* ---- another plan ---- */

/* A plan in the folder of a run is one of that run's job. */
static enum hd_err is_of_job(bool *same, struct hd_cmd *cmd, const struct hd_job *job, const char *path)
{
	static const char folder[] = HD_PLAN_FOLDER;
	const char *name = strrchr(path, '/');
	const size_t len = name ? (size_t)(name - path) : 0, n = sizeof folder - 1;
	struct hd_job *its = hd_arena_take(&cmd->arena, 1, sizeof *its);
	char file[HD_PATH_CAP];
	struct hd_stat stat;

	*same = false;
	if (!its)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	if (len < n || memcmp(name - n, folder, n) != 0 || (len > n && name[-(ptrdiff_t)n - 1] != '/'))
		return HD_OK;
	snprintf(file, sizeof file, "%.*s" HD_RUN_JOB, (int)(len - n), path);
	if (hd_fs_stat(&cmd->fs, file, &stat, NULL))
		return HD_OK;
	const enum hd_err err = hd_session_job(cmd, file, its, NULL, NULL);
	*same = !err && hd_hash_same(its->hash, job->hash);
	return err || *same ? err : hd_fail(&cmd->diag, HD_E_INVAL,
		"%s is of another job: that of its run differs in what fixes the result", path);
}

static enum hd_err read_other(struct hd_cmd *cmd, const struct hd_job *job, struct hd_plan *plan, bool *same)
{
	const char *path = hd_args_text(&cmd->args, HD_OPT_PLAN_AS, "");
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, WHATIF_PLAN_BYTES, &bytes, &len,
		&cmd->diag);

	err = err ? err : hd_plan_parse(plan, (const char *)bytes, len, path, &cmd->arena, &cmd->diag);
	return err ? err : is_of_job(same, cmd, job, path);
}

/* Workers of a plan are numbered as a view has them: by their ids. */
static enum hd_err number_workers(struct hd_cmd *cmd, const struct hd_timeline *tl, struct hd_tl_range range,
	const uint32_t **worker)
{
	uint32_t *to = hd_arena_take(&cmd->arena, (size_t)tl->nprocesses + 1, sizeof *to);
	bool *in = hd_arena_take(&cmd->arena, (size_t)tl->nprocesses + 1, sizeof *in);

	if (!to || !in)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u processes", tl->nprocesses);
	for (uint32_t i = 0; i < tl->nsteps; i++)
		in[tl->step[i].process] |= tl->step[i].committed && tl->step[i].number >= range.first &&
			tl->step[i].number <= range.last;
	for (uint32_t p = 0; p < tl->nprocesses; p++) {
		to[p] = in[p] ? 0 : HD_TL_NONE;
		for (uint32_t q = 0; in[p] && q < tl->nprocesses; q++)
			to[p] += in[q] && tl->process[q].worker < tl->process[p].worker;
	}
	*worker = to;
	return HD_OK;
}

static void say_gaps(struct hd_cmd *cmd, const struct hd_replan *made)
{
	for (uint32_t i = 0; i < made->ngaps; i++) {
		const struct hd_replan_gap *gap = &made->gap[i];
		if (gap->why == HD_REPLAN_OP)
			hd_trace_say(cmd, "not recorded: %s, which the recorded plan has not; it takes what "
				"the job's costs say, corrected as its stage is", hd_ins_row(gap->op)->text);
		else if (gap->why == HD_REPLAN_STAGE)
			hd_trace_say(cmd, "not recorded: stage %u as this plan cuts it; its nodes take what "
				"they took in the stages that ran", gap->at);
		else
			hd_trace_say(cmd, "not recorded: worker %u; it is taken to be as fast as the others",
				gap->at);
	}
}

static enum hd_err replay_plan(struct hd_cmd *cmd, const struct hd_trace_input *input,
	const struct hd_tl_causes *causes, struct whatif_answer *answer)
{
	struct hd_recorded_run run;
	struct hd_tl_spents spent;
	struct hd_replan made;
	struct hd_plan other;
	struct hd_cores cores;
	enum hd_err err = hd_recorded_open(&run, cmd, input, hd_opts[HD_OPT_PLAN_AS].name);
	struct hd_replan_ask ask = { .ran = &run.plan, .other = &other, .spent = &spent };

	hd_cores_usable(&cores);
	err = err ? err : read_other(cmd, run.job, &other, &ask.same_job);
	err = err ? err : hd_tl_spent_of(causes, &answer->range, &cmd->arena, &spent, &cmd->diag);
	err = err ? err : number_workers(cmd, causes->tl, answer->range, &ask.worker);
	ask.task = run.task;
	ask.costs = run.costs;
	ask.cores = cores.n;
	err = err ? err : hd_replan(&made, &ask, &cmd->arena, &cmd->diag);
	hd_recorded_close(&run);
	if (err)
		return err;
	const double steps = (double)(answer->range.last - answer->range.first + 1);
	answer->now = (struct hd_tl_replayed){ (int64_t)(made.recorded_ns * steps),
		(int64_t)(made.ran_ns * steps) };
	answer->then = (struct hd_tl_replayed){ answer->now.recorded, (int64_t)(made.other_ns * steps) };
	answer->replan = made;
	say_gaps(cmd, &made);
	return HD_OK;
}

static enum hd_err read_changes(struct hd_cmd *cmd, struct hd_tl_whatif *whatif)
{
	static const enum hd_opt others[] = { HD_OPT_CHANNELS, HD_OPT_FASTER, HD_OPT_WORKER_AS,
		HD_OPT_DATA_WAITS, HD_OPT_ORDER_AS };
	const struct hd_args *args = &cmd->args;
	enum hd_err err = read_factor(cmd, HD_OPT_CHANNELS, 1e-6, &whatif->bandwidth);

	err = err ? err : read_factor(cmd, HD_OPT_FASTER, 1e-6, &whatif->compute);
	err = err ? err : read_factor(cmd, HD_OPT_DATA_WAITS, 0, &whatif->data);
	if (err)
		return err;
	if (!args->has[HD_OPT_CHANNELS] && !args->has[HD_OPT_FASTER] && !args->has[HD_OPT_DATA_WAITS] &&
		!args->has[HD_OPT_WORKER_AS] && !args->has[HD_OPT_ORDER_AS] && !args->has[HD_OPT_PLAN_AS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"what if what? --bandwidth K, --compute K, --worker W=median, --data X, "
			"--order ORDER, --plan FILE");
	for (size_t i = 0; args->has[HD_OPT_PLAN_AS] && i < sizeof others / sizeof *others; i++)
		if (args->has[others[i]])
			return hd_fail(&cmd->diag, HD_E_INVAL, "--plan goes alone: ask for --%s in a call of "
				"its own", hd_opts[others[i]].name);
	if (args->has[HD_OPT_ORDER_AS] && (args->has[HD_OPT_WORKER_AS] || args->has[HD_OPT_DATA_WAITS]))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--order goes with --bandwidth and --compute: ask for "
			"--worker and --data in a call of their own");
	return HD_OK;
}

static enum hd_err verb_trace_whatif(struct hd_cmd *cmd)
{
	struct hd_tl_whatif whatif = hd_tl_as_recorded();
	struct whatif_answer answer = { .replan.ngaps = 0 };
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
	err = cmd->args.has[HD_OPT_PLAN_AS] ? replay_plan(cmd, &input, &causes, &answer) :
		cmd->args.has[HD_OPT_ORDER_AS] ? replay_order(cmd, &input, &causes, &whatif, &answer) :
		replay_costs(cmd, &causes, &whatif, &answer);
	if (!err)
		show_whatif(cmd, &answer);
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
		"--plan FILE (RUN): steps go by another plan of the same job, as RUN/plan has them; goes "
		"alone. What was not recorded of its instructions is said.\n"
		" heddle trace whatif runs/gpt-1 --order fifo\n"
		" heddle trace whatif runs/mnist-1 --worker 2=median",
	.opts = HD_OPTS(HD_OPT_CHANNELS, HD_OPT_FASTER, HD_OPT_WORKER_AS, HD_OPT_DATA_WAITS,
		HD_OPT_ORDER_AS, HD_OPT_PLAN_AS, HD_OPT_LAST_STEPS),
	.run = verb_trace_whatif, .test = "program_trace_analyze.sh",
};
