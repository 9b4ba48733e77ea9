#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "cmd/trace/formats.h"
#include "cmd/trace/show.h"

static const char *const states[] = { [HD_FLIGHT_RUNNING] = "running or killed",
	[HD_FLIGHT_FINISHED] = "finished", [HD_FLIGHT_SIGNAL] = "ended by a signal" };

static uint64_t events_of(const struct hd_timeline *t, const struct hd_tl_process *p, uint64_t *nlost)
{
	uint64_t n = 0;

	*nlost = 0;
	for (uint32_t l = p->lane_begin; l < p->lane_end; l++) {
		n += t->lane[l].end - t->lane[l].begin;
		*nlost += t->lane[l].nlost;
	}
	return n;
}

static void put_process(struct hd_json_writer *w, const struct hd_timeline *t, const struct hd_tl_process *p)
{
	uint64_t nlost, n = events_of(t, p, &nlost);

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", p->name);
	hd_json_put_i64(w, "pid", p->pid);
	hd_json_put_text(w, "state", states[p->state]);
	hd_json_put_i64(w, "events", (int64_t)n);
	hd_json_put_i64(w, "lost", (int64_t)nlost);
	hd_json_put_i64(w, "steps", p->step_end - p->step_begin);
	hd_json_put_bool(w, "aligned", p->aligned);
	hd_json_put_i64(w, "error_ns", p->error_ns);
	hd_json_close(w);
}

static void show_json(struct hd_cmd *cmd, const struct hd_timeline *t, const char *path)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "output", path);
	hd_json_put_i64(&w, "events", (int64_t)t->nevents);
	hd_json_put_i64(&w, "lost", (int64_t)t->nlost);
	hd_json_put_i64(&w, "unknown", (int64_t)t->nunknown);
	hd_json_open_array(&w, "processes");
	for (uint32_t p = 0; p < t->nprocesses; p++)
		put_process(&w, t, &t->process[p]);
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static void show_text(const struct hd_timeline *t, const char *path)
{
	printf("%-12s %8s %6s %9s %9s %12s  %s\n", "process", "pid", "steps", "events", "lost", "clock error",
		"it");
	for (uint32_t i = 0; i < t->nprocesses; i++) {
		const struct hd_tl_process *p = &t->process[i];
		uint64_t nlost, n = events_of(t, p, &nlost);
		char error[32], name[HD_TRACE_SHOWN];
		if (p->aligned)
			snprintf(error, sizeof error, "%.3f us", (double)p->error_ns / 1e3);
		else
			snprintf(error, sizeof error, "not aligned");
		printf("%-12s %8u %6u %9" PRIu64 " %9" PRIu64 " %12s  %s\n",
			hd_trace_shown(p->name, name, sizeof name), p->pid,
			p->step_end - p->step_begin, n, nlost, error, states[p->state]);
	}
	printf("%s: %" PRIu64 " events\n", path, t->nevents);
}

static enum hd_err verb_trace_merge(struct hd_cmd *cmd)
{
	const struct hd_trace_format *format;
	struct hd_trace_input input;
	char path[HD_PATH_CAP];
	const char *output = hd_args_text(&cmd->args, HD_OPT_OUTPUT, ".hdt");
	bool given = cmd->args.has[HD_OPT_OUTPUT];
	enum hd_err err = given ? hd_trace_format_of(output, &format, &cmd->diag) :
		hd_trace_format_of("run.hdt", &format, &cmd->diag);

	if (!err)
		err = (format->outline ? hd_trace_outline : hd_trace_read)(cmd, cmd->args.pos, cmd->args.npos,
			&input);
	if (err)
		return err;
	if (!given && !input.folder)
		return hd_fail(&cmd->diag, HD_E_INVAL, "where to? of files alone the merged one needs a "
			"name: -o FILE.hdt");
	if (given)
		snprintf(path, sizeof path, "%s", output);
	else {
		snprintf(path, sizeof path, "%s/trace", input.folder);
		err = hd_fs_mkdirs(&cmd->fs, path, &cmd->diag);
		snprintf(path, sizeof path, "%s/trace/run.hdt", input.folder);
	}
	if (!err)
		err = format->write(cmd, &input, path);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		show_json(cmd, &input.timeline, path);
	else if (!cmd->args.has[HD_OPT_QUIET])
		show_text(&input.timeline, path);
	return HD_OK;
}

const struct hd_verb hd_verb_trace_merge = {
	.name = "trace merge", .args = "RUN|FILE [MORE...]", .npos_min = 1, .npos_max = HD_MAX_POSITIONALS,
	.about = "make one file of what all processes of a run recorded, with aligned clocks",
	.more =
		"A RUN's folder stands for all its recordings: flight/N.hdfr (the newest events of each "
		"process, which survive its end), older ones (N.hdfr.1 to .3) and trace/N.hdt. Files may "
		"be given one by one, in any order and mix, merged ones among them: what several have of "
		"one process is taken once.\n"
		"A trace of another program (Chrome's trace events, as PyTorch's profiler writes them; "
		".json or .json.gz) is read alone, for another format.\n"
		"-o FILE: the end of its name says the format (default: RUN/trace/run.hdt).\n"
		"The clock of each process is set by the probes in its recording. The error that is "
		"printed bounds how far any of its times can be wrong; a process without probes is "
		"named and keeps times of its own. --tighten: what was received had been sent; so "
		"transfers bound clocks, too, and no arrow points backwards. Lost: events that were "
		"overwritten before they were read.",
	.opts = HD_OPTS(HD_OPT_OUTPUT, HD_OPT_TIGHTEN),
	.run = verb_trace_merge, .test = "program_trace.sh",
};
