/* job_files.h -- the job of a run as it lies in its folder, and the files that a job names.
 *
 * 1. job.resolved.json is the job with every value. The relative paths in it begin at the folder that
 *    job.folder names: the one in which the run was begun.
 * 2. A relative path that leads to a file from the current folder stays; else, if it leads to one from that
 *    folder, it is that one. What fixes the result is hashed before: paths move no bit.
 * 3. A job.resolved.json that is damaged is refused with its replacement: job.yaml, the job as given, without
 *    what options and variables set (of the short form of a graph's job the long one, with it). Checkpoints
 *    carry the job's hash, so a job that would end otherwise is refused, and nothing is lost by trying.
 *
 * Ownership: texts lie in the arena. Threads: any. */
#ifndef HD_RUN_JOB_FILES_H
#define HD_RUN_JOB_FILES_H

#include "base/arena.h"
#include "sys/file.h"
#include "job/job.h"
#include "run/rundir.h"

enum { HD_RUN_PATH = 512, HD_JOB_BYTES = 1 << 20 };

/* FILE of model.use: onnx:FILE or graph:FILE; NULL: a built-in model. */
const char *hd_job_model_file(const struct hd_job *job);

/* Rule 2 for model, weights, data and key. */
void hd_job_files_from(struct hd_job *job, struct hd_fs *fs, const char *folder, size_t len,
	struct hd_arena *arena);
/* The same for the job that was read of `path`, if that is the job of a run. */
HD_MUST_USE enum hd_err hd_job_files_beside(struct hd_job *job, struct hd_fs *fs, const char *path,
	struct hd_arena *arena, struct hd_diag *diag);

/* The path from the root, so that a process in another folder reads the same file. */
const char *hd_job_file_from_root(const char *path, struct hd_arena *arena);

/* Where `path` is the job of a run: does a file of that name lie beside it? */
bool hd_job_has_beside(struct hd_fs *fs, const char *path, const char *name);

/* The run that `path` (a run, its checkpoints, one of them) belongs to, and the path of its job.
 * HD_E_NOTFOUND. */
HD_MUST_USE enum hd_err hd_job_run_of(struct hd_fs *fs, const char *path, char dir[HD_RUN_PATH],
	char job[HD_PATH_CAP], struct hd_diag *diag);

/* Rule 3. `path` was refused, `diag` says why: where it is the job of a run and its `bytes` are no job by
 * themselves, `diag` goes on with what to do. */
void hd_job_files_repair(struct hd_fs *fs, const char *path, const char *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag);

/* Writes both files of a new run. */
HD_MUST_USE enum hd_err hd_job_files_put(struct hd_rundir *dir, const struct hd_job *job,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
