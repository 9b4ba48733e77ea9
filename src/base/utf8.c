#include "base/utf8.h"

#include <stdint.h>

size_t hd_utf8_len(const char *at, size_t len)
{
	static const struct { uint8_t from, to, n, second_from, second_to; } forms[] = {
		{ 0x00, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
		{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
	};
	const uint8_t *c = (const uint8_t *)at;

	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (c[0] < forms[i].from || c[0] > forms[i].to)
			continue;
		if (forms[i].n > len || (forms[i].n > 1 && (c[1] < forms[i].second_from ||
			c[1] > forms[i].second_to)))
			return 0;
		for (size_t k = 2; k < forms[i].n; k++)
			if ((c[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].n;
	}
	return 0;
}
