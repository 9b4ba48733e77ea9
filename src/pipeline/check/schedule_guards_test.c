/* Computing, moving and pairing (K1 - K10, K23 - K30): lists that break one rule, with all that is said of
 * them, and lists beside them that break none. */
#include "pipeline/schedule_check.h"

#include <string.h>

#include "base/alloc.h"
#include "pipeline/check/int.h"
#include "pipeline/simulate.h"
#include "pipeline/testing_said.h"
#include "tests/check.h"

static const struct hd_stage_cost unequal[] = { { .in = 8, .out = 64 }, { .in = 32, .out = 4 } };
static const struct hd_stage_costs sizes = { .nstages = 2, .stage = (struct hd_stage_cost *)unequal, .ovl = 1,
	.comm_tax = 1 };
static const char *const nodes[] = { "a", "b", "c" };
static const struct hd_layers lost = { nodes, 3, (const uint32_t[]){ 0, 1, 2 }, (const uint32_t[]){ 0, 2 }, 2,
	NULL, 0 };
static const uint32_t one_group[] = { 0, 0 }, three_groups[] = { 0, 0, 1, 1, 2, 2 },
	one_and_two[] = { 0, 1, 1 };
static const int64_t none[] = { 0, 0 }, little[] = { 1, 1 };

/* `said`: all findings, a line each; "" is accepted. */
static const struct { const char *text; struct hd_schedule_job job; const char *said; } cases[] = {
	/* a sentence that names both places has none behind it */
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n"
	  "1: F1.0 B1.0 SG1.0>0\n", { 0 },
	  "K10 plan: activation of 0.0 is sent and never received\n" },
	/* activations are live where their forward was, until the backward */
	{ "0: F0.0\n"
	  "1: OFF0.0\n"
	  "2: B0.0\n", { 0 },
	  "K24 plan: rank 1, #0 OFF0.0: activations of 0.0 are not live at #0\n"
	  "K3 plan: rank 2, #0 B0.0: stage 0 lives on rank 0 for virtual node 0, not here [rank 0, "
	  "#0 F0.0]\n"
	  "K24 plan: rank 2, #0 B0.0: activations of 0.0 are on the host at #0\n" },
	{ "0: F0.0 B0.0 OFF0.0\n", { 0 },
	  "K24 plan: rank 0, #2 OFF0.0: activations of 0.0 are not live at #2\n" },
	{ "0: F0.0 I0.0 W0.0 OFF0.0\n", { 0 },
	  "K24 plan: rank 0, #3 OFF0.0: activations of 0.0 are not live at #3\n" },
	{ "0: F0.0 I0.0 OFF0.0 ON0.0 W0.0\n", { 0 }, "" },
	{ "0: Fc0.0\n"
	  "1: R0.0\n"
	  "2: B0.0\n", { 0 },
	  "K23 plan: rank 1, #0 R0.0: there is nothing to recompute of 0.0 here\n"
	  "K3 plan: rank 2, #0 B0.0: stage 0 lives on rank 0 for virtual node 0, not here [rank 0, "
	  "#0 Fc0.0]\n" },
	{ "0: F0.0 OFF0.0 OFF0.0 ON0.0 B0.0\n", { 0 },
	  "K24 plan: rank 0, #2 OFF0.0: activations of 0.0 are not live at #2\n" },
	{ "0: F0.0 OFF0.0 B0.0 ON0.0\n", { 0 },
	  "K24 plan: rank 0, #2 B0.0: activations of 0.0 are on the host at #2\n"
	  "K24 plan: rank 0, #3 ON0.0: activations of 0.0 are not on the host at #3\n" },
	{ "0: LD0.0 LD0.0 F0.0 B0.0\n", { 0 },
	  "K6 plan: rank 0, #1 LD0.0: LD0.0 comes twice or after its forward\n" },
	{ "0: F0.0 SA0.0>0 B0.0\n", { 0 },
	  "K4 plan: rank 0, #1 SA0.0>0: rank 0 is not another rank of 1\n" },
	/* of one instruction the pair comes first */
	{ "0: F0.0 (F0.0&B0.0)\n", { 0 },
	  "K25 plan: rank 0, #1 F0.0: the two halves of a pair depend on each other\n"
	  "K1 plan: rank 0, #1 F0.0: forward of 0.0 appears twice (ranks 0 #0 and 0 #1) [rank 0, "
	  "#0 F0.0]\n" },
	/* where something is read, both ends read */
	{ "0: LD0.0 F0.0 B0.0\n"
	  "1: F1.0 B1.0\n", { 0 },
	  "K10 plan: rank 1, #0 F1.0: nothing reads virtual node 0 for stage 1: LD1.0 is missing\n" },
	{ "0: F0.0 B0.0\n"
	  "1: LD1.0 F1.0 B1.0\n", { 0 },
	  "K10 plan: rank 0, #0 F0.0: nothing reads virtual node 0 for stage 0: LD0.0 is missing\n" },
	{ "0: F0.0 F1.0 F2.0 LD1.0 B2.0 B1.0 B0.0\n", { 0 },
	  "K4 plan: rank 0, #3 LD1.0: stage 1 takes nothing from the reader\n"
	  "K6 plan: rank 0, #3 LD1.0: LD1.0 comes twice or after its forward\n" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n"
	  "1: RA1.0<0 F1.0 RG1.0<0 B1.0 SG1.0>0\n", { 0 },
	  "K10 plan: rank 1, #2 RG1.0<0: there is no stage that this tensor comes from or goes to\n" },
	/* of each boundary once, by the sender */
	{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n"
	  "1: RA1.0<0 F1.0 RA1.1<0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", { .costs = &sizes },
	  "K10 plan: rank 0, #1 SA0.0>1: sizes differ: 0 sends 64 bytes, 1 expects 32 [rank 1, #1 "
	  "F1.0]\n"
	  "K10 plan: rank 1, #5 SG1.0>0: sizes differ: 1 sends 32 bytes, 0 expects 64 [rank 0, #5 "
	  "B0.0]\n" },
	{ "0: F0.0 RG0.0<1 B0.0\n"
	  "1: RA1.0<0 F1.0 B1.0 SG1.0>0\n"
	  "2: SA0.0>1\n", { 0 },
	  "K10 plan: rank 2, #0 SA0.0>1: activation of 0.0 goes from rank 0 to rank 1\n" },
	{ "0: F0.0 SA0.0>1#2 RG0.0<1 B0.0\n"
	  "1: RA1.0<0 F1.0 B1.0 SG1.0>0#2\n", { 0 }, "" },
	{ "0: F0.0 SA0.0>1#2 RG0.0<1#2 B0.0\n"
	  "1: RA1.0<0#2 F1.0 B1.0 SG1.0>0#2\n", { 0 }, "" },
	{ "0: F0.0 SA0.0>1 RG0.0<1#1 B0.0\n"
	  "1: RA1.0<0#1 F1.0 B1.0 SG1.0>0#2\n", { 0 },
	  "K10 plan: rank 0, #2 RG0.0<1#1: input gradient of 1.0 is sent into slot 2\n" },
	{ "0: F0.0 SA0.0>1#2 RG0.0<1#1 B0.0\n"
	  "1: RA1.0<0#1 F1.0 B1.0 SG1.0>0\n", { 0 },
	  "K10 plan: rank 1, #0 RA1.0<0#1: activation of 0.0 is sent into slot 2\n" },
	{ "0:\n"
	  "1: F0.0 RA1.0<0 F1.0 B1.0 B0.0\n", { 0 },
	  "K10 plan: rank 1, #1 RA1.0<0: activation of 0.0 goes from rank 1 to rank 1\n"
	  "K10 plan: activation of 0.0 is received and never sent\n" },
	{ "0: F0.0 SA0.0>1 F0.1 RG0.0<1 B0.0 RG0.1<1 B0.1\n"
	  "1: RA1.0<0 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n", { 0 },
	  "K10 plan: activation of 0.1 is received and never sent\n" },
	/* what follows from the first walk is not said */
	{ "0: F0.0 B0.0 B0.0 SA0.0>1\n"
	  "1: F1.0 B1.0\n", { 0 },
	  "K2 plan: rank 0, #2 B0.0: 0.0 has two backwards [rank 0, #1 B0.0]\n" },
	{ "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1 STEP0 STEP0\n"
	  "1: RA1.0<0#1 RA1.1<0#1 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0 STEP1\n", { 0 },
	  "K11 plan: rank 1, #1 RA1.1<0#1: slot 1 still holds 0.0, needed by #2 [rank 1, #2 F1.0]\n" },
	{ "0: F0.0 B0.0 STEP0 STEP0 BAR3\n"
	  "1: F1.0 B1.0 STEP1\n", { 0 },
	  "K16 plan: rank 0, #3 STEP0: update 1 of stage 0 happens twice [rank 0, #2 STEP0]\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.9\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0:\n", { 0 },
	  "K30 plan: the period does not repeat: the prologue takes 10 steps, 5 are asked for\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0: F1.0 B1.0\n", { 0 },
	  "K30 plan: the period does not repeat: 5 steps of 1 virtual nodes make 6, not 5\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0 B0.0 F0.1\n"
	  "section period\n"
	  "0: F0.0 B0.0\n"
	  "section epilogue\n"
	  "0:\n", { 0 },
	  "K2 plan: 0.1 has no backward\n"
	  "K30 plan: the period does not repeat: after it rank 0 holds 0.-2, before it it held "
	  "0.-1\n" },
	{ "update 2bw\n"
	  "section prologue\n"
	  "0: F0.0 F0.1\n"
	  "1: F1.0 F1.1 B1.0\n"
	  "2: F2.0 B2.0 F2.1 B2.1\n"
	  "section period\n"
	  "0: F0.0 B0.-2\n"
	  "1: F1.0 B1.-1\n"
	  "2: F2.0 B2.0\n"
	  "section epilogue\n"
	  "0: B0.-2 B0.-1\n"
	  "1: B1.-1\n"
	  "2:\n", { 0 },
	  "K13 plan: rank 0, #2 F0.2: version 1 of stage 0 is not made yet: its update comes after "
	  "#2; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #3 B0.0]\n"
	  "K13 plan: rank 0, #4 F0.3: version 2 of stage 0 is not made yet: its update comes after "
	  "#4; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #5 B0.1]\n"
	  "K13 plan: rank 0, #6 F0.4: version 3 of stage 0 is not made yet: its update comes after "
	  "#6; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #7 B0.2]\n"
	  "K13 plan: rank 0, #8 F0.5: version 4 of stage 0 is not made yet: its update comes after "
	  "#8; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #9 B0.3]\n"
	  "K13 plan: rank 0, #10 F0.6: version 5 of stage 0 is not made yet: its update comes "
	  "after #10; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #11 "
	  "B0.4]\n"
	  "K13 plan: rank 0, #12 F0.7: version 6 of stage 0 is not made yet: its update comes "
	  "after #12; 2bw needs m >= p; m = 1, p = 3; the nearest that works: m = 3 [rank 0, #13 "
	  "B0.5]\n" },
	{ "update 2bw\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "1: F1.0 B1.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "1: F1.0 B1.0\n"
	  "section epilogue\n"
	  "0: B0.-1\n"
	  "1:\n", { 0 },
	  "K13 plan: 2bw needs m >= p; m = 1, p = 2; the nearest that works: m = 2\n" },
	/* one version a virtual node asks for no m */
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "1: F1.0 B1.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "1: F1.0 B1.0\n"
	  "section epilogue\n"
	  "0: B0.-1\n"
	  "1:\n", { 0 }, "" },
	/* layers and lists are both reported */
	{ "0: F0.0\n"
	  "1: F1.0 B1.0\n", { .layers = &lost },
	  "K5 plan: node b belongs to no stage\n"
	  "K2 plan: 0.0 has no backward\n" },
	/* of a tensor group once */
	{ "0: F0.0\n"
	  "1: F0.0\n", { .tensor = one_group },
	  "K2 plan: 0.0 has no backward\n" },
	/* and nothing else where its lists differ */
	{ "0: F0.0 B0.0\n"
	  "1: F0.0 F0.1 B0.0\n", { .tensor = one_group },
	  "K26 plan: rank 1, #1 F0.1: ranks of one tensor group run different lists (first "
	  "difference at #1) [rank 0, #1 B0.0]\n" },
	{ "0: F0.0\n", { .costs = &sizes, .memory = none },
	  "K2 plan: 0.0 has no backward\n" },
	/* without costs there is nothing to compare */
	{ "0: F0.0 B0.0\n", { .memory = little }, "" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0 F1.0 B1.0 B0.0\n"
	  "section period\n"
	  "0: F0.0 B0.0\n"
	  "section epilogue\n"
	  "0:\n", { 0 },
	  "K30 plan: the period does not repeat: it has 1 stages, the other sections name 2\n" },
	/* what a period leaves behind is reported before what follows from it */
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.9\n"
	  "section period\n"
	  "0: F0.0 B0.0\n"
	  "section epilogue\n"
	  "0:\n", { 0 },
	  "K30 plan: the period does not repeat: after it rank 0 holds 0.-2, before it it held "
	  "0.-1\n" },
	/* members of a group talk to one group */
	{ "0: F0.0 SA0.0>2 RG0.0<2 B0.0\n"
	  "1: F0.0 SA0.0>4 RG0.0<2 B0.0\n"
	  "2: RA1.0<0 F1.0 B1.0 SG1.0>0\n"
	  "3: RA1.0<1 F1.0 B1.0 SG1.0>1\n"
	  "4: F2.0 B2.0\n"
	  "5: F2.0 B2.0\n", { .tensor = three_groups },
	  "K26 plan: rank 1, #1 SA0.0>4: ranks of one tensor group run different lists (first "
	  "difference at #1) [rank 0, #1 SA0.0>2]\n" },
	/* the first may be the shorter one */
	{ "0: F0.0 SA0.0>2 RG0.0<2 B0.0\n"
	  "1: F0.0 SA0.0>3 RG0.0<3 B0.0\n"
	  "2: RA1.0<0 F1.0 B1.0\n"
	  "3: RA1.0<1 F1.0 B1.0 SG1.0>1\n", { .tensor = three_groups },
	  "K26 plan: ranks 2 and 3: ranks of one tensor group run different lists (first "
	  "difference at #3)\n" },
	{ "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n"
	  "1: RA1.0<0 F1.0 B1.0 SG1.0>0\n"
	  "2: RA1.0<0 F1.0 B1.0 SG1.0>0\n", { .tensor = one_and_two }, "" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "1: F0.1\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "1: F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0: B0.-1\n"
	  "1: B0.-1\n", { .tensor = one_group },
	  "K26 plan: ranks 0 and 1: ranks of one tensor group run different lists (first "
	  "difference at #0 of the prologue)\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "1: F0.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1\n"
	  "1: F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0: B0.-1\n"
	  "1: I0.-1\n", { .tensor = one_group },
	  "K26 plan: ranks 0 and 1: ranks of one tensor group run different lists (first "
	  "difference at #0 of the epilogue)\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "section period\n"
	  "0: I0.-1 W0.-1 F0.0\n"
	  "section epilogue\n"
	  "0: I0.-1 W0.-1\n", { 0 }, "" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "section period\n"
	  "0: F0.0 B0.-1 B0.0\n"
	  "section epilogue\n"
	  "0:\n", { 0 },
	  "K2 plan: rank 0, #5 B0.1: 0.1 has two backwards [rank 0, #3 B0.1]\n"
	  "K2 plan: rank 0, #8 B0.2: 0.2 has two backwards [rank 0, #6 B0.2]\n"
	  "K2 plan: rank 0, #11 B0.3: 0.3 has two backwards [rank 0, #9 B0.3]\n"
	  "K30 plan: the period does not repeat: after it rank 0 holds nothing more, before it it "
	  "held 0.-1\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0: F0.0\n"
	  "section period\n"
	  "0: F0.0 F0.0 B0.-1\n"
	  "section epilogue\n"
	  "0: B0.-1\n", { 0 },
	  "K1 plan: rank 0, #2 F0.1: forward of 0.1 appears twice (ranks 0 #1 and 0 #2) [rank 0, "
	  "#1 F0.1]\n"
	  "K1 plan: rank 0, #5 F0.2: forward of 0.2 appears twice (ranks 0 #4 and 0 #5) [rank 0, "
	  "#4 F0.2]\n"
	  "K1 plan: rank 0, #8 F0.3: forward of 0.3 appears twice (ranks 0 #7 and 0 #8) [rank 0, "
	  "#7 F0.3]\n"
	  "K1 plan: rank 0, #11 F0.4: forward of 0.4 appears twice (ranks 0 #10 and 0 #11) [rank "
	  "0, #10 F0.4]\n"
	  "K30 plan: the period does not repeat: after it rank 0 holds 0.-1, before it it held "
	  "0.-1\n" },
	{ "update stash\n"
	  "section prologue\n"
	  "0:\n"
	  "section period\n"
	  "0: F0.0\n"
	  "section epilogue\n"
	  "0: B0.-1\n", { 0 },
	  "K2 plan: 0.0 has no backward\n"
	  "K2 plan: 0.1 has no backward\n"
	  "K2 plan: 0.2 has no backward\n"
	  "K2 plan: 0.3 has no backward\n"
	  "K30 plan: the period does not repeat: after it rank 0 holds 0.-1, before it it held "
	  "nothing more\n" },
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

/* Flags that no text can have: halves of pairs alone, and of W. */
static void half_a_pair_is_none(void **state)
{
	enum { BEGIN = HD_INS_PAIR_BEGIN, END = HD_INS_PAIR_END };
	static const char two[] = "0: F0.0 B0.0 F0.1 B0.1\n",
		split[] = "0: F0.0 I0.0 F0.1 W0.0 F0.2 I0.1 W0.1 B0.2\n";
	static const struct { const char *text; uint8_t flags[5]; const char *said; } halves[] = {
		{ two, { END }, "K25 plan: rank 0, #0 F0.0: the second half of a pair without the first\n" },
		{ two, { [2] = END }, "K25 plan: rank 0, #2 F0.1: the second half of a pair without the first\n" },
		{ two, { [3] = BEGIN }, "K25 plan: rank 0, #3 B0.1: the first half of a pair without the second\n" },
		{ two, { [1] = BEGIN }, "K25 plan: rank 0, #1 B0.0: the first half of a pair without the second\n" },
		{ two, { [1] = BEGIN, BEGIN | END, END }, "K25 plan: rank 0, #2 F0.1: the first half of a pair without the second\n" },
		{ two, { [1] = BEGIN, END }, "" },
		{ split, { [2] = BEGIN, END }, "K25 plan: rank 0, #2 F0.1: a pair needs one forward and one backward\n"
		  "K4 plan: rank 0, #3: instruction W: flags 16 do not belong to it\n"
		  "K2 plan: 0.0 has I but no W: its weights would miss a gradient\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		struct hd_schedule s = hd_parsed_schedule(halves[i].text);
		for (uint32_t at = 0; at < 5 && at < s.list[0].len; at++)
			s.list[0].at[at].flags |= halves[i].flags[at];
		CHECK(!strcmp(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER), halves[i].said), "case %zu: %s", i,
			hd_all_said(&s, NULL, HD_TRANSPORT_EAGER));
	}
}

/* Stages without virtual nodes, and the reverse, compute nothing; a finding is reported once whatever the
 * transport; few virtual nodes are for 2bw alone. */
static void what_no_text_says(void **state)
{
	struct hd_schedule s = hd_parsed_schedule("0: BAR0\n");
	static const char *const names[] = { "stash", "vsync" };

	(void)state;
	s.nstages = 1;
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER),
		"K1 plan: it computes nothing: there is no forward in its 1 instructions\n");
	s.nstages = 0;
	s.nvns = 1;
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER),
		"K1 plan: it computes nothing: there is no forward in its 1 instructions\n");
	s = hd_parsed_schedule("0: F0.0 B0.0 F0.1\n1: F1.0 B1.0 F1.1 B1.1\n");
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_RENDEZVOUS), "K2 plan: 0.1 has no backward\n");
	for (int k = 0; k < 2; k++) {
		s = hd_named_schedule(names[k], 3, 1, 1);
		assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER), "");
	}
}

/* Times that cannot be counted are no verdict about memory. */
static void what_cannot_be_simulated_is_no_verdict(void **state)
{
	struct hd_stage_cost cost[] = { { .f = INT64_MAX / 2, .i = INT64_MAX / 2, .w = INT64_MAX / 2 } };
	const struct hd_stage_costs costs = { .nstages = 1, .stage = cost, .ovl = 1, .comm_tax = 1 };
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0\n");
	const struct hd_schedule_job job = { .costs = &costs, .memory = little };
	struct hd_report report;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_schedule_check_job(&s, &job, &(struct hd_schedule_rules){ HD_TRANSPORT_EAGER, 0 },
		&report, &diag), HD_E_INVAL);
	CHECK(report.total == 0 && diag.text[0], "%llu: %s", (unsigned long long)report.total,
		report.at[0].text);
}

/* HD_E_NOMEM, and never a verdict: of layers and pipelines, and of a period at each place in turn. */
static void memory_that_ends_is_no_verdict(void **state)
{
	const struct hd_vn_list all = { (const uint32_t[]){ 0 }, 1 };
	const struct hd_schedule_job jobs[] = { { .layers = &lost },
		{ .pipeline = &all, .npipelines = 1, .nvns = 1 } };
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 B0.0\n");
	enum hd_err err = HD_E_NOMEM;
	struct hd_report report = { 0 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		hd_alloc_arm(1);
		err = hd_schedule_check_job(&s, &jobs[k], &(struct hd_schedule_rules){ HD_TRANSPORT_EAGER,
			0 }, &report, NULL);
		hd_alloc_arm(0);
		CHECK(err == HD_E_NOMEM && report.total == 0, "job %d: %d", k, err);
	}
	s = hd_named_schedule("stash", 3, 3, 1);
	err = HD_E_NOMEM;
	for (size_t budget = 64; err == HD_E_NOMEM; budget += 64) {
		struct hd_arena short_one;
		hd_arena_init(&short_one, budget);
		err = hd_lists_period(&(struct hd_lists){ .s = &s, .report = &report, .arena = &short_one },
			hd_schedule_prologue_steps(&s), NULL);
		hd_arena_finish(&short_one);
		CHECK(report.total == 0 && (err == HD_OK || err == HD_E_NOMEM), "%zu bytes: %d", budget, err);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_breaks_exactly_its_rule, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(half_a_pair_is_none, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_no_text_says, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_cannot_be_simulated_is_no_verdict, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(memory_that_ends_is_no_verdict, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
