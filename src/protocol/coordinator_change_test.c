#include "protocol/testing_coordinator.h"

/* Planned changes (rules 2, 4 and 9), commits (rule 11), and how a run ends. */

#define PREPARED(w, n) FROM(w, PREPARED, .epoch = 1, .decided = { n })

/* Rule 2, and 1: each word comes after its record. */
static void a_change_is_prepared_by_all_decided_and_in_force_with_a_word_of_its_epoch(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	IS(co_synced(c, 2), "STORE 7 e 2 next 3 of 0 1");
	IS(CO(STORED, .serial = 6, .ok = true), "");    /* an earlier one */
	IS(PREPARED(0, 2), "");                 /* no worker can know of it */
	IS(STORED(),
		">0 PREPARE@1 2 after 0 1 of 0 1 2; >1 PREPARE@1 2 after 0 1 of 0 1 2; >2 PREPARE@1 2 after "
		"0 1 of 0 1 2");
	IS(PREPARED(0, 1), "");
	IS(PREPARED(0, 2), "");
	IS(PREPARED(0, 2), "");
	IS(PREPARED(2, 2), "");
	IS(PREPARED(1, 2), "STORE 8 e 2 next 3 of 0 1 2");
	IS(co_seal(c, 0, 2, 0), "");            /* no worker can be in it yet */
	IS(STORED(), ">0 DECIDE@1 2; >1 DECIDE@1 2; >2 DECIDE@1 2");
	IS(co_seal(c, 0, 1, 0), "");
	IS(FROM(2, SEAL, .epoch = 2, .seal = { .step = 0 }), "");        /* it announces only */
	assert_int_equal(c->co->view.epoch, 1);
	IS(co_seal(c, 1, 2, 1), ">1 SEND_STATE@1 2 no more; STORE 9 e 2 next 3 of 0 1 2; NOTE view; COMMIT "
		"0@2");
	assert_int_equal(c->co->view.epoch, 2);
	co_end(c);
}

/* Requests meanwhile are coalesced: the newest counts when the change is in force and all have entered it. */
static void one_change_is_open_at_a_time(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	co_synced(c, 2);
	STORED();
	PREPARED(0, 2);
	IS(CO(SCALE, .n = 1), "STORE 8 e 2 next 3 of 0 1; NOTE scale");
	IS(CO(SCALE, .n = 2), "STORE 9 e 2 next 3 of 0 1; NOTE scale");
	PREPARED(1, 2);
	IS(PREPARED(2, 2), "STORE 10 e 2 next 3 of 0 1 2");
	IS(STORED(), ">0 DECIDE@1 2; >1 DECIDE@1 2; >2 DECIDE@1 2");
	IS(FROM(0, PROGRESS, .epoch = 2), ">1 SEND_STATE@1 2 no more; STORE 11 e 2 next 3 of 0 1 2; NOTE "
		"view");
	IS(FROM(1, PROGRESS, .epoch = 1), "");  /* not in it yet */
	IS(FROM(1, PROGRESS, .epoch = 2), "");
	IS(FROM(2, PROGRESS, .epoch = 2), "STORE 12 e 3 next 3 of 0 1 2");
	co_end(c);
}

static void who_has_not_prepared_in_its_time_is_given_up(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int member = 0; member < 2; member++) {
		co_run(c, &co_config, 2);
		CO(SCALE, .n = 3);
		co_admit(c, 2);
		co_ready_to_sync(c, 2);
		co_synced(c, 2);
		STORED();
		int64_t asked = c->now;
		PREPARED(0, 2);
		PREPARED(member ? 2 : 1, 2);
		IS(co_tick_at(c, asked + 8 * CO_T - 1), "");
		IS(co_tick_at(c, asked + 8 * CO_T), member ?
			"NOTE lost 1; >1 STALE@1; DROP 1; END 1; >1 SEND_STATE@1 2 no more; NOTE void; "
			"STORE 8 "
			"e 3 next 3 of 0 1; "
				">2 SYNC@1 0 100000002; >0 SEND_STATE@1 2" :
			"NOTE lost 2; >1 SEND_STATE@1 2 no more; >2 STALE@1; DROP 2; END 2; NOTE void");
		co_end(c);
	}
}

/* Rule 4. */
static void a_change_is_void_when_somebody_of_it_is_lost(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (uint32_t lost = 0; lost < 3; lost++)
		for (int prepared = 0; prepared < 3; prepared++) {
			co_run(c, &co_config, 2);
			CO(SCALE, .n = 3);
			co_admit(c, 2);
			co_ready_to_sync(c, 2);
			co_synced(c, 2);
			if (prepared)
				STORED();
			if (prepared == 2) {
				PREPARED(0, 2);
				PREPARED(1, 2);
				PREPARED(2, 2);
				STORED();
			}
			const char *said = CO(LOST, .worker = lost, .why = HD_EXITED);
			CHECK(strstr(said, "NOTE void"), "%s", said);
			uint32_t epoch = lost < 2 || prepared == 2 ? 3 : 2;
			CHECK(c->co->record.epoch == epoch &&
				c->co->phase == (epoch == 3 ? HD_CO_FENCING : HD_CO_IDLE), "lost %u, %d: %s",
				lost,
				prepared, said);
			co_end(c);
		}
}

/* So it is when a joiner leaves, or its source does, before it is decided; after that it may have
 * entered. */
static void a_newcomer_that_goes_takes_its_change_along(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int row = 0; row < 6; row++) {
		co_run(c, &co_config, 2);
		CO(SCALE, .n = 3);
		co_admit(c, 2);
		co_ready_to_sync(c, 2);
		co_synced(c, 2);
		if (row % 3)
			STORED();
		if (row % 3 == 2) {
			PREPARED(0, 2);
			PREPARED(1, 2);
			PREPARED(2, 2);
		}
		const char *said = row < 3 ? FROM(2, LEAVE, .epoch = 1, .leave = { .gone = true }) : FROM(2,
			READY_TO_SYNC, .epoch = 1);
		static const char *const is[] = {
			"NOTE leave 2; NOTE void; >1 SEND_STATE@1 2 no more; SPAWN 1",
			"NOTE leave 2; NOTE void; >1 SEND_STATE@1 2 no more; SPAWN 1",
			("NOTE leave 2; NOTE lost 2; >1 SEND_STATE@1 2 no more; >2 STALE@1; DROP 2; END 2; "
			"NOTE void; STORE 9 e 3 next 3 of 0 1 2"),
			">1 SEND_STATE@1 2 no more; NOTE void; >2 SYNC@1 1 100000002; >1 SEND_STATE@1 2",
			">1 SEND_STATE@1 2 no more; NOTE void; >2 SYNC@1 1 100000002; >1 SEND_STATE@1 2",
			(">1 SEND_STATE@1 2 no more; NOTE void; STORE 9 e 3 next 3 of 0 1 2; "
			">2 SYNC@1 1 100000002; >1 SEND_STATE@1 2"),
		};
		IS(said, is[row]);
		co_end(c);
	}
}

/* A worker that comes back during a change gets its messages again, as far as it is. */
static void who_comes_back_hears_of_the_change_again(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	co_synced(c, 2);
	/* its number is not stored */
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1");
	STORED();
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1; >2 PREPARE@1 2 "
		"after 0 1 of 0 1 2");
	PREPARED(0, 2);
	PREPARED(1, 2);
	PREPARED(2, 2);
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1");
	STORED();
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1; >2 PREPARE@1 2 "
		"after 0 1 of 0 1 2; "
		">2 DECIDE@1 2");
	co_end(c);
}

/* Rule 11. */
static void a_step_is_committed_once_in_order_when_all_have_sealed_it(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	IS(co_seal(c, 0, 1, 0), "");
	IS(co_seal(c, 0, 1, 0), "");
	IS(co_seal(c, 0, 1, 1), "");
	IS(co_seal(c, 7, 1, 0), "");
	IS(co_seal(c, 1, 1, 0), "COMMIT 0@1");
	IS(co_seal(c, 1, 1, 0), "");
	/* of before the view that it is in: it holds the step all the same */
	IS(co_seal(c, 1, 0, 1), "COMMIT 1@1");
	IS(co_seal(c, 1, 1, 3), "");            /* what it said between was lost */
	IS(co_seal(c, 0, 1, 3), "COMMIT 2@1 lost; COMMIT 3@1");
	co_end(c);
}

static void the_record_of_a_step_is_the_first_that_came_of_it(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	FROM(0, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1, .news = { .loss_sum = 3 } });
	FROM(1, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1, .news = { .loss_sum = 4 } });
	assert_int_equal(c->done.at[0].kind, HD_CO_DO_COMMIT);
	assert_true(c->done.at[0].news->loss_sum == 3);
	FROM(0, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1, .news = { .loss_sum = 5 } });
	assert_int_equal(c->co->news[0].news.loss_sum == 3, 1);
	co_end(c);
}

/* A member that is to go stays until others can take its place; of too many the youngest go; one keeps the
 * state. */
static void members_that_leave_wait_for_those_who_come(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.min = 2;
	co_run(c, &config, 2);
	IS(CO(DRAIN, .worker = 0), "STORE 5 e 1 next 2 of 0 1 going 0; SPAWN 1");
	IS(CO(DRAIN, .worker = 0), "");
	IS(CO(DRAIN, .worker = 9), "");
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	IS(co_synced(c, 2), "STORE 7 e 2 next 3 of 0 1 going 0");
	co_end(c);

	co_run(c, &co_config, 3);
	IS(CO(SCALE, .n = 1), "STORE 6 e 1 next 3 of 0 1 2; NOTE scale; STORE 7 e 2 next 3 of 0 1 2");
	co_end(c);

	co_run(c, &co_config, 2);
	FROM(0, LEAVE, .epoch = 1, .leave = { .code = 75, .nwhy = 1, .why = "n" });
	assert_true(hd_co_find(c->co, 0)->draining);
	IS(FROM(0, LEAVE, .epoch = 1, .leave = { .code = 75, .nwhy = 1, .why = "n" }), "");
	STORED();
	IS(FROM(1, LEAVE, .epoch = 1, .leave = { .code = 75, .nwhy = 1, .why = "n" }),
		"NOTE leave 1; SPAWN 1");
	co_end(c);
}

/* Rule 9: of a bucket's holders fewer than `copies` go at a time. */
static void holders_of_slots_do_not_all_go_at_once(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	for (uint32_t copies = 0; copies < 4; copies++) {
		config.copies = copies;
		co_run(c, &config, 4);
		CO(SCALE, .n = 1);
		CHECK(c->co->next.nmembers == (copies == 1 ? 4 : copies == 2 ? 3 : copies == 3 ? 2 : 1) ||
			c->co->phase == HD_CO_IDLE,
			"%u copies: %u", copies,
			c->co->next.nmembers);
		co_end(c);
	}
}

/* A planner's map is taken if it is a map of these members. */
static bool planned(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n)
{
	int how = *(int *)self;

	view->nranks = n;
	for (uint32_t i = 0; i < n; i++)
		view->rank[i] = (struct hd_vrank){ info[i].worker, i ? 1 : 4 - (n - 1) };
	view->epoch += how == 1;
	view->nmembers -= how == 2;
	view->member[0] += how == 3;
	view->rank[0].nvns += how == 4;
	return how != 5;
}

static void a_planners_map_is_taken_if_it_is_one_of_these_members(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	int how = 0;

	(void)state;
	config.plan = planned;
	config.plan_self = &how;
	for (; how < 6; how++) {
		co_run(c, &config, 2);
		CHECK(c->co->view.rank[0].nvns == (how ? 2 : 3), "%d: %u", how, c->co->view.rank[0].nvns);
		co_end(c);
	}
	how = 0;
	co_run(c, &config, 2);
	IS(CO(REPLAN), "");                     /* the same again */
	how = 5;
	IS(CO(REPLAN), "STORE 5 e 2 next 2 of 0 1");
	co_end(c);
}

/* ---- the end ---- */

static void a_run_ends_when_the_checkpoint_writer_has_saved_and_all_are_there(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_seal(c, 0, 1, 0);
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 1 }), "");       /* not the checkpoint writer */
	/* it overtook the seal of the other one */
	IS(FROM(0, DONE, .epoch = 1, .done = { .step = 1 }), "NOTE done 0");
	IS(co_seal(c, 1, 1, 0), "COMMIT 0@1; >0 RELEASE@1 0; >1 RELEASE@1 0");
	IS(CO(LOST, .worker = 0, .why = HD_CLOSED), "");
	IS(CO(LOST, .worker = 1, .why = HD_CLOSED), "EXIT 0 ");
	IS(CO(TICK), "");
	co_end(c);

	/* they close their links one after the other, or their end is seen first: nothing is lost by that */
	co_run(c, &co_config, 3);
	for (uint32_t i = 0; i < 3; i++)
		co_seal(c, i, 1, 0);
	IS(FROM(0, DONE, .epoch = 1, .done = { .step = 1 }),
		"NOTE done 0; >0 RELEASE@1 0; >1 RELEASE@1 0; >2 RELEASE@1 0");
	IS(FROM(1, SUSPECT, .epoch = 1, .suspect = { 0, HD_CLOSED }), "");
	IS(CO(LOST, .worker = 0, .why = HD_CLOSED), "");
	IS(CO(LOST, .worker = 1, .why = HD_CLOSED), "");
	IS(FROM(2, SUSPECT, .epoch = 1, .suspect = { 1, HD_CLOSED }), "");
	IS(CO(LOST, .worker = 2, .why = HD_EXITED), "EXIT 0 ");
	co_end(c);

	co_run(c, &co_config, 2);
	/* a failure anybody may tell */
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" }),
		"NOTE done 1; >0 RELEASE@1 4; >1 RELEASE@1 4");
	int64_t from = c->now;
	/* a worker that comes back gets it */
	IS(co_return(c, 1, 11, true), ">1 PEER@1 0 a; >0 PEER@1 1 b; >1 RELEASE@1 4");
	IS(co_tick_at(c, from + 4 * CO_T - 1), "");
	IS(co_tick_at(c, from + 4 * CO_T), "EXIT 4 nan");
	co_end(c);
}

static void a_stop_is_said_once_to_each_and_again_to_who_comes(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	IS(CO(HALT, .code = 75, .text = "asked"),
		"STORE 5 e 1 next 2 of 0 1 halting; >0 STOP@1 75 asked; >1 STOP@1 75 asked");
	IS(CO(HALT, .code = 76, .text = "again"), "");
	IS(co_return(c, 1, 11, true),
		">1 PEER@1 0 a; >0 PEER@1 1 b; >1 STOP@1 75 asked; >1 FENCE@1; >1 VIEW@1 0 of 0 1");
	/* no worker is requested any more */
	IS(CO(SCALE, .n = 3), "STORE 6 e 1 next 2 of 0 1 halting; NOTE scale");
	co_end(c);

	co_begin(c, &co_config);
	co_admit(c, 0);
	IS(CO(HALT, .code = 75, .text = "asked"), "STORE 2 e 0 next 1 not started halting; >0 RELEASE@0 75");
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_prepared_by_all_decided_and_in_force_with_a_word_of_its_epoch),
		cmocka_unit_test(one_change_is_open_at_a_time),
		cmocka_unit_test(who_has_not_prepared_in_its_time_is_given_up),
		cmocka_unit_test(a_change_is_void_when_somebody_of_it_is_lost),
		cmocka_unit_test(a_newcomer_that_goes_takes_its_change_along),
		cmocka_unit_test(who_comes_back_hears_of_the_change_again),
		cmocka_unit_test(a_step_is_committed_once_in_order_when_all_have_sealed_it),
		cmocka_unit_test(the_record_of_a_step_is_the_first_that_came_of_it),
		cmocka_unit_test(members_that_leave_wait_for_those_who_come),
		cmocka_unit_test(holders_of_slots_do_not_all_go_at_once),
		cmocka_unit_test(a_planners_map_is_taken_if_it_is_one_of_these_members),
		cmocka_unit_test(a_run_ends_when_the_checkpoint_writer_has_saved_and_all_are_there),
		cmocka_unit_test(a_stop_is_said_once_to_each_and_again_to_who_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
