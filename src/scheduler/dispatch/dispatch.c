#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "scheduler/dispatch/int.h"

/* The machine's door: events in, the records and orders of one call out. */

const char *hd_dispatch_state_name(enum hd_dispatch_state state)
{
	static const char *const names[] = {
#define X(id, name) [HD_DISPATCH_##id] = name,
		HD_DISPATCH_STATES(X)
#undef X
	};

	return names[state];
}

/* ---- jobs ---- */

static uint32_t place(const struct hd_dispatch *d, uint64_t id)
{
	uint32_t from = 0, to = d->njobs;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (d->job[mid]->row.id < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

struct live *dispatch_find(const struct hd_dispatch *d, uint64_t id)
{
	uint32_t at = place(d, id);

	return at < d->njobs && d->job[at]->row.id == id ? d->job[at] : NULL;
}

void dispatch_turn(struct live *j, enum hd_lease_event event)
{
	bool legal = hd_lease_next(j->lease.state, event, &j->lease.state);

	assert(legal);
	(void)legal;
	j->lease_dirty = true;
}

static enum hd_err check_row(const struct hd_dispatch *d, const struct hd_dispatch_job *row,
	struct hd_diag *diag)
{
	if (row->id <= d->newest)
		return hd_fail(diag, HD_E_INVAL, "job %llu comes after job %llu: ids ascend",
			(unsigned long long)row->id, (unsigned long long)d->newest);
	if (row->scale < 1 || row->scale > HD_DISPATCH_SET)
		return hd_fail(diag, HD_E_INVAL, "scale %u: a job takes 1 to %d devices at once", row->scale,
			HD_DISPATCH_SET);
	if (row->max && (row->min < 1 || row->min > row->max || row->max > HD_DISPATCH_SET))
		return hd_fail(diag, HD_E_INVAL, "min %u and max %u devices: from 1 to %d, min first",
			row->min, row->max, HD_DISPATCH_SET);
	if (!(row->weight > 0) || isinf(row->weight))
		return hd_fail(diag, HD_E_INVAL, "priority %g: a number above 0", row->weight);
	if (row->nlimits > HD_DISPATCH_LIMITS || !dispatch_good_entities(row))
		return hd_fail(diag, HD_E_INVAL, "%u limits (at most %d), or an account of weight %g, or one "
			"that lies within itself", row->nlimits, HD_DISPATCH_LIMITS, row->entity.weight);
	if (dispatch_part_named(d, row->partition) == d->nparts)
		return hd_fail(diag, HD_E_INVAL, "job %llu is of partition \"%.64s\", which there is not",
			(unsigned long long)row->id, row->partition);
	if (isnan(row->deadline_s))
		return hd_fail(diag, HD_E_INVAL, "the deadline is no number");
	enum hd_err err = dispatch_check_terms(d, row, diag);
	if (err)
		return err;
	for (uint32_t t = 0; t < d->set.ntypes; t++)
		if (isnan(row->rate[t].steps_s) || isinf(row->rate[t].steps_s))
			return hd_fail(diag, HD_E_INVAL, "a rate of %g steps/s on %s", row->rate[t].steps_s,
				d->type[t].name);
	return HD_OK;
}

static enum hd_err add(struct hd_dispatch *d, const struct hd_dispatch_job *row, struct live **out,
	struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&d->job, &d->jobs_cap, (uint64_t)d->njobs + 1, sizeof *d->job,
		"entries of the scheduler", diag);
	struct live *j = err ? NULL : hd_alloc(sizeof *j);

	if (err || !j)
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	*j = (struct live){ .row = *row, .lease = { .job = row->id, .state = HD_LEASE_RELEASED },
		.part = dispatch_part_named(d, row->partition), .asked_s = -INFINITY };
	if ((err = dispatch_join_quotas(d, j, diag))) {
		hd_free(j);
		return err;
	}
	d->job[d->njobs++] = j;
	d->newest = row->id;
	*out = j;
	return HD_OK;
}

/* Those that are over and hold nothing are the store's. */
static void bury(struct hd_dispatch *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->njobs; i++)
		if (d->job[i]->row.state != HD_DISPATCH_OPEN && !dispatch_leased(d->job[i]))
			hd_free(d->job[i]);
		else
			d->job[n++] = d->job[i];
	d->njobs = n;
}

/* ---- what goes out ---- */

enum hd_err dispatch_put(struct hd_dispatch *d, const struct hd_dispatch_out *out, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&d->out, &d->outs_cap, (uint64_t)d->nouts + 1, sizeof *d->out,
		"entries of the scheduler", diag);

	if (!err)
		d->out[d->nouts++] = *out;
	return err;
}

enum hd_err dispatch_note(struct hd_dispatch *d, uint64_t job, const char *name, const char *fmt, ...)
{
	char room[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(room, sizeof room, fmt, args);
	va_end(args);
	const char *text = hd_arena_text(&d->texts, room, strlen(room));
	return text ? dispatch_put(d, &(struct hd_dispatch_out){ .kind = HD_DISPATCH_DO_NOTE, .job = job,
		.name = name, .text = text }, NULL) : HD_E_NOMEM;
}

static int by_kind(const struct hd_dispatch_out *out)
{
	return out->kind == HD_DISPATCH_DO_JOB ? 0 : out->kind == HD_DISPATCH_DO_LEASE ? 1 :
		out->kind == HD_DISPATCH_DO_NOTE ? 2 : 3;
}

/* Records first; within a kind in the order in which they were made. */
static enum hd_err put_records(struct hd_dispatch *d, struct hd_dispatch_outs *outs, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->njobs && !err; i++) {
		struct live *j = d->job[i];
		if (j->row_dirty)
			err = dispatch_put(d, &(struct hd_dispatch_out){ .kind = HD_DISPATCH_DO_JOB,
				.job = j->row.id, .row = &j->row }, diag);
		if (j->lease_dirty && !err)
			err = dispatch_put(d, &(struct hd_dispatch_out){ .kind = HD_DISPATCH_DO_LEASE,
				.job = j->row.id, .lease = j->lease.number,
				.held = &j->lease }, diag);
		j->row_dirty = j->lease_dirty = false;
	}
	if (err || (err = hd_grow(&d->out, &d->outs_cap, 2 * (uint64_t)d->nouts + 1, sizeof *d->out,
		"entries of the scheduler", diag)))
		return err;
	struct hd_dispatch_out *sorted = &d->out[d->nouts];
	for (int kind = 0; kind < 4; kind++)
		for (uint32_t i = 0; i < d->nouts; i++)
			if (by_kind(&d->out[i]) == kind)
				sorted[n++] = d->out[i];
	*outs = (struct hd_dispatch_outs){ sorted, n };
	return HD_OK;
}

/* ---- events ---- */

#define ON(name) \
	static enum hd_err on_##name(struct hd_dispatch *d, struct live *j, \
		const struct hd_dispatch_event *e, struct hd_diag *diag)

static enum hd_err submit_one(struct hd_dispatch *d, const struct hd_dispatch_job *from, struct hd_diag *diag)
{
	struct hd_dispatch_job row = *from;
	struct live *made = NULL;

	row.submitted_s = d->now_s;
	row.started_s = row.ended_s = row.from_s = -1;
	row.ran_s = 0;
	row.state = HD_DISPATCH_OPEN;
	row.exit = -1;
	dispatch_guess(d, &row);
	enum hd_err err = add(d, &row, &made, diag);
	if (err)
		return err;
	made->row_dirty = true;
	return dispatch_note(d, row.id, "submit", "%u device%s at once%s", row.scale, row.scale == 1 ? "" :
		"s",
		row.terms.held ? ", held" : "");
}

ON(submit)
{
	uint64_t newest = d->newest;
	uint32_t n = e->n ? e->n : 1;
	enum hd_err err = HD_OK;

	(void)j;
	for (uint32_t i = 0; i < n && !err; i++) {       /* all of them, or none */
		err = check_row(d, &e->row[i], diag);
		d->newest = e->row[i].id;
	}
	d->newest = newest;
	for (uint32_t i = 0; i < n && !err; i++)
		err = submit_one(d, &e->row[i], diag);
	return err;
}

ON(cancel)
{
	if (j->row.state != HD_DISPATCH_OPEN || j->row.cancel)
		return hd_fail(diag, HD_E_INVAL, "job %llu is %s already", (unsigned long long)e->job,
			j->row.cancel ? "being cancelled" : hd_dispatch_state_name(j->row.state));
	j->row.cancel = j->row_dirty = true;
	dispatch_withdraw(d, j);
	return dispatch_note(d, e->job, "cancel", "asked for");
}

ON(hold)
{
	if (j->row.state != HD_DISPATCH_OPEN || j->row.cancel || j->row.terms.held == e->ok)
		return hd_fail(diag, HD_E_INVAL, "job %llu is %s", (unsigned long long)e->job,
			j->row.state != HD_DISPATCH_OPEN ? hd_dispatch_state_name(j->row.state) :
			j->row.cancel ? "being cancelled" : e->ok ? "held already" : "not held");
	j->row.terms.held = e->ok;
	j->row_dirty = true;
	if (e->ok)
		dispatch_withdraw(d, j);
	return dispatch_note(d, e->job, e->ok ? "hold" : "release", "%s", !e->ok ? "it is not held any more" :
		dispatch_leased(j) ? "it commits, leaves its devices and waits until it is released" :
		"it waits until it is released");
}

ON(weight)
{
	if (j->row.state != HD_DISPATCH_OPEN)
		return hd_fail(diag, HD_E_INVAL, "job %llu is %s", (unsigned long long)e->job,
			hd_dispatch_state_name(j->row.state));
	if (!(e->value > 0) || isinf(e->value))
		return hd_fail(diag, HD_E_INVAL, "priority %g: a number above 0", e->value);
	j->row.weight = e->value;
	j->row_dirty = true;
	hd_rounds_stale(dispatch_part(d, j)->rounds);
	return dispatch_note(d, e->job, "priority", "%g", e->value);
}

/* Rates are of `scale` devices; what is measured on another number is a guess until it is measured again. */
static void scale_rates(const struct hd_dispatch *d, struct hd_dispatch_job *row, uint32_t scale)
{
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		struct hd_dispatch_rate *r = &row->rate[t];
		r->steps_s *= (double)scale / row->scale;
		r->outlier = -1;
		r->from = r->from == HD_RATE_ASKED ? HD_RATE_ASKED : HD_RATE_GUESSED;
	}
}

ON(scale)
{
	const uint32_t least = j->row.max ? j->row.min : 1, all = j->row.max ? j->row.max : HD_DISPATCH_SET;
	const uint32_t most = all < dispatch_part(d, j)->most ? all : dispatch_part(d, j)->most;
	double rate[HD_DISPATCH_TYPES];

	if (j->row.state != HD_DISPATCH_OPEN || j->row.cancel)
		return hd_fail(diag, HD_E_INVAL, "job %llu is %s", (unsigned long long)e->job,
			j->row.cancel ? "being cancelled" : hd_dispatch_state_name(j->row.state));
	if (e->n < least || e->n > most)
		return hd_fail(diag, HD_E_INVAL, "scale %u: job %llu takes %u to %u devices at once", e->n,
			(unsigned long long)e->job, least, most);
	if (e->n == j->row.scale)
		return HD_OK;
	dispatch_measure(d, j);
	j->measuring = false;
	scale_rates(d, &j->row, e->n);
	j->row.scale = e->n;
	j->row_dirty = true;
	dispatch_steps_s(d, &j->row, rate);
	if (dispatch_is_here(j))
		hd_rounds_scale(dispatch_part(d, j)->rounds, e->job, e->n, rate);
	return dispatch_note(d, e->job, "scale", "%u device%s at once", e->n, e->n == 1 ? "" : "s");
}

ON(device)
{
	struct device *v = &d->device[e->device];

	(void)j;
	(void)diag;
	if (v->usable == e->ok)
		return HD_OK;
	v->usable = e->ok;
	dispatch_tell_device_of_all(d, e->device);
	d->freed = true;
	/* before the first tick it is as it was when the caller ended */
	return !d->open ? HD_OK : dispatch_note(d, 0, "device", "%s-%u %s", d->type[v->type].name,
		e->device - d->first_device[v->type], e->ok ? "is back" : "is out of service");
}

ON(window) { (void)j; return dispatch_on_window(d, e, diag); }

static bool is_whole(const struct hd_dispatch *d, const struct live *j)
{
	bool whole = j->lease.n == j->ntarget && j->n_seen >= j->lease.n;

	for (uint32_t i = 0; i < j->lease.n; i++)
		whole &= !d->device[j->lease.device[i]].leaving && dispatch_wants(j, j->lease.device[i]);
	return whole;
}

ON(seen)
{
	(void)diag;
	if (e->lease != j->lease.number || !dispatch_leased(j) || j->lease.over)
		return HD_OK;                     /* of an earlier run */
	if (!j->going)
		j->scaled = 0;
	j->going = true;
	j->n_seen = e->n;
	j->seen_s = d->now_s;
	if (e->step > j->row.done) {
		j->row.done = e->step;
		j->row.failures = 0;
	}
	for (uint32_t i = 0; i < j->lease.n && e->n >= j->lease.n; i++)
		d->device[j->lease.device[i]].starts = 0;
	if (j->lease.state == HD_LEASE_OFFERED && e->n) {
		dispatch_turn(j, HD_LEASE_ON_RAN);
		j->row.from_s = d->now_s;
		j->row_dirty = true;
	} else if (j->lease.state == HD_LEASE_RESIZE && is_whole(d, j))
		dispatch_turn(j, HD_LEASE_ON_RAN);
	if (j->lease.state == HD_LEASE_HELD && !j->measuring)
		dispatch_measure(d, j);
	return HD_OK;
}

ON(process)
{
	struct device *v = &d->device[e->device];

	(void)j;
	(void)diag;
	if (v->there && !e->ok)
		v->code = e->code;
	v->there = e->ok;
	v->whose = e->job;
	return HD_OK;
}

ON(ended)
{
	(void)diag;
	if (e->lease != j->lease.number || !dispatch_leased(j) || j->lease.over)
		return HD_OK;
	return dispatch_over(d, j, e);
}

ON(shares)
{
	(void)j;
	(void)e;
	if (!d->asked.open)
		return hd_fail(diag, HD_E_INVAL, "no shares were asked for");
	if (!d->question->solved)
		hd_dispatch_solve(d->question);
	d->asked.answered = true;
	return HD_OK;
}

ON(give_up)
{
	(void)j;
	if (!d->asked.open)
		return hd_fail(diag, HD_E_INVAL, "no shares were asked for");
	return dispatch_give_up(d, e->text ? e->text : "", diag);
}

ON(tick) { (void)d; (void)j; (void)e; (void)diag; return HD_OK; }

enum { NEEDS_JOB = 1, NEEDS_DEVICE = 2 };

static const struct { enum hd_err (*on)(struct hd_dispatch *, struct live *, const struct hd_dispatch_event *,
	struct hd_diag *); int needs; }
	row_of[HD_DISPATCH_IN_NKINDS] = {
	[HD_DISPATCH_IN_SUBMIT] = { on_submit, 0 }, [HD_DISPATCH_IN_CANCEL] = { on_cancel, NEEDS_JOB },
		[HD_DISPATCH_IN_HOLD] = { on_hold, NEEDS_JOB },
	[HD_DISPATCH_IN_WEIGHT] = { on_weight, NEEDS_JOB }, [HD_DISPATCH_IN_SCALE] = { on_scale, NEEDS_JOB },
	[HD_DISPATCH_IN_DEVICE] = { on_device, NEEDS_DEVICE },
		[HD_DISPATCH_IN_WINDOW] = { on_window, 0 },
	[HD_DISPATCH_IN_SEEN] = { on_seen, NEEDS_JOB },
	[HD_DISPATCH_IN_PROCESS] = { on_process, NEEDS_DEVICE },
	[HD_DISPATCH_IN_ENDED] = { on_ended, NEEDS_JOB },
	[HD_DISPATCH_IN_SHARES] = { on_shares, 0 }, [HD_DISPATCH_IN_GIVE_UP] = { on_give_up, 0 },
	[HD_DISPATCH_IN_TICK] = { on_tick, 0 },
};

static enum hd_err apply(struct hd_dispatch *d, const struct hd_dispatch_event *e, struct hd_diag *diag)
{
	struct live *j = row_of[e->kind].needs == NEEDS_JOB ? dispatch_find(d, e->job) : NULL;

	if (row_of[e->kind].needs == NEEDS_JOB && !j)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu that is not over",
			(unsigned long long)e->job);
	if (row_of[e->kind].needs == NEEDS_DEVICE && e->device >= d->ndevices)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no device %u", e->device);
	return row_of[e->kind].on(d, j, e, diag);
}

static void extend(struct hd_dispatch *d)
{
	for (uint32_t i = 0; i < d->njobs; i++) {
		struct live *j = d->job[i];
		if ((j->lease.state == HD_LEASE_HELD || j->lease.state == HD_LEASE_RESIZE) &&
			j->lease.until_s < d->boundary_s && isfinite(d->boundary_s)) {
			j->lease.until_s = d->boundary_s;
			j->lease_dirty = true;
		}
	}
}

enum hd_err hd_dispatch_step(struct hd_dispatch *d, const struct hd_dispatch_event *event, double now_s,
	struct hd_dispatch_outs *outs,
	struct hd_diag *diag)
{
	double was = d->now_s;

	*outs = (struct hd_dispatch_outs){ 0 };
	d->nouts = 0;
	d->decided = false;
	hd_arena_reset(&d->texts);
	bury(d);
	d->now_s = now_s > was ? now_s : was;
	dispatch_log_open(d);
	enum hd_err err = apply(d, event, diag);
	if (err) {
		d->nouts = 0;
		return err;
	}
	if (event->kind == HD_DISPATCH_IN_TICK && !d->open) {
		d->charged_s = d->now_s;
		d->open = d->decided = true;
	}
	err = dispatch_admit(d, diag);
	if (d->open && !err)
		err = dispatch_limits(d, diag);
	if (d->open && !err)
		err = dispatch_windows(d, diag);
	if (d->open && !err)
		err = dispatch_decide(d, diag);
	extend(d);
	if (!err && d->open)
		err = dispatch_carry(d, diag);
	/* a job ended on the way: its devices are offered in the same call */
	if (!err && d->open && d->freed) {
		err = dispatch_windows(d, diag);
		if (!err)
			err = dispatch_decide(d, diag);
		if (!err)
			err = dispatch_carry(d, diag);
	}
	if (!err)
		err = put_records(d, outs, diag);
	if (!err)
		dispatch_log_step(d, event);
	return err == HD_E_INVAL || err == HD_E_NOTFOUND ? HD_E_BUG : err;
}

double hd_dispatch_next_s(const struct hd_dispatch *d)
{
	double next = d->open ? d->boundary_s : d->now_s;

	next = fmin(next, dispatch_windows_s(d));
	for (uint32_t i = 0; i < d->njobs; i++)
		next = fmin(next, dispatch_patience_s(d, d->job[i]));
	for (uint32_t v = 0; v < d->ndevices; v++)
		if (d->device[v].there && !d->device[v].job)
			next = fmin(next, isfinite(d->device[v].asked_s) ? d->device[v].asked_s + AGAIN_S :
				d->now_s);
	return next;
}

/* ---- from beginning to end ---- */

static enum hd_err take_types(struct hd_dispatch *d, const struct hd_dispatch_setting *set,
	struct hd_diag *diag)
{
	if (set->ntypes < 1 || set->ntypes > HD_DISPATCH_TYPES)
		return hd_fail(diag, HD_E_INVAL, "%u types of devices: 1 to %d", set->ntypes,
			HD_DISPATCH_TYPES);
	for (uint32_t t = 0; t < set->ntypes; t++) {
		const struct hd_dispatch_type *type = &set->type[t];
		if (strlen(type->name) >= sizeof d->name[t] || (t && strcmp(d->name[t - 1], type->name) >= 0))
			return hd_fail(diag, HD_E_INVAL,
				"device type \"%.64s\": names are sorted, different, and shorter than 64 "
				"bytes", type->name);
		if (!(type->speed > 0) || isinf(type->speed) || !(type->price_usd_h >= 0) ||
			isinf(type->price_usd_h))
			return hd_fail(diag, HD_E_INVAL,
				"device type %s: speed %g is above 0, price %g not below", type->name,
				type->speed, type->price_usd_h);
		snprintf(d->name[t], sizeof d->name[t], "%s", type->name);
		d->type[t] = *type;
		d->type[t].name = d->name[t];
		d->first_device[t + 1] = d->first_device[t] + type->n;
	}
	d->ndevices = d->first_device[set->ntypes];
	d->device = hd_alloc((d->ndevices + 1) * sizeof *d->device);
	if (!d->device)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u devices", d->ndevices);
	for (uint32_t t = 0; t < set->ntypes; t++)
		for (uint32_t v = d->first_device[t]; v < d->first_device[t + 1]; v++)
			d->device[v] = (struct device){ .type = t, .usable = true, .asked_s = -INFINITY,
				.code = -1 };
	return HD_OK;
}

enum hd_err hd_dispatch_policy(const char *name, struct hd_policy_setting *set, struct hd_diag *diag)
{
	enum hd_err err = hd_policy_parse(set, name, diag);

	if (!err && (set->variant == HD_VARIANT_PACKED || set->variant == HD_VARIANT_KINDS ||
		!strcmp(set->policy->name, "gandiva")))
		err = hd_fail(diag, HD_E_INVAL,
			"policy %.100s puts two jobs on a device, which only the simulator does", name);
	return err;
}

static enum hd_err take_policy(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = hd_dispatch_policy(d->policy_name, &d->policy_set, diag);

	if (!err)
		err = dispatch_open_parts(d, diag);
	return err ? err : dispatch_new_question(d, diag);
}

enum hd_err hd_dispatch_create(struct hd_dispatch **dispatch, const struct hd_dispatch_setting *setting,
	struct hd_text *log, struct hd_diag *diag)
{
	struct hd_dispatch *d = hd_alloc(sizeof *d);

	if (!d)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a scheduler");
	memset(d, 0, sizeof *d);
	d->set = *setting;
	d->log = log;
	d->set.round_s = setting->round_s > 0 ? setting->round_s : 60;
	d->set.start_s = setting->start_s > 0 ? setting->start_s : 120;
	d->set.drain_s = setting->drain_s > 0 ? setting->drain_s : 60;
	d->began_s = setting->began_s;
	d->boundary_s = INFINITY;
	d->now_s = -INFINITY;
	hd_arena_init(&d->texts, 0);
	snprintf(d->policy_name, sizeof d->policy_name, "%s", setting->policy);
	d->set.policy = d->policy_name;
	enum hd_err err = take_types(d, setting, diag);
	d->set.type = d->type;
	if (!err)
		err = take_policy(d, diag);
	if (!err)
		err = dispatch_try(d, diag);
	if (err)
		hd_dispatch_destroy(d);
	else
		*dispatch = d;
	return err;
}

void hd_dispatch_destroy(struct hd_dispatch *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->njobs; i++)
		hd_free(d->job[i]);
	hd_free(d->job);
	hd_free(d->quota);
	hd_free(d->entity);
	hd_free(d->window);
	hd_free(d->device);
	hd_free(d->out);
	dispatch_close_parts(d);
	hd_dispatch_release(d->question);
	hd_arena_finish(&d->texts);
	hd_free(d);
}

static enum hd_err take_lease(struct hd_dispatch *d, struct live *j, const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < lease->n; i++) {
		uint32_t v = lease->device[i];
		if (v >= d->ndevices)
			return hd_fail(diag, HD_E_INVAL,
				"job %llu holds device %u, and there are %u: serve with the pools that were "
				"there",
				(unsigned long long)j->row.id, v, d->ndevices);
		if (d->device[v].job)
			return hd_fail(diag, HD_E_INTEGRITY, "jobs %llu and %llu both hold device %u",
				(unsigned long long)d->device[v].job,
				(unsigned long long)j->row.id, v);
		d->device[v].job = j->row.id;
	}
	j->lease = *lease;
	j->first_step = j->row.done;
	if (!j->in_rounds || !lease->n || lease->state > HD_LEASE_RESIZE)
		return HD_OK;
	/* what it holds is what it was meant to have, until the first round says otherwise */
	j->ntarget = lease->n;
	memcpy(j->target, lease->device, lease->n * sizeof *lease->device);
	return hd_rounds_hold(dispatch_part(d, j)->rounds, j->row.id, lease->device, lease->n, diag);
}

enum hd_err hd_dispatch_restore(struct hd_dispatch *d, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct hd_diag *diag)
{
	struct live *j = NULL;

	dispatch_log_open(d);
	dispatch_log_restore(d, row, lease);
	enum hd_err err = check_row(d, row, diag);
	if (!err)
		err = add(d, row, &j, diag);
	if (!err)
		err = dispatch_admit_first(d, j, lease && lease->state != HD_LEASE_RELEASED, diag);
	if (!err && lease && lease->state != HD_LEASE_RELEASED)
		err = take_lease(d, j, lease, diag);
	return err;
}

/* ---- what it knows ---- */

const struct hd_dispatch_job *hd_dispatch_job(const struct hd_dispatch *d, uint64_t id)
{
	const struct live *j = dispatch_find(d, id);

	return j ? &j->row : NULL;
}

const struct hd_dispatch_lease *hd_dispatch_lease(const struct hd_dispatch *d, uint64_t id)
{
	const struct live *j = dispatch_find(d, id);

	return j && dispatch_leased(j) ? &j->lease : NULL;
}

uint32_t hd_dispatch_njobs(const struct hd_dispatch *d) { return d->njobs; }
uint64_t hd_dispatch_nth(const struct hd_dispatch *d, uint32_t i) { return d->job[i]->row.id; }

double hd_dispatch_rate_now(const struct hd_dispatch *d, uint64_t id)
{
	const struct live *j = dispatch_find(d, id);

	return j && j->lease.state == HD_LEASE_HELD ? j->rate_now : 0;
}

double hd_dispatch_boundary_s(const struct hd_dispatch *d) { return d->boundary_s; }
double hd_dispatch_began_s(const struct hd_dispatch *d) { return d->began_s; }
double hd_dispatch_round_s(const struct hd_dispatch *d) { return d->set.round_s; }

struct hd_dispatch_device hd_dispatch_device(const struct hd_dispatch *d, uint32_t device)
{
	const struct device *v = &d->device[device];

	uint64_t partitions = 0;

	for (uint32_t i = 0; i < d->nparts; i++)
		partitions |= (uint64_t)d->part[i].has[device] << i;
	return (struct hd_dispatch_device){ v->job, partitions, v->usable, v->there, v->leaving, v->type,
		dispatch_window_of(d, device) };
}
