/* parse_words.h -- the words of the graph text: what parse.c reads statements with
 * (private to the room).
 *
 * 1. A parser stands on one word of one line; length 0 is the end of the line. A word
 *    is a run of bytes or one of the marks , [ ] = :
 * 2. hd_parse_word, _integer, _real, _value, _type take the word at hand and go on;
 *    when they refuse it they stay, so that the message points at it.
 * 3. Nothing is read past `end`; numbers are copied before the C library sees them.
 *
 * Memory is the arena of the graph. */
#ifndef HD_GRAPH_PARSE_WORDS_H
#define HD_GRAPH_PARSE_WORDS_H

#include "graph/ir.h"

enum { HD_PARSE_WORD = HD_MAX_NAME };

/* Labels and names both lead to values; HD_NONE in a slot: empty. */
struct hd_parse_labels { uint32_t *at, cap; };
struct hd_parse_names { uint32_t *slot, cap, n; };       /* open addressing, cap a power of two */

struct hd_parser {
	struct hd_graph *graph;
	const char *file;
	const char *at, *end, *line_at;
	uint32_t line;
	struct { const char *at; size_t len; } word;           /* the one at hand */
	struct hd_parse_labels temps, consts;
	struct hd_parse_names names;
	struct hd_diag *diag;                                  /* never NULL */
};

/* HD_E_INPUT with file:line:column of the word at hand. */
__attribute__((format(printf, 2, 3)))
enum hd_err hd_parse_fail(struct hd_parser *p, const char *fmt, ...);
/* What a builder said, at our place; HD_OK passes. */
HD_MUST_USE enum hd_err hd_parse_refused(struct hd_parser *p, enum hd_err err, const struct hd_diag *why);
enum hd_err hd_parse_no_memory(struct hd_parser *p);

void hd_parse_next(struct hd_parser *p);
bool hd_parse_is(const struct hd_parser *p, const char *text);
bool hd_parse_ended(const struct hd_parser *p);
int hd_parse_shown(const struct hd_parser *p);             /* bytes of the word for %.*s in messages */

HD_MUST_USE enum hd_err hd_parse_mark(struct hd_parser *p, const char *mark);
HD_MUST_USE enum hd_err hd_parse_word(struct hd_parser *p, char out[HD_PARSE_WORD], const char *what);
HD_MUST_USE enum hd_err hd_parse_integer(struct hd_parser *p, int64_t min, int64_t max, int64_t *out);
HD_MUST_USE enum hd_err hd_parse_real(struct hd_parser *p, bool single, double *out);
HD_MUST_USE enum hd_err hd_parse_value(struct hd_parser *p, uint32_t *value);
HD_MUST_USE enum hd_err hd_parse_type(struct hd_parser *p, enum hd_dtype *dtype, uint8_t *rank,
	int64_t dim[HD_MAX_DIMS]);

/* the word stays at hand */
HD_MUST_USE enum hd_err hd_parse_label(struct hd_parser *p, char sign, uint32_t *label);
HD_MUST_USE enum hd_err hd_parse_label_set(struct hd_parser *p, struct hd_parse_labels *labels,
	uint32_t label, uint32_t value);
HD_MUST_USE enum hd_err hd_parse_name_add(struct hd_parser *p, uint32_t value);

#endif
