/* recorder.h -- the flight recorder of a process: its last steps, in a file that survives it.
 *
 * A run opens one in its folder, flight/<number>.hdfr, and hands it to the worker, whose ranks then write an
 * event per instruction; its I/O thread writes transfers and probes of the clock. The coordinator of a run
 * has one, too: flight/coordinator.hdfr. trace/flight.h says what the file holds. The number is the lowest,
 * from the spec's on, that no living recorder of the folder has (<number>.lock): processes that start at the
 * same time do not move each other's away. What number the process has in its run is in the header, once it
 * has joined.
 *
 * 1. A ring per lane, each written by one thread at a time; an event takes no lock, allocates nothing and
 *    makes no system call (the clock is read without one). The end of a step makes one, but not sooner than
 *    HD_RECORDER_COUNTED_NS after the last one: how long rank 0's thread waited for a processor is read from
 *    the system. The table of lanes says which thread writes which. A coordinator has no lanes of ranks.
 * 2. Events of a device: STEP_BEGIN and STEP_END (rank 0; instr 1: committed, 0: dropped), OP per
 *    instruction (instr: its index in the rank's list; arg: hd_work_arg() of the bytes that an F or B
 *    touches, 0 for others), WAIT where it was felt (HD_WAIT_FELT_NS). A WAIT lies inside the OP in which the
 *    rank waited, or between two. "forward ahead" and "update ahead": nodes of the next step and buckets that
 *    are brought on for them (engine/onset.h), outside of the list. SEND, RECV: name is the kind of the
 *    transfer. READ: instr is the virtual node, flow 0. OP in a control lane: what is done between steps, by
 *    name.
 *    Instructions of a step that was begun before (it was dropped, or the state was set back), and of a pass
 *    for virtual nodes of a lost worker, have the flag REDONE. What a pipeline does over within a pass that
 *    goes on (engine/rest.h) has not.
 * 3. Older files of the same number become .1 to .3, traces and copies too.
 *    COUNTER "processor wait" after STEP_END, where it was read: ns that the thread of rank 0 could run and
 *    had no processor (sys/usage.h), since it began.
 * 4. NULL is a recorder that is off.
 * 5. Times are those of CLOCK_MONOTONIC_RAW, of devices and readers to HD_TICKS_OFF_NS (sys/ticks.h). Where
 *    failpoints are built in, HD_TRACE_CLOCK=OFFSET_NS,PPM
 *    makes the clock of a process run so, times 1 + its number (a coordinator's not at all): tests of the
 *    alignment know the truth.
 *
 * 6. A thread behind it keeps the clock in the header, writes full traces (trace/<number>.hdt, drain.h) while
 *    a window of steps is asked for, and copies the flight file to flight/snapshots/: on SIGQUIT, by
 *    hd_recorder_dump(), and when a step takes ten times as long as usual, 5 s at least. What it has to say
 *    lies ready for hd_recorder_said(). A disk that is full ends a trace, nothing else. It also wakes every
 *    HD_RECORDER_BEAT_NS. If it wakes late by HD_RECORDER_STOPPED_NS or more, and not because no processor
 *    was free, the process was stopped (SIGSTOP, a frozen machine): an OP "stopped" in its lane has the
 *    interval. COUNTER "stops" there, whenever it grew: all that it woke late by, not for want of a
 *    processor, and by HD_RECORDER_LATE_NS and more at a time, ns: a sample of shorter stops (cpulimit stops
 *    a process for a part of each 0.1 s). COUNTER "quota wait" there, whenever it grew: ns that quotas of its
 *    control groups held the process back (sys/usage.h). Both are looked at each HD_RECORDER_HELD_NS.
 * 7. A fault of the process (sys/signal.h) leaves a mark and the state in the file.
 *
 * Ownership: open/close; close says that the process ended by itself. */
#ifndef HD_ENGINE_RECORDER_H
#define HD_ENGINE_RECORDER_H

#include "base/hash.h"
#include "trace/burst.h"
#include "trace/flight.h"
#include "sys/file.h"

enum { HD_RECORDER_KEEP = 3, HD_WAIT_FELT_NS = 1000, HD_RECORDER_BEAT_NS = 50000000,
       HD_RECORDER_STOPPED_NS = 200000000, HD_RECORDER_LATE_NS = 2000000,
       HD_RECORDER_COUNTED_NS = 5000000,
       HD_RECORDER_HELD_NS = 200000000 };
#define HD_RECORDER_COORDINATOR UINT32_MAX       /* as spec.worker: a file "coordinator" without devices */

/* Lanes behind those of the ranks.
 *        id        kind      index name         slots: 1 of  written by */
#define HD_RECORDER_LANES(X) \
	X(TRANSFER, TRANSFER, 0,    "transfers", 4,           "the thread that owns the hub")                     \
	X(READER,   READER,   0,    "reader",    4,           "readers of samples, one at a time")                \
	X(CONTROL,  CONTROL,  0,    "control",   16,          "the thread that owns the hub; a coordinator's")    \
	X(RUN,      CONTROL,  1,    "run",       16,          "the thread that works between steps")              \
	X(SIGNAL,   CONTROL,  2,    "signals",   1024,        "handlers of signals")                              \
	X(BEAT,     CONTROL,  3,    "heartbeat", 256,         "the thread behind it")

enum hd_recorder_lane {
#define X(id, kind, index, name, part, about) HD_RECORDER_##id,
	HD_RECORDER_LANES(X)
#undef X
	HD_RECORDER_NLANES
};

/* Names of what is not an instruction: of intervals, and of marks.
 *        id           text */
#define HD_RECORDER_NAMES(X) \
	X(FOLD,        "fold")                                                                                 \
	X(AHEAD,       "forward ahead")                                                                        \
	X(BROUGHT,     "update ahead")                                                                         \
	X(CHECKPOINT,  "checkpoint")                                                                           \
	X(EVALUATION,  "evaluation")                                                                           \
	X(READ,        "read")                                                                                 \
	X(STATE,       "state")                                                                                \
	X(CLOCK,       "clock")                                                                                \
	X(ADMITTED,    "admitted")                                                                             \
	X(UP,          "link up")                                                                              \
	X(LOST,        "link lost")                                                                            \
	X(SILENT,      "silent")                                                                               \
	X(HEARD,       "heard again")                                                                          \
	X(STOP,        "stop")                                                                                 \
	X(COMMIT,      "commit")                                                                               \
	X(ENDED,       "ended")                                                                                \
	X(SIGNAL,      "signal")                                                                               \
	X(STOPPED,     "stopped")                                                                              \
	X(WAITED,      "processor wait")                                                                       \
	X(HELD,        "quota wait")                                                                           \
	X(STOPS,       "stops")

enum hd_recorder_name {
#define X(id, text) HD_RECORDED_##id,
	HD_RECORDER_NAMES(X)
#undef X
	HD_RECORDED_COUNT
};

struct hd_recorder;

struct hd_recorder_spec {
	/* for numbers and older files, until close; the recording itself is always a file of the system */
	struct hd_fs *fs;
	const char *folder;               /* that of the run's flight files */
	uint32_t worker, nranks;          /* those beyond 64 less HD_RECORDER_NLANES have no lane */
	const char *traces;               /* the folder of full traces; NULL: none can be made */
	/* it looks there each second for HD_RECORDER_ASK: a process that nothing else can reach */
	bool asked;
	uint64_t nslots;                  /* per device; raised to a power of two */
	struct hd_hash job;
};

HD_MUST_USE enum hd_err hd_recorder_open(struct hd_recorder **recorder, const struct hd_recorder_spec *spec,
	struct hd_diag *diag);
void hd_recorder_close(struct hd_recorder *recorder);              /* takes NULL */
/* Where its files are, if the folder asked for lies on another machine or with a program (FUSE): a new one in
 * $XDG_RUNTIME_DIR/heddle, or in $TMPDIR. NULL: in that folder. */
const char *hd_recorder_moved_to(const struct hd_recorder *recorder);
/* It has joined. Any thread. */
void hd_recorder_worker_set(struct hd_recorder *recorder, uint32_t worker);

/* ---- the thread behind it; any thread may ask ---- */
#define HD_RECORDER_SNAPSHOTS "snapshots"        /* in the folder of flight files */
#define HD_RECORDER_ASK "ask"        /* "record N" or "dump", taken away once it is read */
/* A full trace of the steps from `first` on; nsteps 0: of all. None while another is being made. */
void hd_recorder_record(struct hd_recorder *recorder, uint64_t first, uint64_t nsteps);
void hd_recorder_dump(struct hd_recorder *recorder);     /* a copy of the flight file, soon */
struct hd_recorder_said { char kind[24], text[320]; };
bool hd_recorder_said(struct hd_recorder *recorder, struct hd_recorder_said *said);      /* false: nothing */

uint64_t hd_recorder_now(const struct hd_recorder *recorder);      /* ticks of the events; 0 when off */
/* The same in half the time, to HD_TICKS_OFF_NS: of the thread that writes that device's lane. */
uint64_t hd_recorder_now_of(struct hd_recorder *recorder, uint32_t rank);

/* ---- devices: the thread of the rank; step_begin, step_end: that of rank 0 ---- */
void hd_recorder_step_begin(struct hd_recorder *recorder, uint64_t step);
void hd_recorder_step_end(struct hd_recorder *recorder, uint64_t step, bool committed);
struct hd_recorder_op { uint64_t began, ended, bytes; uint32_t instr, vn, stage; uint8_t op, flags; };
void hd_recorder_op(struct hd_recorder *recorder, uint32_t rank, const struct hd_recorder_op *op);
/* From `began` to now. */
void hd_recorder_wait(struct hd_recorder *recorder, uint32_t rank, uint64_t began, enum hd_wait reason);
void hd_recorder_waited(struct hd_recorder *recorder, uint32_t rank, uint64_t began, uint64_t ended,
	enum hd_wait reason);
/* For that transfer. */
void hd_recorder_wait_for(struct hd_recorder *recorder, uint32_t rank, uint64_t began, uint32_t transfer);
/* Work of a device outside its list, from `began` to now. */
void hd_recorder_work(struct hd_recorder *recorder, uint32_t rank, enum hd_recorder_name name,
	uint64_t began);

/* ---- transfers and reads; of transfers times as how long ago, in ns: others count by another clock ---- */
struct hd_recorder_transfer {
	uint64_t flow, bytes;
	int64_t began_ago, gate_ago, first_ago, end_ago;
	uint32_t id, peer, chunks, preempted;
	uint8_t xfer, class;              /* xfer: enum hd_xfer_kind; 0: state */
	uint8_t primitive;                /* enum hd_collective */
	bool received;                    /* then there is no gate */
};
void hd_recorder_transfer(struct hd_recorder *recorder, const struct hd_recorder_transfer *transfer);
/* From `began`, as hd_recorder_now() gave it, to now. */
void hd_recorder_read(struct hd_recorder *recorder, uint32_t vn, uint64_t began, uint64_t bytes);

/* ---- control ---- */
void hd_recorder_mark(struct hd_recorder *recorder, enum hd_recorder_lane lane, enum hd_recorder_name name,
	uint32_t instr, uint64_t arg);
/* By a text, interned: the thread of CONTROL alone. */
void hd_recorder_note(struct hd_recorder *recorder, const char *text, uint32_t instr, uint64_t arg);
void hd_recorder_epoch(struct hd_recorder *recorder, uint32_t epoch, const char *plan);
/* From `began` to now; arg as of OP. */
void hd_recorder_span(struct hd_recorder *recorder, enum hd_recorder_lane lane, enum hd_recorder_name name,
	uint64_t began, uint64_t arg);
void hd_recorder_probe(struct hd_recorder *recorder, uint32_t peer, const struct hd_burst_probe *probe);

#endif
