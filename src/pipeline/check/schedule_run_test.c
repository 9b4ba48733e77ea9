/* The execution of lists (K7, K8): which rank waits for which under each transport, and the messages. */
#include "pipeline/schedule_check.h"

#include <string.h>

#include "base/alloc.h"
#include "pipeline/check/int.h"
#include "tests/planning.h"
#include "tests/check.h"

#define EAGER HD_TRANSPORT_EAGER
#define BUFFERED HD_TRANSPORT_BUFFERED
#define MEET HD_TRANSPORT_RENDEZVOUS
#define GROUPED HD_TRANSPORT_GROUPED

/* Rank 0 sends its second tensor before it takes the first gradient; rank 1 sends that gradient before it
 * takes the tensor. */
#define CROSSED "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0 F1.0 B1.0 SG1.0>0 " \
	"RA1.1<0 F1.1 B1.1 SG1.1>0\n"
/* The same with a barrier between: no group holds both. */
#define APART "0: F0.0 SA0.0>1 F0.1 SA0.1>1 BAR0 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0 F1.0 B1.0 SG1.0>0 " \
	"BAR0 RA1.1<0 F1.1 B1.1 SG1.1>0\n"
#define AT_ONCE "0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0 RA1.1<0 F1.0 F1.1 " \
	"B1.0 SG1.0>0 B1.1 SG1.1>0\n"
#define BAR_FIRST "0: F0.0 SA0.0>1 BAR0 RG0.0<1 B0.0\n1: BAR0 RA1.0<0 F1.0 B1.0 SG1.0>0\n"
#define PLAIN "0: F0.0 SA0.0>1 RG0.0<1 B0.0\n1: RA1.0<0 F1.0 B1.0 SG1.0>0\n"
#define CIRCLE "plan: these instructions wait for each other: "

static const struct { const char *text; enum hd_transport transport; uint32_t credits; const char *rule,
	*want; } runs[] = {
	{ PLAIN, MEET, 0, NULL, "" }, { PLAIN, GROUPED, 0, NULL, "" }, { PLAIN, BUFFERED, 1, NULL, "" },
	{ CROSSED, EAGER, 0, NULL, "" }, { CROSSED, GROUPED, 0, NULL, "" }, { CROSSED, BUFFERED, 1, NULL, "" },
	{ CROSSED, MEET, 0, "K8",
	  "plan: with transport rendezvous ranks 0 and 1 wait for each other: rank 0 #3 SA0.1>1, rank 1 #3 "
	  "SG1.0>0; buffered with N = 1 is enough" },
	{ APART, EAGER, 0, NULL, "" },
	{ APART, GROUPED, 0, "K8",
	  "plan: with transport grouped ranks 0 and 1 wait for each other: rank 0 #3 SA0.1>1, rank 1 #3 "
	  "SG1.0>0; buffered with N = 1 is enough" },
	{ AT_ONCE, BUFFERED, 2, NULL, "" }, { AT_ONCE, BUFFERED, 0, NULL, "" },
	{ AT_ONCE, BUFFERED, 1, "K8",
	  "plan: with 1 buffers per channel ranks 0 and 1 wait for each other: rank 0 #3 SA0.1>1, rank 1 #1 "
	  "RA1.1<0; N = 2 is enough" },
	{ BAR_FIRST, EAGER, 0, NULL, "" },
	{ BAR_FIRST, MEET, 0, "K8",
	  "plan: with transport rendezvous ranks 0 and 1 wait for each other: rank 0 #1 SA0.0>1, rank 1 #0 "
	  "BAR0; buffered with N = 1 is enough" },
	/* an input gradient is waited for like a whole backward; reading makes none */
	{ "0: F0.0 I0.0 W0.0 F0.1 I0.1 W0.1\n1: F1.1 I1.1 W1.1 F1.0 I1.0 W1.0\n", EAGER, 0, "K7", CIRCLE "rank 0 #1 I0.0 -> rank 1 #0 F1.1 -> rank 0" },
	{ "0: LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1\n1: LD1.0 LD1.1 F1.1 B1.1 F1.0 B1.0\n", EAGER, 0, "K7",
	  CIRCLE "rank 0 #2 B0.0 -> rank 1 #2 F1.1 -> rank 0" },
	/* the shortest circle, from a rank that stands on it */
	{ "0: F0.0 B0.0 F0.1 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n2: F2.0 B2.0 F2.1 B2.1\n3: F3.1 B3.1 F3.0 B3.0\n", EAGER, 0, "K7",
	  CIRCLE "rank 2 #1 B2.0 -> rank 3 #0 F3.1 -> rank 2" },
	{ "0: F0.0 B0.0 BAR0\n1: F1.0 B1.0 BAR0\n2: F2.0 B2.0 BAR0\n3: BAR0 F3.0 B3.0\n", EAGER, 0, "K7",
	  CIRCLE "rank 0 #1 B0.0 -> rank 1 #1 B1.0 -> rank 2 #1 B2.0 -> rank 3 #0 BAR0 -> rank 0" },
	{ "0: F0.0 B0.0 BAR0\n1: F1.0 B1.0 BAR0\n2: F2.0 B2.0 BAR0\n3: F3.0 B3.0 BAR0\n4: BAR0 F4.0 B4.0\n", EAGER, 0, "K7",
	  CIRCLE "rank 0 #1 B0.0 -> rank 1 #1 B1.0 -> rank 2 #1 B2.0 -> rank 3 #1 B3.0 -> (1 more) -> rank "
	  "0" },
	/* a circle of two beside one that has ended */
	{ "0: F0.0 F1.0 B1.0 B0.0 BAR0\n1: BAR0 F2.0 B2.0\n2: BAR0\n", EAGER, 0, "K7", CIRCLE "rank 0 #2 B1.0 -> rank 1 #0 BAR0 -> rank 0" },
	/* NORM, VAL and sums of tied groups are meetings, each its own */
	{ "0: F0.0 B0.0 TIE0 NORM STEP0\n1: F1.0 B1.0 NORM TIE0 STEP1\n", EAGER, 0, "K7", CIRCLE "rank 0 #2 TIE0 -> rank 1 #2 NORM -> rank 0" },
	{ "0: PIN0@0 F0.0 B0.0 STEP!0@1 VAL@1 BAR0 REL0@0\n1: PIN1@0 F1.0 B1.0 STEP!1@1 BAR0 VAL@1 REL1@0\n", EAGER, 0, "K7",
	  CIRCLE "rank 0 #4 VAL@1 -> rank 1 #4 BAR0 -> rank 0" },
	{ "0: F1.0 B1.0 NORM TIE1 STEP1\n1: F0.0 B0.0 TIE1 NORM STEP0\n", EAGER, 0, "K7", CIRCLE "rank 0 #2 NORM -> rank 1 #2 TIE1 -> rank 0" },
	{ "0: PIN0@0 F0.0 B0.0 TIE2 TIE0 STEP!0@1 VAL@1 REL0@0\n1: PIN1@0 F1.0 B1.0 TIE0 STEP!1@1 VAL@1 REL1@0\n", EAGER, 0, NULL, "" },
};

static void who_waits_for_whom(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		const struct hd_schedule_rules rules = { runs[i].transport, runs[i].credits };
		struct hd_schedule s = hd_parsed_schedule(runs[i].text);
		struct hd_report report = { 0 };
		enum hd_err err = hd_schedule_check(&s, &rules, &report, NULL);
		CHECK(err == (runs[i].rule ? HD_E_BADPLAN : HD_OK), "case %zu: %s%s", i, runs[i].text,
			report.at[0].text);
		CHECK(!runs[i].rule || (!strcmp(report.at[0].rule, runs[i].rule) &&
			!strcmp(report.at[0].text, runs[i].want)),
			"case %zu: %s %s", i, report.at[0].rule, report.at[0].text);
	}
}

/* A rank that has one sum fewer than the other has ended, and is waited for. */
static void who_has_ended_is_waited_for(void **state)
{
	static const struct hd_schedule_rules eager = { EAGER, 0 };
	static const struct hd_stage_rule each[] = { { 1, 0 }, { 1, 0 } };
	const struct hd_schedule_job job = { .rule = each };
	struct hd_schedule s =
		hd_parsed_schedule("0: F0.0 B0.0 TIE0 STEP0 F0.1 B0.1 TIE0 STEP0\n1: F1.0 B1.0 TIE0 STEP1 "
		"F1.1 B1.1 STEP1\n");
	struct hd_report report = { 0 };

	(void)state;
	assert_int_equal(hd_schedule_check_job(&s, &job, &eager, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].rule, "K7");
	assert_string_equal(report.at[0].text, "plan: rank 0, #6 TIE0: it waits for rank 1, which has ended");
}

/* Memory ends at each place in turn: HD_E_NOMEM, and never a verdict. */
static void memory_that_ends_is_no_verdict(void **state)
{
	static const struct hd_schedule_rules meet = { MEET, 0 }, two = { BUFFERED, 2 };

	(void)state;
	struct hd_schedule wide = hd_named_schedule("1f1b", 24, 480, 1),
		crossed = hd_parsed_schedule(CROSSED);
	for (int k = 0; k < 3; k++) {
		enum hd_err err = HD_E_NOMEM;
		for (uint64_t n = 1; err == HD_E_NOMEM; n++) {
			struct hd_report report;
			hd_alloc_arm(n);
			err = hd_schedule_check(k < 2 ? &wide : &crossed, k == 1 ? &two : &meet, &report,
				NULL);
			hd_alloc_arm(0);
			CHECK(err != HD_E_NOMEM || report.total == 0, "schedule %d, request %llu: %s", k,
				(unsigned long long)n, report.at[0].text);
		}
		CHECK(err == (k == 1 ? HD_OK : HD_E_BADPLAN), "schedule %d: %d", k, err);
	}
}

/* What the walk over lists leaves for their execution, of lists without findings. */
static struct hd_lists lists_of(const struct hd_schedule *s, struct hd_arena *memory,
	struct hd_report *report)
{
	struct hd_lists l = { .s = s, .arena = memory, .report = report };
	uint32_t *sent = hd_arena_take(&arena, (size_t)s->nranks * s->nranks * 2, sizeof *sent);

	l.done = hd_arena_take(&arena, (size_t)s->nstages * s->nvns, sizeof *l.done);
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *x = &s->list[r].at[i];
			l.transfers |= hd_is_transfer(x->op);
			if (x->op == HD_INS_SA)
				hd_done_of(&l, x->stage, x->vn)->nth_a =
					sent[(r * s->nranks + x->peer) * 2]++;
			else if (x->op == HD_INS_SG)
				hd_done_of(&l, x->stage, x->vn)->nth_g =
					sent[(r * s->nranks + x->peer) * 2 + 1]++;
			else if (x->op == HD_INS_F)
				hd_done_of(&l, x->stage, x->vn)->f = (struct hd_at){ i, (uint16_t)r };
			else if (x->op == HD_INS_B || x->op == HD_INS_I)
				hd_done_of(&l, x->stage, x->vn)->b = (struct hd_at){ i, (uint16_t)r };
		}
	return l;
}

/* Behind a list lies memory of others: what stands there is not executed. */
static void a_list_ends_where_it_ends(void **state)
{
	struct hd_schedule s = hd_parsed_schedule(PLAIN);
	struct hd_ins longer[5];
	struct hd_report report = { 0 };

	(void)state;
	assert_int_equal(s.list[1].len, 4);
	memcpy(longer, s.list[1].at, 4 * sizeof *longer);
	longer[4] = (struct hd_ins){ .op = HD_INS_SA, .stage = 1, .vn = 0, .peer = 0 };
	s.list[1].at = longer;
	struct hd_lists l = lists_of(&s, &arena, &report);
	assert_int_equal(hd_lists_run(&l, &(struct hd_schedule_rules){ GROUPED, 0 }, NULL), HD_OK);
	assert_int_equal(report.total, 0);
}

/* The room that is there grows by the least that can be taken: each request in turn is the first that is too
 * large, and those after it that are smaller are not. */
static void room_that_is_too_small_is_no_verdict(void **state)
{
	static const struct { const char *text, *name; uint32_t p, m; struct hd_schedule_rules rules;
		const char *says; } cases[] = {
		/* stuck: executed again for the fewest buffers */
		{ CROSSED, NULL, 0, 0, { MEET, 0 },
		  "plan: with transport rendezvous ranks 0 and 1 wait for each other: rank 0 #3 SA0.1>1, "
		  "rank 1 #3 SG1.0>0; buffered with N = 1 is enough" },
		{ NULL, "1f1b", 24, 6, { EAGER, 0 }, NULL },                           /* more of ranks than of tensors */
		{ NULL, "1f1b", 4, 64, { EAGER, 0 }, NULL },                           /* more of tensors */
		{ NULL, "1f1b", 24, 6, { BUFFERED, 2 }, NULL },                        /* of channels */
		{ "0: F0.0 F1.0 F2.0 F3.0 F4.0 F5.0 F6.0 F7.0 F8.0 F9.0 B9.0 B8.0 B7.0 B6.0 B5.0 B4.0 B3.0 B2.0 B1.0 B0.0 TIE5 NORM\n",
		  NULL, 0, 0, { EAGER, 0 }, NULL },
		{ NULL, "data-parallel", 64, 64, { EAGER, 0 }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_schedule s = cases[i].name ? hd_named_schedule(cases[i].name, cases[i].p,
			cases[i].m, 1) : hd_parsed_schedule(cases[i].text);
		enum hd_err err = HD_E_NOMEM;
		uint64_t found = 0;
		char said[sizeof ((struct hd_report *)0)->at[0].text] = "";
		if (cases[i].rules.transport == BUFFERED)
			assert_int_equal(hd_schedule_comms(&s, &s, &arena, NULL), HD_OK);
		for (size_t bytes = 64; err == HD_E_NOMEM; bytes += 64) {
			struct hd_arena little;
			struct hd_report report = { 0 };
			struct hd_diag diag = { "" };
			struct hd_lists l = lists_of(&s, &little, &report);
			hd_arena_init(&little, bytes);
			err = hd_lists_run(&l, &cases[i].rules, &diag);
			hd_arena_finish(&little);
			found = report.total;
			snprintf(said, sizeof said, "%s", report.at[0].text);
			CHECK(!err || (err == HD_E_NOMEM && !found && diag.text[0]),
				"case %zu, %zu bytes: %d, %s", i, bytes, err, report.at[0].text);
		}
		CHECK(!err && found == (cases[i].says != NULL), "case %zu: %d", i, err);
		CHECK(!cases[i].says || !strcmp(said, cases[i].says), "case %zu: %s", i, said);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_whom),
		cmocka_unit_test(who_has_ended_is_waited_for),
		cmocka_unit_test(memory_that_ends_is_no_verdict),
		cmocka_unit_test(a_list_ends_where_it_ends),
		cmocka_unit_test(room_that_is_too_small_is_no_verdict),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
