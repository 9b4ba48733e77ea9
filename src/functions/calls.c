#include "functions/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* "http://HOST:PORT/PATH" into its parts; of HTTPS port 443 is left out, as in the line Host. */
static bool take_endpoint(struct hd_fn_calls *l, const char *endpoint, bool secure)
{
	const char *host = secure ? endpoint + 8 : !strncmp(endpoint, "http://", 7) ? endpoint + 7 : "";
	size_t len = strcspn(host, "/");

	if (!len || len >= sizeof l->host - 4 || strlen(host + len) >= sizeof l->path ||
		(!secure && !memchr(host, ':', len)))
		return false;
	for (const char *at = host; *at; at++)
		if (*at <= ' ' || *at > '~' || strchr("@?#\\", *at))
			return false;
	snprintf(l->host, sizeof l->host, "%.*s", (int)len, host);
	snprintf(l->addr, sizeof l->addr, "tcp:%.*s", (int)len, host);
	snprintf(l->path, sizeof l->path, "%s", host[len] ? host + len : "/");
	if (secure && len > 4 && !strcmp(l->host + len - 4, ":443"))
		l->host[len - 4] = '\0';
	return true;
}

enum hd_err hd_fn_calls_open(struct hd_fn_calls *l, const char *endpoint, struct hd_loop *loop,
	struct hd_diag *diag)
{
	bool secure = !strncmp(endpoint, "https://", 8);

	l->loop = loop;
	hd_net_real(&l->net);             /* the loopback alone */
	if (!take_endpoint(l, endpoint, secure))
		return hd_fail(diag, HD_E_INVAL, "endpoint %s: https://HOST is right, or "
			"http://127.0.0.1:PORT of `heddle chaos lambda` or of a worker --function=http",
			endpoint);
	l->at = hd_alloc(HD_FN_CALLS * sizeof *l->at);
	if (l->at)
		memset(l->at, 0, HD_FN_CALLS * sizeof *l->at);
	l->ended = hd_alloc(HD_FN_CALLS * sizeof *l->ended);
	l->reply = secure ? hd_alloc(sizeof *l->reply) : NULL;
	enum hd_err err = l->at && l->ended && (l->reply || !secure) ? HD_OK :
		hd_fail(diag, HD_E_NOMEM, "no memory for calls of functions");
	if (!err && secure)
		err = hd_web_open(&l->web, loop, l->tag + HD_FN_CALLS, l->ca, diag);
	if (err)
		hd_fn_calls_close(l);
	return err;
}

static void drop(struct hd_fn_calls *l, struct hd_fn_call *c)
{
	if (c->sock.net)
		hd_loop_unwatch(l->loop, c->sock.id);
	hd_sock_close(&c->sock);
	c->sock = (struct hd_sock){ 0 };
	c->web = false;
}

void hd_fn_calls_close(struct hd_fn_calls *l)
{
	for (size_t i = 0; l->at && i < HD_FN_CALLS; i++)
		drop(l, &l->at[i]);
	hd_web_close(l->web);
	hd_free(l->at);
	hd_free(l->ended);
	hd_free(l->reply);
	l->at = NULL;
	l->ended = NULL;
	l->reply = NULL;
	l->web = NULL;
}

static enum hd_err write_request(struct hd_fn_calls *l, struct hd_fn_call *c, const struct hd_fn_post *post,
	struct hd_diag *diag)
{
	struct hd_text out;

	hd_text_fixed(&out, c->out, sizeof c->out);
	hd_text_addf(&out, "POST %s HTTP/1.1\r\nHost: %s\r\n%sUser-Agent: heddle\r\nConnection: close\r\n"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", post->target, l->host,
		post->lines, post->len);
	hd_text_put(&out, post->body, post->len);
	c->out_len = out.len;
	return out.full ? hd_fail(diag, HD_E_INVAL, "the request is too long") : HD_OK;
}

static void end_call(struct hd_fn_calls *l, struct hd_fn_call *c, const struct hd_fn_called *how)
{
	struct hd_fn_called *called = &l->ended[l->nended++];

	*called = *how;
	called->call = c->name;
	if (how->took_ns >= 0)
		called->took_ns = hd_clock_now_ns(l->loop->clock) - c->began_ns;
	drop(l, c);
}

/* `sent`: of nothing that was sent no function ran, so it costs nothing. */
static void lose(struct hd_fn_calls *l, struct hd_fn_call *c, bool sent, const char *why)
{
	struct hd_fn_called lost = { .end = HD_FN_LOST, .took_ns = sent ? 0 : -1 };

	snprintf(lost.why, sizeof lost.why, "%.100s: %.150s", l->host, why);
	end_call(l, c, &lost);
}

void hd_fn_calls_why(struct hd_fn_called *called, const struct hd_http_head *head, const char *type_line)
{
	struct hd_http_span type = hd_http_find(head, type_line);

	snprintf(called->why, sizeof called->why, "status %d%s%.*s: %.160s", head->status,
		type.at ? ", " : "", (int)(type.len < 60 ? type.len : 60), type.at ? type.at : "",
		called->body);
	for (char *at = called->why; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

/* The whole answer is there. */
static void take_answer(struct hd_fn_calls *l, struct hd_fn_call *c, const struct hd_http_head *head,
	struct hd_fn_called *called)
{
	if (l->reader(head, called))
		lose(l, c, true, "it does not speak what this kind of function speaks");
	else
		end_call(l, c, called);
}

/* As far as it goes. */
static void go_on(struct hd_fn_calls *l, struct hd_fn_call *c)
{
	struct hd_diag why = { "" };
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
		lose(l, c, c->out_at > 0, why.text[0] ? why.text : "the connection ended without an answer");
}

static enum hd_err post_web(struct hd_fn_calls *l, struct hd_fn_call *c, const struct hd_fn_post *post,
	struct hd_diag *diag)
{
	char url[2 * HD_FN_PATH + HD_ADDR_CAP], lines[HD_FN_CALL_OUT];
	int n = snprintf(url, sizeof url, "https://%s%s", l->host, post->target),
		m = snprintf(lines, sizeof lines,
			"%sUser-Agent: heddle\r\nContent-Type: application/json\r\n", post->lines);

	if (n < 0 || (size_t)n >= sizeof url || m < 0 || (size_t)m >= sizeof lines)
		return hd_fail(diag, HD_E_INVAL, "the request is too long");
	enum hd_err err = hd_web_post(l->web, (uint64_t)(c - l->at), url, lines, post->body, post->len,
		c->until_ns, diag);
	c->web = !err;
	return err;
}

/* Requests over HTTPS that ended. */
static void take_web(struct hd_fn_calls *l)
{
	struct hd_web_reply *r = l->reply;

	while (l->nended < HD_FN_CALLS && hd_web_take(l->web, r)) {
		struct hd_fn_call *c = &l->at[r->name];
		struct hd_fn_called called = { .end = HD_FN_LOST };
		struct hd_http_head head;
		if (r->err) {
			lose(l, c, r->sent, r->why);
		} else if (hd_http_read_head(HD_HTTP_AN_ANSWER, r->head, r->head_len, &head) ||
			r->body_len >= sizeof called.body) {
			lose(l, c, true, "it speaks no HTTP/1.1, or too much of it");
		} else {
			memcpy(called.body, r->body, r->body_len + 1);
			called.len = r->body_len;
			take_answer(l, c, &head, &called);
		}
	}
}

enum hd_err hd_fn_calls_post(struct hd_fn_calls *l, uint64_t name, const struct hd_fn_post *post,
	int64_t deadline_ns, struct hd_diag *diag)
{
	struct hd_fn_call *c = NULL;

	for (size_t i = 0; i < HD_FN_CALLS && !c; i++)
		c = l->at[i].sock.net || l->at[i].web ? NULL : &l->at[i];
	if (!c)
		return HD_E_AGAIN;
	memset(c, 0, offsetof(struct hd_fn_call, out));
	c->out_len = c->out_at = c->in_len = 0;
	c->name = name;
	c->began_ns = hd_clock_now_ns(l->loop->clock);
	c->until_ns = deadline_ns;
	if (l->web)
		return post_web(l, c, post, diag);
	enum hd_err err = write_request(l, c, post, diag);
	if (!err)
		err = hd_sock_connect(&l->net, l->addr, &c->sock, diag);
	if (!err)
		err = hd_loop_watch(l->loop, c->sock.id, HD_LOOP_READ | HD_LOOP_WRITE,
			l->tag + (uint64_t)(c - l->at), diag);
	if (err)
		drop(l, c);
	return err == HD_E_AGAIN ? HD_E_PEERLOST : err;
}

void hd_fn_calls_event(struct hd_fn_calls *l, const struct hd_loop_event *event)
{
	uint64_t i = event->tag - l->tag;

	if (l->web && i >= HD_FN_CALLS) {
		hd_web_event(l->web, event);
		take_web(l);
	} else if (i < HD_FN_CALLS && l->at[i].sock.net && l->nended < HD_FN_CALLS)
		go_on(l, &l->at[i]);
}

int64_t hd_fn_calls_tick(struct hd_fn_calls *l, int64_t now_ns)
{
	int64_t next_ns = l->web ? hd_web_tick(l->web, now_ns) : INT64_MAX;

	if (l->web)
		take_web(l);
	for (size_t i = 0; i < HD_FN_CALLS; i++) {
		struct hd_fn_call *c = &l->at[i];
		if (!c->sock.net)
			continue;
		if (now_ns >= c->until_ns && l->nended < HD_FN_CALLS)
			lose(l, c, c->out_at > 0, "no answer by the deadline");
		else if (c->until_ns < next_ns)
			next_ns = c->until_ns;
	}
	return next_ns;
}

bool hd_fn_calls_take(struct hd_fn_calls *l, struct hd_fn_called *called)
{
	if (!l->nended)
		return false;
	*called = l->ended[0];
	memmove(l->ended, l->ended + 1, --l->nended * sizeof *l->ended);
	return true;
}
