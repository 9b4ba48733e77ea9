/* import.h -- a timeline out of a trace of another program: Chrome's trace events as Kineto (PyTorch) and
 * others write them, plain or gzipped.
 *
 * 1. Read: complete events X, pairs B and E, instants i, counters C, flows s and f, names M. Other phases are
 *    counted. `pid` and `tid` are numbers or texts; a process for each pid, a lane for each of its tids.
 * 2. ts and dur are microseconds, kept to the ns; `baseTimeNanoseconds` is added for UTC. An event without
 *    ts, or with a negative dur, is HD_E_INPUT with its index.
 * 3. Steps are what Kineto calls ProfilerStep#N (user_annotation).
 * 4. Lanes that hold kernels, or copies of a device, are devices' lanes; in a process without any all are.
 *    What does not nest there goes to further lanes (build.h, 4).
 * 5. A file that ends in the middle gives the events before its end, and is counted as cut.
 * 6. At most HD_TL_IMPORT_EVENTS events, HD_TL_IMPORT_BYTES bytes unpacked, nesting 64 deep.
 *
 * A flow's two slices get one number; where several begin in one slice the last stands. All clocks are one:
 * what aligned a foreign trace it does not say.
 *
 * Ownership: the arena. Pure. */
#ifndef HD_TIMELINE_IMPORT_H
#define HD_TIMELINE_IMPORT_H

#include "base/arena.h"
#include "base/err.h"
#include "timeline/timeline.h"

enum { HD_TL_IMPORT_EVENTS = 1 << 26, HD_TL_IMPORT_LANES = 1 << 16 };
#define HD_TL_IMPORT_BYTES ((size_t)4 << 30)

struct hd_tl_foreign { uint64_t nskipped, nunpaired; bool cut; };      /* phases not read; B or E alone */

/* Gzipped, or begins like a JSON text. */
bool hd_tl_is_foreign(const uint8_t *bytes, size_t len);
HD_MUST_USE enum hd_err hd_tl_import(struct hd_arena *arena, const char *name, const uint8_t *bytes,
	size_t len, struct hd_timeline *timeline, struct hd_tl_foreign *foreign, struct hd_diag *diag);

#endif
