/* sim_why.h -- why a simulated step takes as long as it does: the chain of causes that ends last, and what
 * each rank waits for.
 *
 * `heddle plan JOB --explain` prints it. All ranks are in it: pipelines side by side, stages, shadows; a rank
 * may be a tensor group.
 *
 * 1. The *critical path* is a list of parts that follow one another without a gap from 0 to the makespan: a
 *    rank works; a tensor is under way from one rank to another; ranks meet (sums, norms). Each part begins
 *    with the end of the one before, which it waited for. Of causes that end at one time the one that the
 *    simulator saw last counts.
 * 2. `term` splits the path by what is done: work by op, that of shadows apart; transfers; meetings by op.
 *    The terms add up to the makespan.
 * 3. Waits are summed by (rank, why, for what: a rank, or an op of meetings). Those of a rank add up to its
 *    idle times, but for the drain, which waits for nothing.
 *
 * Linear in instructions and waits. Pure; results lie in the arena. */
#ifndef HD_PIPELINE_SIM_WHY_H
#define HD_PIPELINE_SIM_WHY_H

#include "pipeline/sim_plan.h"

enum hd_path_kind { HD_PATH_WORK, HD_PATH_TRANSFER, HD_PATH_MEETING, HD_PATH_HOST };

/* `rank` works, or receives from `from`; of a meeting the rank that came last to it. */
struct hd_path_part {
	enum hd_path_kind kind;
	uint32_t rank, from, meeting;
	uint32_t first, end;              /* WORK: its instructions [first, end); else the one that waits */
	int64_t start, until;
};

/* Terms: of each op its work, that of shadows, the time of its meetings; then transfers and the host. */
enum { HD_TERM_SHADOW = HD_INS_END, HD_TERM_MEETING = 2 * HD_INS_END, HD_TERM_TRANSFER = 3 * HD_INS_END,
	HD_TERM_HOST, HD_TERMS };
/* "F", "F of shadows", "RED", "transfers", "host". Of terms with time. */
const char *hd_term_name(uint32_t term, char room[32]);

/* op: of meetings, else 0, and it waits for `of`; HD_NO_RANK: for the host. */
struct hd_rank_wait { uint32_t rank, of; uint8_t op; enum hd_idle_why why; int64_t ticks; uint32_t n; };

struct hd_sim_reasons {
	struct hd_path_part *part; uint32_t nparts;       /* ascending in time */
	int64_t term[HD_TERMS];
	struct hd_rank_wait *wait; uint32_t nwaits;       /* by rank, then the longest first */
};

/* The simulation was asked for spans. HD_E_NOMEM. HD_E_BUG: rule 1 does not hold. */
HD_MUST_USE enum hd_err hd_sim_reasons(struct hd_sim_reasons *out, const struct hd_sim_plan *sim,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
