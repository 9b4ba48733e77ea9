/* run_lines.h -- the lines of a run's file: metrics.ndjson, events.ndjson.
 *
 * Line by line, so memory is bounded however long the run was. A run may go on meanwhile: what is there is
 * read. A file that is not there has no lines.
 *
 * Threads: any. */
#ifndef HD_RUN_RUN_LINES_H
#define HD_RUN_RUN_LINES_H

#include "base/json.h"
#include "run/rundir.h"

/* take: is handed each line that is JSON; it is gone afterwards. *unreadable grows by those that are none, or
 * longer than 64 KiB. */
HD_MUST_USE enum hd_err hd_run_lines_read(const struct hd_rundir *dir, const char *name, void (*take)(void
	*self, const struct hd_json *line), void *self, uint64_t *unreadable, struct hd_diag *diag);

#endif
