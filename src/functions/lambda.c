#include "functions/lambda.h"

#include <string.h>

#include "base/alloc.h"

enum hd_err hd_fn_lambda_open(struct hd_fn_lambda *l, const char *endpoint, struct hd_loop *loop,
	struct hd_diag *diag)
{
	const char *host = !strncmp(endpoint, "http://", 7) ? endpoint + 7 : NULL;

	l->loop = loop;
	hd_net_real(&l->net);             /* the loopback alone */
	if (!host || strlen(host) >= sizeof l->host - 4 || strchr(host, '/') || !strrchr(host, ':'))
		return hd_fail(diag, HD_E_INVAL,
			"endpoint %s: http://127.0.0.1:PORT of `heddle chaos lambda` is "
			"right; HTTPS is not spoken yet", endpoint);
	snprintf(l->host, sizeof l->host, "%s", host);
	snprintf(l->addr, sizeof l->addr, "tcp:%.*s", (int)sizeof l->addr - 5, host);
	l->at = hd_alloc(HD_FN_CALLS * sizeof *l->at);
	if (l->at)
		memset(l->at, 0, HD_FN_CALLS * sizeof *l->at);
	l->ended = hd_alloc(HD_FN_CALLS * sizeof *l->ended);
	if (!l->at || !l->ended) {
		hd_fn_lambda_close(l);
		return hd_fail(diag, HD_E_NOMEM, "no memory for calls of functions");
	}
	return HD_OK;
}

static void drop(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c)
{
	if (c->sock.net)
		hd_loop_unwatch(l->loop, c->sock.id);
	hd_sock_close(&c->sock);
	c->sock = (struct hd_sock){ 0 };
}

void hd_fn_lambda_close(struct hd_fn_lambda *l)
{
	for (size_t i = 0; l->at && i < HD_FN_CALLS; i++)
		drop(l, &l->at[i]);
	hd_free(l->at);
	hd_free(l->ended);
	l->at = NULL;
	l->ended = NULL;
}

static enum hd_err write_request(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c, const char *event,
	size_t len, struct hd_diag *diag)
{
	char target[HD_LAMBDA_NAME + 64], date[HD_SIGV4_DATE], sign[1024];
	struct hd_sigv4_request r = { .method = "POST", .target = target, .date = date, .nlines = 2,
		.line = { { "host", l->host }, { "x-amz-date", date } } };
	struct hd_text value, out;

	snprintf(target, sizeof target, HD_INVOKE_ROOT "%.*s/invocations", HD_LAMBDA_NAME, l->function);
	hd_sigv4_date(hd_clock_wall_ns(l->loop->clock), date);
	if (l->session)
		r.line[r.nlines++] = (struct hd_sigv4_line){ "x-amz-security-token", l->session };
	hd_text_fixed(&value, sign, sizeof sign);
	enum hd_err err = hd_sha256(event, len, &r.body, diag);
	if (!err)
		err = hd_sigv4_authorization(&l->rights, &r, &value, diag);
	if (err)
		return err;
	hd_text_fixed(&out, c->out, sizeof c->out);
	hd_text_addf(&out, "POST %s HTTP/1.1\r\nHost: %s\r\nX-Amz-Date: %s\r\nAuthorization: %s\r\n",
		target, l->host,
		date, sign);
	if (l->session)
		hd_text_addf(&out, "X-Amz-Security-Token: %s\r\n", l->session);
	hd_text_addf(&out, "X-Amz-Invocation-Type: RequestResponse\r\nX-Amz-Log-Type: Tail\r\n"
		"User-Agent: heddle\r\nConnection: close\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n", len);
	hd_text_put(&out, event, len);
	c->out_len = out.len;
	return out.full ? hd_fail(diag, HD_E_INVAL, "the request is too long") : HD_OK;
}

static void end_call(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c, const struct hd_fn_called *how)
{
	struct hd_fn_called *called = &l->ended[l->nended++];

	*called = *how;
	called->call = c->name;
	if (how->took_ns >= 0)
		called->took_ns = hd_clock_now_ns(l->loop->clock) - c->began_ns;
	drop(l, c);
}

static void lose(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c, const char *why)
{
	struct hd_fn_called lost = { .end = HD_FN_LOST };

	snprintf(lost.why, sizeof lost.why, "%s: %.120s", l->addr, why);
	end_call(l, c, &lost);
}

/* What a service says of a call that it did not answer: its status, the type of its error, its words. */
static void say_why(struct hd_fn_called *called, const struct hd_http_head *head, int status)
{
	struct hd_http_span type = hd_http_find(head, "X-Amzn-ErrorType");

	snprintf(called->why, sizeof called->why, "status %d%s%.*s: %.160s", status, type.at ? ", " : "",
		(int)(type.len < 60 ? type.len : 60), type.at ? type.at : "", called->body);
	for (char *at = called->why; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

/* The whole answer is there. */
static void take_answer(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c, const struct hd_http_head *head,
	struct hd_fn_called *called)
{
	struct hd_lambda_outcome o;

	if (hd_lambda_read_outcome(head, &o, NULL)) {
		lose(l, c, "it does not speak the Invoke API");
		return;
	}
	called->end = o.status == 429 ? HD_FN_REFUSED_CALL : o.status != 200 || o.function_error ?
		HD_FN_ERRED :
		HD_FN_ANSWERED;
	if (called->end == HD_FN_ERRED)
		say_why(called, head, o.status);
	called->has_report = o.has_report;
	called->report = o.report;
	called->took_ns = o.status >= 400 && o.status < 500 ? -1 : 0;
	end_call(l, c, called);
}

/* As far as it goes. */
static void go_on(struct hd_fn_lambda *l, struct hd_fn_lambda_call *c)
{
	struct hd_diag why = { "the connection ended without an answer" };
	enum hd_err err = c->connected ? HD_OK : hd_sock_connected(&c->sock, &why);
	struct hd_http_head head;
	struct hd_fn_called called = { .end = HD_FN_LOST };
	bool ended = err && err != HD_E_AGAIN;
	size_t n = 0;

	c->connected |= !err;
	while (c->connected && c->out_at < c->out_len && !err) {
		err = hd_sock_write(&c->sock, c->out + c->out_at, c->out_len - c->out_at, &n, NULL);
		c->out_at += err ? 0 : n;
	}
	while (c->connected && !ended && c->in_len < sizeof c->in) {
		err = hd_sock_read(&c->sock, c->in + c->in_len, sizeof c->in - c->in_len, &n, NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = err || !n;
		c->in_len += err ? 0 : n;
	}
	err = hd_http_read_head(HD_HTTP_AN_ANSWER, c->in, c->in_len, &head);
	if (!err)
		err = hd_http_read_body(&head, c->in + head.len_bytes, c->in_len - head.len_bytes, ended,
			called.body, sizeof called.body, &called.len);
	unsigned writes = c->out_at < c->out_len ? HD_LOOP_WRITE : 0u;
	if (!err)
		take_answer(l, c, &head, &called);
	else if (err != HD_E_AGAIN || ended || c->in_len == sizeof c->in ||
		hd_loop_watch(l->loop, c->sock.id, HD_LOOP_READ | writes, l->tag + (uint64_t)(c - l->at),
			NULL))
		lose(l, c, why.text);
}

static enum hd_err call(void *self, uint64_t name, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct hd_fn_lambda *l = self;
	struct hd_fn_lambda_call *c = NULL;

	for (size_t i = 0; i < HD_FN_CALLS && !c; i++)
		c = l->at[i].sock.net ? NULL : &l->at[i];
	if (!c)
		return HD_E_AGAIN;
	memset(c, 0, offsetof(struct hd_fn_lambda_call, out));
	c->out_len = c->out_at = c->in_len = 0;
	c->name = name;
	c->began_ns = hd_clock_now_ns(l->loop->clock);
	c->until_ns = deadline_ns;
	enum hd_err err = write_request(l, c, event, len, diag);
	if (!err)
		err = hd_sock_connect(&l->net, l->addr, &c->sock, diag);
	if (!err)
		err = hd_loop_watch(l->loop, c->sock.id, HD_LOOP_READ | HD_LOOP_WRITE,
			l->tag + (uint64_t)(c - l->at), diag);
	if (err)
		drop(l, c);
	return err == HD_E_AGAIN ? HD_E_PEERLOST : err;
}

static void on_event(void *self, const struct hd_loop_event *event)
{
	struct hd_fn_lambda *l = self;
	uint64_t i = event->tag - l->tag;

	if (i < HD_FN_CALLS && l->at[i].sock.net && l->nended < HD_FN_CALLS)
		go_on(l, &l->at[i]);
}

static int64_t tick(void *self, int64_t now_ns)
{
	struct hd_fn_lambda *l = self;
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; i < HD_FN_CALLS; i++) {
		struct hd_fn_lambda_call *c = &l->at[i];
		if (!c->sock.net)
			continue;
		if (now_ns >= c->until_ns && l->nended < HD_FN_CALLS)
			lose(l, c, "no answer by the deadline");
		else if (c->until_ns < next_ns)
			next_ns = c->until_ns;
	}
	return next_ns;
}

static bool take(void *self, struct hd_fn_called *called)
{
	struct hd_fn_lambda *l = self;

	if (!l->nended)
		return false;
	*called = l->ended[0];
	memmove(l->ended, l->ended + 1, --l->nended * sizeof *l->ended);
	return true;
}

const struct hd_fn_invoker_ops hd_fn_lambda_ops = { "lambda", call, on_event, tick, take };
