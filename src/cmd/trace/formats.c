#include "cmd/trace/formats.h"

#include <stdio.h>
#include <string.h>

#include "timeline/merge.h"
#include "timeline/viewer.h"

static enum hd_err put(void *self, const void *bytes, size_t len, struct hd_diag *diag)
{
	return hd_file_write(self, bytes, len, diag);
}

static void name_part(char part[HD_PATH_CAP + 8], const char *path)
{
	snprintf(part, HD_PATH_CAP + 8, "%s.tmp", path);
}

static enum hd_err open_part(struct hd_cmd *cmd, const char *path, struct hd_file *file)
{
	char part[HD_PATH_CAP + 8];

	name_part(part, path);
	return hd_file_open(&cmd->fs, part, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, file,
		&cmd->diag);
}

/* The name is the new file's once all of it is there. */
static enum hd_err settle_part(struct hd_cmd *cmd, const char *path, struct hd_file *file, enum hd_err err)
{
	char part[HD_PATH_CAP + 8], folder[HD_PATH_CAP];
	const char *slash = strrchr(path, '/');

	name_part(part, path);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (!err)
		err = hd_file_sync(file, &cmd->diag);
	enum hd_err closed = hd_file_close(file, err ? NULL : &cmd->diag);
	err = err ? err : closed;
	if (!err)
		err = hd_fs_rename(&cmd->fs, part, path, &cmd->diag);
	if (err)
		(void)!hd_fs_unlink(&cmd->fs, part, NULL);
	return err ? err : hd_fs_sync_folder(&cmd->fs, folder, &cmd->diag);
}

static enum hd_err write_hdt(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	struct hd_file file;

	if (input->timeline.foreign)
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s: a trace of another program has no slots as they "
			"were recorded; give the output another ending", path);
	enum hd_err err = open_part(cmd, path, &file);
	const struct hd_tl_sink sink = { put, &file };
	if (err)
		return err;
	err = hd_tl_merge(&cmd->arena, &input->lives, input->clock, &sink, &cmd->diag);
	return settle_part(cmd, path, &file, err);
}

/* rank: of the profile for ranks; else NULL */
static enum hd_err write_file(struct hd_cmd *cmd, hd_tl_writer *writer, const struct hd_tl_rank *rank,
	const struct hd_timeline *timeline, const char *path)
{
	struct hd_file file;
	enum hd_err err = open_part(cmd, path, &file);

	if (err)
		return err;
	const struct hd_tl_sink sink = { put, &file };
	err = rank ? hd_tl_write_hta(timeline, *rank, &sink, &cmd->arena, &cmd->diag) :
		writer(timeline, &sink, &cmd->arena, &cmd->diag);
	return settle_part(cmd, path, &file, err);
}

static enum hd_err write_with(struct hd_cmd *cmd, hd_tl_writer *writer, const struct hd_trace_input *input,
	const char *path)
{
	return write_file(cmd, writer, NULL, &input->timeline, path);
}

/* A folder of one file a worker; the coordinator computes nothing and is no rank. */
static enum hd_err write_ranks(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	const struct hd_timeline *t = &input->timeline;
	struct hd_tl_rank rank = { 0 };
	char name[HD_PATH_CAP];
	enum hd_err err = hd_fs_mkdirs(&cmd->fs, path, &cmd->diag);

	for (uint32_t p = 0; p < t->nprocesses; p++)
		rank.nranks += t->process[p].step_end > t->process[p].step_begin;
	if (!err && !rank.nranks)
		return hd_fail(&cmd->diag, HD_E_INPUT, "no process of this recording ended a step: there is "
			"no rank to write");
	for (uint32_t p = 0; p < t->nprocesses && !err; p++) {
		if (t->process[p].step_end == t->process[p].step_begin)
			continue;
		snprintf(name, sizeof name, "%.900s/rank-%u.json", path, rank.rank);
		rank.process = p;
		err = write_file(cmd, NULL, &rank, t, name);
		rank.rank++;
	}
	return err;
}

static enum hd_err write_perfetto(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	return write_with(cmd, hd_tl_write_perfetto, input, path);
}

static enum hd_err write_chrome(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	return write_with(cmd, hd_tl_write_chrome, input, path);
}

static enum hd_err write_steps(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	return write_with(cmd, hd_tl_write_steps, input, path);
}

static enum hd_err write_html(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path)
{
	return write_with(cmd, hd_tl_write_html, input, path);
}

static const struct hd_trace_format formats[] = {
	{ ".hdt", "heddle's own: as recorded, of all processes", write_hdt, true },
	{ ".pftrace", "Perfetto", write_perfetto, false },
	{ ".json", "Chrome's trace events", write_chrome, false },
	{ ".ndjson", "one JSON object a step", write_steps, false },
	{ ".html", "a page that shows it", write_html, false },
	{ ".hta", "a folder of one file a worker, for HolisticTraceAnalysis", write_ranks, false },
};
enum { NFORMATS = sizeof formats / sizeof formats[0] };

enum hd_err hd_trace_format_of(const char *path, const struct hd_trace_format **format, struct hd_diag *diag)
{
	size_t len = strlen(path);
	char list[200] = "";

	for (int i = 0; i < NFORMATS; i++) {
		size_t suffix = strlen(formats[i].suffix);
		if (len > suffix && !strcmp(path + len - suffix, formats[i].suffix)) {
			*format = &formats[i];
			return HD_OK;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
			formats[i].suffix);
	}
	return hd_fail(diag, HD_E_INVAL, "%s: the end of its name says the format, one of %s", path, list);
}
