/* yaml.h -- a job, cluster or price file as a plain tree with places.
 *
 * The tables of keys (job files, overrides) walk it; types are theirs, so every scalar
 * stays text. JSON is YAML and is read too.
 *
 * 1. What is read: one document of block or flow mappings with plain or quoted keys,
 *    sequences, scalars, comments.
 * 2. What is refused, each with name:line:column counted from 1 (HD_E_INVAL): anchors,
 *    aliases, merge keys, tags, directives, a second document, an empty file, tabs in
 *    indentation, duplicate or empty keys, keys that are not scalars, bytes that are
 *    not UTF-8 or are control characters, and more than the limits below.
 * 3. A scalar left out ("key:") is "", not quoted, and placed at its key. `quoted`
 *    tells "true" from true; block scalars (| and >) count as quoted.
 * 4. Columns count characters.
 *
 * Ownership: nodes and texts lie in the arena, end with a 0 and are never changed.
 * The library behind it is known to yaml.c alone. */
#ifndef HD_BASE_YAML_H
#define HD_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
	HD_YAML_BYTES = 1024 * 1024,              /* a file people write */
	HD_YAML_DEPTH = 16,                       /* mappings and sequences around one another */
	HD_YAML_KEYS = 4096,                      /* of one mapping: duplicates are searched one by one */
};

enum hd_yaml_kind { HD_YAML_SCALAR, HD_YAML_SEQ, HD_YAML_MAP };

struct hd_yaml_mark { uint32_t line, column; };

struct hd_yaml_node {
	enum hd_yaml_kind kind;
	bool quoted;
	uint32_t nchildren;
	struct hd_yaml_mark at;                   /* of the value */
	struct hd_yaml_mark key_at;               /* of the key, in a mapping */
	const char *key;                          /* in a mapping, else NULL */
	const char *text;                         /* of a scalar, else NULL */
	size_t text_len;
	struct hd_yaml_node *first, *next;        /* first child; next of the same parent */
};

/* A root that is a bare scalar is refused: every file of ours is a table or a list. */
HD_MUST_USE enum hd_err hd_yaml_parse(struct hd_arena *arena, const char *name, const char *text, size_t len,
	const struct hd_yaml_node **root, struct hd_diag *diag);

/* NULL: no such key, or no mapping */
const struct hd_yaml_node *hd_yaml_find(const struct hd_yaml_node *map, const char *key);
const char *hd_yaml_kind_name(enum hd_yaml_kind kind);

#endif
