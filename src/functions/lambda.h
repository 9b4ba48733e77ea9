/* lambda.h -- AWS Lambda's Invoke API as a way to call functions (invoker.h): signed requests.
 *
 * 1. The endpoint is one of calls.h without a path. 429 is no failure. What the service says of a call that
 *    failed is in hd_fn_called.why.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_LAMBDA_H
#define HD_FUNCTIONS_LAMBDA_H

#include "functions/calls.h"
#include "functions/sigv4.h"

/* Where functions are called, and by whose right. Texts are borrowed. */
struct hd_fn_lambda {
	const char *function, *session;   /* session NULL: none */
	struct hd_sigv4_rights rights;
	const char *ca;                   /* certificates of HTTPS; NULL: the system's */
	struct hd_fn_calls calls;
};

/* function, session, rights and ca are set by the caller. `tag`: of the loop, HD_FN_CALLS_TAGS of them.
 * HD_E_INVAL: no such endpoint. */
HD_MUST_USE enum hd_err hd_fn_lambda_open(struct hd_fn_lambda *lambda, const char *endpoint, uint64_t tag,
	struct hd_loop *loop, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_lambda_close(struct hd_fn_lambda *lambda);

/* self: struct hd_fn_lambda */
extern const struct hd_fn_invoker_ops hd_fn_lambda_ops;

#endif
