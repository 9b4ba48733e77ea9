/* import_int.h -- the steps of importing (import.h): events as they stand in the file, then a timeline of
 * them. Private to the room. */
#ifndef HD_TIMELINE_IMPORT_INT_H
#define HD_TIMELINE_IMPORT_INT_H

#include "timeline/build_int.h"
#include "timeline/import.h"
#include "timeline/json_scan.h"

/* lane: row of `lane` here; names by number. Flows, and halves of pairs, are no events of a timeline yet. */
struct import_event { struct hd_tl_event e; uint64_t order; char phase; };

enum { HD_IMPORT_STEP = 'P' };            /* a phase: X, and a step */

struct import_lane { uint32_t process, name, depth, named, *open, open_cap; bool device; uint64_t count; };
struct import_process { uint32_t name, label; };

struct import {
	struct hd_arena *arena;
	const char *file;
	struct json_scan scan;
	struct hd_text key, text[4];      /* of the member, and the event, at hand */
	struct tl_names names, pids, tids;        /* tids: "process:tid" */
	struct import_event *event; uint32_t nevents, cap;
	struct import_lane *lane; uint32_t lanes_cap;
	struct import_process *process; uint32_t processes_cap;
	int64_t base_ns;
	uint32_t nsteps;
	uint32_t rank;                    /* of distributedInfo; HD_TL_NONE */
	struct hd_tl_foreign foreign;
};

HD_MUST_USE enum hd_err hd_tl_import_read(struct import *in, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_tl_import_build(struct import *in, struct hd_timeline *timeline,
	struct hd_diag *diag);

#endif
