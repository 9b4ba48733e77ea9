#include "daemon/jobs_int.h"

#include <stdio.h>
#include <string.h>

enum hd_err hd_jobs_put_number(struct hd_jobs *s, const char *name, double value, struct hd_diag *diag)
{
	hd_jobs_bind_text(s->ask[ASK_NUMBER], 1, name);
	sqlite3_bind_double(s->ask[ASK_NUMBER], 2, value);
	return hd_jobs_write(s, ASK_NUMBER, diag);
}

enum hd_err hd_jobs_put_word(struct hd_jobs *s, const char *name, const char *value, struct hd_diag *diag)
{
	hd_jobs_bind_text(s->ask[ASK_WORD], 1, name);
	hd_jobs_bind_text(s->ask[ASK_WORD], 2, value);
	return hd_jobs_write(s, ASK_WORD, diag);
}

/* The row of the one that is called so, for `take`. */
static enum hd_err named(struct hd_jobs *s, int which, const char *name, void (*take)(sqlite3_stmt *, void *),
	void *to, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[which];

	hd_jobs_bind_text(ask, 1, name);
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
	snprintf(word->at, word->cap, "%s", hd_jobs_text_of(ask, 0));
}

enum hd_err hd_jobs_get_word(struct hd_jobs *s, const char *name, char *value, size_t cap,
	struct hd_diag *diag)
{
	*value = 0;
	return named(s, ASK_WORD_OF, name, take_word, &(struct jobs_word){ value, cap }, diag);
}

enum hd_err hd_jobs_drop_word(struct hd_jobs *s, const char *name, struct hd_diag *diag)
{
	hd_jobs_bind_text(s->ask[ASK_UNWORD], 1, name);
	return hd_jobs_write(s, ASK_UNWORD, diag);
}

enum hd_err hd_jobs_words(struct hd_jobs *s, const char *prefix, enum hd_err (*each)(void *user,
	const char *name, const char *value, struct hd_diag *diag), void *user, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_WORDS];
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	hd_jobs_bind_text(ask, 1, prefix);
	while (!err && (code = sqlite3_step(ask)) == SQLITE_ROW)
		err = each(user, hd_jobs_text_of(ask, 0) + strlen(prefix), hd_jobs_text_of(ask, 1), diag);
	return hd_jobs_end(s, ask, err, code, diag);
}

/* ---- tokens ---- */

static void take_token(sqlite3_stmt *ask, void *to)
{
	struct hd_jobs_token *t = to;

	*t = (struct hd_jobs_token){ .id = sqlite3_column_int64(ask, 0),
		.uid = (uint32_t)sqlite3_column_int64(ask, 4), .made_s = sqlite3_column_double(ask, 2),
		.until_s = sqlite3_column_double(ask, 3) };
	snprintf(t->user, sizeof t->user, "%s", hd_jobs_text_of(ask, 1));
}

enum hd_err hd_jobs_put_token(struct hd_jobs *s, const char *hash, struct hd_jobs_token *t,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_TOKEN];

	hd_jobs_bind_text(ask, 1, hash);
	hd_jobs_bind_text(ask, 2, t->user);
	sqlite3_bind_int64(ask, 3, t->uid);
	sqlite3_bind_double(ask, 4, t->made_s);
	sqlite3_bind_double(ask, 5, t->until_s);
	enum hd_err err = hd_jobs_write(s, ASK_TOKEN, diag);
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
	return hd_jobs_write(s, ASK_UNTOKEN, diag);
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
	return hd_jobs_end(s, ask, HD_OK, code, diag);
}
