#include "daemon/jobs_int.h"

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "sys/file.h"

const struct hd_db_kind hd_jobs_kind = {
	.id = 0x48444c4a /* "HDLJ" */, .version = 2, .name = "store of a scheduler",
		.busy = "another scheduler serves this folder",
	.damaged = "the runs beside it can be resumed one by one",
	.tables =
		"CREATE TABLE IF NOT EXISTS job (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
		" user TEXT NOT NULL, key TEXT UNIQUE, run TEXT NOT NULL, digest TEXT NOT NULL DEFAULT '',"
		" state TEXT NOT NULL DEFAULT 'open', scale INTEGER, min INTEGER, max INTEGER,"
		" nvns INTEGER, weight REAL, submitted_s REAL, started_s REAL, ended_s REAL,"
		" deadline_s REAL, steps INTEGER, done INTEGER, failures INTEGER, leases INTEGER,"
		" exit INTEGER, cancel INTEGER, why TEXT, rates TEXT);"
		"CREATE INDEX IF NOT EXISTS job_state ON job (state, id);"
		"CREATE INDEX IF NOT EXISTS job_name ON job (name, id);"
		"CREATE INDEX IF NOT EXISTS job_run ON job (run, id);"
		"CREATE TABLE IF NOT EXISTS lease (job INTEGER PRIMARY KEY, number INTEGER NOT NULL,"
		" epoch INTEGER NOT NULL, state TEXT NOT NULL, over INTEGER NOT NULL,"
		" since_s REAL NOT NULL, until_s REAL NOT NULL, devices TEXT NOT NULL);"
		"CREATE TABLE IF NOT EXISTS event (number INTEGER PRIMARY KEY AUTOINCREMENT,"
		" at_s REAL NOT NULL, t_ms INTEGER NOT NULL, kind TEXT NOT NULL, job INTEGER NOT NULL,"
		" text TEXT NOT NULL);"
		"CREATE INDEX IF NOT EXISTS event_job ON event (job, number);"
		"CREATE TABLE IF NOT EXISTS ordered (job INTEGER PRIMARY KEY, hash TEXT NOT NULL);"
		/* of version 2; a job of an older store has no row, and no terms */
		"CREATE TABLE IF NOT EXISTS terms (job INTEGER PRIMARY KEY, held INTEGER NOT NULL,"
		" timeout INTEGER NOT NULL, ran_s REAL NOT NULL, from_s REAL NOT NULL,"
		" limit_s REAL NOT NULL, expect_s REAL NOT NULL, array INTEGER NOT NULL,"
		" place INTEGER NOT NULL, at_once INTEGER NOT NULL, runs_after TEXT NOT NULL);"
		"CREATE TABLE IF NOT EXISTS owned (job INTEGER PRIMARY KEY, uid INTEGER NOT NULL,"
		" gid INTEGER NOT NULL);"
		"CREATE INDEX IF NOT EXISTS owned_uid ON owned (uid, job);"
		"CREATE TABLE IF NOT EXISTS placed (job INTEGER PRIMARY KEY, name TEXT NOT NULL);"
		"CREATE TABLE IF NOT EXISTS billed (job INTEGER PRIMARY KEY, name TEXT NOT NULL);"
		"CREATE TABLE IF NOT EXISTS token (id INTEGER PRIMARY KEY AUTOINCREMENT,"
		" hash TEXT NOT NULL UNIQUE, user TEXT NOT NULL, uid INTEGER NOT NULL,"
		" made_s REAL NOT NULL, until_s REAL NOT NULL);"
		"CREATE TABLE IF NOT EXISTS number (name TEXT PRIMARY KEY, value REAL NOT NULL);"
		"CREATE TABLE IF NOT EXISTS word (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
};

enum hd_err hd_jobs_write(struct hd_jobs *s, int which, struct hd_diag *diag)
{
	int code = sqlite3_step(s->ask[which]);

	sqlite3_reset(s->ask[which]);
	sqlite3_clear_bindings(s->ask[which]);
	return code == SQLITE_DONE ? HD_OK : hd_db_fail(&s->db, code, "write", diag);
}

enum hd_err hd_jobs_end(struct hd_jobs *s, sqlite3_stmt *ask, enum hd_err err, int code, struct hd_diag *diag)
{
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

/* ---- opening ---- */

static enum hd_err prepare(struct hd_jobs *s, struct hd_diag *diag)
{
	static const char *const text[] = {
#define X(id, text) text,
		ASKS(X)
#undef X
	};

	for (int i = 0; i < NASKS; i++) {
		int code = sqlite3_prepare_v3(s->db.at, text[i], -1, SQLITE_PREPARE_PERSISTENT, &s->ask[i],
			NULL);
		if (code)
			return hd_db_fail(&s->db, code, text[i], diag);
	}
	int64_t n = 0;
	enum hd_err err = hd_db_number(&s->db, "SELECT coalesce(max(id), 0) FROM job", &n, diag);
	s->last = (uint64_t)n;
	if (!err)
		err = hd_db_number(&s->db, "SELECT coalesce(max(number), 0) FROM event", &n, diag);
	s->last_event = (uint64_t)n;
	return err ? err : hd_jobs_drop_old_events(s, diag);
}

enum hd_err hd_jobs_open(struct hd_jobs **jobs, const char *path, const struct hd_dispatch_type *type,
	uint32_t ntypes, struct hd_diag *diag)
{
	struct hd_jobs *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the store of jobs");
	*s = (struct hd_jobs){ .type = type, .ntypes = ntypes };
	for (uint32_t t = 0; t < ntypes; t++)
		s->first_device[t + 1] = s->first_device[t] + type[t].n;
	enum hd_err err = hd_db_open(&s->db, path, &hd_jobs_kind, diag);
	if (!err)
		err = prepare(s, diag);
	if (err)
		hd_jobs_close(s);
	else
		*jobs = s;
	return err;
}

void hd_jobs_close(struct hd_jobs *s)
{
	if (!s)
		return;
	for (int i = 0; i < NASKS; i++)
		sqlite3_finalize(s->ask[i]);
	hd_db_close(&s->db);
	hd_free(s);
}

enum hd_err hd_jobs_begin(struct hd_jobs *s, struct hd_diag *diag) { return hd_db_run(&s->db,
	"BEGIN IMMEDIATE", diag); }

enum hd_err hd_jobs_commit(struct hd_jobs *s, struct hd_diag *diag)
{
	int error = HD_FAILPOINT(JOBS_COMMIT_BEFORE);
	enum hd_err err = error ? hd_fail_errno(diag, error, "commit", "the store of a scheduler") :
		hd_db_run(&s->db, "COMMIT", diag);

	if (!err)
		(void)HD_FAILPOINT(JOBS_COMMIT_AFTER);
	return err;
}

void hd_jobs_rollback(struct hd_jobs *s)
{
	if (!sqlite3_get_autocommit(s->db.at))
		(void)!hd_db_run(&s->db, "ROLLBACK", NULL);
}

uint64_t hd_jobs_last(const struct hd_jobs *s) { return s->last; }
uint64_t hd_jobs_last_event(const struct hd_jobs *s) { return s->last_event; }

/* ---- copies ---- */

enum hd_err hd_jobs_copy(struct hd_jobs *s, const char *to, struct hd_diag *diag) { return hd_db_copy(&s->db,
	to, diag); }

enum hd_err hd_jobs_fill(struct hd_jobs *s, const char *from, struct hd_diag *diag)
{
	int64_t n = 0;

	if (s->last || s->last_event)
		return hd_fail(diag, HD_E_EXISTS,
			"%s has jobs: move it away, with its -wal, and what is restored takes its place",
			sqlite3_db_filename(s->db.at, "main"));
	enum hd_err err = hd_db_fill(&s->db, from, diag);
	if (!err)
		err = hd_db_number(&s->db, "SELECT coalesce(max(id), 0) FROM job", &n, diag);
	s->last = (uint64_t)n;
	if (!err)
		err = hd_db_number(&s->db, "SELECT coalesce(max(number), 0) FROM event", &n, diag);
	s->last_event = (uint64_t)n;
	return err;
}
