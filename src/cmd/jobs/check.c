#include "cmd/jobs/serve.h"

#include <string.h>

#include "sys/failpoint.h"
#include "driver/db.h"
#include "daemon/backup.h"
#include "daemon/http_client.h"
#include "cmd/session.h"
#include "cmd/jobs/scheduler.h"

/* Would this program serve that folder? It serves a copy of the store, up to its first decision, by the code
 * that serves; then it looks at what a store does not say. */

#define HD_CHECK_WAIT_NS   INT64_C(60000000000)       /* for a copy of the store that is served */
#define HD_REPLACE_WAIT_NS INT64_C(60000000000)       /* for the end of the one that serves */
#define HD_REPLACE_SAY_NS  INT64_C(5000000000)
#define HD_REPLACE_LOOK_NS INT64_C(20000000)
enum { LEAST_FREE_BYTES = 64 << 20, STORE_BYTES = 1 << 30 };

struct serve_trial {
	struct hd_cmd *cmd;
	const struct hd_daemon_spec *spec;
	const char *copy;                 /* a folder with the store and what lies beside it */
	FILE *to;
	uint32_t refused, warned;
};

enum verdict { OK, WARN, REFUSE };

static void line(struct serve_trial *c, enum verdict verdict, const char *what, const char *text)
{
	static const char *const word[] = { [OK] = "ok", [WARN] = "warn", [REFUSE] = "refuse" };

	c->refused += verdict == REFUSE;
	c->warned += verdict == WARN;
	fprintf(c->to, "%-7s %-8s %s\n", word[verdict], what, text);
}

/* ---- a copy ---- */

static enum hd_err copy_file(struct hd_cmd *cmd, const char *dir, const char *name, const char *to)
{
	char from[HD_PATH_CAP], path[HD_PATH_CAP];
	struct hd_arena arena;
	struct hd_stat stat;
	uint8_t *bytes;
	size_t len;

	snprintf(from, sizeof from, "%.2000s/%s", dir, name);
	snprintf(path, sizeof path, "%.2000s/%s", to, name);
	if (hd_fs_stat(&cmd->fs, from, &stat, NULL) == HD_E_NOTFOUND)
		return HD_OK;
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(&cmd->fs, from, &arena, STORE_BYTES, &bytes, &len, &cmd->diag);
	err = err ? err : hd_file_write_atomic(&cmd->fs, path, bytes, len, &cmd->diag);
	hd_arena_finish(&arena);
	return err;
}

/* Without a scheduler its files are copied as they lie there: to open them would take up what a killed one
 * left beside the store, and change them. */
static enum hd_err copy_unserved(struct hd_cmd *cmd, const char *dir, const char *copy)
{
	static const char *const names[] = { "jobs.sqlite", "jobs.sqlite-wal",
#define X(name, about) name,
		HD_BACKUP_FILES(X)
#undef X
	};
	enum hd_err err = hd_fs_mkdirs(&cmd->fs, copy, &cmd->diag);

	for (size_t i = 0; i < sizeof names / sizeof *names && !err; i++)
		err = copy_file(cmd, dir, names[i], copy);
	return err;
}

static enum hd_err copy_of(struct serve_trial *c)
{
	const struct hd_json *answer = NULL;
	struct hd_cmd *cmd = c->cmd;
	char body[HD_PATH_CAP];

	snprintf(body, sizeof body, "{\"folder\":\"%s\"}", c->copy);
	const struct hd_http_call call = { c->spec->dir, "POST", "/v1/backup", body, HD_CHECK_WAIT_NS };
	struct hd_diag why = { "" };
	enum hd_err err = hd_http_ask(&call, &cmd->arena, &answer, &why);
	if (err == HD_E_NOTFOUND && !strncmp(why.text, "no scheduler serves", 19))
		return copy_unserved(cmd, c->spec->dir, c->copy);
	if (err)
		return hd_fail(&cmd->diag, err,
			"the scheduler that serves %.200s gives no copy of its store: %.250s. If it is of an "
			"earlier program, end it, then check", c->spec->dir, why.text);
	return HD_OK;
}

/* ---- what is looked at ---- */

static void check_store(struct serve_trial *c)
{
	struct hd_daemon_spec trial = *c->spec;
	struct hd_diag why = { "" };
	char text[700];
	bool lives_on;

	trial.dir = c->copy;
	trial.trial = true;
	trial.say = NULL;
	if (hd_daemon(&trial, &lives_on, &why)) {
		line(c, REFUSE, "store", why.text);
		return;
	}
	snprintf(text, sizeof text, "read; all open jobs and their leases fit the pools and policy %.80s",
		c->spec->policy);
	line(c, OK, "store", text);
}

static void check_space(struct serve_trial *c)
{
	struct hd_fs_space space;
	char text[300];

	if (hd_fs_space(&c->cmd->fs, c->spec->dir, &space)) {
		line(c, WARN, "space", "how much is free is not known");
		return;
	}
	snprintf(text, sizeof text, "%llu MiB free", (unsigned long long)(space.free_bytes >> 20));
	line(c, space.free_bytes < LEAST_FREE_BYTES ? WARN : OK, "space", text);
}

struct runs { struct serve_trial *c; uint64_t open, bad; };

/* What a coordinator or a worker of this program would read first. */
static enum hd_err check_run(void *user, const struct hd_jobs_run *run, struct hd_diag *diag)
{
	struct runs *r = user;
	struct hd_cmd *cmd = r->c->cmd;
	struct hd_diag kept = cmd->diag;
	char path[HD_PATH_CAP], text[700];

	(void)diag;
	if (!run->open)
		return HD_OK;
	r->open++;
	snprintf(path, sizeof path, "%s/job.resolved.json", run->run);
	cmd->diag.text[0] = '\0';
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	if (!job || hd_session_job(cmd, path, job, NULL, NULL)) {
		r->bad++;
		snprintf(text, sizeof text, "job %llu: this program does not read it: %s",
			(unsigned long long)run->id, cmd->diag.text);
		line(r->c, REFUSE, "run", text);
	}
	cmd->diag = kept;
	return HD_OK;
}

static void check_runs(struct serve_trial *c)
{
	struct runs r = { .c = c };
	struct hd_jobs *jobs = NULL;
	struct hd_diag why = { "" };
	char path[HD_PATH_CAP], text[200];

	snprintf(path, sizeof path, "%s/jobs.sqlite", c->copy);
	if (hd_jobs_open(&jobs, path, NULL, 0, &why) || hd_jobs_runs(jobs, check_run, &r, &why))
		line(c, REFUSE, "runs", why.text);
	hd_jobs_close(jobs);
	snprintf(text, sizeof text, "%llu open jobs, %llu of them read",
		(unsigned long long)r.open, (unsigned long long)(r.open - r.bad));
	if (!r.bad)
		line(c, OK, "runs", text);
}

enum hd_err hd_serve_check(struct hd_cmd *cmd, const struct hd_daemon_spec *spec, FILE *to)
{
	static void (*const look[])(struct serve_trial *) = { check_store, check_space, check_runs };
	char copy[64];
	struct serve_trial c = { .cmd = cmd, .spec = spec, .copy = copy, .to = to };
	struct hd_proc_self self;
	struct hd_stat stat;

	hd_proc_self(&self);
	snprintf(copy, sizeof copy, "/tmp/heddle-check-%u", self.pid);
	if (hd_fs_stat(&cmd->fs, spec->dir, &stat, NULL))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND, "%s is no folder of a scheduler", spec->dir);
	enum hd_err err = copy_of(&c);
	for (size_t i = 0; i < sizeof look / sizeof *look && !err; i++)
		if (!c.refused || look[i] != check_runs)
			look[i](&c);
	(void)!hd_fs_remove_tree(&cmd->fs, copy, NULL);
	if (!err && c.refused)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "this program would not serve %s so", spec->dir);
	return err;
}

/* ---- in the place of another ---- */

/* Until the store's lock is free; it is said what is waited for. */
static enum hd_err await_end(struct hd_cmd *cmd, const char *dir)
{
	int64_t began = hd_clock_now_ns(&cmd->clock), now = began;
	enum hd_err err = HD_E_AGAIN;
	char path[HD_PATH_CAP];
	bool said = false;

	snprintf(path, sizeof path, "%s/jobs.sqlite", dir);
	while (err == HD_E_AGAIN && now - began < HD_REPLACE_WAIT_NS) {
		struct hd_diag why = { "" };
		struct hd_db db;
		hd_clock_wait_until(&cmd->clock, now + HD_REPLACE_LOOK_NS);
		err = hd_db_look(&db, path, &hd_jobs_kind, &why);
		hd_db_close(&db);
		now = hd_clock_now_ns(&cmd->clock);
		if (err && err != HD_E_AGAIN)
			return hd_fail(&cmd->diag, err, "%s", why.text);
		if (err && !said && now - began > HD_REPLACE_SAY_NS) {
			said = true;
			fprintf(stderr, ">> replace  the scheduler of %s was asked to end and has not yet: a "
				"policy computes, or it drains\n", dir);
		}
	}
	return err ? hd_fail(&cmd->diag, HD_E_AGAIN,
		"the scheduler of %s was asked to end and has not within %lld s; once it has, serve without "
		"--replace", dir,
		(long long)(HD_REPLACE_WAIT_NS / 1000000000)) : HD_OK;
}

enum hd_err hd_serve_replace(struct hd_cmd *cmd, const struct hd_daemon_spec *spec)
{
	const struct hd_http_call call = { spec->dir, "POST", "/v1/stop", "{}", HD_CHECK_WAIT_NS };
	const struct hd_json *answer = NULL;
	struct hd_diag why = { "" };
	enum hd_err err = hd_serve_check(cmd, spec, stderr);

	if (err)
		return err;
	(void)HD_FAILPOINT(REPLACE_TRIED);
	err = hd_http_ask(&call, &cmd->arena, &answer, &why);
	if (err == HD_E_NOTFOUND)                 /* it has ended by itself */
		return HD_OK;
	if (err)
		return hd_fail(&cmd->diag, err, "the scheduler of %.200s was asked to end: %.250s", spec->dir,
			why.text);
	err = await_end(cmd, spec->dir);
	if (!err)
		(void)HD_FAILPOINT(REPLACE_ENDED);
	return err;
}
