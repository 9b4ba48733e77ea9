/* shared_file.h -- published material that tests compare with: from $HEDDLE_SHARED, where all of it may lie,
 * else the extract in tests/data (some of it compressed). NULL: it is in neither, and the test skips. */
#ifndef HD_TESTS_SHARED_FILE_H
#define HD_TESTS_SHARED_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/pack.h"
#include "tests/check.h"

static inline uint8_t *shared_bytes_at(const char *path, struct hd_arena *arena, size_t *len)
{
	uint8_t *bytes;
	FILE *file;
	long end = 0;

	if (!(file = fopen(path, "rb")))
		return NULL;
	CHECK(!fseek(file, 0, SEEK_END) && (end = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET), "%s", path);
	*len = (size_t)end;
	CHECK((bytes = hd_arena_take(arena, *len + 1, 1)), "%s: no memory", path);
	CHECK(fread(bytes, 1, *len, file) == *len && !fclose(file), "%s", path);
	bytes[*len] = 0;
	return bytes;
}

/* The bytes of `path` ("data/..."), in the arena, a zero behind them. */
static inline uint8_t *shared_bytes(const char *path, struct hd_arena *arena, size_t *len)
{
	enum { MOST = 16 << 20 };
	const char *root = getenv("HEDDLE_SHARED"), *source = getenv("SOURCE_DIR");
	uint8_t *bytes = NULL, *packed, *out;
	char full[600];
	struct hd_diag diag = { "" };
	size_t nout;

	*len = 0;
	if (root) {
		snprintf(full, sizeof full, "%s/%s", root, path);
		bytes = shared_bytes_at(full, arena, len);
	}
	if (!bytes) {
		snprintf(full, sizeof full, "%s/tests/%s", source ? source : ".", path);
		bytes = shared_bytes_at(full, arena, len);
	}
	if (bytes)
		return bytes;
	snprintf(full, sizeof full, "%s/tests/%s.gz", source ? source : ".", path);
	if (!(packed = shared_bytes_at(full, arena, len)))
		return NULL;
	CHECK(hd_gzip_unpack(arena, full, packed, *len, MOST, &out, &nout, &diag) == HD_OK, "%s", diag.text);
	CHECK((bytes = hd_arena_take(arena, nout + 1, 1)), "%s: no memory", full);
	memcpy(bytes, out, nout);
	bytes[nout] = 0;
	*len = nout;
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
