/* diff.h -- what moves between two plans, or two schedules.
 *
 * Input for replacing one plan by another (`heddle plan diff`): what has to travel before the next step.
 *
 * 1. Where virtual node v of stage s runs is a layout: of a plan by its map, of a schedule by the rank of its
 *    forward. A stage whose holders differ moves; of stages that keep their holders, virtual nodes may move.
 * 2. A rank that comes to hold a stage needs its weights and optimizer state: bytes, where costs of stages
 *    are given.
 * 3. Lists are compared rank by rank and section by section: between what they have in common at the ends,
 *    the longest common part stays, the rest is removed or added. Middles of more than HD_DIFF_CELLS pairs
 *    are replaced as a whole.
 * 4. Other numbers of stages or virtual nodes and another `update` are differences; what both have is
 *    compared.
 * 5. Order: by stage, virtual node, chunk, rank, section. Runs of what moves between the same ranks are one
 *    row.
 *
 * Pure; rows lie in the arena. */
#ifndef HD_PIPELINE_DIFF_H
#define HD_PIPELINE_DIFF_H

#include "cost/stage_costs.h"
#include "pipeline/schedule.h"

enum { HD_DIFF_CELLS = 1 << 22 };

struct hd_plan_layout {
	uint32_t nranks, nvns, nstages, nchunks;
	enum hd_update_mode update;
	uint32_t *rank;                           /* [stages * vns], or HD_NO_RANK */
	const uint32_t *owner;                    /* [chunks] */
	const uint16_t *worker;                   /* [ranks], or NULL */
	/* prologue, list or period, epilogue; NULL where there is none */
	const struct hd_ilist *list[3];
};

HD_MUST_USE enum hd_err hd_layout_of_plan(struct hd_plan_layout *out, const struct hd_plan *plan,
	struct hd_arena *arena, struct hd_diag *diag);
/* HD_E_BADPLAN: it names what it does not have. */
HD_MUST_USE enum hd_err hd_layout_of_schedule(struct hd_plan_layout *out, const struct hd_schedule *schedule,
	struct hd_arena *arena, struct hd_diag *diag);

struct hd_vn_move { uint32_t stage, first, n, from, to; };
/* bytes: that new holders need */
struct hd_stage_move { uint32_t stage, *from, nfrom, *to, nto; int64_t bytes; };
struct hd_chunk_move { uint32_t first, n, from, to; };
struct hd_rank_move { uint32_t rank; uint16_t from, to; };                        /* to another worker */
/* `removed` instructions of A and `added` ones of B from place `at` on; the first of each, if any. */
struct hd_list_change { uint32_t rank, section, at, removed, added; struct hd_ins first_removed, first_added;
	};

struct hd_plan_diff {
	const struct hd_plan_layout *a, *b;
	struct hd_vn_move *vn; uint32_t nvns;
	struct hd_stage_move *stage; uint32_t nstages;
	struct hd_chunk_move *chunk; uint32_t nchunks;
	struct hd_rank_move *rank; uint32_t nranks;
	struct hd_list_change *list; uint32_t nlists;
	uint64_t vns_moved, chunks_moved, removed, added;
	int64_t bytes;                            /* of all stages; -1: no costs */
	bool same;
};

/* costs may be NULL; otherwise of as many stages as B has. */
HD_MUST_USE enum hd_err hd_plan_diff(struct hd_plan_diff *out, const struct hd_plan_layout *a,
	const struct hd_plan_layout *b,
	const struct hd_stage_costs *costs, struct hd_arena *arena, struct hd_diag *diag);

#endif
