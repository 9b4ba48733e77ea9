/* timeline.h -- what happened in a run, of all its processes on one axis of time, as a value.
 *
 * Recordings (flight files, full traces, traces of other programs) are read into one; analyses, exports and
 * the viewer read it and change nothing.
 *
 * 1. Times are ns of the reference clock (that of the process that coordinated the run) since `base_ns`;
 *    they may be negative. A recorded stamp is local: what aligned it, and by how much it can be wrong,
 *    stands with its process. Nothing is moved to look right: an arrow may point backwards by the sum of
 *    both errors at most.
 * 2. A process is one life: a worker that was killed and started again is two rows of `process`.
 * 3. Events are sorted by lane, then by t0, then longer first; `lane[l]` says where its own begin. In a
 *    device's lane those that last are disjoint or strictly nested. Transfers and reads may overlap:
 *    exports give them sub-lanes.
 * 4. `step[]` has one row per process and step that the process ended, sorted by process, then by begin. A
 *    step that was dropped and begun again is two rows.
 * 5. What was lost is counted, never guessed: `lane[l].nlost` slots were overwritten or missed.
 *
 * Ownership: the caller's arena has all of it. Threads: a value; any may read it. */
#ifndef HD_TIMELINE_TIMELINE_H
#define HD_TIMELINE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/flight.h"

#define HD_TL_NONE UINT32_MAX

/*        id        number text         colour: of a palette that colour-blind eyes tell apart */
#define HD_TL_CLASSES(X)                                \
	X(FORWARD,   0, "forward",   "#4477aa")          \
	X(BACKWARD,  1, "backward",  "#66ccee")          \
	X(WEIGHTS,   2, "weights",   "#228833")          \
	X(UPDATE,    3, "update",    "#aa3377")          \
	X(SUM,       4, "sum",       "#332288")          \
	X(SEND,      5, "send",      "#ccbb44")          \
	X(RECEIVE,   6, "receive",   "#ddaa33")          \
	X(READ,      7, "read",      "#117733")          \
	X(WAIT,      8, "wait",      "#ee6677")          \
	X(COMMIT,    9, "commit",    "#882255")          \
	X(MARK,     10, "mark",      "#000000")          \
	X(OTHER,    11, "other",     "#bbbbbb")

enum hd_tl_class {
#define X(id, number, text, colour) HD_TL_##id = (number),
	HD_TL_CLASSES(X)
#undef X
	HD_TL_CLASS_COUNT
};

struct hd_tl_event {
	int64_t t0, t1;                   /* t1 >= t0; equal: an instant */
	int64_t gate, first;              /* SEND, RECV, READ: gate released; first byte. Else t0 */
	uint64_t arg;                     /* trace/event.h: hd_work_arg() of OP; bytes; reason of WAIT */
	uint64_t flow;                    /* equal at both ends of a transfer; 0: none */
	uint32_t lane, name;              /* rows of the timeline */
	uint32_t instr;                   /* OP: index in the device's list; else transfer, file */
	uint32_t step;                    /* row of step[] that it lies in; HD_TL_NONE */
	uint32_t vn, stage;               /* OP: virtual node, stage; HD_TL_NONE */
	uint32_t predicted_ns;            /* 0: not predicted */
	uint32_t chunks;
	uint32_t peer;                    /* SEND, RECV: process at the other end; HD_TL_NONE: not recorded */
	uint16_t preempted, priority_class;
	uint8_t kind, flags, primitive;   /* enum hd_event_kind; HD_EVENT_FLAG_* */
	uint8_t class;                    /* enum hd_tl_class */
};

struct hd_tl_lane {
	uint32_t process;
	uint16_t kind, index;             /* enum hd_lane_kind */
	const char *name;
	uint64_t begin, end;              /* its events are [begin, end) */
	uint64_t nlost;
};

struct hd_tl_process {
	uint32_t worker, pid;             /* worker: its number in the run; HD_TL_NONE: the coordinator */
	const char *name;                 /* "worker 3", "coordinator", of another program's trace its own */
	const char *host;                 /* "": not recorded */
	enum hd_flight_state state;
	bool aligned;                     /* else its times are local, drawn apart, named by every analysis */
	int64_t error_ns;                 /* the largest error of its times; 0 of the reference */
	uint32_t lane_begin, lane_end;
	uint32_t step_begin, step_end;
};

struct hd_tl_step {
	uint64_t number;
	int64_t begin, end;
	uint32_t process;
	bool committed;
};

struct hd_timeline {
	int64_t base_ns;                  /* of the reference clock's trace time */
	int64_t realtime_ns;              /* UTC at base_ns; 0: not known */
	int64_t begin, end;               /* of all events */
	struct hd_tl_event *event; uint64_t nevents;
	struct hd_tl_lane *lane; uint32_t nlanes;
	struct hd_tl_process *process; uint32_t nprocesses;
	struct hd_tl_step *step; uint32_t nsteps;
	const char *const *name; uint32_t nnames;              /* UTF-8; 0 is "?" */
	const char *job;                  /* its hash as text; "" of another program's trace */
	bool foreign;                                          /* not recorded by this program */
	uint64_t nlost, nunknown;                              /* slots lost; events of kinds unknown here */
};

const char *hd_tl_class_text(uint8_t class);             /* NULL: unknown */
const char *hd_tl_class_colour(uint8_t class);           /* "#rrggbb"; NULL: unknown */

#endif
