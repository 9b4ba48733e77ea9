#include "engine/walk.h"

static enum hd_err refuse(const struct hd_worker *w, struct hd_diag *diag)
{
	if (w->spec.ndevices != 1)
		return hd_fail(diag, HD_E_REFUSED,
			"ops are timed on one device, the worker has %u: --devices 1", w->spec.ndevices);
	if (hd_worker_planned(w) && hd_worker_work(w)->pipe)
		return hd_fail(diag, HD_E_REFUSED,
			"ops are timed under a plan whose ranks have the whole model: parallel.mode: data");
	if (hd_lockstep_needed(&w->stage->lockstep))
		return hd_fail(diag, HD_E_REFUSED,
			"ops are timed wave by wave; norms over the global batch (model.bn) and a graph in "
			"several intervals run all virtual nodes in lockstep: model.bn: ghost, or of a graph "
			"batch.virtual_nodes: 1, which times the same ops");
	if (!hd_worker_planned(w))
		return hd_fail(diag, HD_E_INVAL, "ops are timed under a plan, and the worker has none");
	return HD_OK;
}

/* Rows of the first wave, as its LD instructions would take them. */
static enum hd_err load(struct hd_walk *k, uint32_t nparts, struct hd_diag *diag)
{
	struct hd_worker *w = k->worker;
	struct hd_rank *rank = k->rank;
	uint64_t end, nrows;
	enum hd_err err = HD_OK;

	w->step->rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->count.step);
	rank->first_ivn = 0;
	for (rank->nwave = 1; rank->nwave < rank->work->script.nvns_here &&
		rank->work->wave[rank->nwave] == rank->work->wave[0]; rank->nwave++)
		;
	if (nparts && nparts < rank->nwave)
		rank->nwave = nparts;
	/* the rows taken here are the next step's: its reader goes back */
	w->step->again = true;
	for (uint32_t i = 0; i < rank->nwave && !err; i++) {
		struct hd_loaded *loaded = &rank->work->loaded[i];
		hd_vn_rows(w->task->job->per_vn, w->step->rows, i, &loaded->first_row, &end);
		loaded->rows = end - loaded->first_row;
		err = hd_reading_take(w, (uint64_t)w->count.step, i, loaded->field, &nrows, diag);
		k->ntaken += !err;
	}
	return err;
}

static void bind(struct hd_walk *k)
{
	struct hd_rank *rank = k->rank;

	hd_rank_bind(rank, 0, 0, 0, &k->bind);
	for (uint32_t i = 0; i < rank->nwave; i++)
		k->part[i] = (struct hd_part){ .rows = rank->nwave == 1 ? k->bind.rows :
			rank->work->loaded[i].rows, .vn = i, .fold = rank->fold[i],
			.nfolds = hd_rank_moves(rank, i, 0, rank->fold[i]) };
	k->bind.part = k->part;
	k->bind.nparts = rank->nwave;
}

enum hd_err hd_walk_open(struct hd_walk *k, struct hd_worker *w, uint32_t nparts, struct hd_diag *diag)
{
	*k = (struct hd_walk){ .worker = w, .rank = &w->rank[0] };
	enum hd_err err = refuse(w, diag);

	if (!err && w->step->again)
		err = hd_worker_reread(w, diag);
	if (!err)
		err = load(k, nparts, diag);
	if (!err)
		bind(k);
	return err;
}

void hd_walk_close(struct hd_walk *k)
{
	for (uint32_t i = 0; i < k->ntaken; i++)
		hd_reading_done(k->worker, (uint64_t)k->worker->count.step, i);
	k->ntaken = 0;
	k->rank->nwave = 0;
}

enum hd_err hd_walk_run(struct hd_walk *k, enum hd_run_phase phase, uint32_t place, struct hd_diag *diag)
{
	struct hd_device *device = k->rank->device;
	uint64_t token = 0;

	k->bind.from = place;
	k->bind.to = place + 1;
	enum hd_err err = device->ops->run(device, &k->worker->stage->train, phase, &k->bind, &token, diag);
	return err ? err : device->ops->wait(device, token, diag);
}
