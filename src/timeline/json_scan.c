#include "timeline/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DECIMAL_MAX (INT64_C(1) << 61)

static bool fail(struct json_scan *s, const char *why)
{
	if (s->at >= s->end)
		s->cut = true;
	else if (!s->why)
		s->why = why;
	return false;
}

char hd_tl_scan_peek(struct json_scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
	return s->at < s->end ? *s->at : 0;
}

bool hd_tl_scan_take(struct json_scan *s, char c)
{
	if (hd_tl_scan_peek(s) != c || s->at >= s->end)
		return false;
	s->at++;
	return true;
}

static bool hex4(struct json_scan *s, uint32_t *out)
{
	uint32_t v = 0;

	if (s->end - s->at < 4) {
		s->at = s->end;
		return fail(s, "");
	}
	for (int i = 0; i < 4; i++, s->at++) {
		char c = *s->at;
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (digit < 0)
			return fail(s, "a \\u without four hexadecimal digits");
		v = v << 4 | (uint32_t)digit;
	}
	*out = v;
	return true;
}

static void put_code(struct hd_text *text, uint32_t c)
{
	char b[4];
	size_t n;

	if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x80) {
		b[0] = (char)c;
		n = 1;
	} else if (c < 0x800) {
		b[0] = (char)(0xc0 | c >> 6);
		b[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else if (c < 0x10000) {
		b[0] = (char)(0xe0 | c >> 12);
		b[1] = (char)(0x80 | (c >> 6 & 0x3f));
		b[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	} else {
		b[0] = (char)(0xf0 | c >> 18);
		b[1] = (char)(0x80 | (c >> 12 & 0x3f));
		b[2] = (char)(0x80 | (c >> 6 & 0x3f));
		b[3] = (char)(0x80 | (c & 0x3f));
		n = 4;
	}
	hd_text_put(text, b, n);
}

/* After the backslash. */
static bool escape(struct json_scan *s, struct hd_text *text)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = s->at < s->end && *s->at ? strchr(from, *s->at) : NULL;
	uint32_t code = 0xfffd, low;

	if (s->at >= s->end)
		return fail(s, "");
	char c = *s->at++;
	if (at) {
		if (text)
			hd_text_put(text, &to[at - from], 1);
		return true;
	}
	if (c == 'u' && !hex4(s, &code))
		return false;
	if (code >= 0xd800 && code < 0xdc00 && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u') {
		s->at += 2;
		if (!hex4(s, &low))
			return false;
		code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) :
			0xfffd;
	}
	if (text)
		put_code(text, code);
	return true;
}

bool hd_tl_scan_string(struct json_scan *s, struct hd_text *text)
{
	if (!hd_tl_scan_take(s, '"'))
		return fail(s, "a string was expected");
	for (;;) {
		const char *plain = s->at;
		while (s->at < s->end && *s->at != '"' && *s->at != '\\' && *s->at)
			s->at++;
		if (text)
			hd_text_put(text, plain, (size_t)(s->at - plain));
		if (s->at >= s->end)
			return fail(s, "");
		char c = *s->at++;
		if (c == '"')
			return true;
		if (!c && text)
			put_code(text, 0);
		if (c == '\\' && !escape(s, text))
			return false;
	}
}

bool hd_tl_scan_number(struct json_scan *s, const char **text, size_t *len)
{
	char first = hd_tl_scan_peek(s);
	const char *begin = s->at;

	if (first != '-' && (first < '0' || first > '9'))
		return fail(s, "a number was expected");
	while (s->at < s->end && *s->at && strchr("+-.eE0123456789", *s->at))
		s->at++;
	*text = begin;
	*len = (size_t)(s->at - begin);
	return s->at < s->end || fail(s, "");             /* at the end more digits may be missing */
}

static bool word(struct json_scan *s, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(s->end - s->at) < len) {
		s->at = s->end;
		return fail(s, "");
	}
	if (memcmp(s->at, text, len) != 0)
		return fail(s, "no value begins so");
	s->at += len;
	return true;
}

static bool scalar(struct json_scan *s)
{
	const char *text;
	size_t len;

	switch (hd_tl_scan_peek(s)) {
	case '"': return hd_tl_scan_string(s, NULL);
	case 't': return word(s, "true");
	case 'f': return word(s, "false");
	case 'n': return word(s, "null");
	case 'N': return word(s, "NaN");
	case 'I': return word(s, "Infinity");
	case '-': if (s->end - s->at > 1 && s->at[1] == 'I')
			return word(s, "-Infinity");
	/* fall through */
	default: return hd_tl_scan_number(s, &text, &len);
	}
}

bool hd_tl_scan_member(struct json_scan *s, struct hd_text *key, bool *first)
{
	if (!*first && !hd_tl_scan_take(s, ',') && hd_tl_scan_peek(s) != '}')
		return fail(s, "a comma or a closing brace was expected");
	*first = false;
	if (hd_tl_scan_take(s, '}'))
		return false;
	if (key) {
		key->len = 0;
		hd_text_put(key, "", 0);
	}
	if (!hd_tl_scan_string(s, key))
		return false;
	return hd_tl_scan_take(s, ':') || fail(s, "a colon was expected");
}

bool hd_tl_scan_item(struct json_scan *s, bool *first)
{
	if (!*first && !hd_tl_scan_take(s, ',') && hd_tl_scan_peek(s) != ']')
		return fail(s, "a comma or a closing bracket was expected");
	*first = false;
	if (hd_tl_scan_take(s, ']'))
		return false;
	return hd_tl_scan_peek(s) || fail(s, "");
}

bool hd_tl_scan_skip(struct json_scan *s)
{
	bool object[HD_TL_JSON_DEPTH], first = true;
	int depth = 0;

	do {
		if (depth && !(object[depth - 1] ? hd_tl_scan_member(s, NULL, &first) :
			hd_tl_scan_item(s, &first))) {
			if (hd_tl_scan_failed(s))
				return false;
			depth--;
			first = false;
			continue;
		}
		bool brace = hd_tl_scan_take(s, '{');
		if (brace || hd_tl_scan_take(s, '[')) {
			if (depth == HD_TL_JSON_DEPTH)
				return fail(s, "nested deeper than 64");
			object[depth++] = brace;
			first = true;
		} else if (!scalar(s))
			return false;
	} while (depth);
	return true;
}

bool hd_tl_scan_decimal(const char *text, size_t len, int digits, int64_t *out)
{
	bool minus = len && text[0] == '-', point = false, up = false;
	int64_t v = 0;
	char copy[64];

	if (memchr(text, 'e', len) || memchr(text, 'E', len)) {
		if (len >= sizeof copy)
			return false;
		memcpy(copy, text, len);
		copy[len] = 0;
		double scaled = strtod(copy, NULL) * pow(10, digits);
		if (!(fabs(scaled) < (double)DECIMAL_MAX))
			return false;
		*out = llround(scaled);
		return true;
	}
	for (size_t i = minus; i < len && digits >= 0; i++) {
		if (text[i] == '.' && !point)
			point = true;
		else if (text[i] < '0' || text[i] > '9')
			return false;
		else if (point && !digits) {
			up = text[i] >= '5';
			break;
		} else if (v > DECIMAL_MAX / 10 - 1)
			return false;
		else {
			v = v * 10 + (text[i] - '0');
			digits -= point;
		}
	}
	for (; digits > 0; digits--, v *= 10)
		if (v > DECIMAL_MAX / 10 - 1)
			return false;
	*out = minus ? -(v + up) : v + up;
	return len > minus;
}
