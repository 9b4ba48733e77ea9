/* digest_int.h -- digests of the state by segment and by tensor, made where the memory is warm, and the
 * digest report of the last step that made one. */
#ifndef HD_ENGINE_DIGEST_INT_H
#define HD_ENGINE_DIGEST_INT_H

#include "base/hash.h"
#include "engine/store.h"

struct hd_digests {
	struct hd_hash *segment[HD_VECS]; /* [nsegments] of all but buffers; NULL: the store has no such */
	struct hd_hash *tensor, *frozen;  /* [entries of the table], [nparams] */
	uint64_t *bucket;                 /* [nbuckets] of sums */
	const uint8_t *held;              /* which buckets, meanwhile */
	uint64_t *held_said, held_at;     /* [nbuckets] what it made last, of X_held_at; 0: nothing */
	struct hd_hash reported;          /* by the step before reported_at; 0: by none */
	uint64_t reported_at;
};

#endif
