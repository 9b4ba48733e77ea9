/* held_back.h -- what held a run back, in one sentence, by the flight files of its folder.
 *
 * 1. It is that of timeline/analyze/summary.h, of the newest steps of those that ran since the process began,
 *    HD_TL_SUMMARY_STEPS at most. Fewer than HD_HELD_BACK_STEPS say nothing; nor does a run of which nothing
 *    takes more than HD_TL_HELD_PERCENT of the steps.
 * 2. It costs no more than HD_HELD_BACK_SLOTS events do, whatever a run has recorded: of each ring that is
 *    longer than its part of them the newest are taken. Files of more than HD_HELD_BACK_FILE_BYTES say
 *    nothing.
 * 3. Files N.hdfr alone count: those of earlier processes (N.hdfr.1) are older. One that cannot be read is
 *    left out; if none can, nothing is said. Nothing here fails.
 *
 * Threads: any; a process that records writes on. Reads RUN/flight. */
#ifndef HD_RUN_HELD_BACK_H
#define HD_RUN_HELD_BACK_H

#include "run/rundir.h"

enum { HD_HELD_BACK_STEPS = 20, HD_HELD_BACK_BYTES = 256, HD_HELD_BACK_SLOTS = 100000,
	HD_HELD_BACK_FILE_BYTES = 256 << 20 };

/* Of steps [began, step) of the run in that folder; "": nothing is to be said. Without a full stop. */
void hd_held_back_look(struct hd_fs *fs, const char *run, uint64_t began, uint64_t step,
	char text[HD_HELD_BACK_BYTES]);

/* The same, as an event `held_back` of the run if there is something: the report has it so. */
void hd_held_back_note(struct hd_rundir *dir, uint64_t began, uint64_t step, char text[HD_HELD_BACK_BYTES]);

#endif
