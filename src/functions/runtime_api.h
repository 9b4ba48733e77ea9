/* runtime_api.h -- what AWS Lambda and a function say to each other over HTTP/1.1: the Runtime API
 * (2018-06-01) and the Invoke API (2015-03-31).
 *
 * The function's loop and the invoker read through it; the emulator and the local pool write through it.
 *
 * 1. What is read may be anything: lengths are bounded, what is missing or not understood is refused
 *    [HD_E_PROTOCOL].
 * 2. A line REPORT ends an invocation in the log: how long it was billed, with which memory. Times are whole
 *    milliseconds where they are billed, microseconds where they are measured.
 *
 * Spans point into the caller's bytes. Pure. */
#ifndef HD_FUNCTIONS_RUNTIME_API_H
#define HD_FUNCTIONS_RUNTIME_API_H

#include "base/http_head.h"
#include "base/text.h"

#define HD_RUNTIME_ROOT "/2018-06-01/runtime/"
#define HD_INVOKE_ROOT "/2015-03-31/functions/"

enum {
	HD_RUNTIME_ID = 64, HD_RUNTIME_TRACE = 256,
	HD_LAMBDA_BODY = 6 << 20,         /* of an event, of an answer */
	HD_LAMBDA_NAME = 140,
	HD_LAMBDA_LOG = 4096,             /* the tail that an answer carries */
};

/* Of GET invocation/next. */
struct hd_runtime_next {
	char id[HD_RUNTIME_ID];           /* letters, digits, '-' */
	char trace[HD_RUNTIME_TRACE];     /* "": none */
	int64_t deadline_ms;              /* Unix time */
};
/* HD_E_PROTOCOL: it is no such answer. HD_E_REFUSED: the service says no. */
HD_MUST_USE enum hd_err hd_runtime_read_next(const struct hd_http_head *head, struct hd_runtime_next *next,
	struct hd_diag *diag);

/* What a function asks of the Runtime API. */
enum hd_runtime_what { HD_RUNTIME_NEXT, HD_RUNTIME_RESPONSE, HD_RUNTIME_ERROR, HD_RUNTIME_INIT_ERROR,
	HD_RUNTIME_UNKNOWN };
/* The call that a request is, and the invocation that it names ("" of NEXT and INIT_ERROR). */
enum hd_runtime_what hd_runtime_call(const struct hd_http_head *head, char id[HD_RUNTIME_ID]);

/* The last line of an invocation. */
struct hd_lambda_report {
	char id[HD_RUNTIME_ID];
	int64_t duration_us, billed_ms, init_us;         /* init 0: it was warm */
	int64_t memory_mb, used_mb;
};
/* With a line feed. */
void hd_lambda_report_write(const struct hd_lambda_report *report, struct hd_text *text);
/* The first REPORT of a text. HD_E_NOTFOUND: there is none that is whole. `rest`: what follows it. */
HD_MUST_USE enum hd_err hd_lambda_report_read(const char *text, size_t len, struct hd_lambda_report *report,
	size_t *rest);

/* Of POST functions/NAME/invocations. */
struct hd_lambda_outcome {
	int status;
	bool function_error;              /* the function failed; the call itself did not */
	bool has_report;
	struct hd_lambda_report report;
};
/* HD_E_PROTOCOL: what it says of itself makes no sense. */
HD_MUST_USE enum hd_err hd_lambda_read_outcome(const struct hd_http_head *head,
	struct hd_lambda_outcome *outcome, struct hd_diag *diag);
/* NAME of a target of the Invoke API, as it stands there; false: it is another. */
bool hd_lambda_function_of(struct hd_http_span target, char name[HD_LAMBDA_NAME]);

#endif
