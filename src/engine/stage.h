/* stage.h -- one stage of one chunk of the model, as the devices of a worker run it: its program, the range
 * of the parameters it reads and updates, and the memory of its gradients. Private to the room.
 *
 * Today a worker has one stage, which is the whole model (hd_worker_create() makes it); nothing here
 * assumes that it is.
 *
 * 1. Elements [at, at + len) of the store's parameters and slots are those that the stage learns: whole
 *    chunks. Buckets [first_bucket, first_bucket + nbuckets) tile them. Frozen parameters are in no range.
 * 2. Gradients have the offsets of the parameters. Every pool of a device holds `cap` flat vectors of
 *    flat_bytes; pools only grow, and only while a plan is adopted or a loss is repaired.
 * 3. No parameter and no slot is here: they are the store's (store.h).
 *
 * Ownership: tables lie in the worker's arena, flat memory is taken from devices and given back by
 * hd_stage_give(). Threads: in a step constant, but the sums of squares, which the owner of a segment
 * writes. */
#ifndef HD_ENGINE_STAGE_H
#define HD_ENGINE_STAGE_H

#include "graph/layout.h"
#include "device/program.h"
#include "engine/lockstep.h"
#include "engine/store.h"

enum { HD_ZEROS_ELEMS = HD_CHUNK_ELEMS };

/* Outputs of a program that the worker reads; HD_NONE where the graph has none. */
struct hd_readout { uint32_t loss, weight, correct, logits; };
struct hd_readout hd_stage_readouts(const struct hd_graph *graph);

/* What one device has of the gradients. */
struct hd_grad_pool {
	float  **buffer;                  /* [cap] flat gradients, from the device: the pool of all passes */
	uint32_t cap;
	float   *temp;                    /* temporary buffers of the folds */
	uint64_t temp_bytes;
};

struct hd_engine_stage {
	uint32_t number, chunk;           /* which one */
	uint64_t at, len;                 /* of the store's parameters and slots, in elements */
	uint32_t first_bucket, nbuckets;
	struct hd_segment *bucket_segment;        /* [nsegments] counted from the beginning of their bucket */
	uint32_t *bucket_params;          /* [nbuckets] parameters that lie in it, wholly or in part */

	struct hd_program train, infer;
	struct hd_readout train_out, infer_out;
	struct hd_lockstep lockstep;
	uint32_t *input_field, *infer_field;      /* graph input -> field of the data set */
	uint64_t touched_bytes[2][HD_MAX_VARIANTS];       /* of F and of B, for the recorder */
	uint64_t table_bytes;             /* of the programs, besides what they run on */

	uint64_t flat_bytes;              /* of one flat vector of gradients */
	struct hd_grad_pool *pool;        /* [devices] */
	uint32_t npools;
	float *zeros;                     /* HD_ZEROS_ELEMS of +0.0: the leaf of an empty virtual node */
	/* a flat vector of its own for sums, when every gradient buffer is a root's; NULL: never needed
	 * yet */
	float *sum;
	double *segment_sumsq;            /* [nsegments] of the gradient */
	/* [nsegments] of parameters and of directions: optimizers of unit TENSOR */
	double *unit_sumsq[2];
};

/* Chunks [first, first + n) of a layout as stage `number`: its range and buckets, one pool a device.
 * HD_E_INVAL: not chunks of the layout, or a first one inside of a bucket. Nothing of a device is taken. */
HD_MUST_USE enum hd_err hd_stage_make(struct hd_engine_stage *stage, uint32_t number,
	const struct hd_layout *layout,
	uint32_t first_chunk, uint32_t nchunks, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag);
/* zeros, and the tables of the sums of squares */
HD_MUST_USE enum hd_err hd_stage_take(struct hd_engine_stage *stage, const struct hd_layout *layout,
	struct hd_device *first, struct hd_arena *arena, struct hd_diag *diag);
/* The flat vector of its own, taken when it is asked for first. */
HD_MUST_USE enum hd_err hd_stage_take_sum(struct hd_engine_stage *stage, struct hd_device *first,
	struct hd_diag *diag);
/* At least n gradient buffers, and temporary memory of so many bytes, for one device. A failure keeps what
 * is there. */
HD_MUST_USE enum hd_err hd_pool_grow(struct hd_grad_pool *pool, uint64_t flat_bytes, uint32_t n,
	struct hd_device *device,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pool_grow_temp(struct hd_grad_pool *pool, uint64_t bytes, struct hd_device *device,
	struct hd_diag *diag);
void hd_pool_give(struct hd_grad_pool *pool, uint64_t flat_bytes, struct hd_device *device);
/* what take() and take_sum() took */
void hd_stage_give(struct hd_engine_stage *stage, struct hd_device *first);

/* Does the stage learn these elements? */
bool hd_stage_learns(const struct hd_engine_stage *stage, uint64_t at, uint64_t len);

#endif
