#include "engine/reading_int.h"

#include <string.h>

#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/fore.h"
#include "engine/onset.h"
#include "engine/overlap.h"
#include "engine/stamps.h"
#include "engine/worker_int.h"

/* Rows of the step at hand: the reader that is ahead, taking from it, names of what was taken. */

enum hd_err hd_reading_open(struct hd_worker *w, struct hd_diag *diag)
{
	w->reading = hd_arena_take(&w->arena, 1, sizeof *w->reading);
	return w->reading ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a reader");
}

void hd_reading_spare(struct hd_worker *w, bool spare_core) { w->reading->spare_core = spare_core; }

enum hd_err hd_reading_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_job *job = w->task->job;
	bool named = hd_job_int(job, HD_JOB_SAMPLES) != 0;
	struct hd_reading *r = w->reading;

	r->took = named ? hd_arena_take(&w->arena, job->nvns * job->per_vn, sizeof *r->took) : NULL;
	r->ntook = named ? hd_arena_take(&w->arena, job->nvns, sizeof *r->ntook) : NULL;
	if (named && (!r->took || !r->ntook))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the names of the rows of %u virtual nodes",
			job->nvns);
	return HD_OK;
}

bool hd_reading_any(const struct hd_worker *w) { return w->reading->prefetch != NULL; }
bool hd_reading_is_here(const struct hd_worker *w, uint64_t step, uint32_t vn)
{
	return hd_prefetch_ready(w->reading->prefetch, step, vn);
}

void hd_reading_want(struct hd_worker *w, const uint8_t *reads)
{
	if (w->reading->prefetch)
		hd_prefetch_want(w->reading->prefetch, (uint64_t)w->count.step, reads);
}

void hd_reading_begin(struct hd_worker *w)
{
	if (w->reading->took)
		memset(w->reading->ntook, 0, w->task->job->nvns * sizeof *w->reading->ntook);
}

void hd_reading_close(struct hd_worker *w)
{
	hd_prefetch_destroy(w->reading->prefetch);
	w->reading->prefetch = NULL;
}

/* user: the recorder. A probe takes the worker's away for its time (pass.c), and readers go on meanwhile. */
static void on_filled(void *user, uint32_t vn, uint64_t began, uint64_t bytes)
{
	hd_recorder_read(user, vn, began, bytes);
}

static uint64_t now(const void *user) { return hd_recorder_now(user); }

struct hd_prefetch_spec hd_worker_reading(const struct hd_worker *w)
{
	static const uint8_t none[HD_MAX_VNS];
	const bool ahead = w->reading->spare_core || !w->task->data->at_hand,
		overlaps = w->task->delays.most && !hd_stamps_bound(w->task->job),
		far = ahead && (w->task->data->reading || w->task->data->decodes);

	return (struct hd_prefetch_spec){
		.set = w->task->data, .split = 0, .sampler = &w->task->sampler,
		.nvns = w->task->job->nvns, .per_vn = w->task->job->per_vn,
		.wanted = hd_worker_work(w) ? hd_worker_work(w)->reads : none,
		.first_step = (uint64_t)w->count.step, .memory_bytes = HD_PREFETCH_BYTES,
		/* two: steps may overlap (overlap.h); those ahead read the same rows (fore.h, rule 5) */
		.nthreads = far ? HD_PREFETCH_READERS : ahead,
		.depth = far ? HD_PREFETCH_FAR : ahead ? HD_PREFETCH_STEPS : overlaps ? 2 : 1,
		.first_threads = far, .first_depth = far ? HD_PREFETCH_STEPS : 0,
		.named = w->reading->took != NULL,
		.filled = w->spec.recorder ? on_filled : NULL, .now = w->spec.recorder ? now : NULL,
		.user = w->spec.recorder,
	};
}

enum hd_err hd_worker_reread(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_prefetch_spec spec = hd_worker_reading(w);

	w->step->again = true;                  /* until there is a reader */
	hd_overlap_drop(w);
	hd_onset_drop(w);
	hd_fore_forget(w);
	hd_closing_forget(w);
	hd_judges_forget(w);
	hd_prefetch_destroy(w->reading->prefetch);
	w->reading->prefetch = NULL;
	hd_seals_init(&w->step->seals, 0, 1, (uint64_t)w->count.step);
	enum hd_err err = hd_prefetch_create(&w->reading->prefetch, &spec, diag);
	w->step->again = err;
	return err;
}

enum hd_err hd_reading_take(struct hd_worker *w, uint64_t step, uint32_t vn, const void *field[HD_MAX_FIELDS],
	uint64_t *nrows,
	struct hd_diag *diag)
{
	struct hd_reading *r = w->reading;

	atomic_fetch_add_explicit(&r->taking, 1, memory_order_relaxed);
	enum hd_err err = hd_prefetch_take(r->prefetch, step, vn, field, nrows, diag);
	atomic_fetch_sub_explicit(&r->taking, 1, memory_order_relaxed);

	if (err && err != HD_E_STALE)
		atomic_store_explicit(&r->unread, true, memory_order_relaxed);
	if (r->took && !err) {
		r->ntook[vn] = *nrows;
		memcpy(r->took + vn * w->task->job->per_vn, hd_prefetch_names(r->prefetch, step, vn),
			*nrows * sizeof *r->took);
	}
	return err;
}

bool hd_worker_unread(const struct hd_worker *w)
{
	return w->reading && atomic_load_explicit(&w->reading->unread, memory_order_relaxed);
}

bool hd_reading_waits(struct hd_worker *w)
{
	const struct hd_dataset *set = w->task->data;
	struct hd_reading *r = w->reading;

	if (!set->reading || !atomic_load_explicit(&r->taking, memory_order_relaxed))
		return false;
	const uint64_t before = r->looks;
	r->looks = set->reading->looks(set);
	return r->looks != before;
}

void hd_reading_done(struct hd_worker *w, uint64_t step, uint32_t vn)
{
	hd_prefetch_done(w->reading->prefetch, step, vn);
}

const struct hd_sample *hd_worker_took(const struct hd_worker *w, uint32_t vn, uint64_t *n)
{
	*n = w->reading->took ? w->reading->ntook[vn] : 0;
	return w->reading->took ? w->reading->took + vn * w->task->job->per_vn : NULL;
}
