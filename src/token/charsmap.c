#include "token/charsmap.h"

#include <string.h>

#include "base/base64.h"
#include "base/le.h"
#include "base/utf8.h"

enum hd_err hd_charsmap_read(struct hd_charsmap *map, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char path[120];
	const char *text;
	size_t len;
	enum hd_err err = hd_json_as_text(json, &text, diag);

	if (err)
		return err;
	hd_json_path(json, path, sizeof path);
	size_t cap = strlen(text);
	uint8_t *bytes = hd_arena_take(arena, cap + 1, 1);
	if (!bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a map of characters");
	if (!hd_base64_read((struct hd_http_span){ text, cap }, bytes, cap + 1, &len))
		return hd_fail(diag, HD_E_INPUT, "%s is not base64", path);
	uint32_t size = len >= 4 ? hd_get32(bytes) : 0;
	if (len < 4 || size % 4 || size == 0 || size > len - 4)
		return hd_fail(diag, HD_E_INPUT, "%s is no map of characters: %zu bytes, with %u of units",
			path, len,
			size);
	*map = (struct hd_charsmap){ .units = bytes + 4, .nunits = size / 4, .strings = bytes + 4 + size,
		.strings_len = len - 4 - size };
	for (size_t i = 0, n; i < map->strings_len; i += n)
		if (!(n = hd_utf8_len((const char *)map->strings + i, map->strings_len - i)))
			return hd_fail(diag, HD_E_INPUT, "%s: byte %zu of its strings is no UTF-8", path, i);
	return HD_OK;
}

static uint32_t unit(const struct hd_charsmap *map, uint32_t i)
{
	/* no label has it */
	return i < map->nunits ? hd_get32(map->units + 4 * (size_t)i) : 0x80000000u;
}

static uint32_t offset(uint32_t unit)
{
	return unit >> 10 << ((unit & 1u << 9) >> 6);
}

const uint8_t *hd_charsmap_find(const struct hd_charsmap *map, const uint8_t *at, size_t len,
	size_t *found_len)
{
	uint32_t node = offset(unit(map, 0));

	for (size_t i = 0; i < len && at[i]; i++) {
		node ^= at[i];
		uint32_t u = unit(map, node);
		if ((u & (1u << 31 | 0xff)) != at[i])
			return NULL;
		node ^= offset(u);
		if (!(u >> 8 & 1))
			continue;
		size_t from = unit(map, node) & 0x7fffffff;
		if (from > map->strings_len || (from < map->strings_len && (map->strings[from] & 0xc0) ==
			0x80))
			return NULL;                      /* a damaged map: no string begins there */
		const uint8_t *end = memchr(map->strings + from, 0, map->strings_len - from);
		*found_len = end ? (size_t)(end - map->strings) - from : map->strings_len - from;
		return map->strings + from;
	}
	return NULL;
}
