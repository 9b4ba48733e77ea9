#include "run/job_files.h"

#include <stdio.h>
#include <string.h>

#include "sys/process.h"

static bool exists(struct hd_fs *fs, const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(fs, path, &stat, NULL);
}

const char *hd_job_model_file(const struct hd_job *job)
{
	const char *use = hd_job_text(job, HD_JOB_MODEL), *colon = strchr(use, ':');

	return colon && (!strncmp(use, "onnx:", 5) || !strncmp(use, "graph:", 6)) ? colon + 1 : NULL;
}

void hd_job_files_from(struct hd_job *job, struct hd_fs *fs, const char *folder, size_t len,
	struct hd_arena *arena)
{
	static const int files[] = { HD_JOB_MODEL, HD_JOB_WEIGHTS, HD_JOB_DATA_PATH, HD_JOB_BOUNDARIES,
		HD_JOB_TOKENIZER,
		HD_JOB_NET_KEY, HD_JOB_REPLAY };
	struct hd_text at;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct hd_job_value *v = &job->value[files[i]];
		const char *file = files[i] == HD_JOB_MODEL ? hd_job_model_file(job) : v->text;
		if (v->is_none || !file || file[0] == '/' || exists(fs, file))
			continue;
		hd_text_init(&at, arena);
		hd_text_put(&at, v->text, (size_t)(file - v->text));
		hd_text_put(&at, folder, len);
		hd_text_addf(&at, "/%s", file);
		if (!at.full && exists(fs, at.at + (file - v->text)))
			v->text = at.at;
	}
}

const char *hd_job_file_from_root(const char *path, struct hd_arena *arena)
{
	char folder[HD_PATH_CAP];
	struct hd_text at;

	if (path[0] == '/' || strstr(path, "://") || hd_proc_folder(folder, sizeof folder, NULL))
		return path;
	hd_text_init(&at, arena);
	hd_text_addf(&at, "%s/%s", folder, path);
	return at.full ? path : at.at;
}

/* The path of what would lie beside the job of a run; false: `path` is not one. */
static bool beside(const char *path, const char *name, char at[HD_PATH_CAP])
{
	size_t len = strlen(path), job = sizeof HD_RUN_JOB - 1;

	return len >= job && !strcmp(path + len - job, HD_RUN_JOB) &&
		snprintf(at, HD_PATH_CAP, "%.*s%s", (int)(len - job), path, name) < HD_PATH_CAP;
}

bool hd_job_has_beside(struct hd_fs *fs, const char *path, const char *name)
{
	char at[HD_PATH_CAP];

	return beside(path, name, at) && exists(fs, at);
}

enum hd_err hd_job_files_beside(struct hd_job *job, struct hd_fs *fs, const char *path,
	struct hd_arena *arena, struct hd_diag *diag)
{
	char at[HD_PATH_CAP];
	uint8_t *folder;
	size_t len;

	if (!beside(path, HD_RUN_FOLDER, at) || !exists(fs, at))
		return HD_OK;
	enum hd_err err = hd_file_read_all(fs, at, arena, HD_PATH_CAP, &folder, &len, diag);
	if (!err)
		hd_job_files_from(job, fs, (const char *)folder, len, arena);
	return err;
}

enum hd_err hd_job_run_of(struct hd_fs *fs, const char *path, char dir[HD_RUN_PATH], char job[HD_PATH_CAP],
	struct hd_diag *diag)
{
	/* the last: of RUN/ckpt/best/step-000000009 */
	static const char *const up[] = { "", "/..", "/../..", "/../../.." };

	for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
		if (snprintf(dir, HD_RUN_PATH, "%s%s", path, up[i]) >= HD_RUN_PATH ||
			snprintf(job, HD_PATH_CAP, "%s/" HD_RUN_JOB, dir) >= HD_PATH_CAP)
			return hd_fail(diag, HD_E_NOTFOUND, "%.200s...: the path is too long", path);
		if (exists(fs, job))
			return HD_OK;
	}
	return hd_fail(diag, HD_E_NOTFOUND,
		"%s is no run: neither it nor what holds it has a " HD_RUN_JOB, path);
}

void hd_job_files_repair(struct hd_fs *fs, const char *path, const char *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job *alone = hd_arena_take(arena, 1, sizeof *alone);
	char given[HD_PATH_CAP], why[sizeof diag->text];
	struct hd_text warnings;

	if (!alone || !beside(path, "job.yaml", given))
		return;
	hd_text_init(&warnings, arena);
	enum hd_err err = hd_job_parse(alone, path, bytes, len, NULL, 0, arena, NULL, &warnings);
	if (!err)                         /* what was set beside it is wrong */
		return;
	memcpy(why, diag->text, sizeof why);
	*diag = (struct hd_diag){ "" };
	if (exists(fs, given))
		(void)hd_fail(diag, err,
			"%.160s; the file is damaged: `cp %.100s %.100s` replaces it by the job of the "
			"start, without what options and HEDDLE_... set then (but for jobs with a table "
			"graph), so set it again (a job that would end otherwise is refused)", why, given,
			path);
	else
		(void)hd_fail(diag, err,
			"%.160s; the file is damaged, and %.100s, which could replace it, is missing: put "
			"the job file of the run there; its checkpoints are whole (`heddle ckpt export` "
			"writes the parameters)", why, given);
}

enum hd_err hd_job_files_put(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char folder[HD_PATH_CAP];
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_job_json(job, false, &text);
	hd_text_add(&text, "\n");
	enum hd_err err = hd_rundir_put(dir, HD_RUN_JOB, text.at, text.len, diag);
	if (!err)
		err = hd_proc_folder(folder, sizeof folder, diag);
	return err ? err : hd_rundir_put(dir, HD_RUN_FOLDER, folder, strlen(folder), diag);
}
