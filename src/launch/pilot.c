#include "launch/pilot.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "launch/task_env.h"

enum { ARGS = 12 + HD_PILOT_EXTRA };
/* what notice says of the end of a node: short enough that it leaves at once */
#define NOTICE_NS INT64_C(10000000000)
/* in the run's folder, once its coordinator can be reached (driver/driver.h) */
#define LISTENS "listen"

static int64_t now(const struct hd_pilot *p) { return hd_clock_now_ns(p->spec.clock); }

static void path_of(const struct hd_pilot *p, const char *what, char path[HD_PATH_CAP])
{
	snprintf(path, HD_PATH_CAP, "%.3000s/%s%s", p->spec.dir, p->name, what);
}

/* Those of an earlier process that had the same number on this machine are none of this one's. */
static void forget_files(const struct hd_pilot *p)
{
	static const char *const files[] = { ".state", ".order", ".notice" };
	char path[HD_PATH_CAP];

	for (size_t i = 0; p->name[0] && i < sizeof files / sizeof *files; i++) {
		path_of(p, files[i], path);
		(void)!hd_fs_unlink(p->spec.fs, path, NULL);
	}
}

/* ---- begin */

static const char *value_of(char *const *environment, const char *name)
{
	const size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, n) && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

/* A batch job of Slurm is named as squeue shows it. */
static void name_place(struct hd_pilot *p)
{
	char *const *env = p->spec.environment;
	const char *array = value_of(env, "SLURM_ARRAY_JOB_ID"), *index = value_of(env,
		"SLURM_ARRAY_TASK_ID"),
		*job = value_of(env, "SLURM_JOB_ID");

	if (array && index)
		snprintf(p->is.place, sizeof p->is.place, "Slurm job %.30s_%.20s", array, index);
	else if (job)
		snprintf(p->is.place, sizeof p->is.place, "Slurm job %.30s", job);
}

enum hd_err hd_pilot_open(struct hd_pilot *pilot, const struct hd_pilot_spec *spec, struct hd_diag *diag)
{
	struct hd_proc_self self;
	struct hd_task_env task;

	if (!hd_pilot_is_folder(spec->fs, spec->dir))
		return hd_fail(diag, HD_E_NOTFOUND, "%s is no folder of a scheduler's pilots", spec->dir);
	*pilot = (struct hd_pilot){ .spec = *spec, .is = { .code = -1 }, .dirty = true };
	pilot->heard_ns = now(pilot);
	hd_proc_self(&self);
	snprintf(pilot->name, sizeof pilot->name, "%.64s-%u", self.host[0] == '.' || self.host[0] == '-' ?
		"node" : self.host, self.pid);
	assert(hd_name_valid(pilot->name));
	enum hd_err err = hd_task_env_read(&task, spec->environment, diag);
	if (err)
		return err;
	snprintf(pilot->is.node, sizeof pilot->is.node, "%s", *task.node ? task.node : self.host);
	name_place(pilot);
	forget_files(pilot);
	snprintf(pilot->notice, sizeof pilot->notice, "HEDDLE_NOTICE_FILE=%.3000s/%s.notice", spec->dir,
		pilot->name);
	return hd_tie_open(&pilot->tie, diag);
}

/* ---- its worker */

static bool can_start(const struct hd_pilot *p)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/" LISTENS, p->order.run);
	return !hd_fs_stat(p->spec.fs, path, &stat, NULL);
}

static void has_none(struct hd_pilot *p, int code)
{
	p->worker = (struct hd_proc){ 0 };
	p->starts = false;
	p->is.job = 0;
	p->is.lease = 0;
	p->is.worker = 0;
	p->is.code = code;
	p->dirty = true;
}

static enum hd_err spawn(struct hd_pilot *p)
{
	const struct hd_pilot_spec *spec = &p->spec;
	const char *argv[ARGS] = { spec->program, "worker", "--join", p->order.run, "--far", "-q" };
	const char *env[] = { p->notice, NULL };
	struct hd_file log = { 0 };
	char path[HD_PATH_CAP];
	size_t n = 6;

	for (uint32_t i = 0; i < spec->nextra; i++)
		argv[n++] = spec->extra[i];
	if (p->order.until) {
		snprintf(p->until, sizeof p->until, "%llu", (unsigned long long)p->order.until);
		argv[n++] = "--steps";
		argv[n++] = p->until;
	}
	argv[n] = NULL;
	snprintf(path, sizeof path, "%s/log/%s.log", p->order.run, p->order.device);
	enum hd_err err = hd_file_open(spec->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &log,
		NULL);
	if (err)
		return err;
	struct hd_spawn how = { .argv = argv, .env = env, .in = -1, .out = log.id, .err = log.id,
		.tie = &p->tie };
	err = hd_proc_spawn(spec->host, &how, &p->worker, NULL);
	(void)!hd_file_close(&log, NULL);
	return err;
}

static void start(struct hd_pilot *p)
{
	if (!can_start(p)) {
		if (now(p) - p->asked_ns >= HD_PILOT_START_NS)
			has_none(p, hd_err_exit(HD_E_PEERLOST));
		return;
	}
	if (spawn(p)) {
		has_none(p, hd_err_exit(HD_E_REFUSED));
		return;
	}
	p->starts = false;
	p->is.worker = p->worker.pid;
	p->dirty = true;
}

static void ask_to_leave(struct hd_pilot *p)
{
	if (p->starts)
		has_none(p, hd_err_exit(HD_E_PREEMPTED));
	/* once that it has notice, a signal would be the second request: leave at once */
	else if (p->worker.host && !p->is.leaving)
		(void)!hd_proc_signal(&p->worker, HD_PROC_TERM, NULL);
}

static void reap(struct hd_pilot *p)
{
	int code = -1;

	if (p->worker.host && hd_proc_wait(&p->worker, 0, &code, NULL) != HD_E_AGAIN)
		has_none(p, code);
}

/* ---- orders */

static void begin_work(struct hd_pilot *p)
{
	if (p->is.job || p->is.leaving)
		return;                           /* rule 2: the state says so */
	p->is.job = p->order.job;
	p->is.lease = p->order.lease;
	p->is.code = -1;
	p->starts = true;
	p->asked_ns = now(p);
}

static void obey(struct hd_pilot *p, const struct hd_pilot_order *order)
{
	p->order = *order;
	p->is.n = order->n;
	p->dirty = true;
	switch (order->what) {
	case HD_PILOT_REST:
		break;
	case HD_PILOT_WORK:
		begin_work(p);
		break;
	case HD_PILOT_LEAVE:
		ask_to_leave(p);
		break;
	case HD_PILOT_KILL:
		if (p->starts)
			has_none(p, 137);
		else if (p->worker.host)
			(void)!hd_proc_signal(&p->worker, HD_PROC_KILL, NULL);
		break;
	case HD_PILOT_GO:
		p->asked_to_go = true;
		ask_to_leave(p);
		break;
	case HD_PILOT_NWHATS:
		break;
	}
}

static void hear(struct hd_pilot *p)
{
	struct hd_pilot_scheduler heard;
	struct hd_pilot_order order;
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%.3000s/" HD_PILOT_SCHEDULER, p->spec.dir);
	if (!hd_pilot_scheduler_read(&heard, p->spec.fs, path, NULL)) {
		if (heard.beat != p->heard.beat || heard.ended != p->heard.ended)
			p->heard_ns = now(p);
		p->heard = heard;
	}
	path_of(p, ".order", path);
	if (!hd_pilot_order_read(&order, p->spec.fs, path, NULL) && order.n > p->is.n)
		obey(p, &order);
}

/* ---- the end */

static void leave(struct hd_pilot *p)
{
	char text[256], path[HD_PATH_CAP];

	p->is.leaving = p->dirty = true;
	if (p->starts)
		has_none(p, hd_err_exit(HD_E_PREEMPTED));
	if (!p->worker.host)
		return;
	const size_t n = p->spec.notice(hd_clock_wall_ns(p->spec.clock) + NOTICE_NS, text, sizeof text);
	path_of(p, ".notice", path);
	if (hd_file_write_atomic(p->spec.fs, path, text, n, NULL))
		(void)!hd_proc_signal(&p->worker, HD_PROC_TERM, NULL);
}

static bool is_alone(const struct hd_pilot *p)
{
	return now(p) - p->heard_ns >= (p->heard.ended ? HD_PILOT_ENDED_NS : HD_PILOT_ALONE_NS);
}

static enum hd_err write_state(struct hd_pilot *p, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	if (!p->dirty && now(p) - p->wrote_ns < HD_PILOT_BEAT_NS)
		return HD_OK;
	p->is.beat++;
	p->wrote_ns = now(p);
	path_of(p, ".state", path);
	enum hd_err err = hd_pilot_state_write(&p->is, p->spec.fs, path, diag);
	p->dirty = err != HD_OK;
	/* a file system that does not answer for a while ends no training */
	return err && p->worker.host ? HD_OK : err;
}

enum hd_err hd_pilot_turn(struct hd_pilot *p, bool stop, struct hd_diag *diag)
{
	hear(p);
	reap(p);
	if (stop && !p->is.leaving)
		leave(p);
	if (p->starts)
		start(p);
	if (!p->is.job && (p->is.leaving || p->asked_to_go || is_alone(p)))
		return p->is.leaving ? HD_E_PREEMPTED : HD_OK;
	enum hd_err err = write_state(p, diag);
	return err ? err : HD_E_AGAIN;
}

void hd_pilot_close(struct hd_pilot *p)
{
	hd_tie_cut(&p->tie);
	if (p->worker.host)
		hd_proc_finish(&p->worker);
	forget_files(p);
}
