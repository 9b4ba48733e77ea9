/* byte_chars.h -- GPT-2's letters for bytes: printable ones are themselves, the others U+0100 and on. */
#ifndef HD_TOKEN_BYTE_CHARS_H
#define HD_TOKEN_BYTE_CHARS_H

#include <stdint.h>

/* 0x21-0x7e, 0xa1-0xac and 0xae-0xff are themselves; 0-0x20, 0x7f-0xa0 and 0xad follow from U+0100. */
static inline uint32_t hd_byte_char(uint8_t b)
{
	return b <= 0x20 ? 0x100u + b : b < 0x7f ? b : b <= 0xa0 ? 0x121u + (b - 0x7fu) : b == 0xad ? 0x143u :
		b;
}

/* The byte of a letter; 256: of none. */
static inline unsigned hd_char_byte(uint32_t c)
{
	if (c < 0x100)
		return hd_byte_char((uint8_t)c) == c ? c : 256;
	return c <= 0x120 ? c - 0x100 : c <= 0x142 ? c - 0x121 + 0x7f : c == 0x143 ? 0xad : 256;
}

#endif
