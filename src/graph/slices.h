/* slices.h -- tensors that are stored in slices: where their elements lie, which parameters of a graph they
 * are.
 *
 * In a model in T shards (shard.h) a tensor that only shards read, each its own part, is T parameters: its
 * *slices*. Code that stores, sums, moves or updates parameters takes them as any others, so a device that
 * runs some shards needs no more of the tensor than they read. The tensor as a whole is known to code that
 * gives it its initial values, writes and reads it by name, hashes it, or takes its norm.
 *
 * 1. A tensor [.., extent, ..] of `blocks` equal blocks along one axis: of each block, e wide, slice s of n
 *    has the part [e s/n, e (s+1)/n), rounded down; its blocks lie one after another along that axis. The
 *    tensor's own order of elements is its *natural* order.
 * 2. Elements that follow one another in a slice and in the natural order are a *run* (hd_slice_run()).
 * 3. A tensor that is one parameter is the case of n = 1.
 * 4. In a graph, parameters of one tensor stand in the order of their numbers.
 *
 * Ownership: arrays of hd_wholes lie in the arena given. Pure. */
#ifndef HD_GRAPH_SLICES_H
#define HD_GRAPH_SLICES_H

#include "graph/ir.h"

/* `inner`: elements of one step along the axis; `extent`: of one block. */
struct hd_sliced { uint64_t outer, inner, extent; uint32_t blocks, n; };

/* The run that begins at a natural place: of which slice, from which of its elements, how many. */
struct hd_slice_run { uint32_t slice; uint64_t at, len; };
struct hd_slice_run hd_slice_run(const struct hd_sliced *shape, uint64_t element);

static inline uint64_t hd_sliced_elems(const struct hd_sliced *shape)
{
	return shape->outer * shape->blocks * shape->extent * shape->inner;
}

/* f32 elements [first, first + n) of the natural order, from and to slices at slice[]. */
void hd_slices_get(const struct hd_sliced *shape, float *const *slice, uint64_t first, uint64_t n, float *to);
void hd_slices_put(const struct hd_sliced *shape, float *const *slice, uint64_t first, uint64_t n,
	const float *from);

/* The tensors of a graph: tensor t is parameters param[first[t]] .. param[first[t + 1] - 1]. */
struct hd_wholes {
	uint32_t n;
	bool sliced;                      /* some tensor is several parameters */
	uint32_t *first, *param;
};
/* HD_E_INVAL: a tensor lacks slices, or they do not fit together. */
HD_MUST_USE enum hd_err hd_wholes_make(struct hd_wholes *wholes, const struct hd_graph *graph,
	struct hd_arena *arena, struct hd_diag *diag);
static inline uint32_t hd_whole_slices(const struct hd_wholes *wholes, uint32_t tensor)
{
	return wholes->first[tensor + 1] - wholes->first[tensor];
}

/* Of the tensor that a parameter is of: its value (extents), and how it lies. */
struct hd_value hd_whole_value(const struct hd_graph *graph, uint32_t param);
struct hd_sliced hd_whole_shape(const struct hd_graph *graph, uint32_t param);
const char *hd_whole_name(const struct hd_graph *graph, uint32_t param);

#endif
