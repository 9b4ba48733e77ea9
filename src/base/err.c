#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

enum hd_err hd_fail(struct hd_diag *diag, enum hd_err err, const char *fmt, ...)
{
	va_list args;

	if (!diag || diag->text[0])
		return err;
	va_start(args, fmt);
	int len = vsnprintf(diag->text, sizeof diag->text, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof diag->text)
		memcpy(diag->text + sizeof diag->text - 4, "...", 4);
	return err;
}
