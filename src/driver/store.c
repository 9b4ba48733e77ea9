#include "driver/store.h"

#include <string.h>

#include "base/alloc.h"
#include "driver/db.h"

static const struct hd_db_kind file = {
	.id = 0x48444c53 /* "HDLS" */, .version = 1, .name = "store of Heddle",
	.busy = "another coordinator holds this run",
	.damaged = "move it away and resume the run from its checkpoint",
	.tables =
		"CREATE TABLE IF NOT EXISTS record (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
		" body BLOB NOT NULL);"
		"CREATE INDEX IF NOT EXISTS record_kind ON record (kind, number);"
		"CREATE TABLE IF NOT EXISTS term (number INTEGER PRIMARY KEY);"
		"INSERT INTO term DEFAULT VALUES",
};

enum { PUT, NEWEST, ALL, NSTATEMENTS };

static const char *const sql[NSTATEMENTS] = {
	[PUT] = "INSERT INTO record (kind, body) VALUES (?, ?)",
	[NEWEST] = "SELECT body FROM record WHERE kind = ? ORDER BY number DESC LIMIT 1",
	[ALL] = "SELECT number, kind, body FROM record ORDER BY number",
};

struct hd_store {
	struct hd_db db;
	sqlite3_stmt *run[NSTATEMENTS];
	uint64_t term;
};

uint64_t hd_store_term(const struct hd_store *store) { return store->term; }

static enum hd_err prepare(struct hd_store *s, struct hd_diag *diag)
{
	for (size_t i = 0; i < NSTATEMENTS; i++) {
		int code = sqlite3_prepare_v3(s->db.at, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->run[i],
			NULL);
		if (code)
			return hd_db_fail(&s->db, code, sql[i], diag);
	}
	return HD_OK;
}

enum hd_err hd_store_open(struct hd_store **store, const char *path, struct hd_diag *diag)
{
	struct hd_store *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the store");
	*s = (struct hd_store){ 0 };
	int64_t term = 0;
	enum hd_err err = hd_db_open(&s->db, path, &file, diag);
	if (!err)
		err = hd_db_number(&s->db, "SELECT max(number) FROM term", &term, diag);
	s->term = (uint64_t)term;
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
	for (size_t i = 0; i < NSTATEMENTS; i++)
		sqlite3_finalize(s->run[i]);
	hd_db_close(&s->db);
	hd_free(s);
}

enum hd_err hd_store_put(struct hd_store *s, uint32_t kind, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	if (kind >= HD_STORE_KINDS || len > HD_STORE_RECORD_BYTES)
		return hd_fail(diag, HD_E_INVAL, "a record of kind %u with %zu bytes", kind, len);
	sqlite3_bind_int64(s->run[PUT], 1, kind);
	sqlite3_bind_blob(s->run[PUT], 2, len ? bytes : "", (int)len, SQLITE_STATIC);
	int code = sqlite3_step(s->run[PUT]);
	sqlite3_reset(s->run[PUT]);
	sqlite3_clear_bindings(s->run[PUT]);
	return code == SQLITE_DONE ? HD_OK : hd_db_fail(&s->db, code, "write a record", diag);
}

enum hd_err hd_store_get(struct hd_store *s, uint32_t kind, void *bytes, size_t cap, size_t *len,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sqlite3_bind_int64(s->run[NEWEST], 1, kind);
	int code = sqlite3_step(s->run[NEWEST]);
	if (code == SQLITE_DONE)
		err = HD_E_NOTFOUND;
	else if (code != SQLITE_ROW)
		err = hd_db_fail(&s->db, code, "read a record", diag);
	else if ((size_t)sqlite3_column_bytes(s->run[NEWEST], 0) > cap)
		err = hd_fail(diag, HD_E_NOSPACE, "a record of kind %u with %d bytes", kind,
			sqlite3_column_bytes(s->run[NEWEST], 0));
	else {
		*len = (size_t)sqlite3_column_bytes(s->run[NEWEST], 0);
		if (*len)
			memcpy(bytes, sqlite3_column_blob(s->run[NEWEST], 0), *len);
	}
	sqlite3_reset(s->run[NEWEST]);
	return err;
}

enum hd_err hd_store_replay(struct hd_store *s, void *user,
	enum hd_err (*each)(void *user, uint64_t number, uint32_t kind, const void *bytes, size_t len,
	struct hd_diag *diag), struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	while (!err && (code = sqlite3_step(s->run[ALL])) == SQLITE_ROW)
		err = each(user, (uint64_t)sqlite3_column_int64(s->run[ALL], 0),
			(uint32_t)sqlite3_column_int64(s->run[ALL], 1),
			sqlite3_column_blob(s->run[ALL], 2), (size_t)sqlite3_column_bytes(s->run[ALL], 2),
			diag);
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read the records", diag);
	sqlite3_reset(s->run[ALL]);
	return err;
}
