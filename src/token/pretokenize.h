/* pretokenize.h -- the `pre_tokenizer` of the file: steps from pieces of a text to smaller ones.
 *
 * 1. Pieces lie one behind the other in order; none is empty. One that is a token already stays.
 * 2. Bytes of all pieces lie in one growing text; a step that changes a piece appends what it becomes.
 * 3. A ByteLevel that comes last leaves its letters to the model: `maps_bytes`. A word is then looked up as
 *    its own bytes, and written in letters only where it is new.
 *
 * Ownership: as normalize.h. */
#ifndef HD_TOKEN_PRETOKENIZE_H
#define HD_TOKEN_PRETOKENIZE_H

#include "base/json.h"
#include "token/pattern.h"
#include "token/tokenizer.h"
#include "token/unicode.h"

/* at: in the text; nzero: bytes.h, 0 unless it begins where the given text does; id: HD_TOKEN_NONE, or the
 * token that it is */
struct hd_token_piece { size_t at; uint32_t len, nzero, id; };
struct hd_pieces { struct hd_token_piece *at; uint32_t n, cap; };      /* hd_free(at) */
HD_MUST_USE enum hd_err hd_pieces_add(struct hd_pieces *pieces, struct hd_token_piece piece,
	struct hd_diag *diag);
/* The part [first, last) of a piece, unless it is empty. */
HD_MUST_USE enum hd_err hd_pieces_cut(struct hd_pieces *pieces, const struct hd_token_piece *whole,
	size_t first, size_t last, struct hd_diag *diag);

enum hd_behavior { HD_REMOVED, HD_ISOLATED, HD_MERGED_WITH_PREVIOUS, HD_MERGED_WITH_NEXT, HD_CONTIGUOUS };
enum hd_prepend { HD_PREPEND_ALWAYS, HD_PREPEND_FIRST, HD_PREPEND_NEVER };

struct hd_pre_kind;
struct hd_pre {
	const struct hd_pre_kind *kind;
	enum hd_behavior behavior;
	struct hd_pattern pattern;        /* Split, ByteLevel */
	bool invert;                      /* Split */
	bool prefix, regex, maps;         /* ByteLevel; maps: now, since it is not the last step */
	bool single;                      /* Digits */
	enum hd_prepend prepend;          /* Metaspace */
	bool split;
	uint32_t c;                       /* Metaspace, CharDelimiterSplit */
	uint32_t length;                  /* FixedLength */
};
struct hd_pres { struct hd_pre *at; uint32_t n, cap; bool maps_bytes; };

struct hd_pre_work {
	const struct hd_unicode *unicode;
	struct hd_finder *finder;         /* borrowed */
	struct hd_bytes text;
	struct hd_pieces pieces, next;    /* the result is in `pieces` */
};

HD_MUST_USE enum hd_err hd_pres_read(struct hd_pres *pres, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag);
void hd_pres_finish(struct hd_pres *pres);
HD_MUST_USE enum hd_err hd_pres_apply(const struct hd_pres *pres, struct hd_pre_work *work,
	struct hd_diag *diag);
void hd_pre_work_finish(struct hd_pre_work *work);

#endif
