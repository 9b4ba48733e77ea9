/* jobs.h -- stored state of a scheduler: jobs, leases, events, in one SQLite file.
 *
 * The daemon stores what scheduler/dispatch.h decided before it acts, and begins from it when it starts
 * again; users' questions are answered from it.
 *
 * 1. hd_jobs_commit() returns after everything since hd_jobs_begin() is on the disk, all of it or none (WAL,
 *    synchronous = FULL).
 * 2. One process at a time, as in store.h: a second opener gets HD_E_AGAIN at once.
 * 3. A file that is not ours, newer, or damaged is HD_E_INTEGRITY and stays as it is.
 * 4. Devices and types are stored by name, so pools may grow or be listed otherwise at the next start. A
 *    lease of a device that is no more is HD_E_INVAL.
 * 5. A store of version 1 has no terms of jobs (scheduler/terms.h). Opened here it becomes one of version 2,
 *    whose jobs have none; the older program refuses it from then on, since it would run jobs that are held.
 *    Windows (scheduler/window.h) are stored as words.
 * 6. The newest HD_JOBS_EVENTS events are kept, and less than 256 older ones; jobs that are over stay.
 *
 * Ownership: open/close; what a callback is shown holds until it returns. Threads: one. Writes block for
 * an fsync at commit. */
#ifndef HD_DAEMON_JOBS_H
#define HD_DAEMON_JOBS_H

#include "base/hash.h"
#include "sys/account.h"
#include "scheduler/dispatch.h"

enum { HD_JOBS_EVENTS = 200000, HD_JOBS_NAME = 64, HD_JOBS_KEY = 80, HD_JOBS_RUN = 512, HD_JOBS_DIGEST = 40 };

/* What of a job never changes but for its digest. */
struct hd_jobs_card {
	uint64_t id;
	char name[HD_JOBS_NAME + 1], user[HD_JOBS_NAME + 1], key[HD_JOBS_KEY + 1];        /* key "": none */
	char run[HD_JOBS_RUN], digest[HD_JOBS_DIGEST];                                    /* run: folder */
	/* hash of the order with that key; "": not stored */
	char order[HD_HASH_HEX];
	/* whose it is; HD_NO_UID: of a scheduler without users, or from before it had them. Set where `user`
	 * is; of all zeros it is root's */
	uint32_t uid, gid;
	char partition[HD_PARTITION_NAME + 1];    /* "": of a scheduler without any */
	char account[HD_JOBS_NAME + 1];           /* that it was handed in for; "": none (users.h, rule 6) */
};

/* job 0: of the cluster */
struct hd_jobs_event { uint64_t number, job; double at_s; int64_t t_ms; const char *kind, *text; };

struct hd_jobs;
struct hd_db_kind;

/* `type`: sorted by name, borrowed. */
HD_MUST_USE enum hd_err hd_jobs_open(struct hd_jobs **jobs, const char *path,
	const struct hd_dispatch_type *type, uint32_t ntypes, struct hd_diag *diag);
/* takes NULL; what was begun and not committed is lost */
void hd_jobs_close(struct hd_jobs *jobs);

HD_MUST_USE enum hd_err hd_jobs_begin(struct hd_jobs *jobs, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_commit(struct hd_jobs *jobs, struct hd_diag *diag);
void hd_jobs_rollback(struct hd_jobs *jobs);                  /* also when nothing was begun */

/* Between begin and commit. */
/* before its row */
HD_MUST_USE enum hd_err hd_jobs_put_card(struct hd_jobs *jobs, const struct hd_jobs_card *card,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_row(struct hd_jobs *jobs, const struct hd_dispatch_job *row,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_lease(struct hd_jobs *jobs, const struct hd_dispatch_lease *lease,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_digest(struct hd_jobs *jobs, uint64_t id, const char *digest,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_event(struct hd_jobs *jobs, const struct hd_jobs_event *event,
	uint64_t *number, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_number(struct hd_jobs *jobs, const char *name, double value,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_put_word(struct hd_jobs *jobs, const char *name, const char *value,
	struct hd_diag *diag);
/* also when there is none */
HD_MUST_USE enum hd_err hd_jobs_drop_word(struct hd_jobs *jobs, const char *name, struct hd_diag *diag);

/* A named number; HD_E_NOTFOUND. */
HD_MUST_USE enum hd_err hd_jobs_get_number(struct hd_jobs *jobs, const char *name, double *value,
	struct hd_diag *diag);
/* A named text; HD_E_NOTFOUND, then `value` is "". One that is longer than `cap` is cut. */
HD_MUST_USE enum hd_err hd_jobs_get_word(struct hd_jobs *jobs, const char *name, char *value, size_t cap,
	struct hd_diag *diag);
/* The words whose names begin so, by name; `each` is shown what follows the prefix, and changes none. */
HD_MUST_USE enum hd_err hd_jobs_words(struct hd_jobs *jobs, const char *prefix,
	enum hd_err (*each)(void *user, const char *name, const char *value, struct hd_diag *diag),
	void *user, struct hd_diag *diag);
/* HD_E_NOTFOUND; card, row, lease may be NULL; a job without a lease has one that is RELEASED. */
HD_MUST_USE enum hd_err hd_jobs_get(struct hd_jobs *jobs, uint64_t id, struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_dispatch_lease *lease,
	struct hd_diag *diag);
/* The youngest of that name, the one of that key, the youngest in that run, the youngest in it that is done;
 * HD_E_NOTFOUND. */
HD_MUST_USE enum hd_err hd_jobs_by_name(struct hd_jobs *jobs, const char *name, uint64_t *id,
	struct hd_diag *diag);
/* The youngest of that name with an id below that. */
HD_MUST_USE enum hd_err hd_jobs_by_name_below(struct hd_jobs *jobs, uint64_t below, const char *name,
	uint64_t *id, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_by_key(struct hd_jobs *jobs, const char *key, uint64_t *id,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_by_run(struct hd_jobs *jobs, const char *run, uint64_t *id,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_done_of_run(struct hd_jobs *jobs, const char *run, uint64_t *id,
	struct hd_diag *diag);
uint64_t hd_jobs_last(const struct hd_jobs *jobs);            /* id of the youngest; 0: none */
uint64_t hd_jobs_last_event(const struct hd_jobs *jobs);

typedef enum hd_err hd_jobs_each(void *user, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, const struct hd_dispatch_lease *lease,
	struct hd_diag *diag);
/* Ids above `after`, at most `limit`, ascending. state NULL: all; "live": open, or with a lease; else of
 * enum hd_dispatch_state. */
HD_MUST_USE enum hd_err hd_jobs_list(struct hd_jobs *jobs, const char *state, uint64_t after, uint32_t limit,
	hd_jobs_each *each, void *user,
	struct hd_diag *diag);
/* The same of one account's jobs alone; HD_NO_UID: of all. */
HD_MUST_USE enum hd_err hd_jobs_list_of(struct hd_jobs *jobs, uint32_t uid, const char *state, uint64_t after,
	uint32_t limit, hd_jobs_each *each, void *user, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_by_name_of(struct hd_jobs *jobs, uint32_t uid, const char *name, uint64_t *id,
	struct hd_diag *diag);
/* Events of one account's jobs, HD_NO_UID: of all; cluster: and those of no job. */
HD_MUST_USE enum hd_err hd_jobs_events_of(struct hd_jobs *jobs, uint32_t uid, bool cluster, uint64_t after,
	uint32_t limit, uint64_t job,
	enum hd_err (*each)(void *user, const struct hd_jobs_event *event, struct hd_diag *diag), void *user,
	struct hd_diag *diag);
uint32_t hd_jobs_owner(struct hd_jobs *jobs, uint64_t id);    /* HD_NO_UID: none, or not known */

/* ---- tokens ---- */

/* until_s: since 1970; user: of users.yaml */
/* uid: of the user that it was made for; another uid that has the name since is not that user */
struct hd_jobs_token { int64_t id; uint32_t uid; double made_s, until_s; char user[HD_JOBS_NAME + 1]; };
/* `hash`: of the token's text, which is not stored. Each is a transaction of its own. */
HD_MUST_USE enum hd_err hd_jobs_put_token(struct hd_jobs *jobs, const char *hash,
	struct hd_jobs_token *token, struct hd_diag *diag);
/* HD_E_NOTFOUND */
HD_MUST_USE enum hd_err hd_jobs_get_token(struct hd_jobs *jobs, const char *hash,
	struct hd_jobs_token *token, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_jobs_drop_token(struct hd_jobs *jobs, int64_t id, struct hd_diag *diag);
/* All, by id. */
HD_MUST_USE enum hd_err hd_jobs_tokens(struct hd_jobs *jobs, void (*each)(void *user,
	const struct hd_jobs_token *token), void *user, struct hd_diag *diag);

/* n[state]; leased[state of lease] of open jobs. */
HD_MUST_USE enum hd_err hd_jobs_count(struct hd_jobs *jobs, uint64_t n[HD_DISPATCH_NSTATES],
	uint64_t leased[HD_LEASE_NSTATES], struct hd_diag *diag);
/* Jobs of that account that are not over. */
HD_MUST_USE enum hd_err hd_jobs_count_open(struct hd_jobs *jobs, uint32_t uid, uint64_t *n,
	struct hd_diag *diag);
/* Copies, and what they are made of (backup.h). Without types (ntypes 0) no lease can be read. */
extern const struct hd_db_kind hd_jobs_kind;
/* Of one instant between two commits, to a file that is not there (driver/db.h, rule 4). */
HD_MUST_USE enum hd_err hd_jobs_copy(struct hd_jobs *jobs, const char *to, struct hd_diag *diag);
/* From a copy; HD_E_EXISTS: there are jobs or events already. */
HD_MUST_USE enum hd_err hd_jobs_fill(struct hd_jobs *jobs, const char *from, struct hd_diag *diag);
struct hd_jobs_run { uint64_t id; bool open; uint32_t leases; const char *run; };
/* By id; `each` changes nothing. */
HD_MUST_USE enum hd_err hd_jobs_runs(struct hd_jobs *jobs,
	enum hd_err (*each)(void *user, const struct hd_jobs_run *run, struct hd_diag *diag), void *user,
	struct hd_diag *diag);
/* A job that had `leases` while its store knew nothing of it, and has none now; digest not "": it is done,
 * with that and all its steps. Between begin and commit. */
HD_MUST_USE enum hd_err hd_jobs_put_ran(struct hd_jobs *jobs, uint64_t id, uint32_t leases, uint64_t step,
	const char *digest, struct hd_diag *diag);
/* An event of the cluster, with a number above `above` and above all that there are; the next ones follow it.
 * Between begin and commit. */
HD_MUST_USE enum hd_err hd_jobs_put_first(struct hd_jobs *jobs, uint64_t above, int64_t t_ms,
	const char *kind, const char *text, struct hd_diag *diag);
/* Events above `after`, at most `limit`; job 0: of all. */
HD_MUST_USE enum hd_err hd_jobs_events(struct hd_jobs *jobs, uint64_t after, uint32_t limit, uint64_t job,
	enum hd_err (*each)(void *user, const struct hd_jobs_event *event, struct hd_diag *diag), void *user,
	struct hd_diag *diag);

#endif
