/* near.h -- "did you mean ...?": the nearest of some words to a mistyped one.
 *
 * Options, job keys, verbs and model names are offered one by one, from whatever
 * table they are in:
 *
 *	struct hd_near near = hd_near_to("lerning_rate");
 *	for (row = table; row->name; row++) hd_near_offer(&near, row->name);
 *	if (near.best) ... "did you mean %s?"
 *
 * 1. The distance counts insertions, deletions, changes and swaps of neighbours; a word
 *    further than HD_NEAR_MOST, or not nearer than it is long, is never suggested.
 * 2. Of equally near words the first offered wins.
 *
 * Words are borrowed until the last use of `best`. */
#ifndef HD_BASE_NEAR_H
#define HD_BASE_NEAR_H

#include <stddef.h>

enum { HD_NEAR_MOST = 2, HD_NEAR_WORD_MAX = 64 };       /* longer words are not compared */

struct hd_near {
	const char *word, *best;                        /* best: NULL while nothing is near */
	size_t distance;                                /* of best */
};

static inline struct hd_near hd_near_to(const char *word) { return (struct hd_near){ .word = word,
	.distance = HD_NEAR_MOST + 1 }; }
void hd_near_offer(struct hd_near *near, const char *candidate);
size_t hd_near_distance(const char *a, const char *b);  /* HD_NEAR_MOST + 1 stands for all that is further */

#endif
