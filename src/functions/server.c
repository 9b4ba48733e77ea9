#include "functions/server.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum hd_err hd_fn_server_open(struct hd_fn_server *s, struct hd_net *net, const char *addr,
	struct hd_loop *loop, struct hd_diag *diag)
{
	s->loop = loop;
	s->at = hd_alloc(HD_FN_CALLERS * sizeof *s->at);
	if (!s->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for connections of callers");
	memset(s->at, 0, HD_FN_CALLERS * sizeof *s->at);
	enum hd_err err = hd_sock_listen(net, addr, &s->listener, diag);
	if (!err)
		err = hd_loop_watch(loop, s->listener.id, HD_LOOP_READ, s->tag, diag);
	if (err)
		hd_fn_server_close(s);
	return err;
}

void hd_fn_serve_drop(struct hd_fn_server *s, struct hd_fn_caller *c)
{
	if (c->sock.net)
		hd_loop_unwatch(s->loop, c->sock.id);
	hd_sock_close(&c->sock);
	c->sock = (struct hd_sock){ 0 };
	c->waits = false;
	s->full = s->full && hd_loop_watch(s->loop, s->listener.id, HD_LOOP_READ, s->tag, NULL);
}

void hd_fn_server_close(struct hd_fn_server *s)
{
	for (size_t i = 0; s->at && i < HD_FN_CALLERS; i++)
		hd_fn_serve_drop(s, &s->at[i]);
	hd_free(s->at);
	s->at = NULL;
	if (s->listener.net)
		hd_loop_unwatch(s->loop, s->listener.id);
	hd_sock_close(&s->listener);
	s->listener = (struct hd_sock){ 0 };
}

/* As far as the caller takes it; false: the connection is over. */
static bool write_answer(struct hd_fn_caller *c)
{
	while (c->out_at < c->out_len) {
		size_t n = 0;
		enum hd_err err = hd_sock_write(&c->sock, c->out + c->out_at, c->out_len - c->out_at, &n,
			NULL);
		if (err)
			return err == HD_E_AGAIN;
		c->out_at += n;
	}
	return !c->out_len;
}

/* What is waited for now. */
static void watch(struct hd_fn_server *s, struct hd_fn_caller *c)
{
	unsigned wants = c->waits ? 0u : c->out_len ? HD_LOOP_WRITE : HD_LOOP_READ;

	if (!wants)
		hd_loop_unwatch(s->loop, c->sock.id);
	else if (hd_loop_watch(s->loop, c->sock.id, wants, s->tag + 1 + (uint64_t)(c - s->at), NULL))
		hd_fn_serve_drop(s, c);
}

void hd_fn_serve_say(struct hd_fn_server *s, struct hd_fn_caller *c, const char *status, const char *lines,
	const char *body)
{
	int n = snprintf(c->out, sizeof c->out, "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\n"
		"Connection: close\r\nContent-Length: %zu\r\n\r\n%s", status, lines, strlen(body), body);

	c->out_len = n > 0 && (size_t)n < sizeof c->out ? (size_t)n : 0;
	c->out_at = 0;
	if (c->waits)
		c->until_ns = hd_clock_now_ns(s->loop->clock) + HD_FN_REQUEST_NS;
	c->waits = false;
	if (write_answer(c))
		watch(s, c);
	else
		hd_fn_serve_drop(s, c);
}

/* Hands the request over when it is whole, or when it never will be. */
static void take_request(struct hd_fn_server *s, struct hd_fn_caller *c, bool ended)
{
	struct hd_http_head head;
	size_t len = 0;

	enum hd_err err = hd_http_read_head(HD_HTTP_A_REQUEST, c->in, c->in_len, &head);
	if (!err)
		err = hd_http_read_body(&head, c->in + head.len_bytes, c->in_len - head.len_bytes, false,
			c->body, sizeof c->body, &len);
	if (err == HD_E_AGAIN && c->in_len < sizeof c->in) {
		if (ended)
			hd_fn_serve_drop(s, c);
		else
			watch(s, c);
		return;
	}
	c->until_ns = INT64_MAX;                  /* an answer that comes later has its time then */
	s->handler(s->self, c, err, &head, len);
	if (c->sock.net && !c->waits && c->until_ns == INT64_MAX)
		c->until_ns = hd_clock_now_ns(s->loop->clock) + HD_FN_REQUEST_NS;
	if (c->sock.net && c->waits)
		watch(s, c);
}

static void go_on(struct hd_fn_server *s, struct hd_fn_caller *c)
{
	bool ended = false;

	if (c->out_len) {
		if (write_answer(c))
			watch(s, c);
		else
			hd_fn_serve_drop(s, c);
		return;
	}
	while (!ended && c->in_len < sizeof c->in) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&c->sock, c->in + c->in_len, sizeof c->in - c->in_len, &n,
			NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = err || !n;
		c->in_len += err ? 0 : n;
	}
	take_request(s, c, ended);
}

static void accept_all(struct hd_fn_server *s)
{
	for (;;) {
		struct hd_fn_caller *c = NULL;
		for (size_t i = 0; i < HD_FN_CALLERS && !c; i++)
			c = s->at[i].sock.net ? NULL : &s->at[i];
		struct hd_sock sock = { 0 };
		s->full = !c;
		if (!c)
			hd_loop_unwatch(s->loop, s->listener.id);
		if (!c || hd_sock_accept(&s->listener, &sock, NULL))
			return;
		c->sock = sock;
		c->in_len = c->out_len = c->out_at = 0;
		c->waits = false;
		c->until_ns = hd_clock_now_ns(s->loop->clock) + HD_FN_REQUEST_NS;
		go_on(s, c);
	}
}

void hd_fn_server_event(struct hd_fn_server *s, const struct hd_loop_event *event)
{
	uint64_t i = event->tag - s->tag;

	if (i == 0)
		accept_all(s);
	else if (i <= HD_FN_CALLERS && s->at[i - 1].sock.net && !s->at[i - 1].waits)
		go_on(s, &s->at[i - 1]);
}

int64_t hd_fn_server_tick(struct hd_fn_server *s, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; i < HD_FN_CALLERS; i++) {
		struct hd_fn_caller *c = &s->at[i];
		if (c->sock.net && now_ns >= c->until_ns)
			hd_fn_serve_drop(s, c);
		else if (c->sock.net && c->until_ns < next_ns)
			next_ns = c->until_ns;
	}
	return next_ns;
}
