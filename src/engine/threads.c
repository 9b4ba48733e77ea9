#include "engine/worker_int.h"

#include <stdio.h>

#include "sys/lock.h"
#include "engine/pipe.h"

/* The threads of a worker's ranks: all begin an activity together, meet inside it, and end together. */

struct hd_threads {
	struct hd_barrier barrier;
	/* one activity of all ranks between two meetings */
	void (*activity)(struct hd_rank *rank);
	bool stopping, launched;          /* launched: all ranks exist (or none will); under launch_lock */
	struct hd_lock launch_lock;
	struct hd_cond launch_cond;
	atomic_bool failed;
};

/* a wake-up is sent; the look is only the bound that every wait has */
enum { HD_LAUNCH_LOOK_NS = 1000000000 };

void hd_rank_fail(struct hd_rank *rank, enum hd_err err)
{
	if (!rank->err)
		rank->err = err;
	atomic_store(&rank->worker->threads->failed, true);
}

/* The barrier counts all ranks, so none may come to it before all exist: a thread that could
 * not be started would leave the others waiting for ever. False: the launch was called off. */
static bool await_launch(struct hd_worker *w)
{
	struct hd_threads *t = w->threads;

	hd_lock_take(&t->launch_lock);
	while (!t->launched)
		hd_cond_wait(&t->launch_cond, &t->launch_lock,
			hd_clock_now_ns(&w->clock) + HD_LAUNCH_LOOK_NS);
	hd_lock_give(&t->launch_lock);
	return !t->stopping;
}

static void launch(struct hd_threads *t, bool go)
{
	hd_lock_take(&t->launch_lock);
	t->launched = true;
	t->stopping = !go;
	hd_cond_wake(&t->launch_cond);
	hd_lock_give(&t->launch_lock);
}

static void rank_main(void *user)
{
	struct hd_rank *rank = user;
	struct hd_worker *w = rank->worker;
	struct hd_threads *t = w->threads;

	if (!await_launch(w))
		return;
	for (;;) {
		hd_barrier_wait(&t->barrier);
		if (t->stopping)
			return;
		t->activity(rank);
		hd_barrier_wait(&t->barrier);
	}
}

enum hd_err hd_worker_all(struct hd_worker *w, void (*activity)(struct hd_rank *rank), struct hd_diag *diag)
{
	struct hd_threads *t = w->threads;

	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		w->rank[r].err = HD_OK;
		w->rank[r].diag.text[0] = 0;
	}
	atomic_store(&t->failed, false);
	t->activity = activity;
	hd_barrier_wait(&t->barrier);
	activity(&w->rank[0]);
	hd_barrier_wait(&t->barrier);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		if (w->rank[r].err)
			return hd_fail(diag, w->rank[r].err, "%s",
				w->rank[r].diag.text[0] ? w->rank[r].diag.text : hd_err_text(w->rank[r].err));
	return HD_OK;
}

/* What a library keeps per thread is taken now, not in the first step. */
static void warm_up(struct hd_rank *rank)
{
	const struct hd_bind nothing = { .rows = 0 };
	uint64_t token = 0;
	enum hd_err err = rank->device->ops->run(rank->device, &rank->worker->stage->train, HD_RUN_F,
		&nothing,
		&token, &rank->diag);

	if (err)
		hd_rank_fail(rank, err);
}

enum hd_err hd_threads_start(struct hd_worker *w, bool spin, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	char name[16];

	hd_barrier_init(&w->threads->barrier, w->spec.ndevices, spin);
	for (uint32_t r = 1; r < w->spec.ndevices && !err; r++) {
		snprintf(name, sizeof name, "dev %u", r);
		err = hd_thread_start(&w->rank[r].thread, name, -1, rank_main, &w->rank[r], diag);
	}
	launch(w->threads, !err);
	return err ? err : hd_worker_all(w, warm_up, diag);
}

void hd_threads_stop(struct hd_worker *w)
{
	struct hd_threads *t = w->threads;

	bool meeting = t->launched && !t->stopping && w->spec.ndevices > 1;

	t->stopping = true;
	if (meeting)
		hd_barrier_wait(&t->barrier);
	for (uint32_t r = 1; r < w->spec.ndevices && w->rank; r++)
		hd_thread_join(&w->rank[r].thread);
}

enum hd_err hd_threads_make(struct hd_worker *w, struct hd_diag *diag)
{
	w->threads = hd_arena_take(&w->arena, 1, sizeof *w->threads);
	if (!w->threads)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the threads of a worker");
	hd_lock_init(&w->threads->launch_lock);
	hd_cond_init(&w->threads->launch_cond);
	return HD_OK;
}

void hd_threads_finish(struct hd_worker *w)
{
	hd_cond_finish(&w->threads->launch_cond);
	hd_lock_finish(&w->threads->launch_lock);
}

bool hd_rank_idle(const struct hd_rank *rank)
{
	const struct hd_pipe *pipe = rank->worker->step->work ? rank->worker->step->work->pipe : NULL;

	return atomic_load_explicit(&rank->worker->threads->failed, memory_order_relaxed) ||
		(pipe && hd_pipe_is_stale(pipe));
}

void hd_ranks_meet(struct hd_worker *w) { hd_barrier_wait(&w->threads->barrier); }
