#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timeouts.h"
#include "sys/failpoint.h"
#include "run/ending.h"

enum { OTHERS = 32 };
#define LAST_NS INT64_C(300000000)
#define GRACE_NS INT64_C(3000000000)

static void look_at_wish(struct conduct *c)
{
	enum hd_err wish = c->spec->wish ? c->spec->wish(c->spec->watch.user) : HD_OK;
	const char *text = wish ? hd_err_text(wish) : "its lease is over: the scheduler has not asked for it";
	struct hd_diag diag = { "" };

	if (!wish && c->until_ns && hd_clock_now_ns(c->spec->clock) >= c->until_ns)
		wish = HD_E_PREEMPTED;
	if (!wish || c->wished)
		return;
	c->wished = true;
	if (conduct_halt(c, (uint32_t)hd_err_exit(wish), text, &diag))
		conduct_fail(c, HD_E_IO, &diag);
}

static void turn(struct conduct *c, int64_t until)
{
	struct hd_loop_event other[OTHERS];
	struct hd_diag diag = { "" };
	size_t n = 0;
	enum hd_err err = hd_hub_poll(&c->hub, until, other, OTHERS, &n, &diag);

	if (err)
		conduct_fail(c, err, &diag);
	for (size_t i = 0; i < n; i++)
		if (other[i].tag >= c->control.tag && other[i].tag < c->control.tag + HD_CONTROL_TAGS)
			hd_control_event(&c->control, &other[i]);
}

static void conduct(struct conduct *c)
{
	int64_t every = HD_PATIENCE_NS(HEARTBEAT, c->detect_ns), began = hd_clock_now_ns(c->spec->clock),
		next = began;

	if (c->spec->target && c->spec->worker_argv)     /* else the members that there are call */
		c->to_start = c->config.target;
	while (!c->over) {
		turn(c, next);
		if (hd_clock_now_ns(c->spec->clock) < next)
			continue;
		hd_failpoint_look();
		conduct_look_at_crew(c);
		look_at_wish(c);
		conduct_look_for_a_beginning(c, hd_clock_now_ns(c->spec->clock) - began);
		hd_control_tick(&c->control, hd_clock_now_ns(c->spec->clock));
		conduct_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_TICK });
		next = hd_clock_now_ns(c->spec->clock) + every;
	}
	/* what was told goes out: members leave by themselves */
	int64_t until = hd_clock_now_ns(c->spec->clock) + LAST_NS;
	struct hd_hub_stats stats;
	do {
		turn(c, hd_clock_now_ns(c->spec->clock) + LAST_NS / 20);
		hd_hub_stats(&c->hub, &stats);
	} while (stats.up && hd_clock_now_ns(c->spec->clock) < until);
}

static enum hd_err verdict(struct conduct *c, struct hd_conduct_end *end, struct hd_diag *diag)
{
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	c->end.epochs = status.epoch;
	c->end.term = status.term;
	*end = c->end;
	if (c->err)
		return hd_fail(diag, c->err, "%s", c->diag.text);
	enum hd_err err = hd_err_of_exit((int)c->exit_code);
	return err ? hd_fail(diag, err, "%s", c->exit_text[0] ? c->exit_text : hd_err_text(err)) : HD_OK;
}

enum hd_err hd_conduct(const struct hd_conduct_spec *spec, struct hd_conduct_end *end, struct hd_diag *diag)
{
	struct conduct *c = hd_alloc(sizeof *c);
	char path[HD_PATH_CAP];

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a coordinator");
	*c = (struct conduct){ .spec = spec, .end.step = spec->step, .sweep = true,
		.until_ns = spec->lease_ns ? hd_clock_now_ns(spec->clock) + spec->lease_ns : 0 };
	hd_arena_init(&c->messages, 0);
	hd_host_real(&c->host);
	hd_crew_init(&c->crew, &(struct hd_crew_spec){ .host = &c->host, .fs = spec->fs, .clock = spec->clock,
		.dir = spec->dir->path,
		.argv = spec->worker_argv });
	c->room = hd_alloc(HD_TELL_MAX);
	hd_rundir_path(spec->dir, HD_CONDUCT_STORE, path, sizeof path);
	enum hd_err err = c->room ? hd_store_open(&c->store, path, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for messages");
	if (!err)
		err = conduct_configure(c, diag);
	if (!err)
		err = conduct_open_links(c, diag);
	if (!err) {
		hd_rundir_hold_as(spec->dir, HD_HOLD_CONDUCTS);
		hd_ending_begins(spec->dir, spec->step, spec->task->nsteps);
		conduct(c);
		conduct_tell_unrecorded(c);
		err = verdict(c, end, diag);
	}
	hd_crew_finish(&c->crew, GRACE_NS);
	if (c->control.listener.net)      /* it has conducted */
		conduct_sweep(c);
	hd_control_close(&c->control);
	hd_hub_finish(&c->hub);
	hd_loop_finish(&c->loop);
	hd_coordinator_destroy(c->machine);
	hd_reshape_finish(&c->reshape);
	hd_store_close(c->store);
	hd_arena_finish(&c->messages);
	hd_free(c->room);
	hd_free(c);
	return err;
}

enum hd_err hd_conduct_address(const char *transport, const char *dir, const char *name,
	char address[HD_MSG_ADDR + 1], struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(dir, name, addr, diag);

	if (!err && (size_t)snprintf(address, HD_MSG_ADDR + 1, "%s %s", transport, addr) > HD_MSG_ADDR)
		err = hd_fail(diag, HD_E_REFUSED, "the path of %s is too long for a socket", dir);
	return err;
}
