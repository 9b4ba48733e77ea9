/* testing_stages.h -- plans of several stages for tests of this room: included by *_test.c only. */
#ifndef HD_ENGINE_TESTING_STAGES_H
#define HD_ENGINE_TESTING_STAGES_H

#include "graph/stages.h"
#include "pipeline/generate.h"
#include "pipeline/staged.h"
#include "engine/testing.h"

__attribute__((unused))
static const char hd_rig_gpt3[] =
	"model: {use: builtin:gpt, args: {layers: 3, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

/* A schedule by its name: devices of a pipeline, chunks, pipelines. */
struct hd_rig_kind { const char *name; uint32_t p, v, d; bool recompute; };

/* The plan of such a schedule for a job of `task`; `worker` says what the job asks of plans. */
static inline enum hd_err hd_rig_staged(const struct hd_worker *worker, const struct hd_task *task,
	const struct hd_rig_kind *k, struct hd_arena *arena, struct hd_plan *plan, struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(worker);
	struct hd_schedule *pipeline = hd_arena_take(arena, k->d, sizeof *pipeline);
	uint32_t first[64];

	for (uint32_t i = 0; i < k->d; i++) {
		const struct hd_schedule_ask ask = { .name = k->name, .p = k->p, .v = k->v,
			.m = job.nvns / k->d + (i < job.nvns % k->d) };
		enum hd_err err = hd_schedule_make(&pipeline[i], &ask, arena, diag);
		if (err)
			return err;
	}
	assert_in_range(pipeline[0].nstages, 1, 64);
	enum hd_err err = hd_graph_stages_balance(first, pipeline[0].nstages, &task->train,
		task->job->per_vn, arena, diag);
	return err ? err : hd_plan_staged(plan, &job, pipeline, k->d, first, k->recompute, arena, diag);
}

#endif
