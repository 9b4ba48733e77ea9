/* planner.h -- the plan that a job should run by: enumerated, estimated, the best simulated, and why.
 *
 * `heddle plan auto` and `heddle plan JOB` print it. A plan is d pipelines of p ranks (a rank is a group of t
 * devices that run one list), each rank with v stages, under one schedule; or, where copies of a stage differ
 * in number, stages with r_s ranks each (1f1b-rr).
 *
 * 1. Shapes are enumerated in this order: t, p, d, v, schedule (rows of generate.h), placement; ascending. A
 *    shape whose bound (its virtual nodes at the speed of its devices, nothing waited for) is above
 *    HD_AUTO_SLACK times the best estimate so far is skipped, and more pipelines of like devices whose
 *    busiest has no fewer virtual nodes.
 * 2. For each shape the cuts are those of steady.h: fill and steady state together, under the memory of each
 *    rank's device with the schedule's own number of virtual nodes in flight. A stage computes again
 *    (recompute) only if it does not fit otherwise. Of more than HD_AUTO_CUTS cuts only so many are
 *    considered: the time is divided into as many equal shares, and of each the cut with the least output is
 *    taken (steady.h). That is a heuristic; the moves of rule 4 go over all cuts. On chains of 100 to 500
 *    cuts the plan took at most 1 % more than the best of all places simulated (tested for two and three
 *    stages).
 * 3. The virtual nodes are shared out over pipelines in proportion to their speed, by largest remainder;
 *    ties: the lower pipeline.
 * 4. The HD_AUTO_KEEP best estimates (ties: the earlier shape) are made into schedules with updates, checked,
 *    and simulated with links, the buffers of a run (HD_CREDITS of a channel) and sums of gradients, fewer
 *    where they are very long. What does not fit then is cut again for less memory, a few times, then with
 *    all stages computing again; and where something did not fit, all shapes are gone through a second time
 *    with all stages computing again. The boundaries of the five best move by up to four cuts while that is
 *    better (not simulated where one rank's work and its way alone take longer). They are ordered by
 *    makespan, devices used, worst peak memory, place in the enumeration. One device and the best data
 *    parallel (all devices, and fewer by their estimates) are among them: the best is never slower than
 *    these. What takes more than the simulator counts (2^62 ps, 53 days) is left out and counted; so is a t
 *    whose sums alone take that. A second round takes every shape that no bound (search/bound.h) puts above
 *    the best, and moves its boundaries too: so no shape that is asked for by itself is faster than the free
 *    choice, as long as `nleft` is 0. It is bounded in instructions: what it did not come to, or whose
 *    boundaries it did not move to the end, is counted in nleft, and the first are named in `left`.
 * 5. Equal arguments give equal bytes on every machine; no clock decides when to stop.
 *
 * Not here: clusters whose pipelines differ in depth; the search for other virtual nodes (a job's matter).
 *
 * Ownership: everything lies in the arena; profile, cuts and cluster are borrowed. Pure. */
#ifndef HD_PLANNER_PLANNER_H
#define HD_PLANNER_PLANNER_H

#include "cost/topology.h"
#include "cost/stage_costs.h"
#include "pipeline/schedule.h"

/* most ranks of a pipeline, chunks of a rank */
enum { HD_AUTO_KEEP = 50, HD_AUTO_CUTS = 64, HD_AUTO_RANKS = 64, HD_AUTO_CHUNKS = 4 };
#define HD_AUTO_SLACK 1.10
enum { HD_AUTO_UNFIT = -1, HD_AUTO_TOO_LONG = -2, HD_AUTO_NO_SUCH = -3 };      /* in place of picoseconds */

/* Where the ranks of a shape are on the devices, which are numbered innermost first.
 *        id      name     */
#define HD_AUTO_PLACES(X)                                                                             \
	X(DEEP, "deep")          /* a pipeline's ranks are neighbours: rank r of pipeline q is q p + r */ \
	X(WIDE, "wide")          /* a stage's copies are neighbours: r d + q */

enum hd_auto_place {
#define X(id, name) HD_AUTO_##id,
	HD_AUTO_PLACES(X)
#undef X
	HD_AUTO_NPLACES
};

enum hd_auto_recompute { HD_AUTO_IF_NEEDED, HD_AUTO_NEVER, HD_AUTO_ALWAYS };

/* Every virtual node updates by itself: one straight pipeline, and its stages are part of the job. */
static inline bool hd_auto_of_each(enum hd_update_mode update) { return update == HD_UPDATE_STASH ||
	update == HD_UPDATE_VSYNC; }

/* 0 and NULL: the planner chooses; what is set is kept. */
struct hd_auto_ask {
	uint32_t vns;                             /* V of the job; never 0 */
	uint32_t tensor_shards;                   /* T of the job; 0: 1 */
	/* model.sequence_shards: a tensor group shares what lies between its products, too */
	bool sequence;
	/* of stash and vsync, d is 1 and the stages chosen become part of the job */
	enum hd_update_mode update;
	uint32_t t, p, d, v;
	const char *schedule;                     /* name of a row of generate.h */
	enum hd_auto_recompute recompute;
	bool clips;                               /* updates wait for the norm of all gradients */
};

struct hd_auto_shape {
	const char *schedule;
	uint32_t t, p, d, v;                      /* 1f1b-rr: p stages, d 0 */
	enum hd_auto_place place;
};

/* What holds a rank back most.
 *        id        name         */
#define HD_AUTO_BOUNDS(X)                                                            \
	X(COMPUTE,  "compute")   /* it computes most of the time */                     \
	X(MEMORY,   "memory")    /* its memory is nearly full, so it computes again */  \
	X(TRANSFER, "transfer")  /* it waits for tensors under way */                   \
	X(FILL,     "fill")      /* it waits for the pipeline to fill and to drain */   \
	X(OTHERS,   "others")    /* it waits for slower ranks */

enum hd_auto_bound {
#define X(id, name) HD_AUTO_BY_##id,
	HD_AUTO_BOUNDS(X)
#undef X
	HD_AUTO_NBOUNDS
};

struct hd_auto_rank {
	uint32_t device;                          /* the first of its t */
	uint32_t pipeline;
	int64_t busy_ps, peak, memory;            /* bytes at the worst time, of how many (0: no limit) */
	enum hd_auto_bound bound;
};

struct hd_auto_plan {
	struct hd_auto_shape shape;
	uint32_t order;                           /* place in the enumeration */
	uint32_t nstages, *first;                 /* [nstages] first cut of each */
	bool *recompute;                          /* [nstages] */
	uint32_t *replicas;                       /* [nstages] ranks that hold it */
	uint32_t npipelines, *share;              /* [npipelines] virtual nodes of each, in order */
	uint32_t nranks; struct hd_auto_rank *rank;      /* [nranks] */
	/* of all ranks: compute, recomputation, sums and updates; checked */
	struct hd_schedule schedule;
	struct hd_stage_costs costs;
	double estimate_ps;
	/* of one step; of steps in a row where updates are delayed */
	int64_t makespan_ps, peak;
	/* error band: two standard deviations of the profile to either side */
	int64_t low_ps, high_ps;
};

/* A shape that may be better; begun: simulated, but its boundaries were not moved to the end. */
struct hd_auto_left { struct hd_auto_shape shape; bool begun; };
enum { HD_AUTO_LEFT = 8 };

struct hd_auto {
	/* in order; [0] is the choice. Schedules of [0] to [2] alone are kept */
	struct hd_auto_plan *plan; uint32_t nplans;
	/* one device; the best data parallel, on data_d devices; or HD_AUTO_... */
	int64_t one_ps, data_ps;
	uint32_t data_d;
	/* shapes that may be better and were not gone through: the search is bounded */
	uint64_t nleft;
	/* the first nleft of them, in the order of their estimates */
	struct hd_auto_left left[HD_AUTO_LEFT];
	uint64_t nshapes, nskipped, nunfit, nlate, nestimated, nsimulated;      /* late: of rule 4 */
};

/* HD_E_INVAL: no plan works; why, and the nearest that does (the smallest need in bytes and at which
 * shape). */
HD_MUST_USE enum hd_err hd_plan_auto(struct hd_auto *out, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster,
	const struct hd_auto_ask *ask, struct hd_arena *arena, struct hd_diag *diag);

/* May a plan of some shape that is asked for take as little as `target_ps`, wherever its boundaries are?
 * False: surely not, by search/bound.h, without a simulation. True also where nothing is known: without a
 * depth in the ask, or of one stage, of delayed updates, and where something has to be computed again to
 * fit. */
HD_MUST_USE enum hd_err hd_auto_may(bool *may, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask, int64_t target_ps,
	struct hd_diag *diag);

/* In words and numbers: the choice, its stages, the runners-up and why they lost, what binds each rank.
 * `all`: every plan simulated. */
void hd_auto_explain(const struct hd_auto *a, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask,
	bool all, struct hd_text *text);
/* The same without the tables of stages and ranks, for a caller that prints these. */
void hd_auto_explain_short(const struct hd_auto *a, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask,
	struct hd_text *text);
/* A file that `heddle plan check` takes: remarks with the map of ranks, devices, cuts and virtual nodes,
 * then the lists. */
void hd_auto_print(const struct hd_auto_plan *plan, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, struct hd_text *text);

const char *hd_auto_bound_name(enum hd_auto_bound bound);
const char *hd_auto_place_name(enum hd_auto_place place);
/* "1f1b: p = 4 ranks, d = 2 pipelines, ..." */
void hd_auto_shape_print(const struct hd_auto_plan *plan, struct hd_text *text);

#endif
