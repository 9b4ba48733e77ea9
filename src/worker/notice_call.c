#include "worker/notice_call.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { IN_BYTES = HD_HTTP_HEAD_BYTES + HD_NOTICE_BODY };

void hd_notice_call_end(struct hd_notice_call *call)
{
	if (!call->loop)
		return;
	if (call->sock.net)
		hd_loop_unwatch(call->loop, call->sock.id);
	hd_sock_close(&call->sock);
	call->sock = (struct hd_sock){ 0 };
	call->loop = NULL;
}

void hd_notice_call_finish(struct hd_notice_call *call)
{
	hd_notice_call_end(call);
	hd_free(call->in);
	call->in = NULL;
}

/* The whole request; 0: it is too long. */
static size_t write_request(char out[HD_NOTICE_OUT], const struct hd_notice_place *place,
	const struct hd_notice_ask *ask)
{
	size_t len = strlen(ask->body);
	char length[48] = "";

	if (strcmp(ask->method, "GET") != 0)
		snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
	int n = snprintf(out, HD_NOTICE_OUT,
		"%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: heddle\r\nAccept: */*\r\nConnection: close\r\n"
		"%s%s\r\n%s", ask->method, place->path, ask->target, place->host, ask->lines, length,
		ask->body);
	return n > 0 && n < HD_NOTICE_OUT ? (size_t)n : 0;
}

enum hd_err hd_notice_call_begin(struct hd_notice_call *call, struct hd_loop *loop, uint64_t tag,
	struct hd_net *net, const struct hd_notice_place *place, const struct hd_notice_ask *ask,
	struct hd_diag *diag)
{
	hd_notice_call_end(call);
	if (!call->in)
		call->in = hd_alloc(IN_BYTES);
	if (!call->in)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an answer");
	*call = (struct hd_notice_call){ .in = call->in, .tag = tag, .what = ask->what,
		.until_ns = hd_clock_now_ns(loop->clock) + ask->timeout_ns };
	call->out_len = write_request(call->out, place, ask);
	if (!call->out_len)
		return hd_fail(diag, HD_E_INVAL, "the request is too long");
	call->loop = loop;
	enum hd_err err = hd_sock_connect(net, place->addr, &call->sock, diag);
	if (!err)
		err = hd_loop_watch(loop, call->sock.id, HD_LOOP_READ | HD_LOOP_WRITE, tag, diag);
	if (err)
		hd_notice_call_end(call);
	return err;
}

static enum hd_err put(struct hd_notice_call *call)
{
	enum hd_err err = call->connected ? HD_OK : hd_sock_connected(&call->sock, NULL);

	call->connected |= !err;
	while (!err && call->out_at < call->out_len) {
		size_t n = 0;
		err = hd_sock_write(&call->sock, call->out + call->out_at, call->out_len - call->out_at, &n,
			NULL);
		call->out_at += err ? 0 : n;
	}
	return err;
}

/* HD_E_AGAIN: more must come. A service that answers before it has read all may have closed: what it said
 * counts. */
static enum hd_err take(struct hd_notice_call *call, char *body, struct hd_notice_answer *answer,
	struct hd_diag *diag)
{
	bool ended = false;

	while (!ended && call->in_len < IN_BYTES) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&call->sock, call->in + call->in_len, IN_BYTES - call->in_len,
			&n, NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = err || !n;
		call->in_len += err ? 0 : n;
	}
	enum hd_err err = hd_http_read_head(HD_HTTP_AN_ANSWER, call->in, call->in_len, &call->head);
	if (!err)
		err = hd_http_read_body(&call->head, call->in + call->head.len_bytes,
			call->in_len - call->head.len_bytes, ended, body, HD_NOTICE_BODY, &answer->len);
	if (err == HD_E_AGAIN && !ended && call->in_len < IN_BYTES)
		return HD_E_AGAIN;
	if (err && !call->in_len)
		return hd_fail(diag, HD_E_PEERLOST, "the connection ended without an answer");
	if (err)
		return hd_fail(diag, HD_E_PROTOCOL, "what answers speaks no HTTP, or too much of it");
	answer->what = call->what;
	answer->status = call->head.status;
	answer->head = &call->head;
	answer->body = body;
	return HD_OK;
}

enum hd_err hd_notice_call_go_on(struct hd_notice_call *call, char body[HD_NOTICE_BODY],
	struct hd_notice_answer *answer, struct hd_diag *diag)
{
	enum hd_err err = put(call);

	if (call->connected && (!err || err == HD_E_AGAIN || err == HD_E_PEERLOST))
		err = take(call, body, answer, diag);
	else if (err && err != HD_E_AGAIN)
		err = hd_fail(diag, HD_E_PEERLOST, "nothing answers at %s", call->sock.addr);
	if (err == HD_E_AGAIN && hd_clock_now_ns(call->loop->clock) >= call->until_ns)
		err = hd_fail(diag, HD_E_PEERLOST, "%s does not answer in time", call->sock.addr);
	if (err == HD_E_AGAIN) {
		unsigned writes = call->out_at < call->out_len ? HD_LOOP_WRITE : 0u;
		enum hd_err watched = hd_loop_watch(call->loop, call->sock.id, HD_LOOP_READ | writes,
			call->tag, diag);
		err = watched ? watched : err;
	}
	if (err != HD_E_AGAIN)
		hd_notice_call_end(call);
	return err;
}
