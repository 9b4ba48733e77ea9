/* busy.h -- a line that carries one thing at a time: when it is taken. Private to the analyses.
 *
 * What comes first has the line first; what comes later takes the gaps that are left from when it is there
 * on, in pieces if they are short. So the order of calls is that of urgency.
 *
 * 1. Spans ascend and do not touch; all times between the begin of a thing and its end are taken then.
 *
 * Ownership: the arena has the spans. Pure. */
#ifndef HD_TIMELINE_ANALYZE_BUSY_H
#define HD_TIMELINE_ANALYZE_BUSY_H

#include <stdbool.h>

#include "base/arena.h"
#include "timeline/analyze/set.h"

enum { HD_TL_BUSY_SPANS = 256 };          /* of more the two oldest become one: nothing comes so late */

struct hd_tl_busy { struct hd_tl_span *at; size_t n; };

bool hd_tl_busy_open(struct hd_tl_busy *busy, struct hd_arena *arena);   /* false: no memory */
/* ns of [t0, t1) that are not taken */
int64_t hd_tl_busy_free(const struct hd_tl_busy *busy, int64_t t0, int64_t t1);
/* When something that is there at `from` and takes `ns` ends; it has the line then. */
int64_t hd_tl_busy_take(struct hd_tl_busy *busy, int64_t from, int64_t ns);

#endif
