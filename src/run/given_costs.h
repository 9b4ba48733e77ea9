/* given_costs.h -- what a job's ops take, as a file says it: for devices that wait (`--devices paced:N
 * --profile FILE`), in place of what a core takes.
 *
 * Devices of another machine are played so, joined by the link that the file names.
 *
 * 1. The file is a profile of the job (cost/profile.h): of its graph, and of as many rows in a virtual node.
 * 2. Every process that reads it waits the same times, and predicts by them.
 *
 * All in the arena. Threads: one. */
#ifndef HD_RUN_GIVEN_COSTS_H
#define HD_RUN_GIVEN_COSTS_H

#include "run/costs.h"
#include "run/rundir.h"

/* HD_E_INVAL: it is of another graph, or of other virtual nodes. */
HD_MUST_USE enum hd_err hd_given_costs(struct hd_run_costs **costs, const struct hd_task *task,
	struct hd_fs *fs, const char *path, double pace, struct hd_arena *arena, struct hd_diag *diag);

#endif
