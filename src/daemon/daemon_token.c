#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sys/crypto.h"
#include "sys/crypto_key.h"
#include "daemon/daemon_int.h"

/* Tokens of users, for the port: drawn here, shown once; what is stored is their SHA-256. */

enum { HD_TOKEN_DAYS = 30, HD_TOKEN_MOST_DAYS = 366, HD_TOKENS_OF_USER = 64, HD_DAY_S = 86400 };

static double wall_s(const struct hd_daemon *d) { return (double)hd_clock_wall_ns(d->clock) * 1e-9; }

static enum hd_err hash_of(const char *token, char hex[HD_SHA256_HEX], struct hd_diag *diag)
{
	struct hd_sha256 sum;
	enum hd_err err = hd_sha256(token, strlen(token), &sum, diag);

	if (!err)
		hd_sha256_hex(&sum, hex);
	return err;
}

/* By its hash: how long the search takes tells nothing of the token. */
enum hd_err daemon_token_user(struct hd_daemon *d, const char *bearer, struct hd_caller *by,
	struct hd_diag *diag)
{
	struct hd_jobs_token token = { 0 };
	char hex[HD_SHA256_HEX];
	enum hd_err err = strlen(bearer) == 2 * HD_KEY_BYTES ? hash_of(bearer, hex, diag) : HD_E_NOTFOUND;

	if (!err)
		err = hd_jobs_get_token(d->jobs, hex, &token, diag);
	if (err || wall_s(d) >= token.until_s)
		return hd_fail(diag, HD_E_REFUSED, "the token is none, or holds no longer");
	err = hd_users_by_name(&d->users->now, token.user, by, diag);
	return err || by->uid == token.uid ? err : hd_fail(diag, HD_E_REFUSED,
		"the token is of an earlier user %.64s, of another uid", token.user);
}

struct token_list {
	struct hd_daemon *d;
	struct hd_json_writer *w;         /* NULL: only looked for */
	const char *user;                 /* of which it is counted; NULL: all */
	int64_t id;                       /* that is looked for */
	uint32_t n;
	char found[HD_USERS_NAME + 1];    /* whose it is; "": it is not there */
};

static bool may_of(const struct hd_daemon *d, const char *user)
{
	return d->by->role == HD_ROLE_ADMIN || !strcmp(d->by->name, user);
}

static void each_token(void *user, const struct hd_jobs_token *t)
{
	struct token_list *l = user;

	l->n += l->user && !strcmp(l->user, t->user);
	if (t->id == l->id)
		snprintf(l->found, sizeof l->found, "%s", t->user);
	if (l->w && may_of(l->d, t->user))
		hd_fields_put_object(&hd_answer_token_fields, 0, &(struct hd_answer_token){ .id = t->id,
			.user = t->user, .made_t = t->made_s, .until_t = t->until_s }, NULL, l->w);
}

static enum hd_err has_users(const struct hd_daemon *d, struct hd_diag *diag)
{
	return d->users ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"this scheduler has one owner, whose token is in the file `token`: tokens are of users, and "
		"those need a file " HD_USERS_FILE " when it starts");
}

enum hd_err daemon_make_token(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_jobs_token token = { .made_s = wall_s(d) };
	struct hd_caller of;
	struct hd_key key;
	const char *user = d->by->name;
	double for_s = HD_TOKEN_DAYS * HD_DAY_S;
	char text[2 * HD_KEY_BYTES + 1], hex[HD_SHA256_HEX], note[160];

	enum hd_err err = has_users(d, diag);
	if (!err && hd_json_find(ask, "user"))
		err = hd_json_get_text(ask, "user", &user, diag);
	if (!err && hd_json_find(ask, "for_s"))
		err = hd_json_get_f64(ask, "for_s", &for_s, diag);
	if (!err && !(for_s >= 1 && for_s <= HD_TOKEN_MOST_DAYS * (double)HD_DAY_S))
		err = hd_fail(diag, HD_E_INVAL, "for_s is %g: a token holds for 1 s to %d days", for_s,
			HD_TOKEN_MOST_DAYS);
	if (!err && !may_of(d, user))
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no user \"%.64s\" for which %s may make a token",
			user, d->by->name);
	if (!err && hd_users_by_name(&d->users->now, user, &of, diag))
		err = HD_E_INVAL;
	token.uid = err ? HD_NO_UID : of.uid;
	struct token_list list = { .d = d, .user = user };
	if (!err)
		err = hd_jobs_tokens(d->jobs, each_token, &list, diag);
	if (!err && list.n >= HD_TOKENS_OF_USER)
		err = hd_fail(diag, HD_E_REFUSED, "%.64s has %u tokens: revoke one", user, list.n);
	if (!err)
		err = hd_random_bytes(key.byte, sizeof key.byte, diag);
	for (size_t i = 0; i < sizeof key.byte && !err; i++)
		snprintf(text + 2 * i, 3, "%02x", key.byte[i]);
	if (!err)
		err = hash_of(text, hex, diag);
	snprintf(token.user, sizeof token.user, "%s", user);
	token.until_s = token.made_s + for_s;
	if (!err)
		err = hd_jobs_put_token(d->jobs, hex, &token, diag);
	hd_key_wipe(&key);
	if (err)
		return err;
	snprintf(note, sizeof note, "token %lld of %.64s was made", (long long)token.id, user);
	daemon_note(d, "token", 0, note);
	hd_fields_put(&hd_answer_token_new_fields, 0, &(struct hd_answer_token_new){ .id = token.id,
		.user = user, .until_t = token.until_s, .token = text }, w);
	return HD_OK;
}

static void fill_tokens(void *user, struct hd_json_writer *w)
{
	struct token_list *l = user;

	l->w = w;
	(void)!hd_jobs_tokens(l->d->jobs, each_token, l, NULL);
}

enum hd_err daemon_show_tokens(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct token_list list = { .d = d };

	(void)ask;
	enum hd_err err = has_users(d, diag);
	if (!err)
		hd_fields_put(&hd_answer_tokens_fields, 0, &(struct hd_answer_tokens){
			.tokens = { .fill = fill_tokens, .user = &list } }, w);
	return err;
}

/* Its streams end with the next page: the event wakes them. */
enum hd_err daemon_revoke_token(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct token_list list = { .d = d };
	char note[160];
	enum hd_err err = has_users(d, diag);

	(void)w;
	if (!err)
		err = hd_json_get_i64(ask, "token", 1, INT64_MAX, &list.id, diag);
	if (!err)
		err = hd_jobs_tokens(d->jobs, each_token, &list, diag);
	if (!err && (!list.found[0] || !may_of(d, list.found)))
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no token %lld", (long long)list.id);
	if (!err)
		err = hd_jobs_drop_token(d->jobs, list.id, diag);
	if (err)
		return err;
	snprintf(note, sizeof note, "token %lld of %.64s was revoked", (long long)list.id, list.found);
	daemon_note(d, "token", 0, note);
	return HD_OK;
}
