/* recorder_int.h -- what the files of a recorder share: recorder.c opens it and records devices,
 * recorder_lanes.c the other lanes. */
#ifndef HD_ENGINE_RECORDER_INT_H
#define HD_ENGINE_RECORDER_INT_H

#include "sys/clock.h"
#include "sys/memory.h"
#include "plan/ins.h"
#include "plan/xfer.h"
#include "engine/recorder.h"

enum { HD_RECORDER_PATH = 1024 };

struct hd_recorder {
	struct hd_memory memory;
	struct hd_flight flight;
	struct hd_flight_info info;
	struct hd_file number;            /* locked while this recorder has its number */
	uint32_t nranks;                  /* that have rings */
	uint64_t ticked;
	uint64_t started;                 /* the clock's own time then */
	int64_t offset_ns; double rate;   /* of a clock that a test has bent; 0 and 0 */
	uint32_t ins[HD_INS_END], xfer[HD_XFER_KINDS], name[HD_RECORDED_COUNT];
};

static inline struct hd_ring_writer *hd_recorder_ring(struct hd_recorder *r, enum hd_recorder_lane lane)
{
	return &r->flight.ring[r->nranks + (uint32_t)lane];
}

#endif
