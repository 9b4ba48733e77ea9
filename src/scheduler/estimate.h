/* estimate.h -- how fast two jobs go on the same devices, from few measurements.
 *
 * Policies that pack want the rates of all pairs; to run every pair first would cost more than packing gains.
 * Some kinds of jobs are references: they are measured beside each other. Of any other kind a part of the
 * cells (type, reference beside it) is measured, the reference that is most like it in these cells stands in
 * for it, and what its pairs do is scaled to the kind's own speed alone. A pair that has run is known and no
 * longer estimated.
 *
 * 1. A cell is the rate beside another over the rate alone, cut to [0, 1]; alone 0: 0. Rows are kinds, of one
 *    scale at a time.
 * 2. Which kinds are references and which cells are measured depends on (seed, kind, cell): one kind more
 *    shifts none. At least one cell a type is measured.
 * 3. The most like: the smallest mean square distance over what was measured, of the kind beside the
 *    reference and of the reference beside the kind; of equal ones that with the smaller angle to the
 *    completed row; then the first. With `published` the angle alone decides, as the published estimator does
 *    it. Rows are completed by alternating ridge least squares.
 * 4. Whether two fit on a device together is taken as known (a rate of 0: they do not), since what memory
 *    each needs is seen when it runs alone.
 * 5. Guesses are reported a fifth lower than they are (not with `published`): the least of many jobs is found
 *    among the guesses that were too high. Max-min of 18 jobs on 9 devices at published rates (16 of 26 kinds
 *    references, a fifth of the cells measured) loses 11 % with the first shares and 3 % from the third on,
 *    when pairs that got a share have run; reported a tenth lower 21 % and 8 %, as they are more. Without
 *    any unmeasured pair it would lose 5 %: guesses are for what comes later (docs/results/estimate.md).
 *
 * Pure; one thread at a time. */
#ifndef HD_SCHEDULER_ESTIMATE_H
#define HD_SCHEDULER_ESTIMATE_H

#include "scheduler/rates.h"
#include "scheduler/sched_state.h"

struct hd_estimate_setting {
	double q;                                 /* part of the cells that is measured, in (0, 1] */
	uint32_t references;                      /* kinds of each scale; 0: all of them */
	uint32_t seed;
	bool published;
};

struct hd_estimator;

/* `truth` is what measuring would say; borrowed. HD_E_INVAL: q, or rates without pairs. */
HD_MUST_USE enum hd_err hd_estimator_create(struct hd_estimator **estimator,
	const struct hd_estimate_setting *setting, const struct hd_rates *truth,
	struct hd_diag *diag);
void hd_estimator_destroy(struct hd_estimator *estimator);
/* For policies: estimates, and truth where it is known. Changes with hd_estimator_ran. */
const struct hd_pair_table *hd_estimator_table(const struct hd_estimator *estimator);
/* A job of the kind came: its cells count as measured. */
void hd_estimator_came(struct hd_estimator *estimator, uint32_t kind);
/* Two kinds ran beside each other on a type: what they did is known now. */
void hd_estimator_ran(struct hd_estimator *estimator, uint32_t a, uint32_t b, uint32_t type);

struct hd_estimate_account {
	/* of kinds that came, ordered, by type: all; measured before; known since they ran */
	uint64_t pairs, measured, ran;
	/* mean of |guess - truth| / truth of what both do together, before rule 5, over pairs of kinds
	 * that came */
	double error;
};
void hd_estimator_account(const struct hd_estimator *estimator, struct hd_estimate_account *account);
/* the kind that stands in for it; for tests */
uint32_t hd_estimator_reference(const struct hd_estimator *estimator, uint32_t kind);

/* ---- completion of a matrix ---- */

enum { HD_COMPLETE_RANK = 10, HD_COMPLETE_TURNS = 100 };

/* x[rows][cols] ~ u v', u[rows][rank], v[cols][rank]: in turn u and v minimise the sum over known cells of
 * (x - u v')^2 plus mu (|u|^2 + |v|^2), from the u and v that are given, until the product changes by less
 * than 1e-3 rows cols (or the last turn). Cells that are not known become the product, cut to [0, 1]. */
HD_MUST_USE enum hd_err hd_complete(double *x, const bool *known, uint32_t rows, uint32_t cols, uint32_t rank,
	double mu, double *u, double *v,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
