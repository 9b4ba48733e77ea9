/* part_int.h -- a worker's part of a plan of several workers, and the memory of what they send.
 *
 * `part` is in use, `next` was prepared and not adopted; both are among of[]. Ownership: arrays lie in the
 * arena of each part, receive buffers are of the first device. */
#ifndef HD_ENGINE_PART_INT_H
#define HD_ENGINE_PART_INT_H

#include "engine/work.h"

/* What a link of the hub takes once it is used: tables of what it sends and of what it is sent, and to a
 * worker of this machine a ring each way. */
#define HD_LINK_BYTES (UINT64_C(192) << 10)
#define HD_LINK_RINGS_BYTES (UINT64_C(2) << 20)

/* What a worker needs to take part under a view: made by hd_dist_prepare(), immutable after. */
struct hd_worker_part {
	struct hd_arena arena;
	const struct hd_plan *plan;       /* borrowed; NULL: none */
	struct hd_work work;              /* number 0 */
	uint32_t *owner;                  /* [nchunks] the device that joins, updates and hashes it */
	/* flat: where sums come to lie. The root itself when the pass is whole */
	float *sum;
	/* flat: where new parameters come to lie, of sharded state; a root's buffer */
	float *parm;
	bool alone;                       /* no rank of another worker */
	bool needs_parm;                  /* there is no root for them */
	bool needs_sum;                   /* no gradient buffer is free for sums */
	uint64_t nplaces, received_bytes, idle_received_bytes, nlinks;
	/* of the flat vector: buckets whose state it holds, and their pages in a vector of sums */
	uint64_t held_elems, sum_bytes;
	bool rests;                       /* as in the view */
	uint64_t table_bytes;             /* scripts; graphs and programs of stages */
	uint64_t idle_slot_elems;         /* of one vector, of buckets whose slots others hold */
};

struct hd_worker_parts {
	struct hd_worker_part of[2];
	struct hd_worker_part *part, *next;     /* NULL: none */
	bool sharded;                     /* the job's state */
	/* [nbuckets] slots that are updated here; that take memory. Of state by stages: parameters and slots
	 * */
	uint8_t *own, *slot_here;
	uint8_t *spilled;                 /* [nbuckets] these lie in the store's file */
	/* buffers for roots of other workers, and what each holds: the largest bucket */
	float *receive; uint64_t nreceive, place_bytes;
	/* by the parts at hand */
	uint64_t need_places, need_received_bytes, need_used_received_bytes, need_links, need_held,
		need_sum_bytes, need_idle_slot_elems, need_table_bytes;
	bool need_sum, need_moments, need_rests;
};

#endif
