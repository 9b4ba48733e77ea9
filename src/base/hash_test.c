#include "base/hash.h"

#include <string.h>

#include "tests/check.h"

/* The empty text's hashes as the algorithm's description states them. */
static void known_answers_hold(void **state)
{
	char hex[HD_HASH_HEX];
	(void)state;

	hd_hash_hex(hd_hash("", 0), hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
	assert_int_equal(hd_hash64("", 0), UINT64_C(0x2d06800538d394c2));
}

static void pieces_hash_like_the_whole_wherever_they_are_cut(void **state)
{
	static const size_t lens[] = { 0, 1, 3, 16, 17, 128, 129, 240, 241, 256, 1023, 1024, 1025, 5000 };
	uint8_t bytes[5000];
	(void)state;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 256);
	for (size_t l = 0; l < sizeof lens / sizeof lens[0]; l++)
		for (size_t piece = 1; piece < 1100; piece = piece * 3 + 1) {
			struct hd_hasher hasher, copy;
			hd_hasher_init(&hasher);
			for (size_t i = 0; i < lens[l]; i += piece)
				hd_hasher_add(&hasher, bytes + i, lens[l] - i < piece ? lens[l] - i : piece);
			copy = hasher;                           /* a state is a plain value */
			hd_hasher_add(&copy, "x", 1);
			CHECK(hd_hash_same(hd_hasher_end(&hasher), hd_hash(bytes, lens[l])),
				"%zu bytes in pieces of %zu", lens[l], piece);
			CHECK(hd_hasher_end64(&hasher) == hd_hash64(bytes, lens[l]), "64 bits of %zu",
				(size_t)lens[l]);
			CHECK(!hd_hash_same(hd_hasher_end(&copy), hd_hash(bytes, lens[l])),
				"%zu bytes in pieces of %zu", lens[l], piece);
		}
}

static void every_flipped_bit_changes_the_hash(void **state)
{
	uint8_t bytes[97] = { 0 };
	struct hd_hash zero = hd_hash(bytes, sizeof bytes);
	(void)state;

	for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!hd_hash_same(hd_hash(bytes, sizeof bytes), zero), "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void hex_prints_and_parses_back(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 200; i++) {
		struct hd_hash hash = hd_hash(&i, 1), back;
		char hex[HD_HASH_HEX];
		hd_hash_hex(hash, hex);
		CHECK(hd_hash_parse(hex, &back) && hd_hash_same(hash, back), "%s", hex);
		CHECK(strlen(hex) == 32 && strspn(hex, "0123456789abcdef") == 32, "%s", hex);
	}
}

static void what_is_not_32_lower_case_digits_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"", "99aa06d3014798d86001c324468d497", "99aa06d3014798d86001c324468d497f0",
			"99AA06d3014798d86001c324468d497f",
		"99aa06d3014798d86001c324468d497g", "99aa06d3014798d86001c324468d49/f",
		" 9aa06d3014798d86001c324468d497f",
	};
	struct hd_hash hash = hd_hash("a", 1), before = hash;
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		CHECK(!hd_hash_parse(wrong[i], &hash) && hd_hash_same(hash, before), "\"%s\"", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers_hold),
		cmocka_unit_test(pieces_hash_like_the_whole_wherever_they_are_cut),
		cmocka_unit_test(every_flipped_bit_changes_the_hash),
		cmocka_unit_test(hex_prints_and_parses_back),
		cmocka_unit_test(what_is_not_32_lower_case_digits_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
