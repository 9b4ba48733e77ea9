/* folds.h -- how one device folds the leaves of its virtual nodes, as data.
 *
 * A leaf is the gradient of one virtual node, in one flat vector; tree.h says in which order they are added.
 * A device runs its virtual nodes in ascending order. When leaf v is complete it
 * is merged upward while its left sibling is pending here; what cannot merge stays
 * pending in a gradient buffer. The script is the same for every tensor, so the
 * executor applies the moves of a leaf to each tensor as backward completes it.
 * A right child is added to its sibling at once and never needs a buffer.
 *
 * If a virtual node is computed in q slices s0, s1, ..., its leaf is ((s0 + s1) + s2) + ..., summed in a
 * buffer of its own, then merged.
 *
 * Virtual nodes of one *wave* are folded tensor by tensor in one go; a buffer that never pends
 * when a wave ends holds one tensor at a time and is called temporary.
 *
 * The number of buffers is found by running the script, never by a formula.
 * Pure; arrays lie in the arena given. */
#ifndef HD_PLAN_FOLDS_H
#define HD_PLAN_FOLDS_H

#include "base/arena.h"
#include "plan/tree.h"

#define HD_LEAF UINT32_MAX                /* source of a move: the leaf (or slice) itself */

/* buffer[dst] = add ? buffer[dst] + src : src. */
struct hd_move { uint32_t dst, src; bool add; };

struct hd_fold_script {
	uint32_t nvns_here, nslices, nroots;
	/* buffers [0, nbuffers) hold whole gradients, the next ntemps are temporary */
	uint32_t nbuffers, ntemps;
	uint32_t *vn;                     /* [nvns_here] ascending */
	uint32_t *first_move;             /* [nvns_here * nslices + 1]: moves of (vn index, slice) */
	struct hd_move *move;
	struct hd_tnode *root;            /* [nroots] in ascending order of cover */
	uint32_t *root_buffer;            /* where each root is when all virtual nodes are done */
};

/* Without waves, for tests. */
HD_MUST_USE enum hd_err hd_fold_script_make(struct hd_fold_script *script, uint32_t nvns, const uint32_t *vn,
	uint32_t nhere,
	uint32_t nslices, struct hd_arena *arena, struct hd_diag *diag);
/* wave[i]: the number of the wave of vn[i], ascending; NULL: each virtual node is a wave of its own. With
 * slices there are no waves. */
HD_MUST_USE enum hd_err hd_fold_script_make_waves(struct hd_fold_script *script, uint32_t nvns,
	const uint32_t *vn, uint32_t nhere,
	uint32_t nslices, const uint32_t *wave, struct hd_arena *arena, struct hd_diag *diag);

/* For leaves that are complete in the order of `vn`, whatever it is (the lists of a pipeline's stage). A node
 * joins its sibling as soon as both are here, whichever comes first: an addition has the same bits either way
 * round. No temporary buffers; root i, in ascending order of cover, ends in buffer i. script->vn is `vn`. */
HD_MUST_USE enum hd_err hd_fold_script_make_any(struct hd_fold_script *script, uint32_t nvns,
	const uint32_t *vn, uint32_t nhere, struct hd_arena *arena, struct hd_diag *diag);

/* The other half of the sum: the additions that reduce the roots of all workers to value(H,0), the root of
 * the whole tree. The list is the same for every chunk. Its order of additions is that of the tree, in
 * whatever order roots arrive.
 *
 * item[dst] = item[a] + item[b]; items 0..nroots-1 are the roots given. */
struct hd_join { uint32_t dst, a, b; };
/* Makes the list of nroots - 1 joins; item[*result] is value(H,0). Roots may be given in any order. `out` has
 * room for `cap` >= nroots (HD_E_NOSPACE else), one more than the joins: it also serves to sort. */
HD_MUST_USE enum hd_err hd_join_make(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots,
	struct hd_join *out, uint32_t cap, uint32_t *njoins, uint32_t *result, struct hd_diag *diag);

/* The same for roots that do not cover the tree: makes the joins whose operands are both there. What is left
 * are the roots of the union, ascending by the leaves they cover; `left` has room for nroots. HD_E_INVAL:
 * two roots overlap. */
struct hd_left { struct hd_tnode node; uint32_t item; };
HD_MUST_USE enum hd_err hd_join_some(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots,
	struct hd_join *out, uint32_t cap, uint32_t *njoins, struct hd_left *left, uint32_t *nleft,
	struct hd_diag *diag);

#endif
