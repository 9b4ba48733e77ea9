/* Boxes of two ranks in one thread: what would wait for ever is not asked for. */
#include <string.h>

#include "pipeline/schedule_check.h"
#include "engine/pipe.h"
#include "engine/post.h"
#include "engine/worker_int.h"
#include "tests/check.h"

enum { SENDER, RECEIVER, RANKS, BUFFERS = HD_CREDITS + 2 };

struct world {
	struct hd_pipe pipe;
	struct hd_worker worker;
	struct hd_post post;
	struct hd_mailbox box[RANKS];
	struct hd_seat seat;
	struct hd_cell cell[BUFFERS];
	uint8_t bytes[BUFFERS], *free[BUFFERS], unused[RANKS];
};

static void enter(struct world *w)
{
	*w = (struct world){ .seat = { .rank = RECEIVER } };
	w->pipe.box = w->box;
	w->pipe.nranks = RANKS;
	w->pipe.worker = &w->worker;
	w->worker.post = &w->post;
	hd_lock_init(&w->post.lock);
	hd_cond_init(&w->post.cond);
	for (int r = 0; r < RANKS; r++) {
		hd_lock_init(&w->box[r].lock);
		hd_cond_init(&w->box[r].cond);
	}
	for (int i = 0; i < BUFFERS; i++) {
		w->free[i] = &w->bytes[i];
		w->cell[i].seat = &w->seat;
		w->cell[i].line[HD_MAIL_ACT] = w->cell[i].line[HD_MAIL_GRAD] = HD_NONE;
	}
	w->seat.mail[HD_MAIL_ACT] = (struct hd_mail_pool){ w->free, BUFFERS, BUFFERS, 1 };
	w->seat.unused[HD_MAIL_ACT] = w->unused;
}

static void leave(struct world *w)
{
	hd_cond_finish(&w->post.cond);
	hd_lock_finish(&w->post.lock);
	for (int r = 0; r < RANKS; r++) {
		hd_cond_finish(&w->box[r].cond);
		hd_lock_finish(&w->box[r].lock);
	}
}

static uint8_t *place(struct world *w, int cell, uint32_t from)
{
	return hd_mail_place(&w->pipe, &w->cell[cell], HD_MAIL_ACT, from);
}
static void use(struct world *w, int cell) { hd_mail_used(&w->pipe, &w->cell[cell], HD_MAIL_ACT); }
static void give(struct world *w, int cell) { hd_mail_give(&w->pipe, &w->cell[cell], HD_MAIL_ACT); }
static bool comes(struct world *w, int cell)
{
	hd_mail_put(&w->pipe, &w->cell[cell], HD_MAIL_ACT);
	return hd_mail_wait(&w->pipe, &w->cell[cell], HD_MAIL_ACT);
}

static void a_buffer_is_one_cells_until_it_is_given_back(void **state)
{
	struct world w;

	(void)state;
	enter(&w);
	uint8_t *first = place(&w, 0, SENDER), *second = place(&w, 1, SENDER);
	assert_true(first && second && first != second);
	assert_int_equal(w.unused[SENDER], 2);
	use(&w, 0);                               /* it has not come:
		there is nothing to use or to give back */
	give(&w, 0);
	assert_int_equal(w.unused[SENDER], 2);
	assert_int_equal(w.seat.mail[HD_MAIL_ACT].nfree, BUFFERS - 2);
	assert_true(comes(&w, 0));
	assert_ptr_equal(w.cell[0].taken[HD_MAIL_ACT], first);
	use(&w, 0);
	assert_int_equal(w.unused[SENDER], 1);
	give(&w, 0);
	assert_null(w.cell[0].taken[HD_MAIL_ACT]);
	assert_int_equal(w.seat.mail[HD_MAIL_ACT].nfree, BUFFERS - 1);
	give(&w, 0);                              /* again: it is another's by now */
	assert_int_equal(w.seat.mail[HD_MAIL_ACT].nfree, BUFFERS - 1);
	assert_ptr_equal(place(&w, 2, SENDER), first);
	leave(&w);
}

/* A rank that hands a tensor to itself waits for no credit, and need not wait for it to come. */
static void what_a_rank_sends_itself_counts_no_credit(void **state)
{
	struct world w;

	(void)state;
	enter(&w);
	for (int i = 0; i < HD_CREDITS + 1; i++) {
		assert_non_null(place(&w, i, RECEIVER));
		hd_mail_put(&w.pipe, &w.cell[i], HD_MAIL_ACT);
		assert_non_null(w.cell[i].taken[HD_MAIL_ACT]);
		assert_int_equal(w.unused[RECEIVER], 0);
	}
	use(&w, 0);
	assert_int_equal(w.unused[RECEIVER], 0);
	assert_non_null(place(&w, HD_CREDITS + 1, SENDER));
	hd_mail_put(&w.pipe, &w.cell[HD_CREDITS + 1], HD_MAIL_ACT);
	assert_null(w.cell[HD_CREDITS + 1].taken[HD_MAIL_ACT]);       /* until its receiver has asked */
	leave(&w);
}

/* Behind a fence there is no buffer for a sender, with credit or without, and no wait. */
static void a_fence_ends_every_wait(void **state)
{
	struct world w;

	(void)state;
	enter(&w);
	for (int i = 0; i < HD_CREDITS; i++)
		assert_non_null(place(&w, i, SENDER));
	assert_true(comes(&w, 0));
	hd_pipe_fence(&w.pipe);
	assert_null(place(&w, HD_CREDITS, SENDER));
	assert_null(place(&w, HD_CREDITS, RECEIVER));
	assert_int_equal(w.unused[SENDER], HD_CREDITS);
	assert_int_equal(w.seat.mail[HD_MAIL_ACT].nfree, BUFFERS - HD_CREDITS);
	assert_false(hd_mail_wait(&w.pipe, &w.cell[1], HD_MAIL_ACT));
	assert_null(w.cell[1].taken[HD_MAIL_ACT]);
	assert_true(hd_mail_wait(&w.pipe, &w.cell[0], HD_MAIL_ACT));         /* what is here is here */
	leave(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_one_cells_until_it_is_given_back),
		cmocka_unit_test(what_a_rank_sends_itself_counts_no_credit),
		cmocka_unit_test(a_fence_ends_every_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
