/* bytes.h -- growing memory of the room: bytes, and the head of a text whose origin is byte 0.
 *
 * 1. nzero: as many of the first bytes come from the first character of the text that was given; the
 *    pre-tokenizer Metaspace asks that of pieces ("first"). Normalizers keep it. */
#ifndef HD_TOKEN_BYTES_H
#define HD_TOKEN_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_bytes { uint8_t *at; size_t len; uint32_t cap; size_t nzero; };      /* hd_free(at) */
struct hd_text_view { const uint8_t *at; size_t len, nzero; };

/* Room for `more` after len. */
HD_MUST_USE enum hd_err hd_bytes_room(struct hd_bytes *bytes, size_t more, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_bytes_add(struct hd_bytes *bytes, const void *at, size_t len,
	struct hd_diag *diag);
/* Where there is room. */
void hd_bytes_put(struct hd_bytes *bytes, const void *at, size_t len);
static inline struct hd_text_view hd_bytes_view(const struct hd_bytes *bytes)
{
	return (struct hd_text_view){ bytes->at, bytes->len, bytes->nzero };
}

#endif
