#include "launch/slurm_call.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

enum { PIECE = 64 << 10, IN_MOST = HD_SLURM_BODY + HD_HTTP_HEAD_BYTES };

enum hd_err hd_slurm_call_begin(struct hd_slurm_call *call, struct hd_net *net, const char *path,
	bool ours, const char *out, size_t out_len, struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];

	hd_slurm_call_end(call);
	if ((size_t)snprintf(addr, sizeof addr, "unix:%s", path) >= sizeof addr)
		return hd_fail(diag, HD_E_INVAL, "%s: longer than the path of a socket can be", path);
	call->ours = ours;
	call->out = out;
	call->out_len = out_len;
	enum hd_err err = hd_sock_connect(net, addr, &call->sock, diag);
	if (err)
		call->sock = (struct hd_sock){ 0 };
	return err;
}

void hd_slurm_call_end(struct hd_slurm_call *call)
{
	hd_sock_close(&call->sock);
	hd_free(call->in);
	hd_free(call->body);
	*call = (struct hd_slurm_call){ 0 };
}

static enum hd_err put(struct hd_slurm_call *call, struct hd_diag *diag)
{
	enum hd_err err = call->connected ? HD_OK : hd_sock_connected(&call->sock, NULL);

	if (!err && !call->connected && call->ours && !hd_sock_is_same_user(&call->sock))
		return hd_fail(diag, HD_E_REFUSED, "it runs as another user, and SLURM_JWT is not set");
	call->connected |= !err;
	while (!err && call->out_at < call->out_len) {
		size_t n = 0;
		err = hd_sock_write(&call->sock, call->out + call->out_at, call->out_len - call->out_at, &n,
			NULL);
		call->out_at += err ? 0 : n;
	}
	return err;
}

/* All that is there. *ended: no more comes. */
static enum hd_err read_on(struct hd_slurm_call *call, bool *ended, struct hd_diag *diag)
{
	while (!*ended && call->in_len <= IN_MOST) {
		size_t n = 0;
		enum hd_err err = hd_grow(&call->in, &call->in_cap, call->in_len + PIECE, 1,
			"bytes of an answer",
			diag);
		if (err)
			return err;
		err = hd_sock_read(&call->sock, call->in + call->in_len, call->in_cap - call->in_len, &n,
			NULL);
		if (err == HD_E_AGAIN)
			break;
		*ended = err || !n;
		call->in_len += err ? 0 : n;
	}
	return HD_OK;
}

static enum hd_err take_body(struct hd_slurm_call *call, bool ended)
{
	const char *at = call->in + call->head.len_bytes;
	const size_t len = call->in_len - call->head.len_bytes;

	/* a long one is not copied before it is there */
	if (call->head.has_length && len < call->head.length_bytes)
		return call->head.length_bytes > HD_SLURM_BODY ? HD_E_NOSPACE : HD_E_AGAIN;
	if (!call->head.has_length && !ended && (!call->head.chunked || len < 5 ||
		memcmp(at + len - 5, "0\r\n\r\n", 5) != 0))
		return len > HD_SLURM_BODY ? HD_E_NOSPACE : HD_E_AGAIN;
	call->body = hd_alloc(len + 1);
	return call->body ? hd_http_read_body(&call->head, at, len, ended, call->body, len + 1,
		&call->body_len) : HD_E_NOMEM;
}

/* A server that answers before it has read all may have closed: what it said counts. */
static enum hd_err take(struct hd_slurm_call *call, struct hd_diag *diag)
{
	bool ended = false;
	enum hd_err err = read_on(call, &ended, diag);

	if (err)
		return err;
	err = hd_http_read_head(HD_HTTP_AN_ANSWER, call->in, call->in_len, &call->head);
	if (!err) {
		err = take_body(call, ended);
		if (err == HD_E_PROTOCOL && ended)
			err = HD_E_AGAIN;
	}
	if (err == HD_E_AGAIN && !ended && call->in_len <= IN_MOST)
		return err;
	if (err == HD_E_AGAIN && ended)
		return hd_fail(diag, HD_E_PEERLOST, call->in_len ? "the answer ended in its middle" :
			"the connection ended without an answer");
	if (err == HD_E_AGAIN || err == HD_E_NOSPACE)
		return hd_fail(diag, HD_E_NOSPACE, "the answer is longer than %d MiB", HD_SLURM_BODY >> 20);
	return err == HD_E_PROTOCOL ? hd_fail(diag, err, "what answers speaks no HTTP") : err;
}

enum hd_err hd_slurm_call_go_on(struct hd_slurm_call *call, struct hd_diag *diag)
{
	enum hd_err err = put(call, diag);

	if (call->connected && (!err || err == HD_E_AGAIN || err == HD_E_PEERLOST))
		err = take(call, diag);
	else if (err && err != HD_E_AGAIN && err != HD_E_REFUSED)
		err = hd_fail(diag, HD_E_PEERLOST, "nothing answers");
	if (err != HD_E_AGAIN)
		hd_sock_close(&call->sock);
	return err;
}
