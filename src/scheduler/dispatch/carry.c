#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/dispatch/int.h"

/* From what a job holds towards its target. Jobs in the order of their ids; each turn changes what is safe
 * now, the rest waits for what will be seen. */

bool dispatch_holds(const struct live *j, uint32_t device)
{
	for (uint32_t i = 0; i < j->lease.n; i++)
		if (j->lease.device[i] == device)
			return true;
	return false;
}

bool dispatch_wants(const struct live *j, uint32_t device)
{
	for (uint32_t i = 0; i < j->ntarget; i++)
		if (j->target[i] == device)
			return true;
	return false;
}

static bool is_free(const struct hd_dispatch *d, const struct live *j, uint32_t device)
{
	return !d->device[device].job && !d->device[device].there && dispatch_may_use(d, j, device);
}

static uint32_t count_free(const struct hd_dispatch *d, const struct live *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->ntarget; i++)
		n += is_free(d, j, j->target[i]);
	return n;
}

/* ---- leases ---- */

static void grant(struct hd_dispatch *d, struct live *j, uint32_t device)
{
	uint32_t at = j->lease.n++;

	for (; at && j->lease.device[at - 1] > device; at--)
		j->lease.device[at] = j->lease.device[at - 1];
	j->lease.device[at] = device;
	d->device[device] = (struct device){ .job = j->row.id, .type = d->device[device].type, .usable = true,
		.window = d->device[device].window, .placed = d->device[device].placed,
		.asked_s = -INFINITY, .code = -1 };
	j->lease_dirty = true;
}

static void release(struct hd_dispatch *d, struct live *j, uint32_t device)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->lease.n; i++)
		if (j->lease.device[i] != device)
			j->lease.device[n++] = j->lease.device[i];
	j->lease.n = n;
	j->lease.epoch++;
	d->device[device].job = 0;
	d->device[device].leaving = false;
	j->lease_dirty = true;
}

static enum hd_err order(struct hd_dispatch *d, struct live *j, enum hd_dispatch_out_kind kind,
	uint32_t device, uint32_t n, struct hd_diag *diag)
{
	return dispatch_put(d, &(struct hd_dispatch_out){ .kind = kind, .job = j->row.id, .device = device,
		.n = n, .lease = j->lease.number }, diag);
}

static void drain(struct hd_dispatch *d, struct live *j, enum hd_lease_event event)
{
	dispatch_measure(d, j);
	dispatch_turn(j, event);
	j->lease.until_s = d->now_s + d->set.drain_s;
	j->measuring = false;
	j->asked_s = -INFINITY;
}

static const char *names_of(struct hd_dispatch *d, const uint32_t *device, uint32_t n, char text[200])
{
	struct hd_text t;

	hd_text_fixed(&t, text, 200);
	for (uint32_t i = 0; i < n; i++)
		hd_text_addf(&t, "%s%s-%u", i ? " " : "", d->type[d->device[device[i]].type].name,
			device[i] - d->first_device[d->device[device[i]].type]);
	return text;
}

static enum hd_err begin(struct hd_dispatch *d, struct live *j)
{
	char text[200];

	j->row.leases++;
	if (j->row.started_s < 0)
		j->row.started_s = d->now_s;
	j->row_dirty = true;
	j->lease = (struct hd_dispatch_lease){ .job = j->row.id, .number = j->row.leases, .epoch = 1,
		.state = HD_LEASE_OFFERED, .since_s = d->now_s,
		.until_s = d->now_s + d->set.start_s };
	for (uint32_t i = 0; i < j->ntarget; i++)
		grant(d, j, j->target[i]);
	j->going = j->killed = j->again = j->measuring = false;
	j->n_seen = j->scaled = 0;
	j->first_step = j->row.done;
	j->asked_s = -INFINITY;
	return dispatch_note(d, j->row.id, "start", "on %s", names_of(d, j->lease.device, j->lease.n, text));
}

/* ---- the end of a run ---- */

static enum hd_err finish(struct hd_dispatch *d, struct live *j, enum hd_dispatch_state state,
	const char *why)
{
	if (j->row.state != HD_DISPATCH_OPEN)
		return HD_OK;
	j->row.state = state;
	j->row.ended_s = d->now_s;
	j->row_dirty = true;
	dispatch_withdraw(d, j);
	dispatch_settle(d, j, state == HD_DISPATCH_DONE);
	snprintf(j->row.why, sizeof j->row.why, "%s", why);
	return dispatch_note(d, j->row.id, hd_dispatch_state_name(state), "%s", why);
}

static enum hd_err failed(struct hd_dispatch *d, struct live *j, const char *text)
{
	char why[HD_DISPATCH_WHY];

	j->row.failures = j->row.done > j->first_step ? 1 : j->row.failures + 1;
	j->row_dirty = true;
	snprintf(j->row.why, sizeof j->row.why, "%s", text);
	if (j->row.failures < HD_DISPATCH_FAILURES)
		return dispatch_note(d, j->row.id, "failed_run", "%u in a row: %s", j->row.failures, text);
	snprintf(why, sizeof why, "%u runs in a row failed without a step, the last: %.120s", j->row.failures,
		text);
	return finish(d, j, HD_DISPATCH_FAILED, why);
}

/* It, or one of its workers, was asked to leave. */
static bool was_asked(const struct hd_dispatch *d, const struct live *j)
{
	bool asked = j->lease.state >= HD_LEASE_DRAIN || j->lease.state == HD_LEASE_RESIZE;

	for (uint32_t i = 0; i < j->lease.n; i++)
		asked |= d->device[j->lease.device[i]].leaving;
	return asked;
}

/* Exit codes by what the job's owner could do about them. */
enum hd_err dispatch_over(struct hd_dispatch *d, struct live *j, const struct hd_dispatch_event *e)
{
	const char *text = e->text ? e->text : "";
	bool draining = j->lease.state >= HD_LEASE_DRAIN, asked = was_asked(d, j), early = e->code == 0 &&
		e->early;
	char why[HD_DISPATCH_WHY];

	j->row.done = e->step > j->row.done ? e->step : j->row.done;
	j->seen_s = d->now_s;
	if (!draining)
		drain(d, j, HD_LEASE_ON_ENDED);
	j->lease.over = j->lease_dirty = true;
	/* it took steps before a worker of it was seen: between two looks */
	if (j->row.from_s < 0 && j->row.done > j->first_step && !draining)
		j->row.from_s = j->lease.since_s;
	dispatch_stop_counting(d, &j->row);
	j->going = false;
	j->n_seen = 0;
	j->row.exit = e->code;
	j->row_dirty = true;
	if (early) {
		snprintf(why, sizeof why, "its run ended with exit code 0 at step %llu, before its last one",
			(unsigned long long)e->step);
		text = why;
	}
	switch (early ? 75 : e->code) {
	case 0:
		j->row.failures = 0;
		return finish(d, j, HD_DISPATCH_DONE, "");
	case 2: case 3: case 4: case 5:
		return finish(d, j, HD_DISPATCH_FAILED, *text ? text :
			"its run ended with an error of the job");
	case 75: case 10:
		if (j->row.done > j->first_step)
			j->row.failures = 0;
		else if (!asked)                  /* by itself, and at once: it would again */
			return failed(d, j, *text ? text : "its run left by itself without a step");
		return dispatch_note(d, j->row.id, "left", "at step %llu%s%s",
			(unsigned long long)j->row.done, early ? ": " : "", early ? why : "");
	default:
		return j->killed || j->row.cancel ? HD_OK : failed(d, j,
			*text ? text : "its run ended without a word");
	}
}

/* One that was to end, and of which nothing runs. */
static enum hd_err end_it(struct hd_dispatch *d, struct live *j)
{
	char why[HD_DISPATCH_WHY];

	if (!j->row.timeout)
		return finish(d, j, HD_DISPATCH_CANCELLED, "somebody cancelled it");
	snprintf(why, sizeof why, "its time limit of %g s was used up at step %llu of %llu; `heddle resume` "
		"of its "
		"run directory goes on", j->row.terms.limit_s, (unsigned long long)j->row.done,
		(unsigned long long)j->row.steps);
	return finish(d, j, HD_DISPATCH_TIMEOUT, why);
}

static enum hd_err let_go(struct hd_dispatch *d, struct live *j)
{
	dispatch_turn(j, HD_LEASE_ON_GONE);
	while (j->lease.n)
		release(d, j, j->lease.device[0]);
	j->again = j->going = false;
	return j->row.cancel ? end_it(d, j) : HD_OK;
}

static enum hd_err leave_all(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool there = false;

	for (uint32_t i = 0; i < j->lease.n; i++)
		there |= d->device[j->lease.device[i]].there;
	if (!there && j->lease.over)
		return let_go(d, j);
	if ((d->now_s >= j->lease.until_s || dispatch_overdue(d, j)) && j->lease.state == HD_LEASE_DRAIN) {
		dispatch_turn(j, HD_LEASE_ON_LATE);
		j->asked_s = -INFINITY;
		if ((err = dispatch_note(d, j->row.id, "late", "it did not leave within %g s, and is killed",
			d->set.drain_s)))
			return err;
	}
	if (d->now_s < j->asked_s + AGAIN_S)
		return HD_OK;
	j->asked_s = d->now_s;
	if (j->lease.state == HD_LEASE_EXPIRED || j->lease.state == HD_LEASE_KILLED) {
		j->killed = true;
		dispatch_turn(j, HD_LEASE_ON_KILL);
		return order(d, j, HD_DISPATCH_DO_KILL, 0, 0, diag);
	}
	if (!j->lease.over)
		return order(d, j, HD_DISPATCH_DO_STOP, 0, 0, diag);
	/* the run is over: its remaining workers leave too */
	for (uint32_t i = 0; i < j->lease.n && !err; i++)
		if (d->device[j->lease.device[i]].there)
			err = order(d, j, HD_DISPATCH_DO_LEAVE, j->lease.device[i], 0, diag);
	return err;
}

/* ---- a run that goes on ---- */

static double again_s(const struct device *v)
{
	return v->leaving ? AGAIN_S : fmin(WORKER_LAST_S, WORKER_FIRST_S *
		(double)(1u << (v->starts < 8 ? v->starts : 8)));
}

/* Others of the run take part, so it goes on; it is reported once. */
static enum hd_err tell_failing(struct hd_dispatch *d, const struct live *j, uint32_t device)
{
	const struct device *v = &d->device[device];
	char name[200], last[48] = "";

	if (!j->n_seen || v->starts != WORKER_STARTS)
		return HD_OK;
	if (v->code >= 0)
		snprintf(last, sizeof last, ", the last with exit code %d", v->code);
	names_of(d, &device, 1, name);
	return dispatch_note(d, j->row.id, "failing",
		"%u workers in a row ended on %.80s before they took "
		"part%s: log/%.80s.log in the folder of its run says why", v->starts, name, last, name);
}

static enum hd_err ask_workers(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < j->lease.n && !err; i++) {
		struct device *v = &d->device[j->lease.device[i]];
		bool goes = v->there && (v->leaving || v->whose != j->row.id), comes = !v->there &&
			!v->leaving && dispatch_may_use(d, j, j->lease.device[i]);
		if (d->now_s < v->asked_s + again_s(v) || (!goes && !comes))
			continue;
		v->asked_s = d->now_s;
		if (comes) {                      /* it counts as there until its absence is reported */
			err = tell_failing(d, j, j->lease.device[i]);
			v->starts++;
			v->there = true;
			v->whose = j->row.id;
		}
		if (!err)
			err = order(d, j, goes ? HD_DISPATCH_DO_LEAVE : HD_DISPATCH_DO_WORKER,
				j->lease.device[i], 0, diag);
	}
	return err;
}

/* A worker after the other ends on a device, and none takes part: the run would wait for them for ever. */
static enum hd_err give_up(struct hd_dispatch *d, struct live *j, bool *gave_up)
{
	const struct device *worst = NULL;
	char text[120];

	*gave_up = false;
	for (uint32_t i = 0; i < j->lease.n; i++)
		if (!worst || d->device[j->lease.device[i]].starts > worst->starts)
			worst = &d->device[j->lease.device[i]];
	if (j->n_seen || !worst || worst->starts < WORKER_STARTS || worst->there)
		return HD_OK;
	*gave_up = true;
	snprintf(text, sizeof text, "workers end before they take part, the last with exit code %d",
		worst->code);
	drain(d, j, HD_LEASE_ON_LEAVE);
	j->killed = true;
	dispatch_turn(j, HD_LEASE_ON_LATE);
	bool for_all = worst->code == 2 || worst->code == 3 || worst->code == 5;
	return for_all ? finish(d, j, HD_DISPATCH_FAILED, text) : failed(d, j, text);
}

/* A job that holds a device that is wanted here, and is not about to leave it. */
static bool is_blocked(const struct hd_dispatch *d, const struct live *j)
{
	for (uint32_t i = 0; i < j->ntarget; i++) {
		const struct device *v = &d->device[j->target[i]];
		const struct live *by = v->job && v->job != j->row.id ? dispatch_find(d, v->job) : NULL;
		bool goes = by && (v->leaving || (by->lease.state >= HD_LEASE_DRAIN &&
			by->lease.state < HD_LEASE_RELEASED));
		if (by && !goes)
			return true;
	}
	return false;
}

/* By a checkpoint: it commits, leaves, and begins again where it should be. */
static enum hd_err move(struct hd_dispatch *d, struct live *j)
{
	char text[200];

	drain(d, j, HD_LEASE_ON_LEAVE);
	j->again = true;
	return dispatch_note(d, j->row.id, "move", "by a checkpoint, to %s",
		names_of(d, j->target, j->ntarget, text));
}

static enum hd_err change(struct hd_dispatch *d, struct live *j)
{
	uint32_t kept = 0, dropped = 0, missing = 0;
	bool changed = false;
	char text[200];

	for (uint32_t i = 0; i < j->lease.n; i++) {
		bool stays = dispatch_wants(j, j->lease.device[i]) && !d->device[j->lease.device[i]].leaving;
		kept += stays;
		dropped += !stays;
	}
	for (uint32_t i = 0; i < j->ntarget; i++)
		missing += !dispatch_holds(j, j->target[i]);
	if (!dropped && !missing)
		return HD_OK;
	if (!kept && missing && count_free(d, j) < missing) {
		if (!is_blocked(d, j))
			return HD_OK;             /* present workers leave by themselves */
		return move(d, j);
	}
	if (d->set.whole)
		return dropped || count_free(d, j) == missing ? move(d, j) : HD_OK;
	for (uint32_t i = 0, room = dispatch_quota_room(d, j); i < j->ntarget && room; i++)
		if (!dispatch_holds(j, j->target[i]) && is_free(d, j, j->target[i])) {
			room -= room != UINT32_MAX;
			if (!changed)
				dispatch_measure(d, j);
			grant(d, j, j->target[i]);
			changed = true;
		}
	/* a worker leaves once another one takes part */
	for (uint32_t i = 0; i < j->lease.n; i++) {
		struct device *v = &d->device[j->lease.device[i]];
		if (dispatch_wants(j, j->lease.device[i]) || v->leaving || (v->there && j->n_seen <= dropped))
			continue;
		if (!changed)
			dispatch_measure(d, j);
		v->leaving = true;
		v->asked_s = -INFINITY;
		changed = true;
	}
	if (!changed)
		return HD_OK;
	j->measuring = false;
	j->lease.epoch++;
	dispatch_turn(j, HD_LEASE_ON_CHANGED);
	return dispatch_note(d, j->row.id, "resize", "to %s", names_of(d, j->target, j->ntarget, text));
}

/* Devices that were left are free. */
static void let_go_of_left(struct hd_dispatch *d, struct live *j)
{
	for (uint32_t i = j->lease.n; i-- > 0;)
		if (d->device[j->lease.device[i]].leaving && !d->device[j->lease.device[i]].there)
			release(d, j, j->lease.device[i]);
}

static enum hd_err go_on(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	bool gave_up;

	if (!j->ntarget || j->row.cancel) {
		drain(d, j, HD_LEASE_ON_LEAVE);
		enum hd_err err = dispatch_note(d, j->row.id, "leave", "%s",
			j->row.timeout ? "its time limit" : j->row.cancel ? "cancelled" :
			j->row.terms.held ? "held" : "its devices go to others");
		return err ? err : leave_all(d, j, diag);
	}
	if (j->lease.state == HD_LEASE_OFFERED && !j->n_seen && d->now_s >= j->lease.until_s) {
		dispatch_turn(j, HD_LEASE_ON_LATE);
		j->killed = true;
		j->asked_s = -INFINITY;
		return failed(d, j, "it was not seen to run in time");
	}
	let_go_of_left(d, j);
	if (dispatch_overdue(d, j)) {
		drain(d, j, HD_LEASE_ON_LEAVE);
		return leave_all(d, j, diag);
	}
	enum hd_err err = change(d, j);
	let_go_of_left(d, j);
	if (!err && j->lease.state == HD_LEASE_DRAIN)
		return leave_all(d, j, diag);
	if (!err)
		err = give_up(d, j, &gave_up);
	if (err || gave_up)
		return err;
	if (!j->going && d->now_s >= j->asked_s + AGAIN_S) {
		j->asked_s = d->now_s;
		j->scaled = j->lease.n;
		err = order(d, j, HD_DISPATCH_DO_START, 0, j->lease.n, diag);
	} else if (j->going && (j->scaled != j->lease.n && d->now_s >= j->asked_s + AGAIN_S / 4)) {
		j->asked_s = d->now_s;
		j->scaled = j->lease.n;
		err = order(d, j, HD_DISPATCH_DO_SCALE, 0, j->lease.n, diag);
	}
	return err ? err : ask_workers(d, j, diag);
}

/* It runs after a job that ended otherwise: it never will. */
static enum hd_err give_up_waiting(struct hd_dispatch *d, struct live *j, const struct hd_after *broken)
{
	char why[HD_DISPATCH_WHY];

	snprintf(why, sizeof why, "it was to run after %llu:%s, and job %llu ended otherwise",
		(unsigned long long)broken->job, hd_after_name(broken->kind),
			(unsigned long long)broken->job);
	return finish(d, j, HD_DISPATCH_CANCELLED, why);
}

static enum hd_err carry_one(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	switch (j->lease.state) {
	case HD_LEASE_RELEASED:
		if (j->row.cancel)
			return end_it(d, j);
		if (j->row.state == HD_DISPATCH_OPEN && dispatch_broken(j))
			return give_up_waiting(d, j, dispatch_broken(j));
		if (j->row.state != HD_DISPATCH_OPEN || !j->ntarget || count_free(d, j) < j->ntarget ||
			dispatch_quota_room(d, j) < j->ntarget)
			return HD_OK;
		enum hd_err err = begin(d, j);
		return err ? err : go_on(d, j, diag);
	case HD_LEASE_OFFERED: case HD_LEASE_HELD: case HD_LEASE_RESIZE:
		return go_on(d, j, diag);
	case HD_LEASE_DRAIN: case HD_LEASE_EXPIRED: case HD_LEASE_KILLED: case HD_LEASE_NSTATES:
		return leave_all(d, j, diag);
	}
	return HD_OK;
}

/* A worker without a job is asked to leave; its device is handed out when it has. */
static enum hd_err chase(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t v = 0; v < d->ndevices && !err; v++)
		if (d->device[v].there && !d->device[v].job && d->now_s >= d->device[v].asked_s + AGAIN_S) {
			d->device[v].asked_s = d->now_s;
			err = dispatch_put(d, &(struct hd_dispatch_out){ .kind = HD_DISPATCH_DO_LEAVE,
				.device = v }, diag);
		}
	return err;
}

/* Leaving jobs first, so that their devices are free for the others. */
enum hd_err dispatch_carry(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (int going = 0; going < 2; going++)
		for (uint32_t i = 0; i < d->njobs && !err; i++)
			if ((d->job[i]->lease.state == HD_LEASE_RELEASED) == going)
				err = carry_one(d, d->job[i], diag);
	return err ? err : chase(d, diag);
}

double dispatch_patience_s(const struct hd_dispatch *d, const struct live *j)
{
	double next = dispatch_limit_s(d, j);

	if (j->lease.state == HD_LEASE_RELEASED)
		return next;
	if (j->lease.state != HD_LEASE_HELD && j->lease.state != HD_LEASE_RESIZE)
		next = fmin(next, j->lease.until_s > d->now_s ? j->lease.until_s : INFINITY);
	if (!j->going || j->lease.state >= HD_LEASE_DRAIN || j->scaled != j->lease.n)
		next = fmin(next, isfinite(j->asked_s) ? j->asked_s + AGAIN_S : d->now_s);
	/* a run that leaves is asked as a whole */
	for (uint32_t i = 0; i < j->lease.n && j->lease.state < HD_LEASE_DRAIN; i++) {
		const struct device *v = &d->device[j->lease.device[i]];
		if (v->there == v->leaving && isfinite(v->asked_s))
			next = fmin(next, v->asked_s + again_s(v));
	}
	return next;
}
