#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sys/failpoint.h"
#include "driver/control.h"
#include "daemon/daemon_int.h"

/* Orders, carried out. Each may come twice: what is there already is not started again. */

static enum hd_err open_log(struct hd_daemon *d, const char *run, const char *name, struct hd_file *log)
{
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/log/%s.log", run, name);
	return hd_file_open(d->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, log, NULL);
}

static enum hd_err spawn(struct hd_daemon *d, const char *const *argv, const char *run, const char *name,
	struct hd_proc *proc, struct hd_diag *diag)
{
	struct hd_file log = { 0 };
	enum hd_err err = open_log(d, run, name, &log);

	if (err)
		return hd_fail(diag, err, "%s/log/%s.log cannot be opened", run, name);
	(void)HD_FAILPOINT(DAEMON_SPAWN_BEFORE);
	err = hd_proc_spawn(&d->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id,
		.err = log.id }, proc, diag);
	(void)HD_FAILPOINT(DAEMON_SPAWN_AFTER);
	(void)!hd_file_close(&log, NULL);
	return err;
}

static bool runs(struct hd_proc *proc)
{
	int code;

	if (!proc->host)
		return false;
	if (hd_proc_wait(proc, 0, &code, NULL) == HD_E_AGAIN)
		return true;
	*proc = (struct hd_proc){ 0 };
	return false;
}

/* A holder that has not written its lease yet counts as this lease's. */
bool daemon_is_coordinated(struct hd_daemon *d, struct watch *w)
{
	struct hd_pid_lock_holder holder = { 0 };
	char path[HD_PATH_CAP];

	if (runs(&w->proc) && w->proc_lease == w->lease)
		return true;
	snprintf(path, sizeof path, "%s/" HD_RUN_PID_LOCK, w->run);
	return hd_pid_lock_look(d->fs, path, &holder, NULL) != HD_E_NOTFOUND &&
		(!holder.pid || holder.lease == w->lease);
}

/* A coordinator of an earlier lease that took over late: a run has one coordinator, and the end of that one
 * would count for no lease. */
static bool send_older_away(struct hd_daemon *d, struct watch *w)
{
	struct hd_pid_lock_holder holder = { 0 };
	char path[HD_PATH_CAP];
	bool mine = runs(&w->proc);

	if (mine)
		(void)!hd_proc_signal(&w->proc, HD_PROC_TERM, NULL);
	snprintf(path, sizeof path, "%s/" HD_RUN_PID_LOCK, w->run);
	if (hd_pid_lock_look(d->fs, path, &holder, NULL) == HD_E_NOTFOUND)
		return mine;
	if (holder.pid && !mine)
		(void)!hd_pid_signal(holder.pid, HD_PROC_TERM);
	return true;
}

enum hd_err daemon_ask_run(struct hd_daemon *d, struct watch *w, const char *ask,
	const struct hd_json **answer)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(w->run, "run.sock", addr, NULL);

	if (!err)
		err = hd_control_ask(addr, ask, w->silent % HD_DAEMON_PATIENT ? HD_DAEMON_RETRY_NS :
			HD_DAEMON_ASK_NS, &d->scratch, answer, NULL);
	/* others are answers, or it does not listen yet */
	w->silent = err == HD_E_PEERLOST ? w->silent + 1 : 0;
	return err;
}

static void act_start(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	const char *argv[] = { "/proc/self/exe", "serve", "--job", w->run, "--workers", NULL, "-q", NULL };
	char path[HD_PATH_CAP], text[96], n[16];
	struct hd_diag diag = { "" };
	struct hd_run_end end;

	if (daemon_is_coordinated(d, w) || send_older_away(d, w))
		return;                           /* the order comes again */
	/* after the lock was seen free: a driver lets it go when its end is written down */
	if (!hd_run_end_get(d->fs, w->run, &end, NULL) && end.lease == o->lease)
		return;                           /* it has ended: the next look says so */
	snprintf(n, sizeof n, "%u", o->n);
	argv[5] = n;
	snprintf(path, sizeof path, "%s/" HD_RUN_LEASE, w->run);
	int len = snprintf(text, sizeof text, "{\"job\":%llu,\"lease\":%u,\"for_s\":%.3f}\n",
		(unsigned long long)o->job, o->lease,
		daemon_lease_s(d));
	enum hd_err err = hd_file_write_atomic(d->fs, path, text, (size_t)len, &diag);
	if (!err)
		err = spawn(d, argv, w->run, "coordinator", &w->proc, &diag);
	w->proc_lease = o->lease;
	if (err)
		daemon_log(d, "warning", o->job, diag.text);
	/* an order that comes again does not begin the timeout again */
	if (isnan(w->alone_s))
		w->alone_s = daemon_now_s(d);
}

static void act_worker(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	char lock[HD_PATH_CAP], name[96], slow[32], until[32];
	const char *argv[] = { "/proc/self/exe", "worker", "--join", w->run, "--devices", "1", "--hold", lock,
		"-q", NULL, NULL, NULL, NULL, NULL };
	struct device_slot *s = &d->slot[o->device];
	struct hd_pid_lock_holder holder = { 0 };
	struct hd_diag diag = { "" };
	double by = hd_pools_slow(d->spec->pools, o->device);

	daemon_pid_lock_path(d, o->device, lock);
	hd_pools_device(d->spec->pools, o->device, name);
	bool there = runs(&s->proc) || hd_pid_lock_look(d->fs, lock, &holder, NULL) != HD_E_NOTFOUND;
	if (!there) {
		uint64_t last = 0;
		size_t n = 9;
		if (by > 1) {
			snprintf(slow, sizeof slow, "%.6g", by);
			argv[n++] = "--slow";
			argv[n++] = slow;
		}
		enum hd_err err = hd_run_until_get(d->fs, w->run, &last, &diag);
		if (!err && last) {
			snprintf(until, sizeof until, "%llu", (unsigned long long)last);
			argv[n++] = "--steps";
			argv[n++] = until;
		}
		if (!err)
			err = spawn(d, argv, w->run, name, &s->proc, &diag);
		if (!err)
			err = hd_pools_limit(d->spec->pools, o->device, s->limited = s->proc.pid, &diag);
		if (err)
			daemon_log(d, "warning", o->job, diag.text);
		there = s->proc.host != NULL;
		s->job = o->job;
	}
	s->there = there;
	daemon_queue(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS, .device = o->device,
		.job = s->job ? s->job : holder.job, .ok = there,
		.code = -1 });
}

static void signal_device(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what)
{
	struct hd_pid_lock_holder holder;
	char path[HD_PATH_CAP];

	daemon_pid_lock_path(d, device, path);
	if (runs(&d->slot[device].proc))
		(void)!hd_proc_signal(&d->slot[device].proc, what, NULL);
	else if (!hd_pid_lock_look(d->fs, path, &holder, NULL) && holder.pid)
		(void)!hd_pid_signal(holder.pid, what);
}

static void act_scale(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	(void)d;
	w->scale = o->n;
	w->asked_s = -INFINITY;
}

static void act_leave(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	(void)w;
	signal_device(d, o->device, HD_PROC_TERM);
}

static void act_stop(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	const struct hd_json *answer;
	struct hd_run_end end;

	(void)o;
	w->asked_s = -INFINITY;
	if (!hd_run_end_get(d->fs, w->run, &end, NULL) && end.lease == w->lease)
		return;
	if (daemon_ask_run(d, w, "{\"do\":\"stop\"}", &answer) == HD_OK || daemon_is_coordinated(d, w))
		return;
	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++)
		if (d->slot[v].there && d->slot[v].job == w->job)
			return;                   /* its workers may have no coordinator for a while */
	daemon_queue(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_ENDED, .job = w->job,
		.lease = w->lease, .code = 75, .step = w->step });
}

/* Workers first: one of them would take the coordinator's place. */
static void act_kill(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	struct hd_pid_lock_holder holder;
	char path[HD_PATH_CAP];

	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++)
		if (d->slot[v].there && d->slot[v].job == o->job)
			signal_device(d, v, HD_PROC_KILL);
	snprintf(path, sizeof path, "%s/" HD_RUN_PID_LOCK, w->run);
	if (runs(&w->proc))
		(void)!hd_proc_signal(&w->proc, HD_PROC_KILL, NULL);
	else if (!hd_pid_lock_look(d->fs, path, &holder, NULL) && holder.pid)
		(void)!hd_pid_signal(holder.pid, HD_PROC_KILL);
	w->alone_s = -INFINITY;                   /* no takeover */
}

static void (*const act[HD_DISPATCH_DO_NKINDS])(struct hd_daemon *, struct watch *,
	const struct hd_dispatch_out *) = {
	[HD_DISPATCH_DO_START] = act_start, [HD_DISPATCH_DO_WORKER] = act_worker,
		[HD_DISPATCH_DO_SCALE] = act_scale, [HD_DISPATCH_DO_LEAVE] = act_leave,
	[HD_DISPATCH_DO_STOP] = act_stop, [HD_DISPATCH_DO_KILL] = act_kill,
};

void daemon_act(struct hd_daemon *d, const struct hd_dispatch_out *o)
{
	struct watch *w;

	if (!act[o->kind])
		return;
	(void)HD_FAILPOINT(DAEMON_ORDER);
	if (!o->job) {                            /* a worker of no job */
		signal_device(d, o->device, HD_PROC_TERM);
		return;
	}
	w = daemon_watch(d, o->job, o->lease);
	if (w)
		act[o->kind](d, w, o);
}
