#include "engine/pipe.h"

#include <math.h>

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "engine/testing_stages.h"

/* Plans of several stages give the bits of one device: state digests, norms, what each virtual node said. */

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 2, 1, 1, false, 1 }, { "gpipe", 4, 1, 1, true, 1 }, { "1f1b", 2, 1, 1, false, 1 },
	{ "1f1b", 3, 1, 1, true, 1 }, { "1f1b", 2, 1, 2, false, 1 }, { "interleaved", 2, 2, 1, false, 1 },
	{ "interleaved", 2, 2, 1, true, 1 }, { "zb-h1", 3, 1, 1, false, 1 }, { "zb-h2", 2, 1, 2, false, 1 },
	{ "zb-v", 2, 2, 1, false, 1 }, { "v-half", 2, 2, 1, false, 1 }, { "v-min", 2, 2, 1, true, 1 },
	{ "dualpipev", 2, 2, 1, false, 1 }, { "zb-auto", 3, 1, 1, false, 1 },
	{ "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 }, { "1f1b", 3, 1, 1, HD_KEEPS_AWAY, 1 },
	{ "interleaved", 2, 2, 1, HD_KEEPS_AWAY, 1 }, { "zb-h1", 3, 1, 1, HD_KEEPS_AWAY, 1 },
	{ "zb-v", 2, 2, 1, HD_KEEPS_AWAY, 1 }, { "dualpipev", 2, 2, 1, HD_KEEPS_AWAY, 1 },
	{ "1f1b", 2, 1, 2, HD_KEEPS_AWAY, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static void a_transformer_with_a_tied_table_and_dropout(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_gpt3, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", kinds, NKINDS);
}

static void virtual_nodes_that_are_no_power_of_two(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_gpt3, 13, 13, NULL, kinds, NKINDS);
}

/* 61 samples in batches of 26: the third step has 9 rows, most virtual nodes have none. */
static void ragged_and_empty_virtual_nodes(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_lenet, 26, 13, "optim: {kind: sgd, momentum: 0.9}\n", kinds, NKINDS);
	hd_rig_compare(hd_rig_gpt3, 26, 7, NULL, kinds, NKINDS);
}

static void ghost_norms_move_their_running_statistics(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_bn(), 16, 8, NULL, kinds, NKINDS);
}

static void optimizers_of_whole_tensors(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_mlp, 16, 8, "optim: {kind: lamb}\n", kinds, 4);
	hd_rig_compare(hd_rig_gpt3, 16, 8, "optim: {kind: lamb}\n", kinds, 2);
}

/* Which version a step reads is the job's: stages, their number and their order are not asked. */
static void delayed_updates(void **state)
{
	(void)state;
	hd_rig_compare(hd_rig_gpt3, 16, 8, "optim: {kind: adamw, clip: 0.5, update: 2bw}\n", kinds, NKINDS);
	hd_rig_compare(hd_rig_gpt3, 13, 13, "optim: {update: stash, cuts: auto:3}\n", kinds, 4);
	hd_rig_compare(hd_rig_gpt3, 26, 2, "optim: {kind: lion, update: stash, cuts: auto:4}\n", kinds, 3);
	hd_rig_compare(hd_rig_bn(), 26, 7, "optim: {kind: lamb, update: vsync, cuts: auto:2}\n", kinds, 3);
	hd_rig_compare(hd_rig_mlp, 26, 2,
		"optim: {kind: momentum, lr: 0.05, update: vsync, cuts: auto:5}\n", kinds,
		3);
}

/* Counted from the lists: what each rank ran of each stage, since the plan was adopted. */
static void instructions_are_timed_by_rank_and_stage(void **state)
{
	static const uint8_t ops[] = { HD_INS_F, HD_INS_B, HD_INS_I, HD_INS_W, HD_INS_SA, HD_INS_STEP };
	static const struct hd_rig_kind some[] = { { "1f1b", 3, 1, 1, false, 1 }, { "zb-v", 2, 2, 1, false,
		1 },
		{ "gpipe", 2, 1, 2, false, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		struct hd_rig_said said;
		struct hd_rig rig;
		hd_rig_open_staged(&rig, hd_rig_gpt3, 16, 8, NULL, &some[i]);
		hd_rig_steps(&rig, &said);
		for (uint32_t r = 0; r < rig.plan.nranks; r++)
			for (uint16_t s = 0; s < rig.plan.nstages; s++)
				for (size_t o = 0; o < sizeof ops; o++) {
					const struct hd_spent spent = hd_worker_spent(rig.worker, r, s,
						ops[o]);
					uint64_t n = 0;
					for (uint32_t k = 0; k < rig.plan.list[r].len; k++)
						n += rig.plan.list[r].at[k].op == ops[o] &&
							rig.plan.list[r].at[k].stage == s;
					CHECK(spent.n == n * HD_RIG_STEPS && (ops[o] != HD_INS_F ||
						!n == !spent.ns),
						"%s: rank %u, stage %u, %s: %llu of %llu", some[i].name, r, s,
						hd_ins_row(ops[o])->text, (unsigned long long)spent.n,
						(unsigned long long)(n * HD_RIG_STEPS));
				}
		hd_rig_close(&rig);
	}
}

/* Stages with copies inside of one pipeline. */
static void copies_of_stages(const char *more)
{
	static const uint32_t replicas[] = { 2, 1 };
	struct hd_rig_said one, many;
	struct hd_rig rig;
	struct hd_diag diag = { "" };
	struct hd_schedule s;
	uint32_t first[2];

	hd_rig_open(&rig, hd_rig_gpt3, 16, 8, more, 1);
	hd_rig_steps(&rig, &one);
	hd_rig_close(&rig);
	hd_rig_open(&rig, hd_rig_gpt3, 16, 8, more, 3);
	const struct hd_plan_job job = hd_worker_plan_job(rig.worker);
	const struct hd_schedule_ask ask = { .name = "1f1b-rr", .p = 3, .m = 8, .replicas = replicas,
		.nreplicas = 2 };
	CHECK(hd_schedule_make(&s, &ask, &rig.arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_graph_stages_balance(first, 2, &rig.task->train, 2, &rig.arena, &diag), HD_OK);
	CHECK(hd_plan_staged(&rig.plan, &job, &s, 1, first, false, &rig.arena, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	hd_rig_steps(&rig, &many);
	assert_memory_equal(&one, &many, sizeof one);
	hd_rig_close(&rig);
}

static void a_stage_may_have_copies(void **state)
{
	(void)state;
	copies_of_stages(NULL);
	copies_of_stages("optim: {update: 2bw}\n");
	copies_of_stages("optim: {update: stash, cuts: auto:2}\n");
}

/* Between any two steps, to another schedule and back to the whole model. */
static void plans_change_between_steps(void **state)
{
	struct hd_rig rig, still;
	struct hd_plan plan[NKINDS], whole;
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	(void)state;
	hd_rig_open(&still, hd_rig_gpt3, 16, 8, NULL, 1);
	hd_rig_open(&rig, hd_rig_gpt3, 16, 8, NULL, 2);
	whole = rig.plan;
	for (size_t k = 0; k < NKINDS; k++)
		if (kinds[k].p * kinds[k].d == 2)
			CHECK(hd_rig_staged(rig.worker, rig.task, &kinds[k], &rig.arena, &plan[n++],
				&diag) == HD_OK, "%s", diag.text);
	for (uint32_t i = 0; i < 2 * n; i++) {
		CHECK(hd_worker_adopt(rig.worker, i % 3 == 2 ? &whole : &plan[i % n], &diag) == HD_OK, "%s",
			diag.text);
		struct hd_step_record a = hd_rig_step(&rig), b = hd_rig_step(&still);
		CHECK(hd_hash_same(a.digest, b.digest), "step %u", i);
	}
	hd_rig_close(&still);
	hd_rig_close(&rig);
}

/* ---- faults ---- */

/* A rank that fails ends the others' waits; the state is that of the beginning, and the step can be tried
 * again. */
static void a_failed_step_ends_and_leaves_the_state(void **state)
{
	struct hd_rig_said one, many;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 1);
	hd_rig_steps(&rig, &one);
	hd_rig_close(&rig);
	for (size_t k = 0; k < NKINDS; k++)
		for (int number = 0; number < 2 && hd_rig_takes(k, NKINDS); number++) {
			struct hd_step_record record;
			struct hd_diag diag = { "" };
			hd_rig_open_staged(&rig, hd_rig_mlp, 26, 13, NULL, &kinds[k]);
			hd_rig_hush(&rig);
			hd_rig_break(&rig, k % 4, number);
			assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
			struct hd_hash before = hd_worker_digest(rig.worker);
			assert_int_equal(hd_worker_step(rig.worker, true, &record, &diag), number ?
				HD_E_DIVERGED :
				HD_E_IO);
			assert_true(hd_hash_same(before, hd_worker_digest(rig.worker)));
			hd_rig_hush(&rig);
			hd_rig_mend(&rig);
			assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
			hd_rig_steps(&rig, &many);
			CHECK(memcmp(&one, &many, sizeof one) == 0, "%s: other bits after a failed step",
				kinds[k].name);
			hd_rig_close(&rig);
		}
}

static void a_step_that_fails_in_its_update_is_torn(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	if (!hd_failpoint_built())
		SKIP("this build has no failpoints");
	hd_rig_open_staged(&rig, hd_rig_mlp, 26, 13, NULL, &kinds[2]);
	assert_int_equal(hd_failpoint_arm("step.update.after:err=EIO@1", 1, &diag), HD_OK);
	assert_int_not_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_OK);
	assert_int_equal(hd_failpoint_arm("", 1, &diag), HD_OK);
	assert_int_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_E_INTEGRITY);
	hd_rig_close(&rig);
}

/* Whatever request for memory fails, the plan that is there stays and trains on. */
static void a_plan_that_finds_no_memory_changes_nothing(void **state)
{
	struct hd_rig rig, whole;
	struct hd_plan plan;
	struct hd_diag diag = { "" };
	uint32_t failed = 0;

	(void)state;
	hd_rig_open(&whole, hd_rig_mlp, 26, 13, NULL, 1);
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 2);
	CHECK(hd_rig_staged(rig.worker, rig.task, &kinds[2], &rig.arena, &plan, &diag) == HD_OK, "%s",
		diag.text);
	for (uint64_t n = 1; n < 2000; n += 1 + n / 8) {
		hd_alloc_arm(n);
		enum hd_err err = hd_worker_adopt(rig.worker, &plan, &diag);
		hd_alloc_arm(0);
		if (!err)
			break;
		failed++;
		assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&whole).digest));
	}
	assert_true(failed > 0);
	assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&whole).digest));
	hd_rig_close(&whole);
	hd_rig_close(&rig);
}

/* What a plan held is given back once another is in use, and while both are there both are counted. */
static void a_plan_that_is_left_holds_nothing(void **state)
{
	struct hd_memory_terms whole, stages, both, again;
	struct hd_plan plan, data;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_gpt3, 16, 8, NULL, 2);
	data = rig.plan;
	hd_worker_memory(rig.worker, &whole);
	CHECK(hd_rig_staged(rig.worker, rig.task, &kinds[2], &rig.arena, &plan, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_worker_adopt(rig.worker, &plan, &diag) == HD_OK, "%s", diag.text);
	hd_worker_memory(rig.worker, &stages);
	struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
	assert_true(pipe->taken);
	const struct hd_dist_view view = { .plan = &data, .worker = data.worker[0] };
	CHECK(hd_dist_memory(rig.worker, &view, &both, &diag) == HD_OK, "%s", diag.text);
	CHECK(both.arenas == whole.arenas + hd_pipe_bytes(pipe, 0) + hd_pipe_bytes(pipe, 1),
		"%llu bytes, with the whole model's %llu", (unsigned long long)both.arenas,
		(unsigned long long)whole.arenas);
	hd_rig_step(&rig);
	CHECK(hd_dist_prepare(rig.worker, &view, &diag) == HD_OK, "%s", diag.text);
	assert_true(pipe->taken);
	hd_dist_adopt(rig.worker);
	assert_false(pipe->taken);
	hd_worker_memory(rig.worker, &again);
	assert_int_equal(again.arenas, whole.arenas);
	assert_int_not_equal(stages.arenas, whole.arenas);
	hd_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transformer_with_a_tied_table_and_dropout),
		cmocka_unit_test(virtual_nodes_that_are_no_power_of_two),
		cmocka_unit_test(ragged_and_empty_virtual_nodes),
		cmocka_unit_test(ghost_norms_move_their_running_statistics),
		cmocka_unit_test(optimizers_of_whole_tensors),
		cmocka_unit_test(delayed_updates),
		cmocka_unit_test(instructions_are_timed_by_rank_and_stage),
		cmocka_unit_test(a_stage_may_have_copies),
		cmocka_unit_test(plans_change_between_steps),
		cmocka_unit_test(a_failed_step_ends_and_leaves_the_state),
		cmocka_unit_test(a_step_that_fails_in_its_update_is_torn),
		cmocka_unit_test(a_plan_that_finds_no_memory_changes_nothing),
		cmocka_unit_test(a_plan_that_is_left_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
