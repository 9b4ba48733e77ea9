/* The checker of schedules: the outcomes of blocking transfers that the plan documents list, generated
 * schedules, and mutants of legal ones. Each rule by a text that breaks it: schedule_rules_test.c. */
#include "pipeline/schedule_check.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/passes.h"
#include "pipeline/simulate.h"
#include "tests/planning.h"
#include "tests/check.h"

static const struct hd_schedule_rules eager = { HD_TRANSPORT_EAGER, 0 };

/* "blocking": rendezvous in program order, a receive just before, a send just after its instruction. */
static void blocking_transfers_end_or_not_as_documented(void **state)
{
	static const struct hd_schedule_rules blocking = { HD_TRANSPORT_RENDEZVOUS, 0 };
	const char *text = hd_shared_text("schedules.txt");

	(void)state;
	if (!text) {
		SKIP("data/schedules.txt is neither in HEDDLE_SHARED nor in tests");
	}
	struct hd_schedules all = hd_parsed_schedules(text);
	for (uint32_t i = 0; i < all.len; i++) {
		struct hd_report report;
		enum hd_err err = hd_schedule_check(&all.at[i], &blocking, &report, NULL);
		bool ok = strstr(all.at[i].heading, "blocking=ok");
		CHECK((err == HD_OK) == ok, "%s: %s", all.at[i].heading,
			report.total ? report.at[0].text : "ends");
		CHECK(ok || !strcmp(report.at[0].rule, "K8"), "%s", report.at[0].text);
	}
}

static bool possible(const struct hd_schedule_kind *k, uint32_t p, uint32_t m)
{
	return !(!strcmp(k->limits, "m >= 2p") && m < 2 * p) && !(!strcmp(k->limits, "m >= p") && m < p);
}

/* As skeletons under unbounded buffers, completed with two a channel. Interleaved groups are larger than
 * p where p does not divide m: what the last rank sends to the first waits for the rest of the group. */
static void generated_schedules_are_accepted(void **state)
{
	static const struct hd_schedule_job job = { .whole = true, .slots = 2 };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 12; p += SANITIZED && p > 3 ? 3 : 1)
			for (uint32_t m = 1; m <= 48; m += SANITIZED ? 13 : p > 4 ? 1 + m % 4 : 1)
				for (uint32_t v = k->vmin; v <= k->vmax && v <= 4 && possible(k, p, m); v++) {
					struct hd_report report;
					struct hd_schedule s = hd_named_schedule(k->name, p, m, v), whole;
					enum hd_err err = hd_schedule_check(&s, &eager, &report, NULL);
					CHECK(err == HD_OK, "%s p %u m %u v %u: %s", k->name, p, m, v,
						report.at[0].text);
					const struct hd_schedule_rules few = { HD_TRANSPORT_BUFFERED, v > 1 &&
						m % p ? p + 1 : 2 };
					assert_int_equal(hd_schedule_complete(&whole, &s,
						&(struct hd_pass_options){ .job = &job }, &arena, NULL),
						HD_OK);
					err = hd_schedule_check_job(&whole, &job, &few, &report, NULL);
					CHECK(err == HD_OK, "%s p %u m %u v %u, whole: %s", k->name, p, m, v,
						report.at[0].text);
					hd_arena_reset(&arena);
				}
}

/* Rank 1 takes two tensors before it uses the first: one buffer is not enough. */
static void enough_buffers_are_enough_and_one_less_is_not(void **state)
{
	struct hd_schedule s = hd_parsed_schedule("0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n"
		"1: RA1.0<0 RA1.1<0 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0\n");
	struct hd_schedule_rules rules = { HD_TRANSPORT_BUFFERED, 1 };
	struct hd_report report;

	(void)state;
	assert_int_equal(hd_schedule_check(&s, &rules, &report, NULL), HD_E_BADPLAN);
	assert_string_equal(report.at[0].rule, "K8");
	assert_string_equal(report.at[0].text,
		"plan: with 1 buffers per channel ranks 0 and 1 wait for each other: rank 0 #3 SA0.1>1, "
		"rank 1 #1 RA1.1<0; N = 2 is enough");
	rules.credits = 2;
	assert_int_equal(hd_schedule_check(&s, &rules, &report, NULL), HD_OK);
	rules.credits = 0;                        /* HD_CREDITS */
	assert_int_equal(hd_schedule_check(&s, &rules, &report, NULL), HD_OK);
}

/* Where p divides m one credit is enough, if it comes back each time. (interleaved, p = 2, m = 5 needs
 * two.) */
static void generated_schedules_end_with_one_credit(void **state)
{
	static const struct hd_schedule_rules one = { HD_TRANSPORT_BUFFERED, 1 };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 6; p++) {
			struct hd_schedule s = hd_named_schedule(k->name, p, 3 * p, 0);
			struct hd_report report;
			enum hd_err err = hd_schedule_check(&s, &one, &report, NULL);
			CHECK(err == HD_OK, "%s p %u: %s", k->name, p, report.at[0].text);
		}
	hd_arena_reset(&arena);
}

/* A transport that waits less ends wherever one that waits more ends. */
static void transports_that_wait_less_end_more_often(void **state)
{
	static const struct hd_schedule_rules rules[] = { { HD_TRANSPORT_RENDEZVOUS, 0 },
		{ HD_TRANSPORT_GROUPED, 0 }, { HD_TRANSPORT_EAGER, 0 } };
	uint32_t ends[3] = { 0 };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 4; p++)
			for (uint32_t m = 2 * p; m <= 3 * p; m++) {
				struct hd_schedule s = hd_named_schedule(k->name, p, m, 0);
				bool before = false;
				for (int t = 0; t < 3; t++) {
					bool now = hd_schedule_check(&s, &rules[t], NULL, NULL) == HD_OK;
					CHECK(now || !before, "%s p %u m %u: %s", k->name, p, m,
						hd_transport_names[rules[t].transport]);
					before = now;
					ends[t] += now;
				}
			}
	assert_true(ends[0] < ends[1] && ends[1] < ends[2]);
	hd_arena_reset(&arena);
}

/* Rank 0 stands at the gradient that stage 1 will make while rank 1 stands at the activation that it has
 * made: one stage, one virtual node, two tensors. */
static void a_gradient_does_not_meet_the_activation_of_its_maker(void **state)
{
	static const char text[] = "## naive p=3 m=2 stages=3\n0: F0.0 B0.0 F0.1 B0.1\n"
		"1: F1.0 B1.0 F1.1 B1.1\n2: F2.0 B2.0 F2.1 B2.1\n";
	struct hd_schedules all = hd_parsed_schedules(text);
	struct hd_schedule whole;

	(void)state;
	assert_int_equal(all.len, 1);
	assert_int_equal(hd_schedule_comms(&whole, &all.at[0], &arena, NULL), HD_OK);
	for (int t = 0; t < HD_NTRANSPORTS; t++) {
		const struct hd_schedule_rules rules = { (enum hd_transport)t, 1 };
		struct hd_report report;
		CHECK(hd_schedule_check(&whole, &rules, &report, NULL) == HD_OK, "%s: %s",
			hd_transport_names[t], report.total ? report.at[0].text : "");
	}
	hd_arena_reset(&arena);
}

static void transfers_are_added_once_around_what_needs_them(void **state)
{
	struct hd_schedule s = hd_named_schedule("1f1b", 2, 2, 1), whole, again;
	struct hd_text text;

	(void)state;
	assert_int_equal(hd_schedule_comms(&whole, &s, &arena, NULL), HD_OK);
	hd_text_init(&text, &arena);
	hd_schedule_print(&whole, &text);
	assert_string_equal(text.at,
		"## 1f1b p=2 m=2 stages=2\n0: LD0.0 F0.0 SA0.0>1 LD0.1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 "
		"B0.1\n"
		"1: LD1.0 RA1.0<0 F1.0 B1.0 SG1.0>0 LD1.1 RA1.1<0 F1.1 B1.1 SG1.1>0\n");
	assert_int_equal(hd_schedule_comms(&again, &whole, &arena, NULL), HD_OK);
	assert_ptr_equal(again.list, whole.list);
}

/* ---- mutants */

/* Whether every (stage, virtual node) of the original runs once each way, counted without the checker. */
static bool complete(const struct hd_schedule *s, uint32_t stages, uint32_t vns)
{
	uint8_t (*n)[4] = hd_arena_take(&arena, (size_t)stages * vns, sizeof *n);

	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *x = &s->list[r].at[i];
			if (x->stage >= stages || x->vn >= vns || x->op < HD_INS_F || x->op > HD_INS_W)
				return false;
			n[x->stage * vns + x->vn][x->op - HD_INS_F]++;
		}
	for (uint32_t k = 0; k < stages * vns; k++)
		if (n[k][0] != 1 || !((n[k][1] == 1 && !n[k][2] && !n[k][3]) ||
			(!n[k][1] && n[k][2] == 1 && n[k][3] == 1)))
			return false;
	return true;
}

static uint32_t state_of;
static uint32_t draw(uint32_t n)
{
	state_of = state_of * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(state_of >> 4) * n) >> 28);
}

/* One change: swapped neighbours, swapped at a distance, dropped, doubled, another number, op, flag or
 * rank. */
static void mutate(struct hd_schedule *s)
{
	struct hd_ilist *list = &s->list[draw(s->nranks)], *other = &s->list[draw(s->nranks)];
	uint32_t a = draw(list->len), b = draw(list->len);
	struct hd_ins kept = list->at[a];

	switch (draw(8)) {
	case 0: b = a ? a - 1 : 0; /* fallthrough */
	case 1: list->at[a] = list->at[b]; list->at[b] = kept; break;
	case 2: memmove(&list->at[a], &list->at[a + 1], (list->len - a - 1) * sizeof kept); list->len--;
		break;
	case 3: list->at[b] = kept; break;
	case 4: list->at[a].vn = draw(s->nvns + 1); break;
	case 5: list->at[a].stage = (uint16_t)draw(s->nstages + 1); break;
	case 6: list->at[a].op = (uint8_t)(HD_INS_F + draw(4)); break;
	default: list->at[a] = other->at[b % other->len]; break;
	}
}

static void mutants_are_refused_or_harmless(void **state)
{
	static const char *const names[] = { "1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v",
		"v-half", "v-min", "dualpipev" };
	const char *asked = getenv("HD_MUTANTS");
	uint32_t n = asked ? (uint32_t)strtoul(asked, NULL, 10) : DRAWS(5000), refused = 0;

	(void)state;
	for (uint32_t k = 0; k < n; k++) {
		state_of = k * 2654435761u + 12345u;
		uint32_t p = 2 + draw(4);
		struct hd_schedule s = hd_named_schedule(names[draw(9)], p, 2 * p + draw(3), 0);
		struct hd_report report;
		struct hd_diag diag = { "" };
		struct hd_sim sim;
		for (uint32_t i = 1 + draw(2); i > 0; i--)
			mutate(&s);
		enum hd_err err = hd_schedule_check(&s, &eager, &report, &diag);
		refused += err != HD_OK;
		if (err) {
			CHECK(err == HD_E_BADPLAN && report.total && diag.text[0], "mutant %u", k);
		} else {
			CHECK(complete(&s, s.nstages, s.nvns), "mutant %u is accepted and not complete", k);
			CHECK(hd_simulate(&sim, &s, &(struct hd_sim_ask){ .costs = HD_UNIT_COSTS }, &arena,
				&diag) == HD_OK, "mutant %u: %s", k, diag.text);
		}
		hd_arena_reset(&arena);
	}
	assert_true(refused > n / 4 && refused < n);
	print_message("%u mutants: %u refused, %u harmless\n", n, refused, n - refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocking_transfers_end_or_not_as_documented),
		cmocka_unit_test(generated_schedules_are_accepted),
		cmocka_unit_test(enough_buffers_are_enough_and_one_less_is_not),
		cmocka_unit_test(generated_schedules_end_with_one_credit),
		cmocka_unit_test(transports_that_wait_less_end_more_often),
		cmocka_unit_test(a_gradient_does_not_meet_the_activation_of_its_maker),
		cmocka_unit_test(transfers_are_added_once_around_what_needs_them),
		cmocka_unit_test(mutants_are_refused_or_harmless),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
