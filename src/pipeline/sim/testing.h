/* testing.h -- what the two tests of the full simulator share. For tests only. */
#ifndef HD_PIPELINE_SIM_TESTING_H
#define HD_PIPELINE_SIM_TESTING_H

#include "pipeline/sim_why.h"
#include "tests/planning.h"

/* The path goes without a gap from the beginning to the end, its terms add up to it; waits of a rank add up
 * to its idle times. */
static inline struct hd_sim_reasons hd_sim_explained(const struct hd_schedule *s,
	const struct hd_sim_setting *set, struct hd_sim_plan *sim)
{
	struct hd_sim_setting with = *set;
	struct hd_sim_reasons why = { 0 };
	struct hd_diag diag = { "" };
	int64_t at = 0, all = 0;

	with.spans = true;
	CHECK(hd_sim_plan(sim, s, &with, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	CHECK(hd_sim_reasons(&why, sim, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	for (uint32_t i = 0; i < why.nparts; at = why.part[i++].until)
		CHECK(why.part[i].start == at && why.part[i].until > at && why.part[i].rank < s->nranks,
			"%s: part %u begins at %lld, the one before ends at %lld", s->heading, i,
			(long long)why.part[i].start, (long long)at);
	for (uint32_t t = 0; t < HD_TERMS; t++) {
		CHECK(why.term[t] >= 0, "%s: term %u", s->heading, t);
		all += why.term[t];
	}
	CHECK(at == sim->makespan && all == at, "%s: the path ends at %lld, terms are %lld, the step %lld",
		s->heading, (long long)at, (long long)all, (long long)sim->makespan);
	for (uint32_t r = 0, k = 0; r < s->nranks; r++) {
		int64_t idle[HD_NIDLES] = { 0 };
		for (; k < why.nwaits && why.wait[k].rank == r; k++)
			idle[why.wait[k].why] += why.wait[k].ticks;
		for (int i = 0; i < HD_NIDLES; i++)
			CHECK(i == HD_IDLE_DRAIN || idle[i] == sim->rank[r].idle[i],
				"%s: rank %u waits %lld (%s), idle are %lld", s->heading, r,
				(long long)idle[i], hd_idle_names[i], (long long)sim->rank[r].idle[i]);
	}
	return why;
}

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
	struct hd_sim_plan shown;
	(void)hd_sim_explained(s, set, &shown);
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
