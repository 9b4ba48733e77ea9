/* tokens.h -- llm.c's token files: a header of 256 words, then 16-bit tokens.
 *
 *	byte 0      4       8        12            1024
 *	     magic  version ntokens  (not read)    token 0, token 1, ...    all little end first
 *
 * 1. Accepted: magic 20240520, version 1, and exactly as many bytes as ntokens says. */
#ifndef HD_DATA_TOKENS_H
#define HD_DATA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_TOKENS_MAGIC = 20240520, HD_TOKENS_VERSION = 1, HD_TOKENS_HEADER_BYTES = 1024 };

/* For tests. `name` is for messages. *at points into bytes. */
HD_MUST_USE enum hd_err hd_tokens_parse(const uint8_t *bytes, size_t len, const char *name,
	const uint8_t **at, uint64_t *ntokens,
	struct hd_diag *diag);

#endif
