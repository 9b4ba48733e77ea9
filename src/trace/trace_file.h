/* trace_file.h -- a full trace (.hdt): sections that are only ever appended, of one process or of many.
 *
 * A process that is being recorded appends to trace/<number>.hdt; `trace merge` writes the same format.
 *
 *	byte 0  char[8] "HDTRACE1", then sections, each at once after the one before:
 *	     0  u32 type; u32 flags (1: zstd)   8 u64 stored; u64 raw   24 u64 hash   32 the stored bytes
 *
 *	type        what its raw bytes are
 *	1 META      JSON: what wrote it, for people; an object
 *	2 NAMES     u32 process; u32 offset; the names of its table from that offset on (names.h)
 *	3 RINGS     u32 process; u32 ring (row of its directory); u64 index of the first slot, as the
 *	            ring counts; u64 slots missed so far; slots of 32 bytes (event.h), as recorded
 *	4 ALIGNMENT u32 process; u32 corners; i64 from, i64 to, i64 centre of a window in local ns; then
 *	            per corner f64 a, f64 b: reference - local = a + b (t - centre), t in ns
 *	5 PLANS     u8[16] hash; its text
 *	6 INDEX     of steps, each: u64 step; u64 slot of its begin; u32 process; u32 1: committed
 *	7 PROCESS   u32 process; u32 0; the 4096 bytes of a flight file's header (flight.h): its ids,
 *	            clock and lanes. Offsets in it mean nothing here.
 *
 * 1. Little end first. hash: hd_hash64 (XXH3) of the stored bytes.
 * 2. `process` is a number of this file, from 0. What belongs to it comes after its first PROCESS; a later
 *    PROCESS of the same number takes the place of the earlier (state, latest tick, worker).
 * 3. RINGS of one ring ascend: a section begins at the slot after the last one before, or later by those that
 *    were missed; then the slot LOST is its first. So a slot of a flight file of the same process (boot id,
 *    pid, trace time at start) is the same slot if ring and index are the same.
 * 4. Readers skip types they do not know, and drop a last section that is cut off. A section whose hash is
 *    wrong is HD_E_INPUT; hd_hdt_resume() goes on behind it.
 *
 * Pure: bytes in, bytes out. */
#ifndef HD_TRACE_TRACE_FILE_H
#define HD_TRACE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/flight.h"

enum { HD_HDT_MAGIC_BYTES = 8, HD_HDT_SECTION_BYTES = 32, HD_HDT_ZSTD = 1, HD_HDT_NAMES_BYTES = 8,
       HD_HDT_RINGS_BYTES = 24, HD_HDT_PROCESS_BYTES = 8 + HD_FLIGHT_HEADER_BYTES };

/*        id         number text */
#define HD_HDT_TYPES(X)                   \
	X(META,      1, "meta")       \
	X(NAMES,     2, "names")      \
	X(RINGS,     3, "rings")      \
	X(ALIGNMENT, 4, "alignment")  \
	X(PLANS,     5, "plans")      \
	X(INDEX,     6, "index")      \
	X(PROCESS,   7, "process")

enum hd_hdt_type {
#define X(id, number, text) HD_HDT_##id = (number),
	HD_HDT_TYPES(X)
#undef X
};
const char *hd_hdt_type_text(uint32_t type);             /* NULL: unknown */

/* ---- writing ---- */
void hd_hdt_magic(uint8_t to[HD_HDT_MAGIC_BYTES]);
/* stored: the payload as it will follow; raw_bytes: its length before compression (flags 0: the same) */
void hd_hdt_section(uint8_t to[HD_HDT_SECTION_BYTES], enum hd_hdt_type type, uint32_t flags,
	const void *stored, uint64_t stored_bytes, uint64_t raw_bytes);
/* The same of a payload whose hash is known: what is too long to lie in memory. */
void hd_hdt_section_of(uint8_t to[HD_HDT_SECTION_BYTES], enum hd_hdt_type type, uint64_t stored_bytes,
	uint64_t hash);
void hd_hdt_names(uint8_t to[HD_HDT_NAMES_BYTES], uint32_t process, uint32_t offset);

struct hd_hdt_rings { uint32_t process, ring; uint64_t first, nlost; };
void hd_hdt_rings(uint8_t to[HD_HDT_RINGS_BYTES], const struct hd_hdt_rings *rings);
/* header: the first 4096 bytes of a flight file */
void hd_hdt_process(uint8_t to[HD_HDT_PROCESS_BYTES], uint32_t process,
	const uint8_t header[HD_FLIGHT_HEADER_BYTES]);

/* ---- reading: pointers lie in the bytes read ---- */
struct hd_hdt_section {
	uint32_t type, flags;             /* type may be unknown */
	const uint8_t *stored;
	uint64_t stored_bytes, raw_bytes;
};
struct hd_hdt_reader {
	const uint8_t *bytes; size_t len, at;
	const char *name;                 /* of the file, for errors */
	bool cut;                         /* the last section was dropped: it is cut off */
	size_t tried;                     /* bytes hashed to go on behind damage */
};
HD_MUST_USE enum hd_err hd_hdt_begin(struct hd_hdt_reader *reader, const uint8_t *bytes, size_t len,
	const char *name, struct hd_diag *diag);
/* The next section; type 0: there are no more. HD_E_INPUT: its hash is wrong, or its lengths cannot be. */
HD_MUST_USE enum hd_err hd_hdt_next(struct hd_hdt_reader *reader, struct hd_hdt_section *section,
	struct hd_diag *diag);
/* After an error, or a cut: to the next section that is whole, wherever it begins, if no more than
 * HD_HDT_TRIES times the file has to be hashed to find it. *skipped: bytes. False: there is none. */
enum { HD_HDT_TRIES = 8 };
bool hd_hdt_resume(struct hd_hdt_reader *reader, size_t *skipped);
/* Of a payload that is not compressed, or no longer. False: it is too short for its type. */
bool hd_hdt_names_get(const uint8_t *raw, uint64_t len, uint32_t *process, uint32_t *offset);
bool hd_hdt_rings_get(const uint8_t *raw, uint64_t len, struct hd_hdt_rings *rings, uint64_t *nslots);
HD_MUST_USE enum hd_err hd_hdt_process_get(const uint8_t *raw, uint64_t len, const char *name,
	uint32_t *process, struct hd_flight_info *info, enum hd_flight_state *state, struct hd_diag *diag);

#endif
