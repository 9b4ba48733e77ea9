#include "run/pipes_shadows.h"

#include <string.h>

#include "pipeline/plan_schedule.h"
#include "pipeline/redundancy.h"
#include "pipeline/staged.h"
#include "engine/testing.h"

/* Plans of views with shadows: which work they have, and that without it they are the plans they were. */

static const char gpt[] = "model: {use: builtin:gpt, args: {layers: 3, width: 16, heads: 2, context: 8, "
	"vocab: 90}}\ndata: {kind: synthetic, count: 640}\n";
/* four stages of equal work */
static const char even_gpt[] = "model: {use: builtin:gpt, args: {layers: 4, width: 32, heads: 2, context: 8, "
	"vocab: 20}}\ndata: {kind: synthetic, count: 640}\n";
enum { VNS = 8 };

struct made { struct hd_rig rig; struct hd_pipes pipes; struct hd_plan plan; struct hd_diag diag;
	enum hd_err err; };

static void make_of(struct made *m, const char *model, uint32_t vns, const char *redundancy,
	const char *parallel, uint32_t n, uint32_t ndevices)
{
	char more[300];
	struct hd_view view;

	*m = (struct made){ .err = HD_OK };
	snprintf(more, sizeof more, "comm: {sync: stages}\nelastic: {redundancy: %s}\nparallel: {%s}\n",
		redundancy, parallel);
	hd_rig_begin(&m->rig, model, vns, vns, more);
	CHECK(hd_task_create(&m->rig.task, m->rig.job, &m->rig.fs, &m->diag) == HD_OK, "%s", m->diag.text);
	m->err = hd_pipes_make(&m->pipes, m->rig.task, &m->rig.arena, &m->diag);
	if (m->err)
		return;
	const struct hd_plan_job job = hd_plan_job_whole(vns, m->rig.task->layout.nchunks);
	assert_true(hd_pipes_view(&view, &m->pipes, n, ndevices, vns));
	m->err = hd_pipes_plan(&m->plan, &m->pipes, &view, &job, m->rig.task, &m->rig.arena, &m->diag);
	CHECK(!m->err && !hd_plan_staged_check(&m->plan, &job, NULL, &m->diag), "%s: %s", redundancy,
		m->diag.text);
}

static void make(struct made *m, const char *redundancy, const char *parallel, uint32_t n, uint32_t ndevices)
{
	make_of(m, gpt, VNS, redundancy, parallel, n, ndevices);
}

static uint32_t count(const struct hd_plan *plan, uint8_t op)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			n += plan->list[r].at[i].op == op && plan->list[r].at[i].flags & HD_INS_SHADOW;
	return n;
}

/* Sends of what goes to a neighbour, and how many of them are kept. */
static uint32_t sends(const struct hd_plan *plan, uint32_t *kept)
{
	uint32_t n = 0;

	*kept = 0;
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			n += (ins->op == HD_INS_SA || ins->op == HD_INS_SG) && !(ins->flags & HD_INS_SHADOW);
			*kept += ins->flags & HD_INS_KEEP && !(ins->flags & HD_INS_SHADOW);
		}
	return n;
}

static bool same_lists(const struct hd_ilist *a, const struct hd_ilist *b, uint32_t nranks)
{
	for (uint32_t r = 0; r < nranks; r++)
		if (a[r].len != b[r].len || memcmp(a[r].at, b[r].at, a[r].len * sizeof *a[r].at))
			return false;
	return true;
}

static void lists_have_the_work_of_the_mode_and_are_else_what_they_were(void **state)
{
	static const struct { const char *mode; uint32_t f, off, b; const char *says; } rows[] = {
		{ "lazy", 0, 0, 0, "; shadows lazy" }, { "eager", 1, 1, 0, "; shadows eager" },
		{ "full", 1, 0, 1, "; shadows full" },
	};
	/* several pipelines share the virtual nodes out */
	static const struct { const char *parallel; uint32_t n, p; } shapes[] = {
		{ "stages: 3", 3, 3 }, { "stages: 2, replicas: 2", 4, 2 }, { "stages: 4, schedule: gpipe", 4, 4 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const uint32_t cells = shapes[k].p * VNS;
			struct made none, m;
			struct hd_schedule s = { 0 }, erased = { 0 };
			make(&none, "none", shapes[k].parallel, shapes[k].n, 1);
			make(&m, rows[i].mode, shapes[k].parallel, shapes[k].n, 1);
			CHECK(count(&m.plan, HD_INS_F) == rows[i].f * cells &&
				count(&m.plan, HD_INS_OFF) == rows[i].off * cells &&
				count(&m.plan, HD_INS_B) == rows[i].b * cells, "%s, %s",
				shapes[k].parallel, rows[i].mode);
			uint32_t kept;
			CHECK(sends(&m.plan, &kept) == 2 * (shapes[k].p - 1) * VNS && kept ==
				2 * (shapes[k].p - 1) * VNS, "%s, %s: %u are kept", shapes[k].parallel,
				rows[i].mode, kept);
			assert_true(sends(&none.plan, &kept) && !kept);
			const size_t at = strlen(m.plan.cause) - strlen(rows[i].says);
			CHECK(!strcmp(m.plan.cause + at, rows[i].says), "%s", m.plan.cause);
			assert_int_equal(hd_schedule_of_plan(&s, &m.plan, &m.rig.arena, &m.diag), HD_OK);
			assert_int_equal(hd_redundancy_erase(&erased, &s, &m.rig.arena, &m.diag), HD_OK);
			assert_true(same_lists(erased.list, none.plan.list, none.plan.nranks));
			assert_true(m.pipes.buckets.shadows && !none.pipes.buckets.shadows);
			hd_rig_close(&m.rig);
			hd_rig_close(&none.rig);
		}
}

/* The loss of such a worker takes both; the state is held elsewhere all the same. */
static void neighbours_of_one_worker_have_shadows_without_work(void **state)
{
	static const struct { uint32_t n, ndevices; bool works; } rows[] = {
		{ 4, 1, true }, { 2, 2, false }, { 1, 4, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		make(&m, "eager", "stages: 4", rows[i].n, rows[i].ndevices);
		CHECK((count(&m.plan, HD_INS_F) > 0) == rows[i].works && m.pipes.buckets.shadows, "row %zu",
			i);
		CHECK(!strstr(m.plan.cause, "shadows without work: neighbours of one worker") ==
			rows[i].works, "%s", m.plan.cause);
		hd_rig_close(&m.rig);
	}
}

/* 1f1b with four even stages: with one forward before each receive the step is longer than where the forwards
 * stand in waits. Unit costs, not those of the plan. */
static void work_stands_where_ranks_wait(void **state)
{
	struct hd_stage_costs even;
	struct hd_sim_plan gaps, receives;
	struct hd_schedule s = { 0 }, bare = { 0 }, other = { 0 };
	struct made m;

	(void)state;
	make_of(&m, even_gpt, 3 * VNS, "eager", "stages: 4", 4, 1);
	struct hd_arena *arena = &m.rig.arena;
	assert_int_equal(hd_stage_costs_even(&even, &(struct hd_rank_costs){ .f = 10, .i = 10, .w = 10 }, 4,
		arena, &m.diag), HD_OK);
	const struct hd_sim_setting set = { .costs = &even, .transport = HD_TRANSPORT_BUFFERED };
	assert_int_equal(hd_schedule_of_plan(&s, &m.plan, arena, &m.diag), HD_OK);
	assert_int_equal(hd_redundancy_erase(&bare, &s, arena, &m.diag), HD_OK);
	assert_int_equal(hd_redundancy_add(&other, &bare, &(struct hd_redundancy_ask){
		.mode = HD_REDUNDANCY_EAGER }, arena, &m.diag), HD_OK);
	assert_int_equal(hd_sim_plan(&gaps, &s, &set, arena, &m.diag), HD_OK);
	assert_int_equal(hd_sim_plan(&receives, &other, &set, arena, &m.diag), HD_OK);
	CHECK(gaps.makespan < receives.makespan, "%lld, before receives %lld", (long long)gaps.makespan,
		(long long)receives.makespan);
	hd_rig_close(&m.rig);
}

/* Rule 5. */
static void lazy_has_no_such_lists_where_none_can_be(void **state)
{
	static const struct { const char *parallel; uint32_t n, ndevices; bool keeps; } rows[] = {
		{ "stages: 4", 4, 1, true }, { "stages: 4", 2, 2, false },
		{ "schedule: zb-v, stages: 4", 2, 1, false },
		{ "schedule: interleaved, stages: 4", 2, 1, false },
		{ "stages: 2}\noptim: {update: 2bw", 2, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		uint32_t kept;
		make(&m, "lazy", rows[i].parallel, rows[i].n, rows[i].ndevices);
		CHECK(!m.err && sends(&m.plan, &kept) && (kept > 0) == rows[i].keeps, "row %zu: %s", i,
			m.diag.text);
		CHECK(!strstr(m.plan.cause, "shadows lazy") == !rows[i].keeps && m.pipes.buckets.shadows,
			"%s", m.plan.cause);
		hd_rig_close(&m.rig);
	}
}

static void what_a_rank_cannot_shadow_is_refused(void **state)
{
	static const struct { const char *mode, *parallel, *words; } rows[] = {
		{ "eager", "schedule: interleaved, stages: 4", "interleaved puts 2 stages on a device" },
		{ "full", "schedule: zb-v, stages: 4", "zb-v puts 2 stages on a device" },
		{ "lazy", "schedule: zb-v, stages: 4", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		make(&m, rows[i].mode, rows[i].parallel, 2, 1);
		if (rows[i].words)
			CHECK(m.err == HD_E_INVAL && strstr(m.diag.text, rows[i].words) &&
				strstr(m.diag.text, rows[i].mode), "%s", m.diag.text);
		else
			CHECK(!m.err, "%s", m.diag.text);
		hd_rig_close(&m.rig);
	}
	const struct hd_job *job;
	struct made m;
	make(&m, "eager", "stages: 2", 2, 1);
	job = m.rig.job;
	m.pipes.stages.t = 2;
	assert_int_equal(hd_pipes_shadows_fit(&m.pipes, job, &m.diag), HD_E_INVAL);
	CHECK(strstr(m.diag.text, "stages that 2 devices share"), "%s", m.diag.text);
	hd_rig_close(&m.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_have_the_work_of_the_mode_and_are_else_what_they_were),
		cmocka_unit_test(neighbours_of_one_worker_have_shadows_without_work),
		cmocka_unit_test(work_stands_where_ranks_wait),
		cmocka_unit_test(lazy_has_no_such_lists_where_none_can_be),
		cmocka_unit_test(what_a_rank_cannot_shadow_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
