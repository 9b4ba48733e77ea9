/* Between two workers: what is there to go, in the order of its urgency, and what is on its way. */
#include <math.h>

#include "plan/xfer.h"
#include "timeline/analyze/reorder_play.h"

/* ---- what comes at a time ---- */

static bool before(const struct play_due *a, const struct play_due *b)
{
	return a->t < b->t || (!(b->t < a->t) && a->what < b->what);
}

void hd_tl_due_push(struct ends_play *p, double t, uint32_t what)
{
	const struct play_due d = { t, what };
	uint32_t i = p->nheap++;

	for (; i && before(&d, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = d;
}

struct play_due hd_tl_due_pop(struct ends_play *p)
{
	const struct play_due first = p->heap[0], last = p->heap[--p->nheap];
	uint32_t i = 0;

	for (uint32_t next; (next = 2 * i + 1) < p->nheap; i = next) {
		next += next + 1 < p->nheap && before(&p->heap[next + 1], &p->heap[next]);
		if (!before(&p->heap[next], &last))
			break;
		p->heap[i] = p->heap[next];
	}
	p->heap[i] = last;
	return first;
}

/* ---- urgency ---- */

static uint32_t urgency(struct ends_play *p, uint32_t i)
{
	const struct hd_tl_moved *m = hd_tl_xfer(p, i);

	if (m->kind == HD_XFER_METRICS)
		return 0;
	if (hd_tl_bucket(p, m->bucket, m->to)->wanted)
		return 0;
	return 1 + (p->how->now ? m->now : m->was);
}

static bool more_urgent(struct ends_play *p, uint32_t a, uint32_t b)
{
	const uint32_t x = urgency(p, a), y = urgency(p, b);

	return x != y ? x < y : a < b;
}

static struct played_pair *pair_of(struct ends_play *p, uint32_t i)
{
	return &p->pair[hd_tl_xfer(p, i)->from * p->n + hd_tl_xfer(p, i)->to];
}

/* Chunks of the most urgent, until as much is on its way as the transport takes; one at least. */
static void hand_over(struct ends_play *p, struct played_pair *pair)
{
	while (pair->n) {
		uint32_t best = 0;
		for (uint32_t k = 1; k < pair->n; k++)
			best = more_urgent(p, pair->at[k], pair->at[best]) ? k : best;
		const uint32_t i = pair->at[best];
		const double bytes = fmin(p->unsent[i], HD_TL_REORDER_CHUNK);
		if (pair->first < pair->end && pair->under_way + bytes > p->e->depth)
			return;
		if (pair->first == pair->end)
			pair->to_come = bytes;
		pair->way[pair->end++] = (struct played_chunk){ i, bytes };
		pair->under_way += bytes;
		p->unsent[i] -= bytes;
		if (p->unsent[i] <= 0)
			pair->at[best] = pair->at[--pair->n];
	}
}

void hd_tl_may_go(struct ends_play *p, uint32_t i)
{
	struct played_pair *pair = pair_of(p, i);

	p->state[i] = HD_TL_GOES;
	pair->at[pair->n++] = i;
	hand_over(p, pair);
}

/* The first chunk on its way is there. */
void hd_tl_chunk_came(struct ends_play *p, struct played_pair *pair)
{
	const struct played_chunk *chunk = &pair->way[pair->first++];
	const uint32_t i = chunk->of;

	pair->under_way -= chunk->bytes;
	pair->to_come = pair->first < pair->end ? chunk[1].bytes : 0;
	p->left[i] -= chunk->bytes;
	if (p->left[i] < 0.5) {
		p->state[i] = HD_TL_DONE;
		hd_tl_due_push(p, p->now + p->e->late, p->nmoved + p->nb * p->n + i);
	}
	hand_over(p, pair);
}
