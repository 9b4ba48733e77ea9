#include "plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include "plan/generate.h"
#include "plan/schedule_check.h"
#include "tests/check.h"

static struct hd_arena arena;

static int make_arena(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int drop_arena(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static struct hd_schedule make(const char *name, uint32_t p, uint32_t m)
{
	struct hd_schedule s = { 0 };

	assert_int_equal(hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = name, .p = p, .m = m }, &arena, NULL), HD_OK);
	return s;
}

static const char *print(const struct hd_schedule *s)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_schedule_print(s, &text);
	return text.at;
}

static void recomputation_keeps_inputs_and_computes_again_before_a_backward(void **state)
{
	static const bool first[] = { true, false };
	struct hd_schedule s = make("1f1b", 2, 2), out;

	(void)state;
	assert_int_equal(hd_schedule_recompute(&out, &s, first, &arena, NULL), HD_OK);
	assert_string_equal(print(&out), "## 1f1b p=2 m=2 stages=2\n0: Fc0.0 Fc0.1 R0.0 B0.0 R0.1 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n");
}

static void updates_come_last_and_copies_are_summed(void **state)
{
	struct hd_schedule alone = make("interleaved", 1, 1), copies = make("data-parallel", 2, 3), out;

	(void)state;
	assert_int_equal(hd_schedule_updates(&out, &alone, &arena, NULL), HD_OK);
	assert_string_equal(print(&out), "## interleaved p=1 m=1 stages=2\n0: F0.0 F1.0 B1.0 B0.0 STEP1 STEP0\n");
	assert_int_equal(hd_schedule_updates(&out, &copies, &arena, NULL), HD_OK);
	assert_string_equal(print(&out), "## data-parallel p=2 m=3 stages=1\n0: F0.0 B0.0 F0.1 B0.1 RED0 STEP0\n1: F0.2 B0.2 RED0 STEP0\n");
}

/* All three passes on every kind: accepted with two buffers a channel, and a second time nothing changes. */
static void passes_keep_schedules_legal_and_are_idempotent(void **state)
{
	static const struct hd_schedule_rules two = { HD_TRANSPORT_BUFFERED, 2 };
	static const bool all[16] = { true, true, false, true, true, true, true, true, true, true, true, true, true, true, true, true };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 4; p++) {
			struct hd_schedule s = make(k->name, p, 2 * p + 1), a, b, c, again;
			struct hd_report report;
			struct hd_diag diag = { "" };
			if (s.prologue) {
				assert_int_equal(hd_schedule_recompute(&a, &s, all, &arena, &diag), HD_E_INVAL);
				assert_int_equal(hd_schedule_updates(&a, &s, &arena, NULL), HD_E_INVAL);
				continue;
			}
			assert_int_equal(hd_schedule_recompute(&a, &s, all, &arena, &diag), HD_OK);
			assert_int_equal(hd_schedule_comms(&b, &a, &arena, &diag), HD_OK);
			assert_int_equal(hd_schedule_updates(&c, &b, &arena, &diag), HD_OK);
			CHECK(hd_schedule_check(&c, &two, &report, NULL) == HD_OK, "%s p %u: %s", k->name, p, report.at[0].text);
			assert_int_equal(hd_schedule_updates(&again, &c, &arena, &diag), HD_OK);
			assert_ptr_equal(again.list, c.list);
			assert_int_equal(hd_schedule_recompute(&again, &c, all, &arena, &diag), HD_OK);
			assert_ptr_equal(again.list, c.list);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recomputation_keeps_inputs_and_computes_again_before_a_backward),
		cmocka_unit_test(updates_come_last_and_copies_are_summed),
		cmocka_unit_test(passes_keep_schedules_legal_and_are_idempotent),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
