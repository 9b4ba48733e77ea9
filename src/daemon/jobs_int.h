/* jobs_int.h -- what the files of the store of jobs share; private to them.
 *
 * jobs.c opens the file and says when it is on the disk, jobs_rows.c writes and reads jobs with their leases,
 * jobs_events.c events, jobs_named.c what is found by a name: numbers, words, tokens. All statements are
 * prepared once, when the store is opened: the table below is all that is ever asked. A function that runs a
 * statement leaves it reset and without bindings. */
#ifndef HD_DAEMON_JOBS_INT_H
#define HD_DAEMON_JOBS_INT_H

#include "driver/db.h"
#include "daemon/jobs.h"

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

/* Runs a statement that writes and answers nothing. */
HD_MUST_USE enum hd_err hd_jobs_write(struct hd_jobs *s, int which, struct hd_diag *diag);
/* Of a statement that answers rows, after its last step, which returned `code`; err != HD_OK: what a reader
 * of a row said, and that counts. */
HD_MUST_USE enum hd_err hd_jobs_end(struct hd_jobs *s, sqlite3_stmt *ask, enum hd_err err, int code,
	struct hd_diag *diag);
/* jobs_events.c: those that are older than the newest HD_JOBS_EVENTS. */
HD_MUST_USE enum hd_err hd_jobs_drop_old_events(struct hd_jobs *s, struct hd_diag *diag);

static inline void hd_jobs_bind_text(sqlite3_stmt *ask, int at, const char *text)
{
	sqlite3_bind_text(ask, at, text, -1, SQLITE_TRANSIENT);
}

/* "" where there is none; holds until the statement's next step. */
static inline const char *hd_jobs_text_of(sqlite3_stmt *ask, int at)
{
	const char *text = (const char *)sqlite3_column_text(ask, at);

	return text ? text : "";
}

#endif
