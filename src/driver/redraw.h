/* redraw.h -- what the steps of a run over workers are predicted to take under the view in force, beside what
 * they take, and other cuts where workers are not as fast as their stages were cut for.
 *
 * The driver tells it each committed step; run/stage_drift.h judges, run/pipes_choose.h cuts.
 *
 * 1. A rank's time is that of its instructions, as its worker says (spent.h), without its waits. It is held
 *    against what the rank is predicted to compute. Steps that were repaired, or of which not all workers
 *    said what they took, say nothing; so does the first one of a worker under a plan.
 * 2. Only where parallel.mode is auto. Without stages balance/drift.h decides when the virtual nodes are
 *    dealt again (reshape.h).
 * 3. New cuts are asked for if they are predicted to save more than HD_CHOOSE_MARGIN of a step, and fit the
 *    workers' memory. Once they are kept the run changes to them by a planned change, and nothing is judged
 *    until another view is in force; else all is as before, and judged again later.
 * 4. Speeds are of devices of workers: one that changes its stage keeps its speed, a new one has 1.
 * 5. While a change of shape is under way that a user asked for nothing is judged: what is asked for goes
 *    before what is found.
 * 6. A change that a worker refused is not tried again (`off`).
 * 7. What instructions took under the view in force stands beside what they were predicted to take. Workers
 *    of it that said nothing are missing: they were lost, or had no second step.
 *
 * Ownership: init/finish; the spec's parts are borrowed. Threads: that of the driver. It takes memory at a
 * change of the view. */
#ifndef HD_DRIVER_REDRAW_H
#define HD_DRIVER_REDRAW_H

#include "engine/times.h"
#include "run/pipes_choose.h"
#include "run/pipes_forecast.h"
#include "run/stage_drift.h"
#include "driver/pace.h"
#include "driver/spent.h"

struct hd_redraw_spec {
	const struct hd_task *task;
	const struct hd_run_costs *costs;
	uint32_t cores;                   /* that all ranks share; 0: one each */
	bool is_auto;                     /* rule 2 */
	uint64_t memory_bytes;            /* of a device; 0: no limit */
	/* would the shape fit each of so many workers, of so many devices? It may take as long as the start
	 * of a worker. NULL: yes */
	bool (*fits)(void *self, const struct hd_view_shape *shape, uint32_t nworkers, uint32_t ndevices,
		struct hd_diag *why);
	void *self;
};

enum { HD_REDRAW_WORDS = sizeof((struct hd_diag *)0)->text + 80 };

struct hd_redraw {
	struct hd_redraw_spec spec;
	struct hd_arena arena;            /* of the view */
	uint32_t epoch;                   /* of the view that was looked at; 0: of none */
	struct hd_forecast forecast;      /* step_ns 0: none */
	struct hd_times times;            /* of steps of that view, ms */
	struct hd_stage_drift drift;
	double *busy_ns, *found;          /* [ranks]; NULL: not watched */
	bool unfit;                       /* what did not fit was said, of this view */
	bool off;                         /* rule 6; its owner sets it */
	struct hd_spent_said said;
	uint32_t nworkers, worker[HD_MAX_MEMBERS];    /* of the view, with a rank */
	uint32_t nspeeds;
	/* nth: of the worker's ranks in a view */
	struct { uint32_t worker, nth; double speed; } speed[HD_VIEW_RANKS];
};

/* A committed step, with the pipes of its view. */
struct hd_redraw_step {
	uint64_t step;
	double step_ms;
	const struct hd_view *view;
	const struct hd_pipes *pipes;
	const struct hd_pace *pace;
	bool changes;                     /* another shape is under way */
};

void hd_redraw_init(struct hd_redraw *redraw, const struct hd_redraw_spec *spec);
void hd_redraw_finish(struct hd_redraw *redraw);
/* True: the run is to change to *shape, and `said` says why; its owner says next whether that is kept. False:
 * what is to be known all the same; "": nothing. */
bool hd_redraw_step(struct hd_redraw *redraw, const struct hd_redraw_step *step, struct hd_view_shape *shape,
	char said[HD_REDRAW_WORDS]);
/* What a step is predicted to take under a view, as it will be once one of it is committed; in the arena.
 * False: that is not known. */
bool hd_redraw_predict(const struct hd_redraw *redraw, const struct hd_view *view,
	const struct hd_pipes *pipes, struct hd_forecast *forecast, struct hd_arena *arena);
/* The forecast of the view in force, of which a step was committed, with what its steps and instructions
 * took; false: there is none. Borrowed until the next step. */
bool hd_redraw_measured(struct hd_redraw *redraw, struct hd_forecast *forecast);
void hd_redraw_kept(struct hd_redraw *redraw, const struct hd_view *view, bool kept);

#endif
