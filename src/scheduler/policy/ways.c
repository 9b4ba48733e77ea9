/* Ways to run of an elastic job: on how many devices of which types, and how fast. */
#include <math.h>

#include "scheduler/policy/int.h"

/* Virtual nodes are dealt so that all devices of a step end together as nearly as whole nodes allow: the
 * least T with sum_j n_j floor(T / t_j) >= V, where t_j is the time of one node on type j in a job of so
 * many devices. */
static double mixed(const struct hd_sched_job *job, const struct hd_need *need, uint8_t nneeds, uint32_t n)
{
	double node_s[HD_SHAPE_NEEDS], fluid = 0, v = job->elastic->nvns, took, held;

	for (uint8_t d = 0; d < nneeds; d++) {
		double rate = hd_sched_rate_on(job, need[d].type, n);
		if (!(rate > 0))
			return 0;
		node_s[d] = n / (rate * v);
		fluid += need[d].n / node_s[d];
	}
	took = v / fluid;
	if (job->elastic->nvns > 4096)                    /* as good as divisible without end */
		return 1 / took;
	for (;;) {
		double next = INFINITY;
		held = 0;
		for (uint8_t d = 0; d < nneeds; d++) {
			double whole = floor(took / node_s[d] + 1e-9);
			held += need[d].n * whole;
			next = fmin(next, (whole + 1) * node_s[d]);
		}
		if (held >= v)
			return 1 / took;
		took = next;
	}
}

double hd_way_rate(const struct hd_sched_job *job, const struct hd_need *need, uint8_t nneeds)
{
	uint32_t n = 0;

	for (uint8_t d = 0; d < nneeds; d++)
		n += need[d].n;
	if (nneeds == 1)
		return hd_sched_rate_on(job, need[0].type, n);
	return job->elastic && job->elastic->mixed ? mixed(job, need, nneeds, n) : 0;
}

double hd_way_risk(const struct hd_sched_state *s, uint32_t job, const struct hd_need *need, uint8_t nneeds)
{
	double lost = 0;

	for (uint8_t d = 0; d < nneeds; d++)
		lost += need[d].n * s->types[need[d].type].revoked_per_s * s->jobs[job].lost_s;
	return 1 - fmin(0.95, lost);
}

/* All counts up to 8, then powers of two and half as much again. */
uint32_t hd_way_next(uint32_t n)
{
	uint32_t power = 8;

	if (n < 8)
		return n + 1;
	while (2 * power <= n)
		power *= 2;
	return n < power + power / 2 ? power + power / 2 : 2 * power;
}

enum hd_err hd_ways_each(const struct hd_sched_state *s, uint32_t job, hd_way_visit *visit, void *context)
{
	const struct hd_sched_job *j = &s->jobs[job];
	struct hd_shape shape = { .nmembers = 1, .member = { job, HD_SCHED_NONE } };
	uint32_t most = hd_sched_most(j);
	enum hd_err err = HD_OK;

	for (uint32_t a = 0; !err && a < s->ntypes; a++)
		for (uint32_t n = hd_sched_fewest(j); !err && j->rate[a] > 0 && n <= most &&
			n <= s->types[a].n; n = j->elastic ? hd_way_next(n) : most + 1) {
			shape.nneeds = 1;
			shape.need[0] = (struct hd_need){ a, n };
			shape.rate[0] = hd_way_rate(j, shape.need, 1);
			if (shape.rate[0] > 0)
				err = visit(context, &shape);
		}
	for (uint32_t a = 0; !err && j->elastic && j->elastic->mixed && a < s->ntypes; a++)
		for (uint32_t b = a + 1; !err && b < s->ntypes; b++)
			for (uint32_t n = 1; !err && j->rate[a] > 0 && j->rate[b] > 0 && n < most &&
				n <= s->types[a].n; n *= 2)
				for (uint32_t k = 1; !err && n + k <= most && k <= s->types[b].n; k *= 2) {
					shape.nneeds = 2;
					shape.need[0] = (struct hd_need){ a, n };
					shape.need[1] = (struct hd_need){ b, k };
					shape.rate[0] = hd_way_rate(j, shape.need, 2);
					if (shape.rate[0] > 0)
						err = visit(context, &shape);
				}
	return err;
}
