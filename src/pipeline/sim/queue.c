#include "pipeline/sim/queue.h"

#include <string.h>

static bool before(const struct queue_event *a, const struct queue_event *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->number != b->number ? a->number < b->number : a->serial < b->serial;
}

static bool grow(struct sim_queue *q)
{
	uint32_t cap = q->cap ? 2 * q->cap : 256;
	struct queue_event *heap = hd_arena_take(q->arena, cap, sizeof *heap);

	if (!heap)
		return false;
	if (q->n)
		memcpy(heap, q->heap, q->n * sizeof *heap);
	q->heap = heap;
	q->cap = cap;
	return true;
}

void hd_sim_queue_put(struct sim_queue *q, struct queue_event event)
{
	if (q->n == q->cap && !grow(q)) {
		q->full = true;
		return;
	}
	uint32_t i = q->n++;
	for (; i && before(&event, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = event;
}

bool hd_sim_queue_take(struct sim_queue *q, struct queue_event *event)
{
	if (q->n == 0)
		return false;
	*event = q->heap[0];
	struct queue_event last = q->heap[--q->n];
	uint32_t i = 0;
	for (uint32_t child; (child = 2 * i + 1) < q->n; i = child) {
		child += child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]);
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
	}
	q->heap[i] = last;
	return true;
}
