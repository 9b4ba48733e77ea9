/* rows_cells_int.h -- what is said of a cell that does not fit; private to rows.c and rows_put.c. */
#ifndef HD_DATA_ROWS_CELLS_INT_H
#define HD_DATA_ROWS_CELLS_INT_H

#include "data/rows_int.h"

/* "train.jsonl:12:7: "label": ..."; HD_E_INPUT. */
__attribute__((format(printf, 6, 7)))
enum hd_err hd_rows_bad(const struct hd_row_set *rows, uint32_t column, const struct hd_row_cell *cell,
	struct hd_row_place place, struct hd_diag *diag, const char *fmt, ...);
enum hd_err hd_rows_no_value(const struct hd_row_set *rows, uint32_t column, const struct hd_row_cell *cell,
	struct hd_row_place place, struct hd_diag *diag);

#endif
