#include "planner/partition/cost.h"

#include <math.h>

struct part_range { double t, w; };            /* seconds of one component, bytes of parameters */

static double max2(double a, double b) { return a < b ? b : a; }

static double difference(const int64_t *upto, uint32_t first, uint32_t last)
{
	int64_t before = 0;

	if (first > 0)
		before = upto[first - 1];
	return (double)(upto[last] - before);
}

/* The stage as the first of its split, all machines in one group. */
static double leading(const struct hd_part_how *how, uint32_t level, struct part_range r, double x)
{
	double b = how->level[level].bytes_per_s, u = level ? (double)how->level[level - 1].machines : 1;

	if (how->variant == HD_PART_CODE)
		return (r.t + 4 * (x - 1) * r.w / (b * x) / u) / x;
	if (how->variant == HD_PART_PRINTED)
		return max2(r.t, 2 * (x - 1) * r.w / b) / x;
	return max2(r.t, 2 * (x - 1) * r.w / (b * x)) / x;
}

/* The stage behind another: `in` bytes come, `out` bytes go (-1: it is the end of the model). */
static double following(const struct hd_part_how *how, uint32_t level, struct part_range r, double m,
	double in,
	double out)
{
	double b = how->level[level].bytes_per_s, time;

	if (how->variant == HD_PART_PRINTED)
		return max2(max2(r.t, 2 * (m - 1) * r.w / b) / m, 2 * in / b);
	if (how->variant == HD_PART_PAPER)
		return max2(max2(r.t, 2 * (m - 1) * r.w / (b * m)) / m, 2 * in / b);
	time = (r.t + 4 * (m - 1) * r.w / (b * m)) / m;
	if (how->activations > 0)
		time = max2(time, 2 * in / (b * m) / how->activations);
	if (how->activations > 0 && out >= 0)
		time = max2(time, 2 * out / (b * m) / how->activations);
	return time;
}

static bool breaks_memory(const struct hd_part_how *how, uint32_t level, const struct hd_cuts *cuts,
	const struct hd_part_stage *s, uint32_t used)
{
	double copies = ceil((double)(how->level[level].machines - used) / (double)s->replicas);

	if (how->variant != HD_PART_CODE)
		copies = max2(copies, 1);
	return how->memory_bytes > 0 &&
		copies * (difference(cuts->act, s->first, s->last) + difference(cuts->param, s->first,
		s->last)) > how->memory_bytes;
}

double hd_part_cost(const struct hd_part_split *split, const struct hd_cuts *cuts,
	const struct hd_part_how *how, uint32_t level, uint32_t first, uint32_t last)
{
	uint32_t used = 0, next = first;
	double time = -INFINITY;

	for (uint32_t i = 0; i < split->nstages; i++) {
		const struct hd_part_stage *s = &split->stage[i];
		struct part_range r = { difference(cuts->time_ns, s->first, s->last) / 1e9,
			difference(cuts->param, s->first, s->last) };
		used += s->replicas;
		if (s->first != next || s->last < s->first || s->last > last || !s->replicas ||
			used > how->level[level].machines
			|| (level > 0) != (s->split != NULL))
			return -INFINITY;
		if (i > 0 && !hd_cuts_precede(cuts, s->first - 1, s->last))
			return -INFINITY;
		if (level > 0)
			r.t = hd_part_cost(s->split, cuts, how, level - 1, s->first, s->last);
		if (r.t == -INFINITY || (how->straight && s->replicas != 1))
			return -INFINITY;
		if (breaks_memory(how, level, cuts, s, used))
			return INFINITY;
		time = max2(time, i == 0 ? leading(how, level, r, (double)s->replicas)
					 : following(how, level, r, (double)s->replicas,
					 	(double)cuts->out[s->first - 1],
						   s->last == cuts->n - 1 ? -1 : (double)cuts->out[s->last]));
		next = s->last + 1;
	}
	return next == last + 1 ? time : -INFINITY;
}
