/* pipedream.h -- a partition of one level, run as PipeDream runs it: what the full simulator says of it, and
 * of data parallel.
 *
 * 1. Stages stand on devices in order, replicas side by side. Replica q of a stage of r takes minibatches q,
 *    q + r, ...; with w others under way (1f1b-rr: w = (R - 1 - devices before)/r) it alternates one forward
 *    and one backward.
 * 2. A replicated stage sums its gradients every r minibatches, in buckets of at least HD_PD_BUCKET bytes of
 *    weights (a bucket is a range of cuts), each as soon as its backward is done, beside the backward of the
 *    others; the next forward of a bucket waits for its sum.
 * 3. Data parallel is the same with one stage on all devices.
 * 4. Rates are those between a third and two thirds of the minibatches: neither filling nor draining counts.
 *
 * Pure; results lie in the arena. */
#ifndef HD_PLANNER_PIPEDREAM_H
#define HD_PLANNER_PIPEDREAM_H

#include "pipeline/sim_plan.h"
#include "planner/partition.h"

enum { HD_PD_BUCKET = 25 << 20, HD_PD_MINIBATCHES = 1 << 14 };

struct hd_pd_stage { uint32_t first, last, replicas; };       /* cuts [first, last) */

struct hd_pd_run {
	struct hd_schedule schedule;
	struct hd_stage_costs costs;              /* a stage of the schedule is a bucket */
	struct hd_sim_plan sim;
	double rate;                              /* minibatches a second */
};

/* HD_E_INVAL: the devices are not those of the cluster, or replicas have no common round below
 * HD_PD_MINIBATCHES. For tests. */
HD_MUST_USE enum hd_err hd_pd_run(struct hd_pd_run *out, const struct hd_cut_sums *sums,
	const struct hd_pd_stage *stage, uint32_t nstages,
	const struct hd_cluster *cluster, struct hd_arena *arena, struct hd_diag *diag);

/*        id       name              what is made of it                                                   */
#define HD_PD_WAYS(X) \
	X(DATA,     "data parallel", "all of the model on every device")                                  \
	X(PAPER,    "paper",         "the variant `paper`, all devices at the bandwidth of the outermost level") \
	X(SHARED,   "paper (shared)", "the same, at the share of it that a device of a component has")     \
	X(STRAIGHT, "straight",      "`paper` with one device a stage")

enum hd_pd_way {
#define X(id, name, about) HD_PD_##id,
	HD_PD_WAYS(X)
#undef X
	HD_NPD_WAYS
};
extern const char *const hd_pd_way_names[HD_NPD_WAYS];

/* Every way that the cluster allows, and which is fastest (of equals the first). */
struct hd_pd_choice {
	/* why: it was not made */
	struct { bool made; struct hd_part_split split; double rate; const char *why; } way[HD_NPD_WAYS];
	enum hd_pd_way best;
};
HD_MUST_USE enum hd_err hd_pd_choose(struct hd_pd_choice *out, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
