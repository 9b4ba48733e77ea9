/* calls.h -- calls of functions over HTTP/1.1: POST requests on a loop, one connection each.
 *
 * AWS Lambda (lambda.h) and HTTP front ends (http.h) say what stands in a request and what an answer means.
 *
 * 1. The endpoint is "https://HOST[:PORT]" (sys/web.h) or "http://HOST:PORT", and perhaps a path; of plain
 *    HTTP, HOST is a number of the loopback: what is sent has keys or tokens in it, so it leaves this machine
 *    in no other way.
 * 2. An answer that does not come is LOST at the deadline, or when the connection ends; a call of which
 *    nothing was sent did not run.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_CALLS_H
#define HD_FUNCTIONS_CALLS_H

#include "sys/web.h"
#include "functions/invoker.h"

enum { HD_FN_CALLS = 64, HD_FN_CALL_IN = HD_HTTP_HEAD_BYTES + HD_FN_ANSWER_BYTES, HD_FN_CALL_OUT = 8192,
	HD_FN_PATH = 256, HD_FN_CALLS_TAGS = HD_FN_CALLS + HD_WEB_TAGS };

/* A call under way: sock.net NULL and not `web`: free. */
struct hd_fn_call {
	struct hd_sock sock;
	bool connected, web;              /* web: over HTTPS */
	uint64_t name;
	int64_t began_ns, until_ns;
	char out[HD_FN_CALL_OUT], in[HD_FN_CALL_IN];
	size_t out_len, out_at, in_len;
};

/* What is asked. `lines`: more header lines, each with CRLF. */
struct hd_fn_post { const char *target, *lines, *body; size_t len; };

/* What a whole answer means: fills end, report, why; body, len and call are set, took_ns 0 becomes the time
 * that passed. HD_E_PROTOCOL: it does not speak what is expected. */
typedef enum hd_err hd_fn_reader(const struct hd_http_head *head, struct hd_fn_called *called);

/* Calls of one endpoint. tag, reader and ca are set by the caller before open. */
struct hd_fn_calls {
	uint64_t tag;                     /* of the loop: [tag, tag + HD_FN_CALLS_TAGS) */
	hd_fn_reader *reader;
	const char *ca;                   /* certificates of HTTPS; NULL: the system's. Borrowed by open */
	char addr[HD_ADDR_CAP], host[HD_ADDR_CAP], path[HD_FN_PATH];      /* path: "/" where none was given */
	struct hd_loop *loop;             /* borrowed */
	struct hd_net net;
	struct hd_web *web;              /* owned; NULL: plain */
	struct hd_web_reply *reply;      /* owned, of web */
	uint32_t nended;
	struct hd_fn_called *ended;       /* owned: HD_FN_CALLS */
	struct hd_fn_call *at;            /* owned: HD_FN_CALLS */
};

/* HD_E_INVAL: no such endpoint. */
HD_MUST_USE enum hd_err hd_fn_calls_open(struct hd_fn_calls *calls, const char *endpoint,
	struct hd_loop *loop, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_calls_close(struct hd_fn_calls *calls);
/* Begins one. HD_E_AGAIN: HD_FN_CALLS are under way. */
HD_MUST_USE enum hd_err hd_fn_calls_post(struct hd_fn_calls *calls, uint64_t name,
	const struct hd_fn_post *post, int64_t deadline_ns, struct hd_diag *diag);
/* As the slots of invoker.h. */
void hd_fn_calls_event(struct hd_fn_calls *calls, const struct hd_loop_event *event);
/* When it wants to be called again at the latest. */
int64_t hd_fn_calls_tick(struct hd_fn_calls *calls, int64_t now_ns);
/* The next call that ended; false: none. */
bool hd_fn_calls_take(struct hd_fn_calls *calls, struct hd_fn_called *called);
/* Into called->why: what a service says of a call that it did not do: status, the line `type`, its words. */
void hd_fn_calls_why(struct hd_fn_called *called, const struct hd_http_head *head, const char *type);

#endif
