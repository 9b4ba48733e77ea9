#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "run/overlay.h"
#include "cmd/verbs.h"

/* Folders of runs: those that are named, and of a folder that is none those in it. */
struct report_runs { const char *path[HD_OVERLAY_RUNS]; uint32_t n; };

static bool is_run(struct hd_cmd *cmd, const char *path)
{
	char name[HD_PATH_CAP];
	struct hd_stat stat;

	return snprintf(name, sizeof name, "%s/" HD_RUN_JOB, path) < (int)sizeof name &&
		!hd_fs_stat(&cmd->fs, name, &stat, NULL) && stat.kind == HD_FILE_REGULAR;
}

static enum hd_err add_run(struct hd_cmd *cmd, struct report_runs *runs, const char *path)
{
	for (uint32_t i = 0; i < runs->n; i++)
		if (strcmp(runs->path[i], path) == 0)
			return HD_OK;
	if (runs->n == HD_OVERLAY_RUNS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "more than %d runs: %s is one too many; name fewer",
			HD_OVERLAY_RUNS, path);
	runs->path[runs->n++] = path;
	return HD_OK;
}

/* In `path`, or one folder below each: those of a sweep lie in folders of their own. */
static enum hd_err add_below(struct hd_cmd *cmd, struct report_runs *runs, const char *path, int deep)
{
	char **name;
	size_t n;
	enum hd_err err = hd_fs_list(&cmd->fs, path, &cmd->arena, &name, &n, &cmd->diag);

	for (size_t i = 0; i < n && !err; i++) {
		char below[HD_PATH_CAP];
		struct hd_stat stat;
		const int len = snprintf(below, sizeof below, "%s/%s", path, name[i]);
		if (len >= (int)sizeof below || hd_fs_stat(&cmd->fs, below, &stat, NULL) ||
			stat.kind != HD_FILE_FOLDER)
			continue;
		const char *kept = hd_arena_text(&cmd->arena, below, (size_t)len);
		if (!kept)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the names of the runs in %s",
				path);
		if (is_run(cmd, kept))
			err = add_run(cmd, runs, kept);
		else if (deep)
			err = add_below(cmd, runs, kept, deep - 1);
	}
	return err;
}

static enum hd_err find_runs(struct hd_cmd *cmd, struct report_runs *runs)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < cmd->args.npos && !err; i++) {
		const char *path = cmd->args.pos[i];
		const uint32_t before = runs->n;
		if (is_run(cmd, path)) {
			err = add_run(cmd, runs, path);
			continue;
		}
		err = add_below(cmd, runs, path, 2);
		if (!err && runs->n == before)
			err = hd_fail(&cmd->diag, HD_E_NOTFOUND,
				"%s is no run, and no folder of runs (a run's "
				"folder has a file " HD_RUN_JOB ")", path);
	}
	return err;
}

static enum hd_err verb_report(struct hd_cmd *cmd)
{
	const char *into = cmd->args.has[HD_OPT_OUTPUT] ? cmd->args.text[HD_OPT_OUTPUT] : "report.html";
	struct report_runs runs = { .n = 0 };
	struct hd_overlay overlay;
	struct hd_text page, text;

	enum hd_err err = find_runs(cmd, &runs);
	if (!err)
		err = hd_overlay_read(&overlay, &cmd->fs, &cmd->clock, runs.path, runs.n, &cmd->arena,
			&cmd->diag);
	if (err)
		return err;
	hd_text_init(&page, &cmd->arena);
	hd_text_init(&text, &cmd->arena);
	const bool json = cmd->args.has[HD_OPT_JSON];
	if (!json || cmd->args.has[HD_OPT_OUTPUT]) {
		err = hd_overlay_page(&overlay, &page, &cmd->arena, &cmd->diag);
		if (!err)
			err = hd_file_write_atomic(&cmd->fs, into, page.at, page.len, &cmd->diag);
	}
	if (!err && json)
		err = hd_overlay_json(&overlay, false, &text, &cmd->arena, &cmd->diag);
	if (!err && json)
		printf("%s\n", text.at);
	else if (!err && !cmd->args.has[HD_OPT_QUIET])
		printf("%s: %u run%s, %u series, %.1f MB\n", into, runs.n, runs.n == 1 ? "" : "s",
			overlay.nnames,
			(double)page.len / 1e6);
	return err;
}

const struct hd_verb hd_verb_report = {
	.name = "report", .args = "RUN...", .npos_min = 1, .npos_max = HD_MAX_POSITIONALS,
	.about = "write a page of several runs: curves, values, what differs",
	.more =
		"One file of HTML that needs nothing else and no network: a chart for each series of "
		"metrics and evaluations, all runs over one another, along steps, samples or time, smoothed "
		"by choice; the last, least and greatest values; the keys in which the jobs differ; from "
		"which step on the digests of a run differ from those of the first. Runs may go on, or "
		"have died. RUN may be a folder of runs, or a sweep's.\n"
		"-o FILE (default: report.html). --json prints runs, values and differences, and writes the "
		"page only with -o.\n"
		"  heddle report runs/a runs/b -o ab.html",
	.opts = HD_OPTS(HD_OPT_OUTPUT),
	.run = verb_report, .test = "program_report.sh",
};
