/* steady.h -- stages that make one step of a pipeline shortest: its fill and its steady state together.
 *
 * The objective of `heddle plan partition --variant heddle` and of the automatic planner (planner.h), where
 * PipeDream's recurrences (partition.h) know the steady state alone. A step of m virtual nodes takes
 *
 *	sum over stages (t + 2 hop)  +  max over stages max( (n - 1) v t + red, (n - 1) v hop )
 *
 * t: forward and backward of the stage on its slowest device, with recomputation if it computes again; hop:
 * its input, or output, over the link to its neighbour, latency included; n: virtual nodes of the busiest of
 * its r copies, ceil(m/r); v: stages a rank runs; red: its copies' gradients summed, 2(r-1)/r of its weights,
 * once a step.
 *
 * 1. Stages lie on sites: devices in a row (copies are neighbours), or, straight, stage s on site s.
 * 2. A stage fits when weights, gradient partials, optimizer state, what is in flight, HD_CREDITS buffers of
 *    its input and of its output's gradient and the largest workspace fit the memory of each of its devices.
 *    It computes again only where it does not fit otherwise. In flight are, of copies, floor((sites behind
 *    it)/r) + 1 virtual nodes, as in 1f1b-rr when all sites are used; straight, what the site says. Never
 *    none.
 * 3. Among all stages that take the least time: the least fill, then the fewest stages, the fewest sites,
 *    then from the last stage back the earliest cut and the fewest copies. Sites at the end may stay idle;
 *    straight stages use each.
 * 4. It is exact: caps on the second term are tried from infinity down, each below what can still be better;
 *    for a cap the least fill is a recurrence over cuts and sites. Arithmetic: doubles from exact integers,
 *    in the order written.
 * 5. Of more cuts than `most`, only so many are considered: of each of as many equal shares of the time the
 *    cut with the least output (ties: the earliest), and the last. On more than HD_STEADY_SITES sites that
 *    are not all alike, the copies of a stage are the fewest that can serve, or the next that end where a
 *    component does.
 * 6. What is found is costed again by other code; a difference is HD_E_BUG.
 *
 * Ownership: everything lies in the arena given. Pure. */
#ifndef HD_PLANNER_STEADY_H
#define HD_PLANNER_STEADY_H

#include "cost/topology.h"
#include "cost/stage_costs.h"

enum { HD_STEADY_CUTS = 256, HD_STEADY_SITES = 32 };

/* Ranges of the cuts that are considered, made once for many questions. */
struct hd_steady_table {
	const struct hd_cut_sums *sums;
	uint32_t n, *cut;                         /* [n] ascending */
	struct hd_stage_cost *range;              /* [n (n + 1) / 2]: by hd_steady_at() */
	bool *may;                                /* ... can be a stage */
};

/* Stages from the cut behind the k-th considered (0: from the first) up to the j-th. */
static inline size_t hd_steady_at(uint32_t k, uint32_t j) { return (size_t)j * (j + 1) / 2 + k; }

/* Of straight stages what depends on the schedule; the rest is in the cluster. */
struct hd_steady_site {
	double speed;
	int64_t memory;                           /* for this stage; 0: no limit */
	double inv_bytes_ps, latency_ps;          /* of the link from the site before */
	double red_inv_bytes_ps, red_latency_ps;  /* of the slowest link between its copies */
	uint32_t inflight;                        /* virtual nodes whose activations it keeps at once */
	/* of weights that it keeps, 0: as the question says; virtual nodes of an update, 0: m. With fewer
	 * than m, those in flight may be of several steps */
	uint32_t versions, every;
};

enum hd_steady_recompute { HD_STEADY_IF_NEEDED, HD_STEADY_NEVER, HD_STEADY_ALWAYS };

struct hd_steady_how {
	uint32_t m;                               /* virtual nodes of a step, 1 or more */
	uint32_t chunks;                          /* v; 0: 1 */
	enum hd_steady_recompute recompute;
	uint32_t versions;                        /* of weights that are kept; 0: 1 */
	/* Either all devices of a cluster, in their order, stages of any number of copies; ... */
	const struct hd_cluster *cluster;
	/* ... or straight: nsites stages, each with as many copies elsewhere. */
	const struct hd_steady_site *site; uint32_t nsites, copies;
};

/* cuts first..last; bytes a device needs */
struct hd_steady_stage { uint32_t first, last, replicas; bool recompute; int64_t bytes; };

struct hd_steady {
	struct hd_steady_stage *stage; uint32_t nstages;
	double fill_ps, steady_ps;
	uint32_t slowest;                         /* the stage that steady_ps is of; ties: the first */
	uint32_t nsites;                          /* used */
};
static inline double hd_steady_ps(const struct hd_steady *s) { return s->fill_ps + s->steady_ps; }

/* Cuts worth considering for so many sites: steps grow with cuts squared times sites. */
static inline uint32_t hd_steady_cuts(uint32_t nsites) { return nsites <= 8 ? HD_STEADY_CUTS :
	nsites <= 1024 ? 128 : 64; }
/* most: cuts considered, 2 or more. */
HD_MUST_USE enum hd_err hd_steady_table_make(struct hd_steady_table *table, const struct hd_cut_sums *sums,
	uint32_t most,
	struct hd_arena *arena, struct hd_diag *diag);
/* HD_E_NOTFOUND, without a diag: no stages fit. Scratch memory is taken from `scratch`, which may be reset
 * afterwards. */
HD_MUST_USE enum hd_err hd_steady_solve(struct hd_steady *out, const struct hd_steady_table *table,
	const struct hd_steady_how *how,
	struct hd_arena *arena, struct hd_arena *scratch, struct hd_diag *diag);
/* The least bytes that the fullest device needs, however slow: of what was asked, with recomputation
 * unless it is never. INT64_MAX: no stages at all. */
HD_MUST_USE enum hd_err hd_steady_least_bytes(int64_t *bytes, const struct hd_steady_table *table,
	const struct hd_steady_how *how,
	struct hd_arena *scratch, struct hd_diag *diag);

/* Sentences: what the time is made of, why each stage is where it is, what else there was. */
void hd_steady_explain(const struct hd_steady *steady, const struct hd_steady_table *table,
	const struct hd_steady_how *how, struct hd_text *text);

/* What a device needs for a stage of which it holds the activations of `held` virtual nodes, with an
 * update after `every`. */
int64_t hd_steady_bytes(const struct hd_stage_cost *cost, uint32_t held, uint32_t versions, uint32_t every,
	bool recompute);

#endif
