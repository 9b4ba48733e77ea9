#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/web.h"
#include "sys/web_int.h"

enum { LINE = 4096 };
#define CONNECT_MS 10000L

/* A request under way: easy NULL: free. */
struct transfer {
	CURL *easy;
	struct curl_slist *lines;
	uint64_t name;
	bool too_long;
	char why[CURL_ERROR_SIZE];
	struct hd_web_head lead;          /* in `head` */
	char head[HD_WEB_HEAD], body[HD_WEB_BODY];
	size_t body_len;
};

struct hd_web {
	struct hd_web_multi shared;
	struct hd_loop *loop;             /* borrowed */
	uint64_t tag;
	int64_t timer_ns;                 /* of the library; INT64_MAX: none */
	bool plain;
	struct transfer at[HD_WEB_REQUESTS];
};

/* ---- what the library asks for ---- */

static int on_socket(CURL *easy, curl_socket_t id, int what, void *self, void *of_socket)
{
	struct hd_web *h = self;
	unsigned wants = (what & CURL_POLL_IN ? HD_LOOP_READ : 0u) |
		(what & CURL_POLL_OUT ? HD_LOOP_WRITE : 0u);

	(void)easy, (void)of_socket;
	if (what == CURL_POLL_REMOVE)
		hd_loop_unwatch(h->loop, id);
	else if (hd_loop_watch(h->loop, id, wants, h->tag + (uint64_t)id, NULL))
		return -1;
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *self)
{
	struct hd_web *h = self;

	(void)multi;
	h->timer_ns = ms < 0 ? INT64_MAX : hd_clock_now_ns(h->loop->clock) + ms * HD_NS_PER_MS;
	return 0;
}

static size_t on_head(char *bytes, size_t size, size_t n, void *self)
{
	struct transfer *t = self;

	t->too_long = t->too_long || !hd_web_head_add(&t->lead, bytes, size * n);
	return t->too_long ? 0 : size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *self)
{
	struct transfer *t = self;
	size_t len = size * n;

	t->too_long |= len > sizeof t->body - t->body_len;
	if (t->too_long)
		return 0;
	memcpy(t->body + t->body_len, bytes, len);
	t->body_len += len;
	return len;
}

/* ---- life ---- */

enum hd_err hd_web_open(struct hd_web **web, struct hd_loop *loop, uint64_t tag, const char *ca,
	struct hd_diag *diag)
{
	struct hd_web *h = hd_alloc(sizeof *h);

	*web = NULL;
	if (!h)
		return hd_fail(diag, HD_E_NOMEM, "no memory for requests over HTTPS");
	memset(h, 0, sizeof *h);
	h->loop = loop;
	h->tag = tag;
	h->timer_ns = INT64_MAX;
	enum hd_err err = hd_web_multi_open(&h->shared, ca, diag);
	if (err) {
		hd_web_close(h);
		return err;
	}
	const bool good = !curl_multi_setopt(h->shared.multi, CURLMOPT_SOCKETFUNCTION, on_socket) &&
		!curl_multi_setopt(h->shared.multi, CURLMOPT_SOCKETDATA, h) &&
		!curl_multi_setopt(h->shared.multi, CURLMOPT_TIMERFUNCTION, on_timer) &&
		!curl_multi_setopt(h->shared.multi, CURLMOPT_TIMERDATA, h);
	if (!good) {
		hd_web_close(h);
		return hd_fail(diag, HD_E_NOMEM, "libcurl does not start");
	}
	*web = h;
	return HD_OK;
}

void hd_web_plain(struct hd_web *h) { h->plain = true; }

static void drop(struct hd_web *h, struct transfer *t)
{
	if (!t->easy)
		return;
	(void)curl_multi_remove_handle(h->shared.multi, t->easy);
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->lines);
	t->easy = NULL;
	t->lines = NULL;
}

void hd_web_close(struct hd_web *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HD_WEB_REQUESTS; i++)
		drop(h, &h->at[i]);
	hd_web_multi_close(&h->shared);
	hd_free(h);
}

/* ---- requests ---- */

static bool add_lines(struct transfer *t, const char *lines)
{
	char one[LINE];

	while (*lines) {
		size_t n = strcspn(lines, "\r\n");
		if (n >= sizeof one)
			return false;
		memcpy(one, lines, n);
		one[n] = '\0';
		if (!hd_web_line_add(&t->lines, one))
			return false;
		lines += n + strspn(lines + n, "\r\n");
	}
	return true;
}

static bool set_up(const struct hd_web *h, struct transfer *t, const char *url, const char *body, size_t len,
	long ms)
{
	CURL *e = t->easy;
	CURLcode bad = curl_easy_setopt(e, CURLOPT_URL, url);

	bad = bad || !h->plain ? bad : curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, ms);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->why);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->lines);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)len);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, body);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* a thread that looks a name up is not waited for when its request ends */
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
#endif
	return !bad && hd_web_rules(&h->shared, e, h->plain ? "http,https" : "https");
}

enum hd_err hd_web_post(struct hd_web *h, uint64_t name, const char *url, const char *lines,
	const char *body, size_t len, int64_t deadline_ns, struct hd_diag *diag)
{
	int64_t left_ns = deadline_ns - hd_clock_now_ns(h->loop->clock);
	struct transfer *t = NULL;

	for (size_t i = 0; i < HD_WEB_REQUESTS && !t; i++)
		t = h->at[i].easy ? NULL : &h->at[i];
	if (!t)
		return HD_E_AGAIN;
	t->name = name;
	t->too_long = false;
	t->why[0] = '\0';
	t->lead = (struct hd_web_head){ t->head, sizeof t->head, 0 };
	t->body_len = 0;
	t->easy = curl_easy_init();
	long ms = left_ns < HD_NS_PER_MS ? 1 : (long)(left_ns / HD_NS_PER_MS);
	if (!t->easy || !add_lines(t, lines) || !set_up(h, t, url, body, len, ms) ||
		curl_multi_add_handle(h->shared.multi, t->easy)) {
		drop(h, t);
		return hd_fail(diag, HD_E_INVAL, "%s: libcurl does not take this request", url);
	}
	return HD_OK;
}

void hd_web_event(struct hd_web *h, const struct hd_loop_event *event)
{
	int what = (event->what & HD_LOOP_READ ? CURL_CSELECT_IN : 0) |
		(event->what & HD_LOOP_WRITE ? CURL_CSELECT_OUT : 0) |
		(event->what & HD_LOOP_LOST ? CURL_CSELECT_ERR : 0), running = 0;

	(void)curl_multi_socket_action(h->shared.multi, (curl_socket_t)(event->tag - h->tag), what, &running);
}

int64_t hd_web_tick(struct hd_web *h, int64_t now_ns)
{
	int running = 0;

	if (now_ns >= h->timer_ns) {
		h->timer_ns = INT64_MAX;
		(void)curl_multi_socket_action(h->shared.multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	return h->timer_ns;
}

bool hd_web_take(struct hd_web *h, struct hd_web_reply *reply)
{
	CURLMsg *message;
	int left = 0;

	while ((message = curl_multi_info_read(h->shared.multi, &left))) {
		struct transfer *t = NULL;
		if (message->msg != CURLMSG_DONE ||
			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t) || !t)
			continue;
		CURLcode code = message->data.result;
		long sent = 0;
		reply->sent = curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent) || sent > 0;
		reply->name = t->name;
		reply->err = !code ? HD_OK : code == CURLE_OPERATION_TIMEDOUT ? HD_E_AGAIN : HD_E_PEERLOST;
		snprintf(reply->why, sizeof reply->why, "%s", !code ? "" : t->too_long ?
			"the answer is too long" : t->why[0] ? t->why : curl_easy_strerror(code));
		memcpy(reply->head, t->head, reply->head_len = t->lead.len);
		memcpy(reply->body, t->body, reply->body_len = t->body_len);
		reply->body[t->body_len] = '\0';
		drop(h, t);
		return true;
	}
	return false;
}
