/* work.h -- one pass of a step for the devices of a worker: what each runs, and where it puts its results.
 * Private to the room. Made by work.c when a plan is adopted or a loss is repaired; nothing of it is taken in
 * the step loop.
 *
 * 1. A leaf of the pass is run by one rank. What it folds to lies in the rank's buffers of the stage's pool.
 * 2. `left` is written by devices in their last wave (final.c) and read by any thread, `spent` by the rank
 *    and read between steps; all else is constant while the pass is computed.
 *
 * Ownership: arrays lie in the arena of the maker; buffers are the stage's. */
#ifndef HD_ENGINE_WORK_H
#define HD_ENGINE_WORK_H

#include <stdatomic.h>

#include "device/device.h"
#include "data/dataset.h"
#include "plan/folds.h"
#include "plan/plan.h"
#include "engine/times.h"

struct hd_meeting_part;
struct hd_pipe;
struct hd_overlap;

static inline size_t hd_spent_index(uint16_t stage, uint8_t op) { return (size_t)stage * HD_INS_END + op; }

struct hd_loaded { uint64_t rows, first_row; const void *field[HD_MAX_FIELDS]; };

/* What one rank runs of a pass. */
struct hd_rank_work {
	const struct hd_ilist *list;      /* borrowed from the plan, or the list of ends (work.c) */
	struct hd_fold_script script;
	uint32_t *wave;                   /* [script.nvns_here] number of the wave of each */
	float  **buffer;                  /* [script.nbuffers] of the rank's pool */
	float  **fore;                    /* [S][script.nbuffers] of steps ahead (fore.h); NULL: none */
	struct hd_loaded *loaded;         /* [HD_MAX_WAVE], or all virtual nodes of the rank in lockstep */
	uint32_t from;                    /* of the list, where the next run of it begins; 0 as a step does */
	/* in a pipeline: the next instruction of COMPUTE; where a fence has stopped the rank (rest.h) */
	uint32_t at;
	struct hd_spent *spent;           /* [nstages][HD_INS_END], of the rank's thread */
};

/* A pass of a step (dist.h) for the devices: which leaves each runs, and what becomes of them. */
struct hd_work {
	struct hd_rank_work *rank;        /* [ndevices] */
	uint8_t *has;                     /* [nvns] is it a leaf of this pass? */
	const uint8_t *reads;             /* [nvns] does it look at its rows? */
	uint32_t nleaves;
	/* of the worker: those of its ranks, joined as far as both operands are here */
	uint32_t nroots;
	struct hd_left *root;             /* [nroots] names; items are flat vectors below */
	/* roots of the ranks, then joins, in place of their left operands */
	float  **item;
	struct hd_flat_join *join; uint32_t njoins;       /* the same, as addresses */
	/* [further parts][njoins + 1] the same of each; then its addition to the sum of a whole pass */
	struct hd_flat_join *part_join;
	/* [nbuckets] gradients still to be folded into it before its roots are final (final.c); 0: they
	 * are */
	atomic_uint *left;
	struct hd_pipe *pipe;             /* the plan has several stages (pipe.h); NULL: one */
	struct hd_overlap *overlap;       /* its steps overlap (overlap.h); NULL: they do not */
	struct hd_meeting_part *meeting;  /* peers at norms over the global batch; NULL: none */
	/* RED makes the sum: its one root is value(H,0), and no other worker takes part */
	bool whole;
	bool computed;
};

#endif
