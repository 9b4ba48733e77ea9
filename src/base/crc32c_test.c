#include "base/crc32c.h"

#include <string.h>

#include "tests/check.h"

/* One bit at a time, as the polynomial says. */
static uint32_t by_bits(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < 8 * len; i++) {
		uint32_t bit = (crc ^ (uint32_t)(p[i / 8] >> i % 8)) & 1;
		crc = crc >> 1 ^ (bit ? 0x82F63B78u : 0);
	}
	return ~crc;
}

enum { ROOM = 3 * 3072 + 64 };

static const uint8_t *noise(void)
{
	static uint8_t bytes[ROOM];
	uint32_t x = 12345;

	for (size_t i = 0; i < ROOM; i++)
		bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	return bytes;
}

static void the_answers_are_the_published_ones(void **state)
{
	static const uint8_t zeros[32];
	uint8_t ones[32];

	(void)state;
	memset(ones, 255, sizeof ones);
	assert_int_equal(hd_crc32c(0, "123456789", 9), 0xE3069283);
	assert_int_equal(hd_crc32c(0, zeros, 32), 0x8A9136AA);           /* RFC 3720, B.4 */
	assert_int_equal(hd_crc32c(0, ones, 32), 0x62A8AB43);
	assert_int_equal(hd_crc32c(0, NULL, 0), 0);
}

static void all_rows_answer_as_the_polynomial_at_any_length_and_place(void **state)
{
	const uint8_t *bytes = noise();

	(void)state;
	for (size_t at = 0; at < 9; at++)
		for (size_t len = 0; len <= ROOM - at; len += len < 80 || (len > 500 && len < 530) ||
			(len > 3050 && len < 3090) || (len > 6130 && len < 6160) ? 1 : 601) {
			uint32_t want = by_bits(bytes + at, len);
			for (const struct hd_crc32c_row *row = hd_crc32c_rows;
				row < hd_crc32c_rows + HD_CRC32C_ROWS; row++)
				CHECK(!row->is_here() || row->crc(0, bytes + at, len) == want,
					"%s, %zu bytes at %zu", row->name, len, at);
		}
}

static void pieces_give_the_checksum_of_the_whole(void **state)
{
	const uint8_t *bytes = noise();
	uint32_t whole = by_bits(bytes, 7000);

	(void)state;
	for (size_t cut = 0; cut <= 7000; cut += 7)
		CHECK(hd_crc32c(hd_crc32c(0, bytes, cut), bytes + cut, 7000 - cut) == whole, "cut at %zu",
			cut);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answers_are_the_published_ones),
		cmocka_unit_test(all_rows_answer_as_the_polynomial_at_any_length_and_place),
		cmocka_unit_test(pieces_give_the_checksum_of_the_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
