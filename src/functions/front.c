#include "functions/front.h"

#include <stdio.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "functions/server.h"
#include "functions/worker.h"

#define LOOK_NS INT64_C(500000000)        /* between looks at a request to stop */
enum { SERVER = 1, EVENTS = 32 };

/* Where a slot is: given by the loop's thread, done by the slot's. */
enum slot_state { FREE, GIVEN, DONE, ENDS };

/* One thread that computes. */
struct slot {
	struct hd_thread thread;
	struct hd_loop loop;              /* what it sleeps on */
	struct hd_fn_worker worker;
	struct front *front;
	_Atomic int state;
	char event[HD_FN_EVENT_BYTES];
	size_t len;
	struct hd_fn_answer answer;
};

/* The front end. */
struct front {
	struct hd_fn_front_spec spec;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_fn_server server;
	struct slot *slot;                /* owned: spec.concurrency */
	uint32_t nslots;                  /* that were opened */
	bool stops;
};

static void run_slot(void *self)
{
	struct slot *s = self;
	struct hd_loop_event event[4];
	size_t n = 0;

	for (;;) {
		int state = atomic_load(&s->state);
		if (state == ENDS)
			return;
		if (state == GIVEN) {
			hd_fn_worker_do(&s->worker, s->event, s->len, "", INT64_MAX, &s->answer);
			atomic_store(&s->state, DONE);
			hd_loop_wake(&s->front->loop);
		} else if (hd_loop_poll(&s->loop, INT64_MAX, event, 4, &n, NULL)) {
			return;
		}
	}
}

static enum hd_err open_slot(struct front *f, struct slot *s, struct hd_diag *diag)
{
	memset(s, 0, sizeof *s);
	s->front = f;
	f->nslots++;
	enum hd_err err = hd_fn_worker_init(&s->worker, f->spec.clock, diag);
	if (!err)
		err = hd_loop_init(&s->loop, f->spec.clock, diag);
	return err ? err : hd_thread_start(&s->thread, "heddle fn", -1, run_slot, s, diag);
}

static void close_slot(struct slot *s)
{
	if (s->thread.started) {
		atomic_store(&s->state, ENDS);
		hd_loop_wake(&s->loop);
	}
	hd_thread_join(&s->thread);
	hd_loop_finish(&s->loop);
	hd_fn_worker_finish(&s->worker);
}

/* ---- requests ---- */

static bool is_health(const struct hd_http_head *head)
{
	return hd_http_is(head->method, "GET") &&
		(hd_http_is(head->target, "/_/health") || hd_http_is(head->target, "/_/ready"));
}

static void begin_task(struct front *f, struct hd_fn_caller *c, size_t len)
{
	uint32_t i = 0;

	while (i < f->nslots && atomic_load(&f->slot[i].state) != FREE)
		i++;
	if (i == f->nslots) {
		hd_fn_serve_say(&f->server, c, "429 Too Many Requests", "", "{}");
		return;
	}
	memcpy(f->slot[i].event, c->body, len);
	f->slot[i].len = len;
	c->call = i;
	c->waits = true;
	atomic_store(&f->slot[i].state, GIVEN);
	hd_loop_wake(&f->slot[i].loop);
}

static void on_request(void *self, struct hd_fn_caller *c, enum hd_err how, const struct hd_http_head *head,
	size_t len)
{
	struct front *f = self;
	struct hd_fn_server *s = &f->server;
	bool posts = !how && hd_http_is(head->method, "POST") && hd_http_is(head->target, "/");

	if (how == HD_E_NOSPACE)
		hd_fn_serve_say(s, c, "413 Content Too Large", "", "{}");
	else if (how)
		hd_fn_serve_say(s, c, "400 Bad Request", "", "{}");
	else if (!posts && !is_health(head))
		hd_fn_serve_say(s, c, "404 Not Found", "", "{}");
	else if (f->stops)
		hd_fn_serve_say(s, c, "503 Service Unavailable", "", "{}");
	else if (posts)
		begin_task(f, c, len);
	else
		hd_fn_serve_say(s, c, "200 OK", "", "{}");
}

/* ---- turns ---- */

static void end_tasks(struct front *f)
{
	char bytes[HD_FN_ANSWER_BYTES];
	struct hd_text text;

	for (uint32_t i = 0; i < f->nslots; i++) {
		if (atomic_load(&f->slot[i].state) != DONE)
			continue;
		hd_text_fixed(&text, bytes, sizeof bytes);
		hd_fn_answer_write(&f->slot[i].answer, &text);
		for (uint32_t k = 0; k < HD_FN_CALLERS; k++)
			if (f->server.at[k].waits && f->server.at[k].call == i)
				hd_fn_serve_say(&f->server, &f->server.at[k], "200 OK", "", text.at);
		atomic_store(&f->slot[i].state, FREE);
	}
}

static bool is_busy(const struct front *f)
{
	for (uint32_t i = 0; i < f->nslots; i++)
		if (atomic_load(&f->slot[i].state) != FREE)
			return true;
	for (uint32_t k = 0; k < HD_FN_CALLERS; k++)
		if (f->server.at[k].sock.net && f->server.at[k].out_len)
			return true;              /* an answer is on its way */
	return false;
}

/* From a request to stop on until until_ns; INT64_MAX: there was none. */
static enum hd_err turn(struct front *f, int64_t until_ns, struct hd_diag *diag)
{
	struct hd_loop_event event[EVENTS];
	size_t n = 0;

	end_tasks(f);
	int64_t now_ns = hd_clock_now_ns(f->spec.clock), next_ns = hd_fn_server_tick(&f->server, now_ns);
	next_ns = now_ns + LOOK_NS < next_ns ? now_ns + LOOK_NS : next_ns;
	enum hd_err err = hd_loop_poll(&f->loop, next_ns < until_ns ? next_ns : until_ns, event, EVENTS, &n,
		diag);
	for (size_t i = 0; i < n && !err; i++)
		if (!(event[i].what & HD_LOOP_WAKE))
			hd_fn_server_event(&f->server, &event[i]);
	end_tasks(f);
	return err;
}

static enum hd_err serve(struct front *f, bool *abandoned, struct hd_diag *diag)
{
	int64_t until_ns = INT64_MAX;
	enum hd_err err = HD_OK;

	while (!err && (!f->stops || is_busy(f)) && !*abandoned) {
		err = turn(f, until_ns, diag);
		int64_t now_ns = hd_clock_now_ns(f->spec.clock);
		if (!f->stops && hd_signal_stop()) {
			f->stops = true;
			until_ns = now_ns + f->spec.drain_ns;
		}
		*abandoned = now_ns >= until_ns && is_busy(f);
	}
	return err;
}

static enum hd_err open_front(struct front *f, struct hd_diag *diag)
{
	f->slot = hd_alloc(f->spec.concurrency * sizeof *f->slot);
	f->server = (struct hd_fn_server){ .handler = on_request, .self = f, .tag = SERVER };
	hd_net_real(&f->net);
	f->net.world = f->spec.world;
	enum hd_err err = f->slot ? hd_loop_init(&f->loop, f->spec.clock, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for function workers");
	while (!err && f->nslots < f->spec.concurrency)
		err = open_slot(f, &f->slot[f->nslots], diag);
	return err ? err : hd_fn_server_open(&f->server, &f->net, f->spec.listen, &f->loop, diag);
}

enum hd_err hd_fn_serve_http(const struct hd_fn_front_spec *spec, bool *abandoned, struct hd_diag *diag)
{
	struct front *f = hd_alloc(sizeof *f);

	*abandoned = false;
	if (!spec->concurrency || spec->concurrency > HD_FN_CONCURRENCY) {
		hd_free(f);
		return hd_fail(diag, HD_E_INVAL, "%u tasks at once: 1 to %d are possible", spec->concurrency,
			HD_FN_CONCURRENCY);
	}
	if (!f)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a front end");
	memset(f, 0, sizeof *f);
	f->spec = *spec;
	enum hd_err err = open_front(f, diag);
	if (!err && spec->ready)
		spec->ready(spec->self, f->server.listener.addr);
	if (!err)
		err = serve(f, abandoned, diag);
	hd_fn_server_close(&f->server);
	if (*abandoned)
		return err;                   /* a thread still writes into f */
	for (uint32_t i = 0; i < f->nslots; i++)
		close_slot(&f->slot[i]);
	hd_loop_finish(&f->loop);
	hd_free(f->slot);
	hd_free(f);
	return err;
}
