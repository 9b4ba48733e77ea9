#include "run/stages.h"

#include <string.h>

#include "graph/op.h"
#include "graph/stages.h"
#include "pipeline/generate.h"
#include "pipeline/staged.h"

static uint32_t given(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].is_auto ? 0 : (uint32_t)job->value[key].i;
}

/* Kinds whose stages a pipeline of equal devices has. */
static enum hd_err find_kind(const struct hd_schedule_kind **kind, const struct hd_job *job, uint32_t chunks,
	struct hd_diag *diag)
{
	const struct hd_job_value *named = &job->value[HD_JOB_PAR_SCHEDULE];
	enum hd_err err = hd_schedule_kind_find(kind, !named->is_auto ? named->text : chunks > 1 ?
		"interleaved" : "1f1b", diag);

	if (err)
		return err;
	if (!strcmp((*kind)->name, "data-parallel"))
		return hd_fail(diag, HD_E_INVAL,
			"parallel.schedule: data-parallel is no order of stages; write parallel.mode: data");
	if (!strcmp((*kind)->name, "1f1b-rr"))
		return hd_fail(diag, HD_E_INVAL,
			"parallel.schedule: 1f1b-rr has copies of single stages, which a plan file names "
			"(parallel.mode: explicit); copies of whole pipelines are parallel.replicas");
	return HD_OK;
}

static enum hd_err find_ranks(struct hd_run_stages *s, const struct hd_job *job, uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag)
{
	const uint32_t stages = given(job, HD_JOB_PAR_STAGES), replicas = given(job, HD_JOB_PAR_REPLICAS);

	if (stages % s->v)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.stages is %u and a device has %u of them (chunks of %s): use a multiple of "
			"%u",
			stages, s->v, s->schedule, s->v);
	s->p = stages / s->v;
	s->d = replicas ? replicas : s->p && ndevices > s->p ? ndevices / s->p : 1;
	if (!s->p)
		s->p = ndevices ? ndevices / s->d : ncores / s->d > 2 ? ncores / s->d : 2;
	if (ndevices && s->p * s->d != ndevices)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices are no %u pipeline%s of %u: use %u (parallel.stages over "
			"parallel.chunks, times parallel.replicas)", ndevices, s->d,
			s->d == 1 ? "" : "s", s->p, s->p * s->d);
	if (s->p * s->v < 2)
		return hd_fail(diag, HD_E_INVAL,
			"one device and one stage are no pipeline: use --devices 2 or more, or "
			"parallel.mode: data");
	if (s->d > job->nvns)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.replicas is %u, and the job has %u virtual nodes: each pipeline needs one",
			s->d,
			job->nvns);
	return HD_OK;
}

enum hd_err hd_run_stages(struct hd_run_stages *stages, const struct hd_job *job, uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag)
{
	struct hd_run_stages s = { .recompute = hd_job_int(job, HD_JOB_PAR_RECOMPUTE) == HD_RECOMPUTE_STAGE };
	const struct hd_schedule_kind *kind = NULL;
	const uint32_t chunks = given(job, HD_JOB_PAR_CHUNKS);
	enum hd_err err = find_kind(&kind, job, chunks, diag);

	if (err)
		return err;
	s.schedule = kind->name;
	s.delayed = kind->update != HD_UPDATE_FLUSH;
	s.v = chunks ? chunks : kind->vmin ? kind->vmin : 1;
	err = find_ranks(&s, job, ndevices, ncores, diag);
	if (!err)
		*stages = s;
	return err;
}

/* "1f1b: 3 stages on 3 devices from nodes 0 12 25, with 34 33 33 % of the FLOPs". */
static enum hd_err describe(struct hd_plan *plan, const struct hd_run_stages *s, const struct hd_graph *graph,
	uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	double *flops = hd_arena_take(arena, plan->nstages + 1, sizeof *flops), all = 0;
	struct hd_text text;

	if (!flops)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		uint32_t at = i < graph->nforward ? i : graph->node[i].of, k = plan->nstages - 1;
		double cost = hd_ops[graph->node[i].op].cost(graph, &graph->node[i], rows).flops;
		while (k && plan->first[k] > at)
			k--;
		flops[k] += cost;
		all += cost;
	}
	hd_text_init(&text, arena);
	hd_text_addf(&text, "%s%s%s: %u stages, %u pipeline%s of %u devices; cuts at nodes", s->schedule,
		!s->delayed ? "" : plan->overlap ? " with steps that overlap" : " drained each step",
		s->recompute ? " with recomputation" : "",
		plan->nstages, s->d, s->d == 1 ? "" : "s", s->p);
	for (uint32_t k = 1; k < plan->nstages; k++)
		hd_text_addf(&text, " %u", plan->first[k]);
	hd_text_add(&text, ", FLOPs");
	for (uint32_t k = 0; k < plan->nstages; k++)
		hd_text_addf(&text, " %.0f", all > 0 ? 100 * flops[k] / all : 0);
	hd_text_add(&text, " %");
	plan->cause = text.at;
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for a plan") : HD_OK;
}

enum hd_err hd_run_stages_plan(struct hd_plan *plan, const struct hd_run_stages *s,
	const struct hd_worker *worker,
	const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(worker);
	struct hd_schedule *pipeline = hd_arena_take(arena, s->d, sizeof *pipeline);
	enum hd_err err = pipeline ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a plan");

	for (uint32_t k = 0; k < s->d && !err; k++) {
		const struct hd_schedule_ask ask = { .name = s->delayed ? "1f1b" : s->schedule,
			.p = s->p, .v = s->v, .m = job.nvns / s->d + (k < job.nvns % s->d) };
		err = hd_schedule_make(&pipeline[k], &ask, arena, diag);
	}
	uint32_t *first = err ? NULL : hd_arena_take(arena, pipeline[0].nstages, sizeof *first);
	if (!err && !first)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
	err = err ? err : hd_graph_stages_balance(first, pipeline[0].nstages, &task->train, task->rows[0],
		arena,
		diag);
	err = err ? err : hd_plan_staged(plan, &job, pipeline, s->d, first, s->recompute, arena, diag);
	if (!err)
		plan->overlap = s->delayed && s->d == 1 && !s->recompute && hd_worker_overlaps(worker, s->p);
	return err ? err : describe(plan, s, &task->train, task->rows[0], arena, diag);
}
