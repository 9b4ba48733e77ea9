#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "plan/check.h"
#include "engine/closing.h"
#include "engine/fore.h"
#include "engine/meeting.h"
#include "engine/onset.h"
#include "engine/overlap.h"
#include "engine/pipe.h"
#include "engine/reading_int.h"

/* Passes over leaves: the part's, repairs after a loss, and a probe, which belongs to no step. */

static bool computed_here(const struct hd_worker *w, uint32_t vn)
{
	bool is = hd_worker_work(w)->computed && hd_worker_work(w)->has[vn];

	for (uint32_t i = 0; i < w->step->nrepairs; i++)
		is |= w->step->repair[i].has[vn];
	return is;
}

static enum hd_err compute(struct hd_worker *w, struct hd_work *work, struct hd_diag *diag)
{
	enum hd_err err = hd_overlap_failed(work, diag);

	if (err)
		return err;
	err = hd_onset_compute(w, work, diag);
	if (err)
		return err;
	hd_step_work(w, work);
	w->step->section = HD_SECTION_COMPUTE;
	hd_final_begin(w, work);
	if (w->meeting)
		hd_meeting_begin(w, work->meeting);
	hd_background_computing(w, true);
	err = hd_worker_all(w, hd_interp_run, diag);
	if (!err && work->pipe && hd_pipe_is_stale(work->pipe))
		err = hd_fail(diag, HD_E_STALE, "step %lld: other workers of the pipeline are gone",
			(long long)w->count.step);
	if (!err && work->pipe)
		err = hd_worker_all(w, hd_pipe_reduce, diag);
	if (!err)
		hd_leaves_computed(w, work);
	work->computed = !err;
	if (!err)
		hd_final_end(w, work);
	hd_background_computing(w, false);
	return err;
}

enum hd_err hd_dist_compute(struct hd_worker *w, struct hd_diag *diag)
{
	assert(w->step->begun && !hd_worker_work(w)->computed);
	for (uint32_t v = 0; v < w->task->job->nvns; v++)
		if (hd_worker_work(w)->has[v] && computed_here(w, v))
			return hd_fail(diag, HD_E_INVAL,
				"step %lld: virtual node %u was computed already, as a repair",
				(long long)w->count.step, v);
	return compute(w, hd_worker_work(w), diag);
}

/* As a plan of the devices and of one more, which stands for everybody else. */
static enum hd_err plan_pass(struct hd_worker *w, struct hd_plan *plan, const uint32_t *vn, uint32_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t nvns = w->task->job->nvns, d = w->spec.ndevices,
		*map = hd_arena_take(arena, nvns, sizeof *map);
	const struct hd_plan_job job = hd_worker_plan_job(w);

	if (!map)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", nvns);
	for (uint32_t v = 0; v < nvns; v++)
		map[v] = d;
	for (uint32_t i = 0; i < n; i++)
		map[vn[i]] = (uint32_t)((uint64_t)i * d / n);
	return hd_plan_of_map(plan, &job, d + 1, map, arena, diag);
}

/* How many of the rank's buffers hold what must stay: those of the part, and of steps that overlap the flat
 * vectors of both pipes, where gradients of the step to come may lie between two steps. */
static uint32_t buffers_of_part(const struct hd_worker *w, uint32_t r)
{
	const struct hd_work *work = hd_worker_work(w);

	if (work->overlap)
		return hd_pipe_vectors_of(work->overlap->pipe[1], r);
	return work->rank[r].script.nbuffers ? work->rank[r].script.nbuffers : 1;
}

/* Behind the buffers of the part and of the first `nrepairs` repairs. */
static enum hd_err give_place(struct hd_worker *w, struct hd_work *work, uint32_t nrepairs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *first = hd_arena_take(arena, w->spec.ndevices, sizeof *first);

	if (!first)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the work of %u devices", w->spec.ndevices);
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		struct hd_rank_need *need = &w->rank[r].need;
		first[r] = buffers_of_part(w, r);
		for (uint32_t i = 0; i < nrepairs; i++)
			first[r] += w->step->repair[i].rank[r].script.nbuffers;
		uint32_t end = first[r] + work->rank[r].script.nbuffers;
		need->nbuffers = end > need->nbuffers ? end : need->nbuffers;
		need->ntemps = work->rank[r].script.ntemps > need->ntemps ? work->rank[r].script.ntemps :
			need->ntemps;
		if (hd_worker_lockstep(w) && work->rank[r].script.nvns_here > need->narenas)
			need->narenas = work->rank[r].script.nvns_here;
	}
	enum hd_err err = hd_worker_fits(w, diag);
	if (!err)
		err = hd_work_take(w, diag);
	return err ? err : hd_work_place(w, work, first, arena, diag);
}

static enum hd_err make_pass(struct hd_worker *w, struct hd_work *work, const uint32_t *vn, uint32_t n,
	uint32_t nrepairs, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_plan *plan = hd_arena_take(arena, 1, sizeof *plan);
	uint32_t *rank = hd_arena_take(arena, w->spec.ndevices, sizeof *rank);

	if (!plan || !rank)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		rank[r] = r;
	enum hd_err err = plan_pass(w, plan, vn, n, arena, diag);
	if (!err)
		err = hd_work_make(w, work, plan, rank, arena, diag);
	return err ? err : give_place(w, work, nrepairs, arena, diag);
}

static enum hd_err check_repair(const struct hd_worker *w, const uint32_t *vn, uint32_t n,
	struct hd_diag *diag)
{
	uint32_t nvns = w->task->job->nvns;

	if (hd_worker_work(w)->whole || hd_lockstep_needed(&w->stage->lockstep))
		return hd_fail(diag, HD_E_INVAL, hd_worker_work(w)->whole ?
			"step %lld: one worker alone has nothing to repair" :
			"step %lld: virtual nodes meet inside the model (norms over the global batch, a "
			"graph in "
			"intervals): none is computed apart",
			(long long)w->count.step);
	if (w->step->nrepairs + 1 == HD_DIST_PASSES)
		return hd_fail(diag, HD_E_REFUSED, "step %lld: %u passes are the most in one step",
			(long long)w->count.step, HD_DIST_PASSES);
	for (uint32_t i = 0; i < n; i++)
		if (vn[i] >= nvns || (i && vn[i] <= vn[i - 1]) || computed_here(w, vn[i]))
			return hd_fail(diag, HD_E_INVAL,
				"step %lld: virtual node %u cannot be repaired here: there are %u, they "
				"ascend, and none is "
				"computed twice", (long long)w->count.step, vn[i], nvns);
	return HD_OK;
}

enum hd_err hd_dist_repair(struct hd_worker *w, const uint32_t *vn, uint32_t n, uint32_t *pass,
	struct hd_diag *diag)
{
	struct hd_work *work = &w->step->repair[w->step->nrepairs];

	assert(w->step->begun);
	enum hd_err err = check_repair(w, vn, n, diag);
	if (!err)
		err = make_pass(w, work, vn, n, w->step->nrepairs, &w->step->repair_arena, diag);
	if (err)
		return err;
	uint32_t number = atomic_fetch_add(&w->step->nrepairs, 1) + 1;
	err = compute(w, work, diag);
	if (err)
		atomic_fetch_sub(&w->step->nrepairs, 1);
	else
		*pass = number;
	return err;
}

/* ---- a probe ---- */

/* What a pass writes besides its buffers, and what it reads that is of the step at hand: others may still ask
 * for the table of the step that was finished, and the reader is ahead with the part's virtual nodes. */
struct lent { struct hd_prefetch *prefetch; struct hd_sample *took; struct hd_recorder *recorder;
	struct hd_values *values;
	struct hd_step_record record; uint64_t step_rows;
	struct hd_leaf leaf; double *moments; };

static enum hd_err lend(struct hd_worker *w, uint32_t vn, struct lent *a, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_prefetch_spec spec = hd_worker_reading(w);
	uint8_t *wanted = hd_arena_take(arena, w->task->job->nvns, 1);
	struct hd_prefetch *reader;

	a->moments = hd_arena_take(arena, w->step->moments.elems + 1, sizeof *a->moments);
	if (!wanted || !a->moments)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a probe");
	wanted[vn] = 1;
	spec.wanted = wanted;
	spec.nthreads = 0;
	spec.depth = 1;
	spec.named = false;
	spec.now = NULL;
	spec.filled = NULL;               /* the lane of reads has one writer, under the lock of the other */
	enum hd_err err = hd_prefetch_create(&reader, &spec, diag);
	if (err)
		return err;
	*a = (struct lent){ w->reading->prefetch, w->reading->took, w->spec.recorder, w->values,
		w->step->record,
		w->step->rows, w->step->leaf[vn], a->moments };
	if (w->step->moments.elems)
		memcpy(a->moments, w->step->moments.leaf + vn * w->step->moments.elems,
			w->step->moments.elems * sizeof *a->moments);
	w->reading->prefetch = reader;
	w->reading->took = NULL;
	w->spec.recorder = NULL;
	w->values = NULL;
	w->step->rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->count.step);
	return HD_OK;
}

static void put_back(struct hd_worker *w, uint32_t vn, const struct lent *a)
{
	hd_prefetch_destroy(w->reading->prefetch);
	w->reading->prefetch = a->prefetch;
	w->reading->took = a->took;
	w->spec.recorder = a->recorder;
	w->values = a->values;
	w->step->record = a->record;
	w->step->rows = a->step_rows;
	w->step->leaf[vn] = a->leaf;
	if (w->step->moments.elems)
		memcpy(w->step->moments.leaf + vn * w->step->moments.elems, a->moments,
			w->step->moments.elems * sizeof *a->moments);
	hd_step_work(w, hd_worker_work(w));
	hd_fore_forget(w);
	w->stage->lockstep.met = 0;       /* leaves are of the probe: rows of the step are not here */
}

static struct hd_hash bits_of(const struct hd_worker *w, const struct hd_work *work, uint32_t vn)
{
	const struct hd_layout *layout = &w->task->layout;
	const float *flat = work->item[work->root[0].item];
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < layout->nsegments; i++)          /* pads are never written */
		hd_hasher_add(&hasher, flat + layout->segment[i].at, layout->segment[i].len * sizeof(float));
	for (uint32_t g = layout->nparams; g < layout->ngrads; g++)
		hd_hasher_add(&hasher, flat + layout->at[g], layout->len[g] * sizeof(float));
	hd_hasher_add(&hasher, &w->step->leaf[vn], sizeof w->step->leaf[vn]);
	hd_hasher_add(&hasher, w->step->moments.leaf + vn * w->step->moments.elems,
		w->step->moments.elems * sizeof *w->step->moments.leaf);
	return hd_hasher_end(&hasher);
}

uint32_t hd_dist_probed(const struct hd_worker *w, uint64_t step)
{
	uint64_t rows = hd_sampler_rows(&w->task->sampler, step), per_vn = w->task->job->per_vn,
		full = (rows + per_vn - 1) / per_vn;

	return full ? (uint32_t)(step % full) : 0;        /* the first ones have them */
}

enum hd_err hd_dist_probe(struct hd_worker *w, uint32_t vn, struct hd_hash *bits, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_work work;
	struct lent lent = { 0 };

	if (w->spec.by_stage)
		return hd_fail(diag, HD_E_REFUSED,
			"this worker has the state of its stages alone: it computes no whole virtual node");
	assert(hd_worker_work(w) && vn < w->task->job->nvns);
	if (w->step->begun)
		return hd_fail(diag, HD_E_REFUSED,
			"step %lld is under way: its gradients are where a probe would be computed",
			(long long)w->count.step);
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_closing_look(w, diag);
	if (!err)
		err = make_pass(w, &work, &vn, 1, 0, &arena, diag);
	if (!err)
		err = lend(w, vn, &lent, &arena, diag);
	if (!err) {
		hd_step_work(w, &work);
		hd_fore_forget(w);
		hd_onset_void(w);
		hd_lockstep_clear(w);
		w->step->section = HD_SECTION_COMPUTE;
		err = hd_worker_all(w, hd_interp_run, diag);
		if (!err)
			*bits = bits_of(w, &work, vn);
		put_back(w, vn, &lent);
	}
	hd_arena_finish(&arena);
	return err;
}
