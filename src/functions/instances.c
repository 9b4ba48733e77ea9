#include "functions/instances.h"

#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "functions/link.h"

#define LOOK_NS INT64_C(20000000)         /* between looks at processes that start */
#define START_NS INT64_C(30000000000)     /* what a start may take beyond cold_ns */

enum draw { KILL, KILL_AT, STRAGGLE, DROP, DUPLICATE };

static double drawn(const struct hd_fn_instances *all, uint64_t number, enum draw what)
{
	const uint32_t counter[4] = { (uint32_t)number, (uint32_t)(number >> 32), what, 0 };

	return (double)hd_uniform(hd_philox(counter, hd_philox_key(all->spec.faults.seed,
		HD_RNG_USER)).word[0]);
}

enum hd_err hd_fn_instances_open(struct hd_fn_instances *all, const struct hd_fn_instances_spec *spec,
	struct hd_loop *loop, struct hd_diag *diag)
{
	if (!spec->slots || spec->slots > HD_FN_INSTANCES)
		return hd_fail(diag, HD_E_INVAL, "%u slots: 1 to %d are possible", spec->slots,
			HD_FN_INSTANCES);
	*all = (struct hd_fn_instances){ .spec = *spec, .loop = loop };
	hd_net_real(&all->net);
	hd_host_real(&all->host);
	all->at = hd_alloc(HD_FN_INSTANCES * sizeof *all->at);
	if (all->at)
		memset(all->at, 0, HD_FN_INSTANCES * sizeof *all->at);
	all->ended = hd_alloc(HD_FN_INSTANCES * sizeof *all->ended);
	enum hd_err err = all->at && all->ended ? hd_tie_open(&all->tie, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for function workers");
	if (err)
		hd_fn_instances_close(all);
	return err;
}

/* ---- one process ---- */

static void signal_it(struct hd_fn_instance *x, enum hd_proc_signal what)
{
	if (x->proc.host)
		(void)!hd_proc_signal(&x->proc, what, NULL);
}

static void shut(struct hd_fn_instances *all, struct hd_sock *sock)
{
	if (sock->net)
		hd_loop_unwatch(all->loop, sock->id);
	hd_sock_close(sock);
	*sock = (struct hd_sock){ 0 };
}

static void turn_off(struct hd_fn_instances *all, struct hd_fn_instance *x)
{
	hd_proc_finish(&x->proc);
	shut(all, &x->sock);
	shut(all, &x->listener);
	memset(x, 0, sizeof *x);
}

void hd_fn_instances_close(struct hd_fn_instances *all)
{
	for (uint32_t i = 0; all->at && i < HD_FN_INSTANCES; i++)
		turn_off(all, &all->at[i]);
	hd_free(all->at);
	hd_free(all->ended);
	all->at = NULL;
	all->ended = NULL;
	hd_tie_cut(&all->tie);
}

static enum hd_err start(struct hd_fn_instances *all, struct hd_fn_instance *x, struct hd_diag *diag)
{
	uint32_t i = (uint32_t)(x - all->at);
	char where[HD_ADDR_CAP] = "tcp:127.0.0.1:0", api[HD_ADDR_CAP + 32], memory[64],
		pace[64];
	const char *const env[] = { api, memory, pace, NULL };

	if (all->spec.dir && snprintf(where, sizeof where, "unix:%s/f%u", all->spec.dir,
		i) >= (int)sizeof where)
		return hd_fail(diag, HD_E_INVAL, "%s: the path is too long for sockets", all->spec.dir);
	enum hd_err err = hd_sock_listen(&all->net, where, &x->listener, diag);
	if (!err)
		err = hd_loop_watch(all->loop, x->listener.id, HD_LOOP_READ, all->spec.tag + 2 * i, diag);
	snprintf(api, sizeof api, "AWS_LAMBDA_RUNTIME_API=%s", x->listener.addr + (all->spec.dir ? 0 : 4));
	snprintf(memory, sizeof memory, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%lld",
		(long long)all->spec.memory_mb);
	snprintf(pace, sizeof pace, HD_FN_PACE_NAME "=%lld", (long long)all->spec.bytes_s);
	const struct hd_spawn how = { .argv = all->spec.argv, .env = env, .in = -1, .out = -1, .err = -1,
		.tie = &all->tie };
	if (!err)
		err = hd_proc_spawn(&all->host, &how, &x->proc, diag);
	x->started_ns = hd_clock_now_ns(all->loop->clock);
	x->phase = HD_FN_STARTING;
	all->nstarts++;
	if (err)
		turn_off(all, x);
	return err;
}

/* ---- a call ---- */

static void put_report(struct hd_fn_instances *all, const struct hd_fn_instance *x, int64_t now_ns,
	struct hd_lambda_report *r)
{
	int64_t took_ns = now_ns - x->began_ns;
	char bytes[512];
	struct hd_text text;

	*r = (struct hd_lambda_report){ .duration_us = took_ns / 1000, .init_us = x->init_ns / 1000,
		.memory_mb = all->spec.memory_mb, .used_mb = all->spec.memory_mb < 64 ?
			all->spec.memory_mb : 64 };
	memcpy(r->id, x->id, sizeof r->id);
	r->billed_ms = (took_ns + x->init_ns + 999999) / 1000000;
	if (!all->spec.log)
		return;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_lambda_report_write(r, &text);
	fputs(text.at, all->spec.log);
	fflush(all->spec.log);
}

/* What became of a call that has no answer, in words. */
static void put_why(struct hd_fn_called *c, const struct hd_fn_instances *all, bool starting)
{
	static const char *const words[] = { [HD_FN_ANSWERED] = "", [HD_FN_ERRED] = "its worker failed",
		[HD_FN_DIED] = "ended before it answered",
		[HD_FN_TIMED_OUT] = "did not answer by the deadline",
		[HD_FN_LOST] = "its answer was lost", [HD_FN_REFUSED_CALL] = "" };

	if (c->end == HD_FN_DIED || c->end == HD_FN_TIMED_OUT)
		snprintf(c->why, sizeof c->why, "%.120s %s%s", all->spec.argv[0], words[c->end], starting ?
			": it never asked for a task" : "");
	else
		snprintf(c->why, sizeof c->why, "%s", words[c->end]);
}

/* This run of the event is over. */
static void end_run(struct hd_fn_instances *all, struct hd_fn_instance *x, enum hd_fn_call_end end,
	const char *body, size_t len)
{
	int64_t now_ns = hd_clock_now_ns(all->loop->clock);
	struct hd_lambda_report report;

	put_report(all, x, now_ns, &report);
	if (!x->second && all->nended < HD_FN_INSTANCES) {
		struct hd_fn_called *c = &all->ended[all->nended++];
		bool lost = x->lost;
		c->call = x->call;
		c->end = lost ? HD_FN_LOST : end;
		c->has_report = !lost;
		c->took_ns = now_ns - x->began_ns + x->init_ns;
		c->report = report;
		c->len = end == HD_FN_ANSWERED && len < sizeof c->body ? len : 0;
		memcpy(c->body, body, c->len);
		c->body[c->len] = '\0';
		put_why(c, all, x->phase == HD_FN_STARTING);
	}
	if (end == HD_FN_ANSWERED && !x->stand_ns)
		all->mean_ns = all->mean_ns > 0 ? 0.9 * all->mean_ns + 0.1 * (double)(now_ns - x->began_ns) :
			(double)(now_ns - x->began_ns);
	x->init_ns = x->kill_ns = x->stand_ns = x->slice_ns = 0;
	x->second = x->again && end == HD_FN_ANSWERED;
	x->has_event = x->second;
	x->again = false;
	x->phase = HD_FN_IDLE;
	x->idle_ns = now_ns;
}

/* The process is gone, or must go. */
static void lose(struct hd_fn_instances *all, struct hd_fn_instance *x, enum hd_fn_call_end end)
{
	if (x->has_event)
		end_run(all, x, end, "", 0);
	turn_off(all, x);
}

/* Gives the event to a process that waits for one. */
static void give(struct hd_fn_instances *all, struct hd_fn_instance *x)
{
	int64_t now_ns = hd_clock_now_ns(all->loop->clock), mean_ns = (int64_t)all->mean_ns;
	const struct hd_fn_faults *f = &all->spec.faults;
	int64_t left_ms = (x->deadline_ns - now_ns) / HD_NS_PER_MS;
	int64_t deadline_ms = hd_clock_wall_ns(all->loop->clock) / HD_NS_PER_MS + left_ms;

	if (x->phase == HD_FN_STARTING)
		x->init_ns = now_ns - x->started_ns;
	x->phase = HD_FN_BUSY;
	x->asks = false;
	x->began_ns = now_ns;
	int n = snprintf(x->out, sizeof x->out, "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: %s\r\n"
		"Lambda-Runtime-Deadline-Ms: %lld\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%.*s",
		x->id, (long long)deadline_ms, x->event_len, (int)x->event_len, x->event);
	x->out_len = n > 0 && (size_t)n < sizeof x->out ? (size_t)n : 0;
	x->out_at = 0;
	if (x->second)
		return;
	if (drawn(all, x->number, KILL) < f->kill)
		x->kill_ns = now_ns + 1 + (int64_t)(drawn(all, x->number, KILL_AT) * (double)mean_ns);
	else if (drawn(all, x->number, STRAGGLE) < f->straggle) {
		int64_t more_ns = (int64_t)((f->factor - 1) * (double)mean_ns);
		x->stand_ns = now_ns + (more_ns > HD_FN_STRAGGLE_NS ? more_ns : HD_FN_STRAGGLE_NS);
	}
	if (x->stand_ns) {
		signal_it(x, HD_PROC_STOP);
		x->stands = true;
	}
	x->lost = !x->kill_ns && drawn(all, x->number, DROP) < f->drop;
	x->again = !x->kill_ns && drawn(all, x->number, DUPLICATE) < f->duplicate;
}

enum hd_err hd_fn_instances_call(struct hd_fn_instances *all, uint64_t call, const char *event, size_t len,
	int64_t deadline_ns, struct hd_diag *diag)
{
	struct hd_fn_instance *x = NULL, *off = NULL;

	if (len >= HD_FN_EVENT_BYTES)
		return hd_fail(diag, HD_E_INVAL, "an event of %zu bytes is too long", len);
	for (uint32_t i = 0; i < all->spec.slots && !x; i++) {
		struct hd_fn_instance *one = &all->at[i];
		if (!one->has_event && (one->phase == HD_FN_IDLE || one->phase == HD_FN_STARTING))
			x = one;
		else if (one->phase == HD_FN_OFF && !off)
			off = one;
	}
	if (!x && !off)
		return HD_E_AGAIN;
	enum hd_err err = x ? HD_OK : start(all, off, diag);
	if (err)
		return err;
	x = x ? x : off;
	x->number = ++all->ncalls;
	x->call = call;
	x->deadline_ns = deadline_ns;
	x->began_ns = hd_clock_now_ns(all->loop->clock);
	x->has_event = true;
	x->second = x->lost = x->again = false;
	x->event_len = len;
	memcpy(x->event, event, len);
	snprintf(x->id, sizeof x->id, "%08llx-0000-4000-8000-%012llx",
		(unsigned long long)all->spec.faults.seed &
		0xffffffff, (unsigned long long)x->number);
	return HD_OK;
}

/* ---- HTTP ---- */

static void say(struct hd_fn_instance *x, const char *status)
{
	int n = snprintf(x->out, sizeof x->out, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);

	x->out_len = (size_t)n;
	x->out_at = 0;
}

/* One whole request; false: not yet. */
static bool take_request(struct hd_fn_instances *all, struct hd_fn_instance *x, bool *broken)
{
	struct hd_http_head head;
	char id[HD_RUNTIME_ID];
	size_t len = 0;

	enum hd_err err = hd_http_read_head(HD_HTTP_A_REQUEST, x->in, x->in_len, &head);
	if (!err)
		err = hd_http_read_body(&head, x->in + head.len_bytes, x->in_len - head.len_bytes, false,
			x->body,
			sizeof x->body, &len);
	*broken = err && (err != HD_E_AGAIN || x->in_len == sizeof x->in);
	if (err)
		return false;
	enum hd_runtime_what what = hd_runtime_call(&head, id);
	bool ours = x->phase == HD_FN_BUSY && !strcmp(id, x->id);
	x->in_len = 0;                    /* one request at a time: nothing follows it */
	switch (what) {
	case HD_RUNTIME_NEXT:
		x->asks = true;
		break;
	case HD_RUNTIME_RESPONSE:
	case HD_RUNTIME_ERROR:
		say(x, ours ? "202 Accepted" : "403 Forbidden");
		if (ours)
			end_run(all, x, what == HD_RUNTIME_ERROR ? HD_FN_ERRED : HD_FN_ANSWERED, x->body,
				len);
		break;
	case HD_RUNTIME_INIT_ERROR:
		say(x, "202 Accepted");
		break;
	case HD_RUNTIME_UNKNOWN:
		say(x, "404 Not Found");
		break;
	}
	return true;
}

static bool read_all(struct hd_fn_instance *x)
{
	while (x->in_len < sizeof x->in) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&x->sock, x->in + x->in_len, sizeof x->in - x->in_len, &n,
			NULL);
		if (err == HD_E_AGAIN)
			return true;
		if (err || !n)
			return false;
		x->in_len += n;
	}
	return true;
}

static bool write_all(struct hd_fn_instance *x)
{
	while (x->out_at < x->out_len) {
		size_t n = 0;
		enum hd_err err = hd_sock_write(&x->sock, x->out + x->out_at, x->out_len - x->out_at, &n,
			NULL);
		if (err)
			return err == HD_E_AGAIN;
		x->out_at += n;
	}
	x->out_len = x->out_at = 0;
	return true;
}

/* A connection as far as it goes. */
static void go_on(struct hd_fn_instances *all, struct hd_fn_instance *x)
{
	int64_t now_ns = hd_clock_now_ns(all->loop->clock);
	uint64_t tag = all->spec.tag + 2 * (uint64_t)(x - all->at) + 1;
	bool broken = false, good = read_all(x);

	while (good && !x->out_len && take_request(all, x, &broken))
		good = write_all(x);
	bool warm = x->phase != HD_FN_STARTING || now_ns - x->started_ns >= all->spec.cold_ns;
	if (good && !broken && x->asks && warm && !x->out_len) {
		if (x->has_event)
			give(all, x);
		else if (x->phase == HD_FN_STARTING) {
			x->phase = HD_FN_IDLE;
			x->idle_ns = now_ns;
		}
	}
	good = good && !broken && write_all(x);
	unsigned wants = HD_LOOP_READ | (x->out_len ? HD_LOOP_WRITE : 0u);
	if (!good || hd_loop_watch(all->loop, x->sock.id, wants, tag, NULL))
		lose(all, x, HD_FN_DIED);
}

static void accept_one(struct hd_fn_instances *all, struct hd_fn_instance *x)
{
	struct hd_sock sock = { 0 };

	while (!hd_sock_accept(&x->listener, &sock, NULL)) {
		if (x->sock.net) {
			hd_sock_close(&sock);     /* it has one already */
			continue;
		}
		x->sock = sock;
		go_on(all, x);
		return;
	}
}

void hd_fn_instances_event(struct hd_fn_instances *all, const struct hd_loop_event *event)
{
	uint64_t k = event->tag - all->spec.tag;
	struct hd_fn_instance *x = &all->at[k / 2];

	if (k / 2 >= HD_FN_INSTANCES || x->phase == HD_FN_OFF)
		return;
	if (k % 2 == 0)
		accept_one(all, x);
	else if (x->sock.net)
		go_on(all, x);
}

/* ---- time ---- */

static void sooner(int64_t *at_ns, int64_t ns)
{
	if (ns < *at_ns)
		*at_ns = ns;
}

static void pause_or_go(struct hd_fn_instance *x, bool stands)
{
	if (x->stands == stands)
		return;
	signal_it(x, stands ? HD_PROC_STOP : HD_PROC_CONT);
	x->stands = stands;
}

/* A process that computes: does it run now, and until when? */
static void divide(struct hd_fn_instances *all, struct hd_fn_instance *x, int64_t now_ns, int64_t *next_ns)
{
	int64_t of_slice = (now_ns - x->began_ns) % HD_FN_SLICE_NS;
	int64_t runs_ns = (int64_t)(all->spec.share * (double)HD_FN_SLICE_NS);

	if (x->stand_ns && now_ns < x->stand_ns) {
		pause_or_go(x, true);
		sooner(next_ns, x->stand_ns);
	} else if (all->spec.share < 1) {
		pause_or_go(x, of_slice >= runs_ns);
		sooner(next_ns, now_ns - of_slice + (of_slice < runs_ns ? runs_ns : HD_FN_SLICE_NS));
	} else {
		pause_or_go(x, false);
	}
}

static void look_at(struct hd_fn_instances *all, struct hd_fn_instance *x, int64_t now_ns, int64_t *next_ns)
{
	int code = 0;

	if (x->phase == HD_FN_STARTING) {
		sooner(next_ns, now_ns + LOOK_NS);
		if (!hd_proc_wait(&x->proc, 0, &code, NULL) ||
			now_ns - x->started_ns > START_NS + all->spec.cold_ns) {
			lose(all, x, HD_FN_DIED);
			return;
		}
	}
	if (x->asks && x->sock.net && x->has_event)
		go_on(all, x);
	if (x->phase == HD_FN_OFF)
		return;
	if (x->phase == HD_FN_BUSY && x->kill_ns && now_ns >= x->kill_ns) {
		signal_it(x, HD_PROC_KILL);
		x->kill_ns = 0;                   /* its connection says when it is gone */
	}
	if (x->has_event && now_ns >= x->deadline_ns) {
		lose(all, x, HD_FN_TIMED_OUT);
		return;
	}
	if (x->has_event)
		sooner(next_ns, x->deadline_ns);
	if (x->phase == HD_FN_BUSY && x->kill_ns)
		sooner(next_ns, x->kill_ns);
	if (x->phase == HD_FN_BUSY)
		divide(all, x, now_ns, next_ns);
	else
		pause_or_go(x, false);
	if (x->phase == HD_FN_IDLE && !x->has_event && now_ns - x->idle_ns >= HD_FN_IDLE_NS)
		turn_off(all, x);
	else if (x->phase == HD_FN_IDLE && !x->has_event)
		sooner(next_ns, x->idle_ns + HD_FN_IDLE_NS);
}

int64_t hd_fn_instances_tick(struct hd_fn_instances *all, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (uint32_t i = 0; i < HD_FN_INSTANCES; i++)
		if (all->at[i].phase != HD_FN_OFF)
			look_at(all, &all->at[i], now_ns, &next_ns);
	return next_ns;
}

bool hd_fn_instances_take(struct hd_fn_instances *all, struct hd_fn_called *called)
{
	if (!all->nended)
		return false;
	*called = all->ended[0];
	memmove(all->ended, all->ended + 1, --all->nended * sizeof *all->ended);
	return true;
}
