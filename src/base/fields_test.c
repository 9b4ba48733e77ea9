#include "base/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { HERE = 1, THERE = 2 };

#define PART_FIELDS(X) X(int64_t, inner, .about = "of the part", .negative = true)
struct part { HD_FIELDS_MEMBERS(PART_FIELDS) };
static const struct hd_fields_row part_rows[] = {
#define X(...) HD_FIELDS_ROW(struct part, __VA_ARGS__)
	PART_FIELDS(X)
#undef X
};
static const struct hd_fields part_fields = HD_FIELDS("part", "a part", struct part, part_rows);

#define THING_FIELDS(X) \
	X(int64_t, id, .about = "number", .head = "thing", .width = 6) \
	X(const char *, name, .about = "name", .head = "name", .width = 6) \
	X(uint64_t, done, .about = "done", .unit = "steps", .head = "done", .width = 8, .total = "all") \
	X(uint32_t, all, .about = "all") \
	X(double, v, .as = "v_ms", .about = "time", .unit = "ms", .head = "v ms", .width = 8) \
	X(double, w, .about = "two digits", .digits = 2, .fixed = true) \
	X(bool, on, .where = HERE, .about = "whether") \
	X(int64_t, code, .where = THERE, .rule = HD_FIELDS_NULL_BELOW_0, .about = "code") \
	X(int64_t, pid, .rule = HD_FIELDS_LEFT_OUT_AT_0, .about = "process") \
	X(const char *, late, .may_lack = true, .about = "new") \
	X(struct part, part, .of = &part_fields) \
	X(struct hd_hash, hash, .about = "hash") \
	X(struct hd_fields_texts, names, .about = "names") \
	X(struct hd_fields_counts, counts, .about = "counts") \
	X(struct hd_fields_list, list, .of = &part_fields, .about = "parts") \
	X(const char *, why, .about = "why", .head = "why")
struct thing { HD_FIELDS_MEMBERS(THING_FIELDS) };
static const struct hd_fields_row thing_rows[] = {
#define X(...) HD_FIELDS_ROW(struct thing, __VA_ARGS__)
	THING_FIELDS(X)
#undef X
};
static const struct hd_fields thing_fields = HD_FIELDS("thing", "a thing", struct thing, thing_rows);

static const char *const two_names[] = { "a", "b" };
static const struct hd_fields_count two_counts[] = { { "x", 1 }, { "y", 2 } };
static const struct part two_parts[] = { { 5 }, { -6 } };
static struct thing some(void)
{
	return (struct thing){ .id = 7, .name = "n", .done = 3, .all = 40, .v = 1.5, .w = 2, .on = true,
		.code = -1, .late = "", .part = { -9 }, .names = { two_names, 2 },
		.counts = { two_counts, 2 }, .list = { .at = two_parts, .n = 2 }, .why = "because" };
}

static struct hd_arena arena;

static const char *json_of(const struct thing *t, unsigned where)
{
	static struct hd_text text;
	struct hd_json_writer w;

	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_fields_put_object(&thing_fields, where, t, NULL, &w);
	assert_true(hd_json_done(&w));
	return text.at;
}

#define HASH0 "\"hash\":\"00000000000000000000000000000000\""
#define LISTS "\"names\":[\"a\",\"b\"],\"counts\":{\"x\":1,\"y\":2},\"list\":[{\"inner\":5},{\"inner\":-6}]"

static void json_follows_the_rows(void **state)
{
	struct thing t = some();
	(void)state;

	assert_string_equal(json_of(&t, HERE), "{\"id\":7,\"name\":\"n\",\"done\":3,\"all\":40,\"v_ms\":1.5,"
		"\"w\":2,\"on\":true,\"late\":\"\",\"inner\":-9," HASH0 "," LISTS ",\"why\":\"because\"}");
	t.pid = 12;
	t.v = NAN;
	assert_string_equal(json_of(&t, THERE), "{\"id\":7,\"name\":\"n\",\"done\":3,\"all\":40,"
		"\"v_ms\":\"nan\",\"w\":2,\"code\":null,\"pid\":12,\"late\":\"\",\"inner\":-9,"
		HASH0 "," LISTS
		",\"why\":\"because\"}");
	t.code = 0;
	assert_non_null(strstr(json_of(&t, THERE), "\"code\":0,"));
}

static void fill_two(void *user, struct hd_json_writer *w)
{
	(void)user;
	hd_fields_put_object(&part_fields, 0, &two_parts[1], NULL, w);
}

static void a_list_may_be_written_one_at_a_time(void **state)
{
	struct thing t = some();
	(void)state;

	t.list = (struct hd_fields_list){ .fill = fill_two };
	assert_non_null(strstr(json_of(&t, HERE), "\"list\":[{\"inner\":-6}]"));
}

static enum hd_err read(const char *text, unsigned where, struct thing *t, struct hd_diag *diag)
{
	const struct hd_json *json;

	CHECK(hd_json_parse(&arena, "text", text, strlen(text), &json, diag) == HD_OK, "%s", diag->text);
	return hd_fields_read(&thing_fields, where, json, t, diag);
}

static void what_was_written_is_read_back(void **state)
{
	struct thing t = some(), back = { .code = -1, .w = 99 };
	struct hd_diag diag = { "" };
	(void)state;

	t.late = "now";
	CHECK(read(json_of(&t, HERE), HERE, &back, &diag) == HD_OK, "%s", diag.text);
	assert_true(back.id == 7 && back.done == 3 && back.all == 40 && back.on && back.part.inner == -9 &&
		back.v <= 1.5 && back.v >= 1.5 && back.w <= 2 && back.pid == 0 && back.code == -1);
	assert_string_equal(back.name, "n");
	assert_string_equal(back.late, "now");
	assert_true(back.list.n == 0 && back.names.n == 0);
}

static void what_is_missing_or_wrong_is_named(void **state)
{
	struct thing back = { 0 };
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_not_equal(read("{\"id\":7,\"name\":\"n\"}", HERE, &back, &diag), HD_OK);
	assert_non_null(strstr(diag.text, "done"));
	diag.text[0] = '\0';
	assert_int_not_equal(read("{\"id\":-7}", HERE, &back, &diag), HD_OK);
	assert_non_null(strstr(diag.text, "id"));
	diag.text[0] = '\0';
	assert_int_not_equal(read("{\"id\":7,\"name\":\"n\",\"done\":1,\"all\":4294967296}", HERE, &back,
		&diag), HD_OK);
	assert_non_null(strstr(diag.text, "all"));
	/* what earlier programs do not send may lack; what the other side has not is not asked for */
	CHECK(read("{\"id\":7,\"name\":\"n\",\"done\":1,\"all\":4,\"v_ms\":1,\"w\":1,\"on\":true,"
		"\"inner\":-1,\"why\":\"\"}", HERE, &back, &diag) == HD_OK, "%s", diag.text);
	assert_string_equal(back.late, "");
}

static void lines_stand_below_their_heads(void **state)
{
	struct thing t = some();
	struct hd_text text;
	(void)state;

	hd_text_init(&text, &arena);
	hd_fields_head(&thing_fields, &text);
	hd_fields_line(&thing_fields, &t, &text);
	t.name = "";
	t.v = INFINITY;
	hd_fields_line(&thing_fields, &t, &text);
	assert_string_equal(text.at, " thing  name       done     v ms  why\n"
		"     7  n          3/40      1.5  because\n"
		"     7  -          3/40        -  because\n");
}

static void a_sentence_has_values_in_it(void **state)
{
	struct thing t = some();
	struct hd_text text;
	(void)state;

	hd_text_init(&text, &arena);
	hd_fields_say(&thing_fields, &t, "{name} at {done}/{all}, {v_ms} ms and {w}: {on}", &text);
	assert_string_equal(text.at, "n at 3/40, 1.5 ms and 2.00: yes");
}

static void schema_and_document_name_every_key_that_is_written(void **state)
{
	static const unsigned wheres[] = { HERE, THERE };
	struct thing t = some();
	(void)state;

	t.pid = 3;
	for (int i = 0; i < 2; i++) {
		const struct hd_json *written, *schema, *properties = NULL, *required = NULL;
		struct hd_json_writer w;
		struct hd_diag diag = { "" };
		struct hd_text text, document;
		const char *json = json_of(&t, wheres[i]);
		assert_int_equal(hd_json_parse(&arena, "j", json, strlen(json), &written, &diag), HD_OK);
		hd_text_init(&text, &arena);
		hd_json_writer_init(&w, &text);
		hd_json_open_object(&w, NULL);
		hd_fields_schema(&thing_fields, wheres[i], &w);
		hd_json_close(&w);
		assert_int_equal(hd_json_parse(&arena, "s", text.at, text.len, &schema, &diag), HD_OK);
		assert_int_equal(hd_json_get(schema, "properties", HD_JSON_OBJECT, &properties, &diag),
			HD_OK);
		assert_int_equal(hd_json_get(schema, "required", HD_JSON_ARRAY, &required, &diag), HD_OK);
		assert_int_equal(hd_json_count(properties), hd_json_count(written));
		assert_int_equal(hd_json_count(required), hd_json_count(written) - 1);       /* pid */
		hd_text_init(&document, &arena);
		hd_fields_document(&thing_fields, wheres[i], &document);
		for (size_t k = 0; k < hd_json_count(written); k++) {
			char cell[80];
			assert_string_equal(hd_json_key(properties, k), hd_json_key(written, k));
			snprintf(cell, sizeof cell, "| `%s` | ", hd_json_key(written, k));
			CHECK(strstr(document.at, cell), "%s", cell);
		}
		assert_non_null(strstr(document.at, "`list`: a part\n"));
		assert_non_null(strstr(document.at, "| `pid` | integer, may be missing |"));
	}
}

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_follows_the_rows),
		cmocka_unit_test(a_list_may_be_written_one_at_a_time),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(what_is_missing_or_wrong_is_named),
		cmocka_unit_test(lines_stand_below_their_heads),
		cmocka_unit_test(a_sentence_has_values_in_it),
		cmocka_unit_test(schema_and_document_name_every_key_that_is_written),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
