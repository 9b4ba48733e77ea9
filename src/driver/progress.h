/* progress.h -- the news of a driver as the news of a run in one process (run/run.h): a frontend shows both
 * alike.
 *
 * 1. Each committed step becomes one hd_progress: loss, times and what is left, and the plan of the view that
 *    computed it.
 * 2. A note of a worker is the body of an event. It becomes words: its member "text" alone, or every member
 *    as KEY VALUE.
 *
 * Ownership: init/finish; clock and watch are borrowed. Threads: that of the driver. */
#ifndef HD_DRIVER_PROGRESS_H
#define HD_DRIVER_PROGRESS_H

#include "run/run.h"
#include "driver/driver.h"

/* Of the job: virtual nodes, steps, samples of a step. */
struct hd_driver_progress_spec {
	struct hd_clock *clock;
	struct hd_run_watch watch;        /* step and note are called */
	uint32_t nvns;
	uint64_t nsteps, batch;
};

struct hd_driver_progress {
	struct hd_driver_progress_spec spec;
	struct hd_arena arena;            /* of the plan */
	struct hd_plan plan;
	struct hd_times times;
	uint32_t shown;                   /* membership epoch of the plan */
	uint32_t nstages, npipes;         /* of the view shown; 0: it has none */
	int64_t began_ns;
	uint64_t began_step;
	bool begun;
};

void hd_driver_progress_init(struct hd_driver_progress *progress, const struct hd_driver_progress_spec *spec);
void hd_driver_progress_finish(struct hd_driver_progress *progress);
/* For hd_driver_spec.watch; `progress` stays where it is. */
struct hd_driver_watch hd_driver_progress_watch(struct hd_driver_progress *progress);

#endif
