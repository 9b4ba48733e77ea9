#include "engine/worker_int.h"

#include "engine/fore.h"
#include "engine/stretch.h"

/* A pass made ready: everything that its ranks need to compute it is worked out and taken here, so that the
 * step loop allocates nothing. Parameters and slots stay where they are: no state is keyed by virtual
 * node, so a new map moves nothing. */

/* Virtual nodes whose LD come before the first B of any of them are one wave (the checker has proved the
 * rest). */
static enum hd_err find_waves(const struct hd_worker *w, struct hd_rank_work *rank, uint32_t id,
	const uint32_t *vn, uint32_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_ilist *list = rank->list;
	const bool each = hd_lockstep_needed(&w->stage->lockstep);      /* folds alone */
	uint32_t wave = 0, nopen = 0, nback = 0, ivn = 0;

	rank->wave = hd_arena_take(arena, n + 1, sizeof *rank->wave);
	if (!rank->wave)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the waves of %u virtual nodes", n);
	for (uint32_t i = 0; i < list->len; i++) {
		if (list->at[i].op == HD_INS_LD) {
			if (ivn >= n || list->at[i].vn != vn[ivn])
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: LD of virtual node %u is out of order", id, i,
					list->at[i].vn);
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

/* The list of a device that no rank of the plan stands for: it computes nothing, but sums and updates. */
static const struct hd_ilist *list_of_ends(struct hd_arena *arena)
{
	static const uint8_t ops[] = { HD_INS_RED, HD_INS_NORM, HD_INS_STEP };
	struct hd_ilist *list = hd_arena_take(arena, 1, sizeof *list);
	struct hd_ins *at = hd_arena_take(arena, sizeof ops, sizeof *at);

	if (!list || !at)
		return NULL;
	for (size_t i = 0; i < sizeof ops; i++)
		at[i] = (struct hd_ins){ .op = ops[i] };
	*list = (struct hd_ilist){ at, sizeof ops, sizeof ops };
	return list;
}

/* `id` HD_NONE: no rank. */
static enum hd_err work_of(struct hd_worker *w, struct hd_work *work, struct hd_rank_work *rank,
	const struct hd_plan *plan, uint32_t id,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t n = 0, nvns = w->task->job->nvns, nslices = (uint32_t)hd_job_int(w->task->job,
		HD_JOB_SLICES);
	uint32_t *vn = hd_arena_take(arena, nvns, sizeof *vn);

	rank->list = id == HD_NONE ? list_of_ends(arena) : &plan->list[id];
	if (!vn || !rank->list)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", nvns);
	for (uint32_t v = 0; id != HD_NONE && v < nvns; v++)
		if (plan->map[v] == id) {
			vn[n++] = v;
			work->has[v] = 1;
		}
	work->nleaves += n;
	rank->loaded = hd_arena_take(arena, n > HD_MAX_WAVE ? n : HD_MAX_WAVE, sizeof *rank->loaded);
	rank->spent = hd_arena_take(arena, HD_INS_END, sizeof *rank->spent);
	if (!rank->loaded || !rank->spent)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the map of %u virtual nodes", nvns);
	enum hd_err err = find_waves(w, rank, id, vn, n, arena, diag);
	return err ? err : hd_fold_script_make_waves(&rank->script, nvns, vn, n, nslices, rank->wave, arena,
		diag);
}

enum hd_err hd_work_make(struct hd_worker *w, struct hd_work *work, const struct hd_plan *plan,
	const uint32_t *rank, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	*work = (struct hd_work){ .rank = hd_arena_take(arena, w->spec.ndevices, sizeof *work->rank),
		.has = hd_arena_take(arena, w->task->job->nvns, 1) };
	work->reads = work->has;
	work->left = hd_arena_take(arena, w->stage->nbuckets, sizeof *work->left);
	if (!work->rank || !work->has || !work->left)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the work of %u devices", w->spec.ndevices);
	for (uint32_t b = 0; b < w->stage->nbuckets; b++)
		atomic_init(&work->left[b], 1);
	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++)
		err = work_of(w, work, &work->rank[r], plan, rank ? rank[r] : HD_NONE, arena, diag);
	return err;
}

enum hd_err hd_work_take(struct hd_worker *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < w->spec.ndevices && !err; r++) {
		struct hd_rank *rank = &w->rank[r];
		const uint64_t temp_bytes = rank->need.ntemps * w->stage->train.temp_elems * sizeof(float);
		err = hd_pool_grow(rank->pool, w->stage->flat_bytes, rank->need.nbuffers, rank->device,
			&w->arena, diag);
		if (!err)
			err = hd_pool_grow_temp(rank->pool, temp_bytes, rank->device, diag);
		if (!err)
			err = hd_lockstep_take(&w->rank[r], w->rank[r].need.narenas, diag);
	}
	return err ? err : hd_stretches_take(w, w->rank[0].need.narenas, diag);
}

struct hd_flat_join *hd_joins_of_parts(const struct hd_layout *layout, const struct hd_flat_join *join,
	uint32_t njoins, float *sum, struct hd_arena *arena)
{
	struct hd_flat_join *list = hd_arena_take(arena, (size_t)(layout->ngrads - layout->nparams) *
		(njoins + 1) + 1, sizeof *list), *to = list;

	for (uint32_t g = layout->nparams; list && g < layout->ngrads; g++) {
		const uint64_t by = layout->at[g] - layout->at[layout->grad_param[g]];
		for (uint32_t j = 0; j < njoins; j++)
			*to++ = (struct hd_flat_join){ join[j].dst + by, join[j].a + by, join[j].b + by };
		*to++ = sum ? (struct hd_flat_join){ sum, sum, sum + by } : (struct hd_flat_join){ 0 };
	}
	return list;
}

/* Roots of all ranks in order of cover, then one item per join, in place of its left operand. */
static enum hd_err join_locally(struct hd_worker *w, struct hd_work *work, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t nroots = 0, n = 0, nvns = w->task->job->nvns;

	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		nroots += work->rank[r].script.nroots;
	struct hd_tnode *root = hd_arena_take(arena, nroots + 1, sizeof *root);
	struct hd_join *join = hd_arena_take(arena, nroots + 1, sizeof *join);
	work->item = hd_arena_take(arena, 2 * nroots + 1, sizeof *work->item);
	work->join = hd_arena_take(arena, nroots + 1, sizeof *work->join);
	work->root = hd_arena_take(arena, nroots + 1, sizeof *work->root);
	if (!root || !join || !work->item || !work->join || !work->root)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the roots of %u virtual nodes", nvns);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		for (uint32_t i = 0; i < work->rank[r].script.nroots; i++, n++) {
			root[n] = work->rank[r].script.root[i];
			work->item[n] = work->rank[r].buffer[work->rank[r].script.root_buffer[i]];
		}
	enum hd_err err = nroots ? hd_join_some(nvns, root, nroots, join, nroots, &work->njoins, work->root,
		&work->nroots, diag) : HD_OK;
	for (uint32_t j = 0; j < work->njoins && !err; j++) {
		work->item[join[j].dst] = work->item[join[j].a];
		work->join[j] = (struct hd_flat_join){ work->item[join[j].dst], work->item[join[j].a],
			work->item[join[j].b] };
	}
	if (err)
		return err;
	work->part_join = hd_joins_of_parts(&w->task->layout, work->join, work->njoins,
		work->nroots == 1 ? work->item[work->root[0].item] : NULL, arena);
	return work->part_join ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for the joins of tied parameters");
}

enum hd_err hd_work_place(struct hd_worker *w, struct hd_work *work, const uint32_t *first,
	struct hd_arena *arena, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		struct hd_rank_work *rank = &work->rank[r];
		rank->buffer = hd_arena_take(arena, rank->script.nbuffers + 1, sizeof *rank->buffer);
		if (!rank->buffer)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u gradient buffers",
				rank->script.nbuffers);
		for (uint32_t i = 0; i < rank->script.nbuffers; i++)
			rank->buffer[i] = w->rank[r].pool->buffer[(first ? first[r] : 0) + i];
		/* of the part alone, behind its own */
		rank->fore = first || !hd_fore_steps(w->task->job) ? NULL : w->rank[r].pool->buffer +
			rank->script.nbuffers;
	}
	return join_locally(w, work, arena, diag);
}
