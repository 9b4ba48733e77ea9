#include "base/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "tests/check.h"

/* Made by `printf 'hello heddle\n' | gzip -n`, and the same of the empty text: the
 * oracle is another program. */
static const uint8_t hello[] = {
	0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
	0xc8, 0x48, 0x4d, 0x49, 0xc9, 0x49, 0xe5, 0x02, 0x00, 0x81, 0xf1, 0xc8, 0x81, 0x0d, 0x00, 0x00,
	0x00,
};
static const uint8_t empty[] = {
	0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00,
};

enum { MOST = 1 << 20 };

static enum hd_err unpack(struct hd_arena *arena, const uint8_t *bytes, size_t len, size_t most,
	uint8_t **out, size_t *out_len, struct hd_diag *diag)
{
	return hd_gzip_unpack(arena, "f.gz", bytes, len, most, out, out_len, diag);
}

static void a_file_of_gzip_is_unpacked(void **state)
{
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t *out = NULL;
	size_t len = 99;
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(unpack(&arena, hello, sizeof hello, MOST, &out, &len, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(len, 13);
	assert_memory_equal(out, "hello heddle\n", 14);
	CHECK(unpack(&arena, empty, sizeof empty, MOST, &out, &len, &diag) == HD_OK && len == 0 &&
		out[0] == 0, "%s", diag.text);
	hd_arena_finish(&arena);
}

static void members_are_joined(void **state)
{
	uint8_t bytes[2 * sizeof hello + sizeof empty];
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t *out = NULL;
	size_t len = 0;
	(void)state;

	memcpy(bytes, hello, sizeof hello);
	memcpy(bytes + sizeof hello, empty, sizeof empty);
	memcpy(bytes + sizeof hello + sizeof empty, hello, sizeof hello);
	hd_arena_init(&arena, 0);
	CHECK(unpack(&arena, bytes, sizeof bytes, 26, &out, &len, &diag) == HD_OK && len == 26, "%s",
		diag.text);
	assert_memory_equal(out, "hello heddle\nhello heddle\n", 27);
	hd_arena_finish(&arena);
}

/* Random bytes and runs in turn, so that input and output are long in different places. */
static uint8_t *make(size_t len, uint8_t **packed, size_t *packed_len)
{
	uint8_t *plain = malloc(len + 1);
	z_stream z = { 0 };

	assert_non_null(plain);
	for (size_t i = 0; i < len; i++)
		plain[i] = i / 20000 % 2 ? 7 : (uint8_t)(i * i * 2654435761u >> 13);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	size_t cap = deflateBound(&z, len);
	*packed = malloc(cap);
	assert_non_null(*packed);
	z.next_in = plain;
	z.avail_in = (unsigned)len;
	z.next_out = *packed;
	z.avail_out = (unsigned)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*packed_len = cap - z.avail_out;
	deflateEnd(&z);
	return plain;
}

static void long_files_around_the_window_come_back_whole(void **state)
{
	static const size_t lens[] = { 1, 65535, 65536, 65537, 131072, 300000 };
	(void)state;

	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		uint8_t *packed, *out = NULL, *plain;
		size_t packed_len, len = 0;
		plain = make(lens[i], &packed, &packed_len);
		hd_arena_init(&arena, 0);
		CHECK(unpack(&arena, packed, packed_len, lens[i], &out, &len, &diag) == HD_OK, "%zu: %s",
			lens[i], diag.text);
		CHECK(len == lens[i] && memcmp(out, plain, len) == 0 && out[len] == 0, "%zu", lens[i]);
		CHECK(unpack(&arena, packed, packed_len, lens[i] - 1, &out, &len, &diag) == HD_E_INPUT, "%zu",
			lens[i]);
		hd_arena_finish(&arena);
		free(packed);
		free(plain);
	}
}

static void long_files_cut_or_damaged_say_where(void **state)
{
	struct hd_arena arena;
	uint8_t *packed, *out = NULL, *plain;
	size_t packed_len, len;
	char want[100];
	(void)state;

	hd_arena_init(&arena, 0);
	plain = make(300000, &packed, &packed_len);
	for (size_t cut = 20; cut < packed_len; cut += 997) {
		struct hd_diag diag = { "" };
		CHECK(unpack(&arena, packed, cut, MOST, &out, &len, &diag) == HD_E_INPUT && !out, "%zu", cut);
		snprintf(want, sizeof want,
			"f.gz: bad gzip data near byte %zu: cut short; fetch the file again", cut);
		assert_string_equal(diag.text, want);
	}
	packed[packed_len - 5] ^= 1;
	struct hd_diag diag = { "" };
	assert_int_equal(unpack(&arena, packed, packed_len, MOST, &out, &len, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "incorrect data check"));
	hd_arena_finish(&arena);
	free(packed);
	free(plain);
}

static void every_cut_is_noticed(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t cut = 0; cut < sizeof hello; cut++) {
		struct hd_diag diag = { "" };
		uint8_t *out = NULL;
		size_t len;
		CHECK(unpack(&arena, hello, cut, MOST, &out, &len, &diag) == HD_E_INPUT && !out, "%zu bytes",
			cut);
		CHECK(strncmp(diag.text, "f.gz: ", 6) == 0, "%zu bytes: %s", cut, diag.text);
	}
	hd_arena_finish(&arena);
}

/* Time, system and flags in the head and the bits that fill up the last byte before the
 * trailer carry no content: those may change freely. */
static void every_flipped_bit_of_content_is_noticed(void **state)
{
	uint8_t bytes[sizeof hello];
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t bit = 0; bit < sizeof hello * 8; bit++) {
		struct hd_diag diag = { "" };
		uint8_t *out = NULL;
		size_t len = 0;
		memcpy(bytes, hello, sizeof hello);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		enum hd_err err = unpack(&arena, bytes, sizeof bytes, MOST, &out, &len, &diag);
		bool idle = (bit / 8 >= 3 && bit / 8 < 10) || bit / 8 == sizeof hello - 9;
		CHECK(err == HD_E_INPUT || err == HD_OK, "bit %zu: %s", bit, diag.text);
		CHECK(err || (len == 13 && memcmp(out, "hello heddle\n", 13) == 0),
			"bit %zu gave other bytes", bit);
		CHECK(err || idle, "bit %zu was not noticed", bit);
	}
	hd_arena_finish(&arena);
}

static void trailing_bytes_are_refused(void **state)
{
	uint8_t bytes[sizeof hello + 1] = { 0 };
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t *out;
	size_t len;
	(void)state;

	memcpy(bytes, hello, sizeof hello);
	hd_arena_init(&arena, 0);
	assert_int_equal(unpack(&arena, bytes, sizeof bytes, MOST, &out, &len, &diag), HD_E_INPUT);
	hd_arena_finish(&arena);
}

static void the_limit_is_met_to_the_byte(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t most = 0; most < 20; most++) {
		struct hd_diag diag = { "" };
		uint8_t *out = NULL;
		size_t len;
		enum hd_err err = unpack(&arena, hello, sizeof hello, most, &out, &len, &diag);
		CHECK(err == (most < 13 ? HD_E_INPUT : HD_OK), "most %zu: %s", most, diag.text);
		CHECK(!err || strstr(diag.text, "bytes come out"), "most %zu: %s", most, diag.text);
	}
	hd_arena_finish(&arena);
}

static void what_is_no_gzip_says_so(void **state)
{
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t *out;
	size_t len;
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(unpack(&arena, (const uint8_t *)"PK\3\4", 4, MOST, &out, &len, &diag), HD_E_INPUT);
	assert_string_equal(diag.text, "f.gz: not a gzip file");
	assert_true(hd_gzip_is(hello, 2) && !hd_gzip_is(hello, 1) && !hd_gzip_is(hello, 0));
	hd_arena_finish(&arena);
}

static void the_nth_allocation_may_fail_for_every_n(void **state)
{
	uint64_t n = 1;
	enum hd_err err;
	(void)state;

	do {
		struct hd_arena own;
		struct hd_diag diag = { "" };
		uint8_t *out = NULL;
		size_t len;
		hd_arena_init(&own, 0);
		hd_alloc_arm(n);
		err = unpack(&own, hello, sizeof hello, MOST, &out, &len, &diag);
		hd_alloc_arm(0);
		CHECK(err == HD_OK || (err == HD_E_NOMEM && !out), "n %d: %s", (int)n, diag.text);
		hd_arena_finish(&own);
	} while (err && n++ < 100);
	CHECK(!err && n > 3, "n %d", (int)n);
}

static void blocks_unpack_to_their_length_alone(void **state)
{
	/* "abcabcabcab!": a literal, a copy that overlaps itself, a literal */
	static const uint8_t snappy[] = { 12, 2 << 2, 'a', 'b', 'c', 4 << 2 | 1, 3, 0, '!' },
		lz4[] = { 3 << 4 | 4, 'a', 'b', 'c', 3, 0, 1 << 4, '!' };
	uint8_t out[16];

	(void)state;
	assert_true(!hd_block_unpack(HD_CODEC_SNAPPY, "f", snappy, sizeof snappy, out, 12, NULL) &&
		!memcmp(out, "abcabcabcab!", 12));
	memset(out, 0, sizeof out);
	assert_true(!hd_block_unpack(HD_CODEC_LZ4, "f", lz4, sizeof lz4, out, 12, NULL) &&
		!memcmp(out, "abcabcabcab!", 12));
	for (size_t n = 0; n < sizeof snappy; n++)
		assert_int_equal(hd_block_unpack(HD_CODEC_SNAPPY, "f", snappy, n, out, 12, NULL), HD_E_INPUT);
	for (size_t n = 0; n < sizeof lz4; n++)
		assert_int_equal(hd_block_unpack(HD_CODEC_LZ4, "f", lz4, n, out, 12, NULL), HD_E_INPUT);
	assert_int_equal(hd_block_unpack(HD_CODEC_SNAPPY, "f", snappy, sizeof snappy, out, 11, NULL),
		HD_E_INPUT);
	assert_int_equal(hd_block_unpack(HD_CODEC_LZ4, "f", lz4, sizeof lz4, out, 11, NULL), HD_E_INPUT);
	static const uint8_t far[] = { 5, 0, 'a', 1, 2 };       /* a copy from before the beginning */
	assert_int_equal(hd_block_unpack(HD_CODEC_SNAPPY, "f", far, sizeof far, out, 5, NULL), HD_E_INPUT);
}

/* A frame of Zstandard with one raw block of "abc"; RFC 8878. */
static void a_frame_of_zstandard_unpacks(void **state)
{
	static const uint8_t frame[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c' };
	uint8_t out[4];

	(void)state;
	assert_true(!hd_block_unpack(HD_CODEC_ZSTD, "f", frame, sizeof frame, out, 3, NULL) && !memcmp(out,
		"abc", 3));
	assert_int_equal(hd_block_unpack(HD_CODEC_ZSTD, "f", frame, sizeof frame, out, 2, NULL), HD_E_INPUT);
	assert_int_equal(hd_block_unpack(HD_CODEC_ZSTD, "f", frame, sizeof frame, out, 4, NULL), HD_E_INPUT);
	assert_int_equal(hd_block_unpack(HD_CODEC_ZSTD, "f", frame, sizeof frame - 1, out, 3, NULL),
		HD_E_INPUT);
	assert_int_equal(hd_block_unpack(HD_CODEC_GZIP, "f", frame, sizeof frame, out, 3, NULL), HD_E_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_gzip_is_unpacked),
		cmocka_unit_test(members_are_joined),
		cmocka_unit_test(long_files_around_the_window_come_back_whole),
		cmocka_unit_test(long_files_cut_or_damaged_say_where),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(every_flipped_bit_of_content_is_noticed),
		cmocka_unit_test(trailing_bytes_are_refused),
		cmocka_unit_test(the_limit_is_met_to_the_byte),
		cmocka_unit_test(what_is_no_gzip_says_so),
		cmocka_unit_test(the_nth_allocation_may_fail_for_every_n),
		cmocka_unit_test(blocks_unpack_to_their_length_alone),
		cmocka_unit_test(a_frame_of_zstandard_unpacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
