#include "functions/pack.h"

#include <string.h>

#include "tests/check.h"

enum { LEN = 64 + 2 * 56 };

/* An executable of x86-64 with two segments, neither of which names a loader. */
static void make(uint8_t elf[LEN])
{
	memset(elf, 0, LEN);
	memcpy(elf, "\177ELF\2\1\1", 7);
	elf[16] = 3;
	elf[18] = 62;
	elf[32] = 64;
	elf[54] = 56;
	elf[56] = 2;
	elf[64] = 1;
	elf[64 + 56] = 2;
}

static enum hd_err packs(const uint8_t *elf, size_t len, struct hd_fn_pack *pack, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_zip_member found;

	*diag = (struct hd_diag){ "" };
	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_fn_pack("file", elf, len, &arena, pack, diag);
	if (!err) {
		assert_int_equal(hd_zip_find(pack->file.bytes, pack->file.len, "f", "bootstrap", len, &arena,
			&found, NULL), HD_OK);
		assert_int_equal(found.len, len);
		assert_memory_equal(found.bytes, elf, len);
	}
	hd_arena_finish(&arena);
	return err;
}

static void a_static_executable_is_packed(void **state)
{
	struct hd_diag says;
	struct hd_fn_pack pack;
	uint8_t elf[LEN];

	(void)state;
	make(elf);
	assert_int_equal(packs(elf, LEN, &pack, &says), HD_OK);
	assert_string_equal(pack.arch, "x86_64");
	elf[18] = 183;
	assert_int_equal(packs(elf, LEN, &pack, &says), HD_OK);
	assert_string_equal(pack.arch, "arm64");
}

static void what_lambda_cannot_start_is_refused(void **state)
{
	/* a byte, what it becomes, what is said. What needs a loader is an executable, but not for Lambda */
	static const struct { size_t at; uint8_t byte; const char *says; } rows[] = {
		{ 0, 'M', "no executable of 64 bits" },
		{ 4, 1, "no executable of 64 bits" },
		{ 16, 1, "no executable of x86-64 or arm64" },
		{ 18, 40, "no executable of x86-64 or arm64" },
		{ 32, 65, "damaged" },
		{ 39, 0x80, "damaged" },
		{ 54, 32, "damaged" },
		{ 56, 0, "damaged" },
		{ 56, 3, "damaged" },
		{ 64 + 8, LEN + 1, "cut short" },
		{ 64 + 15, 0x80, "cut short" },
		{ 64 + 32, LEN + 1, "cut short" },
		{ 64 + 39, 0xff, "cut short" },
		{ 64, 3, "needs a loader" },
		{ 64 + 56, 3, "needs a loader" },
	};
	struct hd_diag says;
	struct hd_fn_pack pack;
	uint8_t elf[LEN];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		make(elf);
		elf[rows[i].at] = rows[i].byte;
		assert_int_equal(packs(elf, LEN, &pack, &says),
			strstr(rows[i].says, "loader") ? HD_E_REFUSED : HD_E_INPUT);
		assert_non_null(strstr(says.text, rows[i].says));
	}
	make(elf);
	assert_int_equal(packs(elf, 63, &pack, &says), HD_E_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_static_executable_is_packed),
		cmocka_unit_test(what_lambda_cannot_start_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
