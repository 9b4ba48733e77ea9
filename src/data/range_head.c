#include "data/range_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

/* Digits from *at on; false: none, or more than fit. */
static bool number(const char **at, const char *end, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (!hd_mul_u64(v, 10, &v) || !hd_add_u64(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (p == *at)
		return false;
	*at = p;
	*value = v;
	return true;
}

static bool is(const char **at, const char *end, const char *what)
{
	size_t len = strlen(what);

	if ((size_t)(end - *at) < len || strncasecmp(*at, what, len))
		return false;
	*at += len;
	return true;
}

static bool take_range(struct hd_range_head *h, const char *at, const char *end)
{
	uint64_t last;

	if (is(&at, end, "bytes */"))     /* of 416: how long it is, and nothing of it */
		return number(&at, end, &h->total) && at == end;
	if (!is(&at, end, "bytes ") || !number(&at, end, &h->first) || !is(&at, end, "-") ||
		!number(&at, end, &last) || !is(&at, end, "/") || !number(&at, end, &h->total) || at != end)
		return false;
	h->end = last + 1;
	h->has_range = true;
	return h->first <= last && last < h->total;
}

static bool take_length(struct hd_range_head *h, const char *at, const char *end)
{
	h->has_length = true;
	return number(&at, end, &h->length) && at == end;
}

static bool take_wait(struct hd_range_head *h, const char *at, const char *end)
{
	uint64_t s;

	h->has_wait = true;
	h->wait_s = number(&at, end, &s) && at == end && s < HD_HTTP_WAIT_S ? (uint32_t)s : HD_HTTP_WAIT_S;
	return true;
}

static bool copy(char *to, size_t cap, const char *at, const char *end)
{
	size_t len = (size_t)(end - at);

	if (len >= cap || memchr(at, '\0', len))
		return false;
	memcpy(to, at, len);
	to[len] = '\0';
	return true;
}

static bool take_etag(struct hd_range_head *h, const char *at, const char *end)
{
	return copy(h->etag, sizeof h->etag, at, end);
}

static bool take_place(struct hd_range_head *h, const char *at, const char *end)
{
	return copy(h->place, sizeof h->place, at, end);
}

static const struct { const char *name; bool (*take)(struct hd_range_head *, const char *, const char *); }
	lines[] = {
	{ "content-range:", take_range }, { "content-length:", take_length }, { "retry-after:", take_wait },
	{ "etag:", take_etag }, { "location:", take_place },
};
enum { NLINES = sizeof lines / sizeof *lines };

enum hd_err hd_range_head_parse(const char *head, size_t len, struct hd_range_head *out, struct hd_diag *diag)
{
	struct hd_range_head h = { 0 };
	bool seen[NLINES] = { 0 };
	const char *at = head, *end = head + len;
	uint64_t status;

	while (at < end && *at != ' ' && *at != '\n')
		at++;
	if (len < 9 || memcmp(head, "HTTP/", 5) || !is(&at, end, " ") || !number(&at, end, &status) ||
		status < 100 || status > 599)
		return hd_fail(diag, HD_E_PROTOCOL, "the answer is not HTTP: it begins with '%.*s'",
			(int)(len < 16 ? len : 16), head);
	h.status = (uint32_t)status;
	while ((at = memchr(at, '\n', (size_t)(end - at))) && ++at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		const char *last = stop > at && stop[-1] == '\r' ? stop - 1 : stop;
		for (size_t i = 0; i < NLINES; i++) {
			const char *value = at;
			if (seen[i] || !is(&value, last, lines[i].name))
				continue;
			seen[i] = true;
			while (value < last && (*value == ' ' || *value == '\t'))
				value++;
			while (last > value && (last[-1] == ' ' || last[-1] == '\t'))
				last--;
			if (!lines[i].take(&h, value, last))
				return hd_fail(diag, HD_E_PROTOCOL, "the answer's line '%.*s' makes no sense",
					(int)(last - at < 80 ? last - at : 80), at);
		}
		at = stop;
		if (at == end)
			break;
	}
	*out = h;
	return HD_OK;
}

/* ---- URLs ---- */

static const struct { const char *begin; enum hd_url_scheme scheme; } schemes[] = {
	{ "http://", HD_URL_HTTP }, { "https://", HD_URL_HTTPS }, { "s3://", HD_URL_S3 },
};

static bool is_loopback(const char *host)
{
	return !strcmp(host, "localhost") || !strcmp(host, "::1") ||
		(!strncmp(host, "127.", 4) && !host[strspn(host, "0123456789.")]);
}

static bool take_host(struct hd_url *url, const char *text, const char *at)
{
	size_t len = strcspn(at, "/?#"), n = len;
	const char *host = at;

	if (memchr(at, '@', len) || (size_t)(at - text) + len >= sizeof url->origin)
		return false;
	memcpy(url->origin, text, (size_t)(at - text) + len);
	url->origin[(size_t)(at - text) + len] = '\0';
	if (*at == '[') {
		host++;
		n = strcspn(host, "]");
		if (n + 1 >= len || host[n] != ']')
			return false;
	} else {
		n = strcspn(at, ":/?#");
	}
	if (!n || n >= sizeof url->host)
		return false;
	memcpy(url->host, host, n);
	url->host[n] = '\0';
	url->loopback = url->scheme != HD_URL_S3 && is_loopback(url->host);
	return true;
}

enum hd_err hd_url_parse(const char *text, struct hd_url *url, struct hd_diag *diag)
{
	*url = (struct hd_url){ .scheme = HD_URL_NONE };
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		size_t len = strlen(schemes[i].begin);
		if (strncasecmp(text, schemes[i].begin, len))
			continue;
		url->scheme = schemes[i].scheme;
		for (const char *p = text; *p; p++)
			if ((unsigned char)*p <= ' ' || *p == 0x7f)
				return hd_fail(diag, HD_E_INVAL, "%.200s: no spaces and control characters "
					"stand in a URL: write them as %%20", text);
		if (!take_host(url, text, text + len))
			return hd_fail(diag, HD_E_INVAL, "%.200s is no URL that is read from: it needs a "
				"host, and names no user", text);
		if (url->scheme == HD_URL_S3 && strlen(text) <= strlen(url->origin) + 1)
			return hd_fail(diag, HD_E_INVAL, "%.200s names no object: write s3://bucket/key",
				text);
		return HD_OK;
	}
	return HD_OK;
}

bool hd_url_follow(const char *from, const char *place, char *to, size_t cap)
{
	struct hd_url url;

	if (hd_url_parse(place, &url, NULL))
		return false;
	if (url.scheme == HD_URL_HTTP || url.scheme == HD_URL_HTTPS)
		return (size_t)snprintf(to, cap, "%s", place) < cap;
	if (place[0] != '/' || place[1] == '/' || place[strcspn(place, " \t\r\n")] ||
		hd_url_parse(from, &url, NULL))
		return false;
	return (size_t)snprintf(to, cap, "%s%s", url.origin, place) < cap;
}
