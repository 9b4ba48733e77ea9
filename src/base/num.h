/* num.h -- numbers as people and files write them, strictly.
 *
 * Job keys, options and text formats parse through these; NDJSON, reports and text
 * formats print through them.
 *
 * 1. The whole string is one number: no blanks, no leading '+', no hex, no locale.
 *    What is read is in [min, max] or refused; the message names both and the text.
 * 2. Printed floats are the shortest decimal text, of at most 9 (f32) or 17 (f64)
 *    digits, that reads back to the same bits; "nan", "inf" and "-inf" as words.
 * 3. Suffixes: integers k M G (powers of 1000); sizes KiB MiB GiB or none (bytes);
 *    durations ms s min h d, required, except that 0 needs none.
 *
 * Errors are HD_E_INVAL; diag may be NULL. Pure. */
#ifndef HD_BASE_NUM_H
#define HD_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_NUM_CAP = 32 };                          /* space for any printed number, with the final 0 */

HD_MUST_USE enum hd_err hd_num_i64(const char *text, int64_t min, int64_t max, int64_t *out,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_num_u64(const char *text, uint64_t max, uint64_t *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_num_size(const char *text, uint64_t max_bytes, uint64_t *bytes,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_num_duration(const char *text, uint64_t max_ms, uint64_t *ms,
	struct hd_diag *diag);
/* Decimal with optional fraction and exponent; never nan or inf. */
HD_MUST_USE enum hd_err hd_num_f64(const char *text, double min, double max, double *out,
	struct hd_diag *diag);

/* 0, or of a size that a 32-bit float has with all its digits: 1.2e-38 to 3.4e38. */
bool hd_num_fits_f32(double v);
/* hd_num_f64() of a number that is computed with in 32-bit floats: what they do not fit is refused, since it
 * would be 0 there, where only more than 0 may stand. */
HD_MUST_USE enum hd_err hd_num_real(const char *text, double min, double max, double *out,
	struct hd_diag *diag);

const char *hd_num_print_f32(char out[HD_NUM_CAP], float v);       /* returns out */
const char *hd_num_print_f64(char out[HD_NUM_CAP], double v);

#endif
