/* For builds without a solver. */
#include <assert.h>

#include "scheduler/lp/lp_int.h"

bool hd_lp_solver_built(void) { return false; }

enum hd_err hd_lp_solver_run(struct hd_lp *lp, const struct hd_lp_limits *limits, enum hd_lp_try how,
	struct hd_lp_raw *raw)
{
	(void)lp, (void)limits, (void)how, (void)raw;
	assert(!lp);                              /* hd_lp_new made none */
	return HD_E_BUG;
}

enum hd_err hd_lp_solver_refine(struct hd_lp *lp, const struct hd_lp_limits *limits, struct hd_lp_raw *raw)
{
	(void)lp, (void)limits, (void)raw;
	return HD_E_BUG;
}

void hd_lp_solver_drop(struct hd_lp *lp) { (void)lp; }
