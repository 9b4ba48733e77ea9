#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "timeline/viewer.h"
#include "cmd/trace/input.h"

/* Length of a path without what says its format and without a last '/'. */
static size_t stem(const char *path)
{
	static const char *const suffixes[] = { ".hdfr", ".hdt" };
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t suffix = strlen(suffixes[i]);
		if (len > suffix && !strncmp(path + len - suffix, suffixes[i], suffix))
			return len - suffix;
	}
	return len;
}

/* The name of a run or of a file. */
static const char *name_of(struct hd_cmd *cmd, const char *path)
{
	size_t end = stem(path), begin = end;

	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	const char *name = hd_arena_text(&cmd->arena, path + begin, end - begin);
	return name ? name : path;
}

/* FROM:TO; both are numbers of steps, and one of them may be missing. */
static enum hd_err read_steps(const char *text, struct hd_viewer_trace *trace, struct hd_diag *diag)
{
	const char *colon = strchr(text, ':');
	char first[HD_NUM_CAP] = "";
	uint64_t from = 0, to = UINT64_MAX - 1;
	bool good = colon && colon[0] && strlen(text) > 1 && (size_t)(colon - text) < sizeof first;

	if (good)
		memcpy(first, text, (size_t)(colon - text));
	if (good && *first)
		good = !hd_num_u64(first, UINT64_MAX - 1, &from, NULL);
	if (good && colon[1])
		good = !hd_num_u64(colon + 1, UINT64_MAX - 1, &to, NULL);
	if (!good || to < from)
		return hd_fail(diag, HD_E_INVAL, "--steps %s: it is FROM:TO, as 100:120", text);
	trace->step_from = from;
	trace->step_to = to;
	return HD_OK;
}

/* events: of all that the page is of */
static void say_if_none(const struct hd_cmd *cmd, const struct hd_viewer_trace *trace, uint64_t events)
{
	const struct hd_timeline *t = trace->timeline;
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < t->nsteps; i++) {
		const uint64_t number = t->step[i].number;
		if (number >= trace->step_from && number <= trace->step_to)
			return;
		first = number < first ? number : first;
		last = number > last ? number : last;
	}
	const char *shows = events <= HD_VIEWER_EVENTS ? "all is shown" : "the page has no events, "
		"only what was busiest when";
	if (t->nsteps)
		hd_trace_say(cmd, "--steps %s: no such steps in %s, which has steps %llu to %llu; %s",
			cmd->args.text[HD_OPT_WHOLE_STEPS], trace->title, (unsigned long long)first,
			(unsigned long long)last, shows);
	else
		hd_trace_say(cmd, "--steps %s: %s has no steps; %s", cmd->args.text[HD_OPT_WHOLE_STEPS],
			trace->title, shows);
}

/* -o, RUN/trace/run.html, or beside the file. */
static enum hd_err choose_path(struct hd_cmd *cmd, const struct hd_trace_input *input, char path[HD_PATH_CAP])
{
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_OUTPUT]) {
		const char *end = strrchr(cmd->args.text[HD_OPT_OUTPUT], '.');
		if (!end || strcmp(end, ".html"))          /* a recording is never written over */
			return hd_fail(&cmd->diag, HD_E_INVAL, "-o %s: it writes a page, FILE.html; other "
				"formats: `heddle trace merge`", cmd->args.text[HD_OPT_OUTPUT]);
		snprintf(path, HD_PATH_CAP, "%s", cmd->args.text[HD_OPT_OUTPUT]);
	} else if (input->folder) {
		snprintf(path, HD_PATH_CAP, "%s/trace", input->folder);
		err = hd_fs_mkdirs(&cmd->fs, path, &cmd->diag);
		snprintf(path, HD_PATH_CAP, "%s/trace/run.html", input->folder);
	} else {
		snprintf(path, HD_PATH_CAP, "%.*s.html", (int)stem(cmd->args.pos[0]), cmd->args.pos[0]);
	}
	return err;
}

static void show(struct hd_cmd *cmd, const char *path, uint64_t events, size_t len)
{
	struct hd_json_writer w;
	struct hd_text text;

	if (!cmd->args.has[HD_OPT_JSON]) {
		if (!cmd->args.has[HD_OPT_QUIET])
			printf("%s: %llu events, %.1f MB\n", path, (unsigned long long)events, (double)len /
				1e6);
		return;
	}
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "output", path);
	hd_json_put_i64(&w, "events", (int64_t)events);
	hd_json_put_i64(&w, "bytes", (int64_t)len);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err verb_trace_open(struct hd_cmd *cmd)
{
	struct hd_trace_input input[HD_VIEWER_TIMELINES];
	struct hd_viewer_trace trace[HD_VIEWER_TIMELINES] = { 0 };
	struct hd_text page;
	char path[HD_PATH_CAP], title[2 * HD_PATH_CAP];
	uint32_t n = cmd->args.npos;
	uint64_t events = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++) {
		err = hd_trace_read(cmd, &cmd->args.pos[i], 1, &input[i]);
		trace[i] = (struct hd_viewer_trace){ .timeline = &input[i].timeline,
			.title = name_of(cmd, cmd->args.pos[i]), .step_from = 1 };
		if (!err && cmd->args.has[HD_OPT_WHOLE_STEPS])
			err = read_steps(cmd->args.text[HD_OPT_WHOLE_STEPS], &trace[i], &cmd->diag);
		if (!err)
			events += input[i].timeline.nevents;
	}
	if (!err)
		err = choose_path(cmd, &input[0], path);
	if (err)
		return err;
	for (uint32_t i = 0; i < n && cmd->args.has[HD_OPT_WHOLE_STEPS]; i++)
		say_if_none(cmd, &trace[i], events);
	snprintf(title, sizeof title, "%s%s%s", trace[0].title, n > 1 ? " and " : "", n > 1 ? trace[1].title :
		"");
	hd_text_init(&page, &cmd->arena);
	err = hd_viewer_write(trace, n, title, &page, &cmd->diag);
	if (!err)
		err = hd_file_write_atomic(&cmd->fs, path, page.at, page.len, &cmd->diag);
	if (!err)
		show(cmd, path, events, page.len);
	return err;
}

const struct hd_verb hd_verb_trace_open = {
	.name = "trace open", .args = "RUN|FILE [OTHER]", .npos_min = 1, .npos_max = HD_VIEWER_TIMELINES,
	.about = "write a page that shows what happened, when and where, for any browser",
	.more =
		"One file of HTML that needs nothing else and no network: processes and their lanes on one "
		"axis of time; hover for stamps, bytes, prediction and clock error; a click for the arrow "
		"to the other end of a transfer; ? lists the keys. Of more than a million events it has "
		"the last steps whole that fit, or those of --steps, and of the rest what was busiest "
		"when.\n"
		"Two recordings share the axis, the begin of a chosen step of each at zero: a run below its "
		"plan, as `heddle simulate --trace FILE` writes it, or two runs.\n"
		"-o FILE (default: RUN/trace/run.html; of a file its name with .html).",
	.opts = HD_OPTS(HD_OPT_OUTPUT, HD_OPT_WHOLE_STEPS),
	.run = verb_trace_open, .test = "program_viewer.sh",
};
