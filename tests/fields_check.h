/* fields_check.h -- a table of fields (base/fields.h) against a JSON text of before, and against
 * docs/fields.md. Included once by a test, which links base. */
#ifndef HD_TESTS_FIELDS_CHECK_H
#define HD_TESTS_FIELDS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "tests/check.h"

/* The object as the table writes it, byte for byte. */
static inline void check_written(const struct hd_fields *fields, unsigned where, const void *from,
	const char *golden)
{
	struct hd_arena arena;
	struct hd_json_writer w;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_fields_put_object(fields, where, from, NULL, &w);
	assert_string_equal(text.at, golden);
	hd_arena_finish(&arena);
}

/* docs/fields.md has `heading` and below it the table as it is now. */
static inline void check_document(const struct hd_fields *fields, unsigned where, const char *heading)
{
	const char *root = getenv("SOURCE_DIR");
	char path[4096], *have = calloc(1, 1 << 17);
	struct hd_arena arena;
	struct hd_text want;

	if (!root) {
		free(have);
		SKIP("SOURCE_DIR does not say where the document is");
	}
	snprintf(path, sizeof path, "%s/docs/fields.md", root);
	FILE *f = fopen(path, "r");
	CHECK(f && have && fread(have, 1, (1 << 17) - 1, f) > 0, "no %s", path);
	fclose(f);
	hd_arena_init(&arena, 0);
	hd_text_init(&want, &arena);
	hd_text_addf(&want, "\n## %s\n", heading);
	hd_fields_document(fields, where, &want);
	CHECK(strstr(have, want.at), "docs/fields.md does not have this, which its table says:\n%s", want.at);
	hd_arena_finish(&arena);
	free(have);
}

#endif
