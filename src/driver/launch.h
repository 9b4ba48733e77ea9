/* launch.h -- drives the run in a folder to its end: what `run --workers`, `resume` and `serve --job` do once
 * they know the job.
 *
 * 1. Before anything listens or starts: the job's model is built, and its data are those that the run began
 *    with.
 * 2. What joins from another machine gets the resolved job, and the folder of its relative paths, as they lie
 *    in the run's folder.
 * 3. When the run is over its end is an event (run/ending.h) and its report is written; not where another
 *    process drives it (HD_E_AGAIN).
 *
 * 4. Of a job of stages a step is predicted before the first worker starts (run/pipes_forecast.h): a note and
 *    an event, and at the end it stands beside what the steps took. What cannot be predicted is said, and
 *    stops nothing. A run that is taken over is predicted, and its stages watched, by the costs that its
 *    start measured (run/kept_costs.h).
 *
 * 5. Of parallel.mode: auto the pipelines are chosen by what the job's ops cost (run/pipes_choose.h), the
 *    first choice whose parts fit the workers, and kept in the run's job. A run that is resumed keeps what it
 *    has where that is for as many devices, within the keys as they are, and still fits
 *    (run/pipes_settled.h); else it is chosen again. Where nothing can be chosen the run is as without auto,
 *    whatever it had before. Stages whose workers are slower than others are cut again while
 *    it goes on (redraw.h); what stands beside the steps at the end is the prediction of the last view.
 *
 * 6. Without a folder it is opened to see what would be chosen: nothing is written, and it is not run. The
 *    job of the launch is then as that of the run would be.
 *
 * Ownership: open/close; all that the spec names is borrowed. Threads: one; run blocks. */
#ifndef HD_DRIVER_LAUNCH_H
#define HD_DRIVER_LAUNCH_H

#include "launch/local_workers.h"
#include "run/costs.h"
#include "run/ending.h"
#include "run/forecast.h"
#include "run/held_back.h"
#include "run/run.h"
#include "driver/network.h"
#include "driver/progress.h"
#include "driver/redraw.h"

enum { HD_LAUNCH_WORKERS = HD_LOCAL_CHILDREN };
#define HD_LAUNCH_SOCKET "members.sock"   /* in the run's folder: where workers call the coordinator */

struct hd_launch_spec {
	const struct hd_job *job;
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_rundir *dir;            /* held; NULL: rule 6 */
	/* as of driver.h */
	uint32_t target;
	uint64_t step;
	int64_t lease_ns;
	const char *const *worker_argv;
	struct hd_launcher *launcher;
	uint64_t stop_at;                 /* of the workers; 0: the job says */
	/* what each of the workers opens, with its number of devices; NULL: rules 4 and 5 are left out */
	const struct hd_worker_spec *worker;
	/* of devices that wait, as of run.h: how long, and the file that says it; 0 and NULL of others */
	double pace;
	const char *profile;
	enum hd_err (*stop)(void *user);
	struct hd_run_watch watch;
};

/* steps: it is not done with fewer; 0: it has a target. digest "": no checkpoint of the last step. */
struct hd_launch_end {
	bool began;                       /* its coordinator did: the run has a history */
	struct hd_driver_end driver;
	uint64_t steps;
	char digest[HD_HASH_HEX];
	struct hd_forecast forecast;      /* in the launch's arena; step_ns 0: none */
	char held_back[HD_HELD_BACK_BYTES];       /* as of run/held_back.h; "": nothing, or it ended badly */
	struct hd_diag report;            /* why there is none; "": it was written */
};

struct hd_launch {
	struct hd_launch_spec spec;
	struct hd_job *job;               /* its own, as of rule 5; spec.job is this one */
	struct hd_run_costs *costs;       /* NULL: nothing was measured */
	struct hd_worker_spec kept;       /* of a run that is taken over: spec.worker, with costs */
	struct hd_redraw redraw;          /* of it, where there are costs */
	struct hd_task *task;
	const struct hd_network *net;
	struct hd_arena arena;            /* of the texts */
	const char *job_text, *job_folder;
	char address[HD_MSG_ADDR + 1];
	struct hd_ending_word word;       /* what a second signal writes until the run's end is written */
};

/* Rule 1. A run that is taken over (target 0) may find other data here: that is a warning, its members go on
 * with theirs. */
HD_MUST_USE enum hd_err hd_launch_open(struct hd_launch *launch, const struct hd_launch_spec *spec,
	struct hd_diag *diag);
/* Rule 2: how workers reach the run. `net` is of the same job, and stays. */
HD_MUST_USE enum hd_err hd_launch_reach(struct hd_launch *launch, const struct hd_network *net,
	struct hd_diag *diag);
/* Once it can be reached. Returns as hd_driver_run() does; *end is set in any case. */
HD_MUST_USE enum hd_err hd_launch_run(struct hd_launch *launch, struct hd_launch_end *end,
	struct hd_diag *diag);
void hd_launch_close(struct hd_launch *launch);

#endif
