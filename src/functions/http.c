#include "functions/http.h"

static enum hd_err read_answer(const struct hd_http_head *head, struct hd_fn_called *called)
{
	bool busy = head->status == 429 || head->status == 503;

	called->end = busy ? HD_FN_REFUSED_CALL : head->status == 200 ? HD_FN_ANSWERED : HD_FN_ERRED;
	if (called->end != HD_FN_ANSWERED)
		hd_fn_calls_why(called, head, "Server");
	called->took_ns = head->status >= 400 && head->status < 500 ? -1 : 0;
	return HD_OK;
}

enum hd_err hd_fn_http_open(struct hd_fn_calls *c, const char *endpoint, const char *ca, uint64_t tag,
	struct hd_loop *loop, struct hd_diag *diag)
{
	*c = (struct hd_fn_calls){ .tag = tag, .reader = read_answer, .ca = ca };
	return hd_fn_calls_open(c, endpoint, loop, diag);
}

static enum hd_err call(void *self, uint64_t name, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct hd_fn_calls *c = self;

	return hd_fn_calls_post(c, name, &(struct hd_fn_post){ c->path, "", event, len }, deadline_ns, diag);
}

static void on_event(void *self, const struct hd_loop_event *event) { hd_fn_calls_event(self, event); }
static int64_t tick(void *self, int64_t now_ns) { return hd_fn_calls_tick(self, now_ns); }
static bool take(void *self, struct hd_fn_called *called) { return hd_fn_calls_take(self, called); }

const struct hd_fn_invoker_ops hd_fn_http_ops = { "http", call, on_event, tick, take };
