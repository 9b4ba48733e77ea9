/* The answerer of GET /metrics: a thread with a loop of its own, one connection at a time. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/http_head.h"
#include "sys/lock.h"
#include "sys/loop.h"
#include "sys/socket.h"
#include "sys/thread.h"
#include "run/scrape.h"

enum { LISTENER = 1, CLIENT = 2, ANSWER_CAP = HD_SCRAPE_TEXT + 256 };

struct hd_scrape {
	struct hd_net net;
	struct hd_loop loop;
	struct hd_sock listener;
	struct hd_thread thread;
	struct hd_clock *clock;           /* borrowed */
	struct hd_lock lock;
	struct hd_scrape_numbers numbers; /* under the lock */
	atomic_bool ends;
	char in[HD_HTTP_HEAD_BYTES], body[HD_SCRAPE_TEXT], out[ANSWER_CAP];
};

static bool wait_for(struct hd_scrape *s, const struct hd_sock *sock, unsigned what, int64_t until_ns)
{
	struct hd_loop_event event;
	size_t n = 0;

	if (hd_loop_watch(&s->loop, sock->id, what, CLIENT, NULL))
		return false;
	while (!atomic_load(&s->ends) && hd_clock_now_ns(s->clock) < until_ns) {
		if (hd_loop_poll(&s->loop, until_ns, &event, 1, &n, NULL))
			break;
		if (n && event.tag == CLIENT && event.what & (what | HD_LOOP_LOST))
			break;
	}
	hd_loop_unwatch(&s->loop, sock->id);
	return n && event.tag == CLIENT && event.what & what;
}

static const char *status_of(struct hd_scrape *s, size_t len)
{
	struct hd_http_head head;

	if (hd_http_read_head(HD_HTTP_A_REQUEST, s->in, len, &head))
		return "400 Bad Request";
	if (!hd_http_is(head.method, "GET"))
		return "405 Method Not Allowed";
	if (!hd_http_is(head.target, "/metrics") && !hd_http_is(head.target, "/"))
		return "404 Not Found";
	return NULL;
}

static size_t answer(struct hd_scrape *s, size_t len)
{
	struct hd_scrape_numbers numbers;
	struct hd_text body;
	const char *status = status_of(s, len);

	hd_text_fixed(&body, s->body, sizeof s->body);
	if (status) {
		hd_text_addf(&body, "%s\n", status);
	} else {
		hd_lock_take(&s->lock);
		numbers = s->numbers;
		hd_lock_give(&s->lock);
		hd_scrape_print(&numbers, &body);
	}
	int n = snprintf(s->out, sizeof s->out, "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n%s", status ? status : "200 OK", body.len,
		body.len ? s->body : "");
	return n > 0 && (size_t)n < sizeof s->out ? (size_t)n : 0;
}

static void serve_one(struct hd_scrape *s, struct hd_sock *sock)
{
	int64_t until = hd_clock_now_ns(s->clock) + HD_SCRAPE_PATIENCE_MS * INT64_C(1000000);
	struct hd_http_head head;
	size_t len = 0, at = 0, n;
	enum hd_err err = HD_E_AGAIN;

	while (err == HD_E_AGAIN && len < sizeof s->in && wait_for(s, sock, HD_LOOP_READ, until)) {
		n = 0;
		if (hd_sock_read(sock, s->in + len, sizeof s->in - len, &n, NULL) && !n)
			return;
		len += n;
		err = hd_http_read_head(HD_HTTP_A_REQUEST, s->in, len, &head);
	}
	if (err == HD_E_AGAIN)
		return;
	size_t out = answer(s, len);
	while (at < out && wait_for(s, sock, HD_LOOP_WRITE, until)) {
		n = 0;
		enum hd_err wrote = hd_sock_write(sock, s->out + at, out - at, &n, NULL);
		if (wrote && wrote != HD_E_AGAIN)
			return;
		at += n;
	}
}

static void run(void *self)
{
	struct hd_scrape *s = self;
	struct hd_loop_event event;
	size_t n;

	while (!atomic_load(&s->ends)) {
		struct hd_sock sock = { 0 };
		if (hd_loop_poll(&s->loop, INT64_MAX, &event, 1, &n, NULL))
			return;
		if (!n || event.tag != LISTENER)
			continue;
		/* a client that waits meanwhile must not wake the loop without end */
		hd_loop_unwatch(&s->loop, s->listener.id);
		enum hd_err err = hd_sock_accept(&s->listener, &sock, NULL);
		if (!err)
			serve_one(s, &sock);
		else if (err != HD_E_AGAIN)       /* of too many open files: not at once again */
			(void)!hd_loop_poll(&s->loop, hd_clock_now_ns(s->clock) + HD_SCRAPE_PATIENCE_MS *
				INT64_C(1000000), &event, 1, &n, NULL);
		hd_sock_close(&sock);
		if (hd_loop_watch(&s->loop, s->listener.id, HD_LOOP_READ, LISTENER, NULL))
			return;
	}
}

static enum hd_err listen_at(struct hd_scrape *s, const char *address, struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];
	bool local = !strncmp(address, "unix:", 5);

	if (!local && !strchr(address, ':'))
		return hd_fail(diag, HD_E_INVAL, "log.prometheus is \"%s\": write unix:PATH or "
			"127.0.0.1:PORT", address);
	if ((size_t)snprintf(addr, sizeof addr, "%s%s", local ? "" : "tcp:", address) >= sizeof addr)
		return hd_fail(diag, HD_E_INVAL, "log.prometheus is longer than %d bytes", HD_ADDR_CAP - 6);
	enum hd_err err = hd_sock_listen(&s->net, addr, &s->listener, diag);
	return err ? err : hd_loop_watch(&s->loop, s->listener.id, HD_LOOP_READ, LISTENER, diag);
}

enum hd_err hd_scrape_open(struct hd_scrape **scrape, struct hd_clock *clock, const char *address, char *at,
	size_t cap, struct hd_diag *diag)
{
	struct hd_scrape *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory to answer Prometheus");
	*s = (struct hd_scrape){ .clock = clock };
	hd_net_real(&s->net);
	hd_lock_init(&s->lock);
	enum hd_err err = hd_loop_init(&s->loop, clock, diag);
	if (!err)
		err = listen_at(s, address, diag);
	if (!err)
		err = hd_thread_start(&s->thread, "scrape", -1, run, s, diag);
	if (err) {
		hd_scrape_close(s);
		return err;
	}
	snprintf(at, cap, "%s", s->listener.addr);
	*scrape = s;
	return HD_OK;
}

void hd_scrape_set(struct hd_scrape *s, const struct hd_scrape_numbers *numbers)
{
	hd_lock_take(&s->lock);
	s->numbers = *numbers;
	hd_lock_give(&s->lock);
}

void hd_scrape_close(struct hd_scrape *s)
{
	if (!s)
		return;
	atomic_store(&s->ends, true);
	if (s->thread.started)
		hd_loop_wake(&s->loop);
	hd_thread_join(&s->thread);
	hd_sock_close(&s->listener);
	hd_loop_finish(&s->loop);
	hd_lock_finish(&s->lock);
	hd_free(s);
}
