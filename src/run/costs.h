/* costs.h -- what a job costs on this machine, measured before a run plans by it.
 *
 * The profile of the job's ops (engine/profile.h) in the order in which a run may cut the graph
 * (cost/profile_line.h), and what a plan costs besides them.
 *
 * 1. Measured on one device of the run's kind, with its threads, by a worker that ends before the run's
 *    begins. Devices that wait are measured as cores, and wait `pace` times as long as these; what they do
 *    not do (add, update) costs nothing. How late sleepers wake on this machine is measured for them.
 * 2. It takes at most HD_COSTS_BUDGET_NS of passes over one virtual node and, where plans of the whole model
 *    are open (parallel.mode: auto), as much of passes over a wave of them, whatever the model; of a large
 *    one a few passes are all there is. Then, of devices that compute, at most HD_COSTS_REUSE_NS for
 *    what it costs to come back to activations after others (cost/reuse.h). All of it ends earlier where
 *    samples agree (engine/profile.h).
 * 3. Times are medians of single ops, of devices of one thread in processor time: on a machine that others
 *    use too, what an op takes undisturbed. Predictions are then early, and what is compared is comparable.
 * 4. No bit of a result depends on it: it decides where and when, never what.
 *
 * Ownership: everything lies in the arena; the struct itself too, since its parts point to one another.
 * Threads: one. */
#ifndef HD_RUN_COSTS_H
#define HD_RUN_COSTS_H

#include "cost/profile_line.h"
#include "cost/reuse.h"
#include "cost/stage_costs.h"
#include "engine/worker.h"

#define HD_COSTS_BUDGET_NS INT64_C(400000000)
#define HD_COSTS_REUSE_NS INT64_C(1500000000)
enum { HD_COSTS_PASSES = 30, HD_COSTS_FOLDS = 3, HD_COSTS_SLEEPS = 31 };
#define HD_COSTS_SLEEP_NS INT64_C(2000000)

struct hd_run_costs {
	struct hd_profile_line line;
	struct hd_cuts cuts;              /* of the line: cut k ends with node k */
	struct hd_cut_sums sums;
	/* what a virtual node takes in the waves of a whole model, over the sum of its nodes one by one */
	double whole;
	/* of all parameters, on one device: by the bytes that it moves, at the rate of an addition whose
	 * vectors are in no cache */
	double update_ns;
	double norm_ns;                   /* of the squares of all parameters' gradients, on one device */
	double copy_ns_per_byte;          /* of a tensor into the buffer of a neighbour */
	/* of vectors between processes, to each of the two: a checksum, and a copy of what is in no cache */
	double link_ns_per_byte;
	/* of the link between workers, each way at once, as the profile says it; 0: they are on one machine
	 * */
	double port_bytes_per_s, port_latency_ns;
	/* of activations to a file or back; 0: not measured, the job moves none (parallel.offload) */
	double host_ns_per_byte;
	struct hd_reuse reuse;            /* of stages that keep more virtual nodes alive than one */
	double hop_ns;                    /* until a thread goes on that is woken */
	/* of devices that wait: how late a thread goes on that has slept; 0 of those that compute */
	double late_ns;
	double pace;                      /* so many times what a core takes; 0: kept by an earlier program */
	double took_s;                    /* to measure */
	int64_t *node_ns;                 /* [nodes of the training graph] for devices that wait so long */
	const struct hd_graph *graph;     /* the training graph; borrowed */
	uint64_t rows;                    /* of a virtual node */
};

/* pace 0: devices that compute. HD_E_REFUSED, HD_E_INVAL: a job that cannot be profiled (engine/profile.h).
 * */
HD_MUST_USE enum hd_err hd_run_costs_measure(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_worker_spec *spec, double pace, struct hd_arena *arena, struct hd_diag *diag);
/* Of the profile in such costs, as it was kept (kept_costs.h). HD_E_INVAL: it is of another graph, or of
 * other virtual nodes. */
HD_MUST_USE enum hd_err hd_run_costs_again(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_profile *profile, double whole, struct hd_arena *arena, struct hd_diag *diag);
/* Of devices that wait `pace` times what the profile says, which is stretched by it: how late sleepers wake
 * is measured, and nothing else. */
HD_MUST_USE enum hd_err hd_run_costs_waiting(struct hd_run_costs **costs, const struct hd_task *task,
	struct hd_profile *profile, double pace, struct hd_arena *arena, struct hd_diag *diag);
/* Of a profile that is there already, for tests: no waves, no updates, nothing besides the nodes. */
HD_MUST_USE enum hd_err hd_run_costs_of(struct hd_run_costs **costs, const struct hd_profile *profile,
	const uint32_t *home, const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag);

/* The first cut of each stage that begins with a node of the graph: HD_E_NOTFOUND where a stage begins within
 * a node of the profile. */
HD_MUST_USE enum hd_err hd_run_costs_cuts(const struct hd_run_costs *costs, const uint32_t *first,
	uint32_t nstages, uint32_t *cut);

#endif
