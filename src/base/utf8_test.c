#include "base/utf8.h"

#include <stdint.h>

#include "tests/check.h"

/* The encoding by its arithmetic: what a code point must look like. */
static size_t encode(uint32_t point, char out[4])
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, point >>= 6)
		out[i] = (char)(0x80 | (point & 0x3f));
	out[0] = (char)((0xf00 >> n & 0xff) | point);
	return n;
}

static void every_code_point_is_known_and_surrogates_are_not(void **state)
{
	(void)state;
	for (uint32_t point = 0; point < 0x110400; point++) {
		char at[4];
		size_t n = encode(point, at), want = (point >= 0xd800 && point < 0xe000) ||
			point > 0x10ffff ? 0 : n;
		CHECK(hd_utf8_len(at, n) == want, "U+%04X", point);
		CHECK(n == 1 || hd_utf8_len(at, n - 1) == 0, "U+%04X cut", point);
	}
}

/* Counting all sequences: Unicode has 128 + 1920 + 61440 + 1048576 scalar values. */
static void nothing_else_is_accepted(void **state)
{
	size_t found[5] = { 0 };
	(void)state;

	for (uint32_t first = 0; first < 0x10000; first++) {
		char at[4] = { (char)(first >> 8), (char)first, 0, 0 };
		for (uint32_t third = 0; third < 256; third++) {
			at[2] = (char)third;
			at[3] = (char)0x80;
			found[hd_utf8_len(at, 4)]++;
		}
	}
	/* a form of n bytes is met once for every value of the bytes behind it */
	assert_int_equal(found[1], 128 * 65536);
	assert_int_equal(found[2], 1920 * 256);
	assert_int_equal(found[3], 61440);
	assert_int_equal(found[4], 1048576 / 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_is_known_and_surrogates_are_not),
		cmocka_unit_test(nothing_else_is_accepted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
