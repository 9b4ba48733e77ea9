#include "engine/post.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sys/clock.h"
#include "plan/xfer.h"
#include "pipeline/schedule_check.h"
#include "engine/overlap.h"
#include "engine/parcel.h"
#include "engine/part_int.h"
#include "engine/worker_int.h"

/* A letter is queued by the thread of a device and taken by the thread of the wire. Locks are taken in this
 * order: a receiver's box, the post. */

enum { LOOK_NS = 1000000000 };            /* a wake-up is sent; the look is the bound that every wait has */

enum hd_err hd_post_make(struct hd_worker *w, struct hd_diag *diag)
{
	w->post = hd_arena_take(&w->arena, 1, sizeof *w->post);
	if (!w->post)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the mail of a worker");
	hd_lock_init(&w->post->lock);
	hd_cond_init(&w->post->cond);
	return HD_OK;
}

void hd_post_wait(struct hd_worker *w)
{
	(void)hd_cond_wait(&w->post->cond, &w->post->lock, hd_clock_now_ns(&w->clock) + LOOK_NS);
}

/* ---- the queue ---- */

/* Of cells. */
static uint32_t stage_of(const struct hd_pipe *pipe, const struct hd_mail_line *line)
{
	return line->stage + (line->shadow ? pipe->nstages : 0);
}

/* In a letter: rule 7. */
static uint32_t said_stage(const struct hd_pipe *pipe, const struct hd_mail_line *line, uint64_t step)
{
	return stage_of(pipe, line) + (pipe->overlaps && step % 2 ? pipe->nstages : 0);
}

struct hd_dist_letter hd_post_letter(const struct hd_pipe *pipe, const struct hd_mail_line *line, uint32_t vn,
	uint64_t step)
{
	return (struct hd_dist_letter){
		.kind = line->kind == HD_MAIL_ACT ? HD_XFER_ACTIVATIONS : HD_XFER_GRADIENTS,
		.send = line->out, .stage = (uint16_t)said_stage(pipe, line, step), .vn = vn, .step = step,
		.from = pipe->plan->worker[line->from], .to = pipe->plan->worker[line->to],
		.len = line->pool.bytes,
	};
}

/* Letters that were taken leave the queue. */
static void close_up(struct hd_post *post)
{
	post->len -= post->head;
	memmove(post->at, post->at + post->head, post->len * sizeof *post->at);
	post->head = 0;
}

void hd_post_queue(struct hd_post *post, const struct hd_dist_letter *letter)
{
	if (post->len == post->cap)
		close_up(post);
	assert(post->len < post->cap);    /* rule 4 */
	post->at[post->len] = *letter;
	post->at[post->len].step = post->step;
	post->at[post->len++].epoch = post->epoch;
	post->borrowed += letter->send;
}

/* Under the lock. */
static void queue(struct hd_pipe *pipe, struct hd_mail_line *line, uint32_t vn, uint8_t *bytes)
{
	struct hd_post *post = pipe->worker->post;
	struct hd_dist_letter letter = hd_post_letter(pipe, line, vn, post->step + (post->next == pipe));

	assert(post->pipe == pipe || post->next == pipe);
	letter.line = &line->pool;
	letter.bytes = bytes;
	hd_post_queue(post, &letter);
	post->at[post->len - 1].step = letter.step;
}

void hd_post_call(struct hd_worker *w)
{
	if (w->post->mailer)
		w->post->mailer(w->post->user);
}

/* Under the lock: the wire has no use for the letter any more. */
static void give_back(struct hd_worker *w, const struct hd_dist_letter *letter)
{
	struct hd_mail_pool *pool = letter->line;
	struct hd_post *post = w->post;

	if (!letter->send)
		return;
	assert(post->borrowed);
	post->borrowed--;
	if (letter->kind == HD_XFER_MOMENTS) {
		hd_meeting_given(w->meeting, letter);
	} else {
		assert(pool->nfree < pool->cap);
		pool->free[pool->nfree++] = letter->bytes;
	}
	hd_cond_wake(&post->cond);
}

/* ---- a step ---- */

/* `done`: rule 9. */
static bool stays(const struct hd_post *post, const struct hd_dist_letter *letter, bool done)
{
	if (letter->kind == HD_XFER_MOMENTS)
		return post->meeting || (done && letter->send);
	return letter->step == post->step ? post->pipe != NULL : post->next != NULL;
}

/* Under the lock: letters of what is open stay, all others go back; calls that look at a pipe have ended. */
static void sweep(struct hd_worker *w, bool done)
{
	struct hd_post *post = w->post;
	uint32_t n = 0;

	for (; post->head < post->len; post->head++) {
		const struct hd_dist_letter letter = post->at[post->head];
		if (stays(post, &letter, done))
			post->at[n++] = letter;
		else
			give_back(w, &letter);
	}
	post->head = 0;
	post->len = n;
	while (post->inside)
		hd_post_wait(w);
}

void hd_post_finish(struct hd_worker *w)
{
	if (!w->post)
		return;
	hd_lock_take(&w->post->lock);
	sweep(w, false);
	hd_lock_give(&w->post->lock);
	assert(w->post->borrowed == 0);
	free(w->post->at);
	hd_cond_finish(&w->post->cond);
	hd_lock_finish(&w->post->lock);
}

void hd_post_offer(struct hd_pipe *pipe, uint32_t iline)
{
	struct hd_mail_line *line = &pipe->line[iline];
	struct hd_worker *w = pipe->worker;

	if (line->next == line->n)
		return;
	const uint32_t vn = line->vn[line->next++];
	struct hd_cell *cell = hd_cell_of(pipe, stage_of(pipe, line), vn);
	struct hd_mail_pool *pool = &cell->seat->mail[line->kind];
	assert(pool->nfree && !cell->mail[line->kind]);           /* pipe.h, rule 2 */
	cell->mail[line->kind] = pool->free[--pool->nfree];
	cell->from[line->kind] = (uint16_t)line->from;
	cell->seat->unused[line->kind][line->from]++;
	hd_lock_take(&w->post->lock);
	queue(pipe, line, vn, cell->mail[line->kind]);
	hd_lock_give(&w->post->lock);
	hd_post_call(w);
}

static void offer_first(struct hd_pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->nlines; i++) {
		struct hd_mail_line *line = &pipe->line[i];
		line->next = 0;
		if (line->out)
			continue;
		struct hd_lock *lock = &pipe->box[pipe->device_of[line->to]].lock;
		hd_lock_take(lock);
		for (uint32_t k = 0; k < (line->shadow || pipe->before ? line->n : HD_CREDITS); k++)
			hd_post_offer(pipe, i);
		hd_lock_give(lock);
	}
}

/* Under the lock. */
static void open_pipe(struct hd_post *post, struct hd_pipe **at, struct hd_pipe *pipe)
{
	*at = pipe;
	if (post->epoch < post->fence)
		atomic_store(&pipe->fenced, true);
}

void hd_post_begin(struct hd_pipe *pipe)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	assert(!post->pipe && !post->meeting && !post->next);
	sweep(pipe->worker, false);
	post->step = (uint64_t)pipe->worker->count.step;
	open_pipe(post, &post->pipe, pipe);
	hd_lock_give(&post->lock);
	offer_first(pipe);
}

void hd_post_ahead(struct hd_pipe *pipe)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	assert(post->pipe && post->pipe != pipe && !post->next);
	open_pipe(post, &post->next, pipe);
	hd_lock_give(&post->lock);
	offer_first(pipe);
}

void hd_post_go_on(struct hd_pipe *pipe)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	assert(!post->pipe && post->next == pipe);
	post->pipe = pipe;
	post->next = NULL;
	post->step++;
	assert(post->step == (uint64_t)pipe->worker->count.step);
	hd_lock_give(&post->lock);
}

void hd_post_open(struct hd_post *post, struct hd_meeting_part *part, uint64_t step)
{
	assert(!post->pipe && !post->meeting && !post->next);
	post->meeting = part;
	post->step = step;
	part->fenced = post->epoch < post->fence;
}

void hd_post_end(struct hd_worker *w, bool done, bool ahead)
{
	hd_lock_take(&w->post->lock);
	w->post->pipe = NULL;
	w->post->meeting = NULL;
	if (!ahead)
		w->post->next = NULL;
	sweep(w, done);
	hd_lock_give(&w->post->lock);
}

void hd_post_drop(struct hd_worker *w)
{
	hd_lock_take(&w->post->lock);
	if (w->post->next) {
		w->post->next = NULL;
		sweep(w, false);
	}
	hd_lock_give(&w->post->lock);
}

void hd_post_await(struct hd_pipe *pipe, const struct hd_mail_pool *pool, uint32_t n)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	while (pool->nfree < n)
		hd_post_wait(pipe->worker);
	hd_lock_give(&post->lock);
}

void hd_post_wake(struct hd_pipe *pipe)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	hd_cond_wake(&post->cond);
	hd_lock_give(&post->lock);
}

uint8_t *hd_post_place(struct hd_pipe *pipe, const struct hd_cell *cell, enum hd_mail kind)
{
	struct hd_post *post = pipe->worker->post;
	struct hd_mail_pool *pool = &pipe->line[cell->line[kind]].pool;
	uint8_t *place = NULL;

	hd_lock_take(&post->lock);
	while (pool->nfree == 0 && !atomic_load(&pipe->fenced) && !hd_post_called(pipe))
		hd_post_wait(pipe->worker);
	if (pool->nfree && !atomic_load(&pipe->fenced))
		place = pool->free[--pool->nfree];
	hd_lock_give(&post->lock);
	return place;
}

void hd_post_put(struct hd_pipe *pipe, const struct hd_cell *cell, enum hd_mail kind, uint32_t vn,
	uint8_t *buffer)
{
	struct hd_post *post = pipe->worker->post;

	hd_lock_take(&post->lock);
	queue(pipe, &pipe->line[cell->line[kind]], vn, buffer);
	hd_lock_give(&post->lock);
	hd_post_call(pipe->worker);
}

/* ---- running ahead: rule 8 ---- */

void hd_post_roam(struct hd_worker *w, uint32_t seen)
{
	atomic_store(&w->post->seen, seen);
	atomic_store(&w->post->roams, true);
}

void hd_post_settle(struct hd_worker *w) { atomic_store(&w->post->roams, false); }

bool hd_post_called(const struct hd_pipe *pipe)
{
	const struct hd_post *post = pipe->worker->post;

	return atomic_load(&post->roams) && atomic_load(&post->calls) != atomic_load(&post->seen);
}

uint32_t hd_dist_calls(const struct hd_worker *w) { return atomic_load(&w->post->calls); }

/* ---- the thread of the wire ---- */

void hd_dist_mail_watch(struct hd_worker *w, hd_dist_mailer *mailer, void *user)
{
	w->post->mailer = mailer;
	w->post->user = user;
}

bool hd_dist_mail_next(struct hd_worker *w, struct hd_dist_letter *letter)
{
	struct hd_post *post = w->post;

	hd_lock_take(&post->lock);
	const bool is = post->head < post->len;
	if (is)
		*letter = post->at[post->head++];
	hd_lock_give(&post->lock);
	return is;
}

void hd_dist_mail_sent(struct hd_worker *w, const struct hd_dist_letter *letter)
{
	hd_lock_take(&w->post->lock);
	give_back(w, letter);
	hd_lock_give(&w->post->lock);
}

static void void_lines(struct hd_pipe *pipe)
{
	for (uint32_t k = 0; k < pipe->nlines; k++) {
		struct hd_mail_line *line = &pipe->line[k];
		for (line->pool.nfree = 0; line->pool.nfree < line->ntaken; line->pool.nfree++)
			line->pool.free[line->pool.nfree] = line->memory[line->pool.nfree];
	}
}

void hd_dist_mail_void(struct hd_worker *w)
{
	hd_lock_take(&w->post->lock);
	for (size_t i = 0; i < 2; i++) {
		const struct hd_overlap *overlap = w->parts->of[i].work.overlap;
		struct hd_pipe *pipe = hd_overlap_tables(&w->parts->of[i].work);
		if (overlap)
			void_lines(overlap->pipe[1]);
		for (struct hd_pipe *of = pipe; of; of = of->before)
			void_lines(of);
		if (pipe)
			hd_parcel_void(pipe);
	}
	if (w->meeting)
		hd_meeting_void(w->meeting);
	w->post->borrowed = 0;
	w->post->head = w->post->len = 0;
	hd_cond_wake(&w->post->cond);
	hd_lock_give(&w->post->lock);
}

/* The pipe of that step, if it is open, which does not end before leave(). NULL: none. */
static struct hd_pipe *enter(struct hd_post *post, uint64_t step)
{
	hd_lock_take(&post->lock);
	struct hd_pipe *pipe = step == post->step ? post->pipe : step == post->step + 1 ? post->next : NULL;
	post->inside += pipe != NULL;
	hd_lock_give(&post->lock);
	return pipe;
}

static void leave(struct hd_post *post)
{
	hd_lock_take(&post->lock);
	if (--post->inside == 0)
		hd_cond_wake(&post->cond);
	hd_lock_give(&post->lock);
}

/* How many stages letters may name; the cell that one of them means. */
static uint32_t said_stages(const struct hd_pipe *pipe)
{
	return pipe->overlaps ? 2 * pipe->nstages : (uint32_t)(pipe->ncells / pipe->nvns);
}

static struct hd_cell *cell_of(const struct hd_pipe *pipe, const struct hd_dist_letter *letter)
{
	return hd_cell_of(pipe, pipe->overlaps ? letter->stage % pipe->nstages : letter->stage, letter->vn);
}

/* Is that buffer the one that the cell waits for? */
static bool is_awaited(const struct hd_pipe *pipe, const struct hd_dist_letter *letter, enum hd_mail kind)
{
	const struct hd_cell *cell = cell_of(pipe, letter);

	return cell->seat && cell->line[kind] != HD_NONE && cell->mail[kind] == letter->bytes &&
		letter->bytes && !cell->here[kind];
}

static enum hd_err moments_arrived(struct hd_worker *w, const struct hd_dist_letter *letter,
	struct hd_diag *diag)
{
	struct hd_post *post = w->post;

	hd_lock_take(&post->lock);
	enum hd_err err = post->meeting ? hd_meeting_arrived(w->meeting, post->meeting, letter) : HD_E_STALE;
	if (!err)
		hd_cond_wake(&post->cond);
	hd_lock_give(&post->lock);
	return err ? hd_fail(diag, err, "what worker %u brings to meeting %u is not awaited", letter->from,
		letter->stage) : HD_OK;
}

enum hd_err hd_dist_mail_arrived(struct hd_worker *w, const struct hd_dist_letter *letter,
	struct hd_diag *diag)
{
	if (letter->kind == HD_XFER_MOMENTS)
		return moments_arrived(w, letter, diag);
	const enum hd_mail kind = letter->kind == HD_XFER_ACTIVATIONS ? HD_MAIL_ACT : HD_MAIL_GRAD;
	struct hd_pipe *pipe = enter(w->post, letter->step);
	bool is = false;

	if (!pipe)
		return hd_fail(diag, HD_E_STALE, "mail of stage %u arrived between two steps", letter->stage);
	if (letter->kind == HD_XFER_SHARDS)
		is = hd_parcel_arrived(pipe, letter);
	else if (letter->stage < said_stages(pipe) && letter->vn < pipe->nvns) {
		struct hd_cell *cell = cell_of(pipe, letter);
		struct hd_lock *lock = cell->seat ? &pipe->box[cell->seat->device].lock : NULL;
		if (lock)
			hd_lock_take(lock);
		is = is_awaited(pipe, letter, kind);
		if (lock)
			hd_lock_give(lock);
		if (is)
			hd_mail_put(pipe, cell, kind);
	}
	leave(w->post);
	return is ? HD_OK : hd_fail(diag, HD_E_STALE,
		"mail of stage %u, virtual node %u, is not awaited in this step", letter->stage, letter->vn);
}

void hd_dist_fence(struct hd_worker *w, uint32_t epoch)
{
	struct hd_pipe *pipe[2];

	hd_lock_take(&w->post->lock);
	pipe[0] = w->post->pipe;
	pipe[1] = w->post->next;
	w->post->inside += (pipe[0] ? 1u : 0) + (pipe[1] ? 1u : 0);
	w->post->fence = epoch > w->post->fence ? epoch : w->post->fence;
	const bool stale = w->post->epoch < w->post->fence;
	if (w->post->meeting && stale) {
		w->post->meeting->fenced = true;
		hd_cond_wake(&w->post->cond);
	}
	hd_lock_give(&w->post->lock);
	for (int i = 0; i < 2; i++) {
		if (!pipe[i])
			continue;
		if (stale)
			hd_pipe_fence(pipe[i]);
		leave(w->post);
	}
}

/* Whoever waits has seen that it was called, or is woken: it looks under the lock that waking takes. */
void hd_dist_call(struct hd_worker *w)
{
	struct hd_post *post = w->post;

	atomic_fetch_add(&post->calls, 1);
	if (!atomic_load(&post->roams))
		return;
	hd_lock_take(&post->lock);
	struct hd_pipe *pipe = post->next;
	post->inside += pipe != NULL;
	hd_lock_give(&post->lock);
	if (!pipe)
		return;
	hd_mail_wake(pipe);
	hd_post_wake(pipe);
	leave(post);
}

void hd_dist_epoch(struct hd_worker *w, uint32_t epoch)
{
	hd_lock_take(&w->post->lock);
	assert(!w->post->pipe && !w->post->meeting && (!w->post->next || epoch == w->post->epoch));
	if (epoch != w->post->epoch)
		sweep(w, false);
	w->post->epoch = epoch;
	hd_lock_give(&w->post->lock);
}
