#include "data/packing.h"

#include <assert.h>
#include <string.h>

/* The cuts of all documents one by one, made twice: to be counted, then to be kept. */
struct packing_cutter {
	enum hd_packing_how how;
	uint32_t context;
	const uint64_t *begin; uint64_t ndocuments;
	uint64_t document, at;
	uint32_t room;                    /* in order: of the sample at hand */
	bool fresh;                       /* in order: the piece begins a sample */
};

static void begin_cuts(struct packing_cutter *c)
{
	c->document = 0;
	c->at = c->ndocuments ? c->begin[0] : 0;
	c->room = 0;
}

static bool next_piece(struct packing_cutter *c, struct hd_packing_piece *piece)
{
	while (c->document < c->ndocuments && c->begin[c->document + 1] - c->at < 2) {
		c->document++;
		c->at = c->begin[c->document];
	}
	if (c->document == c->ndocuments)
		return false;
	const uint64_t left = c->begin[c->document + 1] - c->at;
	c->fresh = !c->room;
	if (c->how == HD_PACKING_FIT || c->fresh)
		c->room = c->context;
	const uint32_t len = left < c->room ? (uint32_t)left : c->room;
	*piece = (struct hd_packing_piece){ c->at, len, len < left };
	c->at += len;
	c->room -= len;
	return true;
}

/* ---- first fit ---- */

/* Leaf s is the room of sample s, a node the most of those below it; leaves begin at `nleaves`. */
struct room_tree { uint32_t *room; uint64_t nleaves; };

static uint64_t take_first(struct room_tree *tree, uint32_t len)
{
	uint64_t node = 1;

	assert(tree->room[1] >= len);
	while (node < tree->nleaves)
		node = 2 * node + (tree->room[2 * node] < len);
	tree->room[node] -= len;
	const uint64_t sample = node - tree->nleaves;
	while (node /= 2)
		tree->room[node] = tree->room[2 * node] > tree->room[2 * node + 1] ? tree->room[2 * node] :
			tree->room[2 * node + 1];
	return sample;
}

/* The sample of each piece; how many samples there are. */
static uint64_t fit(const struct hd_packing *p, struct room_tree *tree, uint32_t context, uint64_t *sample)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < 2 * tree->nleaves; i++)
		tree->room[i] = context;
	for (uint64_t i = 0; i < p->npieces; i++) {
		sample[i] = take_first(tree, p->piece[i].len);
		n = sample[i] >= n ? sample[i] + 1 : n;
	}
	return n;
}

/* Pieces by sample, those of one in the order they have. */
static void sort_pieces(struct hd_packing *p, const uint64_t *sample, const struct hd_packing_piece *cut)
{
	for (uint64_t i = 0; i < p->npieces; i++)
		p->first[sample[i] + 1]++;
	for (uint64_t s = 0; s < p->nsamples; s++)
		p->first[s + 1] += p->first[s];
	for (uint64_t i = 0; i < p->npieces; i++)
		p->piece[p->first[sample[i]]++] = cut[i];
	/* each is now where the next one begins */
	memmove(p->first + 1, p->first, p->nsamples * sizeof *p->first);
	p->first[0] = 0;
}

static enum hd_err no_memory(uint64_t npieces, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to pack %llu pieces of documents",
		(unsigned long long)npieces);
}

static enum hd_err pack_fit(struct hd_packing *p, struct hd_arena *arena, uint32_t context,
	struct hd_diag *diag)
{
	const struct hd_packing_piece *cut = p->piece;
	struct hd_arena scratch;
	struct room_tree tree = { .nleaves = 1 };
	enum hd_err err = HD_OK;

	while (tree.nleaves < p->npieces)
		tree.nleaves *= 2;
	hd_arena_init(&scratch, 0);
	tree.room = hd_arena_take(&scratch, 2 * tree.nleaves, sizeof *tree.room);
	uint64_t *sample = hd_arena_take(&scratch, p->npieces, sizeof *sample);
	p->piece = hd_arena_take(arena, p->npieces, sizeof *p->piece);
	p->nsamples = tree.room && sample ? fit(&(struct hd_packing){ .piece = (struct hd_packing_piece *)cut,
		.npieces = p->npieces }, &tree, context, sample) : 0;
	p->first = hd_arena_take(arena, p->nsamples + 1, sizeof *p->first);
	if (!tree.room || !sample || !p->piece || !p->first)
		err = no_memory(p->npieces, diag);
	else
		sort_pieces(p, sample, cut);
	hd_arena_finish(&scratch);
	return err;
}

enum hd_err hd_packing_make(struct hd_packing *p, struct hd_arena *arena, enum hd_packing_how how,
	uint32_t context, const uint64_t *begin, uint64_t ndocuments, struct hd_diag *diag)
{
	struct packing_cutter c = { .how = how, .context = context, .begin = begin,
		.ndocuments = ndocuments };
	struct hd_packing_piece piece;

	assert(context >= 2 && how != HD_PACKING_NONE);
	*p = (struct hd_packing){ 0 };
	for (begin_cuts(&c); next_piece(&c, &piece); p->npieces++)
		p->nsamples += c.fresh;
	if (!p->npieces)
		return hd_fail(diag, HD_E_INPUT, "no document has two tokens: there is nothing to learn");
	p->piece = hd_arena_take(arena, p->npieces, sizeof *p->piece);
	if (!p->piece)
		return no_memory(p->npieces, diag);
	p->first = how == HD_PACKING_ORDER ? hd_arena_take(arena, p->nsamples + 1, sizeof *p->first) : NULL;
	if (how == HD_PACKING_ORDER && !p->first)
		return no_memory(p->npieces, diag);
	uint64_t n = 0, s = 0;
	for (begin_cuts(&c); next_piece(&c, &p->piece[n]); n++)
		if (p->first && c.fresh)
			p->first[s++] = n;
	if (how == HD_PACKING_FIT)
		return pack_fit(p, arena, context, diag);
	p->first[p->nsamples] = p->npieces;
	assert(s == p->nsamples && n == p->npieces);
	return HD_OK;
}
