#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/daemon_int.h"

/* Whose a request is, what it may see, and which account a job runs as. */

static void path_of(const struct hd_daemon *d, char path[HD_PATH_CAP])
{
	snprintf(path, HD_PATH_CAP, "%s/" HD_USERS_FILE, d->spec->dir);
}

void daemon_note(struct hd_daemon *d, const char *kind, uint64_t job, const char *text)
{
	uint64_t number;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_jobs_begin(d->jobs, &diag);

	if (!err)
		err = hd_jobs_put_event(d->jobs, &(struct hd_jobs_event){ .job = job, .at_s = daemon_now_s(d),
			.t_ms = hd_clock_wall_ns(d->clock) / 1000000, .kind = kind, .text = text }, &number,
			&diag);
	if (!err)
		err = hd_jobs_commit(d->jobs, &diag);
	if (err)
		hd_jobs_rollback(d->jobs);
	daemon_log(d, kind, job, text);
}

/* ---- the file ---- */

/* Paths below lead others to their runs; all else in the folder is the owner's. */
static enum hd_err open_ways(struct hd_daemon *d, struct hd_diag *diag)
{
	static const char *const ways[] = { "", "/runs", "/devices" };
	static const char *const secret[] = { "jobs.sqlite", "jobs.sqlite-wal", "jobs.sqlite-shm",
		"decisions.ndjson", "decisions.1.ndjson", "audit.ndjson", "token" };
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	enum hd_err err = HD_OK;

	hd_account_keep_private();
	for (size_t i = 0; i < sizeof secret / sizeof *secret && !err; i++) {
		snprintf(path, sizeof path, "%s/%s", d->spec->dir, secret[i]);
		err = hd_fs_stat(d->fs, path, &stat, NULL) ? HD_OK : hd_account_mode(path, 0600, diag);
	}
	/* to open a lock is enough to hold it */
	for (uint32_t v = 0; v < d->spec->pools->ndevices && !err; v++) {
		daemon_pid_lock_path(d, v, path);
		err = hd_fs_stat(d->fs, path, &stat, NULL) ? HD_OK : hd_account_mode(path, 0600, diag);
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways && !err; i++) {
		snprintf(path, sizeof path, "%s%s", d->spec->dir, ways[i]);
		err = hd_account_mode(path, 0711, diag);
	}
	return err;
}

/* An account that is in no group of ours gets as far as the folders of runs. */
static enum hd_err check_ways(struct hd_daemon *d, struct hd_diag *diag)
{
	const struct hd_account stranger = { .uid = HD_NO_UID - 1, .gid = HD_NO_UID - 1 };
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/runs/.", d->spec->dir);
	enum hd_err err = hd_account_lend(&stranger, diag);
	if (err)
		return err;
	err = hd_fs_stat(d->fs, path, &stat, NULL);
	hd_account_take_back();
	return err ? hd_fail(diag, HD_E_REFUSED,
		"users cannot get to %s/runs: a folder above it is closed to them; `chmod a+x` it, or serve "
		"a folder elsewhere", d->spec->dir) : HD_OK;
}

enum hd_err daemon_open_users(struct hd_daemon *d, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], text[200];
	struct hd_stat stat;

	path_of(d, path);
	enum hd_err err = hd_fs_stat(d->fs, path, &stat, NULL);
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : hd_fail(diag, err, "%s cannot be looked at", path);
	struct daemon_users *u = hd_alloc(sizeof *u);
	if (!u)
		return hd_fail(diag, HD_E_NOMEM, "no memory for users");
	*u = (struct daemon_users){ .seen = stat, .run_as = hd_account_is_root() };
	hd_arena_init(&u->arena, 0);
	d->users = u;
	err = hd_users_load(d->fs, d->spec->dir, &u->now, &u->arena, diag);
	if (!err)
		err = open_ways(d, diag);
	if (!err && u->run_as)
		err = check_ways(d, diag);
	if (!err) {
		snprintf(text, sizeof text, "%u users of " HD_USERS_FILE "; %s", u->now.nusers, u->run_as ?
			"jobs run as the accounts of their users" :
			"all jobs run as this account, which is not root: each can read the others' files");
		daemon_log(d, "users", 0, text);
	}
	return err;
}

void daemon_close_users(struct hd_daemon *d)
{
	if (!d->users)
		return;
	hd_arena_finish(&d->users->arena);
	hd_free(d->users);
	d->users = NULL;
}

static void say_wrong(struct hd_daemon *d, const char *why)
{
	struct daemon_users *u = d->users;

	snprintf(u->wrong, sizeof u->wrong, "%.200s; the users of before stay until it is mended", why);
	daemon_note(d, "users", 0, u->wrong);
}

/* Quotas and accounts are in the machine's rows: it begins again from the store, as with another policy. */
static void take_users(struct hd_daemon *d, const struct hd_users *now, const struct hd_arena *arena)
{
	struct daemon_users *u = d->users;
	struct hd_dispatch *made = NULL;
	struct hd_diag diag = { "" };
	char text[240];

	hd_arena_finish(&u->arena);
	u->arena = *arena;
	u->now = *now;
	u->wrong[0] = 0;
	u->nstray = 0;
	if (daemon_make_dispatch(d, d->policy, &made, &diag))
		daemon_log(d, "warning", 0, diag.text);
	else
		daemon_begin_again(d, made, d->policy);
	int n = snprintf(text, sizeof text, "read again: %u users", u->now.nusers);
	if (u->nstray)
		snprintf(text + n, sizeof text - (size_t)n, "; of %u jobs the account is gone, or their user "
			"has left it: they count to their user's first account, else to none", u->nstray);
	daemon_note(d, "users", 0, text);
}

void daemon_look_at_users(struct hd_daemon *d)
{
	struct daemon_users *u = d->users;
	char path[HD_PATH_CAP];
	struct hd_diag diag = { "" };
	struct hd_users now;
	struct hd_arena arena;
	struct hd_stat stat;

	if (!u)
		return;
	path_of(d, path);
	if (hd_fs_stat(d->fs, path, &stat, &diag)) {
		if (!u->gone)
			say_wrong(d, HD_USERS_FILE " is gone");
		u->gone = true;
		return;
	}
	if (!u->gone && stat.inode == u->seen.inode && stat.size_bytes == u->seen.size_bytes &&
		stat.changed_wall_ns == u->seen.changed_wall_ns)
		return;
	u->gone = false;
	u->seen = stat;
	hd_arena_init(&arena, 0);
	if (!hd_users_load(d->fs, d->spec->dir, &now, &arena, &diag)) {
		take_users(d, &now, &arena);
		return;
	}
	hd_arena_finish(&arena);
	say_wrong(d, diag.text);
}

/* ---- whose a request is ---- */

static enum hd_err by_account(struct hd_daemon *d, const struct hd_sock_user *user, struct hd_caller *by,
	struct hd_diag *diag)
{
	struct hd_account account;

	(void)!hd_account_of(user->uid, user->gid, &account);
	if (user->uid != 0 && user->uid != hd_account_self())
		return hd_users_by_uid(&d->users->now, user->uid, account.gid, account.name, by, diag);
	*by = hd_caller_owner(user->uid, account.gid, account.name);
	return HD_OK;
}

enum hd_err daemon_identify(void *self, const struct hd_credential *c, struct hd_caller *by,
	struct hd_diag *diag)
{
	struct hd_daemon *d = self;
	struct hd_account account;

	/* a file that came while this scheduler started opened the socket to all, and has no users yet */
	if (!d->users && c->local && c->user.uid != 0 && c->user.uid != hd_account_self())
		return hd_fail(diag, HD_E_REFUSED, "this scheduler has one owner, which account %u is not",
			c->user.uid);
	if (!d->users)
		return c->bearer && !c->start_token ? hd_fail(diag, HD_E_REFUSED, "no such token") :
			hd_identify_owner(self, c, by, diag);
	/* which group it has, the machine's entry says alone: HD_NO_UID, if there is none */
	if (c->bearer && !c->start_token) {
		enum hd_err err = daemon_token_user(d, c->bearer, by, diag);
		if (!err && by->uid != HD_NO_UID) {
			(void)!hd_account_of(by->uid, HD_NO_UID, &account);
			by->gid = account.gid;
		}
		return err;
	}
	return by_account(d, c->local ? &c->user : &(struct hd_sock_user){ .uid = hd_account_self() }, by,
		diag);
}

bool daemon_may_of(const struct hd_daemon *d, uint32_t uid)
{
	return !d->users || !d->by || hd_caller_may_of(d->by, d->what, NULL, uid);
}

static uint32_t limits_of(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_users_limit limit[HD_USERS_LIMITS], uint32_t *account);

bool daemon_may_of_card(const struct hd_daemon *d, const struct hd_jobs_card *card)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint32_t account;

	if (daemon_may_of(d, card->uid))
		return true;
	if (!hd_caller_may_operate(d->by, d->what, NULL))
		return false;
	(void)limits_of(d, card, limit, &account);
	return hd_users_operates(&d->users->now, d->by->uid, account);
}

bool daemon_may_of_job(const struct hd_daemon *d, uint64_t job)
{
	struct hd_jobs_card card;

	if (!d->users || !d->by || d->by->owner || !job || daemon_may_of(d, hd_jobs_owner(d->jobs, job)))
		return true;
	return d->by->operates && !hd_jobs_get(d->jobs, job, &card, NULL, NULL, NULL) &&
		daemon_may_of_card(d, &card);
}

bool daemon_may_see(void *d, uint64_t job) { return daemon_may_of_job(d, job); }

/* By its role: that all users see each other's jobs is another matter. */
bool daemon_sees_cluster(const struct hd_daemon *d)
{
	return !d->users || !d->by || d->by->role >= hd_right_to(d->what, NULL).all;
}

/* The job of that name: its own, or else the youngest that it may ask about. */
enum hd_err daemon_find_name(struct hd_daemon *d, const char *name, uint64_t *id, struct hd_diag *diag)
{
	const uint32_t uid = daemon_sees(d);
	uint64_t at = UINT64_MAX;

	if (uid == HD_NO_UID || !hd_caller_may_operate(d->by, d->what, NULL) ||
		!hd_jobs_by_name_of(d->jobs, uid, name, id, NULL))
		return hd_jobs_by_name_of(d->jobs, uid, name, id, diag);
	/* others, whose jobs it may not ask about, have such names, too */
	while (!hd_jobs_by_name_below(d->jobs, at, name, &at, NULL))
		if (daemon_may_of_job(d, at)) {
			*id = at;
			return HD_OK;
		}
	return hd_jobs_by_name_of(d->jobs, uid, name, id, diag);
}

/* Without a number it owns none: one that no job has. */
uint32_t daemon_sees(const struct hd_daemon *d)
{
	if (daemon_may_of(d, HD_NO_UID))
		return HD_NO_UID;
	return d->by->uid == HD_NO_UID ? HD_NO_UID - 1 : d->by->uid;
}

uint32_t daemon_looks_at(const struct hd_daemon *d)
{
	return d->users && d->by && hd_caller_may_operate(d->by, d->what, NULL) ? HD_NO_UID : daemon_sees(d);
}

/* ---- a job's user ---- */

enum hd_err daemon_job_user(struct hd_daemon *d, const struct hd_json *ask, struct hd_jobs_card *card,
	struct hd_diag *diag)
{
	struct hd_caller by;
	const char *named = "";

	if (!d->users || !d->by)
		return HD_OK;
	by = *d->by;
	enum hd_err err = hd_json_find(ask, "user") ? hd_json_get_text(ask, "user", &named, diag) : HD_OK;
	if (!err && *named && strcmp(named, by.name) != 0 && by.role == HD_ROLE_ADMIN)
		err = hd_users_by_name(&d->users->now, named, &by, diag);
	if (!err && by.uid == HD_NO_UID)
		err = hd_fail(diag, HD_E_INVAL,
			"user %.64s has no account on this machine, as which a job could run", by.name);
	if (err)
		return err;
	/* a socket says the group of an account without an entry; a token, or a name of the file, does not */
	struct hd_account account;
	if (hd_account_of(by.uid, by.gid, &account) && account.gid == HD_NO_UID)
		return hd_fail(diag, HD_E_INVAL,
			"the group of user %.64s (uid %u) is not known, as which a job would run: this "
			"machine has no account of that number. Make one (`useradd -u %u`), or hand the job "
			"in over the scheduler's socket, as that user", by.name, by.uid, by.uid);
	card->uid = by.uid;
	card->gid = account.gid;
	snprintf(card->user, sizeof card->user, "%s", by.name);
	return HD_OK;
}

bool daemon_account(const struct hd_daemon *d, const struct hd_jobs_card *card, struct hd_account *account)
{
	if (!d->users || !d->users->run_as || card->uid == HD_NO_UID || card->uid == 0)
		return false;
	/* the name may be gone since: the number stays */
	(void)!hd_account_of(card->uid, card->gid, account);
	return true;
}

/* What cannot be lent is not touched with root's rights: the daemon ends. */
enum hd_err daemon_lend(struct hd_daemon *d, const struct hd_account *account, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	if (!account || !hd_account_lend(account, &why))
		return HD_OK;
	d->broken = HD_E_REFUSED;
	d->why = why;
	return hd_fail(diag, HD_E_REFUSED, "%s", why.text);
}

void daemon_unlend(const struct hd_account *account)
{
	if (account)
		hd_account_take_back();
}

/* ---- what users wrote ---- */

static bool runs_as(const struct hd_daemon *d) { return d->users && d->users->run_as; }

enum hd_err daemon_device_holder(struct hd_daemon *d, uint32_t device, struct hd_pid_lock_holder *holder)
{
	char path[HD_PATH_CAP];

	*holder = (struct hd_pid_lock_holder){ 0 };
	daemon_pid_lock_path(d, device, path);
	enum hd_err err = hd_pid_lock_look(d->fs, path, holder, NULL);
	if (err || !runs_as(d))
		return err;
	uint32_t uid = hd_account_owner(path);
	if (uid != 0 && (hd_jobs_owner(d->jobs, holder->job) != uid || hd_pid_uid(holder->pid) != uid))
		*holder = (struct hd_pid_lock_holder){ 0 };
	return HD_OK;
}

enum hd_err daemon_run_holder(struct hd_daemon *d, const struct watch *w, struct hd_pid_lock_holder *holder)
{
	char path[HD_PATH_CAP];

	*holder = (struct hd_pid_lock_holder){ 0 };
	snprintf(path, sizeof path, "%s/" HD_RUN_PID_LOCK, w->run);
	enum hd_err err = daemon_lend(d, daemon_of(w), NULL);
	if (err)
		return err;
	err = hd_pid_lock_look(d->fs, path, holder, NULL);
	daemon_unlend(daemon_of(w));
	if (!err && w->as && hd_pid_uid(holder->pid) != w->account.uid)
		holder->pid = 0;
	return err;
}

void daemon_signal(struct hd_daemon *d, uint64_t job, int pid, enum hd_proc_signal what)
{
	uint32_t uid = runs_as(d) ? hd_jobs_owner(d->jobs, job) : HD_NO_UID;

	if (uid == HD_NO_UID)
		(void)!hd_pid_signal(pid, what);
	else
		(void)!hd_account_signal(pid, uid, (int)what);
}

/* A process of the user before may still have the old file open. A worker of the same user may be about to
 * take it: one that was started just before the daemon was killed, which orders it again now. */
enum hd_err daemon_make_lock(struct hd_daemon *d, uint32_t device, const struct watch *w,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	if (!runs_as(d))
		return HD_OK;
	daemon_pid_lock_path(d, device, path);
	if (hd_account_owner(path) == (w->as ? w->account.uid : hd_account_self()))
		return HD_OK;
	(void)!hd_fs_unlink(d->fs, path, NULL);
	enum hd_err err = hd_file_write_atomic(d->fs, path, "", 0, diag);
	return err || !w->as ? err : hd_account_give(path, &w->account, 0600, diag);
}

/* Its user can hold the file with any process, for as long as it likes, and needs no device for that. */
void daemon_drop_lock(struct hd_daemon *d, uint32_t device)
{
	char path[HD_PATH_CAP], name[96], text[200];

	if (!runs_as(d))
		return;
	daemon_pid_lock_path(d, device, path);
	hd_pools_device(d->spec->pools, device, name);
	snprintf(text, sizeof text, "%s: its lock is held by no worker of ours: it is made new",
		name);
	if (!hd_fs_unlink(d->fs, path, NULL))
		daemon_log(d, "warning", 0, text);
}

enum hd_err daemon_run_end(struct hd_daemon *d, const struct watch *w, struct hd_run_end *end)
{
	enum hd_err err = daemon_lend(d, daemon_of(w), NULL);

	if (err)
		return err;
	err = hd_run_end_get(d->fs, w->run, end, NULL);
	daemon_unlend(daemon_of(w));
	return err;
}

/* ---- quotas ---- */

/* users.h, rule 2; also of a job from before there were users. */
static bool is_owners(const struct hd_jobs_card *card)
{
	return card->uid == HD_NO_UID || card->uid == 0 || card->uid == hd_account_self();
}

static uint32_t limits_of(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_users_limit limit[HD_USERS_LIMITS], uint32_t *account)
{
	*account = HD_USERS_NONE;
	return !d->users ? 0 : hd_users_limits(&d->users->now, card->uid, card->user, is_owners(card),
		card->account, limit, account);
}

uint32_t daemon_limits_of(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_users_limit limit[HD_USERS_LIMITS], bool *owner)
{
	uint32_t account, n = limits_of(d, card, limit, &account);

	*owner = !d->users || is_owners(card);
	return n;
}

static uint32_t whole(double most) { return isfinite(most) ? (uint32_t)most : UINT32_MAX; }

static struct hd_dispatch_entity entity_of(const struct hd_users_account *a)
{
	struct hd_dispatch_entity e = { .weight = a->weight, .fifo = a->fifo };

	snprintf(e.name, sizeof e.name, "%.64s", a->name);
	return e;
}

void daemon_limit_job(const struct hd_daemon *d, const struct hd_jobs_card *card, struct hd_dispatch_job *row)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint32_t account, n = limits_of(d, card, limit, &account);

	snprintf(row->user, sizeof row->user, "%s", card->user);
	row->nlimits = n;
	for (uint32_t i = 0; i < n; i++) {
		row->limit[i] = (struct hd_dispatch_limit){ .devices = whole(limit[i].quota.most[
			HD_QUOTA_DEVICES]), .running = whole(limit[i].quota.most[HD_QUOTA_RUNNING]) };
		snprintf(row->limit[i].name, sizeof row->limit[i].name, "%.100s", limit[i].name);
	}
	row->entity = (struct hd_dispatch_entity){ .name = "" };
	row->nwithin = 0;
	if (d->users && card->account[0] && (account == HD_USERS_NONE ||
		strcmp(d->users->now.account[account].name, card->account) != 0))
		d->users->nstray++;
	if (account == HD_USERS_NONE)
		return;
	const struct hd_users_account *of = d->users->now.account;
	row->entity = entity_of(&of[account]);
	row->nwithin = of[account].level;
	for (uint32_t i = row->nwithin, at = account; i--;) {
		at = of[at].parent;
		row->within[i] = entity_of(&of[at]);
	}
}

enum hd_err daemon_read_account(const struct hd_daemon *d, const struct hd_json *ask,
	const struct hd_job *job, struct hd_jobs_card *card, struct hd_diag *diag)
{
	const char *name = job->value[HD_JOB_ACCOUNT].is_none ? "" : hd_job_text(job, HD_JOB_ACCOUNT);
	uint32_t account = HD_USERS_NONE;
	enum hd_err err = hd_json_find(ask, "account") ? hd_json_get_text(ask, "account", &name, diag) :
		HD_OK;

	if (!err && *name && !d->users)
		return hd_fail(diag, HD_E_INVAL, "this scheduler has no accounts (" HD_USERS_FILE "): leave "
			"account %.64s out", name);
	if (!err && d->users)
		err = hd_users_bill(&d->users->now, card->uid, card->user, is_owners(card), name, &account,
			diag);
	if (!err && account != HD_USERS_NONE)
		snprintf(card->account, sizeof card->account, "%.64s",
			d->users->now.account[account].name);
	return err;
}

enum hd_err daemon_check_priority(struct hd_daemon *d, const struct hd_jobs_card *card, double weight,
	struct hd_diag *diag)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint32_t account, n = limits_of(d, card, limit, &account);

	if (d->by && d->by->role >= HD_ROLE_OPERATOR)
		return HD_OK;
	for (uint32_t i = 0; i < n; i++)
		if (weight > limit[i].quota.most[HD_QUOTA_PRIORITY])
			return hd_fail(diag, HD_E_INVAL,
				"QUOTA: priority %g is above %g, the most that %s may give a job", weight,
				limit[i].quota.most[HD_QUOTA_PRIORITY], limit[i].name);
	return HD_OK;
}

static uint32_t count_waiting(const struct hd_daemon *d, const char *limit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < hd_dispatch_njobs(d->dispatch); i++) {
		const struct hd_dispatch_job *row = hd_dispatch_job(d->dispatch,
			hd_dispatch_nth(d->dispatch, i));
		if (row->state != HD_DISPATCH_OPEN || hd_dispatch_lease(d->dispatch, row->id))
			continue;
		for (uint32_t k = 0; k < row->nlimits; k++)
			n += !strcmp(row->limit[k].name, limit);
	}
	return n;
}

enum hd_err daemon_check_devices(struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, struct hd_diag *diag)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint32_t account, n = limits_of(d, card, limit, &account), wants = row->scale > row->min ?
		row->scale : row->min;

	for (uint32_t i = 0; i < n; i++)
		if (wants > limit[i].quota.most[HD_QUOTA_DEVICES])
			return hd_fail(diag, HD_E_INVAL,
				"QUOTA: it wants %u devices at once, and %s may have %g: ask for fewer",
				wants, limit[i].name, limit[i].quota.most[HD_QUOTA_DEVICES]);
	return HD_OK;
}

enum hd_err daemon_check_quota(struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, uint32_t before, struct hd_diag *diag)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint32_t account, n = limits_of(d, card, limit, &account);
	enum hd_err err = daemon_check_priority(d, card, row->weight, diag);

	err = err ? err : daemon_check_devices(d, card, row, diag);
	for (uint32_t i = 0; i < n && !err; i++) {
		const double *most = limit[i].quota.most;
		if (isfinite(most[HD_QUOTA_QUEUED]) &&
			count_waiting(d, limit[i].name) + before >= most[HD_QUOTA_QUEUED])
			err = hd_fail(diag, HD_E_REFUSED, "QUOTA: %s has %u jobs that wait and may have %g: "
				"submit it when one runs, or fewer tasks",
				limit[i].name, count_waiting(d, limit[i].name) + before,
				most[HD_QUOTA_QUEUED]);
	}
	return err;
}

/* ---- me ---- */

static double shown(double most) { return isfinite(most) ? most : -1; }

/* The user, its accounts and those above them, each once, its groups. */
enum { ME_QUOTAS = 1 + HD_USERS_ACCOUNTS * HD_USERS_LEVELS + HD_USERS_GROUPS };
struct me_quotas { uint32_t n; struct hd_users_limit limit[ME_QUOTAS]; };

static void add_quotas(struct me_quotas *to, const struct hd_users_limit *limit, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < to->n && strcmp(to->limit[k].name, limit[i].name) != 0)
			k++;
		if (k == to->n && k < ME_QUOTAS)
			to->limit[to->n++] = limit[i];
	}
}

enum hd_err daemon_show_me(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const struct hd_caller *by = d->by;
	const struct hd_users_user *u = d->users && !by->owner ? hd_users_of(&d->users->now, by->uid) : NULL;
	struct hd_users_limit limit[HD_USERS_LIMITS];
	struct hd_answer_quota quota[ME_QUOTAS];
	const char *names[HD_USERS_ACCOUNTS], *operates[HD_USERS_ACCOUNTS];
	struct me_quotas all = { .n = 0 };
	struct hd_jobs_card card = { .uid = by->owner ? HD_NO_UID : by->uid };
	uint32_t account, of;

	(void)ask, (void)diag;
	snprintf(card.user, sizeof card.user, "%s", by->name);
	if (!u && d->users && !by->owner && by->uid != HD_NO_UID && d->users->now.others.name)
		u = &d->users->now.others;
	add_quotas(&all, limit, limits_of(d, &card, limit, &account));
	for (uint32_t k = 0; u && k < u->naccounts; k++) {
		names[k] = d->users->now.account[u->account[k]].name;
		snprintf(card.account, sizeof card.account, "%.64s", names[k]);
		add_quotas(&all, limit, limits_of(d, &card, limit, &of));
	}
	for (uint32_t k = 0; u && k < u->noperates; k++)
		operates[k] = d->users->now.account[u->operates[k]].name;
	for (uint32_t i = 0; i < all.n; i++) {
		const double *most = all.limit[i].quota.most;
		quota[i] = (struct hd_answer_quota){ all.limit[i].name, shown(most[HD_QUOTA_DEVICES]),
			shown(most[HD_QUOTA_RUNNING]), shown(most[HD_QUOTA_QUEUED]),
			shown(most[HD_QUOTA_PRIORITY]) };
	}
	hd_fields_put(&hd_answer_me_fields, 0, &(struct hd_answer_me){ .user = by->name,
		.uid = by->uid == HD_NO_UID ? -1 : (int64_t)by->uid, .role = hd_role_name(by->role),
		.owner = by->owner,
		.account = account == HD_USERS_NONE ? "" : d->users->now.account[account].name,
		.accounts = { .at = names, .n = u ? u->naccounts : 0 },
		.operates = { .at = operates, .n = u ? u->noperates : 0 },
		.quotas = { .at = quota, .n = all.n }, .wrong = d->users ? d->users->wrong : "" }, w);
	return HD_OK;
}

const struct hd_users *daemon_users_now(const struct hd_daemon *d)
{
	return d->users ? &d->users->now : NULL;
}
