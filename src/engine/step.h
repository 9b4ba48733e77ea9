/* step.h -- what is open now in a step: passes, sums, what virtual nodes say, scalars. Private to the room.
 *
 * 1. hd_step_begin() opens it, hd_step_end() or an abandoned step closes it; what the last one left may be
 *    read until the next begins. Nothing here is state: a new worker needs none of it (state_test.c).
 * 2. `torn` and `again` outlive the step: an update that failed half-way refuses every further step until
 *    the state was overwritten; a step that failed before sends the reader back.
 * 3. A rank writes the leaves of its virtual nodes; rank 0 the record and the scalars; all else is the
 *    caller's.
 *
 * Ownership: tables lie in the worker's arena, repairs in `repair_arena`. Threads: `nrepairs` and `torn` may
 * be read by any; passes as work.h says. */
#ifndef HD_ENGINE_STEP_H
#define HD_ENGINE_STEP_H

#include "protocol/seal.h"
#include "engine/moments.h"
#include "engine/dist.h"
#include "engine/work.h"

/* in a row: then the job has diverged, whatever on_nonfinite says */
enum { HD_MAX_SKIPS = 25 };

/* What one virtual node contributes besides its gradient. */
struct hd_leaf { double loss, weight, correct; };

/* The roots of all workers, as hd_dist_operands() was given. */
struct hd_operands {
	struct hd_tnode *root; uint32_t n, cap;
	struct hd_join *join; uint32_t njoins, result;
	struct hd_flat_join *flat_join;   /* [ndevices][cap] of the bucket at hand */
	float **item;                     /* [ndevices][2 cap] */
};

/* What of a list runs in one go: one worker alone needs no exchange between RED and NORM. */
enum hd_section { HD_SECTION_ALL, HD_SECTION_COMPUTE, HD_SECTION_FINISH };

struct hd_open_step {
	bool begun;
	struct hd_work *work;             /* being computed: the part's, or the last of repair[] */
	struct hd_arena repair_arena;
	struct hd_work repair[HD_DIST_PASSES - 1];
	atomic_uint nrepairs;             /* begun; others read it while the next one is made */
	/* NULL: nothing is said before a pass is computed */
	hd_dist_watcher *watch; void *watch_user;
	bool early;                       /* the pass at hand is watched, and its roots need no joins */
	struct hd_operands operands;
	uint8_t *summed; uint32_t nsummed;        /* [nbuckets] */
	/* while ranks work on them */
	const struct hd_dist_fold *fold; const uint32_t *arrived; uint32_t nfolds;
	struct hd_step_scalars scalars;   /* of the step finished last */
	uint64_t scalars_step, scalars_updates;

	struct hd_leaf *leaf;             /* [nvns] */
	uint8_t *known; uint32_t nknown;  /* [nvns] which of them belong to the step */
	struct hd_moments moments;

	enum hd_section section;          /* of the lists, to run */
	atomic_bool torn;                 /* an update failed: the state is of no step */
	/* the last step failed before its update: the reader must go back */
	bool again;
	uint64_t rows;
	bool want_digest;
	struct hd_step_record record;     /* written by rank 0 */
	struct hd_seals seals;
};

#endif
