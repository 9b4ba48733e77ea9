/* testing.h -- what the two tests of the full simulator share. For tests only. */
#ifndef HD_PIPELINE_SIM_TESTING_H
#define HD_PIPELINE_SIM_TESTING_H

#include "pipeline/sim_plan.h"
#include "tests/planning.h"

/* A simulation whose shares must add up to the whole. */
static inline struct hd_sim_plan hd_sim_adds_up(const struct hd_schedule *s, const struct hd_sim_setting *set)
{
	struct hd_sim_plan sim = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_sim_plan(&sim, s, set, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	for (uint32_t r = 0; r < s->nranks; r++) {
		int64_t sum = sim.rank[r].busy;
		for (int k = 0; k < HD_NIDLES; k++) {
			CHECK(sim.rank[r].idle[k] >= 0, "%s: rank %u, %s %lld", s->heading, r,
				hd_idle_names[k], (long long)sim.rank[r].idle[k]);
			sum += sim.rank[r].idle[k];
		}
		CHECK(sum == sim.makespan, "%s: rank %u: work and idle times are %lld, the makespan %lld",
			s->heading, r, (long long)sum,
			(long long)sim.makespan);
		sum = 0;
		for (int k = 0; k < HD_NMEMORIES; k++)
			sum += sim.rank[r].at_peak[k];
		CHECK(sum == sim.rank[r].peak, "%s: rank %u: parts of its peak", s->heading, r);
	}
	return sim;
}

/* n devices on one link that is 1 byte a tick. */
static inline struct hd_cluster hd_small_cluster(uint32_t n, int64_t latency)
{
	struct hd_cluster c = { 0 };
	struct hd_diag diag = { "" };
	const struct hd_cluster_level level = { "net", n, 1e12, latency };

	CHECK(hd_cluster_make(&c, &level, 1, (struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag) == HD_OK,
		"%s", diag.text);
	return c;
}

#endif
