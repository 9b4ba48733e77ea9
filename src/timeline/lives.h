/* lives.h -- what each process of a run recorded, out of whichever files: slots as they were recorded, each
 * once.
 *
 * Inputs are flight files (trace/flight.h) and traces (trace/trace_file.h), of one process or of many, in any
 * mix and order. build.h makes a timeline of it, merge.h one file.
 *
 * 1. A process is known by boot id, pid, clock and the times of its start. What several files have of it is
 *    joined: slots are the same slot if ring and index are. Two files with other bytes for one slot, or one
 *    name, are HD_E_INPUT.
 * 2. Simulated recordings have no such marks: those of equal bytes are one, all others are processes of their
 *    own.
 * 3. The result does not depend on the order of the inputs: the coordinator first, then by start.
 * 4. Readers trust nothing. Of a trace what is whole is taken: a section that is damaged, cut off,
 *    compressed, or goes on where none was, is dropped and listed. Slots of it are lost, and counted as
 *    such; names of it are "?", unless another file of the process has them.
 *
 * Ownership: the arena has all of it but pieces of traces that are not compressed, which lie in the inputs'
 * bytes and are not copied. A flight file may be written by its process meanwhile, as long as it is mapped;
 * it is copied. */
#ifndef HD_TIMELINE_LIVES_H
#define HD_TIMELINE_LIVES_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "trace/flight.h"
#include "trace/trace_file.h"

/* bytes: aligned to 8. name: for messages. */
struct hd_tl_input { const char *name; const uint8_t *bytes; size_t len; };

/* Slots [first, first + nslots) of a ring. */
struct hd_tl_piece { uint64_t first, nslots; const uint8_t *slot; };

struct hd_tl_ring {
	struct hd_tl_piece *piece;        /* ascending, disjoint; one may adjoin the next */
	uint32_t npieces, cap;
	uint64_t lead;                    /* slots before the first piece that were lost */
};

struct hd_tl_life {
	struct hd_flight_info info;       /* the newest that a file has */
	enum hd_flight_state state;
	const uint8_t *header;            /* HD_FLIGHT_HEADER_BYTES, of which info was read */
	const char *names; uint32_t names_used;
	struct hd_tl_ring ring[HD_FLIGHT_RINGS];
	struct hd_hash content;           /* of names and slots; zeros but for simulated ones */
	const char *file;                 /* one of those that it is from */
};

struct hd_tl_text { uint8_t hash[16]; const char *text; size_t len; };

struct hd_tl_dropped {
	const char *file;
	uint32_t nsections;               /* besides a last one that is cut off */
	bool cut;
	struct hd_diag first;             /* of the first one: why */
};

struct hd_tl_lives {
	struct hd_tl_life **life; uint32_t n, cap;
	struct hd_tl_text *plan; uint32_t nplans, plans_cap;      /* by hash, each once */
	struct hd_tl_dropped *dropped; uint32_t ndropped, dropped_cap;   /* a row a file that has any */
	bool tightened;                   /* one of the inputs is a file that was merged so (align.h) */
};

HD_MUST_USE enum hd_err hd_tl_collect(struct hd_arena *arena, const struct hd_tl_input *input, uint32_t n,
	struct hd_tl_lives *lives, struct hd_diag *diag);

/* The slot behind slot i of piece k, which may be the first of the next piece; NULL: it is not there. */
const uint8_t *hd_tl_slot_after(const struct hd_tl_ring *ring, uint32_t k, uint64_t i);

/* Slots that are there, and that are lost, of a ring. */
uint64_t hd_tl_ring_slots(const struct hd_tl_ring *ring);
uint64_t hd_tl_ring_lost(const struct hd_tl_ring *ring);

/* Does it begin like a flight file or a trace? */
bool hd_tl_is_recording(const uint8_t *bytes, size_t len);

#endif
