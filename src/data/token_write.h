/* token_write.h -- writing a token file (data/tokens.h) as tokens come, and where its documents begin.
 *
 * 1. The file appears under its name when it is complete (hd_token_out_end), or not at all; the same holds
 *    for the boundaries (out_file.h).
 * 2. Boundaries: a number of eight bytes, little end first, for each document: how many tokens stand before
 *    it; and the count of all at the end.
 *
 * Threads: one. */
#ifndef HD_DATA_TOKEN_WRITE_H
#define HD_DATA_TOKEN_WRITE_H

#include "data/out_file.h"

enum { HD_TOKEN_OUT_BUFFER = 1 << 16 };

struct hd_token_out {
	struct hd_out_file file, boundaries;
	uint32_t width_bytes;
	uint64_t ntokens, ndocuments;
	uint8_t buffer[HD_TOKEN_OUT_BUFFER];
};

/* boundaries: NULL: none. width_bytes: 2 or 4. */
HD_MUST_USE enum hd_err hd_token_out_begin(struct hd_token_out *out, struct hd_fs *fs, const char *path,
	const char *boundaries, uint32_t width_bytes, struct hd_diag *diag);
/* Of one document; each is below 1 << 8 * width_bytes. */
HD_MUST_USE enum hd_err hd_token_out_add(struct hd_token_out *out, const uint32_t *ids, uint32_t n,
	struct hd_diag *diag);
/* Header, sync, rename when `keep`; else nothing stays. Takes zeroed ones. */
HD_MUST_USE enum hd_err hd_token_out_end(struct hd_token_out *out, bool keep, struct hd_diag *diag);

#endif
