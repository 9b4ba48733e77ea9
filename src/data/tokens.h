/* tokens.h -- llm.c's token files: a header of 256 words, then tokens of 16 or 32 bits.
 *
 *	byte 0      4       8        12            1024
 *	     magic  version ntokens  (not read)    token 0, token 1, ...    all little end first
 *
 * 1. Accepted: magic 20240520, version 1 (16 bits, as for GPT-2), or magic 20240801, version 7 (32 bits, as
 *    for Llama 3), and exactly as many bytes as ntokens says.
 * 2. A token is below 1 << 31; of 32-bit tokens the reader looks at each. */
#ifndef HD_DATA_TOKENS_H
#define HD_DATA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_TOKENS_MAGIC = 20240520, HD_TOKENS_VERSION = 1, HD_TOKENS_MAGIC32 = 20240801,
       HD_TOKENS_VERSION32 = 7, HD_TOKENS_HEADER_BYTES = 1024 };

/* `name` is for messages. *at points into bytes; *width_bytes: 2 or 4. */
HD_MUST_USE enum hd_err hd_tokens_parse(const uint8_t *bytes, size_t len, const char *name,
	const uint8_t **at, uint64_t *ntokens, uint32_t *width_bytes,
	struct hd_diag *diag);

#endif
