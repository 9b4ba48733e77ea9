/* identity.h -- what a run is, as it lies in its folder: the hash of its job, and its data, file by file.
 *
 * Written when a run begins; a process that continues it (another process that resumes it, a worker of this
 * machine that joins, a coordinator that takes over) has opened the job and the data again and proves that
 * they are those of the beginning. Workers of other machines get the same two hashes from the coordinator
 * (offer.h).
 *
 * 1. The content decides: count and hash of all samples, taken when the data were opened. Sizes, times,
 *    inodes and samples of the files only say which file it is that differs, and in what.
 * 2. {"v":1,"job":HASH,"data":{"count":N,"hash":HASH,"files":[
 *        {"name":"rows.csv","size":N,"changed":NS,"inode":N,"sample":HASH}]}}:
 *    nothing else is understood.
 *
 * Ownership: parsed files lie in the arena, those of hd_identity_of() are the task's. Threads: any. */
#ifndef HD_RUN_IDENTITY_H
#define HD_RUN_IDENTITY_H

#include "engine/task.h"
#include "run/rundir.h"

#define HD_IDENTITY_NAME "identity.json"  /* in the run's folder */

struct hd_identity {
	struct hd_hash job, data;
	uint64_t count;                   /* of all samples */
	const struct hd_data_file *file;
	uint32_t nfiles;
};

/* The parts of the calls below; these five are for tests. */
struct hd_identity hd_identity_of(const struct hd_task *task);
HD_MUST_USE enum hd_err hd_identity_print(const struct hd_identity *identity, struct hd_text *text,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_identity_parse(struct hd_identity *identity, struct hd_arena *arena,
	const char *name, const char *text, size_t len,
	struct hd_diag *diag);
/* HD_E_INTEGRITY: other data, with the file, what differs and what to do. */
HD_MUST_USE enum hd_err hd_identity_data(const struct hd_identity *was, const struct hd_identity *is,
	struct hd_diag *diag);

/* Of the run in `path`. HD_E_NOTFOUND: one of before identities were kept. */
HD_MUST_USE enum hd_err hd_identity_read(struct hd_identity *identity, struct hd_arena *arena,
	struct hd_fs *fs, const char *path, struct hd_diag *diag);
/* By the holder of the run: other data are refused; where none is kept yet, or another job goes on with it,
 * it is written. */
HD_MUST_USE enum hd_err hd_identity_keep(struct hd_rundir *dir, const struct hd_task *task,
	struct hd_diag *diag);
/* By a worker of the run: its job (HD_E_INVAL) and data (HD_E_INTEGRITY) must be those of the beginning. */
HD_MUST_USE enum hd_err hd_identity_join(struct hd_fs *fs, const char *path, const struct hd_task *task,
	struct hd_diag *diag);
/* By a coordinator that takes over, which reads no sample: it goes on for workers that have the run's data.
 * *other: what differs here, "": nothing. Data of another length, and another job, are refused. */
HD_MUST_USE enum hd_err hd_identity_take(struct hd_fs *fs, const char *path, struct hd_task *task,
	struct hd_diag *other, struct hd_diag *diag);

#endif
