#include "engine/recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/process.h"
#include "plan/ins.h"

enum { TICK_EVERY_NS = 1000000000, PATH_CAP = 1024, NAME_CAP = PATH_CAP + 16, LIVING = 1024 };

struct hd_recorder {
	struct hd_memory memory;
	struct hd_flight flight;
	struct hd_file number;            /* locked while this recorder has its number */
	uint32_t nrings;
	uint64_t ticked;
	uint32_t name[HD_INS_END];        /* of the instructions */
};

static uint32_t slots_of(uint64_t asked)
{
	uint64_t n = HD_RING_SLOTS_LOW;

	while (n < asked && n < HD_RING_SLOTS_HIGH)
		n *= 2;
	return (uint32_t)n;
}

static void name_of(const char *path, int age, char name[NAME_CAP])
{
	if (age)
		snprintf(name, NAME_CAP, "%s.%d", path, age);
	else
		snprintf(name, NAME_CAP, "%s", path);
}

/* What cannot be moved away stays in the way: then opening the new one says so. */
static void keep_older(struct hd_fs *fs, const char *path)
{
	char from[NAME_CAP], to[NAME_CAP];
	struct hd_stat stat;

	for (int age = HD_RECORDER_KEEP; age > 0; age--) {
		name_of(path, age - 1, from);
		name_of(path, age, to);
		if (hd_fs_stat(fs, from, &stat, NULL) || hd_fs_rename(fs, from, to, NULL))
			continue;
	}
}

/* The lowest number from the worker's own on that no living recorder of the folder has: its lock goes with
 * its process. Where the file system knows no locks, the worker's own. */
static uint32_t take_number(struct hd_recorder *r, const struct hd_recorder_spec *spec)
{
	char path[PATH_CAP];

	for (uint32_t n = spec->worker; n < spec->worker + LIVING; n++) {
		snprintf(path, sizeof path, "%s/%u.lock", spec->folder, n);
		if (hd_file_open(spec->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &r->number, NULL))
			break;
		enum hd_err err = hd_file_lock(&r->number, NULL);
		if (!err)
			return n;
		(void)!hd_file_close(&r->number, NULL);
		if (err != HD_E_AGAIN)
			break;
	}
	return spec->worker;
}

static void describe(const struct hd_recorder_spec *spec, uint32_t nrings, struct hd_flight_info *info)
{
	struct hd_clock clock;
	struct hd_proc_self self;
	uint64_t now = hd_clock_raw_ns();

	hd_clock_real(&clock);
	hd_proc_self(&self);
	*info = (struct hd_flight_info){
		.worker = spec->worker, .pid = self.pid, .clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW,
		.realtime_ns = hd_clock_wall_ns(&clock), .boottime_ns = hd_clock_boot_ns(), .trace_time = now,
		.first = { now, now }, .latest = { now, now }, .nrings = nrings,
	};
	memcpy(info->job, spec->job.byte, sizeof info->job);
	memcpy(info->boot, self.boot, sizeof info->boot);
	for (uint32_t r = 0; r < nrings; r++) {
		info->lane[r] = (struct hd_flight_lane){ .kind = HD_LANE_DEVICE, .index = (uint16_t)r };
		snprintf(info->lane[r].name, sizeof info->lane[r].name, "dev %u", r);
	}
}

static void intern_names(struct hd_recorder *r)
{
#define X(id, number, text, fields, about) \
	r->name[number] = hd_names_intern(&r->flight.names, text, strlen(text));
	HD_INS(X)
#undef X
}

enum hd_err hd_recorder_open(struct hd_recorder **recorder, const struct hd_recorder_spec *spec,
	struct hd_diag *diag)
{
	uint32_t nrings = spec->nranks < HD_FLIGHT_RINGS ? spec->nranks : HD_FLIGHT_RINGS,
		nslots = slots_of(spec->nslots);
	struct hd_recorder *r = hd_alloc(sizeof *r);
	struct hd_flight_info info;
	char path[PATH_CAP];

	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the flight recorder");
	*r = (struct hd_recorder){ .nrings = nrings };
	snprintf(path, sizeof path, "%s/%u.hdfr", spec->folder, take_number(r, spec));
	keep_older(spec->fs, path);
	enum hd_err err = hd_memory_share(path, hd_flight_bytes(nrings, nslots), &r->memory, diag);
	if (err) {
		(void)!hd_file_close(&r->number, NULL);
		hd_free(r);
		return err;
	}
	describe(spec, nrings, &info);
	hd_flight_format(&r->flight, r->memory.at, &info, nslots);
	intern_names(r);
	*recorder = r;
	return HD_OK;
}

void hd_recorder_close(struct hd_recorder *r)
{
	if (!r)
		return;
	hd_flight_state_set(r->memory.at, HD_FLIGHT_FINISHED);
	hd_memory_give(&r->memory);
	(void)!hd_file_close(&r->number, NULL);
	hd_free(r);
}

uint64_t hd_recorder_now(const struct hd_recorder *r) { return r ? hd_clock_raw_ns() : 0; }

static void put(struct hd_recorder *r, uint32_t rank, const struct hd_event *event)
{
	uint8_t slot[HD_SLOT_BYTES];

	if (rank >= r->nrings)
		return;
	hd_event_put(slot, event);
	hd_ring_put(&r->flight.ring[rank], slot);
}

void hd_recorder_step_begin(struct hd_recorder *r, uint64_t step)
{
	if (r)
		put(r, 0, &(struct hd_event){ .t0 = hd_clock_raw_ns(), .arg = step,
			.kind = HD_EVENT_STEP_BEGIN });
}

void hd_recorder_step_end(struct hd_recorder *r, uint64_t step, bool committed)
{
	if (!r)
		return;
	uint64_t now = hd_clock_raw_ns();
	put(r, 0, &(struct hd_event){ .t0 = now, .arg = step, .instr = committed,
		.kind = HD_EVENT_STEP_END });
	if (now - r->ticked < TICK_EVERY_NS)
		return;
	r->ticked = now;
	hd_flight_tick(&r->flight, (struct hd_tick){ now, now });
}

void hd_recorder_op(struct hd_recorder *r, uint32_t rank, uint64_t began, uint8_t op, uint32_t instr,
	uint64_t bytes)
{
	if (r)
		put(r, rank, &(struct hd_event){ .t0 = began, .duration = hd_clock_raw_ns() - began,
			.arg = bytes,
			.name = r->name[op], .instr = instr, .kind = HD_EVENT_OP });
}

void hd_recorder_wait(struct hd_recorder *r, uint32_t rank, uint64_t began, uint64_t waited_ns,
	enum hd_wait reason)
{
	if (r && waited_ns >= HD_WAIT_FELT_NS)
		put(r, rank, &(struct hd_event){ .t0 = began, .duration = waited_ns,
			.arg = hd_wait_arg(reason, 0), .kind = HD_EVENT_WAIT });
}
