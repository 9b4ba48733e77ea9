/* bucket.h -- in which order a device should compute gradients, and in which buckets to sum them over a
 * network.
 *
 * Hashemi, Jyothi and Campbell, "Caramel: Accelerating decentralized distributed deep learning with
 * computation scheduling" (2020). One compute unit runs the backward ops of a virtual node in some order in
 * which inputs come first; an op may make a gradient. One link sums buckets, one after the other; a bucket
 * may start when all its gradients are made. `heddle plan buckets` prints it.
 *
 * 1. Greedy order: repeatedly takes the gradient with the least remaining time per byte, which is the time of
 *    all ops not yet run that it depends on, its own included; ties by declaration. These ops run in
 *    depth-first post-order, inputs as listed; at the end the other ops as declared.
 * 2. Buckets are runs of gradients in the order in which they are made (ties by declaration). Exact: f(0) =
 *    0, f(j) = least over i < j of max(f(i), ready(j)) + T(bytes from i to j), T(n) = alpha + beta n. Of
 *    equal ones fewer buckets, then the larger i. None has more than `most` bytes: larger gradients are cut
 *    into pieces of that size first.
 * 3. The step takes as long as the later of the last op and the last bucket.
 * 4. Times are integers (ticks), beta n is rounded to one; equal problems have equal answers everywhere.
 *
 * Cost: greedy gradients^2 + gradients (ops + edges) / 64 + one a gradient that needs an op; buckets
 * gradients^2 at most. Everything lies in the arena. Pure. */
#ifndef HD_PLANNER_BUCKET_H
#define HD_PLANNER_BUCKET_H

#include "planner/order.h"

enum { HD_BUCKET_GRADIENTS = 4096, HD_BUCKET_PIECES = 16384 };
#define HD_BUCKET_SIZE_MAX INT64_C(1000000000000)        /* of a gradient: a terabyte */
#define HD_BUCKET_TICKS_MAX 0x1p61                       /* that all gradients take by beta */

struct hd_bucket_problem {
	struct hd_order_graph graph;              /* receives are not read */
	int64_t *bytes;                           /* [nops]; 0: the op makes no gradient */
	int64_t alpha;                            /* ticks */
	double beta;                              /* ticks a byte */
};

/* gradients first .. of `gradient` */
struct hd_bucket { uint32_t first, n; int64_t bytes, ready, start, end; };

struct hd_bucketing {
	/* ops in order of making, and bytes: a cut one comes several times */
	uint32_t *gradient; int64_t *piece; uint32_t ngradients;
	struct hd_bucket *bucket; uint32_t nbuckets;
	int64_t compute_end, end;                 /* of the last op; of all */
};

/* rule 2; one a gradient; one for all */
enum hd_bucket_rule { HD_BUCKETS_EXACT, HD_BUCKETS_EACH, HD_BUCKETS_ONE };

/* {"ops": {name: {"time", "inputs"}}, "gradient_size": {name: bytes}, "alpha": time, "beta": time a byte}, or
 * {"cases": [..]} of such. HD_E_INPUT. Times are in any one unit, sizes in any other, beta in the first
 * over the second: it has no upper end but that all fits (HD_BUCKET_TICKS_MAX). */
HD_MUST_USE enum hd_err hd_bucket_read(struct hd_bucket_problem **problems, uint32_t *n, const char *text,
	size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* The backward pass of a profile: for each node, from the last, the gradient of its input and that of its
 * weights; alpha and beta are those of summing over p devices by owners, over a link. Tied weights are
 * made by the first node that has them. */
HD_MUST_USE enum hd_err hd_bucket_of_profile(struct hd_bucket_problem *problem,
	const struct hd_profile *profile, uint32_t p, double bytes_per_s,
	int64_t latency_ps, struct hd_arena *arena, struct hd_diag *diag);

/* order[nops]: as declared, each behind what it needs; greedy. HD_E_INVAL: more than HD_BUCKET_GRADIENTS,
 * or than HD_ORDER_SET_BYTES hold. */
HD_MUST_USE enum hd_err hd_compute_declared(uint32_t **order, const struct hd_bucket_problem *problem,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_compute_greedy(uint32_t **order, const struct hd_bucket_problem *problem,
	struct hd_arena *arena, struct hd_diag *diag);
/* most 0: no limit. */
HD_MUST_USE enum hd_err hd_buckets_make(struct hd_bucketing *out, const struct hd_bucket_problem *problem,
	const uint32_t *order,
	enum hd_bucket_rule rule, int64_t most, struct hd_arena *arena, struct hd_diag *diag);

#endif
