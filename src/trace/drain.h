/* drain.h -- copies what a process records into a full trace, while it records.
 *
 * One thread beside those that record calls it every few milliseconds. It reads the rings of a flight file as
 * any reader does (ring.h), and appends sections (trace_file.h).
 *
 * 1. What is copied begins with the oldest slot that ends after `from`, and ends with the last that begins
 *    before `to`, of each ring: nothing between is left out but what the writer overwrote first. That is
 *    counted: a slot LOST stands for the last that is missing.
 * 2. A pass that returns an error has put whole sections or a part of one: readers drop that, and nothing may
 *    be put after it.
 * 3. Memory is the struct: HD_DRAIN_SLOTS slots at a time.
 * 4. Of the flight file only rings and names are read while others write; its header is the caller's copy.
 *
 * Pure: bytes go to a sink. Threads: one. */
#ifndef HD_TRACE_DRAIN_H
#define HD_TRACE_DRAIN_H

#include "trace/trace_file.h"

enum { HD_DRAIN_SLOTS = 1024, HD_DRAIN_NAMES = 4096 };

struct hd_drain_sink {
	void *self;
	enum hd_err (*put)(void *self, const void *bytes, size_t len, struct hd_diag *diag);
};

struct hd_drain {
	struct hd_drain_sink sink;
	const void *memory; const char *table;    /* of the flight file and its names, borrowed */
	uint32_t nrings, process, names;  /* names: bytes of the table that are copied */
	/* before: missed before the first that counts; missed: since, as far as it is written */
	struct { struct hd_ring_reader reader; uint64_t before, missed; bool began; } ring[HD_FLIGHT_RINGS];
	uint8_t text[HD_HDT_SECTION_BYTES + HD_HDT_NAMES_BYTES + HD_DRAIN_NAMES];
	uint8_t buffer[HD_HDT_SECTION_BYTES + HD_HDT_RINGS_BYTES + (HD_DRAIN_SLOTS + 1) * HD_SLOT_BYTES];
};

/* The magic, and what wrote it. meta: JSON. */
HD_MUST_USE enum hd_err hd_drain_head(const struct hd_drain_sink *sink, const char *meta,
	struct hd_diag *diag);
/* view: of the own flight file at `memory`, parsed. Puts the process, as `header` has it. */
HD_MUST_USE enum hd_err hd_drain_begin(struct hd_drain *drain, const struct hd_drain_sink *sink,
	const void *memory, const struct hd_flight_view *view,
	const uint8_t header[HD_FLIGHT_HEADER_BYTES], uint32_t process, struct hd_diag *diag);
/* What is new in names and rings. from, to: ticks; to 0: without end. `to` is read again after slots were,
 * so it may be set by the thread that recorded the last of them. */
HD_MUST_USE enum hd_err hd_drain_pass(struct hd_drain *drain, uint64_t from, const _Atomic uint64_t *to,
	struct hd_diag *diag);
/* The process again, as it is now. */
HD_MUST_USE enum hd_err hd_drain_process(struct hd_drain *drain,
	const uint8_t header[HD_FLIGHT_HEADER_BYTES], struct hd_diag *diag);
/* Another window of the same process follows: `from` counts again. */
void hd_drain_again(struct hd_drain *drain);
uint64_t hd_drain_lost(const struct hd_drain *drain);            /* slots that were missed */

#endif
