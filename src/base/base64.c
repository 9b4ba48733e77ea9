#include "base/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_three(const uint8_t *at, size_t n, char four[4])
{
	uint32_t word = (uint32_t)at[0] << 16 | (n > 1 ? (uint32_t)at[1] << 8 : 0) | (n > 2 ? at[2] : 0u);

	four[0] = letters[word >> 18];
	four[1] = letters[word >> 12 & 63];
	four[2] = n > 1 ? letters[word >> 6 & 63] : '=';
	four[3] = n > 2 ? letters[word & 63] : '=';
}

void hd_base64_write(const void *bytes, size_t len, struct hd_text *text)
{
	enum { ROOM = 4096 };
	const uint8_t *at = bytes;
	char room[ROOM];
	size_t used = 0;

	for (size_t i = 0; i < len; i += 3) {
		put_three(at + i, len - i < 3 ? len - i : 3, room + used);
		used += 4;
		if (used == ROOM) {
			hd_text_put(text, room, used);
			used = 0;
		}
	}
	hd_text_put(text, room, used);
}

static int value_of(char c)
{
	const char *at = c ? strchr(letters, c) : NULL;

	return at ? (int)(at - letters) : -1;
}

bool hd_base64_read(struct hd_http_span s, uint8_t *out, size_t cap, size_t *len)
{
	size_t n = 0;

	if (s.len % 4)
		return false;
	for (size_t i = 0; i < s.len; i += 4) {
		bool last = i + 4 == s.len;
		size_t pad = last && s.at[i + 3] == '=' ? s.at[i + 2] == '=' ? 2 : 1 : 0;
		uint32_t word = 0;
		for (size_t k = 0; k < 4; k++) {
			int v = k >= 4 - pad ? 0 : value_of(s.at[i + k]);
			if (v < 0)
				return false;
			word = word << 6 | (uint32_t)v;
		}
		if (cap - n < 3 - pad || (pad && (word & (pad == 2 ? 0xffffu : 0xffu))))
			return false;
		for (size_t k = 0; k < 3 - pad; k++)
			out[n++] = (uint8_t)(word >> (16 - 8 * k));
	}
	*len = n;
	return true;
}
