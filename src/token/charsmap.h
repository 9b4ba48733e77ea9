/* charsmap.h -- SentencePiece's precompiled map of characters, the normalizer Precompiled.
 *
 *	byte 0        4             4 + SIZE
 *	     SIZE     units         strings, each ended by 0        all little end first, the whole in base64
 *
 * A unit is four bytes of a double array (Darts-clone): from keys to offsets of strings.
 *
 * 1. The first key that a text begins with counts, which is the shortest: so does the package.
 *
 * Ownership: lies in the arena. */
#ifndef HD_TOKEN_CHARSMAP_H
#define HD_TOKEN_CHARSMAP_H

#include "base/json.h"
#include "token/bytes.h"

struct hd_charsmap { const uint8_t *units; uint32_t nunits; const uint8_t *strings; size_t strings_len; };

HD_MUST_USE enum hd_err hd_charsmap_read(struct hd_charsmap *map, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
/* What stands for the text, or NULL: itself. */
const uint8_t *hd_charsmap_find(const struct hd_charsmap *map, const uint8_t *at, size_t len,
	size_t *found_len);

#endif
