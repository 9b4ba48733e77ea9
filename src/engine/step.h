/* step.h -- the working values of one training step of a worker: passes, sums, metrics, scalars. Private to
 * the room.
 *
 * 1. hd_step_begin() opens a step; hd_step_end(), or abandoning the step, closes it. What a step left may be
 *    read until the next one begins. None of this is training state: a new worker needs nothing of it
 *    (state_test.c).
 * 2. Two flags outlive the step. `torn`: an update failed half-way; every further step is refused until the
 *    state has been overwritten. `again`: the step failed before its update; the next one reads the same
 *    samples again.
 * 3. A rank writes the leaves of its virtual nodes; rank 0 writes the record and the scalars; the worker's
 *    caller writes all else.
 *
 * Ownership: tables lie in the worker's arena, repairs in `repair_arena`. Threads: `nrepairs` and `torn` may
 * be read by any; passes as work.h says. */
#ifndef HD_ENGINE_STEP_H
#define HD_ENGINE_STEP_H

#include "graph/model.h"
#include "protocol/seal.h"
#include "engine/moments.h"
#include "engine/dist.h"
#include "engine/work.h"

/* After so many skipped steps in a row the job has diverged, whatever on_nonfinite says. */
enum { HD_MAX_SKIPS = 25 };

/* What one virtual node contributes besides its gradient; `term`: sums of the losses that are added, of which
 * a job may have none. The fields are an array of f64. */
struct hd_leaf { double loss, weight, correct, term[HD_MODEL_TERMS]; };
enum { HD_LEAF_FIELDS = 3 + HD_MODEL_TERMS };

/* The roots of one stage among those that hd_dist_operands() was given, and the joins that make their sum. */
struct hd_stage_operands {
	uint32_t *index, n;               /* which of those given; join items 0..n-1 */
	struct hd_join *join; uint32_t njoins, result;
};

/* The roots of all workers, as hd_dist_operands() was given. */
struct hd_operands {
	struct hd_tnode *root, *mine; uint16_t *stage; uint32_t n, cap;   /* mine: scratch */
	struct hd_stage_operands *of; uint32_t nstages;   /* [nstages] */
	struct hd_flat_join *flat_join;   /* [ndevices + 1][cap] of the run at hand; the last:
		in the background */
	float **item;                     /* [ndevices + 1][2 cap] */
};

/* Which part of an instruction list runs in one call. A worker that is alone runs all of it; between several
 * workers the exchange comes between COMPUTE (up to RED) and FINISH (from NORM on). */
enum hd_section { HD_SECTION_ALL, HD_SECTION_COMPUTE, HD_SECTION_FINISH };

struct hd_open_step {
	bool begun;
	struct hd_work *work;             /* the pass being computed: pass 0, or the last of repair[] */
	struct hd_arena repair_arena;
	struct hd_work repair[HD_DIST_PASSES - 1];
	atomic_uint nrepairs;             /* begun; others read it while the next one is made */
	/* called for each bucket of the running pass that is final; NULL: buckets are sent after the pass */
	hd_dist_watcher *watch; void *watch_user;
	hd_dist_early_watcher *watch_early; void *watch_early_user;
	bool early;                       /* the running pass is watched, and its roots need no joins */
	struct hd_operands operands;
	uint8_t *summed; uint32_t nsummed;        /* [nbuckets] */
	/* borrowed, while ranks fold them */
	const struct hd_dist_fold *fold; const uint32_t *arrived; uint32_t nfolds;
	struct hd_step_scalars scalars;   /* of the last finished step */
	uint64_t scalars_step, scalars_updates;

	struct hd_leaf *leaf;             /* [nvns] */
	/* [nstages][nvns] of the plan's stages: 1: what that stage says of the leaf is of this step; how
	 * many are */
	uint8_t *known; uint32_t nknown;
	uint8_t *known_whole;             /* that of one stage */
	struct hd_moments moments;

	enum hd_section section;          /* what ranks run of their lists */
	atomic_bool torn;                 /* rule 2 */
	bool goes_on;                     /* the step to be begun also begins the one after it (overlap.h) */
	bool again;                       /* rule 2; or what is begun of the next is dropped (eager.h) */
	uint64_t rows;
	bool want_digest;
	struct hd_step_record record;     /* written by rank 0 */
	struct hd_seals seals;
};

#endif
