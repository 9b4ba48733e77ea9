/* kept_plan.h -- the plans that a run adopted, in its folder: plan/NNNN.plan, the number that metrics.ndjson
 * has of each step.
 *
 * A run in one process numbers them by itself: a resumed one goes on with the newest plan if that is its own,
 * else with the next number. With several workers the number is the epoch of the view, whichever process
 * decided it; the scribe writes it when the view is in force, before a step of it can commit. Where all
 * members are remote they reach no folder, and the coordinator writes it when it knows the view, before a
 * line of metrics.ndjson names it; in which waves they compute it does not know: one virtual node after the
 * other.
 *
 * The rest of a step that goes on after a loss (docs/redundancy.md) has a number and no file: its lists are
 * of no view.
 *
 * 1. A file appears whole or not at all; the disk is not waited for. One that cannot be written stops
 *    nothing.
 * 2. Workers are named by their index in the view; the cause lists their ids.
 *
 * Pure but for the files. */
#ifndef HD_RUN_KEPT_PLAN_H
#define HD_RUN_KEPT_PLAN_H

#include "sys/file.h"
#include "plan/plan.h"

#define HD_PLAN_FOLDER "plan"

/* Into DIR/plan. HD_E_IO, HD_E_NOSPACE and the like: nothing is there. */
HD_MUST_USE enum hd_err hd_plan_keep(const struct hd_plan *plan, struct hd_fs *fs, const char *dir,
	struct hd_diag *diag);
/* The greatest number in DIR/plan. HD_E_NOTFOUND: there is none. */
HD_MUST_USE enum hd_err hd_plan_newest(uint32_t *number, struct hd_fs *fs, const char *dir,
	struct hd_diag *diag);
/* The same of files NNNN<end> there: ".plan" as above. */
HD_MUST_USE enum hd_err hd_plan_newest_of(uint32_t *number, const char *end, struct hd_fs *fs,
	const char *dir, struct hd_diag *diag);
/* The newest plan, parsed; its rules are not checked. HD_E_NOTFOUND: there is none. */
HD_MUST_USE enum hd_err hd_plan_read_newest(struct hd_plan *plan, struct hd_fs *fs, const char *dir,
	struct hd_arena *arena, struct hd_diag *diag);
/* The number of a plan adopted now: of the newest one if that has its digest, else the next; 0 in a folder
 * without plans. */
HD_MUST_USE enum hd_err hd_plan_number(uint32_t *number, const struct hd_plan *plan, struct hd_fs *fs,
	const char *dir, struct hd_diag *diag);

#endif
