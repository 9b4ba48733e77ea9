#include "driver/db.h"

#include <stdio.h>
#include <string.h>

#include "sys/file.h"

/* with less, whatever could not be written is blamed on it: SQLite says "disk I/O error" of a full tmpfs */
enum { HD_DB_LEAST_FREE = 1 << 18 };

enum hd_err hd_db_fail(const struct hd_db *db, int code, const char *what, struct hd_diag *diag)
{
	const char *why = db->at ? sqlite3_errmsg(db->at) : sqlite3_errstr(code),
		*path = db->at ? sqlite3_db_filename(db->at, "main") : NULL;

	/* of what was not opened it knows no name */
	path = path ? path : db->opening ? db->opening : "";

	struct hd_fs_space space;
	struct hd_fs fs;

	hd_fs_real(&fs);
	if (((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR) &&
		!hd_fs_space(&fs, path, &space) && space.free_bytes < HD_DB_LEAST_FREE)
		return hd_fail(diag, HD_E_REFUSED,
			"%s: %s: its disk is full, %s has %llu KiB left; free space there", path, what,
			*space.at ? space.at : "it", (unsigned long long)(space.free_bytes >> 10));
	switch (code & 0xff) {
	case SQLITE_BUSY: case SQLITE_LOCKED:
		return hd_fail(diag, HD_E_AGAIN, "%s: %s", path, db->kind->busy);
	case SQLITE_NOTADB: case SQLITE_CORRUPT:
		return hd_fail(diag, HD_E_INTEGRITY, "%s: %s: %s; %s", path, what, why, db->kind->damaged);
	case SQLITE_FULL: case SQLITE_READONLY: case SQLITE_CANTOPEN: case SQLITE_PERM:
		return hd_fail(diag, HD_E_REFUSED, "%s: %s: %s", path, what, why);
	case SQLITE_NOMEM:
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %s", db->kind->name);
	default:
		return hd_fail(diag, HD_E_IO, "%s: %s: %s", path, what, why);
	}
}

enum hd_err hd_db_run(struct hd_db *db, const char *sql, struct hd_diag *diag)
{
	int code = sqlite3_exec(db->at, sql, NULL, NULL, NULL);

	return code ? hd_db_fail(db, code, "write", diag) : HD_OK;
}

enum hd_err hd_db_number(struct hd_db *db, const char *sql, int64_t *n, struct hd_diag *diag)
{
	sqlite3_stmt *ask = NULL;
	int code = sqlite3_prepare_v2(db->at, sql, -1, &ask, NULL);

	if (!code)
		code = sqlite3_step(ask);
	if (code == SQLITE_ROW)
		*n = sqlite3_column_int64(ask, 0);
	enum hd_err err = code == SQLITE_ROW ? HD_OK : hd_db_fail(db, code, sql, diag);
	sqlite3_finalize(ask);
	return err;
}

static enum hd_err recognise(struct hd_db *db, struct hd_diag *diag)
{
	const char *path = sqlite3_db_filename(db->at, "main");
	int64_t id = 0, version = 0, tables = 0;
	const struct { const char *sql; int64_t *n; } row[] = {
		{ "SELECT count(*) FROM sqlite_master", &tables }, { "PRAGMA application_id", &id }, { "PRAGMA user_version", &version },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof row / sizeof *row && !err; i++)
		err = hd_db_number(db, row[i].sql, row[i].n, diag);
	if (err)
		return err;
	if (tables == 0 && id == 0)
		return HD_OK;
	if (id != db->kind->id)
		return hd_fail(diag, HD_E_INTEGRITY, "%s is no %s", path, db->kind->name);
	if (version > db->kind->version)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s is of version %lld, this program reads up to %d: use the newer one", path,
			(long long)version,
			(int)db->kind->version);
	return HD_OK;
}

/* The lock first: it is held from the first transaction on. */
static enum hd_err take(struct hd_db *db, struct hd_diag *diag)
{
	char mark[100];

	snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
		(int)db->kind->id, (int)db->kind->version);
	enum hd_err err = hd_db_run(db,
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
		"BEGIN IMMEDIATE", diag);
	err = err ? err : hd_db_run(db, db->kind->tables, diag);
	return err ? err : hd_db_run(db, mark, diag);
}

/* how: quick_check, or integrity_check: indexes against tables, too */
static enum hd_err check_pages(const struct hd_db *db, const char *how, struct hd_diag *diag)
{
	sqlite3_stmt *ask = NULL;
	int code = sqlite3_prepare_v2(db->at, how, -1, &ask, NULL);
	enum hd_err err = HD_OK;

	if (!code)
		code = sqlite3_step(ask);
	if (code != SQLITE_ROW)
		err = hd_db_fail(db, code, "check", diag);
	else if (strcmp((const char *)sqlite3_column_text(ask, 0), "ok") != 0)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s is damaged: %s; %s",
			sqlite3_db_filename(db->at, "main"), (const char *)sqlite3_column_text(ask, 0),
			db->kind->damaged);
	sqlite3_finalize(ask);
	return err;
}

enum { BUSY_TIMEOUT_MS = 5000 };

enum hd_err hd_db_open(struct hd_db *db, const char *path, const struct hd_db_kind *kind,
	struct hd_diag *diag)
{
	*db = (struct hd_db){ .kind = kind, .opening = path };
	int code = sqlite3_open_v2(path, &db->at, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
		SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_FULLMUTEX, NULL);
	enum hd_err err = code ? hd_db_fail(db, code, "open", diag) : HD_OK;

	db->opening = NULL;
	if (!err) {
		sqlite3_db_config(db->at, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_busy_timeout(db->at, BUSY_TIMEOUT_MS);
	}
	if (!err)
		err = recognise(db, diag);
	if (!err)
		err = take(db, diag);
	return err ? err : check_pages(db, "PRAGMA quick_check(1)", diag);
}

enum hd_err hd_db_look(struct hd_db *db, const char *path, const struct hd_db_kind *kind,
	struct hd_diag *diag)
{
	struct hd_stat stat;
	struct hd_fs fs;

	*db = (struct hd_db){ .kind = kind, .opening = path };
	hd_fs_real(&fs);
	if (hd_fs_stat(&fs, path, &stat, NULL) == HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no %s, a %s", path, kind->name);
	/* not read-only: what a killed process left in the WAL counts, and only a writer can take it up */
	int code = sqlite3_open_v2(path, &db->at, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW |
		SQLITE_OPEN_FULLMUTEX, NULL);
	enum hd_err err = code ? hd_db_fail(db, code, "open", diag) : HD_OK;

	db->opening = NULL;
	return err ? err : recognise(db, diag);
}

/* In one go: whoever writes through another connection has none, since the file is locked. */
static int copy_pages(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");

	if (!copy)
		return sqlite3_errcode(to);
	int code = sqlite3_backup_step(copy, -1), end = sqlite3_backup_finish(copy);
	return code == SQLITE_DONE ? end : code;
}

enum hd_err hd_db_copy(const struct hd_db *db, const char *to, struct hd_diag *diag)
{
	struct hd_db copy = { .kind = db->kind, .opening = to };
	struct hd_stat stat;
	struct hd_fs fs;

	hd_fs_real(&fs);
	if (hd_fs_stat(&fs, to, &stat, NULL) != HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_EXISTS, "%s is there: a copy takes no file's place", to);
	int code = sqlite3_open_v2(to, &copy.at, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
		SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_FULLMUTEX, NULL);
	if (!code)
		code = sqlite3_exec(copy.at, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
	if (!code)
		code = copy_pages(db->at, copy.at);
	if (!code)                                /* one file */
		code = sqlite3_exec(copy.at, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
	enum hd_err err = code ? hd_db_fail(&copy, code, "copy", diag) : check_pages(&copy,
		"PRAGMA integrity_check(1)", diag);
	hd_db_close(&copy);
	return err;
}

enum hd_err hd_db_fill(struct hd_db *db, const char *from, struct hd_diag *diag)
{
	struct hd_db copy;
	enum hd_err err = hd_db_look(&copy, from, db->kind, diag);

	err = err ? err : check_pages(&copy, "PRAGMA integrity_check(1)", diag);
	int code = err ? SQLITE_OK : copy_pages(copy.at, db->at);
	if (code)
		err = hd_db_fail(db, code, "copy", diag);
	hd_db_close(&copy);
	return err;
}

void hd_db_close(struct hd_db *db)
{
	sqlite3_close(db->at);
	db->at = NULL;
}
