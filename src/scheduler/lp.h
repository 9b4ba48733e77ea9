/* lp.h -- a linear program: minimise or maximise a sum under rows and bounds. Seven functions over whatever
 * solver is built in.
 *
 * The policies build one, solve it, edit it and solve again; no type of the solver gets past lp_clp.c.
 *
 * 1. A row is lo <= sum of val * x[idx] <= hi, a column lo <= x <= hi; -INFINITY and INFINITY are no bound.
 * 2. Rows are scaled by their largest coefficient before the solver sees them; what comes out is in the
 *    caller's units.
 * 3. A dual is the change of the objective per unit of the row's bound: in a maximisation it is >= 0 on a <=
 *    row that is tight. The reduced cost is cost - (duals times column): in a maximisation <= 0 of a column
 *    at its lower bound.
 * 4. Certificate: after OPTIMAL primal residual, dual residual and gap are computed again from the rows as
 *    given, by code that shares nothing with the solver; the worst, relative, is `gap`. Above HD_LP_GAP what
 *    is missing is solved for, enlarged; then the program is solved again without scaling, then with scaling
 *    and without tricks; then it is NUMERIC. INFEASIBLE and UNBOUNDED are solved again as well.
 * 5. Equal calls give equal results; only the limit in seconds looks at a clock.
 *
 * Ownership: lp is on the heap, arrays of a result belong to it until the next call. One thread at a time. */
#ifndef HD_SCHEDULER_LP_H
#define HD_SCHEDULER_LP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define HD_LP_GAP 1e-7

#define HD_LP_STATUSES(X)                                              \
	X(OPTIMAL,    "optimal")                                       \
	X(INFEASIBLE, "no solution keeps all rows")                    \
	X(UNBOUNDED,  "the objective has no bound")                    \
	X(LIMIT,      "the limit of iterations or time was reached")   \
	X(NUMERIC,    "the solution fails its certificate")

enum hd_lp_status {
#define X(id, text) HD_LP_##id,
	HD_LP_STATUSES(X)
#undef X
};
const char *hd_lp_status_text(enum hd_lp_status status);

enum hd_lp_what { HD_LP_COLUMN, HD_LP_ROW, HD_LP_COST };          /* for hd_lp_edit */

/* 0: 10 s, 1,000,000, HD_LP_GAP */
struct hd_lp_limits { double seconds; uint32_t iterations; double gap; };

struct hd_lp_result {
	enum hd_lp_status status;
	double objective, gap;
	/* [columns], [rows], [columns], [rows]; activity: what a row comes to */
	const double *x, *dual, *reduced, *activity;
	uint32_t iterations;
};

struct hd_lp;

/* Whether a solver is built in; if not, hd_lp_new returns NULL. */
bool hd_lp_built(void);
struct hd_lp *hd_lp_new(bool maximise);
/* n columns more; start, idx, val: their entries in rows that are there already, start[n] ends the last;
 * NULL: none. */
HD_MUST_USE enum hd_err hd_lp_cols(struct hd_lp *lp, uint32_t n, const double lo[], const double hi[],
	const double cost[], const uint32_t start[],
	const uint32_t idx[], const double val[]);
HD_MUST_USE enum hd_err hd_lp_rows(struct hd_lp *lp, uint32_t n, const double lo[], const double hi[],
	const uint32_t start[], const uint32_t idx[],
	const double val[]);
/* New bounds of a column or row; HD_LP_COST: the column's cost is `hi_or_cost`. */
void hd_lp_edit(struct hd_lp *lp, enum hd_lp_what what, uint32_t index, double lo, double hi_or_cost);
/* HD_OK also where the status is not OPTIMAL: then x, dual, reduced are not set. Without columns the
 * solver is not asked. */
HD_MUST_USE enum hd_err hd_lp_solve(struct hd_lp *lp, const struct hd_lp_limits *limits,
	struct hd_lp_result *result);
/* What the caller found itself, instead of a solve: OPTIMAL if x and dual (rule 3) have the certificate of
 * rule 4, NUMERIC otherwise. The solver hears nothing of it. */
HD_MUST_USE enum hd_err hd_lp_check(struct hd_lp *lp, const double *x, const double *dual,
	const struct hd_lp_limits *limits, struct hd_lp_result *result);
void hd_lp_free(struct hd_lp *lp);                                /* takes NULL */

#endif
