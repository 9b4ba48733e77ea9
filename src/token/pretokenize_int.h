/* pretokenize_int.h -- the steps of pretokenize.c's table. Private to the room.
 *
 * A step appends what becomes of a piece to work->next. */
#ifndef HD_TOKEN_PRETOKENIZE_INT_H
#define HD_TOKEN_PRETOKENIZE_INT_H

#include "token/pretokenize.h"

typedef enum hd_err hd_pre_step(const struct hd_pre *pre, struct hd_pre_work *work,
	const struct hd_token_piece *piece, struct hd_diag *diag);

hd_pre_step hd_pre_whitespace_split, hd_pre_punctuation, hd_pre_digits, hd_pre_delimiter, hd_pre_split,
	hd_pre_whitespace, hd_pre_bert, hd_pre_fixed_length, hd_pre_byte_level, hd_pre_metaspace;

#endif
