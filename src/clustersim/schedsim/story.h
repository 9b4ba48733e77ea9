/* story.h -- what a page shows of a run over time: kept while it goes on, bounded (sched_report.h, rule
 * 1). */
#ifndef HD_CLUSTERSIM_SCHEDSIM_STORY_H
#define HD_CLUSTERSIM_SCHEDSIM_STORY_H

#include "clustersim/sched_report.h"

struct story_bar { double from_s, to_s, devices; uint32_t type; };
struct story_bin { double device_s, usd; };

struct hd_sched_story {
	struct hd_sim_watch watch;
	uint64_t first;                           /* of the jobs that have bars */
	double start_s, bin_s, end_s;             /* start: of the first bin */
	bool started;
	struct story_bin bin[HD_STORY_BINS];
	struct { uint32_t n; bool joined; struct story_bar bar[HD_STORY_BARS]; } job[HD_STORY_JOBS];
};

#endif
