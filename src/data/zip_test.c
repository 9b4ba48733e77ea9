#include "data/zip.h"

#include <string.h>

#include "base/le.h"
#include "base/pack.h"
#include "tests/check.h"

static const struct hd_zip_part parts[] = {
	{ "bootstrap", 0755, { (const uint8_t *)"#!/bin/sh\n", 10 } },
	{ "empty", 0644, { (const uint8_t *)"", 0 } },
	{ "notes/a", 0600, { (const uint8_t *)"123456789", 9 } },
};

static void members_are_read_as_they_were_written(void **state)
{
	struct hd_zip_member file, again, found;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	assert_int_equal(hd_zip_write(parts, 3, &arena, &file, NULL), HD_OK);
	assert_int_equal(hd_zip_write(parts, 3, &arena, &again, NULL), HD_OK);
	assert_int_equal(file.len, again.len);
	assert_memory_equal(file.bytes, again.bytes, file.len);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_zip_find(file.bytes, file.len, "f", parts[i].name, 100, &arena, &found,
			NULL), HD_OK);
		assert_int_equal(found.len, parts[i].of.len);
		assert_memory_equal(found.bytes, parts[i].of.bytes, found.len);
	}
	assert_int_equal(hd_zip_find(file.bytes, file.len, "f", "boot", 100, &arena, &found, NULL),
		HD_E_NOTFOUND);
	hd_arena_finish(&arena);
}

/* By the numbers of PKWARE's APPNOTE, not by the reader. */
static void the_directory_has_modes_and_checksums(void **state)
{
	struct hd_zip_member file;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	assert_int_equal(hd_zip_write(&parts[2], 1, &arena, &file, NULL), HD_OK);
	assert_int_equal(file.len, 30 + 7 + 9 + 46 + 7 + 22);
	assert_memory_equal(file.bytes, "PK\3\4\24\0\0\0\0\0\0\0\41\0", 14);
	assert_int_equal(hd_get32(file.bytes + 14), 0xCBF43926);
	const uint8_t *row = file.bytes + 30 + 7 + 9;
	assert_memory_equal(row, "PK\1\2\24\3\24\0", 8);
	assert_int_equal(hd_get32(row + 16), 0xCBF43926);
	assert_int_equal(hd_get32(row + 38) >> 16, 0100600);
	assert_int_equal(hd_get32(row + 42), 0);
	assert_int_equal(hd_get32(row + 46 + 7 + 16), 30 + 7 + 9);
	hd_arena_finish(&arena);
}

static void what_the_format_has_no_room_for_is_refused(void **state)
{
	const struct hd_zip_part large = { "a", 0644, { (const uint8_t *)"", (size_t)1 << 32 } };
	struct hd_zip_member file;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 64);
	assert_int_equal(hd_zip_write(&large, 1, &arena, &file, NULL), HD_E_INVAL);
	assert_int_equal(hd_zip_write(parts, 3, &arena, &file, NULL), HD_E_NOMEM);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_read_as_they_were_written),
		cmocka_unit_test(the_directory_has_modes_and_checksums),
		cmocka_unit_test(what_the_format_has_no_room_for_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
