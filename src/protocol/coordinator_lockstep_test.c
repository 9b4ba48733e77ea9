#include "protocol/testing_coordinator.h"

/* Rule 16 of coordinator.h: three members, of which 2 is lost in step 0. */

static struct hd_co_config config_of(bool lockstep)
{
	struct hd_co_config config = co_config;

	config.max = 4;
	config.lockstep = lockstep;
	return config;
}

static const struct hd_msg_view *view_of(const struct co_at_work *c)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_VIEW)
			return &c->done.at[i].msg->view;
	return NULL;
}

static void lose(struct co_at_work *c, bool lockstep)
{
	const struct hd_co_config config = config_of(lockstep);

	co_run(c, &config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
}

/* Step 0 at one member: its pass of one virtual node, its sums; at 1 it has finished it. */
#define HAS(w, at_, sum_, first_) FROM(w, STATUS, .epoch = 2, \
	.status = { .member = true, .at = (at_), .begun = !(at_), .prev = (at_), .nsum = 1, \
	.sum = (const uint64_t[]){ sum_ }, .npass = !(at_), \
	.pass = (const struct hd_pass[]){ { .nranges = 1 } }, \
	.nrange = !(at_), .range = (const struct hd_vrange[]){ { first_, 1 } } })

/* What survivors computed is dealt with only where passes are computed apart. */
static void a_step_that_lost_a_part_begins_again(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int lockstep = 0; lockstep < 2; lockstep++) {
		lose(c, lockstep);
		HAS(0, 0, 1, 0);
		HAS(1, 0, 0, 2);
		const struct hd_msg_view *v = view_of(c);
		assert_true(v && v->afresh == lockstep && v->nmember == 2);
		assert_int_equal(v->npass > 0, !lockstep);
		assert_int_equal(v->nhave > 0, !lockstep);
		assert_int_equal(strstr(co_note_text(c, "afresh"), "compute together") != NULL, lockstep);
		co_end(c);
	}
}

/* 1 has finished it, so it has all that 0 needs. In lockstep no step begins in the view in which one is
 * finished: what workers send one another in it is in lists of the view before. */
static void a_step_that_a_member_has_finished_is_finished_by_all(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int lockstep = 0; lockstep < 2; lockstep++) {
		lose(c, lockstep);
		HAS(0, 0, 1, 0);
		HAS(1, 1, 3, 0);
		const struct hd_msg_view *v = view_of(c);
		assert_true(v && !v->afresh && v->table == 2 && v->nhave == 2 && v->have[1].members == 2);
		for (uint32_t i = 0; i < v->npass; i++)
			assert_true(v->pass[i].worker == 0 && v->pass[i].pass == 0);
		assert_int_equal(v->hold, lockstep);
		co_tick_at(c, c->now + CO_T / 2);
		assert_int_equal(c->co->phase, HD_CO_IDLE);
		FROM(0, SEAL, .epoch = 2, .seal = { .step = 0, .knows = 2, .ran = true });
		assert_int_equal(c->co->phase, lockstep ? HD_CO_FENCING : HD_CO_IDLE);
		co_end(c);
	}
}

/* All sums are here and the table is not: so far no member has finished it. */
static void without_the_table_it_begins_again(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	lose(c, true);
	HAS(0, 0, 3, 0);
	HAS(1, 0, 3, 2);
	assert_true(view_of(c) && view_of(c)->afresh);
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_lost_a_part_begins_again),
		cmocka_unit_test(a_step_that_a_member_has_finished_is_finished_by_all),
		cmocka_unit_test(without_the_table_it_begins_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
