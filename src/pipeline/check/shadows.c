/* K31 - K35: what lists with shadow stages keep (redundancy.h). Of lists that are accepted without them. */
#include <string.h>

#include "pipeline/check/int.h"
#include "pipeline/redundancy.h"

enum shadow_seen {
	SHADOW_OWN_F = 1, SHADOW_OWN_B = 2, SHADOW_LOADED = 4, SHADOW_F = 8, SHADOW_HOST = 16,
	SHADOW_GRAD = 32, SHADOW_B = 64, SHADOW_SENT = 128,
};

struct shadow_walk {
	const struct hd_lists *l;
	struct hd_shadow_ring ring;
	uint32_t rank, stage, shadow, owner, holder;
	uint8_t *seen;                            /* [vns] of this rank */
	uint32_t nforwards, nbackwards, nships, ntakes, nnorms, nupdates;
	bool stepped, has_norm;
};

#define HERE(w, rule, at, ...) hd_lists_say((w)->l, rule, (w)->rank, at, __VA_ARGS__)

static const struct hd_ilist *list_of(const struct shadow_walk *w, uint32_t rank)
{
	return &w->l->s->list[rank];
}

/* The last stage reads labels, the first one samples. */
static bool loads(const struct shadow_walk *w)
{
	return w->shadow == 0 || w->shadow + 1 == w->ring.nstages;
}

/* ---- K32: the inputs of shadow work */

static void forward(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	uint8_t *seen = &w->seen[x->vn];

	if (*seen & SHADOW_F)
		HERE(w, "K32", at, "shadow forward of %u.%u appears twice", x->stage, x->vn);
	else if (x->flags & HD_INS_CHECKPOINT)
		HERE(w, "K32", at, "a shadow keeps its activations (no flag c): nothing makes them again");
	else if (w->shadow && !(*seen & SHADOW_OWN_F))
		HERE(w, "K32", at, "it comes before F%u.%u, whose output it takes", w->stage, x->vn);
	else if (loads(w) && !(*seen & SHADOW_LOADED))
		HERE(w, "K32", at, "nothing reads virtual node %u for the shadow: LDx%u.%u is missing", x->vn,
			x->stage, x->vn);
	*seen |= SHADOW_F;
	w->nforwards++;
}

static void backward(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	uint8_t *seen = &w->seen[x->vn];
	const bool last = w->shadow + 1 == w->ring.nstages, own = hd_shadow_ring_next(&w->ring,
		w->owner) == w->rank;

	if (*seen & SHADOW_B)
		HERE(w, "K32", at, "shadow backward of %u.%u appears twice", x->stage, x->vn);
	else if (!(*seen & SHADOW_F))
		HERE(w, "K32", at, "shadow backward before shadow forward");
	else if (*seen & SHADOW_HOST)
		HERE(w, "K32", at, "activations of the shadow are on the host: ONx%u.%u is missing", x->stage,
			x->vn);
	else if (!last && !(*seen & (own ? SHADOW_OWN_B : SHADOW_GRAD)))
		HERE(w, "K32", at, "its gradient is not there: %s%u.%u comes before it",
			own ? "the backward of " : "RGx", own ? w->stage : x->stage, x->vn);
	*seen |= SHADOW_B;
	w->nbackwards++;
}

static void move(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	uint8_t *seen = &w->seen[x->vn];
	const bool live = *seen & SHADOW_F && !(*seen & SHADOW_B), on = x->op == HD_INS_ON;

	if (!live || on != (bool)(*seen & SHADOW_HOST))
		HERE(w, "K32", at, "activations of the shadow are not %s", on ? "on the host" :
			"on the device");
	*seen = (uint8_t)(on ? *seen & ~SHADOW_HOST : *seen | SHADOW_HOST);
}

static void load(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	if (!loads(w))
		HERE(w, "K32", at, "stage %u takes nothing from the reader", x->stage);
	else if (w->seen[x->vn] & (SHADOW_LOADED | SHADOW_F))
		HERE(w, "K32", at, "LDx%u.%u comes twice or after its forward", x->stage, x->vn);
	w->seen[x->vn] |= SHADOW_LOADED;
}

static void receive(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	uint8_t *seen = &w->seen[x->vn];

	if (*seen & (SHADOW_GRAD | SHADOW_B))
		HERE(w, "K32", at, "RGx%u.%u comes twice or after its backward", x->stage, x->vn);
	*seen |= SHADOW_GRAD;
}

static void send(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	const uint32_t second = hd_shadow_ring_before(&w->ring, w->holder);
	uint8_t *seen = &w->seen[x->vn];

	if (x->stage != w->stage || w->stage == 0 || x->peer != second || second == w->rank)
		HERE(w, "K31", at, "the shadow of stage %u lives on rank %u", w->stage ? w->stage - 1 : 0,
			second);
	else if (!(*seen & SHADOW_OWN_B))
		HERE(w, "K32", at, "a gradient is sent before it is made");
	else if (*seen & SHADOW_SENT)
		HERE(w, "K32", at, "SGx%u.%u appears twice", x->stage, x->vn);
	*seen |= SHADOW_SENT;
}

/* ---- K34 and K35: what keeps a shadow current */

static bool is_reduced(const struct shadow_walk *w, uint32_t bucket, uint32_t at)
{
	const struct hd_ilist *list = list_of(w, w->rank);
	bool any = false;

	for (uint32_t i = 0; i < list->len; i++) {
		if (list->at[i].op != HD_INS_RED)
			continue;
		any = true;
		if (list->at[i].slot == bucket)
			return i < at;
	}
	return !any && bucket == 0;
}

static bool ends_after(const struct hd_ilist *list, uint32_t at)
{
	for (uint32_t i = at; i < list->len; i++)
		if (!hd_ins_redundant(&list->at[i]) && (list->at[i].op == HD_INS_B ||
			list->at[i].op == HD_INS_W || list->at[i].op == HD_INS_TIE))
			return true;
	return false;
}

static void ship(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	const struct hd_ilist *list = list_of(w, w->rank);

	if (x->stage != w->stage || x->peer != w->holder)
		HERE(w, "K34", at, "rank %u ships stage %u to rank %u, which shadows it", w->rank, w->stage,
			w->holder);
	else if (!is_reduced(w, x->slot, at) || ends_after(list, at))
		HERE(w, "K34", at, "bucket %u of stage %u is shipped before it is reduced", x->slot,
			x->stage);
	for (uint32_t i = 0; i < at; i++)
		if (list->at[i].op == HD_INS_SHIP && list->at[i].slot == x->slot)
			HERE(w, "K34", at, "bucket %u of stage %u is shipped twice", x->slot, x->stage);
	w->nships++;
}

static void update(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	const struct hd_ilist *its = list_of(w, w->owner);
	uint32_t nships = 0;

	for (uint32_t i = 0; i < its->len; i++)
		nships += its->at[i].op == HD_INS_SHIP;
	if (w->nupdates++)
		HERE(w, "K35", at, "the shadow of stage %u is updated twice", x->stage);
	else if (w->ntakes < nships)
		HERE(w, "K35", at, "%u of %u buckets of stage %u have not arrived: TAKE comes before STEPx",
			nships - w->ntakes, nships, x->stage);
	else if (w->has_norm && !w->nnorms)
		HERE(w, "K35", at, "the shadow is updated before the norm is known");
	w->stepped = true;
}

/* ---- one list */

static bool is_here(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	if (x->op == HD_INS_HA || x->op == HD_INS_HG || x->op == HD_INS_RSG) {
		HERE(w, "K31", at, "%s is of the rest of a step after a loss", hd_ins_row(x->op)->text);
		return false;
	}
	const bool own = x->op == HD_INS_SHIP || x->op == HD_INS_SG || x->op == HD_INS_SA;
	if (!own && x->stage != w->shadow) {
		HERE(w, "K31", at, "rank %u shadows stage %u, not %u", w->rank, w->shadow, x->stage);
		return false;
	}
	if (hd_ins_uses(x->op, 'v') && (x->vn >= w->l->s->nvns ||
		w->ring.pipeline_of[x->vn] != w->ring.pipeline[w->rank])) {
		HERE(w, "K31", at, "virtual node %d is not of this pipeline", (int32_t)x->vn);
		return false;
	}
	if (w->stepped && x->op != HD_INS_STEP && x->op != HD_INS_SHIP) {
		HERE(w, "K35", at, "shadow work after its update would use the weights of the next step");
		return false;
	}
	return true;
}

static void redundant(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	if (!is_here(w, at, x))
		return;
	switch (x->op) {
	case HD_INS_LD:   load(w, at, x); break;
	case HD_INS_F:    forward(w, at, x); break;
	case HD_INS_B:    backward(w, at, x); break;
	case HD_INS_OFF: case HD_INS_ON: move(w, at, x); break;
	case HD_INS_RG:   receive(w, at, x); break;
	case HD_INS_SG:   send(w, at, x); break;
	case HD_INS_SHIP: ship(w, at, x); break;
	case HD_INS_TAKE: w->ntakes++; break;
	case HD_INS_STEP: update(w, at, x); break;
	default:
		HERE(w, "K31", at, "a shadow does no %s", hd_ins_row(x->op)->text);
	}
}

static void own(struct shadow_walk *w, uint32_t at, const struct hd_ins *x)
{
	if (x->op == HD_INS_F)
		w->seen[x->vn] |= SHADOW_OWN_F;
	else if (x->op == HD_INS_B || x->op == HD_INS_I)
		w->seen[x->vn] |= SHADOW_OWN_B;
	else if (x->op == HD_INS_NORM)
		w->nnorms++;
	else if ((x->op == HD_INS_SA || x->op == HD_INS_SG) && !(x->flags & HD_INS_KEEP))
		HERE(w, "K33", at, "what is sent is not kept (flag k): after a loss it would be missing");
}

static uint32_t buckets_of(const struct hd_ilist *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->len; i++)
		n += list->at[i].op == HD_INS_RED;
	return n ? n : 1;
}

static void walk(struct shadow_walk *w)
{
	const struct hd_ilist *list = list_of(w, w->rank);
	uint32_t nvns = 0;

	memset(w->seen, 0, w->l->s->nvns);
	for (uint32_t v = 0; v < w->l->s->nvns; v++)
		nvns += w->ring.pipeline_of[v] == w->ring.pipeline[w->rank];
	for (uint32_t i = 0; i < list->len; i++)
		w->has_norm |= list->at[i].op == HD_INS_NORM;
	for (uint32_t i = 0; i < list->len; i++)
		if (hd_ins_redundant(&list->at[i]))
			redundant(w, i, &list->at[i]);
		else
			own(w, i, &list->at[i]);
	for (uint32_t v = 0; v < w->l->s->nvns; v++)
		if (w->seen[v] & SHADOW_GRAD && !(w->seen[v] & SHADOW_F))
			hd_lists_say_all(w->l, "K32",
				"rank %u: RGx%u.%u takes a gradient for a shadow that does not run forward",
				w->rank, w->shadow, v);
	if (w->nforwards && w->nforwards < nvns)
		hd_lists_say_all(w->l, "K32",
			"rank %u: the shadow of stage %u runs forward for %u of %u virtual nodes", w->rank,
			w->shadow, w->nforwards, nvns);
	if (w->nbackwards && w->nbackwards < nvns)
		hd_lists_say_all(w->l, "K32",
			"rank %u: the shadow of stage %u runs backward for %u of %u virtual nodes", w->rank,
			w->shadow, w->nbackwards, nvns);
	if (w->nships < buckets_of(list))
		hd_lists_say_all(w->l, "K34", "rank %u ships %u of %u buckets of stage %u to rank %u",
			w->rank,
			w->nships, buckets_of(list), w->stage, w->holder);
	if (w->nupdates == 0)
		hd_lists_say_all(w->l, "K35", "rank %u never updates its shadow of stage %u", w->rank,
			w->shadow);
}

/* ---- what one rank sends another takes, in the same order */

static const struct hd_ins *next_of(const struct hd_ilist *list, uint8_t op, uint32_t peer, uint32_t *at)
{
	while (*at < list->len) {
		const struct hd_ins *x = &list->at[(*at)++];
		if (hd_ins_redundant(x) && x->op == op && x->peer == peer)
			return x;
	}
	return NULL;
}

static void compare(const struct shadow_walk *w, uint8_t sent, uint8_t taken, uint32_t to)
{
	const bool grad = sent == HD_INS_SG;
	const struct hd_ins *a, *b;
	uint32_t i = 0, k = 0;

	do {
		a = next_of(list_of(w, w->rank), sent, to, &i);
		b = next_of(list_of(w, to), taken, w->rank, &k);
	} while (a && b && a->vn == b->vn && a->slot == b->slot);
	if (a || b)
		hd_lists_say_drawn(w->l, grad ? "K32" : "K34", w->rank, a ? i - 1 : HD_NOWHERE, to,
			b ? k - 1 : HD_NOWHERE, "rank %u takes %s in another order than rank %u sends them",
			to, grad ? "gradients for its shadow" : "buckets for its shadow", w->rank);
}

/* RGx and TAKE name their sender. */
static void check_peers(struct shadow_walk *w)
{
	const struct hd_ilist *list = list_of(w, w->rank);

	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *x = &list->at[i];
		const uint32_t from = x->op == HD_INS_TAKE ? w->owner : hd_shadow_ring_next(&w->ring,
			w->owner);
		if (hd_ins_redundant(x) && (x->op == HD_INS_TAKE || x->op == HD_INS_RG) && x->peer != from)
			HERE(w, "K31", i, "it comes from rank %u, not %u", from, x->peer);
	}
}

enum hd_err hd_lists_shadows(const struct hd_lists *l, struct hd_diag *diag)
{
	struct shadow_walk w = { .l = l, .seen = hd_arena_take(l->arena, (size_t)l->s->nvns + 1, 1) };
	struct hd_diag why = { "" };

	if (!w.seen)
		return hd_fail(diag, HD_E_NOMEM, "no memory to check a schedule");
	enum hd_err err = hd_shadow_ring_of(&w.ring, l->s, l->arena, &why);
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "%s", why.text);
	if (err) {
		hd_lists_say_all(l, "K31", "%s", why.text);
		return HD_OK;
	}
	for (uint32_t r = 0; r < l->s->nranks; r++) {
		const struct shadow_walk fresh = { .l = l, .seen = w.seen, .ring = w.ring, .rank = r,
			.stage = w.ring.stage[r], .shadow = (w.ring.stage[r] + 1) % w.ring.nstages,
			.owner = hd_shadow_ring_next(&w.ring, r), .holder = hd_shadow_ring_before(&w.ring,
			r) };
		struct shadow_walk one = fresh;
		walk(&one);
		check_peers(&one);
	}
	for (uint32_t r = 0; !l->report->total && r < l->s->nranks; r++) {
		w.rank = r;
		compare(&w, HD_INS_SHIP, HD_INS_TAKE, hd_shadow_ring_before(&w.ring, r));
		compare(&w, HD_INS_SG, HD_INS_RG, hd_shadow_ring_before(&w.ring,
			hd_shadow_ring_before(&w.ring, r)));
	}
	return HD_OK;
}
