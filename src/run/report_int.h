/* report_int.h -- a run as a page shows it: its curves thinned, its end, its last events.
 *
 * The reader of metrics.ndjson feeds it record by record; memory is bounded however
 * long the run was.
 *
 * 1. At most HD_CURVE_BINS bins, each with the least and the greatest value of its
 *    steps: a spike is never lost. When steps outgrow the bins, neighbours join and
 *    bins get twice as wide.
 * 2. A step recorded again, after a restart, drops all that was recorded from it on:
 *    whole bins are dropped, so at most one bin's width before it is shown thinner. */
#ifndef HD_RUN_REPORT_INT_H
#define HD_RUN_REPORT_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "spot/ledger.h"
#include "graph/model.h"
#include "run/ending.h"
#include "run/functions_bill.h"

enum { HD_CURVE_BINS = 1000 };

struct hd_curve {
	uint64_t width;                           /* steps of a bin; 0: nothing yet */
	struct hd_curve_bin { double low, high; bool used; } bin[HD_CURVE_BINS];
	uint32_t nbins;                           /* bins up to the last used */
	uint64_t nonfinite;                       /* values that cannot be drawn */
};
void hd_curve_add(struct hd_curve *curve, uint64_t step, double value);
void hd_curve_cut(struct hd_curve *curve, uint64_t step);         /* forgets from `step` on */
bool hd_curve_range(const struct hd_curve *curve, double *low, double *high);      /* for tests */

struct hd_dot { uint64_t step; double value; };

/* One chart as inline SVG. `dots` (may be none) lie on the same axes; `line` and `dots` say what they are. */
struct hd_chart { const char *title, *unit, *line, *dots; const struct hd_curve *curve;
	const struct hd_dot *dot; uint32_t ndots; };
void hd_chart_print(const struct hd_chart *chart, struct hd_text *page);

/* ---- a run, as the page shows it; of fixed size, whatever the length of the run ---- */

enum { HD_STORY_EVENTS = 200, HD_STORY_DOTS = 500, HD_STORY_TEXT = 320 };

struct hd_story_event { double t_s; uint64_t step; char kind[32], text[HD_STORY_TEXT]; };
struct hd_story_dots { struct hd_dot dot[HD_STORY_DOTS]; uint64_t n; };     /* a ring: the last ones */
/* Seconds of a run: t starts at 0 with each process that holds it. */
struct hd_story_time { double sum_s, last_s; };

struct hd_story {
	struct hd_curve loss, accuracy, lr, gnorm, step_ms;
	struct hd_curve term[HD_MODEL_TERMS];             /* of losses that are added; none: empty */
	struct hd_story_dots eval_loss, eval_accuracy;
	struct hd_story_event event[HD_STORY_EVENTS];     /* a ring: the last ones */
	uint64_t nevents, nevals, unreadable, records, last_step;
	double first_loss, last_loss;
	uint32_t workers_least, workers_most, workers_last;       /* 0: not recorded */
	struct hd_story_time by_steps, by_events;
	/* of the last evaluation */
	struct { uint64_t step; char split[16]; bool has_accuracy; double loss, accuracy, perplexity;
		char measures[256]; } eval;       /* measures: "f1-macro 0.7912, " each */
	/* of the newest event "paid", which counts from the beginning of the run; ms 0: there is none */
	struct hd_paid paid;
	char functions[HD_FN_BILL_WORDS];         /* the sum over processes; "none": there are none */
	char digest[40];
	uint64_t digest_step;
	uint32_t devices;                         /* of the newest plan; 0: not known */
	struct hd_ending ending;
};

/* The page but for the job's values; `name` is the run's. */
void hd_story_print_head(const struct hd_story *story, const char *name, struct hd_text *page);
void hd_story_print_charts(const struct hd_story *story, struct hd_text *page);
void hd_story_print_events(const struct hd_story *story, struct hd_text *page);

#endif
