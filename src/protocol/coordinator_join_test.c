#include "protocol/testing_coordinator.h"

#include "base/alloc.h"

/* Admission, and what a worker may send before it takes part. */

/* Rule 1: no id is sent before the record that has it is stored. */
static void a_number_is_told_when_it_is_stored(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	IS(CO(TICK), "SPAWN 2");
	IS(co_join(c, 0, 10), "STORE 1 e 0 next 1 not started; NOTE join 0");
	IS(co_join(c, 1, 11), "STORE 2 e 0 next 2 not started; NOTE join 1");
	IS(co_join(c, 3, 10), "");              /* it asks again, over another link */
	IS(CO(STORED, .serial = 1, .ok = false), "");
	IS(CO(TICK), "STORE 2 e 0 next 2 not started");
	IS(CO(STORED, .serial = 1, .ok = true), ">g3 ADMIT@0 0 for 10");
	IS(CO(STORED, .serial = 1, .ok = true), "");
	IS(co_join(c, 4, 10), ">g4 ADMIT@0 0 for 10");              /* it has not heard it */
	IS(CO(STORED, .serial = 2, .ok = true), ">g1 ADMIT@0 1 for 11");
	IS(co_return(c, 0, 10, false), ">0 PEER@0 1 b");
	/* it came back: the same process joins as another one */
	IS(co_join(c, 5, 10), "STORE 3 e 0 next 3 not started; NOTE lost 0; >0 STALE@0; DROP 0; NOTE join 2");
	IS(CO(STORED, .serial = 3, .ok = true), ">g5 ADMIT@0 2 for 10");
	co_end(c);
}

/* The worker that it was is out at once, and its process is not ended, neither now nor T later. Of two that
 * were asked for, the other one is still to come. */
static void a_process_that_joins_again_is_another_worker(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	CO(SCALE, .n = 3);
	STORED();
	assert_int_equal(c->co->spawned, 1);
	IS(co_join(c, 2, 11), "STORE 6 e 1 next 3 of 0 1; NOTE lost 1; STORE 7 e 2 next 3 of 0 1; "
		"NOTE join 2");
	assert_int_equal(c->co->spawned, 1);
	IS(CO(LOST, .worker = 1, .why = HD_EXITED), "");
	/* one of another machine may have the same number */
	IS(co_hear(c, CO_GUEST + 4, true, (struct hd_msg){ .kind = HD_MSG_JOIN, .join = {
		.worker = HD_NOBODY, .ndevices = 1, .nonce = 9, .nhost = 6, .host = "pid:10" } }),
		"STORE 8 e 2 next 4 of 0 1; NOTE join 1000003; NOTE scale");
	co_end(c);
}

static void who_cannot_take_part_is_refused(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.job.byte[0] = 1;
	config.kernels.byte[0] = 2;
	co_begin(c, &config);
	IS(FROM(CO_GUEST, JOIN, .join = { .worker = HD_NOBODY, .nonce = 1, .kernels = config.kernels }),
		">g0 REFUSE@0 2; NOTE refused g0; SPAWN 2");
	IS(FROM(CO_GUEST, JOIN, .join = { .worker = HD_NOBODY, .nonce = 1, .job = config.job }),
		">g0 REFUSE@0 2; NOTE refused g0");
	IS(FROM(CO_GUEST, JOIN, .join = { .worker = HD_NOBODY, .nonce = 1, .job = config.job,
		.kernels = config.kernels }),
		"STORE 1 e 0 next 1 not started; NOTE join 0");
	c->co->record.next_worker = HD_REMOTE_WORKER;    /* numbers are used up */
	IS(FROM(CO_GUEST, JOIN, .join = { .worker = HD_NOBODY, .nonce = 2, .job = config.job,
		.kernels = config.kernels }),
		">g0 REFUSE@0 10; NOTE refused g0");
	co_end(c);

	co_run(c, &co_config, 1);
	CO(HALT, .code = 75, .text = "asked");
	FROM(0, DONE, .epoch = 1, .done = { .step = 0, .code = 75 });
	IS(co_join(c, 5, 15), ">g5 REFUSE@1 10; NOTE refused g5");              /* the run is over */
	co_end(c);
}

/* The table has HD_MAX_WORKERS slots; of gone workers the slot of the lowest id is reused, unless its
 * link is up. */
static void places_are_given_to_others_when_workers_are_gone(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	for (uint32_t i = 0; i < HD_MAX_WORKERS; i++) {
		co_join(c, 0, 100 + i);
		STORED();
		FROM(i, JOIN, .join = { .worker = i, .ndevices = 1, .nonce = 100 + i });
	}
	IS(co_join(c, 0, 999), ">g0 REFUSE@0 10; NOTE refused g0");
	FROM(7, LEAVE, .leave = { .gone = true });
	IS(co_join(c, 0, 999), ">g0 REFUSE@0 10; NOTE refused g0");
	CO(LOST, .worker = 7, .why = HD_CLOSED);
	FROM(3, LEAVE, .leave = { .gone = true });
	CO(LOST, .worker = 3, .why = HD_CLOSED);
	assert_int_equal(c->co->worker[3].worker, 3);
	IS(co_join(c, 0, 999), "STORE 129 e 0 next 129 not started; NOTE join 128");
	assert_int_equal(c->co->worker[3].worker, HD_MAX_WORKERS);
	assert_int_equal(c->co->worker[7].worker, 7);
	co_end(c);
}

static void who_comes_back_under_a_number_that_is_not_its_own_is_sent_away(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	co_join(c, 0, 10);
	STORED();
	IS(co_return(c, 0, 11, false), ">0 STALE@0; DROP 0");     /* another nonce */
	IS(co_return(c, 0, 10, true), ">0 STALE@0; DROP 0");      /* it takes itself for a member */
	IS(co_return(c, 1, 11, false), ">1 STALE@0; DROP 1");     /* never given */
	IS(co_return(c, 0, 10, false), "");
	FROM(0, LEAVE, .leave = { .gone = true });
	IS(co_return(c, 0, 10, false), ">0 STALE@0; DROP 0");     /* it left */
	co_end(c);
}

/* What the previous coordinator knew of joiners is lost: they start over. */
static void a_joiner_of_the_coordinator_before_is_taken_in_again(void **state)
{
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 4,
		.target = 3, .nmembers = 2, .member = { 0,
		1 }, .started = true };
	co_begin(c, &config);
	IS(CO(TICK), "STORE 10 e 5 next 4 of 0 1");
	IS(co_return(c, 0, 10, true), "");
	IS(co_return(c, 3, 13, false), ">3 PEER@0 0 a; >0 PEER@0 3 d");
	IS(co_return(c, 4, 14, false), ">4 STALE@0; DROP 4");     /* beyond the numbers that were given */
	/* a member of a view that the record does not have */
	IS(co_return(c, 2, 12, true), ">2 STALE@0; DROP 2");
	IS(STORED(), ">0 FENCE@5; >3 FENCE@5");
	IS(co_return(c, 1, 11, true),
		">1 PEER@0 0 a; >0 PEER@0 1 b; >1 PEER@0 3 d; >3 PEER@0 1 b; >1 FENCE@5");
	IS(FROM(3, SYNCED, .synced = { 0, 77 }), "");         /* of a transfer of the one before */
	assert_int_equal(hd_co_find(c->co, 3)->state, HD_W_STANDBY);
	IS(FROM(0, STATUS, .epoch = 5, .status = { .at = 7, .member = true }), "");
	IS(FROM(1, STATUS, .epoch = 5, .status = { .at = 7, .member = true }),
		">0 VIEW@5 7 of 0 1; >1 VIEW@5 7 of 0 1; >3 VIEW@5 7 of 0 1; NOTE view; COMMIT 0@5 lost; "
		"COMMIT 1@5 lost; "
		"COMMIT 2@5 lost; COMMIT 3@5 lost; COMMIT 4@5 lost; COMMIT 5@5 lost; COMMIT 6@5 lost; >3 "
		"SYNC@5 1 400000001; "
		">1 SEND_STATE@5 3");
	co_end(c);

	config.record.started = false;
	config.record.nmembers = 0;
	config.step = 20;
	co_begin(c, &config);
	/* none synced: all begin from the disk */
	IS(co_return(c, 3, 13, false), ">3 STALE@0; DROP 3; SPAWN 3");
	co_end(c);
}

static void who_is_not_here_is_not_heard(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	IS(FROM(9, LEAVE, .epoch = 1, .leave = { .gone = true }), "");
	CO(LOST, .worker = 1, .why = HD_SILENT);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	IS(FROM(1, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }), "");
	co_return(c, 1, 11, true);
	IS(FROM(1, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }),
		"NOTE k 1");
	assert_string_equal(c->done.at[0].text, "{}");
	static const struct hd_spent_kind spent[] = { { 3, 1, 2, 3, 4, 5 } };
	IS(FROM(1, SPENT, .epoch = 1, .spent = { 7, 1, spent }), "SPENT 1@1 7 3.1");
	IS(FROM(9, SPENT, .epoch = 1, .spent = { 7, 1, spent }), "");
	IS(CO(LOST, .worker = 1, .why = HD_EXITED), "NOTE lost 1; END 1; STORE 6 e 3 next 2 of 0 1");
	IS(FROM(1, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }), "");
	hd_co_find(c->co, 1)->up = true;         /* dead to the job, and its link is there */
	IS(FROM(1, EVENT, .epoch = 1, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }),
		">1 STALE@1; DROP 1");
	co_end(c);
}

/* SYNC: from the disk while no member has the state, else from the member with fewest transfers, of
 * equal ones the highest id. */
static void who_is_wanted_is_synced(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.max = 6;
	config.step = 30;
	co_begin(c, &config);
	co_admit(c, 0);
	IS(co_ready_to_sync(c, 0), ">0 SYNC@0 -1 1e");
	IS(FROM(0, SYNCED, .synced = { 1, 30 }), "");
	IS(FROM(0, SYNCED, .synced = { HD_NOBODY, 31 }), "");
	assert_int_equal(hd_co_find(c->co, 0)->state, HD_W_SYNCING);
	IS(co_synced(c, 0), "");
	co_end(c);

	co_run(c, &config, 2);
	IS(CO(SCALE, .n = 5), "STORE 5 e 1 next 2 of 0 1; NOTE scale; SPAWN 3");
	co_admit(c, 2);
	IS(co_ready_to_sync(c, 2), ">2 SYNC@1 1 100000001; >1 SEND_STATE@1 2");
	co_admit(c, 3);
	IS(co_ready_to_sync(c, 3), ">3 SYNC@1 0 100000002; >0 SEND_STATE@1 3");
	co_admit(c, 4);
	IS(co_ready_to_sync(c, 4), ">4 SYNC@1 1 100000003; >1 SEND_STATE@1 4");
	co_admit(c, 5);
	IS(co_ready_to_sync(c, 5), "");                  /* more than are wanted: it stands by */
	IS(CO(SCALE, .n = 4), "STORE 10 e 1 next 6 of 0 1; NOTE scale");
	IS(FROM(3, LEAVE, .leave = { .gone = true }), "NOTE leave 3; >0 SEND_STATE@1 3 no more");
	/* its source's stream ended */
	IS(FROM(2, READY_TO_SYNC, .ready_to_sync = { 0 }), ">1 SEND_STATE@1 2 no more; >2 SYNC@1 0 "
		"100000004; >0 SEND_STATE@1 2");
	/* the one that stood by, and not from one that goes */
	IS(CO(DRAIN, .worker = 1),
		"STORE 11 e 1 next 6 of 0 1 going 1; >5 SYNC@1 0 100000005; >0 SEND_STATE@1 5; STORE 12 e 2 "
		"next 6 of 0 1 going 1");
	co_end(c);
}

static void who_teaches_is_told_again_when_it_comes_back(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	IS(co_return(c, 2, 12, false),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 ENTERED@1; >2 SYNC@1 1 "
		"100000001");
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	IS(co_return(c, 1, 11, true),
		">1 PEER@1 0 a; >0 PEER@1 1 b; >1 PEER@1 2 c; >2 PEER@1 1 b; >1 SEND_STATE@1 2; >1 FENCE@1; "
		">1 "
		"VIEW@1 0 of 0 1; "
		"STORE 7 e 2 next 3 of 0 1");
	co_end(c);
}

/* A joiner that is to read the disk is one that can. */
static void workers_of_other_machines_sync_from_members_alone(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.target = 1;
	co_begin(c, &config);
	IS(co_hear(c, CO_GUEST, true, (struct hd_msg){ .kind = HD_MSG_JOIN,
		.join = { .worker = HD_NOBODY, .nonce = 10 } }),
		"STORE 1 e 0 next 1 not started; NOTE join 1000000; NOTE scale; SPAWN 1");
	STORED();
	IS(co_return(c, HD_REMOTE_WORKER, 10, false), "");
	IS(co_ready_to_sync(c, HD_REMOTE_WORKER), "");
	co_admit(c, 1);
	IS(co_ready_to_sync(c, 1), ">1 SYNC@0 -1 0");
	IS(co_synced(c, 1), "STORE 3 e 1 next 2 not started");
	STORED();
	FROM(1, STATUS, .epoch = 1, .status = { .at = 0 });
	IS(STORED(),
		">1000000 VIEW@1 0 of 1; >1 VIEW@1 0 of 1; NOTE view; >1000000 SYNC@1 1 100000001; >1 "
		"SEND_STATE@1 1000000");
	co_end(c);
}

static void workers_that_are_missing_are_asked_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	IS(CO(TICK), "SPAWN 2");
	IS(CO(TICK), "");
	IS(CO(UNSPAWNED, .n = 1), "SPAWN 1");
	IS(CO(UNSPAWNED, .n = 9), "SPAWN 2");
	co_join(c, 0, 10);
	IS(STORED(), ">g0 ADMIT@0 0 for 10");
	IS(co_tick_at(c, 30 * CO_T - 1), "");   /* what does not come is requested again */
	IS(co_tick_at(c, 30 * CO_T + 9), "NOTE lost 0; END 0; SPAWN 2");
	co_end(c);

	co_run(c, &co_config, 2);
	IS(CO(SCALE, .n = 9), "STORE 5 e 1 next 2 of 0 1; NOTE scale; SPAWN 2");
	IS(CO(SCALE, .n = 0), "STORE 6 e 1 next 2 of 0 1; NOTE scale; STORE 7 e 2 next 2 of 0 1");
	IS(CO(LOST, .worker = 0, .why = HD_EXITED),
		"NOTE lost 0; END 0; NOTE void; STORE 8 e 3 next 2 of 0 1");
	IS(CO(SCALE, .n = 2), "STORE 9 e 3 next 2 of 0 1; NOTE scale");
	IS(STORED(), ">1 FENCE@3 dead 0");
	co_end(c);
}

/* One that does not come back under its number is not waited for; nor one whose link closed. */
static void whoever_does_not_come_is_given_up(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	co_join(c, 0, 10);
	STORED();
	co_tick_at(c, 29 * CO_T);
	assert_int_equal(hd_co_find(c->co, 0)->state, HD_W_ADMITTED);
	IS(co_tick_at(c, 30 * CO_T + 9), "NOTE lost 0; END 0; SPAWN 2");
	co_end(c);
	co_begin(c, &co_config);
	co_admit(c, 0);
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	int64_t lost = c->now;
	IS(co_tick_at(c, lost + CO_T - 1), "");
	IS(co_tick_at(c, lost + CO_T), "NOTE lost 0; END 0; SPAWN 1");
	co_end(c);
}

/* Whose slot is reused: a free one first, then that of a gone worker without a link, the lowest id
 * first. */
static void a_place_is_nobodys_before_it_is_anothers(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	co_admit(c, 0);
	FROM(0, LEAVE, .leave = { .gone = true });
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	co_admit(c, 1);
	assert_non_null(hd_co_find(c->co, 0));
	co_crowd(c);
	CO(LOST, .worker = 5, .why = HD_CLOSED);         /* here: it comes back, or is dead in a while */
	co_admit(c, HD_MAX_WORKERS);             /* in the place of worker 0 */
	assert_null(hd_co_find(c->co, 0));
	IS(co_join(c, 0, 999), ">g0 REFUSE@0 10; NOTE refused g0");
	FROM(HD_MAX_WORKERS, LEAVE, .leave = { .gone = true });
	CO(LOST, .worker = HD_MAX_WORKERS, .why = HD_CLOSED);
	FROM(7, LEAVE, .leave = { .gone = true });
	CO(LOST, .worker = 7, .why = HD_CLOSED);
	co_admit(c, HD_MAX_WORKERS + 1);
	assert_null(hd_co_find(c->co, 7));
	assert_non_null(hd_co_find(c->co, HD_MAX_WORKERS));
	co_end(c);
}

/* Nothing is known of a worker that is not there, whatever its id. */
static void a_free_place_is_no_worker(void **state)
{
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 4,
		.target = 3, .nmembers = 1, .member = { 1 },
		.started = true };
	co_take_over(c, &config, 0);
	IS(FROM(0, EVENT, .epoch = 5, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" }), "");
	IS(CO(REPLACE, .worker = 0, .ok = true), "");
	/* no member of the record: nor is there a place for it now */
	IS(co_return(c, 2, 12, true), ">2 STALE@5; DROP 2");
	assert_null(hd_co_find(c->co, 2));
	/* a joiner of the coordinator before */
	IS(co_return(c, 0, 20, false), ">0 PEER@5 1 b; >1 PEER@5 0 a; >0 ENTERED@5");
	co_end(c);
}

/* It asks again, since it was not answered; if it is dead meanwhile it is another one. */
static void a_number_is_not_told_to_one_who_is_dead_or_knows_it(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	CO(TICK);
	co_join(c, 0, 10);
	co_join(c, 1, 11);
	CO(LOST, .worker = CO_GUEST, .why = HD_CLOSED);
	IS(co_return(c, 1, 11, false), ">1 PEER@0 0 a");      /* it knows, from any source */
	IS(co_tick_at(c, 2 * CO_T), "NOTE lost 0; END 0; SPAWN 1");
	IS(STORED(), "");                       /* that their numbers are stored is heard late */
	IS(co_join(c, 2, 10), "STORE 3 e 0 next 3 not started; NOTE join 2");
	co_end(c);

	co_begin(c, &co_config);                 /* stores may be heard of out of order */
	co_join(c, 0, 10);
	co_join(c, 1, 11);
	IS(CO(STORED, .serial = 2, .ok = true), ">g0 ADMIT@0 0 for 10; >g1 ADMIT@0 1 for 11");
	IS(CO(STORED, .serial = 1, .ok = true), "");
	co_end(c);
}

/* A worker that left or is lost is not announced as a peer; nor are guests to one another. */
static void who_is_gone_is_told_of_no_more(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_admit(c, 2);
	FROM(2, LEAVE, .epoch = 1, .leave = { .gone = true });
	IS(co_return(c, 1, 11, true), ">1 PEER@1 0 a; >0 PEER@1 1 b; >1 FENCE@1; >1 VIEW@1 0 of 0 1");
	co_end(c);

	co_begin(c, &co_config);
	co_join(c, 0, 10);
	co_join(c, 1, 11);
	STORED();
	CO(LOST, .worker = CO_GUEST, .why = HD_CLOSED);
	CO(LOST, .worker = CO_GUEST + 1, .why = HD_SILENT);       /* that is no loss of a guest */
	CO(LOST, .worker = HD_NOBODY, .why = HD_CLOSED);
	IS(co_tick_at(c, 2 * CO_T), "NOTE lost 0; END 0; SPAWN 1");
	co_end(c);

	co_begin(c, &co_config);
	co_admit(c, 0);
	CO(LOST, .worker = HD_NOBODY, .why = HD_CLOSED);
	IS(co_tick_at(c, 2 * CO_T), "");
	co_end(c);
}

/* Rule 8: of local workers those that were asked for, of remote ones as many as there is room. */
static void remote_workers_come_beside_those_that_were_asked_for(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.max = 3;
	co_run(c, &config, 2);
	CO(TICK);
	co_admit_remote(c, 2);
	IS(co_ready_to_sync(c, HD_REMOTE_WORKER + 2), ">1000002 SYNC@1 1 100000001; >1 SEND_STATE@1 1000002");
	co_admit_remote(c, 3);
	IS(co_ready_to_sync(c, HD_REMOTE_WORKER + 3), "");
	IS(CO(REPLACE, .worker = HD_REMOTE_WORKER + 2, .ok = true), "");   /* none can be started here */
	IS(CO(SCALE, .n = 3),
		/* as many as there may be, with the remote one */
		"STORE 7 e 1 next 4 of 0 1; NOTE scale; SPAWN 1");
	co_admit(c, 4);
	IS(co_ready_to_sync(c, 4), "");
	IS(FROM(HD_REMOTE_WORKER + 3, LEAVE, .epoch = 1, .leave = { .gone = true }), "NOTE leave 1000003");
	IS(FROM(HD_REMOTE_WORKER + 2, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 1000002; >1 SEND_STATE@1 1000002 no more; >4 SYNC@1 1 100000002; >1 "
		"SEND_STATE@1 4");
	co_end(c);

	config.max = 4;
	co_run(c, &config, 2);
	co_admit_remote(c, 2);
	struct hd_co_status status;
	hd_coordinator_status(c->co, &status);
	assert_int_equal(status.target, 3);
	IS(FROM(HD_REMOTE_WORKER + 2, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 1000002; NOTE scale");
	co_end(c);
}

/* A remote worker was not started here; nor one that was not requested. */
static void only_local_workers_answer_what_was_asked_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_begin(c, &co_config);
	IS(CO(TICK), "SPAWN 2");
	IS(co_hear(c, CO_GUEST, true, (struct hd_msg){ .kind = HD_MSG_JOIN,
		.join = { .worker = HD_NOBODY, .nonce = 10 } }),
		"STORE 1 e 0 next 1 not started; NOTE join 1000000; NOTE scale");
	co_end(c);

	co_run(c, &co_config, 2);
	co_admit(c, 2);
	IS(CO(SCALE, .n = 4), "STORE 6 e 1 next 3 of 0 1; NOTE scale; SPAWN 1");
	co_end(c);

	co_begin(c, &co_config);
	co_admit(c, 0);
	assert_int_equal(c->co->spawned, 1);
	co_admit(c, 1);
	co_admit(c, 2);
	assert_int_equal(c->co->spawned, 0);
	co_end(c);
}

/* For `status`: all workers of the table, as many as fit, with what they compute in the view. */
static void status_names_those_who_are_there(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_worker_status w[HD_MAX_WORKERS + 2];

	(void)state;
	co_run(c, &co_config, 2);
	w[1].worker = 77;
	assert_int_equal(hd_coordinator_workers(c->co, w, 1), 1);
	assert_int_equal(w[1].worker, 77);
	assert_int_equal(hd_coordinator_workers(c->co, w, HD_MAX_WORKERS + 2), 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(w[i].worker == i && w[i].nvns == 2 && w[i].state == HD_W_MEMBER && w[i].up);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	assert_null(hd_coordinator_view(c->co));
	assert_int_equal(hd_coordinator_workers(c->co, w, HD_MAX_WORKERS), 2);
	assert_true(w[0].nvns == 0 && w[0].state == HD_W_OUT);
	co_end(c);
	assert_string_equal(hd_co_worker_state_name(HD_W_OUT), "out");
	assert_string_equal(hd_co_worker_state_name(HD_W_NSTATES), "unknown");
}

static void a_config_that_cannot_be_is_refused(void **state)
{
	static const struct { uint32_t min, max, nbuckets, nmembers; bool ok; } row[] = {
		{ 1, 1, 1, 0, true }, { 0, 1, 1, 0, false }, { 2, 1, 1, 0, false }, { 1, HD_MAX_MEMBERS, 1, 0, true }, { 1, HD_MAX_MEMBERS + 1, 1, 0, false },
		{ 1, 1, 0, 0, false }, { 1, 1, HD_MAX_BUCKETS, 0, true }, { 1, 1, HD_MAX_BUCKETS + 1, 0, false },
		{ 1, 1, 1, HD_MAX_WORKERS, true }, { 1, 1, 1, HD_MAX_WORKERS + 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_co_config config = co_config;
		struct hd_coordinator *co = NULL;
		config.min = row[i].min;
		config.max = row[i].max;
		config.target = 1;
		config.nbuckets = row[i].nbuckets;
		config.record.nmembers = row[i].nmembers;
		config.record.started = row[i].nmembers > 0;
		enum hd_err err = hd_coordinator_create(&co, &config, 0, NULL);
		CHECK(err == (row[i].ok ? HD_OK : HD_E_INVAL), "row %zu: %d", i, (int)err);
		hd_coordinator_destroy(co);
	}
}

static void a_coordinator_without_memory_is_not_made(void **state)
{
	struct hd_coordinator *co = NULL;
	uint64_t n = 1;

	(void)state;
	for (;; n++) {
		hd_alloc_arm(n);
		enum hd_err err = hd_coordinator_create(&co, &co_config, 0, NULL);
		hd_alloc_arm(0);
		if (!err)
			break;
		assert_int_equal(err, HD_E_NOMEM);
		assert_null(co);
	}
	assert_true(n > 3);
	hd_coordinator_destroy(co);
	hd_coordinator_destroy(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_told_when_it_is_stored),
		cmocka_unit_test(a_process_that_joins_again_is_another_worker),
		cmocka_unit_test(who_cannot_take_part_is_refused),
		cmocka_unit_test(places_are_given_to_others_when_workers_are_gone),
		cmocka_unit_test(who_comes_back_under_a_number_that_is_not_its_own_is_sent_away),
		cmocka_unit_test(a_joiner_of_the_coordinator_before_is_taken_in_again),
		cmocka_unit_test(who_is_not_here_is_not_heard),
		cmocka_unit_test(who_is_wanted_is_synced),
		cmocka_unit_test(who_teaches_is_told_again_when_it_comes_back),
		cmocka_unit_test(workers_of_other_machines_sync_from_members_alone),
		cmocka_unit_test(workers_that_are_missing_are_asked_for),
		cmocka_unit_test(whoever_does_not_come_is_given_up),
		cmocka_unit_test(a_place_is_nobodys_before_it_is_anothers),
		cmocka_unit_test(a_free_place_is_no_worker),
		cmocka_unit_test(a_number_is_not_told_to_one_who_is_dead_or_knows_it),
		cmocka_unit_test(who_is_gone_is_told_of_no_more),
		cmocka_unit_test(remote_workers_come_beside_those_that_were_asked_for),
		cmocka_unit_test(only_local_workers_answer_what_was_asked_for),
		cmocka_unit_test(status_names_those_who_are_there),
		cmocka_unit_test(a_config_that_cannot_be_is_refused),
		cmocka_unit_test(a_coordinator_without_memory_is_not_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
