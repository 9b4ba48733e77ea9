/* testing_costs.h -- a job and a profile of it whose times are made up, for tests of this room: included by
 * *_test.c only. What a prediction must be follows from them by hand.
 *
 * Ownership: hd_made_begin() / hd_made_end(). */
#ifndef HD_RUN_TESTING_COSTS_H
#define HD_RUN_TESTING_COSTS_H

#include "cost/profile_graph.h"
#include "engine/testing.h"
#include "run/costs.h"

__attribute__((unused))
static const char hd_made_gpt[] =
	"model: {use: builtin:gpt, args: {layers: 4, width: 16, heads: 2, context: 8}}\n"
	"data: {kind: synthetic, count: 64}\n";

struct hd_made {
	struct hd_rig rig;                /* its job and its task */
	struct hd_run_costs *costs;
	uint32_t nnodes;                  /* of the profile */
	struct hd_diag diag;
};

/* 8 virtual nodes of 2 rows. Every node takes 1 ms forward, 1 for its input and 1 for its weights; every
 * `heavy`th four times as much (0: none), and what lies between them nothing. */
static inline void hd_made_begin(struct hd_made *m, const char *model, const char *more, uint32_t heavy)
{
	const struct hd_profile_ask ask = { .rows = 2, .nslots = 2, .tensor_shards = 1 };
	struct hd_profile profile;
	uint32_t *home;

	*m = (struct hd_made){ .diag = { "" } };
	hd_rig_begin(&m->rig, model, 16, 8, more);
	CHECK(hd_task_create(&m->rig.task, m->rig.job, &m->rig.fs, &m->diag) == HD_OK, "%s", m->diag.text);
	const struct hd_task *task = m->rig.task;
	CHECK(hd_profile_of_graph(&profile, &home, &task->train, &ask, &m->rig.arena, &m->diag) == HD_OK,
		"%s", m->diag.text);
	for (uint32_t i = 0; i < profile.nnodes; i++) {
		int64_t ns = 1000000 * (heavy && i % heavy == 0 ? 4 : 1);
		profile.node[i].f.p50_ns = profile.node[i].i.p50_ns = profile.node[i].w.p50_ns = ns;
	}
	m->nnodes = profile.nnodes;
	CHECK(hd_run_costs_of(&m->costs, &profile, home, &task->train, 2, &m->rig.arena, &m->diag) == HD_OK,
		"%s", m->diag.text);
}

static inline void hd_made_end(struct hd_made *m)
{
	hd_task_destroy(m->rig.task);
	hd_arena_finish(&m->rig.arena);
}

#endif
