/* csv.h -- tables as text: RFC 4180, with a header row.
 *
 * 1. Fields are parted by commas, records by CR LF or LF; the last record needs no end. A field
 *    may stand in quotes, then it may hold commas, ends of lines and, doubled, quotes. Blanks
 *    belong to the field. A byte order mark in front of the file is skipped.
 * 2. Refused: a quote inside a bare field, anything between a closing quote and the next comma,
 *    a bare CR, a NUL, an open quote at the end, fields above HD_CSV_FIELD bytes.
 * 3. A place is a line and a column in bytes, both from 1, of the field's first byte; a line
 *    ends where the file's does, quoted or not.
 *
 * The cursor holds no memory; a field lies in it until the next call. */
#ifndef HD_DATA_CSV_H
#define HD_DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_CSV_FIELD = 4096, HD_CSV_COLUMNS = 65536 };

struct hd_csv {
	const char *name;                 /* borrowed, for messages */
	const uint8_t *at, *end;
	uint64_t line, column;            /* of the next byte */
	/* the field at hand */
	uint64_t field_line, field_column;
	size_t len;
	bool quoted, last;                /* last: of its record */
	char text[HD_CSV_FIELD + 1];      /* 0 added */
};

void hd_csv_init(struct hd_csv *csv, const uint8_t *bytes, size_t len, const char *name);
/* between records: is there another? */
static inline bool hd_csv_more(const struct hd_csv *csv) { return csv->at < csv->end; }
/* The next field. HD_E_INPUT names file:line:column. */
HD_MUST_USE enum hd_err hd_csv_next(struct hd_csv *csv, struct hd_diag *diag);

#endif
