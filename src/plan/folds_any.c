#include "plan/folds.h"

#include <assert.h>
#include <stdlib.h>

/* Leaves in any order: what pends is found by its name in the tree. */

struct any_folding {
	struct hd_fold_script *script;
	uint32_t nvns, nmoves, nfree, nlevels;
	uint32_t *free;                   /* [nhere + 1] buffers, a stack */
	uint32_t *level_at;               /* [levels + 1] where the nodes of a level begin in `buffer` */
	/* by name: one more than the buffer where it pends; 0: it does not */
	uint32_t *buffer;
};

static uint32_t *pending(const struct any_folding *f, struct hd_tnode node)
{
	return &f->buffer[f->level_at[node.level] + node.index];
}

static void move(struct any_folding *f, uint32_t dst, uint32_t src, bool add)
{
	f->script->move[f->nmoves++] = (struct hd_move){ dst, src, add };
}

static bool is_top(const struct any_folding *f, struct hd_tnode node)
{
	uint32_t first, end;

	hd_tree_cover(f->nvns, node, &first, &end);
	return first == 0 && end == f->nvns;
}

/* The buffer where the sibling pends, which takes the node up; HD_LEAF: it is not here. */
static uint32_t take_sibling(struct any_folding *f, struct hd_tnode node)
{
	uint32_t *at = is_top(f, node) ? NULL : pending(f, hd_tree_sibling(f->nvns, node));
	uint32_t buffer = at && *at ? *at - 1 : HD_LEAF;

	if (at)
		*at = 0;
	return buffer;
}

static void fold(struct any_folding *f, struct hd_tnode node)
{
	uint32_t at = HD_LEAF, to;

	while ((to = take_sibling(f, node)) != HD_LEAF) {
		move(f, to, at, true);
		if (at != HD_LEAF)
			f->free[f->nfree++] = at;
		at = to;
		node = hd_tree_parent(f->nvns, node);
	}
	if (at == HD_LEAF) {
		at = f->nfree ? f->free[--f->nfree] : f->script->nbuffers++;
		move(f, at, HD_LEAF, false);
	}
	*pending(f, node) = at + 1;
}

static enum hd_err take(struct any_folding *f, uint32_t nhere, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_fold_script *s = f->script;

	f->nlevels = hd_tree_height(f->nvns) + 1;
	f->level_at = hd_arena_take(arena, f->nlevels + 1, sizeof *f->level_at);
	for (uint32_t l = 0; f->level_at && l < f->nlevels; l++)
		f->level_at[l + 1] = f->level_at[l] + (f->nvns >> l) + 1;
	f->buffer = f->level_at ? hd_arena_take(arena, f->level_at[f->nlevels] + 1, sizeof *f->buffer) : NULL;
	f->free = hd_arena_take(arena, nhere + 1, sizeof *f->free);
	s->vn = hd_arena_take(arena, nhere + 1, sizeof *s->vn);
	s->first_move = hd_arena_take(arena, nhere + 1, sizeof *s->first_move);
	s->move = hd_arena_take(arena, 2 * (size_t)nhere + 1, sizeof *s->move);
	s->root = hd_arena_take(arena, nhere + 1, sizeof *s->root);
	s->root_buffer = hd_arena_take(arena, nhere + 1, sizeof *s->root_buffer);
	if (!f->buffer || !f->free || !s->vn || !s->first_move || !s->move || !s->root || !s->root_buffer)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the fold of %u virtual nodes", nhere);
	return HD_OK;
}

/* Roots get the first numbers, in ascending order of cover. */
static void number_buffers(struct any_folding *f)
{
	struct hd_fold_script *s = f->script;
	uint32_t *to = f->free, next = s->nroots;

	for (uint32_t b = 0; b < s->nbuffers; b++)
		to[b] = HD_LEAF;
	for (uint32_t i = 0; i < s->nroots; i++) {
		to[s->root_buffer[i]] = i;
		s->root_buffer[i] = i;
	}
	for (uint32_t b = 0; b < s->nbuffers; b++)
		to[b] = to[b] == HD_LEAF ? next++ : to[b];
	for (uint32_t k = 0; k < f->nmoves; k++) {
		s->move[k].dst = to[s->move[k].dst];
		s->move[k].src = s->move[k].src == HD_LEAF ? HD_LEAF : to[s->move[k].src];
	}
}

static enum hd_err find_roots(struct any_folding *f, uint32_t nhere, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_fold_script *s = f->script;
	uint8_t *has = hd_arena_take(arena, f->nvns, 1);

	if (!has)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the fold of %u virtual nodes", nhere);
	for (uint32_t i = 0; i < nhere; i++)
		has[s->vn[i]] = 1;
	enum hd_err err = hd_tree_roots(f->nvns, has, s->root, nhere + 1, &s->nroots);
	assert(!err);
	for (uint32_t i = 0; i < s->nroots; i++) {
		assert(*pending(f, s->root[i]));
		s->root_buffer[i] = *pending(f, s->root[i]) - 1;
	}
	return err;
}

enum hd_err hd_fold_script_make_any(struct hd_fold_script *script, uint32_t nvns, const uint32_t *vn,
	uint32_t nhere, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_fold_script s = { .nvns_here = nhere, .nslices = 1 };
	struct any_folding f = { .script = &s, .nvns = nvns };

	if (nvns == 0 || nvns > HD_MAX_VNS || nhere > nvns)
		return hd_fail(diag, HD_E_INVAL, "a fold of %u of %u virtual nodes: 1 to %u are possible",
		nhere,
			nvns, HD_MAX_VNS);
	enum hd_err err = take(&f, nhere, arena, diag);
	uint8_t *seen = err ? NULL : hd_arena_take(arena, nvns, 1);
	if (!seen)
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for the fold of %u virtual nodes",
		nhere);
	for (uint32_t i = 0; i < nhere; i++) {
		if (vn[i] >= nvns || seen[vn[i]]++)
			return hd_fail(diag, HD_E_INVAL,
				"virtual node %u at place %u of a fold: there are %u, each comes once", vn[i],
				i,
				nvns);
		s.vn[i] = vn[i];
		s.first_move[i] = f.nmoves;
		fold(&f, (struct hd_tnode){ 0, vn[i] });
	}
	s.first_move[nhere] = f.nmoves;
	err = nhere ? find_roots(&f, nhere, arena, diag) : HD_OK;
	if (err)
		return err;
	number_buffers(&f);
	*script = s;
	return HD_OK;
}
