#include "serve/store.h"

#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"

enum { HD_STORE_ID = 0x48444c53, HD_STORE_VERSION = 1 };      /* application_id "HDLS", user_version */

struct hd_store {
	sqlite3 *db;
	sqlite3_stmt *put, *newest, *all;
	uint64_t term;
};

uint64_t hd_store_term(const struct hd_store *store) { return store->term; }

static enum hd_err broken(struct hd_store *s, int code, const char *what, struct hd_diag *diag)
{
	const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code), *path = s->db ? sqlite3_db_filename(s->db, "main") : "";

	switch (code & 0xff) {
	case SQLITE_BUSY: case SQLITE_LOCKED:
		return hd_fail(diag, HD_E_AGAIN, "%s: another coordinator holds this run", path);
	case SQLITE_NOTADB: case SQLITE_CORRUPT:
		return hd_fail(diag, HD_E_INTEGRITY, "%s: %s: %s; move it away and resume the run from its checkpoint", path, what, why);
	case SQLITE_FULL: case SQLITE_READONLY: case SQLITE_CANTOPEN: case SQLITE_PERM:
		return hd_fail(diag, HD_E_REFUSED, "%s: %s: %s", path, what, why);
	case SQLITE_NOMEM:
		return hd_fail(diag, HD_E_NOMEM, "no memory for the store");
	default:
		return hd_fail(diag, HD_E_IO, "%s: %s: %s", path, what, why);
	}
}

static enum hd_err run(struct hd_store *s, const char *sql, struct hd_diag *diag)
{
	int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return code ? broken(s, code, sql, diag) : HD_OK;
}

static enum hd_err number(struct hd_store *s, const char *sql, int64_t *n, struct hd_diag *diag)
{
	sqlite3_stmt *ask = NULL;
	int code = sqlite3_prepare_v2(s->db, sql, -1, &ask, NULL);

	if (!code)
		code = sqlite3_step(ask);
	if (code == SQLITE_ROW)
		*n = sqlite3_column_int64(ask, 0);
	enum hd_err err = code == SQLITE_ROW ? HD_OK : broken(s, code, sql, diag);
	sqlite3_finalize(ask);
	return err;
}

/* A file of another program must not be written to, not even by a pragma. */
static enum hd_err recognise(struct hd_store *s, struct hd_diag *diag)
{
	int64_t id = 0, version = 0, tables = 0;
	enum hd_err err = number(s, "SELECT count(*) FROM sqlite_master", &tables, diag);

	if (!err)
		err = number(s, "PRAGMA application_id", &id, diag);
	if (!err)
		err = number(s, "PRAGMA user_version", &version, diag);
	if (err || (tables == 0 && id == 0))
		return err;
	if (id != HD_STORE_ID)
		return hd_fail(diag, HD_E_INTEGRITY, "%s is no store of Heddle", sqlite3_db_filename(s->db, "main"));
	if (version > HD_STORE_VERSION)
		return hd_fail(diag, HD_E_INTEGRITY, "%s is of version %lld, this program reads up to %d: use the newer one",
			sqlite3_db_filename(s->db, "main"), (long long)version, HD_STORE_VERSION);
	return HD_OK;
}

static enum hd_err check_pages(struct hd_store *s, struct hd_diag *diag)
{
	sqlite3_stmt *ask = NULL;
	int code = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &ask, NULL);
	enum hd_err err = HD_OK;

	if (!code)
		code = sqlite3_step(ask);
	if (code != SQLITE_ROW)
		err = broken(s, code, "check", diag);
	else if (strcmp((const char *)sqlite3_column_text(ask, 0), "ok") != 0)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s is damaged: %s; move it away and resume the run from its checkpoint",
			sqlite3_db_filename(s->db, "main"), (const char *)sqlite3_column_text(ask, 0));
	sqlite3_finalize(ask);
	return err;
}

/* The lock first: with locking_mode EXCLUSIVE it is held from the first transaction to the end of the process. */
static enum hd_err take(struct hd_store *s, struct hd_diag *diag)
{
	int64_t term = 0;
	enum hd_err err = run(s, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
		"CREATE TABLE IF NOT EXISTS record (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL);"
		"CREATE INDEX IF NOT EXISTS record_kind ON record (kind, number);"
		"CREATE TABLE IF NOT EXISTS term (number INTEGER PRIMARY KEY);"
		"INSERT INTO term DEFAULT VALUES; PRAGMA application_id = 1212435539; PRAGMA user_version = 1; COMMIT", diag);

	_Static_assert(HD_STORE_ID == 1212435539 && HD_STORE_VERSION == 1, "the text above says these");
	if (!err)
		err = number(s, "SELECT max(number) FROM term", &term, diag);
	s->term = (uint64_t)term;
	return err;
}

static enum hd_err prepare(struct hd_store *s, struct hd_diag *diag)
{
	const struct { sqlite3_stmt **at; const char *sql; } row[] = {
		{ &s->put,    "INSERT INTO record (kind, body) VALUES (?, ?)" },
		{ &s->newest, "SELECT body FROM record WHERE kind = ? ORDER BY number DESC LIMIT 1" },
		{ &s->all,    "SELECT number, kind, body FROM record ORDER BY number" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int code = sqlite3_prepare_v3(s->db, row[i].sql, -1, SQLITE_PREPARE_PERSISTENT, row[i].at, NULL);
		if (code)
			return broken(s, code, row[i].sql, diag);
	}
	return HD_OK;
}

enum hd_err hd_store_open(struct hd_store **store, const char *path, struct hd_diag *diag)
{
	struct hd_store *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the store");
	*s = (struct hd_store){ 0 };
	int code = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_FULLMUTEX, NULL);
	enum hd_err err = code ? broken(s, code, "open", diag) : HD_OK;
	if (!err)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (!err)
		err = recognise(s, diag);
	if (!err)
		err = take(s, diag);
	if (!err)
		err = check_pages(s, diag);
	if (!err)
		err = prepare(s, diag);
	if (err)
		hd_store_close(s);
	else
		*store = s;
	return err;
}

void hd_store_close(struct hd_store *s)
{
	if (!s)
		return;
	sqlite3_finalize(s->put);
	sqlite3_finalize(s->newest);
	sqlite3_finalize(s->all);
	sqlite3_close(s->db);
	hd_free(s);
}

enum hd_err hd_store_put(struct hd_store *s, uint32_t kind, const void *bytes, size_t len, struct hd_diag *diag)
{
	if (kind >= HD_STORE_KINDS || len > HD_STORE_RECORD_BYTES)
		return hd_fail(diag, HD_E_INVAL, "a record of kind %u with %zu bytes", kind, len);
	sqlite3_bind_int64(s->put, 1, kind);
	sqlite3_bind_blob(s->put, 2, len ? bytes : "", (int)len, SQLITE_STATIC);
	int code = sqlite3_step(s->put);
	sqlite3_reset(s->put);
	sqlite3_clear_bindings(s->put);
	return code == SQLITE_DONE ? HD_OK : broken(s, code, "write a record", diag);
}

enum hd_err hd_store_get(struct hd_store *s, uint32_t kind, void *bytes, size_t cap, size_t *len, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sqlite3_bind_int64(s->newest, 1, kind);
	int code = sqlite3_step(s->newest);
	if (code == SQLITE_DONE)
		err = HD_E_NOTFOUND;
	else if (code != SQLITE_ROW)
		err = broken(s, code, "read a record", diag);
	else if ((size_t)sqlite3_column_bytes(s->newest, 0) > cap)
		err = hd_fail(diag, HD_E_NOSPACE, "a record of kind %u with %d bytes", kind, sqlite3_column_bytes(s->newest, 0));
	else {
		*len = (size_t)sqlite3_column_bytes(s->newest, 0);
		if (*len)
			memcpy(bytes, sqlite3_column_blob(s->newest, 0), *len);
	}
	sqlite3_reset(s->newest);
	return err;
}

enum hd_err hd_store_replay(struct hd_store *s, void *user,
	enum hd_err (*each)(void *user, uint64_t number, uint32_t kind, const void *bytes, size_t len, struct hd_diag *diag), struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	while (!err && (code = sqlite3_step(s->all)) == SQLITE_ROW)
		err = each(user, (uint64_t)sqlite3_column_int64(s->all, 0), (uint32_t)sqlite3_column_int64(s->all, 1), sqlite3_column_blob(s->all, 2),
			(size_t)sqlite3_column_bytes(s->all, 2), diag);
	if (!err && code != SQLITE_DONE)
		err = broken(s, code, "read the records", diag);
	sqlite3_reset(s->all);
	return err;
}
