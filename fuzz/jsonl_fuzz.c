/* A line that the JSON library reads is read here, with the same number, text or list under a name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool same_number(const struct hd_row_cell *c, uint64_t i, const struct hd_json *j)
{
	int64_t whole;
	double real;
	bool truth;

	switch (hd_json_kind(j)) {
	case HD_JSON_BOOL:
		return !hd_json_as_bool(j, &truth, NULL) && (c->kind == HD_ROW_WHOLE ?
			c->number[i].whole == truth : fabs(c->number[i].real - truth) < 0.5);
	case HD_JSON_INT:
		return !hd_json_as_i64(j, INT64_MIN, INT64_MAX, &whole, NULL) && (c->kind == HD_ROW_WHOLE ?
			c->number[i].whole == whole : !memcmp(&c->number[i].real, &(double){ (double)whole },
			8));
	case HD_JSON_REAL:
		return !hd_json_as_f64(j, &real, NULL) && c->kind == HD_ROW_REAL &&
			!memcmp(&c->number[i].real, &real, sizeof real);
	case HD_JSON_NULL: case HD_JSON_TEXT: case HD_JSON_ARRAY: case HD_JSON_OBJECT:
		return false;
	}
	return false;
}

static void compare(const struct hd_row_cell *c, const struct hd_json *j)
{
	const char *text;

	if (!j || hd_json_kind(j) == HD_JSON_NULL) {
		if (c->kind != HD_ROW_NONE)
			abort();
	} else if (hd_json_kind(j) == HD_JSON_TEXT) {
		if (hd_json_as_text(j, &text, NULL) || c->kind != HD_ROW_TEXT || strlen(text) != c->len ||
			memcmp(text, c->text, c->len) != 0)
			abort();
	} else if (hd_json_kind(j) != HD_JSON_ARRAY) {
		if (c->rank || c->n != 1 || !same_number(c, 0, j))
			abort();
	} else if (c->rank == 1) {
		if (c->n != hd_json_count(j))
			abort();
		for (size_t i = 0; i < c->n; i++)
			if (!same_number(c, i, hd_json_item(j, i)))
				abort();
	} else if (!c->rank || c->dim[0] != (int64_t)hd_json_count(j)) {
		abort();
	}
}

static void first_line(const uint8_t *bytes, size_t len)
{
	static const char *const wanted[] = { "a", "a.b" };
	struct hd_row_cell cells[2];
	struct hd_jsonl j;
	struct hd_arena arena;
	const struct hd_json *json = NULL;

	hd_arena_init(&arena, 64 << 20);
	const bool known = !hd_json_parse(&arena, "line", (const char *)bytes, len, &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT;
	hd_jsonl_init(&j, bytes, len, "line", NULL, 0);
	const bool good = hd_jsonl_more(&j) && !hd_jsonl_next(&j, cells, NULL);
	if (known && !memchr(bytes, '\n', len) && !good)
		abort();
	hd_jsonl_finish(&j);
	hd_jsonl_init(&j, bytes, len, "line", wanted, 2);
	if (hd_jsonl_more(&j) && !hd_jsonl_next(&j, cells, NULL)) {
		if (!good)
			abort();
		/* a member may be "a.b", or b in a */
		if (known && !hd_json_find(json, "a.b"))
			compare(&cells[0], hd_json_find(json, "a"));
	}
	hd_jsonl_finish(&j);
	hd_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_row_cell cell;
	struct hd_jsonl j;
	uint64_t n = 0;

	first_line(bytes, len);
	hd_jsonl_init(&j, bytes, len, "input", (const char *const[]){ "a" }, 1);
	while (hd_jsonl_more(&j) && !hd_jsonl_next(&j, &cell, NULL)) {
		n++;
		if (j.at > j.end || j.begin > j.at || n > len || (cell.kind == HD_ROW_TEXT &&
			cell.text[cell.len]))
			abort();
	}
	hd_jsonl_finish(&j);
	return 0;
}
