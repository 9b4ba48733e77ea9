/* rows_int.h -- samples out of rows with named cells (row.h): what jsonl and parquet have in common.
 *
 * A reader gives the names that its file has, then its rows one by one; they become arrays of numbers, which
 * is what a step reads.
 *
 * 1. Columns of "x": data.columns, in this order, or all names but the label's. The label: data.label, or
 * what
 *    is called "label", else the last name. A model that learns the next token at each place has one only if
 *    data.label names it.
 * 2. A model of numbers: all numbers of a row's columns one behind the other, as many in each row; one column
 *    of lists has their extents. Texts, nothing, NaN and what f32 cannot hold are refused.
 * 3. A model of tokens: the bytes of a text (several texts: a line feed between them), or numbers of tokens,
 *    one by one or in lists. What is longer than the context is cut, which is counted; what is shorter is
 * filled
 *    up with the model's pad. Single numbers must be as many as the context has.
 * 4. Labels: the number of a class, a name of data.classes, or a list of class numbers, where -1 (and -100,
 * as
 *    PyTorch has it) is none: of as many as the context has where each token has one, cut or filled up with
 * -1,
 *    else of as many as the first row has. Without a label each token's is the next one, and that of the last
 * is
 *    -1, but where the text was cut.
 * 5. For a loss on numbers: one or a list, as many in each row.
 *
 * 6. With data.tokenizer a text, or two, are its tokens (texts.h); labels of each token are the next ones.
 *
 * Ownership and threads: as hd_reader. */
#ifndef HD_DATA_ROWS_INT_H
#define HD_DATA_ROWS_INT_H

#include "data/reader_int.h"
#include "data/row.h"
#include "data/texts.h"

enum hd_rows_form { HD_ROWS_NUMBERS, HD_ROWS_TEXT, HD_ROWS_TOKENS };

/* What the first row has in a column, and all others must. */
struct hd_rows_column { bool text; uint32_t rank; int64_t dim[HD_ROW_RANK]; uint64_t n; };

enum { HD_ROWS_COLUMNS = 256 };           /* cells of a row; lists hold more */

struct hd_row_set {
	struct hd_reader reader;
	/* columns of "x", then the label if there is one; in the arena */
	const char *name[HD_ROWS_COLUMNS]; struct hd_rows_column *column; uint32_t ncolumns, nnames;
	enum hd_rows_form form;
	uint64_t nelems, nlabels;                        /* of a sample's "x", of its "y" */
	union { float *number; int32_t *token; void *at; } x;    /* [nrows, nelems] */
	union { float *number; int32_t *label; void *at; } y;    /* [nrows, nlabels] */
	struct hd_texts texts;                           /* of a model of tokens */
	uint64_t nrows, row, ncut;                       /* row: the one to put next */
};

/* What the file has; `file` is for messages. Afterwards name[0..nnames) is what cells are wanted of. */
HD_MUST_USE enum hd_err hd_rows_names(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const char *const *names, uint32_t n, const char *file, struct hd_diag *diag);
/* Fields and memory for `nrows`, by the cells of the first. */
HD_MUST_USE enum hd_err hd_rows_begin(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *first, struct hd_row_place place, uint64_t nrows, struct hd_diag *diag);
/* The first row again, then all others. */
HD_MUST_USE enum hd_err hd_rows_put(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_row_cell *cells, struct hd_row_place place, struct hd_diag *diag);
/* Splits, hash and the line for users, when all rows were put. */
HD_MUST_USE enum hd_err hd_rows_end(struct hd_row_set *rows, const struct hd_data_spec *spec,
	struct hd_diag *diag);
void hd_rows_destroy(struct hd_dataset *set);
enum hd_err hd_rows_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag);

#endif
