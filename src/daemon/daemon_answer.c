#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "daemon/daemon_int.h"

/* What users ask, one function a question (frontend.h). */

enum { HD_ANSWER_LIMIT = 1000, HD_ANSWER_STANDARD = 100 };

/* What a user calls the state of a job. */
static const char *state_of(const struct hd_dispatch_job *row, const struct hd_dispatch_lease *lease)
{
	static const char *const open[HD_LEASE_NSTATES] = { [HD_LEASE_OFFERED] = "starting",
		[HD_LEASE_HELD] = "running", [HD_LEASE_RESIZE] = "running",
		[HD_LEASE_DRAIN] = "draining", [HD_LEASE_EXPIRED] = "draining",
		[HD_LEASE_KILLED] = "draining", [HD_LEASE_RELEASED] = "queued" };

	return row->state == HD_DISPATCH_OPEN ? open[lease->state] : hd_dispatch_state_name(row->state);
}

static const char *const states[] = { "queued", "starting", "running", "draining", "done", "failed",
	"cancelled" };
enum { NSTATES = sizeof states / sizeof *states };

static const struct watch *watched(const struct hd_daemon *d, uint64_t job)
{
	for (uint32_t i = 0; i < d->nwatches; i++)
		if (d->watch[i].job == job)
			return &d->watch[i];
	return NULL;
}

static void put_types(const struct hd_daemon *d, const struct hd_dispatch_lease *lease,
	struct hd_json_writer *w)
{
	char text[HD_DISPATCH_TYPES * 65] = "";
	uint32_t last = UINT32_MAX;
	struct hd_text types;

	hd_text_fixed(&types, text, sizeof text);
	for (uint32_t i = 0; i < lease->n; i++) {
		uint32_t t = hd_pools_type(d->spec->pools, lease->device[i]);
		if (t != last)
			hd_text_addf(&types, "%s%s", last == UINT32_MAX ? "" : "+", d->spec->pools->name[t]);
		last = t;
	}
	hd_json_put_text(w, "type", text);
}

/* What is on the disk, but for a job that waits in vain. */
static void put_why(const struct hd_daemon *d, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct hd_json_writer *w)
{
	char text[HD_DISPATCH_WHY];
	bool waits = row->state == HD_DISPATCH_OPEN && lease->state == HD_LEASE_RELEASED;

	hd_json_put_text(w, "why", waits && hd_dispatch_unrunnable(d->dispatch, row, text) ? text : row->why);
}

static void put_summary(const struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct hd_json_writer *w)
{
	const struct hd_dispatch_job *now = hd_dispatch_job(d->dispatch, row->id);
	const struct watch *seen = watched(d, row->id);
	uint64_t step = now ? now->done : row->done;

	if (seen && lease->state != HD_LEASE_RELEASED && seen->lease == lease->number && seen->step > step)
		step = seen->step;
	hd_json_put_i64(w, "id", (int64_t)card->id);
	hd_json_put_text(w, "name", card->name);
	hd_json_put_text(w, "user", card->user);
	hd_json_put_text(w, "state", state_of(row, lease));
	hd_json_put_i64(w, "step", (int64_t)step);
	hd_json_put_i64(w, "steps", (int64_t)row->steps);
	hd_json_put_f64(w, "priority", row->weight);
	hd_json_put_i64(w, "scale", row->scale);
	hd_json_put_i64(w, "devices_n", lease->state == HD_LEASE_RELEASED ? 0 : lease->n);
	put_types(d, lease, w);
	hd_json_put_f64(w, "rate", hd_dispatch_rate_now(d->dispatch, row->id));
	hd_json_put_f64(w, "submitted_s", row->submitted_s);
	hd_json_put_f64(w, "started_s", row->started_s);
	hd_json_put_f64(w, "ended_s", row->ended_s);
	hd_json_put_f64(w, "deadline_s", isfinite(row->deadline_s) ? row->deadline_s : -1);
	hd_json_put_i64(w, "exit", row->state == HD_DISPATCH_OPEN ? -1 : row->exit);
	put_why(d, row, lease, w);
}

enum hd_err daemon_find_job(struct hd_daemon *d, const struct hd_json *ask, const char *key, uint64_t *id,
	struct hd_diag *diag)
{
	const struct hd_json *job = hd_json_find(ask, key);
	const char *name;

	if (!job)
		return hd_fail(diag, HD_E_INVAL, "\"%s\" says which: its id or its name", key);
	if (hd_json_kind(job) != HD_JSON_TEXT)
		return hd_json_as_u64(job, INT64_MAX, id, diag);
	enum hd_err err = hd_json_as_text(job, &name, diag);
	return err ? err : hd_jobs_by_name(d->jobs, name, id, diag);
}

static enum hd_err read_count(const struct hd_json *ask, const char *key, int64_t least, int64_t most,
	int64_t *value, struct hd_diag *diag)
{
	return hd_json_find(ask, key) ? hd_json_get_i64(ask, key, least, most, value, diag) : HD_OK;
}

#define ANSWER(name) static enum hd_err answer_##name(struct hd_daemon *d, const struct hd_json *ask, \
	struct hd_json_writer *w, struct hd_diag *diag)

/* The job that an order with this key made before; HD_E_EXISTS if that was another order. */
static enum hd_err same_order(struct hd_daemon *d, const struct hd_json *ask, const char *key, uint64_t id,
	struct hd_diag *diag)
{
	struct hd_jobs_card card;
	char order[HD_HASH_HEX];
	enum hd_err err = hd_jobs_get(d->jobs, id, &card, NULL, NULL, diag);

	hd_hash_hex(daemon_order_hash(ask), order);
	if (!err && card.order[0] && strcmp(card.order, order) != 0)
		err = hd_fail(diag, HD_E_EXISTS,
			"key \"%.64s\" is of job %llu (%s), which has another order: send the same "
			"order to get that job, or draw another key for a new one", key,
				(unsigned long long)id, card.name);
	return err;
}

static enum hd_err put_submitted(struct hd_daemon *d, uint64_t id, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	enum hd_err err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);

	if (err)
		return err;
	hd_json_put_i64(w, "id", (int64_t)id);
	hd_json_put_text(w, "name", card.name);
	hd_json_put_text(w, "run", card.run);
	hd_json_put_text(w, "state", state_of(&row, &lease));
	put_why(d, &row, &lease, w);
	return HD_OK;
}

ANSWER(submit)
{
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	const char *key = "";
	uint64_t id = 0;
	enum hd_err err = hd_json_find(ask, "key") ? hd_json_get_text(ask, "key", &key, diag) : HD_OK;

	if (!err && *key && !hd_jobs_by_key(d->jobs, key, &id, NULL)) {
		err = same_order(d, ask, key, id, diag);
		return err ? err : put_submitted(d, id, w, diag);
	}
	if (!err && d->draining)
		err = hd_fail(diag, HD_E_REFUSED, "this scheduler is about to end");
	if (!err && hd_dispatch_njobs(d->dispatch) >= HD_DAEMON_QUEUED)
		err = hd_fail(diag, HD_E_REFUSED, "there are %d jobs that are not over", HD_DAEMON_QUEUED);
	if (!err)
		err = daemon_take_job(d, ask, &card, &row, diag);
	(void)HD_FAILPOINT(DAEMON_TAKE);
	if (!err)
		err = daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
			.job = card.id, .row = &row }, &card, NULL, diag);
	return err ? err : put_submitted(d, card.id, w, diag);
}

struct listing { struct hd_daemon *d; struct hd_json_writer *w; const char *state; int64_t left; bool more; };

static enum hd_err list_one(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct listing *l = user;

	(void)diag;
	if (l->state && strcmp(l->state, state_of(row, lease)) != 0)
		return HD_OK;
	if (!l->left) {
		l->more = true;
		return HD_E_NOSPACE;              /* enough */
	}
	l->left--;
	hd_json_open_object(l->w, NULL);
	put_summary(l->d, card, row, lease, l->w);
	hd_json_close(l->w);
	return HD_OK;
}

ANSWER(jobs)
{
	struct listing l = { d, w, NULL, HD_ANSWER_STANDARD, false };
	int64_t after = 0;
	int of = 0;
	enum hd_err err = hd_json_find(ask, "state") ? hd_json_get_text(ask, "state", &l.state, diag) : HD_OK;

	while (!err && l.state && of < NSTATES && strcmp(states[of], l.state) != 0)
		of++;
	if (!err && of == NSTATES)
		err = hd_fail(diag, HD_E_INVAL,
			"state \"%.40s\": queued, starting, running, draining, done, failed or cancelled",
			l.state);
	if (!err)
		err = read_count(ask, "after", 0, INT64_MAX, &after, diag);
	if (!err)
		err = read_count(ask, "limit", 1, HD_ANSWER_LIMIT, &l.left, diag);
	if (err)
		return err;
	hd_json_open_array(w, "jobs");
	err = hd_jobs_list(d->jobs, !l.state ? NULL : of < 4 ? "live" : l.state, (uint64_t)after, UINT32_MAX,
		list_one, &l, diag);
	hd_json_close(w);
	hd_json_put_bool(w, "more", l.more);
	return err == HD_E_NOSPACE ? HD_OK : err;
}

ANSWER(job)
{
	static const char *const from[] = { [HD_RATE_GUESSED] = "guessed", [HD_RATE_ASKED] = "asked",
		[HD_RATE_MEASURED] = "measured" };
	const struct hd_pools *pools = d->spec->pools;
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);
	if (err)
		return err;
	put_summary(d, &card, &row, &lease, w);
	hd_json_open_array(w, "devices");
	for (uint32_t i = 0; i < lease.n && lease.state != HD_LEASE_RELEASED; i++) {
		char name[96];
		hd_pools_device(pools, lease.device[i], name);
		hd_json_put_text(w, NULL, name);
	}
	hd_json_close(w);
	hd_json_put_text(w, "lease", hd_lease_name(lease.state));
	hd_json_open_array(w, "rates");
	for (uint32_t t = 0; t < pools->ntypes; t++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "type", pools->name[t]);
		hd_json_put_f64(w, "steps_s", row.rate[t].steps_s);
		hd_json_put_text(w, "from", from[row.rate[t].from]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_put_i64(w, "failures", row.failures);
	hd_json_put_i64(w, "leases", row.leases);
	hd_json_put_text(w, "run", card.run);
	hd_json_put_text(w, "digest", card.digest);
	return HD_OK;
}

ANSWER(explain)
{
	const struct hd_pools *pools = d->spec->pools;
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	struct hd_dispatch_why why = { .code = "OVER" };
	bool what_if = true;
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err && hd_json_find(ask, "policy"))
		err = hd_json_get_bool(ask, "policy", &what_if, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);
	if (!err && hd_dispatch_job(d->dispatch, id)) {
		const atomic_bool *stop = hd_renewer_begin(d->renewer, HD_DAEMON_ANSWER_NS);
		err = hd_dispatch_explain(d->dispatch, id, daemon_now_s(d), what_if, stop, &why, diag);
		/* what would help comes from answers that were not waited for */
		if (hd_renewer_end(d->renewer))
			snprintf(why.more, sizeof why.more,
				"what would help it the policy did not say within %.0f s",
				1e-9 * HD_DAEMON_ANSWER_NS);
	} else if (!err)
		snprintf(why.text, sizeof why.text, "it is %s%s%s", hd_dispatch_state_name(row.state),
			*row.why ? ": " : "", row.why);
	if (err)
		return err;
	hd_json_put_i64(w, "id", (int64_t)id);
	hd_json_put_text(w, "name", card.name);
	hd_json_put_text(w, "state", state_of(&row, &lease));
	hd_json_put_text(w, "code", why.code);
	hd_json_put_text(w, "text", why.text);
	hd_json_open_array(w, "more");
	if (*why.more)
		hd_json_put_text(w, NULL, why.more);
	if (*row.why && row.state == HD_DISPATCH_OPEN)
		hd_json_put_text(w, NULL, row.why);
	hd_json_close(w);
	hd_json_put_f64(w, "boundary_s", isfinite(hd_dispatch_boundary_s(d->dispatch)) ?
		hd_dispatch_boundary_s(d->dispatch) : -1);
	hd_json_open_array(w, "types");
	for (uint32_t t = 0; t < why.ntypes; t++) {
		const struct hd_dispatch_why_type *of = &why.type[t];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "type", pools->name[of->type]);
		hd_json_put_i64(w, "devices", of->devices);
		hd_json_put_i64(w, "free", of->free);
		hd_json_put_f64(w, "steps_s", of->steps_s);
		hd_json_put_f64(w, "share", of->share);
		hd_json_put_f64(w, "received_s", of->received_s);
		hd_json_put_f64(w, "due_s", of->due_s);
		hd_json_put_f64(w, "priority", of->priority);
		hd_json_close(w);
	}
	hd_json_close(w);
	return HD_OK;
}

/* A job that is over is known to the store alone. */
static enum hd_err feed_job(struct hd_daemon *d, struct hd_dispatch_event *event, struct hd_jobs_card *card,
	struct hd_dispatch_job *row,
	struct hd_dispatch_lease *lease, struct hd_diag *diag)
{
	enum hd_err err = hd_jobs_get(d->jobs, event->job, card, row, lease, diag);

	if (!err && row->state != HD_DISPATCH_OPEN)
		err = hd_fail(diag, HD_E_INVAL, "job %llu is %s", (unsigned long long)event->job,
			hd_dispatch_state_name(row->state));
	if (!err)
		err = daemon_feed(d, event, NULL, NULL, diag);
	return err ? err : hd_jobs_get(d->jobs, event->job, card, row, lease, diag);
}

ANSWER(cancel)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_CANCEL };
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	enum hd_err err = daemon_find_job(d, ask, "job", &event.job, diag);

	if (!err)
		err = feed_job(d, &event, &card, &row, &lease, diag);
	if (err)
		return err;
	hd_json_put_i64(w, "id", (int64_t)event.job);
	hd_json_put_text(w, "state", state_of(&row, &lease));
	return HD_OK;
}

ANSWER(prio)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_WEIGHT };
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	enum hd_err err = daemon_find_job(d, ask, "job", &event.job, diag);

	if (!err)
		err = hd_json_get_f64(ask, "priority", &event.value, diag);
	if (!err)
		err = feed_job(d, &event, &card, &row, &lease, diag);
	if (err)
		return err;
	hd_json_put_i64(w, "id", (int64_t)event.job);
	hd_json_put_f64(w, "priority", row.weight);
	return HD_OK;
}

ANSWER(status)
{
	const struct hd_pools *pools = d->spec->pools;
	struct listing running = { d, w, "running", HD_ANSWER_STANDARD, false };
	uint64_t n[HD_DISPATCH_NSTATES], leased[HD_LEASE_NSTATES], of[NSTATES] = { 0 };
	struct hd_proc_self self;
	char late[HD_DAEMON_LATE];
	enum hd_err err = hd_jobs_count(d->jobs, n, leased, diag);

	(void)ask;
	if (err)
		return err;
	hd_proc_self(&self);
	hd_json_put_i64(w, "pid", self.pid);
	hd_json_put_text(w, "dir", d->spec->dir);
	hd_json_put_text(w, "policy", d->policy);
	hd_json_put_f64(w, "asked_s", daemon_asked_s(d));
	daemon_late_text(d, late);
	hd_json_put_text(w, "late", late);
	hd_json_put_f64(w, "round_s", hd_dispatch_round_s(d->dispatch));
	hd_json_put_f64(w, "now_s", daemon_now_s(d));
	hd_json_put_f64(w, "boundary_s", isfinite(hd_dispatch_boundary_s(d->dispatch)) ?
		hd_dispatch_boundary_s(d->dispatch) : -1);
	hd_json_put_f64(w, "since_s", d->since_s);
	of[0] = n[HD_DISPATCH_OPEN];
	for (int k = 0; k < HD_LEASE_RELEASED; k++)
		of[0] -= leased[k];
	of[1] = leased[HD_LEASE_OFFERED];
	of[2] = leased[HD_LEASE_HELD] + leased[HD_LEASE_RESIZE];
	of[3] = leased[HD_LEASE_DRAIN] + leased[HD_LEASE_EXPIRED] + leased[HD_LEASE_KILLED];
	of[4] = n[HD_DISPATCH_DONE];
	of[5] = n[HD_DISPATCH_FAILED];
	of[6] = n[HD_DISPATCH_CANCELLED];
	hd_json_open_object(w, "counts");
	for (int k = 0; k < NSTATES; k++)
		hd_json_put_i64(w, states[k], (int64_t)of[k]);
	hd_json_close(w);
	hd_json_open_array(w, "types");
	for (uint32_t t = 0; t < pools->ntypes; t++) {
		uint32_t busy = 0, lost = 0;
		for (uint32_t v = pools->first_device[t]; v < pools->first_device[t + 1]; v++) {
			struct hd_dispatch_device dev = hd_dispatch_device(d->dispatch, v);
			busy += dev.job || dev.there;
			lost += !dev.usable && !dev.job && !dev.there;
		}
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "type", pools->name[t]);
		hd_json_put_i64(w, "devices", pools->type[t].n);
		hd_json_put_i64(w, "busy", busy);
		hd_json_put_i64(w, "free", pools->type[t].n - busy - lost);
		hd_json_put_i64(w, "lost", lost);
		hd_json_put_f64(w, "price_usd_h", pools->type[t].price_usd_h);
		hd_json_put_f64(w, "speed", pools->type[t].speed);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "running");
	for (uint32_t i = 0; i < d->nwatches && !err && running.left; i++) {
		struct hd_jobs_card card;
		struct hd_dispatch_job row;
		struct hd_dispatch_lease lease;
		err = hd_jobs_get(d->jobs, d->watch[i].job, &card, &row, &lease, diag);
		if (!err)
			err = list_one(&running, &card, &row, &lease, diag);
	}
	hd_json_close(w);
	return err;
}

ANSWER(pools)
{
	const struct hd_pools *pools = d->spec->pools;

	(void)ask;
	(void)diag;
	hd_json_open_array(w, "pools");
	for (uint32_t t = 0; t < pools->ntypes; t++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "type", pools->name[t]);
		hd_json_put_i64(w, "devices", pools->type[t].n);
		hd_json_put_f64(w, "speed", pools->type[t].speed);
		hd_json_put_f64(w, "price_usd_h", pools->type[t].price_usd_h);
		hd_json_put_text(w, "means", hd_pool_means_text(pools->means));
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "devices");
	for (uint32_t v = 0; v < pools->ndevices; v++) {
		struct hd_dispatch_device dev = hd_dispatch_device(d->dispatch, v);
		char name[96];
		hd_pools_device(pools, v, name);
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "id", v);
		hd_json_put_text(w, "name", name);
		hd_json_put_text(w, "type", pools->name[dev.type]);
		hd_json_put_text(w, "state", dev.leaving ||
			(dev.there && !dev.job) ? "leaving" : dev.job ? dev.there ? "busy" : "starting"
			: dev.usable ? "free" : "out");
		hd_json_put_i64(w, "job", (int64_t)dev.job);
		hd_json_close(w);
	}
	hd_json_close(w);
	return HD_OK;
}

/* Another policy begins from what is on the disk, as another daemon would. */
ANSWER(policy)
{
	struct hd_dispatch *made = NULL;
	const char *policy = "";
	enum hd_err err = hd_json_find(ask, "policy") ? hd_json_get_text(ask, "policy", &policy, diag) :
		HD_OK;

	if (!err && *policy && d->draining)
		return hd_fail(diag, HD_E_REFUSED, "this scheduler is about to end");
	if (!err && *policy && strcmp(policy, d->policy) != 0) {
		size_t logged = d->log.len;
		err = daemon_make_dispatch(d, policy, &made, diag);
		if (!err && (err = daemon_keep_policy(d, policy, diag)))
			hd_dispatch_destroy(made);
		if (err) {                        /* a machine that never was says nothing in the log */
			d->log.len = logged;
			return err;
		}
		daemon_swap_dispatch(d, made, policy);
		for (uint32_t v = 0; v < HD_POOL_DEVICES; v++) {       /* the next look tells all there is */
			d->slot[v].there = false;
			/* a worker that was just started has not written its pid lock yet */
			if (!d->slot[v].proc.host)
				d->slot[v].job = 0;
		}
		for (uint32_t i = 0; i < d->nwatches; i++)
			d->watch[i].reported = false;
		daemon_take_out(d);
		daemon_look(d, true);
	}
	hd_json_put_text(w, "policy", d->policy);
	hd_json_put_f64(w, "round_s", hd_dispatch_round_s(d->dispatch));
	return err;
}

ANSWER(device)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_DEVICE };
	const char *wanted = "";
	char name[96] = "";
	enum hd_err err = hd_json_get_text(ask, "device", &wanted, diag);

	if (!err)
		err = hd_json_get_bool(ask, "usable", &event.ok, diag);
	for (; !err && event.device < d->spec->pools->ndevices; event.device++) {
		hd_pools_device(d->spec->pools, event.device, name);
		if (!strcmp(name, wanted))
			break;
	}
	if (!err && event.device == d->spec->pools->ndevices)
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no device \"%.80s\"", wanted);
	if (!err && event.ok && d->draining)
		err = hd_fail(diag, HD_E_REFUSED, "this scheduler is about to end");
	if (!err)
		err = daemon_keep_out(d, event.device, !event.ok, diag);
	if (!err)
		err = daemon_feed(d, &event, NULL, NULL, diag);
	if (err)
		return err;
	hd_json_put_text(w, "device", name);
	hd_json_put_bool(w, "usable", event.ok);
	return HD_OK;
}

ANSWER(stop)
{
	bool drain = false;
	enum hd_err err = hd_json_find(ask, "drain") ? hd_json_get_bool(ask, "drain", &drain, diag) : HD_OK;

	(void)w;
	if (err)
		return err;
	d->at_once |= d->draining && !drain;
	d->stopping = true;
	if (drain)
		daemon_drain(d);
	return HD_OK;
}

static enum hd_err put_event(void *user, const struct hd_jobs_event *e, struct hd_diag *diag)
{
	struct hd_json_writer *w = user;

	(void)diag;
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "number", (int64_t)e->number);
	hd_json_put_f64(w, "at_s", e->at_s);
	hd_json_put_f64(w, "t", (double)e->t_ms * 1e-3);
	hd_json_put_text(w, "kind", e->kind);
	hd_json_put_i64(w, "job", (int64_t)e->job);
	hd_json_put_text(w, "text", e->text);
	hd_json_close(w);
	return HD_OK;
}

ANSWER(events)
{
	int64_t after = 0, limit = HD_ANSWER_STANDARD;
	uint64_t job = 0;
	enum hd_err err = read_count(ask, "after", 0, INT64_MAX, &after, diag);

	if (!err)
		err = read_count(ask, "limit", 1, HD_ANSWER_LIMIT, &limit, diag);
	if (!err && hd_json_find(ask, "job"))
		err = daemon_find_job(d, ask, "job", &job, diag);
	if (err)
		return err;
	hd_json_open_array(w, "events");
	err = hd_jobs_events(d->jobs, (uint64_t)after, (uint32_t)limit, job, put_event, w, diag);
	hd_json_close(w);
	hd_json_put_i64(w, "last", (int64_t)hd_jobs_last_event(d->jobs));
	return err;
}

enum hd_err daemon_answer(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	static const struct {
		const char *what;
		enum hd_err (*answer)(struct hd_daemon *, const struct hd_json *, struct hd_json_writer *,
			struct hd_diag *);
	} row[] = {
		{ "submit", answer_submit }, { "jobs", answer_jobs }, { "job", answer_job }, { "explain", answer_explain }, { "cancel", answer_cancel },
		{ "prio", answer_prio }, { "status", answer_status }, { "pools", answer_pools }, { "policy", answer_policy }, { "device", answer_device },
		{ "stop", answer_stop }, { "events", answer_events }, { "whatif", daemon_answer_whatif },
	};
	struct hd_daemon *d = self;

	if (d->broken)
		return hd_fail(diag, d->broken, "%s", d->why.text);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(row[i].what, what)) {
			enum hd_err err = row[i].answer(d, ask, w, diag);
			(void)HD_FAILPOINT(DAEMON_ANSWER);
			return err == HD_E_INPUT && strcmp(what, "submit") != 0 ? HD_E_INVAL : err;
		}
	return hd_fail(diag, HD_E_INVAL, "a scheduler does not \"%s\"", what);
}
