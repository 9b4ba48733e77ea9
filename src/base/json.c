#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/near.h"
#include "base/num.h"
#include "base/text.h"

/* jansson builds its tree on the heap, some 100 bytes for "{}": four times the longest
 * text bounds it without hurting any file of numbers and names. */
enum { HEAP_BYTES = 4 * HD_JSON_BYTES, HEAD_BYTES = HD_ALIGN, PATH_CAP = 200 };

struct hd_json {
	enum hd_json_kind kind;
	uint32_t n;                               /* members or items */
	const struct hd_json *parent;             /* NULL: the root */
	/* in the parent; NULL: an item; of the root: the text's name */
	const char *key;
	union {
		bool truth;
		int64_t integer;
		double real;
		const char *text;
		struct hd_json *at;               /* n long */
	};
};

/* The library's heap during one parse, counted through alloc.h. The library
 * does not always say that memory was what it lacked; `lack` does. */
static _Thread_local struct { size_t used; enum hd_err lack; } heap;

static void *library_alloc(size_t bytes)
{
	if (bytes > HEAP_BYTES - heap.used) {
		heap.lack = HD_E_INPUT;
		return NULL;
	}
	size_t *head = hd_alloc(HEAD_BYTES + bytes);
	if (!head) {
		heap.lack = HD_E_NOMEM;
		return NULL;
	}
	*head = bytes;
	heap.used += bytes;
	return (char *)head + HEAD_BYTES;
}

static void library_free(void *memory)
{
	if (!memory)
		return;
	size_t *head = (size_t *)(void *)((char *)memory - HEAD_BYTES);
	heap.used -= *head;
	hd_free(head);
}

static void library_start(void) { json_set_alloc_funcs(library_alloc, library_free); }

/* The library recurses on nesting, and overlooks a byte 0 behind a number or a word: such texts are refused
 * before it sees them. Brackets in strings do not count; whether the text is well formed is not decided
 * here. */
static enum hd_err check_bytes(const char *name, const char *text, size_t len, struct hd_diag *diag)
{
	size_t depth = 0, line = 1, start = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '\n') {
			line++;
			start = i + 1;
		}
		if (!c)
			return hd_fail(diag, HD_E_INPUT, "%s:%zu:%zu: a byte 0, which no JSON has", name,
				line, i - start + 1);
		if (quoted && c == '\\' && i + 1 < len && text[i + 1])
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '[' || c == '{') && ++depth > HD_JSON_DEPTH)
			return hd_fail(diag, HD_E_INPUT, "%s:%zu:%zu: nested deeper than %d", name, line,
				i - start + 1, HD_JSON_DEPTH);
		else if (!quoted && (c == ']' || c == '}') && depth > 0)
			depth--;
	}
	return HD_OK;
}

static bool copy(struct hd_arena *arena, json_t *from, struct hd_json *to);

static bool copy_array(struct hd_arena *arena, json_t *from, struct hd_json *to)
{
	for (uint32_t i = 0; i < to->n; i++) {
		to->at[i].parent = to;
		if (!copy(arena, json_array_get(from, i), &to->at[i]))
			return false;
	}
	return true;
}

static bool copy_object(struct hd_arena *arena, json_t *from, struct hd_json *to)
{
	struct hd_json *at = to->at;

	for (void *iter = json_object_iter(from); iter; iter = json_object_iter_next(from, iter), at++) {
		const char *key = json_object_iter_key(iter);
		at->parent = to;
		at->key = hd_arena_text(arena, key, strlen(key));
		if (!at->key || !copy(arena, json_object_iter_value(iter), at))
			return false;
	}
	return true;
}

/* Our own tree, so that nothing is counted or freed singly and every value knows its
 * path. Small children of one parent share a piece of the arena. false: no memory. */
static bool copy(struct hd_arena *arena, json_t *from, struct hd_json *to)
{
	switch (json_typeof(from)) {
	case JSON_NULL:
		to->kind = HD_JSON_NULL;
		return true;
	case JSON_TRUE:
	case JSON_FALSE:
		to->kind = HD_JSON_BOOL;
		to->truth = json_is_true(from);
		return true;
	case JSON_INTEGER:
		to->kind = HD_JSON_INT;
		to->integer = json_integer_value(from);
		return true;
	case JSON_REAL:
		to->kind = HD_JSON_REAL;
		to->real = json_real_value(from);
		return true;
	case JSON_STRING:
		to->kind = HD_JSON_TEXT;
		to->text = hd_arena_text(arena, json_string_value(from), json_string_length(from));
		return to->text != NULL;
	case JSON_ARRAY:
		to->kind = HD_JSON_ARRAY;
		to->n = (uint32_t)json_array_size(from);
		to->at = hd_arena_take(arena, to->n, sizeof *to->at);
		return to->at && copy_array(arena, from, to);
	case JSON_OBJECT:
		to->kind = HD_JSON_OBJECT;
		to->n = (uint32_t)json_object_size(from);
		to->at = hd_arena_take(arena, to->n, sizeof *to->at);
		return to->at && copy_object(arena, from, to);
	}
	return false;
}

static enum hd_err no_memory(const char *name, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "%s: out of memory while reading JSON", name);
}

/* The library's words, but where they are about a flag of its own. */
static const char *why_not(const json_error_t *error)
{
	const enum json_error_code code = json_error_code(error);

	return code == json_error_null_character || code == json_error_null_byte_in_key ?
		"a text holds \\u0000, which is not read: take it out" : error->text;
}

enum hd_err hd_json_parse(struct hd_arena *arena, const char *name, const char *text, size_t len,
	const struct hd_json **out, struct hd_diag *diag)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	json_error_t error;

	if (len > HD_JSON_BYTES)
		return hd_fail(diag, HD_E_INPUT, "%s: %zu bytes of JSON, more than %d", name, len,
			HD_JSON_BYTES);
	enum hd_err err = check_bytes(name, text, len, diag);
	if (err)
		return err;
	pthread_once(&once, library_start);
	heap.lack = HD_OK;
	json_t *tree = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!tree && heap.lack == HD_E_INPUT)
		return hd_fail(diag, HD_E_INPUT,
			"%s: its %zu bytes of JSON need more than %d bytes of memory", name, len, HEAP_BYTES);
	if (!tree && heap.lack)
		return no_memory(name, diag);
	if (!tree)
		return hd_fail(diag, HD_E_INPUT, "%s:%d:%d: %s", name, error.line > 0 ? error.line : 1,
			error.column > 0 ? error.column : 1, why_not(&error));

	struct hd_json *root = hd_arena_take(arena, 1, sizeof *root);
	bool done = root && (root->key = hd_arena_text(arena, name, strlen(name))) && copy(arena, tree, root);
	json_decref(tree);
	if (!done)
		return no_memory(name, diag);
	*out = root;
	return HD_OK;
}

enum hd_json_kind hd_json_kind(const struct hd_json *json) { return json->kind; }

const char *hd_json_kind_name(enum hd_json_kind kind)
{
	static const char *const names[] = { "null", "a boolean", "an integer", "a real number", "a string",
		"an array", "an object" };
	return names[kind];
}

size_t hd_json_count(const struct hd_json *json) { return json->kind >= HD_JSON_ARRAY ? json->n : 0; }

const struct hd_json *hd_json_item(const struct hd_json *json, size_t i)
{
	assert(i < hd_json_count(json));
	return &json->at[i];
}

const char *hd_json_key(const struct hd_json *json, size_t i) { return hd_json_item(json, i)->key; }

const struct hd_json *hd_json_find(const struct hd_json *object, const char *key)
{
	if (object->kind != HD_JSON_OBJECT)
		return NULL;
	for (uint32_t i = 0; i < object->n; i++)
		if (strcmp(object->at[i].key, key) == 0)
			return &object->at[i];
	return NULL;
}

static void add_path(struct hd_text *text, const struct hd_json *json)
{
	if (!json->parent) {
		hd_text_addf(text, "%.80s: ", json->key);
		return;
	}
	add_path(text, json->parent);
	if (json->key)
		hd_text_addf(text, ".%s", json->key);
	else
		hd_text_addf(text, "[%td]", json - json->parent->at);
}

const char *hd_json_path(const struct hd_json *json, char *out, size_t cap)
{
	struct hd_text text;

	hd_text_fixed(&text, out, cap);
	add_path(&text, json);
	if (!json->parent)
		hd_text_add(&text, "the whole");
	return out;
}

static enum hd_err wrong(const struct hd_json *json, const char *wanted, struct hd_diag *diag)
{
	char path[PATH_CAP];

	return hd_fail(diag, HD_E_INPUT, "%s is %s, not %s", hd_json_path(json, path, sizeof path),
		hd_json_kind_name(json->kind), wanted);
}

enum hd_err hd_json_as(const struct hd_json *json, enum hd_json_kind kind, struct hd_diag *diag)
{
	return json->kind == kind ? HD_OK : wrong(json, hd_json_kind_name(kind), diag);
}

enum hd_err hd_json_as_bool(const struct hd_json *json, bool *out, struct hd_diag *diag)
{
	enum hd_err err = hd_json_as(json, HD_JSON_BOOL, diag);

	if (!err)
		*out = json->truth;
	return err;
}

enum hd_err hd_json_as_i64(const struct hd_json *json, int64_t min, int64_t max, int64_t *out,
	struct hd_diag *diag)
{
	char path[PATH_CAP];
	enum hd_err err = hd_json_as(json, HD_JSON_INT, diag);

	if (err)
		return err;
	if (json->integer < min || json->integer > max)
		return hd_fail(diag, HD_E_INPUT, "%s is %" PRId64 ", not between %" PRId64 " and %" PRId64,
			hd_json_path(json, path, sizeof path), json->integer, min, max);
	*out = json->integer;
	return HD_OK;
}

enum hd_err hd_json_as_u64(const struct hd_json *json, uint64_t max, uint64_t *out, struct hd_diag *diag)
{
	char path[PATH_CAP];
	struct hd_diag why = { "" };
	uint64_t v = 0;

	if (json->kind == HD_JSON_INT && json->integer >= 0 && (uint64_t)json->integer <= max)
		v = (uint64_t)json->integer;
	else if (json->kind == HD_JSON_INT)
		return hd_fail(diag, HD_E_INPUT, "%s is %" PRId64 ", not between 0 and %" PRIu64,
			hd_json_path(json, path, sizeof path), json->integer, max);
	else if (json->kind != HD_JSON_TEXT)
		return wrong(json, "a whole number or a string of digits", diag);
	else if (json->text[strspn(json->text, "0123456789")] || hd_num_u64(json->text, max, &v, &why))
		return hd_fail(diag, HD_E_INPUT, "%s is \"%.40s\", not digits of a number up to %" PRIu64,
			hd_json_path(json, path, sizeof path),
			json->text, max);
	*out = v;
	return HD_OK;
}

static bool word_value(const char *text, double *out)
{
	static const struct { const char *word; double value; } words[] = {
		{ "nan", (double)NAN }, { "inf", (double)INFINITY }, { "-inf", -(double)INFINITY },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i].word) == 0) {
			*out = words[i].value;
			return true;
		}
	return false;
}

enum hd_err hd_json_as_f64(const struct hd_json *json, double *out, struct hd_diag *diag)
{
	if (json->kind == HD_JSON_TEXT && word_value(json->text, out))
		return HD_OK;
	if (json->kind != HD_JSON_REAL && json->kind != HD_JSON_INT)
		return wrong(json, "a number, \"nan\", \"inf\" or \"-inf\"", diag);
	*out = json->kind == HD_JSON_REAL ? json->real : (double)json->integer;
	return HD_OK;
}

enum hd_err hd_json_as_text(const struct hd_json *json, const char **out, struct hd_diag *diag)
{
	enum hd_err err = hd_json_as(json, HD_JSON_TEXT, diag);

	if (!err)
		*out = json->text;
	return err;
}

enum hd_err hd_json_only(const struct hd_json *object, const char *const keys[], struct hd_diag *diag)
{
	enum hd_err err = hd_json_as(object, HD_JSON_OBJECT, diag);
	char path[PATH_CAP], all[300];
	struct hd_text text;

	for (size_t i = 0; !err && i < hd_json_count(object); i++) {
		struct hd_near near = hd_near_to(hd_json_key(object, i));
		size_t k = 0;
		hd_text_fixed(&text, all, sizeof all);
		for (; keys[k] && strcmp(keys[k], near.word) != 0; k++) {
			hd_near_offer(&near, keys[k]);
			hd_text_addf(&text, "%s%s", k ? ", " : "", keys[k]);
		}
		if (!keys[k])
			err = hd_fail(diag, HD_E_INPUT, "%s is no member that is known here%s%s%s",
				hd_json_path(hd_json_item(object, i), path, sizeof path),
				near.best ? "; did you mean " : ": there are ", near.best ? near.best : all,
				near.best ? "?" : "");
	}
	return err;
}

static enum hd_err member(const struct hd_json *object, const char *key, const struct hd_json **out,
	struct hd_diag *diag)
{
	char path[PATH_CAP];
	enum hd_err err = hd_json_as(object, HD_JSON_OBJECT, diag);

	if (err)
		return err;
	const struct hd_json *found = hd_json_find(object, key);
	if (!found)
		return hd_fail(diag, HD_E_INPUT, "%s lacks the member \"%s\"",
			hd_json_path(object, path, sizeof path), key);
	*out = found;
	return HD_OK;
}

enum hd_err hd_json_get(const struct hd_json *object, const char *key, enum hd_json_kind kind,
	const struct hd_json **out, struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	if (!err)
		err = hd_json_as(found, kind, diag);
	if (!err)
		*out = found;
	return err;
}

enum hd_err hd_json_get_bool(const struct hd_json *object, const char *key, bool *out, struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	return err ? err : hd_json_as_bool(found, out, diag);
}

enum hd_err hd_json_get_i64(const struct hd_json *object, const char *key, int64_t min, int64_t max,
	int64_t *out, struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	return err ? err : hd_json_as_i64(found, min, max, out, diag);
}

enum hd_err hd_json_get_u64(const struct hd_json *object, const char *key, uint64_t max, uint64_t *out,
	struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	return err ? err : hd_json_as_u64(found, max, out, diag);
}

enum hd_err hd_json_get_f64(const struct hd_json *object, const char *key, double *out, struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	return err ? err : hd_json_as_f64(found, out, diag);
}

enum hd_err hd_json_get_text(const struct hd_json *object, const char *key, const char **out,
	struct hd_diag *diag)
{
	const struct hd_json *found = NULL;
	enum hd_err err = member(object, key, &found, diag);

	return err ? err : hd_json_as_text(found, out, diag);
}
