#include <stdio.h>

#include "base/json_writer.h"
#include "sys/signal.h"
#include "data/convert.h"
#include "cmd/session.h"

/* All samples but those of a test set of their own are one split then, in the order of their ids, so that a
 * hashed
 * split of the copy has the same samples in each part. */
static const char whole[] = "data.split={train: 1, valid: 0}";

static enum hd_err open_whole(struct hd_cmd *cmd, struct hd_task **task)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	if (cmd->args.nsets == HD_MAX_SETS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "-s: fewer than %d", HD_MAX_SETS);
	cmd->args.set[cmd->args.nsets++] = whole;
	enum hd_err err = hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL);
	return err ? err : hd_task_create(task, job, &cmd->fs, &cmd->diag);
}

static void report_json(struct hd_cmd *cmd, const struct hd_convert *how, const struct hd_convert_report *r)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "path", r->out);
	hd_json_put_text(&w, "kind", how->to);
	hd_json_put_i64(&w, "samples", (int64_t)r->samples);
	hd_json_put_i64(&w, "bytes", (int64_t)r->bytes);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err convert_task(struct hd_cmd *cmd, struct hd_convert *how, const struct hd_task *task)
{
	const char *split = hd_args_text(&cmd->args, HD_OPT_SPLIT, "train");
	struct hd_convert_report report;

	how->split = hd_dataset_split(task->data, split);
	if (how->split == HD_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--split %s: samples are taken all at once, without "
			"it; or those "
			"of a split that files bring, as test: %s", split, task->data->about);
	enum hd_err err = hd_convert(how, task->data, &cmd->fs, &report, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_JSON])
		report_json(cmd, how, &report);
	else if (!err && !cmd->args.has[HD_OPT_QUIET])
		printf("%s: %llu samples, %.1f MB; data: {kind: %s, path: %s}\n", report.out,
			(unsigned long long)report.samples, (double)report.bytes / 1e6, how->to, report.out);
	return err;
}

static enum hd_err verb_data_convert(struct hd_cmd *cmd)
{
	struct hd_convert how = { .to = cmd->args.text[HD_OPT_TO_KIND],
		.out = cmd->args.text[HD_OPT_OUTPUT] };
	struct hd_task *task = NULL;
	enum hd_err err;

	if (!how.to || !how.out)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s is missing", how.to ? "output PATH" : "to KIND");
	if ((err = hd_signal_install(&cmd->diag)) || (err = open_whole(cmd, &task)))
		return err;
	err = convert_task(cmd, &how, task);
	hd_task_destroy(task);
	return err;
}

const struct hd_verb hd_verb_data_convert = {
	.name = "data convert", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "write a job's samples as another kind of data",
	.more =
		"Samples are those that the JOB's model reads, before data.augment, in the order of their "
		"numbers, so that a "
		"run on the copy reads the same bits, in the same order and splits. --to npy makes a folder "
		"with x.npy and "
		"y.npy, records a file that is read by ranges and need not fit in memory, tokens a token "
		"file of text or "
		"tokens.\n"
		"Of data with a test set of their own, --split test is that one; without it all others are "
		"written.\n"
		"-o is not written over. It appears when it is whole: a stop leaves nothing, a kill "
		"PATH.tmp, which the next "
		"one takes over.\n"
		" heddle data convert job.yaml --to records -o train.rec",
	.opts = HD_OPTS(HD_OPT_TO_KIND, HD_OPT_OUTPUT, HD_OPT_SPLIT, HD_OPT_SET),
	.run = verb_data_convert, .test = "program_rows.sh",
};
