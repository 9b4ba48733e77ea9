/* reorder.h -- what if: the ends of the recorded steps again, with transfers in another order.
 *
 * Of a run whose workers each hold the whole model: after its pass a worker sends partial sums of buckets to
 * their owners, these send sums or new parameters, and the next forward pass begins on the parameters that
 * are there. What each of it takes is read of the recording; when each transfer comes is simulated.
 *
 *	before the pass ends   as recorded: computing, waits for data, when partial sums are made
 *	sums                   when the parts have come and the pass is over (where the recording has sums
 *	                       from within passes: when its own part is made), and the median delay after
 *	parameters             then, and when the metrics of all are there; behind norms when all sums are
 *	the wire               each worker has one port each way, of one rate; between two workers one
 *	                       chunk after another goes, of the most urgent message; what the transport has
 *	                       of them cannot be overtaken: as many bytes as in the recording; messages on
 *	                       their way share ports (planner/ports.h)
 *	the next forward pass  its nodes one behind the other, each when the buckets that it reads are there;
 *	                       where it stands still for one, that is the most urgent (if the order says
 *	                       so). A node that has begun is not broken off: the end of the step, and the
 *	                       begin of the next, wait for it. What is done by then the pass need not do
 *	the end of a step      when all is everywhere, and a little later; the next one begins when it has
 *	                       ended at all, and a little later: the lower tenth of what that took
 *
 * 1. The rate is that with which the recorded order takes what it took: found by bisection within
 *    HD_TL_REORDER_WITHIN times what ports carried while they carried something. Where none does, the
 *    links held nothing up and the latter holds.
 * 2. `replayed` of the recorded order beside `recorded` says what it misses. What the other order changes is
 *    the difference of both replays.
 * 3. Buckets, owners and the ways of sums stay as they were. A step has all its transfers, or is refused.
 *
 * At most HD_TL_REORDER_WORKERS. Pure; memory is the arena's. */
#ifndef HD_TIMELINE_ANALYZE_REORDER_H
#define HD_TIMELINE_ANALYZE_REORDER_H

#include "timeline/analyze/replay.h"

enum { HD_TL_REORDER_WORKERS = 16, HD_TL_REORDER_CHUNK = 64 << 10, HD_TL_REORDER_WITHIN = 8 };

/* A row of the transfer table (protocol/transfers.h): what it carries (0: it is not known), of which bucket,
 * and how urgent it is in the recorded order and in the other one; smaller goes first. */
struct hd_tl_row { uint8_t kind; uint32_t bucket, was, now; };

/* A node of the forward pass: its part of that, and the buckets reads[first .. first + n). */
struct hd_tl_node { double share; uint32_t first, n; };

struct hd_tl_order {
	const struct hd_tl_row *row; uint32_t nrows;      /* by the id of a transfer */
	uint32_t nbuckets;
	const struct hd_tl_node *node; uint32_t nnodes;
	const uint32_t *reads;
	bool wants_was, wants_now;        /* does what a device stands still for go first? */
};

/* Cuts *range to its last steps that the same workers made. Of `whatif` bandwidth and compute count.
 * HD_E_NOTFOUND: no such step. HD_E_REFUSED: nothing is sent in them; a transfer is not in the table; sums go
 * by pairs; a step is incomplete; too many workers. */
HD_MUST_USE enum hd_err hd_tl_reorder(const struct hd_tl_causes *causes, struct hd_tl_range *range,
	const struct hd_tl_order *order, const struct hd_tl_whatif *whatif, struct hd_arena *arena,
	struct hd_tl_replayed *now, struct hd_tl_replayed *then, struct hd_diag *diag);

#endif
