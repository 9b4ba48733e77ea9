/* fairness.h -- whether the members of a run get their samples alike: their windows of reading in, depths and
 * sentences out. The rules are those of data/fair.h.
 *
 * 1. Each worker that reads by ranges says a window of its reading every `data.window` of the job. The run's
 *    window is closed once all members of the view have said one; where some stay silent for two windows,
 *    those that have spoken are compared. A worker that says two counts with the newest.
 * 2. With other members all begins from nothing: depths are the workers' own, no window counts.
 * 3. A depth that is ordered is ordered again with each window. A worker forgets one that it has not heard
 *    for HD_ELASTIC_KEEPS windows (worker/elastic.h), so none outlives its coordinator.
 * 4. Waiting of less than a hundredth of a window is none.
 * 5. A move of virtual nodes is proposed, not made: maps follow measured paces (reshape.h), which have the
 *    waits for data in them. The sentence says what the shares ask for.
 * 6. A window in which no member wanted to read, or none got anything, is a gap: what was found stays.
 * 7. Every answer, every worker that is flagged, and the end of it is an event. No bit depends on any of it.
 *
 * Plain values, no clock: time is an argument. Threads: one. */
#ifndef HD_DRIVER_FAIRNESS_H
#define HD_DRIVER_FAIRNESS_H

#include "data/fair.h"
#include "protocol/view.h"

/* of a window: each worker is named or no more, an answer ends, another is given */
enum { HD_FAIRNESS_TEXT = 320, HD_FAIRNESS_SAID = HD_FAIR_WORKERS + 2 };

struct hd_fairness_said { const char *kind; uint32_t worker; char text[HD_FAIRNESS_TEXT]; };
struct hd_fairness_order { uint32_t worker, depth; };      /* depth 0: its own */

struct hd_fairness_out {
	struct hd_fairness_said said[HD_FAIRNESS_SAID]; uint32_t nsaid;
	struct hd_fairness_order order[HD_FAIR_WORKERS]; uint32_t norders;
};

struct hd_fairness {
	int64_t window_ns;
	uint32_t n, member[HD_FAIR_WORKERS];
	struct hd_fair_part part[HD_FAIR_WORKERS];
	bool here[HD_FAIR_WORKERS];
	int64_t first_ns;                 /* when the first part of the window at hand came; 0: none has */
	struct hd_fair fair;
	struct hd_fair_window window[HD_FAIR_WINDOWS]; uint32_t nwindows;
	uint32_t ordered[HD_FAIR_WORKERS];
	bool flagged[HD_FAIR_WORKERS];
	bool proposed[HD_FAIR_WORKERS];
};

void hd_fairness_init(struct hd_fairness *fairness, int64_t window_ns);
/* What a worker says; one that is no member of the view is left out. */
void hd_fairness_take(struct hd_fairness *fairness, const struct hd_view *view, uint32_t worker,
	const struct hd_fair_part *part, int64_t now_ns);
/* At any time, with the view in force. true: a window was closed, and `out` is set. */
bool hd_fairness_step(struct hd_fairness *fairness, const struct hd_view *view, int64_t now_ns,
	struct hd_fairness_out *out);

#endif
