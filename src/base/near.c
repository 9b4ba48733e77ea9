#include "base/near.h"

#include <string.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Optimal string alignment over three rows; words are short, so the whole table is cheap. */
size_t hd_near_distance(const char *a, const char *b)
{
	size_t row[3][HD_NEAR_WORD_MAX + 1];
	size_t na = strnlen(a, HD_NEAR_WORD_MAX + 1), nb = strnlen(b, HD_NEAR_WORD_MAX + 1);

	if (na > HD_NEAR_WORD_MAX || nb > HD_NEAR_WORD_MAX)
		return HD_NEAR_MOST + 1;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return least(row[na % 3][nb], HD_NEAR_MOST + 1);
}

void hd_near_offer(struct hd_near *near, const char *candidate)
{
	size_t distance = hd_near_distance(near->word, candidate);

	if (distance >= near->distance || distance >= strlen(candidate))
		return;
	near->best = candidate;
	near->distance = distance;
}
