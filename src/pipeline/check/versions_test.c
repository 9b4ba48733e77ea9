/* Versions, gradients and updates (K12 - K21): lists that break one rule, with all that is said of them, and
 * lists beside them that break none. */
#include "pipeline/schedule_check.h"

#include <string.h>

#include "pipeline/check/int.h"
#include "pipeline/testing_said.h"
#include "tests/check.h"

static const struct hd_stage_rule each[] = { { 1, 0 }, { 1, 0 }, { 1, 0 } }, later[] = { { 1, 1 } },
	flush[] = { { 0, 0 } },
	apart[] = { { 1, 0 }, { 2, 0 } }, apart_too[] = { { 2, 0 }, { 1, 0 } };
#define GROUP(...) { .name = "head", .nstages = 3, .holds = (bool[]){ __VA_ARGS__ } }
static const struct hd_tied_group both[] = { GROUP(true, true, false) },
	ends[] = { GROUP(true, false, true) },
	last_two[] = { GROUP(false, true, true) }, all[] = { GROUP(true, true, true) },
	first[] = { GROUP(true, false, false) };

#define TIED(group) .tied = (group), .ntied = 1

/* `said`: all findings, a line each; "" is accepted. */
static const struct { const char *text; struct hd_schedule_job job; const char *said; } cases[] = {
	/* a slot of room 4 is that of version 4 by then */
	{ "0: PIN0@0 F0.0 B0.0 STEP0 F0.1 B0.1 REL0@0 PIN0@1 STEP0 F0.2 B0.2 REL0@1 PIN0@2 STEP0 "
	  "F0.3 B0.3 REL0@2 PIN0@3 STEP0 F0.4 B0.4 REL0@3 PIN0@4 STEP0 PIN0@0 REL0@4\n", { .rule = later },
	  "K15 plan: rank 0, #24 PIN0@0: version 0 of stage 0 is used after its release at #23 "
	  "[rank 0, #23 STEP0]\n"
	  "K15 plan: rank 0: version 4 of stage 0 is never released\n" },
	{ "0: PIN0@0 F0.0 B0.0 F0.1 B0.1 STEP0 F0.2 B0.2 STEP0 F0.3 B0.3 STEP0 F0.4 B0.4 STEP0 "
	  "REL0@4 STEP0 REL0@0\n", { .rule = later },
	  "K15 plan: rank 0, #15 REL0@4: version 4 of stage 0 is released and not pinned\n"
	  "K15 plan: rank 0: version 0 of stage 0 is never released\n" },
	/* no update follows */
	{ "0: F0.0 B0.0 STEP0 PIN0@2\n", { 0 },
	  "K13 plan: rank 0, #3 PIN0@2: version 2 of stage 0 is not made yet: its update comes "
	  "after #3\n" },
	/* the update of another stage is not it */
	{ "0: PIN0@1 F0.0 F1.0 B1.0 B0.0 STEP1 STEP0\n", { 0 },
	  "K13 plan: rank 0, #0 PIN0@1: version 1 of stage 0 is not made yet: its update comes "
	  "after #0 [rank 0, #6 STEP0]\n" },
	/* nor the one before it */
	{ "0: PIN0@2 F0.0 B0.0 STEP0 F0.1 B0.1 STEP0\n", { .rule = each },
	  "K13 plan: rank 0, #0 PIN0@2: version 2 of stage 0 is not made yet: its update comes "
	  "after #0 [rank 0, #6 STEP0]\n" },
	/* nothing is said of 2bw in another schedule */
	{ "0: PIN0@1 F0.0 B0.0 STEP0\n"
	  "1: F1.0 B1.0 STEP1\n", { 0 },
	  "K13 plan: rank 0, #0 PIN0@1: version 1 of stage 0 is not made yet: its update comes "
	  "after #0 [rank 0, #3 STEP0]\n" },
	/* nor where m is enough */
	{ "update 2bw\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0: B0.-1\n", { .rule = flush },
	  "K13 plan: rank 0, #1 F0.1: version 1 of stage 0 is not made yet: its update comes after "
	  "#1 [rank 0, #2 B0.0]\n"
	  "K13 plan: rank 0, #3 F0.2: version 2 of stage 0 is not made yet: its update comes after "
	  "#3 [rank 0, #4 B0.1]\n"
	  "K13 plan: rank 0, #5 F0.3: version 3 of stage 0 is not made yet: its update comes after "
	  "#5 [rank 0, #6 B0.2]\n"
	  "K13 plan: rank 0, #7 F0.4: version 4 of stage 0 is not made yet: its update comes after "
	  "#7 [rank 0, #8 B0.3]\n" },
	/* an implied update waits for the gradients of its own rank */
	{ "0: F0.0 B0.0\n"
	  "1: F0.1 B0.1\n", { .rule = each }, "" },
	/* the version before one that is not validated may be used */
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 F0.1 B0.1 VAL@1 REL0@0 PIN0@1 STEP!0@2 VAL@2 REL0@1\n", { .rule = later }, "" },
	{ "0: PIN0@-1 F0.0 B0.0\n", { 0 },
	  "K13 plan: rank 0, #0 PIN0@-1: version -1 of stage 0 is older than the first\n" },
	{ "0: PIN0@9 F0.0 B0.0\n", { 0 },
	  "K13 plan: rank 0, #0 PIN0@9: version 9 of stage 0 is not made yet: its update comes "
	  "after #0\n" },
	/* what is refused is not pinned */
	{ "0: PIN0@1 F0.0 B0.0 REL0@1 STEP0\n", { 0 },
	  "K13 plan: rank 0, #0 PIN0@1: version 1 of stage 0 is not made yet: its update comes "
	  "after #0 [rank 0, #4 STEP0]\n"
	  "K13 plan: rank 0, #3 REL0@1: version 1 of stage 0 is not made yet: its update comes "
	  "after #3 [rank 0, #4 STEP0]\n" },
	/* a gradient of the update after may come between RED and STEP */
	{ "0: F0.0 B0.0 F0.1 RED0 B0.1 STEP0 RED0 STEP0\n", { .rule = later, .npipelines = 2 }, "" },
	/* a stage outside the group is not waited for */
	{ "0: F0.0 F1.0 B1.0 TIE0 B0.0 STEP0 STEP1\n"
	  "1: F2.0 B2.0 TIE0 STEP2\n", { TIED(last_two) }, "" },
	{ "0: F0.0 F1.0 B1.0 RED1 TIE0 B0.0 RED0 STEP0 STEP1\n"
	  "1: F2.0 B2.0 RED2 TIE0 STEP2\n", { TIED(last_two), .npipelines = 2 }, "" },
	/* sums of the update before do not count */
	{ "0: F0.0 B0.0 RED0 TIE0 STEP0 F0.1 B0.1 RED0 TIE0 STEP0\n"
	  "1: F1.0 B1.0 RED1 TIE0 STEP1 F1.1 B1.1 RED1 TIE0 STEP1\n",
	  { TIED(both), .rule = each, .npipelines = 2 }, "" },
	{ "0: F0.0 B0.0 TIE0 RED0 STEP0\n"
	  "1: F1.0 B1.0 RED1 TIE0 STEP1\n", { TIED(both), .npipelines = 2 },
	  "K19 plan: rank 0, #2 TIE0: head is summed before stage 0 is reduced [rank 0, #3 RED0]\n" },
	/* stages that are not updated together have norms as they like */
	{ "0: F0.0 F1.0 B1.0 NORM B0.0 STEP0 F0.1 F1.1 B1.1 B0.1 NORM NORM STEP0 STEP1\n", { .rule = apart }, "" },
	{ "0: F0.0 F1.0 B1.0 B0.0 STEP0 NORM F0.1 F1.1 B1.1 B0.1 STEP0 STEP1\n", { .rule = apart }, "" },
	{ "0: F0.0 F1.0 B1.0 B0.0 NORM RED0 STEP0 F0.1 F1.1 B1.1 B0.1 RED0 RED1 STEP0 STEP1\n", { .rule = apart, .npipelines = 2 }, "" },
	{ "0: F0.0 F1.0 B1.0 B0.0 NORM TIE0 STEP0 F0.1 F1.1 B1.1 B0.1 TIE0 STEP0 STEP1\n", { .rule = apart, TIED(first) }, "" },
	{ "0: F0.0 B0.0 NORM TIE0 STEP0\n"
	  "1: F1.0 B1.0 NORM TIE0 STEP1\n", { TIED(both) },
	  "K20 plan: rank 0, #2 NORM: the norm is taken before head is summed [rank 0, #3 TIE0]\n"
	  "K20 plan: rank 1, #2 NORM: the norm is taken before head is summed [rank 1, #3 TIE0]\n" },
	{ "0: F0.0 B0.0 NORM RED0 STEP0\n", { .npipelines = 2 },
	  "K20 plan: rank 0, #2 NORM: the norm is taken before stage 0 is reduced [rank 0, #3 "
	  "RED0]\n" },
	/* nor validations */
	{ "0: PIN0@0 PIN1@0 F0.0 F1.0 B1.0 STEP!1@1 VAL@1 REL1@0 B0.0 F0.1 PIN1@1 F1.1 B1.1 "
	  "STEP!1@2 VAL@2 REL1@1 B0.1 STEP!0@1 VAL@1 REL0@0\n", { .rule = apart_too }, "" },
	/* one that is not eager needs none */
	{ "0: PIN1@0 F0.0 F1.0 B1.0 B0.0 STEP!1@1 VAL@1 REL1@0 STEP0\n", { 0 }, "" },
	{ "0: F0.0 B0.0 TIE0 STEP0 F0.1 B0.1 TIE0 STEP0\n", { .rule = each }, "" },
	{ "0: F0.0 B0.0 TIE3 TIE1 STEP0 F0.1 B0.1 TIE3 TIE1 STEP0\n", { .rule = each }, "" },
	/* two stages of the group are named */
	{ "0: F0.0 B0.0 STEP0\n"
	  "1: F1.0 B1.0 STEP1\n"
	  "2: F2.0 B2.0 STEP2\n", { TIED(ends) },
	  "K19 plan: rank 0, #2 STEP0: head is shared by stages 0 and 2 but no TIE joins them\n"
	  "K19 plan: rank 2, #2 STEP2: head is shared by stages 0 and 2 but no TIE joins them\n" },
	{ "0: F0.0 B0.0 STEP0\n"
	  "1: F1.0 B1.0 STEP1\n"
	  "2: F2.0 B2.0 STEP2\n", { TIED(all) },
	  "K19 plan: rank 0, #2 STEP0: head is shared by stages 0 and 1 but no TIE joins them\n"
	  "K19 plan: rank 1, #2 STEP1: head is shared by stages 0 and 1 but no TIE joins them\n"
	  "K19 plan: rank 2, #2 STEP2: head is shared by stages 0 and 2 but no TIE joins them\n" },
	/* a sum on another rank does not count */
	{ "0: F0.0 B0.0 TIE0 STEP0\n"
	  "1: F1.0 B1.0 STEP1\n", { TIED(both) },
	  "K19 plan: rank 1, #2 STEP1: head is shared by stages 0 and 1 but no TIE joins them\n" },
	/* nor that of the update before */
	{ "0: F0.0 B0.0 TIE0 STEP0 F0.1 B0.1 STEP0\n"
	  "1: F1.0 B1.0 TIE0 STEP1 F1.1 B1.1 TIE0 STEP1\n", { TIED(both), .rule = each },
	  "K19 plan: rank 0, #6 STEP0: head is shared by stages 0 and 1 but no TIE joins them\n" },
	{ "0: F0.0 B0.0 STEP0@1 STEP0@1 F0.1 B0.1 STEP0@2\n", { .rule = each },
	  "K16 plan: rank 0, #3 STEP0@1: update 1 of stage 0 happens twice [rank 0, #2 STEP0@1]\n" },
	{ "0: F0.0 B0.0 STEP0@2 F0.1 B0.1 STEP0@1\n", { .rule = each },
	  "K17 plan: rank 0, #2 STEP0@2: version 2 is made before version 1\n"
	  "K13 plan: rank 0, #3 F0.1: version 1 of stage 0 is not made yet: its update comes after "
	  "#3 [rank 0, #5 STEP0@1]\n"
	  "K13 plan: rank 0, #4 B0.1: version 1 of stage 0 is not made yet: its update comes after "
	  "#4 [rank 0, #5 STEP0@1]\n"
	  "K16 plan: rank 0: update 2 of stage 0 never happens\n" },
	{ "0: F0.0 B0.0 STEP0\n", { .npipelines = 1 }, "" },
	{ "0: F0.0 B0.0 RED0 STEP0\n"
	  "1: F0.1 B0.1 RED0 STEP0\n", { .npipelines = 1 }, "" },
	{ "0: F0.0 B0.0 RED0 STEP0\n", { .npipelines = 2 }, "" },
	/* an eager update does not wait for the norm */
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 NORM VAL@1 REL0@0\n", { 0 }, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL REL0@0\n", { 0 }, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL@2 REL0@0\n", { 0 },
	  "K21 plan: rank 0, #4 VAL@2: it finds no STEP! to validate\n"
	  "K21 plan: rank 0, #3 STEP!0@1: STEP! of version 1 is never validated\n"
	  "K15 plan: rank 0: version 0 of stage 0 is never released\n" },
	/* a rank without stages meets no other */
	{ "0: F0.0 B0.0 NORM STEP0\n"
	  "1:\n", { 0 }, "" },
	{ "0: F0.0 B0.0 NORM STEP0\n"
	  "1: F1.0 B1.0\n", { 0 },
	  "K16 plan: rank 1: update 1 of stage 1 never happens\n"
	  "K20 plan: rank 1 has 0 NORM, others have 1: it is a meeting of all\n" },
	/* only what both reduce has an order */
	{ "0: F0.0 F1.0 F2.0 B2.0 B1.0 B0.0 RED0 RED2 RED1 STEP0 STEP1 STEP2\n"
	  "1: F0.1 F1.1 B1.1 B0.1 RED0 RED1 STEP0 STEP1\n"
	  "2: F2.1 B2.1 RED2 STEP2\n", { 0 }, "" },
	{ "0: F0.0 F1.0 B1.0 B0.0 RED0 RED1 STEP0 STEP1\n"
	  "1: F1.1 B1.1 RED1 STEP1\n"
	  "2: F0.1 B0.1 RED0 STEP0\n", { 0 }, "" },
	{ "0: F0.0 F1.0 B1.0 B0.0 RED0 RED1 STEP0 STEP1\n"
	  "1: F0.1 F1.1 F2.1 B2.1 B1.1 B0.1 RED0 RED2 RED1 STEP0 STEP1 STEP2\n"
	  "2: F2.0 B2.0 RED2 STEP2\n", { 0 }, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 F0.1 VAL@1 B0.1 STEP!0@2 VAL@2 REL0@0\n", { .rule = each },
	  "K21 plan: rank 0, #4 F0.1: version 1 of stage 0 is used before it is validated [rank 0, "
	  "#3 STEP!0@1]\n"
	  "K15 plan: rank 0, #7 STEP!0@2: an eager update must be able to go back: pin version 1 "
	  "of stage 0\n"
	  "K15 plan: rank 0, #8 VAL@2: version 1 of stage 0 is used after its release at #7 [rank "
	  "0, #7 STEP!0@2]\n"
	  "K15 plan: rank 0: version 0 of stage 0 is never released\n" },
	/* a version that stays longer than others is not forgotten */
	{ "0: PIN0@0 F0.0 B0.0 F0.1 B0.1 STEP0 F0.2 B0.2 STEP0 F0.3 B0.3 STEP0 F0.4 B0.4 STEP0 "
	  "STEP0 REL0@0\n", { .rule = later }, "" },
	{ "0: PIN0@0 F0.0 B0.0 F0.1 B0.1 STEP0 F0.2 B0.2 STEP0 F0.3 B0.3 STEP0 F0.4 B0.4 STEP0 "
	  "STEP0\n", { .rule = later },
	  "K15 plan: rank 0: version 0 of stage 0 is never released\n" },
	{ "0: PIN0@0 F0.0 B0.0 F0.1 B0.1 STEP0 F0.2 B0.2 STEP0 F0.3 B0.3 STEP0 F0.4 B0.4 STEP0 "
	  "PIN0@4 REL0@4 STEP0 REL0@0\n", { .rule = later }, "" },
	/* nor taken for another */
	{ "0: PIN0@0 F0.0 B0.0 F0.1 B0.1 STEP0 F0.2 B0.2 STEP0 F0.3 B0.3 STEP0 F0.4 B0.4 STEP0 "
	  "STEP!0@5 VAL@5 REL0@0\n", { .rule = later },
	  "K15 plan: rank 0, #15 STEP!0@5: an eager update must be able to go back: pin version 4 "
	  "of stage 0\n"
	  "K15 plan: rank 0, #16 VAL@5: version 4 of stage 0 is used after its release at #15 "
	  "[rank 0, #15 STEP!0@5]\n"
	  "K15 plan: rank 0: version 0 of stage 0 is never released\n" },
};

static void a_list_breaks_exactly_its_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_schedule s = hd_parsed_schedule(cases[i].text);
		const char *said = hd_all_said(&s, &cases[i].job, HD_TRANSPORT_EAGER);
		CHECK(!strcmp(said, cases[i].said), "case %zu: %s%s", i, cases[i].text, said);
	}
}

/* Memory ends at each place in turn: HD_E_NOMEM, and never a verdict. */
static void memory_that_ends_is_no_verdict(void **state)
{
	enum { P = 20 };
	static struct hd_stage_rule rule[P];
	const struct hd_schedule s = hd_named_schedule("1f1b", P, 1, 1);
	enum hd_err err = HD_E_NOMEM;
	(void)state;

	for (uint32_t k = 0; k < P; k++)
		rule[k].every = 1;
	for (size_t budget = 64; err == HD_E_NOMEM; budget += 64) {
		struct hd_report report = { 0 };
		struct hd_arena little;
		hd_arena_init(&little, budget);
		const struct hd_lists l = { .s = &s, .rule = rule, .report = &report, .arena = &little };
		err = hd_lists_versions(&l, NULL);
		CHECK(report.total == 0 && (err == HD_OK || err == HD_E_NOMEM), "%zu bytes: %d: %s", budget,
			err, report.at[0].text);
		hd_arena_finish(&little);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_breaks_exactly_its_rule, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(memory_that_ends_is_no_verdict, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
