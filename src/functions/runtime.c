/* The loop of a custom runtime: one connection, kept alive, one invocation at a time. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "functions/link.h"
#include "functions/worker.h"

enum { IN_BYTES = HD_HTTP_HEAD_BYTES + 64 * 1024, OUT_BYTES = 8192, BODY_BYTES = 64 * 1024 };
/* What the service may take for all but `next`; a local pool's is a trainer that computes meanwhile, and
 * whose end ends the connection. */
#define ANSWER_NS INT64_C(10000000000)
#define POOL_NS INT64_C(3600000000000)

/* The service, as this loop sees it. */
struct service {
	struct hd_fn_link link;
	int64_t patience_ns;
	char host[HD_ADDR_CAP];           /* of the Host line */
	char *in, *body;                  /* owned */
	size_t in_len, body_len;
	struct hd_http_head head;
};

static enum hd_err send_request(struct service *s, const char *method, const char *target, const char *line,
	const char *body, struct hd_diag *diag)
{
	char out[OUT_BYTES];
	int n = snprintf(out, sizeof out,
		"%s " HD_RUNTIME_ROOT "%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: heddle\r\n%s"
		"Content-Length: %zu\r\n\r\n%s",
		method, target, s->host, line, strlen(body), body);

	if (n < 0 || (size_t)n >= sizeof out)
		return hd_fail(diag, HD_E_INVAL, "an answer is too long for the runtime API");
	int64_t now_ns = hd_clock_now_ns(s->link.loop.clock);
	return hd_fn_link_send(&s->link, out, (size_t)n, now_ns + s->patience_ns, diag);
}

/* HD_E_NOTFOUND: the service ended the connection before a byte. */
static enum hd_err take_answer(struct service *s, int64_t until_ns, struct hd_diag *diag)
{
	bool ended = false;

	s->in_len = 0;
	for (;;) {
		size_t got = 0;
		enum hd_err err = hd_http_read_head(HD_HTTP_AN_ANSWER, s->in, s->in_len, &s->head);
		if (!err)
			err = hd_http_read_body(&s->head, s->in + s->head.len_bytes,
				s->in_len - s->head.len_bytes, ended, s->body, BODY_BYTES, &s->body_len);
		if (!err)
			return HD_OK;
		if (err != HD_E_AGAIN || ended || s->in_len == IN_BYTES)
			return s->in_len ? hd_fail(diag, HD_E_PROTOCOL,
				"the runtime API speaks no HTTP, or too much of it") : HD_E_NOTFOUND;
		err = hd_fn_link_some(&s->link, s->in + s->in_len, IN_BYTES - s->in_len, &got, until_ns,
			diag);
		if (err == HD_E_PEERLOST)
			got = 0;
		else if (err)
			return err;
		ended = !got;
		s->in_len += got;
	}
}

static enum hd_err respond(struct service *s, const struct hd_runtime_next *next,
	const struct hd_fn_answer *answer, struct hd_diag *diag)
{
	static const char json[] = "Content-Type: application/json\r\n",
		late[] = "Lambda-Runtime-Function-Error-Type: Heddle.Deadline\r\n";
	bool in_time = answer->error != HD_FN_ERROR_DEADLINE;
	char bytes[4096], target[HD_RUNTIME_ID + 40];
	struct hd_json_writer w;
	struct hd_text body;

	hd_text_fixed(&body, bytes, sizeof bytes);
	if (in_time) {
		hd_fn_answer_write(answer, &body);
	} else {
		hd_json_writer_init(&w, &body);
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "errorMessage", answer->message);
		hd_json_put_text(&w, "errorType", "Heddle.Deadline");
		hd_json_open_array(&w, "stackTrace");
		hd_json_close(&w);
		hd_json_close(&w);
	}
	snprintf(target, sizeof target, "invocation/%s/%s", next->id, in_time ? "response" : "error");
	enum hd_err err = send_request(s, "POST", target, in_time ? json : late, body.at, diag);
	if (!err)
		err = take_answer(s, hd_clock_now_ns(s->link.loop.clock) + s->patience_ns, diag);
	if (err == HD_E_NOTFOUND)
		err = hd_fail(diag, HD_E_PEERLOST, "the runtime API ended the connection");
	if (!err && s->head.status >= 500)
		err = hd_fail(diag, HD_E_REFUSED, "the runtime API answers with status %d", s->head.status);
	return err;
}

static enum hd_err serve(struct service *s, struct hd_fn_worker *worker, struct hd_diag *diag)
{
	for (;;) {
		struct hd_runtime_next next;
		struct hd_fn_answer answer;
		s->link.stops = true;
		enum hd_err err = send_request(s, "GET", "invocation/next", "", "", diag);
		if (!err)
			err = take_answer(s, INT64_MAX, diag);
		if (err == HD_E_NOTFOUND || err == HD_E_INTERRUPT || err == HD_E_PEERLOST)
			return HD_OK;             /* no invocation is under way */
		s->link.stops = false;
		if (!err)
			err = hd_runtime_read_next(&s->head, &next, diag);
		if (err)
			return err;
		hd_fn_worker_do(worker, s->body, s->body_len, next.id, next.deadline_ms, &answer);
		err = respond(s, &next, &answer, diag);
		if (err)
			return err;
	}
}

/* What the emulator says; what is no number is no bound. */
static int64_t pace_of_environment(void)
{
	const size_t n = sizeof HD_FN_PACE_NAME - 1;
	uint64_t bytes_s = 0;

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, HD_FN_PACE_NAME "=", n + 1) &&
			hd_num_u64(*at + n + 1, UINT64_C(100000000000), &bytes_s, NULL))
			bytes_s = 0;
	return (int64_t)bytes_s;
}

enum hd_err hd_fn_serve_runtime(const char *api, struct hd_clock *clock, struct hd_diag *diag)
{
	struct hd_fn_worker worker = { .clock = NULL };
	struct service *s = hd_alloc(sizeof *s);
	char addr[HD_ADDR_CAP];
	bool local = !strncmp(api, "unix:", 5);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a function worker");
	*s = (struct service){ .patience_ns = local ? POOL_NS : ANSWER_NS, .in = hd_alloc(IN_BYTES),
		.body = hd_alloc(BODY_BYTES) };
	snprintf(addr, sizeof addr, "%s%s", local ? "" : "tcp:", api);
	snprintf(s->host, sizeof s->host, "%s", local ? "localhost" : api);
	enum hd_err err = s->in && s->body ? hd_fn_worker_init(&worker, clock, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for a function worker");
	if (!err)
		err = hd_fn_link_open(&s->link, clock, addr, NULL, NULL, hd_clock_now_ns(clock) +
			s->patience_ns, diag);
	worker.bytes_s = pace_of_environment();
	if (!err)
		err = serve(s, &worker, diag);
	hd_fn_link_close(&s->link);
	hd_fn_worker_finish(&worker);
	hd_free(s->in);
	hd_free(s->body);
	hd_free(s);
	return err;
}
