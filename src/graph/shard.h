/* shard.h -- a model's wide sums in T fixed shards, so that T devices, or any divisor of T, may share them.
 *
 * Megatron's splits (Shoeybi et al., "Megatron-LM", 2019; Narayanan et al., SC 2021) as a rewrite of a
 * forward graph. It comes from the job (model.shards) and changes bits, so it is no pass of pass.h; a plan
 * that lays shards on devices changes none.
 *
 * 1. A pair of products with elementwise ops between: the first by columns of its result, the second by rows;
 *    each shard runs its own columns through both. Attention by heads: queries, keys and values by columns,
 *    its projection by rows. A token table that is looked up by rows, the products that make logits by
 *    columns. All else stays whole.
 * 2. Shard s of an extent n has [n s/T, n (s+1)/T), rounded down; heads must divide: `heads 12 cannot be
 *    split in 8 shards`.
 * 3. f: a whole value that shards read is handed to them along the fixed binary tree of shards (reshapes,
 *    which cost nothing), so that autodiff sums their gradients along it. g: partial results are added along
 *    the same tree. (l, j) = (l-1, 2j) + (l-1, 2j+1); a missing right child passes the left one through.
 * 4. Cross entropy of split logits is that of the label in its shard (the others are masked) and that of its
 *    shard among all, whose logits are the shards' lse: a shard hands on numbers per position, no logits.
 *    The logits are joined only for another reader (the output of that name).
 * 5. A parameter that shards alone read, each its own slice, becomes T parameters (slices.h), behind all
 *    others, those of shard 0 first. One that is read whole as well, or in two ways, stays: a shard reads
 *    slices of it.
 * 6. `sequence` (model.sequence_shards): what follows a sum over shards position by position, [N, q, C], is
 *    computed in T parts of q/T positions: norms, dropout, residual sums, biases; what all parts read is
 *    handed to them as in rule 3, so that its gradient is summed along the tree. A random op's part draws
 *    what its place in the whole draws, so the masks are those of the unsplit model; T must divide q:
 *    `sequence 6 cannot be split in 4 shards`. Products, attention and the loss read the parts joined.
 *
 * To be made before optimization; a graph of which nothing can be split is refused. Pure. */
#ifndef HD_GRAPH_SHARD_H
#define HD_GRAPH_SHARD_H

#include "graph/ir.h"

/* nshards 1: nothing is done. HD_E_INVAL: rule 2 or 6, or nothing to split. */
HD_MUST_USE enum hd_err hd_graph_shard(struct hd_graph *graph, uint32_t nshards, bool sequence,
	struct hd_diag *diag);

#endif
