#include "run/stages.h"

#include "base/alloc.h"
#include "pipeline/staged.h"
#include "run/testing_costs.h"

/* The plan of stages that are settled: its lists, its cuts, and the sentence that says what it is. */

static const char mlp[] =
	"model: {use: builtin:mlp, args: {input: [1, 1, 50], hidden: [100, 100], classes: 50}}\n"
	"data: {kind: synthetic, count: 64}\n";
static const char shards[] = "model: {use: builtin:gpt, shards: 4, sequence_shards: true, "
	"args: {layers: 4, width: 16, heads: 4, context: 8}}\ndata: {kind: synthetic, count: 64}\n";

static enum hd_err plan_of(struct hd_made *m, const struct hd_run_stages *s, const struct hd_run_costs *costs,
	struct hd_plan *plan)
{
	const struct hd_plan_job job = hd_plan_job_whole(m->rig.job->nvns, m->rig.task->layout.nchunks);

	m->diag.text[0] = 0;
	return hd_run_stages_plan(plan, s, &job, m->rig.task, costs, &m->rig.arena, &m->diag);
}

/* FLOPs of the products of the mlp, forward and backward, are 20, 60 and 30 thousand a sample (the first
 * needs no gradient of its input), and all others few. Of its nine nodes that take the same time a stage has
 * those before the cut; node 9 of the graph lies within one of them. */
static void the_cause_says_what_the_plan_is(void **state)
{
	static const uint32_t third[] = { 0, 3 }, within[] = { 0, 9 }, late[] = { 2, 4 };
	static const bool second[] = { false, true }, none[] = { false, false };
	static const struct { const char *model; struct hd_run_stages s; bool costs;
		const char *cause; } rows[] = {
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1 }, false,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, FLOPs 72 28 %" },
		{ mlp, { .schedule = "1f1b", .p = 3, .v = 1, .d = 1, .t = 1 }, false,
			"1f1b: 3 stages, 1 pipeline of 3 devices; cuts at nodes 3 4, FLOPs 19 54 28 %" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .first = late }, false,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, FLOPs 72 28 %" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1 }, true,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, times 44 56 %" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .first = third }, true,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 3, times 33 67 %" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .first = within }, true,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 9, FLOPs 100 0 %" },
		{ mlp, { .schedule = "gpipe", .p = 2, .v = 1, .d = 2, .t = 1, .recompute = true }, false,
			"gpipe with recomputation: 2 stages, 2 pipelines of 2 devices; cuts at nodes 4, "
			"FLOPs 72 28 %" },
		{ mlp, { .schedule = "gpipe", .p = 2, .v = 1, .d = 1, .t = 1, .offload = true }, false,
			"gpipe with offload: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, "
			"FLOPs 72 28 %" },
		{ shards, { .schedule = "1f1b", .p = 1, .v = 1, .d = 1, .t = 4, .offload = true }, false,
			"tensor with offload: 1 rank of 4 devices that share the model's shards" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .again = second }, false,
			"1f1b with recomputation: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, "
			"FLOPs 72 28 %" },
		{ mlp, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .again = none }, false,
			"1f1b: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, FLOPs 72 28 %" },
		{ mlp, { .schedule = "2bw", .p = 2, .v = 1, .d = 1, .t = 1, .delayed = true,
			.overlap = true }, false,
			"2bw with steps that overlap: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, "
			"FLOPs 72 28 %" },
		{ mlp, { .schedule = "2bw", .p = 2, .v = 1, .d = 1, .t = 1, .delayed = true }, false,
			"2bw drained each step: 2 stages, 1 pipeline of 2 devices; cuts at nodes 4, "
			"FLOPs 72 28 %" },
		{ shards, { .schedule = "1f1b", .p = 1, .v = 1, .d = 2, .t = 2 }, false,
			"tensor: 2 ranks of 2 devices that share the model's shards" },
		{ shards, { .schedule = "1f1b", .p = 1, .v = 1, .d = 1, .t = 4, .recompute = true }, false,
			"tensor with recomputation: 1 rank of 4 devices that share the model's shards" },
		{ shards, { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 2 }, false,
			"1f1b: 2 stages, 1 pipeline of 2 ranks of 2 devices; cuts at nodes 314, "
			"FLOPs 45 55 %" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_made m;
		struct hd_plan plan;
		hd_made_begin(&m, rows[i].model, NULL, 0);
		CHECK(plan_of(&m, &rows[i].s, rows[i].costs ? m.costs : NULL, &plan) == HD_OK, "row %zu: %s",
			i, m.diag.text);
		CHECK(!strcmp(plan.cause, rows[i].cause), "row %zu: %s", i, plan.cause);
		CHECK(hd_plan_width(&plan) == rows[i].s.t, "row %zu: %u devices of a rank", i,
			hd_plan_width(&plan));
		hd_made_end(&m);
	}
}

/* What a stage does not compute again is in a file, where the job asks for that. */
static void stages_compute_again_or_have_activations_in_a_file(void **state)
{
	static const bool second[] = { false, true };
	static const struct { bool again, offload; uint8_t has[2]; } rows[] = {
		{ false, false, { 0, 0 } }, { false, true, { HD_INS_OFF, HD_INS_OFF } },
		{ true, false, { 0, HD_INS_R } }, { true, true, { HD_INS_OFF, HD_INS_R } },
	};
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, mlp, NULL, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_run_stages s = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1,
			.again = rows[i].again ? second : NULL, .offload = rows[i].offload };
		struct hd_plan plan;
		CHECK(plan_of(&m, &s, NULL, &plan) == HD_OK, "row %zu: %s", i, m.diag.text);
		for (uint32_t r = 0; r < 2; r++) {
			uint8_t has = 0;
			for (uint32_t k = 0; k < plan.list[r].len; k++) {
				const uint8_t op = plan.list[r].at[k].op;
				has = op == HD_INS_OFF || op == HD_INS_R ? op : has;
			}
			CHECK(has == rows[i].has[r], "row %zu, rank %u: %u", i, r, has);
		}
	}
	hd_made_end(&m);
}

/* Of one pipeline of several ranks, which moves nothing to a file. */
static void steps_overlap_only_where_a_window_can_be(void **state)
{
	static const bool second[] = { false, true, false, false }, none[] = { false, false };
	static const struct { struct hd_run_stages s; bool overlap; } rows[] = {
		{ { .p = 2, .v = 1, .d = 1, .overlap = true }, true },
		{ { .p = 2, .v = 1, .d = 1, .overlap = true, .again = none }, true },
		{ { .p = 2, .v = 1, .d = 1 }, false },
		{ { .p = 2, .v = 1, .d = 2, .overlap = true }, false },
		{ { .p = 1, .v = 1, .d = 1, .overlap = true }, false },
		{ { .p = 2, .v = 1, .d = 1, .overlap = true, .recompute = true }, true },
		{ { .p = 2, .v = 1, .d = 1, .overlap = true, .again = second }, true },
		{ { .p = 2, .v = 1, .d = 1, .overlap = true, .offload = true }, false },
	};
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, mlp, NULL, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_run_stages s = rows[i].s;
		struct hd_plan plan;
		s.schedule = "2bw";
		s.delayed = true;
		s.t = 1;
		CHECK(plan_of(&m, &s, NULL, &plan) == HD_OK, "row %zu: %s", i, m.diag.text);
		CHECK(plan.overlap == rows[i].overlap, "row %zu", i);
	}
	hd_made_end(&m);
}

/* The job's last stage begins at node 4, and is not late: the plan's is no later. */
static void the_last_stage_begins_no_later_than_the_jobs(void **state)
{
	static const uint32_t before[] = { 0, 3 }, behind[] = { 0, 5 }, between[] = { 0, 3, 6 },
		two[] = { 0, 4, 6 };
	static const struct { struct hd_run_stages s; bool overlap; uint32_t last; const char *cause; }
		rows[] = {
		{ { .p = 2, .first = before, .overlap = true }, true, 3, "stash with steps that overlap: " },
		{ { .p = 2, .first = behind, .overlap = true }, true, 4, "stash with steps that overlap: " },
		{ { .p = 2, .first = behind, .drains = "so" }, false, 5, "stash drained each step (so): " },
		{ { .p = 3, .first = between, .overlap = true }, true, 4, "stash with steps that overlap: " },
		{ { .p = 3, .first = two, .overlap = true }, false, 6,
			"of the job's last stage (optim.cuts) lies in a stage before the plan's last): " },
		{ { .p = 2, .d = 2, .overlap = true }, false, 4, "(there are several pipelines): " },
		{ { .p = 2, .first = behind, .overlap = true, .offload = true }, false, 5,
			"stash drained each step with offload (activations leave to a file): " },
	};
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, mlp, "optim: {clip: 0, update: stash, cuts: auto:2}\n", 0);
	assert_int_equal(m.rig.task->delays.first[1], 4);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_run_stages s = rows[i].s;
		struct hd_plan plan;
		s.schedule = "stash";
		s.delayed = true;
		s.d = s.d ? s.d : 1;
		s.v = s.t = 1;
		CHECK(plan_of(&m, &s, NULL, &plan) == HD_OK, "row %zu: %s", i, m.diag.text);
		CHECK(plan.overlap == rows[i].overlap && plan.first[s.p - 1] == rows[i].last &&
			strstr(plan.cause, rows[i].cause), "row %zu: %u, %s", i, plan.first[s.p - 1],
			plan.cause);
	}
	hd_made_end(&m);
}

static uint32_t count(const struct hd_plan *plan, uint32_t rank, uint8_t flags)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->list[rank].len; i++)
		n += plan->list[rank].at[i].op == HD_INS_F && (plan->list[rank].at[i].flags & flags) == flags;
	return n;
}

static void what_was_measured_is_kept(void **state)
{
	static const uint32_t first[] = { 0, 2 }, share[] = { 5, 3 };
	static const bool again[] = { false, true };
	const struct hd_run_stages even = { .schedule = "1f1b", .p = 2, .v = 1, .d = 3, .t = 1 },
		s = { .schedule = "1f1b", .p = 2, .v = 1, .d = 2, .t = 1, .first = first, .share = share,
			.again = again };
	struct hd_made m;
	struct hd_plan plan;

	(void)state;
	hd_made_begin(&m, mlp, NULL, 0);
	CHECK(plan_of(&m, &s, NULL, &plan) == HD_OK, "%s", m.diag.text);
	assert_memory_equal(plan.first, first, sizeof first);
	for (uint32_t r = 0; r < 4; r++)
		CHECK(count(&plan, r, 0) == share[r / 2] && count(&plan, r, HD_INS_CHECKPOINT) ==
			(r % 2 ? share[r / 2] : 0), "rank %u", r);
	/* without a share: 3, 3, 2 */
	CHECK(plan_of(&m, &even, NULL, &plan) == HD_OK, "%s", m.diag.text);
	for (uint32_t r = 0; r < 6; r++)
		CHECK(count(&plan, r, 0) == (r < 4 ? 3 : 2) && !count(&plan, r, HD_INS_CHECKPOINT), "rank %u",
			r);
	hd_made_end(&m);
}

/* Any of them first or last; what is refused later is no plan either. */
static void what_makes_no_plan_is_refused_by_the_first_that_knows(void **state)
{
	static const uint32_t few_first[] = { 1, 7 }, few_last[] = { 7, 1 };
	static const struct { struct hd_run_stages s; bool lockstep; uint32_t nshards; enum hd_err err;
		const char *words; } rows[] = {
		{ { .schedule = "dualpipev", .p = 2, .v = 2, .d = 2, .share = few_first }, false, 0,
			HD_E_INVAL, "dualpipe" },
		{ { .schedule = "dualpipev", .p = 2, .v = 2, .d = 2, .share = few_last }, false, 0,
			HD_E_INVAL, "dualpipe" },
		{ { .schedule = "1f1b", .p = 30, .v = 1, .d = 1 }, false, 0, HD_E_INVAL, "30 stages" },
		{ { .schedule = "1f1b", .p = 2, .v = 1, .d = 1 }, true, 0, HD_E_REFUSED, "model.bn" },
		{ { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 3 }, false, 4, HD_E_INVAL,
			"must divide" },
	};
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, mlp, NULL, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_plan_job job = hd_plan_job_whole(8, m.rig.task->layout.nchunks);
		struct hd_plan plan;
		job.lockstep = rows[i].lockstep;
		job.nshards = rows[i].nshards;
		m.diag.text[0] = 0;
		enum hd_err err = hd_run_stages_plan(&plan, &rows[i].s, &job, m.rig.task, NULL, &m.rig.arena,
			&m.diag);
		CHECK(err == rows[i].err && strstr(m.diag.text, rows[i].words), "row %zu: %d %s", i, (int)err,
			m.diag.text);
	}
	hd_made_end(&m);
}

/* One after the other refused alone; a text that is refused room asks again (base/text.h). */
static void each_piece_of_memory_is_looked_at(void **state)
{
	static const struct { struct hd_run_stages s; bool costs; const char *end; } rows[] = {
		{ { .schedule = "1f1b", .p = 2, .v = 1, .d = 2, .t = 1 }, false, "nodes 4, FLOPs 72 28 %" },
		{ { .schedule = "1f1b", .p = 2, .v = 1, .d = 2, .t = 1 }, true, "nodes 4, times 44 56 %" },
		{ { .schedule = "1f1b", .p = 1, .v = 1, .d = 1, .t = 2 }, false, "the model's shards" },
	};
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, mlp, NULL, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t nrefused = 0;
		uint64_t left = 0;
		for (uint64_t piece = 1; !left; piece++) {
			struct hd_plan plan = { .cause = NULL };
			hd_alloc_arm_piece(piece);
			enum hd_err err = plan_of(&m, &rows[i].s, rows[i].costs ? m.costs : NULL, &plan);
			left = hd_alloc_arm_piece(0);
			nrefused += err == HD_E_NOMEM;
			CHECK(err == HD_E_NOMEM ? m.diag.text[0] != 0 : !err && strstr(plan.cause,
				rows[i].end), "row %zu, piece %u", i, (unsigned)piece);
		}
		CHECK(nrefused > 5, "row %zu: %u", i, nrefused);
	}
	hd_made_end(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cause_says_what_the_plan_is),
		cmocka_unit_test(steps_overlap_only_where_a_window_can_be),
		cmocka_unit_test(the_last_stage_begins_no_later_than_the_jobs),
		cmocka_unit_test(stages_compute_again_or_have_activations_in_a_file),
		cmocka_unit_test(what_was_measured_is_kept),
		cmocka_unit_test(what_makes_no_plan_is_refused_by_the_first_that_knows),
		cmocka_unit_test(each_piece_of_memory_is_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
