#include "protocol/testing_coordinator.h"

/* Failures: suspicion (rule 5), FENCE, STATUS, VIEW (rule 3), too few (rule 6), none left (rule 7),
 * slots (rule 9). */

static const struct hd_pass own[] = { { 0, 0, 0, 1, 0 } };
static const struct hd_vrange of_four[][1] = { { { 0, 2 } }, { { 2, 1 } }, { { 3, 1 } } },
	of_two[][1] = { { { 0, 2 } }, { { 2, 2 } } };

#define STATUS_OF(w, e, ...) FROM(w, STATUS, .epoch = (e), .status = { .member = true, __VA_ARGS__ })
#define BEGUN(range_) .begun = true, .npass = 1, .pass = own, .nrange = 1, .range = (range_)
#define SUSPECTS(by, suspect_, why_) FROM(by, SUSPECT, .epoch = 1, .suspect = { suspect_, why_ })

/* Rule 3: each word after its record. */
static void a_loss_is_fenced_asked_and_decided(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	IS(CO(LOST, .worker = 2, .why = HD_EXITED), "NOTE lost 2; END 2; STORE 6 e 2 next 3 of 0 1 2");
	IS(STATUS_OF(0, 2, .at = 0), "");       /* no worker can know of it */
	IS(STORED(), ">0 FENCE@2 dead 2; >1 FENCE@2 dead 2");
	IS(STATUS_OF(0, 1, .at = 0), "");
	IS(STATUS_OF(0, 2, .at = 0, BEGUN(of_four[0])), "");
	IS(STATUS_OF(0, 2, .at = 0, BEGUN(of_four[0])), "");
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(of_four[1])),
		"NOTE redo; >0 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+1] 1.1[3+1] sums 0:0; "
		">1 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+1] 1.1[3+1] sums 0:0; NOTE view; "
		"STORE 7 e 2 next 3 of 0 1; SPAWN 1");
	/* the view was on its way: it is said again */
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(of_four[1])),
		">1 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+1] 1.1[3+1] sums 0:0");
	IS(STATUS_OF(1, 1, .at = 0), "");
	co_end(c);
}

/* What there is of the open step: sums and tables of holders; the rest is dealt out. */
static void the_open_step_is_finished_with_what_there_is(void **state)
{
	struct co_at_work at, *c = &at;
	static const uint64_t first = 1, both = 3;

	(void)state;
	co_run(c, &co_config, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_return(c, 1, 11, true);
	STORED();
	STATUS_OF(0, 2, .at = 0, .nsum = 1, .sum = &first, BEGUN(of_two[0]));
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(of_two[1])),
		">0 VIEW@2 0 of 0 1 passes 0.0[0+2] 1.0[2+2] sums 0:1 1:0; >1 VIEW@2 0 of 0 1 passes "
		"0.0[0+2] 1.0[2+2] sums 0:1 1:0; "
		"NOTE view");
	co_end(c);

	co_run(c, &co_config, 2);                /* all of it is with one */
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(STATUS_OF(0, 2, .at = 0, .nsum = 1, .sum = &both, .table = true, BEGUN(of_two[0])),
		">0 VIEW@2 0 of 0 passes 0.0[0+2] sums 0:1 table 1; NOTE view; "
		"STORE 6 e 2 next 2 of 0; SPAWN 1");
	co_end(c);

	co_run(c, &co_config, 2);                /* all but the table */
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(STATUS_OF(0, 2, .at = 0, .nsum = 1, .sum = &both, BEGUN(of_two[0])),
		"NOTE redo; >0 VIEW@2 0 of 0 passes 0.0[0+2] 0.1[2+2] sums 0:1; NOTE view; "
		"STORE 6 e 2 next 2 of 0; SPAWN 1");
	co_end(c);

	co_run(c, &co_config, 2);                /* one is ahead, and has it yet */
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_return(c, 1, 11, true);
	STORED();
	STATUS_OF(0, 2, .at = 1, .prev = true);
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(of_two[1])),
		">0 VIEW@2 0 of 0+1 1 passes 1.0[2+2] sums 0:1 table 1; >1 VIEW@2 0 of 0+1 1 passes "
		"1.0[2+2] sums 0:1 table 1; NOTE view");
	co_end(c);

	co_run(c, &co_config, 2);                /* or not any more: the present ones compute it */
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_return(c, 1, 11, true);
	STORED();
	STATUS_OF(0, 2, .at = 1);
	IS(STATUS_OF(1, 2, .at = 0, BEGUN(of_two[1])),
		"NOTE redo; >0 VIEW@2 0 of 0+1 1 passes 1.0[2+2] 1.1[0+2] sums 0:0; "
		">1 VIEW@2 0 of 0+1 1 passes 1.0[2+2] 1.1[0+2] sums 0:0; NOTE view");
	co_end(c);

	co_run(c, &co_config, 2);                /* a halt is not lost */
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	IS(STATUS_OF(0, 2, .at = 3, .halted = true),
		">0 VIEW@2 3 halt 3 of 0; NOTE view; COMMIT 0@2 lost; COMMIT 1@2 lost; COMMIT 2@2 lost; "
		"STORE 6 e 2 next 2 of 0; SPAWN 1");
	co_end(c);
}

/* Whoever is behind what a member could only do with its whole view is of no view any more. */
static void who_is_behind_is_let_go(void **state)
{
	static const struct { uint64_t at; bool begun; uint64_t other; bool stays; } row[] = {
		{ 5, true, 4, false }, { 5, false, 4, true }, { 5, false, 3, false }, { 6, true, 5, false }, { 0, false, 0, true },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 2);
		CO(LOST, .worker = 1, .why = HD_CLOSED);
		co_return(c, 1, 11, true);
		STORED();
		STATUS_OF(0, 2, .at = row[i].at, .begun = row[i].begun, .npass = row[i].begun, .pass = own,
			.nrange = row[i].begun,
			.range = of_two[0], .prev = true);
		const char *said = STATUS_OF(1, 2, .at = row[i].other);
		CHECK((strstr(said, ">1 RELEASE@1 0") == NULL) == row[i].stays &&
			(c->co->view.nmembers == 2) == row[i].stays, "row %zu: %s", i, said);
		co_end(c);
	}
}

/* Silent for T: dead too, and all are asked again with a higher epoch. */
static void who_does_not_answer_is_dead_after_t(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	int64_t asked = c->now;
	STATUS_OF(0, 2, .at = 0);
	IS(co_tick_at(c, asked + CO_T - 1), "");
	IS(co_tick_at(c, asked + CO_T),
		"NOTE lost 1; >1 STALE@1; DROP 1; END 1; STORE 7 e 3 next 3 of 0 1 2");
	IS(CO(STORED, .serial = c->record.serial - 1, .ok = true), "");
	IS(STORED(), ">0 FENCE@3 dead 1 2");
	IS(STATUS_OF(0, 2, .at = 0), "");       /* of the epoch before */
	IS(STATUS_OF(0, 3, .at = 0), ">0 VIEW@3 0 of 0; NOTE view; STORE 8 e 3 next 3 of 0; SPAWN 2");
	co_end(c);
}

/* Rule 5. */
static void who_is_missed_here_and_by_a_peer_is_dead_at_once(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int order = 0; order < 2; order++) {
		co_run(c, &co_config, 3);
		IS(order ? CO(LOST, .worker = 2, .why = HD_CLOSED) : SUSPECTS(0, 2, HD_CLOSED), "");
		IS(order ? SUSPECTS(0, 2, HD_CLOSED) : CO(LOST, .worker = 2, .why = HD_CLOSED),
			"NOTE lost 2; END 2; STORE 6 e 2 next 3 of 0 1 2");
		co_end(c);
	}
	co_run(c, &co_config, 3);                /* silence of both sides, too */
	CO(LOST, .worker = 2, .why = HD_SILENT);
	IS(SUSPECTS(0, 2, HD_SILENT), "NOTE lost 2; >2 STALE@1; DROP 2; END 2; STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);

	co_run(c, &co_config, 3);                /* a worker that is heard again was not lost */
	CO(LOST, .worker = 2, .why = HD_SILENT);
	IS(CO(LOST, .worker = 2, .why = HD_HEARD), "");
	IS(SUSPECTS(0, 2, HD_SILENT), "");
	IS(SUSPECTS(0, 2, HD_HEARD), "");
	IS(CO(LOST, .worker = 2, .why = HD_SILENT), "");
	int64_t lost = c->now;
	IS(co_tick_at(c, lost + CO_T - 1), "");
	IS(co_tick_at(c, lost + CO_T), "NOTE lost 2; >2 STALE@1; DROP 2; END 2; STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);

	/* a link that closed and came back lost what was on it: a new epoch */
	co_run(c, &co_config, 3);
	SUSPECTS(0, 2, HD_CLOSED);
	IS(SUSPECTS(0, 2, HD_HEARD), "STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);
	co_run(c, &co_config, 3);
	CO(LOST, .worker = 2, .why = HD_CLOSED);
	IS(CO(LOST, .worker = 2, .why = HD_HEARD), "");         /* by UP alone */
	IS(co_return(c, 2, 12, true),
		">2 PEER@1 0 a; >0 PEER@1 2 c; >2 PEER@1 1 b; >1 PEER@1 2 c; >2 FENCE@1; >2 VIEW@1 0 of 0 1 "
		"2; "
		"STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);
}

/* Suspected by peers but heard here. */
static void whom_most_reports_name_goes_and_of_equals_the_higher(void **state)
{
	static const struct { struct { uint32_t by, suspect_; } report[4]; uint32_t n, goes; } row[] = {
		{ { { 0, 2 } }, 1, 2 }, { { { 2, 0 }, { 0, 2 } }, 2, 2 }, { { { 2, 1 }, { 0, 1 }, { 1, 2 } }, 3, 1 }, { { { 2, 1 }, { 3, 1 },
			{ 1, 3 } }, 3, 1 },
		{ { { 2, 1 }, { 2, 1 }, { 1, 2 } }, 3, 2 },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 4);
		for (uint32_t k = 0; k < row[i].n; k++)
			IS(SUSPECTS(row[i].report[k].by, row[i].report[k].suspect_, HD_SILENT), "");
		int64_t last = c->now;
		IS(co_heard_at(c, last + CO_T - 9), "");
		co_heard_at(c, last + CO_T);
		for (uint32_t w = 0; w < 4; w++)
			CHECK((hd_co_find(c->co, w)->state == HD_W_OUT) == (w == row[i].goes),
				"row %zu: worker %u: %s", i, w, c->text);
		co_end(c);
	}
	/* reports of a dead worker do not count */
	co_run(c, &co_config, 3);
	SUSPECTS(2, 1, HD_SILENT);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	STATUS_OF(0, 2, .at = 0);
	STATUS_OF(1, 2, .at = 0);
	IS(co_heard_at(c, c->now + 2 * CO_T), "");
	co_end(c);
}

static void who_makes_no_progress_is_hung(void **state)
{
	struct co_at_work at, *c = &at;
	static const struct { uint64_t longest; bool busy; uint64_t done; int64_t hung; } row[] = {
		{ 0, true, 5, 2 }, { 1000000000, true, 5, 8 }, { 0, false, 5, 0 }, { UINT64_MAX, true, 5, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 2);
		FROM(1, PROGRESS, .epoch = 1, .progress = { 0, row[i].done, row[i].longest, row[i].busy });
		int64_t from = c->now;
		IS(co_tick_at(c, from + CO_T), "");
		/* the same: no progress */
		FROM(1, PROGRESS, .epoch = 1, .progress = { 0, row[i].done, row[i].longest, row[i].busy });
		for (int64_t k = 1; k < 20; k++) {
			const char *said = co_tick_at(c, from + k * CO_T + 1);
			bool gone = strstr(said, "NOTE lost 1") != NULL, due = row[i].hung &&
				k == row[i].hung && (row[i].busy || row[i].hung);
			CHECK(gone == due, "row %zu, %d T: %s", i, (int)k, said);
			if (gone)
				break;
		}
		co_end(c);
	}
	co_run(c, &co_config, 2);
	for (uint64_t k = 1; k < 20; k++) {      /* it goes on */
		FROM(1, PROGRESS, .epoch = 1, .progress = { 0, k, 0, true });
		IS(co_tick_at(c, c->now + 15 * CO_T / 8), "");
	}
	co_end(c);
}

/* Of leavers and joiners: what they lack is sent again only in a new epoch. */
static void a_member_that_misses_the_last_word_of_one_who_left_gets_a_new_epoch(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	FROM(1, LEAVE, .epoch = 1, .leave = { .gone = true });
	IS(SUSPECTS(0, 1, HD_CLOSED), "NOTE void; STORE 6 e 3 next 2 of 0 1");
	co_end(c);
	co_run(c, &co_config, 3);
	SUSPECTS(0, 1, HD_CLOSED);
	IS(FROM(1, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 1; SPAWN 1; STORE 6 e 2 next 3 of 0 1 2");
	co_end(c);
	co_run(c, &co_config, 2);
	IS(SUSPECTS(0, 77, HD_CLOSED), "");     /* a worker unknown here */
	co_end(c);

	/* a joiner that was decided lost one of those it waits for */
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	IS(SUSPECTS(2, 0, HD_CLOSED), "");
	STORED();
	for (uint32_t i = 0; i < 3; i++)
		FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
	IS(SUSPECTS(2, 0, HD_SILENT), "");
	IS(SUSPECTS(2, 0, HD_CLOSED), "NOTE void; STORE 9 e 3 next 3 of 0 1 2");
	co_end(c);
}

/* Rule 6. */
static void too_few_finish_the_step_and_hold(void **state)
{
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.min = 2;
	for (int come = 0; come < 2; come++) {
		co_run(c, &config, 2);
		CO(LOST, .worker = 1, .why = HD_EXITED);
		STORED();
		IS(STATUS_OF(0, 2, .at = 0, BEGUN(of_two[0])),
			"NOTE redo; >0 VIEW@2 0 hold of 0 passes 0.0[0+2] 0.1[2+2] sums 0:0; NOTE view; "
			"STORE 6 e 2 next 2 of 0; SPAWN 1");
		struct hd_co_status status;
		hd_coordinator_status(c->co, &status);
		assert_true(status.holding);
		int64_t from = c->now;
		if (come) {
			co_admit(c, 2);
			IS(co_ready_to_sync(c, 2), ">2 SYNC@2 0 100000001; >0 SEND_STATE@2 2");
			IS(co_synced(c, 2), "");
			/* it has synced: a view with it */
			IS(co_tick_at(c, CO_T), "STORE 8 e 3 next 3 of 0");
			STORED();
			STATUS_OF(0, 3, .at = 1);
			IS(FROM(2, STATUS, .epoch = 3, .status = { .at = 1 }), "STORE 9 e 3 next 3 of 0 2");
			IS(STORED(), ">0 VIEW@3 1 of 0 2; >2 VIEW@3 1 of 0 2; NOTE view; COMMIT 0@3 lost");
			hd_coordinator_status(c->co, &status);
			assert_false(status.holding);
			co_end(c);
			continue;
		}
		IS(co_tick_at(c, from + 100 * CO_T), "SPAWN 1");
		IS(co_tick_at(c, from + 100 * CO_T + 1), ">0 STOP@2 10 too few workers");
		IS(co_tick_at(c, from + 100 * CO_T + 2), "");
		co_end(c);
	}
}

/* Rule 7. */
static void all_begin_from_the_disk_when_no_member_is_left(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 1);
	CO(SCALE, .n = 2);
	co_admit(c, 1);
	co_ready_to_sync(c, 1);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	IS(STORED(), ">1 FENCE@2 dead 0; STORE 7 e 2 next 2 not started; NOTE restore; RESTORE; SPAWN 1");
	IS(CO(RESTORED, .step = 7), ">1 SYNC@0 -1 7");
	IS(CO(RESTORED, .step = 9), "");
	IS(co_synced(c, 1), "");
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	IS(co_synced(c, 2), "STORE 9 e 3 next 3 not started");
	co_end(c);

	co_run(c, &co_config, 1);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	IS(CO(RESTORED, .step = HD_NO_STEP), "EXIT 10 no worker is left, and no checkpoint");
	co_end(c);
}

/* The start waits for all wanted workers; after that enough are enough. */
static void a_start_waits_for_all_and_then_for_enough(void **state)
{
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	for (uint32_t min = 1; min < 3; min++) {
		config.min = min;
		co_begin(c, &config);
		co_admit(c, 0);
		co_ready_to_sync(c, 0);
		co_synced(c, 0);
		IS(co_tick_at(c, 8 * CO_T), "");
		if (min == 1) {
			IS(co_tick_at(c, 8 * CO_T + 1), "STORE 2 e 1 next 1 not started");
		} else {
			IS(co_tick_at(c, 100 * CO_T), "SPAWN 1");
			IS(co_tick_at(c, 100 * CO_T + 1), ">0 RELEASE@0 10");
		}
		co_end(c);
	}
}

/* Without a worker that can save all hold; and the open step waits if a halt before it may be lost. */
static void remote_workers_alone_hold(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	const uint32_t far = HD_REMOTE_WORKER + 1;

	(void)state;
	for (int table = 0; table < 2; table++) {
		config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 4,
			.target = 1, .nmembers = 2,
			.member = { 0, far }, .started = true };
		co_begin(c, &config);
		CO(TICK);
		co_return(c, 0, 10, true);
		co_return(c, far, 11, true);
		STORED();
		CO(LOST, .worker = 0, .why = HD_EXITED);
		STORED();
		IS(STATUS_OF(far, 6, .at = 5, .table = table, BEGUN(of_two[1])), table ?
			"NOTE redo; >1000001 VIEW@6 5 hold of 1000001 passes 1000001.0[2+2] 1000001.1[0+2] "
			"sums 0:0 table 1; NOTE view; COMMIT 0@6 lost; "
			"COMMIT 1@6 lost; COMMIT 2@6 lost; COMMIT 3@6 lost; COMMIT 4@6 lost; "
			"STORE 12 e 6 next 4 of 1000001; SPAWN 1" :
			"NOTE afresh; >1000001 VIEW@6 5 afresh hold of 1000001; NOTE view; COMMIT 0@6 lost; "
			"COMMIT 1@6 lost; COMMIT 2@6 lost; "
			"COMMIT 3@6 lost; COMMIT 4@6 lost; STORE 12 e 6 next 4 of 1000001; SPAWN 1");
		co_end(c);
	}
}

/* Rule 9: slots are lost without a holder, or if the holders cannot get the sum that they need. */
static void a_job_whose_slots_are_lost_begins_again_from_the_disk(void **state)
{
	static const uint64_t none = 0, first = 1, both = 3;
	static const struct { const uint64_t *slot, *sum, *parm; bool updated, lost; } row[] = {
		{ &both, &none, &none, false, false }, { &first, &none, &none, false, true }, { &both, &first, &first, false, false },
		{ &both, &none, &first, false, true }, { &both, &both, &both, true, false },
	};
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.copies = 1;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &config, 2);
		CO(LOST, .worker = 1, .why = HD_EXITED);
		STORED();
		const char *said = STATUS_OF(0, 2, .at = 0, .nslot = 1, .slot = row[i].slot, .nsum = 1,
			.sum = row[i].sum, .nparm = 1, .parm = row[i].parm,
			.updated = row[i].updated, .table = row[i].updated, BEGUN(of_two[0]));
		CHECK((strstr(said, "NOTE rejoin") != NULL) == row[i].lost, "row %zu: %s", i, said);
		co_end(c);
	}
	/* what was brought on cannot go back to the beginning of the step */
	co_run(c, &config, 2);
	CO(LOST, .worker = 1, .why = HD_CLOSED);
	co_return(c, 1, 11, true);
	STORED();
	STATUS_OF(0, 2, .at = 0, .nslot = 1, .slot = &both, .updated = true, BEGUN(of_two[0]));
	IS(STATUS_OF(1, 2, .at = 0, .nslot = 1, .slot = &both, BEGUN(of_two[0])),
		"NOTE redo; NOTE afresh; NOTE rejoin; >0 STALE@1; DROP 0; >1 STALE@1; DROP 1; "
		"STORE 6 e 2 next 2 not started; NOTE restore; RESTORE");
	co_end(c);
}

/* Rule 9: a step that a member has finished cannot begin again: its slots are those after it. */
static void a_finished_step_that_is_begun_again_has_lost_its_slots(void **state)
{
	static const uint64_t both = 3;
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.copies = 1;
	config.lockstep = true;           /* what is missing of a step is not dealt: it is begun again */
	for (uint64_t finished = 0; finished < 2; finished++) {
		co_run(c, &config, 3);
		CO(LOST, .worker = 2, .why = HD_EXITED);
		STORED();
		STATUS_OF(0, 2, .at = finished, .nslot = 1, .slot = &both);
		const char *said = STATUS_OF(1, 2, .at = 0, .nslot = 1, .slot = &both, BEGUN(of_four[0]));
		CHECK(strstr(said, "NOTE afresh"), "%s", said);
		CHECK((strstr(said, "NOTE rejoin") != NULL) == finished, "at %u: %s", (unsigned)finished,
			said);
		co_end(c);
	}
}

/* The state is lost: processes of members stay, and none is started in their place, unless one of them ends
 * before it has joined again. A member that is to leave does so. */
static void who_loses_the_state_joins_again_and_is_not_replaced(void **state)
{
	static const uint64_t first = 1;
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	config.copies = 1;
	co_run(c, &config, 4);
	co_tick_at(c, 40 * CO_T);                 /* whoever was started is not waited for any more */
	CO(DRAIN, .worker = 3);
	STORED();
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	STATUS_OF(0, 2, .at = 0, .nslot = 1, .slot = &first);
	STATUS_OF(1, 2, .at = 0, .nslot = 1, .slot = &first);
	IS(STATUS_OF(3, 2, .at = 0, .nslot = 1, .slot = &first),
		"NOTE rejoin; >0 STALE@1; DROP 0; >1 STALE@1; DROP 1; >3 RELEASE@1 75; "
		"STORE 9 e 2 next 4 not started; NOTE restore; RESTORE; SPAWN 1");
	IS(CO(LOST, .worker = 0, .why = HD_EXITED), "SPAWN 1");
	IS(CO(LOST, .worker = 0, .why = HD_EXITED), "");
	IS(co_join(c, 4, 11), "STORE 10 e 2 next 5 not started; NOTE join 4");
	IS(CO(LOST, .worker = 1, .why = HD_EXITED), "");
	IS(CO(UNSPAWNED, .n = 1), "SPAWN 1");
	co_end(c);

	/* one that neither joins again nor ends is not waited for longer than one that is started */
	co_run(c, &config, 2);
	co_tick_at(c, 40 * CO_T);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	STATUS_OF(0, 2, .at = 0, .nslot = 1, .slot = &first);
	IS(co_tick_at(c, 69 * CO_T), "");
	IS(co_tick_at(c, 72 * CO_T), "SPAWN 2");
	co_end(c);
}

/* A worker that held no state answers nothing any more: it is not waited for. */
static void who_forgets_its_state_while_it_is_asked_is_not_waited_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	IS(STORED(), ">1 FENCE@3 dead 0; >2 FENCE@3 dead 0");
	IS(STATUS_OF(1, 3, .at = 0), "");
	IS(FROM(2, READY_TO_SYNC, .epoch = 3),
		">1 SEND_STATE@1 2 no more; >1 VIEW@3 0 of 1; >2 VIEW@3 0 of 1; NOTE view; "
		"STORE 9 e 3 next 3 of 1; SPAWN 1; >2 "
		"SYNC@3 "
		"1 100000002; >1 SEND_STATE@3 2");
	co_end(c);

	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	FROM(2, STATUS, .epoch = 3, .status = { .at = 4 });
	/* it has synced another step: it is let in later */
	IS(STATUS_OF(1, 3, .at = 0),
		">1 VIEW@3 0 of 1; >2 VIEW@3 0 of 1; NOTE view; STORE 9 e 3 next 3 of 1; SPAWN 1; "
		"STORE 10 e 4 next 3 of 1");
	co_end(c);
	co_run(c, &co_config, 2);
	co_one_more(c, 2);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	FROM(2, STATUS, .epoch = 3, .status = { .at = 0 });
	IS(STATUS_OF(1, 3, .at = 0), "STORE 9 e 3 next 3 of 1 2; SPAWN 1");
	IS(STORED(), ">1 VIEW@3 0 of 1 2; >2 VIEW@3 0 of 1 2; NOTE view");
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loss_is_fenced_asked_and_decided),
		cmocka_unit_test(the_open_step_is_finished_with_what_there_is),
		cmocka_unit_test(who_is_behind_is_let_go),
		cmocka_unit_test(who_does_not_answer_is_dead_after_t),
		cmocka_unit_test(who_is_missed_here_and_by_a_peer_is_dead_at_once),
		cmocka_unit_test(whom_most_reports_name_goes_and_of_equals_the_higher),
		cmocka_unit_test(who_makes_no_progress_is_hung),
		cmocka_unit_test(a_member_that_misses_the_last_word_of_one_who_left_gets_a_new_epoch),
		cmocka_unit_test(too_few_finish_the_step_and_hold),
		cmocka_unit_test(all_begin_from_the_disk_when_no_member_is_left),
		cmocka_unit_test(a_start_waits_for_all_and_then_for_enough),
		cmocka_unit_test(remote_workers_alone_hold),
		cmocka_unit_test(a_job_whose_slots_are_lost_begins_again_from_the_disk),
		cmocka_unit_test(a_finished_step_that_is_begun_again_has_lost_its_slots),
		cmocka_unit_test(who_loses_the_state_joins_again_and_is_not_replaced),
		cmocka_unit_test(who_forgets_its_state_while_it_is_asked_is_not_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
