#include "cmd/trace/input.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "timeline/import.h"
#include "timeline/tighten.h"

enum { FILES = 1 << 16 };

void hd_trace_say(const struct hd_cmd *cmd, const char *fmt, ...)
{
	va_list args;

	if (cmd->args.has[HD_OPT_QUIET])
		return;
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

struct input_list { struct hd_tl_input *at; uint32_t n, cap; };

static enum hd_err add(struct hd_cmd *cmd, struct input_list *list, struct hd_tl_input input)
{
	if (list->n == list->cap) {
		uint32_t cap = list->cap ? 2 * list->cap : 16;
		struct hd_tl_input *more = hd_arena_take(&cmd->arena, cap, sizeof *more);
		if (!more || cap > FILES)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "more than %u recordings at once", list->cap);
		if (list->n)
			memcpy(more, list->at, list->n * sizeof *more);
		list->at = more;
		list->cap = cap;
	}
	list->at[list->n++] = input;
	return HD_OK;
}

/* Is it a recording at all? Whether all of it is whole is seen when it is read. */
static enum hd_err look_at(struct hd_cmd *cmd, const struct hd_tl_input *input, struct hd_diag *diag)
{
	struct hd_flight_view *view;

	if (!input->len)
		return hd_fail(diag, HD_E_INPUT, "%s is empty", input->name);
	if (input->len >= 8 && !memcmp(input->bytes, "HDTRACE1", 8))
		return HD_OK;
	if (hd_tl_is_foreign(input->bytes, input->len))
		return HD_OK;
	if (!hd_tl_is_recording(input->bytes, input->len))
		return hd_fail(diag, HD_E_INPUT, "%s is no recording: it begins neither as a flight file nor "
			"as a trace, nor as JSON", input->name);
	view = hd_arena_take(&cmd->arena, 1, sizeof *view);
	return view ? hd_flight_parse(input->bytes, input->len, input->name, view, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory to read %s", input->name);
}

/* Mapped, not read: a process that is at work writes on. */
static enum hd_err take_file(struct hd_cmd *cmd, struct input_list *list, const char *path,
	struct hd_diag *diag)
{
	struct hd_file file;
	struct hd_map map = { 0 };
	struct hd_stat stat;
	const char *name = hd_arena_text(&cmd->arena, path, strlen(path));
	enum hd_err err = name ? hd_fs_stat(&cmd->fs, path, &stat, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for a name");

	if (!err && stat.kind != HD_FILE_REGULAR)          /* to open a pipe may wait for ever */
		err = hd_fail(diag, HD_E_INPUT, "%s is no file: a recording is read from a file or a run's "
			"folder; write what comes out of a pipe to a file first", path);
	if (!err)
		err = hd_file_open(&cmd->fs, path, HD_OPEN_READ, &file, diag);
	if (err)
		return err;
	err = hd_file_map(&file, &map, diag);
	enum hd_err closed = hd_file_close(&file, diag);
	const struct hd_tl_input input = { name, map.bytes, map.len };
	if (!err)
		err = closed;
	if (!err)
		err = look_at(cmd, &input, diag);
	return err ? err : add(cmd, list, input);
}

static bool is_one(const char *name, const char *kind)
{
	const char *at = strstr(name, kind);
	size_t len = at ? strlen(at) : 0;

	return at && at != name && (!at[strlen(kind)] || at[strlen(kind)] == '.') &&
		(len < 4 || strcmp(at + len - 4, ".tmp") != 0) &&
		(len < 5 || strcmp(at + len - 5, ".lock") != 0);
}

/* Files of that kind in a folder; *found: there were some. */
static enum hd_err take_folder(struct hd_cmd *cmd, struct input_list *list, const char *folder,
	const char *inside, const char *kind, uint32_t *found)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	char **name;
	size_t n;

	snprintf(path, sizeof path, "%s/%s", folder, inside);
	if (hd_fs_stat(&cmd->fs, path, &stat, NULL) || stat.kind != HD_FILE_FOLDER)
		return HD_OK;
	enum hd_err err = hd_fs_list(&cmd->fs, path, &cmd->arena, &name, &n, &cmd->diag);
	for (size_t i = 0; i < n && !err; i++) {
		struct hd_diag why = { "" };
		if (!is_one(name[i], kind))
			continue;
		++*found;
		snprintf(path, sizeof path, "%s/%s/%s", folder, inside, name[i]);
		enum hd_err bad = take_file(cmd, list, path, &why);
		if (bad == HD_E_INPUT || bad == HD_E_NOTFOUND)
			hd_trace_say(cmd, "left out: %s", why.text);
		else if (bad)
			err = hd_fail(&cmd->diag, bad, "%s", why.text);
	}
	return err;
}

static enum hd_err take_path(struct hd_cmd *cmd, struct input_list *list, const char *path, const char **run)
{
	uint32_t found = 0, before = list->n;
	struct hd_stat stat;
	enum hd_err err = hd_fs_stat(&cmd->fs, path, &stat, &cmd->diag);

	if (err || stat.kind != HD_FILE_FOLDER)
		return err ? err : take_file(cmd, list, path, &cmd->diag);
	*run = path;
	err = take_folder(cmd, list, path, "flight", ".hdfr", &found);
	if (!err)
		err = take_folder(cmd, list, path, "flight/snapshots", ".hdfr", &found);
	if (!err)
		err = take_folder(cmd, list, path, "trace", ".hdt", &found);
	if (err || list->n > before)
		return err;
	return found ? hd_fail(&cmd->diag, HD_E_INPUT, "none of the %u recordings of %s can be read", found,
		path) : hd_fail(&cmd->diag, HD_E_NOTFOUND, "%s has no recordings: neither flight/N.hdfr nor "
		"trace/N.hdt (trace.flight_slots: 0 turns them off)", path);
}

static void say_what_is_missing(const struct hd_cmd *cmd, const struct hd_trace_input *in)
{
	const struct hd_timeline *t = &in->timeline;
	const struct hd_tl_life *first = in->lives.n ? in->lives.life[0] : NULL;

	for (uint32_t i = 1; i < in->lives.n; i++) {
		const struct hd_tl_life *life = in->lives.life[i];
		if (life->info.clock == first->info.clock && memcmp(life->info.job, first->info.job,
			sizeof life->info.job) != 0)
			hd_trace_say(cmd, "%s is of another job than %s: what is said of both together means "
				"nothing; leave one of them out", life->file, first->file);
	}
	for (uint32_t i = 0; i < in->lives.ndropped; i++) {
		const struct hd_tl_dropped *d = &in->lives.dropped[i];
		if (d->cut)
			hd_trace_say(cmd, "%s is cut off at the end: what is whole before it is taken",
				d->file);
		if (d->nsections)
			hd_trace_say(cmd, "left out: %u section%s of %s, the rest is taken (the first: %s)",
				d->nsections, d->nsections == 1 ? "" : "s", d->file, d->first.text);
	}
	for (uint32_t p = 0; p < t->nprocesses; p++)
		if (!t->process[p].aligned)
			hd_trace_say(cmd, "%s (pid %u) is not aligned: its clock was probed less than "
				"twice; its times are its own", t->process[p].name, t->process[p].pid);
	for (uint32_t p = 0; p < t->nprocesses; p++)
		for (uint32_t i = 0; in->clock[p].aligned && i < in->clock[p].nsteps; i++)
			hd_trace_say(cmd, "the clock of %s (pid %u) was set while it ran", t->process[p].name,
				t->process[p].pid);
}

/* Asked for, or a merged file says that its clocks were. */
static enum hd_err tighten(struct hd_cmd *cmd, struct hd_trace_input *in)
{
	uint32_t nkept = 0;

	in->lives.tightened |= cmd->args.has[HD_OPT_TIGHTEN];
	enum hd_err err = in->lives.tightened ? hd_tl_tighten(&cmd->arena, &in->lives, in->clock, &nkept,
		&cmd->diag) : HD_OK;
	if (!err && nkept)
		hd_trace_say(cmd, "transfers contradict the probes of clocks at %u places, which keep what "
			"the probes say: a drift was not constant there", nkept);
	return err;
}

static enum hd_err import(struct hd_cmd *cmd, const struct hd_tl_input *file, struct hd_trace_input *input)
{
	struct hd_tl_foreign foreign;
	enum hd_err err = hd_tl_import(&cmd->arena, file->name, file->bytes, file->len, &input->timeline,
		&foreign, &cmd->diag);

	if (err)
		return err;
	if (foreign.cut)
		hd_trace_say(cmd, "%s ends in the middle: what is whole before it is taken", file->name);
	if (foreign.nskipped)
		hd_trace_say(cmd, "%s: %llu events of phases that are not read", file->name,
			(unsigned long long)foreign.nskipped);
	if (foreign.nunpaired)
		hd_trace_say(cmd, "%s: %llu events begin without an end, or end without a begin", file->name,
			(unsigned long long)foreign.nunpaired);
	return HD_OK;
}

/* The one of another program; HD_E_INVAL: and there are more. */
static enum hd_err find_foreign(struct hd_cmd *cmd, const struct input_list *list,
	const struct hd_tl_input **foreign)
{
	*foreign = NULL;
	for (uint32_t i = 0; i < list->n; i++)
		if (!hd_tl_is_recording(list->at[i].bytes, list->at[i].len))
			*foreign = &list->at[i];
	if (*foreign && list->n > 1)
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s is of another program: nothing says how its clock "
			"stands to that of others; give it alone", (*foreign)->name);
	return HD_OK;
}

typedef enum hd_err build_fn(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, struct hd_timeline *timeline,
	struct hd_diag *diag);

static enum hd_err read_with(struct hd_cmd *cmd, const char *const *path, uint32_t n, build_fn *build,
	struct hd_trace_input *input)
{
	struct hd_trace_input got = { 0 };
	struct input_list list = { 0 };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++)
		err = take_path(cmd, &list, path[i], &got.folder);
	const struct hd_tl_input *foreign = NULL;
	if (!err)
		err = find_foreign(cmd, &list, &foreign);
	if (!err && foreign) {
		err = import(cmd, foreign, &got);
		if (!err)
			*input = got;
		return err;
	}
	if (!err)
		err = hd_tl_collect(&cmd->arena, list.at, list.n, &got.lives, &cmd->diag);
	if (!err)
		err = hd_tl_align(&cmd->arena, &got.lives, &got.clock, &got.reference, &cmd->diag);
	if (!err)
		err = tighten(cmd, &got);
	if (!err)
		err = build(&cmd->arena, &got.lives, got.clock, got.reference, &got.timeline, &cmd->diag);
	if (err)
		return err;
	say_what_is_missing(cmd, &got);
	*input = got;
	return HD_OK;
}

enum hd_err hd_trace_read(struct hd_cmd *cmd, const char *const *path, uint32_t n,
	struct hd_trace_input *input)
{
	return read_with(cmd, path, n, hd_tl_build_of, input);
}

enum hd_err hd_trace_outline(struct hd_cmd *cmd, const char *const *path, uint32_t n,
	struct hd_trace_input *input)
{
	return read_with(cmd, path, n, hd_tl_outline_of, input);
}
