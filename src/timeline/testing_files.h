/* testing_files.h -- recordings made by hand: a flight file in memory, whose process has a clock of its own.
 *
 *	struct tl_flight f;
 *	tl_flight_open(&f, 0, 2, 64);                  worker 0, two lanes (device, control), rings of 64
 *	tl_flight_op(&f, 0, 100, 50, "F", 3);          lane 0, t0 and length in ticks, virtual node 3
 *	struct hd_tl_input in = tl_flight_file(&f, "0.hdfr");      ... tl_flight_close(&f);
 */
#ifndef HD_TIMELINE_TESTING_FILES_H
#define HD_TIMELINE_TESTING_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/build.h"
#include "timeline/lives.h"
#include "timeline/tighten.h"
#include "tests/check.h"

struct tl_flight { struct hd_flight flight; struct hd_flight_info info; uint8_t *memory; size_t len; };

#define TF_FN static inline __attribute__((unused))

/* Lane 0 is a device's, then one each of control, transfer, reader, and devices again. */
TF_FN void tl_flight_open(struct tl_flight *f, uint32_t worker, uint32_t nrings, uint32_t nslots)
{
	static const uint16_t kind[] = { HD_LANE_DEVICE, HD_LANE_CONTROL, HD_LANE_TRANSFER,
		HD_LANE_READER };

	f->info = (struct hd_flight_info){ .worker = worker, .pid = 1000 + worker,
		.clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW, .trace_time = 10,
		.realtime_ns = worker == UINT32_MAX ? 9000000 : 5000000 + worker,
		.first = { 10, 10 }, .latest = { 10, 10 }, .nrings = nrings, .job = { 7 },
		.boot = { 1, (uint8_t)(worker + 1) } };
	for (uint32_t r = 0; r < nrings; r++) {
		struct hd_flight_lane *lane = &f->info.lane[r];
		lane->kind = r < 4 ? kind[r] : HD_LANE_DEVICE;
		lane->index = (uint16_t)(r < 4 ? 0 : r - 3);
		snprintf(lane->name, sizeof lane->name, "%s %u", hd_lane_text(lane->kind), lane->index);
	}
	f->len = hd_flight_bytes(nrings, nslots);
	f->memory = aligned_alloc(64, (f->len + 63) / 64 * 64);
	assert_non_null(f->memory);
	memset(f->memory, 0, f->len);
	hd_flight_format(&f->flight, f->memory, &f->info, nslots);
}

/* As the program does: collected, aligned, tightened if one of the inputs was, built. */
TF_FN enum hd_err tl_build(struct hd_arena *arena, const struct hd_tl_input *input, uint32_t n,
	struct hd_timeline *timeline, struct hd_diag *diag)
{
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	uint32_t reference, nkept;
	enum hd_err err = hd_tl_collect(arena, input, n, &lives, diag);

	if (!err)
		err = hd_tl_align(arena, &lives, &clock, &reference, diag);
	if (!err && lives.tightened)
		err = hd_tl_tighten(arena, &lives, clock, &nkept, diag);
	return err ? err : hd_tl_build_of(arena, &lives, clock, reference, timeline, diag);
}

TF_FN void tl_flight_close(struct tl_flight *f) { free(f->memory); f->memory = NULL; }

TF_FN struct hd_tl_input tl_flight_file(const struct tl_flight *f, const char *name)
{
	return (struct hd_tl_input){ name, f->memory, f->len };
}

TF_FN uint32_t tl_flight_name(struct tl_flight *f, const char *text)
{
	return hd_names_intern(&f->flight.names, text, strlen(text));
}

TF_FN void tl_flight_put(struct tl_flight *f, uint32_t lane, struct hd_event e)
{
	uint8_t slot[HD_SLOT_BYTES];

	hd_event_put(slot, &e);
	hd_ring_put(&f->flight.ring[lane], slot);
}

TF_FN void tl_flight_op(struct tl_flight *f, uint32_t lane, uint64_t t0, uint64_t length, const char *name,
	uint32_t vn)
{
	tl_flight_put(f, lane, (struct hd_event){ .t0 = t0, .duration = length, .kind = HD_EVENT_OP,
		.name = tl_flight_name(f, name), .arg = hd_work_arg(64, vn, 1) });
}

TF_FN void tl_flight_step(struct tl_flight *f, uint64_t at, bool end, uint64_t step, bool committed)
{
	tl_flight_put(f, 0, (struct hd_event){ .t0 = at, .arg = step, .instr = committed,
		.kind = end ? HD_EVENT_STEP_END : HD_EVENT_STEP_BEGIN });
}

TF_FN void tl_flight_transfer(struct tl_flight *f, uint32_t lane, enum hd_event_kind kind, uint64_t t0,
	uint64_t length, struct hd_event_transfer more)
{
	uint8_t slot[2][HD_SLOT_BYTES];

	hd_event_put(slot[0], &(struct hd_event){ .t0 = t0, .duration = length, .arg = 4096,
		.kind = (uint8_t)kind, .flags = HD_EVENT_FLAG_EXT, .name = tl_flight_name(f, "SA") });
	hd_event_put_transfer(slot[1], &more);
	hd_ring_put_pair(&f->flight.ring[lane], slot[0], slot[1]);
}

/* All stamps as the clocks of both ends gave them. */
TF_FN void tl_flight_probe(struct tl_flight *f, uint32_t lane, uint64_t t1, uint64_t t2, uint64_t t3,
	uint64_t t4)
{
	uint8_t slot[2][HD_SLOT_BYTES];

	hd_event_put(slot[0], &(struct hd_event){ .t0 = t1, .duration = t4 - t1, .arg = t2,
		.kind = HD_EVENT_CLOCK, .flags = HD_EVENT_FLAG_EXT });
	hd_event_put_probe(slot[1], &(struct hd_event_probe){ .between = t3 - t2, .peer = UINT32_MAX });
	hd_ring_put_pair(&f->flight.ring[lane], slot[0], slot[1]);
}

#endif
