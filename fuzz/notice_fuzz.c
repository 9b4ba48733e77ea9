#define _GNU_SOURCE        /* of the C library: memmem */
/* notice_fuzz -- whatever a source of notices sends, a watch stands: it asks in bounds, never in a circle,
 * takes back only what stood, and shows nothing but printable text. The input: a digit that picks the source,
 * then answers of HTTP, each ended by a line "%%"; an empty one is silence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "notice/notice.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

static bool are_lines(const char *lines)
{
	size_t n = strlen(lines);

	return !n || (n > 2 && !strcmp(lines + n - 2, "\r\n") && !strstr(lines, "\r\n\r\n"));
}

/* Could be sent: one line of a request, whole header lines. */
static void look_at_ask(const struct hd_notice_ask *ask)
{
	must(ask->target[0] == '/' && !strpbrk(ask->target, " \r\n") && is_printable(ask->target));
	must(are_lines(ask->lines) && ask->timeout_ns > 0 && strlen(ask->target) < 200);
}

static void look_at_notice(const struct hd_notice *n, bool stood, int64_t now_ns)
{
	must(n->kind == HD_NOTICE_PREEMPT || n->kind == HD_NOTICE_RISK || n->kind == HD_NOTICE_WITHDRAWN);
	must(n->kind != HD_NOTICE_WITHDRAWN || stood);
	must(n->kind == HD_NOTICE_PREEMPT ? n->ends_ns >= now_ns : n->ends_ns == INT64_MAX);
	must(is_printable(n->text) && n->source);
}

static void one(struct hd_notice_watch *w, const char *text, size_t len, int64_t *now_ns, uint32_t *at_once)
{
	static char body[HD_NOTICE_BODY];
	struct hd_notice_ask ask = { .target = "/" };
	struct hd_notice notice = { .kind = HD_NOTICE_NONE };
	struct hd_diag said = { "" };
	struct hd_http_head head;
	bool stood = w->standing.kind != HD_NOTICE_NONE;
	int64_t next = hd_notice_watch_next(w);

	if (next == INT64_MAX)
		return;
	*at_once = next > *now_ns ? 0 : *at_once + 1;
	must(*at_once < 8);
	*now_ns = next > *now_ns ? next : *now_ns;
	hd_notice_watch_ask(w, *now_ns, &ask);
	if (hd_notice_by_http(w))
		look_at_ask(&ask);
	struct hd_notice_answer a = { .what = ask.what, .head = &head, .body = body, .now_ns = *now_ns,
		.wall_ns = INT64_C(1505722800) * HD_NOTICE_S };
	bool got = hd_http_read_head(HD_HTTP_AN_ANSWER, text, len, &head) == HD_OK &&
		hd_http_read_body(&head, text + head.len_bytes, len - head.len_bytes, true, body, sizeof body,
		&a.len) == HD_OK;
	a.status = head.status;
	if (!got)
		hd_notice_watch_failed(w, *now_ns, "nothing that is HTTP", &said);
	else if (hd_notice_watch_answer(w, &a, &notice, &said))
		look_at_notice(&notice, stood, *now_ns);
	must(hd_notice_watch_next(w) >= *now_ns);
	if (hd_notice_watch_approve(w, &ask))
		look_at_ask(&ask);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static char *const nowhere[] = { NULL };
	const struct hd_notice_settings settings = { .approve = true };
	struct hd_notice_choice all;
	struct hd_notice_watch w;
	int64_t now_ns = 0;
	uint32_t at_once = 0;

	if (len < 2)
		return 0;
	hd_notice_choose("auto", nowhere, &all);
	for (uint32_t i = 0; i < all.nprobes; i++)
		hd_notice_chosen(all.probe[i], &all);
	const char *at = (const char *)bytes + 1, *end = (const char *)bytes + len;
	hd_notice_watch_init(&w, all.source[bytes[0] % 16 % all.n], &settings, 0);
	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "%%\n", 3);
		one(&w, at, (size_t)((mark ? mark : end) - at), &now_ns, &at_once);
		at = mark ? mark + 3 : end;
	}
	return 0;
}
