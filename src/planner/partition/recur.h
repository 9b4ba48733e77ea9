/* recur.h -- the recurrence as it is written: tables of best times, row by row.
 *
 * 1. Rows are first cuts i. Either one row, or all of them (for the levels below the top).
 * 2. A term that is not smaller than the worst of a table's entries changes nothing and is skipped. */
#ifndef HD_PLANNER_PARTITION_RECUR_H
#define HD_PLANNER_PARTITION_RECUR_H

#include "planner/partition/terms.h"

struct hd_recur {
	const struct hd_terms *t;
	bool all;
	uint32_t row, end;                /* of one row: i; cuts below `end` are filled in */
	double *at;                       /* A[j][i][x - 1] */
};

static inline double *hd_recur_at(const struct hd_recur *r, uint32_t i, uint32_t j)
{
	size_t place = r->all ? (size_t)j * (j + 1) / 2 + i : j;
	return r->at + place * r->t->machines;
}

HD_MUST_USE enum hd_err hd_recur_all(struct hd_recur *r, const struct hd_terms *t, struct hd_arena *arena);
/* Row i, cuts i..last. */
HD_MUST_USE enum hd_err hd_recur_row(struct hd_recur *r, const struct hd_terms *t, uint32_t i, uint32_t last,
	struct hd_arena *arena);

#endif
