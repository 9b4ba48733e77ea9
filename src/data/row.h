/* row.h -- one row of a file that has named values: what jsonl.h gives, and rows_int.h takes.
 *
 * A cell is what a row holds under a name: nothing, a text, a number, or a list of numbers of regular
 * extents.
 * Numbers are 64-bit integers where all of the cell are, else f64. All lies in its maker until the next row.
 * */
#ifndef HD_DATA_ROW_H
#define HD_DATA_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hd_row_kind { HD_ROW_NONE, HD_ROW_WHOLE, HD_ROW_REAL, HD_ROW_TEXT };
enum { HD_ROW_RANK = 7 };                 /* of a list */

union hd_row_number { int64_t whole; double real; };

struct hd_row_cell {
	enum hd_row_kind kind;
	uint32_t rank;                    /* of numbers; 0: one, no list */
	int64_t dim[HD_ROW_RANK];
	uint64_t n;                       /* numbers: the product of the extents, 1 of rank 0 */
	const union hd_row_number *number;
	const char *text; size_t len;     /* UTF-8, of any bytes between 0 and 255; 0 added */
	uint64_t column;                  /* bytes before it in its line, and 1; 0: its file has no lines */
};

/* Where a row stands, for messages: "train.jsonl:12", "train.parquet row 12". */
struct hd_row_place { const char *file; uint64_t row; bool lines; };

#endif
