/* flight.h -- the flight recorder's file: header, names, one ring per thread.
 *
 * A worker maps the file (sys) and formats it here, so that the newest events survive
 * whatever kills it. Views, snapshots and `trace dump` parse it. Trace makes no system
 * calls: memory, times and ids are handed in.
 *
 *	byte 0  char[8] "HDFLIGHT"    64  i64 realtime ns at start     120  u64 latest tick B; 128 ns B
 *	     8  u32 version 1         72  i64 boottime ns at start     136  u32 which latest pair: 0 A, 1 B
 *	    12  u32 state             80  u64 trace time at start      140  u32 names used
 *	    16  u8[16] job id         88  u64 first tick; 96 u64 ns    144  u64 names offset
 *	    32  u8[16] boot id       104  u64 latest tick A; 112 ns A  152  u32 names size; 156 u32 refused
 *	    48  u32 worker; 52 u32 pid; 56 u32 clock kind; 60 u32 rings (<= 64)
 *	  1024  directory: 64 entries of 48 bytes: u64 offset, u32 slots, u16 lane kind, u16 lane index,
 *	        char[32] name
 *	  4096  names, then the rings, each at a multiple of 64
 *
 * 1. Little end first. State, worker, which and used are changed while the file is in use, with
 *    release; the magic is stored last, so a file half formatted is no flight file.
 * 2. Of the two latest pairs the one that is not in use is rewritten, then `which` is
 *    turned: a reader never takes a tick of one with the ns of the other.
 * 3. A reader trusts nothing: it checks every offset, size and count against the bytes it
 *    has before it uses them.
 *
 * Ownership: memory is the caller's. Threads: format and tick by one thread; each ring
 * has its writer; state may be set from a signal handler. */
#ifndef HD_TRACE_FLIGHT_H
#define HD_TRACE_FLIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/names.h"
#include "trace/ring.h"

enum { HD_FLIGHT_VERSION = 1, HD_FLIGHT_HEADER_BYTES = 4096, HD_FLIGHT_RINGS = 64, HD_FLIGHT_LANE_NAME = 32,
       HD_FLIGHT_SLOTS = 65536 };         /* the default of a ring: 2 MiB */

enum hd_flight_state { HD_FLIGHT_RUNNING, HD_FLIGHT_FINISHED, HD_FLIGHT_SIGNAL };
enum hd_flight_clock { HD_FLIGHT_CLOCK_MONOTONIC_RAW = 1, HD_FLIGHT_CLOCK_TSC, HD_FLIGHT_CLOCK_SIMULATED };

/*        id        number text        */
#define HD_LANES_TABLE(X)               \
	X(DEVICE,    1, "device")        \
	X(READER,    2, "reader")        \
	X(TRANSFER,  3, "transfer")      \
	X(CONTROL,   4, "control")

enum hd_lane_kind {
#define X(id, number, text) HD_LANE_##id = (number),
	HD_LANES_TABLE(X)
#undef X
};
const char *hd_lane_text(uint16_t kind);                 /* NULL: unknown */

struct hd_tick { uint64_t tick, ns; };
struct hd_flight_lane { uint16_t kind, index; char name[HD_FLIGHT_LANE_NAME + 1]; };

/* What the header says, for writer and reader alike. */
struct hd_flight_info {
	uint8_t job[16], boot[16];
	uint32_t worker, pid;
	enum hd_flight_clock clock;
	int64_t realtime_ns, boottime_ns;
	uint64_t trace_time;
	struct hd_tick first, latest;
	uint32_t nrings;
	struct hd_flight_lane lane[HD_FLIGHT_RINGS];
	uint32_t nslots[HD_FLIGHT_RINGS]; /* of each ring; 0, when a file is formatted: as many as others */
};

/* A file being written. */
struct hd_flight {
	uint8_t *memory;                  /* borrowed */
	struct hd_names names;
	struct hd_ring_writer ring[HD_FLIGHT_RINGS];
};

/* Bytes of a file with `nrings` rings of `nslots`; of one whose lanes have slots of their own. */
size_t hd_flight_bytes(uint32_t nrings, uint32_t nslots);
size_t hd_flight_bytes_of(const struct hd_flight_info *info, uint32_t nslots);
/* memory: hd_flight_bytes_of(info, nslots), aligned to 64. */
void hd_flight_format(struct hd_flight *flight, void *memory, const struct hd_flight_info *info,
	uint32_t nslots);
void hd_flight_tick(struct hd_flight *flight, struct hd_tick latest);
/* The process has a number in its run from now on. Any thread. */
void hd_flight_worker_set(void *memory, uint32_t worker);
uint32_t hd_flight_names_used(const void *memory);                       /* any thread */
void hd_flight_state_set(void *memory, enum hd_flight_state state);      /* async-signal-safe */

/* A copy of a header becomes what the file's would be now. */
void hd_flight_header_update(uint8_t header[HD_FLIGHT_HEADER_BYTES], uint32_t worker,
	enum hd_flight_state state, struct hd_tick latest, uint32_t names_used);

/* A file being read; all pointers lie in the bytes parsed. */
struct hd_flight_view {
	struct hd_flight_info info;
	enum hd_flight_state state;
	const char *names; uint32_t names_used, names_refused;
	struct { const void *memory; uint32_t nslots; } ring[HD_FLIGHT_RINGS];
};
/* bytes: aligned to 8, may be written by others meanwhile. HD_E_INPUT says which field is wrong. */
HD_MUST_USE enum hd_err hd_flight_parse(const uint8_t *bytes, size_t len, const char *name,
	struct hd_flight_view *view, struct hd_diag *diag);
/* Of the header alone (as traces hold it): offsets and sizes are not looked at. */
HD_MUST_USE enum hd_err hd_flight_parse_info(const uint8_t header[HD_FLIGHT_HEADER_BYTES], const char *name,
	struct hd_flight_info *info, enum hd_flight_state *state, struct hd_diag *diag);

#endif
