/* shared_file.h -- reference material in $HEDDLE_SHARED, which a user's clone has not: NULL then, and the test skips. */
#ifndef HD_TESTS_SHARED_FILE_H
#define HD_TESTS_SHARED_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "tests/check.h"

/* The bytes of $HEDDLE_SHARED/`path`, in the arena, a zero behind them. */
static inline uint8_t *shared_bytes(const char *path, struct hd_arena *arena, size_t *len)
{
	const char *root = getenv("HEDDLE_SHARED");
	char full[600];
	uint8_t *bytes;
	FILE *file;
	long end = 0;

	snprintf(full, sizeof full, "%s/%s", root ? root : "", path);
	*len = 0;
	if (!root || !(file = fopen(full, "rb")))
		return NULL;
	CHECK(!fseek(file, 0, SEEK_END) && (end = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET), "%s", full);
	*len = (size_t)end;
	CHECK((bytes = hd_arena_take(arena, *len + 1, 1)), "%s: no memory", full);
	CHECK(fread(bytes, 1, *len, file) == *len && !fclose(file), "%s", full);
	bytes[*len] = 0;
	return bytes;
}

static inline const struct hd_json *shared_json(const char *path, struct hd_arena *arena)
{
	const struct hd_json *json = NULL;
	struct hd_diag diag = { "" };
	size_t len = 0;
	const uint8_t *bytes = shared_bytes(path, arena, &len);

	CHECK(!bytes || !hd_json_parse(arena, path, (const char *)bytes, len, &json, &diag), "%s", diag.text);
	return json;
}

#endif
