#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "daemon/daemon_int.h"

/* Devices that are nodes of a batch job for each lease (batches.h). The coordinator of a lease begins when
 * its batch job runs, and ends with the lease; the next lease goes on from its checkpoint. */

static void say(void *user, const char *kind, uint64_t job, const char *text)
{
	daemon_note(user, kind, job, text);
}

/* Of the lease that the job has now. */
static enum hd_err make_ask(struct hd_daemon *d, const struct watch *w, struct hd_jobs_card *card,
	struct hd_batches_ask *ask, struct hd_diag *diag)
{
	const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, w->job);
	const struct hd_dispatch_job *row = hd_dispatch_job(d->dispatch, w->job);

	if (!lease || !row || lease->number != w->lease || !lease->n)
		return hd_fail(diag, HD_E_NOTFOUND, "job %llu has no lease %u", (unsigned long long)w->job,
			w->lease);
	*ask = (struct hd_batches_ask){ .job = w->job, .lease = w->lease, .n = lease->n, .run = w->run,
		.type = hd_pools_type(d->spec->pools, lease->device[0]) };
	if (row->terms.limit_s > 0) {
		const double left_s = row->terms.limit_s - hd_dispatch_ran_s(row, daemon_now_s(d));
		ask->limit_s = left_s > 1 ? left_s : 1;
	}
	enum hd_err err = hd_jobs_get(d->jobs, w->job, card, NULL, NULL, diag);
	ask->name = card->name;
	return err ? err : daemon_run_until(d, w, &ask->until, diag);
}

static enum hd_err open_(struct hd_daemon *d, struct hd_diag *diag)
{
	if (d->users && d->users->run_as)
		return hd_fail(diag, HD_E_INVAL,
			"%s/" HD_USERS_FILE " of a scheduler that is root: jobs would run as their users, "
			"and batch jobs are one account's: serve as that account, or without --launch",
			d->spec->dir);
	enum hd_err err = hd_batches_open(&d->batches, d->spec->batches, say, d, diag);
	/* those of leases that an earlier scheduler gave; what fails for one is tried when it is to work, and
	 * holds up no other */
	for (uint32_t i = 0; i < d->nwatches && !err; i++) {
		struct hd_jobs_card card = { .name = "" };
		struct hd_diag why = { "" };
		struct hd_batches_ask ask;
		enum hd_err bad = make_ask(d, &d->watch[i], &card, &ask, &why);
		bad = bad ? bad : hd_batches_find(d->batches, &ask, &why);
		if (bad && bad != HD_E_NOTFOUND)
			daemon_log(d, "warning", d->watch[i].job, why.text);
	}
	return err;
}

/* ---- what is there ---- */

static bool goes_on(const struct hd_daemon *d, uint64_t job, uint32_t number)
{
	const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, job);

	return lease && lease->number == number && !lease->over && lease->state < HD_LEASE_DRAIN;
}

static struct watch *watch_of(struct hd_daemon *d, uint64_t job)
{
	for (uint32_t i = 0; i < d->nwatches; i++)
		if (d->watch[i].job == job)
			return &d->watch[i];
	return NULL;
}

/* A run whose workers changed has a batch job of which squeue has news. */
static void follow(struct hd_daemon *d, const struct hd_batch_seen *seen)
{
	struct watch *w = watch_of(d, seen->job);
	const bool on = goes_on(d, seen->job, seen->lease);

	if (!on || (w && w->reported && w->n < seen->n))
		hd_batches_changed(d->batches, seen->job);
	if (on && w && seen->runs && !w->reported && isnan(w->alone_s))
		daemon_begin_run(d, w, seen->n);
}

/* Devices of a lease are those that its batch job has; all others have nothing on them. */
static void look(struct hd_daemon *d)
{
	struct hd_batch_seen on[HD_POOL_DEVICES] = { { 0 } };

	hd_batches_look(d->batches);
	for (uint32_t i = 0; i < hd_batches_n(d->batches); i++) {
		const struct hd_batch_seen seen = hd_batches_at(d->batches, i);
		const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, seen.job);
		if (!lease || lease->number != seen.lease) {
			hd_batches_forget(d->batches, seen.job);
			continue;
		}
		for (uint32_t k = 0; k < lease->n; k++)
			on[lease->device[k]] = seen;
		follow(d, &seen);
	}
	for (uint32_t v = 0; v < d->spec->pools->ndevices && !d->broken; v++) {
		struct device_slot *s = &d->slot[v];
		const uint64_t job = on[v].there ? on[v].job : s->job;
		if (s->there == on[v].there && s->job == (on[v].there ? job : 0))
			continue;
		s->there = on[v].there;
		s->job = s->there ? job : 0;
		daemon_feed_process(d, v, job, s->there, on[v].job ? on[v].code : -1);
	}
}

/* ---- orders ---- */

/* Its workers wait for the coordinator of this lease, and call none that is gone. */
static void forget_address(struct hd_daemon *d, struct watch *w)
{
	struct hd_batch_seen seen;
	char path[HD_PATH_CAP];

	if ((hd_batches_of(d->batches, w->job, &seen) && seen.lease == w->lease) ||
		daemon_is_coordinated(d, w))
		return;
	snprintf(path, sizeof path, "%s/" HD_DRIVER_ADDRESS, w->run);
	(void)!hd_fs_unlink(d->fs, path, NULL);
}

static void work(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o)
{
	struct device_slot *s = &d->slot[o->device];
	struct hd_jobs_card card = { .name = "" };
	struct hd_batches_ask ask;
	struct hd_batch_seen seen;
	struct hd_diag diag = { "" };
	enum hd_err err = make_ask(d, w, &card, &ask, &diag);

	if (!err)
		forget_address(d, w);
	err = err ? err : hd_batches_want(d->batches, &ask, &diag);
	if (err && err != HD_E_AGAIN)
		daemon_log(d, "warning", o->job, diag.text);
	s->there = !err && hd_batches_of(d->batches, w->job, &seen) && seen.there;
	s->job = s->there ? w->job : 0;
	daemon_queue(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS, .device = o->device,
		.job = w->job, .ok = s->there, .code = -1 });
}

static void signal_(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what)
{
	const uint64_t job = d->slot[device].job;

	if (what == HD_PROC_KILL)
		hd_batches_kill(d->batches, job);
	else
		hd_batches_leave(d->batches, job);
}

static bool may_begin(struct hd_daemon *d, struct watch *w)
{
	struct hd_batch_seen seen;

	return hd_batches_of(d->batches, w->job, &seen) && seen.lease == w->lease && seen.runs;
}

/* It waits in the queue, or began a moment ago: nothing of the run is there. */
static void stop(struct hd_daemon *d, struct watch *w) { hd_batches_kill(d->batches, w->job); }

/* ---- what is shown ---- */

static const char *own(const struct hd_daemon *d) { return d->spec->batches->own; }

static void text_of(const struct hd_daemon *d, uint32_t device, char text[HD_DAEMON_LENT])
{
	if (d->slot[device].there)
		hd_batches_text(d->batches, d->slot[device].job, text, HD_DAEMON_LENT);
}

static void why(const struct hd_daemon *d, uint64_t job, char text[HD_DAEMON_LENT])
{
	hd_batches_text(d->batches, job, text, HD_DAEMON_LENT);
}

static struct hd_answer_lent lent(const struct hd_daemon *d, uint32_t type, struct hd_launcher_count *count)
{
	uint32_t want = 0;

	hd_batches_count(d->batches, type, count, &want);
	return (struct hd_answer_lent){ .type = d->spec->pools->name[type], .wanted = want,
		.running = count->running, .waiting = count->waiting, .why = count->why };
}

static void close_(struct hd_daemon *d) { hd_batches_close(d->batches); }

const struct daemon_devices daemon_devices_batches = {
	.name = "batch jobs", .own = own, .open = open_, .look = look, .work = work, .signal = signal_,
	.may_begin = may_begin, .stop = stop, .text = text_of, .lent = lent, .why = why, .close = close_,
};
