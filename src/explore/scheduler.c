#include <stdio.h>
#include <string.h>

#include "sys/failpoint.h"
#include "daemon/http_client.h"
#include "explore/explore_int.h"

/* The scheduler of the folder: asked, found, started, ended. */

#define STARTS_NS INT64_C(60000000000)            /* a scheduler that does not serve by then does not start */
#define ENDS_NS   INT64_C(60000000000)            /* jobs commit and leave */
#define PAUSE_NS  INT64_C(50000000)
enum { MARK_BYTES = 128 };

/* No sweep has that name: they begin with a letter or a digit. */
static void mark_path(const struct explore *x, char path[HD_PATH_CAP])
{
	snprintf(path, HD_PATH_CAP, "%s/sweeps/.scheduler", x->spec->dir);
}

/* The process that a sweep started last; false: none did. */
static bool marked(struct explore *x, struct explore_mark *mark)
{
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	mark_path(x, path);
	hd_arena_init(&arena, 0);
	bool good = !hd_file_read_all(x->spec->fs, path, &arena, MARK_BYTES, &bytes, &len, NULL) &&
		!hd_json_parse(&arena, path, (const char *)bytes, len, &json, NULL) &&
		!hd_json_get_i64(json, "pid", 1, INT32_MAX, &mark->pid, NULL) &&
		!hd_json_get_i64(json, "began", 0, INT64_MAX, &mark->began, NULL);
	hd_arena_finish(&arena);
	return good;
}

/* Another process may have got its number meanwhile, one of a user's. */
static bool is_there(const struct explore_mark *mark) { return mark->pid &&
	(int64_t)hd_pid_began((int)mark->pid) == mark->began; }

static enum hd_err put_mark(struct explore *x, int pid, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], text[MARK_BYTES];

	x->mark = (struct explore_mark){ pid, (int64_t)hd_pid_began(pid) };
	mark_path(x, path);
	int len = snprintf(text, sizeof text, "{\"pid\":%d,\"began\":%lld}\n", pid, (long long)x->mark.began);
	return hd_file_write_atomic(x->spec->fs, path, text, (size_t)len, diag);
}

/* One whose sweep was killed as it had started it is in no mark: it writes into the log of those alone. */
static bool writes_our_log(struct explore *x, int64_t pid)
{
	char path[HD_PATH_CAP], error[40];
	struct hd_stat log, to;

	snprintf(path, sizeof path, "%s/sweeps/.scheduler.log", x->spec->dir);
	snprintf(error, sizeof error, "/proc/%lld/fd/2", (long long)pid);
	return !hd_fs_stat(x->spec->fs, path, &log, NULL) && !hd_fs_stat(x->spec->fs, error, &to, NULL) &&
		log.kind == HD_FILE_REGULAR && to.kind == log.kind &&
		to.inode == log.inode && to.device == log.device;
}

static enum hd_err ask(struct explore *x, const char *method, const char *target, const char *body,
	const struct hd_json **answer, struct hd_diag *diag)
{
	const struct hd_http_call call = { x->spec->dir, method, target, body, HD_EXPLORE_ASK_NS };

	hd_arena_reset(&x->scratch);
	return hd_http_ask(&call, &x->scratch, answer, diag);
}

static enum hd_err spawn(struct explore *x, struct hd_diag *diag)
{
	const struct hd_explore_spec *s = x->spec;
	const char *argv[] = { "/proc/self/exe", "serve", "--dir", s->dir, "--pool", s->pools, "--policy",
		s->policy, "--round", s->round, NULL };
	struct hd_file log = { 0 };
	struct hd_proc_self self;
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/sweeps/.scheduler.log", s->dir);
	enum hd_err err = hd_file_open(s->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &log,
		diag);
	if (err)
		return err;
	/* that a sweep starts one here is written down before it does */
	hd_proc_self(&self);
	err = put_mark(x, (int)self.pid, diag);
	x->mark = (struct explore_mark){ 0, 0 };
	(void)HD_FAILPOINT(SWEEP_SPAWN);
	if (!err)
		err = hd_proc_spawn(&x->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id,
			.err = log.id }, &x->serving, diag);
	(void)!hd_file_close(&log, NULL);
	(void)HD_FAILPOINT(SWEEP_MARK);
	return err ? err : put_mark(x, x->serving.pid, diag);
}

/* One that another process of ours has just started may be in the way: then that one is taken. */
static enum hd_err start(struct explore *x, struct hd_diag *diag)
{
	const int64_t until = hd_clock_now_ns(x->spec->clock) + STARTS_NS;
	const struct hd_json *answer;
	int code = 0;
	enum hd_err err = spawn(x, diag);

	while (!err && ask(x, "GET", "/v1/status", NULL, &answer, NULL)) {
		if (hd_proc_wait(&x->serving, 0, &code, NULL) != HD_E_AGAIN) {
			x->serving = (struct hd_proc){ 0 };
			if (!ask(x, "GET", "/v1/status", NULL, &answer, NULL))
				break;
			return hd_fail(diag, hd_err_of_exit(code),
				"the scheduler that was started in %s ended with exit code %d: "
				"%s/sweeps/.scheduler.log says why", x->spec->dir, code, x->spec->dir);
		}
		if (hd_clock_now_ns(x->spec->clock) > until)
			return hd_fail(diag, HD_E_AGAIN,
				"the scheduler that was started in %s does not answer",
				x->spec->dir);
		if ((err = x->spec->stop(x->spec->user)))
			return err;
		hd_clock_wait_until(x->spec->clock, hd_clock_now_ns(x->spec->clock) + PAUSE_NS);
	}
	if (!err)
		explore_say(x, UINT32_MAX, "scheduler started in %s with devices %s", x->spec->dir,
			x->spec->pools);
	return err;
}

enum hd_err explore_meet(struct explore *x, struct hd_diag *diag)
{
	const struct hd_json *answer;
	struct hd_stat stat;
	char path[HD_PATH_CAP];
	const bool was = marked(x, &x->mark);
	int64_t pid = 0;
	struct hd_diag why = { "" };
	const int64_t until = hd_clock_now_ns(x->spec->clock) + STARTS_NS;
	enum hd_err err;

	/* one that dies as it is asked is none the next time */
	while ((err = ask(x, "GET", "/v1/status", NULL, &answer, &why)) == HD_E_PEERLOST &&
		hd_clock_now_ns(x->spec->clock) < until && !x->spec->stop(x->spec->user))
		hd_clock_wait_until(x->spec->clock, hd_clock_now_ns(x->spec->clock) + PAUSE_NS);
	if (!err) {
		bool known = !hd_json_get_i64(answer, "pid", 1, INT32_MAX, &pid, NULL) &&
			pid == x->mark.pid && is_there(&x->mark);
		x->mine = known || (pid && writes_our_log(x, pid));
		return x->mine && !known ? put_mark(x, (int)pid, diag) : HD_OK;
	}
	if (err != HD_E_NOTFOUND)
		return hd_fail(diag, err, "%s", why.text);
	snprintf(path, sizeof path, "%s/jobs.sqlite", x->spec->dir);
	if (!was && !hd_fs_stat(x->spec->fs, path, &stat, NULL))
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s is the folder of a scheduler that does not serve now: start it (`heddle serve "
			"--dir %s "
			"--pool ...`), or give the sweep a folder of its own", x->spec->dir, x->spec->dir);
	x->mine = true;
	return start(x, diag);
}

/* Its own is started again; another one is waited for. */
enum hd_err explore_ask(struct explore *x, const char *method, const char *target, const char *body,
	const struct hd_json **answer, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = ask(x, method, target, body, answer, &why);

	if (err == HD_E_NOTFOUND && !strncmp(why.text, "no scheduler serves", 19)) {
		if (x->mine) {
			int code;
			if (x->serving.host && hd_proc_wait(&x->serving, 0, &code, NULL) != HD_E_AGAIN)
				x->serving = (struct hd_proc){ 0 };
			err = start(x, diag);
			return err ? err : HD_E_AGAIN;
		}
		if (!x->away)
			explore_say(x, UINT32_MAX, "waits: %s", why.text);
		x->away = true;
		return HD_E_AGAIN;
	}
	if (err == HD_E_PEERLOST)
		return HD_E_AGAIN;                /* asked again: each order has its key */
	x->away = false;
	return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

enum hd_err explore_devices(struct explore *x, uint32_t *n, struct hd_diag *diag)
{
	const struct hd_json *answer, *list = NULL;
	enum hd_err err = explore_ask(x, "GET", "/v1/pools", NULL, &answer, diag);

	if (!err)
		err = hd_json_get(answer, "devices", HD_JSON_ARRAY, &list, diag);
	if (!err)
		*n = (uint32_t)hd_json_count(list);
	return err;
}

void explore_part(struct explore *x, bool drain)
{
	const int64_t until = hd_clock_now_ns(x->spec->clock) + ENDS_NS;
	const struct hd_json *answer;

	if (!x->mine)
		return;
	(void)!ask(x, "POST", "/v1/stop", drain ? "{\"drain\":true}" : "{}", &answer, NULL);
	while (!ask(x, "GET", "/v1/status", NULL, &answer, NULL) && hd_clock_now_ns(x->spec->clock) < until)
		hd_clock_wait_until(x->spec->clock, hd_clock_now_ns(x->spec->clock) + PAUSE_NS);
	if (x->serving.host) {
		int code;
		(void)!hd_proc_wait(&x->serving, ENDS_NS, &code, NULL);
	}
	/* one that another process of ours started: it answers no more before it has ended */
	while (is_there(&x->mark) && hd_pid_lives((int)x->mark.pid) &&
		hd_clock_now_ns(x->spec->clock) < until)
		hd_clock_wait_until(x->spec->clock, hd_clock_now_ns(x->spec->clock) + PAUSE_NS);
}
