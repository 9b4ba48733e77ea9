/* graph_lines.h -- a text read line by line, its words parted by blanks, tabs or commas.
 *
 * What the parsers of graphs share; private to the room. Ownership: it borrows the bytes. Pure. */
#ifndef HD_DATA_GRAPH_LINES_H
#define HD_DATA_GRAPH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_graph_lines {
	const char *name;
	const uint8_t *next, *end;        /* of the file */
	const uint8_t *at, *stop;         /* of the line at hand */
	uint64_t line;
	struct hd_diag *diag;
};

struct hd_graph_lines hd_lines_begin(const uint8_t *bytes, size_t len, const char *name,
	struct hd_diag *diag);
/* false: there is none. `skip`: not 0, lines that begin so and empty ones are passed over. */
bool hd_lines_next(struct hd_graph_lines *l, uint8_t skip);
bool hd_lines_at_end(struct hd_graph_lines *l);            /* of the line, but for blanks */
bool hd_lines_word_ends(const struct hd_graph_lines *l, uint8_t also);
/* A number below 2^32 that ends where a word does, or at `also`. */
bool hd_lines_number(struct hd_graph_lines *l, uint8_t also, uint32_t *number);
/* Of an absolute value up to `most`. */
bool hd_lines_f64(struct hd_graph_lines *l, double most, double *value);
bool hd_lines_value(struct hd_graph_lines *l, float *value);       /* a finite one */
/* An id below nvertices; HD_E_INPUT says what was wanted. */
HD_MUST_USE enum hd_err hd_lines_id(struct hd_graph_lines *l, uint64_t nvertices, const char *want,
	uint32_t *id);
enum hd_err hd_lines_bad(const struct hd_graph_lines *l, const char *want);

#endif
