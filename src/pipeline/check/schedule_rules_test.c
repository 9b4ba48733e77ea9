/* The checker of schedules: each rule by a text that breaks it, and what is said of it. */
#include "pipeline/schedule_check.h"

#include <string.h>

#include "pipeline/check/int.h"
#include "pipeline/passes.h"
#include "tests/planning.h"
#include "tests/check.h"

static const struct hd_schedule_rules eager = { HD_TRANSPORT_EAGER, 0 };

static const struct { const char *text, *rule, *want; } broken[] = {
	{ "0: F0.0 B0.0 F0.0\n", "K1", "plan: rank 0, #2 F0.0: forward of 0.0 appears twice (ranks 0 #0 and 0 #2)" },
	{ "0: F0.0 B0.0 F0.2 B0.2 F0.3 B0.3\n", "K1", "plan: stage 0 never runs forward for virtual node 1" },
	{ "0: BAR0\n", "K1", "plan: it computes nothing: there is no forward in its 1 instructions" },
	{ "0: F9.9\n", "K1", "plan: 10 stages of 10 virtual nodes need more than its 1 instructions" },
	{ "0: F0.0 F0.1 B0.1\n", "K2", "plan: 0.0 has no backward" },
	{ "0: F0.0 B0.0 B0.0\n", "K2", "plan: rank 0, #2 B0.0: 0.0 has two backwards" },
	{ "0: F0.0 B0.0 I0.0\n", "K2", "plan: rank 0, #2 I0.0: 0.0 has both a full and a split backward" },
	{ "0: F0.0 I0.0 I0.0 W0.0\n", "K2", "plan: rank 0, #2 I0.0: 0.0 has I twice" },
	{ "0: F0.0 I0.0 W0.0 W0.0\n", "K2", "plan: rank 0, #3 W0.0: 0.0 has W twice" },
	{ "0: F0.0 B0.0 W0.0\n", "K2", "plan: rank 0, #2 W0.0: 0.0 has both a full and a split backward" },
	{ "0: F0.0 I0.0\n", "K2", "plan: 0.0 has I but no W: its weights would miss a gradient" },
	{ "0: F0.0\n1: B0.0\n", "K3", "plan: rank 1, #0 B0.0: stage 0 lives on rank 0 for virtual node 0, not here" },
	{ "0: F0.0 I0.0\n1: W0.0\n", "K3", "plan: rank 1, #0 W0.0: stage 0 lives on rank 0" },
	{ "0: F0.0 B0.-1 B0.0\n", "K4", "plan: rank 0, #1 B0.-1: virtual node -1 does not exist in this step (m = 1)" },
	{ "0: F0.0 F1.0 F2.0 LD1.0 B2.0 B1.0 B0.0\n", "K4", "plan: rank 0, #3 LD1.0: stage 1 takes nothing from the reader" },
	{ "0: F0.0 B0.0 SA0.0>5\n", "K4", "plan: rank 0, #2 SA0.0>5: rank 5 is not another rank of 1" },
	{ "0: B0.0 F0.0\n", "K6", "plan: rank 0, #0 B0.0: backward before forward" },
	{ "0: F0.0 W0.0 I0.0\n", "K6", "plan: rank 0, #1 W0.0: W before I" },
	{ "0: F0.0 LD0.0 B0.0\n", "K6", "plan: rank 0, #1 LD0.0: LD0.0 comes twice or after its forward" },
	{ "0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0\n", "K7",
	  "plan: these instructions wait for each other: rank 0 #1 B0.0 -> rank 1 #0 F1.1 -> rank 0" },
	{ "0: F1.0 F0.0 B1.0 B0.0\n", "K7", "plan: these instructions wait for each other: rank 0 #0 F1.0 -> rank 0" },
	{ "0: F0.0 BAR0 B0.0\n1: F1.0 B1.0 BAR0\n", NULL, "" },
	{ "0: F0.0 B0.0 BAR0\n1: BAR0 F1.0 B1.0\n", "K7", "plan: these instructions wait for each other: rank 0 #1 B0.0 -> rank 1 #0 BAR0 -> rank 0" },
	{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.1<0 F1.1 RA1.0<0 F1.0 B1.0 SG1.0>0 B1.1 SG1.1>0\n", "K9",
	  "plan: rank 1, #0 RA1.1<0: rank 1 expects the activation of 0.1 but rank 0 sends another one "
	  "first" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", NULL, "" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: F1.0 B1.0 SG1.0>0\n", "K10", "plan: activation of 0.0 is sent and never received" },
	{ "0: F0.0 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", "K10", "plan: activation of 0.0 is received and never sent" },
	{ "0: SA0.0>1 F0.0 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", "K10", "plan: rank 0, #0 SA0.0>1: activation of 0.0 is sent before it is made (#1)" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: F1.0 RA1.0<0 B1.0 SG1.0>0\n", "K10", "plan: rank 1, #1 RA1.0<0: activation of 0.0 is received after it is needed (#0)" },
	{ "0: F0.0 SA0.0>1 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", "K10", "plan: rank 0, #2 SA0.0>1: activation of 0.0 is sent twice" },
	{ "0: F0.0 SA0.0>2 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n2:\n", "K10", "plan: rank 0, #1 SA0.0>2: activation of 0.0 goes from rank 0 to rank 1" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0 SG0.0>1\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", "K10", "plan: rank 0, #4 SG0.0>1: there is no stage that this tensor" },
	{ "0: RA0.0<1 F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", "K10", "plan: rank 0, #0 RA0.0<1: stage 0 receives no activation" },
	{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0#1 RA1.1<0#2 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", NULL, "" },
	{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0#1 RA1.1<0#1 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", "K11",
	  "plan: rank 1, #1 RA1.1<0#1: slot 1 still holds 0.0, needed by #2 [rank 1, #2 F1.0]" },
	{ "0: F0.0 SA0.0>1#2 RG0.0<1 B0.0\n1: RA1.0<0#1 F1.0 B1.0 SG1.0>0\n", "K10", "plan: rank 1, #0 RA1.0<0#1: activation of 0.0 is sent into slot 2" },
	{ "0: F0.0 B0.0 STEP0@1\n", NULL, "" },
	{ "0: F0.0 STEP0@1 B0.0\n", "K16", "plan: rank 0, #1 STEP0@1: update 1 of stage 0 happens before the gradient of virtual node 0" },
	{ "0: F0.0 B0.0 STEP0 STEP0\n", "K16", "plan: rank 0, #3 STEP0: update 1 of stage 0 happens twice" },
	{ "0: F0.0 B0.0 STEP0\n1: F1.0 B1.0\n", "K16", "plan: rank 1: update 1 of stage 1 never happens" },
	{ "0: F0.0 B0.0 STEP0 RED0\n", "K16", "plan: rank 0, #3 RED0: the reduction of stage 0 must stand between" },
	{ "0: F0.0 B0.0 STEP0@3\n", "K17", "plan: rank 0, #2 STEP0@3: version 3 is made before version 2" },
	{ "0: F0.0 B0.0 STEP0\n1: F0.1 B0.1 STEP0\n", "K18", "plan: rank 0, #2 STEP0: stage 0 has 2 replicas and no RED" },
	{ "0: F0.0 B0.0 RED0#1 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", "K4", "plan: rank 0, #2 RED0#1: bucket 1 of stage 0 does not exist (there are 1)" },
	{ "0: F0.0 B0.0 RED0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", "K18", "plan: rank 0, #3 RED0: stage 0 is reduced twice for update 1 [rank 0, #2 RED0]" },
	{ "0: F0.0 RED0 B0.0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", "K16",
	  "plan: rank 0, #1 RED0: the reduction of stage 0 must stand between its last gradient (#2) and "
	  "its update [rank 0, #2 B0.0]" },
	{ "0: F0.0 F1.0 B1.0 B0.0 RED0 RED1 STEP0 STEP1\n1: F0.1 F1.1 B1.1 B0.1 RED1 RED0 STEP0 STEP1\n", "K18",
	  "plan: rank 1, #4 RED1: replicas reduce buckets in different order: rank 0 starts with stage 0, "
	  "rank 1 with stage 1 [rank 0, #4 RED0]" },
	{ "0: F0.0 B0.0 STEP0\n1: F1.0 B1.0 STEP1 STEP0\n", "K3", "plan: rank 1, #3 STEP0: stage 0 lives on rank 0, not here" },
	{ "0: F0.0@0 B0.0@0\n", NULL, "" },
	{ "0: F0.0@1 B0.0\n", "K12", "plan: rank 0, #0 F0.0@1: virtual node 0 must use version 0 of stage 0, the list uses 1" },
	{ "0: F0.0 B0.0@-1\n", "K12", "plan: rank 0, #1 B0.0@-1: virtual node 0 must use version 0 of stage 0, the list uses -1" },
	{ "0: PIN0@0 F0.0 B0.0 REL0@0 STEP0@1\n", NULL, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP0@1 REL0@0\n", "K14", "plan: rank 0, #3 STEP0@1: stage 0 would keep 2 versions at #3, the job allows 1" },
	{ "0: PIN0@0 F0.0 B0.0\n", "K15", "plan: rank 0: version 0 of stage 0 is never released" },
	{ "0: F0.0 B0.0 REL0@0 STEP0\n", "K15", "plan: rank 0, #2 REL0@0: version 0 of stage 0 is released and not pinned" },
	{ "0: F0.0 B0.0 STEP0 PIN0@0\n", "K15", "plan: rank 0, #3 PIN0@0: version 0 of stage 0 is used after its release at #2 [rank 0, #2 STEP0]" },
	{ "0: PIN0@1 F0.0 B0.0 STEP0\n", "K13", "plan: rank 0, #0 PIN0@1: version 1 of stage 0 is not made yet: its update comes after #0 [rank 0, #3 STEP0]" },
	{ "0: PIN0 F0.0 B0.0 STEP0\n", "K15", "plan: rank 0, #0 PIN0: which version? write PIN0@VERSION" },
	{ "0: PIN0@-1 F0.0 B0.0 STEP0\n", "K13", "plan: rank 0, #0 PIN0@-1: version -1 of stage 0 is older than the first" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL@1 REL0@0\n", NULL, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 REL0@0\n", "K21", "plan: rank 0, #3 STEP!0@1: STEP! of version 1 is never validated" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 REL0@0 VAL@1\n", "K15", "plan: rank 0, #5 VAL@1: version 0 of stage 0 is used after its release at #4 [rank 0, #4 REL0@0]" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL@1 VAL@1 REL0@0\n", "K21", "plan: rank 0, #5 VAL@1: it finds no STEP! to validate" },
	{ "0: PIN0@0 PIN1@0 F0.0 F1.0 B1.0 STEP!1@1 VAL@1 B0.0 STEP!0@1 VAL@1 REL1@0 REL0@0\n", "K21",
	  "plan: rank 0, #6 VAL@1: version 1 is validated before the gradient of virtual node 0 [rank 0, #7 "
	  "B0.0]" },
	{ "0: PIN0@0 PIN1@0 F0.0 F1.0 B1.0 B0.0 STEP!1@1 VAL@1 STEP!0@1 VAL@1 REL1@0 REL0@0\n", "K21",
	  "plan: rank 0, #8 STEP!0@1: version 1 is validated before stage 0 makes it [rank 0, #7 VAL@1]" },
	{ "0: F0.0 B0.0 STEP!0@1 VAL@1\n", "K15", "plan: rank 0, #2 STEP!0@1: an eager update must be able to go back: pin version 0 of stage 0" },
	{ "0: F0.0 B0.0 NORM STEP0\n1: F1.0 B1.0 STEP1\n", "K20", "plan: rank 1 has 0 NORM, others have 1: it is a meeting of all" },
	{ "0: F0.0 NORM B0.0 STEP0\n", "K20", "plan: rank 0, #1 NORM: the norm is taken before the gradient of virtual node 0 [rank 0, #2 B0.0]" },
	{ "0: F0.0 B0.0 STEP0 NORM\n", "K20", "plan: rank 0, #2 STEP0: update 1 of stage 0 happens before its NORM" },
	{ "0: F0.0 F1.0 B1.0 B0.0 STEP0 NORM STEP1\n", "K20", "plan: rank 0, #4 STEP0: update 1 of stage 0 happens before its NORM" },
	{ "0: F0.0 B0.0 TIE0 STEP0\n", NULL, "" },
	{ "0: F0.0 TIE0 B0.0 STEP0\n", "K19", "plan: rank 0, #1 TIE0: tied group 0 is summed before any gradient of the update" },
	{ "0: F0.0 B0.0 TIE0 TIE0 STEP0\n", "K19", "plan: rank 0, #3 TIE0: tied group 0 is summed twice [rank 0, #2 TIE0]" },
	{ "0: F0.0 B0.0 STEP0 TIE0\n", "K19", "plan: rank 0, #3 TIE0: tied group 0 is summed before any gradient of the update" },
	{ "0: F0.0 F1.0 B1.0 B0.0 STEP0 TIE3 STEP1\n", NULL, "" },
	{ "0: F0.0 F1.0 B1.0 STEP1 B0.0 TIE1\n", "K19", "plan: rank 0, #5 TIE1: no update follows the sum of tied group 1" },
	{ "0: F0.0 B0.0 NORM NORM STEP0\n", "K20", "plan: rank 0, #3 NORM: the norm of an update is taken twice" },
	{ "0: LD0.0 F0.0 B0.0 F0.1 B0.1\n", "K10", "plan: rank 0, #3 F0.1: nothing reads virtual node 1 for stage 0: LD0.1 is missing" },
	{ "0: LD0.0\n1: F0.0 B0.0\n", "K3", "plan: rank 1, #0 F0.0: what stage 0 needs of virtual node 0 is read on rank 0, not here [rank 0, #0 LD0.0]" },
	{ "0: F0.0 B0.0 RED0 TIE0 STEP0\n1: F0.1 B0.1 TIE0 RED0 STEP0\n", "K7",
	  "plan: these instructions wait for each other: rank 0 #2 RED0 -> rank 1 #2 TIE0 -> rank 0" },

	{ "0: F0.0 B0.0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", NULL, "" },
	{ "0: Fc0.0 R0.0 B0.0\n", NULL, "" },
	{ "0: Fc0.0 B0.0\n", "K23", "plan: rank 0, #1 B0.0: activations of 0.0 were not kept; insert R or drop the flag c" },
	{ "0: F0.0 R0.0 B0.0\n", "K23", "plan: rank 0, #1 R0.0: there is nothing to recompute of 0.0 here" },
	{ "0: F0.0 OFF0.0 ON0.0 B0.0\n", NULL, "" },
	{ "0: F0.0 OFF0.0 B0.0\n", "K24", "plan: rank 0, #2 B0.0: activations of 0.0 are on the host at #2" },
	{ "0: Fc0.0 OFF0.0 R0.0 ON0.0 B0.0\n", "K24", "plan: rank 0, #2 R0.0: activations of 0.0 are on the host at #2" },
	{ "0: F0.0 ON0.0 B0.0\n", "K24", "plan: rank 0, #1 ON0.0: activations of 0.0 are not on the host at #1" },
	{ "0: OFF0.0 F0.0 B0.0\n", "K24", "plan: rank 0, #0 OFF0.0: activations of 0.0 are not live at #0" },
	{ "0: F0.0 (F0.1&B0.0) B0.1\n", NULL, "" },
	{ "0: (F0.0&B0.0)\n", "K25", "plan: rank 0, #0 F0.0: the two halves of a pair depend on each other" },
	{ "0: (F0.0&F0.1) B0.0 B0.1\n", "K25", "plan: rank 0, #0 F0.0: a pair needs one forward and one backward" },
	{ "0: F0.0 BAR3 B0.0\n1: F1.0 B1.0\n", "K27", "plan: BAR 3 is missing on rank 1" },
	{ "0: F0.0 B0.0\n1: F1.0 B1.0 BAR3\n", "K27", "plan: BAR 3 is missing on rank 0" },
	{ "0: F0.0 B0.0 BAR1 BAR2\n1: F1.0 B1.0 BAR2 BAR1\n", "K27", "plan: rank 1, #2 BAR2: rank 0 meets at BAR 1 here" },
	{ "update stash\nsection prologue\n0: F0.0 B0.0\nsection period\n0: F0.0 B0.0\nsection epilogue\n0:\n", NULL, "" },
	{ "update stash\nsection prologue\n0: F0.0\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0: B0.-1\n", "K13",
	  "plan: rank 0, #1 F0.1: version 1 of stage 0 is not made yet: its update comes after #1 [rank 0, "
	  "#2 B0.0]" },
	{ "update 2bw\nsection prologue\n0: F0.0\n1: F1.0 B1.0\nsection period\n0: F0.0 B0.-1\n1: F1.0 B1.0\nsection epilogue\n0: B0.-1\n1:\n", "K13",
	  "plan: 2bw needs m >= p; m = 1, p = 2; the nearest that works: m = 2" },
	{ "update 2bw\nsection prologue\n0: F0.0 F0.1\n1: F1.0 F1.1 B1.0\n2: F2.0 B2.0 F2.1 B2.1\nsection period\n0: F0.0 B0.-2\n1: F1.0 B1.-1\n"
	  "2: F2.0 B2.0\nsection epilogue\n0: B0.-2 B0.-1\n1: B1.-1\n2:\n", "K13",
	  "plan: rank 0, #2 F0.2: version 1 of stage 0 is not made yet: its update comes after #2; 2bw "
	  "needs m >= p; m = 1, p = 3; the nearest "
	  "that works: m = 3 [rank 0, #3 B0.0]" },
	{ "update 2bw\nsection prologue\n0: F0.0\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0: B0.-1\n", NULL, "" },
	{ "update stash\nsection prologue\n0: F0.0 B0.0\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0: B0.-1\n", "K2", "plan: rank 0, #3 B0.0: 0.0 has two backwards" },
	{ "update stash\nsection prologue\n0: F0.0\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0:\n", "K2", "plan: 0.4 has no backward" },
	{ "update stash\nsection prologue\n0: F0.9\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0:\n", "K30", "plan: the period does not repeat" },
	{ "update stash\nsection prologue\n0: F0.-2 F0.1\nsection period\n0: F0.0 B0.-1\nsection epilogue\n0:\n", "K30", "plan: the period does not repeat: the prologue of rank 0 names virtual node -2, and begins with 0" },
};

static void each_rule_has_its_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct hd_schedule s = hd_parsed_schedule(broken[i].text);
		struct hd_report report;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_schedule_check(&s, &eager, &report, &diag);
		CHECK(err == (broken[i].rule ? HD_E_BADPLAN : HD_OK), "%s%s", broken[i].text, diag.text);
		if (!broken[i].rule)
			continue;
		CHECK(!strcmp(report.at[0].rule, broken[i].rule), "%s%s %s", broken[i].text,
			report.at[0].rule, report.at[0].text);
		CHECK(!strncmp(report.at[0].text, broken[i].want, strlen(broken[i].want)), "%s%s",
			broken[i].text, report.at[0].text);
	}
}

/* ---- rules that a job brings */

static const struct hd_tied_group tied[] = { { .name = "embedding", .nstages = 2,
	.holds = (bool[]){ true, true } } };
static const struct hd_stage_cost unequal[] = { { .in = 8, .out = 64 }, { .in = 32, .out = 4 } };
static const struct hd_stage_costs sizes = { .nstages = 2, .stage = (struct hd_stage_cost *)unequal };
static const char *const nodes[] = { "a", "b", "c" };
static const uint32_t edges[][2] = { { 0, 1 }, { 1, 2 } };
static const struct hd_layers
	whole_graph = { nodes, 3, (const uint32_t[]){ 0, 2, 3 }, (const uint32_t[]){ 0, 1, 2 }, 2, edges, 2 },
	lost = { nodes, 3, (const uint32_t[]){ 0, 1, 2 }, (const uint32_t[]){ 0, 2 }, 2, edges, 2 },
	twice = { nodes, 3, (const uint32_t[]){ 0, 2, 4 }, (const uint32_t[]){ 0, 1, 1, 2 }, 2, edges, 2 },
	backwards = { nodes, 3, (const uint32_t[]){ 0, 1, 3 }, (const uint32_t[]){ 1, 0, 2 }, 2, edges, 2 };
static const struct hd_stage_rule every_other[] = { { 1, 0 }, { 2, 0 } };
static const struct hd_vn_list
	halves[] = { { (const uint32_t[]){ 0, 2 }, 2 }, { (const uint32_t[]){ 1, 3 }, 2 } },
	one_lost[] = { { (const uint32_t[]){ 0, 2 }, 2 }, { (const uint32_t[]){ 1, 4 }, 2 } },
	one_twice[] = { { (const uint32_t[]){ 0, 2 }, 2 }, { (const uint32_t[]){ 2, 3 }, 2 } },
	short_one[] = { { (const uint32_t[]){ 0, 1, 2 }, 3 }, { (const uint32_t[]){ 3 }, 1 } };
static const uint32_t pairs_of_ranks[] = { 0, 0, 1, 1 }, torn[] = { 0, 1, 0, 1 };

#define TWO "0: F0.0 F0.1 B0.0 B0.1 "
#define MOVES "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n"
#define TENSOR "0: F0.0 SA0.0>2 RG0.0<2 B0.0\n1: F0.0 SA0.0>3 RG0.0<3 B0.0\n2: RA1.0<0 F1.0 B1.0 SG1.0>0\n"

static const struct { const char *text; struct hd_schedule_job job; const char *rule, *want; } job_asks[] = {
	{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .layers = &whole_graph }, NULL, "" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 PIN0@1 F0.1 VAL@1 REL0@0 B0.1 STEP!0@2 VAL@2 REL0@1\n", { .rule = every_other }, "K21",
	  "plan: rank 0, #5 F0.1: version 1 of stage 0 is used before it is validated [rank 0, #3 "
	  "STEP!0@1]" },
	{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .layers = &lost }, "K5", "plan: node b belongs to no stage" },
	{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .layers = &twice }, "K5", "plan: node b belongs to stages 0 and 1" },
	{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .layers = &backwards }, "K5", "plan: edge a -> b runs backwards from stage 1 to 0" },
	{ "0: F0.0 B0.0\n", { .layers = &whole_graph }, "K5", "plan: the nodes are given to 2 stages, the lists have 1" },
	{ MOVES, { .costs = &sizes }, "K10", "plan: rank 0, #1 SA0.0>1: sizes differ: 0 sends 64 bytes, 1 expects 32 [rank 1, #1 F1.0]" },
	{ "0: F0.0 SA0.0>1 RG0.0<1#3 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n", { .slots = 2 }, "K4", "plan: rank 0, #2 RG0.0<1#3: slot 3 does not exist (there are 2, from 1)" },
	{ TWO "STEP0@1\n", { .rule = every_other }, "K13", "plan: rank 0, #1 F0.1: version 1 of stage 0 is not made yet: its update comes after #1 [rank 0, #4 STEP0@1]" },
	{ "0: F0.0 B0.0 STEP0@1 F0.1 B0.1 STEP0@2\n", { .rule = every_other }, NULL, "" },
	{ "0: F0.0 B0.0 STEP0@1 F0.1@0 B0.1@0 STEP0@2\n", { .rule = every_other }, "K12", "plan: rank 0, #3 F0.1@0: virtual node 1 must use version 1 of stage 0, the list uses 0" },
	{ "0: PIN0@0 F0.0 B0.0 REL0@0 F0.1 STEP0@1 B0.1 STEP0@2\n", { .rule = every_other }, "K13",
	  "plan: rank 0, #4 F0.1: version 1 of stage 0 is not made yet: its update comes after #4 [rank 0, "
	  "#5 STEP0@1]" },
	{ "0: F0.0 B0.0 F0.1 B0.1\n", { .whole = true }, "K10", "plan: rank 0, #0 F0.0: nothing reads virtual node 0 for stage 0" },
	{ "0: LD0.0 F0.0 B0.0\n", { .whole = true }, "K16", "plan: rank 0: update 1 of stage 0 never happens" },
	{ "0: F0.0 B0.0 TIE0 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n", { .tied = tied, .ntied = 1 }, NULL, "" },
	{ "0: F0.0 B0.0 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n", { .tied = tied, .ntied = 1 }, "K19",
	  "plan: rank 0, #2 STEP0: embedding is shared by stages 0 and 1 but no TIE joins them" },
	{ "0: F0.0 TIE0 B0.0 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n", { .tied = tied, .ntied = 1 }, "K19",
	  "plan: rank 0, #1 TIE0: embedding is summed before the gradient of virtual node 0 [rank 0, #2 "
	  "B0.0]" },
	{ "0: F0.0 B0.0 TIE0 TIE0 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n", { .tied = tied, .ntied = 1 }, "K19", "plan: rank 0, #3 TIE0: embedding is summed twice [rank 0, #2 TIE0]" },
	{ "0: F0.0 B0.0 TIE3 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n", { .tied = tied, .ntied = 1 }, "K4", "plan: rank 0, #2 TIE3: tied group 3 does not exist (there are 1)" },
	{ "0: F0.0 B0.0 TIE0 STEP0\n1: F1.0 B1.0 TIE0 STEP1\n2: F2.0 B2.0 TIE0 STEP2\n", { .tied = &(struct hd_tied_group){ .name = "head", .nstages = 3,
	  .holds = (bool[]){ true, true, false } }, .ntied = 1 }, "K3",
	  "plan: rank 2, #2 TIE0: no stage of head lives here" },
	{ "0: F0.0 B0.0 NORM STEP0\n", { .clips = true }, NULL, "" },
	{ "0: F0.0 B0.0 STEP0\n", { .clips = true }, "K20", "plan: rank 0, #2 STEP0: the job clips gradients but no NORM (or VAL) precedes the commit" },
	{ "0: F0.0 F1.0 B1.0 B0.0 STEP0 F0.1 F1.1 B1.1 B0.1 STEP0 STEP1\n", { .clips = true, .rule = every_other }, "K20",
	  "plan: the job clips gradients, so all stages are updated together: stage 0 is every 1 virtual "
	  "nodes, stage 1 every 2" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL@1 REL0@0\n", { .clips = true }, NULL, "" },
	{ TENSOR "3: RA1.0<1 F1.0 B1.0 SG1.0>1\n", { .tensor = pairs_of_ranks }, NULL, "" },
	{ TENSOR "3: RA1.0<1 F1.0 SG1.0>1 B1.0\n", { .tensor = pairs_of_ranks }, "K26",
	  "plan: rank 3, #2 SG1.0>1: ranks of one tensor group run different lists (first difference at #2) "
	  "[rank 2, #2 B1.0]" },
	{ TENSOR "3: RA1.0<1 F1.0 B1.0\n", { .tensor = pairs_of_ranks }, "K26", "plan: ranks 2 and 3: ranks of one tensor group run different lists (first difference at #3)" },
	{ TENSOR "3: RA1.0<1 F1.0 B1.0 SG1.0>1\n", { .tensor = torn }, "K26", "plan: tensor groups count up from 0 and stand together: rank 2 is of group 0" },
	{ TWO "\n", { .pipeline = halves, .npipelines = 2, .nvns = 4 }, NULL, "" },
	{ TWO "\n", { .pipeline = one_lost, .npipelines = 2, .nvns = 5 }, "K28", "plan: virtual node 3 is assigned to no pipeline" },
	{ TWO "\n", { .pipeline = one_lost, .npipelines = 2, .nvns = 4 }, "K28", "plan: pipeline 1 is given virtual node 4, the job has 4" },
	{ TWO "\n", { .pipeline = one_twice, .npipelines = 2, .nvns = 4 }, "K28", "plan: virtual node 2 is assigned to pipelines 0 and 1" },
	{ TWO "\n", { .pipeline = short_one, .npipelines = 2, .nvns = 4 }, "K28", "plan: pipeline 0 is given 3 virtual nodes, its lists have m = 2" },
	{ TWO "STEP0\n", { .pipeline = halves, .npipelines = 2, .nvns = 4 }, "K18", "plan: rank 0, #4 STEP0: stage 0 has 2 replicas and no RED" },
	{ TWO "RED0 STEP0\n", { .npipelines = 1 }, "K18", "plan: rank 0, #5 STEP0: stage 0 has one holder: there is nothing to reduce [rank 0, #4 RED0]" },
	{ TWO "RED0 STEP0\n", { .npipelines = 2, .buckets = (const uint16_t[]){ 2 } }, "K18",
	  "plan: rank 0, #5 STEP0: only 1 of the 2 buckets of stage 0 are reduced [rank 0, #4 RED0]" },
};

static void what_a_job_asks_for_has_its_sentences(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof job_asks / sizeof *job_asks; i++) {
		struct hd_schedule s = hd_parsed_schedule(job_asks[i].text);
		struct hd_report report;
		enum hd_err err = hd_schedule_check_job(&s, &job_asks[i].job, &eager, &report, NULL);
		CHECK(err == (job_asks[i].rule ? HD_E_BADPLAN : HD_OK), "%s%s", job_asks[i].text,
			report.at[0].text);
		if (!job_asks[i].rule)
			continue;
		CHECK(!strncmp(report.at[0].text, job_asks[i].want, strlen(job_asks[i].want)), "%s%s",
			job_asks[i].text, report.at[0].text);
		CHECK(!strcmp(report.at[0].rule, job_asks[i].rule), "%s%s %s", job_asks[i].text,
			report.at[0].rule, report.at[0].text);
	}
}

/* In the first steps versions -1, -2 ... all are the initial weights: the period is walked until they are
 * not. */
static void a_version_that_is_wrong_only_later_is_found(void **state)
{
	static const struct hd_stage_rule late = { 0, 4 };
	static const struct { uint32_t p; struct hd_schedule_job job; } cases[] = { { 3, { .whole = true } },
		{ 1, { .rule = &late, .whole = true } } };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct hd_schedule s = hd_named_schedule("2bw", cases[k].p, 5, 1);
		struct hd_report report;
		struct hd_ins *changed = NULL;
		assert_int_equal(hd_schedule_complete(&s, &s,
			&(struct hd_pass_options){ .job = &cases[k].job },
			&arena, NULL), HD_OK);
		CHECK(hd_schedule_check_job(&s, &cases[k].job, &eager, &report, NULL) == HD_OK, "%s",
			report.at[0].text);
		for (uint32_t i = 0; i < s.list[0].len; i++)
			changed = s.list[0].at[i].op == HD_INS_B && !changed ? &s.list[0].at[i] : changed;
		assert_int_equal(hd_ver_value(changed->ver), k ? -4 : -2);
		changed->ver = hd_ver_of(hd_ver_value(changed->ver) - 1);
		assert_int_equal(hd_schedule_check_job(&s, &cases[k].job, &eager, &report, NULL),
			HD_E_BADPLAN);
		assert_string_equal(report.at[0].rule, "K12");
	}
}

static void what_a_period_leaves_behind_is_told(void **state)
{
	struct hd_schedule s =
		hd_parsed_schedule("update stash\nsection prologue\n0: F0.0 B0.0 F0.1\nsection period\n0: "
		"F0.0 B0.0\nsection epilogue\n0:\n");
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_schedule_check(&s, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[report.len - 1].rule, "K30");
	assert_string_equal(report.at[report.len - 1].text,
		"plan: the period does not repeat: after it rank 0 holds 0.-2, before it it held 0.-1");
}

/* A byte less than the peak is too little; the peak itself is enough. */
static void memory_is_checked_to_the_byte(void **state)
{
	struct hd_stage_cost cost[] = { { .f = 1, .i = 1, .w = 1, .saved = 100, .saved_w = 50, .param = 10,
		.opt = 20, .work = 3, .out = 7 },
		{ .f = 1, .i = 1, .w = 1, .saved = 200, .saved_w = 50, .param = 10, .opt = 20, .work = 3, .in = 7 } };
	const struct hd_stage_costs costs = { .nstages = 2, .stage = cost, .ovl = 1, .comm_tax = 1 };
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 4, 1);
	int64_t memory[] = { 0, 0 };
	struct hd_schedule_job job = { .costs = &costs, .memory = memory };
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_OK);
	memory[0] = 1;
	assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].rule, "K22");
	/* two activations, two sums while the second joins the first, the gradient that arrived */
	assert_string_equal(report.at[0].text,
		"plan: rank 0, #4 B0.1: rank 0 would need 260 of 1 bytes at #4: weights 10, optimizer 20, "
		"workspace 3, "
		"versions 0, gradient partials 20, activations 200, buffers 7, shadows 0");
	memory[0] = 260;
	assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_OK);
	memory[0]--;
	assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_E_BADPLAN);
}

/* An edge names nodes that there are; one of a node without a stage is reported by the node alone. */
static void edges_of_layers_are_held_against_the_nodes(void **state)
{
	static const uint32_t from_far[][2] = { { 7, 1 } }, to_far[][2] = { { 1, 7 } };
	const struct { struct hd_layers layers; const char *want; } cases[] = {
		{ { nodes, 3, (const uint32_t[]){ 0, 2, 3 }, (const uint32_t[]){ 0, 1, 2 }, 2, from_far, 1 }, "plan: an edge names node 7 of 3" },
		{ { nodes, 3, (const uint32_t[]){ 0, 2, 3 }, (const uint32_t[]){ 0, 1, 2 }, 2, to_far, 1 }, "plan: an edge names node 7 of 3" },
		{ { nodes, 3, (const uint32_t[]){ 0, 1, 2 }, (const uint32_t[]){ 0, 2 }, 2, edges, 2 }, "plan: node b belongs to no stage" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0\n1: F1.0 B1.0\n");
		struct hd_report report = { 0 };
		const struct hd_schedule_job job = { .layers = &cases[i].layers };
		assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_E_BADPLAN);
		CHECK(report.total == 1 && !strcmp(report.at[0].text, cases[i].want), "case %zu: %llu: %s", i,
			(unsigned long long)report.total,
			report.at[0].text);
	}
}

/* Costs of fewer stages than the lists have: what stands behind them is not looked at, and memory cannot
 * be judged. */
static void costs_of_other_stages_are_refused(void **state)
{
	struct hd_stage_cost cost[] = { { .in = 8, .out = 7 }, { .in = 7, .out = 7 },
		{ .in = 99, .out = 99 } };
	const struct hd_stage_costs costs = { .nstages = 2, .stage = cost, .ovl = 1, .comm_tax = 1 };
	const int64_t memory[] = { 0, 0, 0 };
	struct hd_schedule s =
		hd_parsed_schedule("0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 SA1.0>2 RG1.0<2 B1.0 "
		"SG1.0>0\n2: RA2.0<1 F2.0 B2.0 SG2.0>1\n");
	struct hd_report report = { 0 };
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(hd_schedule_check_job(&s, &(struct hd_schedule_job){ .costs = &costs }, &eager, &report,
		NULL) == HD_OK, "%s", report.at[0].text);
	assert_int_equal(hd_schedule_check_job(&s, &(struct hd_schedule_job){ .costs = &costs,
		.memory = memory }, &eager, &report, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "costs of 2 stages for lists of 3");
}

/* A buffer of a channel is free when what it holds was used; each channel, and each way, has its own. */
static void a_buffer_is_free_when_it_was_used(void **state)
{
	static const struct { const char *text; uint32_t slots; const char *rule, *want; } cases[] = {
		/* one buffer, used in turn; the same number of another way or of another sender is another
		 * buffer */
		{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1#1 B0.0 RG0.1<1#1 B0.1\n1: RA1.0<0#1 F1.0 B1.0 SG1.0>0 RA1.1<0#1 F1.1 B1.1 SG1.1>0\n", 0, NULL, "" },
		{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0#1 F1.0 SA1.0>2 RG1.0<2#1 B1.0 SG1.0>0\n2: RA2.0<1#1 F2.0 B2.0 SG2.0>1\n", 1, NULL, "" },
		{ "0: F0.0 SA0.0>1 RA2.0<1#1 F2.0 B2.0 SG2.0>1 RG0.0<1#1 B0.0\n1: RA1.0<0#1 F1.0 SA1.0>0 RG1.0<0#1 B1.0 SG1.0>0\n", 1, NULL, "" },
		/* number 0 names none */
		{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0 RA1.1<0 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", 1, NULL, "" },
		{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0#2 RA1.1<0#1 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", 2, NULL, "" },
		{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0#3 RA1.1<0#1 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", 2, "K4",
		  "plan: rank 1, #0 RA1.0<0#3: slot 3 does not exist (there are 2, from 1)" },
		/* both gradients come before the first is used */
		{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1#1 RG0.1<1#1 B0.0 B0.1\n1: RA1.0<0 F1.0 RA1.1<0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", 1, "K11",
		  "plan: rank 0, #5 RG0.1<1#1: slot 1 still holds 1.0, needed by #6 [rank 0, #6 B0.0]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_schedule s = hd_parsed_schedule(cases[i].text);
		struct hd_report report = { 0 };
		const struct hd_schedule_job job = { .slots = cases[i].slots };
		enum hd_err err = hd_schedule_check_job(&s, &job, &eager, &report, NULL);
		CHECK(err == (cases[i].rule ? HD_E_BADPLAN : HD_OK), "case %zu: %s", i, report.at[0].text);
		CHECK(!cases[i].rule || (!strcmp(report.at[0].rule, cases[i].rule) &&
			!strncmp(report.at[0].text, cases[i].want, strlen(cases[i].want))),
			"case %zu: %s %s", i, report.at[0].rule, report.at[0].text);
	}
}

/* Every buffer there may be of one rank, full at once: none is taken for another; filled again, each is
 * named. */
static void buffers_are_told_apart(void **state)
{
	enum { N = 512 };
	/* of a way of a channel */
	static const struct { uint32_t n, apart; } slots[] = { { 16, 1 }, { 2, 1 }, { 128, 1 }, { 128, 64 },
		{ 256, 256 } };
	static struct hd_ins at[2 * N + 1];      /* the last: where all is done that needs a buffer */
	static struct hd_done done[3 * N];

	(void)state;
	for (uint32_t i = 0; i < 3 * N; i++)
		done[i].f.at = done[i].b.at = 2 * N;
	for (size_t k = 0; k < sizeof slots / sizeof *slots; k++) {
		struct hd_ilist list = { .at = at, .len = N };
		const struct hd_schedule s = { .nranks = 1, .nvns = N, .nstages = 3, .list = &list };
		struct hd_report report = { 0 };
		const struct hd_lists l = { .s = &s, .done = done, .report = &report, .arena = &arena };
		for (uint32_t i = 0; i < 2 * N; i++)
			at[i] = (struct hd_ins){ .op = i % 2 ? HD_INS_RA : HD_INS_RG, .stage = 1, .vn = i % N,
				.peer = (uint16_t)(1 + i % N / 2 / slots[k].n),
				.slot = (uint16_t)(1 + i / 2 % slots[k].n * slots[k].apart % 65535) };
		assert_int_equal(hd_lists_slots(&l, NULL), HD_OK);
		CHECK(report.total == 0, "case %zu: %s", k, report.at[0].text);
		list.len = 2 * N;
		assert_int_equal(hd_lists_slots(&l, NULL), HD_OK);
		CHECK(report.total == N && !strcmp(report.at[0].rule, "K11"), "case %zu: %llu", k,
			(unsigned long long)report.total);
	}
}

/* Only what is received into a buffer fills one: a bucket, a send, a receive that names none do not. All
 * are needed to the end. */
static void only_receives_fill_buffers(void **state)
{
	enum { RA = HD_INS_RA, SA = HD_INS_SA, RED = HD_INS_RED };
	static const struct { struct hd_ins at[4]; uint32_t slots, findings; const char *rule; } cases[] = {
		{ { { .op = RA, .slot = 1 }, { .op = RED, .slot = 9 }, { .op = SA, .slot = 9 }, { .op = RA, .slot = 2 } }, 2, 0, "" },
		{ { { .op = RA, .slot = 1 }, { .op = SA, .slot = 2 }, { .op = SA, .slot = 2 }, { .op = RED, .slot = 2 } }, 0, 0, "" },
		{ { { .op = RA, .slot = 1 }, { .op = RA }, { .op = RA }, { .op = RA } }, 0, 0, "" },
		{ { { .op = RA }, { .op = RED, .slot = 1 }, { .op = SA, .slot = 1 }, { .op = RA } }, 0, 0, "" },        /* no buffer is named at all */
		{ { { .op = RA, .slot = 1 }, { .op = RA, .slot = 1 }, { .op = SA }, { .op = RA, .slot = 1 } }, 0, 2, "K11" },
		{ { { .op = RA, .slot = 3 }, { .op = RA, .slot = 3 }, { .op = RA, .slot = 1 }, { .op = RA, .slot = 1 } }, 2, 2, "K4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_ins at[4];
		struct hd_done done[8] = { { .f = { .at = 9 } } };
		struct hd_ilist list = { .at = at, .len = 4 };
		const struct hd_schedule s = { .nranks = 1, .nvns = 4, .nstages = 2, .list = &list };
		const struct hd_schedule_job job = { .slots = cases[i].slots };
		struct hd_report report = { 0 };
		struct hd_arena little;
		const struct hd_lists l = { .s = &s, .done = done, .report = &report, .arena = &little,
			.job = &job };
		hd_arena_init(&little, 0);
		for (uint32_t k = 0; k < 4; k++) {
			at[k] = cases[i].at[k];
			at[k].stage = 1;
			at[k].vn = k;
			done[4 + k].f.at = 9;
		}
		assert_int_equal(hd_lists_slots(&l, NULL), HD_OK);
		CHECK(report.total == cases[i].findings, "case %zu: %llu findings, %s", i,
			(unsigned long long)report.total, report.at[0].text);
		for (uint32_t k = 0; k < report.len; k++)
			CHECK(!strcmp(report.at[k].rule, cases[i].rule), "case %zu: %s", i,
				report.at[k].text);
		CHECK(i != 3 || little.used_bytes == 0, "memory for no buffer");
		hd_arena_finish(&little);
	}
}

/* Five on each side of both instructions, the one that is meant in brackets. */
static void a_finding_draws_where_it_is(void **state)
{
	struct hd_schedule s =
		hd_parsed_schedule("0: F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F0.6 F0.0 B0.0 B0.1 B0.2 B0.3 B0.4 "
		"B0.5 B0.6\n");
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_schedule_check(&s, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].text,
		"plan: rank 0, #7 F0.0: forward of 0.0 appears twice (ranks 0 #0 and 0 #7) [rank 0, #0 "
		"F0.0]");
	assert_string_equal(report.at[0].fragment[0],
		"rank 0 from #2: F0.2 F0.3 F0.4 F0.5 F0.6 [F0.0] B0.0 B0.1 B0.2 B0.3 B0.4");
	assert_string_equal(report.at[0].fragment[1], "rank 0 from #0: [F0.0] F0.1 F0.2 F0.3 F0.4 F0.5");
	s = hd_parsed_schedule("0: F0.0\n");
	assert_int_equal(hd_schedule_check(&s, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].text, "plan: 0.0 has no backward");
	assert_string_equal(report.at[0].fragment[0], "rank 0 from #0: [F0.0]");
	assert_string_equal(report.at[0].fragment[1], "");
	s = hd_parsed_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0\n");
	assert_int_equal(hd_schedule_check(&s, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].fragment[0], "rank 0 from #0: F0.0 [B0.0] F0.1 B0.1");
	assert_string_equal(report.at[0].fragment[1], "rank 1 from #0: [F1.1] B1.1 F1.0 B1.0");
	s = hd_parsed_schedule("0: F0.2 B0.2\n");
	assert_int_equal(hd_schedule_check(&s, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].fragment[0], "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_has_its_sentence),
		cmocka_unit_test(what_a_job_asks_for_has_its_sentences),
		cmocka_unit_test(a_version_that_is_wrong_only_later_is_found),
		cmocka_unit_test(what_a_period_leaves_behind_is_told),
		cmocka_unit_test(memory_is_checked_to_the_byte),
		cmocka_unit_test(edges_of_layers_are_held_against_the_nodes),
		cmocka_unit_test(costs_of_other_stages_are_refused),
		cmocka_unit_test(a_buffer_is_free_when_it_was_used),
		cmocka_unit_test(buffers_are_told_apart),
		cmocka_unit_test(only_receives_fill_buffers),
		cmocka_unit_test(a_finding_draws_where_it_is),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
