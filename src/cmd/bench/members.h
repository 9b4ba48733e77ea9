/* members.h -- benchmarks whose processes sum a vector (worker/allreduce_bench.h): the one that the user
 * started leads, those that it starts are members.
 *
 * The environment of a member says which it is, and where: HEDDLE_BENCH_MEMBER=I:FOLDER. */
#ifndef HD_CMD_BENCH_MEMBERS_H
#define HD_CMD_BENCH_MEMBERS_H

#include "worker/allreduce_bench.h"
#include "cmd/verbs.h"

/* A time of a bench: what is gathered of it, ascending. */
double hd_bench_median(double *ms, uint32_t n);

/* argv: the same call, for the members. *led: times are there; else this was a member, with nothing to print.
 * The times lie in the arena of the call. */
HD_MUST_USE enum hd_err hd_bench_members(struct hd_cmd *cmd, struct hd_allreduce_bench *bench,
	const char *const *argv, struct hd_allreduce_times *times, bool *led);

#endif
