#include "protocol/testing_coordinator.h"

/* Which workers are asked, what their answers mean, and what view follows (rules 3, 6, 7 and 9): each
 * guard by itself. */

static const uint64_t first = 1, both = 3;
static const struct hd_pass own[] = { { 0, 0, 0, 1, 0 } };
static const struct hd_vrange low[] = { { 0, 2 } }, high[] = { { 2, 2 } };

#define STATUS_OF(w, e, ...) FROM(w, STATUS, .epoch = (e), .status = { .member = true, __VA_ARGS__ })
#define PASS(range_) .npass = 1, .pass = own, .nrange = 1, .range = (range_)
#define BEGUN(range_) .begun = true, PASS(range_)
#define GONE(w) FROM(w, LEAVE, .leave = { .gone = true })

/* All of `n` members are asked in epoch 2; none is dead. */
static void ask_all(struct co_at_work *c, const struct hd_co_config *config, uint32_t n)
{
	co_run(c, config, n);
	CO(LOST, .worker = n - 1, .why = HD_CLOSED);
	co_return(c, n - 1, 10 + n - 1, true);
	STORED();
	assert_true(c->co->phase == HD_CO_ASKING && c->co->record.epoch == 2);
}

/* Members 0 and 1, worker 2 ready; of epoch 3, worker 0 is lost unless it is only mended. */
static void ask_with_ready(struct co_at_work *c, bool decided)
{
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	if (decided) {
		STORED();
		for (uint32_t i = 0; i < 3; i++)
			FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
		STORED();
	}
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	assert_true(c->co->phase == HD_CO_ASKING && c->co->record.epoch == 3);
}

/* ---- which workers are asked ---- */

/* FENCE names the dead of the view, to all that are here. */
static void a_fence_names_the_dead_of_the_view_to_those_who_are_here(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	co_admit(c, 3);
	co_admit(c, 4);
	co_admit(c, 5);
	GONE(4);                                 /* gone: its link is up */
	CO(LOST, .worker = 5, .why = HD_EXITED); /* dead, and no member */
	CO(LOST, .worker = 2, .why = HD_EXITED);
	IS(STORED(), ">0 FENCE@2 dead 2; >1 FENCE@2 dead 2; >3 FENCE@2 dead 2");
	co_end(c);

	co_run(c, &co_config, 1);                /* without a view none of it is dead */
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	CO(RESTORED, .step = 0);
	co_admit(c, 1);
	co_ready_to_sync(c, 1);
	co_synced(c, 1);
	IS(STORED(), ">1 FENCE@3");
	co_end(c);
}

/* A worker that may have entered is asked though its link is down; of other ready ones only those with a
 * link. */
static void who_may_hold_the_state_is_waited_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int decided = 0; decided < 2; decided++) {
		co_run(c, &co_config, 3);
		CO(SCALE, .n = 4);
		co_admit(c, 3);
		co_ready_to_sync(c, 3);
		hd_co_find(c->co, 3)->answer.at = 0;
		co_synced(c, 3);
		STORED();
		for (uint32_t i = 0; i < 4 && decided; i++)
			FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
		if (decided)
			STORED();
		CO(LOST, .worker = 3, .why = HD_CLOSED);
		CO(LOST, .worker = 0, .why = HD_EXITED);
		STORED();
		MEMBER_AT(1, 3, 0);
		const char *said = MEMBER_AT(2, 3, 0);
		CHECK(decided ? !*said : strstr(said, ">1 VIEW@3 0 of 1 2;") != NULL, "%s", said);
		co_end(c);
	}
	/* it is unknown what became of a first view that was being stored: no worker got it */
	co_begin(c, &co_config);
	for (uint32_t i = 0; i < 2; i++) {
		co_admit(c, i);
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	STORED();
	NEWCOMER_AT(0, 1, 0);
	NEWCOMER_AT(1, 1, 0);
	assert_int_equal(c->co->phase, HD_CO_VIEWING);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	IS(STORED(), ">0 FENCE@2; STORE 6 e 2 next 2 not started; NOTE restore; RESTORE; SPAWN 1");
	co_end(c);
}

/* Nothing is opened by a death in a run that ends, or that looks on disk. */
static void the_dead_of_an_end_are_not_asked_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	FROM(0, DONE, .epoch = 1, .done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" });
	IS(CO(LOST, .worker = 1, .why = HD_EXITED), "");
	co_end(c);

	ask_with_ready(c, true);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(NEWCOMER_AT(2, 4, 0), "STORE 11 e 4 next 3 not started; NOTE restore; RESTORE; SPAWN 2");
	assert_int_equal(c->co->phase, HD_CO_RESTORING);
	/* nor is it decided again by a worker that drops its state */
	IS(FROM(2, READY_TO_SYNC, .epoch = 4), "");
	IS(co_tick_at(c, c->now + 2 * CO_T), "");
	IS(CO(LOST, .worker = 2, .why = HD_EXITED), "NOTE lost 2; END 2; SPAWN 1");
	co_end(c);
}

/* A worker that comes back gets FENCE and VIEW again where it may have missed them, and only there. */
static void a_view_is_said_again_where_it_came_of_a_failure(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	STORED();
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(co_return(c, 1, 11, true),
		">1 PEER@1 0 a; >0 PEER@1 1 b; >1 PEER@1 2 c; >2 PEER@1 1 b; >1 SEND_STATE@1 2; >1 "
		"PREPARE@1 2 "
		"after 0 1 of 0 1 2");
	for (uint32_t i = 0; i < 3; i++)
		FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
	STORED();
	for (uint32_t i = 0; i < 3; i++)
		FROM(i, PROGRESS, .epoch = 2);
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(co_return(c, 1, 11, true), ">1 PEER@2 0 a; >0 PEER@2 1 b; >1 PEER@2 2 c; >2 PEER@2 1 b");
	co_end(c);

	co_run(c, &co_config, 2);                /* one that is no member has no part in it */
	co_admit(c, 2);
	IS(NEWCOMER_AT(2, 1, 0), "");
	IS(MEMBER_AT(1, 1, 0), ">1 VIEW@1 0 of 0 1");
	co_end(c);
}

/* ---- members of the view ---- */

/* Answers count from workers that were asked, in time. */
static void who_was_not_asked_has_no_say(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	int64_t asked = c->now;
	IS(MEMBER_AT(3, 2, 0), "");              /* a joiner */
	IS(FROM(3, READY_TO_SYNC, .epoch = 2), ">1 SEND_STATE@1 3 no more; >3 SYNC@1 1 100000002; >1 "
		"SEND_STATE@1 3");
	MEMBER_AT(0, 2, 0);
	IS(co_tick_at(c, asked + CO_T),
		"NOTE lost 1; >1 STALE@1; DROP 1; END 1; >1 SEND_STATE@1 3 no more; STORE 8 e 3 next 4 of 0 "
		"1 "
		"2; >3 SYNC@1 0 100000003; "
		">0 SEND_STATE@1 3");    /* nor is it missed */
	STORED();
	IS(MEMBER_AT(3, 3, 0), "");
	IS(MEMBER_AT(0, 3, 0), ">0 VIEW@3 0 of 0; >3 VIEW@3 0 of 0; NOTE view; "
		"STORE 9 e 3 next 4 of 0; SPAWN 1");
	co_end(c);

	ask_with_ready(c, false);
	NEWCOMER_AT(2, 3, 0);
	MEMBER_AT(1, 3, 0);
	assert_int_equal(c->co->phase, HD_CO_VIEWING);
	IS(MEMBER_AT(1, 3, 5), "");              /* it is decided */
	IS(STORED(), ">1 VIEW@3 0 of 1 2; >2 VIEW@3 0 of 1 2; NOTE view");
	co_end(c);
}

/* At a boundary workers come in that hold the state, are to stay, and fit. */
static void newcomers_come_in_with_a_view_if_they_are_wanted(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int row = 0; row < 4; row++) {
		co_run(c, &co_config, 3);
		CO(SCALE, .n = 4);
		co_admit(c, 3);
		co_ready_to_sync(c, 3);
		co_synced(c, 3);
		if (row == 1)
			CO(DRAIN, .worker = 3);
		if (row == 2)
			CO(SCALE, .n = 2);
		CO(LOST, .worker = 0, .why = HD_EXITED);
		STORED();
		NEWCOMER_AT(3, 3, row == 3 ? 1 : 0);
		MEMBER_AT(1, 3, 0);
		MEMBER_AT(2, 3, 0);
		CHECK((strstr(c->text, " of 1 2; ") != NULL) == (row > 0) &&
			(strstr(c->text, " of 1 2 3") != NULL) == (row == 0), "row %d: %s", row,
			c->text);
		co_end(c);
	}
	ask_with_ready(c, true);                 /* it is a member already */
	MEMBER_AT(2, 3, 0);
	IS(MEMBER_AT(1, 3, 0), "STORE 10 e 3 next 3 of 1 2; SPAWN 1");
	IS(STORED(), ">1 VIEW@3 0 of 1 2; >2 VIEW@3 0 of 1 2; NOTE view");
	co_end(c);

	co_run(c, &co_config, 2);                /* of an answer of before nothing is taken */
	co_one_more(c, 2);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	IS(MEMBER_AT(1, 3, 0), ">1 VIEW@3 0 of 1; NOTE view; STORE 9 e 3 next 3 of 1; SPAWN 1");
	co_end(c);

	struct hd_co_config config = co_config;  /* chosen by the coordinator before, it never heard so */
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 2,
		.target = 2, .nmembers = 2, .member = { 0, 1 },
		.started = true };
	co_begin(c, &config);
	CO(TICK);
	co_return(c, 0, 10, true);
	co_return(c, 1, 11, false);
	STORED();
	MEMBER_AT(0, 5, 7);
	IS(NEWCOMER_AT(1, 5, 7),
		">0 VIEW@5 7 of 0; >1 VIEW@5 7 of 0; NOTE view; COMMIT 0@5 lost; COMMIT 1@5 lost; COMMIT "
		"2@5 lost; COMMIT 3@5 lost; "
		"COMMIT 4@5 lost; COMMIT 5@5 lost; COMMIT 6@5 lost; "
		"STORE 11 e 5 next 2 of 0; >1 SYNC@5 0 400000001; >0 SEND_STATE@5 "
		"1");
	co_end(c);
}

/* A checkpoint is of step 6, lines are there up to step 4: the coordinator before did not get to the next. */
static void what_members_keep_of_steps_before_the_checkpoint_is_asked_for(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 1,
		.target = 1, .nmembers = 1, .member = { 0 }, .started = true };
	config.step = 6;
	config.recorded = 5;
	co_begin(c, &config);
	CO(TICK);
	co_return(c, 0, 10, true);
	STORED();
	FROM(0, SEAL, .epoch = 5, .seal = { .step = 5, .ran = true, .news = { .samples = 8 } });
	IS(MEMBER_AT(0, 5, 7), ">0 VIEW@5 7 of 0; NOTE view; COMMIT 5@5; COMMIT 6@5 lost");
	co_end(c);
}

/* More may hold the state than there may be members: those of the lowest numbers are. */
static void no_view_has_more_members_than_there_may_be(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	const uint32_t n = HD_MAX_MEMBERS + 6;

	(void)state;
	config.max = HD_MAX_MEMBERS;
	config.nvns = HD_MAX_MEMBERS;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 80,
		.target = HD_MAX_MEMBERS, .nmembers = n,
		.started = true };
	for (uint32_t i = 0; i < n; i++)
		config.record.member[i] = i;
	co_begin(c, &config);
	CO(TICK);
	for (uint32_t i = 0; i < n; i++)
		co_return(c, i, 10 + i, true);
	STORED();
	for (uint32_t i = 0; i < n; i++)
		MEMBER_AT(i, 5, 0);
	assert_int_equal(c->co->view.nmembers, HD_MAX_MEMBERS);
	assert_int_equal(c->co->view.member[HD_MAX_MEMBERS - 1], HD_MAX_MEMBERS - 1);
	assert_int_equal(hd_co_find(c->co, HD_MAX_MEMBERS)->state, HD_W_MEMBER);
	co_end(c);
}

/* A failed start is begun again: holders of another step load this one, the others keep it. */
static void a_start_of_which_nobody_is_left_begins_anew(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.step = 20;
	config.target = 1;
	config.nvns = 4;
	for (int row = 0; row < 3; row++) {
		static const char *const is[] = { ">0 SYNC@0 -1 14", "SPAWN 1", ">0 SYNC@0 -1 14" };
		config.target = row == 2 ? 2 : 1;
		co_begin(c, &config);
		for (uint32_t i = 0; i < config.target; i++) {
			co_admit(c, i);
			co_ready_to_sync(c, i);
			co_synced(c, i);
		}
		if (row == 1)
			CO(DRAIN, .worker = 0);
		if (row == 2)
			CO(LOST, .worker = 1, .why = HD_CLOSED);
		STORED();
		IS(NEWCOMER_AT(0, 1, row == 1 ? 20 : 9), is[row]);
		assert_int_equal(hd_co_find(c->co, row == 2)->state, row ? HD_W_READY : HD_W_SYNCING);
		co_end(c);
	}
}

/* ---- what there is of the open step ---- */

/* What a member tells of a step that it did not begin is of another one. */
static void what_was_not_begun_holds_nothing(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	ask_all(c, &co_config, 2);
	STATUS_OF(0, 2, .at = 0, BEGUN(low));
	IS(STATUS_OF(1, 2, .at = 0, .nsum = 1, .sum = &both, .table = true),
		"NOTE redo; >0 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:0; >1 VIEW@2 0 of 0 1 passes "
		"0.0[0+2] 1.0[2+2] sums 0:0; "
		"NOTE view");
	co_end(c);

	config.copies = 2;
	ask_all(c, &config, 2);
	STATUS_OF(0, 2, .at = 0, .nslot = 1, .slot = &both, .nsum = 1, .sum = &first, BEGUN(low));
	IS(STATUS_OF(1, 2, .at = 0, .nslot = 1, .slot = &both, .nparm = 1, .parm = &both),
		"NOTE redo; >0 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:1 1:0 parms 0:0 chain 0:3; "
		">1 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:1 1:0 parms 0:0 chain 0:3; NOTE view");
	co_end(c);

	ask_all(c, &co_config, 2);               /* one has sealed it, the other has not begun it */
	STATUS_OF(0, 2, .at = 1, .prev = true);
	IS(STATUS_OF(1, 2, .at = 0),
		">0 VIEW@2 0 of 0+1 1 sums 0:1 table 1; >1 VIEW@2 0 of 0+1 1 sums 0:1 table 1; NOTE view");
	co_end(c);

	ask_all(c, &co_config, 2);               /* passes of a member that sealed it are of the next one */
	STATUS_OF(0, 2, .at = 1, .prev = true, PASS(low));
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(high)),
		">0 VIEW@2 0 of 0+1 1 passes 1.0[2+2] sums 0:1 table 1; >1 VIEW@2 0 of 0+1 1 passes "
		"1.0[2+2] sums 0:1 table 1; NOTE view");
	co_end(c);
}

/* Rule 9. A member that sealed a step has all new parameters, and the sums of its chains alone. */
static void who_has_sealed_holds_the_sums_of_its_chains(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.copies = 2;
	ask_all(c, &config, 2);
	STATUS_OF(0, 2, .at = 1, .prev = true, .nslot = 1, .slot = &both, .nsum = 1, .sum = &first);
	IS(STATUS_OF(1, 2, .at = 0, .nslot = 1, .slot = &both, .nsum = 1, .sum = &both, BEGUN(high)),
		">0 VIEW@2 0 of 0+1 1 passes 1.0[2+2] sums 0:3 1:2 parms 0:1 chain 0:3 table 1; "
		">1 VIEW@2 0 of 0+1 1 passes 1.0[2+2] sums 0:3 1:2 parms 0:1 chain 0:3 table 1; NOTE view");
	co_end(c);
}

/* What is too much to tell, or to number, is begun afresh: passes of one worker, roots of them. */
static void what_does_not_fit_is_begun_afresh(void **state)
{
	static struct hd_pass pass[HD_MAX_PASSES];
	static struct hd_vrange range[HD_VIEW_RANGES];
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.nvns = 32;
	for (uint32_t n = HD_MAX_PASSES - 1; n <= HD_MAX_PASSES; n++) {
		ask_all(c, &config, 1);
		for (uint32_t p = 0; p < n; p++) {
			pass[p] = (struct hd_pass){ 0, p, p, 1, 0 };
			range[p] = (struct hd_vrange){ 2 * p, 1 };
		}
		const char *said = STATUS_OF(0, 2, .at = 0, .begun = true, .npass = n, .pass = pass,
			.nrange = n, .range = range);
		CHECK(!strncmp(said, n == HD_MAX_PASSES ? "NOTE afresh" : "NOTE redo", 9), "%u passes: %s", n,
			said);
		co_end(c);
	}
	config.nvns = 4096;
	for (uint32_t n = 64; n <= 256; n += 192) {
		ask_all(c, &config, 1);
		for (uint32_t r = 0; r < n; r++)
			range[r] = (struct hd_vrange){ 4096 / n * r + 1, 14 };
		pass[0] = (struct hd_pass){ 0, 0, 0, n, 0 };
		const char *said = STATUS_OF(0, 2, .at = 0, .begun = true, .npass = 1, .pass = pass,
			.nrange = n, .range = range);
		CHECK((strstr(said, "NOTE afresh") != NULL) == (n == 256), "%u ranges: %.300s", n, said);
		co_end(c);
	}
}

/* ---- the view in force ---- */

/* What each has sealed is as it said, or as it has said since: a seal that it had made before it answered
 * is none of the open step. */
static void seals_count_from_what_was_answered(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_seal(c, 0, 1, 0);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_return(c, 1, 11, true);
	STORED();
	STATUS_OF(0, 2, .at = 1, .prev = true);
	STATUS_OF(1, 2, .at = 0, BEGUN(high));
	IS(co_seal(c, 1, 2, 0), "COMMIT 0@2");
	IS(co_seal(c, 1, 2, 1), "");
	IS(co_seal(c, 0, 2, 1), "COMMIT 1@2");
	co_end(c);
}

/* Whoever holds waits from the first time on, whatever is mended meanwhile. */
static void the_time_to_hold_counts_from_its_beginning(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.min = 2;
	co_run(c, &config, 2);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	MEMBER_AT(0, 2, 0);
	int64_t from = c->now;
	assert_true(c->co->holding);
	co_tick_at(c, from + 50 * CO_T);
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	co_return(c, 0, 10, true);
	STORED();
	IS(MEMBER_AT(0, 3, 0), ">0 VIEW@3 0 hold of 0; NOTE view");
	CO(TICK);
	const char *said = co_tick_at(c, from + 100 * CO_T + 1);
	CHECK(strstr(said, ">0 STOP@3 10 too few workers"), "%s", said);
	co_end(c);
}

/* Only workers that sync from a member of the view follow it. */
static void who_synced_from_the_disk_syncs_anew_from_a_member(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.target = 3;
	co_begin(c, &config);
	for (uint32_t i = 0; i < 3; i++) {
		co_admit(c, i);
		co_ready_to_sync(c, i);
		if (i < 2)
			co_synced(c, i);
	}
	co_tick_at(c, 9 * CO_T);
	STORED();
	NEWCOMER_AT(0, 1, 0);
	NEWCOMER_AT(1, 1, 0);
	IS(STORED(),
		">0 VIEW@1 0 of 0 1; >1 VIEW@1 0 of 0 1; >2 VIEW@1 0 of 0 1; NOTE view; >2 SYNC@1 1 "
		"100000001; >1 SEND_STATE@1 2");
	co_end(c);

	co_run(c, &co_config, 3);                /* from a worker that is in no view any more */
	CO(SCALE, .n = 4);
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	GONE(2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	IS(MEMBER_AT(1, c->co->record.epoch, 0),
		">1 VIEW@3 0 of 1; >3 VIEW@3 0 of 1; >2 SEND_STATE@3 3 no more; NOTE view; "
		"STORE 10 e 3 next 4 of 1; SPAWN 1; >3 "
		"SYNC@3 "
		"1 100000002; >1 SEND_STATE@3 3");
	co_end(c);
}

/* Released: a member behind what its whole view must have sealed. RELEASE is its last message, and its
 * transfer ends. */
static void who_is_let_go_hears_why(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	ask_with_ready(c, true);
	hd_co_find(c->co, 2)->source = 1;
	MEMBER_AT(2, 3, 0);
	IS(STATUS_OF(1, 3, .at = 5, BEGUN(low)),
		">2 RELEASE@1 0; >1 SEND_STATE@1 2 no more; NOTE redo; >1 VIEW@3 5 of 1 passes 1.0[0+2] "
		"1.1[2+2] sums 0:0; NOTE view; "
		"COMMIT 0@3 lost; COMMIT 1@3 lost; COMMIT 2@3 lost; COMMIT 3@3 lost; COMMIT 4@3 lost; "
		"STORE 10 e 3 next 3 of 1; SPAWN "
		"2");
	co_end(c);
}

/* Whatever memory there is: all of an answer, or the end. */
static void without_memory_no_view_is_said(void **state)
{
	struct co_at_work at, *c = &at;
	bool whole = false;

	(void)state;
	for (size_t budget = 64; !whole; budget += 64) {
		ask_all(c, &co_config, 2);
		STATUS_OF(0, 2, .at = 0, BEGUN(low));
		c->co->out.budget_bytes = budget;
		const char *said = STATUS_OF(1, 2, .at = 0, .nsum = 1, .sum = &first);
		whole = strcmp(said, "EXIT 11 out of memory") != 0;
		c->co->out.budget_bytes = 0;
		if (whole)
			IS(said,
				"NOTE redo; >0 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:0; >1 VIEW@2 "
				"0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:0; "
				"NOTE view");
		co_end(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fence_names_the_dead_of_the_view_to_those_who_are_here),
		cmocka_unit_test(who_may_hold_the_state_is_waited_for),
		cmocka_unit_test(the_dead_of_an_end_are_not_asked_for),
		cmocka_unit_test(a_view_is_said_again_where_it_came_of_a_failure),
		cmocka_unit_test(who_was_not_asked_has_no_say),
		cmocka_unit_test(newcomers_come_in_with_a_view_if_they_are_wanted),
		cmocka_unit_test(what_members_keep_of_steps_before_the_checkpoint_is_asked_for),
		cmocka_unit_test(no_view_has_more_members_than_there_may_be),
		cmocka_unit_test(a_start_of_which_nobody_is_left_begins_anew),
		cmocka_unit_test(what_was_not_begun_holds_nothing),
		cmocka_unit_test(who_has_sealed_holds_the_sums_of_its_chains),
		cmocka_unit_test(what_does_not_fit_is_begun_afresh),
		cmocka_unit_test(seals_count_from_what_was_answered),
		cmocka_unit_test(the_time_to_hold_counts_from_its_beginning),
		cmocka_unit_test(who_synced_from_the_disk_syncs_anew_from_a_member),
		cmocka_unit_test(who_is_let_go_hears_why),
		cmocka_unit_test(without_memory_no_view_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
