#include "job/int.h"

#include <string.h>

#include "base/near.h"
#include "job/lr.h"
#include "job/measures.h"

/* What is measured, and what looks at it: evaluations, the best checkpoint, a target, a plateau, an early
 * stop. */

/* What a loss lets evaluations count; a loss of the graph's own may be anything. */
static unsigned of_loss(const struct hd_job *job)
{
	static const struct { const char *words; unsigned of; } rows[] = {
		{ "cross-entropy|soft-cross-entropy|kl", HD_OF_CLASSES },
		{ "bce", HD_OF_BOTH }, { "mse|l1|smooth-l1|huber", HD_OF_NUMBERS },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (hd_job_has_word(rows[i].words, hd_job_text(job, HD_JOB_LOSS)))
			return rows[i].of;
	return HD_OF_BOTH | HD_OF_NUMBERS;
}

/* A word of a key that goes by a measure, or of eval.metrics. */
static enum hd_err check_measure(struct hd_job_reader *reader, const char *dotted, const char *word, bool val)
{
	const struct hd_job *job = reader->job;
	const enum hd_measure m = hd_measure_find(word, val);

	if (m == HD_NMEASURES ? strcmp(word, "perplexity") != 0 ||
		hd_job_has_word("cross-entropy|soft-cross-entropy|none", hd_job_text(job, HD_JOB_LOSS)) :
		(hd_measures[m].of & of_loss(job)) != 0)
		return HD_OK;
	return hd_job_refuse(reader, "%s is %s, which a model with model.loss %s does not have; use %s",
		dotted,
		word, hd_job_text(job, HD_JOB_LOSS), val ? "val_loss" : "loss");
}

static enum hd_err check_metrics(struct hd_job_reader *reader)
{
	const struct hd_job_value *v = &reader->job->value[HD_JOB_METRICS];
	enum hd_err err = HD_OK;

	hd_job_at(reader, HD_JOB_METRICS);
	for (uint32_t i = 0; i < v->nargs && !err; i++) {
		struct hd_near near = hd_near_to(v->arg[i].text);
		for (int m = 0; m < HD_NMEASURES; m++)
			hd_near_offer(&near, hd_measures[m].word);
		err = hd_measure_find(v->arg[i].text, false) != HD_NMEASURES ?
			check_measure(reader, "eval.metrics", v->arg[i].text, false) :
			hd_job_refuse(reader, "eval.metrics: there is no \"%.40s\"%s%s%s; there are "
			"accuracy, top-2, -3, -5, -10, precision, recall and f1 with -macro, -micro or "
				"-binary, "
			"auroc, mae, mse, r2", v->arg[i].text, near.best ? "; did you mean '" : "",
			near.best ? near.best : "", near.best ? "'?" : "");
	}
	return err;
}

/* A target that no run can miss or reach was meant in other units, or of another metric. */
static enum hd_err check_eval(struct hd_job_reader *reader)
{
	static const struct { double lo, hi; const char *range; } of[] = {
		[HD_METRIC_LOSS] = { -1e30, 1e30, "" },
		[HD_METRIC_ACCURACY] = { 0, 1, "a share from 0 to 1: 0.6 for 60 %" },
		[HD_METRIC_PERPLEXITY] = { 1, 1e30, "a number from 1 on" },
	};
	const struct hd_job *job = reader->job;
	const struct hd_job_value *target = &job->value[HD_JOB_TARGET];
	const enum hd_measure measure = hd_measure_find(hd_job_text(job, HD_JOB_METRIC), false);
	int64_t metric = hd_job_int(job, HD_JOB_METRIC);
	enum hd_err err;

	/* measures are shares, but for errors */
	if (metric > HD_METRIC_PERPLEXITY)
		metric = hd_measures[measure].of == HD_OF_NUMBERS ? HD_METRIC_LOSS : HD_METRIC_ACCURACY;
	hd_job_at(reader, HD_JOB_METRIC);
	if ((err = check_measure(reader, "eval.metric", hd_job_text(job, HD_JOB_METRIC), false)) ||
		(err = check_metrics(reader)))
		return err;
	hd_job_at(reader, HD_JOB_CKPT_BEST);
	if ((err = check_measure(reader, "checkpoint.best", hd_job_text(job, HD_JOB_CKPT_BEST), true)))
		return err;
	hd_job_at(reader, HD_JOB_EVAL_WEIGHTS);
	if (hd_job_int(job, HD_JOB_EVAL_WEIGHTS) == HD_EVAL_EMA && job->value[HD_JOB_EMA].is_none)
		return hd_job_refuse(reader, "eval.weights: ema needs optim.ema.decay, which keeps means "
			"of the "
			"parameters, as 0.999");
	if (hd_job_int(job, HD_JOB_EVAL_WEIGHTS) == HD_EVAL_EMA && hd_job_int(job, HD_JOB_SYNC) !=
		HD_SYNC_ALLREDUCE)
		return hd_job_refuse(reader, "eval.weights: ema evaluates where all means are, and with "
			"comm.sync: %s they are spread: leave it out, and ask `heddle eval RUN --ema`, which "
			"reads a checkpoint", hd_job_text(job, HD_JOB_SYNC));
	hd_job_at(reader, HD_JOB_TARGET);
	if (!target->is_none && (target->f < of[metric].lo || target->f > of[metric].hi))
		return hd_job_refuse(reader, "eval.target is %g, but eval.metric %s is %s", target->f,
			hd_job_text(job, HD_JOB_METRIC), of[metric].range);
	return HD_OK;
}

/* Looks are taken by each worker, between two steps. */
static enum hd_err check_judges(struct hd_job_reader *reader)
{
	static const enum hd_job_key of_stop[] = { HD_JOB_STOP_METRIC, HD_JOB_STOP_EVERY, HD_JOB_STOP_DELTA,
		HD_JOB_STOP_MODE };
	const struct hd_job *job = reader->job;
	const struct { bool wanted; enum hd_job_key key, metric; } judge[] = {
		{ hd_job_int(job, HD_JOB_SCHEDULE) == HD_LR_PLATEAU, HD_JOB_SCHEDULE, HD_JOB_LR_METRIC },
		{ !job->value[HD_JOB_STOP_PATIENCE].is_none, HD_JOB_STOP_PATIENCE, HD_JOB_STOP_METRIC } };
	char dotted[HD_DOTTED_CAP], word[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof of_stop / sizeof *of_stop && !judge[1].wanted; i++) {
		hd_job_at(reader, of_stop[i]);
		if (!hd_job_is_left_out(reader, of_stop[i]))
			return hd_job_refuse(reader, "%s has no meaning without stop.patience; leave it out",
				hd_job_dotted(of_stop[i], dotted));
	}
	for (size_t i = 0; i < 2; i++) {
		const int64_t metric = hd_job_int(job, judge[i].metric);
		if (!judge[i].wanted)
			continue;
		hd_job_at(reader, judge[i].key);
		hd_job_dotted(judge[i].key, dotted);
		hd_job_dotted(judge[i].metric, word);
		if (strcmp(hd_job_text(job, HD_JOB_UPDATE), "flush") != 0)
			return hd_job_refuse(reader, "%s looks between two steps, and those of "
				"optim.update: %s "
				"overlap; leave one of them out", dotted, hd_job_text(job, HD_JOB_UPDATE));
		if (metric != HD_JUDGE_LOSS && hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES)
			return hd_job_refuse(reader, "%s measures where the whole model is, and with "
				"comm.sync: "
				"stages no worker has it: write %s: loss", dotted, word);
		enum hd_err err = check_measure(reader, word, hd_job_text(job, judge[i].metric), true);
		if (err)
			return err;
	}
	return HD_OK;
}

enum hd_err hd_job_check_measures(struct hd_job_reader *reader)
{
	static hd_job_rule *const checks[] = { check_eval, check_judges };

	return hd_job_check_each(reader, checks, sizeof checks / sizeof checks[0]);
}
