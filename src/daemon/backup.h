/* backup.h -- a scheduler's store, with what lies beside it, as a folder: made while it serves, put back
 * where nothing runs.
 *
 *	FOLDER/jobs.sqlite        a copy of one instant between two commits
 *	FOLDER/NAME               the files of HD_BACKUP_FILES that DIR has
 *	FOLDER/backup.json        what it is of, and of each file its bytes and SHA-256
 *
 * Runs are not in it: their folders lie in DIR/runs, and what they hold (jobs, checkpoints, ends) is theirs.
 *
 * 1. FOLDER appears whole: it is made beside its place (.part), each file is synced, backup.json comes last,
 *    then it is renamed. One that is there is refused.
 * 2. What is restored has the bytes and sums of backup.json, and a store whose pages, tables and indexes
 *    agree. A backup of a later program is refused, one of an earlier program is brought to this version.
 * 3. It is restored where no scheduler serves, no process of a run works and no jobs are known. Nothing is
 *    written over: a file that is there and differs is refused before anything is written.
 * 4. The store comes last, and as a whole: if a restore is interrupted before that, there is no store with
 *    jobs, and the same request can be made again.
 * 5. Runs are ahead of a backup. Of each job the number of leases is raised to the greatest that its run
 *    had, so that no number is given twice; one whose run has ended with all its steps is done, with its
 *    digest; any other that was open is queued and goes on from its newest checkpoint. Jobs that were
 *    submitted after the backup are not known again: their runs stay, counted as `unknown`, and new ids
 *    start after theirs (daemon.h, rule 6).
 * 6. Numbers of events go on after those that a webhook has delivered (DIR/webhook): the first is that the
 *    store was restored. Nothing that happened after the backup is an event again, nor done again: a job
 *    that was cancelled since is queued.
 *
 * Threads: any; blocks for the disk. */
#ifndef HD_DAEMON_BACKUP_H
#define HD_DAEMON_BACKUP_H

#include "base/json_writer.h"
#include "sys/file.h"
#include "daemon/jobs.h"

/*        name, below DIR: what it is */
#define HD_BACKUP_FILES(X) \
	X("users.yaml", "users, roles and quotas")

#define HD_BACKUP_STORE "jobs.sqlite"
#define HD_BACKUP_LIST  "backup.json"
enum { HD_BACKUP_PROGRAM = 64 };

struct hd_backup {
	uint64_t jobs, last, event;       /* jobs stored; the greatest id; number of the newest event */
	uint64_t bytes;                   /* of all files */
	int64_t t_ms, store;              /* when it was made; version of the store */
	char program[HD_BACKUP_PROGRAM];  /* that made it */
	char digest[65];                  /* SHA-256 of jobs.sqlite */
};

/* `jobs` of the scheduler that serves DIR; NULL: none does, and the file is read as it lies there. */
HD_MUST_USE enum hd_err hd_backup_make(struct hd_fs *fs, const char *dir, struct hd_jobs *jobs, int64_t t_ms,
	const char *folder, struct hd_backup *made, struct hd_diag *diag);

/* As an answer (answers.h): members into the open object `w`. */
void hd_backup_put(const struct hd_backup *backup, const char *folder, struct hd_json_writer *w);

/* Rule 2, but for the store's inside. */
HD_MUST_USE enum hd_err hd_backup_read(struct hd_fs *fs, const char *folder, struct hd_backup *backup,
	struct hd_diag *diag);

/* What restoring found: jobs that had leases since, those of them that are done; runs of jobs that the
 * backup does not know; jobs without a run's folder. */
struct hd_restored { uint64_t ran, done, unknown, gone; };
/* One job or run of those, while it works. */
typedef void hd_restore_says(void *user, uint64_t job, const char *run, const char *what);
HD_MUST_USE enum hd_err hd_backup_restore(struct hd_fs *fs, const char *dir, const char *folder,
	int64_t t_ms, hd_restore_says *says, void *user, struct hd_backup *backup,
	struct hd_restored *restored, struct hd_diag *diag);

#endif
