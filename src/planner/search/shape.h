/* shape.h -- the shapes that the planner goes through, and what each is estimated to take.
 *
 * Private to the planner. A candidate is a shape with its stages, the shares of its pipelines and an
 * estimate:
 *
 *	slowest stage for all its virtual nodes + sums of gradients + idle share * (fill - slowest stage)
 *
 * The idle share is the schedule's closed form: the idle part of the time that the first virtual node takes
 * through the other ranks (1 for 1f1b, 1/v interleaved, ...). */
#ifndef HD_PLANNER_SEARCH_SHAPE_H
#define HD_PLANNER_SEARCH_SHAPE_H

#include "planner/planner.h"
#include "planner/steady.h"

/* What a schedule is to the planner; the rest is a row of generate.h. */
struct hd_auto_row {
	const char *schedule;
	enum hd_update_mode update;
	uint32_t vmin, vmax;
	bool v_placed, alone;                     /* stages placed like a V; alone: for p = 1 */
	/* every backward whole, that of a rank's first stage last */
	bool whole_back;
	/* full ranks' activations, rounded up */
	uint32_t (*inflight)(uint32_t p, uint32_t m, uint32_t v, uint32_t rank);
	double (*idle)(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *all);
	uint32_t (*least_m)(uint32_t p);          /* rule K29 */
	const char *needs;                        /* the same in words */
};
extern const struct hd_auto_row hd_auto_rows[];      /* ends with schedule NULL; the order of enumeration */

/* What is asked for is kept; 0 asks for nothing. */
static inline bool hd_auto_wanted(uint32_t asked, uint32_t value) { return !asked || asked == value; }
/* The row suits the update, the depth, the chunks and the name that are asked for. */
bool hd_auto_row_may(const struct hd_auto_row *row, const struct hd_auto_ask *ask, uint32_t p, uint32_t v);

/* How a shape was offered, where the ask leaves recomputation open. */
/* kept: no stage computes again; again: all do */
enum hd_auto_variant { HD_AUTO_AS_NEEDED, HD_AUTO_KEPT, HD_AUTO_AGAIN };

struct hd_auto_cand {
	struct hd_auto_shape shape;
	const struct hd_auto_row *row;            /* NULL: 1f1b-rr */
	uint32_t order, base;                     /* base: the device that device 0 of the shape is */
	/* one device, or data parallel on all: kept whatever it takes */
	bool reference;
	enum hd_auto_variant variant;
	/* of 1f1b-rr: devices that PipeDream's recurrence was asked for; 0: stages by steady.h */
	uint32_t paper;
	bool polished;                            /* its boundaries were moved */
	/* all stages compute again, since it did not fit otherwise */
	bool again;
	/* [p], of 1f1b-rr [1]: bytes of each rank that stages must leave; NULL: none */
	int64_t *spare;
	uint32_t *share;                          /* [d] */
	struct hd_steady stages;
	double estimate_ps;
};

/* Device of rank r of pipeline q, the first of its t. */
static inline uint32_t hd_auto_device(const struct hd_auto_cand *c, uint32_t q, uint32_t r)
{
	return c->base + (c->shape.place == HD_AUTO_DEEP ? q * c->shape.p + r : r * c->shape.d + q) *
		c->shape.t;
}
static inline uint32_t hd_auto_rank_of(const struct hd_auto_row *row, uint32_t p, uint32_t stage)
{
	return row->v_placed && stage >= p ? 2 * p - 1 - stage : stage % p;
}

struct hd_auto_space {                            /* of one call */
	const struct hd_cluster *cluster;
	const struct hd_auto_ask *ask;
	const struct hd_cut_sums *sums;
	struct hd_steady_table whole, sharded;    /* for t = 1; for the t at hand */
	uint32_t t;                               /* of `sharded` */
	/* [nodes of the profile] it lies between split products; made for the first t > 1 */
	bool *between;
	struct hd_arena *work, *scratch;
	struct hd_diag *diag;
	struct hd_auto_memo { uint64_t hash; uint32_t t; enum hd_err err; struct hd_steady stages; } *memo;
		uint32_t nmemo;
};

enum { HD_AUTO_MEMO = 64 };

/* The table for tensor groups of t: work, weights and activations divided (of what lies between split
 * products only where the ask says `sequence`), sums of the outputs of nodes with weights added.
 * HD_E_NOTFOUND: those sums alone take longer than is counted. */
HD_MUST_USE enum hd_err hd_auto_shard(struct hd_auto_space *space, uint32_t t);
/* Shares, stages, estimate. HD_E_NOTFOUND: the shape does not work (too few virtual nodes or cuts,
 * memory); `unfit` says that it is memory. */
HD_MUST_USE enum hd_err hd_auto_estimate(struct hd_auto_space *space, struct hd_auto_cand *cand, bool *unfit);
/* The slowest device of rank r of pipeline q. */
double hd_auto_speed_at(const struct hd_auto_space *space, const struct hd_auto_cand *cand, uint32_t q,
	uint32_t r);
/* The same shape cut again for ranks that, as `judged` says, need more than they have: they leave what was
 * too much, or all stages compute again. HD_E_NOTFOUND: there is no other way to cut it. */
HD_MUST_USE enum hd_err hd_auto_tighten(struct hd_auto_space *space, struct hd_auto_cand *cand,
	const struct hd_auto_plan *judged);
/* Stages with copies in different numbers over the first n devices, by steady.h: as hd_auto_estimate(). */
HD_MUST_USE enum hd_err hd_auto_replicate(struct hd_auto_space *space, struct hd_auto_cand *cand);
/* The least bytes for the shape, as hd_auto_estimate() would cut it; INT64_MAX: too few virtual nodes or
 * cuts. */
HD_MUST_USE enum hd_err hd_auto_least(struct hd_auto_space *space, struct hd_auto_cand *cand, int64_t *bytes);
/* A range as a group of t runs it. */
struct hd_stage_cost hd_auto_shard_cost(const struct hd_auto_space *space, struct hd_stage_cost cost,
	uint32_t first, uint32_t last, uint32_t t);

#endif
