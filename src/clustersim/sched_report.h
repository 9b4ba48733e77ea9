/* sched_report.h -- a page about simulated clusters: one run, or several policies on the same jobs.
 *
 * `heddle sched simulate|compare|replay --html FILE` writes it. One file that needs nothing (base/page.h).
 *
 *	err = hd_sched_story_open(&story, &setting, &arena, &diag);      for each run, before it
 *	setting.watch = hd_sched_story_watch(story);
 *	err = hd_sched_sim(&result, &setting, ...);
 *	hd_sched_report_print(&page, title, &setting, runs, nruns);
 *
 * 1. Memory is bounded however long a run is: busy devices and cost in HD_STORY_BINS bins that grow wider,
 *    bars of the first HD_STORY_JOBS jobs, HD_STORY_BARS of each; what is left out is said.
 * 2. Equal runs make equal pages.
 *
 * Ownership: stories lie in their arena. Pure. */
#ifndef HD_CLUSTERSIM_SCHED_REPORT_H
#define HD_CLUSTERSIM_SCHED_REPORT_H

#include "clustersim/sched_sim.h"

enum { HD_STORY_BINS = 400, HD_STORY_JOBS = 48, HD_STORY_BARS = 48, HD_REPORT_RUNS = 64 };

struct hd_sched_story;
HD_MUST_USE enum hd_err hd_sched_story_open(struct hd_sched_story **story,
	const struct hd_sched_sim_setting *setting, struct hd_arena *arena,
	struct hd_diag *diag);
const struct hd_sim_watch *hd_sched_story_watch(const struct hd_sched_story *story);

struct hd_sched_report_run { const char *policy; const struct hd_sched_sim_result *result;
	const struct hd_sched_story *story; };

void hd_sched_report_print(struct hd_text *page, const char *title,
	const struct hd_sched_sim_setting *setting, const struct hd_sched_report_run *run,
	uint32_t nruns, struct hd_arena *arena);

#endif
