/* json_fuzz -- any bytes are refused, or read into a tree whose printed form reads back
 * and prints to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct hd_json_writer *w, const char *key, const struct hd_json *json)
{
	bool truth;
	int64_t integer;
	double real;
	const char *text;

	if (hd_json_as_bool(json, &truth, NULL) == HD_OK)
		hd_json_put_bool(w, key, truth);
	else if (hd_json_as_i64(json, INT64_MIN, INT64_MAX, &integer, NULL) == HD_OK)
		hd_json_put_i64(w, key, integer);
	else if (hd_json_as_text(json, &text, NULL) == HD_OK)
		hd_json_put_text(w, key, text);
	else if (hd_json_as_f64(json, &real, NULL) == HD_OK)
		hd_json_put_f64(w, key, real);
	else if (hd_json_kind(json) == HD_JSON_NULL)
		hd_json_put_null(w, key);
	else {
		if (hd_json_kind(json) == HD_JSON_OBJECT)
			hd_json_open_object(w, key);
		else
			hd_json_open_array(w, key);
		for (size_t i = 0; i < hd_json_count(json); i++)
			print(w, hd_json_key(json, i), hd_json_item(json, i));
		hd_json_close(w);
	}
}

static struct hd_text printed(struct hd_arena *arena, const struct hd_json *json)
{
	struct hd_text text;
	struct hd_json_writer w;

	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	print(&w, NULL, json);
	if (!hd_json_done(&w))
		abort();
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hd_json *json = NULL, *again = NULL;
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_json_parse(&arena, "f", (const char *)data, size, &json, &diag);
	if ((err == HD_OK) != (json != NULL) || (err && !diag.text[0]))
		abort();
	if (json) {
		struct hd_text one = printed(&arena, json);
		if (hd_json_parse(&arena, "f", one.at, one.len, &again, &diag))
			abort();
		struct hd_text two = printed(&arena, again);
		if (one.len != two.len || memcmp(one.at, two.at, one.len) != 0)
			abort();
	}
	hd_arena_finish(&arena);
	return 0;
}
