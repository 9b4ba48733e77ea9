/* set.h -- sets of instants as unions of half-open intervals [t0, t1): busy times are counted once, however
 * many events lie over one another.
 *
 * 1. A set's spans ascend, are not empty, and neither touch nor overlap.
 * 2. A result lies in the arena; its operands stay as they are.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_SET_H
#define HD_TIMELINE_ANALYZE_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct hd_tl_span { int64_t t0, t1; };                   /* ns */
struct hd_tl_set { struct hd_tl_span *span; size_t n; };

/* Of n spans in any order, empty ones too: sorts and joins them in place; the set is the first of them. */
struct hd_tl_set hd_tl_set_of(struct hd_tl_span *span, size_t n);
int64_t hd_tl_set_ns(const struct hd_tl_set *set);
int64_t hd_tl_set_common_ns(const struct hd_tl_set *a, const struct hd_tl_set *b);
static inline struct hd_tl_span hd_tl_clip(struct hd_tl_span s, struct hd_tl_span to)
{
	const int64_t t0 = s.t0 > to.t0 ? s.t0 : to.t0, t1 = s.t1 < to.t1 ? s.t1 : to.t1;

	return (struct hd_tl_span){ t0, t1 > t0 ? t1 : t0 };
}

#endif
