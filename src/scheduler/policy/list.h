/* list.h -- the policies that there are, in the order of messages.
 *
 * A row: NAME, for which a file of this folder defines hd_NAME_init(), hd_NAME_allocate() and
 * hd_NAME_finish(), and the fields of struct hd_sched_policy (scheduler/sched_policy.h) but for these three;
 * their short names are in policy.c. Adding a policy is such a file and a row. */
#ifndef HD_SCHEDULER_POLICY_LIST_H
#define HD_SCHEDULER_POLICY_LIST_H

#define HD_POLICIES(X) \
	X(las,               "las", "max-min fairness of normalised throughput by weight", "least z s/w", LP | PUB | MIN, H | P | K | B, 0) \
	X(ftf,               "ftf", "finish-time fairness: no job much later than with a share of its own", "largest rho", LP | PUB | MAX, H | P | K, sizeof(struct hd_ledger)) \
	X(makespan,          "makespan", "the earliest end of all jobs", "seconds", LP | PUB | MAX, H | P | K, 0) \
	X(sum,               "sum", "most normalised throughput by weight", "sum w z", LP | PUB, H | K, 0) \
	X(cost,              "cost", "steps worth their price, deadlines as far as they can be met", "money/s gained", LP | PUB | STEADY, H | K, sizeof(struct hd_patience)) \
	X(hierarchy,         "hierarchy", "entities share by weight, their jobs by weight or in queue order", "least z s/w", LP | MIN, H | P | K, 0) \
	X(nash,              "nash", "largest product of throughputs, less what each takes from the others: lying about speeds does not pay", "sum w log z before the discount", LP | PUB, H | P, 0) \
	X(isolated,          "isolated", "everyone 1/n of every type", "", PUB, H, 0) \
	X(fifo,              "fifo", "whole devices in order of arrival", "", PUB | WHOLE | QUEUE, H | P | K, sizeof(struct hd_queue)) \
	X(sjf,               "sjf", "whole devices, shortest first", "", WHOLE | QUEUE, H, sizeof(struct hd_queue)) \
	X(allox,             "allox", "jobs of one device, least sum of completion times", "", PUB | WHOLE | QUEUE, H, sizeof(struct hd_ledger)) \
	X(gandiva,           "gandiva", "pairs found by trying", "", PUB, K | H, sizeof(struct hd_gandiva)) \
	X(heddle,            "heddle", "a plan for early ends of each and all: resizes, several types at once, prices, risks", "job-seconds to the ends", LP | ELASTIC | WHOLE, H | K, 0) \
	X(priority,          "priority", "whole devices, heaviest first; the head of the queue holds back all others", "", WHOLE | QUEUE, H, sizeof(struct hd_queue)) \
	X(priority_backfill, "priority-backfill", "priority, and others may start where they do not delay the head", "", WHOLE | QUEUE, H, sizeof(struct hd_queue)) \
	X(wfs,               "wfs", "devices of one type by weight, jobs are resized to them", "", ELASTIC | QUEUE, H, sizeof(struct hd_wfs)) \
	X(wfs_2020,          "wfs-2020", "wfs as VirtualFlow had it, in powers of two", "", ELASTIC | QUEUE, H, sizeof(struct hd_wfs)) \
	X(goodput,           "goodput", "devices where they help to learn, not only to compute", "sum w of waits, in equal parts", ELASTIC | WHOLE, H, 0)

#endif
