/* profile.h -- the profiler: what the nodes of a job cost on a device of this machine.
 *
 * `heddle profile` writes what comes out for planners to read (cost/profile.h); which graph node counts at
 * which node of the profile, and its bytes, are a matter of the graph alone (cost/profile_graph.h).
 *
 * 1. One virtual node of the job's step runs alone, node by node, forward and then backward in the order of
 *    the step, again and again; each node's time is taken with the device drained before its end. So a sample
 *    holds what a call costs besides its arithmetic, and the caches are as the node before left them.
 * 2. HD_PROFILE_WARMUP passes are not counted. Then as many as asked for, or until the standard error of
 *    every node above 1 % of the total is below 1 % of it: at least HD_PROFILE_LEAST, at most
 *    HD_PROFILE_MOST.
 * 3. i and w of a profile node are sums over its gradient nodes in one pass; w of a parameter includes the
 *    place of its gradient in a buffer, but no addition: that is sum_ns_per_byte.
 * 4. Of the optimizer and of whole steps HD_PROFILE_STEPS real steps are taken. They change the
 *    worker's state: it is of no use afterwards.
 * 5. A run that plans by what it measures cannot wait for rule 2: within a budget of time the warm-up ends
 *    after HD_PROFILE_FEW passes or a quarter of it. Passes end with it, HD_PROFILE_FEW at least, or as
 *    soon as the median of whole passes is known to HD_PROFILE_ERROR.
 * 6. What disturbs a call makes it longer, so the sum of medians is less than what a pass takes in the
 *    median. Within a budget the medians of a phase are stretched to add up to the median of the phase.
 *
 * Times are of the machine as it is at that moment; everything else is a function of the job. Threads: the
 * worker's caller. */
#ifndef HD_ENGINE_PROFILE_H
#define HD_ENGINE_PROFILE_H

#include "sys/clock.h"
#include "cost/profile_graph.h"
#include "cost/reuse.h"
#include "engine/op_times.h"

enum { HD_PROFILE_WARMUP = 20, HD_PROFILE_LEAST = 100, HD_PROFILE_MOST = 1000, HD_PROFILE_STEPS = 5,
	HD_PROFILE_FEW = 5, HD_PROFILE_ROUNDS = 3, HD_PROFILE_KNOWN = 8,
	HD_PROFILE_SAMPLES_CAP = 1000000 };
#define HD_PROFILE_ERROR 0.01

/* What a node's samples say; sorts them. n >= 1. */
struct hd_profile_cost hd_profile_cost_of(int64_t *ns, uint64_t n);
/* Of ascending samples: HD_PROFILE_KNOWN at least, and the sqrt(n) to either side of their middle, between
 * which the true median lies 19 times of 20, are within HD_PROFILE_ERROR of it. */
bool hd_profile_is_known(const int64_t *sorted, uint64_t n);
/* Rule 6: the medians of a phase (enum hd_phase) of n nodes add up to all_ns. */
void hd_profile_fit(struct hd_profile_node *node, uint32_t n, uint32_t phase, double all_ns);

struct hd_profile_how {
	uint64_t samples;                 /* passes; 0: rule 2 */
	int64_t budget_ns;                /* rule 5; 0: as long as it takes */
	/* virtual nodes of a pass, at most a wave of the plan: their times are shared out evenly; 0: one */
	uint32_t together;
	/* processor time of the calling thread instead of time: what others take of the core is not in it.
	 * For devices of one thread that compute when they are called */
	bool processor;
	bool joined;                      /* of distances: I and W within B alone; apart as within */
};

/* Nodes, edges, bytes and times; links stay empty. HD_E_REFUSED, HD_E_INVAL: several devices, lockstep,
 * batch.slices, a step whose first virtual node is not full. */
HD_MUST_USE enum hd_err hd_worker_profile(struct hd_worker *worker, const struct hd_profile_how *how,
	struct hd_arena *arena, struct hd_profile *profile, struct hd_diag *diag);

/* What a longer way between two uses of activations costs: a virtual node's forward passes in as many places
 * as a point of cost/reuse.h is far, then their backward passes, as B or as I and W, again and again;
 * medians, all nodes of a phase together. `budget_ns` in all, HD_PROFILE_ROUNDS at most, two where they
 * agree; how->samples and together are not used. None makes a difference (hd_reuse_none) where the machine
 * has not twice the memory for it, within the worker's limit, or a round would take longer than the budget:
 * such a virtual node is larger than caches are. */
HD_MUST_USE enum hd_err hd_worker_profile_reuse(struct hd_worker *worker, const struct hd_profile_how *how,
	struct hd_reuse *reuse, struct hd_diag *diag);

/* Measured steps of the whole job on this device, beside the profile: rule 4 fills the two rates in. */
struct hd_profile_step { double step_ns, least_ns, update_ns; };      /* medians, but for the least */
HD_MUST_USE enum hd_err hd_worker_profile_step(struct hd_worker *worker, struct hd_profile *profile,
	struct hd_profile_step *step,
	struct hd_diag *diag);

/* Two threads of this process hand tensors of 1 KiB to 16 MiB to and fro; latency and rate of the line
 * through the medians. Lies in the arena. */
HD_MUST_USE enum hd_err hd_profile_memory_link(struct hd_clock *clock, struct hd_arena *arena,
	struct hd_profile_link **link, struct hd_diag *diag);

/* Of n times that others lengthen once in a while, as waits are where other programs are at the cores: what
 * three of four exceed. Sorts them. */
int64_t hd_profile_undisturbed(int64_t *ns, uint64_t n);

/* How long after a wake a thread goes on that waited for it at a condition (sys/lock.h), as a rank waits for
 * a tensor: its core had nothing to do meanwhile, the waker's was busy. Undisturbed, of
 * HD_PROFILE_WAKES. */
enum { HD_PROFILE_WAKES = 31 };
HD_MUST_USE enum hd_err hd_profile_wake(struct hd_clock *clock, double *wake_ns, struct hd_diag *diag);

/* What a byte takes that one thread writes to a file without a name in `folder`, or reads from it, as OFF and
 * ON do (offload.h): the median of some rounds of 16 MiB, whose pages are there and in no cache. */
HD_MUST_USE enum hd_err hd_profile_file_link(struct hd_clock *clock, const char *folder, double *ns_per_byte,
	struct hd_diag *diag);

#endif
