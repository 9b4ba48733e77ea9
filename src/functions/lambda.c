#include "functions/lambda.h"

#include <string.h>

/* What the answer of a call says. */
static enum hd_err read_answer(const struct hd_http_head *head, struct hd_fn_called *called)
{
	struct hd_lambda_outcome o;
	enum hd_err err = hd_lambda_read_outcome(head, &o, NULL);

	if (err)
		return err;
	called->end = o.status == 429 ? HD_FN_REFUSED_CALL : o.status != 200 || o.function_error ?
		HD_FN_ERRED : HD_FN_ANSWERED;
	if (called->end != HD_FN_ANSWERED)
		hd_fn_calls_why(called, head, "X-Amzn-ErrorType");
	called->has_report = o.has_report;
	called->report = o.report;
	called->took_ns = o.status >= 400 && o.status < 500 ? -1 : 0;
	return HD_OK;
}

enum hd_err hd_fn_lambda_open(struct hd_fn_lambda *l, const char *endpoint, uint64_t tag,
	struct hd_loop *loop, struct hd_diag *diag)
{
	l->calls = (struct hd_fn_calls){ .tag = tag, .reader = read_answer, .ca = l->ca };
	enum hd_err err = hd_fn_calls_open(&l->calls, endpoint, loop, diag);
	if (!err && strcmp(l->calls.path, "/") != 0) {
		err = hd_fail(diag, HD_E_INVAL, "endpoint %s: Lambda's has no path", endpoint);
		hd_fn_calls_close(&l->calls);
	}
	return err;
}

void hd_fn_lambda_close(struct hd_fn_lambda *l) { hd_fn_calls_close(&l->calls); }

static enum hd_err call(void *self, uint64_t name, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct hd_fn_lambda *l = self;
	char target[HD_LAMBDA_NAME + 64], date[HD_SIGV4_DATE], sign[1024], lines[HD_FN_CALL_OUT];
	struct hd_sigv4_request r = { .method = "POST", .target = target, .date = date, .nlines = 2,
		.line = { { "host", l->calls.host }, { "x-amz-date", date } } };
	struct hd_text value, text;

	snprintf(target, sizeof target, HD_INVOKE_ROOT "%.*s/invocations", HD_LAMBDA_NAME, l->function);
	hd_sigv4_date(hd_clock_wall_ns(l->calls.loop->clock), date);
	if (l->session)
		r.line[r.nlines++] = (struct hd_sigv4_line){ "x-amz-security-token", l->session };
	hd_text_fixed(&value, sign, sizeof sign);
	enum hd_err err = hd_sha256(event, len, &r.body, diag);
	if (!err)
		err = hd_sigv4_authorization(&l->rights, &r, &value, diag);
	if (err)
		return err;
	hd_text_fixed(&text, lines, sizeof lines);
	hd_text_addf(&text, "X-Amz-Date: %s\r\nAuthorization: %s\r\n", date, sign);
	if (l->session)
		hd_text_addf(&text, "X-Amz-Security-Token: %s\r\n", l->session);
	hd_text_add(&text, "X-Amz-Invocation-Type: RequestResponse\r\nX-Amz-Log-Type: Tail\r\n");
	if (text.full)
		return hd_fail(diag, HD_E_INVAL, "the request is too long");
	return hd_fn_calls_post(&l->calls, name, &(struct hd_fn_post){ target, lines, event, len },
		deadline_ns, diag);
}

static void on_event(void *self, const struct hd_loop_event *event)
{
	hd_fn_calls_event(&((struct hd_fn_lambda *)self)->calls, event);
}

static int64_t tick(void *self, int64_t now_ns)
{
	return hd_fn_calls_tick(&((struct hd_fn_lambda *)self)->calls, now_ns);
}

static bool take(void *self, struct hd_fn_called *called)
{
	return hd_fn_calls_take(&((struct hd_fn_lambda *)self)->calls, called);
}

const struct hd_fn_invoker_ops hd_fn_lambda_ops = { "lambda", call, on_event, tick, take };
