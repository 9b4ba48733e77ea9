#include <stdio.h>

#include "sys/file.h"
#include "engine/recorder.h"
#include "run/rundir.h"
#include "cmd/run/live.h"

/* Recordings of a run that goes on: its coordinator is asked, or, of one process, a file is left for it. */

static enum hd_err ask_alone(struct hd_cmd *cmd, const char *words, size_t len)
{
	char folder[HD_PATH_CAP], path[HD_PATH_CAP];
	const char *run = cmd->args.pos[0];
	struct hd_stat waiting;

	cmd->diag.text[0] = '\0';
	snprintf(folder, sizeof folder, "%.3000s/" HD_RUN_TRACES, run);
	snprintf(path, sizeof path, "%.3000s/" HD_RUN_TRACES "/" HD_RECORDER_ASK, run);
	enum hd_err err = hd_fs_mkdirs(&cmd->fs, folder, &cmd->diag);
	if (!err && !hd_fs_stat(&cmd->fs, path, &waiting, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s: a request waits there to be read: ask again in "
			"two seconds", path);
	return err ? err : hd_file_write_atomic(&cmd->fs, path, words, len, &cmd->diag);
}

/* *nworkers: of a run with a coordinator; of one without, 0. */
static enum hd_err ask(struct hd_cmd *cmd, const char *request, const char *words, size_t len,
	int64_t *first, int64_t *nworkers)
{
	const struct hd_json *answer;

	*first = -1;
	enum hd_err err = hd_live_ask(cmd, cmd->args.pos[0], request, &answer);
	if (err == HD_E_NOTFOUND && hd_live_alone(cmd, cmd->args.pos[0]))
		return ask_alone(cmd, words, len);
	if (!err && hd_json_find(answer, "first"))
		err = hd_json_get_i64(answer, "first", 0, INT64_MAX, first, &cmd->diag);
	return err ? err : hd_json_get_i64(answer, "workers", 0, INT64_MAX, nworkers, &cmd->diag);
}

static enum hd_err verb_record(struct hd_cmd *cmd)
{
	const uint64_t n = hd_args_count(&cmd->args, HD_OPT_TRACE_STEPS, 10);
	int64_t first, nworkers = 0;
	char request[64], words[32];

	if (n < 1 || n > INT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--steps: from 1 to %d", INT32_MAX);
	snprintf(request, sizeof request, "{\"do\":\"record\",\"steps\":%llu}", (unsigned long long)n);
	const int len = snprintf(words, sizeof words, "record %llu", (unsigned long long)n);
	enum hd_err err = ask(cmd, request, words, (size_t)len, &first, &nworkers);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"steps\":%llu,\"first\":%lld,\"workers\":%lld}\n", (unsigned long long)n,
			(long long)first, (long long)nworkers);
	else if (!cmd->args.has[HD_OPT_QUIET] && first >= 0)
		printf("steps %lld to %lld of %lld workers are written to %s/" HD_RUN_TRACES "\n",
			(long long)first, (long long)first + (long long)n - 1, (long long)nworkers,
			cmd->args.pos[0]);
	else if (!cmd->args.has[HD_OPT_QUIET])
		printf("the next %llu steps, from within a second on, are written to %s/" HD_RUN_TRACES
			"\n", (unsigned long long)n, cmd->args.pos[0]);
	return HD_OK;
}

const struct hd_verb hd_verb_trace_record = {
	.name = "trace record", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "write a full trace of the next steps of a run that goes on",
	.more =
		"Every process of the run appends what it records to RUN/trace, a file each, from the same "
		"step on. `heddle run --trace` does so for every step.\n"
		"Workers that join meanwhile record, too. A disk that fills up ends the trace, not the run. "
		"One trace at a time: while one is being made another request is refused.",
	.opts = HD_OPTS(HD_OPT_TRACE_STEPS), .run = verb_record, .test = "program_trace_record.sh",
};

static enum hd_err verb_dump(struct hd_cmd *cmd)
{
	int64_t first, nworkers = 0;
	enum hd_err err = ask(cmd, "{\"do\":\"dump\"}", "dump", 4, &first, &nworkers);

	if (!err && cmd->args.has[HD_OPT_JSON])
		printf("{\"workers\":%lld}\n", (long long)nworkers);
	else if (!err && !cmd->args.has[HD_OPT_QUIET])
		printf("copies of the recordings come to %s/flight/" HD_RECORDER_SNAPSHOTS "\n",
			cmd->args.pos[0]);
	return err;
}

const struct hd_verb hd_verb_trace_dump = {
	.name = "trace dump", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "copy what the processes of a run have recorded last",
	.more =
		"Each writes its flight file as it is to RUN/flight/snapshots, where the three before are "
		"kept. SIGQUIT does the same for one process; so does a step that takes ten times as long as "
		"usual, 5 s at least.",
	.opts = HD_OPTS(), .run = verb_dump, .test = "program_trace_record.sh",
};
