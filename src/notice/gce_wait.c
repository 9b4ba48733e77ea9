#include "notice/gce_wait.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_S = 60 };

void hd_gce_ask(const struct hd_notice_memory *m, const char *key, struct hd_notice_ask *ask)
{
	snprintf(ask->lines, sizeof ask->lines, "Metadata-Flavor: Google\r\n");
	if (!*m->etag) {
		snprintf(ask->target, sizeof ask->target, "/computeMetadata/v1/instance/%s", key);
		return;
	}
	snprintf(ask->target, sizeof ask->target,
		"/computeMetadata/v1/instance/%s?wait_for_change=true&timeout_sec=%d&last_etag=%s", key,
		WAIT_S,
		m->etag);
	ask->timeout_ns = (WAIT_S + 10) * HD_NOTICE_S;
}

/* It becomes a part of our targets: letters, digits and signs that need no escape. */
static void take_etag(struct hd_notice_memory *m, struct hd_http_span etag)
{
	static const char signs[] = "-._~";

	m->etag[0] = '\0';
	if (!etag.at || !etag.len || etag.len >= sizeof m->etag)
		return;
	for (size_t i = 0; i < etag.len; i++) {
		char c = etag.at[i];
		if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || strchr(signs, c)))
			return;
	}
	memcpy(m->etag, etag.at, etag.len);
	m->etag[etag.len] = '\0';
}

struct hd_http_span hd_gce_value(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_diag *diag)
{
	struct hd_http_span value = { a->body, a->len };

	if (a->status != 200) {
		m->etag[0] = '\0';
		(void)hd_notice_strange(a, diag);
		return (struct hd_http_span){ NULL, 0 };
	}
	if (!a->head || !hd_http_is(hd_http_find(a->head, "Metadata-Flavor"), "Google")) {
		(void)!hd_fail(diag, HD_E_PROTOCOL,
			"the answer does not name its flavor: something else answers in its place");
		return (struct hd_http_span){ NULL, 0 };
	}
	take_etag(m, hd_http_find(a->head, "ETag"));
	while (value.len && strchr(" \r\n\t", value.at[value.len - 1]))
		value.len--;
	return value;
}
