/* sched_waits.h -- how long jobs waited for their start: of all, and of each user, account, partition, QOS or
 * type.
 *
 * 1. A job counts if it is in the range of the setting and none of the filter's parts speaks against it. All
 *    jobs are simulated: a filter says which are looked at, not which were there.
 * 2. Percentiles are the smallest value that at least that part of all does not exceed.
 *    A job with a list of partitions ("gpu,debug") counts for each of them.
 * 3. Groups are in order of their names; a job without a name in that place is in group "-", one with a list
 *    of partitions in a group of its list.
 *
 * Pure. */
#ifndef HD_CLUSTERSIM_SCHED_WAITS_H
#define HD_CLUSTERSIM_SCHED_WAITS_H

#include <math.h>

#include "clustersim/sched_sim.h"

/* NULL, NAN and 0: no filter. Times of submission since 1970. */
struct hd_job_filter { const char *partition, *account, *user; double from_s, to_s; uint32_t min_devices; };
#define HD_JOB_FILTER ((struct hd_job_filter){ .from_s = NAN, .to_s = NAN })

bool hd_job_counts(const struct hd_job_filter *filter, const struct hd_listed_job *job);
/* The list keeps the jobs that count, from the first on. */
void hd_job_list_filter(struct hd_job_list *list, const struct hd_job_filter *filter);

/*       id         word         */
#define HD_GROUPS(X) \
	X(ALL,       "all")       \
	X(USER,      "user")      \
	X(ACCOUNT,   "account")   \
	X(PARTITION, "partition") \
	X(QOS,       "qos")       \
	X(TYPE,      "type")

enum hd_group {
#define X(id, word) HD_GROUP_##id,
	HD_GROUPS(X)
#undef X
	HD_NGROUPS
};

struct hd_wait_sum {
	const char *name;
	uint64_t njobs, nstarted;
	double mean_s, p50_s, p90_s, max_s;       /* of those that started; NAN: none */
	double mean_jct_s, device_h;              /* of those that are over; of all */
};

/* Arrays of the arena. */
HD_MUST_USE enum hd_err hd_sched_waits(struct hd_wait_sum **waits, uint32_t *n,
	const struct hd_sched_sim_setting *setting, const struct hd_sched_sim_result *result,
	const struct hd_job_filter *filter, enum hd_group by, struct hd_arena *arena, struct hd_diag *diag);

#endif
