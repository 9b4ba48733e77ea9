/* cells.h -- records of a text, cut into cells: for the importers of this folder.
 *
 * 1. Cells are parted by one byte; by commas it is CSV (data/csv.h), quotes and all. Lines end with LF or CR
 *    LF. Empty lines are no records.
 * 2. A cell ends with 0, has its place, and lives until the next record.
 * 3. A control character other than a tab that parts cells, or a cell that is no UTF-8, is refused. */
#ifndef HD_CLUSTERSIM_IO_CELLS_H
#define HD_CLUSTERSIM_IO_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_CELLS = 256, HD_CELLS_BYTES = 1 << 16 };

struct table_cell { const char *text; uint64_t column; };

struct cells {
	const char *name;                         /* of the file, for messages */
	const uint8_t *at, *end;
	char sep;
	uint64_t line, next_line;
	uint32_t n;
	struct table_cell cell[HD_CELLS];
	struct hd_csv *csv;                       /* of sep ',' */
	char bytes[HD_CELLS_BYTES];
};

HD_MUST_USE enum hd_err cells_open(struct cells **out, const char *name, const uint8_t *bytes, size_t len,
	char sep, struct hd_arena *arena,
	struct hd_diag *diag);
/* The next record; false: the end, or *err says why not. */
bool cells_next(struct cells *cells, enum hd_err *err, struct hd_diag *diag);

/* The record at hand is the last one, and its line has no end: it may be cut off. */
bool cells_cut(const struct cells *cells);

/* which cell holds that word, in any case; -1: none */
int cells_find(const struct cells *cells, const char *word);

__attribute__((format(printf, 4, 5)))
/* HD_E_INPUT with the place */
enum hd_err cells_fail(const struct cells *cells, uint32_t i, struct hd_diag *diag, const char *fmt, ...);
/* Cell i as a number in [min, max]; `what` names the field. */
HD_MUST_USE enum hd_err cells_f64(const struct cells *cells, uint32_t i, const char *what, double min,
	double max, double *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err cells_u32(const struct cells *cells, uint32_t i, const char *what, uint32_t min,
	uint32_t max, uint32_t *out, struct hd_diag *diag);
/* Seconds: a number as it is, or ISO 8601 with T or a blank ("2017-10-09 07:34:01", with fraction, Z or
 * +02:00), since 1970 in UTC. */
HD_MUST_USE enum hd_err cells_when(const struct cells *cells, uint32_t i, const char *what, double *seconds,
	struct hd_diag *diag);
bool when_parse(const char *text, double *seconds);

#endif
