/* row_int.h -- tokens of one or two texts in a row of fixed length: cut, joined with what is added, filled
 * up.
 *
 * 1. Cut: `longest_first` as the package does it: the longer text loses first, then both alike, the second
 *    having the odd token; `only_first`, `only_second`: that text alone. Of a text its end is cut off, or,
 *    with direction Left, its begin.
 * 2. The lengths of the file's truncation and padding are not followed: the row is as long as the model
 *    reads.
 * 3. Pads stand behind all, or, with direction Left, before. */
#ifndef HD_TOKEN_ROW_INT_H
#define HD_TOKEN_ROW_INT_H

#include "base/json.h"
#include "token/post.h"

enum hd_token_cut { HD_TOKEN_CUT_LONGEST, HD_TOKEN_CUT_FIRST, HD_TOKEN_CUT_SECOND };
struct hd_token_fill { enum hd_token_cut cut; bool cut_left, pad_left; uint32_t pad; uint8_t pad_kind; };

HD_MUST_USE enum hd_err hd_token_fill_read(struct hd_token_fill *fill, const struct hd_json *json,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_token_fill_row(const struct hd_token_fill *fill,
	const struct hd_token_slots *slots,
	const struct hd_token_ids own[2], const char *name, uint32_t most, uint32_t pad,
	struct hd_token_row *row, struct hd_diag *diag);

#endif
