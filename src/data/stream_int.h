/* stream_int.h -- tokens in a row, cut into samples: what text and tokens have in common.
 *
 * 1. Sample i is tokens iT .. iT+T of all pieces joined: "x" i32 [T], "y" the same one
 *    later. D = (n - 1) / T; what is left over is not used.
 * 2. Every token is below the bound: checked at open with file and offset, and again at
 *    read, because the file lies under a map that others may write. */
#ifndef HD_DATA_STREAM_INT_H
#define HD_DATA_STREAM_INT_H

#include "data/reader_int.h"

/* first: tokens before it */
/* width 1, 2 or 4, little end first */
struct hd_piece { const uint8_t *bytes; uint64_t first, ntokens; uint32_t width_bytes; const char *name; };

struct hd_token_stream {
	struct hd_reader reader;
	struct hd_piece *piece; uint32_t npieces;        /* in the arena; one per source */
	uint64_t ntokens;
	uint32_t context, bound;                         /* bound 0: none */
	int32_t pad;                                     /* packed: what stands behind the last piece */
};

/* The pieces: one per source, without their headers; their tokens checked, hash. */
HD_MUST_USE enum hd_err hd_token_stream_join(struct hd_token_stream *stream, const struct hd_data_spec *spec,
	enum hd_err (*piece_of)(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag),
	struct hd_diag *diag);
/* n tokens from token `first` on; all are there. */
HD_MUST_USE enum hd_err hd_token_stream_take(const struct hd_token_stream *stream, uint64_t first, uint32_t n,
	int32_t *out, struct hd_diag *diag);
/* The same as join; then fields, splits, about. */
HD_MUST_USE enum hd_err hd_token_stream_make(struct hd_token_stream *stream, const struct hd_data_spec *spec,
	enum hd_err (*piece_of)(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag),
	const char *what, struct hd_diag *diag);
enum hd_err hd_token_stream_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag);

#endif
