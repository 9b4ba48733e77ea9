/* server.h -- requests over HTTP/1.1 on a loop, one a connection, answered at once or later.
 *
 * The emulator of AWS Lambda and the front end of function workers serve through it.
 *
 * 1. A request is handed over once, when it is whole or cannot become so; what is to be said is said by
 *    hd_fn_serve_say(), inside the handler or at any time after it set `waits`.
 * 2. At most HD_FN_CALLERS connections; one that is not whole after HD_FN_REQUEST_NS ends, and so does one
 *    that does not take its answer. Others wait in the listener's queue, which is not looked at meanwhile.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_SERVER_H
#define HD_FUNCTIONS_SERVER_H

#include "sys/loop.h"
#include "sys/socket.h"
#include "functions/event.h"
#include "functions/instances.h"

#define HD_FN_REQUEST_NS INT64_C(10000000000)
enum { HD_FN_CALLERS = 128, HD_FN_CALLER_IN = HD_HTTP_HEAD_BYTES + HD_FN_EVENT_BYTES,
	HD_FN_CALLER_OUT = HD_FN_ANSWER_BYTES + 2 * HD_LAMBDA_LOG,
	HD_FN_SERVER_TAGS = 1 + HD_FN_CALLERS };

/* A connection of a caller. */
struct hd_fn_caller {
	struct hd_sock sock;              /* net NULL: free */
	char in[HD_FN_CALLER_IN], out[HD_FN_CALLER_OUT], body[HD_FN_EVENT_BYTES];
	size_t in_len, out_len, out_at;
	bool waits;                       /* of the handler: its answer comes later */
	uint64_t call;                    /* of the handler */
	int64_t until_ns;
};

/* A request: `how` HD_OK: whole, body[0..len) is c->body; HD_E_NOSPACE: its body is longer than that; else it
 * is no request. */
typedef void hd_fn_handler(void *self, struct hd_fn_caller *c, enum hd_err how,
	const struct hd_http_head *head, size_t len);

/* The service. handler, self and tag are set by the caller before open. */
struct hd_fn_server {
	hd_fn_handler *handler;
	void *self;
	uint64_t tag;                     /* of the loop: [tag, tag + HD_FN_SERVER_TAGS) */
	struct hd_loop *loop;             /* borrowed */
	bool full;                        /* the listener is not watched */
	struct hd_sock listener;          /* its addr: with the port that was chosen */
	struct hd_fn_caller *at;          /* owned: HD_FN_CALLERS */
};

/* Listens at `addr` of `net`. */
HD_MUST_USE enum hd_err hd_fn_server_open(struct hd_fn_server *server, struct hd_net *net, const char *addr,
	struct hd_loop *loop, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_server_close(struct hd_fn_server *server);
/* An event of the loop with one of its tags. */
void hd_fn_server_event(struct hd_fn_server *server, const struct hd_loop_event *event);
/* After every turn; when it wants to be called again at the latest. */
int64_t hd_fn_server_tick(struct hd_fn_server *server, int64_t now_ns);
/* The whole answer; it is written as the caller takes it. `lines`: more header lines, each with CRLF. */
void hd_fn_serve_say(struct hd_fn_server *server, struct hd_fn_caller *c, const char *status,
	const char *lines, const char *body);
/* No answer: the connection ends. */
void hd_fn_serve_drop(struct hd_fn_server *server, struct hd_fn_caller *c);

#endif
