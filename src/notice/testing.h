/* testing.h -- a source with a service played by the test: answers as texts of HTTP, a clock by hand. */
#ifndef HD_NOTICE_TESTING_H
#define HD_NOTICE_TESTING_H

#include <string.h>

#include "notice/notice.h"
#include "tests/check.h"

#define S HD_NOTICE_S
/* 2017-09-18T08:20:00Z, the date of answers unless they say another */
#define WALL (INT64_C(1505722800) * S)

struct played {
	struct hd_notice_watch w;
	struct hd_notice_ask ask;
	struct hd_notice notice;
	struct hd_diag said;
	int64_t now_ns, wall_ns;
};

static inline void play(struct played *p, const char *name)
{
	const struct hd_notice_source *source = hd_notice_find(name);

	*p = (struct played){ .now_ns = 1000 * S, .wall_ns = WALL };
	CHECK(source, "%s", name);
	hd_notice_watch_init(&p->w, source, &(struct hd_notice_settings){ 0 }, p->now_ns);
}

/* Time goes by until the source is to be asked; the request lies in p->ask. */
static inline void asks(struct played *p)
{
	int64_t next = hd_notice_watch_next(&p->w);

	CHECK(next != INT64_MAX, "it is never asked again");
	if (next > p->now_ns) {
		p->wall_ns += next - p->now_ns;
		p->now_ns = next;
	}
	hd_notice_watch_ask(&p->w, p->now_ns, &p->ask);
}

/* It is asked, and answers `text` at once. */
static inline bool says(struct played *p, const char *text)
{
	static char body[HD_NOTICE_BODY];
	struct hd_notice_answer a = { .body = body };
	struct hd_http_head head;

	asks(p);
	memset(&p->notice, 0, sizeof p->notice);
	p->said.text[0] = '\0';
	CHECK(hd_http_read_head(HD_HTTP_AN_ANSWER, text, strlen(text), &head) == HD_OK, "%s", text);
	CHECK(hd_http_read_body(&head, text + head.len_bytes, strlen(text) - head.len_bytes, true, body,
		sizeof body, &a.len) == HD_OK, "%s", text);
	a.what = p->ask.what;
	a.status = head.status;
	a.head = &head;
	a.now_ns = p->now_ns;
	a.wall_ns = p->wall_ns;
	return hd_notice_watch_answer(&p->w, &a, &p->notice, &p->said);
}

/* It is asked, and nothing answers. */
static inline void is_silent(struct played *p)
{
	asks(p);
	p->said.text[0] = '\0';
	hd_notice_watch_failed(&p->w, p->now_ns, "no answer", &p->said);
}

#define OK_(lines, body) "HTTP/1.1 200 OK\r\n" lines "\r\n" body
#define NO_(status) "HTTP/1.1 " status "\r\n\r\n"
#define TOKEN "AQAEAEhrvdlDw2M_8BXzDvTpF5tm8ZrHRYdz2uGO4GlyhlWr4r5rkA=="
#define TERMINATE OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:22:00Z\"}")
#define GOOGLE(etag, body) OK_("Metadata-Flavor: Google\r\nETag: " etag "\r\n", body)
#define EVENT_(id, type, status, at, more) "{\"EventId\":\"" id "\",\"EventType\":\"" type "\"," \
	"\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"myspotvm\"],\"EventStatus\":\"" status "\"," \
	"\"NotBefore\":\"" at "\",\"Description\":\"\",\"EventSource\":\"Platform\"" more "}"
#define EVENTS(n, events) OK_("Content-Type: application/json\r\n", \
	"{\"DocumentIncarnation\":" n ",\"Events\":[" events "]}")

#define NOTICE(p, k, lead_ns, word) do { \
	assert_int_equal((p)->notice.kind, HD_NOTICE_##k); \
	assert_int_equal((p)->notice.ends_ns, (lead_ns) < 0 ? INT64_MAX : (p)->now_ns + (lead_ns)); \
	assert_string_equal((p)->notice.text, word); \
} while (0)

#endif
