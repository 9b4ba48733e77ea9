#include "data/fair_text.h"

#include <math.h>
#include <stddef.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "data/ranges.h"

static const struct { const char *key; size_t at; } numbers[] = {
	{ "demanded", offsetof(struct hd_fair_part, demanded) },
	{ "delivered", offsetof(struct hd_fair_part, delivered) },
	{ "waited_s", offsetof(struct hd_fair_part, waited_s) },
	{ "service_s", offsetof(struct hd_fair_part, service_s) },
	{ "service_p99_s", offsetof(struct hd_fair_part, service_p99_s) },
};
enum { NNUMBERS = sizeof numbers / sizeof *numbers };
#define MOST 1e18                         /* of a number that means something */

void hd_fair_put(const struct hd_fair_part *part, struct hd_text *text)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	for (size_t i = 0; i < NNUMBERS; i++)
		hd_json_put_f64(&w, numbers[i].key, *(const double *)((const char *)part + numbers[i].at));
	hd_json_open_array(&w, "file_service_s");
	for (uint32_t g = 0; g < HD_FAIR_FILES; g++)
		hd_json_put_f64(&w, NULL, part->file_service_s[g]);
	hd_json_close(&w);
	hd_json_put_i64(&w, "depth", part->depth);
	hd_json_put_i64(&w, "knee", part->knee);
	hd_json_close(&w);
}

static enum hd_err number(const struct hd_json *json, double *out, struct hd_diag *diag)
{
	enum hd_err err = hd_json_as_f64(json, out, diag);

	return !err && !(isfinite(*out) && *out >= 0 && *out <= MOST) ? HD_E_PROTOCOL : err;
}

static enum hd_err depth_of(const struct hd_json *json, const char *key, uint32_t *out, struct hd_diag *diag)
{
	int64_t v = 0;
	enum hd_err err = hd_json_get_i64(json, key, 1, HD_RANGES_DEPTH, &v, diag);

	*out = (uint32_t)v;
	return err;
}

static enum hd_err read_all(const struct hd_json *json, struct hd_fair_part *part, struct hd_diag *diag)
{
	const struct hd_json *files = NULL, *one;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < NNUMBERS && !err; i++) {
		one = hd_json_find(json, numbers[i].key);
		err = one ? number(one, (double *)((char *)part + numbers[i].at), diag) : HD_E_PROTOCOL;
	}
	if (!err)
		err = hd_json_get(json, "file_service_s", HD_JSON_ARRAY, &files, diag);
	if (!err && hd_json_count(files) != HD_FAIR_FILES)
		err = HD_E_PROTOCOL;
	for (uint32_t g = 0; g < HD_FAIR_FILES && !err; g++)
		err = number(hd_json_item(files, g), &part->file_service_s[g], diag);
	err = err ? err : depth_of(json, "depth", &part->depth, diag);
	return err ? err : depth_of(json, "knee", &part->knee, diag);
}

enum hd_err hd_fair_parse(const char *text, size_t len, struct hd_fair_part *part, struct hd_diag *diag)
{
	const struct hd_json *json = NULL;
	struct hd_diag why = { "" };
	struct hd_arena arena;

	*part = (struct hd_fair_part){ 0 };
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_json_parse(&arena, "a window of reading", text, len, &json, &why);
	if (!err && hd_json_kind(json) != HD_JSON_OBJECT)
		err = HD_E_PROTOCOL;
	if (!err)
		err = read_all(json, part, &why);
	hd_arena_finish(&arena);
	if (err == HD_OK || err == HD_E_NOMEM)
		return err;
	return hd_fail(diag, HD_E_PROTOCOL, "a window of reading is not one: %.200s",
		why.text[0] ? why.text : "a number is missing, or beyond its bounds");
}
