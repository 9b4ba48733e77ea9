/* layout.h -- where parameters and gradients lie in flat memory, and the units
 * in which they are summed, moved, updated and hashed.
 *
 * The flat vector is the parameters in graph order, each starting at a multiple
 * of 16 elements (pads are +0.0). A *segment* is up to 65536 consecutive elements
 * of one tensor, counted from the tensor's start: the unit of norms and digests.
 * A *chunk* is a run of consecutive whole segments, closed when the next would
 * make it exceed 65536 elements: the unit of exchange and of ownership. One more
 * chunk, the last, stands for the sums in f64 (loss, weight, metrics).
 *
 * Frozen parameters come after all others, without segments: what is not learned is
 * neither summed nor moved nor updated. Gradients and slots end where they begin.
 *
 * A *bucket* is a run of consecutive chunks: what workers exchange in one message. It is HD_BUCKET_CHUNKS
 * chunks, the last one what is left, so at most 1 MiB; or as the layout was cut (hd_layout_cut()): then a
 * chunk is closed where a bucket ends, too.
 *
 * A gradient vector is longer: behind the parameters lie the further *parts* of the gradients of tied
 * parameters (ir.h), each as long as its parameter. What of a part belongs to the elements of one bucket is a
 * *piece*. Pieces are numbered bucket by bucket, in a bucket by part, after the buckets: bucket b is run b,
 * piece i is run nbuckets + i. Partial sums are exchanged run by run, and whoever adds those of a bucket adds
 * those of its pieces, then these to the bucket, in their order. So sums, norms, updates and digests know
 * buckets alone.
 *
 * Buffers (running statistics) lie in a flat vector of their own, in graph order,
 * with the same alignment and without segments: they are small.
 *
 * 1. A function of the graph's parameters, parts and buffers alone: never of devices or workers. Where it is
 *    cut says a value that all workers of a run have (plan/comm.h), and no bit of a result depends on it:
 *    sums are per element, norms and digests per segment.
 * 2. Parameters, gradients and every optimizer slot share the same offsets, up to `elems`. Element i of a
 *    parameter is element i of each of its parts.
 * 3. Segments tile the tensors, chunks tile the segments, in order.
 *
 * Ownership: arrays lie in the arena given. Pure. */
#ifndef HD_GRAPH_LAYOUT_H
#define HD_GRAPH_LAYOUT_H

#include "graph/ir.h"

enum { HD_SEGMENT_ELEMS = 65536, HD_CHUNK_ELEMS = 65536, HD_FLAT_ALIGN_ELEMS = 16, HD_BUCKET_CHUNKS = 4,
       HD_BUCKET_BYTES = HD_BUCKET_CHUNKS * HD_CHUNK_ELEMS * 4 };         /* of the largest, uncut */

struct hd_segment { uint64_t at, len; uint32_t param, chunk; };          /* elements of the flat vector */
/* pads included, so that chunks tile [0, elems) */
struct hd_chunk   { uint64_t at, len; uint32_t first_segment, nsegments; };

/* Segments [first_segment, first_segment + nsegments) of the parameter, in its part: elements [at, at + len)
 * of the gradient vector. `grad`: number of the gradient (hd_graph_grad()). */
struct hd_grad_piece { uint64_t at, len; uint32_t grad, bucket, first_segment, nsegments; };

struct hd_layout {
	uint64_t elems;                   /* of the flat vector of what is learned, pads included */
	uint64_t held_elems;              /* with the frozen parameters after it */
	uint64_t params_elems;            /* without pads: "parameters" of a user's table */
	uint32_t nparams, nsegments, nchunks;     /* nchunks without the stats chunk */
	/* of a layout that was cut: its buckets, [nbuckets + 1] the first chunk of each, [nchunks] the bucket
	 * of each chunk. NULL: HD_BUCKET_CHUNKS chunks each */
	uint32_t nbuckets, *first_chunk, *bucket_of;
	uint64_t grad_elems;              /* of a gradient vector: `elems`, then the parts, pads included */
	uint32_t ngrads;                  /* nparams, and the parts after them */
	uint64_t *at, *len;               /* [ngrads] offset and elements of each tensor */
	uint32_t *grad_param;             /* [ngrads] whose gradient it is */
	uint32_t *first_segment;          /* [nparams + 1]; a frozen parameter has none */
	struct hd_segment *segment;
	struct hd_chunk *chunk;
	struct hd_grad_piece *piece; uint32_t npieces;
	uint32_t *first_piece;            /* [nbuckets + 1] */
	/* [nbuckets] bytes of a partial sum of it, with its pieces, and of its sum */
	uint64_t *moved;
	uint64_t buffer_elems;            /* of the flat vector of buffers, pads included */
	uint32_t nbuffers;
	uint64_t *buffer_at, *buffer_len; /* [nbuffers] */
};

HD_MUST_USE enum hd_err hd_layout_make(struct hd_layout *layout, const struct hd_graph *graph,
	struct hd_arena *arena, struct hd_diag *diag);

/* Cuts it into buckets of nsegments[b] segments, in order; `nbuckets` 0: as it was made. HD_E_INVAL: they
 * are not all segments, or one has none; the layout is as it was. Its arrays are written again, so that no
 * copy of it may be in use. */
HD_MUST_USE enum hd_err hd_layout_cut(struct hd_layout *layout, uint32_t nbuckets, const uint32_t *nsegments,
	struct hd_arena *arena, struct hd_diag *diag);

uint32_t hd_layout_nbuckets(const struct hd_layout *layout);
/* as one run of chunks */
struct hd_chunk hd_layout_bucket(const struct hd_layout *layout, uint32_t bucket);
uint64_t hd_layout_most_bytes(const struct hd_layout *layout);       /* of a bucket */
/* The chunks of bucket b are those from the one on and before the other. */
static inline uint32_t hd_layout_first_chunk(const struct hd_layout *layout, uint32_t bucket)
{
	const uint32_t first = layout->first_chunk ? layout->first_chunk[bucket] : bucket * HD_BUCKET_CHUNKS;

	return first < layout->nchunks ? first : layout->nchunks;
}
static inline uint32_t hd_layout_bucket_of(const struct hd_layout *layout, uint32_t chunk)
{
	return layout->bucket_of ? layout->bucket_of[chunk] : chunk / HD_BUCKET_CHUNKS;
}

/* Where run r lies in a gradient vector; the bucket to which it is added. */
struct hd_grad_run { uint64_t at, len; uint32_t bucket; };
uint32_t hd_layout_nruns(const struct hd_layout *layout);
struct hd_grad_run hd_layout_run(const struct hd_layout *layout, uint32_t run);
/* Runs of a bucket: itself, and its pieces, which are runs [*first, *first + their number). */
uint32_t hd_layout_pieces(const struct hd_layout *layout, uint32_t bucket, uint32_t *first);
/* What a receive buffer of a run takes: its bytes in whole cache lines. */
uint64_t hd_layout_run_room(const struct hd_layout *layout, uint32_t run);

#endif
