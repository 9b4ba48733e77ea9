/* testing_shadows.h -- for tests of shadow stages: pipelines as a run has them. */
#ifndef HD_PIPELINE_TESTING_SHADOWS_H
#define HD_PIPELINE_TESTING_SHADOWS_H

#include "pipeline/plan_schedule.h"
#include "pipeline/staged.h"
#include "tests/planning.h"

/* d pipelines of a kind side by side, as a run has them: with RED and NORM. */
static inline struct hd_schedule hd_side_by_side(const char *name, uint32_t p, uint32_t m, uint32_t d)
{
	struct hd_schedule one[4], out = { 0 };
	uint32_t first[16];
	struct hd_diag diag = { "" };
	struct hd_plan *plan = hd_arena_take(&arena, 1, sizeof *plan);
	const struct hd_plan_job job = { .nvns = d * m, .nchunks = 4, .nstages = 1 };

	for (uint32_t k = 0; k < d; k++)
		one[k] = hd_named_schedule(name, p, m, 0);
	for (uint32_t k = 0; k < p; k++)
		first[k] = 2 * k;
	CHECK(hd_plan_staged(plan, &job, one, d, first, false, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_schedule_of_plan(&out, plan, &arena, &diag) == HD_OK, "%s", diag.text);
	out.heading = name;
	return out;
}

#endif
