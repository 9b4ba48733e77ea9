/* explore.h -- a sweep, driven to its end: trials become jobs of a scheduler, what came of them is recorded.
 *
 * `heddle sweep FILE --dir DIR` runs it. DIR is the folder of a scheduler; in it
 *
 *	DIR/sweeps/NAME/record.ndjson     what came, a line each (sweep/record.h)
 *	DIR/sweeps/NAME/table.json        the trials, as of the last line
 *	DIR/sweeps/NAME/sweep.html        the same as a page
 *	DIR/sweeps/NAME/lock              one process drives a sweep at a time: HD_E_AGAIN
 *	DIR/sweeps/.scheduler             {"pid":...,"began":...}: the scheduler that a sweep started, or the
 *	                                  sweep that was about to
 *
 * 1. A trial is a run. To bring it to a rung is a job that ends there (`until`); to go on is another job in
 *    the same run. Orders have keys made of the sweep and of trial and rung, so each makes one job however
 *    often it is sent: a sweep that was killed sends them again.
 * 2. A report is on the disk before anything is ordered that follows from it. So the process, the scheduler
 *    and the runs may be killed at any instant, and the sweep, started again, ends with the same table; of
 *    asha with the one that its record leads to.
 * 3. Where no scheduler serves DIR and DIR was none before, one is started with the devices of this machine,
 *    and ended with the sweep. One that the sweep did not start is waited for while it is away, and never
 *    ended.
 * 4. A trial fails with its job: by an error of the job, by a loss that is not a number, or cancelled by a
 *    user. The sweep goes on without it.
 * 5. What a run cannot answer any more is run again, as another run from its beginning: a line of its metrics
 *    was lost, a job that the sweep did not order went on with it, its checkpoint is damaged. After
 *    HD_EXPLORE_AGAIN times the trial fails.
 * 6. A stop request ends this process; a scheduler that it started commits all jobs and ends first. The
 *    sweep, started again, goes on from there.
 *
 * Threads: one; blocks until the end. */
#ifndef HD_EXPLORE_EXPLORE_H
#define HD_EXPLORE_EXPLORE_H

#include "sys/clock.h"
#include "sys/file.h"
#include "job/sets.h"
#include "sweep/table.h"

enum { HD_EXPLORE_AGAIN = 2 };

struct hd_explore_spec {
	struct hd_fs *fs;                 /* borrowed, as all of these */
	struct hd_clock *clock;
	const char *dir, *name;           /* of the scheduler; of the sweep */
	const struct hd_sweep *sweep;
	const char *sweep_text;
	size_t sweep_len;
	/* the job: its text, for messages its name; where its relative paths begin; what else sets its
	 * keys */
	const char *job_name, *job_text, *folder;
	size_t job_len;
	const struct hd_job_set *set;
	uint32_t nsets;
	/* of each trial's job, as of `heddle submit`; NULL: not said. The scheduler says whether it may */
	const char *partition, *account;
	/* of a scheduler that is started: as of `heddle serve` */
	const char *pools, *policy, *round;
	enum hd_err (*stop)(void *user);  /* not HD_OK: end */
	/* a line for people; trial UINT32_MAX: of the sweep */
	void (*say)(void *user, uint32_t trial, const char *text);
	void *user;
};

/* `table` lies in the arena; also after a stop. HD_E_INPUT: the sweep and its job do not go together; nothing
 * was ordered. */
HD_MUST_USE enum hd_err hd_explore(const struct hd_explore_spec *spec, struct hd_arena *arena,
	struct hd_sweep_table *table, struct hd_diag *diag);

#endif
