#include "engine/delays.h"

#include <string.h>

#include "graph/stages.h"
#include "pipeline/schedule.h"
#include "engine/stamps.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the delays of an update");
}

static enum hd_err refuse(const struct hd_job *job, struct hd_diag *why, struct hd_diag *diag)
{
	const struct hd_job_value *v = &job->value[HD_JOB_CUTS];

	return hd_fail(diag, HD_E_INVAL, "%s:%u:%u: optim.cuts: %s", job->file, v->line, v->column,
		why->text);
}

/* The text was checked with the job (hd_job_cuts()). */
static enum hd_err find_first(struct hd_delays *d, const struct hd_job *job, const struct hd_graph *graph,
	uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t node[HD_JOB_MAX_CUTS];
	bool balance;

	d->nstages = hd_job_cuts(hd_job_text(job, HD_JOB_CUTS), &balance, node);
	d->first = hd_arena_take(arena, d->nstages + 1, sizeof *d->first);
	if (!d->first)
		return no_memory(diag);
	if (balance)
		return hd_graph_stages_balance(d->first, d->nstages, graph, rows, arena, diag);
	memcpy(d->first, node, d->nstages * sizeof *node);
	return HD_OK;
}

static uint32_t ceil_of(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

static enum hd_err delay_stages(struct hd_delays *d, const struct hd_job *job, const struct hd_graph *graph,
	uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	const bool stash = hd_job_int(job, HD_JOB_UPDATE) == HD_UPDATE_STASH;
	struct hd_graph_stages cuts;
	struct hd_diag why = { "" };
	enum hd_err err = find_first(d, job, graph, rows, arena, &why);

	err = err ? err : hd_graph_stages_make(&cuts, graph, d->first, d->nstages, arena, &why);
	if (err)
		return refuse(job, &why, diag);
	uint8_t *of_tensor = hd_arena_take(arena, (size_t)graph->nparams + 1, sizeof *of_tensor);
	if (!of_tensor)
		return no_memory(diag);
	for (uint32_t p = 0; p < graph->nparams; p++) {
		const uint32_t ahead = d->nstages - 1 - (stash ? hd_graph_stages_lowest(&cuts, p) : 0);
		d->of_param[p] = graph->param[p].frozen ? 0 : (uint8_t)ceil_of(ahead, job->nvns);
		uint8_t *most = &of_tensor[graph->param[p].slice.tensor];
		*most = d->of_param[p] > *most ? d->of_param[p] : *most;
	}
	/* slices of a tensor are of one age, though a cut may fall between the nodes of shards */
	for (uint32_t p = 0; p < graph->nparams; p++)
		d->of_param[p] = of_tensor[graph->param[p].slice.tensor];
	return HD_OK;
}

enum hd_err hd_delays_make(struct hd_delays *delays, const struct hd_job *job, const struct hd_graph *graph,
	uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_delays d = { .of_param = hd_arena_take(arena, graph->nparams + 1, sizeof *d.of_param) };
	const int64_t update = hd_job_int(job, HD_JOB_UPDATE);
	const uint32_t bound = hd_stamps_bound(job);
	enum hd_err err = d.of_param ? HD_OK : no_memory(diag);

	if (!err && (update == HD_UPDATE_STASH || update == HD_UPDATE_VSYNC))
		err = delay_stages(&d, job, graph, rows, arena, diag);
	for (uint32_t p = 0; p < graph->nparams && !err && update == HD_UPDATE_2BW; p++)
		d.of_param[p] = !graph->param[p].frozen;
	for (uint32_t p = 0; p < graph->nparams && !err && bound; p++)
		d.of_param[p] = graph->param[p].frozen ? 0 : (uint8_t)bound;
	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		d.most = d.of_param[p] > d.most ? d.of_param[p] : d.most;
	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		d.differ |= !graph->param[p].frozen && d.of_param[p] < d.most;
	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		d.early |= d.most && !graph->param[p].frozen && !d.of_param[p];
	if (!err)
		*delays = d;
	return err;
}
