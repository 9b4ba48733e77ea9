#include "timeline/write_int.h"

#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";          /* U+FFFD */

struct hd_tl_out *hd_tl_out_new(const struct hd_tl_sink *sink, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tl_out *out = hd_arena_take(arena, 1, sizeof *out);

	if (!out) {
		(void)!hd_fail(diag, HD_E_NOMEM, "no memory for %d bytes of output", HD_TL_PIECE);
		return NULL;
	}
	out->sink = sink;
	out->diag = diag;
	return out;
}

static void give(struct hd_tl_out *out, const void *bytes, size_t len)
{
	if (!out->err && len)
		out->err = out->sink->put(out->sink->self, bytes, len, out->diag);
}

void hd_tl_out_put(struct hd_tl_out *out, const void *bytes, size_t len)
{
	for (const uint8_t *from = bytes; len && !out->err;) {
		size_t n = sizeof out->at - out->len < len ? sizeof out->at - out->len : len;

		memcpy(out->at + out->len, from, n);
		out->len += n;
		from += n;
		len -= n;
		if (out->len < sizeof out->at)
			return;
		give(out, out->at, out->len);
		out->len = 0;
	}
}

enum hd_err hd_tl_out_end(struct hd_tl_out *out)
{
	give(out, out->at, out->len);
	out->len = 0;
	return out->err;
}

void hd_tl_name_fit(const char *text, char fit[HD_TL_NAME_MAX + 1])
{
	size_t left = strlen(text), len = 0;

	while (left) {
		size_t n = hd_utf8_len(text, left), took = n ? n : 1;
		const char *from = n ? text : replacement;

		n = n ? n : sizeof replacement - 1;
		if (len + n > HD_TL_NAME_MAX)
			break;
		memcpy(fit + len, from, n);
		len += n;
		text += took;
		left -= took;
	}
	fit[len] = 0;
}
