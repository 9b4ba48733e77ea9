#include "daemon/http_client.h"

#include <stdio.h>
#include <string.h>

#include "base/http_head.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/loop.h"
#include "driver/control.h"
#include "daemon/rest.h"

/* readable wakes at once; a connection under way is looked at so often */
enum { HD_CLIENT_LOOK_NS = 20000000,
       HD_CLIENT_HEAD = 16 << 10, HD_CLIENT_READ = 64 << 10 };

struct exchange {
	const struct hd_http_call *call;
	struct hd_loop loop;
	struct hd_clock clock;
	struct hd_sock sock;
	int64_t until_ns;
	struct hd_text got;
};

static enum hd_err wait_for(struct exchange *x, struct hd_diag *diag)
{
	int64_t now = hd_clock_now_ns(&x->clock), at = now + HD_CLIENT_LOOK_NS;
	struct hd_loop_event event;
	size_t n = 0;

	if (now >= x->until_ns)
		return hd_fail(diag, HD_E_PEERLOST, "the daemon of %s does not answer", x->call->dir);
	return hd_loop_poll(&x->loop, at < x->until_ns ? at : x->until_ns, &event, 1, &n, diag);
}

/* A server that refuses by the head alone may have closed before the body is out: what it said is still
 * read. */
static enum hd_err put(struct exchange *x, const char *bytes, size_t len, struct hd_diag *diag)
{
	while (len) {
		size_t n = 0;
		enum hd_err err = hd_sock_write(&x->sock, bytes, len, &n, NULL);
		if (err == HD_E_PEERLOST)
			return HD_OK;
		if (err == HD_E_AGAIN)
			err = wait_for(x, diag);
		if (err)
			return err;
		bytes += n;
		len -= n;
	}
	return HD_OK;
}

static enum hd_err take_all(struct exchange *x, struct hd_diag *diag)
{
	char buf[HD_CLIENT_READ];

	for (;;) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&x->sock, buf, sizeof buf, &n, NULL);
		if (err == HD_E_PEERLOST || (!err && n == 0))
			return HD_OK;
		if (err == HD_E_AGAIN)
			err = wait_for(x, diag);
		else if (!err)
			hd_text_put(&x->got, buf, n);
		if (!err && (x->got.full || x->got.len > HD_REST_ANSWER + HD_CLIENT_HEAD))
			err = hd_fail(diag, HD_E_NOSPACE,
				"the answer of the daemon of %s is longer than %d bytes", x->call->dir,
				HD_REST_ANSWER);
		if (err)
			return err;
	}
}

/* As many bytes as its head says, and no more. */
static bool read_answer(const struct hd_text *got, int *status, const char **body, size_t *len)
{
	struct hd_http_head head;

	if (hd_http_read_head(HD_HTTP_AN_ANSWER, got->at, got->len, &head) || !head.has_length)
		return false;
	*status = head.status;
	*body = got->at + head.len_bytes;
	*len = got->len - head.len_bytes;
	return head.length_bytes == *len;
}

static enum hd_err judge(struct exchange *x, struct hd_arena *arena, const struct hd_json **answer,
	struct hd_diag *diag)
{
	const char *body, *text = "";
	int64_t code = 0;
	int status = 0;
	size_t len = 0;

	if (!x->got.len)
		return hd_fail(diag, HD_E_PEERLOST, "the daemon of %s ended the connection without an answer",
			x->call->dir);
	bool good = read_answer(&x->got, &status, &body, &len) &&
		!hd_json_parse(arena, "answer", body, len, answer, NULL);
	if (good && status == 200)
		return HD_OK;
	if (!good || hd_json_get_i64(*answer, "code", -999, -1, &code, NULL) ||
		hd_json_get_text(*answer, "error", &text, NULL))
		return hd_fail(diag, HD_E_PROTOCOL,
			"what listens at %s does not answer as a daemon of this version does", x->sock.addr);
	return hd_fail(diag, (enum hd_err)code, "%s", text);
}

static enum hd_err speak(struct exchange *x, struct hd_diag *diag)
{
	char head[HD_REST_TARGET + 200];
	size_t len = x->call->body ? strlen(x->call->body) : 0;
	enum hd_err err;

	while ((err = hd_sock_connected(&x->sock, diag)) == HD_E_AGAIN)
		if ((err = wait_for(x, diag)))
			return err;
	if (err)
		return err;
	int n = snprintf(head, sizeof head,
		"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
		"%zu\r\n\r\n",
		x->call->method, x->call->target, len);
	if (n < 0 || (size_t)n >= sizeof head)
		return hd_fail(diag, HD_E_INVAL, "\"%.60s...\" is too long to ask for", x->call->target);
	err = put(x, head, (size_t)n, diag);
	if (!err && len)
		err = put(x, x->call->body, len, diag);
	return err ? err : take_all(x, diag);
}

enum hd_err hd_http_ask(const struct hd_http_call *call, struct hd_arena *arena,
	const struct hd_json **answer, struct hd_diag *diag)
{
	struct exchange x = { .call = call };
	char addr[HD_ADDR_CAP];
	struct hd_net net;

	hd_clock_real(&x.clock);
	hd_net_real(&net);
	hd_text_init(&x.got, arena);
	x.until_ns = hd_clock_now_ns(&x.clock) + call->wait_ns;
	enum hd_err err = hd_control_path(call->dir, HD_HTTP_SOCKET, addr, diag);
	if (err)
		return err;
	if (hd_sock_connect(&net, addr, &x.sock, NULL))
		return hd_fail(diag, HD_E_NOTFOUND,
		"no scheduler serves %s: start one with `heddle serve --dir %s`",
			call->dir, call->dir);
	err = hd_loop_init(&x.loop, &x.clock, diag);
	if (!err)
		err = hd_loop_watch(&x.loop, x.sock.id, HD_LOOP_READ, 1, diag);
	if (!err)
		err = speak(&x, diag);
	if (!err)
		err = judge(&x, arena, answer, diag);
	hd_sock_close(&x.sock);
	hd_loop_finish(&x.loop);
	return err;
}
