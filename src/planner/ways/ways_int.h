/* ways_int.h -- the search for ways through losses: what it goes through, what it has found so far.
 *
 * Private to this folder.
 *
 *	presence.c    for how long there are how many machines, and what runs then
 *	most.c        the most that a grid can be worth, without a plan of it
 *	shapes.c      the shapes, with these bounds
 *	worth.c       a shape planned, and judged by every strategy
 *	ways.c        all of them, those that may be worth most first; the choice */
#ifndef HD_PLANNER_WAYS_INT_H
#define HD_PLANNER_WAYS_INT_H

#include "planner/planner.h"
#include "planner/search/shape.h"
#include "planner/ways.h"

/* ways that a shape may have */
enum { WAYS_A_SHAPE = HD_NSPOT_STRATEGIES - 1 + HD_WAYS_SPARES };

/* next: of the list; below: index of that with one pipeline less, or WAYS_NONE */
struct ways_shape {
	const char *schedule;
	uint32_t d, p, v, row, below, first, nways;
	double bound;
	bool helper, judged;                      /* helper: of no ask, only for those with more pipelines */
};

#define WAYS_NONE UINT32_MAX

/* Stages that lie alike and whose ranks wait for the same: of a row of hd_auto_rows in v chunks. The first is
 * of rows that are not known. */
enum { WAYS_UNKNOWN, WAYS_WHOLE, WAYS_SPLIT, WAYS_VEE, WAYS_CYCLE,
       WAYS_NLIES = WAYS_CYCLE + HD_AUTO_CHUNKS + 1 };

struct ways_search {
	const struct hd_ways_ask *ask;
	struct hd_arena *arena, *work;
	struct ways_shape *shape;
	uint32_t nlisted, *order;                 /* with helpers; best bound first */
	struct hd_spot_there *here, *there;       /* by machines; by pipelines of this depth; rule 5 */
	uint32_t depth;
	uint32_t *first, *rows;                   /* of each depth: where its shapes begin; of each width */
	double *fewer[WAYS_NLIES];                /* bounds, by depth and least pipelines */
	double forward;                           /* ways_least_forward() */
	bool alike;                               /* all devices */
	/* of each way, with machines for just so many pipelines; of one more, by its number of them */
	struct hd_spot_value *exact, *of;
	double *share;
	double paid;                              /* machines that are there on average, as a share */
	struct hd_ways out;
	double best, best_of[HD_NSPOT_STRATEGIES];        /* of what is allowed; of all */
};

enum { WAYS_LEASTS = HD_WAYS_SPARES + 1 };

/* ---- presence.c */

/* What copies of one stage go on by, which have neither shadows nor pipelines to keep; else the same. */
enum hd_spot_strategy ways_runs_as(enum hd_spot_strategy strategy, uint32_t p);
/* With m machines that are too few: the stages that so many pipelines have, and the pipelines of that. */
struct ways_fewer { uint32_t m, d, p; struct hd_spot_there there; };

bool ways_comes_and_goes(const struct hd_ways_ask *ask);
/* Shares of the time with machines for 0, 1, ... pipelines of p stages. */
void ways_see_depth(struct ways_search *s, uint32_t p);
/* With machines for exactly d of n pipelines, or for at least n. */
struct hd_spot_there ways_there_with(const struct ways_search *s, uint32_t p, uint32_t d, uint32_t n);
/* Pipelines that a run keeps, by fewer stages where machines are too few for that; 0: it keeps its stages. */
uint32_t ways_least_of(enum hd_spot_strategy strategy, uint32_t spares);
/* The next of them that there is time with, of grids of p ranks; m: begins at 0. */
bool ways_next_fewer(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t least,
	struct ways_fewer *f);
void ways_see_machines(struct ways_search *s);

/* ---- most.c */

uint32_t ways_lies_of(const char *schedule, uint32_t v);
/* Of d pipelines of p ranks as many may be spare; 1 for strategies that have none. Copies of one stage are no
 * pipelines: a run has no word for their number. */
uint32_t ways_most_spares(enum hd_spot_strategy strategy, uint32_t d, uint32_t p);
/* Rule 2: `f` of the grid's pipelines are spare, and work. */
struct hd_spot_grid ways_with_spares(struct hd_spot_grid grid, enum hd_spot_strategy strategy, uint32_t f);
/* What of the work is forward, in whatever comes first: at least. */
double ways_least_forward(const struct hd_cut_sums *sums);
/* d pipelines of p ranks, as fast as they can be: no device waits but for what has to be before and behind,
 * and nothing is computed twice. A rank has the largest node or more, and a virtual node goes through all.
 * Where backward passes are split the weights' gradients are not waited for on the way back. */
struct hd_spot_grid ways_fastest(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies);
/* The most that a grid can be worth with such a step. */
double ways_most_of(const struct ways_search *s, const struct hd_spot_grid *grid);
/* The same with the least step that it can have. */
double ways_bound_of(const struct ways_search *s, uint32_t d, uint32_t p, uint32_t lies);
/* The same of runs that have come to p ranks by keeping so many pipelines; rule 5. */
void ways_bound_fewer(struct ways_search *s, uint32_t p);
/* What a grid of p ranks can be worth by fewer stages, while there are machines for k pipelines of it. */
double ways_most_of_fewer(const struct ways_search *s, uint32_t k, uint32_t p, uint32_t lies);

/* ---- shapes.c */

HD_MUST_USE enum hd_err ways_list(struct ways_search *s, struct hd_diag *diag);

/* ---- worth.c */

/* Plans it, and each of its ways into what was found. */
HD_MUST_USE enum hd_err ways_judge(struct ways_search *s, struct ways_shape *x,
	const struct hd_job_planner *planner,
	struct hd_diag *diag);
/* Wherever its boundaries are. Where machines come and go that is not known: a grid's value has parts that
 * are not its own step's. */
HD_MUST_USE enum hd_err ways_may_be_the_choice(const struct ways_search *s, const struct ways_shape *x,
	bool *may, struct hd_diag *diag);
/* The same with fewer stages; WAYS_NONE: none has a plan. */
uint32_t ways_with_fewer(const struct ways_search *s, const struct ways_shape *x, const struct ways_fewer *f);

#endif
