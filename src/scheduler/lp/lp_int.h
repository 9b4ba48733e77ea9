/* lp_int.h -- the program as given, and what a solver must do with it. For lp.c and the one lp_<solver>.c
 * of the build. */
#ifndef HD_SCHEDULER_LP_LP_INT_H
#define HD_SCHEDULER_LP_LP_INT_H

#include "scheduler/lp.h"

struct hd_lp_entry { uint32_t row, col; double val; };

struct hd_lp {
	bool maximise;
	uint32_t ncols, nrows, nentries;
	uint32_t col_cap, row_cap, entry_cap;
	double *lo, *hi, *cost;                   /* [ncols], owned as all below */
	/* [nrows]; scale: the largest coefficient when the row came, 1 if none */
	double *row_lo, *row_hi, *row_scale;
	struct hd_lp_entry *entry;
	double *x, *dual, *reduced, *activity;    /* of the last solve; activity: what each row comes to */
	uint32_t x_cap, dual_cap;
	/* What the solver has not heard of yet. */
	bool costs_moved, bounds_moved;
	struct hd_lp_solver *solver;              /* NULL before the first solve */
};

/* Row activity and reduced costs are not asked of the solver: the certificate computes them. */
struct hd_lp_raw { enum hd_lp_status status; uint32_t iterations; };

/* USUAL: from where it is, rows scaled. The others start from scratch: rows as they are; rows scaled, with
 * care instead of speed. */
enum hd_lp_try { HD_LP_USUAL, HD_LP_BARE, HD_LP_CAREFUL };

bool hd_lp_solver_built(void);
/* Brings the solver up to date (makes it if there is none), solves; x and dual (per unit of the row as given,
 * the sign of lp.h) go into lp->x and lp->dual. */
HD_MUST_USE enum hd_err hd_lp_solver_run(struct hd_lp *lp, const struct hd_lp_limits *limits,
	enum hd_lp_try how, struct hd_lp_raw *raw);
/* After a run that was OPTIMAL: what its tolerances left of x and dual, by lp->activity and lp->reduced,
 * is solved for once more. */
HD_MUST_USE enum hd_err hd_lp_solver_refine(struct hd_lp *lp, const struct hd_lp_limits *limits,
	struct hd_lp_raw *raw);
void hd_lp_solver_drop(struct hd_lp *lp);

#endif
