#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "plan/check.h"

/* Passes over leaves: the share's, repairs after a loss, and a probe, which belongs to no step. */

static bool computed_here(const struct hd_worker *w, uint32_t vn)
{
	bool is = w->share->work.computed && w->share->work.has[vn];

	for (uint32_t i = 0; i < w->nrepairs; i++)
		is |= w->repair[i].has[vn];
	return is;
}

static enum hd_err compute(struct hd_worker *w, struct hd_work *work, struct hd_diag *diag)
{
	hd_step_work(w, work);
	w->section = HD_SECTION_COMPUTE;
	hd_final_begin(w, work);
	hd_aside_computing(w, true);
	enum hd_err err = hd_worker_all(w, hd_interp_run, diag);
	for (uint32_t v = 0; v < w->task->job->nvns && !err; v++)
		if (work->has[v]) {
			w->nknown += !w->known[v];
			w->known[v] = 1;
		}
	work->computed = !err;
	if (!err)
		hd_final_end(w, work);
	hd_aside_computing(w, false);
	return err;
}

enum hd_err hd_share_compute(struct hd_worker *w, struct hd_diag *diag)
{
	assert(w->begun && !w->share->work.computed);
	for (uint32_t v = 0; v < w->task->job->nvns; v++)
		if (w->share->work.has[v] && computed_here(w, v))
			return hd_fail(diag, HD_E_INVAL,
				"step %lld: virtual node %u was computed already, as a repair",
				(long long)w->step, v);
	return compute(w, &w->share->work, diag);
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

/* Behind the buffers of the share and of the first `nrepairs` repairs. */
static enum hd_err give_place(struct hd_worker *w, struct hd_work *work, uint32_t nrepairs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *first = hd_arena_take(arena, w->spec.ndevices, sizeof *first);

	if (!first)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the work of %u devices", w->spec.ndevices);
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		struct hd_rank_need *need = &w->rank[r].need;
		first[r] = w->share->work.rank[r].script.nbuffers ? w->share->work.rank[r].script.nbuffers :
			1;
		for (uint32_t i = 0; i < nrepairs; i++)
			first[r] += w->repair[i].rank[r].script.nbuffers;
		uint32_t end = first[r] + work->rank[r].script.nbuffers;
		need->nbuffers = end > need->nbuffers ? end : need->nbuffers;
		need->ntemps = work->rank[r].script.ntemps > need->ntemps ? work->rank[r].script.ntemps :
			need->ntemps;
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

	if (w->share->work.whole || hd_lockstep_needed(&w->lockstep))
		return hd_fail(diag, HD_E_INVAL, "step %lld: one worker alone has nothing to repair",
			(long long)w->step);
	if (w->nrepairs + 1 == HD_SHARE_PASSES)
		return hd_fail(diag, HD_E_REFUSED, "step %lld: %u passes are the most in one step",
			(long long)w->step, HD_SHARE_PASSES);
	for (uint32_t i = 0; i < n; i++)
		if (vn[i] >= nvns || (i && vn[i] <= vn[i - 1]) || computed_here(w, vn[i]))
			return hd_fail(diag, HD_E_INVAL,
				"step %lld: virtual node %u cannot be repaired here: there are %u, they "
				"ascend, and none is "
				"computed twice", (long long)w->step, vn[i], nvns);
	return HD_OK;
}

enum hd_err hd_share_repair(struct hd_worker *w, const uint32_t *vn, uint32_t n, uint32_t *pass,
	struct hd_diag *diag)
{
	struct hd_work *work = &w->repair[w->nrepairs];

	assert(w->begun);
	enum hd_err err = check_repair(w, vn, n, diag);
	if (!err)
		err = make_pass(w, work, vn, n, w->nrepairs, &w->repair_arena, diag);
	if (err)
		return err;
	uint32_t number = atomic_fetch_add(&w->nrepairs, 1) + 1;
	err = compute(w, work, diag);
	if (err)
		atomic_fetch_sub(&w->nrepairs, 1);
	else
		*pass = number;
	return err;
}

/* ---- a probe ---- */

/* What a pass writes besides its buffers, and what it reads that is of the step at hand: others may still ask
 * for the table of the step that was finished, and the reader is ahead with the share's virtual nodes. */
struct aside { struct hd_prefetch *prefetch; struct hd_sample *took; struct hd_recorder *recorder;
	struct hd_step_record record; uint64_t step_rows;
	struct hd_leaf leaf; double *moments; };

static enum hd_err lay_aside(struct hd_worker *w, uint32_t vn, struct aside *a, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_prefetch_spec spec = hd_worker_reading(w);
	uint8_t *wanted = hd_arena_take(arena, w->task->job->nvns, 1);
	struct hd_prefetch *reader;

	a->moments = hd_arena_take(arena, w->moments.elems + 1, sizeof *a->moments);
	if (!wanted || !a->moments)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a probe");
	wanted[vn] = 1;
	spec.wanted = wanted;
	spec.nthreads = 0;
	spec.depth = 1;
	spec.named = false;
	enum hd_err err = hd_prefetch_create(&reader, &spec, diag);
	if (err)
		return err;
	*a = (struct aside){ w->prefetch, w->took, w->spec.recorder, w->record, w->step_rows, w->leaf[vn],
		a->moments };
	if (w->moments.elems)
		memcpy(a->moments, w->moments.leaf + vn * w->moments.elems,
			w->moments.elems * sizeof *a->moments);
	w->prefetch = reader;
	w->took = NULL;
	w->spec.recorder = NULL;
	w->step_rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->step);
	return HD_OK;
}

static void put_back(struct hd_worker *w, uint32_t vn, const struct aside *a)
{
	hd_prefetch_destroy(w->prefetch);
	w->prefetch = a->prefetch;
	w->took = a->took;
	w->spec.recorder = a->recorder;
	w->record = a->record;
	w->step_rows = a->step_rows;
	w->leaf[vn] = a->leaf;
	if (w->moments.elems)
		memcpy(w->moments.leaf + vn * w->moments.elems, a->moments,
			w->moments.elems * sizeof *a->moments);
	hd_step_work(w, &w->share->work);
}

static struct hd_hash bits_of(const struct hd_worker *w, const struct hd_work *work, uint32_t vn)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < w->task->layout.nsegments; i++) {        /* nobody writes the pads */
		const struct hd_segment *s = &w->task->layout.segment[i];
		hd_hasher_add(&hasher, work->item[work->root[0].item] + s->at, s->len * sizeof(float));
	}
	hd_hasher_add(&hasher, &w->leaf[vn], sizeof w->leaf[vn]);
	hd_hasher_add(&hasher, w->moments.leaf + vn * w->moments.elems,
		w->moments.elems * sizeof *w->moments.leaf);
	return hd_hasher_end(&hasher);
}

uint32_t hd_share_probed(const struct hd_worker *w, uint64_t step)
{
	uint64_t rows = hd_sampler_rows(&w->task->sampler, step), per_vn = w->task->job->per_vn,
		full = (rows + per_vn - 1) / per_vn;

	return full ? (uint32_t)(step % full) : 0;        /* the first ones have them */
}

enum hd_err hd_share_probe(struct hd_worker *w, uint32_t vn, struct hd_hash *bits, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_work work;
	struct aside aside = { 0 };

	assert(w->share && vn < w->task->job->nvns);
	if (w->begun)
		return hd_fail(diag, HD_E_REFUSED,
			"step %lld is under way: its gradients are where a probe would be computed",
			(long long)w->step);
	if (hd_lockstep_needed(&w->lockstep))
		return hd_fail(diag, HD_E_REFUSED,
			"virtual nodes of this job meet in a step: none can be computed alone");
	hd_arena_init(&arena, 0);
	enum hd_err err = make_pass(w, &work, &vn, 1, 0, &arena, diag);
	if (!err)
		err = lay_aside(w, vn, &aside, &arena, diag);
	if (!err) {
		hd_step_work(w, &work);
		w->section = HD_SECTION_COMPUTE;
		err = hd_worker_all(w, hd_interp_run, diag);
		if (!err)
			*bits = bits_of(w, &work, vn);
		put_back(w, vn, &aside);
	}
	hd_arena_finish(&arena);
	return err;
}
