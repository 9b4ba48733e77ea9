#include "exec/worker_int.h"

#include "plan/check.h"

/* Adopting a plan: everything a step needs is computed and taken here, so that the
 * step loop allocates nothing. Parameters and slots stay where they are: no state
 * is keyed by virtual node, so a new map moves nothing. */

static enum hd_err give_buffers(struct hd_worker *w, struct hd_rank *rank, uint32_t need, struct hd_diag *diag)
{
	struct hd_device *d = rank->device;
	enum hd_err err = HD_OK;

	if (rank->buffer && need <= rank->buffer_cap)
		return HD_OK;
	float **buffer = hd_arena_take(&w->arena, need + 1, sizeof *buffer);
	if (!buffer)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u gradient buffers", need);
	for (uint32_t i = 0; i < rank->buffer_cap; i++)
		buffer[i] = rank->buffer[i];
	rank->buffer = buffer;
	while (rank->buffer_cap < need && !err) {
		err = d->ops->take(d, w->flat_bytes, (void **)&buffer[rank->buffer_cap], diag);
		rank->buffer_cap += !err;
	}
	return err;
}

/* Virtual nodes whose LD come before the first B of any of them are one wave (the checker has proved the rest). */
static enum hd_err find_waves(struct hd_rank *rank, const struct hd_plan *plan, const uint32_t *vn, uint32_t n,
	struct hd_diag *diag)
{
	const struct hd_ilist *list = &plan->list[rank->id];
	const bool each = hd_lockstep_needed(&rank->worker->lockstep);         /* folds alone */
	uint32_t wave = 0, nopen = 0, nback = 0, ivn = 0;

	rank->wave = hd_arena_take(&rank->memory, n + 1, sizeof *rank->wave);
	if (!rank->wave)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the waves of %u virtual nodes", n);
	for (uint32_t i = 0; i < list->len; i++) {
		if (list->at[i].op == HD_INS_LD) {
			if (ivn >= n || list->at[i].vn != vn[ivn])
				return hd_fail(diag, HD_E_BADPLAN, "rank %u, #%u: LD of virtual node %u is out of order", rank->id, i, list->at[i].vn);
			rank->wave[ivn++] = wave;
			nopen++;
		}
		nback += nopen && list->at[i].op == HD_INS_B;
		if (nopen && (nback == nopen || each)) {
			wave++;
			nopen = nback = 0;
		}
	}
	return HD_OK;
}

static enum hd_err give_temps(struct hd_worker *w, struct hd_rank *rank, struct hd_diag *diag)
{
	uint64_t need = rank->script.ntemps * w->train.temp_elems * sizeof(float);
	struct hd_device *d = rank->device;

	if (need <= rank->temp_bytes)
		return HD_OK;
	d->ops->give(d, rank->temp, rank->temp_bytes);
	rank->temp = NULL;
	rank->temp_bytes = 0;
	enum hd_err err = d->ops->take(d, need, (void **)&rank->temp, diag);
	rank->temp_bytes = err ? 0 : need;
	return err;
}

static enum hd_err script_of(struct hd_worker *w, struct hd_rank *rank, const struct hd_plan *plan, struct hd_diag *diag)
{
	uint32_t n = 0, nslices = (uint32_t)hd_job_int(w->task->job, HD_JOB_SLICES);

	hd_arena_reset(&rank->memory);
	uint32_t *vn = hd_arena_take(&rank->memory, plan->nvns, sizeof *vn);
	if (!vn)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", plan->nvns);
	for (uint32_t v = 0; v < plan->nvns; v++)
		if (plan->map[v] == rank->id)
			vn[n++] = v;
	rank->loaded = hd_arena_take(&rank->memory, n > HD_MAX_WAVE ? n : HD_MAX_WAVE, sizeof *rank->loaded);
	if (!rank->loaded)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", plan->nvns);
	enum hd_err err = find_waves(rank, plan, vn, n, diag);
	return err ? err : hd_fold_script_make_waves(&rank->script, plan->nvns, vn, n, nslices, rank->wave, &rank->memory, diag);
}

/* Roots of all ranks in order of cover, then one item per join, in place of its left operand. */
static enum hd_err join_of(struct hd_worker *w, const struct hd_plan *plan, struct hd_diag *diag)
{
	uint32_t nroots = 0, n = 0, cap;

	for (uint32_t r = 0; r < plan->nranks; r++)
		nroots += w->rank[r].script.nroots;
	cap = 2 * nroots + 2;
	struct hd_tnode *root = hd_arena_take(&w->plan_arena, nroots + 1, sizeof *root);
	w->item = hd_arena_take(&w->plan_arena, cap, sizeof *w->item);
	w->join = hd_arena_take(&w->plan_arena, cap, sizeof *w->join);
	w->flat_join = hd_arena_take(&w->plan_arena, cap, sizeof *w->flat_join);
	w->leaf = hd_arena_take(&w->plan_arena, plan->nvns, sizeof *w->leaf);
	if (!root || !w->item || !w->join || !w->flat_join || !w->leaf)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the roots of %u virtual nodes", plan->nvns);
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < w->rank[r].script.nroots; i++, n++) {
			root[n] = w->rank[r].script.root[i];
			w->item[n] = w->rank[r].buffer[w->rank[r].script.root_buffer[i]];
		}
	enum hd_err err = hd_join_make(plan->nvns, root, nroots, w->join, cap, &w->njoins, &w->result, diag);
	for (uint32_t j = 0; j < w->njoins && !err; j++) {
		const struct hd_join *join = &w->join[j];
		w->item[join->dst] = w->item[join->a];
		w->flat_join[j] = (struct hd_flat_join){ w->item[join->dst], w->item[join->a], w->item[join->b] };
	}
	w->nitems = nroots + w->njoins;
	return err;
}

enum hd_err hd_worker_adopt(struct hd_worker *w, const struct hd_plan *plan, struct hd_diag *diag)
{
	struct hd_plan_job job = { .nvns = w->task->job->nvns, .nchunks = w->task->layout.nchunks, .nstages = 1, .clips = true,
		.wave = w->train.max_parts, .lockstep = hd_lockstep_needed(&w->lockstep) };
	enum hd_err err = hd_plan_check(plan, &job, NULL, diag);

	if (!err && plan->nranks != w->spec.ndevices)
		err = hd_fail(diag, HD_E_BADPLAN, "the plan is for %u devices, the worker has %u", plan->nranks, w->spec.ndevices);
	if (err)
		return err;               /* the plan it had still stands */
	w->plan = NULL;                   /* from here on its scripts and joins are gone */
	hd_arena_reset(&w->plan_arena);
	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++)
		err = script_of(w, &w->rank[r], plan, diag);
	if (!err)
		err = hd_worker_fits(w, diag);    /* the scripts say how many buffers there will be */
	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++)
		err = give_buffers(w, &w->rank[r], w->rank[r].script.nbuffers, diag);
	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++)
		err = give_temps(w, &w->rank[r], diag);
	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++)
		err = hd_lockstep_adopt(&w->rank[r], diag);
	if (!err)
		err = join_of(w, plan, diag);
	if (!err)
		err = hd_worker_reread(w, diag);
	if (!err)
		w->plan = plan;
	return err;
}

struct hd_prefetch_spec hd_worker_reading(const struct hd_worker *w)
{
	const bool ahead = w->spare_core || !w->task->data->at_hand;

	return (struct hd_prefetch_spec){
		.set = w->task->data, .split = 0, .sampler = &w->task->sampler,
		.nvns = w->task->job->nvns, .per_vn = w->task->job->per_vn,
		.first_step = (uint64_t)w->step, .memory_bytes = HD_PREFETCH_BYTES,
		.nthreads = ahead, .depth = ahead ? HD_PREFETCH_STEPS : 1,
	};
}

enum hd_err hd_worker_reread(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_prefetch_spec spec = hd_worker_reading(w);

	w->again = true;                  /* until there is a reader */
	hd_prefetch_destroy(w->prefetch);
	w->prefetch = NULL;
	hd_seals_init(&w->seals, 0, 1, (uint64_t)w->step);
	enum hd_err err = hd_prefetch_create(&w->prefetch, &spec, diag);
	w->again = err;
	return err;
}

enum hd_err hd_worker_rewind(struct hd_worker *w, struct hd_diag *diag)
{
	atomic_store(&w->torn, false);
	hd_digest_frozen(w);
	return hd_worker_reread(w, diag);
}
