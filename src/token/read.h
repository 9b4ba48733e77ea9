/* read.h -- what reading the parts of the file has in common: a table of kinds by "type", sequences.
 *
 * 1. A type or a member that is not in the table is refused, with its place in the file. */
#ifndef HD_TOKEN_READ_H
#define HD_TOKEN_READ_H

#include "base/json.h"

enum { HD_TOKEN_KEYS = 12 };

/* The head of a row: its "type", its members; ends with NULL. */
struct hd_token_kind { const char *name, *keys[HD_TOKEN_KEYS]; };

static inline bool hd_token_is_null(const struct hd_json *json)
{
	return !json || hd_json_kind(json) == HD_JSON_NULL;
}

/* Which of `n` rows of `size` bytes, each beginning with its head. */
HD_MUST_USE enum hd_err hd_token_kind(const struct hd_json *json, const struct hd_token_kind *first,
	size_t size,
	size_t n, size_t *row, struct hd_diag *diag);
/* `one` of the part, or of each of a Sequence (their list is the member `list`), also of nested ones; nothing
 * of null. */
HD_MUST_USE enum hd_err hd_token_sequence(const struct hd_json *json, const char *list,
	enum hd_err (*one)(void *user, const struct hd_json *json, struct hd_arena *arena,
		struct hd_diag *diag), void *user, struct hd_arena *arena, struct hd_diag *diag);
/* A member, copied; `text` ends with 0. */
HD_MUST_USE enum hd_err hd_token_text(const struct hd_json *object, const char *key, struct hd_arena *arena,
	const char **text, size_t *len, struct hd_diag *diag);
/* A member that may be missing: *out stays. */
HD_MUST_USE enum hd_err hd_token_bool(const struct hd_json *object, const char *key, bool *out,
	struct hd_diag *diag);
/* A member of one character. */
HD_MUST_USE enum hd_err hd_token_char(const struct hd_json *object, const char *key, uint32_t *c,
	struct hd_diag *diag);

#endif
