/* fields.h -- what the program shows of something, as one table of fields: JSON, its reading, text, JSON
 * Schema and the documents derive from it.
 *
 * A field is one row of an X-macro; struct and table are made from it:
 *
 *	#define POINT_FIELDS(X) \
 *		X(int64_t, id,  .about = "its number", .head = "point", .width = 6) \
 *		X(double,  x_m, .about = "to the east", .unit = "m", .head = "x m", .width = 9)
 *	struct point { HD_FIELDS_MEMBERS(POINT_FIELDS) };
 *	static const struct hd_fields_row rows[] = {
 *	#define X(...) HD_FIELDS_ROW(struct point, __VA_ARGS__)
 *		POINT_FIELDS(X)
 *	#undef X
 *	};
 *	const struct hd_fields point_fields = HD_FIELDS("point", "a point", struct point, rows);
 *
 * 1. JSON has the members in the order of the rows. A key is the member's name, or `as`.
 * 2. The C type of a member decides how it is written: HD_FIELDS_TYPES. Unsigned numbers are written as
 *    JSON integers and must be below 2^63; hashes are hexadecimal digits; what is not finite is a word
 *    (json_writer.h).
 * 3. `where` is a mask of the table's own: a row is written where it shares a bit with the mask that is
 *    asked for, and everywhere if it is 0.
 * 4. Schema and document name every key that can be written, by construction.
 *
 * Pure. Ownership: texts and lists that members point to are borrowed; what is read points into the tree. */
#ifndef HD_BASE_FIELDS_H
#define HD_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_writer.h"

struct hd_fields;

/* Objects of the table `of` that lie one after another; or, with `fill`, written by it one at a time. */
struct hd_fields_list {
	const void *at;                           /* [n] */
	uint32_t n;
	void (*fill)(void *user, struct hd_json_writer *w);
	void *user;
};
/* An object of counts; its keys are not known beforehand. */
struct hd_fields_count { const char *name; int64_t n; };
struct hd_fields_counts { const struct hd_fields_count *at; uint32_t n; };
struct hd_fields_texts { const char *const *at; uint32_t n; };

/*        id       C type                     in documents        in JSON Schema */
#define HD_FIELDS_TYPES(X)                                                                                  \
	X(I64,     int64_t,                   "integer",          "\"type\":\"integer\"")                   \
	X(U64,     uint64_t,                  "integer",          "\"type\":\"integer\"")                   \
	X(U32,     uint32_t,                  "integer",          "\"type\":\"integer\"")                   \
	X(F64,     double,                    "number",           "\"type\":[\"number\",\"string\"]")       \
	X(TEXT,    const char *,              "text",             "\"type\":\"string\"")                    \
	X(CHARS,   char *,                    "text",             "\"type\":\"string\"")                    \
	X(BOOL,    bool,                      "boolean",          "\"type\":\"boolean\"")                   \
	X(HASH,    struct hd_hash,            "hexadecimal text", "\"type\":\"string\"")                    \
	X(TEXTS,   struct hd_fields_texts,    "list of texts",                                              \
		"\"type\":\"array\",\"items\":{\"type\":\"string\"}")                                       \
	X(COUNTS,  struct hd_fields_counts,   "object of integers",                                         \
		"\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}")                       \
	X(LIST,    struct hd_fields_list,     "list of objects",  "\"type\":\"array\"")

enum hd_fields_type {
#define X(id, type, words, schema) HD_FIELDS_##id,
	HD_FIELDS_TYPES(X)
#undef X
	HD_FIELDS_PART,                           /* rows of another table, whose struct is a member */
};

enum hd_fields_rule {
	HD_FIELDS_ALWAYS,
	HD_FIELDS_NULL_BELOW_0,                   /* null: not known */
	HD_FIELDS_LEFT_OUT_AT_0,                  /* no such key then; never one of `required` */
};

struct hd_fields_row {
	const char *name, *as;                    /* of the member; its key, NULL: the same */
	enum hd_fields_type type;
	size_t at;                                /* offset in the struct, bytes */
	const char *about, *unit;                 /* unit NULL: none, or said in `about` */
	const struct hd_fields *of;               /* of LIST and PART */
	unsigned where;
	enum hd_fields_rule rule;
	bool negative;                            /* an integer that may be below 0 */
	bool may_lack;                            /* programs before this one do not send it: 0 or "" */
	/* As text: the head of its column, NULL: it has none; its least width, 0: to the end of the line */
	const char *head;
	int width, digits;                        /* digits 0: 4 */
	bool fixed;                               /* `digits` are those behind the point */
	const char *total;                        /* the member shown behind a slash, as in 3/40 */
};

struct hd_fields {
	const char *name, *about;
	size_t bytes;                             /* of the struct */
	const struct hd_fields_row *row;          /* [n] */
	size_t n;
};

#define HD_FIELDS(name, about, type, rows) { name, about, sizeof(type), rows, sizeof(rows) / sizeof *(rows) }

#define HD_FIELDS_MEMBER(type, member, ...) type member;
#define HD_FIELDS_MEMBERS(list) list(HD_FIELDS_MEMBER)

#define HD_FIELDS_TYPE_CASE(id, type, words, schema) type: HD_FIELDS_##id,
#define HD_FIELDS_ROW(in, type_, member, ...) \
	{ .name = #member, .at = offsetof(in, member), __VA_ARGS__, \
	  .type = _Generic(((in *)0)->member, HD_FIELDS_TYPES(HD_FIELDS_TYPE_CASE) \
		default: HD_FIELDS_PART) },

/* Members into the object that stands open. */
void hd_fields_put(const struct hd_fields *fields, unsigned where, const void *from,
	struct hd_json_writer *w);
/* The object on its own. */
void hd_fields_put_object(const struct hd_fields *fields, unsigned where, const void *from, const char *key,
	struct hd_json_writer *w);

/* The other way; members that are not read stay as they are: rows elsewhere than `where`, lists, counts,
 * arrays of characters and hashes. The error names the key. */
HD_MUST_USE enum hd_err hd_fields_read(const struct hd_fields *fields, unsigned where,
	const struct hd_json *json, void *to, struct hd_diag *diag);

/* Text: the line of heads; a line of values below it. Both end with a line feed. */
void hd_fields_head(const struct hd_fields *fields, struct hd_text *text);
void hd_fields_line(const struct hd_fields *fields, const void *from, struct hd_text *text);
/* `sentence` with each {key} as its column would show it; a key that no row has is a fault of the program
 * (assert). */
void hd_fields_say(const struct hd_fields *fields, const void *from, const char *sentence,
	struct hd_text *text);

/* Members that are JSON already, `"key":value,...`, into the object that stands open. */
void hd_fields_put_members(struct hd_json_writer *w, const char *members);
/* "type":"object","properties":...,"required":... into the object that stands open. */
void hd_fields_schema(const struct hd_fields *fields, unsigned where, struct hd_json_writer *w);
/* The table in Markdown, with those of its lists behind it. */
void hd_fields_document(const struct hd_fields *fields, unsigned where, struct hd_text *text);

#endif
