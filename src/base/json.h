/* json.h -- a JSON text as an unchanging tree.
 *
 * Manifests, state files, profiles, NDJSON records and safetensors headers are read
 * through it. The library behind it is known to json.c alone. Writing: json_writer.h.
 *
 * 1. A text is one object or array of valid UTF-8, without duplicate keys, not nested
 *    deeper than HD_JSON_DEPTH, not longer than HD_JSON_BYTES. Integers fit in int64.
 * 2. Members and items keep the order of the text.
 * 3. Syntax errors say name:line:column; a wrong type or range says which value, as in
 *    "state.json: .tensors[3].rank is ...". Both are HD_E_INPUT.
 * 4. u64 values travel as decimal strings, not-finite floats as "nan", "inf", "-inf".
 *
 * Ownership: the tree lies in the arena it was parsed into, `name` is copied. A NULL
 * tree is never passed. Threads: reading is pure. */
#ifndef HD_BASE_JSON_H
#define HD_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
	HD_JSON_DEPTH = 64,                        /* no format of ours needs ten; bounds recursion */
	HD_JSON_BYTES = 32 * 1024 * 1024,          /* a safetensors header of 200,000 tensors */
};

struct hd_json;

enum hd_json_kind { HD_JSON_NULL, HD_JSON_BOOL, HD_JSON_INT, HD_JSON_REAL, HD_JSON_TEXT, HD_JSON_ARRAY,
	HD_JSON_OBJECT };

HD_MUST_USE enum hd_err hd_json_parse(struct hd_arena *arena, const char *name, const char *text, size_t len,
	const struct hd_json **out, struct hd_diag *diag);

enum hd_json_kind hd_json_kind(const struct hd_json *json);
const char *hd_json_kind_name(enum hd_json_kind kind);

/* Members or items; 0 of anything else. `i` is below the count; the key of an item is NULL. */
size_t hd_json_count(const struct hd_json *json);
const struct hd_json *hd_json_item(const struct hd_json *json, size_t i);
const char *hd_json_key(const struct hd_json *json, size_t i);
/* NULL: no such member, or no object */
const struct hd_json *hd_json_find(const struct hd_json *object, const char *key);

/* The value itself. */
HD_MUST_USE enum hd_err hd_json_as_bool(const struct hd_json *json, bool *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_as_i64(const struct hd_json *json, int64_t min, int64_t max, int64_t *out,
	struct hd_diag *diag);
/* integer, or decimal string */
HD_MUST_USE enum hd_err hd_json_as_u64(const struct hd_json *json, uint64_t max, uint64_t *out,
	struct hd_diag *diag);
/* number, or a word of rule 4 */
HD_MUST_USE enum hd_err hd_json_as_f64(const struct hd_json *json, double *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_as_text(const struct hd_json *json, const char **out, struct hd_diag *diag);
/* checks only */
HD_MUST_USE enum hd_err hd_json_as(const struct hd_json *json, enum hd_json_kind kind, struct hd_diag *diag);

/* A member that must be there. */
HD_MUST_USE enum hd_err hd_json_get(const struct hd_json *object, const char *key, enum hd_json_kind kind,
	const struct hd_json **out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_get_bool(const struct hd_json *object, const char *key, bool *out,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_get_i64(const struct hd_json *object, const char *key, int64_t min,
	int64_t max, int64_t *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_get_u64(const struct hd_json *object, const char *key, uint64_t max,
	uint64_t *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_get_f64(const struct hd_json *object, const char *key, double *out,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_json_get_text(const struct hd_json *object, const char *key, const char **out,
	struct hd_diag *diag);

/* Refuses a member of `object` that is none of `keys` (which end with NULL), and says which was perhaps
 * meant. */
HD_MUST_USE enum hd_err hd_json_only(const struct hd_json *object, const char *const keys[],
	struct hd_diag *diag);

/* "state.json: .tensors[3].rank", for messages of the caller's own; cut to fit. */
const char *hd_json_path(const struct hd_json *json, char *out, size_t cap);

#endif
