#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "tests/check.h"

static struct hd_arena arena;

static int start(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static enum hd_err parse(const char *text, const struct hd_json **json, struct hd_diag *diag)
{
	diag->text[0] = '\0';
	return hd_json_parse(&arena, "f.json", text, strlen(text), json, diag);
}

static const struct hd_json *must(const char *text)
{
	struct hd_diag diag;
	const struct hd_json *json = NULL;

	CHECK(parse(text, &json, &diag) == HD_OK, "%s", diag.text);
	return json;
}

static const char manifest[] =
	"{\"version\": 1, \"seed\": \"18446744073709551615\", \"small\": 7, \"lr\": 2.5e-1, \"loss\": "
	"\"nan\", \"low\": \"-inf\",\n"
	" \"ok\": true, \"none\": null, \"name\": \"t\\u00e9 \\n\", \"tensors\": [{\"rank\": \"two\"}, [], "
	"{\"shape\": [3, -4]}]}";

static void values_are_read_as_their_types(void **state)
{
	const struct hd_json *json = must(manifest), *tensors, *shape;
	struct hd_diag diag = { "" };
	int64_t i = 0;
	uint64_t u = 0;
	double d = 0;
	bool b = false;
	const char *text = NULL;
	(void)state;

	assert_true(hd_json_get_i64(json, "version", 1, 1, &i, &diag) == HD_OK && i == 1);
	assert_true(hd_json_get_u64(json, "seed", UINT64_MAX, &u, &diag) == HD_OK && u == UINT64_MAX);
	assert_true(hd_json_get_u64(json, "small", 7, &u, &diag) == HD_OK && u == 7);
	assert_true(hd_json_get_f64(json, "lr", &d, &diag) == HD_OK && d == 0.25);
	assert_true(hd_json_get_f64(json, "small", &d, &diag) == HD_OK && d == 7);
	assert_true(hd_json_get_f64(json, "loss", &d, &diag) == HD_OK && isnan(d));
	assert_true(hd_json_get_f64(json, "low", &d, &diag) == HD_OK && isinf(d) && d < 0);
	assert_true(hd_json_get_bool(json, "ok", &b, &diag) == HD_OK && b);
	assert_true(hd_json_kind(hd_json_find(json, "none")) == HD_JSON_NULL);
	assert_true(hd_json_get_text(json, "name", &text, &diag) == HD_OK);
	assert_string_equal(text, "t\xc3\xa9 \n");
	assert_true(hd_json_get(json, "tensors", HD_JSON_ARRAY, &tensors, &diag) == HD_OK &&
		hd_json_count(tensors) == 3);
	assert_true(hd_json_get(hd_json_item(tensors, 2), "shape", HD_JSON_ARRAY, &shape, &diag) == HD_OK);
	assert_true(hd_json_as_i64(hd_json_item(shape, 1), -4, 4, &i, &diag) == HD_OK && i == -4);
	assert_string_equal(diag.text, "");
}

static void members_keep_the_order_of_the_text(void **state)
{
	static const char *const want[] = { "version", "seed", "small", "lr", "loss", "low", "ok", "none",
		"name", "tensors" };
	const struct hd_json *json = must(manifest);
	(void)state;

	assert_int_equal(hd_json_count(json), 10);
	for (size_t i = 0; i < 10; i++)
		assert_string_equal(hd_json_key(json, i), want[i]);
	assert_null(hd_json_key(must("[1]"), 0));
	assert_int_equal(hd_json_count(hd_json_item(must("[5]"), 0)), 0);
	assert_null(hd_json_find(json, "Seed"));
	assert_null(hd_json_find(must("[1]"), "a"));
}

#define REFUSES(call, message)                                               \
	do {                                                                  \
		struct hd_diag diag = { "" };                                 \
		assert_int_equal(call, HD_E_INPUT);                           \
		assert_string_equal(diag.text, message);                      \
	} while (0)

static void wrong_types_and_ranges_name_the_value(void **state)
{
	const struct hd_json *json = must(manifest), *tensors = hd_json_find(json, "tensors");
	int64_t i = 99;
	uint64_t u = 99;
	double d = 99;
	bool b = false;
	const char *text = "same";
	(void)state;

	REFUSES(hd_json_get_i64(hd_json_item(tensors, 0), "rank", 0, 8, &i, &diag),
		"f.json: .tensors[0].rank is a string, not an integer");
	REFUSES(hd_json_get_i64(hd_json_item(tensors, 1), "rank", 0, 8, &i, &diag),
		"f.json: .tensors[1] is an array, not an object");
	REFUSES(hd_json_get_i64(hd_json_item(tensors, 2), "rank", 0, 8, &i, &diag),
		"f.json: .tensors[2] lacks the member \"rank\"");
	REFUSES(hd_json_get_i64(json, "version", 2, 3, &i, &diag),
		"f.json: .version is 1, not between 2 and 3");
	REFUSES(hd_json_get_u64(json, "name", 9, &u, &diag),
		"f.json: .name is \"t\xc3\xa9 \n\", not digits of a number up to 9");
	REFUSES(hd_json_get_u64(json, "seed", 9, &u, &diag),
		"f.json: .seed is \"18446744073709551615\", not digits of a number up to 9");
	REFUSES(hd_json_get_u64(json, "small", 6, &u, &diag), "f.json: .small is 7, not between 0 and 6");
	REFUSES(hd_json_get_u64(json, "ok", 6, &u, &diag),
		"f.json: .ok is a boolean, not a whole number or a string of digits");
	REFUSES(hd_json_get_f64(json, "name", &d, &diag),
		"f.json: .name is a string, not a number, \"nan\", \"inf\" or \"-inf\"");
	REFUSES(hd_json_get_bool(json, "none", &b, &diag), "f.json: .none is null, not a boolean");
	REFUSES(hd_json_get_text(json, "lr", &text, &diag), "f.json: .lr is a real number, not a string");
	REFUSES(hd_json_as(must("[]"), HD_JSON_OBJECT, &diag),
		"f.json: the whole is an array, not an object");
	assert_true(i == 99 && u == 99 && d == 99 && !b);
	assert_string_equal(text, "same");
}

static void negative_and_suffixed_texts_are_no_u64(void **state)
{
	uint64_t u = 99;
	(void)state;

	REFUSES(hd_json_as_u64(hd_json_item(must("[-1]"), 0), 9, &u, &diag),
		"f.json: [0] is -1, not between 0 and 9");
	REFUSES(hd_json_as_u64(hd_json_item(must("[\"3k\"]"), 0), 9999, &u, &diag),
		"f.json: [0] is \"3k\", not digits of a number up to 9999");
	REFUSES(hd_json_as_u64(hd_json_item(must("[\"\"]"), 0), 9999, &u, &diag),
		"f.json: [0] is \"\", not digits of a number up to 9999");
	assert_true(u == 99);
}

static void bad_texts_are_refused_at_their_place(void **state)
{
	static const struct { const char *text, *place; } rows[] = {
		{ "", "f.json:1:" }, { "{", "f.json:1:" }, { "1", "f.json:1:1:" }, { "{\"a\":1,\"a\":2}", "f.json:1:10:" },
		{ "[1,\n  tru]", "f.json:2:5:" }, { "[18446744073709551616]", "f.json:1:" }, { "[\"\xff\"]", "f.json:1:" },
		{ "[\"\\u0000\"]", "f.json:1:9: a text holds \\u0000, which is not read: take it out" },
		{ "{\"a\\u0000\":1}", "f.json:1:10: a text holds \\u0000, which is not read: take it out" }, { "{} x", "f.json:1:4:" }, { "[1,]", "f.json:1:4:" }, { "[01]", "f.json:1:" },
		{ "[nan]", "f.json:1:" }, { "[1e999]", "f.json:1:" }, { "{a:1}", "f.json:1:2:" }, { "[\"\n\"]", "f.json:" }, { "[\"\\ud800\"]", "f.json:1:" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct hd_json *json = NULL;
		struct hd_diag diag;
		CHECK(parse(rows[i].text, &json, &diag) == HD_E_INPUT && !json, "%s", rows[i].text);
		CHECK(strncmp(diag.text, rows[i].place, strlen(rows[i].place)) == 0, "%s: %s", rows[i].text,
			diag.text);
	}
}

static void a_byte_0_is_refused_wherever_it_stands(void **state)
{
	static const struct { const char *text; size_t len; const char *place; } rows[] = {
		{ "{\"a\":null\0}", 11, "f.json:1:10: a byte 0" }, { "[1\0]", 4, "f.json:1:3: a byte 0" },
		{ "[1,\n\"a\0b\"]", 10, "f.json:2:3: a byte 0" }, { "[\"\\\0\"]", 6, "f.json:1:4: a byte 0" },
		{ "{}\0", 3, "f.json:1:3: a byte 0" }, { "\0", 1, "f.json:1:1: a byte 0" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct hd_json *json = NULL;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_json_parse(&arena, "f.json", rows[i].text, rows[i].len, &json, &diag);
		CHECK(err == HD_E_INPUT && !strncmp(diag.text, rows[i].place, strlen(rows[i].place)),
			"%zu: %s", i, diag.text);
	}
}

static void nesting_is_allowed_to_64_and_no_deeper(void **state)
{
	char text[2 * HD_JSON_DEPTH + 3] = "";
	const struct hd_json *json;
	struct hd_diag diag;
	(void)state;

	memset(text, '[', HD_JSON_DEPTH);
	memset(text + HD_JSON_DEPTH, ']', HD_JSON_DEPTH);
	assert_int_equal(parse(text, &json, &diag), HD_OK);
	memset(text, '[', HD_JSON_DEPTH + 1);
	memset(text + HD_JSON_DEPTH + 1, ']', HD_JSON_DEPTH + 1);
	assert_int_equal(parse(text, &json, &diag), HD_E_INPUT);
	assert_string_equal(diag.text, "f.json:1:65: nested deeper than 64");
	text[1] = '\n';
	text[HD_JSON_DEPTH + 1] = '[';
	text[HD_JSON_DEPTH + 2] = '[';
	assert_int_equal(parse(text, &json, &diag), HD_E_INPUT);
	assert_string_equal(diag.text, "f.json:2:64: nested deeper than 64");
}

static void brackets_in_strings_do_not_nest(void **state)
{
	char text[400] = "[\"\\\"";
	(void)state;

	memset(text + 4, '[', 200);
	strncat(text, "\"]", 3);
	assert_int_equal(hd_json_count(must(text)), 1);
}

static void a_text_longer_than_the_limit_is_refused_unread(void **state)
{
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_json_parse(&arena, "f.json", "[]", (size_t)HD_JSON_BYTES + 1, &json, &diag),
		HD_E_INPUT);
}

static void a_text_that_needs_too_much_memory_is_a_bad_file(void **state)
{
	enum { N = 8 * 1024 * 1024 };
	char *text = malloc(N);
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	(void)state;

	assert_non_null(text);
	for (size_t i = 1; i < N - 2; i += 3) {
		text[i] = '{';
		text[i + 1] = '}';
		text[i + 2] = ',';
	}
	text[0] = '[';
	text[N - 2] = '1';
	text[N - 1] = ']';
	assert_int_equal(hd_json_parse(&arena, "f.json", text, N, &json, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "of memory"));
	free(text);
}

/* What lies last in the manifest and in each of its arrays. */
static bool is_whole(const struct hd_json *json)
{
	const struct hd_json *tensors = hd_json_find(json, "tensors"), *shape, *rank;
	const char *text;
	int64_t i;

	if (!tensors || hd_json_count(tensors) != 3)
		return false;
	shape = hd_json_find(hd_json_item(tensors, 2), "shape");
	rank = hd_json_find(hd_json_item(tensors, 0), "rank");
	return shape && rank && hd_json_as_text(rank, &text, NULL) == HD_OK && strcmp(text, "two") == 0
		&& hd_json_as_i64(hd_json_item(shape, 1), -4, -4, &i, NULL) == HD_OK;
}

/* Every request for memory fails once; nothing leaks (the address sanitizer looks), and
 * the answer is "out of memory" each time until all requests succeed. */
static void the_nth_allocation_may_fail_for_every_n(void **state)
{
	uint64_t n = 1;
	enum hd_err err;
	(void)state;

	do {
		struct hd_arena own;
		struct hd_diag diag = { "" };
		const struct hd_json *json = NULL;
		hd_arena_init(&own, 0);
		hd_alloc_arm(n);
		err = hd_json_parse(&own, "f.json", manifest, sizeof manifest - 1, &json, &diag);
		hd_alloc_arm(0);
		CHECK(err || is_whole(json), "n %d", (int)n);
		CHECK(err == HD_OK || (err == HD_E_NOMEM && !json && strstr(diag.text, "out of memory")),
			"n %d: %s", (int)n, diag.text);
		hd_arena_finish(&own);
	} while (err && n++ < 1000);
	CHECK(!err && n > 20, "n %d", (int)n);
}

static void an_arena_too_small_is_out_of_memory_for_every_size(void **state)
{
	enum hd_err err = HD_E_NOMEM;
	(void)state;

	for (size_t budget = 64; err && budget < 100000; budget += 64) {
		struct hd_arena own;
		struct hd_diag diag = { "" };
		const struct hd_json *json;
		hd_arena_init(&own, budget);
		err = hd_json_parse(&own, "f.json", manifest, sizeof manifest - 1, &json, &diag);
		CHECK(err || is_whole(json), "budget %zu", budget);
		CHECK(err == HD_OK || err == HD_E_NOMEM, "budget %zu: %s", budget, diag.text);
		hd_arena_finish(&own);
	}
	assert_int_equal(err, HD_OK);
}

static void a_member_that_is_not_known_is_refused_with_the_one_that_was_meant(void **state)
{
	static const char *const keys[] = { "priority", "scale", NULL };
	static const struct { const char *text, *says; } cases[] = {
		{ "{\"priority\":1}", "" },
		{ "{}", "" },
		{ "{\"priority\":1,\"prority\":2}", "f.json: .prority is no member that is known here; did you mean priority?" },
		{ "{\"colour\":2}", "f.json: .colour is no member that is known here: there are priority, scale" },
		{ "[1]", "f.json: the whole is an array, not an object" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_json_only(must(cases[i].text), keys, &diag);
		assert_string_equal(diag.text, cases[i].says);
		assert_int_equal(err, *cases[i].says ? HD_E_INPUT : HD_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_as_their_types),
		cmocka_unit_test(members_keep_the_order_of_the_text),
		cmocka_unit_test(wrong_types_and_ranges_name_the_value),
		cmocka_unit_test(a_member_that_is_not_known_is_refused_with_the_one_that_was_meant),
		cmocka_unit_test(negative_and_suffixed_texts_are_no_u64),
		cmocka_unit_test(bad_texts_are_refused_at_their_place),
		cmocka_unit_test(a_byte_0_is_refused_wherever_it_stands),
		cmocka_unit_test(nesting_is_allowed_to_64_and_no_deeper),
		cmocka_unit_test(brackets_in_strings_do_not_nest),
		cmocka_unit_test(a_text_longer_than_the_limit_is_refused_unread),
		cmocka_unit_test(a_text_that_needs_too_much_memory_is_a_bad_file),
		cmocka_unit_test(the_nth_allocation_may_fail_for_every_n),
		cmocka_unit_test(an_arena_too_small_is_out_of_memory_for_every_size),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
