#include "protocol/testing_coordinator.h"

/* What is wanted and what is started next: transfers (rules 8, 10 and 13), each guard of a planned
 * change (rules 2, 4 and 9), of a commit (rule 11). */

#define PREPARED(w, n) FROM(w, PREPARED, .epoch = 1, .decided = { n })
#define FAR(id) (HD_REMOTE_WORKER + (id))

/* Members 0 .. n - 1 that sealed `step`, which the last of them has not said yet. */
static void seal_all_but_last(struct co_at_work *c, uint32_t n, uint64_t step)
{
	for (uint32_t i = 0; i + 1 < n; i++)
		co_seal(c, i, 1, step);
}

static void prepare_all(struct co_at_work *c, uint32_t n, uint32_t epoch)
{
	for (uint32_t i = 0; i < n; i++)
		PREPARED(i, epoch);
}

/* ---- the map ---- */

/* A map of other members, or of fewer, is none of this view, however sound. */
static bool planned_for_others(void *self, struct hd_view *view, const struct hd_member_info *info,
	uint32_t n)
{
	(void)info;
	(void)n;
	view->nranks = *(int *)self == 0 ? 1 : 2;
	view->nmembers = view->nranks;
	view->rank[0] = (struct hd_vrank){ 0, *(int *)self == 0 ? 4 : 3 };
	view->rank[1] = (struct hd_vrank){ 9, 1 };
	view->member[1] = *(int *)self == 0 ? 1 : 9;
	return true;
}

static void a_planners_map_of_others_is_not_taken(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	int how = 0;

	(void)state;
	config.plan = planned_for_others;
	config.plan_self = &how;
	for (; how < 2; how++) {
		co_run(c, &config, 2);
		CHECK(c->co->view.nmembers == 2 && c->co->view.member[1] == 1 &&
			c->co->view.rank[0].nvns == 2, "%d: %u", how,
			c->co->view.rank[0].nvns);
		co_end(c);
	}
}

/* ---- transfers and their sources ---- */

static void a_source_is_here_and_stays(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);                /* its link is down */
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	IS(co_ready_to_sync(c, 2), ">2 SYNC@1 0 100000001; >0 SEND_STATE@1 2");
	co_end(c);

	/* all are down: it waits, and what is on disk is not what they hold */
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	IS(co_ready_to_sync(c, 2), "");
	assert_int_equal(hd_co_find(c->co, 2)->state, HD_W_STANDBY);
	co_end(c);

	co_run(c, &co_config, 2);                /* another is to take its place */
	CO(REPLACE, .worker = 1, .ok = true);
	co_admit(c, 2);
	IS(co_ready_to_sync(c, 2), ">2 SYNC@1 0 100000001; >0 SEND_STATE@1 2");
	co_end(c);

	co_run(c, &co_config, 2);                /* it left, and its place is somebody else's */
	CO(SCALE, .n = 4);
	co_admit(c, 2);
	co_crowd(c);
	co_ready_to_sync(c, 2);
	FROM(1, LEAVE, .epoch = 1, .leave = { .gone = true });
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_admit(c, c->co->record.next_worker);
	assert_null(hd_co_find(c->co, 1));
	IS(FROM(2, READY_TO_SYNC, .epoch = 1), ">2 SYNC@1 0 100000002; >0 SEND_STATE@1 2");
	co_end(c);
}

/* A worker that leaves needs no transfer; one without a link gets no message. Future members count. */
static void as_many_as_are_wanted_are_synced(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_one_more(c, 2);                       /* ready */
	co_admit(c, 3);
	IS(co_ready_to_sync(c, 3), "");
	IS(CO(SCALE, .n = 4),
		"STORE 10 e 2 next 4 of 0 1; NOTE scale; >3 SYNC@1 0 100000002; >0 SEND_STATE@1 3");
	co_end(c);

	co_run(c, &co_config, 2);
	co_admit(c, 2);
	IS(co_ready_to_sync(c, 2), "");
	IS(CO(DRAIN, .worker = 2), "STORE 6 e 1 next 3 of 0 1 going 2");
	IS(CO(SCALE, .n = 3), "STORE 7 e 1 next 3 of 0 1 going 2; NOTE scale; SPAWN 1");
	co_end(c);

	co_run(c, &co_config, 2);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	IS(CO(SCALE, .n = 3), "STORE 6 e 1 next 3 of 0 1; NOTE scale");
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1; >2 SYNC@1 1 "
		"100000001; >1 SEND_STATE@1 2");
	co_end(c);

	co_run(c, &co_config, 2);                /* rule 10 */
	CO(REPLACE, .worker = 0, .ok = true);
	co_admit(c, 2);
	IS(co_ready_to_sync(c, 2), ">2 SYNC@1 1 100000001; >1 SEND_STATE@1 2");
	co_end(c);
}

/* A joiner that loses what it synced undoes what it is part of, and no more. */
static void who_syncs_anew_voids_its_own_change_alone(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int phase = 0; phase < 4; phase++) {        /* numbering, preparing, deciding, decided */
		co_run(c, &co_config, 2);
		CO(SCALE, .n = 4);
		co_admit(c, 2);
		co_admit(c, 3);
		co_ready_to_sync(c, 2);
		co_ready_to_sync(c, 3);
		co_synced(c, 2);
		if (phase > 0)
			STORED();
		if (phase > 1)
			prepare_all(c, 3, 2);
		if (phase > 2)
			STORED();
		enum hd_co_phase was = c->co->phase;
		IS(FROM(3, READY_TO_SYNC, .epoch = 1), ">0 SEND_STATE@1 3 no more; >3 SYNC@1 0 100000003; "
			">0 SEND_STATE@1 3");
		assert_int_equal(c->co->phase, was);
		const char *said = FROM(2, READY_TO_SYNC, .epoch = 1);
		CHECK(strstr(said, "NOTE void") && (c->co->phase == HD_CO_FENCING) == (phase > 1), "%d: %s",
			phase, said);
		co_end(c);
	}
	co_run(c, &co_config, 2);                /* while a view with it is being stored */
	co_one_more(c, 2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	FROM(2, STATUS, .epoch = 3, .status = { .at = 0 });
	FROM(1, STATUS, .epoch = 3, .status = { .member = true, .at = 0 });
	assert_int_equal(c->co->phase, HD_CO_VIEWING);
	IS(FROM(2, READY_TO_SYNC, .epoch = 3),
		">1 SEND_STATE@1 2 no more; STORE 10 e 4 next 3 of 1 2; >2 SYNC@1 1 100000002; >1 "
		"SEND_STATE@1 2");
	co_end(c);
}

/* Out of memory ends the job: half a decision is never sent. */
static void without_memory_nothing_is_opened(void **state)
{
	static const char *const is[] = {
		">2 SYNC@1 1 100000001; >1 SEND_STATE@1 2",
		">1 SEND_STATE@1 2 no more; >2 SYNC@1 1 100000002; >1 SEND_STATE@1 2",
		">0 PREPARE@1 2 after 0 1 of 0 1 2; >1 PREPARE@1 2 after 0 1 of 0 1 2; >2 PREPARE@1 2 after "
		"0 1 of 0 1 2",
		("STORE 8 e 2 next 3 of 0 1 halting; >0 PREPARE@1 2 after 0 1 of 0 1 2; >0 STOP@1 1 t; >1 "
		"SEND_STATE@1 2; "
			">1 PREPARE@1 2 after 0 1 of 0 1 2; >1 STOP@1 1 t; >2 PREPARE@1 2 after 0 1 of 0 1 "
			"2"),
		">0 DECIDE@1 2; >1 DECIDE@1 2; >2 DECIDE@1 2",
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (int row = 0; row < 5; row++) {
		bool whole = false;
		for (size_t budget = 64; !whole; budget += 64) {
			co_run(c, &co_config, 2);
			CO(SCALE, .n = 3);
			co_admit(c, 2);
			if (row > 0)
				co_ready_to_sync(c, 2);
			if (row > 1)
				co_synced(c, 2);
			if (row > 2)
				STORED();
			if (row > 3)
				prepare_all(c, 3, 2);
			c->co->out.budget_bytes = budget;
			const char *said = row < 2 ? co_ready_to_sync(c, 2) : row == 3 ? CO(HALT, .code = 1,
				.text = "t") : STORED();
			whole = strcmp(said, "EXIT 11 out of memory") != 0;
			c->co->out.budget_bytes = 0;
			if (whole)
				IS(said, is[row]);
			co_end(c);
		}
	}
}

/* ---- a planned change ---- */

/* Rule 2: PREPARE to all of the old and the new view, and all PREPARED: the one that is to go too, and
 * no others. */
static void all_of_both_views_prepare_and_nobody_else(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	co_admit(c, 3);                          /* stands by */
	co_admit(c, 4);
	co_ready_to_sync(c, 3);
	FROM(4, LEAVE, .epoch = 1, .leave = { .gone = true });    /* left: its link is still up */
	IS(CO(DRAIN, .worker = 1),
		"STORE 8 e 1 next 5 of 0 1 2 going 1; >3 SYNC@1 2 100000001; >2 SEND_STATE@1 3; STORE 9 e 2 "
		"next 5 of 0 1 2 going 1");
	co_synced(c, 3);
	IS(PREPARED(0, 2), "");                 /* its number is not stored yet */
	IS(PREPARED(1, 2), "");
	IS(PREPARED(2, 2), "");
	IS(PREPARED(3, 2), "");
	IS(STORED(),
		">0 PREPARE@1 2 after 0 1 2 of 0 2; >1 PREPARE@1 2 after 0 1 2 of 0 2; >2 PREPARE@1 2 after "
		"0 1 2 of 0 2");
	IS(co_return(c, 3, 13, false),
		/* it only stands by */
		">3 PEER@1 0 a; >0 PEER@1 3 d; >3 PEER@1 1 b; >1 PEER@1 3 d; >3 PEER@1 2 c; >2 PEER@1 3 d; "
		">3 ENTERED@1");
	IS(PREPARED(0, 2), "");
	IS(PREPARED(2, 2), "");
	IS(PREPARED(1, 1), "");                 /* of another */
	IS(PREPARED(1, 2), "STORE 10 e 2 next 5 of 0 1 2 going 1");
	IS(PREPARED(1, 2), "");                 /* the decision is being stored */
	IS(STORED(), ">0 DECIDE@1 2; >1 DECIDE@1 2; >2 DECIDE@1 2; >3 DECIDE@1 2");
	assert_false(hd_co_find(c->co, 3)->decided);
	IS(PREPARED(1, 2), "");
	IS(CO(HALT, .code = 75, .text = "t"),
		"STORE 11 e 2 next 5 of 0 1 2 halting going 1; >0 PREPARE@1 2 after 0 1 2 of 0 2; >0 "
		"DECIDE@1 2; >0 STOP@1 75 t; "
		">1 PREPARE@1 2 after 0 1 2 of 0 2; >1 DECIDE@1 2; >1 STOP@1 75 t; >2 SEND_STATE@1 3; >2 "
		"PREPARE@1 2 after 0 1 2 of 0 2; "
		">2 DECIDE@1 2; >2 STOP@1 75 t; >3 DECIDE@1 2");
	/* in force: leavers have left; the record names the others; STOP goes to new members */
	IS(FROM(0, PROGRESS, .epoch = 2),
		"STORE 12 e 2 next 5 of 0 2 halting; NOTE view; >1 ENTERED@2; >3 ENTERED@2; >4 ENTERED@2; "
		">0 STOP@2 75 t; >2 SEND_STATE@2 3; "
		">2 STOP@2 75 t");
	assert_int_equal(hd_co_find(c->co, 1)->state, HD_W_LEFT);
	assert_int_equal(hd_co_find(c->co, 4)->state, HD_W_LEFT);
	co_end(c);
}

/* A worker that left before the change, or whose slot is reused, is neither asked nor waited for. */
static void who_left_takes_no_part_in_a_change(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int away = 0; away < 2; away++) {
		co_run(c, &co_config, 3);
		CO(LOST, .worker = 1, .why = HD_CLOSED);
		co_return(c, 1, 11, true);        /* a new epoch, in which worker 1 has not said a word */
		STORED();
		for (uint32_t i = 0; i < 3; i++)
			FROM(i, STATUS, .epoch = 2, .status = { .member = true, .at = 0 });
		FROM(0, PROGRESS, .epoch = 2);
		FROM(2, PROGRESS, .epoch = 2);
		hd_co_find(c->co, 1)->spoke = 1;
		IS(CO(SCALE, .n = 2), "STORE 7 e 2 next 3 of 0 1 2; NOTE scale");
		if (away)
			co_crowd(c);
		const char *said = FROM(1, LEAVE, .epoch = 1, .leave = { .gone = true });
		CHECK(!strncmp(said, "NOTE leave 1; STORE", 19) && strstr(said, " e 3 next"), "%s", said);
		if (away) {
			CO(LOST, .worker = 1, .why = HD_CLOSED);
			co_join(c, 0, 999);
			assert_null(hd_co_find(c->co, 1));
		}
		said = CO(STORED, .serial = c->co->phase_serial, .ok = true);
		CHECK(!strcmp(said, ">0 PREPARE@2 3 after 0 1 2 of 0 2; >2 PREPARE@2 3 after 0 1 2 of 0 2"),
			"%s", said);
		FROM(0, PREPARED, .epoch = 2, .decided = { 3 });
		FROM(2, PREPARED, .epoch = 2, .decided = { 3 });
		STORED();
		said = FROM(2, PROGRESS, .epoch = 3);
		CHECK(strstr(said, "NOTE view") && c->co->view.nmembers == 2, "%s", said);
		co_end(c);
	}
}

/* Not in time: workers that take part, one after the other; standbys are none of them. */
static void only_who_is_asked_to_prepare_can_be_late(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 4);
	co_one_more(c, 2);
	co_admit(c, 3);
	STORED();
	int64_t asked = c->now;
	PREPARED(0, 2);
	PREPARED(1, 2);
	PREPARED(2, 2);
	IS(co_tick_at(c, asked + 9 * CO_T), "");        /* all are prepared: the decision is being stored */
	IS(STORED(), ">0 DECIDE@1 2; >1 DECIDE@1 2; >2 DECIDE@1 2; >3 DECIDE@1 2");
	IS(co_tick_at(c, asked + 10 * CO_T), "");
	co_end(c);

	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	co_synced(c, 3);
	STORED();
	asked = c->now;
	PREPARED(0, 2);
	PREPARED(1, 2);
	IS(co_tick_at(c, asked + 8 * CO_T),
		"NOTE lost 3; >1 SEND_STATE@1 3 no more; >3 STALE@1; DROP 3; END 3; NOTE void");
	co_end(c);

	co_run(c, &co_config, 2);
	CO(SCALE, .n = 4);
	co_one_more(c, 2);
	co_admit(c, 3);
	STORED();
	asked = c->now;
	PREPARED(0, 2);
	IS(co_tick_at(c, asked + 8 * CO_T),
		"NOTE lost 1; >1 STALE@1; DROP 1; END 1; >1 SEND_STATE@1 2 no more; NOTE void; STORE 10 e 3 "
		"next 4 of 0 1; "
		">2 SYNC@1 0 100000002; >0 SEND_STATE@1 2");
	co_end(c);
}

/* Of the ready workers the lowest ids come first, whatever their slots; those away or leaving do not
 * count. */
static void of_those_who_are_ready_the_oldest_come_first(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 9,
		.target = 2, .nmembers = 2, .member = { 0, 1 },
		.started = true };
	for (int turn = 0; turn < 2; turn++) {
		co_take_over(c, &config, 0);
		CO(SCALE, .n = 4);
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t id = (i == 0) == turn ? 6 : 5;
			co_return(c, id, 10 + id, false);
			co_ready_to_sync(c, id);
		}
		hd_co_find(c->co, 5)->state = hd_co_find(c->co, 6)->state = HD_W_READY;
		CO(SCALE, .n = 3);
		const char *said = STORED();
		CHECK(strstr(said, ">5 PREPARE@5 6 after 0 1 of 0 1 5") && !strstr(said, ">6"), "%s", said);
		co_end(c);
	}
	for (int row = 0; row < 2; row++) {
		co_run(c, &co_config, 2);
		CO(SCALE, .n = 3);
		co_admit(c, 2);
		co_ready_to_sync(c, 2);
		if (row == 1)
			CO(DRAIN, .worker = 2);
		const char *said = co_synced(c, 2);
		CHECK((strstr(said, "STORE") != NULL) == (row != 1), "row %d: %s", row, said);
		co_end(c);
	}
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	hd_co_find(c->co, 2)->state = HD_W_READY;
	IS(CO(REPLAN), "");
	co_end(c);

	co_run(c, &co_config, 2);                /* one is added once, however many there is room for */
	CO(SCALE, .n = 4);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	co_synced(c, 2);
	IS(STORED(),
		">0 PREPARE@1 2 after 0 1 of 0 1 2; >1 PREPARE@1 2 after 0 1 of 0 1 2; >2 PREPARE@1 2 after "
		"0 1 of 0 1 2");
	co_end(c);
}

/* A change waits until all present members have sent something in the view; leavers need not, nor
 * workers without a slot. */
static void a_change_waits_until_all_who_are_here_have_entered(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int away = 0; away < 2; away++) {
		co_run(c, &co_config, 3);
		hd_co_find(c->co, 2)->spoke = 0;
		IS(CO(SCALE, .n = 1), "STORE 6 e 1 next 3 of 0 1 2; NOTE scale");
		if (away)
			co_crowd(c);
		const char *said = FROM(2, LEAVE, .leave = { .gone = true });
		CHECK(strstr(said, "STORE") && c->co->phase == HD_CO_NUMBERING, "%s", said);
		co_end(c);
	}
	co_run(c, &co_config, 3);
	co_crowd(c);
	hd_co_find(c->co, 1)->spoke = hd_co_find(c->co, 2)->spoke = 0;
	CO(SCALE, .n = 1);
	FROM(2, LEAVE, .leave = { .gone = true });
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	co_admit(c, c->co->record.next_worker);
	assert_null(hd_co_find(c->co, 2));
	IS(FROM(1, PROGRESS, .epoch = 1), "STORE 133 e 2 next 129 of 0 1 2");
	co_end(c);
}

/* Rule 8: workers that cannot save are not left alone; rule 6: nor fewer than `min`. */
static void who_goes_waits_for_one_who_can_save(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 1);
	co_admit_remote(c, 1);
	co_ready_to_sync(c, FAR(1));
	co_synced(c, FAR(1));
	STORED();
	PREPARED(0, 2);
	PREPARED(FAR(1), 2);
	STORED();
	FROM(0, PROGRESS, .epoch = 2);
	FROM(FAR(1), PROGRESS, .epoch = 2);
	assert_int_equal(c->co->view.nmembers, 2);
	IS(CO(DRAIN, .worker = 0), "STORE 8 e 2 next 2 of 0 1000001 going 0; SPAWN 1");
	co_end(c);

	co_run(c, &co_config, 1);
	IS(CO(DRAIN, .worker = 0),
		"STORE 4 e 1 next 1 of 0 going 0; SPAWN 1; NOTE halt; STORE 5 e 1 next 1 of 0 halting going "
		"0; "
		">0 STOP@1 75 all its workers were asked to leave");        /* that all are to go is a halt */
	co_end(c);
}

/* Rule 9. Of the leavers the oldest stay for now; a worker that left holds nothing. */
static void of_holders_of_slots_the_oldest_stay(void **state)
{
	static const char *const is[] = { "", "", ">0 PREPARE@1 2 after 0 1 2 3 of 0 1 2",
		">0 PREPARE@1 2 after 0 1 2 3 of 0 1" };
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	for (uint32_t copies = 1; copies < 4; copies++) {
		config.copies = copies;
		co_run(c, &config, 4);
		CO(SCALE, .n = 1);
		const char *said = STORED();
		CHECK(*is[copies] ? !strncmp(said, is[copies], strlen(is[copies])) &&
			said[strlen(is[copies])] == ';' : !*said, "%u: %s", copies, said);
		co_end(c);
	}
	config.copies = 2;
	co_run(c, &config, 4);                   /* none can be kept */
	hd_co_find(c->co, 0)->spoke = 0;
	CO(SCALE, .n = 2);
	FROM(1, LEAVE, .leave = { .gone = true });
	FROM(2, LEAVE, .leave = { .gone = true });
	FROM(0, PROGRESS, .epoch = 1);
	IS(STORED(), ">0 PREPARE@1 2 after 0 1 2 3 of 0 3; >3 PREPARE@1 2 after 0 1 2 3 of 0 3");
	co_end(c);
	for (int away = 0; away < 2; away++) {
		co_run(c, &config, 4);
		if (away)
			co_crowd(c);
		hd_co_find(c->co, 0)->spoke = 0;         /* nothing is opened yet */
		CO(SCALE, .n = 1);
		FROM(1, LEAVE, .leave = { .gone = true });
		if (away) {
			CO(LOST, .worker = 1, .why = HD_CLOSED);
			co_admit(c, c->co->record.next_worker);
			assert_null(hd_co_find(c->co, 1));
		}
		FROM(0, PROGRESS, .epoch = 1);
		assert_int_equal(c->co->phase, HD_CO_NUMBERING);
		IS(STORED(),
			">0 PREPARE@1 2 after 0 1 2 3 of 0 2 3; >2 PREPARE@1 2 after 0 1 2 3 of 0 2 3; >3 "
			"PREPARE@1 2 after 0 1 2 3 of 0 2 3");
		co_end(c);
	}
}

/* As many members as there may be, all to be relieved: there is no place for one more. */
static void no_more_members_are_kept_than_there_may_be(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.max = HD_MAX_MEMBERS;
	config.copies = 2;
	config.nvns = HD_MAX_MEMBERS;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 80,
		.target = HD_MAX_MEMBERS,
		.nmembers = HD_MAX_MEMBERS, .started = true };
	for (uint32_t i = 0; i < HD_MAX_MEMBERS; i++)
		config.record.member[i] = i;
	co_take_over(c, &config, 0);
	for (uint32_t i = 0; i < 3; i++) {
		CO(REPLACE, .worker = i, .ok = true);
		co_return(c, 70 + i, 80 + i, false);
		co_ready_to_sync(c, 70 + i);
	}
	for (uint32_t i = 0; i < 3; i++)
		hd_co_find(c->co, 70 + i)->state = HD_W_READY;
	CO(REPLAN);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_int_equal(c->co->next.nmembers, HD_MAX_MEMBERS);
	co_end(c);
}

/* In force: joiners whose source left sync again; all others are unchanged; dead workers get no message. */
static void a_change_in_force_leaves_the_others_as_they_are(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	CO(SCALE, .n = 4);
	co_admit(c, 3);
	co_admit(c, 4);
	co_admit(c, 5);
	co_ready_to_sync(c, 3);                           /* from the youngest */
	co_ready_to_sync(c, 4);                           /* stands by */
	IS(CO(SCALE, .n = 3), "STORE 10 e 1 next 6 of 0 1 2; NOTE scale");
	IS(CO(DRAIN, .worker = 2),
		"STORE 11 e 1 next 6 of 0 1 2 going 2; STORE 12 e 2 next 6 of 0 1 2 going 2");
	STORED();
	prepare_all(c, 3, 2);
	STORED();
	CO(LOST, .worker = 5, .why = HD_SILENT);
	IS(co_tick_at(c, c->now + CO_T), "NOTE lost 5; >5 STALE@1; DROP 5; END 5");
	IS(FROM(0, PROGRESS, .epoch = 2),
		"STORE 14 e 2 next 6 of 0 1; NOTE view; >2 ENTERED@2; >3 ENTERED@2; >2 SEND_STATE@2 3 no "
		"more; "
		">4 ENTERED@2; "
		">3 SYNC@2 1 100000002; >1 SEND_STATE@2 3");
	co_end(c);
}

/* Nor do they hear again what they heard. */
static void a_change_in_force_repeats_nothing(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 4);
	co_admit(c, 2);
	co_admit(c, 3);
	co_ready_to_sync(c, 2);
	co_ready_to_sync(c, 3);
	co_synced(c, 2);
	STORED();
	prepare_all(c, 3, 2);
	STORED();
	IS(FROM(0, PROGRESS, .epoch = 2),
		">1 SEND_STATE@1 2 no more; STORE 10 e 2 next 4 of 0 1 2; NOTE view; >3 ENTERED@2");
	co_end(c);
}

/* ---- seals and commits ---- */

static void seals_count_in_the_view_that_is_in_force(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	/* what a joiner announces is no record, and no seal of its step before it is a member */
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	STORED();
	prepare_all(c, 3, 2);
	STORED();
	IS(FROM(2, SEAL, .epoch = 2, .seal = { .step = 0, .news = { .loss_sum = 9 } }), "");
	co_seal(c, 0, 1, 0);
	IS(co_seal(c, 1, 1, 0), "COMMIT 0@1");
	assert_true(c->done.at[0].news->loss_sum == 0);
	co_end(c);

	/* the view that it announced is in force before it is heard */
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	STORED();
	prepare_all(c, 3, 2);
	STORED();
	FROM(0, PROGRESS, .epoch = 2);
	for (uint32_t i = 0; i < 2; i++)
		IS(FROM(i, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1,
			.state_digest = 7 }), "");
	IS(FROM(2, SEAL, .epoch = 2, .seal = { .step = 0 }), "COMMIT 0@2");
	co_end(c);

	/* the record that it hands on counts while no member's is here */
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	STORED();
	prepare_all(c, 3, 2);
	STORED();
	FROM(2, SEAL, .epoch = 2, .seal = { .step = 0, .news = { .loss_sum = 9, .samples = 8 } });
	co_seal(c, 0, 1, 0);
	IS(co_seal(c, 1, 1, 0), "COMMIT 0@1");
	assert_true(c->done.at[0].news->loss_sum == 9);
	co_end(c);

	co_run(c, &co_config, 2);                /* one comes late: it has sealed more */
	seal_all_but_last(c, 2, 4);
	co_seal(c, 1, 1, 3);
	IS(co_seal(c, 1, 1, 1), "");
	assert_int_equal(hd_co_find(c->co, 1)->sealed, 4);
	co_end(c);

	/* a record that is committed does not take the place of one that is not */
	co_run(c, &co_config, 2);
	co_seal(c, 0, 1, 0);
	co_seal(c, 1, 1, 0);
	co_seal(c, 0, 1, HD_CO_NEWS);
	IS(co_seal(c, 0, 1, 0), "");
	const char *said = co_seal(c, 1, 1, HD_CO_NEWS + 1);
	CHECK(!strcmp(said + strlen(said) - 12, "COMMIT 512@1"), "%s", said + strlen(said) - 20);
	co_end(c);

	co_begin(c, &co_config);                 /* before there is a view there is nothing to seal */
	for (uint32_t i = 0; i < 2; i++) {
		co_admit(c, i);
		IS(co_seal(c, i, 0, 0), "");
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	STORED();
	FROM(0, STATUS, .epoch = 1, .status = { .at = 0 });
	FROM(1, STATUS, .epoch = 1, .status = { .at = 0 });
	STORED();
	IS(co_seal(c, 1, 1, 0), "");
	IS(co_seal(c, 0, 1, 0), "COMMIT 0@1");
	co_end(c);
}

/* There are no digests to compare. */
static void a_digest_of_one_and_none_of_another_end_the_job(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	FROM(0, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1, .state_digest = 7 });
	IS(co_seal(c, 1, 1, 0), "NOTE integrity 1; >0 RELEASE@1 5; >1 RELEASE@1 5");
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_planners_map_of_others_is_not_taken),
		cmocka_unit_test(a_source_is_here_and_stays),
		cmocka_unit_test(as_many_as_are_wanted_are_synced),
		cmocka_unit_test(who_syncs_anew_voids_its_own_change_alone),
		cmocka_unit_test(without_memory_nothing_is_opened),
		cmocka_unit_test(all_of_both_views_prepare_and_nobody_else),
		cmocka_unit_test(who_left_takes_no_part_in_a_change),
		cmocka_unit_test(only_who_is_asked_to_prepare_can_be_late),
		cmocka_unit_test(of_those_who_are_ready_the_oldest_come_first),
		cmocka_unit_test(a_change_waits_until_all_who_are_here_have_entered),
		cmocka_unit_test(who_goes_waits_for_one_who_can_save),
		cmocka_unit_test(of_holders_of_slots_the_oldest_stay),
		cmocka_unit_test(no_more_members_are_kept_than_there_may_be),
		cmocka_unit_test(a_change_in_force_leaves_the_others_as_they_are),
		cmocka_unit_test(a_change_in_force_repeats_nothing),
		cmocka_unit_test(seals_count_in_the_view_that_is_in_force),
		cmocka_unit_test(a_digest_of_one_and_none_of_another_end_the_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
