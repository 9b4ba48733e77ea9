#include "daemon/jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "driver/db.h"

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

#define COLUMNS "j.id, j.name, j.user, coalesce(j.key, ''), j.run, j.digest, j.state, j.scale, j.min, " \
	"j.max, j.nvns, j.weight, j.submitted_s, j.started_s, j.ended_s, j.deadline_s, j.steps, j.done, " \
	"j.failures, j.leases, j.exit, j.cancel, j.why, j.rates, l.number, l.epoch, l.state, l.over, " \
	"l.since_s, l.until_s, l.devices, coalesce(o.hash, ''), t.held, t.timeout, t.ran_s, t.from_s, " \
	"t.limit_s, t.expect_s, t.array, t.place, t.at_once, t.runs_after, w.uid, w.gid, " \
	"coalesce(p.name, ''), coalesce(b.name, '') FROM job j " \
	"LEFT JOIN lease l ON l.job = j.id LEFT JOIN ordered o ON o.job = j.id " \
	"LEFT JOIN terms t ON t.job = j.id LEFT JOIN owned w ON w.job = j.id " \
	"LEFT JOIN placed p ON p.job = j.id LEFT JOIN billed b ON b.job = j.id "
#define OF_UID "AND (?4 IS NULL OR w.uid = ?4) "

/*        id          text */
#define ASKS(X) \
	X(CARD,     "INSERT INTO job (id, name, user, key, run) VALUES (?, ?, ?, ?, ?)") \
	X(ORDERED,  "INSERT INTO ordered (job, hash) VALUES (?, ?)") \
	X(OWNED,    "INSERT INTO owned (job, uid, gid) VALUES (?, ?, ?)") \
	X(PLACED,   "INSERT INTO placed (job, name) VALUES (?, ?)") \
	X(BILLED,   "INSERT INTO billed (job, name) VALUES (?, ?)") \
	X(OWNER,    "SELECT uid FROM owned WHERE job = ?") \
	X(TOKEN,    "INSERT INTO token (hash, user, uid, made_s, until_s) VALUES (?, ?, ?, ?, ?)") \
	X(TOKEN_OF, "SELECT id, user, made_s, until_s, uid FROM token WHERE hash = ?") \
	X(TOKENS,   "SELECT id, user, made_s, until_s, uid FROM token ORDER BY id") \
	X(UNTOKEN,  "DELETE FROM token WHERE id = ?") \
	X(ROW,      "UPDATE job SET state = ?, scale = ?, min = ?, max = ?, nvns = ?, weight = ?, submitted_s = ?, started_s = ?, ended_s = ?, " \
		    "deadline_s = ?, steps = ?, done = ?, failures = ?, leases = ?, exit = ?, cancel = ?, " \
		    "why = ?, rates = ? WHERE id = ?") \
	X(TERMS,    "INSERT OR REPLACE INTO terms (job, held, timeout, ran_s, from_s, limit_s, expect_s, array, place, at_once, " \
		    "runs_after) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	X(LEASE,    "INSERT INTO lease (job, number, epoch, state, over, since_s, until_s, devices) VALUES (?, ?, ?, ?, ?, ?, ?, ?) " \
		    "ON CONFLICT (job) DO UPDATE SET number = excluded.number, epoch = excluded.epoch, " \
		    "state = excluded.state, over = excluded.over, " \
		    "since_s = excluded.since_s, until_s = excluded.until_s, devices = excluded.devices") \
	X(UNLEASE,  "DELETE FROM lease WHERE job = ?") \
	X(DIGEST,   "UPDATE job SET digest = ? WHERE id = ?") \
	X(EVENT,    "INSERT INTO event (at_s, t_ms, kind, job, text) VALUES (?, ?, ?, ?, ?)") \
	X(EVENT_AT, "INSERT INTO event (number, at_s, t_ms, kind, job, text) VALUES (?, coalesce((SELECT value FROM number " \
		    "WHERE name = 'now_s'), 0), ?, ?, 0, ?)") \
	X(OLD,      "DELETE FROM event WHERE number <= ?") \
	X(NUMBER,   "INSERT INTO number (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value") \
	X(NUMBER_OF, "SELECT value FROM number WHERE name = ?") \
	X(WORD,     "INSERT INTO word (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value") \
	X(WORD_OF,  "SELECT value FROM word WHERE name = ?") \
	X(UNWORD,   "DELETE FROM word WHERE name = ?") \
	X(WORDS,    "SELECT name, value FROM word WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name") \
	X(GET,      "SELECT " COLUMNS "WHERE j.id = ?") \
	X(BY_NAME,  "SELECT max(id) FROM job WHERE name = ?") \
	X(BY_NAME_OF, "SELECT max(j.id) FROM job j JOIN owned w ON w.job = j.id " \
		    "WHERE j.name = ? AND w.uid = ?") \
	X(BY_NAME_BELOW, "SELECT max(id) FROM job WHERE name = ? AND id < ?") \
	X(BY_KEY,   "SELECT max(id) FROM job WHERE key = ?") \
	X(BY_RUN,   "SELECT max(id) FROM job WHERE run = ?") \
	X(DONE_OF_RUN, "SELECT max(id) FROM job WHERE run = ? AND state = 'done'") \
	X(ALL,      "SELECT " COLUMNS "WHERE j.id > ?1 " OF_UID "ORDER BY j.id LIMIT ?2") \
	X(LIVE,     "SELECT " COLUMNS "WHERE (j.state = 'open' OR l.job IS NOT NULL) AND j.id > ?1 " OF_UID "ORDER BY j.id LIMIT ?2") \
	X(OF_STATE, "SELECT " COLUMNS "WHERE j.state = ?3 AND j.id > ?1 " OF_UID "ORDER BY j.id LIMIT ?2") \
	X(RUNS,     "SELECT id, state, run, leases FROM job ORDER BY id") \
	X(RAN,      "UPDATE job SET leases = max(leases, ?2), done = max(done, ?3) WHERE id = ?1") \
	X(RAN_OUT,  "UPDATE job SET state = 'done', exit = 0, digest = ?2, started_s = CASE WHEN started_s < 0 THEN " \
		    "submitted_s ELSE started_s END, ended_s = coalesce((SELECT value FROM number " \
		    "WHERE name = 'now_s'), submitted_s) WHERE id = ?1 AND state = 'open'") \
	X(COUNT,    "SELECT state, count(*) FROM job GROUP BY state") \
	X(COUNT_OPEN, "SELECT count(*) FROM owned w JOIN job j ON j.id = w.job WHERE w.uid = ? AND j.state = 'open'") \
	X(COUNT_LEASES, "SELECT l.state, count(*) FROM lease l JOIN job j ON j.id = l.job WHERE j.state = 'open' GROUP BY l.state") \
	X(EVENTS,   "SELECT number, at_s, t_ms, kind, job, text FROM event WHERE number > ?1 " \
	  "AND CASE WHEN job = 0 THEN ?5 ELSE ?4 IS NULL OR " \
	  "job IN (SELECT job FROM owned WHERE uid = ?4) END " \
	  "ORDER BY number LIMIT ?2") \
	X(EVENTS_OF, "SELECT number, at_s, t_ms, kind, job, text FROM event WHERE job = ?3 AND number > ?1 " \
	  "AND (?4 IS NULL OR job IN (SELECT job FROM owned WHERE uid = ?4)) ORDER BY number LIMIT ?2")

enum { DROP_EACH = 256 };                 /* old events go so many at a time */

enum {
#define X(id, text) ASK_##id,
	ASKS(X)
#undef X
	NASKS
};

struct hd_jobs {
	struct hd_db db;
	sqlite3_stmt *ask[NASKS];
	const struct hd_dispatch_type *type;
	uint32_t ntypes, first_device[HD_DISPATCH_TYPES + 1];
	uint64_t last, last_event;
};

static enum hd_err put(struct hd_jobs *s, int which, struct hd_diag *diag)
{
	int code = sqlite3_step(s->ask[which]);

	sqlite3_reset(s->ask[which]);
	sqlite3_clear_bindings(s->ask[which]);
	return code == SQLITE_DONE ? HD_OK : hd_db_fail(&s->db, code, "write", diag);
}

static enum hd_err drop_old_events(struct hd_jobs *s, struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_OLD], 1, (int64_t)s->last_event - HD_JOBS_EVENTS);
	return put(s, ASK_OLD, diag);
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
	return err ? err : drop_old_events(s, diag);
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

/* ---- writing ---- */

static void bind_text(sqlite3_stmt *ask, int at, const char *text) { sqlite3_bind_text(ask, at, text, -1,
	SQLITE_TRANSIENT); }

static enum hd_err put_name(struct hd_jobs *s, int which, uint64_t job, const char *name,
	struct hd_diag *diag)
{
	if (!*name)
		return HD_OK;
	sqlite3_bind_int64(s->ask[which], 1, (int64_t)job);
	bind_text(s->ask[which], 2, name);
	return put(s, which, diag);
}

enum hd_err hd_jobs_put_card(struct hd_jobs *s, const struct hd_jobs_card *card, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_CARD];

	sqlite3_bind_int64(ask, 1, (int64_t)card->id);
	bind_text(ask, 2, card->name);
	bind_text(ask, 3, card->user);
	if (card->key[0])
		bind_text(ask, 4, card->key);
	bind_text(ask, 5, card->run);
	enum hd_err err = put(s, ASK_CARD, diag);
	if (!err && card->id > s->last)
		s->last = card->id;
	if (!err && card->uid != HD_NO_UID) {
		sqlite3_bind_int64(s->ask[ASK_OWNED], 1, (int64_t)card->id);
		sqlite3_bind_int64(s->ask[ASK_OWNED], 2, card->uid);
		sqlite3_bind_int64(s->ask[ASK_OWNED], 3, card->gid);
		err = put(s, ASK_OWNED, diag);
	}
	if (!err)
		err = put_name(s, ASK_PLACED, card->id, card->partition, diag);
	if (!err)
		err = put_name(s, ASK_BILLED, card->id, card->account, diag);
	return err ? err : put_name(s, ASK_ORDERED, card->id, card->order, diag);
}

static enum hd_err put_terms(struct hd_jobs *s, const struct hd_dispatch_job *r, struct hd_diag *diag)
{
	const struct hd_job_terms *t = &r->terms;
	const double real[] = { r->ran_s, r->from_s, t->limit_s, t->expect_s };
	const int64_t count[] = { (int64_t)t->array, t->index, t->at_once };
	sqlite3_stmt *ask = s->ask[ASK_TERMS];
	char after[HD_TERMS_TEXT];
	int at = 1;

	sqlite3_bind_int64(ask, at++, (int64_t)r->id);
	sqlite3_bind_int64(ask, at++, t->held);
	sqlite3_bind_int64(ask, at++, r->timeout);
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		sqlite3_bind_double(ask, at++, real[i]);
	for (size_t i = 0; i < sizeof count / sizeof *count; i++)
		sqlite3_bind_int64(ask, at++, count[i]);
	hd_terms_put_after(t, after);
	bind_text(ask, at, after);
	return put(s, ASK_TERMS, diag);
}

/* An INFINITY comes back as one; SQLite knows no NaN. */
enum hd_err hd_jobs_put_row(struct hd_jobs *s, const struct hd_dispatch_job *r, struct hd_diag *diag)
{
	const int64_t whole[] = { r->scale, r->min, r->max, r->nvns };
	const double real[] = { r->weight, r->submitted_s, r->started_s, r->ended_s, r->deadline_s };
	const int64_t count[] = { (int64_t)r->steps, (int64_t)r->done, r->failures, r->leases, r->exit,
		r->cancel };
	sqlite3_stmt *ask = s->ask[ASK_ROW];
	char buf[HD_DISPATCH_TYPES * 160];
	struct hd_text rates;
	int at = 1;

	bind_text(ask, at++, hd_dispatch_state_name(r->state));
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		sqlite3_bind_int64(ask, at++, whole[i]);
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		sqlite3_bind_double(ask, at++, real[i]);
	for (size_t i = 0; i < sizeof count / sizeof *count; i++)
		sqlite3_bind_int64(ask, at++, count[i]);
	bind_text(ask, at++, r->why);
	hd_text_fixed(&rates, buf, sizeof buf);
	for (uint32_t t = 0; t < s->ntypes; t++)
		hd_text_addf(&rates, "%s %.17g %.17g %d\n", s->type[t].name, r->rate[t].steps_s,
			r->rate[t].outlier, (int)r->rate[t].from);
	bind_text(ask, at++, buf);
	sqlite3_bind_int64(ask, at, (int64_t)r->id);
	enum hd_err err = put(s, ASK_ROW, diag);
	return err ? err : put_terms(s, r, diag);
}

enum hd_err hd_jobs_put_lease(struct hd_jobs *s, const struct hd_dispatch_lease *l, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[l->state == HD_LEASE_RELEASED ? ASK_UNLEASE : ASK_LEASE];
	char buf[HD_DISPATCH_SET * 80];
	struct hd_text devices;

	sqlite3_bind_int64(ask, 1, (int64_t)l->job);
	if (l->state == HD_LEASE_RELEASED)
		return put(s, ASK_UNLEASE, diag);
	hd_text_fixed(&devices, buf, sizeof buf);
	hd_text_add(&devices, "");
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t t = 0;
		while (l->device[i] >= s->first_device[t + 1])
			t++;
		hd_text_addf(&devices, "%s %u\n", s->type[t].name, l->device[i] - s->first_device[t]);
	}
	sqlite3_bind_int64(ask, 2, l->number);
	sqlite3_bind_int64(ask, 3, l->epoch);
	bind_text(ask, 4, hd_lease_name(l->state));
	sqlite3_bind_int64(ask, 5, l->over);
	sqlite3_bind_double(ask, 6, l->since_s);
	sqlite3_bind_double(ask, 7, l->until_s);
	bind_text(ask, 8, buf);
	return put(s, ASK_LEASE, diag);
}

enum hd_err hd_jobs_put_digest(struct hd_jobs *s, uint64_t id, const char *digest, struct hd_diag *diag)
{
	bind_text(s->ask[ASK_DIGEST], 1, digest);
	sqlite3_bind_int64(s->ask[ASK_DIGEST], 2, (int64_t)id);
	return put(s, ASK_DIGEST, diag);
}

enum hd_err hd_jobs_put_event(struct hd_jobs *s, const struct hd_jobs_event *e, uint64_t *number,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_EVENT];

	sqlite3_bind_double(ask, 1, e->at_s);
	sqlite3_bind_int64(ask, 2, e->t_ms);
	bind_text(ask, 3, e->kind);
	sqlite3_bind_int64(ask, 4, (int64_t)e->job);
	bind_text(ask, 5, e->text);
	enum hd_err err = put(s, ASK_EVENT, diag);
	if (!err)
		*number = s->last_event = (uint64_t)sqlite3_last_insert_rowid(s->db.at);
	return err || s->last_event % DROP_EACH ? err : drop_old_events(s, diag);
}

enum hd_err hd_jobs_put_number(struct hd_jobs *s, const char *name, double value, struct hd_diag *diag)
{
	bind_text(s->ask[ASK_NUMBER], 1, name);
	sqlite3_bind_double(s->ask[ASK_NUMBER], 2, value);
	return put(s, ASK_NUMBER, diag);
}

enum hd_err hd_jobs_put_word(struct hd_jobs *s, const char *name, const char *value, struct hd_diag *diag)
{
	bind_text(s->ask[ASK_WORD], 1, name);
	bind_text(s->ask[ASK_WORD], 2, value);
	return put(s, ASK_WORD, diag);
}

/* ---- reading ---- */

static const char *text_of(sqlite3_stmt *ask, int at)
{
	const char *text = (const char *)sqlite3_column_text(ask, at);

	return text ? text : "";
}

static enum hd_err damaged(struct hd_jobs *s, uint64_t id, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INTEGRITY, "%s: job %llu: %s is not of this program",
		sqlite3_db_filename(s->db.at, "main"), (unsigned long long)id, what);
}

static uint32_t type_named(const struct hd_jobs *s, const char *name, size_t len)
{
	for (uint32_t t = 0; t < s->ntypes; t++)
		if (strlen(s->type[t].name) == len && !strncmp(s->type[t].name, name, len))
			return t;
	return UINT32_MAX;
}

/* A type that is new since has no rate: it is guessed. */
static bool read_rates(const struct hd_jobs *s, const char *text, struct hd_dispatch_job *r)
{
	for (uint32_t t = 0; t < s->ntypes; t++)
		r->rate[t] = (struct hd_dispatch_rate){ s->type[t].speed * r->scale, -1, HD_RATE_GUESSED };
	for (; *text; text = strchr(text, '\n') + 1) {
		char *end;
		const char *blank = strchr(text, ' ');
		if (!blank || !strchr(blank, '\n'))
			return false;
		uint32_t t = type_named(s, text, (size_t)(blank - text));
		struct hd_dispatch_rate rate = { .steps_s = strtod(blank, &end) };
		rate.outlier = strtod(end, &end);
		long from = strtol(end, &end, 10);
		if (*end != '\n' || from < 0 || from > HD_RATE_MEASURED || !isfinite(rate.steps_s) ||
			rate.steps_s < 0)
			return false;
		rate.from = (enum hd_rate_from)from;
		if (t != UINT32_MAX)
			r->rate[t] = rate;
	}
	return true;
}

static bool state_of(const char *name, enum hd_dispatch_state *state)
{
	for (int k = 0; k < HD_DISPATCH_NSTATES; k++)
		if (!strcmp(name, hd_dispatch_state_name((enum hd_dispatch_state)k))) {
			*state = (enum hd_dispatch_state)k;
			return true;
		}
	return false;
}

/* columns: the first of the lease, the order, the first of the terms, the owner; then partition, account */
enum { LEASE_AT = 24, ORDER_AT = 31, TERMS_AT = 32, OWNER_AT = 42 };

static enum hd_err read_terms(struct hd_jobs *s, sqlite3_stmt *ask, struct hd_dispatch_job *r,
	struct hd_diag *diag)
{
	struct hd_job_terms *t = &r->terms;
	double *const real[] = { &r->ran_s, &r->from_s, &t->limit_s, &t->expect_s };
	uint32_t *const whole[] = { &t->index, &t->at_once };
	int at = TERMS_AT;

	r->from_s = -1;
	if (sqlite3_column_type(ask, at) == SQLITE_NULL)
		return HD_OK;
	t->held = sqlite3_column_int(ask, at++);
	r->timeout = sqlite3_column_int(ask, at++);
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		*real[i] = sqlite3_column_double(ask, at++);
	t->array = (uint64_t)sqlite3_column_int64(ask, at++);
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		*whole[i] = (uint32_t)sqlite3_column_int64(ask, at++);
	return hd_terms_get_after(t, text_of(ask, at), NULL) ? damaged(s, r->id, "what it runs after", diag) :
		HD_OK;
}

static enum hd_err read_job(struct hd_jobs *s, sqlite3_stmt *ask, struct hd_jobs_card *card,
	struct hd_dispatch_job *r, struct hd_diag *diag)
{
	int at = 0;

	*card = (struct hd_jobs_card){ .id = (uint64_t)sqlite3_column_int64(ask, at++) };
	*r = (struct hd_dispatch_job){ .id = card->id };
	snprintf(card->name, sizeof card->name, "%s", text_of(ask, at++));
	snprintf(card->user, sizeof card->user, "%s", text_of(ask, at++));
	snprintf(card->key, sizeof card->key, "%s", text_of(ask, at++));
	snprintf(card->run, sizeof card->run, "%s", text_of(ask, at++));
	snprintf(card->digest, sizeof card->digest, "%s", text_of(ask, at++));
	snprintf(card->order, sizeof card->order, "%s", text_of(ask, ORDER_AT));
	bool owned = sqlite3_column_type(ask, OWNER_AT) != SQLITE_NULL;
	card->uid = owned ? (uint32_t)sqlite3_column_int64(ask, OWNER_AT) : HD_NO_UID;
	card->gid = owned ? (uint32_t)sqlite3_column_int64(ask, OWNER_AT + 1) : HD_NO_UID;
	snprintf(card->partition, sizeof card->partition, "%s", text_of(ask, OWNER_AT + 2));
	snprintf(card->account, sizeof card->account, "%s", text_of(ask, OWNER_AT + 3));
	if (!state_of(text_of(ask, at++), &r->state))
		return damaged(s, r->id, "its state", diag);
	uint32_t *const whole[] = { &r->scale, &r->min, &r->max, &r->nvns };
	double *const real[] = { &r->weight, &r->submitted_s, &r->started_s, &r->ended_s, &r->deadline_s };
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		*whole[i] = (uint32_t)sqlite3_column_int64(ask, at++);
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		*real[i] = sqlite3_column_double(ask, at++);
	r->steps = (uint64_t)sqlite3_column_int64(ask, at++);
	r->done = (uint64_t)sqlite3_column_int64(ask, at++);
	r->failures = (uint32_t)sqlite3_column_int64(ask, at++);
	r->leases = (uint32_t)sqlite3_column_int64(ask, at++);
	r->exit = sqlite3_column_int(ask, at++);
	r->cancel = sqlite3_column_int(ask, at++);
	snprintf(r->why, sizeof r->why, "%s", text_of(ask, at++));
	return read_rates(s, text_of(ask, at), r) ? read_terms(s, ask, r, diag) :
		damaged(s, r->id, "a rate", diag);
}

static enum hd_err read_devices(struct hd_jobs *s, const char *text, struct hd_dispatch_lease *l,
	struct hd_diag *diag)
{
	for (; *text; text = strchr(text, '\n') + 1) {
		const char *blank = strchr(text, ' ');
		char *end = NULL;
		if (!blank || !strchr(blank, '\n') || l->n == HD_DISPATCH_SET)
			return damaged(s, l->job, "its lease", diag);
		uint32_t t = type_named(s, text, (size_t)(blank - text));
		unsigned long v = strtoul(blank, &end, 10);
		if (t == UINT32_MAX || v >= s->type[t].n)
			return hd_fail(diag, HD_E_INVAL,
				"job %llu holds device %.*s-%lu, which no pool has: serve with the pools "
				"that were there",
				(unsigned long long)l->job, (int)(blank - text), text, v);
		uint32_t device = s->first_device[t] + (uint32_t)v, at = l->n++;
		/* ascending, whatever the order of the pools was */
		for (; at && l->device[at - 1] > device; at--)
			l->device[at] = l->device[at - 1];
		l->device[at] = device;
	}
	return HD_OK;
}

static enum hd_err read_lease(struct hd_jobs *s, sqlite3_stmt *ask, struct hd_dispatch_lease *l,
	struct hd_diag *diag)
{
	int at = LEASE_AT, state = 0;

	*l = (struct hd_dispatch_lease){ .job = (uint64_t)sqlite3_column_int64(ask, 0),
		.state = HD_LEASE_RELEASED };
	if (sqlite3_column_type(ask, at) == SQLITE_NULL)
		return HD_OK;
	l->number = (uint32_t)sqlite3_column_int64(ask, at++);
	l->epoch = (uint32_t)sqlite3_column_int64(ask, at++);
	while (state < HD_LEASE_NSTATES && strcmp(text_of(ask, at),
		hd_lease_name((enum hd_lease_state)state)) != 0)
		state++;
	if (state == HD_LEASE_NSTATES)
		return damaged(s, l->job, "the state of its lease", diag);
	l->state = (enum hd_lease_state)state;
	l->over = sqlite3_column_int(ask, ++at);
	l->since_s = sqlite3_column_double(ask, ++at);
	l->until_s = sqlite3_column_double(ask, ++at);
	return read_devices(s, text_of(ask, ++at), l, diag);
}

static enum hd_err read_all(struct hd_jobs *s, sqlite3_stmt *ask, hd_jobs_each *each, void *user, uint32_t *n,
	struct hd_diag *diag)
{
	struct hd_jobs_card card;
	struct hd_dispatch_lease lease;
	struct hd_dispatch_job row;
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	for (*n = 0; !err && (code = sqlite3_step(ask)) == SQLITE_ROW; ++*n) {
		err = read_job(s, ask, &card, &row, diag);
		if (!err)
			err = read_lease(s, ask, &lease, diag);
		if (!err)
			err = each(user, &card, &row, &lease, diag);
	}
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

struct jobs_one { struct hd_jobs_card *card; struct hd_dispatch_job *row; struct hd_dispatch_lease *lease; };

static enum hd_err keep_one(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct jobs_one *one = user;

	(void)diag;
	if (one->card)
		*one->card = *card;
	if (one->row)
		*one->row = *row;
	if (one->lease)
		*one->lease = *lease;
	return HD_OK;
}

enum hd_err hd_jobs_get(struct hd_jobs *s, uint64_t id, struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct jobs_one one = { card, row, lease };
	uint32_t n;

	sqlite3_bind_int64(s->ask[ASK_GET], 1, id > INT64_MAX ? -1 : (int64_t)id);
	enum hd_err err = read_all(s, s->ask[ASK_GET], keep_one, &one, &n, diag);
	return err || n ? err : hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu", (unsigned long long)id);
}

static enum hd_err find(struct hd_jobs *s, int which, const char *text, const char *what, uint64_t *id,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[which];
	enum hd_err err = HD_OK;

	bind_text(ask, 1, text);
	int code = sqlite3_step(ask);
	if (code != SQLITE_ROW)
		err = hd_db_fail(&s->db, code, "read", diag);
	else if (sqlite3_column_type(ask, 0) == SQLITE_NULL)
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no job with the %s \"%.80s\"", what, text);
	else
		*id = (uint64_t)sqlite3_column_int64(ask, 0);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

enum hd_err hd_jobs_by_name(struct hd_jobs *s, const char *name, uint64_t *id,
	struct hd_diag *diag) { return find(s, ASK_BY_NAME, name, "name", id, diag); }

enum hd_err hd_jobs_by_name_of(struct hd_jobs *s, uint32_t uid, const char *name, uint64_t *id,
	struct hd_diag *diag)
{
	if (uid == HD_NO_UID)
		return hd_jobs_by_name(s, name, id, diag);
	sqlite3_bind_int64(s->ask[ASK_BY_NAME_OF], 2, uid);
	return find(s, ASK_BY_NAME_OF, name, "name", id, diag);
}

enum hd_err hd_jobs_by_name_below(struct hd_jobs *s, uint64_t below, const char *name, uint64_t *id,
	struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_BY_NAME_BELOW], 2, below > INT64_MAX ? INT64_MAX : (int64_t)below);
	return find(s, ASK_BY_NAME_BELOW, name, "name", id, diag);
}

enum hd_err hd_jobs_by_key(struct hd_jobs *s, const char *key, uint64_t *id,
	struct hd_diag *diag) { return find(s, ASK_BY_KEY, key, "key", id, diag); }
enum hd_err hd_jobs_by_run(struct hd_jobs *s, const char *run, uint64_t *id,
	struct hd_diag *diag) { return find(s, ASK_BY_RUN, run, "run", id, diag); }
enum hd_err hd_jobs_done_of_run(struct hd_jobs *s, const char *run, uint64_t *id,
	struct hd_diag *diag) { return find(s, ASK_DONE_OF_RUN, run, "run", id, diag); }

/* The row of the one that is called so, for `take`. */
static enum hd_err named(struct hd_jobs *s, int which, const char *name, void (*take)(sqlite3_stmt *, void *),
	void *to, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[which];

	bind_text(ask, 1, name);
	int code = sqlite3_step(ask);
	if (code == SQLITE_ROW)
		take(ask, to);
	enum hd_err err = code == SQLITE_ROW ? HD_OK : code == SQLITE_DONE ? HD_E_NOTFOUND :
		hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

static void take_number(sqlite3_stmt *ask, void *to) { *(double *)to = sqlite3_column_double(ask, 0); }

enum hd_err hd_jobs_get_number(struct hd_jobs *s, const char *name, double *value, struct hd_diag *diag)
{
	return named(s, ASK_NUMBER_OF, name, take_number, value, diag);
}

struct jobs_word { char *at; size_t cap; };

static void take_word(sqlite3_stmt *ask, void *to)
{
	const struct jobs_word *word = to;
	snprintf(word->at, word->cap, "%s", text_of(ask, 0));
}

enum hd_err hd_jobs_get_word(struct hd_jobs *s, const char *name, char *value, size_t cap,
	struct hd_diag *diag)
{
	*value = 0;
	return named(s, ASK_WORD_OF, name, take_word, &(struct jobs_word){ value, cap }, diag);
}

enum hd_err hd_jobs_drop_word(struct hd_jobs *s, const char *name, struct hd_diag *diag)
{
	bind_text(s->ask[ASK_UNWORD], 1, name);
	return put(s, ASK_UNWORD, diag);
}

enum hd_err hd_jobs_words(struct hd_jobs *s, const char *prefix, enum hd_err (*each)(void *user,
	const char *name, const char *value, struct hd_diag *diag), void *user, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_WORDS];
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	bind_text(ask, 1, prefix);
	while (!err && (code = sqlite3_step(ask)) == SQLITE_ROW)
		err = each(user, text_of(ask, 0) + strlen(prefix), text_of(ask, 1), diag);
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

enum hd_err hd_jobs_list(struct hd_jobs *s, const char *state, uint64_t after, uint32_t limit,
	hd_jobs_each *each, void *user, struct hd_diag *diag)
{
	return hd_jobs_list_of(s, HD_NO_UID, state, after, limit, each, user, diag);
}

enum hd_err hd_jobs_list_of(struct hd_jobs *s, uint32_t uid, const char *state, uint64_t after,
	uint32_t limit, hd_jobs_each *each, void *user, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[!state ? ASK_ALL : !strcmp(state, "live") ? ASK_LIVE : ASK_OF_STATE];
	uint32_t n;

	sqlite3_bind_int64(ask, 1, after > INT64_MAX ? INT64_MAX : (int64_t)after);
	sqlite3_bind_int64(ask, 2, limit);
	if (ask == s->ask[ASK_OF_STATE])
		bind_text(ask, 3, state);
	if (uid != HD_NO_UID)
		sqlite3_bind_int64(ask, 4, uid);
	return read_all(s, ask, each, user, &n, diag);
}

enum hd_err hd_jobs_count(struct hd_jobs *s, uint64_t n[HD_DISPATCH_NSTATES],
	uint64_t leased[HD_LEASE_NSTATES], struct hd_diag *diag)
{
	enum hd_dispatch_state state;
	int code;

	memset(n, 0, HD_DISPATCH_NSTATES * sizeof *n);
	memset(leased, 0, HD_LEASE_NSTATES * sizeof *leased);
	while ((code = sqlite3_step(s->ask[ASK_COUNT])) == SQLITE_ROW)
		if (state_of(text_of(s->ask[ASK_COUNT], 0), &state))
			n[state] = (uint64_t)sqlite3_column_int64(s->ask[ASK_COUNT], 1);
	sqlite3_reset(s->ask[ASK_COUNT]);
	while (code == SQLITE_DONE && (code = sqlite3_step(s->ask[ASK_COUNT_LEASES])) == SQLITE_ROW) {
		for (int k = 0; k < HD_LEASE_NSTATES; k++)
			if (!strcmp(text_of(s->ask[ASK_COUNT_LEASES], 0),
				hd_lease_name((enum hd_lease_state)k)))
				leased[k] = (uint64_t)sqlite3_column_int64(s->ask[ASK_COUNT_LEASES], 1);
		code = SQLITE_DONE;
	}
	sqlite3_reset(s->ask[ASK_COUNT_LEASES]);
	return code == SQLITE_DONE ? HD_OK : hd_db_fail(&s->db, code, "count", diag);
}

enum hd_err hd_jobs_count_open(struct hd_jobs *s, uint32_t uid, uint64_t *n, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_COUNT_OPEN];

	sqlite3_bind_int64(ask, 1, uid);
	int code = sqlite3_step(ask);
	*n = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(ask, 0) : 0;
	sqlite3_reset(ask);
	return code == SQLITE_ROW ? HD_OK : hd_db_fail(&s->db, code, "count", diag);
}

enum hd_err hd_jobs_events(struct hd_jobs *s, uint64_t after, uint32_t limit, uint64_t job,
	enum hd_err (*each)(void *user, const struct hd_jobs_event *event, struct hd_diag *diag), void *user,
	struct hd_diag *diag)
{
	return hd_jobs_events_of(s, HD_NO_UID, true, after, limit, job, each, user, diag);
}

enum hd_err hd_jobs_events_of(struct hd_jobs *s, uint32_t uid, bool cluster, uint64_t after, uint32_t limit,
	uint64_t job, enum hd_err (*each)(void *user, const struct hd_jobs_event *event,
		struct hd_diag *diag), void *user,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[job ? ASK_EVENTS_OF : ASK_EVENTS];
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	sqlite3_bind_int64(ask, 1, after > INT64_MAX ? INT64_MAX : (int64_t)after);
	sqlite3_bind_int64(ask, 2, limit);
	if (job)
		sqlite3_bind_int64(ask, 3, job > INT64_MAX ? -1 : (int64_t)job);
	else
		sqlite3_bind_int(ask, 5, cluster);
	if (uid != HD_NO_UID)
		sqlite3_bind_int64(ask, 4, uid);
	while (!err && (code = sqlite3_step(ask)) == SQLITE_ROW) {
		const struct hd_jobs_event e = { .number = (uint64_t)sqlite3_column_int64(ask, 0),
			.at_s = sqlite3_column_double(ask, 1),
			.t_ms = sqlite3_column_int64(ask, 2), .kind = text_of(ask, 3),
			.job = (uint64_t)sqlite3_column_int64(ask, 4), .text = text_of(ask, 5) };
		err = each(user, &e, diag);
	}
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return err;
}

/* ---- whose, and tokens ---- */

uint32_t hd_jobs_owner(struct hd_jobs *s, uint64_t id)
{
	sqlite3_stmt *ask = s->ask[ASK_OWNER];
	uint32_t uid = HD_NO_UID;

	sqlite3_bind_int64(ask, 1, id > INT64_MAX ? -1 : (int64_t)id);
	if (sqlite3_step(ask) == SQLITE_ROW)
		uid = (uint32_t)sqlite3_column_int64(ask, 0);
	sqlite3_reset(ask);
	sqlite3_clear_bindings(ask);
	return uid;
}

static void take_token(sqlite3_stmt *ask, void *to)
{
	struct hd_jobs_token *t = to;

	*t = (struct hd_jobs_token){ .id = sqlite3_column_int64(ask, 0),
		.uid = (uint32_t)sqlite3_column_int64(ask, 4), .made_s = sqlite3_column_double(ask, 2),
		.until_s = sqlite3_column_double(ask, 3) };
	snprintf(t->user, sizeof t->user, "%s", text_of(ask, 1));
}

enum hd_err hd_jobs_put_token(struct hd_jobs *s, const char *hash, struct hd_jobs_token *t,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_TOKEN];

	bind_text(ask, 1, hash);
	bind_text(ask, 2, t->user);
	sqlite3_bind_int64(ask, 3, t->uid);
	sqlite3_bind_double(ask, 4, t->made_s);
	sqlite3_bind_double(ask, 5, t->until_s);
	enum hd_err err = put(s, ASK_TOKEN, diag);
	if (!err)
		t->id = sqlite3_last_insert_rowid(s->db.at);
	return err;
}

enum hd_err hd_jobs_get_token(struct hd_jobs *s, const char *hash, struct hd_jobs_token *t,
	struct hd_diag *diag)
{
	return named(s, ASK_TOKEN_OF, hash, take_token, t, diag);
}

enum hd_err hd_jobs_drop_token(struct hd_jobs *s, int64_t id, struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_UNTOKEN], 1, id);
	return put(s, ASK_UNTOKEN, diag);
}

enum hd_err hd_jobs_tokens(struct hd_jobs *s, void (*each)(void *user, const struct hd_jobs_token *token),
	void *user, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_TOKENS];
	struct hd_jobs_token token;
	int code;

	while ((code = sqlite3_step(ask)) == SQLITE_ROW) {
		take_token(ask, &token);
		each(user, &token);
	}
	enum hd_err err = code == SQLITE_DONE ? HD_OK : hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	return err;
}

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

enum hd_err hd_jobs_runs(struct hd_jobs *s,
	enum hd_err (*each)(void *user, const struct hd_jobs_run *run, struct hd_diag *diag), void *user,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_RUNS];
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	while (!err && (code = sqlite3_step(ask)) == SQLITE_ROW) {
		const struct hd_jobs_run run = { .id = (uint64_t)sqlite3_column_int64(ask, 0),
			.open = !strcmp(text_of(ask, 1), hd_dispatch_state_name(HD_DISPATCH_OPEN)),
			.run = text_of(ask, 2), .leases = (uint32_t)sqlite3_column_int64(ask, 3) };
		err = each(user, &run, diag);
	}
	if (!err && code != SQLITE_DONE)
		err = hd_db_fail(&s->db, code, "read", diag);
	sqlite3_reset(ask);
	return err;
}

enum hd_err hd_jobs_put_ran(struct hd_jobs *s, uint64_t id, uint32_t leases, uint64_t step,
	const char *digest, struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_RAN], 1, (int64_t)id);
	sqlite3_bind_int64(s->ask[ASK_RAN], 2, leases);
	sqlite3_bind_int64(s->ask[ASK_RAN], 3, (int64_t)step);
	enum hd_err err = put(s, ASK_RAN, diag);
	sqlite3_bind_int64(s->ask[ASK_UNLEASE], 1, (int64_t)id);
	err = err ? err : put(s, ASK_UNLEASE, diag);
	if (err || !*digest)
		return err;
	sqlite3_bind_int64(s->ask[ASK_RAN_OUT], 1, (int64_t)id);
	bind_text(s->ask[ASK_RAN_OUT], 2, digest);
	return put(s, ASK_RAN_OUT, diag);
}

enum hd_err hd_jobs_put_first(struct hd_jobs *s, uint64_t above, int64_t t_ms, const char *kind,
	const char *text, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_EVENT_AT];
	uint64_t number = (above > s->last_event ? above : s->last_event) + 1;

	sqlite3_bind_int64(ask, 1, (int64_t)number);
	sqlite3_bind_int64(ask, 2, t_ms);
	bind_text(ask, 3, kind);
	bind_text(ask, 4, text);
	enum hd_err err = put(s, ASK_EVENT_AT, diag);
	if (!err)
		s->last_event = number;
	return err;
}
