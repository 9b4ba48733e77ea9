/* texts.h -- texts of a table as rows of tokens, with the fields that go with them: which tokens are seen,
 * and of which kind they are (named.h).
 *
 * Users: csv, and rows_int.h (jsonl, parquet). They open it when they know their columns, put rows in their
 * order, read them by number.
 *
 * 1. With a tokenizer a row is what hd_tokenizer_row() makes of one or two texts; the file is a source of the
 *    set, so its content is part of the set's hash.
 * 2. Without one the caller puts tokens and says how many they are; what stands behind is not seen.
 * 3. A pad that the model takes for the end of a text is the tokenizer's, or the set is refused.
 *
 * Ownership: arrays lie in the reader's arena; finish() frees what made them, when all rows are put. */
#ifndef HD_DATA_TEXTS_H
#define HD_DATA_TEXTS_H

#include "token/tokenizer.h"
#include "data/reader_int.h"

struct hd_texts {
	uint32_t context, pad;
	uint32_t mask, kinds;             /* fields; 0: the model does not read them */
	struct hd_tokenizer *tokenizer;   /* NULL: the caller puts tokens */
	struct hd_token_work *work;
	uint32_t *id;                     /* [context] of the row at hand */
	struct hd_texts_span { uint32_t first, n; } *seen;       /* [nrows]; NULL: not kept */
	uint8_t *kind;                    /* [nrows, context]; NULL: not kept */
};

/* The tokenizer alone: before fields are added. */
HD_MUST_USE enum hd_err hd_texts_open(struct hd_texts *texts, struct hd_reader *reader,
	const struct hd_data_spec *spec, struct hd_diag *diag);
/* Fields behind x and y, and memory of `nrows`. */
HD_MUST_USE enum hd_err hd_texts_fields(struct hd_texts *texts, struct hd_reader *reader,
	const struct hd_data_spec *spec, uint64_t nrows, struct hd_diag *diag);
/* Row `row` of one or two texts: its tokens to x, the label of each, which is the next token, to y unless
 * that is NULL. HD_E_INPUT has no place: `diag` says what is wrong with the text. */
HD_MUST_USE enum hd_err hd_texts_put(struct hd_texts *texts, uint64_t row, const char *const text[2],
	const size_t len[2], uint32_t ntexts, int32_t *x, int32_t *y, bool *cut, struct hd_diag *diag);
/* Row `row` has its `n` tokens already. */
void hd_texts_note(struct hd_texts *texts, uint64_t row, uint32_t n);
void hd_texts_read(const struct hd_texts *texts, uint64_t row, void *const *out);
void hd_texts_finish(struct hd_texts *texts);

#endif
