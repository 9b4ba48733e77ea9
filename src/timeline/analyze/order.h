/* order.h -- transfers that overtook more urgent ones.
 *
 * Per channel (sender and receiver) and step, pairs of transfers x more urgent than y (lower class) where x
 * was free to go before y's first byte went, and y's first byte went before x's.
 *
 * 1. Only what both were ready for counts: a transfer that came later overtakes nothing.
 * 2. Of a channel's transfers of a step each is compared with the HD_TL_ORDER_REACH that began after it;
 *    those of an unknown receiver are not.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_ORDER_H
#define HD_TIMELINE_ANALYZE_ORDER_H

#include "base/arena.h"
#include "timeline/timeline.h"

enum { HD_TL_ORDER_REACH = 1024 };

struct hd_tl_orders { uint64_t transfers, pairs, violations; };  /* pairs: of different urgency, alike ready
	*/

HD_MUST_USE enum hd_err hd_tl_orders_of(const struct hd_timeline *tl, struct hd_arena *arena,
	struct hd_tl_orders *orders, struct hd_diag *diag);

#endif
