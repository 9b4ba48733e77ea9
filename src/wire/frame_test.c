#include "wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "tests/check.h"

/* A frame of each type as a peer would send it. */
static const struct hd_frame good[] = {
	{ .type = HD_FRAME_HELLO, .epoch = 3, .len = 80 },
	{ .type = HD_FRAME_WELCOME, .epoch = 3, .len = 80 },
	{ .type = HD_FRAME_EPOCH, .epoch = 4, .len = 16 },
	{ .type = HD_FRAME_OPEN, .class = 1, .epoch = 4, .stream = 7, .step = 1000, .priority = -5, .len = 32 },
	{ .type = HD_FRAME_OPEN, .class = 0, .flags = HD_FRAME_CRC, .epoch = 4, .stream = 8, .len = 32, .payload_crc = 77 },
	{ .type = HD_FRAME_DATA, .class = 2, .epoch = 4, .stream = 7, .step = 1000, .offset = UINT64_C(1) << 40, .len = HD_DATA_MAX },
	{ .type = HD_FRAME_DATA, .class = 1, .flags = HD_FRAME_CRC | HD_FRAME_LAST, .epoch = 4, .stream = 7, .len = 1, .payload_crc = 5 },
	{ .type = HD_FRAME_CANCEL, .class = 1, .flags = HD_FRAME_MINE, .epoch = 4, .stream = 7, .len = 4 },
	{ .type = HD_FRAME_CANCELLED, .class = 2, .epoch = 4, .stream = 7, .len = 8 },
	{ .type = HD_FRAME_PRIO, .class = 1, .flags = HD_FRAME_MINE, .epoch = 4, .stream = 7, .priority = INT32_MIN },
	{ .type = HD_FRAME_GRANT, .class = 1, .epoch = 4, .len = 8 },
	{ .type = HD_FRAME_CREDIT, .class = 2, .epoch = 4, .len = 8 },
	{ .type = HD_FRAME_PING, .epoch = 4, .len = 8 },
	{ .type = HD_FRAME_PONG, .epoch = 4, .len = 24 },
	{ .type = HD_FRAME_BYE, .epoch = 4, .len = 4 + HD_BYE_TEXT },
};
enum { NGOOD = sizeof good / sizeof *good };

static void sign(uint8_t bytes[HD_FRAME_HEADER]) { hd_put32(bytes + 44, hd_crc32c(0, bytes, 44)); }

static void a_frame_has_the_bytes_of_the_drawing(void **state)
{
	static const uint8_t want[44] = {
		0x48, 0x44, 1, 5, 1, 5, 0, 0, /* magic, version, DATA, class, flags, reserved */
		0x04, 0x03, 0x02, 0x01, 0x0a, 0, 0, 0, /* epoch, stream */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* step */
		0x10, 0, 0, 0, 0, 0, 0, 0, /* offset */
		0x00, 0x00, 0x10, 0x00, 0xfe, 0xff, 0xff, 0xff, /* length, priority -2 */
		0xef, 0xbe, 0xad, 0xde, /* crc of the payload */
	};
	const struct hd_frame frame = { .type = HD_FRAME_DATA, .class = 1,
		.flags = HD_FRAME_CRC | HD_FRAME_LAST, .epoch = 0x01020304, .stream = 10,
		.step = 0x1122334455667788, .offset = 16, .len = HD_DATA_MAX, .priority = -2,
		.payload_crc = 0xdeadbeef };
	uint8_t bytes[HD_FRAME_HEADER];

	(void)state;
	hd_frame_put(&frame, bytes);
	assert_memory_equal(bytes, want, sizeof want);
	assert_int_equal(hd_get32(bytes + 44), hd_crc32c(0, want, sizeof want));
}

static void every_type_reads_back_as_it_was_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < NGOOD; i++) {
		uint8_t bytes[HD_FRAME_HEADER], again[HD_FRAME_HEADER];
		struct hd_frame got;
		struct hd_diag diag = { "" };
		hd_frame_put(&good[i], bytes);
		CHECK(hd_frame_get(bytes, &got, &diag) == HD_OK, "%s: %s", hd_frame_name(good[i].type),
			diag.text);
		hd_frame_put(&got, again);
		CHECK(memcmp(bytes, again, sizeof bytes) == 0 && got.type == good[i].type &&
			got.class == good[i].class &&
			got.flags == good[i].flags && got.epoch == good[i].epoch &&
			got.stream == good[i].stream && got.step == good[i].step &&
			got.offset == good[i].offset && got.len == good[i].len &&
			got.priority == good[i].priority &&
			got.payload_crc == good[i].payload_crc, "%s", hd_frame_name(good[i].type));
	}
}

static void any_flipped_bit_of_a_header_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < NGOOD; i++)
		for (size_t bit = 0; bit < 8 * HD_FRAME_HEADER; bit++) {
			uint8_t bytes[HD_FRAME_HEADER];
			struct hd_frame got;
			hd_frame_put(&good[i], bytes);
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			CHECK(hd_frame_get(bytes, &got, NULL) == HD_E_PROTOCOL, "%s, bit %zu",
				hd_frame_name(good[i].type), bit);
		}
}

/* The checksum is right in all of these: the sender means it. */
static void a_header_that_means_nothing_is_refused_with_the_rule(void **state)
{
	static const struct { uint8_t of, at, value; const char *says; } cases[] = {
		{ 0, 0, 0x49, "a frame without the magic number (17481)" },
		{ 0, 2, 0, "a frame of another version (0)" },
		{ 0, 2, 2, "a frame of another version (2)" },
		{ 0, 3, 0, "a frame of an unknown type (0)" },
		{ 0, 3, 14, "a frame of an unknown type (14)" },
		{ 0, 3, 255, "a frame of an unknown type (255)" },
		{ 0, 4, 1, "a frame of a class that its type cannot have (1)" },
		{ 3, 4, 3, "a frame of a class that its type cannot have (3)" },
		{ 3, 4, 255, "a frame of a class that its type cannot have (255)" },
		{ 3, 4, 32, "a frame of a class that its type cannot have (32)" },
		{ 7, 4, 0, "a frame of a class that its type cannot have (0)" },
		{ 10, 4, 2, "a frame of a class that its type cannot have (2)" },
		{ 11, 4, 1, "a frame of a class that its type cannot have (1)" },
		{ 3, 5, HD_FRAME_LAST, "a frame with flags that its type cannot have (4)" },
		{ 3, 5, HD_FRAME_MINE, "a frame with flags that its type cannot have (2)" },
		{ 5, 5, 8, "a frame with flags that its type cannot have (8)" },
		{ 5, 5, 128, "a frame with flags that its type cannot have (128)" },
		{ 7, 5, 0, "a frame with flags that its type cannot have (0)" },
		{ 9, 5, 0, "a frame with flags that its type cannot have (0)" },
		{ 9, 5, HD_FRAME_MINE | HD_FRAME_CRC, "a frame with flags that its type cannot have (3)" },
		{ 0, 6, 1, "a frame whose reserved bytes are not 0 (1)" },
		{ 0, 7, 1, "a frame whose reserved bytes are not 0 (256)" },
		{ 0, 12, 1, "a frame with a field that its type does not use (1)" },
		{ 0, 16, 1, "a frame with a field that its type does not use (1)" },
		{ 3, 24, 1, "a frame with a field that its type does not use (4)" },
		{ 10, 36, 1, "a frame with a field that its type does not use (9)" },
		{ 0, 32, 79, "a frame of a length that its type cannot have (79)" },
		{ 0, 32, 81, "a frame of a length that its type cannot have (81)" },
		{ 5, 32, 1, "a frame of a length that its type cannot have (1048577)" },
		{ 6, 32, 0, "a frame of a length that its type cannot have (0)" },
		{ 9, 32, 1, "a frame of a length that its type cannot have (1)" },
		{ 14, 32, 3, "a frame of a length that its type cannot have (3)" },
		{ 14, 32, 205, "a frame of a length that its type cannot have (205)" },
		{ 0, 40, 9, "a frame with a payload checksum but not the flag of it (9)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t bytes[HD_FRAME_HEADER];
		struct hd_frame got, before;
		struct hd_diag diag = { "" };
		memset(&got, 0x5a, sizeof got);
		memset(&before, 0x5a, sizeof before);
		hd_frame_put(&good[cases[i].of], bytes);
		bytes[cases[i].at] = cases[i].value;
		sign(bytes);
		CHECK(hd_frame_get(bytes, &got, &diag) == HD_E_PROTOCOL, "case %zu: %s", i, cases[i].says);
		assert_string_equal(diag.text, cases[i].says);
		CHECK(!memcmp(&got, &before, sizeof got), "case %zu: the frame is touched", i);
	}
}

static void a_type_without_a_row_has_no_name(void **state)
{
	static const uint32_t none[] = { 0, 14, 255, 1u << 28, UINT32_MAX };

	(void)state;
	assert_string_equal(hd_frame_name(HD_FRAME_BYE), "BYE");
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_string_equal(hd_frame_name((enum hd_frame_type)none[i]), "?");
}

static void payloads_have_the_lengths_of_the_frames_that_carry_them(void **state)
{
	(void)state;
	assert_int_equal(hd_greeting_len, 80);
	assert_int_equal(hd_epoch_len, 16);
	assert_int_equal(hd_open_len, 32);
	assert_int_equal(hd_cancel_len, 4);
	assert_int_equal(hd_cancelled_len, 8);
	assert_int_equal(hd_grant_len, 8);
	assert_int_equal(hd_credit_len, 8);
	assert_int_equal(hd_ping_len, 8);
	assert_int_equal(hd_pong_len, 24);
}

static void a_greeting_lies_in_the_order_of_its_table(void **state)
{
	struct hd_greeting_payload hello = { .least = 1, .greatest = 2, .worker = 3, .role = 2,
		.detect_ms = 1000 }, got;
	uint8_t bytes[80], want[80] = { 1, 0, 2, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0xe8, 3 };
	struct hd_diag diag = { "" };

	(void)state;
	for (uint8_t i = 0; i < 64; i++) {
		want[16 + i] = i;
		(i < 16 ? &hello.job : i < 32 ? &hello.job_hash : i < 48 ? &hello.kernels :
			&hello.nonce)->byte[i % 16] = i;
	}
	hd_greeting_put(&hello, bytes);
	assert_memory_equal(bytes, want, sizeof want);
	assert_int_equal(hd_greeting_get(bytes, &got, &diag), HD_OK);
	assert_memory_equal(got.nonce.byte, want + 64, 16);
	hd_put32(bytes + 12, 9);
	assert_int_equal(hd_greeting_get(bytes, &got, NULL), HD_E_PROTOCOL);
	hd_put32(bytes + 12, 600001);
	assert_int_equal(hd_greeting_get(bytes, &got, NULL), HD_E_PROTOCOL);
	hd_put32(bytes + 12, 600000);
	assert_int_equal(hd_greeting_get(bytes, &got, NULL), HD_OK);
	bytes[8] = 4;
	assert_int_equal(hd_greeting_get(bytes, &got, &diag), HD_E_PROTOCOL);
	assert_string_equal(diag.text, "a payload whose role is out of range");
}

static void values_outside_their_closed_set_are_refused(void **state)
{
	struct hd_open_payload open;
	struct hd_cancel_payload cancel;
	struct hd_grant_payload grant;
	struct hd_credit_payload credit;
	uint8_t bytes[32] = { 0 };

	(void)state;
	assert_int_equal(hd_open_get(bytes, &open, NULL), HD_OK);
	hd_put32(bytes + 4, 3);
	assert_int_equal(hd_open_get(bytes, &open, NULL), HD_E_PROTOCOL);
	hd_put32(bytes, 0);
	assert_int_equal(hd_cancel_get(bytes, &cancel, NULL), HD_E_PROTOCOL);
	hd_put32(bytes, 4);
	assert_int_equal(hd_cancel_get(bytes, &cancel, NULL), HD_E_PROTOCOL);
	hd_put32(bytes + 4, 0);
	assert_int_equal(hd_grant_get(bytes, &grant, NULL), HD_E_PROTOCOL);
	memset(bytes, 255, 8);
	assert_int_equal(hd_grant_get(bytes, &grant, NULL), HD_E_PROTOCOL);
	memset(bytes, 0, 8);
	assert_int_equal(hd_credit_get(bytes, &credit, NULL), HD_E_PROTOCOL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_has_the_bytes_of_the_drawing),
		cmocka_unit_test(every_type_reads_back_as_it_was_written),
		cmocka_unit_test(any_flipped_bit_of_a_header_is_refused),
		cmocka_unit_test(a_header_that_means_nothing_is_refused_with_the_rule),
		cmocka_unit_test(a_type_without_a_row_has_no_name),
		cmocka_unit_test(payloads_have_the_lengths_of_the_frames_that_carry_them),
		cmocka_unit_test(a_greeting_lies_in_the_order_of_its_table),
		cmocka_unit_test(values_outside_their_closed_set_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
