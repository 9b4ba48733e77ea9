#include "driver/spent.h"

#include <string.h>

#include "plan/ins.h"
#include "tests/check.h"

static const struct hd_vrank rank[] = { { 4, 2 }, { 7, 2 }, { 4, 2 } };
static struct hd_view view = { .epoch = 3, .nmembers = 2, .member = { 4, 7 }, .nranks = 3 };

/* Worker 4 has ranks 0 and 2, worker 7 rank 1; each says that F and STEP took so long in all. */
static void says(struct hd_spent_said *said, uint32_t worker, uint32_t epoch, uint64_t step, uint64_t ns)
{
	struct hd_spent_kind kind[] = { { 0, 0, HD_INS_F, step, ns, 0 },
		{ 0, 0, HD_INS_STEP, step, 5 * ns, 0 },
		{ 2, 1, HD_INS_F, step, 2 * ns, 0 }, { 2, 1, HD_INS_W, step, ns, 0 } };
	struct hd_msg_spent msg = { .step = step, .nspent = 4, .spent = kind };

	if (worker == 7) {
		kind[0].rank = kind[1].rank = 1;
		msg.nspent = 2;
	}
	hd_spent_take(said, worker, epoch, &msg);
}

static void a_step_is_the_difference_of_two_messages(void **state)
{
	struct hd_spent_said said = { .n = 0 };
	double busy[HD_VIEW_RANKS];

	(void)state;
	memcpy(view.rank, rank, sizeof rank);
	assert_false(hd_spent_step(&said, &view, 10, busy));
	says(&said, 4, 3, 10, 100);
	says(&said, 7, 3, 10, 1000);
	assert_false(hd_spent_step(&said, &view, 10, busy));            /* there is none before */
	says(&said, 4, 3, 11, 130);
	assert_false(hd_spent_step(&said, &view, 11, busy));            /* one is not done */
	says(&said, 7, 3, 11, 1700);
	says(&said, 4, 3, 12, 200);             /* a step ahead */
	assert_true(hd_spent_step(&said, &view, 11, busy));
	assert_true(busy[0] == 30 && busy[1] == 700 && busy[2] == 90);
	assert_false(hd_spent_step(&said, &view, 12, busy));
	hd_spent_finish(&said);
}

/* A message that is lost, another view, times that go back: a new beginning, no step. */
static void what_does_not_follow_is_no_step(void **state)
{
	static const struct { uint32_t epoch; uint64_t step, ns; bool is; } rows[] = { { 3, 11, 200, true },
		{ 3, 12, 200, true }, { 3, 13, 199, false }, { 3, 15, 300, false }, { 4, 16, 400, false } };

	(void)state;
	memcpy(view.rank, rank, sizeof rank);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_spent_said said = { .n = 0 };
		struct hd_view at = view;
		double busy[HD_VIEW_RANKS];
		for (size_t k = 0; k <= i; k++) {
			if (!k)
				for (uint32_t w = 4; w <= 7; w += 3)
					says(&said, w, 3, 10, 100);
			for (uint32_t w = 4; w <= 7; w += 3)
				says(&said, w, rows[k].epoch, rows[k].step, rows[k].ns);
		}
		at.epoch = rows[i].epoch;
		CHECK(hd_spent_step(&said, &at, rows[i].step, busy) == rows[i].is, "row %zu", i);
		hd_spent_finish(&said);
	}
}

static void only_what_was_said_in_the_view_counts(void **state)
{
	struct hd_spent_said said = { .n = 0 };

	(void)state;
	says(&said, 4, 3, 10, 100);
	assert_true(hd_spent_of(&said, 4, 3)->n == 4 && !hd_spent_of(&said, 4, 4) &&
		!hd_spent_of(&said, 5, 3));
	says(&said, 4, 4, 11, 50);
	says(&said, 4, 4, 12, 60);        /* the view before is there, not what was before that */
	assert_true(hd_spent_of(&said, 4, 4)->kind[2].ns == 120 &&
		hd_spent_of(&said, 4, 3)->kind[2].ns == 200);
	says(&said, 4, 6, 13, 70);
	assert_true(!hd_spent_of(&said, 4, 3) && hd_spent_of(&said, 4, 4)->kind[2].ns == 120);
	says(&said, 4, 7, 13, 80);
	assert_true(!hd_spent_of(&said, 4, 4) && hd_spent_of(&said, 4, 7)->kind[2].ns == 160);
	hd_spent_finish(&said);
}

/* More workers than a run can have: the oldest is forgotten. */
static void as_many_are_kept_as_a_run_may_have(void **state)
{
	struct hd_spent_said said = { .n = 0 };

	(void)state;
	for (uint32_t w = 0; w <= HD_MAX_WORKERS; w++)
		says(&said, w, 3, 10, w);
	assert_true(!hd_spent_of(&said, 0, 3) && hd_spent_of(&said, 1, 3)->kind[0].ns == 1 &&
		hd_spent_of(&said, HD_MAX_WORKERS, 3));
	hd_spent_finish(&said);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_the_difference_of_two_messages),
		cmocka_unit_test(what_does_not_follow_is_no_step),
		cmocka_unit_test(only_what_was_said_in_the_view_counts),
		cmocka_unit_test(as_many_are_kept_as_a_run_may_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
