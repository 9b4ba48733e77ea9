#include "functions/trip.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/thread.h"
#include "functions/http.h"
#include "functions/server.h"

#define PATIENCE_NS INT64_C(10000000000)  /* for one request */
enum { EVENT_BYTES = 300 };

/* The thread that answers. */
struct other {
	struct hd_thread thread;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_fn_server server;
	atomic_bool ends;
};

static void answer(void *self, struct hd_fn_caller *c, enum hd_err how, const struct hd_http_head *head,
	size_t len)
{
	struct other *o = self;

	(void)head, (void)len;
	hd_fn_serve_say(&o->server, c, how ? "400 Bad Request" : "200 OK", "", "{}");
}

static void run(void *self)
{
	struct other *o = self;
	struct hd_loop_event event[8];
	size_t n = 0;

	while (!atomic_load(&o->ends) && !hd_loop_poll(&o->loop, INT64_MAX, event, 8, &n, NULL))
		for (size_t i = 0; i < n; i++)
			if (!(event[i].what & HD_LOOP_WAKE))
				hd_fn_server_event(&o->server, &event[i]);
}

static enum hd_err one(struct hd_fn_calls *calls, const char *event, int64_t *ns, struct hd_diag *diag)
{
	struct hd_loop *loop = calls->loop;
	int64_t began_ns = hd_clock_now_ns(loop->clock), until_ns = began_ns + PATIENCE_NS;
	struct hd_loop_event come[8];
	struct hd_fn_called called;
	size_t n = 0;

	enum hd_err err = hd_fn_http_ops.call(calls, 1, event, EVENT_BYTES, until_ns, diag);
	while (!err && !hd_fn_calls_take(calls, &called)) {
		err = hd_loop_poll(loop, until_ns, come, 8, &n, diag);
		for (size_t i = 0; i < n && !err; i++)
			hd_fn_calls_event(calls, &come[i]);
		(void)hd_fn_calls_tick(calls, hd_clock_now_ns(loop->clock));
	}
	if (!err && called.end != HD_FN_ANSWERED)
		err = hd_fail(diag, HD_E_AGAIN, "a request to this machine is not answered: %s", called.why);
	*ns = hd_clock_now_ns(loop->clock) - began_ns;
	return err;
}

static enum hd_err try_all(struct other *o, struct hd_loop *loop, uint32_t count, int64_t *ns,
	struct hd_diag *diag)
{
	char endpoint[HD_ADDR_CAP + 8], event[EVENT_BYTES];
	struct hd_fn_calls calls;
	int64_t best_ns = INT64_MAX;

	snprintf(endpoint, sizeof endpoint, "http://%s", o->server.listener.addr + 4);
	memset(event, ' ', sizeof event);
	enum hd_err err = hd_fn_http_open(&calls, endpoint, NULL, 1, loop, diag);
	for (uint32_t i = 0; i < count && !err; i++) {
		int64_t took_ns = 0;
		err = one(&calls, event, &took_ns, diag);
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	hd_fn_calls_close(&calls);
	*ns = best_ns;
	return err;
}

enum hd_err hd_fn_http_trip(struct hd_clock *clock, uint32_t count, int64_t *ns, struct hd_diag *diag)
{
	struct other *o = hd_alloc(sizeof *o);
	struct hd_loop loop = { .ops = NULL };

	if (!o)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a round trip");
	memset(o, 0, sizeof *o);
	o->server = (struct hd_fn_server){ .handler = answer, .self = o, .tag = 1 };
	hd_net_real(&o->net);
	enum hd_err err = hd_loop_init(&loop, clock, diag);
	if (!err)
		err = hd_loop_init(&o->loop, clock, diag);
	if (!err)
		err = hd_fn_server_open(&o->server, &o->net, "tcp:127.0.0.1:0", &o->loop, diag);
	if (!err)
		err = hd_thread_start(&o->thread, "heddle trip", -1, run, o, diag);
	if (!err)
		err = try_all(o, &loop, count, ns, diag);
	atomic_store(&o->ends, true);
	if (o->thread.started)
		hd_loop_wake(&o->loop);
	hd_thread_join(&o->thread);
	hd_fn_server_close(&o->server);
	hd_loop_finish(&o->loop);
	hd_loop_finish(&loop);
	hd_free(o);
	return err;
}
