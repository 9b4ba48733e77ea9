#include "engine/stale.h"

#include <stdio.h>
#include <string.h>

#include "engine/closing.h"
#include "engine/lockstep.h"
#include "engine/stamps.h"
#include "engine/worker_int.h"

uint32_t hd_stale_epochs(const struct hd_job *job)
{
	const bool exact = hd_job_int(job, HD_JOB_MODE) == HD_MODE_EXACT;

	return exact ? (uint32_t)hd_job_int(job, HD_JOB_STALENESS) : hd_stamps_kept(job) ?
		1 + hd_stamps_bound(job) : 0;
}

uint64_t hd_stale_bytes(const struct hd_graph *graph, const struct hd_job *job)
{
	return hd_stale_epochs(job) * hd_lockstep_bytes(graph, job);
}

static uint64_t place_bytes(const struct hd_worker *w, const struct hd_sync *s)
{
	return s->bytes * w->task->job->nvns;
}

/* All syncs, those of F first; false: there is no such one. */
static bool sync_at(const struct hd_worker *w, uint32_t i, struct hd_sync **sync)
{
	const struct hd_lockstep *l = &w->stage->lockstep;
	const bool back = i >= l->nsyncs[HD_RUN_F];

	i -= back ? l->nsyncs[HD_RUN_F] : 0;
	if (i >= l->nsyncs[back ? HD_RUN_B : HD_RUN_F])
		return false;
	*sync = &l->sync[back ? HD_RUN_B : HD_RUN_F][i];
	return true;
}

enum hd_err hd_stale_take(struct hd_worker *w, struct hd_diag *diag)
{
	const uint32_t k = hd_stale_epochs(w->task->job);
	struct hd_sync *s;

	for (uint32_t i = 0; k && sync_at(w, i, &s); i++)
		if (s->rows && !(s->earlier = hd_arena_take(&w->arena, k, place_bytes(w, s))))
			return hd_fail(diag, HD_E_NOMEM, "no memory for the rows of %u epochs "
				"(batch.staleness) of %u virtual nodes", k, w->task->job->nvns);
	return HD_OK;
}

enum hd_err hd_stale_table(struct hd_worker *w, struct hd_diag *diag)
{
	const uint32_t k = hd_stale_epochs(w->task->job);
	const int64_t rows = (int64_t)(w->task->job->nvns * w->task->job->per_vn);
	enum hd_err err = HD_OK;
	struct hd_sync *s;
	char name[24];

	for (uint32_t i = 0; k && !err && sync_at(w, i, &s); i++) {
		if (!s->rows)
			continue;
		snprintf(name, sizeof name, "rows.%u", i);
		err = hd_state_add(&w->state, &(struct hd_state_entry){ .name = name, .dtype = HD_F32,
			.rank = 3, .dim = { k, rows, (int64_t)(place_bytes(w, s) / sizeof(float)) / rows },
			.key = HD_KEY_TENSOR, .merge = HD_MERGE_NONE, .group = HD_STATE_OPTIM,
			.at = s->earlier, .len_bytes = k * place_bytes(w, s) }, diag);
	}
	return err;
}

/* How many epochs ago the rows were made that virtual node vn reads. */
static uint64_t age_of(const struct hd_rank *rank, const struct hd_sync *s, uint32_t vn, uint32_t other)
{
	const struct hd_job *job = rank->worker->task->job;
	const uint32_t each = job->nvns / (uint32_t)hd_job_int(job, HD_JOB_CELLS);
	const uint64_t k = hd_stale_epochs(job), e = hd_rank_step(rank);

	if (hd_stale_none(rank->worker) || hd_closing_closed(rank->worker))
		return 0;
	if (hd_stamps_kept(job))
		return hd_stamps_age(rank, s, vn, other);
	return vn / each == other / each ? 0 : e < k ? e : k;
}

const uint8_t *hd_stale_leaf(const struct hd_rank *rank, const struct hd_sync *s, uint32_t vn, uint32_t other)
{
	const struct hd_worker *w = rank->worker;
	const uint64_t k = hd_stale_epochs(w->task->job), e = hd_rank_step(rank),
		of = k ? e - age_of(rank, s, vn, other) : e;

	if (of >= (uint64_t)w->count.step)
		return hd_sync_leaf(w, s, of);
	return (const uint8_t *)s->earlier + of % k * place_bytes(w, s);
}

bool hd_dist_wants_rows(const struct hd_worker *w)
{
	return hd_stale_epochs(w->task->job) && w->stage->lockstep.met != w->count.step + 1;
}

enum hd_err hd_stale_check(const struct hd_worker *w, struct hd_diag *diag)
{
	if (!hd_dist_wants_rows(w))
		return HD_OK;
	return hd_fail(diag, HD_E_PEERLOST, "step %lld: other workers finished it, and rows that later steps "
		"read (batch.mode: %s) are not here: this worker can only join again",
		(long long)w->count.step, hd_job_text(w->task->job, HD_JOB_MODE));
}

bool hd_stale_none(const struct hd_worker *w) { return w->count.step == w->count.skips; }

static void put_rows(const struct hd_worker *w, const struct hd_sync *s, bool skipped)
{
	const uint64_t k = hd_stale_epochs(w->task->job), e = (uint64_t)w->count.step,
		bytes = place_bytes(w, s);
	uint8_t *place = s->earlier;

	if (!skipped)
		memcpy(place + e % k * bytes, hd_sync_leaf(w, s, e), bytes);
	else if (k > 1 && e)
		memcpy(place + e % k * bytes, place + (e - 1) % k * bytes, bytes);
	for (uint64_t p = 0; p < k && e && !skipped && hd_stale_none(w); p++)
		if (p != e % k)
			memcpy(place + p * bytes, place + e % k * bytes, bytes);
}

void hd_stale_commit(struct hd_worker *w, bool skipped)
{
	struct hd_sync *s;

	for (uint32_t i = 0; hd_stale_epochs(w->task->job) && sync_at(w, i, &s); i++)
		if (s->rows)
			put_rows(w, s, skipped);
}
