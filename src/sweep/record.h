/* record.h -- what came of a sweep's trials, a line of JSON each; the machine again from these lines.
 *
 *	{"v":1,"kind":"begin","sweep":"<hash>","trials":27,"parallel":4}
 *	{"v":1,"kind":"report","trial":3,"rung":0,"step":20,"metric":1.25,"digest":"..."}
 *	{"v":1,"kind":"failed","trial":5,"rung":0,"step":7,"exit":4,"why":"..."}
 *
 * 1. A line is on the disk before anything follows from it. Decisions are not written: they follow
 *    (trials.h).
 * 2. `sweep` names what the sweep is: its file, its job and what else sets the job's keys. A record of
 *    another one is refused.
 * 3. A last line without its end was never acted on, and is passed over.
 *
 * Pure. */
#ifndef HD_SWEEP_RECORD_H
#define HD_SWEEP_RECORD_H

#include "base/hash.h"
#include "base/text.h"
#include "sweep/trials.h"

void hd_sweep_record_begin(const struct hd_hash *sweep, uint32_t ntrials, uint32_t parallel,
	struct hd_text *line);
void hd_sweep_record_event(const struct hd_trial_event *event, struct hd_text *line);

/* `t` as after all lines. began false: there is none yet, and `t` is as it was. HD_E_EXISTS: it is of another
 * sweep. HD_E_INPUT, HD_E_INTEGRITY: it is no record, or what it says does not follow. */
HD_MUST_USE enum hd_err hd_sweep_replay(const char *name, const char *bytes, size_t len,
	const struct hd_hash *sweep, const struct hd_sweep *of, const uint64_t *rung, uint32_t nrungs,
	struct hd_trials *t, bool *began, struct hd_diag *diag);

#endif
