#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "sys/clock.h"
#include "pipeline/schedule_check.h"
#include "engine/post.h"
#include "engine/worker_int.h"

/* Tensors between ranks: a buffer of the receiver, filled by the sender, under the receiver's lock. */

enum { LOOK_NS =
	1000000000 };            /* a wake-up is sent; the look is only the bound that every wait has */

static int64_t in_a_while(void)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	return hd_clock_now_ns(&clock) + LOOK_NS;
}

static struct hd_mailbox *box_of(struct hd_pipe *pipe, const struct hd_cell *cell)
{
	return &pipe->box[cell->seat->device];
}

/* Whoever fences has failed before: that is seen, too. */
static bool is_fenced(struct hd_pipe *pipe) { return atomic_load_explicit(&pipe->fenced,
	memory_order_acquire); }

static bool ends_waits(struct hd_pipe *pipe) { return is_fenced(pipe) || hd_post_called(pipe); }

uint8_t *hd_mail_place(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind, uint32_t from)
{
	struct hd_seat *seat = cell->seat;
	struct hd_mailbox *box = box_of(pipe, cell);
	/* to a shadow a send never waits (pipe.h, rule 7) */
	const bool own = from == seat->rank || seat->shadow || pipe->before;

	uint8_t *place = NULL;

	hd_lock_take(&box->lock);
	while (!own && seat->unused[kind][from] == HD_CREDITS && !ends_waits(pipe))
		hd_cond_wait(&box->cond, &box->lock, in_a_while());
	if (!is_fenced(pipe) && (own || seat->unused[kind][from] < HD_CREDITS)) {
		struct hd_mail_pool *pool = &seat->mail[kind];
		assert(pool->nfree);              /* rule 2 */
		assert(!cell->mail[kind]);
		cell->mail[kind] = place = pool->free[--pool->nfree];
		cell->from[kind] = (uint16_t)from;
		seat->unused[kind][from] = (uint8_t)(seat->unused[kind][from] + !own);
	}
	hd_lock_give(&box->lock);
	return place;
}

void hd_mail_put(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind)
{
	struct hd_mailbox *box = box_of(pipe, cell);

	hd_lock_take(&box->lock);
	cell->here[kind] = true;
	if (cell->from[kind] == cell->seat->rank)
		cell->taken[kind] = cell->mail[kind];     /* nothing waits for it */
	hd_cond_wake(&box->cond);
	hd_lock_give(&box->lock);
}

bool hd_mail_wait(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind)
{
	struct hd_mailbox *box = box_of(pipe, cell);

	hd_lock_take(&box->lock);
	while (!cell->here[kind] && !ends_waits(pipe))
		hd_cond_wait(&box->cond, &box->lock, in_a_while());
	bool here = cell->here[kind];
	cell->taken[kind] = here ? cell->mail[kind] : NULL;
	hd_lock_give(&box->lock);
	return here;
}

void hd_mail_used(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind)
{
	struct hd_mailbox *box = box_of(pipe, cell);
	struct hd_seat *seat = cell->seat;

	if (!cell->taken[kind] || cell->from[kind] == seat->rank || seat->shadow || pipe->before)
		return;
	hd_lock_take(&box->lock);
	assert(seat->unused[kind][cell->from[kind]]);
	seat->unused[kind][cell->from[kind]]--;
	if (cell->line[kind] != HD_NONE)
		hd_post_offer(pipe, cell->line[kind]);
	hd_cond_wake(&box->cond);
	hd_lock_give(&box->lock);
}

void hd_mail_give(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind)
{
	struct hd_mailbox *box = box_of(pipe, cell);
	struct hd_mail_pool *pool = &cell->seat->mail[kind];

	if (!cell->taken[kind])
		return;
	hd_lock_take(&box->lock);
	assert(pool->nfree < pool->cap);
	pool->free[pool->nfree++] = cell->mail[kind];
	cell->mail[kind] = NULL;
	cell->taken[kind] = NULL;
	hd_lock_give(&box->lock);
}

void hd_mail_wake(struct hd_pipe *pipe)
{
	for (uint32_t r = 0; r < pipe->ndevices; r++) {
		hd_lock_take(&pipe->box[r].lock);
		hd_cond_wake(&pipe->box[r].cond);
		hd_lock_give(&pipe->box[r].lock);
	}
}

void hd_pipe_fence(struct hd_pipe *pipe)
{
	atomic_store(&pipe->fenced, true);
	hd_mail_wake(pipe);
	hd_tensor_wake(pipe);
	hd_post_wake(pipe);
}

bool hd_pipe_is_stale(const struct hd_pipe *pipe)
{
	return pipe->worker->step->section != HD_SECTION_FINISH &&
		atomic_load_explicit(&pipe->fenced, memory_order_acquire);
}
