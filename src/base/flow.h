/* flow.h -- paragraphs filled to a width, as `--help` prints them.
 *
 * 1. A line feed ends a paragraph. Within one, runs of blanks separate words, and a line ends before the word
 *    that would pass the width; a word that is longer than a line stands on one of its own, whole.
 * 2. A paragraph that begins with a blank is an example: its line is kept as it is.
 * 3. Characters are counted, not bytes (UTF-8). */
#ifndef HD_BASE_FLOW_H
#define HD_BASE_FLOW_H

#include "base/text.h"

struct hd_flow {
	unsigned width;                   /* most characters of a line */
	unsigned indent;                  /* blanks before every line but the first */
	bool apart;                       /* an empty line between paragraphs that are no examples */
};

/* Appends `text`, whose first line begins at column `at`; no line feed at its end. */
void hd_flow_add(const struct hd_flow *flow, const char *text, unsigned at, struct hd_text *out);

#endif
