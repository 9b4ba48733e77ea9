#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon_int.h"

/* Devices that are pilots (pilots.h): what is there, what is asked for, workers on them. */

static void said(void *user, const char *kind, const char *text) { daemon_note(user, kind, 0, text); }

static enum hd_err open_(struct hd_daemon *d, struct hd_diag *diag)
{
	if (d->users && d->users->run_as)
		return hd_fail(diag, HD_E_INVAL,
			"%s/" HD_USERS_FILE " of a scheduler that is root: jobs would run "
			"as their users, and pilots are one account's: serve as that account, or without "
			"--launch", d->spec->dir);
	enum hd_err err = hd_pilots_open(&d->pilots, d->spec->pilots, said, d, diag);
	for (uint32_t v = 0; v < d->spec->pools->ndevices && !err; v++)
		d->slot[v].lent = hd_pilots_at(d->pilots, v) != NULL;
	return err;
}

static const char *own(const struct hd_daemon *d) { return d->spec->pilots->own; }
static bool is_lent(const struct hd_daemon *d, uint32_t device) { return d->slot[device].lent; }

/* ---- what is there ---- */

static void feed(struct hd_daemon *d, const struct hd_dispatch_event *event)
{
	struct hd_diag diag = { "" };

	if (!d->broken && daemon_feed(d, event, NULL, NULL, &diag))
		daemon_log(d, "warning", 0, diag.text);
}

static void look_at(struct hd_daemon *d, uint32_t v)
{
	const struct hd_pilot_seen *s = hd_pilots_any(d->pilots, v);
	const bool lent = hd_pilots_at(d->pilots, v) != NULL, there = s && hd_pilots_work(s);
	const uint64_t job = there ? s->is.job ? s->is.job : s->order.job : d->slot[v].job;
	struct device_slot *slot = &d->slot[v];

	if (lent != slot->lent) {
		slot->lent = lent;
		if (!slot->out && !(lent && d->draining))
			feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = v,
				.ok = lent });
	}
	slot->limited = there ? s->is.worker : 0;
	if (there == slot->there && job == slot->job)
		return;
	slot->there = there;
	slot->job = there ? job : 0;
	daemon_feed_process(d, v, job, there, there || !s ? -1 : s->is.code);
}

/* ---- what is asked for ---- */

static bool resizes(const struct hd_daemon *d)
{
	struct hd_policy_setting setting;

	return !hd_dispatch_policy(d->policy, &setting, NULL) && setting.policy->powers & HD_POLICY_ELASTIC;
}

static void take_ask(const struct hd_daemon *d, const struct hd_dispatch_job *row, bool elastic,
	struct hd_pilots_ask *ask)
{
	const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, row->id);

	elastic &= row->max != 0;
	*ask = (struct hd_pilots_ask){ .least = elastic ? row->min : row->scale,
		.most = elastic ? row->max : row->scale };
	for (uint32_t t = 0; t < d->spec->pools->ntypes; t++)
		ask->at[t] = row->rate[t].steps_s > 0 && daemon_partition_has(d, row, t);
	if (!lease || !lease->n)
		return;
	ask->now = lease->n;
	ask->type = hd_pools_type(d->spec->pools, lease->device[0]);
}

/* Jobs that could run now: none that is held, waits for another one, or is about to end. */
static uint32_t take_asks(struct hd_daemon *d, struct hd_pilots_ask ask[HD_PILOTS_ASKS])
{
	const bool elastic = resizes(d);
	struct hd_dispatch_why why;
	uint32_t n = 0;

	for (uint32_t i = 0; i < hd_dispatch_njobs(d->dispatch) && n < HD_PILOTS_ASKS; i++) {
		const struct hd_dispatch_job *row = hd_dispatch_job(d->dispatch,
			hd_dispatch_nth(d->dispatch, i));
		if (row->state == HD_DISPATCH_OPEN && !row->cancel &&
			!hd_dispatch_kept_back(d->dispatch, row->id, &why))
			take_ask(d, row, elastic, &ask[n++]);
	}
	return n;
}

static void ask_for(struct hd_daemon *d)
{
	const struct hd_pilots_spec *spec = d->spec->pilots;
	uint32_t want[HD_DISPATCH_TYPES], can[HD_DISPATCH_TYPES];
	bool busy[HD_POOL_DEVICES];

	if (d->draining)
		return;
	hd_arena_reset(&d->scratch);
	struct hd_pilots_ask *ask = hd_arena_take(&d->scratch, HD_PILOTS_ASKS, sizeof *ask);
	if (!ask)
		return;
	for (uint32_t v = 0; v < HD_POOL_DEVICES; v++)
		busy[v] = v < d->spec->pools->ndevices && hd_dispatch_device(d->dispatch, v).job;
	hd_pilots_can(d->pilots, can);
	hd_pilots_plan(d->spec->pools, spec->least, spec->most, can, ask, take_asks(d, ask), want);
	hd_pilots_want(d->pilots, want, busy);
}

static void look(struct hd_daemon *d)
{
	hd_pilots_look(d->pilots);
	for (uint32_t v = 0; v < d->spec->pools->ndevices && !d->broken; v++)
		look_at(d, v);
	ask_for(d);
}

static enum hd_err end(struct hd_daemon *d, struct hd_diag *diag)
{
	return hd_pilots_stop(d->pilots, d->draining, diag);
}

static void close_(struct hd_daemon *d) { hd_pilots_close(d->pilots); }

/* ---- orders ---- */

/* there: a worker is on its way, or another one is there still. */
static enum hd_err order_work(struct hd_daemon *d, const struct watch *w, uint32_t device, uint64_t until,
	bool *there, struct hd_diag *diag)
{
	const struct hd_pilot_seen *s = hd_pilots_at(d->pilots, device);
	struct hd_pilot_order order = { .what = HD_PILOT_WORK, .job = w->job, .lease = w->lease, .until =
		until };

	*there = false;
	if (!s)
		return HD_OK;                     /* it went a moment ago: the next look says so */
	snprintf(order.run, sizeof order.run, "%s", w->run);
	enum hd_err err = s->is.job ? HD_OK : hd_pilots_order(d->pilots, device, &order, diag);
	*there = hd_pilots_work(s);
	if (*there && !s->is.job)
		d->slot[device].job = w->job;
	return err;
}

static void work(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	struct device_slot *s = &d->slot[o->device];
	struct hd_diag diag = { "" };
	uint64_t until = 0;
	enum hd_err err = daemon_run_until(d, w, &until, &diag);

	if (!err)
		err = order_work(d, w, o->device, until, &s->there, &diag);
	if (err)
		daemon_log(d, "warning", o->job, diag.text);
	daemon_queue(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS, .device = o->device,
		.job = s->there ? s->job : o->job, .ok = s->there, .code = -1 });
}

static void signal_(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what)
{
	const struct hd_pilot_seen *s = hd_pilots_any(d->pilots, device);
	struct hd_diag diag = { "" };

	if (!s || s->is.leaving)
		return;
	struct hd_pilot_order order = { .what = what == HD_PROC_KILL ? HD_PILOT_KILL : HD_PILOT_LEAVE,
		.job = d->slot[device].job, .lease = s->is.lease };
	if (hd_pilots_order(d->pilots, device, &order, &diag))
		daemon_log(d, "warning", order.job, diag.text);
}

/* ---- what is shown ---- */

static void text_of(const struct hd_daemon *d, uint32_t device, char text[HD_DAEMON_LENT])
{
	const struct hd_pilot_seen *s = hd_pilots_any(d->pilots, device);

	if (s)
		snprintf(text, HD_DAEMON_LENT, "%.64s%s%.96s%s", s->is.node, *s->is.place ? ", " : "",
			s->is.place, s->is.leaving ? ", being taken back" : s->going ? ", going" : "");
}

static struct hd_answer_lent lent(const struct hd_daemon *d, uint32_t type, struct hd_launcher_count *count)
{
	uint32_t want = 0;

	hd_pilots_count(d->pilots, type, count, &want);
	return (struct hd_answer_lent){ .type = d->spec->pools->name[type], .wanted = want,
		.running = count->running, .waiting = count->waiting, .why = count->why };
}

const struct daemon_devices daemon_devices_pilots = {
	.name = "pilots", .own = own, .open = open_, .look = look, .work = work, .signal = signal_,
	.is_lent = is_lent, .text = text_of, .lent = lent, .end = end, .close = close_,
};
