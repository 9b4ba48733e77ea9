/* resilience.h -- which redundancy is worth most to a run, judged again as its losses change: what
 * `elastic.resilience: auto` is.
 *
 * The coordinator of a run says what happens and asks at each committed step (driver_guard.c); a simulation
 * does the same, since times are arguments.
 *
 * 1. Losses per hour: those of the last HD_RESILIENCE_WINDOW_MS and one more, over that time and
 *    HD_RESILIENCE_FIRST_MS more: what is expected before any was seen. Losses within HD_RESILIENCE_ONE_MS
 *    are one of several machines. In time is a loss whose worker had left by itself after a notice. A worker
 *    with several ranks is as many losses at once; one without counts nothing.
 * 2. What a loss takes is what losses took, each new one a quarter of the mean: from it until the run is
 *    where it was, in whatever shape, those that went back to a checkpoint apart. Of a mode that has seen
 *    none: of the others, and before any: what the caller expects; so does what the way back adds.
 * 3. What a mode adds to a step: its steps to those without, both measured over HD_RESILIENCE_STEPS; else
 *    as a table has it. Another grid is measured by itself.
 * 4. Each mode that the run can have is judged by value.h on the grid that it has with each number of
 *    devices, weighted by the time with so many, of HD_RESILIENCE_THERE_MS at most, and
 *    HD_RESILIENCE_FIRST_MS with the most, which is expected before any was seen: as many pipelines as there
 *    are devices for. Without shadows peers hold a stage that has several devices, else all go back,
 *    and with devices for no pipeline the run stands. With devices for none, or for fewer than two (REPLICA,
 *    which is replica:1: two pipelines at least), shadows and replicas have fewer stages, two at least
 *    (planner/ways.h); with devices for no such replicas it is a run without them. A step of d pipelines
 *    of p stages takes as long as its turns do, (ceil(V / d) + p - 1) / p, to those of the grid that was
 *    measured.
 *    What a checkpoint costs counts where the run chooses how far apart they are (saving.h): each mode with
 *    the interval that it would have.
 * 5. It is judged at HD_RESILIENCE_COMMITS commits, and when losses per hour or the price are twice or half
 *    of what they were at the last time. Another mode is taken if it is worth HD_RESILIENCE_GAIN times as
 *    much, or if what there is pauses longer than is allowed.
 * 6. What was seen is stored with its age, so the next coordinator goes on with it. Time without a
 *    coordinator is not counted; a loss that is not made up for by then is counted, and what it took is not
 *    known.
 *
 * Pure; a plain value. */
#ifndef HD_SPOT_RESILIENCE_H
#define HD_SPOT_RESILIENCE_H

#include "spot/value.h"

enum { HD_RESILIENCE_LOSSES = 64, HD_RESILIENCE_COMMITS = 100, HD_RESILIENCE_STEPS = 20,
	HD_RESILIENCE_WINDOW_MS = 7200000, HD_RESILIENCE_FIRST_MS = 600000, HD_RESILIENCE_ONE_MS = 2000,
	HD_RESILIENCE_WORDS = 400, HD_RESILIENCE_THERE = 64, HD_RESILIENCE_THERE_MS = 14400000,
	HD_RESILIENCE_BYTES = 8 + 4 + 13 * HD_RESILIENCE_LOSSES + 20 * HD_NSPOT_STRATEGIES + 8 + 12 + 4 +
		8 * (HD_RESILIENCE_THERE + 1) };
#define HD_RESILIENCE_GAIN 1.05

/* HD_SPOT_CHECKPOINT stands for a run without shadows, whatever its grid. */
struct hd_resilience {
	enum hd_spot_strategy is;
	int64_t began_ms;
	struct { int64_t at_ms; uint32_t worker; bool in_time; } loss[HD_RESILIENCE_LOSSES];
	uint32_t next, n;                         /* where the next one goes; those that are there */
	/* of each mode: a step, a loss without a way back; 0: not known */
	double step_s[HD_NSPOT_STRATEGIES], takes_s[HD_NSPOT_STRATEGIES], back_s;
	uint32_t nsteps[HD_NSPOT_STRATEGIES];
	int64_t lost_ms;                          /* of a loss that is not made up for yet */
	uint64_t until;                           /* step whose commit does; 0: there is none */
	bool back;                                /* it went back to a checkpoint */
	uint32_t pipelines, stages, machines, commits;
	double losses_h, usd_h;                   /* as judged the last time; 0: never */
	/* time with so many devices, THERE or more in the last; those that are there, 0: not known, and since
	 * when */
	int64_t there_ms[HD_RESILIENCE_THERE + 1], since_ms;
	uint32_t there;
};

/* What holds at a commit. */
struct hd_resilience_now {
	int64_t now_ms;
	uint64_t step;
	uint32_t pipelines, stages, machines;     /* of the view; those that are paid for */
	/* pipelines at most, virtual nodes; 0: the view's, one each */
	uint32_t most, vns;
	double step_s;                            /* 0: not one to measure by */
	double batch, usd_h, pause_max_s;         /* pause_max_s 0: no bound */
	double takes_s, back_s;                   /* expected of a loss, and of one that goes back */
	/* with checkpoint.every: auto: what one costs, and how far apart they are; 0: not known, or given */
	double checkpoint_s, every_s;
	bool can[HD_NSPOT_STRATEGIES];            /* of those behind REROUTE: the run can have it */
};

void hd_resilience_begin(struct hd_resilience *r, enum hd_spot_strategy is, int64_t now_ms);
/* A worker with so many ranks of the view is gone: by itself after a notice, or not. `step`: the next to be
 * committed. */
void hd_resilience_lost(struct hd_resilience *r, uint32_t worker, uint32_t nranks, bool in_time,
	uint64_t step, int64_t now_ms);
/* So many devices are there from now on. */
void hd_resilience_there(struct hd_resilience *r, uint32_t devices, int64_t now_ms);
/* All go back to a checkpoint. */
void hd_resilience_back(struct hd_resilience *r);
/* Losses as a market: rule 1 and, for a mode, rule 2. */
struct hd_spot_market hd_resilience_market(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode);
/* Rule 4. `strategy` is the mode's; `useful`: of what all of the grid would do, were nothing lost. */
struct hd_spot_value hd_resilience_value(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode);
/* Losses per hour that go back to a checkpoint, with the mode that there is; also of a run that is not
 * judged: of `pipelines` holders of each of `stages` parts of the state. */
double hd_resilience_back_h(const struct hd_resilience *r, const struct hd_resilience_now *now);
/* After a commit under any view, also one that is not judged. True: a loss is made up for by it. */
bool hd_resilience_made_up(struct hd_resilience *r, uint64_t step, int64_t now_ms);
/* After a commit; made up is asked here, too. True: another mode is worth having, *mode; `why` says each with
 * its terms. It is `is` once the caller has it: hd_resilience_took(). */
bool hd_resilience_commit(struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy *mode, char why[HD_RESILIENCE_WORDS]);
void hd_resilience_took(struct hd_resilience *r, enum hd_spot_strategy mode);
/* Rule 6; the mode is the caller's. */
void hd_resilience_put(const struct hd_resilience *r, int64_t now_ms, uint8_t bytes[HD_RESILIENCE_BYTES]);
/* False, and nothing is taken: these are no such bytes. */
bool hd_resilience_take(struct hd_resilience *r, const uint8_t *bytes, size_t len, int64_t now_ms);

#endif
