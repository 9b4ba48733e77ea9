#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launch/launcher_ops.h"

const struct hd_launcher_ops *const hd_launchers[] = {
#define X(id) &hd_launcher_of_##id,
#include "launch/list.h"
#undef X
	NULL,
};

const struct hd_launcher_ops *hd_launcher_find(const char *name)
{
	for (size_t i = 0; hd_launchers[i]; i++)
		if (!strcmp(hd_launchers[i]->name, name))
			return hd_launchers[i];
	return NULL;
}

/* Inside '...' a shell changes nothing; a quote itself stands outside of it. */
void hd_launcher_quote(struct hd_text *text, const char *word)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,@%+-";

	if (*word && !word[strspn(word, plain)]) {
		hd_text_add(text, word);
		return;
	}
	hd_text_add(text, "'");
	for (const char *quote; (quote = strchr(word, '\'')); word = quote + 1) {
		hd_text_put(text, word, (size_t)(quote - word));
		hd_text_add(text, "'\\''");
	}
	hd_text_add(text, word);
	hd_text_add(text, "'");
}

void hd_launcher_quote_all(struct hd_text *text, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			hd_text_add(text, " ");
		hd_launcher_quote(text, argv[i]);
	}
}

bool hd_launcher_is_failure(int code)
{
	return code && code != hd_err_exit(HD_E_PREEMPTED) && code != hd_err_exit(HD_E_INTERRUPT);
}

void hd_launcher_say(const struct hd_launcher *launcher, const char *kind, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (launcher->said)
		launcher->said(launcher->user, kind, text);
}
