#include <math.h>
#include <string.h>

#include "daemon/answers.h"
#include "daemon/backup.h"
#include "daemon/daemon_int.h"

/* The questions on the scheduler itself (frontend.h): its state, devices, policy, events, and its end. */

/* -1: there is no next round. */
double daemon_boundary_s(const struct hd_daemon *d)
{
	double at_s = hd_dispatch_boundary_s(d->dispatch);

	return isfinite(at_s) ? at_s : -1;
}

static void fill_slow(void *d, struct hd_json_writer *w) { daemon_fleet_fill(d, true, w); }

enum hd_err daemon_answer_status(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct daemon_running running = { .d = d, .diag = diag };
	uint64_t n[HD_DISPATCH_NSTATES], leased[HD_LEASE_NSTATES];
	struct hd_answer_type type[HD_DISPATCH_TYPES];
	struct hd_fields_count count[HD_DAEMON_STATES];
	struct hd_proc_self self;
	char late[HD_DAEMON_LATE];
	enum hd_err err = hd_jobs_count(d->jobs, n, leased, diag);

	(void)ask;
	if (err)
		return err;
	hd_proc_self(&self);
	daemon_late_text(d, late);
	daemon_count_states(n, leased, count);
	for (uint32_t t = 0; t < d->spec->pools->ntypes; t++)
		type[t] = daemon_type(d, t);
	hd_fields_put(&hd_answer_status_fields, 0, &(struct hd_answer_status){ .pid = self.pid,
		.dir = d->spec->dir, .policy = d->policy, .asked_s = daemon_asked_s(d), .late = late,
		.round_s = hd_dispatch_round_s(d->dispatch), .now_s = daemon_now_s(d),
		.boundary_s = daemon_boundary_s(d), .since_s = d->since_s,
		.counts = { count, HD_DAEMON_STATES },
		.types = { .at = type, .n = d->spec->pools->ntypes },
		.running = { .fill = daemon_fill_running, .user = &running },
		.slow = { .fill = fill_slow, .user = d },
		.windows = { .fill = daemon_fill_windows, .user = d },
		.lent = { .fill = daemon_fill_lent, .user = d },
		.partitions = { .fill = daemon_fill_partitions, .user = d },
		.partitions_wrong = daemon_partitions_wrong(d),
		.accounts = { .fill = daemon_fill_accounts, .user = d } }, w);
	return running.err;
}

static void fill_hosts(void *d, struct hd_json_writer *w) { daemon_fleet_fill(d, false, w); }

enum hd_err daemon_answer_hosts(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)ask;
	(void)diag;
	hd_fields_put(&hd_answer_hosts_fields, 0, &(struct hd_answer_hosts){
		.hosts = { .fill = fill_hosts, .user = d }, .left_out = (int64_t)d->fleet->left_out }, w);
	return HD_OK;
}

static void fill_pools(void *user, struct hd_json_writer *w)
{
	const struct hd_pools *pools = user;

	for (uint32_t t = 0; t < pools->ntypes; t++)
		hd_fields_put_object(&hd_answer_pool_fields, 0, &(struct hd_answer_pool){
			.type = pools->name[t], .devices = pools->type[t].n, .speed = pools->type[t].speed,
			.price_usd_h = pools->type[t].price_usd_h,
			.means = hd_pool_means_text(pools->means) }, NULL, w);
}

static void fill_devices(void *user, struct hd_json_writer *w)
{
	const struct hd_daemon *d = user;

	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++) {
		struct hd_dispatch_device dev = hd_dispatch_device(d->dispatch, v);
		char name[96], kept[HD_DAEMON_KEPT], on[HD_DAEMON_LENT];
		hd_pools_device(d->spec->pools, v, name);
		hd_fields_put_object(&hd_answer_device_fields, 0, &(struct hd_answer_device){ .id = v,
			.name = name, .type = d->spec->pools->name[dev.type],
			.state = dev.leaving || (dev.there && !dev.job) ? "leaving" :
				dev.job ? dev.there ? "busy" : "starting" :
				!dev.usable ? d->slot[v].out || daemon_is_lent(d, v) ? "out" : "not lent" :
				dev.window ? hd_window_state(dev.window->kind) : "free",
			.job = daemon_may_of_job(d, dev.job) ? (int64_t)dev.job : 0,
			.window = dev.window ? dev.window->name : "",
			.kept = daemon_kept_text(dev.window, kept),
			.on = daemon_lent_text(d, v, on) }, NULL, w);
	}
}

enum hd_err daemon_answer_pools(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)ask;
	(void)diag;
	hd_fields_put(&hd_answer_pools_fields, 0, &(struct hd_answer_pools){
		.pools = { .fill = fill_pools, .user = (void *)d->spec->pools },
		.devices = { .fill = fill_devices, .user = d } }, w);
	return HD_OK;
}

void daemon_begin_again(struct hd_daemon *d, struct hd_dispatch *made, const char *policy)
{
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

/* Another policy begins from what is on the disk, as another daemon would. */
enum hd_err daemon_answer_policy(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_dispatch *made = NULL;
	const char *policy = "";
	enum hd_err err = hd_json_find(ask, "policy") ? hd_json_get_text(ask, "policy", &policy, diag) :
		HD_OK;

	if (!err && *policy && d->draining)
		return hd_fail(diag, HD_E_AGAIN, "this scheduler is about to end");
	if (!err && *policy && strcmp(policy, d->policy) != 0) {
		size_t logged = d->log.len;
		err = daemon_make_dispatch(d, policy, &made, diag);
		if (!err && (err = daemon_keep_policy(d, policy, diag)))
			hd_dispatch_destroy(made);
		if (err) {                        /* a machine that never was says nothing in the log */
			d->log.len = logged;
			return err;
		}
		daemon_begin_again(d, made, policy);
	}
	hd_fields_put(&hd_answer_policy_fields, 0, &(struct hd_answer_policy){ .policy = d->policy,
		.round_s = hd_dispatch_round_s(d->dispatch) }, w);
	return err;
}

enum hd_err daemon_answer_device(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
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
		err = hd_fail(diag, HD_E_AGAIN, "this scheduler is about to end");
	if (!err)
		err = daemon_keep_out(d, event.device, !event.ok, diag);
	const bool usable = event.ok;
	event.ok = !err && usable && daemon_is_lent(d, event.device);
	if (!err)
		err = daemon_feed(d, &event, NULL, NULL, diag);
	if (err)
		return err;
	hd_fields_put(&hd_answer_usable_fields, 0, &(struct hd_answer_usable){ .device = name,
		.usable = usable }, w);
	return HD_OK;
}

/* Runs are not asked meanwhile, however long the disk takes: their leases are renewed. */
enum hd_err daemon_answer_backup(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const char *folder = "";
	struct hd_backup made;
	enum hd_err err = hd_json_get_text(ask, "folder", &folder, diag);

	if (!err && folder[0] != '/')
		err = hd_fail(diag, HD_E_INVAL, "folder \"%.80s\": an absolute path", folder);
	if (err)
		return err;
	(void)hd_renewer_begin(d->renewer, INT64_MAX);
	err = hd_backup_make(d->fs, d->spec->dir, d->jobs, hd_clock_wall_ns(d->clock) / 1000000, folder,
		&made, diag);
	(void)hd_renewer_end(d->renewer);
	if (err)
		return err;
	daemon_log(d, "backup", 0, folder);
	hd_backup_put(&made, folder, w);
	return HD_OK;
}

enum hd_err daemon_answer_stop(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
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
	hd_fields_put_object(&hd_answer_event_fields, 0, &(struct hd_answer_event){
		.number = (int64_t)e->number, .at_s = e->at_s, .t = (double)e->t_ms * 1e-3, .kind = e->kind,
		.job = (int64_t)e->job,
		.text = e->text }, NULL, w);
	return HD_OK;
}

struct event_page { struct hd_daemon *d; int64_t after, limit; uint64_t job; struct hd_diag *diag;
	enum hd_err err; };

static void fill_events(void *user, struct hd_json_writer *w)
{
	struct event_page *p = user;

	/* which job it may ask about was looked at; of all jobs, those of its own */
	p->err = hd_jobs_events_of(p->d->jobs, p->job ? HD_NO_UID : daemon_sees(p->d),
		daemon_sees_cluster(p->d), (uint64_t)p->after, (uint32_t)p->limit, p->job, put_event, w,
		p->diag);
}

enum hd_err daemon_answer_events(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct event_page page = { .d = d, .limit = HD_ANSWER_STANDARD, .diag = diag };
	enum hd_err err = daemon_read_count(ask, "after", 0, INT64_MAX, &page.after, diag);

	if (!err)
		err = daemon_read_count(ask, "limit", 1, HD_ANSWER_LIMIT, &page.limit, diag);
	if (!err && hd_json_find(ask, "job"))
		err = daemon_find_job(d, ask, "job", &page.job, diag);
	if (err)
		return err;
	hd_fields_put(&hd_answer_events_fields, 0, &(struct hd_answer_events){
		.events = { .fill = fill_events, .user = &page },
		.last = (int64_t)hd_jobs_last_event(d->jobs) }, w);
	return page.err;
}
