#include "plan/folds.h"

#include <assert.h>
#include <stdlib.h>

/* Both halves are the same walk: leaves or roots come in ascending order of cover and
 * are put on a stack; while the top is the right sibling of what lies below it, the
 * two are merged. What pends is disjoint and ascending, so a stack suffices. */

struct pending { struct hd_tnode node; uint32_t buffer; };

/* While a script is made: the stack of pending nodes and the free buffers. */
struct folding {
	struct hd_fold_script *script;
	uint32_t nvns, nmoves, top;
	struct pending *stack;            /* [nvns_here + 1] */
	uint32_t *free;                   /* [nvns_here + 1], a stack too */
	bool *pends;                      /* [nvns_here + 1] buffers that hold a sum when some wave ends */
	uint32_t nfree;
};

static void move(struct folding *f, uint32_t dst, uint32_t src, bool add)
{
	f->script->move[f->nmoves++] = (struct hd_move){ dst, src, add };
}

static uint32_t take_buffer(struct folding *f)
{
	return f->nfree ? f->free[--f->nfree] : f->script->nbuffers++;
}

/* Is `node` the right sibling of what pends below place `at` of the stack? */
static bool joins(const struct folding *f, uint32_t at, struct hd_tnode node)
{
	return at && hd_tree_is_right(f->nvns, node) && hd_tnode_same(f->stack[at - 1].node,
		hd_tree_sibling(f->nvns, node));
}

static void merge_upward(struct folding *f)
{
	while (f->top && joins(f, f->top - 1, f->stack[f->top - 1].node)) {
		struct pending *right = &f->stack[--f->top], *left = &f->stack[f->top - 1];
		move(f, left->buffer, right->buffer, true);
		f->free[f->nfree++] = right->buffer;
		left->node = hd_tree_parent(f->nvns, left->node);
	}
}

/* One slice: the leaf is complete when backward yields it, so a right child needs no buffer. */
static void fold_whole(struct folding *f, struct hd_tnode leaf)
{
	if (joins(f, f->top, leaf)) {
		struct pending *left = &f->stack[f->top - 1];
		move(f, left->buffer, HD_LEAF, true);
		left->node = hd_tree_parent(f->nvns, leaf);
	} else {
		uint32_t buffer = take_buffer(f);
		move(f, buffer, HD_LEAF, false);
		f->stack[f->top++] = (struct pending){ leaf, buffer };
	}
	merge_upward(f);
}

/* The first slice is copied, later ones are added; only the last may merge. */
static void fold_slice(struct folding *f, struct hd_tnode leaf, uint32_t slice)
{
	if (slice == 0)
		f->stack[f->top++] = (struct pending){ leaf, take_buffer(f) };
	move(f, f->stack[f->top - 1].buffer, HD_LEAF, slice > 0);
	if (slice + 1 == f->script->nslices)
		merge_upward(f);
}

static enum hd_err check_vns(uint32_t nvns, const uint32_t *vn, uint32_t nhere, uint32_t nslices,
	struct hd_diag *diag)
{
	if (nvns == 0 || nvns > HD_MAX_VNS || nslices == 0)
		return hd_fail(diag, HD_E_INVAL,
			"a fold needs 1 to %u virtual nodes and slices, not %u and %u", HD_MAX_VNS, nvns,
			nslices);
	for (uint32_t i = 0; i < nhere; i++)
		if (vn[i] >= nvns || (i && vn[i] <= vn[i - 1]))
			return hd_fail(diag, HD_E_INVAL,
				"virtual node %u at place %u: they must ascend and be below %u", vn[i], i,
				nvns);
	return HD_OK;
}

static enum hd_err take_arrays(struct folding *f, struct hd_fold_script *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	size_t n = s->nvns_here, nsteps = n * s->nslices;

	s->vn = hd_arena_take(arena, n + 1, sizeof *s->vn);
	s->first_move = hd_arena_take(arena, nsteps + 1, sizeof *s->first_move);
	/* a move per slice, at most a merge per leaf */
	s->move = hd_arena_take(arena, nsteps + n + 1, sizeof *s->move);
	s->root = hd_arena_take(arena, n + 1, sizeof *s->root);
	s->root_buffer = hd_arena_take(arena, n + 1, sizeof *s->root_buffer);
	f->stack = hd_arena_take(arena, n + 1, sizeof *f->stack);
	f->free = hd_arena_take(arena, n + 1, sizeof *f->free);
	f->pends = hd_arena_take(arena, n + 1, sizeof *f->pends);
	if (!s->vn || !s->first_move || !s->move || !s->root || !s->root_buffer || !f->stack || !f->free ||
		!f->pends)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the fold of %u virtual nodes", s->nvns_here);
	return HD_OK;
}

static void wave_ends(struct folding *f)
{
	for (uint32_t i = 0; i < f->top; i++)
		f->pends[f->stack[i].buffer] = true;
}

/* Temporary buffers get the last numbers; `free` is no longer needed and holds the new ones. */
static void number_buffers(struct folding *f)
{
	struct hd_fold_script *s = f->script;
	uint32_t n = s->nbuffers, whole = 0, *to = f->free;

	for (uint32_t b = 0; b < n; b++)
		/* a leaf pends between its slices too */
		whole += f->pends[b] = f->pends[b] || s->nslices > 1;
	for (uint32_t b = 0, i = 0, j = whole; b < n; b++)
		to[b] = f->pends[b] ? i++ : j++;
	for (uint32_t k = 0; k < f->nmoves; k++) {
		s->move[k].dst = to[s->move[k].dst];
		s->move[k].src = s->move[k].src == HD_LEAF ? HD_LEAF : to[s->move[k].src];
	}
	for (uint32_t i = 0; i < s->nroots; i++)
		s->root_buffer[i] = to[s->root_buffer[i]];
	s->nbuffers = whole;
	s->ntemps = n - whole;
}

enum hd_err hd_fold_script_make(struct hd_fold_script *script, uint32_t nvns, const uint32_t *vn,
	uint32_t nhere,
	uint32_t nslices, struct hd_arena *arena, struct hd_diag *diag)
{
	return hd_fold_script_make_waves(script, nvns, vn, nhere, nslices, NULL, arena, diag);
}

enum hd_err hd_fold_script_make_waves(struct hd_fold_script *script, uint32_t nvns, const uint32_t *vn,
	uint32_t nhere,
	uint32_t nslices, const uint32_t *wave, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_fold_script s = { .nvns_here = nhere, .nslices = nslices };
	struct folding f = { .script = &s, .nvns = nvns };
	enum hd_err err = check_vns(nvns, vn, nhere, nslices, diag);

	err = err ? err : take_arrays(&f, &s, arena, diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < nhere; i++) {
		struct hd_tnode leaf = { 0, vn[i] };
		s.vn[i] = vn[i];
		for (uint32_t q = 0; q < nslices; q++) {
			s.first_move[i * nslices + q] = f.nmoves;
			if (nslices == 1)
				fold_whole(&f, leaf);
			else
				fold_slice(&f, leaf, q);
		}
		if (!wave || i + 1 == nhere || wave[i + 1] != wave[i])
			wave_ends(&f);
	}
	s.first_move[nhere * nslices] = f.nmoves;
	s.nroots = f.top;
	for (uint32_t i = 0; i < f.top; i++) {
		s.root[i] = f.stack[i].node;
		s.root_buffer[i] = f.stack[i].buffer;
	}
	number_buffers(&f);
	*script = s;
	return HD_OK;
}

static int by_cover(const void *a, const void *b)
{
	const struct hd_join *x = a, *y = b;

	return x->b < y->b ? -1 : x->b > y->b;
}

static enum hd_err no_tiling(struct hd_diag *diag, uint32_t leaf)
{
	return hd_fail(diag, HD_E_INVAL,
		"the roots do not tile the tree: leaf %u is covered by none or by two", leaf);
}

/* The order of the roots, kept in `out` itself as (a: root, b: first leaf): join j is
 * written after root j+1 was read, so it never overwrites what is still to be read. */
static enum hd_err sort_roots(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots,
	struct hd_join *out, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < nroots; i++) {
		uint32_t first, end;
		if (!hd_tree_exists(nvns, root[i]) || !hd_tnode_same(root[i], hd_tree_name(nvns, root[i])))
			return hd_fail(diag, HD_E_INVAL, "(%u,%u) is no name in a tree of %u leaves",
				root[i].level, root[i].index, nvns);
		hd_tree_cover(nvns, root[i], &first, &end);
		out[i] = (struct hd_join){ .a = i, .b = first };
	}
	qsort(out, nroots, sizeof *out, by_cover);
	return HD_OK;
}

/* Sorted roots -> joins; `stack` is what pends, and what is left in the end. `tiles`: a gap is refused
 * where it begins. */
static enum hd_err join(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots, bool tiles,
	struct hd_join *out, struct hd_left *stack,
	uint32_t *njoins, uint32_t *nleft, struct hd_diag *diag)
{
	uint32_t n = 0, top = 0, at = 0;

	for (uint32_t i = 0; i < nroots; i++) {
		uint32_t item = out[i].a, first = out[i].b;
		struct hd_tnode node = root[item];
		if (first < at || (tiles && first != at))
			return no_tiling(diag, first < at ? first : at);
		hd_tree_cover(nvns, node, &first, &at);
		while (top && hd_tree_is_right(nvns, node) &&
			hd_tnode_same(stack[top - 1].node, hd_tree_sibling(nvns, node))) {
			out[n] = (struct hd_join){ .dst = nroots + n, .a = stack[--top].item, .b = item };
			item = nroots + n++;
			node = hd_tree_parent(nvns, node);
		}
		stack[top++] = (struct hd_left){ node, item };
	}
	if (tiles && at != nvns)
		return no_tiling(diag, at);
	*njoins = n;
	*nleft = top;
	return HD_OK;
}

static enum hd_err check_roots(uint32_t nvns, uint32_t nroots, uint32_t cap, struct hd_diag *diag)
{
	if (nvns == 0 || nvns > HD_MAX_VNS || nroots == 0)
		return hd_fail(diag, HD_E_INVAL, "nothing to join: %u roots of %u virtual nodes", nroots,
			nvns);
	if (cap < nroots)
		return hd_fail(diag, HD_E_NOSPACE, "room for %u joins, %u roots need as many", cap, nroots);
	return HD_OK;
}

enum hd_err hd_join_make(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots,
	struct hd_join *out, uint32_t cap, uint32_t *njoins, uint32_t *result, struct hd_diag *diag)
{
	/* a tiled prefix pends as one node per level at most */
	struct hd_left stack[HD_MAX_LEVELS + 2];
	uint32_t n, nleft;
	enum hd_err err = check_roots(nvns, nroots, cap, diag);

	if (!err)
		err = sort_roots(nvns, root, nroots, out, diag);
	if (!err)
		err = join(nvns, root, nroots, true, out, stack, &n, &nleft, diag);
	if (err)
		return err;
	assert(nleft == 1);
	*njoins = n;
	*result = stack[0].item;
	return HD_OK;
}

enum hd_err hd_join_some(uint32_t nvns, const struct hd_tnode *root, uint32_t nroots,
	struct hd_join *out, uint32_t cap, uint32_t *njoins, struct hd_left *left, uint32_t *nleft,
	struct hd_diag *diag)
{
	enum hd_err err = check_roots(nvns, nroots, cap, diag);

	if (!err)
		err = sort_roots(nvns, root, nroots, out, diag);
	return err ? err : join(nvns, root, nroots, false, out, left, njoins, nleft, diag);
}
