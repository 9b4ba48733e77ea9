#include "protocol/testing_coordinator.h"

/* Guards of the start, of holding (rules 6 and 8) and of requests for workers. */

#define FAR(id) (HD_REMOTE_WORKER + (id))

static void a_start_waits_for_those_who_can_begin(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	co_begin(c, &config);                    /* one that is to leave is none */
	co_admit(c, 0);
	co_admit(c, 1);
	co_ready_to_sync(c, 0);
	co_ready_to_sync(c, 1);
	co_synced(c, 0);
	CO(DRAIN, .worker = 1);
	IS(co_synced(c, 1), "");
	co_end(c);

	config.min = 1;
	config.target = 1;
	co_begin(c, &config);                    /* remote ones cannot begin */
	co_admit_remote(c, 0);
	co_ready_to_sync(c, FAR(0));
	IS(co_tick_at(c, 9 * CO_T), "");
	co_end(c);

	config.target = 2;
	config.min_wait_ns = CO_T;
	co_begin(c, &config);                    /* workers.min_wait may be shorter */
	co_admit(c, 0);
	co_ready_to_sync(c, 0);
	co_synced(c, 0);
	IS(co_tick_at(c, CO_T), "");
	IS(co_tick_at(c, CO_T + 1), "STORE 2 e 1 next 1 not started");
	co_end(c);
}

/* No transfer from disk starts during FENCE, nor in a run that stops. */
static void a_newcomer_is_not_synced_out_of_turn(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.target = 3;
	co_begin(c, &config);
	for (uint32_t i = 0; i < 3; i++)
		co_admit(c, i);
	for (uint32_t i = 0; i < 2; i++) {
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	IS(co_tick_at(c, 9 * CO_T), "STORE 4 e 1 next 3 not started");
	IS(STORED(), ">0 FENCE@1; >1 FENCE@1; >2 FENCE@1");
	IS(co_ready_to_sync(c, 2), "");
	co_end(c);

	co_run(c, &co_config, 2);
	CO(HALT, .code = 75, .text = "t");
	CO(SCALE, .n = 3);
	co_admit(c, 2);
	IS(co_ready_to_sync(c, 2), "");
	IS(CO(SCALE, .n = 1), "STORE 8 e 1 next 3 of 0 1 halting; NOTE scale");         /* and none leaves */
	co_end(c);
}

/* What is reported while all are asked is mended by the view that comes of it, or after it. */
static void while_all_are_asked_nothing_else_is_opened(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	co_run(c, &co_config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	FROM(0, SUSPECT, .epoch = 1, .suspect = { 1, HD_CLOSED });
	IS(FROM(0, SUSPECT, .epoch = 1, .suspect = { 1, HD_HEARD }), "");
	FROM(0, STATUS, .epoch = 2, .status = { .member = true, .at = 0 });
	IS(FROM(1, STATUS, .epoch = 2, .status = { .member = true, .at = 0 }),
		">0 VIEW@2 0 of 0 1; >1 VIEW@2 0 of 0 1; NOTE view; STORE 7 e 2 next 3 of 0 1; SPAWN 1; "
		"STORE 8 e 3 next 3 of 0 1");
	co_end(c);

	/* too few hold; they are not given up while they are asked */
	config.min = 2;
	config.min_wait_ns = CO_T / 2;
	co_run(c, &config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(FROM(0, STATUS, .epoch = 3, .status = { .member = true, .at = 0 }),
		">0 VIEW@3 0 hold of 0; NOTE view; STORE 8 e 3 next 3 of 0; SPAWN 2");
	CO(LOST, .worker = 0, .why = HD_CLOSED);
	co_return(c, 0, 10, true);
	STORED();
	assert_int_equal(c->co->phase, HD_CO_ASKING);
	IS(co_tick_at(c, c->now + 3 * CO_T / 4), "");
	co_end(c);
}

/* Rules 6 and 8: holding ends when there are enough workers, one of which can save. */
static void who_holds_waits_for_enough_of_whom_one_can_save(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	static const struct { uint32_t min; bool remote_view, remote, draining, away, goes_on; } row[] = {
		{ 2, false, false, false, false, true }, { 3, false, false, false, false, false }, { 2, false, true, false, false, true },
		{ 2, false, false, true, false, false }, { 2, false, false, false, true, false },
		{ 1, true, false, false, false, true }, { 1, true, true, false, false, false }, { 1, true, false, true, false, false },
		{ 1, true, false, false, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const uint32_t stays = row[i].remote_view ? FAR(1) : 0,
			goes = row[i].remote_view ? 0 : FAR(1);
		config.min = row[i].min;
		config.target = row[i].min;
		config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 4,
			.target = row[i].min, .nmembers = 2,
			.member = { 0, FAR(1) }, .started = true };
		co_take_over(c, &config, 5);
		CO(LOST, .worker = goes, .why = HD_EXITED);
		STORED();
		FROM(stays, STATUS, .epoch = c->co->record.epoch, .status = { .member = true, .at = 5 });
		FROM(stays, PROGRESS, .epoch = c->co->record.epoch);
		assert_true(c->co->holding);
		uint32_t id = row[i].remote ? FAR(c->co->record.next_worker) : c->co->record.next_worker;
		if (row[i].remote)
			co_admit_remote(c, c->co->record.next_worker);
		else
			co_admit(c, id);
		co_ready_to_sync(c, id);
		if (row[i].draining)
			CO(DRAIN, .worker = id);
		co_synced(c, id);
		if (row[i].away)
			CO(LOST, .worker = id, .why = HD_CLOSED);
		co_tick_at(c, c->now + CO_T - 3);        /* not dead yet */
		if (c->co->phase != HD_CO_FENCING)
			co_tick_at(c, c->now + 2);
		CHECK((c->co->phase == HD_CO_FENCING) == row[i].goes_on, "row %zu: phase %u", i,
			(unsigned)c->co->phase);
		co_end(c);
	}
}

/* ---- asking for workers ---- */

static void workers_are_asked_for_while_somebody_needs_them(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	co_begin(c, &co_config);                 /* 30 T count from the oldest that was asked for */
	CO(TICK);
	co_tick_at(c, 10 * CO_T);
	IS(CO(UNSPAWNED, .n = 1), "SPAWN 1");
	IS(co_tick_at(c, 30 * CO_T + 1), "");
	IS(co_tick_at(c, 30 * CO_T + 2), "SPAWN 2");
	co_end(c);

	/* too few waited in vain: no more requests */
	config.min = 2;
	co_run(c, &config, 2);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	FROM(0, STATUS, .epoch = 2, .status = { .member = true, .at = 0 });
	IS(co_tick_at(c, c->now + 100 * CO_T + 1), "SPAWN 1; >0 STOP@2 10 too few workers");
	IS(CO(UNSPAWNED, .n = 1), "");
	co_end(c);

	for (int halts = 0; halts < 2; halts++) {        /* rule 8: a stop too needs a worker that can save */
		config = co_config;
		config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 4,
			.target = 1, .nmembers = 2,
			.member = { 0, FAR(1) }, .started = true };
		co_take_over(c, &config, 5);
		CO(LOST, .worker = 0, .why = HD_EXITED);
		if (halts)
			CO(HALT, .code = 75, .text = "t");
		STORED();
		IS(FROM(FAR(1), STATUS, .epoch = 6, .status = { .member = true, .at = 5 }), halts ?
			">1000001 VIEW@6 5 hold of 1000001; >1000001 STOP@6 75 t; NOTE view; "
			"STORE 13 e 6 next 4 of 1000001 halting; SPAWN 1" :
			">1000001 VIEW@6 5 hold of 1000001; NOTE view; "
			"STORE 12 e 6 next 4 of 1000001; SPAWN 1");
		IS(CO(LOST, .worker = FAR(1), .why = HD_EXITED), halts ?
			"NOTE lost 1000001; END 1000001; STORE 14 e 7 next 4 of 1000001 halting; NOTE scale" :
			"NOTE lost 1000001; END 1000001; STORE 13 e 7 next 4 of 1000001; NOTE scale");
		IS(STORED(), halts ? "STORE 15 e 7 next 4 not started halting; NOTE restore; RESTORE" :
			"STORE 14 e 7 next 4 not started; NOTE restore; RESTORE");
		/* no worker is left: the disk has the end */
		IS(CO(UNSPAWNED, .n = 1), halts ? "" : "SPAWN 1");
		co_end(c);
	}

	/* it ends with the view after a loss: no more requests */
	co_run(c, &co_config, 2);
	co_seal(c, 0, 1, 0);
	FROM(0, DONE, .epoch = 1, .done = { .step = 1 });
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(FROM(0, STATUS, .epoch = 2, .status = { .member = true, .at = 1 }),
		">0 VIEW@2 1 of 0; NOTE view; COMMIT 0@2; STORE 6 e 2 next 2 of 0; >0 RELEASE@2 0");
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_waits_for_those_who_can_begin),
		cmocka_unit_test(a_newcomer_is_not_synced_out_of_turn),
		cmocka_unit_test(while_all_are_asked_nothing_else_is_opened),
		cmocka_unit_test(who_holds_waits_for_enough_of_whom_one_can_save),
		cmocka_unit_test(workers_are_asked_for_while_somebody_needs_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
