/* stage.h -- one pipeline stage of the model, as the devices of a worker run it: its program, the range of
 * the parameters that it reads and updates, and the memory of its gradients. Private to engine.
 *
 * hd_worker_create() makes one that is the whole model; plans of several stages run through pipe.h. Nothing
 * here assumes that there is only one.
 *
 * 1. The stage trains elements [at, at + len) of the store's parameters and slots: whole chunks. Buckets
 *    [first_bucket, first_bucket + nbuckets) partition them. Frozen parameters are in no range.
 * 2. A gradient lies at the offset of its parameter; a tied parameter has further parts of its gradient
 *    behind all parameters (layout.h). The pool of each device holds `cap` flat gradient vectors of
 *    flat_bytes. Pools only grow, and only while a plan is adopted or the loss of a worker is repaired.
 * 3. Parameters and optimizer slots are not here: the store owns them (store.h).
 *
 * Ownership: tables lie in the worker's arena; flat memory is taken from devices, and hd_stage_give() gives
 * it back. Threads: constant during a step, but for the sums of squares, which the owner of a segment
 * writes. */
#ifndef HD_ENGINE_STAGE_H
#define HD_ENGINE_STAGE_H

#include "graph/layout.h"
#include "graph/model.h"
#include "device/idle.h"
#include "engine/lockstep.h"
#include "engine/pace.h"
#include "engine/store.h"

enum { HD_ZEROS_ELEMS = HD_CHUNK_ELEMS };

/* Outputs of a program that the worker reads; HD_NONE where the graph has none. */
struct hd_readout { uint32_t loss, weight, correct, term[HD_MODEL_TERMS], logits; };
/* Of the fields of a leaf (step.h). */
static inline uint32_t hd_readout_field(const struct hd_readout *out, uint32_t field)
{
	const uint32_t first[] = { out->loss, out->weight, out->correct };

	return field < 3 ? first[field] : out->term[field - 3];
}
struct hd_readout hd_stage_readouts(const struct hd_graph *graph);

/* The gradient memory of one device. */
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
	struct hd_segment *piece_segment; /* of each piece (layout.h), counted from the piece's beginning */
	uint32_t *first_piece_segment;    /* [npieces + 1] where those of a piece begin */
	uint32_t *bucket_grads;           /* [nbuckets] gradients of which it or its pieces have a part */

	struct hd_program train, infer;
	struct hd_readout train_out, infer_out;
	struct hd_waits pace;             /* of train */
	struct hd_lockstep lockstep;
	uint32_t *input_field, *infer_field;      /* graph input -> field of the data set */
	uint64_t touched_bytes[2][HD_MAX_VARIANTS];       /* of F and of B, for the recorder */
	struct hd_idle idle;              /* of one device, once the programs are loaded */
	uint64_t table_bytes;             /* of the programs themselves, without their tensors */

	uint64_t flat_bytes;              /* of one flat vector of gradients, parts included */
	uint64_t sum_bytes;               /* of one of sums, which has no parts */
	struct hd_grad_pool *pool;        /* [devices] */
	uint32_t npools;
	float *zeros;                     /* HD_ZEROS_ELEMS of +0.0: the leaf of an empty virtual node */
	/* a flat vector of its own for sums, when every gradient buffer holds a root; NULL: none so far */
	float *sum;
	double *segment_sumsq;            /* [nsegments] of the gradient */
	/* [nsegments] of parameters and of updates, for optimizers with norms per tensor (optim.h) */
	double *unit_sumsq[2];
};

/* Makes stage `number` of chunks [first_chunk, first_chunk + nchunks): its range and buckets, one empty pool
 * per device. Takes no device memory. HD_E_INVAL: no such chunks, or the first lies inside of a bucket. */
HD_MUST_USE enum hd_err hd_stage_make(struct hd_engine_stage *stage, uint32_t number,
	const struct hd_layout *layout, uint32_t first_chunk, uint32_t nchunks, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag);
/* Takes the zeros (on device `first`) and the tables of the sums of squares. */
HD_MUST_USE enum hd_err hd_stage_take(struct hd_engine_stage *stage, const struct hd_layout *layout,
	struct hd_device *first, struct hd_arena *arena, struct hd_diag *diag);
/* Takes the flat vector `sum` on device `first`, unless it is there. */
HD_MUST_USE enum hd_err hd_stage_take_sum(struct hd_engine_stage *stage, struct hd_device *first,
	struct hd_diag *diag);
/* Grow a device's pool to at least n gradient buffers, or to so many bytes of temporary memory. A failure
 * keeps what is there. */
HD_MUST_USE enum hd_err hd_pool_grow(struct hd_grad_pool *pool, uint64_t flat_bytes, uint32_t n,
	struct hd_device *device, struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pool_grow_temp(struct hd_grad_pool *pool, uint64_t bytes, struct hd_device *device,
	struct hd_diag *diag);
void hd_pool_give(struct hd_grad_pool *pool, uint64_t flat_bytes, struct hd_device *device);
/* Gives back what hd_stage_take() and hd_stage_take_sum() took. */
void hd_stage_give(struct hd_engine_stage *stage, struct hd_device *first);

/* Does the stage train all of elements [at, at + len)? */
bool hd_stage_learns(const struct hd_engine_stage *stage, uint64_t at, uint64_t len);

#endif
