/* lambda.h -- AWS Lambda's Invoke API as a way to call functions (invoker.h): signed requests over HTTP/1.1.
 *
 * 1. The endpoint is "http://HOST:PORT", HOST a number: the emulator. HTTPS is not spoken yet, so AWS itself
 *    is not called; keys go to no endpoint that is not of the loopback [HD_E_REFUSED].
 * 2. One connection a call. 429 is no failure; an answer that does not come is LOST at the deadline, or when
 *    the connection ends. What the service says of a call that failed is in hd_fn_called.why.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_LAMBDA_H
#define HD_FUNCTIONS_LAMBDA_H

#include "functions/invoker.h"
#include "functions/sigv4.h"

enum { HD_FN_CALLS = 64, HD_FN_CALL_IN = HD_HTTP_HEAD_BYTES + HD_FN_ANSWER_BYTES, HD_FN_CALL_OUT = 8192 };

/* A call under way: sock.net NULL: free. */
struct hd_fn_lambda_call {
	struct hd_sock sock;
	bool connected;
	uint64_t name;
	int64_t began_ns, until_ns;
	char out[HD_FN_CALL_OUT], in[HD_FN_CALL_IN];
	size_t out_len, out_at, in_len;
};

/* Where functions are called, and by whose right. Texts are borrowed. */
struct hd_fn_lambda {
	const char *function, *session;   /* session NULL: none */
	struct hd_sigv4_rights rights;
	char addr[HD_ADDR_CAP], host[HD_ADDR_CAP];
	uint64_t tag;                     /* of the loop: [tag, tag + HD_FN_CALLS) */
	struct hd_loop *loop;             /* borrowed */
	struct hd_net net;
	uint32_t nended;
	struct hd_fn_called *ended;       /* owned: HD_FN_CALLS */
	struct hd_fn_lambda_call *at;     /* owned: HD_FN_CALLS */
};

/* function, session, rights and tag are set by the caller. HD_E_INVAL: no such endpoint. */
HD_MUST_USE enum hd_err hd_fn_lambda_open(struct hd_fn_lambda *lambda, const char *endpoint,
	struct hd_loop *loop, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_lambda_close(struct hd_fn_lambda *lambda);

/* self: struct hd_fn_lambda */
extern const struct hd_fn_invoker_ops hd_fn_lambda_ops;

#endif
