/* K11: the buffers that receives name. A tensor is needed until its consumer has run; a rank's own order
 * decides. */
#include <string.h>

#include "pipeline/check/int.h"

/* What a buffer of a channel holds; of rank `of` - 1, others' is forgotten. */
struct buffer { uint32_t of, peer, stage, vn, got_at, needed_at; uint16_t slot; bool grad; };

struct buffer_table { struct buffer *at; uint32_t mask; };

static struct buffer *find(const struct buffer_table *t, uint32_t rank, uint32_t peer, bool grad,
	uint16_t slot)
{
	uint32_t h = (peer * 2654435761u) ^ ((uint32_t)slot * 2246822519u) ^ (uint32_t)grad;

	for (h ^= h >> 15;; h++) {
		struct buffer *b = &t->at[h & t->mask];
		if (b->of != rank + 1 || (b->peer == peer && b->grad == grad && b->slot == slot))
			return b;
	}
}

static bool receives_into_one(const struct hd_ins *x) { return (x->op == HD_INS_RA || x->op == HD_INS_RG) &&
	x->slot; }

static void receive(const struct hd_lists *l, const struct buffer_table *t, uint32_t rank, uint32_t at)
{
	const struct hd_ins *x = &l->s->list[rank].at[at];
	bool grad = x->op == HD_INS_RG;
	const struct hd_done *user = hd_done_of(l, x->stage, x->vn);
	uint32_t stage = grad ? x->stage + 1u : x->stage - 1u;
	struct buffer *b = find(t, rank, x->peer, grad, x->slot);

	if (b->of == rank + 1 && b->needed_at > at)
		hd_lists_say_both(l, "K11", rank, at, rank, b->needed_at,
			"slot %u still holds %u.%u, needed by #%u", x->slot, b->stage, b->vn, b->needed_at);
	*b = (struct buffer){ rank + 1, x->peer, stage, x->vn, at, grad ? user->b.at : user->f.at, x->slot,
		grad };
}

enum hd_err hd_lists_slots(const struct hd_lists *l, struct hd_diag *diag)
{
	struct buffer_table t = { 0 };
	uint32_t most = 0, slots = l->job ? l->job->slots : 0;

	for (uint32_t r = 0; r < l->s->nranks; r++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < l->s->list[r].len; i++) {
			const struct hd_ins *x = &l->s->list[r].at[i];
			if (!receives_into_one(x))
				continue;
			n++;
			if (slots && x->slot > slots)
				hd_lists_say(l, "K4", r, i, "slot %u does not exist (there are %u, from 1)",
					x->slot, slots);
		}
		most = n > most ? n : most;
	}
	if (!most || l->report->total)
		return HD_OK;
	for (t.mask = 1; t.mask < 2 * most; )
		t.mask = 2 * t.mask + 1;
	if (!(t.at = hd_arena_take(l->arena, (size_t)t.mask + 1, sizeof *t.at)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to check a schedule");
	for (uint32_t r = 0; r < l->s->nranks; r++)
		for (uint32_t i = 0; i < l->s->list[r].len; i++)
			if (receives_into_one(&l->s->list[r].at[i]))
				receive(l, &t, r, i);
	return HD_OK;
}
