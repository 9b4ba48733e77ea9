#include "plan/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/planning.h"
#include "tests/check.h"

/* A plan of 4 virtual nodes from the lists of its ranks; map: even halves. */
static struct hd_plan plan_of(const char *lists, uint32_t nranks, uint32_t nstages)
{
	struct hd_plan plan = { 0 };
	struct hd_text text;
	struct hd_diag diag = { "" };

	hd_text_init(&text, &arena);
	hd_text_addf(&text, "plan 1\nstages %u\nworkers 0-%u:0\nmap %s\nowner 0-3:0\n%s", nstages, nranks - 1,
		nranks == 1 ? "0-3:0" : "0-1:0 2-3:1", lists);
	CHECK(hd_plan_parse(&plan, text.at, text.len, "t.plan", &arena, &diag) == HD_OK, "%s", diag.text);
	return plan;
}

#define ONE "LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 "
#define TWO "LD0.2 F0.2 B0.2 LD0.3 F0.3 B0.3 "
#define END "RED0 NORM STEP0\n"

static const struct hd_plan_job job1 = { .nvns = 4, .nchunks = 4, .nstages = 1 };
static const struct hd_plan_job step = { .nvns = 4, .nchunks = 4, .nstages = 1, .lockstep = true };
static const struct hd_plan_job job2 = { .nvns = 4, .nchunks = 4, .nstages = 2 };

static void legal_plans_are_accepted(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns < 20; nvns++)
		for (uint32_t nranks = 1; nranks < 9; nranks++) {
			struct hd_plan_job job = { .nvns = nvns, .nchunks = 7, .nstages = 1,
				.lockstep = (nvns + nranks) % 3 == 0 };
			uint32_t map[20];
			struct hd_plan p;
			struct hd_diag diag = { "" };
			assert_int_equal(hd_plan_data(&p, &job, nranks, NULL, &arena, NULL), HD_OK);
			CHECK(hd_plan_check(&p, &job, NULL, &diag) == HD_OK, "%s", diag.text);
			for (uint32_t v = 0; v < nvns; v++)
				map[v] = (v * 7 + 3) % nranks;
			assert_int_equal(hd_plan_of_map(&p, &job, nranks, map, &arena, NULL), HD_OK);
			CHECK(hd_plan_check(&p, &job, NULL, &diag) == HD_OK, "%s", diag.text);
			hd_arena_reset(&arena);
		}
	struct hd_plan p = plan_of("0: " ONE "RED0 NORM STEP0@1\n1: " TWO END, 2, 1);
	assert_int_equal(hd_plan_check(&p, &job1, NULL, NULL), HD_OK);
	assert_int_equal(hd_plan_check_alone(&p, NULL, NULL), HD_OK);
}

/* Every rule, provoked: what the checker must say among its findings. */
static const struct { const char *rule; const struct hd_plan_job *job; uint32_t nranks; const char *lists,
	*want; } wrong[] = {
	{ "K1", &job1, 2, "0: LD0.0 F0.0 B0.0 " END "1: " TWO END, "plan: stage 0 never runs forward for virtual node 1" },
	{ "K1", &job1, 2, "0: LD0.0 F0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END,
	  "plan: rank 0, #2 F0.0: forward of 0.0 appears twice (ranks 0 #1 and 0 #2)" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: 0.0 has no backward" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 B0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #3 B0.0: 0.0 has two backwards" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 I0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END,
	  "plan: rank 0, #3 B0.0: 0.0 has both a full and a split backward" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 B0.0 I0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END,
	  "plan: rank 0, #3 I0.0: 0.0 has both a full and a split backward" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 I0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: 0.0 has I but no W: its weights would miss a gradient" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 W0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: 0.0 has W without I" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 I0.0 I0.0 W0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #3 I0.0: 0.0 has I twice" },
	{ "K2", &job1, 2, "0: LD0.0 F0.0 I0.0 W0.0 W0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #4 W0.0: 0.0 has W twice" },
	{ "K3", &job1, 2, "0: " ONE "LD0.2 F0.2 B0.2 " END "1: LD0.3 F0.3 B0.3 " END, "plan: rank 0, #7 F0.2: virtual node 2 lives on rank 1, not here" },
	{ "K4", &job1, 2, "0: " ONE "F1.0 " END "1: " TWO END, "plan: rank 0, #6 F1.0: stage 1 does not exist (there are 1)" },
	{ "K4", &job1, 2, "0: " ONE "F0.4 " END "1: " TWO END, "plan: rank 0, #6 F0.4: virtual node 4 does not exist in this step (m = 4)" },
	{ "K4", &job1, 2, "0: " ONE "F0.-1 " END "1: " TWO END, "plan: rank 0, #6 F0.-1: virtual node -1 does not exist in this step (m = 4)" },
	{ "K4", &job2, 1, "0: " ONE TWO END, "" },
	{ "K6", &job1, 2, "0: LD0.0 B0.0 F0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #1 B0.0: backward before forward" },
	{ "K6", &job1, 2, "0: LD0.0 F0.0 W0.0 I0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #2 W0.0: W before I" },
	{ "K7", &job1, 2, "0: F0.0 LD0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #0 F0.0: it needs LD0.0 before it" },
	{ "K7", &job1, 2, "0: LD0.0 LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #1 LD0.0: LD0.0 appears twice" },
	{ "K7", &job2, 1, "0: LD0.0 LD1.0 F1.0 F0.0 B1.0 B0.0 RED0 RED1 NORM STEP0 STEP1\n", "plan: rank 0, #2 F1.0: it needs F0.0 before it" },
	{ "K7", &job2, 1, "0: LD0.0 LD1.0 F0.0 F1.0 B0.0 B1.0 RED0 RED1 NORM STEP0 STEP1\n",
	  "plan: rank 0, #4 B0.0: it needs the input gradient of 1.0 before it" },
	{ "K12", &job1, 2, "0: LD0.0 F0.0 B0.0 RED0 NORM STEP0 LD0.1 F0.1 B0.1\n1: " TWO END,
	  "plan: rank 0, #7 F0.1: virtual node 1 must use version 0 of stage 0, the list uses 1" },
	{ "K16", &job1, 2, "0: LD0.0 F0.0 B0.0 RED0 NORM STEP0 LD0.1 F0.1 B0.1\n1: " TWO END,
	  "plan: rank 0, #5 STEP0: update 1 of stage 0 happens before the gradient of virtual node 1" },
	{ "K16", &job1, 2, "0: LD0.0 F0.0 B0.0 RED0 LD0.1 F0.1 B0.1 NORM STEP0\n1: " TWO END,
	  "plan: rank 0, #3 RED0: the reduction of stage 0 happens before the gradient of virtual node 1" },
	{ "K16", &job1, 2, "0: LD0.0 F0.0 B0.0 RED0 LD0.1 F0.1 B0.1 NORM STEP0\n1: " TWO END,
	  "plan: rank 0, #6 B0.1: the reduction of stage 0 happens before the gradient of virtual node 1" },
	{ "K16", &job1, 2, "0: " ONE "RED0 NORM STEP0 STEP0\n1: " TWO END, "plan: rank 0, #9 STEP0: update 1 of stage 0 happens twice" },
	{ "K16", &job1, 2, "0: " ONE "RED0 NORM\n1: " TWO END, "plan: rank 0: update 1 of stage 0 never happens" },
	{ "K16", &job1, 2, "0: " ONE "NORM STEP0 RED0\n1: " TWO END, "plan: rank 0, #7 STEP0: update 1 of stage 0 happens before its reduction" },
	{ "K17", &job1, 2, "0: " ONE "RED0 NORM STEP0@2\n1: " TWO END, "plan: rank 0, #8 STEP0@2: version 2 is made before version 1" },
	{ "K17", &job1, 2, "0: " ONE "RED0 NORM STEP0@0\n1: " TWO END, "plan: rank 0, #8 STEP0@0: version 0 was there before the step" },
	{ "K18", &job1, 2, "0: " ONE "NORM STEP0\n1: " TWO "NORM STEP0\n", "plan: rank 0: stage 0 has no RED: its gradient is never summed" },
	{ "K18", &job1, 2, "0: " ONE "RED0 RED0 NORM STEP0\n1: " TWO "RED0 RED0 NORM STEP0\n", "plan: rank 0, #7 RED0: stage 0 is reduced twice" },
	{ "K20", &job1, 2, "0: " ONE "RED0 STEP0\n1: " TWO "RED0 STEP0\n",
	  "plan: rank 0, #7 STEP0: no NORM precedes it: NORM seals the step and makes the scale of its "
	  "update, whether the job clips or not" },
	{ "K20", &job1, 2, "0: " ONE "RED0 STEP0 NORM\n1: " TWO "RED0 STEP0 NORM\n",
	  "plan: rank 0, #7 STEP0: no NORM precedes it: NORM seals the step and makes the scale of its "
	  "update, whether the job clips or not" },
	{ "K20", &job1, 2, "0: LD0.0 F0.0 B0.0 NORM LD0.1 F0.1 B0.1 RED0 STEP0\n1: " TWO "NORM RED0 STEP0\n",
	  "plan: rank 0, #4 LD0.1: NORM happens before the gradient of virtual node 1" },
	{ "K20", &job1, 2, "0: " ONE "NORM RED0 STEP0\n1: " TWO "NORM RED0 STEP0\n", "plan: rank 0, #7 RED0: NORM happens before the reduction of stage 0" },
	{ "K20", &job1, 2, "0: " ONE "NORM RED0 STEP0\n1: " TWO "NORM RED0 STEP0\n", "plan: rank 0, #6 NORM: NORM happens before the reduction of stage 0" },
	{ "K20", &job1, 2, "0: " ONE "RED0 NORM NORM STEP0\n1: " TWO "RED0 NORM NORM STEP0\n", "plan: rank 0, #8 NORM: NORM appears twice" },
	{ "RUN", &job1, 2, "0: LD0.0 F0.0 LD0.1 F0.1 B0.0 B0.1 " END "1: " TWO END,
	  "plan: rank 0, #2 LD0.1: virtual node 1 is begun before 0 is finished; a rank keeps the "
	  "activations of 1" },
	{ "RUN", &job1, 2, "0: LD0.1 F0.1 B0.1 LD0.0 F0.0 B0.0 " END "1: " TWO END,
	  "plan: rank 0, #3 LD0.0: virtual node 0 comes after 1; a rank runs its virtual nodes in ascending "
	  "order" },
	{ "RUN", &job1, 2, "0: LD0.0 F0.0 I0.0 W0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #2 I0.0: I has no runtime in this build" },
	{ "RUN", &job1, 2, "0: LD0.0 Fc0.0 B0.0 LD0.1 F0.1 B0.1 " END "1: " TWO END, "plan: rank 0, #1 Fc0.0: flags have no runtime in this build" },
	{ "RUN", &job1, 2, "0: " ONE "RED0#1 NORM STEP0\n1: " TWO END, "plan: rank 0, #6 RED0#1: buckets and slots have no runtime in this build" },
	{ "RUN", &job1, 2, "0: " ONE "RED0 NORM STEP!0\n1: " TWO END, "plan: rank 0, #8 STEP!0: flags have no runtime in this build" },
	{ "RUN", &job1, 2, "0: " ONE "SA0.0>1 " END "1: " TWO END, "plan: rank 0, #6 SA0.0>1: SA has no runtime in this build" },
	{ "RUN", &job1, 2, "0: " ONE "RED0 BAR7 NORM STEP0\n1: " TWO END, "plan: rank 0, #7 BAR7: BAR has no runtime in this build" },
	{ "RUN", &job1, 2, "0: " ONE "PIN0@0 " END "1: " TWO END, "plan: rank 0, #6 PIN0@0: PIN has no runtime in this build" },
	{ "RUN", &step, 2, "0: " ONE END "1: " TWO END, "plan: rank 0, #1 F0.0: norms over the global batch and graphs in several intervals need all virtual nodes in lockstep" },
	{ "RUN", &job1, 2, "0: LD0.0 LD0.1 FL0 BL0 " END "1: " TWO END, "plan: rank 0, #2 FL0: only norms over the global batch and graphs in several intervals need lockstep" },
	{ "RUN", &step, 2, "0: LD0.1 LD0.0 FL0 BL0 " END "1: LD0.2 LD0.3 FL0 BL0 " END, "plan: rank 0, #1 LD0.0: virtual node 0 comes after 1" },
	{ "K7", &step, 2, "0: LD0.0 FL0 BL0 LD0.1 " END "1: LD0.2 LD0.3 FL0 BL0 " END, "plan: rank 0, #1 FL0: it needs LD0.1 before it" },
	{ "K6", &step, 2, "0: LD0.0 LD0.1 BL0 FL0 " END "1: LD0.2 LD0.3 BL0 FL0 " END, "plan: rank 0, #2 BL0: backward before forward" },
	{ "K1", &step, 2, "0: LD0.0 LD0.1 BL0 " END "1: LD0.2 LD0.3 BL0 " END, "plan: stage 0 never runs forward for virtual node 0" },
	{ "K2", &step, 2, "0: LD0.0 LD0.1 FL0 BL0 BL0 " END "1: LD0.2 LD0.3 FL0 BL0 BL0 " END, "plan: rank 0, #4 BL0: 0.0 has two backwards" },
	{ "K16", &step, 2, "0: LD0.0 LD0.1 FL0 RED0 BL0 NORM STEP0\n1: LD0.2 LD0.3 FL0 RED0 BL0 NORM STEP0\n",
	  "plan: rank 0, #3 RED0: the reduction of stage 0 happens before the gradient of virtual node 0" },
	{ "MEET", &step, 2, "0: LD0.0 LD0.1 FL0 BL0 " END "1: LD0.2 LD0.3 FL0 " END, "plan: rank 1: replicas meet in different order: rank 0 is at BL0, rank 1 at RED0" },
	{ "RUN", &step, 2, "0: " ONE END "1: LD0.2 LD0.3 FL0 BL0 " END,
	  "plan: rank 0 runs F0.0 by itself, others all virtual nodes in lockstep (FL, BL); a step is one "
	  "or the other" },
	{ "MEET", &job1, 2, "0: " ONE "RED0 STEP0\n1: " TWO END, "plan: rank 1: replicas meet in different order: rank 0 is at its end, rank 1 at NORM" },
};

static bool found(const struct hd_report *report, const char *rule, const char *want)
{
	for (uint32_t i = 0; i < report->len; i++)
		if (!strcmp(report->at[i].rule, rule) && !strncmp(report->at[i].text, want, strlen(want)))
			return true;
	return false;
}

static void every_rule_speaks_its_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct hd_plan p = plan_of(wrong[i].lists, wrong[i].nranks, wrong[i].job == &job2 &&
			*wrong[i].want ? 2 : 1);
		struct hd_report report;
		struct hd_diag diag = { "" };
		CHECK(hd_plan_check(&p, wrong[i].job, &report, &diag) == HD_E_BADPLAN, "accepted: %s",
			wrong[i].want);
		for (uint32_t f = 0; f < report.len && !found(&report, wrong[i].rule, wrong[i].want); f++)
			print_message("  %s %s\n", report.at[f].rule, report.at[f].text);
		CHECK(found(&report, wrong[i].rule, wrong[i].want), "%s never said: %s", wrong[i].rule,
			wrong[i].want);
		assert_string_equal(diag.text, report.at[0].text);
		hd_arena_reset(&arena);
	}
}

static void a_map_outside_the_plan_and_a_plan_of_another_job_are_refused(void **state)
{
	struct hd_plan p = plan_of("0: " ONE END "1: " TWO END, 2, 1);
	struct hd_report report;
	static const struct hd_plan_job others[] = {
		{ .nvns = 5, .nchunks = 4, .nstages = 1 }, { .nvns = 4, .nchunks = 5, .nstages = 1 }, { .nvns = 4, .nchunks = 4, .nstages = 2 },
	};
	static const char *const want[] = {
		"plan: it has 4 virtual nodes, the job has 5",
			"plan: it gives owners to 4 chunks, the job has 5",
			"plan: it has 1 stages, a run has 2",
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_plan_check(&p, &others[i], &report, NULL), HD_E_BADPLAN);
		CHECK(found(&report, "K4", want[i]), "%s", report.at[0].text);
	}
	p.map[2] = 2;
	p.owner[3] = 9;
	assert_int_equal(hd_plan_check(&p, &job1, &report, NULL), HD_E_BADPLAN);
	assert_true(found(&report, "K28",
		"plan: virtual node 2 is assigned to no pipeline: there is no rank 2"));
	assert_true(found(&report, "K4", "plan: chunk 3 is owned by rank 9, there are 2"));
	p.nranks = 0;
	assert_int_equal(hd_plan_check(&p, &job1, &report, NULL), HD_E_BADPLAN);
	p.nranks = HD_MAX_RANKS + 1;
	assert_int_equal(hd_plan_check(&p, &job1, &report, NULL), HD_E_BADPLAN);
}

static const struct hd_plan_job wave2 = { .nvns = 4, .nchunks = 4, .nstages = 1, .wave = 2 },
	wave3 = { .nvns = 4, .nchunks = 4, .nstages = 1, .wave = 3 };
static const struct hd_plan_job job3 = { .nvns = 4, .nchunks = 4, .nstages = 3 };

#define DEEP(v) "LD0." v " LD2." v " F0." v " F1." v " F2." v " B2." v " B1." v " B0." v " "
#define DEEP_END "RED0 RED1 RED2 NORM STEP0 STEP1 STEP2\n"
#define ALL_DEEP DEEP("0") DEEP("1") DEEP("2") DEEP("3")

/* A fault is said where it is and nothing else with it: all findings of each, in their order. */
static const struct { const struct hd_plan_job *job; uint32_t nranks; const char *lists, *want; } exact[] = {
	/* stages */
	{ &job3, 1, "0: " ALL_DEEP DEEP_END, "" },
	{ &job3, 1, "0: " DEEP("0") "LD1.1 " DEEP("1") DEEP("2") DEEP("3") DEEP_END, "plan: rank 0, #8 LD1.1: stage 1 takes nothing from the reader\n" },
	{ &job3, 1, "0: LD0.0 F0.0 F1.0 F2.0 B2.0 B1.0 B0.0 " DEEP("1") DEEP("2") DEEP("3") DEEP_END,
	  "plan: rank 0, #3 F2.0: it needs LD2.0 before it\n" },
	{ &job3, 1, "0: LD2.0 F0.0 F1.0 F2.0 B2.0 B1.0 B0.0 " DEEP("1") DEEP("2") DEEP("3") DEEP_END,
	  "plan: rank 0, #1 F0.0: it needs LD0.0 before it\n" },
	{ &job3, 2, "0: " DEEP("0") DEEP("1") DEEP_END "1: " DEEP("2") DEEP("3") "RED1 RED0 RED2 NORM STEP0 STEP1 STEP2\n",
	  "plan: rank 1: replicas meet in different order: rank 0 is at RED0, rank 1 at RED1\n" },
	/* waves */
	{ &wave2, 1, "0: LD0.0 LD0.1 F0.0 F0.1 B0.0 B0.1 LD0.2 LD0.3 F0.2 F0.3 B0.2 B0.3 " END, "" },
	{ &wave3, 1, "0: LD0.0 LD0.1 F0.0 F0.1 LD0.2 F0.2 B0.2 B0.1 B0.0 LD0.3 F0.3 B0.3 " END, "" },
	{ &wave2, 1, "0: LD0.0 LD0.1 LD0.2 F0.0 F0.1 F0.2 B0.0 B0.1 B0.2 LD0.3 F0.3 B0.3 " END,
	  "plan: rank 0, #2 LD0.2: virtual node 2 is begun before 0 is finished; a rank keeps the "
	  "activations of 2\n"
	  "plan: rank 0, #3 F0.0: virtual node 0 is begun before 2 is finished; a rank keeps the "
	  "activations of 2\n"
	  "plan: rank 0, #5 F0.2: virtual node 2 is begun before 0 is finished; a rank keeps the "
	  "activations of 2\n"
	  "plan: rank 0, #6 B0.0: virtual node 0 is begun before 2 is finished; a rank keeps the "
	  "activations of 2\n" },
	{ &wave3, 1, "0: LD0.0 LD0.2 F0.0 F0.2 B0.0 B0.2 LD0.1 F0.1 B0.1 LD0.3 F0.3 B0.3 " END, "?plan: rank 0, #1 LD0.2: virtual node 2 is begun before 0" },
	{ &wave3, 1, "0: LD0.0 LD0.1 F0.0 F0.1 B0.0 LD0.2 F0.2 B0.2 B0.1 LD0.3 F0.3 B0.3 " END, "?plan: rank 0, #5 LD0.2: virtual node 2 is begun before 0" },
	{ &wave2, 1, "0: LD0.1 F0.1 LD0.0 F0.0 B0.0 B0.1 " TWO END, "?plan: rank 0, #2 LD0.0: virtual node 0 is begun before 1 is finished" },
	/* halves of a backward: no runtime, but that is all */
	{ &job1, 1, "0: LD0.0 F0.0 I0.0 W0.0 LD0.1 F0.1 B0.1 " TWO END,
	  "plan: rank 0, #2 I0.0: I has no runtime in this build\nplan: rank 0, #3 W0.0: W has no runtime "
	  "in this build\n" },
	{ &job1, 1, "0: LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 BAR7 " TWO END, "plan: rank 0, #6 BAR7: BAR has no runtime in this build\n" },
	/* after what was reduced and normed */
	{ &job1, 1, "0: LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 LD0.2 F0.2 B0.2 RED0 NORM LD0.3 F0.3 B0.3 STEP0\n",
	  "plan: rank 0, #9 RED0: the reduction of stage 0 happens before the gradient of virtual node 3\n"
	  "plan: rank 0, #11 LD0.3: the reduction of stage 0 happens before the gradient of virtual node 3\n"
	  "plan: rank 0, #12 F0.3: the reduction of stage 0 happens before the gradient of virtual node 3\n"
	  "plan: rank 0, #13 B0.3: the reduction of stage 0 happens before the gradient of virtual node "
	  "3\n" },
	{ &job1, 2, "0: LD0.0 F0.0 B0.0 " END "1: LD0.2 F0.2 B0.2 " END,
	  "plan: rank 0, #3 RED0: the reduction of stage 0 happens before the gradient of virtual node 1\n"
	  "plan: rank 0, #5 STEP0: update 1 of stage 0 happens before the gradient of virtual node 1\n"
	  "plan: rank 1, #3 RED0: the reduction of stage 0 happens before the gradient of virtual node 3\n"
	  "plan: rank 1, #5 STEP0: update 1 of stage 0 happens before the gradient of virtual node 3\n"
	  "plan: stage 0 never runs forward for virtual node 1\nplan: 0.1 has no backward\n"
	  "plan: stage 0 never runs forward for virtual node 3\nplan: 0.3 has no backward\n" },
	/* the wrong kind of step: F and B, FL and BL are all named */
	{ &step, 1, "0: LD0.0 LD0.1 LD0.2 LD0.3 F0.0 B0.0 FL0 " END, "?plan: rank 0, #5 B0.0: norms over the global batch and graphs in several intervals need all virtual nodes in lockstep" },
	{ &job1, 2, "0: " ONE "BL0 " END "1: " TWO "BL0 " END, "?plan: rank 0, #6 BL0: only norms over the global batch and graphs in several intervals need lockstep" },
	{ &step, 2, "0: LD0.0 B0.0 " END "1: LD0.2 LD0.3 FL0 BL0 " END, "?plan: rank 0 runs B0.0 by itself, others all virtual nodes in lockstep" },
	{ &job1, 2, "0: " ONE END "1: " TWO "\n", "?plan: rank 1: replicas meet in different order: rank 0 is at RED0, rank 1 at its end" },
};

static void a_fault_is_said_where_it_is_and_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
		struct hd_plan p = plan_of(exact[i].lists, exact[i].nranks, exact[i].job->nstages);
		struct hd_report report;
		struct hd_text text;
		bool any = exact[i].want[0] == '?';       /* one among others */
		enum hd_err err = hd_plan_check(&p, exact[i].job, &report, NULL);
		hd_text_init(&text, &arena);
		hd_text_add(&text, "");
		for (uint32_t f = 0; f < report.len; f++)
			hd_text_addf(&text, "%s\n", report.at[f].text);
		CHECK(err == (*exact[i].want ? HD_E_BADPLAN : HD_OK), "case %zu: %s", i, text.at);
		if (any)
			CHECK(strstr(text.at, exact[i].want + 1), "case %zu: wanted %s\n%s", i,
				exact[i].want + 1, text.at);
		else
			CHECK(!strcmp(text.len ? text.at : "", exact[i].want),
				"case %zu: wanted\n%s\ngot\n%s", i, exact[i].want, text.at);
		hd_arena_reset(&arena);
	}
}

static void a_fragment_is_of_the_instruction_and_five_around_it(void **state)
{
	static const struct { uint32_t at; const char *want; } cases[] = {
		{ 0, "rank 0 from #0: [LD0.0] F0.0 B0.0 LD0.1 F0.1 B0.1" },
		{ 6, "rank 0 from #1: F0.0 B0.0 LD0.1 F0.1 B0.1 [LD0.2] F0.2 B0.2 LD0.3 F0.3 B0.3" },
		{ 13, "rank 0 from #8: B0.2 LD0.3 F0.3 B0.3 RED0 [NORM] STEP0" },
	};
	struct hd_plan p = plan_of("0: " ONE TWO END, 1, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char out[256];
		hd_fragment_draw(out, sizeof out, &p.list[0], 0, cases[i].at);
		assert_string_equal(out, cases[i].want);
	}
	hd_arena_reset(&arena);
}

/* Of a report that is full the last finding keeps its own fragment. */
static void a_full_report_keeps_its_fragments(void **state)
{
	struct hd_plan p =
		plan_of("0: LD0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 "
		"F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 F0.0 "
		"F0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 " TWO END, 1, 1);
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_plan_check(&p, &job1, &report, NULL), HD_E_BADPLAN);
	assert_int_equal(report.len, HD_MAX_FINDINGS);
	assert_true(report.total > HD_MAX_FINDINGS);
	for (uint32_t f = 0; f < report.len; f++) {
		char from[32];
		uint32_t at = f + 2;                              /* of the finding, as its text says */
		snprintf(from, sizeof from, "rank 0 from #%u: ", at > 5 ? at - 5 : 0);
		CHECK(!strncmp(report.at[f].fragment[0], from, strlen(from)), "finding %u: %s with %s", f,
			report.at[f].text, report.at[f].fragment[0]);
	}
	hd_arena_reset(&arena);
}

static void a_plan_of_an_impossible_shape_is_refused(void **state)
{
	static const struct { uint32_t nranks, nvns, nstages; const char *want; } cases[] = {
		{ 0, 4, 1, "plan: it is for 0 ranks; 1 to 4096 are possible" },
		{ HD_MAX_RANKS + 1, 4, 1, "plan: it is for 4097 ranks; 1 to 4096 are possible" },
		{ 2, 0, 1, "plan: it has 0 virtual nodes, the job has 0" },
		{ 2, HD_MAX_VNS + 1, 1, "plan: it has 65537 virtual nodes, the job has 65537" },
		{ 2, 4, 0, "plan: it has 0 stages, a run has 0" },
	};
	struct hd_plan p = plan_of("0: " ONE END "1: " TWO END, 2, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_plan bad = p;
		struct hd_plan_job job = { .nvns = cases[i].nvns, .nchunks = 4, .nstages = cases[i].nstages };
		struct hd_report report;
		bad.nranks = cases[i].nranks;
		bad.nvns = cases[i].nvns;
		bad.nstages = cases[i].nstages;
		/* the lists of such a plan are not looked at */
		bad.list = NULL;
		assert_int_equal(hd_plan_check(&bad, &job, &report, NULL), HD_E_BADPLAN);
		CHECK(report.total == 1 && found(&report, "K4", cases[i].want), "case %zu: %s", i,
			report.at[0].text);
	}
	struct hd_report report;
	p.map[1] = UINT32_MAX;
	assert_int_equal(hd_plan_check(&p, &job1, &report, NULL), HD_E_BADPLAN);
	assert_true(found(&report, "K28",
		"plan: virtual node 1 is assigned to no pipeline: there is no rank 4294967295"));
	hd_arena_reset(&arena);
}

/* Each request for memory fails in turn: it is said, and nothing is found in a plan that was not read. */
static void without_memory_a_plan_is_neither_right_nor_wrong(void **state)
{
	struct hd_plan_job job = { .nvns = 4, .nchunks = 4, .nstages = 1 };
	struct hd_plan p;
	enum hd_err err = HD_E_NOMEM;
	uint64_t n = 0;

	(void)state;
	assert_int_equal(hd_plan_data(&p, &job, HD_MAX_RANKS, NULL, &arena, NULL), HD_OK);
	/* more than fits into what the arena took before */
	p.nstages = job.nstages = 1000;
	while (err == HD_E_NOMEM) {
		struct hd_report report;
		hd_alloc_arm(++n);
		err = hd_plan_check(&p, &job, &report, NULL);
		hd_alloc_arm(0);
		CHECK(err == (report.total ? HD_E_BADPLAN : HD_E_NOMEM), "request %llu",
			(unsigned long long)n);
	}
	assert_int_equal(err, HD_E_BADPLAN);
	assert_true(n > 2);
	hd_arena_reset(&arena);
}

static void at_most_twenty_findings_are_listed_and_all_counted(void **state)
{
	struct hd_plan_job job = { .nvns = 40, .nchunks = 4, .nstages = 1 };
	struct hd_plan p;
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_plan_data(&p, &job, 2, NULL, &arena, NULL), HD_OK);
	p.list[0].len = 0;
	assert_int_equal(hd_plan_check(&p, &job, &report, NULL), HD_E_BADPLAN);
	assert_int_equal(report.len, HD_MAX_FINDINGS);
	assert_int_equal(report.total, 2 + 40 + 1);          /* RED, STEP; F and B of 20; the meeting */
	job.nvns = 4;
	assert_int_equal(hd_plan_data(&p, &job, 2, NULL, &arena, NULL), HD_OK);
	p.list[0].len = 0;
	assert_int_equal(hd_plan_check(&p, &job, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[report.len - 1].rule, "MEET");     /* ranks by themselves first */
}

/* The independent judge of mutants: a machine that runs the lists as a runtime would, with
 * ranks waiting at RED and NORM, and says whether every virtual node was computed once, from
 * loaded samples, in ascending order, and everything was reduced, normed and updated. */
enum { MAX_RANKS = 4, MAX_VN = 16 };
struct machine {
	uint32_t pc[MAX_RANKS], grads[MAX_VN], nred, nnorm, nstep[MAX_RANKS];
	uint32_t loaded[MAX_RANKS], last[MAX_RANKS], active[MAX_RANKS];   /* virtual node + 1; 0: none */
	uint32_t nloaded, nfl;            /* in lockstep: virtual nodes loaded, forwards of all */
	bool bad;
};

static void run_one(struct machine *m, const struct hd_plan *p, bool lockstep, uint32_t rank,
	const struct hd_ins *ins)
{
	bool is_vn = ins->op == HD_INS_LD || ins->op == HD_INS_F || ins->op == HD_INS_B;

	if (ins->stage != 0 || ins->flags || (is_vn && (ins->vn >= p->nvns || p->map[ins->vn] != rank ||
		m->nred))) {
		m->bad = true;
		return;
	}
	if (lockstep && ins->op != HD_INS_STEP) {
		m->bad |= ins->op != HD_INS_LD || m->nfl || ins->vn < m->last[rank];
		m->last[rank] = ins->vn + 1;
		m->nloaded++;
		return;
	}
	switch (ins->op) {
	case HD_INS_LD:
		m->bad |= m->loaded[rank] != 0 || (m->last[rank] && ins->vn < m->last[rank]);
		m->loaded[rank] = ins->vn + 1;
		m->last[rank] = ins->vn + 1;
		break;
	case HD_INS_F:
		m->bad |= m->loaded[rank] != ins->vn + 1 || m->active[rank];
		m->active[rank] = ins->vn + 1;
		break;
	case HD_INS_B:
		m->bad |= m->active[rank] != ins->vn + 1;
		m->active[rank] = m->loaded[rank] = 0;
		m->grads[ins->vn]++;
		break;
	case HD_INS_STEP:
		m->bad |= m->nnorm != 1 || (ins->ver != HD_VER_RULE && ins->ver != 1);
		m->nstep[rank]++;
		break;
	default:
		m->bad = true;
	}
}

static bool meets(const struct hd_ins *ins)
{
	return ins->op == HD_INS_RED || ins->op == HD_INS_NORM || ins->op == HD_INS_FL ||
		ins->op == HD_INS_BL;
}

/* All ranks stand at the same kind of meeting, and the sums it needs are there. */
static bool meet(struct machine *m, const struct hd_plan *p, bool lockstep)
{
	const struct hd_ins *first = &p->list[0].at[m->pc[0]];

	for (uint32_t r = 0; r < p->nranks; r++) {
		if (m->pc[r] >= p->list[r].len)
			return false;
		const struct hd_ins *ins = &p->list[r].at[m->pc[r]++];
		if (ins->op != first->op || ins->stage != 0 || ins->flags)
			return false;
	}
	if (first->op == HD_INS_FL)
		return lockstep && m->nfl++ == 0 && m->nloaded == p->nvns;
	for (uint32_t v = 0; v < p->nvns && first->op == HD_INS_BL; v++)
		m->grads[v]++;
	if (first->op == HD_INS_BL)
		return lockstep && m->nfl == 1;
	for (uint32_t v = 0; v < p->nvns; v++)
		if (m->grads[v] != 1)
			return false;
	if (first->op == HD_INS_RED)
		return m->nred++ == 0 && m->nnorm == 0;
	return m->nnorm++ == 0 && m->nred == 1;
}

static bool runs_right(const struct hd_plan *p, bool lockstep)
{
	struct machine m = { 0 };

	for (;;) {
		uint32_t nended = 0;
		for (uint32_t r = 0; r < p->nranks; r++) {
			for (; m.pc[r] < p->list[r].len && !meets(&p->list[r].at[m.pc[r]]) && !m.bad;
				m.pc[r]++)
				run_one(&m, p, lockstep, r, &p->list[r].at[m.pc[r]]);
			nended += m.pc[r] == p->list[r].len;
		}
		if (m.bad)
			return false;
		if (nended == p->nranks)
			break;
		if (!meet(&m, p, lockstep))
			return false;
	}
	for (uint32_t r = 0; r < p->nranks; r++)
		if (m.nstep[r] != 1)
			return false;
	for (uint32_t v = 0; v < p->nvns; v++)
		if (m.grads[v] != 1)
			return false;
	return m.nred == 1 && m.nnorm == 1;
}

static void copy_list(struct hd_ilist *to, const struct hd_ilist *from)
{
	*to = (struct hd_ilist){ .at = hd_arena_take(&arena, (size_t)from->len + 1, sizeof *to->at),
		.len = from->len, .cap = from->len + 1 };
	memcpy(to->at, from->at, from->len * sizeof *to->at);
}

static void mutate(struct hd_plan *p)
{
	struct hd_ilist *list = &p->list[(uint32_t)random() % p->nranks];
	uint32_t i = (uint32_t)random() % list->len, j = (uint32_t)random() % list->len;
	struct hd_ins kept = list->at[i];

	switch (random() % 7) {
	case 0:                                  /* drop */
		memmove(&list->at[i], &list->at[i + 1], (--list->len - i) * sizeof kept);
		break;
	case 1:                                  /* duplicate somewhere */
		memmove(&list->at[j + 1], &list->at[j], (list->len++ - j) * sizeof kept);
		list->at[j] = kept;
		break;
	case 2:                                  /* swap */
		list->at[i] = list->at[j];
		list->at[j] = kept;
		break;
	case 3: list->at[i].vn = (uint32_t)random() % (p->nvns + 1); break;
	case 4: list->at[i].stage = (uint16_t)(random() % 2); break;
	case 5: list->at[i].op = (uint8_t)(random() % (HD_INS_END + 1)); break;
	default: p->map[(uint32_t)random() % p->nvns] = (uint32_t)random() % p->nranks; break;
	}
}

/* What is refused without the job is refused with it for the same reason; what only the job refuses is what
 * only it can know: activations that a rank may keep. */
static void judge_like_alone(const struct hd_plan *p, const struct hd_plan_job *job, enum hd_err err,
	const struct hd_diag *why)
{
	struct hd_diag alone = { "" };

	if (hd_plan_check_alone(p, NULL, &alone))
		CHECK(err && (!strcmp(alone.text, why->text) ||
			strstr(why->text, "a rank keeps the activations of") ||
			strstr(why->text, job->lockstep ? "need all virtual nodes in lockstep" :
			"need lockstep; this job has none")),
			"alone: %s\nwith the job: %s", alone.text, err ? why->text : "accepted");
	else
		CHECK(!err || strstr(why->text, "a rank keeps the activations of") ||
			strstr(why->text, "lockstep"),
			"alone: accepted\nwith the job: %s", why->text);
}

/* The verdict of a changed plan and that of the machine are the same. */
static bool judge(const struct hd_plan *p, const struct hd_plan_job *job)
{
	struct hd_diag diag = { "" };
	bool verifies = true;                    /* unused fields: refused by the format itself */

	for (uint32_t r = 0; r < p->nranks; r++)
		for (uint32_t i = 0; i < p->list[r].len; i++)
			verifies = verifies && hd_ins_verify(&p->list[r].at[i], NULL) == HD_OK;
	enum hd_err err = hd_plan_check(p, job, NULL, &diag);
	if ((err == HD_OK) != (verifies && runs_right(p, job->lockstep))) {
		struct hd_text text;
		hd_text_init(&text, &arena);
		assert_int_equal(hd_plan_print(p, &text), HD_OK);
		fail_msg("%s\n%s", err ? diag.text : "accepted", text.at);
	}
	judge_like_alone(p, job, err, &diag);
	return err == HD_OK;
}

static void put(struct hd_ilist *list, uint32_t at, struct hd_ins ins)
{
	memmove(&list->at[at + 1], &list->at[at], (list->len++ - at) * sizeof ins);
	list->at[at] = ins;
}

static struct hd_ins cut(struct hd_ilist *list, uint32_t at)
{
	struct hd_ins ins = list->at[at];

	memmove(&list->at[at], &list->at[at + 1], (--list->len - at) * sizeof ins);
	return ins;
}

/* Instruction `at` of `rank` dropped, and put before every place of every rank, there alone or twice, or
 * exchanged with what stands there. */
static uint32_t change_one(struct hd_plan *p, const struct hd_plan_job *job, uint32_t rank, uint32_t at)
{
	struct hd_ilist *from = &p->list[rank];
	struct hd_ins ins = from->at[at];
	uint32_t naccepted = 0;

	for (uint32_t r = 0; r < p->nranks; r++)
		for (uint32_t i = 0; i <= p->list[r].len; i++) {
			put(&p->list[r], i, ins);
			naccepted += judge(p, job);
			(void)cut(&p->list[r], i);
			if (i == p->list[r].len)
				continue;
			from->at[at] = p->list[r].at[i];
			p->list[r].at[i] = ins;
			naccepted += judge(p, job);
			p->list[r].at[i] = from->at[at];
			from->at[at] = ins;
		}
	(void)cut(from, at);
	naccepted += judge(p, job);
	for (uint32_t r = 0; r < p->nranks; r++)
		for (uint32_t i = 0; i <= p->list[r].len; i++) {
			put(&p->list[r], i, ins);
			naccepted += judge(p, job);
			(void)cut(&p->list[r], i);
		}
	put(from, at, ins);
	return naccepted;
}

static void every_drop_copy_exchange_and_move_is_refused_or_runs_right(void **state)
{
	uint32_t naccepted = 0;

	(void)state;
	for (uint32_t nvns = 1; nvns < 5; nvns++)
		for (uint32_t nranks = 1; nranks < 4; nranks++)
			for (int lockstep = 0; lockstep < 2; lockstep++) {
				struct hd_plan_job job = { .nvns = nvns, .nchunks = 3, .nstages = 1,
					.lockstep = lockstep };
				struct hd_plan p;
				assert_int_equal(hd_plan_data(&p, &job, nranks, NULL, &arena, NULL), HD_OK);
				assert_true(judge(&p, &job));
				for (uint32_t r = 0; r < nranks; r++) {
					struct hd_ilist whole = p.list[r];
					copy_list(&p.list[r], &whole);
				}
				for (uint32_t r = 0; r < nranks; r++)
					for (uint32_t i = 0; i < p.list[r].len; i++)
						naccepted += change_one(&p, &job, r, i);
				hd_arena_reset(&arena);
			}
	assert_true(naccepted > 500);            /* those that change nothing, at least */
}

static void mutants_are_refused_exactly_when_they_would_run_wrong(void **state)
{
	uint32_t naccepted = 0, nrefused = 0;

	(void)state;
	srandom(3);
	for (int round = 0; round < 40000; round++) {
		struct hd_plan_job job = { .nvns = 1 + (uint32_t)random() % 7, .nchunks = 3, .nstages = 1,
			.lockstep = random() % 4 == 0 };
		uint32_t nranks = 1 + (uint32_t)random() % MAX_RANKS;
		struct hd_plan p;
		assert_int_equal(hd_plan_data(&p, &job, nranks, NULL, &arena, NULL), HD_OK);
		assert_true(runs_right(&p, job.lockstep));
		for (uint32_t r = 0; r < nranks; r++) {
			struct hd_ilist whole = p.list[r];
			copy_list(&p.list[r], &whole);
		}
		mutate(&p);
		bool accepted = judge(&p, &job);
		naccepted += accepted;
		nrefused += !accepted;
		hd_arena_reset(&arena);
	}
	print_message("%u mutants refused, %u harmless\n", nrefused, naccepted);
	assert_true(nrefused > 20000 && naccepted > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(legal_plans_are_accepted),
		cmocka_unit_test(every_rule_speaks_its_sentence),
		cmocka_unit_test(a_map_outside_the_plan_and_a_plan_of_another_job_are_refused),
		cmocka_unit_test(a_fault_is_said_where_it_is_and_alone),
		cmocka_unit_test(a_fragment_is_of_the_instruction_and_five_around_it),
		cmocka_unit_test(a_full_report_keeps_its_fragments),
		cmocka_unit_test(a_plan_of_an_impossible_shape_is_refused),
		cmocka_unit_test(without_memory_a_plan_is_neither_right_nor_wrong),
		cmocka_unit_test(at_most_twenty_findings_are_listed_and_all_counted),
		cmocka_unit_test(every_drop_copy_exchange_and_move_is_refused_or_runs_right),
		cmocka_unit_test(mutants_are_refused_exactly_when_they_would_run_wrong),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
