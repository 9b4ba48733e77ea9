#include "pipeline/passes.h"

#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/schedule_check.h"
#include "pipeline/simulate.h"
#include "tests/planning.h"
#include "tests/check.h"

static void recomputation_keeps_inputs_and_computes_again_before_a_backward(void **state)
{
	static const bool first[] = { true, false };
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 2, 0), out;

	(void)state;
	assert_int_equal(hd_schedule_recompute(&out, &s, first, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## 1f1b p=2 m=2 stages=2\n0: Fc0.0 Fc0.1 R0.0 B0.0 R0.1 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n");
}

static void updates_come_last_and_copies_are_summed(void **state)
{
	struct hd_schedule alone = hd_named_schedule("interleaved", 1, 1, 0),
		copies = hd_named_schedule("data-parallel", 2, 3, 0), out;

	(void)state;
	assert_int_equal(hd_schedule_updates(&out, &alone, NULL, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## interleaved p=1 m=1 stages=2\n0: F0.0 F1.0 B1.0 B0.0 STEP1@1 STEP0@1\n");
	assert_int_equal(hd_schedule_updates(&out, &copies, NULL, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## data-parallel p=2 m=3 stages=1\n0: F0.0 B0.0 F0.1 B0.1 RED0 STEP0@1\n1: F0.2 B0.2 RED0 "
		"STEP0@1\n");
}

static void backwards_that_were_split_are_joined_where_nothing_stands_between(void **state)
{
	struct hd_schedule s = hd_named_schedule("zb-h1", 2, 2, 0), out;

	(void)state;
	assert_string_equal(hd_printed_schedule(&s),
		"## zb-h1 p=2 m=2 stages=2\n0: F0.0 F0.1 I0.0 W0.0 I0.1 W0.1\n1: F1.0 I1.0 F1.1 I1.1 W1.0 "
		"W1.1\n");
	assert_int_equal(hd_schedule_merge(&out, &s, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## zb-h1 p=2 m=2 stages=2\n0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 I1.0 F1.1 I1.1 W1.0 W1.1\n");
}

static void offloading_stands_around_the_wait(void **state)
{
	static const bool first[] = { true, false };
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 2, 0), out, kept;

	(void)state;
	assert_int_equal(hd_schedule_offload(&out, &s, first, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## 1f1b p=2 m=2 stages=2\n0: F0.0 OFF0.0 F0.1 OFF0.1 ON0.0 B0.0 ON0.1 B0.1\n1: F1.0 B1.0 "
		"F1.1 B1.1\n");
	assert_int_equal(hd_schedule_recompute(&kept, &s, first, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_offload(&out, &kept, first, &arena, NULL), HD_OK);
	assert_string_equal(hd_printed_schedule(&out),
		"## 1f1b p=2 m=2 stages=2\n0: Fc0.0 OFF0.0 Fc0.1 OFF0.1 ON0.0 R0.0 B0.0 ON0.1 R0.1 B0.1\n"
		"1: F1.0 B1.0 F1.1 B1.1\n");
}

static const struct hd_tied_group tied[] = { { .name = "embedding", .nstages = 2,
	.holds = (bool[]){ true, true } } };

static void a_step_is_completed_with_all_that_its_job_asks_for(void **state)
{
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 2, 0), out;
	struct hd_schedule_job job = { .clips = true, .tied = tied, .ntied = 1, .slots = 2, .npipelines = 2,
		.buckets = (uint16_t[]){ 2, 1 }, .whole = true };

	(void)state;
	assert_int_equal(hd_schedule_complete(&out, &s, &(struct hd_pass_options){ .job = &job }, &arena,
		NULL),
		HD_OK);
	assert_string_equal(hd_printed_schedule(&out), "## 1f1b p=2 m=2 stages=2\n"
		"0: PIN0@0 LD0.0 F0.0 SA0.0>1 LD0.1 F0.1 SA0.1>1 RG0.0<1#1 B0.0 RG0.1<1#2 B0.1 REL0@0 RED0 "
		"RED0#1 TIE0 NORM STEP0@1\n"
		"1: PIN1@0 LD1.0 RA1.0<0#1 F1.0 B1.0 SG1.0>0 LD1.1 RA1.1<0#2 F1.1 B1.1 SG1.1>0 REL1@0 RED1 "
		"TIE0 NORM STEP1@1\n");
	assert_int_equal(hd_schedule_check_job(&out, &job, &(struct hd_schedule_rules){ HD_TRANSPORT_BUFFERED,
		2 }, NULL, NULL), HD_OK);
	job.eager = true;
	assert_int_equal(hd_schedule_complete(&out, &s, &(struct hd_pass_options){ .job = &job }, &arena,
		NULL),
		HD_OK);
	assert_string_equal(hd_printed_schedule(&out), "## 1f1b p=2 m=2 stages=2\n"
		"0: PIN0@0 LD0.0 F0.0 SA0.0>1 LD0.1 F0.1 SA0.1>1 RG0.0<1#1 B0.0 RG0.1<1#2 B0.1 RED0 RED0#1 "
		"TIE0 STEP!0@1 VAL@1 REL0@0\n"
		"1: PIN1@0 LD1.0 RA1.0<0#1 F1.0 B1.0 SG1.0>0 LD1.1 RA1.1<0#2 F1.1 B1.1 SG1.1>0 RED1 TIE0 "
		"STEP!1@1 VAL@1 REL1@0\n");
	assert_int_equal(hd_schedule_check_job(&out, &job, &(struct hd_schedule_rules){ HD_TRANSPORT_BUFFERED,
		2 }, NULL, NULL), HD_OK);
}

/* Activations and gradients of one pair of ranks are two channels: each begins at its first buffer. */
static void each_channel_has_its_own_buffers(void **state)
{
	struct hd_schedule s = hd_named_schedule("interleaved", 2, 2, 0), out;
	uint32_t next[2] = { 0 };

	(void)state;
	assert_int_equal(hd_schedule_comms(&out, &s, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_slots(&out, &out, 3, &arena, NULL), HD_OK);
	for (uint32_t i = 0; i < out.list[0].len; i++) {
		const struct hd_ins *x = &out.list[0].at[i];
		if (x->op == HD_INS_RA || x->op == HD_INS_RG)
			assert_int_equal(x->slot, 1 + next[x->op == HD_INS_RG]++ % 3);
	}
	assert_int_equal(next[0], 2);
	assert_int_equal(next[1], 4);
}

/* PipeDream-2BW on two ranks: two versions pinned at the start, the older released after its step. TIE and
 * NORM stay in the period. */
static void delayed_updates_keep_the_versions_they_need(void **state)
{
	struct hd_schedule s = hd_named_schedule("2bw", 2, 2, 0), out;
	struct hd_schedule_job job = { .clips = true, .tied = tied, .ntied = 1, .whole = true };

	(void)state;
	assert_int_equal(hd_schedule_complete(&out, &s, &(struct hd_pass_options){ .job = &job }, &arena,
		NULL),
		HD_OK);
	assert_string_equal(strstr(hd_printed_schedule(&out), "section period"), "section period\n"
		"0: LD0.0 F0.0@-1 SA0.0>1 RG0.-1<1 B0.-1@-2 REL0@-2 TIE0 NORM STEP0@0 PIN0@0 LD0.1 F0.1@-1 "
		"SA0.1>1 RG0.0<1 B0.0@-1\n"
		"1: LD1.0 RA1.0<0 F1.0@-1 B1.0@-1 SG1.0>0 LD1.1 RA1.1<0 F1.1@-1 B1.1@-1 SG1.1>0 REL1@-1 "
		"TIE0 NORM STEP1@1 PIN1@1\n"
		"section epilogue\n"
		"0: RG0.-1<1 B0.-1@-2 REL0@-2 TIE0 NORM STEP0@0 PIN0@0 REL0@-1 REL0@0\n"
		"1: REL1@-1 REL1@0\n");
	assert_int_equal(hd_schedule_check_job(&out, &job, &(struct hd_schedule_rules){ HD_TRANSPORT_BUFFERED,
		2 }, NULL, NULL), HD_OK);
}

/* All passes on every kind: accepted after each of them with two buffers a channel, and a second time
 * nothing changes. */
static void passes_keep_schedules_legal_and_are_idempotent(void **state)
{
	static const struct hd_schedule_rules two = { HD_TRANSPORT_BUFFERED, 2 };
	static const bool all[16] = { true, true, false, true, true, true, true, true, true, true, true, true,
		true, true, true, true };
	static const bool some[16] = { false, true, true, false, true, true };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 4; p++) {
			struct hd_schedule s[8] = { hd_named_schedule(k->name, p, 2 * p + 1, 0) }, again;
			struct hd_schedule_job job = { .slots = 2, .clips = s->update == HD_UPDATE_FLUSH ||
				s->update == HD_UPDATE_2BW };
			struct hd_report report;
			assert_int_equal(hd_schedule_merge(&s[1], &s[0], &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_recompute(&s[2], &s[1], all, &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_offload(&s[3], &s[2], some, &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_comms(&s[4], &s[3], &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_slots(&s[5], &s[4], 2, &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_versions(&s[6], &s[5], &job, &arena, NULL), HD_OK);
			assert_int_equal(hd_schedule_updates(&s[7], &s[6], &job, &arena, NULL), HD_OK);
			for (int i = 0; i < 8; i++)
				CHECK(hd_schedule_check_job(&s[i], i < 7 ? NULL : &job, &two, &report,
					NULL) == HD_OK, "%s p %u after %d: %s\n%s",
					k->name, p, i, report.at[0].text, hd_printed_schedule(&s[i]));
			assert_int_equal(hd_schedule_complete(&again, &s[7],
				&(struct hd_pass_options){ true, all, some, &job }, &arena, NULL), HD_OK);
			assert_string_equal(hd_printed_schedule(&again), hd_printed_schedule(&s[7]));
		}
}

/* What the lists say over 20 steps against the document's formula, which nothing else here computes. */
static void versions_are_those_of_the_rule(void **state)
{
	static const char *const names[] = { "1f1b", "2bw", "vsync", "stash" };

	(void)state;
	for (int n = 0; n < 4; n++)
		for (uint32_t p = 1; p <= 5; p++) {
			uint32_t m = p + 2, used = 0;
			struct hd_schedule s = hd_named_schedule(names[n], p, m, 0), whole, run;
			assert_int_equal(hd_schedule_complete(&whole, &s, &(struct hd_pass_options){ 0 },
				&arena,
				NULL), HD_OK);
			if (!s.prologue)
				continue;
			assert_int_equal(hd_schedule_unroll(&run, &whole, 20, &arena, NULL), HD_OK);
			for (uint32_t r = 0; r < p; r++)
				for (uint32_t i = 0, made = 0, live = 0, most = 0; i < run.list[r].len; i++) {
					const struct hd_ins *x = &run.list[r].at[i];
					uint32_t every = n == 1 ? m : 1,
						delay = n == 1 ? 1 : n == 2 ? p - 1 : p - 1 - x->stage;
					if (x->op == HD_INS_F || x->op == HD_INS_B) {
						CHECK(x->ver == (x->vn / every > delay ?
							x->vn / every - delay : 0),
							"%s rank %u #%u vn %u: %u",
							names[n], r, i, x->vn, x->ver);
						used++;
					}
					live += x->op == HD_INS_PIN;
					live -= x->op == HD_INS_REL;
					most = live > most ? live : most;
					if (x->op == HD_INS_STEP)
						CHECK(x->ver == ++made, "%s rank %u #%u: version %u",
							names[n], r, i, x->ver);
					if (i + 1 == run.list[r].len)
						CHECK(live == 0 && most == delay + 1 &&
							made == 20 * m / every, "%s rank %u: %u, %u, %u",
							names[n], r, live, most, made);
				}
			assert_int_equal(used, 2 * p * 20 * m);
		}
}

static void what_cannot_be_completed_says_why(void **state)
{
	static const struct hd_stage_rule uneven[] = { { 1, 0 }, { 2, 0 } }, third[] = { { 3, 0 }, { 3, 0 } },
		late[] = { { 0, 1 }, { 0, 0 } };
	static const struct { struct hd_schedule_job job; enum hd_err err; const char *says; } cases[] = {
		{ { .rule = uneven, .clips = true }, HD_E_BADPLAN, "the job clips gradients, so all stages are updated together: stage 0 is every 1 virtual nodes, stage 1 every 2" },
		{ { .rule = uneven, .tied = tied, .ntied = 1 }, HD_E_BADPLAN,
		  "embedding ties stages 0 and 1, so they are updated together: one is every 1 virtual "
		  "nodes, the other every 2" },
		{ { .rule = third }, HD_E_BADPLAN, "stage 0 is updated every 3 virtual nodes, which do not divide the step's m = 4" },
		{ { .rule = late }, HD_E_INVAL, "stage 0 is updated late: that needs the sections prologue, period and epilogue" },
		{ { .rule = uneven, .eager = true }, HD_E_INVAL, "stage 0 is updated 4 times in a step: eager updates (STEP!) are for one" },
	};
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 4, 0), out;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_schedule_complete(&out, &s, &(struct hd_pass_options){ .job = &cases[i].job },
			&arena,
			&diag) == cases[i].err, "%zu: %s", i, diag.text);
		assert_string_equal(diag.text, cases[i].says);
	}
	s = hd_named_schedule("2bw", 2, 4, 0);
	assert_int_equal(hd_schedule_complete(&out, &s, &(struct hd_pass_options){ .job =
		&(struct hd_schedule_job){ .eager = true } }, &arena, NULL), HD_E_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recomputation_keeps_inputs_and_computes_again_before_a_backward),
		cmocka_unit_test(updates_come_last_and_copies_are_summed),
		cmocka_unit_test(backwards_that_were_split_are_joined_where_nothing_stands_between),
		cmocka_unit_test(offloading_stands_around_the_wait),
		cmocka_unit_test(a_step_is_completed_with_all_that_its_job_asks_for),
		cmocka_unit_test(each_channel_has_its_own_buffers),
		cmocka_unit_test(delayed_updates_keep_the_versions_they_need),
		cmocka_unit_test(versions_are_those_of_the_rule),
		cmocka_unit_test(what_cannot_be_completed_says_why),
		cmocka_unit_test(passes_keep_schedules_legal_and_are_idempotent),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
