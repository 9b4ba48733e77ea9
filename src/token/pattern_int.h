/* pattern_int.h -- an expression of Oniguruma, written so that PCRE2 reads the same. Private to the room. */
#ifndef HD_TOKEN_PATTERN_INT_H
#define HD_TOKEN_PATTERN_INT_H

#include "base/err.h"
#include "base/text.h"

HD_MUST_USE enum hd_err hd_pattern_rewrite(const char *regex, const char *where, struct hd_text *out,
	struct hd_diag *diag);

#endif
