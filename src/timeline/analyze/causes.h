/* causes.h -- what each device did at each instant, and what ended each of its waits: the ground that all
 * analyses of a timeline stand on.
 *
 * A device's lane is cut into *slices* without gaps, from its first event or step to its last: of events over
 * one another the innermost counts, so that a wait inside an instruction is a wait, and what is computed
 * inside a wait is work. Between events the device is idle.
 *
 * A wait ends by a *cause*:
 *   transfer   the RECV of its process that ended last inside it (the one of its id, if that is known), and
 *              the SEND of the same flow
 *   meeting    waits for a commit, and for transfers of which neither end was recorded: all devices that
 *              wait for the same reason then were released by the one that came last
 *   none       what it waited for has no event: data, memory, a slot, ...
 *
 * 1. Slices of a lane are [begin[lane], begin[lane + 1]); each begins where the one before ends.
 * 2. Nothing is matched across processes of which one is not aligned; such waits have no cause.
 * 3. A cause never lies after the end of its wait; where clocks say so by their error it is clipped to it.
 *
 * What a time is for is one of the *parts* below. hd_tl_slice_cut() cuts a slice into parts by the stamps of
 * its cause, clipped to the slice: the cuts of a slice add up to it.
 *
 * Ownership: the arena has the value; the timeline is borrowed. Pure. */
#ifndef HD_TIMELINE_ANALYZE_CAUSES_H
#define HD_TIMELINE_ANALYZE_CAUSES_H

#include "timeline/analyze/set.h"
#include "timeline/timeline.h"

/*        id           text                  about */
#define HD_TL_PARTS_TABLE(X)                                                                        \
	X(WORK,        "compute",            "instructions")                                         \
	X(PEER_LATE,   "peer late",          "the sender had not begun to send, or the last had not come") \
	X(ORDER,       "order",              "enqueued, and held back for others")                   \
	X(QUEUE,       "queue",              "behind others on the same channel")                    \
	X(WIRE,        "wire",               "from first to last byte")                              \
	X(DELIVERY,    "delivery",           "arrived, and not yet taken up")                        \
	X(TRANSFER,    "transfer",           "for a transfer that was not recorded at both ends")    \
	X(DATA,        "data",               "for rows of the reader")                               \
	X(SLOT,        "slot",               "for a place to put results")                           \
	X(COMMIT,      "commit",             "all have come, the commit has not")                    \
	X(MEMORY,      "memory",             "for memory")                                           \
	X(PLAN_CHANGE, "plan change",        "for another plan")                                     \
	X(OTHER,       "other",              "for what has no name")                                 \
	X(IDLE,        "idle",               "between events")

enum hd_tl_part {
#define X(id, text, about) HD_TL_PART_##id,
	HD_TL_PARTS_TABLE(X)
#undef X
	HD_TL_NPARTS
};
const char *hd_tl_part_text(enum hd_tl_part part);

enum hd_tl_cause { HD_TL_BY_NONE, HD_TL_BY_TRANSFER, HD_TL_BY_MEETING };
enum { HD_TL_CUTS = 5 };                                 /* of one slice, at most */
#define HD_TL_NO_EVENT UINT64_MAX

struct hd_tl_slice {
	int64_t t0, t1;
	uint64_t event;                   /* HD_TL_NO_EVENT: idle */
	uint64_t send, recv;              /* BY_TRANSFER: both */
	int64_t arrival;                  /* BY_MEETING: when the last came */
	uint32_t lane;
	uint32_t last;                    /* BY_MEETING: the lane that came last; maybe its own */
	uint8_t part;                     /* WORK, IDLE, or by the reason of its wait */
	uint8_t cause;
};

struct hd_tl_key { uint64_t first, event; int64_t t; };   /* first: flow, process, number of a step */

struct hd_tl_causes {
	const struct hd_timeline *tl;
	struct hd_tl_slice *slice;
	uint64_t *begin;                  /* [nlanes + 1]; lanes that are no device's are empty */
	uint64_t nwaits, nunmatched;      /* for transfers; of these without a cause */
	/* [nsends] by flow, [nrecvs] by process: then by time of begin, of end */
	const struct hd_tl_key *send, *recv; size_t nsends, nrecvs;
	/* [nevents] the latest end of events of the lane up to this one */
	int64_t *reach;
	const struct hd_tl_key *row; size_t nrows;       /* of steps, committed; by number, then row (t) */
};

HD_MUST_USE enum hd_err hd_tl_causes_make(struct hd_tl_causes *causes, const struct hd_timeline *tl,
	struct hd_arena *arena, struct hd_diag *diag);

struct hd_tl_cut { struct hd_tl_span span; enum hd_tl_part part; };
/* Ascending, without gaps, none empty. */
uint32_t hd_tl_slice_cut(const struct hd_tl_causes *causes, const struct hd_tl_slice *slice,
	struct hd_tl_cut cut[HD_TL_CUTS]);

/* The slice of a device's lane that holds the instant before t; NULL: t is not inside the lane. */
const struct hd_tl_slice *hd_tl_slice_before(const struct hd_tl_causes *causes, uint32_t lane, int64_t t);

/* A wait as it was at t, inside it or at its end: what had come by then (transfers alone). */
struct hd_tl_slice hd_tl_slice_at(const struct hd_tl_causes *causes, const struct hd_tl_slice *slice,
	int64_t t);
/* The first event of the lane that may end after t. */
uint64_t hd_tl_first_until(const struct hd_tl_causes *causes, uint32_t lane, int64_t t);
/* How many of recv[] are before those that the process received after t. */
size_t hd_tl_received_until(const struct hd_tl_causes *causes, uint64_t process, int64_t t);
/* The rows of a step's number are row[] from here on while `first` is that number. */
size_t hd_tl_rows_from(const struct hd_tl_causes *causes, uint64_t number);
/* The SEND of a RECV's flow; HD_TL_NO_EVENT: it was not recorded, or its process is not aligned. */
uint64_t hd_tl_send_of(const struct hd_tl_causes *causes, uint64_t recv);
/* The slices of the devices that a wait ended by a meeting met, one of each lane; at most nlanes. */
uint32_t hd_tl_slice_met(const struct hd_tl_causes *causes, const struct hd_tl_slice *slice,
	const struct hd_tl_slice **met);

/* Of row i of step[]: from the end of the step before it, of the same process and if that was the one before,
 * else from its own begin, to its end. */
struct hd_tl_span hd_tl_step_span(const struct hd_timeline *tl, uint32_t i);
bool hd_tl_is_device(const struct hd_timeline *tl, uint32_t lane);

#endif
