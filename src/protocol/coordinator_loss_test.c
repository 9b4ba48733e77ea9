#include "protocol/testing_coordinator.h"

/* Suspected, dead and gone workers, and the reports on them (rules 3, 4, 5 and 14): each guard by
 * itself. */

#define SUSPECTS(by, suspect_, why_) FROM(by, SUSPECT, .epoch = 1, .suspect = { suspect_, why_ })
#define GONE(w) FROM(w, LEAVE, .leave = { .gone = true })
#define FIRST_AT(w) MEMBER_AT(w, 2, 0)

/* Worker 2 is ready, and a change with it is as far as `phase`; worker 3 only stands by. */
static void change_with_2(struct co_at_work *c, enum hd_co_phase phase)
{
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_admit(c, 3);
	co_ready_to_sync(c, 2);
	co_ready_to_sync(c, 3);
	co_synced(c, 2);
	if (phase > HD_CO_NUMBERING)
		STORED();
	for (uint32_t i = 0; i < 3 && phase > HD_CO_PREPARING; i++)
		FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
	if (phase > HD_CO_DECIDING)
		STORED();
	assert_int_equal(c->co->phase, phase);
}

/* Members 0 and 1 are asked in epoch 3, and worker 2, which was decided into a view that worker 0 is lost
 * of. */
static void ask_with_2(struct co_at_work *c)
{
	change_with_2(c, HD_CO_DECIDED);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	assert_int_equal(c->co->phase, HD_CO_ASKING);
}

/* ---- rule 5 ---- */

/* Reports are of members, and count by reporter, wherever it is in the table. */
static void reports_count_by_who_makes_them(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);                /* of the last place in the table */
	co_crowd(c);
	const uint32_t last = HD_MAX_WORKERS - 1;
	CO(SCALE, .n = 3);
	co_ready_to_sync(c, last);
	co_synced(c, last);
	STORED();
	FROM(0, PREPARED, .epoch = 1, .decided = { 2 });
	FROM(1, PREPARED, .epoch = 1, .decided = { 2 });
	FROM(last, PREPARED, .epoch = 1, .decided = { 2 });
	STORED();
	FROM(0, PROGRESS, .epoch = 2);
	assert_int_equal(hd_co_find(c->co, last)->state, HD_W_MEMBER);
	FROM(last, SUSPECT, .epoch = 2, .suspect = { 1, HD_CLOSED });
	const char *said = CO(LOST, .worker = 1, .why = HD_CLOSED);
	CHECK(!strncmp(said, "NOTE lost 1; END 1; STORE", 25), "%s", said);
	co_end(c);

	co_run(c, &co_config, 3);                /* T counts from the first report */
	SUSPECTS(0, 2, HD_SILENT);
	int64_t first = c->now;
	co_tick_at(c, first + CO_T / 2);
	SUSPECTS(1, 2, HD_SILENT);
	IS(co_heard_at(c, first + CO_T - 4), "");
	IS(co_heard_at(c, first + CO_T),
		"NOTE lost 2; >2 STALE@1; DROP 2; END 2; STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);

	co_run(c, &co_config, 4);                /* whoever left is not to be expelled any more */
	SUSPECTS(0, 1, HD_SILENT);
	SUSPECTS(2, 1, HD_SILENT);
	GONE(1);
	SUSPECTS(0, 3, HD_SILENT);
	said = co_heard_at(c, c->now + CO_T);
	CHECK(strstr(said, "NOTE lost 3") && !strstr(said, "NOTE lost 1"), "%s", said);
	co_end(c);

	/* of equals the higher id goes, wherever it stands in the table */
	co_run(c, &co_config, 3);
	co_crowd(c);
	GONE(1);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	const uint32_t higher = HD_MAX_WORKERS;
	co_admit(c, higher);
	assert_true(hd_co_find(c->co, higher) < hd_co_find(c->co, 2));
	hd_co_find(c->co, higher)->state = HD_W_MEMBER;
	SUSPECTS(2, higher, HD_SILENT);
	SUSPECTS(higher, 2, HD_SILENT);
	said = co_heard_at(c, c->now + CO_T);
	CHECK(strstr(said, "NOTE lost 128") && !strstr(said, "NOTE lost 2;"), "%s", said);
	co_end(c);

	/* one that has not called a new coordinator yet is not missed here */
	struct hd_co_config config = co_config;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 2,
		.target = 2, .nmembers = 2, .member = { 0, 1 },
		.started = true };
	co_begin(c, &config);
	CO(TICK);
	co_return(c, 0, 10, true);
	IS(SUSPECTS(0, 1, HD_CLOSED), "");
	co_end(c);
}

/* A link that is down and silent is down. */
static void what_is_closed_stays_closed(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(FROM(1, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }), "");
	CO(LOST, .worker = 1, .why = HD_HEARD);  /* nor is it there again without a call */
	IS(co_tick_at(c, c->now + CO_T), "NOTE lost 1; END 1; STORE 5 e 2 next 2 of 0 1");
	co_end(c);

	co_run(c, &co_config, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	CO(LOST, .worker = 1, .why = HD_HEARD);
	IS(co_tick_at(c, c->now + CO_T), "NOTE lost 1; END 1; STORE 5 e 2 next 2 of 0 1");
	co_end(c);

	co_run(c, &co_config, 2);                /* one that is silent and calls again lost nothing */
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(co_return(c, 1, 11, true), ">1 PEER@1 0 a; >0 PEER@1 1 b; >1 FENCE@1; >1 VIEW@1 0 of 0 1");
	co_end(c);

	co_run(c, &co_config, 3);                /* nor is a new epoch due while all are asked in one */
	CO(LOST, .worker = 2, .why = HD_EXITED);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	STORED();
	IS(co_return(c, 1, 11, true), ">1 PEER@1 0 a; >0 PEER@1 1 b; >1 FENCE@2 dead 2");
	FIRST_AT(0);
	IS(FIRST_AT(1), ">0 VIEW@2 0 of 0 1; >1 VIEW@2 0 of 0 1; NOTE view; "
	"STORE 7 e 2 next 3 of 0 1; SPAWN 1");
	co_end(c);
}

static void only_a_member_that_is_busy_can_be_hung(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_admit(c, 2);
	FROM(2, PROGRESS, .epoch = 1, .progress = { 0, 5, 0, true });
	IS(co_tick_at(c, 5 * CO_T), "");
	co_end(c);

	co_run(c, &co_config, 2);                /* it had nothing to do */
	FROM(1, PROGRESS, .epoch = 1, .progress = { 0, 5, 0, true });
	co_tick_at(c, c->now + CO_T);
	FROM(1, PROGRESS, .epoch = 1, .progress = { 0, 5, 0, false });
	co_tick_at(c, c->now + CO_T / 2);
	FROM(1, PROGRESS, .epoch = 1, .progress = { 0, 5, 0, true });
	IS(co_tick_at(c, c->now + 5 * CO_T / 4), "");
	IS(co_tick_at(c, c->now + CO_T / 2),
		"NOTE lost 1; >1 STALE@1; DROP 1; END 1; STORE 5 e 2 next 2 of 0 1");
	co_end(c);
}

/* A worker whose link is down for T is dead before those that have not answered for T: these may answer
 * when they are asked again. */
static void a_lost_link_is_judged_before_a_missing_answer(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 4);
	CO(LOST, .worker = 3, .why = HD_EXITED);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	STORED();
	FIRST_AT(0);
	IS(co_tick_at(c, c->now + CO_T), "NOTE lost 2; END 2; STORE 8 e 3 next 4 of 0 1 2 3");
	co_end(c);
}

/* ---- deaths ---- */

/* The loss of a worker that takes no part voids nothing and asks no one; of one that may have entered it
 * does. */
static void a_death_undoes_what_it_is_part_of_and_no_more(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int phase = HD_CO_NUMBERING; phase <= HD_CO_DECIDED; phase++) {
		change_with_2(c, (enum hd_co_phase)phase);
		IS(CO(LOST, .worker = 3, .why = HD_EXITED), "NOTE lost 3; END 3");
		assert_int_equal(c->co->phase, phase);
		co_end(c);
		change_with_2(c, (enum hd_co_phase)phase);
		IS(GONE(3), "NOTE leave 3");
		assert_int_equal(c->co->phase, phase);
		co_end(c);
		change_with_2(c, (enum hd_co_phase)phase);
		const char *said = GONE(2);
		CHECK(strstr(said, "NOTE void") && (strstr(said, "NOTE lost 2") != NULL) ==
			(phase > HD_CO_PREPARING), "%d: %s", phase, said);
		co_end(c);
	}
	/* a worker that is asked and leaves, or dies, or is not there any more */
	ask_with_2(c);
	IS(GONE(2),
		"NOTE leave 2; NOTE lost 2; >1 SEND_STATE@1 2 no more; >2 STALE@1; DROP 2; END 2; STORE 11 "
		"e 4 "
		"next 4 of 0 1 2");
	co_end(c);
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	IS(CO(LOST, .worker = 2, .why = HD_EXITED),
		"NOTE lost 2; >1 SEND_STATE@1 2 no more; END 2; STORE 9 e 4 next 3 of 0 1");
	co_end(c);
	co_run(c, &co_config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	IS(GONE(1), "NOTE leave 1; NOTE lost 1; >1 STALE@1; DROP 1; END 1; STORE 7 e 3 next 3 of 0 1 2");
	co_end(c);
}

/* A joiner whose source dies syncs again; one that may have entered is asked, as it may be the only
 * holder of the state. */
static void joiners_of_the_dead_sync_anew(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 4);
	co_admit(c, 2);
	co_admit(c, 3);
	co_ready_to_sync(c, 2);
	co_ready_to_sync(c, 3);
	IS(CO(LOST, .worker = 1, .why = HD_EXITED),
		"NOTE lost 1; END 1; STORE 8 e 2 next 4 of 0 1; >2 SYNC@1 0 100000003; >0 SEND_STATE@1 2");
	co_end(c);

	change_with_2(c, HD_CO_DECIDED);
	IS(CO(LOST, .worker = 1, .why = HD_EXITED),
		"NOTE lost 1; END 1; NOTE void; STORE 10 e 3 next 4 of 0 1 2; >3 SYNC@1 0 100000002; >0 "
		"SEND_STATE@1 3");
	assert_true(hd_co_find(c->co, 2)->state == HD_W_READY && hd_co_find(c->co, 2)->source == HD_NOBODY);
	co_end(c);

	change_with_2(c, HD_CO_DECIDED);         /* it has said since that it holds nothing */
	FROM(2, READY_TO_SYNC, .epoch = 1);
	IS(CO(LOST, .worker = 1, .why = HD_EXITED),
		"NOTE lost 1; END 1; STORE 11 e 4 next 4 of 0 1 2; >2 SYNC@1 0 100000003; >0 SEND_STATE@1 2; "
		">3 SYNC@1 0 100000004; "
		">0 SEND_STATE@1 3");
	co_end(c);
}

/* A member has no source: a worker that came in with a view after a loss is no joiner any more. */
static void a_member_has_no_source(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_one_more(c, 2);                       /* from worker 1 */
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	NEWCOMER_AT(2, 3, 0);
	MEMBER_AT(1, 3, 0);
	IS(STORED(), ">1 VIEW@3 0 of 1 2; >2 VIEW@3 0 of 1 2; NOTE view");
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(co_return(c, 1, 11, true), ">1 PEER@3 2 c; >2 PEER@3 1 b; >1 FENCE@3; >1 VIEW@3 0 of 1 2");
	IS(CO(LOST, .worker = 1, .why = HD_EXITED), "NOTE lost 1; END 1; STORE 10 e 4 next 3 of 1 2");
	assert_int_equal(hd_co_find(c->co, 2)->state, HD_W_MEMBER);
	co_end(c);
}

/* Rule 7: all present workers begin from the disk, whatever they were syncing. */
static void who_was_syncing_begins_from_the_disk(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);                           /* from worker 1 */
	GONE(1);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	assert_int_equal(c->co->phase, HD_CO_RESTORING);
	IS(CO(RESTORED, .step = 7), ">1 SEND_STATE@0 2 no more; >2 SYNC@0 -1 7");
	co_end(c);

	change_with_2(c, HD_CO_DECIDED);
	FROM(2, SEAL, .epoch = 2, .seal = { .step = 7 });
	assert_int_equal(hd_co_find(c->co, 2)->sealed, 8);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(NEWCOMER_AT(2, 4, 0),
		/* it never heard that it is a member */
		"STORE 12 e 4 next 4 not started; NOTE restore; RESTORE; SPAWN 1");
	assert_int_equal(hd_co_find(c->co, 2)->sealed, 0);      /* it announced a state that is no more */
	IS(CO(RESTORED, .step = 7), ">2 SYNC@0 -1 7; >3 SYNC@0 -1 7");
	co_end(c);
}

/* ---- messages and their senders ---- */

/* The view is in force, or decided; worker 2 enters it before the report, in time after it, or never. */
static void a_report_of_one_who_left_is_mended_while_it_matters(void **state)
{
	enum { BEFORE, AFTER, NEVER };
	struct co_at_work at, *c = &at;

	(void)state;
	for (int i = 0; i < 12; i++) {
		const int enters = i / 4, early = i % 2, first = i / 2 % 2;       /* before it left */
		co_run(c, &co_config, 3);
		CO(DRAIN, .worker = 1);
		STORED();
		for (uint32_t w = 0; w < 3; w++)
			FROM(w, PREPARED, .epoch = 1, .decided = { 2 });
		STORED();
		if (first)
			SUSPECTS(2, 1, HD_CLOSED);
		if (early)
			FROM(1, LEAVE, .epoch = 1, .leave = { .gone = true });
		else
			FROM(0, PROGRESS, .epoch = 2);
		assert_int_equal(hd_co_find(c->co, 1)->state, HD_W_LEFT);
		if (enters == BEFORE)
			FROM(2, PROGRESS, .epoch = 2);
		if (!first)
			IS(SUSPECTS(2, 1, HD_CLOSED), "");
		const int64_t said = c->now;
		if (enters == AFTER)
			FROM(2, PROGRESS, .epoch = 2);
		co_tick_at(c, said + CO_T / 2 - 9);
		assert_int_equal(c->co->phase, early && enters == NEVER ? HD_CO_DECIDED : HD_CO_IDLE);
		SUSPECTS(2, 1, HD_CLOSED);                /* since the first one */
		co_tick_at(c, said + CO_T / 2 + 1);
		CHECK((c->co->phase == HD_CO_FENCING) == (enters == NEVER), "%d: %s", i, c->text);
		co_end(c);
	}
	change_with_2(c, HD_CO_DECIDED);         /* of joiners that are not decided nothing is mended */
	IS(SUSPECTS(3, 0, HD_CLOSED), "");
	IS(SUSPECTS(2, 0, HD_CLOSED), "NOTE void; STORE 10 e 3 next 4 of 0 1 2");
	co_end(c);
}

/* Reports of a link to the dead come while the epoch that mends all links is under way, or is in force. */
static void a_loss_that_others_report_later_is_mended_once(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	assert_int_equal(c->co->phase, HD_CO_ASKING);
	SUSPECTS(0, 2, HD_CLOSED);
	MEMBER_AT(0, 2, 0);
	SUSPECTS(1, 2, HD_CLOSED);
	MEMBER_AT(1, 2, 0);
	assert_int_equal(c->co->view.epoch, 2);
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	FROM(0, SUSPECT, .epoch = 2, .suspect = { 2, HD_CLOSED });
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	co_end(c);
}

static void what_only_members_may_say_others_may_not(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_admit(c, 2);
	/* a failure with a code, of a member; without a code or a reason it is none, nor while all stop */
	IS(FROM(2, DONE, .epoch = 1, .done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" }), "");
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 0, .code = 0, .nwhy = 3, .why = "nan" }), "");
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 0, .code = 4 }), "");
	CO(HALT, .code = 75, .text = "t");
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 0, .code = 75, .nwhy = 1, .why = "t" }), "");
	co_end(c);

	co_run(c, &co_config, 2);                /* a transfer that is past makes no joiner of a member */
	IS(FROM(0, SYNCED, .synced = { HD_NOBODY, 0 }), "");
	assert_int_equal(hd_co_find(c->co, 0)->state, HD_W_MEMBER);
	co_admit(c, 2);
	/* nor is one that left sent away for what it says last, or to be asked to leave */
	GONE(2);
	IS(CO(DRAIN, .worker = 2), "");
	IS(FROM(2, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }), "");
	co_end(c);

	change_with_2(c, HD_CO_DECIDED);         /* what a joiner announces is no word of the view */
	FROM(0, PROGRESS, .epoch = 2);
	FROM(1, PROGRESS, .epoch = 2);
	FROM(2, SEAL, .epoch = 2, .seal = { .step = 0 });
	IS(CO(SCALE, .n = 2), "STORE 11 e 2 next 4 of 0 1 2; NOTE scale");
	IS(FROM(2, PROGRESS, .epoch = 2), "STORE 12 e 3 next 4 of 0 1 2");
	co_end(c);

	change_with_2(c, HD_CO_DECIDED);         /* it may have entered: it is a member to itself */
	IS(co_return(c, 2, 12, true),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 PEER@1 3 d; >3 PEER@1 2 c; "
		">2 ENTERED@1; "
		">2 PREPARE@1 2 after 0 1 of 0 1 2; >2 DECIDE@1 2");
	IS(FROM(2, LEAVE, .epoch = 1, .leave = { .code = 75 }),
		"NOTE leave 2; >3 SYNC@1 0 100000002; >0 SEND_STATE@1 3");
	assert_true(hd_co_find(c->co, 2)->draining && hd_co_find(c->co, 2)->state == HD_W_READY);
	IS(FROM(3, LEAVE, .epoch = 1, .leave = { .code = 75 }),
		"NOTE leave 3; >0 SEND_STATE@1 3 no more; SPAWN 1");       /* that one is none */
	assert_int_equal(hd_co_find(c->co, 3)->state, HD_W_LEFT);
	co_end(c);
}

/* Rule 13. What it holds is nothing any more, whatever it answered. */
static void who_gives_up_syncing_holds_nothing(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	ask_with_2(c);
	MEMBER_AT(2, 3, 1);
	IS(FROM(2, READY_TO_SYNC, .epoch = 3), ">1 SEND_STATE@1 2 no more; >2 SYNC@1 1 100000003; >1 "
		"SEND_STATE@1 2");
	IS(MEMBER_AT(1, 3, 0), ">1 VIEW@3 0 of 1; >2 VIEW@3 0 of 1; >3 VIEW@3 0 of 1; NOTE view; "
	"STORE 11 e 3 next 4 of 1");
	co_end(c);

	co_begin(c, &co_config);                 /* it had no source, and none gave up */
	co_admit(c, 0);
	co_ready_to_sync(c, 0);
	IS(co_ready_to_sync(c, 0), ">0 SYNC@0 -1 0");
	co_end(c);

	/* it had caught up; its source gave up before it was a member */
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	IS(FROM(2, READY_TO_SYNC, .epoch = 1, .ready_to_sync = { hd_co_find(c->co, 2)->transfer }),
		">1 SEND_STATE@1 2 no more; NOTE void; NOTE aside 2");
	assert_int_equal(hd_co_find(c->co, 2)->state, HD_W_BACKOFF);
	co_end(c);
}

/* ---- the end ---- */

static void what_ends_has_ended(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_admit(c, 2);
	GONE(2);                                 /* it is gone: it needs no RELEASE */
	IS(FROM(1, DONE, .epoch = 1, .done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" }),
		"NOTE done 1; >0 RELEASE@1 4; >1 RELEASE@1 4");
	/* the first counts */
	IS(FROM(0, DONE, .epoch = 1, .done = { .step = 0, .code = 5, .nwhy = 3, .why = "inf" }),
		"NOTE done 0");
	CO(LOST, .worker = 1, .why = HD_SILENT);
	IS(co_tick_at(c, c->now + 2 * CO_T), "");        /* a worker that sends nothing may be gone */
	IS(CO(SCALE, .n = 3), "STORE 6 e 1 next 3 of 0 1");
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	IS(CO(LOST, .worker = 2, .why = HD_CLOSED), "EXIT 4 nan");
	IS(CO(HALT, .code = 75, .text = "t"), "");
	co_end(c);
}

/* What is wanted is noted before what comes of it; a long list of actions is whole. */
static void actions_come_in_order_and_all_of_them(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	FROM(0, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .state_digest = 7 });
	FROM(1, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .state_digest = 7 });
	co_admit_remote(c, 3);
	c->co->noted_target = 0;
	IS(FROM(2, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .state_digest = 8 }),
		"NOTE scale; NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; "
		"STORE 7 e 2 next 4 of 0 1 2 mismatches 1 to 0; NOTE lost 0; >0 STALE@1; DROP 0; END 0; "
		"STORE 8 e 3 next 4 of 0 1 2 mismatches 1 to 0; NOTE lost 1; >1 STALE@1; DROP 1; END 1; "
		"STORE 9 e 4 next 4 of 0 1 2 mismatches 1 to 0; INVALIDATE 0");
	co_end(c);

	co_run(c, &co_config, 2);
	co_seal(c, 0, 1, 0);
	co_seal(c, 0, 1, 199);
	co_seal(c, 1, 1, 0);
	const char *said = co_seal(c, 1, 1, 199);
	char want[16384];
	size_t n = 0;
	for (unsigned s = 1; s < 200; s++)
		n += (size_t)snprintf(want + n, sizeof want - n, "%sCOMMIT %u@1%s", s > 1 ? "; " : "", s,
			s < 199 ? " lost" : "");
	IS(said, want);
	co_end(c);
}

/* Whatever memory there is: all of an answer, or the end. */
static void without_memory_the_job_ends(void **state)
{
	static const char *const is[] = {
		">g0 REFUSE@0 2; NOTE refused g0; SPAWN 2",
		"STORE 5 e 1 next 3 of 0 1; NOTE join 2",
		">1 PEER@1 0 a; >0 PEER@1 1 b; >1 FENCE@1; >1 VIEW@1 0 of 0 1",
		"NOTE lost 1; END 1; STORE 5 e 2 next 2 of 0 1",
		">0 FENCE@2 dead 1",
		">g2 ADMIT@1 2 for 12",
		"NOTE done 0; >0 RELEASE@1 4; >1 RELEASE@1 4",
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (int row = 0; row < 7; row++) {
		bool whole = false;
		const char *said = "";
		for (size_t budget = 64; !whole; budget += 64) {
			struct hd_co_config config = co_config;
			config.kernels.byte[0] = row == 0;
			if (row == 0)
				co_begin(c, &config);
			else
				co_run(c, &config, 2);
			if (row == 4)
				CO(LOST, .worker = 1, .why = HD_EXITED);
			if (row == 5)
				co_join(c, 2, 12);
			c->co->out.budget_bytes = budget;
			switch (row) {
			case 0: said = co_join(c, 0, 10); break;
			case 1: said = co_join(c, 2, 12); break;
			case 2: said = co_return(c, 1, 11, true); break;
			case 3: said = CO(LOST, .worker = 1, .why = HD_EXITED); break;
			case 4: said = STORED(); break;
			case 5: said = STORED(); break;
			default: said = FROM(0, DONE, .epoch = 1,
				.done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" }); break;
			}
			whole = strcmp(said, "EXIT 11 out of memory") != 0;
			c->co->out.budget_bytes = 0;
			if (whole)
				IS(said, is[row]);
			co_end(c);
		}
	}
}

/* It lives, and nothing that it had is lost: it is a joiner again, and the others go on. */
static void a_member_that_syncs_again_is_not_lost(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	FROM(2, READY_TO_SYNC, .epoch = 1);
	assert_string_equal(co_note_text(c, "resync"),
		"its source left before the transfer was complete: it syncs again");
	assert_string_equal(co_note_text(c, "lost"), "");
	assert_true(hd_co_find(c->co, 2)->state != HD_W_MEMBER && hd_co_find(c->co, 2)->up);
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_count_by_who_makes_them),
		cmocka_unit_test(what_is_closed_stays_closed),
		cmocka_unit_test(only_a_member_that_is_busy_can_be_hung),
		cmocka_unit_test(a_lost_link_is_judged_before_a_missing_answer),
		cmocka_unit_test(a_death_undoes_what_it_is_part_of_and_no_more),
		cmocka_unit_test(joiners_of_the_dead_sync_anew),
		cmocka_unit_test(a_member_has_no_source),
		cmocka_unit_test(who_was_syncing_begins_from_the_disk),
		cmocka_unit_test(a_report_of_one_who_left_is_mended_while_it_matters),
		cmocka_unit_test(a_loss_that_others_report_later_is_mended_once),
		cmocka_unit_test(what_only_members_may_say_others_may_not),
		cmocka_unit_test(who_gives_up_syncing_holds_nothing),
		cmocka_unit_test(what_ends_has_ended),
		cmocka_unit_test(actions_come_in_order_and_all_of_them),
		cmocka_unit_test(without_memory_the_job_ends),
		cmocka_unit_test(a_member_that_syncs_again_is_not_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
