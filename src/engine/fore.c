#include "engine/fore.h"

#include <string.h>

#include "engine/lockstep.h"
#include "engine/stamps.h"
#include "engine/worker_int.h"

uint32_t hd_fore_steps(const struct hd_job *job)
{
	return hd_job_int(job, HD_JOB_MODE) == HD_MODE_BOUNDED ? hd_stamps_bound(job) : 0;
}

static bool has_sums(const struct hd_graph *graph)
{
	bool has = false;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		has |= hd_lockstep_is_sync(&graph->node[i]) && graph->node[i].op != HD_OP_ROWS_MEET;
	return has;
}

enum hd_err hd_fore_allowed(const struct hd_task *task, struct hd_diag *diag)
{
	const struct { bool refused; const char *why; } rows[] = {
		{ has_sums(&task->train), "all virtual nodes meet in norms over the global batch" },
		{ task->train.nrunning, "the model has running statistics" },
		{ task->layout.held_elems > task->layout.elems, "parameters are frozen" },
		{ !task->job->value[HD_JOB_VALUES].is_none, "trace.values looks at one step at a time" },
	};

	if (!hd_stamps_bound(task->job))
		return HD_OK;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].refused && (hd_fore_steps(task->job) || i + 1 < sizeof rows / sizeof *rows))
			return hd_fail(diag, HD_E_INVAL, "batch.staleness %u: no virtual node can be "
				"ahead of others, for %s: write 0", hd_stamps_bound(task->job), rows[i].why);
	return HD_OK;
}

uint64_t hd_fore_bytes(const struct hd_task *task)
{
	const uint64_t most = hd_fore_steps(task->job);

	return most * (hd_lockstep_bytes(&task->train, task->job) + hd_moments_bytes(task) +
		task->job->nvns * sizeof(struct hd_leaf));
}

enum hd_err hd_fore_take(struct hd_worker *w, struct hd_diag *diag)
{
	const uint32_t most = hd_fore_steps(w->task->job);
	const uint64_t nvns = w->task->job->nvns;
	struct hd_fore *f;

	if (!most)
		return HD_OK;
	f = hd_arena_take(&w->arena, 1, sizeof *f);
	if (f) {
		f->most = most;
		f->leaf = hd_arena_take(&w->arena, most * nvns, sizeof *f->leaf);
		f->said = hd_arena_take(&w->arena, most * hd_moments_bytes(w->task) + 1, 1);
	}
	if (!f || !f->leaf || !f->said)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps ahead of %llu virtual nodes", most,
			(unsigned long long)nvns);
	w->stage->lockstep.fore = f;
	return HD_OK;
}

void hd_fore_forget(struct hd_worker *w)
{
	if (!w->stage->lockstep.fore)
		return;
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		w->rank[r].at.step = w->rank[r].at.nparts = 0;
	hd_stamps_clear(w);
}

bool hd_fore_runs(const struct hd_worker *w)
{
	return w->stage->lockstep.fore && hd_stamps_run_free(w) && w->step->work == hd_worker_work(w);
}

/* Where step t is kept. */
static uint64_t place_of(const struct hd_rank *rank, uint64_t step)
{
	return step % rank->worker->stage->lockstep.fore->most;
}

float *const *hd_fore_buffer(const struct hd_rank *rank)
{
	return rank->ahead && rank->work->fore ? rank->work->fore + place_of(rank, hd_rank_step(rank)) *
		rank->work->script.nbuffers : rank->work->buffer;
}

static struct hd_leaf *leaf_at(const struct hd_rank *rank, uint64_t step, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;

	return &w->stage->lockstep.fore->leaf[place_of(rank, step) * w->task->job->nvns + vn];
}

static double *said_at(const struct hd_rank *rank, uint64_t step, uint32_t vn)
{
	const struct hd_worker *w = rank->worker;

	return w->stage->lockstep.fore->said + (place_of(rank, step) * w->task->job->nvns + vn) *
		w->step->moments.elems;
}

static bool is_ahead(const struct hd_rank *rank) { return rank->ahead && rank->worker->stage->lockstep.fore; }

struct hd_leaf *hd_fore_leaf(const struct hd_rank *rank, uint32_t vn)
{
	return is_ahead(rank) ? leaf_at(rank, hd_rank_step(rank), vn) : &rank->worker->step->leaf[vn];
}

double *hd_fore_said(const struct hd_rank *rank, uint32_t vn)
{
	const struct hd_moments *m = &rank->worker->step->moments;

	return is_ahead(rank) ? said_at(rank, hd_rank_step(rank), vn) : m->leaf + vn * m->elems;
}

void hd_fore_open(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_rank_work *work = rank->work;
	const uint64_t step = (uint64_t)w->count.step;

	if (rank->id == 0) {
		atomic_store(&w->stage->lockstep.fore->nthrough, 0);
		atomic_store(&w->stage->lockstep.fore->here, !w->step->work->meeting);
	}
	if (rank->at.step < step || (rank->at.step == step && !rank->at.nparts))
		return;
	for (uint32_t i = 0; i < work->script.nvns_here; i++) {
		const uint32_t vn = work->script.vn[i];
		*hd_fore_leaf(rank, vn) = *leaf_at(rank, step, vn);
		memcpy(hd_fore_said(rank, vn), said_at(rank, step, vn),
			w->step->moments.elems * sizeof(double));
	}
	for (uint32_t b = 0; b < work->script.nbuffers; b++)
		memcpy(work->buffer[b], work->fore[place_of(rank, step) * work->script.nbuffers + b],
			w->stage->flat_bytes);
}

uint32_t hd_fore_next(const struct hd_rank *rank, uint64_t step, uint32_t nparts)
{
	return rank->at.step > step ? nparts : rank->at.step == step ? rank->at.nparts : 0;
}

void hd_fore_ran(struct hd_rank *rank, uint64_t step, uint32_t part, uint32_t nparts)
{
	const bool through = part + 1 == nparts;

	rank->at.step = step + through;
	rank->at.nparts = through ? 0 : part + 1;
}
