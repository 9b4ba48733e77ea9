#include "base/json_writer.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "tests/check.h"

static void a_record_is_written_as_the_format_says(void **state)
{
	char space[400];
	struct hd_text text;
	struct hd_json_writer w;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", 200);
	hd_json_put_f32(&w, "lr", 0.0003f);
	hd_json_put_f64(&w, "t", 12.345);
	hd_json_put_u64(&w, "seed", UINT64_MAX);
	hd_json_put_bool(&w, "on", true);
	hd_json_put_bool(&w, "off", false);
	hd_json_put_null(&w, "digest");
	hd_json_open_array(&w, "shape");
	hd_json_put_i64(&w, NULL, -3);
	hd_json_put_i64(&w, NULL, INT64_MIN);
	hd_json_open_object(&w, NULL);
	hd_json_close(&w);
	hd_json_open_array(&w, NULL);
	hd_json_close(&w);
	assert_false(hd_json_done(&w));
	hd_json_close(&w);
	hd_json_put_text(&w, "name", "x");
	hd_json_close(&w);
	assert_true(hd_json_done(&w));
	assert_string_equal(text.at,
		"{\"step\":200,\"lr\":0.0003,\"t\":12.345,\"seed\":\"18446744073709551615\",\"on\":true,"
		"\"off\":false,"
		"\"digest\":null,\"shape\":[-3,-9223372036854775808,{},[]],\"name\":\"x\"}");
}

static void not_finite_floats_are_words(void **state)
{
	char space[100];
	struct hd_text text;
	struct hd_json_writer w;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_json_writer_init(&w, &text);
	hd_json_open_array(&w, NULL);
	hd_json_put_f32(&w, NULL, NAN);
	hd_json_put_f32(&w, NULL, -INFINITY);
	hd_json_put_f64(&w, NULL, (double)INFINITY);
	hd_json_close(&w);
	assert_string_equal(text.at, "[\"nan\",\"-inf\",\"inf\"]");
}

/* Strings of every byte come back through the reader; bad UTF-8 comes back as U+FFFD. */
static void strings_of_every_byte_survive_the_reader(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (int c = 1; c < 256; c++) {
		char bytes[] = { 'a', (char)c, 'b', '\0' };
		struct hd_text text;
		struct hd_json_writer w;
		const struct hd_json *json;
		const char *back;
		struct hd_diag diag = { "" };
		hd_text_init(&text, &arena);
		hd_json_writer_init(&w, &text);
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, bytes, bytes);
		hd_json_close(&w);
		CHECK(hd_json_parse(&arena, "t", text.at, text.len, &json, &diag) == HD_OK, "byte %d: %s", c,
			diag.text);
		const char *want = c < 0x80 ? bytes : "a\xef\xbf\xbd" "b";
		CHECK(strcmp(hd_json_key(json, 0), want) == 0, "byte %d", c);
		CHECK(hd_json_get_text(json, want, &back, &diag) == HD_OK && strcmp(back, want) == 0,
			"byte %d", c);
		CHECK(strspn(text.at, "{}\":") > 0 && !strchr(text.at, '<') &&
			!strpbrk(text.at, "\n\r\t\x7f"), "byte %d: %s", c, text.at);
	}
	hd_arena_finish(&arena);
}

static void characters_beyond_ascii_stay_as_they_are(void **state)
{
	char space[100];
	struct hd_text text;
	struct hd_json_writer w;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_json_writer_init(&w, &text);
	hd_json_open_array(&w, NULL);
	hd_json_put_bytes(&w, NULL, "\xc3\xa9\xf0\x9f\x99\x82\0!\xc3", 9);
	hd_json_close(&w);
	assert_string_equal(text.at, "[\"\xc3\xa9\xf0\x9f\x99\x82\\u0000!\\ufffd\"]");
}

static void a_text_too_small_is_not_done(void **state)
{
	char space[12];
	struct hd_text text;
	struct hd_json_writer w;
	(void)state;

	hd_text_fixed(&text, space, sizeof space);
	hd_json_writer_init(&w, &text);
	hd_json_open_array(&w, NULL);
	hd_json_put_text(&w, NULL, "more than there is");
	hd_json_close(&w);
	assert_false(hd_json_done(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_written_as_the_format_says),
		cmocka_unit_test(not_finite_floats_are_words),
		cmocka_unit_test(strings_of_every_byte_survive_the_reader),
		cmocka_unit_test(characters_beyond_ascii_stay_as_they_are),
		cmocka_unit_test(a_text_too_small_is_not_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
