/* http.h -- workers behind an HTTP front end as a way to call functions (invoker.h): POST of the event.
 *
 * Knative, OpenFaaS, and `heddle worker --function=http` itself (front.h).
 *
 * 1. The endpoint is one of calls.h; its path is where events are sent. 429 and 503 are no failures: no
 *    worker is free. There is no report: the bill is by the caller's clock.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_HTTP_H
#define HD_FUNCTIONS_HTTP_H

#include "functions/calls.h"

/* `tag`: of the loop, HD_FN_CALLS_TAGS of them. `ca`: as in calls.h. HD_E_INVAL: no such endpoint.
 * Closed by hd_fn_calls_close(). */
HD_MUST_USE enum hd_err hd_fn_http_open(struct hd_fn_calls *calls, const char *endpoint, const char *ca,
	uint64_t tag, struct hd_loop *loop, struct hd_diag *diag);

/* self: struct hd_fn_calls */
extern const struct hd_fn_invoker_ops hd_fn_http_ops;

#endif
