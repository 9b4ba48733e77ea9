/* db.h -- an SQLite file owned by one process: opened, checked, locked. Used by store.h and jobs.h.
 *
 * 1. A file of another program is refused before anything is written to it, not even by a pragma; so is one
 *    of a later version.
 * 2. The lock is held from open to close or the end of the process (locking_mode EXCLUSIVE): a second opener
 *    waits 5 s, then gets HD_E_AGAIN. It waits because a killed process holds its lock until its last write
 *    is on the disk.
 * 3. A commit is on the disk when it returns (WAL, synchronous = FULL).
 * 4. A copy is of one instant between two commits, whole, and one file (no WAL beside it); it is synced, and
 *    its pages, tables and indexes were checked against one another.
 *
 * Ownership: open/close; the kind is borrowed. Threads: one. May block for an fsync. */
#ifndef HD_DRIVER_DB_H
#define HD_DRIVER_DB_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/err.h"

struct hd_db_kind {
	int32_t id, version;              /* application_id, user_version */
	const char *name;                 /* "store of a scheduler", for messages, as the next two */
	const char *busy;                 /* the file is locked: by what */
	const char *damaged;              /* what to do then */
	/* CREATE TABLE IF NOT EXISTS ...; and what else each opening writes */
	const char *tables;
};

/* opening: the path, while hd_db_open() has it */
struct hd_db { sqlite3 *at; const struct hd_db_kind *kind; const char *opening; };

/* HD_E_AGAIN, HD_E_INTEGRITY (not ours, later, damaged), HD_E_REFUSED (disk), HD_E_IO. To be closed in any
 * case. */
HD_MUST_USE enum hd_err hd_db_open(struct hd_db *db, const char *path, const struct hd_db_kind *kind,
	struct hd_diag *diag);
/* Of a file that no process holds: neither locked nor brought to this version; only for reading. Errors as
 * above, HD_E_AGAIN where another process holds it; HD_E_NOTFOUND. To be closed in any case. */
HD_MUST_USE enum hd_err hd_db_look(struct hd_db *db, const char *path, const struct hd_db_kind *kind,
	struct hd_diag *diag);
/* Rule 4; `to` must not exist. May take as long as the file takes to be written. */
HD_MUST_USE enum hd_err hd_db_copy(const struct hd_db *db, const char *to, struct hd_diag *diag);
/* What `from`, a copy, holds takes the place of all that is in `db`: as a whole, or not at all. */
HD_MUST_USE enum hd_err hd_db_fill(struct hd_db *db, const char *from, struct hd_diag *diag);
/* statements are finalized before; takes zeroed ones */
void hd_db_close(struct hd_db *db);

HD_MUST_USE enum hd_err hd_db_run(struct hd_db *db, const char *sql, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_db_number(struct hd_db *db, const char *sql, int64_t *n, struct hd_diag *diag);
/* The error of a code that SQLite gave; `what` was tried. */
HD_MUST_USE enum hd_err hd_db_fail(const struct hd_db *db, int code, const char *what, struct hd_diag *diag);

#endif
