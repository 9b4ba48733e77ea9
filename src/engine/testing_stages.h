/* testing_stages.h -- plans of several stages for tests of this room: included by *_test.c only. */
#ifndef HD_ENGINE_TESTING_STAGES_H
#define HD_ENGINE_TESTING_STAGES_H

#include <math.h>

#include "graph/stages.h"
#include "pipeline/generate.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/redundancy.h"
#include "pipeline/staged.h"
#include "engine/testing.h"

__attribute__((unused))
static const char hd_rig_gpt3[] =
	"model: {use: builtin:gpt, args: {layers: 3, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

/* A schedule by its name: ranks of a pipeline, chunks, pipelines; devices of a rank. */
struct hd_rig_kind { const char *name; uint32_t p, v, d; enum hd_stage_keeps keeps; uint32_t t; };
/* In how many groups the devices of a rank lie. */
static uint32_t hd_rig_groups = 1;

static const char *const hd_rig_keeps[] = { "", " recompute", " offload" };

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
	err = err ? err : hd_plan_staged(plan, &job, pipeline, k->d, first, k->keeps, arena, diag);
	return err ? err : hd_plan_spread(plan, &job, k->t, hd_rig_groups, arena, diag);
}

/* The plan with shadow stages of a mode, placed before receives. */
__attribute__((unused))
static enum hd_err hd_rig_shadowed(struct hd_plan *plan, enum hd_redundancy mode, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_schedule s = { 0 }, with = { 0 };
	enum hd_err err = hd_schedule_of_plan(&s, plan, arena, diag);

	err = err ? err : hd_redundancy_add(&with, &s, &(struct hd_redundancy_ask){ .mode = mode }, arena,
		diag);
	if (!err)
		plan->list = with.list;
	return err;
}

/* What a few steps said: state, norms, losses and hits of each virtual node. */
enum { HD_RIG_STEPS = 3, HD_RIG_VNS = 16 };

struct hd_rig_said {
	struct hd_hash digest[HD_RIG_STEPS];
	double gnorm[HD_RIG_STEPS];
	struct hd_leaf leaf[HD_RIG_STEPS][HD_RIG_VNS];
};

static inline void hd_rig_steps(struct hd_rig *rig, struct hd_rig_said *said)
{
	memset(said, 0, sizeof *said);
	for (int i = 0; i < HD_RIG_STEPS; i++) {
		struct hd_step_record r = hd_rig_step(rig);
		said->digest[i] = r.digest;
		said->gnorm[i] = r.gnorm;
		memcpy(said->leaf[i], rig->worker->step->leaf, rig->job->nvns * sizeof **said->leaf);
	}
}

/* A worker of p d t devices under the plan of that kind. */
static inline void hd_rig_open_staged(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more, const struct hd_rig_kind *k)
{
	struct hd_diag diag = { "" };
	struct hd_plan plan;

	hd_rig_open(rig, model, batch, vns, more, k->p * k->d * (k->t));
	CHECK(hd_rig_staged(rig->worker, rig->task, k, &rig->arena, &plan, &diag) == HD_OK,
		"%s p %u v %u d %u t %u: %s", k->name, k->p, k->v, k->d, k->t, diag.text);
	rig->plan = plan;
	CHECK(hd_worker_adopt(rig->worker, &rig->plan, &diag) == HD_OK, "%s: %s", k->name, diag.text);
}

/* Of many kinds every third under ThreadSanitizer, every other one under AddressSanitizer, from another one
 * on at each call: two calls for the same kinds meet all of them. */
static uint32_t hd_rig_turn;

static inline bool hd_rig_takes(size_t i, size_t n)
{
	if (RACES)
		return n < 4 || (i + hd_rig_turn) % 3 == 0;
	return !SANITIZED || n < 6 || (i + hd_rig_turn) % 2 == 0;
}

/* Each kind says what one device says under a plan of the whole model. */
static inline void hd_rig_compare(const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kinds, size_t n)
{
	struct hd_rig_said one, many;
	struct hd_rig rig;

	hd_rig_turn++;
	hd_rig_open(&rig, model, batch, vns, more, 1);
	hd_rig_steps(&rig, &one);
	hd_rig_close(&rig);
	for (size_t i = 0; i < n; i++) {
		if (!hd_rig_takes(i, n))
			continue;
		hd_rig_open_staged(&rig, model, batch, vns, more, &kinds[i]);
		hd_rig_steps(&rig, &many);
		CHECK(memcmp(&one, &many, sizeof one) == 0, "%.40s V=%u: %s p %u v %u d %u t %u%s", model,
			vns,
			kinds[i].name, kinds[i].p, kinds[i].v, kinds[i].d, kinds[i].t,
			hd_rig_keeps[kinds[i].keeps]);
		hd_rig_close(&rig);
	}
}

/* A reader that fails at every fourth sample from `at` on, or answers what is no number. */
static struct { const struct hd_reader_ops *under; uint64_t at; bool number; } hd_rig_faulty;

static inline enum hd_err hd_rig_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	enum hd_err err = hd_rig_faulty.under->read(set, split, index, out, diag);

	if (err || split != 0 || index % 4 != hd_rig_faulty.at)
		return err;
	if (!hd_rig_faulty.number)
		return hd_fail(diag, HD_E_IO, "sample %llu cannot be read", (unsigned long long)index);
	*(float *)out[0] = NAN;
	return HD_OK;
}

static inline void hd_rig_read_end(struct hd_dataset *set) { hd_rig_faulty.under->destroy(set); }

/* Between hd_rig_hush() and a rewind. */
__attribute__((unused))
static void hd_rig_break(struct hd_rig *rig, uint64_t at, bool number)
{
	static const struct hd_reader_ops ops = { .name = "faulty", .about = "another reader, with faults",
		.read = hd_rig_read, .destroy = hd_rig_read_end };

	hd_rig_faulty.under = rig->task->data->ops;
	hd_rig_faulty.at = at;
	hd_rig_faulty.number = number;
	rig->task->data->ops = &ops;
}

__attribute__((unused))
static void hd_rig_mend(struct hd_rig *rig) { rig->task->data->ops = hd_rig_faulty.under; }

#endif
