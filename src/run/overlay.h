/* overlay.h -- several runs on one page: their curves over one another, what they came to, and in what their
 * jobs differ.
 *
 * Read from the runs' folders alone (metrics.ndjson, events.ndjson, job.resolved.json): of runs that go on or
 * died, too.
 *
 * 1. A series is a number of the lines of metrics ("loss", "lr", ...), or of those of evaluations, with the
 *    split before it ("valid loss"). It is named as there; what is not in a run has no curve of it.
 * 2. Memory does not grow with the length of a run: a series has at most `bins` bins of equally many steps,
 *    each with the mean, the least and the greatest of its values, and the step, samples and time of the last
 *    one. Of steps that were done again (a run that went back) the last record counts; up to a bin's width
 *    before them is dropped with them.
 * 3. A value that is no number (NaN, which is null in JSON) is counted, and is no point.
 * 4. Time goes on over the processes that held the run, and stands still between them.
 * 5. The job's keys are those of job.resolved.json, "optim.lr"; a run whose job cannot be read has none.
 *
 * Ownership: all is the arena's. Threads: any. */
#ifndef HD_RUN_OVERLAY_H
#define HD_RUN_OVERLAY_H

#include "base/text.h"
#include "run/compare.h"
#include "run/ending.h"

enum { HD_OVERLAY_RUNS = 200, HD_OVERLAY_SERIES = 64, HD_OVERLAY_BINS = 1000, HD_OVERLAY_LEAST = 60,
       HD_OVERLAY_NAME = 64, HD_OVERLAY_VALUE = 200 };

struct hd_overlay_bin { double step, samples, t_s, sum, low, high; uint64_t n; };

struct hd_overlay_series {
	uint32_t name;                    /* index into names */
	struct hd_overlay_bin *bin;       /* [bins]; n 0: it has no value */
	uint32_t used;                    /* bins up to the last that has one */
	uint64_t width;                   /* steps of a bin */
	uint64_t n, nonfinite;
	double last, least, greatest;     /* with n; and the first step of the least, of the greatest */
	uint64_t last_step, least_step, greatest_step;
};

struct hd_overlay_key { const char *key, *value; };     /* of a job, sorted by key */

struct hd_overlay_run {
	const char *path, *name;          /* the shortest end of the path that no other run has */
	struct hd_ending ending;
	bool held;                        /* a process holds it: it goes on */
	struct hd_overlay_series series[HD_OVERLAY_SERIES]; uint32_t nseries;
	struct hd_overlay_key *key; size_t nkeys;
	uint64_t unreadable;              /* lines */
	uint64_t samples;                 /* of the last step that is recorded; its time */
	double t_s;
	struct hd_divergence from_first;  /* of the digests of its steps, from those of the first run */
};

struct hd_overlay {
	struct hd_overlay_run *run; uint32_t nruns;
	char name[HD_OVERLAY_SERIES][HD_OVERLAY_NAME];  /* of series, in the order in which they are met */
	uint32_t nnames, left_out;        /* series for which there was no room */
	uint32_t bins;
};

/* path[n]: folders of runs. HD_E_NOTFOUND: one of them is none. Its diag says which, and what to do. */
HD_MUST_USE enum hd_err hd_overlay_read(struct hd_overlay *overlay, struct hd_fs *fs, struct hd_clock *clock,
	const char *const path[], uint32_t n, struct hd_arena *arena, struct hd_diag *diag);

/* Keys of the jobs that not all runs have alike: value[nruns] each, NULL where a run has no such key. */
struct hd_overlay_difference { const char *key; const char *const *value; };
HD_MUST_USE enum hd_err hd_overlay_differences(const struct hd_overlay *overlay, struct hd_arena *arena,
	struct hd_overlay_difference **difference, size_t *n, struct hd_diag *diag);

/* What the page and `--json` say: {runs, series, differences}; with curves also the bins of each series. */
HD_MUST_USE enum hd_err hd_overlay_json(const struct hd_overlay *overlay, bool curves, struct hd_text *text,
	struct hd_arena *arena, struct hd_diag *diag);
/* One file of HTML that needs nothing else and no network. */
HD_MUST_USE enum hd_err hd_overlay_page(const struct hd_overlay *overlay, struct hd_text *page,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
