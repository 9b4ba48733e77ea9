/* heddle sched replay: a decision log is run again and compared; any list of jobs is simulated. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "clustersim/sched_log.h"
#include "cmd/json_line.h"
#include "cmd/sched/input.h"

enum { SHOWN = 400 };                             /* bytes of a line that differs */

/* Options that choose what a log already says. */
static enum hd_err refuse_choices(struct hd_cmd *cmd)
{
	for (int o = HD_OPT_DIR + 1; o < HD_NOPTS; o++) {
		if (cmd->args.has[o] && o != HD_OPT_OUTPUT)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s: %s is a log of decisions, and says everything itself", hd_opts[o].name,
				cmd->args.pos[0]);
	}
	return HD_OK;
}

static void print_difference(const char *path, const struct hd_sched_log_difference *d)
{
	static const char *const side[] = { "recorded", "now" };

	if (d->line[0])
		printf("%s:%" PRIu64 ": the first decision that differs\n", path, d->line[0]);
	else
		printf("%s: it ends before the decisions do\n", path);
	for (int k = 0; k < 2; k++)
		if (d->line[k])
			printf("  %-8s %.*s%s\n", side[k], (int)(d->len[k] < SHOWN ? d->len[k] : SHOWN),
				d->text[k], d->len[k] > SHOWN ? "..." : "");
		else
			printf("  %-8s nothing more\n", side[k]);
}

static void print_json(struct hd_cmd *cmd, bool differs, uint64_t ndecisions,
	const struct hd_sched_log_difference *d)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_bool(w, "equal", !differs);
	hd_json_put_i64(w, "decisions", (int64_t)ndecisions);
	if (differs) {
		hd_json_put_i64(w, "line", (int64_t)d->line[0]);
		hd_json_put_bytes(w, "recorded", d->text[0], d->len[0]);
		hd_json_put_bytes(w, "now", d->text[1], d->len[1]);
	}
	hd_json_line_print(&line);
}

static enum hd_err replay_log(struct hd_cmd *cmd, const char *path, const uint8_t *bytes, size_t len)
{
	struct hd_sched_log *log = hd_arena_take(&cmd->arena, 1, sizeof *log);
	struct hd_sched_sim_result result;
	struct hd_sched_log_difference where;
	struct hd_text again;
	enum hd_err err = refuse_choices(cmd);

	if (!err && !log)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %s", path);
	if (!err)
		err = hd_sched_log_read(log, path, bytes, len, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_sched_outputs(cmd);
	if (err)
		return err;
	hd_text_init(&again, &cmd->arena);
	log->setting.log = &again;
	if ((err = hd_sched_sim(&result, &log->setting, &cmd->arena, &cmd->diag)))
		return err;
	if (again.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the decisions made again");
	if (cmd->args.has[HD_OPT_OUTPUT] && (err = hd_file_write_atomic(&cmd->fs,
		cmd->args.text[HD_OPT_OUTPUT], again.at, again.len, &cmd->diag)))
		return err;
	bool differs = hd_sched_log_differ((const char *)bytes, len, again.at, again.len, &where);
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, differs, log->ndecisions, &where);
	else if (differs)
		print_difference(path, &where);
	else
		printf("%" PRIu64 " decisions about %zu jobs: the same, byte for byte\n", log->ndecisions,
			log->list.n);
	return differs ? hd_fail(&cmd->diag, HD_E_INTEGRITY,
		"%s: other decisions follow from the same givens now", path) : HD_OK;
}

static enum hd_err verb_sched_replay(struct hd_cmd *cmd)
{
	const char *path = cmd->args.pos[0];
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);

	if (err)
		return err;
	if (hd_sched_log_is(bytes, len))
		return replay_log(cmd, path, bytes, len);
	if (cmd->args.has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"-o is where a log of decisions is written again; %s is a list of jobs (--log FILE "
			"writes its decisions)", path);
	cmd->args.text[HD_OPT_JOBS] = path;
	cmd->args.has[HD_OPT_JOBS] = true;
	return hd_verb_sched_simulate.run(cmd);
}

const struct hd_verb hd_verb_sched_replay = {
	.name = "sched replay", .args = "LOG|TRACE", .npos_min = 1, .npos_max = 1,
	.about = "run a log of decisions again and compare, or a list of jobs under a policy",
	.more =
		"A log (`heddle sched simulate --log FILE`) holds all that was given: nothing else is "
		"read, and no option may change it. Its decisions are made again and compared byte for "
		"byte: exit 0 equal, 5 with the first line that differs; -o writes the log made now.\n"
		"A list of jobs (a trace, a table, sacct's output) is simulated as `heddle sched "
		"simulate --trace` does. Commands in it are text.",
	.opts = HD_OPTS(HD_SCHED_OPTS, HD_OPT_ROWS, HD_OPT_LOG, HD_OPT_HTML, HD_OPT_OUTPUT),
	.run = verb_sched_replay, .test = "program_sched_replay.sh",
};
