/* trace.h -- when machines of a spot market came and went: one list of events, whatever file said so.
 *
 * Files are read above (clustersim/availability.h); simulations play the list.
 *
 * 1. Events are in order: by time, at equal times those that add first, then as they were given.
 * 2. A node is added once and removed at most once, not before; it has the number of its addition, from 0 on.
 * 3. Where only counts are known, a fall by k removes the k nodes with the smallest draws (Philox of seed and
 *    node); a rise adds new ones, "node1" and so on. Equal seeds, equal events.
 *
 * Pure. Ownership: all lies in the arena it was made in; names are borrowed. */
#ifndef HD_SPOT_TRACE_H
#define HD_SPOT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* a month of a thousand machines with room to spare; what one line of counts could ask for is bounded, too */
enum { HD_SPOT_EVENTS = 1 << 20 };
/* ten thousand years */
#define HD_SPOT_MS_MOST INT64_C(315576000000000)

struct hd_spot_event { int64_t at_ms; uint32_t node; bool added; };

struct hd_spot_trace {
	size_t n;
	struct hd_spot_event *at;
	uint32_t nnodes;
	const char **name;                /* of each node */
};

/* What a file says: so many machines more or fewer. With a name it is one; all have one, or none. */
struct hd_spot_change { int64_t at_ms; int32_t change; const char *name; };

/* HD_E_INPUT: a name that is added twice, or removed before it is added; a count below 0; too many events. */
HD_MUST_USE enum hd_err hd_spot_trace_make(struct hd_spot_trace *trace, size_t n,
	const struct hd_spot_change *changes, uint64_t seed, struct hd_arena *arena, struct hd_diag *diag);
/* As if no more than `most` machines had ever been taken at once: what would be added beyond is left out,
 * with its removal. The nodes that stay keep names and times. */
HD_MUST_USE enum hd_err hd_spot_trace_at_most(struct hd_spot_trace *trace, const struct hd_spot_trace *of,
	uint32_t most, struct hd_arena *arena, struct hd_diag *diag);

#endif
