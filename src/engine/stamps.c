#include "engine/stamps.h"

#include <assert.h>
#include <string.h>

#include "checkpoint/ckpt.h"
#include "engine/closing.h"
#include "engine/fore.h"
#include "engine/lockstep.h"
#include "engine/stale.h"
#include "engine/worker_int.h"

enum { WORD = 32 };
#define MOST_BYTES (UINT64_C(1) << 28)    /* state that every digest hashes */

bool hd_stamps_kept(const struct hd_job *job)
{
	const int64_t mode = hd_job_int(job, HD_JOB_MODE);

	return mode == HD_MODE_BOUNDED || mode == HD_MODE_REPLAY;
}

uint32_t hd_stamps_bound(const struct hd_job *job)
{
	return hd_stamps_kept(job) ? (uint32_t)hd_job_int(job, HD_JOB_STALENESS) : 0;
}

/* Of one age, 0 to S + 1. */
static uint32_t bits_of(const struct hd_job *job)
{
	uint32_t bits = 1;

	while ((1u << bits) < hd_stamps_bound(job) + 2)
		bits++;
	return bits;
}

static uint32_t per_word(const struct hd_job *job) { return WORD / bits_of(job); }
static uint64_t words_of(const struct hd_job *job) { return (job->nvns + per_word(job) - 1) / per_word(job); }

static uint32_t age_in(const struct hd_job *job, uint32_t word, uint32_t i)
{
	return word >> i % per_word(job) * bits_of(job) & ((1u << bits_of(job)) - 1);
}

/* Of a step: syncs, and the versions that were pinned. */
static uint32_t rows_of(const struct hd_graph *graph, const struct hd_job *job)
{
	return hd_lockstep_meetings(graph) + (hd_stamps_bound(job) > 0);
}

uint64_t hd_stamps_said(const struct hd_graph *graph, const struct hd_job *job)
{
	return hd_stamps_kept(job) ? rows_of(graph, job) * words_of(job) : 0;
}

/* Ages of one step, in words. */
static uint64_t step_words(const struct hd_task *task)
{
	return hd_stamps_said(&task->train, task->job) * task->job->nvns;
}

uint64_t hd_stamps_bytes(const struct hd_task *task)
{
	return task->nsteps * step_words(task) * sizeof(uint32_t);
}

/* Divided, for the product may be more than fits 64 bits. */
enum hd_err hd_stamps_allowed(const struct hd_task *task, struct hd_diag *diag)
{
	const uint64_t words = step_words(task);

	if (!words || task->nsteps <= MOST_BYTES / sizeof(uint32_t) / words)
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED, "batch.mode %s: to record which rows were late in %llu steps of "
		"%u virtual nodes takes more than %d MiB: use fewer of both, or mode sync",
		hd_job_text(task->job, HD_JOB_MODE), (unsigned long long)task->nsteps, task->job->nvns,
		(int)(MOST_BYTES >> 20));
}

static uint64_t nsets_of(const struct hd_worker *w) { return w->stage->lockstep.nsets; }

enum hd_err hd_stamps_take(struct hd_worker *w, struct hd_diag *diag)
{
	const uint64_t n = nsets_of(w) * hd_lockstep_meetings(&w->task->train), nvns = w->task->job->nvns;
	struct hd_stamps *s;

	if (!hd_stamps_kept(w->task->job))
		return HD_OK;
	s = hd_arena_take(&w->arena, 1, sizeof *s);
	if (s) {
		s->brought = hd_arena_take(&w->arena, n * nvns + 1, sizeof *s->brought);
		s->nranks = hd_arena_take(&w->arena, n + 1, sizeof *s->nranks);
		s->late = hd_arena_take(&w->arena, hd_stamps_bytes(w->task) + 1, 1);
	}
	if (!s || !s->brought || !s->nranks || !s->late)
		return hd_fail(diag, HD_E_NOMEM, "no memory to record which rows were late in %llu steps of "
			"%llu virtual nodes", (unsigned long long)w->task->nsteps, (unsigned long long)nvns);
	w->stage->lockstep.stamps = s;
	return HD_OK;
}

enum hd_err hd_stamps_table(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_task *t = w->task;

	if (!hd_stamps_kept(t->job))
		return HD_OK;
	return hd_state_add(&w->state, &(struct hd_state_entry){ .name = "stamps", .dtype = HD_I32, .rank = 4,
		.dim = { (int64_t)t->nsteps, rows_of(&t->train, t->job), (int64_t)t->job->nvns,
			(int64_t)words_of(t->job) },
		.key = HD_KEY_TENSOR, .merge = HD_MERGE_NONE, .group = HD_STATE_OPTIM,
		.at = w->stage->lockstep.stamps->late, .len_bytes = hd_stamps_bytes(t) }, diag);
}

/* ---- a pass ---- */

bool hd_stamps_run_free(const struct hd_worker *w)
{
	return hd_job_int(w->task->job, HD_JOB_MODE) == HD_MODE_BOUNDED && !hd_stale_none(w) &&
		!hd_closing_closed(w);
}

void hd_stamps_clear(struct hd_worker *w)
{
	struct hd_stamps *s = w->stage->lockstep.stamps;
	const uint64_t n = nsets_of(w) * hd_lockstep_meetings(&w->task->train), nvns = w->task->job->nvns;

	for (uint64_t i = 0; s && i < n * nvns; i++)
		atomic_store_explicit(&s->brought[i], 0, memory_order_relaxed);
	for (uint64_t i = 0; s && i < n; i++)
		atomic_store_explicit(&s->nranks[i], 0, memory_order_relaxed);
}

static atomic_uint *nranks_of(const struct hd_worker *w, uint32_t sync, uint64_t step)
{
	return &w->stage->lockstep.stamps->nranks[step % nsets_of(w) * hd_lockstep_meetings(&w->task->train) +
		sync];
}

/* No rank is that far yet. Marks say of which step they are. */
void hd_stamps_begin(struct hd_worker *w)
{
	const uint32_t n = hd_lockstep_meetings(&w->task->train);

	if (!hd_fore_runs(w)) {
		hd_stamps_clear(w);
		return;
	}
	for (uint32_t k = 0; k < n; k++)
		atomic_store_explicit(nranks_of(w, k, (uint64_t)w->count.step + hd_fore_steps(w->task->job)),
			0, memory_order_relaxed);
}

static _Atomic uint64_t *mark_of(const struct hd_worker *w, const struct hd_sync *sync, uint32_t vn,
	uint64_t step)
{
	const uint64_t at = step % nsets_of(w) * hd_lockstep_meetings(&w->task->train) + sync->number;

	return &w->stage->lockstep.stamps->brought[at * w->task->job->nvns + vn];
}

void hd_stamps_mark(struct hd_worker *w, const struct hd_sync *sync, uint32_t vn, uint64_t step)
{
	atomic_store_explicit(mark_of(w, sync, vn, step), step + 1, memory_order_release);
}

static bool is_here(const struct hd_worker *w, const struct hd_sync *sync, uint32_t vn, uint64_t step)
{
	return atomic_load_explicit(mark_of(w, sync, vn, step), memory_order_acquire) == step + 1;
}

bool hd_stamps_last(struct hd_rank *rank, const struct hd_sync *sync)
{
	atomic_uint *n = nranks_of(rank->worker, sync->number, hd_rank_step(rank));

	return atomic_fetch_add_explicit(n, 1, memory_order_acq_rel) + 1 == rank->worker->spec.ndevices;
}

bool hd_stamps_all(const struct hd_worker *w, const struct hd_sync *sync)
{
	return atomic_load(nranks_of(w, sync->number, (uint64_t)w->count.step)) == w->spec.ndevices;
}

/* The words of a reader at a sync, in what its leaf says: whole numbers below 2^32. */
static double *said(const struct hd_rank *rank, uint32_t sync, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;

	return hd_fore_said(rank, vn) + w->stage->lockstep.stamps->said_at + sync * words_of(w->task->job);
}

/* Where the words of a reader are in those of all steps. */
static uint64_t recorded_at(const struct hd_worker *w, uint64_t step, uint32_t sync, uint32_t vn)
{
	return step * step_words(w->task) + (sync * (uint64_t)w->task->job->nvns + vn) *
		words_of(w->task->job);
}

/* Of the newest rows of virtual node v that are there: those of committed steps all are. */
static uint32_t age_now(const struct hd_rank *rank, const struct hd_sync *sync, uint32_t v)
{
	const struct hd_worker *w = rank->worker;
	const uint64_t e = hd_rank_step(rank);
	uint32_t age = 0;

	while (age <= rank->ahead && !is_here(w, sync, v, e - age))
		age++;
	return age;
}

static uint32_t looked_at(const struct hd_rank *rank, const struct hd_sync *sync, uint32_t word)
{
	const struct hd_job *job = rank->worker->task->job;
	const uint32_t n = per_word(job);
	uint32_t ages = 0;

	for (uint32_t v = word * n; v < (word + 1) * n && v < job->nvns; v++)
		ages |= age_now(rank, sync, v) << v % n * bits_of(job);
	return ages;
}

void hd_stamps_decide(struct hd_rank *rank, const struct hd_sync *sync, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;
	const struct hd_recording *r = w->task->recording;
	double *to;

	if (!hd_stamps_kept(w->task->job))
		return;
	to = said(rank, sync->number, vn);
	for (uint32_t i = 0; i < words_of(w->task->job); i++)
		to[i] = r ? r->late[recorded_at(w, (uint64_t)w->count.step, sync->number, vn) + i] :
			hd_stamps_run_free(w) ? looked_at(rank, sync, i) : 0;
}

uint32_t hd_stamps_age(const struct hd_rank *rank, const struct hd_sync *sync, uint32_t vn, uint32_t other)
{
	const struct hd_job *job = rank->worker->task->job;

	return age_in(job, (uint32_t)said(rank, sync->number, vn)[other / per_word(job)], other);
}

/* The newest is that of the step at hand. */
void hd_stamps_pin(struct hd_rank *rank, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;
	const struct hd_recording *r = w->task->recording;
	const uint32_t row = hd_lockstep_meetings(&w->task->train);

	if (hd_stamps_bound(w->task->job))
		said(rank, row, vn)[0] = r ? r->late[recorded_at(w, (uint64_t)w->count.step, row, vn)] :
			rank->ahead;
}

uint32_t hd_stamps_pinned(const struct hd_rank *rank, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;
	const uint32_t age = age_in(w->task->job, (uint32_t)said(rank,
		hd_lockstep_meetings(&w->task->train), vn)[0], 0);

	assert(age >= rank->ahead);
	return age - rank->ahead;
}

void hd_stamps_commit(struct hd_worker *w)
{
	const struct hd_moments *m = &w->step->moments;
	const uint64_t words = words_of(w->task->job), n = rows_of(&w->task->train, w->task->job);
	uint64_t at;

	if (!hd_stamps_kept(w->task->job) || (uint64_t)w->count.step >= w->task->nsteps)
		return;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t v = 0; v < w->task->job->nvns; v++) {
			at = recorded_at(w, (uint64_t)w->count.step, k, v);
			for (uint64_t i = 0; i < words; i++)
				w->stage->lockstep.stamps->late[at + i] = (uint32_t)m->leaf[v * m->elems +
					w->stage->lockstep.stamps->said_at + k * words + i];
		}
}

/* ---- a recording ---- */

/* The rows of S + 1 steps are state. */
static enum hd_err same_bound(const struct hd_state *state, const struct hd_task *task, const char *path,
	struct hd_diag *diag)
{
	const struct hd_state_entry *rows = hd_state_find(state, "rows.0");
	const int64_t bound = hd_stamps_bound(task->job);

	if (!hd_state_find(state, "stamps") || !rows || rows->rank < 1 || rows->dim[0] == bound + 1)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "batch.replay: %s was recorded with batch.staleness %lld, and this "
		"job has %lld: replay the job that was recorded", path, (long long)rows->dim[0] - 1,
		(long long)bound);
}

/* Of each age, so that no step reads what is not there. */
static enum hd_err in_bounds(const struct hd_task *task, const uint32_t *late, uint64_t n, const char *path,
	struct hd_diag *diag)
{
	const uint32_t bound = hd_stamps_bound(task->job), nvns = task->job->nvns,
		rows = rows_of(&task->train, task->job);
	const uint64_t words = words_of(task->job);
	bool in = true;

	for (uint64_t i = 0; i < n; i++) {
		const uint64_t row = i / words / nvns % rows, step = i / words / nvns / rows;
		const uint32_t most = bound + (row < hd_lockstep_meetings(&task->train));
		for (uint32_t k = 0; k < per_word(task->job); k++)
			in &= age_in(task->job, late[i], k) <= (most < step ? most : step);
	}
	return in ? HD_OK : hd_fail(diag, HD_E_INTEGRITY, "batch.replay: %s has rows that are later than "
		"batch.staleness %u allows: it is damaged, or no recording of this job", path, bound);
}

static enum hd_err fits(const struct hd_state_entry *e, const struct hd_task *task, const char *path,
	int64_t made, int64_t closed, struct hd_diag *diag)
{
	const int64_t nsyncs = rows_of(&task->train, task->job), nvns = task->job->nvns;

	if (!e || e->dtype != HD_I32 || e->rank != 4)
		return hd_fail(diag, HD_E_INVAL, "batch.replay: %s has no recording of rows: name a run with "
			"batch.mode: bounded, or a checkpoint of one", path);
	if (e->dim[1] != nsyncs || e->dim[2] != nvns || e->dim[3] != (int64_t)words_of(task->job))
		return hd_fail(diag, HD_E_INVAL, "batch.replay: %s has %lld virtual nodes that meet %lld "
			"times a step, this job has %lld that meet %lld times", path, (long long)e->dim[2],
			(long long)e->dim[1], (long long)nvns, (long long)nsyncs);
	if (e->dim[0] < (int64_t)task->nsteps)
		return hd_fail(diag, HD_E_INVAL, "batch.replay: the job of %s has %lld steps and this one "
			"%llu: replay the job that was recorded", path, (long long)e->dim[0],
			(unsigned long long)task->nsteps);
	if (made < (int64_t)task->nsteps && (!closed || made < closed))
		return hd_fail(diag, HD_E_INVAL, "batch.replay: %s has recorded %lld of %lld steps: let that "
			"run end first (heddle resume)", path, (long long)made, (long long)e->dim[0]);
	return HD_OK;
}

/* The first step in sync, after which ages are 0 as in steps that were not made yet; 0: none. */
static int64_t closed_of(const struct hd_state *state)
{
	const struct hd_state_entry *e = hd_state_find(state, "run.closed");
	int64_t closed = 0;

	if (e && e->dtype == HD_I64 && e->len_bytes == sizeof closed)
		hd_state_get(e, 0, 1, &closed);
	return closed > 0 ? closed : 0;
}

enum hd_err hd_recording_read(struct hd_recording *recording, const struct hd_task *task, struct hd_fs *fs,
	const char *path, struct hd_arena *arena, struct hd_hash *digest, struct hd_diag *diag)
{
	const uint64_t n = task->nsteps * step_words(task);
	struct hd_ckpt_info info;
	struct hd_arena room;
	struct hd_state state;
	uint32_t *late = NULL;
	struct hd_diag why = { "" };

	hd_arena_init(&room, 0);
	enum hd_err err = hd_ckpt_find(fs, path, UINT64_MAX, &info, NULL, NULL, &why);
	err = err ? err : hd_ckpt_load(fs, info.folder, &room, &state, &info, &why);
	if (err) {
		hd_arena_finish(&room);
		return hd_fail(diag, err, "batch.replay: %.400s; it is read by each verb, evaluation too",
			why.text);
	}
	const struct hd_state_entry *e = hd_state_find(&state, "stamps");
	const int64_t closed = closed_of(&state);
	err = same_bound(&state, task, path, diag);
	err = err ? err : fits(e, task, path, (int64_t)info.step, closed, diag);
	if (!err && !(late = hd_arena_take(arena, n + 1, sizeof *late)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a recording of %llu steps",
			(unsigned long long)task->nsteps);
	if (!err) {
		hd_state_get(e, 0, n, late);
		err = in_bounds(task, late, n, path, diag);
	}
	if (!err) {
		*digest = hd_hash(late, n * sizeof *late);
		*recording = (struct hd_recording){ task->nsteps, late, (uint64_t)closed };
	}
	hd_arena_finish(&room);
	return err;
}
