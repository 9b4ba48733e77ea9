/* search.h -- the search of the automatic planner: what it goes through, what it has found so far.
 *
 * Private to the planner.
 *
 *	enumerate.c   shapes in the order of rule 1 of planner.h, estimated and kept by estimate
 *	judge.c       candidates made into schedules, simulated, cut again where they do not fit, and their
 *	              boundaries moved
 *	planner.c     the two rounds, references, the answer */
#ifndef HD_PLANNER_SEARCH_SEARCH_H
#define HD_PLANNER_SEARCH_SEARCH_H

#include "planner/search/build.h"
#include "planner/search/refuse.h"

/* What all simulations of a round together may take: instructions, and RANK_INS for a rank's sums and
 * updates. The first SURE are simulated however long they are. */
enum { HD_AUTO_ALL_INS = 6000000, HD_AUTO_SWEEP_INS = 2000000, HD_AUTO_SURE = 4 };

struct hd_auto_judged { struct hd_auto_plan plan; const struct hd_auto_cand *cand; };

struct hd_auto_search {
	struct hd_auto_space space;
	struct hd_auto_cand *kept; uint32_t nkept, most;      /* [most] by estimate */
	/* data: by width, the widest first; all that may be the best */
	struct hd_auto_cand one, *data; uint32_t ndata;
	double best_ps;                           /* first round: least estimate so far */
	/* of what was simulated and may be chosen; INT64_MAX: nothing */
	int64_t best_made_ps;
	uint32_t order;
	bool alike;                               /* all devices */
	bool second;                              /* round */
	bool again;                               /* all stages compute again */
	bool unfit;                               /* something did not fit the memory */
	struct hd_auto_need least;                /* of what was simulated and did not fit */
	double *speeds;                           /* [ndevices + 1] sums of the first */
	struct hd_auto_judged *list; uint32_t n, cap;      /* what works, in order */
	struct hd_auto out;
};

/* All shapes that are asked for, estimated, into `kept`. */
HD_MUST_USE enum hd_err hd_auto_enumerate(struct hd_auto_search *s);
/* One device, and copies of the whole model. */
HD_MUST_USE enum hd_err hd_auto_refer(struct hd_auto_search *s);
bool hd_auto_same_shape(const struct hd_auto_cand *a, const struct hd_auto_cand *b);
bool hd_auto_may_be_chosen(const struct hd_auto_ask *ask, const struct hd_auto_shape *shape);

HD_MUST_USE enum hd_err hd_auto_judge_references(struct hd_auto_search *s);
HD_MUST_USE enum hd_err hd_auto_judge_kept(struct hd_auto_search *s);
/* Moves the boundaries of the best. */
HD_MUST_USE enum hd_err hd_auto_polish_best(struct hd_auto_search *s);
/* Second round: every kept shape that may still be better than the best, its boundaries moved. */
HD_MUST_USE enum hd_err hd_auto_sweep(struct hd_auto_search *s);
/* Counts and names a shape of the second round that the search does not go through. */
void hd_auto_leave(struct hd_auto_search *s, const struct hd_auto_cand *c, bool begun);

#endif
