/* terms.h -- what a stage costs: the two terms of the recurrence on one level, of three variants.
 *
 * Private to the partitioner. The search, the choice among equals and the bound all take their numbers from
 * here, so that they compare the same doubles; the check of the answer (cost.c) does not.
 *
 * 1. A term that the options forbid is infinite.
 * 2. The conditions on k, beyond that it precedes j and is not below i, are hd_terms_may(). */
#ifndef HD_PLANNER_PARTITION_TERMS_H
#define HD_PLANNER_PARTITION_TERMS_H

#include <math.h>

#include "planner/partition.h"

#define HD_NS_PER_S 1e9

struct hd_terms {
	const struct hd_cuts *cuts;
	const struct hd_part_how *how;
	enum hd_part_variant variant;
	double b, u;                      /* bandwidth; machines of the level below */
	uint32_t machines;
	/* [n][n] T of a component, by first and last cut; NULL: one machine */
	const double *time;
};

static inline double hd_terms_time(const struct hd_terms *t, uint32_t i, uint32_t j)
{
	if (t->time)
		return t->time[(size_t)i * t->cuts->n + j];
	return (double)(t->cuts->time_ns[j] - (i ? t->cuts->time_ns[i - 1] : 0)) / HD_NS_PER_S;
}

static inline int64_t hd_terms_range(const int64_t *sum, uint32_t i,
	uint32_t j) { return sum[j] - (i ? sum[i - 1] : 0); }

static inline double hd_larger(double a, double b) { return a > b ? a : b; }

/* Of one all-reduce by m components, before it is shared out. */
static inline double hd_terms_reduce(const struct hd_terms *t, double w, double m)
{
	if (t->variant == HD_PART_CODE)
		return 4 * (m - 1) * w / (t->b * m);
	return 2 * (m - 1) * w / (t->variant == HD_PART_PRINTED ? t->b : t->b * m);
}

/* Copies of `bytes` for the work in flight of the x.. machines after this stage; at the end there is still
 * one, but not for `code`. */
static inline bool hd_terms_fits(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t x, uint32_t m)
{
	double bytes = (double)(hd_terms_range(t->cuts->act, i, j) + hd_terms_range(t->cuts->param, i, j));
	uint32_t copies = (t->machines - x + m - 1) / m;

	if (copies == 0 && t->variant != HD_PART_CODE)
		copies = 1;
	return !(t->how->memory_bytes > 0) || !((double)copies * bytes > t->how->memory_bytes);
}

static inline double hd_terms_one(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t x)
{
	double time = hd_terms_time(t, i, j), m = (double)x,
		reduce = hd_terms_reduce(t, (double)hd_terms_range(t->cuts->param, i, j), m);

	if ((t->how->straight && x > 1) || !hd_terms_fits(t, i, j, x, x))
		return INFINITY;
	return t->variant == HD_PART_CODE ? (time + reduce / t->u) / m : hd_larger(time, reduce) / m;
}

/* Without the memory rule, which alone looks at x. */
static inline double hd_terms_last(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t m_)
{
	double time = hd_terms_time(t, k + 1, j), m = (double)m_,
		reduce = hd_terms_reduce(t, (double)hd_terms_range(t->cuts->param, k + 1, j), m);
	double in = (double)t->cuts->out[k], out = (double)t->cuts->out[j], c = t->how->activations;

	if (t->variant != HD_PART_CODE)
		return hd_larger(hd_larger(time, reduce) / m, 2 * in / t->b);
	double term = (time + reduce) / m;
	if (c > 0) {
		term = hd_larger(term, 2 * in / (t->b * m) / c);
		if (j < t->cuts->n - 1)
			term = hd_larger(term, 2 * out / (t->b * m) / c);
	}
	return term;
}

static inline bool hd_terms_may(const struct hd_terms *t, uint32_t i, uint32_t k)
{
	return k >= i && (i == 0 || t->variant == HD_PART_CODE || hd_cuts_precede(t->cuts, i - 1, k));
}

/* The most machines that one stage beside others may have. */
static inline uint32_t hd_terms_most(const struct hd_terms *t) { return t->how->straight ? 1 :
	t->machines - 1; }

#endif
