#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/grow.h"
#include "sys/failpoint.h"
#include "daemon/daemon_int.h"

/* Turns of the loop, and the one way in which anything is decided: an event, its records on the disk, then
 * its orders. */

enum { HD_DAEMON_BATCH = 64, HD_DAEMON_LOG_BYTES = 64 << 20 };
#define HD_DAEMON_TURN_NS   INT64_C(1000000000)       /* frontends are called so often at least */
#define HD_DAEMON_FRONTEND_TAG UINT64_C(1000)

double daemon_now_s(const struct hd_daemon *d) { return d->zero_s +
	(double)(hd_clock_now_ns(d->clock) - d->zero_ns) * 1e-9; }

void daemon_log(struct hd_daemon *d, const char *kind, uint64_t job, const char *text)
{
	if (d->spec->say)
		d->spec->say(d->spec->user, kind, job, text);
}

void daemon_queue(struct hd_daemon *d, const struct hd_dispatch_event *event)
{
	if (d->nqueued < HD_DAEMON_EVENTS)
		d->queue[d->nqueued++] = *event;  /* else the next look finds it again */
}

struct watch *daemon_watch(struct hd_daemon *d, uint64_t job, uint32_t lease)
{
	struct hd_jobs_card card;

	for (uint32_t i = 0; i < d->nwatches; i++)
		if (d->watch[i].job == job) {
			if (d->watch[i].lease != lease) {
				d->watch[i].lease = lease;
				d->watch[i].reported = false;
				d->watch[i].scale = d->watch[i].n = d->watch[i].nsums = 0;
				d->watch[i].alone_s = NAN;
				d->watch[i].asked_s = -INFINITY;
			}
			return &d->watch[i];
		}
	if (hd_jobs_get(d->jobs, job, &card, NULL, NULL, NULL) ||
		hd_grow(&d->watch, &d->watches_cap, (uint64_t)d->nwatches + 1, sizeof *d->watch, "runs",
		NULL))
		return NULL;
	struct watch *w = &d->watch[d->nwatches++];
	*w = (struct watch){ .job = job, .lease = lease, .reported_s = -INFINITY, .asked_s = -INFINITY,
		.alone_s = NAN, .fleet_s = -INFINITY };
	snprintf(w->run, sizeof w->run, "%s", card.run);
	w->as = daemon_account(d, &card, &w->account);
	if (daemon_lend(d, daemon_of(w), NULL))
		return w;
	w->takeover_s = daemon_takeover_s(d, w->run);
	daemon_unlend(daemon_of(w));
	return w;
}

/* ---- an event ---- */

static enum hd_err store(struct hd_daemon *d, const struct hd_dispatch_outs *outs,
	const struct hd_jobs_card *card, const char *digest, const struct hd_dispatch_event *event,
	struct hd_diag *diag)
{
	double now_s = daemon_now_s(d), began_s = hd_dispatch_began_s(d->dispatch);
	int64_t wall_ns = hd_clock_wall_ns(d->clock);
	uint64_t number;
	enum hd_err err = hd_jobs_begin(d->jobs, diag);

	for (uint32_t i = 0; card && i < (event->n ? event->n : 1) && !err; i++)
		err = hd_jobs_put_card(d->jobs, &card[i], diag);
	for (size_t i = 0; i < outs->n && !err; i++) {
		const struct hd_dispatch_out *o = &outs->at[i];
		if (o->kind == HD_DISPATCH_DO_JOB)
			err = hd_jobs_put_row(d->jobs, o->row, diag);
		else if (o->kind == HD_DISPATCH_DO_LEASE)
			err = hd_jobs_put_lease(d->jobs, o->held, diag);
		else if (o->kind == HD_DISPATCH_DO_NOTE)
			err = hd_jobs_put_event(d->jobs, &(struct hd_jobs_event){ .job = o->job,
				.at_s = now_s, .t_ms = wall_ns / 1000000, .kind = o->name,
				.text = o->text }, &number, diag);
	}
	if (!err && digest && *digest)
		err = hd_jobs_put_digest(d->jobs, event->job, digest, diag);
	if (!err)
		err = hd_jobs_put_number(d->jobs, "now_s", now_s, diag);
	if (!err)
		err = hd_jobs_put_number(d->jobs, "wall_s", (double)wall_ns * 1e-9, diag);
	if (!err && began_s >= 0 && began_s != d->began_s)
		err = hd_jobs_put_number(d->jobs, "began_s", began_s, diag);
	if (!err)
		err = hd_jobs_commit(d->jobs, diag);
	if (err)
		hd_jobs_rollback(d->jobs);
	else
		d->began_s = began_s;
	return err;
}

/* One older part is kept: for a complete log copy the parts as they come. */
static void open_log(struct hd_daemon *d)
{
	char path[HD_PATH_CAP], old[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/decisions.ndjson", d->spec->dir);
	snprintf(old, sizeof old, "%s/decisions.1.ndjson", d->spec->dir);
	bool full = !hd_fs_stat(d->fs, path, &stat, NULL) && stat.size_bytes > HD_DAEMON_LOG_BYTES;
	if (d->log_lines.file.fs && !full)
		return;
	(void)!hd_lines_close(&d->log_lines, NULL);
	if (full)
		(void)!hd_fs_rename(d->fs, path, old, NULL);
	(void)!hd_lines_open(&d->log_lines, d->fs, path, NULL);
}

/* The log of decisions is for reading: a line that cannot be written is lost, not awaited. */
static void write_log(struct hd_daemon *d)
{
	if (d->log.len && d->log_lines.file.fs)
		open_log(d);
	if (d->log.len)
		(void)!hd_lines_add(&d->log_lines, d->log.at, d->log.len, NULL);
	if (d->log.cap > 1 << 20) {
		hd_arena_reset(&d->log_arena);
		hd_text_init(&d->log, &d->log_arena);
	}
	d->log.len = 0;
}

static bool has_records(const struct hd_dispatch_outs *outs)
{
	return outs->n && outs->at[0].kind <= HD_DISPATCH_DO_NOTE;       /* they come first */
}

static enum hd_err one(struct hd_daemon *d, const struct hd_dispatch_event *event,
	const struct hd_jobs_card *card, const char *digest, struct hd_diag *diag)
{
	struct hd_dispatch_outs outs;
	(void)hd_renewer_begin(d->renewer, INT64_MAX);
	enum hd_err err = hd_dispatch_step(d->dispatch, event, daemon_now_s(d), &outs, diag);
	(void)hd_renewer_end(d->renewer);

	if (err == HD_E_INVAL || err == HD_E_NOTFOUND)
		return err;
	if (!err && (card || digest || has_records(&outs)))
		err = store(d, &outs, card, digest, event, diag);
	if (err) {
		/* the disk is right, this machine is not: the next daemon begins from the disk */
		d->broken = err;
		d->why = *diag;
		return err;
	}
	write_log(d);
	for (size_t i = 0; i < outs.n; i++)
		if (outs.at[i].kind == HD_DISPATCH_DO_NOTE)
			daemon_log(d, outs.at[i].name, outs.at[i].job, outs.at[i].text);
		else
			daemon_act(d, &outs.at[i]);
	return HD_OK;
}

enum hd_err daemon_feed(struct hd_daemon *d, const struct hd_dispatch_event *event,
	const struct hd_jobs_card *card, const char *digest,
	struct hd_diag *diag)
{
	enum hd_err err = d->broken ? hd_fail(diag, d->broken, "%s", d->why.text) : one(d, event, card,
		digest, diag);
	struct hd_diag later = { "" };

	if (d->feeding)
		return err;
	d->feeding = true;
	for (uint32_t i = 0; i < d->nqueued && !d->broken; i++) {
		const struct hd_dispatch_event next = d->queue[i];
		later.text[0] = 0;
		(void)!one(d, &next, NULL, NULL, &later);
	}
	d->nqueued = 0;
	d->feeding = false;
	return err;
}

/* ---- beginning ---- */

/* fits: of jobs of that partition and scale, elastic or not, one was asked about. */
struct restoring { struct hd_daemon *d; struct hd_dispatch *dispatch; double now_s;
	bool fits[HD_DISPATCH_PARTITIONS][2][HD_DISPATCH_SET + 1]; };

/* A policy that refuses one job would decide nothing for all of them. */
static enum hd_err check_fits(struct restoring *r, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	if (row->state != HD_DISPATCH_OPEN || row->cancel || row->scale > HD_DISPATCH_SET)
		return HD_OK;
	bool *asked = &r->fits[daemon_partition_number(r->d, row)][row->max != 0][row->scale];
	if (*asked)
		return HD_OK;
	*asked = true;
	enum hd_err err = hd_dispatch_fits(r->dispatch, row, r->now_s, NULL, &why);
	return err ? hd_fail(diag, err,
		"job %llu (%s), of %u devices: %s. Serve with another policy until it is over",
		(unsigned long long)row->id,
		card->name, row->scale, why.text) : HD_OK;
}

static enum hd_err restore_one(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct restoring *r = user;
	struct hd_dispatch_job limited = *row;

	daemon_limit_job(r->d, card, &limited);
	enum hd_err err = daemon_put_in_partition(r->d, card, &limited, diag);
	if (!err)
		err = check_fits(r, card, &limited, diag);
	return err ? err : hd_dispatch_restore(r->dispatch, &limited,
		lease->state == HD_LEASE_RELEASED ? NULL : lease, diag);
}

enum hd_err daemon_make_dispatch(struct hd_daemon *d, const char *policy, struct hd_dispatch **made,
	struct hd_diag *diag)
{
	const struct hd_pools *pools = d->spec->pools;
	struct hd_dispatch_setting set = { .policy = policy, .round_s = d->spec->round_s,
		.move_s = d->spec->move_s,
		.ntypes = pools->ntypes, .type = pools->type,
		.min_reset_s = d->spec->round_s > 0 ? fmin(30, d->spec->round_s / 2) : 0,
		.began_s = d->began_s,
		.apart = true, .whole = d->spec->batches != NULL,
		.start_s = d->spec->batches ? HD_DAEMON_QUEUE_S : 0 };
	struct restoring restoring = { .d = d, .now_s = daemon_now_s(d) };

	daemon_set_partitions(d, &set);
	enum hd_err err = hd_dispatch_create(&restoring.dispatch, &set, &d->log, diag);
	if (!err)
		err = hd_jobs_list(d->jobs, "live", 0, UINT32_MAX, restore_one, &restoring, diag);
	if (!err)
		err = daemon_restore_windows(d, restoring.dispatch, diag);
	if (err)
		hd_dispatch_destroy(restoring.dispatch);
	else
		*made = restoring.dispatch;
	return err;
}

static enum hd_err open_store(struct hd_daemon *d, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	double wall_s = 0;

	snprintf(path, sizeof path, "%s/jobs.sqlite", d->spec->dir);
	enum hd_err err = hd_jobs_open(&d->jobs, path, d->spec->pools->type, d->spec->pools->ntypes, diag);
	if (err)
		return err;
	d->began_s = -1;
	err = hd_jobs_get_number(d->jobs, "now_s", &d->zero_s, diag);
	if (!err)
		err = hd_jobs_get_number(d->jobs, "wall_s", &wall_s, diag);
	if (!err)                                 /* a wall clock that jumped back makes no time run back */
		d->zero_s += fmax(0, (double)hd_clock_wall_ns(d->clock) * 1e-9 - wall_s);
	err = err == HD_E_NOTFOUND ? HD_OK : err;
	enum hd_err began = err ? HD_OK : hd_jobs_get_number(d->jobs, "began_s", &d->began_s, diag);
	d->zero_ns = hd_clock_now_ns(d->clock);
	d->since_s = d->zero_s;
	d->reported_event = hd_jobs_last_event(d->jobs);
	return err ? err : began == HD_E_NOTFOUND ? HD_OK : began;
}

enum hd_err daemon_keep_policy(struct hd_daemon *d, const char *policy, struct hd_diag *diag)
{
	enum hd_err err = hd_jobs_begin(d->jobs, diag);

	if (!err)
		err = hd_jobs_put_word(d->jobs, "policy asked", d->spec->policy, diag);
	if (!err)
		err = hd_jobs_put_word(d->jobs, "policy", policy, diag);
	if (!err)
		err = hd_jobs_commit(d->jobs, diag);
	if (err)
		hd_jobs_rollback(d->jobs);
	return err;
}

/* Started with the same --policy as before, the last policy set by a user stays. Another --policy wins. */
static enum hd_err find_policy(struct hd_daemon *d, struct hd_diag *diag)
{
	char asked[sizeof d->policy], kept[sizeof d->policy];
	enum hd_err err = hd_jobs_get_word(d->jobs, "policy asked", asked, sizeof asked, diag);

	if (err == HD_E_NOTFOUND)
		return HD_OK;
	if (!err && strcmp(asked, d->spec->policy) != 0)
		return daemon_keep_policy(d, d->spec->policy, diag);
	if (!err)
		err = hd_jobs_get_word(d->jobs, "policy", kept, sizeof kept, diag);
	if (!err && strcmp(kept, d->policy) != 0) {
		snprintf(d->policy, sizeof d->policy, "%s", kept);
		daemon_log(d, "policy", 0,
			"that of the last POST /v1/policy; serve with another one than before to have that");
	}
	return err;
}

/* The stored policy may be one that this build or these pools refuse, and not the one of the command line. */
static enum hd_err make_first(struct hd_daemon *d, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = daemon_make_dispatch(d, d->policy, &d->dispatch, &why);

	if (!err)
		return HD_OK;
	if (!strcmp(d->policy, d->spec->policy))
		return hd_fail(diag, err, "%s", why.text);
	return hd_fail(diag, err,
		"%.380s. Policy %s is the one of the last POST /v1/policy in %s: serve once with --policy "
		"other than %s, and that is used",
		why.text, d->policy, d->spec->dir, d->spec->policy);
}

static enum hd_err open_folder(struct hd_daemon *d, struct hd_diag *diag)
{
	static const char *const folders[] = { "", "/runs", "/devices" };
	char path[HD_PATH_CAP];
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !err; i++) {
		snprintf(path, sizeof path, "%s%s", d->spec->dir, folders[i]);
		err = hd_fs_mkdirs(d->fs, path, diag);
	}
	return err;
}

/* Behind the store's lock, and named by the folder itself: however it is written, it has one set of
 * groups. */
static void begin_pools(struct hd_daemon *d)
{
	char full[HD_PATH_CAP], tag[HD_HASH_HEX];

	if (!realpath(d->spec->dir, full))
		snprintf(full, sizeof full, "%s", d->spec->dir);
	hd_hash_hex(hd_hash(full, strlen(full)), tag);
	tag[12] = 0;
	if (!d->devices->own)
		hd_pools_begin(d->spec->pools, tag);
	daemon_log(d, "devices differ by", 0, hd_pool_means_text(d->spec->pools->means));
}

static void out_key(const struct hd_daemon *d, uint32_t device, char key[128])
{
	char name[96];

	hd_pools_device(d->spec->pools, device, name);
	snprintf(key, 128, "out %s", name);
}

enum hd_err daemon_keep_out(struct hd_daemon *d, uint32_t device, bool out, struct hd_diag *diag)
{
	char key[128];

	out_key(d, device, key);
	enum hd_err err = d->slot[device].out == out ? HD_OK : hd_jobs_put_number(d->jobs, key, out, diag);
	if (!err)
		d->slot[device].out = out;
	return err;
}

void daemon_take_out(struct hd_daemon *d)
{
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < d->spec->pools->ndevices && !d->broken; v++)
		if (d->slot[v].out || !daemon_is_lent(d, v))
			(void)!daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v }, NULL, NULL, &diag);
}

static enum hd_err find_out(struct hd_daemon *d, struct hd_diag *diag)
{
	for (uint32_t v = 0; v < d->spec->pools->ndevices; v++) {
		char key[128];
		double out = 0;
		out_key(d, v, key);
		enum hd_err err = hd_jobs_get_number(d->jobs, key, &out, diag);
		if (err && err != HD_E_NOTFOUND)
			return err;
		d->slot[v].out = !err && out > 0;
	}
	return HD_OK;
}

static void watch_leased(struct hd_daemon *d)
{
	for (uint32_t i = 0; i < hd_dispatch_njobs(d->dispatch); i++) {
		const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch,
			hd_dispatch_nth(d->dispatch, i));
		if (lease)
			(void)daemon_watch(d, lease->job, lease->number);
	}
}

/* ---- turns ---- */

static uint64_t tag_of(uint32_t i) { return HD_DAEMON_FRONTEND_TAG + (uint64_t)i * HD_FRONTEND_TAGS; }

static enum hd_err open_frontends(struct hd_daemon *d, uint32_t *n, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (*n = 0; *n < d->spec->nfrontends && !err; ++*n)
		err = d->spec->frontend[*n].ops->open(d->spec->frontend[*n].self, &d->handler, &d->loop,
			tag_of(*n), diag);
	return err;
}

static int64_t tick_frontends(struct hd_daemon *d)
{
	int64_t next = INT64_MAX, now = hd_clock_now_ns(d->clock);
	uint64_t last = hd_jobs_last_event(d->jobs);

	for (uint32_t i = 0; i < d->spec->nfrontends; i++) {
		if (last != d->reported_event)
			d->spec->frontend[i].ops->changed(d->spec->frontend[i].self, last);
		int64_t at = d->spec->frontend[i].ops->tick(d->spec->frontend[i].self, now);
		next = at < next ? at : next;
	}
	d->reported_event = last;
	return next;
}

static void pass_on(struct hd_daemon *d, const struct hd_loop_event *event)
{
	for (uint32_t i = 0; i < d->spec->nfrontends; i++)
		if (event->tag >= tag_of(i) && event->tag < tag_of(i) + HD_FRONTEND_TAGS)
			d->spec->frontend[i].ops->event(d->spec->frontend[i].self, event);
}

/* Drain: all devices go out of service, and the jobs on them commit and leave. Free devices go first, or jobs
 * would move to them. */
void daemon_drain(struct hd_daemon *d)
{
	struct hd_diag diag = { "" };

	if (d->draining)
		return;
	d->draining = true;
	for (int held = 0; held < 2; held++)
		for (uint32_t v = 0; v < d->spec->pools->ndevices && !d->broken; v++)
			if (held || !hd_dispatch_device(d->dispatch, v).job)
				(void)!daemon_feed(d, &(struct hd_dispatch_event){ .kind =
					HD_DISPATCH_IN_DEVICE, .device = v }, NULL, NULL, &diag);
}

static bool is_done(struct hd_daemon *d, bool stop_asked)
{
	if (d->broken)
		return true;
	if (!stop_asked && !d->stopping)
		return false;
	if (d->at_once || (!d->spec->drain && !d->draining))
		return true;
	daemon_drain(d);
	for (uint32_t i = 0; i < hd_dispatch_njobs(d->dispatch); i++)
		if (hd_dispatch_lease(d->dispatch, hd_dispatch_nth(d->dispatch, i)))
			return false;
	return true;
}

static void serve(struct hd_daemon *d)
{
	struct hd_loop_event event[HD_DAEMON_BATCH];
	int64_t look_ns = 0, frontend_ns = INT64_MAX;
	struct hd_diag diag = { "" };
	bool stop_asked = false;
	size_t n = 0;

	while (!is_done(d, stop_asked)) {
		int64_t now = hd_clock_now_ns(d->clock), until = now + HD_DAEMON_TURN_NS;
		double next_s = hd_dispatch_next_s(d->dispatch);
		int64_t next = isfinite(next_s) ? d->zero_ns + (int64_t)((next_s - d->zero_s) * 1e9) + 1 :
			INT64_MAX;
		until = look_ns < until ? look_ns : until;
		until = next < until ? next : until;
		until = frontend_ns < until ? frontend_ns : until;
		enum hd_err err = hd_loop_poll(&d->loop, until > now ? until : now, event, HD_DAEMON_BATCH,
			&n, &diag);
		if (err) {
			d->broken = err;
			d->why = diag;
			break;
		}
		for (size_t i = 0; i < n; i++)
			pass_on(d, &event[i]);
		stop_asked |= d->spec->stop && d->spec->stop(d->spec->user);
		now = hd_clock_now_ns(d->clock);
		bool boundary = daemon_now_s(d) >= hd_dispatch_boundary_s(d->dispatch);
		if (now >= look_ns || boundary) {
			daemon_look_at_users(d);
			daemon_look_at_partitions(d);
			daemon_look(d, boundary);
			look_ns = hd_clock_now_ns(d->clock) + HD_DAEMON_LOOK_NS;
			daemon_sample(d);
		}
		if (!d->broken)
			(void)!daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK },
				NULL, NULL, &diag);
		daemon_turn_policy(d);
		frontend_ns = tick_frontends(d);
	}
}

/* What is on the disk, and the machine that goes on from there. */
static enum hd_err take_up(struct hd_daemon *d, struct hd_diag *diag)
{
	static enum hd_err (*const step[])(struct hd_daemon *d, struct hd_diag *diag) = { open_folder,
		daemon_open_users, daemon_open_partitions, open_store, daemon_find_runs, find_policy,
		make_first };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof step / sizeof *step && !err; i++)
		err = step[i](d, diag);
	return err;
}

/* nopen: frontends that are open, also where it fails. */
static enum hd_err begin(struct hd_daemon *d, uint32_t *nopen, struct hd_diag *diag)
{
	enum hd_err err = hd_renewer_create(&d->renewer, d->clock, diag);

	if (!err)
		err = hd_loop_init(&d->loop, d->clock, diag);
	if (err)
		return err;
	open_log(d);
	begin_pools(d);
	err = open_frontends(d, nopen, diag);
	if (err)
		return err;
	watch_leased(d);
	err = find_out(d, diag);
	return !err && d->devices->open ? d->devices->open(d, diag) : err;
}

static void release(struct hd_daemon *d)
{
	(void)!hd_lines_close(&d->log_lines, NULL);
	hd_renewer_destroy(d->renewer);
	hd_dispatch_destroy(d->dispatch);
	hd_jobs_close(d->jobs);
	hd_arena_finish(&d->log_arena);
	hd_arena_finish(&d->scratch);
	if (d->devices->close)
		d->devices->close(d);
	hd_free(d->watch);
	hd_free(d->fleet);
	daemon_close_users(d);
	daemon_close_partitions(d);
}

enum hd_err hd_daemon(const struct hd_daemon_spec *spec, bool *lives_on, struct hd_diag *diag)
{
	struct hd_daemon *d = hd_alloc(sizeof *d);
	uint32_t nopen = 0;

	*lives_on = false;
	if (!d)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a scheduler");
	*d = (struct hd_daemon){ .spec = spec, .devices = daemon_devices_of(spec), .fs = spec->fs,
		.clock = spec->clock, .history = { .every_s = 1 } };
	d->handler = (struct hd_handler){ d, daemon_answer, daemon_identify };
	snprintf(d->policy, sizeof d->policy, "%s", spec->policy);
	hd_host_real(&d->host);
	hd_net_real(&d->net);
	hd_arena_init(&d->log_arena, 0);
	hd_arena_init(&d->scratch, 0);
	hd_text_init(&d->log, &d->log_arena);
	d->fleet = hd_alloc(sizeof *d->fleet);
	if (d->fleet)
		hd_fleet_init(d->fleet);
	enum hd_err err = d->fleet ? take_up(d, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for a scheduler");
	const bool on = !err && !spec->trial;
	if (on)
		err = begin(d, &nopen, diag);
	if (on && !err) {
		(void)HD_FAILPOINT(DAEMON_OPEN);
		daemon_take_out(d);
		serve(d);
		err = d->devices->end ? d->devices->end(d, d->broken ? NULL : diag) : HD_OK;
		if (d->broken)
			err = hd_fail(diag, d->broken, "%s", d->why.text);
	}
	for (uint32_t i = 0; i < nopen; i++)
		spec->frontend[i].ops->close(spec->frontend[i].self);
	const bool alone = daemon_end_policies(d);
	*lives_on = !alone;
	if (alone)
		hd_loop_finish(&d->loop);
	release(d);
	/* else a thread will wake the loop; the process ends, and it with it */
	if (alone)
		hd_free(d);
	return err;
}
