/* ptdp_cost.h -- how long a step of a split transformer takes, and what memory it needs: one small physical
 * model.
 *
 * Used by ptdp_plan.h; its rows and its agreement with published runs are what `heddle plan ptdp --published`
 * prints. The time of a virtual node on its slowest stage is a sum of
 *   products   2 M N K operations at `products` of the device's peak: projections, feed-forward, scores and
 *              their sums, on the last stage the logits;
 *   memory     bytes of norms, masks, residuals, GELU and softmax, at `memory` of the memory's bandwidth;
 *   tensor     sums over the t members, two a layer and pass, 2 (t-1)/t of the tensor each, inside the
 *              server;
 *   pipeline   the tensor from and to the neighbours, once a chunk and direction, scattered over t: each
 *              member sends 1/t and the receivers gather it inside the server (not with `sequence`, where
 *              each works on its 1/t);
 * backward counts twice forward; recomputation adds what it repeats (full: the layer's forward with its
 * sums). The step is m + (p - 1)/v of these times, then the gradients' sum over d, then the optimizer's pass
 * over its state.
 *
 * 1. Three constants are free: the shares of peak, memory bandwidth and network that are reached.
 *    hd_ptdp_fit() finds them from published rows by least squares on relative errors, each held to its first
 *    guess as if that were known to 20 % and the model to 3 %. All else is a figure of the device or of the
 *    model.
 * 2. A tensor group lies inside a server, pipelines go from server to server, data is outermost. Each device
 *    has its own network card; a data group with g members in a server uses g of them, up to what the
 *    server's own links carry.
 * 3. Nothing overlaps: the published runs did not hide their sums either. Latency is not modelled, so small
 *    models look faster than they are.
 * 4. Memory is state, activations of the schedule's in-flight virtual nodes (1f1b, interleaved), one layer's
 *    work, and the logits; on the stage that needs most.
 * 5. Times are whole picoseconds, sizes whole bytes, rounded up; HD_PTDP_MOST stands for itself and all
 *    above, so that a split of such a time or size is never better than a counted one. Equal arguments
 *    give equal bytes on every machine. */
#ifndef HD_PLANNER_PTDP_COST_H
#define HD_PLANNER_PTDP_COST_H

#include "planner/ptdp.h"

#define HD_PTDP_MOST (INT64_C(1) << 62)           /* 53 days of picoseconds */

/* A kind of device with its links. `source` says whose figures these are. */
struct hd_ptdp_device {
	const char *name;
	double flop_per_s, memory_bytes_per_s;
	int64_t memory;                           /* bytes */
	uint32_t per_server;
	double server_bytes_per_s, network_bytes_per_s;   /* of one device, one way */
	const char *source;
};
/* ends with name == NULL; the first is the default */
extern const struct hd_ptdp_device hd_ptdp_devices[];

struct hd_ptdp_shares { double products, memory, network; };
extern const struct hd_ptdp_shares hd_ptdp_guess;         /* before any row is known */
extern const struct hd_ptdp_shares hd_ptdp_fitted;        /* what hd_ptdp_fit() says of hd_ptdp_fit_rows */

/* A run whose throughput was published. */
struct hd_ptdp_run {
	const char *name;
	struct hd_ptdp_model model;
	struct hd_ptdp_split split;
	uint32_t ndevices, batch;
	/* as printed: 1e9 parameters, 1e12 operations per second and device */
	double params, tflop_per_s;
};
enum { HD_PTDP_RUNS = 10 };
extern const struct hd_ptdp_run hd_ptdp_runs[HD_PTDP_RUNS];
extern const uint32_t hd_ptdp_fit_rows[3];                /* least, middle and most parameters */

struct hd_ptdp_site {
	const struct hd_ptdp_device *device;
	struct hd_ptdp_shares shares;
	enum hd_ptdp_state state;
	int64_t memory;                           /* limit in bytes; 0: the device's */
	/* norms, dropout and residuals on 1/t of the positions (arXiv 2205.05198) */
	bool sequence;
};

struct hd_ptdp_memory { int64_t state, activations, work, total; };

struct hd_ptdp_cost {
	uint32_t m;                               /* virtual nodes of the fullest pipeline */
	/* of a virtual node on the slowest rank, recomputation in backward */
	int64_t forward_ps, backward_ps;
	int64_t after_ps;                         /* sum over replicas and optimizer */
	int64_t step_ps;                          /* hd_ptdp_slots() of these times, and after_ps */
	/* shares of the step, 1 together */
	double products, memory, tensor, pipeline, bubble, data, update;
	double flop_per_s;                        /* of each device used: hd_ptdp_flop() over the step */
	struct hd_ptdp_memory need;
};

/* Stages are of ceil(l/p) layers at most; batch need not be a multiple. Splits are checked by ptdp_plan.h
 * (assert). */
struct hd_ptdp_cost hd_ptdp_cost(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t batch,
	const struct hd_ptdp_site *site);
struct hd_ptdp_memory hd_ptdp_need(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t m, const struct hd_ptdp_site *site);

/* The shares that fit rows[0..n) of hd_ptdp_runs on `device` best (rule 1); 1 <= n. Deterministic. */
struct hd_ptdp_shares hd_ptdp_fit(const uint32_t *rows, uint32_t n, const struct hd_ptdp_device *device);
/* The model's own operations a second (72 ..., nothing that is repeated) over the peak of the devices
 * used: what is published as MFU. */
double hd_ptdp_utilization(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	uint32_t batch, int64_t step_ps,
	const struct hd_ptdp_device *device);
/* Predicted over published throughput of a row, less 1. */
double hd_ptdp_error(const struct hd_ptdp_run *run, const struct hd_ptdp_shares *shares,
	const struct hd_ptdp_device *device);

#endif
