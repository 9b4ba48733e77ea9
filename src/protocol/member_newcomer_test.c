#include "protocol/testing_views.h"

/* A newcomer: what it announces, hears and keeps until its view is in force. */

/* A joiner keeps what it announced though its source goes, and gives it back when it is to be no member
 * after all. */
static void what_a_newcomer_announced_it_keeps(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int row = 0; row < 4; row++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 5, 2);
		SEAL_OF(1, 1, 5, 2);
		IS(EVENT(SYNCED, AT(6)),
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >co SEAL@2 5 knows 2; BOUNDARY 6");
		switch (row) {
		case 0:                          /* whole: it becomes a member */
			IS(EVENT(SYNC_LOST, .whole = true), "");
			IS(EVENT(READY, AT(6)), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
			break;
		case 1:                          /* not whole: what it announced is not there */
			IS(EVENT(SYNC_LOST), ">co READY_TO_SYNC@1 0");
			IS(HEAR(ENTERED, .epoch = 2), "EPOCH 2");
			break;
		case 2:                          /* the members went on without it */
			EVENT(SYNC_LOST, .whole = true);
			IS(HEAR(ENTERED, .epoch = 1), "");
			IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3; >co READY_TO_SYNC@3 0");
			break;
		case 3:                          /* so they did, and it follows on */
			IS(EVENT(SYNCED, AT(7)), "");
			assert_false(w->m->next.open);
			IS(EVENT(READY, AT(6)), "");
			IS(EVENT(READY, AT(7)), "");
			break;
		}
		at_work_end(w);
	}
}

/* What it has synced again as it was changes nothing that it announced; what is later makes it void. */
static void what_is_synced_again_changes_nothing(void **state)
{
	static const struct hd_msg_prepare later = { .next = 4, .nold = 2, .old = two, .nmember = 3,
		.member = three, .nrank = 3, .rank = ranks };
	struct at_work at, *w = &at;

	(void)state;
	for (int again = 0; again < 2; again++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 5, 2);
		SEAL_OF(1, 1, 5, 2);
		EVENT(SYNCED, AT(6));
		if (again) {
			IS(EVENT(SYNCED, AT(6)), "");
			IS(EVENT(READY, AT(6)), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
			IS(EVENT(SYNCED, AT(9)), "");  /* it is a member */
			assert_int_equal(hd_member_at(w->m), 6);
		} else {
			IS(EVENT(SYNCED, AT(7)), "");
			IS(hear(w, (struct hd_msg){ .kind = HD_MSG_PREPARE, .epoch = 3, .prepare = later }),
				"EPOCH 3; PREPARE 4 of 3");
			EVENT(PREPARED, .epoch = 4);
			SEAL_OF(0, 3, 7, 4);
			SEAL_OF(1, 3, 7, 4);
			IS(EVENT(SYNCED, AT(8)),
				">0 SEAL@4 7 knows 4; >1 SEAL@4 7 knows 4; >co SEAL@4 7 knows 4; BOUNDARY 8");
			IS(EVENT(READY, AT(8)), "EPOCH 4; ADOPT 4 of 3; BEGIN 8; COMPUTE 8.0 [3+1]");
		}
		at_work_end(w);
	}
}

/* The source's end: whole or not, announced or not yet. */
static void what_is_cut_was_announced(void **state)
{
	static const struct { uint64_t synced; bool whole; const char *said; } row[] = {
		{ 6, true, "" }, { 6, false, ">co READY_TO_SYNC@1 0" }, { 5, true, ">co READY_TO_SYNC@1 0" },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 5, 2);
		SEAL_OF(1, 1, 5, 2);
		EVENT(SYNCED, .step = row[i].synced);
		const char *said = EVENT(SYNC_LOST, .whole = row[i].whole);
		IS(said, row[i].said);
		if (*said)
			IS(EVENT(SYNC_LOST, .whole = true), ">co READY_TO_SYNC@1 0");
		at_work_end(w);
	}
}

/* Void again, it is no member: it neither begins, nor halts, nor hears of steps. */
static void a_newcomer_whose_view_is_void_does_nothing(void **state)
{
	static const uint32_t four[] = { 0, 1, 2, 3 };
	static const struct hd_vrank rank[] = { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 } };
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	for (uint64_t nsteps = 9; nsteps >= 6; nsteps -= 3) {
		config.nsteps = nsteps;
		at_work_synced(w, &config, 2);
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 4,
			.member = four, .nrank = 4, .rank = rank });
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 5, 2);
		SEAL_OF(1, 1, 5, 2);
		IS(EVENT(SYNCED, AT(6)), nsteps == 6 ?
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >3 SEAL@2 5 knows 2; >co SEAL@2 5 knows "
			"2; BOUNDARY 6 final" :
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >3 SEAL@2 5 knows 2; >co SEAL@2 5 knows "
			"2; BOUNDARY 6");
		IS(EVENT(READY, AT(6)), "");
		IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3");
		IS(EVENT(TICK), "");
		IS(SEAL_OF(0, 1, 6, 2, .sum_digest = 4), "");
		IS(SEAL_OF(1, 1, 6, 2, .sum_digest = 5), "");
		assert_int_equal(w->m->diverged, 0);
		at_work_end(w);
	}
}

/* A joiner hears seals in any order of their senders; that they know makes the view decided for it. */
static void a_newcomer_hears_seals_in_any_skew(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	SEAL_OF(0, 1, 4, 1);
	SEAL_OF(1, 1, 4, 1);
	SEAL_OF(0, 1, 8, 2);
	assert_true(hd_seals_has(&w->m->seals, 0, 9));
	IS(SEAL_OF(1, 1, 8, 2), "DECIDED 2");
	IS(PREPARE(1, 3), "");                  /* decided is decided */
	at_work_end(w);
}

/* Void and prepared for again, it announces again what it holds. */
static void a_newcomer_announces_to_each_view(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 5, 2);
	SEAL_OF(1, 1, 5, 2);
	EVENT(SYNCED, AT(6));
	IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3");
	IS(PREPARE(3, 4), "PREPARE 4 of 3");
	EVENT(PREPARED, .epoch = 4);
	SEAL_OF(0, 3, 5, 4);
	IS(SEAL_OF(1, 3, 5, 4),
		"DECIDED 4; >0 SEAL@4 5 knows 4; >1 SEAL@4 5 knows 4; >co SEAL@4 5 knows 4; BOUNDARY 6");
	at_work_end(w);

	/* the boundary of the view that is void is not awaited under the next */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 5, 2);
	SEAL_OF(1, 1, 5, 2);
	EVENT(SYNCED, AT(6));
	IS(FENCE(3), "EPOCH 3; >co STATUS@3 6");
	assert_int_equal(w->m->switch_step, HD_NO_STEP);
	IS(VIEW(3, 3, .step = 6), "ADOPT 3 of 3; BOUNDARY 6");
	IS(EVENT(READY, AT(6)), "BEGIN 6; COMPUTE 6.0 [3+1]");
	at_work_end(w);

	/* cut, and not in the view that comes */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 5, 2);
	SEAL_OF(1, 1, 5, 2);
	EVENT(SYNCED, AT(6));
	IS(EVENT(SYNC_LOST, .whole = true), "");
	FENCE(3);
	IS(VIEW(3, 2, .step = 6), ">co READY_TO_SYNC@3 0");
	at_work_end(w);

	/* later than what it announced: nothing is announced of it */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 5, 2);
	SEAL_OF(1, 1, 5, 2);
	EVENT(SYNCED, AT(6));
	EVENT(SYNCED, AT(7));
	assert_int_equal(w->m->switch_step, HD_NO_STEP);
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_newcomer_announced_it_keeps),
		cmocka_unit_test(what_is_synced_again_changes_nothing),
		cmocka_unit_test(what_is_cut_was_announced),
		cmocka_unit_test(a_newcomer_whose_view_is_void_does_nothing),
		cmocka_unit_test(a_newcomer_hears_seals_in_any_skew),
		cmocka_unit_test(a_newcomer_announces_to_each_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
