#include "base/fields.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUE = 700 };                             /* bytes of a value as text; longer ones are cut */

static const char *key_of(const struct hd_fields_row *row) { return row->as ? row->as : row->name; }

static bool is_at(const struct hd_fields_row *row, unsigned where)
{
	return !row->where || (row->where & where);
}

static bool is_number(enum hd_fields_type type) { return type <= HD_FIELDS_F64; }

static const void *member(const struct hd_fields_row *row, const void *from)
{
	return (const char *)from + row->at;
}

/* Of an integer or a truth. */
static int64_t integer(const struct hd_fields_row *row, const void *from)
{
	const void *at = member(row, from);

	if (row->type == HD_FIELDS_I64)
		return *(const int64_t *)at;
	if (row->type == HD_FIELDS_U32)
		return *(const uint32_t *)at;
	if (row->type == HD_FIELDS_BOOL)
		return *(const bool *)at;
	assert(row->type == HD_FIELDS_U64 && *(const uint64_t *)at <= INT64_MAX);
	return (int64_t)*(const uint64_t *)at;
}

static const char *text_at(const struct hd_fields_row *row, const void *from, char hex[HD_HASH_HEX])
{
	const void *at = member(row, from);

	if (row->type == HD_FIELDS_CHARS)
		return at;
	if (row->type == HD_FIELDS_HASH) {
		hd_hash_hex(*(const struct hd_hash *)at, hex);
		return hex;
	}
	assert(row->type == HD_FIELDS_TEXT && *(const char *const *)at);
	return *(const char *const *)at;
}

/* ---- JSON ---- */

static void put_list(const struct hd_fields_row *row, unsigned where, const struct hd_fields_list *list,
	struct hd_json_writer *w)
{
	hd_json_open_array(w, key_of(row));
	if (list->fill)
		list->fill(list->user, w);
	for (uint32_t i = 0; i < list->n; i++)
		hd_fields_put_object(row->of, where, (const char *)list->at + i * row->of->bytes, NULL, w);
	hd_json_close(w);
}

static void put_row(const struct hd_fields_row *row, unsigned where, const void *from,
	struct hd_json_writer *w)
{
	const void *at = member(row, from);
	const char *key = key_of(row);
	char hex[HD_HASH_HEX];

	switch (row->type) {
	case HD_FIELDS_I64:
	case HD_FIELDS_U64:
	case HD_FIELDS_U32:
		if (row->rule == HD_FIELDS_NULL_BELOW_0 && integer(row, from) < 0)
			hd_json_put_null(w, key);
		else if (row->rule != HD_FIELDS_LEFT_OUT_AT_0 || integer(row, from))
			hd_json_put_i64(w, key, integer(row, from));
		return;
	case HD_FIELDS_F64: hd_json_put_f64(w, key, *(const double *)at); return;
	case HD_FIELDS_BOOL: hd_json_put_bool(w, key, *(const bool *)at); return;
	case HD_FIELDS_TEXT:
	case HD_FIELDS_CHARS:
	case HD_FIELDS_HASH: hd_json_put_text(w, key, text_at(row, from, hex)); return;
	case HD_FIELDS_LIST: put_list(row, where, at, w); return;
	case HD_FIELDS_PART:
		assert(row->of && row->of->bytes);
		hd_fields_put(row->of, where, at, w);
		return;
	case HD_FIELDS_TEXTS: {
		const struct hd_fields_texts *texts = at;
		hd_json_open_array(w, key);
		for (uint32_t i = 0; i < texts->n; i++)
			hd_json_put_text(w, NULL, texts->at[i]);
		hd_json_close(w);
		return;
	}
	case HD_FIELDS_COUNTS: {
		const struct hd_fields_counts *counts = at;
		hd_json_open_object(w, key);
		for (uint32_t i = 0; i < counts->n; i++)
			hd_json_put_i64(w, counts->at[i].name, counts->at[i].n);
		hd_json_close(w);
		return;
	}
	}
}

void hd_fields_put(const struct hd_fields *f, unsigned where, const void *from, struct hd_json_writer *w)
{
	assert(from);
	for (size_t i = 0; i < f->n; i++)
		if (is_at(&f->row[i], where))
			put_row(&f->row[i], where, from, w);
}

void hd_fields_put_object(const struct hd_fields *f, unsigned where, const void *from, const char *key,
	struct hd_json_writer *w)
{
	hd_json_open_object(w, key);
	hd_fields_put(f, where, from, w);
	hd_json_close(w);
}

static enum hd_err read_row(const struct hd_fields_row *row, const struct hd_json *json, void *to,
	struct hd_diag *diag)
{
	void *at = (char *)to + row->at;
	const char *key = key_of(row);
	int64_t n = 0;
	enum hd_err err = HD_OK;

	switch (row->type) {
	case HD_FIELDS_F64: return hd_json_get_f64(json, key, at, diag);
	case HD_FIELDS_TEXT: return hd_json_get_text(json, key, at, diag);
	case HD_FIELDS_BOOL: return hd_json_get_bool(json, key, at, diag);
	case HD_FIELDS_I64: return hd_json_get_i64(json, key, row->negative ? INT64_MIN : 0, INT64_MAX, at,
		diag);
	case HD_FIELDS_U64:
	case HD_FIELDS_U32:
		err = hd_json_get_i64(json, key, 0, row->type == HD_FIELDS_U32 ? UINT32_MAX : INT64_MAX, &n,
			diag);
		if (!err && row->type == HD_FIELDS_U32)
			*(uint32_t *)at = (uint32_t)n;
		else if (!err)
			*(uint64_t *)at = (uint64_t)n;
		return err;
	case HD_FIELDS_CHARS:
	case HD_FIELDS_HASH:
	case HD_FIELDS_TEXTS:
	case HD_FIELDS_COUNTS:
	case HD_FIELDS_LIST:
	case HD_FIELDS_PART: return HD_OK;
	}
	return HD_OK;
}

enum hd_err hd_fields_read(const struct hd_fields *f, unsigned where, const struct hd_json *json, void *to,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < f->n && !err; i++) {
		const struct hd_fields_row *row = &f->row[i];
		if (!is_at(row, where))
			continue;
		if (row->type == HD_FIELDS_PART)
			err = hd_fields_read(row->of, where, json, (char *)to + row->at, diag);
		else if (hd_json_find(json, key_of(row)) ||
			!(row->may_lack || row->rule == HD_FIELDS_LEFT_OUT_AT_0))
			err = read_row(row, json, to, diag);
		else if (row->type == HD_FIELDS_TEXT)
			*(const char **)((char *)to + row->at) = "";
	}
	return err;
}

/* ---- text ---- */

static const struct hd_fields_row *find(const struct hd_fields *f, const char *key, size_t len)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->row[i].type != HD_FIELDS_PART && strlen(key_of(&f->row[i])) == len &&
			!memcmp(key_of(&f->row[i]), key, len))
			return &f->row[i];
	return NULL;
}

static void add_value(const struct hd_fields_row *row, const void *from, struct hd_text *out)
{
	char hex[HD_HASH_HEX];
	int digits = row->digits ? row->digits : 4;

	switch (row->type) {
	case HD_FIELDS_F64: {
		double v = *(const double *)member(row, from);
		if (!isfinite(v))
			hd_text_add(out, "-");
		else if (row->fixed)
			hd_text_addf(out, "%.*f", digits, v);
		else
			hd_text_addf(out, "%.*g", digits, v);
		return;
	}
	case HD_FIELDS_BOOL: hd_text_add(out, integer(row, from) ? "yes" : "no"); return;
	case HD_FIELDS_TEXT:
	case HD_FIELDS_CHARS:
	case HD_FIELDS_HASH: hd_text_add(out, text_at(row, from, hex)); return;
	case HD_FIELDS_I64:
	case HD_FIELDS_U64:
	case HD_FIELDS_U32: hd_text_addf(out, "%lld", (long long)integer(row, from)); return;
	case HD_FIELDS_TEXTS:
	case HD_FIELDS_COUNTS:
	case HD_FIELDS_LIST:
	case HD_FIELDS_PART: assert(0 && "a list is no cell"); return;
	}
}

/* One of a line: numbers lean to the right, the last column is as long as it is. */
static void add_cell(const struct hd_fields_row *row, const char *value, bool first, bool after_number,
	struct hd_text *text)
{
	bool right = is_number(row->type);

	if (!first)
		hd_text_add(text, !row->width || (after_number && !right) ? "  " : " ");
	if (!row->width)
		hd_text_add(text, value);
	else if (right)
		hd_text_addf(text, "%*s", row->width, value);
	else
		hd_text_addf(text, "%-*s", row->width, *value ? value : "-");
}

static void add_line(const struct hd_fields *f, const void *from, struct hd_text *text)
{
	bool first = true, number = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct hd_fields_row *row = &f->row[i];
		char room[VALUE];
		struct hd_text value;
		if (!row->head)
			continue;
		hd_text_fixed(&value, room, sizeof room);
		if (from) {
			add_value(row, from, &value);
			const struct hd_fields_row *total = row->total ?
				find(f, row->total, strlen(row->total)) : NULL;
			assert(!row->total || total);
			if (total) {
				hd_text_add(&value, "/");
				add_value(total, from, &value);
			}
		}
		add_cell(row, from ? room : row->head, first, number, text);
		number = is_number(row->type);
		first = false;
	}
	hd_text_add(text, "\n");
}

void hd_fields_head(const struct hd_fields *f, struct hd_text *text) { add_line(f, NULL, text); }

void hd_fields_line(const struct hd_fields *f, const void *from, struct hd_text *text)
{
	assert(from);
	add_line(f, from, text);
}

void hd_fields_say(const struct hd_fields *f, const void *from, const char *sentence, struct hd_text *text)
{
	while (*sentence) {
		size_t plain = strcspn(sentence, "{");
		hd_text_put(text, sentence, plain);
		sentence += plain;
		if (!*sentence)
			return;
		size_t len = strcspn(++sentence, "}");
		const struct hd_fields_row *row = find(f, sentence, len);
		assert(row && sentence[len] == '}');
		if (row)
			add_value(row, from, text);
		sentence += len + (sentence[len] == '}');
	}
}

/* ---- schema and document ---- */

static const char *const schemas[] = {
#define X(id, type, words, schema) schema,
	HD_FIELDS_TYPES(X)
#undef X
};

static const char *const type_words[] = {
#define X(id, type, words, schema) words,
	HD_FIELDS_TYPES(X)
#undef X
};

void hd_fields_put_members(struct hd_json_writer *w, const char *members)
{
	assert(w->depth && w->close[w->depth - 1] == '}');
	if (w->follows)
		hd_text_add(w->text, ",");
	hd_text_add(w->text, members);
	w->follows = true;
}

static void put_properties(const struct hd_fields *f, unsigned where, struct hd_json_writer *w)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct hd_fields_row *row = &f->row[i];
		if (!is_at(row, where))
			continue;
		if (row->type == HD_FIELDS_PART) {
			put_properties(row->of, where, w);
			continue;
		}
		hd_json_open_object(w, key_of(row));
		if (row->rule == HD_FIELDS_NULL_BELOW_0)
			hd_fields_put_members(w, "\"type\":[\"integer\",\"null\"]");
		else
			hd_fields_put_members(w, schemas[row->type]);
		hd_json_put_text(w, "description", row->about);
		if (row->type == HD_FIELDS_LIST) {
			hd_json_open_object(w, "items");
			hd_fields_schema(row->of, where, w);
			hd_json_close(w);
		}
		hd_json_close(w);
	}
}

static void put_required(const struct hd_fields *f, unsigned where, struct hd_json_writer *w)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct hd_fields_row *row = &f->row[i];
		if (!is_at(row, where))
			continue;
		if (row->type == HD_FIELDS_PART)
			put_required(row->of, where, w);
		else if (row->rule != HD_FIELDS_LEFT_OUT_AT_0)
			hd_json_put_text(w, NULL, key_of(row));
	}
}

void hd_fields_schema(const struct hd_fields *f, unsigned where, struct hd_json_writer *w)
{
	hd_json_put_text(w, "type", "object");
	hd_json_open_object(w, "properties");
	put_properties(f, where, w);
	hd_json_close(w);
	hd_json_open_array(w, "required");
	put_required(f, where, w);
	hd_json_close(w);
}

static void document_rows(const struct hd_fields *f, unsigned where, struct hd_text *text)
{
	static const char *const rules[] = { [HD_FIELDS_ALWAYS] = "", [HD_FIELDS_NULL_BELOW_0] = " or null",
		[HD_FIELDS_LEFT_OUT_AT_0] = ", may be missing" };

	for (size_t i = 0; i < f->n; i++) {
		const struct hd_fields_row *row = &f->row[i];
		if (!is_at(row, where))
			continue;
		if (row->type == HD_FIELDS_PART)
			document_rows(row->of, where, text);
		else
			hd_text_addf(text, "| `%s` | %s%s | %s | %s |\n", key_of(row), type_words[row->type],
				rules[row->rule], row->unit ? row->unit : "", row->about);
	}
}

static void document_lists(const struct hd_fields *f, unsigned where, struct hd_text *text)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct hd_fields_row *row = &f->row[i];
		if (row->of && is_at(row, where) && row->type == HD_FIELDS_LIST) {
			hd_text_addf(text, "\n`%s`: %s\n", key_of(row), row->of->about);
			hd_fields_document(row->of, where, text);
		} else if (row->of && is_at(row, where)) {
			document_lists(row->of, where, text);
		}
	}
}

void hd_fields_document(const struct hd_fields *f, unsigned where, struct hd_text *text)
{
	hd_text_add(text, "\n| key | type | unit | meaning |\n|---|---|---|---|\n");
	document_rows(f, where, text);
	document_lists(f, where, text);
}
