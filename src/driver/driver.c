#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timeouts.h"
#include "sys/failpoint.h"

enum { OTHERS = 32 };
#define LAST_NS INT64_C(300000000)
#define GRACE_NS INT64_C(3000000000)

static void look_at_stop(struct driver *c)
{
	enum hd_err stop = c->spec->stop ? c->spec->stop(c->spec->watch.user) : HD_OK;
	const char *text = stop ? hd_err_text(stop) : "its lease is over: the scheduler has not asked for it";
	struct hd_diag diag = { "" };
	char gone[HD_MSG_TEXT + 1];

	if (!stop && !c->stop_asked && hd_rundir_is_gone(c->spec->dir)) {
		snprintf(gone, sizeof gone, HD_RUNDIR_GONE, c->spec->dir->path);
		stop = HD_E_NOTFOUND;
		text = gone;
	}
	if (!stop && c->until_ns && hd_clock_now_ns(c->spec->clock) >= c->until_ns)
		stop = HD_E_PREEMPTED;
	if (!stop || c->stop_asked)
		return;
	c->stop_asked = true;
	if (driver_halt(c, (uint32_t)hd_err_exit(stop), text, &diag))
		driver_fail(c, HD_E_IO, &diag);
}

static void turn(struct driver *c, int64_t until)
{
	struct hd_loop_event other[OTHERS];
	struct hd_diag diag = { "" };
	size_t n = 0;
	enum hd_err err = hd_hub_poll(&c->hub, until, other, OTHERS, &n, &diag);

	if (err)
		driver_fail(c, err, &diag);
	for (size_t i = 0; i < n; i++)
		if (other[i].tag >= c->control.tag && other[i].tag < c->control.tag + HD_CONTROL_TAGS)
			hd_control_event(&c->control, &other[i]);
}

static void look(struct driver *c, int64_t began_ns)
{
	hd_failpoint_look();
	driver_reap_inherited(c);
	driver_look_at_local(c);
	driver_look_at_places(c);
	driver_ledger_look(c);
	driver_trace_look(c);
	look_at_stop(c);
	driver_look_for_a_start(c, hd_clock_now_ns(c->spec->clock) - began_ns);
	hd_control_tick(&c->control, hd_clock_now_ns(c->spec->clock));
}

static void run_loop(struct driver *c)
{
	const int64_t beat = HD_TIMEOUT_NS(HEARTBEAT, c->detect_ns), began = hd_clock_now_ns(c->spec->clock);
	int64_t next = began, next_beat = began;

	if (c->spec->target && c->spec->worker_argv)     /* else the members that there are call */
		c->to_start = c->config.target;
	while (!c->over) {
		turn(c, next);
		driver_look_at_restore(c);
		if (hd_clock_now_ns(c->spec->clock) < next)
			continue;
		look(c, began);
		if (hd_clock_now_ns(c->spec->clock) >= next_beat) {
			driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_TICK });
			next_beat = hd_clock_now_ns(c->spec->clock) + beat;
		}
		next = hd_look_at_ns(hd_clock_now_ns(c->spec->clock), next_beat, c->detect_ns);
	}
	/* flush what is queued: members leave by themselves */
	int64_t until = hd_clock_now_ns(c->spec->clock) + LAST_NS;
	struct hd_hub_stats stats;
	do {
		turn(c, hd_clock_now_ns(c->spec->clock) + LAST_NS / 20);
		hd_hub_stats(&c->hub, &stats);
	} while (stats.up && hd_clock_now_ns(c->spec->clock) < until);
}

static enum hd_err verdict(struct driver *c, struct hd_driver_end *end, struct hd_diag *diag)
{
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	c->end.epochs = status.epoch;
	c->end.term = status.term;
	*end = c->end;
	if (c->end.become[0] && !c->err)
		return hd_fail(diag, HD_E_AGAIN, "it goes on as %s", c->end.become);
	if (c->err)
		return hd_fail(diag, c->err, "%s", c->diag.text);
	enum hd_err err = hd_err_of_exit((int)c->exit_code);
	return err ? hd_fail(diag, err, "%s", c->exit_text[0] ? c->exit_text : hd_err_text(err)) : HD_OK;
}

enum hd_err hd_driver_run(const struct hd_driver_spec *spec, struct hd_driver_end *end, struct hd_diag *diag)
{
	struct driver *c = hd_alloc(sizeof *c);
	char path[HD_PATH_CAP];

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a coordinator");
	*c = (struct driver){ .spec = spec, .end.step = spec->step, .sweep = true,
		.until_ns = spec->lease_ns ? hd_clock_now_ns(spec->clock) + spec->lease_ns : 0 };
	hd_arena_init(&c->messages, 0);
	hd_host_real(&c->host);
	driver_inherit(c);
	hd_local_init(&c->local, &(struct hd_local_spec){ .host = &c->host, .fs = spec->fs,
		.clock = spec->clock, .dir = spec->dir->path,
		.argv = spec->worker_argv });
	c->buf = hd_alloc(HD_TELL_MAX);
	hd_rundir_path(spec->dir, HD_DRIVER_STORE, path, sizeof path);
	enum hd_err err = c->buf ? hd_store_open(&c->store, path, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for messages");
	if (!err)
		err = driver_configure(c, diag);
	if (!err)
		driver_trace_open(c);
	if (!err)
		err = driver_open_links(c, diag);
	if (!err) {
		hd_rundir_hold_as(spec->dir, HD_HOLD_COORDINATES);
		driver_places_begin(c);
		hd_ending_begins(spec->dir, spec->step, spec->task->nsteps);
		hd_rundir_watch(spec->dir, spec->task->job, spec->step);
		hd_ending_at_once(spec->word, spec->dir, spec->step, spec->task->nsteps);
		run_loop(c);
		driver_tell_unrecorded(c);
		err = verdict(c, end, diag);
		if (err != HD_E_AGAIN)
			driver_keep_measured(c);
		if (!err)
			driver_keep_end(c);
		if (err == HD_E_AGAIN)
			hd_signal_word_set(NULL);         /* another coordinator says how it ends */
	}
	const bool becomes = err == HD_E_AGAIN && c->end.become[0];
	if (!becomes)
		hd_local_finish(&c->local, GRACE_NS);
	driver_places_end(c);
	driver_restore_finish(c);         /* reading may take long, and it wakes the hub */
	if (c->ledger_ns && !becomes)
		driver_ledger_close(c);
	if (c->control.listener.net)      /* it has opened its sockets */
		driver_sweep(c);
	hd_control_close(&c->control);
	hd_hub_finish(&c->hub);
	hd_loop_finish(&c->loop);
	hd_coordinator_destroy(c->machine);
	hd_reshape_finish(&c->reshape);
	hd_store_close(c->store);
	driver_trace_close(c);
	hd_arena_finish(&c->messages);
	hd_pipe_set_finish(&c->pipes);
	hd_free(c->buf);
	hd_free(c);
	return err;
}

enum hd_err hd_driver_address(const char *transport, const char *dir, const char *name,
	char address[HD_MSG_ADDR + 1], struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(dir, name, addr, diag);

	if (!err && (size_t)snprintf(address, HD_MSG_ADDR + 1, "%s %s", transport, addr) > HD_MSG_ADDR)
		err = hd_fail(diag, HD_E_REFUSED, "the path of %s is too long for a socket", dir);
	return err;
}
