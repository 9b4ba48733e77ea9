#include "plan/ins.h"

#include <string.h>

#include "tests/check.h"

static const char *printed(const struct hd_ins *ins)
{
	static char storage[64];
	struct hd_text text;

	hd_text_fixed(&text, storage, sizeof storage);
	hd_ins_print(ins, &text);
	return text.at;
}

static void an_instruction_is_these_sixteen_bytes(void **state)
{
	static const struct hd_ins ins = { .op = HD_INS_SA, .flags = HD_INS_SHADOW, .stage = 0x1234,
		.vn = 0xfedcba98,
		.ver = 0, .peer = 0x5678, .slot = 0x9abc };
	static const uint8_t want[HD_INS_BYTES] = { 7, 4, 0x34, 0x12, 0x98, 0xba, 0xdc, 0xfe, 0, 0, 0, 0,
		0x78, 0x56, 0xbc, 0x9a };
	static const struct hd_ins step = { .op = HD_INS_STEP, .flags = HD_INS_EAGER, .stage = 3,
		.ver = HD_VER_RULE };
	static const uint8_t want_step[HD_INS_BYTES] = { 14, 2, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0,
		0, 0, 0 };
	uint8_t bytes[HD_INS_BYTES];
	struct hd_ins again;

	(void)state;
	hd_ins_put(&ins, bytes);
	assert_memory_equal(bytes, want, sizeof want);
	assert_int_equal(hd_ins_get(&again, bytes, NULL), HD_OK);
	assert_memory_equal(&again, &ins, sizeof ins);
	hd_ins_put(&step, bytes);
	assert_memory_equal(bytes, want_step, sizeof want_step);
}

/* Numbers of files: written down a second time, so that a change of one shows. */
static void op_numbers_never_change(void **state)
{
	static const char *const names[] = { NULL, "LD", "F", "B", "I", "W", "R", "SA", "SG", "RA", "RG",
		"RED", "TIE", "NORM", "STEP",
		"VAL", "PIN", "REL", "OFF", "ON", "BAR", "FL", "BL", "SHIP", "TAKE", "HA", "HG", "RSG" };

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		const struct hd_ins_row *row = hd_ins_row((uint8_t)op);
		const char *want = op < sizeof names / sizeof names[0] ? names[op] : NULL;
		CHECK(!row == !want && (!row || !strcmp(row->text, want)), "op %u", op);
	}
}

static void the_fields_of_an_op_are_the_letters_of_its_row(void **state)
{
	static const char letters[] = "sv@#><";

	(void)state;
	for (uint8_t op = 0; op < HD_INS_END; op++) {
		const struct hd_ins_row *row = hd_ins_row(op);
		for (const char *f = letters; row && *f; f++)
			CHECK(hd_ins_uses(op, *f) == (strchr(row->fields, *f) != NULL), "%s and %c",
				row->text, *f);
		CHECK(!row || strspn(row->fields, letters) == strlen(row->fields),
			"%s has a field of no letter", row->text);
	}
}

static void what_is_not_understood_is_refused(void **state)
{
	static const struct { struct hd_ins ins; const char *want; } cases[] = {
		{ { .op = 0 }, "instruction: there is no op number 0" },
		{ { .op = 28 }, "instruction: there is no op number 28" },
		{ { .op = HD_INS_SHIP, .flags = HD_INS_KEEP }, "instruction SHIP: flags 64 do not belong to it" },
		{ { .op = HD_INS_HA, .peer = 1 }, "instruction HA: it has no peer, yet there stands 1" },
		{ { .op = HD_INS_FL, .vn = 1 }, "instruction FL: it has no vn, yet there stands 1" },
		{ { .op = HD_INS_F, .flags = HD_INS_EAGER }, "instruction F: flags 2 do not belong to it" },
		{ { .op = HD_INS_F, .flags = 128 }, "instruction F: flags 128 do not belong to it" },
		{ { .op = HD_INS_F, .ver = 1 }, "instruction F: it has no version, yet there stands 1" },
		{ { .op = HD_INS_F, .flags = HD_INS_VERSIONED, .ver = HD_VER_RULE }, "instruction F: it names no version, yet its flag says so" },
		{ { .op = HD_INS_LD, .flags = HD_INS_VERSIONED }, "instruction LD: flags 32 do not belong to it" },
		{ { .op = HD_INS_F, .peer = 1 }, "instruction F: it has no peer, yet there stands 1" },
		{ { .op = HD_INS_F, .slot = 1 }, "instruction F: it has no slot, yet there stands 1" },
		{ { .op = HD_INS_RED, .vn = 1 }, "instruction RED: it has no vn, yet there stands 1" },
		{ { .op = HD_INS_NORM, .stage = 1 }, "instruction NORM: it has no stage, yet there stands 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t bytes[HD_INS_BYTES];
		struct hd_ins again = { 0 };
		struct hd_diag diag = { "" };
		hd_ins_put(&cases[i].ins, bytes);
		assert_int_equal(hd_ins_get(&again, bytes, &diag), HD_E_INPUT);
		assert_string_equal(diag.text, cases[i].want);
		assert_int_equal(again.op, 0);
	}
}

static void texts_mean_what_the_document_says(void **state)
{
	static const struct { const char *text; struct hd_ins ins; } cases[] = {
		{ "LD0.7", { .op = HD_INS_LD, .vn = 7 } },
		{ "F3.7", { .op = HD_INS_F, .stage = 3, .vn = 7 } },
		{ "Fc3.7", { .op = HD_INS_F, .flags = HD_INS_CHECKPOINT, .stage = 3, .vn = 7 } },
		{ "Fx3.7", { .op = HD_INS_F, .flags = HD_INS_SHADOW, .stage = 3, .vn = 7 } },
		{ "Fcx3.7", { .op = HD_INS_F, .flags = HD_INS_CHECKPOINT | HD_INS_SHADOW, .stage = 3, .vn = 7 } },
		{ "B3.-1", { .op = HD_INS_B, .stage = 3, .vn = UINT32_MAX } },
		{ "I65535.2147483647", { .op = HD_INS_I, .stage = 65535, .vn = INT32_MAX } },
		{ "W3.7", { .op = HD_INS_W, .stage = 3, .vn = 7 } }, { "R3.7", { .op = HD_INS_R, .stage = 3, .vn = 7 } },
		{ "SA3.7>2", { .op = HD_INS_SA, .stage = 3, .vn = 7, .peer = 2 } },
		{ "SG3.7>1#4", { .op = HD_INS_SG, .stage = 3, .vn = 7, .peer = 1, .slot = 4 } },
		{ "RA3.7<2", { .op = HD_INS_RA, .stage = 3, .vn = 7, .peer = 2 } },
		{ "RG3.7<0", { .op = HD_INS_RG, .stage = 3, .vn = 7 } },
		{ "RED3", { .op = HD_INS_RED, .stage = 3 } }, { "TIE0", { .op = HD_INS_TIE } }, { "NORM", { .op = HD_INS_NORM } },
		{ "STEP3@5", { .op = HD_INS_STEP, .stage = 3, .ver = 5 } },
		{ "STEP0", { .op = HD_INS_STEP, .ver = HD_VER_RULE } },
		{ "STEP!3@5", { .op = HD_INS_STEP, .flags = HD_INS_EAGER, .stage = 3, .ver = 5 } },
		{ "VAL@5", { .op = HD_INS_VAL, .ver = 5 } }, { "VAL", { .op = HD_INS_VAL, .ver = HD_VER_RULE } },
		{ "PIN3@5", { .op = HD_INS_PIN, .stage = 3, .ver = 5 } }, { "REL3@-1", { .op = HD_INS_REL, .stage = 3, .ver = 4294967294 } },
		{ "REL3@-2147483647", { .op = HD_INS_REL, .stage = 3, .ver = 2147483648 } },
		{ "F3.7@0", { .op = HD_INS_F, .flags = HD_INS_VERSIONED, .stage = 3, .vn = 7 } },
		{ "Fc3.7@-2", { .op = HD_INS_F, .flags = HD_INS_VERSIONED | HD_INS_CHECKPOINT, .stage = 3, .vn = 7, .ver = 4294967293 } },
		{ "B3.-1@2", { .op = HD_INS_B, .flags = HD_INS_VERSIONED, .stage = 3, .vn = UINT32_MAX, .ver = 2 } },
		{ "RED3#2", { .op = HD_INS_RED, .stage = 3, .slot = 2 } },
		{ "OFF3.7", { .op = HD_INS_OFF, .stage = 3, .vn = 7 } }, { "ON3.7", { .op = HD_INS_ON, .stage = 3, .vn = 7 } },
		{ "FL0", { .op = HD_INS_FL } },
		{ "BL3", { .op = HD_INS_BL, .stage = 3 } },
		{ "SAk3.7>2", { .op = HD_INS_SA, .flags = HD_INS_KEEP, .stage = 3, .vn = 7, .peer = 2 } },
		{ "SGx3.7>1", { .op = HD_INS_SG, .flags = HD_INS_SHADOW, .stage = 3, .vn = 7, .peer = 1 } },
		{ "SGxk3.7>1", { .op = HD_INS_SG, .flags = HD_INS_SHADOW | HD_INS_KEEP, .stage = 3, .vn = 7, .peer = 1 } },
		{ "OFFx3.7", { .op = HD_INS_OFF, .flags = HD_INS_SHADOW, .stage = 3, .vn = 7 } },
		{ "ONx3.7", { .op = HD_INS_ON, .flags = HD_INS_SHADOW, .stage = 3, .vn = 7 } },
		{ "STEPx3@1", { .op = HD_INS_STEP, .flags = HD_INS_SHADOW, .stage = 3, .ver = 1 } },
		{ "SHIP3>2", { .op = HD_INS_SHIP, .stage = 3, .peer = 2 } },
		{ "TAKE3<2#4", { .op = HD_INS_TAKE, .stage = 3, .peer = 2, .slot = 4 } },
		{ "HA3.7", { .op = HD_INS_HA, .stage = 3, .vn = 7 } }, { "HG3.7", { .op = HD_INS_HG, .stage = 3, .vn = 7 } },
		{ "RSG3.7>1", { .op = HD_INS_RSG, .stage = 3, .vn = 7, .peer = 1 } },
		{ "BAR1", { .op = HD_INS_BAR, .stage = 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_ins ins = { 0 };
		struct hd_diag diag = { "" };
		CHECK(hd_ins_parse(&ins, cases[i].text, strlen(cases[i].text), NULL, &diag) == HD_OK,
			"%s: %s", cases[i].text, diag.text);
		CHECK(memcmp(&ins, &cases[i].ins, sizeof ins) == 0, "%s", cases[i].text);
		assert_string_equal(printed(&ins), cases[i].text);
	}
}

static void a_wrong_text_is_refused_at_its_byte(void **state)
{
	static const struct { const char *text; size_t bad; const char *want; } cases[] = {
		{ "", 0, "no instruction begins like \"\"" }, { "X3", 0, "no instruction begins like \"X3\"" },
		{ "f3.7", 0, "no instruction begins like \"f3.7\"" }, { "F", 1, "a number is missing: the stage" },
		{ "F3", 2, "a point and a virtual node are missing" }, { "F3.", 3, "a number is missing: the virtual node" },
		{ "F3.-", 4, "a number is missing: the virtual node" }, { "F3.-0", 5, "write 0 without a sign" },
		{ "F03.1", 1, "the stage is not a plain number up to 65535" }, { "F65536.1", 1, "the stage is not a plain number up to 65535" },
		{ "F3.2147483648", 3, "the virtual node is not a plain number up to 2147483647" },
		{ "F!3.7", 1, "F takes no flag ! here" }, { "Bc3.7", 1, "B takes no flag c here" }, { "RAk3.7<1", 2, "RA takes no flag k here" }, { "Fcc3.7", 2, "F takes no flag c here" },
		{ "LD3.7@1", 5, "\"@1\" does not belong to LD" }, { "F3.7@", 5, "a number is missing: the version" }, { "F@3.7", 1, "a number is missing: the stage" }, { "NORM1", 4, "\"1\" does not belong to NORM" },
		{ "SA3.7", 5, "a > and the other rank are missing" }, { "RA3.7>1", 5, "a < and the other rank are missing" },
		{ "SA3.7>1#", 8, "a number is missing: the slot" }, { "STEP3@", 6, "a number is missing: the version" },
		{ "STEP3@2147483648", 6, "the version is not a plain number up to 2147483647" }, { "PIN3@-0", 7, "write 0 without a sign" }, { "Fp3.7", 1, "a number is missing: the stage" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_ins ins = { .op = 99 };
		struct hd_diag diag = { "" };
		size_t bad = 1000;
		CHECK(hd_ins_parse(&ins, cases[i].text, strlen(cases[i].text), &bad, &diag) == HD_E_INPUT,
			"%s", cases[i].text);
		CHECK(!strcmp(diag.text, cases[i].want) && bad == cases[i].bad, "%s: byte %zu, %s",
			cases[i].text, bad, diag.text);
		assert_int_equal(ins.op, 99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instruction_is_these_sixteen_bytes),
		cmocka_unit_test(op_numbers_never_change),
		cmocka_unit_test(the_fields_of_an_op_are_the_letters_of_its_row),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(texts_mean_what_the_document_says),
		cmocka_unit_test(a_wrong_text_is_refused_at_its_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
