#include "token/read.h"

#include <string.h>

#include "token/unicode.h"

enum { PATH = 160 };

enum hd_err hd_token_kind(const struct hd_json *json, const struct hd_token_kind *first, size_t size,
	size_t n,
	size_t *row, struct hd_diag *diag)
{
	char path[PATH];
	const char *type;
	enum hd_err err = hd_json_get_text(json, "type", &type, diag);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		const struct hd_token_kind *kind = (const void *)((const char *)first + i * size);
		if (strcmp(kind->name, type))
			continue;
		*row = i;
		return hd_json_only(json, kind->keys, diag);
	}
	return hd_fail(diag, HD_E_INPUT, "%s: the type \"%.60s\" is not supported (src/token/README.md "
		"lists what "
		"is)", hd_json_path(json, path, sizeof path), type);
}

enum hd_err hd_token_sequence(const struct hd_json *json, const char *list,
	enum hd_err (*one)(void *user, const struct hd_json *json, struct hd_arena *arena,
		struct hd_diag *diag), void *user, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *parts;
	const char *type;
	enum hd_err err;

	if (hd_token_is_null(json))
		return HD_OK;
	if ((err = hd_json_get_text(json, "type", &type, diag)))
		return err;
	if (strcmp(type, "Sequence"))
		return one(user, json, arena, diag);
	const char *const keys[] = { "type", list, NULL };
	if ((err = hd_json_only(json, keys, diag)) || (err = hd_json_get(json, list, HD_JSON_ARRAY, &parts,
		diag)))
		return err;
	for (size_t i = 0, n = hd_json_count(parts); i < n && !err; i++)
		err = hd_token_sequence(hd_json_item(parts, i), list, one, user, arena, diag);
	return err;
}

enum hd_err hd_token_text(const struct hd_json *object, const char *key, struct hd_arena *arena,
	const char **text, size_t *len, struct hd_diag *diag)
{
	const char *is;
	enum hd_err err = hd_json_get_text(object, key, &is, diag);

	if (err)
		return err;
	*len = strlen(is);
	*text = hd_arena_text(arena, is, *len);
	return *text ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a text of a tokenizer");
}

enum hd_err hd_token_bool(const struct hd_json *object, const char *key, bool *out, struct hd_diag *diag)
{
	const struct hd_json *is = hd_json_find(object, key);

	return hd_token_is_null(is) ? HD_OK : hd_json_as_bool(is, out, diag);
}

enum hd_err hd_token_char(const struct hd_json *object, const char *key, uint32_t *c, struct hd_diag *diag)
{
	char path[PATH];
	const char *text;
	enum hd_err err = hd_json_get_text(object, key, &text, diag);

	if (err)
		return err;
	size_t len = strlen(text);
	if (!len || hd_char_get((const uint8_t *)text, c) != len)
		return hd_fail(diag, HD_E_INPUT, "%s: \"%s\" is not one character", hd_json_path(object, path,
			sizeof path), key);
	return HD_OK;
}
