#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/num.h"
#include "checkpoint/ckpt_int.h"

/* state.json: {"format":1,"step":"..","samples":"..","entries":[{"name","dtype","shape",
 * "values":[..],"bits":[..]}]}. Values are for people, bits (hex of each
 * element, highest byte first) for the reader; one that disagrees with the other is refused. */

enum { FORMAT = 1, MAX_ELEMS = 4096, ELEM_CAP = 8, NMEMBERS = 4, NENTRY_MEMBERS = 5 };

static void value_text(uint8_t dtype, const uint8_t *at, char out[HD_NUM_CAP])
{
	union { float f32; double f64; int32_t i32; int64_t i64; uint8_t u8; } v;

	memcpy(&v, at, hd_dtype_bytes((enum hd_dtype)dtype));
	switch ((enum hd_dtype)dtype) {
	case HD_F32: hd_num_print_f32(out, v.f32); break;
	case HD_F64: hd_num_print_f64(out, v.f64); break;
	case HD_I32: snprintf(out, HD_NUM_CAP, "%d", v.i32); break;
	case HD_I64: snprintf(out, HD_NUM_CAP, "%lld", (long long)v.i64); break;
	case HD_U8:  snprintf(out, HD_NUM_CAP, "%u", v.u8); break;
	}
}

/* Highest byte first, as people write numbers. */
static void bits_text(const uint8_t *at, size_t size, char out[2 * ELEM_CAP + 1])
{
	for (size_t i = 0; i < size; i++)
		snprintf(out + 2 * i, 3, "%02x", at[size - 1 - i]);
}

static bool bits_parse(const char *text, size_t size, uint8_t *at)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(text) != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		const char *high = strchr(digits, text[2 * i]), *low = strchr(digits, text[2 * i + 1]);
		if (!high || !low)
			return false;
		at[size - 1 - i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

static void put_entry(struct hd_json_writer *w, const struct hd_state_entry *e)
{
	size_t size = hd_dtype_bytes((enum hd_dtype)e->dtype), n = e->len_bytes / size;
	const uint8_t *at = e->at;
	char text[HD_NUM_CAP], bits[2 * ELEM_CAP + 1];

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", e->name);
	hd_json_put_text(w, "dtype", hd_dtype_text((enum hd_dtype)e->dtype));
	hd_json_open_array(w, "shape");
	for (int i = 0; i < e->rank; i++)
		hd_json_put_i64(w, NULL, e->dim[i]);
	hd_json_close(w);
	hd_json_open_array(w, "values");
	for (size_t i = 0; i < n; i++) {
		value_text(e->dtype, at + i * size, text);
		hd_json_put_text(w, NULL, text);
	}
	hd_json_close(w);
	hd_json_open_array(w, "bits");
	for (size_t i = 0; i < n; i++) {
		bits_text(at + i * size, size, bits);
		hd_json_put_text(w, NULL, bits);
	}
	hd_json_close(w);
	hd_json_close(w);
}

enum hd_err hd_ckpt_state_print(const struct hd_state *state, const struct hd_ckpt_info *info,
	struct hd_text *text, struct hd_diag *diag)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "format", FORMAT);
	hd_json_put_u64(&w, "step", info->step);
	hd_json_put_u64(&w, "samples", info->samples);
	hd_json_open_array(&w, "entries");
	for (uint32_t i = 0; i < state->nentries; i++) {
		const struct hd_state_entry *e = &state->entry[i];
		if (e->group != HD_STATE_RUN)
			continue;
		if (e->len_bytes / hd_dtype_bytes((enum hd_dtype)e->dtype) > MAX_ELEMS)
			return hd_fail(diag, HD_E_BUG,
				"state entry '%s' is too large to be a counter (at most %d elements)",
				e->name, MAX_ELEMS);
		put_entry(&w, e);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(text, "\n");
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for the counters of a checkpoint") : HD_OK;
}

static enum hd_err parse_shape(const struct hd_json *item, struct hd_state_entry *e, size_t *elems,
	struct hd_diag *diag)
{
	const struct hd_json *shape;
	char path[200];
	enum hd_err err = hd_json_get(item, "shape", HD_JSON_ARRAY, &shape, diag);

	if (!err && hd_json_count(shape) > HD_MAX_DIMS)
		err = hd_fail(diag, HD_E_INPUT, "%s has more than %d extents",
			hd_json_path(shape, path, sizeof path), HD_MAX_DIMS);
	*elems = 1;
	for (size_t i = 0; !err && i < hd_json_count(shape); i++) {
		err = hd_json_as_i64(hd_json_item(shape, i), 0, MAX_ELEMS, &e->dim[i], diag);
		*elems *= err ? 0 : (size_t)e->dim[i];
		if (!err && *elems > MAX_ELEMS)
			err = hd_fail(diag, HD_E_INPUT, "%s has more than %d elements",
				hd_json_path(shape, path, sizeof path), MAX_ELEMS);
		e->rank++;
	}
	return err;
}

static enum hd_err parse_values(const struct hd_json *item, const struct hd_state_entry *e, size_t elems,
	struct hd_diag *diag)
{
	size_t size = hd_dtype_bytes((enum hd_dtype)e->dtype);
	const struct hd_json *values, *bits;
	const char *value, *digits;
	char text[HD_NUM_CAP], path[200];
	enum hd_err err = hd_json_get(item, "values", HD_JSON_ARRAY, &values, diag);

	if (!err)
		err = hd_json_get(item, "bits", HD_JSON_ARRAY, &bits, diag);
	if (!err && (hd_json_count(values) != elems || hd_json_count(bits) != elems))
		err = hd_fail(diag, HD_E_INPUT, "%s does not hold %zu values",
			hd_json_path(item, path, sizeof path), elems);
	for (size_t i = 0; i < elems && !err; i++) {
		uint8_t *at = (uint8_t *)e->at + i * size;
		err = hd_json_as_text(hd_json_item(values, i), &value, diag);
		if (!err)
			err = hd_json_as_text(hd_json_item(bits, i), &digits, diag);
		if (err)
			break;
		bool good = bits_parse(digits, size, at);
		if (good) {
			value_text(e->dtype, at, text);
			good = !strcmp(text, value);
		}
		if (!good)
			err = hd_fail(diag, HD_E_INPUT,
				"%s: \"%.32s\" is not the value of the bits \"%.32s\"",
				hd_json_path(item, path, sizeof path), value, digits);
	}
	return err;
}

static enum hd_err parse_entry(struct hd_state *state, const struct hd_json *item, struct hd_diag *diag)
{
	struct hd_state_entry e = { .key = HD_KEY_JOB, .group = HD_STATE_RUN };
	const char *dtype_text;
	enum hd_dtype dtype = HD_I64;
	char path[200];
	size_t elems;
	enum hd_err err = hd_json_as(item, HD_JSON_OBJECT, diag);

	if (!err && hd_json_count(item) != NENTRY_MEMBERS)
		err = hd_fail(diag, HD_E_INPUT, "%s does not have %d members",
			hd_json_path(item, path, sizeof path), NENTRY_MEMBERS);
	if (!err)
		err = hd_json_get_text(item, "name", &e.name, diag);
	if (!err && (!*e.name || strlen(e.name) >= HD_MAX_NAME))
		err = hd_fail(diag, HD_E_INPUT, "%s.name is empty or too long",
			hd_json_path(item, path, sizeof path));
	if (!err)
		err = hd_json_get_text(item, "dtype", &dtype_text, diag);
	if (!err && !hd_dtype_parse(dtype_text, &dtype))
		err = hd_fail(diag, HD_E_INPUT, "%s.dtype \"%.16s\" is not known",
			hd_json_path(item, path, sizeof path), dtype_text);
	if (!err)
		err = parse_shape(item, &e, &elems, diag);
	if (err)
		return err;
	e.dtype = (uint8_t)dtype;
	e.len_bytes = elems * hd_dtype_bytes(dtype);
	e.at = hd_arena_take(state->arena, elems + 1, hd_dtype_bytes(dtype));
	if (!e.at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the counters of a checkpoint");
	err = parse_values(item, &e, elems, diag);
	if (!err && hd_state_find(state, e.name))
		err = hd_fail(diag, HD_E_INPUT, "%s: the name '%s' is used twice",
			hd_json_path(item, path, sizeof path), e.name);
	return err ? err : hd_state_add(state, &e, diag);
}

enum hd_err hd_ckpt_state_parse(struct hd_state *state, const char *name, const char *bytes, size_t len,
	struct hd_diag *diag)
{
	const struct hd_json *root, *entries;
	uint64_t ignored;
	int64_t format;
	enum hd_err err = hd_json_parse(state->arena, name, bytes, len, &root, diag);

	if (!err && hd_json_count(root) != NMEMBERS)
		err = hd_fail(diag, HD_E_INPUT, "%s does not have %d members", name, NMEMBERS);
	if (!err)
		err = hd_json_get_i64(root, "format", FORMAT, FORMAT, &format, diag);
	if (!err)
		err = hd_json_get_u64(root, "step", INT64_MAX, &ignored, diag);
	if (!err)
		err = hd_json_get_u64(root, "samples", INT64_MAX, &ignored, diag);
	if (!err)
		err = hd_json_get(root, "entries", HD_JSON_ARRAY, &entries, diag);
	for (size_t i = 0; !err && i < hd_json_count(entries); i++)
		err = parse_entry(state, hd_json_item(entries, i), diag);
	return err;
}
