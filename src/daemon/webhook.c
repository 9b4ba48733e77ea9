#include "daemon/webhook.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "scheduler/dispatch.h"

enum { PAGE = 100, CURSOR = 32 };

static bool is_wanted(const char *kind)
{
#define X(name) if (!strcmp(kind, #name)) return true;
	HD_WEBHOOK_KINDS(X)
#undef X
	for (int state = HD_DISPATCH_OPEN + 1; state < HD_DISPATCH_NSTATES; state++)
		if (!strcmp(kind, hd_dispatch_state_name((enum hd_dispatch_state)state)))
			return true;
	return false;
}

enum hd_err hd_webhook_check(const char *url, struct hd_diag *diag)
{
	static const char *const hosts[] = { "http://127.0.0.1", "http://localhost", "http://[::1]" };

	if (!strncmp(url, "https://", 8) && url[8])
		return HD_OK;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		size_t len = strlen(hosts[i]);
		/* what stands before an @ is a name and a password, whatever host it looks like */
		if (!strncmp(url, hosts[i], len) && strchr(":/", url[len]) &&
			!memchr(url + len, '@', strcspn(url + len, "/?#")))
			return HD_OK;
	}
	return hd_fail(diag, HD_E_INVAL, "--webhook %.200s: https://..., or http:// to this machine "
		"(http://127.0.0.1:PORT/...)", url);
}

static void cursor_path(const struct hd_webhook *h, char path[HD_PATH_CAP])
{
	(void)snprintf(path, HD_PATH_CAP, "%s/webhook", h->dir);
}

/* One that cannot be written has the event sent once more after a restart. */
static void keep(struct hd_webhook *h, int64_t number)
{
	char path[HD_PATH_CAP], text[CURSOR];
	struct hd_diag diag = { "" };

	h->after = number;
	cursor_path(h, path);
	int len = snprintf(text, sizeof text, "%lld\n", (long long)number);
	if (hd_file_write_atomic(&h->fs, path, text, (size_t)len, &diag))
		h->say(h->user, "webhook", 0, diag.text);
}

/* ---- what there is to send ---- */

/* The handler's answer to `what`, in the arena. */
static enum hd_err ask(struct hd_webhook *h, const char *what, const char *key, int64_t value,
	const struct hd_json **answer, struct hd_diag *diag)
{
	struct hd_text asked, answered;
	struct hd_json_writer w;
	const struct hd_json *json = NULL;

	hd_text_init(&asked, &h->arena);
	hd_json_writer_init(&w, &asked);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "do", what);
	hd_json_put_i64(&w, key, value);
	hd_json_close(&w);
	enum hd_err err = asked.full ? hd_fail(diag, HD_E_NOMEM, "no memory for a webhook") :
		hd_json_parse(&h->arena, "ask", asked.at, asked.len, &json, diag);
	hd_text_init(&answered, &h->arena);
	hd_json_writer_init(&w, &answered);
	hd_json_open_object(&w, NULL);
	const struct hd_caller owner = hd_caller_owner(hd_account_self(), HD_NO_UID, "");
	if (!err)
		err = h->handler.answer(h->handler.self, &owner, what, json, &w, diag);
	while (!err && w.depth)
		hd_json_close(&w);
	if (!err && answered.full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a webhook");
	return err ? err : hd_json_parse(&h->arena, "answer", answered.at, answered.len, answer, diag);
}

struct hook_event { int64_t number, job; double t, at_s; const char *kind, *text; };

static enum hd_err read_event(const struct hd_json *json, struct hook_event *e, struct hd_diag *diag)
{
	enum hd_err err = hd_json_get_i64(json, "number", 1, INT64_MAX, &e->number, diag);

	if (!err)
		err = hd_json_get_i64(json, "job", 0, INT64_MAX, &e->job, diag);
	if (!err)
		err = hd_json_get_f64(json, "t", &e->t, diag);
	if (!err)
		err = hd_json_get_f64(json, "at_s", &e->at_s, diag);
	if (!err)
		err = hd_json_get_text(json, "kind", &e->kind, diag);
	return err ? err : hd_json_get_text(json, "text", &e->text, diag);
}

/* The next that is wanted, behind those that are not; number 0: there is none. */
static enum hd_err next_event(struct hd_webhook *h, struct hook_event *e, struct hd_diag *diag)
{
	const struct hd_json *page = NULL, *events = NULL;
	enum hd_err err;

	do {
		*e = (struct hook_event){ 0 };
		hd_arena_reset(&h->arena);
		err = ask(h, "events", "after", h->after, &page, diag);
		if (!err)
			err = hd_json_get(page, "events", HD_JSON_ARRAY, &events, diag);
		for (size_t i = 0; !err && i < hd_json_count(events); i++) {
			err = read_event(hd_json_item(events, i), e, diag);
			if (!err && is_wanted(e->kind))
				return HD_OK;
			if (!err)
				h->after = e->number;
		}
	} while (!err && hd_json_count(events) == PAGE);
	*e = (struct hook_event){ 0 };
	return err;
}

static enum hd_err put_body(struct hd_webhook *h, const struct hook_event *e, struct hd_text *body,
	struct hd_diag *diag)
{
	const struct hd_json *job = NULL;
	struct hd_json_writer w;
	const char *name = "";

	if (e->job && !ask(h, "job", "job", e->job, &job, NULL))
		(void)!hd_json_get_text(job, "name", &name, NULL);
	hd_text_init(body, &h->arena);
	hd_json_writer_init(&w, body);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "number", e->number);
	hd_json_put_f64(&w, "at_s", e->at_s);
	hd_json_put_f64(&w, "t", e->t);
	hd_json_put_text(&w, "kind", e->kind);
	hd_json_put_i64(&w, "job", e->job);
	hd_json_put_text(&w, "name", name);
	hd_json_put_text(&w, "text", e->text);
	hd_json_close(&w);
	return body->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a webhook") : HD_OK;
}

/* ---- sending ---- */

static void later(struct hd_webhook *h, int64_t now_ns, const char *why)
{
	char text[HD_WEB_WHY + 200];

	if (!h->wait_ns) {
		(void)snprintf(text, sizeof text, "event %lld is not taken: %s; it is tried again and again",
			(long long)h->sending, why);
		h->say(h->user, "webhook", 0, text);
	}
	h->wait_ns = !h->wait_ns ? HD_WEBHOOK_FIRST_NS :
		h->wait_ns < HD_WEBHOOK_MOST_NS / 2 ? 2 * h->wait_ns : HD_WEBHOOK_MOST_NS;
	h->due_ns = now_ns + h->wait_ns;
	h->sending = 0;
}

static void over(struct hd_webhook *h, const char *what)
{
	if (what || h->wait_ns)
		h->say(h->user, "webhook", 0, what ? what : "events are taken again");
	keep(h, h->sending);
	h->sending = h->wait_ns = h->due_ns = 0;
}

/* The status of an answer that came, whatever became of what follows its head; 0: it has none. */
static int status_of(const struct hd_web_reply *r)
{
	const char *at = r->head_len > 12 ? memchr(r->head, ' ', r->head_len - 4) : NULL;

	return at ? (at[1] - '0') * 100 + (at[2] - '0') * 10 + at[3] - '0' : 0;
}

static void take_reply(struct hd_webhook *h, const struct hd_web_reply *r, int64_t now_ns)
{
	const int status = status_of(r);
	char text[80];

	(void)snprintf(text, sizeof text, "event %lld is refused with %d, and dropped",
		(long long)h->sending, status);
	if ((int64_t)r->name != h->sending)
		return;
	if (status >= 200 && status < 300)
		over(h, NULL);
	else if (status >= 400 && status < 500 && status != 408 && status != 429)
		over(h, text);
	else if (r->err)
		later(h, now_ns, r->why);
	else {
		(void)snprintf(text, sizeof text, "the answer is %d", status);
		later(h, now_ns, text);
	}
}

static void send_next(struct hd_webhook *h, int64_t now_ns)
{
	struct hd_diag diag = { "" };
	struct hd_text body;
	struct hook_event e;
	enum hd_err err = next_event(h, &e, &diag);

	h->news = !err && e.number;
	if (!err && !e.number)
		return;
	h->sending = e.number;
	if (!err)
		err = put_body(h, &e, &body, &diag);
	if (!err)
		err = hd_web_post(h->web, (uint64_t)e.number, h->url, "Content-Type: application/json\r\n",
			body.at, body.len, now_ns + HD_WEBHOOK_ANSWER_NS, &diag);
	if (err) {
		h->news = true;
		later(h, now_ns, diag.text[0] ? diag.text : hd_err_text(err));
	}
}

/* ---- the frontend ---- */

static enum hd_err read_cursor(struct hd_webhook *h, struct hd_diag *diag)
{
	const struct hd_json *page = NULL;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	int64_t last = 0;
	size_t len;

	cursor_path(h, path);
	enum hd_err err = ask(h, "events", "after", INT64_MAX, &page, diag);
	if (!err)
		err = hd_json_get_i64(page, "last", 0, INT64_MAX, &last, diag);
	if (err)
		return err;
	err = hd_file_read_all(&h->fs, path, &h->arena, CURSOR, &bytes, &len, diag);
	if (!err) {
		char *text = hd_arena_text(&h->arena, (const char *)bytes, len);
		if (!text || !strchr(text, '\n'))
			return hd_fail(diag, HD_E_INPUT, "%s does not hold the number of an event: "
				"remove it, and the webhook begins with what happens from then on", path);
		text[strcspn(text, "\n")] = 0;
		err = hd_num_i64(text, 0, INT64_MAX, &h->after, diag);
	}
	if (err == HD_E_NOTFOUND || (!err && h->after > last)) {
		keep(h, last);
		err = HD_OK;
	}
	return err;
}

static enum hd_err webhook_open(void *self, const struct hd_handler *handler, struct hd_loop *loop,
	uint64_t tag, struct hd_diag *diag)
{
	struct hd_webhook *h = self;

	hd_fs_real(&h->fs);
	hd_arena_init(&h->arena, 0);
	h->handler = *handler;
	h->loop = loop;
	h->news = true;
	enum hd_err err = hd_webhook_check(h->url, diag);
	if (!err)
		err = hd_web_open(&h->web, loop, tag, NULL, diag);
	if (!err && !strncmp(h->url, "http:", 5))
		hd_web_plain(h->web);
	return err ? err : read_cursor(h, diag);
}

static void webhook_event(void *self, const struct hd_loop_event *event)
{
	struct hd_webhook *h = self;
	hd_web_event(h->web, event);
}

static int64_t webhook_tick(void *self, int64_t now_ns)
{
	struct hd_webhook *h = self;
	struct hd_web_reply *reply;
	int64_t next = hd_web_tick(h->web, now_ns);

	hd_arena_reset(&h->arena);
	reply = h->sending ? hd_arena_take(&h->arena, 1, sizeof *reply) : NULL;
	if (reply && hd_web_take(h->web, reply))
		take_reply(h, reply, now_ns);
	if (!h->sending && h->news && now_ns >= h->due_ns)
		send_next(h, now_ns);
	if (h->sending) {
		int64_t at = hd_web_tick(h->web, now_ns);
		next = at < next ? at : next;
	}
	return !h->sending && h->news && h->due_ns > now_ns && h->due_ns < next ? h->due_ns : next;
}

static void webhook_changed(void *self, uint64_t last)
{
	struct hd_webhook *h = self;

	h->news |= (int64_t)last > h->after;
}

static void webhook_close(void *self)
{
	struct hd_webhook *h = self;

	hd_web_close(h->web);
	h->web = NULL;
	hd_arena_finish(&h->arena);
}

const struct hd_frontend_ops hd_webhook_ops = {
	.name = "webhook", .open = webhook_open, .event = webhook_event, .tick = webhook_tick,
	.changed = webhook_changed, .close = webhook_close,
};
