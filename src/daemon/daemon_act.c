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

static enum hd_err spawn(struct hd_daemon *d, const char *const *argv, const struct watch *w,
	const char *name, struct hd_proc *proc, struct hd_diag *diag)
{
	struct hd_file log = { 0 };

	enum hd_err err = daemon_lend(d, daemon_of(w), diag);
	if (err)
		return err;
	err = open_log(d, w->run, name, &log);
	daemon_unlend(daemon_of(w));
	if (err)
		return hd_fail(diag, err, "%s/log/%s.log cannot be opened", w->run, name);
	(void)HD_FAILPOINT(DAEMON_SPAWN_BEFORE);
	const struct hd_spawn how = { .argv = argv, .in = -1, .out = log.id, .err = log.id };
	err = w->as ? hd_account_spawn(&d->host, &w->account, &how, proc, diag) :
		hd_proc_spawn(&d->host, &how, proc, diag);
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
	struct hd_pid_lock_holder holder;

	if (runs(&w->proc) && w->proc_lease == w->lease)
		return true;
	return daemon_run_holder(d, w, &holder) != HD_E_NOTFOUND &&
		(!holder.pid || holder.lease == w->lease);
}

/* A coordinator of an earlier lease that took over late: a run has one coordinator, and the end of that one
 * would count for no lease. */
static bool send_older_away(struct hd_daemon *d, struct watch *w)
{
	struct hd_pid_lock_holder holder;
	bool mine = runs(&w->proc);

	if (mine)
		(void)!hd_proc_signal(&w->proc, HD_PROC_TERM, NULL);
	if (daemon_run_holder(d, w, &holder) == HD_E_NOTFOUND)
		return mine;
	if (holder.pid && !mine)
		daemon_signal(d, w->job, holder.pid, HD_PROC_TERM);
	return true;
}

enum hd_err daemon_ask_run(struct hd_daemon *d, struct watch *w, const char *ask,
	const struct hd_json **answer)
{
	enum hd_err err = hd_control_ask_run(w->run, w->as ? w->account.uid : HD_NO_UID, ask,
		w->silent % HD_DAEMON_PATIENT ? HD_DAEMON_RETRY_NS : HD_DAEMON_ASK_NS, &d->scratch, answer,
		NULL);

	/* others are answers, or it does not listen yet */
	w->silent = err == HD_E_PEERLOST ? w->silent + 1 : 0;
	return err;
}

void daemon_begin_run(struct hd_daemon *d, struct watch *w, uint32_t nworkers)
{
	char path[HD_PATH_CAP], text[96], n[16], listen[HD_ADDR_CAP], key[HD_PATH_CAP];
	const char *argv[] = { "/proc/self/exe", "serve", "--job", w->run, "--workers", n, "-q",
		d->devices->own ? "--listen" : NULL, listen, "--key", key, NULL };
	struct hd_diag diag = { "" };
	struct hd_run_end end;

	if (daemon_is_coordinated(d, w) || send_older_away(d, w) ||
		(d->devices->may_begin && !d->devices->may_begin(d, w)))
		return;                           /* the order comes again */
	/* after the lock was seen free: a driver lets it go when its end is written down */
	if (!daemon_run_end(d, w, &end) && end.lease == w->lease)
		return;                           /* it has ended: the next look says so */
	snprintf(n, sizeof n, "%u", nworkers);
	snprintf(path, sizeof path, "%s/" HD_RUN_LEASE, w->run);
	int len = snprintf(text, sizeof text, "{\"job\":%llu,\"lease\":%u,\"for_s\":%.3f}\n",
		(unsigned long long)w->job, w->lease, daemon_lease_s(d));
	enum hd_err err = daemon_lend(d, daemon_of(w), &diag);
	if (!err)
		err = hd_file_write_atomic(d->fs, path, text, (size_t)len, &diag);
	daemon_unlend(daemon_of(w));
	if (!err && d->devices->own)
		err = daemon_listen(d->devices->own(d), w, listen, key, &diag);
	if (!err)
		err = spawn(d, argv, w, "coordinator", &w->proc, &diag);
	w->proc_lease = w->lease;
	if (err)
		daemon_log(d, "warning", w->job, diag.text);
	/* an order that comes again does not begin the timeout again */
	if (isnan(w->alone_s))
		w->alone_s = daemon_now_s(d);
}

static void act_start(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	daemon_begin_run(d, w, o->n);
}

enum hd_err daemon_run_until(struct hd_daemon *d, const struct watch *w, uint64_t *until,
	struct hd_diag *diag)
{
	enum hd_err err = daemon_lend(d, daemon_of(w), diag);
	if (!err)
		err = hd_run_until_get(d->fs, w->run, until, diag);
	daemon_unlend(daemon_of(w));
	return err;
}

void daemon_work_here(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
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
	bool there = runs(&s->proc) || daemon_device_holder(d, o->device, &holder) != HD_E_NOTFOUND;
	if (!there) {
		uint64_t last = 0;
		size_t n = 9;
		if (by > 1) {
			snprintf(slow, sizeof slow, "%.6g", by);
			argv[n++] = "--slow";
			argv[n++] = slow;
		}
		enum hd_err err = daemon_run_until(d, w, &last, &diag);
		if (!err && last) {
			snprintf(until, sizeof until, "%llu", (unsigned long long)last);
			argv[n++] = "--steps";
			argv[n++] = until;
		}
		if (!err)
			err = daemon_make_lock(d, o->device, w, &diag);
		if (!err)
			err = spawn(d, argv, w, name, &s->proc, &diag);
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

static void act_work(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	d->devices->work(d, w, o);
}

/* orders come each 2 s */
enum { HD_ACT_ASKS = 30, HD_ACT_KILLS = 3 };

void daemon_signal_here(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what)
{
	struct device_slot *s = &d->slot[device];
	struct hd_pid_lock_holder holder;

	if (runs(&s->proc))
		(void)!hd_proc_signal(&s->proc, what, NULL);
	else if (what == HD_PROC_KILL && ++s->killed > HD_ACT_KILLS)
		daemon_drop_lock(d, device);
	else if (!daemon_device_holder(d, device, &holder) && holder.pid)
		daemon_signal(d, holder.job, holder.pid, what);
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
	d->devices->signal(d, o->device, HD_PROC_TERM);
}

static void act_stop(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	const struct hd_json *answer;
	struct hd_run_end end;

	(void)o;
	w->asked_s = -INFINITY;
	if (!daemon_run_end(d, w, &end) && end.lease == w->lease)
		return;
	if (daemon_ask_run(d, w, "{\"do\":\"stop\"}", &answer) == HD_OK || daemon_is_coordinated(d, w))
		return;
	if (d->devices->stop)
		d->devices->stop(d, w);
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

	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++)
		if (d->slot[v].there && d->slot[v].job == o->job)
			d->devices->signal(d, v, HD_PROC_KILL);
	if (runs(&w->proc))
		(void)!hd_proc_signal(&w->proc, HD_PROC_KILL, NULL);
	else if (!daemon_run_holder(d, w, &holder) && holder.pid)
		daemon_signal(d, w->job, holder.pid, HD_PROC_KILL);
	w->alone_s = -INFINITY;                   /* no takeover */
}

static void (*const act[HD_DISPATCH_DO_NKINDS])(struct hd_daemon *, struct watch *,
	const struct hd_dispatch_out *) = {
	[HD_DISPATCH_DO_START] = act_start, [HD_DISPATCH_DO_WORKER] = act_work,
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
		struct device_slot *s = &d->slot[o->device];
		d->devices->signal(d, o->device, d->users && ++s->asked > HD_ACT_ASKS ? HD_PROC_KILL :
			HD_PROC_TERM);
		return;
	}
	w = daemon_watch(d, o->job, o->lease);
	if (w)
		act[o->kind](d, w, o);
}
