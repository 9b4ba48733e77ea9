#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/utf8.h"
#include "timeline/build_int.h"
#include "timeline/lives_int.h"

enum { PLACES = 256 };

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the names of a timeline");
}

/* Where the text stands, or would. */
static uint32_t place_of(const struct tl_names *names, const char *text, size_t len)
{
	uint32_t at = (uint32_t)hd_hash64(text, len) & (names->nplaces - 1);

	while (names->place[at] && (strncmp(names->text[names->place[at] - 1], text, len) != 0 ||
		names->text[names->place[at] - 1][len]))
		at = (at + 1) & (names->nplaces - 1);
	return at;
}

static enum hd_err widen(struct hd_arena *arena, struct tl_names *names, struct hd_diag *diag)
{
	uint32_t nplaces = names->nplaces ? 2 * names->nplaces : PLACES;
	uint32_t *place = hd_arena_take(arena, nplaces, sizeof *place);

	if (!place)
		return no_memory(diag);
	names->place = place;
	names->nplaces = nplaces;
	for (uint32_t n = 0; n < names->n; n++)
		place[place_of(names, names->text[n], strlen(names->text[n]))] = n + 1;
	return HD_OK;
}

static bool is_utf8(const char *text, size_t len)
{
	for (size_t at = 0, n; at < len; at += n)
		if (!(n = hd_utf8_len(text + at, len - at)))
			return false;
	return true;
}

static enum hd_err mend(struct hd_arena *arena, const char **text, size_t *len, struct hd_diag *diag)
{
	struct hd_text out;

	hd_text_init(&out, arena);
	for (size_t at = 0, n; at < *len; at += n ? n : 1) {
		n = hd_utf8_len(*text + at, *len - at);
		hd_text_put(&out, n ? *text + at : "\xef\xbf\xbd", n ? n : 3);
	}
	*text = out.at;
	*len = out.len;
	return out.full ? no_memory(diag) : HD_OK;
}

enum hd_err hd_tl_name_of(struct hd_arena *arena, struct tl_names *names, const char *text, size_t len,
	uint32_t *name, struct hd_diag *diag)
{
	enum hd_err err = is_utf8(text, len) ? HD_OK : mend(arena, &text, &len, diag);

	if (!err && 2ull * names->n >= names->nplaces)
		err = widen(arena, names, diag);
	if (err)
		return err;
	uint32_t at = place_of(names, text, len);
	if (!names->place[at]) {
		char *copy = hd_arena_text(arena, text, len);
		if (!copy)
			return no_memory(diag);
		err = hd_tl_grow(arena, &names->text, &names->cap, names->n + 1ull, sizeof *names->text,
			diag);
		if (err)
			return err;
		names->text[names->n++] = copy;
		names->place[at] = names->n;
	}
	*name = names->place[at] - 1;
	return HD_OK;
}
