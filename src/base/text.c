#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

enum { FIRST_CAP = 256 };

void hd_text_init(struct hd_text *text, struct hd_arena *arena)
{
	/* cap 0 keeps the literal from being written: the first put takes memory */
	*text = (struct hd_text){ .at = (char *)"", .arena = arena };
}

void hd_text_fixed(struct hd_text *text, char *at, size_t cap)
{
	*text = (struct hd_text){ .at = cap ? at : (char *)"", .cap = cap };
	if (cap)
		at[0] = '\0';
}

/* Room for `more` bytes and the final 0, or as much of it as can be had. */
static size_t space(struct hd_text *text, size_t more)
{
	size_t need, left = text->cap ? text->cap - text->len - 1 : 0;

	if (more <= left || !text->arena || !hd_add_size(text->len, more, &need) ||
		!hd_add_size(need, 1, &need))
		return left;
	size_t cap = text->cap > SIZE_MAX / 2 ? need : text->cap * 2;
	cap = cap < FIRST_CAP ? FIRST_CAP : cap;
	cap = cap < need ? need : cap;
	char *at = hd_arena_take(text->arena, cap, 1);
	if (!at)
		return left;
	memcpy(at, text->at, text->len);
	text->at = at;
	text->cap = cap;
	return cap - text->len - 1;
}

void hd_text_put(struct hd_text *text, const char *bytes, size_t len)
{
	if (text->full || !len)
		return;
	size_t left = space(text, len);
	if (left < len) {
		text->full = true;
		len = left;
	}
	if (!len)
		return;
	memcpy(text->at + text->len, bytes, len);
	text->len += len;
	text->at[text->len] = '\0';
}

void hd_text_add(struct hd_text *text, const char *string) { hd_text_put(text, string, strlen(string)); }

/* Prints straight into what space there is; only a line that did not fit is printed
 * again. A fixed text keeps what vsnprintf cut. */
void hd_text_addf(struct hd_text *text, const char *fmt, ...)
{
	va_list args, again;

	if (text->full)
		return;
	size_t left = space(text, 1);
	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(left ? text->at + text->len : NULL, left ? left + 1 : 0, fmt, args);
	if (len > 0 && (size_t)len > left) {
		left = space(text, (size_t)len);
		if (left)
			vsnprintf(text->at + text->len, left + 1, fmt, again);
	}
	text->full = len < 0 || (size_t)len > left;
	text->len += len < 0 ? 0 : text->full ? left : (size_t)len;
	va_end(again);
	va_end(args);
}
