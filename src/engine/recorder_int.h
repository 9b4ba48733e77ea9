/* recorder_int.h -- what the files of a recorder share: recorder.c opens it and records devices,
 * recorder_lanes.c the other lanes; recorder_back.c is the thread behind it. */
#ifndef HD_ENGINE_RECORDER_INT_H
#define HD_ENGINE_RECORDER_INT_H

#include <stdatomic.h>

#include "trace/drain.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "sys/ticks.h"
#include "sys/usage.h"
#include "plan/ins.h"
#include "plan/xfer.h"
#include "engine/recorder.h"

enum { HD_RECORDER_PATH = 1024, HD_RECORDER_USUAL = 15, HD_RECORDER_COPY = 4096 };

/* Of a count that is written when it grows. ns: as it was last seen, before: when it had last not grown. */
struct hd_recorder_count { uint64_t ns, before; };

/* Of the thread behind a recording, but for what the lock guards: quit, dump, said. */
struct hd_recorder_back {
	struct hd_thread thread;
	struct hd_lock lock;
	struct hd_cond woken;
	atomic_bool quit, says;
	bool dump;
	struct hd_recorder_said said;
	struct hd_fs fs;
	char traces[HD_RECORDER_PATH];    /* "": none are written */
	bool asked;                       /* requests may lie there */
	struct hd_file file;
	bool open, draining, failed;      /* open: `file` is; failed: it ends in the middle */
	struct hd_drain *drain; uint64_t lost;    /* owned; lost: slots that it missed, as was said */
	struct hd_flight_view view;
	struct hd_usage usage; uint64_t waited_ns;               /* of its thread */
	uint64_t stops_ns;
	struct hd_throttle held;
	struct hd_recorder_count stops_count, held_count; uint64_t counted;   /* when they were looked at */
	int dumps;                        /* SIGQUITs seen */
	uint64_t stalled;                 /* begin of the step that was taken too long; 0 */
	uint64_t buffer[HD_RECORDER_COPY];
};

struct hd_recorder {
	struct hd_memory memory;
	struct hd_flight flight;
	struct hd_flight_info info;
	struct hd_file number;            /* locked while this recorder has its number */
	uint32_t nranks;                  /* that have rings */
	char folder[HD_RECORDER_PATH];
	uint32_t its_number;
	bool moved;                       /* the folder is not the one that was asked for */
	size_t bytes;                     /* of the flight file */
	uint8_t header[HD_FLIGHT_HEADER_BYTES];   /* as it was formatted */
	_Atomic uint32_t worker;
	/* a full trace: steps [first, end), ticks [from, to]; first UINT64_MAX: none; from, to 0: not yet;
	 * count: so many from the first that begins on, whichever that is; 0: `end` says */
	struct { _Atomic uint64_t first, end, count, from, to; } window;
	/* begun: of the step at hand; usual: median of the last ones; 0: none */
	struct { _Atomic uint64_t began, usual_ns; uint64_t took[HD_RECORDER_USUAL]; uint32_t n; } pace;
	uint64_t begun_end;               /* behind the highest step that was begun */
	atomic_bool again;                /* the one at hand had been begun before */
	struct hd_signal_fatal fatal;
	bool dumps;                       /* SIGQUIT is its own */
	struct hd_usage usage;            /* of the thread of rank 0 */
	uint64_t counted;                 /* when it was read last */
	struct hd_recorder_back back;
	uint64_t started;                 /* the clock's own time then */
	int64_t offset_ns; double rate;   /* of a clock that a test has bent; 0 and 0 */
	struct hd_ticks_rate ticks;
	/* of each ring's thread: devices and readers; apart, so that none writes into another's line */
	struct { struct hd_ticks at; uint64_t apart[5]; } look[HD_FLIGHT_RINGS];
	uint32_t ins[HD_INS_END], xfer[HD_XFER_KINDS], name[HD_RECORDED_COUNT];
};

/* recorder.c: FOLDER/NUMBER and the ending; files of that path become .1 to .3 */
void hd_recorder_path(char path[HD_RECORDER_PATH], const char *folder, uint32_t number, const char *end);
void hd_recorder_keep_older(struct hd_fs *fs, const char *path);
/* recorder_place.c: finds `folder` */
HD_MUST_USE enum hd_err hd_recorder_place(struct hd_recorder *r, const char *folder, struct hd_diag *diag);
/* recorder_back.c */
HD_MUST_USE enum hd_err hd_recorder_back_start(struct hd_recorder *r, const struct hd_recorder_spec *spec,
	struct hd_diag *diag);
void hd_recorder_back_end(struct hd_recorder *r);        /* takes what was not started */

/* recorder.c: of the thread of that ring */
uint64_t hd_recorder_look(struct hd_recorder *r, uint32_t ring);

static inline struct hd_ring_writer *hd_recorder_ring(struct hd_recorder *r, enum hd_recorder_lane lane)
{
	return &r->flight.ring[r->nranks + (uint32_t)lane];
}

#endif
