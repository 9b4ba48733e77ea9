#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *hd_err_text(enum hd_err err)
{
	switch (err) {
#define X(id, code, exit, text) case HD_##id: return text;
	HD_ERRS(X)
#undef X
	}
	return "unknown error";
}

int hd_err_exit(enum hd_err err)
{
	switch (err) {
#define X(id, code, exit, text) case HD_##id: return exit;
	HD_ERRS(X)
#undef X
	}
	return 1;
}

/* Bytes of the character at `at` that may be shown as it is; 0: none. C1 controls are U+0080 to U+009F. */
static size_t plain_len(const char *at, size_t len)
{
	const unsigned char *c = (const unsigned char *)at;
	size_t n = hd_utf8_len(at, len);

	return (c[0] < ' ' && c[0] != '\n') || c[0] == 0x7f ||
		(n == 2 && c[0] == 0xc2 && c[1] < 0xa0) ? 0 : n;
}

/* false: not all of it fits. */
static bool copy_plain(char *to, size_t cap, const char *from)
{
	size_t len = strlen(from), at = 0;

	for (size_t i = 0; i < len;) {
		size_t n = plain_len(from + i, len - i), takes = n ? n : sizeof "\\xNN" - 1;
		if (at + takes >= cap) {
			to[at] = 0;
			return false;
		}
		if (n)
			memcpy(to + at, from + i, n);
		else
			snprintf(to + at, cap - at, "\\x%02x", (unsigned char)from[i]);
		at += takes;
		i += n ? n : 1;
	}
	to[at] = 0;
	return true;
}

enum hd_err hd_err_of_exit(int exit)
{
	static const enum hd_err job[] = { HD_OK, HD_E_INVAL, HD_E_DIVERGED, HD_E_INPUT, HD_E_INTEGRITY,
		HD_E_WORKERS, HD_E_REFUSED, HD_E_PREEMPTED,
		HD_E_INTERRUPT };

	for (size_t i = 0; i < sizeof job / sizeof *job; i++)
		if (hd_err_exit(job[i]) == exit)
			return job[i];
	return HD_E_BUG;
}

enum hd_err hd_fail(struct hd_diag *diag, enum hd_err err, const char *fmt, ...)
{
	va_list args;

	char raw[sizeof diag->text];

	if (!diag || diag->text[0])
		return err;
	va_start(args, fmt);
	int len = vsnprintf(raw, sizeof raw, fmt, args);
	va_end(args);
	if (len < 0)
		raw[0] = 0;
	if (len < 0 || (size_t)len >= sizeof raw || !copy_plain(diag->text, sizeof diag->text, raw)) {
		(void)copy_plain(diag->text, sizeof diag->text - 3, raw);
		memcpy(diag->text + strlen(diag->text), "...", 4);
	}
	return err;
}
