#include "daemon/jobs_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Jobs, each with its card, its row and its lease. */

/* ---- writing ---- */

static enum hd_err put_name(struct hd_jobs *s, int which, uint64_t job, const char *name,
	struct hd_diag *diag)
{
	if (!*name)
		return HD_OK;
	sqlite3_bind_int64(s->ask[which], 1, (int64_t)job);
	hd_jobs_bind_text(s->ask[which], 2, name);
	return hd_jobs_write(s, which, diag);
}

enum hd_err hd_jobs_put_card(struct hd_jobs *s, const struct hd_jobs_card *card, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_CARD];

	sqlite3_bind_int64(ask, 1, (int64_t)card->id);
	hd_jobs_bind_text(ask, 2, card->name);
	hd_jobs_bind_text(ask, 3, card->user);
	if (card->key[0])
		hd_jobs_bind_text(ask, 4, card->key);
	hd_jobs_bind_text(ask, 5, card->run);
	enum hd_err err = hd_jobs_write(s, ASK_CARD, diag);
	if (!err && card->id > s->last)
		s->last = card->id;
	if (!err && card->uid != HD_NO_UID) {
		sqlite3_bind_int64(s->ask[ASK_OWNED], 1, (int64_t)card->id);
		sqlite3_bind_int64(s->ask[ASK_OWNED], 2, card->uid);
		sqlite3_bind_int64(s->ask[ASK_OWNED], 3, card->gid);
		err = hd_jobs_write(s, ASK_OWNED, diag);
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
	hd_jobs_bind_text(ask, at, after);
	return hd_jobs_write(s, ASK_TERMS, diag);
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

	hd_jobs_bind_text(ask, at++, hd_dispatch_state_name(r->state));
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		sqlite3_bind_int64(ask, at++, whole[i]);
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		sqlite3_bind_double(ask, at++, real[i]);
	for (size_t i = 0; i < sizeof count / sizeof *count; i++)
		sqlite3_bind_int64(ask, at++, count[i]);
	hd_jobs_bind_text(ask, at++, r->why);
	hd_text_fixed(&rates, buf, sizeof buf);
	for (uint32_t t = 0; t < s->ntypes; t++)
		hd_text_addf(&rates, "%s %.17g %.17g %d\n", s->type[t].name, r->rate[t].steps_s,
			r->rate[t].outlier, (int)r->rate[t].from);
	hd_jobs_bind_text(ask, at++, buf);
	sqlite3_bind_int64(ask, at, (int64_t)r->id);
	enum hd_err err = hd_jobs_write(s, ASK_ROW, diag);
	return err ? err : put_terms(s, r, diag);
}

enum hd_err hd_jobs_put_lease(struct hd_jobs *s, const struct hd_dispatch_lease *l, struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[l->state == HD_LEASE_RELEASED ? ASK_UNLEASE : ASK_LEASE];
	char buf[HD_DISPATCH_SET * 80];
	struct hd_text devices;

	sqlite3_bind_int64(ask, 1, (int64_t)l->job);
	if (l->state == HD_LEASE_RELEASED)
		return hd_jobs_write(s, ASK_UNLEASE, diag);
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
	hd_jobs_bind_text(ask, 4, hd_lease_name(l->state));
	sqlite3_bind_int64(ask, 5, l->over);
	sqlite3_bind_double(ask, 6, l->since_s);
	sqlite3_bind_double(ask, 7, l->until_s);
	hd_jobs_bind_text(ask, 8, buf);
	return hd_jobs_write(s, ASK_LEASE, diag);
}

enum hd_err hd_jobs_put_digest(struct hd_jobs *s, uint64_t id, const char *digest, struct hd_diag *diag)
{
	hd_jobs_bind_text(s->ask[ASK_DIGEST], 1, digest);
	sqlite3_bind_int64(s->ask[ASK_DIGEST], 2, (int64_t)id);
	return hd_jobs_write(s, ASK_DIGEST, diag);
}

/* ---- reading ---- */

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
	return hd_terms_get_after(t, hd_jobs_text_of(ask, at), NULL) ?
		damaged(s, r->id, "what it runs after", diag) : HD_OK;
}

static enum hd_err read_job(struct hd_jobs *s, sqlite3_stmt *ask, struct hd_jobs_card *card,
	struct hd_dispatch_job *r, struct hd_diag *diag)
{
	int at = 0;

	*card = (struct hd_jobs_card){ .id = (uint64_t)sqlite3_column_int64(ask, at++) };
	*r = (struct hd_dispatch_job){ .id = card->id };
	snprintf(card->name, sizeof card->name, "%s", hd_jobs_text_of(ask, at++));
	snprintf(card->user, sizeof card->user, "%s", hd_jobs_text_of(ask, at++));
	snprintf(card->key, sizeof card->key, "%s", hd_jobs_text_of(ask, at++));
	snprintf(card->run, sizeof card->run, "%s", hd_jobs_text_of(ask, at++));
	snprintf(card->digest, sizeof card->digest, "%s", hd_jobs_text_of(ask, at++));
	snprintf(card->order, sizeof card->order, "%s", hd_jobs_text_of(ask, ORDER_AT));
	bool owned = sqlite3_column_type(ask, OWNER_AT) != SQLITE_NULL;
	card->uid = owned ? (uint32_t)sqlite3_column_int64(ask, OWNER_AT) : HD_NO_UID;
	card->gid = owned ? (uint32_t)sqlite3_column_int64(ask, OWNER_AT + 1) : HD_NO_UID;
	snprintf(card->partition, sizeof card->partition, "%s", hd_jobs_text_of(ask, OWNER_AT + 2));
	snprintf(card->account, sizeof card->account, "%s", hd_jobs_text_of(ask, OWNER_AT + 3));
	if (!state_of(hd_jobs_text_of(ask, at++), &r->state))
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
	snprintf(r->why, sizeof r->why, "%s", hd_jobs_text_of(ask, at++));
	return read_rates(s, hd_jobs_text_of(ask, at), r) ? read_terms(s, ask, r, diag) :
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
	while (state < HD_LEASE_NSTATES && strcmp(hd_jobs_text_of(ask, at),
		hd_lease_name((enum hd_lease_state)state)) != 0)
		state++;
	if (state == HD_LEASE_NSTATES)
		return damaged(s, l->job, "the state of its lease", diag);
	l->state = (enum hd_lease_state)state;
	l->over = sqlite3_column_int(ask, ++at);
	l->since_s = sqlite3_column_double(ask, ++at);
	l->until_s = sqlite3_column_double(ask, ++at);
	return read_devices(s, hd_jobs_text_of(ask, ++at), l, diag);
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
	return hd_jobs_end(s, ask, err, code, diag);
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

	hd_jobs_bind_text(ask, 1, text);
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
		hd_jobs_bind_text(ask, 3, state);
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
		if (state_of(hd_jobs_text_of(s->ask[ASK_COUNT], 0), &state))
			n[state] = (uint64_t)sqlite3_column_int64(s->ask[ASK_COUNT], 1);
	sqlite3_reset(s->ask[ASK_COUNT]);
	while (code == SQLITE_DONE && (code = sqlite3_step(s->ask[ASK_COUNT_LEASES])) == SQLITE_ROW) {
		for (int k = 0; k < HD_LEASE_NSTATES; k++)
			if (!strcmp(hd_jobs_text_of(s->ask[ASK_COUNT_LEASES], 0),
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

/* ---- as they ran, for copies ---- */

enum hd_err hd_jobs_runs(struct hd_jobs *s,
	enum hd_err (*each)(void *user, const struct hd_jobs_run *run, struct hd_diag *diag), void *user,
	struct hd_diag *diag)
{
	sqlite3_stmt *ask = s->ask[ASK_RUNS];
	enum hd_err err = HD_OK;
	int code = SQLITE_DONE;

	while (!err && (code = sqlite3_step(ask)) == SQLITE_ROW) {
		const struct hd_jobs_run run = { .id = (uint64_t)sqlite3_column_int64(ask, 0),
			.open = !strcmp(hd_jobs_text_of(ask, 1), hd_dispatch_state_name(HD_DISPATCH_OPEN)),
			.run = hd_jobs_text_of(ask, 2), .leases = (uint32_t)sqlite3_column_int64(ask, 3) };
		err = each(user, &run, diag);
	}
	return hd_jobs_end(s, ask, err, code, diag);
}

enum hd_err hd_jobs_put_ran(struct hd_jobs *s, uint64_t id, uint32_t leases, uint64_t step,
	const char *digest, struct hd_diag *diag)
{
	sqlite3_bind_int64(s->ask[ASK_RAN], 1, (int64_t)id);
	sqlite3_bind_int64(s->ask[ASK_RAN], 2, leases);
	sqlite3_bind_int64(s->ask[ASK_RAN], 3, (int64_t)step);
	enum hd_err err = hd_jobs_write(s, ASK_RAN, diag);
	sqlite3_bind_int64(s->ask[ASK_UNLEASE], 1, (int64_t)id);
	err = err ? err : hd_jobs_write(s, ASK_UNLEASE, diag);
	if (err || !*digest)
		return err;
	sqlite3_bind_int64(s->ask[ASK_RAN_OUT], 1, (int64_t)id);
	hd_jobs_bind_text(s->ask[ASK_RAN_OUT], 2, digest);
	return hd_jobs_write(s, ASK_RAN_OUT, diag);
}
