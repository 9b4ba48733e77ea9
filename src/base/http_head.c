#include "base/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"

bool hd_http_is(struct hd_http_span span, const char *text)
{
	return span.at && span.len == strlen(text) && !strncasecmp(span.at, text, span.len);
}

struct hd_http_span hd_http_find(const struct hd_http_head *head, const char *name)
{
	for (uint32_t i = 0; i < head->nlines; i++)
		if (hd_http_is(head->line[i].name, name))
			return head->line[i].value;
	return (struct hd_http_span){ NULL, 0 };
}

static struct hd_http_span trimmed(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct hd_http_span){ at, (size_t)(end - at) };
}

/* Letters, digits and the signs that a token may have. */
static bool is_token(struct hd_http_span s)
{
	static const char signs[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && (!c || !strchr(signs, c)))
			return false;
	}
	return s.len > 0;
}

static bool is_text(struct hd_http_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.at[i] < ' ' && s.at[i] != '\t') || s.at[i] == 0x7f)
			return false;
	return true;
}

static bool is_version(struct hd_http_span s) { return s.len == 8 && (!memcmp(s.at, "HTTP/1.1", 8) ||
	!memcmp(s.at, "HTTP/1.0", 8)); }

static bool read_number(struct hd_http_span s, uint64_t max, uint64_t *n)
{
	char digits[24];

	if (!s.len || s.len >= sizeof digits)
		return false;
	memcpy(digits, s.at, s.len);
	digits[s.len] = '\0';
	return hd_num_u64(digits, max, n, NULL) == HD_OK && digits[0] >= '0' && digits[s.len - 1] <= '9';
}

/* "GET /x HTTP/1.1", "HTTP/1.1 200 OK" */
static bool read_first(enum hd_http_what what, const char *at, const char *end, struct hd_http_head *head)
{
	const char *one = memchr(at, ' ', (size_t)(end - at));
	const char *two = one ? memchr(one + 1, ' ', (size_t)(end - one - 1)) : NULL;
	uint64_t status = 0;

	if (!one || !is_text((struct hd_http_span){ at, (size_t)(end - at) }))
		return false;
	struct hd_http_span first = { at, (size_t)(one - at) };
	struct hd_http_span second = { one + 1, (size_t)((two ? two : end) - one - 1) };
	if (what == HD_HTTP_A_REQUEST) {
		head->method = first;
		head->target = second;
		return two && is_token(first) && second.len && second.at[0] == '/' &&
			is_version((struct hd_http_span){ two + 1, (size_t)(end - two - 1) });
	}
	if (!is_version(first) || second.len != 3 || !read_number(second, 599, &status) || status < 100)
		return false;
	head->status = (int)status;
	return true;
}

static bool read_line(const char *at, const char *end, struct hd_http_head *head)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));

	if (!colon || head->nlines == HD_HTTP_HEAD_LINES)
		return false;
	struct hd_http_line *line = &head->line[head->nlines++];
	line->name = (struct hd_http_span){ at, (size_t)(colon - at) };
	line->value = trimmed(colon + 1, end);
	if (!is_token(line->name) || !is_text(line->value))
		return false;
	if (hd_http_is(line->name, "Content-Length")) {
		if (head->has_length || !read_number(line->value, INT64_MAX, &head->length_bytes))
			return false;
		head->has_length = true;
	}
	if (hd_http_is(line->name, "Transfer-Encoding")) {
		if (head->chunked || !hd_http_is(line->value, "chunked"))
			return false;
		head->chunked = true;
	}
	return true;
}

enum hd_err hd_http_read_head(enum hd_http_what what, const char *bytes, size_t len,
	struct hd_http_head *head)
{
	const char *at = bytes, *most = bytes + (len < HD_HTTP_HEAD_BYTES ? len : HD_HTTP_HEAD_BYTES);
	bool first = true;

	*head = (struct hd_http_head){ .status = 0 };
	for (;;) {
		const char *end = at < most ? memchr(at, '\n', (size_t)(most - at)) : NULL;
		if (!end)
			return len < HD_HTTP_HEAD_BYTES ? HD_E_AGAIN : HD_E_PROTOCOL;
		const char *stop = end > at && end[-1] == '\r' ? end - 1 : end;
		if (stop == at && !first) {
			head->len_bytes = (size_t)(end + 1 - bytes);
			return head->has_length && head->chunked ? HD_E_PROTOCOL : HD_OK;
		}
		if (first ? !read_first(what, at, stop, head) : !read_line(at, stop, head))
			return HD_E_PROTOCOL;
		first = false;
		at = end + 1;
	}
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A chunk: its size in hex, perhaps an extension, a line end, that many bytes, a line end. One of size 0 ends
 * them; trailers are passed over. */
static enum hd_err read_chunks(const char *bytes, size_t len, char *body, size_t cap, size_t *body_len)
{
	size_t at = 0, n = 0;

	for (;;) {
		const char *end = at < len ? memchr(bytes + at, '\n', len - at) : NULL;
		size_t size = 0, i = at;
		if (!end)
			return HD_E_AGAIN;
		for (; hex(bytes[i]) >= 0; i++) {
			if (i - at >= 8)
				return HD_E_PROTOCOL;
			size = size << 4 | (size_t)hex(bytes[i]);
		}
		if (i == at || (bytes[i] != '\r' && bytes[i] != '\n' && bytes[i] != ';'))
			return HD_E_PROTOCOL;
		at = (size_t)(end + 1 - bytes);
		if (!size)
			break;
		if (size >= cap - n)
			return HD_E_NOSPACE;
		if (len - at < size + 2)
			return HD_E_AGAIN;
		if (memcmp(bytes + at + size, "\r\n", 2) != 0)
			return HD_E_PROTOCOL;
		memcpy(body + n, bytes + at, size);
		n += size;
		at += size + 2;
	}
	for (;;) {                        /* trailers, up to an empty line */
		const char *end = at < len ? memchr(bytes + at, '\n', len - at) : NULL;
		if (!end)
			return HD_E_AGAIN;
		bool empty = end == bytes + at || (end == bytes + at + 1 && bytes[at] == '\r');
		at = (size_t)(end + 1 - bytes);
		if (empty)
			break;
	}
	body[n] = '\0';
	*body_len = n;
	return HD_OK;
}

enum hd_err hd_http_read_body(const struct hd_http_head *head, const char *bytes, size_t len, bool ended,
	char *body, size_t cap, size_t *body_len)
{
	size_t n = len;

	if (head->chunked) {
		enum hd_err err = read_chunks(bytes, len, body, cap, body_len);
		return err == HD_E_AGAIN && ended ? HD_E_PROTOCOL : err;
	}
	if (head->has_length) {
		if (head->length_bytes >= cap)
			return HD_E_NOSPACE;
		n = (size_t)head->length_bytes;
		if (len < n)
			return ended ? HD_E_PROTOCOL : HD_E_AGAIN;
	} else if (!head->status || head->status == 204 || head->status == 304) {
		n = 0;
	} else if (!ended) {
		return len >= cap ? HD_E_NOSPACE : HD_E_AGAIN;
	}
	if (n >= cap)
		return HD_E_NOSPACE;
	if (n)
		memcpy(body, bytes, n);
	body[n] = '\0';
	*body_len = n;
	return HD_OK;
}
