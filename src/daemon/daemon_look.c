#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "sys/failpoint.h"
#include "job/job.h"
#include "daemon/daemon_int.h"

/* What is there: workers on devices by their pid locks, runs by those of their coordinators, by what these
 * answer, and by what they left. */

enum { HD_END_BYTES = 2048, HD_LEASE_BYTES = 256, HD_JOB_BYTES = 8 << 20 };
#define HD_ASK_SOON_S 0.9                         /* between two questions to a run that changes */
#define HD_ASK_LATER_S 4.9                        /* ... to one that goes on */

static enum hd_err read_file(struct hd_fs *fs, const char *run, const char *name, size_t most,
	struct hd_arena *arena, const struct hd_json **json,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/%s", run, name);
	enum hd_err err = hd_file_read_all(fs, path, arena, most, &bytes, &len, diag);
	return err ? err : hd_json_parse(arena, path, (const char *)bytes, len, json, diag);
}

enum hd_err hd_run_lease(struct hd_fs *fs, const char *run, struct hd_run_held *held, struct hd_diag *diag)
{
	const struct hd_json *json;
	struct hd_arena arena;
	int64_t of = 0, number = 0;
	double for_s = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = read_file(fs, run, HD_RUN_LEASE, HD_LEASE_BYTES, &arena, &json, diag);
	if (!err)
		err = hd_json_get_i64(json, "job", 1, INT64_MAX, &of, diag);
	if (!err)
		err = hd_json_get_i64(json, "lease", 1, UINT32_MAX, &number, diag);
	if (!err && hd_json_find(json, "for_s"))
		err = hd_json_get_f64(json, "for_s", &for_s, diag);
	if (!err && !(for_s >= 0 && for_s < 1e9))
		err = hd_fail(diag, HD_E_INPUT, "%s/" HD_RUN_LEASE ": for_s is %g: seconds, from 0 on", run,
			for_s);
	hd_arena_finish(&arena);
	if (!err)
		*held = (struct hd_run_held){ (uint64_t)of, (uint32_t)number, for_s };
	return err;
}

enum hd_err hd_run_end_put(struct hd_fs *fs, const char *run, const struct hd_run_end *end,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP], buf[HD_END_BYTES];
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_fixed(&text, buf, sizeof buf);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "lease", end->lease);
	hd_json_put_i64(&w, "exit", end->exit);
	hd_json_put_i64(&w, "step", (int64_t)end->step);
	hd_json_put_i64(&w, "steps", (int64_t)end->steps);
	hd_json_put_text(&w, "digest", end->digest);
	hd_json_put_text(&w, "error", end->error);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	snprintf(path, sizeof path, "%s/" HD_RUN_END, run);
	return hd_file_write_atomic(fs, path, text.at, text.len, diag);
}

enum hd_err hd_run_end_get(struct hd_fs *fs, const char *run, struct hd_run_end *end, struct hd_diag *diag)
{
	const struct hd_json *json;
	const char *digest = "", *error = "";
	struct hd_arena arena;
	int64_t lease = 0, code = 0, step = 0, steps = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = read_file(fs, run, HD_RUN_END, HD_END_BYTES, &arena, &json, diag);
	if (!err)
		err = hd_json_get_i64(json, "lease", 1, UINT32_MAX, &lease, diag);
	if (!err)
		err = hd_json_get_i64(json, "exit", 0, 255, &code, diag);
	if (!err)
		err = hd_json_get_i64(json, "step", 0, INT64_MAX, &step, diag);
	if (!err && hd_json_find(json, "steps"))
		err = hd_json_get_i64(json, "steps", 0, INT64_MAX, &steps, diag);
	if (!err)
		err = hd_json_get_text(json, "digest", &digest, diag);
	if (!err)
		err = hd_json_get_text(json, "error", &error, diag);
	if (!err) {
		*end = (struct hd_run_end){ .lease = (uint32_t)lease, .exit = (int)code,
			.step = (uint64_t)step, .steps = (uint64_t)steps };
		snprintf(end->digest, sizeof end->digest, "%s", digest);
		snprintf(end->error, sizeof end->error, "%s", error);
	}
	hd_arena_finish(&arena);
	return err;
}

/* ---- devices ---- */

void daemon_pid_lock_path(const struct hd_daemon *d, uint32_t device, char path[HD_PATH_CAP])
{
	char name[96];

	hd_pools_device(d->spec->pools, device, name);
	snprintf(path, HD_PATH_CAP, "%s/devices/%s", d->spec->dir, name);
}

static void look_at_device(struct hd_daemon *d, uint32_t v)
{
	struct device_slot *s = &d->slot[v];
	struct hd_pid_lock_holder holder;
	int code = -1;
	bool mine = false, was = s->there;
	struct hd_diag diag = { "" };
	uint64_t job = s->job;

	if (s->proc.host) {
		mine = hd_proc_wait(&s->proc, 0, &code, NULL) == HD_E_AGAIN;
		if (!mine)
			s->proc = (struct hd_proc){ 0 };
	}
	bool held = daemon_device_holder(d, v, &holder) != HD_E_NOTFOUND;
	if (held && holder.pid) {
		s->job = holder.job;              /* also if its daemon died before it was limited */
		if (holder.pid != s->limited && hd_pools_limit(d->spec->pools, v, holder.pid, &diag))
			daemon_log(d, "warning", holder.job, diag.text);
		s->limited = holder.pid;
	}
	s->there = mine || held;
	if (!s->there)
		s->job = s->asked = s->killed = 0;
	if (s->there == was && s->job == job)
		return;
	daemon_feed_process(d, v, s->there ? s->job : job, s->there, mine ? -1 : code);
}

/* ---- runs ---- */

static void over(struct hd_daemon *d, struct watch *w, const struct hd_run_end *end)
{
	struct hd_diag diag = { "" };
	bool early = end->step < end->steps;

	(void)HD_FAILPOINT(DAEMON_OVER);
	if (end->step > w->step)
		w->step = end->step;
	if (daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_ENDED, .job = w->job,
		.lease = w->lease, .code = end->exit, .step = end->step,
		.early = early, .text = end->error }, NULL, end->exit == 0 && !early ? end->digest : NULL,
		&diag))
		daemon_log(d, "warning", w->job, diag.text);
}

double daemon_lease_s(const struct hd_daemon *d)
{
	double alone_s = d->spec->alone_s > 0 ? d->spec->alone_s : HD_DAEMON_ALONE_S;

	return fmax(alone_s, HD_DAEMON_ROUNDS * hd_dispatch_round_s(d->dispatch));
}

/* Of a run with a coordinator: how far it is, and how many take part. To be asked is to have its
 * lease for another while. */
static bool ask(struct hd_daemon *d, struct watch *w, uint32_t *n)
{
	const struct hd_json *answer;
	int64_t step = 0, members = 0;
	char text[64];

	snprintf(text, sizeof text, "{\"do\":\"status\",\"for_s\":%.3f}", daemon_lease_s(d));
	hd_arena_reset(&d->scratch);
	if (daemon_ask_run(d, w, text, &answer) || hd_json_get_i64(answer, "step", 0, INT64_MAX, &step,
		NULL) ||
		hd_json_get_i64(answer, "members", 0, INT32_MAX, &members, NULL))
		return false;
	daemon_paid_heard(&w->paid, answer);
	daemon_fleet_heard(d, w, answer);
	w->step = (uint64_t)step;
	*n = (uint32_t)members;
	return true;
}

static void tell_scale(struct hd_daemon *d, struct watch *w)
{
	const struct hd_json *answer;
	char text[64];

	snprintf(text, sizeof text, "{\"do\":\"scale\",\"workers\":%u}", w->scale);
	hd_arena_reset(&d->scratch);
	enum hd_err err = daemon_ask_run(d, w, text, &answer);
	if (!err || err == HD_E_INVAL)
		w->scale = 0;
}

static void see(struct hd_daemon *d, struct watch *w, uint32_t n)
{
	double now_s = daemon_now_s(d);
	struct hd_diag diag = { "" };

	w->reported = true;
	w->n = n;
	w->reported_s = now_s;
	if (daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SEEN, .job = w->job,
		.lease = w->lease, .step = w->step, .n = n }, NULL, NULL,
		&diag))
		daemon_log(d, "warning", w->job, diag.text);
}

static bool has_workers(const struct hd_daemon *d, uint64_t job)
{
	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++)
		if (d->slot[v].there && d->slot[v].job == job)
			return true;
	return false;
}

/* Workers miss a coordinator after workers.detect, and try to take over after as much again. */
double daemon_takeover_s(struct hd_daemon *d, const char *run)
{
	double takeover_s = (double)HD_DAEMON_NO_COORDINATOR_NS * 1e-9;
	struct hd_arena arena;
	struct hd_text warnings;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	hd_text_init(&warnings, &arena);
	snprintf(path, sizeof path, "%s/job.resolved.json", run);
	struct hd_job *job = hd_arena_take(&arena, 1, sizeof *job);
	if (job && !hd_file_read_all(d->fs, path, &arena, HD_JOB_BYTES, &bytes, &len, NULL) &&
		!hd_job_parse(job, path, (const char *)bytes, len, NULL, 0, &arena, NULL, &warnings))
		takeover_s += 2e-9 * (double)hd_job_int(job, HD_JOB_DETECT);
	hd_arena_finish(&arena);
	return takeover_s;
}

/* No coordinator and no end.json: a worker takes over, or the run is over. */
static void look_at_uncoordinated(struct hd_daemon *d, struct watch *w)
{
	double now_s = daemon_now_s(d), takeover_s = has_workers(d, w->job) ? w->takeover_s : 2;

	if (w->alone_s < 0 && !isinf(w->alone_s))
		w->alone_s = now_s;
	if (now_s - w->alone_s < takeover_s)
		return;
	over(d, w, &(struct hd_run_end){ .exit = 137, .step = w->step,
		.error = "its coordinator died, and no worker took its place" });
}

static void look_at_run(struct hd_daemon *d, struct watch *w, bool all)
{
	const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, w->job);
	bool changes = lease && (lease->state != HD_LEASE_HELD || w->n != lease->n || w->scale ||
		!w->reported);
	double now_s = daemon_now_s(d);
	struct hd_run_end end;
	uint32_t n = w->n;

	if (!lease || lease->number != w->lease || lease->over)
		return;
	bool coordinated = daemon_is_coordinated(d, w);
	if (!daemon_run_end(d, w, &end) && end.lease == w->lease) {
		over(d, w, &end);
		return;
	}
	if (!coordinated) {
		if (w->reported || !isnan(w->alone_s))
			look_at_uncoordinated(d, w);
		return;
	}
	w->alone_s = -1;
	if (!all && now_s < w->asked_s + (changes ? HD_ASK_SOON_S : HD_ASK_LATER_S))
		return;
	w->asked_s = now_s;
	if (w->scale)
		tell_scale(d, w);
	if (ask(d, w, &n) && (!w->reported || n != w->n || all || changes ||
		now_s >= w->reported_s + hd_dispatch_round_s(d->dispatch) / 4))
		see(d, w, n);
	else if (!w->reported)
		see(d, w, 0);                     /* it is there, and starts */
}

static void forget(struct hd_daemon *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->nwatches; i++) {
		const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, d->watch[i].job);
		int code;
		bool gone = !d->watch[i].proc.host || hd_proc_wait(&d->watch[i].proc, 0, &code,
			NULL) != HD_E_AGAIN;
		if (gone)
			d->watch[i].proc = (struct hd_proc){ 0 };
		if ((lease && lease->number == d->watch[i].lease) || !gone)
			d->watch[n++] = d->watch[i];
	}
	d->nwatches = n;
}

static void tell_renewer(struct hd_daemon *d)
{
	hd_renewer_set(d->renewer, daemon_lease_s(d));
	for (uint32_t i = 0; i < d->nwatches; i++) {
		const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, d->watch[i].job);
		if (lease && lease->number == d->watch[i].lease && !lease->over)
			/* without memory for it: as without a renewer */
			(void)!hd_renewer_add(d->renewer, d->watch[i].run, d->watch[i].as ?
				d->watch[i].account.uid : HD_NO_UID, NULL);
	}
}

void daemon_look_here(struct hd_daemon *d)
{
	for (uint32_t v = 0; v < d->spec->pools->ndevices && !d->broken; v++)
		look_at_device(d, v);
}

void daemon_look(struct hd_daemon *d, bool all)
{
	d->devices->look(d);
	int64_t until = hd_clock_now_ns(d->clock) + HD_DAEMON_ASK_NS;
	for (uint32_t i = 0, n = d->nwatches; i < n && !d->broken && hd_clock_now_ns(d->clock) < until; i++)
		look_at_run(d, &d->watch[d->next_watch = (d->next_watch + 1) % d->nwatches], all);
	forget(d);
	tell_renewer(d);
}
