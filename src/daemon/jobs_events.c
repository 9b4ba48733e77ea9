#include "daemon/jobs_int.h"

enum { DROP_EACH = 256 };                 /* old events go so many at a time */

enum hd_err hd_jobs_drop_old_events(struct hd_jobs *s, struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_OLD], 1, (int64_t)s->last_event - HD_JOBS_EVENTS);
	return hd_jobs_write(s, ASK_OLD, diag);
}

enum hd_err hd_jobs_put_event(struct hd_jobs *s, const struct hd_jobs_event *e, uint64_t *number,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_EVENT];

	sqlite3_bind_double(ask, 1, e->at_s);
	sqlite3_bind_int64(ask, 2, e->t_ms);
	hd_jobs_bind_text(ask, 3, e->kind);
	sqlite3_bind_int64(ask, 4, (int64_t)e->job);
	hd_jobs_bind_text(ask, 5, e->text);
	enum hd_err err = hd_jobs_write(s, ASK_EVENT, diag);
	if (!err)
		*number = s->last_event = (uint64_t)sqlite3_last_insert_rowid(s->db.at);
	return err || s->last_event % DROP_EACH ? err : hd_jobs_drop_old_events(s, diag);
}

enum hd_err hd_jobs_put_first(struct hd_jobs *s, uint64_t above, int64_t t_ms, const char *kind,
	const char *text, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_EVENT_AT];
	uint64_t number = (above > s->last_event ? above : s->last_event) + 1;

	sqlite3_bind_int64(ask, 1, (int64_t)number);
	sqlite3_bind_int64(ask, 2, t_ms);
	hd_jobs_bind_text(ask, 3, kind);
	hd_jobs_bind_text(ask, 4, text);
	enum hd_err err = hd_jobs_write(s, ASK_EVENT_AT, diag);
	if (!err)
		s->last_event = number;
	return err;
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
			.t_ms = sqlite3_column_int64(ask, 2), .kind = hd_jobs_text_of(ask, 3),
			.job = (uint64_t)sqlite3_column_int64(ask, 4), .text = hd_jobs_text_of(ask, 5) };
		err = each(user, &e, diag);
	}
	return hd_jobs_end(s, ask, err, code, diag);
}
